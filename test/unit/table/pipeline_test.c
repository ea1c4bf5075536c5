/*
 * Several commits in flight: manifests of N+1 are written while N is being put, puts go one after the other, and nothing of
 * this shows: what others write meanwhile is adopted, what they roll back is never put back, an id that was used is never
 * used again (docs/architecture.md, "The life of a commit"; README.md of room table, I3, I5, I8, I9).
 */
#include "commits.h"
#include "fault_others.h"

#include <time.h>

#include "table/internal.h"

#define BATCH TARN_COMMIT_IDENTIFIER_BATCH
#define NONE TARN_SNAPSHOT_NONE

static void rule(struct fixture *f, const char *call, const char *key, enum tarn_fault fault,
                 int skip, int hits, int64_t delay_ms)
{
    struct tarn_fault_rule r = {.call = call,
                                .key_part = key,
                                .skip_count = skip,
                                .hit_count = hits,
                                .fault = fault,
                                .delay_ms = delay_ms};
    tarn_store_faulty_add(f->store, &r);
}

static void nap_ms(int64_t ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static struct tarn_manifest_entry add(struct fixture *f, const char *name)
{
    return fixture_entry(f, TARN_ENTRY_ADD, name, 0, 0, 1, 2, 0);
}

/* A call of the store that isn't over before something else has come into the folder: who waited for the call first would
 * see neither, until the patience here ends. */
struct held {
    struct moment moment;
    struct fixture *f;
    size_t manifests;     /* so many objects of the manifest folder, */
    const char *snapshot; /* or where this isn't NULL, this one */
    atomic_bool came;
};

/* In the thread of the call, beside the test's own. */
static bool has_come(const struct held *h)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_object *objects;
    size_t count = 0;
    bool found = false;
    tarn_op_init(&op);
    struct tarn_status *s =
        h->snapshot != NULL
            ? tarn_store_stat(h->f->inner, &op, h->snapshot, &found, NULL)
            : tarn_store_list(h->f->inner, &op, "db.db/t/manifest", true, &objects, &count);
    bool came = s == TARN_OK && (h->snapshot != NULL ? found : count >= h->manifests);
    tarn_status_free(s);
    return came;
}

static void until_it_came(void *arg)
{
    struct held *h = arg;
    for (int tries = 0; tries < 30000 && !h->came; tries++) {
        h->came = has_come(h);
        nap_ms(1);
    }
}

static void hold(struct held *h, struct fixture *f, const char *call, const char *key)
{
    h->f = f;
    h->moment = (struct moment){.call = call, .key_part = key, .act = until_it_came, .arg = h};
    moment_init(f, &h->moment);
}

/* --- the pipeline --- */

TARN_TEST(pipeline, writes_the_next_manifests_while_a_snapshot_is_put)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t, "\"tarn.group-commit\":\"none\"");
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    for (int i = 0; i < 6; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    struct held held = {.manifests = 4 * 3}; /* a manifest and two lists for each snapshot */
    hold(&held, &f, "put_if_absent", "snapshot/snapshot-3");
    crowd_run(&c);
    for (int i = 0; i < 6; i++)
        expect_int(c.calls[i].result.append_snapshot_id, 1 + i);
    expect_true(held.came); /* those of the fourth */
    expect_str(fixture_files(&f, NONE, NULL), "f0 f1 f2 f3 f4 f5");
    expect_str(fixture_files(&f, 3, NULL), "f0 f1 f2");
}

/* One committer alone is put in the mailbox itself; who comes meanwhile is next, and from then on the put is another thread's. */
TARN_TEST(pipeline, takes_who_comes_while_one_alone_is_put)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t, "\"tarn.group-commit\":\"none\"");
    for (int i = 1; i <= 2; i++) {
        fixture_land(&f, i, tarn_arena_printf(t->arena, "s%d", i));
        expect_true(f.table->put_alone);
    }
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    for (int i = 0; i < 3; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 0, 0, 50);
    crowd_run(&c);
    for (int i = 0; i < 3; i++)
        expect_int(c.calls[i].result.append_snapshot_id, 3 + i);
    expect_str(fixture_files(&f, NONE, NULL), "f0 f1 f2 s1 s2");
    expect_true(f.table->put_alone); /* the last of them was */
}

