#include "exec/internal.h"

#include <stdlib.h>

/*
 * Loop thread: on_time posts run_timer; pool: run_timer calls the job; anywhere: cancel.
 *
 * T1  References: the handle's, and one of each posted run_timer. The last one to go frees.
 * T2  is_cancelled is set under the lock, and the event is re-armed and the job begun only under it
 *     while that is false: so event_del in cancel is final, and no job begins afterwards.
 * T3  A tick is dropped while the job of the one before it is posted or runs.
 */
struct tarn_timer {
    struct tarn_exec *exec;
    struct event *event;
    int64_t repeat_ms;
    tarn_job_fn fn;
    void *arg;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ended;
    int ref_count;
    bool is_cancelled;
    bool is_posted;
    bool is_running;
    pthread_t runner; /* while is_running */
};

static void unlock_and_unref(struct tarn_timer *timer)
{
    bool is_last = --timer->ref_count == 0;
    pthread_mutex_unlock(&timer->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&timer->ended);
    pthread_mutex_destroy(&timer->lock);
    free(timer);
}

static void run_timer(void *arg)
{
    struct tarn_timer *timer = arg;
    pthread_mutex_lock(&timer->lock);
    if (!timer->is_cancelled) {
        timer->is_running = true;
        timer->runner = pthread_self();
        pthread_mutex_unlock(&timer->lock);
        timer->fn(timer->arg);
        pthread_mutex_lock(&timer->lock);
        timer->is_running = false;
    }
    timer->is_posted = false;
    pthread_cond_broadcast(&timer->ended);
    unlock_and_unref(timer);
}

static void arm(struct tarn_timer *timer, int64_t after_ms)
{
    struct timeval after = {.tv_sec = after_ms / 1000, .tv_usec = after_ms % 1000 * 1000};
    int failed = event_add(timer->event, &after);
    tarn_assert(failed == 0);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    struct tarn_timer *timer = arg;
    pthread_mutex_lock(&timer->lock);
    if (!timer->is_cancelled) {
        if (timer->repeat_ms > 0)
            arm(timer, timer->repeat_ms);
        if (!timer->is_posted) {
            timer->is_posted = true;
            timer->ref_count++;
            tarn_exec_post(timer->exec, run_timer, timer);
        }
    }
    pthread_mutex_unlock(&timer->lock);
}

struct tarn_timer *tarn_timer_new(struct tarn_exec *exec, int64_t after_ms, int64_t repeat_ms,
                                  tarn_job_fn fn, void *arg)
{
    struct tarn_timer *timer = tarn_calloc(1, sizeof *timer);
    timer->exec = exec;
    timer->repeat_ms = repeat_ms;
    timer->fn = fn;
    timer->arg = arg;
    timer->ref_count = 1;
    pthread_mutex_init(&timer->lock, NULL);
    pthread_cond_init(&timer->ended, NULL);
    timer->event =
        event_new(tarn_exec__base(tarn_exec__loop_of(exec)), -1, EV_TIMEOUT, on_time, timer);
    tarn_assert(timer->event != NULL);
    arm(timer, TARN_MAX(after_ms, (int64_t)0));
    return timer;
}

void tarn_timer_cancel(struct tarn_timer *timer)
{
    if (timer == NULL)
        return;
    pthread_mutex_lock(&timer->lock);
    timer->is_cancelled = true;
    pthread_mutex_unlock(&timer->lock);
    event_free(timer->event); /* waits for on_time, if it runs right now; T2 */

    tarn_exec_wait_begin();
    pthread_mutex_lock(&timer->lock);
    /* From the timer's own job: there is nothing to wait for, run_timer drops the last reference. */
    while (timer->is_running && !pthread_equal(timer->runner, pthread_self()))
        pthread_cond_wait(&timer->ended, &timer->lock);
    unlock_and_unref(timer);
    tarn_exec_wait_end();
}
