/*
 * Manifests: Java's and pypaimon's are read field by field, ours hold the same bytes as theirs, and what
 * we can't vouch for (other versions, names that leave the folder, damaged packing) is refused.
 */
#include "test.h"

#include "format/avro.h"
#include "format/manifest.h"

static const uint8_t sync_mark[16] = "0123456789abcdef";
static const struct tarn_type text = {
    .id = TARN_TYPE_VARCHAR, .nullable = true, .length = TARN_TYPE_LENGTH_MAX};
static const struct tarn_type day = {.id = TARN_TYPE_DATE, .nullable = true};

static struct tarn_slice golden(struct tarn_test *t, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(name, &bytes);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&bytes));
}

static struct tarn_manifest_entry *decode(struct tarn_test *t, struct tarn_slice bytes,
                                          size_t *count)
{
    struct tarn_manifest_entry *entries = NULL;
    expect_ok(tarn_manifest_decode(bytes, t->arena, &entries, count));
    return entries;
}

/* The plain bytes of the first block. */
static struct tarn_slice block_of(struct tarn_test *t, struct tarn_slice file)
{
    struct tarn_avro_reader r;
    bool more = false;
    expect_ok(tarn_avro_open(file, t->arena, &r));
    expect_ok(tarn_avro_next(&r, &more));
    expect_true(more);
    return tarn_slice_of(r.cursor, (size_t)(r.end - r.cursor));
}

TARN_TEST(manifest, reads_java)
{
    size_t n = 0;
    struct tarn_manifest_entry *e = decode(t, golden(t, "manifest/append_all.manifest"), &n);
    expect_int(n, 1);
    const struct tarn_data_file *f = &e->file;
    expect_int(e->kind, TARN_ENTRY_ADD);
    expect_bytes(e->partition, tarn_row_empty());
    expect_int(e->bucket, 0);
    expect_int(e->total_buckets, -1);
    expect_int(f->row_count, 5);
    expect_true(f->size > 1000);
    expect_bytes(f->min_key, tarn_row_empty());
    expect_int(f->key_stats.count, 0);
    expect_int(f->min_sequence, 0);
    expect_int(f->max_sequence, 4);
    expect_int(f->level, 0);
    expect_int(f->extra_file_count, 0);
    expect_true(f->creation_time_ms > INT64_C(1700000000000));
    expect_int(f->delete_row_count, 0);
    expect_null(f->embedded_index.data);
    expect_int(f->source, TARN_SOURCE_APPEND);
    expect_true(f->has_value_stats_columns); /* nested columns have none and are left out */
    expect_int(f->value_stats.count, f->value_stats_column_count);
    expect_slice(f->value_stats_columns[0], "c_bool");
    expect_int(f->value_stats.null_counts[0], 1);
    expect_int(f->first_row_id, TARN_FILE_NONE);
    expect_false(f->has_write_columns);
    expect_false(f->unknown);
}

TARN_TEST(manifest, reads_keys_and_statistics)
{
    size_t n = 0;
    struct tarn_manifest_entry *e = decode(t, golden(t, "manifest/pk_all.manifest"), &n);
    const struct tarn_type number = {.id = TARN_TYPE_INT};
    const struct tarn_type *type = &number;
    struct tarn_value value;
    expect_int(e->total_buckets, 1);
    expect_ok(tarn_row_deserialize(e->file.min_key, &type, 1, &value));
    expect_int(value.integer, 0);
    expect_ok(tarn_row_deserialize(e->file.max_key, &type, 1, &value));
    expect_int(value.integer, 3);
    expect_int(e->file.key_stats.count, 1);
    expect_int(e->file.key_stats.null_counts[0], 0);
}

