/*
 * Picked rows of any canonical type equal the same rows read one by one, whatever the arrays' offsets,
 * nulls and nesting; ranges share memory; sizes beyond 32-bit offsets are refused.
 */
#include "test.h"
#include "batch.h"

#include "merge/internal.h"

static const struct tarn_type int_type = {.id = TARN_TYPE_INT, .nullable = true};
static const struct tarn_type text_type = {
    .id = TARN_TYPE_VARCHAR, .nullable = true, .length = INT32_MAX};
static const struct tarn_type text_key = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};
static const struct tarn_type list_type = {
    .id = TARN_TYPE_ARRAY, .nullable = true, .element = &text_type};
static const struct tarn_field row_fields[] = {
    {.id = 1, .name = {(const uint8_t *)"i", 1}, .type = &int_type},
    {.id = 2, .name = {(const uint8_t *)"l", 1}, .type = &list_type},
};
static const struct tarn_type row_type = {
    .id = TARN_TYPE_ROW, .nullable = true, .fields = row_fields, .field_count = 2};
static const struct tarn_type all_types[] = {
    {.id = TARN_TYPE_BOOLEAN, .nullable = true},
    {.id = TARN_TYPE_TINYINT, .nullable = true},
    {.id = TARN_TYPE_SMALLINT, .nullable = true},
    {.id = TARN_TYPE_INT, .nullable = true},
    {.id = TARN_TYPE_BIGINT, .nullable = true},
    {.id = TARN_TYPE_FLOAT, .nullable = true},
    {.id = TARN_TYPE_DOUBLE, .nullable = true},
    {.id = TARN_TYPE_DECIMAL, .nullable = true, .precision = 12, .scale = 2},
    {.id = TARN_TYPE_TIMESTAMP, .nullable = true, .precision = 9},
    {.id = TARN_TYPE_VARCHAR, .nullable = true, .length = INT32_MAX},
    {.id = TARN_TYPE_VARBINARY, .nullable = true, .length = INT32_MAX},
    {.id = TARN_TYPE_ARRAY, .nullable = true, .element = &int_type},
    {.id = TARN_TYPE_MAP, .nullable = true, .key = &text_key, .element = &row_type},
    {.id = TARN_TYPE_MULTISET, .nullable = true, .element = &text_key},
    {.id = TARN_TYPE_ROW, .nullable = true, .fields = row_fields, .field_count = 2},
    {.id = TARN_TYPE_ARRAY, .nullable = true, .element = &list_type},
};

static struct tarn_value random_value(struct tarn_test *t, const struct tarn_type *type)
{
    if (type->nullable && tarn_test_random_one_in(t, 5))
        return tarn_test_null();
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        return tarn_test_int((int64_t)tarn_test_random_below(t, 2));
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return tarn_test_real((double)tarn_test_random_below(t, 1000) / 4);
    case TARN_TYPE_DECIMAL:
        return tarn_test_decimal((__int128)tarn_test_random_between(t, -1000000, 1000000));
    case TARN_TYPE_TIMESTAMP:
        return tarn_test_time(tarn_test_random_between(t, -100000, 100000), 123456);
    case TARN_TYPE_VARCHAR:
        return tarn_test_text(tarn_arena_printf(t->arena, "%0*d",
                                                (int)tarn_test_random_below(t, 12) + 1,
                                                (int)tarn_test_random_below(t, 9)));
    case TARN_TYPE_VARBINARY:
        return (struct tarn_value){.bytes =
                                       tarn_test_random_bytes(t, tarn_test_random_below(t, 9))};
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
    case TARN_TYPE_ROW: {
        size_t n = type->id == TARN_TYPE_ROW ? type->field_count : tarn_test_random_below(t, 4);
        struct tarn_value *items = tarn_arena_calloc(t->arena, n + 1, sizeof *items);
        struct tarn_value *keys = tarn_arena_calloc(t->arena, n + 1, sizeof *keys);
        for (size_t i = 0; i < n; i++) {
            items[i] = type->id == TARN_TYPE_ROW        ? random_value(t, type->fields[i].type)
                       : type->id == TARN_TYPE_MULTISET ? tarn_test_int((int64_t)i + 1)
                                                        : random_value(t, type->element);
            if (type->id == TARN_TYPE_MAP || type->id == TARN_TYPE_MULTISET)
                keys[i] = random_value(t, type->id == TARN_TYPE_MAP ? type->key : type->element);
        }
        return (struct tarn_value){.list = {items, keys, n}};
    }
    default:
        return tarn_test_int(tarn_test_random_between(t, -100, 100));
    }
}

