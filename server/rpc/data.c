#include "rpc/data.h"

#include "rpc/channels.h"
#include "rpc/table.h"
#include "service/subscribe.h"

/*
 * DataService: what comes between a client and a worker.
 *
 *   client --start--> begin (service) --task--> worker
 *          --file, data, ...--> passed on unread --> worker writes files
 *                    commit (service) <--entries-- worker
 *          <--answer--
 *
 * A load that fails before its commit leaves nothing: the worker removes its files when its stream
 * breaks or it finds the error itself, `service` when the commit is refused.
 */

#define INGEST_PATH "/tarn.v1.DataService/Ingest"
#define SCAN_PATH "/tarn.v1.DataService/Scan"
#define DELETE_PATH "/tarn.v1.DataService/Delete"
#define INFER_PATH "/tarn.v1.DataService/Infer"

Tarn__V1__TableDescription *tarn_rpc__description(struct tarn_op *op,
                                                  const struct tarn_table_description *d)
{
    Tarn__V1__TableDescription *out =
        TARN_RPC_NEW(op, Tarn__V1__TableDescription, table_description);
    out->store_uri = tarn_rpc__str(d->store_uri);
    out->path = tarn_rpc__bytes(tarn_slice_str(d->path));
    out->uuid = tarn_rpc__str(d->uuid);
    out->name = tarn_rpc__bytes(tarn_slice_str(d->name));
    out->schemas = tarn_rpc__bytes_list(op, d->schemas, d->schema_count);
    out->n_schemas = d->schema_count;
    out->schema_id = d->schema_id;
    return out;
}

static Tarn__V1__SplitTask **put_splits(struct tarn_op *op, const struct tarn_scan *scan)
{
    Tarn__V1__SplitTask **splits = TARN_RPC_ARRAY(op, scan->split_count, *splits);
    for (size_t i = 0; i < scan->split_count; i++) {
        Tarn__V1__SplitTask *split = TARN_RPC_NEW(op, Tarn__V1__SplitTask, split_task);
        split->partition = tarn_rpc__bytes(scan->splits[i].partition);
        split->bucket = scan->splits[i].bucket;
        split->raw = scan->splits[i].raw;
        split->files = tarn_rpc__bytes_list(op, scan->splits[i].files, scan->splits[i].file_count);
        split->n_files = scan->splits[i].file_count;
        split->differs = scan->splits[i].differs;
        split->before_files =
            tarn_rpc__bytes_list(op, scan->splits[i].before_files, scan->splits[i].before_count);
        split->n_before_files = scan->splits[i].before_count;
        splits[i] = split;
    }
    return splits;
}

/* --- a stream to a worker --- */

struct relay {
    struct tarn_op *op;
    struct tarn_rpc *rpc;
    const char *worker_address;
    struct tarn_rpc__channel *channel;
    struct tarn_client_call *call;
    bool worker_failed; /* the connection, not the request */
};

static struct tarn_status *relay_open(struct relay *r, const char *path)
{
    TARN_TRY(tarn_rpc__channel_take(r->rpc, r->worker_address, &r->channel));
    return tarn_channel_call(r->channel->channel, r->op, path, &r->call);
}

static void relay_fini(struct relay *r)
{
    tarn_client_call_free(r->call); /* cancels what hasn't ended: the worker cleans up */
    if (r->channel != NULL)
        tarn_rpc__channel_give(r->rpc, r->channel, r->worker_failed);
}

/* The worker's outcome. A status without a reason of ours is the transport's: the worker is gone. */
static struct tarn_status *relay_finish(struct relay *r)
{
    struct tarn_status *s = tarn_client_call_finish(r->call);
    if (s == TARN_OK)
        return TARN_OK;
    struct tarn_status *ended = tarn_op_check(r->op);
    if (ended != TARN_OK) { /* the client's doing, not the worker's */
        tarn_status_free(s);
        return ended;
    }
    if (tarn_status_reason(s) != TARN_UNAVAILABLE)
        return s;
    r->worker_failed = true;
    return tarn_status_wrap(tarn_status_as(s, TARN_WORKER_LOST), "worker %s", r->worker_address);
}

/* A step on the worker's stream failed; why, its outcome says. */
static struct tarn_status *relay_explain(struct relay *r, struct tarn_status *consumed)
{
    struct tarn_status *outcome = relay_finish(r);
    if (outcome == TARN_OK)
        return consumed;
    tarn_status_free(consumed);
    return outcome;
}

static struct tarn_status *relay_send(struct relay *r, struct tarn_message *consumed)
{
    struct tarn_status *s = tarn_client_call_write(r->call, consumed);
    return s == TARN_OK ? TARN_OK : relay_explain(r, s);
}

