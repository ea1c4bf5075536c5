/*
 * index - the file index in the state: what a table's folder says, as keys (index.c has the layout).
 *
 * Truth    the folder. The index is written after the snapshot is durable, in order of ids, and without a sync: what a
 *          loss of power takes is caught up, what doesn't fit the folder is built anew (rebuild.c).
 * Threads  written in the table's mailbox alone, under index_lock, together with the pages that plans keep of it.
 */
#ifndef TARN_TABLE_INDEX_H
#define TARN_TABLE_INDEX_H

#include "table/internal.h"
#include "table/pages.h"

#define TARN_INDEX_UUID_SIZE                                                                       \
    (TARN_UUID_SIZE - 1)        /* every key begins with the table's uuid as text */
#define TARN_INDEX_UNFINISHED 0 /* instead of it, while a large delta is written */
#define TARN_INDEX_LAYOUT 3     /* of the keys and values; another one's index is built anew */
#define TARN_TOUCHED_MAX 10000  /* buckets; then it is all of them */
#define TARN_TOUCHED_CHANGES_MAX                                                                   \
    20000 /* of files of a table; what comes beyond isn't known to who follows buckets: it looks */
#define TARN_INDEX_BATCH_ENTRIES 20000 /* a larger delta is written in several batches */

enum tarn_change { /* in CHANGES, in this order */
                   TARN_CHANGE_ADDED = 'a',
                   TARN_CHANGE_CHANGELOG = 'c',
                   TARN_CHANGE_REMOVED = 'r'
};

/* --- keys; `rest` is a key without the uuid --- */
/* How much of it says partition and bucket; 0: it is no key of ours. */
size_t tarn_table__bucket_size(struct tarn_slice rest);
bool tarn_table__parse_bucket(struct tarn_slice bucket_key, struct tarn_arena *arena,
                              struct tarn_slice *partition, int32_t *bucket);
/* Above every key that begins with uuid and bucket_key (empty: of the table). Appends. */
void tarn_table__range_end(const char *uuid, struct tarn_slice bucket_key, struct tarn_buf *to);
/* uuid | bucket_key | removed_by: where REMOVED of a bucket begins that a plan at removed_by - 1 sees. */
void tarn_table__removed_from(const char *uuid, struct tarn_slice bucket_key, int64_t removed_by,
                              struct tarn_buf *key);
/* uuid | snapshot | what: of CHANGES. */
void tarn_table__change_prefix(const char *uuid, int64_t snapshot_id, enum tarn_change what,
                               struct tarn_buf *key);
struct tarn_live_name { /* what follows the bucket in a LIVE key */
    int32_t level;
    int64_t made;
    struct tarn_slice name;
    uint64_t hash; /* of the identity: the key's end */
};
/* As tarn_table__live_key, where its parts are known. */
void tarn_table__live_key_in(const char *uuid, struct tarn_slice bucket_key,
                             const struct tarn_live_name *name, struct tarn_buf *key);
void tarn_table__change_key(const char *uuid, int64_t snapshot_id, enum tarn_change what,
                            const struct tarn_manifest_entry *entry, struct tarn_buf *key);
void tarn_table__removed_key(const char *uuid, const struct tarn_manifest_entry *entry,
                             int64_t removed_by, int64_t added_by, struct tarn_buf *key);
void tarn_table__name_key(const char *uuid, const struct tarn_manifest_entry *entry,
                          struct tarn_buf *key);
void tarn_table__snapshot_key(const char *uuid, int64_t id, struct tarn_buf *key);
/* --- values: added_by | packed entry --- */
void tarn_table__live_value(const struct tarn_manifest_entry *entry, int64_t added_by,
                            struct tarn_buf *value);
struct tarn_status *tarn_table__damaged_value(struct tarn_slice value);
int32_t tarn_table__peek_total_buckets(struct tarn_slice value);
bool tarn_table__split_value(struct tarn_slice value, int64_t *added_by, struct tarn_slice *packed);

