/*
 * sum and product. Integers that don't fit any more are an error; a decimal that doesn't becomes null, and is rounded half
 * up to its scale (format.md 8.5).
 */
#include "merge/engine.h"

static bool is_real(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE;
}

static __int128 power_of_ten(int n)
{
    __int128 v = 1;

    while (n-- > 0)
        v *= 10;
    return v;
}

static struct tarn_value value_at(const struct tarn_merge_combiner *engine,
                                  const struct tarn_merge_column *column, struct tarn_merge_ref ref)
{
    struct tarn_value v;

    tarn_column_value(tarn_merge__source(engine, column, ref.source), column->type, ref.row, &v);
    return v;
}

static __int128 number_of(const struct tarn_type *type, const struct tarn_value *v)
{
    return type->id == TARN_TYPE_DECIMAL ? v->decimal : (__int128)v->integer;
}

/* The cell's value as one to compute with; it isn't null. */
static void load_cell(const struct tarn_merge_combiner *engine, struct tarn_merge_column *column)
{
    if (column->cell != TARN_CELL_ROW)
        return;
    struct tarn_value v = value_at(engine, column, column->at);
    column->cell = is_real(column->type) ? TARN_CELL_REAL : TARN_CELL_NUMBER;
    if (is_real(column->type))
        column->real = v.real;
    else
        column->number = number_of(column->type, &v);
}

/* --- reals --- */

/* FLOATs are computed as such: each step rounds. */
static double rounded(const struct tarn_type *type, double v)
{
    return type->id == TARN_TYPE_FLOAT ? (double)(float)v : v;
}

static void step_real(struct tarn_merge_column *column, enum tarn_merge_step step, double in)
{
    bool sum = column->rule->aggregate == TARN_AGGREGATE_SUM, back = step == TARN_STEP_RETRACT;
    double acc = column->real;

    column->real =
        rounded(column->type, sum ? (back ? acc - in : acc + in) : (back ? acc / in : acc * in));
}

/* --- integers --- */

static struct tarn_status *out_of_range(const struct tarn_merge_column *column, const char *why)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf type = {0};

    tarn_type_print(column->type, &type);
    return tarn_status_new(TARN_VALUE_INVALID, "%s of column %.*s %s %s; %s",
                           tarn_aggregate_name(column->rule->aggregate),
                           TARN_SLICE_ARG(column->name), why, tarn_buf_cstr(&type),
                           "give the column a wider type");
}

static struct tarn_status *by_zero(const struct tarn_merge_column *column)
{
    return tarn_status_new(TARN_VALUE_INVALID,
                           "product of column %.*s: a 0 can't be taken back by a delete",
                           TARN_SLICE_ARG(column->name));
}

static struct tarn_status *step_integer(struct tarn_merge_column *column, enum tarn_merge_step step,
                                        __int128 in)
{
    bool sum = column->rule->aggregate == TARN_AGGREGATE_SUM, back = step == TARN_STEP_RETRACT;
    __int128 acc = column->number,
             most = (__int128)1 << (8 * tarn_merge__type_width(column->type) - 1);

    if (!sum && back && in == 0)
        return by_zero(column);
    acc = sum ? (back ? acc - in : acc + in) : (back ? acc / in : acc * in);
    if (acc < -most || acc >= most)
        return out_of_range(column, "does not fit into");
    column->number = acc;
    return TARN_OK;
}

/* --- decimals --- */

typedef unsigned __int128 u128;

static u128 magnitude(__int128 v)
{
    return v < 0 ? -(u128)v : (u128)v;
}

/* a * b / c, rounded half up, of magnitudes: a long division bit by bit of the 256 bits of the product. false: it
 * doesn't fit into 127 bits. */
static bool multiply_divide(u128 a, u128 b, u128 c, u128 *out)
{
    u128 quotient = 0, rest = 0;
    uint64_t x[2] = {(uint64_t)a, (uint64_t)(a >> 64)}, y[2] = {(uint64_t)b, (uint64_t)(b >> 64)};
    uint64_t product[4] = {0};

    for (int i = 0; i < 2; i++) {
        u128 carry = 0;
        for (int j = 0; j < 2; j++) {
            carry += (u128)x[i] * y[j] + product[i + j];
            product[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
        product[i + 2] = (uint64_t)carry;
    }
    for (int bit = 255; bit >= 0; bit--) {
        if (quotient >> 126 != 0)
            return false;
        rest = rest << 1 | (product[bit >> 6] >> (bit & 63) & 1); /* c is below 2^127 */
        quotient <<= 1;
        if (rest >= c) {
            rest -= c;
            quotient |= 1;
        }
    }
    *out = quotient + (rest >= c - rest);
    return true;
}

static struct tarn_status *step_decimal(struct tarn_merge_column *column, enum tarn_merge_step step,
                                        __int128 in)
{
    bool sum = column->rule->aggregate == TARN_AGGREGATE_SUM, back = step == TARN_STEP_RETRACT;
    __int128 acc = column->number, limit = power_of_ten(column->type->precision);
    bool fits = true;

    if (!sum && back && in == 0)
        return by_zero(column);
    if (sum) {
        acc = back ? acc - in : acc + in; /* 38 digits twice fit */
    } else {
        u128 unit = (u128)power_of_ten(column->type->scale), size;
        bool negative = (acc < 0) != (in < 0);
        fits = back ? multiply_divide(magnitude(acc), unit, magnitude(in), &size)
                    : multiply_divide(magnitude(acc), magnitude(in), unit, &size);
        if (fits)
            acc = negative ? -(__int128)size : (__int128)size;
    }
    column->number = acc;
    if (!fits || acc <= -limit || acc >= limit)
        column->cell = TARN_CELL_NULL;
    return TARN_OK;
}

/* --- both --- */

/* A null cell: the value itself, or what takes it back. */
static struct tarn_status *begin(const struct tarn_merge_combiner *engine,
                                 struct tarn_merge_column *column, enum tarn_merge_step step,
                                 struct tarn_merge_ref in)
{
    if (step != TARN_STEP_RETRACT) {
        tarn_merge__cell_set(engine, column, in);
        return TARN_OK;
    }
    if (column->rule->aggregate == TARN_AGGREGATE_PRODUCT)
        return TARN_OK;
    struct tarn_value v = value_at(engine, column, in);
    if (is_real(column->type)) {
        column->cell = TARN_CELL_REAL;
        column->real = -v.real;
        return TARN_OK;
    }
    column->cell = TARN_CELL_NUMBER;
    column->number = 0;
    return column->type->id == TARN_TYPE_DECIMAL
               ? step_decimal(column, step, number_of(column->type, &v))
               : step_integer(column, step, number_of(column->type, &v));
}

struct tarn_status *tarn_merge__aggregate_number(struct tarn_merge_combiner *engine,
                                                 struct tarn_merge_column *column,
                                                 enum tarn_merge_step step,
                                                 struct tarn_merge_ref in)
{
    if (column->cell == TARN_CELL_NULL)
        return begin(engine, column, step, in);

    struct tarn_value v = value_at(engine, column, in);
    load_cell(engine, column);
    if (is_real(column->type)) {
        step_real(column, step, v.real);
        return TARN_OK;
    }
    return column->type->id == TARN_TYPE_DECIMAL
               ? step_decimal(column, step, number_of(column->type, &v))
               : step_integer(column, step, number_of(column->type, &v));
}
