/* columnar_fixture - rows as JSON lines in, batches through the room, JSON lines out. */
#ifndef TARN_TEST_COLUMNAR_FIXTURE_H
#define TARN_TEST_COLUMNAR_FIXTURE_H

#include "columnar/columnar.h"
#include "test.h"

#define BATCHES_MAX 64

struct rows {
    const struct tarn_field *fields;
    size_t field_count;
    struct tarn_batch *batches[BATCHES_MAX];
    size_t count;
};

struct text_stream {
    struct tarn_slice text;
    size_t at, step; /* bytes a pull, 0: all */
};

static inline struct tarn_status *text_pull(void *arg, struct tarn_op *op, uint8_t *out,
                                            size_t size, size_t *got)
{
    struct text_stream *s = arg;
    size_t n = TARN_MIN(size, s->text.size - s->at);
    (void)op;
    if (s->step > 0)
        n = TARN_MIN(n, s->step);
    if (n > 0)
        memcpy(out, s->text.data + s->at, n);
    s->at += n;
    *got = n;
    return TARN_OK;
}

static inline struct tarn_status *buf_push(void *arg, struct tarn_op *op, struct tarn_slice bytes)
{
    (void)op;
    tarn_buf_add_slice(arg, bytes);
    return TARN_OK;
}

static inline struct rows rows_of(struct tarn_test *t, const char *columns)
{
    struct rows r = {0};
    expect_ok(tarn_columns_parse(tarn_slice_str(columns), t->arena, &r.fields, &r.field_count));
    return r;
}

static inline void rows_clear(struct rows *r)
{
    for (size_t i = 0; i < r->count; i++)
        tarn_batch_drop(&r->batches[i]);
    r->count = 0;
}

/* The batch without its last column, the row kinds, as files hold it. Shares nothing but the memory. */
static inline void drop_last(struct tarn_batch *b)
{
    struct ArrowArray *last = b->array.children[b->array.n_children - 1];
    if (last->release != NULL)
        last->release(last);
    last->release = NULL;
    b->array.n_children--;
    b->column_count--;
}

static inline struct tarn_status *rows_read(struct tarn_test *t, struct rows *r,
                                            const struct tarn_input_options *options,
                                            const char *path, struct tarn_slice text, size_t step,
                                            bool keep_kinds)
{
    struct text_stream stream = {text, 0, step};
    struct tarn_input *input = NULL;
    struct tarn_status *s =
        tarn_input_open(t->op, options, path, path == NULL ? text_pull : NULL, &stream, &input);
    while (s == TARN_OK) {
        struct tarn_batch *batch = NULL;
        s = tarn_input_next(input, t->op, &batch);
        if (batch == NULL)
            break;
        expect_true(r->count < BATCHES_MAX && batch->row_count > 0);
        if (!keep_kinds)
            drop_last(batch);
        r->batches[r->count++] = batch;
    }
    tarn_input_close(input);
    return s;
}

static inline struct tarn_input_options options_of(const struct rows *r,
                                                   enum tarn_data_format format)
{
    return (struct tarn_input_options){
        .format = format, .name = "in", .fields = r->fields, .field_count = r->field_count};
}

/* Rows from JSON lines; fails the test when one is bad. */
static inline struct rows rows_json(struct tarn_test *t, const char *columns, const char *lines)
{
    struct rows r = rows_of(t, columns);
    struct tarn_input_options options = options_of(&r, TARN_DATA_JSONL);
    expect_ok(rows_read(t, &r, &options, NULL, tarn_slice_str(lines), 0, false));
    return r;
}

/* Rows in some format; lies in the arena. */
static inline struct tarn_slice rows_print(struct tarn_test *t, const struct rows *r,
                                           enum tarn_data_format format)
{
    struct tarn_buf out = {0};
    struct tarn_output *output = NULL;
    expect_ok(tarn_output_open(t->op, format, r->fields, r->field_count, buf_push, &out, &output));
    for (size_t i = 0; i < r->count; i++)
        expect_ok(tarn_output_add(output, t->op, r->batches[i]));
    expect_ok(tarn_output_finish(output, t->op));
    tarn_output_close(output);
    struct tarn_slice text = tarn_arena_copy(t->arena, tarn_buf_slice(&out));
    tarn_buf_drop(&out);
    return text;
}

static inline struct tarn_status *file_write(struct tarn_test *t, struct tarn_store *store,
                                             const char *key, const struct rows *r,
                                             const char *compression,
                                             struct tarn_file_result *result)
{
    struct tarn_column_write *columns =
        tarn_arena_calloc(t->arena, r->field_count, sizeof *columns);
    struct tarn_file_writer *writer = NULL;
    for (size_t i = 0; i < r->field_count; i++)
        columns[i] =
            (struct tarn_column_write){r->fields[i].name, r->fields[i].id, r->fields[i].type};
    const char *extension = strrchr(key, '.');
    struct tarn_file_write spec = {
        extension == NULL ? "parquet" : extension + 1, compression, 1, 0, columns, r->field_count};
    TARN_TRY(tarn_file_writer_open(store, t->op, key, &spec, &writer));
    for (size_t i = 0; i < r->count; i++) {
        struct tarn_status *s = tarn_file_writer_add(writer, t->op, r->batches[i]);
        if (s != TARN_OK) {
            tarn_file_writer_abort(writer);
            return s;
        }
    }
    return tarn_file_writer_finish(writer, t->op, t->arena, result);
}

/* Reads `key`, written with the columns of `old`, as those of `r` (by name). */
static inline struct tarn_status *file_read(struct tarn_test *t, struct tarn_store *store,
                                            const char *key, const struct rows *old, struct rows *r,
                                            int64_t begin, int64_t end)
{
    struct tarn_column_read *columns = tarn_arena_calloc(t->arena, r->field_count, sizeof *columns);
    struct tarn_source *source = NULL;
    for (size_t i = 0; i < r->field_count; i++) {
        columns[i] =
            (struct tarn_column_read){r->fields[i].name, r->fields[i].type, r->fields[i].type};
        for (size_t j = 0; j < old->field_count; j++)
            if (tarn_slice_equal(old->fields[j].name, r->fields[i].name))
                columns[i].file_type = old->fields[j].type;
    }
    struct tarn_file_read spec = {columns, r->field_count, 0, begin, end};
    TARN_TRY(tarn_file_reader_open(store, t->op, key, &spec, &source));
    struct tarn_status *s = TARN_OK;
    for (;;) {
        struct tarn_batch *batch = NULL;
        s = source->next(source, t->op, &batch);
        if (s != TARN_OK || batch == NULL)
            break;
        expect_true(r->count < BATCHES_MAX);
        r->batches[r->count++] = batch;
    }
    tarn_source_drop(&source);
    return s;
}

#endif
