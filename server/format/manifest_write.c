#include "format/manifest.h"

#include "format/avro.h"

/* clang-format off */
/* The schema texts, letter by letter as Java writes them: its reader insists on exactly these six
 * fields at the top of a manifest. bytes: test/golden/manifest/. */
#define STATS(name)                                                                                \
    "{\"type\":\"record\",\"name\":\"" name "\",\"fields\":["                                      \
    "{\"name\":\"_MIN_VALUES\",\"type\":\"bytes\"},{\"name\":\"_MAX_VALUES\",\"type\":\"bytes\"}," \
    "{\"name\":\"_NULL_COUNTS\",\"type\":[\"null\",{\"type\":\"array\",\"items\":[\"null\","       \
    "\"long\"]}],\"default\":null}]}"
#define OPTIONAL(name, type) "{\"name\":\"" name "\",\"type\":[\"null\"," type "],\"default\":null}"
#define PLAIN(name, type) "{\"name\":\"" name "\",\"type\":" type "}"
#define TOP                                                                                        \
    "{\"type\":\"record\",\"name\":\"record\",\"namespace\":\"org.apache.paimon.avro.generated\"," \
    "\"fields\":["
#define STRINGS "{\"type\":\"array\",\"items\":\"string\"}"
#define LONGS "{\"type\":\"array\",\"items\":\"long\"}"
#define MILLIS "{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}"

static const char list_schema[] = TOP
    PLAIN("_VERSION", "\"int\"") "," PLAIN("_FILE_NAME", "\"string\"") ","
    PLAIN("_FILE_SIZE", "\"long\"") "," PLAIN("_NUM_ADDED_FILES", "\"long\"") ","
    PLAIN("_NUM_DELETED_FILES", "\"long\"") ","
    PLAIN("_PARTITION_STATS", STATS("record__PARTITION_STATS")) ","
    PLAIN("_SCHEMA_ID", "\"long\"") ","
    OPTIONAL("_MIN_BUCKET", "\"int\"") "," OPTIONAL("_MAX_BUCKET", "\"int\"") ","
    OPTIONAL("_MIN_LEVEL", "\"int\"") "," OPTIONAL("_MAX_LEVEL", "\"int\"") ","
    OPTIONAL("_MIN_ROW_ID", "\"long\"") "," OPTIONAL("_MAX_ROW_ID", "\"long\"") "]}";

static const char manifest_schema[] = TOP
    PLAIN("_VERSION", "\"int\"") "," PLAIN("_KIND", "\"int\"") ","
    PLAIN("_PARTITION", "\"bytes\"") "," PLAIN("_BUCKET", "\"int\"") ","
    PLAIN("_TOTAL_BUCKETS", "\"int\"") ","
    "{\"name\":\"_FILE\",\"type\":{\"type\":\"record\",\"name\":\"record__FILE\",\"fields\":["
    PLAIN("_FILE_NAME", "\"string\"") "," PLAIN("_FILE_SIZE", "\"long\"") ","
    PLAIN("_ROW_COUNT", "\"long\"") "," PLAIN("_MIN_KEY", "\"bytes\"") ","
    PLAIN("_MAX_KEY", "\"bytes\"") ","
    PLAIN("_KEY_STATS", STATS("record__FILE__KEY_STATS")) ","
    PLAIN("_VALUE_STATS", STATS("record__FILE__VALUE_STATS")) ","
    PLAIN("_MIN_SEQUENCE_NUMBER", "\"long\"") "," PLAIN("_MAX_SEQUENCE_NUMBER", "\"long\"") ","
    PLAIN("_SCHEMA_ID", "\"long\"") "," PLAIN("_LEVEL", "\"int\"") ","
    PLAIN("_EXTRA_FILES", STRINGS) "," OPTIONAL("_CREATION_TIME", MILLIS) ","
    OPTIONAL("_DELETE_ROW_COUNT", "\"long\"") "," OPTIONAL("_EMBEDDED_FILE_INDEX", "\"bytes\"") ","
    OPTIONAL("_FILE_SOURCE", "\"int\"") "," OPTIONAL("_VALUE_STATS_COLS", STRINGS) ","
    OPTIONAL("_EXTERNAL_PATH", "\"string\"") "," OPTIONAL("_FIRST_ROW_ID", "\"long\"") ","
    OPTIONAL("_WRITE_COLS", STRINGS) "," OPTIONAL("_WRITE_COLS_SEQUENCES", LONGS) "]}}]}";
/* clang-format on */

static void add_stats(struct tarn_buf *out, const struct tarn_stats *stats)
{
    struct tarn_slice empty = tarn_row_empty();
    tarn_avro_add_bytes(out, stats->min.data != NULL ? stats->min : empty);
    tarn_avro_add_bytes(out, stats->max.data != NULL ? stats->max : empty);
    tarn_avro_add_long(out, 1); /* never null: no columns are an empty array */
    if (stats->count > 0)
        tarn_avro_add_long(out, (int64_t)stats->count);
    for (size_t i = 0; i < stats->count; i++)
        tarn_avro_add_optional_long(out, stats->null_counts[i] != TARN_STATS_UNKNOWN,
                                    stats->null_counts[i]);
    tarn_avro_add_long(out, 0);
}

