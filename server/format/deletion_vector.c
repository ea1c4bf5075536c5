#include "format/deletion_vector.h"

#include <inttypes.h>

#include "base/digest.h"
#include "format/file_index_internal.h"
#include "format/roaring.h"

#define MAGIC_NARROW 0x5e43f2d0u /* big-endian, as all of the frame */
#define MAGIC_WIDE 0xd1d33964u   /* 0x6439d3d1 little-endian, read big-endian */
#define HEAD_SIZE 8              /* size and magic */
#define CHECKSUM_SIZE 4
#define CHUNK_ROWS TARN_ROARING_CONTAINER
#define CHUNK_WORDS (CHUNK_ROWS / 64)
#define NARROW_ROWS (INT64_C(1) << 32) /* of one 32-bit bitmap */
#define BITMAP_SIZE_MIN 8              /* serialized, of an empty one */

/* ---- the set */

struct tarn_status *tarn_deletions_init(struct tarn_deletions *deletions, int64_t row_count)
{
    if (row_count < 0 || row_count > TARN_DELETIONS_ROWS_MAX)
        return tarn_status_new(
            TARN_TOO_LARGE, "a deletion vector of a file with %" PRId64 " rows, at most %" PRId64,
            row_count, TARN_DELETIONS_ROWS_MAX);
    int64_t chunks = (row_count + CHUNK_ROWS - 1) / CHUNK_ROWS;
    *deletions = (struct tarn_deletions){
        .rows = tarn_calloc((size_t)chunks * CHUNK_WORDS + 1, sizeof(uint64_t)),
        .row_count = row_count};
    return TARN_OK;
}

void tarn_deletions_fini(struct tarn_deletions *deletions)
{
    free(deletions->rows);
    *deletions = (struct tarn_deletions){0};
}

void tarn_deletions_add(struct tarn_deletions *deletions, int64_t row)
{
    tarn_assert(row >= 0 && row < deletions->row_count);
    deletions->count += !tarn_deletions_has(deletions, row);
    deletions->rows[row / 64] |= UINT64_C(1) << (row % 64);
}

int64_t tarn_deletions_next(const struct tarn_deletions *deletions, int64_t row)
{
    int64_t word = row / 64, words = (deletions->row_count + 63) / 64;
    if (row >= deletions->row_count)
        return deletions->row_count;
    uint64_t bits = deletions->rows[word] & UINT64_MAX << (row % 64);
    while (bits == 0 && ++word < words)
        bits = deletions->rows[word];
    return bits == 0 ? deletions->row_count : word * 64 + __builtin_ctzll(bits);
}

static int64_t count_words(const uint64_t *words, int64_t count)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < count; i++)
        rows += __builtin_popcountll(words[i]);
    return rows;
}

/* ---- reading */

static struct tarn_status *malformed(const char *what)
{
    return tarn_status_new(TARN_DELETION_VECTOR_MALFORMED, "%s", what);
}

struct frame {
    bool wide;
    struct tarn_slice whole, body; /* body: behind the magic, without the checksum */
};

static struct tarn_status *find_frame(struct tarn_slice bytes, int64_t length, struct frame *out)
{
    struct tarn_index__reader r = {.cursor = bytes.data, .end = bytes.data + bytes.size};
    int64_t size = tarn_index__take_int(&r);
    uint32_t magic = (uint32_t)tarn_index__take(&r, 4);
    if (r.failed)
        return malformed("a deletion vector begins behind the end of its index file");
    if (magic != MAGIC_NARROW && magic != MAGIC_WIDE)
        return tarn_status_new(
            TARN_DELETION_VECTOR_MALFORMED,
            "a deletion vector's magic number is %08" PRIx32 ", which is of no known form", magic);
    bool wide = magic == MAGIC_WIDE;
    if (size < 4 || size + (wide ? HEAD_SIZE : 0) != length)
        return tarn_status_new(TARN_DELETION_VECTOR_MALFORMED,
                               "a deletion vector says that it has %" PRId64
                               " bytes, the index manifest says %" PRId64,
                               size, length);
    struct tarn_slice body = tarn_index__take_bytes(&r, size - 4);
    uint32_t checksum = (uint32_t)tarn_index__take(&r, CHECKSUM_SIZE);
    if (r.failed)
        return malformed("a deletion vector is cut short by the end of its index file");
    if (tarn_crc32(tarn_slice_of(bytes.data + 4, (size_t)size)) != checksum)
        return malformed("a deletion vector's checksum is wrong");
    *out = (struct frame){wide, tarn_slice_of(bytes.data, (size_t)(r.cursor - bytes.data)), body};
    return TARN_OK;
}

struct tarn_status *tarn_deletions_find(struct tarn_slice bytes, int64_t length,
                                        struct tarn_slice *out)
{
    struct frame frame;
    TARN_TRY(find_frame(bytes, length, &frame));
    *out = frame.whole;
    return TARN_OK;
}

