/* Promise: any bytes are a schema or a status; a schema written and read again is the same text. Column
 * lists and types that are read print to what reads as the same type. */
#include "format/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_file(struct tarn_slice in, struct tarn_arena *arena)
{
    struct tarn_schema schema, again;
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};
    struct tarn_status *s = tarn_schema_decode(in, arena, &schema);
    if (s != NULL) {
        tarn_assert(tarn_status_reason(s) == TARN_SCHEMA_MALFORMED);
        tarn_status_free(s);
        return;
    }
    tarn_schema_encode(&schema, &first);
    s = tarn_schema_decode(tarn_buf_slice(&first), arena, &again);
    tarn_assert(s == NULL);
    tarn_schema_encode(&again, &second);
    tarn_assert(tarn_slice_equal(tarn_buf_slice(&first), tarn_buf_slice(&second)));
}

static void fuzz_columns(struct tarn_slice in, struct tarn_arena *arena)
{
    const struct tarn_field *fields = NULL;
    struct tarn_schema draft = {0}, made;
    size_t count = 0;
    struct tarn_status *s = tarn_columns_parse(in, arena, &fields, &count);
    for (size_t i = 0; s == NULL && i < count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        const struct tarn_type *again = NULL;
        tarn_type_print(fields[i].type, &text);
        s = tarn_type_parse(tarn_buf_slice(&text), arena, &again);
        tarn_assert(s == NULL);
        tarn_assert(tarn_type_equal(fields[i].type, again, false));
    }
    draft.fields = fields;
    draft.field_count = count;
    if (s == NULL)
        s = tarn_schema_create(&draft, 0, arena, &made);
    tarn_status_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    fuzz_file(tarn_slice_of(data, size), arena);
    fuzz_columns(tarn_slice_of(data, size), arena);
    return 0;
}
