/*
 * service - one function per operation, the same for every door.
 *
 * Shape    a door turns bytes into the structs below and back; every rule (names, paging, defaults,
 *          who may) is here, so that no door knows one that another doesn't. Each operation asks
 *          tarn_access_check once, before it does anything.
 * Memory   what operations answer with lies in the op's arena, unless a comment says "owned".
 * Threads  any that may wait.
 * Errors   those of the rooms below; INVALID_ARGUMENT names the member of the request.
 */
#ifndef TARN_SERVICE_H
#define TARN_SERVICE_H

#include <stdatomic.h>

#include "access/access.h"
#include "hms/hms.h"
#include "maintain/maintain.h"
#include "table/inspect.h"

#define TARN_PAGE_SIZE 100      /* of lists, where the caller names none */
#define TARN_PAGE_SIZE_MAX 1000 /* more is cut to this */
#define TARN_POLL_WAIT_MAX_MS 30000
#define TARN_ANSWERS_MAX 10000 /* remembered answers; the oldest are forgotten first */
#define TARN_ANSWERS_BYTES_MAX (16 << 20)
#define TARN_ANSWER_RETAIN_MS 3600000

struct tarn_answers;
struct tarn_intents;
struct tarn_subscriptions; /* service/subscribe.h */

/* All members are set before the first operation, except the atomic ones. Nothing is owned. */
struct tarn_service {
    struct tarn_catalog *catalog;
    struct tarn_maintain *maintain;
    struct tarn_access *access;
    struct tarn_exec *exec;
    struct tarn_store *store;
    struct tarn_answers *answers;
    struct tarn_intents *intents;             /* NULL: no commits to several tables */
    struct tarn_subscriptions *subscriptions; /* NULL: nobody can subscribe */
    struct tarn_hms *hms;                     /* NULL: no mirror */
    struct tarn_state *state;                 /* NULL: nothing is said about it */
    const char *warehouse_name;
    int64_t started_ms, lease_ms;
    bool wants_worker; /* not ready before one has registered */
    _Atomic(const char *) grpc_address, http_address;
    _Atomic(struct tarn_supervisor *) supervisor; /* NULL: no local workers */
    atomic_bool draining;
};

/* Sets TARN_M_MEMORY, of the whole process; for who is about to read the metrics. */
void tarn_service_measure_memory(struct tarn_service *service);

/* --- requests that are sent again: the answer of the first, whatever happened since ---
 *
 * Key: principal, method and request id. The same id with other bytes is INVALID_ARGUMENT. A second
 * one that comes while the first still runs waits for it; when the first fails, the second is
 * carried out, since failures are not remembered. In memory: a restart forgets. */
struct tarn_answers *tarn_answers_new(void);
void tarn_answers_free(struct tarn_answers *answers);
struct
    tarn_answer; /* the right to carry out and then give the answer; one of the two below ends it */
/* *ticket NULL: it was carried out before, *answer is in the op's arena. */
TARN_MUST struct tarn_status *tarn_answers_begin(struct tarn_op *op, struct tarn_answers *answers,
                                                 const char *method, struct tarn_slice request_id,
                                                 struct tarn_slice request,
                                                 struct tarn_answer **ticket,
                                                 struct tarn_slice *answer);
void tarn_answers_keep(struct tarn_answer *consumed, struct tarn_slice answer);
void tarn_answers_forget(struct tarn_answer *consumed); /* it failed; NULL is fine */

/* --- what requests have in common --- */
struct tarn_table_ref {
    struct tarn_slice database, table, uuid; /* names, or a uuid, or both */
};
struct tarn_partition_value { /* as text */
    struct tarn_slice column, value;
    bool is_null;
};
struct tarn_page {
    int64_t size; /* 0: TARN_PAGE_SIZE */
    struct tarn_slice token;
    /* Of names, as SQL LIKE has it, but only how they begin: "ab%"; '\\' takes what follows as it is, '_' too is only
     * itself. Without a '%' it is the whole name; empty: all names. */
    struct tarn_slice pattern;
};

/* --- databases --- */
TARN_MUST struct tarn_status *tarn_service_create_database(struct tarn_op *op,
                                                           struct tarn_service *service,
                                                           const struct tarn_database_info *info,
                                                           bool ignore_if_exists,
                                                           struct tarn_database_info *out);
