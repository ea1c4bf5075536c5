/*
 * batch - batches for tests, made of and read back as format's values; all canonical layouts.
 *
 *   struct tarn_value rows[] = {tarn_test_int(1), tarn_test_text("a"), tarn_test_int(2), tarn_test_null()};
 *   struct tarn_batch *b = tarn_test_batch(types, 2, rows, 2);
 *
 * Written apart from the room that is tested: what it builds is the Arrow specification's layout.
 */
#ifndef TARN_TEST_LIB_BATCH_H
#define TARN_TEST_LIB_BATCH_H

#include "columnar/columnar.h"

static inline struct tarn_value tarn_test_null(void)
{
    return (struct tarn_value){.is_null = true};
}
static inline struct tarn_value tarn_test_int(int64_t v)
{
    return (struct tarn_value){.integer = v};
}
static inline struct tarn_value tarn_test_real(double v)
{
    return (struct tarn_value){.real = v};
}
static inline struct tarn_value tarn_test_text(const char *v)
{
    return (struct tarn_value){.bytes = tarn_slice_str(v)};
}
static inline struct tarn_value tarn_test_decimal(__int128 v)
{
    return (struct tarn_value){.decimal = v};
}
static inline struct tarn_value tarn_test_time(int64_t ms, int32_t ns)
{
    return (struct tarn_value){.time = {ms, ns}};
}

struct tarn_test_body {
    const void *buffers[3];
    struct ArrowArray **children;
    int child_count;
};

static inline void tarn_test_array_release(struct ArrowArray *array)
{
    struct tarn_test_body *body = array->private_data;

    for (int i = 0; i < 3; i++)
        free((void *)(uintptr_t)body->buffers[i]);
    for (int i = 0; i < body->child_count; i++) {
        if (body->children[i]->release != NULL)
            body->children[i]->release(body->children[i]);
        free(body->children[i]);
    }
    free(body->children);
    free(body);
    array->release = NULL;
}

static inline void tarn_test_array_new(struct ArrowArray *out, int64_t length, int buffers,
                                       int children)
{
    struct tarn_test_body *body = tarn_calloc(1, sizeof *body);

    body->child_count = children;
    body->children = tarn_calloc((size_t)children + 1, sizeof(struct ArrowArray *));
    for (int i = 0; i < children; i++)
        body->children[i] = tarn_calloc(1, sizeof(struct ArrowArray));
    *out = (struct ArrowArray){.length = length,
                               .n_buffers = buffers,
                               .n_children = children,
                               .buffers = body->buffers,
                               .children = children == 0 ? NULL : body->children,
                               .release = tarn_test_array_release,
                               .private_data = body};
}

static inline void tarn_test_put(uint8_t *to, const struct tarn_type *type,
                                 const struct tarn_value *v)
{
    int64_t i = v->integer;
    float f = (float)v->real;
    int8_t i8 = (int8_t)i;
    int16_t i16 = (int16_t)i;
    int32_t i32 = (int32_t)i;

    switch (type->id) {
    case TARN_TYPE_TINYINT:
        memcpy(to, &i8, 1);
        break;
    case TARN_TYPE_SMALLINT:
        memcpy(to, &i16, 2);
        break;
    case TARN_TYPE_FLOAT:
        memcpy(to, &f, 4);
        break;
    case TARN_TYPE_DOUBLE:
        memcpy(to, &v->real, 8);
        break;
    case TARN_TYPE_BIGINT:
        memcpy(to, &i, 8);
        break;
    case TARN_TYPE_DECIMAL:
        memcpy(to, &v->decimal, 16);
        break;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        i = type->precision <= 3   ? v->time.ms
            : type->precision <= 6 ? v->time.ms * 1000 + v->time.ns / 1000
                                   : v->time.ms * 1000000 + v->time.ns;
        memcpy(to, &i, 8);
        break;
    default:
        memcpy(to, &i32, 4);
        break;
    }
}

static inline int tarn_test_width(const struct tarn_type *type)
{
    switch (type->id) {
    case TARN_TYPE_TINYINT:
        return 1;
    case TARN_TYPE_SMALLINT:
        return 2;
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
    case TARN_TYPE_FLOAT:
        return 4;
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_DOUBLE:
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return 8;
    case TARN_TYPE_DECIMAL:
        return 16;
    default:
        return 0;
    }
}

/* An array of `count` values, `stride` apart; it begins at an offset of `offset` rows of rubbish. */
static inline void tarn_test_array(const struct tarn_type *type, const struct tarn_value *values,
                                   int64_t count, int64_t stride, int64_t offset,
                                   struct ArrowArray *out)
{
    static const struct tarn_type int_type = {.id = TARN_TYPE_INT};
    bool bytes = type->id <= TARN_TYPE_VARCHAR || type->id == TARN_TYPE_BINARY ||
                 type->id == TARN_TYPE_VARBINARY;
    bool list =
        type->id == TARN_TYPE_ARRAY || type->id == TARN_TYPE_MAP || type->id == TARN_TYPE_MULTISET;
    bool row = type->id == TARN_TYPE_ROW;
    int64_t n = count + offset, nulls = 0;
    int width = tarn_test_width(type);

    tarn_test_array_new(out, count,
                        bytes ? 3
                        : row ? 1
                              : 2,
                        list  ? 1
                        : row ? (int)type->field_count
                              : 0);
    struct tarn_test_body *body = out->private_data;
    uint8_t *valid = tarn_calloc((size_t)n / 8 + 1, 1);
    uint8_t *data = row ? NULL : tarn_calloc((size_t)(n + 1) * (size_t)(width > 4 ? width : 4), 1);
    struct tarn_buf text = {0};
    struct tarn_value *items = NULL, *keys = NULL;
    size_t item_count = 0, key_count = 0, item_capacity = 0, key_capacity = 0;

