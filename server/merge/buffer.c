/*
 * buffer - rows of one bucket as they came, sorted by key, the last of each key kept; or all, for a changelog or an engine.
 *
 * Pairs of key prefix and arrival are sorted by radix, which is stable, digits that are the same in
 * all keys being skipped; where prefixes are equal and don't decide, those pairs by the next eight bytes, and so
 * on. Rows that came in order aren't sorted at all. Sequence numbers follow arrival, so equal keys are in order of age.
 */
#include "merge/internal.h"

struct item {
    uint64_t prefix;
    uint32_t arrival; /* index into rows */
};

struct buffer {
    struct tarn_merge_input input; /* first */
    const struct tarn_merge_buffer_spec *spec;
    struct item *items; /* sorted; one a key */
    size_t item_count, next;
    struct tarn_merge_picks picks;
};

static inline uint32_t chunk_of(uint64_t row)
{
    return (uint32_t)(row >> 32);
}

/* --- sorting --- */

static bool is_sorted(const struct item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (items[i - 1].prefix > items[i].prefix)
            return false;
    }
    return true;
}

#define RADIX_BITS 11
#define RADIX_SIZE (1u << RADIX_BITS)
#define RADIX_PASSES 6

/* `spare` has room for as many. */
static void radix_sort(struct item *items, struct item *spare, size_t count)
{
    struct item *from = items, *to = spare;
    uint32_t(*counts)[RADIX_SIZE] = tarn_calloc(RADIX_PASSES, sizeof *counts);

    for (size_t i = 0; i < count; i++) {
        uint64_t prefix = from[i].prefix;
        for (int pass = 0; pass < RADIX_PASSES; pass++, prefix >>= RADIX_BITS)
            counts[pass][prefix & (RADIX_SIZE - 1)]++;
    }
    for (int pass = 0; pass < RADIX_PASSES; pass++) {
        int shift = pass * RADIX_BITS;
        uint32_t *at = counts[pass], sum = 0;
        if (at[from[0].prefix >> shift & (RADIX_SIZE - 1)] == count)
            continue; /* the same digit in all */
        for (uint32_t digit = 0; digit < RADIX_SIZE; digit++) {
            uint32_t n = at[digit];
            at[digit] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++)
            to[at[from[i].prefix >> shift & (RADIX_SIZE - 1)]++] = from[i];
        struct item *swapped = from;
        from = to;
        to = swapped;
    }
    free(counts);
    if (from != items)
        memcpy(items, from, count * sizeof *items);
}

static int compare_keys(const struct tarn_merge_buffer_spec *spec, uint32_t a, uint32_t b)
{
    uint64_t x = spec->rows[a], y = spec->rows[b];
    return tarn_merge__keys_compare_rest(&spec->keys[chunk_of(x)], (uint32_t)x,
                                         &spec->keys[chunk_of(y)], (uint32_t)y);
}

static int compare_orders(const struct tarn_merge_buffer_spec *spec, uint32_t a, uint32_t b)
{
    uint64_t x = spec->rows[a], y = spec->rows[b];
    if (spec->orders == NULL)
        return 0;
    return tarn_merge__keys_compare(&spec->orders[chunk_of(x)], (uint32_t)x,
                                    &spec->orders[chunk_of(y)], (uint32_t)y);
}

/* Items of one prefix: by the rest of the key, then arrival. */
static int by_rest(const void *a, const void *b, void *spec)
{
    const struct item *x = a, *y = b;
    int c = compare_keys(spec, x->arrival, y->arrival);
    return c != 0 ? c : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

/* The key's bytes from `depth` on, eight of them, as a number. */
static uint64_t load_deeper(const struct tarn_merge_buffer_spec *spec, uint32_t arrival,
                            size_t depth, bool *ended)
{
    uint64_t row = spec->rows[arrival], v = 0;
    const struct tarn_merge_keys *keys = &spec->keys[chunk_of(row)];
    size_t begin = keys->offsets[(uint32_t)row] + depth, end = keys->offsets[(uint32_t)row + 1];

    *ended = begin >= end;
    for (size_t i = 0; i < 8 && begin + i < end; i++)
        v |= (uint64_t)keys->bytes[begin + i] << (56 - 8 * i);
    return v;
}

#define RADIX_MIN 512 /* fewer are sorted by comparing */

/* Items whose keys are alike up to `depth`. Afterwards equal keys still have equal prefixes, if others. */
static void sort_deeper(const struct tarn_merge_buffer_spec *spec, struct item *items,
                        struct item *spare, size_t count, size_t depth)
{
    bool all_ended = true, ended;

    for (size_t i = 0; i < count && count >= RADIX_MIN; i++) {
        items[i].prefix = load_deeper(spec, items[i].arrival, depth, &ended);
        all_ended = all_ended && ended;
    }
    if (count < RADIX_MIN || all_ended) {
        qsort_r(items, count, sizeof *items, by_rest, (void *)(uintptr_t)spec);
        return;
    }
    radix_sort(items, spare, count);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && items[end].prefix == items[begin].prefix; end++)
            continue;
        if (end - begin > 1)
            sort_deeper(spec, items + begin, spare, end - begin, depth + 8);
    }
}

static void sort_items(struct buffer *buffer)
{
    const struct tarn_merge_buffer_spec *spec = buffer->spec;
    struct item *items = buffer->items;
    struct item *spare = tarn_alloc((spec->row_count + 1) * sizeof *spare);

    if (!is_sorted(items, spec->row_count))
        radix_sort(items, spare, spec->row_count);
    for (size_t begin = 0, end; begin < spec->row_count; begin = end) {
        for (end = begin + 1; end < spec->row_count && items[end].prefix == items[begin].prefix;
             end++)
            continue;
        if (end - begin > 1 && spec->keys[0].bytes != NULL)
            sort_deeper(spec, items + begin, spare, end - begin, 8);
    }
    free(spare);
}

