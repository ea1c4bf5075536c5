/*
 * Promise: whatever others do to the history between any two of our reads of it, and wherever learning it is cut off: index, head, view and
 * receipts are of one history, and one that is there. No plan names what isn't in its snapshot, none is empty because the index is
 * being built; no receipt outlives a roll-back; an id that was used is never put again, and a snapshot that lies below the history harms
 * nobody. Each of these was found by test/history, whose seeds are named. (README.md of room table, I3 to I5, I7, I11)
 */
#include <time.h>

#include "commits.h"
#include "fault_others.h"
#include "table/internal.h"
#include "table/watch.h"

#define NONE TARN_SNAPSHOT_NONE
#define HOUR_MS 3600000

static struct tarn_status *ask(struct fixture *f, int64_t identifier, struct tarn_commit_fate *fate)
{
    return tarn_table_find_commit(f->t->op, f->table, tarn_slice_str("u"), identifier, 0, NONE,
                                  fate);
}

static void rule(struct fixture *f, const char *call, const char *key, enum tarn_fault fault,
                 int skip, int hits)
{
    struct tarn_fault_rule r = {
        .call = call, .key_part = key, .skip_count = skip, .hit_count = hits, .fault = fault};
    tarn_store_faulty_add(f->store, &r);
}

static struct tarn_status *plan(struct fixture *f, int64_t id, struct tarn_plan *out)
{
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    if (id != NONE)
        request.version = TARN_VERSION_ID(id);
    return tarn_table_plan(f->t->op, f->table, &request, out);
}

/* --- a store that lies --- */

static int64_t land_with_changelog(struct fixture *f)
{
    struct tarn_manifest_entry file = fixture_file(f, "b"), log = fixture_file(f, "log");
    struct tarn_commit commit = {
        .user = tarn_slice_str("u"),
        .identifier = 2,
        .watermark = NONE,
        .kind = TARN_COMMIT_APPEND,
        .base_snapshot_id = NONE,
        .append = {.entries = &file, .count = 1, .changelog = &log, .changelog_count = 1}};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(f->t->op, f->table, &commit, &result));
    return result.append_snapshot_id;
}

/* Changelogs may be expired on their own: they are, if neither asked for nor listed. */
TARN_TEST(lie, about_a_changelog_leaves_no_rows_out_of_streams)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    struct tarn_version second = TARN_VERSION_ID(land_with_changelog(&f));
    struct tarn_plan_request request = {
        .version = second, .no_splits = true, .changes = TARN_CHANGES_CHANGELOG, .changes_from = 1};
    struct tarn_snapshot snapshot;
    struct tarn_plan p;
    bool found;
    expect_ok(tarn_table_snapshot(t->op, f.table, second, &found, &snapshot));
    const char *list = tarn_arena_str(t->arena, snapshot.changelog_list);
    rule(&f, "get", list, TARN_FAULT_NOT_FOUND, 0, 1);
    fixture_restart(&f, true); /* which is when changelogs are read */
    struct tarn_status *s = tarn_table_plan(t->op, f.table, &request, &p);
    expect_true(s == TARN_OK || tarn_status_reason(s) == TARN_STORE_UNAVAILABLE);
    tarn_status_free(s);
    expect_ok(tarn_table_plan(t->op, f.table, &request, &p));
    expect_int(p.file_count, 1);
    folder_remove(&f, tarn_arena_printf(t->arena, "manifest/%s", list));
    fixture_restart(&f, true);
    expect_ok(tarn_table_plan(t->op, f.table, &request, &p));
    expect_int(p.file_count, 0);
    expect_str(fixture_files(&f, NONE, NULL), "a b");
}

TARN_TEST(lie, about_what_a_snapshot_stands_on_leaves_the_past)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    others_append(&f, "x");
    struct tarn_snapshot below;
    struct tarn_plan p;
    expect_ok(tarn_snapshot_decode(folder_get(&f, "snapshot/snapshot-2"), t->arena, &below));
    rule(&f, "get", tarn_arena_str(t->arena, below.base_list), TARN_FAULT_NOT_FOUND, 0, 1);
    tarn_status_free(plan(&f, NONE, &p)); /* it may be told to come again */
    expect_str(fixture_files(&f, NONE, NULL), "a b x");
    expect_str(fixture_files(&f, 1, NULL), "a");
}

/* --- one history --- */

static void back_to_1_and_two_others(void *arg)
{
    others_roll_back(arg, 1);
    others_append(arg, "y");
    others_append(arg, "z");
}

/* Seeds 286, 347: the ids are the same before and after, at whichever read it happens. */
static void replaced_at(struct tarn_test *t, const char *call, const char *key, int skip,
                        bool afterwards, int *happened)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    others_append(&f, "x");
    struct moment m = {.call = call,
                       .key_part = key,
                       .skip = skip,
                       .afterwards = afterwards,
                       .act = back_to_1_and_two_others,
                       .arg = &f};
    moment_init(&f, &m);
    struct tarn_commit_fate fate = fixture_fate(&f, 2);
    *happened += m.happened;
    if (m.happened++ == 0) /* and not later on */
        back_to_1_and_two_others(&f);
    expect_str(fixture_files(&f, NONE, NULL), "a y z");
    expect_str(fixture_files(&f, 2, NULL), "a y");
    fate = fixture_fate(&f, 2);
    expect_true(fate.state != TARN_COMMIT_LANDED);
    expect_int(fixture_fate(&f, 1).append_snapshot_id, 1);
    expect_int(fixture_land(&f, 3, "c"), 4);
    folder_check(&f);
    expect_str(fixture_files(&f, NONE, NULL), folder_files(&f, 4));
}

