/* Predicates judged: on a row, on what is known of many rows, and on some of the columns only. */
#include "format/predicate_internal.h"

#include <math.h>

/* ---- LIKE */

static uint8_t mark_of(char escape)
{
    return escape == 0 ? '\\' : (uint8_t)escape;
}

/* What the pattern wants at p: a wildcard, or the byte that p points at after the escape. */
static bool is_wildcard(const uint8_t **p, const uint8_t *end, uint8_t mark)
{
    if (**p == mark) {
        if (*p + 1 < end)
            (*p)++;
        return false;
    }
    return **p == '%' || **p == '_';
}

static const uint8_t *next_character(const uint8_t *t, const uint8_t *end)
{
    t++;
    while (t < end && (*t & 0xc0) == 0x80)
        t++;
    return t;
}

/* Greedy, with one way back: to the latest %, which then takes one character more. */
bool tarn_like_match(struct tarn_slice text, struct tarn_slice pattern, char escape)
{
    const uint8_t *t = text.data, *t_end = text.size == 0 ? t : t + text.size;
    const uint8_t *p = pattern.data, *p_end = pattern.size == 0 ? p : p + pattern.size;
    const uint8_t *back_p = NULL, *back_t = NULL;
    uint8_t mark = mark_of(escape);

    for (;;) {
        const uint8_t *here = p;
        bool wild = p < p_end && is_wildcard(&here, p_end, mark);
        if (wild && *here == '%') {
            back_p = p = here + 1;
            back_t = t;
            continue;
        }
        if (p == p_end && t == t_end)
            return true;
        if (wild && t < t_end) {
            t = next_character(t, t_end);
            p = here + 1;
            continue;
        }
        if (!wild && p < p_end && t < t_end && *here == *t) {
            t++;
            p = here + 1;
            continue;
        }
        if (back_p == NULL || back_t == t_end)
            return false;
        back_t = next_character(back_t, t_end);
        t = back_t;
        p = back_p;
    }
}

/* ---- one row */

