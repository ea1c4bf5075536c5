/*
 * File indexes: the known bytes of Java's containers and hashes, columns found by field id through
 * changes of the schema, a verdict that names the index, and damage that is named instead of believed.
 */
#include "test.h"

#include "format/file_index.h"
#include "format/file_index_write.h"

static struct tarn_slice golden(struct tarn_test *t, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(name, &bytes);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&bytes));
}

static struct tarn_schema schema_of(struct tarn_test *t, const char *name)
{
    struct tarn_schema s = {0};
    expect_ok(tarn_schema_decode(golden(t, name), t->arena, &s));
    return s;
}

static struct tarn_predicate parse(struct tarn_test *t, const struct tarn_schema *schema,
                                   const char *text)
{
    struct tarn_predicate p = {0};
    expect_ok(tarn_predicate_parse(tarn_slice_str(text), schema, t->arena, &p));
    return p;
}

static struct tarn_file_index_verdict ask(struct tarn_test *t, struct tarn_slice index,
                                          const struct tarn_schema *schema,
                                          const struct tarn_schema *file_schema, int64_t rows,
                                          const char *where)
{
    struct tarn_predicate p = parse(t, schema, where);
    struct tarn_file_index_verdict v;
    expect_ok(tarn_file_index_may_match(index, &p, schema, file_schema, rows, &v));
    return v;
}

/* Of the 40 rows of v2: both bitmaps and bloom filters on most columns. */
static struct tarn_file_index_verdict ask_v2(struct tarn_test *t, const char *where)
{
    struct tarn_schema schema = schema_of(t, "file_index/v2.schema");
    return ask(t, golden(t, "file_index/v2.index"), &schema, &schema, 40, where);
}

static void expect_out(struct tarn_file_index_verdict v, int column, const char *index)
{
    expect_false(v.may_match);
    expect_int(v.column, column);
    expect_str(v.index, index);
}

TARN_TEST(file_index, bitmaps_say_what_is_not_there)
{
    expect_true(ask_v2(t, "c_int = 5").may_match);
    expect_out(ask_v2(t, "c_int = 500"), 3, "bitmap");
    expect_true(ask_v2(t, "c_varchar = 'v7'").may_match);
    expect_out(ask_v2(t, "c_varchar = 'v8'"), 8, "bitmap");
    expect_true(ask_v2(t, "c_varchar LIKE 'v1%'").may_match);
    expect_out(ask_v2(t, "c_varchar LIKE 'w%'"), 8, "bitmap");
    expect_out(ask_v2(t, "c_int IS NULL"), 3, "bitmap");
    expect_true(ask_v2(t, "`c_\xf0\x9f\x98\x80` = 3").may_match); /* modified UTF-8 */
    expect_out(ask_v2(t, "`c_\xf0\x9f\x98\x80` = 4"), 17, "bitmap");
    expect_out(ask_v2(t, "`c_\xf0\x9f\x98\x80` <> 3"), 17, "bitmap"); /* null is not unequal */
    expect_out(ask_v2(t, "NOT `c_\xf0\x9f\x98\x80` = 3"), 17, "bitmap");
    expect_true(ask_v2(t, "c_double = 0").may_match);
    expect_true(ask_v2(t, "c_float = 'NaN'").may_match);
    expect_true(ask_v2(t, "c_ts3 = TIMESTAMP '2024-05-14 12:34:56.789'").may_match);
    expect_out(ask_v2(t, "c_ts3 = TIMESTAMP '2024-05-14 12:34:56.788'"), 12, "bitmap");
    expect_out(ask_v2(t, "c_ts9 > TIMESTAMP '2030-01-01 00:00:00'"), 14, "bitmap");
}

TARN_TEST(file_index, bitmaps_meet_row_by_row)
{
    /* c_int = 5 is row 5 alone, whose c_small is 15 and whose c_string is "z%_". */
    expect_true(ask_v2(t, "c_int = 5 AND c_small = 15").may_match);
    expect_true(ask_v2(t, "c_small = 18").may_match);
    expect_false(ask_v2(t, "c_int = 5 AND c_small = 18").may_match);
    expect_false(ask_v2(t, "c_int = 5 AND (c_small = 18 OR c_string = 'a')").may_match);
    expect_true(ask_v2(t, "c_int = 5 AND (c_small = 18 OR c_string = 'z%_')").may_match);
    expect_false(ask_v2(t, "c_int = 5 AND NOT (c_small = 15 AND c_int < 6)").may_match);
}

