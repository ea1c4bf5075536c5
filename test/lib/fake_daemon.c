#include "fake_daemon.h"

#include <dirent.h>
#include <time.h>

#define URI "memory:"
#define PIECE 1000 /* bytes a data message */

static const char *const table_path = "db.db/t";

/* --- the table --- */

static void make_table(struct fake_daemon *daemon, struct tarn_test *t, const char *columns,
                       const char *primary_key, const char *const *options)
{
    struct tarn_schema draft = {0}, schema;
    struct tarn_pair pairs[32];
    struct tarn_slice keys[1] = {tarn_slice_str(primary_key)};
    struct tarn_buf json = {0};

    expect_ok(
        tarn_columns_parse(tarn_slice_str(columns), t->arena, &draft.fields, &draft.field_count));
    for (size_t i = 0; options != NULL && options[i] != NULL; i++) {
        const char *equals = strchr(options[i], '=');
        pairs[i] = (struct tarn_pair){tarn_slice_of(options[i], (size_t)(equals - options[i])),
                                      tarn_slice_str(equals + 1)};
        draft.option_count = i + 1;
    }
    draft.options = pairs;
    draft.primary_keys = keys;
    draft.primary_key_count = primary_key == NULL ? 0 : 1;
    expect_ok(tarn_schema_create(&draft, 1, t->arena, &schema));
    tarn_schema_encode(&schema, &json);
    daemon->schema_json = tarn_flight_data(tarn_arena_copy(t->arena, tarn_buf_slice(&json)));
    tarn_buf_drop(&json);
    tarn__v1__table_description__init(&daemon->description);
    daemon->description.store_uri = (char *)(uintptr_t)URI;
    daemon->description.path = tarn_flight_data(tarn_slice_str(table_path));
    daemon->description.uuid = (char *)(uintptr_t) "6b1f0c5e-0000-4000-8000-000000000001";
    daemon->description.name = tarn_flight_data(tarn_slice_str("db.t"));
    daemon->description.schemas = &daemon->schema_json;
    daemon->description.n_schemas = 1;
    daemon->description.schema_id = schema.id;
}

/* --- WorkerService --- */

static struct tarn_status *read_request(struct tarn_op *op, struct tarn_call *call,
                                        const ProtobufCMessageDescriptor *type, const void **out)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    TARN_TRY(tarn_call_read(call, &message));
    if (message == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "no request");
    return tarn_flight_unpack(type, tarn_message_bytes(message), op->arena, out);
}

static struct tarn_status *serve_register(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct fake_daemon *daemon = self;
    Tarn__V1__RegisterResponse response = TARN__V1__REGISTER_RESPONSE__INIT;
    const void *message;

    TARN_TRY(read_request(op, call, &tarn__v1__register_request__descriptor, &message));
    pthread_mutex_lock(&daemon->lock);
    daemon->register_count++;
    response.lease_ms = daemon->lease_ms;
    response.worker_id = tarn_arena_printf(op->arena, "w-%d", daemon->register_count);
    pthread_cond_broadcast(&daemon->changed);
    pthread_mutex_unlock(&daemon->lock);
    return tarn_call_write(call, tarn_flight_pack(&response.base));
}

static void pause_ms(struct fake_daemon *daemon, int64_t ms) /* the lock is held */
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&daemon->changed, &daemon->lock, &until);
}

static struct tarn_status *serve_poll(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct fake_daemon *daemon = self;
    Tarn__V1__PollResponse response = TARN__V1__POLL_RESPONSE__INIT;
    const void *message;

    TARN_TRY(read_request(op, call, &tarn__v1__poll_request__descriptor, &message));
    pthread_mutex_lock(&daemon->lock);
    if (daemon->task == NULL && !daemon->forget_worker)
        pause_ms(daemon, 20);
    struct tarn_message *task = tarn_move(daemon->task);
    bool lost = daemon->forget_worker;
    daemon->forget_worker = false;
    daemon->poll_count++;
    pthread_cond_broadcast(&daemon->changed);
    pthread_mutex_unlock(&daemon->lock);
    if (lost)
        return tarn_status_new(TARN_WORKER_LOST, "who are you?");
    return tarn_call_write(call, task != NULL ? task : tarn_flight_pack(&response.base));
}

