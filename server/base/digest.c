#include "base/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "base/macros.h"

void tarn_sha256(struct tarn_slice bytes, uint8_t out[TARN_SHA256_SIZE])
{
    unsigned size = 0;
    int done = EVP_Digest(bytes.size == 0 ? (const uint8_t *)"" : bytes.data, bytes.size, out,
                          &size, EVP_sha256(), NULL);
    tarn_assert(done == 1 && size == TARN_SHA256_SIZE);
}

void tarn_hmac_sha256(struct tarn_slice key, struct tarn_slice bytes, uint8_t out[TARN_SHA256_SIZE])
{
    unsigned size = 0;
    tarn_assert(key.size <= INT32_MAX);
    const uint8_t *done =
        HMAC(EVP_sha256(), key.size == 0 ? "" : (const void *)key.data, (int)key.size,
             bytes.size == 0 ? (const uint8_t *)"" : bytes.data, bytes.size, out, &size);
    tarn_assert(done != NULL && size == TARN_SHA256_SIZE);
}

void tarn_random_bytes(void *out, size_t size)
{
    uint8_t *p = out;
    while (size > 0) {
        ssize_t got = getrandom(p, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        tarn_assert(got > 0);
        p += got;
        size -= (size_t)got;
    }
}

uint64_t tarn_random_u64(void)
{
    uint64_t value;
    tarn_random_bytes(&value, sizeof value);
    return value;
}

bool tarn_secret_equal(struct tarn_slice a, struct tarn_slice b)
{
    /* Sizes are no secret: tokens of one installation have one length. */
    return a.size == b.size && (a.size == 0 || CRYPTO_memcmp(a.data, b.data, a.size) == 0);
}