/* The file's column is not known by its name, but by its id. */
TARN_TEST(file_index, columns_are_found_by_id)
{
    struct tarn_schema then = schema_of(t, "file_index/v2.schema"), now = then;
    struct tarn_field *fields = tarn_arena_calloc(t->arena, now.field_count, sizeof *fields);
    struct tarn_slice index = golden(t, "file_index/v2.index");
    memcpy(fields, then.fields, now.field_count * sizeof *fields);
    now.fields = fields;
    fields[2].name = tarn_slice_str("c_int"); /* was c_small */
    fields[3].name = tarn_slice_str("other"); /* was c_int */
    fields[4].id = 99;                        /* a new column of an old name */
    expect_true(ask(t, index, &now, &then, 40, "c_int = 15").may_match);
    expect_out(ask(t, index, &now, &then, 40, "c_int = 16"), 2, "bitmap");
    expect_true(ask(t, index, &now, &then, 40, "other = 16").may_match);
    expect_true(ask(t, index, &now, &then, 40, "c_big = 777").may_match);
}

TARN_TEST(file_index, types_may_have_grown)
{
    static const struct tarn_type big = {.id = TARN_TYPE_BIGINT, .nullable = true},
                                  text = {.id = TARN_TYPE_VARCHAR,
                                          .nullable = true,
                                          .length = TARN_TYPE_LENGTH_MAX},
                                  tiny = {.id = TARN_TYPE_TINYINT, .nullable = true};
    struct tarn_schema then = schema_of(t, "file_index/v2.schema"), now = then;
    struct tarn_field *fields = tarn_arena_calloc(t->arena, now.field_count, sizeof *fields);
    struct tarn_slice index = golden(t, "file_index/v2.index");
    memcpy(fields, then.fields, now.field_count * sizeof *fields);
    now.fields = fields;
    fields[3].type = &big;  /* INT */
    fields[8].type = &text; /* VARCHAR(20) */
    fields[4].type = &text; /* BIGINT: its values are texts now */
    fields[2].type = &tiny; /* SMALLINT: its values may not fit */
    expect_true(ask(t, index, &now, &then, 40, "c_int = 5").may_match);
    expect_false(ask(t, index, &now, &then, 40, "c_int = 5000000000").may_match);
    expect_false(ask(t, index, &now, &then, 40, "c_varchar = 'v8'").may_match);
    expect_true(ask(t, index, &now, &then, 40, "c_big = '777'").may_match);
    expect_true(ask(t, index, &now, &then, 40, "c_small = 100").may_match);
}

TARN_TEST(file_index, bloom_filters)
{
    struct tarn_schema s = schema_of(t, "file_index/bloom.schema");
    struct tarn_slice index = golden(t, "file_index/bloom.index");
    expect_true(ask(t, index, &s, &s, 200, "i = 300").may_match);
    expect_out(ask(t, index, &s, &s, 200, "i = 301"), 0, "bloom-filter");
    expect_true(ask(t, index, &s, &s, 200, "i IN (301, 300)").may_match);
    expect_out(ask(t, index, &s, &s, 200, "i IN (301, 302)"), 0, "bloom-filter");
    expect_true(ask(t, index, &s, &s, 200, "s = 'text 1'").may_match);
    expect_out(ask(t, index, &s, &s, 200, "s = 'text x'"), 1, "bloom-filter");
    expect_true(ask(t, index, &s, &s, 200, "b = X'07c800'").may_match);
    expect_out(ask(t, index, &s, &s, 200, "b = X'07c801'"), 2, "bloom-filter");
    expect_true(ask(t, index, &s, &s, 200, "d = -2.75").may_match);
    expect_out(ask(t, index, &s, &s, 200, "d = -2.7"), 3, "bloom-filter");
    /* It knows of equality alone, and nothing of what isn't equal; other indexes are passed over. */
    expect_true(ask(t, index, &s, &s, 200, "i > 100000").may_match);
    expect_true(ask(t, index, &s, &s, 200, "NOT i = 300").may_match);
    expect_true(ask(t, index, &s, &s, 200, "NOT i = 301").may_match);
    expect_true(ask(t, index, &s, &s, 200, "other = 100000").may_match);
    /* Both sides of OR must be ruled out; one side of AND is enough, and it is named. */
    expect_true(ask(t, index, &s, &s, 200, "i = 301 OR s = 'text 1'").may_match);
    expect_out(ask(t, index, &s, &s, 200, "i = 301 OR s = 'text x'"), 0, "bloom-filter");
    expect_out(ask(t, index, &s, &s, 200, "i = 300 AND s = 'text x'"), 1, "bloom-filter");
}

