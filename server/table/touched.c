#include "table/pages_internal.h"

/* Which buckets changed since somebody asked: what compaction looks at. */

void tarn_table__touch_bucket(struct tarn_pages *pages, struct tarn_slice bucket)
{
    if (pages->touched_all)
        return;
    if (tarn_map_count(pages->touched) < TARN_TOUCHED_MAX)
        tarn_map_set(pages->touched, bucket, pages);
    else
        pages->touched_all = true;
}

void tarn_table_take_touched(struct tarn_op *op, struct tarn_table *table, struct tarn_touched *out)
{
    struct tarn_map *fresh = tarn_map_new();
    pthread_mutex_lock(&table->index_lock);
    TARN_OWN(tarn_map_drop) struct tarn_map *touched = table->pages->touched;
    *out = (struct tarn_touched){.all = table->pages->touched_all};
    table->pages->touched = fresh;
    table->pages->touched_all = false;
    pthread_mutex_unlock(&table->index_lock);
    size_t n = tarn_map_count(touched), cursor = 0;
    struct tarn_touched_bucket *list = tarn_arena_calloc(op->arena, n + 1, sizeof *list);
    struct tarn_slice key;
    void *value;
    while (!out->all && tarn_map_next(touched, &cursor, &key, &value))
        if (tarn_table__parse_bucket(key, op->arena, &list[out->count].partition,
                                     &list[out->count].bucket))
            out->count++;
    out->buckets = list;
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
    tarn_table__touch_bucket(table->pages, tarn_buf_slice(&key));
    pthread_mutex_unlock(&table->index_lock);
}
