/*
 * Literals bound to columns. A literal becomes a value of the column's type, or, where the type has no
 * such value, its place among them; the comparison is rewritten so that its answer stays exact:
 *
 *   the literal lies       =, IN        <>            < <=        > >=         <=>
 *   on a value             as it is
 *   above value v only     never        always        <= v        > v          false
 *   below all              never        always        never       always       false
 *   above all              never        always        always      never        false
 *
 * "never" is IN of an empty list: false, and unknown for null; "always" its NOT.
 */
#include "format/predicate_internal.h"

#include <math.h>

void tarn_format__add_node(struct tarn_nodes *nodes, struct tarn_predicate_node node)
{
    TARN_GROW(nodes->nodes, nodes->count, nodes->capacity);
    nodes->nodes[nodes->count++] = node;
}

void tarn_format__add_op(struct tarn_nodes *nodes, enum tarn_predicate_op op)
{
    tarn_format__add_node(nodes, (struct tarn_predicate_node){.op = op, .column = -1});
}

static struct tarn_status *mismatch(const struct tarn_field *field, const struct tarn_literal *l)
{
    static const char *const names[] = {"NULL",  "a truth value", "a number", "a text",
                                        "bytes", "a date",        "a time",   "a timestamp"};
    TARN_OWN(tarn_buf_drop) struct tarn_buf type = {0};

    tarn_type_print(field->type, &type);
    return tarn_format__expression_error(l->at, "column %.*s is %s and is not compared with %s",
                                         TARN_SLICE_ARG(field->name), tarn_buf_cstr(&type),
                                         names[l->kind]);
}

static struct tarn_status *unreadable(const struct tarn_field *field, const struct tarn_literal *l,
                                      const char *expected)
{
    return tarn_format__expression_error(
        l->at, "column %.*s is compared with %s, not '%.*s'", TARN_SLICE_ARG(field->name), expected,
        (int)TARN_MIN(l->bytes.size, (size_t)60), (const char *)l->bytes.data);
}

/* ---- where a literal lies among the values of a type */

static struct tarn_status *fit_real(const struct tarn_field *field, const struct tarn_literal *l,
                                    enum tarn_fit *fit, struct tarn_value *out)
{
    bool negative = false;
    struct tarn_slice word = l->bytes;

    if (l->kind == TARN_LITERAL_NUMBER) {
        *fit =
            tarn_format__number_to_real(&l->number, field->type->id == TARN_TYPE_FLOAT, &out->real);
        return TARN_OK;
    }
    if (l->kind != TARN_LITERAL_TEXT)
        return mismatch(field, l);
    if (word.size > 0 && (word.data[0] == '-' || word.data[0] == '+')) {
        negative = word.data[0] == '-';
        word = tarn_slice_of(word.data + 1, word.size - 1);
    }
    *fit = TARN_FIT_EXACT;
    if (tarn_slice_is(l->bytes, "NaN"))
        out->real = NAN;
    else if (tarn_slice_is(word, "Infinity"))
        out->real = negative ? -INFINITY : INFINITY;
    else
        return mismatch(field, l);
    return TARN_OK;
}

static struct tarn_status *fit_date(const struct tarn_field *field, const struct tarn_literal *l,
                                    enum tarn_fit *fit, struct tarn_value *out)
{
    int64_t days = l->days, ms = l->ms;
    int32_t ns = l->ns;
    bool exact = true;

    if (l->kind == TARN_LITERAL_TEXT && tarn_format__scan_date(l->bytes, &days)) {
        exact = true;
    } else if (l->kind == TARN_LITERAL_TIMESTAMP ||
               (l->kind == TARN_LITERAL_TEXT && tarn_format__scan_timestamp(l->bytes, &ms, &ns))) {
        days = tarn_format__floor_div(ms, TARN_MS_PER_DAY);
        exact = tarn_format__floor_mod(ms, TARN_MS_PER_DAY) == 0 && ns == 0;
    } else if (l->kind == TARN_LITERAL_TEXT) {
        return unreadable(field, l, "a date such as 2026-01-31");
    } else if (l->kind != TARN_LITERAL_DATE) {
        return mismatch(field, l);
    }
    *fit = days < INT32_MIN   ? TARN_FIT_BELOW
           : days > INT32_MAX ? TARN_FIT_ABOVE
           : exact            ? TARN_FIT_EXACT
                              : TARN_FIT_BETWEEN;
    out->integer = days;
    return TARN_OK;
}

