#include "table/internal.h"

/*
 * Writing manifests and manifest lists, and merging small manifests by Paimon's thresholds. What an
 * attempt writes is kept in one list: it is put at once, and a dead attempt's files can be removed again.
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
    objects->list[objects->count++] = (struct tarn_new_object){
        tarn_table__key(op, table, "manifest/%s", name), tarn_arena_copy(op->arena, bytes)};
    return tarn_slice_str(name);
}

struct tarn_status *tarn_table__put_objects(struct tarn_op *op, struct tarn_table *table,
                                            const struct tarn_objects *objects)
{
    return tarn_store_put_many(table->env->store, op, objects->list, objects->count);
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

/* --- merging (docs/format.md, "Manifest merging") --- */

/* The entries of some manifests, in order, with ADD and DELETE of one file gone together. */
struct merger {
    struct tarn_manifest_entry *entries;
    size_t count, capacity;
    struct tarn_map *adds; /* identity -> index + 1 of the ADD in entries */
    bool unknown;          /* an entry holds fields we can't write: leave these manifests alone */
};

static void merger_fini(struct merger *m)
{
    free(m->entries);
    tarn_map_free(m->adds);
}

static struct tarn_status *merge_manifest(struct tarn_op *op, struct tarn_table *table,
                                          struct merger *m, const struct tarn_manifest_file *file)
{
    struct tarn_manifest_entry *entries;
    size_t count;
    TARN_TRY(tarn_table__read_manifest(op, table, file->name, op->arena, &entries, &count));
    for (size_t i = 0; i < count; i++) {
        m->unknown |= entries[i].file.unknown;
        TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
        tarn_manifest_identity(&entries[i], &identity);
        if (entries[i].kind == TARN_ENTRY_DELETE) {
            uintptr_t at = (uintptr_t)tarn_map_remove(m->adds, tarn_buf_slice(&identity));
            if (at != 0) {
                m->entries[at - 1].bucket = INT32_MIN; /* gone: swept below */
                continue;
            }
        }
        TARN_GROW(m->entries, m->count, m->capacity);
        m->entries[m->count++] = entries[i];
        if (entries[i].kind == TARN_ENTRY_ADD)
            tarn_map_set(m->adds, tarn_buf_slice(&identity), (void *)(uintptr_t)m->count);
    }
    return TARN_OK;
}

/* Appends to `out` what `files` become: one or more new manifests, or themselves where they can't be reobjects. */
static struct tarn_status *merge_some(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_manifest_file *files, size_t count,
                                      struct tarn_manifest_file *out, size_t *out_count,
                                      struct tarn_objects *objects)
{
    TARN_OWN(merger_fini) struct merger m = {NULL, 0, 0, tarn_map_new(), false};
    for (size_t i = 0; i < count; i++) {
        TARN_TRY(merge_manifest(op, table, &m, &files[i]));
        m.unknown |= files[i].unknown;
    }
    if (m.unknown) {
        memcpy(out + *out_count, files, count * sizeof *files);
        *out_count += count;
        return TARN_OK;
    }
    size_t kept = 0;
    for (size_t i = 0; i < m.count; i++)
        if (m.entries[i].bucket != INT32_MIN)
            m.entries[kept++] = m.entries[i];
    struct tarn_manifest_file *merged;
    size_t merged_count;
    TARN_TRY(
        tarn_table__encode_manifests(op, table, m.entries, kept, &merged, &merged_count, objects));
    tarn_assert(merged_count <= count);
    if (merged_count > 0)
        memcpy(out + *out_count, merged, merged_count * sizeof *merged);
    *out_count += merged_count;
    return TARN_OK;
}

static bool must_change(const struct tarn_manifest_file *file, int64_t target)
{
    return file->deleted_count > 0 || file->size < target;
}

/* Paimon's full compaction: everything that is small or deletes, once there is enough of it. Manifests that
 * neither delete nor are small stay where no DELETE can be about them; here: where nothing is deleted at all. */
static struct tarn_status *merge_full(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_manifest_file *in, size_t count,
                                      struct tarn_manifest_file *out, size_t *out_count, bool *done,
                                      struct tarn_objects *objects)
{
    const struct tarn_options *options = &table->view->view.options;
    int64_t changing = 0, deletes = 0;
    size_t changing_count = 0;
    for (size_t i = 0; i < count; i++) {
        deletes += in[i].deleted_count;
        if (must_change(&in[i], options->manifest_target_size)) {
            changing += in[i].size;
            changing_count++;
        }
    }
    *done = changing >= options->manifest_full_threshold && changing_count > 1;
    if (!*done)
        return TARN_OK;
    struct tarn_manifest_file *some = tarn_arena_calloc(op->arena, count + 1, sizeof *some);
    size_t some_count = 0;
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (deletes > 0 || must_change(&in[i], options->manifest_target_size))
            some[some_count++] = in[i];
        else
            out[(*out_count)++] = in[i];
    }
    return merge_some(op, table, some, some_count, out, out_count, objects);
}

/* Paimon's minor compaction: neighbours are merged once they fill a manifest, or are very many. */
static struct tarn_status *merge_minor(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_manifest_file *in, size_t count,
                                       struct tarn_manifest_file *out, size_t *out_count,
                                       struct tarn_objects *objects)
{
    const struct tarn_options *options = &table->view->view.options;
    size_t begin = 0;
    int64_t size = 0;
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        size += in[i].size;
        if (size < options->manifest_target_size)
            continue;
        if (i == begin)
            out[(*out_count)++] = in[i];
        else
            TARN_TRY(merge_some(op, table, in + begin, i + 1 - begin, out, out_count, objects));
        begin = i + 1;
        size = 0;
    }
    if (count - begin >= (size_t)TARN_MAX(options->manifest_merge_min_count, 2))
        return merge_some(op, table, in + begin, count - begin, out, out_count, objects);
    for (; begin < count; begin++)
        out[(*out_count)++] = in[begin];
    return TARN_OK;
}

struct tarn_status *tarn_table__merge_base(struct tarn_op *op, struct tarn_table *table,
                                           const struct tarn_head *head,
                                           struct tarn_manifest_file **files, size_t *count,
                                           struct tarn_objects *objects)
{
    *files = tarn_arena_calloc(op->arena, head->manifest_count + 1, sizeof **files);
    bool done;
    TARN_TRY(merge_full(op, table, head->manifests, head->manifest_count, *files, count, &done,
                        objects));
    return done ? TARN_OK
                : merge_minor(op, table, head->manifests, head->manifest_count, *files, count,
                              objects);
}