/* The JSON of a snapshot that is indexed and retained. Appends. */
TARN_MUST struct tarn_status *tarn_table__indexed_snapshot(struct tarn_table *table, int64_t id,
                                                           bool *found, struct tarn_buf *json);

/* --- one delta as batches --- */
struct tarn_index_batch;
struct tarn_index_batch *tarn_table__index_batch_new(struct tarn_table *table);
void tarn_table__index_batch_free(struct tarn_index_batch *batch);
void tarn_table__index_batch_drop(struct tarn_index_batch **batch);
/* lenient: DELETEs of what isn't live are nothing; else MANIFEST_MALFORMED. */
TARN_MUST struct tarn_status *tarn_table__index_batch_entries(
    struct tarn_index_batch *batch, int64_t snapshot_id, const struct tarn_manifest_entry *entries,
    size_t count, bool lenient);
TARN_MUST struct tarn_status *tarn_table__index_batch_changelog(
    struct tarn_index_batch *batch, int64_t snapshot_id, const struct tarn_manifest_entry *entries,
    size_t count);
/* What was added of it goes again, also what was written. */
void tarn_table__index_batch_no_changelog(struct tarn_index_batch *batch, int64_t snapshot_id);
/* The snapshot's record, and the mark that the index has reached it. */
void tarn_table__index_batch_snapshot(struct tarn_index_batch *batch,
                                      const struct tarn_snapshot *snapshot, struct tarn_slice json,
                                      const struct tarn_delta *delta);
TARN_MUST struct tarn_status *tarn_table__index_batch_write(struct tarn_index_batch *batch);

/* --- sums of live files (totals.c) --- */
/* A file of the partition comes (1) or goes (-1): noted in the map, partition -> sums in the arena. */
void tarn_table__totals_note(struct tarn_map *partitions, struct tarn_arena *arena,
                             struct tarn_slice partition, const struct tarn_manifest_entry *entry,
                             int sign, int64_t added_by);
/* What was noted, into the batch that does it. snapshot_id: the index reaches it with this batch; 0: not yet. */
TARN_MUST struct tarn_status *tarn_table__totals_apply(struct tarn_table *table,
                                                       struct tarn_state_batch *batch,
                                                       const struct tarn_map *partitions,
                                                       int64_t snapshot_id);
/* Rows of all live files, those that no reader sees any more included. In the mailbox, with a whole index. */
TARN_MUST struct tarn_status *tarn_table__live_rows(struct tarn_op *op, struct tarn_table *table,
                                                    int64_t *out);
void tarn_table__totals_forget(struct tarn_table *table); /* the state doesn't have them any more */

/* --- what a snapshot is made of (stands.c) --- */
struct tarn_manifests {
    struct tarn_arena *arena;         /* NULL: not read */
    struct tarn_manifest_file *files; /* of the base list, then of the delta list */
    size_t base_count, count;
};
void tarn_table__manifests_fini(struct tarn_manifests *m);
TARN_MUST struct tarn_status *tarn_table__read_manifests(struct tarn_op *op,
                                                         struct tarn_table *table,
                                                         const struct tarn_snapshot *snapshot,
                                                         struct tarn_manifests *out);
/* Is what `next` has in its base list the files that `below` left? Reads the manifests that only one of them names. */
TARN_MUST struct tarn_status *tarn_table__stands_on(struct tarn_op *op, struct tarn_table *table,
                                                    const struct tarn_manifests *below,
                                                    const struct tarn_manifests *next, bool *out);

/* The first snapshot that is indexed; 0: none is. */
TARN_MUST struct tarn_status *tarn_table__indexed_first(struct tarn_table *table, int64_t *id);

/* All that these manifests leave live, of an index that is empty (load.c). */
TARN_MUST struct tarn_status *tarn_table__index_load(struct tarn_op *op, struct tarn_table *table,
                                                     const struct tarn_manifest_file *files,
                                                     size_t count);

#endif
