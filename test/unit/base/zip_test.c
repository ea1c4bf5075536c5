/*
 * Promise: what is compressed expands to itself; bytes of other writers are read (gzip(1), zlib,
 * zstd(1), Google's snappy); damaged ones are refused; no input makes more than the caller allows.
 */
#include "test.h"

static const enum tarn_zip kinds[] = {TARN_ZIP_NONE, TARN_ZIP_ZSTD, TARN_ZIP_DEFLATE,
                                      TARN_ZIP_SNAPPY, TARN_ZIP_GZIP};

static void expect_expands(enum tarn_zip kind, struct tarn_slice in, const char *want)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    expect_ok(tarn_zip_expand(kind, in, strlen(want), &out));
    expect_slice(tarn_buf_slice(&out), want);
}

TARN_TEST(zip, reads_what_others_wrote)
{
    /* printf 'hello hello hello' | gzip -n9; its body is the raw deflate */
    static const uint8_t gzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                   0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x90, 0x00,
                                   0x80, 0x88, 0xf9, 0xe5, 0x11, 0x00, 0x00, 0x00};
    expect_expands(TARN_ZIP_GZIP, tarn_slice_of(gzip, sizeof gzip), "hello hello hello");
    expect_expands(TARN_ZIP_DEFLATE, tarn_slice_of(gzip + 10, sizeof gzip - 18),
                   "hello hello hello");
    /* snappy's format description: size 17, literal of 6, copy of 11 from offset 6 */
    static const uint8_t snappy[] = {17, 5 << 2, 'h', 'e', 'l', 'l', 'o', ' ', 7 << 2 | 1, 6};
    expect_expands(TARN_ZIP_SNAPPY, tarn_slice_of(snappy, sizeof snappy), "hello hello hello");
    /* RFC 8878: magic, single segment of size 5, last raw block of 5 */
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 5,   0x29,
                                   0,    0,    'h',  'e',  'l',  'l', 'o'};
    expect_expands(TARN_ZIP_ZSTD, tarn_slice_of(zstd, sizeof zstd), "hello");
}

TARN_TEST(zip, expands_to_what_was_compressed)
{
    for (int round = 0; round < tarn_test_rounds(60); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        enum tarn_zip kind = kinds[tarn_test_random_below(t, TARN_COUNT_OF(kinds))];
        size_t size = tarn_test_random_below(t, round % 4 == 0 ? 3000000 : 500);
        struct tarn_slice in = tarn_test_random_bytes(t, size);
        if (tarn_test_random_one_in(t, 2))
            memset((void *)(uintptr_t)in.data, 'x', in.size);
        tarn_buf_add_str(&packed, "<");
        tarn_buf_add_str(&out, ">");
        expect_ok(tarn_zip_compress(kind, 0, in, &packed));
        expect_ok(
            tarn_zip_expand(kind, tarn_slice_of(packed.data + 1, packed.size - 1), size, &out));
        expect_bytes(tarn_slice_of(out.data + 1, out.size - 1), in); /* both append */
    }
}

TARN_TEST(zip, stops_a_bomb_at_the_limit)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf zeros = {0};
    tarn_buf_add_zeros(&zeros, 64 << 20);
    for (size_t i = 0; i < TARN_COUNT_OF(kinds); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        tarn_buf_add_str(&out, "kept");
        expect_ok(tarn_zip_compress(kinds[i], 1, tarn_buf_slice(&zeros), &packed));
        expect_status(tarn_zip_expand(kinds[i], tarn_buf_slice(&packed), 100000, &out),
                      TARN_TOO_LARGE, "100000");
        expect_slice(tarn_buf_slice(&out), "kept");
        expect_true(out.capacity < 1 << 20);
        expect_status(tarn_zip_expand(kinds[i], tarn_buf_slice(&packed), zeros.size - 1, &out),
                      TARN_TOO_LARGE, "");
        expect_ok(tarn_zip_expand(kinds[i], tarn_buf_slice(&packed), zeros.size, &out));
    }
}

