/*
 * internal - what the files of room `table` share.
 *
 * Who owns what in a tarn_table:
 *   lock        view, path, name, gone, the commit queue and its flags, the hint, looked_ms
 *   index_lock  pages; held around an index batch, and briefly while a plan notes which pages there are, so that
 *               what it sees is one moment of the index
 *   mailbox     head, attempt, and every write to the table's folder and index, but for those of a merge of
 *               manifests, whose names nobody else has
 *   sequence_lock  the blocks of sequence numbers
 *   place       held for reading by operations that go to the folder outside the mailbox (they nest), for writing
 *               while the folder moves: nobody meets half a rename
 *   pin_lock    pins
 * Order of locks: place, mailbox, index_lock, sequence_lock or pin_lock, lock.
 */
#ifndef TARN_TABLE_INTERNAL_H
#define TARN_TABLE_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

#include "format/tag.h"
#include "table/table.h"

/* A put that took longer than this proves nothing about the snapshot before it any more. */
#define TARN_CLAIM_AGE_MAX_MS 5000
/* How long one commit tries to learn what became of a put whose outcome it doesn't know. */
#define TARN_SETTLE_MS 15000
#define TARN_MANIFEST_ENTRIES_MAX 50000 /* a manifest of ours rolls over at so many entries */

/* The newest snapshot as its file has it, and the manifests that make it up. Immutable. */
struct tarn_head {
    struct tarn_arena *arena;
    int64_t id;             /* 0: no snapshot yet */
    struct tarn_slice json; /* the file's bytes */
    struct tarn_snapshot snapshot;
    struct tarn_manifest_file *manifests; /* base ++ delta, in order */
    size_t manifest_count;
    bool manifests_known;
};

struct schema_box; /* look.c */
struct view_box {
    struct tarn_table_view view; /* first: the public face */
    atomic_int ref_count;
    struct tarn_arena *arena;
    struct schema_box *schema; /* what the view's schema and options lie in */
};

struct tarn_member;                         /* of the commit queue (commit_internal.h) */
struct tarn_group;                          /* likewise */
struct tarn_pages;                          /* pages.h */
struct tarn_merge;                          /* merge_manifests.c */
struct tarn_index_cache;                    /* indexes.c */
#define TARN_BRANCH_FOLDER "branch/branch-" /* and its name */

struct tarn_sequence_cache; /* finish.c */
struct tarn_late;           /* late.c */

/* A put-if-absent whose outcome is not known: nothing else is put before it is settled (I5). */
struct tarn_attempt {
    bool open;
    struct tarn_group *group; /* NULL: none is open */
};

struct tarn_table {
    atomic_int ref_count;
    const struct tarn_table_env *env;
    char uuid[TARN_UUID_SIZE];
    char main_uuid[TARN_UUID_SIZE]; /* of the table that it is a branch of; else its own */
    char branch[TARN_BRANCH_NAME_SIZE_MAX + 1]; /* "": main */
    _Atomic int64_t created_ms;                 /* 0: not asked yet */
    atomic_bool is_compacted;                   /* here */
    struct tarn_mailbox *mailbox;

    pthread_mutex_t lock;
    /* Lent out without a lock, so those of before a move stay in `names` as long as the table. */
    char *_Atomic path, *_Atomic name;
    struct tarn_arena *names;
    size_t database_size; /* of `name`, which begins with it */
    struct view_box *view;
    enum tarn_reason gone; /* TARN_NO_REASON while it is there */
    pthread_cond_t news;   /* a request was queued, a write, put or hint is done */
    struct tarn_member *queue_first, **queue_last;
    size_t queue_count;
    size_t wanted_count;   /* so many in the queue are news to the loop */
    bool loop_runs;        /* the commit loop is in the mailbox, or posted to it */
    size_t answered_count; /* by the last snapshot, at answered_ns */
    int64_t answered_ns;
    int64_t turn_began_ms, turn_until_ms; /* of who finishes snapshots (finished.c); monotonic */
    int64_t next_turn_ms;                 /* none before */
    int64_t hint_id;                      /* the newest that LATEST should say */
    bool hint_runs;                       /* a job of the pool writes it */
    int64_t looked_ms;                    /* monotonic */
    int64_t seen_ms;           /* likewise: the folder was asked then for what the view says */
    bool index_whole;          /* no: it is being built anew, and the view is not what it has */
    struct tarn_op *expire_op; /* of the expiry that runs (expire.c); NULL: none */
    bool expire_removes;       /* it removes files just now; news */

