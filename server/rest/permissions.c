#include "rest/internal.h"

/*
 * Permissions, as the protocol lists them: who may do what to one resource, said of that resource. Today every principal may do everything
 * (access.h), which is access ALL to the warehouse and to all in it; nothing is said of a database, table, view or function by itself. Who is a
 * principal is decided by the token file, so there is nothing to grant or revoke here.
 */

static const char *const whole[] = {"CATALOG", "CATALOG_ALL"};
static const char *const parts[] = {"DATABASE", "DATABASE_ALL", "TABLE",
                                    "COLUMN",   "VIEW",         "FUNCTION"};

static const char *find_word(const char *const *words, size_t count, struct tarn_slice word)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_is(word, words[i]))
            return words[i];
    return NULL;
}

static struct tarn_json *assignment(const char *type, struct tarn_slice principal)
{
    struct tarn_json *json = tarn_json_object(), *resource = tarn_json_object();
    tarn_json_set_str(resource, "type", type);
    tarn_json_set(json, "resource", resource);
    tarn_json_set_str(json, "access", "ALL");
    tarn_json_set(json, "principal", tarn_json_string(principal));
    return json;
}

static struct tarn_status *list_permissions(struct tarn_rest__call *call)
{
    struct tarn_page page;
    const struct tarn_slice *list;
    size_t count;
    const char *next;
    struct tarn_slice asked = tarn_http_query(call->request, "resourceType"),
                      access = tarn_http_query(call->request, "access");
    const char *type = find_word(whole, TARN_COUNT_OF(whole), asked);
    TARN_TRY(tarn_rest__page(call, "principal", NULL, &page));
    if (type == NULL && find_word(parts, TARN_COUNT_OF(parts), asked) == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "resourceType is \"%.*s\"; want CATALOG, CATALOG_ALL, DATABASE, "
                               "DATABASE_ALL, TABLE, COLUMN, VIEW or FUNCTION",
                               TARN_SLICE_ARG(asked));
    TARN_TRY(tarn_service_list_principals(call->op, call->service, page, &list, &count, &next));
    bool said = type != NULL && (access.size == 0 || tarn_slice_is(access, "ALL"));
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; said && i < count; i++)
        tarn_json_add(array, assignment(type, list[i]));
    tarn_rest__answer_list(call, "permissions", array, said ? next : "");
    return TARN_OK;
}

static struct tarn_status *refuse(struct tarn_rest__call *call TARN_UNUSED)
{
    return tarn_status_new(TARN_UNIMPLEMENTED,
                           "permissions can't be granted or revoked one by one yet: every "
                           "principal of [auth] token_file may do everything, and nobody else "
                           "anything; change that file");
}

const struct tarn_rest__endpoint tarn_rest__permission_endpoints[] = {
    {"GET", "/permissions", list_permissions},
    {"POST", "/permissions/grant", refuse},
    {"POST", "/permissions/revoke", refuse},
    TARN_REST_END,
};
