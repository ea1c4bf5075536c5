#include "table.h"

/*
 * tarn table alter: a list of changes in the order in which they are given. --first, --last, --before and --after
 * belong to the --add-column or --move-column just before them.
 */

const struct tarn_cli_option tarn_cli_table_alter_options[] = {
    {"set", 0, "KEY=VALUE", "set an option", true},
    {"reset", 0, "KEY", "remove an option", true},
    {"comment", 0, "TEXT", "the comment of the table", false},
    {"add-column", 0, "'NAME TYPE'", "add a column", true},
    {"move-column", 0, "NAME", "move a column", true},
    {"first", 0, NULL, "... before all others", true},
    {"last", 0, NULL, "... behind all others", true},
    {"before", 0, "NAME", "... before that one", true},
    {"after", 0, "NAME", "... behind that one", true},
    {"drop-column", 0, "NAME", "drop a column", true},
    {"rename-column", 0, "OLD=NEW", "rename a column", true},
    {"alter-type", 0, "'NAME TYPE'", "give a column another type", true},
    {"nullable", 0, "NAME", "let a column hold nulls", true},
    {"not-null", 0, "NAME", "let a column hold no nulls", true},
    {"default", 0, "NAME=TEXT", "what is written where a row has null", true},
    {"drop-default", 0, "NAME", "take the default away", true},
    {"column-comment", 0, "NAME=TEXT", "the comment of a column", true},
    {"drop-primary-key", 0, NULL, "of a table without snapshots", false},
    {0},
};

/* A column by the names that lead to it. */
struct column {
    ProtobufCBinaryData name, *parent;
    size_t parent_count;
};

static struct tarn_status *wrong(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                 const char *expected)
{
    return tarn_cli_usage(cli, "--%s \"%.100s\": expected %s", given->option->name, given->value,
                          expected);
}

/* The names up to `end`; *rest is what stands behind it. */
static struct tarn_status *take_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                       char end, struct column *out, const char **rest)
{
    struct tarn_slice *names;
    size_t count;
    const char *at = given->value;

    TARN_TRY(tarn_cli_misused(
        cli, tarn_status_wrap(tarn_cli_path(cli->op.arena, &at, end, &names, &count), "--%s",
                              given->option->name)));
    out->parent = tarn_arena_calloc(cli->op.arena, count, sizeof *out->parent);
    out->parent_count = count - 1;
    for (size_t i = 0; i < out->parent_count; i++)
        out->parent[i] = tarn_cli_bytes(names[i]);
    out->name = tarn_cli_bytes(names[count - 1]);
    *rest = at;
    return TARN_OK;
}

static struct tarn_status *only_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                       struct column *out)
{
    const char *rest;
    TARN_TRY(take_column(cli, given, '\0', out, &rest));
    return *rest == '\0' ? TARN_OK : wrong(cli, given, "the name of a column");
}

/* "NAME TYPE" */
static struct tarn_status *column_and_type(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                           struct column *out, char **type)
{
    const char *rest;
    TARN_TRY(take_column(cli, given, ' ', out, &rest));
    rest += strspn(rest, " ");
    if (*rest == '\0')
        return wrong(cli, given, "a name and a type");
    *type = tarn_arena_str(cli->op.arena, tarn_slice_str(rest));
    return TARN_OK;
}

/* "NAME=TEXT" */
static struct tarn_status *column_and_text(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                           struct column *out, ProtobufCBinaryData *text)
{
    const char *rest;
    TARN_TRY(take_column(cli, given, '=', out, &rest));
    if (*rest != '=')
        return wrong(cli, given, "NAME=TEXT");
    *text = tarn_cli_bytes_str(rest + 1);
    return TARN_OK;
}

typedef struct tarn_status *make_fn(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                    Tarn__V1__SchemaChange *change);

static struct tarn_status *set_option(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                      Tarn__V1__SchemaChange *change)
{
    struct tarn_slice key, value;
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_pair(given->value, "--set", &key, &value)));
    Tarn__V1__Option *option = tarn_arena_alloc(cli->op.arena, sizeof *option);
    tarn__v1__option__init(option);
    option->key = tarn_cli_bytes(key);
    option->value = tarn_cli_bytes(value);
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_SET_OPTION;
    change->set_option = option;
    return TARN_OK;
}

