/*
 * Promise: commands send what was asked for, show what came, and end with the right exit code and one
 * line of error; programs get the same as people, in their format.
 */
#include <fcntl.h>
#include <unistd.h>

#include "fake.h"

#include "tarn/v1/admin.pb-c.h"
#include "tarn/v1/catalog.pb-c.h"
#include "tarn/v1/data.pb-c.h"
#include "tarn/v1/maintenance.pb-c.h"
#include "tarn/v1/table.pb-c.h"

static ProtobufCBinaryData bytes(const char *text)
{
    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
}

static void expect_binary(ProtobufCBinaryData got, const char *want)
{
    expect_slice(tarn_slice_of(got.data, got.len), want);
}

static void drop_message(void *pointer)
{
    protobuf_c_message_free_unpacked(*(ProtobufCMessage **)pointer, NULL);
}

#define SERVE                                                                                      \
    struct fake fake TARN_OWN(fake_stop);                                                          \
    fake_start(&fake)

/* --- usage --- */

TARN_TEST(cli_usage, wrong_words_are_exit_code_2_with_a_hint)
{
    SERVE;
    static const struct {
        const char *words[4], *message;
    } cases[] = {
        {{"stauts"}, "tarn: unknown command stauts; did you mean status?; see tarn --help\n"},
        {{"db", "lst"}, "tarn: unknown command db lst; did you mean db list?; see tarn --help\n"},
        {{"db"}, "tarn: db what? one of create, list, show, alter, drop; see tarn --help\n"},
        {{"table", "show", "t"},
         "tarn: \"t\": expected DATABASE.TABLE; see tarn table show --help\n"},
        {{"table", "show"}, "tarn: table show needs DATABASE.TABLE; see tarn table show --help\n"},
        {{"status", "x"}, "tarn: status: \"x\" is one word too many; see tarn status --help\n"},
        {{"scan", "a.b", "--limt=3"},
         "tarn: unknown option --limt; did you mean --limit?; see tarn scan --help\n"},
        {{"scan", "a.b", "--limit=x"},
         "tarn: --limit \"x\": expected a whole number from 0 up; see tarn scan --help\n"},
        {{"scan", "a.b", "--columns=a,,b"},
         "tarn: --columns: \"a,,b\": expected names with commas between; see tarn scan --help\n"},
        {{"status", "-oxml"},
         "tarn: -o \"xml\": expected table, json, jsonl or csv; see tarn status --help\n"},
        {{"status", "-oparquet"},
         "tarn: -o \"parquet\": expected table, json, jsonl or csv; "
         "see tarn status --help\n"},
        {{"status", "--timeout=soon"},
         "tarn: --timeout \"soon\": expected seconds, or \"500 ms\", "
         "\"2 min\"; see tarn status --help\n"},
        {{"files", "a.b", "--snapshot=1", "--at=2026-01-01"},
         "tarn: --snapshot, --tag, --watermark and --at exclude each other; see tarn files --help\n"},
        {{"load", "a.b", "-"},
         "tarn: standard input has no name to tell its format by: add "
         "--format; see tarn load --help\n"},
        {{"load", "a.b", "x.csv.gz"},
         "tarn: x.csv.gz is compressed: unpack it, or pipe it through standard input (-) with "
         "--format; see tarn load --help\n"},
        {{"table", "create", "a.b"},
         "tarn: table create needs one of --columns, --like, "
         "--schema-file, --from-file; see tarn table create --help\n"},
        {{"table", "alter", "a.b", "--first"},
         "tarn: --first belongs behind --add-column or --move-column; see tarn table alter "
         "--help\n"},
        {{"table", "alter", "a.b", "--add-column=x"},
         "tarn: --add-column \"x\": expected a name and a type; see tarn table alter --help\n"},
        {{"--bogus"}, "tarn: unknown option --bogus; see tarn --help\n"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        const char *const *w = cases[i].words;
        struct run run = fake_run(t, &fake, w[0], w[1], w[2], w[3], NULL);
        expect_str(run.err, cases[i].message);
        expect_int(run.code, 2);
        expect_str(run.out, "");
    }
}

TARN_TEST(cli_usage, what_is_not_there_yet_says_so)
{
    SERVE;
    static const char *const names[] = {"orphans", "reconcile", "doctor", "user", "backup"};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        struct run run = fake_run(t, &fake, names[i], "list", "--any=x", NULL);
        expect_str(run.err, tarn_arena_printf(t->arena,
                                              "tarn: %s: this version of Tarn does not have it "
                                              "yet\n",
                                              names[i]));
        expect_int(run.code, 1);
    }
    struct run run = fake_run(t, &fake, "scan", "a.b$files", NULL);
    expect_contains(run.err,
                    "a system table (a.b$files): this version of Tarn does not have it yet\n");
    expect_int(run.code, 1);
}

TARN_TEST(cli_usage, no_command_is_there_and_not_yet_there)
{
    (void)t;
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++)
        for (const struct tarn_cli_command *other = c + 1; other->name != NULL; other++)
            expect_true(strcmp(c->name, other->name) != 0);
}

