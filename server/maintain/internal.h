/*
 * internal - what the files of room `maintain` share: the queue under one lock, and who works on it.
 *
 *   queued --lease--> leased --report--> done
 *     ^                 |  \--failure--> queued (with back-off), after TARN_TASK_TRIES_MAX: failed
 *     +--lease ran out--+
 *
 * M1  A bucket has at most one task that is queued or leased.
 * M2  A task's token only grows; a report counts only under the task's present token while it is leased.
 * M3  The picture is made anew when a task is leased, so that what a worker is given is live then; what changed
 *     afterwards is found by the commit's conflict check.
 */
#ifndef TARN_MAINTAIN_INTERNAL_H
#define TARN_MAINTAIN_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

#include "maintain/maintain.h"
#include "maintain/picture.h"

#define TARN_ENDED_TASKS_KEPT 500
#define TARN_QUEUE_MAX 100000 /* further work is found again by a later check */
#define TARN_PICTURES_MAX                                                                          \
    1000000 /* beyond, buckets that need nothing are read anew when they change */
#define TARN_UNAWARE_FILES_MAX 20000 /* of a partition without buckets: more than one pick takes */
#define TARN_ALTERNATIVES_MAX 3      /* kept of a choice */
#define TARN_TICK_MS 50            /* a look at tables that changed; the rest is left to the next */
#define TARN_TICK_EVERY_MS 100     /* while there is a rest */
#define TARN_RESCALE_BUCKET (-3)   /* in the place of a bucket: no table has it */
#define TARN_RESCALE_TRIES_MAX 20  /* each lost to a commit that came meanwhile */
#define TARN_RESCALE_TRIES_ALONE 3 /* from here on loads wait for it */
#define TARN_COOL_DOWN_MS 600000   /* a bucket whose task failed for good is left alone so long */

enum task_state { TASK_QUEUED, TASK_LEASED, TASK_DONE, TASK_FAILED };

/* A database, a table, or all: what it took lately, and may take. */
struct tenant {
    double compacted; /* bytes, older ones counting less, at: */
    int64_t at_ms;
    struct tarn_budget budget, cpu;
    int64_t memory;          /* of what is leased */
    int task_count, running; /* that are open; leased */
    int64_t choice;          /* in which `share` was made */
    double share;
};

struct task {
    struct task *next; /* of those that ended */
    size_t place;      /* in maintain.open */
    int64_t id, token;
    enum task_state state;
    struct tarn_table *table; /* a ref */
    struct tarn_buf partition;
    struct tarn_buf partition_text;
    int32_t bucket;
    bool rescale; /* all of the partition; bucket is TARN_RESCALE_BUCKET */
    bool full;
    bool full_next; /* asked for in full while it was being done in part: goes on so */
    bool ordered;   /* by tarn compact */
    struct tarn_score_inputs inputs; /* as they were when its bucket was last looked at */
    int64_t since_ms, oldest_ms;     /* monotonic: it waits, and its oldest file of level 0 */
    struct tenant *of_database, *of_table;
    int64_t charged, memory; /* to budgets; of its worker, while it runs */
    struct tarn_arena *explained;
    struct tarn_decision *decision; /* the latest; NULL: it was never leased */
    const char *why;                /* static text */
    int32_t file_count, output_level, attempts;
    int64_t bytes;
    int64_t created_ms, ended_ms;       /* wall clock */
    int64_t not_before_ms, deadline_ms; /* monotonic */
    char *worker;                       /* id of the holder, or of the last one */
    char *failure;
    char file_uuid[TARN_UUID_SIZE]; /* of the latest lease (leftovers.c) */
    int64_t snapshot_id, bytes_rewritten, rows_in, rows_out, cpu_ns;
    int64_t
        seen_id; /* while it is leased: the snapshot that its picture was taken of; 0: not yet */
};

struct worker {
    struct worker *next;
    char *id, *name, *address, *version;
    bool local;
    int slots, busy, streams;
    int64_t memory_max_bytes;
    int64_t last_seen_ms; /* wall clock, for people */
    int64_t seen_ms;      /* monotonic */
};

