#include "rpc/objects.h"
#include "service/objects.h"

/* Views and functions. */

static struct tarn_status *take_kind(Tarn__V1__ObjectKind kind, enum tarn_object_kind *out)
{
    if (kind != TARN__V1__OBJECT_KIND__VIEW && kind != TARN__V1__OBJECT_KIND__FUNCTION)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "kind is %d: neither VIEW nor FUNCTION",
                               (int)kind);
    *out = kind == TARN__V1__OBJECT_KIND__VIEW ? TARN_OBJECT_VIEW : TARN_OBJECT_FUNCTION;
    return TARN_OK;
}

static struct tarn_status *take_ref(const Tarn__V1__ObjectRef *ref, struct tarn_object_ref *out)
{
    if (ref == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "object is missing");
    out->database = tarn_rpc__slice(ref->database);
    out->name = tarn_rpc__slice(ref->name);
    return take_kind(ref->kind, &out->kind);
}

static void fill_ref(struct tarn_op *op, struct tarn_object_ref ref, Tarn__V1__CatalogObject *out)
{
    out->object = TARN_RPC_NEW(op, Tarn__V1__ObjectRef, object_ref);
    out->object->kind = ref.kind == TARN_OBJECT_VIEW ? TARN__V1__OBJECT_KIND__VIEW
                                                     : TARN__V1__OBJECT_KIND__FUNCTION;
    out->object->database = tarn_rpc__bytes(ref.database);
    out->object->name = tarn_rpc__bytes(ref.name);
}

static void fill(struct tarn_op *op, const struct tarn_catalog_object *object,
                 Tarn__V1__CatalogObject *out)
{
    fill_ref(op, object->ref, out);
    out->uuid = tarn_rpc__text(op, tarn_slice_str(object->uuid));
    out->created_ms = object->created_ms;
    out->updated_ms = object->updated_ms;
    out->body_json = tarn_rpc__bytes(object->body);
}

