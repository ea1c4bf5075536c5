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

/* ---- what object stores do ---- */

static void put_new(struct tarn_test *t, struct fixture *f, const char *key)
{
    bool created = false;
    expect_ok(tarn_store_put_if_absent(f->store, t->op, key, S("x"), &created));
    expect_true(created);
}

TARN_TEST(faulty, a_late_put_lands_after_its_calls)
{
    bool created = true, found;
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_fault_rule rule = {
        .call = "put_if_absent", .hit_count = 1, .fault = TARN_FAULT_LATE, .calls = 2};
    fixture_init(&f);
    tarn_store_faulty_add(f.store, &rule);
    expect_status(tarn_store_put_if_absent(f.store, t->op, "s", S("late"), &created),
                  TARN_OUTCOME_UNKNOWN, "injected");
    expect_false(created);
    for (int i = 0; i < 2; i++) {
        expect_int(tarn_store_faulty_late_count(f.store), 1);
        expect_ok(tarn_store_stat(f.store, t->op, "s", &found, NULL));
        expect_false(found);
    }
    expect_ok(tarn_store_stat(f.store, t->op, "s", &found, NULL));
    expect_true(found);
    expect_int(tarn_store_faulty_late_count(f.store), 0);
}

TARN_TEST(faulty, a_late_put_stays_conditional)
{
    bool created = true;
    TARN_OWN(fixture_fini) struct fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    struct tarn_fault_rule rule = {
        .call = "put_if_absent", .hit_count = 1, .fault = TARN_FAULT_LATE};
    fixture_init(&f);
    tarn_store_faulty_add(f.store, &rule);
    expect_status(tarn_store_put_if_absent(f.store, t->op, "s", S("late"), &created),
                  TARN_OUTCOME_UNKNOWN, "injected");
    put_new(t, &f, "s"); /* the caller tried again, or somebody else was there */
    expect_int(tarn_store_faulty_late_count(f.store), 1);
    tarn_store_faulty_land(f.store);
    expect_int(tarn_store_faulty_late_count(f.store), 0);
    expect_ok(tarn_store_get(f.inner, t->op, "s", &got));
    expect_slice(tarn_buf_slice(&got), "x");
}

TARN_TEST(faulty, a_late_put_lands_by_itself_and_not_after_the_end)
{
    bool created = true;
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_fault_rule soon = {
        .call = "*", .key_part = "soon", .fault = TARN_FAULT_LATE, .delay_ms = 5};
    struct tarn_fault_rule never = {
        .call = "*", .key_part = "never", .fault = TARN_FAULT_LATE, .delay_ms = 3600000};
    fixture_init(&f);
    tarn_store_faulty_add(f.store, &soon);
    tarn_store_faulty_add(f.store, &never);
    tarn_status_free(tarn_store_put_if_absent(f.store, t->op, "never", S("x"), &created));
    tarn_status_free(tarn_store_put_if_absent(f.store, t->op, "soon", S("x"), &created));
    for (int i = 0; i < 2000 && !is_there(t, &f, "soon"); i++) /* nobody calls the faulty one */
        usleep(1000);
    expect_true(is_there(t, &f, "soon"));
    tarn_store_drop(&f.store);
    expect_false(is_there(t, &f, "never"));
}

static size_t list_count(struct tarn_test *t, struct tarn_store *store)
{
    size_t count = 0;
    struct tarn_object *objects;
    expect_ok(tarn_store_list(store, t->op, "", true, &objects, &count));
    return count;
}

TARN_TEST(faulty, lists_are_short_or_stale)
{
    struct tarn_store_writer *writer;
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_fault_rule stale = {
        .call = "list", .fault = TARN_FAULT_STALE_LIST, .hit_count = 3, .calls = 4};
    struct tarn_new_object many[] = {{.key = "m1", .body = S("x")}, {.key = "m2", .body = S("x")}};
    fixture_init(&f);
    put_new(t, &f, "old");
    tarn_store_faulty_add(f.store, &stale);
    expect_ok(tarn_store_writer_open(f.store, t->op, "w", &writer));
    expect_ok(tarn_store_writer_finish(writer, t->op));
    expect_ok(tarn_store_put_many(f.store, t->op, many, 2));
    put_new(t, &f, "new");
    expect_int(list_count(t, f.store), 1);
    expect_int(list_count(t, f.store), 1);
    expect_int(list_count(t, f.store), 2); /* w has grown older by a call */
    expect_int(list_count(t, f.store), 5);
    add(&f, "list", NULL, 0, 1, TARN_FAULT_SHORT_LIST);
    expect_int(list_count(t, f.store), 2);
    expect_int(list_count(t, f.store), 5);
}