TARN_MUST struct tarn_status *tarn_service_get_database(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        struct tarn_slice name,
                                                        struct tarn_database_info *out);
TARN_MUST struct tarn_status *tarn_service_list_databases(
    struct tarn_op *op, struct tarn_service *service, struct tarn_page page, bool names_only,
    struct tarn_database_info **out, size_t *count, const char **next_token /* "": no more */);
TARN_MUST struct tarn_status *tarn_service_alter_database(
    struct tarn_op *op, struct tarn_service *service, struct tarn_slice name,
    const struct tarn_pair *set, size_t set_count, const struct tarn_slice *remove,
    size_t remove_count, struct tarn_database_info *out);
TARN_MUST struct tarn_status *tarn_service_drop_database(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_slice name, bool cascade,
                                                         bool ignore_if_missing,
                                                         int64_t *tables_dropped);

/* --- tables --- */
struct tarn_table_facts {
    struct tarn_slice database, name;
    const char *uuid;
    const char *main_uuid;     /* of a branch: its table's; else the same */
    const char *uri;           /* of its folder */
    bool is_external;          /* it lies outside of the warehouse */
    struct tarn_schema schema; /* of a list: the id only */
    const struct tarn_table_view
        *view;                      /* what the schema lies in, held by the op; NULL: of a list */
    bool is_entry;                  /* of another kind than Paimon's tables: without a view */
    int64_t created_ms, updated_ms; /* by its first and its present schema; 0: of a list */
    int64_t snapshot_id;            /* 0: none yet */
    int64_t record_count;
    struct tarn_slice refuse_write;   /* not empty: why Tarn doesn't write it */
    bool is_compacted;                /* by the daemon; else by its writers */
    const struct tarn_pair *defaults; /* chosen for the creator */
    size_t default_count;
};
/* Columns come as `fields`, as SQL text, or with keys and options of another table or schema file:
 * exactly one of them. Options, keys and comment given beside replace those taken over. */
struct tarn_table_request {
    struct tarn_slice database, name;
    const struct tarn_field *fields;
    const char *const
        *field_types; /* SQL text of each of `fields`, whose type is not set; NULL: it is */
    size_t field_count;
    bool keep_ids; /* those of `fields`, where they can be */
    bool as_given; /* no bucket is chosen for the creator */
    struct tarn_slice columns_sql;
    const struct tarn_table_ref *like; /* NULL: none */
    struct tarn_slice schema_json;
    const struct tarn_slice *partition_keys, *primary_keys;
    size_t partition_key_count, primary_key_count;
    const struct tarn_pair *options;
    size_t option_count;
    struct tarn_slice comment;
    bool ignore_if_exists;
};
TARN_MUST struct tarn_status *tarn_service_create_table(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        const struct tarn_table_request *request,
                                                        struct tarn_table_facts *out);
TARN_MUST struct tarn_status *tarn_service_get_table(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     struct tarn_table_ref ref,
                                                     struct tarn_table_facts *out);
/* Which tables a list is about. By name; a page's token is the name of its last one, "database.table" where it is of all
 * databases. */
struct tarn_table_query {
    struct tarn_slice database;         /* empty: of all those that match the pattern */
    struct tarn_slice database_pattern; /* as page.pattern */
    struct tarn_slice type;             /* what option `type` says; empty: any */
    struct tarn_page page;
};
TARN_MUST struct tarn_status *tarn_service_find_tables(struct tarn_op *op,
                                                       struct tarn_service *service,
                                                       const struct tarn_table_query *query,
                                                       struct tarn_table_info **out, size_t *count,
                                                       const char **next_token /* "": no more */);
TARN_MUST struct tarn_status *tarn_service_list_tables(
    struct tarn_op *op, struct tarn_service *service, const struct tarn_table_query *query,
    bool with_schema, struct tarn_table_facts **out, size_t *count, const char **next_token);
/* Errors as in format/evolve.h. */
TARN_MUST struct tarn_status *tarn_service_alter_table(struct tarn_op *op,
                                                       struct tarn_service *service,
                                                       struct tarn_table_ref ref,
                                                       const struct tarn_schema_change *changes,
                                                       size_t count, struct tarn_table_facts *out);
