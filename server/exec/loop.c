#include "exec/internal.h"

#include <event2/thread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SIGNALS_MAX 32

/*
 * One thread in libevent's loop. Signals come through a signalfd rather than through handlers:
 * libevent's own signal support serves one loop of a process only, and all threads block them.
 */
struct signal_job {
    int signal;
    tarn_job_fn fn;
    void *arg;
};

struct tarn_exec__loop {
    struct tarn_exec *exec;
    struct event_base *base;
    pthread_t thread;
    struct event *stop;
    pthread_mutex_t lock; /* guards what follows */
    bool is_stopped;
    int signal_fd;
    struct event *signal_event;
    sigset_t signals;
    struct signal_job signal_jobs[SIGNALS_MAX];
    size_t signal_count;
    struct tarn_exec__child *children;
};

static _Thread_local bool must_not_wait;

void tarn_exec_mark_loop_thread(void)
{
    must_not_wait = true;
}

void tarn_assert_may_wait(void)
{
    tarn_assert(!must_not_wait);
}

static void prepare_libevent(void)
{
    int failed = evthread_use_pthreads();
    tarn_assert(failed == 0);
}

static void *run_loop(void *arg)
{
    struct tarn_exec__loop *loop = arg;
    pthread_setname_np(pthread_self(), "tarn-loop");
    tarn_exec_mark_loop_thread();
    event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    struct tarn_exec__loop *loop = arg;
    event_base_loopbreak(loop->base);
}

/* By default libevent reads a clock that steps by 4 ms and remembers what it read for as long as
 * callbacks run: timers set by other threads would fire early. */
static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    tarn_assert(config != NULL);
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    tarn_assert(base != NULL);
    return base;
}

struct tarn_exec__loop *tarn_exec__loop_start(struct tarn_exec *exec)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_libevent);

    struct tarn_exec__loop *loop = tarn_calloc(1, sizeof *loop);
    loop->exec = exec;
    loop->signal_fd = -1;
    sigemptyset(&loop->signals);
    pthread_mutex_init(&loop->lock, NULL);
    loop->base = new_base();
    loop->stop = event_new(loop->base, -1, EV_PERSIST, on_stop, loop);
    tarn_assert(loop->stop != NULL);
    int failed = pthread_create(&loop->thread, NULL, run_loop, loop);
    tarn_assert(failed == 0);
    return loop;
}

void tarn_exec__loop_stop(struct tarn_exec__loop *loop)
{
    /* An activated event, not loopbreak: that is lost if the loop has not begun yet. */
    event_active(loop->stop, EV_TIMEOUT, 0);
    pthread_join(loop->thread, NULL);
    pthread_mutex_lock(&loop->lock);
    loop->is_stopped = true;
    struct tarn_exec__child *children = loop->children;
    loop->children = NULL;
    pthread_mutex_unlock(&loop->lock);

    for (struct tarn_exec__child *next, *c = children; c != NULL; c = next) {
        next = c->next;
        tarn_exec__child_free(c);
    }
}

void tarn_exec__loop_free(struct tarn_exec__loop *loop)
{
    if (loop->signal_event != NULL)
        event_free(loop->signal_event);
    if (loop->signal_fd >= 0)
        close(loop->signal_fd);
    event_free(loop->stop);
    event_base_free(loop->base);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

struct event_base *tarn_exec__base(struct tarn_exec__loop *loop)
{
    return loop->base;
}

bool tarn_exec__loop_add_child(struct tarn_exec__loop *loop, struct tarn_exec__child *child)
{
    pthread_mutex_lock(&loop->lock);
    bool is_running = !loop->is_stopped;
    if (is_running) {
        child->next = loop->children;
        if (child->next != NULL)
            child->next->previous = child;
        loop->children = child;
        /* Under the lock: its callback removes it from the list, which waits for us. */
        int failed = event_add(child->event, NULL);
        tarn_assert(failed == 0);
    }
    pthread_mutex_unlock(&loop->lock);
    return is_running;
}

void tarn_exec__loop_remove_child(struct tarn_exec__loop *loop, struct tarn_exec__child *child)
{
    pthread_mutex_lock(&loop->lock);
    if (child->previous != NULL)
        child->previous->next = child->next;
    else
        loop->children = child->next;
    if (child->next != NULL)
        child->next->previous = child->previous;
    pthread_mutex_unlock(&loop->lock);
}

/* --- signals --- */

static void fill_signals(sigset_t *set)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    sigemptyset(set);
    for (size_t i = 0; i < TARN_COUNT_OF(signals); i++)
        sigaddset(set, signals[i]);
}

void tarn_signals_block(void)
{
    sigset_t set;
    fill_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct tarn_exec__loop *loop = arg;
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
        pthread_mutex_lock(&loop->lock);
        for (size_t i = 0; i < loop->signal_count; i++)
            if (loop->signal_jobs[i].signal == (int)info.ssi_signo)
                tarn_exec_post(loop->exec, loop->signal_jobs[i].fn, loop->signal_jobs[i].arg);
        pthread_mutex_unlock(&loop->lock);
    }
}

void tarn_exec_on_signal(struct tarn_exec *exec, int signal, tarn_job_fn fn, void *arg)
{
    struct tarn_exec__loop *loop = tarn_exec__loop_of(exec);
    pthread_mutex_lock(&loop->lock);
    tarn_assert(loop->signal_count < SIGNALS_MAX);
    loop->signal_jobs[loop->signal_count++] = (struct signal_job){signal, fn, arg};
    sigaddset(&loop->signals, signal);
    pthread_sigmask(SIG_BLOCK, &loop->signals, NULL);
    loop->signal_fd = signalfd(loop->signal_fd, &loop->signals, SFD_NONBLOCK | SFD_CLOEXEC);
    tarn_assert(loop->signal_fd >= 0);
    if (loop->signal_event == NULL) {
        loop->signal_event =
            event_new(loop->base, loop->signal_fd, EV_READ | EV_PERSIST, on_signal, loop);
        tarn_assert(loop->signal_event != NULL);
        event_add(loop->signal_event, NULL);
    }
    pthread_mutex_unlock(&loop->lock);
}
