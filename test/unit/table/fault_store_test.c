/*
 * Promise: whatever call of the store fails in whatever way, before or after its effect, a commit has happened once or not at all, its
 * answer and its fate are true, sending it again lands it once, and statistics are added once. Outages are waited for with bounded
 * queues, a full disk and denied access leave nothing behind, and what is missing is named. (docs/faults.md, rows 1-4, 7, 20, 21, 23-25;
 * README.md of room table, I6)
 */
#include "commits.h"
#include "fault_others.h"

#include <pthread.h>
#include <unistd.h>

#include "table/internal.h"

#define NONE TARN_SNAPSHOT_NONE

static struct tarn_manifest_entry add(struct fixture *f, const char *name, int64_t rows)
{
    return fixture_entry(f, TARN_ENTRY_ADD, name, 0, 0, 1, rows, 0);
}

static struct tarn_status *append(struct fixture *f, int64_t identifier, int64_t *id)
{
    const char *name = tarn_arena_printf(f->t->arena, "f%03" PRId64, identifier);
    struct tarn_manifest_entry e = add(f, name, 10);
    return fixture_append(f, "u", identifier, &e, 1, id);
}

static void strike(struct fixture *f, const char *call, const char *key, int skip, int hits,
                   enum tarn_fault fault)
{
    struct tarn_fault_rule rule = {
        .call = call, .key_part = key, .skip_count = skip, .hit_count = hits, .fault = fault};
    tarn_store_faulty_add(f->store, &rule);
}

/* Sent three times more, whatever came of it the first time: one snapshot. */
static void send_again(struct fixture *f, int64_t identifier)
{
    int64_t first = 0, id;
    for (int i = 0; i < 3; i++) {
        expect_ok(append(f, identifier, &id));
        if (i > 0)
            expect_int(id, first);
        first = id;
    }
}

static void expect_rows(struct fixture *f, int64_t commits)
{
    struct tarn_snapshot s;
    int64_t newest = others_newest(f);
    expect_int(newest, commits);
    expect_ok(tarn_snapshot_decode(
        folder_get(f, tarn_arena_printf(f->t->arena, "snapshot/snapshot-%" PRId64, newest)),
        f->t->arena, &s));
    expect_int(s.total_record_count, commits * 10);
    folder_check(f);
}

static const enum tarn_fault kinds[] = {
    TARN_FAULT_FAIL_BEFORE, TARN_FAULT_FAIL_AFTER, TARN_FAULT_UNKNOWN,     TARN_FAULT_TEAR,
    TARN_FAULT_FULL,        TARN_FAULT_DENIED,     TARN_FAULT_UNAVAILABLE, TARN_FAULT_LATE,
};

/* Each call of the store in turn, in each way; then the same commit again. */
TARN_TEST(each_call, fails_once_in_each_way_and_the_commit_lands_once)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    tarn_table_is_new(f.table);
    int64_t n = 0;
    int failures = 0, unknown = 0;
    for (size_t k = 0; k < TARN_COUNT_OF(kinds); k++) {
        for (int skip = 0; skip < 14; skip++) {
            int64_t id;
            n++;
            strike(&f, "*", "db.db/t/", skip, 1, kinds[k]);
            struct tarn_status *s = append(&f, n, &id);
            enum tarn_reason reason = tarn_status_reason(s);
            tarn_status_free(s);
            tarn_store_faulty_clear(f.store);
            struct tarn_commit_fate fate = fixture_fate(&f, n);
            if (reason == TARN_NO_REASON)
                expect_int(fate.state, TARN_COMMIT_LANDED);
            else if (reason != TARN_OUTCOME_UNKNOWN)
                expect_int(fate.state, TARN_COMMIT_NOT_COMMITTED);
            failures += reason != TARN_NO_REASON;
            unknown += reason == TARN_OUTCOME_UNKNOWN;
            send_again(&f, n);
            tarn_store_faulty_land(f.store);
            expect_rows(&f, n);
        }
    }
    expect_true(failures >= 8);
    expect_int(unknown, 0); /* one lost answer is no unknown outcome: it is read back */
    for (int drop = 0; drop < 2; drop++) {
        fixture_restart(&f, drop == 1);
        expect_int(fixture_fate(&f, 3).state, TARN_COMMIT_LANDED);
        expect_str(fixture_files(&f, NONE, NULL), folder_files(&f, n));
    }
}

