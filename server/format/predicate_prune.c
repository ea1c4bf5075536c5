/*
 * "Can any row pass?", from bounds and null counts. Each node answers two questions: can it be true for
 * a row, can it be false? NOT swaps the answers, so that pruning is as sound under it as elsewhere.
 * Whatever is not known answers yes.
 */
#include "format/predicate_internal.h"

#include <math.h>

struct chance {
    bool yes, no; /* true for some row, false for some row, as far as is known */
};

/* What is known of one column, with everything doubtful taken out. */
struct known {
    const struct tarn_type *type;
    const struct tarn_value *min, *max; /* NULL: none known */
    struct tarn_value min_storage, max_storage;
    bool some_null, some_value; /* may there be any? */
};

static bool is_real(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE;
}

/* Files leave NaN out of their bounds and keep one zero for both. */
static void doubt_reals(struct known *k)
{
    if (k->min != NULL && isnan(k->min->real))
        k->min = NULL;
    if (k->min != NULL && k->min->real == 0) {
        k->min_storage = (struct tarn_value){.real = -0.0};
        k->min = &k->min_storage;
    }
    if (k->max != NULL && isnan(k->max->real))
        k->max = NULL;
    if (k->max != NULL && k->max->real == 0) {
        k->max_storage = (struct tarn_value){.real = 0.0};
        k->max = &k->max_storage;
    }
}

static void know(const struct tarn_type *type, const struct tarn_bounds *b, struct known *k)
{
    bool ordered = type->id <= TARN_TYPE_TIMESTAMP_LTZ;

    k->type = type;
    k->min = b->known && ordered && !b->min.is_null ? &b->min : NULL;
    k->max = b->known && ordered && !b->max.is_null ? &b->max : NULL;
    if (is_real(type))
        doubt_reals(k);
    if (k->min != NULL && k->max != NULL && tarn_value_compare(type, k->min, k->max) > 0)
        k->min = k->max = NULL; /* nonsense proves nothing */
    k->some_null = b->row_count <= 0 || b->null_count != 0;
    k->some_value = b->row_count <= 0 || b->null_count < 0 || b->null_count < b->row_count;
}

/* May some value be below v, at v or above v? All are values: nulls are asked for apart. */
struct sides {
    bool below, at, above;
};

static struct sides sides_of(const struct known *k, const struct tarn_value *v)
{
    int min = k->min == NULL ? -1 : tarn_value_compare(k->type, k->min, v);
    int max = k->max == NULL ? 1 : tarn_value_compare(k->type, k->max, v);
    bool hidden_nan = is_real(k->type);
    bool v_is_nan = hidden_nan && isnan(v->real);

    return (struct sides){
        .below = k->some_value && min < 0,
        .at = k->some_value && ((min <= 0 && max >= 0) || v_is_nan),
        .above = k->some_value && (max > 0 || (hidden_nan && !v_is_nan)),
    };
}

static struct chance chance_in(const struct tarn_predicate_node *leaf, const struct known *k)
{
    bool one_value = k->min != NULL && k->max != NULL && !is_real(k->type) &&
                     tarn_value_compare(k->type, k->min, k->max) == 0;
    struct chance c = {.yes = false, .no = k->some_value && !leaf->list_has_null};

    for (size_t i = 0; i < leaf->value_count && !(c.yes && !one_value); i++) {
        struct sides s = sides_of(k, &leaf->values[i]);
        c.yes = c.yes || s.at;
        if (one_value && s.at)
            c.no = false;
    }
    return c;
}

/* The text before the first wildcard, unescaped: all that match begin with it. */
static void like_prefix(const struct tarn_predicate_node *leaf, struct tarn_buf *out)
{
    uint8_t mark = leaf->escape == 0 ? '\\' : (uint8_t)leaf->escape;

    for (size_t i = 0; i < leaf->pattern.size; i++) {
        uint8_t c = leaf->pattern.data[i];
        if (c == mark && i + 1 < leaf->pattern.size)
            c = leaf->pattern.data[++i];
        else if (c != mark && (c == '%' || c == '_'))
            return;
        tarn_buf_add_byte(out, c);
    }
}

static struct chance chance_like(const struct tarn_predicate_node *leaf, const struct known *k)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    struct chance c = {.yes = k->some_value, .no = k->some_value};

    like_prefix(leaf, &buf);
    struct tarn_slice prefix = tarn_buf_slice(&buf);
    if (k->max != NULL && tarn_slice_compare(k->max->bytes, prefix) < 0)
        c.yes = false;
    if (k->min != NULL && tarn_slice_compare(k->min->bytes, prefix) > 0 &&
        !tarn_slice_starts_with(k->min->bytes, prefix))
        c.yes = false;
    return c;
}

static struct chance chance_leaf(const struct tarn_predicate_node *leaf, const struct known *k)
{
    struct sides s;

    switch (leaf->op) {
    case TARN_PRED_IS_NULL:
        return (struct chance){.yes = k->some_null, .no = k->some_value};
    case TARN_PRED_IN:
        return chance_in(leaf, k);
    case TARN_PRED_LIKE:
        return chance_like(leaf, k);
    default:
        break;
    }
    s = sides_of(k, &leaf->values[0]);
    switch (leaf->op) {
    case TARN_PRED_EQ:
        return (struct chance){.yes = s.at, .no = s.below || s.above};
    case TARN_PRED_SAFE_EQ:
        return (struct chance){.yes = s.at, .no = s.below || s.above || k->some_null};
    case TARN_PRED_NE:
        return (struct chance){.yes = s.below || s.above, .no = s.at};
    case TARN_PRED_LT:
        return (struct chance){.yes = s.below, .no = s.at || s.above};
    case TARN_PRED_LE:
        return (struct chance){.yes = s.below || s.at, .no = s.above};
    case TARN_PRED_GT:
        return (struct chance){.yes = s.above, .no = s.below || s.at};
    default: /* GE */
        return (struct chance){.yes = s.at || s.above, .no = s.below};
    }
}

bool tarn_predicate_may_match(const struct tarn_predicate *p, const struct tarn_schema *schema,
                              const struct tarn_bounds *bounds)
{
    struct chance stack[TARN_PREDICATE_DEPTH_MAX + 1];
    size_t top = 0;

    stack[0] = (struct chance){.yes = true, .no = false};
    for (size_t i = 0; i < p->node_count; i++) {
        const struct tarn_predicate_node *node = &p->nodes[i];
        struct chance *a = top >= 2 ? &stack[top - 2] : NULL;
        struct chance *b = top >= 1 ? &stack[top - 1] : NULL;
        struct known k;
        switch (node->op) {
        case TARN_PRED_TRUE:
        case TARN_PRED_FALSE:
        case TARN_PRED_UNKNOWN:
            stack[top++] = (struct chance){.yes = node->op == TARN_PRED_TRUE,
                                           .no = node->op == TARN_PRED_FALSE};
            break;
        case TARN_PRED_NOT:
            *b = (struct chance){.yes = b->no, .no = b->yes};
            break;
        case TARN_PRED_AND:
            *a = (struct chance){.yes = a->yes && b->yes, .no = a->no || b->no};
            top--;
            break;
        case TARN_PRED_OR:
            *a = (struct chance){.yes = a->yes || b->yes, .no = a->no && b->no};
            top--;
            break;
        default:
            know(schema->fields[node->column].type, &bounds[node->column], &k);
            stack[top++] = chance_leaf(node, &k);
            break;
        }
    }
    return stack[0].yes;
}
