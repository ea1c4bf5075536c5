/*
 * Outcomes that nobody knows: the caller is told by which identity to ask, asking settles it, nothing is deleted and
 * nothing else is put before; a put may land minutes later, or after a restart, and the answers stay true
 * (docs/architecture.md, "The life of a commit"; README.md of room table, I2, I4, I5, I14).
 */
#include "commits.h"

#include <unistd.h>

#include "table/internal.h"

#define BATCH TARN_COMMIT_IDENTIFIER_BATCH
#define NONE TARN_SNAPSHOT_NONE

static void rule(struct fixture *f, const char *key, enum tarn_fault fault, int hits)
{
    struct tarn_fault_rule r = {
        .call = "put_if_absent", .key_part = key, .hit_count = hits, .fault = fault};
    tarn_store_faulty_add(f->store, &r);
}

/* The store doesn't say for longer than the commit asks it. */
static void expect_unknown(struct crowd *c)
{
    crowd_outlast(c);
    for (int i = 0; i < c->count; i++) {
        expect_int(c->calls[i].reason, TARN_OUTCOME_UNKNOWN);
        expect_contains(c->calls[i].message,
                        tarn_arena_printf(c->f->t->arena, "ask for user %.*s, identifier %" PRId64,
                                          TARN_SLICE_ARG(c->calls[i].commit.user),
                                          c->calls[i].commit.identifier));
    }
}

/* A put of the next snapshot that lands when the test says so, or never; and one commit that doesn't learn of it. */
static void lose_a_put(struct crowd *c, const char *user, int64_t identifier, const char *file)
{
    rule(c->f, "snapshot/", TARN_FAULT_LATE, 1);
    rule(c->f, "snapshot/", TARN_FAULT_UNKNOWN, 0);
    crowd_append(c, user, identifier, file, 0);
    expect_unknown(c);
    tarn_store_faulty_clear(c->f->store);
    expect_int(tarn_store_faulty_late_count(c->f->store), 1);
}

static void start(struct crowd *c, struct fixture *f, struct tarn_test *t)
{
    fixture_init(f, t);
    crowd_init(c, f);
    c->no_plug = true;
}

/* --- asking settles it --- */

TARN_TEST(unknown, put_that_never_arrived_is_made_when_asked)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    rule(&f, "snapshot/", TARN_FAULT_UNKNOWN, 0);
    crowd_append(&c, "s", 7, "a", 0);
    expect_unknown(&c);
    expect_int(crowd_manifest_count(&c), 3); /* nothing is deleted */
    tarn_store_faulty_clear(f.store);
    struct tarn_commit_fate fate = crowd_fate(&c, "s", 7, 0);
    expect_int(fate.state, TARN_COMMIT_LANDED);
    expect_int(fate.append_snapshot_id, 1);
    expect_str(fixture_files(&f, NONE, NULL), "a");
}

TARN_TEST(unknown, put_that_arrived_is_found_when_asked)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    lose_a_put(&c, "s", 7, "a");
    tarn_store_faulty_land(f.store); /* minutes later */
    struct tarn_commit_fate fate = crowd_fate(&c, "s", 7, 0);
    expect_int(fate.state, TARN_COMMIT_LANDED);
    expect_int(fate.append_snapshot_id, 1);
}

TARN_TEST(unknown, put_that_arrives_after_the_asking_finds_itself_there)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    lose_a_put(&c, "s", 7, "a");
    expect_int(crowd_fate(&c, "s", 7, 0).state, TARN_COMMIT_LANDED);
    tarn_store_faulty_land(f.store);
    expect_str(fixture_files(&f, NONE, NULL), "a");
    struct tarn_snapshot s = crowd_snapshot(&c, 1);
    expect_slice(s.commit_user, "s");
}

TARN_TEST(unknown, attempt_is_dead_once_another_has_the_slot)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    lose_a_put(&c, "s", 7, "a");
    struct tarn_manifest_entry x = fixture_entry(&f, TARN_ENTRY_ADD, "x", 0, 0, 1, 2, 0);
    expect_int(fixture_foreign(&f, "flink", &x, 1), 1);
    tarn_store_faulty_land(f.store); /* too late */
    expect_int(crowd_fate(&c, "s", 7, 0).state, TARN_COMMIT_NOT_COMMITTED);
    expect_int(crowd_manifest_count(&c), 3); /* its own are gone */
    expect_str(fixture_files(&f, NONE, NULL), "x");
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 2, 0);
    int64_t id;
    expect_ok(fixture_append(&f, "s", 7, &a, 1, &id));
    expect_int(id, 2);
}

