#include "format/type.h"

#include "format/ddl.h"

#include <limits.h>
#include <strings.h>

/* ---- making and comparing */

static struct tarn_type *new_type(struct tarn_arena *arena, enum tarn_type_id id)
{
    struct tarn_type *type = tarn_arena_calloc(arena, 1, sizeof *type);
    type->id = id;
    type->nullable = true;
    return type;
}

const struct tarn_type *tarn_type_with_nullable(const struct tarn_type *type, bool nullable,
                                                struct tarn_arena *arena)
{
    if (type->nullable == nullable)
        return type;
    struct tarn_type *copy = new_type(arena, type->id);
    *copy = *type;
    copy->nullable = nullable;
    return copy;
}

bool tarn_type_is_ordered(const struct tarn_type *type)
{
    return type->id <= TARN_TYPE_TIMESTAMP_LTZ;
}

static bool part_equal(const struct tarn_type *a, const struct tarn_type *b, bool ignore_nullable)
{
    return a == b || (a != NULL && b != NULL && tarn_type_equal(a, b, ignore_nullable));
}

bool tarn_type_equal(const struct tarn_type *a, const struct tarn_type *b, bool ignore_nullable)
{
    if (a->id != b->id || (!ignore_nullable && a->nullable != b->nullable) ||
        a->length != b->length || a->precision != b->precision || a->scale != b->scale ||
        !tarn_slice_equal(a->crs, b->crs) || !tarn_slice_equal(a->algorithm, b->algorithm) ||
        a->field_count != b->field_count || !part_equal(a->key, b->key, ignore_nullable) ||
        !part_equal(a->element, b->element, ignore_nullable))
        return false;
    for (size_t i = 0; i < a->field_count; i++) {
        const struct tarn_field *x = &a->fields[i], *y = &b->fields[i];
        if (x->id != y->id || !tarn_slice_equal(x->name, y->name) ||
            !tarn_type_equal(x->type, y->type, ignore_nullable))
            return false;
    }
    return true;
}

/* ---- the words */

struct word {
    const char *text;
    enum tarn_type_id id;
    int32_t length, precision, scale; /* what is meant without a parameter */
};

static const struct word words[] = {
    {"CHAR", TARN_TYPE_CHAR, 1, 0, 0},
    {"VARCHAR", TARN_TYPE_VARCHAR, 1, 0, 0},
    {"STRING", TARN_TYPE_VARCHAR, TARN_TYPE_LENGTH_MAX, 0, 0},
    {"BOOLEAN", TARN_TYPE_BOOLEAN, 0, 0, 0},
    {"BINARY", TARN_TYPE_BINARY, 1, 0, 0},
    {"VARBINARY", TARN_TYPE_VARBINARY, 1, 0, 0},
    {"BYTES", TARN_TYPE_VARBINARY, TARN_TYPE_LENGTH_MAX, 0, 0},
    {"DECIMAL", TARN_TYPE_DECIMAL, 0, 10, 0},
    {"NUMERIC", TARN_TYPE_DECIMAL, 0, 10, 0},
    {"DEC", TARN_TYPE_DECIMAL, 0, 10, 0},
    {"TINYINT", TARN_TYPE_TINYINT, 0, 0, 0},
    {"SMALLINT", TARN_TYPE_SMALLINT, 0, 0, 0},
    {"INT", TARN_TYPE_INT, 0, 0, 0},
    {"INTEGER", TARN_TYPE_INT, 0, 0, 0},
    {"BIGINT", TARN_TYPE_BIGINT, 0, 0, 0},
    {"FLOAT", TARN_TYPE_FLOAT, 0, 0, 0},
    {"DOUBLE", TARN_TYPE_DOUBLE, 0, 0, 0},
    {"DATE", TARN_TYPE_DATE, 0, 0, 0},
    {"TIME", TARN_TYPE_TIME, 0, 0, 0},
    {"TIMESTAMP", TARN_TYPE_TIMESTAMP, 0, 6, 0},
    {"TIMESTAMP_LTZ", TARN_TYPE_TIMESTAMP_LTZ, 0, 6, 0},
    {"VARIANT", TARN_TYPE_VARIANT, 0, 0, 0},
    {"BLOB", TARN_TYPE_BLOB, 0, 0, 0},
    {"GEOMETRY", TARN_TYPE_GEOMETRY, 0, 0, 0},
    {"GEOGRAPHY", TARN_TYPE_GEOGRAPHY, 0, 0, 0},
    {"ARRAY", TARN_TYPE_ARRAY, 0, 0, 0},
    {"MULTISET", TARN_TYPE_MULTISET, 0, 0, 0},
    {"MAP", TARN_TYPE_MAP, 0, 0, 0},
    {"ROW", TARN_TYPE_ROW, 0, 0, 0},
    {"VECTOR", TARN_TYPE_VECTOR, 0, 0, 0},
};

