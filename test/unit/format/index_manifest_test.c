/*
 * Index manifests: a record of Java's or pypaimon's is carried whole and written again as Java writes it;
 * and a commit's changes give what Paimon's own rules give, or a conflict that names the files.
 */
#include "test.h"

#include "format/avro.h"
#include "format/manifest.h"

static const uint8_t sync_mark[16] = "0123456789abcdef";

static struct tarn_slice golden(struct tarn_test *t, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(name, &bytes);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&bytes));
}

static struct tarn_index_file *decode(struct tarn_test *t, struct tarn_slice bytes, size_t *count)
{
    struct tarn_index_file *files = NULL;
    expect_ok(tarn_index_manifest_decode(bytes, t->arena, &files, count));
    return files;
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

static void expect_vectors(const struct tarn_index_file *f, int64_t second_cardinality)
{
    expect_true(f->has_vectors);
    expect_int(f->vector_count, 2);
    expect_slice(f->vectors[0].data_file, "data-1.parquet");
    expect_int(f->vectors[0].offset, 1);
    expect_int(f->vectors[0].length, 24);
    expect_int(f->vectors[0].cardinality, 2);
    expect_slice(f->vectors[1].data_file, "data-2.orc");
    expect_int(f->vectors[1].offset, 33);
    expect_int(f->vectors[1].length, 44);
    expect_int(f->vectors[1].cardinality, second_cardinality);
}

TARN_TEST(index_manifest, reads_javas_deletion_vectors)
{
    size_t n = 0;
    struct tarn_index_file *f = decode(t, golden(t, "manifest/java_vectors.index"), &n);
    expect_int(n, 2);
    if (!tarn_slice_is(f[0].name, "index-1")) { /* Java's order is that of a hash table */
        struct tarn_index_file second = f[0];
        f[0] = f[1];
        f[1] = second;
    }
    expect_int(f[0].kind, TARN_ENTRY_ADD);
    expect_int(f[0].bucket, 7);
    expect_int(f[0].partition.size, 4 + 8 + 16 + 24);
    expect_slice(f[0].type, TARN_INDEX_DELETION_VECTORS);
    expect_slice(f[0].name, "index-1");
    expect_int(f[0].size, 77);
    expect_int(f[0].row_count, 2);
    expect_vectors(&f[0], TARN_FILE_NONE);
    expect_null(f[0].external_path.data);
    expect_false(f[0].has_global);
    expect_false(f[0].unknown);
    expect_slice(f[1].name, "index-2");
    expect_true(f[1].has_vectors);
    expect_int(f[1].vector_count, 0);
    expect_slice(f[1].external_path, "s3://elsewhere/index-2");
}

TARN_TEST(index_manifest, reads_javas_global_indexes)
{
    size_t n = 0;
    struct tarn_index_file *f = decode(t, golden(t, "manifest/java_global.index"), &n);
    expect_int(n, 1);
    expect_slice(f->type, "btree");
    expect_false(f->has_vectors);
    expect_true(f->has_global);
    expect_int(f->global.row_start, 0);
    expect_int(f->global.row_end, 99);
    expect_int(f->global.field_id, 3);
    expect_false(f->global.has_extra_fields);
    expect_bytes(f->global.meta, tarn_slice_of("\x01\x02\xff", 3));
    expect_null(f->global.source_meta.data);
    f = decode(t, golden(t, "manifest/java_global_full.index"), &n);
    expect_int(n, 1);
    expect_int(f->size, INT64_C(1) << 40);
    expect_slice(f->external_path, "file:/index-4");
    expect_int(f->global.row_end, INT64_MAX);
    expect_true(f->global.has_extra_fields);
    expect_int(f->global.extra_field_count, 3);
    expect_int(f->global.extra_fields[0], 5);
    expect_int(f->global.extra_fields[1], -6);
    expect_int(f->global.extra_fields[2], 70000);
    expect_null(f->global.meta.data);
    expect_true(f->global.source_meta.data != NULL);
    expect_int(f->global.source_meta.size, 0);
}

TARN_TEST(index_manifest, reads_pypaimon)
{
    size_t n = 0;
    struct tarn_index_file *f = decode(t, golden(t, "manifest/py_full.index"), &n);
    expect_int(n, 2);
    expect_vectors(&f[0], TARN_FILE_NONE);
    expect_slice(f[1].type, "btree");
    expect_int(f[1].global.extra_field_count, 1);
    expect_int(f[1].global.extra_fields[0], 4);
    expect_bytes(f[1].global.meta, tarn_slice_of("\x01\xff", 2));
    expect_false(f[0].unknown || f[1].unknown);
}

TARN_TEST(index_manifest, is_written_as_java_writes_it)
{
    static const char *const names[] = {"manifest/java_vectors.index", "manifest/java_global.index",
                                        "manifest/java_global_full.index",
                                        "manifest/pk_dynamic.index"};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        struct tarn_slice theirs = golden(t, names[i]);
        size_t n = 0;
        struct tarn_index_file *f = decode(t, theirs, &n);
        expect_ok(tarn_index_manifest_encode(f, n, tarn_slice_str("zstd"), 1, sync_mark, &out));
        struct tarn_slice ours = tarn_buf_slice(&out);
        expect_bytes(block_of(t, ours), block_of(t, theirs));
        /* And the same schema, letter by letter. */
        const uint8_t *begin = memmem(theirs.data, theirs.size, "{\"type\"", 7);
        const uint8_t *end = memmem(theirs.data, theirs.size, "]}", 2);
        for (const uint8_t *more = end; more != NULL;) {
            end = more + 2;
            more = memmem(end, theirs.size - (size_t)(end - theirs.data), "]}", 2);
        }
        expect_true(begin != NULL && end > begin);
        expect_true(memmem(ours.data, ours.size, begin, (size_t)(end - begin)) != NULL);
    }
}

