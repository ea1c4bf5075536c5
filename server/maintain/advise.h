/*
 * advise - what other settings would do to a table, replayed from what was loaded into it.
 *
 * Replay   each commit's new files of a bucket, in order, into that bucket, which is compacted by the picker's own rules as soon as they
 *          call for it. What a compaction writes is `kept` of what it reads, as in the table's own history; of append tables, in files of
 *          the target size. Where more buckets are tried, each of those that there are is divided evenly.
 * Limits   keys that one bucket has too many rows of aren't divided by more buckets, and here they are; compaction is taken to keep up.
 */
#ifndef TARN_MAINTAIN_ADVISE_H
#define TARN_MAINTAIN_ADVISE_H

#include "maintain/maintain.h"

struct tarn_load {  /* one commit's new data in one bucket of a partition */
    int32_t bucket; /* 0.., of the history's */
    int32_t file_count;
    int64_t size;
};
struct tarn_load_history {
    const struct tarn_load *loads; /* oldest first */
    size_t load_count;
    const int64_t *start_sizes; /* of each bucket, before them */
    int32_t bucket_count;       /* of all partitions */
    int64_t span_ms;            /* between the first and the last */
    double kept;                /* 0..1 */
};
/* Options' trigger and target file size are those to be tried; each bucket is divided into `parts`. */
void tarn_advise_replay(const struct tarn_schema *schema, const struct tarn_options *options,
                        const struct tarn_load_history *history, int32_t parts,
                        struct tarn_advise_effect *out);
/* Fills setting and effect of `advised` from those of now, which are filled, too. The sizes are there. */
void tarn_advise_choose(const struct tarn_schema *schema, const struct tarn_options *options,
                        const struct tarn_load_history *history, struct tarn_advice *advice);

#endif