static struct tarn_status *fit_time(const struct tarn_field *field, const struct tarn_literal *l,
                                    enum tarn_fit *fit, struct tarn_value *out)
{
    int64_t nanos = l->nanos;

    if (l->kind == TARN_LITERAL_TEXT) {
        if (!tarn_format__scan_time(l->bytes, &nanos))
            return unreadable(field, l, "a time such as 12:00:00");
    } else if (l->kind != TARN_LITERAL_TIME) {
        return mismatch(field, l);
    }
    out->integer = nanos / 1000000;
    *fit = nanos % 1000000 == 0 ? TARN_FIT_EXACT : TARN_FIT_BETWEEN;
    return TARN_OK;
}

/* Files keep milliseconds, microseconds or nanoseconds, whichever the precision needs. */
static int32_t timestamp_unit(const struct tarn_type *type)
{
    return type->precision <= 3 ? 1000000 : type->precision <= 6 ? 1000 : 1;
}

static struct tarn_status *fit_timestamp(const struct tarn_field *field,
                                         const struct tarn_literal *l, enum tarn_fit *fit,
                                         struct tarn_value *out)
{
    int64_t ms = l->ms;
    int32_t ns = l->ns;

    if (l->kind == TARN_LITERAL_DATE) {
        ns = 0;
        if (__builtin_mul_overflow(l->days, TARN_MS_PER_DAY, &ms)) {
            *fit = l->days < 0 ? TARN_FIT_BELOW : TARN_FIT_ABOVE;
            return TARN_OK;
        }
    } else if (l->kind == TARN_LITERAL_TEXT) {
        if (!tarn_format__scan_timestamp(l->bytes, &ms, &ns))
            return unreadable(field, l, "a time such as 2026-01-31 12:00:00");
    } else if (l->kind != TARN_LITERAL_TIMESTAMP) {
        return mismatch(field, l);
    }
    int32_t rest = ns % timestamp_unit(field->type);
    out->time.ms = ms;
    out->time.ns = ns - rest;
    *fit = rest == 0 ? TARN_FIT_EXACT : TARN_FIT_BETWEEN;
    return TARN_OK;
}

static struct tarn_status *fit_number(const struct tarn_field *field, const struct tarn_literal *l,
                                      enum tarn_fit *fit, struct tarn_value *out)
{
    __int128 low, high, floor = 0;
    bool decimal = field->type->id == TARN_TYPE_DECIMAL;

    if (l->kind != TARN_LITERAL_NUMBER)
        return mismatch(field, l);
    tarn_format__type_range(field->type, &low, &high);
    *fit = tarn_format__number_to_integer(&l->number, decimal ? field->type->scale : 0, low, high,
                                          &floor);
    if (decimal)
        out->decimal = floor;
    else
        out->integer = (int64_t)floor;
    return TARN_OK;
}

static struct tarn_status *fit_literal(const struct tarn_field *field, const struct tarn_literal *l,
                                       enum tarn_fit *fit, struct tarn_value *out)
{
    *out = (struct tarn_value){.is_null = false};
    *fit = TARN_FIT_EXACT;
    switch (field->type->id) {
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_DECIMAL:
        return fit_number(field, l, fit, out);
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return fit_real(field, l, fit, out);
    case TARN_TYPE_DATE:
        return fit_date(field, l, fit, out);
    case TARN_TYPE_TIME:
        return fit_time(field, l, fit, out);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return fit_timestamp(field, l, fit, out);
    case TARN_TYPE_BOOLEAN:
        out->integer = l->boolean;
        return l->kind == TARN_LITERAL_BOOL ? TARN_OK : mismatch(field, l);
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        out->bytes = l->bytes;
        return l->kind == TARN_LITERAL_TEXT ? TARN_OK : mismatch(field, l);
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        out->bytes = l->bytes;
        return l->kind == TARN_LITERAL_BYTES ? TARN_OK : mismatch(field, l);
    default: /* without an order; IS NULL is all that can be asked */
        return mismatch(field, l);
    }
}

/* ---- nodes */

static const struct tarn_value *keep(struct tarn_arena *arena, struct tarn_value value)
{
    struct tarn_value *kept = tarn_arena_alloc(arena, sizeof *kept);
    *kept = value;
    return kept;
}

static void add_leaf(struct tarn_nodes *nodes, int column, enum tarn_predicate_op op,
                     const struct tarn_value *values, size_t count)
{
    tarn_format__add_node(nodes,
                          (struct tarn_predicate_node){
                              .op = op, .column = column, .values = values, .value_count = count});
}

