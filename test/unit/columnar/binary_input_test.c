/*
 * Promise: Parquet files and Arrow streams that users bring are taken exactly or not at all: nothing is
 * rounded, cut or wrapped, and each row that can't be taken is named by its number.
 */
#include "columnar_fixture.h"

/* `lines` of `from`, through format and back as columns `to`. */
static struct tarn_status *carry(struct tarn_test *t, enum tarn_data_format format,
                                 const char *from, const char *lines, const char *to, int64_t skip,
                                 struct rows *out)
{
    struct rows in = rows_json(t, from, lines);
    struct tarn_slice bytes = rows_print(t, &in, format);
    rows_clear(&in);
    *out = rows_of(t, to);
    struct tarn_input_options options = options_of(out, format);
    options.skip_bad_max = skip;
    if (format == TARN_DATA_ARROW)
        return rows_read(t, out, &options, NULL, bytes, 5, false);
    const char *path = tarn_arena_printf(t->arena, "%s/in", tarn_test_dir(t));
    tarn_test_write_file(path, bytes);
    return rows_read(t, out, &options, path, bytes, 0, false);
}

static const enum tarn_data_format formats[] = {TARN_DATA_ARROW, TARN_DATA_PARQUET};

static void becomes(struct tarn_test *t, const char *from, const char *lines, const char *to,
                    const char *want)
{
    for (size_t i = 0; i < TARN_COUNT_OF(formats); i++) {
        struct rows out;
        expect_ok(carry(t, formats[i], from, lines, to, 0, &out));
        expect_slice(rows_print(t, &out, TARN_DATA_JSONL), want == NULL ? lines : want);
        rows_clear(&out);
    }
}

static void refuses(struct tarn_test *t, const char *from, const char *lines, const char *to,
                    enum tarn_reason reason, const char *part)
{
    for (size_t i = 0; i < TARN_COUNT_OF(formats); i++) {
        struct rows out;
        expect_status(carry(t, formats[i], from, lines, to, 0, &out), reason, part);
        rows_clear(&out);
    }
}

TARN_TEST(binary_input, takes_every_type_as_it_is)
{
    const char *columns =
        "b BOOLEAN, i TINYINT, l BIGINT NOT NULL, d DECIMAL(38,2), e DECIMAL(5,2), f FLOAT, s STRING, x BYTES, dt DATE, tm TIME(3), t3 TIMESTAMP(3), t6 TIMESTAMP(6), t9 TIMESTAMP(9), z TIMESTAMP_LTZ(6), a ARRAY<STRING>, m MAP<STRING, INT>, r ROW<p INT, q ARRAY<INT>>";
    becomes(
        t, columns,
        "{\"b\": true, \"i\": -5, \"l\": 12, \"d\": -1.50, \"e\": 1.25, \"f\": 1.5, \"s\": \"x\", \"x\": \"AAE=\", \"dt\": \"1969-12-31\", \"tm\": \"12:00:00\", \"t3\": \"1969-12-31 23:59:59.5\", \"t6\": \"2026-01-31 10:00:00.000001\", \"t9\": \"1969-12-31 23:59:59.999999999\", \"z\": \"2026-01-31 10:00:00\", \"a\": [\"\", null], \"m\": {\"k\": 1}, \"r\": {\"p\": null, \"q\": [1, null]}}\n"
        "{\"b\": null, \"i\": null, \"l\": 0, \"d\": null, \"e\": null, \"f\": null, \"s\": null, \"x\": null, \"dt\": null, \"tm\": null, \"t3\": null, \"t6\": null, \"t9\": null, \"z\": null, \"a\": null, \"m\": null, \"r\": null}\n",
        columns, NULL);
}

