/*
 * What only the committer knows: row ids without gaps or repeats, the snapshot's id as sequence number, the largest
 * number as a property that is carried on; and who started below what a bucket has. Values as Java 2.0.0 gives them
 * (docs/format.md, "Stamps").
 */
#include "shape.h"

#define NONE TARN_SNAPSHOT_NONE
#define PROPERTY "sequence.generation.max-sequence-number"

static const struct shape tracked = {
    .partition_count = 1, .options = "\"bucket\":\"-1\",\"row-tracking.enabled\":\"true\""};

static struct tarn_manifest_entry file_of(struct fixture *f, const struct shape *shape,
                                          const char *name, const char *dt, int64_t rows)
{
    return shape_entry(f, TARN_ENTRY_ADD, name, shape_partition(f, shape, dt, 0), 0, -1, 0, 1,
                       rows);
}

static struct tarn_snapshot next_one(int64_t id, enum tarn_commit_kind kind, int64_t next_row_id)
{
    return (struct tarn_snapshot){.id = id, .kind = kind, .next_row_id = next_row_id};
}

static const char *ids_of(struct tarn_test *t, const struct tarn_manifest_entry *entries,
                          size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++) {
        tarn_buf_printf(&text, "%s%.*s:", i == 0 ? "" : " ", TARN_SLICE_ARG(entries[i].file.name));
        if (entries[i].file.first_row_id == TARN_FILE_NONE)
            tarn_buf_add_str(&text, "-");
        else
            tarn_buf_printf(&text, "%" PRId64, entries[i].file.first_row_id);
    }
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

TARN_TEST(stamp, numbers_rows_on_from_the_last_snapshot)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &tracked);
    struct tarn_manifest_entry files[] = {file_of(&f, &tracked, "a", "1", 10),
                                          file_of(&f, &tracked, "b", "2", 5),
                                          file_of(&f, &tracked, "c", "1", 3)};
    struct tarn_snapshot s = next_one(7, TARN_COMMIT_APPEND, 100);
    expect_ok(tarn_table__stamp(t->op, f.table, NULL, &s, files, 3));
    expect_str(ids_of(t, files, 3), "a:100 c:110 b:113"); /* those of a partition in a row */
    expect_int(s.next_row_id, 118);
    expect_int(files[0].file.min_sequence, 7);
    expect_int(files[0].file.max_sequence, 7);
}

/* What Java 2.0.0 made of two files of one row: ids 0 and 1, nextRowId 2, sequence 1. */
TARN_TEST(stamp, numbers_rows_as_java_does)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &tracked);
    struct tarn_manifest_entry files[] = {file_of(&f, &tracked, "a", "1", 1),
                                          file_of(&f, &tracked, "b", "1", 1)};
    struct tarn_snapshot s = next_one(1, TARN_COMMIT_APPEND, NONE);
    expect_ok(tarn_table__stamp(t->op, f.table, NULL, &s, files, 2));
    expect_str(ids_of(t, files, 2), "a:0 b:1");
    expect_int(s.next_row_id, 2);
    expect_int(files[1].file.max_sequence, 1);
}

TARN_TEST(stamp, keeps_the_request_order_where_partitions_are_not_grouped)
{
    struct shape shape = tracked;
    shape.options = "\"bucket\":\"-1\",\"row-tracking.enabled\":\"true\","
                    "\"row-tracking.partition-group-on-commit\":\"false\"";
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry files[] = {file_of(&f, &shape, "a", "1", 10),
                                          file_of(&f, &shape, "b", "2", 5),
                                          file_of(&f, &shape, "c", "1", 3)};
    struct tarn_snapshot s = next_one(1, TARN_COMMIT_APPEND, 0);
    expect_ok(tarn_table__stamp(t->op, f.table, NULL, &s, files, 3));
    expect_str(ids_of(t, files, 3), "a:0 b:10 c:15");
}

