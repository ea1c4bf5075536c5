/*
 * Promise: rows that a client sends in any format come to lie in the table's files and are read back the same;
 * whatever goes wrong before the answer, no file is left, neither in the table nor in the scratch folder; and
 * what isn't allowed by the protocol is refused with a reason.
 */
#include "fake_daemon.h"

#include <unistd.h>

static const char *const pk_options[] = {"bucket=1", NULL};
static const char *const append_options[] = {"bucket=-1", "target-file-size=100 kb", NULL};
static const Tarn__V1__IngestStart upsert = TARN__V1__INGEST_START__INIT;

#define LIST(...)                                                                                  \
    (const struct fake_load[])                                                                     \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, 0,                                                                               \
            {                                                                                      \
                NULL, 0                                                                            \
            }                                                                                      \
        }                                                                                          \
    }
#define CSV(name, text)                                                                            \
    {                                                                                              \
        name, TARN__V1__DATA_FORMAT__CSV,                                                          \
        {                                                                                          \
            (const uint8_t *)(text), sizeof(text) - 1                                              \
        }                                                                                          \
    }

static const char *scan_text(struct fake_daemon *daemon, struct tarn_test *t,
                             Tarn__V1__ScanRequest *request, const Tarn__V1__IngestResponse *files,
                             const Tarn__V1__ScanSummary **summary)
{
    struct tarn_buf out = {0};

    expect_ok(
        fake_scan(daemon, t, request, files->entries, files->n_entries, false, &out, summary));
    const char *text = tarn_arena_str(t->arena, tarn_buf_slice(&out));
    tarn_buf_drop(&out);
    return text;
}

