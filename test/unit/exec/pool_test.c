/*
 * Promise: every posted job runs once; at most core_count run at a time, and others run on while
 * some wait; free runs what is left.
 */
#include "test.h"

#include <semaphore.h>
#include <unistd.h>

#include "exec/exec.h"

struct counter {
    struct tarn_exec *exec;
    atomic_int ran;
    atomic_int now;
    atomic_int most;
};

static void count(void *arg)
{
    struct counter *c = arg;
    int now = atomic_fetch_add(&c->now, 1) + 1, most = atomic_load(&c->most);
    while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now))
        ;
    atomic_fetch_add(&c->ran, 1);
    atomic_fetch_sub(&c->now, 1);
}

TARN_TEST(pool, runs_each_job_once_and_core_count_at_a_time)
{
    struct counter c = {0};
    struct tarn_exec *exec = tarn_exec_new(2, 8);
    for (int i = 0; i < 5000; i++)
        tarn_exec_post(exec, count, &c);
    tarn_exec_free(exec);
    expect_int(atomic_load(&c.ran), 5000);
    expect_true(atomic_load(&c.most) <= 2);
}

static void post_more(void *arg)
{
    struct counter *c = arg;
    if (atomic_fetch_add(&c->ran, 1) < 99)
        tarn_exec_post(c->exec, post_more, c);
}

TARN_TEST(pool, free_runs_also_what_jobs_post)
{
    struct counter c = {.exec = tarn_exec_new(1, 1)};
    tarn_exec_post(c.exec, post_more, &c);
    tarn_exec_free(c.exec);
    expect_int(atomic_load(&c.ran), 100);
}

TARN_TEST(pool, starts_and_ends_without_a_job)
{
    for (int i = 0; i < 50; i++)
        tarn_exec_free(tarn_exec_new(2, 4));
    tarn_exec_free(NULL);
}

struct waiter {
    struct tarn_gate *gate;
    atomic_int *waiting;
    atomic_int *done;
};

static void wait_for_gate(void *arg)
{
    struct waiter *w = arg;
    tarn_exec_wait_begin(); /* nests with the gate's own */
    atomic_fetch_add(w->waiting, 1);
    tarn_gate_wait(w->gate, NULL);
    tarn_exec_wait_end();
    atomic_fetch_add(w->done, 1);
}

static void open_gate(void *arg)
{
    tarn_gate_open(arg);
}

TARN_TEST(pool, grows_while_jobs_wait_for_a_later_job)
{
    struct tarn_exec *exec = tarn_exec_new(1, 8);
    struct tarn_gate *gate = tarn_gate_new();
    atomic_int waiting = 0, done = 0;
    struct waiter w = {gate, &waiting, &done};
    for (int i = 0; i < 7; i++)
        tarn_exec_post(exec, wait_for_gate, &w);
    tarn_exec_post(exec, open_gate, gate); /* the eighth thread's */
    tarn_exec_free(exec);
    expect_int(atomic_load(&waiting), 7);
    expect_int(atomic_load(&done), 7);
    tarn_gate_free(gate);
}

