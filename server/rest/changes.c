#include "rest/internal.h"

/* Changes of a schema, as the protocol words them. */

static struct tarn_status *take_type(struct tarn_op *op, const struct tarn_json *json,
                                     const char *key, const struct tarn_type **out)
{
    const struct tarn_json *type = tarn_json_find(json, key);
    if (type == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%s\" is missing", key);
    struct tarn_status *s = tarn_type_from_json(type, op->arena, out);
    return tarn_status_wrap(tarn_status_as(s, TARN_SCHEMA_INVALID), "\"%s\"", key);
}

static struct tarn_status *take_path(struct tarn_op *op, const struct tarn_json *json,
                                     struct tarn_schema_change *out)
{
    TARN_TRY(tarn_rest__texts(op, json, "fieldNames", &out->path, &out->path_count));
    return out->path_count > 0
               ? TARN_OK
               : tarn_status_new(TARN_INVALID_ARGUMENT, "\"fieldNames\" names no column");
}

/* {"fieldName", "referenceFieldName", "type"}; moves: its fieldName is the column that is meant. */
static struct tarn_status *take_move(struct tarn_op *op, const struct tarn_json *json, bool moves,
                                     struct tarn_schema_change *out)
{
    static const char *const words[] = {"", "FIRST", "LAST", "BEFORE", "AFTER"};
    const struct tarn_json *move;
    struct tarn_slice word;
    TARN_TRY(tarn_rest__object(json, "move", &move));
    if (move == NULL)
        return moves ? tarn_status_new(TARN_INVALID_ARGUMENT, "\"move\" is missing") : TARN_OK;
    TARN_TRY(tarn_rest__need_text(move, "type", &word));
    for (size_t i = 1; i < TARN_COUNT_OF(words); i++)
        if (tarn_slice_is(word, words[i]))
            out->move = (enum tarn_move)i;
    if (out->move == TARN_MOVE_NONE)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a column can't be moved %.*s",
                               TARN_SLICE_ARG(word));
    TARN_TRY(tarn_rest__text(move, "referenceFieldName", &out->reference));
    if (!moves)
        return TARN_OK;
    struct tarn_slice *path = tarn_arena_calloc(op->arena, 1, sizeof *path);
    out->path = path;
    out->path_count = 1;
    return tarn_rest__need_text(move, "fieldName", path);
}

/* --- one function an action --- */

typedef struct tarn_status *(*take_fn)(struct tarn_op *op, const struct tarn_json *json,
                                       struct tarn_schema_change *out);

static struct tarn_status *set_option(struct tarn_op *op TARN_UNUSED, const struct tarn_json *json,
                                      struct tarn_schema_change *out)
{
    TARN_TRY(tarn_rest__need_text(json, "key", &out->key));
    return tarn_rest__need_text(json, "value", &out->value);
}

static struct tarn_status *remove_option(struct tarn_op *op TARN_UNUSED,
                                         const struct tarn_json *json,
                                         struct tarn_schema_change *out)
{
    return tarn_rest__need_text(json, "key", &out->key);
}

static struct tarn_status *update_comment(struct tarn_op *op TARN_UNUSED,
                                          const struct tarn_json *json,
                                          struct tarn_schema_change *out)
{
    return tarn_rest__text(json, "comment", &out->value);
}

static struct tarn_status *add_column(struct tarn_op *op, const struct tarn_json *json,
                                      struct tarn_schema_change *out)
{
    TARN_TRY(take_path(op, json, out));
    TARN_TRY(take_type(op, json, "dataType", &out->type));
    TARN_TRY(tarn_rest__text(json, "comment", &out->value));
    return take_move(op, json, false, out);
}

static struct tarn_status *rename_column(struct tarn_op *op, const struct tarn_json *json,
                                         struct tarn_schema_change *out)
{
    TARN_TRY(take_path(op, json, out));
    return tarn_rest__need_text(json, "newName", &out->value);
}

