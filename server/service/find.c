#include "service/internal.h"

/* What every operation begins with: whom is it about, and may the caller? */

struct tarn_status *tarn_service__check_name(const char *what, struct tarn_slice name)
{
    bool has_nul = name.size > 0 && memchr(name.data, 0, name.size) != NULL;
    if (!has_nul && tarn_utf8_valid(name))
        return TARN_OK;
    return tarn_status_new(TARN_NAME_INVALID, "the %s %s", what,
                           has_nul ? "has a NUL in it" : "is not UTF-8");
}

static const char *text_or_null(struct tarn_op *op, struct tarn_slice s)
{
    return s.size == 0 ? NULL : tarn_arena_str(op->arena, s);
}

struct tarn_status *tarn_service__check(struct tarn_op *op, struct tarn_service *service,
                                        enum tarn_action action, struct tarn_slice database)
{
    TARN_TRY(tarn_service__check_name("database name", database));
    return tarn_access_check(service->access, op, action, text_or_null(op, database), NULL);
}

struct tarn_status *tarn_service__check_table(struct tarn_op *op, struct tarn_service *service,
                                              enum tarn_action action, struct tarn_slice database,
                                              struct tarn_slice object)
{
    struct tarn_slice name, branch;
    tarn_catalog_split_branch(object, &name, &branch);
    return tarn_access_check(service->access, op, action, tarn_arena_str(op->arena, database),
                             tarn_arena_str(op->arena, name));
}

struct tarn_status *tarn_service__table(struct tarn_op *op, struct tarn_service *service,
                                        struct tarn_table_ref ref, enum tarn_action action,
                                        struct tarn_table **out)
{
    if (ref.database.size == 0 && ref.table.size == 0 && ref.uuid.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the request names no table");
    if (ref.uuid.size > 0 && !tarn_uuid_valid(ref.uuid))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "table.uuid is no uuid");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    if (ref.database.size == 0 && ref.table.size == 0) {
        TARN_TRY(tarn_catalog_table_by_uuid(op, service->catalog, ref.uuid, &table));
        tarn_table_names(op, table, &ref.database, &ref.table);
        TARN_TRY(tarn_service__check_table(op, service, action, ref.database, ref.table));
    } else {
        TARN_TRY(tarn_service__check_name("database name", ref.database));
        TARN_TRY(tarn_service__check_name("table name", ref.table));
        TARN_TRY(tarn_service__check_table(op, service, action, ref.database, ref.table));
        /* Who only looks may do so while the store is away. */
        TARN_TRY((action == TARN_ACTION_READ ? tarn_catalog_table_or_last : tarn_catalog_table)(
            op, service->catalog, ref.database, ref.table, ref.uuid, &table));
    }
    *out = tarn_move(table);
    return TARN_OK;
}

struct tarn_status *tarn_service__find(struct tarn_op *op, struct tarn_service *service,
                                       struct tarn_table_ref ref, enum tarn_action action,
                                       struct tarn_table **table, struct tarn_catalog_entry **entry)
{
    *entry = NULL;
    struct tarn_status *s = tarn_service__table(op, service, ref, action, table);
    if (tarn_status_reason(s) != TARN_ENTRY_ONLY)
        return s;
    bool by_uuid = ref.database.size == 0 && ref.table.size == 0;
    if (by_uuid &&
        !tarn_catalog_find_entry_names(op, service->catalog, ref.uuid, &ref.database, &ref.table))
        return s; /* dropped at this very moment */
    tarn_status_free(s);
    if (by_uuid)
        TARN_TRY(tarn_service__check_table(op, service, action, ref.database, ref.table));
    struct tarn_catalog_entry *found = tarn_arena_calloc(op->arena, 1, sizeof *found);
    TARN_TRY(tarn_catalog_entry(op, service->catalog, ref.database, ref.table, ref.uuid, found));
    *entry = found;
    return TARN_OK;
}

size_t tarn_service__page_size(struct tarn_page page)
{
    if (page.size <= 0)
        return TARN_PAGE_SIZE;
    return (size_t)TARN_MIN(page.size, (int64_t)TARN_PAGE_SIZE_MAX);
}

const char *tarn_service__partition_text(struct tarn_op *op, const struct tarn_schema *schema,
                                         struct tarn_slice partition)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_status *s = tarn_partition_print(schema, partition, &text);
    if (s != TARN_OK) { /* one damaged row must not hide all others of a list */
        tarn_status_free(s);
        return "(damaged)";
    }
    return tarn_arena_str(op->arena, tarn_buf_slice(&text));
}

struct tarn_status *tarn_service__bucket_path(struct tarn_op *op, const struct tarn_schema *schema,
                                              const struct tarn_options *options,
                                              struct tarn_slice partition, int32_t bucket,
                                              const char **out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    TARN_TRY(tarn_bucket_path(schema, options, partition, bucket, &path));
    *out = tarn_arena_str(op->arena, tarn_buf_slice(&path));
    return TARN_OK;
}

struct tarn_slice tarn_service__pack(struct tarn_op *op, const struct tarn_manifest_entry *entry,
                                     bool with_stats)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
    tarn_manifest_entry_pack(entry, with_stats, &packed);
    return tarn_arena_copy(op->arena, tarn_buf_slice(&packed));
}

struct tarn_status *tarn_service__unpack(struct tarn_op *op, const struct tarn_slice *packed,
                                         size_t count, struct tarn_manifest_entry **out)
{
    if (count > TARN_COMMIT_ENTRIES_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "%zu entries in one commit, at most %d", count,
                               TARN_COMMIT_ENTRIES_MAX);
    struct tarn_manifest_entry *list = tarn_arena_calloc(op->arena, count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_manifest_entry_unpack(packed[i], op->arena, &list[i]));
    *out = list;
    return TARN_OK;
}

static struct tarn_slice schema_json(struct tarn_op *op, const struct tarn_schema *schema)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_schema_encode(schema, &text);
    return tarn_arena_copy(op->arena, tarn_buf_slice(&text));
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct tarn_status *tarn_service__describe(struct tarn_op *op, struct tarn_service *service,
                                           struct tarn_table *table,
                                           const struct tarn_schema *reading,
                                           const int64_t *schema_ids, size_t count,
                                           struct tarn_table_description *out)
{
    int64_t *ids = tarn_arena_alloc(op->arena, (count + 1) * sizeof *ids);
    if (count > 0)
        memcpy(ids, schema_ids, count * sizeof *ids);
    ids[count] = reading->id;
    qsort(ids, count + 1, sizeof *ids, by_number);
    size_t distinct = 0;
    for (size_t i = 0; i <= count; i++)
        if (i == 0 || ids[i] != ids[i - 1])
            ids[distinct++] = ids[i];
    struct tarn_slice *schemas = tarn_arena_calloc(op->arena, distinct, sizeof *schemas);
    for (size_t i = 0; i < distinct; i++) {
        const struct tarn_schema *schema = reading;
        if (ids[i] != reading->id)
            TARN_TRY(tarn_table_schema(op, table, ids[i], &schema));
        schemas[i] = schema_json(op, schema);
    }
    *out = (struct tarn_table_description){
        .store_uri = tarn_store_uri(tarn_table_store(table)),
        .path = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_path(table))),
        .uuid = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_uuid(table))),
        .name = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_name(table))),
        .schemas = schemas,
        .schema_count = distinct,
        .schema_id = reading->id,
    };
    return TARN_OK;
}
