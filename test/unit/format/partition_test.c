/*
 * Partitions: directories are named as Paimon names them (docs/format.md, "Partition directory
 * names"); what is escaped comes back, once; null, '' and blanks share a folder, not a value.
 */
#include "test.h"

#include "format/partition.h"

static struct tarn_type pool[64];
static size_t pool_used;

static const struct tarn_type *type_of(enum tarn_type_id id, int32_t precision, int32_t scale)
{
    struct tarn_type *type = &pool[pool_used++ % TARN_COUNT_OF(pool)];
    *type = (struct tarn_type){.id = id,
                               .nullable = true,
                               .length = TARN_TYPE_LENGTH_MAX,
                               .precision = precision,
                               .scale = scale};
    return type;
}

/* The path of a table partitioned by p of this type, and the value as text (NULL: null). */
static const char *path_of(struct tarn_test *t, const struct tarn_type *type, const char *text,
                           bool legacy)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_field fields[] = {{.name = tarn_slice_str("p"), .type = type}};
    struct tarn_slice keys[] = {tarn_slice_str("p")};
    struct tarn_schema schema = {
        .fields = fields, .field_count = 1, .partition_keys = keys, .partition_key_count = 1};
    struct tarn_options options = {.partition_legacy_name = legacy,
                                   .partition_default_name =
                                       tarn_slice_str("__DEFAULT_PARTITION__")};
    struct tarn_value value = {.is_null = text == NULL};

    if (text != NULL)
        expect_ok(tarn_value_parse(type, tarn_slice_str(text), t->arena, &value));
    tarn_row_serialize(&type, &value, 1, &row);
    expect_ok(tarn_partition_path(&schema, &options, tarn_buf_slice(&row), &out));
    return tarn_arena_str(t->arena, tarn_buf_slice(&out));
}

#define expect_names(type, text, legacy_want, cast_want)                                           \
    do {                                                                                           \
        const struct tarn_type *names_type = (type);                                               \
        expect_str(path_of(t, names_type, (text), true), "p=" legacy_want "/");                    \
        expect_str(path_of(t, names_type, (text), false), "p=" cast_want "/");                     \
    } while (0)

TARN_TEST(partition, names_of_each_type)
{
    expect_names(type_of(TARN_TYPE_VARCHAR, 0, 0), "x", "x", "x");
    expect_names(type_of(TARN_TYPE_BIGINT, 0, 0), "-5", "-5", "-5");
    expect_names(type_of(TARN_TYPE_BOOLEAN, 0, 0), "true", "true", "true");
    expect_names(type_of(TARN_TYPE_DATE, 0, 0), "2024-05-14", "19857", "2024-05-14");
    expect_names(type_of(TARN_TYPE_DATE, 0, 0), "1969-12-31", "-1", "1969-12-31");
    expect_names(type_of(TARN_TYPE_TIME, 0, 0), "01:00:00", "3600000", "01%3A00%3A00");
    expect_names(type_of(TARN_TYPE_TIME, 3, 0), "01:00:00.12", "3600120", "01%3A00%3A00.12");
    expect_names(type_of(TARN_TYPE_DECIMAL, 10, 2), "12.3", "12.30", "12.30");
    expect_names(type_of(TARN_TYPE_DOUBLE, 0, 0), "1", "1.0", "1.0");
    expect_names(type_of(TARN_TYPE_DOUBLE, 0, 0), "1e10", "1.0E10", "1.0E10");
    expect_names(type_of(TARN_TYPE_FLOAT, 0, 0), "0.1", "0.1", "0.1");
    expect_names(type_of(TARN_TYPE_DOUBLE, 0, 0), "1e-5", "1.0E-5", "1.0E-5");
}

/* K37 */
TARN_TEST(partition, names_of_timestamps)
{
    const struct tarn_type *ts3 = type_of(TARN_TYPE_TIMESTAMP, 3, 0);
    const struct tarn_type *ts0 = type_of(TARN_TYPE_TIMESTAMP, 0, 0);
    const struct tarn_type *ts9 = type_of(TARN_TYPE_TIMESTAMP, 9, 0);

    expect_names(ts3, "2024-05-14", "2024-05-14T00%3A00", "2024-05-14 00%3A00%3A00.000");
    expect_names(ts0, "2024-05-14", "2024-05-14T00%3A00", "2024-05-14 00%3A00%3A00");
    expect_names(ts3, "2024-05-14 00:00:00.123", "2024-05-14T00%3A00%3A00.123",
                 "2024-05-14 00%3A00%3A00.123");
    expect_names(ts3, "2024-01-01 12:30:00", "2024-01-01T12%3A30", "2024-01-01 12%3A30%3A00.000");
    expect_names(ts3, "2024-01-01 12:30:05", "2024-01-01T12%3A30%3A05",
                 "2024-01-01 12%3A30%3A05.000");
    expect_names(ts9, "2024-01-01 12:30:00.0001", "2024-01-01T12%3A30%3A00.000100",
                 "2024-01-01 12%3A30%3A00.000100000");
    expect_names(ts9, "1969-12-31 23:59:59.999999999", "1969-12-31T23%3A59%3A59.999999999",
                 "1969-12-31 23%3A59%3A59.999999999");
}

