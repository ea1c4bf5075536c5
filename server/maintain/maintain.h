/*
 * maintain - what needs doing, in what order, and who does it: pictures of buckets become tasks, tasks are
 * leased to workers, results are committed through the ordinary commit path.
 *
 * Picking  Paimon's universal compaction (pick.c; format.md 9.2) for primary-key buckets, 9.5 for append tables.
 * Leases   a task belongs to one worker until its deadline; its token grows with every lease and begins with the
 *          warehouse's epoch. A report with an older token is refused (LEASE_LOST) and changes nothing. A bucket
 *          has at most one task at a time. A task that failed is tried again with back-off, TARN_TASK_TRIES_MAX times;
 *          one that met a broken file is not.
 * Workers  local ones are processes supervised here (restarted with back-off); remote ones register over gRPC.
 * Threads  any.
 */
#ifndef TARN_MAINTAIN_H
#define TARN_MAINTAIN_H

#include "catalog/catalog.h"
#include "maintain/budget.h"
#include "maintain/score.h"
#include "state/state.h"
#include "table/expire.h"

#define TARN_TASK_TRIES_MAX 5

/* --- picking: pure --- */
struct tarn_pick {
    const struct tarn_manifest_entry **files; /* borrowed from the input, in the arena */
    size_t file_count;
    int output_level, top_level; /* top_level: the bucket's last */
    bool drop_delete;
    const char *why; /* "size amplification", "size ratio", "file count", "full", … */
};
/* false: nothing to do. now_ms: local wall clock, for the optimization interval and off-peak hours. */
bool tarn_pick_compaction(const struct tarn_schema *schema, const struct tarn_options *options,
                          const struct tarn_bucket_files *bucket, bool full, int64_t now_ms,
                          struct tarn_arena *arena, struct tarn_pick *out);
/* Number of sorted runs: level-0 files and non-empty levels above. */
int tarn_run_count(const struct tarn_manifest_entry *files, size_t count);

struct tarn_run { /* a sorted run; of append tables each file is one */
    int32_t level, file_count;
    int64_t size, created_ms; /* its newest file's: local wall clock as if UTC, or NONE */
};
/* All that tarn_pick_compaction goes by, in its order: newest first; append tables: oldest, or smallest, first. */
size_t tarn_pick_runs(const struct tarn_schema *schema, const struct tarn_options *options,
                      const struct tarn_bucket_files *bucket, struct tarn_arena *arena,
                      struct tarn_run **out);
/* A file of an append table below this size is small. */
int64_t tarn_maintain_small_limit(const struct tarn_options *options);

/* --- whose the maintenance of a table is: pure --- */
/* Do its readers skip level 0, or wait for a changelog that compaction makes? Then each new file is compacted soon ([compaction] freshness). */
bool tarn_maintain_is_waited_for(const struct tarn_schema *schema,
                                 const struct tarn_options *options);
/* What the daemon doesn't do yet of all that keeps such a table in order, as "has snapshots that expire"; NULL: it does all of it, so that
 * writers needn't (write-only). */
const char *tarn_maintain_lacks(const struct tarn_schema *schema,
                                const struct tarn_options *options);
/* Do writers compact it, because its options say so or ask for what they alone do? Then nobody does here but `tarn compact`. */
bool tarn_maintain_is_of_writers(const struct tarn_schema *schema,
                                 const struct tarn_options *options);

/* Do its snapshots expire here, by themselves? Where its writers do nothing (write-only), or it is the daemon's as a whole. */
bool tarn_maintain_expires(const struct tarn_schema *schema, const struct tarn_options *options);

/* --- the queue --- */
#define TARN_COMPACTION_USER "tarn-compaction" /* whose commits they are */