    pthread_rwlock_t assigning; /* tarn_table_assigning */
    pthread_rwlock_t place;     /* read by whoever is in the folder, written by a move */
    pthread_mutex_t index_lock;
    pthread_mutex_t sequence_lock;
    pthread_mutex_t pin_lock; /* pins in the state */

    struct tarn_late *late; /* changed by the mailbox, under the lock */
    struct tarn_buf noted;  /* of the mailbox: the last put's note (late_notes.c) */

    int64_t
        expired_below; /* of the mailbox: no snapshot below is shown any more, whatever the folder has; 0: nothing expired here */
    bool expire_clean; /* of the expiry: nothing is left below the earliest */
    struct tarn_head *head; /* of the mailbox */
    struct tarn_attempt attempt;
    int64_t
        opened_id; /* the head at open: until the slot behind it is filled, an attempt of the life before may be */
    bool slot_filled; /* it is */
    int64_t schema_looked_ms, put_begun_ms, put_took_ms;
    int64_t own_schema_id; /* the newest one that was put here; 0: none */
    /* Schemas of these ids are known to have a column in common with the latter. */
    int64_t related_from, related_to;
    bool put_alone; /* while the last snapshot was put nobody came */
    unsigned publish_count;
    int totals_state; /* totals.c */
    bool doubt_ended; /* no receipt of what is retained is in doubt */
    struct tarn_buf forget_doubtful,
        forget_void;                       /* where forgetting goes on (receipts_horizon.c) */
    struct tarn_pages *pages;              /* of index_lock (pages.c) */
    struct tarn_merge *merge;              /* NULL: none yet; has a lock of its own */
    struct tarn_index_cache *indexes;      /* of the mailbox; NULL: empty */
    struct tarn_sequence_cache *sequences; /* of the mailbox; NULL: empty */
};

/* --- being in the folder (table.c) ---
 *   TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table); */
pthread_rwlock_t *tarn_table__enter(struct tarn_table *table);
void tarn_table__leave(pthread_rwlock_t **place);

/* Its names alone, to look into the folder of a table (branch empty) or a branch: nothing is known of it, and nothing kept. */
struct tarn_table *tarn_table__bare(const struct tarn_table_env *env, const char *path,
                                    struct tarn_slice branch, const char *name);

/* --- names (discover.c) --- */
/* Keys in the store, in the op's arena: <table>/snapshot/snapshot-7 and the like. A branch has snapshots, schemas, tags, changelogs
 * and consumers of its own, below its folder; all else it shares. */
const char *tarn_table__key(struct tarn_op *op, struct tarn_table *table, const char *format, ...)
    TARN_PRINTF(3, 4);
TARN_MUST struct tarn_status *tarn_table__check_here(struct tarn_table *table);

/* --- discovering what the folder holds (discover.c) --- */
struct tarn_range {
    int64_t earliest, latest;
}; /* 0, 0: no snapshot */
TARN_MUST struct tarn_status *tarn_table__find_range(struct tarn_op *op, struct tarn_table *table,
                                                     struct tarn_range *out);
/* The id in a hint file, or 0 where there is none that can be used: what it says never makes anything fail. */
TARN_MUST struct tarn_status *tarn_table__read_hint(struct tarn_op *op, struct tarn_table *table,
                                                    const char *name, int64_t *id);
struct tarn_named {
    struct tarn_slice name; /* what comes behind the prefix */
    int64_t time_ms;        /* of the object; 0: not known */
};
/* The objects right in a folder of the table whose names begin with `prefix`, in order. */
TARN_MUST struct tarn_status *tarn_table__list_named(struct tarn_op *op, struct tarn_table *table,
                                                     const char *folder, const char *prefix,
                                                     struct tarn_named **out, size_t *count);
/* The nearest snapshots with a smaller and with a larger id; 0: none. */
TARN_MUST struct tarn_status *tarn_table__find_neighbours(struct tarn_op *op,
                                                          struct tarn_table *table, int64_t id,
                                                          int64_t *below, int64_t *above);
/* The snapshot's bytes and decoded form; *found false where the file isn't there. */
TARN_MUST struct tarn_status *tarn_table__read_snapshot(struct tarn_op *op,
                                                        struct tarn_table *table, int64_t id,
                                                        struct tarn_arena *arena, bool *found,
                                                        struct tarn_slice *json,
                                                        struct tarn_snapshot *out);
