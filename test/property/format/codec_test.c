/*
 * Round trips: whatever a schema, snapshot, manifest, list or packed entry can hold comes back as it was;
 * and a file with any byte changed is read or refused, never believed beyond its bounds.
 */
#include "test.h"

#include "format/manifest.h"
#include "format/schema.h"
#include "format/snapshot.h"

static const uint8_t sync_mark[16] = "0123456789abcdef";

static struct tarn_slice any_text(struct tarn_test *t)
{
    static const char *const texts[] = {"",          "a",    "straße", "\xf0\x9f\x98\x80",
                                        "quote\"\\", "x\ny", "0"};
    return tarn_slice_str(texts[tarn_test_random_below(t, TARN_COUNT_OF(texts))]);
}

static struct tarn_slice any_name(struct tarn_test *t)
{
    return tarn_slice_str(tarn_arena_printf(t->arena, "data-%llx-%d.parquet",
                                            (unsigned long long)tarn_test_random(t),
                                            (int)tarn_test_random_below(t, 9)));
}

static struct tarn_slice any_bytes(struct tarn_test *t)
{
    return tarn_test_random_bytes(t, tarn_test_random_below(t, 30));
}

static int64_t any_number(struct tarn_test *t)
{
    switch (tarn_test_random_below(t, 4)) {
    case 0:
        return INT64_MAX;
    case 1:
        return 0;
    default:
        return (int64_t)(tarn_test_random(t) >> (1 + tarn_test_random_below(t, 62)));
    }
}

static int64_t any_optional(struct tarn_test *t)
{
    return tarn_test_random_one_in(t, 3) ? TARN_FILE_NONE : any_number(t);
}

static struct tarn_slice absent_or(struct tarn_test *t, struct tarn_slice s)
{
    return tarn_test_random_one_in(t, 2) ? (struct tarn_slice){0} : s;
}

static const struct tarn_slice *any_names(struct tarn_test *t, size_t *count)
{
    *count = tarn_test_random_below(t, 4);
    struct tarn_slice *names = tarn_arena_calloc(t->arena, 4, sizeof *names);
    for (size_t i = 0; i < *count; i++)
        names[i] = any_name(t);
    return names;
}

static const int64_t *any_longs(struct tarn_test *t, size_t *count)
{
    *count = tarn_test_random_below(t, 5);
    int64_t *longs = tarn_arena_calloc(t->arena, 5, sizeof *longs);
    for (size_t i = 0; i < *count; i++)
        longs[i] = tarn_test_random_one_in(t, 3) ? TARN_STATS_UNKNOWN : any_number(t);
    return longs;
}

static struct tarn_stats any_stats(struct tarn_test *t)
{
    struct tarn_stats s = {.min = any_bytes(t), .max = any_bytes(t)};
    s.null_counts = any_longs(t, &s.count);
    return s;
}

static struct tarn_manifest_entry any_entry(struct tarn_test *t)
{
    struct tarn_manifest_entry e = {.kind = tarn_test_random_below(t, 2),
                                    .partition = any_bytes(t),
                                    .bucket = (int32_t)tarn_test_random_between(t, -2, 1000),
                                    .total_buckets =
                                        (int32_t)tarn_test_random_between(t, INT32_MIN, INT32_MAX)};
    struct tarn_data_file *f = &e.file;
    f->name = any_name(t);
    f->size = any_number(t);
    f->row_count = any_number(t);
    f->min_key = any_bytes(t);
    f->max_key = any_bytes(t);
    f->key_stats = any_stats(t);
    f->value_stats = any_stats(t);
    f->min_sequence = any_number(t);
    f->max_sequence = any_number(t);
    f->schema_id = any_number(t);
    f->level = (int32_t)tarn_test_random_below(t, INT32_MAX);
    f->extra_files = any_names(t, &f->extra_file_count);
    f->creation_time_ms = any_optional(t);
    f->delete_row_count = any_optional(t);
    f->embedded_index = absent_or(t, any_bytes(t));
    f->source = (enum tarn_file_source)tarn_test_random_between(t, -1, 1);
    f->has_value_stats_columns = tarn_test_random_one_in(t, 2);
    if (f->has_value_stats_columns)
        f->value_stats_columns = any_names(t, &f->value_stats_column_count);
    f->external_path = absent_or(t, any_text(t));
    f->first_row_id = any_optional(t);
    f->has_write_columns = tarn_test_random_one_in(t, 2);
    if (f->has_write_columns)
        f->write_columns = any_names(t, &f->write_column_count);
    f->has_write_column_sequences = tarn_test_random_one_in(t, 2);
    if (f->has_write_column_sequences)
        f->write_column_sequences = any_longs(t, &f->write_column_sequence_count);
    return e;
}

