/*
 * Promise: clocks that jump, backwards too, or differ between writers, make no snapshot older than the one before it, lose no commit, and
 * time travel answers by what the snapshots say; what is counted in elapsed time goes by a clock that doesn't jump. What a newer Paimon
 * writes into snapshots is read or refused by name, never taken for something else. (docs/faults.md, rows 29, 30)
 */
#include "fault_others.h"

#define NONE TARN_SNAPSHOT_NONE
#define HOUR_MS INT64_C(3600000)
#define BEGIN_MS INT64_C(1700000000000)

static int64_t time_of(struct fixture *f, int64_t id)
{
    struct tarn_snapshot s;
    const char *name = tarn_arena_printf(f->t->arena, "snapshot/snapshot-%" PRId64, id);
    expect_ok(tarn_snapshot_decode(folder_get(f, name), f->t->arena, &s));
    return s.time_ms;
}

TARN_TEST(clock, that_jumps_makes_no_snapshot_older_than_the_one_before)
{
    static const int64_t jumps[] = {0, HOUR_MS, -HOUR_MS, 1, -2 * HOUR_MS, 3 * HOUR_MS, 0};
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t now = BEGIN_MS, highest = 0;
    for (size_t i = 0; i < TARN_COUNT_OF(jumps); i++) {
        now += jumps[i];
        tarn_clock_fake(now);
        int64_t id = fixture_land(&f, (int64_t)i, tarn_arena_printf(t->arena, "f%zu", i));
        expect_int(id, i + 1);
        highest = TARN_MAX(highest, now);
        expect_int(time_of(&f, id), highest);
    }
    folder_check(&f);
    struct tarn_snapshot s;
    bool found;
    expect_ok(tarn_table_snapshot(t->op, f.table, TARN_VERSION_TIME(BEGIN_MS), &found, &s));
    expect_int(s.id, 1);
    expect_ok(
        tarn_table_snapshot(t->op, f.table, TARN_VERSION_TIME(BEGIN_MS + HOUR_MS), &found, &s));
    expect_int(s.id, 6 - 1); /* the last of those that stand at it */
    expect_status(tarn_table_snapshot(t->op, f.table, TARN_VERSION_TIME(BEGIN_MS - 1), &found, &s),
                  TARN_NO_SNAPSHOT_AT, "");
    tarn_clock_fake(-1);
}

/* Another writer's clock is an hour ahead or behind. */
TARN_TEST(clock, of_another_writer_is_taken_as_it_is)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry x = fixture_file(&f, "x"), y = fixture_file(&f, "y");
    tarn_clock_fake(BEGIN_MS);
    fixture_land(&f, 1, "a");
    tarn_clock_fake(BEGIN_MS + HOUR_MS);
    others_commit(&f, "ahead", &x, 1);
    tarn_clock_fake(BEGIN_MS + 5);
    expect_int(fixture_land(&f, 2, "b"), 3);
    expect_int(time_of(&f, 3), BEGIN_MS + HOUR_MS);
    tarn_clock_fake(BEGIN_MS - HOUR_MS);
    others_commit(&f, "behind", &y, 1);
    expect_int(time_of(&f, 4), BEGIN_MS - HOUR_MS);
    tarn_clock_fake(BEGIN_MS + 2 * HOUR_MS);
    expect_int(fixture_land(&f, 3, "c"), 5);
    expect_str(fixture_files(&f, NONE, NULL), "a b c x y");
    struct tarn_snapshot s;
    bool found;
    expect_ok(
        tarn_table_snapshot(t->op, f.table, TARN_VERSION_TIME(BEGIN_MS + HOUR_MS), &found, &s));
    expect_int(s.id, 4); /* the last one made at or before it, whatever the order (K47) */
    tarn_clock_fake(-1);
}

TARN_TEST(clock, that_jumps_keeps_receipts_and_pins)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    tarn_clock_fake(BEGIN_MS);
    fixture_land(&f, 1, "a");
    struct tarn_pin pin;
    int64_t from;
    expect_ok(tarn_table_pin(t->op, f.table, 1, 2 * HOUR_MS, &pin));
    tarn_clock_fake(BEGIN_MS - HOUR_MS);
    expect_int(fixture_land(&f, 1, "a"), 1); /* sent again */
    tarn_clock_fake(BEGIN_MS + HOUR_MS);
    expect_int(fixture_land(&f, 1, "a"), 1);
    expect_ok(tarn_table_keep_from(t->op, f.table, &from));
    expect_int(from, 1);
    tarn_clock_fake(-1);
}

/* --- a newer format --- */

static struct tarn_slice with(struct fixture *f, struct tarn_slice json, const char *from,
                              const char *to)
{
    const char *text = tarn_arena_str(f->t->arena, json), *at = strstr(text, from);
    expect_not_null(at);
    return tarn_slice_str(
        tarn_arena_printf(f->t->arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)));
}

TARN_TEST(newer, snapshot_version_is_refused_by_name_and_nothing_is_put_on_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    struct tarn_manifest_entry x = fixture_file(&f, "x"), b = fixture_file(&f, "b");
    others_commit(&f, "newer", &x, 1);
    struct tarn_slice body = folder_get(&f, "snapshot/snapshot-2");
    folder_put(&f, "snapshot/snapshot-2", with(&f, body, "\"version\": 3,", "\"version\": 4,"));
    int64_t id;
    struct tarn_status *s = fixture_append(&f, "u", 2, &b, 1, &id);
    expect_true(s != TARN_OK);
    expect_contains(tarn_status_message(s), "snapshot-2");
    tarn_status_free(s);
    expect_false(folder_has(&f, "snapshot/snapshot-3"));
    folder_put(&f, "snapshot/snapshot-2", body);
    expect_ok(fixture_append(&f, "u", 2, &b, 1, &id));
    expect_int(id, 3);
}

TARN_TEST(newer, member_of_a_snapshot_is_read_past_and_its_file_left_as_it_is)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    struct tarn_manifest_entry x = fixture_file(&f, "x");
    others_commit(&f, "newer", &x, 1);
    struct tarn_slice body = with(&f, folder_get(&f, "snapshot/snapshot-2"), "\"version\": 3,",
                                  "\"version\": 3, \"future\" : {\"a\" : [1, null]},");
    folder_put(&f, "snapshot/snapshot-2", body);
    expect_str(fixture_files(&f, NONE, NULL), "a x");
    expect_int(fixture_land(&f, 2, "b"), 3);
    expect_bytes(folder_get(&f, "snapshot/snapshot-2"), body);
    folder_check(&f);
}