TARN_TEST(pipeline, looks_at_the_ground_beside_the_writes_of_a_remote_store)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    tarn_store_faulty_set_remote(f.store, true);
    struct tarn_manifest_entry a = add(&f, "a"), b = add(&f, "b");
    int64_t id;
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    fixture_look_no_more(&f);
    struct held held = {.manifests = 2 * 3};
    hold(&held, &f, "get", "snapshot/snapshot-1");
    expect_ok(fixture_append(&f, "s", 2, &b, 1, &id));
    expect_true(held.came);
}

TARN_TEST(pipeline, of_many_callers_gives_each_its_own_answer)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 0, 0, 3);
    for (int i = 0; i < 200; i++) {
        bool streams = i % 10 == 0;
        crowd_append(&c, tarn_arena_printf(t->arena, "u%d", i), streams ? 1 : BATCH,
                     tarn_arena_printf(t->arena, "f%03d", i), i % 2);
    }
    crowd_rush(&c);
    struct tarn_snapshot *list;
    size_t count;
    expect_ok(tarn_table_snapshots(t->op, f.table, 1, 1000, &list, &count));
    expect_true(count < 100);
    expect_int(list[count - 1].id, count);
    expect_int(list[count - 1].total_record_count, 400);
    for (int drop = 0; drop < 2; drop++) {
        for (int i = 0; i < 200; i += 7) {
            struct tarn_commit_fate fate =
                crowd_fate(&c, tarn_arena_printf(t->arena, "u%d", i), c.calls[i].commit.identifier,
                           i % 10 == 0 ? 0 : tarn_commit_content(&c.calls[i].commit));
            expect_int(fate.state, TARN_COMMIT_LANDED);
            expect_int(fate.append_snapshot_id, c.calls[i].result.append_snapshot_id);
        }
        fixture_restart(&f, true);
    }
}

TARN_TEST(pipeline, keeps_compactions_and_overwrites_in_step)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 0, 0, 20);
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_compact(&c, "c", "plug1", "x", 0, 1,
                  2); /* what it replaces is live by the time of its turn */
    struct tarn_commit *all = crowd_append(&c, "o", BATCH, "new", 1);
    all->kind = TARN_COMMIT_OVERWRITE;
    all->overwrite = TARN_OVERWRITE_TABLE;
    crowd_append(&c, "a", BATCH, "fb", 0);
    crowd_run(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[1].result.compact_snapshot_id, 3);
    expect_int(c.calls[2].result.append_snapshot_id, 4);
    expect_int(c.calls[3].result.append_snapshot_id, 5);
    expect_str(fixture_files(&f, 3, NULL), "fa x");
    expect_str(fixture_files(&f, 4, NULL), "new");
    expect_str(fixture_files(&f, NONE, NULL), "fb new");
}

TARN_TEST(pipeline, judges_by_what_flew_before)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 0, 0, 20);
    crowd_compact(&c, "c1", "plug1", "x", 0, 1, 2);
    crowd_compact(&c, "c2", "plug1", "y", 0, 1,
                  2); /* written on a guess; then what it replaces is gone */
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_run(&c);
    expect_int(c.calls[0].result.compact_snapshot_id, 2);
    expect_int(c.calls[1].reason, TARN_COMMIT_CONFLICT);
    expect_int(c.calls[2].reason, TARN_NO_REASON);
    expect_str(fixture_files(&f, NONE, NULL), "fa x");
    struct tarn_commit_fate fate =
        crowd_fate(&c, "c2", BATCH, tarn_commit_content(&c.calls[1].commit));
    expect_int(fate.state, TARN_COMMIT_REFUSED);
}

TARN_TEST(pipeline, leaves_no_manifest_of_a_guess_that_was_wrong)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 0, 0, 20);
    crowd_compact(&c, "c1", "plug1", "x", 0, 1, 2);
    crowd_compact(&c, "c2", "plug1", "y", 0, 1, 2);
    crowd_run(&c);
    expect_int(crowd_manifest_count(&c), 2 * 3); /* a manifest and two lists for each snapshot */
}

/* --- failures in the middle of it --- */

TARN_TEST(pipeline, goes_on_when_a_put_fails_for_good)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t, "\"tarn.group-commit\":\"none\"");
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    for (int i = 0; i < 4; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 0, 0, 20);
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_FULL, 1, 1, 0);
    crowd_run(&c);
    int failed = 0;
    for (int i = 0; i < 4; i++)
        failed += c.calls[i].reason == TARN_DISK_FULL;
    expect_int(failed, 1);
    expect_int(c.calls[1].reason, TARN_DISK_FULL);
    expect_str(fixture_files(&f, NONE, NULL), "f0 f2 f3");
    expect_int(crowd_manifest_count(&c), 3 * 3);
    expect_int(crowd_fate(&c, "b", BATCH, tarn_commit_content(&c.calls[1].commit)).state,
               TARN_COMMIT_NOT_COMMITTED);
}