TARN_TEST(flight_data, rows_come_back)
{
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;

    fake_daemon_start(&daemon, t, "id BIGINT NOT NULL, name STRING, price DECIMAL(8, 2)", "id",
                      pk_options);
    expect_ok(
        fake_ingest(&daemon, t, &upsert,
                    LIST(CSV("a.csv", "id,name,price\n3,c,3.50\n1,a,\n2,b,0.01\n"),
                         {"b.jsonl", TARN__V1__DATA_FORMAT__JSONL,
                          tarn_slice_str("{\"id\": 2, \"name\": \"two\", \"price\": 12.34}\n")}),
                    &response));
    expect_int(response->rows, 4);
    expect_int(response->files_written, 1);
    expect_int(response->n_entries, 1);
    expect_int(response->bad_row_count, 0);
    struct tarn_manifest_entry *entry = fake_entries(t, response->entries, 1);
    expect_int(entry->kind, TARN_ENTRY_ADD);
    expect_int(entry->file.row_count, 3); /* of key 2 the later */
    expect_int(response->bytes_written, entry->file.size);
    expect_int(fake_daemon_files(&daemon, t, NULL), 1);
    request.format = TARN__V1__DATA_FORMAT__CSV;
    expect_str(scan_text(&daemon, t, &request, response, &summary),
               "id,name,price\n1,a,\n2,two,12.34\n3,c,3.50\n");
    expect_int(summary->rows, 3);
    expect_int(summary->files, 1);
    expect_int(summary->snapshot_id, 7);
    expect_int(summary->n_fields, 3);
    expect_str(summary->fields[2]->type, "DECIMAL(8, 2)");
    expect_true(fake_daemon_scratch_is_empty(&daemon));
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, columns_where_and_limit)
{
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    ProtobufCBinaryData columns[] = {tarn_flight_data(tarn_slice_str("name")),
                                     tarn_flight_data(tarn_slice_str("id"))};

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING, n INT", "id", pk_options);
    expect_ok(fake_ingest(&daemon, t, &upsert,
                          LIST(CSV("a.csv", "id,name,n\n1,a,1\n2,b,5\n3,c,5\n4,d,5\n5,e,\n")),
                          &response));
    request.format = TARN__V1__DATA_FORMAT__JSONL;
    request.columns = columns;
    request.n_columns = 2;
    request.where = (char *)(uintptr_t) "n = 5 and id > 2";
    expect_str(scan_text(&daemon, t, &request, response, &summary),
               "{\"name\": \"c\", \"id\": 3}\n{\"name\": \"d\", \"id\": 4}\n");
    request.where = (char *)(uintptr_t) "n = 5";
    request._limit_case = TARN__V1__SCAN_REQUEST___LIMIT_LIMIT;
    request.limit = 1;
    expect_str(scan_text(&daemon, t, &request, response, &summary),
               "{\"name\": \"b\", \"id\": 2}\n");
    expect_int(summary->rows, 1);
    request.limit = 0;
    expect_str(scan_text(&daemon, t, &request, response, &summary), "");
    /* An empty table has a header all the same. */
    request.format = TARN__V1__DATA_FORMAT__CSV;
    struct tarn_buf out = {0};
    expect_ok(fake_scan(&daemon, t, &request, NULL, 0, false, &out, &summary));
    expect_slice(tarn_buf_slice(&out), "name,id\n");
    tarn_buf_drop(&out);
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, scans_refuse_what_is_not_there)
{
    struct fake_daemon daemon;
    const Tarn__V1__ScanSummary *summary;
    struct tarn_buf out = {0};
    ProtobufCBinaryData columns[] = {tarn_flight_data(tarn_slice_str("nme")),
                                     tarn_flight_data(tarn_slice_str("id"))};
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", pk_options);
    request.columns = columns;
    request.n_columns = 1;
    expect_status(fake_scan(&daemon, t, &request, NULL, 0, false, &out, &summary),
                  TARN_COLUMN_NOT_FOUND, "did you mean name?");
    columns[0] = columns[1];
    request.n_columns = 2;
    expect_status(fake_scan(&daemon, t, &request, NULL, 0, false, &out, &summary),
                  TARN_INVALID_ARGUMENT, "twice");
    request.n_columns = 0;
    request.where = (char *)(uintptr_t) "id = ";
    expect_status(fake_scan(&daemon, t, &request, NULL, 0, false, &out, &summary),
                  TARN_EXPRESSION_INVALID, "");
    request.where = (char *)(uintptr_t) "";
    request.format = (Tarn__V1__DataFormat)77;
    expect_status(fake_scan(&daemon, t, &request, NULL, 0, false, &out, &summary),
                  TARN_INVALID_ARGUMENT, "77");
    request.format = TARN__V1__DATA_FORMAT__CSV;
    request._limit_case = TARN__V1__SCAN_REQUEST___LIMIT_LIMIT;
    request.limit = -1;
    expect_status(fake_scan(&daemon, t, &request, NULL, 0, false, &out, &summary),
                  TARN_INVALID_ARGUMENT, "-1");
    request._limit_case = TARN__V1__SCAN_REQUEST___LIMIT__NOT_SET;
    daemon.description.schema_id = 5;
    expect_status(fake_scan(&daemon, t, &request, NULL, 0, false, &out, &summary),
                  TARN_INVALID_ARGUMENT, "schema 5");
    daemon.description.schema_id = 0;
    daemon.description.path = tarn_flight_data(tarn_slice_of("a\0b", 3));
    expect_status(fake_scan(&daemon, t, &request, NULL, 0, false, &out, &summary),
                  TARN_INVALID_ARGUMENT, "path");
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, entries_of_elsewhere_are_refused)
{
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    struct tarn_buf out = {0};
    static const char *const bad[] = {"../../../etc/passwd", "a/b"};

    fake_daemon_start(&daemon, t, "id INT NOT NULL", "id", pk_options);
    expect_ok(fake_ingest(&daemon, t, &upsert, LIST(CSV("a.csv", "id\n1\n")), &response));
    struct tarn_manifest_entry entries[2];
    entries[0] = entries[1] = *fake_entries(t, response->entries, 1);
    entries[1].bucket = 3;
    expect_status(fake_scan(&daemon, t, &request, tarn_flight_entries_pack(entries, 2, t->arena), 2,
                            false, &out, &summary),
                  TARN_INVALID_ARGUMENT, "another bucket");
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        entries[0].file.name = tarn_slice_str(bad[i]);
        ProtobufCBinaryData *packed = tarn_flight_entries_pack(entries, 1, t->arena);
        expect_status(fake_scan(&daemon, t, &request, packed, 1, false, &out, &summary),
                      TARN_MANIFEST_MALFORMED, "");
    }
    entries[0].file.name = tarn_slice_str("gone.parquet");
    expect_status(fake_scan(&daemon, t, &request, tarn_flight_entries_pack(entries, 1, t->arena), 1,
                            false, &out, &summary),
                  TARN_OBJECT_NOT_FOUND, "gone.parquet");
    tarn_buf_drop(&out);
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, deletes_need_keys_only)
{
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *first, *second;
    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    Tarn__V1__IngestStart deletes = TARN__V1__INGEST_START__INIT,
                          ops = TARN__V1__INGEST_START__INIT;
    struct tarn_buf out = {0};

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING NOT NULL", "id", pk_options);
    expect_ok(fake_ingest(&daemon, t, &upsert, LIST(CSV("a.csv", "id,name\n1,a\n2,b\n3,c\n4,d\n")),
                          &first));
    deletes.mode = TARN__V1__LOAD_MODE__DELETE_ROWS;
    expect_ok(fake_ingest(&daemon, t, &deletes, LIST(CSV("d.csv", "id\n2\n3\n")), &second));
    expect_int(fake_entries(t, second->entries, 1)->file.delete_row_count, 2);
    ProtobufCBinaryData both[3] = {first->entries[0], second->entries[0]};
    request.format = TARN__V1__DATA_FORMAT__CSV;
    expect_ok(fake_scan(&daemon, t, &request, both, 2, false, &out, &summary));
    expect_slice(tarn_buf_slice(&out), "id,name\n1,a\n4,d\n");
    ops.op_column = tarn_flight_data(tarn_slice_str("op"));
    expect_ok(fake_ingest(&daemon, t, &ops,
                          LIST(CSV("o.csv", "op,id,name\n-D,1,a\n+U,4,four\n+I,9,nine\n")),
                          &second));
    both[2] = second->entries[0];
    tarn_buf_clear(&out);
    expect_ok(fake_scan(&daemon, t, &request, both, 3, false, &out, &summary));
    expect_slice(tarn_buf_slice(&out), "id,name\n4,four\n9,nine\n");
    tarn_buf_drop(&out);
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, deletes_from_a_table_without_a_key_are_named_by_file_and_line)
{
    static const int formats[] = {TARN__V1__DATA_FORMAT__PARQUET, TARN__V1__DATA_FORMAT__ARROW};
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__IngestStart ops = TARN__V1__INGEST_START__INIT, plain = TARN__V1__INGEST_START__INIT;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, op STRING", NULL, append_options);
    ops.op_column = tarn_flight_data(tarn_slice_str("op"));
    expect_status(fake_ingest(&daemon, t, &ops,
                              LIST(CSV("a.csv", "id,op\n1,+I\n"),
                                   CSV("b.csv", "op,id\n+I,1\n\"+U\",2\n-D,1\n")),
                              &response),
                  TARN_ROW_INVALID, "b.csv:4: op: -D takes a row away");
    expect_status(fake_ingest(&daemon, t, &ops,
                              LIST({"c.jsonl", TARN__V1__DATA_FORMAT__JSONL,
                                    tarn_slice_str("{\"id\": 1, \"op\": \"-U\"}\n")}),
                              &response),
                  TARN_ROW_INVALID, "c.jsonl:1: op: -U takes a row away");
    expect_ok(
        fake_ingest(&daemon, t, &plain, LIST(CSV("p.csv", "id,op\n1,+I\n2,-D\n")), &response));
    for (size_t f = 0; f < TARN_COUNT_OF(formats); f++) {
        struct tarn_buf file = {0};
        const Tarn__V1__IngestResponse *again;
        request.format = (Tarn__V1__DataFormat)formats[f];
        expect_ok(fake_scan(&daemon, t, &request, response->entries, response->n_entries, false,
                            &file, &summary));
        expect_status(fake_ingest(&daemon, t, &ops,
                                  LIST({"x", request.format, tarn_buf_slice(&file)}), &again),
                      TARN_ROW_INVALID, "x:2: op: -D takes a row away");
        tarn_buf_drop(&file);
    }
    ops.skip_bad_max = 1;
    expect_ok(fake_ingest(&daemon, t, &ops, LIST(CSV("a.csv", "id,op\n1,+I\n1,-D\n")), &response));
    expect_int(response->rows, 1);
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, binary_formats_both_ways)
{
    static const int formats[] = {TARN__V1__DATA_FORMAT__PARQUET, TARN__V1__DATA_FORMAT__ARROW};
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *first, *again;
    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", NULL, append_options);
    struct tarn_buf csv = {0};
    tarn_buf_add_str(&csv, "id,name\n");
    for (int i = 0; i < 20000; i++)
        tarn_buf_printf(&csv, "%d,%d name\n", i, i * 7919 % 10007);
    expect_ok(fake_ingest(&daemon, t, &upsert,
                          LIST({"a.csv", TARN__V1__DATA_FORMAT__CSV, tarn_buf_slice(&csv)}),
                          &first));
    expect_int(first->rows, 20000);
    for (size_t f = 0; f < TARN_COUNT_OF(formats); f++) {
        struct tarn_buf file = {0}, out = {0};
        request.format = (Tarn__V1__DataFormat)formats[f];
        expect_ok(fake_scan(&daemon, t, &request, first->entries, first->n_entries, true, &file,
                            &summary));
        expect_int(summary->rows, 20000);
        expect_ok(fake_ingest(&daemon, t, &upsert, LIST({"x", formats[f], tarn_buf_slice(&file)}),
                              &again));
        expect_int(again->rows, 20000);
        request.format = TARN__V1__DATA_FORMAT__CSV;
        expect_ok(fake_scan(&daemon, t, &request, again->entries, again->n_entries, true, &out,
                            &summary));
        expect_bytes(tarn_buf_slice(&out), tarn_buf_slice(&csv));
        tarn_buf_drop(&file);
        tarn_buf_drop(&out);
    }
    expect_true(fake_daemon_scratch_is_empty(&daemon));
    tarn_buf_drop(&csv);
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, broken_inputs_leave_nothing)
{
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    struct tarn_buf file = {0};

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", NULL, append_options);
    expect_ok(
        fake_ingest(&daemon, t, &upsert, LIST(CSV("a.csv", "id,name\n1,a\n2,b\n")), &response));
    expect_ok(fake_scan(&daemon, t, &request, response->entries, response->n_entries, true, &file,
                        &summary));
    size_t before = fake_daemon_files(&daemon, t, NULL);
    struct fake_load good = {"good.csv", TARN__V1__DATA_FORMAT__CSV,
                             tarn_slice_str("id,name\n7,x\n")};
    struct fake_load bad[] = {
        {"torn.parquet", TARN__V1__DATA_FORMAT__PARQUET, tarn_slice_of(file.data, file.size / 2)},
        {"empty.parquet", TARN__V1__DATA_FORMAT__PARQUET, {NULL, 0}},
        {"noise.parquet", TARN__V1__DATA_FORMAT__PARQUET, tarn_test_random_bytes(t, 5000)},
        {"noise.arrow", TARN__V1__DATA_FORMAT__ARROW, tarn_test_random_bytes(t, 5000)},
        {"bad.jsonl", TARN__V1__DATA_FORMAT__JSONL, tarn_slice_str("{\"id\": 1\n")},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_status *s = fake_ingest(&daemon, t, &upsert, LIST(good, bad[i]), &response);
        expect_true(tarn_status_code(s) == TARN_CODE_INVALID_ARGUMENT);
        expect_contains(tarn_status_message(s), bad[i].name);
        tarn_status_free(s);
        expect_int(fake_daemon_files(&daemon, t, NULL), before);
        expect_true(fake_daemon_scratch_is_empty(&daemon));
    }
    /* Every torn length, and every flipped byte of a small file, is an answer, never the process' end. */
    for (size_t i = 0; i < file.size; i += 1 + file.size / 150) {
        struct fake_load torn = {"t.parquet", TARN__V1__DATA_FORMAT__PARQUET,
                                 tarn_buf_slice(&file)};
        uint8_t kept = file.data[i];
        file.data[i] ^= (uint8_t)(1 << (i % 8));
        tarn_status_free(fake_ingest(&daemon, t, &upsert, LIST(torn), &response));
        file.data[i] = kept;
    }
    tarn_buf_drop(&file);
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, bad_rows_are_counted_over_all_files)
{
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    Tarn__V1__IngestStart start = TARN__V1__INGEST_START__INIT;
    const struct fake_load *files =
        LIST(CSV("a.csv", "id,name\n1,a\nx,b\n"), CSV("b.csv", "id,name\n3,c\ny,d\n4,e\n"));

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", pk_options);
    start.skip_bad_max = 2;
    expect_ok(fake_ingest(&daemon, t, &start, files, &response));
    expect_int(response->rows, 3);
    expect_int(response->bad_row_count, 2);
    expect_int(response->n_bad_rows, 2);
    expect_slice(tarn_flight_slice(response->bad_rows[1]->file), "b.csv");
    expect_int(response->bad_rows[1]->line, 3);
    expect_slice(tarn_flight_slice(response->bad_rows[1]->column), "id");
    size_t before = fake_daemon_files(&daemon, t, NULL);
    start.skip_bad_max = 1;
    expect_status(fake_ingest(&daemon, t, &start, files, &response), TARN_ROW_INVALID, "b.csv:3");
    expect_int(fake_daemon_files(&daemon, t, NULL), before);
    fake_daemon_stop(&daemon);
}

