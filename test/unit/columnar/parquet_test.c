/*
 * Promise: what is written to a Parquet file comes back the same, of every type, null or not, nested or not;
 * old files are read under the new schema; the statistics bound what is there; damaged files are errors.
 */
#include "columnar_fixture.h"

#include <math.h>

static void round_trip(struct tarn_test *t, const char *columns, const char *lines)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in = rows_json(t, columns, lines);
    static const char *const codecs[] = {"zstd", "snappy", "gzip", "lz4", "none"};
    for (size_t i = 0; i < TARN_COUNT_OF(codecs); i++) {
        const char *key = tarn_arena_printf(t->arena, "t/%s.parquet", codecs[i]);
        struct rows out = rows_of(t, columns);
        expect_ok(file_write(t, store, key, &in, codecs[i], &result));
        expect_ok(file_read(t, store, key, &in, &out, 0, 0));
        expect_bytes(rows_print(t, &out, TARN_DATA_JSONL), rows_print(t, &in, TARN_DATA_JSONL));
        expect_slice(rows_print(t, &out, TARN_DATA_JSONL), lines);
        rows_clear(&out);
    }
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(parquet, keeps_integers_and_reals)
{
    round_trip(
        t, "a TINYINT, b SMALLINT, c INT NOT NULL, d BIGINT, e FLOAT, f DOUBLE, g BOOLEAN",
        "{\"a\": -128, \"b\": -32768, \"c\": -2147483648, \"d\": -9223372036854775808, \"e\": \"NaN\", \"f\": \"-Infinity\", \"g\": true}\n"
        "{\"a\": 127, \"b\": 32767, \"c\": 2147483647, \"d\": 9223372036854775807, \"e\": 1.5, \"f\": 0.1, \"g\": false}\n"
        "{\"a\": null, \"b\": null, \"c\": 0, \"d\": null, \"e\": null, \"f\": null, \"g\": null}\n");
}

TARN_TEST(parquet, keeps_decimals_of_each_physical_kind)
{
    round_trip(
        t,
        "a DECIMAL(9,2), b DECIMAL(18,0), c DECIMAL(19,3), d DECIMAL(38,38), e DECIMAL(38,0) NOT NULL",
        "{\"a\": -9999999.99, \"b\": 999999999999999999, \"c\": -1.001, \"d\": 0.00000000000000000000000000000000000001, \"e\": -99999999999999999999999999999999999999}\n"
        "{\"a\": 0.05, \"b\": -1, \"c\": 9999999999999999.999, \"d\": -0.99999999999999999999999999999999999999, \"e\": 99999999999999999999999999999999999999}\n"
        "{\"a\": null, \"b\": null, \"c\": null, \"d\": null, \"e\": 0}\n");
}

TARN_TEST(parquet, keeps_times_before_1970_and_of_every_precision)
{
    round_trip(
        t,
        "d DATE, t TIME(3), t0 TIMESTAMP(0), t3 TIMESTAMP(3), t6 TIMESTAMP(6), t9 TIMESTAMP(9), z3 TIMESTAMP_LTZ(3), z6 TIMESTAMP_LTZ(6), z9 TIMESTAMP_LTZ(9)",
        "{\"d\": \"1969-12-31\", \"t\": \"23:59:59.999\", \"t0\": \"1969-12-31 23:59:59\", \"t3\": \"1969-12-31 23:59:59.999\", \"t6\": \"0001-01-01 00:00:00.000001\", \"t9\": \"1969-12-31 23:59:59.999999999\", \"z3\": \"1960-02-29 12:00:00\", \"z6\": \"1969-12-31 00:00:00.000001\", \"z9\": \"1677-09-21 00:12:43.145224193\"}\n"
        "{\"d\": \"9999-12-31\", \"t\": \"00:00:00\", \"t0\": \"9999-12-31 23:59:59\", \"t3\": \"2026-01-31 12:00:00.123\", \"t6\": \"2026-01-31 12:00:00.123456\", \"t9\": \"1970-01-01 00:00:00\", \"z3\": \"2026-01-31 12:00:00.1\", \"z6\": \"2026-01-31 12:00:00\", \"z9\": \"2262-04-11 23:47:16.854775807\"}\n"
        "{\"d\": null, \"t\": null, \"t0\": null, \"t3\": null, \"t6\": null, \"t9\": null, \"z3\": null, \"z6\": null, \"z9\": null}\n");
}

