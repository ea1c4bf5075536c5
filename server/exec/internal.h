/* What the files of room exec share. */
#ifndef TARN_EXEC_INTERNAL_H
#define TARN_EXEC_INTERNAL_H

#include <event2/event.h>
#include <pthread.h>

#include "exec/exec.h"

/* One job in a queue of the pool or of a mailbox. */
struct tarn_exec__job {
    struct tarn_exec__job *next;
    tarn_job_fn fn;
    void *arg;
};

struct tarn_exec__queue {
    struct tarn_exec__job *first;
    struct tarn_exec__job **tail; /* where the next one goes; NULL in an empty, zeroed queue */
    size_t count;
};

void tarn_exec__queue_put(struct tarn_exec__queue *queue, tarn_job_fn fn, void *arg);
/* False: empty. */
bool tarn_exec__queue_take(struct tarn_exec__queue *queue, tarn_job_fn *fn, void **arg);

/* The loop thread. Its callbacks never wait: they post. */
struct tarn_exec__loop;
struct tarn_exec__loop *tarn_exec__loop_start(struct tarn_exec *exec);
void tarn_exec__loop_stop(struct tarn_exec__loop *loop); /* after it no event comes any more */
void tarn_exec__loop_free(struct tarn_exec__loop *loop); /* when no job runs any more */
struct tarn_exec__loop *tarn_exec__loop_of(struct tarn_exec *exec);
struct event_base *tarn_exec__base(struct tarn_exec__loop *loop);
/* A child's descriptor is watched until it ends; kept so that stop can forget those left over. */
struct tarn_exec__child;
bool tarn_exec__loop_add_child(struct tarn_exec__loop *loop, struct tarn_exec__child *child);
void tarn_exec__loop_remove_child(struct tarn_exec__loop *loop, struct tarn_exec__child *child);

struct tarn_exec__child {
    struct tarn_exec__child *previous, *next; /* in the loop's list, guarded by its lock */
    struct tarn_exec *exec;
    struct event *event;
    int pid_fd;
    pid_t pid;
    int wait_status;
    tarn_child_ended_fn ended;
    void *arg;
};
void tarn_exec__child_free(struct tarn_exec__child *child);

#endif
