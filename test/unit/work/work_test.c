/*
 * Promise: a worker goes on registering and polling whatever becomes of its daemon; a task ends with exactly
 * one report, or with none when its lease is lost; outputs that were refused are removed, those whose fate is
 * unknown and those that are inputs too never are (W1, W2, W3).
 */
#include "fake_daemon.h"

#include <unistd.h>

#include "work/work.h"

static const char *const options[] = {"bucket=1", NULL};
static const Tarn__V1__IngestStart upsert = TARN__V1__INGEST_START__INIT;

static struct tarn_work *start_work(struct fake_daemon *daemon)
{
    struct tarn_work_options work = {.exec = daemon->exec,
                                     .daemon = daemon->channel,
                                     .tables = daemon->tables,
                                     .name = "test-1",
                                     .address = "127.0.0.1:1",
                                     .version = "0",
                                     .slots = 1,
                                     .scratch_dir = daemon->scratch_dir,
                                     .retry_ms = 10,
                                     .poll_wait_ms = 200};
    return tarn_work_start(&work);
}

static void stop_work(struct tarn_work *work)
{
    tarn_work_stop(work, 5000);
    tarn_work_free(work);
}

/* `count` loads of the same keys, one file each; their entries, packed. */
static ProtobufCBinaryData *load_files(struct fake_daemon *daemon, struct tarn_test *t, int count,
                                       int row_count)
{
    ProtobufCBinaryData *out = tarn_arena_calloc(t->arena, (size_t)count, sizeof *out);
    struct tarn_buf csv = {0};

    for (int i = 0; i < count; i++) {
        const Tarn__V1__IngestResponse *response;
        tarn_buf_clear(&csv);
        tarn_buf_add_str(&csv, "id,name\n");
        for (int r = 0; r < row_count; r++)
            tarn_buf_printf(&csv, "%d,load %d\n", r, i);
        const struct fake_load files[] = {
            {"a.csv", TARN__V1__DATA_FORMAT__CSV, tarn_buf_slice(&csv)}, {0}};
        expect_ok(fake_ingest(daemon, t, &upsert, files, &response));
        expect_int(response->n_entries, 1);
        out[i] = response->entries[0];
    }
    tarn_buf_drop(&csv);
    return out;
}

static void give_task(struct fake_daemon *daemon, struct tarn_test *t, ProtobufCBinaryData *files,
                      size_t count)
{
    Tarn__V1__PollResponse response = TARN__V1__POLL_RESPONSE__INIT;
    Tarn__V1__Task task = TARN__V1__TASK__INIT, *tasks[] = {&task};
    Tarn__V1__CompactTask compact = TARN__V1__COMPACT_TASK__INIT;

    compact.table = &daemon->description;
    compact.partition = tarn_flight_data(fake_entries(t, files, 1)->partition);
    compact.files = files;
    compact.n_files = count;
    compact.output_level = 5;
    compact.drop_delete = true;
    task.id = 11;
    task.token = 77;
    task.lease_ms = daemon->lease_ms;
    task.compact = &compact;
    response.tasks = tasks;
    response.n_tasks = 1;
    pthread_mutex_lock(&daemon->lock);
    daemon->task = fake_message(&response.base);
    pthread_cond_broadcast(&daemon->changed);
    pthread_mutex_unlock(&daemon->lock);
}

static const Tarn__V1__ReportRequest *last_report(struct fake_daemon *daemon, struct tarn_test *t)
{
    const void *message;
    expect_ok(tarn_flight_unpack(&tarn__v1__report_request__descriptor,
                                 tarn_buf_slice(&daemon->report), t->arena, &message));
    return message;
}

TARN_TEST(work, compacts_and_reports)
{
    struct fake_daemon daemon;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", options);
    struct tarn_work *work = start_work(&daemon);
    give_task(&daemon, t, load_files(&daemon, t, 3, 100), 3);
    expect_true(fake_daemon_wait(&daemon, &daemon.report_count, 1));
    stop_work(work);
    const Tarn__V1__ReportRequest *report = last_report(&daemon, t);
    expect_str(report->failure_reason, "");
    expect_str(report->worker_id, "w-1");
    expect_int(report->lease->task_id, 11);
    expect_int(report->lease->token, 77);
    expect_int(report->rows_in, 300);
    expect_int(report->rows_out, 100);
    expect_true(report->bytes_in > 0 && report->bytes_out > 0 && report->cpu_ns > 0);
    expect_int(report->n_entries, 4);
    struct tarn_manifest_entry *entries = fake_entries(t, report->entries, 4);
    for (int i = 0; i < 4; i++)
        expect_int(entries[i].kind, i < 3 ? TARN_ENTRY_DELETE : TARN_ENTRY_ADD);
    expect_int(entries[3].file.level, 5);
    expect_int(entries[3].file.source, TARN_SOURCE_COMPACT);
    expect_int(fake_daemon_files(&daemon, t, NULL), 4);
    expect_int(daemon.report_count, 1);

    const Tarn__V1__ScanSummary *summary;
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    struct tarn_buf out = {0};
    request.format = TARN__V1__DATA_FORMAT__CSV;
    request.where = (char *)(uintptr_t) "id >= 98";
    expect_ok(fake_scan(&daemon, t, &request, &report->entries[3], 1, true, &out, &summary));
    expect_slice(tarn_buf_slice(&out), "id,name\n98,load 2\n99,load 2\n");
    tarn_buf_drop(&out);
    fake_daemon_stop(&daemon);
}