TARN_TEST(parquet, keeps_texts_and_bytes)
{
    round_trip(
        t, "s STRING, v VARCHAR(3), c CHAR(2), b BYTES, x BINARY(4)",
        "{\"s\": \"\", \"v\": \"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\", \"c\": \"ab\", \"b\": \"\", \"x\": \"AAECAw==\"}\n"
        "{\"s\": \"line\\u000a\\\"quoted\\\"\", \"v\": \"abc\", \"c\": \"x\", \"b\": \"/w==\", \"x\": \"AA==\"}\n"
        "{\"s\": null, \"v\": null, \"c\": null, \"b\": null, \"x\": null}\n");
}

TARN_TEST(parquet, keeps_nested_values_with_nulls_at_each_level)
{
    round_trip(
        t,
        "a ARRAY<INT>, m MAP<STRING, ARRAY<BIGINT>>, r ROW<x INT, y ROW<z STRING, w TIMESTAMP(9)>>, s MULTISET<STRING>, n ARRAY<ROW<q DECIMAL(20,2), l ARRAY<STRING>>>, i MAP<INT, STRING>",
        "{\"a\": [1, null, 3], \"m\": {\"k\": [1, null], \"e\": [], \"n\": null}, \"r\": {\"x\": 1, \"y\": {\"z\": \"t\", \"w\": \"1969-12-31 23:59:59.000000001\"}}, \"s\": {\"a\": 2}, \"n\": [{\"q\": -1.25, \"l\": [\"x\", null, \"\"]}, null, {\"q\": null, \"l\": null}], \"i\": [[1, \"one\"], [2, null]]}\n"
        "{\"a\": [], \"m\": {}, \"r\": {\"x\": null, \"y\": null}, \"s\": {}, \"n\": [], \"i\": []}\n"
        "{\"a\": null, \"m\": null, \"r\": null, \"s\": null, \"n\": null, \"i\": null}\n"
        "{\"a\": [null], \"m\": {\"\": [9223372036854775807]}, \"r\": {\"x\": 2, \"y\": {\"z\": null, \"w\": null}}, \"s\": {\"b\": 1, \"c\": 3}, \"n\": [{\"q\": 0.00, \"l\": []}], \"i\": [[-1, \"\"]]}\n");
}

TARN_TEST(parquet, tells_bounds_and_null_counts)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in = rows_json(
        t,
        "i INT, s STRING, d DECIMAL(20,1), e DECIMAL(5,2), t TIMESTAMP(6), n DOUBLE, a ARRAY<INT>, z INT, t9 TIMESTAMP(9), x DOUBLE",
        "{\"i\": 5, \"s\": \"b\", \"d\": -7.5, \"e\": 1.25, \"t\": \"1969-12-31 23:59:59.999999\", \"n\": \"NaN\", \"x\": 2.5, \"t9\": \"1970-01-01 00:00:00\"}\n"
        "{\"i\": -3, \"s\": \"\xc3\xa4\", \"d\": 99999999999999.5, \"e\": -2.50, \"t\": \"2026-01-31 12:00:00\", \"n\": 1, \"x\": -1.5}\n"
        "{\"s\": \"\"}\n");
    expect_ok(file_write(t, store, "a.parquet", &in, "zstd", &result));
    expect_int(result.row_count, 3);
    struct tarn_object object;
    bool found;
    expect_ok(tarn_store_stat(store, t->op, "a.parquet", &found, &object));
    expect_int(result.size, object.size);
    struct tarn_column_stats *c = result.columns;
    expect_true(c[0].has_bounds && c[0].min.integer == -3 && c[0].max.integer == 5 &&
                c[0].null_count == 1);
    expect_true(c[1].has_bounds && c[1].null_count == 0);
    expect_slice(c[1].min.bytes, "");
    expect_slice(c[1].max.bytes, "\xc3\xa4");
    expect_true(c[2].has_bounds && c[2].min.decimal == -75 &&
                c[2].max.decimal == 999999999999995LL);
    expect_true(c[3].has_bounds && c[3].min.decimal == -250 && c[3].max.decimal == 125);
    expect_true(c[4].has_bounds && c[4].min.time.ms == -1 && c[4].min.time.ns == 999000);
    expect_false(c[5].has_bounds); /* NaN is the largest in Paimon's order, Parquet leaves it out */
    expect_true(c[6].none);
    expect_true(!c[7].has_bounds && c[7].null_count == 3);
    expect_true(!c[8].has_bounds && !c[8].none && c[8].null_count == 2);
    expect_true(c[9].has_bounds && c[9].min.real == -1.5 && c[9].max.real == 2.5);
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(parquet, keeps_the_sign_of_zero)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in = rows_json(t, "f DOUBLE", "{\"f\": -0.0}\n{\"f\": 0.0}\n");
    struct rows out = rows_of(t, "f DOUBLE");
    expect_ok(file_write(t, store, "z.parquet", &in, "zstd", &result));
    expect_ok(file_read(t, store, "z.parquet", &in, &out, 0, 0));
    struct tarn_value v;
    tarn_column_value(tarn_batch_column(out.batches[0], 0), out.fields[0].type, 0, &v);
    expect_true(signbit(v.real));
    tarn_column_value(tarn_batch_column(out.batches[0], 0), out.fields[0].type, 1, &v);
    expect_false(signbit(v.real));
    rows_clear(&in);
    rows_clear(&out);
    tarn_store_drop(&store);
}

