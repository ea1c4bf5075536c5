#include "maintain/internal.h"

/* Who works: the workers that registered, and which of them takes the next stream of rows. */

#define SILENT_LEASES 3 /* a worker that said nothing for so many lease times is forgotten */
#define FIRST_WORKER_WAIT_MS 10000 /* right after a start, workers are on their way */
#define NEXT_WORKER_WAIT_MS 2000   /* later, one that ended is being started again */

struct worker *tarn_maintain__worker(struct tarn_maintain *m, const char *id)
{
    for (struct worker *w = m->workers; w != NULL; w = w->next)
        if (strcmp(w->id, id) == 0)
            return w;
    return NULL;
}

static void count_workers(struct tarn_maintain *m)
{
    int n = 0;
    for (struct worker *w = m->workers; w != NULL; w = w->next)
        n++;
    tarn_metric_set(TARN_M_WORKERS, NULL, n);
}

static void remove_worker(struct tarn_maintain *m, struct worker *gone, bool is_dead)
{
    tarn_maintain__take_back(m, gone->id, "the worker ended while it did this", is_dead);
    for (struct worker **at = &m->workers; *at != NULL; at = &(*at)->next) {
        if (*at != gone)
            continue;
        *at = gone->next;
        tarn_log(NULL, TARN_WARN, "worker.gone", "id=%s name=%s", gone->id,
                 tarn_log_quote(NULL, gone->name));
        free(gone->id);
        free(gone->name);
        free(gone->address);
        free(gone->version);
        free(gone);
        break;
    }
    count_workers(m);
}

void tarn_maintain__drop_silent_workers(struct tarn_maintain *m)
{
    int64_t oldest = tarn_clock_mono_ms() - SILENT_LEASES * m->options.lease_ms;
    for (struct worker *w = m->workers, *next; w != NULL; w = next) {
        next = w->next;
        if (w->seen_ms < oldest)
            remove_worker(m, w, false);
    }
}

static bool has_pid(const struct worker *w, pid_t pid)
{
    char end[32];
    int size = snprintf(end, sizeof end, "-%d", (int)pid);
    size_t name_size = strlen(w->name);
    return w->local && name_size >= (size_t)size && strcmp(w->name + name_size - size, end) == 0;
}

void tarn_maintain_worker_ended(struct tarn_maintain *m, pid_t pid)
{
    pthread_mutex_lock(&m->lock);
    for (struct worker *w = m->workers, *next; w != NULL; w = next) {
        next = w->next;
        if (has_pid(w, pid))
            remove_worker(m, w, true);
    }
    pthread_mutex_unlock(&m->lock);
}

bool tarn_maintain_has_worker(struct tarn_maintain *m, pid_t pid)
{
    bool found = false;
    pthread_mutex_lock(&m->lock);
    for (struct worker *w = m->workers; w != NULL; w = w->next)
        found = found || has_pid(w, pid);
    pthread_mutex_unlock(&m->lock);
    return found;
}

struct tarn_status *tarn_maintain_register(struct tarn_op *op, struct tarn_maintain *m,
                                           const struct tarn_worker_info *info,
                                           const char **worker_id)
{
    if (info->slots < 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a worker needs at least one slot");
    struct worker *w = tarn_calloc(1, sizeof *w);
    w->id = tarn_format("w-%016" PRIx64, tarn_random_u64());
    w->name = tarn_strdup(info->name);
    w->address = tarn_strdup(info->address);
    w->version = tarn_strdup(info->version);
    w->local = info->local;
    w->slots = info->slots;
    w->memory_max_bytes = info->memory_max_bytes;
    w->seen_ms = tarn_clock_mono_ms();
    w->last_seen_ms = tarn_clock_wall_ms();
    *worker_id = tarn_arena_str(op->arena, tarn_slice_str(w->id));
    pthread_mutex_lock(&m->lock);
    for (struct worker *old = m->workers, *next; old != NULL;
         old = next) { /* the same one, started again */
        next = old->next;
        if (w->address[0] != '\0' && strcmp(old->address, w->address) == 0)
            remove_worker(m, old, false);
    }
    w->next = m->workers;
    m->workers = w;
    count_workers(m);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    tarn_log(op, TARN_INFO, "worker.registered", "id=%s name=%s address=%s local=%d", *worker_id,
             tarn_log_quote(op, info->name), info->address, info->local);
    return TARN_OK;
}

struct tarn_status *tarn_maintain_workers(struct tarn_op *op, struct tarn_maintain *m,
                                          struct tarn_worker_info **out, size_t *count)
{
    pthread_mutex_lock(&m->lock);
    size_t n = 0;
    for (struct worker *w = m->workers; w != NULL; w = w->next)
        n++;
    *out = tarn_arena_calloc(op->arena, n + 1, sizeof **out);
    *count = n;
    for (struct worker *w = m->workers; w != NULL; w = w->next)
        (*out)[--n] = (struct tarn_worker_info){
            .id = tarn_arena_str(op->arena, tarn_slice_str(w->id)),
            .name = tarn_arena_str(op->arena, tarn_slice_str(w->name)),
            .address = tarn_arena_str(op->arena, tarn_slice_str(w->address)),
            .version = tarn_arena_str(op->arena, tarn_slice_str(w->version)),
            .local = w->local,
            .slots = w->slots,
            .busy = w->busy + w->streams,
            .last_seen_ms = w->last_seen_ms,
            .memory_max_bytes = w->memory_max_bytes};
    pthread_mutex_unlock(&m->lock);
    return TARN_OK;
}

struct tarn_status *tarn_maintain_begin_stream(struct tarn_op *op, struct tarn_maintain *m,
                                               const char **worker_id, const char **address)
{
    int64_t until =
        TARN_MAX(m->started_ms + FIRST_WORKER_WAIT_MS, tarn_clock_mono_ms() + NEXT_WORKER_WAIT_MS);
    struct worker *best = NULL;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        for (struct worker *w = m->workers; w != NULL; w = w->next)
            if (w->address[0] != '\0' && /* else it takes tasks alone */
                (best == NULL || w->streams + w->busy < best->streams + best->busy))
                best = w;
        int64_t left = until - tarn_clock_mono_ms();
        if (best != NULL || left <= 0 || !tarn_maintain__wait(m, op, left))
            break;
    }
    if (best != NULL) {
        best->streams++;
        *worker_id = tarn_arena_str(op->arena, tarn_slice_str(best->id));
        *address = tarn_arena_str(op->arena, tarn_slice_str(best->address));
    }
    pthread_mutex_unlock(&m->lock);
    return best != NULL ? TARN_OK : tarn_status_new(TARN_NO_WORKER, "no worker is registered");
}

void tarn_maintain_end_stream(struct tarn_maintain *m, const char *worker_id, bool worker_failed)
{
    pthread_mutex_lock(&m->lock);
    struct worker *w = tarn_maintain__worker(m, worker_id);
    if (w != NULL && w->streams > 0)
        w->streams--;
    if (w != NULL && worker_failed) /* one that lives registers again */
        remove_worker(m, w, false);
    pthread_mutex_unlock(&m->lock);
}
