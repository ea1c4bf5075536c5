#include "format/manifest.h"

#include "format/avro.h"
#include "format/ddl.h"
#include "format/manifest_internal.h"

#define TARN_LIST_VERSION 2

struct tarn_status *tarn_manifest__plan(struct tarn_avro_reader *r,
                                        const struct tarn_avro_node *record,
                                        const struct tarn_manifest__slot *slots, size_t count,
                                        struct tarn_manifest__plan *out)
{
    const char *names[TARN_MANIFEST__SLOTS_MAX];
    bool found[TARN_MANIFEST__SLOTS_MAX] = {false};
    if (record == NULL)
        return tarn_status_new(TARN_MANIFEST_MALFORMED, "avro.schema lacks a record");
    for (size_t i = 0; i < count; i++)
        names[i] = slots[i].name;
    TARN_TRY(tarn_avro_bind(r, record, names, count, &out->to));
    out->record = record;
    for (size_t i = 0; i < record->child_count; i++)
        if (out->to[i] >= 0)
            found[out->to[i]] = true;
    for (size_t i = 0; i < count; i++)
        if (slots[i].required && !found[i])
            return tarn_status_new(TARN_MANIFEST_MALFORMED, "avro.schema has no field %s",
                                   slots[i].name);
    return TARN_OK;
}

static struct tarn_status *name_error(const struct tarn_avro_reader *r, const char *field,
                                      struct tarn_slice text)
{
    return tarn_status_new(TARN_MANIFEST_MALFORMED,
                           "block at byte %zu: %s \"%.*s\" is no file name", r->block_at, field,
                           (int)TARN_MIN(text.size, (size_t)80), (const char *)text.data);
}

struct tarn_status *tarn_manifest__range_error(const struct tarn_avro_reader *r, const char *field,
                                               int64_t value)
{
    return tarn_status_new(TARN_MANIFEST_MALFORMED, "block at byte %zu: %s is %lld", r->block_at,
                           field, (long long)value);
}

struct tarn_status *tarn_manifest__read_name(struct tarn_avro_reader *r,
                                             const struct tarn_avro_node *node, const char *field,
                                             struct tarn_slice *out)
{
    TARN_TRY(tarn_avro_read_bytes(r, node, false, out));
    return tarn_format__is_file_name(*out) ? TARN_OK : name_error(r, field, *out);
}

struct tarn_status *tarn_manifest__read_count(struct tarn_avro_reader *r,
                                              const struct tarn_avro_node *node, const char *field,
                                              int64_t *out)
{
    TARN_TRY(tarn_avro_read_long(r, node, false, 0, out));
    return *out >= 0 ? TARN_OK : tarn_manifest__range_error(r, field, *out);
}

static struct tarn_status *read_optional(struct tarn_avro_reader *r,
                                         const struct tarn_avro_node *node, int64_t *out)
{
    return tarn_avro_read_long(r, node, true, TARN_FILE_NONE, out);
}

struct tarn_status *tarn_manifest__read_version(struct tarn_avro_reader *r,
                                                const struct tarn_avro_node *node, int32_t wanted)
{
    int32_t version = 0;
    TARN_TRY(tarn_avro_read_int(r, node, &version));
    return version == wanted ? TARN_OK : tarn_manifest__range_error(r, "_VERSION", version);
}

/* ---- statistics */

enum stats_slot { STATS_MIN, STATS_MAX, STATS_NULLS };
static const struct tarn_manifest__slot stats_slots[] = {
    {"_MIN_VALUES", true}, {"_MAX_VALUES", true}, {"_NULL_COUNTS", false}};