TARN_TEST(stamp, leaves_rows_that_have_their_number)
{
    static const struct tarn_slice columns[] = {{(const uint8_t *)"id", 2},
                                                {(const uint8_t *)"_ROW_ID", 7}};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &tracked);
    struct tarn_manifest_entry files[] = {
        file_of(&f, &tracked, "compacted", "1", 10), file_of(&f, &tracked, "numbered", "1", 10),
        file_of(&f, &tracked, "inside", "1", 10), file_of(&f, &tracked, "gone", "1", 10),
        file_of(&f, &tracked, "new", "1", 10)};
    files[0].file.source = TARN_SOURCE_COMPACT;
    files[0].file.min_sequence = 2;
    files[0].file.max_sequence = 0; /* some of its rows are of this commit */
    files[1].file.first_row_id = 3;
    files[1].file.min_sequence = files[1].file.max_sequence = 4;
    files[2].file.has_write_columns = true;
    files[2].file.write_columns = columns;
    files[2].file.write_column_count = 2;
    files[3].kind = TARN_ENTRY_DELETE;
    struct tarn_snapshot s = next_one(9, TARN_COMMIT_OVERWRITE, 50);
    expect_ok(tarn_table__stamp(t->op, f.table, NULL, &s, files, 5));
    expect_str(ids_of(t, files, 5), "compacted:- numbered:3 inside:- gone:- new:50");
    expect_int(s.next_row_id, 60);
    expect_int(files[0].file.min_sequence, 2);
    expect_int(files[0].file.max_sequence, 9);
    expect_int(files[1].file.max_sequence, 4);
}

TARN_TEST(stamp, refuses_rows_that_it_can_not_number)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &tracked);
    struct tarn_manifest_entry file = file_of(&f, &tracked, "a", "1", 10), again = file;
    file.file.source = TARN_SOURCE_UNKNOWN;
    struct tarn_snapshot s = next_one(1, TARN_COMMIT_APPEND, 0);
    expect_status(tarn_table__stamp(t->op, f.table, NULL, &s, &file, 1), TARN_INVALID_ARGUMENT,
                  "file a must say");
    file = again;
    s.next_row_id = INT64_MAX - 5;
    expect_status(tarn_table__stamp(t->op, f.table, NULL, &s, &file, 1), TARN_INVALID_ARGUMENT,
                  "no row ids left");
    file = again;
    file.file.name = tarn_slice_str("x.blob");
    expect_status(tarn_table__stamp(t->op, f.table, NULL, &s, &file, 1), TARN_UNSUPPORTED_FEATURE,
                  "BLOB");
}

TARN_TEST(stamp, does_nothing_where_nothing_is_asked)
{
    struct shape shape = {.partition_count = 1, .options = "\"bucket\":\"-1\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry files[] = {file_of(&f, &shape, "a", "1", 10),
                                          file_of(&f, &shape, "b", "2", 10),
                                          file_of(&f, &shape, "c", "1", 10)};
    struct tarn_snapshot s = next_one(3, TARN_COMMIT_APPEND, 0);
    expect_ok(tarn_table__stamp(t->op, f.table, NULL, &s, files, 3));
    expect_str(ids_of(t, files, 3), "a:- b:- c:-");
    expect_int(files[0].file.max_sequence, 9);
    expect_int(s.next_row_id, 0);
    expect_int(s.property_count, 0);
}

TARN_TEST(stamp, orders_by_snapshot_where_the_table_does)
{
    struct shape shape = {.primary_key = true,
                          .options = "\"bucket\":\"2\",\"sequence.snapshot-ordering\":\"true\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry files[] = {
        shape_entry(&f, TARN_ENTRY_DELETE, "a", tarn_row_empty(), 0, 2, 0, 1, 10),
        shape_entry(&f, TARN_ENTRY_ADD, "b", tarn_row_empty(), 0, 2, 0, 1, 10)};
    for (int i = 0; i < 2; i++) {
        struct tarn_snapshot s = next_one(12 + i, TARN_COMMIT_APPEND, 0);
        expect_ok(tarn_table__stamp(t->op, f.table, NULL, &s, files, 2));
        expect_int(files[0].file.max_sequence, 9);
        expect_int(files[1].file.min_sequence, 12 + i); /* again, for another id */
        expect_int(files[1].file.max_sequence, 12 + i);
    }
    struct tarn_snapshot s = next_one(20, TARN_COMMIT_COMPACT, 0);
    expect_ok(tarn_table__stamp(t->op, f.table, NULL, &s, files, 2));
    expect_int(files[1].file.max_sequence, 13); /* a compaction's rows have theirs */
}