/* Old column list, new column list, what a row of the old one reads as. */
static void evolve(struct tarn_test *t, const char *old_columns, const char *line,
                   const char *new_columns, const char *want)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in = rows_json(t, old_columns, line);
    struct rows out = rows_of(t, new_columns);
    expect_ok(file_write(t, store, "o.parquet", &in, "zstd", &result));
    expect_ok(file_read(t, store, "o.parquet", &in, &out, 0, 0));
    expect_slice(rows_print(t, &out, TARN_DATA_JSONL), want);
    rows_clear(&in);
    rows_clear(&out);
    tarn_store_drop(&store);
}

TARN_TEST(parquet, reads_old_files_under_a_new_schema)
{
    evolve(t, "a INT", "{\"a\": 7}\n", "b STRING, a BIGINT", "{\"b\": null, \"a\": 7}\n");
    evolve(t, "a INT", "{\"a\": 7}\n", "b STRING", "{\"b\": null}\n");
    evolve(t, "a TINYINT, b SMALLINT, c BIGINT", "{\"a\": -1, \"b\": 2, \"c\": 3}\n",
           "a DOUBLE, b DECIMAL(10,2), c DECIMAL(1,0)", "{\"a\": -1, \"b\": 2.00, \"c\": 3}\n");
    evolve(t, "a DECIMAL(5,2)", "{\"a\": 111.35}\n", "a DECIMAL(6,3)", "{\"a\": 111.350}\n");
    evolve(t, "a DECIMAL(5,2)", "{\"a\": 111.35}\n", "a DECIMAL(5,1)", "{\"a\": 111.4}\n");
    evolve(t, "a DECIMAL(5,2)", "{\"a\": 111.35}\n", "a DECIMAL(4,2)", "{\"a\": null}\n");
    evolve(t, "a DECIMAL(20,2)", "{\"a\": 0.10}\n", "a DOUBLE", "{\"a\": 0.1}\n");
    evolve(t, "a FLOAT", "{\"a\": 1.5}\n", "a DOUBLE", "{\"a\": 1.5}\n");
    evolve(t, "a TIMESTAMP(6)", "{\"a\": \"1969-12-31 23:59:59.123456\"}\n", "a TIMESTAMP(3)",
           "{\"a\": \"1969-12-31 23:59:59.123\"}\n");
    evolve(t, "a TIMESTAMP(9)", "{\"a\": \"1969-12-31 23:59:59.000000009\"}\n", "a TIMESTAMP(3)",
           "{\"a\": \"1969-12-31 23:59:59\"}\n");
    evolve(t, "a TIMESTAMP(3)", "{\"a\": \"1969-12-31 23:59:59.5\"}\n", "a TIMESTAMP(9)",
           "{\"a\": \"1969-12-31 23:59:59.5\"}\n");
    evolve(t, "a TIMESTAMP(3)", "{\"a\": \"1969-12-31 23:00:00\"}\n", "a DATE",
           "{\"a\": \"1969-12-31\"}\n");
    evolve(t, "a TIMESTAMP(3)", "{\"a\": \"1969-12-31 23:00:00\"}\n", "a TIME(3)",
           "{\"a\": \"23:00:00\"}\n");
    evolve(t, "a DATE", "{\"a\": \"1969-12-31\"}\n", "a TIMESTAMP(6)",
           "{\"a\": \"1969-12-31 00:00:00\"}\n");
    evolve(t, "a VARCHAR(5)",
           "{\"a\": \"\xc3\xa4"
           "bcde\"}\n",
           "a VARCHAR(2)",
           "{\"a\": \"\xc3\xa4"
           "b\"}\n");
    evolve(t, "a ARRAY<INT>, m MAP<STRING, FLOAT>", "{\"a\": [1, null], \"m\": {\"k\": 1.5}}\n",
           "a ARRAY<BIGINT>, m MAP<STRING, DOUBLE>", "{\"a\": [1, null], \"m\": {\"k\": 1.5}}\n");
}

