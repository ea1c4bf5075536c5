/*
 * Damaged spill blocks are refused or give a batch whose every row can be gathered; no other outcome.
 */
#include "merge/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tarn_type maybe_int = {.id = TARN_TYPE_INT, .nullable = true};
static const struct tarn_type text = {
    .id = TARN_TYPE_VARCHAR, .nullable = true, .length = INT32_MAX};
static const struct tarn_type boolean = {.id = TARN_TYPE_BOOLEAN, .nullable = true};
static const struct tarn_type list = {.id = TARN_TYPE_ARRAY, .nullable = true, .element = &text};
static const struct tarn_field fields[] = {{.id = 0, .type = &maybe_int}, {.id = 1, .type = &list}};
static const struct tarn_type row = {
    .id = TARN_TYPE_ROW, .nullable = true, .fields = fields, .field_count = 2};
static const struct tarn_type map = {
    .id = TARN_TYPE_MAP, .nullable = true, .key = &text, .element = &row};
static const struct tarn_type *const types[] = {&maybe_int, &text, &boolean, &map};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_batch *batch = NULL, *copy = NULL;
    struct tarn_merge_picks picks = {0};

    if (size < 1)
        return 0;
    struct tarn_status *s = tarn_merge__spill_decode(
        tarn_slice_of(data + 1, size - 1), 1 + data[0] % 64, types, TARN_COUNT_OF(types), &batch);
    if (s == TARN_OK) {
        for (int64_t i = batch->row_count; i-- > 0;)
            tarn_merge__picks_add(&picks, 0, (uint32_t)i, 1);
        s = tarn_merge__gather_batch(&batch, 1, NULL, types, TARN_COUNT_OF(types), &picks, &copy);
    }
    tarn_status_free(s);
    tarn_batch_drop(&copy);
    tarn_batch_drop(&batch);
    tarn_merge__picks_drop(&picks);
    return 0;
}
