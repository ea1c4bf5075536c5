#include "rest/internal.h"

/* /databases */

/* Nobody is asked yet who a database or table belongs to, unless its option says so. */
static struct tarn_slice owner_of(const struct tarn_database_info *info)
{
    for (size_t i = 0; i < info->option_count; i++)
        if (tarn_slice_is(info->options[i].key, "owner"))
            return info->options[i].value;
    return tarn_slice_str("tarn");
}

static struct tarn_status *list_databases(struct tarn_rest__call *call)
{
    struct tarn_page page;
    struct tarn_database_info *list;
    size_t count;
    const char *next;
    TARN_TRY(tarn_rest__page(call, "databaseNamePattern", "DATABASE", &page));
    TARN_TRY(
        tarn_service_list_databases(call->op, call->service, page, true, &list, &count, &next));
    struct tarn_json *names = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(names, tarn_json_string(list[i].name));
    tarn_rest__answer_list(call, "databases", names, next);
    return TARN_OK;
}

static struct tarn_status *create_database(struct tarn_rest__call *call)
{
    struct tarn_database_info out, info = {0};
    TARN_TRY(tarn_rest__need_text(call->body, "name", &info.name));
    TARN_TRY(tarn_rest__pairs(call->op, call->body, "options", &info.options, &info.option_count));
    return tarn_rest__about(
        tarn_service_create_database(call->op, call->service, &info, false, &out), "DATABASE",
        info.name);
}

static struct tarn_status *get_database(struct tarn_rest__call *call)
{
    struct tarn_database_info info;
    TARN_TRY(tarn_service_get_database(call->op, call->service,
                                       tarn_http_argument(call->request, "database"), &info));
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    tarn_json_set_str(json, "id", info.uuid);
    tarn_json_set(json, "name", tarn_json_string(info.name));
    tarn_json_set_str(json, "location", info.uri);
    tarn_json_set(json, "options", tarn_rest__from_pairs(info.options, info.option_count));
    tarn_rest__set_audit(json, owner_of(&info), info.created_ms, info.updated_ms);
    tarn_rest__answer(call, json);
    return TARN_OK;
}

static bool has(const struct tarn_database_info *info, struct tarn_slice key)
{
    for (size_t i = 0; i < info->option_count; i++)
        if (tarn_slice_equal(info->options[i].key, key))
            return true;
    return false;
}

static struct tarn_status *alter_database(struct tarn_rest__call *call)
{
    struct tarn_database_info before, after;
    const struct tarn_slice *remove;
    const struct tarn_pair *set;
    size_t remove_count, set_count;
    struct tarn_slice name = tarn_http_argument(call->request, "database");
    TARN_TRY(tarn_rest__texts(call->op, call->body, "removals", &remove, &remove_count));
    TARN_TRY(tarn_rest__pairs(call->op, call->body, "updates", &set, &set_count));
    TARN_TRY(tarn_service_get_database(call->op, call->service, name, &before));
    TARN_TRY(tarn_service_alter_database(call->op, call->service, name, set, set_count, remove,
                                         remove_count, &after));
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    struct tarn_json *removed = tarn_json_array(), *updated = tarn_json_array(),
                     *missing = tarn_json_array();
    for (size_t i = 0; i < remove_count; i++)
        tarn_json_add(has(&before, remove[i]) ? removed : missing, tarn_json_string(remove[i]));
    for (size_t i = 0; i < set_count; i++)
        tarn_json_add(updated, tarn_json_string(set[i].key));
    tarn_json_set(json, "removed", removed);
    tarn_json_set(json, "updated", updated);
    tarn_json_set(json, "missing", missing);
    tarn_rest__answer(call, json);
    return TARN_OK;
}

static struct tarn_status *drop_database(struct tarn_rest__call *call)
{
    int64_t dropped;
    return tarn_service_drop_database(call->op, call->service,
                                      tarn_http_argument(call->request, "database"), true, false,
                                      &dropped);
}

#define DATABASE "/databases/{database}"
const struct tarn_rest__endpoint tarn_rest__database_endpoints[] = {
    {"GET", "/databases", list_databases}, {"POST", "/databases", create_database},
    {"GET", DATABASE, get_database},       {"POST", DATABASE, alter_database},
    {"DELETE", DATABASE, drop_database},   TARN_REST_END,
};