TARN_MUST struct tarn_status *tarn_table__read_schema(struct tarn_op *op, struct tarn_table *table,
                                                      int64_t id, struct tarn_arena *arena,
                                                      bool *found, struct tarn_schema *out);
TARN_MUST struct tarn_status *tarn_table__latest_schema_id(struct tarn_op *op,
                                                           struct tarn_table *table, int64_t from,
                                                           int64_t *out);
/* A head of snapshot `id`, its manifests not read yet. */
TARN_MUST struct tarn_status *tarn_table__load_head(struct tarn_op *op, struct tarn_table *table,
                                                    int64_t id, bool *found,
                                                    struct tarn_head **out);
TARN_MUST struct tarn_status *tarn_table__head_manifests(struct tarn_op *op,
                                                         struct tarn_table *table,
                                                         struct tarn_head *head);
void tarn_head_free(struct tarn_head *head);
void tarn_head_drop(struct tarn_head **head);

/* --- reading manifests (read_manifests.c) ---
 * What is read is held against what the file that names it says of it: MANIFEST_MALFORMED where it is shorter, or other. */
enum tarn_list { TARN_LIST_BASE, TARN_LIST_DELTA, TARN_LIST_CHANGELOG };
TARN_MUST struct tarn_status *tarn_table__read_list(struct tarn_op *op, struct tarn_table *table,
                                                    const struct tarn_snapshot *snapshot,
                                                    enum tarn_list which, struct tarn_arena *arena,
                                                    struct tarn_manifest_file **out, size_t *count);
TARN_MUST struct tarn_status *tarn_table__read_manifest(
    struct tarn_op *op, struct tarn_table *table, const struct tarn_manifest_file *file,
    struct tarn_arena *arena, struct tarn_manifest_entry **out, size_t *count);
/* Some thousand at a time, for what may be large: lent for the call, and may be changed. */
typedef struct tarn_status *tarn_each_entries_fn(void *arg, struct tarn_manifest_entry *entries,
                                                 size_t count);
TARN_MUST struct tarn_status *tarn_table__walk_manifest(struct tarn_op *op,
                                                        struct tarn_table *table,
                                                        const struct tarn_manifest_file *file,
                                                        tarn_each_entries_fn *each, void *arg);
/* The same of bytes that were read before. */
TARN_MUST struct tarn_status *tarn_table__walk_bytes(struct tarn_op *op, struct tarn_table *table,
                                                     const struct tarn_manifest_file *file,
                                                     struct tarn_slice bytes,
                                                     tarn_each_entries_fn *each, void *arg);

/* --- the index in the state (index.c) --- */
void tarn_table__live_key(const char *uuid, const struct tarn_manifest_entry *entry,
                          struct tarn_buf *key);
/* uuid | tag: where the keys of a kind begin, in families that hold several. Appends. */
void tarn_table__tagged_key(const char *uuid, char tag, struct tarn_buf *key);
void tarn_table__bucket_prefix(const char *uuid, struct tarn_slice partition, const int32_t *bucket,
                               struct tarn_buf *key);
/* Brings the index to `latest`: from where it stands, or anew where that is not in the table's history. Each snapshot is
 * added only while the one below it is still what the index has: all of it is one history. SNAPSHOT_EXPIRED and the like:
 * others changed the folder meanwhile; once more, with what is there now. */
TARN_MUST struct tarn_status *tarn_table__index_catch_up(struct tarn_op *op,
                                                         struct tarn_table *table,
                                                         struct tarn_range range);
struct tarn_delta { /* what one snapshot says, in order */
    const struct tarn_manifest_entry *entries;
    size_t count;
    const struct tarn_manifest_entry *changelog; /* ADDs */
    size_t changelog_count;
    uint64_t content; /* of what was let go (receipts.c): a large one is dealt with bit by bit */
};
/* Is it the first indexed one, and another history's lies below it in the folder? */
TARN_MUST struct tarn_status *tarn_table__begins(struct tarn_op *op, struct tarn_table *table,
                                                 int64_t id, bool *out);
/* One snapshot on top of the indexed one. */
TARN_MUST struct tarn_status *tarn_table__index_add(struct tarn_op *op, struct tarn_table *table,
                                                    const struct tarn_snapshot *snapshot,
                                                    struct tarn_slice json,
                                                    const struct tarn_delta *delta);
/* Snapshots below `earliest` were expired: forgets what only they saw. */
TARN_MUST struct tarn_status *tarn_table__index_forget_below(struct tarn_op *op,
                                                             struct tarn_table *table,
                                                             int64_t earliest);
