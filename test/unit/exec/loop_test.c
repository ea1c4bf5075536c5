/*
 * Promise: timers fire after their time, once or repeatedly, never after cancel has returned;
 * signals become jobs.
 */
#include "test.h"

#include <signal.h>
#include <unistd.h>

#include "exec/exec.h"

struct ticks {
    struct tarn_gate *third;
    _Atomic(struct tarn_timer *) timer; /* may fire before the test has the handle */
    atomic_int count;
    atomic_int now;
    int slow_ms;
};

static void tick(void *arg)
{
    struct ticks *ticks = arg;
    tarn_assert(atomic_fetch_add(&ticks->now, 1) == 0); /* never two at once */
    usleep((useconds_t)ticks->slow_ms * 1000);
    if (atomic_fetch_add(&ticks->count, 1) + 1 == 3)
        tarn_gate_open(ticks->third);
    atomic_fetch_sub(&ticks->now, 1);
}

TARN_TEST(timer, fires_once_and_not_early)
{
    struct tarn_exec *exec = tarn_exec_new(1, 2);
    struct ticks ticks = {.third = tarn_gate_new()};
    atomic_store(&ticks.count, 2); /* the first one opens the gate */
    int64_t begin = tarn_clock_mono_ns();
    struct tarn_timer *timer = tarn_timer_new(exec, 20, 0, tick, &ticks);
    expect_true(tarn_gate_wait(ticks.third, NULL));
    expect_true(tarn_clock_mono_ns() - begin >= 20000000);
    usleep(30000);
    tarn_timer_cancel(timer);
    expect_int(atomic_load(&ticks.count), 3);
    tarn_gate_free(ticks.third);
    tarn_exec_free(exec);
}

TARN_TEST(timer, repeats_until_cancelled_and_never_overlaps)
{
    struct tarn_exec *exec = tarn_exec_new(4, 8);
    struct ticks ticks = {.third = tarn_gate_new(), .slow_ms = 5};
    struct tarn_timer *timer = tarn_timer_new(exec, 0, 1, tick, &ticks);
    expect_true(tarn_gate_wait(ticks.third, NULL));
    tarn_timer_cancel(timer);
    int count = atomic_load(&ticks.count);
    expect_int(atomic_load(&ticks.now), 0); /* cancel waited for the running one */
    usleep(20000);
    expect_int(atomic_load(&ticks.count), count);
    tarn_gate_free(ticks.third);
    tarn_exec_free(exec);
}

TARN_TEST(timer, may_be_cancelled_at_any_moment)
{
    struct tarn_exec *exec = tarn_exec_new(2, 4);
    struct ticks ticks = {.third = tarn_gate_new()};
    for (int i = 0; i < 500; i++) {
        struct tarn_timer *timer = tarn_timer_new(exec, i % 3, 1, tick, &ticks);
        usleep((useconds_t)tarn_test_random_below(t, 3000));
        tarn_timer_cancel(timer);
    }
    tarn_timer_cancel(NULL);
    tarn_exec_free(exec);
    tarn_gate_free(ticks.third);
}

static void cancel_itself(void *arg)
{
    struct ticks *ticks = arg;
    atomic_fetch_add(&ticks->count, 1);
    while (atomic_load(&ticks->timer) == NULL)
        usleep(100);
    tarn_timer_cancel(atomic_load(&ticks->timer));
    tarn_gate_open(ticks->third);
}

TARN_TEST(timer, may_be_cancelled_by_its_own_job)
{
    struct tarn_exec *exec = tarn_exec_new(1, 2);
    struct ticks ticks = {.third = tarn_gate_new()};
    atomic_store(&ticks.timer, tarn_timer_new(exec, 20, 1, cancel_itself, &ticks));
    expect_true(tarn_gate_wait(ticks.third, NULL));
    usleep(10000);
    tarn_exec_free(exec);
    expect_int(atomic_load(&ticks.count), 1);
    tarn_gate_free(ticks.third);
}

TARN_TEST(signal, becomes_a_job)
{
    tarn_signals_block();
    struct tarn_exec *exec = tarn_exec_new(1, 2);
    struct ticks ticks = {.third = tarn_gate_new()};
    atomic_store(&ticks.count, 1);
    tarn_exec_on_signal(exec, SIGUSR1, tick, &ticks);
    tarn_exec_on_signal(exec, SIGHUP, tick, &ticks);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGPIPE); /* ignored */
    expect_true(tarn_gate_wait(ticks.third, NULL));
    tarn_exec_free(exec);
    expect_int(atomic_load(&ticks.count), 3);
    tarn_gate_free(ticks.third);
}