static struct tarn_status *relay_send_message(struct relay *r, const ProtobufCMessage *message)
{
    struct tarn_message *packed;
    TARN_TRY(tarn_rpc__pack(message, TARN_RPC_WORKER_MESSAGE_MAX, &packed));
    return relay_send(r, packed);
}

/* All that the client, if there is one, sends from here on. */
static struct tarn_status *relay_input(struct relay *r, struct tarn_call *from)
{
    while (from != NULL) {
        struct tarn_message *message;
        TARN_TRY(tarn_call_read(from, &message));
        if (message == NULL)
            break;
        TARN_TRY(relay_send(r, message));
    }
    struct tarn_status *s = tarn_client_call_writes_done(r->call);
    return s == TARN_OK ? TARN_OK : relay_explain(r, s);
}

/* The worker's one answer; after it, its outcome. */
static struct tarn_status *relay_answer(struct relay *r, struct tarn_message **out)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    struct tarn_status *s = tarn_client_call_read(r->call, &message);
    if (s != TARN_OK)
        return relay_explain(r, s);
    TARN_TRY(relay_finish(r));
    if (message == NULL)
        return tarn_status_new(TARN_INTERNAL, "worker %s gave no answer", r->worker_address);
    *out = tarn_move(message);
    return TARN_OK;
}

/* --- ingest --- */

static struct tarn_status *read_start(struct tarn_op *op, struct tarn_call *call,
                                      Tarn__V1__IngestStart **out)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__ingest_request__descriptor, &request));
    const Tarn__V1__IngestRequest *q = request;
    if (q->part_case != TARN__V1__INGEST_REQUEST__PART_START || q->start == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a load begins with `start`");
    *out = q->start;
    return TARN_OK;
}

static const struct {
    Tarn__V1__LoadMode wire;
    enum tarn_load_mode mode;
} load_modes[] = {
    {TARN__V1__LOAD_MODE__AUTO, TARN_LOAD_AUTO},
    {TARN__V1__LOAD_MODE__APPEND_ROWS, TARN_LOAD_APPEND},
    {TARN__V1__LOAD_MODE__UPSERT, TARN_LOAD_UPSERT},
    {TARN__V1__LOAD_MODE__OVERWRITE_ROWS, TARN_LOAD_OVERWRITE},
    {TARN__V1__LOAD_MODE__DELETE_ROWS, TARN_LOAD_DELETE},
};

static struct tarn_status *begin(struct tarn_op *op, struct tarn_rpc *rpc,
                                 const Tarn__V1__IngestStart *start, struct tarn_ingest *out)
{
    enum tarn_load_mode mode = TARN_LOAD_MODE_COUNT;
    for (size_t i = 0; i < TARN_COUNT_OF(load_modes); i++)
        if (load_modes[i].wire == start->mode)
            mode = load_modes[i].mode;
    int64_t identifier = TARN_SNAPSHOT_NONE;
    if (start->_commit_identifier_case ==
        TARN__V1__INGEST_START___COMMIT_IDENTIFIER_COMMIT_IDENTIFIER)
        identifier = start->commit_identifier;
    return tarn_service_ingest_begin(op, tarn_rpc__service(rpc), tarn_rpc__ref(start->table), mode,
                                     tarn_slice_str(start->commit_user), identifier, out);
}

/* The worker gets the start with what was settled in it. written: files whose rows are the load's; NULL: rows follow. */
static struct tarn_status *send_task(struct relay *r, Tarn__V1__IngestStart *start,
                                     const struct tarn_ingest *ingest,
                                     const struct tarn_written *written)
{
    for (size_t i = 0; i < TARN_COUNT_OF(load_modes); i++)
        if (load_modes[i].mode == ingest->mode)
            start->mode = load_modes[i].wire;
    start->commit_user = tarn_rpc__text(r->op, ingest->user);
    Tarn__V1__IngestTask *task = TARN_RPC_NEW(r->op, Tarn__V1__IngestTask, ingest_task);
    task->start = start;
    task->table = tarn_rpc__description(r->op, &ingest->description);
    task->ask_bucket_counts = ingest->ask_bucket_counts;
    task->no_changelog = ingest->overwrite != TARN_OVERWRITE_NONE;
    task->index_manifest = tarn_rpc__bytes(ingest->index_manifest);
    task->known = put_splits(r->op, &ingest->known);
    task->n_known = ingest->known.split_count;
    if (written != NULL) {
        task->written = tarn_rpc__bytes_list(r->op, written->entries, written->count);
        task->n_written = written->count;
    }
    Tarn__V1__IngestRequest *request = TARN_RPC_NEW(r->op, Tarn__V1__IngestRequest, ingest_request);
    request->part_case = TARN__V1__INGEST_REQUEST__PART_TASK;
    request->task = task;
    return relay_send_message(r, &request->base);
}