TARN_TEST(faulty, statuses_flip)
{
    bool found = true;
    TARN_OWN(fixture_fini) struct fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    fixture_init(&f);
    put_new(t, &f, "a");
    add(&f, "*", NULL, 0, 1, TARN_FAULT_DENIED);
    add(&f, "*", NULL, 0, 1, TARN_FAULT_UNAVAILABLE);
    add(&f, "*", NULL, 0, 2, TARN_FAULT_NOT_FOUND);
    expect_status(tarn_store_stat(f.store, t->op, "a", &found, NULL), TARN_STORE_DENIED, "403");
    expect_status(tarn_store_find(f.store, t->op, "a", &found, &got), TARN_STORE_UNAVAILABLE,
                  "503");
    expect_ok(tarn_store_stat(f.store, t->op, "a", &found, NULL));
    expect_false(found);
    expect_status(tarn_store_get(f.store, t->op, "a", &got), TARN_OBJECT_NOT_FOUND, "404");
    expect_ok(tarn_store_get(f.store, t->op, "a", &got));
}

TARN_TEST(faulty, throttling_lasts)
{
    bool found;
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_fault_rule rule = {
        .call = "put", .hit_count = 1, .fault = TARN_FAULT_THROTTLE, .delay_ms = 600000};
    fixture_init(&f);
    tarn_clock_fake(1000000);
    tarn_store_faulty_add(f.store, &rule);
    expect_ok(tarn_store_stat(f.store, t->op, "a", &found, NULL));
    expect_status(tarn_store_put(f.store, t->op, "a", S("x")), TARN_STORE_UNAVAILABLE,
                  "retry after 600000 ms");
    tarn_clock_fake(1000000 + 599999);
    expect_status(tarn_store_stat(f.store, t->op, "a", &found, NULL), TARN_STORE_UNAVAILABLE,
                  "retry after 1 ms");
    tarn_clock_fake(1000000 + 600000);
    expect_ok(tarn_store_put(f.store, t->op, "a", S("x")));
    tarn_clock_fake(-1);
}

TARN_TEST(faulty, put_many_leaves_some)
{
    struct tarn_new_object many[] = {
        {.key = "a", .body = S("1")}, {.key = "b", .body = S("2")}, {.key = "c", .body = S("3")}};
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    add(&f, "put_many", "a", 0, 1, TARN_FAULT_FAIL_BEFORE);
    add(&f, "put_many", "a", 0, 1, TARN_FAULT_TEAR);
    expect_status(tarn_store_put_many(f.store, t->op, many, 3), TARN_IO_ERROR, "put_many");
    expect_int(list_count(t, f.inner), 0);
    expect_status(tarn_store_put_many(f.store, t->op, many, 3), TARN_IO_ERROR, "put_many");
    expect_int(list_count(t, f.inner), 2);
    for (int i = 0; i < 3; i++)
        expect_ok(tarn_store_remove(f.inner, t->op, many[i].key));
    add(&f, "puts", "a", 0, 1, TARN_FAULT_FAIL_AFTER);
    expect_status(tarn_store_put_many(f.store, t->op, many, 3), TARN_IO_ERROR, "after");
    expect_int(list_count(t, f.inner), 3);
    add(&f, "put_hint", NULL, 0, 1, TARN_FAULT_FULL);
    expect_status(tarn_store_put_hint(f.store, t->op, "h", S("1")), TARN_DISK_FULL, "put_hint");
    expect_ok(tarn_store_put_hint(f.store, t->op, "h", S("1")));
}

