#include "table.h"

/*
 * tarn table alter: a list of changes in the order in which they are given. --first and --after
 * belong to the --add-column just before them.
 */

const struct tarn_cli_option tarn_cli_table_alter_options[] = {
    {"set", 0, "KEY=VALUE", "set an option", true},
    {"reset", 0, "KEY", "remove an option", true},
    {"comment", 0, "TEXT", "the comment of the table", false},
    {"add-column", 0, "'NAME TYPE'", "add a column", true},
    {"first", 0, NULL, "... before all others", true},
    {"after", 0, "NAME", "... behind that one", true},
    {"drop-column", 0, "NAME", "drop a column", true},
    {"rename-column", 0, "OLD=NEW", "rename a column", true},
    {"alter-type", 0, "'NAME TYPE'", "give a column another type", true},
    {"column-comment", 0, "NAME=TEXT", "the comment of a column", true},
    {0},
};

static const char *const change_names[] = {
    "set",         "reset",         "comment",    "add-column",     "first", "after",
    "drop-column", "rename-column", "alter-type", "column-comment", NULL};

/* "name TYPE" or "`na me` TYPE". */
static struct tarn_status *name_and_type(struct tarn_cli *cli, const char *option, const char *text,
                                         ProtobufCBinaryData *name, char **type)
{
    const char *at = text + strspn(text, " ");
    const char *end = at[0] == '`' ? strchr(at + 1, '`') : at + strcspn(at, " ");
    struct tarn_slice found = {0};

    if (end != NULL)
        found = at[0] == '`' ? tarn_slice_of(at + 1, (size_t)(end - at - 1))
                             : tarn_slice_of(at, (size_t)(end - at));
    if (end != NULL && *end == '`')
        end++;
    if (found.size == 0 || end[strspn(end, " ")] == '\0')
        return tarn_cli_usage(cli, "--%s \"%.100s\": expected a name and a type", option, text);
    *name = tarn_cli_bytes(found);
    *type = tarn_arena_str(cli->op.arena, tarn_slice_str(end + strspn(end, " ")));
    return TARN_OK;
}

static struct tarn_status *pair_of(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                   struct tarn_slice *key, struct tarn_slice *value)
{
    TARN_OWN(tarn_free_drop) char *what = tarn_format("--%s", given->option->name);
    return tarn_cli_misused(cli, tarn_cli_pair(given->value, what, key, value));
}

static struct tarn_status *set_option(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                      Tarn__V1__SchemaChange *change)
{
    struct tarn_slice key, value;
    TARN_TRY(pair_of(cli, given, &key, &value));
    Tarn__V1__Option *option = tarn_arena_alloc(cli->op.arena, sizeof *option);
    tarn__v1__option__init(option);
    option->key = tarn_cli_bytes(key);
    option->value = tarn_cli_bytes(value);
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_SET_OPTION;
    change->set_option = option;
    return TARN_OK;
}

static struct tarn_status *add_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                      Tarn__V1__SchemaChange *change)
{
    Tarn__V1__AddColumn *add = tarn_arena_alloc(cli->op.arena, sizeof *add);
    Tarn__V1__Field *field = tarn_arena_alloc(cli->op.arena, sizeof *field);

    tarn__v1__add_column__init(add);
    tarn__v1__field__init(field);
    TARN_TRY(name_and_type(cli, "add-column", given->value, &field->name, &field->type));
    add->field = field;
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_ADD_COLUMN;
    change->add_column = add;
    return TARN_OK;
}

static struct tarn_status *rename_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                         Tarn__V1__SchemaChange *change)
{
    struct tarn_slice from, to;
    TARN_TRY(pair_of(cli, given, &from, &to));
    Tarn__V1__RenameColumn *rename = tarn_arena_alloc(cli->op.arena, sizeof *rename);
    tarn__v1__rename_column__init(rename);
    rename->from = tarn_cli_bytes(from);
    rename->to = tarn_cli_bytes(to);
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_RENAME_COLUMN;
    change->rename_column = rename;
    return TARN_OK;
}

static struct tarn_status *alter_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                        Tarn__V1__SchemaChange *change)
{
    Tarn__V1__AlterColumn *alter = tarn_arena_alloc(cli->op.arena, sizeof *alter);
    struct tarn_slice name, text;

    tarn__v1__alter_column__init(alter);
    if (strcmp(given->option->name, "alter-type") == 0) {
        TARN_TRY(name_and_type(cli, "alter-type", given->value, &alter->name, &alter->type));
    } else {
        TARN_TRY(pair_of(cli, given, &name, &text));
        alter->name = tarn_cli_bytes(name);
        alter->_description_case = TARN__V1__ALTER_COLUMN___DESCRIPTION_DESCRIPTION;
        alter->description = tarn_cli_bytes(text);
    }
    change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_ALTER_COLUMN;
    change->alter_column = alter;
    return TARN_OK;
}

/* --first or --after: of the column that was added just before. */
static struct tarn_status *place_column(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                        Tarn__V1__SchemaChange *last)
{
    if (last == NULL || last->change_case != TARN__V1__SCHEMA_CHANGE__CHANGE_ADD_COLUMN)
        return tarn_cli_usage(cli, "--%s belongs behind --add-column", given->option->name);
    if (given->value == NULL)
        last->add_column->first = true;
    else
        last->add_column->after = tarn_cli_bytes_str(given->value);
    return TARN_OK;
}

static struct tarn_status *make_change(struct tarn_cli *cli, const struct tarn_cli_given *given,
                                       Tarn__V1__SchemaChange *change)
{
    const char *name = given->option->name;

    if (strcmp(name, "set") == 0)
        return set_option(cli, given, change);
    if (strcmp(name, "add-column") == 0)
        return add_column(cli, given, change);
    if (strcmp(name, "rename-column") == 0)
        return rename_column(cli, given, change);
    if (strcmp(name, "alter-type") == 0 || strcmp(name, "column-comment") == 0)
        return alter_column(cli, given, change);
    ProtobufCBinaryData text = tarn_cli_bytes_str(given->value);
    if (strcmp(name, "reset") == 0) {
        change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_REMOVE_OPTION;
        change->remove_option = text;
    } else if (strcmp(name, "comment") == 0) {
        change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_SET_COMMENT;
        change->set_comment = text;
    } else {
        change->change_case = TARN__V1__SCHEMA_CHANGE__CHANGE_DROP_COLUMN;
        change->drop_column = text;
    }
    return TARN_OK;
}

static struct tarn_status *make_changes(struct tarn_cli *cli, Tarn__V1__AlterTableRequest *request)
{
    const struct tarn_cli_given *given;
    size_t cursor = 0;

    request->changes =
        tarn_arena_calloc(cli->op.arena, cli->args.given_count + 1, sizeof *request->changes);
    while ((given = tarn_cli_args_next_of(&cli->args, change_names, &cursor)) != NULL) {
        Tarn__V1__SchemaChange *last =
            request->n_changes > 0 ? request->changes[request->n_changes - 1] : NULL;
        if (strcmp(given->option->name, "first") == 0 ||
            strcmp(given->option->name, "after") == 0) {
            TARN_TRY(place_column(cli, given, last));
            continue;
        }
        Tarn__V1__SchemaChange *change = tarn_arena_alloc(cli->op.arena, sizeof *change);
        tarn__v1__schema_change__init(change);
        TARN_TRY(make_change(cli, given, change));
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