/* call NULL: there is nothing to send but `written`. */
static struct tarn_status *run_ingest(struct relay *r, struct tarn_call *call,
                                      Tarn__V1__IngestStart *start,
                                      const struct tarn_ingest *ingest,
                                      const struct tarn_written *written,
                                      Tarn__V1__IngestResponse **out)
{
    TARN_TRY(relay_open(r, INGEST_PATH));
    TARN_TRY(send_task(r, start, ingest, written));
    TARN_TRY(relay_input(r, call));
    TARN_OWN(tarn_message_drop) struct tarn_message *answer = NULL;
    TARN_TRY(relay_answer(r, &answer));
    void *response;
    struct tarn_status *s = tarn_rpc__unpack(r->op, &tarn__v1__ingest_response__descriptor,
                                             tarn_message_bytes(answer), &response);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "worker %s", r->worker_address);
    *out = response;
    return TARN_OK;
}

static struct tarn_written written_of(struct tarn_op *op, const Tarn__V1__IngestResponse *r)
{
    return (struct tarn_written){.entries = tarn_rpc__slices(op, r->entries, r->n_entries),
                                 .count = r->n_entries,
                                 .changelog = tarn_rpc__slices(op, r->changelog, r->n_changelog),
                                 .changelog_count = r->n_changelog,
                                 .indexes = tarn_rpc__slice(r->indexes)};
}

/* The rows that the worker wrote, written once more; the answer tells what is new of it. */
static struct tarn_status *write_again(struct relay *r, Tarn__V1__IngestStart *start,
                                       struct tarn_ingest *ingest, Tarn__V1__IngestResponse *answer,
                                       struct tarn_written *written)
{
    Tarn__V1__IngestResponse *anew = NULL;
    struct relay again = {.op = r->op, .rpc = r->rpc, .worker_address = r->worker_address};
    struct tarn_status *s = run_ingest(&again, NULL, start, ingest, written, &anew);
    r->worker_failed = r->worker_failed || again.worker_failed;
    relay_fini(&again);
    tarn_service_ingest_discard(tarn_rpc__service(r->rpc), ingest, written);
    TARN_TRY(s);
    *written = written_of(r->op, anew);
    answer->files_written = anew->files_written;
    answer->bytes_written = anew->bytes_written;
    return TARN_OK;
}

static struct tarn_status *commit(struct relay *relay, Tarn__V1__IngestStart *start,
                                  struct tarn_ingest *ingest, Tarn__V1__IngestResponse *r)
{
    struct tarn_written written = written_of(relay->op, r);
    struct tarn_backlog backlog;
    bool repeated, again;
    for (;;) {
        TARN_TRY(tarn_service_ingest_commit(relay->op, tarn_rpc__service(relay->rpc), ingest,
                                            &written, &r->snapshot_id, &repeated, &again,
                                            &backlog));
        if (!again)
            break;
        TARN_TRY(write_again(relay, start, ingest, r, &written));
    }
    Tarn__V1__Backlog *message = TARN_RPC_NEW(relay->op, Tarn__V1__Backlog, backlog);
    if (tarn_rpc__put_backlog(&backlog, message))
        r->backlog = message;
    r->repeated_commit = repeated;
    if (repeated)
        r->rows = r->files_written = r->bytes_written = 0;
    r->n_entries = r->n_changelog = 0;
    r->indexes = (ProtobufCBinaryData){0};
    return TARN_OK;
}

/* This identity has landed: what the client sends is not wanted any more. */
static struct tarn_status *answer_repeated(struct tarn_op *op, struct tarn_call *call,
                                           int64_t snapshot_id)
{
    for (;;) {
        TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
        TARN_TRY(tarn_call_read(call, &message));
        if (message == NULL)
            break;
    }
    Tarn__V1__IngestResponse *r = TARN_RPC_NEW(op, Tarn__V1__IngestResponse, ingest_response);
    r->snapshot_id = snapshot_id;
    r->repeated_commit = true;
    return tarn_rpc__write(call, &r->base);
}