/* Removes every key of the table. */
TARN_MUST struct tarn_status *tarn_table__index_clear(struct tarn_table *table, bool receipts_too);
TARN_MUST struct tarn_status *tarn_table__indexed_id(struct tarn_table *table, int64_t *id,
                                                     uint64_t *json_hash);
struct tarn_live {
    struct tarn_manifest_entry entry;
    int64_t added_by, removed_by; /* 0: live */
};
TARN_MUST struct tarn_status *tarn_table__live_decode(struct tarn_slice value,
                                                      struct tarn_arena *arena,
                                                      struct tarn_live *out);
/* Live entries below a prefix of LIVE keys. */
TARN_MUST struct tarn_status *tarn_table__live_list(struct tarn_table *table,
                                                    struct tarn_slice prefix,
                                                    struct tarn_arena *arena,
                                                    struct tarn_live **out, size_t *count);

/* --- receipts: which identity landed where (receipts.c) --- */
#define TARN_RECEIPTS_PROPERTY "tarn.receipts" /* of a snapshot: the identities it hides */
#define TARN_COMMIT_OWN_USER "tarn"            /* whose snapshots several batches share */
struct tarn_identity {
    struct tarn_slice user;
    int64_t identifier;
    uint64_t content; /* of a batch; 0: streaming */
};
/* In the batch of a snapshot's entries. delta: what it says, for the identity of a batch; NULL: not known, and then
 * a batch that isn't named in its properties gets no receipt. */
void tarn_table__receipts_add(struct tarn_state_batch *batch, struct tarn_table *table,
                              const struct tarn_snapshot *snapshot, const struct tarn_delta *delta);
/* Snapshots with id >= from were rolled back: their receipts are void. Writes batches of its own. */
TARN_MUST struct tarn_status *tarn_table__receipts_void(struct tarn_table *table, int64_t from);
/* The last snapshot that history before and after a rewriting have in common (id 0: none), and a hash of its JSON: kept
 * while the index, which says it, is built anew. */
void tarn_table__anchor_put(struct tarn_state_batch *batch, struct tarn_table *table, int64_t id,
                            uint64_t json_hash);
TARN_MUST struct tarn_status *tarn_table__anchor(struct tarn_table *table, int64_t *id,
                                                 uint64_t *json_hash);
/* *snapshot_id 0: not landed, as far as is known. content: of a batch. */
TARN_MUST struct tarn_status *tarn_table__receipt_find(struct tarn_table *table,
                                                       struct tarn_slice user, int64_t identifier,
                                                       uint64_t content, enum tarn_commit_kind kind,
                                                       int64_t *snapshot_id);
/* The last one that landed; TARN_SNAPSHOT_NONE: none that is known. */
TARN_MUST struct tarn_status *tarn_table__last_identifier(struct tarn_table *table,
                                                          struct tarn_slice user, int64_t *out);
/* Where it had landed before a roll-back took it away; 0: it hadn't. One that has landed since is found by the above. */
TARN_MUST struct tarn_status *tarn_table__voided_find(struct tarn_table *table,
                                                      const struct tarn_identity *who,
                                                      enum tarn_commit_kind kind,
                                                      int64_t *snapshot_id, int64_t *time_ms);
/* Where it landed, where others may have rolled it back before that expired; 0: nothing of the kind. One that is known to have landed
 * is found by the above. */
TARN_MUST struct tarn_status *tarn_table__is_in_doubt(struct tarn_table *table,
                                                      const struct tarn_identity *who,
                                                      enum tarn_commit_kind kind,
                                                      int64_t *snapshot_id);
/* The content of the last batch of a user; 0: none that is known. */
TARN_MUST struct tarn_status *tarn_table__last_batch(struct tarn_table *table,
                                                     struct tarn_slice user, uint64_t *content);
/* From this snapshot on every identity is known; INT64_MAX: none is. */
TARN_MUST struct tarn_status *tarn_table__horizon(struct tarn_table *table, int64_t *out);
void tarn_table__anchor_remove(struct tarn_state_batch *batch, struct tarn_table *table);
/* Receipts from this snapshot on may be void: they are in doubt until their snapshots are indexed again, or end_doubt. */
TARN_MUST struct tarn_status *tarn_table__receipts_doubt(struct tarn_table *table, int64_t from);
/* Nothing that is retained is known from before: so are those of all that was retained at the last look; the horizon rises over
 * what no snapshot will bring back. */
