#include "rest/internal.h"

/* What the protocol says of views and functions alike: lists, and one of them. Its body passes through as the client words it. */

/* --- looking --- */

static struct tarn_status *make_query(const struct tarn_rest__call *call,
                                      const struct tarn_rest__kind *kind,
                                      struct tarn_table_query *out)
{
    *out = (struct tarn_table_query){.database = tarn_http_argument(call->request, "database")};
    return tarn_rest__page(call, kind->pattern, kind->type, &out->page);
}

struct tarn_status *tarn_rest__list_objects(struct tarn_rest__call *call,
                                            const struct tarn_rest__kind *kind)
{
    struct tarn_table_query query;
    struct tarn_table_info *list;
    size_t count;
    const char *next;
    TARN_TRY(make_query(call, kind, &query));
    TARN_TRY(tarn_service_find_objects(call->op, call->service, kind->kind, &query, &list, &count,
                                       &next));
    struct tarn_json *names = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(names, tarn_json_string(list[i].name));
    tarn_rest__answer_list(call, kind->names, names, next);
    return TARN_OK;
}

struct tarn_status *tarn_rest__list_all_objects(struct tarn_rest__call *call,
                                                const struct tarn_rest__kind *kind)
{
    struct tarn_table_query query = {.database_pattern =
                                         tarn_http_query(call->request, "databaseNamePattern")};
    struct tarn_table_info *list;
    size_t count;
    const char *next;
    TARN_TRY(tarn_rest__page(call, kind->pattern, kind->type, &query.page));
    TARN_TRY(tarn_service_find_objects(call->op, call->service, kind->kind, &query, &list, &count,
                                       &next));
    tarn_rest__answer_list(call, kind->names, tarn_rest__from_infos(list, count), next);
    return TARN_OK;
}

void tarn_rest__need_map(struct tarn_json *object, const char *key)
{
    const struct tarn_json *map = tarn_json_find(object, key);
    if (map == NULL || tarn_json_kind(map) == TARN_JSON_NULL)
        tarn_json_set(object, key, tarn_json_object());
}

static struct tarn_status *print(const struct tarn_rest__kind *kind,
                                 const struct tarn_catalog_object *object, struct tarn_json **out)
{
    struct tarn_json *body;
    TARN_TRY(tarn_json_parse(object->body, &body));
    tarn_rest__need_map(body, "options");
    *out = kind->print(object, body);
    tarn_json_set(*out, "name", tarn_json_string(object->ref.name));
    tarn_rest__set_audit(*out, tarn_slice_str("tarn"), object->created_ms, object->updated_ms);
    return TARN_OK;
}

struct tarn_status *tarn_rest__list_object_details(struct tarn_rest__call *call,
                                                   const struct tarn_rest__kind *kind)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *details = tarn_json_array();
    struct tarn_table_query query;
    struct tarn_catalog_object *list;
    size_t count;
    const char *next;
    TARN_TRY(make_query(call, kind, &query));
    TARN_TRY(tarn_service_list_objects(call->op, call->service, kind->kind, &query, &list, &count,
                                       &next));
    for (size_t i = 0; i < count; i++) {
        struct tarn_json *one;
        TARN_TRY(print(kind, &list[i], &one));
        tarn_json_add(details, one);
    }
    tarn_rest__answer_list(call, kind->details, tarn_move(details), next);
    return TARN_OK;
}

static struct tarn_object_ref ref_of(const struct tarn_rest__call *call,
                                     const struct tarn_rest__kind *kind)
{
    return (struct tarn_object_ref){kind->kind, tarn_http_argument(call->request, "database"),
                                    tarn_http_argument(call->request, kind->argument)};
}

struct tarn_status *tarn_rest__get_object(struct tarn_rest__call *call,
                                          const struct tarn_rest__kind *kind)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    struct tarn_catalog_object object;
    TARN_TRY(tarn_service_get_object(call->op, call->service, ref_of(call, kind), &object));
    TARN_TRY(print(kind, &object, &json));
    tarn_rest__answer(call, json);
    return TARN_OK;
}

/* --- changing --- */

struct tarn_status *tarn_rest__create_object(struct tarn_rest__call *call,
                                             const struct tarn_rest__kind *kind,
                                             struct tarn_slice name, const struct tarn_json *body)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_catalog_object made;
    struct tarn_object_ref ref = {kind->kind, tarn_http_argument(call->request, "database"), name};
    tarn_json_print(body, 0, &text);
    struct tarn_status *s = tarn_service_create_object(call->op, call->service, ref,
                                                       tarn_buf_slice(&text), false, &made);
    switch (tarn_status_reason(s)) {
    case TARN_DATABASE_NOT_FOUND:
        return s;
    case TARN_TABLE_EXISTS:
        return tarn_rest__about(s, "TABLE", name);
    default:
        return tarn_rest__about(s, kind->type, name);
    }
}

