#include "maintain/internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Local workers: started, watched, started again.
 *
 *   waiting --timer--> running --ended--> waiting (back-off doubles to BACK_OFF_MAX_MS; one that ran
 *      |                  |               for STEADY_MS starts anew with the shortest)
 *      +----- stop -------+--> stopped
 *
 * One that runs without being registered for hung_ms (it said nothing and was forgotten, or never came) hangs: it is
 * killed, and so ends and starts again. Else all workers could hang, and nobody would work.
 *
 * Children end with this process, however that ends (exec.h), and are in groups of their own.
 */

#define BACK_OFF_MIN_MS 100
#define BACK_OFF_MAX_MS 30000
#define STEADY_MS 60000
#define MEMORY_SMALL ((int64_t)512 << 20)

/* A sanitizer's shadow memory counts as data: under the limit its program could not even start. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_MEMORY false
#else
#define LIMITS_MEMORY true
#endif

extern char **environ;

struct child {
    struct tarn_supervisor *owner;
    int index;
    pid_t pid;          /* 0: not running */
    int64_t started_ms; /* monotonic */
    int64_t back_off_ms;
    int64_t missing_ms;       /* monotonic: runs and was seen unregistered since; 0: was not */
    struct tarn_timer *timer; /* the next start */
};

struct tarn_supervisor {
    struct tarn_supervisor_options options;
    struct tarn_arena *arena; /* argv and environment */
    const char *argv[4];
    const char **environment;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct child *children;
    int running;
    int64_t restarts;
    bool stopping;
    struct tarn_timer *watch; /* for those that hang; set once */
};

/* --- what children are given --- */

static bool is_replaced(const char *variable, const char *const *ours, size_t count)
{
    const char *equals = strchr(variable, '=');
    size_t size = equals == NULL ? strlen(variable) : (size_t)(equals - variable) + 1;
    for (size_t i = 0; i < count; i++)
        if (strncmp(variable, ours[i], size) == 0)
            return true;
    return false;
}

static size_t list_count(const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    return count;
}

/* What a worker is told beside its arguments. */
static const char *const *own_variables(struct tarn_arena *arena,
                                        const struct tarn_supervisor_options *o, size_t *count)
{
    const char *const fixed[] = {
        tarn_arena_printf(arena, "TARN_TOKEN=%s", o->secret),
        tarn_arena_printf(arena, "TARN_WORKER_SCRATCH_DIR=%s", o->scratch_dir),
        tarn_arena_printf(arena, "TARN_WORKER_MEMORY=%" PRId64, o->memory_max_bytes),
        tarn_arena_printf(arena, "TARN_WORKER_WRITE_BUFFER=%" PRId64, o->write_buffer_bytes),
        tarn_arena_printf(arena, "TARN_LOG_LEVEL=%s", o->log_level == NULL ? "info" : o->log_level),
        tarn_arena_printf(arena, "TARN_LOG_FORMAT=%s",
                          o->log_format == NULL ? "text" : o->log_format),
    };
    size_t more = list_count(o->variables);
    const char **list = tarn_arena_alloc(arena, sizeof fixed + more * sizeof *list);
    memcpy(list, fixed, sizeof fixed);
    for (size_t i = 0; i < more; i++)
        list[TARN_COUNT_OF(fixed) + i] = tarn_arena_str(arena, tarn_slice_str(o->variables[i]));
    *count = TARN_COUNT_OF(fixed) + more;
    return list;
}

static const char **make_environment(struct tarn_arena *arena,
                                     const struct tarn_supervisor_options *o)
{
    size_t count = list_count((const char *const *)environ), own_count, n = 0;
    const char *const *ours = own_variables(arena, o, &own_count);
    const char **list = tarn_arena_calloc(arena, count + own_count + 2, sizeof *list);
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(environ[i], ours, own_count))
            list[n++] = tarn_arena_str(arena, tarn_slice_str(environ[i]));
    for (size_t i = 0; i < own_count; i++)
        list[n++] = ours[i];
    /* The codecs' own allocator is quicker, but keeps what it was given once: with little memory, all
     * of it would soon be kept, and the next stream fail for want of it. */
    if (o->memory_max_bytes < MEMORY_SMALL)
        list[n++] = "ARROW_DEFAULT_MEMORY_POOL=system";
    return list;
}

/* --- one child --- */

static void start_child(void *arg);

/* The lock is held. */
static void plan_start(struct child *c)
{
    c->timer = tarn_timer_new(c->owner->options.exec, c->back_off_ms, 0, start_child, c);
    c->back_off_ms = TARN_MIN(c->back_off_ms * 2, (int64_t)BACK_OFF_MAX_MS);
}

static void log_end(pid_t pid, int wait_status)
{
    if (WIFSIGNALED(wait_status))
        tarn_log(NULL, TARN_WARN, "worker.ended", "pid=%d signal=%d", (int)pid,
                 WTERMSIG(wait_status));
    else
        tarn_log(NULL, TARN_WARN, "worker.ended", "pid=%d exit=%d", (int)pid,
                 WEXITSTATUS(wait_status));
}

