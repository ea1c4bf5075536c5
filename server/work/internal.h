/* internal - life.c (register, poll, stop) and task.c (run, renew, report). */
#ifndef TARN_WORK_INTERNAL_H
#define TARN_WORK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "work/work.h"

#include "tarn/v1/worker.pb-c.h"

#define TARN_WORK_ID_MAX 200

struct task {
    struct tarn_work *work;
    struct tarn_op op; /* of the run; its arena holds all of the task */
    const Tarn__V1__Task *message;
    const char *worker_id; /* it was leased under */
    struct tarn_timer *renewer;
    atomic_llong renewed_ms; /* monotonic */
    atomic_bool lost;        /* W1 */
    struct task *next;
};

struct tarn_work {
    struct tarn_work_options options;
    struct tarn_op polling; /* cancelled by stop: parent of registering and polling */
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed;
    bool stopping;
    bool loop_ended;
    struct task *tasks; /* those that run */
    int task_count;
};

/* Takes over the task, which is in the list: runs, reports, leaves the list, frees. A job. */
void tarn_work__run_task(void *task);
void tarn_work__task_free(struct task *task);
/* Waits up to `ms`, or until stop. False: stopping. */
bool tarn_work__pause(struct tarn_work *work, int64_t ms);

#endif