static uint64_t take_le(struct tarn_slice *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes->data[i] << (8 * i);
    *bytes = tarn_slice_of(bytes->data + size, bytes->size - size);
    return value;
}

static bool take_wide(struct tarn_slice *body, struct tarn_deletions *d,
                      struct tarn_index__budget *budget)
{
    if (body->size < 8)
        return false;
    uint64_t count = take_le(body, 8);
    if (count > body->size / (4 + BITMAP_SIZE_MIN))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (body->size < 4)
            return false;
        int64_t key = (int64_t)take_le(body, 4);
        if (key > INT32_MAX ||
            !tarn_index__rows_take(d->rows, d->row_count, key * NARROW_ROWS, body, budget))
            return false;
    }
    return true;
}

struct tarn_status *tarn_deletions_decode(struct tarn_slice bytes, int64_t length,
                                          int64_t row_count, struct tarn_deletions *out)
{
    TARN_OWN(tarn_deletions_fini) struct tarn_deletions d = {0};
    struct frame frame;
    TARN_TRY(find_frame(bytes, length, &frame));
    TARN_TRY(tarn_deletions_init(&d, row_count));
    /* A bitmap that says nothing twice takes no more steps than this. */
    struct tarn_index__budget budget = {.steps = (int64_t)frame.body.size + row_count / 64 + 1};
    bool ok = frame.wide ? take_wide(&frame.body, &d, &budget)
                         : tarn_index__rows_take(d.rows, row_count, 0, &frame.body, &budget);
    if (!ok || budget.steps < 0 || frame.body.size > 0)
        return tarn_status_new(TARN_DELETION_VECTOR_MALFORMED,
                               "a deletion vector is damaged, or marks rows beyond the %" PRId64
                               " of its data file",
                               row_count);
    d.count = count_words(d.rows, (row_count + 63) / 64);
    *out = d;
    d = (struct tarn_deletions){0};
    return TARN_OK;
}

/* ---- writing */

static void put_le(struct tarn_buf *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        tarn_buf_add_byte(out, (uint8_t)(value >> (8 * i)));
}

static void set_be32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* The bitmap of rows [first, first + NARROW_ROWS). */
static void put_bitmap(const struct tarn_deletions *d, int64_t first, struct tarn_buf *out)
{
    int64_t end = TARN_MIN(d->row_count, first + NARROW_ROWS);
    TARN_OWN(tarn_roaring_fini) struct tarn_roaring bitmap = {0};
    TARN_OWN(tarn_free_drop) uint16_t *lows = tarn_alloc(CHUNK_ROWS * sizeof *lows);
    for (int64_t chunk = first; chunk < end; chunk += CHUNK_ROWS) {
        size_t n = 0;
        for (int64_t i = 0; i < CHUNK_WORDS; i++)
            for (uint64_t bits = d->rows[chunk / 64 + i]; bits != 0; bits &= bits - 1)
                lows[n++] = (uint16_t)(64 * i + __builtin_ctzll(bits));
        if (n > 0)
            tarn_roaring_add(&bitmap, (uint16_t)((chunk - first) / CHUNK_ROWS), lows, n);
    }
    tarn_roaring_take(&bitmap, out);
}

/* Keys up to the last that is needed, one after the other. */
static void put_wide(const struct tarn_deletions *d, struct tarn_buf *out)
{
    int64_t last = d->row_count;
    while (last > 0 && d->rows[(last - 1) / 64] == 0)
        last = (last - 1) / 64 * 64;
    int64_t keys = (last + NARROW_ROWS - 1) / NARROW_ROWS;
    put_le(out, (uint64_t)keys, 8);
    for (int64_t key = 0; key < keys; key++) {
        put_le(out, (uint64_t)key, 4);
        put_bitmap(d, key * NARROW_ROWS, out);
    }
}

int64_t tarn_deletions_encode(const struct tarn_deletions *deletions, bool wide,
                              struct tarn_buf *out)
{
    size_t begin = out->size;
    tarn_buf_add_zeros(out, HEAD_SIZE);
    set_be32(out->data + begin + 4, wide ? MAGIC_WIDE : MAGIC_NARROW);
    if (wide)
        put_wide(deletions, out);
    else
        put_bitmap(deletions, 0, out);
    size_t size = out->size - begin - 4;
    set_be32(out->data + begin, (uint32_t)size);
    uint32_t checksum = tarn_crc32(tarn_slice_of(out->data + begin + 4, size));
    tarn_buf_add_zeros(out, CHECKSUM_SIZE);
    set_be32(out->data + out->size - CHECKSUM_SIZE, checksum);
    return (int64_t)size + (wide ? HEAD_SIZE : 0);
}
