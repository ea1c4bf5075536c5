#include "rpc/internal.h"
#include "rpc/table.h"

#include "tarn/v1/admin.pb-c.h"
#include "tarn/v1/maintenance.pb-c.h"

/* MaintenanceService and AdminService. */

static Tarn__V1__Job **put_jobs(struct tarn_op *op, const struct tarn_job_info *jobs, size_t count)
{
    Tarn__V1__Job **out = TARN_RPC_ARRAY(op, count, *out);
    for (size_t i = 0; i < count; i++) {
        Tarn__V1__Job *j = TARN_RPC_NEW(op, Tarn__V1__Job, job);
        j->id = jobs[i].id;
        j->table = tarn_rpc__str(jobs[i].table);
        j->kind = tarn_rpc__str(jobs[i].kind);
        j->partition = tarn_rpc__str(jobs[i].partition);
        j->bucket = jobs[i].bucket;
        j->state = tarn_rpc__str(jobs[i].state);
        j->files = jobs[i].file_count;
        j->bytes = jobs[i].bytes;
        j->output_level = jobs[i].output_level;
        j->why = tarn_rpc__str(jobs[i].why);
        j->worker = tarn_rpc__str(jobs[i].worker);
        j->priority = jobs[i].priority;
        j->created_ms = jobs[i].created_ms;
        j->ended_ms = jobs[i].ended_ms;
        j->failure = tarn_rpc__str(jobs[i].failure);
        j->attempts = jobs[i].attempts;
        j->snapshot_id = jobs[i].snapshot_id;
        j->bytes_written = jobs[i].bytes_written;
        j->rows_in = jobs[i].rows_in;
        j->rows_out = jobs[i].rows_out;
        j->cpu_ns = jobs[i].cpu_ns;
        j->decision = jobs[i].decision == NULL ? NULL : tarn_rpc__decision(op, jobs[i].decision);
        out[i] = j;
    }
    return out;
}

static struct tarn_status *tell(void *arg, struct tarn_op *op,
                                const struct tarn_compact_progress *progress)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part;
    tarn_op_init_child(&part, op);
    Tarn__V1__CompactProgress *p = TARN_RPC_NEW(&part, Tarn__V1__CompactProgress, compact_progress);
    p->tasks_total = progress->total;
    p->tasks_done = progress->done;
    p->tasks_failed = progress->failed;
    p->files_before = progress->files_before;
    p->files_after = progress->files_after;
    p->bytes_rewritten = progress->bytes_rewritten;
    p->snapshot_id = progress->snapshot_id;
    p->picks = put_jobs(&part, progress->picks, progress->pick_count);
    p->n_picks = progress->pick_count;
    p->failure = tarn_rpc__str(progress->failure);
    return tarn_rpc__write(arg, &p->base);
}

static struct tarn_status *compact(struct tarn_op *op, struct tarn_rpc *rpc, struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__compact_request__descriptor, &request));
    const Tarn__V1__CompactRequest *q = request;
    struct tarn_compact_request r = {
        .table = tarn_rpc__ref(q->table),
        .full = q->full,
        .wait = q->wait,
        .dry_run = q->dry_run,
        .partition = tarn_rpc__partition(op, q->partition, q->n_partition),
        .partition_count = q->n_partition,
    };
    return tarn_service_compact(op, tarn_rpc__service(rpc), &r, tell, call);
}

static struct tarn_status *rescale(struct tarn_op *op, struct tarn_rpc *rpc, struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__rescale_request__descriptor, &request));
    const Tarn__V1__RescaleRequest *q = request;
    struct tarn_rescale_request r = {
        .table = tarn_rpc__ref(q->table),
        .bucket_count = q->buckets,
        .wait = q->wait,
        .dry_run = q->dry_run,
        .partition = tarn_rpc__partition(op, q->partition, q->n_partition),
        .partition_count = q->n_partition,
    };
    return tarn_service_rescale(op, tarn_rpc__service(rpc), &r, tell, call);
}

static struct tarn_status *cancel_job(struct tarn_op *op, struct tarn_service *service,
                                      const void *request, void *response TARN_UNUSED)
{
    const Tarn__V1__CancelJobRequest *q = request;
    return tarn_service_cancel_job(op, service, q->id);
}

