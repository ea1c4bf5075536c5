/*
 * Types: every spelling Paimon uses is read, ours is the one Java writes, and nonsense is refused with
 * the place and what was expected.
 */
#include "test.h"

#include "format/type.h"

static const struct tarn_type *parse(struct tarn_test *t, const char *text)
{
    const struct tarn_type *type = NULL;
    expect_ok(tarn_type_parse(tarn_slice_str(text), t->arena, &type));
    return type;
}

static const char *print(struct tarn_test *t, const struct tarn_type *type)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_type_print(type, &text);
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

TARN_TEST(type, spells_as_java)
{
    static const char *const spellings[][2] = {
        {"char", "CHAR(1)"},
        {"VARCHAR( 7 )", "VARCHAR(7)"},
        {"VARCHAR(2147483647)", "STRING"},
        {"string not null", "STRING NOT NULL"},
        {"BINARY", "BINARY(1)"},
        {"VARBINARY(2147483647)", "BYTES"},
        {"DECIMAL", "DECIMAL(10, 0)"},
        {"numeric(12,2) NOT  NULL", "DECIMAL(12, 2) NOT NULL"},
        {"DEC(38, 38)", "DECIMAL(38, 38)"},
        {"INTEGER NULL", "INT"},
        {"DOUBLE PRECISION", "DOUBLE"},
        {"TIME", "TIME(0)"},
        {"TIME(3) WITHOUT TIME ZONE", "TIME(3)"},
        {"TIMESTAMP", "TIMESTAMP(6)"},
        {"TIMESTAMP_LTZ(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"},
        {"TIMESTAMP(9) WITH LOCAL TIME ZONE NOT NULL",
         "TIMESTAMP(9) WITH LOCAL TIME ZONE NOT NULL"},
        {"VARIANT", "VARIANT"},
        {"BLOB", "BLOB"},
        {"GEOMETRY", "GEOMETRY"},
        {"GEOMETRY(OGC:CRS84)", "GEOMETRY(OGC:CRS84)"},
        {"GEOGRAPHY( EPSG:4326 , spherical )", "GEOGRAPHY(EPSG:4326, spherical)"},
        {"array<map<string not null, row<x int, `y z` timestamp(9)>>>",
         "ARRAY<MAP<STRING NOT NULL, ROW<`x` INT, `y z` TIMESTAMP(9)>>>"},
        {"MULTISET<INT>", "MULTISET<INT>"},
        {"VECTOR<FLOAT, 128>", "VECTOR<FLOAT, 128>"},
        {"ROW(a INT)", "ROW<`a` INT>"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(spellings); i++)
        expect_str(print(t, parse(t, spellings[i][0])), spellings[i][1]);
}

TARN_TEST(type, prints_what_it_reads)
{
    const struct tarn_type *type =
        parse(t, "ROW<`a``b` ARRAY<DECIMAL(5,2)> NOT NULL, c MAP<INT, BYTES>>");
    expect_true(tarn_type_equal(type, parse(t, print(t, type)), false));
    expect_slice(type->fields[0].name, "a`b");
    const struct tarn_type *strict = tarn_type_with_nullable(type, false, t->arena);
    expect_false(tarn_type_equal(type, strict, false));
    expect_true(tarn_type_equal(type, strict, true));
}

TARN_TEST(type, refuses_nonsense)
{
    static const char *const bad[][2] = {
        {"", "a type"},
        {"TEXT", "a type"},
        {"INT NOT", "NULL"},
        {"INT INT", "the end"},
        {"CHAR(0)", "the length"},
        {"CHAR(99999999999)", "the length"},
        {"CHAR(3", ")"},
        {"DECIMAL(39)", "the precision"},
        {"DECIMAL(3,4)", "the scale"},
        {"TIME(10)", "precision"},
        {"TIMESTAMP WITH TIME ZONE", "LOCAL"},
        {"STRING(3)", "the end"},
        {"ARRAY<INT", ">"},
        {"MAP<INT>", ","},
        {"ROW<`a INT>", "closing"},
        {"VECTOR<FLOAT>", ","},
        {"ARRAY<>", "a type"},
        {"GEOMETRY(a, b)", ")"},
        {"TIME(3) WITH LOCAL TIME ZONE", "LOCAL"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        const struct tarn_type *type = NULL;
        expect_status(tarn_type_parse(tarn_slice_str(bad[i][0]), t->arena, &type),
                      TARN_SCHEMA_INVALID, bad[i][1]);
        expect_null(type);
    }
}

TARN_TEST(type, bounds_depth)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    const struct tarn_type *type = NULL;
    for (int i = 0; i < 100000; i++)
        tarn_buf_add_str(&text, "ARRAY<");
    expect_status(tarn_type_parse(tarn_buf_slice(&text), t->arena, &type), TARN_SCHEMA_INVALID,
                  "deep");
}

TARN_TEST(type, nests_in_json)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_json_drop) struct tarn_json *back = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    static const char doc[] =
        "{\"type\": \"MAP NOT NULL\", \"key\": \"STRING NOT NULL\", \"value\": {\"type\": \"ROW\", "
        "\"fields\": [{\"id\": 5, \"name\": \"x\", \"type\": \"INT\", \"description\": \"d\"}]}}";
    const struct tarn_type *type = NULL;
    expect_ok(tarn_json_parse(tarn_slice_str(doc), &json));
    expect_ok(tarn_type_from_json(json, t->arena, &type));
    expect_str(print(t, type), "MAP<STRING NOT NULL, ROW<`x` INT>> NOT NULL");
    expect_int(type->element->fields[0].id, 5);
    back = tarn_type_to_json(type);
    tarn_json_print(back, 0, &text);
    TARN_OWN(tarn_json_drop) struct tarn_json *want = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf want_text = {0};
    expect_ok(tarn_json_parse(tarn_slice_str(doc), &want));
    tarn_json_print(want, 0, &want_text);
    expect_bytes(tarn_buf_slice(&text), tarn_buf_slice(&want_text));
}

TARN_TEST(type, names_what_is_wrong_in_json)
{
    static const char *const bad[][2] = {
        {"{\"type\": \"LIST\"}", "LIST"},
        {"{\"type\": \"ARRAY\"}", "element"},
        {"7", "type"},
        {"{\"type\": \"MAP\", \"key\": \"INT\"}", "value"},
        {"\"INTT\"", "a type"},
        {"{\"type\": \"ROW\", \"fields\": [{\"id\": 1, \"type\": \"INT\"}]}", "name"},
        {"{\"type\": \"ROW\", \"fields\": [{\"id\": -1, \"name\": \"a\", \"type\": \"INT\"}]}",
         "id"},
        {"{\"type\": \"VECTOR\", \"element\": \"FLOAT\"}", "length"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
        const struct tarn_type *type = NULL;
        expect_ok(
            tarn_json_parse(tarn_slice_str(tarn_arena_printf(t->arena, "[%s]", bad[i][0])), &json));
        expect_status(tarn_type_from_json(tarn_json_at(json, 0), t->arena, &type),
                      TARN_SCHEMA_MALFORMED, bad[i][1]);
    }
}
