/*
 * Promise: the sums that catalogs ask for are those of the live files, of the table and of each partition, whoever committed what, before
 * and after a restart, a lost state and a history that others rewrote (totals.c).
 */
#include "fixture.h"
#include "table/internal.h"

#define NONE TARN_SNAPSHOT_NONE

/* Summed over a plan. */
static struct tarn_totals planned(struct fixture *f)
{
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    struct tarn_plan plan;
    struct tarn_totals sum = {0};
    expect_ok(tarn_table_plan(f->t->op, f->table, &request, &plan));
    for (size_t i = 0; i < plan.file_count; i++) {
        sum.file_count++;
        sum.record_count += plan.files[i].entry.file.row_count;
        sum.size += plan.files[i].entry.file.size;
    }
    return sum;
}

static void expect_totals(struct fixture *f)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *again = NULL;
    struct tarn_totals want = planned(f), got, sum = {0};
    struct tarn_partition_totals *partitions;
    size_t count;
    expect_ok(tarn_table_totals(f->t->op, f->table, &view, &got));
    expect_int(got.file_count, want.file_count);
    expect_int(got.record_count, want.record_count);
    expect_int(got.size, want.size);
    expect_ok(tarn_table_partition_totals(f->t->op, f->table, &again, &partitions, &count));
    for (size_t i = 0; i < count; i++) {
        expect_true(partitions[i].totals.file_count > 0);
        sum.file_count += partitions[i].totals.file_count;
        sum.record_count += partitions[i].totals.record_count;
        sum.size += partitions[i].totals.size;
    }
    expect_int(sum.file_count, want.file_count);
    expect_int(sum.record_count, want.record_count);
    expect_int(sum.size, want.size);
}

TARN_TEST(totals, follow_commits_once_they_were_asked_for)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    expect_totals(&f); /* of nothing */
    fixture_land(&f, 1, "a");
    expect_totals(&f);
    fixture_land(&f, 2, "b");
    expect_totals(&f);
    struct tarn_manifest_entry change[3] = {
        fixture_entry(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 10, 0),
        fixture_entry(&f, TARN_ENTRY_DELETE, "b", 0, 0, 1, 10, 0),
        fixture_entry(&f, TARN_ENTRY_ADD, "c", 0, 5, 1, 12, 0)};
    int64_t id;
    expect_ok(fixture_compact(&f, change, 3, &id));
    expect_totals(&f);
    expect_int(planned(&f).file_count, 1);
    struct tarn_manifest_entry gone = fixture_entry(&f, TARN_ENTRY_DELETE, "c", 0, 5, 1, 12, 0);
    expect_ok(fixture_compact(&f, &gone, 1, &id));
    expect_totals(&f); /* of nothing again */
}

TARN_TEST(totals, are_read_at_a_cost_that_knows_no_files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    for (int i = 0; i < 50; i++)
        fixture_land(&f, i + 1, tarn_arena_printf(t->arena, "f%d", i));
    expect_totals(&f);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_totals got;
    uint64_t before = tarn_state_read_count();
    expect_ok(tarn_table_totals(t->op, f.table, &view, &got));
    expect_int(got.file_count, 50);
    expect_uint(tarn_state_read_count() - before, 1);
}

TARN_TEST(totals, outlive_a_restart_and_a_lost_state)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    expect_totals(&f);
    fixture_restart(&f, false);
    expect_totals(&f);
    fixture_land(&f, 2, "b");
    expect_totals(&f);
    fixture_restart(&f, true);
    fixture_land(&f, 3, "c");
    expect_totals(&f);
    expect_int(planned(&f).file_count, 3);
}

TARN_TEST(totals, follow_what_others_do)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    expect_totals(&f);
    struct tarn_manifest_entry theirs = fixture_file(&f, "theirs");
    fixture_foreign(&f, "x", &theirs, 1);
    expect_totals(&f);
    expect_int(planned(&f).file_count, 2);
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-2"));
    expect_totals(&f);
    expect_int(planned(&f).file_count, 1);
    fixture_land(&f, 2, "b");
    expect_totals(&f);
}

TARN_TEST(totals, are_the_same_through_a_delta_of_several_batches)
{
    enum { COUNT = 45000 };
    TARN_OWN(fixture_fini) struct fixture f;
    int64_t id;
    fixture_init(&f, t);
    fixture_land(&f, 1, "a");
    expect_totals(&f);
    struct tarn_manifest_entry *entries = tarn_arena_calloc(t->arena, COUNT, sizeof *entries);
    for (int i = 0; i < COUNT; i++)
        entries[i] = fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "m%d", i), i % 2,
                                   0, i, i + 3, i);
    expect_ok(fixture_append(&f, "many", 1, entries, COUNT, &id));
    expect_totals(&f);
    expect_int(planned(&f).file_count, COUNT + 1);
}