TARN_MUST struct tarn_status *tarn_table__receipts_doubt_retained(struct tarn_table *table,
                                                                  struct tarn_range range);
/* The index is whole from `earliest` on: what is still in doubt there was rolled back. */
TARN_MUST struct tarn_status *tarn_table__receipts_end_doubt(struct tarn_table *table,
                                                             int64_t earliest);
/* Before the index follows the folder to `range`: the horizon rises over what can't be learned any more. */
TARN_MUST struct tarn_status *tarn_table__horizon_rise(struct tarn_table *table,
                                                       struct tarn_range range);
/* May the identity have landed below the horizon? Not if a larger one of its user lies above, since they rise. */
TARN_MUST struct tarn_status *tarn_table__may_lie_below(struct tarn_table *table,
                                                        const struct tarn_identity *who, bool *out);
/* The snapshot landed and has expired since: what is retained stands on it. content: of what it brought. */
TARN_MUST struct tarn_status *tarn_table__receipts_note(struct tarn_table *table,
                                                        const struct tarn_snapshot *snapshot,
                                                        uint64_t content);
/* Receipts of snapshots that expired, were rolled back or may have been, and are older than receipts_retain, go, some at a
 * time. */
TARN_MUST struct tarn_status *tarn_table__receipts_forget(struct tarn_table *table,
                                                          int64_t earliest);
/* What a batch is known by where its snapshot doesn't say: of what the delta names. */
uint64_t tarn_table__delta_content(const struct tarn_delta *delta);
/* Its lists are dealt with, and may go: they become empty, what they name counts. */
void tarn_table__delta_let_go(struct tarn_delta *delta);

/* --- views and the look (look.c) --- */
TARN_MUST struct tarn_status *tarn_table__publish_view(struct tarn_op *op,
                                                       struct tarn_table *table);
/* In the mailbox: the view begins with this snapshot. */
TARN_MUST struct tarn_status *tarn_table__set_earliest(struct tarn_op *op, struct tarn_table *table,
                                                       int64_t id);
/* Do the snapshot's lists still exist? */
TARN_MUST struct tarn_status *tarn_table__has_lists(struct tarn_op *op, struct tarn_table *table,
                                                    int64_t id, bool *out);
/* In the mailbox: learns what others wrote, whatever the age of the last look. */
TARN_MUST struct tarn_status *tarn_table__refresh(struct tarn_op *op, struct tarn_table *table);

/* Younger than foreign_check, and what it found is in the index. */
bool tarn_table__looked_lately(struct tarn_table *table);
/* Whatever the age of the last look, what it found isn't there any more. */
void tarn_table__look_again(struct tarn_table *table);
bool tarn_table__is_whole(struct tarn_table *table);
void tarn_table__set_whole(struct tarn_table *table, bool whole);
/* A new reference to the present view, whatever its age. */
const struct tarn_table_view *tarn_table__view_ref(struct tarn_table *table);
/* In the mailbox: has another writer made a schema? Then the view shows it. */
TARN_MUST struct tarn_status *tarn_table__look_schema(struct tarn_op *op, struct tarn_table *table);
/* Those above `id` were removed: it is the newest, unless another came meanwhile. */
TARN_MUST struct tarn_status *tarn_table__look_schema_from(struct tarn_op *op,
                                                           struct tarn_table *table, int64_t id);
/* In the mailbox: waits until no hint is being written any more. */
void tarn_table__hint_wait(struct tarn_table *table);
/* In the mailbox: settles an attempt whose outcome isn't known (I5). STORE_UNAVAILABLE: it still isn't. */
TARN_MUST struct tarn_status *tarn_table__settle(struct tarn_op *op, struct tarn_table *table);
/* In the mailbox: puts an empty snapshot, so that the slot is filled by something. */
TARN_MUST struct tarn_status *tarn_table__put_empty(struct tarn_table *table);
void tarn_table__attempt_free(struct tarn_table *table);

/* --- puts that may come late (late.c) --- */
/* Is the snapshot one that isn't part of history any more, though it is there? */
TARN_MUST struct tarn_status *tarn_table__is_late(struct tarn_op *op, struct tarn_table *table,
                                                  int64_t id, struct tarn_slice json, bool *out);
/* In the mailbox: removes such. */
TARN_MUST struct tarn_status *tarn_table__late_take_back(struct tarn_op *op,
                                                         struct tarn_table *table);