TARN_TEST(parquet, finds_row_subfields_by_id)
{
    static const struct tarn_type int_type = {.id = TARN_TYPE_INT, .nullable = true};
    static const struct tarn_type long_type = {.id = TARN_TYPE_BIGINT, .nullable = true};
    struct tarn_field old_parts[] = {{.id = 5, .name = tarn_slice_str("x"), .type = &int_type},
                                     {.id = 6, .name = tarn_slice_str("y"), .type = &int_type}};
    struct tarn_field new_parts[] = {{.id = 7, .name = tarn_slice_str("x"), .type = &int_type},
                                     {.id = 5, .name = tarn_slice_str("z"), .type = &long_type}};
    struct tarn_type old_row = {
        .id = TARN_TYPE_ROW, .nullable = true, .fields = old_parts, .field_count = 2};
    struct tarn_type new_row = {
        .id = TARN_TYPE_ROW, .nullable = true, .fields = new_parts, .field_count = 2};
    struct tarn_field old_column = {.name = tarn_slice_str("r"), .type = &old_row},
                      new_column = {.name = tarn_slice_str("r"), .type = &new_row};
    struct rows in = {.fields = &old_column, .field_count = 1},
                out = {.fields = &new_column, .field_count = 1};
    struct tarn_input_options options = options_of(&in, TARN_DATA_JSONL);
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &store));
    expect_ok(rows_read(t, &in, &options, NULL,
                        tarn_slice_str("{\"r\": {\"x\": 1, \"y\": 2}}\n{\"r\": null}\n"), 0,
                        false));
    expect_ok(file_write(t, store, "r.parquet", &in, "zstd", &result));
    expect_ok(file_read(t, store, "r.parquet", &in, &out, 0, 0));
    expect_slice(rows_print(t, &out, TARN_DATA_JSONL),
                 "{\"r\": {\"x\": null, \"z\": 1}}\n{\"r\": null}\n");
    rows_clear(&in);
    rows_clear(&out);
    tarn_store_drop(&store);
}

TARN_TEST(parquet, refuses_casts_it_does_not_know)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in = rows_json(t, "a ARRAY<INT>", "{\"a\": [7]}\n");
    struct rows out = rows_of(t, "a STRING");
    expect_ok(file_write(t, store, "o.parquet", &in, "zstd", &result));
    expect_status(file_read(t, store, "o.parquet", &in, &out, 0, 0), TARN_UNSUPPORTED_FEATURE,
                  "column a");
    expect_status(file_read(t, store, "o.csv", &in, &out, 0, 0), TARN_UNSUPPORTED_FEATURE, "csv");
    expect_status(file_read(t, store, "gone.parquet", &in, &out, 0, 0), TARN_OBJECT_NOT_FOUND, "");
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(parquet, refuses_null_in_not_null_and_leaves_no_object)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    bool found = true;
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in = rows_json(t, "a INT", "{\"a\": null}\n");
    in.fields = rows_of(t, "a INT NOT NULL").fields;
    expect_status(file_write(t, store, "n.parquet", &in, "zstd", &result), TARN_VALUE_INVALID,
                  "NOT NULL");
    expect_ok(tarn_store_stat(store, t->op, "n.parquet", &found, NULL));
    expect_false(found);
    rows_clear(&in);
    tarn_store_drop(&store);
}

static const char *many_rows(struct tarn_test *t, int count)
{
    struct tarn_buf text = {0};
    for (int i = 0; i < count; i++)
        tarn_buf_printf(
            &text,
            "{\"id\": %d, \"s\": \"name-%d\", \"t\": \"2026-01-31 12:00:00.%09d\", \"a\": [%d]}\n",
            i, i % 100, i, i);
    const char *copy = tarn_arena_str(t->arena, tarn_buf_slice(&text));
    tarn_buf_drop(&text);
    return copy;
}

