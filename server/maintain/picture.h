/*
 * picture - one bucket as the scheduler sees it: in memory, kept up by what each commit added and removed, so that nothing is read for
 * a commit. It is enough to say whether the bucket needs compaction, of how much, and how urgently.
 *
 * Shape    of a primary-key bucket its sorted runs: each file of level 0, and of each level above one run that stands for its files. Of
 *          a bucket of an append table sums only: what is picked there hangs on each file, and is looked up where the sums call for it.
 * Memory   some 100 bytes, and 80 a run.
 * Threads  one at a time.
 */
#ifndef TARN_MAINTAIN_PICTURE_H
#define TARN_MAINTAIN_PICTURE_H

#include "maintain/maintain.h"

enum tarn_picture_kind {
    TARN_PICTURE_RUNS,  /* primary key */
    TARN_PICTURE_FILES, /* append, in buckets that keep their order */
    TARN_PICTURE_SMALL  /* append, without buckets: small files alone count */
};

struct tarn_picture_run {
    struct tarn_file_change
        file; /* level 0: the file; else size and rows are sums, creation_time_ms the newest */
    int64_t file_count;
    int64_t seen_ms; /* monotonic: known since */
    bool stale;      /* its newest file went, and others didn't */
};
struct tarn_picture {
    enum tarn_picture_kind kind;
    int64_t small_limit; /* a file below is small */
    bool is_marked;      /* append: its files may have deletion vectors, which no change tells of */
    struct tarn_picture_run *runs;
    size_t run_count, run_capacity;
    int64_t file_count, small_file_count, size, small_size, row_count, delete_row_count;
};
void tarn_picture_init(struct tarn_picture *picture, const struct tarn_schema *schema,
                       const struct tarn_options *options);
void tarn_picture_fini(struct tarn_picture *picture);
/* Changes in the order in which they came. False: they don't fit, or their effect isn't known (the newest file of a level went, and not
 * all of it): the bucket must be looked at. now_ms: monotonic. */
bool tarn_picture_change(struct tarn_picture *picture, const struct tarn_file_change *changes,
                         size_t count, int64_t now_ms);
/* All of a bucket's files, into a fresh picture. */
void tarn_picture_add_files(struct tarn_picture *picture, const struct tarn_manifest_entry *files,
                            size_t count, int64_t now_ms);
/* Could there be something to pick? False is certain; of runs, true is too. */
bool tarn_picture_may_need(const struct tarn_picture *picture, const struct tarn_options *options);
/* A bucket with one file for each run: what tarn_pick_compaction says of it, it says of the bucket. Lies in the arena. */
void tarn_picture_as_bucket(const struct tarn_picture *picture, struct tarn_slice partition,
                            int32_t bucket, struct tarn_arena *arena,
                            struct tarn_bucket_files *out);
/* What hangs on the bucket alone; the rest is left 0 (full_interval_ms: -1 where there is none). `pick`: of files that
 * tarn_picture_as_bucket made, or of the bucket's own. now: monotonic and the local wall clock. */
void tarn_picture_inputs(const struct tarn_picture *picture, const struct tarn_schema *schema,
                         const struct tarn_options *options, const struct tarn_pick *pick,
                         int64_t now_ms, int64_t local_ms, struct tarn_score_inputs *out);
/* Since when its oldest file of level 0 is known (monotonic); 0: it has none. */
int64_t tarn_picture_oldest_ms(const struct tarn_picture *picture);

#endif