TARN_TEST(unknown, as_long_as_the_store_says_nothing_it_is_open)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    rule(&f, "snapshot/", TARN_FAULT_UNKNOWN, 0);
    crowd_append(&c, "s", 7, "a", 0);
    expect_unknown(&c);
    struct hurry hurry;
    struct asker asker;
    hurry_start(&hurry);
    asker_start(&asker, &f, "s", 7);
    expect_int(asker_finish(&asker).state, TARN_COMMIT_OPEN);
    hurry_stop(&hurry);
    expect_int(crowd_manifest_count(&c), 3);
}

TARN_TEST(unknown, for_all_of_a_group_each_by_its_own_identity)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    rule(&f, "snapshot/", TARN_FAULT_UNKNOWN, 0);
    crowd_append(&c, "s", 7, "a", 0);
    crowd_append(&c, "b1", BATCH, "b", 0);
    crowd_append(&c, "b2", BATCH, "c", 0);
    expect_unknown(&c);
    tarn_store_faulty_clear(f.store);
    expect_int(crowd_fate(&c, "b2", BATCH, tarn_commit_content(&c.calls[2].commit)).state,
               TARN_COMMIT_LANDED);
    expect_int(crowd_fate(&c, "b1", BATCH, 0).state, TARN_COMMIT_LANDED);
    expect_int(crowd_fate(&c, "s", 7, 0).append_snapshot_id, 1);
}

/* --- or sending it again, or the next commit --- */

TARN_TEST(unknown, commit_sent_again_gets_the_snapshot_that_it_made)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    lose_a_put(&c, "b", BATCH, "a");
    tarn_store_faulty_land(f.store);
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &c.calls[0].commit, &result));
    expect_int(result.append_snapshot_id, 1);
    expect_true(result.repeated);
}

TARN_TEST(unknown, attempt_comes_before_whatever_is_committed_next)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    lose_a_put(&c, "s", 7, "a");
    struct tarn_manifest_entry b = fixture_entry(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 2, 0);
    int64_t id;
    expect_ok(fixture_append(&f, "other", 1, &b, 1, &id));
    expect_int(id, 2); /* I5 */
    expect_str(fixture_files(&f, 1, NULL), "a");
    expect_str(fixture_files(&f, NONE, NULL), "a b");
}

TARN_TEST(unknown, attempt_holds_up_those_behind_it_and_loses_none)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    fixture_init_options(&f, t, "\"tarn.group-commit\":\"none\"");
    crowd_init(&c, &f);
    c.no_plug = true;
    rule(&f, "snapshot/", TARN_FAULT_UNKNOWN, 2);
    for (int i = 0; i < 5; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    crowd_run(&c); /* known after some asking */
    for (int i = 0; i < 5; i++)
        expect_int(c.calls[i].result.append_snapshot_id, 1 + i);
}

TARN_TEST(unknown, attempt_of_which_those_behind_are_prepared_lets_them_go_on)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    fixture_init_options(&f, t, "\"tarn.group-commit\":\"none\"");
    crowd_init(&c, &f);
    c.no_plug = true;
    rule(&f, "snapshot/", TARN_FAULT_UNKNOWN, 0);
    crowd_append(&c, "s", 1, "f1", 0);
    crowd_append(&c, "s", 2, "f2", 0);
    crowd_append(&c, "b", BATCH, "f3", 0);
    struct hurry hurry;
    hurry_start(&hurry);
    crowd_start(&c);
    tarn_gate_open(f.gate);
    while (!c.calls[0].done) /* the first is told; the next settles it first */
        usleep(2000);
    tarn_store_faulty_clear(f.store);
    hurry_stop(&hurry);
    crowd_finish(&c);
    expect_int(c.calls[0].reason, TARN_OUTCOME_UNKNOWN);
    expect_int(c.calls[1].result.append_snapshot_id, 2);
    expect_int(c.calls[2].result.append_snapshot_id, 3);
    expect_int(crowd_fate(&c, "s", 1, 0).append_snapshot_id, 1);
    expect_str(fixture_files(&f, NONE, NULL), "f1 f2 f3");
}