TARN_TEST(one_history, is_indexed_whatever_is_replaced_between_two_reads)
{
    static const struct {
        const char *call, *key;
    } reads[] = {{"get", "snapshot-"}, {"get", "manifest"}, {"stat", "snapshot-"}};
    int happened = 0;
    for (size_t r = 0; r < TARN_COUNT_OF(reads); r++)
        for (int skip = 0; skip < 7; skip++)
            for (int side = 0; side < 2; side++)
                replaced_at(t, reads[r].call, reads[r].key, skip, side == 1, &happened);
    expect_true(happened >= 15); /* others have no such read any more */
}

static void back_to_2_and_another(void *arg)
{
    others_roll_back(arg, 2);
    others_append(arg, "y");
}

/* Seeds 1646, 70057: a view that may be old is no reason to plan a snapshot that was replaced. */
TARN_TEST(one_history, is_planned_where_a_snapshot_was_replaced_since_the_look)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_land(&f, 3, "c");
    fixture_land(&f, 4, "d");
    fixture_look_every(&f, HOUR_MS);
    back_to_2_and_another(&f);
    expect_str(fixture_files(&f, 3, NULL), "a b y");
    struct tarn_plan p;
    expect_status(plan(&f, 4, &p), TARN_SNAPSHOT_NOT_FOUND, "latest is 3");
}

/* Seed 38: rolled back isn't expired, also while nobody has looked. */
TARN_TEST(one_history, that_was_rolled_back_since_the_look_has_not_expired)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_look_every(&f, HOUR_MS);
    others_roll_back(&f, 1);
    struct tarn_plan p;
    expect_status(plan(&f, 2, &p), TARN_SNAPSHOT_NOT_FOUND, "latest is 1");
    expect_str(fixture_files(&f, NONE, NULL), "a");
}

/* --- learning it is cut off --- */

/* Seed 147, 70053: the index is empty, the view is from before. */
TARN_TEST(cut_off, rebuild_leaves_no_plan_that_is_empty)
{
    for (int skip = 0; skip < 6; skip++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        for (int i = 1; i <= 4; i++)
            fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
        expect_str(fixture_files(&f, NONE, NULL), "f1 f2 f3 f4");
        others_roll_back(&f, 3);
        fixture_look_every(&f, HOUR_MS);
        rule(&f, "get", "manifest-", TARN_FAULT_FAIL_BEFORE, skip, 0);
        struct tarn_commit_fate fate;
        struct tarn_plan p;
        struct tarn_status *s = ask(&f, 4, &fate); /* it looks, whatever the age of the view */
        bool failed = s != TARN_OK;
        tarn_status_free(s);
        s = plan(&f, NONE, &p);
        if (s == TARN_OK)
            expect_int(p.file_count, 3);
        else
            expect_true(failed);
        tarn_status_free(s);
        tarn_store_faulty_clear(f.store);
        expect_str(fixture_files(&f, NONE, NULL), "f1 f2 f3");
    }
}

/* Seeds 1155, 1058, 60061, 203518: more roll-backs while the index is still being built for the first one. */
TARN_TEST(cut_off, rebuild_keeps_no_receipt_of_what_is_rolled_back_meanwhile)
{
    for (int skip = 0; skip < 16; skip++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        for (int i = 1; i <= 7; i++)
            fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
        others_roll_back(&f, 6);
        rule(&f, "get", "manifest-", TARN_FAULT_FAIL_BEFORE, skip, 0);
        struct tarn_commit_fate fate;
        tarn_status_free(ask(&f, 7, &fate));
        others_roll_back(&f, 5);
        tarn_status_free(ask(&f, 7, &fate));
        others_roll_back(&f, 3);
        others_append(&f, "x");
        others_append(&f, "y");
        others_append(&f, "z");
        tarn_store_faulty_clear(f.store);
        for (int i = 1; i <= 3; i++)
            expect_int(fixture_fate(&f, i).append_snapshot_id, i);
        for (int i = 4; i <= 7; i++)
            expect_int(fixture_fate(&f, i).state, TARN_COMMIT_ROLLED_BACK);
        expect_str(fixture_files(&f, NONE, NULL), "f1 f2 f3 x y z");
    }
}

struct cut {
    struct fixture *f;
    struct tarn_store *faulty;
    int skip;
};

static void back_to_3_and_cut(void *arg)
{
    const struct cut *cut = arg;
    struct tarn_fault_rule fails = {.call = "get",
                                    .key_part = "manifest-",
                                    .skip_count = cut->skip,
                                    .fault = TARN_FAULT_FAIL_BEFORE};
    others_roll_back(cut->f, 3);
    tarn_store_faulty_add(cut->faulty, &fails);
}