TARN_TEST(binary_input, converts_what_fits)
{
    becomes(t, "a BIGINT", "{\"a\": 7}\n", "b STRING, a TINYINT", "{\"b\": null, \"a\": 7}\n");
    becomes(t, "a TINYINT", "{\"a\": -7}\n", "a DECIMAL(4,1)", "{\"a\": -7.0}\n");
    becomes(t, "a DECIMAL(20,4)", "{\"a\": 1.2500}\n", "a DECIMAL(3,2)", "{\"a\": 1.25}\n");
    becomes(t, "a TIMESTAMP(6)", "{\"a\": \"1969-12-31 23:59:59.25\"}\n", "a TIMESTAMP(2)",
            "{\"a\": \"1969-12-31 23:59:59.25\"}\n");
    becomes(t, "a TIMESTAMP(3)", "{\"a\": \"1969-12-31 23:59:59.25\"}\n", "a TIMESTAMP(9)",
            "{\"a\": \"1969-12-31 23:59:59.25\"}\n");
    becomes(t, "a DOUBLE", "{\"a\": 0.5}\n", "a FLOAT", "{\"a\": 0.5}\n");
    becomes(t, "a BIGINT", "{\"a\": 7}\n", "a DOUBLE", "{\"a\": 7}\n");
}

TARN_TEST(binary_input, names_rows_that_do_not_fit)
{
    refuses(t, "a BIGINT", "{\"a\": 7}\n{\"a\": 2147483648}\n", "a INT", TARN_ROW_INVALID,
            "in:2: a: the number is out of the type's range");
    refuses(t, "a DECIMAL(20,4)", "{\"a\": 1.2345}\n", "a DECIMAL(10,2)", TARN_ROW_INVALID,
            "scale");
    refuses(t, "a DECIMAL(20,0)", "{\"a\": 12345}\n", "a DECIMAL(4,0)", TARN_ROW_INVALID,
            "precision");
    refuses(t, "a TIMESTAMP(6)", "{\"a\": \"2026-01-31 00:00:00.000001\"}\n", "a TIMESTAMP(3)",
            TARN_ROW_INVALID, "more digits");
    refuses(t, "a TIMESTAMP(3)", "{\"a\": \"2026-01-31 00:00:00.123\"}\n", "a TIMESTAMP(1)",
            TARN_ROW_INVALID, "more digits");
    refuses(t, "a TIMESTAMP(3)", "{\"a\": \"3000-01-31 00:00:00\"}\n", "a TIMESTAMP(9)",
            TARN_ROW_INVALID, "out of the type's range");
    refuses(t, "a DOUBLE", "{\"a\": 0.1}\n", "a FLOAT", TARN_ROW_INVALID, "double precision");
    refuses(t, "a STRING", "{\"a\": \"abc\"}\n", "a VARCHAR(2)", TARN_ROW_INVALID, "longer");
    refuses(t, "a INT", "{\"a\": null}\n", "a INT NOT NULL", TARN_ROW_INVALID, "in:1: a: NOT NULL");
    refuses(t, "a ARRAY<BIGINT>", "{\"a\": []}\n{\"a\": [1, 2]}\n{\"a\": [3, 4294967296]}\n",
            "a ARRAY<INT>", TARN_ROW_INVALID, "in:3: a");
    refuses(t, "a ARRAY<INT>", "{\"a\": [1]}\n{\"a\": [2, null]}\n", "a ARRAY<INT NOT NULL>",
            TARN_ROW_INVALID, "in:2: a");
}

/* Makes the maps' keys all alike, as no input of ours would, and sends them through `format`. */
static struct tarn_status *carry_twice(struct tarn_test *t, enum tarn_data_format format,
                                       const char *columns, const char *lines, int64_t skip,
                                       struct rows *out)
{
    struct rows in = rows_json(t, columns, lines);
    const struct ArrowArray *keys = in.batches[0]->array.children[0]->children[0]->children[0];
    if (keys->n_children > 0) /* lists: their items */
        keys = keys->children[0];
    bool text = in.fields[0].type->key->id == TARN_TYPE_VARCHAR;
    size_t size = (size_t)keys->length * (text ? 1 : sizeof(int32_t));
    memset((void *)keys->buffers[text ? 2 : 1], 'a', size);
    struct tarn_slice bytes = rows_print(t, &in, format);
    rows_clear(&in);
    *out = rows_of(t, columns);
    struct tarn_input_options options = options_of(out, format);
    options.skip_bad_max = skip;
    if (format == TARN_DATA_ARROW)
        return rows_read(t, out, &options, NULL, bytes, 0, false);
    const char *path = tarn_arena_printf(t->arena, "%s/in", tarn_test_dir(t));
    tarn_test_write_file(path, bytes);
    return rows_read(t, out, &options, path, bytes, 0, false);
}