static struct tarn_status *read_stats(struct tarn_avro_reader *r,
                                      const struct tarn_manifest__plan *plan,
                                      const struct tarn_avro_node *node, struct tarn_stats *out)
{
    bool present;
    TARN_TRY(tarn_avro_branch(r, node, &node));
    if (node != plan->record)
        return tarn_avro_error(r, "statistics are no record");
    *out = (struct tarn_stats){0};
    for (size_t i = 0; i < node->child_count; i++) {
        const struct tarn_avro_node *child = node->children[i];
        switch (plan->to[i]) {
        case STATS_MIN:
            TARN_TRY(tarn_avro_read_bytes(r, child, false, &out->min));
            break;
        case STATS_MAX:
            TARN_TRY(tarn_avro_read_bytes(r, child, false, &out->max));
            break;
        case STATS_NULLS:
            TARN_TRY(tarn_avro_read_longs(r, child, TARN_STATS_UNKNOWN, &present, &out->null_counts,
                                          &out->count));
            break;
        default:
            TARN_TRY(tarn_avro_skip(r, child));
        }
    }
    return TARN_OK;
}

/* ---- data files */

enum file_slot {
    FILE_NAME,
    FILE_SIZE,
    FILE_ROWS,
    FILE_MIN_KEY,
    FILE_MAX_KEY,
    FILE_KEY_STATS,
    FILE_VALUE_STATS,
    FILE_MIN_SEQUENCE,
    FILE_MAX_SEQUENCE,
    FILE_SCHEMA,
    FILE_LEVEL,
    FILE_EXTRA,
    FILE_CREATED,
    FILE_DELETES,
    FILE_INDEX,
    FILE_SOURCE,
    FILE_STATS_COLUMNS,
    FILE_EXTERNAL,
    FILE_FIRST_ROW,
    FILE_COLUMNS,
    FILE_COLUMN_SEQUENCES,
};
static const struct tarn_manifest__slot file_slots[] = {
    {"_FILE_NAME", true},
    {"_FILE_SIZE", true},
    {"_ROW_COUNT", true},
    {"_MIN_KEY", true},
    {"_MAX_KEY", true},
    {"_KEY_STATS", true},
    {"_VALUE_STATS", true},
    {"_MIN_SEQUENCE_NUMBER", true},
    {"_MAX_SEQUENCE_NUMBER", true},
    {"_SCHEMA_ID", true},
    {"_LEVEL", true},
    {"_EXTRA_FILES", false},
    {"_CREATION_TIME", false},
    {"_DELETE_ROW_COUNT", false},
    {"_EMBEDDED_FILE_INDEX", false},
    {"_FILE_SOURCE", false},
    {"_VALUE_STATS_COLS", false},
    {"_EXTERNAL_PATH", false},
    {"_FIRST_ROW_ID", false},
    {"_WRITE_COLS", false},
    {"_WRITE_COLS_SEQUENCES", false},
};

struct file_plan {
    struct tarn_manifest__plan file, key_stats, value_stats;
};

static struct tarn_status *make_file_plan(struct tarn_avro_reader *r, struct file_plan *out)
{
    const struct tarn_avro_node *file = tarn_avro_find(r->schema, "_FILE");
    TARN_TRY(tarn_manifest__plan(r, file, file_slots, TARN_COUNT_OF(file_slots), &out->file));
    TARN_TRY(tarn_manifest__plan(r, tarn_avro_find(file, "_KEY_STATS"), stats_slots,
                                 TARN_COUNT_OF(stats_slots), &out->key_stats));
    return tarn_manifest__plan(r, tarn_avro_find(file, "_VALUE_STATS"), stats_slots,
                               TARN_COUNT_OF(stats_slots), &out->value_stats);
}

static struct tarn_status *read_source(struct tarn_avro_reader *r,
                                       const struct tarn_avro_node *node,
                                       enum tarn_file_source *out)
{
    int64_t value = 0;
    TARN_TRY(tarn_avro_read_long(r, node, true, TARN_SOURCE_UNKNOWN, &value));
    if (value < TARN_SOURCE_UNKNOWN || value > TARN_SOURCE_COMPACT)
        return tarn_manifest__range_error(r, "_FILE_SOURCE", value);
    *out = (enum tarn_file_source)value;
    return TARN_OK;
}