/* Seed 201194: what the folder would have brought back expires before it is read. It had landed. */
static void expires_before_it_is_read(struct tarn_test *t, int skip, int cut_skip, int *happened)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    for (int i = 1; i <= 5; i++)
        fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
    others_roll_back(&f, 4);
    others_append(&f, "x");
    struct cut cut = {&f, f.store, cut_skip};
    struct moment m = {.call = "get",
                       .key_part = "manifest-",
                       .skip = skip,
                       .act = back_to_3_and_cut,
                       .arg = &cut};
    moment_init(&f, &m);
    struct tarn_commit_fate fate;
    tarn_status_free(ask(&f, 3, &fate));
    *happened += m.happened++;
    tarn_store_faulty_clear(cut.faulty);
    others_append(&f, "y");
    others_append(&f, "z");
    others_expire(&f, others_newest(&f));
    struct tarn_manifest_entry again = fixture_file(&f, "f3");
    int64_t id = 0;
    struct tarn_status *s = fixture_append(&f, "u", 3, &again, 1, &id);
    expect_true(s == TARN_OK ? id == 3 : tarn_status_reason(s) == TARN_OUTCOME_UNKNOWN);
    tarn_status_free(s);
}

TARN_TEST(cut_off, rebuild_forgets_nothing_that_expires_before_it_ends)
{
    int happened = 0;
    for (int skip = 0; skip < 12; skip++)
        for (int cut = 0; cut < 3; cut++)
            expires_before_it_is_read(t, skip, cut, &happened);
    expect_true(happened >= 6);
}

/* Seed 203518: cut off twice, the second time behind a roll-back of what both histories had in common. */
TARN_TEST(cut_off, rebuild_that_goes_on_ends_all_doubt)
{
    for (int first = 2; first < 6; first++)
        for (int second = 2; second < 6; second++) {
            TARN_OWN(fixture_fini) struct fixture f;
            struct tarn_commit_fate fate;
            fixture_init(&f, t);
            for (int i = 1; i <= 7; i++)
                fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
            others_roll_back(&f, 6);
            rule(&f, "get", "manifest-", TARN_FAULT_FAIL_BEFORE, first, 1);
            tarn_status_free(ask(&f, 7, &fate));
            others_roll_back(&f, 4);
            tarn_store_faulty_clear(f.store);
            rule(&f, "get", "manifest-", TARN_FAULT_FAIL_BEFORE, second, 1);
            tarn_status_free(ask(&f, 7, &fate));
            tarn_store_faulty_clear(f.store);
            for (int i = 1; i <= 7; i++)
                expect_int(fixture_fate(&f, i).state,
                           i <= 4 ? TARN_COMMIT_LANDED : TARN_COMMIT_ROLLED_BACK);
            expect_int(fixture_land(&f, 5, "f5"), 5);
        }
}

/* Seed 162: the index has learnt, the view hasn't; the next look must not take the head for seen. */
TARN_TEST(cut_off, look_is_no_look)
{
    static const char *const keys[] = {"schema/", "snapshot/", "manifest/"};
    for (size_t k = 0; k < TARN_COUNT_OF(keys); k++)
        for (int skip = 0; skip < 8; skip++) {
            TARN_OWN(fixture_fini) struct fixture f;
            fixture_init(&f, t);
            fixture_land(&f, 1, "a");
            others_append(&f, "x");
            rule(&f, "*", keys[k], TARN_FAULT_FAIL_BEFORE, skip, 1);
            struct tarn_plan p;
            struct tarn_status *s = plan(&f, NONE, &p);
            if (s == TARN_OK)
                expect_int(p.file_count, 2);
            tarn_status_free(s);
            tarn_store_faulty_clear(f.store);
            expect_str(fixture_files(&f, NONE, NULL), "a x");
        }
}

/* Seeds 1158, 1514: of two in a group one is known, so the table looks, and that fails: nobody stands on anything. */
TARN_TEST(cut_off, look_before_an_answer_is_told_to_all_of_the_group)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    fixture_init(&f, t);
    crowd_init(&c, &f);
    crowd_append(&c, "b1", TARN_COMMIT_IDENTIFIER_BATCH, "a", 0);
    crowd_run(&c);
    crowd_clear(&c);
    c.no_plug = true;
    others_append(&f, "x");
    crowd_append(&c, "b1", TARN_COMMIT_IDENTIFIER_BATCH, "a", 0);
    crowd_append(&c, "b2", TARN_COMMIT_IDENTIFIER_BATCH, "b", 0);
    rule(&f, "get", "manifest-", TARN_FAULT_FAIL_BEFORE, 0, 0);
    crowd_run(&c);
    for (int i = 0; i < c.count; i++)
        expect_int(c.calls[i].reason, TARN_IO_ERROR);
    tarn_store_faulty_clear(f.store);
    struct tarn_commit_result result;
    for (int i = 0; i < c.count; i++)
        expect_ok(tarn_table_commit(t->op, f.table, &c.calls[i].commit, &result));
    expect_str(fixture_files(&f, NONE, NULL), "a b plug1 x");
}