static struct tarn_status *serve_renew(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct fake_daemon *daemon = self;
    Tarn__V1__RenewResponse response = TARN__V1__RENEW_RESPONSE__INIT;
    const void *message;

    TARN_TRY(read_request(op, call, &tarn__v1__renew_request__descriptor, &message));
    const Tarn__V1__RenewRequest *request = message;
    int64_t id = request->n_leases == 0 ? 0 : request->leases[0]->task_id;
    response.lost_task_ids = &id;
    pthread_mutex_lock(&daemon->lock);
    response.n_lost_task_ids = daemon->lease_is_lost ? 1 : 0;
    daemon->renew_count++;
    pthread_cond_broadcast(&daemon->changed);
    pthread_mutex_unlock(&daemon->lock);
    return tarn_call_write(call, tarn_flight_pack(&response.base));
}

static struct tarn_status *serve_report(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct fake_daemon *daemon = self;
    Tarn__V1__ReportResponse response = TARN__V1__REPORT_RESPONSE__INIT;
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    const void *decoded;

    TARN_TRY(tarn_call_read(call, &message));
    TARN_TRY(tarn_flight_unpack(&tarn__v1__report_request__descriptor, tarn_message_bytes(message),
                                op->arena, &decoded));
    const Tarn__V1__ReportRequest *request = decoded;
    pthread_mutex_lock(&daemon->lock);
    tarn_buf_clear(&daemon->report);
    tarn_buf_add_slice(&daemon->report, tarn_message_bytes(message));
    free(daemon->failure_reason);
    daemon->failure_reason = tarn_strdup(request->failure_reason);
    daemon->report_entry_count = request->n_entries;
    daemon->report_count++;
    enum tarn_reason reason = daemon->report_reason;
    pthread_cond_broadcast(&daemon->changed);
    pthread_mutex_unlock(&daemon->lock);
    if (reason != TARN_NO_REASON)
        return tarn_status_new(reason, "as the test wants it");
    return tarn_call_write(call, tarn_flight_pack(&response.base));
}

static struct tarn_status *serve_sequences(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct fake_daemon *daemon = self;
    Tarn__V1__ReserveSequencesResponse response = TARN__V1__RESERVE_SEQUENCES_RESPONSE__INIT;
    const void *message;

    TARN_TRY(read_request(op, call, &tarn__v1__reserve_sequences_request__descriptor, &message));
    pthread_mutex_lock(&daemon->lock);
    response.first = daemon->next_sequence;
    daemon->next_sequence += ((const Tarn__V1__ReserveSequencesRequest *)message)->count;
    enum tarn_reason reason = daemon->sequence_reason;
    pthread_mutex_unlock(&daemon->lock);
    if (reason != TARN_NO_REASON)
        return tarn_status_new(reason, "as the test wants it");
    return tarn_call_write(call, tarn_flight_pack(&response.base));
}

/* --- beginning and end --- */

void fake_daemon_start(struct fake_daemon *daemon, struct tarn_test *t, const char *columns,
                       const char *primary_key, const char *const *options)
{
    struct tarn_wire_method methods[5 + TARN_FLIGHT_METHOD_COUNT] = {
        {"/tarn.v1.WorkerService/Register", serve_register, daemon, true},
        {"/tarn.v1.WorkerService/Poll", serve_poll, daemon, true},
        {"/tarn.v1.WorkerService/Renew", serve_renew, daemon, true},
        {"/tarn.v1.WorkerService/Report", serve_report, daemon, true},
        {"/tarn.v1.WorkerService/ReserveSequences", serve_sequences, daemon, true},
    };
    struct tarn_store *memory;

    *daemon = (struct fake_daemon){.lease_ms = 60000};
    pthread_mutex_init(&daemon->lock, NULL);
    pthread_cond_init(&daemon->changed, NULL);
    make_table(daemon, t, columns, primary_key, options);
    tarn_wire_init();
    daemon->exec = tarn_exec_new(2, 16);
    expect_ok(tarn_store_open(URI, &memory));
    daemon->store = tarn_store_faulty_new(memory);
    tarn_store_unref(memory);
    daemon->tables = tarn_flight_tables_new();
    tarn_flight_tables_add(daemon->tables, URI, daemon->store);
    daemon->scratch_dir = tarn_test_dir(t);
    struct tarn_flight_options flight = {
        .tables = daemon->tables, .scratch_dir = daemon->scratch_dir, .write_buffer_size = 1 << 20};
    /* The server's address is known once it runs, the channel's place before. */
    struct tarn_wire_server_options server = {.listen = "127.0.0.1:0",
                                              .exec = daemon->exec,
                                              .message_max_bytes = TARN_FLIGHT_MESSAGE_MAX};
    struct tarn_wire_server *probe;
    expect_ok(tarn_wire_server_start(&server, methods, 5, &probe));
    struct tarn_channel_options channel = {.address = tarn_wire_server_address(probe)};
    expect_ok(tarn_channel_open(&channel, &daemon->channel));
    flight.daemon = daemon->channel;
    daemon->flight = tarn_flight_new(&flight);
    tarn_flight_methods(daemon->flight, methods + 5);
    server.listen = tarn_arena_str(t->arena, tarn_slice_str(channel.address));
    tarn_wire_server_drain(probe, 0);
    tarn_wire_server_free(probe);
    expect_ok(tarn_wire_server_start(&server, methods, TARN_COUNT_OF(methods), &daemon->server));
}

