#include "rest/internal.h"

/*
 * What the protocol has and Tarn doesn't yet. Where clients ask first whether a thing is there (Flink looks for a view where it
 * finds no table), the truth is that there is none; what would make or change one is 501.
 */

static struct tarn_status *not_yet(struct tarn_rest__call *call)
{
    return tarn_status_new(TARN_UNIMPLEMENTED, "%s %.*s is not implemented", call->request->method,
                           TARN_SLICE_ARG(call->request->path));
}

static struct tarn_status *check_database(struct tarn_rest__call *call)
{
    struct tarn_database_info info;
    return tarn_service_get_database(call->op, call->service,
                                     tarn_http_argument(call->request, "database"), &info);
}

static struct tarn_status *answer_none(struct tarn_rest__call *call, const char *key)
{
    tarn_rest__answer_list(call, key, tarn_json_array(), "");
    return TARN_OK;
}

static struct tarn_status *list_views(struct tarn_rest__call *call)
{
    TARN_TRY(check_database(call));
    return answer_none(call, "views");
}

static struct tarn_status *list_view_details(struct tarn_rest__call *call)
{
    TARN_TRY(check_database(call));
    return answer_none(call, "viewDetails");
}

static struct tarn_status *list_all_views(struct tarn_rest__call *call)
{
    return answer_none(call, "views");
}

static struct tarn_status *list_functions(struct tarn_rest__call *call)
{
    TARN_TRY(check_database(call));
    return answer_none(call, "functions");
}

static struct tarn_status *list_function_details(struct tarn_rest__call *call)
{
    TARN_TRY(check_database(call));
    return answer_none(call, "functionDetails");
}

static struct tarn_status *list_all_functions(struct tarn_rest__call *call)
{
    return answer_none(call, "functions");
}

/* TABLE_NOT_FOUND is what there is to say "no such name here"; its type says of what kind. */
static struct tarn_status *no_such(struct tarn_rest__call *call, const char *type, const char *what)
{
    struct tarn_slice name = tarn_http_argument(call->request, what);
    return tarn_rest__about(
        tarn_status_new(TARN_TABLE_NOT_FOUND, "there is no %s %.*s.%.*s", what,
                        TARN_SLICE_ARG(tarn_http_argument(call->request, "database")),
                        TARN_SLICE_ARG(name)),
        type, name);
}

static struct tarn_status *no_such_view(struct tarn_rest__call *call)
{
    return no_such(call, "VIEW", "view");
}

static struct tarn_status *no_such_function(struct tarn_rest__call *call)
{
    return no_such(call, "FUNCTION", "function");
}

#define DATABASE "/databases/{database}"
#define TABLE DATABASE "/tables/{table}"
#define VIEW DATABASE "/views/{view}"
#define FUNCTION DATABASE "/functions/{function}"
const struct tarn_rest__endpoint tarn_rest__absent_endpoints[] = {
    {"POST", TABLE "/replace", not_yet},
    {"POST", DATABASE "/register", not_yet},
    {"POST", TABLE "/rollback-schema", not_yet},
    {"GET", TABLE "/token", not_yet},
    {"POST", TABLE "/partitions", not_yet},
    {"POST", TABLE "/partitions/mark", not_yet},
    {"POST", TABLE "/partitions/drop", not_yet},
    {"GET", "/permissions", not_yet},
    {"POST", "/permissions/grant", not_yet},
    {"POST", "/permissions/revoke", not_yet},
    {"GET", DATABASE "/views", list_views},
    {"GET", DATABASE "/view-details", list_view_details},
    {"GET", "/views", list_all_views},
    {"POST", DATABASE "/views", not_yet},
    {"GET", VIEW, no_such_view},
    {"DELETE", VIEW, no_such_view},
    {"POST", VIEW, no_such_view},
    {"POST", "/views/rename", not_yet},
    {"GET", DATABASE "/functions", list_functions},
    {"GET", DATABASE "/function-details", list_function_details},
    {"GET", "/functions", list_all_functions},
    {"POST", DATABASE "/functions", not_yet},
    {"GET", FUNCTION, no_such_function},
    {"DELETE", FUNCTION, no_such_function},
    {"POST", FUNCTION, no_such_function},
    TARN_REST_END,
};
