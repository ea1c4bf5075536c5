/*
 * The conflict rules of docs/format.md 3.4, and what they cost: a step of the index for each file of the request and one
 * for its partition, however many files the table has.
 */
#include "shape.h"

#define NONE TARN_SNAPSHOT_NONE

static const struct shape keyed = {.primary_key = true, .options = "\"bucket\":\"2\""};
static const struct shape days = {
    .primary_key = true, .partition_count = 1, .options = "\"bucket\":\"2\""};

static struct tarn_manifest_entry file_of(struct fixture *f, enum tarn_entry_kind kind,
                                          const char *name, int bucket, int level, int64_t low,
                                          int64_t high)
{
    return shape_entry(f, kind, name, tarn_row_empty(), bucket, 2, level, low, high);
}

static struct tarn_status *check(struct fixture *f, enum tarn_commit_kind kind,
                                 struct tarn_manifest_entry *entries, size_t count)
{
    return shape_check(f, kind, entries, count, NULL, 0, NONE);
}

/* --- 1: bucket counts --- */

TARN_TEST(conflict, bucket_counts_go_by_partition)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &days);
    struct tarn_slice one = shape_partition(&f, &days, "1", 0),
                      two = shape_partition(&f, &days, "2", 0);
    struct tarn_manifest_entry a = shape_entry(&f, TARN_ENTRY_ADD, "a", one, 1, 2, 0, 1, 10);
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    struct tarn_manifest_entry same = shape_entry(&f, TARN_ENTRY_ADD, "b", one, 0, 2, 0, 1, 10);
    struct tarn_manifest_entry more = shape_entry(&f, TARN_ENTRY_ADD, "b", one, 3, 4, 0, 1, 10);
    struct tarn_manifest_entry elsewhere =
        shape_entry(&f, TARN_ENTRY_ADD, "b", two, 3, 4, 0, 1, 10);
    struct tarn_manifest_entry mixed[] = {elsewhere,
                                          shape_entry(&f, TARN_ENTRY_ADD, "c", two, 0, 5, 0, 1, 2)};
    expect_ok(check(&f, TARN_COMMIT_APPEND, &same, 1));
    expect_status(check(&f, TARN_COMMIT_APPEND, &more, 1), TARN_BUCKET_MISMATCH,
                  "2 buckets in partition dt=1, the commit's files were written for 4");
    expect_status(check(&f, TARN_COMMIT_COMPACT, &more, 1), TARN_BUCKET_MISMATCH, "");
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, &more, 1), TARN_COMMIT_CONFLICT,
                  "leaves file a"); /* which came meanwhile, or was forgotten */
    expect_ok(check(&f, TARN_COMMIT_APPEND, &elsewhere, 1));
    expect_status(check(&f, TARN_COMMIT_APPEND, mixed, 2), TARN_BUCKET_MISMATCH, "");
    elsewhere.bucket = 4;
    expect_status(check(&f, TARN_COMMIT_APPEND, &elsewhere, 1), TARN_INVALID_ARGUMENT,
                  "bucket 4 of 4");
}

TARN_TEST(conflict, an_overwrite_brings_another_bucket_count_where_nothing_else_is_left)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &days);
    struct tarn_slice one = shape_partition(&f, &days, "1", 0),
                      two = shape_partition(&f, &days, "2", 0);
    struct tarn_manifest_entry files[] = {
        shape_entry(&f, TARN_ENTRY_ADD, "a", one, 1, 2, 0, 1, 10),
        shape_entry(&f, TARN_ENTRY_ADD, "b", one, 0, 2, 0, 1, 10),
        shape_entry(&f, TARN_ENTRY_ADD, "c", two, 0, 2, 0, 1, 10),
    };
    shape_land(&f, "x", TARN_COMMIT_APPEND, files, 3, NULL, 0);
    int32_t count;
    expect_ok(tarn_table_bucket_count(f.table, one, &count));
    expect_int(count, 2);
    struct tarn_manifest_entry rescaled[] = {
        files[0], files[1], shape_entry(&f, TARN_ENTRY_ADD, "d", one, 3, 4, 5, 1, 10)};
    rescaled[0].kind = rescaled[1].kind = TARN_ENTRY_DELETE;
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, rescaled + 1, 2), TARN_COMMIT_CONFLICT,
                  "brings 4 buckets where there are 2, but leaves file a");
    expect_ok(check(&f, TARN_COMMIT_OVERWRITE, rescaled, 3));
    expect_status(check(&f, TARN_COMMIT_APPEND, rescaled + 2, 1), TARN_BUCKET_MISMATCH, "");
    shape_land(&f, "y", TARN_COMMIT_OVERWRITE, rescaled, 3, NULL, 0);
    expect_ok(tarn_table_bucket_count(f.table, one, &count));
    expect_int(count, 4);
    expect_ok(tarn_table_bucket_count(f.table, two, &count));
    expect_int(count, 2);
    expect_ok(tarn_table_bucket_count(f.table, shape_partition(&f, &days, "3", 0), &count));
    expect_int(count, 0);
    struct tarn_manifest_entry late =
        shape_entry(&f, TARN_ENTRY_ADD, "e", one, 1, 2, 0, 11, 20); /* was written for two */
    expect_status(check(&f, TARN_COMMIT_APPEND, &late, 1), TARN_BUCKET_MISMATCH,
                  "4 buckets in partition dt=1");
}

