/*
 * exec - threads, mailboxes, timers and child processes. The one door to libevent besides http.
 *
 * A `tarn_exec` is the machinery of one process: a pool of threads that run jobs and may wait, and
 * one loop thread for timers and children that never waits.
 *
 *   job      run once by some pool thread. Jobs may wait (files, RocksDB, network, each other's
 *            results): the pool grows up to thread_max while threads wait in calls that say so.
 *   mailbox  jobs run in order of arrival, one at a time. What a mailbox owns needs no lock.
 *   timer    posts a job later. Cancelled timers never run after cancel has returned.
 *
 * Threads  post: any. A job must not free the mailbox it runs in.
 */
#ifndef TARN_EXEC_H
#define TARN_EXEC_H

#include <pthread.h>
#include <sys/types.h>

#include "base/base.h"

struct tarn_exec;
struct tarn_mailbox;
struct tarn_timer;

typedef void (*tarn_job_fn)(void *arg);

/* core_count: threads that run at once; thread_max: with those that wait. */
struct tarn_exec *tarn_exec_new(int core_count, int thread_max);
/* Runs what was posted, refuses nothing that running jobs post, joins all threads. No timer fires and
 * no child is watched any more; cancel timers before. */
void tarn_exec_free(struct tarn_exec *exec);

void tarn_exec_post(struct tarn_exec *exec, tarn_job_fn fn, void *arg);
/* As post, where the calling job ends, or waits, right behind: no other thread is woken for what this one can take itself. */
void tarn_exec_post_last(struct tarn_exec *exec, tarn_job_fn fn, void *arg);

struct tarn_mailbox *tarn_mailbox_new(struct tarn_exec *exec, const char *name);
/* Waits until it is empty. Not from one of its own jobs. */
void tarn_mailbox_free(struct tarn_mailbox *mailbox);
void tarn_mailbox_post(struct tarn_mailbox *mailbox, tarn_job_fn fn, void *arg);
void tarn_mailbox_post_last(struct tarn_mailbox *mailbox, tarn_job_fn fn, void *arg);
/* Posts and waits until it ran (the caller's thread counts as waiting). Not from the same mailbox. */
void tarn_mailbox_call(struct tarn_mailbox *mailbox, tarn_job_fn fn, void *arg);
size_t tarn_mailbox_count(struct tarn_mailbox *mailbox);    /* jobs not yet begun */
void tarn_assert_owner(const struct tarn_mailbox *mailbox); /* the caller runs one of its jobs */
void tarn_assert_may_wait(void);                            /* not on a loop or gRPC thread */
void tarn_exec_mark_loop_thread(void); /* this thread must not wait from now on */

/* Around waits longer than a disk's: lets the pool start another thread meanwhile. Nests. */
void tarn_exec_wait_begin(void);
void tarn_exec_wait_end(void);
/* Takes a lock whose holder may wait for a job: who queues up for it counts as waiting, and so doesn't keep that job out of
 * the pool. */
void tarn_exec_lock(pthread_mutex_t *lock);
void tarn_exec_read_lock(pthread_rwlock_t *lock);
void tarn_exec_write_lock(pthread_rwlock_t *lock);

/* repeat_ms 0: once. The job is posted to the pool; the handle is the caller's to cancel. */
struct tarn_timer *tarn_timer_new(struct tarn_exec *exec, int64_t after_ms, int64_t repeat_ms,
                                  tarn_job_fn fn, void *arg);
void tarn_timer_cancel(struct tarn_timer *timer); /* waits for a running one (not in its own
                                                   * job, where it is fine too); frees; NULL is fine */

/* Signals of the process: block them in all threads first (tarn_signals_block in main, before any
 * thread), then the loop delivers each as a job. SIGPIPE is ignored. */
void tarn_signals_block(void);
void tarn_exec_on_signal(struct tarn_exec *exec, int signal, tarn_job_fn fn, void *arg);

/* --- child processes --- */
struct tarn_child_spec {
    const char *const *argv;        /* NULL terminated; argv[0] is the path */
    const char *const *environment; /* NULL: this process' */
    int64_t memory_max_bytes;       /* RLIMIT_DATA of the child; 0: none */
    bool die_with_parent;           /* killed when this process ends, however that is */
};
/* The two wishes travel as variables TARN_MEMORY_MAX and TARN_PARENT_PID (posix_spawn can't set
 * them without a race), and the child's main obeys them first thing: */
void tarn_die_with_parent(void);                       /* nothing without the variable */
TARN_MUST struct tarn_status *tarn_limit_memory(void); /* OK without the variable */

typedef void (*tarn_child_ended_fn)(void *arg, pid_t pid, int wait_status);
/* posix_spawn; signals reset, own process group, standard input empty. `ended` runs as a job exactly
 * once, unless tarn_exec_free comes first. The kernel takes the end of the calling *thread* for the
 * parent's: call it on main's or a pool thread, which live as long as the tarn_exec. */
TARN_MUST struct tarn_status *tarn_child_start(struct tarn_exec *exec,
                                               const struct tarn_child_spec *spec,
                                               tarn_child_ended_fn ended, void *arg, pid_t *out);

/* --- waiting for something another thread will do --- */
struct tarn_gate; /* closed until opened, once */
struct tarn_gate *tarn_gate_new(void);
void tarn_gate_free(struct tarn_gate *gate);
void tarn_gate_open(struct tarn_gate *gate);
/* False: the op was cancelled or its deadline passed first (op NULL: waits for ever). */
bool tarn_gate_wait(struct tarn_gate *gate, const struct tarn_op *op);

#endif