static void add_strings(struct tarn_buf *out, const struct tarn_slice *items, size_t count)
{
    if (count > 0)
        tarn_avro_add_long(out, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        tarn_avro_add_bytes(out, items[i]);
    tarn_avro_add_long(out, 0);
}

static void add_number(struct tarn_buf *out, int64_t value)
{
    tarn_avro_add_optional_long(out, value != TARN_FILE_NONE, value);
}

static void add_file(struct tarn_buf *out, const struct tarn_data_file *f)
{
    struct tarn_slice empty = tarn_row_empty();
    tarn_avro_add_bytes(out, f->name);
    tarn_avro_add_long(out, f->size);
    tarn_avro_add_long(out, f->row_count);
    tarn_avro_add_bytes(out, f->min_key.data != NULL ? f->min_key : empty);
    tarn_avro_add_bytes(out, f->max_key.data != NULL ? f->max_key : empty);
    add_stats(out, &f->key_stats);
    add_stats(out, &f->value_stats);
    tarn_avro_add_long(out, f->min_sequence);
    tarn_avro_add_long(out, f->max_sequence);
    tarn_avro_add_long(out, f->schema_id);
    tarn_avro_add_long(out, f->level);
    add_strings(out, f->extra_files, f->extra_file_count);
    add_number(out, f->creation_time_ms);
    add_number(out, f->delete_row_count);
    tarn_avro_add_optional_bytes(out, f->embedded_index);
    tarn_avro_add_optional_long(out, f->source != TARN_SOURCE_UNKNOWN, f->source);
    tarn_avro_add_long(out, f->has_value_stats_columns);
    if (f->has_value_stats_columns)
        add_strings(out, f->value_stats_columns, f->value_stats_column_count);
    tarn_avro_add_optional_bytes(out, f->external_path);
    add_number(out, f->first_row_id);
    tarn_avro_add_long(out, f->has_write_columns);
    if (f->has_write_columns)
        add_strings(out, f->write_columns, f->write_column_count);
    tarn_avro_add_long(out, f->has_write_column_sequences);
    if (!f->has_write_column_sequences)
        return;
    if (f->write_column_sequence_count > 0)
        tarn_avro_add_long(out, (int64_t)f->write_column_sequence_count);
    for (size_t i = 0; i < f->write_column_sequence_count; i++)
        tarn_avro_add_long(out, f->write_column_sequences[i]);
    tarn_avro_add_long(out, 0);
}

static struct tarn_status *add_entries(struct tarn_avro_writer *w,
                                       const struct tarn_manifest_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct tarn_manifest_entry *e = &entries[i];
        tarn_avro_add_long(&w->block, 2);
        tarn_avro_add_long(&w->block, e->kind);
        tarn_avro_add_bytes(&w->block, e->partition.data != NULL ? e->partition : tarn_row_empty());
        tarn_avro_add_long(&w->block, e->bucket);
        tarn_avro_add_long(&w->block, e->total_buckets);
        add_file(&w->block, &e->file);
        TARN_TRY(tarn_avro_end_record(w));
    }
    return TARN_OK;
}

struct tarn_status *tarn_manifest_encode(const struct tarn_manifest_entry *entries, size_t count,
                                         struct tarn_slice codec, int zstd_level,
                                         const uint8_t sync[16], struct tarn_buf *out)
{
    TARN_OWN(tarn_avro_writer_drop) struct tarn_avro_writer w = {0};
    TARN_TRY(tarn_avro_begin(&w, manifest_schema, codec, zstd_level, sync, out));
    TARN_TRY(add_entries(&w, entries, count));
    return tarn_avro_end(&w);
}

/* ---- as they come */

struct tarn_manifest_writer {
    struct tarn_avro_writer avro;
};

struct tarn_status *tarn_manifest_writer_new(struct tarn_slice codec, int zstd_level,
                                             const uint8_t sync[16], struct tarn_buf *out,
                                             struct tarn_manifest_writer **writer)
{
    struct tarn_manifest_writer *w = tarn_calloc(1, sizeof *w);
    struct tarn_status *s =
        tarn_avro_begin(&w->avro, manifest_schema, codec, zstd_level, sync, out);
    if (s != TARN_OK) {
        tarn_manifest_writer_free(w);
        return s;
    }
    *writer = w;
    return TARN_OK;
}

struct tarn_status *tarn_manifest_writer_add(struct tarn_manifest_writer *writer,
                                             const struct tarn_manifest_entry *entries,
                                             size_t count)
{
    return add_entries(&writer->avro, entries, count);
}

struct tarn_status *tarn_manifest_writer_end(struct tarn_manifest_writer *writer)
{
    return tarn_avro_end(&writer->avro);
}

void tarn_manifest_writer_free(struct tarn_manifest_writer *writer)
{
    if (writer == NULL)
        return;
    tarn_avro_writer_drop(&writer->avro);
    free(writer);
}

struct tarn_status *tarn_manifest_list_encode(const struct tarn_manifest_file *files, size_t count,
                                              struct tarn_slice codec, int zstd_level,
                                              const uint8_t sync[16], struct tarn_buf *out)
{
    TARN_OWN(tarn_avro_writer_drop) struct tarn_avro_writer w = {0};
    TARN_TRY(tarn_avro_begin(&w, list_schema, codec, zstd_level, sync, out));
    for (size_t i = 0; i < count; i++) {
        const struct tarn_manifest_file *f = &files[i];
        tarn_avro_add_long(&w.block, 2);
        tarn_avro_add_bytes(&w.block, f->name);
        tarn_avro_add_long(&w.block, f->size);
        tarn_avro_add_long(&w.block, f->added_count);
        tarn_avro_add_long(&w.block, f->deleted_count);
        add_stats(&w.block, &f->partition_stats);
        tarn_avro_add_long(&w.block, f->schema_id);
        add_number(&w.block, f->min_bucket);
        add_number(&w.block, f->max_bucket);
        add_number(&w.block, f->min_level);
        add_number(&w.block, f->max_level);
        add_number(&w.block, f->min_row_id);
        add_number(&w.block, f->max_row_id);
        TARN_TRY(tarn_avro_end_record(&w));
    }
    return tarn_avro_end(&w);
}