/* A load that was begun; *call is the caller's. */
static void begin_load(struct fake_daemon *daemon, struct tarn_op *op, const char *file_name,
                       struct tarn_client_call **call)
{
    expect_ok(tarn_channel_call(daemon->channel, op, "/tarn.v1.DataService/Ingest", call));
    expect_ok(tarn_client_call_write(*call, fake_task(daemon, &upsert)));
    if (file_name != NULL)
        expect_ok(tarn_client_call_write(*call, fake_file(file_name, TARN__V1__DATA_FORMAT__CSV)));
}

TARN_TEST(flight_data, a_load_that_is_given_up_leaves_nothing)
{
    struct fake_daemon daemon;
    struct tarn_client_call *call;
    struct tarn_op op;
    struct tarn_buf rows = {0};

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", NULL, append_options);
    tarn_op_init(&op);
    begin_load(&daemon, &op, "a.csv", &call);
    expect_ok(tarn_client_call_write(call, fake_data(tarn_slice_str("id,name\n"))));
    /* Until the writer has finished a file, which it does at 100 kB of the table's option. */
    for (int i = 0; fake_daemon_files(&daemon, t, NULL) == 0 && i < 3000; i++) {
        tarn_buf_clear(&rows);
        for (int r = 0; r < 2000; r++)
            tarn_buf_printf(&rows, "%d,%016" PRIx64 "%016" PRIx64 "\n", r, tarn_test_random(t),
                            tarn_test_random(t));
        expect_ok(tarn_client_call_write(call, fake_data(tarn_buf_slice(&rows))));
    }
    expect_true(fake_daemon_files(&daemon, t, NULL) > 0);
    tarn_op_cancel(&op);
    tarn_client_call_free(call);
    for (int i = 0; i < 500 && fake_daemon_files(&daemon, t, NULL) > 0; i++)
        usleep(10000);
    expect_int(fake_daemon_files(&daemon, t, NULL), 0);
    expect_true(fake_daemon_scratch_is_empty(&daemon));
    tarn_op_fini(&op);
    tarn_buf_drop(&rows);
    fake_daemon_stop(&daemon);
}

