/* A table's shape in the metastore: types, names, parameters, places; and what counts as a difference. test/interop/hms.py holds it against Paimon's. */
#include "hms/internal.h"
#include "test/lib/test.h"

#define S(text) tarn_slice_str(text)

static struct tarn_hms__source source_of(struct tarn_test *t, const char *columns,
                                         const struct tarn_pair *pairs, size_t pair_count)
{
    struct tarn_schema *schema = tarn_arena_calloc(t->arena, 1, sizeof *schema);
    struct tarn_options *options = tarn_arena_calloc(t->arena, 1, sizeof *options);
    struct tarn_schema draft = {.version = 3, .options = pairs, .option_count = pair_count};
    expect_ok(tarn_columns_parse(S(columns), t->arena, &draft.fields, &draft.field_count));
    expect_ok(tarn_schema_create(&draft, 1, t->arena, schema));
    expect_ok(tarn_options_parse(schema, t->arena, options));
    return (struct tarn_hms__source){.database = S("db"),
                                     .name = S("t"),
                                     .uuid = "u",
                                     .user = "me",
                                     .warehouse = S("file:///w"),
                                     .path = "db.db/t",
                                     .schema = schema,
                                     .options = options};
}

static struct tarn_hms__table shape(struct tarn_test *t, const char *columns)
{
    static const struct tarn_pair bucket[] = {
        {{(const uint8_t *)"bucket", 6}, {(const uint8_t *)"-1", 2}}};
    struct tarn_hms__source source = source_of(t, columns, bucket, 1);
    struct tarn_hms__table out;
    expect_ok(tarn_hms__shape_table(t->arena, &source, &out));
    return out;
}

static const char *parameter(struct tarn_test *t, const struct tarn_hms__table *table,
                             const char *key)
{
    struct tarn_slice value = tarn_hms__parameter(table->parameters, table->parameter_count, key);
    return value.data == NULL ? NULL : tarn_arena_str(t->arena, value);
}

TARN_TEST(shape, has_hives_types)
{
    static const char *const types[][2] = {
        {"BOOLEAN", "boolean"},
        {"TINYINT", "tinyint"},
        {"DECIMAL(12, 2)", "decimal(12,2)"},
        {"CHAR(255)", "char(255)"},
        {"CHAR(256)", "string"},
        {"VARCHAR(65535)", "varchar(65535)"},
        {"VARCHAR(65536)", "string"},
        {"STRING", "string"},
        {"BYTES", "binary"},
        {"TIME(3)", "string"},
        {"TIMESTAMP(9)", "timestamp"},
        {"TIMESTAMP(3) WITH LOCAL TIME ZONE", "timestamp with local time zone"},
        {"ARRAY<MAP<STRING, INT>>", "array<map<string,int>>"},
        {"MULTISET<STRING>", "map<string,int>"},
        {"ROW<x INT, Y ROW<z DATE>>", "struct<x:int,Y:struct<z:date>>"},
        {"VARIANT", "struct<value:binary,metadata:binary>"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(types); i++) {
        struct tarn_hms__table table = shape(t, tarn_arena_printf(t->arena, "c %s", types[i][0]));
        expect_slice(table.columns[0].type, types[i][1]);
    }
}

TARN_TEST(shape, names_what_hive_cant_have)
{
    static const char *const good[] = {"a", "a_1", "0"}, *const bad[] = {"",    "A",        "a-b",
                                                                         "a.b", "\xc3\xa4", "a b"};
    for (size_t i = 0; i < TARN_COUNT_OF(good); i++)
        expect_true(tarn_hms__name_fits(S(good[i])));
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_false(tarn_hms__name_fits(S(bad[i])));
    struct tarn_hms__source source = source_of(t, "a INT, A INT", NULL, 0);
    struct tarn_hms__table out;
    expect_status(tarn_hms__shape_table(t->arena, &source, &out), TARN_UNSUPPORTED_FEATURE,
                  "named a");
    source = source_of(t, "a INT", NULL, 0);
    source.name = S("Big");
    expect_status(tarn_hms__shape_table(t->arena, &source, &out), TARN_UNSUPPORTED_FEATURE, "a-z");
}

TARN_TEST(shape, has_partition_columns_where_the_table_asks_for_them)
{
    struct tarn_slice key = S("dt");
    struct tarn_pair pairs[] = {{S("bucket"), S("-1")},
                                {S("metastore.partitioned-table"), S("true")}};
    struct tarn_hms__source source = source_of(t, "id INT, dt STRING", pairs, 2);
    struct tarn_schema schema = *source.schema;
    struct tarn_hms__table out;
    schema.partition_keys = &key;
    schema.partition_key_count = 1;
    source.schema = &schema;
    expect_ok(tarn_hms__shape_table(t->arena, &source, &out));
    expect_int(out.column_count, 1);
    expect_int(out.key_count, 1);
    expect_slice(out.keys[0].name, "dt");
    expect_str(parameter(t, &out, "partition"), "dt");
    schema.option_count = 1;
    expect_ok(tarn_hms__shape_table(t->arena, &source, &out));
    expect_int(out.column_count, 2);
    expect_int(out.key_count, 0);
}

TARN_TEST(shape, cuts_comments_to_what_the_metastore_keeps)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (int i = 0; i < 256; i++)
        tarn_buf_add_str(&text, "\xc3\xa4");
    const char *full = tarn_arena_str(t->arena, tarn_buf_slice(&text));
    struct tarn_hms__table table =
        shape(t, tarn_arena_printf(
                     t->arena, "a INT COMMENT '%s', b INT COMMENT '%sx', c INT COMMENT 'l1\nl2'",
                     full, full));
    expect_int(table.columns[0].comment.size, 512);
    expect_int(table.columns[1].comment.size, 253 * 2 + 3);
    expect_slice(table.columns[2].comment, "l1 l2");
}

