/*
 * Expressions read. Operators wait on a stack of their own (NOT before AND before OR), so that depth
 * costs no recursion; what is complete goes out in postfix order.
 */
#include "format/predicate_internal.h"

#include <stdio.h>
#include <strings.h>

enum waiting { WAIT_PAREN, WAIT_OR, WAIT_AND, WAIT_NOT }; /* ascending by strength */

struct parser {
    struct tarn_lexer lexer;
    struct tarn_token token; /* the one being looked at */
    const struct tarn_schema *schema;
    struct tarn_arena *arena;
    struct tarn_nodes nodes;
    size_t listed_count; /* values of IN lists so far */
    struct {
        enum waiting what;
        size_t at;
    } stack[TARN_PREDICATE_DEPTH_MAX];
    size_t stack_count;
};

static void parser_drop(struct parser *p)
{
    free(p->nodes.nodes);
}

static struct tarn_status *advance(struct parser *p)
{
    return tarn_format__token_next(&p->lexer, &p->token);
}

static bool at_word(const struct parser *p, const char *word)
{
    return tarn_format__token_is_word(&p->token, word);
}

static bool at_symbol(const struct parser *p, const char *symbol)
{
    return tarn_format__token_is(&p->token, symbol);
}

static struct tarn_status *expected(const struct parser *p, const char *what)
{
    if (p->token.kind == TARN_TOKEN_END)
        return tarn_format__expression_error(p->token.at, "expected %s, found the end", what);
    return tarn_format__expression_error(p->token.at, "expected %s, found %.*s", what,
                                         (int)TARN_MIN(p->token.text.size, (size_t)60),
                                         (const char *)p->token.text.data);
}

/* Takes the word if it is next. */
static struct tarn_status *take_word(struct parser *p, const char *word, bool *taken)
{
    *taken = at_word(p, word);
    return *taken ? advance(p) : TARN_OK;
}

static struct tarn_status *need_word(struct parser *p, const char *word)
{
    return at_word(p, word) ? advance(p) : expected(p, word);
}

static struct tarn_status *need_symbol(struct parser *p, const char *symbol)
{
    return at_symbol(p, symbol) ? advance(p) : expected(p, symbol);
}

/* ---- literals */

/* DATE, TIME or TIMESTAMP before a text; KIND_NULL where the next token is none of these. */
static struct tarn_status *typed_kind(const struct parser *p, enum tarn_literal_kind *kind)
{
    static const struct {
        const char *word;
        enum tarn_literal_kind kind;
    } words[] = {{"DATE", TARN_LITERAL_DATE},
                 {"TIME", TARN_LITERAL_TIME},
                 {"TIMESTAMP", TARN_LITERAL_TIMESTAMP},
                 {"TIMESTAMP_NTZ", TARN_LITERAL_TIMESTAMP},
                 {"TIMESTAMP_LTZ", TARN_LITERAL_TIMESTAMP}};
    struct tarn_lexer ahead = p->lexer;
    struct tarn_token next;

    *kind = TARN_LITERAL_NULL;
    for (size_t i = 0; i < TARN_COUNT_OF(words); i++) {
        if (!at_word(p, words[i].word))
            continue;
        TARN_TRY(tarn_format__token_next(&ahead, &next));
        if (next.kind == TARN_TOKEN_TEXT)
            *kind = words[i].kind;
        return TARN_OK;
    }
    return TARN_OK;
}

static struct tarn_status *parse_typed(struct parser *p, struct tarn_literal *out)
{
    bool good = false;

    TARN_TRY(advance(p));
    if (out->kind == TARN_LITERAL_DATE)
        good = tarn_format__scan_date(p->token.text, &out->days);
    else if (out->kind == TARN_LITERAL_TIME)
        good = tarn_format__scan_time(p->token.text, &out->nanos);
    else
        good = tarn_format__scan_timestamp(p->token.text, &out->ms, &out->ns);
    if (!good)
        return tarn_format__expression_error(
            p->token.at, "expected %s",
            out->kind == TARN_LITERAL_DATE   ? "a date such as '2026-01-31'"
            : out->kind == TARN_LITERAL_TIME ? "a time such as '12:00:00'"
                                             : "a timestamp such as '2026-01-31 12:00:00'");
    return advance(p);
}

