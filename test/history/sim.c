#include "sim.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "exec/exec.h"

#define NONE INT64_MAX
#define WALL_START_S 1700000000 /* what the wall clock says at sim_start */
#define THREADS_MAX 4096

/*
 *   running --waits--> blocked --woken, or its deadline is over--> runnable --drawn--> running
 *
 * S1  Only the running thread touches anything below; the token is passed by posting the other's semaphore.
 */
struct thread {
    int number;
    bool runnable, finished;
    const void *waits_for; /* address of a lock, condition or thread; NULL: of time alone */
    int64_t deadline_ns;
    bool timed_out;
    sem_t turn;
    pthread_t handle;
    void *(*fn)(void *);
    void *arg;
};

static struct thread *threads[THREADS_MAX];
static int thread_count;
static bool active;
static int64_t now_ns, limit_ns;
static int preempt;
static bool pinned;
static uint64_t dice_state[SIM_DICE_COUNT];
static void (*on_stuck)(const char *why);
static _Thread_local struct thread *me;

/* --- dice --- */

uint64_t sim_random(enum sim_dice dice)
{
    uint64_t z = dice_state[dice] += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t sim_between(enum sim_dice dice, int64_t low, int64_t high)
{
    return low + (int64_t)(sim_random(dice) % (uint64_t)(high - low + 1));
}

bool sim_chance(enum sim_dice dice, int per_mille)
{
    return sim_between(dice, 0, 999) < per_mille;
}

/* --- the token --- */

static void stuck(const char *why)
{
    for (int i = 0; i < thread_count; i++)
        if (!threads[i]->finished)
            fprintf(stderr, "thread %d: %s, waits for %p until %" PRId64 " ms\n", i,
                    threads[i]->runnable ? "runnable" : "blocked", threads[i]->waits_for,
                    threads[i]->deadline_ns == NONE ? -1 : threads[i]->deadline_ns / 1000000);
    on_stuck(why);
    abort();
}

/* Time moves only here. False: nobody has a deadline. */
static bool skip_time(void)
{
    int64_t next = NONE;
    for (int i = 0; i < thread_count; i++)
        if (!threads[i]->finished)
            next = TARN_MIN(next, threads[i]->deadline_ns);
    if (next == NONE)
        return false;
    now_ns = TARN_MAX(now_ns, next);
    for (int i = 0; i < thread_count; i++) {
        struct thread *t = threads[i];
        if (!t->finished && !t->runnable && t->deadline_ns <= now_ns) {
            t->runnable = t->timed_out = true;
            t->deadline_ns = NONE;
        }
    }
    return true;
}

static struct thread *draw(void)
{
    for (;;) {
        int count = 0;
        for (int i = 0; i < thread_count; i++)
            count += !threads[i]->finished && threads[i]->runnable;
        if (count == 0) {
            if (!skip_time())
                stuck("everybody waits for ever");
            if (now_ns > limit_ns)
                stuck("the run takes too long");
            continue;
        }
        int nth = count == 1 ? 0 : (int)sim_between(SIM_SCHEDULE, 0, count - 1);
        for (int i = 0; i < thread_count; i++)
            if (!threads[i]->finished && threads[i]->runnable && nth-- == 0)
                return threads[i];
    }
}

static void wait_turn(struct thread *t)
{
    while (sem_wait(&t->turn) != 0 && errno == EINTR) {}
}

static void pass_on(void)
{
    struct thread *next = draw();
    if (next == me)
        return;
    sem_post(&next->turn);
    wait_turn(me);
}

static void block(const void *waits_for, int64_t deadline_ns)
{
    tarn_assert(!pinned);
    me->runnable = me->timed_out = false;
    me->waits_for = waits_for;
    me->deadline_ns = deadline_ns;
    pass_on();
    me->waits_for = NULL;
    me->deadline_ns = NONE;
}

static void wake(struct thread *t)
{
    t->runnable = true;
    t->deadline_ns = NONE;
}

static void wake_all(const void *address)
{
    for (int i = 0; i < thread_count; i++)
        if (!threads[i]->finished && !threads[i]->runnable && threads[i]->waits_for == address)
            wake(threads[i]);
}

/* POSIX leaves open which waiter a signal wakes. */
static void wake_one(const void *address)
{
    int count = 0;
    for (int i = 0; i < thread_count; i++)
        count += !threads[i]->finished && !threads[i]->runnable && threads[i]->waits_for == address;
    int nth = count <= 1 ? 0 : (int)sim_between(SIM_SCHEDULE, 0, count - 1);
    for (int i = 0; i < thread_count; i++)
        if (!threads[i]->finished && !threads[i]->runnable && threads[i]->waits_for == address &&
            nth-- == 0) {
            wake(threads[i]);
            return;
        }
}

static void maybe_preempt(void)
{
    if (preempt > 0 && !pinned && sim_chance(SIM_SCHEDULE, preempt))
        pass_on();
}

int64_t sim_now_ms(void)
{
    return now_ns / 1000000;
}

void sim_sleep_ms(int64_t ms)
{
    block(NULL, now_ns + ms * 1000000);
}

bool sim_pin(void)
{
    bool before = pinned;
    pinned = true;
    return before;
}

void sim_unpin(bool *before)
{
    pinned = *before;
}

int sim_thread_number(void)
{
    return me == NULL ? -1 : me->number;
}

static struct thread *thread_new(void)
{
    tarn_assert(thread_count < THREADS_MAX);
    struct thread *t = tarn_calloc(1, sizeof *t);
    t->number = thread_count;
    t->runnable = true;
    t->deadline_ns = NONE;
    sem_init(&t->turn, 0, 0);
    threads[thread_count++] = t;
    return t;
}

void sim_start(uint64_t seed, int preempt_per_mille, int64_t limit_ms, void (*fn)(const char *))
{
    tarn_assert(!active);
    for (int i = 0; i < SIM_DICE_COUNT; i++) {
        dice_state[i] = seed * 0x2545f4914f6cdd1du + (uint64_t)i * 0x632be59bd9b4e019u;
        sim_random((enum sim_dice)i);
    }
    thread_count = 0;
    now_ns = 0;
    limit_ns = limit_ms * 1000000;
    preempt = preempt_per_mille;
    on_stuck = fn;
    me = thread_new();
    active = true;
}

void sim_stop(void)
{
    for (int i = 0; i < thread_count; i++) {
        tarn_assert(threads[i] == me || threads[i]->finished);
        sem_destroy(&threads[i]->turn);
        free(threads[i]);
    }
    thread_count = 0;
    me = NULL;
    active = false;
}

/* --- what the link puts in the place of the C library's --- */

#define REAL(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

static void *run(void *arg)
{
    me = arg;
    wait_turn(me);
    void *result = me->fn(me->arg);
    me->finished = true;
    me->runnable = false;
    wake_all(me);
    struct thread *next = draw();
    sem_post(&next->turn);
    return result;
}

REAL(int, pthread_create, pthread_t *out, const pthread_attr_t *attributes, void *(*fn)(void *),
     void *arg)
{
    if (me == NULL)
        return __real_pthread_create(out, attributes, fn, arg);
    struct thread *t = thread_new();
    t->fn = fn;
    t->arg = arg;
    int failed = __real_pthread_create(&t->handle, attributes, run, t);
    tarn_assert(failed == 0);
    *out = t->handle;
    return 0;
}

REAL(int, pthread_join, pthread_t thread, void **result)
{
    for (int i = thread_count; me != NULL && i-- > 0;) { /* the newest of that number */
        if (threads[i] == me || !pthread_equal(threads[i]->handle, thread))
            continue;
        while (!threads[i]->finished)
            block(threads[i], NONE);
        break;
    }
    return __real_pthread_join(thread, result);
}

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);