/* At open: those of the life before. */
TARN_MUST struct tarn_status *tarn_table__late_restore(struct tarn_table *table);
void tarn_table__late_free(struct tarn_table *table);

/* --- conflicts (conflict.c) --- */
/* What may become (part of) the snapshot after the head: one member of a group, judged by itself. */
struct tarn_candidate {
    enum tarn_commit_kind kind;
    struct tarn_slice user;
    struct tarn_manifest_entry *entries;
    size_t count; /* may shrink: commit.discard-duplicate-files drops ADDs of live files */
    size_t
        known_count; /* so many in front are DELETEs that resolve_overwrite found on this head: they are live */
    const struct tarn_index_file *index;
    size_t index_count;
    int64_t base_snapshot_id;              /* of the request, or TARN_SNAPSHOT_NONE */
    struct tarn_slice base_snapshot_proof; /* likewise; may be empty */
    bool assigned;                         /* likewise */
};
/* In the mailbox, where head is what is indexed (NULL: no snapshot yet counts too, id 0). All of docs/format.md,
 * "Conflict checks", in time that goes with the candidate and the levels it writes to: COMMIT_CONFLICT,
 * BUCKET_MISMATCH, INDEX_STALE, INVALID_ARGUMENT. */
TARN_MUST struct tarn_status *tarn_table__check_conflicts(struct tarn_op *op,
                                                          struct tarn_table *table,
                                                          const struct tarn_head *head,
                                                          struct tarn_candidate *candidate);

/* --- writing manifests (manifests.c) --- */
/* Objects of the manifest folder in the making: encoded one by one, then put all at once. Keys and bodies lie in the
 * op's arena. */
struct tarn_objects {
    struct tarn_new_object *list;
    size_t count, capacity;
};
/* Removes what a dead attempt put. */
void tarn_table__remove_objects(struct tarn_op *op, struct tarn_table *table,
                                const struct tarn_objects *objects);
/* A new object named "<kind>-<uuid>-0" with these bytes (copied). */
struct tarn_slice tarn_table__add_object(struct tarn_op *op, struct tarn_table *table,
                                         const char *kind, struct tarn_slice bytes,
                                         struct tarn_objects *objects);
TARN_MUST struct tarn_status *tarn_table__encode_manifests(
    struct tarn_op *op, struct tarn_table *table, const struct tarn_manifest_entry *entries,
    size_t count, struct tarn_manifest_file **files, size_t *file_count,
    struct tarn_objects *objects);
TARN_MUST struct tarn_status *tarn_table__encode_list(struct tarn_op *op, struct tarn_table *table,
                                                      const struct tarn_manifest_file *files,
                                                      size_t count, struct tarn_slice *name,
                                                      int64_t *size, struct tarn_objects *objects);

/* A snapshot of the table's history, from the index; *found false: it expired. */
TARN_MUST struct tarn_status *tarn_table__past(struct tarn_table *table, int64_t id,
                                               struct tarn_arena *arena, bool *found,
                                               struct tarn_snapshot *out);
/* Two of these files whose key ranges meet, *one NULL where there are none. All of one bucket of a table with a
 * primary key. */
TARN_MUST struct tarn_status *tarn_table__find_overlap(
    struct tarn_arena *arena, const struct tarn_schema *schema,
    const struct tarn_manifest_entry *const *files, size_t count,
    const struct tarn_manifest_entry **one, const struct tarn_manifest_entry **other);

/* Has the table been replaced between them? Then they have no column in common: false. */
bool tarn_table__schemas_related(const struct tarn_schema *a, const struct tarn_schema *b);
/* In the mailbox, after a roll-back: to before the table was replaced, it takes the schema along, as under the present one nothing could read what
 * is there (schema_back.c). */
TARN_MUST struct tarn_status *tarn_table__follow_schema(struct tarn_op *op,
                                                        struct tarn_table *table);

/* --- rewriting history (truncate.c), in the mailbox --- */
TARN_MUST struct tarn_status *tarn_table__put_hint(struct tarn_op *op, struct tarn_table *table,
                                                   const char *name, int64_t id);
/* Before the snapshots above `to` go (0: all): readers believe LATEST where no snapshot follows the one that it names. So it names `to` if the next
 * one is there, and else is *removed until they are gone: without it readers list. */
TARN_MUST struct tarn_status *tarn_table__hint_back(struct tarn_op *op, struct tarn_table *table,
                                                    int64_t to, bool *removed);