static struct tarn_status *parse_number(struct parser *p, struct tarn_literal *out)
{
    bool negative = at_symbol(p, "-");

    if (negative || at_symbol(p, "+"))
        TARN_TRY(advance(p));
    if (p->token.kind != TARN_TOKEN_NUMBER)
        return expected(p, "a number");
    out->kind = TARN_LITERAL_NUMBER;
    if (!tarn_format__scan_number(p->token.text, p->arena, &out->number))
        return expected(p, "a number");
    out->number.negative = negative && out->number.digit_count > 0;
    return advance(p);
}

/* *found false: no literal is next, and nothing was taken. */
static struct tarn_status *try_literal(struct parser *p, bool *found, struct tarn_literal *out)
{
    *out = (struct tarn_literal){.kind = TARN_LITERAL_NULL, .at = p->token.at};
    *found = true;
    switch (p->token.kind) {
    case TARN_TOKEN_NUMBER:
        return parse_number(p, out);
    case TARN_TOKEN_TEXT:
    case TARN_TOKEN_HEX:
        out->kind = p->token.kind == TARN_TOKEN_TEXT ? TARN_LITERAL_TEXT : TARN_LITERAL_BYTES;
        out->bytes = tarn_arena_copy(p->arena, p->token.text);
        return advance(p);
    case TARN_TOKEN_SYMBOL:
        if (at_symbol(p, "-") || at_symbol(p, "+"))
            return parse_number(p, out);
        break;
    case TARN_TOKEN_WORD:
        TARN_TRY(typed_kind(p, &out->kind));
        if (out->kind != TARN_LITERAL_NULL)
            return parse_typed(p, out);
        if (at_word(p, "NULL"))
            return advance(p);
        out->kind = TARN_LITERAL_BOOL;
        out->boolean = at_word(p, "TRUE");
        if (out->boolean || at_word(p, "FALSE"))
            return advance(p);
        break;
    default:
        break;
    }
    *found = false;
    return TARN_OK;
}

static struct tarn_status *need_literal(struct parser *p, struct tarn_literal *out)
{
    bool found;

    TARN_TRY(try_literal(p, &found, out));
    if (found)
        return TARN_OK;
    if (p->token.kind == TARN_TOKEN_WORD || p->token.kind == TARN_TOKEN_NAME)
        return tarn_format__expression_error(
            p->token.at,
            "expected a literal, found %.*s: columns are compared with literals, "
            "texts stand in '...'",
            (int)TARN_MIN(p->token.text.size, (size_t)60), (const char *)p->token.text.data);
    return expected(p, "a literal");
}

/* ---- columns */

static bool is_reserved(const struct tarn_token *token)
{
    static const char *const words[] = {"AND",  "OR", "NOT",  "IN",   "BETWEEN",
                                        "LIKE", "IS", "NULL", "TRUE", "FALSE"};
    for (size_t i = 0; i < TARN_COUNT_OF(words); i++) {
        if (tarn_format__token_is_word(token, words[i]))
            return true;
    }
    return false;
}

static struct tarn_status *no_column(const struct parser *p)
{
    struct tarn_slice name = p->token.text;
    size_t count = p->schema->field_count;
    const char **names = tarn_arena_calloc(p->arena, count + 1, sizeof *names);
    const char *nearest = NULL;

    for (size_t i = 0; i < count; i++) {
        names[i] = tarn_arena_str(p->arena, p->schema->fields[i].name);
        if (nearest == NULL && p->schema->fields[i].name.size == name.size &&
            strncasecmp(names[i], (const char *)name.data, name.size) == 0)
            nearest = names[i];
    }
    name.size = TARN_MIN(name.size, (size_t)200);
    if (nearest == NULL)
        nearest = tarn_nearest(tarn_arena_str(p->arena, name), names, count);
    return tarn_status_new(TARN_COLUMN_NOT_FOUND, "position %zu: there is no column %.*s%s%s%s",
                           p->token.at + 1, TARN_SLICE_ARG(name),
                           nearest == NULL ? "" : "; did you mean ", nearest == NULL ? "" : nearest,
                           nearest == NULL ? "" : "?");
}

