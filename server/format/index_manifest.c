/* Index manifests: read, written, and what a commit makes of the last one. */
#include "format/ddl.h"
#include "format/manifest_internal.h"

#define TARN_INDEX_VERSION 1
#define TARN_INDEX_VECTORS_MAX (4 << 20) /* deletion vectors that one index manifest names */
#define TARN_INDEX_FIELDS_MAX 20000      /* further columns of one global index */

/* ---- reading */

enum index_slot {
    INDEX_VERSION,
    INDEX_KIND,
    INDEX_PARTITION,
    INDEX_BUCKET,
    INDEX_TYPE,
    INDEX_NAME,
    INDEX_SIZE,
    INDEX_ROWS,
    INDEX_VECTORS,
    INDEX_EXTERNAL,
    INDEX_GLOBAL
};
static const struct tarn_manifest__slot index_slots[] = {
    {"_VERSION", true},        {"_KIND", true},         {"_PARTITION", true},
    {"_BUCKET", true},         {"_INDEX_TYPE", true},   {"_FILE_NAME", true},
    {"_FILE_SIZE", true},      {"_ROW_COUNT", true},    {"_DELETIONS_VECTORS_RANGES", false},
    {"_EXTERNAL_PATH", false}, {"_GLOBAL_INDEX", false}};

enum vector_slot { VECTOR_FILE, VECTOR_OFFSET, VECTOR_LENGTH, VECTOR_CARDINALITY };
static const struct tarn_manifest__slot vector_slots[] = {
    {"f0", true}, {"f1", true}, {"f2", true}, {"_CARDINALITY", false}};

enum global_slot {
    GLOBAL_START,
    GLOBAL_END,
    GLOBAL_FIELD,
    GLOBAL_EXTRA,
    GLOBAL_META,
    GLOBAL_SOURCE
};
static const struct tarn_manifest__slot global_slots[] = {
    {"_ROW_RANGE_START", true},  {"_ROW_RANGE_END", true}, {"_INDEX_FIELD_ID", true},
    {"_EXTRA_FIELD_IDS", false}, {"_INDEX_META", false},   {"_SOURCE_META", false}};

struct index_plan {
    struct tarn_manifest__plan file, vector, global;
    size_t vectors_left;
};

/* The record that lies in the array of field `name`; NULL: there is none. */
static const struct tarn_avro_node *item_of(const struct tarn_avro_node *record, const char *name)
{
    const struct tarn_avro_node *array = tarn_avro_find(record, name);
    if (array == NULL || array->kind != TARN_AVRO_ARRAY)
        return NULL;
    const struct tarn_avro_node *item = array->children[0];
    for (size_t i = 0; item->kind == TARN_AVRO_UNION && i < array->children[0]->child_count; i++)
        if (array->children[0]->children[i]->kind == TARN_AVRO_RECORD)
            item = array->children[0]->children[i];
    return item->kind == TARN_AVRO_RECORD ? item : NULL;
}

/* Fields that a file of an old version doesn't have leave their plans empty. */
static struct tarn_status *make_index_plan(struct tarn_avro_reader *r, struct index_plan *out)
{
    const struct tarn_avro_node *vector = item_of(r->schema, "_DELETIONS_VECTORS_RANGES");
    const struct tarn_avro_node *global = tarn_avro_find(r->schema, "_GLOBAL_INDEX");
    out->vectors_left = TARN_INDEX_VECTORS_MAX;
    TARN_TRY(
        tarn_manifest__plan(r, r->schema, index_slots, TARN_COUNT_OF(index_slots), &out->file));
    if (vector != NULL)
        TARN_TRY(tarn_manifest__plan(r, vector, vector_slots, TARN_COUNT_OF(vector_slots),
                                     &out->vector));
    if (global != NULL)
        TARN_TRY(tarn_manifest__plan(r, global, global_slots, TARN_COUNT_OF(global_slots),
                                     &out->global));
    return TARN_OK;
}

static struct tarn_status *read_int_count(struct tarn_avro_reader *r,
                                          const struct tarn_avro_node *node, const char *field,
                                          int32_t *out)
{
    TARN_TRY(tarn_avro_read_int(r, node, out));
    return *out >= 0 ? TARN_OK : tarn_manifest__range_error(r, field, *out);
}

