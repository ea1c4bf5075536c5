#include "rest/internal.h"

/* Bodies: what clients of all versions send, and what they are answered. */

/* --- in --- */

static struct tarn_status *wrong_kind(const char *key, const char *want)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%s\" is no %s", key, want);
}

struct tarn_status *tarn_rest__parse(struct tarn_slice text, struct tarn_json **out)
{
    if (tarn_trim(text).size == 0) {
        *out = tarn_json_object();
        return TARN_OK;
    }
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    struct tarn_status *s = tarn_json_parse(text, &json);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "the body");
    if (tarn_json_kind(json) != TARN_JSON_OBJECT)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the body is no JSON object");
    *out = tarn_move(json);
    return TARN_OK;
}

/* The member, or NULL. */
static const struct tarn_json *find(const struct tarn_json *object, const char *key)
{
    const struct tarn_json *value = object == NULL || tarn_json_kind(object) != TARN_JSON_OBJECT
                                        ? NULL
                                        : tarn_json_find(object, key);
    return value == NULL || tarn_json_kind(value) == TARN_JSON_NULL ? NULL : value;
}

struct tarn_status *tarn_rest__text(const struct tarn_json *object, const char *key,
                                    struct tarn_slice *out)
{
    const struct tarn_json *value = find(object, key);
    *out = (struct tarn_slice){0};
    if (value == NULL)
        return TARN_OK;
    if (tarn_json_kind(value) != TARN_JSON_STRING)
        return wrong_kind(key, "text");
    *out = tarn_json_text(value);
    return TARN_OK;
}

struct tarn_status *tarn_rest__need_text(const struct tarn_json *object, const char *key,
                                         struct tarn_slice *out)
{
    TARN_TRY(tarn_rest__text(object, key, out));
    return out->data != NULL ? TARN_OK
                             : tarn_status_new(TARN_INVALID_ARGUMENT, "\"%s\" is missing", key);
}

struct tarn_status *tarn_rest__integer(const struct tarn_json *object, const char *key,
                                       int64_t *out)
{
    const struct tarn_json *value = find(object, key);
    *out = TARN_SNAPSHOT_NONE;
    if (value == NULL)
        return TARN_OK;
    if (tarn_json_kind(value) != TARN_JSON_INTEGER)
        return wrong_kind(key, "integer");
    *out = tarn_json_int(value);
    return TARN_OK;
}

struct tarn_status *tarn_rest__bool(const struct tarn_json *object, const char *key, bool otherwise,
                                    bool *out)
{
    const struct tarn_json *value = find(object, key);
    *out = otherwise;
    if (value == NULL)
        return TARN_OK;
    if (tarn_json_kind(value) != TARN_JSON_BOOL)
        return wrong_kind(key, "boolean");
    *out = tarn_json_is_true(value);
    return TARN_OK;
}

static struct tarn_status *of_kind(const struct tarn_json *object, const char *key,
                                   enum tarn_json_kind kind, const char *want,
                                   const struct tarn_json **out)
{
    *out = find(object, key);
    return *out == NULL || tarn_json_kind(*out) == kind ? TARN_OK : wrong_kind(key, want);
}

struct tarn_status *tarn_rest__object(const struct tarn_json *object, const char *key,
                                      const struct tarn_json **out)
{
    return of_kind(object, key, TARN_JSON_OBJECT, "object", out);
}

struct tarn_status *tarn_rest__array(const struct tarn_json *object, const char *key,
                                     const struct tarn_json **out)
{
    return of_kind(object, key, TARN_JSON_ARRAY, "array", out);
}

struct tarn_status *tarn_rest__texts(struct tarn_op *op, const struct tarn_json *object,
                                     const char *key, const struct tarn_slice **out, size_t *count)
{
    const struct tarn_json *array;
    TARN_TRY(tarn_rest__array(object, key, &array));
    *count = array == NULL ? 0 : tarn_json_count(array);
    struct tarn_slice *list = tarn_arena_calloc(op->arena, *count + 1, sizeof *list);
    for (size_t i = 0; i < *count; i++) {
        list[i] = tarn_json_text(tarn_json_at(array, i));
        if (list[i].data == NULL)
            return wrong_kind(key, "list of texts");
    }
    *out = list;
    return TARN_OK;
}

static struct tarn_status *value_text(struct tarn_op *op, const char *key,
                                      const struct tarn_json *value, struct tarn_slice *out)
{
    switch (tarn_json_kind(value)) {
    case TARN_JSON_STRING:
        *out = tarn_json_text(value);
        return TARN_OK;
    case TARN_JSON_INTEGER:
        *out =
            tarn_slice_str(tarn_arena_printf(op->arena, "%lld", (long long)tarn_json_int(value)));
        return TARN_OK;
    case TARN_JSON_BOOL:
        *out = tarn_slice_str(tarn_json_is_true(value) ? "true" : "false");
        return TARN_OK;
    default:
        return wrong_kind(key, "object of texts");
    }
}

