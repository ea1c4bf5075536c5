/*
 * Promise: CSV is read as RFC 4180 and docs/compatibility.md say, whatever the size of the pieces it comes in;
 * every bad row is named with the physical line it starts on, its column and the reason; what is
 * printed is read back the same.
 */
#include "columnar_fixture.h"

/* The JSON lines that `text` reads as, the same for every size of pieces. */
static void reads(struct tarn_test *t, const char *columns, const char *text, const char *want)
{
    static const size_t steps[] = {0, 1, 2, 7};
    for (size_t i = 0; i < TARN_COUNT_OF(steps); i++) {
        struct rows r = rows_of(t, columns);
        struct tarn_input_options options = options_of(&r, TARN_DATA_CSV);
        expect_ok(rows_read(t, &r, &options, NULL, tarn_slice_str(text), steps[i], false));
        expect_slice(rows_print(t, &r, TARN_DATA_JSONL), want);
        rows_clear(&r);
    }
}

static void refuses(struct tarn_test *t, const char *columns, const char *text,
                    enum tarn_reason reason, const char *part)
{
    static const size_t steps[] = {0, 1, 5};
    for (size_t i = 0; i < TARN_COUNT_OF(steps); i++) {
        struct rows r = rows_of(t, columns);
        struct tarn_input_options options = options_of(&r, TARN_DATA_CSV);
        expect_status(rows_read(t, &r, &options, NULL, tarn_slice_str(text), steps[i], false),
                      reason, part);
        rows_clear(&r);
    }
}

TARN_TEST(csv, null_is_nothing_unquoted)
{
    reads(t, "a INT, s STRING", "a,s\n1,\n,\"\"\n2,null\n",
          "{\"a\": 1, \"s\": null}\n{\"a\": null, \"s\": \"\"}\n{\"a\": 2, \"s\": \"null\"}\n");
    reads(t, "a INT", "a\n1\n\n3", "{\"a\": 1}\n{\"a\": null}\n{\"a\": 3}\n");
}

TARN_TEST(csv, matches_columns_by_name_and_fills_missing_ones)
{
    reads(t, "a INT NOT NULL, s STRING, x DATE", "s,a\nhello,1\n",
          "{\"a\": 1, \"s\": \"hello\", \"x\": null}\n");
    reads(t, "a INT",
          "\xEF\xBB\xBF"
          "a\r\n1\r\n2\r\n",
          "{\"a\": 1}\n{\"a\": 2}\n");
    reads(t, "a INT", "a\n", "");
    reads(t, "a INT", "\"a\"", "");
}

TARN_TEST(csv, quotes_line_breaks_and_delimiters)
{
    reads(
        t, "a STRING, b STRING",
        "a,b\n\"x,y\",\"say \"\"hi\"\"\"\n\"two\nlines\",\"\r\n\"\n\"\"\"\",b\"c\n",
        "{\"a\": \"x,y\", \"b\": \"say \\\"hi\\\"\"}\n{\"a\": \"two\\u000alines\", \"b\": \"\\u000d\\u000a\"}\n{\"a\": \"\\\"\", \"b\": \"b\\\"c\"}\n");
    refuses(t, "a STRING, b STRING", "a,b\r\n\"x\"\r,y\r\n", TARN_ROW_INVALID,
            "in:2: text behind a closing quote");
}

TARN_TEST(csv, reads_every_type)
{
    reads(
        t,
        "b BOOLEAN, i TINYINT, l BIGINT, d DECIMAL(5,2), f DOUBLE, dt DATE, tm TIME(3), ts TIMESTAMP(6), z TIMESTAMP_LTZ(3), x BYTES, a ARRAY<INT>, m MAP<STRING, INT>, r ROW<p INT, q STRING>",
        "b,i,l,d,f,dt,tm,ts,z,x,a,m,r\n"
        "true,-5,+12,1.5,1e3,2026-01-31,12:00,1969-12-31T23:59:59.5,2026-01-31T12:00:00+02:00,AAE=,\"[1, null]\",\"{\"\"k\"\": 1}\",\"{\"\"q\"\": \"\"s\"\"}\"\n",
        "{\"b\": true, \"i\": -5, \"l\": 12, \"d\": 1.50, \"f\": 1000, \"dt\": \"2026-01-31\", \"tm\": \"12:00:00\", \"ts\": \"1969-12-31 23:59:59.5\", \"z\": \"2026-01-31 10:00:00\", \"x\": \"AAE=\", \"a\": [1, null], \"m\": {\"k\": 1}, \"r\": {\"p\": null, \"q\": \"s\"}}\n");
}

