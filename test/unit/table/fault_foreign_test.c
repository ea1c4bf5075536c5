/*
 * Promise: other programs roll back, expire, fast-forward, change the schema and commit in a table's folder at any moment, also in the
 * midst of a commit of ours or while we are paused, and: what was rolled back is never put back, an id that was used and expired is never
 * used again, no plan names what is gone, nothing of theirs is lost. (docs/faults.md, rows 6, 12, 13, 14, 19; README.md of room table, I3)
 */
#include "commits.h"
#include "fault_others.h"

#include <pthread.h>
#include <unistd.h>

#define NONE TARN_SNAPSHOT_NONE
#define LONG_MS 6000 /* above TARN_CLAIM_AGE_MAX_MS */

/* The latest plan is what a stranger would read, now and after a restart with and without the state. */
static void same_everywhere(struct fixture *f, const char *files)
{
    folder_check(f);
    expect_str(folder_files(f, others_newest(f)), files);
    expect_str(fixture_files(f, NONE, NULL), files);
    for (int drop = 0; drop < 2; drop++) {
        fixture_restart(f, drop == 1);
        expect_str(fixture_files(f, NONE, NULL), files);
    }
}

/* --- a roll-back --- */

TARN_TEST(roll_back, that_nobody_told_us_of_is_met_by_the_next_commit)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_land(&f, 3, "c");
    fixture_look_every(&f, 3600000); /* nobody looks */
    others_roll_back(&f, 1);
    expect_int(fixture_land(&f, 4, "d"), 2);
    expect_int(fixture_fate(&f, 2).state, TARN_COMMIT_ROLLED_BACK);
    expect_int(fixture_fate(&f, 3).state, TARN_COMMIT_ROLLED_BACK);
    same_everywhere(&f, "a d");
}

TARN_TEST(roll_back, filled_up_again_by_others_is_met_by_the_next_commit)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_land(&f, 3, "c");
    fixture_look_every(&f, 3600000);
    others_roll_back(&f, 1);
    others_append(&f, "x");
    expect_int(others_append(&f, "y"), 3); /* the same newest id, another snapshot */
    expect_int(fixture_land(&f, 4, "d"), 4);
    expect_int(fixture_fate(&f, 3).state, TARN_COMMIT_ROLLED_BACK);
    same_everywhere(&f, "a d x y");
}

TARN_TEST(roll_back, is_seen_by_plans_and_its_files_are_not_named_any_more)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_land(&f, 3, "c");
    others_roll_back(&f, 2);
    expect_str(fixture_files(&f, NONE, NULL), "a b");
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(3)};
    struct tarn_plan plan;
    expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_SNAPSHOT_NOT_FOUND,
                  "latest is 2");
    others_roll_back(&f, 1);
    others_append(&f, "x");
    expect_str(fixture_files(&f, NONE, NULL), "a x");
    expect_str(fixture_files(&f, 2, NULL), "a x");
    request = (struct tarn_plan_request){.version = TARN_VERSION_ID(2), /* what changed, too */
                                         .changes = TARN_CHANGES_DELTA,
                                         .changes_from = 1,
                                         .no_splits = true};
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.file_count, 1);
    expect_slice(plan.files[0].entry.file.name, "x");
}

TARN_TEST(roll_back, of_everything_leaves_an_empty_table_that_goes_on)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    others_roll_back(&f, 0);
    expect_str(fixture_files(&f, NONE, NULL), "");
    expect_int(fixture_land(&f, 3, "c"), 1);
    same_everywhere(&f, "c");
}

static void roll_back_to_1(void *arg)
{
    others_roll_back(arg, 1);
    pause_for(LONG_MS);
}

static void roll_back_to_1_and_go_on(void *arg)
{
    others_roll_back(arg, 1);
    others_append(arg, "x");
    pause_for(LONG_MS);
}

static void roll_back_to_1_and_go_far(void *arg)
{
    others_roll_back(arg, 1);
    others_append(arg, "x");
    others_append(arg, "y"); /* has our id now */
    pause_for(LONG_MS);
}

