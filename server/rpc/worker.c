#include "rpc/data.h"
#include "rpc/table.h"

#include "tarn/v1/worker.pb-c.h"

/* WorkerService. */

static struct tarn_status *do_register(struct tarn_op *op, struct tarn_service *service,
                                       const void *request, void *response)
{
    const Tarn__V1__RegisterRequest *q = request;
    Tarn__V1__RegisterResponse *r = response;
    struct tarn_worker_info info = {
        .name = q->name,
        .address = q->address,
        .version = q->version,
        .slots = q->slots,
        .memory_max_bytes = q->memory_max_bytes,
    };
    const char *id;
    TARN_TRY(tarn_service_register(op, service, &info, &id, &r->lease_ms));
    r->worker_id = tarn_rpc__str(id);
    return TARN_OK;
}

static void put_inputs(struct tarn_op *op, const struct tarn_work *work, Tarn__V1__CompactTask *out)
{
    out->n_inputs = work->file_count;
    out->inputs = TARN_RPC_ARRAY(op, work->file_count, *out->inputs);
    for (size_t i = 0; i < work->file_count; i++) {
        const struct tarn_manifest_entry *e = &work->entries[i];
        Tarn__V1__FileEntry *m = TARN_RPC_NEW(op, Tarn__V1__FileEntry, file_entry);
        m->partition = tarn_rpc__bytes(e->partition);
        m->bucket = e->bucket;
        m->total_buckets = e->total_buckets;
        m->file = tarn_rpc__put_file(op, &e->file);
        out->inputs[i] = m;
    }
}

static Tarn__V1__Task *put_task(struct tarn_op *op, const struct tarn_work *work, bool entries)
{
    Tarn__V1__CompactTask *compact = TARN_RPC_NEW(op, Tarn__V1__CompactTask, compact_task);
    compact->table = tarn_rpc__description(op, &work->description);
    compact->partition = tarn_rpc__bytes(work->partition);
    compact->bucket = work->bucket;
    if (entries) {
        put_inputs(op, work, compact);
    } else {
        compact->files = tarn_rpc__bytes_list(op, work->files, work->file_count);
        compact->n_files = work->file_count;
    }
    compact->output_level = work->output_level;
    compact->drop_delete = work->drop_delete;
    compact->rescale = work->rescale;
    compact->postponed = work->postponed;
    compact->buckets = work->bucket_count;
    compact->top_level = work->top_level;
    compact->above = tarn_rpc__bytes_list(op, work->above, work->above_count);
    compact->n_above = work->above_count;
    compact->file_uuid = (char *)(uintptr_t)work->file_uuid;
    compact->upper_files = tarn_rpc__bytes_list(op, work->upper, work->upper_count);
    compact->n_upper_files = work->upper_count;
    compact->index_files = tarn_rpc__bytes(work->indexes);
    Tarn__V1__Task *task = TARN_RPC_NEW(op, Tarn__V1__Task, task);
    task->id = work->id;
    task->token = work->token;
    task->lease_ms = work->lease_ms;
    task->compact = compact;
    return task;
}

static struct tarn_status *poll(struct tarn_op *op, struct tarn_service *service,
                                const void *request, void *response)
{
    const Tarn__V1__PollRequest *q = request;
    Tarn__V1__PollResponse *r = response;
    struct tarn_work *list;
    size_t count;
    TARN_TRY(
        tarn_service_poll(op, service, q->worker_id, q->free_slots, q->wait_ms, &list, &count));
    r->tasks = TARN_RPC_ARRAY(op, count, *r->tasks);
    r->n_tasks = count;
    for (size_t i = 0; i < count; i++)
        r->tasks[i] = put_task(op, &list[i], q->file_entries);
    return TARN_OK;
}

