/*
 * Promise: what is missing or exists already is named by the type that clients of the protocol look at; nothing but "it exists"
 * is 409; 503 and 429, which clients send again, are said only of what was surely not done; and what is asked of an endpoint
 * that isn't there is 501.
 */
#include "fixture.h"

static const char *print(struct tarn_test *t, const char *method, enum tarn_reason reason)
{
    static const struct tarn_pair arguments[] = {
        {{(const uint8_t *)"database", 8}, {(const uint8_t *)"d", 1}},
        {{(const uint8_t *)"table", 5}, {(const uint8_t *)"t", 1}}};
    struct tarn_http_request request = {.method = method,
                                        .path = S("/v1/w/databases/d/tables/t"),
                                        .arguments = arguments,
                                        .argument_count = 2};
    struct tarn_status *s = tarn_status_new(reason, "why \"so\"");
    struct tarn_http_response response = {.status = tarn_status_http(s)};
    tarn_rest_print_error(NULL, &request, s, &response);
    const char *text =
        tarn_arena_printf(t->arena, "%d %s", response.status, tarn_buf_cstr(&response.body));
    tarn_buf_drop(&response.body);
    tarn_status_free(s);
    return text;
}

TARN_TEST(errors, the_type_says_what_is_missing)
{
    expect_str(
        print(t, "GET", TARN_TABLE_NOT_FOUND),
        "404 {\"message\":\"why \\\"so\\\"\",\"resourceType\":\"TABLE\",\"resourceName\":\"t\","
        "\"code\":404}");
    rest_expect(print(t, "GET", TARN_DATABASE_NOT_FOUND), 404,
                "\"resourceType\":\"DATABASE\",\"resourceName\":\"d\"");
    rest_expect(print(t, "GET", TARN_SNAPSHOT_EXPIRED), 404, "\"resourceType\":\"SNAPSHOT\"");
    rest_expect(print(t, "POST", TARN_COLUMN_NOT_FOUND), 404, "\"resourceType\":\"COLUMN\"");
    rest_expect(print(t, "POST", TARN_TABLE_REPLACED), 404, "\"resourceType\":\"TABLE\"");
    rest_expect(print(t, "POST", TARN_NAME_INVALID), 404, "\"resourceType\":\"TABLE\"");
    rest_expect(print(t, "GET", TARN_VIEW_NOT_FOUND), 404, "\"resourceType\":\"VIEW\"");
    rest_expect(print(t, "GET", TARN_FUNCTION_NOT_FOUND), 404, "\"resourceType\":\"FUNCTION\"");
    rest_expect(print(t, "POST", TARN_DIALECT_NOT_FOUND), 404, "\"resourceType\":\"DIALECT\"");
    rest_expect(print(t, "POST", TARN_DEFINITION_NOT_FOUND), 404,
                "\"resourceType\":\"DEFINITION\"");
}

TARN_TEST(errors, every_reason_has_a_code_that_clients_know)
{
    for (int reason = 1; reason < TARN_REASON_COUNT; reason++) {
        int get = atoi(print(t, "GET", reason)), post = atoi(print(t, "POST", reason));
        static const int codes[] = {400, 401, 403, 404, 409, 429, 500, 501, 503};
        bool knows_get = false, knows_post = false;
        for (size_t i = 0; i < TARN_COUNT_OF(codes); i++) {
            knows_get |= codes[i] == get;
            knows_post |= codes[i] == post;
        }
        if (!knows_get || !knows_post)
            expect_unreachable("%s is %d and %d", tarn_reason_name(reason), get, post);
        static const enum tarn_reason all[] = {
            TARN_DATABASE_EXISTS,   TARN_TABLE_EXISTS,    TARN_COLUMN_EXISTS,  TARN_TAG_EXISTS,
            TARN_BRANCH_EXISTS,     TARN_VIEW_EXISTS,     TARN_DIALECT_EXISTS, TARN_FUNCTION_EXISTS,
            TARN_DEFINITION_EXISTS, TARN_PARTITION_EXISTS};
        bool exists = false;
        for (size_t i = 0; i < TARN_COUNT_OF(all); i++)
            exists |= (int)all[i] == reason;
        expect_int(get == 409, exists);
        expect_int(post == 409, exists);
    }
}

TARN_TEST(errors, what_may_have_been_done_is_not_sent_again)
{
    static const enum tarn_reason unsure[] = {TARN_STORE_UNAVAILABLE, TARN_IO_ERROR,
                                              TARN_OUTCOME_UNKNOWN, TARN_DEADLINE_EXCEEDED};
    for (size_t i = 0; i < TARN_COUNT_OF(unsure); i++)
        rest_expect(print(t, "POST", unsure[i]), 500, "\"code\":500");
    rest_expect(print(t, "GET", TARN_STORE_UNAVAILABLE), 503, "\"code\":503");
    rest_expect(print(t, "POST", TARN_SHUTTING_DOWN), 503, "\"code\":503");
    rest_expect(print(t, "POST", TARN_BUSY), 429, "\"code\":429");
}

TARN_TEST(errors, what_the_server_refuses_keeps_its_code)
{
    struct tarn_http_request request = {.method = "GET", .path = S("/v1/w/x")};
    struct tarn_status *s = tarn_status_new(TARN_INVALID_ARGUMENT, "m");
    static const struct {
        int server, answered;
    } codes[] = {{404, 501}, {405, 501}, {414, 414}, {431, 431}};
    for (size_t i = 0; i < TARN_COUNT_OF(codes); i++) {
        struct tarn_http_response response = {.status = codes[i].server};
        tarn_rest_print_error(NULL, &request, s, &response);
        expect_int(response.status, codes[i].answered);
        expect_contains(tarn_buf_cstr(&response.body), "\"resourceType\":null");
        tarn_buf_drop(&response.body);
    }
    request.path = S("/metricz");
    struct tarn_http_response response = {.status = 404};
    tarn_rest_print_error(NULL, &request, s, &response);
    expect_int(response.status, 404);
    expect_str(tarn_buf_cstr(&response.body), "m\n");
    tarn_buf_drop(&response.body);
    tarn_status_free(s);
}