static struct tarn_status *serve_ingest(struct tarn_op *op, struct tarn_rpc *rpc,
                                        struct tarn_call *call)
{
    Tarn__V1__IngestStart *start = NULL;
    struct tarn_ingest ingest;
    TARN_TRY(read_start(op, call, &start));
    TARN_TRY(begin(op, rpc, start, &ingest));
    struct tarn_status *s;
    bool worker_failed = false;
    if (ingest.repeated_snapshot_id != 0) {
        s = answer_repeated(op, call, ingest.repeated_snapshot_id);
    } else {
        Tarn__V1__IngestResponse *response = NULL;
        struct relay relay = {.op = op, .rpc = rpc, .worker_address = ingest.worker_address};
        s = run_ingest(&relay, call, start, &ingest, NULL, &response);
        relay_fini(&relay);
        if (s == TARN_OK)
            s = commit(&relay, start, &ingest, response);
        worker_failed = relay.worker_failed;
        if (s == TARN_OK)
            s = tarn_rpc__write(call, &response->base);
    }
    tarn_service_ingest_end(tarn_rpc__service(rpc), &ingest, worker_failed);
    return s;
}

/* --- scan --- */

static Tarn__V1__ScanTask *make_scan_task(struct tarn_op *op, const struct tarn_scan *scan)
{
    Tarn__V1__ScanTask *task = TARN_RPC_NEW(op, Tarn__V1__ScanTask, scan_task);
    task->table = tarn_rpc__description(op, &scan->description);
    task->snapshot_id = scan->snapshot_id;
    task->changes = scan->changes;
    task->splits = put_splits(op, scan);
    task->n_splits = scan->split_count;
    return task;
}

/* Everything the worker sends, as it comes; each message waits for the client to take the last. */
static struct tarn_status *relay_output(struct relay *r, struct tarn_call *to)
{
    for (;;) {
        struct tarn_message *message;
        struct tarn_status *s = tarn_client_call_read(r->call, &message);
        if (s != TARN_OK)
            return relay_explain(r, s);
        if (message == NULL)
            return relay_finish(r);
        TARN_TRY(tarn_call_write(to, message));
    }
}

static struct tarn_status *run_scan(struct relay *r, struct tarn_call *call,
                                    Tarn__V1__ScanRequest *request, const struct tarn_scan *scan)
{
    request->task = make_scan_task(r->op, scan);
    TARN_TRY(relay_open(r, SCAN_PATH));
    TARN_TRY(relay_send_message(r, &request->base));
    struct tarn_status *s = tarn_client_call_writes_done(r->call);
    if (s != TARN_OK)
        return relay_explain(r, s);
    return relay_output(r, call);
}

static struct tarn_status *begin_scan(struct tarn_op *op, struct tarn_service *service,
                                      const Tarn__V1__ScanRequest *q, struct tarn_version version,
                                      struct tarn_scan *out)
{
    int how;
    if (q->changes == NULL)
        return tarn_service_scan_begin(op, service, tarn_rpc__ref(q->table), version,
                                       tarn_slice_str(q->where), out);
    TARN_TRY(tarn_rpc__how((int)q->changes->how, &how));
    return tarn_service_changes_begin(op, service, tarn_rpc__ref(q->table),
                                      q->changes->from_snapshot, how, version,
                                      tarn_slice_str(q->where), out);
}

static struct tarn_status *serve_scan(struct tarn_op *op, struct tarn_rpc *rpc,
                                      struct tarn_call *call)
{
    void *read;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__scan_request__descriptor, &read));
    Tarn__V1__ScanRequest *request = read;
    struct tarn_version version;
    struct tarn_scan scan;
    TARN_TRY(tarn_rpc__version(request->version, &version));
    TARN_TRY(begin_scan(op, tarn_rpc__service(rpc), request, version, &scan));
    struct relay relay = {.op = op, .rpc = rpc, .worker_address = scan.worker_address};
    struct tarn_status *s = run_scan(&relay, call, request, &scan);
    relay_fini(&relay);
    tarn_service_stream_end(tarn_rpc__service(rpc), scan.worker_id, relay.worker_failed);
    return s;
}

/* --- delete --- */

#define DELETE_TRIES_MAX 5 /* others rewrote the files, or deleted in them, each time */

