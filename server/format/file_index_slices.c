/*
 * The bit-slice index (bsi): of each bit of a column's numbers the rows that have it, those of numbers from 0 on and of the sizes of
 * negative ones apart.
 */
#include "format/file_index_internal.h"

struct numbers { /* an int64_t a row, and whether it isn't null */
    const uint8_t *numbers, *present;
    uint32_t row_count;
};

bool tarn_index__bsi_takes(const struct tarn_type *type)
{
    switch (type->id) {
    case TARN_TYPE_DECIMAL:
        return type->precision <= 18;
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_BIGINT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return true;
    default:
        return false;
    }
}

/* Rows whose number, of this sign, has the bit; bit -1: all of this sign. */
static void put_slice(const struct numbers *o, bool negative, int bit,
                      struct tarn_index__rows_writer *w, struct tarn_buf *out)
{
    size_t n = 0;
    for (uint32_t row = 0; row < o->row_count; row++) {
        int64_t number;
        memcpy(&number, o->numbers + row * sizeof number, sizeof number);
        if (n > 0 && row % TARN_ROARING_CONTAINER == 0) {
            tarn_roaring_add(&w->bitmap, (uint16_t)((row - 1) >> 16), w->lows, n);
            n = 0;
        }
        uint64_t size = negative ? -(uint64_t)number : (uint64_t)number;
        if (o->present[row] != 0 && (number < 0) == negative && (bit < 0 || (size >> bit & 1) != 0))
            w->lows[n++] = (uint16_t)row;
    }
    if (n > 0)
        tarn_roaring_add(&w->bitmap, (uint16_t)((o->row_count - 1) >> 16), w->lows, n);
    tarn_roaring_take(&w->bitmap, out);
}

/* Numbers of one sign by their sizes, from 0 to the largest. */
static void put_slices(const struct numbers *o, bool negative, struct tarn_buf *out)
{
    uint64_t most = 0;
    bool any = false;
    for (uint32_t row = 0; row < o->row_count; row++) {
        int64_t number;
        memcpy(&number, o->numbers + row * sizeof number, sizeof number);
        if (o->present[row] == 0 || (number < 0) != negative)
            continue;
        any = true;
        most = TARN_MAX(most, negative ? -(uint64_t)number : (uint64_t)number);
    }
    tarn_index__put(out, any, 1);
    if (!any)
        return;
    int slices = most == 0 ? 0 : 64 - __builtin_clzll(most);
    struct tarn_index__rows_writer *w = tarn_calloc(1, sizeof *w);
    tarn_index__put(out, 1, 1);
    tarn_index__put(out, 0, 8);
    tarn_index__put(out, most, 8);
    put_slice(o, negative, -1, w, out);
    tarn_index__put(out, (uint64_t)slices, 4);
    for (int bit = 0; bit < slices; bit++)
        put_slice(o, negative, bit, w, out);
    tarn_roaring_fini(&w->bitmap);
    free(w);
}

void tarn_index__put_slices(struct tarn_slice numbers, struct tarn_slice present,
                            struct tarn_buf *out)
{
    struct numbers all = {numbers.data, present.data, (uint32_t)present.size};
    tarn_index__put(out, 1, 1);
    tarn_index__put(out, all.row_count, 4);
    put_slices(&all, false, out);
    put_slices(&all, true, out);
}
