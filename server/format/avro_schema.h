/* avro_schema - the writer's schema of an Avro container as nodes; for avro.c. */
#ifndef TARN_FORMAT_AVRO_SCHEMA_H
#define TARN_FORMAT_AVRO_SCHEMA_H

#include "format/avro.h"

TARN_MUST struct tarn_status *tarn_avro__parse_schema(struct tarn_slice text,
                                                      struct tarn_arena *arena,
                                                      const struct tarn_avro_node **out);
/* The record that a file's top type is, or has as its one record in a union; NULL: there is none. */
const struct tarn_avro_node *tarn_avro__record_of(const struct tarn_avro_node *top);

#endif
