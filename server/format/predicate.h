/*
 * predicate - a boolean expression over columns: parsed, bound to a schema, judged.
 *
 * Shape    SQL: comparison (= <> != < <= > >= <=>), IN, NOT IN, BETWEEN, LIKE (with ESCAPE), IS [NOT] NULL,
 *          AND, OR, NOT, parentheses; a column on the left, a literal on the right or the reverse. Literals:
 *          numbers, 'text', TRUE, FALSE, NULL, DATE '…', TIME '…', TIMESTAMP '…', X'hex'. Nodes are a flat
 *          list in postfix order, so nothing recurses over input (depth at most TARN_PREDICATE_NODES_MAX).
 *          Literals keep their exact value: one that doesn't fit the column's type (300 for TINYINT,
 *          111.321 for DECIMAL(5,2)) is compared exactly, never rounded.
 * Logic    three-valued: true, false, unknown. A row passes when it is true.
 * Errors   EXPRESSION_INVALID with the position; COLUMN_NOT_FOUND with the nearest name.
 * Memory   everything lies in the arena.
 */
#ifndef TARN_FORMAT_PREDICATE_H
#define TARN_FORMAT_PREDICATE_H

#include "format/stats.h"

#define TARN_PREDICATE_NODES_MAX 10000

enum tarn_predicate_op {
    TARN_PRED_TRUE, TARN_PRED_FALSE, TARN_PRED_UNKNOWN, /* constants */
    TARN_PRED_EQ, TARN_PRED_NE, TARN_PRED_LT, TARN_PRED_LE, TARN_PRED_GT, TARN_PRED_GE,
    TARN_PRED_SAFE_EQ,                                  /* <=>: null equals null */
    TARN_PRED_IN, TARN_PRED_LIKE, TARN_PRED_IS_NULL,
    TARN_PRED_NOT, TARN_PRED_AND, TARN_PRED_OR,         /* take the results before them */
};

struct tarn_predicate_node {
    enum tarn_predicate_op op;
    int column;                       /* index into the schema's columns; leaves only */
    const struct tarn_value *values;  /* literals of the column's type: 1, or IN's many (no nulls) */
    size_t value_count;
    bool list_has_null;               /* IN (…, NULL) */
    struct tarn_slice pattern; char escape; /* LIKE; escape 0: backslash */
};

struct tarn_predicate {
    const struct tarn_predicate_node *nodes;
    size_t node_count;
    const int *columns;               /* distinct columns it looks at, ascending */
    size_t column_count;
};

enum tarn_truth { TARN_FALSE = 0, TARN_TRUE = 1, TARN_UNKNOWN = 2 };

TARN_MUST struct tarn_status *tarn_predicate_parse(struct tarn_slice text,
                                                   const struct tarn_schema *schema,
                                                   struct tarn_arena *arena,
                                                   struct tarn_predicate *out);
/* values[i] is the value of schema column i; only the predicate's columns are looked at. */
enum tarn_truth tarn_predicate_eval(const struct tarn_predicate *p, const struct tarn_schema *schema,
                                    const struct tarn_value *values);

/* What is known of each schema column of a file or partition, for "can any row pass?". */
struct tarn_bounds {
    bool known;                  /* min, max below are set */
    struct tarn_value min, max;  /* inclusive; is_null: unknown bound */
    int64_t null_count;          /* or TARN_STATS_UNKNOWN */
    int64_t row_count;
};
/* False only where it is proven that no row passes. bounds[i] of schema column i. */
bool tarn_predicate_may_match(const struct tarn_predicate *p, const struct tarn_schema *schema,
                              const struct tarn_bounds *bounds);
/* The strongest predicate implied by p that looks at no column but `columns` (TRUE where nothing is):
 * for partition and key pruning. */
TARN_MUST struct tarn_status *tarn_predicate_restrict(const struct tarn_predicate *p, const int *columns,
                                                      size_t column_count, struct tarn_arena *arena,
                                                      struct tarn_predicate *out);
bool tarn_like_match(struct tarn_slice text, struct tarn_slice pattern, char escape);

#endif
