/*
 * gather - picked rows of several arrays of one type into a new array, column by column.
 *
 * A pick is a range: ranges are copied with memcpy, and single rows, what a merge of interleaved runs
 * gives, by a loop over the type's width. Nested types turn the picks of a parent into picks of its
 * children and go on; their depth is the type's.
 */
#include "merge/internal.h"

struct gather { /* one column: what the functions below share */
    const struct ArrowArray *const *sources;
    size_t source_count;
    const struct tarn_merge_picks *picks;
};

void tarn_merge__picks_drop(struct tarn_merge_picks *picks)
{
    free(picks->items);
    *picks = (struct tarn_merge_picks){0};
}

static inline bool bit_get(const uint8_t *bits, int64_t i)
{
    return (bits[i >> 3] >> (i & 7) & 1) != 0;
}
static inline void bit_set(uint8_t *bits, int64_t i)
{
    bits[i >> 3] |= (uint8_t)(1u << (i & 7));
}
static inline void bit_clear(uint8_t *bits, int64_t i)
{
    bits[i >> 3] &= (uint8_t) ~(1u << (i & 7));
}

/* The validity bitmap; left out where no source has a null. */
static void gather_validity(const struct gather *g, struct ArrowArray *out)
{
    bool any = false;
    for (size_t i = 0; i < g->source_count && !any; i++)
        any = g->sources[i]->null_count != 0 && g->sources[i]->buffers[0] != NULL;
    if (!any)
        return;

    size_t size = (size_t)(out->length + 7) / 8;
    uint8_t *bits = tarn_merge__array_buffer(out, 0, size, false);
    int64_t at = 0, nulls = 0;
    memset(bits, 0xff, size);
    for (size_t p = 0; p < g->picks->count; p++) {
        const struct tarn_merge_pick *pick = &g->picks->items[p];
        const struct ArrowArray *from = g->sources[pick->source];
        const uint8_t *valid = from->null_count == 0 ? NULL : from->buffers[0];
        int64_t row = pick->row + from->offset;

        for (uint32_t i = 0; valid != NULL && i < pick->count; i++) {
            if (!bit_get(valid, row + i)) {
                bit_clear(bits, at + i);
                nulls++;
            }
        }
        at += pick->count;
    }
    out->null_count = nulls;
}

/* Sorted rows of a write buffer lie anywhere in it: their memory is asked for some picks ahead. */
#define AHEAD 16

#define COPY_FIXED(T)                                                                              \
    do {                                                                                           \
        T *to = data;                                                                              \
        for (; pick < end; pick++) {                                                               \
            if (pick + AHEAD < end)                                                                \
                __builtin_prefetch((const T *)base[pick[AHEAD].source] + pick[AHEAD].row);         \
            const T *from = (const T *)base[pick->source] + pick->row;                             \
            if (pick->count == 1) {                                                                \
                *to++ = *from;                                                                     \
            } else {                                                                               \
                memcpy(to, from, pick->count * sizeof(T));                                         \
                to += pick->count;                                                                 \
            }                                                                                      \
        }                                                                                          \
    } while (0)

struct wide {
    uint64_t low, high;
}; /* a decimal: 16 bytes, aligned as Arrow has them, to 8 */

static void gather_fixed(const struct gather *g, int width, struct ArrowArray *out)
{
    const struct tarn_merge_pick *pick = g->picks->items, *end = pick + g->picks->count;
    const uint8_t **base = tarn_alloc((g->source_count + 1) * sizeof *base);
    void *data = tarn_merge__array_buffer(out, 1, (size_t)out->length * (size_t)width, false);

    for (size_t i = 0; i < g->source_count; i++)
        base[i] = g->sources[i]->length == 0
                      ? NULL
                      : (const uint8_t *)g->sources[i]->buffers[1] + g->sources[i]->offset * width;
    switch (width) {
    case 1:
        COPY_FIXED(uint8_t);
        break;
    case 2:
        COPY_FIXED(uint16_t);
        break;
    case 4:
        COPY_FIXED(uint32_t);
        break;
    case 8:
        COPY_FIXED(uint64_t);
        break;
    default:
        COPY_FIXED(struct wide);
        break;
    }
    free(base);
}