/* As tarn_catalog_register_table. */
TARN_MUST struct tarn_status *tarn_service_register_table(
    struct tarn_op *op, struct tarn_service *service, struct tarn_slice database,
    struct tarn_slice name, struct tarn_slice path, struct tarn_table_facts *out);
/* `request` as of a new table; as tarn_catalog_replace_table. */
TARN_MUST struct tarn_status *tarn_service_replace_table(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_table_ref ref,
                                                         const struct tarn_table_request *request,
                                                         struct tarn_table_facts *out);
TARN_MUST struct tarn_status *tarn_service_rename_table(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_slice to_database, struct tarn_slice to_table, struct tarn_table_facts *out);
TARN_MUST struct tarn_status *tarn_service_drop_table(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      struct tarn_table_ref ref,
                                                      bool ignore_if_missing);

/* --- a table's history --- */
TARN_MUST struct tarn_status *tarn_service_list_snapshots(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_page page, struct tarn_snapshot **out, size_t *count, const char **next_token);
/* The latest snapshot's own text. *found false: there is none yet. */
TARN_MUST struct tarn_status *tarn_service_latest_snapshot(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref, bool *found,
    struct tarn_slice *json, struct tarn_totals *totals, int64_t *last_file_ms /* 0: none */);
/* By the name that Paimon's clients give a version: EARLIEST, LATEST, a number, else a tag. Its text, without what a tag adds to
 * it. *found false: the table has none yet. SNAPSHOT_NOT_FOUND, SNAPSHOT_EXPIRED, TAG_NOT_FOUND. */
TARN_MUST struct tarn_status *tarn_service_find_snapshot(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_table_ref ref,
                                                         struct tarn_slice version, bool *found,
                                                         struct tarn_slice *json);
TARN_MUST struct tarn_status *tarn_service_list_schemas(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        struct tarn_table_ref ref,
                                                        const struct tarn_schema ***out,
                                                        size_t *count);
struct tarn_manifest_facts {
    const char *name, *list; /* "base" or "delta" */
    int64_t size, added_count, deleted_count, schema_id;
    const char *min_partition, *max_partition; /* as text */
};
TARN_MUST struct tarn_status *tarn_service_list_manifests(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_version version, int64_t *snapshot_id /* 0: none */,
    struct tarn_manifest_facts **out, size_t *count);
struct tarn_option_facts {
    const char *key, *value, *default_value, *effect;
    bool stored;
};
TARN_MUST struct tarn_status *tarn_service_list_options(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        struct tarn_table_ref ref,
                                                        struct tarn_option_facts **out,
                                                        size_t *count);

/* --- what a version consists of --- */
/* A plan bit by bit; the op that began it outlives it. pin_ms: the snapshot is kept from expiry for so long; 0: no. */
struct tarn_plan_stream;
TARN_MUST struct tarn_status *tarn_service_plan_begin(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    const struct tarn_plan_request *request, int64_t pin_ms, struct tarn_plan_stream **out);
/* file_count 0: that was all. Valid until the next call. */
TARN_MUST struct tarn_status *tarn_plan_stream_next(struct tarn_plan_stream *stream,
                                                    struct tarn_plan_batch *out);
const struct tarn_plan *tarn_plan_stream_head(const struct tarn_plan_stream *stream);
const struct tarn_pin *tarn_plan_stream_pin(const struct tarn_plan_stream *stream); /* or NULL */
int64_t tarn_plan_stream_micros(const struct tarn_plan_stream *stream); /* since it began */
/* The folder of a bucket, relative to the table; valid until another bucket is asked for. */
TARN_MUST struct tarn_status *tarn_plan_stream_path(struct tarn_plan_stream *stream,
                                                    struct tarn_slice partition, int32_t bucket,
                                                    struct tarn_slice *out);
void tarn_plan_stream_free(struct tarn_plan_stream *stream);
void tarn_plan_stream_drop(struct tarn_plan_stream **stream);
TARN_MUST struct tarn_status *tarn_service_renew_pin(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     struct tarn_table_ref ref,
                                                     struct tarn_slice id, int64_t keep_ms,
                                                     struct tarn_pin *out);
