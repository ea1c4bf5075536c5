#include "maintain/internal.h"

#include <math.h>

/*
 * Which task is leased next: the highest score (score.h) of those that nothing holds back. The lock is held in all of this. A choice
 * goes once over the open tasks; what it was made from is kept with the task (explain.c).
 */

#define SHARE_HALF_LIFE_MS 600000.0 /* after so long what was compacted counts half */
#define TENANT_KEEP_BELOW 4096.0    /* bytes: less is forgotten */
#define CPU_OF_PERCENT 10000000     /* nanoseconds a second */

/* --- tenants: what databases and tables took lately --- */

static double compacted_now(const struct tenant *t, int64_t now_ms)
{
    return t->compacted * exp2(-(double)(now_ms - t->at_ms) / SHARE_HALF_LIFE_MS);
}

static void note_compacted(struct tenant *t, int64_t bytes, int64_t now_ms)
{
    t->compacted = compacted_now(t, now_ms) + (double)bytes;
    t->at_ms = now_ms;
}

static struct tenant *tenant_of(struct tarn_maintain *m, char kind, struct tarn_slice name,
                                int64_t rate, int cpu_percent)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_buf_add_byte(&key, (uint8_t)kind);
    tarn_buf_add_slice(&key, name);
    struct tenant *t = tarn_map_find(m->tenants, tarn_buf_slice(&key));
    if (t == NULL) {
        t = tarn_calloc(1, sizeof *t);
        t->at_ms = tarn_clock_mono_ms();
        tarn_budget_init(&t->budget, rate, t->at_ms);
        tarn_budget_init(&t->cpu, (int64_t)cpu_percent * CPU_OF_PERCENT, t->at_ms);
        tarn_map_set(m->tenants, tarn_buf_slice(&key), t);
    }
    t->task_count++;
    return t;
}

void tarn_maintain__join_tenants(struct tarn_maintain *m, struct task *t)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_slice database, name;
    tarn_op_init(&op);
    tarn_table_names(&op, t->table, &database, &name);
    t->of_database = tenant_of(m, 'd', database, m->options.database_bytes_per_second,
                               m->options.database_cpu_percent);
    t->of_table = tenant_of(m, 't', tarn_slice_str(tarn_table_uuid(t->table)),
                            m->options.table_bytes_per_second, m->options.table_cpu_percent);
}

void tarn_maintain__leave_tenants(struct task *t)
{
    t->of_database->task_count--;
    t->of_table->task_count--;
}

static bool owes(struct tarn_budget *b, int64_t now_ms)
{
    return b->rate > 0 && !tarn_budget_has(b, INT64_MAX, now_ms); /* not full again */
}

void tarn_maintain__sweep_tenants(struct tarn_maintain *m, bool all)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    int64_t now = tarn_clock_mono_ms();
    while (tarn_map_next(m->tenants, &cursor, &key, &value)) {
        struct tenant *t = value;
        if (!all && (t->task_count > 0 || owes(&t->budget, now) || owes(&t->cpu, now) ||
                     compacted_now(t, now) >= TENANT_KEEP_BELOW))
            continue;
        tarn_map_remove(m->tenants, key);
        free(t);
    }
}

/* --- budgets --- */

void tarn_maintain__init_budgets(struct tarn_maintain *m)
{
    int64_t now = tarn_clock_mono_ms();
    m->tenants = tarn_map_new();
    tarn_budget_init(&m->of_all.budget, m->options.bytes_per_second, now);
    tarn_budget_init(&m->of_all.cpu, (int64_t)m->options.cpu_percent * CPU_OF_PERCENT, now);
    m->of_all.at_ms = now;
}

void tarn_maintain__charge(struct tarn_maintain *m, struct task *t, int64_t bytes)
{
    struct tenant *const all[] = {&m->of_all, t->of_database, t->of_table};
    int64_t now = tarn_clock_mono_ms();
    for (size_t i = 0; i < TARN_COUNT_OF(all); i++) {
        tarn_budget_take(&all[i]->budget, bytes, now);
        note_compacted(all[i], bytes, now);
    }
    t->charged += bytes;
}