TARN_TEST(zip, refuses_what_is_cut_or_followed_by_more)
{
    struct tarn_slice in = tarn_slice_str("hello hello hello hello, and something else");
    for (size_t i = 1; i < TARN_COUNT_OF(kinds); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        expect_ok(tarn_zip_compress(kinds[i], 0, in, &packed));
        for (size_t size = 0; size < packed.size; size++)
            expect_status(tarn_zip_expand(kinds[i], tarn_slice_of(packed.data, size), 1000, &out),
                          TARN_COMPRESSED_MALFORMED, "");
        tarn_buf_add_byte(&packed, 'x');
        expect_status(tarn_zip_expand(kinds[i], tarn_buf_slice(&packed), 1000, &out),
                      TARN_COMPRESSED_MALFORMED, "");
        expect_uint(out.size, 0);
    }
}

TARN_TEST(zip, takes_no_size_in_a_header_at_its_word)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    /* snappy that claims 2 GB in seven bytes */
    static const uint8_t snappy[] = {0x80, 0x80, 0x80, 0x80, 0x08, 0, 'x'};
    expect_status(tarn_zip_expand(TARN_ZIP_SNAPPY, tarn_slice_of(snappy, sizeof snappy),
                                  (size_t)4 << 30, &out),
                  TARN_COMPRESSED_MALFORMED, "more than the data can hold");
    /* a zstd frame that wants a window of 2 GB */
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x29,
                                   0,    0,    'h',  'e',  'l',  'l',  'o'};
    expect_status(tarn_zip_expand(TARN_ZIP_ZSTD, tarn_slice_of(zstd, sizeof zstd), 1000, &out),
                  TARN_COMPRESSED_MALFORMED, "memory");
    expect_true(out.capacity < 1 << 20);
}

/* Contexts are used again. */
TARN_TEST(zip, what_was_done_before_changes_nothing)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf other = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf again = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_slice in = tarn_test_random_bytes(t, 5000);
    memset((void *)(uintptr_t)in.data, 'x', 3000);
    for (size_t i = 0; i < TARN_COUNT_OF(kinds); i++) {
        first.size = other.size = again.size = 0;
        expect_ok(tarn_zip_compress(kinds[i], 1, in, &first));
        expect_ok(tarn_zip_compress(kinds[i], 9, in, &other));
        expect_ok(tarn_zip_compress(kinds[i], 1, in, &again));
        expect_bytes(tarn_buf_slice(&again), tarn_buf_slice(&first));
        if (kinds[i] == TARN_ZIP_NONE)
            continue;
        expect_status(
            tarn_zip_expand(kinds[i], tarn_slice_of(first.data, first.size / 2), in.size, &out),
            TARN_COMPRESSED_MALFORMED, "");
        out.size = 0;
        expect_ok(tarn_zip_expand(kinds[i], tarn_buf_slice(&first), in.size, &out));
        expect_bytes(tarn_buf_slice(&out), in);
        out.size = 0;
    }
}

TARN_TEST(zip, survives_flipped_bytes)
{
    struct tarn_slice in = tarn_test_random_bytes(t, 300);
    for (int round = 0; round < tarn_test_rounds(3000); round++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf packed = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        enum tarn_zip kind = kinds[1 + tarn_test_random_below(t, TARN_COUNT_OF(kinds) - 1)];
        expect_ok(tarn_zip_compress(kind, 0, in, &packed));
        packed.data[tarn_test_random_below(t, packed.size)] ^= 1 << tarn_test_random_below(t, 8);
        struct tarn_status *s = tarn_zip_expand(kind, tarn_buf_slice(&packed), 1000, &out);
        expect_true(s == NULL ? out.size <= 1000 : out.size == 0);
        tarn_status_free(s);
    }
}
