/* Promise: whatever the options of a schema say, they are parsed or refused with SCHEMA_INVALID, and what
 * is parsed holds indices of columns that exist. Input: a schema file. */
#include "format/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_schema schema;
    struct tarn_options o;
    enum tarn_stats_mode mode;
    int32_t length;
    struct tarn_status *s = tarn_schema_decode(tarn_slice_of(data, size), arena, &schema);
    if (s == NULL) {
        s = tarn_options_parse(&schema, arena, &o);
        tarn_assert(tarn_status_reason(s) == TARN_NO_REASON ||
                    tarn_status_reason(s) == TARN_SCHEMA_INVALID);
        for (size_t i = 0; s == NULL && i < o.bucket_key_count; i++)
            tarn_assert((size_t)o.bucket_key_columns[i] < schema.field_count);
        for (size_t i = 0; s == NULL && i < o.sequence_column_count; i++)
            tarn_assert((size_t)o.sequence_columns[i] < schema.field_count);
        for (size_t i = 0; s == NULL && i < schema.field_count && i < 8; i++)
            tarn_options_stats_mode(&o, &schema, (int)i, &mode, &length);
    }
    tarn_status_free(s);
    return 0;
}