TARN_TEST(shape, knows_a_difference)
{
    struct tarn_hms__table want = shape(t, "a INT, b STRING"), have = shape(t, "a INT, b STRING");
    expect_null(tarn_hms__table_differs(t->arena, &want, &have));
    expect_slice(want.location, "file:/w/db.db/t");
    have.location = S("file:///w/db.db/t/"); /* the same place */
    expect_null(tarn_hms__table_differs(t->arena, &want, &have));
    have.location = S("file:/w/db.db/u");
    expect_str(tarn_hms__table_differs(t->arena, &want, &have), "location");
    have = shape(t, "a INT, c STRING");
    expect_str(tarn_hms__table_differs(t->arena, &want, &have), "columns");
    have = want;
    have.parameter_count--; /* the fingerprint is the last */
    expect_str(tarn_hms__table_differs(t->arena, &want, &have), "parameter tarn.fingerprint");
    expect_false(tarn_hms__must_recreate(&want, &have));
    have.key_count = 1;
    have.keys = have.columns;
    expect_true(tarn_hms__must_recreate(&want, &have));
}

TARN_TEST(shape, an_option_that_is_gone_shows_in_the_fingerprint)
{
    struct tarn_pair pairs[] = {{S("bucket"), S("-1")}, {S("k"), S("v")}, {S("numRows"), S("7")}};
    struct tarn_hms__source with = source_of(t, "a INT", pairs, 2),
                            without = source_of(t, "a INT", pairs, 1);
    struct tarn_hms__table want, have;
    expect_ok(tarn_hms__shape_table(t->arena, &without, &want));
    expect_ok(tarn_hms__shape_table(t->arena, &with, &have));
    expect_str(tarn_hms__table_differs(t->arena, &want, &have), "parameter tarn.fingerprint");
    have.parameters[have.parameter_count - 1] =
        pairs[2]; /* what Hive keeps by itself stays, the option goes */
    tarn_hms__keep_parameters(t->arena, &want, &have);
    expect_null(parameter(t, &want, "k"));
    expect_str(parameter(t, &want, "numRows"), "7");
}

TARN_TEST(shape, its_own_words_win_over_options)
{
    struct tarn_pair pairs[] = {
        {S("bucket"), S("-1")}, {S("EXTERNAL"), S("FALSE")}, {S("tarn.warehouse"), S("x")}};
    struct tarn_hms__source source = source_of(t, "a INT", pairs, 3);
    struct tarn_hms__table out;
    expect_ok(tarn_hms__shape_table(t->arena, &source, &out));
    expect_str(parameter(t, &out, "EXTERNAL"), "TRUE");
    expect_str(parameter(t, &out, "tarn.warehouse"), "file:///w");
    expect_true(tarn_hms__is_ours(out.parameters, out.parameter_count, S("file:///w")));
    expect_false(tarn_hms__is_ours(out.parameters, out.parameter_count, S("file:///v")));
}