static void gather_bits(const struct gather *g, struct ArrowArray *out)
{
    uint8_t *bits = tarn_merge__array_buffer(out, 1, (size_t)(out->length + 7) / 8, true);
    int64_t at = 0;

    for (size_t p = 0; p < g->picks->count; p++) {
        const struct tarn_merge_pick *pick = &g->picks->items[p];
        const struct ArrowArray *from = g->sources[pick->source];
        const uint8_t *value = from->buffers[1];
        int64_t row = pick->row + from->offset;

        for (uint32_t i = 0; i < pick->count; i++, at++) {
            if (bit_get(value, row + i))
                bit_set(bits, at);
        }
    }
}

static const int32_t *offsets_of(const struct ArrowArray *array)
{
    return (const int32_t *)array->buffers[1] + array->offset;
}

/* Elements behind the picked rows; TOO_LARGE where 32-bit offsets can't count them. */
static struct tarn_status *sum_elements(const struct gather *g, int64_t *out)
{
    int64_t total = 0;

    for (size_t p = 0; p < g->picks->count; p++) {
        const struct tarn_merge_pick *pick = &g->picks->items[p];
        const int32_t *offsets = offsets_of(g->sources[pick->source]) + pick->row;
        total += offsets[pick->count] - offsets[0];
    }
    if (total > INT32_MAX)
        return tarn_status_new(TARN_TOO_LARGE,
                               "%" PRId64 " rows hold %" PRId64
                               " bytes or elements in one column, more than 2147483647",
                               g->picks->row_count, total);
    *out = total;
    return TARN_OK;
}

struct piece { /* of a text column: bytes that lie together */
    const uint8_t *from;
    uint32_t size;
    bool roomy; /* COPY_SLACK bytes may be read at from, and behind its end in steps of as many */
};

#define COPY_SLACK 16

/* Short texts are copied 16 bytes at a time, which reads and writes over their end where that is safe: a
 * call of memcpy costs more than most of them. The target has COPY_SLACK bytes to spare. */
static inline uint8_t *copy_piece(uint8_t *to, const struct piece *piece)
{
    if (piece->roomy && piece->size <= 2 * COPY_SLACK) {
        memcpy(to, piece->from, COPY_SLACK);
        if (piece->size > COPY_SLACK)
            memcpy(to + COPY_SLACK, piece->from + COPY_SLACK, COPY_SLACK);
    } else if (piece->size > 0) {
        memcpy(to, piece->from, piece->size);
    }
    return to + piece->size;
}

static struct tarn_status *too_many_bytes(const struct gather *g)
{
    return tarn_status_new(TARN_TOO_LARGE,
                           "%" PRId64 " rows hold more than 2147483647 bytes in one column",
                           g->picks->row_count);
}

/* Where the picks' bytes lie and what their offsets become: one look at each source row. */
static bool find_pieces(const struct gather *g, struct piece *pieces, int32_t *to, int64_t *total)
{
    size_t count = g->picks->count;
    int64_t at = 0;

    *to++ = 0;
    for (size_t p = 0; p < g->picks->count; p++) {
        const struct tarn_merge_pick *pick = &g->picks->items[p];
        const struct ArrowArray *source = g->sources[pick->source];
        const int32_t *offsets = offsets_of(source), *from = offsets + pick->row;
        if (p + AHEAD < count)
            __builtin_prefetch(offsets_of(g->sources[pick[AHEAD].source]) + pick[AHEAD].row);
        const int32_t begin = from[0], size = from[pick->count] - begin;

        if (at + size > INT32_MAX)
            return false;
        pieces[p] = (struct piece){(const uint8_t *)source->buffers[2] + begin, (uint32_t)size,
                                   begin + (int64_t)(size > COPY_SLACK ? 2 : 1) * COPY_SLACK <=
                                       offsets[source->length]};
        if (pick->count == 1) {
            *to++ = (int32_t)(at + size);
        } else {
            for (uint32_t i = 1; i <= pick->count; i++)
                *to++ = (int32_t)at + (from[i] - begin);
        }
        at += size;
    }
    *total = at;
    return true;
}

