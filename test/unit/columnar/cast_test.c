/*
 * Promise: a file written under an older schema is read as Paimon casts its columns: what wraps, what is cut, what becomes
 * null, what is padded, and what is refused.
 */
#include "columnar_fixture.h"

/* Column a of `from`, read as `to`; the values divided by commas, as JSON. */
static void casts(struct tarn_test *t, const char *from, const char *values, const char *to,
                  const char *want)
{
    static const char *const formats[] = {"parquet", "avro"};
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    struct tarn_buf lines = {0};
    const char *columns = tarn_arena_printf(t->arena, "a %s", from);
    char *copy = tarn_arena_printf(t->arena, "%s", values), *save = NULL;

    for (char *v = strtok_r(copy, ",", &save); v != NULL; v = strtok_r(NULL, ",", &save))
        tarn_buf_printf(&lines, "{\"a\": %s}\n", v);
    struct rows in = rows_json(t, columns, tarn_arena_str(t->arena, tarn_buf_slice(&lines)));
    tarn_buf_drop(&lines);
    expect_ok(tarn_store_open("memory:", &store));
    for (size_t f = 0; f < TARN_COUNT_OF(formats); f++) {
        const char *key = tarn_arena_printf(t->arena, "c.%s", formats[f]);
        struct rows out = rows_of(t, tarn_arena_printf(t->arena, "a %s", to));
        struct tarn_buf got = {0};
        expect_ok(file_write(t, store, key, &in, "none", &result));
        struct tarn_status *s = file_read(t, store, key, &in, &out, 0, 0);
        if (want == NULL) {
            expect_status(s, TARN_VALUE_INVALID, "");
        } else {
            expect_ok(s);
            char *text = tarn_arena_str(t->arena, rows_print(t, &out, TARN_DATA_JSONL));
            for (char *line = strtok_r(text, "\n", &save); line != NULL;
                 line = strtok_r(NULL, "\n", &save)) {
                line[strlen(line) - 1] = 0; /* {"a": …} */
                tarn_buf_printf(&got, "%s%s", got.size > 0 ? "," : "", line + 6);
            }
            expect_slice(tarn_buf_slice(&got), want);
        }
        tarn_buf_drop(&got);
        rows_clear(&out);
    }
    rows_clear(&in);
    tarn_store_drop(&store);
}

TARN_TEST(cast, numbers_to_narrower_ones)
{
    casts(t, "INT", "300,-129,127,null", "TINYINT", "44,127,127,null");
    casts(t, "BIGINT", "2147483648,-1,65536", "INT", "-2147483648,-1,65536");
    casts(t, "BIGINT", "70000", "SMALLINT", "4464");
    casts(t, "DOUBLE", "1e300,-1e300,\"NaN\",-2.9,3e9", "INT",
          "2147483647,-2147483648,0,-2,2147483647");
    casts(t, "DOUBLE", "1e300,-1e19", "BIGINT", "9223372036854775807,-9223372036854775808");
    casts(t, "DOUBLE", "300.5,3e9", "TINYINT", "44,-1");
    casts(t, "DECIMAL(20,3)", "1.999,-1.999,4294967297.000", "INT", "1,-1,1");
    casts(t, "DOUBLE", "0.005,-0.005,1e10,1.115", "DECIMAL(5,2)", "0.01,-0.01,null,1.12");
    casts(t, "DOUBLE", "\"NaN\"", "DECIMAL(5,2)", NULL);
    casts(t, "DOUBLE", "0.1,1e300", "FLOAT", "0.1,\"Infinity\"");
}

TARN_TEST(cast, booleans_and_seconds)
{
    casts(t, "BOOLEAN", "true,false,null", "DECIMAL(3,1)", "1.0,0.0,null");
    casts(t, "BOOLEAN", "true,false", "BIGINT", "1,0");
    casts(t, "BIGINT", "0,5,-9223372036854775808", "BOOLEAN", "false,true,true");
    casts(t, "BIGINT", "1,-1", "TIMESTAMP(6)", "\"1970-01-01 00:00:01\",\"1969-12-31 23:59:59\"");
    casts(t, "BIGINT", "9223372036854775807", "TIMESTAMP(3)", NULL);
    casts(t, "TIMESTAMP(3)", "\"1970-01-01 00:00:01.9\",\"1969-12-31 23:59:58.5\"", "BIGINT",
          "1,-1");
    casts(t, "TIME(3)", "\"00:00:01.5\"", "TIMESTAMP(3)", "\"1970-01-01 00:00:01.5\"");
}