static struct tarn_status *read_vector(struct tarn_avro_reader *r, struct index_plan *plan,
                                       const struct tarn_avro_node *node, bool *unknown,
                                       struct tarn_vector_range *v)
{
    TARN_TRY(tarn_avro_branch(r, node, &node));
    if (node != plan->vector.record)
        return tarn_avro_error(r, "an item of _DELETIONS_VECTORS_RANGES is no record");
    *v = (struct tarn_vector_range){.cardinality = TARN_FILE_NONE};
    for (size_t i = 0; i < node->child_count; i++) {
        const struct tarn_avro_node *child = node->children[i];
        switch (plan->vector.to[i]) {
        case VECTOR_FILE:
            TARN_TRY(tarn_manifest__read_name(r, child, "f0", &v->data_file));
            break;
        case VECTOR_OFFSET:
            TARN_TRY(read_int_count(r, child, "f1", &v->offset));
            break;
        case VECTOR_LENGTH:
            TARN_TRY(read_int_count(r, child, "f2", &v->length));
            break;
        case VECTOR_CARDINALITY:
            TARN_TRY(tarn_avro_read_long(r, child, true, TARN_FILE_NONE, &v->cardinality));
            break;
        default:
            *unknown = true;
            TARN_TRY(tarn_avro_skip(r, child));
        }
    }
    return TARN_OK;
}

static struct tarn_status *read_vectors(struct tarn_avro_reader *r, struct index_plan *plan,
                                        const struct tarn_avro_node *node,
                                        struct tarn_index_file *f)
{
    TARN_OWN(tarn_free_drop) struct tarn_vector_range *items = NULL;
    size_t n = 0, capacity = 0, more = 0;
    TARN_TRY(tarn_avro_begin_array(r, node, &node));
    f->has_vectors = node != NULL;
    while (node != NULL) {
        TARN_TRY(tarn_avro_next_items(r, &more));
        if (more == 0)
            break;
        if (more > plan->vectors_left)
            return tarn_status_new(TARN_MANIFEST_MALFORMED, "more than %d deletion vectors",
                                   TARN_INDEX_VECTORS_MAX);
        plan->vectors_left -= more;
        for (; more > 0; more--) {
            TARN_GROW(items, n, capacity);
            TARN_TRY(read_vector(r, plan, node, &f->unknown, &items[n]));
            n++;
        }
    }
    f->vectors = tarn_manifest__settle(r->arena, items, n, sizeof *items);
    f->vector_count = n;
    return TARN_OK;
}

static struct tarn_status *read_field_ids(struct tarn_avro_reader *r,
                                          const struct tarn_avro_node *node,
                                          struct tarn_global_index *g)
{
    const int64_t *longs;
    TARN_TRY(tarn_avro_read_longs(r, node, INT64_MAX, &g->has_extra_fields, &longs,
                                  &g->extra_field_count));
    if (g->extra_field_count > TARN_INDEX_FIELDS_MAX)
        return tarn_status_new(TARN_MANIFEST_MALFORMED, "%zu _EXTRA_FIELD_IDS",
                               g->extra_field_count);
    int32_t *ids = tarn_arena_calloc(r->arena, g->extra_field_count, sizeof *ids);
    for (size_t i = 0; i < g->extra_field_count; i++) {
        if (longs[i] < INT32_MIN || longs[i] > INT32_MAX)
            return tarn_manifest__range_error(r, "_EXTRA_FIELD_IDS", longs[i]);
        ids[i] = (int32_t)longs[i];
    }
    g->extra_fields = ids;
    return TARN_OK;
}

static struct tarn_status *read_global(struct tarn_avro_reader *r, const struct index_plan *plan,
                                       const struct tarn_avro_node *node, struct tarn_index_file *f)
{
    struct tarn_global_index *g = &f->global;
    TARN_TRY(tarn_avro_branch(r, node, &node));
    f->has_global = node->kind != TARN_AVRO_NULL;
    if (!f->has_global)
        return TARN_OK;
    if (node != plan->global.record)
        return tarn_avro_error(r, "_GLOBAL_INDEX is no record");
    for (size_t i = 0; i < node->child_count; i++) {
        const struct tarn_avro_node *child = node->children[i];
        switch (plan->global.to[i]) {
        case GLOBAL_START:
            TARN_TRY(tarn_avro_read_long(r, child, false, 0, &g->row_start));
            break;
        case GLOBAL_END:
            TARN_TRY(tarn_avro_read_long(r, child, false, 0, &g->row_end));
            break;
        case GLOBAL_FIELD:
            TARN_TRY(tarn_avro_read_int(r, child, &g->field_id));
            break;
        case GLOBAL_EXTRA:
            TARN_TRY(read_field_ids(r, child, g));
            break;
        case GLOBAL_META:
            TARN_TRY(tarn_avro_read_bytes(r, child, true, &g->meta));
            break;
        case GLOBAL_SOURCE:
            TARN_TRY(tarn_avro_read_bytes(r, child, true, &g->source_meta));
            break;
        default:
            f->unknown = true;
            TARN_TRY(tarn_avro_skip(r, child));
        }
    }
    return TARN_OK;
}

