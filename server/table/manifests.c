#include "table/internal.h"

/*
 * Writing manifests and manifest lists. What an attempt writes is kept in one list: it is put at once, and a dead
 * attempt's files can be removed again.
 */

struct tarn_slice tarn_table__add_object(struct tarn_op *op, struct tarn_table *table,
                                         const char *kind, struct tarn_slice bytes,
                                         struct tarn_objects *objects)
{
    if (objects->count == objects->capacity) {
        size_t capacity = objects->capacity == 0 ? 8 : objects->capacity * 2;
        struct tarn_new_object *list = tarn_arena_calloc(op->arena, capacity, sizeof *list);
        if (objects->count > 0)
            memcpy(list, objects->list, objects->count * sizeof *list);
        objects->list = list;
        objects->capacity = capacity;
    }
    char uuid[TARN_UUID_SIZE]; /* nobody else can have this name */
    tarn_uuid_random(uuid);
    char *name = tarn_arena_printf(op->arena, "%s-%s-0", kind, uuid);
    objects->list[objects->count++] =
        (struct tarn_new_object){.key = tarn_table__key(op, table, "manifest/%s", name),
                                 .body = tarn_arena_copy(op->arena, bytes)};
    return tarn_slice_str(name);
}

void tarn_table__remove_objects(struct tarn_op *op, struct tarn_table *table,
                                const struct tarn_objects *objects)
{
    for (size_t i = 0; i < objects->count; i++)
        tarn_log_status(op, TARN_WARN, "table.left_behind",
                        tarn_store_remove(table->env->store, op, objects->list[i].key));
}

/* Fields of a newer version can't be objects again: what has them is carried on unread or not at all. */
static struct tarn_status *refuse_unknown(const struct tarn_table *table, const char *what,
                                          struct tarn_slice name)
{
    return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                           "table %s: the record of %s %.*s has fields that this version of Tarn "
                           "does not know and would lose",
                           tarn_table_name(table), what, TARN_SLICE_ARG(name));
}

static struct tarn_status *encode_one(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_manifest_entry *entries, size_t count,
                                      struct tarn_manifest_file *file, struct tarn_objects *objects)
{
    const struct tarn_table_view *view = &table->view->view;
    for (size_t i = 0; i < count; i++)
        if (entries[i].file.unknown)
            return refuse_unknown(table, "file", entries[i].file.name);
    uint8_t sync[16];
    tarn_random_bytes(sync, sizeof sync);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    TARN_TRY(tarn_manifest_encode(entries, count, view->options.manifest_compression,
                                  view->options.zstd_level, sync, &bytes));
    TARN_TRY(tarn_manifest_summarize(entries, count, tarn_partition_types(&view->schema, op->arena),
                                     view->schema.partition_key_count, view->schema.id, op->arena,
                                     file));
    file->name = tarn_table__add_object(op, table, "manifest", tarn_buf_slice(&bytes), objects);
    file->size = (int64_t)bytes.size;
    return TARN_OK;
}

struct tarn_status *tarn_table__encode_manifests(struct tarn_op *op, struct tarn_table *table,
                                                 const struct tarn_manifest_entry *entries,
                                                 size_t count, struct tarn_manifest_file **files,
                                                 size_t *file_count, struct tarn_objects *objects)
{
    size_t n = (count + TARN_MANIFEST_ENTRIES_MAX - 1) / TARN_MANIFEST_ENTRIES_MAX;
    *files = tarn_arena_calloc(op->arena, n + 1, sizeof **files);
    *file_count = n;
    for (size_t i = 0; i < n; i++) {
        size_t begin = i * TARN_MANIFEST_ENTRIES_MAX;
        size_t size = TARN_MIN((size_t)TARN_MANIFEST_ENTRIES_MAX, count - begin);
        TARN_TRY(encode_one(op, table, entries + begin, size, &(*files)[i], objects));
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__encode_list(struct tarn_op *op, struct tarn_table *table,
                                            const struct tarn_manifest_file *files, size_t count,
                                            struct tarn_slice *name, int64_t *size,
                                            struct tarn_objects *objects)
{
    const struct tarn_table_view *view = &table->view->view;
    for (size_t i = 0; i < count; i++)
        if (files[i].unknown)
            return refuse_unknown(table, "manifest", files[i].name);
    uint8_t sync[16];
    tarn_random_bytes(sync, sizeof sync);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    TARN_TRY(tarn_manifest_list_encode(files, count, view->options.manifest_compression,
                                       view->options.zstd_level, sync, &bytes));
    *size = (int64_t)bytes.size;
    *name = tarn_table__add_object(op, table, "manifest-list", tarn_buf_slice(&bytes), objects);
    return TARN_OK;
}
