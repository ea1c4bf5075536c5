#include "table.h"

#include "print.h"

const struct tarn_cli_option tarn_cli_table_drop_options[] = {
    {"if-exists", 0, NULL, "fine where it is not there", false},
    {0},
};

/* --- showing one --- */

static const struct tarn_cli_column field_columns[] = {
    {"id", "ID", TARN_CLI_INT},
    {"name", "COLUMN", TARN_CLI_TEXT},
    {"type", "TYPE", TARN_CLI_TEXT},
    {"default", "DEFAULT", TARN_CLI_TEXT},
    {"comment", "COMMENT", TARN_CLI_TEXT},
};

static void add_fields(struct tarn_cli_record *record, const Tarn__V1__Table *table)
{
    struct tarn_cli_list *list = tarn_cli_record_list(record, "columns", "columns", field_columns,
                                                      TARN_COUNT_OF(field_columns));
    for (size_t i = 0; i < table->n_fields; i++) {
        const Tarn__V1__Field *field = table->fields[i];
        tarn_cli_list_int(list, field->id);
        tarn_cli_list_slice(list, tarn_cli_slice(field->name));
        tarn_cli_list_text(list, field->type);
        tarn_cli_list_slice(list, tarn_cli_or_absent(field->default_value));
        tarn_cli_list_slice(list, tarn_cli_or_absent(field->description));
    }
}

static void add_keys(struct tarn_cli_record *r, struct tarn_cli *cli, const Tarn__V1__Table *table)
{
    tarn_cli_record_any(r, "primary_keys", table->n_primary_keys > 0 ? "primary key" : NULL,
                        tarn_cli_names_json(table->primary_keys, table->n_primary_keys),
                        tarn_cli_names_text(cli, table->primary_keys, table->n_primary_keys));
    tarn_cli_record_any(r, "partition_keys", table->n_partition_keys > 0 ? "partitioned by" : NULL,
                        tarn_cli_names_json(table->partition_keys, table->n_partition_keys),
                        tarn_cli_names_text(cli, table->partition_keys, table->n_partition_keys));
    tarn_cli_record_any(r, "options", "options",
                        tarn_cli_options_json(table->options, table->n_options),
                        tarn_cli_options_text(cli, table->options, table->n_options));
    if (table->n_defaults_applied > 0)
        tarn_cli_record_any(
            r, "defaults_applied", "chosen for you",
            tarn_cli_options_json(table->defaults_applied, table->n_defaults_applied),
            tarn_cli_options_text(cli, table->defaults_applied, table->n_defaults_applied));
}

struct tarn_status *tarn_cli_show_table(struct tarn_cli *cli, const Tarn__V1__Table *table)
{
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = tarn_cli_record_new(cli);

    tarn_cli_record_slice(r, "database", "database", tarn_cli_slice(table->database));
    tarn_cli_record_slice(r, "table", "table", tarn_cli_slice(table->name));
    tarn_cli_record_slice(r, "comment", table->comment.len > 0 ? "comment" : NULL,
                          tarn_cli_or_absent(table->comment));
    tarn_cli_record_text(r, "uuid", "uuid", table->uuid);
    tarn_cli_record_text(r, "path", "path", table->path);
    tarn_cli_record_int(r, "schema", "schema", TARN_CLI_INT, table->schema_id);
    tarn_cli_record_int(r, "schema_created", "schema made", TARN_CLI_TIME, table->created_ms);
    tarn_cli_record_int(r, "snapshot", "snapshot", TARN_CLI_INT, table->snapshot_id);
    tarn_cli_record_int(r, "records", "records (unmerged)", TARN_CLI_INT, table->record_count);
    tarn_cli_record_text(r, "compaction", "compaction",
                         tarn_cli_compaction_word(table->compaction));
    add_keys(r, cli, table);
    const char *refuse = tarn_cli_or_null(table->refuse_write);
    tarn_cli_record_text(r, "only_listed_because", refuse != NULL ? "only listed because" : NULL,
                         refuse);
    add_fields(r, table);
    return tarn_cli_record_end(r);
}

struct tarn_status *tarn_cli_show_made(struct tarn_cli *cli, const char *did,
                                       const Tarn__V1__Table *table)
{
    if (cli->format != TARN_CLI_TABLE)
        return tarn_cli_show_table(cli, table);
    tarn_cli_say(cli, "%s table %.*s.%.*s, schema %" PRId64, did,
                 TARN_SLICE_ARG(tarn_cli_slice(table->database)),
                 TARN_SLICE_ARG(tarn_cli_slice(table->name)), table->schema_id);
    struct tarn_slice chosen =
        tarn_cli_options_text(cli, table->defaults_applied, table->n_defaults_applied);
    if (chosen.size > 0)
        tarn_cli_say(cli, "%.*s (chosen for you; --option says otherwise)", TARN_SLICE_ARG(chosen));
    return TARN_OK;
}

struct tarn_status *tarn_cli_table_show(struct tarn_cli *cli)
{
    Tarn__V1__GetTableRequest request = TARN__V1__GET_TABLE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Table *answer = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/GetTable", &request.base,
                          &tarn__v1__table__descriptor, &answer));
    return tarn_cli_show_table(cli, answer);
}

