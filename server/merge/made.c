/*
 * made - values that were computed for a column, as an array: row 0 is null, so that it serves nulls too.
 */
#include "merge/engine.h"

/* Nothing of the type: as gather lays it out. */
static struct tarn_status *empty_array(const struct tarn_type *type, struct ArrowArray *out)
{
    static const struct tarn_merge_picks none;
    return tarn_merge__gather(type, NULL, 0, &none, out);
}

static void set_null(struct ArrowArray *array)
{
    uint8_t *bits = tarn_merge__array_buffer(array, 0, (size_t)(array->length + 7) / 8, false);

    memset(bits, 0xff, (size_t)(array->length + 7) / 8);
    bits[0] &= 0xfe;
    array->null_count = 1;
}

static struct tarn_status *empty_entries(const struct tarn_type *key,
                                         const struct tarn_type *element, struct ArrowArray *out)
{
    tarn_merge__array_init(out, 0, 1, 2);
    TARN_TRY(empty_array(key, out->children[0]));
    return empty_array(element, out->children[1]);
}

static struct tarn_status *one_null(const struct tarn_type *type, struct ArrowArray *out);

static struct tarn_status *null_parts(const struct tarn_type *type, struct ArrowArray *out)
{
    static const struct tarn_type count_type = {.id = TARN_TYPE_INT};

    switch (type->id) {
    case TARN_TYPE_ARRAY:
        return empty_array(type->element, out->children[0]);
    case TARN_TYPE_MAP:
        return empty_entries(type->key, type->element, out->children[0]);
    case TARN_TYPE_MULTISET:
        return empty_entries(type->element, &count_type, out->children[0]);
    default: /* ROW */
        for (size_t i = 0; i < type->field_count; i++)
            TARN_TRY(one_null(type->fields[i].type, out->children[i]));
        return TARN_OK;
    }
}

/* One row, which is null. On failure *out is released. */
static struct tarn_status *one_null(const struct tarn_type *type, struct ArrowArray *out)
{
    bool list =
        type->id == TARN_TYPE_ARRAY || type->id == TARN_TYPE_MAP || type->id == TARN_TYPE_MULTISET;

    if (type->id == TARN_TYPE_ROW || list) {
        tarn_merge__array_init(out, 1, list ? 2 : 1, list ? 1 : (int)type->field_count);
        if (list)
            tarn_merge__array_buffer(out, 1, 8, true);
        struct tarn_status *s = null_parts(type, out);
        if (s != TARN_OK) {
            tarn_merge__array_drop(out);
            return s;
        }
    } else {
        int width = tarn_merge__type_width(type);
        bool text = width == 0 && type->id != TARN_TYPE_BOOLEAN;
        tarn_merge__array_init(out, 1, text ? 3 : 2, 0);
        tarn_merge__array_buffer(out, 1, 16, true);
        if (text)
            tarn_merge__array_buffer(out, 2, 16, true);
    }
    set_null(out);
    return TARN_OK;
}

/* --- numbers and texts --- */

static void add_number(struct tarn_merge_column *column)
{
    __int128 v = column->number;

    if (column->type->id == TARN_TYPE_FLOAT) {
        float real = (float)column->real;
        tarn_buf_add(&column->made, &real, sizeof real);
    } else if (column->type->id == TARN_TYPE_DOUBLE) {
        tarn_buf_add(&column->made, &column->real, sizeof column->real);
    } else {
        tarn_buf_add(&column->made, &v, (size_t)tarn_merge__type_width(column->type));
    }
}

static void take_numbers(struct tarn_merge_column *column, struct ArrowArray *out)
{
    size_t width = (size_t)tarn_merge__type_width(column->type);

    tarn_merge__array_init(out, (int64_t)column->made_count + 1, 2, 0);
    uint8_t *to = tarn_merge__array_buffer(out, 1, (column->made_count + 1) * width, true);
    memcpy(to + width, column->made.data, column->made.size);
    set_null(out);
}

static void put_offsets(const struct tarn_merge_column *column, struct ArrowArray *out)
{
    int32_t *to = tarn_merge__array_buffer(out, 1, (column->made_count + 2) * 4, true);

    memcpy(to + 2, column->made_ends, column->made_count * 4);
}

static void take_bytes(struct tarn_merge_column *column, struct ArrowArray *out)
{
    tarn_merge__array_init(out, (int64_t)column->made_count + 1, 3, 0);
    put_offsets(column, out);
    uint8_t *to = tarn_merge__array_buffer(out, 2, column->made.size + 16, false);
    if (column->made.size > 0)
        memcpy(to, column->made.data, column->made.size);
    set_null(out);
}

/* --- arrays and maps --- */

/* The elements as picks; those of composed rows field by field. */
static void add_elements(struct tarn_merge_column *column)
{
    size_t fields = column->type->element->field_count;
    bool composed = column->rule->aggregate == TARN_AGGREGATE_NESTED_PARTIAL_UPDATE;

    if (composed && column->made_fields == NULL)
        column->made_fields = tarn_calloc(fields + 1, sizeof *column->made_fields);
    for (size_t i = 0; i < column->elements.count; i++) {
        struct tarn_merge_ref e = column->elements.items[i];
        for (size_t f = 0; composed && f < fields; f++) {
            struct tarn_merge_ref field = column->composed.items[e.row * fields + f];
            tarn_merge__picks_add(&column->made_fields[f], field.source, field.row, 1);
        }
        if (composed)
            column->made_elements.row_count++;
        else
            tarn_merge__picks_add(&column->made_elements, e.source, e.row, 1);
    }
}