/* Snapshot 3 is about to be put, or was put a moment ago, when the process stands still. */
static void pause_in_put(struct tarn_test *t, void (*act)(void *), bool afterwards, int64_t id,
                         const char *files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    pause_init();
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    struct moment m = {.call = "put_if_absent",
                       .key_part = "snapshot-3",
                       .afterwards = afterwards,
                       .act = act,
                       .arg = &f};
    moment_init(&f, &m);
    fixture_look_every(&f, 3600000);
    expect_int(fixture_land(&f, 3, "d"), id);
    expect_int(m.happened, 1);
    fixture_look_every(&f, 0);
    same_everywhere(&f, files);
    tarn_clock_fake(-1);
}

TARN_TEST(roll_back, while_we_are_paused_before_the_put_is_not_undone)
{
    pause_in_put(t, roll_back_to_1, false, 2, "a d");
    pause_in_put(t, roll_back_to_1_and_go_on, false, 3, "a d x");
    pause_in_put(t, roll_back_to_1_and_go_far, false, 4, "a d x y");
}

/* Behind the put our snapshot is the newest, and whoever rolls back removes it, too. */
TARN_TEST(roll_back, while_we_are_paused_behind_the_put_is_not_undone)
{
    pause_in_put(t, roll_back_to_1, true, 2, "a d");
    pause_in_put(t, roll_back_to_1_and_go_on, true, 3, "a d x");
}

/* No hint and nothing that was seen leads to what is left, and ours is the newest of all, with all it names. */
static void roll_back_to_2_and_let_1_expire(void *arg)
{
    folder_remove(arg, "snapshot/snapshot-3"); /* LATEST names it again: our hint came late */
    folder_remove(arg, "snapshot/snapshot-1");
    pause_for(LONG_MS);
}

TARN_TEST(roll_back, while_we_are_paused_is_not_undone_where_hints_lead_nowhere)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    pause_init();
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_land(&f, 3, "c");
    struct moment m = {.call = "put_if_absent",
                       .key_part = "snapshot-4",
                       .act = roll_back_to_2_and_let_1_expire,
                       .arg = &f};
    moment_init(&f, &m);
    fixture_look_every(&f, 3600000);
    expect_int(fixture_land(&f, 4, "d"), 3);
    expect_int(m.happened, 1);
    fixture_look_every(&f, 0);
    same_everywhere(&f, "a b d");
    tarn_clock_fake(-1);
}

TARN_TEST(roll_back, while_an_outcome_is_unknown_is_not_undone)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    struct tarn_fault_rule lost = {
        .call = "*", .key_part = "snapshot-3", .fault = TARN_FAULT_UNKNOWN};
    tarn_store_faulty_add(f.store, &lost);
    struct hurry hurry;
    hurry_start(&hurry); /* so that it soon gives up asking */
    struct tarn_manifest_entry d = fixture_file(&f, "d");
    int64_t id;
    struct tarn_status *first = fixture_append(&f, "u", 3, &d, 1, &id);
    struct tarn_status *second = fixture_append(&f, "v", 1, &d, 1, &id);
    hurry_stop(&hurry);
    expect_status(first, TARN_OUTCOME_UNKNOWN, "identifier 3");
    expect_status(second, TARN_STORE_UNAVAILABLE, "snapshot 3");
    tarn_store_faulty_clear(f.store);
    others_roll_back(&f, 1);
    struct tarn_manifest_entry e = fixture_file(&f, "e");
    expect_ok(fixture_append(&f, "v", 1, &e, 1, &id)); /* the attempt is settled first (I5) */
    expect_int(fixture_fate(&f, 3).state, TARN_COMMIT_NOT_COMMITTED);
    same_everywhere(&f, "a e");
    expect_int(fixture_land(&f, 3, "d"), 3);
    same_everywhere(&f, "a d e");
    tarn_clock_fake(-1);
}