void fake_daemon_stop(struct fake_daemon *daemon)
{
    tarn_wire_server_drain(daemon->server, 5000);
    tarn_wire_server_free(daemon->server);
    tarn_exec_free(daemon->exec);
    tarn_channel_close(daemon->channel);
    tarn_flight_free(daemon->flight);
    tarn_flight_tables_free(daemon->tables);
    tarn_store_unref(daemon->store);
    tarn_message_free(daemon->task);
    tarn_buf_drop(&daemon->report);
    free(daemon->failure_reason);
    pthread_cond_destroy(&daemon->changed);
    pthread_mutex_destroy(&daemon->lock);
}

bool fake_daemon_wait(struct fake_daemon *daemon, const int *counter, int count)
{
    int64_t until = tarn_clock_mono_ms() + 10000;

    pthread_mutex_lock(&daemon->lock);
    while (*counter < count && tarn_clock_mono_ms() < until)
        pause_ms(daemon, 50);
    bool reached = *counter >= count;
    pthread_mutex_unlock(&daemon->lock);
    return reached;
}

size_t fake_daemon_files(struct fake_daemon *daemon, struct tarn_test *t, const char ***out)
{
    struct tarn_object *objects;
    size_t count;

    expect_ok(tarn_store_list(daemon->store, t->op, table_path, true, &objects, &count));
    const char **keys = tarn_arena_calloc(t->arena, count + 1, sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = tarn_arena_str(t->arena, objects[i].key);
    if (out != NULL)
        *out = keys;
    return count;
}

bool fake_daemon_scratch_is_empty(struct fake_daemon *daemon)
{
    DIR *dir = opendir(daemon->scratch_dir);
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count == 2; /* . and .. */
}

/* --- loads and scans --- */

struct tarn_message *fake_message(const ProtobufCMessage *message)
{
    return tarn_flight_pack(message);
}

struct tarn_message *fake_task(struct fake_daemon *daemon, const Tarn__V1__IngestStart *start)
{
    Tarn__V1__IngestRequest request = TARN__V1__INGEST_REQUEST__INIT;
    Tarn__V1__IngestTask task = TARN__V1__INGEST_TASK__INIT;

    task.start = (Tarn__V1__IngestStart *)(uintptr_t)start;
    task.table = &daemon->description;
    request.part_case = TARN__V1__INGEST_REQUEST__PART_TASK;
    request.task = &task;
    return tarn_flight_pack(&request.base);
}

struct tarn_message *fake_file(const char *name, int format)
{
    Tarn__V1__IngestRequest request = TARN__V1__INGEST_REQUEST__INIT;
    Tarn__V1__IngestFile file = TARN__V1__INGEST_FILE__INIT;

    file.name = tarn_flight_data(tarn_slice_str(name));
    file.format = (Tarn__V1__DataFormat)format;
    request.part_case = TARN__V1__INGEST_REQUEST__PART_FILE;
    request.file = &file;
    return tarn_flight_pack(&request.base);
}

struct tarn_message *fake_data(struct tarn_slice bytes)
{
    Tarn__V1__IngestRequest request = TARN__V1__INGEST_REQUEST__INIT;

    request.part_case = TARN__V1__INGEST_REQUEST__PART_DATA;
    request.data = tarn_flight_data(bytes);
    return tarn_flight_pack(&request.base);
}

static struct tarn_status *send_files(struct tarn_client_call *call, const struct fake_load *files)
{
    for (const struct fake_load *f = files; f->name != NULL; f++) {
        TARN_TRY(tarn_client_call_write(call, fake_file(f->name, f->format)));
        for (size_t at = 0; at < f->bytes.size; at += PIECE)
            TARN_TRY(tarn_client_call_write(
                call, fake_data(tarn_slice_of(f->bytes.data + at,
                                              TARN_MIN((size_t)PIECE, f->bytes.size - at)))));
    }
    return tarn_client_call_writes_done(call);
}

struct tarn_status *fake_ingest(struct fake_daemon *daemon, struct tarn_test *t,
                                const Tarn__V1__IngestStart *start, const struct fake_load *files,
                                const Tarn__V1__IngestResponse **out)
{
    TARN_OWN(tarn_client_call_drop) struct tarn_client_call *call = NULL;
    TARN_OWN(tarn_message_drop) struct tarn_message *answer = NULL;
    const void *message;

    TARN_TRY(tarn_channel_call(daemon->channel, t->op, "/tarn.v1.DataService/Ingest", &call));
    TARN_TRY(tarn_client_call_write(call, fake_task(daemon, start)));
    tarn_status_free(send_files(call, files)); /* where it fails, finish says why */
    struct tarn_status *s = tarn_client_call_read(call, &answer);
    if (s != TARN_OK || answer == NULL) {
        tarn_status_free(s);
        s = tarn_client_call_finish(call);
        return s != TARN_OK ? s : tarn_status_new(TARN_INTERNAL, "no answer and no error");
    }
    TARN_TRY(tarn_client_call_finish(call));
    TARN_TRY(tarn_flight_unpack(&tarn__v1__ingest_response__descriptor, tarn_message_bytes(answer),
                                t->arena, &message));
    *out = message;
    return TARN_OK;
}

struct tarn_manifest_entry *fake_entries(struct tarn_test *t, const ProtobufCBinaryData *packed,
                                         size_t count)
{
    struct tarn_manifest_entry *entries = tarn_arena_calloc(t->arena, count + 1, sizeof *entries);

    for (size_t i = 0; i < count; i++)
        expect_ok(tarn_manifest_entry_unpack(tarn_flight_slice(packed[i]), t->arena, &entries[i]));
    return entries;
}

struct tarn_status *fake_scan(struct fake_daemon *daemon, struct tarn_test *t,
                              Tarn__V1__ScanRequest *request, const ProtobufCBinaryData *entries,
                              size_t count, bool raw, struct tarn_buf *out,
                              const Tarn__V1__ScanSummary **summary)
{
    Tarn__V1__ScanTask task = TARN__V1__SCAN_TASK__INIT;
    Tarn__V1__SplitTask split = TARN__V1__SPLIT_TASK__INIT, *splits[] = {&split};
    TARN_OWN(tarn_client_call_drop) struct tarn_client_call *call = NULL;

    if (count > 0) {
        struct tarn_manifest_entry first = {0};
        tarn_status_free(
            tarn_manifest_entry_unpack(tarn_flight_slice(entries[0]), t->arena, &first));
        split.partition = tarn_flight_data(first.partition);
        split.bucket = first.bucket;
    }
    split.files = (ProtobufCBinaryData *)(uintptr_t)entries;
    split.n_files = count;
    split.raw = raw;
    task.table = &daemon->description;
    task.snapshot_id = 7;
    task.splits = splits;
    task.n_splits = count > 0 ? 1 : 0;
    request->task = &task;
    *summary = NULL;
    TARN_TRY(tarn_channel_call(daemon->channel, t->op, "/tarn.v1.DataService/Scan", &call));
    TARN_TRY(tarn_client_call_write(call, tarn_flight_pack(&request->base)));
    TARN_TRY(tarn_client_call_writes_done(call));
    for (;;) {
        TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
        const void *decoded;
        struct tarn_status *s = tarn_client_call_read(call, &message);
        if (s != TARN_OK || message == NULL) {
            tarn_status_free(s);
            return tarn_client_call_finish(call);
        }
        TARN_TRY(tarn_flight_unpack(&tarn__v1__scan_response__descriptor,
                                    tarn_message_bytes(message), t->arena, &decoded));
        const Tarn__V1__ScanResponse *response = decoded;
        if (*summary != NULL)
            return tarn_status_new(TARN_INTERNAL, "a message behind the summary");
        tarn_buf_add_slice(out, tarn_flight_slice(response->data));
        *summary = response->summary;
    }
}
