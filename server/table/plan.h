/*
 * plan - what the files that make a plan share: plan.c leads, gather.c finds the files of a bucket, changes.c those of a
 * range of snapshots and of expired tags, prune.c and prune_bounds.c leave out what can't hold a row, split.c packs the rest.
 *
 *   begin -> [next bucket] -> gather, prune -> split -> [batches of splits] -> next bucket …
 *
 * A file on its way is a tarn_ref: where its packed entry lies and the few numbers that decide. Only what a batch holds is
 * unpacked, so that a bucket of a million files costs some 100 MB less.
 */
#ifndef TARN_TABLE_PLAN_H
#define TARN_TABLE_PLAN_H

#include "table/index.h"

struct tarn_ref {
    const uint8_t *packed;
    int64_t added_by, size, row_count, min_sequence;
    int64_t made;
    uint64_t hash; /* of the LIVE key; 0 where statistics are in `packed` */
    uint32_t packed_size;
    uint32_t min_key_at, min_key_size, max_key_at, max_key_size, name_at; /* from `packed` */
    uint32_t order; /* in which it was met: of keys of the index, so of time */
    int32_t level, total_buckets;
    uint16_t name_size;
    bool has_stats;   /* packed with statistics */
    bool has_deletes; /* some of its rows are deletes */
    bool is_before;   /* of a DIFF: of the beginning */
    bool may_match;   /* by its statistics */
};

struct tarn_bucket_work { /* one bucket on its way through a plan */
    struct tarn_slice key, partition;
    int32_t bucket;
    struct tarn_ref *refs; /* on the heap */
    size_t count, capacity;
    size_t *split_ends; /* of splits: where each ends in refs; on the heap */
    bool *split_raw;
    size_t split_count, split_capacity;
    size_t next_split, next_ref; /* what has been given out */
    struct tarn_page_set pages;  /* keeps what refs point to */
    struct tarn_arena *arena;    /* … and this does the rest */
    struct tarn_bucket_work *next;
};

struct tarn_listed {       /* entries that were found elsewhere than in LIVE, in order of buckets */
    struct tarn_slice key; /* of the bucket */
    struct tarn_slice packed;
    int64_t added_by;
    size_t order; /* of arrival */
    bool is_before;
};

struct tarn_planner {
    struct tarn_op *op;
    struct tarn_table *table;
    struct tarn_plan_request request;
    struct tarn_plan plan;
    int64_t epoch;

    struct tarn_predicate partition_where; /* what `where` says of partition columns alone */
    struct tarn_predicate key_where;       /* … of primary key columns alone */
    bool has_where, has_key_where, index_helps;
    const struct tarn_type **partition_types;
    int *partition_columns;
    size_t partition_count;
    const struct tarn_type **key_types;
    int *key_columns; /* trimmed primary key */
    size_t key_count;
    bool is_append;
    const struct tarn_value *
        *bucket_values; /* of each bucket key column those that `where` allows; NULL: any */
    size_t *bucket_value_counts;
    int32_t wanted_of; /* the bucket count that `wanted` was reckoned for; -1: none yet */
    uint8_t *wanted;   /* one bit a bucket */

    struct tarn_covering *covering; /* of the file that was judged last (prune_bounds.c) */
    struct tarn_value *row;         /* room for a row of the schema */
    struct tarn_bounds *bounds;     /* … and bounds of all its columns */
    struct tarn_value *key_values;
    struct tarn_buf last_partition; /* the verdict on it is kept */
    bool last_known, last_passes;
    const struct tarn_schema **schemas; /* by id, those that were needed */
    int64_t schema_capacity;
    struct tarn_arena *scratch; /* of one file */
    int index_reads_left;       /* of index files beside data files */

    struct tarn_vectors *vectors; /* of the plan's snapshot; NULL: there are none */
    bool skips_level_0;           /* only what was compacted is read, and nothing is merged */

    struct tarn_listed *listed; /* NULL: LIVE and REMOVED are walked */
    size_t listed_count, listed_capacity, listed_next;
    bool is_listed, is_changelog;
    struct tarn_arena *listed_arena;
    struct tarn_buf after; /* the bucket that was looked at last */
    bool ended;
    int64_t sure_rows; /* towards the limit */
};

/* --- prune.c --- */
/* What lies in scratch is no longer needed: a new file is looked at. */
void tarn_plan__scratch_reset(struct tarn_planner *p);
TARN_MUST struct tarn_status *tarn_plan__prepare(struct tarn_planner *p);
/* The partition of this bucket key: may it hold rows? */
TARN_MUST struct tarn_status *tarn_plan__partition_passes(struct tarn_planner *p,
                                                          struct tarn_slice partition, bool *out);
bool tarn_plan__bucket_passes(struct tarn_planner *p, int32_t bucket, int32_t total_buckets);
/* Leaves out what sections, and file indexes, rule out. */
TARN_MUST struct tarn_status *tarn_plan__prune_bucket(struct tarn_planner *p,
                                                      struct tarn_bucket_work *work);
/* Which schema this is, also where one was removed and another has its id. */
static inline int64_t tarn_plan__schema_stamp(const struct tarn_schema *schema)
{
    return (int64_t)((uint64_t)schema->time_ms << 20 ^ (uint64_t)schema->id);
}