/* Names of the tags of snapshots above `id`. */
TARN_MUST struct tarn_status *tarn_table__tags_above(struct tarn_op *op, struct tarn_table *table,
                                                     int64_t id, const struct tarn_slice **out,
                                                     size_t *count);
/* Snapshots, changelogs and these tags above `to` go, the newest snapshot first. from: the newest that is known. SNAPSHOT_TAKEN where
 * another writer is met. */
TARN_MUST struct tarn_status *tarn_table__truncate(struct tarn_op *op, struct tarn_table *table,
                                                   int64_t from, int64_t to,
                                                   const struct tarn_slice *tags, size_t tag_count);
/* Whatever became of it is what the table is now: learns it. Consumes the status, and gives that of both. */
TARN_MUST struct tarn_status *tarn_table__rewritten(struct tarn_op *op, struct tarn_table *table,
                                                    struct tarn_status *consumed);

/* --- expiry, for who rewrites the folder or moves it (expire.c) --- */
/* In the mailbox: a removal that is under way ends, and none begins before the mailbox' job is done. */
void tarn_table__expire_wait(struct tarn_table *table);
/* Any thread: a running expiry gives up soon. */
void tarn_table__expire_cancel(struct tarn_table *table);
/* Wall clock: until then there may be pins that nobody knows of; INT64_MIN: there are none. */
TARN_MUST struct tarn_status *tarn_table__pins_lost_until(struct tarn_table *table,
                                                          int64_t *until_ms);
/* Not from the table's mailbox: none runs from here to release. The op isn't used for anything else meanwhile. */
void tarn_table__expire_hold(struct tarn_op *op, struct tarn_table *table);
void tarn_table__expire_release(struct tarn_table *table);
/* As tarn_table_consumers, but one that can't be read is an error. */
struct tarn_consumer;
TARN_MUST struct tarn_status *tarn_table__consumers_strict(struct tarn_op *op,
                                                           struct tarn_table *table,
                                                           struct tarn_consumer **out,
                                                           size_t *count);

/* --- versions (version.c, tag.c) --- */
/* As tarn_table_snapshot, of a view that is there already. */
TARN_MUST struct tarn_status *tarn_table__find_version(struct tarn_op *op, struct tarn_table *table,
                                                       const struct tarn_table_view *view,
                                                       struct tarn_version version, bool *found,
                                                       struct tarn_snapshot *out);
/* *json: its file. TAG_NOT_FOUND. */
TARN_MUST struct tarn_status *tarn_table__read_tag(struct tarn_op *op, struct tarn_table *table,
                                                   struct tarn_slice name, struct tarn_slice *json,
                                                   struct tarn_tag *out);

/* --- what only the committer knows (overwrite.c, finish.c, sequences.c) --- */
struct tarn_resolved { /* an overwrite as one snapshot has it; lies in the op's arena */
    struct tarn_commit_part
        part; /* DELETEs of what is overwritten, then the request's own; no changelog: it is
                                   * discarded, as Paimon does */
    size_t known_count; /* DELETEs in front of part.entries; see tarn_candidate */
    bool
        nothing; /* a dynamic overwrite without files touches nothing: no snapshot is made for it */
};
/* What the commit (overwrite is not NONE) says on this head: made anew for each. Files of buckets below 0 stay
 * unless the table is postponed (docs/format.md, "Overwrite"). INVALID_ARGUMENT: a new file lies outside of
 * the partitions that are overwritten. */
TARN_MUST struct tarn_status *tarn_table__resolve_overwrite(struct tarn_op *op,
                                                            struct tarn_table *table,
                                                            const struct tarn_head *head,
                                                            const struct tarn_commit *commit,
                                                            struct tarn_resolved *out);
/* Stamps entries with what depends on the snapshot: row ids, sequence numbers. `entries` is the attempt's own copy
 * (of all members) and may be put into another order; snapshot has its id, kind, properties and the next_row_id of
 * its predecessor, which is advanced (properties may be replaced by a longer list in the op's arena); `last` is
 * the predecessor (NULL: none), for properties that are carried on. Where snapshot.id becomes another, the entries
 * are copied and stamped anew. */
TARN_MUST struct tarn_status *tarn_table__stamp(struct tarn_op *op, struct tarn_table *table,
                                                const struct tarn_snapshot *last,
                                                struct tarn_snapshot *snapshot,
                                                struct tarn_manifest_entry *entries, size_t count);
