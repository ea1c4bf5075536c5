/*
 * filter - a predicate over a batch, leaf by leaf, in blocks of rows.
 *
 * Each leaf fills a row of truths for its block; NOT, AND and OR combine the rows above them on a stack
 * whose depth is known beforehand. Integers and text, which most predicates are about, are compared in place;
 * other types go through format's value.
 */
#include "merge/internal.h"

#define BLOCK_ROWS 1024

struct leaf {
    const struct tarn_type *type;
    int column;                /* of the batches */
    struct tarn_value *sorted; /* IN: the values in order; owned */
};

struct tarn_merge_filter {
    const struct tarn_predicate *predicate;
    struct leaf *leaves; /* one a node; unused where it isn't a leaf */
    uint8_t *stack;      /* depth * BLOCK_ROWS truths */
};

struct block { /* rows of one column */
    const struct ArrowArray *array;
    int64_t begin;
    int count;
};

static bool is_leaf(enum tarn_predicate_op op)
{
    return op >= TARN_PRED_EQ && op <= TARN_PRED_IS_NULL;
}

static int compare_with_type(const void *a, const void *b, void *type)
{
    return tarn_value_compare(type, a, b);
}

static void leaf_init(struct leaf *leaf, const struct tarn_predicate_node *node,
                      const struct tarn_schema *schema, const int *columns)
{
    leaf->type = schema->fields[node->column].type;
    leaf->column = columns[node->column];
    tarn_assert(leaf->column >= 0);
    if (node->op == TARN_PRED_IN && node->value_count > 0) {
        leaf->sorted = tarn_calloc(node->value_count, sizeof *leaf->sorted);
        memcpy(leaf->sorted, node->values, node->value_count * sizeof *leaf->sorted);
        qsort_r(leaf->sorted, node->value_count, sizeof *leaf->sorted, compare_with_type,
                (void *)(uintptr_t)leaf->type);
    }
}

/* How high the stack gets; the parser has made sure that it never runs empty. */
static size_t depth_of(const struct tarn_predicate *predicate)
{
    size_t depth = 0, most = 1;

    for (size_t i = 0; i < predicate->node_count; i++) {
        enum tarn_predicate_op op = predicate->nodes[i].op;
        if (op == TARN_PRED_AND || op == TARN_PRED_OR)
            depth--;
        else if (op != TARN_PRED_NOT)
            depth++;
        most = TARN_MAX(most, depth);
    }
    tarn_assert(depth == 1);
    return most;
}

struct tarn_merge_filter *tarn_merge__filter_new(const struct tarn_predicate *predicate,
                                                 const struct tarn_schema *schema,
                                                 const int *columns)
{
    struct tarn_merge_filter *filter = tarn_calloc(1, sizeof *filter);

    filter->predicate = predicate;
    filter->leaves = tarn_calloc(predicate->node_count, sizeof *filter->leaves);
    filter->stack = tarn_alloc(depth_of(predicate) * BLOCK_ROWS);
    for (size_t i = 0; i < predicate->node_count; i++) {
        if (is_leaf(predicate->nodes[i].op))
            leaf_init(&filter->leaves[i], &predicate->nodes[i], schema, columns);
    }
    return filter;
}

void tarn_merge__filter_free(struct tarn_merge_filter *filter)
{
    if (filter == NULL)
        return;
    for (size_t i = 0; i < filter->predicate->node_count; i++)
        free(filter->leaves[i].sorted);
    free(filter->leaves);
    free(filter->stack);
    free(filter);
}

/* --- comparing a column with one value: -1, 0, 1 a row --- */

#define COMPARE_INTEGERS(T)                                                                        \
    do {                                                                                           \
        const T *v = (const T *)b->array->buffers[1] + b->array->offset + b->begin;                \
        for (int i = 0; i < b->count; i++)                                                         \
            out[i] = (int8_t)((v[i] > literal) - (v[i] < literal));                                \
    } while (0)

