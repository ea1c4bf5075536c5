/*
 * Promise: JSON lines are read exactly (decimals keep every digit), with each bad line named; what is
 * no row of the table (unknown or doubled names, wrong kinds, nulls where none may be) is refused.
 */
#include "columnar_fixture.h"

static void reads(struct tarn_test *t, const char *columns, const char *text, const char *want)
{
    static const size_t steps[] = {0, 1, 3};
    for (size_t i = 0; i < TARN_COUNT_OF(steps); i++) {
        struct rows r = rows_of(t, columns);
        struct tarn_input_options options = options_of(&r, TARN_DATA_JSONL);
        expect_ok(rows_read(t, &r, &options, NULL, tarn_slice_str(text), steps[i], false));
        expect_slice(rows_print(t, &r, TARN_DATA_JSONL), want);
        rows_clear(&r);
    }
}

static void refuses(struct tarn_test *t, const char *columns, const char *text, const char *part)
{
    struct rows r = rows_of(t, columns);
    struct tarn_input_options options = options_of(&r, TARN_DATA_JSONL);
    expect_status(rows_read(t, &r, &options, NULL, tarn_slice_str(text), 2, false),
                  TARN_ROW_INVALID, part);
    rows_clear(&r);
}

TARN_TEST(jsonl, keeps_decimals_exact)
{
    reads(
        t, "d DECIMAL(20,2), l BIGINT, f DOUBLE",
        "{\"d\": 123456789012345678.25, \"l\": \"9223372036854775807\", \"f\": 0.1}\n{\"d\":\"0.1\",\"l\":-9223372036854775808}",
        "{\"d\": 123456789012345678.25, \"l\": 9223372036854775807, \"f\": 0.1}\n{\"d\": 0.10, \"l\": -9223372036854775808, \"f\": null}\n");
}

TARN_TEST(jsonl, skips_blank_lines_and_takes_any_order)
{
    reads(t, "a INT, b STRING", "\xEF\xBB\xBF\n  \r\n{ \"b\" : \"x\\u00e4\\n\" , \"a\" : 1 }\r\n\n",
          "{\"a\": 1, \"b\": \"x\xc3\xa4\\u000a\"}\n");
    reads(t, "a INT", "", "");
    reads(t, "b BOOLEAN", "{\"b\": true}\n{\"b\": \"false\"}\n{}\n",
          "{\"b\": true}\n{\"b\": false}\n{\"b\": null}\n");
}

TARN_TEST(jsonl, takes_maps_as_objects_or_pairs)
{
    reads(t, "m MAP<STRING, INT>, n MAP<INT, STRING>",
          "{\"m\": [[\"a\", 1]], \"n\": [[1, \"x\"], [\"2\", null]]}\n",
          "{\"m\": {\"a\": 1}, \"n\": [[1, \"x\"], [2, null]]}\n");
    refuses(t, "m MAP<STRING, INT>", "{\"m\": {\"a\": 1, \"a\": 2}}\n", "twice");
    refuses(t, "m MAP<INT, INT>", "{\"m\": [[1, 1], [\"01\", 2]]}\n", "the key 01 twice");
    refuses(t, "m MAP<DECIMAL(4, 2), INT>", "{\"m\": [[1, 1], [1.0, 2]]}\n", "the key 1.0 twice");
    refuses(t, "m MAP<ARRAY<INT>, INT>", "{\"m\": [[[1], 1], [[1, 2], 2], [[1], 3]]}\n",
            "a key twice");
    refuses(t, "m MAP<INT, INT>", "{\"m\": {\"1\": 1}}\n", "expected an array of pairs");
    refuses(t, "m MAP<INT, INT>", "{\"m\": [[null, 1]]}\n", "null key");
    refuses(t, "m MAP<INT, INT>", "{\"m\": [[1]]}\n", "pairs");
}

