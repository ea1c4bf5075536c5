/*
 * The bitmap index: each distinct value of a column with the rows that have it. Every leaf is judged
 * value by value, as if the index were the column. Version 2 has its values in blocks, with the first
 * value of each before them; both versions are walked whole, so that no order is relied on.
 */
#include "format/file_index_internal.h"
#include "format/value_internal.h"

#define BITMAP_VERSION_1 1
#define BITMAP_VERSION_2 2
#define STEP_SIZE 64 /* bytes of a value that count as one step */

struct walk {
    const struct tarn_index__bitmap *bitmap;
    const struct tarn_predicate_node *leaf;
    struct tarn_index__budget *budget;
    struct tarn_index__chance *out;
    const uint8_t *body; /* where offsets count from */
    int64_t value_count; /* seen so far */
};

/* What one value of the index stands for: it alone, or for timestamps all that differ from it by less
 * than the index tells apart. */
struct range {
    struct tarn_value low, high;
    bool wide;
};

bool tarn_index__bitmap_takes(const struct tarn_type *type)
{
    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BOOLEAN:
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return true;
    default:
        return false;
    }
}

static void take_real(struct tarn_index__reader *r, size_t size, struct tarn_value *out)
{
    uint64_t bits = tarn_index__take(r, size);
    uint32_t narrow_bits = (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &narrow_bits, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    out->real = size == 4 ? (double)narrow : wide;
}

static void take_time(struct tarn_index__reader *r, const struct tarn_type *type, struct range *out)
{
    int64_t number = (int64_t)tarn_index__take(r, 8);
    out->wide = true;
    if (type->precision <= 3) {
        out->low.time.ms = out->high.time.ms = number;
        out->high.time.ns = 999999;
        return;
    }
    out->low.time.ms = out->high.time.ms = tarn_format__floor_div(number, 1000);
    out->low.time.ns = (int32_t)tarn_format__floor_mod(number, 1000) * 1000;
    out->high.time.ns = out->low.time.ns + 999;
}

static void take_value(struct tarn_index__reader *r, const struct tarn_type *type,
                       struct range *out)
{
    *out = (struct range){0};
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        out->low.integer = tarn_index__take(r, 1) != 0;
        break;
    case TARN_TYPE_TINYINT:
        out->low.integer = (int8_t)tarn_index__take(r, 1);
        break;
    case TARN_TYPE_SMALLINT:
        out->low.integer = (int16_t)tarn_index__take(r, 2);
        break;
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        out->low.integer = tarn_index__take_int(r);
        break;
    case TARN_TYPE_BIGINT:
        out->low.integer = (int64_t)tarn_index__take(r, 8);
        break;
    case TARN_TYPE_FLOAT:
        take_real(r, 4, &out->low);
        break;
    case TARN_TYPE_DOUBLE:
        take_real(r, 8, &out->low);
        break;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        take_time(r, type, out);
        break;
    default:
        out->low.bytes = tarn_index__take_bytes(r, tarn_index__take_int(r));
        break;
    }
}

/* ---- one value */

struct truths {
    bool yes, no; /* the leaf can be true, can be false */
};

static bool in_range(const struct range *range, const struct tarn_type *type,
                     const struct tarn_value *v)
{
    return tarn_value_compare(type, &range->low, v) <= 0 &&
           tarn_value_compare(type, v, &range->high) <= 0;
}

/* Equality with something inside a range can be true and false; order is decided at its ends. */
static struct truths truths_in_range(struct walk *w, const struct range *range)
{
    const struct tarn_predicate_node *leaf = w->leaf;
    const struct tarn_type *type = w->bitmap->type;
    bool equality = leaf->op == TARN_PRED_EQ || leaf->op == TARN_PRED_SAFE_EQ ||
                    leaf->op == TARN_PRED_NE || leaf->op == TARN_PRED_IN;
    bool hit = false;
    for (size_t i = 0; equality && i < leaf->value_count && !hit; i++)
        hit = in_range(range, type, &leaf->values[i]);
    w->budget->steps -= (int64_t)(leaf->value_count / 8);
    if (leaf->op == TARN_PRED_NE)
        return (struct truths){.yes = true, .no = hit};
    if (equality)
        return (struct truths){.yes = hit, .no = !leaf->list_has_null};
    enum tarn_truth low = tarn_predicate_leaf(leaf, type, &range->low);
    enum tarn_truth high = tarn_predicate_leaf(leaf, type, &range->high);
    return (struct truths){.yes = low == TARN_TRUE || high == TARN_TRUE,
                           .no = low == TARN_FALSE || high == TARN_FALSE};
}

