/* Commit messages written: each file as the BinaryRow of its fields, by the encoder of rows. */
#include "format/commit_message_internal.h"

const char *const tarn_commit_message__file_fields[TARN_CM_FILE_FIELDS] = {"_FILE_NAME",
                                                                           "_FILE_SIZE",
                                                                           "_ROW_COUNT",
                                                                           "_MIN_KEY",
                                                                           "_MAX_KEY",
                                                                           "_KEY_STATS",
                                                                           "_VALUE_STATS",
                                                                           "_MIN_SEQUENCE_NUMBER",
                                                                           "_MAX_SEQUENCE_NUMBER",
                                                                           "_SCHEMA_ID",
                                                                           "_LEVEL",
                                                                           "_EXTRA_FILES",
                                                                           "_CREATION_TIME",
                                                                           "_DELETE_ROW_COUNT",
                                                                           "_EMBEDDED_FILE_INDEX",
                                                                           "_FILE_SOURCE",
                                                                           "_VALUE_STATS_COLS",
                                                                           "_EXTERNAL_PATH",
                                                                           "_FIRST_ROW_ID",
                                                                           "_WRITE_COLS",
                                                                           "_WRITE_COLS_SEQUENCES"};
const char *const tarn_commit_message__index_fields[TARN_CM_INDEX_FIELDS] = {
    "_INDEX_TYPE",    "_FILE_NAME",   "_FILE_SIZE", "_ROW_COUNT", "_DELETIONS_VECTORS_RANGES",
    "_EXTERNAL_PATH", "_GLOBAL_INDEX"};

/* ---- the types of the rows */

#define NULLABLE(type_id, ...)                                                                     \
    {                                                                                              \
        .id = TARN_TYPE_##type_id, .nullable = true, ##__VA_ARGS__                                 \
    }
static const struct tarn_type text = NULLABLE(VARCHAR, .length = TARN_TYPE_LENGTH_MAX);
static const struct tarn_type bytes = NULLABLE(VARBINARY, .length = TARN_TYPE_LENGTH_MAX);
static const struct tarn_type number64 = NULLABLE(BIGINT);
static const struct tarn_type number32 = NULLABLE(INT);
static const struct tarn_type number8 = NULLABLE(TINYINT);
static const struct tarn_type millis = NULLABLE(TIMESTAMP, .precision = 3);
static const struct tarn_type texts = NULLABLE(ARRAY, .element = &text);
static const struct tarn_type numbers64 = NULLABLE(ARRAY, .element = &number64);
static const struct tarn_type numbers32 = NULLABLE(ARRAY, .element = &number32);

static const struct tarn_field stats_fields[] = {
    {.type = &bytes}, {.type = &bytes}, {.type = &numbers64}};
static const struct tarn_type stats_row = NULLABLE(ROW, .fields = stats_fields, .field_count = 3);
static const struct tarn_field vector_fields[] = {
    {.type = &text}, {.type = &number32}, {.type = &number32}, {.type = &number64}};
static const struct tarn_type vector_row = NULLABLE(ROW, .fields = vector_fields, .field_count = 4);
static const struct tarn_type vector_rows = NULLABLE(ARRAY, .element = &vector_row);
static const struct tarn_field global_fields[] = {{.type = &number64}, {.type = &number64},
                                                  {.type = &number32}, {.type = &numbers32},
                                                  {.type = &bytes},    {.type = &bytes}};
static const struct tarn_type global_row5 =
    NULLABLE(ROW, .fields = global_fields, .field_count = 5);
static const struct tarn_type global_row6 =
    NULLABLE(ROW, .fields = global_fields, .field_count = 6);

static const struct tarn_type *const file_types[TARN_CM_FILE_FIELDS] = {
    &text,     &number64, &number64, &bytes,    &bytes,    &stats_row, &stats_row,
    &number64, &number64, &number64, &number32, &texts,    &millis,    &number64,
    &bytes,    &number8,  &texts,    &text,     &number64, &texts,     &numbers64};

/* ---- values */

static const struct tarn_value null = {.is_null = true};

static struct tarn_value number_of(int64_t number)
{
    return (struct tarn_value){.integer = number};
}

static struct tarn_value optional_number(int64_t number)
{
    return number == TARN_FILE_NONE ? null : number_of(number);
}

static struct tarn_value bytes_of(struct tarn_slice s)
{
    return (struct tarn_value){.bytes = s};
}

static struct tarn_value optional_bytes(struct tarn_slice s)
{
    return s.data == NULL ? null : bytes_of(s);
}

static struct tarn_value row_bytes(struct tarn_slice s)
{
    return bytes_of(s.data == NULL ? tarn_row_empty() : s);
}

