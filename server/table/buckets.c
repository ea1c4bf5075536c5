#include "table/index.h"

/* Pictures of buckets, for compaction: what is live now. */

struct tarn_status *tarn_table_buckets(struct tarn_op *op, struct tarn_table *table,
                                       struct tarn_slice partition, struct tarn_bucket_files **out,
                                       size_t *count)
{
    TARN_TRY(tarn_table__check_here(table));
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(table->uuid, partition, NULL, &prefix);
    struct tarn_live *live;
    size_t live_count;
    TARN_TRY(tarn_table__live_list(table, tarn_buf_slice(&prefix), op->arena, &live, &live_count));
    struct tarn_manifest_entry *files = tarn_arena_calloc(op->arena, live_count + 1, sizeof *files);
    struct tarn_bucket_files *list = tarn_arena_calloc(op->arena, live_count + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < live_count; i++) { /* keys come in order of partition and bucket */
        files[i] = live[i].entry;
        if (n == 0 || list[n - 1].bucket != files[i].bucket ||
            !tarn_slice_equal(list[n - 1].partition, files[i].partition))
            list[n++] = (struct tarn_bucket_files){files[i].partition, files[i].bucket,
                                                   files[i].total_buckets, &files[i], 0};
        list[n - 1].file_count++;
    }
    *out = list;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_table_bucket_list(struct tarn_op *op, struct tarn_table *table,
                                           struct tarn_touched_bucket **out, size_t *count)
{
    TARN_OWN(tarn_page_bucket_fini) struct tarn_page_bucket bucket = {0};
    TARN_OWN(tarn_free_drop) struct tarn_touched_bucket *list = NULL;
    size_t n = 0, capacity = 0;
    bool found;
    TARN_TRY(tarn_table__check_here(table));
    for (;;) {
        TARN_TRY(tarn_table__pages_next(op, table, tarn_buf_slice(&bucket.key), &found, &bucket));
        if (!found)
            break;
        TARN_GROW(list, n, capacity);
        if (tarn_table__parse_bucket(tarn_buf_slice(&bucket.key), op->arena, &list[n].partition,
                                     &list[n].bucket))
            n++;
    }
    *out = tarn_arena_calloc(op->arena, n + 1, sizeof **out);
    if (n > 0)
        memcpy(*out, list, n * sizeof **out);
    *count = n;
    return TARN_OK;
}

static void add_picture(struct tarn_op *op, const struct tarn_page_content *page,
                        int64_t size_below, size_t most, struct tarn_bucket_files *out,
                        size_t *capacity)
{
    for (size_t i = 0; i < page->count && out->file_count < most; i++) {
        struct tarn_manifest_entry entry;
        struct tarn_slice packed;
        int64_t added_by;
        if (!tarn_table__split_value(tarn_page_entry(page, i), &added_by, &packed))
            continue;
        tarn_status_free(tarn_manifest_entry_view(packed, NULL, &entry));
        if (entry.file.size >= size_below)
            continue;
        TARN_GROW(out->files, out->file_count, *capacity);
        packed = tarn_arena_copy(op->arena, packed);
        tarn_status_free(
            tarn_manifest_entry_view(packed, op->arena, &out->files[out->file_count++]));
    }
}

struct tarn_status *tarn_table_bucket_picture(struct tarn_op *op, struct tarn_table *table,
                                              struct tarn_slice partition, int32_t bucket,
                                              int64_t size_below, size_t most,
                                              struct tarn_bucket_files *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_page_set_fini) struct tarn_page_set set = {0};
    struct tarn_bucket_files made = {.partition = partition, .bucket = bucket};
    size_t capacity = 0;
    TARN_TRY(tarn_table__check_here(table));
    tarn_key_add_bytes(&key, partition);
    tarn_key_add_i64(&key, bucket);
    TARN_TRY(tarn_table__pages_load(op, table, tarn_buf_slice(&key), tarn_table__pages_epoch(table),
                                    INT64_MAX, false, NULL, NULL, &set));
    for (size_t i = 0; i < set.count; i++)
        add_picture(op, set.pages[i].content, size_below, most, &made, &capacity);
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *files = made.files;
    made.total_buckets = made.file_count > 0 ? files[0].total_buckets : 0;
    made.files = tarn_arena_calloc(op->arena, made.file_count + 1, sizeof *made.files);
    if (made.file_count > 0)
        memcpy(made.files, files, made.file_count * sizeof *files);
    *out = made;
    return TARN_OK;
}

/* One moment of LIVE and STATS, whose keys are the same ones. */
static struct tarn_status *list_with_stats(struct tarn_table *table, struct tarn_slice prefix,
                                           struct tarn_arena *arena, struct tarn_bucket_files *out)
{
    struct tarn_state *state = table->env->state;
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *files = NULL;
    TARN_OWN(tarn_state_view_drop) struct tarn_state_view *view = tarn_state_view_new(state);
    size_t n = 0, capacity = 0;
    tarn_buf_add_slice(&to, prefix);
    tarn_buf_add_byte(&to, 0xff);
    struct tarn_state_range range = {prefix, tarn_buf_slice(&to), view, false};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *lives = tarn_state_iterator_open(state, TARN_FAMILY_LIVE, &range);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *all_stats =
        tarn_state_iterator_open(state, TARN_FAMILY_STATS, &range);
    struct tarn_slice key, value, stats;
    while (tarn_state_iterator_next(lives, &key, &value)) {
        struct tarn_live live;
        if (!tarn_state_iterator_find(all_stats, key, &stats))
            return tarn_table__damaged_value(value);
        TARN_GROW(files, n, capacity);
        TARN_TRY(tarn_table__live_decode(value, arena, &live));
        TARN_TRY(tarn_manifest_stats_view(tarn_arena_copy(arena, stats), arena, &live.entry.file));
        files[n++] = live.entry;
    }
    TARN_TRY(tarn_state_iterator_error(lives));
    TARN_TRY(tarn_state_iterator_error(all_stats));
    out->total_buckets = n > 0 ? files[0].total_buckets : 0;
    out->files = tarn_arena_calloc(arena, n + 1, sizeof *out->files);
    out->file_count = n;
    if (n > 0)
        memcpy(out->files, files, n * sizeof *files);
    return TARN_OK;
}

struct tarn_status *tarn_table_bucket(struct tarn_op *op, struct tarn_table *table,
                                      struct tarn_slice partition, int32_t bucket,
                                      struct tarn_bucket_files *out)
{
    TARN_TRY(tarn_table__check_here(table));
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(table->uuid, partition, &bucket, &prefix);
    out->partition = partition;
    out->bucket = bucket;
    return list_with_stats(table, tarn_buf_slice(&prefix), op->arena, out);
}
