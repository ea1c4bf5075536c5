/*
 * Promise: so many workers run as were asked for; one that ends is started again, later each time; they
 * are told what they need by environment and arguments; stop leaves none.
 */
#include "maintain/maintain.h"
#include "test/lib/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct tarn_exec *exec;
    struct tarn_supervisor *supervisor;
    const char *dir;
    struct tarn_maintain *maintain; /* NULL: nobody is told */
};

/* The program is a script that adds a line to <dir>/started, then does `then`. */
static void start(struct tarn_test *t, struct fixture *f, const char *then, int count)
{
    f->dir = tarn_test_dir(t);
    if (f->exec == NULL)
        f->exec = tarn_exec_new(2, 8);
    const char *program = tarn_arena_printf(t->arena, "%s/worker", f->dir);
    const char *text = tarn_arena_printf(
        t->arena,
        "#!/bin/sh\necho \"$1 $2 $TARN_TOKEN $TARN_WORKER_SCRATCH_DIR $TARN_WORKER_MEMORY "
        "$TARN_WORKER_WRITE_BUFFER $TARN_LOG_LEVEL $TARN_LOG_FORMAT $TARN_HDFS_USER\" >> %s/started\n%s\n",
        f->dir, then);
    tarn_test_write_file(program, tarn_slice_str(text));
    chmod(program, 0700);
    struct tarn_supervisor_options options = {
        .exec = f->exec,
        .program = program,
        .server_address = "127.0.0.1:1",
        .secret = "the-secret",
        .scratch_dir = "/scratch",
        .count = count,
        .memory_max_bytes = 1 << 30,
        .write_buffer_bytes = 1 << 20,
        .log_level = "debug",
        .variables = (const char *const[]){"TARN_HDFS_USER=hal", NULL},
        .maintain = f->maintain,
        .hung_ms = 300,
    };
    expect_ok(tarn_supervisor_start(&options, &f->supervisor));
}

static void end(struct fixture *f, int64_t grace_ms)
{
    tarn_supervisor_stop(f->supervisor, grace_ms);
    tarn_supervisor_stop(f->supervisor, grace_ms);
    tarn_supervisor_free(f->supervisor);
    tarn_exec_free(f->exec);
}

static int lines(struct tarn_test *t, struct fixture *f, struct tarn_buf *text)
{
    const char *path = tarn_arena_printf(t->arena, "%s/started", f->dir);
    if (access(path, R_OK) != 0)
        return 0;
    tarn_test_read_file(path, text);
    int count = 0;
    for (size_t i = 0; i < text->size; i++)
        count += text->data[i] == '\n';
    return count;
}

static bool comes_to(struct tarn_test *t, struct fixture *f, int wanted)
{
    for (int i = 0; i < 1000; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        if (lines(t, f, &text) >= wanted)
            return true;
        usleep(10000);
    }
    return false;
}

TARN_TEST(supervisor, tells_workers_what_they_need)
{
    struct fixture f = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    setenv("TARN_TOKEN", "of somebody else", 1);
    start(t, &f, "exec sleep 60", 2);
    expect_true(comes_to(t, &f, 2));
    expect_int(lines(t, &f, &text), 2);
    expect_contains(tarn_buf_cstr(&text),
                    "--server 127.0.0.1:1 the-secret /scratch 1073741824 1048576 debug text hal\n");
    expect_int(tarn_supervisor_restarts(f.supervisor), 0);
    int64_t begun = tarn_clock_mono_ms();
    end(&f, 5000);
    expect_true(tarn_clock_mono_ms() - begun < 3000);
    unsetenv("TARN_TOKEN");
}

TARN_TEST(supervisor, starts_again_what_ends)
{
    struct fixture f = {0};
    start(t, &f, "exit 3", 1);
    expect_true(comes_to(t, &f, 4)); /* after 100, 200, 400 ms */
    expect_true(tarn_supervisor_restarts(f.supervisor) >= 3);
    end(&f, 1000);
    TARN_OWN(tarn_buf_drop) struct tarn_buf before = {0}, after = {0};
    int count = lines(t, &f, &before);
    usleep(900000);
    expect_int(lines(t, &f, &after), count);
}

TARN_TEST(supervisor, kills_what_does_not_listen)
{
    struct fixture f = {0};
    start(t, &f,
          "trap '' TERM\necho it does not listen now >> \"${0%/*}/started\"\n"
          "while :; do sleep 0.05; done",
          1);
    expect_true(comes_to(t, &f, 2));
    int64_t begun = tarn_clock_mono_ms();
    end(&f, 200);
    int64_t took = tarn_clock_mono_ms() - begun;
    expect_true(took >= 200 && took < 5000);
}

/* They run, but never say a word to the daemon: as good as ended. */
TARN_TEST(supervisor, starts_again_what_hangs)
{
    struct fixture f = {.exec = tarn_exec_new(2, 8)};
    struct tarn_table_env env = {.exec = f.exec, .commit_retries = 3};
    struct tarn_catalog *catalog;
    bool fresh;
    expect_ok(tarn_store_open("memory:", &env.store));
    expect_ok(tarn_state_open(tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t)), &fresh,
                              &env.state));
    expect_ok(tarn_catalog_open(t->op, &env, "test", "/data", &catalog));
    struct tarn_maintain_options options = {
        .catalog = catalog, .exec = f.exec, .check_interval_ms = 60000, .lease_ms = 60000};
    f.maintain = tarn_maintain_new(&options);
    start(t, &f, "exec sleep 60", 2);
    expect_true(comes_to(t, &f, 6));
    expect_true(tarn_supervisor_restarts(f.supervisor) >= 4);
    tarn_supervisor_stop(f.supervisor, 1000);
    tarn_supervisor_free(f.supervisor);
    tarn_maintain_free(f.maintain);
    tarn_catalog_close(catalog);
    tarn_state_close(env.state);
    tarn_store_unref(env.store);
    tarn_exec_free(f.exec);
}

TARN_TEST(supervisor, says_what_it_can_not_run)
{
    struct tarn_exec *exec = tarn_exec_new(1, 4);
    struct tarn_supervisor *supervisor = NULL;
    struct tarn_supervisor_options options = {
        .exec = exec, .program = "/nowhere/tarn-worker", .count = 1};
    expect_status(tarn_supervisor_start(&options, &supervisor), TARN_CONFIG_INVALID,
                  "/nowhere/tarn-worker");
    tarn_supervisor_stop(NULL, 0);
    tarn_supervisor_free(NULL);
    tarn_exec_free(exec);
}