TARN_TEST(index_manifest, what_is_not_known_is_not_written)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_index_file f = {.name = tarn_slice_str("index-9"), .unknown = true};
    expect_status(tarn_index_manifest_encode(&f, 1, tarn_slice_str("none"), 1, sync_mark, &out),
                  TARN_UNSUPPORTED_FEATURE, "index-9");
}

TARN_TEST(index_manifest, what_is_stored_is_live)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_index_file f = {.name = tarn_slice_str("index-9"), .kind = TARN_ENTRY_DELETE}, *got;
    size_t n;
    expect_ok(tarn_index_manifest_encode(&f, 1, tarn_slice_str("none"), 1, sync_mark, &out));
    expect_status(tarn_index_manifest_decode(tarn_buf_slice(&out), t->arena, &got, &n),
                  TARN_MANIFEST_MALFORMED, "_KIND");
}

/* ---- combining */

static struct tarn_index_file file_of(enum tarn_entry_kind kind, const char *type, int bucket,
                                      const char *name)
{
    return (struct tarn_index_file){.kind = kind,
                                    .type = tarn_slice_str(type),
                                    .bucket = bucket,
                                    .partition = tarn_row_empty(),
                                    .name = tarn_slice_str(name)};
}

static struct tarn_index_file hash(enum tarn_entry_kind kind, int bucket, const char *name)
{
    return file_of(kind, TARN_INDEX_HASH, bucket, name);
}

static struct tarn_index_file vectors(struct tarn_test *t, enum tarn_entry_kind kind, int bucket,
                                      const char *name, const char *file1, const char *file2)
{
    struct tarn_index_file f = file_of(kind, TARN_INDEX_DELETION_VECTORS, bucket, name);
    struct tarn_vector_range *v = tarn_arena_calloc(t->arena, 2, sizeof *v);
    v[0].data_file = tarn_slice_str(file1);
    v[1].data_file = tarn_slice_str(file2);
    f.has_vectors = true;
    f.vectors = v;
    f.vector_count = file2 == NULL ? 1 : 2;
    return f;
}

static struct tarn_index_file rows(enum tarn_entry_kind kind, const char *name, int field,
                                   int64_t first, int64_t last)
{
    struct tarn_index_file f = file_of(kind, "btree", 0, name);
    f.has_global = true;
    f.global = (struct tarn_global_index){.field_id = field, .row_start = first, .row_end = last};
    return f;
}