TARN_TEST(conflict, files_that_wait_for_a_bucket_say_nothing_about_counts)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &keyed);
    struct tarn_manifest_entry files[] = {file_of(&f, TARN_ENTRY_ADD, "p", -2, 0, 1, 10),
                                          file_of(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 10)};
    files[0].total_buckets = -2;
    files[1].total_buckets = 3; /* the option has changed since */
    shape_land(&f, "x", TARN_COMMIT_APPEND, files, 2, NULL, 0);
    struct tarn_manifest_entry b = file_of(&f, TARN_ENTRY_ADD, "b", 3, 0, 1, 10),
                               q = file_of(&f, TARN_ENTRY_ADD, "q", -2, 0, 1, 10);
    b.total_buckets = 4;
    q.total_buckets = -2;
    expect_status(check(&f, TARN_COMMIT_APPEND, &b, 1), TARN_BUCKET_MISMATCH, "written for 4");
    b.bucket = 1;
    b.total_buckets = 2;
    expect_status(check(&f, TARN_COMMIT_APPEND, &b, 1), TARN_BUCKET_MISMATCH,
                  "3 buckets, the commit's files were written for 2, as option bucket says now");
    expect_ok(check(&f, TARN_COMMIT_APPEND, &q, 1));
}

/* --- 2, 3 --- */

TARN_TEST(conflict, names_no_file_twice_and_removes_only_what_is_there)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &keyed);
    struct tarn_manifest_entry a = file_of(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 10);
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    struct tarn_manifest_entry twice[] = {file_of(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 10),
                                          file_of(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 10)};
    struct tarn_manifest_entry both[] = {file_of(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 10),
                                         file_of(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 10)};
    struct tarn_manifest_entry upgrade[] = {both[0], file_of(&f, TARN_ENTRY_ADD, "a", 0, 5, 1, 10)};
    struct tarn_manifest_entry missing = file_of(&f, TARN_ENTRY_DELETE, "a", 0, 1, 1, 10);
    expect_status(check(&f, TARN_COMMIT_APPEND, twice, 2), TARN_INVALID_ARGUMENT, "b twice");
    expect_status(check(&f, TARN_COMMIT_APPEND, &a, 1), TARN_COMMIT_CONFLICT, "already live");
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, both, 2), TARN_COMMIT_CONFLICT, "already live");
    expect_ok(check(&f, TARN_COMMIT_COMPACT, upgrade, 2)); /* another level is another file */
    expect_status(check(&f, TARN_COMMIT_COMPACT, &missing, 1), TARN_COMMIT_CONFLICT,
                  "file a (bucket 0, level 1) is no longer live");
}

TARN_TEST(conflict, drops_duplicates_of_appends_where_the_table_says_so)
{
    struct shape shape = {.primary_key = true,
                          .options =
                              "\"bucket\":\"2\",\"commit.discard-duplicate-files\":\"true\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry a = file_of(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 10);
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    struct tarn_manifest_entry files[] = {a, file_of(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 10)};
    struct tarn_candidate c = {
        .kind = TARN_COMMIT_APPEND, .entries = files, .count = 2, .base_snapshot_id = NONE};
    expect_ok(tarn_table__check_conflicts(t->op, f.table, f.table->head, &c));
    expect_str(shape_names(&f, c.entries, c.count), "+b");
    struct tarn_manifest_entry again[] = {a, file_of(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 10)};
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, again, 2), TARN_COMMIT_CONFLICT, "a is already");
}

/* --- 4: levels --- */

