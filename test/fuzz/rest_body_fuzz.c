/* Bodies of any bytes for the REST door: read as what an endpoint takes from them, or refused; a schema that is taken prints, and is
 * taken again. */
#include "rest/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tarn_status *take_pieces(struct tarn_op *op, const struct tarn_json *body)
{
    struct tarn_table_ref ref;
    const struct tarn_slice *texts;
    const struct tarn_pair *pairs;
    size_t count;
    int64_t number;
    bool truth;
    TARN_TRY(tarn_rest__identifier(body, "identifier", &ref));
    TARN_TRY(tarn_rest__texts(op, body, "removals", &texts, &count));
    TARN_TRY(tarn_rest__pairs(op, body, "options", &pairs, &count));
    TARN_TRY(tarn_rest__integer(body, "nextSnapshotId", &number));
    return tarn_rest__bool(body, "ignoreIfExists", true, &truth);
}

static struct tarn_status *take_schema(struct tarn_op *op, const struct tarn_json *json)
{
    struct tarn_table_request request = {0};
    struct tarn_schema schema = {0};
    TARN_TRY(tarn_rest__to_schema(op, json, &request));
    schema.fields = request.fields;
    schema.field_count = request.field_count;
    schema.options = request.options;
    schema.option_count = request.option_count;
    TARN_OWN(tarn_json_drop) struct tarn_json *again = tarn_rest__from_schema(&schema);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_json_drop) struct tarn_json *parsed = NULL;
    tarn_json_print(again, 0, &text);
    TARN_TRY(tarn_rest__parse(tarn_buf_slice(&text), &parsed));
    struct tarn_table_request second = {0};
    struct tarn_status *s = tarn_rest__to_schema(op, parsed, &second);
    tarn_assert(s == TARN_OK);
    tarn_assert(second.field_count == request.field_count);
    return TARN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_op op;
    TARN_OWN(tarn_json_drop) struct tarn_json *body = NULL;
    tarn_op_init(&op);
    struct tarn_status *s = tarn_rest__parse(tarn_slice_of(data, size), &body);
    if (s == TARN_OK) {
        struct tarn_schema_change *changes;
        size_t change_count;
        tarn_status_free(take_pieces(&op, body));
        tarn_status_free(tarn_rest__to_changes(&op, body, &changes, &change_count));
        const struct tarn_json *schema = tarn_json_find(body, "schema");
        tarn_status_free(take_schema(&op, schema == NULL ? body : schema));
    }
    tarn_status_free(s);
    tarn_op_fini(&op);
    return 0;
}
