#include "maintain/internal.h"

/*
 * What a decision was made from, as numbers that it can be made again from: scores by score.h, the pick by pick.c. A task keeps its latest
 * decision (at most TARN_EXPLAINED_RUNS_MAX runs of it) until it is forgotten.
 */

static struct tarn_budget_state state_of(struct tarn_budget *b, int64_t now_ms)
{
    return (struct tarn_budget_state){b->rate, tarn_budget_tokens(b, now_ms)};
}

static void explain_budgets(struct tarn_maintain *m, struct tenant *database, struct tenant *table,
                            int64_t now_ms, struct tarn_decision *out)
{
    out->bytes_of_all = state_of(&m->of_all.budget, now_ms);
    out->cpu_of_all = state_of(&m->of_all.cpu, now_ms);
    out->memory_max_bytes = m->options.memory_max_bytes;
    out->memory_bytes = m->of_all.memory;
    out->database_memory_max_bytes = m->options.database_memory_max_bytes;
    out->table_memory_max_bytes = m->options.table_memory_max_bytes;
    if (database != NULL) {
        out->bytes_of_database = state_of(&database->budget, now_ms);
        out->cpu_of_database = state_of(&database->cpu, now_ms);
        out->database_memory_bytes = database->memory;
    }
    if (table != NULL) {
        out->bytes_of_table = state_of(&table->budget, now_ms);
        out->cpu_of_table = state_of(&table->cpu, now_ms);
        out->table_memory_bytes = table->memory;
    }
}

/* --- of a task that was chosen; lock held --- */

void tarn_maintain__keep_decision(struct tarn_maintain *m, const struct choice *c, struct task *t)
{
    tarn_arena_free(t->explained);
    t->explained = tarn_arena_new();
    struct tarn_decision *d = tarn_arena_calloc(t->explained, 1, sizeof *d);
    d->decided_ms = tarn_clock_wall_ms();
    d->queued_count = (int64_t)c->queued_count;
    tarn_maintain__inputs_now(m, c, t, &d->inputs);
    tarn_score(&d->inputs, &d->score);
    d->alternatives =
        tarn_arena_calloc(t->explained, TARN_COUNT_OF(c->best), sizeof *d->alternatives);
    for (size_t i = 1; i < c->count; i++) {
        struct tarn_alternative *a = &d->alternatives[d->alternative_count++];
        struct task *other = c->best[i].task;
        a->job_id = other->id;
        a->table = tarn_arena_str(t->explained, tarn_slice_str(tarn_table_name(other->table)));
        a->score = c->best[i].score;
        tarn_maintain__inputs_now(m, c, other, &a->inputs);
    }
    explain_budgets(m, t->of_database, t->of_table, c->now_ms, d);
    t->decision = d;
}

static struct tarn_explained_pick *copy_pick(struct tarn_arena *arena,
                                             const struct tarn_explained_pick *from)
{
    struct tarn_explained_pick *to = tarn_arena_calloc(arena, 1, sizeof *to);
    struct tarn_run *runs = tarn_arena_calloc(arena, from->run_count + 1, sizeof *runs);
    if (from->run_count > 0)
        memcpy(runs, from->runs, from->run_count * sizeof *runs);
    *to = *from;
    to->runs = runs;
    return to;
}

void tarn_maintain__keep_pick(struct task *t, const struct tarn_explained_pick *pick)
{
    if (t->decision != NULL)
        t->decision->pick = copy_pick(t->explained, pick);
}

static struct tarn_decision *copy_decision(struct tarn_arena *arena,
                                           const struct tarn_decision *from)
{
    struct tarn_decision *to = tarn_arena_calloc(arena, 1, sizeof *to);
    *to = *from;
    to->alternatives =
        tarn_arena_calloc(arena, from->alternative_count + 1, sizeof *to->alternatives);
    for (size_t i = 0; i < from->alternative_count; i++) {
        to->alternatives[i] = from->alternatives[i];
        to->alternatives[i].table =
            tarn_arena_str(arena, tarn_slice_str(from->alternatives[i].table));
    }
    if (from->pick != NULL)
        to->pick = copy_pick(arena, from->pick);
    return to;
}