static void expect_refused(struct tarn_client_call *call, enum tarn_reason reason, const char *part)
{
    struct tarn_message *message = NULL;

    tarn_status_free(tarn_client_call_writes_done(call));
    tarn_status_free(tarn_client_call_read(call, &message));
    expect_null(message);
    expect_status(tarn_client_call_finish(call), reason, part);
    tarn_client_call_free(call);
}

TARN_TEST(flight_data, the_protocol_is_held_to)
{
    struct fake_daemon daemon;
    struct tarn_client_call *call;
    Tarn__V1__IngestStart start = TARN__V1__INGEST_START__INIT;
    Tarn__V1__IngestRequest request = TARN__V1__INGEST_REQUEST__INIT;
    const Tarn__V1__IngestResponse *response;

    fake_daemon_start(&daemon, t, "id INT NOT NULL", "id", pk_options);
    begin_load(&daemon, t->op, NULL, &call);
    expect_ok(tarn_client_call_write(call, fake_data(tarn_slice_str("id\n1\n"))));
    expect_refused(call, TARN_INVALID_ARGUMENT, "before a file");

    begin_load(&daemon, t->op, "a.csv", &call); /* a client must not give itself another table */
    expect_ok(tarn_client_call_write(call, fake_task(&daemon, &upsert)));
    expect_refused(call, TARN_INVALID_ARGUMENT, "in the middle");

    begin_load(&daemon, t->op, "a.csv", &call);
    request.part_case = TARN__V1__INGEST_REQUEST__PART_START;
    request.start = &start;
    expect_ok(tarn_client_call_write(call, fake_message(&request.base)));
    expect_refused(call, TARN_INVALID_ARGUMENT, "neither");

    begin_load(&daemon, t->op, "a.csv", &call);
    expect_ok(tarn_client_call_write(call, tarn_message_copy(tarn_slice_str("\x1a\x7fshort"))));
    expect_refused(call, TARN_INVALID_ARGUMENT, "no IngestRequest");

    begin_load(&daemon, t->op, NULL, &call);
    expect_ok(tarn_client_call_write(call, fake_file("a.csv", 99)));
    expect_refused(call, TARN_INVALID_ARGUMENT, "99");

    expect_ok(tarn_channel_call(daemon.channel, t->op, "/tarn.v1.DataService/Ingest", &call));
    expect_ok(tarn_client_call_write(call, fake_file("a.csv", 1)));
    expect_refused(call, TARN_INVALID_ARGUMENT, "task");

    start.delimiter = tarn_flight_data(tarn_slice_str("ab"));
    expect_status(fake_ingest(&daemon, t, &start, LIST(CSV("a.csv", "id\n1\n")), &response),
                  TARN_INVALID_ARGUMENT, "delimiter");
    start.delimiter.len = 0;
    start.skip_bad_max = -1;
    expect_status(fake_ingest(&daemon, t, &start, LIST(CSV("a.csv", "id\n1\n")), &response),
                  TARN_INVALID_ARGUMENT, "skip_bad_max");
    daemon.sequence_reason = TARN_BUSY;
    expect_status(fake_ingest(&daemon, t, &upsert, LIST(CSV("a.csv", "id\n1\n")), &response),
                  TARN_BUSY, "");
    expect_int(fake_daemon_files(&daemon, t, NULL), 0);
    daemon.sequence_reason = TARN_NO_REASON;
    expect_ok(fake_ingest(&daemon, t, &upsert, LIST({NULL, 0, {NULL, 0}}),
                          &response)); /* nothing is fine */
    expect_int(response->n_entries, 0);
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, a_reader_that_goes_away_ends_the_scan)
{
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    struct tarn_buf csv = {0};
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    Tarn__V1__ScanTask task = TARN__V1__SCAN_TASK__INIT;
    Tarn__V1__SplitTask split = TARN__V1__SPLIT_TASK__INIT, *splits[100];
    struct tarn_client_call *call;
    struct tarn_message *message = NULL;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", NULL, append_options);
    tarn_buf_add_str(&csv, "id,name\n");
    for (int i = 0; i < 50000; i++)
        tarn_buf_printf(&csv, "%d,%d name\n", i, i * 7919 % 10007);
    expect_ok(fake_ingest(&daemon, t, &upsert,
                          LIST({"a.csv", TARN__V1__DATA_FORMAT__CSV, tarn_buf_slice(&csv)}),
                          &response));
    struct tarn_manifest_entry *first = fake_entries(t, response->entries, 1);
    split.partition = tarn_flight_data(first->partition);
    split.bucket = first->bucket;
    split.files = response->entries;
    split.n_files = response->n_entries;
    split.raw = true;
    for (size_t i = 0; i < TARN_COUNT_OF(splits); i++)
        splits[i] = &split;
    task.table = &daemon.description;
    task.splits = splits;
    task.n_splits = TARN_COUNT_OF(splits);
    request.task = &task;
    request.format = TARN__V1__DATA_FORMAT__CSV;
    expect_ok(tarn_channel_call(daemon.channel, t->op, "/tarn.v1.DataService/Scan", &call));
    expect_ok(tarn_client_call_write(call, fake_message(&request.base)));
    expect_ok(tarn_client_call_writes_done(call));
    expect_ok(tarn_client_call_read(call, &message));
    expect_not_null(message);
    expect_true(tarn_message_bytes(message).size >= TARN_WIRE_CHUNK_SIZE);
    tarn_message_free(message);
    tarn_client_call_free(call);
    tarn_buf_drop(&csv);
    fake_daemon_stop(&daemon); /* waits for the method, which ended */
}