struct tarn_status *tarn_rest__pairs(struct tarn_op *op, const struct tarn_json *object,
                                     const char *key, const struct tarn_pair **out, size_t *count)
{
    const struct tarn_json *map, *value;
    TARN_TRY(tarn_rest__object(object, key, &map));
    size_t most = map == NULL ? 0 : tarn_json_count(map);
    struct tarn_pair *list = tarn_arena_calloc(op->arena, most + 1, sizeof *list);
    void *cursor = NULL;
    struct tarn_slice name;
    *count = 0;
    while (*count < most && tarn_json_next(map, &cursor, &name, &value)) {
        if (tarn_json_kind(value) == TARN_JSON_NULL) {
            most--;
            continue;
        }
        list[*count].key = name;
        TARN_TRY(value_text(op, key, value, &list[(*count)++].value));
    }
    *out = list;
    return TARN_OK;
}

struct tarn_status *tarn_rest__page(const struct tarn_rest__call *call, const char *pattern,
                                    const char *listed, struct tarn_page *out)
{
    struct tarn_slice size = tarn_http_query(call->request, "maxResults");
    *out = (struct tarn_page){.token = tarn_http_query(call->request, "pageToken")};
    if (pattern != NULL)
        out->pattern = tarn_http_query(call->request, pattern);
    if (size.size == 0)
        return TARN_OK;
    struct tarn_status *s = tarn_parse_i64(size, &out->size);
    if (s == TARN_OK)
        return TARN_OK;
    tarn_status_free(s);
    return tarn_rest__about(tarn_status_new(TARN_INVALID_ARGUMENT,
                                            "Invalid input for queryParameter maxResults: %.*s",
                                            TARN_SLICE_ARG(size)),
                            listed, (struct tarn_slice){0});
}

/* "table" and "table$branch_dev" are tables; "table$snapshots", "table$branch_dev$snapshots" are the client's to make. */
static struct tarn_status *check_object(struct tarn_slice object)
{
    struct tarn_slice name, branch;
    tarn_catalog_split_branch(object, &name, &branch);
    bool system = (name.size > 0 && memchr(name.data, '$', name.size) != NULL) ||
                  (branch.size > 0 && memchr(branch.data, '$', branch.size) != NULL);
    return !system ? TARN_OK
                   : tarn_status_new(TARN_TABLE_NOT_FOUND,
                                     "there is no table %.*s: system tables are "
                                     "the client's to make",
                                     TARN_SLICE_ARG(object));
}

struct tarn_status *tarn_rest__ref(const struct tarn_rest__call *call, struct tarn_table_ref *out)
{
    *out = (struct tarn_table_ref){.database = tarn_http_argument(call->request, "database"),
                                   .table = tarn_http_argument(call->request, "table")};
    return check_object(out->table);
}

struct tarn_status *tarn_rest__identifier(const struct tarn_json *object, const char *key,
                                          struct tarn_table_ref *out)
{
    const struct tarn_json *identifier;
    *out = (struct tarn_table_ref){0};
    TARN_TRY(tarn_rest__object(object, key, &identifier));
    if (identifier == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%s\" is missing", key);
    TARN_TRY(tarn_rest__need_text(identifier, "database", &out->database));
    return tarn_rest__need_text(identifier, "object", &out->table);
}

/* --- out --- */

void tarn_rest__answer(struct tarn_rest__call *call, const struct tarn_json *json)
{
    tarn_json_print(json, 0, &call->response->body);
}

void tarn_rest__answer_list(struct tarn_rest__call *call, const char *key, struct tarn_json *array,
                            const char *next_token)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    tarn_json_set(json, key, array);
    tarn_json_set(json, "nextPageToken",
                  next_token[0] == '\0' ? tarn_json_null()
                                        : tarn_json_string(tarn_slice_str(next_token)));
    tarn_rest__answer(call, json);
}

struct tarn_json *tarn_rest__from_pairs(const struct tarn_pair *pairs, size_t count)
{
    struct tarn_json *object = tarn_json_object();
    for (size_t i = 0; i < count; i++)
        tarn_json_set_slice(object, pairs[i].key, pairs[i].value);
    return object;
}

struct tarn_json *tarn_rest__from_texts(const struct tarn_slice *texts, size_t count)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(array, tarn_json_string(texts[i]));
    return array;
}

struct tarn_json *tarn_rest__from_infos(const struct tarn_table_info *list, size_t count)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++) {
        struct tarn_json *one = tarn_json_object();
        tarn_json_set(one, "database", tarn_json_string(list[i].database));
        tarn_json_set(one, "object", tarn_json_string(list[i].name));
        tarn_json_add(array, one);
    }
    return array;
}

void tarn_rest__set_audit(struct tarn_json *object, struct tarn_slice owner, int64_t created_ms,
                          int64_t updated_ms)
{
    tarn_json_set(object, "owner", tarn_json_string(owner));
    tarn_json_set_int(object, "createdAt", created_ms);
    tarn_json_set(object, "createdBy", tarn_json_string(owner));
    tarn_json_set_int(object, "updatedAt", updated_ms);
    tarn_json_set(object, "updatedBy", tarn_json_string(owner));
}