static const char *largest(const struct tarn_snapshot *s)
{
    static char text[40];
    for (size_t i = 0; i < s->property_count; i++)
        if (tarn_slice_is(s->properties[i].key, PROPERTY)) {
            snprintf(text, sizeof text, "%.*s", TARN_SLICE_ARG(s->properties[i].value));
            return text;
        }
    return "none";
}

TARN_TEST(stamp, carries_the_largest_sequence_number_on)
{
    struct shape shape = {.primary_key = true,
                          .options =
                              "\"bucket\":\"2\",\"write.sequence-number-init-mode\":\"snapshot\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry a =
        shape_entry(&f, TARN_ENTRY_ADD, "a", tarn_row_empty(), 0, 2, 0, 1, 10);
    struct tarn_pair given[] = {{tarn_slice_str("who"), tarn_slice_str("me")}};
    struct tarn_snapshot first = next_one(1, TARN_COMMIT_APPEND, 0);
    first.properties = given;
    first.property_count = 1;
    expect_ok(tarn_table__stamp(t->op, f.table, NULL, &first, &a, 1));
    expect_str(largest(&first), "9");
    expect_int(first.property_count, 2);
    expect_slice(first.properties[0].key, "who");
    struct tarn_snapshot second = next_one(2, TARN_COMMIT_APPEND, 0);
    expect_ok(tarn_table__stamp(t->op, f.table, &first, &second, NULL, 0));
    expect_str(largest(&second), "9"); /* nothing new */
    a.file.max_sequence = 500;
    struct tarn_snapshot third = next_one(3, TARN_COMMIT_APPEND, 0);
    expect_ok(tarn_table__stamp(t->op, f.table, &second, &third, &a, 1));
    expect_str(largest(&third), "500");
    struct tarn_snapshot nothing = next_one(1, TARN_COMMIT_APPEND, 0);
    expect_ok(tarn_table__stamp(t->op, f.table, NULL, &nothing, NULL, 0));
    expect_str(largest(&nothing), "none");
    struct tarn_pair bad[] = {{tarn_slice_str(PROPERTY), tarn_slice_str("many")}};
    first.properties = bad;
    first.property_count = 1;
    expect_status(tarn_table__stamp(t->op, f.table, &first, &second, NULL, 0), TARN_VALUE_INVALID,
                  PROPERTY);
}

TARN_TEST(stamp, finds_the_largest_number_where_no_snapshot_says_it_yet)
{
    struct shape shape = {.primary_key = true,
                          .options =
                              "\"bucket\":\"2\",\"write.sequence-number-init-mode\":\"snapshot\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry a =
        shape_entry(&f, TARN_ENTRY_ADD, "a", tarn_row_empty(), 1, 2, 0, 1, 78);
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    struct tarn_snapshot s = next_one(2, TARN_COMMIT_APPEND, 0);
    expect_ok(tarn_table__stamp(t->op, f.table, &f.table->head->snapshot, &s, NULL, 0));
    expect_str(largest(&s), "77");
}

/* --- two writers, one bucket --- */

static struct tarn_manifest_entry numbered(struct fixture *f, const char *name, int bucket,
                                           int level, int64_t first, int64_t last)
{
    struct tarn_manifest_entry e =
        shape_entry(f, TARN_ENTRY_ADD, name, tarn_row_empty(), bucket, 2, level, 1, 10);
    e.file.min_sequence = first;
    e.file.max_sequence = last;
    return e;
}

static int64_t overlaps(struct fixture *f, struct tarn_map *highest,
                        const struct tarn_manifest_entry *entries, size_t count)
{
    int64_t n;
    expect_ok(tarn_table__check_sequences(f->t->op, f->table, highest, entries, count, &n));
    return n;
}

TARN_TEST(sequences, count_files_that_start_below_what_is_there)
{
    struct shape shape = {.primary_key = true, .options = "\"bucket\":\"2\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry a = numbered(&f, "a", 0, 0, 0, 9),
                               first = numbered(&f, "f", 0, 0, 0, 3);
    expect_int(overlaps(&f, NULL, &first, 1), 0); /* an empty bucket */
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    struct tarn_manifest_entry files[] = {
        numbered(&f, "on", 0, 0, 10, 12), numbered(&f, "over", 0, 0, 9, 12),
        numbered(&f, "other", 1, 0, 0, 4), numbered(&f, "up", 0, 5, 0, 4)};
    expect_int(overlaps(&f, NULL, files, 4), 1);
    expect_int(overlaps(&f, NULL, files, 1), 0);
}

TARN_TEST(sequences, of_one_group_are_held_against_each_other)
{
    struct shape shape = {.primary_key = true, .options = "\"bucket\":\"2\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry mine = numbered(&f, "m", 0, 0, 0, 5),
                               yours = numbered(&f, "y", 0, 0, 5, 7);
    TARN_OWN(tarn_map_drop) struct tarn_map *highest = tarn_map_new();
    expect_int(overlaps(&f, highest, &mine, 1), 0);
    expect_int(overlaps(&f, highest, &yours, 1), 1);
}

TARN_TEST(sequences, are_refused_where_the_table_says_so)
{
    struct shape shape = {.primary_key = true,
                          .options = "\"bucket\":\"2\",\"tarn.sequence-overlap\":\"refuse\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry a = numbered(&f, "a", 0, 0, 0, 9),
                               b = numbered(&f, "b", 0, 0, 4, 12);
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    int64_t n;
    expect_status(tarn_table__check_sequences(t->op, f.table, NULL, &b, 1, &n),
                  TARN_SEQUENCE_OVERLAP, "file b starts at sequence number 4");
}

TARN_TEST(sequences, do_not_matter_where_something_else_decides)
{
    static const char *const options[] = {
        "\"bucket\":\"2\",\"sequence.field\":\"v\"",
        "\"bucket\":\"2\",\"sequence.snapshot-ordering\":\"true\""};
    for (int i = 0; i < 2; i++) {
        struct shape shape = {.primary_key = true, .options = options[i]};
        TARN_OWN(fixture_fini) struct fixture f;
        shape_init(&f, t, &shape);
        struct tarn_manifest_entry a = numbered(&f, "a", 0, 0, 0, 9);
        shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
        expect_int(overlaps(&f, NULL, &a, 1), 0);
    }
}

static void land(struct fixture *f, struct tarn_head *head, const char *json,
                 const struct tarn_manifest_entry *entries, size_t count)
{
    tarn_table__note_sequences(f->table, tarn_slice_str(json), entries, count);
    head->json = tarn_slice_str(json);
}

TARN_TEST(sequences, are_known_without_reading_the_bucket_again)
{
    struct shape shape = {.primary_key = true, .options = "\"bucket\":\"2\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry a = numbered(&f, "a", 0, 0, 0, 9),
                               b = numbered(&f, "b", 0, 0, 10, 19),
                               low = numbered(&f, "l", 0, 0, 12, 13),
                               high = numbered(&f, "h", 0, 0, 20, 20);
    struct tarn_head *real = f.table->head, next = *real;
    f.table->head = &next;
    expect_int(overlaps(&f, NULL, &a, 1), 0); /* known from here on */
    /* As publishing does it: noted while the head is still the one before. The index has none of these files. */
    land(&f, &next, "{1}", &a, 1);
    expect_int(overlaps(&f, NULL, &low, 1), 0);
    land(&f, &next, "{2}", &b, 1);
    expect_int(overlaps(&f, NULL, &low, 1), 1);
    expect_int(overlaps(&f, NULL, &high, 1), 0);
    struct tarn_manifest_entry change[] = {b, b};
    change[0].kind = TARN_ENTRY_DELETE;
    change[1].file.name = tarn_slice_str("c"); /* a compaction of it has as large a number */
    change[1].file.level = 5;
    land(&f, &next, "{3}", change, 2);
    expect_int(overlaps(&f, NULL, &low, 1), 1);
    change[1].kind = TARN_ENTRY_DELETE;
    land(&f, &next, "{4}", change + 1, 1);
    expect_int(overlaps(&f, NULL, &low, 1), 0); /* read anew */
    land(&f, &next, "{5}", &b, 1);
    expect_int(overlaps(&f, NULL, &low, 1), 1);
    next.json = tarn_slice_str("{6}"); /* somebody else's, or a roll-back: read anew */
    expect_int(overlaps(&f, NULL, &low, 1), 0);
    f.table->head = real;
}