static void child_ended(void *arg, pid_t pid, int wait_status)
{
    struct child *c = arg;
    struct tarn_supervisor *s = c->owner;
    pthread_mutex_lock(&s->lock);
    c->pid = 0;
    s->running--;
    if (!s->stopping) {
        log_end(pid, wait_status);
        s->restarts++;
        tarn_metric_add(TARN_M_WORKER_RESTARTS, NULL, 1);
        if (tarn_clock_mono_ms() - c->started_ms >= STEADY_MS)
            c->back_off_ms = BACK_OFF_MIN_MS;
        plan_start(c);
    }
    if (!s->stopping &&
        s->options.maintain != NULL) /* the lock keeps a stop, and the end of both, away */
        tarn_maintain_worker_ended(s->options.maintain, pid);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static struct tarn_status *spawn_child(struct child *c)
{
    struct tarn_supervisor *s = c->owner;
    struct tarn_child_spec spec = {
        .argv = s->argv,
        .environment = s->environment,
        .memory_max_bytes = LIMITS_MEMORY ? s->options.memory_max_bytes : 0,
        .die_with_parent = true,
    };
    c->started_ms = tarn_clock_mono_ms();
    c->missing_ms = 0;
    return tarn_child_start(s->options.exec, &spec, child_ended, c, &c->pid);
}

/* A job of the timer, or the first start. */
static void start_child(void *arg)
{
    struct child *c = arg;
    struct tarn_supervisor *s = c->owner;
    pthread_mutex_lock(&s->lock);
    tarn_timer_cancel(c->timer); /* in its own job: frees it */
    c->timer = NULL;
    struct tarn_status *status = TARN_OK;
    if (!s->stopping) {
        status = spawn_child(c);
        if (status == TARN_OK)
            s->running++;
        else
            plan_start(c);
    }
    pthread_mutex_unlock(&s->lock);
    tarn_log_status(NULL, TARN_ERROR, "worker.not_started", status);
}

/* --- those that hang --- */

/* The lock is held. */
static void watch_child(struct child *c)
{
    struct tarn_supervisor *s = c->owner;
    int64_t now = tarn_clock_mono_ms();
    if (c->pid == 0 || tarn_maintain_has_worker(s->options.maintain, c->pid))
        c->missing_ms = 0;
    else if (c->missing_ms == 0)
        c->missing_ms = now;
    else if (now - c->missing_ms >= s->options.hung_ms) {
        tarn_log(NULL, TARN_WARN, "worker.hung", "pid=%d silent_ms=%" PRId64, (int)c->pid,
                 now - c->missing_ms);
        kill(c->pid, SIGKILL);
        c->missing_ms = 0;
    }
}

/* A job of the timer. */
static void watch(void *arg)
{
    struct tarn_supervisor *s = arg;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->options.count && !s->stopping; i++)
        watch_child(&s->children[i]);
    pthread_mutex_unlock(&s->lock);
}

/* --- all of them --- */

struct tarn_status *tarn_supervisor_check_program(const char *program)
{
    if (access(program, X_OK) == 0)
        return TARN_OK;
    return tarn_status_new(TARN_CONFIG_INVALID, "can't run %s: %s; set worker.count = 0 for none",
                           program, strerror(errno));
}

struct tarn_status *tarn_supervisor_start(const struct tarn_supervisor_options *options,
                                          struct tarn_supervisor **out)
{
    TARN_TRY(tarn_supervisor_check_program(options->program));
    struct tarn_supervisor *s = tarn_calloc(1, sizeof *s);
    s->options = *options;
    s->arena = tarn_arena_new();
    s->argv[0] = tarn_arena_str(s->arena, tarn_slice_str(options->program));
    s->argv[1] = "--server";
    s->argv[2] = tarn_arena_str(s->arena, tarn_slice_str(options->server_address));
    s->environment = make_environment(s->arena, options);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    s->children = tarn_calloc((size_t)options->count + 1, sizeof *s->children);
    for (int i = 0; i < options->count; i++)
        s->children[i] = (struct child){.owner = s, .index = i, .back_off_ms = BACK_OFF_MIN_MS};
    for (int i = 0; i < options->count; i++)
        start_child(&s->children[i]);
    int64_t often_ms = TARN_MAX(options->hung_ms / 4, (int64_t)1);
    if (options->maintain != NULL && options->hung_ms > 0)
        s->watch = tarn_timer_new(options->exec, often_ms, often_ms, watch, s);
    *out = s;
    return TARN_OK;
}

int64_t tarn_supervisor_restarts(const struct tarn_supervisor *supervisor)
{
    struct tarn_supervisor *s = (struct tarn_supervisor *)(uintptr_t)supervisor;
    pthread_mutex_lock(&s->lock);
    int64_t restarts = s->restarts;
    pthread_mutex_unlock(&s->lock);
    return restarts;
}

static void signal_all(struct tarn_supervisor *s, int signal)
{
    for (int i = 0; i < s->options.count; i++)
        if (s->children[i].pid > 0)
            kill(s->children[i].pid, signal);
}

/* The lock is held. False: some still run when the time is over. */
static bool wait_for_all(struct tarn_supervisor *s, int64_t wait_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(wait_ms / 1000);
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (s->running > 0)
        if (pthread_cond_timedwait(&s->changed, &s->lock, &until) == ETIMEDOUT)
            return s->running == 0;
    return true;
}

static void cancel_timers(struct tarn_supervisor *s)
{
    for (int i = 0; i < s->options.count; i++) {
        pthread_mutex_lock(&s->lock);
        struct tarn_timer *timer = tarn_move(s->children[i].timer);
        pthread_mutex_unlock(&s->lock);
        tarn_timer_cancel(timer); /* waits for a start that is under way */
    }
}

void tarn_supervisor_stop(struct tarn_supervisor *s, int64_t grace_ms)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    signal_all(s, SIGTERM);
    if (!wait_for_all(s, grace_ms)) {
        tarn_log(NULL, TARN_WARN, "worker.killed", "count=%d", s->running);
        signal_all(s, SIGKILL);
        while (s->running > 0)
            pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    cancel_timers(s);
    tarn_timer_cancel(tarn_move(s->watch));
}

void tarn_supervisor_free(struct tarn_supervisor *s)
{
    if (s == NULL)
        return;
    tarn_assert(s->stopping && s->running == 0);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    tarn_arena_free(s->arena);
    free(s->children);
    free(s);
}