static void expect_names(const struct tarn_slice *got, size_t got_count,
                         const struct tarn_slice *want, size_t want_count)
{
    expect_int(got_count, want_count);
    for (size_t i = 0; i < want_count; i++)
        expect_bytes(got[i], want[i]);
}

static void expect_optional(struct tarn_slice got, struct tarn_slice want)
{
    expect_int(got.data == NULL, want.data == NULL);
    expect_bytes(got, want);
}

static void expect_stats(const struct tarn_stats *got, const struct tarn_stats *want)
{
    expect_bytes(got->min, want->min);
    expect_bytes(got->max, want->max);
    expect_int(got->count, want->count);
    for (size_t i = 0; i < want->count; i++)
        expect_int(got->null_counts[i], want->null_counts[i]);
}

static void expect_entry(const struct tarn_manifest_entry *a, const struct tarn_manifest_entry *b)
{
    const struct tarn_data_file *f = &a->file, *g = &b->file;
    expect_int(a->kind, b->kind);
    expect_bytes(a->partition, b->partition);
    expect_int(a->bucket, b->bucket);
    expect_int(a->total_buckets, b->total_buckets);
    expect_bytes(f->name, g->name);
    expect_int(f->size, g->size);
    expect_int(f->row_count, g->row_count);
    expect_bytes(f->min_key, g->min_key);
    expect_bytes(f->max_key, g->max_key);
    expect_stats(&f->key_stats, &g->key_stats);
    expect_stats(&f->value_stats, &g->value_stats);
    expect_int(f->min_sequence, g->min_sequence);
    expect_int(f->max_sequence, g->max_sequence);
    expect_int(f->schema_id, g->schema_id);
    expect_int(f->level, g->level);
    expect_names(f->extra_files, f->extra_file_count, g->extra_files, g->extra_file_count);
    expect_int(f->creation_time_ms, g->creation_time_ms);
    expect_int(f->delete_row_count, g->delete_row_count);
    expect_optional(f->embedded_index, g->embedded_index);
    expect_int(f->source, g->source);
    expect_int(f->has_value_stats_columns, g->has_value_stats_columns);
    expect_names(f->value_stats_columns, f->value_stats_column_count, g->value_stats_columns,
                 g->value_stats_column_count);
    expect_optional(f->external_path, g->external_path);
    expect_int(f->first_row_id, g->first_row_id);
    expect_int(f->has_write_columns, g->has_write_columns);
    expect_names(f->write_columns, f->write_column_count, g->write_columns, g->write_column_count);
    expect_int(f->has_write_column_sequences, g->has_write_column_sequences);
    expect_int(f->write_column_sequence_count, g->write_column_sequence_count);
    for (size_t i = 0; i < g->write_column_sequence_count; i++)
        expect_int(f->write_column_sequences[i], g->write_column_sequences[i]);
    expect_false(f->unknown);
}

static struct tarn_slice any_codec(struct tarn_test *t)
{
    static const char *const codecs[] = {"zstd", "none", "deflate", "snappy"};
    return tarn_slice_str(codecs[tarn_test_random_below(t, 4)]);
}

TARN_TEST(codec, manifests_come_back)
{
    for (int round = 0; round < tarn_test_rounds(60); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        size_t count = tarn_test_random_below(t, 1 << tarn_test_random_below(t, 10)), got_count = 0;
        struct tarn_manifest_entry *want = tarn_arena_calloc(t->arena, count, sizeof *want), *got;
        for (size_t i = 0; i < count; i++)
            want[i] = any_entry(t);
        expect_ok(tarn_manifest_encode(want, count, any_codec(t), 1, sync_mark, &bytes));
        expect_ok(tarn_manifest_decode(tarn_buf_slice(&bytes), t->arena, &got, &got_count));
        expect_int(got_count, count);
        for (size_t i = 0; i < count; i++)
            expect_entry(&got[i], &want[i]);
    }
}