struct tarn_maintain;
struct tarn_maintain_options {
    struct tarn_catalog *catalog;
    struct tarn_exec *exec;
    struct tarn_state *state; /* kept tidy; NULL: there is none */
    bool automatic;
    int64_t check_interval_ms, lease_ms;
    int64_t freshness_ms; /* where readers wait for compaction */
    struct tarn_window window;
    int64_t bytes_per_second, database_bytes_per_second, table_bytes_per_second; /* 0: no limit */
    int cpu_percent;          /* of a core; 0: no limit, as all that follow up to the tasks */
    int64_t memory_max_bytes; /* of all that run, each counted as its worker's by its slots */
    int database_cpu_percent, table_cpu_percent;
    int64_t database_memory_max_bytes, table_memory_max_bytes;
    int database_tasks, table_tasks; /* at the same time */
    int64_t undone_rest_ms; /* a bucket whose compaction was undone is left alone so long */
    bool expire_automatic;
    int64_t expire_interval_ms; /* between two looks at a table whose snapshots may be to expire */
};
struct tarn_maintain *tarn_maintain_new(const struct tarn_maintain_options *options);
void tarn_maintain_free(struct tarn_maintain *maintain);
/* A table has a new snapshot: look at its buckets soon. Never waits. */
void tarn_maintain_notice(struct tarn_maintain *maintain, struct tarn_table *table);
/* The table was dropped: its pictures go. */
void tarn_maintain_forget(struct tarn_maintain *maintain, struct tarn_table *table);

/* --- back-pressure --- */
#define TARN_BACKLOG_RETRY_MS 500
enum tarn_backlog_advice {
    TARN_BACKLOG_NONE,
    TARN_BACKLOG_BEHIND, /* more sorted runs than the compaction trigger: reads get slower */
    TARN_BACKLOG_WAIT    /* more than num-sorted-run.stop-trigger: Paimon's writers wait here */
};
struct tarn_backlog { /* of the bucket that is furthest behind */
    enum tarn_backlog_advice advice;
    struct tarn_slice partition; /* in the op's arena */
    int32_t bucket, runs, run_trigger, run_stop_trigger;
    int64_t retry_after_ms;
};
/* Of the buckets that these files lie in, the commit that brought them counted; from memory, never waits. NONE where the daemon
 * doesn't compact the table by itself, and where nothing is known yet. WAIT only where compaction is about to end it. */
void tarn_maintain_backlog(struct tarn_op *op, struct tarn_maintain *maintain,
                           struct tarn_table *table, const struct tarn_manifest_entry *entries,
                           size_t count, struct tarn_backlog *out);
/* Of all its buckets. */
void tarn_maintain_table_backlog(struct tarn_op *op, struct tarn_maintain *maintain,
                                 struct tarn_table *table, struct tarn_backlog *out);

/* The compaction of this bucket was undone for a writer that lost to it: what is leased of it is fenced off, and but for
 * `tarn compact` nobody compacts it for undone_rest_ms, so that the writer gets through. A restart forgets this. Never waits. */
void tarn_maintain_undone(struct tarn_maintain *maintain, struct tarn_table *table,
                          struct tarn_slice partition, int32_t bucket);

struct tarn_task { /* what a worker is given; lies in the op's arena */
    int64_t id, token, lease_ms;
    struct tarn_table *table; /* owned by the receiver */
    struct tarn_slice partition;
    int32_t bucket;
    struct tarn_manifest_entry *files;
    size_t file_count; /* with statistics and deletion vectors */
    struct tarn_manifest_entry
        *upper; /* of a primary-key table with deletion vectors: the bucket's other files */
    size_t upper_count;
    struct tarn_index_file *indexes; /* with deletion vectors of the bucket */
    size_t index_count;
    int64_t seen_id; /* they are live in this snapshot */
    int output_level, top_level;
    bool drop_delete;
    bool rescale;         /* all files of the partition; `bucket` and levels say nothing */
    bool postponed;       /* likewise, of those that wait for buckets */
    int32_t bucket_count; /* of a rescale; 0: the table's */
    const char *why;      /* the rule that picked them */
    struct tarn_manifest_entry
        *above; /* changelog-producer = lookup: the bucket's files above the output level */
    size_t above_count;
    const char *
        file_uuid; /* of this lease: its files have the first TARN_FILE_UUID_SHARED characters in their names */
};
/* Waits up to wait_ms for a task; *count 0: none. Who waits for longer than three leases is forgotten meanwhile. At most `max`. */
TARN_MUST struct tarn_status *tarn_maintain_poll(struct tarn_op *op, struct tarn_maintain *maintain,
                                                 const char *worker_id, size_t max, int64_t wait_ms,
                                                 struct tarn_task **out, size_t *count);