TARN_TEST(faulty, delays_add_up_and_end_with_the_deadline)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    add(&f, "*", NULL, 0, 0, TARN_FAULT_DELAY);
    add(&f, "puts", NULL, 0, 0, TARN_FAULT_DELAY);
    add(&f, "put", NULL, 0, 1, TARN_FAULT_FULL);
    int64_t before = tarn_clock_mono_ms();
    expect_status(tarn_store_put(f.store, t->op, "a", S("x")), TARN_DISK_FULL, "'a'");
    expect_true(tarn_clock_mono_ms() - before >= 40);
    struct tarn_fault_rule hour = {.call = "get", .fault = TARN_FAULT_DELAY, .delay_ms = 3600000};
    tarn_store_faulty_add(f.store, &hour);
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    t->op->deadline_mono_ms = tarn_clock_mono_ms() + 50;
    tarn_status_free(tarn_store_get(f.store, t->op, "a", &got));
    t->op->deadline_mono_ms = INT64_MAX;
    expect_true(tarn_clock_mono_ms() - before < 60000);
}

/* ---- the plan ---- */

#define PLAN_CALLS 400

/* One letter a call: what each of a fixed run of calls suffered. `extra` calls of other keys come between. */
static void run_plan(struct tarn_test *t, uint64_t seed, bool extra, char out[PLAN_CALLS + 1])
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_fault_plan plan = {.seed = seed, .key_part = "snapshot", .late_calls = 9};
    fixture_init(&f);
    plan.per_mille[TARN_FAULT_FAIL_BEFORE] = 50;
    plan.per_mille[TARN_FAULT_FAIL_AFTER] = 50;
    plan.per_mille[TARN_FAULT_LATE] = 50;
    plan.per_mille[TARN_FAULT_DENIED] = 50;
    tarn_store_faulty_plan(f.store, &plan);
    for (int i = 0; i < PLAN_CALLS; i++) {
        bool created;
        char uuid[TARN_UUID_SIZE];
        tarn_uuid_random(uuid);
        const char *key = tarn_arena_printf(t->arena, "t/snapshot/%d-%s", i % 7, uuid);
        struct tarn_status *s = tarn_store_put_if_absent(f.store, t->op, key, S("x"), &created);
        out[i] = (char)('A' + (int)tarn_status_reason(s) % 26);
        tarn_status_free(s);
        if (extra && i % 3 == 0)
            expect_ok(tarn_store_put(f.store, t->op, "t/manifest/m", S("x")));
    }
    out[PLAN_CALLS] = '\0';
}

TARN_TEST(faulty, a_plan_is_its_seed)
{
    char one[PLAN_CALLS + 1], again[PLAN_CALLS + 1], other[PLAN_CALLS + 1];
    run_plan(t, 7, false, one);
    run_plan(t, 7, true, again);
    run_plan(t, 8, false, other);
    expect_str(one, again);
    expect_true(strcmp(one, other) != 0);
    int struck = 0;
    for (int i = 0; i < PLAN_CALLS; i++)
        struck += one[i] != 'A';
    expect_true(struck > PLAN_CALLS / 10 && struck < PLAN_CALLS * 3 / 10); /* 200 per mille */
}

TARN_TEST(faulty, the_environment_makes_a_plan)
{
    struct tarn_status *status = TARN_OK;
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f);
    expect_false(tarn_store_is_remote(f.store));
    expect_ok(tarn_store__faulty_parse(
        f.store, "remote;plan:seed=3,key=s/,full=1000,late_calls=4,late_ms=9,stale_calls=2,"
                 "throttle_ms=7,delay_ms=1;get::0:1:late:1:2"));
    expect_true(tarn_store_is_remote(f.store));
    status = tarn_store_put(f.store, t->op, "s/a", S("x"));
    expect_status(status, TARN_DISK_FULL, "s/a");
    expect_ok(tarn_store_put(f.store, t->op, "a", S("x")));
    tarn_store_faulty_clear(f.store);
    expect_ok(tarn_store_put(f.store, t->op, "s/a", S("x")));
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
        {"put::0:1:late:1:soon", "soon"},
        {"plan:seed", "name=value"},
        {"plan:sed=1", "sed"},
        {"plan:late=1001", "1000"},
        {"plan:late_ms=-1", "-1"},
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