/* New level-0 files of primary-key buckets that don't start above the largest sequence number live there. With
 * tarn.sequence-overlap = refuse: SEQUENCE_OVERLAP where there are any. In the mailbox, on the indexed head, for
 * one member. highest: what earlier members of the same group brought to each bucket; this one's is added
 * (tarn_map_new per group; values lie in the op's arena). NULL: it is alone. */
TARN_MUST struct tarn_status *tarn_table__check_sequences(struct tarn_op *op,
                                                          struct tarn_table *table,
                                                          struct tarn_map *highest,
                                                          const struct tarn_manifest_entry *entries,
                                                          size_t count, int64_t *overlap_count);
/* In the mailbox, while table->head is still the predecessor of the snapshot with these entries, which was made:
 * keeps what check_sequences knows of buckets true. Where it isn't called, it reads them again. */
void tarn_table__note_sequences(struct tarn_table *table, struct tarn_slice json,
                                const struct tarn_manifest_entry *entries, size_t count);
void tarn_table__sequences_end(struct tarn_table *table); /* frees the cache */

/* --- index files (indexes.c) --- */
/* The index files of a manifest, as it lies in the store; in the arena. */
TARN_MUST struct tarn_status *tarn_table__read_index_manifest(
    struct tarn_op *op, struct tarn_table *table, struct tarn_slice name, struct tarn_arena *arena,
    struct tarn_index_file **out, size_t *count);
/* The index files of a manifest (absent name: none), from the table's cache; in the mailbox. Borrowed until the next
 * call. */
TARN_MUST struct tarn_status *tarn_table__index_files(struct tarn_op *op, struct tarn_table *table,
                                                      struct tarn_slice manifest,
                                                      const struct tarn_index_file **out,
                                                      size_t *count);
/* Are the index files of the candidate made from what is there now? INDEX_STALE; COMMIT_CONFLICT where deletion
 * vectors and data files don't go together. Part of check_conflicts. */
TARN_MUST struct tarn_status *tarn_table__check_indexes(struct tarn_op *op,
                                                        struct tarn_table *table,
                                                        const struct tarn_head *head,
                                                        const struct tarn_candidate *candidate);
/* The index manifest on top of `previous` (absent: none): a new object in `objects`, or previous itself where
 * nothing changes; absent where nothing is left. In the mailbox. The changes of all members at once. */
TARN_MUST struct tarn_status *tarn_table__combine_indexes(
    struct tarn_op *op, struct tarn_table *table, struct tarn_slice previous,
    const struct tarn_index_file *changes, size_t count, struct tarn_objects *objects,
    struct tarn_slice *name);
void tarn_table__index_files_end(struct tarn_table *table); /* frees the cache */
/* A copy in the arena, of all it points to. */
void tarn_table__keep_index_file(struct tarn_arena *arena, const struct tarn_index_file *in,
                                 struct tarn_index_file *out);

/* --- manifests are merged beside the commits (merge_manifests.c) ---
 * A merge reads manifests of a head and writes what they become; a later commit puts its result in their place. All
 * but the merging itself is of the mailbox.
 *
 *   idle -> [consider] -> running -> ready -> [apply] -> used -> [settle: landed] -> idle
 *                            |         ^                   |
 *                            +-> idle  +-------------------+ [settle: not landed]
 */
/* After a snapshot was published: starts one in the pool where thresholds say so and none is under way. Removes
 * what a finished one wrote where the head no longer begins with what it merged. */
void tarn_table__merge_consider(struct tarn_table *table);
/* Puts a finished merge's result in the place of what it merged, where `files` still begins with all of that (changed
 * in place; never grows; names and statistics are copied into the op's arena). *used: it was; the attempt's snapshot will
 * name its files. At most one attempt at a time gets it. */
void tarn_table__merge_apply(struct tarn_op *op, struct tarn_table *table,
                             struct tarn_manifest_file *files, size_t *count, bool *used);
/* The snapshot that used it was published (landed), or surely wasn't and never will be: then it waits for the next.
 * Not called while its outcome is unknown. */
void tarn_table__merge_settle(struct tarn_op *op, struct tarn_table *table, bool landed);
/* Ends a running one and removes what nobody used, unless an attempt is open. Before the table is retired; none
 * starts afterwards. */
void tarn_table__merge_end(struct tarn_table *table);
void tarn_table__merge_free(struct tarn_table *table); /* ends it too; before the table is freed */
void tarn_table__merge_wait(
    struct tarn_table *table); /* until the running one is over, if there is one */

#endif
