/*
 * Overwrites: what is deleted is exactly what is live where the request says, found anew on each head; files that wait for
 * a bucket stay; what was forgotten wipes nothing; new files that don't overlap go to the last level
 * (docs/format.md, "Overwrite").
 */
#include "shape.h"

static const struct shape days = {.partition_count = 2, .options = "\"bucket\":\"-1\""};
static const struct shape keyed = {.primary_key = true, .options = "\"bucket\":\"2\""};

static struct tarn_manifest_entry day_file(struct fixture *f, const char *name, const char *dt,
                                           int hr)
{
    return shape_entry(f, TARN_ENTRY_ADD, name, shape_partition(f, &days, dt, hr), 0, -1, 0, 1, 10);
}

/* a: 1/0, b: 1/1, c: 2/0, d: null/0, e: 2/null */
static void begin_days(struct fixture *f, struct tarn_test *t)
{
    shape_init(f, t, &days);
    struct tarn_manifest_entry files[] = {day_file(f, "a", "1", 0), day_file(f, "b", "1", 1),
                                          day_file(f, "c", "2", 0), day_file(f, "d", NULL, 0),
                                          day_file(f, "e", "2", -1)};
    shape_land(f, "x", TARN_COMMIT_APPEND, files, 5, NULL, 0);
}

static int by_name(const void *a, const void *b)
{
    return tarn_slice_compare(((const struct tarn_manifest_entry *)a)->file.name,
                              ((const struct tarn_manifest_entry *)b)->file.name);
}

/* What the overwrite is on the present head: "-a -b +new". */
static const char *resolve(struct fixture *f, const struct tarn_commit *commit,
                           struct tarn_resolved *out)
{
    expect_ok(tarn_table__resolve_overwrite(f->t->op, f->table, f->table->head, commit, out));
    if (out->known_count > 0)
        qsort((void *)out->part.entries, out->known_count, sizeof *out->part.entries, by_name);
    return shape_names(f, out->part.entries, out->part.count);
}

static struct tarn_commit request(enum tarn_overwrite what,
                                  const struct tarn_manifest_entry *entries, size_t count)
{
    return (struct tarn_commit){.user = tarn_slice_str("u"),
                                .identifier = 1,
                                .watermark = TARN_SNAPSHOT_NONE,
                                .kind = TARN_COMMIT_OVERWRITE,
                                .append = {.entries = entries, .count = count},
                                .overwrite = what,
                                .base_snapshot_id = TARN_SNAPSHOT_NONE};
}

TARN_TEST(overwrite, of_the_table_deletes_everything_and_says_so_without_statistics)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin_days(&f, t);
    struct tarn_manifest_entry n = day_file(&f, "n", "3", 0);
    struct tarn_commit c = request(TARN_OVERWRITE_TABLE, &n, 1);
    struct tarn_resolved r;
    expect_str(resolve(&f, &c, &r), "-a -b -c -d -e +n");
    expect_int(r.known_count, 5);
    expect_false(r.nothing);
    expect_int(r.part.entries[0].file.row_count, 10); /* what record counts go by stays */
    expect_true(r.part.entries[0].file.has_value_stats_columns);
    expect_int(r.part.entries[0].file.value_stats_column_count, 0);
    c.append.count = 0; /* truncate */
    expect_str(resolve(&f, &c, &r), "-a -b -c -d -e");
}

TARN_TEST(overwrite, of_an_empty_table_deletes_nothing)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &days);
    struct tarn_manifest_entry n = day_file(&f, "n", "3", 0);
    struct tarn_commit c = request(TARN_OVERWRITE_TABLE, &n, 1);
    struct tarn_resolved r;
    expect_str(resolve(&f, &c, &r), "+n");
}

struct spec_case {
    const char *dt, *hr; /* NULL: any; "null": null */
    const char *deleted;
};

static struct tarn_partition_spec spec_of(struct fixture *f, const char *dt, const char *hr)
{
    struct tarn_slice *values = tarn_arena_calloc(f->t->arena, 2, sizeof *values);
    bool *is_null = tarn_arena_calloc(f->t->arena, 2, 1);
    bool *is_set = tarn_arena_calloc(f->t->arena, 2, 1);
    const char *words[] = {dt, hr};
    for (int i = 0; i < 2; i++) {
        is_set[i] = words[i] != NULL;
        is_null[i] = words[i] != NULL && strcmp(words[i], "null") == 0;
        values[i] = tarn_slice_str(is_null[i] ? NULL : words[i]);
    }
    return (struct tarn_partition_spec){values, is_null, is_set};
}

