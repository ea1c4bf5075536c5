/*
 * rbm32: the union of 32-bit roaring bitmaps in their portable form, written as the Java library writes them: containers
 * of runs where those are smaller.
 *
 * Source   https://github.com/RoaringBitmap/RoaringFormatSpec; org.apache.paimon.utils.RoaringBitmap32.
 */
#include "merge/engine.h"

#define COOKIE_PLAIN 12346u
#define COOKIE_RUNS 12347u
#define OFFSETS_FROM 4 /* containers, below which a bitmap with runs has no offsets */
#define ARRAY_MAX 4096
#define CONTAINERS_MAX 65536
#define WORDS 1024 /* of a container's 65536 bits */

struct reader {
    struct tarn_slice bytes;
    size_t at;
    bool damaged;
};

struct bitmap { /* a serialised one, half read */
    struct reader reader;
    size_t count, next;
    bool with_runs;
    const uint8_t *run_flags, *heads; /* heads: key and cardinality - 1 of each */
};

static const uint8_t *take(struct reader *r, size_t size)
{
    if (r->damaged || r->bytes.size - r->at < size) {
        r->damaged = true;
        return NULL;
    }
    r->at += size;
    return r->bytes.data + r->at - size;
}

static uint32_t get16(const uint8_t *p)
{
    return p == NULL ? 0 : (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const uint8_t *p)
{
    return p == NULL ? 0 : get16(p) | get16(p + 2) << 16;
}

static void bitmap_open(struct bitmap *b, struct tarn_slice bytes)
{
    *b = (struct bitmap){.reader = {.bytes = bytes}};
    uint32_t cookie = get32(take(&b->reader, 4));

    b->with_runs = (cookie & 0xffff) == COOKIE_RUNS;
    if (b->with_runs) {
        b->count = (cookie >> 16) + 1;
        b->run_flags = take(&b->reader, (b->count + 7) / 8);
    } else {
        b->reader.damaged = b->reader.damaged || cookie != COOKIE_PLAIN;
        b->count = get32(take(&b->reader, 4));
    }
    if (b->count > CONTAINERS_MAX)
        b->reader.damaged = true;
    else
        b->heads = take(&b->reader, b->count * 4);
    if (!b->with_runs || b->count >= OFFSETS_FROM)
        take(&b->reader, b->reader.damaged ? 0 : b->count * 4);
}

static uint32_t key_of(const struct bitmap *b)
{
    return b->reader.damaged || b->next == b->count ? UINT32_MAX : get16(b->heads + 4 * b->next);
}

static void set_range(uint64_t *words, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++)
        words[i >> 6] |= UINT64_C(1) << (i & 63);
}

static void add_runs(struct bitmap *b, uint64_t *words)
{
    uint32_t count = get16(take(&b->reader, 2));
    const uint8_t *runs = take(&b->reader, (size_t)count * 4);

    for (uint32_t i = 0; runs != NULL && i < count; i++) {
        uint32_t first = get16(runs + 4 * i), last = first + get16(runs + 4 * i + 2);
        if (last > 65535)
            b->reader.damaged = true;
        else
            set_range(words, first, last);
    }
}

/* The next container's values among those of `words`. */
static void add_container(struct bitmap *b, uint64_t *words)
{
    size_t i = b->next++;
    uint32_t cardinality = get16(b->heads + 4 * i + 2) + 1;

    if (b->with_runs && (b->run_flags[i >> 3] >> (i & 7) & 1) != 0) {
        add_runs(b, words);
    } else if (cardinality <= ARRAY_MAX) {
        const uint8_t *values = take(&b->reader, (size_t)cardinality * 2);
        for (uint32_t v = 0; values != NULL && v < cardinality; v++)
            set_range(words, get16(values + 2 * v), get16(values + 2 * v));
    } else {
        const uint8_t *bits = take(&b->reader, WORDS * 8);
        for (uint32_t w = 0; bits != NULL && w < WORDS; w++)
            words[w] |= (uint64_t)get32(bits + 8 * w) | (uint64_t)get32(bits + 8 * w + 4) << 32;
    }
}

/* --- writing --- */

struct writer {
    struct tarn_buf heads, flags, offsets, bodies;
    size_t count;
    bool with_runs;
};

static void writer_drop(struct writer *w)
{
    tarn_buf_drop(&w->heads);
    tarn_buf_drop(&w->flags);
    tarn_buf_drop(&w->offsets);
    tarn_buf_drop(&w->bodies);
}

static void put16(struct tarn_buf *out, uint32_t v)
{
    uint8_t bytes[2] = {(uint8_t)v, (uint8_t)(v >> 8)};
    tarn_buf_add(out, bytes, sizeof bytes);
}

static void put32(struct tarn_buf *out, uint32_t v)
{
    put16(out, v);
    put16(out, v >> 16);
}

static bool has_bit(const uint64_t *words, uint32_t i)
{
    return (words[i >> 6] >> (i & 63) & 1) != 0;
}

