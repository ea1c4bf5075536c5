#include "exec/internal.h"

#include <stdlib.h>

/*
 * Four numbers, guarded by lock, say what the threads do: running (in a job), waiting (in a job,
 * between wait_begin and wait_end), idle (in pthread_cond_wait) and coming: signalled or made, not here yet. Many
 * posts in a row call no more of them than may run.
 *
 * P1  A queued job is taken as soon as running < core_count, if a thread is idle or may be made.
 * P2  Whoever changes that condition calls one: post, a thread that took a job while more are
 *     queued, one that ended a job, and wait_begin.
 * P3  A thread that comes back from a wait is never held up: running may exceed core_count then,
 *     until jobs end.
 */
struct tarn_exec {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct tarn_exec__queue queue;
    int core_count;
    int thread_max;
    int running;
    int waiting;
    int idle, coming;
    int thread_count;
    bool stopping;
    pthread_t *threads; /* thread_max of them */
    struct tarn_exec__loop *loop;
};

static _Thread_local struct tarn_exec *my_exec; /* of a pool thread */
static _Thread_local int my_wait_depth;

void tarn_exec__queue_put(struct tarn_exec__queue *queue, tarn_job_fn fn, void *arg)
{
    struct tarn_exec__job *job = tarn_alloc(sizeof *job);
    *job = (struct tarn_exec__job){.fn = fn, .arg = arg};
    if (queue->first == NULL)
        queue->tail = &queue->first;
    *queue->tail = job;
    queue->tail = &job->next;
    queue->count++;
}

bool tarn_exec__queue_take(struct tarn_exec__queue *queue, tarn_job_fn *fn, void **arg)
{
    struct tarn_exec__job *job = queue->first;
    if (job == NULL)
        return false;
    queue->first = job->next;
    queue->count--;
    *fn = job->fn;
    *arg = job->arg;
    free(job);
    return true;
}

static bool may_take(const struct tarn_exec *exec)
{
    return exec->queue.first != NULL && exec->running < exec->core_count;
}

static bool is_over(const struct tarn_exec *exec)
{
    return exec->stopping && exec->queue.first == NULL && exec->running == 0 && exec->waiting == 0;
}

static void *run_thread(void *arg);

/* Under the lock: somebody takes the next job, if there is one and it may run (P1). True: to be signalled once the
 * lock is given up, not to sleep again before it. */
static bool call_one(struct tarn_exec *exec)
{
    if (!may_take(exec) || exec->running + exec->coming >= exec->core_count)
        return false;
    if (exec->idle > 0) {
        exec->idle--;
        exec->coming++;
        return true;
    }
    if (exec->thread_count == exec->thread_max)
        return false;
    if (pthread_create(&exec->threads[exec->thread_count], NULL, run_thread, exec) == 0) {
        exec->thread_count++;
        exec->coming++;
    } else {
        tarn_assert(exec->thread_count > 0); /* else the job would never run */
    }
    return false;
}

/* Under the lock, which it gives up. */
static void unlock_and_wake(struct tarn_exec *exec)
{
    bool idle = call_one(exec);
    pthread_mutex_unlock(&exec->lock);
    if (idle)
        pthread_cond_signal(&exec->work);
}

/* Under the lock: one is here. Nobody called it where it woke by itself, maybe in the place of one that is still to
 * come: the sums are right either way. */
static void come(struct tarn_exec *exec)
{
    if (exec->coming > 0)
        exec->coming--;
    else
        exec->idle--;
}

static void *run_thread(void *arg)
{
    struct tarn_exec *exec = arg;
    my_exec = exec;
    pthread_setname_np(pthread_self(), "tarn-pool");

    pthread_mutex_lock(&exec->lock);
    come(exec);
    while (!is_over(exec)) {
        if (!may_take(exec)) {
            exec->idle++;
            pthread_cond_wait(&exec->work, &exec->lock);
            come(exec);
            continue;
        }
        tarn_job_fn fn = NULL;
        void *job_arg = NULL;
        tarn_exec__queue_take(&exec->queue, &fn, &job_arg);
        exec->running++;
        unlock_and_wake(exec);
        fn(job_arg);
        tarn_assert(my_wait_depth == 0); /* each wait_begin had its wait_end */
        pthread_mutex_lock(&exec->lock);
        exec->running--;
    }
    pthread_cond_broadcast(&exec->work);
    pthread_mutex_unlock(&exec->lock);
    return NULL;
}