TARN_TEST(cli_usage, help_is_made_from_the_tables)
{
    SERVE;
    struct run run = fake_run(t, &fake, "help", NULL);
    expect_int(run.code, 0);
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++)
        expect_contains(run.out, c->name);
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++) {
        char first[32];
        if (c->run == NULL)
            continue;
        size_t size = strcspn(c->name, " ");
        snprintf(first, sizeof first, "%.*s", (int)size, c->name);
        run = fake_run(t, &fake, first, c->name[size] == ' ' ? c->name + size + 1 : "--help",
                       "--help", NULL);
        expect_int(run.code, 0);
        expect_str(run.err, "");
        expect_contains(run.out, tarn_arena_printf(t->arena, "usage: tarn %s", c->name));
        for (const struct tarn_cli_option *o = c->options; o != NULL && o->name != NULL; o++)
            expect_contains(run.out, tarn_arena_printf(t->arena, "--%s", o->name));
    }
    run = fake_run(t, &fake, "help", "db", NULL);
    expect_int(run.code, 0);
    expect_contains(run.out, "db drop");
    run = fake_run(t, &fake, "--version", NULL);
    expect_str(run.out, "tarn " TARN_VERSION "\n");
}

/* --- errors --- */

TARN_TEST(cli_error, is_one_line_with_the_advice_unless_it_was_said)
{
    SERVE;
    fake_fails(&fake, "CatalogService/GetTable",
               tarn_status_new(TARN_TABLE_NOT_FOUND, "table a.b does not exist\n\033[31m"));
    fake_fails(&fake, "CatalogService/GetDatabase",
               tarn_status_new(TARN_DATABASE_NOT_FOUND, "no database x; the nearest is y"));
    struct run run = fake_run(t, &fake, "table", "show", "a.b", NULL);
    expect_str(run.err, "tarn: table a.b does not exist\\n\\x1b[31m; see tarn table list\n");
    expect_int(run.code, 1);
    run = fake_run(t, &fake, "db", "show", "x", NULL);
    expect_str(run.err, "tarn: no database x; the nearest is y\n");
    run = fake_run(t, &fake, "-v", "db", "show", "x", NULL);
    expect_contains(run.err, "reason DATABASE_NOT_FOUND, code NOT_FOUND, request ");
}

TARN_TEST(cli_error, time_is_up)
{
    SERVE;
    Tarn__V1__GetStatusResponse status = TARN__V1__GET_STATUS_RESPONSE__INIT;
    fake_answers(&fake, "AdminService/GetStatus", &status.base);
    struct run run = fake_run(t, &fake, "status", "--timeout", "1 ms", NULL);
    if (run.code != 0) /* it may be fast enough */
        expect_contains(run.err, "tarn: ");
}

/* --- databases and tables --- */

TARN_TEST(cli_db, lists_pages)
{
    SERVE;
    Tarn__V1__Database one = TARN__V1__DATABASE__INIT;
    Tarn__V1__Database *list[] = {&one};
    Tarn__V1__ListDatabasesResponse answer = TARN__V1__LIST_DATABASES_RESPONSE__INIT;
    one.name = bytes("shop");
    one.table_count = 3;
    answer.databases = list;
    answer.n_databases = 1;
    fake_answers(&fake, "CatalogService/ListDatabases", &answer.base);
    fake.terminal = true;
    struct run run = fake_run(t, &fake, "db", "list", NULL);
    expect_str(run.out, "DATABASE  TABLES  COMMENT\nshop           3  -\n");
    fake.terminal = false;
    run = fake_run(t, &fake, "db", "list", NULL);
    expect_str(run.out, "[\n{\"name\":\"shop\",\"tables\":3,\"comment\":null}\n]\n");
    run = fake_run(t, &fake, "-o", "csv", "db", "list", NULL);
    expect_str(run.out, "name,tables,comment\nshop,3,\n");
}

TARN_TEST(cli_db, create_sends_options)
{
    SERVE;
    Tarn__V1__Database made = TARN__V1__DATABASE__INIT;
    made.name = bytes("x");
    fake_answers(&fake, "CatalogService/CreateDatabase", &made.base);
    fake.terminal = true;
    struct run run = fake_run(t, &fake, "db", "create", "x", "--option", "a=b=c", "--comment=hi",
                              "--if-not-exists", NULL);
    expect_str(run.out, "created database x\n");
    TARN_OWN(drop_message) Tarn__V1__CreateDatabaseRequest *got = (void *)fake_request(
        &fake, "CatalogService/CreateDatabase", 0, &tarn__v1__create_database_request__descriptor);
    expect_binary(got->name, "x");
    expect_int(got->n_options, 1);
    expect_binary(got->options[0]->key, "a");
    expect_binary(got->options[0]->value, "b=c");
    expect_binary(got->comment, "hi");
    expect_true(got->ignore_if_exists);
    expect_true(tarn_uuid_valid(tarn_slice_str(got->request_id)));
}

static void fake_view(struct fake *fake, const char *path)
{
    Tarn__V1__CatalogObject object = TARN__V1__CATALOG_OBJECT__INIT;
    Tarn__V1__ObjectRef ref = TARN__V1__OBJECT_REF__INIT;
    ref.kind = TARN__V1__OBJECT_KIND__VIEW;
    ref.database = bytes("a");
    ref.name = bytes("v");
    object.object = &ref;
    object.body_json = bytes("{\"query\":\"q\",\"fields\":[]}");
    fake_answers(fake, path, &object.base);
}