struct tarn_lease_ref {
    int64_t task_id, token;
};
TARN_MUST struct tarn_status *tarn_maintain_renew(struct tarn_op *op,
                                                  struct tarn_maintain *maintain,
                                                  const char *worker_id,
                                                  const struct tarn_lease_ref *leases, size_t count,
                                                  int64_t **lost, size_t *lost_count);
struct tarn_report {
    struct tarn_lease_ref lease;
    enum tarn_reason failure;
    struct tarn_slice failure_message; /* TARN_NO_REASON: done */
    const struct tarn_manifest_entry *entries, *changelog;
    size_t entry_count, changelog_count;
    struct tarn_index_file
        *indexes; /* ADDs, and DELETEs that have only a name; the rest is the task's */
    size_t index_count;
    int64_t rows_in, rows_out, bytes_in, bytes_out, cpu_ns;
};
/* Commits the result. Errors: LEASE_LOST, COMMIT_CONFLICT (outputs are the worker's to remove), OUTCOME_UNKNOWN. */
TARN_MUST struct tarn_status *tarn_maintain_report(struct tarn_op *op,
                                                   struct tarn_maintain *maintain,
                                                   const char *worker_id,
                                                   const struct tarn_report *report,
                                                   int64_t *snapshot_id);

/* --- decisions: all that they were made from --- */
#define TARN_EXPLAINED_RUNS_MAX 200
struct tarn_explained_pick {
    const char *rules; /* "sorted runs", "files in order", "small files" */
    bool full, force_up_level_0;
    int64_t local_ms; /* what time it was: local wall clock as if UTC */
    int32_t run_trigger, level_count, size_amplification_percent, size_ratio_percent,
        offpeak_start_hour, offpeak_end_hour, offpeak_ratio, min_file_count;
    int64_t optimization_interval_ms, total_size_threshold,
        incremental_size_threshold; /* -1: none */
    int64_t target_file_size, small_file_limit, split_open_cost;
    const struct tarn_run *runs;
    size_t run_count;
    int64_t runs_left_out; /* behind those */
};
struct tarn_alternative { /* what was next in order */
    int64_t job_id;
    const char *table;
    double score;
    struct tarn_score_inputs inputs;
};
struct tarn_budget_state {
    int64_t rate, tokens; /* as in budget.h, before it was taken from */
};
struct tarn_decision {
    int64_t decided_ms; /* when it was leased; 0: it wasn't, and this is as it stands now */
    const char *
        held_by; /* of a queued one: what holds it back ("back-off", "rescale" or "compact" that is in its way, or a key of the configuration); "": nothing; NULL: it ran */
    int64_t queued_count;
    struct tarn_score_inputs inputs;
    struct tarn_score score;
    struct tarn_alternative *alternatives;
    size_t alternative_count;
    struct tarn_budget_state bytes_of_all, cpu_of_all, bytes_of_database, bytes_of_table;
    struct tarn_budget_state cpu_of_database, cpu_of_table;
    int64_t memory_max_bytes, memory_bytes; /* of all that run */
    int64_t database_memory_max_bytes, database_memory_bytes, table_memory_max_bytes,
        table_memory_bytes;
    const struct tarn_explained_pick *pick; /* NULL: not made yet */
};

