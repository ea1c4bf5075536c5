/*
 * Commits: what landed is what a plan sees, at every snapshot; what can't be is refused and leaves nothing; an
 * outcome nobody knows is settled before anything else (README.md of room table, I1..I7).
 */
#include "fault_others.h"

#include <pthread.h>

#include "table/internal.h"

#define NONE TARN_SNAPSHOT_NONE

static struct tarn_manifest_entry add(struct fixture *f, const char *name, int32_t bucket,
                                      int64_t low, int64_t high)
{
    return fixture_entry(f, TARN_ENTRY_ADD, name, bucket, 0, low, high, 0);
}

TARN_TEST(commit, is_seen_by_plans_at_its_snapshot_and_later)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a", 0, 1, 10), b = add(&f, "b", 1, 5, 20);
    int64_t id;
    expect_str(fixture_files(&f, NONE, NULL), "");
    expect_ok(fixture_append(&f, "u", 1, &a, 1, &id));
    expect_int(id, 1);
    expect_ok(fixture_append(&f, "u", 2, &b, 1, &id));
    expect_int(id, 2);
    expect_str(fixture_files(&f, NONE, NULL), "a b");
    expect_str(fixture_files(&f, 1, NULL), "a");
}

static void compact_a_and_b(struct fixture *f)
{
    struct tarn_manifest_entry a = add(f, "a", 0, 1, 10), b = add(f, "b", 0, 5, 20);
    int64_t id;
    expect_ok(fixture_append(f, "u", 1, &a, 1, &id));
    expect_ok(fixture_append(f, "u", 2, &b, 1, &id));
    struct tarn_manifest_entry change[] = {fixture_entry(f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 10, 0),
                                           fixture_entry(f, TARN_ENTRY_DELETE, "b", 0, 0, 5, 20, 0),
                                           fixture_entry(f, TARN_ENTRY_ADD, "c", 0, 5, 1, 20, 0)};
    expect_ok(fixture_compact(f, change, 3, &id));
    expect_int(id, 3);
}

TARN_TEST(commit, of_a_compaction_keeps_the_past_readable)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    compact_a_and_b(&f);
    expect_str(fixture_files(&f, NONE, NULL), "c");
    expect_str(fixture_files(&f, 2, NULL), "a b");
    expect_str(fixture_files(&f, 1, NULL), "a");
}

TARN_TEST(commit, survives_a_restart_with_and_without_its_state)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    compact_a_and_b(&f);
    for (int drop = 0; drop < 2; drop++) {
        fixture_restart(&f, drop == 1);
        expect_str(fixture_files(&f, NONE, NULL), "c");
        expect_str(fixture_files(&f, 2, NULL), "a b");
        expect_str(fixture_files(&f, 1, NULL), "a");
    }
    int64_t id; /* receipts come back from the snapshots */
    struct tarn_manifest_entry b = add(&f, "b", 0, 5, 20);
    expect_ok(fixture_append(&f, "u", 2, &b, 1, &id));
    expect_int(id, 2);
}

TARN_TEST(commit, sent_again_is_answered_with_its_snapshot)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a", 0, 1, 10);
    int64_t id;
    for (int i = 0; i < 3; i++) {
        expect_ok(fixture_append(&f, "u", 7, &a, 1, &id));
        expect_int(id, 1);
    }
    expect_str(fixture_files(&f, NONE, NULL), "a");
    struct tarn_manifest_entry b = add(&f, "b", 0, 1, 10);
    expect_status(fixture_append(&f, "u", 6, &b, 1, &id), TARN_COMMIT_IDENTIFIER_STALE, "7");
    expect_str(fixture_files(&f, NONE, NULL), "a");
}

TARN_TEST(commit, that_removes_what_is_not_live_is_refused)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    compact_a_and_b(&f);
    struct tarn_manifest_entry change[] = {
        fixture_entry(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 10, 0),
        fixture_entry(&f, TARN_ENTRY_ADD, "d", 0, 5, 30, 40, 0)};
    int64_t id;
    expect_status(fixture_compact(&f, change, 2, &id), TARN_COMMIT_CONFLICT, "no longer live");
    expect_str(fixture_files(&f, NONE, NULL), "c");
}

