/* data - what DataService and WorkerService share: the description of a table for a worker. */
#ifndef TARN_RPC_DATA_H
#define TARN_RPC_DATA_H

#include "rpc/internal.h"
#include "tarn/v1/data.pb-c.h"

Tarn__V1__TableDescription *tarn_rpc__description(struct tarn_op *op,
                                                  const struct tarn_table_description *description);

#endif
