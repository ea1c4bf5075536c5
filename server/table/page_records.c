#include "base/fields.h"
#include "table/pages_internal.h"

/*
 * The directory of pages in the state, so that a restart needn't walk LIVE, nor reckon again what bounds its pages:
 *
 *   PAGES  uuid          -> "": every page has a record
 *          uuid | first  -> what the page holds: fields 1 count, 2 total_buckets, 3 schema, 4 has_values, 5 each column's
 *                           bounds; or "": it has changed since, and is read
 *
 * A page loses its record in the batch that changes what it holds. Values lie as in memory: the state stays on the machine
 * that wrote it.
 */

enum record_field { COUNT = 1, TOTAL_BUCKETS = 2, SCHEMA = 3, HAS_VALUES = 4, COLUMN = 5 };
enum column_field { NULL_COUNT = 1, ROW_COUNT = 2, MIN = 3, MAX = 4, MIN_BYTES = 5, MAX_BYTES = 6 };

#define PLAIN_SIZE sizeof(((struct tarn_value *)NULL)->decimal) /* of all values but bytes */

/* --- a record --- */

static uint8_t *put_value(uint8_t *to, uint32_t field, const struct tarn_value *value,
                          bool is_bytes)
{
    return is_bytes ? tarn_put_bytes(to, field + (MIN_BYTES - MIN), value->bytes)
                    : tarn_put_bytes(to, field, tarn_slice_of(&value->decimal, PLAIN_SIZE));
}

static void add_column(struct tarn_buf *out, const struct tarn_bounds *b, bool is_bytes,
                       struct tarn_buf *scratch)
{
    size_t bytes = b->known && is_bytes ? b->min.bytes.size + b->max.bytes.size : 2 * PLAIN_SIZE;
    tarn_buf_clear(scratch);
    tarn_buf_reserve(scratch, bytes + 4 * TARN_FIELD_ROOM);
    uint8_t *to = tarn_put_number(scratch->data, NULL_COUNT, b->null_count);
    to = tarn_put_some_number(to, ROW_COUNT, b->row_count);
    if (b->known)
        to = put_value(put_value(to, MIN, &b->min, is_bytes), MAX, &b->max, is_bytes);
    struct tarn_slice column = tarn_slice_of(scratch->data, (size_t)(to - scratch->data));
    tarn_buf_reserve(out, column.size + TARN_FIELD_ROOM);
    out->size = (size_t)(tarn_put_bytes(out->data + out->size, COLUMN, column) - out->data);
}

void tarn_page_record_encode(const struct tarn_page_record *record, struct tarn_buf *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf scratch = {0};
    const struct tarn_page_bounds *bounds = record->bounds;
    tarn_buf_reserve(out, 4 * TARN_FIELD_ROOM);
    uint8_t *to = tarn_put_number(out->data + out->size, COUNT, record->count);
    to = tarn_put_some_number(to, TOTAL_BUCKETS, record->total_buckets);
    if (bounds != NULL) {
        to = tarn_put_number(to, SCHEMA, bounds->schema_stamp);
        to = tarn_put_some_number(to, HAS_VALUES, bounds->has_values);
    }
    out->size = (size_t)(to - out->data);
    for (size_t i = 0; bounds != NULL && i < bounds->count; i++)
        add_column(out, &bounds->bounds[i], bounds->of_bytes[i], &scratch);
}

static bool take_value(struct tarn_arena *arena, const struct tarn_taken_field *f,
                       struct tarn_value *out, bool *of_bytes)
{
    *of_bytes = f->number == MIN_BYTES || f->number == MAX_BYTES;
    if (*of_bytes)
        out->bytes = tarn_arena_copy(arena, f->bytes);
    else if (f->bytes.size == PLAIN_SIZE)
        memcpy(&out->decimal, f->bytes.data, PLAIN_SIZE);
    else
        return false;
    return true;
}

static bool take_column(struct tarn_slice bytes, struct tarn_arena *arena, struct tarn_bounds *out,
                        bool *of_bytes)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    struct tarn_taken_field f;
    bool has_min = false, has_max = false, of_both[2] = {false, false};
    *out = (struct tarn_bounds){.null_count = TARN_STATS_UNKNOWN};
    while (at < end) {
        if (!tarn_take_field(&at, end, &f))
            return false;
        if (f.form == TARN_FORM_VARINT && f.number == NULL_COUNT)
            out->null_count = (int64_t)f.value;
        else if (f.form == TARN_FORM_VARINT && f.number == ROW_COUNT)
            out->row_count = (int64_t)f.value;
        else if (f.form == TARN_FORM_BYTES && (f.number == MIN || f.number == MIN_BYTES))
            has_min = take_value(arena, &f, &out->min, &of_both[0]);
        else if (f.form == TARN_FORM_BYTES && (f.number == MAX || f.number == MAX_BYTES))
            has_max = take_value(arena, &f, &out->max, &of_both[1]);
        else
            return false;
    }
    out->known = has_min && has_max;
    *of_bytes = of_both[0];
    return has_min == has_max && of_both[0] == of_both[1];
}

static bool take_bounds(struct tarn_slice bytes, size_t count, struct tarn_page_bounds *out)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    struct tarn_taken_field f;
    out->bounds = tarn_arena_calloc(out->arena, count + 1, sizeof *out->bounds);
    out->of_bytes = tarn_arena_calloc(out->arena, count + 1, sizeof *out->of_bytes);
    while (tarn_take_field(&at, end, &f)) {
        if (f.number == SCHEMA)
            out->schema_stamp = (int64_t)f.value;
        else if (f.number == HAS_VALUES)
            out->has_values = f.value != 0;
        else if (f.number == COLUMN && f.form == TARN_FORM_BYTES) {
            if (!take_column(f.bytes, out->arena, &out->bounds[out->count],
                             &out->of_bytes[out->count]))
                return false;
            out->count++;
        }
    }
    return at == end;
}

