#include "rpc/internal.h"

/* Pieces that several services speak of. */

struct tarn_table_ref tarn_rpc__ref(const Tarn__V1__TableRef *ref)
{
    struct tarn_table_ref out = {0};
    if (ref != NULL)
        out = (struct tarn_table_ref){tarn_rpc__slice(ref->database), tarn_rpc__slice(ref->table),
                                      tarn_slice_str(ref->uuid)};
    return out;
}

struct tarn_page tarn_rpc__page(const Tarn__V1__Page *page)
{
    struct tarn_page out = {0};
    if (page != NULL)
        out = (struct tarn_page){.size = page->size,
                                 .token = tarn_slice_str(page->token),
                                 .pattern = tarn_slice_str(page->pattern)};
    return out;
}

struct tarn_status *tarn_rpc__version(const Tarn__V1__Version *version, struct tarn_version *out)
{
    *out = TARN_VERSION_LATEST;
    if (version == NULL)
        return TARN_OK;
    if (version->at_case == TARN__V1__VERSION__AT_SNAPSHOT_ID) {
        out->snapshot_id = version->snapshot_id;
        if (version->snapshot_id < 1)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "snapshot ids begin at 1");
    } else if (version->at_case == TARN__V1__VERSION__AT_TIME_MS) {
        out->time_ms = version->time_ms;
        if (version->time_ms < 0)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "version.time_ms is negative");
    } else if (version->at_case == TARN__V1__VERSION__AT_TAG) {
        out->tag = tarn_slice_str(version->tag);
        if (out->tag.size == 0)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "version.tag is empty");
    } else if (version->at_case == TARN__V1__VERSION__AT_WATERMARK) {
        out->watermark = version->watermark;
    }
    return TARN_OK;
}

struct tarn_pair *tarn_rpc__pairs(struct tarn_op *op, Tarn__V1__Option *const *options,
                                  size_t count)
{
    struct tarn_pair *out = TARN_RPC_ARRAY(op, count, *out);
    for (size_t i = 0; i < count; i++)
        out[i] = (struct tarn_pair){tarn_rpc__slice(options[i]->key),
                                    tarn_rpc__slice(options[i]->value)};
    return out;
}

Tarn__V1__Option **tarn_rpc__options(struct tarn_op *op, const struct tarn_pair *pairs,
                                     size_t count)
{
    Tarn__V1__Option **out = TARN_RPC_ARRAY(op, count, *out);
    for (size_t i = 0; i < count; i++) {
        out[i] = TARN_RPC_NEW(op, Tarn__V1__Option, option);
        out[i]->key = tarn_rpc__bytes(pairs[i].key);
        out[i]->value = tarn_rpc__bytes(pairs[i].value);
    }
    return out;
}

struct tarn_slice *tarn_rpc__slices(struct tarn_op *op, const ProtobufCBinaryData *list,
                                    size_t count)
{
    struct tarn_slice *out = TARN_RPC_ARRAY(op, count, *out);
    for (size_t i = 0; i < count; i++)
        out[i] = tarn_rpc__slice(list[i]);
    return out;
}

ProtobufCBinaryData *tarn_rpc__bytes_list(struct tarn_op *op, const struct tarn_slice *list,
                                          size_t count)
{
    ProtobufCBinaryData *out = TARN_RPC_ARRAY(op, count, *out);
    for (size_t i = 0; i < count; i++)
        out[i] = tarn_rpc__bytes(list[i]);
    return out;
}

Tarn__V1__Field **tarn_rpc__fields(struct tarn_op *op, const struct tarn_field *fields,
                                   size_t count)
{
    Tarn__V1__Field **out = TARN_RPC_ARRAY(op, count, *out);
    TARN_OWN(tarn_buf_drop) struct tarn_buf type = {0};
    for (size_t i = 0; i < count; i++) {
        tarn_buf_clear(&type);
        tarn_type_print(fields[i].type, &type);
        out[i] = TARN_RPC_NEW(op, Tarn__V1__Field, field);
        out[i]->id = fields[i].id;
        out[i]->name = tarn_rpc__bytes(fields[i].name);
        out[i]->type = tarn_rpc__text(op, tarn_buf_slice(&type));
        out[i]->description = tarn_rpc__bytes(fields[i].description);
        out[i]->default_value = tarn_rpc__bytes(fields[i].default_value);
    }
    return out;
}

/* Empty and absent are one on the wire: an empty description is none. */
static struct tarn_slice absent_if_empty(ProtobufCBinaryData bytes)
{
    return bytes.len == 0 ? tarn_slice_str(NULL) : tarn_rpc__slice(bytes);
}

struct tarn_field tarn_rpc__field(const Tarn__V1__Field *field)
{
    return (struct tarn_field){.name = tarn_rpc__slice(field->name),
                               .description = absent_if_empty(field->description),
                               .default_value = absent_if_empty(field->default_value)};
}

struct tarn_partition_value *tarn_rpc__partition(struct tarn_op *op,
                                                 Tarn__V1__PartitionValue *const *values,
                                                 size_t count)
{
    struct tarn_partition_value *out = TARN_RPC_ARRAY(op, count, *out);
    for (size_t i = 0; i < count; i++)
        out[i] =
            (struct tarn_partition_value){tarn_rpc__slice(values[i]->column),
                                          tarn_rpc__slice(values[i]->value), values[i]->is_null};
    return out;
}