TARN_TEST(roll_back, in_the_midst_of_a_plan_ends_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(2), .no_splits = true};
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *cursor = NULL;
    struct tarn_plan_batch batch;
    expect_ok(tarn_table_plan_begin(t->op, f.table, &request, &cursor));
    others_roll_back(&f, 1);
    others_append(&f, "x");
    expect_str(fixture_files(&f, NONE, NULL), "a x"); /* the table has noticed */
    expect_status(tarn_plan_cursor_next(cursor, &batch), TARN_SNAPSHOT_EXPIRED, "rewritten");
}

/* Likewise where the new history has nothing that the plan could meet: it doesn't come out empty. */
TARN_TEST(roll_back, to_nothing_in_the_midst_of_a_plan_ends_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(2)};
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *cursor = NULL;
    struct tarn_plan_batch batch;
    expect_ok(tarn_table_plan_begin(t->op, f.table, &request, &cursor));
    others_roll_back(&f, 1);
    struct tarn_manifest_entry gone = fixture_file(&f, "a");
    gone.kind = TARN_ENTRY_DELETE;
    others_commit(&f, "others", &gone, 1);
    expect_str(fixture_files(&f, NONE, NULL), "");
    expect_status(tarn_plan_cursor_next(cursor, &batch), TARN_SNAPSHOT_EXPIRED, "rewritten");
    tarn_plan_cursor_drop(&cursor);
    for (int restart = 0; restart < 2; restart++) { /* what is empty stays so */
        fixture_restart(&f, restart == 1);
        expect_str(fixture_files(&f, NONE, NULL), "");
        expect_str(fixture_files(&f, 1, NULL), "a");
    }
}

/* --- an expiry --- */

TARN_TEST(expiry, by_others_leaves_the_rest_and_names_the_earliest)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_land(&f, 3, "c");
    others_expire(&f, 3);
    for (int restart = 0; restart < 3; restart++) {
        struct tarn_plan_request request = {.version = TARN_VERSION_ID(2)};
        struct tarn_plan plan;
        expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_SNAPSHOT_EXPIRED,
                      "earliest is 3");
        expect_str(fixture_files(&f, NONE, NULL), "a b c");
        fixture_restart(&f, restart == 1);
    }
    expect_int(fixture_land(&f, 4, "d"), 4);
    same_everywhere(&f, "a b c d");
}

/* K12: hints and objects in any order, and a stop at each step. */
TARN_TEST(expiry, that_stops_half_way_leaves_every_plan_whole_or_refused)
{
    for (int step = 0; step < 4; step++) {
        for (int drop = 0; drop < 2; drop++) {
            TARN_OWN(fixture_fini) struct fixture f;
            fixture_init(&f, t);
            fixture_land(&f, 1, "a");
            fixture_land(&f, 2, "b");
            fixture_land(&f, 3, "c");
            struct tarn_snapshot first;
            expect_ok(
                tarn_snapshot_decode(folder_get(&f, "snapshot/snapshot-1"), t->arena, &first));
            if (step >= 1)
                folder_remove(&f, tarn_arena_printf(t->arena, "manifest/%.*s",
                                                    TARN_SLICE_ARG(first.delta_list)));
            if (step >= 2)
                folder_remove(&f, "snapshot/snapshot-1");
            if (step >= 3)
                folder_put(&f, "snapshot/EARLIEST", tarn_slice_str("2"));
            fixture_restart(&f, drop == 1 && step != 1); /* 1: nobody can index it; see below */
            struct tarn_plan_request request = {.version = TARN_VERSION_ID(1)};
            struct tarn_plan plan;
            struct tarn_status *s = tarn_table_plan(t->op, f.table, &request, &plan);
            if (s == TARN_OK)
                expect_int(plan.files_left, 1);
            else
                expect_status(s, TARN_SNAPSHOT_EXPIRED, "earliest is 2");
            expect_str(fixture_files(&f, NONE, NULL), "a b c");
            others_expire(&f, 2); /* the next run finishes the job */
            same_everywhere(&f, "a b c");
        }
    }
}

static void expire_1(void *arg)
{
    others_expire(arg, 2);
}

