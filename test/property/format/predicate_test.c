/*
 * Random predicates over random rows, held against brute force: comparison with a decimal literal is
 * that of the exact numbers; may_match never denies a set of rows that holds a match; restrict never
 * loses a row; LIKE agrees with the obvious recursive matcher.
 */
#include "test.h"

#include <math.h>

#include "format/predicate.h"

enum { C_INT, C_DEC, C_DOUBLE, C_TEXT, C_TS, C_BOOL, C_COUNT };

#define TYPE(type_id, ...)                                                                         \
    {                                                                                              \
        .id = TARN_TYPE_##type_id, .nullable = true, ##__VA_ARGS__                                 \
    }
static const struct tarn_type types[C_COUNT] = {[C_INT] = TYPE(INT),
                                                [C_DEC] = TYPE(DECIMAL, .precision = 5, .scale = 2),
                                                [C_DOUBLE] = TYPE(DOUBLE),
                                                [C_TEXT] =
                                                    TYPE(VARCHAR, .length = TARN_TYPE_LENGTH_MAX),
                                                [C_TS] = TYPE(TIMESTAMP, .precision = 3),
                                                [C_BOOL] = TYPE(BOOLEAN)};
static const char *const names[C_COUNT] = {"i", "f", "d", "s", "ts", "flag"};

static const struct tarn_schema *schema(void)
{
    static struct tarn_field fields[C_COUNT];
    static struct tarn_schema s = {.fields = fields, .field_count = C_COUNT};
    for (int i = 0; i < C_COUNT; i++)
        fields[i] =
            (struct tarn_field){.id = i, .name = tarn_slice_str(names[i]), .type = &types[i]};
    return &s;
}

/* ---- exact comparison */

TARN_TEST(predicate_property, decimals_compare_exactly)
{
    static const char *const ops[] = {"<", "<=", "=", "<>", ">=", ">"};

    for (int round = 0; round < tarn_test_rounds(5000); round++) {
        bool decimal = tarn_test_random_one_in(t, 2);
        int column = decimal ? C_DEC : C_INT;
        int64_t unit = decimal ? 10 : 1000; /* literals have three digits behind the point */
        int64_t value = tarn_test_random_between(t, -200, 200);
        int64_t literal = value * unit + tarn_test_random_between(t, -25, 25);
        size_t op = tarn_test_random_below(t, TARN_COUNT_OF(ops));
        int64_t scaled = value * unit;
        bool want = op == 0   ? scaled < literal
                    : op == 1 ? scaled <= literal
                    : op == 2 ? scaled == literal
                    : op == 3 ? scaled != literal
                    : op == 4 ? scaled >= literal
                              : scaled > literal;
        struct tarn_value row[C_COUNT] = {{.is_null = true}};
        struct tarn_predicate p;
        char *text =
            tarn_arena_printf(t->arena, "%s %s %s%" PRId64 ".%03" PRId64, names[column], ops[op],
                              literal < 0 ? "-" : "", (literal < 0 ? -literal : literal) / 1000,
                              (literal < 0 ? -literal : literal) % 1000);

        if (decimal)
            row[C_DEC] = (struct tarn_value){.decimal = value};
        else
            row[C_INT] = (struct tarn_value){.integer = value};
        expect_ok(tarn_predicate_parse(tarn_slice_str(text), schema(), t->arena, &p));
        if (tarn_predicate_eval(&p, schema(), row) != (want ? TARN_TRUE : TARN_FALSE))
            expect_unreachable("%" PRId64 " of scale %d: %s", value, decimal ? 2 : 0, text);
    }
}

/* ---- random expressions */