static void add_never(struct tarn_nodes *nodes, int column)
{
    add_leaf(nodes, column, TARN_PRED_IN, NULL, 0);
}

static void add_always(struct tarn_nodes *nodes, int column)
{
    add_never(nodes, column);
    tarn_format__add_op(nodes, TARN_PRED_NOT);
}

/* No value of the type is the literal; `floor` is the greatest below it, NULL where none is, and
 * any_above says whether values lie above. */
static void add_off_grid(struct tarn_nodes *nodes, int column, enum tarn_predicate_op op,
                         const struct tarn_value *floor, bool any_above)
{
    switch (op) {
    case TARN_PRED_SAFE_EQ:
        tarn_format__add_op(nodes, TARN_PRED_FALSE);
        return;
    case TARN_PRED_EQ:
        add_never(nodes, column);
        return;
    case TARN_PRED_NE:
        add_always(nodes, column);
        return;
    case TARN_PRED_LT:
    case TARN_PRED_LE:
        if (floor != NULL)
            add_leaf(nodes, column, TARN_PRED_LE, floor, 1);
        else if (any_above)
            add_never(nodes, column);
        else
            add_always(nodes, column);
        return;
    default: /* GT, GE */
        if (floor != NULL)
            add_leaf(nodes, column, TARN_PRED_GT, floor, 1);
        else if (any_above)
            add_always(nodes, column);
        else
            add_never(nodes, column);
        return;
    }
}

/* SQL has one zero, our order two: -0.0 < 0.0. */
static void add_zero(struct tarn_nodes *nodes, struct tarn_arena *arena, int column,
                     enum tarn_predicate_op op)
{
    struct tarn_value *zeros = tarn_arena_calloc(arena, 2, sizeof *zeros);
    zeros[0].real = -0.0;
    zeros[1].real = 0.0;

    switch (op) {
    case TARN_PRED_LT:
    case TARN_PRED_GE:
        add_leaf(nodes, column, op, &zeros[0], 1);
        return;
    case TARN_PRED_LE:
    case TARN_PRED_GT:
        add_leaf(nodes, column, op, &zeros[1], 1);
        return;
    case TARN_PRED_SAFE_EQ:
        add_leaf(nodes, column, TARN_PRED_IS_NULL, NULL, 0);
        tarn_format__add_op(nodes, TARN_PRED_NOT);
        add_leaf(nodes, column, TARN_PRED_IN, zeros, 2);
        tarn_format__add_op(nodes, TARN_PRED_AND);
        return;
    default:
        add_leaf(nodes, column, TARN_PRED_IN, zeros, 2);
        if (op == TARN_PRED_NE)
            tarn_format__add_op(nodes, TARN_PRED_NOT);
        return;
    }
}

static bool is_real_zero(const struct tarn_type *type, const struct tarn_value *value)
{
    return (type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE) && value->real == 0;
}

struct tarn_status *tarn_format__bind_compare(struct tarn_nodes *nodes, struct tarn_arena *arena,
                                              const struct tarn_schema *schema, int column,
                                              enum tarn_predicate_op op,
                                              const struct tarn_literal *literal)
{
    const struct tarn_field *field = &schema->fields[column];
    enum tarn_fit fit;
    struct tarn_value value;

    if (literal->kind == TARN_LITERAL_NULL) {
        if (op == TARN_PRED_SAFE_EQ)
            add_leaf(nodes, column, TARN_PRED_IS_NULL, NULL, 0);
        else
            tarn_format__add_op(nodes, TARN_PRED_UNKNOWN);
        return TARN_OK;
    }
    TARN_TRY(fit_literal(field, literal, &fit, &value));
    if (fit != TARN_FIT_EXACT)
        add_off_grid(nodes, column, op, fit == TARN_FIT_BETWEEN ? keep(arena, value) : NULL,
                     fit == TARN_FIT_BELOW);
    else if (is_real_zero(field->type, &value))
        add_zero(nodes, arena, column, op);
    else
        add_leaf(nodes, column, op, keep(arena, value), 1);
    return TARN_OK;
}

static int compare_values(const void *a, const void *b, void *type)
{
    return tarn_value_compare(type, a, b);
}