static struct tarn_value list_of(const struct tarn_value *items, size_t count)
{
    return (struct tarn_value){.list = {.items = items, .count = count}};
}

static struct tarn_value texts_of(struct tarn_arena *arena, const struct tarn_slice *texts_in,
                                  size_t count)
{
    struct tarn_value *items = tarn_arena_calloc(arena, count, sizeof *items);
    for (size_t i = 0; i < count; i++)
        items[i] = bytes_of(texts_in[i]);
    return list_of(items, count);
}

static struct tarn_value longs_of(struct tarn_arena *arena, const int64_t *longs, size_t count,
                                  int64_t none)
{
    struct tarn_value *items = tarn_arena_calloc(arena, count, sizeof *items);
    for (size_t i = 0; i < count; i++)
        items[i] = longs[i] == none ? null : number_of(longs[i]);
    return list_of(items, count);
}

static struct tarn_value stats_of(struct tarn_arena *arena, const struct tarn_stats *stats)
{
    struct tarn_value *row = tarn_arena_calloc(arena, 3, sizeof *row);
    row[0] = row_bytes(stats->min);
    row[1] = row_bytes(stats->max);
    row[2] = longs_of(arena, stats->null_counts, stats->count, TARN_STATS_UNKNOWN);
    return list_of(row, 3);
}

static void fill_file(struct tarn_arena *arena, const struct tarn_data_file *f,
                      struct tarn_value *v)
{
    v[TARN_CM_FILE_NAME] = bytes_of(f->name);
    v[TARN_CM_FILE_SIZE] = number_of(f->size);
    v[TARN_CM_ROW_COUNT] = number_of(f->row_count);
    v[TARN_CM_MIN_KEY] = row_bytes(f->min_key);
    v[TARN_CM_MAX_KEY] = row_bytes(f->max_key);
    v[TARN_CM_KEY_STATS] = stats_of(arena, &f->key_stats);
    v[TARN_CM_VALUE_STATS] = stats_of(arena, &f->value_stats);
    v[TARN_CM_MIN_SEQUENCE] = number_of(f->min_sequence);
    v[TARN_CM_MAX_SEQUENCE] = number_of(f->max_sequence);
    v[TARN_CM_SCHEMA_ID] = number_of(f->schema_id);
    v[TARN_CM_LEVEL] = number_of(f->level);
    v[TARN_CM_EXTRA_FILES] = texts_of(arena, f->extra_files, f->extra_file_count);
    v[TARN_CM_CREATION_TIME] = f->creation_time_ms == TARN_FILE_NONE
                                   ? null
                                   : (struct tarn_value){.time = {.ms = f->creation_time_ms}};
    v[TARN_CM_DELETE_ROW_COUNT] = optional_number(f->delete_row_count);
    v[TARN_CM_EMBEDDED_INDEX] = optional_bytes(f->embedded_index);
    v[TARN_CM_FILE_SOURCE] = f->source == TARN_SOURCE_UNKNOWN ? null : number_of(f->source);
    v[TARN_CM_VALUE_STATS_COLS] =
        f->has_value_stats_columns
            ? texts_of(arena, f->value_stats_columns, f->value_stats_column_count)
            : null;
    v[TARN_CM_EXTERNAL_PATH] = optional_bytes(f->external_path);
    v[TARN_CM_FIRST_ROW_ID] = optional_number(f->first_row_id);
    v[TARN_CM_WRITE_COLS] =
        f->has_write_columns ? texts_of(arena, f->write_columns, f->write_column_count) : null;
    v[TARN_CM_WRITE_COLS_SEQUENCES] = f->has_write_column_sequences
                                          ? longs_of(arena, f->write_column_sequences,
                                                     f->write_column_sequence_count, TARN_FILE_NONE)
                                          : null;
}

static struct tarn_value vectors_of(struct tarn_arena *arena, const struct tarn_index_file *f)
{
    struct tarn_value *rows = tarn_arena_calloc(arena, f->vector_count, sizeof *rows);
    for (size_t i = 0; i < f->vector_count; i++) {
        struct tarn_value *row = tarn_arena_calloc(arena, 4, sizeof *row);
        row[0] = bytes_of(f->vectors[i].data_file);
        row[1] = number_of(f->vectors[i].offset);
        row[2] = number_of(f->vectors[i].length);
        row[3] = optional_number(f->vectors[i].cardinality);
        rows[i] = list_of(row, 4);
    }
    return f->has_vectors ? list_of(rows, f->vector_count) : null;
}