bool tarn_page_record_decode(struct tarn_slice bytes, struct tarn_page_record *out)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    struct tarn_taken_field f;
    size_t columns, others;
    *out = (struct tarn_page_record){.count = -1};
    if (!tarn_count_fields(bytes, COLUMN, 0, &columns, &others))
        return false;
    while (tarn_take_field(&at, end, &f)) {
        if (f.number == COUNT && f.form == TARN_FORM_VARINT)
            out->count = (int64_t)f.value;
        else if (f.number == TOTAL_BUCKETS && f.value <= INT32_MAX)
            out->total_buckets = (int32_t)f.value;
    }
    if (out->count < 0)
        return false;
    if (columns == 0)
        return true;
    out->bounds = tarn_page_bounds_new();
    if (take_bounds(bytes, columns, out->bounds))
        return true;
    tarn_page_bounds_unref(tarn_move(out->bounds));
    return false;
}

/* --- writing --- */

static void record_key(const struct tarn_table *table, struct tarn_slice first,
                       struct tarn_buf *key)
{
    tarn_buf_add(key, table->uuid, TARN_INDEX_UUID_SIZE);
    tarn_buf_add_slice(key, first);
}

static void put(struct tarn_state_batch *batch, struct tarn_table *table, struct tarn_slice first,
                struct tarn_slice value)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    record_key(table, first, &key);
    tarn_state_batch_put(batch, table->env->state, TARN_FAMILY_PAGES, tarn_buf_slice(&key), value);
}

void tarn_table__record_put(struct tarn_state_batch *batch, struct tarn_table *table,
                            struct tarn_page *page)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    struct tarn_page_record record = {page->count, page->total_buckets, page->bounds};
    tarn_page_record_encode(&record, &value);
    put(batch, table, tarn_page_first(page), tarn_buf_slice(&value));
    page->recorded = true;
}

void tarn_table__record_put_changed(struct tarn_state_batch *batch, struct tarn_table *table,
                                    struct tarn_slice first)
{
    put(batch, table, first, tarn_slice_str(""));
}

void tarn_table__records_mark(struct tarn_state_batch *batch, struct tarn_table *table)
{
    put(batch, table, tarn_slice_str(NULL), tarn_slice_str(""));
}

void tarn_table__records_remove(struct tarn_state_batch *batch, struct tarn_table *table)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__range_end(table->uuid, tarn_slice_str(NULL), &to);
    tarn_state_batch_remove_range(batch, table->env->state, TARN_FAMILY_PAGES,
                                  tarn_slice_str(table->uuid), tarn_buf_slice(&to));
}

/* --- reading --- */

struct record_walk {
    struct tarn_op *op;
    struct tarn_table *table;
    const struct tarn_state_view *view;
    struct tarn_page_reader *reader;
    struct tarn_buf
        changed; /* the key of a page that is to be read, once it is known where that ends */
};

static void record_walk_fini(struct record_walk *w)
{
    tarn_buf_drop(&w->changed);
}

static struct tarn_status *read_changed(struct record_walk *w, struct tarn_slice to)
{
    struct tarn_slice from = tarn_buf_slice(&w->changed);
    if (from.size == 0)
        return TARN_OK;
    TARN_TRY(tarn_op_check(w->op));
    size_t bucket_size = tarn_table__bucket_size(
        tarn_slice_of(from.data + TARN_INDEX_UUID_SIZE, from.size - TARN_INDEX_UUID_SIZE));
    TARN_TRY(tarn_table__read_interval(w->table, w->view, from, to, bucket_size, w->reader));
    tarn_page_reader_hold(w->reader);
    tarn_buf_clear(&w->changed);
    return TARN_OK;
}

static struct tarn_status *take_record(struct record_walk *w, struct tarn_slice key,
                                       struct tarn_slice value, bool *good)
{
    struct tarn_slice first =
        tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
    size_t bucket_size = tarn_table__bucket_size(first);
    struct tarn_page_record record;
    *good = bucket_size > 0;
    if (!*good)
        return TARN_OK;
    TARN_TRY(read_changed(w, key));
    if (value.size == 0 || !tarn_page_record_decode(value, &record)) {
        tarn_buf_add_slice(&w->changed, key);
        return TARN_OK;
    }
    struct tarn_page *page = tarn_table__page_new(first, bucket_size);
    page->count = record.count;
    page->total_buckets = record.total_buckets;
    page->bounds = record.bounds;
    tarn_page_reader_take(w->reader, page);
    return TARN_OK;
}

struct tarn_status *tarn_table__read_records(struct tarn_op *op, struct tarn_table *table,
                                             const struct tarn_state_view *view, bool *found,
                                             struct tarn_page_reader *reader)
{
    TARN_OWN(record_walk_fini)
    struct record_walk w = {.op = op, .table = table, .view = view, .reader = reader};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__range_end(table->uuid, tarn_slice_str(NULL), &to);
    struct tarn_state_range range = {tarn_slice_str(table->uuid), tarn_buf_slice(&to), view, false};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(table->env->state, TARN_FAMILY_PAGES, &range);
    struct tarn_slice key, value;
    *found = tarn_state_iterator_next(it, &key, &value) && key.size == TARN_INDEX_UUID_SIZE;
    while (*found && tarn_state_iterator_next(it, &key, &value))
        TARN_TRY(take_record(&w, key, value, found));
    TARN_TRY(tarn_state_iterator_error(it));
    return *found ? read_changed(&w, tarn_buf_slice(&to)) : TARN_OK;
}