static struct tarn_status *gather_bytes(const struct gather *g, struct ArrowArray *out)
{
    TARN_OWN(tarn_free_drop) struct piece *pieces =
        tarn_alloc((g->picks->count + 1) * sizeof *pieces);
    int32_t *offsets = tarn_merge__array_buffer(out, 1, ((size_t)out->length + 1) * 4, false);
    int64_t total;

    if (!find_pieces(g, pieces, offsets, &total))
        return too_many_bytes(g);
    uint8_t *to = tarn_merge__array_buffer(out, 2, (size_t)total + 2 * COPY_SLACK, false);
    for (size_t p = 0, count = g->picks->count; p < count; p++) {
        if (p + AHEAD < count)
            __builtin_prefetch(pieces[p + AHEAD].from);
        to = copy_piece(to, &pieces[p]);
    }
    return TARN_OK;
}

static struct tarn_status *gather_array(const struct tarn_type *type, const struct gather *g,
                                        struct ArrowArray *out);

/* The children `index` of the sources; the caller frees. */
static const struct ArrowArray **children_of(const struct gather *g, int index)
{
    const struct ArrowArray **children = tarn_alloc((g->source_count + 1) * sizeof *children);
    for (size_t i = 0; i < g->source_count; i++)
        children[i] = g->sources[i]->children[index];
    return children;
}

static struct tarn_status *gather_child(const struct tarn_type *type, const struct gather *g,
                                        int index, const struct tarn_merge_picks *picks,
                                        struct ArrowArray *out)
{
    const struct ArrowArray **children = children_of(g, index);
    struct gather down = {children, g->source_count, picks};
    struct tarn_status *s = gather_array(type, &down, out);

    free(children);
    return s;
}

/* Offsets of a list or map, and its elements as picks of the child. */
static struct tarn_status *gather_offsets(const struct gather *g, struct ArrowArray *out,
                                          struct tarn_merge_picks *elements)
{
    int64_t total;
    TARN_TRY(sum_elements(g, &total));

    int32_t *to = tarn_merge__array_buffer(out, 1, ((size_t)out->length + 1) * 4, false);
    int32_t at = 0;
    *to++ = 0;
    for (size_t p = 0; p < g->picks->count; p++) {
        const struct tarn_merge_pick *pick = &g->picks->items[p];
        const int32_t *from = offsets_of(g->sources[pick->source]) + pick->row;
        const int32_t begin = from[0], size = from[pick->count] - begin;

        for (uint32_t i = 1; i <= pick->count; i++)
            *to++ = at + (from[i] - begin);
        at += size;
        if (size > 0)
            tarn_merge__picks_add(elements, pick->source, (uint32_t)begin, (uint32_t)size);
    }
    return TARN_OK;
}

/* The fields of a ROW, or key and value of a map's entries: same rows, shifted by the offset. */
static struct tarn_status *gather_fields(const struct tarn_type *const *types, int count,
                                         const struct gather *g, struct ArrowArray *out)
{
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks shifted = {0};

    for (size_t p = 0; p < g->picks->count; p++) {
        const struct tarn_merge_pick *pick = &g->picks->items[p];
        tarn_merge__picks_add(&shifted, pick->source,
                              pick->row + (uint32_t)g->sources[pick->source]->offset, pick->count);
    }
    for (int i = 0; i < count; i++)
        TARN_TRY(gather_child(types[i], g, i, &shifted, out->children[i]));
    return TARN_OK;
}

static struct tarn_status *gather_list(const struct tarn_type *type, const struct gather *g,
                                       struct ArrowArray *out)
{
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks elements = {0};

    TARN_TRY(gather_offsets(g, out, &elements));
    return gather_child(type->element, g, 0, &elements, out->children[0]);
}