static struct tarn_value global_of(struct tarn_arena *arena, const struct tarn_index_file *f,
                                   size_t field_count)
{
    const struct tarn_global_index *g = &f->global;
    struct tarn_value *row = tarn_arena_calloc(arena, 6, sizeof *row);
    struct tarn_value *ids = tarn_arena_calloc(arena, g->extra_field_count, sizeof *ids);
    for (size_t i = 0; i < g->extra_field_count; i++)
        ids[i] = number_of(g->extra_fields[i]);
    row[0] = number_of(g->row_start);
    row[1] = number_of(g->row_end);
    row[2] = number_of(g->field_id);
    row[3] = g->has_extra_fields ? list_of(ids, g->extra_field_count) : null;
    row[4] = optional_bytes(g->meta);
    row[5] = optional_bytes(g->source_meta);
    return f->has_global ? list_of(row, field_count) : null;
}

/* ---- framing */

static void add_int(struct tarn_buf *out, int32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        tarn_buf_add_byte(out, (uint8_t)((uint32_t)number >> shift));
}

static void add_row(struct tarn_buf *out, const struct tarn_type *const *types,
                    const struct tarn_value *values, size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    tarn_row_encode(types, values, count, &row);
    add_int(out, (int32_t)row.size);
    tarn_buf_add_slice(out, tarn_buf_slice(&row));
}

static struct tarn_status *refuse(struct tarn_slice name)
{
    return tarn_status_new(TARN_COMMIT_MESSAGE_INVALID,
                           "file %.*s has fields that this version doesn't know and can't write",
                           TARN_SLICE_ARG(name));
}

static struct tarn_status *add_files(struct tarn_buf *out, const struct tarn_commit_files *list,
                                     const struct tarn_commit_message__shape *shape)
{
    add_int(out, (int32_t)list->count);
    for (size_t i = 0; i < list->count; i++) {
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        struct tarn_value values[TARN_CM_FILE_FIELDS];
        if (list->files[i].unknown)
            return refuse(list->files[i].name);
        fill_file(arena, &list->files[i], values);
        add_row(out, file_types, values, shape->file_fields);
    }
    return TARN_OK;
}

static struct tarn_status *add_indexes(struct tarn_buf *out, const struct tarn_commit_indexes *list,
                                       const struct tarn_commit_message__shape *shape)
{
    const struct tarn_type *const types[TARN_CM_INDEX_FIELDS] = {
        &text,
        &text,
        &number64,
        &number64,
        &vector_rows,
        &text,
        shape->global_fields == 6 ? &global_row6 : &global_row5};
    add_int(out, (int32_t)list->count);
    for (size_t i = 0; i < list->count; i++) {
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        const struct tarn_index_file *f = &list->files[i];
        if (f->unknown)
            return refuse(f->name);
        const struct tarn_value values[TARN_CM_INDEX_FIELDS] = {
            bytes_of(f->type),
            bytes_of(f->name),
            number_of(f->size),
            number_of(f->row_count),
            vectors_of(arena, f),
            optional_bytes(f->external_path),
            global_of(arena, f, shape->global_fields)};
        add_row(out, types, values, shape->index_fields);
    }
    return TARN_OK;
}

struct tarn_status *tarn_commit_message_encode(const struct tarn_commit_message *m, int32_t version,
                                               struct tarn_buf *out)
{
    struct tarn_slice partition = m->partition.data == NULL ? tarn_row_empty() : m->partition;
    TARN_TRY(tarn_commit_message__check_version(version));
    struct tarn_commit_message__shape shape = tarn_commit_message__shape(version);
    add_int(out, (int32_t)partition.size);
    tarn_buf_add_slice(out, partition);
    add_int(out, m->bucket);
    tarn_buf_add_byte(out, m->has_total_buckets);
    if (m->has_total_buckets)
        add_int(out, m->total_buckets);
    TARN_TRY(add_files(out, &m->new_files, &shape));
    TARN_TRY(add_files(out, &m->deleted_files, &shape));
    TARN_TRY(add_files(out, &m->changelog_files, &shape));
    TARN_TRY(add_indexes(out, &m->new_indexes, &shape));
    TARN_TRY(add_indexes(out, &m->deleted_indexes, &shape));
    TARN_TRY(add_files(out, &m->compact_before, &shape));
    TARN_TRY(add_files(out, &m->compact_after, &shape));
    TARN_TRY(add_files(out, &m->compact_changelog, &shape));
    TARN_TRY(add_indexes(out, &m->compact_new_indexes, &shape));
    TARN_TRY(add_indexes(out, &m->compact_deleted_indexes, &shape));
    if (!shape.has_check)
        return TARN_OK;
    tarn_buf_add_byte(out, m->has_check_snapshot);
    if (m->has_check_snapshot) {
        add_int(out, (int32_t)(m->check_snapshot >> 32));
        add_int(out, (int32_t)m->check_snapshot);
    }
    return TARN_OK;
}