static const struct word *find_word(struct tarn_slice text)
{
    for (size_t i = 0; i < TARN_COUNT_OF(words); i++)
        if (strlen(words[i].text) == text.size &&
            strncasecmp(words[i].text, (const char *)text.data, text.size) == 0)
            return &words[i];
    return NULL;
}

/* The first spelling of an id in the table is the one that is written. */
static const char *word_of(enum tarn_type_id id)
{
    for (size_t i = 0; i < TARN_COUNT_OF(words); i++)
        if (words[i].id == id)
            return words[i].text;
    return "?";
}

/* ---- the scanner */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '$' || c >= 0x80;
}

static void skip_blanks(struct tarn_format__scanner *s)
{
    while (s->at < s->text.size && is_blank(s->text.data[s->at]))
        s->at++;
}

struct tarn_status *tarn_format__scan_error(const struct tarn_format__scanner *s,
                                            const char *expected)
{
    size_t left = s->text.size - s->at;
    if (left == 0)
        return tarn_status_new(s->reason, "\"%.*s\" ends where %s is expected",
                               (int)TARN_MIN(s->text.size, (size_t)200), (const char *)s->text.data,
                               expected);
    return tarn_status_new(s->reason, "expected %s at position %zu, found \"%.*s\"", expected,
                           s->at + 1, (int)TARN_MIN(left, (size_t)40),
                           (const char *)s->text.data + s->at);
}

bool tarn_format__scan_end(struct tarn_format__scanner *s)
{
    skip_blanks(s);
    return s->at == s->text.size;
}

bool tarn_format__scan_char(struct tarn_format__scanner *s, char c)
{
    skip_blanks(s);
    if (s->at == s->text.size || s->text.data[s->at] != (uint8_t)c)
        return false;
    s->at++;
    return true;
}

/* The bare word that is next, without taking it. */
static struct tarn_slice peek_word(struct tarn_format__scanner *s)
{
    skip_blanks(s);
    size_t end = s->at;
    while (end < s->text.size && is_word(s->text.data[end]))
        end++;
    return tarn_slice_of(s->text.data + s->at, end - s->at);
}

bool tarn_format__scan_keyword(struct tarn_format__scanner *s, const char *word)
{
    struct tarn_slice next = peek_word(s);
    if (next.size != strlen(word) || strncasecmp((const char *)next.data, word, next.size) != 0)
        return false;
    s->at += next.size;
    return true;
}

/* Text between two `quote`s, which is doubled where it is meant; s->at is behind the first. */
static struct tarn_status *scan_quoted(struct tarn_format__scanner *s, char quote,
                                       struct tarn_slice *out)
{
    const uint8_t *text = s->text.data;
    size_t end = s->at;
    while (end < s->text.size && (text[end] != (uint8_t)quote ||
                                  (end + 1 < s->text.size && text[end + 1] == (uint8_t)quote)))
        end += text[end] == (uint8_t)quote ? 2 : 1;
    if (end >= s->text.size)
        return tarn_format__scan_error(s, quote == '`' ? "a closing `" : "a closing '");
    uint8_t *copy = tarn_arena_alloc(s->arena, end - s->at + 1);
    size_t size = 0;
    for (size_t i = s->at; i < end; i += text[i] == (uint8_t)quote ? 2 : 1)
        copy[size++] = text[i];
    copy[size] = 0;
    s->at = end + 1;
    *out = tarn_slice_of(copy, size);
    return TARN_OK;
}

struct tarn_status *tarn_format__scan_name(struct tarn_format__scanner *s, struct tarn_slice *out)
{
    if (tarn_format__scan_char(s, '`'))
        return scan_quoted(s, '`', out);
    struct tarn_slice word = peek_word(s);
    if (word.size == 0)
        return tarn_format__scan_error(s, "a name");
    s->at += word.size;
    *out = tarn_arena_copy(s->arena, word);
    return TARN_OK;
}