static struct tarn_status *column_type(struct tarn_op *op, const struct tarn_json *json,
                                       struct tarn_schema_change *out)
{
    TARN_TRY(take_path(op, json, out));
    TARN_TRY(take_type(op, json, "newDataType", &out->type));
    return tarn_rest__bool(json, "keepNullability", false, &out->keep_nullable);
}

static struct tarn_status *column_nullability(struct tarn_op *op, const struct tarn_json *json,
                                              struct tarn_schema_change *out)
{
    TARN_TRY(take_path(op, json, out));
    return tarn_rest__bool(json, "newNullability", true, &out->nullable);
}

static struct tarn_status *column_comment(struct tarn_op *op, const struct tarn_json *json,
                                          struct tarn_schema_change *out)
{
    TARN_TRY(take_path(op, json, out));
    return tarn_rest__text(json, "newComment", &out->value);
}

static struct tarn_status *column_default(struct tarn_op *op, const struct tarn_json *json,
                                          struct tarn_schema_change *out)
{
    TARN_TRY(take_path(op, json, out));
    return tarn_rest__text(json, "newDefaultValue", &out->value);
}

static struct tarn_status *column_position(struct tarn_op *op, const struct tarn_json *json,
                                           struct tarn_schema_change *out)
{
    return take_move(op, json, true, out);
}

static struct tarn_status *nothing_more(struct tarn_op *op TARN_UNUSED,
                                        const struct tarn_json *json TARN_UNUSED,
                                        struct tarn_schema_change *out TARN_UNUSED)
{
    return TARN_OK;
}

static const struct {
    const char *word;
    enum tarn_schema_change_kind kind;
    take_fn take;
} actions[] = {
    {"setOption", TARN_CHANGE_SET_OPTION, set_option},
    {"removeOption", TARN_CHANGE_REMOVE_OPTION, remove_option},
    {"updateComment", TARN_CHANGE_COMMENT, update_comment},
    {"addColumn", TARN_CHANGE_ADD_COLUMN, add_column},
    {"renameColumn", TARN_CHANGE_RENAME_COLUMN, rename_column},
    {"dropColumn", TARN_CHANGE_DROP_COLUMN, take_path},
    {"updateColumnType", TARN_CHANGE_COLUMN_TYPE, column_type},
    {"updateColumnNullability", TARN_CHANGE_COLUMN_NULLABILITY, column_nullability},
    {"updateColumnComment", TARN_CHANGE_COLUMN_COMMENT, column_comment},
    {"updateColumnDefaultValue", TARN_CHANGE_COLUMN_DEFAULT, column_default},
    {"updateColumnPosition", TARN_CHANGE_COLUMN_POSITION, column_position},
    {"dropPrimaryKey", TARN_CHANGE_DROP_PRIMARY_KEY, nothing_more},
};

static struct tarn_status *to_change(struct tarn_op *op, const struct tarn_json *json,
                                     struct tarn_schema_change *out)
{
    struct tarn_slice word;
    TARN_TRY(tarn_rest__need_text(json, "action", &word));
    for (size_t i = 0; i < TARN_COUNT_OF(actions); i++) {
        if (!tarn_slice_is(word, actions[i].word))
            continue;
        out->kind = actions[i].kind;
        struct tarn_status *s = actions[i].take(op, json, out);
        return s == TARN_OK ? s : tarn_status_wrap(s, "%s", actions[i].word);
    }
    return tarn_status_new(TARN_INVALID_ARGUMENT, "there is no schema change %.*s",
                           TARN_SLICE_ARG(word));
}

struct tarn_status *tarn_rest__to_changes(struct tarn_op *op, const struct tarn_json *body,
                                          struct tarn_schema_change **out, size_t *count)
{
    const struct tarn_json *array;
    TARN_TRY(tarn_rest__array(body, "changes", &array));
    *count = array == NULL ? 0 : tarn_json_count(array);
    *out = tarn_arena_calloc(op->arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++)
        TARN_TRY(to_change(op, tarn_json_at(array, i), &(*out)[i]));
    return TARN_OK;
}