REAL(int, pthread_mutex_lock, pthread_mutex_t *mutex)
{
    if (me == NULL)
        return __real_pthread_mutex_lock(mutex);
    maybe_preempt();
    int failed;
    while ((failed = pthread_mutex_trylock(mutex)) == EBUSY)
        block(mutex, NONE);
    return failed;
}

REAL(int, pthread_mutex_unlock, pthread_mutex_t *mutex)
{
    int failed = __real_pthread_mutex_unlock(mutex);
    if (me != NULL)
        wake_all(mutex);
    return failed;
}

static int wait_for(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline_ns)
{
    __wrap_pthread_mutex_unlock(mutex);
    block(condition, deadline_ns);
    bool timed_out = me->timed_out;
    while (pthread_mutex_trylock(mutex) == EBUSY)
        block(mutex, NONE);
    return timed_out ? ETIMEDOUT : 0;
}

REAL(int, pthread_cond_wait, pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (me == NULL)
        return __real_pthread_cond_wait(condition, mutex);
    return wait_for(condition, mutex, NONE);
}

REAL(int, pthread_cond_timedwait, pthread_cond_t *condition, pthread_mutex_t *mutex,
     const struct timespec *until)
{
    if (me == NULL)
        return __real_pthread_cond_timedwait(condition, mutex, until);
    int64_t seconds = until->tv_sec >= WALL_START_S ? until->tv_sec - WALL_START_S : until->tv_sec;
    return wait_for(condition, mutex, seconds * 1000000000 + until->tv_nsec);
}

