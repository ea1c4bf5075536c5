/*
 * A sorted buffer is the rows in key order, of each key the last to come (or by its sequence fields),
 * numbered by arrival: for many keys that share long beginnings, in order or not, of several chunks.
 */
#include "test.h"
#include "batch.h"

#include "merge/internal.h"

static const struct tarn_type text = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};
static const struct tarn_type bigint = {.id = TARN_TYPE_BIGINT};

struct row {
    char key[40];
    int64_t value; /* arrival */
};

static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int c = strcmp(x->key, y->key);
    return c != 0 ? c : (x->value > y->value) - (x->value < y->value);
}

static void check(struct tarn_test *t, size_t count, size_t distinct, bool ordered)
{
    const struct tarn_type *types[] = {&text, &bigint, &tarn_merge__kind_type};
    const struct tarn_type *layout_types[] = {&text, &bigint, &tarn_merge__sequence_type,
                                              &tarn_merge__kind_type};
    struct tarn_merge_layout layout = {.column_count = 2, .types = layout_types};
    struct tarn_merge_key_column column = {0, &text, false};
    struct tarn_merge_key_spec key;
    struct tarn_batch *chunks[64];
    struct tarn_merge_keys keys[64];
    struct row *rows = tarn_arena_calloc(t->arena, count, sizeof *rows);
    uint64_t *picks = tarn_arena_calloc(t->arena, count, sizeof *picks);
    size_t chunk_count = 0, chunk_rows = count / 50 + 1;

    tarn_merge__key_spec_init(&key, &column, 1);
    for (size_t i = 0; i < count; i++) {
        size_t k = ordered ? i * distinct / count : tarn_test_random_below(t, distinct);
        snprintf(rows[i].key, sizeof rows[i].key, "%s%05zu%s",
                 k % 3 == 0 ? "common-beginning-" : "common-b", k, k % 2 == 0 ? "" : "-and-an-end");
        rows[i].value = (int64_t)i;
    }
    if (ordered) {
        qsort(rows, count, sizeof *rows, by_key);
        for (size_t i = 0; i < count; i++)
            rows[i].value = (int64_t)i;
    }
    for (size_t at = 0; at < count; at += chunk_rows, chunk_count++) {
        size_t n = TARN_MIN(chunk_rows, count - at);
        struct tarn_value *values = tarn_arena_calloc(t->arena, n * 3, sizeof *values);
        for (size_t i = 0; i < n; i++) {
            values[3 * i] = tarn_test_text(rows[at + i].key);
            values[3 * i + 1] = tarn_test_int(rows[at + i].value);
            picks[at + i] = (uint64_t)chunk_count << 32 | i;
        }
        chunks[chunk_count] = tarn_test_batch(types, 3, values, (int64_t)n);
        expect_ok(tarn_merge__keys_build(&key, chunks[chunk_count], &keys[chunk_count]));
    }
    struct tarn_merge_buffer_spec spec = {.layout = &layout,
                                          .chunks = chunks,
                                          .chunk_count = chunk_count,
                                          .keys = keys,
                                          .rows = picks,
                                          .row_count = count,
                                          .first_sequence = 1000,
                                          .batch_rows = 77};
    struct tarn_merge_input *input = tarn_merge__buffer_sort(&spec);
    qsort(rows, count, sizeof *rows, by_key);
    size_t at = 0;
    for (;;) {
        struct tarn_batch *batch;
        uint32_t place;
        expect_ok(input->next(input, t->op, &batch, &place));
        if (batch == NULL)
            break;
        for (int64_t i = 0; i < batch->row_count; i++, at++) {
            while (at + 1 < count && strcmp(rows[at].key, rows[at + 1].key) == 0)
                at++; /* to the last of the key */
            expect_slice(tarn_test_value(t->arena, &text, tarn_batch_column(batch, 0), i).bytes,
                         rows[at].key);
            expect_int(tarn_test_value(t->arena, &bigint, tarn_batch_column(batch, 1), i).integer,
                       rows[at].value);
            expect_int(tarn_test_value(t->arena, &bigint, tarn_batch_column(batch, 2), i).integer,
                       1000 + rows[at].value);
        }
        tarn_batch_unref(batch);
    }
    expect_int(at, count);
    input->close(input);
    for (size_t i = 0; i < chunk_count; i++) {
        tarn_merge__keys_drop(&keys[i]);
        tarn_batch_unref(chunks[i]);
    }
}

TARN_TEST(buffer, sorts_and_keeps_the_last)
{
    for (int round = 0; round < tarn_test_rounds(3); round++) {
        check(t, 1, 1, false);
        check(t, 20, 5, false);
        check(t, 3000, 2000, false);
        check(t, 3000, 10, false);
        check(t, 3000, 1, false);
        check(t, 3000, 2000, true);
    }
}