static struct tarn_status *renew(struct tarn_op *op, struct tarn_service *service,
                                 const void *request, void *response)
{
    const Tarn__V1__RenewRequest *q = request;
    Tarn__V1__RenewResponse *r = response;
    struct tarn_lease_ref *leases = TARN_RPC_ARRAY(op, q->n_leases, *leases);
    for (size_t i = 0; i < q->n_leases; i++)
        leases[i] = (struct tarn_lease_ref){q->leases[i]->task_id, q->leases[i]->token};
    return tarn_service_renew(op, service, q->worker_id, leases, q->n_leases, &r->lost_task_ids,
                              &r->n_lost_task_ids);
}

/* Of either kind; as workers pack them, whose decoder knows what a file may be. */
static struct tarn_status *take_changes(struct tarn_op *op, const Tarn__V1__ReportRequest *q,
                                        struct tarn_slice **out, size_t *count)
{
    const struct tarn_manifest_entry *entries;
    *count = q->n_entries;
    *out = tarn_rpc__slices(op, q->entries, q->n_entries);
    if (q->n_changes == 0)
        return TARN_OK;
    if (q->n_entries > 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the report has both entries and changes");
    TARN_TRY(tarn_rpc__take_entries(op, q->changes, q->n_changes, &entries));
    *count = q->n_changes;
    *out = TARN_RPC_ARRAY(op, q->n_changes, **out);
    for (size_t i = 0; i < q->n_changes; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        tarn_manifest_entry_pack(&entries[i], true, &bytes);
        (*out)[i] = tarn_arena_copy(op->arena, tarn_buf_slice(&bytes));
    }
    return TARN_OK;
}

static struct tarn_status *report(struct tarn_op *op, struct tarn_service *service,
                                  const void *request, void *response)
{
    const Tarn__V1__ReportRequest *q = request;
    Tarn__V1__ReportResponse *r = response;
    if (q->lease == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the report has no lease");
    struct tarn_report report = {
        .lease = {q->lease->task_id, q->lease->token},
        .failure_message = tarn_slice_str(q->failure_message),
        .rows_in = q->rows_in,
        .rows_out = q->rows_out,
        .bytes_in = q->bytes_in,
        .bytes_out = q->bytes_out,
        .cpu_ns = q->cpu_ns,
    };
    struct tarn_slice *changes;
    size_t count;
    TARN_TRY(take_changes(op, q, &changes, &count));
    const struct tarn_index_names indexes = {
        tarn_rpc__slice(q->new_index_files),
        tarn_rpc__slices(op, q->old_index_files, q->n_old_index_files), q->n_old_index_files};
    return tarn_service_report(op, service, q->worker_id, &report, q->failure_reason, changes,
                               count, tarn_rpc__slices(op, q->changelog, q->n_changelog),
                               q->n_changelog, &indexes, &r->snapshot_id);
}

static struct tarn_status *reserve_sequences(struct tarn_op *op, struct tarn_service *service,
                                             const void *request, void *response)
{
    const Tarn__V1__ReserveSequencesRequest *q = request;
    Tarn__V1__ReserveSequencesResponse *r = response;
    return tarn_service_reserve_sequences(op, service, tarn_slice_str(q->table_uuid),
                                          tarn_rpc__slice(q->partition), q->bucket, q->count,
                                          &r->first);
}

static struct tarn_status *get_bucket_count(struct tarn_op *op, struct tarn_service *service,
                                            const void *request, void *response)
{
    const Tarn__V1__GetBucketCountRequest *q = request;
    Tarn__V1__GetBucketCountResponse *r = response;
    return tarn_service_bucket_count(op, service, tarn_slice_str(q->table_uuid),
                                     tarn_rpc__slice(q->partition), &r->buckets);
}

#define U(method, request, response, fn)                                                           \
    TARN_RPC_UNARY(WorkerService, method, request, response, fn)
const struct tarn_rpc__method tarn_rpc__worker_methods[] = {
    U(Register, register_request, register_response, do_register),
    U(Poll, poll_request, poll_response, poll),
    U(Renew, renew_request, renew_response, renew),
    U(Report, report_request, report_response, report),
    U(ReserveSequences, reserve_sequences_request, reserve_sequences_response, reserve_sequences),
    U(GetBucketCount, get_bucket_count_request, get_bucket_count_response, get_bucket_count),
    TARN_RPC_END,
};