#define ADD TARN_ENTRY_ADD
#define DELETE TARN_ENTRY_DELETE

/* What is live after `changes`, as the names with blanks between. */
static const char *combined(struct tarn_test *t, const struct tarn_index_file *previous,
                            size_t previous_count, const struct tarn_index_file *changes,
                            size_t change_count, bool bucketed)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf names = {0};
    struct tarn_index_file *out = NULL;
    size_t n = 0;
    expect_ok(tarn_index_combine(previous, previous_count, changes, change_count, bucketed,
                                 t->arena, &out, &n));
    for (size_t i = 0; i < n; i++) {
        expect_int(out[i].kind, ADD);
        tarn_buf_printf(&names, "%s%.*s", i == 0 ? "" : " ", TARN_SLICE_ARG(out[i].name));
    }
    return tarn_arena_str(t->arena, tarn_buf_slice(&names));
}

static struct tarn_status *conflict_of(struct tarn_test *t, const struct tarn_index_file *previous,
                                       size_t previous_count, const struct tarn_index_file *changes,
                                       size_t change_count, bool bucketed)
{
    struct tarn_index_file *out = NULL;
    size_t n = 0;
    return tarn_index_combine(previous, previous_count, changes, change_count, bucketed, t->arena,
                              &out, &n);
}

TARN_TEST(index_combine, a_bucket_has_one_file_of_a_type)
{
    struct tarn_index_file before[] = {hash(ADD, 0, "h0"), hash(ADD, 1, "h1"),
                                       vectors(t, ADD, 0, "v0", "a", NULL)};
    struct tarn_index_file replace[] = {hash(ADD, 1, "h1b")};
    struct tarn_index_file other[] = {hash(ADD, 2, "h2"), vectors(t, ADD, 0, "v0b", "a", "b")};
    struct tarn_index_file gone[] = {hash(DELETE, 0, "h0")};
    struct tarn_index_file both[] = {hash(ADD, 0, "h0b"), hash(DELETE, 0, "h0")};
    expect_str(combined(t, before, 3, NULL, 0, true), "h0 h1 v0");
    expect_str(combined(t, before, 3, replace, 1, true), "h0 v0 h1b");
    expect_str(combined(t, before, 3, other, 2, true), "h0 h1 h2 v0b");
    expect_str(combined(t, before, 3, gone, 1, true), "h1 v0");
    /* The DELETE comes first whatever the order, and asks for the bucket, not the name. */
    expect_str(combined(t, before, 3, both, 2, true), "h1 v0 h0b");
    struct tarn_index_file none[] = {hash(DELETE, 9, "h9")};
    expect_str(combined(t, before, 3, none, 1, true), "h0 h1 v0");
    /* HASH goes by bucket in any table. */
    expect_str(combined(t, before, 2, replace, 1, false), "h0 h1b");
}

TARN_TEST(index_combine, partitions_are_told_apart)
{
    struct tarn_index_file before[] = {hash(ADD, 0, "a"), hash(ADD, 0, "b")};
    before[1].partition = tarn_slice_str("other");
    struct tarn_index_file replace[] = {hash(ADD, 0, "c")};
    expect_str(combined(t, before, 2, replace, 1, true), "b c");
}

TARN_TEST(index_combine, one_commit_brings_one_file_for_a_bucket)
{
    struct tarn_index_file two[] = {hash(ADD, 0, "first"), hash(ADD, 0, "second")};
    expect_status(conflict_of(t, NULL, 0, two, 2, true), TARN_COMMIT_CONFLICT, "first");
}