/* Ends of runs are where a value has none behind it. */
static void count_values(const uint64_t *words, uint32_t *cardinality, uint32_t *runs)
{
    *cardinality = *runs = 0;
    for (uint32_t w = 0; w < WORDS; w++) {
        uint64_t behind = words[w] >> 1 | (w + 1 < WORDS ? words[w + 1] << 63 : 0);
        *cardinality += (uint32_t)__builtin_popcountll(words[w]);
        *runs += (uint32_t)__builtin_popcountll(words[w] & ~behind);
    }
}

static void put_runs(struct tarn_buf *out, const uint64_t *words, uint32_t runs)
{
    put16(out, runs);
    for (uint32_t i = 0; i < 65536; i++) {
        uint32_t first = i;
        if (!has_bit(words, i))
            continue;
        while (i < 65535 && has_bit(words, i + 1))
            i++;
        put16(out, first);
        put16(out, i - first);
    }
}

static void put_container(struct writer *w, uint32_t key, const uint64_t *words)
{
    uint32_t cardinality, runs;

    count_values(words, &cardinality, &runs);
    uint32_t size = cardinality <= ARRAY_MAX ? 2 * cardinality : WORDS * 8;
    bool as_runs = 2 + 4 * runs < size;
    if ((w->count & 7) == 0)
        tarn_buf_add_byte(&w->flags, 0);
    if (as_runs)
        w->flags.data[w->count >> 3] |= (uint8_t)(1u << (w->count & 7));
    w->with_runs = w->with_runs || as_runs;
    w->count++;
    put16(&w->heads, key);
    put16(&w->heads, cardinality - 1);
    put32(&w->offsets, (uint32_t)w->bodies.size);
    if (as_runs) {
        put_runs(&w->bodies, words, runs);
    } else if (cardinality <= ARRAY_MAX) {
        for (uint32_t i = 0; i < 65536; i++) {
            if (has_bit(words, i))
                put16(&w->bodies, i);
        }
    } else {
        for (uint32_t i = 0; i < WORDS; i++) {
            put32(&w->bodies, (uint32_t)words[i]);
            put32(&w->bodies, (uint32_t)(words[i] >> 32));
        }
    }
}

static void writer_finish(const struct writer *w, struct tarn_buf *out)
{
    bool offsets = !w->with_runs || w->count >= OFFSETS_FROM;

    tarn_buf_clear(out);
    if (w->with_runs) {
        put32(out, COOKIE_RUNS | (uint32_t)(w->count - 1) << 16);
        tarn_buf_add(out, w->flags.data, w->flags.size);
    } else {
        put32(out, COOKIE_PLAIN);
        put32(out, (uint32_t)w->count);
    }
    tarn_buf_add_slice(out, tarn_buf_slice(&w->heads));
    uint32_t begin = (uint32_t)(out->size + w->offsets.size);
    for (size_t i = 0; offsets && i < w->count; i++)
        put32(out, begin + get32(w->offsets.data + 4 * i));
    tarn_buf_add_slice(out, tarn_buf_slice(&w->bodies));
}

/* --- the union --- */

static bool unite(struct tarn_slice left, struct tarn_slice right, struct tarn_buf *out)
{
    TARN_OWN(tarn_free_drop) uint64_t *words = tarn_alloc(WORDS * sizeof *words);
    TARN_OWN(writer_drop) struct writer w = {0};
    struct bitmap a, b;

    bitmap_open(&a, left);
    bitmap_open(&b, right);
    for (;;) {
        uint32_t x = key_of(&a), y = key_of(&b);
        if (a.reader.damaged || b.reader.damaged)
            return false;
        if (x == UINT32_MAX && y == UINT32_MAX)
            break;
        memset(words, 0, WORDS * sizeof *words);
        if (x <= y)
            add_container(&a, words);
        if (y <= x)
            add_container(&b, words);
        put_container(&w, TARN_MIN(x, y), words);
    }
    writer_finish(&w, out);
    return true;
}

struct tarn_status *tarn_merge__aggregate_bitmap(struct tarn_merge_combiner *engine,
                                                 struct tarn_merge_column *column,
                                                 struct tarn_merge_ref in)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf united = {0};

    if (column->cell == TARN_CELL_NULL) {
        tarn_merge__cell_set(engine, column, in);
        return TARN_OK;
    }
    struct tarn_slice acc = column->cell == TARN_CELL_BYTES
                                ? tarn_buf_slice(&column->bytes)
                                : tarn_merge__text_of(engine, column, column->at);
    if (!unite(acc, tarn_merge__text_of(engine, column, in), &united))
        return tarn_status_new(TARN_VALUE_INVALID,
                               "column %.*s: a value is not a serialised 32-bit roaring bitmap, "
                               "which function rbm32 takes",
                               TARN_SLICE_ARG(column->name));
    struct tarn_buf before = column->bytes;
    column->bytes = united;
    united = before;
    column->cell = TARN_CELL_BYTES;
    return TARN_OK;
}
