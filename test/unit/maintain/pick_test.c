/*
 * Picking: which sorted runs are compacted together and to which level, held to cases worked out by hand from
 * Paimon's rules (docs/format.md, "Compaction picking" and "Append table compaction").
 */
#include "maintain/maintain.h"
#include "test/lib/test.h"

#include <stdio.h>

struct table {
    struct tarn_schema schema;
    struct tarn_options options;
};

static void make_table(struct tarn_test *t, const char *keys, const char *options,
                       struct table *out)
{
    const char *json = tarn_arena_printf(
        t->arena,
        "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"}],"
        "\"highestFieldId\":0,\"partitionKeys\":[],\"primaryKeys\":[%s],\"options\":{%s},\"timeMillis\":1}",
        keys, options);
    expect_ok(tarn_schema_decode(tarn_slice_str(json), t->arena, &out->schema));
    expect_ok(tarn_options_parse(&out->schema, t->arena, &out->options));
}

/* "level:size" of each file, level 0 newest first as given: sequences fall. */
static struct tarn_bucket_files bucket_of(struct tarn_test *t, const int (*files)[2], size_t count)
{
    struct tarn_bucket_files b = {
        .partition = tarn_row_empty(), .total_buckets = 1, .file_count = count};
    b.files = tarn_arena_calloc(t->arena, count + 1, sizeof *b.files);
    for (size_t i = 0; i < count; i++) {
        b.files[i].partition = tarn_row_empty();
        b.files[i].file.name = tarn_slice_str(tarn_arena_printf(t->arena, "f%zu", i));
        b.files[i].file.level = files[i][0];
        b.files[i].file.size = files[i][1];
        b.files[i].file.min_sequence = (int64_t)(100 - i) * 10;
        b.files[i].file.max_sequence = (int64_t)(100 - i) * 10 + 9;
        b.files[i].file.creation_time_ms = 1000;
    }
    return b;
}

/* Picks and prints "f0 f1 -> 5 drop", or "nothing". */
static const char *pick(struct tarn_test *t, const struct table *table, const int (*files)[2],
                        size_t count, bool full)
{
    struct tarn_bucket_files b = bucket_of(t, files, count);
    struct tarn_pick p;
    if (!tarn_pick_compaction(&table->schema, &table->options, &b, full, 1000, t->arena, &p))
        return "nothing";
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < p.file_count; i++)
        tarn_buf_printf(&text, "%.*s ", TARN_SLICE_ARG(p.files[i]->file.name));
    tarn_buf_printf(&text, "-> %d%s", p.output_level, p.drop_delete ? " drop" : "");
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

#define PICK(table, full, ...)                                                                     \
    pick(t, (table), (const int[][2]){__VA_ARGS__},                                                \
         sizeof((const int[][2]){__VA_ARGS__}) / sizeof(int[2]), (full))

TARN_TEST(pick, waits_for_the_trigger)
{
    struct table k;
    make_table(t, "\"id\"", "\"bucket\":\"1\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {0, 10}, {0, 10}), "nothing");
}

TARN_TEST(pick, takes_at_once_all_that_waits_for_a_bucket)
{
    struct table k;
    struct tarn_pick p;
    make_table(t, "\"id\"", "\"bucket\":\"-2\"", &k);
    struct tarn_bucket_files b = bucket_of(t, (const int[][2]){{0, 10}, {0, 500}}, 2);
    b.bucket = -2;
    expect_true(tarn_pick_compaction(&k.schema, &k.options, &b, false, 1000, t->arena, &p));
    expect_int(p.file_count, 2);
    expect_int(p.output_level, 0);
    expect_false(p.drop_delete);
    expect_str(p.why, "postponed");
    b.file_count = 0;
    expect_false(tarn_pick_compaction(&k.schema, &k.options, &b, true, 1000, t->arena, &p));
}

TARN_TEST(pick, rewrites_all_when_what_is_above_the_last_run_is_too_large)
{
    struct table k; /* 40 above 10: 400 % */
    make_table(t, "\"id\"", "\"bucket\":\"1\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {5, 10}),
               "f0 f1 f2 f3 f4 -> 5 drop");
}

TARN_TEST(pick, takes_runs_of_like_size_and_stops_below_a_large_one)
{
    struct table k;
    make_table(t, "\"id\"", "\"bucket\":\"1\"", &k);
    /* five like ones below a large level 5: to level 4, deletes stay since level 5 holds older versions */
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {5, 1000}),
               "f0 f1 f2 f3 f4 -> 4");
}