TARN_TEST(work, broken_files_are_reported)
{
    struct fake_daemon daemon;
    const char **keys;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", options);
    ProtobufCBinaryData *files = load_files(&daemon, t, 2, 100);
    fake_daemon_files(&daemon, t, &keys);
    expect_ok(tarn_store_put(daemon.store, t->op, keys[0],
                             tarn_slice_str("PAR1 this is no parquet file PAR1")));
    struct tarn_work *work = start_work(&daemon);
    give_task(&daemon, t, files, 2);
    expect_true(fake_daemon_wait(&daemon, &daemon.report_count, 1));
    expect_str(daemon.failure_reason, "DATA_FILE_MALFORMED");
    expect_contains(last_report(&daemon, t)->failure_message, keys[0]);
    expect_int(daemon.report_entry_count, 0);
    expect_int(fake_daemon_files(&daemon, t, NULL), 2);
    /* And the worker takes the next. */
    give_task(&daemon, t, load_files(&daemon, t, 2, 10), 2);
    expect_true(fake_daemon_wait(&daemon, &daemon.report_count, 2));
    expect_str(daemon.failure_reason, "");
    stop_work(work);
    fake_daemon_stop(&daemon);
}

TARN_TEST(work, tasks_that_make_no_sense_are_reported)
{
    struct fake_daemon daemon;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", options);
    ProtobufCBinaryData *files = load_files(&daemon, t, 1, 1);
    struct tarn_work *work = start_work(&daemon);
    int64_t id = daemon.description.schema_id;
    daemon.description.schema_id = 9;
    give_task(&daemon, t, files, 1);
    expect_true(fake_daemon_wait(&daemon, &daemon.report_count, 1));
    expect_str(daemon.failure_reason, "INVALID_ARGUMENT");
    daemon.description.schema_id = id;
    daemon.description.store_uri = (char *)(uintptr_t) "gopher://x";
    give_task(&daemon, t, files, 1);
    expect_true(fake_daemon_wait(&daemon, &daemon.report_count, 2));
    expect_true(daemon.failure_reason[0] != '\0');
    stop_work(work);
    fake_daemon_stop(&daemon);
}

/* Files in the table after a report of `count` files was answered with `reason`. */
static size_t files_after(struct tarn_test *t, enum tarn_reason reason, int reports)
{
    struct fake_daemon daemon;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", options);
    ProtobufCBinaryData *files = load_files(&daemon, t, 3, 50);
    struct tarn_work *work = start_work(&daemon);
    daemon.report_reason = reason;
    give_task(&daemon, t, files, 3);
    expect_true(fake_daemon_wait(&daemon, &daemon.report_count, reports));
    stop_work(work);
    expect_int(daemon.report_count, reports);
    size_t count = fake_daemon_files(&daemon, t, NULL);
    fake_daemon_stop(&daemon);
    return count;
}

TARN_TEST(work, refused_outputs_are_removed_unknown_ones_stay)
{
    expect_int(files_after(t, TARN_NO_REASON, 1), 4);
    expect_int(files_after(t, TARN_LEASE_LOST, 1), 3);
    expect_int(files_after(t, TARN_COMMIT_CONFLICT, 1), 3);
    expect_int(files_after(t, TARN_OUTCOME_UNKNOWN, 1), 4);
    expect_int(files_after(t, TARN_UNAVAILABLE, 5),
               4); /* asked again and again, and nobody knows */
}

TARN_TEST(work, files_that_moved_up_are_never_removed)
{
    static const char *const small[] = {"bucket=1", "target-file-size=1 kb", NULL};
    struct fake_daemon daemon;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", small);
    ProtobufCBinaryData *files =
        load_files(&daemon, t, 1, 2); /* larger than the target: moved, not rewritten */
    struct tarn_work *work = start_work(&daemon);
    daemon.report_reason = TARN_LEASE_LOST;
    give_task(&daemon, t, files, 1);
    expect_true(fake_daemon_wait(&daemon, &daemon.report_count, 1));
    stop_work(work);
    expect_int(daemon.report_entry_count, 2);
    expect_int(fake_daemon_files(&daemon, t, NULL), 1);
    fake_daemon_stop(&daemon);
}