static struct tarn_status *expire(struct tarn_op *op, struct tarn_service *service,
                                  const void *request, void *response)
{
    const Tarn__V1__ExpireRequest *q = request;
    Tarn__V1__ExpireResponse *r = response;
    struct tarn_expire_order order = {
        .table = tarn_rpc__ref(q->table),
        .keep_last = q->keep_last != 0 ? q->keep_last : TARN_EXPIRE_OPTION,
        .older_than_ms = q->by_age ? q->older_than_ms : TARN_EXPIRE_OPTION,
        .dry_run = q->dry_run,
    };
    struct tarn_expiry out;
    TARN_TRY(tarn_service_expire(op, service, &order, &out));
    r->from = out.from;
    r->to = out.to;
    r->snapshots = out.snapshot_count;
    r->data_files = out.data_file_count;
    r->data_bytes = out.data_byte_count;
    r->changelog_files = out.changelog_file_count;
    r->manifests = out.manifest_count;
    r->index_files = out.index_file_count;
    r->statistics = out.statistics_count;
    r->outside_files = out.outside_count;
    r->kept_by = tarn_rpc__str(out.kept_by);
    return TARN_OK;
}

static struct tarn_status *list_jobs(struct tarn_op *op, struct tarn_service *service,
                                     const void *request, void *response)
{
    const Tarn__V1__ListJobsRequest *q = request;
    Tarn__V1__ListJobsResponse *r = response;
    struct tarn_table_ref ref = tarn_rpc__ref(q->table);
    struct tarn_job_info *jobs;
    size_t count;
    TARN_TRY(tarn_service_list_jobs(op, service, q->table == NULL ? NULL : &ref, q->ended,
                                    q->explain, &jobs, &count));
    r->jobs = put_jobs(op, jobs, count);
    r->n_jobs = count;
    return TARN_OK;
}

static struct tarn_status *get_backlog(struct tarn_op *op, struct tarn_service *service,
                                       const void *request, void *response)
{
    const Tarn__V1__GetBacklogRequest *q = request;
    Tarn__V1__GetBacklogResponse *r = response;
    struct tarn_backlog backlog;
    TARN_TRY(tarn_service_backlog(op, service, tarn_rpc__ref(q->table), &backlog));
    r->backlog = TARN_RPC_NEW(op, Tarn__V1__Backlog, backlog);
    tarn_rpc__put_backlog(&backlog, r->backlog);
    return TARN_OK;
}

static Tarn__V1__AdviseSetting *put_setting(struct tarn_op *op,
                                            const struct tarn_advise_setting *in)
{
    Tarn__V1__AdviseSetting *m = TARN_RPC_NEW(op, Tarn__V1__AdviseSetting, advise_setting);
    m->buckets = in->bucket_count;
    m->writer_parallelism = in->writer_parallelism;
    m->compaction_trigger = in->run_trigger;
    m->target_file_size = in->target_file_size;
    m->files = in->effect.files;
    m->write_amplification = in->effect.write_amplification;
    m->read_fan_out = in->effect.read_fan_out;
    return m;
}

static struct tarn_status *advise(struct tarn_op *op, struct tarn_service *service,
                                  const void *request, void *response)
{
    const Tarn__V1__AdviseRequest *q = request;
    Tarn__V1__AdviseResponse *r = response;
    struct tarn_advice advice;
    TARN_TRY(tarn_service_advise(op, service, tarn_rpc__ref(q->table), q->bucket_size, &advice));
    r->first_snapshot = advice.first_snapshot_id;
    r->last_snapshot = advice.last_snapshot_id;
    r->span_ms = advice.span_ms;
    r->loaded_bytes = advice.new_size;
    r->largest_partition_bytes = advice.largest_partition_size;
    r->files = advice.files;
    r->sorted_runs_max = advice.runs_max;
    r->kept = advice.kept;
    r->n_causes = advice.cause_count;
    r->causes = TARN_RPC_ARRAY(op, advice.cause_count, *r->causes);
    for (size_t i = 0; i < advice.cause_count; i++)
        r->causes[i] = tarn_rpc__str(advice.causes[i]);
    r->now = put_setting(op, &advice.now);
    r->advised = put_setting(op, &advice.advised);
    return TARN_OK;
}

/* --- the daemon --- */