/* --- what is told; lock held --- */

void tarn_maintain__explain_task(struct tarn_op *op, struct tarn_maintain *m,
                                 const struct choice *c, struct task *t, struct tarn_job_info *out)
{
    if (t->decision != NULL && t->state != TASK_QUEUED) {
        out->decision = copy_decision(op->arena, t->decision);
        return;
    }
    struct tarn_decision *d = tarn_arena_calloc(op->arena, 1, sizeof *d);
    tarn_maintain__inputs_now(m, c, t, &d->inputs);
    tarn_score(&d->inputs, &d->score);
    explain_budgets(m, t->of_database, t->of_table, c->now_ms, d);
    const char *held = tarn_maintain__held_by(m, t, NULL, c->now_ms);
    if (held == NULL)
        held = tarn_maintain__all_held_by(m, t, NULL, c->now_ms);
    d->held_by = held == NULL ? "" : held;
    out->decision = d;
}

void tarn_maintain__explain_wish(struct tarn_op *op, struct tarn_maintain *m,
                                 struct tarn_table *table, const struct wish *wish,
                                 struct tarn_job_info *out)
{
    struct choice c;
    struct task *t =
        tarn_maintain__open_task(m, table, wish->bucket->partition, wish->bucket->bucket);
    tarn_maintain__begin_choice(m, &c);
    if (t != NULL) {
        tarn_maintain__explain_task(op, m, &c, t, out);
    } else {
        out->decision = tarn_arena_calloc(op->arena, 1, sizeof *out->decision);
        out->decision->inputs = wish->inputs;
        out->decision->held_by = "";
        tarn_score(&wish->inputs, &out->decision->score);
        explain_budgets(m, NULL, NULL, c.now_ms, out->decision);
    }
    out->priority = out->decision->score.total;
}

/* --- picks --- */

struct tarn_explained_pick *tarn_maintain__explain_pick(struct tarn_arena *arena,
                                                        const struct tarn_table_view *view,
                                                        const struct tarn_bucket_files *bucket,
                                                        bool full, int64_t local_ms)
{
    const struct tarn_options *o = &view->options;
    struct tarn_explained_pick *p = tarn_arena_calloc(arena, 1, sizeof *p);
    bool append = tarn_schema_is_append(&view->schema);
    *p = (struct tarn_explained_pick){
        .rules = !append         ? "sorted runs"
                 : o->bucket > 0 ? "files in order"
                                 : "small files",
        .full = full,
        .local_ms = local_ms,
        .run_trigger = o->run_trigger,
        .level_count = o->level_count,
        .size_amplification_percent = o->size_amplification_percent,
        .size_ratio_percent = o->size_ratio_percent,
        .offpeak_start_hour = o->offpeak_start_hour,
        .offpeak_end_hour = o->offpeak_end_hour,
        .offpeak_ratio = o->offpeak_ratio,
        .optimization_interval_ms = o->optimization_interval_ms,
        .total_size_threshold = o->total_size_threshold,
        .incremental_size_threshold = o->incremental_size_threshold,
        .force_up_level_0 =
            o->force_up_level_0 || tarn_maintain_is_waited_for(&view->schema, &view->options),
        .min_file_count = o->append_min_file_count,
        .target_file_size = o->target_file_size,
        .small_file_limit = tarn_maintain_small_limit(o),
        .split_open_cost = o->split_open_cost,
    };
    struct tarn_run *runs;
    size_t count = tarn_pick_runs(&view->schema, o, bucket, arena, &runs);
    p->runs = runs;
    p->run_count = TARN_MIN(count, (size_t)TARN_EXPLAINED_RUNS_MAX);
    p->runs_left_out = (int64_t)(count - p->run_count);
    return p;
}