/* The container that docs/format.md shows: a bitmap on a, a bloom filter on b, and their places. */
TARN_TEST(file_index, container_as_in_the_manual)
{
    static const uint8_t head[] = {
        0x00, 0x05, 0x4e, 0x4e, 0xd0, 0x1a, 0x35, 0xae, 0,   0,   0,    1,   0,   0,   0,   0x4c,
        0,    0,    0,    2,    0,    1,    'a',  0,    0,   0,   1,    0,   6,   'b', 'i', 't',
        'm',  'a',  'p',  0,    0,    0,    0x4c, 0,    0,   0,   0x19, 0,   1,   'b', 0,   0,
        0,    1,    0,    12,   'b',  'l',  'o',  'o',  'm', '-', 'f',  'i', 'l', 't', 'e', 'r',
        0,    0,    0,    0x65, 0,    0,    0,    0x05, 0,   0,   0,    0};
    /* version 1, 2 rows, 2 values, no null; 7 in row 0 alone, 9 in row 1 alone */
    static const uint8_t bitmap[] = {1, 0,    0,    0,    2,    0, 0, 0, 2, 0,    0,    0,   0,
                                     7, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 9, 0xff, 0xff, 0xff};
    TARN_OWN(tarn_buf_drop) struct tarn_buf file = {0};
    struct tarn_schema s = {0};
    expect_ok(
        tarn_columns_parse(tarn_slice_str("a INT, b INT"), t->arena, &s.fields, &s.field_count));
    struct tarn_field *fields = tarn_arena_calloc(t->arena, 2, sizeof *fields);
    memcpy(fields, s.fields, 2 * sizeof *fields);
    fields[1].id = 1;
    s.fields = fields;
    expect_int(sizeof head, 0x4c);
    expect_int(sizeof bitmap, 0x19);
    tarn_buf_add(&file, head, sizeof head);
    tarn_buf_add(&file, bitmap, sizeof bitmap);
    tarn_buf_add(&file, "\0\0\0\1", 4); /* one hash function, eight bits that are all 0 */
    tarn_buf_add_byte(&file, 0);
    struct tarn_predicate p = parse(t, &s, "a = 7");
    struct tarn_file_index_verdict v;
    /* The last offset lacks a byte. */
    expect_status(tarn_file_index_may_match(tarn_buf_slice(&file), &p, &s, &s, 2, &v),
                  TARN_FILE_INDEX_MALFORMED, "cut short");
    expect_true(v.may_match);
    expect_out(ask(t, tarn_buf_slice(&file), &s, &s, 2, "b = 7"), 1, "bloom-filter");
}

TARN_TEST(file_index, damage_is_named)
{
    struct tarn_schema s = schema_of(t, "file_index/v2.schema");
    struct tarn_slice whole = golden(t, "file_index/v2.index");
    struct tarn_predicate p = parse(t, &s, "c_int = 500");
    struct tarn_file_index_verdict v;
    uint8_t *bytes = tarn_arena_alloc(t->arena, whole.size);
    struct tarn_slice in = tarn_slice_of(bytes, whole.size);
    memcpy(bytes, whole.data, whole.size);
    expect_status(tarn_file_index_may_match(in, &p, &s, &s, 39, &v), TARN_FILE_INDEX_MALFORMED,
                  "40 rows, the file has 39");
    expect_status(tarn_file_index_may_match(tarn_slice_of(bytes, 15), &p, &s, &s, 40, &v),
                  TARN_FILE_INDEX_MALFORMED, "first bytes");
    expect_status(tarn_file_index_may_match(tarn_slice_of(bytes, 1000), &p, &s, &s, 40, &v),
                  TARN_FILE_INDEX_MALFORMED, "beyond its 1000 bytes");
    bytes[11] = 2;
    expect_status(tarn_file_index_may_match(in, &p, &s, &s, 40, &v), TARN_FILE_INDEX_MALFORMED,
                  "version 2");
    bytes[0] = 1;
    expect_status(tarn_file_index_may_match(in, &p, &s, &s, 40, &v), TARN_FILE_INDEX_MALFORMED,
                  "first bytes");
    expect_true(v.may_match);
}

