#include "service/internal.h"
#include "service/objects.h"

/* Who may do something to a table of the name may do it to a view or function. */
static struct tarn_status *check(struct tarn_op *op, struct tarn_service *service,
                                 enum tarn_action action, struct tarn_slice database,
                                 struct tarn_slice name)
{
    TARN_TRY(tarn_service__check_name("database name", database));
    TARN_TRY(tarn_service__check_name("name", name));
    return tarn_access_check(service->access, op, action, tarn_arena_str(op->arena, database),
                             tarn_arena_str(op->arena, name));
}

struct tarn_status *tarn_service_create_object(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_object_ref ref, struct tarn_slice body,
                                               bool ignore_if_exists,
                                               struct tarn_catalog_object *out)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_CREATE, ref.database));
    struct tarn_status *s = tarn_catalog_create_object(op, service->catalog, ref, body, out);
    enum tarn_reason reason = tarn_status_reason(s);
    if (!ignore_if_exists || (reason != TARN_VIEW_EXISTS && reason != TARN_FUNCTION_EXISTS))
        return s;
    tarn_status_free(s);
    return tarn_catalog_object(op, service->catalog, ref, out);
}

struct tarn_status *tarn_service_get_object(struct tarn_op *op, struct tarn_service *service,
                                            struct tarn_object_ref ref,
                                            struct tarn_catalog_object *out)
{
    TARN_TRY(check(op, service, TARN_ACTION_READ, ref.database, ref.name));
    return tarn_catalog_object(op, service->catalog, ref, out);
}

struct tarn_status *tarn_service_alter_object(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_object_ref ref,
                                              const struct tarn_object_change *changes,
                                              size_t count, struct tarn_catalog_object *out)
{
    TARN_TRY(check(op, service, TARN_ACTION_ALTER, ref.database, ref.name));
    return tarn_catalog_alter_object(op, service->catalog, ref, changes, count, out);
}

struct tarn_status *tarn_service_rename_object(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_object_ref ref,
                                               struct tarn_slice to_database,
                                               struct tarn_slice to_name)
{
    TARN_TRY(check(op, service, TARN_ACTION_ALTER, ref.database, ref.name));
    if (to_database.size == 0)
        to_database = ref.database;
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_CREATE, to_database));
    return tarn_catalog_rename_object(op, service->catalog, ref, to_database, to_name);
}

struct tarn_status *tarn_service_drop_object(struct tarn_op *op, struct tarn_service *service,
                                             struct tarn_object_ref ref, bool ignore_if_missing)
{
    TARN_TRY(check(op, service, TARN_ACTION_DROP, ref.database, ref.name));
    struct tarn_status *s = tarn_catalog_drop_object(op, service->catalog, ref);
    enum tarn_reason reason = tarn_status_reason(s);
    if (ignore_if_missing && (reason == TARN_VIEW_NOT_FOUND || reason == TARN_FUNCTION_NOT_FOUND ||
                              reason == TARN_DATABASE_NOT_FOUND)) {
        tarn_status_free(s);
        return TARN_OK;
    }
    return s;
}
