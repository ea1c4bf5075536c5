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

#define TARN_ENDED_TASKS_KEPT 500
#define TARN_QUEUE_MAX 100000    /* further work is found again by a later check */
#define TARN_COOL_DOWN_MS 600000 /* a bucket whose task failed for good is left alone so long */

enum task_state { TASK_QUEUED, TASK_LEASED, TASK_DONE, TASK_FAILED };

struct task {
    struct task *next; /* in maintain.tasks, by id */
    int64_t id, token;
    enum task_state state;
    struct tarn_table *table; /* a ref */
    struct tarn_buf partition;
    struct tarn_buf partition_text;
    int32_t bucket;
    bool full;
    bool full_next; /* asked for in full while it was being done in part: goes on so */
    double priority;
    const char *why; /* static text */
    int32_t file_count, output_level, attempts;
    int64_t bytes;
    int64_t created_ms, ended_ms;       /* wall clock */
    int64_t not_before_ms, deadline_ms; /* monotonic */
    char *worker;                       /* id of the holder, or of the last one */
    char *failure;
    int64_t snapshot_id, bytes_rewritten;
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
    int64_t started_ms;   /* monotonic */
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct task *tasks, **tasks_end;
    size_t open_count, ended_count;
    int64_t next_id, next_token;
    struct tarn_map *dirty; /* uuid -> struct tarn_table, one ref each */
    struct tarn_map
        *cooling; /* bucket key -> heap int64_t: monotonic ms until it is compacted again */
    struct tarn_map
        *resting; /* likewise, of buckets that take long to look at; of the checking thread */
    struct tarn_map *followed; /* uuid -> heap struct followed; of the checking thread */
    struct tarn_map
        *due; /* uuid -> struct due: tables whose snapshots may be to expire (expire.c) */
    struct worker *workers;
    bool stopping;
    struct tarn_timer
        *expire_timer; /* NULL: nothing expires by itself; not of the lock, as the next */
    atomic_bool expire_runs;
};

void tarn_maintain__task_free(struct task *task);
struct worker *tarn_maintain__worker(struct tarn_maintain *maintain,
                                     const char *id); /* lock held; NULL: unknown */
void tarn_maintain__drop_silent_workers(struct tarn_maintain *maintain); /* lock held */
/* The tasks leased to that worker go back to the queue, but those whose report is being committed. lock held */
void tarn_maintain__take_back(struct tarn_maintain *maintain, const char *worker_id,
                              const char *failure);
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
/* Finds work in the tables that changed and queues it (schedule.c). */
void tarn_maintain__check(struct tarn_maintain *maintain);
/* Queues work on a bucket unless it has some (M1); the id, or 0. lock held. */
int64_t tarn_maintain__enqueue(struct tarn_maintain *maintain, struct tarn_table *table,
                               const struct tarn_schema *schema,
                               const struct tarn_bucket_files *bucket, const struct tarn_pick *pick,
                               bool full);
/* --- expire.c --- */
/* The table has a new snapshot. lock held */
void tarn_maintain__expire_notice(struct tarn_maintain *maintain, struct tarn_table *table);
void tarn_maintain__expire_tick(void *maintain);
void tarn_maintain__expire_end(struct tarn_maintain *maintain); /* frees what it keeps */
/* A file of an append table below this size is small. */
int64_t tarn_maintain__small_limit(const struct tarn_options *options);
/* The local wall clock in milliseconds, as if it were UTC: as Paimon stamps its files. */
int64_t tarn_maintain__local_ms(void);

#endif