TARN_TEST(binary_input, refuses_a_map_with_a_key_twice)
{
    for (size_t i = 0; i < TARN_COUNT_OF(formats); i++) {
        struct rows out;
        expect_status(carry_twice(t, formats[i], "m MAP<STRING, INT>",
                                  "{\"m\": {\"p\": 1}}\n{\"m\": {\"q\": 1, \"r\": 2}}\n", 0, &out),
                      TARN_ROW_INVALID, "in:2: m: a map has the key a twice");
        rows_clear(&out);
        expect_status(carry_twice(t, formats[i], "m MAP<INT, INT>",
                                  "{\"m\": null}\n{\"m\": [[1, 1], [2, 2]]}\n", 0, &out),
                      TARN_ROW_INVALID, "in:2: m: a map has the key 1633771873 twice");
        rows_clear(&out);
        expect_status(carry_twice(t, formats[i], "m MAP<ARRAY<INT>, INT>",
                                  "{\"m\": [[[1], 1], [[1, 2], 2], [[3], 3]]}\n", 0, &out),
                      TARN_ROW_INVALID, "in:1: m: a map has the key");
        rows_clear(&out);
        expect_ok(carry_twice(t, formats[i], "m MAP<STRING, INT>",
                              "{\"m\": {\"p\": 1}}\n{\"m\": {\"q\": 1, \"r\": 2}}\n", 1, &out));
        expect_slice(rows_print(t, &out, TARN_DATA_JSONL), "{\"m\": {\"a\": 1}}\n");
        rows_clear(&out);
    }
}

/* Files of others may hold such maps: JSON stays JSON. */
TARN_TEST(binary_input, prints_a_map_with_a_key_twice_as_pairs)
{
    struct rows in =
        rows_json(t, "m MAP<STRING, INT>", "{\"m\": {\"p\": 1}}\n{\"m\": {\"q\": 1, \"r\": 2}}\n");
    memset((void *)in.batches[0]->array.children[0]->children[0]->children[0]->buffers[2], 'a', 3);
    expect_slice(rows_print(t, &in, TARN_DATA_JSONL),
                 "{\"m\": {\"a\": 1}}\n{\"m\": [[\"a\", 1], [\"a\", 2]]}\n");
    rows_clear(&in);
}

TARN_TEST(binary_input, refuses_other_types_and_columns)
{
    refuses(t, "a STRING", "{\"a\": \"1\"}\n", "a INT", TARN_INPUT_MALFORMED, "column a: holds");
    refuses(t, "a BYTES", "{\"a\": \"AA==\"}\n", "a STRING", TARN_INPUT_MALFORMED,
            "column a: holds");
    refuses(t, "a INT", "{\"a\": 1}\n", "a ARRAY<INT>", TARN_INPUT_MALFORMED, "column a: holds");
    refuses(t, "nam INT", "{\"nam\": 1}\n", "name INT", TARN_COLUMN_NOT_FOUND, "did you mean name");
    refuses(t, "a INT", "{\"a\": 1}\n", "a INT, k INT NOT NULL", TARN_COLUMN_NOT_FOUND,
            "column k, which is NOT NULL");
    refuses(t, "r ROW<x INT, y INT>", "{\"r\": {\"x\": 1, \"y\": 2}}\n", "r ROW<x INT>",
            TARN_COLUMN_NOT_FOUND, "no field y");
}

TARN_TEST(binary_input, leaves_bad_rows_out)
{
    for (size_t i = 0; i < TARN_COUNT_OF(formats); i++) {
        struct rows out;
        expect_ok(carry(
            t, formats[i], "a BIGINT, s ARRAY<STRING>",
            "{\"a\": 1, \"s\": [\"x\"]}\n{\"a\": 300, \"s\": [\"y\"]}\n{\"a\": 3, \"s\": [\"z\", null]}\n",
            "a TINYINT, s ARRAY<STRING>", 1, &out));
        expect_slice(rows_print(t, &out, TARN_DATA_JSONL),
                     "{\"a\": 1, \"s\": [\"x\"]}\n{\"a\": 3, \"s\": [\"z\", null]}\n");
        rows_clear(&out);
    }
}

