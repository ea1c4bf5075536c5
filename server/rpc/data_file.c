#include "rpc/table.h"

/* Data files as messages, and back. */

static Tarn__V1__Stats *put_stats(struct tarn_op *op, const struct tarn_stats *stats)
{
    Tarn__V1__Stats *out = TARN_RPC_NEW(op, Tarn__V1__Stats, stats);
    out->min = tarn_rpc__bytes(stats->min);
    out->max = tarn_rpc__bytes(stats->max);
    out->n_null_counts = stats->count;
    out->null_counts = (int64_t *)(uintptr_t)stats->null_counts;
    return out;
}

static Tarn__V1__DeletionVector *put_vector(struct tarn_op *op, const struct tarn_vector_ref *v)
{
    Tarn__V1__DeletionVector *out = TARN_RPC_NEW(op, Tarn__V1__DeletionVector, deletion_vector);
    out->path = tarn_rpc__bytes(v->path);
    out->offset = v->offset;
    out->length = v->length;
    if (v->cardinality != TARN_FILE_NONE) {
        out->_cardinality_case = TARN__V1__DELETION_VECTOR___CARDINALITY_CARDINALITY;
        out->cardinality = v->cardinality;
    }
    return out;
}

static void put_optionals(const struct tarn_data_file *f, Tarn__V1__DataFile *out)
{
    if (f->creation_time_ms != TARN_FILE_NONE) {
        out->_creation_time_case = TARN__V1__DATA_FILE___CREATION_TIME_CREATION_TIME_MS;
        out->creation_time_ms = f->creation_time_ms;
    }
    if (f->delete_row_count != TARN_FILE_NONE) {
        out->_delete_row_count_case = TARN__V1__DATA_FILE___DELETE_ROW_COUNT_DELETE_ROW_COUNT;
        out->delete_row_count = f->delete_row_count;
    }
    if (f->embedded_index.data != NULL) {
        out->_embedded_index_case = TARN__V1__DATA_FILE___EMBEDDED_INDEX_EMBEDDED_INDEX;
        out->embedded_index = tarn_rpc__bytes(f->embedded_index);
    }
    if (f->external_path.data != NULL) {
        out->_external_path_case = TARN__V1__DATA_FILE___EXTERNAL_PATH_EXTERNAL_PATH;
        out->external_path = tarn_rpc__bytes(f->external_path);
    }
    if (f->first_row_id != TARN_FILE_NONE) {
        out->_first_row_id_case = TARN__V1__DATA_FILE___FIRST_ROW_ID_FIRST_ROW_ID;
        out->first_row_id = f->first_row_id;
    }
}

Tarn__V1__DataFile *tarn_rpc__put_file(struct tarn_op *op, const struct tarn_data_file *f)
{
    Tarn__V1__DataFile *out = TARN_RPC_NEW(op, Tarn__V1__DataFile, data_file);
    out->name = tarn_rpc__bytes(f->name);
    out->size = f->size;
    out->row_count = f->row_count;
    out->min_key = tarn_rpc__bytes(f->min_key);
    out->max_key = tarn_rpc__bytes(f->max_key);
    out->key_stats = put_stats(op, &f->key_stats);
    out->value_stats = put_stats(op, &f->value_stats);
    out->min_sequence = f->min_sequence;
    out->max_sequence = f->max_sequence;
    out->schema_id = f->schema_id;
    out->level = f->level;
    out->n_extra_files = f->extra_file_count;
    out->extra_files = tarn_rpc__bytes_list(op, f->extra_files, f->extra_file_count);
    out->source = f->source;
    out->has_value_stats_columns = f->has_value_stats_columns;
    out->n_value_stats_columns = f->value_stats_column_count;
    out->value_stats_columns =
        tarn_rpc__bytes_list(op, f->value_stats_columns, f->value_stats_column_count);
    put_optionals(f, out);
    if (f->vector.path.data != NULL)
        out->deletion_vector = put_vector(op, &f->vector);
    return out;
}

static struct tarn_stats take_stats(const Tarn__V1__Stats *in)
{
    if (in == NULL)
        return (struct tarn_stats){0};
    return (struct tarn_stats){tarn_rpc__slice(in->min), tarn_rpc__slice(in->max), in->null_counts,
                               in->n_null_counts};
}

static void take_optionals(const Tarn__V1__DataFile *in, struct tarn_data_file *f)
{
    f->creation_time_ms = f->delete_row_count = f->first_row_id = TARN_FILE_NONE;
    if (in->_creation_time_case == TARN__V1__DATA_FILE___CREATION_TIME_CREATION_TIME_MS)
        f->creation_time_ms = in->creation_time_ms;
    if (in->_delete_row_count_case == TARN__V1__DATA_FILE___DELETE_ROW_COUNT_DELETE_ROW_COUNT)
        f->delete_row_count = in->delete_row_count;
    if (in->_embedded_index_case == TARN__V1__DATA_FILE___EMBEDDED_INDEX_EMBEDDED_INDEX)
        f->embedded_index = tarn_rpc__slice(in->embedded_index);
    if (in->_external_path_case == TARN__V1__DATA_FILE___EXTERNAL_PATH_EXTERNAL_PATH)
        f->external_path = tarn_rpc__slice(in->external_path);
    if (in->_first_row_id_case == TARN__V1__DATA_FILE___FIRST_ROW_ID_FIRST_ROW_ID)
        f->first_row_id = in->first_row_id;
}

struct tarn_data_file tarn_rpc__take_file(struct tarn_op *op, const Tarn__V1__DataFile *in)
{
    struct tarn_data_file f = {
        .name = tarn_rpc__slice(in->name),
        .size = in->size,
        .row_count = in->row_count,
        .min_key = tarn_rpc__slice(in->min_key),
        .max_key = tarn_rpc__slice(in->max_key),
        .key_stats = take_stats(in->key_stats),
        .value_stats = take_stats(in->value_stats),
        .min_sequence = in->min_sequence,
        .max_sequence = in->max_sequence,
        .schema_id = in->schema_id,
        .level = in->level,
        .extra_files = tarn_rpc__slices(op, in->extra_files, in->n_extra_files),
        .extra_file_count = in->n_extra_files,
        .source = in->source == TARN_SOURCE_APPEND || in->source == TARN_SOURCE_COMPACT
                      ? (enum tarn_file_source)in->source
                      : TARN_SOURCE_UNKNOWN,
        .has_value_stats_columns = in->has_value_stats_columns,
        .value_stats_columns =
            tarn_rpc__slices(op, in->value_stats_columns, in->n_value_stats_columns),
        .value_stats_column_count = in->n_value_stats_columns,
    };
    take_optionals(in, &f);
    return f;
}
