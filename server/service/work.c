#include "service/internal.h"

/* What workers ask. */

#define WORKER_PRINCIPAL                                                                           \
    "tarn-worker" /* whoever knows the secret of this start: our own children */
#define TASKS_AT_ONCE_MAX 64
#define POLL_SLICE_MS 500 /* so soon a poll notices that the daemon drains */
#define LEASES_MAX 10000
#define SEQUENCES_MAX (INT64_C(1) << 40) /* in one block */

static struct tarn_status *check_worker(struct tarn_op *op, struct tarn_service *service)
{
    return tarn_service__check(op, service, TARN_ACTION_WORK, tarn_slice_str(NULL));
}

struct tarn_status *tarn_service_register(struct tarn_op *op, struct tarn_service *service,
                                          struct tarn_worker_info *info, const char **worker_id,
                                          int64_t *lease_ms)
{
    TARN_TRY(check_worker(op, service));
    info->local = strcmp(op->principal, WORKER_PRINCIPAL) == 0;
    *lease_ms = service->lease_ms;
    return tarn_maintain_register(op, service->maintain, info, worker_id);
}

/* --- index files, as an index manifest of them alone --- */

struct tarn_status *tarn_service__pack_indexes(struct tarn_op *op,
                                               const struct tarn_index_file *files, size_t count,
                                               struct tarn_slice *out)
{
    static const uint8_t sync[16];
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    *out = tarn_slice_of("", 0);
    if (count == 0)
        return TARN_OK;
    TARN_TRY(tarn_index_manifest_encode(files, count, tarn_slice_str("none"), 0, sync, &bytes));
    *out = tarn_arena_copy(op->arena, tarn_buf_slice(&bytes));
    return TARN_OK;
}

struct tarn_status *tarn_service__unpack_indexes(struct tarn_op *op, struct tarn_slice added,
                                                 const struct tarn_slice *removed, size_t count,
                                                 struct tarn_index_file **out, size_t *out_count)
{
    struct tarn_index_file *files = NULL;
    size_t n = 0;
    if (added.size > 0)
        TARN_TRY(tarn_index_manifest_decode(added, op->arena, &files, &n));
    struct tarn_index_file *all = tarn_arena_calloc(op->arena, count + n + 1, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = (struct tarn_index_file){.kind = TARN_ENTRY_DELETE, .name = removed[i]};
    if (n > 0)
        memcpy(all + count, files, n * sizeof *files);
    for (size_t i = 0; i < n; i++)
        if (!tarn_slice_is(files[i].type, TARN_INDEX_DELETION_VECTORS) ||
            files[i].external_path.data != NULL)
            return tarn_status_new(TARN_INTERNAL,
                                   "a worker names an index file that none makes: %.*s",
                                   TARN_SLICE_ARG(files[i].name));
    *out = all;
    *out_count = count + n;
    return TARN_OK;
}

/* --- tasks --- */

static struct tarn_status *describe_task(struct tarn_op *op, struct tarn_service *service,
                                         const struct tarn_task *task, struct tarn_work *out)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, task->table, &view));
    *out = (struct tarn_work){
        .id = task->id,
        .token = task->token,
        .lease_ms = task->lease_ms,
        .partition = task->partition,
        .bucket = task->bucket,
        .output_level = task->output_level,
        .drop_delete = task->drop_delete,
        .rescale = task->rescale,
        .postponed = task->postponed,
        .bucket_count = task->bucket_count,
        .entries = task->files,
        .file_count = task->file_count,
        .top_level = task->top_level,
        .above_count = task->above_count,
        .file_uuid = task->file_uuid,
        .upper_count = task->upper_count,
    };
    size_t id_count = task->file_count + task->above_count + task->upper_count;
    out->files = tarn_arena_calloc(op->arena, task->file_count + 1, sizeof *out->files);
    out->above = tarn_arena_calloc(op->arena, task->above_count + 1, sizeof *out->above);
    out->upper = tarn_arena_calloc(op->arena, task->upper_count + 1, sizeof *out->upper);
    int64_t *ids = tarn_arena_alloc(op->arena, (id_count + 1) * sizeof *ids);
    for (size_t i = 0; i < task->file_count; i++) {
        out->files[i] = tarn_service__pack(op, &task->files[i], true);
        ids[i] = task->files[i].file.schema_id;
    }
    for (size_t i = 0; i < task->above_count; i++) {
        out->above[i] = tarn_service__pack(op, &task->above[i], false);
        ids[task->file_count + i] = task->above[i].file.schema_id;
    }
    for (size_t i = 0; i < task->upper_count; i++) {
        out->upper[i] = tarn_service__pack(op, &task->upper[i], true);
        ids[task->file_count + task->above_count + i] = task->upper[i].file.schema_id;
    }
    TARN_TRY(tarn_service__pack_indexes(op, task->indexes, task->index_count, &out->indexes));
    return tarn_service__describe(op, service, task->table, &view->schema, ids, id_count,
                                  &out->description);
}