static void compare_bytes(const struct block *b, struct tarn_slice literal, int8_t *out)
{
    const int32_t *offsets = (const int32_t *)b->array->buffers[1] + b->array->offset + b->begin;
    const uint8_t *data = b->array->buffers[2];

    for (int i = 0; i < b->count; i++) {
        int c = tarn_slice_compare(
            tarn_slice_of(data + offsets[i], (size_t)(offsets[i + 1] - offsets[i])), literal);
        out[i] = (int8_t)((c > 0) - (c < 0));
    }
}

/* What stands for rows that are null doesn't matter. */
static void compare_column(const struct block *b, const struct tarn_type *type,
                           const struct tarn_value *value, int8_t *out)
{
    const int64_t literal = value->integer;

    switch (type->id) {
    case TARN_TYPE_TINYINT:
        COMPARE_INTEGERS(int8_t);
        return;
    case TARN_TYPE_SMALLINT:
        COMPARE_INTEGERS(int16_t);
        return;
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        COMPARE_INTEGERS(int32_t);
        return;
    case TARN_TYPE_BIGINT:
        COMPARE_INTEGERS(int64_t);
        return;
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        compare_bytes(b, value->bytes, out);
        return;
    default:
        for (int i = 0; i < b->count; i++) {
            struct tarn_value v;
            tarn_column_value(b->array, type, b->begin + i, &v);
            out[i] = v.is_null ? 0 : (int8_t)tarn_value_compare(type, &v, value);
        }
    }
}

static void set_all(uint8_t *truths, int count, enum tarn_truth truth)
{
    memset(truths, truth, (size_t)count);
}

/* Rows that are null get `truth`. */
static void set_nulls(const struct block *b, uint8_t *truths, enum tarn_truth truth)
{
    if (b->array->null_count == 0 || b->array->buffers[0] == NULL)
        return;
    for (int i = 0; i < b->count; i++) {
        if (tarn_column_is_null(b->array, b->begin + i))
            truths[i] = (uint8_t)truth;
    }
}

static void eval_compare(const struct leaf *leaf, const struct tarn_predicate_node *node,
                         const struct block *b, uint8_t *truths)
{
    static const bool holds[][3] = {
        /* for less, equal, greater */
        [TARN_PRED_EQ] = {0, 1, 0},      [TARN_PRED_NE] = {1, 0, 1}, [TARN_PRED_LT] = {1, 0, 0},
        [TARN_PRED_LE] = {1, 1, 0},      [TARN_PRED_GT] = {0, 0, 1}, [TARN_PRED_GE] = {0, 1, 1},
        [TARN_PRED_SAFE_EQ] = {0, 1, 0},
    };
    bool safe = node->op == TARN_PRED_SAFE_EQ, null_literal = node->values[0].is_null;
    int8_t order[BLOCK_ROWS];

    if (null_literal) {
        set_all(truths, b->count, safe ? TARN_FALSE : TARN_UNKNOWN);
    } else {
        compare_column(b, leaf->type, &node->values[0], order);
        for (int i = 0; i < b->count; i++)
            truths[i] = holds[node->op][order[i] + 1] ? TARN_TRUE : TARN_FALSE;
    }
    set_nulls(b, truths, !safe ? TARN_UNKNOWN : null_literal ? TARN_TRUE : TARN_FALSE);
}

static void eval_in(const struct leaf *leaf, const struct tarn_predicate_node *node,
                    const struct block *b, uint8_t *truths)
{
    enum tarn_truth miss = node->list_has_null ? TARN_UNKNOWN : TARN_FALSE;

    for (int i = 0; i < b->count; i++) {
        size_t low = 0, high = node->value_count;
        struct tarn_value v;

        truths[i] = (uint8_t)miss;
        tarn_column_value(b->array, leaf->type, b->begin + i, &v);
        while (!v.is_null && low < high) {
            size_t middle = low + (high - low) / 2;
            int c = tarn_value_compare(leaf->type, &v, &leaf->sorted[middle]);
            if (c == 0) {
                truths[i] = TARN_TRUE;
                break;
            }
            if (c < 0)
                high = middle;
            else
                low = middle + 1;
        }
    }
    set_nulls(b, truths, TARN_UNKNOWN);
}