static struct tarn_status *need_column(struct parser *p, int *column)
{
    bool bare = p->token.kind == TARN_TOKEN_WORD;

    if ((!bare && p->token.kind != TARN_TOKEN_NAME) || is_reserved(&p->token))
        return expected(p, "a column");
    *column = tarn_schema_find(p->schema, p->token.text);
    if (*column < 0) {
        struct tarn_lexer ahead = p->lexer;
        struct tarn_token next;
        TARN_TRY(tarn_format__token_next(&ahead, &next));
        if (bare && tarn_format__token_is(&next, "("))
            return tarn_format__expression_error(p->token.at, "functions are not supported");
        return no_column(p);
    }
    return advance(p);
}

/* ---- conditions */

static bool comparison_of(const struct parser *p, enum tarn_predicate_op *op)
{
    static const struct {
        const char *symbol;
        enum tarn_predicate_op op;
    } table[] = {{"=", TARN_PRED_EQ},       {"<>", TARN_PRED_NE}, {"<", TARN_PRED_LT},
                 {"<=", TARN_PRED_LE},      {">", TARN_PRED_GT},  {">=", TARN_PRED_GE},
                 {"<=>", TARN_PRED_SAFE_EQ}};
    for (size_t i = 0; i < TARN_COUNT_OF(table); i++) {
        if (at_symbol(p, table[i].symbol)) {
            *op = table[i].op;
            return true;
        }
    }
    return false;
}

/* 5 < a is a > 5. */
static enum tarn_predicate_op mirrored(enum tarn_predicate_op op)
{
    switch (op) {
    case TARN_PRED_LT:
        return TARN_PRED_GT;
    case TARN_PRED_LE:
        return TARN_PRED_GE;
    case TARN_PRED_GT:
        return TARN_PRED_LT;
    case TARN_PRED_GE:
        return TARN_PRED_LE;
    default:
        return op;
    }
}

static struct tarn_status *compare(struct parser *p, int column, enum tarn_predicate_op op,
                                   const struct tarn_literal *literal)
{
    return tarn_format__bind_compare(&p->nodes, p->arena, p->schema, column, op, literal);
}

static struct tarn_status *parse_literal_first(struct parser *p, const struct tarn_literal *left)
{
    struct tarn_literal right;
    enum tarn_predicate_op op;
    bool found;
    int column;

    if (!comparison_of(p, &op)) {
        if (left->kind == TARN_LITERAL_NULL)
            tarn_format__add_op(&p->nodes, TARN_PRED_UNKNOWN);
        else if (left->kind == TARN_LITERAL_BOOL)
            tarn_format__add_op(&p->nodes, left->boolean ? TARN_PRED_TRUE : TARN_PRED_FALSE);
        else
            return expected(p, "a comparison");
        return TARN_OK;
    }
    TARN_TRY(advance(p));
    TARN_TRY(try_literal(p, &found, &right));
    if (found)
        return tarn_format__bind_constant(&p->nodes, left, op, &right);
    TARN_TRY(need_column(p, &column));
    return compare(p, column, mirrored(op), left);
}

static struct tarn_status *parse_in(struct parser *p, int column)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf list = {0};
    struct tarn_literal literal;

    TARN_TRY(need_symbol(p, "("));
    for (;;) {
        TARN_TRY(need_literal(p, &literal));
        if (p->listed_count++ == TARN_PREDICATE_VALUES_MAX)
            return tarn_format__expression_error(literal.at, "more than %d values in lists",
                                                 TARN_PREDICATE_VALUES_MAX);
        tarn_buf_add(&list, &literal, sizeof literal);
        if (!at_symbol(p, ","))
            break;
        TARN_TRY(advance(p));
    }
    TARN_TRY(need_symbol(p, ")"));
    return tarn_format__bind_in(&p->nodes, p->arena, p->schema, column,
                                (const struct tarn_literal *)(const void *)list.data,
                                list.size / sizeof literal);
}

static struct tarn_status *parse_between(struct parser *p, int column)
{
    struct tarn_literal low, high;