TARN_TEST(cast, to_text)
{
    casts(t, "INT", "-12,345678", "VARCHAR(3)", "\"-12\",\"345\"");
    casts(t, "INT", "7", "CHAR(3)", "\"7  \"");
    casts(t, "BOOLEAN", "true,false", "STRING", "\"true\",\"false\"");
    casts(t, "DECIMAL(9,2)", "-0.05,10.00", "STRING", "\"-0.05\",\"10.00\"");
    casts(
        t, "DOUBLE", "0.1,1e7,9999999,0.001,0.0001,-0.0,5e-324,1.5e300,\"NaN\",100", "STRING",
        "\"0.1\",\"1.0E7\",\"9999999.0\",\"0.001\",\"1.0E-4\",\"-0.0\",\"4.9E-324\",\"1.5E300\",\"NaN\",\"100.0\"");
    casts(t, "FLOAT", "0.1,1e10,16777216", "STRING", "\"0.1\",\"1.0E10\",\"1.6777216E7\"");
    casts(t, "DATE", "\"0001-01-01\"", "STRING", "\"0001-01-01\"");
    casts(t, "TIMESTAMP(3)", "\"1969-12-31 23:59:59.5\"", "STRING", "\"1969-12-31 23:59:59.500\"");
    casts(t, "TIMESTAMP(0)", "\"2024-01-01 00:00:00\"", "STRING", "\"2024-01-01 00:00:00\"");
    casts(t, "TIME(3)", "\"00:00:01.5\",\"00:00:01\"", "STRING", "\"00:00:01.5\",\"00:00:01.0\"");
    casts(t, "VARCHAR(9)", "\"\u00e4\u20acx\",\"a\"", "CHAR(2)", "\"\u00e4\u20ac\",\"a \"");
    casts(t, "BYTES", "\"YWJj\",\"\"", "BINARY(2)", "\"YWI=\",\"AAA=\"");
    casts(t, "BYTES", "\"YWJj\"", "STRING", "\"abc\"");
}

TARN_TEST(cast, from_text)
{
    casts(t, "STRING", "\"-12\",\"+7\",\"1.99\"", "INT", "-12,7,1");
    casts(t, "STRING", "\"128\"", "TINYINT", NULL);
    casts(t, "STRING", "\"1x\"", "INT", NULL);
    casts(t, "STRING", "\"\"", "BIGINT", NULL);
    casts(t, "STRING", "\"1.255\",\"-1e2\",\"12345\",\"0.0049\"", "DECIMAL(5,2)",
          "1.26,-100.00,null,0.00");
    casts(t, "STRING", "\"abc\"", "DECIMAL(5,2)", NULL);
    casts(t, "STRING", "\"T\",\"no\",\"0\"", "BOOLEAN", "true,false,false");
    casts(t, "STRING", "\"maybe\"", "BOOLEAN", NULL);
    casts(t, "STRING", "\"1e3\",\"-0.5\"", "DOUBLE", "1000,-0.5");
    casts(t, "STRING", "\"2024-02-29\"", "DATE", "\"2024-02-29\"");
    casts(t, "STRING", "\"2024-02-30\"", "DATE", NULL);
    casts(t, "STRING", "\"2024-02-29 01:02:03.5\"", "TIMESTAMP(3)", "\"2024-02-29 01:02:03.5\"");
    casts(t, "STRING", "\"abc\"", "VARBINARY(2)", "\"YWI=\"");
}

TARN_TEST(cast, within_what_is_nested)
{
    casts(t, "ARRAY<BIGINT>", "[4294967296]", "ARRAY<INT>", "[0]");
    casts(t, "ROW<x INT>", "{\"x\": 5}", "ROW<x STRING>", "{\"x\": \"5\"}");
    casts(t, "MAP<STRING, DOUBLE>", "{\"k\": 2.5}", "MAP<STRING, INT>", "{\"k\": 2}");
}