TARN_TEST(pipeline, goes_on_when_manifests_can_not_be_written)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t, "\"tarn.group-commit\":\"none\"");
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    for (int i = 0; i < 4; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 0, 0, 20);
    rule(&f, "put_many", NULL, TARN_FAULT_TEAR, 1, 1,
         0); /* on a guess: it is tried again without one */
    crowd_run(&c);
    for (int i = 0; i < 4; i++)
        expect_int(c.calls[i].reason, TARN_NO_REASON);
    expect_str(fixture_files(&f, NONE, NULL), "f0 f1 f2 f3");
    expect_int(crowd_manifest_count(&c), 4 * 3);
}

/* --- cancelled callers --- */

TARN_TEST(pipeline, tells_those_who_gave_up_in_the_queue_and_commits_nothing_of_them)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_append(&c, "s", 3, "fs", 0);
    crowd_append(&c, "b", BATCH, "fb", 0);
    crowd_start(&c);
    tarn_op_cancel(&c.calls[1].op);
    crowd_finish(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[1].reason, TARN_CANCELLED);
    expect_int(c.calls[2].result.append_snapshot_id, 2);
    expect_str(fixture_files(&f, NONE, NULL), "fa fb plug1");
    expect_int(crowd_fate(&c, "s", 3, 0).state, TARN_COMMIT_NOT_COMMITTED);
}

/* --- min_interval --- */

TARN_TEST(pipeline, spaces_snapshots_by_min_interval_and_gathers_meanwhile)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    f.env.min_interval_ms = 150;
    struct tarn_manifest_entry a = add(&f, "a");
    int64_t id;
    expect_ok(fixture_append(&f, "u", BATCH, &a, 1, &id));
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    for (int i = 0; i < 20; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    int64_t begun = tarn_clock_mono_ms();
    crowd_rush(&c);
    expect_true(tarn_clock_mono_ms() - begun >= 100);
    for (int i = 0; i < 20; i++)
        expect_int(c.calls[i].result.append_snapshot_id, 2);
}

/* --- foreign writers --- */

TARN_TEST(pipeline, adopts_a_foreign_snapshot_between_its_puts_and_judges_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_look_no_more(&f);
    struct crowd c;
    crowd_init(&c, &f);
    rule(&f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 1, 0, 150);
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_compact(&c, "c", "plug1", "x", 0, 1, 2);
    crowd_start(&c);
    struct tarn_manifest_entry gone = fixture_entry(&f, TARN_ENTRY_DELETE, "plug1", 0, 0, 1, 2, 0);
    tarn_gate_open(f.gate);
    nap_ms(50); /* 2 is being put, what comes next is written on top of it */
    expect_int(fixture_foreign(&f, "flink", &gone, 1), 2);
    crowd_finish(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 3);
    expect_int(c.calls[1].reason, TARN_COMMIT_CONFLICT); /* what it replaces is gone by now */
    expect_str(fixture_files(&f, NONE, NULL), "fa");
    expect_int(crowd_manifest_count(&c), 3 + 3 + 3);
}

TARN_TEST(pipeline, gives_up_after_so_many_foreign_snapshots)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_look_no_more(&f);
    f.env.commit_retries = 0;
    struct tarn_manifest_entry a = add(&f, "a"), x = add(&f, "x");
    int64_t id;
    fixture_foreign(&f, "flink", &x, 1);
    expect_status(fixture_append(&f, "s", 1, &a, 1, &id), TARN_SNAPSHOT_TAKEN, "1 times");
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    expect_int(id, 2);
}

TARN_TEST(pipeline, never_puts_back_what_was_rolled_back_below_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a"), b = add(&f, "b"), d = add(&f, "d");
    int64_t id;
    fixture_look_no_more(&f); /* nobody looks: the put meets it */
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    expect_ok(fixture_append(&f, "s", 2, &b, 1, &id));
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/t/snapshot/LATEST", tarn_slice_str("1")));
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-2"));
    expect_ok(fixture_append(&f, "s", 3, &d, 1, &id));
    expect_int(id, 2); /* not 3 on top of nothing */
    expect_str(fixture_files(&f, NONE, NULL), "a d");
}