struct tarn_file_facts {
    const struct tarn_plan_file *file;
    const char *partition, *min_key, *max_key; /* as text */
    const char *path;                          /* relative to the table */
};
/* Files of a version, bit by bit: tarn_plan_stream_next's batches (a request with no_splits and statistics) as people
 * read them. The facts lie in `op`, which may be one of this batch alone. */
TARN_MUST struct tarn_status *tarn_service_files_next(struct tarn_op *op,
                                                      struct tarn_plan_stream *stream,
                                                      struct tarn_file_facts **out, size_t *count);
struct tarn_group_facts { /* of a partition, or of one bucket of it */
    const char *partition;
    const struct tarn_partition_value *values;
    size_t value_count;
    int32_t bucket;
    int64_t record_count, file_count, size, last_file_ms;
    int64_t delete_row_count; /* of a bucket, as the next two */
    int32_t run_count, level_count;
    int32_t
        total_buckets; /* of a partition: as its newest file says; 0: it has none, or they have no fixed number */
    int64_t created_ms,
        done_ms; /* of a partition of the latest version, as in tarn_partition_facts */
};
/* At a version that isn't the latest they are summed up file by file. */
TARN_MUST struct tarn_status *tarn_service_list_partition_groups(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_version version, struct tarn_group_facts **out, size_t *count);
TARN_MUST struct tarn_status *tarn_service_list_buckets(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_version version, struct tarn_group_facts **out, size_t *count);

struct tarn_partition_match { /* columns that it doesn't name: any value */
    const struct tarn_partition_value *values;
    size_t value_count;
};
struct tarn_partition_name {
    struct tarn_slice text;       /* dt=2026-01-31/hour=3: as folders are named, but not escaped */
    const struct tarn_pair *spec; /* its parts; a null is the table's partition.default-name */
    size_t spec_count;
};
/* A partition as catalogs list it. */
struct tarn_partition_facts {
    struct tarn_partition_name name;
    struct tarn_slice path; /* of its folder, as such: escaped, a slash at its end */
    struct tarn_slice row;  /* as in manifests */
    struct tarn_totals totals;
    int64_t last_file_ms;
    int64_t created_ms; /* somebody made it without files; 0: nobody did */
    int64_t done_ms;    /* 0: nobody has marked it as done */
};
/* By name, of the latest snapshot; page.pattern and the token are about names. */
TARN_MUST struct tarn_status *tarn_service_list_partitions(struct tarn_op *op,
                                                           struct tarn_service *service,
                                                           struct tarn_table_ref ref,
                                                           struct tarn_page page,
                                                           struct tarn_partition_facts **out,
                                                           size_t *count, const char **next_token);
#define TARN_PARTITIONS_ASKED_MAX 1000 /* at once */
/* Those of them that are there. */
TARN_MUST struct tarn_status *tarn_service_find_partitions(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    const struct tarn_partition_match *specs, size_t spec_count, struct tarn_partition_facts **out,
    size_t *count);

/* --- changing partitions --- */
#define TARN_PARTITIONS_CHANGED_MAX 1000 /* specs at once */
struct tarn_partition_request {
    struct tarn_table_ref ref;
    const struct tarn_partition_match
        *specs; /* to mark, drop: also of many, by some of their columns */
    size_t spec_count;
    bool
        lenient; /* what is there already, or isn't there, is no error: it is answered in `others` */
};
struct tarn_partition_answer {
    struct tarn_partition_name *changed, *others;
    size_t changed_count, other_count;
    int64_t snapshot_id; /* that dropped them; 0: none of them had files */
};
/* Partitions without files, which are listed until they are dropped. PARTITION_EXISTS: nothing is made. */
TARN_MUST struct tarn_status *tarn_service_create_partitions(
    struct tarn_op *op, struct tarn_service *service, const struct tarn_partition_request *request,
    struct tarn_partition_answer *out);
/* As done, or not: whoever waits for all rows of a partition asks that. Rows that come later change nothing of it; it goes with the
 * partition. PARTITION_NOT_FOUND: nothing is marked. */
TARN_MUST struct tarn_status *tarn_service_mark_partitions(
    struct tarn_op *op, struct tarn_service *service, const struct tarn_partition_request *request,
    bool done, struct tarn_partition_answer *out);