    TARN_TRY(need_literal(p, &low));
    TARN_TRY(need_word(p, "AND"));
    TARN_TRY(need_literal(p, &high));
    TARN_TRY(compare(p, column, TARN_PRED_GE, &low));
    TARN_TRY(compare(p, column, TARN_PRED_LE, &high));
    tarn_format__add_op(&p->nodes, TARN_PRED_AND);
    return TARN_OK;
}

static struct tarn_status *parse_like(struct parser *p, int column)
{
    struct tarn_literal pattern, escape;
    bool has_escape;

    TARN_TRY(need_literal(p, &pattern));
    TARN_TRY(take_word(p, "ESCAPE", &has_escape));
    if (has_escape)
        TARN_TRY(need_literal(p, &escape));
    return tarn_format__bind_like(&p->nodes, p->schema, column, &pattern,
                                  has_escape ? &escape : NULL);
}

/* After IS: [NOT] NULL, TRUE, FALSE, DISTINCT FROM literal. */
static struct tarn_status *parse_is(struct parser *p, int column)
{
    struct tarn_literal literal;
    bool negated, distinct = false;

    TARN_TRY(take_word(p, "NOT", &negated));
    TARN_TRY(take_word(p, "DISTINCT", &distinct));
    if (distinct)
        TARN_TRY(need_word(p, "FROM"));
    else if (!at_word(p, "NULL") && !at_word(p, "TRUE") && !at_word(p, "FALSE"))
        return expected(p, "NULL");
    TARN_TRY(need_literal(p, &literal));
    TARN_TRY(compare(p, column, TARN_PRED_SAFE_EQ, &literal));
    if (negated != distinct)
        tarn_format__add_op(&p->nodes, TARN_PRED_NOT);
    return TARN_OK;
}

/* A column stands alone where it is a truth value. */
static struct tarn_status *parse_alone(struct parser *p, int column, size_t at)
{
    const struct tarn_literal yes = {.kind = TARN_LITERAL_BOOL, .at = at, .boolean = true};

    if (p->schema->fields[column].type->id != TARN_TYPE_BOOLEAN)
        return expected(p, "a comparison");
    return compare(p, column, TARN_PRED_EQ, &yes);
}

static struct tarn_status *parse_column_first(struct parser *p)
{
    struct tarn_literal literal;
    enum tarn_predicate_op op;
    size_t at = p->token.at;
    bool negated, taken;
    int column;

    TARN_TRY(need_column(p, &column));
    if (comparison_of(p, &op)) {
        TARN_TRY(advance(p));
        TARN_TRY(need_literal(p, &literal));
        return compare(p, column, op, &literal);
    }
    TARN_TRY(take_word(p, "IS", &taken));
    if (taken)
        return parse_is(p, column);
    TARN_TRY(take_word(p, "NOT", &negated));
    TARN_TRY(take_word(p, "IN", &taken));
    if (taken) {
        TARN_TRY(parse_in(p, column));
    } else if (at_word(p, "BETWEEN")) {
        TARN_TRY(advance(p));
        TARN_TRY(parse_between(p, column));
    } else if (at_word(p, "LIKE")) {
        TARN_TRY(advance(p));
        TARN_TRY(parse_like(p, column));
    } else if (negated) {
        return expected(p, "IN, BETWEEN or LIKE");
    } else {
        return parse_alone(p, column, at);
    }
    if (negated)
        tarn_format__add_op(&p->nodes, TARN_PRED_NOT);
    return TARN_OK;
}

static struct tarn_status *parse_condition(struct parser *p)
{
    struct tarn_literal literal;
    bool found;

    TARN_TRY(try_literal(p, &found, &literal));
    TARN_TRY(found ? parse_literal_first(p, &literal) : parse_column_first(p));
    if (p->nodes.count > TARN_PREDICATE_NODES_MAX)
        return tarn_format__expression_error(p->token.at, "more than %d conditions",
                                             TARN_PREDICATE_NODES_MAX);
    return TARN_OK;
}

/* ---- operators */