static struct tarn_index_file any_index(struct tarn_test *t)
{
    struct tarn_index_file f = {.partition = any_bytes(t),
                                .bucket = (int32_t)tarn_test_random_between(t, -2, 1000),
                                .type = any_text(t),
                                .name = any_name(t),
                                .size = any_number(t),
                                .row_count = any_number(t),
                                .has_vectors = tarn_test_random_one_in(t, 2),
                                .external_path = absent_or(t, any_text(t)),
                                .has_global = tarn_test_random_one_in(t, 2)};
    struct tarn_vector_range *v = tarn_arena_calloc(t->arena, 5, sizeof *v);
    f.vectors = v;
    f.vector_count = f.has_vectors ? tarn_test_random_below(t, 5) : 0;
    for (size_t i = 0; i < f.vector_count; i++)
        v[i] = (struct tarn_vector_range){
            any_name(t), (int32_t)tarn_test_random_below(t, INT32_MAX),
            (int32_t)tarn_test_random_below(t, INT32_MAX), any_optional(t)};
    if (!f.has_global)
        return f;
    int32_t *ids = tarn_arena_calloc(t->arena, 4, sizeof *ids);
    f.global = (struct tarn_global_index){.row_start = any_number(t),
                                          .row_end = any_number(t),
                                          .field_id = (int32_t)any_number(t),
                                          .has_extra_fields = tarn_test_random_one_in(t, 2),
                                          .extra_fields = ids,
                                          .meta = absent_or(t, any_bytes(t)),
                                          .source_meta = absent_or(t, any_bytes(t))};
    f.global.extra_field_count = f.global.has_extra_fields ? tarn_test_random_below(t, 4) : 0;
    for (size_t i = 0; i < 4; i++)
        ids[i] = (int32_t)any_number(t);
    return f;
}

static void expect_index(const struct tarn_index_file *got, const struct tarn_index_file *want)
{
    const struct tarn_global_index *g = &got->global, *h = &want->global;
    expect_int(got->kind, TARN_ENTRY_ADD);
    expect_bytes(got->partition, want->partition);
    expect_int(got->bucket, want->bucket);
    expect_bytes(got->type, want->type);
    expect_bytes(got->name, want->name);
    expect_int(got->size, want->size);
    expect_int(got->row_count, want->row_count);
    expect_optional(got->external_path, want->external_path);
    expect_int(got->has_vectors, want->has_vectors);
    expect_int(got->vector_count, want->vector_count);
    for (size_t i = 0; i < want->vector_count; i++) {
        expect_bytes(got->vectors[i].data_file, want->vectors[i].data_file);
        expect_int(got->vectors[i].offset, want->vectors[i].offset);
        expect_int(got->vectors[i].length, want->vectors[i].length);
        expect_int(got->vectors[i].cardinality, want->vectors[i].cardinality);
    }
    expect_int(got->has_global, want->has_global);
    expect_int(g->row_start, h->row_start);
    expect_int(g->row_end, h->row_end);
    expect_int(g->field_id, h->field_id);
    expect_int(g->has_extra_fields, h->has_extra_fields);
    expect_int(g->extra_field_count, h->extra_field_count);
    for (size_t i = 0; i < h->extra_field_count; i++)
        expect_int(g->extra_fields[i], h->extra_fields[i]);
    expect_optional(g->meta, h->meta);
    expect_optional(g->source_meta, h->source_meta);
    expect_false(got->unknown);
}

TARN_TEST(codec, index_manifests_come_back)
{
    for (int round = 0; round < tarn_test_rounds(60); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        size_t count = tarn_test_random_below(t, 1 << tarn_test_random_below(t, 10)), got_count = 0;
        struct tarn_index_file *want = tarn_arena_calloc(t->arena, count, sizeof *want), *got;
        for (size_t i = 0; i < count; i++)
            want[i] = any_index(t);
        expect_ok(tarn_index_manifest_encode(want, count, any_codec(t), 1, sync_mark, &bytes));
        expect_ok(tarn_index_manifest_decode(tarn_buf_slice(&bytes), t->arena, &got, &got_count));
        expect_int(got_count, count);
        for (size_t i = 0; i < count; i++)
            expect_index(&got[i], &want[i]);
    }
}

