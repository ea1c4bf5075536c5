/* Registering and polling, for as long as the process lives; and its end. */
#include "internal.h"

#include <time.h>

#define RETRY_MS 200
#define RETRY_FACTOR_MAX 50
#define POLL_WAIT_MS 20000
#define IDLE_POLL_MS 20
#define ANSWER_MS 10000 /* what a call may take beyond what it was told to wait */

static struct timespec after_ms(int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

bool tarn_work__pause(struct tarn_work *work, int64_t ms)
{
    struct timespec until = after_ms(ms);
    bool timed_out = false;

    tarn_exec_wait_begin();
    pthread_mutex_lock(&work->lock);
    while (!work->stopping && !timed_out)
        timed_out = pthread_cond_timedwait(&work->changed, &work->lock, &until) != 0;
    bool stopping = work->stopping;
    pthread_mutex_unlock(&work->lock);
    tarn_exec_wait_end();
    return !stopping;
}

/* Waits until a slot is free; 0: stopping. */
static int free_slots(struct tarn_work *work)
{
    tarn_exec_wait_begin();
    pthread_mutex_lock(&work->lock);
    while (!work->stopping && work->task_count >= work->options.slots)
        pthread_cond_wait(&work->changed, &work->lock);
    int free_count = work->stopping ? 0 : work->options.slots - work->task_count;
    pthread_mutex_unlock(&work->lock);
    tarn_exec_wait_end();
    return free_count;
}

static struct tarn_status *do_register(struct tarn_work *work, struct tarn_op *op,
                                       char worker_id[TARN_WORK_ID_MAX])
{
    Tarn__V1__RegisterRequest request = TARN__V1__REGISTER_REQUEST__INIT;
    const void *message;

    request.name = (char *)(uintptr_t)work->options.name;
    request.address = (char *)(uintptr_t)work->options.address;
    request.slots = work->options.slots;
    request.memory_max_bytes = work->options.memory_max_bytes;
    request.version = (char *)(uintptr_t)work->options.version;
    op->deadline_mono_ms = tarn_clock_mono_ms() + ANSWER_MS;
    TARN_TRY(tarn_flight_ask(work->options.daemon, op, "/tarn.v1.WorkerService/Register",
                             &request.base, &tarn__v1__register_response__descriptor, &message));
    const Tarn__V1__RegisterResponse *response = message;
    size_t size = strlen(response->worker_id);
    if (size == 0 || size >= TARN_WORK_ID_MAX)
        return tarn_status_new(TARN_INTERNAL, "the daemon gave a worker id of %zu bytes", size);
    memcpy(worker_id, response->worker_id, size + 1);
    tarn_log(op, TARN_INFO, "worker.joined", "id=%s lease_ms=%" PRId64, worker_id,
             response->lease_ms);
    return TARN_OK;
}

/* Each task has its own copy of the answer it came in. */
static struct tarn_status *start_task(struct tarn_work *work, struct tarn_slice answer,
                                      size_t index, const char *worker_id)
{
    struct task *task = tarn_calloc(1, sizeof *task);
    const void *message;

    task->work = work;
    tarn_op_init(&task->op);
    struct tarn_status *s =
        tarn_flight_unpack(&tarn__v1__poll_response__descriptor, answer, task->op.arena, &message);
    if (s != TARN_OK) {
        tarn_work__task_free(task);
        return s;
    }
    task->message = ((const Tarn__V1__PollResponse *)message)->tasks[index];
    task->worker_id = tarn_arena_str(task->op.arena, tarn_slice_str(worker_id));
    atomic_store(&task->renewed_ms, tarn_clock_mono_ms());
    pthread_mutex_lock(&work->lock);
    task->next = work->tasks;
    work->tasks = task;
    work->task_count++;
    pthread_mutex_unlock(&work->lock);
    tarn_exec_post(work->options.exec, tarn_work__run_task, task);
    return TARN_OK;
}

static struct tarn_status *do_poll(struct tarn_work *work, struct tarn_op *op,
                                   const char *worker_id, int slots)
{
    Tarn__V1__PollRequest request = TARN__V1__POLL_REQUEST__INIT;
    TARN_OWN(tarn_message_drop) struct tarn_message *answer = NULL;
    const void *message;

    request.worker_id = (char *)(uintptr_t)worker_id;
    request.free_slots = slots;
    request.wait_ms = work->options.poll_wait_ms;
    int64_t asked_ms = tarn_clock_mono_ms();
    op->deadline_mono_ms = asked_ms + request.wait_ms + ANSWER_MS;
    TARN_TRY(tarn_channel_unary(work->options.daemon, op, "/tarn.v1.WorkerService/Poll",
                                tarn_flight_pack(&request.base), &answer));
    struct tarn_slice bytes = tarn_message_bytes(answer);
    TARN_TRY(tarn_flight_unpack(&tarn__v1__poll_response__descriptor, bytes, op->arena, &message));
    const Tarn__V1__PollResponse *response = message;
    for (size_t i = 0; i < response->n_tasks && i < (size_t)slots; i++)
        TARN_TRY(start_task(work, bytes, i, worker_id));
    if (response->n_tasks == 0 && tarn_clock_mono_ms() - asked_ms < IDLE_POLL_MS)
        tarn_work__pause(work,
                         IDLE_POLL_MS); /* a daemon that doesn't wait is not asked in a loop */
    return TARN_OK;
}

/* One call to the daemon, whichever is due. */
static struct tarn_status *step(struct tarn_work *work, char worker_id[TARN_WORK_ID_MAX], int slots)
{
    struct tarn_op op;

    tarn_op_init_child(&op, &work->polling);
    struct tarn_status *s = worker_id[0] == '\0' ? do_register(work, &op, worker_id)
                                                 : do_poll(work, &op, worker_id, slots);
    if (tarn_status_reason(s) == TARN_WORKER_LOST)
        worker_id[0] = '\0';
    tarn_op_fini(&op);
    return s;
}

static void live(void *arg)
{
    struct tarn_work *work = arg;
    char worker_id[TARN_WORK_ID_MAX] = "";
    int64_t pause_ms = 0;
    int slots;

    while ((slots = free_slots(work)) > 0) {
        struct tarn_status *s = step(work, worker_id, slots);
        if (s == TARN_OK) {
            pause_ms = 0;
            continue;
        }
        bool first = pause_ms == 0; /* the rest of a series is for those who look closely */
        pause_ms = first ? work->options.retry_ms
                         : TARN_MIN(pause_ms * 2, work->options.retry_ms * RETRY_FACTOR_MAX);
        if (tarn_op_is_cancelled(&work->polling))
            tarn_status_free(s);
        else
            tarn_log_status(NULL, first ? TARN_WARN : TARN_DEBUG, "worker.no_answer", s);
        tarn_work__pause(work, pause_ms);
    }
    pthread_mutex_lock(&work->lock);
    work->loop_ended = true;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

/* --- beginning and end --- */

struct tarn_work *tarn_work_start(const struct tarn_work_options *options)
{
    struct tarn_work *work = tarn_calloc(1, sizeof *work);
    pthread_condattr_t monotonic;

    tarn_assert(options->slots > 0);
    work->options = *options;
    if (options->retry_ms == 0)
        work->options.retry_ms = RETRY_MS;
    if (options->poll_wait_ms == 0)
        work->options.poll_wait_ms = POLL_WAIT_MS;
    tarn_op_init(&work->polling);
    pthread_mutex_init(&work->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&work->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    tarn_exec_post(options->exec, live, work);
    return work;
}

/* Until nothing runs any more, or the time is up; the lock is held. */
static bool wait_idle(struct tarn_work *work, int64_t ms)
{
    struct timespec until = after_ms(ms);
    bool timed_out = false;

    while ((work->task_count > 0 || !work->loop_ended) && !timed_out)
        timed_out = pthread_cond_timedwait(&work->changed, &work->lock, &until) != 0;
    return work->task_count == 0 && work->loop_ended;
}

void tarn_work_stop(struct tarn_work *work, int64_t grace_ms)
{
    tarn_exec_wait_begin();
    pthread_mutex_lock(&work->lock);
    work->stopping = true;
    pthread_cond_broadcast(&work->changed);
    tarn_op_cancel(&work->polling);
    if (!wait_idle(work, grace_ms)) {
        for (struct task *task = work->tasks; task != NULL; task = task->next)
            tarn_op_cancel(&task->op);
        while (work->task_count > 0 || !work->loop_ended)
            pthread_cond_wait(&work->changed, &work->lock);
    }
    pthread_mutex_unlock(&work->lock);
    tarn_exec_wait_end();
}

void tarn_work_free(struct tarn_work *work)
{
    if (work == NULL)
        return;
    tarn_assert(work->loop_ended && work->task_count == 0);
    pthread_cond_destroy(&work->changed);
    pthread_mutex_destroy(&work->lock);
    tarn_op_fini(&work->polling);
    free(work);
}
