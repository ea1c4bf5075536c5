/*
 * A serialized row from a damaged or hostile manifest is read inside its bytes or refused; what was
 * read can be printed, and written again reads as the same. The first byte picks the types.
 */
#include "format/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TYPE(type_id, ...)                                                                         \
    {                                                                                              \
        .id = TARN_TYPE_##type_id, .nullable = true, ##__VA_ARGS__                                 \
    }
static const struct tarn_type types[] = {TYPE(INT),
                                         TYPE(VARCHAR, .length = TARN_TYPE_LENGTH_MAX),
                                         TYPE(BIGINT),
                                         TYPE(DECIMAL, .precision = 38, .scale = 2),
                                         TYPE(TIMESTAMP, .precision = 9),
                                         TYPE(BOOLEAN),
                                         TYPE(DECIMAL, .precision = 10, .scale = 2),
                                         TYPE(DOUBLE),
                                         TYPE(FLOAT),
                                         TYPE(VARBINARY, .length = TARN_TYPE_LENGTH_MAX),
                                         TYPE(DATE),
                                         TYPE(TIME, .precision = 3),
                                         TYPE(TIMESTAMP_LTZ, .precision = 3),
                                         TYPE(TINYINT),
                                         TYPE(SMALLINT),
                                         TYPE(MAP)};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf again = {0};
    const struct tarn_type *chosen[64] = {NULL};
    struct tarn_value values[64], back[64];

    if (size < 2)
        return 0;
    size_t count = data[0] % 65;
    for (size_t i = 0; i < count; i++)
        chosen[i] = &types[(data[1] + i) % TARN_COUNT_OF(types)];
    TARN_OWN(tarn_status_drop) struct tarn_status *s =
        tarn_row_deserialize(tarn_slice_of(data + 2, size - 2), chosen, count, values);
    if (s != NULL)
        return 0;
    for (size_t i = 0; i < count; i++)
        tarn_value_print(chosen[i], &values[i], &text);
    tarn_row_serialize(chosen, values, count, &again);
    TARN_OWN(tarn_status_drop) struct tarn_status *s2 =
        tarn_row_deserialize(tarn_buf_slice(&again), chosen, count, back);
    tarn_assert(s2 == NULL);
    for (size_t i = 0; i < count; i++)
        tarn_assert(tarn_value_compare(chosen[i], &values[i], &back[i]) == 0);
    return 0;
}
