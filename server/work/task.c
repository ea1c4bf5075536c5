/* One task: its run, its lease, its report. */
#include "internal.h"

#define RENEW_MS_MIN 20
#define REPORT_MS 300000 /* a commit on a slow store, behind others */
#define REPORT_TRIES_MAX 5
#define WRITE_BUFFER_SIZE (INT64_C(64) << 20)
#define STOP_REPORT_MS 2000 /* what the last word of a worker that stops may take */

void tarn_work__task_free(struct task *task)
{
    tarn_op_fini(&task->op);
    free(task);
}

/* --- the lease --- */

static struct tarn_status *ask_renewal(struct task *task, struct tarn_op *op, bool *lost)
{
    Tarn__V1__RenewRequest request = TARN__V1__RENEW_REQUEST__INIT;
    Tarn__V1__LeaseRef lease = TARN__V1__LEASE_REF__INIT;
    Tarn__V1__LeaseRef *leases[] = {&lease};
    const void *message;

    lease.task_id = task->message->id;
    lease.token = task->message->token;
    request.worker_id = (char *)(uintptr_t)task->worker_id;
    request.leases = leases;
    request.n_leases = 1;
    TARN_TRY(tarn_flight_ask(task->work->options.daemon, op, "/tarn.v1.WorkerService/Renew",
                             &request.base, &tarn__v1__renew_response__descriptor, &message));
    const Tarn__V1__RenewResponse *response = message;
    for (size_t i = 0; i < response->n_lost_task_ids; i++)
        *lost = *lost || response->lost_task_ids[i] == task->message->id;
    return TARN_OK;
}

/* A timer's job. The time that counts is when the question was put: the daemon's begins later. */
static void renew(void *arg)
{
    struct task *task = arg;
    struct tarn_op op;
    int64_t asked_ms = tarn_clock_mono_ms();
    bool lost = false;

    tarn_op_init(&op);
    op.deadline_mono_ms = asked_ms + TARN_MAX((int64_t)RENEW_MS_MIN, task->message->lease_ms / 3);
    struct tarn_status *s = ask_renewal(task, &op, &lost);
    if (s == TARN_OK && !lost)
        atomic_store(&task->renewed_ms, asked_ms);
    else if (!lost)
        lost = tarn_status_reason(s) == TARN_WORKER_LOST ||
               tarn_clock_mono_ms() - atomic_load(&task->renewed_ms) >= task->message->lease_ms;
    if (lost && !atomic_exchange(&task->lost, true)) {
        tarn_log(
            &task->op, TARN_WARN, "task.lease_lost", "id=%" PRId64 " error=%s", task->message->id,
            tarn_log_quote(NULL, s == TARN_OK ? "the daemon says so" : tarn_status_message(s)));
        tarn_op_cancel(&task->op);
    }
    tarn_status_free(s);
    tarn_op_fini(&op);
}

/* --- the run --- */

struct outcome {
    struct tarn_merge_table table;
    struct tarn_compact_result result;
    int64_t cpu_ns;
};

static struct tarn_status *reserve_sequences(void *arg, struct tarn_op *op,
                                             struct tarn_slice partition, int32_t bucket,
                                             int64_t count, int64_t *first)
{
    const struct task *task = arg;
    return tarn_flight_reserve_sequences(task->work->options.daemon, op,
                                         task->message->compact->table->uuid, partition, bucket,
                                         count, first);
}

static struct tarn_status *run_rescale(struct task *task, struct outcome *out)
{
    const Tarn__V1__CompactTask *rescale = task->message->compact;
    const struct tarn_work_options *options = &task->work->options;
    struct tarn_options *wanted = tarn_arena_calloc(task->op.arena, 1, sizeof *wanted);
    struct tarn_manifest_entry *files;

    *wanted = *out->table.options;
    if (rescale->buckets > 0)
        wanted->bucket = rescale->buckets;
    out->table.options = wanted;
    TARN_TRY(tarn_flight_entries_unpack(rescale->files, rescale->n_files,
                                        tarn_flight_slice(rescale->partition),
                                        TARN_FLIGHT_ANY_BUCKET, task->op.arena, &files));
    struct tarn_write_spec write = {
        .sequence = reserve_sequences,
        .sequence_arg = task,
        .buffer_size =
            options->write_buffer_size > 0 ? options->write_buffer_size : WRITE_BUFFER_SIZE,
        .scratch_dir = options->scratch_dir,
        .no_changelog = !rescale->postponed,
    };
    struct tarn_rescale_spec spec = {.files = files,
                                     .file_count = rescale->n_files,
                                     .write = &write,
                                     .postponed = rescale->postponed};
    return tarn_rescale_run(&task->op, &out->table, &spec, task->op.arena, &out->result);
}