static struct tarn_status *read_index_field(struct tarn_avro_reader *r, struct index_plan *plan,
                                            int slot, const struct tarn_avro_node *node,
                                            struct tarn_index_file *f)
{
    switch (slot) {
    case INDEX_VERSION:
        return tarn_manifest__read_version(r, node, TARN_INDEX_VERSION);
    case INDEX_KIND: /* a stored index manifest holds what is live, so nothing is ever deleted */
        TARN_TRY(tarn_manifest__read_kind(r, node, &f->kind));
        return f->kind == TARN_ENTRY_ADD ? TARN_OK
                                         : tarn_manifest__range_error(r, "_KIND", f->kind);
    case INDEX_PARTITION:
        return tarn_avro_read_bytes(r, node, false, &f->partition);
    case INDEX_BUCKET:
        return tarn_avro_read_int(r, node, &f->bucket);
    case INDEX_TYPE:
        return tarn_avro_read_bytes(r, node, false, &f->type);
    case INDEX_NAME:
        return tarn_manifest__read_name(r, node, "_FILE_NAME", &f->name);
    case INDEX_SIZE:
        return tarn_manifest__read_count(r, node, "_FILE_SIZE", &f->size);
    case INDEX_ROWS:
        return tarn_manifest__read_count(r, node, "_ROW_COUNT", &f->row_count);
    case INDEX_VECTORS:
        return read_vectors(r, plan, node, f);
    case INDEX_EXTERNAL:
        return tarn_avro_read_bytes(r, node, true, &f->external_path);
    case INDEX_GLOBAL:
        return read_global(r, plan, node, f);
    default:
        f->unknown = true;
        return tarn_avro_skip(r, node);
    }
}

struct tarn_status *tarn_index_manifest_decode(struct tarn_slice bytes, struct tarn_arena *arena,
                                               struct tarn_index_file **out, size_t *count)
{
    struct tarn_avro_reader r;
    struct index_plan plan = {0};
    TARN_OWN(tarn_free_drop) struct tarn_index_file *items = NULL;
    size_t n = 0, capacity = 0;
    bool more = false;
    TARN_TRY(tarn_avro_open(bytes, arena, &r));
    TARN_TRY(make_index_plan(&r, &plan));
    for (;;) {
        TARN_TRY(tarn_avro_next(&r, &more));
        if (!more)
            break;
        TARN_TRY(tarn_manifest__grow((void **)&items, n, &capacity, sizeof *items));
        items[n] = (struct tarn_index_file){0};
        const struct tarn_avro_node *record = plan.file.record;
        for (size_t i = 0; i < record->child_count; i++)
            TARN_TRY(read_index_field(&r, &plan, plan.file.to[i], record->children[i], &items[n]));
        n++;
    }
    *out = tarn_manifest__settle(arena, items, n, sizeof *items);
    *count = n;
    return TARN_OK;
}

/* ---- writing */

/* clang-format off */
/* Letter by letter as Java writes it. bytes: test/golden/manifest/. */
#define OPTIONAL(name, type) "{\"name\":\"" name "\",\"type\":[\"null\"," type "],\"default\":null}"
#define PLAIN(name, type) "{\"name\":\"" name "\",\"type\":" type "}"