/* Seed 100022: others' next one has the old id below it, and that has expired. Who followed the old one must not go on. */
TARN_TEST(one_history, is_known_below_the_earliest_as_long_as_the_index_is)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_land(&f, 3, "c");
    uint64_t identities[4];
    for (int64_t id = 2; id <= 3; id++) {
        struct tarn_snapshot snapshot;
        bool found;
        expect_ok(tarn_table_find_snapshot(t->op, f.table, id, &found, &snapshot, &identities[id]));
    }
    others_expire(&f, 3);
    for (int restart = 0; restart < 3; restart++) {
        bool follows;
        expect_str(fixture_files(&f, NONE, NULL), "a b c");
        expect_ok(tarn_table_follows(t->op, f.table, 2, identities[2], identities[3], &follows));
        expect_int(follows, restart < 2);
        expect_ok(
            tarn_table_follows(t->op, f.table, 2, identities[2] + 1, identities[3], &follows));
        expect_false(follows);
        fixture_restart(&f, restart == 1);
    }
}

/* --- an id that was used --- */

/* Snapshot 3 with file "d" is put, and the store doesn't say whether it was; it was, if `arrives`. */
static void lose_the_put_of_3(struct fixture *f, struct crowd *c, bool arrives)
{
    fixture_init(f, c->f->t);
    crowd_init(c, f);
    c->no_plug = true;
    fixture_land(f, 1, "a");
    fixture_land(f, 2, "b");
    if (arrives)
        rule(f, "put_if_absent", "snapshot-3", TARN_FAULT_FAIL_AFTER, 0, 1);
    rule(f, "*", "snapshot-3", TARN_FAULT_UNKNOWN, 0, 0);
    crowd_append(c, "u", 3, "d", 0);
    crowd_outlast(c);
    expect_int(c->calls[0].reason, TARN_OUTCOME_UNKNOWN);
    tarn_store_faulty_clear(f->store);
    expect_int(folder_has(f, "snapshot/snapshot-3"), arrives);
}

static void back_to_1(void *arg)
{
    others_roll_back(arg, 1);
}

/* Seed 412914: what is missing below a snapshot was rolled back with it, and hasn't expired: no receipt is forgotten for that. */
TARN_TEST(one_history, is_not_cut_where_it_is_rolled_back_while_it_is_walked)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    for (int i = 1; i < 7; i++)
        fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
    struct moment m = {.call = "list", .key_part = "snapshot", .act = back_to_1, .arg = &f};
    others_append(&f, "x"); /* so that it looks */
    moment_init(&f, &m);
    expect_str(fixture_files(&f, NONE, NULL), "f1");
    expect_int(m.happened, 1);
    struct tarn_commit_fate fate = fixture_fate(&f, 99);
    expect_int(fate.state, TARN_COMMIT_NOT_COMMITTED);
    expect_int(fixture_fate(&f, 1).state, TARN_COMMIT_LANDED);
}

/* Seed 451003: what is gone from below has expired, and is no sign that nothing is left: no receipt is void for it. */
TARN_TEST(one_history, is_not_empty_where_its_first_snapshots_go_while_it_is_walked)
{
    for (int gone = 1; gone < 4; gone++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        for (int i = 1; i < 5; i++)
            fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
        others_append(&f, "x"); /* so that it looks */
        for (int i = 1; i <= gone; i++)
            rule(&f, "stat", tarn_arena_printf(t->arena, "snapshot/snapshot-%d", i),
                 TARN_FAULT_NOT_FOUND, 0, 6);
        struct tarn_commit_fate fate;
        struct tarn_status *s = ask(&f, 2, &fate);
        expect_true(s != TARN_OK || fate.state == TARN_COMMIT_LANDED);
        tarn_status_free(s);
        tarn_store_faulty_clear(f.store);
        expect_str(fixture_files(&f, NONE, NULL), "f1 f2 f3 f4 x");
        expect_int(fixture_fate(&f, 2).append_snapshot_id, 2);
    }
}

/* Seed 97: it had landed and has expired; the same bytes again would be a stranger below the history. */
TARN_TEST(used_id, of_an_attempt_that_landed_is_not_put_again)
{
    TARN_OWN(fixture_fini) struct fixture f = {.t = t};
    struct crowd c = {.f = &f};
    lose_the_put_of_3(&f, &c, true);
    others_append(&f, "x");
    others_append(&f, "y");
    others_expire(&f, 5);
    struct tarn_commit_fate fate = fixture_fate(&f, 3);
    expect_int(fate.state, TARN_COMMIT_LANDED);
    expect_int(fate.append_snapshot_id, 3);
    expect_false(folder_has(&f, "snapshot/snapshot-3"));
    expect_int(fixture_land(&f, 4, "e"), 6);
    expect_str(fixture_files(&f, NONE, NULL), "a b d e x y");
    folder_check(&f);
}

