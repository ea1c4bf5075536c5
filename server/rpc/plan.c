#include "rpc/table.h"

/* Plans, streamed. */

#define SPLITS_PER_MESSAGE 100
#define FILES_PER_MESSAGE 1000

static Tarn__V1__Split *put_split(struct tarn_op *op, const struct tarn_split *split,
                                  const char *path)
{
    Tarn__V1__Split *out = TARN_RPC_NEW(op, Tarn__V1__Split, split);
    out->partition = tarn_rpc__bytes(split->partition);
    out->bucket = split->bucket;
    out->raw = split->raw;
    out->path = tarn_rpc__str(path);
    out->n_files = split->file_count;
    out->files = TARN_RPC_ARRAY(op, split->file_count, *out->files);
    for (size_t i = 0; i < split->file_count; i++)
        out->files[i] = tarn_rpc__put_file(op, &split->files[i].entry.file);
    return out;
}

static Tarn__V1__PlanSummary *put_summary(struct tarn_op *op, const struct tarn_plan *plan)
{
    Tarn__V1__PlanSummary *out = TARN_RPC_NEW(op, Tarn__V1__PlanSummary, plan_summary);
    out->snapshot_id = plan->has_snapshot ? plan->snapshot.id : 0;
    out->schema_id = plan->schema->id;
    out->files_seen = plan->files_seen;
    out->pruned_by_partition = plan->pruned_by_partition;
    out->pruned_by_bucket = plan->pruned_by_bucket;
    out->pruned_by_key = plan->pruned_by_key;
    out->pruned_by_stats = plan->pruned_by_stats;
    out->splits = (int64_t)plan->split_count;
    for (size_t i = 0; i < plan->split_count; i++)
        out->files_left += (int64_t)plan->splits[i].file_count;
    return out;
}

/* Messages are built one at a time, each in an arena of its own: a plan may be large. */
static struct tarn_status *write_splits(struct tarn_op *op, struct tarn_call *call,
                                        const struct tarn_plan *plan, const char *const *paths,
                                        size_t begin, size_t end)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part;
    tarn_op_init_child(&part, op);
    Tarn__V1__PlanResponse *r = TARN_RPC_NEW(&part, Tarn__V1__PlanResponse, plan_response);
    r->splits = TARN_RPC_ARRAY(&part, end - begin, *r->splits);
    for (size_t i = begin; i < end; i++)
        r->splits[r->n_splits++] = put_split(&part, &plan->splits[i], paths[i]);
    if (end == plan->split_count)
        r->summary = put_summary(&part, plan);
    return tarn_rpc__write(call, &r->base);
}

static struct tarn_status *plan(struct tarn_op *op, struct tarn_service *service,
                                struct tarn_call *call, const Tarn__V1__PlanRequest *q)
{
    struct tarn_version version;
    struct tarn_plan p;
    const char **paths;
    TARN_TRY(tarn_rpc__version(q->version, &version));
    TARN_TRY(tarn_service_plan(op, service, tarn_rpc__ref(q->table), version,
                               tarn_slice_str(q->where), &p, &paths));
    size_t begin = 0;
    do {
        size_t end = begin, files = 0;
        while (end < p.split_count && end - begin < SPLITS_PER_MESSAGE && files < FILES_PER_MESSAGE)
            files += p.splits[end++].file_count;
        TARN_TRY(write_splits(op, call, &p, paths, begin, end));
        begin = end;
    } while (begin < p.split_count);
    return TARN_OK;
}

struct tarn_status *tarn_rpc__plan(struct tarn_op *op, struct tarn_rpc *rpc, struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__plan_request__descriptor, &request));
    return plan(op, tarn_rpc__service(rpc), call, request);
}
