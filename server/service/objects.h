/* objects - views and functions: what every door asks for. As service.h; rules and errors: catalog/objects.h. */
#ifndef TARN_SERVICE_OBJECTS_H
#define TARN_SERVICE_OBJECTS_H

#include "catalog/objects.h"
#include "service/service.h"

/* A page of whole objects ends behind the one with which it has so many bytes. */
#define TARN_OBJECT_PAGE_BYTES (2 << 20)

TARN_MUST struct tarn_status *tarn_service_create_object(
    struct tarn_op *op, struct tarn_service *service, struct tarn_object_ref ref,
    struct tarn_slice body, bool ignore_if_exists, struct tarn_catalog_object *out);
TARN_MUST struct tarn_status *tarn_service_get_object(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      struct tarn_object_ref ref,
                                                      struct tarn_catalog_object *out);
/* Names and tokens as of tarn_service_find_tables; query->type is not looked at. */
TARN_MUST struct tarn_status *tarn_service_find_objects(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        enum tarn_object_kind kind,
                                                        const struct tarn_table_query *query,
                                                        struct tarn_table_info **out, size_t *count,
                                                        const char **next_token /* "": no more */);
/* Whole; one that can't be read is left out. */
TARN_MUST struct tarn_status *tarn_service_list_objects(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        enum tarn_object_kind kind,
                                                        const struct tarn_table_query *query,
                                                        struct tarn_catalog_object **out,
                                                        size_t *count, const char **next_token);
TARN_MUST struct tarn_status *tarn_service_alter_object(
    struct tarn_op *op, struct tarn_service *service, struct tarn_object_ref ref,
    const struct tarn_object_change *changes, size_t count, struct tarn_catalog_object *out);
/* to_database empty: the same. */
TARN_MUST struct tarn_status *tarn_service_rename_object(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_object_ref ref,
                                                         struct tarn_slice to_database,
                                                         struct tarn_slice to_name);
TARN_MUST struct tarn_status *tarn_service_drop_object(struct tarn_op *op,
                                                       struct tarn_service *service,
                                                       struct tarn_object_ref ref,
                                                       bool ignore_if_missing);

#endif
