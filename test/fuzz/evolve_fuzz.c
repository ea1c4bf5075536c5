/* Promise: any changes of any schema, {"schema": {...}, "changes": [...]}, are a status or a schema that can be read again. */
#include "schema_changes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tarn_status *evolve(struct tarn_slice in, struct tarn_arena *arena)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_schema schema, next, again;
    struct tarn_schema_change *changes;
    size_t count;
    TARN_TRY(tarn_json_parse(in, &json));
    const struct tarn_json *old =
        tarn_json_kind(json) == TARN_JSON_OBJECT ? tarn_json_find(json, "schema") : NULL;
    if (old == NULL)
        return TARN_OK;
    tarn_json_print(old, 0, &text);
    TARN_TRY(tarn_schema_decode(tarn_buf_slice(&text), arena, &schema));
    TARN_TRY(tarn_test_schema_changes(tarn_json_find(json, "changes"), arena, &changes, &count));
    TARN_TRY(tarn_schema_evolve(&schema, changes, count, in.size % 2, 0, arena, &next));
    tarn_buf_clear(&text);
    tarn_schema_encode(&next, &text);
    struct tarn_status *s = tarn_schema_decode(tarn_buf_slice(&text), arena, &again);
    tarn_assert(s == NULL);
    tarn_assert(again.highest_field_id >= schema.highest_field_id);
    return TARN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    tarn_status_free(evolve(tarn_slice_of(data, size), arena));
    return 0;
}