struct tarn_job_info {
    int64_t id;
    const char *table, *partition, *state, *why, *worker, *failure;
    const char *kind; /* "compact", "rescale" */
    int32_t bucket, file_count, output_level, attempts;
    int64_t bytes, created_ms, ended_ms;
    double priority;
    struct tarn_decision *decision;                                /* NULL: not asked for */
    int64_t snapshot_id, bytes_written, rows_in, rows_out, cpu_ns; /* of one that is done */
};
TARN_MUST struct tarn_status *tarn_maintain_jobs(struct tarn_op *op, struct tarn_maintain *maintain,
                                                 struct tarn_table *table /* NULL: all */,
                                                 bool ended, bool explain,
                                                 struct tarn_job_info **out, size_t *count);
/* `tarn compact`: picks for buckets whose partition begins with these values (prefix_count of the partition keys)
 * and queues them; ids of the tasks in *ids. dry_run queues nothing. */
struct tarn_compact_order {
    struct tarn_table *table;
    bool full, dry_run;
    const struct tarn_value *prefix;
    size_t prefix_count;
};
TARN_MUST struct tarn_status *tarn_maintain_compact(struct tarn_op *op,
                                                    struct tarn_maintain *maintain,
                                                    const struct tarn_compact_order *order,
                                                    struct tarn_job_info **picks, size_t *count);
/* `tarn rescale`: queues the partitions whose bucket count isn't `bucket_count`, which the table's option says already unless it is a dry run. */
struct tarn_rescale_order {
    struct tarn_table *table;
    int32_t bucket_count;
    bool dry_run;
    const struct tarn_value *prefix; /* as above */
    size_t prefix_count;
};
TARN_MUST struct tarn_status *tarn_maintain_rescale(struct tarn_op *op,
                                                    struct tarn_maintain *maintain,
                                                    const struct tarn_rescale_order *order,
                                                    struct tarn_job_info **picks, size_t *count);
/* UNSUPPORTED_FEATURE: it has no fixed buckets, or what a rescale would lose. */
TARN_MUST struct tarn_status *tarn_maintain_may_rescale(const struct tarn_table_view *view,
                                                        const char *table);
/* A load that would be written into a partition that has been rescaled in vain for a while waits for that, at most wait_ms: it is
 * written for the new buckets afterwards. */
void tarn_maintain_let_rescale(struct tarn_op *op, struct tarn_maintain *maintain,
                               struct tarn_table *table, const struct tarn_manifest_entry *entries,
                               size_t count, int64_t wait_ms);
/* Ends a task that is queued or leased. INVALID_ARGUMENT: there is none of that id, or its result is being committed. */
TARN_MUST struct tarn_status *tarn_maintain_cancel(struct tarn_op *op,
                                                   struct tarn_maintain *maintain, int64_t id);
struct tarn_compact_state {
    int64_t done, failed, bytes_rewritten, last_snapshot_id;
    const char *failure; /* the first; in the op's arena, or NULL */
    bool finished;       /* none of the ids is queued or leased any more */
};
/* Waits until something changed among the tasks or wait_ms passed. */
TARN_MUST struct tarn_status *tarn_maintain_wait(struct tarn_op *op, struct tarn_maintain *maintain,
                                                 const int64_t *ids, size_t count, int64_t wait_ms,
                                                 struct tarn_compact_state *out);

/* --- advice (advise.h) --- */
struct tarn_advise_effect {
    double files; /* at the end of the history */
    double
        write_amplification; /* bytes written, by commits and compactions, for each byte loaded */
    double
        read_fan_out; /* sorted runs that a read of a bucket merges, as a mean after each commit */
};
struct tarn_advise_setting {
    int32_t bucket_count, writer_parallelism, run_trigger;
    int64_t target_file_size;
    struct tarn_advise_effect effect;
};
#define TARN_CAUSES_MAX 2
struct tarn_advice {
    int64_t first_snapshot_id, last_snapshot_id, span_ms; /* the history that it is made from */
    int64_t largest_bucket_size;                          /* bytes live now */
    int64_t new_size, largest_partition_size, files; /* bytes loaded in it; live now, as the next */
    int32_t runs_max;                                /* of a bucket */
    double kept;                                     /* of the bytes that its compactions read */
    int64_t bucket_size_aim;                         /* that a bucket is to have at most */
    struct tarn_advise_setting now, advised;
    const char
        *causes[TARN_CAUSES_MAX]; /* of slow reads, as far as settings are; in the op's arena */
    size_t cause_count;
};
/* From the retained snapshots. bucket_size: that a bucket is to have at most; 0: 1 GiB. UNSUPPORTED_FEATURE: another kind of table;
 * INVALID_ARGUMENT: nothing was loaded. */