static struct tarn_status *ask_to_mark(struct relay *r, const Tarn__V1__DeleteRequest *q,
                                       const struct tarn_delete *d, Tarn__V1__DeleteResponse **out)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *answer = NULL;
    Tarn__V1__DeleteRequest *request = TARN_RPC_NEW(r->op, Tarn__V1__DeleteRequest, delete_request);
    Tarn__V1__DeleteTask *task = TARN_RPC_NEW(r->op, Tarn__V1__DeleteTask, delete_task);
    void *response;
    task->table = tarn_rpc__description(r->op, &d->scan.description);
    task->splits = put_splits(r->op, &d->scan);
    task->n_splits = d->scan.split_count;
    task->index_files = tarn_rpc__bytes(d->indexes);
    request->where = q->where;
    request->task = task;
    TARN_TRY(relay_open(r, DELETE_PATH));
    TARN_TRY(relay_send_message(r, &request->base));
    struct tarn_status *s = tarn_client_call_writes_done(r->call);
    if (s != TARN_OK)
        return relay_explain(r, s);
    TARN_TRY(relay_answer(r, &answer));
    s = tarn_rpc__unpack(r->op, &tarn__v1__delete_response__descriptor, tarn_message_bytes(answer),
                         &response);
    *out = response;
    return s == TARN_OK ? s : tarn_status_wrap(s, "worker %s", r->worker_address);
}

static struct tarn_status *mark_and_commit(struct relay *r, const Tarn__V1__DeleteRequest *q,
                                           const struct tarn_delete *d,
                                           Tarn__V1__DeleteResponse *out)
{
    Tarn__V1__DeleteResponse *marked;
    TARN_TRY(ask_to_mark(r, q, d, &marked));
    const struct tarn_index_names indexes = {
        tarn_rpc__slice(marked->new_index_files),
        tarn_rpc__slices(r->op, marked->old_index_files, marked->n_old_index_files),
        marked->n_old_index_files};
    out->rows = marked->rows;
    out->files = marked->files;
    return tarn_service_delete_commit(r->op, tarn_rpc__service(r->rpc), d, &indexes,
                                      &out->snapshot_id);
}

static struct tarn_status *try_delete(struct tarn_op *op, struct tarn_rpc *rpc,
                                      const Tarn__V1__DeleteRequest *q,
                                      Tarn__V1__DeleteResponse *out)
{
    struct tarn_delete d;
    TARN_TRY(tarn_service_delete_begin(op, tarn_rpc__service(rpc), tarn_rpc__ref(q->table),
                                       tarn_slice_str(q->where), tarn_slice_str(q->commit_user),
                                       &d));
    struct relay relay = {.op = op, .rpc = rpc, .worker_address = d.scan.worker_address};
    struct tarn_status *s = d.scan.split_count == 0 ? TARN_OK : mark_and_commit(&relay, q, &d, out);
    relay_fini(&relay);
    tarn_service_delete_end(tarn_rpc__service(rpc), &d, relay.worker_failed);
    return s;
}

static struct tarn_status *serve_delete(struct tarn_op *op, struct tarn_rpc *rpc,
                                        struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__delete_request__descriptor, &request));
    Tarn__V1__DeleteResponse *response =
        TARN_RPC_NEW(op, Tarn__V1__DeleteResponse, delete_response);
    for (int tries = 1;; tries++) {
        struct tarn_status *s = try_delete(op, rpc, request, response);
        enum tarn_reason reason = tarn_status_reason(s);
        if (s == TARN_OK)
            return tarn_rpc__write(call, &response->base);
        if ((reason != TARN_COMMIT_CONFLICT && reason != TARN_INDEX_STALE) ||
            tries == DELETE_TRIES_MAX)
            return s;
        tarn_status_free(s);
    }
}

/* --- infer --- */

static struct tarn_status *run_infer(struct relay *r, struct tarn_call *call)
{
    TARN_TRY(relay_open(r, INFER_PATH));
    TARN_TRY(relay_input(r, call));
    struct tarn_message *answer;
    TARN_TRY(relay_answer(r, &answer));
    return tarn_call_write(call, answer);
}

static struct tarn_status *serve_infer(struct tarn_op *op, struct tarn_rpc *rpc,
                                       struct tarn_call *call)
{
    struct relay relay = {.op = op, .rpc = rpc};
    const char *worker_id;
    TARN_TRY(
        tarn_service_infer_begin(op, tarn_rpc__service(rpc), &worker_id, &relay.worker_address));
    struct tarn_status *s = run_infer(&relay, call);
    relay_fini(&relay);
    tarn_service_stream_end(tarn_rpc__service(rpc), worker_id, relay.worker_failed);
    return s;
}

const struct tarn_rpc__method tarn_rpc__data_methods[] = {
    TARN_RPC_STREAM(DataService, Ingest, serve_ingest),
    TARN_RPC_STREAM(DataService, Scan, serve_scan),
    TARN_RPC_STREAM(DataService, Delete, serve_delete),
    TARN_RPC_STREAM(DataService, Infer, serve_infer),
    TARN_RPC_END,
};