struct tarn_status *tarn_format__scan_string(struct tarn_format__scanner *s, bool *found,
                                             struct tarn_slice *out)
{
    *found = tarn_format__scan_char(s, '\'');
    return *found ? scan_quoted(s, '\'', out) : TARN_OK;
}

static struct tarn_status *scan_number(struct tarn_format__scanner *s, int64_t min, int64_t max,
                                       const char *what, int32_t *out)
{
    struct tarn_slice word = peek_word(s);
    int64_t n = 0;
    bool fine = word.size > 0 && word.size <= 10;
    for (size_t i = 0; fine && i < word.size; i++) {
        fine = word.data[i] >= '0' && word.data[i] <= '9';
        n = n * 10 + (word.data[i] - '0');
    }
    if (!fine)
        return tarn_format__scan_error(s, what);
    if (n < min || n > max)
        return tarn_status_new(s->reason, "%s must be between %lld and %lld, not %lld", what,
                               (long long)min, (long long)max, (long long)n);
    s->at += word.size;
    *out = (int32_t)n;
    return TARN_OK;
}

static struct tarn_status *scan_close(struct tarn_format__scanner *s, char c, const char *what)
{
    return tarn_format__scan_char(s, c) ? TARN_OK : tarn_format__scan_error(s, what);
}

/* ---- types as text */

static struct tarn_status *scan_length(struct tarn_format__scanner *s, struct tarn_type *type)
{
    if (!tarn_format__scan_char(s, '('))
        return TARN_OK;
    TARN_TRY(scan_number(s, 1, TARN_TYPE_LENGTH_MAX, "the length", &type->length));
    return scan_close(s, ')', "\")\"");
}

static struct tarn_status *scan_decimal(struct tarn_format__scanner *s, struct tarn_type *type)
{
    if (!tarn_format__scan_char(s, '('))
        return TARN_OK;
    TARN_TRY(scan_number(s, 1, 38, "the precision", &type->precision));
    if (tarn_format__scan_char(s, ','))
        TARN_TRY(scan_number(s, 0, type->precision, "the scale", &type->scale));
    return scan_close(s, ')', "\")\"");
}

static struct tarn_status *scan_time(struct tarn_format__scanner *s, struct tarn_type *type)
{
    if (tarn_format__scan_char(s, '(')) {
        TARN_TRY(scan_number(s, 0, 9, "the precision", &type->precision));
        TARN_TRY(scan_close(s, ')', "\")\""));
    }
    bool with = tarn_format__scan_keyword(s, "WITH");
    if (!with && !tarn_format__scan_keyword(s, "WITHOUT"))
        return TARN_OK;
    if (with && (type->id != TARN_TYPE_TIMESTAMP || !tarn_format__scan_keyword(s, "LOCAL")))
        return tarn_format__scan_error(s, "LOCAL TIME ZONE after TIMESTAMP WITH");
    if (with)
        type->id = TARN_TYPE_TIMESTAMP_LTZ;
    if (!tarn_format__scan_keyword(s, "TIME") || !tarn_format__scan_keyword(s, "ZONE"))
        return tarn_format__scan_error(s, "TIME ZONE");
    return TARN_OK;
}

/* (crs[, algorithm]): taken as written, for we only pass it on. */
static struct tarn_status *scan_place(struct tarn_format__scanner *s, struct tarn_type *type)
{
    if (!tarn_format__scan_char(s, '('))
        return TARN_OK;
    struct tarn_slice *parts[2] = {&type->crs, &type->algorithm};
    size_t part_count = type->id == TARN_TYPE_GEOGRAPHY ? 2 : 1;
    for (size_t i = 0; i < part_count; i++) {
        skip_blanks(s);
        size_t start = s->at;
        while (s->at < s->text.size && s->text.data[s->at] != ',' && s->text.data[s->at] != ')')
            s->at++;
        size_t end = s->at;
        while (end > start && is_blank(s->text.data[end - 1]))
            end--;
        if (end == start)
            return tarn_format__scan_error(s, "a reference system");
        *parts[i] = tarn_arena_copy(s->arena, tarn_slice_of(s->text.data + start, end - start));
        if (i + 1 == part_count || !tarn_format__scan_char(s, ','))
            break;
    }
    return scan_close(s, ')', "\")\"");
}