static struct tarn_status *gather_map(const struct tarn_type *type, const struct gather *g,
                                      struct ArrowArray *out)
{
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks elements = {0};
    static const struct tarn_type count_type = {.id = TARN_TYPE_INT};
    bool multiset = type->id == TARN_TYPE_MULTISET;
    const struct tarn_type *types[2] = {multiset ? type->element : type->key,
                                        multiset ? &count_type : type->element};

    TARN_TRY(gather_offsets(g, out, &elements));

    const struct ArrowArray **entries = children_of(g, 0);
    struct gather down = {entries, g->source_count, &elements};
    tarn_merge__array_init(out->children[0], elements.row_count, 1, 2);
    struct tarn_status *s = gather_fields(types, 2, &down, out->children[0]);
    free(entries);
    return s;
}

static struct tarn_status *gather_row(const struct tarn_type *type, const struct gather *g,
                                      struct ArrowArray *out)
{
    const struct tarn_type **types = tarn_alloc((type->field_count + 1) * sizeof *types);

    for (size_t i = 0; i < type->field_count; i++)
        types[i] = type->fields[i].type;
    struct tarn_status *s = gather_fields(types, (int)type->field_count, g, out);
    free(types);
    return s;
}

/* On failure *out is released. */
static struct tarn_status *gather_array(const struct tarn_type *type, const struct gather *g,
                                        struct ArrowArray *out)
{
    struct tarn_status *s = TARN_OK;
    int64_t length = g->picks->row_count;

    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        tarn_merge__array_init(out, length, 3, 0);
        s = gather_bytes(g, out);
        break;
    case TARN_TYPE_BOOLEAN:
        tarn_merge__array_init(out, length, 2, 0);
        gather_bits(g, out);
        break;
    case TARN_TYPE_ARRAY:
        tarn_merge__array_init(out, length, 2, 1);
        s = gather_list(type, g, out);
        break;
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
        tarn_merge__array_init(out, length, 2, 1);
        s = gather_map(type, g, out);
        break;
    case TARN_TYPE_ROW:
        tarn_merge__array_init(out, length, 1, (int)type->field_count);
        s = gather_row(type, g, out);
        break;
    default:
        tarn_assert(tarn_merge__type_width(type) > 0); /* others: check_type has refused them */
        tarn_merge__array_init(out, length, 2, 0);
        gather_fixed(g, tarn_merge__type_width(type), out);
        break;
    }
    if (s == TARN_OK)
        gather_validity(g, out);
    else
        tarn_merge__array_drop(out);
    return s;
}

struct tarn_status *tarn_merge__gather(const struct tarn_type *type,
                                       const struct ArrowArray *const *sources, size_t source_count,
                                       const struct tarn_merge_picks *picks, struct ArrowArray *out)
{
    struct gather g = {sources, source_count, picks};
    struct ArrowArray made;

    TARN_TRY(gather_array(type, &g, &made));
    *out = made;
    return TARN_OK;
}

struct tarn_status *tarn_merge__gather_batch(struct tarn_batch *const *sources, size_t source_count,
                                             const int *columns,
                                             const struct tarn_type *const *types, int column_count,
                                             const struct tarn_merge_picks *picks,
                                             struct tarn_batch **out)
{
    if (picks->count == 1) {
        const struct tarn_merge_pick *only = &picks->items[0];
        *out = tarn_merge__batch_view(sources[only->source], columns, column_count, only->row,
                                      only->count);
        return TARN_OK;
    }

    const struct ArrowArray **arrays = tarn_alloc((source_count + 1) * sizeof *arrays);
    struct tarn_status *s = TARN_OK;
    struct ArrowArray top;

    tarn_merge__array_init(&top, picks->row_count, 1, column_count);
    for (int c = 0; c < column_count && s == TARN_OK; c++) {
        for (size_t i = 0; i < source_count; i++)
            arrays[i] = tarn_batch_column(sources[i], columns == NULL ? c : columns[c]);
        s = tarn_merge__gather(types[c], arrays, source_count, picks, top.children[c]);
    }
    free(arrays);
    if (s != TARN_OK) {
        tarn_merge__array_drop(&top);
        return s;
    }
    *out = tarn_batch_take(&top);
    return TARN_OK;
}
