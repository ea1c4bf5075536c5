/*
 * Promise: a delta larger than a batch of the index ends there as small ones do, also where its deletes don't know when
 * their files were made; and an index that was left in the middle of one is not believed.
 */
#include "fixture.h"
#include "table/index.h"

#define FILES (TARN_INDEX_BATCH_ENTRIES + 500)
#define LEFT 3

static struct tarn_manifest_entry *entries_of(struct fixture *f, enum tarn_entry_kind kind,
                                              const char *name, int count)
{
    struct tarn_manifest_entry *list = tarn_arena_calloc(f->t->arena, (size_t)count, sizeof *list);
    for (int i = 0; i < count; i++) {
        list[i] = fixture_entry(f, kind, tarn_arena_printf(f->t->arena, "%s%d", name, i), i % 2, 0,
                                i, i, i);
        list[i].file.creation_time_ms = 1000 + i % 7;
    }
    return list;
}

static int64_t file_count(struct fixture *f, int64_t snapshot_id)
{
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *cursor = NULL;
    struct tarn_plan_request request = {.version = {.snapshot_id = snapshot_id,
                                                    .time_ms = TARN_SNAPSHOT_NONE,
                                                    .watermark = TARN_SNAPSHOT_NONE},
                                        .with_stats = true,
                                        .as_bytes = true};
    struct tarn_plan_batch batch;
    int64_t count = 0, with_stats = 0;
    expect_ok(tarn_table_plan_begin(f->t->op, f->table, &request, &cursor));
    do {
        expect_ok(tarn_plan_cursor_next(cursor, &batch));
        count += (int64_t)batch.file_count;
        for (size_t i = 0; i < batch.file_count; i++)
            with_stats += batch.bytes[i].stats.size > 0;
    } while (batch.file_count > 0);
    expect_int(with_stats, count);
    return count;
}

TARN_TEST(large, a_delta_is_followed_bit_by_bit)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry *added = entries_of(&f, TARN_ENTRY_ADD, "f", FILES);
    struct tarn_manifest_entry *deleted = entries_of(&f, TARN_ENTRY_DELETE, "f", FILES);
    int64_t first = fixture_foreign(&f, "other", added, FILES);
    expect_int(file_count(&f, first), FILES);
    for (int i = 0; i < FILES; i += 5)
        deleted[i].file.creation_time_ms = i % 2 == 0 ? TARN_FILE_NONE : 77;
    int64_t second = fixture_foreign(&f, "other", deleted + LEFT, FILES - LEFT);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, ""), "f0 f1 f2");
    expect_int(file_count(&f, second), LEFT);
    expect_int(file_count(&f, first), FILES);
    fixture_restart(&f, true); /* and built anew it is the same */
    expect_int(file_count(&f, second), LEFT);
    expect_int(file_count(&f, first), FILES);
}

TARN_TEST(large, an_index_that_was_left_in_the_middle_is_built_anew)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id = fixture_foreign(&f, "other", entries_of(&f, TARN_ENTRY_ADD, "f", LEFT), LEFT);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, ""), "f0 f1 f2");
    struct tarn_index_batch *batch = tarn_table__index_batch_new(f.table);
    expect_ok(tarn_table__index_batch_entries(
        batch, id + 1, entries_of(&f, TARN_ENTRY_ADD, "of-a-snapshot-that-never-was", FILES), FILES,
        false));
    tarn_table__index_batch_free(batch);
    fixture_restart(&f, false);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, ""), "f0 f1 f2");
    fixture_foreign(&f, "other", entries_of(&f, TARN_ENTRY_ADD, "g", 1), 1); /* with that id */
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, ""), "f0 f1 f2 g0");
}

/* --- changelogs --- */

#define CHANGED (TARN_MANIFEST_ENTRIES_MAX + 500) /* two manifests, and several batches */

static int64_t changed_count(struct fixture *f)
{
    struct tarn_plan_request request = {
        .version = TARN_VERSION_ID(1), .no_splits = true, .changes = TARN_CHANGES_CHANGELOG};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(f->t->op, f->table, &request, &plan));
    return (int64_t)plan.file_count;
}

/* The manifests of snapshot 1's changelog. */
static struct tarn_manifest_file *changelog_manifests(struct fixture *f)
{
    struct tarn_snapshot snapshot;
    struct tarn_manifest_file *files;
    size_t count;
    bool found;
    expect_ok(tarn_table_snapshot(f->t->op, f->table, TARN_VERSION_ID(1), &found, &snapshot));
    expect_ok(tarn_table__read_list(f->t->op, f->table, &snapshot, TARN_LIST_CHANGELOG, f->t->arena,
                                    &files, &count));
    expect_int(count, 2);
    return files;
}

/* One that was expired half is none: streams see all of a snapshot's changes or none of them. */
TARN_TEST(large, a_changelog_is_followed_bit_by_bit)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry file = fixture_file(&f, "f");
    struct tarn_commit commit = {
        .user = tarn_slice_str("u"),
        .identifier = 1,
        .watermark = TARN_SNAPSHOT_NONE,
        .base_snapshot_id = TARN_SNAPSHOT_NONE,
        .append = {.entries = &file,
                   .count = 1,
                   .changelog = entries_of(&f, TARN_ENTRY_ADD, "c", CHANGED),
                   .changelog_count = CHANGED}};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_int(changed_count(&f), CHANGED);
    const char *second = tarn_arena_printf(t->arena, "manifest/%.*s",
                                           TARN_SLICE_ARG(changelog_manifests(&f)[1].name));
    struct tarn_fault_rule rule = {
        .call = "get", .key_part = second, .hit_count = 2, .fault = TARN_FAULT_NOT_FOUND};
    for (int lies = 0; lies < 2;
         lies++) { /* built anew, also where the second isn't there for a while */
        fixture_restart(&f, true);
        expect_int(changed_count(&f), CHANGED);
        tarn_store_faulty_add(f.store, &rule);
    }
    tarn_store_faulty_clear(f.store);
    expect_ok(tarn_store_remove(f.inner, t->op, tarn_arena_printf(t->arena, "db.db/t/%s", second)));
    fixture_restart(&f, true);
    expect_int(changed_count(&f), 0);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, ""), "f");
}
