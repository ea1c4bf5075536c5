/*
 * scan - the rows of a plan, encoded, as a stream of messages.
 *
 * The encoder's bytes are gathered in pieces of TARN_WIRE_CHUNK_SIZE, each given to the transport as it is.
 * A slow reader stops the encoder, one that goes away ends it at the next piece or batch.
 */
#include "internal.h"

#define DATA_TAG 0x0a /* field 1 of ScanResponse, bytes */
#define ROWKIND "rowkind"
#define ROWKIND_FIELD_ID 0x3fffffff /* of no column of a table */

static const struct tarn_type rowkind_type = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};

struct scan {
    struct tarn_call *call;
    struct tarn_merge_table table;
    struct tarn_merge_split *splits;
    size_t split_count;
    int64_t file_count, row_count;
    bool changes;              /* a column rowkind stands in front of the others */
    struct tarn_field *fields; /* of the result */
    int *columns;
    size_t column_count;
    uint8_t *piece; /* owned: bytes not yet sent */
    size_t piece_size;
};

/* --- bytes out --- */

static struct tarn_status *send_piece(struct scan *scan)
{
    uint8_t head[6];
    size_t head_size = 0;

    if (scan->piece_size == 0)
        return TARN_OK;
    head[head_size++] = DATA_TAG;
    for (size_t left = scan->piece_size;; left >>= 7) {
        head[head_size++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
        if (left <= 0x7f)
            break;
    }
    struct tarn_slice body = tarn_slice_of(scan->piece, scan->piece_size);
    uint8_t *piece = tarn_move(scan->piece);
    scan->piece_size = 0;
    return tarn_call_write(scan->call,
                           tarn_message_wrap(tarn_slice_of(head, head_size), body, free, piece));
}

static struct tarn_status *push(void *arg, struct tarn_op *op TARN_UNUSED, struct tarn_slice bytes)
{
    struct scan *scan = arg;

    while (bytes.size > 0) {
        if (scan->piece == NULL)
            scan->piece = tarn_alloc(TARN_WIRE_CHUNK_SIZE);
        size_t n = TARN_MIN(bytes.size, TARN_WIRE_CHUNK_SIZE - scan->piece_size);
        memcpy(scan->piece + scan->piece_size, bytes.data, n);
        scan->piece_size += n;
        bytes = tarn_slice_of(bytes.data + n, bytes.size - n);
        if (scan->piece_size == TARN_WIRE_CHUNK_SIZE)
            TARN_TRY(send_piece(scan));
    }
    return TARN_OK;
}

/* --- what was asked for --- */

static struct tarn_status *unknown_column(const struct tarn_schema *schema, struct tarn_op *op,
                                          struct tarn_slice name)
{
    const char **names = tarn_arena_calloc(op->arena, schema->field_count + 1, sizeof *names);

    for (size_t i = 0; i < schema->field_count; i++)
        names[i] = tarn_arena_str(op->arena, schema->fields[i].name);
    const char *nearest = tarn_nearest(tarn_arena_str(op->arena, name), names, schema->field_count);
    return tarn_status_new(TARN_COLUMN_NOT_FOUND, "there is no column %.*s%s%s%s",
                           TARN_SLICE_ARG(name), nearest == NULL ? "" : "; did you mean ",
                           nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
}

static struct tarn_status *choose_columns(struct scan *scan, struct tarn_op *op,
                                          const Tarn__V1__ScanRequest *request)
{
    const struct tarn_schema *schema = scan->table.schema;
    size_t n = request->n_columns == 0 ? schema->field_count : request->n_columns;

    if (n > schema->field_count)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%zu columns of %zu", n, schema->field_count);
    scan->columns = tarn_arena_calloc(op->arena, n + 1, sizeof *scan->columns);
    scan->fields = tarn_arena_calloc(op->arena, n + 2, sizeof *scan->fields);
    if (scan->changes)
        scan->fields[0] = (struct tarn_field){
            .id = ROWKIND_FIELD_ID, .name = tarn_slice_str(ROWKIND), .type = &rowkind_type};
    bool *taken = tarn_arena_calloc(op->arena, schema->field_count + 1, sizeof *taken);
    for (size_t i = 0; i < n; i++) {
        int column = (int)i;
        if (request->n_columns > 0) {
            struct tarn_slice name = tarn_flight_slice(request->columns[i]);
            column = tarn_schema_find(schema, name);
            if (column < 0)
                return unknown_column(schema, op, name);
            if (taken[column])
                return tarn_status_new(TARN_INVALID_ARGUMENT, "column %.*s is asked for twice",
                                       TARN_SLICE_ARG(name));
        }
        taken[column] = true;
        if (scan->changes && tarn_slice_is(schema->fields[column].name, ROWKIND))
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "the table has a column " ROWKIND
                                   ", as changes have in front: choose the other columns");
        scan->columns[i] = column;
        scan->fields[i + scan->changes] = schema->fields[column];
    }
    scan->column_count = n;
    return TARN_OK;
}

struct tarn_status *tarn_flight__splits(Tarn__V1__SplitTask *const *splits, size_t count,
                                        struct tarn_arena *arena, struct tarn_merge_split **out)
{
    *out = tarn_arena_calloc(arena, count + 1, sizeof **out);
    for (size_t i = 0; i < count; i++) {
        const Tarn__V1__SplitTask *from = splits[i];
        struct tarn_merge_split *to = &(*out)[i];
        struct tarn_manifest_entry *files;

        to->partition = tarn_flight_slice(from->partition);
        to->bucket = from->bucket;
        to->raw = from->raw != 0;
        TARN_TRY(tarn_flight_entries_unpack(from->files, from->n_files, to->partition, to->bucket,
                                            arena, &files));
        to->files = files;
        to->file_count = from->n_files;
        to->differs = from->differs != 0;
        TARN_TRY(tarn_flight_entries_unpack(from->before_files, from->n_before_files, to->partition,
                                            to->bucket, arena, &files));
        to->before_files = files;
        to->before_count = from->n_before_files;
    }
    return TARN_OK;
}

static struct tarn_status *read_splits(struct scan *scan, struct tarn_op *op,
                                       const Tarn__V1__ScanTask *task)
{
    scan->split_count = task->n_splits;
    TARN_TRY(tarn_flight__splits(task->splits, task->n_splits, op->arena, &scan->splits));
    for (size_t i = 0; i < task->n_splits; i++)
        scan->file_count += (int64_t)(scan->splits[i].file_count + scan->splits[i].before_count);
    return TARN_OK;
}

static struct tarn_status *open_source(struct scan *scan, struct tarn_op *op,
                                       struct tarn_flight *flight,
                                       const Tarn__V1__ScanRequest *request,
                                       struct tarn_source **out)
{
    struct tarn_predicate *where = tarn_arena_calloc(op->arena, 1, sizeof *where);
    bool limited = request->_limit_case == TARN__V1__SCAN_REQUEST___LIMIT_LIMIT;

