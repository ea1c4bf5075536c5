/*
 * table - one table's history: its snapshots, the commit that adds to them, and the plan that reads one.
 *
 * Truth    the table's folder in the store. What this room keeps in `state` (the file index: live and
 *          removed entries by bucket, snapshots, receipts, sequence blocks) is rebuilt from it when absent
 *          and caught up from the last indexed snapshot at open. README.md has the life of one commit and
 *          the numbered invariants.
 * Threads  any; each table has one mailbox, commits run there one after the other. Views and plans are
 *          immutable and counted.
 * Errors   SNAPSHOT_TAKEN, COMMIT_CONFLICT, BUCKET_MISMATCH, OUTCOME_UNKNOWN, COMMIT_IDENTIFIER_STALE,
 *          FILE_MISSING, SNAPSHOT_NOT_FOUND, SNAPSHOT_EXPIRED, NO_SNAPSHOT_AT, *_MALFORMED; TABLE_NOT_FOUND
 *          when the folder is gone.
 */
#ifndef TARN_TABLE_H
#define TARN_TABLE_H

#include "base/base.h"
#include "exec/exec.h"
#include "format/format.h"
#include "state/state.h"
#include "store/store.h"

#define TARN_COMMIT_ENTRIES_MAX 1000000
#define TARN_BRANCH_NAME_SIZE_MAX 100

struct tarn_table;

struct tarn_table_env { /* shared by all tables; outlives them */
    struct tarn_store *store;
    struct tarn_state *state;
    struct tarn_exec *exec;
    _Atomic(int64_t) foreign_check_ms; /* may change while tables are open */
    int64_t receipts_retain_ms;        /* of identities whose snapshots expired */
    int64_t min_interval_ms;           /* between two group snapshots of a table */
    int commit_retries;
    /* Called after each commit and adoption, in the table's mailbox; must not wait. May be NULL. */
    void (*committed)(void *arg, struct tarn_table *table, int64_t snapshot_id);
    void *committed_arg;
    /* Called after a database or table was made, found, changed, moved or dropped, maybe with a lock held; must not wait. May be NULL. */
    void (*catalog_changed)(void *arg);
    void *catalog_changed_arg;
};

/* Opens the table in folder `path`; catches the index up or rebuilds it. */
TARN_MUST struct tarn_status *tarn_table_open(struct tarn_op *op, const struct tarn_table_env *env,
                                              const char *path, const char *uuid, const char *name,
                                              struct tarn_table **out);
/* A branch of it (refs.h): a table of its own to all who use it, with an uuid of its own, made of the table's and the branch's name. */
TARN_MUST struct tarn_status *tarn_table_open_branch(struct tarn_op *op,
                                                     const struct tarn_table_env *env,
                                                     const char *path, const char *main_uuid,
                                                     struct tarn_slice branch, const char *name,
                                                     struct tarn_table **out);
/* What the state has of it. For branches that aren't open. */
TARN_MUST struct tarn_status *tarn_table_forget_branch(const struct tarn_table_env *env,
                                                       const char *main_uuid,
                                                       struct tarn_slice branch);
const char *tarn_table_branch(const struct tarn_table *table);    /* "": it is the main branch */
const char *tarn_table_main_uuid(const struct tarn_table *table); /* its own, but for a branch */
/* Its folder was made just now, by the caller: no attempt of this process' life before can be under way there. */
void tarn_table_is_new(struct tarn_table *table);
struct tarn_table *tarn_table_ref(struct tarn_table *table);
void tarn_table_unref(struct tarn_table *table);
void tarn_table_drop_ref(struct tarn_table **table);
const char *tarn_table_path(const struct tarn_table *table);
const char *tarn_table_uuid(const struct tarn_table *table);
const char *tarn_table_name(const struct tarn_table *table); /* "db.t", for messages */
/* Is its compaction the daemon's, or that of its writers? Then only who names the table compacts it here. Said by who keeps tables. */
void tarn_table_set_compacted(struct tarn_table *table, bool is_compacted);
bool tarn_table_is_compacted(const struct tarn_table *table); /* until it is said: yes */
/* Its two names, in the op's arena; a branch's second one is "t$branch_x". Until they are set, `name` of open is divided at its first
 * dot, which may be one of the database's. */