static struct tarn_status *change_table(struct tarn_cli *cli TARN_UNUSED,
                                        const struct tarn_cli_given *given,
                                        Tarn__V1__SchemaChange *change)
{
    if (strcmp(given->option->name, "drop-primary-key") == 0) {
        change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_DROP_PRIMARY_KEY;
        change->drop_primary_key = true;
    } else if (strcmp(given->option->name, "reset") == 0) {
        change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_REMOVE_OPTION;
        change->remove_option = tarn_cli_bytes_str(given->value);
    } else {
        change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_SET_COMMENT;
        change->set_comment = tarn_cli_bytes_str(given->value);
    }
    return TARN_OK;
}

static struct tarn_status *add_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                      Tarn__V1__SchemaChange *change)
{
    Tarn__V1__AddColumn *add = tarn_arena_alloc(cli->op.arena, sizeof *add);
    Tarn__V1__Field *field = tarn_arena_alloc(cli->op.arena, sizeof *field);
    struct column column;

    tarn__v1__add_column__init(add);
    tarn__v1__field__init(field);
    TARN_TRY(column_and_type(cli, given, &column, &field->type));
    field->name = column.name;
    add->field = field;
    add->parent = column.parent;
    add->n_parent = column.parent_count;
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_ADD_COLUMN;
    change->add_column = add;
    return TARN_OK;
}

static struct tarn_status *move_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                       Tarn__V1__SchemaChange *change)
{
    Tarn__V1__MoveColumn *move = tarn_arena_alloc(cli->op.arena, sizeof *move);
    struct column column;

    tarn__v1__move_column__init(move);
    TARN_TRY(only_column(cli, given, &column));
    move->name = column.name;
    move->parent = column.parent;
    move->n_parent = column.parent_count;
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_MOVE_COLUMN;
    change->move_column = move;
    return TARN_OK;
}

static struct tarn_status *drop_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                       Tarn__V1__SchemaChange *change)
{
    struct column column;
    TARN_TRY(only_column(cli, given, &column));
    if (column.parent_count == 0) {
        change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_DROP_COLUMN;
        change->drop_column = column.name;
        return TARN_OK;
    }
    Tarn__V1__DropColumn *drop = tarn_arena_alloc(cli->op.arena, sizeof *drop);
    tarn__v1__drop_column__init(drop);
    drop->name = column.name;
    drop->parent = column.parent;
    drop->n_parent = column.parent_count;
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_DROP_NESTED_COLUMN;
    change->drop_nested_column = drop;
    return TARN_OK;
}

static struct tarn_status *rename_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                         Tarn__V1__SchemaChange *change)
{
    Tarn__V1__RenameColumn *rename = tarn_arena_alloc(cli->op.arena, sizeof *rename);
    struct column column;

    tarn__v1__rename_column__init(rename);
    TARN_TRY(column_and_text(cli, given, &column, &rename->to));
    rename->from = column.name;
    rename->parent = column.parent;
    rename->n_parent = column.parent_count;
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_RENAME_COLUMN;
    change->rename_column = rename;
    return TARN_OK;
}

static struct tarn_status *alter_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                        Tarn__V1__SchemaChange *change)
{
    Tarn__V1__AlterColumn *alter = tarn_arena_alloc(cli->op.arena, sizeof *alter);
    const char *what = given->option->name;
    struct column column;

    tarn__v1__alter_column__init(alter);
    if (strcmp(what, "alter-type") == 0) {
        TARN_TRY(column_and_type(cli, given, &column, &alter->type));
    } else if (strcmp(what, "column-comment") == 0) {
        TARN_TRY(column_and_text(cli, given, &column, &alter->description));
        alter->_description_case = TARN__V1__ALTER_COLUMN___DESCRIPTION_DESCRIPTION;
    } else if (strcmp(what, "default") == 0) {
        TARN_TRY(column_and_text(cli, given, &column, &alter->default_value));
        alter->_default_case = TARN__V1__ALTER_COLUMN___DEFAULT_DEFAULT_VALUE;
    } else {
        TARN_TRY(only_column(cli, given, &column));
        alter->drop_default = strcmp(what, "drop-default") == 0;
        if (!alter->drop_default)
            alter->_nullable_case = TARN__V1__ALTER_COLUMN___NULLABLE_NULLABLE;
        alter->nullable = strcmp(what, "nullable") == 0;
    }
    alter->name = column.name;
    alter->parent = column.parent;
    alter->n_parent = column.parent_count;
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_ALTER_COLUMN;
    change->alter_column = alter;
    return TARN_OK;
}