    if (request->task == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a scan without a task: ask the daemon for it");
    TARN_TRY(tarn_flight_table_open(flight->options.tables, request->task->table, op->arena,
                                    &scan->table));
    scan->changes = request->task->changes != 0;
    TARN_TRY(choose_columns(scan, op, request));
    if (request->where[0] != '\0')
        TARN_TRY(tarn_predicate_parse(tarn_slice_str(request->where), scan->table.schema, op->arena,
                                      where));
    if (limited && request->limit < 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the limit is %" PRId64, request->limit);
    TARN_TRY(read_splits(scan, op, request->task));
    struct tarn_scan_spec spec = {
        .columns = scan->columns,
        .column_count = scan->column_count,
        .where = request->where[0] == '\0' ? NULL : where,
        .limit = limited ? request->limit : -1,
        .scratch_dir = flight->options.scratch_dir,
    };
    if (scan->changes)
        return tarn_changes_open(op, &scan->table, scan->splits, scan->split_count, &spec, out);
    return tarn_scan_open(op, &scan->table, scan->splits, scan->split_count, &spec, out);
}

/* --- rows out --- */

static size_t field_count(const struct scan *scan)
{
    return scan->column_count + scan->changes;
}

static struct tarn_status *encode_rows(struct scan *scan, struct tarn_op *op,
                                       struct tarn_source *source, struct tarn_output *output)
{
    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;

        TARN_TRY(tarn_op_check(op));
        TARN_TRY(source->next(source, op, &batch));
        if (batch == NULL)
            return tarn_output_finish(output, op);
        scan->row_count += batch->row_count;
        TARN_TRY(tarn_output_add(output, op, batch));
    }
}

static struct tarn_status *send_summary(struct scan *scan, struct tarn_op *op, int64_t snapshot_id)
{
    Tarn__V1__ScanResponse response = TARN__V1__SCAN_RESPONSE__INIT;
    Tarn__V1__ScanSummary summary = TARN__V1__SCAN_SUMMARY__INIT;

    summary.snapshot_id = snapshot_id;
    summary.rows = scan->row_count;
    summary.files = scan->file_count;
    summary.fields = tarn_flight__fields(scan->fields, field_count(scan), op->arena);
    summary.n_fields = field_count(scan);
    response.summary = &summary;
    return tarn_call_write(scan->call, tarn_flight_pack(&response.base));
}

static void output_drop(struct tarn_output **output)
{
    if (*output != NULL)
        tarn_output_close(*output);
}

static struct tarn_status *serve(struct scan *scan, struct tarn_op *op, struct tarn_flight *flight)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;
    TARN_OWN(output_drop) struct tarn_output *output = NULL;
    enum tarn_data_format format;
    const void *decoded;

    TARN_TRY(tarn_call_read(scan->call, &message));
    if (message == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "no request");
    TARN_TRY(tarn_flight_unpack(&tarn__v1__scan_request__descriptor, tarn_message_bytes(message),
                                op->arena, &decoded));
    const Tarn__V1__ScanRequest *request = decoded;
    tarn_message_drop(&message);
    TARN_TRY(tarn_flight__format((int)request->format, &format));
    TARN_TRY(open_source(scan, op, flight, request, &source));
    TARN_TRY(tarn_output_open(op, format, scan->fields, field_count(scan), push, scan, &output));
    TARN_TRY(encode_rows(scan, op, source, output));
    TARN_TRY(send_piece(scan));
    return send_summary(scan, op, request->task->snapshot_id);
}

struct tarn_status *tarn_flight__scan(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct scan scan = {.call = call};
    struct tarn_status *s = serve(&scan, op, self);

    free(scan.piece);
    return s;
}