TARN_MUST struct tarn_status *tarn_maintain_advise(struct tarn_op *op,
                                                   struct tarn_maintain *maintain,
                                                   struct tarn_table *table, int64_t bucket_size,
                                                   struct tarn_advice *out);

/* --- expiry --- */
/* tarn_table_expire (which see), with what running tasks read held. keep_last, older_than_ms: or TARN_EXPIRE_OPTION. */
TARN_MUST struct tarn_status *tarn_maintain_expire(struct tarn_op *op,
                                                   struct tarn_maintain *maintain,
                                                   struct tarn_table *table, int64_t keep_last,
                                                   int64_t older_than_ms, bool dry_run,
                                                   struct tarn_expiry *out);

/* --- workers --- */
struct tarn_worker_info {
    const char *id, *name, *address, *version;
    bool local;
    int slots, busy;
    int64_t last_seen_ms, memory_max_bytes;
};
TARN_MUST struct tarn_status *tarn_maintain_register(struct tarn_op *op,
                                                     struct tarn_maintain *maintain,
                                                     const struct tarn_worker_info *info,
                                                     const char **worker_id);
TARN_MUST struct tarn_status *tarn_maintain_workers(struct tarn_op *op,
                                                    struct tarn_maintain *maintain,
                                                    struct tarn_worker_info **out, size_t *count);
/* The address of a worker for a scan or load: the one with fewest streams; NO_WORKER. end_stream when it is over. */
TARN_MUST struct tarn_status *tarn_maintain_begin_stream(struct tarn_op *op,
                                                         struct tarn_maintain *maintain,
                                                         const char **worker_id,
                                                         const char **address);
void tarn_maintain_end_stream(struct tarn_maintain *maintain, const char *worker_id,
                              bool worker_failed);

/* A local worker's process ended: it is forgotten at once, and its leases go back to the queue. It is known by the
 * process id at the end of its name. */
void tarn_maintain_worker_ended(struct tarn_maintain *maintain, pid_t pid);
/* Is a local worker of this process id registered? */
bool tarn_maintain_has_worker(struct tarn_maintain *maintain, pid_t pid);

/* Starts `count` local workers and keeps them running; stop ends them (TERM, then KILL after grace_ms). */
struct tarn_supervisor;
struct tarn_supervisor_options {
    struct tarn_exec *exec;
    struct tarn_maintain *maintain; /* is told of workers that ended; NULL: nobody is */
    const char *program;            /* path of tarn-worker */
    const char *server_address;     /* --server */
    const char *secret;             /* TARN_TOKEN of the child */
    const char *scratch_dir;
    int count;
    int64_t memory_max_bytes, write_buffer_bytes;
    const char *log_level, *log_format; /* NULL: info, text */
    const char *const *variables; /* more of the child's, "NAME=value", up to a NULL; NULL: none */
    int64_t hung_ms; /* one that runs but isn't registered so long is killed; 0: never */
};
TARN_MUST struct tarn_status *tarn_supervisor_check_program(const char *program);
TARN_MUST struct tarn_status *tarn_supervisor_start(const struct tarn_supervisor_options *options,
                                                    struct tarn_supervisor **out);
int64_t tarn_supervisor_restarts(const struct tarn_supervisor *supervisor);
/* When it returns none runs or is started any more; a second time does nothing. */
void tarn_supervisor_stop(struct tarn_supervisor *supervisor, int64_t grace_ms);
void tarn_supervisor_free(struct tarn_supervisor *supervisor); /* after stop; NULL is fine */

#endif
