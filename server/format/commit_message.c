/* Commit messages read: Java's big-endian framing around BinaryRows, whose bytes are little-endian. */
#include "format/commit_message.h"

#include "format/commit_message_internal.h"
#include "format/ddl.h"

#define ROW_HEAD_SIZE 8 /* row kind and null bits; enough for the rows here, of at most 56 fields */

struct tarn_commit_message__shape tarn_commit_message__shape(int32_t version)
{
    return (struct tarn_commit_message__shape){
        .file_fields = version >= 13 ? 21 : 20,
        .index_fields = version >= 11 ? 7 : 6,
        .global_fields = version >= 12 ? 6 : 5,
        .has_check = version >= 14,
    };
}

struct tarn_status *tarn_commit_message__check_version(int32_t version)
{
    if (version >= TARN_COMMIT_MESSAGE_VERSION_MIN && version <= TARN_COMMIT_MESSAGE_VERSION_MAX)
        return TARN_OK;
    return tarn_status_new(
        TARN_COMMIT_MESSAGE_INVALID,
        "commit messages of version %" PRId32 " can't be read, only those of versions %d to %d",
        version, TARN_COMMIT_MESSAGE_VERSION_MIN, TARN_COMMIT_MESSAGE_VERSION_MAX);
}

/* ---- where we are; whatever fails says false, and what failed is named once, at the end */

struct decoder {
    const uint8_t *cursor, *end;
    struct tarn_arena *arena;
    struct tarn_commit_message__shape shape;
    const struct tarn_commit_message *message;
    const char *list;  /* "new files" */
    size_t element;    /* of it */
    const char *field; /* "_FILE_NAME"; NULL: the row itself */
};

static struct tarn_status *invalid(const struct decoder *d)
{
    if (d->list == NULL)
        return tarn_status_new(TARN_COMMIT_MESSAGE_INVALID,
                               "a commit message is damaged before its first list");
    return tarn_status_new(TARN_COMMIT_MESSAGE_INVALID,
                           "a commit message is damaged: %s, element %zu, %s", d->list, d->element,
                           d->field == NULL ? "the row (or it is of another version)" : d->field);
}

static bool take_bytes(struct decoder *d, int64_t size, struct tarn_slice *out)
{
    if (size < 0 || size > d->end - d->cursor)
        return false;
    *out = tarn_slice_of(d->cursor, (size_t)size);
    d->cursor += size;
    return true;
}

static bool take_int(struct decoder *d, int32_t *out)
{
    struct tarn_slice b;
    if (!take_bytes(d, 4, &b))
        return false;
    *out = (int32_t)((uint32_t)b.data[0] << 24 | (uint32_t)b.data[1] << 16 |
                     (uint32_t)b.data[2] << 8 | b.data[3]);
    return true;
}

static bool take_bool(struct decoder *d, bool *out)
{
    struct tarn_slice b;
    if (!take_bytes(d, 1, &b))
        return false;
    *out = b.data[0] != 0;
    return true;
}