void tarn_table_names(struct tarn_op *op, const struct tarn_table *table,
                      struct tarn_slice *database, struct tarn_slice *name);
void tarn_table_set_names(struct tarn_table *table, struct tarn_slice database,
                          struct tarn_slice name);
struct tarn_store *tarn_table_store(const struct tarn_table *table); /* borrowed */
const struct tarn_table_env *tarn_table_env(const struct tarn_table *table);
/* The table was dropped or renamed away: every later call fails with TABLE_NOT_FOUND / TABLE_REPLACED.
 * forget: its keys in the state are removed too. */
TARN_MUST struct tarn_status *tarn_table_retire(struct tarn_op *op, struct tarn_table *table,
                                                bool forget);
/* Moves the folder to `path`; its uuid and index stay. */
TARN_MUST struct tarn_status *tarn_table_move(struct tarn_op *op, struct tarn_table *table,
                                              const char *path);

/* --- what the table is now --- */
struct tarn_table_view {       /* immutable, counted */
    struct tarn_schema schema; /* the current one */
    struct tarn_options options;
    bool has_snapshot;
    struct tarn_snapshot snapshot; /* the latest */
    int64_t earliest_id;           /* of retained snapshots; 0: none */
};
/* Looks for newer snapshots and schemas of other writers if the last look is older than foreign_check. */
TARN_MUST struct tarn_status *tarn_table_look(struct tarn_op *op, struct tarn_table *table,
                                              const struct tarn_table_view **out);
/* Looks in any case: all that others committed before the call is known then. For those who begin to write. */
TARN_MUST struct tarn_status *tarn_table_look_now(struct tarn_op *op, struct tarn_table *table,
                                                  const struct tarn_table_view **out);
/* For those who would rather have an old answer than none: where the store is away (or op->stale_ms says that it was
 * found to be), the last view there was, and op->stale_ms how old it is. */
TARN_MUST struct tarn_status *tarn_table_look_or_last(struct tarn_op *op, struct tarn_table *table,
                                                      const struct tarn_table_view **out);
/* The last view there was, whatever its age: asks nobody. A new reference. */
const struct tarn_table_view *tarn_table_last_view(struct tarn_table *table);
int64_t tarn_table_age_ms(struct tarn_table *table); /* since the folder was asked for it */
/* What `print` makes of the view's schema. It is made once and kept with the schema, whose views all lend the same text: there is
 * one `print`. Lives as long as the view. */
struct tarn_slice tarn_table_view_print(const struct tarn_table_view *view,
                                        void (*print)(const struct tarn_schema *schema,
                                                      struct tarn_buf *out));
void tarn_table_view_unref(const struct tarn_table_view *view);
void tarn_table_view_drop(const struct tarn_table_view **view);
/* Any schema of the table; lies in the op's arena. */
TARN_MUST struct tarn_status *tarn_table_schema(struct tarn_op *op, struct tarn_table *table,
                                                int64_t id, const struct tarn_schema **out);
TARN_MUST struct tarn_status *tarn_table_schemas(struct tarn_op *op, struct tarn_table *table,
                                                 const struct tarn_schema ***out, size_t *count);
/* When its first schema was made; that of the present one where the first is gone. Asked of the store once. */
TARN_MUST struct tarn_status *tarn_table_created(struct tarn_op *op, struct tarn_table *table,
                                                 const struct tarn_table_view *view,
                                                 int64_t *time_ms);
/* Publishes schema `next` (id = current + 1) by put-if-absent, in order with commits. had_snapshot: as it was judged; rules are
 * stricter for a table with one. SCHEMA_CONFLICT: judge again. OUTCOME_UNKNOWN: it may be there. */