TARN_TEST(manifest, reads_pypaimon)
{
    size_t n = 0;
    struct tarn_manifest_entry *e = decode(t, golden(t, "manifest/py_pk.manifest"), &n);
    int64_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        rows += e[i].file.row_count;
        expect_int(e[i].total_buckets, 4);
        expect_true(e[i].file.has_value_stats_columns);
        expect_int(e[i].file.value_stats_column_count, 0);
        expect_false(e[i].file.unknown);
    }
    expect_int(rows, 5);
}

/* The top of its Avro schemas is a union of null and the record. */
TARN_TEST(manifest, reads_pypaimon_rust)
{
    struct tarn_manifest_file *files;
    size_t n = 0;
    struct tarn_manifest_entry *e = decode(t, golden(t, "manifest/rust_pk.manifest"), &n);
    expect_int(n, 1);
    expect_int(e[0].kind, TARN_ENTRY_ADD);
    expect_int(e[0].total_buckets, 1);
    expect_int(e[0].file.row_count, 3);
    expect_int(e[0].file.min_sequence, 0);
    expect_int(e[0].file.max_sequence, 2);
    expect_ok(tarn_manifest_list_decode(golden(t, "manifest/rust_pk.list"), t->arena, &files, &n));
    expect_int(n, 1);
    expect_int(files[0].added_count, 1);
    expect_ok(
        tarn_manifest_list_decode(golden(t, "manifest/rust_pk.empty-list"), t->arena, &files, &n));
    expect_int(n, 0);
}

/* What we write of what we read has the same bytes as the file it came from. */
static void expect_same_list(struct tarn_test *t, const char *name, bool exact)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_slice file = golden(t, name);
    struct tarn_manifest_file *files = NULL;
    size_t n = 0;
    expect_ok(tarn_manifest_list_decode(file, t->arena, &files, &n));
    expect_int(n, 1);
    expect_false(files->unknown);
    expect_ok(tarn_manifest_list_encode(files, n, tarn_slice_str("zstd"), 1, sync_mark, &out));
    struct tarn_slice ours = block_of(t, tarn_buf_slice(&out)), theirs = block_of(t, file);
    if (!exact) /* pypaimon's has two fields more */
        theirs.size = TARN_MIN(ours.size, theirs.size);
    expect_bytes(ours, theirs);
}

TARN_TEST(manifest, lists_are_written_as_java_writes_them)
{
    expect_same_list(t, "manifest/append_all.list", true);
    expect_same_list(t, "manifest/append_partitioned.list", true);
    expect_same_list(t, "manifest/pk_all.list", true);
    expect_same_list(t, "manifest/pk_dynamic.list", true);
    expect_same_list(t, "manifest/py_append.list", false);
    expect_same_list(t, "manifest/py_pk.list", false);
}

/* Of a file of ours, whose header begins with it. */
static struct tarn_slice schema_text(struct tarn_slice file)
{
    const uint8_t *cursor = file.data + 5, *end = file.data + file.size;
    struct tarn_slice value = {0};
    expect_true(tarn_avro_take_bytes(&cursor, end, &value));
    expect_slice(value, "avro.schema");
    expect_true(tarn_avro_take_bytes(&cursor, end, &value));
    return value;
}

TARN_TEST(manifest, schema_texts_are_java_s)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf list = {0};
    expect_ok(tarn_manifest_list_encode(NULL, 0, tarn_slice_str("none"), 1, sync_mark, &list));
    struct tarn_slice ours = schema_text(tarn_buf_slice(&list));
    struct tarn_slice theirs = golden(t, "manifest/append_all.empty-list");
    expect_true(ours.size > 900);
    expect_not_null(memmem(theirs.data, theirs.size, ours.data, ours.size));
    /* A manifest's is Java's up to the field that Java 2.0 doesn't have yet. */
    TARN_OWN(tarn_buf_drop) struct tarn_buf manifest = {0};
    expect_ok(tarn_manifest_encode(NULL, 0, tarn_slice_str("none"), 1, sync_mark, &manifest));
    ours = schema_text(tarn_buf_slice(&manifest));
    const char *more = memmem(ours.data, ours.size, ",{\"name\":\"_WRITE_COLS_SEQUENCES\"", 32);
    expect_not_null(more);
    theirs = golden(t, "manifest/append_all.manifest");
    expect_not_null(
        memmem(theirs.data, theirs.size, ours.data, (size_t)(more - (const char *)ours.data)));
}