    out->offset = offset;
    for (int64_t r = 0; r < n; r++) {
        struct tarn_value rubbish = bytes ? tarn_test_text("rubbish") : (struct tarn_value){0};
        const struct tarn_value *v = r < offset ? &rubbish : &values[(r - offset) * stride];
        if (v->is_null)
            nulls++;
        else
            valid[r / 8] |= (uint8_t)(1 << (r % 8));
        if (bytes && !v->is_null)
            tarn_buf_add_slice(&text, v->bytes);
        if (bytes)
            ((int32_t *)(void *)data)[r + 1] = (int32_t)text.size;
        else if (type->id == TARN_TYPE_BOOLEAN)
            data[r / 8] |= (uint8_t)((!v->is_null && v->integer != 0) << (r % 8));
        else if (width > 0 && !v->is_null)
            tarn_test_put(data + r * width, type, v);
        for (size_t i = 0; (list || row) && r >= offset &&
                           i < (v->is_null ? (row ? type->field_count : 0) : v->list.count);
             i++) {
            TARN_GROW(items, item_count, item_capacity);
            items[item_count++] = v->is_null ? tarn_test_null() : v->list.items[i];
            if (type->id == TARN_TYPE_MAP || type->id == TARN_TYPE_MULTISET) {
                TARN_GROW(keys, key_count, key_capacity);
                keys[key_count++] = v->list.keys[i];
            }
        }
        if (list)
            ((int32_t *)(void *)data)[r + 1] = (int32_t)item_count;
    }
    out->null_count = nulls;
    body->buffers[0] = nulls == 0 ? (free(valid), NULL) : valid;
    body->buffers[1] = data;
    body->buffers[2] = bytes ? (text.data == NULL ? tarn_calloc(1, 1) : text.data) : NULL;
    if (type->id == TARN_TYPE_ARRAY) {
        tarn_test_array(type->element, items, (int64_t)item_count, 1, 1, body->children[0]);
    } else if (list) {
        const struct tarn_type *key = type->id == TARN_TYPE_MAP ? type->key : type->element;
        const struct tarn_type *value = type->id == TARN_TYPE_MAP ? type->element : &int_type;
        tarn_test_array_new(body->children[0], (int64_t)item_count, 1, 2);
        struct tarn_test_body *entries = body->children[0]->private_data;
        tarn_test_array(key, keys, (int64_t)item_count, 1, 2, entries->children[0]);
        tarn_test_array(value, items, (int64_t)item_count, 1, 0, entries->children[1]);
    } else if (row) {
        /* children have `offset` rows of their own before the values, as the parent has */
        for (size_t f = 0; f < type->field_count; f++) {
            struct tarn_value *column = tarn_calloc((size_t)n + 1, sizeof *column);
            for (int64_t r = 0; r < n; r++)
                column[r] = r < offset ? tarn_test_null()
                                       : items[(size_t)(r - offset) * type->field_count + f];
            tarn_test_array(type->fields[f].type, column, n, 1, 0, body->children[f]);
            free(column);
        }
    }
    free(items);
    free(keys);
}

/* values: row after row, column_count each. Odd columns get an offset. */
static inline struct tarn_batch *tarn_test_batch(const struct tarn_type *const *types,
                                                 int column_count, const struct tarn_value *values,
                                                 int64_t row_count)
{
    struct ArrowArray top;

    tarn_test_array_new(&top, row_count, 1, column_count);
    for (int c = 0; c < column_count; c++)
        tarn_test_array(types[c], values + c, row_count, column_count, c % 2 == 1 ? 3 : 0,
                        top.children[c]);
    return tarn_batch_take(&top);
}

/* Reads one value back, nested ones too, into the arena. */
static inline struct tarn_value tarn_test_value(struct tarn_arena *arena,
                                                const struct tarn_type *type,
                                                const struct ArrowArray *a, int64_t row)
{
    static const struct tarn_type int_type = {.id = TARN_TYPE_INT};
    struct tarn_value v = {0}, *items, *keys;

    if (tarn_column_is_null(a, row))
        return tarn_test_null();
    if (type->id == TARN_TYPE_ROW) {
        v.list.count = type->field_count;
        v.list.items = items = tarn_arena_calloc(arena, type->field_count + 1, sizeof v);
        for (size_t i = 0; i < type->field_count; i++)
            items[i] =
                tarn_test_value(arena, type->fields[i].type, a->children[i], row + a->offset);
        return v;
    }
    if (type->id != TARN_TYPE_ARRAY && type->id != TARN_TYPE_MAP &&
        type->id != TARN_TYPE_MULTISET) {
        tarn_column_value(a, type, row, &v);
        return v;
    }
    const int32_t *offsets = (const int32_t *)a->buffers[1] + a->offset + row;
    size_t n = (size_t)(offsets[1] - offsets[0]);
    v.list.count = n;
    v.list.items = items = tarn_arena_calloc(arena, n + 1, sizeof v);
    v.list.keys = keys = tarn_arena_calloc(arena, n + 1, sizeof v);
    for (size_t i = 0; i < n; i++) {
        int64_t at = offsets[0] + (int64_t)i;
        if (type->id == TARN_TYPE_ARRAY) {
            items[i] = tarn_test_value(arena, type->element, a->children[0], at);
            continue;
        }
        const struct ArrowArray *entries = a->children[0];
        keys[i] = tarn_test_value(arena, type->id == TARN_TYPE_MAP ? type->key : type->element,
                                  entries->children[0], at + entries->offset);
        items[i] = tarn_test_value(arena, type->id == TARN_TYPE_MAP ? type->element : &int_type,
                                   entries->children[1], at + entries->offset);
    }
    return v;
}

#endif