static struct tarn_status *push(struct parser *p, enum waiting what)
{
    if (p->stack_count == TARN_PREDICATE_DEPTH_MAX)
        return tarn_format__expression_error(p->token.at, "nested deeper than %d",
                                             TARN_PREDICATE_DEPTH_MAX);
    p->stack[p->stack_count].what = what;
    p->stack[p->stack_count++].at = p->token.at;
    return advance(p);
}

/* Puts out what waits and binds at least as strongly as `what`, down to a parenthesis. */
static void reduce(struct parser *p, enum waiting what)
{
    static const enum tarn_predicate_op ops[] = {
        [WAIT_OR] = TARN_PRED_OR, [WAIT_AND] = TARN_PRED_AND, [WAIT_NOT] = TARN_PRED_NOT};

    while (p->stack_count > 0 && p->stack[p->stack_count - 1].what != WAIT_PAREN &&
           p->stack[p->stack_count - 1].what >= what)
        tarn_format__add_op(&p->nodes, ops[p->stack[--p->stack_count].what]);
}

/* NOTs and opening parentheses, then one condition. */
static struct tarn_status *parse_operand(struct parser *p)
{
    for (;;) {
        if (at_word(p, "NOT"))
            TARN_TRY(push(p, WAIT_NOT));
        else if (at_symbol(p, "("))
            TARN_TRY(push(p, WAIT_PAREN));
        else
            return parse_condition(p);
    }
}

/* Closing parentheses, then AND or OR; *more false at the end. */
static struct tarn_status *parse_operator(struct parser *p, bool *more)
{
    *more = true;
    while (at_symbol(p, ")")) {
        reduce(p, WAIT_OR);
        if (p->stack_count == 0)
            return tarn_format__expression_error(p->token.at, "no parenthesis is open here");
        p->stack_count--;
        TARN_TRY(advance(p));
    }
    if (at_word(p, "AND") || at_word(p, "OR")) {
        enum waiting what = at_word(p, "AND") ? WAIT_AND : WAIT_OR;
        reduce(p, what);
        return push(p, what);
    }
    *more = false;
    if (p->token.kind != TARN_TOKEN_END)
        return expected(p, "AND, OR or the end");
    reduce(p, WAIT_OR);
    if (p->stack_count > 0)
        return tarn_format__expression_error(p->stack[p->stack_count - 1].at,
                                             "the parenthesis is not closed");
    return TARN_OK;
}

/* What whoever walks the nodes needs must fit its stack. */
static struct tarn_status *check_size(const struct parser *p)
{
    if (tarn_format__predicate_depth(p->nodes.nodes, p->nodes.count) > TARN_PREDICATE_DEPTH_MAX)
        return tarn_format__expression_error(0, "nested deeper than %d", TARN_PREDICATE_DEPTH_MAX);
    if (p->nodes.count > TARN_PREDICATE_NODES_MAX)
        return tarn_format__expression_error(0, "more than %d conditions",
                                             TARN_PREDICATE_NODES_MAX);
    return TARN_OK;
}

struct tarn_status *tarn_predicate_parse(struct tarn_slice text, const struct tarn_schema *schema,
                                         struct tarn_arena *arena, struct tarn_predicate *out)
{
    TARN_OWN(parser_drop) struct parser p = {
        .lexer = {.text = text, .arena = arena}, .schema = schema, .arena = arena};
    bool more = true;

    if (text.size > TARN_PREDICATE_TEXT_MAX)
        return tarn_status_new(TARN_EXPRESSION_INVALID,
                               "the expression has %zu bytes, at most %u are taken", text.size,
                               TARN_PREDICATE_TEXT_MAX);
    if (!tarn_utf8_valid(text))
        return tarn_status_new(TARN_EXPRESSION_INVALID, "the expression is not UTF-8");
    TARN_TRY(advance(&p));
    if (p.token.kind == TARN_TOKEN_END)
        return tarn_status_new(TARN_EXPRESSION_INVALID, "the expression is empty");
    while (more) {
        TARN_TRY(parse_operand(&p));
        TARN_TRY(parse_operator(&p, &more));
    }
    TARN_TRY(check_size(&p));
    tarn_format__predicate_finish(p.nodes.nodes, p.nodes.count, arena, out);
    return TARN_OK;
}