TARN_TEST(conflict, keys_of_a_level_do_not_overlap)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &keyed);
    struct tarn_manifest_entry base[] = {file_of(&f, TARN_ENTRY_ADD, "a", 0, 5, 1, 10),
                                         file_of(&f, TARN_ENTRY_ADD, "b", 0, 5, 20, 30),
                                         file_of(&f, TARN_ENTRY_ADD, "z", 0, 0, 1, 100)};
    shape_land(&f, "x", TARN_COMMIT_COMPACT, base, 3, NULL, 0);
    struct {
        int bucket, level;
        int64_t low, high;
        const char *with; /* NULL: fits */
    } cases[] = {
        {0, 5, 11, 19, NULL}, {0, 5, 10, 12, "a"}, {0, 5, 12, 20, "b"},
        {0, 5, 0, 50, "a"},   {0, 5, 5, 6, "a"},   {0, 5, 31, 40, NULL},
        {0, 4, 5, 6, NULL},   {1, 5, 5, 6, NULL},  {0, 0, 5, 6, NULL},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        struct tarn_manifest_entry n = file_of(&f, TARN_ENTRY_ADD, "n", cases[i].bucket,
                                               cases[i].level, cases[i].low, cases[i].high);
        struct tarn_status *s = check(&f, TARN_COMMIT_COMPACT, &n, 1);
        if (cases[i].with == NULL)
            expect_ok(s);
        else
            expect_status(s, TARN_COMMIT_CONFLICT,
                          tarn_arena_printf(t->arena, "%s", cases[i].with));
    }
    struct tarn_manifest_entry swap[] = {file_of(&f, TARN_ENTRY_DELETE, "a", 0, 5, 1, 10),
                                         file_of(&f, TARN_ENTRY_ADD, "n", 0, 5, 0, 15)};
    expect_ok(check(&f, TARN_COMMIT_COMPACT, swap, 2)); /* what makes room counts */
    struct tarn_manifest_entry pair[] = {file_of(&f, TARN_ENTRY_ADD, "n", 0, 3, 1, 5),
                                         file_of(&f, TARN_ENTRY_ADD, "m", 0, 3, 5, 9)};
    expect_status(check(&f, TARN_COMMIT_COMPACT, pair, 2), TARN_COMMIT_CONFLICT,
                  "files n and m would overlap in bucket 0, level 3");
}

/* --- strict mode --- */

TARN_TEST(conflict, strict_mode_refuses_what_others_rewrote_after_the_last_safe_snapshot)
{
    struct shape shape = days;
    shape.options = "\"bucket\":\"2\",\"commit.strict-mode.last-safe-snapshot\":\"1\"";
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_slice one = shape_partition(&f, &shape, "1", 0),
                      two = shape_partition(&f, &shape, "2", 0);
    struct tarn_manifest_entry a = shape_entry(&f, TARN_ENTRY_ADD, "a", one, 0, 2, 0, 1, 10),
                               b = shape_entry(&f, TARN_ENTRY_ADD, "b", one, 0, 2, 5, 1, 10),
                               n1 = shape_entry(&f, TARN_ENTRY_ADD, "n1", one, 0, 2, 0, 1, 10),
                               n2 = shape_entry(&f, TARN_ENTRY_ADD, "n2", two, 0, 2, 0, 1, 10),
                               n3 = shape_entry(&f, TARN_ENTRY_ADD, "n3", one, 0, 2, 0, 1, 10);
    shape_land(&f, "x", TARN_COMMIT_COMPACT, &a, 1, NULL, 0);
    expect_ok(check(&f, TARN_COMMIT_APPEND, &n1, 1)); /* 1 is safe */
    shape_land(&f, "x", TARN_COMMIT_COMPACT, &b, 1, NULL, 0);
    expect_status(check(&f, TARN_COMMIT_APPEND, &n1, 1), TARN_COMMIT_CONFLICT,
                  "snapshot 2 (COMPACT by user x)");
    expect_ok(check(&f, TARN_COMMIT_APPEND, &n2, 1)); /* another partition */
    shape_land(&f, "u", TARN_COMMIT_APPEND, &n1, 1, NULL, 0);
    expect_ok(check(&f, TARN_COMMIT_APPEND, &n3, 1)); /* the user's own was held against 2 */
    shape_land(&f, "x", TARN_COMMIT_APPEND, &n2, 1, NULL, 0);
    struct tarn_manifest_entry m = n2;
    m.file.name = tarn_slice_str("m");
    expect_ok(check(&f, TARN_COMMIT_APPEND, &m, 1));
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, &m, 1), TARN_COMMIT_CONFLICT,
                  "snapshot 4 (APPEND by user x)");
}

