#include "rpc/alter.h"

/* Changes of a schema, from the wire to format/evolve.h. */

#define CHANGES_OF_ONE_MAX 4 /* type, nullability, comment, default of one AlterColumn */

struct list {
    struct tarn_op *op;
    struct tarn_schema_change *items;
    size_t count;
};

static struct tarn_schema_change *add(struct list *list, enum tarn_schema_change_kind kind)
{
    struct tarn_schema_change *change = &list->items[list->count++];
    change->kind = kind;
    return change;
}

/* The names that lead to a column, and its own behind them. */
static struct tarn_schema_change *add_for(struct list *list, enum tarn_schema_change_kind kind,
                                          const ProtobufCBinaryData *parent, size_t count,
                                          ProtobufCBinaryData name)
{
    struct tarn_schema_change *change = add(list, kind);
    struct tarn_slice *path = tarn_rpc__slices(list->op, parent, count); /* has room for one more */
    path[count] = tarn_rpc__slice(name);
    change->path = path;
    change->path_count = count + 1;
    return change;
}

/* Set is never absent, if to nothing. */
static struct tarn_slice set_to(ProtobufCBinaryData bytes)
{
    return bytes.len == 0 ? tarn_slice_of("", 0) : tarn_rpc__slice(bytes);
}

static struct tarn_status *read_type(struct tarn_op *op, const char *text,
                                     struct tarn_schema_change *change)
{
    return tarn_status_wrap(tarn_type_parse(tarn_slice_str(text), op->arena, &change->type),
                            "type of column %.*s",
                            TARN_SLICE_ARG(change->path[change->path_count - 1]));
}

static struct tarn_status *read_move(struct tarn_schema_change *change, bool first, bool last,
                                     ProtobufCBinaryData before, ProtobufCBinaryData after)
{
    if (first + last + (before.len > 0) + (after.len > 0) > 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "column %.*s: only one of first, last, before and after",
                               TARN_SLICE_ARG(change->path[change->path_count - 1]));
    if (first)
        change->move = TARN_MOVE_FIRST;
    if (last)
        change->move = TARN_MOVE_LAST;
    if (before.len > 0)
        change->move = TARN_MOVE_BEFORE;
    if (after.len > 0)
        change->move = TARN_MOVE_AFTER;
    change->reference = tarn_rpc__slice(before.len > 0 ? before : after);
    return TARN_OK;
}

static struct tarn_status *add_column(struct list *list, const Tarn__V1__AddColumn *from)
{
    if (from->field == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "add_column has no field");
    struct tarn_field field = tarn_rpc__field(from->field);
    struct tarn_schema_change *change =
        add_for(list, TARN_CHANGE_ADD_COLUMN, from->parent, from->n_parent, from->field->name);
    change->value = field.description;
    TARN_TRY(read_type(list->op, from->field->type, change));
    TARN_TRY(read_move(change, from->first, from->last, from->before, from->after));
    if (field.default_value.data != NULL)
        add_for(list, TARN_CHANGE_COLUMN_DEFAULT, from->parent, from->n_parent, from->field->name)
            ->value = field.default_value;
    return TARN_OK;
}

static struct tarn_status *alter_column(struct list *list, const Tarn__V1__AlterColumn *from)
{
    if (from->type[0] != '\0') {
        struct tarn_schema_change *change =
            add_for(list, TARN_CHANGE_COLUMN_TYPE, from->parent, from->n_parent, from->name);
        TARN_TRY(read_type(list->op, from->type, change));
        change->keep_nullable = change->type->nullable;
    }
    if (from->_nullable_case == TARN__V1__ALTER_COLUMN___NULLABLE_NULLABLE)
        add_for(list, TARN_CHANGE_COLUMN_NULLABILITY, from->parent, from->n_parent, from->name)
            ->nullable = from->nullable;
    if (from->_description_case == TARN__V1__ALTER_COLUMN___DESCRIPTION_DESCRIPTION)
        add_for(list, TARN_CHANGE_COLUMN_COMMENT, from->parent, from->n_parent, from->name)->value =
            from->description.len == 0 ? tarn_slice_str(NULL) : tarn_rpc__slice(from->description);
    bool set = from->_default_case == TARN__V1__ALTER_COLUMN___DEFAULT_DEFAULT_VALUE;
    if (set && from->drop_default)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "column %.*s: its default is set and dropped at once",
                               TARN_SLICE_ARG(tarn_rpc__slice(from->name)));
    if (set || from->drop_default)
        add_for(list, TARN_CHANGE_COLUMN_DEFAULT, from->parent, from->n_parent, from->name)->value =
            set ? set_to(from->default_value) : tarn_slice_str(NULL);
    return TARN_OK;
}

