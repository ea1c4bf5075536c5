#include "ask.h"
#include "print.h"

#include "tarn/v1/admin.pb-c.h"
#include "tarn/v1/catalog.pb-c.h"
#include "tarn/v1/data.pb-c.h"

/*
 * tarn smoke: the first minute of a user, by a program. Each step is timed; the first that fails ends
 * it, after what was made is dropped again.
 */

static const char smoke_rows[] = "id,name\n1,one\n2,\"two, or \"\"zwei\"\"\"\n3,\n";
static const char smoke_answer[] = "id,name\n1,one\n2,\"two, or \"\"zwei\"\"\"\n3,\n";

struct smoke {
    struct tarn_cli *cli;
    Tarn__V1__TableRef table;
    char *database;
    struct tarn_cli_list *steps;
    bool made_database;
};

static struct tarn_status *ask_status(struct smoke *smoke)
{
    Tarn__V1__GetStatusRequest request = TARN__V1__GET_STATUS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__GetStatusResponse *answer = NULL;
    TARN_TRY(tarn_cli_ask(smoke->cli, "AdminService/GetStatus", &request.base,
                          &tarn__v1__get_status_response__descriptor, &answer));
    if (answer->n_workers == 0)
        return tarn_status_new(TARN_NO_WORKER, "the daemon has no worker");
    return TARN_OK;
}

static struct tarn_status *create_database(struct smoke *smoke)
{
    Tarn__V1__CreateDatabaseRequest request = TARN__V1__CREATE_DATABASE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Database *answer = NULL;
    request.name = smoke->table.database;
    request.comment = tarn_cli_bytes_str("made by tarn smoke; may be dropped");
    request.request_id = tarn_cli_request_id(smoke->cli);
    smoke->made_database = true; /* it may be, also where the answer is lost */
    return tarn_cli_ask(smoke->cli, "CatalogService/CreateDatabase", &request.base,
                        &tarn__v1__database__descriptor, &answer);
}

static struct tarn_status *create_table(struct smoke *smoke)
{
    Tarn__V1__CreateTableRequest request = TARN__V1__CREATE_TABLE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Table *answer = NULL;
    ProtobufCBinaryData key = tarn_cli_bytes_str("id");
    request.database = smoke->table.database;
    request.table = smoke->table.table;
    request.columns_sql = tarn_cli_bytes_str("id BIGINT NOT NULL, name STRING");
    request.primary_keys = &key;
    request.n_primary_keys = 1;
    request.request_id = tarn_cli_request_id(smoke->cli);
    return tarn_cli_ask(smoke->cli, "CatalogService/CreateTable", &request.base,
                        &tarn__v1__table__descriptor, &answer);
}

static struct tarn_status *send_rows(struct smoke *smoke, struct tarn_client_stream *stream)
{
    Tarn__V1__IngestRequest request = TARN__V1__INGEST_REQUEST__INIT;
    Tarn__V1__IngestStart start = TARN__V1__INGEST_START__INIT;
    Tarn__V1__IngestFile file = TARN__V1__INGEST_FILE__INIT;

    start.table = &smoke->table;
    request.part_case = TARN__V1__INGEST_REQUEST__PART_START;
    request.start = &start;
    TARN_TRY(tarn_client_stream_send(stream, &request.base));
    file.name = tarn_cli_bytes_str("smoke.csv");
    file.format = TARN__V1__DATA_FORMAT__CSV;
    request.part_case = TARN__V1__INGEST_REQUEST__PART_FILE;
    request.file = &file;
    TARN_TRY(tarn_client_stream_send(stream, &request.base));
    TARN_TRY(tarn_client_stream_send_bytes(stream, TARN__V1__INGEST_REQUEST__PART_DATA,
                                           tarn_slice_str(smoke_rows)));
    return tarn_client_stream_done(stream);
}

static struct tarn_status *insert_rows(struct smoke *smoke)
{
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__IngestResponse *answer = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__IngestResponse *more = NULL;

    TARN_TRY(tarn_client_stream_open(smoke->cli->client, &smoke->cli->op, "DataService/Ingest",
                                     &stream));
    TARN_TRY(send_rows(smoke, stream));
    TARN_TRY(tarn_cli_next(stream, &tarn__v1__ingest_response__descriptor, &answer));
    if (answer == NULL)
        return tarn_status_new(TARN_INTERNAL, "the server answered with nothing");
    if (answer->rows != 3)
        return tarn_status_new(TARN_INTERNAL, "3 rows were sent, %" PRId64 " arrived",
                               answer->rows);
    return tarn_cli_next(stream, &tarn__v1__ingest_response__descriptor, &more);
}