TARN_TEST(work, a_lost_lease_ends_the_run)
{
    struct tarn_fault_rule slow = {.call = "read_at", .fault = TARN_FAULT_DELAY, .delay_ms = 150};
    struct fake_daemon daemon;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", options);
    ProtobufCBinaryData *files = load_files(&daemon, t, 8, 50);
    tarn_store_faulty_add(daemon.store, &slow);
    daemon.lease_ms = 150;
    daemon.lease_is_lost = true;
    struct tarn_work *work = start_work(&daemon);
    give_task(&daemon, t, files, 8);
    expect_true(fake_daemon_wait(&daemon, &daemon.renew_count, 1));
    int polls = daemon.poll_count;
    expect_true(
        fake_daemon_wait(&daemon, &daemon.poll_count, polls + 2)); /* the slot is free again */
    stop_work(work);
    expect_int(daemon.report_count, 0);
    tarn_store_faulty_clear(daemon.store);
    expect_int(fake_daemon_files(&daemon, t, NULL), 8);
    fake_daemon_stop(&daemon);
}

TARN_TEST(work, leases_are_kept_alive)
{
    struct tarn_fault_rule slow = {.call = "read_at", .fault = TARN_FAULT_DELAY, .delay_ms = 200};
    struct fake_daemon daemon;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", options);
    ProtobufCBinaryData *files = load_files(&daemon, t, 4, 50);
    tarn_store_faulty_add(daemon.store, &slow);
    daemon.lease_ms = 1200; /* a busy machine may answer late */
    struct tarn_work *work = start_work(&daemon);
    give_task(&daemon, t, files, 4);
    expect_true(fake_daemon_wait(&daemon, &daemon.report_count, 1));
    stop_work(work);
    expect_true(daemon.renew_count >= 2);
    expect_str(daemon.failure_reason, "");
    tarn_store_faulty_clear(daemon.store);
    fake_daemon_stop(&daemon);
}

TARN_TEST(work, registers_again_when_it_is_forgotten)
{
    struct fake_daemon daemon;

    fake_daemon_start(&daemon, t, "id INT NOT NULL", "id", options);
    struct tarn_work *work = start_work(&daemon);
    expect_true(fake_daemon_wait(&daemon, &daemon.poll_count, 1));
    pthread_mutex_lock(&daemon.lock);
    daemon.forget_worker = true;
    pthread_mutex_unlock(&daemon.lock);
    expect_true(fake_daemon_wait(&daemon, &daemon.register_count, 2));
    int polls = daemon.poll_count;
    expect_true(fake_daemon_wait(&daemon, &daemon.poll_count, polls + 1));
    stop_work(work);
    fake_daemon_stop(&daemon);
}

TARN_TEST(work, stopping_ends_what_runs)
{
    struct tarn_fault_rule slow = {.call = "read_at", .fault = TARN_FAULT_DELAY, .delay_ms = 200};
    struct fake_daemon daemon;

    fake_daemon_start(&daemon, t, "id INT NOT NULL, name STRING", "id", options);
    ProtobufCBinaryData *files = load_files(&daemon, t, 8, 50);
    tarn_store_faulty_add(daemon.store, &slow);
    daemon.lease_ms = 100;
    struct tarn_work *work = start_work(&daemon);
    give_task(&daemon, t, files, 8);
    expect_true(fake_daemon_wait(&daemon, &daemon.renew_count, 1)); /* it runs */
    int64_t start_ms = tarn_clock_mono_ms();
    tarn_work_stop(work, 100);
    expect_true(tarn_clock_mono_ms() - start_ms < 3000);
    tarn_work_free(work);
    expect_int(daemon.report_count, 1);
    expect_str(daemon.failure_reason, "SHUTTING_DOWN");
    tarn_store_faulty_clear(daemon.store);
    expect_int(fake_daemon_files(&daemon, t, NULL), 8);
    fake_daemon_stop(&daemon);
}

TARN_TEST(work, waits_for_a_daemon_that_is_not_there)
{
    struct fake_daemon daemon;
    struct tarn_channel *nowhere;
    struct tarn_channel_options channel = {.address = "127.0.0.1:1"};

    fake_daemon_start(&daemon, t, "id INT NOT NULL", "id", options);
    expect_ok(tarn_channel_open(&channel, &nowhere));
    struct tarn_channel *kept = daemon.channel;
    daemon.channel = nowhere;
    struct tarn_work *work = start_work(&daemon);
    usleep(200000);
    int64_t start_ms = tarn_clock_mono_ms();
    tarn_work_stop(work, 5000);
    expect_true(tarn_clock_mono_ms() - start_ms < 3000);
    tarn_work_free(work);
    expect_int(daemon.register_count, 0);
    daemon.channel = kept;
    tarn_channel_close(nowhere);
    fake_daemon_stop(&daemon);
}