static const char *random_literal(struct tarn_test *t, int column)
{
    int64_t n = tarn_test_random_between(t, -6, 6);

    if (tarn_test_random_one_in(t, 12))
        return "NULL";
    switch (column) {
    case C_INT:
        return tarn_test_random_one_in(t, 3)
                   ? tarn_arena_printf(t->arena, "%" PRId64 ".5", n)
                   : tarn_arena_printf(t->arena, "%s%" PRId64, "",
                                       tarn_test_random_one_in(t, 20) ? n * 1000000000 : n);
    case C_DEC:
        return tarn_arena_printf(t->arena, "%" PRId64 ".%02d%s", n,
                                 (int)tarn_test_random_below(t, 3),
                                 tarn_test_random_one_in(t, 2) ? "5" : "");
    case C_DOUBLE:
        return tarn_test_random_one_in(t, 8) ? "'NaN'"
                                             : tarn_arena_printf(t->arena, "%" PRId64 ".%d", n,
                                                                 (int)tarn_test_random_below(t, 3));
    case C_TEXT:
        return tarn_arena_printf(t->arena, "'%.*s'", (int)tarn_test_random_below(t, 4),
                                 &"abbabaab"[tarn_test_random_below(t, 5)]);
    case C_TS:
        return tarn_arena_printf(t->arena, "'1970-01-01 00:00:00.%03d%s'", (int)(n + 6),
                                 tarn_test_random_one_in(t, 2) ? "5" : "");
    default:
        return n < 0 ? "TRUE" : "FALSE";
    }
}

static const char *random_leaf(struct tarn_test *t)
{
    static const char *const ops[] = {"<", "<=", "=", "<>", ">=", ">", "<=>"};
    int c = (int)tarn_test_random_below(t, C_COUNT);
    const char *not = tarn_test_random_one_in(t, 2) ? "" : " NOT";

    switch (tarn_test_random_below(t, 6)) {
    case 0:
        return tarn_arena_printf(t->arena, "%s IS%s NULL", names[c], not );
    case 1:
        return tarn_arena_printf(t->arena, "%s%s IN (%s, %s)", names[c], not, random_literal(t, c),
                                 random_literal(t, c));
    case 2:
        return tarn_arena_printf(t->arena, "%s%s BETWEEN %s AND %s", names[c], not,
                                 random_literal(t, c), random_literal(t, c));
    case 3:
        return tarn_arena_printf(
            t->arena, "s%s LIKE '%s%s%s'", not, tarn_test_random_one_in(t, 3) ? "%" : "a",
            tarn_test_random_one_in(t, 2) ? "b" : "_", tarn_test_random_one_in(t, 2) ? "%" : "");
    default:
        return tarn_arena_printf(t->arena, "%s %s %s", names[c],
                                 ops[tarn_test_random_below(t, TARN_COUNT_OF(ops))],
                                 random_literal(t, c));
    }
}

static const char *random_expression(struct tarn_test *t, int depth)
{
    if (depth == 0 || tarn_test_random_one_in(t, 3))
        return random_leaf(t);
    if (tarn_test_random_one_in(t, 3))
        return tarn_arena_printf(t->arena, "NOT (%s)", random_expression(t, depth - 1));
    return tarn_arena_printf(t->arena, "(%s) %s (%s)", random_expression(t, depth - 1),
                             tarn_test_random_one_in(t, 2) ? "AND" : "OR",
                             random_expression(t, depth - 1));
}

static void random_row(struct tarn_test *t, struct tarn_value *row)
{
    static const double reals[] = {-0.0, 0.0, 1.5, -2.0, NAN, 0.1, INFINITY};
    static const char *const texts[] = {"", "a", "ab", "abb", "b", "ba", "bb"};

    for (int c = 0; c < C_COUNT; c++) {
        int64_t n = tarn_test_random_between(t, -6, 6);
        row[c] = (struct tarn_value){.is_null = tarn_test_random_one_in(t, 5)};
        if (row[c].is_null)
            continue;
        if (c == C_DEC)
            row[c].decimal = n * 100 + (int64_t)tarn_test_random_below(t, 3);
        else if (c == C_DOUBLE)
            row[c].real = reals[tarn_test_random_below(t, TARN_COUNT_OF(reals))];
        else if (c == C_TEXT)
            row[c].bytes = tarn_slice_str(texts[tarn_test_random_below(t, TARN_COUNT_OF(texts))]);
        else if (c == C_TS)
            row[c].time.ms = n + 6;
        else
            row[c].integer = c == C_BOOL ? n > 0 : n;
    }
}

