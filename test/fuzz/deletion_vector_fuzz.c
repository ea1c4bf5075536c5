/* Promise: any bytes are a deletion vector, good or damaged, of a file of any size: reading it takes no more than its limits and
 * reads nothing beyond the bytes; what is read has no row beyond the file's, and is read again as the same once it is written. */
#include "base/digest.h"
#include "format/deletion_vector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_be32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void try_rows(struct tarn_slice bytes, int64_t length, int64_t rows, bool wide)
{
    TARN_OWN(tarn_deletions_fini) struct tarn_deletions d = {0};
    TARN_OWN(tarn_deletions_fini) struct tarn_deletions again = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_status *s = tarn_deletions_decode(bytes, length, rows, &d);
    if (s != TARN_OK) {
        tarn_status_free(s);
        return;
    }
    int64_t written = tarn_deletions_encode(&d, wide, &out);
    s = tarn_deletions_decode(tarn_buf_slice(&out), written, rows, &again);
    tarn_assert(s == TARN_OK && again.count == d.count);
    for (int64_t i = 0; i < rows; i++) {
        i = tarn_deletions_next(&d, i);
        tarn_assert(tarn_deletions_next(&again, i) == i);
    }
}

/* Behind the first byte, which chooses, a frame with the right size and checksum is put around the rest: what lies in it is
 * what decides. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t row_counts[] = {1, 10, 70000, 300000};
    static const uint32_t magics[] = {0x5e43f2d0, 0xd1d33964};
    TARN_OWN(tarn_buf_drop) struct tarn_buf framed = {0};
    if (size == 0)
        return 0;
    bool wide = (data[0] & 1) != 0;
    struct tarn_slice body = tarn_slice_of(data + 1, size - 1);
    tarn_buf_add_zeros(&framed, 8);
    tarn_buf_add_slice(&framed, body);
    tarn_buf_add_zeros(&framed, 4);
    set_be32(framed.data, (uint32_t)body.size + 4);
    set_be32(framed.data + 4, magics[wide]);
    set_be32(framed.data + 8 + body.size,
             tarn_crc32(tarn_slice_of(framed.data + 4, body.size + 4)));
    for (size_t i = 0; i < TARN_COUNT_OF(row_counts); i++) {
        try_rows(body, (int64_t)size, row_counts[i], wide);
        try_rows(tarn_buf_slice(&framed), (int64_t)body.size + 4 + (wide ? 8 : 0), row_counts[i],
                 wide);
    }
    return 0;
}
