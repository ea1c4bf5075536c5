/*
 * Promise: requests are signed as Amazon's own examples are, to the last digit ("Signature Calculations for the
 * Authorization Header: Transferring Payload in a Single Chunk", S3 API reference).
 */
#include "store/s3.h"
#include "test.h"

#define HOST "examplebucket.s3.amazonaws.com"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define TIME_MS INT64_C(1369353600000) /* 20130524T000000Z */

struct header {
    const char *name, *value;
};

static void expect_signed(struct tarn_test *t, const char *method, const char *path,
                          const struct header *query, const struct header *headers,
                          const char *hash, const char *names, const char *signature)
{
    struct tarn_pair queries[8], pairs[8];
    size_t query_count = 0, count = 0;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    for (; query[query_count].name != NULL; query_count++)
        queries[query_count] = (struct tarn_pair){tarn_slice_str(query[query_count].name),
                                                  tarn_slice_str(query[query_count].value)};
    for (; headers[count].name != NULL; count++)
        pairs[count] = (struct tarn_pair){tarn_slice_str(headers[count].name),
                                          tarn_slice_str(headers[count].value)};
    struct tarn_s3_signing signing = {
        .method = method,
        .path = path,
        .query = queries,
        .query_count = query_count,
        .headers = pairs,
        .header_count = count,
        .payload_hash = hash,
        .region = "us-east-1",
        .service = "s3",
        .access_key = "AKIAIOSFODNN7EXAMPLE",
        .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        .time_ms = TIME_MS,
    };
    tarn_s3__sign(&signing, &got);
    expect_slice(tarn_buf_slice(&got),
                 tarn_arena_printf(t->arena,
                                   "AWS4-HMAC-SHA256 "
                                   "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
                                   "aws4_request,SignedHeaders=%s,Signature=%s",
                                   names, signature));
}

static const struct header none[] = {{NULL, NULL}};

TARN_TEST(s3_sign, get_object)
{
    const struct header headers[] = {{"host", HOST},
                                     {"range", "bytes=0-9"},
                                     {"x-amz-content-sha256", EMPTY},
                                     {"x-amz-date", "20130524T000000Z"},
                                     {NULL, NULL}};
    expect_signed(t, "GET", "/test.txt", none, headers, EMPTY,
                  "host;range;x-amz-content-sha256;x-amz-date",
                  "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TARN_TEST(s3_sign, put_object)
{
    char hash[TARN_S3_HASH_SIZE];
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    tarn_s3__hash(tarn_slice_str("Welcome to Amazon S3."), hash);
    expect_str(hash, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    tarn_url_encode(&path, tarn_slice_str("/test$file.text"), "/");
    const struct header headers[] = {{"x-amz-date", "20130524T000000Z"}, /* any order */
                                     {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                                     {"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                     {"host", HOST},
                                     {"x-amz-content-sha256", hash},
                                     {NULL, NULL}};
    expect_signed(t, "PUT", tarn_buf_cstr(&path), none, headers, hash,
                  "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                  "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static const struct header plain[] = {{"host", HOST},
                                      {"x-amz-content-sha256", EMPTY},
                                      {"x-amz-date", "20130524T000000Z"},
                                      {NULL, NULL}};

TARN_TEST(s3_sign, a_parameter_without_a_value)
{
    const struct header query[] = {{"lifecycle", ""}, {NULL, NULL}};
    expect_signed(t, "GET", "/", query, plain, EMPTY, "host;x-amz-content-sha256;x-amz-date",
                  "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TARN_TEST(s3_sign, parameters_in_any_order)
{
    const struct header query[] = {{"prefix", "J"}, {"max-keys", "2"}, {NULL, NULL}};
    expect_signed(t, "GET", "/", query, plain, EMPTY, "host;x-amz-content-sha256;x-amz-date",
                  "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TARN_TEST(s3_sign, queries_are_encoded_and_sorted)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    const struct tarn_pair query[] = {
        {tarn_slice_str("prefix"), tarn_slice_str("a b/\xc3\xa9+")},
        {tarn_slice_str("delimiter"), tarn_slice_str("/")},
        {tarn_slice_str("list-type"), tarn_slice_str("2")},
    };
    tarn_s3__query(query, 3, &got);
    expect_slice(tarn_buf_slice(&got), "delimiter=%2F&list-type=2&prefix=a%20b%2F%C3%A9%2B");
}
