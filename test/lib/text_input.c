#include "test/lib/text_input.h"

struct stream {
    struct tarn_slice text;
    size_t at, step;
};

static struct tarn_status *pull(void *arg, struct tarn_op *op, uint8_t *out, size_t size,
                                size_t *got)
{
    struct stream *s = arg;
    size_t n = TARN_MIN(size, s->step);
    n = TARN_MIN(n, s->text.size - s->at);
    (void)op;
    if (n > 0)
        memcpy(out, s->text.data + s->at, n);
    s->at += n;
    *got = n;
    return TARN_OK;
}

static struct tarn_status *push(void *arg, struct tarn_op *op, struct tarn_slice bytes)
{
    (void)op;
    tarn_buf_add_slice(arg, bytes);
    return TARN_OK;
}

/* Reads `text` and appends what it holds, printed again, to *out. */
static struct tarn_status *carry(struct tarn_op *op, struct tarn_input_options *options,
                                 struct tarn_slice text, size_t step, struct tarn_buf *out)
{
    struct stream stream = {text, 0, step};
    struct tarn_input *input = NULL;
    struct tarn_output *output = NULL;
    struct tarn_status *s = tarn_input_open(op, options, NULL, pull, &stream, &input);
    static const struct tarn_type kind_type = {.id = TARN_TYPE_TINYINT};
    struct tarn_field fields[8];
    memcpy(fields, options->fields, options->field_count * sizeof *fields);
    fields[options->field_count] =
        (struct tarn_field){.name = tarn_slice_str("rowkind"), .type = &kind_type};
    if (s == NULL)
        s = tarn_output_open(op, options->format, fields, options->field_count + 1, push, out,
                             &output);
    while (s == NULL) {
        struct tarn_batch *batch = NULL;
        s = tarn_input_next(input, op, &batch);
        if (s != NULL || batch == NULL)
            break;
        s = tarn_output_add(output, op, batch);
        tarn_batch_drop(&batch);
    }
    if (s == NULL)
        s = tarn_output_finish(output, op);
    tarn_output_close(output);
    tarn_input_close(input);
    return s;
}

void tarn_test_text_input(enum tarn_data_format format, const char *columns, struct tarn_slice text)
{
    struct tarn_op op;
    struct tarn_input_options options = {.format = format, .name = "in", .skip_bad_max = 1000000};
    struct tarn_buf whole = {0}, parts = {0};
    tarn_op_init(&op);
    struct tarn_status *s = tarn_columns_parse(tarn_slice_str(columns), op.arena, &options.fields,
                                               &options.field_count);
    tarn_assert(s == NULL);
    s = carry(&op, &options, text, SIZE_MAX, &whole);
    struct tarn_status *again = carry(&op, &options, text, 1, &parts);
    tarn_assert((s == NULL) == (again == NULL));
    tarn_assert(s != NULL || tarn_slice_equal(tarn_buf_slice(&whole), tarn_buf_slice(&parts)));
    tarn_status_free(s);
    tarn_status_free(again);
    tarn_buf_drop(&whole);
    tarn_buf_drop(&parts);
    tarn_op_fini(&op);
}