/* With all their rows, in one commit, and with what is noted of them. PARTITION_NOT_FOUND: nothing is dropped. */
TARN_MUST struct tarn_status *tarn_service_drop_partitions(
    struct tarn_op *op, struct tarn_service *service, const struct tarn_partition_request *request,
    struct tarn_partition_answer *out);

/* --- commit: entries of outside, checked here as if an enemy had made them --- */
struct tarn_commit_request {
    struct tarn_table_ref ref;
    struct tarn_commit commit; /* but for `kind` and `partitions`, which follow from the rest */
    const struct tarn_partition_match *matches; /* of TARN_OVERWRITE_PARTITIONS */
    size_t match_count;
    const struct tarn_slice *messages; /* Paimon's serialized ones, in place of the two parts */
    size_t message_count;
    int32_t message_version;
};
/* A snapshot that its writer has finished, lists and all, as clients of Paimon's REST catalog do. Its totals aren't asked for: they are
 * the index's. *landed false: it doesn't stand on the latest snapshot, nothing was put, and its writer makes another one. */
struct tarn_snapshot_request {
    struct tarn_table_ref ref;
    struct tarn_slice json;      /* of the snapshot: will be its file, byte for byte */
    struct tarn_slice base_uuid; /* of the one that it was made upon; absent: not said */
};
TARN_MUST struct tarn_status *tarn_service_commit_snapshot(
    struct tarn_op *op, struct tarn_service *service, const struct tarn_snapshot_request *request,
    bool *landed);
#define TARN_COMMIT_TABLES_MAX 64 /* in one multi-table commit */
/* Holds no thread while the commit is on its way: `done` is told its status (owned) once, on a thread of the pool, maybe
 * before this returns. op, request and *out must live until then. */
void tarn_service_commit(struct tarn_op *op, struct tarn_service *service,
                         struct tarn_commit_request *request, struct tarn_commit_result *out,
                         struct tarn_backlog *backlog, tarn_commit_done_fn done, void *arg);
/* All of them, or none; one a table, appends only. OUTCOME_UNKNOWN: it may happen yet, and will be finished where it
 * has begun. Refused by one table after others landed: an error that says so. */
TARN_MUST struct tarn_status *tarn_service_commit_tables(
    struct tarn_op *op, struct tarn_service *service, struct tarn_commit_request *requests,
    size_t count, struct tarn_commit_result *results, struct tarn_backlog *backlogs /* or NULL */);
struct tarn_intents *tarn_intents_new(struct tarn_service *service);
/* Before the first request: those that a crash interrupted are known again, and finished in the background. */
TARN_MUST struct tarn_status *tarn_service_recover(struct tarn_op *op,
                                                   struct tarn_service *service);
void tarn_intents_free(struct tarn_intents *intents); /* after the last request */
TARN_MUST struct tarn_status *tarn_service_get_commit(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      struct tarn_table_ref ref,
                                                      struct tarn_slice user, int64_t identifier,
                                                      int64_t since, struct tarn_commit_fate *out);
TARN_MUST struct tarn_status *tarn_service_filter_committed(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_slice user, const int64_t *identifiers, size_t count, bool *keep,
    int64_t *last_identifier);

/* --- rows in and out --- */
struct tarn_table_description { /* all a worker needs to know of a table */
    const char *store_uri, *path, *uuid, *name;
    struct tarn_slice *schemas; /* JSON */
    size_t schema_count;
    int64_t schema_id; /* to read or write with */
};
enum tarn_load_mode {
    TARN_LOAD_AUTO,
    TARN_LOAD_APPEND,
    TARN_LOAD_UPSERT,
    TARN_LOAD_OVERWRITE,
    TARN_LOAD_DELETE,
    TARN_LOAD_MODE_COUNT
};
struct tarn_scan_split {
    struct tarn_slice partition;
    int32_t bucket;
    bool raw;
    struct tarn_slice *files; /* packed entries */
    size_t file_count;
    bool differs; /* of changes: between these two states of the bucket */
    struct tarn_slice *before_files;
    size_t before_count;
};
struct tarn_scan {
    int64_t snapshot_id; /* 0: the table has none */
    bool changes;        /* rows with their kinds */
    struct tarn_table_description description;
    struct tarn_scan_split *splits;
    size_t split_count;
    const char *worker_id, *worker_address;
};