/* The callers of an attempt that is kept open are gone, and their memory with them: what is known of it is the attempt's own. */
TARN_TEST(used_id, of_a_batch_that_landed_is_known_when_its_caller_is_gone)
{
    TARN_OWN(fixture_fini) struct fixture f = {.t = t};
    struct crowd c = {.f = &f};
    fixture_init(&f, t);
    crowd_init(&c, &f);
    c.no_plug = true;
    fixture_land(&f, 1, "a");
    char name[] = "the-file", user[] = "a-batch";
    rule(&f, "put_if_absent", "snapshot-2", TARN_FAULT_FAIL_AFTER, 0, 1);
    rule(&f, "*", "snapshot-2", TARN_FAULT_UNKNOWN, 0, 0);
    struct tarn_commit *commit = crowd_append(&c, user, TARN_COMMIT_IDENTIFIER_BATCH, name, 0);
    ((struct tarn_manifest_entry *)(uintptr_t)commit->append.entries)->file.name =
        tarn_slice_str(name);
    commit->user = tarn_slice_str(user);
    uint64_t content = tarn_commit_content(commit);
    crowd_outlast(&c);
    expect_int(c.calls[0].reason, TARN_OUTCOME_UNKNOWN);
    memset(name, 'z', strlen(name));
    memset(user, 'z', strlen(user));
    tarn_store_faulty_clear(f.store);
    others_append(&f, "x");
    others_append(&f, "y");
    others_expire(&f, 4);
    struct tarn_commit_fate fate;
    expect_ok(tarn_table_find_commit(t->op, f.table, tarn_slice_str("a-batch"),
                                     TARN_COMMIT_IDENTIFIER_BATCH, content, 1, &fate));
    expect_int(fate.state, TARN_COMMIT_LANDED);
    expect_int(fate.append_snapshot_id, 2);
}

/* Seed 2: others have used it, and it has expired: nobody can tell any more, and nothing is put. */
TARN_TEST(used_id, of_an_attempt_that_never_arrived_is_not_put_again)
{
    TARN_OWN(fixture_fini) struct fixture f = {.t = t};
    struct crowd c = {.f = &f};
    lose_the_put_of_3(&f, &c, false);
    others_append(&f, "x");
    others_append(&f, "y");
    others_append(&f, "z");
    others_expire(&f, 5);
    expect_int(fixture_fate(&f, 3).state, TARN_COMMIT_NOT_KNOWN);
    expect_false(folder_has(&f, "snapshot/snapshot-3"));
    expect_int(fixture_land(&f, 4, "e"), 6);
    expect_str(fixture_files(&f, NONE, NULL), "a b e x y z");
    folder_check(&f);
}

static void back_to_2(void *arg)
{
    others_roll_back(arg, 2);
}

/* Seed 331: it had landed and was rolled back, before it is put again or in that moment. What it names went with it, and its data. */
TARN_TEST(used_id, of_an_attempt_that_was_rolled_back_is_not_put_again)
{
    for (int late = 0; late < 2; late++) {
        TARN_OWN(fixture_fini) struct fixture f = {.t = t};
        struct crowd c = {.f = &f};
        lose_the_put_of_3(&f, &c, true);
        struct moment m = {.call = "get", .key_part = "snapshot-3", .act = back_to_2, .arg = &f};
        if (late) {
            m.afterwards = true;
            moment_init(&f, &m);
        } else {
            back_to_2(&f);
        }
        expect_true(fixture_fate(&f, 3).state != TARN_COMMIT_LANDED);
        expect_true(m.happened == late);
        expect_false(folder_has(&f, "snapshot/snapshot-3"));
        expect_int(fixture_land(&f, 4, "e"), 3);
        expect_str(fixture_files(&f, NONE, NULL), "a b e");
        folder_check(&f);
    }
}

/* A snapshot right below the earliest, whose lists are gone: by a put that came late, or an expiry that stopped half way. */
TARN_TEST(used_id, right_below_the_history_harms_nobody)
{
    for (int drop = 0; drop < 3; drop++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        fixture_land(&f, 1, "a");
        fixture_land(&f, 2, "b");
        fixture_land(&f, 3, "c");
        fixture_land(&f, 4, "d");
        struct tarn_slice used = folder_get(&f, "snapshot/snapshot-2");
        others_expire(&f, 3);
        expect_str(fixture_files(&f, NONE, NULL), "a b c d");
        folder_put(&f, "snapshot/snapshot-2", used);
        folder_remove(&f, "snapshot/EARLIEST");
        if (drop < 2)
            fixture_restart(&f, drop == 1);
        others_append(&f, "x");
        expect_str(fixture_files(&f, NONE, NULL), "a b c d x");
        struct tarn_plan p;
        expect_status(plan(&f, 2, &p), TARN_SNAPSHOT_EXPIRED, "earliest is 3");
        expect_int(fixture_land(&f, 5, "e"), 6);
    }
}

/* Seed 201865: the table was empty when it was looked at. */
TARN_TEST(used_id, one_is_not_put_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_look_every(&f, HOUR_MS);
    others_append(&f, "x");
    others_append(&f, "y");
    others_expire(&f, 2);
    expect_int(fixture_land(&f, 1, "a"), 3);
    expect_str(fixture_files(&f, NONE, NULL), "a x y");
    folder_check(&f);
}

