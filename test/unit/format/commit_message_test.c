/*
 * Commit messages of four versions: we read what Java reads, field by field, and write the bytes that Java
 * wrote; other versions, bytes too few or too many, and names that leave the folder are refused by name.
 */
#include "test.h"

#include "format/commit_message.h"

static const char *const names[] = {"small", "empty", "full"};

static struct tarn_slice golden(struct tarn_test *t, const char *name, int version,
                                const char *ending)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(tarn_arena_printf(t->arena, "commit_message/%s.v%d%s", name, version, ending),
                     &bytes);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&bytes));
}

static struct tarn_commit_message decode(struct tarn_test *t, struct tarn_slice bytes, int version)
{
    struct tarn_commit_message m = {0};
    expect_ok(tarn_commit_message_decode(bytes, version, t->arena, &m));
    return m;
}

/* ---- the text that GoldenMetadata.java makes of a message */

static void add_hex(struct tarn_buf *out, struct tarn_slice s)
{
    for (size_t i = 0; i < s.size; i++)
        tarn_buf_printf(out, "%02x", s.data[i]);
}

static void add_optional_hex(struct tarn_buf *out, struct tarn_slice s)
{
    if (s.data == NULL)
        tarn_buf_add_str(out, "null");
    add_hex(out, s);
}

static void add_text(struct tarn_buf *out, struct tarn_slice s)
{
    tarn_buf_printf(out, "%.*s", s.data == NULL ? 4 : (int)s.size,
                    s.data == NULL ? "null" : (const char *)s.data);
}

static void add_long(struct tarn_buf *out, int64_t value, int64_t none)
{
    if (value == none)
        tarn_buf_add_str(out, "null");
    else
        tarn_buf_printf(out, "%" PRId64, value);
}

static void add_texts(struct tarn_buf *out, bool present, const struct tarn_slice *texts,
                      size_t count)
{
    tarn_buf_add_str(out, present ? "[" : "null");
    for (size_t i = 0; i < count; i++) {
        tarn_buf_add_str(out, i == 0 ? "" : ",");
        add_text(out, texts[i]);
    }
    tarn_buf_add_str(out, present ? "]" : "");
}

static void add_longs(struct tarn_buf *out, bool present, const int64_t *longs, size_t count,
                      int64_t none)
{
    tarn_buf_add_str(out, present ? "[" : "null");
    for (size_t i = 0; i < count; i++) {
        tarn_buf_add_str(out, i == 0 ? "" : ",");
        add_long(out, longs[i], none);
    }
    tarn_buf_add_str(out, present ? "]" : "");
}

static void add_stats(struct tarn_buf *out, const struct tarn_stats *s)
{
    tarn_buf_add_str(out, "(");
    add_hex(out, s->min);
    tarn_buf_add_str(out, ",");
    add_hex(out, s->max);
    tarn_buf_add_str(out, ",");
    add_longs(out, true, s->null_counts, s->count, TARN_STATS_UNKNOWN);
    tarn_buf_add_str(out, ")");
}