struct tarn_maintain {
    struct tarn_maintain_options options;
    struct tarn_timer *timer;
    int64_t tick_every_ms;
    int64_t next_round_ms; /* monotonic; of the timer's job alone, as the next */
    bool round_goes_on;    /* there are tables left to look at */
    int64_t started_ms;    /* monotonic */
    pthread_mutex_t lock;  /* guards all below */
    pthread_cond_t changed;
    struct task **open; /* queued and leased, in no order */
    size_t open_count, open_capacity;
    struct tarn_map *ids, *open_buckets; /* id, bucket key -> struct task */
    struct task *ended, **ended_end;     /* oldest first */
    size_t ended_count;
    struct tarn_map *tenants; /* kind and name -> heap struct tenant (choose.c) */
    struct tenant of_all;
    int64_t choice, sweep_ms;
    size_t rescale_count; /* of open tasks */
    int64_t next_id, next_token;
    struct tarn_map *dirty;    /* uuid -> struct tarn_table, one ref each: to be looked at */
    struct tarn_map *checking; /* as dirty: of this round, those up to checking_at are through */
    size_t checking_at;
    struct tarn_map
        *cooling; /* bucket key -> heap int64_t: monotonic ms until it is compacted again */
    struct tarn_map
        *due; /* uuid -> struct due: tables whose snapshots may be to expire (expire.c) */
    struct worker *workers;
    bool stopping;
    pthread_mutex_t
        pictures_lock; /* guards the next two; taken before `lock`, and before a table's index_lock */
    struct tarn_map *followed; /* uuid -> heap struct followed (follow.c) */
    size_t picture_count;
    struct tarn_timer
        *expire_timer; /* NULL: nothing expires by itself; not of the lock, as the next */
    atomic_bool expire_runs;
    struct tarn_timer *clean_timer;
    struct left *left; /* oldest first (leftovers.c); of the lock, as the next */
    size_t left_count;
};

/* Does its partition begin with these values? */
bool tarn_maintain__has_prefix(const struct tarn_schema *schema, struct tarn_slice partition,
                               const struct tarn_value *prefix, size_t count,
                               struct tarn_arena *arena);
void tarn_maintain__task_free(struct task *task);
struct worker *tarn_maintain__worker(struct tarn_maintain *maintain,
                                     const char *id); /* lock held; NULL: unknown */
void tarn_maintain__drop_silent_workers(struct tarn_maintain *maintain); /* lock held */
/* The tasks leased to that worker go back to the queue, but those whose report is being committed. is_dead: it writes no more. lock held */
void tarn_maintain__take_back(struct tarn_maintain *maintain, const char *worker_id,
                              const char *failure, bool is_dead);
/* Waits for a change, at most wait_ms; lock held. False: the op is over. */
bool tarn_maintain__wait(struct tarn_maintain *maintain, const struct tarn_op *op, int64_t wait_ms);
void tarn_maintain__bucket_key(struct tarn_table *table, struct tarn_slice partition,
                               int32_t bucket, struct tarn_buf *key);
/* Nothing is queued for the bucket before now + for_ms; what is said already stays if it is longer. lock held */
void tarn_maintain__cool(struct tarn_maintain *maintain, struct tarn_table *table,
                         struct tarn_slice partition, int32_t bucket, int64_t for_ms);
/* The bucket's task that is queued or leased, or NULL. lock held */
struct task *tarn_maintain__open_task(struct tarn_maintain *maintain, struct tarn_table *table,
                                      struct tarn_slice partition, int32_t bucket);
/* Finds work in the tables that changed and queues it (schedule.c), for so long: one bucket at least. True: the time was over, there may be more. */
bool tarn_maintain__check(struct tarn_maintain *maintain, int64_t for_ms);
void tarn_maintain__mark_dirty(struct tarn_maintain *maintain,
                               struct tarn_table *table); /* lock held */
struct wish { /* what is to be done in a bucket, and how urgent it is */
    const struct tarn_bucket_files *bucket;
    const struct tarn_pick *pick;
    int32_t file_count;
    struct tarn_score_inputs inputs;
    bool full, ordered;
};
void tarn_maintain__make_wish(const struct tarn_maintain *maintain,
                              const struct tarn_table_view *view,
                              const struct tarn_picture *picture,
                              const struct tarn_bucket_files *bucket, const struct tarn_pick *pick,
                              int64_t local_ms, struct wish *out);
