/*
 * Promise: a rule disturbs the calls it names, those and no others, and what it says happened or
 * did not happen is so in the store below.
 */
#include "store/internal.h"
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#define S(text) tarn_slice_str(text)

struct fixture {
    struct tarn_store *inner;
    struct tarn_store *store;
};

static void fixture_fini(struct fixture *f)
{
    tarn_store_drop(&f->store);
    tarn_store_drop(&f->inner);
}

static void fixture_init(struct fixture *f)
{
    f->inner = tarn_store__memory_new();
    f->store = tarn_store_faulty_new(f->inner);
}

static void add(struct fixture *f, const char *call, const char *key_part, int skip, int hits,
                enum tarn_fault fault)
{
    struct tarn_fault_rule rule = {call, key_part, skip, hits, fault, 20, 0};
    tarn_store_faulty_add(f->store, &rule);
}

static bool is_there(struct tarn_test *t, struct fixture *f, const char *key)
{
    bool found = false;
    expect_ok(tarn_store_stat(f->inner, t->op, key, &found, NULL));
    return found;
}

TARN_TEST(faulty, put_if_absent_fails_in_each_way)
{
    bool created = true;
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    add(&f, "put_if_absent", NULL, 0, 1, TARN_FAULT_FAIL_BEFORE);
    add(&f, "put_if_absent", NULL, 0, 1, TARN_FAULT_FULL);
    add(&f, "put_if_absent", NULL, 0, 1, TARN_FAULT_UNKNOWN);
    add(&f, "put_if_absent", NULL, 0, 1, TARN_FAULT_TEAR);
    add(&f, "put_if_absent", NULL, 0, 1, TARN_FAULT_FAIL_AFTER);
    static const enum tarn_reason reasons[] = {TARN_IO_ERROR, TARN_DISK_FULL, TARN_OUTCOME_UNKNOWN,
                                               TARN_IO_ERROR};
    for (size_t i = 0; i < TARN_COUNT_OF(reasons); i++) {
        expect_status(tarn_store_put_if_absent(f.store, t->op, "s", S("abcd"), &created),
                      reasons[i], "injected");
        expect_false(created);
        expect_false(is_there(t, &f, "s"));
    }
    expect_status(tarn_store_put_if_absent(f.store, t->op, "s", S("abcd"), &created),
                  TARN_OUTCOME_UNKNOWN, "injected");
    expect_false(created);
    expect_true(is_there(t, &f, "s"));
    expect_ok(tarn_store_put_if_absent(f.store, t->op, "s", S("abcd"), &created));
    expect_false(created);
}

TARN_TEST(faulty, rules_choose_by_call_key_and_count)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    add(&f, "put", "snapshot/", 1, 2, TARN_FAULT_FAIL_BEFORE);
    static const bool fails[] = {false, true, true, false, false};
    for (size_t i = 0; i < TARN_COUNT_OF(fails); i++) {
        expect_ok(tarn_store_put(f.store, t->op, "schema/f", S("x")));
        struct tarn_status *status = tarn_store_put(f.store, t->op, "snapshot/f", S("x"));
        if (fails[i])
            expect_status(status, TARN_IO_ERROR, "snapshot/f");
        else
            expect_ok(status);
    }
    expect_int(tarn_store_faulty_call_count(f.store), 10);
    tarn_store_faulty_clear(f.store);
    add(&f, "*", NULL, 0, 0, TARN_FAULT_FAIL_BEFORE);
    for (int i = 0; i < 3; i++)
        expect_status(tarn_store_remove(f.store, t->op, "x"), TARN_IO_ERROR, "remove");
    tarn_store_faulty_clear(f.store);
    expect_ok(tarn_store_remove(f.store, t->op, "x"));
}

TARN_TEST(faulty, a_writer_that_lost_bytes_does_not_finish)
{
    static const enum tarn_fault faults[] = {TARN_FAULT_TEAR, TARN_FAULT_FAIL_BEFORE,
                                             TARN_FAULT_FULL};
    for (size_t i = 0; i < TARN_COUNT_OF(faults); i++) {
        struct tarn_store_writer *writer = NULL;
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f);
        add(&f, "append", NULL, 0, 1, faults[i]);
        expect_ok(tarn_store_writer_open(f.store, t->op, "f", &writer));
        tarn_status_free(tarn_store_writer_append(writer, t->op, S("abcd")));
        expect_ok(tarn_store_writer_append(writer, t->op, S("efgh")));
        expect_status(tarn_store_writer_finish(writer, t->op), TARN_IO_ERROR, "'f'");
        expect_false(is_there(t, &f, "f"));
    }
}

TARN_TEST(faulty, finish_fails_before_or_after)
{
    struct tarn_store_writer *writer = NULL;
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    add(&f, "finish", "f", 0, 1, TARN_FAULT_FAIL_BEFORE);
    add(&f, "finish", "f", 0, 1, TARN_FAULT_FAIL_AFTER);
    expect_ok(tarn_store_writer_open(f.store, t->op, "f", &writer));
    expect_status(tarn_store_writer_finish(writer, t->op), TARN_IO_ERROR, "injected");
    expect_false(is_there(t, &f, "f"));
    expect_ok(tarn_store_writer_open(f.store, t->op, "f", &writer));
    expect_status(tarn_store_writer_finish(writer, t->op), TARN_IO_ERROR, "after");
    expect_true(is_there(t, &f, "f"));
}