TARN_MUST struct tarn_status *tarn_table_put_schema(struct tarn_op *op, struct tarn_table *table,
                                                    const struct tarn_schema *next,
                                                    bool had_snapshot);
/* Likewise, but only while the table has no live file: else *empty is false, and nothing happens. */
TARN_MUST struct tarn_status *tarn_table_put_schema_if_empty(struct tarn_op *op,
                                                             struct tarn_table *table,
                                                             const struct tarn_schema *next,
                                                             bool *empty);
/* Schemas above `to` are removed, the newest first; *from: what was the newest. INVALID_ARGUMENT: there is no schema `to`; SCHEMA_IN_USE: a
 * snapshot, tag, changelog or file is of a later one. Cut off, the same call goes on. */
TARN_MUST struct tarn_status *tarn_table_roll_back_schema(struct tarn_op *op,
                                                          struct tarn_table *table, int64_t to,
                                                          int64_t *from);

/* --- versions --- */
struct tarn_version { /* TARN_VERSION_LATEST; at most one member says something */
    int64_t snapshot_id;
    int64_t time_ms;       /* the last snapshot committed at or before it */
    int64_t watermark;     /* the first snapshot whose watermark is at least this */
    struct tarn_slice tag; /* absent: none */
};
#define TARN_VERSION_NONE .time_ms = TARN_SNAPSHOT_NONE, .watermark = TARN_SNAPSHOT_NONE
#define TARN_VERSION_ID(id) ((struct tarn_version){.snapshot_id = (id), TARN_VERSION_NONE})
#define TARN_VERSION_LATEST TARN_VERSION_ID(TARN_SNAPSHOT_NONE)
#define TARN_VERSION_TIME(at)                                                                      \
    ((struct tarn_version){                                                                        \
        .snapshot_id = TARN_SNAPSHOT_NONE, .time_ms = (at), .watermark = TARN_SNAPSHOT_NONE})
TARN_MUST struct tarn_status *tarn_table_snapshot(struct tarn_op *op, struct tarn_table *table,
                                                  struct tarn_version version,
                                                  bool *found, /* false: no snapshot yet */
                                                  struct tarn_snapshot *out);
/* Retained ones with id >= from, oldest first, at most `max`. */
TARN_MUST struct tarn_status *tarn_table_snapshots(struct tarn_op *op, struct tarn_table *table,
                                                   int64_t from, size_t max,
                                                   struct tarn_snapshot **out, size_t *count);
/* What a retained snapshot added (ADD) and removed (DELETE): without statistics, from the index. Lies in the op's arena. */
TARN_MUST struct tarn_status *tarn_table_delta(struct tarn_op *op, struct tarn_table *table,
                                               int64_t snapshot_id,
                                               struct tarn_manifest_entry **out, size_t *count);
TARN_MUST struct tarn_status *tarn_table_manifests(struct tarn_op *op, struct tarn_table *table,
                                                   const struct tarn_snapshot *snapshot,
                                                   struct tarn_manifest_file **base,
                                                   size_t *base_count,
                                                   struct tarn_manifest_file **delta,
                                                   size_t *delta_count);

/* --- sums over live files --- */
struct tarn_totals {
    int64_t file_count, record_count, size;
    int64_t
        last_file_local_ms; /* when the newest there ever was was made, by the wall clock of its writer's zone; TARN_FILE_NONE */
    int32_t total_buckets;  /* of a partition: as its newest file says */
    int64_t
        since_id; /* of a partition: it has had files since this snapshot; 0: since it isn't known when */
};
struct tarn_partition_totals {
    struct tarn_slice partition;
    struct tarn_totals totals;
};
/* Of the latest snapshot, which is *view's (owned). The first call walks all live files, later ones don't, nor does a commit. */
TARN_MUST struct tarn_status *tarn_table_totals(struct tarn_op *op, struct tarn_table *table,
                                                const struct tarn_table_view **view,
                                                struct tarn_totals *out);