static struct truths truths_of(struct walk *w, const struct range *range)
{
    if (range->wide)
        return truths_in_range(w, range);
    enum tarn_truth truth = tarn_predicate_leaf(w->leaf, w->bitmap->type, &range->low);
    return (struct truths){.yes = truth == TARN_TRUE, .no = truth == TARN_FALSE};
}

/* ---- its rows */

static bool add_rows(struct walk *w, uint64_t *rows, int32_t offset)
{
    const struct tarn_index__bitmap *b = w->bitmap;
    const uint8_t *end = b->bytes.data + b->bytes.size;
    if (rows == NULL)
        return true;
    if (offset < 0) { /* one row alone is its own offset */
        int64_t row = -1 - (int64_t)offset;
        if (row >= b->row_count)
            return false;
        rows[row / 64] |= UINT64_C(1) << (row % 64);
        return true;
    }
    if (offset >= end - w->body)
        return false;
    struct tarn_slice roaring =
        tarn_slice_of(w->body + offset, (size_t)(end - w->body) - (size_t)offset);
    return tarn_index__rows_add(rows, b->row_count, roaring, w->budget);
}

static struct tarn_status *note(struct walk *w, struct truths truths, int32_t offset)
{
    w->out->yes = w->out->yes || truths.yes;
    w->out->no = w->out->no || truths.no;
    if ((truths.yes && !add_rows(w, w->out->yes_rows, offset)) ||
        (truths.no && !add_rows(w, w->out->no_rows, offset)))
        return tarn_index__malformed("the rows at %" PRId32 " of a bitmap index are damaged",
                                     offset);
    return TARN_OK;
}

/* ---- all values */

static struct tarn_status *cut_short(void)
{
    return tarn_index__malformed("a bitmap index is cut short");
}

static struct tarn_status *note_null(struct walk *w, int32_t offset)
{
    struct tarn_value null = {.is_null = true};
    enum tarn_truth truth = tarn_predicate_leaf(w->leaf, w->bitmap->type, &null);
    return note(w, (struct truths){.yes = truth == TARN_TRUE, .no = truth == TARN_FALSE}, offset);
}

static struct tarn_status *judge_entries(struct walk *w, struct tarn_index__reader *r,
                                         int64_t count, bool with_length)
{
    struct range range;
    for (int64_t i = 0; i < count && w->budget->steps >= 0; i++) {
        take_value(r, w->bitmap->file_type, &range);
        int32_t offset = tarn_index__take_int(r);
        if (with_length)
            tarn_index__take_int(r);
        if (r->failed)
            return cut_short();
        bool text = w->bitmap->file_type->id <= TARN_TYPE_VARCHAR;
        w->budget->steps -= 1 + (int64_t)(text ? range.low.bytes.size / STEP_SIZE : 0);
        w->value_count++;
        TARN_TRY(note(w, truths_of(w, &range), offset));
    }
    return TARN_OK;
}

/* Version 1: null's offset, the values, the rows. */
static struct tarn_status *judge_list(struct walk *w, struct tarn_index__reader *r, int64_t count,
                                      bool has_null)
{
    int32_t null_offset = has_null ? tarn_index__take_int(r) : 0;
    struct tarn_index__reader ahead = *r;
    struct range range;
    for (int64_t i = 0; i < count && !ahead.failed; i++) {
        take_value(&ahead, w->bitmap->file_type, &range);
        tarn_index__take_int(&ahead);
    }
    w->budget->steps -= count / 4;
    if (ahead.failed)
        return cut_short();
    w->body = ahead.cursor;
    if (has_null)
        TARN_TRY(note_null(w, null_offset));
    return judge_entries(w, r, count, false);
}