struct tarn_status *tarn_rpc__create_object(struct tarn_op *op, struct tarn_service *service,
                                            const void *request, void *response)
{
    const Tarn__V1__CreateObjectRequest *q = request;
    struct tarn_object_ref ref;
    struct tarn_catalog_object object;
    TARN_TRY(take_ref(q->object, &ref));
    TARN_TRY(tarn_service_create_object(op, service, ref, tarn_rpc__slice(q->body_json),
                                        q->ignore_if_exists, &object));
    fill(op, &object, response);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__get_object(struct tarn_op *op, struct tarn_service *service,
                                         const void *request, void *response)
{
    const Tarn__V1__GetObjectRequest *q = request;
    struct tarn_object_ref ref;
    struct tarn_catalog_object object;
    TARN_TRY(take_ref(q->object, &ref));
    TARN_TRY(tarn_service_get_object(op, service, ref, &object));
    fill(op, &object, response);
    return TARN_OK;
}

/* Names alone are made into objects without the rest. */
static struct tarn_status *list(struct tarn_op *op, struct tarn_service *service,
                                enum tarn_object_kind kind, const struct tarn_table_query *query,
                                bool whole, struct tarn_catalog_object **out, size_t *count,
                                const char **next)
{
    struct tarn_table_info *named;
    if (whole)
        return tarn_service_list_objects(op, service, kind, query, out, count, next);
    TARN_TRY(tarn_service_find_objects(op, service, kind, query, &named, count, next));
    *out = tarn_arena_calloc(op->arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++)
        (*out)[i].ref = (struct tarn_object_ref){kind, named[i].database, named[i].name};
    return TARN_OK;
}

struct tarn_status *tarn_rpc__list_objects(struct tarn_op *op, struct tarn_service *service,
                                           const void *request, void *response)
{
    const Tarn__V1__ListObjectsRequest *q = request;
    Tarn__V1__ListObjectsResponse *r = response;
    struct tarn_table_query query = {.database = tarn_rpc__slice(q->database),
                                     .page = tarn_rpc__page(q->page)};
    enum tarn_object_kind kind;
    struct tarn_catalog_object *objects;
    size_t count;
    const char *next;
    TARN_TRY(take_kind(q->kind, &kind));
    TARN_TRY(list(op, service, kind, &query, q->whole, &objects, &count, &next));
    r->objects = TARN_RPC_ARRAY(op, count, *r->objects);
    r->n_objects = count;
    r->next_page_token = tarn_rpc__str(next);
    for (size_t i = 0; i < count; i++) {
        r->objects[i] = TARN_RPC_NEW(op, Tarn__V1__CatalogObject, catalog_object);
        fill(op, &objects[i], r->objects[i]);
    }
    return TARN_OK;
}

static struct tarn_status *take_pair(enum tarn_object_change_kind kind,
                                     const Tarn__V1__Option *option, struct tarn_object_change *out)
{
    *out = (struct tarn_object_change){kind, tarn_rpc__slice(option->key),
                                       tarn_rpc__slice(option->value)};
    return TARN_OK;
}

static struct tarn_status *take_change(const Tarn__V1__ObjectChange *c,
                                       struct tarn_object_change *out)
{
    switch (c->change_case) {
    case TARN__V1__OBJECT_CHANGE__CHANGE_SET_OPTION:
        return take_pair(TARN_OBJECT_SET_OPTION, c->set_option, out);
    case TARN__V1__OBJECT_CHANGE__CHANGE_REMOVE_OPTION:
        *out = (struct tarn_object_change){.kind = TARN_OBJECT_REMOVE_OPTION,
                                           .key = tarn_rpc__slice(c->remove_option)};
        return TARN_OK;
    case TARN__V1__OBJECT_CHANGE__CHANGE_SET_COMMENT:
        *out = (struct tarn_object_change){.kind = TARN_OBJECT_COMMENT};
        if (c->set_comment.len > 0)
            out->value = tarn_rpc__slice(c->set_comment);
        return TARN_OK;
    case TARN__V1__OBJECT_CHANGE__CHANGE_ADD_PART:
        return take_pair(TARN_OBJECT_ADD_PART, c->add_part, out);
    case TARN__V1__OBJECT_CHANGE__CHANGE_UPDATE_PART:
        return take_pair(TARN_OBJECT_UPDATE_PART, c->update_part, out);
    case TARN__V1__OBJECT_CHANGE__CHANGE_DROP_PART:
        *out = (struct tarn_object_change){.kind = TARN_OBJECT_DROP_PART,
                                           .key = tarn_rpc__slice(c->drop_part)};
        return TARN_OK;
    default:
        return tarn_status_new(TARN_INVALID_ARGUMENT, "an empty change");
    }
}

struct tarn_status *tarn_rpc__alter_object(struct tarn_op *op, struct tarn_service *service,
                                           const void *request, void *response)
{
    const Tarn__V1__AlterObjectRequest *q = request;
    struct tarn_object_ref ref;
    struct tarn_catalog_object object;
    struct tarn_object_change *changes = TARN_RPC_ARRAY(op, q->n_changes, *changes);
    TARN_TRY(take_ref(q->object, &ref));
    for (size_t i = 0; i < q->n_changes; i++)
        TARN_TRY(take_change(q->changes[i], &changes[i]));
    TARN_TRY(tarn_service_alter_object(op, service, ref, changes, q->n_changes, &object));
    fill(op, &object, response);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__rename_object(struct tarn_op *op, struct tarn_service *service,
                                            const void *request, void *response)
{
    const Tarn__V1__RenameObjectRequest *q = request;
    struct tarn_object_ref ref;
    struct tarn_catalog_object object;
    TARN_TRY(take_ref(q->object, &ref));
    TARN_TRY(tarn_service_rename_object(op, service, ref, tarn_rpc__slice(q->to_database),
                                        tarn_rpc__slice(q->to_name)));
    if (q->to_database.len > 0)
        ref.database = tarn_rpc__slice(q->to_database);
    ref.name = tarn_rpc__slice(q->to_name);
    TARN_TRY(tarn_service_get_object(op, service, ref, &object));
    fill(op, &object, response);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__drop_object(struct tarn_op *op, struct tarn_service *service,
                                          const void *request, void *response TARN_UNUSED)
{
    const Tarn__V1__DropObjectRequest *q = request;
    struct tarn_object_ref ref;
    TARN_TRY(take_ref(q->object, &ref));
    return tarn_service_drop_object(op, service, ref, q->ignore_if_missing);
}