TARN_TEST(manifest, empty_lists)
{
    struct tarn_manifest_file *files = NULL;
    size_t n = 9;
    expect_ok(tarn_manifest_list_decode(golden(t, "manifest/append_all.empty-list"), t->arena,
                                        &files, &n));
    expect_int(n, 0);
    expect_ok(
        tarn_manifest_list_decode(golden(t, "manifest/py_pk.empty-list"), t->arena, &files, &n));
    expect_int(n, 0);
}

TARN_TEST(manifest, entries_are_written_as_java_writes_them)
{
    static const char *const names[] = {"manifest/append_all.manifest",
                                        "manifest/pk_all.manifest",
                                        "manifest/append_partitioned.manifest",
                                        "manifest/pk_dynamic.manifest",
                                        "manifest/py_pk.manifest",
                                        "manifest/py_append.manifest"};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        struct tarn_slice file = golden(t, names[i]), theirs = block_of(t, file);
        bool sequences = memmem(file.data, file.size, "_WRITE_COLS_SEQUENCES", 21) != NULL;
        size_t n = 0;
        struct tarn_manifest_entry *e = decode(t, file, &n);
        for (size_t k = 0; k < n; k++) { /* entry by entry: ours has a null more at each end */
            TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
            expect_ok(tarn_manifest_encode(&e[k], 1, tarn_slice_str("zstd"), 1, sync_mark, &out));
            struct tarn_slice ours = block_of(t, tarn_buf_slice(&out));
            ours.size -= !sequences;
            expect_true(tarn_slice_starts_with(theirs, ours));
            theirs = tarn_slice_of(theirs.data + ours.size, theirs.size - ours.size);
        }
        expect_int(theirs.size, 0);
    }
}

TARN_TEST(manifest, reads_index_manifests)
{
    struct tarn_index_file *files = NULL;
    size_t n = 0;
    expect_ok(
        tarn_index_manifest_decode(golden(t, "manifest/pk_dynamic.index"), t->arena, &files, &n));
    expect_int(n, 1);
    expect_slice(files->type, "HASH");
    expect_int(files->size, 8);
    expect_int(files->row_count, 2);
    expect_int(files->bucket, 0);
    expect_false(files->has_vectors);
    expect_null(files->external_path.data);
}

TARN_TEST(manifest, refuses_other_versions_and_names)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_manifest_entry e = {.file = {.name = tarn_slice_str("../../etc/passwd")}}, *got;
    size_t n;
    expect_ok(tarn_manifest_encode(&e, 1, tarn_slice_str("none"), 1, sync_mark, &out));
    expect_status(tarn_manifest_decode(tarn_buf_slice(&out), t->arena, &got, &n),
                  TARN_MANIFEST_MALFORMED, "_FILE_NAME");
    tarn_buf_clear(&out);
    e.file.name = tarn_slice_str("data-1.parquet");
    expect_ok(tarn_manifest_encode(&e, 1, tarn_slice_str("none"), 1, sync_mark, &out));
    struct tarn_slice block = block_of(t, tarn_buf_slice(&out));
    uint8_t *version = memmem(out.data, out.size, block.data, block.size);
    expect_int(*version, 4); /* 2 in zigzag */
    *version = 6;
    expect_status(tarn_manifest_decode(tarn_buf_slice(&out), t->arena, &got, &n),
                  TARN_MANIFEST_MALFORMED, "_VERSION");
    struct tarn_manifest_file *files;
    expect_status(tarn_manifest_list_decode(tarn_buf_slice(&out), t->arena, &files, &n),
                  TARN_MANIFEST_MALFORMED, "_FILE_NAME");
}