struct tarn_status *tarn_format__scan_field(struct tarn_format__scanner *s, int depth,
                                            struct tarn_field *out)
{
    bool found = false;
    *out = (struct tarn_field){0};
    TARN_TRY(tarn_format__scan_name(s, &out->name));
    TARN_TRY(tarn_format__scan_type(s, depth, &out->type));
    for (;;) {
        bool comment = tarn_format__scan_keyword(s, "COMMENT");
        bool fallback = !comment && tarn_format__scan_keyword(s, "DEFAULT");
        if (!comment && !fallback)
            return TARN_OK;
        TARN_TRY(
            tarn_format__scan_string(s, &found, comment ? &out->description : &out->default_value));
        if (!found)
            return tarn_format__scan_error(s, "text in quotes");
    }
}

static struct tarn_status *scan_row(struct tarn_format__scanner *s, int depth,
                                    struct tarn_type *type)
{
    char open = tarn_format__scan_char(s, '<') ? '<' : '(';
    if (open == '(' && !tarn_format__scan_char(s, '('))
        return tarn_format__scan_error(s, "\"<\"");
    TARN_OWN(tarn_free_drop) struct tarn_field *fields = NULL;
    size_t count = 0, capacity = 0;
    do {
        if (count == TARN_COLUMNS_MAX)
            return tarn_status_new(s->reason, "a ROW has more than %d fields", TARN_COLUMNS_MAX);
        TARN_GROW(fields, count, capacity);
        TARN_TRY(tarn_format__scan_field(s, depth + 1, &fields[count]));
        count++;
    } while (tarn_format__scan_char(s, ','));
    type->fields = (const struct tarn_field *)(const void *)tarn_arena_copy(
                       s->arena, tarn_slice_of(fields, count * sizeof *fields))
                       .data;
    type->field_count = count;
    return scan_close(s, open == '<' ? '>' : ')', open == '<' ? "\">\"" : "\")\"");
}

static struct tarn_status *scan_nested(struct tarn_format__scanner *s, int depth,
                                       struct tarn_type *type)
{
    if (type->id == TARN_TYPE_ROW)
        return scan_row(s, depth, type);
    TARN_TRY(scan_close(s, '<', "\"<\""));
    if (type->id == TARN_TYPE_MAP) {
        TARN_TRY(tarn_format__scan_type(s, depth + 1, &type->key));
        TARN_TRY(scan_close(s, ',', "\",\""));
    }
    TARN_TRY(tarn_format__scan_type(s, depth + 1, &type->element));
    if (type->id == TARN_TYPE_VECTOR) {
        TARN_TRY(scan_close(s, ',', "\",\""));
        TARN_TRY(scan_number(s, 1, TARN_TYPE_LENGTH_MAX, "the length", &type->length));
    }
    return scan_close(s, '>', "\">\"");
}

static struct tarn_status *scan_parameters(struct tarn_format__scanner *s, int depth,
                                           const struct word *word, struct tarn_type *type)
{
    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        return word->length == 1 ? scan_length(s, type) : TARN_OK; /* STRING(3) isn't one */
    case TARN_TYPE_DECIMAL:
        return scan_decimal(s, type);
    case TARN_TYPE_DOUBLE:
        (void)tarn_format__scan_keyword(s, "PRECISION");
        return TARN_OK;
    case TARN_TYPE_TIME:
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return scan_time(s, type);
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY:
        return scan_place(s, type);
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_MULTISET:
    case TARN_TYPE_MAP:
    case TARN_TYPE_ROW:
    case TARN_TYPE_VECTOR:
        return scan_nested(s, depth, type);
    default:
        return TARN_OK;
    }
}

struct tarn_status *tarn_format__scan_type(struct tarn_format__scanner *s, int depth,
                                           const struct tarn_type **out)
{
    if (depth >= TARN_TYPE_DEPTH_MAX)
        return tarn_status_new(s->reason, "a type is nested more than %d deep",
                               TARN_TYPE_DEPTH_MAX);
    struct tarn_slice text = peek_word(s);
    const struct word *word = find_word(text);
    if (word == NULL)
        return tarn_format__scan_error(s, "a type");
    s->at += text.size;
    struct tarn_type *type = new_type(s->arena, word->id);
    type->length = word->length;
    type->precision = word->precision;
    TARN_TRY(scan_parameters(s, depth, word, type));
    if (tarn_format__scan_keyword(s, "NOT")) {
        if (!tarn_format__scan_keyword(s, "NULL"))
            return tarn_format__scan_error(s, "NULL");
        type->nullable = false;
    } else {
        (void)tarn_format__scan_keyword(s, "NULL");
    }
    *out = type;
    return TARN_OK;
}

