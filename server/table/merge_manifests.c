#include "table/internal.h"
#include "table/merge_manifests.h"

#include <time.h>

/*
 * Merging manifests beside the commits: when, what, and what becomes of the result. How entries are merged is in
 * merge_entries.c.
 *
 * A merge reads the manifests of a head and writes what they become under names of its own. Commits only append to
 * the list, so the result fits for as long as a list begins with all that was there when the merge began; where
 * it doesn't (another writer merged, or rolled back), the result is thrown away. Until a snapshot names them, its
 * files are nobody's: after a crash they are orphans.
 */

#define MERGE_FREE_CPU_MS 100
#define MERGE_PAUSE_MAX_MS 10000
#define MERGE_FAILURE_PAUSE_MS 1000
#define MERGE_FAILURE_PAUSE_MAX_MS 600000
#define MERGE_BACKLOG_MAX 512 /* manifests: from here on a merge begins at once */
/* Unnamed files are what orphan cleaning by others looks for, a day old by default: older results aren't used. */
#define MERGE_AGE_MAX_MS (INT64_C(60) * 60 * 1000)

enum merge_state { MERGE_IDLE, MERGE_RUNNING, MERGE_READY, MERGE_USED };

struct tarn_merge {
    struct tarn_table *table;
    pthread_mutex_t lock; /* state, op while running */
    enum merge_state state;
    bool ended;
    struct tarn_op op; /* of the job; cancelled from outside */
    struct tarn_gate
        *done; /* opened by the last job as the last thing it does; NULL: there was none */
    /* The job's while it is running, else of the mailbox. */
    struct tarn_merge_work work;
    int64_t ready_mono_ms, ready_wall_ms;
    int64_t pause_until_ms; /* monotonic */
    int failures;           /* in a row */
    struct tarn_map *fixed; /* names of manifests that hold what we can't write again */
};

/* --- what to merge --- */

static bool is_fixed(const struct tarn_map *fixed, const struct tarn_manifest_file *file)
{
    return file->unknown || tarn_map_find(fixed, file->name) != NULL;
}

bool tarn_table__must_change(const struct tarn_manifest_file *file, int64_t target)
{
    return file->deleted_count > 0 || file->size < target;
}

/* Paimon's full compaction: as soon as what is small or deletes holds the threshold. */
static bool wants_full(const struct tarn_options *options, const struct tarn_map *fixed,
                       const struct tarn_manifest_file *files, size_t count)
{
    int64_t changing = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_fixed(fixed, &files[i])) /* DELETEs of what it adds must stay */
            return false;
        if (tarn_table__must_change(&files[i], options->manifest_target_size))
            changing += TARN_MIN(files[i].size, INT64_MAX - changing);
    }
    return changing >= options->manifest_full_threshold && count > 1;
}

/* What a merge of it costs. Its size says little: of a small one nearly all is the schema's text. */
static int64_t weight_of(const struct tarn_manifest_file *file)
{
    return TARN_MIN(file->added_count, INT64_C(1) << 32) +
           TARN_MIN(file->deleted_count, INT64_C(1) << 32);
}

/* The rest of a list, once there are enough of them. Those in front that hold more than all behind them together are
 * left for later: so an entry is written again some ten times in its life, not with each thirtieth commit. */
static void add_rest(const struct tarn_options *options, const struct tarn_manifest_file *files,
                     size_t begin, size_t end, struct tarn_merge_run *runs, size_t *run_count)
{
    if (end - begin < (size_t)TARN_MAX(options->manifest_merge_min_count, 2))
        return;
    int64_t behind = 0;
    for (size_t i = begin; i < end; i++)
        behind += weight_of(&files[i]);
    for (; begin + 2 < end; begin++) {
        behind -= weight_of(&files[begin]);
        if (weight_of(&files[begin]) <= behind)
            break;
    }
    runs[(*run_count)++] = (struct tarn_merge_run){begin, end};
}

size_t tarn_table__minor_runs(const struct tarn_options *options, const struct tarn_map *fixed,
                              const struct tarn_manifest_file *files, size_t count,
                              struct tarn_merge_run *runs)
{
    size_t begin = 0, run_count = 0;
    int64_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_fixed(fixed, &files[i])) {
            add_rest(options, files, begin, i, runs, &run_count);
            begin = i + 1;
            size = 0;
            continue;
        }
        size += files[i].size;
        if (size < options->manifest_target_size)
            continue;
        if (i > begin)
            runs[run_count++] = (struct tarn_merge_run){begin, i + 1};
        begin = i + 1;
        size = 0;
    }
    add_rest(options, files, begin, count, runs, &run_count);
    return run_count;
}

/* --- its files --- */

static void remove_written(struct tarn_op *op, struct tarn_merge *m)
{
    for (size_t i = 0; i < m->work.after_count; i++) {
        if (!m->work.is_new[i])
            continue;
        const char *key =
            tarn_table__key(op, m->table, "manifest/%.*s", TARN_SLICE_ARG(m->work.after[i].name));
        tarn_log_status(op, TARN_WARN, "table.left_behind",
                        tarn_store_remove(m->table->env->store, op, key));
    }
}