TARN_TEST(index_combine, without_buckets_vectors_go_by_name)
{
    struct tarn_index_file before[] = {vectors(t, ADD, 0, "v1", "a", "b"),
                                       vectors(t, ADD, 0, "v2", "c", NULL)};
    struct tarn_index_file more[] = {vectors(t, ADD, 0, "v3", "d", NULL)};
    struct tarn_index_file rewrite[] = {vectors(t, ADD, 0, "v3", "a", "b"),
                                        vectors(t, DELETE, 0, "v1", "a", "b")};
    struct tarn_index_file same_name[] = {vectors(t, ADD, 0, "v2", "d", NULL)};
    struct tarn_index_file same_file[] = {vectors(t, ADD, 0, "v3", "d", "c")};
    struct tarn_index_file not_there[] = {vectors(t, DELETE, 0, "v9", "a", NULL)};
    struct tarn_index_file twice[] = {vectors(t, ADD, 0, "v3", "d", NULL),
                                      vectors(t, ADD, 0, "v4", "d", NULL)};
    expect_str(combined(t, before, 2, more, 1, false), "v1 v2 v3");
    expect_str(combined(t, before, 2, rewrite, 2, false), "v2 v3");
    expect_status(conflict_of(t, before, 2, same_name, 1, false), TARN_COMMIT_CONFLICT, "v2");
    expect_status(conflict_of(t, before, 2, same_file, 1, false), TARN_COMMIT_CONFLICT,
                  "data file c");
    expect_status(conflict_of(t, before, 2, not_there, 1, false), TARN_COMMIT_CONFLICT, "v9");
    expect_status(conflict_of(t, before, 2, twice, 2, false), TARN_COMMIT_CONFLICT, "data file d");
}

TARN_TEST(index_combine, global_indexes_go_by_name_and_rows)
{
    struct tarn_index_file before[] = {rows(ADD, "g1", 3, 0, 99), rows(ADD, "g2", 3, 100, 199)};
    struct tarn_index_file next[] = {rows(ADD, "g3", 3, 200, 299)};
    struct tarn_index_file other_field[] = {rows(ADD, "g3", 4, 0, 299)};
    struct tarn_index_file meets[] = {rows(ADD, "g3", 3, 199, 299)};
    struct tarn_index_file takes_place[] = {
        rows(ADD, "g3", 3, 50, 250), rows(DELETE, "g1", 3, 0, 99), rows(DELETE, "g2", 3, 100, 199)};
    struct tarn_index_file not_there[] = {rows(DELETE, "g9", 3, 0, 0)};
    struct tarn_index_file same_name[] = {rows(ADD, "g1", 3, 500, 599)};
    expect_str(combined(t, before, 2, next, 1, false), "g1 g2 g3");
    expect_str(combined(t, before, 2, other_field, 1, true), "g1 g2 g3");
    expect_str(combined(t, before, 2, takes_place, 3, false), "g3");
    expect_status(conflict_of(t, before, 2, meets, 1, false), TARN_COMMIT_CONFLICT,
                  "199 to 299: g2, which stays, has rows 100 to 199");
    expect_status(conflict_of(t, before, 2, not_there, 1, false), TARN_COMMIT_CONFLICT, "g9");
    expect_status(conflict_of(t, before, 2, same_name, 1, false), TARN_COMMIT_CONFLICT, "g1");
}

TARN_TEST(index_combine, sources_of_their_own_count_rows_of_their_own)
{
    struct tarn_index_file before = rows(ADD, "g1", 3, 0, 99), next = rows(ADD, "g2", 3, 0, 99);
    before.global.source_meta = next.global.source_meta = tarn_slice_str("from a file");
    expect_str(combined(t, &before, 1, &next, 1, true), "g1 g2");
    next.global.source_meta = tarn_slice_str("DEIX and a snapshot");
    expect_status(conflict_of(t, &before, 1, &next, 1, true), TARN_COMMIT_CONFLICT, "g2");
    static const int32_t extra[] = {4};
    next.global.source_meta = (struct tarn_slice){0};
    next.global.row_start = 500, next.global.row_end = 599;
    expect_str(combined(t, &before, 1, &next, 1, true), "g1 g2");
    next.global.has_extra_fields = true; /* other columns beside it: not the same index */
    next.global.extra_fields = extra, next.global.extra_field_count = 1;
    expect_status(conflict_of(t, &before, 1, &next, 1, true), TARN_COMMIT_CONFLICT, "g2");
}
