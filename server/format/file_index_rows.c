/*
 * Sets of rows, one bit a row, and the portable form of roaring bitmaps read into them: a header with a
 * key and a cardinality for each 65536 rows, then their containers, each an array, a bitmap or runs.
 */
#include "format/file_index_internal.h"

#define COOKIE_PLAIN 12346
#define COOKIE_RUNS 12347
#define OFFSETS_FROM 4   /* containers from which on a bitmap with runs has offsets */
#define ARRAY_MAX 4096   /* more values are a bitmap */
#define BITMAP_SIZE 8192 /* bytes */
#define STEP_SIZE 64     /* bytes that count as one step */

uint64_t *tarn_index__rows_new(int64_t row_count, struct tarn_index__budget *budget)
{
    if (row_count > budget->rows)
        return NULL;
    budget->rows -= row_count;
    budget->steps -= row_count / (8 * STEP_SIZE);
    return tarn_calloc((size_t)(row_count + 63) / 64 + 1, sizeof(uint64_t));
}

void tarn_index__rows_free(uint64_t **rows, int64_t row_count, struct tarn_index__budget *budget)
{
    if (*rows != NULL)
        budget->rows += row_count;
    free(*rows);
    *rows = NULL;
}

struct target { /* 65536 rows of a set */
    uint64_t *rows;
    int64_t row_count;
    int64_t first;
    struct tarn_index__budget *budget;
};

static uint64_t take_le(struct tarn_index__reader *r, size_t size)
{
    uint64_t value = 0;
    struct tarn_slice bytes = tarn_index__take_bytes(r, (int64_t)size);
    for (size_t i = 0; i < bytes.size; i++)
        value |= (uint64_t)bytes.data[i] << (8 * i);
    return value;
}

static bool add_row(const struct target *t, int64_t low)
{
    int64_t row = t->first + low;
    if (row >= t->row_count)
        return false;
    t->rows[row / 64] |= UINT64_C(1) << (row % 64);
    return true;
}

static bool add_array(const struct target *t, struct tarn_index__reader *r, int64_t count)
{
    bool ok = true;
    struct tarn_slice bytes = tarn_index__take_bytes(r, 2 * count);
    for (size_t i = 0; i + 1 < bytes.size && ok; i += 2)
        ok = add_row(t, bytes.data[i] | bytes.data[i + 1] << 8);
    return ok && !r->failed;
}

static bool add_words(const struct target *t, struct tarn_index__reader *r)
{
    for (int64_t i = 0; i < BITMAP_SIZE / 8; i++) {
        uint64_t word = take_le(r, 8);
        int64_t row = t->first + 64 * i, left = t->row_count - row;
        if (word == 0)
            continue;
        if (left <= 0 || (left < 64 && word >> left != 0))
            return false;
        t->rows[row / 64] |= word; /* first is a multiple of 65536 */
    }
    return !r->failed;
}

static bool add_run(const struct target *t, int64_t start, int64_t end) /* both inclusive */
{
    if (end > UINT16_MAX || t->first + end >= t->row_count)
        return false;
    for (int64_t low = start; low <= end;) {
        int64_t row = t->first + low;
        if (row % 64 == 0 && end - low >= 63) {
            t->rows[row / 64] = UINT64_MAX;
            low += 64;
        } else {
            t->rows[row / 64] |= UINT64_C(1) << (row % 64);
            low++;
        }
    }
    t->budget->steps -= (end - start) / STEP_SIZE;
    return true;
}

static bool add_runs(const struct target *t, struct tarn_index__reader *r)
{
    int64_t count = (int64_t)take_le(r, 2);
    for (int64_t i = 0; i < count; i++) {
        int64_t start = (int64_t)take_le(r, 2), length = (int64_t)take_le(r, 2);
        if (r->failed || !add_run(t, start, start + length))
            return false;
        if (t->budget->steps < 0) /* the set is not whole, and whoever asked sees that */
            return true;
    }
    return !r->failed;
}

bool tarn_index__rows_take(uint64_t *rows, int64_t row_count, int64_t first,
                           struct tarn_slice *roaring, struct tarn_index__budget *budget)
{
    struct tarn_index__reader r = {.cursor = roaring->data, .end = roaring->data + roaring->size};
    uint32_t cookie = (uint32_t)take_le(&r, 4);
    bool runs = (cookie & 0xffff) == COOKIE_RUNS;
    int64_t count = runs ? (cookie >> 16) + 1 : (int64_t)take_le(&r, 4);
    if (!runs && cookie != COOKIE_PLAIN)
        return false;
    struct tarn_slice run_bits = tarn_index__take_bytes(&r, runs ? (count + 7) / 8 : 0);
    struct tarn_slice heads = tarn_index__take_bytes(&r, 4 * count);
    if (!runs || count >= OFFSETS_FROM) /* the containers follow each other: offsets add nothing */
        tarn_index__take_bytes(&r, 4 * count);
    for (int64_t i = 0; i < count && !r.failed && budget->steps >= 0; i++) {
        const uint8_t *head = heads.data + 4 * i, *before = r.cursor;
        struct target t = {rows, row_count, first + INT64_C(65536) * (head[0] | head[1] << 8),
                           budget};
        int64_t size = (head[2] | head[3] << 8) + 1;
        bool is_run = runs && (run_bits.data[i / 8] >> (i % 8) & 1) != 0;
        bool ok = is_run              ? add_runs(&t, &r)
                  : size <= ARRAY_MAX ? add_array(&t, &r, size)
                                      : add_words(&t, &r);
        budget->steps -= 1 + (r.cursor - before) / STEP_SIZE;
        if (!ok)
            return false;
    }
    *roaring = tarn_slice_of(r.cursor, (size_t)(r.end - r.cursor));
    return !r.failed;
}

bool tarn_index__rows_add(uint64_t *rows, int64_t row_count, struct tarn_slice roaring,
                          struct tarn_index__budget *budget)
{
    return tarn_index__rows_take(rows, row_count, 0, &roaring, budget);
}