TARN_TEST(csv, names_line_column_and_reason)
{
    refuses(t, "a INT, s STRING", "a,s\n1,\"two\nlines\"\nx,y\n", TARN_ROW_INVALID,
            "in:4: a: 'x' is not a value of INT");
    refuses(t, "a INT, s STRING", "a,s\n1\n", TARN_ROW_INVALID,
            "in:2: the row has 1 fields, the header 2");
    refuses(t, "a INT, s STRING", "a,s\n\n", TARN_ROW_INVALID, "in:2: the line is empty");
    refuses(t, "a INT, s STRING", "a,s\n1,\"x\"y\n", TARN_ROW_INVALID,
            "in:2: text behind a closing quote");
    refuses(t, "a INT NOT NULL, s STRING", "a,s\n,x\n", TARN_ROW_INVALID, "in:2: a: NOT NULL");
    refuses(t, "a TINYINT", "a\n128\n", TARN_ROW_INVALID, "-128 to 127");
    refuses(t, "a DECIMAL(5,2)", "a\n1.234\n", TARN_ROW_INVALID,
            "at most 2 digits after the point");
    refuses(t, "a VARCHAR(2)", "a\nabc\n", TARN_ROW_INVALID, "at most 2 characters");
    refuses(t, "a STRING", "a\n\xff\n", TARN_ROW_INVALID, "UTF-8");
    refuses(t, "a TIMESTAMP(9)", "a\n3000-01-01 00:00:00\n", TARN_ROW_INVALID, "1677");
    refuses(t, "a TIMESTAMP(3)", "a\n2026-01-31 12:00:00.1234\n", TARN_ROW_INVALID, "more digits");
    refuses(t, "a ARRAY<INT>", "a\n\"[1,\"\n", TARN_ROW_INVALID, "not JSON");
    refuses(t, "a ARRAY<INT>", "a\n\"[1, \"\"x\"\"]\"\n", TARN_ROW_INVALID,
            "'x' is not a value of INT");
}

TARN_TEST(csv, refuses_what_is_no_csv_of_the_table)
{
    refuses(t, "a INT", "", TARN_INPUT_MALFORMED, "header");
    refuses(t, "name INT", "nam\n1\n", TARN_COLUMN_NOT_FOUND, "did you mean name");
    refuses(t, "a INT", "a,a\n1,1\n", TARN_INPUT_MALFORMED, "twice");
    refuses(t, "a INT NOT NULL, b INT", "b\n1\n", TARN_COLUMN_NOT_FOUND, "NOT NULL");
    refuses(t, "a STRING", "a\nx\n\"open\nand more\n", TARN_INPUT_MALFORMED,
            "in:3: a quoted field opens");
}

TARN_TEST(csv, skips_bad_rows_and_remembers_them)
{
    struct rows r = rows_of(t, "a INT, l ARRAY<INT>, s STRING");
    struct tarn_input_options options = options_of(&r, TARN_DATA_CSV);
    struct text_stream stream = {
        tarn_slice_str(
            "a,l,s\n1,[1],x\n2,\"[1, 2, \"\"z\"\"]\",y\n3,[3],z\nq,,\n5,[5],\"v\"w,\"\n6,[6],u\n"),
        0, 3};
    struct tarn_input *input = NULL;
    struct tarn_batch *batch = NULL;
    const struct tarn_bad_row *bad = NULL;
    size_t count = 0;
    options.skip_bad_max = 3;
    expect_ok(tarn_input_open(t->op, &options, NULL, text_pull, &stream, &input));
    expect_ok(tarn_input_next(input, t->op, &batch));
    drop_last(batch);
    r.batches[r.count++] = batch;
    expect_slice(rows_print(t, &r, TARN_DATA_CSV), "a,l,s\n1,[1],x\n3,[3],z\n6,[6],u\n");
    batch = NULL;
    expect_ok(tarn_input_next(input, t->op, &batch));
    expect_null(batch);
    expect_int(tarn_input_bad_rows(input, &bad, &count), 3);
    expect_int(count, 3);
    expect_int(bad[0].line, 3);
    expect_slice(bad[0].column, "l");
    expect_int(bad[1].line, 5);
    expect_slice(bad[1].column, "a");
    expect_int(bad[2].line, 6);
    expect_slice(bad[2].column, "");
    tarn_input_close(input);
    rows_clear(&r);
}

