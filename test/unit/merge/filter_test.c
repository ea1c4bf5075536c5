/*
 * The rows a filter picks are those for which format's judge of single rows says true: for random
 * predicates with nulls, and for each kind of leaf.
 */
#include "test.h"
#include "batch.h"

#include "merge/internal.h"

static const struct tarn_type types[] = {
    {.id = TARN_TYPE_INT, .nullable = true},
    {.id = TARN_TYPE_VARCHAR, .nullable = true, .length = INT32_MAX},
    {.id = TARN_TYPE_BIGINT, .nullable = true},
    {.id = TARN_TYPE_DECIMAL, .nullable = true, .precision = 10, .scale = 1},
    {.id = TARN_TYPE_TINYINT, .nullable = true},
};
static const struct tarn_type *const type_list[] = {&types[0], &types[1], &types[2], &types[3],
                                                    &types[4]};
#define COLUMNS 5
static const struct tarn_field fields[COLUMNS] = {
    {.id = 0, .type = &types[0]}, {.id = 1, .type = &types[1]}, {.id = 2, .type = &types[2]},
    {.id = 3, .type = &types[3]}, {.id = 4, .type = &types[4]},
};
static const struct tarn_schema schema = {.fields = fields, .field_count = COLUMNS};
static const int identity[COLUMNS] = {0, 1, 2, 3, 4};

static struct tarn_value random_value(struct tarn_test *t, int column)
{
    static const char *const texts[] = {"", "a", "ab", "abc", "b"};
    switch (column) {
    case 1:
        return tarn_test_text(texts[tarn_test_random_below(t, 5)]);
    case 3:
        return tarn_test_decimal(tarn_test_random_between(t, -2, 2));
    default:
        return tarn_test_int(tarn_test_random_between(t, -2, 2));
    }
}

static int compare_values(const void *a, const void *b, void *type)
{
    return tarn_value_compare(type, a, b);
}

/* As the parser binds leaves: IN's values in order, no null literals. */
static struct tarn_predicate_node random_leaf(struct tarn_test *t)
{
    int column = (int)tarn_test_random_below(t, COLUMNS);
    size_t count = 1 + tarn_test_random_below(t, 3);
    struct tarn_value *values = tarn_arena_calloc(t->arena, count, sizeof *values);
    struct tarn_predicate_node node = {
        .op = (enum tarn_predicate_op)(TARN_PRED_EQ + (int)tarn_test_random_below(t, 10)),
        .column = column,
        .values = values,
        .value_count = 1};

    for (size_t i = 0; i < count; i++)
        values[i] = random_value(t, column);
    if (node.op == TARN_PRED_IN) {
        node.value_count = count;
        qsort_r(values, count, sizeof *values, compare_values, (void *)(uintptr_t)&types[column]);
        node.list_has_null = tarn_test_random_one_in(t, 3);
    } else if (node.op == TARN_PRED_LIKE) {
        node.column = 1;
        node.pattern = tarn_slice_str(tarn_test_random_one_in(t, 2) ? "a%" : "_b%");
    }
    return node;
}

static struct tarn_predicate random_predicate(struct tarn_test *t)
{
    struct tarn_predicate_node *nodes = tarn_arena_calloc(t->arena, 64, sizeof *nodes);
    size_t n = 0, depth = 0;

    do {
        if (depth >= 2 && tarn_test_random_one_in(t, 2)) {
            nodes[n++].op = tarn_test_random_one_in(t, 2) ? TARN_PRED_AND : TARN_PRED_OR;
            depth--;
        } else if (depth >= 1 && tarn_test_random_one_in(t, 3)) {
            nodes[n++].op = TARN_PRED_NOT;
        } else if (tarn_test_random_one_in(t, 8)) {
            nodes[n++].op = (enum tarn_predicate_op)tarn_test_random_below(t, 3);
            depth++;
        } else {
            nodes[n++] = random_leaf(t);
            depth++;
        }
    } while (n < 20);
    for (; depth > 1; depth--)
        nodes[n++].op = TARN_PRED_AND;
    return (struct tarn_predicate){
        .nodes = nodes, .node_count = n, .columns = identity, .column_count = COLUMNS};
}

#define ROWS 1500 /* more than one block */

TARN_TEST(filter, picks_what_the_judge_of_rows_picks)
{
    struct tarn_value *values = tarn_arena_calloc(t->arena, ROWS * COLUMNS, sizeof *values);
    struct tarn_merge_picks picks = {0};

    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] =
            tarn_test_random_one_in(t, 5) ? tarn_test_null() : random_value(t, (int)(i % COLUMNS));
    struct tarn_batch *batch = tarn_test_batch(type_list, COLUMNS, values, ROWS);
    for (int round = 0; round < tarn_test_rounds(200); round++) {
        struct tarn_predicate p = random_predicate(t);
        struct tarn_merge_filter *filter = tarn_merge__filter_new(&p, &schema, identity);
        int64_t limit =
            tarn_test_random_one_in(t, 4) ? (int64_t)tarn_test_random_below(t, 40) : INT64_MAX;
        int64_t want = 0;

        tarn_merge__picks_clear(&picks);
        tarn_merge__filter_select(filter, batch, limit, &picks);
        size_t at = 0;
        uint32_t in_range = 0;
        for (uint32_t r = 0; r < ROWS && want < limit; r++) {
            if (tarn_predicate_eval(&p, &schema, &values[r * COLUMNS]) != TARN_TRUE)
                continue;
            want++;
            expect_true(at < picks.count);
            expect_int(picks.items[at].row + in_range, r);
            if (++in_range == picks.items[at].count) {
                at++;
                in_range = 0;
            }
        }
        expect_int(picks.row_count, want);
        tarn_merge__filter_free(filter);
    }
    tarn_merge__picks_drop(&picks);
    tarn_batch_drop(&batch);
}
