/*
 * Promise: the directory of pages outlives a restart, and is never older than LIVE: a plan after a restart sees what one
 * before it did, whatever was committed before anybody planned, and reads no more than the pages that it wants.
 */
#include "fixture.h"
#include "table/pages_internal.h"

#define MANY 3000

static void land(struct fixture *f, const struct tarn_manifest_entry *entries, size_t count)
{
    static int64_t identifier; /* each is another commit */
    int64_t id;
    expect_ok(fixture_append(f, "u", ++identifier, entries, count, &id));
}

/* Files "f0" …, each of one key, its own number. */
static struct tarn_manifest_entry *make_files(struct fixture *f, int first, int count)
{
    struct tarn_manifest_entry *list = tarn_arena_calloc(f->t->arena, (size_t)count, sizeof *list);
    for (int i = 0; i < count; i++) {
        int key = first + i;
        list[i] = fixture_entry(f, TARN_ENTRY_ADD, tarn_arena_printf(f->t->arena, "f%d", key), 0, 0,
                                key, key, key);
        list[i].file.creation_time_ms = key;
    }
    return list;
}

static const char *files_of(struct fixture *f, int key)
{
    return fixture_files(f, TARN_SNAPSHOT_NONE,
                         tarn_arena_printf(f->t->arena, "id BETWEEN %d AND %d", key, key));
}

TARN_TEST(pages, are_known_after_a_restart_without_a_walk)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    land(&f, make_files(&f, 0, MANY), MANY);
    expect_str(files_of(&f, 1234), "f1234"); /* bounds are reckoned */
    for (int restart = 0; restart < 2; restart++) {
        fixture_restart(&f, false);
        uint64_t before = tarn_state_read_count();
        expect_str(files_of(&f, 1234), "f1234");
        expect_true(tarn_state_read_count() - before <= 2 * TARN_PAGE_ENTRIES);
    }
}

TARN_TEST(pages, that_changed_while_nobody_planned_are_read_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    land(&f, make_files(&f, 0, MANY), MANY);
    expect_str(files_of(&f, 7), "f7");
    fixture_restart(&f, false); /* the first commit stands on a directory that isn't in memory */
    land(&f, make_files(&f, MANY, 1), 1);
    struct tarn_manifest_entry elsewhere = fixture_entry(&f, TARN_ENTRY_ADD, "g", 1, 0, 7, 7, 1);
    land(&f, &elsewhere, 1); /* a bucket that had none */
    fixture_restart(&f, false);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, "id BETWEEN 3000 AND 3000"), "f3000");
    struct tarn_page_bucket bucket = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf after = {0};
    int64_t counts[2] = {0};
    bool found = true;
    for (int i = 0; i < 2; i++) {
        expect_ok(tarn_table__pages_next(t->op, f.table, tarn_buf_slice(&after), &found, &bucket));
        expect_true(found);
        counts[i] = bucket.file_count;
        tarn_buf_clear(&after);
        tarn_buf_add_slice(&after, tarn_buf_slice(&bucket.key));
    }
    tarn_page_bucket_fini(&bucket);
    expect_int(counts[0], MANY + 1);
    expect_int(counts[1], 1);
}

TARN_TEST(pages, of_files_that_were_removed_go)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry *files = make_files(&f, 0, MANY);
    land(&f, files, MANY);
    expect_str(files_of(&f, 7), "f7");
    fixture_restart(&f, false);
    int64_t id;
    for (int i = 0; i < MANY; i++)
        files[i].kind = TARN_ENTRY_DELETE;
    expect_ok(fixture_compact(&f, files, MANY - 1, &id));
    fixture_restart(&f, false);
    expect_str(files_of(&f, 7), "");
    expect_str(files_of(&f, MANY - 1), "f2999");
    expect_int(f.table->pages->count, 1);
    expect_str(fixture_files(&f, id - 1, "id BETWEEN 7 AND 7"), "f7");
}

/* --- records --- */

TARN_TEST(pages, a_record_comes_back)
{
    struct tarn_bounds bounds[3] = {
        {.known = true, .null_count = 3, .row_count = 10},
        {.known = true, .null_count = TARN_STATS_UNKNOWN, .row_count = 10},
        {.null_count = 0},
    };
    bool of_bytes[3] = {false, true, false};
    bounds[0].min.integer = -5;
    bounds[0].max.integer = INT64_MAX;
    bounds[1].min.bytes = tarn_slice_str("");
    bounds[1].max.bytes = tarn_slice_str("zz");
    struct tarn_page_bounds all = {
        .schema_stamp = 4, .has_values = true, .count = 3, .bounds = bounds, .of_bytes = of_bytes};
    struct tarn_page_record record = {.count = 512, .total_buckets = 16, .bounds = &all}, back;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_page_record_encode(&record, &bytes);
    expect_true(tarn_page_record_decode(tarn_buf_slice(&bytes), &back));
    expect_int(back.count, 512);
    expect_int(back.total_buckets, 16);
    expect_int(back.bounds->schema_stamp, 4);
    expect_true(back.bounds->has_values);
    expect_int(back.bounds->count, 3);
    expect_int(back.bounds->bounds[0].min.integer, -5);
    expect_true(back.bounds->bounds[0].max.integer == INT64_MAX);
    expect_int(back.bounds->bounds[0].null_count, 3);
    expect_true(back.bounds->bounds[1].known && back.bounds->of_bytes[1]);
    expect_true(tarn_slice_is(back.bounds->bounds[1].max.bytes, "zz"));
    expect_int(back.bounds->bounds[1].null_count, TARN_STATS_UNKNOWN);
    expect_false(back.bounds->bounds[2].known);
    tarn_page_bounds_unref(back.bounds);
    for (size_t cut = 0; cut < bytes.size; cut++) /* what is cut off says less, or nothing */
        if (tarn_page_record_decode(tarn_slice_of(bytes.data, cut), &back))
            tarn_page_bounds_unref(back.bounds);
}