/* --- prune_bounds.c --- */
/* The schema of this id, read once a plan. */
TARN_MUST struct tarn_status *tarn_plan__file_schema(struct tarn_planner *p, int64_t id,
                                                     const struct tarn_schema **out);
/* For tarn_table__pages_load; arg is the planner. */
bool tarn_plan__page_wanted(void *arg, const struct tarn_page_bounds *bounds);
/* By what an entry without statistics says: its smallest and largest key. */
TARN_MUST struct tarn_status *tarn_plan__key_passes(struct tarn_planner *p,
                                                    const struct tarn_manifest_entry *entry,
                                                    bool *out);
enum tarn_verdict { TARN_VERDICT_PASSES, TARN_VERDICT_KEY, TARN_VERDICT_STATS };
/* By statistics of keys, then of values. */
TARN_MUST struct tarn_status *tarn_plan__stats_verdict(struct tarn_planner *p,
                                                       const struct tarn_data_file *file,
                                                       enum tarn_verdict *out);
/* What bounds all files of a page: to be widened by each, then kept. NULL where it would be of no use. */
struct tarn_page_bounds *tarn_plan__page_bounds_new(struct tarn_planner *p, bool has_values);
/* The file's own bounds are the planner's then: bounds_match asks what the filter says of them. */
TARN_MUST struct tarn_status *tarn_plan__page_bounds_add(struct tarn_planner *p,
                                                         struct tarn_page_bounds *bounds,
                                                         const struct tarn_data_file *file,
                                                         bool first);
bool tarn_plan__bounds_match(struct tarn_planner *p);
void tarn_plan__covering_free(struct tarn_covering *covering);

/* --- gather.c --- */
/* spare: one whose memory may be used; or NULL. */
struct tarn_bucket_work *tarn_plan__work_new(struct tarn_bucket_work *spare);
void tarn_plan__work_free(struct tarn_bucket_work *work);
void tarn_plan__work_drop(struct tarn_bucket_work **work);
/* A ref to a packed entry; its view comes along. */
struct tarn_ref *tarn_plan__ref_add(struct tarn_bucket_work *work,
                                    const struct tarn_manifest_entry *entry,
                                    struct tarn_slice packed, int64_t added_by);
/* Statistics of files that were gathered without, for those of one batch: in order of keys they cost a step each. */
struct tarn_late_file {
    const struct tarn_bucket_work *work;
    const struct tarn_ref *ref;
    size_t at;      /* where its packed statistics begin in `out` */
    uint32_t place; /* the caller's */
    uint32_t order; /* the ref's */
};
/* The files' order may be another one afterwards. */
TARN_MUST struct tarn_status *tarn_plan__late_stats(struct tarn_planner *p,
                                                    struct tarn_late_file *files, size_t count,
                                                    struct tarn_buf *out);
/* The next bucket with files that may matter, whose files are gathered; *found false: that was all. */
TARN_MUST struct tarn_status *tarn_plan__next_bucket(struct tarn_planner *p, bool *found,
                                                     struct tarn_bucket_work *work);

/* --- vectors.c --- */
/* The deletion vectors of the plan's snapshot. */
TARN_MUST struct tarn_status *tarn_plan__load_vectors(struct tarn_planner *p);
void tarn_plan__vectors_free(struct tarn_vectors *vectors);
struct tarn_vector_at {
    struct tarn_vector_ref ref;
    struct tarn_slice fields; /* of message DataFile */
};
/* NULL: the file has none. */
const struct tarn_vector_at *tarn_plan__find_vector(struct tarn_planner *p,
                                                    struct tarn_slice partition, int32_t bucket,
                                                    struct tarn_slice data_file);

/* --- changes.c --- */
TARN_MUST struct tarn_status *tarn_plan__list_changes(struct tarn_planner *p, int64_t earliest);
/* The files of a snapshot that is not in the index: of a tag. */
TARN_MUST struct tarn_status *tarn_plan__list_manifests(struct tarn_planner *p);
void tarn_plan__sort_listed(struct tarn_planner *p);
TARN_MUST struct tarn_status *tarn_plan__list_add(struct tarn_planner *p,
                                                  const struct tarn_manifest_entry *entry,
                                                  struct tarn_slice packed, int64_t added_by,
                                                  bool is_before);

/* --- split.c --- */
/* Orders refs as readers want them and says where splits end. */
TARN_MUST struct tarn_status *tarn_plan__split_bucket(struct tarn_planner *p,
                                                      struct tarn_bucket_work *work);
/* Files above level 0 without deletes, of one level, so that they can't overlap, or in which deletion vectors mark all that newer
 * files take the place of: they are read as they lie. */
bool tarn_plan__reads_raw(const struct tarn_planner *p, const struct tarn_ref *refs, size_t count);
/* Files whose key ranges overlap, directly or through others, share a section; refs are put in order of
 * (min key, max key). */
TARN_MUST struct tarn_status *tarn_plan__sections(struct tarn_planner *p, struct tarn_ref *refs,
                                                  size_t count, struct tarn_arena *arena,
                                                  int **section_of, int *section_count);

/* Bytes that pages of live files (pages.h) hold in memory now, of all tables together. */
size_t tarn_plan_pages_size(void);

#endif