static const struct {
    const char *option;
    make_fn *make; /* NULL: says where the column just before goes */
} kinds[] = {
    {"set", set_option},
    {"reset", change_table},
    {"comment", change_table},
    {"drop-primary-key", change_table},
    {"add-column", add_column},
    {"move-column", move_column},
    {"first", NULL},
    {"last", NULL},
    {"before", NULL},
    {"after", NULL},
    {"drop-column", drop_column},
    {"rename-column", rename_column},
    {"alter-type", alter_column},
    {"nullable", alter_column},
    {"not-null", alter_column},
    {"default", alter_column},
    {"drop-default", alter_column},
    {"column-comment", alter_column},
};

/* --first and its like: of the column that was added or moved just before. */
static struct tarn_status *place_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                        Tarn__V1__SchemaChange *last)
{
    const char *where = given->option->name;
    ProtobufCBinaryData other = tarn_cli_bytes_str(given->value);
    bool first = strcmp(where, "first") == 0, before = strcmp(where, "before") == 0;
    bool after = strcmp(where, "after") == 0;

    if (last != NULL && last->change_case == TARN__V1__SCHEMA_CHANGE__CHANGE_ADD_COLUMN) {
        last->add_column->first |= first;
        last->add_column->last |= strcmp(where, "last") == 0;
        last->add_column->before = before ? other : last->add_column->before;
        last->add_column->after = after ? other : last->add_column->after;
        return TARN_OK;
    }
    if (last == NULL || last->change_case != TARN__V1__SCHEMA_CHANGE__CHANGE_MOVE_COLUMN)
        return tarn_cli_usage(cli, "--%s belongs behind --add-column or --move-column", where);
    last->move_column->first |= first;
    last->move_column->last |= strcmp(where, "last") == 0;
    last->move_column->before = before ? other : last->move_column->before;
    last->move_column->after = after ? other : last->move_column->after;
    return TARN_OK;
}

static struct tarn_status *make_changes(struct tarn_cli *cli, Tarn__V1__AlterTableRequest *request)
{
    const char *names[TARN_COUNT_OF(kinds) + 1] = {NULL};
    const struct tarn_cli_given *given;
    size_t cursor = 0;

    for (size_t i = 0; i < TARN_COUNT_OF(kinds); i++)
        names[i] = kinds[i].option;
    request->changes =
        tarn_arena_calloc(cli->op.arena, cli->args.given_count + 1, sizeof *request->changes);
    while ((given = tarn_cli_args_next_of(&cli->args, names, &cursor)) != NULL) {
        size_t kind = 0;
        while (strcmp(kinds[kind].option, given->option->name) != 0)
            kind++;
        if (kinds[kind].make == NULL) {
            TARN_TRY(place_column(cli, given,
                                  request->n_changes > 0 ? request->changes[request->n_changes - 1]
                                                         : NULL));
            continue;
        }
        Tarn__V1__SchemaChange *change = tarn_arena_alloc(cli->op.arena, sizeof *change);
        tarn__v1__schema_change__init(change);
        TARN_TRY(kinds[kind].make(cli, given, change));
        request->changes[request->n_changes++] = change;
    }
    if (request->n_changes == 0)
        return tarn_cli_usage(cli, "table alter: nothing to change");
    return TARN_OK;
}

struct tarn_status *tarn_cli_table_alter(struct tarn_cli *cli)
{
    Tarn__V1__AlterTableRequest request = TARN__V1__ALTER_TABLE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Table *answer = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(make_changes(cli, &request));
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/AlterTable", &request.base,
                          &tarn__v1__table__descriptor, &answer));
    return tarn_cli_show_made(cli, "altered", answer);
}