TARN_TEST(cli_view, alter_keeps_the_order_of_changes)
{
    SERVE;
    fake_view(&fake, "CatalogService/AlterObject");
    fake.terminal = true;
    struct run run = fake_run(t, &fake, "view", "alter", "a.v", "--add-dialect", "s=x=1", "--reset",
                              "k", "--comment", "c", "--set", "k=v", "--drop-dialect", "t", NULL);
    expect_str(run.out, "altered view a.v\n");
    TARN_OWN(drop_message) Tarn__V1__AlterObjectRequest *got = (void *)fake_request(
        &fake, "CatalogService/AlterObject", 0, &tarn__v1__alter_object_request__descriptor);
    expect_int(got->object->kind, TARN__V1__OBJECT_KIND__VIEW);
    expect_int(got->n_changes, 5);
    expect_binary(got->changes[0]->add_part->key, "s");
    expect_binary(got->changes[0]->add_part->value, "x=1");
    expect_binary(got->changes[1]->remove_option, "k");
    expect_binary(got->changes[2]->set_comment, "c");
    expect_binary(got->changes[3]->set_option->value, "v");
    expect_binary(got->changes[4]->drop_part, "t");
    run = fake_run(t, &fake, "view", "alter", "a.v", NULL);
    expect_int(run.code, 2);
    run = fake_run(t, &fake, "view", "alter", "a.v", "--add-definition", "a={}", NULL);
    expect_int(run.code, 2);
}

TARN_TEST(cli_view, shows_its_body_as_it_was_made)
{
    SERVE;
    fake_view(&fake, "CatalogService/GetObject");
    fake_view(&fake, "CatalogService/RenameObject");
    struct run run = fake_run(t, &fake, "-o", "jsonl", "view", "show", "a.v", NULL);
    expect_contains(run.out, "\"body\":{\"query\":\"q\",\"fields\":[]}");
    fake.terminal = true;
    run = fake_run(t, &fake, "function", "rename", "x.f", "a.v", NULL);
    expect_str(run.out, "renamed: it is now function a.v\n");
    TARN_OWN(drop_message) Tarn__V1__RenameObjectRequest *got = (void *)fake_request(
        &fake, "CatalogService/RenameObject", 0, &tarn__v1__rename_object_request__descriptor);
    expect_int(got->object->kind, TARN__V1__OBJECT_KIND__FUNCTION);
    expect_binary(got->to_database, "a");
    expect_binary(got->to_name, "v");
    run = fake_run(t, &fake, "view", "create", "a.v", NULL);
    expect_int(run.code, 2);
    run = fake_run(t, &fake, "view", "create", "a.v", "--file", "/no/such", NULL);
    expect_contains(run.err, "/no/such");
}

static void fake_table(struct fake *fake, const char *path)
{
    Tarn__V1__Table table = TARN__V1__TABLE__INIT;
    Tarn__V1__Field field = TARN__V1__FIELD__INIT;
    Tarn__V1__Field *fields[] = {&field};
    Tarn__V1__Option option = TARN__V1__OPTION__INIT;
    Tarn__V1__Option *options[] = {&option};
    ProtobufCBinaryData key = bytes("id");

    field.name = bytes("id");
    field.type = (char *)(uintptr_t) "BIGINT NOT NULL";
    option.key = bytes("bucket");
    option.value = bytes("1");
    table.database = bytes("a");
    table.name = bytes("b.c");
    table.fields = fields;
    table.n_fields = 1;
    table.primary_keys = &key;
    table.n_primary_keys = 1;
    table.options = table.defaults_applied = options;
    table.n_options = table.n_defaults_applied = 1;
    fake_answers(fake, path, &table.base);
}