/* K38 */
TARN_TEST(partition, escapes_what_paimon_escapes)
{
    const struct tarn_type *text = type_of(TARN_TYPE_VARCHAR, 0, 0);

    expect_names(text, "a=b c%d\xc3\xa9\n{x}|<>~", "a%3Db c%25d\xc3\xa9%0A%7Bx%7D|<>~",
                 "a%3Db c%25d\xc3\xa9%0A%7Bx%7D|<>~");
    expect_names(text, "2026-01-01 00:00", "2026-01-01 00%3A00", "2026-01-01 00%3A00");
    expect_names(text, "a/b", "a%2Fb", "a%2Fb");
    expect_names(text, "50%", "50%25", "50%25");
    expect_names(text, "50%25", "50%2525", "50%2525");
    expect_names(text,
                 "stra\xc3\x9f"
                 "e",
                 "stra\xc3\x9f"
                 "e",
                 "stra\xc3\x9f"
                 "e");
    expect_names(text, " lead", " lead", " lead");
    expect_names(text, "\"#%'*/:=?\\[]^\x7f\x1f", "%22%23%25%27%2A%2F%3A%3D%3F%5C%5B%5D%5E%7F%1F",
                 "%22%23%25%27%2A%2F%3A%3D%3F%5C%5B%5D%5E%7F%1F");
    expect_names(text, "..", "..", ".."); /* behind "p=": no way up */
}

/* K57 */
TARN_TEST(partition, null_and_blanks_share_the_default)
{
    const struct tarn_type *text = type_of(TARN_TYPE_VARCHAR, 0, 0);

    expect_names(text, NULL, "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__");
    expect_names(text, "", "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__");
    expect_names(text, " \t\n", "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__");
    expect_names(text, "\xe3\x80\x80", "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__");
    expect_names(text, "\xc2\xa0", "\xc2\xa0", "\xc2\xa0"); /* no blank to Java */
    expect_names(type_of(TARN_TYPE_INT, 0, 0), NULL, "__DEFAULT_PARTITION__",
                 "__DEFAULT_PARTITION__");
}

static const char *unescaped(struct tarn_test *t, const char *text)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_path_unescape(tarn_slice_str(text), &out);
    return tarn_arena_str(t->arena, tarn_buf_slice(&out));
}

TARN_TEST(partition, unescapes_once)
{
    expect_str(unescaped(t, "a%3Db"), "a=b");
    expect_str(unescaped(t, "50%2525"), "50%25");
    expect_str(unescaped(t, "%7b%7B"), "{{");
    expect_str(unescaped(t, "50%"), "50%");
    expect_str(unescaped(t, "%4"), "%4");
    expect_str(unescaped(t, "%zz%41"), "%zzA");
    expect_str(unescaped(t, "%E9"), "\xc3\xa9"); /* a UTF-16 code unit */
}

TARN_TEST(partition, escaping_comes_back)
{
    for (int i = 0; i < tarn_test_rounds(500); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf escaped = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf back = {0};
        struct tarn_slice text = tarn_test_random_bytes(t, tarn_test_random_below(t, 30));

        tarn_path_escape(text, &escaped);
        tarn_path_unescape(tarn_buf_slice(&escaped), &back);
        expect_bytes(tarn_buf_slice(&back), text);
        expect_null(escaped.size == 0 ? NULL : memchr(escaped.data, '/', escaped.size));
    }
}

TARN_TEST(partition, paths_of_buckets)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_field fields[] = {
        {.name = tarn_slice_str("id"), .type = type_of(TARN_TYPE_INT, 0, 0)},
        {.name = tarn_slice_str("hour"), .type = type_of(TARN_TYPE_INT, 0, 0)},
        {.name = tarn_slice_str("dt"), .type = type_of(TARN_TYPE_DATE, 0, 0)}};
    struct tarn_slice keys[] = {tarn_slice_str("dt"), tarn_slice_str("hour")};
    struct tarn_schema schema = {
        .fields = fields, .field_count = 3, .partition_keys = keys, .partition_key_count = 2};
    struct tarn_options options = {.partition_legacy_name = false,
                                   .partition_default_name = tarn_slice_str("none")};
    struct tarn_value values[] = {{.integer = 19857}, {.integer = 3}};
    const struct tarn_type *types[] = {fields[2].type, fields[1].type};

    tarn_row_serialize(types, values, 2, &row);
    expect_ok(tarn_bucket_path(&schema, &options, tarn_buf_slice(&row), 4, &out));
    expect_slice(tarn_buf_slice(&out), "dt=2024-05-14/hour=3/bucket-4");
    tarn_buf_clear(&out);
    options.data_dir = tarn_slice_str("data/");
    expect_ok(tarn_bucket_path(&schema, &options, tarn_buf_slice(&row), -2, &out));
    expect_slice(tarn_buf_slice(&out), "data/dt=2024-05-14/hour=3/bucket-postpone");
    tarn_buf_clear(&out);
    expect_ok(tarn_partition_print(&schema, tarn_buf_slice(&row), &out));
    expect_slice(tarn_buf_slice(&out), "dt=2024-05-14,hour=3");
    tarn_buf_clear(&out);
    schema.partition_key_count = 0;
    options.data_dir = (struct tarn_slice){0};
    expect_ok(tarn_bucket_path(&schema, &options, tarn_row_empty(), 0, &out));
    expect_slice(tarn_buf_slice(&out), "bucket-0");
    expect_status(tarn_bucket_path(&schema, &options, tarn_buf_slice(&row), 0, &out),
                  TARN_ROW_MALFORMED, "partition");
}