/* Bounds as writers make them: NaN left out, either zero kept, now and then unknown. */
static void bounds_of(struct tarn_test *t, struct tarn_value (*rows)[C_COUNT], int row_count,
                      struct tarn_bounds *bounds)
{
    for (int c = 0; c < C_COUNT; c++) {
        struct tarn_bounds b = {
            .min = {.is_null = true}, .max = {.is_null = true}, .row_count = row_count};
        for (int r = 0; r < row_count; r++) {
            const struct tarn_value *v = &rows[r][c];
            b.null_count += v->is_null;
            if (v->is_null || (c == C_DOUBLE && isnan(v->real)))
                continue;
            if (b.min.is_null || tarn_value_compare(&types[c], v, &b.min) < 0)
                b.min = *v;
            if (b.max.is_null || tarn_value_compare(&types[c], v, &b.max) > 0)
                b.max = *v;
        }
        b.known = !tarn_test_random_one_in(t, 6);
        if (c == C_DOUBLE && !b.min.is_null && b.min.real == 0)
            b.min.real = 0.0;
        if (c == C_DOUBLE && !b.max.is_null && b.max.real == 0)
            b.max.real = -0.0;
        if (tarn_test_random_one_in(t, 6))
            b.null_count = TARN_STATS_UNKNOWN;
        bounds[c] = b;
    }
}

TARN_TEST(predicate_property, may_match_and_restrict_lose_no_row)
{
    int pruned = 0;

    for (int round = 0; round < tarn_test_rounds(8000); round++) {
        const char *text = random_expression(t, 3);
        int row_count = (int)tarn_test_random_between(t, 1, 4);
        struct tarn_value rows[4][C_COUNT];
        struct tarn_bounds bounds[C_COUNT];
        struct tarn_predicate p, some;
        int columns[C_COUNT];
        size_t column_count = 0;

        for (int c = 0; c < C_COUNT; c++) {
            if (tarn_test_random_one_in(t, 2))
                columns[column_count++] = c;
        }
        expect_ok(tarn_predicate_parse(tarn_slice_str(text), schema(), t->arena, &p));
        expect_ok(tarn_predicate_restrict(&p, columns, column_count, t->arena, &some));
        for (size_t i = 0; i < some.column_count; i++) {
            bool asked = false;
            for (size_t j = 0; j < column_count; j++)
                asked = asked || columns[j] == some.columns[i];
            expect_true(asked);
        }
        for (int r = 0; r < row_count; r++)
            random_row(t, rows[r]);
        bounds_of(t, rows, row_count, bounds);
        bool may = tarn_predicate_may_match(&p, schema(), bounds);
        bool may_some = tarn_predicate_may_match(&some, schema(), bounds);
        pruned += !may;
        for (int r = 0; r < row_count; r++) {
            if (tarn_predicate_eval(&p, schema(), rows[r]) != TARN_TRUE)
                continue;
            if (!may || !may_some)
                expect_unreachable("%s: row %d passes, may_match denies it", text, r);
            if (tarn_predicate_eval(&some, schema(), rows[r]) != TARN_TRUE)
                expect_unreachable("%s: row %d passes, the restricted one denies it", text, r);
        }
    }
    expect_true(pruned > 0); /* else the test proves nothing */
}

/* ---- LIKE */

static bool slow_like(const char *t, const char *p)
{
    if (*p == '\0')
        return *t == '\0';
    if (*p == '%')
        return slow_like(t, p + 1) || (*t != '\0' && slow_like(t + 1, p));
    return *t != '\0' && (*p == '_' || *p == *t) && slow_like(t + 1, p + 1);
}

TARN_TEST(predicate_property, like_agrees_with_the_obvious)
{
    for (int round = 0; round < tarn_test_rounds(20000); round++) {
        char text[9] = {0}, pattern[7] = {0};
        size_t text_size = tarn_test_random_below(t, 9);
        size_t pattern_size = tarn_test_random_below(t, 7);

        for (size_t i = 0; i < text_size; i++)
            text[i] = "ab"[tarn_test_random_below(t, 2)];
        for (size_t i = 0; i < pattern_size; i++)
            pattern[i] = "ab%_"[tarn_test_random_below(t, 4)];
        if (tarn_like_match(tarn_slice_str(text), tarn_slice_str(pattern), 0) !=
            slow_like(text, pattern))
            expect_unreachable("'%s' LIKE '%s'", text, pattern);
    }
}