TARN_TEST(csv, takes_null_texts_delimiter_and_row_kinds)
{
    struct rows r = rows_of(t, "a INT, s STRING NOT NULL");
    struct tarn_slice nulls[] = {tarn_slice_str("NA"), tarn_slice_str("-")};
    struct tarn_input_options options = options_of(&r, TARN_DATA_CSV);
    options.null_texts = nulls;
    options.null_text_count = 2;
    options.delimiter = ';';
    options.op_column = "op";
    expect_ok(rows_read(t, &r, &options, NULL,
                        tarn_slice_str("op;a;s\n+I;NA;\"NA\"\n-D;-;x\n+U;1;y\n-U;2;z\n"), 0, true));
    expect_int(r.batches[0]->row_count, 4);
    expect_int(r.batches[0]->column_count, 3);
    const int8_t *kinds = r.batches[0]->array.children[2]->buffers[1];
    expect_true(kinds[0] == 0 && kinds[1] == 3 && kinds[2] == 2 && kinds[3] == 1);
    expect_true(tarn_column_is_null(tarn_batch_column(r.batches[0], 0), 0));
    rows_clear(&r);
    expect_status(rows_read(t, &r, &options, NULL, tarn_slice_str("op;a;s\n+X;1;x\n"), 0, true),
                  TARN_ROW_INVALID, "in:2: op");
    expect_status(rows_read(t, &r, &options, NULL, tarn_slice_str("a;s\n1;x\n"), 0, true),
                  TARN_COLUMN_NOT_FOUND, "op");
    options.op_column = NULL;
    options.only_keys_required = true;
    expect_ok(rows_read(t, &r, &options, NULL, tarn_slice_str("a\n1\n"), 0, true));
    rows_clear(&r);
}

TARN_TEST(csv, prints_what_it_reads)
{
    const char *columns = "a INT, s STRING, d DOUBLE, m MAP<STRING, STRING>";
    const char *text =
        "a,s,d,m\n1,\"null\",NaN,\"{\"\"k\"\": \"\"v,w\"\"}\"\n,\"\",-Infinity,\n2,\"x\ny\",1e+20,{}\n3,plain,0.0001,\n";
    struct rows r = rows_of(t, columns);
    struct tarn_input_options options = options_of(&r, TARN_DATA_CSV);
    expect_ok(rows_read(t, &r, &options, NULL, tarn_slice_str(text), 0, false));
    expect_slice(rows_print(t, &r, TARN_DATA_CSV), text);
    rows_clear(&r);
}