void tarn_maintain__charge_cpu(struct tarn_maintain *m, struct task *t, int64_t ns)
{
    struct tenant *const all[] = {&m->of_all, t->of_database, t->of_table};
    int64_t now = tarn_clock_mono_ms();
    for (size_t i = 0; i < TARN_COUNT_OF(all); i++)
        tarn_budget_take(&all[i]->cpu, ns, now);
}

/* What a task counts as: a worker's memory by its slots; of any worker: the least there is. */
static int64_t memory_of(const struct tarn_maintain *m, const struct worker *w)
{
    if (w != NULL)
        return w->memory_max_bytes / TARN_MAX(w->slots, 1);
    int64_t least = m->workers == NULL ? 0 : INT64_MAX;
    for (const struct worker *any = m->workers; any != NULL; any = any->next)
        least = TARN_MIN(least, any->memory_max_bytes / TARN_MAX(any->slots, 1));
    return least;
}

void tarn_maintain__begin_running(struct tarn_maintain *m, struct task *t, const struct worker *w)
{
    t->memory = memory_of(m, w);
    struct tenant *const all[] = {&m->of_all, t->of_database, t->of_table};
    for (size_t i = 0; i < TARN_COUNT_OF(all); i++) {
        all[i]->memory += t->memory;
        all[i]->running++;
    }
}

void tarn_maintain__end_running(struct tarn_maintain *m, struct task *t)
{
    struct tenant *const all[] = {&m->of_all, t->of_database, t->of_table};
    for (size_t i = 0; i < TARN_COUNT_OF(all); i++) {
        all[i]->memory -= t->memory;
        all[i]->running--;
    }
}

static bool is_over(int running, int most)
{
    return most > 0 && running >= most;
}

/* Outside of the hours: what readers, stopped writers or a user wait for isn't put off. */
static bool is_put_off(const struct tarn_maintain *m, const struct task *t)
{
    bool urgent = t->ordered || t->inputs.freshness_ms > 0 ||
                  (t->inputs.run_stop_trigger > 0 && t->inputs.runs > t->inputs.run_stop_trigger);
    return !urgent && !tarn_window_is_open(&m->options.window, tarn_maintain__local_ms());
}

static bool has_memory(const struct tarn_maintain *m, const struct tenant *tenant, int64_t most,
                       const struct worker *w)
{
    return most == 0 || tenant->memory + memory_of(m, w) <= most;
}

/* What the rates and the memory of its database and table say. */
static const char *held_by_tenant(struct tarn_maintain *m, struct task *t, const struct worker *w,
                                  int64_t now_ms)
{
    if (!tarn_budget_has(&t->of_database->budget, t->bytes, now_ms))
        return "compaction.database_bytes_per_second";
    if (!tarn_budget_has(&t->of_table->budget, t->bytes, now_ms))
        return "compaction.table_bytes_per_second";
    if (!tarn_budget_has(&t->of_database->cpu, 1, now_ms))
        return "compaction.database_cpu_percent";
    if (!tarn_budget_has(&t->of_table->cpu, 1, now_ms))
        return "compaction.table_cpu_percent";
    if (!has_memory(m, t->of_database, m->options.database_memory_max_bytes, w))
        return "compaction.database_memory";
    if (!has_memory(m, t->of_table, m->options.table_memory_max_bytes, w))
        return "compaction.table_memory";
    return NULL;
}

const char *tarn_maintain__held_by(struct tarn_maintain *m, struct task *t, const struct worker *w,
                                   int64_t now_ms)
{
    if (t->not_before_ms > now_ms)
        return "back-off";
    const char *rescale = tarn_maintain__held_by_rescale(m, t);
    if (rescale != NULL)
        return rescale;
    if (is_put_off(m, t))
        return "compaction.window";
    if (is_over(t->of_database->running, m->options.database_tasks))
        return "compaction.database_tasks";
    if (is_over(t->of_table->running, m->options.table_tasks))
        return "compaction.table_tasks";
    return held_by_tenant(m, t, w, now_ms);
}

