#include "service/internal.h"

#include <malloc.h>
#include <unistd.h>

#include "table/plan.h"

/* The daemon about itself. */

#define PROBLEMS_MAX 100

/* The second number of the line is pages in memory. */
static int64_t resident_bytes(void)
{
    char line[256] = "";
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    const char *from = strchr(line, ' ');
    const char *to = from == NULL ? NULL : strchr(from + 1, ' ');
    int64_t pages = 0;
    if (to != NULL)
        tarn_status_free(tarn_parse_i64(tarn_slice_of(from + 1, (size_t)(to - from - 1)), &pages));
    return pages * sysconf(_SC_PAGESIZE);
}

void tarn_service_measure_memory(struct tarn_service *service)
{
    struct mallinfo2 heap = mallinfo2();
    struct tarn_state_memory state = {0};
    if (service->state != NULL)
        tarn_state_memory(service->state, &state);
    tarn_metric_set(TARN_M_MEMORY, "resident", (double)resident_bytes());
    tarn_metric_set(TARN_M_MEMORY, "heap_used", (double)(heap.uordblks + heap.hblkhd));
    tarn_metric_set(TARN_M_MEMORY, "heap_free", (double)heap.fordblks);
    tarn_metric_set(TARN_M_MEMORY, "pages", (double)tarn_plan_pages_size());
    tarn_metric_set(TARN_M_MEMORY, "state_buffers", (double)state.buffers_size);
    tarn_metric_set(TARN_M_MEMORY, "state_cache", (double)state.cache_size);
}

static struct tarn_status *count_tables(struct tarn_op *op, struct tarn_service *service,
                                        struct tarn_server_status *out)
{
    struct tarn_database_info *databases;
    size_t count;
    TARN_TRY(tarn_database_list_or_last(op, service->catalog, &databases, &count));
    out->database_count = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        struct tarn_table_info *tables;
        size_t table_count;
        struct tarn_status *s = tarn_catalog_tables_or_last(op, service->catalog, databases[i].name,
                                                            &tables, &table_count);
        if (s == TARN_OK)
            out->table_count += (int64_t)table_count;
        tarn_status_free(s); /* dropped meanwhile */
    }
    return TARN_OK;
}

static struct tarn_status *sum_up_jobs(struct tarn_op *op, struct tarn_service *service,
                                       struct tarn_server_status *out)
{
    struct tarn_job_info *jobs;
    size_t count;
    TARN_TRY(tarn_maintain_jobs(op, service->maintain, NULL, true, false, &jobs, &count));
    for (size_t i = 0; i < count; i++) {
        out->tasks_queued += strcmp(jobs[i].state, "queued") == 0;
        out->tasks_leased += strcmp(jobs[i].state, "leased") == 0;
        if (strcmp(jobs[i].state, "failed") == 0 && out->problem_count < PROBLEMS_MAX)
            out->problems[out->problem_count++] = (struct tarn_problem){
                jobs[i].table,
                tarn_arena_printf(op->arena, "compaction of bucket %d%s%s failed: %s",
                                  jobs[i].bucket, jobs[i].partition[0] == '\0' ? "" : " of ",
                                  jobs[i].partition,
                                  jobs[i].failure == NULL ? "" : jobs[i].failure)};
    }
    return TARN_OK;
}

static void look_at_state(struct tarn_op *op, struct tarn_service *service,
                          struct tarn_server_status *out)
{
    TARN_OWN(tarn_status_drop)
    struct tarn_status *problem =
        service->state == NULL ? TARN_OK : tarn_state_problem(service->state);
    if (problem != TARN_OK)
        out->problems[out->problem_count++] = (struct tarn_problem){
            "", tarn_arena_printf(op->arena, "the state: %s", tarn_status_message(problem))};
}

static void look_at_mirror(struct tarn_op *op, struct tarn_service *service,
                           struct tarn_server_status *out)
{
    if (service->hms == NULL)
        return;
    out->hms = tarn_arena_alloc(op->arena, sizeof *out->hms);
    tarn_hms_info(op, service->hms, out->hms);
    for (size_t i = 0; i < out->hms->problem_count && out->problem_count < PROBLEMS_MAX; i++)
        out->problems[out->problem_count++] =
            (struct tarn_problem){out->hms->problems[i].table,
                                  tarn_arena_printf(op->arena, "not in the Hive metastore: %s",
                                                    out->hms->problems[i].problem)};
}

struct tarn_status *tarn_service_status(struct tarn_op *op, struct tarn_service *service,
                                        struct tarn_server_status *out)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_READ, tarn_slice_str(NULL)));
    struct tarn_supervisor *supervisor = atomic_load(&service->supervisor);
    *out = (struct tarn_server_status){
        .version = TARN_VERSION,
        .warehouse_name = service->warehouse_name,
        .warehouse_uri = tarn_store_uri(service->store),
        .grpc_address = atomic_load(&service->grpc_address),
        .http_address = atomic_load(&service->http_address),
        .state = atomic_load(&service->draining) ? "draining" : "serving",
        .started_ms = service->started_ms,
        .epoch = tarn_catalog_epoch(service->catalog),
        .resident_bytes = resident_bytes(),
        .worker_restarts = supervisor == NULL ? 0 : tarn_supervisor_restarts(supervisor),
    };
    TARN_TRY(count_tables(op, service, out));
    out->problems = tarn_arena_calloc(op->arena, PROBLEMS_MAX, sizeof *out->problems);
    look_at_state(op, service, out);
    TARN_TRY(sum_up_jobs(op, service, out));
    look_at_mirror(op, service, out);
    return tarn_maintain_workers(op, service->maintain, &out->workers, &out->worker_count);
}

bool tarn_service_is_ready(struct tarn_op *op, struct tarn_service *service, const char **why)
{
    struct tarn_worker_info *workers;
    size_t count = 0;
    *why = "ready";
    if (atomic_load(&service->draining))
        *why = "draining";
    else if (service->wants_worker) {
        struct tarn_status *s = tarn_maintain_workers(op, service->maintain, &workers, &count);
        if (s != TARN_OK || count == 0)
            *why = "no worker has registered yet";
        tarn_status_free(s);
    }
    return strcmp(*why, "ready") == 0;
}

struct tarn_status *tarn_service_list_principals(struct tarn_op *op, struct tarn_service *service,
                                                 struct tarn_page page,
                                                 const struct tarn_slice **out, size_t *count,
                                                 const char **next_token)
{
    const struct tarn_slice *all;
    size_t all_count, max = tarn_service__page_size(page), n = 0;
    TARN_TRY(tarn_access_check(service->access, op, TARN_ACTION_READ, NULL, NULL));
    tarn_access_principals(service->access, op, &all, &all_count);
    struct tarn_slice *list = tarn_arena_calloc(op->arena, all_count + 1, sizeof *list);
    *next_token = "";
    for (size_t i = 0; i < all_count; i++) {
        if ((page.pattern.size > 0 && !tarn_slice_equal(all[i], page.pattern)) ||
            (page.token.size > 0 && tarn_slice_compare(all[i], page.token) <= 0))
            continue;
        if (n == max) {
            *next_token = tarn_arena_str(op->arena, list[n - 1]);
            break;
        }
        list[n++] = all[i];
    }
    *out = list;
    *count = n;
    return TARN_OK;
}