TARN_TEST(overwrite, of_named_partitions_deletes_those_that_fit)
{
    static const struct spec_case cases[] = {
        {"1", "1", "-b"},
        {"1", NULL, "-a -b"},
        {NULL, "0", "-a -c -d"},
        {"null", NULL, "-d"},
        {"__DEFAULT_PARTITION__", "0", "-d"}, /* what a folder of null is called */
        {NULL, "null", "-e"},
        {"2", "null", "-e"},
        {"7", NULL, ""},
        {"7", "7", ""},
        {NULL, NULL, "-a -b -c -d -e"},
    };
    TARN_OWN(fixture_fini) struct fixture f;
    begin_days(&f, t);
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        struct tarn_partition_spec spec = spec_of(&f, cases[i].dt, cases[i].hr);
        struct tarn_commit c = request(TARN_OVERWRITE_PARTITIONS, NULL, 0);
        c.partitions = &spec;
        c.partition_count = 1;
        struct tarn_resolved r;
        expect_str(resolve(&f, &c, &r), cases[i].deleted);
        expect_false(r.nothing);
    }
}

TARN_TEST(overwrite, of_several_partitions_deletes_each_file_once)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin_days(&f, t);
    struct tarn_partition_spec specs[] = {spec_of(&f, "1", "0"), spec_of(&f, "2", NULL),
                                          spec_of(&f, NULL, "0")};
    struct tarn_commit c = request(TARN_OVERWRITE_PARTITIONS, NULL, 0);
    c.partitions = specs;
    struct tarn_resolved r;
    c.partition_count = 1;
    expect_str(resolve(&f, &c, &r), "-a");
    c.partition_count = 3;
    expect_str(resolve(&f, &c, &r), "-a -c -d -e");
    c.partition_count = 0; /* none at all */
    expect_str(resolve(&f, &c, &r), "");
}

TARN_TEST(overwrite, takes_no_file_outside_of_the_partitions)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin_days(&f, t);
    struct tarn_partition_spec spec = spec_of(&f, "9", NULL);
    struct tarn_manifest_entry files[] = {day_file(&f, "n", "9", 5), day_file(&f, "m", "8", 5)};
    struct tarn_commit c = request(TARN_OVERWRITE_PARTITIONS, files, 1);
    c.partitions = &spec;
    c.partition_count = 1;
    struct tarn_resolved r;
    expect_str(resolve(&f, &c, &r), "+n"); /* of a partition that is not there yet */
    c.append.count = 2;
    expect_status(tarn_table__resolve_overwrite(t->op, f.table, f.table->head, &c, &r),
                  TARN_INVALID_ARGUMENT, "file m lies outside");
    struct tarn_partition_spec bad = spec_of(&f, NULL, "noon");
    c.partitions = &bad;
    expect_status(tarn_table__resolve_overwrite(t->op, f.table, f.table->head, &c, &r),
                  TARN_VALUE_INVALID, "partition column hr");
}

TARN_TEST(overwrite, without_names_replaces_the_partitions_of_the_new_files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin_days(&f, t);
    struct tarn_manifest_entry files[] = {day_file(&f, "n", "1", 0), day_file(&f, "m", NULL, 0),
                                          day_file(&f, "o", "1", 0)};
    struct tarn_commit c = request(TARN_OVERWRITE_DYNAMIC, files, 3);
    struct tarn_resolved r;
    expect_str(resolve(&f, &c, &r), "-a -d +n +m +o");
    c.append.count = 0; /* K05 (a): an empty one changes nothing */
    expect_str(resolve(&f, &c, &r), "");
    expect_true(r.nothing);
}

TARN_TEST(overwrite, without_names_or_partitions_replaces_the_table)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &keyed);
    struct tarn_manifest_entry a =
        shape_entry(&f, TARN_ENTRY_ADD, "a", tarn_row_empty(), 0, 2, 0, 1, 10);
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    struct tarn_commit c = request(TARN_OVERWRITE_DYNAMIC, NULL, 0);
    struct tarn_resolved r;
    expect_str(resolve(&f, &c, &r), "-a");
    expect_false(r.nothing);
}

static const char *with_postponed(struct fixture *f, struct tarn_test *t, const char *options)
{
    struct shape shape = {.primary_key = true, .options = options};
    shape_init(f, t, &shape);
    struct tarn_manifest_entry files[] = {
        shape_entry(f, TARN_ENTRY_ADD, "a", tarn_row_empty(), 1, 2, 0, 1, 10),
        shape_entry(f, TARN_ENTRY_ADD, "p", tarn_row_empty(), -2, -2, 0, 1, 10)};
    shape_land(f, "x", TARN_COMMIT_APPEND, files, 2, NULL, 0);
    struct tarn_commit c = request(TARN_OVERWRITE_TABLE, NULL, 0);
    struct tarn_resolved r;
    return resolve(f, &c, &r);
}

TARN_TEST(overwrite, leaves_files_that_wait_for_a_bucket_unless_all_do)
{
    struct fixture f;
    expect_str(with_postponed(&f, t, "\"bucket\":\"2\""), "-a");
    fixture_fini(&f);
    expect_str(with_postponed(&f, t, "\"bucket\":\"-2\""), "-a -p");
    fixture_fini(&f);
}

static struct tarn_manifest_entry key_file(struct fixture *f, const char *name, int bucket,
                                           int64_t low, int64_t high)
{
    return shape_entry(f, TARN_ENTRY_ADD, name, tarn_row_empty(), bucket, 2, 0, low, high);
}