struct tarn_status *tarn_format__bind_in(struct tarn_nodes *nodes, struct tarn_arena *arena,
                                         const struct tarn_schema *schema, int column,
                                         const struct tarn_literal *literals, size_t count)
{
    const struct tarn_field *field = &schema->fields[column];
    struct tarn_value *values = tarn_arena_calloc(arena, 2 * count + 1, sizeof *values);
    size_t used = 0, distinct = 0;
    bool has_null = false;

    for (size_t i = 0; i < count; i++) {
        enum tarn_fit fit;
        if (literals[i].kind == TARN_LITERAL_NULL) {
            has_null = true;
            continue;
        }
        TARN_TRY(fit_literal(field, &literals[i], &fit, &values[used]));
        if (fit != TARN_FIT_EXACT)
            continue;
        if (is_real_zero(field->type, &values[used])) {
            values[used + 1] = values[used];
            values[used++].real = -0.0;
            values[used].real = 0.0;
        }
        used++;
    }
    qsort_r(values, used, sizeof *values, compare_values, (void *)(uintptr_t)field->type);
    for (size_t i = 0; i < used; i++) {
        if (i == 0 || tarn_value_compare(field->type, &values[distinct - 1], &values[i]) != 0)
            values[distinct++] = values[i];
    }
    add_leaf(nodes, column, TARN_PRED_IN, values, distinct);
    nodes->nodes[nodes->count - 1].list_has_null = has_null;
    return TARN_OK;
}

struct tarn_status *tarn_format__bind_like(struct tarn_nodes *nodes,
                                           const struct tarn_schema *schema, int column,
                                           const struct tarn_literal *pattern,
                                           const struct tarn_literal *escape)
{
    const struct tarn_field *field = &schema->fields[column];
    uint8_t mark = '\\';
    bool escaped = false;

    if (field->type->id != TARN_TYPE_CHAR && field->type->id != TARN_TYPE_VARCHAR)
        return mismatch(field, pattern);
    if (escape != NULL) {
        if (escape->kind != TARN_LITERAL_TEXT || escape->bytes.size != 1 ||
            escape->bytes.data[0] == 0 || escape->bytes.data[0] >= 0x80)
            return tarn_format__expression_error(escape->at, "ESCAPE takes one ASCII character");
        mark = escape->bytes.data[0];
    }
    if (pattern->kind == TARN_LITERAL_NULL) {
        tarn_format__add_op(nodes, TARN_PRED_UNKNOWN);
        return TARN_OK;
    }
    if (pattern->kind != TARN_LITERAL_TEXT)
        return mismatch(field, pattern);
    for (size_t i = 0; i < pattern->bytes.size; i++)
        escaped = !escaped && pattern->bytes.data[i] == mark;
    if (escaped)
        return tarn_format__expression_error(pattern->at,
                                             "the pattern ends with its escape character");
    add_leaf(nodes, column, TARN_PRED_LIKE, NULL, 0);
    nodes->nodes[nodes->count - 1].pattern = pattern->bytes;
    nodes->nodes[nodes->count - 1].escape = (char)mark;
    return TARN_OK;
}

/* ---- constants */

static bool holds(enum tarn_predicate_op op, int c)
{
    switch (op) {
    case TARN_PRED_EQ:
    case TARN_PRED_SAFE_EQ:
        return c == 0;
    case TARN_PRED_NE:
        return c != 0;
    case TARN_PRED_LT:
        return c < 0;
    case TARN_PRED_LE:
        return c <= 0;
    case TARN_PRED_GT:
        return c > 0;
    default:
        return c >= 0;
    }
}

struct tarn_status *tarn_format__bind_constant(struct tarn_nodes *nodes,
                                               const struct tarn_literal *left,
                                               enum tarn_predicate_op op,
                                               const struct tarn_literal *right)
{
    bool null = left->kind == TARN_LITERAL_NULL || right->kind == TARN_LITERAL_NULL;
    int c;

    if (null && op != TARN_PRED_SAFE_EQ) {
        tarn_format__add_op(nodes, TARN_PRED_UNKNOWN);
        return TARN_OK;
    }
    if (null)
        c = left->kind != right->kind;
    else if (left->kind != right->kind)
        return tarn_format__expression_error(right->at, "the two sides are of different types");
    else if (left->kind == TARN_LITERAL_NUMBER)
        c = tarn_format__number_compare(&left->number, &right->number);
    else if (left->kind == TARN_LITERAL_BOOL)
        c = (int)left->boolean - (int)right->boolean;
    else if (left->kind == TARN_LITERAL_TEXT || left->kind == TARN_LITERAL_BYTES)
        c = tarn_slice_compare(left->bytes, right->bytes);
    else
        return tarn_format__expression_error(left->at, "expected a column on one side");
    tarn_format__add_op(nodes, holds(op, c) ? TARN_PRED_TRUE : TARN_PRED_FALSE);
    return TARN_OK;
}