TARN_TEST(cli_table, create_says_what_was_chosen)
{
    SERVE;
    fake_table(&fake, "CatalogService/CreateTable");
    fake.terminal = true;
    struct run run = fake_run(t, &fake, "table", "create", "a.b.c", "--columns",
                              "id BIGINT NOT NULL", "--primary-key", "id, `x,y`", NULL);
    expect_str(run.out, "created table a.b.c, schema 0\n"
                        "bucket = 1 (chosen for you; --option says otherwise)\n");
    TARN_OWN(drop_message) Tarn__V1__CreateTableRequest *got = (void *)fake_request(
        &fake, "CatalogService/CreateTable", 0, &tarn__v1__create_table_request__descriptor);
    expect_binary(got->database, "a"); /* the first dot divides */
    expect_binary(got->table, "b.c");
    expect_int(got->n_primary_keys, 2);
    expect_binary(got->primary_keys[1], "x,y");
    fake.terminal = false;
    run = fake_run(t, &fake, "table", "create", "a.b.c", "--columns=id INT", "-ojsonl", NULL);
    expect_contains(run.out, "\"defaults_applied\":{\"bucket\":\"1\"}");
    expect_contains(run.out, "\"columns\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"");
}

TARN_TEST(cli_table, alter_keeps_the_order_of_changes)
{
    SERVE;
    fake_table(&fake, "CatalogService/AlterTable");
    struct run run = fake_run(
        t, &fake, "table", "alter", "a.b", "--set", "k=v", "--add-column", "`n m` DECIMAL(3, 1)",
        "--after", "id", "--reset", "q", "--rename-column", "x=y", "--alter-type", "z BIGINT",
        "--column-comment", "z=", "--comment", "all", "--drop-column", "w", NULL);
    expect_int(run.code, 0);
    TARN_OWN(drop_message) Tarn__V1__AlterTableRequest *got = (void *)fake_request(
        &fake, "CatalogService/AlterTable", 0, &tarn__v1__alter_table_request__descriptor);
    static const int order[] = {1, 4, 2, 6, 7, 7, 3, 5};
    expect_int(got->n_changes, TARN_COUNT_OF(order));
    for (size_t i = 0; i < got->n_changes; i++)
        expect_int(got->changes[i]->change_case, order[i]);
    expect_binary(got->changes[1]->add_column->field->name, "n m");
    expect_str(got->changes[1]->add_column->field->type, "DECIMAL(3, 1)");
    expect_binary(got->changes[1]->add_column->after, "id");
    expect_int(got->changes[4]->alter_column->_description_case, 0);
    expect_true(got->changes[5]->alter_column->_description_case != 0);
}

TARN_TEST(cli_table, alter_reaches_into_columns)
{
    SERVE;
    fake_table(&fake, "CatalogService/AlterTable");
    struct run run =
        fake_run(t, &fake, "table", "alter", "a.b", "--add-column", "r.`x.y`.n ROW<a INT>",
                 "--before", "m", "--move-column", "k", "--last", "--drop-column", "r.x",
                 "--default", "r.s=a=b", "--not-null", "l.element", "--drop-default=v",
                 "--drop-primary-key", "--rename-column", "`a=b`=c", NULL);
    expect_str(run.err, "");
    TARN_OWN(drop_message) Tarn__V1__AlterTableRequest *got = (void *)fake_request(
        &fake, "CatalogService/AlterTable", 0, &tarn__v1__alter_table_request__descriptor);
    static const int order[] = {4, 9, 8, 7, 7, 7, 10, 6};
    expect_int(got->n_changes, TARN_COUNT_OF(order));
    for (size_t i = 0; i < got->n_changes; i++)
        expect_int(got->changes[i]->change_case, order[i]);
    const Tarn__V1__AddColumn *add = got->changes[0]->add_column;
    expect_int(add->n_parent, 2);
    expect_binary(add->parent[1], "x.y");
    expect_binary(add->field->name, "n");
    expect_str(add->field->type, "ROW<a INT>");
    expect_binary(add->before, "m");
    expect_true(got->changes[1]->move_column->last);
    expect_binary(got->changes[2]->drop_nested_column->parent[0], "r");
    expect_binary(got->changes[3]->alter_column->default_value, "a=b");
    expect_true(got->changes[4]->alter_column->_nullable_case != 0);
    expect_false(got->changes[4]->alter_column->nullable);
    expect_true(got->changes[5]->alter_column->drop_default);
    expect_binary(got->changes[7]->rename_column->from, "a=b");
    run = fake_run(t, &fake, "table", "alter", "a.b", "--drop-column", "r..x", NULL);
    expect_contains(run.err, "--drop-column: \"r..x\": expected a column");
    run = fake_run(t, &fake, "table", "alter", "a.b", "--default", "x", NULL);
    expect_contains(run.err, "expected NAME=TEXT");
}

TARN_TEST(cli_table, create_from_a_file_sends_it)
{
    SERVE;
    Tarn__V1__InferResponse columns = TARN__V1__INFER_RESPONSE__INIT;
    Tarn__V1__Field field = TARN__V1__FIELD__INIT;
    Tarn__V1__Field *fields[] = {&field};
    const char *path = tarn_arena_printf(t->arena, "%s/x.parquet", tarn_test_dir(t));
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};

    tarn_buf_add_zeros(&body, 3 << 20);
    tarn_test_write_file(path, tarn_buf_slice(&body));
    field.name = bytes("c");
    field.type = (char *)(uintptr_t) "INT";
    columns.fields = fields;
    columns.n_fields = 1;
    fake_table(&fake, "CatalogService/CreateTable");
    fake_answers(&fake, "DataService/Infer", &columns.base);
    struct run run = fake_run(t, &fake, "table", "create", "a.b", "--from-file", path, NULL);
    expect_str(run.err, "");
    expect_int(run.code, 0);
    expect_int(fake_request_count(&fake, "DataService/Infer"), 13); /* its head, 12 chunks */
    TARN_OWN(drop_message) Tarn__V1__CreateTableRequest *got = (void *)fake_request(
        &fake, "CatalogService/CreateTable", 0, &tarn__v1__create_table_request__descriptor);
    expect_int(got->n_fields, 1);
    expect_binary(got->fields[0]->name, "c");
}

/* --- load --- */