TARN_TEST(file_index, the_file_beside)
{
    const struct tarn_slice two[] = {tarn_slice_str("data-1.blob"),
                                     tarn_slice_str("data-1.parquet.index")};
    const struct tarn_slice both[] = {tarn_slice_str("a.index"), tarn_slice_str("b.index")};
    struct tarn_data_file f = {.extra_files = two, .extra_file_count = 2};
    expect_slice(tarn_file_index_side(&f), "data-1.parquet.index");
    f.extra_file_count = 1;
    expect_null(tarn_file_index_side(&f).data);
    f.extra_files = both, f.extra_file_count = 2;
    expect_null(tarn_file_index_side(&f).data);
    f.extra_file_count = 1, f.embedded_index = tarn_slice_str("x");
    expect_null(tarn_file_index_side(&f).data);
}

static struct tarn_file_index_writer *writer_of(struct tarn_test *t, struct tarn_schema *schema,
                                                struct tarn_options *options)
{
    static const struct tarn_type type = {
        .id = TARN_TYPE_VARCHAR, .nullable = true, .length = TARN_TYPE_LENGTH_MAX};
    struct tarn_field *field = tarn_arena_calloc(t->arena, 1, sizeof *field);
    struct tarn_pair *pairs = tarn_arena_calloc(t->arena, 3, sizeof *pairs);
    *field = (struct tarn_field){.name = tarn_slice_str("s"), .type = &type};
    pairs[0] = (struct tarn_pair){tarn_slice_str("file-index.bitmap.columns"), field->name};
    pairs[1] = (struct tarn_pair){tarn_slice_str("file-index.bloom-filter.columns"), field->name};
    pairs[2] = (struct tarn_pair){tarn_slice_str("file-index.bloom-filter.s.items"),
                                  tarn_slice_str("100")};
    *schema = (struct tarn_schema){
        .fields = field, .field_count = 1, .options = pairs, .option_count = 3};
    expect_ok(tarn_options_parse(schema, t->arena, options));
    expect_ok(tarn_options_check_write(options));
    return tarn_file_index_writer_new(schema, options);
}

/* A bitmap with more and larger values than there is memory for is left out; what has a fixed size is there. */
TARN_TEST(file_index, a_bitmap_that_grows_too_large_is_left_out)
{
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_file_index_writer *w = writer_of(t, &schema, &options);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0}, bytes = {0};
    tarn_buf_add_zeros(&text, 1 << 20);
    for (int32_t i = 0; i < 40; i++) {
        memcpy(text.data, &i, sizeof i);
        struct tarn_value value = {.bytes = tarn_buf_slice(&text)};
        for (size_t k = 0; k < options.file_index_count; k++)
            tarn_file_index_writer_add(w, k, &value);
    }
    tarn_file_index_writer_finish(w, &bytes);
    tarn_file_index_writer_free(w);
    expect_true(bytes.size < 200);
    expect_out(ask(t, tarn_buf_slice(&bytes), &schema, &schema, 40, "s = 'x'"), 0, "bloom-filter");
}

TARN_TEST(file_index, of_no_rows_at_all)
{
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_file_index_writer *w = writer_of(t, &schema, &options);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_file_index_writer_finish(w, &bytes);
    tarn_file_index_writer_free(w);
    expect_false(ask(t, tarn_buf_slice(&bytes), &schema, &schema, 0, "s = 'x'").may_match);
}

/* As Java counts them: bits are a multiple of 8, always more than asked for. */
TARN_TEST(file_index, sizes_of_bloom_filters)
{
    int32_t hashes;
    expect_int(tarn_file_index_bloom_size(100, 0.1, &hashes), 60);
    expect_int(hashes, 3);
    expect_int(tarn_file_index_bloom_size(1000000, 0.1, &hashes), 599067);
    expect_int(hashes, 3);
    expect_int(tarn_file_index_bloom_size(1, 0.9, &hashes), 1);
    expect_int(tarn_file_index_bloom_size(INT32_MAX, 1e-9, NULL), -1);
}
