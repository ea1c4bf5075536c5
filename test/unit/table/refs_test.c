/*
 * Promise: a tag names a snapshot that is there when the caller hears of it, or there is none; a roll-back leaves a history at each step,
 * goes on where it was cut off, voids the receipts of what it undid, and takes nothing from a writer who went on from what was left.
 */
#include "table/refs.h"

#include "fault_others.h"

#include <pthread.h>
#include <unistd.h>

#include "table/internal.h"

#define NONE TARN_SNAPSHOT_NONE
#define S(text) tarn_slice_str(text)

/* --- tags --- */

static struct tarn_status *create(struct fixture *f, const char *name, int64_t id)
{
    struct tarn_tag tag;
    TARN_TRY(tarn_table_create_tag(f->t->op, f->table, S(name), TARN_VERSION_ID(id), NONE, &tag));
    expect_int(tag.snapshot.id, id);
    return TARN_OK;
}

static const char *tags(struct fixture *f, const char *prefix)
{
    struct tarn_test *t = f->t;
    struct tarn_slice *names;
    size_t count;
    const char *text = "";
    expect_ok(tarn_table_tag_names(t->op, f->table, S(prefix), &names, &count));
    for (size_t i = 0; i < count; i++)
        text = tarn_arena_printf(t->arena, "%s%s%.*s", text, i == 0 ? "" : " ",
                                 TARN_SLICE_ARG(names[i]));
    return text;
}

TARN_TEST(tags, are_made_once_listed_by_prefix_and_dropped)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_tag tag;
    fixture_init(&f, t);
    expect_status(create(&f, "a", 1), TARN_SNAPSHOT_NOT_FOUND, "no snapshot 1");
    expect_status(tarn_table_create_tag(t->op, f.table, S("a"), TARN_VERSION_LATEST, NONE, &tag),
                  TARN_SNAPSHOT_NOT_FOUND, "no snapshot yet");
    fixture_land(&f, 1, "a");
    fixture_land(&f, 2, "b");
    expect_ok(create(&f, "b1", 1));
    expect_ok(create(&f, "a1", 1));
    expect_ok(create(&f, "a2", 2));
    expect_status(create(&f, "a2", 1), TARN_TAG_EXISTS, "a2");
    folder_put(&f, "tag/.tag-a3.tmp", S("what another program left"));
    expect_str(tags(&f, ""), "a1 a2 b1");
    expect_str(tags(&f, "a"), "a1 a2");
    expect_ok(tarn_table_find_tag(t->op, f.table, S("a2"), &tag));
    expect_int(tag.snapshot.id, 2);
    expect_ok(tarn_table_drop_tag(t->op, f.table, S("a2")));
    expect_status(tarn_table_drop_tag(t->op, f.table, S("a2")), TARN_TAG_NOT_FOUND, "a2");
    expect_status(tarn_table_find_tag(t->op, f.table, S("a2"), &tag), TARN_TAG_NOT_FOUND, "a2");
    expect_status(tarn_table_find_tag(t->op, f.table, S("../a1"), &tag), TARN_TAG_NOT_FOUND, "");
    expect_ok(tarn_table_create_tag(t->op, f.table, S("a2"), TARN_VERSION_LATEST, 1500, &tag));
    expect_int(tag.snapshot.id, 2);
    expect_int(tag.retained_ms, 1500);
    expect_true(tag.create_time_ms <= tarn_clock_wall_ms() &&
                tag.create_time_ms > tarn_clock_wall_ms() - 60000);
    expect_status(tarn_table_create_tag(t->op, f.table, S("a4"), TARN_VERSION_LATEST, 0, &tag),
                  TARN_INVALID_ARGUMENT, "0 ms");
}

TARN_TEST(tags, whose_put_is_unknown_are_there_once)
{
    static const enum tarn_fault faults[] = {TARN_FAULT_UNKNOWN, TARN_FAULT_FAIL_AFTER};
    for (size_t i = 0; i < TARN_COUNT_OF(faults); i++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        fixture_land(&f, 1, "a");
        struct tarn_fault_rule rule = {
            .call = "put_if_absent", .key_part = "tag/", .hit_count = 1, .fault = faults[i]};
        tarn_store_faulty_add(f.store, &rule);
        expect_ok(create(&f, "x", 1));
        expect_str(tags(&f, ""), "x");
    }
}