/* Of each partition that has live files, in no order that means something. Where commits flow, those of this moment. */
TARN_MUST struct tarn_status *tarn_table_partition_totals(struct tarn_op *op,
                                                          struct tarn_table *table,
                                                          const struct tarn_table_view **view,
                                                          struct tarn_partition_totals **out,
                                                          size_t *count);

/* --- commit --- */
enum tarn_overwrite {
    TARN_OVERWRITE_NONE,       /* what is deleted is named */
    TARN_OVERWRITE_TABLE,      /* everything */
    TARN_OVERWRITE_PARTITIONS, /* those that match one of `partitions` */
    TARN_OVERWRITE_DYNAMIC     /* those that the new files are of */
};
struct tarn_partition_spec {         /* one value a partition column; absent: any */
    const struct tarn_slice *values; /* as text, in the schema's order of partition columns */
    const bool *is_null;
    const bool *is_set;
};
struct tarn_commit_part {                      /* one snapshot's worth */
    const struct tarn_manifest_entry *entries; /* ADDs and DELETEs, in order */
    size_t count;
    const struct tarn_manifest_entry *changelog; /* ADDs */
    size_t changelog_count;
    const struct tarn_index_file *index;
    size_t index_count;
};
struct tarn_finished; /* a snapshot that its writer has finished (finished.c) */
struct tarn_commit {
    struct tarn_slice user;
    int64_t
        identifier; /* TARN_COMMIT_IDENTIFIER_BATCH: a batch, whose identity is (user, what it brings) */
    int64_t watermark; /* TARN_SNAPSHOT_NONE: none */
    const struct tarn_pair *properties;
    size_t property_count;
    struct tarn_slice operation; /* "WRITE", "TRUNCATE", …; absent: not said */
    enum tarn_commit_kind kind;  /* of the append part: APPEND, OVERWRITE or ANALYZE */
    struct tarn_commit_part append, compact;
    enum tarn_overwrite
        overwrite; /* not NONE: kind is OVERWRITE; the DELETEs are found at commit */
    const struct tarn_partition_spec *partitions;
    size_t partition_count;
    struct tarn_slice statistics; /* ANALYZE: name of the file in statistics/ */
    int64_t
        base_snapshot_id; /* what the request was made from, 0: nothing; TARN_SNAPSHOT_NONE: not said. Decides INDEX_STALE */
    struct tarn_slice
        base_snapshot_proof; /* tarn_snapshot_is; empty: not said, whatever has that id now */
    bool
        assigned; /* buckets of keys were looked up in the hash indexes of the base snapshot: INDEX_STALE unless
                              * all of the partitions' are as they were then */
    bool force_empty; /* a snapshot even if there is nothing in it */
    bool check_files; /* look that every ADD exists in the store first */
    const struct tarn_finished
        *finished; /* of tarn_table_read_finished; NULL: the snapshot is made here */
};
static inline size_t tarn_commit_entry_count(const struct tarn_commit *c) /* of all kinds */
{
    return c->append.count + c->append.changelog_count + c->append.index_count + c->compact.count +
           c->compact.changelog_count + c->compact.index_count;
}
/* Of its append part: `kind`, but an APPEND that takes something away is an OVERWRITE to those who read streams. */
enum tarn_commit_kind tarn_commit_append_kind(const struct tarn_commit *commit);
struct tarn_commit_result {
    int64_t append_snapshot_id,
        compact_snapshot_id; /* 0: there was no such part, or nothing in it */
    bool repeated;           /* it had landed before */
    int64_t
        sequence_overlap_count; /* new files that don't start above their bucket's largest number */
};
#define TARN_COMMIT_QUEUE_MAX                                                                      \
    320 /* requests that wait for one table; more are BUSY, so that other tables get calls */
/* Returns when the snapshot is durable, or refused, or unknown. Steps 1-7 of docs/architecture.md. BUSY,
 * COMMIT_CONFLICT, BUCKET_MISMATCH, INDEX_STALE, COMMIT_IDENTIFIER_STALE, SEQUENCE_OVERLAP, OUTCOME_UNKNOWN. */
