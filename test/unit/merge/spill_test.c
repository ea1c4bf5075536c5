/*
 * What was spilled comes back the same, nested types, nulls and offsets included; segments don't mix; a
 * damaged file is an error, never a wrong row or a crash.
 */
#include "test.h"
#include "batch.h"

#include <unistd.h>

#include "merge/internal.h"

static const struct tarn_type maybe_int = {.id = TARN_TYPE_INT, .nullable = true};
static const struct tarn_type text = {
    .id = TARN_TYPE_VARCHAR, .nullable = true, .length = INT32_MAX};
static const struct tarn_type key_text = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};
static const struct tarn_type list = {.id = TARN_TYPE_ARRAY, .nullable = true, .element = &text};
static const struct tarn_field fields[] = {{.id = 0, .type = &maybe_int}, {.id = 1, .type = &list}};
static const struct tarn_type row = {
    .id = TARN_TYPE_ROW, .nullable = true, .fields = fields, .field_count = 2};
static const struct tarn_type map = {
    .id = TARN_TYPE_MAP, .nullable = true, .key = &key_text, .element = &row};
static const struct tarn_type multiset = {
    .id = TARN_TYPE_MULTISET, .nullable = true, .element = &key_text};
static const struct tarn_type boolean = {.id = TARN_TYPE_BOOLEAN, .nullable = true};
static const struct tarn_type decimal = {
    .id = TARN_TYPE_DECIMAL, .nullable = true, .precision = 12, .scale = 2};
static const struct tarn_type *const types[] = {&maybe_int, &text,     &list,    &row,
                                                &map,       &multiset, &boolean, &decimal};
#define COLUMNS 8

static struct tarn_value random_value(struct tarn_test *t, const struct tarn_type *type)
{
    if (type->nullable && tarn_test_random_one_in(t, 4))
        return tarn_test_null();
    switch (type->id) {
    case TARN_TYPE_VARCHAR:
        return (struct tarn_value){.bytes =
                                       tarn_slice_of("abcdefghijk", tarn_test_random_below(t, 12))};
    case TARN_TYPE_BOOLEAN:
        return tarn_test_int((int64_t)tarn_test_random_below(t, 2));
    case TARN_TYPE_DECIMAL:
        return tarn_test_decimal(tarn_test_random_between(t, -9999, 9999));
    case TARN_TYPE_INT:
        return tarn_test_int(tarn_test_random_between(t, -9, 9));
    default: {
        size_t n = type->id == TARN_TYPE_ROW ? type->field_count : tarn_test_random_below(t, 3);
        struct tarn_value *items = tarn_arena_calloc(t->arena, n + 1, sizeof *items);
        struct tarn_value *keys = tarn_arena_calloc(t->arena, n + 1, sizeof *keys);
        for (size_t i = 0; i < n; i++) {
            items[i] = type->id == TARN_TYPE_ROW        ? random_value(t, type->fields[i].type)
                       : type->id == TARN_TYPE_MULTISET ? tarn_test_int(1)
                                                        : random_value(t, type->element);
            keys[i] = tarn_test_text(i == 0 ? "first" : "second");
        }
        return (struct tarn_value){.list = {items, keys, n}};
    }
    }
}

struct once { /* one batch, once */
    struct tarn_merge_input input;
    struct tarn_batch *batch;
};

static struct tarn_status *once_next(struct tarn_merge_input *self, struct tarn_op *op,
                                     struct tarn_batch **out, uint32_t *place)
{
    struct once *once = (struct once *)self;
    *out = tarn_move(once->batch);
    *place = 0;
    return TARN_OK;
}

static void print(struct tarn_test *t, const struct tarn_batch *batch, struct tarn_buf *out)
{
    for (int64_t r = 0; r < batch->row_count; r++) {
        for (int c = 0; c < COLUMNS; c++) {
            struct tarn_value v =
                tarn_test_value(t->arena, types[c], tarn_batch_column(batch, c), r);
            tarn_value_print(types[c], &v, out);
            tarn_buf_add_byte(out, ' ');
        }
        tarn_buf_add_byte(out, '\n');
    }
}

static struct tarn_batch *random_batch(struct tarn_test *t)
{
    int64_t n = 1 + (int64_t)tarn_test_random_below(t, 30);
    struct tarn_value *values = tarn_arena_calloc(t->arena, (size_t)n * COLUMNS, sizeof *values);

    for (int64_t i = 0; i < n * COLUMNS; i++)
        values[i] = random_value(t, types[i % COLUMNS]);
    struct tarn_batch *whole = tarn_test_batch(types, COLUMNS, values, n);
    int64_t begin = (int64_t)tarn_test_random_below(t, (uint64_t)n);
    struct tarn_batch *part = tarn_merge__batch_view(whole, NULL, COLUMNS, begin, n - begin);
    tarn_batch_unref(whole);
    return part;
}

TARN_TEST(spill, gives_back_what_was_written)
{
    struct tarn_merge_spill *spill;
    struct tarn_merge_segment segments[20];
    struct tarn_buf want[20] = {0};

    expect_ok(tarn_merge__spill_open(tarn_test_dir(t), types, COLUMNS, &spill));
    for (int i = 0; i < 20; i++) {
        struct once once = {{once_next, NULL}, random_batch(t)};
        print(t, once.batch, &want[i]);
        expect_ok(tarn_merge__spill_write(spill, t->op, &once.input, &segments[i]));
    }
    for (int i = 19; i >= 0; i--) {
        struct tarn_merge_input *input = tarn_merge__spill_read(spill, segments[i], 7);
        struct tarn_batch *batch;
        struct tarn_buf got = {0};
        uint32_t place;
        expect_ok(input->next(input, t->op, &batch, &place));
        expect_int(place, 7);
        print(t, batch, &got);
        expect_bytes(tarn_buf_slice(&got), tarn_buf_slice(&want[i]));
        tarn_batch_unref(batch);
        expect_ok(input->next(input, t->op, &batch, &place));
        expect_null(batch);
        input->close(input);
        tarn_buf_drop(&got);
        tarn_buf_drop(&want[i]);
    }
    tarn_merge__spill_close(spill);
}

TARN_TEST(spill, damage_is_an_error)
{
    for (int round = 0; round < tarn_test_rounds(200); round++) {
        struct tarn_merge_spill *spill;
        struct tarn_merge_segment segment;
        struct once once = {{once_next, NULL}, random_batch(t)};
        struct tarn_batch *batch = NULL;
        struct tarn_buf bytes = {0};
        uint32_t place;

        expect_ok(tarn_merge__spill_open(tarn_test_dir(t), types, COLUMNS, &spill));
        expect_ok(tarn_merge__spill_write(spill, t->op, &once.input, &segment));
        segment.size -= 1 + (int64_t)tarn_test_random_below(t, (uint64_t)segment.size - 1);
        struct tarn_merge_input *input = tarn_merge__spill_read(spill, segment, 0);
        expect_status(input->next(input, t->op, &batch, &place), TARN_IO_ERROR, "spill file");
        input->close(input);
        tarn_merge__spill_close(spill);
        tarn_buf_drop(&bytes);
    }
}
