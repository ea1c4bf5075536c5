/*
 * pages - the live files of a table as a plan wants them: packed, in order, in memory.
 *
 * Shape    a page is an interval of LIVE's keys within one bucket, at most about TARN_PAGE_ENTRIES files; the directory
 *          of a table names all its pages in order. What a page holds is read from the state when a plan wants it, and
 *          let go when other plans want the memory: pages can always be read again.
 * Truth    LIVE in the state. Whoever changes LIVE says so under the table's index_lock (pages_changing before, pages_changed
 *          behind), so that what a page holds is never older than the state. The directory, with what bounds its pages, is
 *          in the state, too (page_records.c): a restart costs nothing.
 * Limits   TARN_PAGES_SIZE_MAX bytes of all tables' pages together, the least recently used go first. Directories
 *          (some 200 bytes a page or bucket) are not counted.
 * Locks    index_lock for a directory, cache lock (page_cache.c, taken last) for what pages hold.
 */
#ifndef TARN_TABLE_PAGES_H
#define TARN_TABLE_PAGES_H

#include <pthread.h>

#include "table/table.h"

#define TARN_PAGE_ENTRIES 512
#define TARN_PAGE_HASH_SIZE 8 /* of a LIVE key's end */
#define TARN_PAGES_SIZE_MAX ((size_t)192 << 20)

struct tarn_pages;

struct tarn_page_content { /* immutable, counted */
    atomic_int ref_count;
    uint32_t count;
    const uint32_t
        *at; /* count + 1 of them: entry i, and the hash in its key, are bytes[at[i]] up to
                         * bytes[at[i + 1]] */
    const uint8_t *bytes;
    size_t size; /* of all this in memory */
};
static inline struct tarn_slice tarn_page_entry(const struct tarn_page_content *c, size_t i)
{
    return (struct tarn_slice){c->bytes + c->at[i], c->at[i + 1] - c->at[i] - TARN_PAGE_HASH_SIZE};
}
static inline uint64_t tarn_page_hash(const struct tarn_page_content *c, size_t i)
{
    uint64_t hash;
    memcpy(&hash, c->bytes + c->at[i + 1] - TARN_PAGE_HASH_SIZE, sizeof hash);
    return be64toh(hash);
}

struct tarn_page_bounds { /* of all files of a page; immutable, counted */
    atomic_int ref_count;
    int64_t schema_stamp; /* whose columns these are: tarn_plan__schema_stamp */
    bool has_values;      /* value statistics too, not only keys */
    struct tarn_arena *arena;
    size_t count; /* of columns */
    struct tarn_bounds *bounds;
    bool *of_bytes; /* the column's values are bytes */
};
struct tarn_page_bounds *tarn_page_bounds_new(void);
struct tarn_page_bounds *tarn_page_bounds_ref(struct tarn_page_bounds *bounds);
void tarn_page_bounds_unref(struct tarn_page_bounds *bounds);

struct tarn_pages *tarn_table__pages_new(void);
void tarn_table__pages_free(struct tarn_pages *pages);

/* --- by those who change LIVE --- */
/* Before a batch that changes LIVE, no lock held: the directory is here, where the state has one. */
TARN_MUST struct tarn_status *tarn_table__pages_need(struct tarn_table *table);

/* index_lock held, as below: `batch`, which changes LIVE at `key`, takes the page's record along. */
void tarn_table__pages_changing(struct tarn_table *table, struct tarn_state_batch *batch,
                                struct tarn_slice key);
/* key: of LIVE. count: 1 added, -1 removed, 0 replaced; change says more of it. written: false where the batch failed. */
void tarn_table__pages_changed(struct tarn_table *table, struct tarn_slice key, int count,
                               const struct tarn_file_change *change, bool written);
/* The stamp of the batch of changes that is told next. */
int64_t tarn_table__pages_stamp(struct tarn_table *table);
/* Everything may be different: a rebuild. */
void tarn_table__pages_forget(struct tarn_table *table);
/* The delta of this snapshot is in the state, or begins to be: what a plan of an earlier one sees may be removed. */
void tarn_table__pages_reached(struct tarn_table *table, int64_t snapshot_id);
/* Snapshots below are expired: plans of them can't go on. */
void tarn_table__pages_expire(struct tarn_table *table, int64_t earliest);

/* --- by plans; no lock held --- */
/* Raised by every rebuild: a plan that began before can't go on. */
int64_t tarn_table__pages_epoch(struct tarn_table *table);
/* SNAPSHOT_EXPIRED where a plan that began in `epoch` can't go on, or the snapshot isn't retained any more. */
TARN_MUST struct tarn_status *tarn_table__pages_check(struct tarn_table *table, int64_t epoch,
                                                      int64_t snapshot_id);
/* Has the index gone on since that snapshot? */
bool tarn_table__pages_is_past(struct tarn_table *table, int64_t snapshot_id);

struct tarn_page_bucket {
    struct tarn_buf key;   /* partition and bucket as in keys, without the table's uuid */
    int32_t total_buckets; /* 0: its files don't agree, or that isn't known */
    int64_t file_count;
};
void tarn_page_bucket_fini(struct tarn_page_bucket *bucket);
/* The first bucket with live files whose key is above `after` (empty: the first of all). */
TARN_MUST struct tarn_status *tarn_table__pages_next(struct tarn_op *op, struct tarn_table *table,
                                                     struct tarn_slice after, bool *found,
                                                     struct tarn_page_bucket *out);

struct tarn_page_ref {
    struct tarn_page_content *content; /* NULL: it wasn't wanted */
    struct tarn_page_bounds *bounds;   /* NULL: not known */
    int64_t file_count;
    struct tarn_slice from, to; /* its interval of LIVE keys, with the uuid */
    int64_t version;
};
struct tarn_page_set { /* the pages of one bucket at one moment */
    struct tarn_page_ref *pages;
    size_t count;
    struct tarn_state_view *view; /* that moment; NULL unless asked for or needed */
    bool
        is_past; /* the index has gone on since the plan's snapshot: some files may be removed; then
                   * there is a view */
    struct tarn_arena *arena;
};
void tarn_page_set_fini(struct tarn_page_set *set);
/* wanted: false for a page that the caller can do without, judged by its bounds (they may be NULL). SNAPSHOT_EXPIRED
 * where the plan of `snapshot_id` (INT64_MAX: of what is live now) began in another epoch, or that snapshot has
 * expired. */
TARN_MUST struct tarn_status *tarn_table__pages_load(
    struct tarn_op *op, struct tarn_table *table, struct tarn_slice bucket_key, int64_t epoch,
    int64_t snapshot_id, bool with_view,
    bool (*wanted)(void *arg, const struct tarn_page_bounds *bounds), void *arg,
    struct tarn_page_set *out);
/* What a page was found to be bounded by (takes a ref of it): for the next plan, unless the page has changed. */
void tarn_table__pages_keep_bounds(struct tarn_table *table, const struct tarn_page_ref *page,
                                   struct tarn_page_bounds *bounds);

#endif