struct tarn_ingest {
    struct tarn_table *table;           /* owned */
    const struct tarn_table_view *view; /* owned: as it was when the load began */
    enum tarn_load_mode mode;           /* settled: APPEND, UPSERT or DELETE */
    enum tarn_overwrite overwrite;      /* what the commit removes */
    struct tarn_slice user;
    int64_t identifier;
    int64_t repeated_snapshot_id; /* > 0: it had landed before, and what follows isn't set */
    /* Dynamic buckets: the snapshot by whose hash indexes rows are given theirs. */
    bool is_assigned;
    bool is_alone;            /* other loads of ours can't commit meanwhile */
    int again_count;          /* so often it was told again */
    bool ask_bucket_counts;   /* partitions may have other ones than the table */
    int64_t base_snapshot_id; /* 0: none */
    struct tarn_slice base_proof, index_manifest;
    struct tarn_scan known; /* splits only: all of the table, where keys cross partitions */
    struct tarn_table_description description;
    const char *worker_id, *worker_address;
};
struct tarn_written {                 /* what the worker answered */
    const struct tarn_slice *entries; /* packed */
    size_t count;
    const struct tarn_slice *changelog; /* likewise: files that are committed with them */
    size_t changelog_count;
    struct tarn_slice indexes; /* an index manifest; empty: no index files */
};
/* identifier TARN_SNAPSHOT_NONE: a batch. After success, tarn_service_ingest_end. */
TARN_MUST struct tarn_status *tarn_service_ingest_begin(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    enum tarn_load_mode mode, struct tarn_slice user, int64_t identifier, struct tarn_ingest *out);
/* On an error the files are gone, unless it is OUTCOME_UNKNOWN. *again: nothing was committed because the buckets were assigned
 * by an index that is no longer the table's, and the files are there: a worker is to write their rows again, by what the ingest says
 * now, then tarn_service_ingest_discard takes the old ones away and the new ones are committed. */
TARN_MUST struct tarn_status *tarn_service_ingest_commit(
    struct tarn_op *op, struct tarn_service *service, struct tarn_ingest *ingest,
    const struct tarn_written *written, int64_t *snapshot_id /* 0: no files */, bool *repeated,
    bool *again, struct tarn_backlog *backlog);
void tarn_service_ingest_discard(struct tarn_service *service, const struct tarn_ingest *ingest,
                                 const struct tarn_written *written);
void tarn_service_ingest_end(struct tarn_service *service, struct tarn_ingest *ingest,
                             bool worker_failed);

TARN_MUST struct tarn_status *tarn_service_scan_begin(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_version version, struct tarn_slice where, struct tarn_scan *out);
/* A delete by predicate in an append table: a worker marks rows, the daemon commits the index files that it wrote. */
struct tarn_delete {
    struct tarn_table *table;           /* a ref */
    const struct tarn_table_view *view; /* a ref */
    struct tarn_scan scan;     /* of the files that may hold such rows; no splits: there are none */
    struct tarn_slice indexes; /* an index manifest of all deletion vectors; empty: none */
    struct tarn_slice user, base_proof;
    int64_t base_id;
};
TARN_MUST struct tarn_status *tarn_service_delete_begin(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_slice where, struct tarn_slice user, struct tarn_delete *out);
/* COMMIT_CONFLICT, INDEX_STALE: something came in between; begun anew, it sees that. What isn't committed is removed. */
struct tarn_index_names;
TARN_MUST struct tarn_status *tarn_service_delete_commit(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         const struct tarn_delete *deleting,
                                                         const struct tarn_index_names *indexes,
                                                         int64_t *snapshot_id);
void tarn_service_delete_end(struct tarn_service *service, struct tarn_delete *deleting,
                             bool worker_failed);
/* A worker for a stream that needs no table. */
TARN_MUST struct tarn_status *tarn_service_infer_begin(struct tarn_op *op,
                                                       struct tarn_service *service,
                                                       const char **worker_id,
                                                       const char **worker_address);
void tarn_service_stream_end(struct tarn_service *service, const char *worker_id,
                             bool worker_failed);
/* What the daemon shows to a worker. */
const char *tarn_service_worker_secret(const struct tarn_service *service);

