/*
 * predicate - a boolean expression over columns: parsed, bound to a schema, judged.
 *
 * Shape    SQL: comparison (= <> != < <= > >= <=>), IN, NOT IN, BETWEEN, LIKE (with ESCAPE), IS [NOT] NULL,
 *          AND, OR, NOT, parentheses; a column on the left, a literal on the right or the reverse. Literals:
 *          numbers, 'text', TRUE, FALSE, NULL, DATE '…', TIME '…', TIMESTAMP '…', X'hex'. Nodes are a flat
 *          list in postfix order, so nothing recurses over input (depth at most TARN_PREDICATE_NODES_MAX).
 *          Literals keep their exact value: one that doesn't fit the column's type (300 for TINYINT,
 *          111.321 for DECIMAL(5,2)) is compared exactly, never rounded: the comparison is rewritten to
 *          one with a value of the type, or to IN of an empty list, which is false but for null. A FLOAT
 *          or DOUBLE meets a literal as a number that is its correctly rounded text: 0.1 is the double
 *          it names, 9007199254740993 none. Zero is both zeros; NaN is greater than all (as 7.6).
 *          'text' against DATE, TIME, TIMESTAMP reads as such, against FLOAT, DOUBLE only 'NaN' and
 *          'Infinity'; a number never meets a text. A BOOLEAN column alone is a condition.
 * Logic    three-valued: true, false, unknown. A row passes when it is true.
 * Errors   EXPRESSION_INVALID with the position; COLUMN_NOT_FOUND with the nearest name.
 * Memory   everything lies in the arena.
 */
#ifndef TARN_FORMAT_PREDICATE_H
#define TARN_FORMAT_PREDICATE_H

#include "format/stats.h"

#define TARN_PREDICATE_NODES_MAX 10000
#define TARN_PREDICATE_DEPTH_MAX 1000 /* results on the stack of whoever walks the nodes */
#define TARN_PREDICATE_TEXT_MAX (1u << 20)
#define TARN_PREDICATE_VALUES_MAX 100000 /* in all IN lists together */

enum tarn_predicate_op {
    TARN_PRED_TRUE,
    TARN_PRED_FALSE,
    TARN_PRED_UNKNOWN, /* constants */
    TARN_PRED_EQ,
    TARN_PRED_NE,
    TARN_PRED_LT,
    TARN_PRED_LE,
    TARN_PRED_GT,
    TARN_PRED_GE,
    TARN_PRED_SAFE_EQ, /* <=>: null equals null */
    TARN_PRED_IN,
    TARN_PRED_LIKE,
    TARN_PRED_IS_NULL,
    TARN_PRED_NOT,
    TARN_PRED_AND,
    TARN_PRED_OR, /* take the results before them */
};

struct tarn_predicate_node {
    enum tarn_predicate_op op;
    int column;                      /* index into the schema's columns; leaves only */
    const struct tarn_value *values; /* literals of the column's type: 1, or IN's many: ascending,
                                         distinct, not null, perhaps none (false; null: unknown) */
    size_t value_count;
    bool list_has_null; /* IN (…, NULL) */
    struct tarn_slice pattern;
    char escape; /* LIKE; escape 0: backslash */
};

struct tarn_predicate { /* no nodes at all: true */
    const struct tarn_predicate_node *nodes;
    size_t node_count;
    const int *columns; /* distinct columns it looks at, ascending */
    size_t column_count;
};

enum tarn_truth { TARN_FALSE = 0, TARN_TRUE = 1, TARN_UNKNOWN = 2 };

TARN_MUST struct tarn_status *tarn_predicate_parse(struct tarn_slice text,
                                                   const struct tarn_schema *schema,
                                                   struct tarn_arena *arena,
                                                   struct tarn_predicate *out);
/* Both must hold: a reader's filter and what a policy lets them see. Texts are never glued together for
 * that: parentheses in one would get out of it. */
TARN_MUST struct tarn_status *tarn_predicate_and(const struct tarn_predicate *a,
                                                 const struct tarn_predicate *b,
                                                 struct tarn_arena *arena,
                                                 struct tarn_predicate *out);
/* values[i] is the value of schema column i; only the predicate's columns are looked at. */
enum tarn_truth tarn_predicate_eval(const struct tarn_predicate *p,
                                    const struct tarn_schema *schema,
                                    const struct tarn_value *values);

/* One leaf on one value of its column, of `type`. */
enum tarn_truth tarn_predicate_leaf(const struct tarn_predicate_node *leaf,
                                    const struct tarn_type *type, const struct tarn_value *value);

/* What is known of each schema column of a file or partition, for "can any row pass?". */
struct tarn_bounds {
    bool known;                 /* min, max below are set */
    struct tarn_value min, max; /* inclusive; is_null: unknown bound */
    int64_t null_count;         /* or TARN_STATS_UNKNOWN */
    int64_t row_count;          /* 0: not known, and the null count proves nothing */
};
/* False only where it is proven that no row passes. bounds[i] of schema column i. */
bool tarn_predicate_may_match(const struct tarn_predicate *p, const struct tarn_schema *schema,
                              const struct tarn_bounds *bounds);
/* The strongest predicate implied by p that looks at no column but `columns` (TRUE where nothing is):
 * for partition and key pruning. */
TARN_MUST struct tarn_status *tarn_predicate_restrict(const struct tarn_predicate *p,
                                                      const int *columns, size_t column_count,
                                                      struct tarn_arena *arena,
                                                      struct tarn_predicate *out);
/* % any text, _ one character (code point); escape 0: backslash. */
bool tarn_like_match(struct tarn_slice text, struct tarn_slice pattern, char escape);

#endif