static void add_file(struct tarn_buf *out, const char *list, const struct tarn_data_file *f,
                     int version)
{
    tarn_buf_printf(out, "%s: _FILE_NAME=%.*s _FILE_SIZE=%" PRId64 " _ROW_COUNT=%" PRId64, list,
                    TARN_SLICE_ARG(f->name), f->size, f->row_count);
    tarn_buf_add_str(out, " _MIN_KEY=");
    add_hex(out, f->min_key);
    tarn_buf_add_str(out, " _MAX_KEY=");
    add_hex(out, f->max_key);
    tarn_buf_add_str(out, " _KEY_STATS=");
    add_stats(out, &f->key_stats);
    tarn_buf_add_str(out, " _VALUE_STATS=");
    add_stats(out, &f->value_stats);
    tarn_buf_printf(out,
                    " _MIN_SEQUENCE_NUMBER=%" PRId64 " _MAX_SEQUENCE_NUMBER=%" PRId64
                    " _SCHEMA_ID=%" PRId64 " _LEVEL=%" PRId32 " _EXTRA_FILES=",
                    f->min_sequence, f->max_sequence, f->schema_id, f->level);
    add_texts(out, true, f->extra_files, f->extra_file_count);
    tarn_buf_add_str(out, " _CREATION_TIME=");
    add_long(out, f->creation_time_ms, TARN_FILE_NONE);
    tarn_buf_add_str(out, " _DELETE_ROW_COUNT=");
    add_long(out, f->delete_row_count, TARN_FILE_NONE);
    tarn_buf_add_str(out, " _EMBEDDED_FILE_INDEX=");
    add_optional_hex(out, f->embedded_index);
    tarn_buf_add_str(out, " _FILE_SOURCE=");
    add_long(out, f->source, TARN_SOURCE_UNKNOWN);
    tarn_buf_add_str(out, " _VALUE_STATS_COLS=");
    add_texts(out, f->has_value_stats_columns, f->value_stats_columns, f->value_stats_column_count);
    tarn_buf_add_str(out, " _EXTERNAL_PATH=");
    add_text(out, f->external_path);
    tarn_buf_add_str(out, " _FIRST_ROW_ID=");
    add_long(out, f->first_row_id, TARN_FILE_NONE);
    tarn_buf_add_str(out, " _WRITE_COLS=");
    add_texts(out, f->has_write_columns, f->write_columns, f->write_column_count);
    if (version >= 13) {
        tarn_buf_add_str(out, " _WRITE_COLS_SEQUENCES=");
        add_longs(out, f->has_write_column_sequences, f->write_column_sequences,
                  f->write_column_sequence_count, TARN_FILE_NONE);
    }
    tarn_buf_add_str(out, "\n");
}

static void add_vectors(struct tarn_buf *out, const struct tarn_index_file *f)
{
    tarn_buf_add_str(out, f->has_vectors ? "[" : "null");
    for (size_t i = 0; i < f->vector_count; i++) {
        const struct tarn_vector_range *v = &f->vectors[i];
        tarn_buf_printf(out, "%s(%.*s,%" PRId32 ",%" PRId32 ",", i == 0 ? "" : ",",
                        TARN_SLICE_ARG(v->data_file), v->offset, v->length);
        add_long(out, v->cardinality, TARN_FILE_NONE);
        tarn_buf_add_str(out, ")");
    }
    tarn_buf_add_str(out, f->has_vectors ? "]" : "");
}

static void add_global(struct tarn_buf *out, const struct tarn_index_file *f, int version)
{
    const struct tarn_global_index *g = &f->global;
    if (!f->has_global) {
        tarn_buf_add_str(out, "null");
        return;
    }
    tarn_buf_printf(out, "(%" PRId64 ",%" PRId64 ",%" PRId32 ",%s", g->row_start, g->row_end,
                    g->field_id, g->has_extra_fields ? "[" : "null");
    for (size_t i = 0; i < g->extra_field_count; i++)
        tarn_buf_printf(out, "%s%" PRId32, i == 0 ? "" : ",", g->extra_fields[i]);
    tarn_buf_add_str(out, g->has_extra_fields ? "]," : ",");
    add_optional_hex(out, g->meta);
    if (version >= 12) {
        tarn_buf_add_str(out, ",");
        add_optional_hex(out, g->source_meta);
    }
    tarn_buf_add_str(out, ")");
}

static void add_index(struct tarn_buf *out, const char *list, const struct tarn_index_file *f,
                      int version)
{
    tarn_buf_printf(out,
                    "%s: _INDEX_TYPE=%.*s _FILE_NAME=%.*s _FILE_SIZE=%" PRId64
                    " _ROW_COUNT=%" PRId64 " _DELETIONS_VECTORS_RANGES=",
                    list, TARN_SLICE_ARG(f->type), TARN_SLICE_ARG(f->name), f->size, f->row_count);
    add_vectors(out, f);
    tarn_buf_add_str(out, " _EXTERNAL_PATH=");
    add_text(out, f->external_path);
    if (version >= 11) {
        tarn_buf_add_str(out, " _GLOBAL_INDEX=");
        add_global(out, f, version);
    }
    tarn_buf_add_str(out, "\n");
}