/* What holds the best one back holds all: smaller ones must not pass it for ever. */
const char *tarn_maintain__all_held_by(struct tarn_maintain *m, const struct task *t,
                                       const struct worker *w, int64_t now_ms)
{
    if (!tarn_budget_has(&m->of_all.budget, t->bytes, now_ms))
        return "compaction.bytes_per_second";
    if (!tarn_budget_has(&m->of_all.cpu, 1, now_ms))
        return "compaction.cpu_percent";
    if (!has_memory(m, &m->of_all, m->options.memory_max_bytes, w))
        return "compaction.memory";
    return NULL;
}

/* --- the choice --- */

/* 0..1 of what all took lately. Made once for all tasks of a choice: m->choice tells choices apart. */
static double share_of(struct tarn_maintain *m, struct tenant *t, double all, int64_t now_ms)
{
    if (t->choice != m->choice) {
        t->choice = m->choice;
        t->share = all < 1 ? 0 : fmin(compacted_now(t, now_ms) / all, 1);
    }
    return t->share;
}

void tarn_maintain__begin_choice(struct tarn_maintain *m, struct choice *c)
{
    m->choice++;
    *c = (struct choice){.now_ms = tarn_clock_mono_ms()};
    c->all = compacted_now(&m->of_all, c->now_ms);
}

void tarn_maintain__inputs_now(struct tarn_maintain *m, const struct choice *c, struct task *t,
                               struct tarn_score_inputs *out)
{
    *out = t->inputs;
    out->waiting_ms = c->now_ms - t->since_ms;
    if (t->inputs.lag_ms > 0 || t->inputs.freshness_ms > 0)
        out->lag_ms = c->now_ms - t->oldest_ms;
    if (t->inputs.full_interval_ms >= 0)
        out->full_age_ms = t->inputs.full_age_ms + out->waiting_ms;
    out->database_share = share_of(m, t->of_database, c->all, c->now_ms);
    out->table_share = share_of(m, t->of_table, c->all, c->now_ms);
    out->ordered = t->ordered;
}

double tarn_maintain__priority(struct tarn_maintain *m, const struct choice *c, struct task *t)
{
    struct tarn_score_inputs inputs;
    struct tarn_score score;
    tarn_maintain__inputs_now(m, c, t, &inputs);
    tarn_score(&inputs, &score);
    return score.total;
}

/* Into the list of the best, which is sorted: higher scores first, then the older task. */
static void rank(struct choice *c, struct task *t, double score)
{
    size_t at = c->count;
    while (at > 0 && (c->best[at - 1].score < score ||
                      (c->best[at - 1].score == score && c->best[at - 1].task->id > t->id)))
        at--;
    if (at >= TARN_COUNT_OF(c->best))
        return;
    size_t last = TARN_MIN(c->count, TARN_COUNT_OF(c->best) - 1);
    memmove(&c->best[at + 1], &c->best[at], (last - at) * sizeof c->best[0]);
    c->best[at].task = t;
    c->best[at].score = score;
    c->count = last + 1;
}

struct task *tarn_maintain__choose(struct tarn_maintain *m, const struct worker *w,
                                   struct choice *c)
{
    tarn_maintain__begin_choice(m, c);
    for (size_t i = 0; i < m->open_count; i++) {
        struct task *t = m->open[i];
        if (t->state != TASK_QUEUED)
            continue;
        c->queued_count++;
        if ((t->rescale || t->bucket == TARN_BUCKET_POSTPONE) &&
            (w->address == NULL ||
             w->address[0] == '\0')) /* takes compactions alone (worker.proto) */
            continue;
        if (tarn_maintain__held_by(m, t, w, c->now_ms) == NULL)
            rank(c, t, tarn_maintain__priority(m, c, t));
    }
    if (c->count == 0 || tarn_maintain__all_held_by(m, c->best[0].task, w, c->now_ms) != NULL)
        return NULL;
    return c->best[0].task;
}
