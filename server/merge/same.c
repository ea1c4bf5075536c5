#include "merge/internal.h"

/* Elements [from, from + count) of two arrays, in order. */
static bool same_elements(const struct ArrowArray *a, int64_t from, const struct ArrowArray *b,
                          int64_t to, int64_t count, const struct tarn_type *type)
{
    for (int64_t i = 0; i < count; i++)
        if (!tarn_merge__same_value(a, from + i, b, to + i, type))
            return false;
    return true;
}

/* Entries of two maps, as many in each, in whatever order: keys come once. */
static bool same_entries(const struct ArrowArray *a, int64_t from, const struct ArrowArray *b,
                         int64_t to, int64_t count, const struct tarn_type *key,
                         const struct tarn_type *value)
{
    from += a->offset;
    to += b->offset;
    for (int64_t i = 0; i < count; i++) {
        int64_t j = 0;
        while (j < count &&
               !tarn_merge__same_value(a->children[0], from + i, b->children[0], to + j, key))
            j++;
        if (j == count ||
            !tarn_merge__same_value(a->children[1], from + i, b->children[1], to + j, value))
            return false;
    }
    return true;
}

static bool same_collection(const struct ArrowArray *a, int64_t from, const struct ArrowArray *b,
                            int64_t to, int64_t count, const struct tarn_type *type)
{
    static const struct tarn_type times = {.id = TARN_TYPE_INT}; /* of a MULTISET's elements */

    if (type->id == TARN_TYPE_ARRAY)
        return same_elements(a->children[0], from, b->children[0], to, count, type->element);
    if (type->id == TARN_TYPE_MULTISET)
        return same_entries(a->children[0], from, b->children[0], to, count, type->element, &times);
    return type->id == TARN_TYPE_MAP &&
           same_entries(a->children[0], from, b->children[0], to, count, type->key, type->element);
}

bool tarn_merge__same_value(const struct ArrowArray *a, int64_t i, const struct ArrowArray *b,
                            int64_t j, const struct tarn_type *type)
{
    bool a_null = tarn_column_is_null(a, i), b_null = tarn_column_is_null(b, j);
    if (a_null || b_null)
        return a_null && b_null;
    int64_t x = i + a->offset, y = j + b->offset;
    int width = tarn_merge__type_width(type);
    if (width > 0)
        return memcmp((const uint8_t *)a->buffers[1] + x * width,
                      (const uint8_t *)b->buffers[1] + y * width, (size_t)width) == 0;
    if (type->id == TARN_TYPE_BOOLEAN) {
        const uint8_t *p = a->buffers[1], *q = b->buffers[1];
        return (p[x >> 3] >> (x & 7) & 1) == (q[y >> 3] >> (y & 7) & 1);
    }
    if (type->id == TARN_TYPE_ROW) {
        for (int64_t k = 0; k < a->n_children; k++)
            if (!tarn_merge__same_value(a->children[k], x, b->children[k], y, type->fields[k].type))
                return false;
        return true;
    }
    const int32_t *from = (const int32_t *)a->buffers[1] + x,
                  *to = (const int32_t *)b->buffers[1] + y;
    int32_t size = from[1] - from[0];
    if (size != to[1] - to[0])
        return false;
    if (a->n_children > 0)
        return same_collection(a, from[0], b, to[0], size, type);
    return size == 0 || memcmp((const uint8_t *)a->buffers[2] + from[0],
                               (const uint8_t *)b->buffers[2] + to[0], (size_t)size) == 0;
}