TARN_TEST(pipeline, never_puts_on_top_of_another_snapshot_of_the_same_id)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a"), b = add(&f, "b"), d = add(&f, "d"),
                               x = add(&f, "x");
    int64_t id;
    fixture_look_no_more(&f);
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    expect_ok(fixture_append(&f, "s", 2, &b, 1, &id));
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-2"));
    expect_int(fixture_foreign(&f, "flink", &x, 1), 2);
    expect_ok(fixture_append(&f, "s", 3, &d, 1, &id));
    expect_int(id, 3);
    expect_str(fixture_files(&f, NONE, NULL), "a d x");
}

/* The thread that puts stands still for long; the test moves the clock and the table meanwhile. */
struct sleeper {
    struct fixture *f;
    struct tarn_manifest_entry entry;
    struct tarn_status *status;
    int64_t id;
    pthread_t thread;
};

static void *commit_slowly(void *arg)
{
    struct sleeper *s = arg;
    struct tarn_commit c = {.user = tarn_slice_str("s"),
                            .identifier = 3,
                            .watermark = NONE,
                            .base_snapshot_id = NONE,
                            .append = {.entries = &s->entry, .count = 1}};
    struct tarn_commit_result result;
    struct tarn_op op;
    tarn_op_init(&op);
    s->status = tarn_table_commit(&op, s->f->table, &c, &result);
    s->id = result.append_snapshot_id;
    tarn_op_fini(&op);
    return NULL;
}

static int64_t paused_commit(struct fixture *f, void (*meanwhile)(struct fixture *f))
{
    tarn_clock_fake(tarn_clock_wall_ms());
    struct sleeper s = {.f = f, .entry = add(f, "late")};
    rule(f, "put_if_absent", "snapshot/", TARN_FAULT_DELAY, 0, 1, 400);
    pthread_create(&s.thread, NULL, commit_slowly, &s);
    nap_ms(150); /* it has looked at its ground, and is about to put */
    meanwhile(f);
    tarn_clock_fake(tarn_clock_wall_ms() + 60000);
    pthread_join(s.thread, NULL);
    expect_ok(s.status);
    tarn_clock_fake(-1);
    return s.id;
}

static void two_snapshots(struct fixture *f)
{
    struct tarn_manifest_entry a = add(f, "a"), b = add(f, "b");
    int64_t id;
    expect_ok(fixture_append(f, "s", 1, &a, 1, &id));
    expect_ok(fixture_append(f, "s", 2, &b, 1, &id));
    fixture_look_no_more(f);
}

static void remove_snapshot(struct fixture *f, int64_t id)
{
    expect_ok(tarn_store_remove(
        f->inner, f->t->op,
        tarn_arena_printf(f->t->arena, "db.db/t/snapshot/snapshot-%" PRId64, id)));
}

static void commit_and_expire(struct fixture *f)
{
    for (int i = 0; i < 4; i++) { /* 3 to 6 */
        struct tarn_manifest_entry x = add(f, tarn_arena_printf(f->t->arena, "x%d", i));
        fixture_foreign(f, "flink", &x, 1);
    }
    for (int64_t id = 1; id < 6; id++)
        remove_snapshot(f, id);
    expect_ok(tarn_store_put(f->inner, f->t->op, "db.db/t/snapshot/EARLIEST", tarn_slice_str("6")));
    expect_ok(tarn_store_put(f->inner, f->t->op, "db.db/t/snapshot/LATEST", tarn_slice_str("6")));
}

TARN_TEST(paused, daemon_takes_no_id_that_was_used_and_expired)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    two_snapshots(&f);
    expect_int(paused_commit(&f, commit_and_expire), 7);
    bool found;
    expect_ok(tarn_store_stat(f.inner, t->op, "db.db/t/snapshot/snapshot-3", &found, NULL));
    expect_false(found);
    expect_str(fixture_files(&f, NONE, NULL), "a b late x0 x1 x2 x3");
}

static void commit_and_expire_some(struct fixture *f)
{
    struct tarn_manifest_entry x = add(f, "x"), y = add(f, "y");
    fixture_foreign(f, "flink", &x, 1); /* 3 */
    fixture_foreign(f, "flink", &y, 1); /* 4 */
    for (int64_t id = 1; id < 4; id++)
        remove_snapshot(f, id);
    expect_ok(tarn_store_put(f->inner, f->t->op, "db.db/t/snapshot/EARLIEST", tarn_slice_str("4")));
    expect_ok(tarn_store_put(f->inner, f->t->op, "db.db/t/snapshot/LATEST", tarn_slice_str("4")));
}

