/* delete - rows of an append table that a predicate names: marked, and told as index files for the daemon to commit. */
#include "internal.h"

static struct tarn_status *mark(struct tarn_op *op, const struct tarn_merge_table *table,
                                const Tarn__V1__DeleteRequest *request,
                                struct tarn_mark_result *out)
{
    struct tarn_predicate *where = tarn_arena_calloc(op->arena, 1, sizeof *where);
    struct tarn_merge_split *splits;
    struct tarn_index_file *indexes;
    size_t index_count;
    TARN_TRY(tarn_predicate_parse(tarn_slice_str(request->where), table->schema, op->arena, where));
    TARN_TRY(
        tarn_flight__splits(request->task->splits, request->task->n_splits, op->arena, &splits));
    TARN_TRY(
        tarn_flight_indexes_unpack(request->task->index_files, op->arena, &indexes, &index_count));
    struct tarn_mark_spec spec = {.where = where, .indexes = indexes, .index_count = index_count};
    return tarn_mark_rows(op, table, splits, request->task->n_splits, &spec, op->arena, out);
}

static struct tarn_status *serve(struct tarn_op *op, struct tarn_flight *flight,
                                 struct tarn_call *call)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    Tarn__V1__DeleteResponse response = TARN__V1__DELETE_RESPONSE__INIT;
    struct tarn_merge_table table;
    struct tarn_mark_result result = {0};
    const void *decoded;
    TARN_TRY(tarn_call_read(call, &message));
    if (message == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "no request");
    TARN_TRY(tarn_flight_unpack(&tarn__v1__delete_request__descriptor, tarn_message_bytes(message),
                                op->arena, &decoded));
    const Tarn__V1__DeleteRequest *request = decoded;
    if (request->task == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a delete without a task: ask the daemon for it");
    TARN_TRY(
        tarn_flight_table_open(flight->options.tables, request->task->table, op->arena, &table));
    TARN_TRY(mark(op, &table, request, &result));
    response.rows = result.row_count;
    response.files = result.file_count;
    struct tarn_status *s = tarn_flight_indexes_pack(
        result.indexes, result.index_count, op->arena, &response.new_index_files,
        &response.old_index_files, &response.n_old_index_files);
    if (s == TARN_OK)
        s = tarn_call_write(call, tarn_flight_pack(&response.base));
    if (s != TARN_OK)
        tarn_merge_remove_index_files(op, &table, result.indexes, result.index_count);
    return s;
}

struct tarn_status *tarn_flight__delete(void *self, struct tarn_op *op, struct tarn_call *call)
{
    return serve(op, self, call);
}