static struct tarn_status *run(struct task *task, struct outcome *out)
{
    const Tarn__V1__CompactTask *compact = task->message->compact;
    struct tarn_arena *arena = task->op.arena;
    struct tarn_manifest_entry *files, *above;

    if (compact == NULL)
        return tarn_status_new(TARN_UNIMPLEMENTED, "this worker knows no task of that kind");
    TARN_TRY(
        tarn_flight_table_open(task->work->options.tables, compact->table, arena, &out->table));
    if (compact->rescale)
        return run_rescale(task, out);
    TARN_TRY(tarn_flight_entries_unpack(compact->files, compact->n_files,
                                        tarn_flight_slice(compact->partition), compact->bucket,
                                        arena, &files));
    TARN_TRY(tarn_flight_entries_unpack(compact->above, compact->n_above,
                                        tarn_flight_slice(compact->partition), compact->bucket,
                                        arena, &above));
    if (compact->output_level < 0 ||
        (compact->output_level > 0 && tarn_schema_is_append(out->table.schema)))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "output level %" PRId32,
                               compact->output_level);
    struct tarn_index_file *indexes;
    size_t index_count;
    TARN_TRY(tarn_flight_indexes_unpack(compact->index_files, arena, &indexes, &index_count));
    struct tarn_manifest_entry *upper;
    TARN_TRY(tarn_flight_entries_unpack(compact->upper_files, compact->n_upper_files,
                                        tarn_flight_slice(compact->partition), compact->bucket,
                                        arena, &upper));
    struct tarn_compact_spec spec = {
        .files = files,
        .file_count = compact->n_files,
        .output_level = compact->output_level,
        .drop_delete = compact->drop_delete != 0,
        .upper = upper,
        .upper_count = compact->n_upper_files,
        .indexes = indexes,
        .index_count = index_count,
        .scratch_dir = task->work->options.scratch_dir,
        .top_level = compact->top_level,
        .above = above,
        .above_count = compact->n_above,
        .file_uuid =
            strlen(compact->file_uuid) >= TARN_FILE_UUID_SHARED ? compact->file_uuid : NULL,
    };
    return tarn_compact_run(&task->op, &out->table, &spec, arena, &out->result);
}

/* --- the report --- */

static void fill_report(struct task *task, const struct outcome *outcome,
                        const struct tarn_status *failure, struct tarn_arena *arena,
                        Tarn__V1__ReportRequest *request)
{
    request->worker_id = (char *)(uintptr_t)task->worker_id;
    request->lease->task_id = task->message->id;
    request->lease->token = task->message->token;
    request->cpu_ns = outcome->cpu_ns;
    if (failure != TARN_OK) {
        request->failure_reason = (char *)(uintptr_t)tarn_reason_name(tarn_status_reason(failure));
        request->failure_message = (char *)(uintptr_t)tarn_status_message(failure);
        return;
    }
    request->n_entries = outcome->result.entry_count;
    request->entries =
        tarn_flight_entries_pack(outcome->result.entries, outcome->result.entry_count, arena);
    request->n_changelog = outcome->result.changelog_count;
    request->changelog =
        tarn_flight_entries_pack(outcome->result.changelog, outcome->result.changelog_count, arena);
    struct tarn_status *s = tarn_flight_indexes_pack(
        outcome->result.indexes, outcome->result.index_count, arena, &request->new_index_files,
        &request->old_index_files, &request->n_old_index_files);
    tarn_assert(s == TARN_OK); /* they were made here */
    request->rows_in = outcome->result.rows_in;
    request->rows_out = outcome->result.rows_out;
    request->bytes_in = outcome->result.bytes_in;
    request->bytes_out = outcome->result.bytes_out;
}

/* W2: does this answer prove that nothing was committed? What can come from a lost connection, a dying
 * daemon or a time-out proves nothing. */
static bool is_refusal(const struct tarn_status *s)
{
    switch (tarn_status_code(s)) {
    case TARN_CODE_INVALID_ARGUMENT:
    case TARN_CODE_NOT_FOUND:
    case TARN_CODE_ALREADY_EXISTS:
    case TARN_CODE_PERMISSION_DENIED:
    case TARN_CODE_UNAUTHENTICATED:
    case TARN_CODE_RESOURCE_EXHAUSTED:
    case TARN_CODE_FAILED_PRECONDITION:
    case TARN_CODE_ABORTED:
    case TARN_CODE_OUT_OF_RANGE:
    case TARN_CODE_UNIMPLEMENTED:
    case TARN_CODE_DATA_LOSS:
        return tarn_status_reason(s) != TARN_OUTCOME_UNKNOWN;
    default:
        return false;
    }
}

static bool is_stopping(struct tarn_work *work)
{
    pthread_mutex_lock(&work->lock);
    bool stopping = work->stopping;
    pthread_mutex_unlock(&work->lock);
    return stopping;
}

