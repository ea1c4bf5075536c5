/*
 * Promise: a child is started with a clean slate (signals, mask, standard input), its end is told
 * exactly once with how, and its wishes (memory, dying with its parent) are obeyed by its main.
 *
 * The program runs itself as child: with CHILD_ROLE set, a constructor plays the role and exits.
 */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/exec.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1 /* maps terabytes: no limit of memory can be tried */
#else
#define HAS_SANITIZER 0
#endif

/* Bits of what is not as it should be. */
static int check_slate(void)
{
    sigset_t mask;
    struct sigaction action;
    char byte;
    int wrong = 0;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    wrong |= sigismember(&mask, SIGTERM) ? 1 : 0;
    sigaction(SIGPIPE, NULL, &action);
    wrong |= action.sa_handler != SIG_DFL ? 2 : 0;
    wrong |= read(STDIN_FILENO, &byte, 1) != 0 ? 4 : 0;
    wrong |= getpgrp() != getpid() ? 8 : 0;
    return wrong;
}

static int check_memory(void)
{
    struct tarn_status *s = tarn_limit_memory();
    if (s != NULL)
        return 1;
    void *small = malloc(1 << 20), *large = malloc(512 << 20);
    return small == NULL ? 2 : large != NULL ? 3 : 0;
}

/* Starts a sleeping grandchild that dies with this process, tells its pid, and is killed. */
static void be_parent(void)
{
    struct tarn_exec *exec = tarn_exec_new(1, 1);
    const char *const argv[] = {"/proc/self/exe", NULL};
    const char *const environment[] = {"CHILD_ROLE=sleep", NULL};
    struct tarn_child_spec spec = {argv, environment, 0, true};
    pid_t pid = 0;
    struct tarn_status *s = tarn_child_start(exec, &spec, NULL, NULL, &pid);
    if (s != NULL)
        _exit(1);
    char ready;
    dprintf(STDERR_FILENO, "%d\n", (int)pid);
    while (read(STDIN_FILENO, &ready, 1) >= 0)
        pause();
}

__attribute__((constructor)) static void play_role(void)
{
    const char *role = getenv("CHILD_ROLE");
    if (role == NULL)
        return;
    tarn_die_with_parent();
    if (strcmp(role, "slate") == 0)
        _exit(check_slate());
    if (strcmp(role, "memory") == 0)
        _exit(check_memory());
    if (strcmp(role, "seven") == 0)
        _exit(7);
    if (strcmp(role, "parent") == 0)
        be_parent();
    for (;;)
        pause();
}

struct ended {
    struct tarn_gate *gate;
    atomic_int count;
    pid_t pid;
    int wait_status;
};

static void on_ended(void *arg, pid_t pid, int wait_status)
{
    struct ended *e = arg;
    e->pid = pid;
    e->wait_status = wait_status;
    atomic_fetch_add(&e->count, 1);
    tarn_gate_open(e->gate);
}

static const char *const self[] = {"/proc/self/exe", "child", NULL};

/* Runs the role to its end; the wait status. signal: sent once it runs. */
static int run_role(const char *role, int64_t memory, int signal)
{
    struct tarn_exec *exec = tarn_exec_new(1, 2);
    struct ended e = {.gate = tarn_gate_new()};
    const char *const environment[] = {role, "TARN_PARENT_PID=1", "TARN_MEMORY_MAX=1", NULL};
    struct tarn_child_spec spec = {self, environment, memory, false};
    pid_t pid = 0;
    struct tarn_status *s = tarn_child_start(exec, &spec, on_ended, &e, &pid);
    if (s == NULL && signal != 0)
        kill(pid, signal);
    if (s == NULL)
        tarn_gate_wait(e.gate, NULL);
    tarn_exec_free(exec);
    tarn_gate_free(e.gate);
    expect_ok(s);
    expect_int(atomic_load(&e.count), 1);
    expect_int(e.pid, pid);
    return e.wait_status;
}

TARN_TEST(child, tells_how_it_ended)
{
    int status = run_role("CHILD_ROLE=seven", 0, 0);
    expect_true(WIFEXITED(status));
    expect_int(WEXITSTATUS(status), 7);
    status = run_role("CHILD_ROLE=sleep", 0, SIGKILL);
    expect_true(WIFSIGNALED(status));
    expect_int(WTERMSIG(status), SIGKILL);
    status = run_role("CHILD_ROLE=sleep", 0, SIGTERM); /* not blocked, not ignored */
    expect_true(WIFSIGNALED(status));
    expect_int(WTERMSIG(status), SIGTERM);
}