static const char *print(struct tarn_test *t, const struct tarn_type *type,
                         const struct tarn_value *v)
{
    struct tarn_buf text = {0};
    tarn_value_print(type, v, &text);
    char *out = tarn_arena_str(t->arena, tarn_buf_slice(&text));
    tarn_buf_drop(&text);
    return out;
}

#define SOURCES 3
#define ROWS 40

static void check_type(struct tarn_test *t, const struct tarn_type *type)
{
    struct tarn_value values[SOURCES][ROWS];
    struct tarn_batch *sources[SOURCES];
    struct tarn_merge_picks picks = {0};
    struct tarn_batch *out = NULL;
    size_t n = 0;
    struct {
        uint32_t source, row;
    } want[400];
    const struct tarn_type *types[] = {&int_type, type};

    for (int s = 0; s < SOURCES; s++) {
        struct tarn_value rows[2 * ROWS];
        for (int r = 0; r < ROWS; r++) {
            rows[2 * r] = tarn_test_int(r);
            rows[2 * r + 1] = values[s][r] = random_value(t, type);
        }
        sources[s] = tarn_test_batch(types, 2, rows, ROWS); /* the second column has an offset */
    }
    for (int p = 0; p < 30; p++) {
        uint32_t source = (uint32_t)tarn_test_random_below(t, SOURCES);
        uint32_t row = (uint32_t)tarn_test_random_below(t, ROWS);
        uint32_t count = 1 + (uint32_t)tarn_test_random_below(t, TARN_MIN(8u, ROWS - row));
        tarn_merge__picks_add(&picks, source, row, count);
        for (uint32_t i = 0; i < count; i++, n++) {
            want[n].source = source;
            want[n].row = row + i;
        }
    }
    const int column = 1;
    expect_ok(tarn_merge__gather_batch(sources, SOURCES, &column, &type, 1, &picks, &out));
    expect_int(out->row_count, n);
    int64_t nulls = 0;
    for (size_t i = 0; i < n; i++) {
        struct tarn_value got =
            tarn_test_value(t->arena, type, tarn_batch_column(out, 0), (int64_t)i);
        expect_str(print(t, type, &got), print(t, type, &values[want[i].source][want[i].row]));
        nulls += got.is_null;
    }
    expect_int(tarn_batch_column(out, 0)->null_count, nulls);
    tarn_batch_drop(&out);
    tarn_merge__picks_drop(&picks);
    for (int s = 0; s < SOURCES; s++)
        tarn_batch_drop(&sources[s]);
}

TARN_TEST(gather, equals_rows_one_by_one_for_all_types)
{
    for (int round = 0; round < tarn_test_rounds(10); round++) {
        for (size_t i = 0; i < TARN_COUNT_OF(all_types); i++)
            check_type(t, &all_types[i]);
    }
}

TARN_TEST(gather, one_range_is_shared)
{
    const struct tarn_type *types[] = {&all_types[4]};
    struct tarn_value rows[] = {tarn_test_int(7), tarn_test_int(8), tarn_test_int(9)};
    struct tarn_batch *source = tarn_test_batch(types, 1, rows, 3), *out = NULL;
    struct tarn_merge_picks picks = {0};

    tarn_merge__picks_add(&picks, 0, 1, 1);
    tarn_merge__picks_add(&picks, 0, 2, 1); /* a neighbour joins the range */
    expect_int(picks.count, 1);
    expect_ok(tarn_merge__gather_batch(&source, 1, NULL, types, 1, &picks, &out));
    expect_true(tarn_batch_column(out, 0)->buffers[1] == tarn_batch_column(source, 0)->buffers[1]);
    tarn_batch_drop(&source); /* the view keeps it alive */
    struct tarn_value v = tarn_test_value(t->arena, types[0], tarn_batch_column(out, 0), 1);
    expect_int(v.integer, 9);
    tarn_batch_drop(&out);
    tarn_merge__picks_drop(&picks);
}

TARN_TEST(gather, refuses_more_bytes_than_offsets_hold)
{
    int32_t offsets[] = {0, INT32_MAX};
    static uint8_t bytes[1];
    const void *buffers[] = {NULL, offsets, bytes};
    struct ArrowArray huge = {.length = 1, .n_buffers = 3, .buffers = buffers}, out = {0};
    const struct ArrowArray *sources[] = {&huge};
    struct tarn_merge_picks picks = {0};

    tarn_merge__picks_add(&picks, 0, 0, 1);
    tarn_merge__picks_add(&picks, 0, 0, 1);
    expect_status(tarn_merge__gather(&text_type, sources, 1, &picks, &out), TARN_TOO_LARGE,
                  "2147483647");
    tarn_merge__picks_drop(&picks);
}
