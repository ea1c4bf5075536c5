/*
 * pages_internal - what the files of pages share: pages.c (the directory, changes, plans), page_cache.c (what pages hold, in
 * memory), page_read.c (LIVE into pages), page_records.c (the directory in the state).
 *
 * Locks    a directory and its pages are of their table's index_lock; what a page holds, of the cache's, which page_cache.c
 *          takes by itself, last of all.
 */
#ifndef TARN_TABLE_PAGES_INTERNAL_H
#define TARN_TABLE_PAGES_INTERNAL_H

#include "table/index.h"
#include "table/pages.h"

struct tarn_page {
    uint8_t *first; /* where its interval begins: LIVE's key without the uuid */
    uint32_t first_size, bucket_size;
    int32_t total_buckets;
    bool recorded; /* the state may have a record of what it holds */
    int64_t count; /* of live files, kept up by changes */
    int64_t version;
    struct tarn_page_bounds *bounds;
    struct tarn_page_content *content; /* of the cache, as all below; NULL: to be read */
    struct tarn_page *newer, *older;
};

struct tarn_pages {
    bool known; /* the directory stands */
    struct tarn_page **list;
    size_t count, capacity;
    int64_t epoch, earliest, latest, next_version;
    bool building;          /* somebody walks LIVE to make it */
    struct tarn_buf missed; /* keys that changed meanwhile, each behind its size and count */
    pthread_mutex_t build_lock;
    struct tarn_map *touched; /* bucket key -> heap struct touched_bucket (touched.c) */
    bool touched_all;
    size_t touched_changes; /* kept in all of them */
    int64_t change_stamp;   /* of the latest batch */
};

static inline struct tarn_slice tarn_page_first(const struct tarn_page *page)
{
    return tarn_slice_of(page->first, page->first_size);
}
static inline struct tarn_slice tarn_page_bucket_key(const struct tarn_page *page)
{
    return tarn_slice_of(page->first, page->bucket_size);
}
struct tarn_page *tarn_table__page_new(struct tarn_slice first, size_t bucket_size);
void tarn_table__page_free(struct tarn_page *page);

/* --- page_cache.c --- */
void tarn_table__content_unref(struct tarn_page_content *content);
void tarn_table__page_hold(struct tarn_page *page, struct tarn_page_content *consumed);
void tarn_table__page_let_go(struct tarn_page *page);
/* A reference to what the page holds, or NULL. */
struct tarn_page_content *tarn_table__page_use(struct tarn_page *page);

/* --- page_read.c --- */
struct tarn_read_page { /* one that was read */
    struct tarn_page *page;
    struct tarn_page_content
        *content; /* NULL: let go again, or not read as its record says enough */
};
/* Takes entries in order; a new page begins at each boundary that is given, at each bucket, and when one is full. */
struct tarn_page_reader {
    struct tarn_read_page *list;
    size_t count, capacity;
    struct tarn_buf bytes; /* of the page that is being filled */
    uint32_t at[TARN_PAGE_ENTRIES + 1];
    uint32_t filled;
    int32_t total_buckets;
    bool filling;
    size_t held; /* so many of the list were given to the cache */
};
void tarn_page_reader_fini(struct tarn_page_reader *reader);
/* What was read may be let go from here on when others want the memory. */
void tarn_page_reader_hold(struct tarn_page_reader *reader);
/* The page as it is: nothing of it is read. */
void tarn_page_reader_take(struct tarn_page_reader *reader, struct tarn_page *consumed);
/* One page's interval, `from` and `to` with the uuid; what it holds may be several pages by now. */
TARN_MUST struct tarn_status *tarn_table__read_interval(struct tarn_table *table,
                                                        const struct tarn_state_view *view,
                                                        struct tarn_slice from,
                                                        struct tarn_slice to, size_t bucket_size,
                                                        struct tarn_page_reader *reader);
TARN_MUST struct tarn_status *tarn_table__read_all(struct tarn_op *op, struct tarn_table *table,
                                                   const struct tarn_state_view *view,
                                                   struct tarn_page_reader *reader);

/* --- page_records.c --- */
struct tarn_page_record {
    int64_t count;
    int32_t total_buckets;
    struct tarn_page_bounds *bounds; /* NULL: none; of a decoded one owned */
};
void tarn_page_record_encode(const struct tarn_page_record *record, struct tarn_buf *out);
bool tarn_page_record_decode(struct tarn_slice bytes, struct tarn_page_record *out);
/* The directory as the state has it; pages that changed since they were recorded are read. */
TARN_MUST struct tarn_status *tarn_table__read_records(struct tarn_op *op, struct tarn_table *table,
                                                       const struct tarn_state_view *view,
                                                       bool *found,
                                                       struct tarn_page_reader *reader);
/* Of a page, or only that there is one (what it holds has changed). */
void tarn_table__record_put(struct tarn_state_batch *batch, struct tarn_table *table,
                            struct tarn_page *page);
void tarn_table__record_put_changed(struct tarn_state_batch *batch, struct tarn_table *table,
                                    struct tarn_slice first);
/* That all pages have one. */
void tarn_table__records_mark(struct tarn_state_batch *batch, struct tarn_table *table);
void tarn_table__records_remove(struct tarn_state_batch *batch, struct tarn_table *table);

/* --- touched.c --- */
/* index_lock held. change: what happened there, or NULL where that isn't known. */
void tarn_table__touch_bucket(struct tarn_pages *pages, struct tarn_slice bucket,
                              const struct tarn_file_change *change);
void tarn_table__touched_free(struct tarn_map *touched);

#endif