TARN_TEST(child, begins_with_a_clean_slate)
{
    tarn_signals_block();
    expect_int(run_role("CHILD_ROLE=slate", 0, 0), 0);
}

TARN_TEST(child, obeys_its_memory_limit)
{
    if (HAS_SANITIZER)
        tarn_test_skip(t, "a sanitizer maps more memory than any limit");
    expect_int(run_role("CHILD_ROLE=memory", 128 << 20, 0), 0);
}

TARN_TEST(child, that_does_not_exist_is_named)
{
    struct tarn_exec *exec = tarn_exec_new(1, 2);
    const char *const argv[] = {"/nonexistent/program", NULL};
    struct tarn_child_spec spec = {.argv = argv};
    pid_t pid = 0;
    struct tarn_status *s = tarn_child_start(exec, &spec, on_ended, NULL, &pid);
    tarn_exec_free(exec);
    expect_status(s, TARN_OBJECT_NOT_FOUND, "/nonexistent/program");
}

TARN_TEST(child, many_end_and_each_is_told)
{
    struct tarn_exec *exec = tarn_exec_new(2, 4);
    struct ended e[20];
    const char *const environment[] = {"CHILD_ROLE=seven", NULL};
    struct tarn_child_spec spec = {self, environment, 0, true};
    pid_t pids[TARN_COUNT_OF(e)];
    for (size_t i = 0; i < TARN_COUNT_OF(e); i++) {
        e[i] = (struct ended){.gate = tarn_gate_new()};
        expect_ok(tarn_child_start(exec, &spec, on_ended, &e[i], &pids[i]));
    }
    for (size_t i = 0; i < TARN_COUNT_OF(e); i++) {
        expect_true(tarn_gate_wait(e[i].gate, NULL));
        tarn_gate_free(e[i].gate);
        expect_int(e[i].pid, pids[i]);
        expect_int(WEXITSTATUS(e[i].wait_status), 7);
    }
    tarn_exec_free(exec);
}

TARN_TEST(child, left_over_is_forgotten_by_free)
{
    struct tarn_exec *exec = tarn_exec_new(1, 2);
    struct ended e = {0};
    const char *const environment[] = {"CHILD_ROLE=sleep", NULL};
    struct tarn_child_spec spec = {self, environment, 0, true};
    pid_t pid = 0;
    expect_ok(tarn_child_start(exec, &spec, on_ended, &e, &pid));
    tarn_exec_free(exec);
    expect_int(kill(pid, SIGKILL), 0);
    expect_int(waitpid(pid, NULL, 0), pid);
    expect_int(atomic_load(&e.count), 0);
}

/* Waits until the process is gone, or dead and not yet collected by whoever inherited it. */
static bool ends_soon(struct tarn_test *t, pid_t pid)
{
    for (int i = 0; i < 500; i++) {
        char line[512] = "";
        FILE *file = fopen(tarn_arena_printf(t->arena, "/proc/%d/stat", (int)pid), "r");
        if (file == NULL)
            return true;
        size_t size = fread(line, 1, sizeof line - 1, file);
        fclose(file);
        line[size] = 0;
        const char *state = strrchr(line, ')');
        if (state == NULL || state[2] == 'Z' || state[2] == 'X')
            return true;
        usleep(10000);
    }
    return false;
}

TARN_TEST(child, dies_with_its_parent_however_that_ends)
{
    struct tarn_exec *exec = tarn_exec_new(1, 2);
    struct ended e = {.gate = tarn_gate_new()};
    const char *const environment[] = {"CHILD_ROLE=parent", NULL};
    struct tarn_child_spec spec = {self, environment, 0, true};
    int output[2], saved = dup(STDERR_FILENO);
    pid_t pid = 0;
    expect_int(pipe2(output, O_CLOEXEC), 0);
    dup2(output[1], STDERR_FILENO);
    struct tarn_status *s = tarn_child_start(exec, &spec, on_ended, &e, &pid);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(output[1]);
    expect_ok(s);

    char line[32] = "";
    expect_true(read(output[0], line, sizeof line - 1) > 0);
    close(output[0]);
    pid_t grandchild = atoi(line);
    expect_true(grandchild > 0);
    expect_int(kill(grandchild, 0), 0);
    kill(pid, SIGKILL);
    expect_true(tarn_gate_wait(e.gate, NULL));
    expect_true(ends_soon(t, grandchild));
    tarn_exec_free(exec);
    tarn_gate_free(e.gate);
}
