/*
 * Promise: what is written to an ORC or an Avro file comes back the same, of every type that the format has, null or not,
 * nested or not, whole, in a range of rows, or some columns of it; old files are read under the new schema; the
 * statistics bound what is there; what a format lacks is refused by name; damaged files are errors.
 */
#include "columnar_fixture.h"

#define FORMATS(f)                                                                                 \
    for (const char *const *f = (const char *const[]){"orc", "avro", NULL}; *f != NULL; f++)

static void round_trip(struct tarn_test *t, const char *format, const char *columns,
                       const char *lines)
{
    static const char *const codecs[] = {"zstd", "snappy", "none", "zlib", "lz4", "deflate"};
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    struct rows in = rows_json(t, columns, lines);
    bool orc = strcmp(format, "orc") == 0;

    expect_ok(tarn_store_open("memory:", &store));
    for (size_t i = 0; i < TARN_COUNT_OF(codecs); i++) {
        const char *key = tarn_arena_printf(t->arena, "t/%s.%s", codecs[i], format);
        struct rows out = rows_of(t, columns);
        struct tarn_status *s = file_write(t, store, key, &in, codecs[i], &result);
        if (i >= 3 && orc == (i == 5)) {
            expect_status(s, TARN_UNSUPPORTED_FEATURE, codecs[i]);
            continue;
        }
        expect_ok(s);
        expect_ok(file_read(t, store, key, &in, &out, 0, 0));
        expect_slice(rows_print(t, &out, TARN_DATA_JSONL), lines);
        rows_clear(&out);
    }
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(formats, keep_integers_reals_and_decimals)
{
    FORMATS(f)
    round_trip(
        t, *f,
        "a TINYINT, b SMALLINT, c INT NOT NULL, d BIGINT, e FLOAT, f DOUBLE, g BOOLEAN, h DECIMAL(9,2), i DECIMAL(18,0), j DECIMAL(19,3), k DECIMAL(38,38), l DECIMAL(38,0) NOT NULL",
        "{\"a\": -128, \"b\": -32768, \"c\": -2147483648, \"d\": -9223372036854775808, \"e\": \"NaN\", \"f\": \"-Infinity\", \"g\": true, \"h\": -9999999.99, \"i\": 999999999999999999, \"j\": -1.001, \"k\": 0.00000000000000000000000000000000000001, \"l\": -99999999999999999999999999999999999999}\n"
        "{\"a\": 127, \"b\": 32767, \"c\": 2147483647, \"d\": 9223372036854775807, \"e\": 1.5, \"f\": 0.1, \"g\": false, \"h\": 0.05, \"i\": -1, \"j\": 9999999999999999.999, \"k\": -0.99999999999999999999999999999999999999, \"l\": 99999999999999999999999999999999999999}\n"
        "{\"a\": null, \"b\": null, \"c\": 0, \"d\": null, \"e\": null, \"f\": null, \"g\": null, \"h\": null, \"i\": null, \"j\": null, \"k\": null, \"l\": 0}\n");
}

TARN_TEST(formats, keep_times)
{
    FORMATS(f)
    round_trip(
        t, *f,
        "d DATE, t TIME(3), t0 TIMESTAMP(0), t3 TIMESTAMP(3), t6 TIMESTAMP(6), z3 TIMESTAMP_LTZ(3), z6 TIMESTAMP_LTZ(6), a ARRAY<TIMESTAMP(3)>, r ROW<x TIMESTAMP(6), y INT>, m MAP<INT, TIMESTAMP_LTZ(3)>",
        "{\"d\": \"0001-01-01\", \"t\": \"23:59:59.999\", \"t0\": \"1969-12-31 23:59:59\", \"t3\": \"1969-12-31 23:59:58\", \"t6\": \"1700-01-01 00:00:00\", \"z3\": \"1960-02-29 12:00:00\", \"z6\": \"1969-12-31 00:00:00\", \"a\": [\"1677-09-22 00:00:01\", \"2262-04-10 23:59:59.999\"], \"r\": {\"x\": \"1970-01-01 00:00:00.999999\", \"y\": 1}, \"m\": [[1, \"2000-12-31 23:59:59.999\"]]}\n"
        "{\"d\": \"9999-12-31\", \"t\": \"00:00:00\", \"t0\": \"2200-12-31 23:59:59\", \"t3\": \"2026-01-31 12:00:00.123\", \"t6\": \"2026-01-31 12:00:00.123456\", \"z3\": \"2026-01-31 12:00:00.1\", \"z6\": \"2026-01-31 12:00:00\", \"a\": [null], \"r\": null, \"m\": [[2, null]]}\n"
        "{\"d\": null, \"t\": null, \"t0\": null, \"t3\": null, \"t6\": null, \"z3\": null, \"z6\": null, \"a\": null, \"r\": {\"x\": null, \"y\": null}, \"m\": null}\n");
}

TARN_TEST(formats, keep_times_that_nanoseconds_do_not_hold_or_refuse_them)
{
    const char *columns = "a TIMESTAMP(3), b ARRAY<ROW<x TIMESTAMP(6)>>";
    const char *lines =
        "{\"a\": \"9999-12-31 23:59:59.999\", \"b\": [{\"x\": \"0001-01-01 00:00:00.000001\"}]}\n";
    struct tarn_store *store = NULL;
    struct tarn_file_result result;

    round_trip(t, "avro", columns, lines);
    struct rows in = rows_json(t, columns, lines);
    expect_ok(tarn_store_open("memory:", &store));
    expect_status(file_write(t, store, "a.orc", &in, "zstd", &result), TARN_VALUE_INVALID, "1677");
    rows_clear(&in);
    in = rows_json(t, columns, "{\"a\": \"1969-12-31 23:59:59.5\", \"b\": null}\n");
    expect_status(file_write(t, store, "a.orc", &in, "zstd", &result), TARN_VALUE_INVALID,
                  "part of a second");
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(formats, keep_texts_bytes_and_what_is_nested)
{
    FORMATS(f)
    round_trip(
        t, *f,
        "s STRING, v VARCHAR(9), c CHAR(3), b BYTES, a ARRAY<INT>, m MAP<STRING, BIGINT>, n MAP<INT, ARRAY<ROW<x STRING, y MAP<STRING, DECIMAL(9,2)>>>>, r ROW<p ROW<q ROW<r STRING, s BYTES>>, f FLOAT>",
        "{\"s\": \"\", \"v\": \"\u00e4\u20ac\", \"c\": \"abc\", \"b\": \"AAECAw==\", \"a\": [1, null, -3], \"m\": {\"a\": 1, \"\": null}, \"n\": [[1, [{\"x\": \"t\", \"y\": {\"z\": 1.50}}, null]], [2, []]], \"r\": {\"p\": {\"q\": {\"r\": \"deep\", \"s\": \"AA==\"}}, \"f\": 1.5}}\n"
        "{\"s\": \"a text\", \"v\": \"\", \"c\": \"x\", \"b\": \"\", \"a\": [], \"m\": {}, \"n\": [], \"r\": {\"p\": null, \"f\": null}}\n"
        "{\"s\": null, \"v\": null, \"c\": null, \"b\": null, \"a\": null, \"m\": null, \"n\": null, \"r\": null}\n");
}

TARN_TEST(formats, of_which_one_has_a_type_the_other_lacks)
{
    round_trip(
        t, "orc", "a TIMESTAMP(9), b TIMESTAMP_LTZ(8)",
        "{\"a\": \"1970-02-28 23:59:59.123456789\", \"b\": \"2262-04-10 00:00:00.00000001\"}\n");
    round_trip(t, "avro", "a BINARY(2), b MULTISET<STRING>, c MULTISET<INT>, d VARBINARY(5)",
               "{\"a\": \"AAE=\", \"b\": {\"x\": 2}, \"c\": [[7, 1]], \"d\": \"\"}\n");
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    expect_ok(tarn_store_open("memory:", &store));
    struct rows in = rows_json(t, "a TIMESTAMP(9)", "{\"a\": \"2020-01-01 00:00:00\"}\n");
    expect_status(file_write(t, store, "a.avro", &in, "zstd", &result), TARN_UNSUPPORTED_FEATURE,
                  "TIMESTAMP(9)");
    rows_clear(&in);
    in = rows_json(t, "a MULTISET<INT>", "{\"a\": [[1, 1]]}\n");
    expect_status(file_write(t, store, "a.orc", &in, "zstd", &result), TARN_UNSUPPORTED_FEATURE,
                  "MULTISET");
    rows_clear(&in);
    in = rows_json(t, "`a-b` INT", "{\"a-b\": 1}\n");
    expect_status(file_write(t, store, "a.avro", &in, "zstd", &result), TARN_UNSUPPORTED_FEATURE,
                  "a-b");
    rows_clear(&in);
    tarn_store_drop(&store);
}

/* Rows whose values tell their number; nested ones, too. */
static struct rows numbered(struct tarn_test *t, int64_t count)
{
    struct tarn_buf lines = {0};
    for (int64_t i = 0; i < count; i++)
        tarn_buf_printf(
            &lines,
            "{\"n\": %lld, \"s\": \"text %lld\", \"a\": [%lld, null], \"t\": \"2024-01-01 00:00:00.%03lld\"}\n",
            (long long)i, (long long)(i * 2654435761 % 1000003), (long long)i,
            (long long)(i % 1000));
    tarn_buf_add_byte(&lines, 0);
    const char *text = tarn_arena_str(t->arena, tarn_slice_of(lines.data, lines.size - 1));
    tarn_buf_drop(&lines);
    return rows_json(t, "n BIGINT NOT NULL, s STRING, a ARRAY<BIGINT>, t TIMESTAMP(3)", text);
}

static int64_t rows_in(const struct rows *r)
{
    int64_t n = 0;
    for (size_t i = 0; i < r->count; i++)
        n += r->batches[i]->row_count;
    return n;
}

TARN_TEST(formats, give_a_range_of_rows_and_some_columns)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    struct rows in = numbered(t, 30000);
    static const int64_t ranges[][2] = {{0, 1},         {1, 2},         {8191, 8193},
                                        {12345, 12400}, {29999, 30000}, {15000, 99999},
                                        {30000, 0},     {2000, 27001}};
    expect_ok(tarn_store_open("memory:", &store));
    FORMATS(f)
    {
        const char *key = tarn_arena_printf(t->arena, "n.%s", *f);
        expect_ok(file_write(t, store, key, &in, "zstd", &result));
        expect_int(result.row_count, 30000);
        expect_int(result.columns[0].min.integer, 0);
        expect_int(result.columns[0].max.integer, 29999);
        expect_true(result.columns[2].null_count == 0 && !result.columns[2].has_bounds &&
                    !result.columns[2].none);
        for (size_t i = 0; i < TARN_COUNT_OF(ranges); i++) {
            struct rows out = rows_of(t, "t TIMESTAMP(3), n BIGINT, gone INT");
            int64_t end = ranges[i][1] == 0 ? 30000 : TARN_MIN(ranges[i][1], INT64_C(30000));
            expect_ok(file_read(t, store, key, &in, &out, ranges[i][0], ranges[i][1]));
            expect_int(rows_in(&out), end - ranges[i][0]);
            int64_t at = ranges[i][0];
            for (size_t b = 0; b < out.count; b++) {
                const int64_t *n = tarn_batch_column(out.batches[b], 1)->buffers[1];
                n += tarn_batch_column(out.batches[b], 1)->offset;
                for (int64_t r = 0; r < out.batches[b]->row_count; r++)
                    expect_int(n[r], at++);
            }
            rows_clear(&out);
            out = rows_of(t, "gone INT"); /* none of the columns: the count of rows */
            expect_ok(file_read(t, store, key, &out, &out, ranges[i][0], ranges[i][1]));
            expect_int(rows_in(&out), end - ranges[i][0]);
            rows_clear(&out);
        }
    }
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(formats, of_an_older_schema_are_read_as_the_new_one)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    struct rows in =
        rows_json(t, "a TINYINT, d DECIMAL(9,2), t TIMESTAMP(3), v VARCHAR(9)",
                  "{\"a\": 7, \"d\": 1.25, \"t\": \"2199-01-01 00:00:00.001\", \"v\": \"abc\"}\n");
    expect_ok(tarn_store_open("memory:", &store));
    FORMATS(f)
    {
        const char *key = tarn_arena_printf(t->arena, "o.%s", *f);
        struct rows out = rows_of(t, "t TIMESTAMP(6), a BIGINT, d DECIMAL(20,3), v STRING, x INT");
        expect_ok(file_write(t, store, key, &in, "zstd", &result));
        expect_ok(file_read(t, store, key, &in, &out, 0, 0));
        expect_slice(
            rows_print(t, &out, TARN_DATA_JSONL),
            "{\"t\": \"2199-01-01 00:00:00.001\", \"a\": 7, \"d\": 1.250, \"v\": \"abc\", \"x\": null}\n");
        rows_clear(&out);
    }
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(formats, bound_what_is_there)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    struct rows in = rows_json(
        t, "i INT, f DOUBLE, s STRING, d DECIMAL(20,1), t TIMESTAMP(6), n FLOAT, b BOOLEAN, e INT",
        "{\"i\": 5, \"f\": -0.0, \"s\": \"b\", \"d\": -1.5, \"t\": \"1969-12-31 00:00:00\", \"n\": 1, \"b\": true, \"e\": null}\n"
        "{\"i\": -5, \"f\": 0.0, \"s\": \"\", \"d\": 99.9, \"t\": null, \"n\": \"NaN\", \"b\": true, \"e\": null}\n");
    expect_ok(tarn_store_open("memory:", &store));
    FORMATS(f)
    {
        expect_ok(
            file_write(t, store, tarn_arena_printf(t->arena, "b.%s", *f), &in, "zstd", &result));
        const struct tarn_column_stats *c = result.columns;
        expect_true(c[0].min.integer == -5 && c[0].max.integer == 5 && c[0].null_count == 0);
        expect_true(c[1].has_bounds && 1 / c[1].min.real < 0 && 1 / c[1].max.real > 0);
        expect_slice(c[2].min.bytes, "");
        expect_slice(c[2].max.bytes, "b");
        expect_true(c[3].min.decimal == -15 && c[3].max.decimal == 999);
        expect_true(c[4].min.time.ms == -86400000 && c[4].min.time.ns == 0 && c[4].null_count == 1);
        expect_false(c[5].has_bounds);
        expect_true(c[6].min.integer == 1 && c[6].max.integer == 1);
        expect_true(!c[7].has_bounds && c[7].null_count == 2);
    }
    rows_clear(&in);
    tarn_store_drop(&store);
}

/* A byte of the file changed, or its end cut off: rows, or an error of the right kind. */
TARN_TEST(formats, that_are_damaged_are_errors)
{
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    struct rows in = numbered(t, 300);
    int64_t refused = 0, tried = 0;
    expect_ok(tarn_store_open("memory:", &store));
    FORMATS(f)
    {
        TARN_OWN(tarn_buf_drop) struct tarn_buf whole = {0};
        expect_ok(
            file_write(t, store, tarn_arena_printf(t->arena, "w.%s", *f), &in, "none", &result));
        expect_ok(tarn_store_get(store, t->op, tarn_arena_printf(t->arena, "w.%s", *f), &whole));
        for (size_t at = 0; at < whole.size; at += 1 + whole.size / 700) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf broken = {0};
            struct rows out = {.fields = in.fields, .field_count = in.field_count};
            tarn_buf_add(&broken, whole.data, at % 3 == 0 ? at : whole.size);
            if (at % 3 != 0)
                broken.data[at] ^= (uint8_t)(at % 3 == 1 ? 0xFF : 1 << at % 8);
            const char *key = tarn_arena_printf(t->arena, "x%zu.%s", at, *f);
            expect_ok(tarn_store_put(store, t->op, key, tarn_buf_slice(&broken)));
            struct tarn_status *s = file_read(t, store, key, &in, &out, 0, 0);
            tried++;
            refused += s != TARN_OK;
            if (s != TARN_OK)
                expect_true(tarn_status_reason(s) == TARN_DATA_FILE_MALFORMED ||
                            tarn_status_reason(s) == TARN_VALUE_INVALID ||
                            tarn_status_reason(s) == TARN_MEMORY_EXHAUSTED);
            tarn_status_free(s);
            rows_clear(&out);
        }
    }
    expect_true(tried > 1000 && refused > tried / 3);
    rows_clear(&in);
    tarn_store_drop(&store);
}
