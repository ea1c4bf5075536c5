/*
 * Promise: checksums and hashes are the published ones (RFC 3720's, FIPS 180's and RFC 4231's
 * examples, xxHash's own test values), and secrets compare by all their bytes.
 */
#include "test.h"

static const char *hex_sha256(struct tarn_test *t, const char *text)
{
    uint8_t digest[TARN_SHA256_SIZE];
    TARN_OWN(tarn_buf_drop) struct tarn_buf hex = {0};
    tarn_sha256(tarn_slice_str(text), digest);
    tarn_hex_encode(tarn_slice_of(digest, sizeof digest), &hex);
    return tarn_arena_str(t->arena, tarn_buf_slice(&hex));
}

TARN_TEST(digest, sha256_is_fips_180)
{
    expect_str(hex_sha256(t, "abc"),
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_str(hex_sha256(t, ""),
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_str(hex_sha256(t, NULL),
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static const char *hex_hmac(struct tarn_test *t, struct tarn_slice key, const char *text)
{
    uint8_t digest[TARN_SHA256_SIZE];
    TARN_OWN(tarn_buf_drop) struct tarn_buf hex = {0};
    tarn_hmac_sha256(key, tarn_slice_str(text), digest);
    tarn_hex_encode(tarn_slice_of(digest, sizeof digest), &hex);
    return tarn_arena_str(t->arena, tarn_buf_slice(&hex));
}

TARN_TEST(digest, hmac_sha256_is_rfc_4231)
{
    uint8_t key[131];
    memset(key, 0x0b, 20);
    expect_str(hex_hmac(t, tarn_slice_of(key, 20), "Hi There"),
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    expect_str(hex_hmac(t, tarn_slice_str("Jefe"), "what do ya want for nothing?"),
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    expect_str(hex_hmac(t, tarn_slice_of(key, sizeof key),
                        "Test Using Larger Than Block-Size Key - Hash Key First"),
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TARN_TEST(digest, crc32_is_zlibs)
{
    expect_uint(tarn_crc32(tarn_slice_str("123456789")), 0xcbf43926);
    expect_uint(tarn_crc32(tarn_slice_str("")), 0);
}

TARN_TEST(digest, xxh64_is_xxhashs)
{
    expect_uint(tarn_xxh64(tarn_slice_str(""), 0), 0xef46db3751d8e999u);
    expect_uint(tarn_xxh64(tarn_slice_str("a"), 0), 0xd24ec4f1a98c6e5bu);
    expect_uint(tarn_xxh64(tarn_slice_str("abc"), 0), 0x44bc2cf5ad770999u);
}

TARN_TEST(digest, random_numbers_differ)
{
    expect_true(tarn_random_u64() != tarn_random_u64());
    uint8_t bytes[64] = {0}, zeros[64] = {0};
    tarn_random_bytes(bytes, sizeof bytes);
    expect_true(memcmp(bytes, zeros, sizeof bytes) != 0);
}

TARN_TEST(digest, secrets_are_equal_only_as_a_whole)
{
    expect_true(tarn_secret_equal(tarn_slice_str("token"), tarn_slice_str("token")));
    expect_false(tarn_secret_equal(tarn_slice_str("token"), tarn_slice_str("tokem")));
    expect_false(tarn_secret_equal(tarn_slice_str("token"), tarn_slice_str("toke")));
    expect_true(tarn_secret_equal(tarn_slice_str(""), tarn_slice_str(NULL)));
}
