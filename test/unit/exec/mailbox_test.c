/*
 * Promise: a mailbox runs its jobs in order of arrival, one at a time, so that what it owns needs no
 * lock; a busy one doesn't starve others; call returns when its job ran.
 */
#include "test.h"

#include <pthread.h>

#include "exec/exec.h"

#define POSTERS 4
#define POSTS 5000

struct owned {
    struct tarn_mailbox *mailbox;
    int64_t last[POSTERS]; /* no lock: the mailbox owns it */
    int64_t count;
    bool in_order;
};

struct message {
    struct owned *owned;
    int poster;
    int64_t number;
};

static void receive(void *arg)
{
    struct message *m = arg;
    tarn_assert_owner(m->owned->mailbox);
    m->owned->in_order &= m->number == m->owned->last[m->poster] + 1;
    m->owned->last[m->poster] = m->number;
    m->owned->count++;
    free(m);
}

static void *post_all(void *arg)
{
    struct message *from = arg;
    for (int64_t i = 1; i <= POSTS; i++) {
        struct message *m = tarn_alloc(sizeof *m);
        *m = (struct message){from->owned, from->poster, i};
        tarn_mailbox_post(from->owned->mailbox, receive, m);
    }
    return NULL;
}

TARN_TEST(mailbox, is_serial_and_in_order_of_arrival)
{
    struct tarn_exec *exec = tarn_exec_new(3, 6);
    struct owned owned = {.mailbox = tarn_mailbox_new(exec, "box"), .in_order = true};
    pthread_t threads[POSTERS];
    struct message from[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        from[i] = (struct message){&owned, i, 0};
        expect_int(pthread_create(&threads[i], NULL, post_all, &from[i]), 0);
    }
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    tarn_mailbox_free(owned.mailbox); /* waits until it is empty */
    expect_int(owned.count, POSTERS * POSTS);
    expect_true(owned.in_order);
    tarn_exec_free(exec);
}

static void add_one(void *arg)
{
    (*(int *)arg)++;
}

TARN_TEST(mailbox, call_returns_when_its_job_ran)
{
    struct tarn_exec *exec = tarn_exec_new(1, 2);
    struct tarn_mailbox *mailbox = tarn_mailbox_new(exec, "box");
    int number = 0;
    for (int i = 0; i < 1000; i++) {
        tarn_mailbox_call(mailbox, add_one, &number);
        expect_int(number, i + 1);
    }
    expect_uint(tarn_mailbox_count(mailbox), 0);
    tarn_mailbox_free(mailbox);
    tarn_mailbox_free(NULL);
    tarn_exec_free(exec);
}

struct busy {
    struct tarn_mailbox *mailbox;
    atomic_bool stop;
};

static void post_again(void *arg)
{
    struct busy *b = arg;
    if (!atomic_load(&b->stop))
        tarn_mailbox_post(b->mailbox, post_again, b);
}

TARN_TEST(mailbox, that_never_empties_lets_others_run)
{
    struct tarn_exec *exec = tarn_exec_new(1, 1);
    struct busy busy = {.mailbox = tarn_mailbox_new(exec, "busy")};
    struct tarn_mailbox *other = tarn_mailbox_new(exec, "other");
    int number = 0;
    tarn_mailbox_post(busy.mailbox, post_again, &busy);
    tarn_mailbox_call(other, add_one, &number); /* would never return */
    expect_int(number, 1);
    atomic_store(&busy.stop, true);
    tarn_mailbox_free(other);
    tarn_mailbox_free(busy.mailbox);
    tarn_exec_free(exec);
}

TARN_TEST(mailbox, may_be_freed_as_soon_as_it_is_empty)
{
    struct tarn_exec *exec = tarn_exec_new(2, 4);
    int number = 0;
    for (int i = 0; i < 2000; i++) {
        struct tarn_mailbox *mailbox = tarn_mailbox_new(exec, "short");
        tarn_mailbox_post(mailbox, add_one, &number);
        tarn_mailbox_free(mailbox);
    }
    expect_int(number, 2000);
    tarn_exec_free(exec);
}