TARN_MUST struct tarn_status *tarn_table_commit(struct tarn_op *op, struct tarn_table *table,
                                                const struct tarn_commit *commit,
                                                struct tarn_commit_result *out);
/* The same for callers that don't wait: `done` is told its status (owned) once. op, commit and *out must live, and
 * the table be referred to, until then. It comes from within the call, or in the table's mailbox, where it must be
 * quick: it posts what isn't. */
typedef void (*tarn_commit_done_fn)(void *arg, struct tarn_status *status);
void tarn_table_commit_start(struct tarn_op *op, struct tarn_table *table,
                             const struct tarn_commit *commit, struct tarn_commit_result *out,
                             tarn_commit_done_fn done, void *arg);

/* A commit of a snapshot that is finished: `json` will be its file, byte for byte, or nothing. Reads what its lists name: they are the
 * append part, whatever its kind. base_uuid: of the snapshot that it was made upon; absent: not said. When it is committed and
 * doesn't stand on the latest snapshot it is SNAPSHOT_TAKEN, and its writer makes another one. INVALID_ARGUMENT: it can never be
 * committed. Lies in the op's arena. */
TARN_MUST struct tarn_status *tarn_table_read_finished(struct tarn_op *op, struct tarn_table *table,
                                                       struct tarn_slice json,
                                                       struct tarn_slice base_uuid,
                                                       struct tarn_commit *out);

/* Who commits what was assigned by hash indexes holds it for reading; for writing who assigns anew because of others: its
 * commit then meets only those of other programs. Taken with tarn_exec_read_lock and its like. */
pthread_rwlock_t *tarn_table_assigning(struct tarn_table *table);

/* Would the append part be refused on what the table is now? Nothing is put, and nothing remembered: by the time it is
 * committed it may be otherwise. OK: not, or it has landed. */
TARN_MUST struct tarn_status *tarn_table_check_commit(struct tarn_op *op, struct tarn_table *table,
                                                      const struct tarn_commit *commit);

enum tarn_commit_state {
    TARN_COMMIT_LANDED,
    TARN_COMMIT_REFUSED,
    TARN_COMMIT_OPEN, /* queued, or its outcome not settled yet */
    TARN_COMMIT_ROLLED_BACK,
    TARN_COMMIT_NOT_KNOWN,    /* any more: it may have landed below the horizon */
    TARN_COMMIT_NOT_COMMITTED /* and it can't land any more unless it is sent again */
};
struct tarn_commit_fate {
    enum tarn_commit_state state;
    /* LANDED, ROLLED_BACK; 0: no such part, or not landed. Where only the compact part is known, an append part landed before it,
     * below the horizon; where the compact part alone isn't, the state is NOT_KNOWN, and the append part is told. */
    int64_t append_snapshot_id, compact_snapshot_id;
    enum tarn_reason reason;     /* REFUSED */
    const char *message;         /* REFUSED: why; in the op's arena */
    int64_t horizon_snapshot_id; /* NOT_KNOWN: identities are known from this snapshot on */
};
/* What became of (user, identifier)? Settles an attempt whose outcome is unknown first, so it may write.
 * since: the writer began at this snapshot, and can't have landed before; TARN_SNAPSHOT_NONE: not said.
 * content: of a batch identity, tarn_commit_content; 0: any that this user committed last. */
TARN_MUST struct tarn_status *tarn_table_find_commit(struct tarn_op *op, struct tarn_table *table,
                                                     struct tarn_slice user, int64_t identifier,
                                                     uint64_t content, int64_t since,
                                                     struct tarn_commit_fate *out);
/* The append part's snapshot, as far as is known now; 0: none. Settles nothing, unlike tarn_table_find_commit. */
TARN_MUST struct tarn_status *tarn_table_find_landed(struct tarn_table *table,
                                                     struct tarn_slice user, int64_t identifier,
                                                     int64_t *snapshot_id);