TARN_TEST(conflict, strict_mode_sees_rows_that_were_only_marked)
{
    struct shape shape = {.options = "\"bucket\":\"-1\",\"deletion-vectors.enabled\":\"true\","
                                     "\"commit.strict-mode.last-safe-snapshot\":\"1\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry a = file_of(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 10);
    a.total_buckets = -1;
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    struct tarn_index_file v = shape_vectors(&f, TARN_ENTRY_ADD, "v", tarn_row_empty(), 0, "a");
    shape_land(&f, "x", TARN_COMMIT_OVERWRITE, NULL, 0, &v, 1);
    struct tarn_manifest_entry n = a;
    n.file.name = tarn_slice_str("n");
    expect_status(check(&f, TARN_COMMIT_APPEND, &n, 1), TARN_COMMIT_CONFLICT, "snapshot 2");
    shape_land(&f, "u", TARN_COMMIT_APPEND, &n, 1, NULL, 0);
    shape_land(&f, "x", TARN_COMMIT_OVERWRITE, NULL, 0, NULL,
               0); /* carries the index manifest on */
    struct tarn_manifest_entry m = a;
    m.file.name = tarn_slice_str("m");
    expect_ok(check(&f, TARN_COMMIT_APPEND, &m, 1));
}

/* --- what it costs --- */

/* Bucket 0: one file in level 0; bucket 1: all others, in level 4. */
static void fill(struct fixture *f, int count)
{
    struct tarn_manifest_entry *files =
        tarn_arena_calloc(f->t->arena, (size_t)count, sizeof *files);
    for (int i = 0; i < count; i++)
        files[i] = file_of(f, TARN_ENTRY_ADD, tarn_arena_printf(f->t->arena, "f%06d", i), i > 0,
                           i > 0 ? 4 : 0, 10 * i, 10 * i + 5);
    shape_land(f, "x", TARN_COMMIT_APPEND, files, (size_t)count, NULL, 0);
}

static uint64_t reads_of_a_commit(struct tarn_test *t, int file_count)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &keyed);
    fill(&f, file_count);
    struct tarn_manifest_entry files[] = {file_of(&f, TARN_ENTRY_ADD, "new", 1, 0, 7, 9),
                                          file_of(&f, TARN_ENTRY_DELETE, "f000000", 0, 0, 0, 5),
                                          file_of(&f, TARN_ENTRY_ADD, "up", 0, 5, 0, 5)};
    uint64_t before = tarn_state_read_count();
    expect_ok(check(&f, TARN_COMMIT_COMPACT, files, 3));
    return tarn_state_read_count() - before;
}

TARN_TEST(conflict, checks_read_as_much_of_a_large_table_as_of_a_small_one)
{
    uint64_t small = reads_of_a_commit(t, 100), large = reads_of_a_commit(t, 20000);
    expect_uint(large, small);
    expect_uint(small, 5); /* three files, a partition, the end of an empty level */
}

TARN_TEST(conflict, sequence_numbers_of_a_bucket_are_read_once)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &keyed);
    fill(&f, 1000);
    struct tarn_manifest_entry n = file_of(&f, TARN_ENTRY_ADD, "new", 1, 0, 7, 9);
    int64_t overlaps;
    expect_ok(tarn_table__check_sequences(t->op, f.table, NULL, &n, 1, &overlaps));
    uint64_t before = tarn_state_read_count();
    expect_ok(tarn_table__check_sequences(t->op, f.table, NULL, &n, 1, &overlaps));
    expect_uint(tarn_state_read_count() - before, 0);
    struct shape shape = {.options =
                              "\"bucket\":\"-1\""}; /* nothing is asked of tables without keys */
    TARN_OWN(fixture_fini) struct fixture g;
    shape_init(&g, t, &shape);
    before = tarn_state_read_count();
    expect_ok(tarn_table__check_sequences(t->op, g.table, NULL, &n, 1, &overlaps));
    expect_uint(tarn_state_read_count() - before, 0);
}

TARN_TEST(conflict, an_overwrite_of_one_partition_reads_that_partition)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &days);
    struct tarn_manifest_entry *files = tarn_arena_calloc(t->arena, 5000, sizeof *files);
    for (int i = 0; i < 5000; i++)
        files[i] = shape_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%04d", i),
                               shape_partition(&f, &days, i < 3 ? "1" : "2", 0), 0, 2, 0, 1, 10);
    shape_land(&f, "x", TARN_COMMIT_APPEND, files, 5000, NULL, 0);
    struct tarn_manifest_entry n = files[0];
    n.file.name = tarn_slice_str("n");
    struct tarn_commit c = {.overwrite = TARN_OVERWRITE_DYNAMIC,
                            .append = {.entries = &n, .count = 1}};
    struct tarn_resolved r;
    uint64_t before = tarn_state_read_count();
    expect_ok(tarn_table__resolve_overwrite(t->op, f.table, f.table->head, &c, &r));
    expect_int(r.known_count, 3);
    expect_true(tarn_state_read_count() - before <= 8);
}