TARN_TEST(expiry, while_the_index_is_made_anew_is_met)
{
    for (int skip = 0; skip < 3; skip++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        fixture_land(&f, 1, "a");
        fixture_land(&f, 2, "b");
        folder_put(&f, "snapshot/EARLIEST", tarn_slice_str("1"));
        struct moment m = {.call = "get",
                           .key_part = skip == 2 ? "list" : "snapshot-1",
                           .skip = skip == 1,
                           .act = expire_1,
                           .arg = &f};
        moment_init(&f, &m);
        tarn_table_drop_ref(&f.table);
        tarn_state_close(f.state);
        f.state = NULL;
        bool fresh;
        f.state_dir = tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t));
        expect_ok(tarn_state_open(f.state_dir, &fresh, &f.state));
        f.env.state = f.state;
        expect_ok(tarn_table_open(t->op, &f.env, "db.db/t", "11111111-2222-3333-4444-555555555555",
                                  "db.t", &f.table));
        expect_int(m.happened, 1);
        expect_str(fixture_files(&f, NONE, NULL), "a b");
    }
}

static void expire_4(void *arg)
{
    others_expire(arg, 4);
}

/* A roll-back makes the index be built anew; what expires meanwhile had landed all the same. */
TARN_TEST(expiry, while_a_roll_back_is_followed_takes_no_receipt_with_it)
{
    for (int skip = 0; skip < 6; skip++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        for (int i = 1; i <= 6; i++)
            fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
        others_roll_back(&f, 5);
        struct moment m = {
            .call = "get", .key_part = "snapshot-", .skip = skip, .act = expire_4, .arg = &f};
        moment_init(&f, &m);
        expect_str(fixture_files(&f, NONE, NULL), "f1 f2 f3 f4 f5");
        for (int i = 1; i <= 5; i++) {
            struct tarn_commit_fate fate = fixture_fate(&f, i);
            if (fate.state != TARN_COMMIT_LANDED)
                expect_int(fate.state, TARN_COMMIT_NOT_KNOWN);
        }
        expect_int(fixture_fate(&f, 6).state, TARN_COMMIT_ROLLED_BACK);
        expect_int(fixture_fate(&f, 5).append_snapshot_id, 5);
    }
}

static void commit_and_expire_past(void *arg)
{
    others_append(arg, "x"); /* 3 */
    others_append(arg, "y"); /* 4 */
    others_append(arg, "z"); /* 5 */
    others_expire(arg, 5);
    pause_for(LONG_MS);
}

static void commit_and_expire_to_4(void *arg)
{
    others_append(arg, "x");
    others_append(arg, "y");
    others_append(arg, "z");
    others_expire(arg, 4); /* our id was used and is gone; the one behind it is there */
    pause_for(LONG_MS);
}

/* Issue 4, point 4: the daemon is paused while others commit and expire past it. */
TARN_TEST(expiry, past_us_while_we_are_paused_does_not_give_us_a_used_id)
{
    pause_in_put(t, commit_and_expire_past, false, 6, "a b d x y z");
    pause_in_put(t, commit_and_expire_to_4, false, 6, "a b d x y z");
}

/* The same, and the process dies before it can take its snapshot back: it stays below the others, and harms nobody. */
static void dies_with_a_used_id(struct tarn_test *t, bool hints, int64_t keep)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    struct tarn_slice base = folder_get(&f, "snapshot/snapshot-2");
    others_append(&f, "x");
    others_append(&f, "y");
    others_append(&f, "z");
    others_expire(&f, keep);
    struct tarn_manifest_entry d = fixture_file(&f, "d");
    folder_put(&f, "manifest/unused", tarn_slice_str(""));
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_snapshot s; /* ours: it names lists that were there when it was made */
    expect_ok(tarn_snapshot_decode(base, t->arena, &s));
    s.id = 3;
    tarn_snapshot_encode(&s, &json);
    folder_put(&f, "snapshot/snapshot-3", tarn_buf_slice(&json));
    (void)d;
    if (!hints) {
        folder_remove(&f, "snapshot/LATEST");
        folder_remove(&f, "snapshot/EARLIEST");
    }
    expect_str(fixture_files(&f, NONE, NULL), "a b x y z");
    for (int drop = 0; drop < 2; drop++) {
        fixture_restart(&f, drop == 1);
        expect_str(fixture_files(&f, NONE, NULL), "a b x y z");
    }
    expect_int(fixture_land(&f, 9, "e"), 6);
    expect_str(fixture_files(&f, NONE, NULL), "a b e x y z");
}

