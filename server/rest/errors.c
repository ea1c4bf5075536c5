#include "rest/internal.h"

/* A status as the protocol's error. Clients read 404 and 409 by the type of what is missing or there. */

#define FACT_TYPE "resourceType"
#define FACT_NAME "resourceName"

static const struct known {
    enum tarn_reason reason;
    const char *type; /* NULL: that of the path */
    int http;
} known[] = {
    {TARN_DATABASE_NOT_FOUND, "DATABASE", 404},
    {TARN_DATABASE_EXISTS, "DATABASE", 409},
    {TARN_DATABASE_NOT_EMPTY, "DATABASE", 400},
    {TARN_TABLE_NOT_FOUND, "TABLE", 404},
    {TARN_TABLE_EXISTS, "TABLE", 409},
    {TARN_TABLE_REPLACED, "TABLE", 404},
    {TARN_VIEW_NOT_FOUND, "VIEW", 404},
    {TARN_VIEW_EXISTS, "VIEW", 409},
    {TARN_DIALECT_NOT_FOUND, "DIALECT", 404},
    {TARN_DIALECT_EXISTS, "DIALECT", 409},
    {TARN_FUNCTION_NOT_FOUND, "FUNCTION", 404},
    {TARN_FUNCTION_EXISTS, "FUNCTION", 409},
    {TARN_DEFINITION_NOT_FOUND, "DEFINITION", 404},
    {TARN_DEFINITION_EXISTS, "DEFINITION", 409},
    {TARN_COLUMN_NOT_FOUND, "COLUMN", 404},
    {TARN_COLUMN_EXISTS, "COLUMN", 409},
    {TARN_SNAPSHOT_NOT_FOUND, "SNAPSHOT", 404},
    {TARN_SNAPSHOT_EXPIRED, "SNAPSHOT", 404},
    {TARN_NO_SNAPSHOT_AT, "SNAPSHOT", 404},
    {TARN_BRANCH_NOT_FOUND, "TABLE", 404}, /* in "t$branch_x" */
    {TARN_BRANCH_EXISTS, "BRANCH", 409},
    {TARN_TAG_NOT_FOUND, "TAG", 404},
    {TARN_TAG_EXISTS, "TAG", 409},
    {TARN_PARTITION_NOT_FOUND, "PARTITION", 404},
    {TARN_PARTITION_EXISTS, "PARTITION", 409},
    {TARN_CONSUMER_NOT_FOUND, NULL, 404},
    {TARN_UNSUPPORTED_FEATURE, NULL, 501},
    {TARN_SCHEMA_CONFLICT, NULL, 503}, /* surely not applied */
    {TARN_SHUTTING_DOWN, NULL, 503},
    {TARN_UNAVAILABLE, NULL, 503}, /* turned away at the door */
    {TARN_BUSY, NULL, 429},        /* not even queued */
};

static const struct known *find_known(enum tarn_reason reason)
{
    for (size_t i = 0; i < TARN_COUNT_OF(known); i++)
        if (known[i].reason == reason)
            return &known[i];
    return NULL;
}

/* Where the name of what an error is about is found: said with it, or in the path. */
static const struct named {
    const char *type, *fact, *argument;
} named[] = {
    {"TABLE", FACT_NAME, "table"},       {"VIEW", FACT_NAME, "view"},
    {"FUNCTION", FACT_NAME, "function"}, {"COLUMN", "column", NULL},
    {"DIALECT", "part", NULL},           {"DEFINITION", "part", NULL},
    {"DATABASE", FACT_NAME, "database"}, /* the last one that is an argument */
};

static bool only_reads(const struct tarn_http_request *request)
{
    return request->method != NULL &&
           (strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0);
}

static bool has_argument(const struct tarn_http_request *request, const char *name)
{
    for (size_t i = 0; i < request->argument_count; i++)
        if (tarn_slice_is(request->arguments[i].key, name))
            return true;
    return false;
}