TARN_TEST(commit, that_adds_a_live_file_or_names_one_twice_is_refused)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry twice[] = {add(&f, "a", 0, 1, 10), add(&f, "a", 0, 1, 10)};
    int64_t id;
    expect_status(fixture_append(&f, "u", 1, twice, 2, &id), TARN_INVALID_ARGUMENT, "twice");
    expect_ok(fixture_append(&f, "u", 1, twice, 1, &id));
    expect_status(fixture_append(&f, "u", 2, twice, 1, &id), TARN_COMMIT_CONFLICT, "already live");
}

TARN_TEST(commit, with_overlapping_files_in_a_level_is_refused)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    compact_a_and_b(&f); /* c covers 1..20 in level 5 */
    struct tarn_manifest_entry over = fixture_entry(&f, TARN_ENTRY_ADD, "d", 0, 5, 20, 40, 0);
    struct tarn_manifest_entry beside = fixture_entry(&f, TARN_ENTRY_ADD, "e", 0, 5, 21, 40, 0);
    int64_t id;
    expect_status(fixture_compact(&f, &over, 1, &id), TARN_COMMIT_CONFLICT, "overlap");
    expect_ok(fixture_compact(&f, &beside, 1, &id));
}

TARN_TEST(commit, with_another_bucket_count_is_refused)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a", 0, 1, 10), b = add(&f, "b", 3, 1, 10);
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, &a, 1, &id));
    b.total_buckets = 4;
    expect_status(fixture_append(&f, "u", 2, &b, 1, &id), TARN_BUCKET_MISMATCH, "2 buckets");
}

TARN_TEST(commit, adopts_a_foreign_snapshot_and_goes_on_top_of_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a", 0, 1, 10), x = add(&f, "x", 0, 1, 3),
                               b = add(&f, "b", 0, 2, 3);
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, &a, 1, &id));
    fixture_look_no_more(&f); /* nobody looks: the put meets it */
    expect_int(fixture_foreign(&f, "stranger", &x, 1), 2);
    expect_ok(fixture_append(&f, "u", 2, &b, 1, &id));
    expect_int(id, 3);
    expect_str(fixture_files(&f, NONE, NULL), "a b x");
    expect_str(fixture_files(&f, 2, NULL), "a x");
    fixture_look_every(&f, 0);
    struct tarn_manifest_entry y = add(&f, "y", 0, 1, 3);
    expect_int(fixture_foreign(&f, "stranger", &y, 1), 4);
    expect_str(fixture_files(&f, NONE, NULL), "a b x y"); /* a read meets it, too */
}

TARN_TEST(commit, follows_a_foreign_roll_back_and_voids_its_receipts)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a", 0, 1, 10), b = add(&f, "b", 0, 2, 3);
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, &a, 1, &id));
    expect_ok(fixture_append(&f, "u", 2, &b, 1, &id));
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/t/snapshot/LATEST", tarn_slice_str("1")));
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-2"));
    expect_str(fixture_files(&f, NONE, NULL), "a");
    expect_ok(fixture_append(&f, "u", 2, &b, 1,
                             &id)); /* a replay under the same identity commits again */
    expect_int(id, 2);
    expect_str(fixture_files(&f, NONE, NULL), "a b");
}

static void fault(struct fixture *f, const char *call, const char *key, enum tarn_fault kind,
                  int hits)
{
    struct tarn_fault_rule rule = {.call = call, .key_part = key, .hit_count = hits, .fault = kind};
    tarn_store_faulty_add(f->store, &rule);
}