/* Seed 400151: an attempt is open, or was settled and not as landed: where others rolled back below it a put of it may still arrive. It
 * is taken back. */
static void late_put(struct tarn_test *t, bool settled, bool upon, bool look)
{
    TARN_OWN(fixture_fini) struct fixture f = {.t = t};
    struct crowd c = {.f = &f};
    lose_the_put_of_3(&f, &c, true);
    struct tarn_slice late = folder_get(&f, "snapshot/snapshot-3");
    others_roll_back(&f, 1);
    if (upon)
        others_append(&f, "x");
    if (settled)
        expect_true(fixture_fate(&f, 3).state != TARN_COMMIT_LANDED);
    fixture_look_every(&f, look ? 0 : HOUR_MS);
    folder_put(&f, "snapshot/snapshot-3", late);
    if (look || settled)
        expect_str(fixture_files(&f, NONE, NULL), upon ? "a x" : "a");
    if (!upon)
        expect_int(fixture_land(&f, 4, "e"), 2);
    expect_int(fixture_land(&f, 5, "g"), 3);
    expect_str(fixture_files(&f, NONE, NULL), upon ? "a g x" : "a e g");
    folder_check(&f);
}

TARN_TEST(used_id, taken_by_a_put_that_comes_late_is_given_back)
{
    for (int i = 0; i < 8; i++)
        late_put(t, i & 1, i & 2, i & 4);
}

/* Seeds 401135, 403288: the process ends meanwhile, and the next one finds it there, or sees it come. Below it is a gap, and what it names
 * may have gone with that. */
static void late_put_of_a_life_before(struct tarn_test *t, bool settled, bool there, bool whole)
{
    TARN_OWN(fixture_fini) struct fixture f = {.t = t};
    struct crowd c = {.f = &f};
    lose_the_put_of_3(&f, &c, true);
    struct tarn_slice late = folder_get(&f, "snapshot/snapshot-3");
    struct tarn_snapshot snapshot;
    expect_ok(tarn_snapshot_decode(late, t->arena, &snapshot));
    const char *list =
        tarn_arena_printf(t->arena, "manifest/%.*s", TARN_SLICE_ARG(snapshot.base_list));
    struct tarn_slice base = folder_get(&f, list);
    others_roll_back(&f, 1);
    if (settled)
        expect_true(fixture_fate(&f, 3).state != TARN_COMMIT_LANDED);
    if (whole)
        folder_put(&f, list, base);
    if (there)
        folder_put(&f, "snapshot/snapshot-3", late);
    fixture_restart(&f, false);
    expect_str(fixture_files(&f, NONE, NULL), "a");
    if (!there)
        folder_put(&f, "snapshot/snapshot-3", late);
    expect_int(fixture_land(&f, 4, "e"), 2);
    expect_int(fixture_land(&f, 5, "g"), 3);
    expect_str(fixture_files(&f, NONE, NULL), "a e g");
    folder_check(&f);
}

TARN_TEST(used_id, taken_by_a_put_of_the_life_before_is_given_back)
{
    for (int i = 0; i < 8; i++)
        late_put_of_a_life_before(t, i & 1, i & 2, i & 4);
}