TARN_TEST(jsonl, names_what_is_wrong)
{
    refuses(t, "a INT", "{\"a\": 1}\n{\"a\": 1, \"a\": 2}\n", "in:2: a: the column is there twice");
    refuses(t, "name INT", "{\"nam\": 1}\n", "did you mean name");
    refuses(t, "a INT", "{\"a\": 1.0}\n", "whole number");
    refuses(t, "a INT", "{\"a\": true}\n", "expected INT, found true");
    refuses(t, "a STRING", "{\"a\": 1}\n", "found a number");
    refuses(t, "a INT NOT NULL", "{}\n", "in:1: a: NOT NULL");
    refuses(t, "a INT NOT NULL", "{\"a\": null}\n", "in:1: a: NOT NULL");
    refuses(t, "a INT", "[1]\n", "expected an object");
    refuses(t, "a INT", "{\"a\": 1} x\n", "not JSON at byte");
    refuses(t, "a INT", "{\"a\": \n", "not JSON");
    refuses(t, "a STRING", "{\"a\": \"\xff\"}\n", "not JSON");
    refuses(t, "a ARRAY<INT NOT NULL>", "{\"a\": [1, null]}\n", "NOT NULL");
    refuses(t, "r ROW<x INT, y INT NOT NULL>", "{\"r\": {\"x\": 1}}\n",
            "field y is NOT NULL and missing");
    refuses(t, "r ROW<x INT>", "{\"r\": {\"z\": 1}}\n", "no field z");
    refuses(t, "r ROW<x INT>", "{\"r\": {\"x\": 1, \"x\": 2}}\n", "twice");
    refuses(t, "r ROW<x INT>", "{\"r\": 5}\n", "expected an object");
}

TARN_TEST(jsonl, bounds_the_depth)
{
    struct tarn_buf text = {0};
    tarn_buf_add_str(&text, "{\"a\": ");
    for (int i = 0; i < 100000; i++)
        tarn_buf_add_byte(&text, '[');
    refuses(t, "a ARRAY<INT>", tarn_buf_cstr(&text), "nested too deeply");
    tarn_buf_drop(&text);
}

TARN_TEST(jsonl, takes_back_the_half_of_a_bad_line)
{
    struct rows r =
        rows_of(t, "a ARRAY<ROW<x INT, l ARRAY<STRING>>>, m MAP<STRING, ARRAY<INT>>, s STRING");
    struct tarn_input_options options = options_of(&r, TARN_DATA_JSONL);
    options.skip_bad_max = 3;
    expect_ok(rows_read(
        t, &r, &options, NULL,
        tarn_slice_str(
            "{\"a\": [{\"x\": 1, \"l\": [\"p\"]}], \"m\": {\"k\": [1]}, \"s\": \"one\"}\n"
            "{\"s\": \"bad\", \"m\": {\"k\": [1, 2]}, \"a\": [{\"x\": 2, \"l\": [\"q\", 5]}]}\n"
            "{\"a\": [{\"x\": 2, \"l\": [\"q\"]}, {\"x\": \"z\"}]}\n"
            "{\"m\": {\"k\": [1, 2], \"j\": [\"v\"]}}\n"
            "{\"a\": [{\"x\": 3, \"l\": [\"r\", null]}], \"m\": {\"k\": [4]}, \"s\": \"two\"}\n"),
        0, false));
    expect_slice(
        rows_print(t, &r, TARN_DATA_JSONL),
        "{\"a\": [{\"x\": 1, \"l\": [\"p\"]}], \"m\": {\"k\": [1]}, \"s\": \"one\"}\n"
        "{\"a\": [{\"x\": 3, \"l\": [\"r\", null]}], \"m\": {\"k\": [4]}, \"s\": \"two\"}\n");
    rows_clear(&r);
}

TARN_TEST(jsonl, reads_row_kinds)
{
    struct rows r = rows_of(t, "a INT");
    struct tarn_input_options options = options_of(&r, TARN_DATA_JSONL);
    options.op_column = "rowkind";
    expect_ok(rows_read(
        t, &r, &options, NULL,
        tarn_slice_str("{\"rowkind\": \"-D\", \"a\": 1}\n{\"a\": 2, \"rowkind\": \"+I\"}\n"), 0,
        true));
    const int8_t *kinds = r.batches[0]->array.children[1]->buffers[1];
    expect_true(kinds[0] == 3 && kinds[1] == 0);
    rows_clear(&r);
    expect_status(rows_read(t, &r, &options, NULL, tarn_slice_str("{\"a\": 2}\n"), 0, true),
                  TARN_ROW_INVALID, "rowkind");
    expect_status(
        rows_read(t, &r, &options, NULL, tarn_slice_str("{\"a\": 2, \"rowkind\": 1}\n"), 0, true),
        TARN_ROW_INVALID, "rowkind");
}

TARN_TEST(jsonl, gives_batches_of_bounded_size)
{
    struct tarn_buf text = {0};
    for (int i = 0; i < 20000; i++)
        tarn_buf_printf(&text, "{\"a\": %d}\n", i);
    struct rows r = rows_json(t, "a INT", tarn_buf_cstr(&text));
    int64_t rows = 0;
    expect_true(r.count > 1);
    for (size_t i = 0; i < r.count; i++)
        rows += r.batches[i]->row_count;
    expect_int(rows, 20000);
    expect_true(tarn_batch_size(r.batches[0]) >= 4 * r.batches[0]->row_count);
    rows_clear(&r);
    tarn_buf_drop(&text);
}