/* Queues work on a bucket unless it has some (M1); the id, or 0. lock held. */
int64_t tarn_maintain__enqueue(struct tarn_maintain *maintain, struct tarn_table *table,
                               const struct tarn_schema *schema, const struct wish *wish);
/* Not open yet. lock held */
struct task *tarn_maintain__new_task(struct tarn_maintain *maintain, struct tarn_table *table,
                                     const struct tarn_schema *schema, struct tarn_slice partition,
                                     int32_t bucket);
void tarn_maintain__open(struct tarn_maintain *maintain, struct task *consumed); /* lock held */
/* WAIT becomes BEHIND where compaction of the bucket is held back, or nobody is there to do it. */
void tarn_maintain__check_backlog(struct tarn_maintain *maintain, struct tarn_table *table,
                                  struct tarn_backlog *backlog);

/* --- follow.c; pictures_lock held --- */
struct pictured { /* a bucket */
    struct tarn_buf partition;
    int32_t bucket;
    bool known; /* the picture is */
    struct tarn_picture picture;
    int64_t from_stamp, to_stamp; /* of when it was read */
    int64_t missed_stamp;         /* up to here changes came while it wasn't known */
    int64_t rest_until_ms;        /* monotonic: it takes long to read */
};
struct followed {                   /* a table */
    char main_uuid[TARN_UUID_SIZE]; /* of a branch: its table's */
    int64_t schema_id;              /* that its pictures are of; -1: none */
    bool all;                       /* every bucket is to be looked at */
    bool is_ours;                   /* is compacted here, by itself */
    bool is_waited_for;             /* tarn_maintain_is_waited_for */
    int run_trigger, run_stop_trigger;
    int64_t full_look_ms;     /* monotonic: not before, where time alone calls for work */
    struct tarn_map *buckets; /* key of partition and bucket -> heap struct pictured */
    struct tarn_map *changed; /* those to be looked at */
};
struct followed *tarn_maintain__followed(struct tarn_maintain *maintain,
                                         struct tarn_table *table); /* NULL: it isn't */
/* Follows it from now on, and takes in what commits said. */
struct followed *tarn_maintain__absorb(struct tarn_op *op, struct tarn_maintain *maintain,
                                       struct tarn_table *table);
struct pictured *tarn_maintain__pictured(struct followed *followed, struct tarn_slice partition,
                                         int32_t bucket); /* NULL: there is none */
void tarn_maintain__look_later(struct tarn_maintain *maintain, struct followed *followed,
                               struct tarn_slice partition, int32_t bucket);
void tarn_maintain__drop_picture(struct tarn_maintain *maintain, struct followed *followed,
                                 struct pictured *pictured);
void tarn_maintain__forget_pictures(struct tarn_maintain *maintain, struct followed *followed);
void tarn_maintain__all_changed(struct followed *followed);
/* Of tables that went: with their database, or by another program. Takes the locks. */
void tarn_maintain__sweep_followed(struct tarn_maintain *maintain);
void tarn_maintain__follow_end(struct tarn_maintain *maintain); /* frees all */

struct read_picture { /* from the index */
    struct tarn_picture picture;
    struct tarn_bucket_files files; /* in the op's arena */
    int64_t from_stamp, to_stamp;
};
/* No lock held. *out is to be ended in any case (tarn_picture_fini). */
TARN_MUST struct tarn_status *tarn_maintain__read_picture(struct tarn_op *op,
                                                          struct tarn_table *table,
                                                          const struct tarn_table_view *view,
                                                          const struct tarn_touched_bucket *at,
                                                          struct read_picture *out);
/* False: something came while it was read. */
bool tarn_maintain__keep_picture(struct pictured *pictured, struct read_picture *consumed);
void tarn_maintain__measure_lag(struct tarn_maintain *maintain); /* takes the lock */

/* --- rescale.c; lock held --- */
/* The other of two that would be in each other's way, a rescale and compactions of its partition: it goes first. NULL: none does. */
const char *tarn_maintain__held_by_rescale(struct tarn_maintain *maintain, const struct task *task);
/* No lock held. What a worker rescales; *nothing: it has the table's bucket count. */
TARN_MUST struct tarn_status *tarn_maintain__fill_rescale(struct tarn_op *op,
                                                          struct tarn_table *table,
                                                          struct tarn_slice partition,
                                                          struct tarn_task *out, bool *nothing);

