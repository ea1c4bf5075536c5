/*
 * digest - checksums, hashes and random bytes.
 */
#ifndef TARN_BASE_DIGEST_H
#define TARN_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define TARN_SHA256_SIZE 32

uint32_t tarn_crc32(struct tarn_slice bytes); /* zlib's polynomial */
uint64_t tarn_xxh64(struct tarn_slice bytes, uint64_t seed);
void tarn_sha256(struct tarn_slice bytes, uint8_t out[TARN_SHA256_SIZE]);
void tarn_hmac_sha256(struct tarn_slice key, struct tarn_slice bytes,
                      uint8_t out[TARN_SHA256_SIZE]);
void tarn_random_bytes(void *out, size_t size); /* from the system; aborts if none */
uint64_t tarn_random_u64(void);                 /* likewise */
bool tarn_secret_equal(struct tarn_slice a, struct tarn_slice b); /* in constant time */

#endif