TARN_TEST(expiry, past_a_process_that_died_leaves_a_table_that_is_read_by_its_hints)
{
    dies_with_a_used_id(t, true, 5);
}

TARN_TEST(expiry, past_a_process_that_died_leaves_a_table_that_is_read_without_hints)
{
    dies_with_a_used_id(t, false, 5);
}

TARN_TEST(expiry, of_all_that_was_known_leaves_a_table_that_is_found_by_its_earliest)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    others_append(&f, "x");
    others_append(&f, "y");
    others_expire(&f, 2);
    folder_remove(&f, "snapshot/LATEST");
    tarn_store_faulty_add(f.store, &(struct tarn_fault_rule){.call = "list",
                                                             .key_part = "/snapshot",
                                                             .fault = TARN_FAULT_EMPTY_LIST});
    expect_int(fixture_land(&f, 2, "b"), 4);
    expect_str(fixture_files(&f, NONE, NULL), "a b x y");
    tarn_store_faulty_clear(f.store);
    same_everywhere(&f, "a b x y");
}

/* --- a fast-forward: snapshots from some id on are another branch's --- */

static void fast_forward(struct fixture *f)
{
    struct tarn_slice first = folder_get(f, "snapshot/snapshot-1");
    struct tarn_manifest_entry x = fixture_file(f, "x"), y = fixture_file(f, "y"),
                               z = fixture_file(f, "z");
    others_roll_back(f, 1);
    others_put(f, 2, first, "branch", &x, 1);
    others_put(f, 3, folder_get(f, "snapshot/snapshot-2"), "branch", &y, 1);
    others_put(f, 4, folder_get(f, "snapshot/snapshot-3"), "branch", &z, 1);
    others_put_schema(f, 1, "of_branch");
}

TARN_TEST(fast_forward, is_the_tables_history_from_then_on)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fast_forward(&f);
    expect_str(fixture_files(&f, NONE, NULL), "a x y z");
    expect_str(fixture_files(&f, 2, NULL), "a x");
    expect_int(fixture_fate(&f, 2).state, TARN_COMMIT_ROLLED_BACK);
    expect_int(fixture_land(&f, 3, "c"), 5);
    same_everywhere(&f, "a c x y z");
}

static void fast_forward_and_pause(void *arg)
{
    fast_forward(arg);
    pause_for(LONG_MS);
}

TARN_TEST(fast_forward, while_we_are_paused_is_not_undone)
{
    pause_in_put(t, fast_forward_and_pause, false, 5, "a d x y z");
    pause_in_put(t, fast_forward_and_pause, true, 5, "a d x y z");
}

static void expect_column(struct fixture *f, const char *column)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(f->t->op, f->table, &view));
    expect_int(view->schema.field_count, column == NULL ? 2 : 3);
    if (column != NULL)
        expect_slice(view->schema.fields[2].name, column);
}

TARN_TEST(fast_forward, that_brings_another_schema_of_the_same_id_is_seen)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    others_put_schema(&f, 1, "of_main");
    expect_column(&f, "of_main");
    fast_forward(&f); /* its schema 1 is another */
    expect_column(&f, "of_branch");
}

/* --- a schema change --- */

TARN_TEST(schema, of_others_is_met_by_reads_and_commits)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    expect_column(&f, NULL);
    fixture_look_every(&f, 3600000); /* nobody looks */
    struct tarn_manifest_entry e = fixture_file(&f, "b");
    e.file.schema_id = 1;
    int64_t id;
    expect_status(fixture_append(&f, "u", 2, &e, 1, &id), TARN_INVALID_ARGUMENT, "schema 1");
    others_put_schema(&f, 1, "w");
    expect_ok(fixture_append(&f, "u", 2, &e, 1, &id)); /* what it was written under is looked for */
    expect_column(&f, "w");
    fixture_look_every(&f, 0);
    others_put_schema(&f, 2, "w2");
    expect_column(&f, "w2");
    struct tarn_snapshot s;
    fixture_land(&f, 3, "c");
    expect_ok(tarn_snapshot_decode(folder_get(&f, "snapshot/snapshot-3"), t->arena, &s));
    expect_int(s.schema_id, 2);
}