/* Keeps of each key the last: by sequence fields, and among equals by arrival. */
static void keep_last(struct buffer *buffer)
{
    const struct tarn_merge_buffer_spec *spec = buffer->spec;
    struct item *items = buffer->items;
    size_t kept = 0;

    for (size_t i = 0; i < spec->row_count; i++) {
        bool same = kept > 0 && items[kept - 1].prefix == items[i].prefix &&
                    compare_keys(spec, items[kept - 1].arrival, items[i].arrival) == 0;
        if (!same)
            items[kept++] = items[i];
        else if (compare_orders(spec, items[kept - 1].arrival, items[i].arrival) <= 0)
            items[kept - 1] = items[i];
    }
    buffer->item_count = kept;
}

static int by_order(const void *a, const void *b, void *spec)
{
    const struct item *x = a, *y = b;
    int c = compare_orders(spec, x->arrival, y->arrival);
    return c != 0 ? c : (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

/* Items stay as they are but for those of one key: they go by their sequence fields. */
static void order_all(struct buffer *buffer)
{
    const struct tarn_merge_buffer_spec *spec = buffer->spec;
    struct item *items = buffer->items;

    buffer->item_count = spec->row_count;
    for (size_t begin = 0, end; spec->orders != NULL && begin < spec->row_count; begin = end) {
        for (end = begin + 1; end < spec->row_count && items[end].prefix == items[begin].prefix &&
                              compare_keys(spec, items[begin].arrival, items[end].arrival) == 0;
             end++)
            continue;
        if (end - begin > 1)
            qsort_r(items + begin, end - begin, sizeof *items, by_order, (void *)(uintptr_t)spec);
    }
}

/* --- the input --- */

static struct tarn_status *buffer_next(struct tarn_merge_input *self, struct tarn_op *op,
                                       struct tarn_batch **out, uint32_t *place)
{
    struct buffer *buffer = (struct buffer *)self;
    const struct tarn_merge_buffer_spec *spec = buffer->spec;
    const struct tarn_merge_layout *layout = spec->layout;
    size_t n = TARN_MIN(buffer->item_count - buffer->next, (size_t)spec->batch_rows);
    const struct item *items = buffer->items + buffer->next;
    struct tarn_batch *gathered = NULL;
    struct ArrowArray top;
    int columns = layout->column_count;

    *out = NULL;
    *place = spec->place;
    if (n == 0)
        return TARN_OK;
    TARN_TRY(tarn_op_check(op));
    tarn_merge__picks_clear(&buffer->picks);
    for (size_t i = 0; i < n; i++) {
        uint64_t row = spec->rows[items[i].arrival];
        tarn_merge__picks_add(&buffer->picks, chunk_of(row), (uint32_t)row, 1);
    }
    /* The row kinds lie where the sequence numbers will: types[columns] is not theirs. */
    int *order = tarn_alloc(((size_t)columns + 1) * sizeof *order);
    const struct tarn_type **types = tarn_alloc(((size_t)columns + 1) * sizeof *types);
    for (int i = 0; i <= columns; i++) {
        order[i] = i;
        types[i] = i < columns ? layout->types[i] : &tarn_merge__kind_type;
    }
    struct tarn_status *s = tarn_merge__gather_batch(spec->chunks, spec->chunk_count, order, types,
                                                     columns + 1, &buffer->picks, &gathered);
    free(order);
    free(types);
    TARN_TRY(s);
    buffer->next += n;

    tarn_merge__array_init(&top, (int64_t)n, 1, columns + 2);
    for (int i = 0; i < columns; i++)
        tarn_merge__array_share(tarn_batch_column(gathered, i), gathered, 0, (int64_t)n,
                                top.children[i]);
    tarn_merge__array_init(top.children[columns], (int64_t)n, 2, 0);
    int64_t *sequence = tarn_merge__array_buffer(top.children[columns], 1, n * 8, false);
    for (size_t i = 0; i < n; i++)
        sequence[i] = spec->first_sequence + items[i].arrival;
    tarn_merge__array_share(tarn_batch_column(gathered, columns), gathered, 0, (int64_t)n,
                            top.children[columns + 1]);
    tarn_batch_unref(gathered);
    *out = tarn_batch_take(&top);
    return TARN_OK;
}

static void buffer_close(struct tarn_merge_input *self)
{
    struct buffer *buffer = (struct buffer *)self;

    tarn_merge__picks_drop(&buffer->picks);
    free(buffer->items);
    free(buffer);
}

struct tarn_merge_input *tarn_merge__buffer_sort(const struct tarn_merge_buffer_spec *spec)
{
    struct buffer *buffer = tarn_calloc(1, sizeof *buffer);

    tarn_assert(spec->row_count > 0 && spec->row_count <= UINT32_MAX);
    buffer->input = (struct tarn_merge_input){buffer_next, buffer_close};
    buffer->spec = spec;
    buffer->items = tarn_alloc((spec->row_count + 1) * sizeof *buffer->items);
    for (size_t i = 0; i < spec->row_count; i++)
        buffer->items[i] = (struct item){
            spec->keys[chunk_of(spec->rows[i])].prefix[(uint32_t)spec->rows[i]], (uint32_t)i};
    sort_items(buffer);
    if (spec->keep_all)
        order_all(buffer);
    else
        keep_last(buffer);
    return &buffer->input;
}
