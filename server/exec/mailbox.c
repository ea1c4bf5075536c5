#include "exec/internal.h"

#include <stdlib.h>

/* A mailbox gives its thread back after this many jobs, so that a busy one can't starve others. */
#define MAILBOX_TURN_JOBS 32

/*
 *   idle --post--> scheduled --a pool thread--> running --empty--> idle
 *                      ^                           |
 *                      +-------- turn over --------+
 *
 * M1  At most one pool job (run_turn) exists per mailbox: exactly while is_scheduled.
 */
struct tarn_mailbox {
    struct tarn_exec *exec;
    char *name;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct tarn_exec__queue queue;
    bool is_scheduled;
};

static _Thread_local const struct tarn_mailbox *my_mailbox; /* whose job this thread runs */

struct tarn_mailbox *tarn_mailbox_new(struct tarn_exec *exec, const char *name)
{
    struct tarn_mailbox *mailbox = tarn_calloc(1, sizeof *mailbox);
    mailbox->exec = exec;
    mailbox->name = tarn_strdup(name);
    pthread_mutex_init(&mailbox->lock, NULL);
    pthread_cond_init(&mailbox->idle, NULL);
    return mailbox;
}

void tarn_mailbox_free(struct tarn_mailbox *mailbox)
{
    if (mailbox == NULL)
        return;
    tarn_assert(my_mailbox != mailbox);
    tarn_assert_may_wait();
    tarn_exec_wait_begin();
    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->is_scheduled)
        pthread_cond_wait(&mailbox->idle, &mailbox->lock);
    pthread_mutex_unlock(&mailbox->lock);
    tarn_exec_wait_end();

    pthread_cond_destroy(&mailbox->idle);
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox->name);
    free(mailbox);
}

/* Runs jobs; true: the turn is over, but there are more. */
static bool run_some(struct tarn_mailbox *mailbox)
{
    for (int i = 0;; i++) {
        tarn_job_fn fn = NULL;
        void *arg = NULL;
        pthread_mutex_lock(&mailbox->lock);
        if (i == MAILBOX_TURN_JOBS && mailbox->queue.first != NULL) {
            pthread_mutex_unlock(&mailbox->lock);
            return true;
        }
        if (!tarn_exec__queue_take(&mailbox->queue, &fn, &arg)) {
            mailbox->is_scheduled = false;
            pthread_cond_broadcast(&mailbox->idle);
            pthread_mutex_unlock(&mailbox->lock); /* from here on it may be freed */
            return false;
        }
        pthread_mutex_unlock(&mailbox->lock);
        fn(arg);
    }
}

static void run_turn(void *arg)
{
    struct tarn_mailbox *mailbox = arg;
    my_mailbox = mailbox;
    bool has_more = run_some(mailbox);
    my_mailbox = NULL;
    if (has_more) /* still scheduled (M1), so nobody frees it */
        tarn_exec_post(mailbox->exec, run_turn, mailbox);
}

/* True: run_turn is to be posted (M1). */
static bool put(struct tarn_mailbox *mailbox, tarn_job_fn fn, void *arg)
{
    pthread_mutex_lock(&mailbox->lock);
    tarn_exec__queue_put(&mailbox->queue, fn, arg);
    bool must_schedule = !mailbox->is_scheduled;
    mailbox->is_scheduled = true;
    pthread_mutex_unlock(&mailbox->lock);
    return must_schedule;
}

void tarn_mailbox_post(struct tarn_mailbox *mailbox, tarn_job_fn fn, void *arg)
{
    if (put(mailbox, fn, arg))
        tarn_exec_post(mailbox->exec, run_turn, mailbox);
}

void tarn_mailbox_post_last(struct tarn_mailbox *mailbox, tarn_job_fn fn, void *arg)
{
    if (put(mailbox, fn, arg))
        tarn_exec_post_last(mailbox->exec, run_turn, mailbox);
}

struct call {
    tarn_job_fn fn;
    void *arg;
    struct tarn_gate *done;
};

static void run_call(void *arg)
{
    struct call *call = arg;
    call->fn(call->arg);
    tarn_gate_open(call->done);
}

void tarn_mailbox_call(struct tarn_mailbox *mailbox, tarn_job_fn fn, void *arg)
{
    tarn_assert(my_mailbox != mailbox);
    struct call call = {fn, arg, tarn_gate_new()};
    tarn_mailbox_post(mailbox, run_call, &call);
    bool ran = tarn_gate_wait(call.done, NULL);
    tarn_assert(ran);
    tarn_gate_free(call.done);
}

size_t tarn_mailbox_count(struct tarn_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    size_t count = mailbox->queue.count;
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}

void tarn_assert_owner(const struct tarn_mailbox *mailbox)
{
    tarn_assert(my_mailbox == mailbox);
}