static void work_clear(struct tarn_merge *m)
{
    tarn_table_view_unref(m->work.view);
    tarn_arena_free(m->work.arena);
    m->work = (struct tarn_merge_work){0};
}

static bool begins_with(const struct tarn_merge_work *work, const struct tarn_manifest_file *files,
                        size_t count)
{
    if (count < work->before_count)
        return false;
    for (size_t i = 0; i < work->before_count; i++)
        if (!tarn_slice_equal(files[i].name, work->before[i].name))
            return false;
    return true;
}

static bool is_too_old(const struct tarn_merge *m)
{
    return tarn_clock_mono_ms() - m->ready_mono_ms > MERGE_AGE_MAX_MS ||
           tarn_clock_wall_ms() - m->ready_wall_ms > MERGE_AGE_MAX_MS;
}

/* --- the job --- */

static int64_t thread_cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What went wrong is no harm: the manifests are as good as before. */
static void note_failure(struct tarn_merge *m, struct tarn_status *s)
{
    int64_t pause = (int64_t)MERGE_FAILURE_PAUSE_MS << TARN_MIN(m->failures, 10);
    if (m->work.fixed_name.data != NULL) { /* nothing to wait for: it goes around it next time */
        tarn_map_set(m->fixed, m->work.fixed_name, m);
        tarn_status_free(s);
        return;
    }
    m->failures++;
    m->pause_until_ms = tarn_clock_mono_ms() + TARN_MIN(pause, MERGE_FAILURE_PAUSE_MAX_MS);
    switch (tarn_status_reason(s)) {
    case TARN_OBJECT_NOT_FOUND: /* expired by somebody, or the table is gone */
    case TARN_TABLE_NOT_FOUND:
    case TARN_CANCELLED:
        tarn_status_free(s);
        return;
    default:
        tarn_log_status(&m->op, TARN_WARN, "table.merge_failed", s);
    }
}

static void finish(struct tarn_merge *m, struct tarn_status *s, int64_t cpu_ms)
{
    bool ready = s == TARN_OK && m->work.changed;
    if (s != TARN_OK || !ready)
        remove_written(&m->op, m);
    if (s != TARN_OK) {
        note_failure(m, s);
    } else {
        m->failures = 0;
        m->ready_mono_ms = tarn_clock_mono_ms();
        m->ready_wall_ms = tarn_clock_wall_ms();
        /* Small ones come as they are needed; large ones take a quarter of a processor at most. */
        int64_t pause = TARN_MAX(cpu_ms - MERGE_FREE_CPU_MS, INT64_C(0)) * 3;
        m->pause_until_ms = m->ready_mono_ms + TARN_MIN(pause, (int64_t)MERGE_PAUSE_MAX_MS);
        tarn_log(&m->op, TARN_DEBUG, "table.manifests_merged",
                 "table=%s before=%zu after=%zu entries=%" PRId64 " dropped=%" PRId64
                 " cpu_ms=%" PRId64,
                 tarn_log_quote(&m->op, m->table->name), m->work.before_count, m->work.after_count,
                 m->work.entry_count, m->work.dropped_count, cpu_ms);
    }
    if (!ready)
        work_clear(m);
    pthread_mutex_lock(&m->lock);
    tarn_op_fini(&m->op);
    m->state = ready ? MERGE_READY : MERGE_IDLE;
    struct tarn_gate *done = m->done;
    pthread_mutex_unlock(&m->lock);
    tarn_gate_open(done); /* nothing of the table may be touched from here on */
}

static void run_merge(void *arg)
{
    struct tarn_merge *m = arg;
    struct tarn_table *table = m->table;
    int64_t begun = thread_cpu_ms();
    tarn_exec_wait_begin(); /* commits don't queue up behind it */
    /* Not waited for: who has it may be waiting for the mailbox, and the mailbox for this. */
    if (pthread_rwlock_tryrdlock(&table->place) != 0) {
        finish(m, tarn_status_new(TARN_CANCELLED, "the table moves"), 0);
        tarn_exec_wait_end();
        return;
    }
    struct tarn_status *s = tarn_table__check_here(table);
    if (s == TARN_OK)
        s = tarn_table__merge_work(&m->op, table, m->fixed, &m->work);
    pthread_rwlock_unlock(&table->place);
    finish(m, s, thread_cpu_ms() - begun);
    tarn_exec_wait_end();
}

/* --- of the mailbox --- */

static struct tarn_merge *merge_of(struct tarn_table *table)
{
    if (table->merge == NULL) {
        table->merge = tarn_calloc(1, sizeof *table->merge);
        table->merge->table = table;
        table->merge->fixed = tarn_map_new();
        pthread_mutex_init(&table->merge->lock, NULL);
    }
    return table->merge;
}

static enum merge_state state_of(struct tarn_merge *m)
{
    pthread_mutex_lock(&m->lock);
    enum merge_state state = m->state;
    pthread_mutex_unlock(&m->lock);
    return state;
}