TARN_TEST(faulty, lists_lie_and_delays_go_through)
{
    size_t count = 9;
    struct tarn_object *objects = NULL;
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    expect_ok(tarn_store_put(f.store, t->op, "f", S("x")));
    add(&f, "list", NULL, 0, 1, TARN_FAULT_EMPTY_LIST);
    add(&f, "list", NULL, 0, 1, TARN_FAULT_DELAY);
    expect_ok(tarn_store_list(f.store, t->op, "", true, &objects, &count));
    expect_int(count, 0);
    int64_t before = tarn_clock_mono_ms();
    expect_ok(tarn_store_list(f.store, t->op, "", true, &objects, &count));
    expect_int(count, 1);
    expect_true(tarn_clock_mono_ms() - before >= 19);
}

TARN_TEST(faulty, readers_can_fail)
{
    uint8_t out[4];
    size_t got = 0;
    struct tarn_store_reader *reader = NULL;
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    expect_ok(tarn_store_put(f.store, t->op, "f", S("abcd")));
    add(&f, "open", "f", 0, 1, TARN_FAULT_FAIL_BEFORE);
    add(&f, "open", "f", 0, 1, TARN_FAULT_FAIL_AFTER);
    add(&f, "read_at", "f", 1, 1, TARN_FAULT_FAIL_BEFORE);
    expect_status(tarn_store_reader_open(f.store, t->op, "f", &reader), TARN_IO_ERROR, "open");
    expect_status(tarn_store_reader_open(f.store, t->op, "f", &reader), TARN_IO_ERROR, "open");
    expect_ok(tarn_store_reader_open(f.store, t->op, "f", &reader));
    expect_ok(tarn_store_reader_read_at(reader, t->op, 0, 4, out, &got));
    expect_status(tarn_store_reader_read_at(reader, t->op, 0, 4, out, &got), TARN_IO_ERROR, "read");
    tarn_store_reader_close(reader);
}

/* ---- the environment ---- */

/* Puts a, b, c below `folder` in a process of its own; its exit code. */
static int run_with(struct tarn_test *t, const char *folder, const char *faults)
{
    pid_t child = fork();
    if (child == 0) {
        struct tarn_store *store = NULL;
        setenv("TARN_STORE_FAULTS", faults, 1);
        struct tarn_status *status =
            tarn_store_open(tarn_arena_printf(t->arena, "file://%s", folder), &store);
        for (const char *key = "abc"; *key != '\0' && status == TARN_OK; key++) {
            bool created;
            char text[2] = {*key, '\0'};
            status = tarn_store_put_if_absent(store, t->op, text, S("x"), &created);
        }
        _exit(status == TARN_OK ? 0 : 1);
    }
    int wait_status = -1;
    expect_int(waitpid(child, &wait_status, 0), child);
    expect_true(WIFEXITED(wait_status));
    return WEXITSTATUS(wait_status);
}

static int object_count(struct tarn_test *t, const char *folder)
{
    size_t count;
    struct tarn_object *objects;
    TARN_OWN(tarn_store_drop) struct tarn_store *store = NULL;
    expect_ok(tarn_store_open(tarn_arena_printf(t->arena, "file://%s", folder), &store));
    expect_ok(tarn_store_list(store, t->op, "", true, &objects, &count));
    return (int)count;
}

TARN_TEST(faulty, the_environment_kills_at_a_call)
{
    const char *folder = tarn_test_dir(t);
    expect_int(run_with(t, folder, "*::1:1:kill_before"), 137);
    expect_int(object_count(t, folder), 1);
    expect_int(run_with(t, folder, "put_if_absent:b:0:1:kill_after;"), 137);
    expect_int(object_count(t, folder), 2);
    expect_int(run_with(t, folder, "put_if_absent:c:0:0:fail_before;get::0:1:delay:5"), 1);
    expect_int(object_count(t, folder), 2);
    expect_int(run_with(t, folder, "*::99:1:kill_before"), 0);
    expect_int(object_count(t, folder), 3);
}

TARN_TEST(faulty, bad_rules_are_named)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"put", "expected call:"},
        {"put:::", "expected call:"},
        {"put::0:1:full:1:2:3", "expected call:"},
        {"putt::0:1:full", "putt"},
        {"put::0:1:explode", "explode"},
        {"put::x:1:full", "rule 1"},
        {"put::0:-1:full", "-1"},
        {"put::0:99999999999:full", "99999999999"},
        {"put::0:1:full;get::0:1:delay:soon", "rule 2"},
    };
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_status(tarn_store__faulty_parse(f.store, bad[i].text), TARN_CONFIG_INVALID,
                      bad[i].part);
    TARN_OWN(tarn_buf_drop) struct tarn_buf many = {0};
    for (int i = 0; i <= TARN_STORE_FAULTS_MAX; i++)
        tarn_buf_add_str(&many, "get::0:1:full;");
    expect_status(tarn_store__faulty_parse(f.store, tarn_buf_cstr(&many)), TARN_CONFIG_INVALID,
                  "more than");
}