TARN_TEST(parquet, reads_a_range_of_rows)
{
    const char *columns = "id INT NOT NULL, s STRING, t TIMESTAMP(9), a ARRAY<INT>";
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in = rows_json(t, columns, many_rows(t, 40000));
    expect_ok(file_write(t, store, "m.parquet", &in, "zstd", &result));
    static const int64_t ranges[][3] = {{0, 0, 40000},     {5, 6, 1},         {8190, 8194, 4},
                                        {39999, 50000, 1}, {40000, 50000, 0}, {0, 20000, 20000}};
    for (size_t i = 0; i < TARN_COUNT_OF(ranges); i++) {
        struct rows out = rows_of(t, columns);
        int64_t seen = 0;
        struct tarn_value v;
        expect_ok(file_read(t, store, "m.parquet", &in, &out, ranges[i][0], ranges[i][1]));
        for (size_t b = 0; b < out.count; b++)
            for (int64_t row = 0; row < out.batches[b]->row_count; row++, seen++) {
                tarn_column_value(tarn_batch_column(out.batches[b], 0), out.fields[0].type, row,
                                  &v);
                expect_int(v.integer, ranges[i][0] + seen);
            }
        expect_int(seen, ranges[i][2]);
        rows_clear(&out);
    }
    rows_clear(&in);
    tarn_store_drop(&store);
}

/* Reads bytes as a file; the outcome may be anything but a crash. */
static void try_bytes(struct tarn_test *t, struct tarn_store *store, struct tarn_slice bytes,
                      const struct rows *like, bool must_fail)
{
    struct rows out = {.fields = like->fields, .field_count = like->field_count};
    expect_ok(tarn_store_put(store, t->op, "x.parquet", bytes));
    struct tarn_status *s = file_read(t, store, "x.parquet", like, &out, 0, 0);
    if (must_fail)
        expect_true(s != TARN_OK);
    rows_clear(&out);
    tarn_status_free(s);
}

TARN_TEST(parquet, damaged_files_are_errors_not_crashes)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    struct tarn_buf whole = {0};
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in =
        rows_json(t, "id INT NOT NULL, s STRING, t TIMESTAMP(9), a ARRAY<INT>", many_rows(t, 300));
    expect_ok(file_write(t, store, "m.parquet", &in, "zstd", &result));
    expect_ok(tarn_store_get(store, t->op, "m.parquet", &whole));
    for (size_t n = 0; n < whole.size; n += 1 + n / 50)
        try_bytes(t, store, tarn_slice_of(whole.data, n), &in, true);
    for (int i = 0; i < tarn_test_rounds(1500); i++) {
        size_t at = (size_t)tarn_test_random_below(t, whole.size);
        uint8_t was = whole.data[at];
        whole.data[at] ^= (uint8_t)(1u << tarn_test_random_below(t, 8));
        try_bytes(t, store, tarn_buf_slice(&whole), &in, false);
        whole.data[at] = was;
    }
    tarn_buf_drop(&whole);
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(parquet, a_failing_store_shows_its_own_reason)
{
    struct tarn_store *inner = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &inner));
    struct tarn_store *store = tarn_store_faulty_new(inner);
    struct rows in =
        rows_json(t, "id INT, s STRING, t TIMESTAMP(9), a ARRAY<INT>", many_rows(t, 300));
    struct tarn_fault_rule full = {.call = "append", .fault = TARN_FAULT_FULL};
    tarn_store_faulty_add(store, &full);
    expect_status(file_write(t, store, "m.parquet", &in, "zstd", &result), TARN_DISK_FULL, "");
    tarn_store_faulty_clear(store);
    expect_ok(file_write(t, store, "m.parquet", &in, "zstd", &result));
    struct tarn_fault_rule broken = {
        .call = "read_at", .fault = TARN_FAULT_FAIL_BEFORE, .skip_count = 2};
    tarn_store_faulty_add(store, &broken);
    struct rows out = {.fields = in.fields, .field_count = in.field_count};
    expect_status(file_read(t, store, "m.parquet", &in, &out, 0, 0), TARN_IO_ERROR, "");
    rows_clear(&in);
    rows_clear(&out);
    tarn_store_drop(&store);
    tarn_store_drop(&inner);
}