/* What is noted of puts doesn't grow, and a put that landed at once is none that may come late. */
TARN_TEST(used_id, notes_are_of_the_last_put_and_of_unknown_ones)
{
    TARN_OWN(fixture_fini) struct fixture f = {.t = t};
    struct crowd c = {.f = &f};
    lose_the_put_of_3(&f, &c, true);
    expect_int(fixture_fate(&f, 3).state, TARN_COMMIT_LANDED);
    for (int i = 4; i < 20; i++)
        fixture_land(&f, i, tarn_arena_printf(t->arena, "f%d", i));
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__tagged_key(tarn_table_uuid(f.table), 'w', &prefix);
    for (int lives = 0; lives < 2; lives++) {
        TARN_OWN(tarn_state_iterator_drop)
        struct tarn_state_iterator *it =
            tarn_state_iterator_new(f.state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
        struct tarn_slice key, value;
        int count = 0;
        while (tarn_state_iterator_next(it, &key, &value))
            count++;
        expect_ok(tarn_state_iterator_error(it));
        expect_int(count, lives == 0 ? 2 : 1); /* the one of 3, and the last, which is over */
        tarn_state_iterator_drop(&it);
        fixture_restart(&f, false);
    }
    tarn_clock_fake(tarn_clock_wall_ms() + HOUR_MS); /* no call lasts so long */
    fixture_restart(&f, false);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(f.state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    expect_false(tarn_state_iterator_next(it, &key, &value));
    tarn_clock_fake(-1);
}

/* ... and not where its ground has expired: it is the only one that is left. */
TARN_TEST(used_id, whose_ground_has_expired_stays)
{
    for (int settled = 0; settled < 2; settled++) {
        TARN_OWN(fixture_fini) struct fixture f = {.t = t};
        struct crowd c = {.f = &f};
        lose_the_put_of_3(&f, &c, true);
        if (settled)
            expect_int(fixture_fate(&f, 3).append_snapshot_id, 3);
        others_expire(&f, 3);
        expect_str(fixture_files(&f, NONE, NULL), "a b d");
        expect_int(fixture_fate(&f, 3).append_snapshot_id, 3);
        expect_int(fixture_land(&f, 4, "e"), 4);
        expect_str(fixture_files(&f, NONE, NULL), "a b d e");
        folder_check(&f);
    }
}

/* Seeds 200044, 201112: it had landed and was told; one more put of it comes when all is rolled back, seen by a look or by nobody. */
TARN_TEST(used_id, of_what_landed_and_was_rolled_back_is_free_again)
{
    for (int round = 0; round < 4; round++) {
        TARN_OWN(fixture_fini) struct fixture f;
        int to = round % 2 + 1;
        bool look = round < 2;
        fixture_init(&f, t);
        fixture_land(&f, 1, "a");
        fixture_land(&f, 2, "b");
        rule(&f, "put_if_absent", "snapshot-3", TARN_FAULT_UNKNOWN, 0, 1);
        expect_int(fixture_land(&f, 3, "c"), 3);
        struct tarn_slice late = folder_get(&f, "snapshot/snapshot-3");
        fixture_look_every(&f, look ? 0 : HOUR_MS);
        others_roll_back(&f, to);
        if (look)
            expect_str(fixture_files(&f, NONE, NULL), to == 1 ? "a" : "a b");
        folder_put(&f, "snapshot/snapshot-3", late);
        if (look) {
            expect_str(fixture_files(&f, NONE, NULL), to == 1 ? "a" : "a b");
            expect_false(folder_has(&f, "snapshot/snapshot-3"));
        }
        expect_int(fixture_land(&f, 4, "e"), to + 1);
        folder_check(&f);
    }
}

/* Seeds 200997, 1308: a put that came late lies above a gap until it is taken back. It is no history, however the folder is looked at. */
TARN_TEST(used_id, above_a_gap_is_no_history)
{
    for (int hint = 0; hint < 2; hint++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        fixture_land(&f, 1, "a");
        fixture_land(&f, 2, "b");
        fixture_land(&f, 3, "c");
        struct tarn_slice late = folder_get(&f, "snapshot/snapshot-3");
        others_roll_back(&f, 2);
        expect_str(fixture_files(&f, NONE, NULL), "a b");
        others_roll_back(&f, 1);
        folder_put(&f, "snapshot/snapshot-3", late);
        if (hint)
            folder_put(&f, "snapshot/EARLIEST", tarn_slice_str("1"));
        expect_str(fixture_files(&f, NONE, NULL), "a");
        expect_int(fixture_fate(&f, 1).state, TARN_COMMIT_LANDED);
        for (int i = 2; i <= 3; i++)
            expect_int(fixture_fate(&f, i).state, TARN_COMMIT_ROLLED_BACK);
    }
}

/* Whatever a list leaves out is asked for by name; without hints what was known is. */
TARN_TEST(one_history, is_found_where_lists_lie)
{
    static const enum tarn_fault lies[] = {TARN_FAULT_EMPTY_LIST, TARN_FAULT_SHORT_LIST};
    for (size_t i = 0; i < TARN_COUNT_OF(lies); i++)
        for (int hint = 0; hint < 2; hint++) {
            TARN_OWN(fixture_fini) struct fixture f;
            fixture_init(&f, t);
            fixture_land(&f, 1, "a");
            fixture_land(&f, 2, "b");
            fixture_land(&f, 3, "c");
            others_append(&f, "x");
            others_append(&f, "y");
            others_expire(&f, 3);
            folder_remove(&f, "snapshot/EARLIEST");
            if (!hint)
                folder_remove(&f, "snapshot/LATEST");
            rule(&f, "list", "snapshot", lies[i], 0, 0);
            expect_str(fixture_files(&f, NONE, NULL), "a b c x y");
            expect_int(fixture_land(&f, 4, "d"), 6);
            fixture_restart(&f, hint == 1);
            expect_str(fixture_files(&f, NONE, NULL), "a b c d x y");
            expect_int(fixture_land(&f, 5, "e"), 7);
        }
}

/* --- nobody knows any more --- */

/* Seeds 1646, 80108, 90082: what others made of our snapshots has expired. What landed there isn't put a second time. */
TARN_TEST(in_doubt, nothing_lands_twice)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    fixture_land(&f, 3, "c");
    others_append(&f, "w");
    others_append(&f, "x");
    others_append(&f, "y");
    others_expire(&f, 6);
    struct tarn_manifest_entry b = fixture_file(&f, "b");
    int64_t id;
    expect_status(fixture_append(&f, "u", 2, &b, 1, &id), TARN_OUTCOME_UNKNOWN, "snapshot 2");
    expect_int(fixture_fate(&f, 2).state, TARN_COMMIT_NOT_KNOWN);
    expect_int(fixture_land(&f, 4, "d"), 7);
    expect_int(fixture_fate(&f, 4).state, TARN_COMMIT_LANDED);
    expect_str(fixture_files(&f, NONE, NULL), "a b c d w x y");
}

/* Seeds 70118, 477: of the append part it is known that it has expired in order, of the compact part it isn't. */
TARN_TEST(in_doubt, compact_part_is_not_told_to_be_missing)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    struct tarn_manifest_entry b = fixture_file(&f, "b");
    struct tarn_manifest_entry x[] = {fixture_entry(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 10, 0),
                                      fixture_entry(&f, TARN_ENTRY_ADD, "x", 0, 5, 1, 10, 0)};
    struct tarn_commit commit = {.user = tarn_slice_str("u"),
                                 .identifier = 2,
                                 .watermark = NONE,
                                 .append = {.entries = &b, .count = 1},
                                 .compact = {.entries = x, .count = 2}};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_int(result.compact_snapshot_id, 3);
    others_expire(&f, 3);
    expect_int(fixture_fate(&f, 2).compact_snapshot_id, 3);
    others_append(&f, "y");
    others_expire(&f, 4);
    struct tarn_commit_fate fate = fixture_fate(&f, 2);
    expect_int(fate.state, TARN_COMMIT_NOT_KNOWN);
    expect_int(fate.append_snapshot_id, 2);
    expect_int(fate.compact_snapshot_id, 0);
    expect_int(fate.horizon_snapshot_id, 4);
}