struct tarn_status *tarn_cli_table_register(struct tarn_cli *cli)
{
    Tarn__V1__RegisterTableRequest request = TARN__V1__REGISTER_TABLE_REQUEST__INIT;
    Tarn__V1__TableRef *table = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Table *made = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &table));
    request.database = table->database;
    request.table = table->table;
    request.path = tarn_cli_bytes_str(cli->args.words[1]);
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/RegisterTable", &request.base,
                          &tarn__v1__table__descriptor, &made));
    return tarn_cli_show_made(cli, "registered", made);
}

/* --- listing --- */

static const struct tarn_cli_column list_columns[] = {
    {"database", "DATABASE", TARN_CLI_TEXT},
    {"table", "TABLE", TARN_CLI_TEXT},
    {"uuid", NULL, TARN_CLI_TEXT},
    {"schema", "SCHEMA", TARN_CLI_INT},
    {"snapshot", "SNAPSHOT", TARN_CLI_INT},
    {"records", "RECORDS", TARN_CLI_INT},
    {"only_listed_because", "NOTE", TARN_CLI_TEXT},
};

static void add_tables(struct tarn_cli_list *list, const Tarn__V1__ListTablesResponse *answer)
{
    for (size_t i = 0; i < answer->n_tables; i++) {
        const Tarn__V1__Table *table = answer->tables[i];
        tarn_cli_list_slice(list, tarn_cli_slice(table->database));
        tarn_cli_list_slice(list, tarn_cli_slice(table->name));
        tarn_cli_list_text(list, table->uuid);
        tarn_cli_list_int(list, table->schema_id);
        tarn_cli_list_int(list, table->snapshot_id);
        tarn_cli_list_int(list, table->record_count);
        tarn_cli_list_text(list, tarn_cli_or_null(table->refuse_write));
    }
}

/* Makes *list when the first answer is there, so that a failure prints nothing before. */
static struct tarn_status *list_database(struct tarn_cli *cli, struct tarn_slice database,
                                         struct tarn_cli_list **list)
{
    Tarn__V1__ListTablesRequest request = TARN__V1__LIST_TABLES_REQUEST__INIT;
    Tarn__V1__Page page = TARN__V1__PAGE__INIT;

    request.database = tarn_cli_bytes(database);
    request.page = &page;
    do {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListTablesResponse *answer = NULL;
        TARN_TRY(tarn_cli_ask(cli, "CatalogService/ListTables", &request.base,
                              &tarn__v1__list_tables_response__descriptor, &answer));
        if (*list == NULL)
            *list = tarn_cli_list_new(cli, list_columns, TARN_COUNT_OF(list_columns));
        add_tables(*list, answer);
        page.token = tarn_arena_str(cli->op.arena, tarn_slice_str(answer->next_page_token));
    } while (page.token[0] != '\0');
    return TARN_OK;
}

static struct tarn_status *list_all(struct tarn_cli *cli, struct tarn_cli_list **list)
{
    Tarn__V1__ListDatabasesRequest request = TARN__V1__LIST_DATABASES_REQUEST__INIT;
    Tarn__V1__Page page = TARN__V1__PAGE__INIT;

    request.page = &page;
    do {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListDatabasesResponse *answer = NULL;
        TARN_TRY(tarn_cli_ask(cli, "CatalogService/ListDatabases", &request.base,
                              &tarn__v1__list_databases_response__descriptor, &answer));
        for (size_t i = 0; i < answer->n_databases; i++) {
            struct tarn_status *status =
                list_database(cli, tarn_cli_slice(answer->databases[i]->name), list);
            if (tarn_status_reason(status) == TARN_DATABASE_NOT_FOUND)
                tarn_status_drop(&status); /* dropped since it was listed */
            TARN_TRY(status);
        }
        page.token = tarn_arena_str(cli->op.arena, tarn_slice_str(answer->next_page_token));
    } while (page.token[0] != '\0');
    if (*list == NULL)
        *list = tarn_cli_list_new(cli, list_columns, TARN_COUNT_OF(list_columns));
    return TARN_OK;
}

struct tarn_status *tarn_cli_table_list(struct tarn_cli *cli)
{
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    if (cli->args.word_count > 0)
        TARN_TRY(list_database(cli, tarn_slice_str(cli->args.words[0]), &list));
    else
        TARN_TRY(list_all(cli, &list));
    return tarn_cli_list_end(list);
}

/* --- rename, drop --- */

struct tarn_status *tarn_cli_table_rename(struct tarn_cli *cli)
{
    Tarn__V1__RenameTableRequest request = TARN__V1__RENAME_TABLE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Table *answer = NULL;
    const char *to = cli->args.words[1];
    Tarn__V1__TableRef *target = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.to_database = request.table->database;
    request.to_table = tarn_cli_bytes_str(to);
    if (strchr(to, '.') != NULL) {
        TARN_TRY(tarn_cli_table_ref(cli, to, &target));
        request.to_database = target->database;
        request.to_table = target->table;
    }
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/RenameTable", &request.base,
                          &tarn__v1__table__descriptor, &answer));
    return tarn_cli_show_made(cli, "renamed: it is now", answer);
}

struct tarn_status *tarn_cli_table_drop(struct tarn_cli *cli)
{
    Tarn__V1__DropTableRequest request = TARN__V1__DROP_TABLE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DropTableResponse *answer = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.ignore_if_missing = tarn_cli_args_has(&cli->args, "if-exists");
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/DropTable", &request.base,
                          &tarn__v1__drop_table_response__descriptor, &answer));
    return tarn_cli_dropped(cli, "table", cli->args.words[0]);
}