static const char index_schema[] =
    "{\"type\":\"record\",\"name\":\"record\",\"namespace\":\"org.apache.paimon.avro.generated\","
    "\"fields\":["
    PLAIN("_VERSION", "\"int\"") "," PLAIN("_KIND", "\"int\"") ","
    PLAIN("_PARTITION", "\"bytes\"") "," PLAIN("_BUCKET", "\"int\"") ","
    PLAIN("_INDEX_TYPE", "\"string\"") "," PLAIN("_FILE_NAME", "\"string\"") ","
    PLAIN("_FILE_SIZE", "\"long\"") "," PLAIN("_ROW_COUNT", "\"long\"") ","
    OPTIONAL("_DELETIONS_VECTORS_RANGES",
        "{\"type\":\"array\",\"items\":[\"null\",{\"type\":\"record\",\"name\":"
        "\"record__DELETIONS_VECTORS_RANGES\",\"fields\":["
        PLAIN("f0", "\"string\"") "," PLAIN("f1", "\"int\"") "," PLAIN("f2", "\"int\"") ","
        OPTIONAL("_CARDINALITY", "\"long\"") "]}]}") ","
    OPTIONAL("_EXTERNAL_PATH", "\"string\"") ","
    OPTIONAL("_GLOBAL_INDEX",
        "{\"type\":\"record\",\"name\":\"record__GLOBAL_INDEX\",\"fields\":["
        PLAIN("_ROW_RANGE_START", "\"long\"") "," PLAIN("_ROW_RANGE_END", "\"long\"") ","
        PLAIN("_INDEX_FIELD_ID", "\"int\"") ","
        OPTIONAL("_EXTRA_FIELD_IDS", "{\"type\":\"array\",\"items\":\"int\"}") ","
        OPTIONAL("_INDEX_META", "\"bytes\"") "," OPTIONAL("_SOURCE_META", "\"bytes\"") "]}")
    "]}";
/* clang-format on */

static void add_vectors(struct tarn_buf *out, const struct tarn_index_file *f)
{
    tarn_avro_add_long(out, f->has_vectors);
    if (!f->has_vectors)
        return;
    if (f->vector_count > 0)
        tarn_avro_add_long(out, (int64_t)f->vector_count);
    for (size_t i = 0; i < f->vector_count; i++) {
        const struct tarn_vector_range *v = &f->vectors[i];
        tarn_avro_add_long(out, 1); /* the record, not null */
        tarn_avro_add_bytes(out, v->data_file);
        tarn_avro_add_long(out, v->offset);
        tarn_avro_add_long(out, v->length);
        tarn_avro_add_optional_long(out, v->cardinality != TARN_FILE_NONE, v->cardinality);
    }
    tarn_avro_add_long(out, 0);
}

static void add_global(struct tarn_buf *out, const struct tarn_index_file *f)
{
    const struct tarn_global_index *g = &f->global;
    tarn_avro_add_long(out, f->has_global);
    if (!f->has_global)
        return;
    tarn_avro_add_long(out, g->row_start);
    tarn_avro_add_long(out, g->row_end);
    tarn_avro_add_long(out, g->field_id);
    tarn_avro_add_long(out, g->has_extra_fields);
    if (g->has_extra_fields) {
        if (g->extra_field_count > 0)
            tarn_avro_add_long(out, (int64_t)g->extra_field_count);
        for (size_t i = 0; i < g->extra_field_count; i++)
            tarn_avro_add_long(out, g->extra_fields[i]);
        tarn_avro_add_long(out, 0);
    }
    tarn_avro_add_optional_bytes(out, g->meta);
    tarn_avro_add_optional_bytes(out, g->source_meta);
}

struct tarn_status *tarn_index_manifest_encode(const struct tarn_index_file *files, size_t count,
                                               struct tarn_slice codec, int zstd_level,
                                               const uint8_t sync[16], struct tarn_buf *out)
{
    TARN_OWN(tarn_avro_writer_drop) struct tarn_avro_writer w = {0};
    TARN_TRY(tarn_avro_begin(&w, index_schema, codec, zstd_level, sync, out));
    for (size_t i = 0; i < count; i++) {
        const struct tarn_index_file *f = &files[i];
        if (f->unknown)
            return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                                   "index file %.*s has fields that this version doesn't know and "
                                   "can't write again",
                                   TARN_SLICE_ARG(f->name));
        tarn_avro_add_long(&w.block, TARN_INDEX_VERSION);
        tarn_avro_add_long(&w.block, f->kind);
        tarn_avro_add_bytes(&w.block, f->partition.data != NULL ? f->partition : tarn_row_empty());
        tarn_avro_add_long(&w.block, f->bucket);
        tarn_avro_add_bytes(&w.block, f->type);
        tarn_avro_add_bytes(&w.block, f->name);
        tarn_avro_add_long(&w.block, f->size);
        tarn_avro_add_long(&w.block, f->row_count);
        add_vectors(&w.block, f);
        tarn_avro_add_optional_bytes(&w.block, f->external_path);
        add_global(&w.block, f);
        TARN_TRY(tarn_avro_end_record(&w));
    }
    return tarn_avro_end(&w);
}
