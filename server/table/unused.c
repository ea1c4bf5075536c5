#include "table/internal.h"

/* Files of a bucket that nothing refers to, and nothing will. */

static bool is_live(const struct tarn_bucket_files *live, const char *name)
{
    for (size_t i = 0; i < live->file_count; i++)
        if (tarn_slice_is(live->files[i].file.name, name))
            return true;
    return false;
}

struct tarn_status *tarn_table_remove_unused(struct tarn_op *op, struct tarn_table *table,
                                             struct tarn_slice partition, int32_t bucket,
                                             const char *part, size_t *count)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = tarn_table_last_view(table);
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    struct tarn_object *objects;
    struct tarn_bucket_files live;
    size_t n, unused_count = 0;
    *count = 0;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_bucket_path(&view->schema, &view->options, partition, bucket, &path));
    TARN_TRY(tarn_store_list(table->env->store, op,
                             tarn_table__key(op, table, "%s", tarn_buf_cstr(&path)), false,
                             &objects, &n));
    const char **unused = tarn_arena_calloc(op->arena, n + 1, sizeof *unused);
    for (size_t i = 0; i < n; i++) {
        const char *key = tarn_arena_str(op->arena, objects[i].key);
        if (!objects[i].is_folder && strstr(strrchr(key, '/'), part) != NULL)
            unused[unused_count++] = key;
    }
    if (unused_count == 0)
        return TARN_OK;
    TARN_TRY(tarn_table_bucket_picture(op, table, partition, bucket, INT64_MAX, SIZE_MAX, &live));
    for (size_t i = 0; i < unused_count; i++) {
        if (is_live(&live, strrchr(unused[i], '/') + 1))
            continue;
        TARN_TRY(tarn_store_remove(table->env->store, op, unused[i]));
        ++*count;
    }
    return TARN_OK;
}