static struct tarn_status *parse_whole(struct tarn_slice text, enum tarn_reason reason,
                                       struct tarn_arena *arena, const struct tarn_type **out)
{
    struct tarn_format__scanner s = {.text = text, .reason = reason, .arena = arena};
    const struct tarn_type *type = NULL;
    TARN_TRY(tarn_format__scan_type(&s, 0, &type));
    if (!tarn_format__scan_end(&s))
        return tarn_format__scan_error(&s, "the end of the type");
    *out = type;
    return TARN_OK;
}

struct tarn_status *tarn_type_parse(struct tarn_slice text, struct tarn_arena *arena,
                                    const struct tarn_type **out)
{
    return parse_whole(text, TARN_SCHEMA_INVALID, arena, out);
}

static void print_atomic(const struct tarn_type *t, struct tarn_buf *out)
{
    bool text = t->id == TARN_TYPE_CHAR || t->id == TARN_TYPE_VARCHAR;
    if (t->id == TARN_TYPE_VARCHAR && t->length == TARN_TYPE_LENGTH_MAX)
        tarn_buf_add_str(out, "STRING");
    else if (t->id == TARN_TYPE_VARBINARY && t->length == TARN_TYPE_LENGTH_MAX)
        tarn_buf_add_str(out, "BYTES");
    else if (text || t->id == TARN_TYPE_BINARY || t->id == TARN_TYPE_VARBINARY)
        tarn_buf_printf(out, "%s(%d)", word_of(t->id), t->length);
    else if (t->id == TARN_TYPE_DECIMAL)
        tarn_buf_printf(out, "DECIMAL(%d, %d)", t->precision, t->scale);
    else if (t->id == TARN_TYPE_TIME || t->id == TARN_TYPE_TIMESTAMP)
        tarn_buf_printf(out, "%s(%d)", word_of(t->id), t->precision);
    else if (t->id == TARN_TYPE_TIMESTAMP_LTZ)
        tarn_buf_printf(out, "TIMESTAMP(%d) WITH LOCAL TIME ZONE", t->precision);
    else
        tarn_buf_add_str(out, word_of(t->id));
    if (t->crs.data != NULL) {
        tarn_buf_printf(out, "(%.*s", TARN_SLICE_ARG(t->crs));
        if (t->algorithm.data != NULL)
            tarn_buf_printf(out, ", %.*s", TARN_SLICE_ARG(t->algorithm));
        tarn_buf_add_byte(out, ')');
    }
}

static void print_quoted(struct tarn_slice name, struct tarn_buf *out)
{
    tarn_buf_add_byte(out, '`');
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '`')
            tarn_buf_add_byte(out, '`');
        tarn_buf_add_byte(out, name.data[i]);
    }
    tarn_buf_add_byte(out, '`');
}

void tarn_type_print(const struct tarn_type *t, struct tarn_buf *out)
{
    if (t->id < TARN_TYPE_ARRAY) {
        print_atomic(t, out);
    } else {
        tarn_buf_printf(out, "%s<", word_of(t->id));
        if (t->id == TARN_TYPE_MAP) {
            tarn_type_print(t->key, out);
            tarn_buf_add_str(out, ", ");
        }
        if (t->element != NULL)
            tarn_type_print(t->element, out);
        if (t->id == TARN_TYPE_VECTOR)
            tarn_buf_printf(out, ", %d", t->length);
        for (size_t i = 0; i < t->field_count; i++) {
            if (i > 0)
                tarn_buf_add_str(out, ", ");
            print_quoted(t->fields[i].name, out);
            tarn_buf_add_byte(out, ' ');
            tarn_type_print(t->fields[i].type, out);
        }
        tarn_buf_add_byte(out, '>');
    }
    if (!t->nullable)
        tarn_buf_add_str(out, " NOT NULL");
}
