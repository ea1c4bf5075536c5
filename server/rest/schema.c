#include "rest/internal.h"

/* A schema as the protocol has it: that of schema files without their numbers. */

struct tarn_json *tarn_rest__from_schema(const struct tarn_schema *schema)
{
    struct tarn_json *json = tarn_json_object();
    tarn_json_set(json, "fields", tarn_fields_to_json(schema->fields, schema->field_count));
    tarn_json_set(json, "partitionKeys",
                  tarn_rest__from_texts(schema->partition_keys, schema->partition_key_count));
    tarn_json_set(json, "primaryKeys",
                  tarn_rest__from_texts(schema->primary_keys, schema->primary_key_count));
    tarn_json_set(json, "options", tarn_rest__from_pairs(schema->options, schema->option_count));
    tarn_json_set(json, "comment",
                  schema->comment.data == NULL ? tarn_json_null()
                                               : tarn_json_string(schema->comment));
    return json;
}

/* What a client sent is wrong, not damaged. */
static struct tarn_status *take_fields(struct tarn_op *op, const struct tarn_json *json,
                                       struct tarn_table_request *out)
{
    struct tarn_status *s = tarn_fields_from_json(tarn_json_find(json, "fields"), 0, op->arena,
                                                  &out->fields, &out->field_count);
    return tarn_status_reason(s) == TARN_SCHEMA_MALFORMED ? tarn_status_as(s, TARN_SCHEMA_INVALID)
                                                          : s;
}

struct tarn_status *tarn_rest__to_schema(struct tarn_op *op, const struct tarn_json *json,
                                         struct tarn_table_request *out)
{
    TARN_TRY(tarn_rest__pairs(op, json, "options", &out->options, &out->option_count));
    TARN_TRY(take_fields(op, json, out));
    out->keep_ids = true;
    out->as_given = true;
    TARN_TRY(tarn_rest__texts(op, json, "partitionKeys", &out->partition_keys,
                              &out->partition_key_count));
    TARN_TRY(
        tarn_rest__texts(op, json, "primaryKeys", &out->primary_keys, &out->primary_key_count));
    return tarn_rest__text(json, "comment", &out->comment);
}