static struct tarn_status *judge_block(struct walk *w, const uint8_t *blocks, int32_t offset)
{
    const uint8_t *end = w->bitmap->bytes.data + w->bitmap->bytes.size;
    if (offset < 0 || offset >= end - blocks)
        return cut_short();
    struct tarn_index__reader r = {.cursor = blocks + offset, .end = end};
    int32_t count = tarn_index__take_int(&r);
    if (r.failed || count < 0)
        return cut_short();
    w->budget->steps--;
    return judge_entries(w, &r, count, true);
}

/* Version 2: null's offset and length, the blocks' first values and offsets, the blocks, the rows. */
static struct tarn_status *judge_blocks(struct walk *w, struct tarn_index__reader *r, bool has_null)
{
    struct range range;
    int32_t null_offset = has_null ? tarn_index__take_int(r) : 0;
    if (has_null)
        tarn_index__take_int(r);
    int32_t count = tarn_index__take_int(r);
    struct tarn_index__reader ahead = *r;
    for (int32_t i = 0; i < count && !ahead.failed; i++) {
        take_value(&ahead, w->bitmap->file_type, &range);
        tarn_index__take_int(&ahead);
    }
    int32_t body = tarn_index__take_int(&ahead);
    if (ahead.failed || count < 0 || body < 0 || body > ahead.end - ahead.cursor)
        return cut_short();
    w->budget->steps -= count / 4;
    w->body = ahead.cursor + body;
    if (has_null)
        TARN_TRY(note_null(w, null_offset));
    for (int32_t i = 0; i < count && w->budget->steps >= 0; i++) {
        take_value(r, w->bitmap->file_type, &range);
        TARN_TRY(judge_block(w, ahead.cursor, tarn_index__take_int(r)));
    }
    return TARN_OK;
}

static struct tarn_status *walk(struct walk *w)
{
    struct tarn_slice bytes = w->bitmap->bytes;
    struct tarn_index__reader r = {.cursor = bytes.data, .end = bytes.data + bytes.size};
    int version = (int)tarn_index__take(&r, 1);
    int64_t rows = tarn_index__take_int(&r), count = tarn_index__take_int(&r);
    bool has_null = tarn_index__take(&r, 1) != 0;
    if (r.failed || count < 0)
        return cut_short();
    if (version != BITMAP_VERSION_1 && version != BITMAP_VERSION_2)
        return tarn_index__malformed("a bitmap index of version %d: known are 1 and 2", version);
    if (rows != w->bitmap->row_count)
        return tarn_index__malformed("a bitmap index of %" PRId64 " rows, the file has %" PRId64,
                                     rows, w->bitmap->row_count);
    TARN_TRY(version == BITMAP_VERSION_1 ? judge_list(w, &r, count, has_null)
                                         : judge_blocks(w, &r, has_null));
    if (w->budget->steps >= 0 && w->value_count != count)
        return tarn_index__malformed("a bitmap index with %" PRId64 " values says it has %" PRId64,
                                     w->value_count, count);
    return TARN_OK;
}

struct tarn_status *tarn_index__bitmap_judge(const struct tarn_index__bitmap *bitmap,
                                             const struct tarn_predicate_node *leaf, bool with_rows,
                                             struct tarn_index__budget *budget,
                                             struct tarn_index__chance *out)
{
    struct walk w = {.bitmap = bitmap, .leaf = leaf, .budget = budget, .out = out};
    struct tarn_index__why why = {leaf->column, "bitmap"};
    *out = (struct tarn_index__chance){.why_yes = why, .why_no = why};
    if (with_rows) {
        out->yes_rows = tarn_index__rows_new(bitmap->row_count, budget);
        out->no_rows = tarn_index__rows_new(bitmap->row_count, budget);
    }
    struct tarn_status *s = walk(&w);
    if (s != NULL || budget->steps < 0) {
        tarn_index__rows_free(&out->yes_rows, bitmap->row_count, budget);
        tarn_index__rows_free(&out->no_rows, bitmap->row_count, budget);
        out->yes = out->no = true;
    }
    return s;
}