static void fake_ingest(struct fake *fake)
{
    Tarn__V1__IngestResponse answer = TARN__V1__INGEST_RESPONSE__INIT;
    Tarn__V1__BadRow bad = TARN__V1__BAD_ROW__INIT;
    Tarn__V1__BadRow *list[] = {&bad};
    bad.file = bytes("x.csv");
    bad.line = 3;
    bad.column = bytes("n");
    bad.reason = bytes("\"q\" is no INT");
    answer.snapshot_id = 7;
    answer.rows = 2;
    answer.files_written = 1;
    answer.bytes_written = 2048;
    answer.bad_row_count = 2;
    answer.bad_rows = list;
    answer.n_bad_rows = 1;
    fake_answers(fake, "DataService/Ingest", &answer.base);
}

TARN_TEST(cli_load, sends_start_files_and_bytes)
{
    SERVE;
    const char *dir = tarn_test_dir(t);
    const char *csv = tarn_arena_printf(t->arena, "%s/x.tsv", dir);
    const char *empty = tarn_arena_printf(t->arena, "%s/y.TSV", dir);
    tarn_test_write_file(csv, tarn_slice_str("a\tb\n1\t2\n"));
    tarn_test_write_file(empty, tarn_slice_str(""));
    fake_ingest(&fake);
    fake.terminal = true;
    struct run run =
        fake_run(t, &fake, "load", "a.b", csv, empty, "--mode", "append", "--null=NA", "--null=-",
                 "--skip-bad=5", "--commit-user=me", "--commit-id=9", "--op-column=op", NULL);
    expect_int(run.code, 0);
    expect_str(run.out, "2 rows in 1 file (2.0 KiB), snapshot 7\n2 bad rows were left out\n");
    expect_contains(run.err, "x.csv:3: n: \"q\" is no INT\n... and 1 more\n");
    expect_int(fake_request_count(&fake, "DataService/Ingest"), 4);
    TARN_OWN(drop_message) Tarn__V1__IngestRequest *start =
        (void *)fake_request(&fake, "DataService/Ingest", 0, &tarn__v1__ingest_request__descriptor);
    expect_int(start->part_case, TARN__V1__INGEST_REQUEST__PART_START);
    expect_int(start->start->mode, TARN__V1__LOAD_MODE__APPEND_ROWS);
    expect_binary(start->start->delimiter, "\t");
    expect_int(start->start->n_null_texts, 2);
    expect_binary(start->start->null_texts[1], "-");
    expect_int(start->start->skip_bad_max, 5);
    expect_str(start->start->commit_user, "me");
    expect_int(start->start->commit_identifier, 9);
    expect_binary(start->start->op_column, "op");
    TARN_OWN(drop_message) Tarn__V1__IngestRequest *head =
        (void *)fake_request(&fake, "DataService/Ingest", 1, &tarn__v1__ingest_request__descriptor);
    expect_binary(head->file->name, csv);
    expect_int(head->file->format, TARN__V1__DATA_FORMAT__CSV);
    TARN_OWN(drop_message) Tarn__V1__IngestRequest *data =
        (void *)fake_request(&fake, "DataService/Ingest", 2, &tarn__v1__ingest_request__descriptor);
    expect_binary(data->data, "a\tb\n1\t2\n");
}

TARN_TEST(cli_load, reads_standard_input_and_answers_programs)
{
    SERVE;
    int pipe_fds[2];
    expect_int(pipe(pipe_fds), 0);
    expect_int(write(pipe_fds[1], "{}\n", 3), 3);
    close(pipe_fds[1]);
    fake_ingest(&fake);
    fake.in_fd = pipe_fds[0];
    struct run run = fake_run(t, &fake, "load", "a.b", "-", "--format=jsonl", "-ojsonl", NULL);
    close(pipe_fds[0]);
    expect_int(run.code, 0);
    expect_str(
        run.out,
        "{\"snapshot\":7,\"rows\":2,\"files\":1,\"bytes\":2048,\"bad_row_count\":2,"
        "\"repeated\":false,\"backlog\":null,\"bad_rows\":[{\"file\":\"x.csv\",\"line\":3,\"column\":\"n\","
        "\"reason\":\"\\\"q\\\" is no INT\"}]}\n");
    TARN_OWN(drop_message) Tarn__V1__IngestRequest *head =
        (void *)fake_request(&fake, "DataService/Ingest", 1, &tarn__v1__ingest_request__descriptor);
    expect_binary(head->file->name, "<stdin>");
    expect_int(head->file->format, TARN__V1__DATA_FORMAT__JSONL);
}

TARN_TEST(cli_load, a_refusal_while_sending_is_the_server_s_word)
{
    SERVE;
    const char *path = tarn_arena_printf(t->arena, "%s/x.csv", tarn_test_dir(t));
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    tarn_buf_add_zeros(&body, 20 << 20);
    tarn_test_write_file(path, tarn_buf_slice(&body));
    fake_early(&fake, "DataService/Ingest");
    fake_fails(&fake, "DataService/Ingest",
               tarn_status_new(TARN_ROW_INVALID, "x.csv:1: id: \"\\0\" is no INT"));
    struct run run = fake_run(t, &fake, "load", "a.b", path, NULL);
    expect_int(run.code, 1);
    expect_str(run.err, "tarn: x.csv:1: id: \"\\0\" is no INT; correct the line, or load with "
                        "--skip-bad N\n");
}