TARN_TEST(pick, swallows_larger_runs_of_level_0_once_triggered)
{
    struct table k; /* the third is larger than 101 % of what was taken, but of level 0 */
    make_table(t, "\"id\"", "\"bucket\":\"1\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {0, 500}, {0, 10}, {5, 5000}), "f0 f1 f2 f3 -> 4");
}

TARN_TEST(pick, by_file_count_when_sizes_do_not_fit)
{
    struct table
        k; /* each much larger than all before: the ratio never triggers, the number does */
    make_table(t, "\"id\"", "\"bucket\":\"1\"", &k);
    expect_str(PICK(&k, false, {0, 1}, {0, 100}, {2, 1000}, {3, 10000}, {4, 100000}, {5, 1000000}),
               "f0 f1 -> 1");
}

TARN_TEST(pick, full_takes_everything_once)
{
    struct table k;
    make_table(t, "\"id\"", "\"bucket\":\"1\"", &k);
    expect_str(PICK(&k, true, {0, 10}, {5, 1000}), "f0 f1 -> 5 drop");
    expect_str(PICK(&k, true, {0, 10}), "f0 -> 5 drop");
    expect_str(PICK(&k, true, {5, 10}, {5, 20}), "nothing");
    expect_str(PICK(&k, true, {7, 10}, {3, 20}),
               "f1 f0 -> 7 drop"); /* a level above num-levels counts */
}

TARN_TEST(pick, output_of_level_0_alone_extends_to_the_next_level)
{
    struct table k; /* level 1 is next: output would be level 0, so it comes along */
    make_table(t, "\"id\"", "\"bucket\":\"1\",\"num-sorted-run.compaction-trigger\":\"2\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {1, 1000}, {2, 100000}), "f0 f1 f2 -> 1");
}

TARN_TEST(pick, honours_the_thresholds_of_early_full_compaction)
{
    struct table k;
    make_table(t, "\"id\"", "\"bucket\":\"1\",\"compaction.total-size-threshold\":\"1 kb\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {5, 100}), "f0 f1 -> 5 drop");
    expect_str(PICK(&k, false, {0, 10}, {5, 2000}), "nothing");
    make_table(t, "\"id\"", "\"bucket\":\"1\",\"compaction.incremental-size-threshold\":\"1 kb\"",
               &k);
    expect_str(PICK(&k, false, {0, 2000}, {5, 100000}), "f0 f1 -> 5 drop");
    expect_str(PICK(&k, false, {0, 1000}, {5, 100000}), "nothing");
}

TARN_TEST(pick, forced_up_level_0)
{
    struct table k;
    make_table(t, "\"id\"", "\"bucket\":\"1\",\"compaction.force-up-level-0\":\"true\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {5, 100000}), "f0 -> 4");
}

TARN_TEST(pick, all_of_level_0_for_a_changelog_of_lookups)
{
    struct table k;
    make_table(t, "\"id\"", "\"bucket\":\"1\",\"changelog-producer\":\"lookup\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {5, 1000}), "f0 f1 -> 4");
    expect_str(PICK(&k, false, {0, 10}), "f0 -> 5 drop");
    expect_str(PICK(&k, false, {4, 10}, {5, 1000}), "nothing");
}

TARN_TEST(pick, all_runs_for_a_changelog_of_full_compactions)
{
    struct table k;
    make_table(t, "\"id\"", "\"bucket\":\"1\",\"changelog-producer\":\"full-compaction\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {5, 1000}), "f0 f1 -> 5 drop");
    expect_str(PICK(&k, false, {4, 10}), "f0 -> 5 drop");
    expect_str(PICK(&k, false, {5, 10}), "nothing");
    make_table(
        t, "\"id\"",
        "\"bucket\":\"1\",\"changelog-producer\":\"full-compaction\",\"full-compaction.delta-"
        "commits\":\"3\"",
        &k);
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {5, 1000}), "nothing");
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {0, 10}, {5, 1000}), "f0 f1 f2 f3 -> 5 drop");
    make_table(t, "\"id\"",
               "\"bucket\":\"1\",\"changelog-producer\":\"full-compaction\",\"changelog-producer."
               "compaction-interval\":\"1 ms\"",
               &k);
    expect_str(PICK(&k, false, {0, 10}), "f0 -> 5 drop"); /* nothing was told yet */
    expect_str(PICK(&k, false, {0, 10}, {5, 1000}), "nothing");
}

TARN_TEST(pick, append_unaware_fills_bins_from_the_smallest)
{
    struct table k;
    make_table(t, "", "\"target-file-size\":\"100 mb\"", &k);
    expect_str(PICK(&k, false, {0, 1000}, {0, 1000}, {0, 1000}, {0, 1000}), "nothing");
    expect_str(
        PICK(&k, false, {0, 5000}, {0, 1000}, {0, 90000000}, {0, 3000}, {0, 4000}, {0, 2000}),
        "f1 f5 f3 f4 f0 -> 0"); /* the large one stays */
    expect_str(PICK(&k, true, {0, 5000}, {0, 1000}), "f1 f0 -> 0");
    expect_str(PICK(&k, true, {0, 90000000}, {0, 1000}), "nothing");
}

TARN_TEST(pick, append_with_buckets_merges_neighbours_in_order)
{
    struct table k;
    make_table(t, "", "\"bucket\":\"1\",\"bucket-key\":\"id\",\"target-file-size\":\"100 mb\"", &k);
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {0, 10}, {0, 10}),
               "f5 f4 f3 f2 f1 -> 0");
    expect_str(PICK(&k, true, {0, 10}, {0, 90000000}),
               "nothing"); /* a large one first, then one small alone */
    expect_str(PICK(&k, true, {0, 90000000}, {0, 10}), "f1 f0 -> 0");
}

