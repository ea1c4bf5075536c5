#include "rpc/internal.h"

/* Decisions of the scheduler, number by number. */

static Tarn__V1__ScoreInputs *put_inputs(struct tarn_op *op, const struct tarn_score_inputs *in)
{
    Tarn__V1__ScoreInputs *m = TARN_RPC_NEW(op, Tarn__V1__ScoreInputs, score_inputs);
    m->sorted_runs = in->runs;
    m->trigger = in->run_trigger;
    m->stop_trigger = in->run_stop_trigger;
    m->pick_bytes = in->pick_size;
    m->new_bytes = in->new_size;
    m->rows = in->row_count;
    m->delete_rows = in->delete_row_count;
    m->files = in->file_count;
    m->small_files = in->small_file_count;
    m->full_age_ms = in->full_age_ms;
    m->full_interval_ms = in->full_interval_ms;
    m->waiting_ms = in->waiting_ms;
    m->lag_ms = in->lag_ms;
    m->freshness_ms = in->freshness_ms;
    m->database_share = in->database_share;
    m->table_share = in->table_share;
    m->ordered = in->ordered;
    return m;
}

static Tarn__V1__Score *put_score(struct tarn_op *op, const struct tarn_score *in)
{
    Tarn__V1__Score *m = TARN_RPC_NEW(op, Tarn__V1__Score, score);
    m->read = in->read;
    m->deletes = in->deletes;
    m->small = in->small;
    m->full = in->full;
    m->cost = in->cost;
    m->age = in->age;
    m->fairness = in->fairness;
    m->deadline = in->deadline;
    m->stopped = in->stopped;
    m->ordered = in->ordered;
    m->total = in->total;
    return m;
}

static Tarn__V1__Budget *put_budget(struct tarn_op *op, const struct tarn_budget_state *in)
{
    Tarn__V1__Budget *m = TARN_RPC_NEW(op, Tarn__V1__Budget, budget);
    m->per_second = in->rate;
    m->tokens = in->tokens;
    return m;
}

static Tarn__V1__Alternative *put_alternative(struct tarn_op *op, const struct tarn_alternative *in)
{
    Tarn__V1__Alternative *m = TARN_RPC_NEW(op, Tarn__V1__Alternative, alternative);
    m->job = in->job_id;
    m->table = tarn_rpc__str(in->table);
    m->score = in->score;
    m->inputs = put_inputs(op, &in->inputs);
    return m;
}

static void put_runs(struct tarn_op *op, const struct tarn_explained_pick *in, Tarn__V1__Pick *out)
{
    out->runs_left_out = in->runs_left_out;
    out->n_runs = in->run_count;
    out->runs = TARN_RPC_ARRAY(op, in->run_count, *out->runs);
    for (size_t i = 0; i < in->run_count; i++) {
        out->runs[i] = TARN_RPC_NEW(op, Tarn__V1__SortedRun, sorted_run);
        out->runs[i]->level = in->runs[i].level;
        out->runs[i]->files = in->runs[i].file_count;
        out->runs[i]->bytes = in->runs[i].size;
        out->runs[i]->created_ms = in->runs[i].created_ms;
    }
}

static Tarn__V1__Pick *put_pick(struct tarn_op *op, const struct tarn_explained_pick *in)
{
    Tarn__V1__Pick *m = TARN_RPC_NEW(op, Tarn__V1__Pick, pick);
    m->rules = tarn_rpc__str(in->rules);
    m->full = in->full;
    m->force_up_level_0 = in->force_up_level_0;
    m->local_ms = in->local_ms;
    m->compaction_trigger = in->run_trigger;
    m->levels = in->level_count;
    m->size_amplification_percent = in->size_amplification_percent;
    m->size_ratio_percent = in->size_ratio_percent;
    m->offpeak_start_hour = in->offpeak_start_hour;
    m->offpeak_end_hour = in->offpeak_end_hour;
    m->offpeak_ratio = in->offpeak_ratio;
    m->min_files = in->min_file_count;
    m->optimization_interval_ms = in->optimization_interval_ms;
    m->total_size_threshold = in->total_size_threshold;
    m->incremental_size_threshold = in->incremental_size_threshold;
    m->target_file_size = in->target_file_size;
    m->small_file_limit = in->small_file_limit;
    m->split_open_cost = in->split_open_cost;
    put_runs(op, in, m);
    return m;
}

Tarn__V1__Decision *tarn_rpc__decision(struct tarn_op *op, const struct tarn_decision *in)
{
    Tarn__V1__Decision *m = TARN_RPC_NEW(op, Tarn__V1__Decision, decision);
    m->decided_ms = in->decided_ms;
    m->held_by = tarn_rpc__str(in->held_by);
    m->queued = in->queued_count;
    m->inputs = put_inputs(op, &in->inputs);
    m->score = put_score(op, &in->score);
    m->n_alternatives = in->alternative_count;
    m->alternatives = TARN_RPC_ARRAY(op, in->alternative_count, *m->alternatives);
    for (size_t i = 0; i < in->alternative_count; i++)
        m->alternatives[i] = put_alternative(op, &in->alternatives[i]);
    m->daemon_bytes = put_budget(op, &in->bytes_of_all);
    m->daemon_cpu = put_budget(op, &in->cpu_of_all);
    m->database_bytes = put_budget(op, &in->bytes_of_database);
    m->table_bytes = put_budget(op, &in->bytes_of_table);
    m->database_cpu = put_budget(op, &in->cpu_of_database);
    m->table_cpu = put_budget(op, &in->cpu_of_table);
    m->database_memory_bytes = in->database_memory_bytes;
    m->database_memory_max_bytes = in->database_memory_max_bytes;
    m->table_memory_bytes = in->table_memory_bytes;
    m->table_memory_max_bytes = in->table_memory_max_bytes;
    m->memory_bytes = in->memory_bytes;
    m->memory_max_bytes = in->memory_max_bytes;
    m->pick = in->pick == NULL ? NULL : put_pick(op, in->pick);
    return m;
}
