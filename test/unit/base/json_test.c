/*
 * Promise: JSON from outside is read whole, in order and exactly for 64 bits, or refused with line
 * and column: duplicates, NUL, bad UTF-8, depth and amounts beyond the limits. What we print parses.
 */
#include "test.h"

static struct tarn_json *parse(const char *text)
{
    struct tarn_json *json = NULL;
    expect_ok(tarn_json_parse(tarn_slice_str(text), &json));
    return json;
}

static void refuse(struct tarn_slice text, const char *part)
{
    struct tarn_json *json = NULL;
    expect_status(tarn_json_parse(text, &json), TARN_JSON_MALFORMED, part);
    expect_null(json);
}

static const char *print(struct tarn_test *t, const struct tarn_json *json, int indent)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    tarn_json_print(json, indent, &buf);
    return tarn_arena_str(t->arena, tarn_buf_slice(&buf));
}

TARN_TEST(json, keeps_order_and_all_64_bits)
{
    static const char text[] =
        "{\"z\":9223372036854775807,\"a\":-9223372036854775808,\"m\":[1,2.5,true,false,null,\"x\"],"
        "\"k\":{\"\xc3\xa9\":\"\"}}";
    TARN_OWN(tarn_json_drop) struct tarn_json *json = parse(text);
    expect_str(print(t, json, 0), text);
    expect_int(tarn_json_int(tarn_json_find(json, "z")), INT64_MAX);
    expect_int(tarn_json_int(tarn_json_find(json, "a")), INT64_MIN);

    const struct tarn_json *m = tarn_json_find(json, "m");
    static const enum tarn_json_kind kinds[] = {TARN_JSON_INTEGER, TARN_JSON_REAL,
                                                TARN_JSON_BOOL,    TARN_JSON_BOOL,
                                                TARN_JSON_NULL,    TARN_JSON_STRING};
    expect_uint(tarn_json_count(m), TARN_COUNT_OF(kinds));
    for (size_t i = 0; i < TARN_COUNT_OF(kinds); i++)
        expect_int(tarn_json_kind(tarn_json_at(m, i)), kinds[i]);
    expect_double(tarn_json_number(tarn_json_at(m, 1)), 2.5);
    expect_double(tarn_json_number(tarn_json_at(m, 0)), 1);
    expect_true(tarn_json_is_true(tarn_json_at(m, 2)));
    expect_false(tarn_json_is_true(tarn_json_at(m, 3)));
    expect_slice(tarn_json_text(tarn_json_at(m, 5)), "x");
}

TARN_TEST(json, answers_wrong_kinds_and_absent_ones_with_nothing)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = parse("{\"a\":[1],\"s\":\"7\"}");
    expect_null(tarn_json_find(json, "b"));
    expect_null(tarn_json_find(tarn_json_find(json, "a"), "a"));
    expect_null(tarn_json_find(NULL, "a"));
    expect_null(tarn_json_at(json, 0));
    expect_null(tarn_json_at(tarn_json_find(json, "a"), 1));
    expect_null(tarn_json_text(json).data);
    expect_null(tarn_json_text(NULL).data);
    expect_int(tarn_json_int(tarn_json_find(json, "s")), 0);
    expect_int(tarn_json_int(NULL), 0);
    expect_double(tarn_json_number(NULL), 0);
    expect_false(tarn_json_is_true(NULL));
    expect_uint(tarn_json_count(NULL), 0);
    expect_int(tarn_json_kind(NULL), TARN_JSON_NULL);
    tarn_json_free(NULL);
}

TARN_TEST(json, is_walked_in_order)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = parse("{\"c\":1,\"a\":2,\"b\":3}");
    const char *want[] = {"c", "a", "b"};
    void *cursor = NULL;
    struct tarn_slice key;
    const struct tarn_json *value;
    int seen = 0;
    while (tarn_json_next(json, &cursor, &key, &value)) {
        expect_slice(key, want[seen]);
        expect_int(tarn_json_int(value), ++seen);
    }
    expect_int(seen, 3);
    cursor = NULL;
    expect_false(tarn_json_next(tarn_json_find(json, "a"), &cursor, &key, &value));
}

TARN_TEST(json, names_line_and_column)
{
    refuse(tarn_slice_str("{\n  \"a\": 1,\n  \"b\": ?\n}"), "line 3, column");
    refuse(tarn_slice_str(""), "line 1");
    refuse(tarn_slice_str("{\"a\":1} x"), "line 1, column");
    refuse(tarn_slice_str("{\"a\":1"), "line 1, column");
}