TARN_TEST(flight_data, columns_of_a_file)
{
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    struct tarn_buf file = {0};
    struct tarn_client_call *call;
    struct tarn_message *message = NULL;
    const void *decoded;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING, d DECIMAL(10, 3), day DATE", NULL,
                      append_options);
    expect_ok(
        fake_ingest(&daemon, t, &upsert, LIST(CSV("a.csv", "id,name\n1,a\n2,b\n")), &response));
    expect_ok(fake_scan(&daemon, t, &request, response->entries, response->n_entries, true, &file,
                        &summary));
    expect_ok(tarn_channel_call(daemon.channel, t->op, "/tarn.v1.DataService/Infer", &call));
    expect_ok(tarn_client_call_write(call, fake_file("a.parquet", TARN__V1__DATA_FORMAT__PARQUET)));
    expect_ok(tarn_client_call_write(call, fake_data(tarn_buf_slice(&file))));
    expect_ok(tarn_client_call_writes_done(call));
    expect_ok(tarn_client_call_read(call, &message));
    expect_not_null(message);
    expect_ok(tarn_client_call_finish(call));
    expect_ok(tarn_flight_unpack(&tarn__v1__infer_response__descriptor, tarn_message_bytes(message),
                                 t->arena, &decoded));
    const Tarn__V1__InferResponse *columns = decoded;
    expect_int(columns->n_fields, 4);
    expect_str(columns->fields[0]->type, "INT NOT NULL");
    expect_slice(tarn_flight_slice(columns->fields[2]->name), "d");
    expect_str(columns->fields[2]->type, "DECIMAL(10, 3)");
    expect_str(columns->fields[3]->type, "DATE");
    tarn_message_free(message);
    tarn_client_call_free(call);

    expect_ok(tarn_channel_call(daemon.channel, t->op, "/tarn.v1.DataService/Infer", &call));
    expect_ok(tarn_client_call_write(call, fake_file("a.csv", TARN__V1__DATA_FORMAT__CSV)));
    expect_refused(call, TARN_UNIMPLEMENTED, "a.csv");
    expect_ok(tarn_channel_call(daemon.channel, t->op, "/tarn.v1.DataService/Infer", &call));
    expect_ok(tarn_client_call_write(call, fake_file("b.parquet", TARN__V1__DATA_FORMAT__PARQUET)));
    expect_ok(tarn_client_call_write(call, fake_data(tarn_slice_str("PAR1 nothing PAR1"))));
    expect_refused(call, TARN_INPUT_MALFORMED, "b.parquet");
    tarn_buf_drop(&file);
    fake_daemon_stop(&daemon);
}

