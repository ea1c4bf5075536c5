#include "table/plan.h"

/*
 * Deletion vectors for plans: the index manifest of the plan's snapshot says where each data file's is. What it holds is true whatever the
 * table's options say by now, so it is asked wherever there is one.
 */

struct tarn_vectors {
    struct tarn_map *by_file; /* partition, bucket, data file -> struct tarn_vector_at */
    struct tarn_arena *arena;
    struct tarn_buf key;
};

void tarn_plan__vectors_free(struct tarn_vectors *vectors)
{
    if (vectors == NULL)
        return;
    tarn_map_free(vectors->by_file);
    tarn_arena_free(vectors->arena);
    tarn_buf_drop(&vectors->key);
    free(vectors);
}

static void file_key(struct tarn_slice partition, int32_t bucket, struct tarn_slice data_file,
                     struct tarn_buf *out)
{
    tarn_buf_clear(out);
    tarn_key_add_bytes(out, partition);
    tarn_key_add_i64(out, bucket);
    tarn_buf_add_slice(out, data_file);
}

static struct tarn_status *add_file(struct tarn_planner *p, struct tarn_vectors *vectors,
                                    const struct tarn_index_file *f)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf fields = {0};
    struct tarn_slice path;
    TARN_TRY(tarn_index_file_path(p->plan.schema, p->plan.options, f, vectors->arena, &path));
    for (size_t i = 0; i < f->vector_count; i++) {
        const struct tarn_vector_range *range = &f->vectors[i];
        struct tarn_vector_at *at = tarn_arena_calloc(vectors->arena, 1, sizeof *at);
        at->ref = (struct tarn_vector_ref){path, range->offset, range->length, range->cardinality};
        tarn_buf_clear(&fields);
        tarn_manifest_vector_fields(&at->ref, &fields);
        at->fields = tarn_arena_copy(vectors->arena, tarn_buf_slice(&fields));
        file_key(f->partition, f->bucket, range->data_file, &vectors->key);
        tarn_map_set(vectors->by_file, tarn_buf_slice(&vectors->key), at);
    }
    return TARN_OK;
}

/* Did the snapshot go, by expiry or because others rolled it back? A look tells. */
static struct tarn_status *check_gone(struct tarn_planner *p)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look_now(p->op, p->table, &view));
    return tarn_table__pages_check(p->table, p->epoch, p->plan.snapshot.id);
}

/* What is gone went with its snapshot: that is said then. */
static struct tarn_status *read_files(struct tarn_planner *p, struct tarn_arena *arena,
                                      struct tarn_index_file **files, size_t *count)
{
    struct tarn_slice name = p->plan.snapshot.index_manifest;
    struct tarn_status *s =
        tarn_table__read_index_manifest(p->op, p->table, name, arena, files, count);
    if (tarn_status_reason(s) == TARN_OBJECT_NOT_FOUND && !p->is_listed) {
        struct tarn_status *why = check_gone(p);
        if (why != TARN_OK) {
            tarn_status_free(s);
            return why;
        }
    }
    return s == TARN_OK ? s
                        : tarn_status_wrap(s, "table %s, index manifest %.*s",
                                           tarn_table_name(p->table), TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_plan__load_vectors(struct tarn_planner *p)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_index_file *files;
    size_t count;
    if (p->plan.snapshot.index_manifest.data == NULL)
        return TARN_OK;
    TARN_TRY(read_files(p, arena, &files, &count));
    for (size_t i = 0; i < count; i++) {
        if (!tarn_slice_is(files[i].type, TARN_INDEX_DELETION_VECTORS))
            continue;
        if (p->vectors == NULL) {
            p->vectors = tarn_calloc(1, sizeof *p->vectors);
            p->vectors->by_file = tarn_map_new();
            p->vectors->arena = tarn_arena_new();
        }
        TARN_TRY(add_file(p, p->vectors, &files[i]));
    }
    return TARN_OK;
}

const struct tarn_vector_at *tarn_plan__find_vector(struct tarn_planner *p,
                                                    struct tarn_slice partition, int32_t bucket,
                                                    struct tarn_slice data_file)
{
    file_key(partition, bucket, data_file, &p->vectors->key);
    return tarn_map_find(p->vectors->by_file, tarn_buf_slice(&p->vectors->key));
}

/* --- of one bucket, for compaction --- */

static struct tarn_status *attach(struct tarn_op *op, const struct tarn_table_view *view,
                                  const struct tarn_index_file *f, struct tarn_bucket_files *bucket)
{
    struct tarn_slice path;
    TARN_TRY(tarn_index_file_path(&view->schema, &view->options, f, op->arena, &path));
    TARN_OWN(tarn_map_drop) struct tarn_map *by_name = tarn_map_new();
    for (size_t i = 0; i < bucket->file_count; i++)
        tarn_map_set(by_name, bucket->files[i].file.name, &bucket->files[i].file);
    for (size_t i = 0; i < f->vector_count; i++) {
        const struct tarn_vector_range *range = &f->vectors[i];
        struct tarn_data_file *file = tarn_map_find(by_name, range->data_file);
        if (file != NULL)
            file->vector =
                (struct tarn_vector_ref){path, range->offset, range->length, range->cardinality};
    }
    return TARN_OK;
}

struct tarn_status *tarn_table_vector_files(struct tarn_op *op, struct tarn_table *table,
                                            const struct tarn_snapshot *snapshot,
                                            struct tarn_index_file **out, size_t *count)
{
    struct tarn_index_file *all;
    size_t all_count, n = 0;
    *out = NULL;
    *count = 0;
    if (snapshot->index_manifest.data == NULL)
        return TARN_OK;
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_status *s = tarn_table__read_index_manifest(op, table, snapshot->index_manifest,
                                                            op->arena, &all, &all_count);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s, index manifest %.*s", tarn_table_name(table),
                                TARN_SLICE_ARG(snapshot->index_manifest));
    for (size_t i = 0; i < all_count; i++)
        if (tarn_slice_is(all[i].type, TARN_INDEX_DELETION_VECTORS))
            all[n++] = all[i];
    *out = all;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_table_bucket_vectors(struct tarn_op *op, struct tarn_table *table,
                                              const struct tarn_table_view *view,
                                              struct tarn_bucket_files *bucket,
                                              struct tarn_index_file **indexes, size_t *count)
{
    struct tarn_index_file *all = NULL;
    size_t all_count = 0, n = 0;
    if (view->has_snapshot)
        TARN_TRY(tarn_table_vector_files(op, table, &view->snapshot, &all, &all_count));
    for (size_t i = 0; i < all_count; i++) {
        if (all[i].bucket != bucket->bucket ||
            !tarn_slice_equal(all[i].partition, bucket->partition))
            continue;
        TARN_TRY(attach(op, view, &all[i], bucket));
        all[n++] = all[i];
    }
    *indexes = all;
    *count = n;
    return TARN_OK;
}