static bool list_holds(const struct tarn_predicate_node *leaf, const struct tarn_type *type,
                       const struct tarn_value *value)
{
    size_t low = 0, high = leaf->value_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = tarn_value_compare(type, &leaf->values[middle], value);
        if (c == 0)
            return true;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

enum tarn_truth tarn_predicate_leaf(const struct tarn_predicate_node *leaf,
                                    const struct tarn_type *type, const struct tarn_value *value)
{
    int c;

    if (leaf->op == TARN_PRED_IS_NULL)
        return value->is_null ? TARN_TRUE : TARN_FALSE;
    if (value->is_null)
        return leaf->op == TARN_PRED_SAFE_EQ ? TARN_FALSE : TARN_UNKNOWN;
    if (leaf->op == TARN_PRED_LIKE)
        return tarn_like_match(value->bytes, leaf->pattern, leaf->escape) ? TARN_TRUE : TARN_FALSE;
    if (leaf->op == TARN_PRED_IN)
        return list_holds(leaf, type, value) ? TARN_TRUE
               : leaf->list_has_null         ? TARN_UNKNOWN
                                             : TARN_FALSE;
    c = tarn_value_compare(type, value, &leaf->values[0]);
    switch (leaf->op) {
    case TARN_PRED_EQ:
    case TARN_PRED_SAFE_EQ:
        return c == 0 ? TARN_TRUE : TARN_FALSE;
    case TARN_PRED_NE:
        return c != 0 ? TARN_TRUE : TARN_FALSE;
    case TARN_PRED_LT:
        return c < 0 ? TARN_TRUE : TARN_FALSE;
    case TARN_PRED_LE:
        return c <= 0 ? TARN_TRUE : TARN_FALSE;
    case TARN_PRED_GT:
        return c > 0 ? TARN_TRUE : TARN_FALSE;
    default:
        return c >= 0 ? TARN_TRUE : TARN_FALSE;
    }
}

static enum tarn_truth truth_not(enum tarn_truth a)
{
    return a == TARN_UNKNOWN ? TARN_UNKNOWN : a == TARN_TRUE ? TARN_FALSE : TARN_TRUE;
}

static enum tarn_truth truth_and(enum tarn_truth a, enum tarn_truth b)
{
    if (a == TARN_FALSE || b == TARN_FALSE)
        return TARN_FALSE;
    return a == TARN_TRUE && b == TARN_TRUE ? TARN_TRUE : TARN_UNKNOWN;
}

enum tarn_truth tarn_predicate_eval(const struct tarn_predicate *p,
                                    const struct tarn_schema *schema,
                                    const struct tarn_value *values)
{
    enum tarn_truth stack[TARN_PREDICATE_DEPTH_MAX + 1];
    size_t top = 0; /* results on the stack; the parser bounds it */

    stack[0] = TARN_TRUE;
    for (size_t i = 0; i < p->node_count; i++) {
        const struct tarn_predicate_node *node = &p->nodes[i];
        switch (node->op) {
        case TARN_PRED_TRUE:
            stack[top++] = TARN_TRUE;
            break;
        case TARN_PRED_FALSE:
            stack[top++] = TARN_FALSE;
            break;
        case TARN_PRED_UNKNOWN:
            stack[top++] = TARN_UNKNOWN;
            break;
        case TARN_PRED_NOT:
            stack[top - 1] = truth_not(stack[top - 1]);
            break;
        case TARN_PRED_AND:
            top--;
            stack[top - 1] = truth_and(stack[top - 1], stack[top]);
            break;
        case TARN_PRED_OR:
            top--;
            stack[top - 1] = truth_not(truth_and(truth_not(stack[top - 1]), truth_not(stack[top])));
            break;
        default:
            stack[top++] =
                tarn_predicate_leaf(node, schema->fields[node->column].type, &values[node->column]);
            break;
        }
    }
    return stack[0];
}

/* ---- finishing and restricting */

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static bool is_leaf(enum tarn_predicate_op op)
{
    return op >= TARN_PRED_EQ && op <= TARN_PRED_IS_NULL;
}

void tarn_format__predicate_finish(const struct tarn_predicate_node *nodes, size_t count,
                                   struct tarn_arena *arena, struct tarn_predicate *out)
{
    struct tarn_predicate_node *kept = tarn_arena_calloc(arena, count, sizeof *kept);
    int *columns = tarn_arena_calloc(arena, count, sizeof *columns);
    size_t used = 0, distinct = 0;

    if (count > 0)
        memcpy(kept, nodes, count * sizeof *kept);
    for (size_t i = 0; i < count; i++) {
        if (is_leaf(nodes[i].op))
            columns[used++] = nodes[i].column;
    }
    qsort(columns, used, sizeof *columns, compare_ints);
    for (size_t i = 0; i < used; i++) {
        if (i == 0 || columns[distinct - 1] != columns[i])
            columns[distinct++] = columns[i];
    }
    *out = (struct tarn_predicate){kept, count, columns, distinct};
}

size_t tarn_format__predicate_depth(const struct tarn_predicate_node *nodes, size_t count)
{
    size_t depth = 0, most = 0;

    for (size_t i = 0; i < count; i++) {
        if (nodes[i].op == TARN_PRED_AND || nodes[i].op == TARN_PRED_OR)
            depth--;
        else if (nodes[i].op != TARN_PRED_NOT)
            depth++;
        most = TARN_MAX(most, depth);
    }
    return most;
}

struct tarn_status *tarn_predicate_and(const struct tarn_predicate *a,
                                       const struct tarn_predicate *b, struct tarn_arena *arena,
                                       struct tarn_predicate *out)
{
    struct tarn_nodes nodes = {0};

    for (size_t i = 0; i < a->node_count; i++)
        tarn_format__add_node(&nodes, a->nodes[i]);
    for (size_t i = 0; i < b->node_count; i++)
        tarn_format__add_node(&nodes, b->nodes[i]);
    if (a->node_count > 0 && b->node_count > 0)
        tarn_format__add_op(&nodes, TARN_PRED_AND);
    bool fits = tarn_format__predicate_depth(nodes.nodes, nodes.count) <= TARN_PREDICATE_DEPTH_MAX;
    if (fits)
        tarn_format__predicate_finish(nodes.nodes, nodes.count, arena, out);
    free(nodes.nodes);
    return fits ? TARN_OK
                : tarn_status_new(TARN_EXPRESSION_INVALID, "nested deeper than %d",
                                  TARN_PREDICATE_DEPTH_MAX);
}

static bool has_column(const int *columns, size_t count, int column)
{
    for (size_t i = 0; i < count; i++) {
        if (columns[i] == column)
            return true;
    }
    return false;
}

/*
 * Postfix read backwards is prefix, the right operand first. Going that way, each node learns whether
 * a NOT above turns it around; NOTs end at the leaves, AND and OR change places under them, and a leaf
 * that may not be looked at becomes TRUE, whichever way it was wanted: all that is left is implied.
 * The nodes come out reversed, NOT of a leaf before the leaf.
 */
static void weaken(const struct tarn_predicate *p, const int *columns, size_t column_count,
                   struct tarn_nodes *reversed)
{
    bool *turned = tarn_calloc(p->node_count + 1, sizeof *turned);
    size_t waiting = 1;

    for (size_t i = p->node_count; i-- > 0;) {
        struct tarn_predicate_node node = p->nodes[i];
        bool turn = turned[--waiting];
        if (node.op == TARN_PRED_NOT) {
            turned[waiting++] = !turn;
        } else if (node.op == TARN_PRED_AND || node.op == TARN_PRED_OR) {
            turned[waiting++] = turn;
            turned[waiting++] = turn;
            tarn_format__add_op(reversed,
                                (node.op == TARN_PRED_AND) != turn ? TARN_PRED_AND : TARN_PRED_OR);
        } else if (node.op == TARN_PRED_UNKNOWN) { /* neither it nor its NOT is ever true */
            tarn_format__add_op(reversed, TARN_PRED_FALSE);
        } else if (!is_leaf(node.op)) {
            tarn_format__add_op(reversed, (node.op == TARN_PRED_TRUE) != turn ? TARN_PRED_TRUE
                                                                              : TARN_PRED_FALSE);
        } else if (!has_column(columns, column_count, node.column)) {
            tarn_format__add_op(reversed, TARN_PRED_TRUE);
        } else {
            if (turn)
                tarn_format__add_op(reversed, TARN_PRED_NOT);
            tarn_format__add_node(reversed, node);
        }
    }
    free(turned);
}

static bool is_constant(const struct tarn_nodes *n, size_t start, size_t end,
                        enum tarn_predicate_op op)
{
    return end - start == 1 && n->nodes[start].op == op;
}

/* AND or OR over the parts [left, right) and [right, count), constants folded away. */
static void join(struct tarn_nodes *n, size_t left, size_t right, enum tarn_predicate_op op)
{
    enum tarn_predicate_op neutral = op == TARN_PRED_AND ? TARN_PRED_TRUE : TARN_PRED_FALSE;
    enum tarn_predicate_op decides = op == TARN_PRED_AND ? TARN_PRED_FALSE : TARN_PRED_TRUE;

    if (is_constant(n, left, right, decides) || is_constant(n, right, n->count, neutral)) {
        n->count = right;
    } else if (is_constant(n, left, right, neutral) || is_constant(n, right, n->count, decides)) {
        memmove(n->nodes + left, n->nodes + right, (n->count - right) * sizeof *n->nodes);
        n->count -= right - left;
    } else {
        tarn_format__add_op(n, op);
    }
}

static void fold(const struct tarn_nodes *reversed, struct tarn_nodes *out)
{
    size_t *starts = tarn_calloc(reversed->count + 1, sizeof *starts);
    size_t top = 0;

    for (size_t i = reversed->count; i-- > 0;) {
        enum tarn_predicate_op op = reversed->nodes[i].op;
        if (op == TARN_PRED_AND || op == TARN_PRED_OR) {
            top--;
            join(out, starts[top - 1], starts[top], op);
        } else {
            if (op != TARN_PRED_NOT) /* which follows its leaf */
                starts[top++] = out->count;
            tarn_format__add_node(out, reversed->nodes[i]);
        }
    }
    free(starts);
}

struct tarn_status *tarn_predicate_restrict(const struct tarn_predicate *p, const int *columns,
                                            size_t column_count, struct tarn_arena *arena,
                                            struct tarn_predicate *out)
{
    struct tarn_nodes reversed = {0}, folded = {0};

    weaken(p, columns, column_count, &reversed);
    fold(&reversed, &folded);
    if (folded.count == 0)
        tarn_format__add_op(&folded, TARN_PRED_TRUE);
    tarn_format__predicate_finish(folded.nodes, folded.count, arena, out);
    free(reversed.nodes);
    free(folded.nodes);
    return TARN_OK;
}
