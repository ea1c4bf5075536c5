/*
 * predicate_internal - what the files that read an expression share: tokens, literals, nodes made.
 */
#ifndef TARN_FORMAT_PREDICATE_INTERNAL_H
#define TARN_FORMAT_PREDICATE_INTERNAL_H

#include "format/predicate.h"
#include "format/value_internal.h"

/* --- tokens (predicate_lex.c) --- */

enum tarn_token_kind {
    TARN_TOKEN_END,
    TARN_TOKEN_WORD,   /* bare: a keyword or a name */
    TARN_TOKEN_NAME,   /* `quoted` or "quoted" */
    TARN_TOKEN_NUMBER, /* without a sign */
    TARN_TOKEN_TEXT,   /* 'quoted' */
    TARN_TOKEN_HEX,    /* X'hex', decoded */
    TARN_TOKEN_SYMBOL, /* ( ) , + - or a comparison, one spelling each */
};
struct tarn_token {
    enum tarn_token_kind kind;
    struct tarn_slice text; /* without quotes; in the arena where it had to change */
    size_t at;              /* byte offset */
};
struct tarn_lexer {
    struct tarn_slice text;
    size_t at;
    struct tarn_arena *arena;
};
TARN_MUST struct tarn_status *tarn_format__token_next(struct tarn_lexer *lexer,
                                                      struct tarn_token *out);
bool tarn_format__token_is(const struct tarn_token *token, const char *symbol);
bool tarn_format__token_is_word(const struct tarn_token *token, const char *keyword);
/* EXPRESSION_INVALID with the position, counted from 1. */
TARN_MUST struct tarn_status *tarn_format__expression_error(size_t at, const char *format, ...)
    TARN_PRINTF(2, 3);

/* --- literals (predicate_bind.c) --- */

enum tarn_literal_kind {
    TARN_LITERAL_NULL,
    TARN_LITERAL_BOOL,
    TARN_LITERAL_NUMBER,
    TARN_LITERAL_TEXT,
    TARN_LITERAL_BYTES,
    TARN_LITERAL_DATE,
    TARN_LITERAL_TIME,
    TARN_LITERAL_TIMESTAMP,
};
struct tarn_literal {
    enum tarn_literal_kind kind;
    size_t at;
    bool boolean;
    struct tarn_number number;
    struct tarn_slice bytes; /* TEXT, BYTES */
    int64_t days;            /* DATE */
    int64_t nanos;           /* TIME */
    int64_t ms;              /* TIMESTAMP */
    int32_t ns;
};

/* Nodes under construction; the arrays are the heap's. */
struct tarn_nodes {
    struct tarn_predicate_node *nodes;
    size_t count, capacity;
};

/* Appends what `column op literal` means, in one to four nodes. */
TARN_MUST struct tarn_status *tarn_format__bind_compare(struct tarn_nodes *nodes,
                                                        struct tarn_arena *arena,
                                                        const struct tarn_schema *schema,
                                                        int column, enum tarn_predicate_op op,
                                                        const struct tarn_literal *literal);
TARN_MUST struct tarn_status *tarn_format__bind_in(struct tarn_nodes *nodes,
                                                   struct tarn_arena *arena,
                                                   const struct tarn_schema *schema, int column,
                                                   const struct tarn_literal *literals,
                                                   size_t count);
TARN_MUST struct tarn_status *tarn_format__bind_like(struct tarn_nodes *nodes,
                                                     const struct tarn_schema *schema, int column,
                                                     const struct tarn_literal *pattern,
                                                     const struct tarn_literal *escape);
/* Two literals: a constant. */
TARN_MUST struct tarn_status *tarn_format__bind_constant(struct tarn_nodes *nodes,
                                                         const struct tarn_literal *left,
                                                         enum tarn_predicate_op op,
                                                         const struct tarn_literal *right);
void tarn_format__add_node(struct tarn_nodes *nodes, struct tarn_predicate_node node);
void tarn_format__add_op(struct tarn_nodes *nodes, enum tarn_predicate_op op);

/* Results that wait at most at once where these nodes are walked. */
size_t tarn_format__predicate_depth(const struct tarn_predicate_node *nodes, size_t count);
/* Copies finished nodes into the arena and lists their columns. */
void tarn_format__predicate_finish(const struct tarn_predicate_node *nodes, size_t count,
                                   struct tarn_arena *arena, struct tarn_predicate *out);

#endif