TARN_TEST(manifest, summary_is_what_java_put_in_the_list)
{
    /* The lists of test/golden hold what Java computed over these very entries. */
    static const struct {
        const char *list, *manifest;
        const struct tarn_type *types[2];
        size_t count;
    } cases[] = {
        {"manifest/append_all.list", "manifest/append_all.manifest", {NULL}, 0},
        {"manifest/append_partitioned.list",
         "manifest/append_partitioned.manifest",
         {&day, &text},
         2},
        {"manifest/pk_all.list", "manifest/pk_all.manifest", {NULL}, 0},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        struct tarn_manifest_file *want = NULL, got;
        size_t n = 0, k = 0;
        struct tarn_manifest_entry *e = decode(t, golden(t, cases[i].manifest), &k);
        expect_ok(tarn_manifest_list_decode(golden(t, cases[i].list), t->arena, &want, &n));
        expect_ok(tarn_manifest_summarize(e, k, cases[i].types, cases[i].count, 9, t->arena, &got));
        expect_int(got.added_count, want->added_count);
        expect_int(got.deleted_count, 0);
        expect_bytes(got.partition_stats.min, want->partition_stats.min);
        expect_bytes(got.partition_stats.max, want->partition_stats.max);
        expect_int(got.partition_stats.count, want->partition_stats.count);
        for (size_t j = 0; j < got.partition_stats.count; j++)
            expect_int(got.partition_stats.null_counts[j], want->partition_stats.null_counts[j]);
        expect_int(got.schema_id, want->schema_id);
        expect_int(got.min_bucket, want->min_bucket);
        expect_int(got.max_level, want->max_level);
        expect_int(got.min_row_id, want->min_row_id);
    }
    struct tarn_manifest_file none;
    expect_ok(tarn_manifest_summarize(NULL, 0, NULL, 0, 9, t->arena, &none));
    expect_int(none.schema_id, 9);
    expect_int(none.min_bucket, TARN_FILE_NONE);
    expect_int(none.min_row_id, TARN_FILE_NONE);
}

TARN_TEST(manifest, row_id_bounds_need_all)
{
    struct tarn_manifest_entry e[2] = {
        {.partition = tarn_row_empty(), .file = {.row_count = 10, .first_row_id = 100}},
        {.partition = tarn_row_empty(), .file = {.row_count = 5, .first_row_id = 50}}};
    struct tarn_manifest_file got;
    expect_ok(tarn_manifest_summarize(e, 2, NULL, 0, 0, t->arena, &got));
    expect_int(got.min_row_id, 50);
    expect_int(got.max_row_id, 109);
    e[1].file.first_row_id = TARN_FILE_NONE;
    expect_ok(tarn_manifest_summarize(e, 2, NULL, 0, 0, t->arena, &got));
    expect_int(got.min_row_id, TARN_FILE_NONE);
    expect_int(got.max_row_id, TARN_FILE_NONE);
}

TARN_TEST(manifest, identity_ignores_statistics_only)
{
    size_t n = 0;
    struct tarn_manifest_entry *e = decode(t, golden(t, "manifest/pk_all.manifest"), &n), other;
    TARN_OWN(tarn_buf_drop) struct tarn_buf a = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf b = {0};
    const struct tarn_slice extra = tarn_slice_str("x.index");
    tarn_manifest_identity(e, &a);
    for (int i = 0; i < 7; i++) {
        other = *e;
        other.kind = TARN_ENTRY_DELETE;
        other.file.value_stats = tarn_stats_empty();
        if (i == 1)
            other.file.level++;
        if (i == 2)
            other.bucket++;
        if (i == 3)
            other.file.external_path = tarn_slice_str("");
        if (i == 4)
            other.file.embedded_index = tarn_slice_str("");
        if (i == 5)
            other.file.extra_files = &extra, other.file.extra_file_count = 1;
        if (i == 6)
            other.partition = tarn_slice_str("p");
        tarn_buf_clear(&b);
        tarn_manifest_identity(&other, &b);
        expect_int(tarn_slice_equal(tarn_buf_slice(&a), tarn_buf_slice(&b)), i == 0);
    }
}