/* Files of 1000 rows and these sizes, of which so many are deleted. */
static const char *pick_marked(struct tarn_test *t, const struct table *table,
                               const int (*files)[2], size_t count, bool full)
{
    struct tarn_bucket_files b = bucket_of(t, files, count);
    struct tarn_pick p;
    for (size_t i = 0; i < count; i++) {
        b.files[i].file.level = 0;
        b.files[i].file.row_count = 1000;
        if (files[i][0] > 0)
            b.files[i].file.vector =
                (struct tarn_vector_ref){tarn_slice_str("index/i"), 1, 20, files[i][0]};
    }
    if (!tarn_pick_compaction(&table->schema, &table->options, &b, full, 1000, t->arena, &p))
        return "nothing";
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < p.file_count; i++)
        tarn_buf_printf(&text, "%.*s ", TARN_SLICE_ARG(p.files[i]->file.name));
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}
#define PICK_MARKED(table, full, ...)                                                              \
    pick_marked(t, (table), (const int[][2]){__VA_ARGS__},                                         \
                sizeof((const int[][2]){__VA_ARGS__}) / sizeof(int[2]), (full))

TARN_TEST(pick, with_deletion_vectors_level_0_never_stays)
{
    struct table k;
    make_table(t, "\"id\"", "\"bucket\":\"1\",\"deletion-vectors.enabled\":\"true\"", &k);
    expect_str(PICK(&k, false, {0, 10}), "f0 -> 5 drop");
    expect_str(PICK(&k, false, {0, 10}, {0, 10}, {5, 1000}), "f0 f1 -> 4 drop");
    expect_str(PICK(&k, false, {0, 10}, {4, 1000}, {5, 1000}), "f0 -> 3 drop");
    expect_str(PICK(&k, false, {4, 1000}, {5, 1000}), "nothing");
}

TARN_TEST(pick, append_files_with_many_deleted_rows_are_written_anew)
{
    struct table k;
    make_table(t, "", "\"target-file-size\":\"100 b\",\"source.split.open-file-cost\":\"0 b\"", &k);
    expect_str(PICK_MARKED(&k, false, {200, 90}, {0, 90}), "nothing");
    expect_str(PICK_MARKED(&k, false, {201, 90}, {0, 90}, {0, 10}), "f0 ");
    expect_str(PICK_MARKED(&k, false, {201, 90}, {10, 10}, {0, 10}, {0, 10}, {0, 10}),
               "f1 f2 f3 f4 f0 ");
    expect_str(PICK_MARKED(&k, true, {1, 90}, {0, 90}), "f0 ");
    expect_str(PICK_MARKED(&k, true, {0, 90}, {0, 90}), "nothing");
    make_table(t, "", "\"bucket\":\"1\",\"bucket-key\":\"id\",\"target-file-size\":\"100 b\"", &k);
    /* f1 is the older one: what comes before the first marked file stays */
    expect_str(PICK_MARKED(&k, true, {0, 90}, {1, 90}), "f1 f0 ");
    expect_str(PICK_MARKED(&k, true, {1, 90}, {0, 90}), "f0 ");
    expect_str(PICK_MARKED(&k, true, {0, 90}, {0, 90}), "nothing");
}

TARN_TEST(runs, are_files_of_level_0_and_levels_above)
{
    struct tarn_bucket_files b =
        bucket_of(t, (const int[][2]){{0, 1}, {0, 1}, {5, 1}, {5, 1}, {3, 1}}, 5);
    expect_int(tarn_run_count(b.files, b.file_count), 4);
}