static struct tarn_status *convert(struct list *list, const Tarn__V1__SchemaChange *from)
{
    struct tarn_schema_change *change;
    switch (from->change_case) {
    case TARN__V1__SCHEMA_CHANGE__CHANGE_SET_OPTION:
        change = add(list, TARN_CHANGE_SET_OPTION);
        change->key = tarn_rpc__slice(from->set_option->key);
        change->value = set_to(from->set_option->value);
        return TARN_OK;
    case TARN__V1__SCHEMA_CHANGE__CHANGE_REMOVE_OPTION:
        add(list, TARN_CHANGE_REMOVE_OPTION)->key = tarn_rpc__slice(from->remove_option);
        return TARN_OK;
    case TARN__V1__SCHEMA_CHANGE__CHANGE_SET_COMMENT:
        add(list, TARN_CHANGE_COMMENT)->value =
            from->set_comment.len == 0 ? tarn_slice_str(NULL) : tarn_rpc__slice(from->set_comment);
        return TARN_OK;
    case TARN__V1__SCHEMA_CHANGE__CHANGE_ADD_COLUMN:
        return add_column(list, from->add_column);
    case TARN__V1__SCHEMA_CHANGE__CHANGE_DROP_COLUMN:
        add_for(list, TARN_CHANGE_DROP_COLUMN, NULL, 0, from->drop_column);
        return TARN_OK;
    case TARN__V1__SCHEMA_CHANGE__CHANGE_DROP_NESTED_COLUMN:
        add_for(list, TARN_CHANGE_DROP_COLUMN, from->drop_nested_column->parent,
                from->drop_nested_column->n_parent, from->drop_nested_column->name);
        return TARN_OK;
    case TARN__V1__SCHEMA_CHANGE__CHANGE_RENAME_COLUMN:
        add_for(list, TARN_CHANGE_RENAME_COLUMN, from->rename_column->parent,
                from->rename_column->n_parent, from->rename_column->from)
            ->value = tarn_rpc__slice(from->rename_column->to);
        return TARN_OK;
    case TARN__V1__SCHEMA_CHANGE__CHANGE_ALTER_COLUMN:
        return alter_column(list, from->alter_column);
    case TARN__V1__SCHEMA_CHANGE__CHANGE_MOVE_COLUMN:
        change = add_for(list, TARN_CHANGE_COLUMN_POSITION, from->move_column->parent,
                         from->move_column->n_parent, from->move_column->name);
        return read_move(change, from->move_column->first, from->move_column->last,
                         from->move_column->before, from->move_column->after);
    case TARN__V1__SCHEMA_CHANGE__CHANGE_DROP_PRIMARY_KEY:
        if (from->drop_primary_key)
            add(list, TARN_CHANGE_DROP_PRIMARY_KEY);
        return TARN_OK;
    default:
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a change is empty or not known here");
    }
}

struct tarn_status *tarn_rpc__changes(struct tarn_op *op, Tarn__V1__SchemaChange *const *from,
                                      size_t count, struct tarn_schema_change **out,
                                      size_t *out_count)
{
    struct list list = {.op = op,
                        .items = TARN_RPC_ARRAY(op, count * CHANGES_OF_ONE_MAX, *list.items)};
    for (size_t i = 0; i < count; i++)
        TARN_TRY(convert(&list, from[i]));
    *out = list.items;
    *out_count = list.count;
    return TARN_OK;
}