TARN_TEST(paused, daemon_does_not_take_the_place_right_below_the_earliest)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    two_snapshots(&f);
    expect_int(paused_commit(&f, commit_and_expire_some),
               5); /* 4 was there, and doesn't stand on ours */
    bool found;
    expect_ok(tarn_store_stat(f.inner, t->op, "db.db/t/snapshot/snapshot-3", &found, NULL));
    expect_false(found);
    expect_str(fixture_files(&f, NONE, NULL), "a b late x y");
}

static void roll_back(struct fixture *f)
{
    expect_ok(tarn_store_put(f->inner, f->t->op, "db.db/t/snapshot/LATEST", tarn_slice_str("1")));
    remove_snapshot(f, 2);
}

TARN_TEST(paused, daemon_takes_back_what_stands_on_nothing)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    two_snapshots(&f);
    expect_int(paused_commit(&f, roll_back), 2);
    expect_str(fixture_files(&f, NONE, NULL), "a late");
}

static void nothing(struct fixture *f)
{
    (void)f;
}

TARN_TEST(paused, daemon_keeps_what_still_stands)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    two_snapshots(&f);
    expect_int(paused_commit(&f, nothing), 3);
    expect_str(fixture_files(&f, NONE, NULL), "a b late");
}

/* --- schemas --- */

TARN_TEST(pipeline, notices_a_schema_of_another_writer)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a"), b = add(&f, "b");
    int64_t id;
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    fixture_look_no_more(&f);
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    expect_ok(tarn_store_get(f.inner, t->op, "db.db/t/schema/schema-0", &schema));
    char *one = strstr((char *)(uintptr_t)tarn_buf_cstr(&schema), "\"id\":0");
    one[5] = '1';
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/t/schema/schema-1", tarn_buf_slice(&schema)));
    b.file.schema_id = 1; /* its writer knows it already */
    expect_ok(fixture_append(&f, "s", 2, &b, 1, &id));
    struct crowd c;
    crowd_init(&c, &f);
    expect_int(crowd_snapshot(&c, 2).schema_id, 1);
}

/* --- hints --- */

static int64_t latest_hint(struct fixture *f)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    int64_t id;
    expect_ok(tarn_store_get(f->inner, f->t->op, "db.db/t/snapshot/LATEST", &text));
    expect_ok(tarn_parse_i64(tarn_buf_slice(&text), &id));
    return id;
}

TARN_TEST(hint, of_a_local_store_is_there_before_the_answer)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    for (int i = 1; i <= 5; i++) {
        struct tarn_manifest_entry a = add(&f, tarn_arena_printf(t->arena, "a%d", i));
        int64_t id;
        expect_ok(fixture_append(&f, "s", i, &a, 1, &id));
        expect_int(latest_hint(&f), i);
    }
}

TARN_TEST(hint, of_a_remote_store_is_not_waited_for_and_ends_at_the_newest)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    tarn_store_faulty_set_remote(f.store, true);
    struct held held = {.snapshot = "db.db/t/snapshot/snapshot-3"};
    hold(&held, &f, "put", "LATEST");
    for (int i = 1; i <= 10; i++) {
        struct tarn_manifest_entry a = add(&f, tarn_arena_printf(t->arena, "a%d", i));
        int64_t id;
        expect_ok(fixture_append(&f, "s", i, &a, 1, &id));
    }
    expect_true(held.moment.happened > 0);
    fixture_restart(&f, false); /* waits for the last one */
    expect_int(latest_hint(&f), 10);
    expect_true(held.came);
}

TARN_TEST(hint, that_fails_fails_no_commit)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    rule(&f, "put_hint", "LATEST", TARN_FAULT_UNAVAILABLE, 0, 0, 0);
    struct tarn_manifest_entry a = add(&f, "a");
    int64_t id;
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    expect_int(id, 1);
}

/* --- files --- */

TARN_TEST(files, that_are_missing_are_told_unless_the_commit_has_landed)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a");
    struct tarn_commit commit = {.user = tarn_slice_str("s"),
                                 .identifier = 1,
                                 .watermark = NONE,
                                 .base_snapshot_id = NONE,
                                 .check_files = true,
                                 .append = {.entries = &a, .count = 1}};
    struct tarn_commit_result result;
    expect_status(tarn_table_commit(t->op, f.table, &commit, &result), TARN_FILE_MISSING,
                  "bucket-0/a is not there");
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/t/bucket-0/a", tarn_slice_str("x")));
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/bucket-0/a")); /* compacted and expired */
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_true(result.repeated);
}