static void expire_to_2(void *arg)
{
    others_expire(arg, 2);
}

static void roll_back_and_go_on(void *arg)
{
    others_roll_back(arg, 1);
    others_append(arg, "z");
}

TARN_TEST(tags, of_a_snapshot_that_goes_meanwhile_are_none)
{
    static const struct {
        void (*act)(void *arg);
        int64_t id;
        enum tarn_reason reason;
    } cases[] = {{expire_to_2, 1, TARN_SNAPSHOT_EXPIRED},
                 {roll_back_and_go_on, 2, TARN_SNAPSHOT_ROLLED_BACK}};
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        fixture_land(&f, 1, "a");
        fixture_land(&f, 2, "b");
        struct moment m = {
            .call = "put_if_absent", .key_part = "tag/", .act = cases[i].act, .arg = &f};
        moment_init(&f, &m);
        expect_status(create(&f, "x", cases[i].id), cases[i].reason, "while it was tagged");
        expect_int(m.happened, 1);
        expect_str(tags(&f, ""), "");
    }
}

/* --- roll-back --- */

static struct tarn_status *roll_back(struct fixture *f, struct tarn_version to,
                                     struct tarn_roll_back_result *out)
{
    struct tarn_roll_back request = {.to = to, .only_from = NONE};
    return tarn_table_roll_back(f->t->op, f->table, &request, out);
}

static struct tarn_version at_tag(const char *name)
{
    struct tarn_version v = TARN_VERSION_LATEST;
    v.tag = S(name);
    return v;
}

/* Five snapshots; `gone` and `kept` are tags of the fourth and the second. */
static void setup(struct fixture *f, struct tarn_test *t)
{
    static const char *const files[] = {"a", "b", "c", "d", "e"};
    fixture_init(f, t);
    for (int i = 0; i < 5; i++)
        fixture_land(f, i + 1, files[i]);
    expect_ok(create(f, "kept", 2));
    expect_ok(create(f, "gone", 4));
}

static void expect_back_at_2(struct fixture *f)
{
    folder_check(f);
    expect_int(others_newest(f), 2);
    expect_str(folder_files(f, 2), "a b");
    expect_str(fixture_files(f, NONE, NULL), "a b");
    expect_str(tags(f, ""), "kept");
    expect_int(fixture_fate(f, 2).state, TARN_COMMIT_LANDED);
    for (int64_t id = 3; id <= 5; id++)
        expect_int(fixture_fate(f, id).state, TARN_COMMIT_ROLLED_BACK);
}

TARN_TEST(roll_back_of_ours, is_history_and_what_it_undid_can_land_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_roll_back_result r;
    setup(&f, t);
    struct tarn_roll_back dry = {.to = TARN_VERSION_ID(2), .only_from = 5, .dry_run = true};
    expect_ok(tarn_table_roll_back(t->op, f.table, &dry, &r));
    expect_int(r.from, 5);
    expect_int(r.to, 2);
    expect_int((int64_t)r.tag_count, 1);
    expect_int(others_newest(&f), 5);
    struct tarn_roll_back late = {.to = TARN_VERSION_ID(2), .only_from = 4};
    expect_status(tarn_table_roll_back(t->op, f.table, &late, &r), TARN_SNAPSHOT_TAKEN, "is 5");
    expect_status(roll_back(&f, TARN_VERSION_ID(6), &r), TARN_SNAPSHOT_NOT_FOUND, "6");
    expect_status(roll_back(&f, at_tag("nope"), &r), TARN_TAG_NOT_FOUND, "nope");
    expect_str(tags(&f, ""), "gone kept");
    expect_ok(roll_back(&f, TARN_VERSION_ID(2), &r));
    expect_back_at_2(&f);
    for (int drop = 0; drop < 2; drop++) {
        fixture_restart(&f, drop == 1);
        expect_str(fixture_files(&f, NONE, NULL), "a b");
    }
    expect_int(fixture_land(&f, 3, "c"), 3);
    expect_str(fixture_files(&f, NONE, NULL), "a b c");
    expect_ok(roll_back(&f, at_tag("kept"), &r)); /* by a tag whose snapshot is there */
    expect_false(r.restored);
    expect_str(fixture_files(&f, NONE, NULL), "a b");
    folder_check(&f);
}