static void add_files(struct tarn_buf *out, const char *list, const struct tarn_commit_files *files,
                      int version)
{
    for (size_t i = 0; i < files->count; i++)
        add_file(out, list, &files->files[i], version);
}

static void add_indexes(struct tarn_buf *out, const char *list,
                        const struct tarn_commit_indexes *files, int version)
{
    for (size_t i = 0; i < files->count; i++)
        add_index(out, list, &files->files[i], version);
}

static void print(const struct tarn_commit_message *m, int version, struct tarn_buf *out)
{
    tarn_buf_add_str(out, "partition=");
    add_hex(out, m->partition);
    tarn_buf_printf(out, " bucket=%" PRId32 " total=", m->bucket);
    add_long(out, m->has_total_buckets ? m->total_buckets : INT64_MIN, INT64_MIN);
    tarn_buf_add_str(out, "\n");
    add_files(out, "new", &m->new_files, version);
    add_files(out, "deleted", &m->deleted_files, version);
    add_files(out, "changelog", &m->changelog_files, version);
    add_indexes(out, "new index", &m->new_indexes, version);
    add_indexes(out, "deleted index", &m->deleted_indexes, version);
    add_files(out, "compact new", &m->compact_before, version);
    add_files(out, "compact deleted", &m->compact_after, version);
    add_files(out, "compact changelog", &m->compact_changelog, version);
    add_indexes(out, "compact new index", &m->compact_new_indexes, version);
    add_indexes(out, "compact deleted index", &m->compact_deleted_indexes, version);
}

TARN_TEST(commit_message, reads_what_java_reads)
{
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        for (int version = 10; version <= 13; version++) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
            struct tarn_commit_message m = decode(t, golden(t, names[i], version, ""), version);
            print(&m, version, &text);
            expect_bytes(tarn_buf_slice(&text), golden(t, names[i], version, ".txt"));
        }
    }
}

TARN_TEST(commit_message, writes_what_java_writes)
{
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        for (int version = 10; version <= 13; version++) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
            struct tarn_slice theirs = golden(t, names[i], version, "");
            struct tarn_commit_message m = decode(t, theirs, version);
            expect_ok(tarn_commit_message_encode(&m, version, &bytes));
            expect_bytes(tarn_buf_slice(&bytes), theirs);
        }
    }
}

TARN_TEST(commit_message, index_files_know_what_they_are_of)
{
    struct tarn_commit_message m = decode(t, golden(t, "full", 12, ""), 12);
    expect_int(m.new_indexes.count, 2);
    expect_int(m.new_indexes.files[1].kind, TARN_ENTRY_ADD);
    expect_int(m.new_indexes.files[1].bucket, 12345);
    expect_bytes(m.new_indexes.files[1].partition, m.partition);
    expect_int(m.compact_deleted_indexes.files[0].kind, TARN_ENTRY_DELETE);
}

TARN_TEST(commit_message, absent_and_empty_differ)
{
    struct tarn_commit_message m = decode(t, golden(t, "full", 13, ""), 13);
    const struct tarn_data_file *f = m.new_files.files;
    expect_true(f[1].embedded_index.data != NULL);
    expect_int(f[1].embedded_index.size, 0);
    expect_null(f[2].embedded_index.data);
    expect_true(f[1].has_value_stats_columns);
    expect_int(f[1].value_stats_column_count, 0);
    expect_false(f[2].has_value_stats_columns);
    expect_int(f[2].source, TARN_SOURCE_UNKNOWN);
    expect_int(f[2].write_column_sequence_count, 2);
    expect_int(f[2].write_column_sequences[1], -1);
}

