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
