#include "table/pages_internal.h"

/* Which buckets changed since somebody asked, and how: what compaction keeps its pictures by. */

struct tarn_file_change tarn_file_change_of(const struct tarn_data_file *f, bool added)
{
    return (struct tarn_file_change){.added = added,
                                     .level = f->level,
                                     .name_hash = tarn_xxh64(f->name, 0),
                                     .size = f->size,
                                     .row_count = f->row_count,
                                     .delete_row_count = f->delete_row_count,
                                     .min_sequence = f->min_sequence,
                                     .max_sequence = f->max_sequence,
                                     .creation_time_ms = f->creation_time_ms};
}

struct touched_bucket {
    bool unknown;
    struct tarn_file_change *changes;
    size_t count, capacity;
};

void tarn_table__touched_free(struct tarn_map *touched)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(touched, &cursor, &key, &value)) {
        free(((struct touched_bucket *)value)->changes);
        free(value);
    }
    tarn_map_free(touched);
}

/* NULL: there are too many, it is all of them from now on. */
static struct touched_bucket *touched_of(struct tarn_pages *pages, struct tarn_slice bucket)
{
    struct touched_bucket *t = tarn_map_find(pages->touched, bucket);
    if (t != NULL)
        return t;
    if (tarn_map_count(pages->touched) >= TARN_TOUCHED_MAX) {
        pages->touched_all = true;
        return NULL;
    }
    t = tarn_calloc(1, sizeof *t);
    tarn_map_set(pages->touched, bucket, t);
    return t;
}

void tarn_table__touch_bucket(struct tarn_pages *pages, struct tarn_slice bucket,
                              const struct tarn_file_change *change)
{
    struct touched_bucket *t = pages->touched_all ? NULL : touched_of(pages, bucket);
    if (t == NULL || t->unknown)
        return;
    if (change == NULL || pages->touched_changes >= TARN_TOUCHED_CHANGES_MAX) {
        t->unknown = true;
        return;
    }
    TARN_GROW(t->changes, t->count, t->capacity);
    t->changes[t->count++] = *change;
    pages->touched_changes++;
}

static void give_bucket(struct tarn_arena *arena, const struct touched_bucket *from,
                        struct tarn_touched_bucket *to)
{
    to->unknown = from->unknown;
    if (from->unknown || from->count == 0)
        return;
    struct tarn_file_change *changes = tarn_arena_calloc(arena, from->count, sizeof *changes);
    memcpy(changes, from->changes, from->count * sizeof *changes);
    to->changes = changes;
    to->change_count = from->count;
}

void tarn_table_take_touched(struct tarn_op *op, struct tarn_table *table, struct tarn_touched *out)
{
    struct tarn_map *fresh = tarn_map_new();
    pthread_mutex_lock(&table->index_lock);
    struct tarn_map *touched = table->pages->touched;
    *out = (struct tarn_touched){.all = table->pages->touched_all};
    table->pages->touched = fresh;
    table->pages->touched_changes = 0;
    table->pages->touched_all = false;
    pthread_mutex_unlock(&table->index_lock);
    size_t n = tarn_map_count(touched), cursor = 0;
    struct tarn_touched_bucket *list = tarn_arena_calloc(op->arena, n + 1, sizeof *list);
    struct tarn_slice key;
    void *value;
    while (!out->all && tarn_map_next(touched, &cursor, &key, &value)) {
        struct tarn_touched_bucket *to = &list[out->count];
        if (!tarn_table__parse_bucket(key, op->arena, &to->partition, &to->bucket))
            continue;
        give_bucket(op->arena, value, to);
        out->count++;
    }
    out->buckets = list;
    tarn_table__touched_free(touched);
}

int64_t tarn_table_change_stamp(struct tarn_table *table)
{
    pthread_mutex_lock(&table->index_lock);
    int64_t stamp = table->pages->change_stamp;
    pthread_mutex_unlock(&table->index_lock);
    return stamp;
}

void tarn_table_touch_all(struct tarn_table *table)
{
    pthread_mutex_lock(&table->index_lock);
    table->pages->touched_all = true;
    pthread_mutex_unlock(&table->index_lock);
}

void tarn_table_touch(struct tarn_table *table, struct tarn_slice partition, int32_t bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_key_add_bytes(&key, partition);
    tarn_key_add_i64(&key, bucket);
    pthread_mutex_lock(&table->index_lock);
    if (!table->pages->touched_all)
        touched_of(table->pages, tarn_buf_slice(&key)); /* nothing came or went */
    pthread_mutex_unlock(&table->index_lock);
}