static const char *type_of_path(const struct tarn_http_request *request)
{
    for (size_t i = 0; i < TARN_COUNT_OF(named); i++)
        if (named[i].argument != NULL && has_argument(request, named[i].argument))
            return named[i].type;
    return NULL;
}

/* What can't be a name names nothing that is there. */
static bool names_nothing(const struct tarn_http_request *request, enum tarn_reason reason)
{
    const char *type = type_of_path(request);
    return reason == TARN_NAME_INVALID && type != NULL &&
           (strcmp(type, "DATABASE") != 0 || strcmp(request->method, "POST") != 0);
}

/* 503 says that nothing was done, and is sent again; 409 that it exists; codes clients have no word for are 500. */
static int http_of(const struct tarn_http_request *request, const struct tarn_status *status)
{
    enum tarn_reason reason = tarn_status_reason(status);
    const struct known *k = find_known(reason);
    if (k != NULL)
        return k->http;
    if (names_nothing(request, reason))
        return 404;
    int http = tarn_status_http(status);
    if (http == 503)
        return only_reads(request) ? 503 : 500;
    if (http == 413)
        return 400;
    return http == 400 || http == 401 || http == 403 || http == 501 ? http : 500;
}

static bool is_ours(const struct tarn_http_request *request)
{
    return tarn_slice_starts_with(request->path, tarn_slice_str("/v1/"));
}

static const char *type_of(const struct tarn_http_request *request,
                           const struct tarn_status *status)
{
    const char *fact = tarn_status_get(status, FACT_TYPE);
    const struct known *k = find_known(tarn_status_reason(status));
    if (fact != NULL)
        return fact;
    return k != NULL && k->type != NULL ? k->type : type_of_path(request);
}

static void set_name(struct tarn_json *json, const struct tarn_http_request *request,
                     const struct tarn_status *status, const char *type)
{
    const char *fact_name = FACT_NAME, *argument = NULL;
    for (size_t i = 0; type != NULL && i < TARN_COUNT_OF(named); i++)
        if (strcmp(type, named[i].type) == 0) {
            fact_name = named[i].fact;
            argument = named[i].argument;
        }
    const char *fact = tarn_status_get(status, fact_name);
    struct tarn_slice name = {0};
    if (fact != NULL)
        name = tarn_slice_str(fact);
    else if (argument != NULL && has_argument(request, argument))
        name = tarn_http_argument(request, argument);
    tarn_json_set(json, "resourceName",
                  name.data == NULL ? tarn_json_null() : tarn_json_string(name));
}

void tarn_rest_print_error(void *self TARN_UNUSED, const struct tarn_http_request *request,
                           const struct tarn_status *status, struct tarn_http_response *response)
{
    if (!is_ours(request)) {
        response->type = "text/plain; charset=utf-8";
        tarn_buf_printf(&response->body, "%s\n", tarn_status_message(status));
        return;
    }
    bool by_the_server = response->status != tarn_status_http(status);
    if (!by_the_server)
        response->status = http_of(request, status);
    else if (response->status == 404 || response->status == 405) /* no such endpoint */
        response->status = 501;
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    const char *type = type_of(request, status);
    tarn_json_set_str(json, "message", tarn_status_message(status));
    tarn_json_set(json, "resourceType",
                  type == NULL ? tarn_json_null() : tarn_json_string(tarn_slice_str(type)));
    set_name(json, request, status, type);
    tarn_json_set_int(json, "code", response->status);
    tarn_json_print(json, 0, &response->body);
}

struct tarn_status *tarn_rest__about(struct tarn_status *s, const char *type,
                                     struct tarn_slice name)
{
    if (s == TARN_OK || tarn_status_get(s, FACT_TYPE) != NULL)
        return s;
    TARN_OWN(tarn_free_drop) char *text = tarn_slice_dup(name);
    tarn_status_set(s, FACT_TYPE, type);
    if (name.data != NULL)
        tarn_status_set(s, FACT_NAME, text);
    return s;
}

struct tarn_status *tarn_rest__refuse(struct tarn_status *s)
{
    return tarn_status_as(s, TARN_INVALID_ARGUMENT);
}
