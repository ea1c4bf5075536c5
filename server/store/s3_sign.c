/*
 * s3_sign - AWS Signature Version 4, in the form S3 wants: each path segment encoded once.
 *
 * Source   "Signature Calculations for the Authorization Header" of the S3 API reference; its four examples are
 *          the test's.
 */
#include "store/s3.h"

#include <stdio.h>
#include <time.h>

void tarn_s3__time(int64_t time_ms, char out[TARN_S3_TIME_SIZE])
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    size_t size = strftime(out, TARN_S3_TIME_SIZE, "%Y%m%dT%H%M%SZ", &parts);
    tarn_assert(size == TARN_S3_TIME_SIZE - 1); /* a clock beyond the year 9999 is none */
}

static void hex_of(const uint8_t digest[TARN_SHA256_SIZE], char out[TARN_S3_HASH_SIZE])
{
    for (int i = 0; i < TARN_SHA256_SIZE; i++)
        snprintf(out + (ptrdiff_t)2 * i, 3, "%02x", digest[i]);
}

void tarn_s3__hash(struct tarn_slice body, char out[TARN_S3_HASH_SIZE])
{
    uint8_t digest[TARN_SHA256_SIZE];
    tarn_sha256(body, digest);
    hex_of(digest, out);
}

/* --- canonical forms --- */

static int compare_pairs(const void *a, const void *b)
{
    const struct tarn_pair *x = a, *y = b;
    int c = tarn_slice_compare(x->key, y->key);
    return c != 0 ? c : tarn_slice_compare(x->value, y->value);
}

static struct tarn_pair *sorted(const struct tarn_pair *pairs, size_t count)
{
    struct tarn_pair *copy = tarn_calloc(count + 1, sizeof *copy);
    if (count > 0) {
        memcpy(copy, pairs, count * sizeof *copy);
        qsort(copy, count, sizeof *copy, compare_pairs);
    }
    return copy;
}

/* Sorted by raw names: ours are plain letters, so it is the order of the encoded ones too. */
void tarn_s3__query(const struct tarn_pair *query, size_t count, struct tarn_buf *out)
{
    TARN_OWN(tarn_free_drop) struct tarn_pair *pairs = sorted(query, count);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            tarn_buf_add_byte(out, '&');
        tarn_url_encode(out, pairs[i].key, "");
        tarn_buf_add_byte(out, '=');
        tarn_url_encode(out, pairs[i].value, "");
    }
}

static void add_names(const struct tarn_pair *headers, size_t count, struct tarn_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            tarn_buf_add_byte(out, ';');
        tarn_buf_add_slice(out, headers[i].key);
    }
}

static void add_request(const struct tarn_s3_signing *signing, const struct tarn_pair *headers,
                        struct tarn_buf *out)
{
    tarn_buf_printf(out, "%s\n%s\n", signing->method, signing->path);
    tarn_s3__query(signing->query, signing->query_count, out);
    tarn_buf_add_byte(out, '\n');
    for (size_t i = 0; i < signing->header_count; i++)
        tarn_buf_printf(out, "%.*s:%.*s\n", TARN_SLICE_ARG(headers[i].key),
                        TARN_SLICE_ARG(headers[i].value));
    tarn_buf_add_byte(out, '\n');
    add_names(headers, signing->header_count, out);
    tarn_buf_printf(out, "\n%s", signing->payload_hash);
}

/* --- the signature --- */

static void derive(uint8_t key[TARN_SHA256_SIZE], const char *text)
{
    uint8_t next[TARN_SHA256_SIZE];
    tarn_hmac_sha256(tarn_slice_of(key, TARN_SHA256_SIZE), tarn_slice_str(text), next);
    memcpy(key, next, sizeof next);
}

static void signing_key(const struct tarn_s3_signing *signing, const char *day,
                        uint8_t out[TARN_SHA256_SIZE])
{
    struct tarn_buf secret = {0};
    tarn_buf_printf(&secret, "AWS4%s", signing->secret_key);
    tarn_hmac_sha256(tarn_buf_slice(&secret), tarn_slice_str(day), out);
    explicit_bzero(secret.data, secret.size);
    tarn_buf_drop(&secret);
    derive(out, signing->region);
    derive(out, signing->service);
    derive(out, "aws4_request");
}

void tarn_s3__sign(const struct tarn_s3_signing *signing, struct tarn_buf *out)
{
    char time[TARN_S3_TIME_SIZE], day[9] = "", request_hash[TARN_S3_HASH_SIZE];
    char signature[TARN_S3_HASH_SIZE];
    uint8_t key[TARN_SHA256_SIZE], digest[TARN_SHA256_SIZE];
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_free_drop)
    struct tarn_pair *headers = sorted(signing->headers, signing->header_count);

    tarn_s3__time(signing->time_ms, time);
    memcpy(day, time, 8);
    add_request(signing, headers, &text);
    tarn_s3__hash(tarn_buf_slice(&text), request_hash);

    tarn_buf_clear(&text);
    tarn_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s/%s/%s/aws4_request\n%s", time, day,
                    signing->region, signing->service, request_hash);
    signing_key(signing, day, key);
    tarn_hmac_sha256(tarn_slice_of(key, sizeof key), tarn_buf_slice(&text), digest);
    explicit_bzero(key, sizeof key);
    hex_of(digest, signature);

    tarn_buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/%s/%s/%s/aws4_request,SignedHeaders=",
                    signing->access_key, day, signing->region, signing->service);
    add_names(headers, signing->header_count, out);
    tarn_buf_printf(out, ",Signature=%s", signature);
}