TARN_TEST(codec, packed_entries_come_back)
{
    for (int round = 0; round < tarn_test_rounds(500); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        struct tarn_manifest_entry want = any_entry(t), got;
        tarn_manifest_entry_pack(&want, true, &bytes);
        expect_ok(tarn_manifest_entry_unpack(tarn_buf_slice(&bytes), t->arena, &got));
        expect_entry(&got, &want);
    }
}

TARN_TEST(codec, lists_come_back)
{
    for (int round = 0; round < tarn_test_rounds(100); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        struct tarn_manifest_file want = {.name = any_name(t),
                                          .size = any_number(t),
                                          .added_count = any_number(t),
                                          .deleted_count = any_number(t),
                                          .partition_stats = any_stats(t),
                                          .schema_id = any_number(t),
                                          .min_bucket = tarn_test_random_between(t, -2, 99),
                                          .max_bucket = TARN_FILE_NONE,
                                          .min_level = 0,
                                          .max_level = INT32_MAX,
                                          .min_row_id = any_optional(t),
                                          .max_row_id = any_optional(t)},
                                  *got;
        size_t count = 0;
        expect_ok(tarn_manifest_list_encode(&want, 1, any_codec(t), 1, sync_mark, &bytes));
        expect_ok(tarn_manifest_list_decode(tarn_buf_slice(&bytes), t->arena, &got, &count));
        expect_int(count, 1);
        expect_bytes(got->name, want.name);
        expect_int(got->size, want.size);
        expect_int(got->added_count, want.added_count);
        expect_int(got->deleted_count, want.deleted_count);
        expect_stats(&got->partition_stats, &want.partition_stats);
        expect_int(got->schema_id, want.schema_id);
        expect_int(got->min_bucket, want.min_bucket);
        expect_int(got->max_bucket, want.max_bucket);
        expect_int(got->max_level, want.max_level);
        expect_int(got->min_row_id, want.min_row_id);
        expect_int(got->max_row_id, want.max_row_id);
    }
}

TARN_TEST(codec, snapshots_come_back)
{
    for (int round = 0; round < tarn_test_rounds(200); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
        struct tarn_pair property = {any_text(t), any_text(t)};
        struct tarn_snapshot want = {.version = 3,
                                     .uuid = absent_or(t, any_text(t)),
                                     .id = 1 + any_number(t) / 2,
                                     .schema_id = any_number(t),
                                     .base_list = any_name(t),
                                     .base_list_size = any_optional(t),
                                     .delta_list = any_name(t),
                                     .delta_list_size = any_number(t),
                                     .changelog_list = absent_or(t, any_name(t)),
                                     .changelog_list_size = any_optional(t),
                                     .index_manifest = absent_or(t, any_name(t)),
                                     .commit_user = any_text(t),
                                     .writer_version = absent_or(t, any_text(t)),
                                     .commit_identifier = -any_number(t),
                                     .kind = tarn_test_random_below(t, 4),
                                     .time_ms = -any_number(t),
                                     .total_record_count = any_number(t),
                                     .delta_record_count = -any_number(t),
                                     .changelog_record_count = any_optional(t),
                                     .watermark = any_optional(t),
                                     .statistics = absent_or(t, any_name(t)),
                                     .properties = &property,
                                     .property_count = tarn_test_random_below(t, 2),
                                     .next_row_id = any_optional(t),
                                     .operation = absent_or(t, any_text(t))},
                             got;
        tarn_snapshot_encode(&want, &json);
        expect_ok(tarn_snapshot_decode(tarn_buf_slice(&json), t->arena, &got));
        expect_optional(got.uuid, want.uuid);
        expect_int(got.id, want.id);
        expect_int(got.base_list_size, want.base_list_size);
        expect_bytes(got.delta_list, want.delta_list);
        expect_optional(got.changelog_list, want.changelog_list);
        expect_optional(got.index_manifest, want.index_manifest);
        expect_bytes(got.commit_user, want.commit_user);
        expect_optional(got.writer_version, want.writer_version);
        expect_int(got.commit_identifier, want.commit_identifier);
        expect_int(got.kind, want.kind);
        expect_int(got.time_ms, want.time_ms);
        expect_int(got.delta_record_count, want.delta_record_count);
        expect_int(got.changelog_record_count, want.changelog_record_count);
        expect_int(got.watermark, want.watermark);
        expect_optional(got.statistics, want.statistics);
        expect_int(got.property_count, want.property_count);
        if (want.property_count == 1)
            expect_bytes(got.properties[0].value, property.value);
        expect_int(got.next_row_id, want.next_row_id);
        expect_optional(got.operation, want.operation);
    }
}

