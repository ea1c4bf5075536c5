#include "format/roaring.h"

#define COOKIE_PLAIN 12346
#define COOKIE_RUNS 12347
#define OFFSETS_FROM 4 /* containers from which on a bitmap with runs has offsets */
#define ARRAY_MAX 4096 /* more values are a bitmap */
#define WORDS_SIZE 8192

static void put_le(struct tarn_buf *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        tarn_buf_add_byte(out, (uint8_t)(value >> (8 * i)));
}

static size_t count_runs(const uint16_t *lows, size_t count)
{
    size_t runs = 1;
    for (size_t i = 1; i < count; i++)
        runs += lows[i] != lows[i - 1] + 1;
    return runs;
}

static void put_runs(struct tarn_buf *out, const uint16_t *lows, size_t count, size_t runs)
{
    size_t begin = 0;
    put_le(out, runs, 2);
    for (size_t i = 1; i <= count; i++) {
        if (i < count && lows[i] == lows[i - 1] + 1)
            continue;
        put_le(out, lows[begin], 2);
        put_le(out, i - 1 - begin, 2);
        begin = i;
    }
}

static void put_words(struct tarn_buf *out, const uint16_t *lows, size_t count)
{
    size_t begin = out->size;
    tarn_buf_add_zeros(out, WORDS_SIZE);
    for (size_t i = 0; i < count; i++)
        out->data[begin + lows[i] / 8] |= (uint8_t)(1u << (lows[i] % 8));
}

void tarn_roaring_add(struct tarn_roaring *r, uint16_t key, const uint16_t *lows, size_t count)
{
    size_t begin = r->bodies.size, runs = count_runs(lows, count);
    size_t plain = count > ARRAY_MAX ? WORDS_SIZE : 2 * count;
    struct tarn_roaring_head head = {
        .key = key, .count = (uint32_t)count, .as_runs = 2 + 4 * runs < plain};
    if (head.as_runs)
        put_runs(&r->bodies, lows, count, runs);
    else if (count > ARRAY_MAX)
        put_words(&r->bodies, lows, count);
    else
        for (size_t i = 0; i < count; i++)
            put_le(&r->bodies, lows[i], 2);
    head.size = r->bodies.size - begin;
    r->any_runs = r->any_runs || head.as_runs;
    TARN_GROW(r->heads, r->count, r->capacity);
    r->heads[r->count++] = head;
}

static void put_cookie(const struct tarn_roaring *r, struct tarn_buf *out)
{
    if (!r->any_runs) {
        put_le(out, COOKIE_PLAIN, 4);
        put_le(out, r->count, 4);
        return;
    }
    put_le(out, COOKIE_RUNS, 2);
    put_le(out, r->count - 1, 2);
    for (size_t i = 0; i < r->count; i += 8) {
        uint8_t bits = 0;
        for (size_t k = i; k < r->count && k < i + 8; k++)
            bits |= (uint8_t)(r->heads[k].as_runs << (k - i));
        tarn_buf_add_byte(out, bits);
    }
}

void tarn_roaring_take(struct tarn_roaring *r, struct tarn_buf *out)
{
    size_t begin = out->size;
    put_cookie(r, out);
    for (size_t i = 0; i < r->count; i++) {
        put_le(out, r->heads[i].key, 2);
        put_le(out, r->heads[i].count - 1, 2);
    }
    if (!r->any_runs || r->count >= OFFSETS_FROM) {
        size_t at = out->size - begin + 4 * r->count;
        for (size_t i = 0; i < r->count; at += r->heads[i++].size)
            put_le(out, at, 4);
    }
    tarn_buf_add_slice(out, tarn_buf_slice(&r->bodies));
    tarn_buf_clear(&r->bodies);
    r->count = 0;
    r->any_runs = false;
}

void tarn_roaring_fini(struct tarn_roaring *r)
{
    free(r->heads);
    tarn_buf_drop(&r->bodies);
    *r = (struct tarn_roaring){0};
}