TARN_TEST(flight_data, each_store_call_fails_once)
{
    static const enum tarn_fault faults[] = {TARN_FAULT_FAIL_BEFORE, TARN_FAULT_FAIL_AFTER,
                                             TARN_FAULT_FULL};
    struct fake_daemon daemon;
    const Tarn__V1__IngestResponse *response;
    int failed = 0;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", pk_options);
    for (size_t f = 0; f < TARN_COUNT_OF(faults); f++) {
        for (int k = 0;; k++) {
            struct tarn_fault_rule rule = {
                .call = "*", .skip_count = k, .hit_count = 1, .fault = faults[f]};
            tarn_store_faulty_clear(daemon.store);
            tarn_store_faulty_add(daemon.store, &rule);
            int calls = tarn_store_faulty_call_count(daemon.store);
            struct tarn_status *s = fake_ingest(
                &daemon, t, &upsert, LIST(CSV("a.csv", "id,name\n1,a\n2,b\n")), &response);
            calls = tarn_store_faulty_call_count(daemon.store) - calls;
            tarn_store_faulty_clear(daemon.store);
            const char **keys;
            size_t count = fake_daemon_files(&daemon, t, &keys);
            if (s == TARN_OK) {
                expect_int(count, response->n_entries);
                for (size_t i = 0; i < count; i++)
                    expect_ok(tarn_store_remove(daemon.store, t->op, keys[i]));
            } else {
                failed++;
                /* What a store did and denies having done can't be known; it is an orphan then. */
                if (faults[f] != TARN_FAULT_FAIL_AFTER)
                    expect_int(count, 0);
                for (size_t i = 0; i < count; i++)
                    expect_ok(tarn_store_remove(daemon.store, t->op, keys[i]));
            }
            tarn_status_free(s);
            if (calls <= k)
                break;
        }
    }
    expect_true(failed > 0);
    fake_daemon_stop(&daemon);
}
