/*
 * advise - what other settings would do to a primary-key table, replayed from what was loaded into it.
 *
 * Replay   each commit's new bytes of a partition, in order, spread evenly over its buckets, each of which is compacted by the picker's
 *          own rules as soon as they call for it. What a compaction writes is `kept` of what it reads, as in the table's own history.
 * Limits   uneven buckets and writers that make several files of a commit in one bucket aren't told apart from even ones; compaction is taken to keep up.
 */
#ifndef TARN_MAINTAIN_ADVISE_H
#define TARN_MAINTAIN_ADVISE_H

#include "maintain/maintain.h"

struct tarn_load {     /* one commit's new data in one partition */
    int32_t partition; /* 0.. */
    int64_t size;
};
struct tarn_load_history {
    const struct tarn_load *loads; /* oldest first */
    size_t load_count;
    const int64_t *start_sizes; /* of each partition, before them */
    int32_t partition_count;
    int64_t span_ms; /* between the first and the last */
    double kept;     /* 0..1 */
};
/* bucket_count and options' trigger and target file size are those to be tried. */
void tarn_advise_replay(const struct tarn_schema *schema, const struct tarn_options *options,
                        const struct tarn_load_history *history, int32_t bucket_count,
                        struct tarn_advise_effect *out);
/* Fills setting and effect of `advised` from those of now, which are filled, too. largest_size: live bytes of the largest partition. */
void tarn_advise_choose(const struct tarn_schema *schema, const struct tarn_options *options,
                        const struct tarn_load_history *history, struct tarn_advice *advice);

#endif