/* --- maintenance --- */
struct tarn_compact_request {
    struct tarn_table_ref table;
    bool full, wait, dry_run;
    const struct tarn_partition_value *partition;
    size_t partition_count;
};
struct tarn_compact_progress {
    int64_t total, done, failed, files_before, files_after, bytes_rewritten, snapshot_id;
    const struct tarn_job_info *picks; /* of the first message */
    size_t pick_count;
    const char *failure; /* the first one, or NULL */
};
typedef struct tarn_status *(*tarn_compact_fn)(void *arg, struct tarn_op *op,
                                               const struct tarn_compact_progress *progress);
/* Calls `tell` at least once; files_after is counted for the last one. */
TARN_MUST struct tarn_status *tarn_service_compact(struct tarn_op *op, struct tarn_service *service,
                                                   const struct tarn_compact_request *request,
                                                   tarn_compact_fn tell, void *arg);
struct tarn_rescale_request {
    struct tarn_table_ref table;
    int32_t bucket_count;
    bool wait, dry_run;
    const struct tarn_partition_value *partition;
    size_t partition_count;
};
/* As tarn_service_compact, once the table's option says so. */
TARN_MUST struct tarn_status *tarn_service_rescale(struct tarn_op *op, struct tarn_service *service,
                                                   const struct tarn_rescale_request *request,
                                                   tarn_compact_fn tell, void *arg);
TARN_MUST struct tarn_status *tarn_service_cancel_job(struct tarn_op *op,
                                                      struct tarn_service *service, int64_t id);
struct tarn_expire_order {
    struct tarn_table_ref table;
    int64_t keep_last, older_than_ms; /* or TARN_EXPIRE_OPTION */
    bool dry_run;
};
TARN_MUST struct tarn_status *tarn_service_expire(struct tarn_op *op, struct tarn_service *service,
                                                  const struct tarn_expire_order *order,
                                                  struct tarn_expiry *out);
TARN_MUST struct tarn_status *tarn_service_list_jobs(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     const struct tarn_table_ref *ref /* or NULL */,
                                                     bool ended, bool explain,
                                                     struct tarn_job_info **out, size_t *count);
/* bucket_size: as tarn_maintain_advise. */
TARN_MUST struct tarn_status *tarn_service_advise(struct tarn_op *op, struct tarn_service *service,
                                                  struct tarn_table_ref ref, int64_t bucket_size,
                                                  struct tarn_advice *out);
/* Of the bucket that is furthest behind. */
TARN_MUST struct tarn_status *tarn_service_backlog(struct tarn_op *op, struct tarn_service *service,
                                                   struct tarn_table_ref ref,
                                                   struct tarn_backlog *out);

/* --- workers --- */
TARN_MUST struct tarn_status *tarn_service_register(struct tarn_op *op,
                                                    struct tarn_service *service,
                                                    struct tarn_worker_info *info,
                                                    const char **worker_id, int64_t *lease_ms);
struct tarn_work {
    int64_t id, token, lease_ms;
    struct tarn_table_description description;
    struct tarn_slice partition;
    int32_t bucket, output_level;
    bool drop_delete, rescale, postponed;
    int32_t bucket_count;
    struct tarn_slice *files;                  /* packed */
    const struct tarn_manifest_entry *entries; /* the same */
    size_t file_count;
    int32_t top_level;
    struct tarn_slice *above; /* packed */
    size_t above_count;
    const char *file_uuid;    /* as struct tarn_task has it */
    struct tarn_slice *upper; /* packed */
    size_t upper_count;
    struct tarn_slice indexes; /* an index manifest; empty: none */
};
TARN_MUST struct tarn_status *tarn_service_poll(struct tarn_op *op, struct tarn_service *service,
                                                const char *worker_id, int64_t free_slots,
                                                int64_t wait_ms, struct tarn_work **out,
                                                size_t *count);
TARN_MUST struct tarn_status *tarn_service_renew(struct tarn_op *op, struct tarn_service *service,
                                                 const char *worker_id,
                                                 const struct tarn_lease_ref *leases, size_t count,
                                                 int64_t **lost, size_t *lost_count);