TARN_TEST(commit, whose_answer_was_lost_is_found_by_reading_back)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a", 0, 1, 10), b = add(&f, "b", 0, 2, 3);
    int64_t id;
    fault(&f, "put_if_absent", "snapshot-1", TARN_FAULT_FAIL_AFTER, 1); /* K01: it was stored */
    expect_ok(fixture_append(&f, "u", 1, &a, 1, &id));
    expect_int(id, 1);
    tarn_store_faulty_clear(f.store);
    fault(&f, "put_if_absent", "snapshot-2", TARN_FAULT_FAIL_BEFORE, 1); /* K01: it was not */
    expect_ok(fixture_append(&f, "u", 2, &b, 1, &id));
    expect_int(id, 2);
    expect_str(fixture_files(&f, NONE, NULL), "a b");
}

TARN_TEST(commit, on_a_full_disk_fails_at_once_and_leaves_nothing)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a", 0, 1, 10);
    int64_t id;
    fault(&f, "put_if_absent", "snapshot-", TARN_FAULT_FULL, 0);
    int64_t begun = tarn_clock_mono_ms();
    expect_status(fixture_append(&f, "u", 1, &a, 1, &id), TARN_DISK_FULL, "");
    expect_true(tarn_clock_mono_ms() - begun < 5000);
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f.inner, t->op, "db.db/t/manifest", true, &objects, &count));
    expect_int(count, 0);
    tarn_store_faulty_clear(f.store);
    expect_ok(fixture_append(&f, "u", 1, &a, 1, &id));
    expect_int(id, 1);
}

static size_t objects_in(struct fixture *f, const char *folder)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->inner, f->t->op,
                              tarn_arena_printf(f->t->arena, "db.db/t/%s", folder), true, &objects,
                              &count));
    return count;
}

/* Kind by kind, since hints are put beside the answers. A put that fails is read back and put again; what the table looks
 * at, and what it writes before, fails the commit. */
TARN_TEST(commit, fails_whole_at_every_store_call_and_succeeds_afterwards)
{
    static const struct {
        const char *call;
        int failures;
    } calls[] = {{"get", 1}, {"stat", 0}, {"list", 0},          {"read_at", 0}, {"put_many", 1},
                 {"put", 0}, {"open", 0}, {"put_if_absent", 0}, {"put_hint", 0}};
    enum { SKIPS = 8 }; /* more than there are calls of one kind in a commit */
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(
        &f, t, "\"manifest.merge-min-count\":\"1000\""); /* a merge beside would take some calls */
    struct tarn_manifest_entry first = add(&f, "first", 0, 1, 6);
    int64_t id, n = 1;
    expect_ok(fixture_append(&f, "u", n, &first, 1, &id));
    for (size_t k = 0; k < TARN_COUNT_OF(calls); k++) {
        int failures = 0;
        for (int skip = 0; skip < SKIPS; skip++) {
            n++;
            struct tarn_manifest_entry e = add(&f, tarn_arena_printf(t->arena, "f%03" PRId64, n),
                                               (int)(n % 2), 10 * n, 10 * n + 5);
            size_t manifests = objects_in(&f, "manifest");
            struct tarn_fault_rule rule = {.call = calls[k].call,
                                           .skip_count = skip,
                                           .hit_count = 1,
                                           .fault = TARN_FAULT_FAIL_BEFORE};
            tarn_store_faulty_add(f.store, &rule);
            struct tarn_status *s = fixture_append(&f, "u", n, &e, 1, &id);
            if (s != TARN_OK) { /* wholly */
                failures++;
                expect_int(objects_in(&f, "manifest"), manifests);
                expect_int(others_newest(&f), n - 1);
            }
            tarn_status_free(s);
            tarn_store_faulty_clear(f.store);
            expect_ok(fixture_append(&f, "u", n, &e, 1, &id)); /* again: lands once */
            expect_int(id, n);
        }
        if (failures != calls[k].failures)
            expect_unreachable("%d failures by %s, not %d", failures, calls[k].call,
                               calls[k].failures);
    }
    fixture_restart(&f, true);
    struct tarn_snapshot *snapshots;
    size_t count;
    expect_ok(tarn_table_snapshots(t->op, f.table, 1, 1000, &snapshots, &count));
    expect_int(count, n);
    expect_int(snapshots[n - 1].total_record_count, n * 6);
}

/* --- many writers --- */

struct writer {
    struct fixture *f;
    int number, count;
    struct tarn_manifest_entry *entries;
    bool failed;
};