/* A definition is an object, a dialect's query is text. */
static struct tarn_status *take_part(struct tarn_op *op, const struct tarn_json *json, bool is_view,
                                     struct tarn_object_change *out)
{
    const struct tarn_json *definition;
    TARN_TRY(tarn_rest__need_text(json, is_view ? "dialect" : "name", &out->key));
    if (out->kind == TARN_OBJECT_DROP_PART)
        return TARN_OK;
    if (is_view)
        return tarn_rest__need_text(json, "query", &out->value);
    TARN_TRY(tarn_rest__object(json, "definition", &definition));
    if (definition == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"definition\" is missing");
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_print(definition, 0, &text);
    out->value = tarn_arena_copy(op->arena, tarn_buf_slice(&text));
    return TARN_OK;
}

static struct tarn_status *take_change(struct tarn_op *op, const struct tarn_json *json,
                                       bool is_view, struct tarn_object_change *out)
{
    switch (out->kind) {
    case TARN_OBJECT_SET_OPTION:
        TARN_TRY(tarn_rest__need_text(json, "key", &out->key));
        return tarn_rest__need_text(json, "value", &out->value);
    case TARN_OBJECT_REMOVE_OPTION:
        return tarn_rest__need_text(json, "key", &out->key);
    case TARN_OBJECT_COMMENT:
        return tarn_rest__text(json, "comment", &out->value);
    default:
        return take_part(op, json, is_view, out);
    }
}

static const struct {
    const char *word;
    enum tarn_object_change_kind kind;
    int of; /* an enum tarn_object_kind, or -1: both */
} actions[] = {
    {"setOption", TARN_OBJECT_SET_OPTION, -1},
    {"removeOption", TARN_OBJECT_REMOVE_OPTION, -1},
    {"updateComment", TARN_OBJECT_COMMENT, -1},
    {"addDialect", TARN_OBJECT_ADD_PART, TARN_OBJECT_VIEW},
    {"updateDialect", TARN_OBJECT_UPDATE_PART, TARN_OBJECT_VIEW},
    {"dropDialect", TARN_OBJECT_DROP_PART, TARN_OBJECT_VIEW},
    {"addDefinition", TARN_OBJECT_ADD_PART, TARN_OBJECT_FUNCTION},
    {"updateDefinition", TARN_OBJECT_UPDATE_PART, TARN_OBJECT_FUNCTION},
    {"dropDefinition", TARN_OBJECT_DROP_PART, TARN_OBJECT_FUNCTION},
};

static struct tarn_status *to_change(struct tarn_op *op, const struct tarn_json *json,
                                     const struct tarn_rest__kind *kind,
                                     struct tarn_object_change *out)
{
    struct tarn_slice word;
    TARN_TRY(tarn_rest__need_text(json, "action", &word));
    for (size_t i = 0; i < TARN_COUNT_OF(actions); i++) {
        if (!tarn_slice_is(word, actions[i].word) ||
            (actions[i].of >= 0 && actions[i].of != (int)kind->kind))
            continue;
        out->kind = actions[i].kind;
        return tarn_status_wrap(take_change(op, json, kind->kind == TARN_OBJECT_VIEW, out), "%s",
                                actions[i].word);
    }
    return tarn_status_new(TARN_INVALID_ARGUMENT, "there is no change %.*s of a %s",
                           TARN_SLICE_ARG(word), kind->argument);
}

struct tarn_status *tarn_rest__alter_object(struct tarn_rest__call *call,
                                            const struct tarn_rest__kind *kind)
{
    const struct tarn_json *array;
    struct tarn_catalog_object altered;
    TARN_TRY(tarn_rest__array(call->body, "changes", &array));
    size_t count = array == NULL ? 0 : tarn_json_count(array);
    struct tarn_object_change *changes =
        tarn_arena_calloc(call->op->arena, count + 1, sizeof *changes);
    for (size_t i = 0; i < count; i++)
        TARN_TRY(to_change(call->op, tarn_json_at(array, i), kind, &changes[i]));
    return tarn_service_alter_object(call->op, call->service, ref_of(call, kind), changes, count,
                                     &altered);
}

struct tarn_status *tarn_rest__drop_object(struct tarn_rest__call *call,
                                           const struct tarn_rest__kind *kind)
{
    return tarn_service_drop_object(call->op, call->service, ref_of(call, kind), false);
}