struct tarn_index_names {    /* what a worker says of index files */
    struct tarn_slice added; /* an index manifest; empty: none */
    const struct tarn_slice *removed;
    size_t removed_count;
};
/* report->entries are made of `packed`, report->changelog and ->indexes of the others; failure_reason "": it is done. */
TARN_MUST struct tarn_status *tarn_service_report(
    struct tarn_op *op, struct tarn_service *service, const char *worker_id,
    struct tarn_report *report, const char *failure_reason, const struct tarn_slice *packed,
    size_t count, const struct tarn_slice *changelog, size_t changelog_count,
    const struct tarn_index_names *indexes, int64_t *snapshot_id);
TARN_MUST struct tarn_status *tarn_service_reserve_sequences(
    struct tarn_op *op, struct tarn_service *service, struct tarn_slice table_uuid,
    struct tarn_slice partition, int32_t bucket, int64_t count, int64_t *first);
TARN_MUST struct tarn_status *tarn_service_bucket_count(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        struct tarn_slice table_uuid,
                                                        struct tarn_slice partition,
                                                        int32_t *bucket_count);

/* --- access --- */

/* Who may do everything in the warehouse: today all that there are. By name; page.pattern, where it isn't empty, is a name. */
TARN_MUST struct tarn_status *tarn_service_list_principals(struct tarn_op *op,
                                                           struct tarn_service *service,
                                                           struct tarn_page page,
                                                           const struct tarn_slice **out,
                                                           size_t *count, const char **next_token);

/* --- what others made in the warehouse (adopt.c) --- */
enum tarn_compaction_owner {
    TARN_COMPACTION_KEEP, /* as it is: of tables that others made, the writers' */
    TARN_COMPACTION_TARN,
    TARN_COMPACTION_WRITERS,
    TARN_COMPACTION_OWNER_COUNT
};
struct tarn_adopt_request {
    const struct tarn_slice *
        targets; /* "db", "db.table", or a folder of one: URI, or path with a slash. None: all there is */
    size_t target_count;
    bool check_only; /* look, and write nothing at all */
    enum tarn_inspect_files files;
    enum tarn_compaction_owner compaction;
};
enum tarn_adopt_outcome {
    TARN_ADOPT_ADOPTED,
    TARN_ADOPT_KNOWN, /* it had been */
    TARN_ADOPT_CHECKED,
    TARN_ADOPT_NO_TABLE, /* failure says why */
    TARN_ADOPT_FAILED    /* likewise */
};
struct tarn_adopt_report { /* of one folder */
    struct tarn_slice database, name;
    const char *path; /* below the warehouse's root */
    const char *uuid; /* "": it has none */
    enum tarn_adopt_outcome outcome;
    const char *failure, *advice; /* or NULL */
    bool is_compacted;            /* by the daemon */
    struct tarn_inspection found;
};
typedef struct tarn_status *(*tarn_adopt_fn)(void *arg, struct tarn_op *op,
                                             const struct tarn_adopt_report *report);
/* Tells of each folder when it is done with it; what is wrong with one is its own outcome, and the others go on. Nothing that others wrote
 * is changed: a folder gets its .tarn-table, or other words in it. PATH_INVALID, DATABASE_NOT_FOUND, TABLE_NOT_FOUND: before anything is
 * done. */
TARN_MUST struct tarn_status *tarn_service_adopt(struct tarn_op *op, struct tarn_service *service,
                                                 const struct tarn_adopt_request *request,
                                                 tarn_adopt_fn tell, void *arg);

/* --- the daemon --- */
struct tarn_problem {
    const char *table, *problem;
};
struct tarn_server_status {
    const char *version, *warehouse_name, *warehouse_uri, *grpc_address, *http_address, *state;
    int64_t started_ms, epoch, database_count, table_count, tasks_queued, tasks_leased;
    int64_t resident_bytes, worker_restarts;
    struct tarn_worker_info *workers;
    size_t worker_count;
    struct tarn_hms_info *hms; /* NULL: no mirror */
    struct tarn_problem *problems;
    size_t problem_count;
};
TARN_MUST struct tarn_status *tarn_service_status(struct tarn_op *op, struct tarn_service *service,
                                                  struct tarn_server_status *out);
/* May clients be sent here? Otherwise *why is static text. Never waits. */
bool tarn_service_is_ready(struct tarn_op *op, struct tarn_service *service, const char **why);

#endif
