/*
 * score - in which order buckets are compacted: a number made of what is known of a bucket. Pure: no I/O, no clock, so that whoever
 * has the inputs (tarn jobs --explain -o json) gets the same number.
 *
 *   read     = runs / trigger                     read amplification: sorted runs that each read merges, over what the table allows
 *   deletes  = delete_rows / rows                 rows that are read to be thrown away
 *   small    = small_files / files
 *   full     = full_age / full_interval, at most 4        0 without compaction.optimization-interval
 *   cost     = 1 + log2(1 + pick_size / new_size) / 4     write amplification to come: bytes rewritten for each new one
 *   age      = waiting, in minutes                grows without bound: nothing starves
 *   fairness = 1 / (1 + database's share + table's share) of what was compacted lately: between 1/3 and 1
 *   deadline = 30 * (1 + min(lag / freshness, 3)) 0 where nobody waits for compaction
 *   stopped  = 10 where writers are told to wait
 *   ordered  = 10000 for tarn compact
 *
 *   total    = ordered + stopped + deadline + ((2 * read + deletes + small + full) / cost + age) * fairness
 */
#ifndef TARN_MAINTAIN_SCORE_H
#define TARN_MAINTAIN_SCORE_H

#include <stdbool.h>
#include <stdint.h>

struct tarn_score_inputs {
    int32_t runs, run_trigger,
        run_stop_trigger; /* append tables: files, compaction.min.file-num, 0 */
    int64_t pick_size,
        new_size; /* bytes that are picked, and those of them that were never compacted */
    int64_t row_count, delete_row_count; /* of the bucket, as the next two */
    int64_t file_count, small_file_count;
    int64_t full_age_ms,
        full_interval_ms; /* since the last full compaction; -1: there is no interval */
    int64_t waiting_ms;   /* since it was known to need compaction */
    int64_t lag_ms,
        freshness_ms; /* since its oldest file of level 0 is known; freshness 0: nobody waits for that */
    double database_share, table_share; /* 0..1 of the bytes compacted lately */
    bool ordered;                       /* by tarn compact */
};
struct tarn_score {
    double read, deletes, small, full, cost, age, fairness, deadline, stopped, ordered, total;
};
void tarn_score(const struct tarn_score_inputs *inputs, struct tarn_score *out);

#endif