#define WRITES_MAX 12 /* that one of them makes */

/* Such calls of the store fail in turn, before or after their effect; the table is read, is somewhere between, and the same call goes on. */
static void cut_off(struct tarn_test *t, const char *call, enum tarn_fault fault, bool restarted)
{
    bool struck = true;
    for (int skip = 0; struck && (call[0] == '*' || skip < WRITES_MAX); skip += TARN_TEST_STRIDE) {
        TARN_OWN(fixture_fini) struct fixture f;
        struct tarn_roll_back_result r;
        setup(&f, t);
        struct tarn_fault_rule rule = {
            .call = call, .skip_count = skip, .hit_count = 1, .fault = fault};
        int before = tarn_store_faulty_call_count(f.store);
        tarn_store_faulty_add(f.store, &rule);
        struct tarn_status *s = roll_back(&f, TARN_VERSION_ID(2), &r);
        struck = tarn_store_faulty_call_count(f.store) - before > skip;
        tarn_store_faulty_clear(f.store);
        bool failed = s != TARN_OK;
        tarn_status_free(s);
        if (restarted)
            fixture_restart(&f, skip % 2 == 1);
        folder_check(&f);
        int64_t newest = others_newest(&f);
        expect_true(newest >= 2 && newest <= 5);
        expect_str(fixture_files(&f, NONE, NULL), folder_files(&f, newest));
        if (failed)
            expect_ok(roll_back(&f, TARN_VERSION_ID(2), &r));
        folder_check(&f);
        expect_int(others_newest(&f), 2);
        expect_str(fixture_files(&f, NONE, NULL), "a b");
        expect_str(tags(&f, ""), "kept");
        expect_int(fixture_land(&f, 9, "n"), 3);
        expect_str(fixture_files(&f, NONE, NULL), "a b n");
    }
}

TARN_TEST(roll_back_of_ours, that_is_cut_off_anywhere_goes_on)
{
    cut_off(t, "*", TARN_FAULT_FAIL_BEFORE, true);
    cut_off(t, "remove", TARN_FAULT_FAIL_AFTER, false);
    cut_off(t, "put", TARN_FAULT_FAIL_AFTER, false);
}

/* As an expiry leaves it that respects the tag: the snapshots' files go, what they name stays. */
static void expire_but_for_tags(struct fixture *f, int64_t keep)
{
    for (int64_t id = others_oldest(f); id < keep; id++)
        folder_remove(f, tarn_arena_printf(f->t->arena, "snapshot/snapshot-%" PRId64, id));
    folder_put(f, "snapshot/EARLIEST", S(tarn_arena_printf(f->t->arena, "%" PRId64, keep)));
}

TARN_TEST(roll_back_of_ours, brings_a_snapshot_back_that_a_tag_kept)
{
    bool struck = true;
    for (int skip = 0; struck; skip += TARN_TEST_STRIDE) {
        TARN_OWN(fixture_fini) struct fixture f;
        struct tarn_roll_back_result r;
        setup(&f, t);
        expire_but_for_tags(&f, 4);
        struct tarn_fault_rule rule = {
            .call = "*", .skip_count = skip, .hit_count = 1, .fault = TARN_FAULT_FAIL_BEFORE};
        int before = tarn_store_faulty_call_count(f.store);
        tarn_store_faulty_add(f.store, &rule);
        struct tarn_status *s = roll_back(&f, at_tag("kept"), &r);
        struck = tarn_store_faulty_call_count(f.store) - before > skip;
        tarn_store_faulty_clear(f.store);
        expect_int(others_hinted(&f), others_newest(&f));
        if (s != TARN_OK) { /* it is one of both, whole, at each moment */
            tarn_status_free(s);
            expect_true(strcmp(fixture_files(&f, NONE, NULL), "a b c d e") == 0 ||
                        strcmp(fixture_files(&f, NONE, NULL), "a b c d") == 0 ||
                        strcmp(fixture_files(&f, NONE, NULL), "a b") == 0);
            expect_ok(roll_back(&f, at_tag("kept"), &r));
        } else {
            expect_true(r.restored);
        }
        folder_check(&f);
        expect_int(others_oldest(&f), 2);
        expect_int(others_newest(&f), 2);
        expect_str(fixture_files(&f, NONE, NULL), "a b");
        expect_str(tags(&f, ""), "kept");
        fixture_restart(&f, skip % 2 == 1);
        expect_str(fixture_files(&f, NONE, NULL), "a b");
        expect_int(fixture_land(&f, 9, "n"), 3);
        expect_str(folder_files(&f, 3), "a b n");
    }
}