static Tarn__V1__WorkerInfo *put_worker(struct tarn_op *op, const struct tarn_worker_info *info)
{
    Tarn__V1__WorkerInfo *w = TARN_RPC_NEW(op, Tarn__V1__WorkerInfo, worker_info);
    w->id = tarn_rpc__str(info->id);
    w->name = tarn_rpc__str(info->name);
    w->address = tarn_rpc__str(info->address);
    w->local = info->local;
    w->slots = info->slots;
    w->busy = info->busy;
    w->version = tarn_rpc__str(info->version);
    w->last_seen_ms = info->last_seen_ms;
    w->memory_max_bytes = info->memory_max_bytes;
    return w;
}

static Tarn__V1__MirrorInfo *put_mirror(struct tarn_op *op, const struct tarn_hms_info *info)
{
    Tarn__V1__MirrorInfo *m = TARN_RPC_NEW(op, Tarn__V1__MirrorInfo, mirror_info);
    m->kind = tarn_rpc__str("hive");
    m->uri = tarn_rpc__str(info->uri);
    m->state = tarn_rpc__str(info->state);
    m->failure = tarn_rpc__str(info->failure);
    m->databases = info->database_count;
    m->tables = info->table_count;
    m->refused = info->refused_count;
    m->in_step_ms = info->in_step_ms;
    return m;
}

static struct tarn_status *get_status(struct tarn_op *op, struct tarn_service *service,
                                      const void *request TARN_UNUSED, void *response)
{
    Tarn__V1__GetStatusResponse *r = response;
    struct tarn_server_status s;
    TARN_TRY(tarn_service_status(op, service, &s));
    r->version = tarn_rpc__str(s.version);
    r->warehouse_name = tarn_rpc__str(s.warehouse_name);
    r->warehouse_uri = tarn_rpc__str(s.warehouse_uri);
    r->grpc_address = tarn_rpc__str(s.grpc_address);
    r->http_address = tarn_rpc__str(s.http_address);
    r->started_ms = s.started_ms;
    r->epoch = s.epoch;
    r->databases = s.database_count;
    r->tables = s.table_count;
    r->tasks_queued = s.tasks_queued;
    r->tasks_leased = s.tasks_leased;
    r->resident_bytes = s.resident_bytes;
    r->worker_restarts = s.worker_restarts;
    r->state = tarn_rpc__str(s.state);
    r->workers = TARN_RPC_ARRAY(op, s.worker_count, *r->workers);
    r->n_workers = s.worker_count;
    for (size_t i = 0; i < s.worker_count; i++)
        r->workers[i] = put_worker(op, &s.workers[i]);
    r->mirrors = TARN_RPC_ARRAY(op, 1, *r->mirrors);
    r->n_mirrors = s.hms != NULL;
    if (s.hms != NULL)
        r->mirrors[0] = put_mirror(op, s.hms);
    r->problems = TARN_RPC_ARRAY(op, s.problem_count, *r->problems);
    r->n_problems = s.problem_count;
    for (size_t i = 0; i < s.problem_count; i++) {
        r->problems[i] = TARN_RPC_NEW(op, Tarn__V1__TableProblem, table_problem);
        r->problems[i]->table = tarn_rpc__str(s.problems[i].table);
        r->problems[i]->problem = tarn_rpc__str(s.problems[i].problem);
    }
    return TARN_OK;
}

const struct tarn_rpc__method tarn_rpc__maintenance_methods[] = {
    TARN_RPC_STREAM(MaintenanceService, Compact, compact),
    TARN_RPC_STREAM(MaintenanceService, Rescale, rescale),
    TARN_RPC_UNARY(MaintenanceService, CancelJob, cancel_job_request, cancel_job_response,
                   cancel_job),
    TARN_RPC_UNARY(MaintenanceService, Expire, expire_request, expire_response, expire),
    TARN_RPC_UNARY(MaintenanceService, ListJobs, list_jobs_request, list_jobs_response, list_jobs),
    TARN_RPC_UNARY(MaintenanceService, Advise, advise_request, advise_response, advise),
    TARN_RPC_UNARY(MaintenanceService, GetBacklog, get_backlog_request, get_backlog_response,
                   get_backlog),
    TARN_RPC_UNARY(AdminService, GetStatus, get_status_request, get_status_response, get_status),
    TARN_RPC_END,
};
