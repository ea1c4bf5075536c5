#include "table/pages_internal.h"

/* LIVE into pages: entries one behind the other, as a plan walks them. */

void tarn_page_reader_fini(struct tarn_page_reader *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->list[i].page != NULL)
            tarn_table__page_free(r->list[i].page);
        tarn_table__content_unref(r->list[i].content);
    }
    free(r->list);
    tarn_buf_drop(&r->bytes);
}

static struct tarn_page_content *make_content(const struct tarn_page_reader *r)
{
    size_t at_size = (r->filled + 1) * sizeof *r->at;
    size_t size = sizeof(struct tarn_page_content) + at_size + r->bytes.size;
    struct tarn_page_content *content = tarn_alloc(size);
    uint8_t *memory = (uint8_t *)(content + 1);
    *content = (struct tarn_page_content){.count = r->filled, .size = size};
    atomic_init(&content->ref_count, 1);
    memcpy(memory, r->at, at_size);
    if (r->bytes.size > 0)
        memcpy(memory + at_size, r->bytes.data, r->bytes.size);
    content->at = (const uint32_t *)(const void *)memory;
    content->bytes = memory + at_size;
    return content;
}

static void reader_end_page(struct tarn_page_reader *r)
{
    if (!r->filling)
        return;
    r->filling = false;
    r->at[r->filled] = (uint32_t)r->bytes.size;
    struct tarn_read_page *last = &r->list[r->count - 1];
    last->content = make_content(r);
    last->page->count = r->filled;
    last->page->total_buckets = TARN_MAX(r->total_buckets, 0);
    tarn_buf_clear(&r->bytes);
    r->filled = 0;
    r->total_buckets = 0;
}

static void reader_begin_page(struct tarn_page_reader *r, struct tarn_slice first,
                              size_t bucket_size)
{
    reader_end_page(r);
    TARN_GROW(r->list, r->count, r->capacity);
    r->list[r->count++] = (struct tarn_read_page){.page = tarn_table__page_new(first, bucket_size)};
    r->filling = true;
}

void tarn_page_reader_take(struct tarn_page_reader *r, struct tarn_page *consumed)
{
    reader_end_page(r);
    TARN_GROW(r->list, r->count, r->capacity);
    r->list[r->count++] = (struct tarn_read_page){.page = consumed};
}

static bool reader_is_full(const struct tarn_page_reader *r)
{
    return r->filled == TARN_PAGE_ENTRIES || r->bytes.size > (1u << 30);
}

/* -1: files of the page don't agree. */
static void reader_note_total(struct tarn_page_reader *r, struct tarn_slice value)
{
    int32_t total = tarn_table__peek_total_buckets(value);
    if (r->filled == 0)
        r->total_buckets = total;
    else if (r->total_buckets != total)
        r->total_buckets = -1;
}

/* False: the key is damaged. */
static bool reader_add(struct tarn_page_reader *r, struct tarn_slice key, struct tarn_slice value)
{
    struct tarn_page *last = r->filling ? r->list[r->count - 1].page : NULL;
    if (key.size < TARN_PAGE_HASH_SIZE)
        return false;
    if (last == NULL || !tarn_slice_starts_with(key, tarn_page_bucket_key(last))) {
        size_t bucket_size = tarn_table__bucket_size(key);
        if (bucket_size == 0)
            return false;
        reader_begin_page(r, tarn_slice_of(key.data, bucket_size), bucket_size);
    } else if (reader_is_full(r)) {
        reader_begin_page(r, key, last->bucket_size);
    }
    reader_note_total(r, value);
    r->at[r->filled++] = (uint32_t)r->bytes.size;
    tarn_buf_add_slice(&r->bytes, value);
    tarn_buf_add(&r->bytes, key.data + key.size - TARN_PAGE_HASH_SIZE, TARN_PAGE_HASH_SIZE);
    return true;
}

static struct tarn_status *damaged_key(const struct tarn_table *table)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a key of the index is damaged",
                           tarn_table_name(table));
}

void tarn_page_reader_hold(struct tarn_page_reader *r)
{
    for (size_t end = r->count - r->filling; r->held < end; r->held++) {
        struct tarn_read_page *read = &r->list[r->held];
        if (read->content != NULL)
            tarn_table__page_hold(read->page, tarn_move(read->content));
    }
}

struct tarn_status *tarn_table__read_all(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_state_view *view,
                                         struct tarn_page_reader *r)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__range_end(table->uuid, tarn_slice_str(NULL), &to);
    struct tarn_state_range range = {tarn_slice_str(table->uuid), tarn_buf_slice(&to), view, true};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(table->env->state, TARN_FAMILY_LIVE, &range);
    struct tarn_slice key, value;
    size_t steps = 0;
    while (tarn_state_iterator_next(it, &key, &value)) {
        if ((++steps & 4095) == 0)
            TARN_TRY(tarn_op_check(op));
        key = tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
        if (!reader_add(r, key, value))
            return damaged_key(table);
        tarn_page_reader_hold(r);
    }
    reader_end_page(r);
    tarn_page_reader_hold(r);
    return tarn_state_iterator_error(it);
}

struct tarn_status *tarn_table__read_interval(struct tarn_table *table,
                                              const struct tarn_state_view *view,
                                              struct tarn_slice from, struct tarn_slice to,
                                              size_t bucket_size, struct tarn_page_reader *r)
{
    struct tarn_state_range range = {from, to, view, false};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(table->env->state, TARN_FAMILY_LIVE, &range);
    struct tarn_slice key, value;
    reader_begin_page(
        r, tarn_slice_of(from.data + TARN_INDEX_UUID_SIZE, from.size - TARN_INDEX_UUID_SIZE),
        bucket_size);
    while (tarn_state_iterator_next(it, &key, &value)) {
        key = tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
        if (!reader_add(r, key, value))
            return damaged_key(table);
    }
    reader_end_page(r);
    return tarn_state_iterator_error(it);
}