/* Which batch it is: a hash of the names of what it brings and removes. Never 0. */
uint64_t tarn_commit_content(const struct tarn_commit *commit);
/* Paimon's rule: keep[i] is false for every identifier up to the last one that the user landed. */
TARN_MUST struct tarn_status *tarn_table_filter_committed(struct tarn_op *op,
                                                          struct tarn_table *table,
                                                          struct tarn_slice user,
                                                          const int64_t *identifiers, size_t count,
                                                          bool *keep, int64_t *last_identifier);
/* The bucket count of what is live in a partition, whatever the option says by now; 0: nothing is, or it doesn't say. */
TARN_MUST struct tarn_status *tarn_table_bucket_count(struct tarn_table *table,
                                                      struct tarn_slice partition, int32_t *out);
/* `count` sequence numbers of a bucket, above everything live or handed out before. */
TARN_MUST struct tarn_status *tarn_table_reserve_sequences(struct tarn_op *op,
                                                           struct tarn_table *table,
                                                           struct tarn_slice partition,
                                                           int32_t bucket, int64_t count,
                                                           int64_t *first);

/* --- plan ---
 * Which files hold the rows of a version, or of what changed between two, that a query may want. What is left out is
 * proven to hold none; the reader filters exactly. */
enum tarn_changes {
    TARN_CHANGES_NONE,      /* the version as a whole */
    TARN_CHANGES_AUTO,      /* CHANGELOG where the table writes one, else DELTA */
    TARN_CHANGES_DELTA,     /* files that APPEND snapshots added */
    TARN_CHANGES_CHANGELOG, /* changelog files, but for those of OVERWRITE snapshots */
    TARN_CHANGES_DIFF       /* what only the end has, against what only the beginning had */
};
struct tarn_plan_file {
    struct tarn_manifest_entry entry; /* kind ADD; with statistics only where asked for */
    int64_t added_by;                 /* snapshot id; 0: before what is retained */
};
struct tarn_plan_bytes { /* the same as fields of message DataFile of proto/tarn/v1/table.proto */
    struct tarn_slice file, stats, vector; /* the latter two: empty where there are none */
};
struct tarn_split {
    struct tarn_slice partition;
    int32_t bucket, total_buckets;
    bool raw;
    bool is_changelog;            /* files hold changelog records */
    struct tarn_plan_file *files; /* sorted as a reader wants them */
    size_t file_count;
    struct tarn_plan_file *before_files; /* of a DIFF: what only the beginning had */
    size_t before_count;
};
struct tarn_plan_request {
    struct tarn_version version;
    struct tarn_slice where;   /* SQL text; empty: all */
    bool with_stats;           /* keep statistics in the result */
    bool as_bytes;             /* files as `bytes` of a cursor's batches, for who passes them on */
    bool no_splits;            /* files only, as one list: `tarn files` */
    enum tarn_changes changes; /* NONE, or what changed after changes_from up to `version` */
    int64_t changes_from;      /* snapshot id, exclusive; at least earliest - 1 (DIFF: earliest) */
    bool whole_buckets;   /* of changes: one split a bucket, as streaming readers want them; not
                                * where the table has no buckets */
    bool with_overwrites; /* of changes: DELTA takes what OVERWRITE snapshots added, too */
    bool
        of_itself; /* of changes: what the snapshot says that it changed, also where it doesn't stand on the one below */
    bool with_level_0; /* also where the table's readers see only what was compacted */
    bool has_limit;
    int64_t limit; /* no more files than surely hold so many rows */
};
struct tarn_plan { /* everything lies in the op's arena */
    bool has_snapshot;
    struct tarn_snapshot snapshot;
    const struct tarn_schema
        *schema; /* of the snapshot's time where a version was asked, else current */
    const struct tarn_options *options;
    struct tarn_predicate where; /* bound to `schema`; node_count 0: none */
    struct tarn_plan_file *files;
    size_t file_count;
    struct tarn_split *splits;
    size_t split_count;
    int64_t files_seen, pruned_by_partition, pruned_by_bucket, pruned_by_key, pruned_by_stats,
        pruned_by_index, pruned_by_limit;
    int64_t files_left, splits_left, rows; /* what the plan holds; rows: unmerged */
};
/* The whole plan at once. For what may be large, the cursor below. SNAPSHOT_EXPIRED names the earliest one. */
TARN_MUST struct tarn_status *tarn_table_plan(struct tarn_op *op, struct tarn_table *table,
                                              const struct tarn_plan_request *request,
                                              struct tarn_plan *out);