TARN_TEST(json, refuses_what_readers_would_disagree_about)
{
    refuse(tarn_slice_str("{\"a\":1,\"a\":2}"), "duplicate");
    refuse(tarn_slice_str("{\"a\":\"x\\u0000y\"}"), "\\u0000");
    refuse(tarn_slice_str("{\"a\\u0000b\":1}"), "NUL");
    refuse(tarn_slice_of("{\"a\":\"x\0y\"}", 11), "line 1");
    refuse(tarn_slice_of("{\"a\":1}\0", 8), "line 1");
    refuse(tarn_slice_str("\"\xff\""), "line 1");
    refuse(tarn_slice_str("\"\xed\xa0\x80\""), "line 1");
    refuse(tarn_slice_str("9223372036854775808"), "too big");
    refuse(tarn_slice_str("-9223372036854775809"), "too big");
    refuse(tarn_slice_str("1e999"), "overflow");
    refuse(tarn_slice_str("01"), "line 1");
    refuse(tarn_slice_str("NaN"), "line 1");
    refuse(tarn_slice_str("[1,]"), "line 1");
    refuse(tarn_slice_str("// x\n1"), "line 1");
}

static struct tarn_slice repeated(struct tarn_test *t, const char *part, size_t count,
                                  const char *end)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    for (size_t i = 0; i < count; i++)
        tarn_buf_add_str(&buf, part);
    for (size_t i = 0; i < count && end != NULL; i++)
        tarn_buf_add_str(&buf, end);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&buf));
}

TARN_TEST(json, bounds_depth_and_amount_before_it_reads)
{
    struct tarn_json *json = NULL;
    expect_ok(tarn_json_parse(repeated(t, "[", TARN_JSON_DEPTH_MAX, "]"), &json));
    tarn_json_drop(&json);
    refuse(repeated(t, "[", TARN_JSON_DEPTH_MAX + 1, "]"), "line 1, column 65: nested deeper");
    refuse(repeated(t, "{\"a\":", 1000, "}"), "nested deeper");
    refuse(repeated(t, "[", 5000000, NULL), "nested deeper");

    /* Brackets inside strings don't count, also behind escaped quotes. */
    struct tarn_slice inner = repeated(t, "[", 100, NULL);
    const char *text = tarn_arena_printf(t->arena, "\"\\\"%.*s\\\\\"", TARN_SLICE_ARG(inner));
    expect_ok(tarn_json_parse(tarn_slice_str(text), &json));
    tarn_json_drop(&json);

    TARN_OWN(tarn_buf_drop) struct tarn_buf many = {0};
    tarn_buf_add_str(&many, "[0");
    for (int i = 0; i < TARN_JSON_VALUES_MAX; i++)
        tarn_buf_add_str(&many, ",0");
    tarn_buf_add_str(&many, "]");
    refuse(tarn_buf_slice(&many), "more than 1048576 values");
    expect_status(tarn_json_parse(tarn_slice_of(many.data, (size_t)TARN_JSON_SIZE_MAX + 1), &json),
                  TARN_TOO_LARGE, "67108865 bytes");
}

TARN_TEST(json, is_built_and_printed_so_that_it_parses)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    tarn_json_set_str(json, "b", "x\ny\"");
    tarn_json_set_int(json, "a", -5);
    tarn_json_set_bool(json, "t", true);
    tarn_json_set_slice(json, tarn_slice_of("k\0z", 3), tarn_slice_of("\xff\0o\xc3\xa9", 5));
    tarn_json_set_str(json, "gone", "x");
    tarn_json_remove(json, "gone");
    tarn_json_remove(json, "never");
    struct tarn_json *list = tarn_json_array();
    tarn_json_add(list, tarn_json_null());
    tarn_json_add(list, tarn_json_real(0.5));
    tarn_json_add(list, tarn_json_real(1.0 / 0.0)); /* JSON has no infinity */
    tarn_json_add(list, tarn_json_string(tarn_slice_str(NULL)));
    tarn_json_set(json, "l", list);
    tarn_json_set_int(json, "a", 6);

    static const char want[] = "{\"b\":\"x\\ny\\\"\",\"a\":6,\"t\":true,\"k\xef\xbf\xbdz\":"
                               "\"\xef\xbf\xbd\xef\xbf\xbdo\xc3\xa9\",\"l\":[null,0.5,null,\"\"]}";
    expect_str(print(t, json, 0), want);
    TARN_OWN(tarn_json_drop) struct tarn_json *copy = tarn_json_copy(json);
    tarn_json_set_int(json, "a", 7);
    expect_str(print(t, copy, 0), want);
    TARN_OWN(tarn_json_drop) struct tarn_json *again = parse(print(t, json, 2));
    expect_str(print(t, again, 0), print(t, json, 0));
    expect_contains(print(t, json, 2), "{\n  \"b\": ");
}
