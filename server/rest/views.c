#include "rest/internal.h"

/* /views and /databases/{database}/views */

/* {"id", "name", "schema": the body} */
static struct tarn_json *print_view(const struct tarn_catalog_object *view, struct tarn_json *body)
{
    struct tarn_json *json = tarn_json_object();
    tarn_rest__need_map(body, "dialects");
    tarn_json_set_str(json, "id", view->uuid);
    tarn_json_set(json, "schema", body);
    return json;
}

static const struct tarn_rest__kind views = {
    .kind = TARN_OBJECT_VIEW,
    .type = "VIEW",
    .argument = "view",
    .names = "views",
    .details = "viewDetails",
    .pattern = "viewNamePattern",
    .print = print_view,
};

static struct tarn_status *list_views(struct tarn_rest__call *call)
{
    return tarn_rest__list_objects(call, &views);
}

static struct tarn_status *list_details(struct tarn_rest__call *call)
{
    return tarn_rest__list_object_details(call, &views);
}

static struct tarn_status *list_all_views(struct tarn_rest__call *call)
{
    return tarn_rest__list_all_objects(call, &views);
}

static struct tarn_status *create_view(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    const struct tarn_json *schema;
    TARN_TRY(tarn_rest__identifier(call->body, "identifier", &ref));
    TARN_TRY(tarn_rest__object(call->body, "schema", &schema));
    if (schema == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"schema\" is missing");
    return tarn_rest__create_object(call, &views, ref.table, schema);
}

static struct tarn_status *get_view(struct tarn_rest__call *call)
{
    return tarn_rest__get_object(call, &views);
}

static struct tarn_status *alter_view(struct tarn_rest__call *call)
{
    return tarn_rest__alter_object(call, &views);
}

static struct tarn_status *rename_view(struct tarn_rest__call *call)
{
    struct tarn_table_ref from, to;
    TARN_TRY(tarn_rest__identifier(call->body, "source", &from));
    TARN_TRY(tarn_rest__identifier(call->body, "destination", &to));
    struct tarn_object_ref ref = {TARN_OBJECT_VIEW, from.database, from.table};
    struct tarn_status *s =
        tarn_service_rename_object(call->op, call->service, ref, to.database, to.table);
    switch (tarn_status_reason(s)) {
    case TARN_DATABASE_NOT_FOUND:
        return s;
    case TARN_VIEW_NOT_FOUND:
        return tarn_rest__about(s, "VIEW", from.table);
    case TARN_TABLE_EXISTS:
        return tarn_rest__about(s, "TABLE", to.table);
    default:
        return tarn_rest__about(s, "VIEW", to.table);
    }
}

static struct tarn_status *drop_view(struct tarn_rest__call *call)
{
    return tarn_rest__drop_object(call, &views);
}

#define DATABASE "/databases/{database}"
#define VIEW DATABASE "/views/{view}"
const struct tarn_rest__endpoint tarn_rest__view_endpoints[] = {
    {"GET", DATABASE "/views", list_views},
    {"GET", DATABASE "/view-details", list_details},
    {"GET", "/views", list_all_views},
    {"POST", DATABASE "/views", create_view},
    {"GET", VIEW, get_view},
    {"POST", VIEW, alter_view},
    {"DELETE", VIEW, drop_view},
    {"POST", "/views/rename", rename_view},
    TARN_REST_END,
};