static void eval_like(const struct tarn_predicate_node *node, const struct block *b,
                      uint8_t *truths)
{
    const int32_t *offsets = (const int32_t *)b->array->buffers[1] + b->array->offset + b->begin;
    const uint8_t *data = b->array->buffers[2];

    for (int i = 0; i < b->count; i++) {
        struct tarn_slice text =
            tarn_slice_of(data + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
        truths[i] = tarn_like_match(text, node->pattern, node->escape) ? TARN_TRUE : TARN_FALSE;
    }
    set_nulls(b, truths, TARN_UNKNOWN);
}

static void eval_leaf(const struct leaf *leaf, const struct tarn_predicate_node *node,
                      const struct tarn_batch *batch, int64_t begin, int count, uint8_t *truths)
{
    struct block b = {tarn_batch_column(batch, leaf->column), begin, count};

    switch (node->op) {
    case TARN_PRED_IN:
        eval_in(leaf, node, &b, truths);
        break;
    case TARN_PRED_LIKE:
        eval_like(node, &b, truths);
        break;
    case TARN_PRED_IS_NULL:
        set_all(truths, count, TARN_FALSE);
        set_nulls(&b, truths, TARN_TRUE);
        break;
    default:
        eval_compare(leaf, node, &b, truths);
        break;
    }
}

/* --- three-valued logic --- */

static void combine(enum tarn_predicate_op op, uint8_t *left, const uint8_t *right, int count)
{
    /* [left][right]; false, true, unknown */
    static const uint8_t both[3][3] = {{0, 0, 0}, {0, 1, 2}, {0, 2, 2}};
    static const uint8_t either[3][3] = {{0, 1, 2}, {1, 1, 1}, {2, 1, 2}};
    const uint8_t(*table)[3] = op == TARN_PRED_AND ? both : either;

    for (int i = 0; i < count; i++)
        left[i] = table[left[i]][right[i]];
}

static void negate(uint8_t *truths, int count)
{
    static const uint8_t not [3] = {TARN_TRUE, TARN_FALSE, TARN_UNKNOWN};

    for (int i = 0; i < count; i++)
        truths[i] = not [truths[i]];
}

static void eval_block(struct tarn_merge_filter *filter, const struct tarn_batch *batch,
                       int64_t begin, int count)
{
    uint8_t *top = filter->stack; /* the first free row */

    for (size_t n = 0; n < filter->predicate->node_count; n++) {
        const struct tarn_predicate_node *node = &filter->predicate->nodes[n];
        switch (node->op) {
        case TARN_PRED_TRUE:
        case TARN_PRED_FALSE:
        case TARN_PRED_UNKNOWN:
            set_all(top, count,
                    node->op == TARN_PRED_TRUE    ? TARN_TRUE
                    : node->op == TARN_PRED_FALSE ? TARN_FALSE
                                                  : TARN_UNKNOWN);
            top += BLOCK_ROWS;
            break;
        case TARN_PRED_NOT:
            negate(top - BLOCK_ROWS, count);
            break;
        case TARN_PRED_AND:
        case TARN_PRED_OR:
            top -= BLOCK_ROWS;
            combine(node->op, top - BLOCK_ROWS, top, count);
            break;
        default:
            eval_leaf(&filter->leaves[n], node, batch, begin, count, top);
            top += BLOCK_ROWS;
            break;
        }
    }
}

void tarn_merge__filter_select(struct tarn_merge_filter *filter, const struct tarn_batch *batch,
                               int64_t limit, struct tarn_merge_picks *out)
{
    int64_t found = 0;

    for (int64_t begin = 0; begin < batch->row_count && found < limit; begin += BLOCK_ROWS) {
        int count = (int)TARN_MIN((int64_t)BLOCK_ROWS, batch->row_count - begin);

        eval_block(filter, batch, begin, count);
        for (int i = 0; i < count && found < limit; i++) {
            if (filter->stack[i] == TARN_TRUE) {
                tarn_merge__picks_add(out, 0, (uint32_t)(begin + i), 1);
                found++;
            }
        }
    }
}