/* Seed 90169: rolled back, sent again, landed; of the second time nobody knows any more. */
TARN_TEST(in_doubt, is_told_before_an_older_roll_back)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    others_roll_back(&f, 1);
    expect_int(fixture_fate(&f, 2).state, TARN_COMMIT_ROLLED_BACK);
    fixture_land(&f, 2, "b");
    others_append(&f, "x");
    others_append(&f, "y");
    others_expire(&f, 4);
    expect_int(fixture_fate(&f, 2).state, TARN_COMMIT_NOT_KNOWN);
}

/* ... and another writer has made its next one upon it, before it was seen: then it is history to
 * everybody, and stays. */
TARN_TEST(used_id, of_a_late_put_that_others_stand_on_is_history)
{
    struct tarn_object *objects;
    size_t count;
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    rule(&f, "put_if_absent", "snapshot-3", TARN_FAULT_UNKNOWN, 0, 1);
    expect_int(fixture_land(&f, 3, "c"), 3);
    struct tarn_slice late = folder_get(&f, "snapshot/snapshot-3");
    expect_ok(tarn_store_list(f.inner, t->op, "db.db/t/manifest", true, &objects, &count));
    struct tarn_slice *bodies = tarn_arena_calloc(t->arena, count, sizeof *bodies);
    for (size_t i = 0; i < count; i++)
        bodies[i] = folder_get(&f, (const char *)objects[i].key.data + strlen("db.db/t/"));
    others_roll_back(&f, 1);
    others_append(&f, "x");
    expect_str(fixture_files(&f, NONE, NULL), "a x");
    for (size_t i = 0; i < count; i++) /* it hadn't been there yet when they rolled back */
        folder_put(&f, (const char *)objects[i].key.data + strlen("db.db/t/"), bodies[i]);
    folder_put(&f, "snapshot/snapshot-3", late);
    others_append(&f, "y");
    expect_str(fixture_files(&f, NONE, NULL), "a b c y");
    expect_int(fixture_land(&f, 5, "e"), 5);
    expect_str(fixture_files(&f, NONE, NULL), "a b c e y");
    expect_str(folder_files(&f, 5), "a b c e y");
    expect_str(fixture_files(&f, 3, NULL), "a b c");
    fixture_restart(&f, true); /* what the folder gives is the same */
    expect_str(fixture_files(&f, NONE, NULL), "a b c e y");
    expect_str(fixture_files(&f, 3, NULL), "a b c");
}

/* ... and where the late put is a stranger's: what it was put upon isn't there any more, and what everybody reads is what it names. */
TARN_TEST(used_id, of_a_late_put_of_others_is_what_it_names)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    struct tarn_slice ground = folder_get(&f, "snapshot/snapshot-1");
    others_append(&f, "x");
    expect_str(fixture_files(&f, NONE, NULL), "a x");
    struct tarn_manifest_entry late = fixture_file(&f, "late");
    others_put(&f, 3, ground, "slow", &late, 1);
    expect_str(fixture_files(&f, NONE, NULL), "a late");
    expect_int(fixture_land(&f, 2, "b"), 4);
    expect_str(fixture_files(&f, NONE, NULL), "a b late");
    expect_str(folder_files(&f, 4), "a b late");
    fixture_restart(&f, true);
    expect_str(fixture_files(&f, NONE, NULL), "a b late");
    struct tarn_plan_request changes = {
        .version = TARN_VERSION_LATEST, .no_splits = true, .changes = TARN_CHANGES_DELTA};
    struct tarn_plan p;
    changes.changes_from = 2; /* of x, which isn't history */
    expect_status(tarn_table_plan(t->op, f.table, &changes, &p), TARN_SNAPSHOT_EXPIRED,
                  "snapshot 3 of table db.t doesn't stand on snapshot 2");
    changes.changes_from = 3;
    expect_ok(tarn_table_plan(t->op, f.table, &changes, &p));
    expect_int(p.file_count, 1);
    expect_int(fixture_land(&f, 3, "c"), 5);
}