TARN_TEST(manifest, packed_entries_are_the_same_entries)
{
    size_t n = 0;
    struct tarn_manifest_entry *e = decode(t, golden(t, "manifest/append_all.manifest"), &n), back;
    TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0}, bare = {0}, a = {0}, b = {0};
    tarn_manifest_entry_pack(e, true, &packed);
    expect_ok(tarn_manifest_entry_unpack(tarn_buf_slice(&packed), t->arena, &back));
    expect_ok(tarn_manifest_encode(e, 1, tarn_slice_str("none"), 1, sync_mark, &a));
    expect_ok(tarn_manifest_encode(&back, 1, tarn_slice_str("none"), 1, sync_mark, &b));
    expect_bytes(tarn_buf_slice(&b), tarn_buf_slice(&a));
    tarn_manifest_entry_pack(e, false, &bare);
    expect_true(bare.size < packed.size / 2);
    expect_ok(tarn_manifest_entry_unpack(tarn_buf_slice(&bare), t->arena, &back));
    expect_true(back.file.has_value_stats_columns);
    expect_int(back.file.value_stats_column_count, 0);
    expect_bytes(back.file.value_stats.min, tarn_row_empty());
    /* statistics alone, put behind, make it the one with them */
    struct tarn_slice fields, stats;
    struct tarn_data_file file = back.file;
    TARN_OWN(tarn_buf_drop) struct tarn_buf alone = {0};
    tarn_manifest_stats_pack(&e->file, &alone);
    expect_ok(tarn_manifest_stats_view(tarn_buf_slice(&alone), t->arena, &file));
    expect_bytes(file.value_stats.min, e->file.value_stats.min);
    expect_int(file.value_stats_column_count, e->file.value_stats_column_count);
    expect_ok(tarn_manifest_entry_fields(tarn_buf_slice(&packed), &fields, &stats));
    expect_true(stats.data + stats.size == packed.data + packed.size);
    tarn_buf_clear(&b);
    tarn_buf_add_slice(&b, tarn_buf_slice(&bare));
    tarn_buf_add_slice(&b, tarn_buf_slice(&alone));
    expect_bytes(tarn_buf_slice(&b), tarn_buf_slice(&packed));
    /* cut anywhere else, or with a byte too many, it is refused */
    for (size_t cut = 0; cut < packed.size; cut++)
        if (cut != bare.size)
            expect_status(
                tarn_manifest_entry_unpack(tarn_slice_of(packed.data, cut), t->arena, &back),
                TARN_MANIFEST_MALFORMED, "");
    tarn_buf_add_byte(&packed, 0);
    expect_status(tarn_manifest_entry_unpack(tarn_buf_slice(&packed), t->arena, &back),
                  TARN_MANIFEST_MALFORMED, "damaged");
    struct tarn_slice extra = tarn_slice_str("a/b");
    struct tarn_manifest_entry named = back;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bad = {0};
    named.file.extra_files = &extra;
    named.file.extra_file_count = 1;
    tarn_manifest_entry_pack(&named, true, &bad);
    expect_status(tarn_manifest_entry_unpack(tarn_buf_slice(&bad), t->arena, &back),
                  TARN_MANIFEST_MALFORMED, "names the file 'a/b'");
    packed.data[0] = 1;
    expect_status(tarn_manifest_entry_unpack(tarn_buf_slice(&packed), t->arena, &back),
                  TARN_MANIFEST_MALFORMED, "version");
}

/* --- block by block --- */

