/*
 * Promise: each way to name a version has an answer for every input: the right snapshot, or an error that names the nearest one
 * there is. By time the last at or before it (K47), by watermark the first that has reached it; expiry never makes another of it.
 */
#include "commits.h"
#include "fault_others.h"

#include "table/watch.h"

#define NONE TARN_SNAPSHOT_NONE

static struct tarn_version at_watermark(int64_t watermark)
{
    struct tarn_version v = TARN_VERSION_LATEST;
    v.watermark = watermark;
    return v;
}

static int64_t snapshot_at(struct fixture *f, struct tarn_version version)
{
    struct tarn_snapshot s;
    bool found;
    expect_ok(tarn_table_snapshot(f->t->op, f->table, version, &found, &s));
    expect_true(found);
    return s.id;
}

static void expect_none(struct fixture *f, struct tarn_version version, const char *says)
{
    struct tarn_snapshot s;
    bool found;
    expect_status(tarn_table_snapshot(f->t->op, f->table, version, &found, &s), TARN_NO_SNAPSHOT_AT,
                  says);
}

static int64_t commit(struct fixture *f, const char *file, int64_t watermark)
{
    static int64_t identifier;
    struct tarn_manifest_entry e = fixture_entry(f, TARN_ENTRY_ADD, file, 0, 0, 1, 9, 0);
    struct tarn_commit c = {.user = tarn_slice_str("u"),
                            .identifier = ++identifier,
                            .watermark = watermark,
                            .base_snapshot_id = NONE,
                            .append.entries = &e,
                            .append.count = 1};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(f->t->op, f->table, &c, &result));
    return result.append_snapshot_id;
}

TARN_TEST(version, by_time_is_the_last_one_at_or_before_it) /* K47 */
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    expect_none(&f, TARN_VERSION_TIME(1500), "has no snapshot yet");
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0),
                               b = fixture_entry(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 9, 10);
    fixture_foreign(&f, "x", &a, 1); /* at 1000 ms */
    fixture_foreign(&f, "x", &b, 1); /* at 2000 ms */
    expect_none(&f, TARN_VERSION_TIME(999), "its earliest, 1, is of 1970-01-01T00:00:01");
    expect_int(snapshot_at(&f, TARN_VERSION_TIME(1000)), 1);
    expect_int(snapshot_at(&f, TARN_VERSION_TIME(1999)), 1);
    expect_int(snapshot_at(&f, TARN_VERSION_TIME(2000)), 2);
    expect_int(snapshot_at(&f, TARN_VERSION_TIME(INT64_MAX)), 2);
    others_expire(&f, 2);
    expect_none(&f, TARN_VERSION_TIME(1500), "its earliest, 2, is of 1970-01-01T00:00:02");
    expect_int(snapshot_at(&f, TARN_VERSION_TIME(2000)), 2);
}

/* A stream from a time begins with the first one at or behind it. */
TARN_TEST(version, since_a_time_is_the_first_one_behind_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    for (int i = 0; i < 3; i++) {
        struct tarn_manifest_entry e = fixture_entry(
            &f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%d", i), 0, 0, 1, 9, 10 * i);
        fixture_foreign(&f, "x", &e, 1); /* at 1000, 2000, 3000 ms */
    }
    expect_ok(tarn_table_look(t->op, f.table, &view));
    static const struct {
        int64_t since, want;
    } cases[] = {{0, 1},    {999, 1},  {1000, 1}, {1001, 2},
                 {2000, 2}, {2999, 3}, {3000, 3}, {3001, 4}};
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        int64_t id;
        expect_ok(tarn_table_snapshot_since(t->op, f.table, view, cases[i].since, &id));
        expect_int(id, cases[i].want);
    }
}

TARN_TEST(version, by_watermark_is_the_first_that_has_reached_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    expect_none(&f, at_watermark(5), "has no snapshot yet");
    commit(&f, "a", NONE);
    expect_none(&f, at_watermark(INT64_MIN + 1), "no snapshot whose watermark has reached");
    commit(&f, "b", 100);
    commit(&f, "c", NONE); /* says nothing: the one before holds on */
    commit(&f, "d", 200);
    commit(&f, "e", 150); /* never goes back */
    struct tarn_snapshot s;
    expect_ok(tarn_snapshot_decode(folder_get(&f, "snapshot/snapshot-5"), t->arena, &s));
    expect_int(s.watermark, 200);
    expect_int(snapshot_at(&f, at_watermark(-5)), 2);
    expect_int(snapshot_at(&f, at_watermark(100)), 2);
    expect_int(snapshot_at(&f, at_watermark(101)), 4);
    expect_int(snapshot_at(&f, at_watermark(200)), 4);
    expect_none(&f, at_watermark(201), "has reached 201");
    struct tarn_plan_request request = {.version = at_watermark(101), .no_splits = true};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.snapshot.id, 4);
    expect_int(plan.file_count, 4);
    others_expire(&f, 3);
    expect_int(snapshot_at(&f, at_watermark(100)), 3); /* of those that are there */
}

/* K03: the same messages over and over, from several threads at once. */
TARN_TEST(version, of_ten_files_sent_at_random_has_each_once)
{
    enum { THREADS = 4, SENDS = 40, FILES = 10 };
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t, "\"commit.discard-duplicate-files\":\"true\"");
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    for (int i = 0; i < THREADS * SENDS; i++) /* by users of their own: no receipt knows them */
        crowd_append(&c, tarn_arena_printf(t->arena, "u%d", i), 1 + i,
                     tarn_arena_printf(t->arena, "f%d", (int)tarn_test_random_below(t, FILES)), 0);
    for (int i = 0; i < FILES; i++)
        crowd_append(&c, tarn_arena_printf(t->arena, "all%d", i), 1000 + i,
                     tarn_arena_printf(t->arena, "f%d", i), 0);
    crowd_rush(&c);
    for (int i = 0; i < c.count; i++)
        expect_int(c.calls[i].reason, TARN_NO_REASON);
    expect_str(fixture_files(&f, NONE, NULL), "f0 f1 f2 f3 f4 f5 f6 f7 f8 f9");
    folder_check(&f);
    struct tarn_snapshot s;
    expect_ok(tarn_snapshot_decode(
        folder_get(&f,
                   tarn_arena_printf(t->arena, "snapshot/snapshot-%" PRId64, others_newest(&f))),
        t->arena, &s));
    expect_int(s.total_record_count, 2 * FILES);
}