/* A plan bit by bit, bucket after bucket. It holds nothing back: between two calls no lock is held, and a commit or
 * expiry goes on. What expires, or is rolled back, while it is read makes the next call fail: SNAPSHOT_EXPIRED.
 * One thread at a time; the op that began it outlives it (its arena has the head). */
struct tarn_plan_cursor;
TARN_MUST struct tarn_status *tarn_table_plan_begin(struct tarn_op *op, struct tarn_table *table,
                                                    const struct tarn_plan_request *request,
                                                    struct tarn_plan_cursor **out);
/* Snapshot, schema, options, where; and the counters, which grow. Its files and splits are empty. */
const struct tarn_plan *tarn_plan_cursor_head(const struct tarn_plan_cursor *cursor);
struct tarn_plan_batch {             /* valid until the next call */
    const struct tarn_split *splits; /* or, with no_splits, files */
    size_t split_count;
    const struct tarn_plan_file *files;
    const struct tarn_plan_bytes *bytes; /* as_bytes: instead of them, in order of the splits */
    size_t file_count;                   /* in the splits, or of `files` */
};
/* About TARN_PLAN_BATCH_FILES files, more only where one split has more; file_count 0: that was all. */
#define TARN_PLAN_BATCH_FILES 4000
TARN_MUST struct tarn_status *tarn_plan_cursor_next(struct tarn_plan_cursor *cursor,
                                                    struct tarn_plan_batch *out);
void tarn_plan_cursor_free(struct tarn_plan_cursor *cursor);
void tarn_plan_cursor_drop(struct tarn_plan_cursor **cursor);

/* --- pins: snapshots that readers keep from expiry. They survive a restart, not the loss of the state. --- */
#define TARN_PINS_MAX 1000                           /* of a table; more: BUSY */
#define TARN_PIN_KEEP_MAX_MS (7 * INT64_C(86400000)) /* of one call; more: INVALID_ARGUMENT */
#define TARN_PIN_ID_SIZE 37
struct tarn_pin {
    char id[TARN_PIN_ID_SIZE];
    int64_t snapshot_id;
    int64_t expires_ms; /* wall clock */
};
/* A state that there was is gone, and pins with it: nothing expires before the longest one would have run out. */
TARN_MUST struct tarn_status *tarn_table_pins_lost(struct tarn_state *state);
TARN_MUST struct tarn_status *tarn_table_pin(struct tarn_op *op, struct tarn_table *table,
                                             int64_t snapshot_id, int64_t keep_ms,
                                             struct tarn_pin *out);
/* keep_ms 0: lets it go. PIN_NOT_FOUND: it has run out. */
TARN_MUST struct tarn_status *tarn_table_renew_pin(struct tarn_op *op, struct tarn_table *table,
                                                   struct tarn_slice id, int64_t keep_ms,
                                                   struct tarn_pin *out);
/* Expiry must leave this snapshot and all after it; INT64_MAX: nothing is pinned. Forgets pins that ran out. */
TARN_MUST struct tarn_status *tarn_table_keep_from(struct tarn_op *op, struct tarn_table *table,
                                                   int64_t *snapshot_id);