TARN_TEST(manifest, of_java_is_read_and_written_block_by_block)
{
    static const char *const names[] = {"manifest/append_all.manifest", "manifest/pk_all.manifest",
                                        "manifest/py_pk.manifest", "manifest/rust_pk.manifest"};
    const uint8_t sync[16] = {5};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        struct tarn_slice bytes = golden(t, names[i]);
        size_t n, count;
        struct tarn_manifest_entry *all = decode(t, bytes, &n), *some;
        TARN_OWN(tarn_buf_drop) struct tarn_buf want = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
        expect_ok(tarn_manifest_encode(all, n, tarn_slice_str("zstd"), 1, sync, &want));
        struct tarn_manifest_writer *writer;
        struct tarn_manifest_reader *reader;
        expect_ok(tarn_manifest_writer_new(tarn_slice_str("zstd"), 1, sync, &got, &writer));
        expect_ok(tarn_manifest_open(bytes, t->arena, &reader));
        do {
            TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
            expect_ok(tarn_manifest_next(reader, arena, &some, &count));
            expect_ok(tarn_manifest_writer_add(writer, some, count));
        } while (count > 0);
        expect_ok(tarn_manifest_writer_end(writer));
        tarn_manifest_writer_free(writer);
        expect_bytes(tarn_buf_slice(&got), tarn_buf_slice(&want));
    }
}

TARN_TEST(manifest, summaries_join_to_that_of_all_entries)
{
    size_t n;
    struct tarn_manifest_entry *e = decode(t, golden(t, "manifest/append_all.manifest"), &n);
    static const struct tarn_type words = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};
    static const struct tarn_type number = {.id = TARN_TYPE_INT};
    const struct tarn_type *types[] = {&words, &number};
    struct tarn_manifest_entry entries[40];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 40; i++) {
            char word[2] = {(char)('a' + tarn_test_random_below(t, 26)), 0};
            struct tarn_value values[] = {
                {.is_null = tarn_test_random_one_in(t, 5), .bytes = tarn_slice_str(word)},
                {.is_null = tarn_test_random_one_in(t, 3),
                 .integer = tarn_test_random_between(t, -9, 9)}};
            TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
            tarn_row_serialize(types, values, 2, &row);
            entries[i] = e[0];
            entries[i].kind = tarn_test_random_one_in(t, 2) ? TARN_ENTRY_ADD : TARN_ENTRY_DELETE;
            entries[i].partition = tarn_arena_copy(t->arena, tarn_buf_slice(&row));
            entries[i].bucket = (int32_t)tarn_test_random_below(t, 9);
            entries[i].file.level = (int32_t)tarn_test_random_below(t, 6);
            entries[i].file.schema_id = (int64_t)tarn_test_random_below(t, 3);
            entries[i].file.first_row_id =
                round % 2 && !tarn_test_random_one_in(t, 60) ? 100 * i : TARN_FILE_NONE;
        }
        struct tarn_manifest_file all,
            joined = {.schema_id = 7, .partition_stats = tarn_stats_empty()};
        expect_ok(tarn_manifest_summarize(entries, 40, types, 2, 7, t->arena, &all));
        for (size_t at = 0, size; at < 40; at += size) {
            struct tarn_manifest_file part;
            size = TARN_MIN((size_t)tarn_test_random_below(t, 12), 40 - at);
            expect_ok(tarn_manifest_summarize(entries + at, size, types, 2, 7, t->arena, &part));
            expect_ok(tarn_manifest_summary_join(types, 2, &part, t->arena, &joined));
        }
        const uint8_t sync[16] = {5};
        TARN_OWN(tarn_buf_drop) struct tarn_buf want = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
        all.name = joined.name = tarn_slice_str("m");
        expect_ok(tarn_manifest_list_encode(&all, 1, tarn_slice_str("none"), 1, sync, &want));
        expect_ok(tarn_manifest_list_encode(&joined, 1, tarn_slice_str("none"), 1, sync, &got));
        expect_bytes(tarn_buf_slice(&got), tarn_buf_slice(&want));
    }
}