static void set_state(struct tarn_merge *m, enum merge_state state)
{
    pthread_mutex_lock(&m->lock);
    m->state = state;
    pthread_mutex_unlock(&m->lock);
}

static void forget_result(struct tarn_merge *m, bool remove)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    if (remove)
        remove_written(&op, m);
    work_clear(m);
    set_state(m, MERGE_IDLE);
}

static bool is_wanted(const struct tarn_merge *m, const struct tarn_options *options,
                      const struct tarn_head *head)
{
    if (tarn_clock_mono_ms() < m->pause_until_ms && head->manifest_count < MERGE_BACKLOG_MAX)
        return false;
    if (wants_full(options, m->fixed, head->manifests, head->manifest_count))
        return true;
    TARN_OWN(tarn_free_drop)
    struct tarn_merge_run *runs = tarn_calloc(head->manifest_count + 1, sizeof *runs);
    return tarn_table__minor_runs(options, m->fixed, head->manifests, head->manifest_count, runs) >
           0;
}

static void start(struct tarn_merge *m, const struct tarn_head *head)
{
    struct tarn_table *table = m->table;
    struct tarn_merge_work *work = &m->work;
    pthread_mutex_lock(&table->lock);
    atomic_fetch_add(&table->view->ref_count, 1);
    work->view = &table->view->view;
    pthread_mutex_unlock(&table->lock);
    work->arena = tarn_arena_new();
    work->before_count = head->manifest_count;
    work->before = tarn_arena_calloc(work->arena, head->manifest_count + 1, sizeof *work->before);
    for (size_t i = 0; i < head->manifest_count; i++)
        tarn_table__keep_manifest(work->arena, &head->manifests[i], &work->before[i]);
    work->full = wants_full(&work->view->options, m->fixed, work->before, work->before_count);
    if (m->done != NULL) {
        tarn_gate_wait(m->done, NULL); /* its job has said that it is over: a moment */
        tarn_gate_free(m->done);
    }
    m->done = tarn_gate_new();
    tarn_op_init(&m->op);
    set_state(m, MERGE_RUNNING);
    tarn_exec_post(table->env->exec, run_merge, m);
}

void tarn_table__merge_consider(struct tarn_table *table)
{
    const struct tarn_head *head = table->head;
    if (head == NULL || head->id == 0 || !head->manifests_known || table->view == NULL)
        return;
    struct tarn_merge *m = merge_of(table);
    enum merge_state state = state_of(m);
    if (state == MERGE_READY && !table->attempt.open &&
        (is_too_old(m) || !begins_with(&m->work, head->manifests, head->manifest_count))) {
        forget_result(m, true);
        state = MERGE_IDLE;
    }
    if (state == MERGE_IDLE && !m->ended && is_wanted(m, &table->view->view.options, head))
        start(m, head);
}

void tarn_table__merge_apply(struct tarn_op *op, struct tarn_table *table,
                             struct tarn_manifest_file *files, size_t *count, bool *used)
{
    struct tarn_merge *m = table->merge;
    *used = m != NULL && state_of(m) == MERGE_READY && !is_too_old(m) &&
            begins_with(&m->work, files, *count);
    if (!*used)
        return;
    size_t before = m->work.before_count, after = m->work.after_count;
    tarn_assert(after <= before);
    memmove(files + after, files + before, (*count - before) * sizeof *files);
    for (size_t i = 0; i < after; i++)
        tarn_table__keep_manifest(op->arena, &m->work.after[i], &files[i]);
    *count = *count - before + after;
    set_state(m, MERGE_USED);
}

void tarn_table__merge_settle(struct tarn_op *op, struct tarn_table *table, bool landed)
{
    struct tarn_merge *m = table->merge;
    (void)op;
    tarn_assert(m != NULL && state_of(m) == MERGE_USED);
    if (landed)
        forget_result(m, false);
    else
        set_state(m, MERGE_READY);
}

void tarn_table__merge_wait(struct tarn_table *table)
{
    if (table->merge != NULL && table->merge->done != NULL)
        tarn_gate_wait(table->merge->done, NULL);
}

void tarn_table__merge_end(struct tarn_table *table)
{
    struct tarn_merge *m = merge_of(table);
    m->ended = true;
    pthread_mutex_lock(&m->lock);
    if (m->state == MERGE_RUNNING)
        tarn_op_cancel(&m->op);
    pthread_mutex_unlock(&m->lock);
    tarn_table__merge_wait(table);
    if (state_of(m) == MERGE_READY && !table->attempt.open)
        forget_result(m, true);
}

void tarn_table__merge_free(struct tarn_table *table)
{
    struct tarn_merge *m = table->merge;
    if (m == NULL)
        return;
    tarn_table__merge_end(table);
    work_clear(m);
    tarn_gate_free(m->done);
    tarn_map_free(m->fixed);
    pthread_mutex_destroy(&m->lock);
    table->merge = NULL;
    free(m);
}