/* --- what commits touched: for whoever follows buckets --- */
struct tarn_file_change { /* what compaction minds of a data file that came or went */
    bool added;           /* else it went */
    int32_t level;        /* where it lies, or lay */
    uint64_t name_hash;   /* xxhash of its name */
    int64_t size, row_count, delete_row_count /* or NONE */, min_sequence, max_sequence,
        creation_time_ms; /* or NONE */
    int64_t stamp;        /* as tarn_table_change_stamp; grows with each batch of changes */
};
struct tarn_file_change tarn_file_change_of(const struct tarn_data_file *file, bool added);
struct tarn_touched_bucket {
    struct tarn_slice partition;
    int32_t bucket;
    bool unknown;                           /* not all that changed is known: look at it */
    const struct tarn_file_change *changes; /* in the order in which they came */
    size_t change_count;
};
struct tarn_touched {
    bool all; /* it isn't known which: look at every one */
    const struct tarn_touched_bucket *buckets;
    size_t count;
};
/* The buckets that commits and adoptions have touched since the last call, each once, and what came and went there: of memory alone,
 * nothing is read. The first call says all. Lies in the op's arena. For one follower. */
void tarn_table_take_touched(struct tarn_op *op, struct tarn_table *table,
                             struct tarn_touched *out);
void tarn_table_touch_all(struct tarn_table *table); /* the follower missed some */
void tarn_table_touch(struct tarn_table *table, struct tarn_slice partition, int32_t bucket);
/* Of the latest change. A picture that was read between two calls holds the changes up to the first one's stamp, and none above the second's. */
int64_t tarn_table_change_stamp(struct tarn_table *table);
/* Every bucket with live files, in order of partition and bucket. */
TARN_MUST struct tarn_status *tarn_table_bucket_list(struct tarn_op *op, struct tarn_table *table,
                                                     struct tarn_touched_bucket **out,
                                                     size_t *count);

/* --- the picture of a bucket: for compaction --- */
struct tarn_bucket_files {
    struct tarn_slice partition;
    int32_t bucket, total_buckets;
    struct tarn_manifest_entry *files; /* live, without statistics */
    size_t file_count;
};
/* Live buckets of the latest snapshot, in order of partition and bucket; partition absent: all.
 * Lies in the op's arena. */
TARN_MUST struct tarn_status *tarn_table_buckets(struct tarn_op *op, struct tarn_table *table,
                                                 struct tarn_slice partition,
                                                 struct tarn_bucket_files **out, size_t *count);
/* One bucket without statistics; of its files those smaller than size_below, the first `most` that are met. */
TARN_MUST struct tarn_status *tarn_table_bucket_picture(struct tarn_op *op,
                                                        struct tarn_table *table,
                                                        struct tarn_slice partition, int32_t bucket,
                                                        int64_t size_below, size_t most,
                                                        struct tarn_bucket_files *out);
/* Removes what lies in the bucket's folder with `part` in its name, drafts of objects too: for files of an attempt that is never committed. None that
 * the latest snapshot has goes. */
TARN_MUST struct tarn_status *tarn_table_remove_unused(struct tarn_op *op, struct tarn_table *table,
                                                       struct tarn_slice partition, int32_t bucket,
                                                       const char *part, size_t *count);
/* All index files with deletion vectors of a snapshot; in the op's arena. */
TARN_MUST struct tarn_status *tarn_table_vector_files(struct tarn_op *op, struct tarn_table *table,
                                                      const struct tarn_snapshot *snapshot,
                                                      struct tarn_index_file **out, size_t *count);
/* The files get their deletion vectors, as the view's snapshot has them; *indexes: the bucket's index files that hold some. In the op's
 * arena. What the files and the vectors are of need not be one snapshot: a commit made from both is refused where that matters. */
TARN_MUST struct tarn_status *tarn_table_bucket_vectors(
    struct tarn_op *op, struct tarn_table *table, const struct tarn_table_view *view,
    struct tarn_bucket_files *bucket, struct tarn_index_file **indexes, size_t *count);
/* The files of one bucket with their statistics, as a rewrite or upgrade must carry them. */
TARN_MUST struct tarn_status *tarn_table_bucket(struct tarn_op *op, struct tarn_table *table,
                                                struct tarn_slice partition, int32_t bucket,
                                                struct tarn_bucket_files *out);

#endif