TARN_TEST(cli_load, what_is_given_and_says_nothing_is_an_error)
{
    SERVE;
    const char *path = tarn_arena_printf(t->arena, "%s/x.csv", tarn_test_dir(t));
    tarn_test_write_file(path, tarn_slice_str("a\n"));
    struct run run = fake_run(t, &fake, "load", "a.b", path, "--delimiter", "", NULL);
    expect_int(run.code, 2);
    expect_contains(run.err, "--delimiter \"\": expected one ASCII character");
    run = fake_run(t, &fake, "load", "a.b", path, "--mode=append", "--mode=upsert", NULL);
    expect_int(run.code, 2);
    expect_contains(run.err, "--mode is given twice: \"append\" and \"upsert\"");
}

TARN_TEST(cli_load, files_are_looked_at_before_anything_is_sent)
{
    SERVE;
    fake_ingest(&fake);
    struct run run = fake_run(t, &fake, "load", "a.b", "/nonexistent/x.csv", NULL);
    expect_int(run.code, 1);
    expect_contains(run.err, "/nonexistent/x.csv: No such file or directory; nothing was sent");
    run = fake_run(t, &fake, "load", "a.b", "/tmp", "--format=csv", NULL);
    expect_contains(run.err, "/tmp is a folder");
    expect_int(fake_request_count(&fake, "DataService/Ingest"), 0);
}

/* --- scan --- */

static void fake_scan(struct fake *fake, const char *const *pieces, bool summary)
{
    for (size_t i = 0; pieces[i] != NULL; i++) {
        Tarn__V1__ScanResponse piece = TARN__V1__SCAN_RESPONSE__INIT;
        piece.data = bytes(pieces[i]);
        fake_answers(fake, "DataService/Scan", &piece.base);
    }
    Tarn__V1__ScanSummary sum = TARN__V1__SCAN_SUMMARY__INIT;
    Tarn__V1__ScanResponse last = TARN__V1__SCAN_RESPONSE__INIT;
    sum.snapshot_id = 4;
    sum.rows = 3;
    last.summary = &sum;
    if (summary)
        fake_answers(fake, "DataService/Scan", &last.base);
}

TARN_TEST(cli_scan, aligns_a_table_from_pieces)
{
    SERVE;
    fake_scan(
        &fake,
        (const char *const[]){"id,na", "me,n\n1,\"a,\n", "\033\",\n22,\"\",5\n", "3,,\n", NULL},
        true);
    fake.terminal = true;
    struct run run = fake_run(t, &fake, "scan", "a.b", NULL);
    expect_str(run.out, "id  name         n\n"
                        "--  --------  ----\n"
                        " 1  a,\\n\\x1b  null\n"
                        "22               5\n"
                        " 3  null      null\n"
                        "(3 rows, snapshot 4)\n");
    TARN_OWN(drop_message) Tarn__V1__ScanRequest *got =
        (void *)fake_request(&fake, "DataService/Scan", 0, &tarn__v1__scan_request__descriptor);
    expect_int(got->format, TARN__V1__DATA_FORMAT__CSV);
    expect_int(got->_limit_case, 0);
    expect_null(got->version);
}