/* Text that parses or doesn't must do so as tarn_value_parse says, also on the quick paths. */
TARN_TEST(csv, agrees_with_the_values_of_format)
{
    static const char *const types[] = {"BOOLEAN",      "TINYINT",          "SMALLINT",
                                        "INT",          "BIGINT",           "FLOAT",
                                        "DOUBLE",       "DECIMAL(5,2)",     "DECIMAL(38,10)",
                                        "DATE",         "TIME(0)",          "TIME(3)",
                                        "TIMESTAMP(0)", "TIMESTAMP(3)",     "TIMESTAMP(6)",
                                        "TIMESTAMP(9)", "TIMESTAMP_LTZ(6)", "CHAR(3)",
                                        "VARCHAR(3)",   "BINARY(2)",        "BYTES"};
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+0",
                                        "00",
                                        "1.",
                                        ".5",
                                        "1.50",
                                        "1.500",
                                        "-1.005",
                                        "1e2",
                                        "1e-2",
                                        "1E5",
                                        "12345678901234567890",
                                        "127",
                                        "128",
                                        "-129",
                                        "32768",
                                        "2147483648",
                                        "-2147483649",
                                        "9223372036854775808",
                                        "-9223372036854775808",
                                        "1e400",
                                        "1e39",
                                        "4e-400",
                                        "nan",
                                        "NaN",
                                        "inf",
                                        "-Infinity",
                                        " 1",
                                        "1 ",
                                        "0x10",
                                        "1_0",
                                        "--1",
                                        "-",
                                        "+",
                                        ".",
                                        "e1",
                                        "999.99",
                                        "1000",
                                        "999.995",
                                        "123456789012345678901234567.0123456789",
                                        "1234567890123456789012345678.1",
                                        "true",
                                        "TRUE",
                                        "t",
                                        "2026-01-31",
                                        "2026-1-31",
                                        "2026-02-29",
                                        "2024-02-29",
                                        "0000-01-01",
                                        "-0001-01-01",
                                        "+12026-01-01",
                                        "1969-12-31",
                                        "2026-13-01",
                                        "2026-00-01",
                                        "12:00",
                                        "12:00:00",
                                        "12:00:00.1",
                                        "12:00:00.123",
                                        "12:00:00.1230",
                                        "12:00:00.1234",
                                        "24:00:00",
                                        "12:60:00",
                                        "23:59:60",
                                        "12:00:00.",
                                        "2026-01-31 12:00:00",
                                        "2026-01-31T12:00:00Z",
                                        "2026-01-31 12:00:00.123456789",
                                        "2026-01-31 12:00:00.000",
                                        "2026-01-31 12:00:00.1234567891",
                                        "1969-12-31 23:59:59.999",
                                        "2026-01-31 12:00:00+01:00",
                                        "2026-01-31 12:00",
                                        "2026-01-31x12:00:00",
                                        "2026-01-31 12:00:00 Z",
                                        "abc",
                                        "abcd",
                                        "\xc3\xa4\xc3\xa4\xc3\xa4",
                                        "\xff",
                                        "AA==",
                                        "AAE=",
                                        "AAEC",
                                        "AA",
                                        "A===",
                                        "null"};
    for (size_t i = 0; i < TARN_COUNT_OF(types); i++) {
        struct rows r = rows_of(t, tarn_arena_printf(t->arena, "a %s", types[i]));
        const struct tarn_type *type = r.fields[0].type;
        for (size_t j = 0; j < TARN_COUNT_OF(texts); j++) {
            struct tarn_value want = {0}, got;
            struct tarn_status *refused =
                tarn_value_parse(type, tarn_slice_str(texts[j]), t->arena, &want);
            struct tarn_input_options options = options_of(&r, TARN_DATA_CSV);
            struct tarn_status *s = rows_read(
                t, &r, &options, NULL,
                tarn_slice_str(tarn_arena_printf(t->arena, "a\n\"%s\"\n", texts[j])), 0, false);
            bool outside =
                type->precision == 9 && s != NULL && strstr(tarn_status_message(s), "1677") != NULL;
            if ((refused == NULL) != (s == NULL) && !outside)
                expect_unreachable("%s '%s': format says %s, the room %s", types[i], texts[j],
                                   tarn_status_message(refused), tarn_status_message(s));
            if (s == NULL && refused == NULL) {
                TARN_OWN(tarn_buf_drop) struct tarn_buf a = {0};
                tarn_column_value(tarn_batch_column(r.batches[0], 0), type, 0, &got);
                tarn_value_print(type, &want, &a);
                if (tarn_value_compare(type, &want, &got) != 0)
                    expect_unreachable("%s '%s' is read as another value", types[i], texts[j]);
                struct tarn_slice printed = rows_print(t, &r, TARN_DATA_JSONL);
                if (strstr((const char *)printed.data, tarn_buf_cstr(&a)) == NULL &&
                    type->id != TARN_TYPE_CHAR && type->id != TARN_TYPE_VARCHAR)
                    expect_unreachable("%s '%s': format prints %s, the room %s", types[i], texts[j],
                                       tarn_buf_cstr(&a), (const char *)printed.data);
            }
            tarn_status_free(refused);
            tarn_status_free(s);
            rows_clear(&r);
        }
    }
}