static struct tarn_status *read_extra_files(struct tarn_avro_reader *r,
                                            const struct tarn_avro_node *node,
                                            struct tarn_data_file *f)
{
    bool present;
    TARN_TRY(tarn_avro_read_strings(r, node, &present, &f->extra_files, &f->extra_file_count));
    for (size_t i = 0; i < f->extra_file_count; i++)
        if (!tarn_format__is_file_name(f->extra_files[i]))
            return name_error(r, "_EXTRA_FILES", f->extra_files[i]);
    return TARN_OK;
}

static struct tarn_status *read_file_field(struct tarn_avro_reader *r, const struct file_plan *plan,
                                           enum file_slot slot, const struct tarn_avro_node *node,
                                           struct tarn_data_file *f)
{
    switch (slot) {
    case FILE_NAME:
        return tarn_manifest__read_name(r, node, "_FILE_NAME", &f->name);
    case FILE_SIZE:
        return tarn_manifest__read_count(r, node, "_FILE_SIZE", &f->size);
    case FILE_ROWS:
        return tarn_manifest__read_count(r, node, "_ROW_COUNT", &f->row_count);
    case FILE_MIN_KEY:
        return tarn_avro_read_bytes(r, node, false, &f->min_key);
    case FILE_MAX_KEY:
        return tarn_avro_read_bytes(r, node, false, &f->max_key);
    case FILE_KEY_STATS:
        return read_stats(r, &plan->key_stats, node, &f->key_stats);
    case FILE_VALUE_STATS:
        return read_stats(r, &plan->value_stats, node, &f->value_stats);
    case FILE_MIN_SEQUENCE:
        return tarn_avro_read_long(r, node, false, 0, &f->min_sequence);
    case FILE_MAX_SEQUENCE:
        return tarn_avro_read_long(r, node, false, 0, &f->max_sequence);
    case FILE_SCHEMA:
        return tarn_manifest__read_count(r, node, "_SCHEMA_ID", &f->schema_id);
    case FILE_LEVEL:
        TARN_TRY(tarn_avro_read_int(r, node, &f->level));
        return f->level >= 0 ? TARN_OK : tarn_manifest__range_error(r, "_LEVEL", f->level);
    case FILE_EXTRA:
        return read_extra_files(r, node, f);
    case FILE_CREATED:
        return read_optional(r, node, &f->creation_time_ms);
    case FILE_DELETES:
        return read_optional(r, node, &f->delete_row_count);
    case FILE_INDEX:
        return tarn_avro_read_bytes(r, node, true, &f->embedded_index);
    case FILE_SOURCE:
        return read_source(r, node, &f->source);
    case FILE_STATS_COLUMNS:
        return tarn_avro_read_strings(r, node, &f->has_value_stats_columns, &f->value_stats_columns,
                                      &f->value_stats_column_count);
    case FILE_EXTERNAL:
        return tarn_avro_read_bytes(r, node, true, &f->external_path);
    case FILE_FIRST_ROW:
        return read_optional(r, node, &f->first_row_id);
    case FILE_COLUMNS:
        return tarn_avro_read_strings(r, node, &f->has_write_columns, &f->write_columns,
                                      &f->write_column_count);
    case FILE_COLUMN_SEQUENCES:
        return tarn_avro_read_longs(r, node, TARN_FILE_NONE, &f->has_write_column_sequences,
                                    &f->write_column_sequences, &f->write_column_sequence_count);
    }
    return TARN_OK;
}

