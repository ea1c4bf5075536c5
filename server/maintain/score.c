#include "maintain/score.h"

#include <math.h>

#define AGE_UNIT_MS 60000.0
#define FULL_MAX 4
#define LATE_MAX 3

static double ratio(int64_t part, int64_t whole)
{
    return part > 0 && whole > 0 ? (double)part / (double)whole : 0;
}

static double deadline_of(const struct tarn_score_inputs *in)
{
    return in->freshness_ms <= 0 ? 0
                                 : 30 * (1 + fmin(ratio(in->lag_ms, in->freshness_ms), LATE_MAX));
}

void tarn_score(const struct tarn_score_inputs *in, struct tarn_score *out)
{
    *out = (struct tarn_score){
        .read = ratio(in->runs, in->run_trigger),
        .deletes = fmin(ratio(in->delete_row_count, in->row_count), 1),
        .small = fmin(ratio(in->small_file_count, in->file_count), 1),
        .full = fmin(ratio(in->full_age_ms, in->full_interval_ms), FULL_MAX),
        .cost = 1 + log2(1 + ratio(in->pick_size, in->new_size)) / 4,
        .age = in->waiting_ms > 0 ? (double)in->waiting_ms / AGE_UNIT_MS : 0,
        .fairness = 1 / (1 + in->database_share + in->table_share),
        .deadline = deadline_of(in),
        .stopped = in->run_stop_trigger > 0 && in->runs > in->run_stop_trigger ? 10 : 0,
        .ordered = in->ordered ? 10000 : 0,
    };
    double urgency = (2 * out->read + out->deletes + out->small + out->full) / out->cost;
    out->total = out->ordered + out->stopped + out->deadline + (urgency + out->age) * out->fairness;
}