/* Rows of children: the sources' arrays `child` below what `of` gives, where picks with source 0 mean null. */
struct below {
    const struct tarn_merge_combiner *engine;
    const struct tarn_merge_column *column;
    size_t source_count;
    int child; /* -1: the elements themselves */
};

static const struct ArrowArray *below_at(const struct below *b, uint32_t source)
{
    const struct ArrowArray *array = tarn_merge__source(b->engine, b->column, source)->children[0];
    return b->child < 0 ? array : array->children[b->child];
}

static struct tarn_status *gather_below(const struct below *b, const struct tarn_type *type,
                                        const struct tarn_merge_picks *picks,
                                        struct ArrowArray *out)
{
    const struct ArrowArray **arrays = tarn_alloc((b->source_count + 1) * sizeof *arrays);
    struct ArrowArray null;
    struct tarn_status *s = one_null(type, &null);

    if (s == TARN_OK) {
        arrays[0] = &null;
        for (uint32_t i = 1; i <= b->source_count; i++)
            arrays[i] = below_at(b, i);
        s = tarn_merge__gather(type, arrays, b->source_count + 1, picks, out);
        tarn_merge__array_drop(&null);
    }
    free(arrays);
    return s;
}

static struct tarn_status *take_composed(struct below *b, struct ArrowArray *out)
{
    const struct tarn_type *row = b->column->type->element;

    tarn_merge__array_init(out, b->column->made_elements.row_count, 1, (int)row->field_count);
    for (size_t f = 0; f < row->field_count; f++) {
        b->child = (int)f;
        TARN_TRY(
            gather_below(b, row->fields[f].type, &b->column->made_fields[f], out->children[f]));
    }
    return TARN_OK;
}

/* Keys and values of a map: the same entries of both, which count from the entries' offset. */
static struct tarn_status *take_entries(struct below *b, struct ArrowArray *out)
{
    const struct tarn_merge_picks *picks = &b->column->made_elements;
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks shifted = {0};

    b->child = -1;
    for (size_t p = 0; p < picks->count; p++) {
        const struct tarn_merge_pick *pick = &picks->items[p];
        tarn_merge__picks_add(&shifted, pick->source,
                              pick->row + (uint32_t)below_at(b, pick->source)->offset, pick->count);
    }
    tarn_merge__array_init(out, picks->row_count, 1, 2);
    b->child = 0;
    TARN_TRY(gather_below(b, b->column->type->key, &shifted, out->children[0]));
    b->child = 1;
    return gather_below(b, b->column->type->element, &shifted, out->children[1]);
}

static struct tarn_status *take_elements(struct tarn_merge_combiner *engine,
                                         struct tarn_merge_column *column, size_t source_count,
                                         struct ArrowArray *out)
{
    struct below b = {engine, column, source_count, -1};
    struct tarn_status *s;

    tarn_merge__array_init(out, (int64_t)column->made_count + 1, 2, 1);
    put_offsets(column, out);
    set_null(out);
    if (column->type->id == TARN_TYPE_MAP)
        s = take_entries(&b, out->children[0]);
    else if (column->made_fields != NULL)
        s = take_composed(&b, out->children[0]);
    else
        s = gather_below(&b, column->type->element, &column->made_elements, out->children[0]);
    if (s != TARN_OK)
        tarn_merge__array_drop(out);
    return s;
}

/* --- the column's --- */

static int64_t made_size(const struct tarn_merge_column *column)
{
    return (int64_t)column->made.size + column->made_elements.row_count * 64;
}

struct tarn_status *tarn_merge__made_add(struct tarn_merge_combiner *engine,
                                         struct tarn_merge_column *column, uint32_t *row)
{
    int64_t before = made_size(column), end;

    if (column->cell == TARN_CELL_NUMBER || column->cell == TARN_CELL_REAL) {
        add_number(column);
    } else if (column->cell == TARN_CELL_BYTES) {
        tarn_buf_add_slice(&column->made, tarn_buf_slice(&column->bytes));
    } else {
        add_elements(column);
    }
    end = column->cell == TARN_CELL_ELEMENTS ? column->made_elements.row_count
                                             : (int64_t)column->made.size;
    if (end > INT32_MAX)
        return tarn_status_new(TARN_TOO_LARGE,
                               "computed values of column %.*s hold more than 2147483647 bytes or "
                               "elements",
                               TARN_SLICE_ARG(column->name));
    if (column->made_count == column->made_capacity) {
        column->made_capacity = column->made_capacity == 0 ? 256 : 2 * column->made_capacity;
        column->made_ends =
            tarn_realloc(column->made_ends, column->made_capacity * sizeof *column->made_ends);
    }
    column->made_ends[column->made_count] = (int32_t)end;
    *row = (uint32_t)++column->made_count;
    engine->made_bytes += made_size(column) - before;
    return TARN_OK;
}

struct tarn_status *tarn_merge__made_take(struct tarn_merge_combiner *engine,
                                          struct tarn_merge_column *column, size_t source_count,
                                          struct ArrowArray *out)
{
    struct tarn_status *s = TARN_OK;

    if (column->made_count == 0)
        s = one_null(column->type, out);
    else if (tarn_merge__type_width(column->type) > 0)
        take_numbers(column, out);
    else if (tarn_type_is_nested(column->type))
        s = take_elements(engine, column, source_count, out);
    else
        take_bytes(column, out);
    return s;
}

void tarn_merge__made_clear(struct tarn_merge_column *column)
{
    column->made_count = 0;
    tarn_buf_clear(&column->made);
    tarn_merge__picks_clear(&column->made_elements);
    for (size_t f = 0; column->made_fields != NULL && f < column->type->element->field_count; f++)
        tarn_merge__picks_clear(&column->made_fields[f]);
}