REAL(int, pthread_cond_signal, pthread_cond_t *condition)
{
    if (me == NULL)
        return __real_pthread_cond_signal(condition);
    wake_one(condition);
    return 0;
}

REAL(int, pthread_cond_broadcast, pthread_cond_t *condition)
{
    if (me == NULL)
        return __real_pthread_cond_broadcast(condition);
    wake_all(condition);
    return 0;
}

/* glibc waits for ever in destroy if it counts waiters that were never its own: there are none here. */

REAL(int, pthread_rwlock_rdlock, pthread_rwlock_t *lock)
{
    if (me == NULL)
        return __real_pthread_rwlock_rdlock(lock);
    maybe_preempt();
    int failed;
    while ((failed = pthread_rwlock_tryrdlock(lock)) == EBUSY)
        block(lock, NONE);
    return failed;
}

REAL(int, pthread_rwlock_wrlock, pthread_rwlock_t *lock)
{
    if (me == NULL)
        return __real_pthread_rwlock_wrlock(lock);
    maybe_preempt();
    int failed;
    while ((failed = pthread_rwlock_trywrlock(lock)) == EBUSY)
        block(lock, NONE);
    return failed;
}

REAL(int, pthread_rwlock_unlock, pthread_rwlock_t *lock)
{
    int failed = __real_pthread_rwlock_unlock(lock);
    if (me != NULL)
        wake_all(lock);
    return failed;
}

REAL(int, nanosleep, const struct timespec *wanted, struct timespec *rest)
{
    if (me == NULL)
        return __real_nanosleep(wanted, rest);
    block(NULL, now_ns + wanted->tv_sec * 1000000000 + wanted->tv_nsec);
    return 0;
}

REAL(int, clock_gettime, clockid_t id, struct timespec *out)
{
    if (me == NULL || (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME))
        return __real_clock_gettime(id, out);
    now_ns += 1000; /* a loop that only asks for the time comes to an end */
    out->tv_sec = now_ns / 1000000000 + (id == CLOCK_REALTIME ? WALL_START_S : 0);
    out->tv_nsec = now_ns % 1000000000;
    return 0;
}

REAL(ssize_t, getrandom, void *out, size_t size, unsigned int flags)
{
    if (me == NULL)
        return __real_getrandom(out, size, flags);
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)out)[i] = (uint8_t)sim_random(SIM_NAMES);
    return (ssize_t)size;
}

