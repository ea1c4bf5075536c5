/*
 * budget - how much compaction may take: a token bucket, and a time of day. Pure: the caller says what time it is.
 *
 * Promise  what is taken between two moments is at most rate * time + burst, but for the last one taken, which may be larger than
 *          what was left: it is paid off before the next one. So the rate holds over any longer time, whatever the sizes are.
 * Units    bytes a second, or nanoseconds of CPU a second. rate 0: no limit.
 */
#ifndef TARN_MAINTAIN_BUDGET_H
#define TARN_MAINTAIN_BUDGET_H

#include "base/base.h"

#define TARN_BUDGET_BURST_SECONDS 10

struct tarn_budget {
    int64_t rate;   /* a second; 0: no limit */
    int64_t tokens; /* below 0: owed */
    int64_t at_ms;  /* when that was so; monotonic */
};
/* Full at first. */
void tarn_budget_init(struct tarn_budget *budget, int64_t rate, int64_t now_ms);
/* What is there now. */
int64_t tarn_budget_tokens(struct tarn_budget *budget, int64_t now_ms);
/* May so much be begun now? Where it is more than the burst: when the bucket is full. */
bool tarn_budget_has(struct tarn_budget *budget, int64_t amount, int64_t now_ms);
/* Takes it, or gives it back where it is negative. */
void tarn_budget_take(struct tarn_budget *budget, int64_t amount, int64_t now_ms);

struct tarn_window { /* minutes of the day, local time; from == to: always */
    int from, to;
};
/* "22:00-06:00", or empty: always. INVALID_ARGUMENT. */
TARN_MUST struct tarn_status *tarn_window_parse(struct tarn_slice text, struct tarn_window *out);
/* local_ms: the local wall clock as if it were UTC. */
bool tarn_window_is_open(const struct tarn_window *window, int64_t local_ms);

#endif