static void do_nothing(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

struct nested {
    struct tarn_exec *exec;
    atomic_int ran;
    int depth;
};

/* Each job posts another and waits for it: fifty threads deep. */
static void post_and_wait(void *arg)
{
    struct nested *n = arg;
    struct tarn_mailbox *mailbox = tarn_mailbox_new(n->exec, "nested");
    if (n->depth-- > 0)
        tarn_mailbox_call(mailbox, post_and_wait, n);
    tarn_mailbox_free(mailbox);
    do_nothing(&n->ran);
}

TARN_TEST(pool, survives_waits_as_deep_as_thread_max)
{
    struct nested n = {.exec = tarn_exec_new(1, 52), .depth = 50};
    tarn_exec_post(n.exec, post_and_wait, &n);
    tarn_exec_free(n.exec);
    expect_int(atomic_load(&n.ran), 51);
}

TARN_TEST(gate, opens_once_for_all)
{
    struct tarn_gate *gate = tarn_gate_new();
    t->op->deadline_mono_ms = tarn_clock_mono_ms() + 30;
    expect_false(tarn_gate_wait(gate, t->op)); /* its deadline */
    t->op->deadline_mono_ms = INT64_MAX;
    tarn_op_cancel(t->op);
    expect_false(tarn_gate_wait(gate, t->op)); /* cancelled */
    tarn_gate_open(gate);
    expect_true(tarn_gate_wait(gate, t->op)); /* open counts first */
    expect_true(tarn_gate_wait(gate, NULL));
    tarn_gate_free(gate);
    tarn_gate_free(NULL);
}

static void note_thread(void *arg)
{
    struct counter *c = arg;
    static _Thread_local bool known;
    if (!known)
        atomic_fetch_add(&c->now, 1); /* so many threads took part */
    known = true;
    usleep(100);
    atomic_fetch_add(&c->ran, 1);
}

TARN_TEST(pool, many_posts_in_a_row_need_no_more_threads_than_run)
{
    struct counter c = {0};
    struct tarn_exec *exec = tarn_exec_new(2, 64);
    for (int i = 0; i < 500; i++)
        tarn_exec_post(exec, note_thread, &c);
    tarn_exec_free(exec);
    expect_int(atomic_load(&c.ran), 500);
    expect_true(atomic_load(&c.now) <= 2);
}

struct last {
    struct tarn_exec *exec;
    struct tarn_gate *ran;
    bool waits;
};

static void open_last(void *arg)
{
    tarn_gate_open(((struct last *)arg)->ran);
}

static void post_last(void *arg)
{
    struct last *l = arg;
    tarn_exec_post_last(l->exec, open_last, l);
    if (l->waits) /* then another thread takes it */
        tarn_gate_wait(l->ran, NULL);
}

TARN_TEST(pool, runs_what_was_posted_last)
{
    for (int i = 0; i < 3; i++) {
        struct last l = {tarn_exec_new(2, 8), tarn_gate_new(), i == 1};
        if (i == 2) /* by no thread of the pool */
            post_last(&l);
        else
            tarn_exec_post(l.exec, post_last, &l);
        expect_true(tarn_gate_wait(l.ran, NULL));
        tarn_exec_free(l.exec);
        tarn_gate_free(l.ran);
    }
}

/* --- a lock whose holder waits for a job --- */

#define QUEUED 2 /* as many as the pool's cores */

struct held {
    struct tarn_exec *exec;
    struct tarn_mailbox *mailbox;
    pthread_mutex_t mutex;
    pthread_rwlock_t door;
    bool is_door;
    sem_t came; /* once for each that is about to take the lock */
    atomic_int ran;
};

static void lock(struct held *h, bool to_write)
{
    if (!h->is_door)
        tarn_exec_lock(&h->mutex);
    else if (to_write)
        tarn_exec_write_lock(&h->door);
    else
        tarn_exec_read_lock(&h->door);
}

static void unlock(struct held *h)
{
    if (h->is_door)
        pthread_rwlock_unlock(&h->door);
    else
        pthread_mutex_unlock(&h->mutex);
    atomic_fetch_add(&h->ran, 1);
}

static void queue_up(void *arg)
{
    struct held *h = arg;
    sem_post(&h->came);
    lock(h, false);
    unlock(h);
}

static void hold(void *arg)
{
    struct held *h = arg;
    lock(h, true);
    for (int i = 0; i < QUEUED; i++)
        tarn_exec_post(h->exec, queue_up, h);
    tarn_exec_wait_begin();
    for (int i = 0; i < QUEUED; i++)
        sem_wait(&h->came);
    tarn_exec_wait_end();
    tarn_mailbox_call(h->mailbox, do_nothing, &h->ran); /* needs a thread of the pool */
    unlock(h);
}

TARN_TEST(pool, those_who_queue_up_for_a_lock_keep_no_job_out)
{
    struct held h = {.exec = tarn_exec_new(QUEUED, 8)};
    h.mailbox = tarn_mailbox_new(h.exec, "m");
    pthread_mutex_init(&h.mutex, NULL);
    pthread_rwlock_init(&h.door, NULL);
    sem_init(&h.came, 0, 0);
    for (int round = 1; round <= 2; round++) {
        h.is_door = round == 2;
        tarn_exec_post(h.exec, hold, &h);
        while (atomic_load(&h.ran) < round * (QUEUED + 2))
            usleep(1000);
    }
    tarn_mailbox_free(h.mailbox);
    tarn_exec_free(h.exec);
    sem_destroy(&h.came);
    pthread_rwlock_destroy(&h.door);
    pthread_mutex_destroy(&h.mutex);
}
