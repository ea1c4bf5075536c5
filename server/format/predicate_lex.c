/* An expression cut into tokens. */
#include "format/predicate_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

struct tarn_status *tarn_format__expression_error(size_t at, const char *format, ...)
{
    char message[512];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return tarn_status_new(TARN_EXPRESSION_INVALID, "position %zu: %s", at + 1, message);
}

bool tarn_format__token_is(const struct tarn_token *token, const char *symbol)
{
    return token->kind == TARN_TOKEN_SYMBOL && tarn_slice_is(token->text, symbol);
}

bool tarn_format__token_is_word(const struct tarn_token *token, const char *keyword)
{
    return token->kind == TARN_TOKEN_WORD && token->text.size == strlen(keyword) &&
           strncasecmp((const char *)token->text.data, keyword, token->text.size) == 0;
}

static bool is_word_start(uint8_t c)
{
    return isalpha(c) || c == '_' || c >= 0x80;
}

static bool is_word_part(uint8_t c)
{
    return is_word_start(c) || isdigit(c) || c == '$';
}

static uint8_t peek(const struct tarn_lexer *lexer, size_t ahead)
{
    return lexer->at + ahead < lexer->text.size ? lexer->text.data[lexer->at + ahead] : 0;
}

/* From the opening quote; a doubled quote stands for itself. */
static struct tarn_status *take_quoted(struct tarn_lexer *lexer, struct tarn_slice *out)
{
    size_t start = lexer->at;
    uint8_t quote = lexer->text.data[lexer->at++];
    bool doubled = false;

    for (;; lexer->at++) {
        if (lexer->at == lexer->text.size)
            return tarn_format__expression_error(start, "the quote %c is not closed", quote);
        if (lexer->text.data[lexer->at] != quote)
            continue;
        if (peek(lexer, 1) != quote)
            break;
        doubled = true;
        lexer->at++;
    }
    *out = tarn_slice_of(lexer->text.data + start + 1, lexer->at++ - start - 1);
    if (!doubled)
        return TARN_OK;
    uint8_t *copy = tarn_arena_alloc(lexer->arena, out->size);
    size_t size = 0;
    for (size_t i = 0; i < out->size; i++) {
        copy[size++] = out->data[i];
        if (out->data[i] == quote)
            i++;
    }
    *out = tarn_slice_of(copy, size);
    return TARN_OK;
}

static struct tarn_status *take_number(struct tarn_lexer *lexer, struct tarn_token *out)
{
    size_t start = lexer->at;

    while (isdigit(peek(lexer, 0)))
        lexer->at++;
    if (peek(lexer, 0) == '.')
        lexer->at++;
    while (isdigit(peek(lexer, 0)))
        lexer->at++;
    if ((peek(lexer, 0) | 0x20) == 'e') {
        size_t sign = peek(lexer, 1) == '+' || peek(lexer, 1) == '-';
        if (isdigit(peek(lexer, 1 + sign)))
            lexer->at += 1 + sign;
        while (isdigit(peek(lexer, 0)))
            lexer->at++;
    }
    if (is_word_part(peek(lexer, 0)) || peek(lexer, 0) == '.')
        return tarn_format__expression_error(start, "this is not a number");
    out->kind = TARN_TOKEN_NUMBER;
    out->text = tarn_slice_of(lexer->text.data + start, lexer->at - start);
    if (out->text.size > TARN_NUMBER_TEXT_MAX)
        return tarn_format__expression_error(start, "the number has more than %d characters",
                                             TARN_NUMBER_TEXT_MAX);
    return TARN_OK;
}

static struct tarn_status *take_hex(struct tarn_lexer *lexer, struct tarn_token *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    size_t start = lexer->at++;

    TARN_TRY(take_quoted(lexer, &out->text));
    TARN_OWN(tarn_status_drop) struct tarn_status *s = tarn_hex_decode(out->text, &bytes);
    if (s != NULL)
        return tarn_format__expression_error(start, "X'...' takes pairs of hexadecimal digits");
    out->kind = TARN_TOKEN_HEX;
    out->text = tarn_arena_copy(lexer->arena, tarn_buf_slice(&bytes));
    return TARN_OK;
}

static struct tarn_status *take_symbol(struct tarn_lexer *lexer, struct tarn_token *out)
{
    /* longest first; what means the same gets one spelling */
    static const struct {
        const char *text, *means;
    } symbols[] = {{"<=>", "<=>"}, {"<=", "<="}, {">=", ">="}, {"<>", "<>"}, {"!=", "<>"},
                   {"==", "="},    {"=", "="},   {"<", "<"},   {">", ">"},   {"(", "("},
                   {")", ")"},     {",", ","},   {"+", "+"},   {"-", "-"}};
    struct tarn_slice rest =
        tarn_slice_of(lexer->text.data + lexer->at, lexer->text.size - lexer->at);

    for (size_t i = 0; i < TARN_COUNT_OF(symbols); i++) {
        if (tarn_slice_starts_with(rest, tarn_slice_str(symbols[i].text))) {
            lexer->at += strlen(symbols[i].text);
            out->kind = TARN_TOKEN_SYMBOL;
            out->text = tarn_slice_str(symbols[i].means);
            return TARN_OK;
        }
    }
    if (isprint(rest.data[0]))
        return tarn_format__expression_error(lexer->at, "'%c' means nothing here", rest.data[0]);
    return tarn_format__expression_error(lexer->at, "byte 0x%02x means nothing here", rest.data[0]);
}

struct tarn_status *tarn_format__token_next(struct tarn_lexer *lexer, struct tarn_token *out)
{
    while (lexer->at < lexer->text.size && isspace(lexer->text.data[lexer->at]))
        lexer->at++;
    *out = (struct tarn_token){.kind = TARN_TOKEN_END, .at = lexer->at};
    if (lexer->at == lexer->text.size)
        return TARN_OK;
    uint8_t c = peek(lexer, 0);
    if (c == '\'') {
        out->kind = TARN_TOKEN_TEXT;
        return take_quoted(lexer, &out->text);
    }
    if (c == '`' || c == '"') {
        out->kind = TARN_TOKEN_NAME;
        return take_quoted(lexer, &out->text);
    }
    if ((c == 'x' || c == 'X') && peek(lexer, 1) == '\'')
        return take_hex(lexer, out);
    if (isdigit(c) || (c == '.' && isdigit(peek(lexer, 1))))
        return take_number(lexer, out);
    if (!is_word_start(c))
        return take_symbol(lexer, out);
    while (is_word_part(peek(lexer, 0)))
        lexer->at++;
    out->kind = TARN_TOKEN_WORD;
    out->text = tarn_slice_of(lexer->text.data + out->at, lexer->at - out->at);
    return TARN_OK;
}