static struct tarn_status *send_report(struct task *task, const Tarn__V1__ReportRequest *request)
{
    struct tarn_op op;
    const void *message;
    bool failed = request->failure_reason[0] != '\0';

    tarn_op_init(&op);
    op.deadline_mono_ms =
        tarn_clock_mono_ms() + (failed && is_stopping(task->work) ? STOP_REPORT_MS : REPORT_MS);
    struct tarn_status *s =
        tarn_flight_ask(task->work->options.daemon, &op, "/tarn.v1.WorkerService/Report",
                        &request->base, &tarn__v1__report_response__descriptor, &message);
    tarn_op_fini(&op);
    return s;
}

/* Asks again while there is no answer. *refused: nothing was committed, for certain. */
static struct tarn_status *report(struct task *task, const Tarn__V1__ReportRequest *request,
                                  bool *refused)
{
    int64_t pause_ms = task->work->options.retry_ms;
    bool unknown = false;

    for (int tries = 1;; tries++, pause_ms *= 2) {
        struct tarn_status *s = send_report(task, request);
        *refused = s != TARN_OK && is_refusal(s) && !unknown;
        if (s == TARN_OK || is_refusal(s) || tarn_status_reason(s) == TARN_OUTCOME_UNKNOWN)
            return s;
        unknown = true; /* a refusal of the second report says nothing of the first */
        if (tries == REPORT_TRIES_MAX || !tarn_work__pause(task->work, pause_ms))
            return s;
        tarn_status_free(s);
    }
}

static void remove_outputs(const struct outcome *outcome)
{
    struct tarn_op cleaning;

    tarn_op_init(&cleaning);
    tarn_merge_remove_files(&cleaning, &outcome->table, outcome->result.entries,
                            outcome->result.entry_count); /* W3 */
    tarn_merge_remove_files(&cleaning, &outcome->table, outcome->result.changelog,
                            outcome->result.changelog_count);
    tarn_merge_remove_index_files(&cleaning, &outcome->table, outcome->result.indexes,
                                  outcome->result.index_count);
    tarn_op_fini(&cleaning);
}

static void tell(struct task *task, const struct outcome *outcome,
                 const struct tarn_status *failure)
{
    Tarn__V1__ReportRequest request = TARN__V1__REPORT_REQUEST__INIT;
    Tarn__V1__LeaseRef lease = TARN__V1__LEASE_REF__INIT;
    bool refused = false;

    request.lease = &lease;
    fill_report(task, outcome, failure, task->op.arena, &request);
    struct tarn_status *s = report(task, &request, &refused);
    tarn_log(&task->op, s == TARN_OK ? TARN_INFO : TARN_WARN, "task.ended",
             "id=%" PRId64 " failure=%s rows_in=%" PRId64 " rows_out=%" PRId64 " bytes_in=%" PRId64
             " bytes_out=%" PRId64 " cpu_ms=%" PRId64 " error=%s",
             task->message->id, tarn_log_quote(NULL, request.failure_reason), request.rows_in,
             request.rows_out, request.bytes_in, request.bytes_out, request.cpu_ns / 1000000,
             tarn_log_quote(NULL, tarn_status_message(s)));
    if (failure == TARN_OK && refused)
        remove_outputs(outcome);
    tarn_status_free(s);
}

/* --- the whole --- */

static void leave(struct task *task)
{
    struct tarn_work *work = task->work;

    pthread_mutex_lock(&work->lock);
    for (struct task **at = &work->tasks; *at != NULL; at = &(*at)->next) {
        if (*at == task) {
            *at = task->next;
            break;
        }
    }
    pthread_mutex_unlock(&work->lock);
    tarn_work__task_free(task);
    pthread_mutex_lock(&work->lock);
    work->task_count--; /* the last touch: stop waits for it */
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

void tarn_work__run_task(void *arg)
{
    struct task *task = arg;
    struct outcome outcome = {0};
    int64_t every_ms = TARN_MAX((int64_t)RENEW_MS_MIN, task->message->lease_ms / 3);
    int64_t cpu_ns = tarn_clock_cpu_ns();

    task->renewer = tarn_timer_new(task->work->options.exec, every_ms, every_ms, renew, task);
    struct tarn_status *failure = run(task, &outcome);
    outcome.cpu_ns = tarn_clock_cpu_ns() - cpu_ns;
    if (failure != TARN_OK && !atomic_load(&task->lost) && tarn_op_is_cancelled(&task->op)) {
        tarn_status_free(failure); /* not the task's fault */
        failure = tarn_status_new(TARN_SHUTTING_DOWN, "the worker is stopping");
    }
    /* A lost lease has nothing to say, unless the run was quicker: then the daemon refuses it, or not. */
    if (failure == TARN_OK || !atomic_load(&task->lost))
        tell(task, &outcome, failure);
    tarn_timer_cancel(task->renewer);
    tarn_status_free(failure);
    leave(task);
}