static void *write_many(void *arg)
{
    struct writer *w = arg;
    for (int i = 0; i < w->count; i++) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init(&op);
        char user[16];
        snprintf(user, sizeof user, "w%d", w->number);
        struct tarn_commit c = {.user = tarn_slice_str(user),
                                .identifier = i,
                                .watermark = TARN_SNAPSHOT_NONE,
                                .append.entries = &w->entries[i],
                                .append.count = 1};
        struct tarn_commit_result result;
        struct tarn_status *s = tarn_table_commit(&op, w->f->table, &c, &result);
        w->failed |= s != TARN_OK;
        tarn_status_free(s);
    }
    return NULL;
}

static void wait_for_merge(void *table)
{
    tarn_table__merge_wait(table);
}

TARN_TEST(commit, of_16_writers_makes_320_snapshots_without_gaps) /* K02 */
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct writer writers[16];
    pthread_t threads[16];
    for (int i = 0; i < 16; i++) {
        writers[i] = (struct writer){
            &f, i, 20, tarn_arena_calloc(t->arena, 20, sizeof(struct tarn_manifest_entry)), false};
        for (int k = 0; k < 20; k++)
            writers[i].entries[k] =
                add(&f, tarn_arena_printf(t->arena, "w%d-%d", i, k), i % 2, k, k + 1);
    }
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, write_many, &writers[i]);
    bool failed = false;
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        failed |= writers[i].failed;
    }
    expect_false(failed);
    struct tarn_snapshot *snapshots;
    size_t count;
    expect_ok(tarn_table_snapshots(t->op, f.table, 1, 1000, &snapshots, &count));
    expect_int(count, 320);
    for (size_t i = 0; i < count; i++)
        expect_int(snapshots[i].id, i + 1);
    expect_int(snapshots[319].total_record_count, 640);
    /* Merging goes on beside them, as far as they leave it time; two commits later the list is short. */
    struct tarn_manifest_file *base, *delta;
    size_t base_count, delta_count;
    for (int i = 0; i < 2; i++) {
        struct tarn_manifest_entry e = add(&f, i == 0 ? "y" : "z", 0, 1, 2);
        int64_t id;
        tarn_mailbox_call(f.table->mailbox, wait_for_merge, f.table);
        expect_ok(fixture_append(&f, "behind", i, &e, 1, &id));
    }
    expect_ok(tarn_table_snapshots(t->op, f.table, 322, 1000, &snapshots, &count));
    expect_int(count, 1);
    expect_ok(tarn_table_manifests(t->op, f.table, &snapshots[0], &base, &base_count, &delta,
                                   &delta_count));
    expect_true(base_count < (size_t)f.table->view->view.options.manifest_merge_min_count);
    expect_int(delta_count, 1);
}

/* --- sequence numbers --- */

TARN_TEST(sequence, blocks_lie_above_what_is_live_or_was_handed_out)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t first;
    expect_ok(tarn_table_reserve_sequences(t->op, f.table, tarn_row_empty(), 0, 10, &first));
    expect_int(first, 0);
    expect_ok(tarn_table_reserve_sequences(t->op, f.table, tarn_row_empty(), 0, 5, &first));
    expect_int(first, 10);
    expect_ok(tarn_table_reserve_sequences(t->op, f.table, tarn_row_empty(), 1, 5, &first));
    expect_int(first, 0);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 10, 100);
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, &a, 1, &id));
    expect_ok(tarn_table_reserve_sequences(t->op, f.table, tarn_row_empty(), 0, 1, &first));
    expect_int(first, 110);
    expect_status(
        tarn_table_reserve_sequences(t->op, f.table, tarn_row_empty(), 0, INT64_MAX, &first),
        TARN_INVALID_ARGUMENT, "");
    struct tarn_manifest_entry last = fixture_entry(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 10, 100);
    last.file.max_sequence = INT64_MAX;
    expect_ok(fixture_append(&f, "u", 2, &last, 1, &id));
    expect_status(tarn_table_reserve_sequences(t->op, f.table, tarn_row_empty(), 0, 1, &first),
                  TARN_INVALID_ARGUMENT, "no sequence numbers left");
}

