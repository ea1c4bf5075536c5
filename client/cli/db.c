#include "ask.h"
#include "print.h"

#include "tarn/v1/catalog.pb-c.h"

const struct tarn_cli_option tarn_cli_db_create_options[] = {
    {"option", 0, "KEY=VALUE", "an option of the database", true},
    {"comment", 0, "TEXT", "what it is for", false},
    {"if-not-exists", 0, NULL, "fine where it is already there", false},
    {0},
};
const struct tarn_cli_option tarn_cli_db_alter_options[] = {
    {"set", 0, "KEY=VALUE", "set an option", true},
    {"reset", 0, "KEY", "remove an option", true},
    {0},
};
const struct tarn_cli_option tarn_cli_db_drop_options[] = {
    {"cascade", 0, NULL, "with all its tables and their data", false},
    {"if-exists", 0, NULL, "fine where it is not there", false},
    {0},
};

static const struct tarn_cli_column columns[] = {
    {"name", "DATABASE", TARN_CLI_TEXT},
    {"tables", "TABLES", TARN_CLI_INT},
    {"comment", "COMMENT", TARN_CLI_TEXT},
};

static struct tarn_status *show(struct tarn_cli *cli, const Tarn__V1__Database *database)
{
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = tarn_cli_record_new(cli);
    tarn_cli_record_slice(r, "name", "database", tarn_cli_slice(database->name));
    tarn_cli_record_slice(r, "comment", "comment", tarn_cli_or_absent(database->comment));
    tarn_cli_record_int(r, "tables", "tables", TARN_CLI_INT, database->table_count);
    tarn_cli_record_any(r, "options", "options",
                        tarn_cli_options_json(database->options, database->n_options),
                        tarn_cli_options_text(cli, database->options, database->n_options));
    return tarn_cli_record_end(r);
}

/* What a mutation made: for people a line, for programs the object. */
static struct tarn_status *show_made(struct tarn_cli *cli, const Tarn__V1__Database *database,
                                     const char *did)
{
    if (cli->format != TARN_CLI_TABLE)
        return show(cli, database);
    tarn_cli_say(cli, "%s database %.*s", did, TARN_SLICE_ARG(tarn_cli_slice(database->name)));
    return TARN_OK;
}

struct tarn_status *tarn_cli_db_create(struct tarn_cli *cli)
{
    Tarn__V1__CreateDatabaseRequest request = TARN__V1__CREATE_DATABASE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Database *made = NULL;

    TARN_TRY(tarn_cli_option_pairs(cli, "option", &request.options, &request.n_options));
    request.name = tarn_cli_bytes_str(cli->args.words[0]);
    request.comment = tarn_cli_bytes_str(tarn_cli_args_text(&cli->args, "comment"));
    request.ignore_if_exists = tarn_cli_args_has(&cli->args, "if-not-exists");
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/CreateDatabase", &request.base,
                          &tarn__v1__database__descriptor, &made));
    return show_made(cli, made, "created");
}

struct tarn_status *tarn_cli_db_list(struct tarn_cli *cli)
{
    Tarn__V1__ListDatabasesRequest request = TARN__V1__LIST_DATABASES_REQUEST__INIT;
    Tarn__V1__Page page = TARN__V1__PAGE__INIT;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    request.page = &page;
    do {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListDatabasesResponse *answer = NULL;
        TARN_TRY(tarn_cli_ask(cli, "CatalogService/ListDatabases", &request.base,
                              &tarn__v1__list_databases_response__descriptor, &answer));
        if (list == NULL)
            list = tarn_cli_list_new(cli, columns, TARN_COUNT_OF(columns));
        for (size_t i = 0; i < answer->n_databases; i++) {
            tarn_cli_list_slice(list, tarn_cli_slice(answer->databases[i]->name));
            tarn_cli_list_int(list, answer->databases[i]->table_count);
            tarn_cli_list_slice(list, tarn_cli_or_absent(answer->databases[i]->comment));
        }
        page.token = tarn_arena_str(cli->op.arena, tarn_slice_str(answer->next_page_token));
    } while (page.token[0] != '\0');
    return tarn_cli_list_end(list);
}

struct tarn_status *tarn_cli_db_show(struct tarn_cli *cli)
{
    Tarn__V1__GetDatabaseRequest request = TARN__V1__GET_DATABASE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Database *answer = NULL;

    request.name = tarn_cli_bytes_str(cli->args.words[0]);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/GetDatabase", &request.base,
                          &tarn__v1__database__descriptor, &answer));
    return show(cli, answer);
}

struct tarn_status *tarn_cli_db_alter(struct tarn_cli *cli)
{
    Tarn__V1__AlterDatabaseRequest request = TARN__V1__ALTER_DATABASE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Database *answer = NULL;
    size_t cursor = 0;

    TARN_TRY(tarn_cli_option_pairs(cli, "set", &request.set, &request.n_set));
    request.remove =
        tarn_arena_calloc(cli->op.arena, cli->args.given_count + 1, sizeof *request.remove);
    for (const char *key; (key = tarn_cli_args_next(&cli->args, "reset", &cursor)) != NULL;)
        request.remove[request.n_remove++] = tarn_cli_bytes_str(key);
    if (request.n_set + request.n_remove == 0)
        return tarn_cli_usage(cli, "db alter: nothing to change");
    request.name = tarn_cli_bytes_str(cli->args.words[0]);
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/AlterDatabase", &request.base,
                          &tarn__v1__database__descriptor, &answer));
    return show_made(cli, answer, "altered");
}

struct tarn_status *tarn_cli_db_drop(struct tarn_cli *cli)
{
    Tarn__V1__DropDatabaseRequest request = TARN__V1__DROP_DATABASE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DropDatabaseResponse *answer = NULL;
    const char *name = cli->args.words[0];

    request.name = tarn_cli_bytes_str(name);
    request.cascade = tarn_cli_args_has(&cli->args, "cascade");
    request.ignore_if_missing = tarn_cli_args_has(&cli->args, "if-exists");
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/DropDatabase", &request.base,
                          &tarn__v1__drop_database_response__descriptor, &answer));
    if (cli->format == TARN_CLI_TABLE) {
        tarn_cli_say(cli, "dropped database %s%s", name,
                     answer->tables_dropped > 0 ? " and its tables" : "");
        return TARN_OK;
    }
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = tarn_cli_record_new(cli);
    tarn_cli_record_text(r, "dropped", NULL, name);
    tarn_cli_record_int(r, "tables_dropped", NULL, TARN_CLI_INT, answer->tables_dropped);
    return tarn_cli_record_end(r);
}
