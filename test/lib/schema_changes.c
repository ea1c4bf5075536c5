#include "schema_changes.h"

static const struct {
    const char *action;
    enum tarn_schema_change_kind kind;
    const char *value; /* the member that is `value` */
} actions[] = {
    {"setOption", TARN_CHANGE_SET_OPTION, "value"},
    {"removeOption", TARN_CHANGE_REMOVE_OPTION, "value"},
    {"updateComment", TARN_CHANGE_COMMENT, "comment"},
    {"addColumn", TARN_CHANGE_ADD_COLUMN, "comment"},
    {"renameColumn", TARN_CHANGE_RENAME_COLUMN, "newName"},
    {"dropColumn", TARN_CHANGE_DROP_COLUMN, "value"},
    {"updateColumnType", TARN_CHANGE_COLUMN_TYPE, "value"},
    {"updateColumnNullability", TARN_CHANGE_COLUMN_NULLABILITY, "value"},
    {"updateColumnComment", TARN_CHANGE_COLUMN_COMMENT, "newComment"},
    {"updateColumnDefaultValue", TARN_CHANGE_COLUMN_DEFAULT, "newDefaultValue"},
    {"updateColumnPosition", TARN_CHANGE_COLUMN_POSITION, "value"},
    {"dropPrimaryKey", TARN_CHANGE_DROP_PRIMARY_KEY, "value"},
};

static struct tarn_slice text_of(const struct tarn_json *json, const char *member,
                                 struct tarn_arena *arena)
{
    bool is_object = tarn_json_kind(json) == TARN_JSON_OBJECT;
    const struct tarn_json *value = is_object ? tarn_json_find(json, member) : NULL;
    if (value == NULL || tarn_json_kind(value) != TARN_JSON_STRING)
        return (struct tarn_slice){0};
    struct tarn_slice text = tarn_json_text(value);
    return text.size == 0 ? tarn_slice_of("", 0) : tarn_arena_copy(arena, text);
}

static bool is_set(const struct tarn_json *json, const char *member)
{
    const struct tarn_json *value = tarn_json_find(json, member);
    return value != NULL && tarn_json_kind(value) == TARN_JSON_BOOL && tarn_json_is_true(value);
}

static void read_path(const struct tarn_json *json, struct tarn_arena *arena,
                      struct tarn_schema_change *out)
{
    const struct tarn_json *names = tarn_json_find(json, "fieldNames");
    bool is_list = names != NULL && tarn_json_kind(names) == TARN_JSON_ARRAY;
    size_t n = is_list ? tarn_json_count(names) : 0;
    struct tarn_slice *path = tarn_arena_calloc(arena, n + 1, sizeof *path);
    for (size_t i = 0; i < n; i++)
        path[i] = tarn_arena_copy(arena, tarn_json_text(tarn_json_at(names, i)));
    out->path = path;
    out->path_count = n;
}

static void read_move(const struct tarn_json *move, struct tarn_arena *arena,
                      struct tarn_schema_change *out)
{
    static const char *const words[] = {"", "FIRST", "LAST", "BEFORE", "AFTER"};
    if (move == NULL || tarn_json_kind(move) != TARN_JSON_OBJECT)
        return;
    struct tarn_slice type = text_of(move, "type", arena);
    for (size_t i = 1; i < TARN_COUNT_OF(words); i++)
        if (tarn_slice_is(type, words[i]))
            out->move = (enum tarn_move)i;
    out->reference = text_of(move, "referenceFieldName", arena);
    if (out->path_count == 0) {
        struct tarn_slice *path = tarn_arena_calloc(arena, 1, sizeof *path);
        path[0] = text_of(move, "fieldName", arena);
        out->path = path;
        out->path_count = 1;
    }
}

static struct tarn_status *read_change(const struct tarn_json *json, struct tarn_arena *arena,
                                       struct tarn_schema_change *out)
{
    struct tarn_slice action = text_of(json, "action", arena);
    size_t i = 0;
    while (i < TARN_COUNT_OF(actions) && !tarn_slice_is(action, actions[i].action))
        i++;
    if (i == TARN_COUNT_OF(actions))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%.*s\" is no action of a schema change",
                               TARN_SLICE_ARG(action));
    out->kind = actions[i].kind;
    out->key = text_of(json, "key", arena);
    out->value = text_of(json, actions[i].value, arena);
    out->keep_nullable = is_set(json, "keepNullability");
    out->nullable = is_set(json, "newNullability");
    const struct tarn_json *type = tarn_json_find(json, "dataType");
    if (type == NULL)
        type = tarn_json_find(json, "newDataType");
    if (type != NULL)
        TARN_TRY(tarn_type_from_json(type, arena, &out->type));
    read_path(json, arena, out);
    read_move(tarn_json_find(json, "move"), arena, out);
    return TARN_OK;
}

struct tarn_status *tarn_test_schema_changes(const struct tarn_json *list, struct tarn_arena *arena,
                                             struct tarn_schema_change **out, size_t *count)
{
    bool is_list = list != NULL && tarn_json_kind(list) == TARN_JSON_ARRAY;
    *count = is_list ? tarn_json_count(list) : 0;
    *out = tarn_arena_calloc(arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++)
        TARN_TRY(read_change(tarn_json_at(list, i), arena, &(*out)[i]));
    return TARN_OK;
}