TARN_TEST(roll_back_of_ours, to_a_tag_whose_snapshot_was_rolled_back_is_refused)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_roll_back_result r;
    setup(&f, t);
    others_roll_back(&f, 3);
    others_append(&f, "x"); /* another snapshot 4 than the tag's */
    expect_status(roll_back(&f, at_tag("gone"), &r), TARN_SNAPSHOT_ROLLED_BACK, "snapshot 4");
    expect_int(others_newest(&f), 4);
}

static void append_on_top(void *arg)
{
    others_append(arg, "x");
}

/* Others commit in the midst: on what is about to go, which is lost with it, or on what is left, which stays. */
TARN_TEST(roll_back_of_ours, beside_another_writer_leaves_a_history)
{
    static const struct {
        const char *call, *key_part, *files;
    } cases[] = {
        {"remove", "snapshot-5", "a b"},
        {"remove", "snapshot-4", "a b"}, /* another snapshot 5, on top of 4 */
        {"remove", "snapshot-3", "a b"}, /* another snapshot 4, on top of 3 */
        {"list", "changelog", "a b x"},  /* on what is left */
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(fixture_fini) struct fixture f;
        struct tarn_roll_back_result r;
        setup(&f, t);
        struct moment m = {
            .call = cases[i].call, .key_part = cases[i].key_part, .act = append_on_top, .arg = &f};
        moment_init(&f, &m);
        expect_ok(roll_back(&f, TARN_VERSION_ID(2), &r));
        expect_int(m.happened, 1);
        folder_check(&f);
        expect_str(fixture_files(&f, NONE, NULL), cases[i].files);
        expect_str(folder_files(&f, others_newest(&f)), cases[i].files);
    }
}

static void append_on_2(void *arg)
{
    others_roll_back(arg, 2);
    others_append(arg, "x");
}

/* Two roll back at once, and the other goes on first: what it put there is nobody's to take. */
TARN_TEST(roll_back_of_ours, takes_nothing_from_one_who_rolled_back_too)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_roll_back_result r;
    setup(&f, t);
    struct moment m = {.call = "remove", .key_part = "snapshot-5", .act = append_on_2, .arg = &f};
    moment_init(&f, &m);
    expect_status(roll_back(&f, TARN_VERSION_ID(2), &r), TARN_SNAPSHOT_TAKEN, "snapshot 3");
    expect_int(m.happened, 1);
    folder_check(&f);
    expect_str(fixture_files(&f, NONE, NULL), "a b x");
}

/* Time runs fast, so that both soon give up asking. */
static void *hurry(void *arg)
{
    atomic_bool *stop = arg;
    for (int64_t now = tarn_clock_wall_ms(); !atomic_load(stop); now += 1000) {
        tarn_clock_fake(now);
        usleep(2000);
    }
    return NULL;
}