/* Row 4: the put is told to be lost, put again, and then the first one arrives. */
TARN_TEST(late_put, finds_the_slot_taken_by_its_own_second_try)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    strike(&f, "put_if_absent", "snapshot-1", 0, 1, TARN_FAULT_LATE);
    expect_ok(append(&f, 1, &id));
    expect_int(tarn_store_faulty_late_count(f.store), 1);
    struct tarn_slice ours = folder_get(&f, "snapshot/snapshot-1");
    tarn_store_faulty_land(f.store);
    expect_bytes(folder_get(&f, "snapshot/snapshot-1"), ours);
    expect_rows(&f, 1);
}

static void give_up(struct fixture *f, int64_t identifier, enum tarn_fault fault)
{
    struct hurry hurry;
    int64_t id;
    strike(f, "put_if_absent", "snapshot-", 0, 0, fault);
    hurry_start(&hurry); /* so that it soon gives up asking */
    struct tarn_status *s = append(f, identifier, &id);
    hurry_stop(&hurry);
    tarn_store_faulty_clear(f->store);
    expect_status(s, TARN_OUTCOME_UNKNOWN, "identifier");
}

/* Rows 2 and 3: what the life before left under way is told truly, and settled, whenever it arrives. */
TARN_TEST(late_put, arrives_before_the_next_life_asks)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    expect_ok(append(&f, 1, &id));
    give_up(&f, 2, TARN_FAULT_LATE);
    expect_true(tarn_store_faulty_late_count(f.store) > 0);
    fixture_restart(&f, false);
    tarn_store_faulty_land(f.store);
    struct tarn_commit_fate fate = fixture_fate(&f, 2);
    expect_int(fate.state, TARN_COMMIT_LANDED);
    expect_int(fate.append_snapshot_id, 2);
    send_again(&f, 2);
    expect_rows(&f, 2);
}

TARN_TEST(late_put, that_the_next_life_calls_not_committed_never_arrives)
{
    for (int drop = 0; drop < 2; drop++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        int64_t id;
        expect_ok(append(&f, 1, &id));
        give_up(&f, 2, TARN_FAULT_LATE);
        fixture_restart(&f, drop == 1);
        expect_int(fixture_fate(&f, 2).state, TARN_COMMIT_NOT_COMMITTED);
        tarn_store_faulty_land(f.store); /* the slot was filled by then */
        expect_int(fixture_fate(&f, 2).state, TARN_COMMIT_NOT_COMMITTED);
        expect_str(fixture_files(&f, NONE, NULL), "f001");
        expect_ok(append(&f, 2, &id));
        expect_str(fixture_files(&f, NONE, NULL), "f001 f002");
        folder_check(&f);
    }
}

TARN_TEST(late_put, after_the_next_life_took_its_slot_is_nothing)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    expect_ok(append(&f, 1, &id));
    give_up(&f, 2, TARN_FAULT_LATE);
    fixture_restart(&f, false);
    expect_ok(append(&f, 3, &id));
    expect_int(id, 2);
    tarn_store_faulty_land(f.store);
    expect_str(fixture_files(&f, NONE, NULL), "f001 f003");
    expect_rows(&f, 2);
}

/* I2: while it is unknown nothing that it names is removed, and whoever asks settles it. */
TARN_TEST(unknown_outcome, keeps_what_it_names_and_is_settled_by_asking)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    expect_ok(append(&f, 1, &id));
    struct tarn_object *before, *after;
    size_t before_count, after_count;
    expect_ok(tarn_store_list(f.inner, t->op, "db.db/t/manifest", true, &before, &before_count));
    give_up(&f, 2, TARN_FAULT_UNKNOWN);
    expect_ok(tarn_store_list(f.inner, t->op, "db.db/t/manifest", true, &after, &after_count));
    expect_true(after_count > before_count);
    expect_false(folder_has(&f, "snapshot/snapshot-2"));
    expect_int(fixture_fate(&f, 2).state, TARN_COMMIT_LANDED); /* the same bytes, put again (I4) */
    expect_rows(&f, 2);
    send_again(&f, 2);
}

/* --- what is full, denied, or away for a while --- */

static size_t object_count(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->inner, f->t->op, "db.db/t", true, &objects, &count));
    return count;
}

