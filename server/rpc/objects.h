/* objects - methods of CatalogService that have a file of their own: views, functions, adopting. */
#ifndef TARN_RPC_OBJECTS_H
#define TARN_RPC_OBJECTS_H

#include "rpc/internal.h"
#include "tarn/v1/catalog.pb-c.h"

TARN_MUST struct tarn_status *tarn_rpc__create_object(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__get_object(struct tarn_op *op, struct tarn_service *service,
                                                   const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__list_objects(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__alter_object(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__rename_object(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__drop_object(struct tarn_op *op,
                                                    struct tarn_service *service,
                                                    const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__adopt(struct tarn_op *op, struct tarn_rpc *rpc,
                                              struct tarn_call *call);
Tarn__V1__CompactionOwner tarn_rpc__compaction_owner(bool is_compacted);

#endif
