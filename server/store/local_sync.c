/*
 * Syncs many files at once. A disk's sync costs what its slowest step costs, not what the files hold,
 * and a journal takes all that wait for it in one write: side by side they take the time of one.
 *
 * The crew: threads that only sync, made when there is work that none of them is free for, kept for
 * the next time, joined when the store closes. Who asks takes part, so that it goes on, slower, where
 * no thread can be made.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "store/local.h"

#define THREAD_STACK_SIZE ((size_t)256 << 10)

struct sync_group {
    size_t pending; /* tasks not done; guarded by the crew's mutex */
    pthread_cond_t done;
};

struct sync_task {
    struct sync_task *next;
    struct sync_group *group;
    int fd;
    int *error;
};

struct sync_crew {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work;
    struct sync_task *first, *last; /* not begun */
    size_t waiting_count;           /* of them */
    size_t idle_count;              /* threads */
    size_t thread_count;
    pthread_t threads[TARN_STORE_SYNC_THREADS_MAX];
    bool stop;
};

/* Under the mutex, which it leaves while it syncs. */
static void run_first(struct sync_crew *crew)
{
    struct sync_task *task = crew->first;
    crew->first = task->next;
    crew->waiting_count--;
    pthread_mutex_unlock(&crew->mutex);
    *task->error = fsync(task->fd) == 0 ? 0 : errno;
    pthread_mutex_lock(&crew->mutex);
    if (--task->group->pending == 0)
        pthread_cond_signal(&task->group->done);
}

static void *serve(void *arg)
{
    struct sync_crew *crew = arg;
    pthread_mutex_lock(&crew->mutex);
    while (!crew->stop) {
        if (crew->first != NULL) {
            run_first(crew);
            continue;
        }
        crew->idle_count++;
        pthread_cond_wait(&crew->work, &crew->mutex);
        crew->idle_count--;
    }
    pthread_mutex_unlock(&crew->mutex);
    return NULL;
}

/* One more thread, unless there are enough or none is to be had. Under the mutex. */
static void grow(struct sync_crew *crew)
{
    pthread_attr_t attributes;
    if (crew->thread_count == TARN_STORE_SYNC_THREADS_MAX)
        return;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_SIZE);
    if (pthread_create(&crew->threads[crew->thread_count], &attributes, serve, crew) == 0)
        crew->thread_count++;
    pthread_attr_destroy(&attributes);
}

/* Under the mutex. Whoever sleeps is woken when it is given up: not to sleep again before it. */
static void add(struct sync_crew *crew, struct sync_task *task)
{
    if (crew->first == NULL)
        crew->first = task;
    else
        crew->last->next = task;
    crew->last = task;
    if (++crew->waiting_count > crew->idle_count)
        grow(crew);
}

void tarn_store__sync_all(struct sync_crew *crew, const int *fds, int *errors, size_t count)
{
    if (count == 0)
        return;
    struct sync_group group = {.pending = count - 1, .done = PTHREAD_COND_INITIALIZER};
    struct sync_task *tasks = tarn_calloc(count, sizeof *tasks);
    if (count > 1) {
        pthread_mutex_lock(&crew->mutex);
        for (size_t i = 1; i < count; i++) {
            tasks[i] = (struct sync_task){NULL, &group, fds[i], &errors[i]};
            add(crew, &tasks[i]);
        }
        pthread_mutex_unlock(&crew->mutex);
        for (size_t i = 1; i < count; i += 2) /* to wake a thread costs about what a sync does */
            pthread_cond_signal(&crew->work);
    }
    errors[0] = fsync(fds[0]) == 0 ? 0 : errno;
    if (count > 1) {
        pthread_mutex_lock(&crew->mutex);
        while (group.pending > 0) {
            if (crew->first != NULL)
                run_first(crew); /* perhaps another's; then that one is done sooner */
            else
                pthread_cond_wait(&group.done, &crew->mutex);
        }
        pthread_mutex_unlock(&crew->mutex);
    }
    pthread_cond_destroy(&group.done);
    free(tasks);
}

struct sync_crew *tarn_store__sync_crew_new(void)
{
    struct sync_crew *crew = tarn_calloc(1, sizeof *crew);
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->work, NULL);
    return crew;
}

void tarn_store__sync_crew_free(struct sync_crew *crew)
{
    if (crew == NULL)
        return;
    pthread_mutex_lock(&crew->mutex);
    crew->stop = true;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->mutex);
    for (size_t i = 0; i < crew->thread_count; i++)
        pthread_join(crew->threads[i], NULL);
    pthread_mutex_destroy(&crew->mutex);
    pthread_cond_destroy(&crew->work);
    free(crew);
}