/* Rows 20 and 25. */
TARN_TEST(full_or_denied, leaves_nothing_serves_reads_and_needs_no_restart)
{
    static const struct {
        const char *call;
        enum tarn_fault fault;
        enum tarn_reason reason;
    } cases[] = {{"puts", TARN_FAULT_FULL, TARN_DISK_FULL},
                 {"put_many", TARN_FAULT_FULL, TARN_DISK_FULL},
                 {"put_if_absent", TARN_FAULT_FULL, TARN_DISK_FULL},
                 {"puts", TARN_FAULT_DENIED, TARN_STORE_DENIED},
                 {"put_if_absent", TARN_FAULT_DENIED, TARN_STORE_DENIED}};
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    expect_ok(append(&f, 1, &id));
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        size_t before = object_count(&f);
        int64_t n = (int64_t)i + 2;
        strike(&f, cases[i].call, NULL, 0, 0, cases[i].fault);
        for (int tries = 0; tries < 3; tries++)
            expect_status(append(&f, n, &id), cases[i].reason, "");
        expect_int(object_count(&f), before);
        expect_str(fixture_files(&f, NONE, NULL), folder_files(&f, n - 1));
        tarn_store_faulty_clear(f.store);
        expect_ok(append(&f, n, &id));
        expect_rows(&f, n);
    }
}

/* Row 21: a sync that failed is an error of the put: before the snapshot nothing happened, and behind it the next put decides. */
TARN_TEST(failed_sync, is_never_taken_for_durable)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    strike(&f, "put_many", "manifest", 0, 1, TARN_FAULT_FAIL_AFTER);
    expect_status(append(&f, 1, &id), TARN_IO_ERROR, "");
    expect_false(folder_has(&f, "snapshot/snapshot-1"));
    tarn_store_faulty_clear(f.store);
    expect_ok(append(&f, 1, &id));
    expect_int(id, 1);
    /* made, but its sync failed: read back alone would believe it; it is put again until the store says so */
    int calls = tarn_store_faulty_call_count(f.store);
    strike(&f, "put_if_absent", "snapshot-2", 0, 1, TARN_FAULT_FAIL_AFTER);
    expect_ok(append(&f, 2, &id));
    expect_true(tarn_store_faulty_call_count(f.store) - calls >= 3);
    expect_rows(&f, 2);
}

struct committer {
    struct fixture *f;
    int number, done, refused;
    atomic_int unavailable;
    pthread_t thread;
    struct tarn_manifest_entry *entries;
};

static void *commit_through(void *arg)
{
    struct committer *w = arg;
    for (int i = 0; i < 3; i++) {
        for (int tries = 0; tries < 200; tries++) {
            TARN_OWN(tarn_op_fini) struct tarn_op op;
            tarn_op_init(&op);
            char user[16];
            snprintf(user, sizeof user, "w%d", w->number);
            struct tarn_commit c = {.user = tarn_slice_str(user),
                                    .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                                    .watermark = NONE,
                                    .append.entries = &w->entries[i],
                                    .append.count = 1};
            struct tarn_commit_result result;
            struct tarn_status *s = tarn_table_commit(&op, w->f->table, &c, &result);
            enum tarn_reason reason = tarn_status_reason(s);
            tarn_status_free(s);
            if (reason == TARN_NO_REASON) {
                w->done++;
                break;
            }
            if (reason == TARN_STORE_UNAVAILABLE || reason == TARN_OUTCOME_UNKNOWN ||
                reason == TARN_IO_ERROR || reason == TARN_BUSY)
                w->unavailable++;
            else
                w->refused++;
            usleep(5000);
        }
    }
    return NULL;
}