static struct tarn_status *read_file(struct tarn_avro_reader *r, const struct file_plan *plan,
                                     const struct tarn_avro_node *node, struct tarn_data_file *f)
{
    TARN_TRY(tarn_avro_branch(r, node, &node));
    if (node != plan->file.record)
        return tarn_avro_error(r, "_FILE is no record");
    f->creation_time_ms = f->delete_row_count = f->first_row_id = TARN_FILE_NONE;
    f->source = TARN_SOURCE_UNKNOWN;
    for (size_t i = 0; i < node->child_count; i++) {
        if (plan->file.to[i] < 0) {
            f->unknown = true;
            TARN_TRY(tarn_avro_skip(r, node->children[i]));
        } else {
            TARN_TRY(
                read_file_field(r, plan, (enum file_slot)plan->file.to[i], node->children[i], f));
        }
    }
    return TARN_OK;
}

/* ---- manifests */

enum entry_slot {
    ENTRY_VERSION,
    ENTRY_KIND,
    ENTRY_PARTITION,
    ENTRY_BUCKET,
    ENTRY_TOTAL,
    ENTRY_FILE
};
static const struct tarn_manifest__slot entry_slots[] = {
    {"_VERSION", true}, {"_KIND", true},          {"_PARTITION", true},
    {"_BUCKET", true},  {"_TOTAL_BUCKETS", true}, {"_FILE", true}};

struct tarn_status *tarn_manifest__read_kind(struct tarn_avro_reader *r,
                                             const struct tarn_avro_node *node,
                                             enum tarn_entry_kind *out)
{
    int32_t value = 0;
    TARN_TRY(tarn_avro_read_int(r, node, &value));
    if (value != TARN_ENTRY_ADD && value != TARN_ENTRY_DELETE)
        return tarn_manifest__range_error(r, "_KIND", value);
    *out = (enum tarn_entry_kind)value;
    return TARN_OK;
}

static struct tarn_status *read_entry(struct tarn_avro_reader *r,
                                      const struct tarn_manifest__plan *plan,
                                      const struct file_plan *file_plan,
                                      struct tarn_manifest_entry *e)
{
    *e = (struct tarn_manifest_entry){0};
    for (size_t i = 0; i < plan->record->child_count; i++) {
        const struct tarn_avro_node *node = plan->record->children[i];
        switch (plan->to[i]) {
        case ENTRY_VERSION:
            TARN_TRY(tarn_manifest__read_version(r, node, TARN_LIST_VERSION));
            break;
        case ENTRY_KIND:
            TARN_TRY(tarn_manifest__read_kind(r, node, &e->kind));
            break;
        case ENTRY_PARTITION:
            TARN_TRY(tarn_avro_read_bytes(r, node, false, &e->partition));
            break;
        case ENTRY_BUCKET:
            TARN_TRY(tarn_avro_read_int(r, node, &e->bucket));
            break;
        case ENTRY_TOTAL:
            TARN_TRY(tarn_avro_read_int(r, node, &e->total_buckets));
            break;
        case ENTRY_FILE:
            TARN_TRY(read_file(r, file_plan, node, &e->file));
            break;
        default: /* a field of the entry itself is as unknown as one of its file */
            e->file.unknown = true;
            TARN_TRY(tarn_avro_skip(r, node));
        }
    }
    return TARN_OK;
}

/* Room for one more record of `size` bytes, or an error where a file holds more than any does. */
struct tarn_status *tarn_manifest__grow(void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return TARN_OK;
    if (count >= TARN_MANIFEST_ENTRIES_MAX)
        return tarn_status_new(TARN_MANIFEST_MALFORMED, "more than %d records",
                               TARN_MANIFEST_ENTRIES_MAX);
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    *items = tarn_realloc(*items, *capacity * size);
    return TARN_OK;
}

