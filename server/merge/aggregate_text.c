/*
 * listagg: texts joined by a delimiter; blank ones are left out, with distinct also those that are there already.
 */
#include "merge/engine.h"

struct tarn_slice tarn_merge__text_of(const struct tarn_merge_combiner *engine,
                                      const struct tarn_merge_column *column,
                                      struct tarn_merge_ref ref)
{
    struct tarn_value v;

    tarn_column_value(tarn_merge__source(engine, column, ref.source), column->type, ref.row, &v);
    return v.bytes;
}

/* Size of the white space that `s` begins with, as Java's Character.isWhitespace has it; 0: there is none. */
static size_t space_size(struct tarn_slice s)
{
    if ((s.data[0] >= 9 && s.data[0] <= 13) || (s.data[0] >= 28 && s.data[0] <= 32))
        return 1;
    if (s.size < 3 || s.data[0] < 0xe1 || s.data[0] > 0xe3)
        return 0;
    uint32_t c = (uint32_t)(s.data[0] & 15) << 12 | (uint32_t)(s.data[1] & 63) << 6 |
                 (uint32_t)(s.data[2] & 63);
    bool space = c == 0x1680 || (c >= 0x2000 && c <= 0x200a && c != 0x2007) || c == 0x2028 ||
                 c == 0x2029 || c == 0x205f || c == 0x3000;
    return space ? 3 : 0;
}

static bool is_blank(struct tarn_slice s)
{
    while (s.size > 0) {
        size_t n = space_size(s);
        if (n == 0)
            return false;
        s = tarn_slice_of(s.data + n, s.size - n);
    }
    return true;
}

/* The next token of `s` from *at on; false at the end. An empty delimiter splits nothing. */
static bool next_token(struct tarn_slice s, struct tarn_slice delimiter, size_t *at,
                       struct tarn_slice *out)
{
    if (*at > s.size)
        return false;
    const uint8_t *begin = s.data + *at;
    const uint8_t *found = delimiter.size == 0 || s.size == *at
                               ? NULL
                               : memmem(begin, s.size - *at, delimiter.data, delimiter.size);
    size_t size = found == NULL ? s.size - *at : (size_t)(found - begin);

    *out = tarn_slice_of(begin, size);
    *at = found == NULL ? s.size + 1 : *at + size + delimiter.size;
    return true;
}

/* Appends to `to`, which holds `there`, the tokens of `more` that are new. */
static void add_distinct(struct tarn_buf *to, struct tarn_slice there, struct tarn_slice more,
                         struct tarn_slice delimiter)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    struct tarn_slice token;
    size_t at = 0;

    while (next_token(there, delimiter, &at, &token))
        tarn_map_set(seen, token, seen);
    at = 0;
    while (next_token(more, delimiter, &at, &token)) {
        if (is_blank(token) || tarn_map_set(seen, token, seen) != NULL)
            continue;
        tarn_buf_add_slice(to, delimiter);
        tarn_buf_add_slice(to, token);
    }
}

static void join(struct tarn_merge_column *column, struct tarn_slice first,
                 struct tarn_slice second)
{
    struct tarn_buf joined = {0};

    tarn_buf_add_slice(&joined, first);
    if (column->rule->distinct) {
        add_distinct(&joined, first, second, column->rule->delimiter);
    } else {
        tarn_buf_add_slice(&joined, column->rule->delimiter);
        tarn_buf_add_slice(&joined, second);
    }
    tarn_buf_drop(&column->bytes);
    column->bytes = joined;
}

/* Appends to what the column has of its own, which is what most texts do. */
static void append(struct tarn_merge_column *column, struct tarn_slice in)
{
    tarn_buf_add_slice(&column->bytes, column->rule->delimiter);
    tarn_buf_add_slice(&column->bytes, in);
}

/* Nothing that would be told: null or blank. */
static bool is_void(const struct tarn_merge_combiner *engine,
                    const struct tarn_merge_column *column, struct tarn_merge_ref ref)
{
    return tarn_merge__ref_is_null(engine, column, ref) ||
           is_blank(tarn_merge__text_of(engine, column, ref));
}

void tarn_merge__aggregate_text(struct tarn_merge_combiner *engine,
                                struct tarn_merge_column *column, enum tarn_merge_step step,
                                struct tarn_merge_ref in)
{
    bool older = step == TARN_STEP_ADD_OLDER, in_void = is_void(engine, column, in);
    bool own = column->cell == TARN_CELL_BYTES;
    bool acc_void = !own && (column->cell == TARN_CELL_NULL || is_void(engine, column, column->at));

    if (acc_void && (older || !in_void))
        tarn_merge__cell_set(engine, column, in);
    if (acc_void || in_void)
        return;
    struct tarn_slice text = tarn_merge__text_of(engine, column, in);
    struct tarn_slice acc =
        own ? tarn_buf_slice(&column->bytes) : tarn_merge__text_of(engine, column, column->at);
    if (own && !older && !column->rule->distinct)
        append(column, text);
    else
        join(column, older ? text : acc, older ? acc : text);
    column->cell = TARN_CELL_BYTES;
}
