#include "format/stats.h"

#include <math.h>

struct tarn_stats tarn_stats_empty(void)
{
    return (struct tarn_stats){.min = tarn_row_empty(), .max = tarn_row_empty()};
}

/* ---- truncation */

static size_t code_point_size(uint8_t lead)
{
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The first `length` code points; the text is valid UTF-8. */
static struct tarn_slice cut_text(struct tarn_slice text, int32_t length)
{
    size_t at = 0;
    for (int32_t i = 0; i < length && at < text.size; i++)
        at += code_point_size(text.data[at]);
    return tarn_slice_of(text.data, TARN_MIN(at, text.size));
}

static uint32_t decode_code_point(const uint8_t *p, size_t size)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = p[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

static size_t encode_code_point(uint32_t c, uint8_t *p)
{
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--, c >>= 6)
        p[i] = (uint8_t)(0x80 | (c & 0x3f));
    p[0] = (uint8_t)(leads[size] | c);
    return size;
}

/* The smallest text of at most as many code points that is above all with this prefix: the last code
 * point that has a successor is raised and what follows dropped. False where none has one. */
static bool raise_text(struct tarn_slice prefix, struct tarn_arena *arena, struct tarn_slice *out)
{
    size_t end = prefix.size;
    while (end > 0) {
        size_t start = end - 1;
        while (start > 0 && (prefix.data[start] & 0xc0) == 0x80)
            start--;
        uint32_t c = decode_code_point(prefix.data + start, end - start) + 1;
        if (c == 0xd800)
            c = 0xe000; /* surrogates are no text */
        if (c <= 0x10ffff) {
            uint8_t *raised = tarn_arena_alloc(arena, start + 4);
            if (start > 0)
                memcpy(raised, prefix.data, start);
            *out = tarn_slice_of(raised, start + encode_code_point(c, raised + start));
            return true;
        }
        end = start;
    }
    return false;
}

static bool raise_bytes(struct tarn_slice prefix, struct tarn_arena *arena, struct tarn_slice *out)
{
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == 0xff)
        prefix.size--;
    if (prefix.size == 0)
        return false;
    uint8_t *raised = tarn_arena_alloc(arena, prefix.size);
    memcpy(raised, prefix.data, prefix.size);
    raised[prefix.size - 1]++;
    *out = tarn_slice_of(raised, prefix.size);
    return true;
}

static bool is_text(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_CHAR || type->id == TARN_TYPE_VARCHAR;
}

static bool is_bytes(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_BINARY || type->id == TARN_TYPE_VARBINARY;
}

/* False: no bounds can be said. */
static bool truncate_bounds(const struct tarn_type *type, int32_t length, struct tarn_arena *arena,
                            struct tarn_value *min, struct tarn_value *max)
{
    if (!is_text(type) && !is_bytes(type))
        return true;
    if (is_text(type) && !(tarn_utf8_valid(min->bytes) && tarn_utf8_valid(max->bytes)))
        return false;
    struct tarn_slice whole = max->bytes, low = min->bytes, high = max->bytes;
    if (is_text(type)) {
        low = cut_text(low, length);
        high = cut_text(high, length);
    } else {
        low.size = TARN_MIN(low.size, (size_t)length);
        high.size = TARN_MIN(high.size, (size_t)length);
    }
    bool longer = high.size < whole.size;
    min->bytes = low;
    max->bytes = high;
    if (!longer)
        return true;
    return is_text(type) ? raise_text(high, arena, &max->bytes)
                         : raise_bytes(high, arena, &max->bytes);
}

/* ---- building */

static bool is_nan(const struct tarn_type *type, const struct tarn_value *value)
{
    return (type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE) && isnan(value->real);
}

/* The bounds of one column as they are stored: null where nothing is known. */
static void build_bounds(const struct tarn_type *type, const struct tarn_column_stats *column,
                         enum tarn_stats_mode mode, int32_t length, struct tarn_arena *arena,
                         struct tarn_value *min, struct tarn_value *max)
{
    *min = *max = (struct tarn_value){.is_null = true};
    bool wanted = mode == TARN_STATS_TRUNCATE || mode == TARN_STATS_FULL;
    if (!wanted || column->none || !column->has_bounds || !tarn_type_is_ordered(type) ||
        column->min.is_null || column->max.is_null || is_nan(type, &column->min) ||
        is_nan(type, &column->max))
        return;
    *min = column->min;
    *max = column->max;
    if (mode == TARN_STATS_TRUNCATE && !truncate_bounds(type, length, arena, min, max))
        *min = *max = (struct tarn_value){.is_null = true};
}

static int64_t null_count_of(const struct tarn_column_stats *column, enum tarn_stats_mode mode)
{
    return mode == TARN_STATS_NONE || column->none ? TARN_STATS_UNKNOWN : column->null_count;
}

void tarn_stats_build(const struct tarn_type *const *types, const struct tarn_column_stats *columns,
                      const enum tarn_stats_mode *modes, const int32_t *lengths, size_t count,
                      struct tarn_arena *arena, struct tarn_stats *out)
{
    struct tarn_value *min = tarn_arena_calloc(arena, count, sizeof *min);
    struct tarn_value *max = tarn_arena_calloc(arena, count, sizeof *max);
    int64_t *nulls = tarn_arena_calloc(arena, count, sizeof *nulls);
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    for (size_t i = 0; i < count; i++) {
        build_bounds(types[i], &columns[i], modes[i], lengths[i], arena, &min[i], &max[i]);
        nulls[i] = null_count_of(&columns[i], modes[i]);
    }
    tarn_row_serialize(types, min, count, &row);
    out->min = tarn_arena_copy(arena, tarn_buf_slice(&row));
    tarn_buf_clear(&row);
    tarn_row_serialize(types, max, count, &row);
    out->max = tarn_arena_copy(arena, tarn_buf_slice(&row));
    out->null_counts = nulls;
    out->count = count;
}

void tarn_stats_build_dense(const struct tarn_slice *names, const struct tarn_type *const *types,
                            const struct tarn_column_stats *columns,
                            const enum tarn_stats_mode *modes, const int32_t *lengths, size_t count,
                            struct tarn_arena *arena, struct tarn_stats *out,
                            const struct tarn_slice **covered, size_t *covered_count, bool *all)
{
    const struct tarn_type **kept_types = tarn_arena_calloc(arena, count, sizeof *kept_types);
    struct tarn_column_stats *kept = tarn_arena_calloc(arena, count, sizeof *kept);
    enum tarn_stats_mode *kept_modes = tarn_arena_calloc(arena, count, sizeof *kept_modes);
    int32_t *kept_lengths = tarn_arena_calloc(arena, count, sizeof *kept_lengths);
    struct tarn_slice *kept_names = tarn_arena_calloc(arena, count, sizeof *kept_names);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct tarn_value min, max;
        build_bounds(types[i], &columns[i], modes[i], lengths[i], arena, &min, &max);
        if (min.is_null && max.is_null &&
            null_count_of(&columns[i], modes[i]) == TARN_STATS_UNKNOWN)
            continue;
        kept_types[n] = types[i];
        kept[n] = columns[i];
        kept_modes[n] = modes[i];
        kept_lengths[n] = lengths[i];
        kept_names[n++] = tarn_arena_copy(arena, names[i]);
    }
    tarn_stats_build(kept_types, kept, kept_modes, kept_lengths, n, arena, out);
    *covered = kept_names;
    *covered_count = n;
    *all = n == count;
}