TARN_TEST(cli_scan, makes_an_array_of_json_lines)
{
    SERVE;
    fake_scan(&fake, (const char *const[]){"{\"a\"", ":1}", "\n{\"a\":2}\n", "{\"a\":3}\n", NULL},
              true);
    struct run run = fake_run(t, &fake, "scan", "a.b", "-o", "json", "--limit", "0", "--snapshot=3",
                              "--where", "a > 1", "--columns=a", NULL);
    expect_str(run.out, "[\n{\"a\":1},\n{\"a\":2},\n{\"a\":3}\n]\n");
    TARN_OWN(drop_message) Tarn__V1__ScanRequest *got =
        (void *)fake_request(&fake, "DataService/Scan", 0, &tarn__v1__scan_request__descriptor);
    expect_int(got->format, TARN__V1__DATA_FORMAT__JSONL);
    expect_true(got->_limit_case != 0);
    expect_int(got->limit, 0);
    expect_int(got->version->snapshot_id, 3);
    expect_str(got->where, "a > 1");
    expect_int(got->n_columns, 1);
    run = fake_run(t, &fake, "scan", "a.b", NULL); /* no terminal: JSON lines */
    expect_str(run.out, "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
}

TARN_TEST(cli_scan, of_nothing)
{
    SERVE;
    fake_scan(&fake, (const char *const[]){NULL}, true);
    struct run run = fake_run(t, &fake, "scan", "a.b", "-ojson", NULL);
    expect_str(run.out, "[]\n");
}

TARN_TEST(cli_scan, writes_a_file_only_when_it_is_whole)
{
    SERVE;
    const char *dir = tarn_test_dir(t);
    const char *path = tarn_arena_printf(t->arena, "%s/out.parquet", dir);
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    fake_scan(&fake, (const char *const[]){"PAR1", "rest", NULL}, true);
    fake.terminal = true;
    struct run run = fake_run(t, &fake, "scan", "a.b", "--to", path, NULL);
    expect_int(run.code, 0);
    tarn_test_read_file(path, &body);
    expect_slice(tarn_buf_slice(&body), "PAR1rest");
    TARN_OWN(drop_message) Tarn__V1__ScanRequest *got =
        (void *)fake_request(&fake, "DataService/Scan", 0, &tarn__v1__scan_request__descriptor);
    expect_int(got->format, TARN__V1__DATA_FORMAT__PARQUET);
    run = fake_run(t, &fake, "scan", "a.b", "-o", "arrow", NULL);
    expect_int(run.code, 2);
    expect_contains(run.err, "not for a terminal");
}

TARN_TEST(cli_scan, leaves_no_half_file)
{
    SERVE;
    const char *path = tarn_arena_printf(t->arena, "%s/out.csv", tarn_test_dir(t));
    fake_scan(&fake, (const char *const[]){"a\n1\n", NULL}, false);
    fake_fails(&fake, "DataService/Scan", tarn_status_new(TARN_WORKER_LOST, "worker w ended"));
    struct run run = fake_run(t, &fake, "scan", "a.b", "--to", path, NULL);
    expect_int(run.code, 1);
    expect_contains(run.err, "worker w ended");
    expect_true(access(path, F_OK) != 0);
}

/* --- the rest --- */

TARN_TEST(cli_compact, names_partitions_and_fails_where_tasks_did)
{
    SERVE;
    Tarn__V1__CompactProgress p = TARN__V1__COMPACT_PROGRESS__INIT;
    p.tasks_total = 2;
    p.tasks_done = 1;
    p.tasks_failed = 1;
    p.failure = (char *)(uintptr_t) "out of memory";
    fake_answers(&fake, "MaintenanceService/Compact", &p.base);
    struct run run = fake_run(t, &fake, "compact", "a.b", "--full", "--wait", "--partition",
                              "dt=2026-01-31,h=null,q='null'", "-ojsonl", NULL);
    expect_int(run.code, 1);
    expect_contains(run.err, "1 of 2 tasks failed: out of memory");
    expect_contains(run.out, "\"tasks_failed\":1");
    TARN_OWN(drop_message) Tarn__V1__CompactRequest *got = (void *)fake_request(
        &fake, "MaintenanceService/Compact", 0, &tarn__v1__compact_request__descriptor);
    expect_true(got->full && got->wait && !got->dry_run);
    expect_int(got->n_partition, 3);
    expect_binary(got->partition[0]->value, "2026-01-31");
    expect_true(got->partition[1]->is_null);
    expect_false(got->partition[2]->is_null);
    expect_binary(got->partition[2]->value, "null");
}

TARN_TEST(cli_rescale, waits_unless_told_otherwise_and_wants_a_number)
{
    SERVE;
    Tarn__V1__CompactProgress p = TARN__V1__COMPACT_PROGRESS__INIT;
    fake_answers(&fake, "MaintenanceService/Rescale", &p.base);
    struct run run = fake_run(t, &fake, "rescale", "a.b", "--buckets", "16", "--partition",
                              "dt=2026-01-31", "-otable", NULL);
    expect_int(run.code, 0);
    expect_contains(run.out, "nothing to rescale");
    TARN_OWN(drop_message) Tarn__V1__RescaleRequest *got = (void *)fake_request(
        &fake, "MaintenanceService/Rescale", 0, &tarn__v1__rescale_request__descriptor);
    expect_int(got->buckets, 16);
    expect_int(got->n_partition, 1);
    expect_true(got->wait && !got->dry_run);
    run = fake_run(t, &fake, "rescale", "a.b", NULL);
    expect_int(run.code, 2);
    expect_contains(run.err, "--buckets N");
    run = fake_run(t, &fake, "jobs", "--cancel", NULL);
    expect_int(run.code, 2);
    expect_contains(run.err, "which JOB");
}

static void fake_reports(struct fake *fake)
{
    Tarn__V1__Finding finding = TARN__V1__FINDING__INIT;
    Tarn__V1__Finding *findings[] = {&finding};
    Tarn__V1__AdoptReport r = TARN__V1__ADOPT_REPORT__INIT;
    finding.kind = TARN__V1__FINDING__KIND__KIND_DAMAGE;
    finding.where = bytes("a.db/t/snapshot/snapshot-2");
    finding.what = bytes("it is gone");
    finding.advice = bytes("find it");
    r.database = bytes("a");
    r.name = bytes("t");
    r.path = bytes("a.db/t");
    r.outcome = TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_ADOPTED;
    r.compaction = TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_WRITERS;
    r.snapshots = 3;
    r.files = -1;
    r.damages = 1;
    r.findings = findings;
    r.n_findings = 1;
    fake_answers(fake, "CatalogService/Adopt", &r.base);
    Tarn__V1__AdoptReport none = TARN__V1__ADOPT_REPORT__INIT;
    none.database = bytes("a");
    none.name = bytes("junk");
    none.path = bytes("a.db/junk");
    none.outcome = TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_NO_TABLE;
    none.failure = bytes("it has no schema");
    fake_answers(fake, "CatalogService/Adopt", &none.base);
}

TARN_TEST(cli_adopt, says_what_was_found_and_fails_where_that_is_damaged)
{
    SERVE;
    fake_reports(&fake);
    struct run run = fake_run(t, &fake, "adopt", "a", "b.c", "--check", "--files=all",
                              "--compaction", "writers", "-ojsonl", NULL);
    expect_int(run.code, 1);
    expect_contains(run.err, "1 of 2 folders are damaged, 0 could not be taken");
    expect_contains(run.out, "\"table\":\"t\"");
    expect_contains(run.out, "\"snapshots\":3");
    expect_contains(run.out, "\"files\":null");
    expect_contains(run.out, "{\"kind\":\"damage\",\"where\":\"a.db/t/snapshot/snapshot-2\","
                             "\"what\":\"it is gone\",\"advice\":\"find it\"}");
    expect_contains(run.out, "\"outcome\":\"no_table\"");
    TARN_OWN(drop_message) Tarn__V1__AdoptRequest *got = (void *)fake_request(
        &fake, "CatalogService/Adopt", 0, &tarn__v1__adopt_request__descriptor);
    expect_int(got->n_targets, 2);
    expect_binary(got->targets[1], "b.c");
    expect_true(got->check_only);
    expect_int(got->files, TARN__V1__ADOPT_REQUEST__FILES__FILES_ALL);
    expect_int(got->compaction, TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_WRITERS);
    fake.terminal = true;
    run = fake_run(t, &fake, "adopt", "--all", NULL);
    expect_contains(run.out, "damage: a.db/t/snapshot/snapshot-2: it is gone; find it\n");
    expect_contains(run.out, "no table: a.db/junk: it has no schema\n");
    TARN_OWN(drop_message) Tarn__V1__AdoptRequest *all = (void *)fake_request(
        &fake, "CatalogService/Adopt", 1, &tarn__v1__adopt_request__descriptor);
    expect_int(all->n_targets, 0);
    expect_false(all->check_only);
    expect_int(all->compaction, 0);
    expect_int(all->files, 0);
}

TARN_TEST(cli_adopt, wants_to_be_told_what)
{
    SERVE;
    struct run run = fake_run(t, &fake, "adopt", NULL);
    expect_int(run.code, 2);
    expect_contains(run.err, "name a target, or --all");
    run = fake_run(t, &fake, "adopt", "--all", "a", NULL);
    expect_int(run.code, 2);
    run = fake_run(t, &fake, "adopt", "a", "--compaction", "me", NULL);
    expect_int(run.code, 2);
    expect_contains(run.err, "it is tarn or writers");
    run = fake_run(t, &fake, "adopt", "a", "--files", "some", NULL);
    expect_int(run.code, 2);
    expect_int(fake_request_count(&fake, "CatalogService/Adopt"), 0);
}

TARN_TEST(cli_plan, shows_its_summary)
{
    SERVE;
    Tarn__V1__PlanResponse answer = TARN__V1__PLAN_RESPONSE__INIT;
    Tarn__V1__PlanSummary summary = TARN__V1__PLAN_SUMMARY__INIT;
    summary.files_seen = 10;
    summary.pruned_by_stats = 4;
    answer.summary = &summary;
    fake_answers(&fake, "TableService/Plan", &answer.base);
    struct run run = fake_run(t, &fake, "plan", "a.b", "-ojsonl", "--explain", NULL);
    expect_contains(run.out, "\"files_seen\":10");
    expect_contains(run.out, "\"pruned_by_stats\":4");
    expect_contains(run.out, "\"split_list\":[]");
}

TARN_TEST(cli_smoke, names_the_step_that_fails_and_cleans_up)
{
    SERVE;
    Tarn__V1__GetStatusResponse status = TARN__V1__GET_STATUS_RESPONSE__INIT;
    Tarn__V1__WorkerInfo worker = TARN__V1__WORKER_INFO__INIT;
    Tarn__V1__WorkerInfo *workers[] = {&worker};
    Tarn__V1__Database database = TARN__V1__DATABASE__INIT;
    Tarn__V1__DropDatabaseResponse dropped = TARN__V1__DROP_DATABASE_RESPONSE__INIT;
    status.workers = workers;
    status.n_workers = 1;
    fake_answers(&fake, "AdminService/GetStatus", &status.base);
    fake_answers(&fake, "CatalogService/CreateDatabase", &database.base);
    fake_answers(&fake, "CatalogService/DropDatabase", &dropped.base);
    fake_fails(&fake, "CatalogService/CreateTable",
               tarn_status_new(TARN_PERMISSION_DENIED, "no CREATE on it"));
    struct run run = fake_run(t, &fake, "smoke", "-ojsonl", NULL);
    expect_int(run.code, 1);
    expect_contains(run.err, "smoke: \"create a table\" failed: no CREATE on it; ask an "
                             "administrator");
    expect_contains(run.out, "{\"step\":\"create a database\",\"ok\":true");
    expect_contains(run.out, "{\"step\":\"create a table\",\"ok\":false");
    expect_int(fake_request_count(&fake, "CatalogService/DropDatabase"), 1);
}