struct tarn_exec *tarn_exec_new(int core_count, int thread_max)
{
    struct tarn_exec *exec = tarn_calloc(1, sizeof *exec);
    pthread_mutex_init(&exec->lock, NULL);
    pthread_cond_init(&exec->work, NULL);
    exec->core_count = TARN_MAX(core_count, 1);
    exec->thread_max = TARN_MAX(thread_max, exec->core_count);
    exec->threads = tarn_calloc((size_t)exec->thread_max, sizeof *exec->threads);
    exec->loop = tarn_exec__loop_start(exec);
    return exec;
}

void tarn_exec_free(struct tarn_exec *exec)
{
    if (exec == NULL)
        return;
    tarn_assert(my_exec != exec);
    tarn_exec__loop_stop(exec->loop);

    pthread_mutex_lock(&exec->lock);
    exec->stopping = true;
    pthread_cond_broadcast(&exec->work);
    /* Threads may still be made while running jobs wait: join by number, not by a count taken now. */
    for (int i = 0; i < exec->thread_count; i++) {
        pthread_t thread = exec->threads[i];
        pthread_mutex_unlock(&exec->lock);
        pthread_join(thread, NULL);
        pthread_mutex_lock(&exec->lock);
    }
    tarn_assert(exec->queue.first == NULL);
    pthread_mutex_unlock(&exec->lock);

    tarn_exec__loop_free(exec->loop);
    pthread_cond_destroy(&exec->work);
    pthread_mutex_destroy(&exec->lock);
    free(exec->threads);
    free(exec);
}

void tarn_exec_post(struct tarn_exec *exec, tarn_job_fn fn, void *arg)
{
    pthread_mutex_lock(&exec->lock);
    tarn_exec__queue_put(&exec->queue, fn, arg);
    unlock_and_wake(exec);
}

/* P2: the thread that ends its job, or begins to wait, is this one. */
void tarn_exec_post_last(struct tarn_exec *exec, tarn_job_fn fn, void *arg)
{
    pthread_mutex_lock(&exec->lock);
    tarn_exec__queue_put(&exec->queue, fn, arg);
    if (my_exec == exec && my_wait_depth == 0)
        pthread_mutex_unlock(&exec->lock);
    else
        unlock_and_wake(exec);
}

struct tarn_exec__loop *tarn_exec__loop_of(struct tarn_exec *exec)
{
    return exec->loop;
}

void tarn_exec_wait_begin(void)
{
    struct tarn_exec *exec = my_exec;
    if (exec == NULL || my_wait_depth++ > 0)
        return;
    pthread_mutex_lock(&exec->lock);
    exec->running--;
    exec->waiting++;
    unlock_and_wake(exec);
}

void tarn_exec_wait_end(void)
{
    struct tarn_exec *exec = my_exec;
    if (exec == NULL)
        return;
    tarn_assert(my_wait_depth > 0);
    if (--my_wait_depth > 0)
        return;
    pthread_mutex_lock(&exec->lock);
    exec->waiting--;
    exec->running++; /* P3 */
    pthread_mutex_unlock(&exec->lock);
}

void tarn_exec_lock(pthread_mutex_t *lock)
{
    if (pthread_mutex_trylock(lock) == 0)
        return;
    tarn_exec_wait_begin();
    pthread_mutex_lock(lock);
    tarn_exec_wait_end();
}

void tarn_exec_read_lock(pthread_rwlock_t *lock)
{
    if (pthread_rwlock_tryrdlock(lock) == 0)
        return;
    tarn_exec_wait_begin();
    pthread_rwlock_rdlock(lock);
    tarn_exec_wait_end();
}

void tarn_exec_write_lock(pthread_rwlock_t *lock)
{
    if (pthread_rwlock_trywrlock(lock) == 0)
        return;
    tarn_exec_wait_begin();
    pthread_rwlock_wrlock(lock);
    tarn_exec_wait_end();
}