/* A type of any kind, as SQL. */
static void any_type(struct tarn_test *t, int depth, struct tarn_buf *out)
{
    static const char *const atoms[] = {"INT",
                                        "STRING NOT NULL",
                                        "DECIMAL(38, 10)",
                                        "CHAR(7)",
                                        "BYTES",
                                        "TIMESTAMP(9)",
                                        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
                                        "GEOGRAPHY(OGC:CRS84, spherical)",
                                        "VARIANT",
                                        "TIME(3)"};
    uint64_t kind = depth > 4 ? 9 : tarn_test_random_below(t, 8);
    if (kind == 0 || kind == 1) {
        tarn_buf_add_str(out, kind == 0 ? "ARRAY<" : "MULTISET<");
        any_type(t, depth + 1, out);
    } else if (kind == 2) {
        tarn_buf_add_str(out, "MAP<STRING, ");
        any_type(t, depth + 1, out);
    } else if (kind == 3) {
        tarn_buf_add_str(out, "ROW<`a ``b` INT COMMENT 'it''s', c ");
        any_type(t, depth + 1, out);
    }
    tarn_buf_add_str(out, kind <= 3 ? ">" : atoms[tarn_test_random_below(t, TARN_COUNT_OF(atoms))]);
    if (kind <= 3 && tarn_test_random_one_in(t, 2))
        tarn_buf_add_str(out, " NOT NULL");
}

TARN_TEST(codec, schemas_come_back)
{
    for (int round = 0; round < tarn_test_rounds(200); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf columns = {0}, first = {0}, second = {0};
        struct tarn_schema draft = {.comment = absent_or(t, any_text(t))}, made, back;
        struct tarn_pair option = {tarn_slice_str("owner"), any_text(t)};
        size_t count = 1 + tarn_test_random_below(t, 6);
        for (size_t i = 0; i < count; i++) {
            tarn_buf_printf(&columns, "%s`c%zu` ", i == 0 ? "" : ", ", i);
            any_type(t, 0, &columns);
        }
        draft.options = &option;
        draft.option_count = 1;
        expect_ok(tarn_columns_parse(tarn_buf_slice(&columns), t->arena, &draft.fields,
                                     &draft.field_count));
        expect_ok(tarn_schema_create(&draft, any_number(t), t->arena, &made));
        tarn_schema_encode(&made, &first);
        expect_ok(tarn_schema_decode(tarn_buf_slice(&first), t->arena, &back));
        expect_int(back.field_count, count);
        expect_int(back.highest_field_id, made.highest_field_id);
        for (size_t i = 0; i < count; i++)
            expect_true(tarn_type_equal(back.fields[i].type, made.fields[i].type, false));
        expect_optional(back.comment, draft.comment);
        tarn_schema_encode(&back, &second);
        expect_bytes(tarn_buf_slice(&second), tarn_buf_slice(&first));
    }
}

TARN_TEST(codec, damage_is_survived)
{
    static const char *const names[] = {"manifest/append_all.manifest",
                                        "manifest/append_partitioned.list",
                                        "manifest/pk_dynamic.index"};
    for (int round = 0; round < tarn_test_rounds(2000); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        struct tarn_manifest_entry *entries;
        struct tarn_manifest_file *files;
        struct tarn_index_file *indexes;
        size_t count;
        int which = (int)tarn_test_random_below(t, 3);
        tarn_test_golden(names[which], &bytes);
        for (uint64_t i = tarn_test_random_below(t, 4); i <= 4; i++)
            bytes.data[tarn_test_random_below(t, bytes.size)] = (uint8_t)tarn_test_random(t);
        struct tarn_slice in = tarn_buf_slice(&bytes);
        struct tarn_status *s = which == 0 ? tarn_manifest_decode(in, t->arena, &entries, &count)
                                : which == 1
                                    ? tarn_manifest_list_decode(in, t->arena, &files, &count)
                                    : tarn_index_manifest_decode(in, t->arena, &indexes, &count);
        if (s != NULL && tarn_status_reason(s) != TARN_AVRO_MALFORMED)
            expect_int(tarn_status_reason(s), TARN_MANIFEST_MALFORMED);
        tarn_status_free(s);
    }
}
