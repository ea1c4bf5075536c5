/*
 * merge_manifests - what the two files that merge manifests share: the decision (merge_manifests.c) and the
 * work (merge_entries.c).
 */
#ifndef TARN_TABLE_MERGE_MANIFESTS_H
#define TARN_TABLE_MERGE_MANIFESTS_H

#include "table/internal.h"

struct tarn_merge_run { /* neighbours in a list that become one or more new manifests */
    size_t begin, end;
};

struct tarn_merge_work {
    struct tarn_arena *arena;
    const struct tarn_table_view *view; /* a reference */
    struct tarn_manifest_file *before;  /* the whole list of a head */
    size_t before_count;
    bool full; /* sizes ask for a full one; else minor */
    /* What becomes of it; grows as files are written, so that those of a failed one can be removed. */
    struct tarn_manifest_file *after; /* never more than before */
    bool *is_new;
    size_t after_count;
    bool changed;                       /* false: nothing was to be done */
    int64_t entry_count, dropped_count; /* read; that came to nothing */
    struct tarn_slice fixed_name;       /* failed: this manifest holds what we can't write again */
};

/* Is it rewritten by a full merge in any case? */
bool tarn_table__must_change(const struct tarn_manifest_file *file, int64_t target);
/* Paimon's minor compaction: which neighbours become one manifest. runs: room for `count`. */
size_t tarn_table__minor_runs(const struct tarn_options *options, const struct tarn_map *fixed,
                              const struct tarn_manifest_file *files, size_t count,
                              struct tarn_merge_run *runs);
/* Reads, merges, writes. May wait; not in the mailbox. */
TARN_MUST struct tarn_status *tarn_table__merge_work(struct tarn_op *op, struct tarn_table *table,
                                                     const struct tarn_map *fixed,
                                                     struct tarn_merge_work *work);
void tarn_table__keep_manifest(struct tarn_arena *arena, const struct tarn_manifest_file *in,
                               struct tarn_manifest_file *out);

#endif