TARN_TEST(commit_message, other_versions_are_refused_with_those_known)
{
    static const int versions[] = {-1, 0, 9, 15, INT32_MAX};
    struct tarn_commit_message m;
    for (size_t i = 0; i < TARN_COUNT_OF(versions); i++)
        expect_status(
            tarn_commit_message_decode(golden(t, "small", 12, ""), versions[i], t->arena, &m),
            TARN_COMMIT_MESSAGE_INVALID, "10 to 14");
}

/* A version that isn't the bytes' own shows in nearly all messages. */
TARN_TEST(commit_message, the_wrong_version_shows)
{
    struct tarn_commit_message m;
    expect_status(tarn_commit_message_decode(golden(t, "full", 11, ""), 10, t->arena, &m),
                  TARN_COMMIT_MESSAGE_INVALID, "");
    expect_status(tarn_commit_message_decode(golden(t, "full", 10, ""), 13, t->arena, &m),
                  TARN_COMMIT_MESSAGE_INVALID, "");
}

/* Made by pypaimon 2.1.0: two files of a partitioned table with a key, each as its writer prepared it. */
TARN_TEST(commit_message, version_14_ends_with_a_snapshot_to_check_from)
{
    static const char *const made[] = {"py_plain", "py_check"};
    for (size_t i = 0; i < TARN_COUNT_OF(made); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        struct tarn_slice theirs = golden(t, made[i], 14, "");
        struct tarn_commit_message m = decode(t, theirs, 14), less;
        expect_int(m.has_check_snapshot, i == 1);
        expect_int(m.check_snapshot, i == 1 ? 5000000007 : 0);
        expect_int(m.bucket, 0);
        expect_int(m.new_files.count, 1);
        expect_int(m.new_files.files[0].row_count, 3);
        expect_int(m.new_files.files[0].source, TARN_SOURCE_APPEND);
        expect_ok(tarn_commit_message_encode(&m, 14, &bytes));
        expect_ok(tarn_commit_message_decode(tarn_buf_slice(&bytes), 14, t->arena, &less));
        expect_int(less.check_snapshot, m.check_snapshot);
        expect_slice(less.new_files.files[0].name,
                     tarn_arena_str(t->arena, m.new_files.files[0].name));
        expect_status(tarn_commit_message_decode(theirs, 13, t->arena, &m),
                      TARN_COMMIT_MESSAGE_INVALID, i == 1 ? "9 bytes follow" : "1 bytes follow");
        for (size_t size = 0; size < theirs.size; size++)
            expect_status(
                tarn_commit_message_decode(tarn_slice_of(theirs.data, size), 14, t->arena, &m),
                TARN_COMMIT_MESSAGE_INVALID, "damaged");
    }
}

TARN_TEST(commit_message, every_end_is_too_early)
{
    struct tarn_slice whole = golden(t, "full", 13, "");
    struct tarn_commit_message m;
    for (size_t size = 0; size < whole.size; size++)
        expect_status(tarn_commit_message_decode(tarn_slice_of(whole.data, size), 13, t->arena, &m),
                      TARN_COMMIT_MESSAGE_INVALID, "damaged");
    TARN_OWN(tarn_buf_drop) struct tarn_buf more = {0};
    tarn_buf_add_slice(&more, whole);
    tarn_buf_add_byte(&more, 0);
    expect_status(tarn_commit_message_decode(tarn_buf_slice(&more), 13, t->arena, &m),
                  TARN_COMMIT_MESSAGE_INVALID, "1 bytes follow");
}

TARN_TEST(commit_message, names_are_held_against_the_folder)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_commit_message m = decode(t, golden(t, "small", 12, ""), 12), got;
    m.new_files.files[0].name = tarn_slice_str("../data-1.parquet");
    expect_ok(tarn_commit_message_encode(&m, 12, &bytes));
    expect_status(tarn_commit_message_decode(tarn_buf_slice(&bytes), 12, t->arena, &got),
                  TARN_COMMIT_MESSAGE_INVALID, "new files, element 0, _FILE_NAME");
    m.new_files.files[0].unknown = true;
    expect_status(tarn_commit_message_encode(&m, 12, &bytes), TARN_COMMIT_MESSAGE_INVALID,
                  "../data-1.parquet");
}