void *tarn_manifest__settle(struct tarn_arena *arena, const void *items, size_t count, size_t size)
{
    void *copy = tarn_arena_alloc(arena, count * size);
    if (count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

struct tarn_status *tarn_manifest_decode(struct tarn_slice bytes, struct tarn_arena *arena,
                                         struct tarn_manifest_entry **out, size_t *count)
{
    struct tarn_avro_reader r;
    struct tarn_manifest__plan plan = {0};
    struct file_plan file_plan = {0};
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *items = NULL;
    size_t n = 0, capacity = 0;
    bool more = false;
    TARN_TRY(tarn_avro_open(bytes, arena, &r));
    TARN_TRY(tarn_manifest__plan(&r, r.schema, entry_slots, TARN_COUNT_OF(entry_slots), &plan));
    TARN_TRY(make_file_plan(&r, &file_plan));
    for (;;) {
        TARN_TRY(tarn_avro_next(&r, &more));
        if (!more)
            break;
        TARN_TRY(tarn_manifest__grow((void **)&items, n, &capacity, sizeof *items));
        TARN_TRY(read_entry(&r, &plan, &file_plan, &items[n]));
        n++;
    }
    *out = tarn_manifest__settle(arena, items, n, sizeof *items);
    *count = n;
    return TARN_OK;
}

/* ---- block by block */

struct tarn_manifest_reader {
    struct tarn_avro_reader avro;
    struct tarn_manifest__plan plan;
    struct file_plan file_plan;
};

struct tarn_status *tarn_manifest_open(struct tarn_slice bytes, struct tarn_arena *arena,
                                       struct tarn_manifest_reader **out)
{
    struct tarn_manifest_reader *r = tarn_arena_calloc(arena, 1, sizeof *r);
    TARN_TRY(tarn_avro_open(bytes, arena, &r->avro));
    TARN_TRY(tarn_manifest__plan(&r->avro, r->avro.schema, entry_slots, TARN_COUNT_OF(entry_slots),
                                 &r->plan));
    TARN_TRY(make_file_plan(&r->avro, &r->file_plan));
    *out = r;
    return TARN_OK;
}

struct tarn_status *tarn_manifest_next(struct tarn_manifest_reader *reader,
                                       struct tarn_arena *arena, struct tarn_manifest_entry **out,
                                       size_t *count)
{
    struct tarn_avro_reader *r = &reader->avro;
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *items = NULL;
    size_t n = 0, capacity = 0;
    bool more = false;
    r->arena = arena; /* what the block expands to lies there, too */
    do {
        TARN_TRY(tarn_avro_next(r, &more));
        if (!more)
            break;
        TARN_TRY(tarn_manifest__grow((void **)&items, n, &capacity, sizeof *items));
        TARN_TRY(read_entry(r, &reader->plan, &reader->file_plan, &items[n]));
        n++;
    } while (r->records_left > 0);
    *out = tarn_manifest__settle(arena, items, n, sizeof *items);
    *count = n;
    return TARN_OK;
}

/* ---- manifest lists */

enum list_slot {
    LIST_VERSION,
    LIST_NAME,
    LIST_SIZE,
    LIST_ADDED,
    LIST_DELETED,
    LIST_STATS,
    LIST_SCHEMA,
    LIST_MIN_BUCKET,
    LIST_MAX_BUCKET,
    LIST_MIN_LEVEL,
    LIST_MAX_LEVEL,
    LIST_MIN_ROW,
    LIST_MAX_ROW,
    LIST_TOTAL_BUCKETS,
    LIST_EXTRA_FILES
};
static const struct tarn_manifest__slot list_slots[] = {
    {"_VERSION", true},
    {"_FILE_NAME", true},
    {"_FILE_SIZE", true},
    {"_NUM_ADDED_FILES", true},
    {"_NUM_DELETED_FILES", true},
    {"_PARTITION_STATS", true},
    {"_SCHEMA_ID", true},
    {"_MIN_BUCKET", false},
    {"_MAX_BUCKET", false},
    {"_MIN_LEVEL", false},
    {"_MAX_LEVEL", false},
    {"_MIN_ROW_ID", false},
    {"_MAX_ROW_ID", false},
    /* pypaimon's own, dropped by Java too: known, so that what it wrote can be carried on. */
    {"_TOTAL_BUCKETS", false},
    {"_EXTRA_FILES", false}};

static struct tarn_status *read_list_field(struct tarn_avro_reader *r,
                                           const struct tarn_manifest__plan *stats, int slot,
                                           const struct tarn_avro_node *node,
                                           struct tarn_manifest_file *f)
{
    switch (slot) {
    case LIST_VERSION:
        return tarn_manifest__read_version(r, node, TARN_LIST_VERSION);
    case LIST_NAME:
        return tarn_manifest__read_name(r, node, "_FILE_NAME", &f->name);
    case LIST_SIZE:
        return tarn_manifest__read_count(r, node, "_FILE_SIZE", &f->size);
    case LIST_ADDED:
        return tarn_manifest__read_count(r, node, "_NUM_ADDED_FILES", &f->added_count);
    case LIST_DELETED:
        return tarn_manifest__read_count(r, node, "_NUM_DELETED_FILES", &f->deleted_count);
    case LIST_STATS:
        return read_stats(r, stats, node, &f->partition_stats);
    case LIST_SCHEMA:
        return tarn_manifest__read_count(r, node, "_SCHEMA_ID", &f->schema_id);
    case LIST_MIN_BUCKET:
        return read_optional(r, node, &f->min_bucket);
    case LIST_MAX_BUCKET:
        return read_optional(r, node, &f->max_bucket);
    case LIST_MIN_LEVEL:
        return read_optional(r, node, &f->min_level);
    case LIST_MAX_LEVEL:
        return read_optional(r, node, &f->max_level);
    case LIST_MIN_ROW:
        return read_optional(r, node, &f->min_row_id);
    case LIST_MAX_ROW:
        return read_optional(r, node, &f->max_row_id);
    default:
        f->unknown = f->unknown || slot < 0;
        return tarn_avro_skip(r, node);
    }
}

static struct tarn_status *read_manifest_file(struct tarn_avro_reader *r,
                                              const struct tarn_manifest__plan *plan,
                                              const struct tarn_manifest__plan *stats,
                                              struct tarn_manifest_file *f)
{
    *f = (struct tarn_manifest_file){0};
    f->min_bucket = f->max_bucket = f->min_level = f->max_level = TARN_FILE_NONE;
    f->min_row_id = f->max_row_id = TARN_FILE_NONE;
    for (size_t i = 0; i < plan->record->child_count; i++)
        TARN_TRY(read_list_field(r, stats, plan->to[i], plan->record->children[i], f));
    return TARN_OK;
}

struct tarn_status *tarn_manifest_list_decode(struct tarn_slice bytes, struct tarn_arena *arena,
                                              struct tarn_manifest_file **out, size_t *count)
{
    struct tarn_avro_reader r;
    struct tarn_manifest__plan plan = {0}, stats = {0};
    TARN_OWN(tarn_free_drop) struct tarn_manifest_file *items = NULL;
    size_t n = 0, capacity = 0;
    bool more = false;
    TARN_TRY(tarn_avro_open(bytes, arena, &r));
    TARN_TRY(tarn_manifest__plan(&r, r.schema, list_slots, TARN_COUNT_OF(list_slots), &plan));
    TARN_TRY(tarn_manifest__plan(&r, tarn_avro_find(r.schema, "_PARTITION_STATS"), stats_slots,
                                 TARN_COUNT_OF(stats_slots), &stats));
    for (;;) {
        TARN_TRY(tarn_avro_next(&r, &more));
        if (!more)
            break;
        TARN_TRY(tarn_manifest__grow((void **)&items, n, &capacity, sizeof *items));
        TARN_TRY(read_manifest_file(&r, &plan, &stats, &items[n]));
        n++;
    }
    *out = tarn_manifest__settle(arena, items, n, sizeof *items);
    *count = n;
    return TARN_OK;
}