TARN_TEST(overwrite, puts_new_files_that_do_not_overlap_into_the_last_level)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &keyed);
    struct tarn_manifest_entry files[] = {key_file(&f, "a", 0, 11, 20), key_file(&f, "b", 1, 1, 5),
                                          key_file(&f, "c", 0, 1, 10), key_file(&f, "d", 1, 5, 9)};
    struct tarn_commit c = request(TARN_OVERWRITE_TABLE, files, 4);
    struct tarn_resolved r;
    expect_str(resolve(&f, &c, &r), "+a +b +c +d");
    expect_int(r.part.entries[0].file.level, 5); /* num-levels is 6 */
    expect_int(r.part.entries[2].file.level, 5);
    expect_int(r.part.entries[1].file.level, 0); /* key 5 is in both */
    expect_int(r.part.entries[3].file.level, 0);
    expect_int(files[0].file.level, 0); /* the request is as it was */
    struct tarn_manifest_entry compacted = key_file(&f, "z", 0, 30, 40);
    c.compact.entries = &compacted;
    c.compact.count = 1; /* it will do that itself */
    expect_str(resolve(&f, &c, &r), "+a +b +c +d");
    expect_int(r.part.entries[0].file.level, 0);
    c.compact.count = 0;
    files[3].file.level = 3; /* somebody has begun to */
    expect_str(resolve(&f, &c, &r), "+a +b +c +d");
    expect_int(r.part.entries[0].file.level, 0);
}

TARN_TEST(overwrite, leaves_levels_alone_where_the_table_says_so)
{
    static const char *const options[] = {"\"bucket\":\"2\",\"overwrite-upgrade\":\"false\"",
                                          "\"bucket\":\"2\",\"pk-clustering-override\":\"true\""};
    for (int i = 0; i < 2; i++) {
        struct shape shape = {.primary_key = true, .options = options[i]};
        TARN_OWN(fixture_fini) struct fixture f;
        shape_init(&f, t, &shape);
        struct tarn_manifest_entry a = key_file(&f, "a", 0, 11, 20);
        struct tarn_commit c = request(TARN_OVERWRITE_TABLE, &a, 1);
        struct tarn_resolved r;
        expect_str(resolve(&f, &c, &r), "+a");
        expect_int(r.part.entries[0].file.level, 0);
    }
}

TARN_TEST(overwrite, deletes_the_index_files_of_what_it_overwrites)
{
    struct shape shape = {
        .primary_key = true, .partition_count = 1, .options = "\"bucket\":\"-1\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_slice one = shape_partition(&f, &shape, "1", 0),
                      two = shape_partition(&f, &shape, "2", 0);
    struct tarn_manifest_entry files[] = {
        shape_entry(&f, TARN_ENTRY_ADD, "a", one, 0, -1, 0, 1, 10),
        shape_entry(&f, TARN_ENTRY_ADD, "b", two, 0, -1, 0, 1, 10)};
    struct tarn_index_file index[] = {shape_index(TARN_ENTRY_ADD, TARN_INDEX_HASH, "ha", one, 0),
                                      shape_index(TARN_ENTRY_ADD, TARN_INDEX_HASH, "hb", two, 0)};
    shape_land(&f, "x", TARN_COMMIT_APPEND, files, 2, index, 2);
    struct tarn_manifest_entry n = shape_entry(&f, TARN_ENTRY_ADD, "n", two, 0, -1, 0, 1, 10);
    struct tarn_index_file hn = shape_index(TARN_ENTRY_ADD, TARN_INDEX_HASH, "hn", two, 0);
    struct tarn_commit c = request(TARN_OVERWRITE_DYNAMIC, &n, 1);
    c.append.index = &hn;
    c.append.index_count = 1;
    struct tarn_resolved r;
    expect_str(resolve(&f, &c, &r), "-b +n");
    expect_str(shape_index_names(&f, r.part.index, r.part.index_count), "-hb +hn");
    struct tarn_candidate candidate = {.kind = TARN_COMMIT_OVERWRITE,
                                       .entries = (struct tarn_manifest_entry *)r.part.entries,
                                       .count = r.part.count,
                                       .known_count = r.known_count,
                                       .index = r.part.index,
                                       .index_count = r.part.index_count,
                                       .base_snapshot_id = TARN_SNAPSHOT_NONE};
    expect_ok(tarn_table__check_conflicts(t->op, f.table, f.table->head, &candidate));
}

TARN_TEST(overwrite, finds_what_others_added_meanwhile)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin_days(&f, t);
    struct tarn_manifest_entry late = day_file(&f, "late", "1", 0), n = day_file(&f, "n", "1", 0);
    struct tarn_commit c = request(TARN_OVERWRITE_DYNAMIC, &n, 1);
    struct tarn_resolved r;
    expect_str(resolve(&f, &c, &r), "-a +n");
    shape_land(&f, "y", TARN_COMMIT_APPEND, &late, 1, NULL, 0);
    expect_str(resolve(&f, &c, &r), "-a -late +n");
}
