#include "exec/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARENT_VARIABLE "TARN_PARENT_PID"
#define MEMORY_VARIABLE "TARN_MEMORY_MAX"

extern char **environ;

void tarn_exec__child_free(struct tarn_exec__child *child)
{
    if (child->event != NULL)
        event_free(child->event);
    if (child->pid_fd >= 0)
        close(child->pid_fd);
    free(child);
}

static void run_ended(void *arg)
{
    struct tarn_exec__child *child = arg;
    child->ended(child->arg, child->pid, child->wait_status);
    tarn_exec__child_free(child);
}

/* Loop thread: the descriptor is readable once the child has ended, so this doesn't wait. */
static void on_ended(evutil_socket_t fd, short what, void *arg)
{
    struct tarn_exec__child *child = arg;
    pid_t got = waitpid(child->pid, &child->wait_status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return;  /* not yet: level triggered, so it comes again */
    if (got < 0) /* somebody else took it: say that it ended, we can't know how */
        child->wait_status = 0;
    event_del(child->event);
    tarn_exec__loop_remove_child(tarn_exec__loop_of(child->exec), child);
    tarn_exec_post(child->exec, run_ended, child);
}

static bool is_ours(const char *variable)
{
    return strncmp(variable, PARENT_VARIABLE "=", sizeof PARENT_VARIABLE) == 0 ||
           strncmp(variable, MEMORY_VARIABLE "=", sizeof MEMORY_VARIABLE) == 0;
}

/* The child's environment: given, without what our own parent may have put there; in `arena`. */
static char **make_environment(const struct tarn_child_spec *spec, struct tarn_arena *arena)
{
    const char *const *given =
        spec->environment != NULL ? spec->environment : (const char *const *)environ;
    size_t count = 0, n = 0;
    while (given[count] != NULL)
        count++;
    char **made = tarn_arena_calloc(arena, count + 3, sizeof *made);
    for (size_t i = 0; i < count; i++)
        if (!is_ours(given[i]))
            made[n++] = (char *)(uintptr_t)given[i];
    if (spec->die_with_parent)
        made[n++] = tarn_arena_printf(arena, PARENT_VARIABLE "=%ld", (long)getpid());
    if (spec->memory_max_bytes > 0)
        made[n++] = tarn_arena_printf(arena, MEMORY_VARIABLE "=%" PRId64, spec->memory_max_bytes);
    return made;
}

/* A group of its own: Ctrl-C at the terminal is for the daemon, which ends its children in order. */
static int spawn(const struct tarn_child_spec *spec, char *const *environment, pid_t *pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);

    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    int error = posix_spawn(pid, spec->argv[0], &actions, &attributes,
                            (char *const *)(uintptr_t)spec->argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* For a child that can't be watched: it must not live on unknown. */
static void kill_child(pid_t pid)
{
    int ignored;
    kill(pid, SIGKILL);
    while (waitpid(pid, &ignored, 0) < 0 && errno == EINTR)
        ;
}

struct tarn_status *tarn_child_start(struct tarn_exec *exec, const struct tarn_child_spec *spec,
                                     tarn_child_ended_fn ended, void *arg, pid_t *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_exec__loop *loop = tarn_exec__loop_of(exec);
    pid_t pid;
    int error = spawn(spec, make_environment(spec, arena), &pid);
    if (error != 0)
        return tarn_status_errno(error, "start %s", spec->argv[0]);

    struct tarn_exec__child *child = tarn_calloc(1, sizeof *child);
    child->exec = exec;
    child->pid = pid;
    child->ended = ended;
    child->arg = arg;
    child->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (child->pid_fd < 0) {
        error = errno;
        kill_child(pid);
        tarn_exec__child_free(child);
        return tarn_status_errno(error, "watch %s (pidfd_open)", spec->argv[0]);
    }
    child->event =
        event_new(tarn_exec__base(loop), child->pid_fd, EV_READ | EV_PERSIST, on_ended, child);
    tarn_assert(child->event != NULL);
    *out = pid; /* before `ended` can run */
    if (!tarn_exec__loop_add_child(loop, child)) {
        kill_child(pid);
        tarn_exec__child_free(child);
        return tarn_status_new(TARN_SHUTTING_DOWN, "start %s: this process is stopping",
                               spec->argv[0]);
    }
    return TARN_OK;
}

/* --- in the child --- */

static bool read_variable(const char *name, int64_t *out)
{
    const char *text = getenv(name);
    if (text == NULL)
        return false;
    struct tarn_status *bad = tarn_parse_i64(tarn_slice_str(text), out);
    bool is_valid = bad == NULL && *out > 0;
    tarn_status_free(bad);
    return is_valid;
}

void tarn_die_with_parent(void)
{
    int64_t parent;
    if (!read_variable(PARENT_VARIABLE, &parent))
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* It may have ended before the line above: then nobody would ever send the signal. */
    if (getppid() != (pid_t)parent)
        _exit(1);
}

struct tarn_status *tarn_limit_memory(void)
{
    int64_t bytes;
    if (!read_variable(MEMORY_VARIABLE, &bytes))
        return TARN_OK;
    struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        return tarn_status_errno(errno, "limit memory to %" PRId64 " bytes", bytes);
    return TARN_OK;
}