/* No lock held. The files of a postpone bucket, and how many real ones they are for. */
TARN_MUST struct tarn_status *tarn_maintain__fill_postponed(struct tarn_table *table,
                                                            const struct tarn_table_view *view,
                                                            const struct tarn_bucket_files *bucket,
                                                            struct tarn_task *out);

/* --- choose.c; lock held --- */
struct choice {
    int64_t now_ms;
    double all; /* bytes compacted lately */
    size_t queued_count, count;
    struct {
        struct task *task;
        double score;
    } best[1 + TARN_ALTERNATIVES_MAX];
};
void tarn_maintain__init_budgets(struct tarn_maintain *maintain);
void tarn_maintain__join_tenants(struct tarn_maintain *maintain, struct task *task);
void tarn_maintain__leave_tenants(struct task *task);
void tarn_maintain__sweep_tenants(struct tarn_maintain *maintain, bool all);
void tarn_maintain__charge_cpu(struct tarn_maintain *maintain, struct task *task, int64_t ns);
void tarn_maintain__charge(struct tarn_maintain *maintain, struct task *task, int64_t bytes);
void tarn_maintain__begin_running(struct tarn_maintain *maintain, struct task *task,
                                  const struct worker *worker);
void tarn_maintain__end_running(struct tarn_maintain *maintain, struct task *task);
/* What holds a queued task back, this one alone, or all; NULL: nothing does. */
const char *tarn_maintain__held_by(struct tarn_maintain *maintain, struct task *task,
                                   const struct worker *worker /* or NULL */, int64_t now_ms);
const char *tarn_maintain__all_held_by(struct tarn_maintain *maintain, const struct task *task,
                                       const struct worker *worker /* or NULL */, int64_t now_ms);
void tarn_maintain__begin_choice(struct tarn_maintain *maintain, struct choice *choice);
void tarn_maintain__inputs_now(struct tarn_maintain *maintain, const struct choice *choice,
                               struct task *task, struct tarn_score_inputs *out);
double tarn_maintain__priority(struct tarn_maintain *maintain, const struct choice *choice,
                               struct task *task);
/* NULL: nothing may be begun now. */
struct task *tarn_maintain__choose(struct tarn_maintain *maintain, const struct worker *worker,
                                   struct choice *choice);

/* --- explain.c; lock held, but for the last --- */
void tarn_maintain__keep_decision(struct tarn_maintain *maintain, const struct choice *choice,
                                  struct task *task);
void tarn_maintain__keep_pick(struct task *task, const struct tarn_explained_pick *pick);
void tarn_maintain__explain_task(struct tarn_op *op, struct tarn_maintain *maintain,
                                 const struct choice *choice, struct task *task,
                                 struct tarn_job_info *out);
void tarn_maintain__explain_wish(struct tarn_op *op, struct tarn_maintain *maintain,
                                 struct tarn_table *table, const struct wish *wish,
                                 struct tarn_job_info *out);
struct tarn_explained_pick *tarn_maintain__explain_pick(struct tarn_arena *arena,
                                                        const struct tarn_table_view *view,
                                                        const struct tarn_bucket_files *bucket,
                                                        bool full, int64_t local_ms);
/* --- expire.c --- */
/* The table has a new snapshot. lock held */
void tarn_maintain__expire_notice(struct tarn_maintain *maintain, struct tarn_table *table);
void tarn_maintain__expire_tick(void *maintain);
void tarn_maintain__expire_end(struct tarn_maintain *maintain); /* frees what it keeps */
/* --- leftovers.c --- */
/* The lease that the task has ends without a result: what its worker wrote goes after delay_ms. Not where it may have been committed. lock held */
void tarn_maintain__leave_behind(struct tarn_maintain *maintain, const struct task *task,
                                 int64_t delay_ms);
void tarn_maintain__clean_tick(void *maintain);
void tarn_maintain__clean_end(struct tarn_maintain *maintain); /* frees what it keeps */
/* The local wall clock in milliseconds, as if it were UTC: as Paimon stamps its files. */
int64_t tarn_maintain__local_ms(void);

#endif