TARN_TEST(schema, that_others_made_first_is_a_conflict)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_schema next;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(t->op, f.table, &view));
    next = view->schema;
    next.id = 1;
    fixture_look_every(&f, 3600000);
    others_put_schema(&f, 1, "w");
    struct tarn_slice theirs = folder_get(&f, "schema/schema-1");
    expect_status(tarn_table_put_schema(t->op, f.table, &next, false), TARN_SCHEMA_CONFLICT,
                  "schema 1");
    expect_bytes(folder_get(&f, "schema/schema-1"), theirs);
    expect_column(&f, "w");
}

/* The schema after the present one, with an option more. */
static struct tarn_schema next_schema(struct fixture *f, const char *value)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(f->t->op, f->table, &view));
    struct tarn_schema next = view->schema;
    struct tarn_pair *options =
        tarn_arena_calloc(f->t->arena, next.option_count + 1, sizeof *options);
    for (size_t i = 0; i < next.option_count; i++) {
        options[i].key = tarn_arena_copy(f->t->arena, next.options[i].key);
        options[i].value = tarn_arena_copy(f->t->arena, next.options[i].value);
    }
    options[next.option_count++] =
        (struct tarn_pair){tarn_slice_str("my.own"), tarn_slice_str(value)};
    next.options = options;
    next.id++;
    return next;
}

TARN_TEST(schema, whose_answer_was_lost_is_found_by_reading_back)
{
    static const enum tarn_fault faults[] = {TARN_FAULT_FAIL_AFTER, TARN_FAULT_UNKNOWN};
    for (size_t i = 0; i < TARN_COUNT_OF(faults); i++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        struct tarn_schema next = next_schema(&f, "x");
        struct tarn_fault_rule once = {
            .call = "put_if_absent", .key_part = "schema-1", .hit_count = 1, .fault = faults[i]};
        tarn_store_faulty_add(f.store, &once);
        expect_ok(tarn_table_put_schema(t->op, f.table, &next, false));
        TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
        expect_ok(tarn_table_look(t->op, f.table, &view));
        expect_int(view->schema.id, 1);
        expect_slice(tarn_schema_option(&view->schema, "my.own"), "x");
        tarn_store_faulty_clear(f.store);
        next = next_schema(&f, "y");
        struct tarn_fault_rule always = {
            .call = "put_if_absent", .key_part = "schema-2", .fault = TARN_FAULT_UNKNOWN};
        tarn_store_faulty_add(f.store, &always);
        expect_status(tarn_table_put_schema(t->op, f.table, &next, false), TARN_OUTCOME_UNKNOWN,
                      "schema 2 of table");
    }
}

TARN_TEST(schema, that_was_judged_before_the_first_snapshot_is_judged_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_schema next = next_schema(&f, "x");
    fixture_land(&f, 1, "a");
    expect_status(tarn_table_put_schema(t->op, f.table, &next, false), TARN_SCHEMA_CONFLICT,
                  "its first snapshot");
    expect_ok(tarn_table_put_schema(t->op, f.table, &next, true));
}

/* --- a writer of ours that begins right after another's commit --- */

TARN_TEST(look_now, knows_what_others_committed_before_the_call)
{
    TARN_OWN(fixture_fini) struct fixture f;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    int64_t first;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_look_every(&f, 3600000); /* nobody else looks */
    struct tarn_manifest_entry theirs = fixture_file(&f, "x");
    theirs.file.max_sequence = 5000;
    expect_int(others_commit(&f, "others", &theirs, 1), 2);
    expect_ok(tarn_table_look_now(t->op, f.table, &view));
    expect_int(view->snapshot.id, 2);
    expect_ok(
        tarn_table_reserve_sequences(t->op, f.table, theirs.partition, theirs.bucket, 1, &first));
    expect_int(first, 5001);
}

