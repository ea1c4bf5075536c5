/*
 * Promise: Parquet files with other writers' habits (dictionaries, large layouts, unsigned numbers,
 * any unit of time, INT96, data page 2, legacy lists) become the one canonical layout, exactly.
 * Files: test/golden/columnar, made by make.py there.
 */
#include "columnar_fixture.h"

static struct tarn_status *read_golden(struct tarn_test *t, const char *name, struct rows *r)
{
    struct tarn_store *store = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(tarn_arena_printf(t->arena, "columnar/%s.parquet", name), &bytes);
    expect_ok(tarn_store_open("memory:", &store));
    expect_ok(tarn_store_put(store, t->op, "g.parquet", tarn_buf_slice(&bytes)));
    struct tarn_status *s = file_read(t, store, "g.parquet", r, r, 0, 0);
    tarn_store_drop(&store);
    return s;
}

static void holds(struct tarn_test *t, const char *name, const char *columns, const char *want)
{
    struct rows r = rows_of(t, columns);
    expect_ok(read_golden(t, name, &r));
    expect_slice(rows_print(t, &r, TARN_DATA_JSONL), want);
    rows_clear(&r);
}

static void foreign(struct tarn_test *t, const char *name)
{
    holds(
        t, name, "dict STRING, large STRING, fixed BINARY(4), u8 SMALLINT, u32 BIGINT",
        "{\"dict\": \"x\", \"large\": \"y\", \"fixed\": \"YWJjZA==\", \"u8\": 255, \"u32\": 4294967295}\n"
        "{\"dict\": null, \"large\": null, \"fixed\": null, \"u8\": null, \"u32\": null}\n");
    holds(
        t, name,
        "s TIMESTAMP_LTZ(0), ms TIMESTAMP(9), tus TIME(3), dec DECIMAL(9,2), dec20 DECIMAL(20,2)",
        "{\"s\": \"1969-12-31 23:59:59\", \"ms\": \"1969-12-31 23:59:59.999\", \"tus\": \"12:00:00\", \"dec\": -1.25, \"dec20\": -123456789012345678.25}\n"
        "{\"s\": null, \"ms\": null, \"tus\": null, \"dec\": null, \"dec20\": null}\n");
    holds(
        t, name,
        "biglist ARRAY<STRING>, three ARRAY<INT>, map MAP<STRING, BIGINT>, row ROW<a STRING, b INT, c DATE>, nothing DOUBLE",
        "{\"biglist\": [\"p\", null], \"three\": [1, 2, 3], \"map\": {\"k\": 1}, \"row\": {\"a\": \"s\", \"b\": 1, \"c\": null}, \"nothing\": null}\n"
        "{\"biglist\": null, \"three\": null, \"map\": null, \"row\": null, \"nothing\": null}\n");
}

TARN_TEST(foreign, reads_page_version_2)
{
    foreign(t, "foreign");
    holds(t, "foreign", "ns TIMESTAMP(9)",
          "{\"ns\": \"1969-12-31 23:59:59.999999999\"}\n{\"ns\": null}\n");
    holds(t, "foreign", "ns TIMESTAMP(3)",
          "{\"ns\": \"1969-12-31 23:59:59.999\"}\n{\"ns\": null}\n");
}

TARN_TEST(foreign, reads_format_version_1)
{
    foreign(t, "foreign_v1");
}

TARN_TEST(foreign, reads_int96)
{
    holds(
        t, "int96", "t TIMESTAMP(9), l ARRAY<TIMESTAMP(9)>",
        "{\"t\": \"1969-12-31 23:59:59.999999999\", \"l\": [\"1969-12-31 23:59:59.999999999\", null]}\n"
        "{\"t\": \"2026-01-31 12:00:00.123456789\", \"l\": []}\n"
        "{\"t\": null, \"l\": null}\n"
        "{\"t\": \"1969-12-31 00:00:00\", \"l\": [\"1970-01-01 00:00:00.000000001\"]}\n");
}

TARN_TEST(foreign, refuses_times_it_cannot_hold)
{
    struct rows r = rows_of(t, "t TIMESTAMP(9)");
    expect_status(read_golden(t, "int96_far", &r), TARN_VALUE_INVALID, "1677");
    expect_status(read_golden(t, "int64_far", &r), TARN_VALUE_INVALID, "out of the type's range");
    struct rows l = rows_of(t, "t ARRAY<TIMESTAMP(9)>");
    expect_status(read_golden(t, "int96_far_list", &l), TARN_VALUE_INVALID, "1677");
    holds(t, "int64_far", "t TIMESTAMP(6)", "{\"t\": \"9999-12-31 00:00:00\"}\n");
}

TARN_TEST(foreign, refuses_other_types)
{
    struct rows r = rows_of(t, "dict INT");
    expect_status(read_golden(t, "foreign", &r), TARN_DATA_FILE_MALFORMED, "column dict");
}