/* A task that can't be described goes back to the queue when its lease runs out; here it is left out. */
static size_t describe_tasks(struct tarn_op *op, struct tarn_service *service,
                             const struct tarn_task *tasks, size_t count, struct tarn_work *out)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct tarn_status *s = describe_task(op, service, &tasks[i], &out[n]);
        n += s == TARN_OK;
        tarn_log_status(op, TARN_WARN, "worker.task_not_described", s);
        tarn_table_unref(tasks[i].table);
    }
    return n;
}

struct tarn_status *tarn_service_poll(struct tarn_op *op, struct tarn_service *service,
                                      const char *worker_id, int64_t free_slots, int64_t wait_ms,
                                      struct tarn_work **out, size_t *count)
{
    TARN_TRY(check_worker(op, service));
    if (free_slots < 0 || wait_ms < 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "free_slots and wait_ms must not be negative");
    size_t max = (size_t)TARN_MIN(free_slots, (int64_t)TASKS_AT_ONCE_MAX);
    struct tarn_task *tasks = NULL;
    size_t task_count = 0;
    /* A poll that stays open says nothing of its worker: that one is to speak twice a lease. */
    int64_t longest = TARN_MIN((int64_t)TARN_POLL_WAIT_MAX_MS, service->lease_ms / 2);
    int64_t until = tarn_clock_mono_ms() + TARN_MIN(wait_ms, longest);
    for (;;) {
        if (atomic_load(&service->draining))
            return tarn_status_new(TARN_SHUTTING_DOWN, "the daemon gives out no more tasks");
        int64_t left = TARN_MAX(until - tarn_clock_mono_ms(), (int64_t)0);
        TARN_TRY(tarn_maintain_poll(op, service->maintain, worker_id, max,
                                    TARN_MIN(left, (int64_t)POLL_SLICE_MS), &tasks, &task_count));
        if (task_count > 0 || left <= POLL_SLICE_MS || max == 0)
            break;
    }
    *out = tarn_arena_calloc(op->arena, task_count + 1, sizeof **out);
    *count = describe_tasks(op, service, tasks, task_count, *out);
    return TARN_OK;
}

struct tarn_status *tarn_service_renew(struct tarn_op *op, struct tarn_service *service,
                                       const char *worker_id, const struct tarn_lease_ref *leases,
                                       size_t count, int64_t **lost, size_t *lost_count)
{
    TARN_TRY(check_worker(op, service));
    if (count > LEASES_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "%zu leases, at most %d at once", count, LEASES_MAX);
    return tarn_maintain_renew(op, service->maintain, worker_id, leases, count, lost, lost_count);
}

struct tarn_status *tarn_service_report(struct tarn_op *op, struct tarn_service *service,
                                        const char *worker_id, struct tarn_report *report,
                                        const char *failure_reason, const struct tarn_slice *packed,
                                        size_t count, const struct tarn_slice *changelog,
                                        size_t changelog_count,
                                        const struct tarn_index_names *indexes,
                                        int64_t *snapshot_id)
{
    TARN_TRY(check_worker(op, service));
    report->failure = TARN_NO_REASON;
    if (failure_reason[0] != '\0') {
        report->failure = tarn_reason_find(failure_reason);
        if (report->failure == TARN_NO_REASON) /* a newer worker's word */
            report->failure = TARN_INTERNAL;
    }
    struct tarn_manifest_entry *entries, *log;
    TARN_TRY(tarn_service__unpack(op, packed, count, &entries));
    TARN_TRY(tarn_service__unpack(op, changelog, changelog_count, &log));
    report->entries = entries;
    report->entry_count = count;
    report->changelog = log;
    report->changelog_count = changelog_count;
    TARN_TRY(tarn_service__unpack_indexes(op, indexes->added, indexes->removed,
                                          indexes->removed_count, &report->indexes,
                                          &report->index_count));
    *snapshot_id = 0;
    return tarn_maintain_report(op, service->maintain, worker_id, report, snapshot_id);
}

struct tarn_status *tarn_service_reserve_sequences(struct tarn_op *op, struct tarn_service *service,
                                                   struct tarn_slice table_uuid,
                                                   struct tarn_slice partition, int32_t bucket,
                                                   int64_t count, int64_t *first)
{
    TARN_TRY(check_worker(op, service));
    if (count <= 0 || count > SEQUENCES_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a block of %" PRId64 " sequence numbers",
                               count);
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_catalog_table_by_uuid(op, service->catalog, table_uuid, &table));
    if (partition.data == NULL)
        partition = tarn_slice_of("", 0);
    return tarn_table_reserve_sequences(op, table, partition, bucket, count, first);
}

struct tarn_status *tarn_service_bucket_count(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_slice table_uuid,
                                              struct tarn_slice partition, int32_t *bucket_count)
{
    TARN_TRY(check_worker(op, service));
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_catalog_table_by_uuid(op, service->catalog, table_uuid, &table));
    return tarn_table_bucket_count(table, partition.data != NULL ? partition : tarn_slice_of("", 0),
                                   bucket_count);
}