static bool take_long(struct decoder *d, int64_t *out)
{
    int32_t high, low;
    if (!take_int(d, &high) || !take_int(d, &low))
        return false;
    *out = (int64_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
    return true;
}

/* Bytes behind their size. */
static bool take_sized(struct decoder *d, struct tarn_slice *out)
{
    int32_t size;
    return take_int(d, &size) && take_bytes(d, size, out);
}

/* ---- rows and arrays: null bits, then places of equal size, then what doesn't fit into them */

struct part {
    struct tarn_slice bytes;
    size_t bits_at, first_bit; /* of the null bits */
    size_t places_at, place_size;
    size_t count;
};

static uint64_t get_le(const uint8_t *p, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static bool open_row(struct tarn_slice bytes, size_t fields, struct part *out)
{
    *out = (struct part){bytes, 0, 8, ROW_HEAD_SIZE, 8, fields};
    return bytes.size >= ROW_HEAD_SIZE + 8 * fields;
}

/* Writers put what doesn't fit into the places right behind them, in order: where the first of these two
 * fields does not lie there, the row has another number of fields, and is of another version. */
static bool has_all_fields(const struct part *p, size_t field, size_t next)
{
    const uint8_t *place = p->bytes.data + p->places_at + 8 * field;
    if ((place[7] & 0x80) != 0)
        place = p->bytes.data + p->places_at + 8 * next;
    return (place[7] & 0x80) != 0 || get_le(place + 4, 4) == p->places_at + 8 * p->count;
}

static bool open_array(struct tarn_slice bytes, size_t place_size, struct part *out)
{
    if (bytes.size < 4)
        return false;
    uint64_t count = get_le(bytes.data, 4), head = 4 + (count + 31) / 32 * 4;
    *out = (struct part){bytes, 4, 0, (size_t)head, place_size, (size_t)count};
    return count <= INT32_MAX && head + count * place_size <= bytes.size;
}

static bool is_null(const struct part *p, size_t i)
{
    size_t bit = p->first_bit + i;
    return (p->bytes.data[p->bits_at + bit / 8] >> (bit % 8) & 1) != 0;
}

static const uint8_t *place_of(const struct part *p, size_t i)
{
    return p->bytes.data + p->places_at + i * p->place_size;
}

/* Null is not allowed. */
static bool get_number(const struct part *p, size_t i, size_t size, int64_t *out)
{
    if (is_null(p, i))
        return false;
    uint64_t bits = get_le(place_of(p, i), size);
    *out = size == 8 ? (int64_t)bits : size == 4 ? (int32_t)(uint32_t)bits : (int8_t)(uint8_t)bits;
    return true;
}

static bool get_long_or(const struct part *p, size_t i, int64_t none, int64_t *out)
{
    *out = none;
    return is_null(p, i) || get_number(p, i, 8, out);
}

static bool get_int(const struct part *p, size_t i, int32_t *out)
{
    int64_t value = 0;
    bool ok = get_number(p, i, 4, &value);
    *out = (int32_t)value;
    return ok;
}

/* What a place refers to: rows, arrays, and long bytes. */
static bool get_reference(const struct part *p, size_t i, struct tarn_slice *out)
{
    uint64_t size = get_le(place_of(p, i), 4), offset = get_le(place_of(p, i) + 4, 4);
    if (is_null(p, i) || offset > p->bytes.size || size > p->bytes.size - offset)
        return false;
    *out = tarn_slice_of(p->bytes.data + offset, (size_t)size);
    return true;
}

static bool get_bytes(const struct part *p, size_t i, struct tarn_slice *out)
{
    const uint8_t *place = place_of(p, i);
    if (is_null(p, i))
        return false;
    if ((place[7] & 0x80) == 0)
        return get_reference(p, i, out);
    *out = tarn_slice_of(place, place[7] & 0x7f); /* at most seven bytes lie in the place itself */
    return out->size <= 7;
}

static bool get_bytes_or_none(const struct part *p, size_t i, struct tarn_slice *out)
{
    *out = (struct tarn_slice){0};
    return is_null(p, i) || get_bytes(p, i, out);
}

static bool get_name(const struct part *p, size_t i, struct tarn_slice *out)
{
    return get_bytes(p, i, out) && tarn_format__is_file_name(*out);
}

static bool get_array(const struct part *p, size_t i, size_t place_size, struct part *out)
{
    struct tarn_slice bytes;
    return get_reference(p, i, &bytes) && open_array(bytes, place_size, out);
}

static bool get_texts(struct decoder *d, const struct part *p, size_t i,
                      const struct tarn_slice **out, size_t *count)
{
    struct part array;
    if (!get_array(p, i, 8, &array))
        return false;
    struct tarn_slice *texts = tarn_arena_calloc(d->arena, array.count, sizeof *texts);
    for (size_t k = 0; k < array.count; k++)
        if (!get_bytes(&array, k, &texts[k]))
            return false;
    *out = texts;
    *count = array.count;
    return true;
}

static bool get_longs(struct decoder *d, const struct part *p, size_t i, int64_t none,
                      const int64_t **out, size_t *count)
{
    struct part array;
    if (!get_array(p, i, 8, &array))
        return false;
    int64_t *longs = tarn_arena_calloc(d->arena, array.count, sizeof *longs);
    for (size_t k = 0; k < array.count; k++)
        if (!get_long_or(&array, k, none, &longs[k]))
            return false;
    *out = longs;
    *count = array.count;
    return true;
}

/* ---- data files */

static bool get_stats(struct decoder *d, const struct part *p, size_t i, struct tarn_stats *out)
{
    struct tarn_slice bytes;
    struct part row;
    return get_reference(p, i, &bytes) && open_row(bytes, 3, &row) &&
           get_bytes(&row, 0, &out->min) && get_bytes(&row, 1, &out->max) &&
           (is_null(&row, 2) ||
            get_longs(d, &row, 2, TARN_STATS_UNKNOWN, &out->null_counts, &out->count));
}

static bool get_extra_files(struct decoder *d, const struct part *p, size_t i,
                            struct tarn_data_file *f)
{
    bool ok = get_texts(d, p, i, &f->extra_files, &f->extra_file_count);
    for (size_t k = 0; ok && k < f->extra_file_count; k++)
        ok = tarn_format__is_file_name(f->extra_files[k]);
    return ok;
}

static bool get_source(const struct part *p, size_t i, enum tarn_file_source *out)
{
    int64_t value = TARN_SOURCE_UNKNOWN;
    bool ok = is_null(p, i) || (get_number(p, i, 1, &value) && value >= TARN_SOURCE_APPEND &&
                                value <= TARN_SOURCE_COMPACT);
    *out = (enum tarn_file_source)value;
    return ok;
}

static bool get_file_field(struct decoder *d, const struct part *p,
                           enum tarn_commit_message__file field, struct tarn_data_file *f)
{
    size_t i = (size_t)field;
    switch (field) {
    case TARN_CM_FILE_NAME:
        return get_name(p, i, &f->name);
    case TARN_CM_FILE_SIZE:
        return get_number(p, i, 8, &f->size) && f->size >= 0;
    case TARN_CM_ROW_COUNT:
        return get_number(p, i, 8, &f->row_count) && f->row_count >= 0;
    case TARN_CM_MIN_KEY:
        return get_bytes(p, i, &f->min_key);
    case TARN_CM_MAX_KEY:
        return get_bytes(p, i, &f->max_key);
    case TARN_CM_KEY_STATS:
        return get_stats(d, p, i, &f->key_stats);
    case TARN_CM_VALUE_STATS:
        return get_stats(d, p, i, &f->value_stats);
    case TARN_CM_MIN_SEQUENCE:
        return get_number(p, i, 8, &f->min_sequence);
    case TARN_CM_MAX_SEQUENCE:
        return get_number(p, i, 8, &f->max_sequence);
    case TARN_CM_SCHEMA_ID:
        return get_number(p, i, 8, &f->schema_id) && f->schema_id >= 0;
    case TARN_CM_LEVEL:
        return get_int(p, i, &f->level) && f->level >= 0;
    case TARN_CM_EXTRA_FILES:
        return get_extra_files(d, p, i, f);
    case TARN_CM_CREATION_TIME:
        return get_long_or(p, i, TARN_FILE_NONE, &f->creation_time_ms);
    case TARN_CM_DELETE_ROW_COUNT:
        return get_long_or(p, i, TARN_FILE_NONE, &f->delete_row_count);
    case TARN_CM_EMBEDDED_INDEX:
        return get_bytes_or_none(p, i, &f->embedded_index);
    case TARN_CM_FILE_SOURCE:
        return get_source(p, i, &f->source);
    case TARN_CM_VALUE_STATS_COLS:
        f->has_value_stats_columns = !is_null(p, i);
        return is_null(p, i) ||
               get_texts(d, p, i, &f->value_stats_columns, &f->value_stats_column_count);
    case TARN_CM_EXTERNAL_PATH:
        return get_bytes_or_none(p, i, &f->external_path);
    case TARN_CM_FIRST_ROW_ID:
        return get_long_or(p, i, TARN_FILE_NONE, &f->first_row_id);
    case TARN_CM_WRITE_COLS:
        f->has_write_columns = !is_null(p, i);
        return is_null(p, i) || get_texts(d, p, i, &f->write_columns, &f->write_column_count);
    case TARN_CM_WRITE_COLS_SEQUENCES:
        f->has_write_column_sequences = !is_null(p, i);
        return is_null(p, i) || get_longs(d, p, i, TARN_FILE_NONE, &f->write_column_sequences,
                                          &f->write_column_sequence_count);
    }
    return false;
}

static bool get_file(struct decoder *d, struct tarn_data_file *f)
{
    struct tarn_slice bytes;
    struct part row;
    d->field = NULL;
    if (!take_sized(d, &bytes) || !open_row(bytes, d->shape.file_fields, &row) ||
        !has_all_fields(&row, TARN_CM_FILE_NAME, TARN_CM_MIN_KEY))
        return false;
    for (size_t i = 0; i < d->shape.file_fields; i++) {
        d->field = tarn_commit_message__file_fields[i];
        if (!get_file_field(d, &row, (enum tarn_commit_message__file)i, f))
            return false;
    }
    return true;
}

/* ---- index files */

static bool get_vector(const struct part *array, size_t i, struct tarn_vector_range *v)
{
    struct tarn_slice bytes;
    struct part row;
    return get_reference(array, i, &bytes) && open_row(bytes, 4, &row) &&
           get_name(&row, 0, &v->data_file) && get_int(&row, 1, &v->offset) && v->offset >= 0 &&
           get_int(&row, 2, &v->length) && v->length >= 0 &&
           get_long_or(&row, 3, TARN_FILE_NONE, &v->cardinality);
}

static bool get_vectors(struct decoder *d, const struct part *p, size_t i,
                        struct tarn_index_file *f)
{
    struct part array;
    f->has_vectors = !is_null(p, i);
    if (!f->has_vectors)
        return true;
    if (!get_array(p, i, 8, &array))
        return false;
    struct tarn_vector_range *v = tarn_arena_calloc(d->arena, array.count, sizeof *v);
    for (size_t k = 0; k < array.count; k++)
        if (!get_vector(&array, k, &v[k]))
            return false;
    f->vectors = v;
    f->vector_count = array.count;
    return true;
}

static bool get_field_ids(struct decoder *d, const struct part *p, size_t i,
                          struct tarn_global_index *g)
{
    struct part array;
    g->has_extra_fields = !is_null(p, i);
    if (!g->has_extra_fields)
        return true;
    if (!get_array(p, i, 4, &array))
        return false;
    int32_t *ids = tarn_arena_calloc(d->arena, array.count, sizeof *ids);
    for (size_t k = 0; k < array.count; k++)
        if (!get_int(&array, k, &ids[k]))
            return false;
    g->extra_fields = ids;
    g->extra_field_count = array.count;
    return true;
}

static bool get_global(struct decoder *d, const struct part *p, size_t i, struct tarn_index_file *f)
{
    struct tarn_global_index *g = &f->global;
    struct tarn_slice bytes;
    struct part row;
    f->has_global = !is_null(p, i);
    if (!f->has_global)
        return true;
    return get_reference(p, i, &bytes) && open_row(bytes, d->shape.global_fields, &row) &&
           get_number(&row, 0, 8, &g->row_start) && get_number(&row, 1, 8, &g->row_end) &&
           get_int(&row, 2, &g->field_id) && get_field_ids(d, &row, 3, g) &&
           get_bytes_or_none(&row, 4, &g->meta) &&
           (d->shape.global_fields < 6 || get_bytes_or_none(&row, 5, &g->source_meta));
}

static bool get_index_field(struct decoder *d, const struct part *p,
                            enum tarn_commit_message__index field, struct tarn_index_file *f)
{
    size_t i = (size_t)field;
    switch (field) {
    case TARN_CM_INDEX_TYPE:
        return get_bytes(p, i, &f->type);
    case TARN_CM_INDEX_NAME:
        return get_name(p, i, &f->name);
    case TARN_CM_INDEX_SIZE:
        return get_number(p, i, 8, &f->size) && f->size >= 0;
    case TARN_CM_INDEX_ROW_COUNT:
        return get_number(p, i, 8, &f->row_count) && f->row_count >= 0;
    case TARN_CM_INDEX_VECTORS:
        return get_vectors(d, p, i, f);
    case TARN_CM_INDEX_EXTERNAL_PATH:
        return get_bytes_or_none(p, i, &f->external_path);
    case TARN_CM_INDEX_GLOBAL:
        return get_global(d, p, i, f);
    }
    return false;
}

static bool get_index(struct decoder *d, struct tarn_index_file *f)
{
    struct tarn_slice bytes;
    struct part row;
    d->field = NULL;
    if (!take_sized(d, &bytes) || !open_row(bytes, d->shape.index_fields, &row) ||
        !has_all_fields(&row, TARN_CM_INDEX_TYPE, TARN_CM_INDEX_NAME))
        return false;
    for (size_t i = 0; i < d->shape.index_fields; i++) {
        d->field = tarn_commit_message__index_fields[i];
        if (!get_index_field(d, &row, (enum tarn_commit_message__index)i, f))
            return false;
    }
    return true;
}

/* ---- lists */

/* Rows are at least their fixed part: no count makes more room than the bytes allow. */
static bool take_count(struct decoder *d, const char *list, size_t fields, size_t *count)
{
    int32_t n = 0;
    d->list = list;
    d->element = 0;
    d->field = "its count";
    if (!take_int(d, &n) || n < 0 ||
        n > (d->end - d->cursor) / (ptrdiff_t)(4 + ROW_HEAD_SIZE + 8 * fields))
        return false;
    *count = (size_t)n;
    return true;
}

static bool take_files(struct decoder *d, const char *list, struct tarn_commit_files *out)
{
    if (!take_count(d, list, d->shape.file_fields, &out->count))
        return false;
    out->files = tarn_arena_calloc(d->arena, out->count, sizeof *out->files);
    for (; d->element < out->count; d->element++) {
        struct tarn_data_file *f = &out->files[d->element];
        f->creation_time_ms = f->delete_row_count = f->first_row_id = TARN_FILE_NONE;
        f->source = TARN_SOURCE_UNKNOWN;
        if (!get_file(d, f))
            return false;
    }
    return true;
}

static bool take_indexes(struct decoder *d, const char *list, enum tarn_entry_kind kind,
                         struct tarn_commit_indexes *out)
{
    if (!take_count(d, list, d->shape.index_fields, &out->count))
        return false;
    out->files = tarn_arena_calloc(d->arena, out->count, sizeof *out->files);
    for (; d->element < out->count; d->element++) {
        struct tarn_index_file *f = &out->files[d->element];
        f->kind = kind;
        f->partition = d->message->partition;
        f->bucket = d->message->bucket;
        if (!get_index(d, f))
            return false;
    }
    return true;
}

static bool take_check(struct decoder *d, struct tarn_commit_message *m)
{
    d->list = "the snapshot to check from";
    d->element = 0;
    d->field = "its id";
    return !d->shape.has_check || (take_bool(d, &m->has_check_snapshot) &&
                                   (!m->has_check_snapshot || take_long(d, &m->check_snapshot)));
}

static bool take_message(struct decoder *d, struct tarn_commit_message *m)
{
    if (!take_sized(d, &m->partition) || m->partition.size < TARN_ROW_EMPTY_SIZE ||
        !take_int(d, &m->bucket) || !take_bool(d, &m->has_total_buckets) ||
        (m->has_total_buckets && !take_int(d, &m->total_buckets)))
        return false;
    return take_files(d, "new files", &m->new_files) &&
           take_files(d, "deleted files", &m->deleted_files) &&
           take_files(d, "changelog files", &m->changelog_files) &&
           take_indexes(d, "new index files", TARN_ENTRY_ADD, &m->new_indexes) &&
           take_indexes(d, "deleted index files", TARN_ENTRY_DELETE, &m->deleted_indexes) &&
           take_files(d, "files before compaction", &m->compact_before) &&
           take_files(d, "files after compaction", &m->compact_after) &&
           take_files(d, "changelog files of compaction", &m->compact_changelog) &&
           take_indexes(d, "new index files of compaction", TARN_ENTRY_ADD,
                        &m->compact_new_indexes) &&
           take_indexes(d, "deleted index files of compaction", TARN_ENTRY_DELETE,
                        &m->compact_deleted_indexes) &&
           take_check(d, m);
}

struct tarn_status *tarn_commit_message_decode(struct tarn_slice bytes, int32_t version,
                                               struct tarn_arena *arena,
                                               struct tarn_commit_message *out)
{
    struct tarn_commit_message message = {0};
    TARN_TRY(tarn_commit_message__check_version(version));
    bytes = tarn_arena_copy(arena, bytes);
    struct decoder d = {.cursor = bytes.data,
                        .end = bytes.data + bytes.size,
                        .arena = arena,
                        .shape = tarn_commit_message__shape(version),
                        .message = &message};
    if (!take_message(&d, &message))
        return invalid(&d);
    if (d.cursor != d.end)
        return tarn_status_new(TARN_COMMIT_MESSAGE_INVALID,
                               "%zu bytes follow a commit message of version %" PRId32
                               ": is it another version?",
                               (size_t)(d.end - d.cursor), version);
    *out = message;
    return TARN_OK;
}