TARN_TEST(roll_back_of_ours, waits_for_what_is_unknown)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_roll_back_result r;
    atomic_bool stop = false;
    pthread_t thread;
    int64_t id;
    setup(&f, t);
    struct tarn_fault_rule rule = {
        .call = "put_if_absent", .key_part = "snapshot-6", .fault = TARN_FAULT_UNKNOWN};
    tarn_store_faulty_add(f.store, &rule);
    struct tarn_manifest_entry e = fixture_file(&f, "n");
    pthread_create(&thread, NULL, hurry, &stop);
    expect_status(fixture_append(&f, "u", 6, &e, 1, &id), TARN_OUTCOME_UNKNOWN, "");
    expect_status(roll_back(&f, TARN_VERSION_ID(2), &r), TARN_STORE_UNAVAILABLE, "snapshot 6");
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    tarn_clock_fake(-1);
    expect_int(others_newest(&f), 5);
    tarn_store_faulty_clear(f.store);
    expect_ok(roll_back(&f, TARN_VERSION_ID(2), &r));
    expect_back_at_2(&f);
    expect_int(fixture_fate(&f, 6).state, TARN_COMMIT_ROLLED_BACK);
}

/* --- branches --- */

static struct tarn_table *open_branch(struct fixture *f, const char *name)
{
    struct tarn_table *out = NULL;
    expect_ok(tarn_table_open_branch(f->t->op, &f->env, tarn_table_path(f->table),
                                     tarn_table_uuid(f->table), S(name), "db.t$branch_b", &out));
    return out;
}

static int64_t land_in(struct fixture *f, struct tarn_table *branch, int64_t identifier,
                       const char *name)
{
    struct tarn_manifest_entry e = fixture_file(f, name);
    struct tarn_commit c = {.user = S("u"),
                            .identifier = identifier,
                            .watermark = NONE,
                            .base_snapshot_id = NONE,
                            .append.entries = &e,
                            .append.count = 1};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(f->t->op, branch, &c, &result));
    return result.append_snapshot_id;
}

TARN_TEST(branches, have_histories_and_receipts_of_their_own)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_slice *names;
    size_t count;
    expect_status(tarn_table_create_branch(t->op, f.table, S("b"), S("nope")), TARN_TAG_NOT_FOUND,
                  "nope");
    expect_ok(tarn_table_create_branch(t->op, f.table, S("b"), S("kept")));
    expect_status(tarn_table_create_branch(t->op, f.table, S("b"), S("kept")), TARN_BRANCH_EXISTS,
                  "b");
    expect_ok(tarn_table_branches(t->op, f.table, &names, &count));
    expect_int((int64_t)count, 1);
    expect_bytes(names[0], S("b"));
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *b = open_branch(&f, "b");
    expect_str(tarn_table_main_uuid(b), tarn_table_uuid(f.table));
    expect_true(tarn_uuid_valid(S(tarn_table_uuid(b))));
    expect_true(strcmp(tarn_table_uuid(b), tarn_table_uuid(f.table)) != 0);
    expect_int(land_in(&f, b, 3, "x"), 3); /* identifier 3 of this user landed in the table only */
    expect_int(land_in(&f, b, 3, "x"), 3); /* and is known here now */
    expect_int(fixture_land(&f, 6, "f"), 6);
    expect_str(fixture_files(&f, NONE, NULL), "a b c d e f");
    expect_true(folder_has(&f, "branch/branch-b/snapshot/snapshot-3"));
    expect_true(folder_has(&f, "branch/branch-b/snapshot/snapshot-2"));
    expect_false(folder_has(&f, "branch/branch-b/snapshot/snapshot-1"));
    expect_true(folder_has(&f, "branch/branch-b/tag/tag-kept"));
    /* the next life knows them again */
    char uuid[TARN_UUID_SIZE];
    memcpy(uuid, tarn_table_uuid(b), sizeof uuid);
    tarn_table_drop_ref(&b);
    b = open_branch(&f, "b");
    expect_str(tarn_table_uuid(b), uuid);
    expect_int(land_in(&f, b, 3, "x"), 3);
    expect_ok(tarn_table_retire(t->op, b, true));
    expect_ok(tarn_table_remove_branch(t->op, f.table, S("b")));
    expect_status(tarn_table_remove_branch(t->op, f.table, S("b")), TARN_BRANCH_NOT_FOUND, "b");
    expect_ok(tarn_table_branches(t->op, f.table, &names, &count));
    expect_int((int64_t)count, 0);
}