/* --- after a restart --- */

TARN_TEST(restarted, daemon_fills_the_slot_before_it_says_not_committed)
{
    for (int drop = 0; drop < 2; drop++) {
        TARN_OWN(fixture_fini) struct fixture f;
        struct crowd c;
        start(&c, &f, t);
        lose_a_put(&c, "s", 7, "a");
        fixture_restart(&f, drop == 1);
        expect_int(crowd_fate(&c, "s", 7, 0).state, TARN_COMMIT_NOT_COMMITTED);
        struct tarn_snapshot s = crowd_snapshot(&c, 1);
        expect_int(s.kind, TARN_COMMIT_COMPACT); /* which readers of streams skip */
        expect_slice(s.commit_user, "tarn");
        expect_int(s.delta_record_count, 0);
        tarn_store_faulty_land(f.store); /* the slot is taken */
        expect_str(fixture_files(&f, NONE, NULL), "");
        expect_int(crowd_fate(&c, "s", 7, 0).state, TARN_COMMIT_NOT_COMMITTED);
        expect_int(crowd_fate(&c, "s", 8, 0).state, TARN_COMMIT_NOT_COMMITTED); /* filled once */
        bool found;
        expect_ok(tarn_store_stat(f.inner, t->op, "db.db/t/snapshot/snapshot-2", &found, NULL));
        expect_false(found);
    }
}

TARN_TEST(restarted, daemon_finds_what_landed_while_it_was_away)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    lose_a_put(&c, "s", 7, "a");
    fixture_restart(&f, false);
    tarn_store_faulty_land(f.store);
    struct tarn_commit_fate fate = crowd_fate(&c, "s", 7, 0);
    expect_int(fate.state, TARN_COMMIT_LANDED);
    expect_int(fate.append_snapshot_id, 1);
}

TARN_TEST(restarted, daemon_meets_the_late_put_with_the_same_commit_sent_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    fixture_look_no_more(&f);
    lose_a_put(&c, "s", 7, "a");
    fixture_restart(&f, true);
    tarn_store_faulty_land(f.store);
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &c.calls[0].commit, &result));
    expect_int(result.append_snapshot_id, 1);
    expect_true(result.repeated);
    expect_str(fixture_files(&f, NONE, NULL), "a");
}

TARN_TEST(restarted, daemon_fills_no_slot_once_it_has_put_a_snapshot)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    start(&c, &f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 2, 0);
    int64_t id;
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    expect_int(crowd_fate(&c, "s", 2, 0).state, TARN_COMMIT_NOT_COMMITTED);
    struct tarn_snapshot *list;
    size_t count;
    expect_ok(tarn_table_snapshots(t->op, f.table, 1, 1000, &list, &count));
    expect_int(count, 1);
}

/* --- merged manifests --- */

static void wait_for_merge(void *table)
{
    tarn_table__merge_wait(table);
}

TARN_TEST(unknown, attempt_that_names_merged_manifests_keeps_them)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    fixture_init_options(&f, t, "\"manifest.merge-min-count\":\"4\"");
    crowd_init(&c, &f);
    c.no_plug = true;
    int64_t id;
    for (int i = 1; i <= 8; i++) {
        struct tarn_manifest_entry a =
            fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "a%d", i), 0, 0, 1, 2, 0);
        expect_ok(fixture_append(&f, "s", i, &a, 1, &id));
        tarn_mailbox_call(f.table->mailbox, wait_for_merge, f.table);
    }
    lose_a_put(&c, "s", 9, "b");
    fixture_restart(&f,
                    true); /* nobody knows of the attempt any more: its files must still be there */
    tarn_store_faulty_land(f.store);
    expect_str(fixture_files(&f, NONE, NULL), "a1 a2 a3 a4 a5 a6 a7 a8 b");
    fixture_restart(&f, true);
    expect_str(fixture_files(&f, NONE, NULL), "a1 a2 a3 a4 a5 a6 a7 a8 b");
    expect_int(crowd_fate(&c, "s", 9, 0).append_snapshot_id, 9);
}