/* --- exec without its loop thread, which waits in the kernel: timers are threads of their own --- */

struct tarn_exec__loop;
struct tarn_exec__loop *__real_tarn_exec__loop_start(struct tarn_exec *exec);
struct tarn_exec__loop *__wrap_tarn_exec__loop_start(struct tarn_exec *exec);
struct tarn_exec__loop *__wrap_tarn_exec__loop_start(struct tarn_exec *exec)
{
    return me == NULL ? __real_tarn_exec__loop_start(exec) : NULL;
}

REAL(void, tarn_exec__loop_stop, struct tarn_exec__loop *loop)
{
    if (loop != NULL)
        __real_tarn_exec__loop_stop(loop);
}

REAL(void, tarn_exec__loop_free, struct tarn_exec__loop *loop)
{
    if (loop != NULL)
        __real_tarn_exec__loop_free(loop);
}

struct timer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool cancelled, running, own_end; /* own_end: cancelled by its own job */
    int64_t after_ms, repeat_ms;
    tarn_job_fn fn;
    void *arg;
    pthread_t thread;
};

static void timer_free(struct timer *timer)
{
    pthread_mutex_destroy(&timer->lock);
    pthread_cond_destroy(&timer->changed);
    free(timer);
}

static void *run_timer(void *arg)
{
    struct timer *timer = arg;
    pthread_mutex_lock(&timer->lock);
    for (int64_t wait = timer->after_ms; !timer->cancelled; wait = timer->repeat_ms) {
        int64_t until = now_ns + TARN_MAX(wait, (int64_t)1) * 1000000;
        while (!timer->cancelled && now_ns < until)
            wait_for(&timer->changed, &timer->lock, until);
        if (timer->cancelled)
            break;
        timer->running = true;
        pthread_mutex_unlock(&timer->lock);
        timer->fn(timer->arg);
        pthread_mutex_lock(&timer->lock);
        timer->running = false;
        if (timer->repeat_ms <= 0)
            while (!timer->cancelled)
                pthread_cond_wait(&timer->changed, &timer->lock);
    }
    bool own_end = timer->own_end;
    pthread_mutex_unlock(&timer->lock);
    if (own_end)
        timer_free(timer);
    return NULL;
}

struct tarn_timer *__real_tarn_timer_new(struct tarn_exec *exec, int64_t after_ms,
                                         int64_t repeat_ms, tarn_job_fn fn, void *arg);
struct tarn_timer *__wrap_tarn_timer_new(struct tarn_exec *exec, int64_t after_ms,
                                         int64_t repeat_ms, tarn_job_fn fn, void *arg);
struct tarn_timer *__wrap_tarn_timer_new(struct tarn_exec *exec, int64_t after_ms,
                                         int64_t repeat_ms, tarn_job_fn fn, void *arg)
{
    if (me == NULL)
        return __real_tarn_timer_new(exec, after_ms, repeat_ms, fn, arg);
    struct timer *timer = tarn_calloc(1, sizeof *timer);
    timer->after_ms = after_ms;
    timer->repeat_ms = repeat_ms;
    timer->fn = fn;
    timer->arg = arg;
    pthread_mutex_init(&timer->lock, NULL);
    pthread_cond_init(&timer->changed, NULL);
    pthread_create(&timer->thread, NULL, run_timer, timer);
    return (struct tarn_timer *)timer;
}

REAL(void, tarn_timer_cancel, struct tarn_timer *handle)
{
    if (me == NULL || handle == NULL) {
        __real_tarn_timer_cancel(handle);
        return;
    }
    struct timer *timer = (struct timer *)handle;
    bool own = pthread_equal(timer->thread, pthread_self());
    pthread_t thread = timer->thread;
    pthread_mutex_lock(&timer->lock);
    timer->cancelled = true;
    timer->own_end = own;
    pthread_cond_broadcast(&timer->changed);
    pthread_mutex_unlock(&timer->lock);
    if (own) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    timer_free(timer);
}