static void fast_forward_cut_off(struct tarn_test *t, const char *call, enum tarn_fault fault)
{
    bool struck = true;
    for (int skip = 0; struck && (call[0] == '*' || skip < WRITES_MAX); skip += TARN_TEST_STRIDE) {
        TARN_OWN(fixture_fini) struct fixture f;
        setup(&f, t);
        expect_ok(tarn_table_create_branch(t->op, f.table, S("b"), S("kept")));
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *b = open_branch(&f, "b");
        land_in(&f, b, 11, "x");
        land_in(&f, b, 12, "y");
        struct tarn_fault_rule rule = {
            .call = call, .skip_count = skip, .hit_count = 1, .fault = fault};
        int before = tarn_store_faulty_call_count(f.store);
        tarn_store_faulty_add(f.store, &rule);
        struct tarn_undone undone;
        struct tarn_status *s = tarn_table_fast_forward(t->op, f.table, b, &undone);
        struck = tarn_store_faulty_call_count(f.store) - before > skip;
        tarn_store_faulty_clear(f.store);
        folder_check(&f);
        expect_str(fixture_files(&f, NONE, NULL), folder_files(&f, others_newest(&f)));
        if (s != TARN_OK) {
            tarn_status_free(s);
            expect_ok(tarn_table_fast_forward(t->op, f.table, b, &undone));
        }
        folder_check(&f);
        expect_int(others_newest(&f), 4);
        expect_str(fixture_files(&f, NONE, NULL), "a b x y");
        expect_str(tags(&f, ""), "kept");
        expect_int(fixture_fate(&f, 3).state, TARN_COMMIT_ROLLED_BACK);
        expect_int(fixture_fate(&f, 12).state, TARN_COMMIT_LANDED); /* it came with the branch */
        expect_int(fixture_land(&f, 13, "z"), 5);
        tarn_table_drop_ref(&b);
        fixture_restart(&f, skip % 2 == 1);
        expect_str(fixture_files(&f, NONE, NULL), "a b x y z");
    }
}

TARN_TEST(fast_forward_of_ours, that_is_cut_off_anywhere_goes_on)
{
    fast_forward_cut_off(t, "*", TARN_FAULT_FAIL_BEFORE);
    fast_forward_cut_off(t, "remove", TARN_FAULT_FAIL_AFTER);
    fast_forward_cut_off(t, "put_if_absent", TARN_FAULT_FAIL_AFTER);
}

/* A branch that stands on nothing of the table's: it takes its place as a whole. */
TARN_TEST(fast_forward_of_ours, from_an_empty_branch_on_leaves_nothing_of_the_table)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    expect_ok(tarn_table_create_branch(t->op, f.table, S("b"), S("")));
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *b = open_branch(&f, "b");
    struct tarn_undone undone;
    expect_status(tarn_table_fast_forward(t->op, f.table, b, &undone), TARN_SNAPSHOT_NOT_FOUND,
                  "no snapshot yet");
    expect_int(land_in(&f, b, 11, "x"), 1);
    int64_t before = others_newest(&f);
    expect_ok(tarn_table_fast_forward(t->op, f.table, b, &undone));
    expect_int(undone.from, 1);
    expect_int(undone.to, before);
    expect_ok(tarn_table_fast_forward(t->op, f.table, b, &undone));
    expect_int(undone.to, 0); /* it is the branch's already */
    folder_check(&f);
    expect_int(others_newest(&f), 1);
    expect_str(fixture_files(&f, NONE, NULL), "x");
    expect_str(tags(&f, ""), "");
    expect_int(fixture_land(&f, 12, "y"), 2);
    expect_str(folder_files(&f, 2), "x y");
}

TARN_TEST(branches, have_names_of_folders)
{
    static const char *const good[] = {"a", "2026-01", "main2", "b c", "é"};
    static const char *const bad[] = {"", " ", "main", "Main", "12", "a/b", "a$b", "a\\b", "a\n"};
    for (size_t i = 0; i < TARN_COUNT_OF(good); i++)
        expect_ok(tarn_branch_check_name(S(good[i])));
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_status(tarn_branch_check_name(S(bad[i])), TARN_NAME_INVALID, "branch");
}