/* Rows 7 and 24: 64 committers through an outage. None is refused for another's sake, all land once when it is over. */
TARN_TEST(outage, is_waited_for_and_all_committers_land_once)
{
    enum { COUNT = 64 };
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct committer *all = tarn_arena_calloc(t->arena, COUNT, sizeof *all);
    for (int i = 0; i < COUNT; i++) {
        all[i] = (struct committer){.f = &f, .number = i};
        all[i].entries = tarn_arena_calloc(t->arena, 3, sizeof *all[i].entries);
        for (int k = 0; k < 3; k++)
            all[i].entries[k] = add(&f, tarn_arena_printf(t->arena, "w%d-%d", i, k), 10);
    }
    int64_t id;
    expect_ok(append(&f, 1, &id));
    struct tarn_fault_rule outage = {.call = "*",
                                     .skip_count = 20,
                                     .hit_count = 1,
                                     .fault = TARN_FAULT_THROTTLE,
                                     .delay_ms = 1000};
    tarn_store_faulty_add(f.store, &outage);
    fixture_look_every(&f, 3600000);
    for (int i = 0; i < COUNT; i++)
        pthread_create(&all[i].thread, NULL, commit_through, &all[i]);
    usleep(300000);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(t->op, f.table, &view)); /* what the table is, without the store */
    expect_true(view->has_snapshot);
    struct tarn_plan_request everything = {.version = TARN_VERSION_LATEST};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(t->op, f.table, &everything, &plan)); /* and its files */
    expect_true(plan.file_count > 0);
    int refused = 0, done = 0;
    for (int i = 0; i < COUNT; i++) {
        pthread_join(all[i].thread, NULL);
        refused += all[i].refused;
        done += all[i].done;
    }
    expect_int(refused, 0);
    expect_int(done, COUNT * 3);
    folder_check(&f);
    struct tarn_snapshot s;
    expect_ok(tarn_snapshot_decode(
        folder_get(&f,
                   tarn_arena_printf(t->arena, "snapshot/snapshot-%" PRId64, others_newest(&f))),
        t->arena, &s));
    expect_int(s.total_record_count, 10 * (1 + COUNT * 3));
}

/* One is being put, a group of up to 256 is made of those behind it, and the queue is filled by the rest. */
enum { CROWDED = TARN_COMMIT_QUEUE_MAX * 2 };

/* The put takes as long. */
static void until_one_is_told_to_wait(void *arg)
{
    struct committer *all = arg;
    for (int tries = 0, told = 0; told == 0 && tries < 60000; tries++) {
        for (int i = 0; i < CROWDED; i++)
            told += all[i].unavailable;
        usleep(1000);
    }
}

/* A queue that grows without an end would take all calls, and the memory of all tables. */
TARN_TEST(outage, fills_a_bounded_queue_and_the_rest_is_told_to_wait)
{
    enum { COUNT = CROWDED };
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct committer *all = tarn_arena_calloc(t->arena, COUNT, sizeof *all);
    for (int i = 0; i < COUNT; i++) {
        all[i] = (struct committer){.f = &f, .number = i};
        all[i].entries = tarn_arena_calloc(t->arena, 3, sizeof *all[i].entries);
        for (int k = 0; k < 3; k++)
            all[i].entries[k] = add(&f, tarn_arena_printf(t->arena, "w%d-%d", i, k), 10);
    }
    struct moment slow = {.call = "put_if_absent",
                          .key_part = "snapshot-",
                          .act = until_one_is_told_to_wait,
                          .arg = all};
    moment_init(&f, &slow);
    int busy = 0, done = 0;
    for (int i = 0; i < COUNT; i++)
        pthread_create(&all[i].thread, NULL, commit_through, &all[i]);
    for (int i = 0; i < COUNT; i++) {
        pthread_join(all[i].thread, NULL);
        busy += all[i].unavailable;
        expect_int(all[i].refused, 0);
        done += all[i].done;
    }
    expect_true(busy > 0);
    expect_int(done, COUNT * 3);
}

/* --- what is missing (row 23) --- */

TARN_TEST(missing, objects_are_named_and_come_back)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    for (int i = 1; i <= 3; i++)
        expect_ok(append(&f, i, &id));
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f.inner, t->op, "db.db/t/manifest", true, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        const char *key = (const char *)objects[i].key.data;
        const char *name = key + strlen("db.db/t/");
        struct tarn_slice body = folder_get(&f, name);
        folder_remove(&f, name);
        expect_str(fixture_files(&f, NONE, NULL), "f001 f002 f003"); /* the index has it */
        bool fresh;
        struct tarn_state *other;
        struct tarn_table *table = NULL;
        expect_ok(
            tarn_state_open(tarn_arena_printf(t->arena, "%s/s", tarn_test_dir(t)), &fresh, &other));
        struct tarn_table_env env = f.env;
        env.state = other;
        struct tarn_status *s = tarn_table_open(
            t->op, &env, "db.db/t", "11111111-2222-3333-4444-555555555555", "db.t", &table);
        if (s != TARN_OK) /* some lists are of no use to a rebuild */
            expect_status(s, TARN_OBJECT_NOT_FOUND, key);
        tarn_table_drop_ref(&table);
        tarn_state_close(other);
        folder_put(&f, name, body);
    }
    fixture_restart(&f, true);
    expect_str(fixture_files(&f, NONE, NULL), "f001 f002 f003");
}