/* --- two daemons, each of which believes to be alone (row 19) --- */

struct twin {
    struct fixture f; /* a state of its own over the other's store */
    pthread_t thread;
    int number, count;
    struct tarn_manifest_entry *entries;
    bool failed;
    char message[200];
};

static void *commit_all(void *arg)
{
    struct twin *w = arg;
    for (int i = 0; i < w->count && !w->failed; i++) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init(&op);
        struct tarn_commit c = {.user = tarn_slice_str(w->number == 0 ? "twin0" : "twin1"),
                                .identifier = i,
                                .watermark = NONE,
                                .append.entries = &w->entries[i],
                                .append.count = 1};
        struct tarn_commit_result result;
        struct tarn_status *s = tarn_table_commit(&op, w->f.table, &c, &result);
        w->failed = s != TARN_OK;
        snprintf(w->message, sizeof w->message, "%s", tarn_status_message(s));
        tarn_status_free(s);
    }
    return NULL;
}

TARN_TEST(two_daemons, on_one_table_lose_and_double_nothing)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct twin twins[2];
    for (int i = 0; i < 2; i++) {
        struct twin *w = &twins[i];
        bool fresh;
        *w = (struct twin){.f = f, .number = i, .count = 40};
        w->f.env.commit_retries = 1000;
        w->f.state_dir = tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t));
        expect_ok(tarn_state_open(w->f.state_dir, &fresh, &w->f.state));
        w->f.env.state = w->f.state;
        expect_ok(tarn_table_open(t->op, &w->f.env, "db.db/t",
                                  "11111111-2222-3333-4444-555555555555", "db.t", &w->f.table));
        w->entries = tarn_arena_calloc(t->arena, 40, sizeof *w->entries);
        for (int k = 0; k < 40; k++)
            w->entries[k] = fixture_file(&f, tarn_arena_printf(t->arena, "f%d-%02d", i, k));
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&twins[i].thread, NULL, commit_all, &twins[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(twins[i].thread, NULL);
    for (int i = 0; i < 2; i++)
        expect_str(twins[i].message, "");
    folder_check(&f);
    expect_int(others_newest(&f), 80); /* one each: nobody else waited */
    const char *files = folder_files(&f, 80);
    for (int i = 0; i < 2; i++) {
        expect_str(fixture_files(&twins[i].f, NONE, NULL), files);
        tarn_table_drop_ref(&twins[i].f.table);
        tarn_state_close(twins[i].f.state);
    }
    expect_str(fixture_files(&f, NONE, NULL), files);
}

/* --- the table's folder --- */

TARN_TEST(folder, that_others_removed_takes_no_commit_and_stays_gone)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f.inner, t->op, "db.db/t", true, &objects, &count));
    for (size_t i = 0; i < count; i++)
        expect_ok(tarn_store_remove(f.inner, t->op, (const char *)objects[i].key.data));
    struct tarn_manifest_entry b = fixture_file(&f, "b");
    int64_t id;
    struct tarn_status *s = fixture_append(&f, "u", 2, &b, 1, &id);
    expect_true(s != TARN_OK);
    expect_contains(tarn_status_message(s), "db.t");
    tarn_status_free(s);
    expect_ok(tarn_store_list(f.inner, t->op, "db.db/t", true, &objects, &count));
    expect_int(count, 0);
}

static void make_again(void *arg)
{
    struct fixture *f = arg;
    others_roll_back(f, 0);
    folder_put(f, "snapshot/LATEST", tarn_slice_str("0"));
    pause_for(LONG_MS);
}

/* Row 12: the folder is another table's by now, which has no snapshot yet. */
TARN_TEST(folder, that_was_made_again_while_we_are_paused_gets_no_snapshot_on_what_it_never_had)
{
    pause_in_put(t, make_again, false, 1, "d"); /* on its own ground: nothing of the old one */
}
