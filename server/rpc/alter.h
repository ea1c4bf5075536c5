/* alter - changes of a schema, as messages and as format/evolve.h has them. */
#ifndef TARN_RPC_ALTER_H
#define TARN_RPC_ALTER_H

#include "rpc/internal.h"
#include "tarn/v1/catalog.pb-c.h"

/* In the op's arena; a message may be several changes. INVALID_ARGUMENT, SCHEMA_INVALID (a type's text). */
TARN_MUST struct tarn_status *tarn_rpc__changes(struct tarn_op *op,
                                                Tarn__V1__SchemaChange *const *from, size_t count,
                                                struct tarn_schema_change **out, size_t *out_count);

#endif
