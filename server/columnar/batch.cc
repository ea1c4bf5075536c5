/* batch - batches of columns: counted, immutable, in the Arrow C data interface. */
#include "columnar/internal.h"

#include <arrow/c/bridge.h>
#include <arrow/util/byte_size.h>

namespace tarn
{

void fail(enum tarn_reason reason, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    throw Failure(tarn_status_new(reason, "%s", message));
}

void must(const arrow::Status &status, enum tarn_reason reason, const std::string &what)
{
    if (status.ok())
        return;
    if (status.IsOutOfMemory() || status.IsCapacityError())
        reason = TARN_MEMORY_EXHAUSTED;
    else if (status.IsNotImplemented())
        reason = TARN_UNSUPPORTED_FEATURE;
    throw Failure(tarn_status_new(reason, "%s: %s", what.c_str(), status.message().c_str()));
}

struct tarn_status *caught(enum tarn_reason reason, const std::string &what)
{
    try {
        throw;
    } catch (const Failure &failure) {
        return failure.take();
    } catch (const std::bad_alloc &) {
        return tarn_status_new(TARN_MEMORY_EXHAUSTED, "%s: out of memory", what.c_str());
    } catch (const std::exception &x) {
        /* Arrow says "Out of memory" by an exception of Parquet's own where it decodes. */
        if (strstr(x.what(), "Out of memory") != NULL ||
            strstr(x.what(), "MemoryPool bytes_allocated cap") != NULL)
            reason = TARN_MEMORY_EXHAUSTED;
        return tarn_status_new(reason, "%s: %s", what.c_str(), x.what());
    } catch (...) {
        return tarn_status_new(TARN_INTERNAL, "%s: unknown exception", what.c_str());
    }
}

static void release_import(struct ArrowArray *array)
{
    tarn_batch_unref((struct tarn_batch *)array->private_data);
    array->release = NULL;
}

RecordBatchPtr import_batch(const struct tarn_batch *batch, const SchemaPtr &schema)
{
    struct ArrowArray array = batch->array;
    array.private_data = tarn_batch_ref((struct tarn_batch *)batch);
    array.release = release_import;
    return must(arrow::ImportRecordBatch(&array, schema), TARN_INTERNAL, "batch");
}

struct tarn_batch *export_batch(const arrow::RecordBatch &batch)
{
    struct ArrowArray array;
    must(arrow::ExportRecordBatch(batch, &array), TARN_INTERNAL, "batch");
    return tarn_batch_take(&array);
}

ArrayPtr null_array(const struct tarn_type *type, int64_t length)
{
    return must(arrow::MakeArrayOfNull(arrow_type(type), length), TARN_INTERNAL, "nulls");
}

std::shared_ptr<arrow::Buffer> new_buffer(int64_t size)
{
    return std::shared_ptr<arrow::Buffer>(
        must(arrow::AllocateBuffer(size), TARN_MEMORY_EXHAUSTED, "buffer"));
}

/* Bytes below one array; children of a slice count whole. */
static int64_t array_size(const struct ArrowArray *a, int depth);

} // namespace tarn

struct tarn_batch *tarn_batch_take(struct ArrowArray *array)
{
    tarn_assert(array->offset == 0 && array->n_children >= 0);
    struct tarn_batch *batch = (struct tarn_batch *)tarn_calloc(1, sizeof *batch);
    batch->ref_count = 1;
    batch->array = *array;
    batch->row_count = array->length;
    batch->column_count = (int)array->n_children;
    array->release = NULL;
    return batch;
}

struct tarn_batch *tarn_batch_ref(struct tarn_batch *batch)
{
    batch->ref_count.fetch_add(1, std::memory_order_relaxed);
    return batch;
}

void tarn_batch_unref(struct tarn_batch *batch)
{
    if (batch == NULL || batch->ref_count.fetch_sub(1, std::memory_order_acq_rel) != 1)
        return;
    if (batch->array.release != NULL)
        batch->array.release(&batch->array);
    free(batch);
}

void tarn_batch_drop(struct tarn_batch **batch)
{
    tarn_batch_unref(*batch);
    *batch = NULL;
}

/* The C data interface does not tell a fixed-width array's width: a value buffer is taken for 8 bytes a
 * row, and one with three buffers (text) is measured by its offsets. An estimate, as promised. */
static int64_t tarn::array_size(const struct ArrowArray *a, int depth)
{
    int64_t size = a->n_buffers > 0 && a->buffers[0] != NULL ? a->length / 8 : 0;
    if (a->n_buffers == 2)
        size += a->length * 8;
    if (a->n_buffers == 3 && a->length > 0 && a->buffers[1] != NULL) {
        const int32_t *offsets = (const int32_t *)a->buffers[1] + a->offset;
        size += a->length * 4 + (offsets[a->length] - offsets[0]);
    }
    for (int64_t i = 0; i < a->n_children && depth < TARN_TYPE_DEPTH_MAX * 2; i++)
        size += array_size(a->children[i], depth + 1);
    return size;
}

int64_t tarn_batch_size(const struct tarn_batch *batch)
{
    return tarn::array_size(&batch->array, 0);
}

void tarn_column_value(const struct ArrowArray *column, const struct tarn_type *type, int64_t row,
                       struct tarn_value *out)
{
    out->is_null = tarn_column_is_null(column, row);
    if (out->is_null)
        return;
    int64_t i = row + column->offset;
    const void *values = column->n_buffers > 1 ? column->buffers[1] : NULL;
    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
    case TARN_TYPE_BLOB:
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY: {
        const int32_t *offsets = (const int32_t *)values;
        out->bytes = tarn_slice_of((const uint8_t *)column->buffers[2] + offsets[i],
                                   (size_t)(offsets[i + 1] - offsets[i]));
        return;
    }
    case TARN_TYPE_BOOLEAN:
        out->integer = ((const uint8_t *)values)[i >> 3] >> (i & 7) & 1;
        return;
    case TARN_TYPE_TINYINT:
        out->integer = ((const int8_t *)values)[i];
        return;
    case TARN_TYPE_SMALLINT:
        out->integer = ((const int16_t *)values)[i];
        return;
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        out->integer = ((const int32_t *)values)[i];
        return;
    case TARN_TYPE_BIGINT:
        out->integer = ((const int64_t *)values)[i];
        return;
    case TARN_TYPE_FLOAT:
        out->real = ((const float *)values)[i];
        return;
    case TARN_TYPE_DOUBLE:
        out->real = ((const double *)values)[i];
        return;
    case TARN_TYPE_DECIMAL: /* the buffer may be aligned to 8 only */
        memcpy(&out->decimal, (const uint8_t *)values + 16 * i, 16);
        return;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        tarn::time_from_ticks(((const int64_t *)values)[i], type->precision, &out->time.ms,
                              &out->time.ns);
        return;
    default:
        tarn_assert(!"tarn_column_value: atomic types only");
    }
}