static struct tarn_status *read_rows(struct smoke *smoke)
{
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};

    request.table = &smoke->table;
    request.format = TARN__V1__DATA_FORMAT__CSV;
    TARN_TRY(tarn_cli_ask_stream(smoke->cli, "DataService/Scan", &request.base, &stream));
    for (;;) {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ScanResponse *answer = NULL;
        TARN_TRY(tarn_cli_next(stream, &tarn__v1__scan_response__descriptor, &answer));
        if (answer == NULL)
            break;
        tarn_buf_add_slice(&got, tarn_cli_slice(answer->data));
    }
    if (!tarn_slice_is(tarn_buf_slice(&got), smoke_answer))
        return tarn_status_new(TARN_INTERNAL, "what was read is not what was inserted: %.200s",
                               tarn_buf_cstr(&got));
    return TARN_OK;
}

static struct tarn_status *drop_table(struct smoke *smoke)
{
    Tarn__V1__DropTableRequest request = TARN__V1__DROP_TABLE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DropTableResponse *answer = NULL;
    request.table = &smoke->table;
    request.request_id = tarn_cli_request_id(smoke->cli);
    return tarn_cli_ask(smoke->cli, "CatalogService/DropTable", &request.base,
                        &tarn__v1__drop_table_response__descriptor, &answer);
}

static struct tarn_status *drop_database(struct smoke *smoke)
{
    Tarn__V1__DropDatabaseRequest request = TARN__V1__DROP_DATABASE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DropDatabaseResponse *answer = NULL;
    request.name = smoke->table.database;
    request.cascade = true;
    request.ignore_if_missing = true;
    request.request_id = tarn_cli_request_id(smoke->cli);
    TARN_TRY(tarn_cli_ask(smoke->cli, "CatalogService/DropDatabase", &request.base,
                          &tarn__v1__drop_database_response__descriptor, &answer));
    smoke->made_database = false;
    return TARN_OK;
}

struct step {
    const char *name;
    struct tarn_status *(*run)(struct smoke *smoke);
};

static const struct step steps[] = {
    {"ask the daemon", ask_status},       {"create a database", create_database},
    {"create a table", create_table},     {"insert 3 rows", insert_rows},
    {"read them back", read_rows},        {"drop the table", drop_table},
    {"drop the database", drop_database},
};
static const struct tarn_cli_column step_columns[] = {
    {"step", "STEP", TARN_CLI_TEXT},
    {"ok", "OK", TARN_CLI_BOOL},
    {"ms", "MS", TARN_CLI_INT},
    {"error", "ERROR", TARN_CLI_TEXT},
};

static struct tarn_status *run_step(struct smoke *smoke, const struct step *step)
{
    int64_t from_ns = tarn_clock_mono_ns();
    struct tarn_status *status = step->run(smoke);

    tarn_cli_list_text(smoke->steps, step->name);
    tarn_cli_list_int(smoke->steps, status == NULL);
    tarn_cli_list_int(smoke->steps, (tarn_clock_mono_ns() - from_ns) / 1000000);
    tarn_cli_list_text(smoke->steps, status == NULL ? NULL : tarn_status_message(status));
    if (status == NULL)
        return TARN_OK;
    return tarn_status_wrap(status, "smoke: \"%s\" failed", step->name);
}

struct tarn_status *tarn_cli_smoke(struct tarn_cli *cli)
{
    char uuid[TARN_UUID_SIZE];
    struct smoke smoke = {.cli = cli};
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;
    struct tarn_status *status = NULL;

    TARN_TRY(tarn_cli_connect(cli));
    tarn_uuid_random(uuid);
    smoke.database = tarn_arena_printf(cli->op.arena, "tarn_smoke_%.8s", uuid);
    tarn__v1__table_ref__init(&smoke.table);
    smoke.table.database = tarn_cli_bytes_str(smoke.database);
    smoke.table.table = tarn_cli_bytes_str("t");
    smoke.steps = list = tarn_cli_list_new(cli, step_columns, TARN_COUNT_OF(step_columns));
    for (size_t i = 0; i < TARN_COUNT_OF(steps) && status == NULL; i++)
        status = run_step(&smoke, &steps[i]);
    if (status != NULL && smoke.made_database)
        tarn_status_free(drop_database(&smoke)); /* best effort: the first failure is the news */
    struct tarn_status *written = tarn_cli_list_end(list);
    if (status == NULL)
        return written;
    tarn_status_free(written);
    return status;
}