/* --- plans --- */

TARN_TEST(plan, prunes_by_bucket_and_by_key)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry e[] = {add(&f, "low0", 0, 1, 10), add(&f, "low1", 1, 1, 10),
                                      add(&f, "high0", 0, 50, 60), add(&f, "high1", 1, 50, 60)};
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, e, 4, &id));
    expect_str(fixture_files(&f, NONE, "id > 20"), "high0 high1");
    expect_str(fixture_files(&f, NONE, "id > 100"), "");
    expect_str(fixture_files(&f, NONE, "v = 'x'"), "high0 high1 low0 low1");
    /* BIGINT 1 hashes to 1465514398 (docs/format.md, vectors): bucket 0 of 2 */
    expect_str(fixture_files(&f, NONE, "id = 1"), "low0");
    expect_str(fixture_files(&f, NONE, "id = 1 OR v = 'x'"), "high0 high1 low0 low1");
}

TARN_TEST(plan, names_expired_and_unknown_snapshots)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    compact_a_and_b(&f);
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(9)};
    struct tarn_plan plan;
    expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_SNAPSHOT_NOT_FOUND,
                  "latest is 3");
    expect_ok(
        tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-1")); /* expired by another */
    request.version.snapshot_id = 1;
    expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_SNAPSHOT_EXPIRED,
                  "earliest is 2");
    expect_str(fixture_files(&f, 2, NULL), "a b");
    expect_str(fixture_files(&f, NONE, NULL), "c");
}

TARN_TEST(plan, splits_keep_overlapping_files_together)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry e[] = {add(&f, "a", 0, 1, 10), add(&f, "b", 0, 5, 20),
                                      add(&f, "c", 0, 30, 40)};
    for (int i = 0; i < 3; i++)
        e[i].file.size = 100 << 20; /* two don't fit into one split of 128 MB */
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, e, 3, &id));
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.split_count, 2);
    expect_int(plan.splits[0].file_count, 2);
    expect_false(plan.splits[0].raw);
    expect_int(plan.splits[1].file_count, 1);
    expect_true(plan.splits[1].raw);
}

/* As Java packs the files of one level: name 10 lies before name 2, its keys behind. */
TARN_TEST(plan, splits_of_one_level_are_ranges_of_keys)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry e[12];
    for (int i = 0; i < 12; i++) {
        e[i] = fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "data-%d", i), 0, 5,
                             10 * i, 10 * i + 9, 0);
        e[i].file.size = 40 << 20; /* three fit into a split of 128 MB */
    }
    int64_t id;
    expect_ok(fixture_compact(&f, e, 12, &id));
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.split_count, 4);
    for (int i = 0; i < 12; i++) {
        expect_int(plan.splits[i / 3].file_count, 3);
        expect_true(plan.splits[i / 3].raw);
        expect_slice(plan.splits[i / 3].files[i % 3].entry.file.name,
                     tarn_arena_printf(t->arena, "data-%d", i));
    }
}

TARN_TEST(plan, time_travel_has_an_answer_for_every_time) /* K47 */
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = add(&f, "a", 0, 1, 10), b = add(&f, "b", 0, 5, 20);
    fixture_foreign(&f, "x", &a, 1); /* at 1000 ms */
    fixture_foreign(&f, "x", &b, 1); /* at 2000 ms */
    struct {
        int64_t at, want;
    } cases[] = {{1000, 1}, {1999, 1}, {2000, 2}, {5000, 2}};
    struct tarn_snapshot s;
    bool found;
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        expect_ok(tarn_table_snapshot(t->op, f.table, TARN_VERSION_TIME(cases[i].at), &found, &s));
        expect_int(s.id, cases[i].want);
    }
    expect_status(tarn_table_snapshot(t->op, f.table, TARN_VERSION_TIME(999), &found, &s),
                  TARN_NO_SNAPSHOT_AT, "1970-01-01T00:00:01");
}