TARN_TEST(binary_input, reads_row_kinds)
{
    struct rows in = rows_json(t, "a INT, op STRING",
                               "{\"a\": 1, \"op\": \"-D\"}\n{\"a\": 2, \"op\": \"+U\"}\n");
    struct tarn_slice bytes = rows_print(t, &in, TARN_DATA_ARROW);
    struct rows out = rows_of(t, "a INT");
    struct tarn_input_options options = options_of(&out, TARN_DATA_ARROW);
    options.op_column = "op";
    expect_ok(rows_read(t, &out, &options, NULL, bytes, 0, true));
    const int8_t *kinds = out.batches[0]->array.children[1]->buffers[1];
    expect_true(kinds[0] == 3 && kinds[1] == 2);
    rows_clear(&in);
    rows_clear(&out);
}

TARN_TEST(binary_input, infers_columns)
{
    const char *columns =
        "`b` BOOLEAN, `i` TINYINT, `l` BIGINT NOT NULL, `d` DECIMAL(38, 2), `f` FLOAT, `s` STRING, `x` BYTES, `dt` DATE, `tm` TIME(3), `t3` TIMESTAMP(3), `t9` TIMESTAMP(9), `z` TIMESTAMP(6) WITH LOCAL TIME ZONE, `a` ARRAY<STRING>, `m` MAP<STRING NOT NULL, INT>, `r` ROW<`p` INT, `q` ARRAY<INT NOT NULL>>";
    struct rows in = rows_of(t, columns);
    const char *path = tarn_arena_printf(t->arena, "%s/in", tarn_test_dir(t));
    for (size_t i = 0; i < TARN_COUNT_OF(formats); i++) {
        const struct tarn_field *fields;
        size_t count;
        tarn_test_write_file(path, rows_print(t, &in, formats[i]));
        expect_ok(tarn_input_infer(t->op, formats[i], path, t->arena, &fields, &count));
        expect_int(count, in.field_count);
        for (size_t f = 0; f < count; f++) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0}, want = {0};
            tarn_type_print(fields[f].type, &got);
            tarn_type_print(in.fields[f].type, &want);
            expect_bytes(fields[f].name, in.fields[f].name);
            expect_str(tarn_buf_cstr(&got), tarn_buf_cstr(&want));
        }
    }
    expect_status(tarn_input_infer(t->op, TARN_DATA_CSV, path, t->arena, NULL, NULL),
                  TARN_UNIMPLEMENTED, "--columns");
}

TARN_TEST(binary_input, damaged_streams_are_errors_not_crashes)
{
    const char *columns = "l BIGINT NOT NULL, s STRING, a ARRAY<STRING>, m MAP<STRING, INT>";
    struct rows in = rows_json(
        t, columns,
        "{\"l\": 1, \"s\": \"x\", \"a\": [\"p\", \"q\"], \"m\": {\"k\": 1}}\n{\"l\": 2, \"s\": \"yy\", \"a\": [], \"m\": null}\n");
    struct tarn_slice whole = rows_print(t, &in, TARN_DATA_ARROW);
    uint8_t *bytes = (uint8_t *)whole.data;
    struct rows out = rows_of(t, columns);
    struct tarn_input_options options = options_of(&out, TARN_DATA_ARROW);
    options.skip_bad_max = 1000;
    for (size_t n = 0; n < whole.size; n++) {
        tarn_status_free(rows_read(t, &out, &options, NULL, tarn_slice_of(bytes, n), 0, false));
        rows_clear(&out);
    }
    for (int i = 0; i < tarn_test_rounds(4000); i++) {
        size_t at = (size_t)tarn_test_random_below(t, whole.size);
        uint8_t was = bytes[at];
        bytes[at] ^= (uint8_t)(1u << tarn_test_random_below(t, 8));
        struct tarn_status *s = rows_read(t, &out, &options, NULL, whole, 0, false);
        if (s == NULL)
            rows_print(t, &out, TARN_DATA_JSONL);
        tarn_status_free(s);
        rows_clear(&out);
        bytes[at] = was;
    }
    rows_clear(&in);
}
