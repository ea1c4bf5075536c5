/*
 * Rows that come in key order are written as they come: one file, nothing spilled, as right as any other; where
 * the order breaks, later rows still win; a failure leaves nothing behind.
 */
#include "test.h"
#include "batch.h"

#include "merge/internal.h"

struct fixture {
    struct tarn_test *t;
    struct tarn_store *store;
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_merge_table table;
    const struct tarn_type *types[3];
    struct tarn_table_writer *writer;
    struct tarn_manifest_entry *entries;
    size_t entry_count;
    int64_t next_sequence;
};

static struct tarn_status *next_sequence(void *arg, struct tarn_op *op, struct tarn_slice partition,
                                         int32_t bucket, int64_t count, int64_t *first)
{
    struct fixture *f = arg;
    *first = f->next_sequence;
    f->next_sequence += count;
    return TARN_OK;
}

/* A table of (id, v); a writer that is full after a few batches and may not spill. */
static void open_writer(struct tarn_test *t, struct fixture *f, const char *id_type)
{
    static const struct tarn_pair options[] = {
        {{(const uint8_t *)"bucket", 6}, {(const uint8_t *)"1", 1}}};
    struct tarn_schema draft = {.options = options, .option_count = 1, .primary_key_count = 1};
    struct tarn_slice *key = tarn_arena_calloc(t->arena, 1, sizeof *key);
    const struct tarn_field *fields;

    memset(f, 0, sizeof *f);
    f->t = t;
    *key = tarn_slice_str("id");
    draft.primary_keys = key;
    expect_ok(tarn_store_open("memory:", &f->store));
    expect_ok(tarn_columns_parse(
        tarn_slice_str(tarn_arena_printf(t->arena, "id %s, v BIGINT NOT NULL", id_type)), t->arena,
        &fields, &draft.field_count));
    draft.fields = fields;
    expect_ok(tarn_schema_create(&draft, 0, t->arena, &f->schema));
    expect_ok(tarn_options_parse(&f->schema, t->arena, &f->options));
    f->table = (struct tarn_merge_table){
        .store = f->store, .path = "db.db/t", .schema = &f->schema, .options = &f->options};
    f->types[0] = f->schema.fields[0].type;
    f->types[1] = f->schema.fields[1].type;
    f->types[2] = &tarn_merge__kind_type;
    struct tarn_write_spec spec = {
        .sequence = next_sequence, .sequence_arg = f, .buffer_size = 4096};
    expect_ok(tarn_table_writer_open(t->op, &f->table, &spec, &f->writer));
}

/* `count` rows from `first` on, `v` being `value`; in batches of 50. */
static struct tarn_status *add(struct fixture *f, int64_t first, int64_t count, int64_t value,
                               bool text)
{
    struct tarn_value rows[150];

    for (int64_t done = 0, n; done < count; done += n) {
        n = TARN_MIN(INT64_C(50), count - done);
        for (int64_t i = 0; i < n; i++) {
            rows[3 * i] = text ? tarn_test_text(tarn_arena_printf(
                                     f->t->arena, "a long beginning %06" PRId64, first + done + i))
                               : tarn_test_int(first + done + i);
            rows[3 * i + 1] = tarn_test_int(value);
            rows[3 * i + 2] = tarn_test_int(0);
        }
        struct tarn_batch *batch = tarn_test_batch(f->types, 3, rows, n);
        struct tarn_status *s = tarn_table_writer_add(f->writer, f->t->op, batch);
        tarn_batch_unref(batch);
        TARN_TRY(s);
    }
    return TARN_OK;
}

static void finish(struct fixture *f)
{
    expect_ok(
        tarn_table_writer_finish(f->writer, f->t->op, f->t->arena, &f->entries, &f->entry_count));
    tarn_table_writer_free(f->writer);
}

static void read_back(struct fixture *f, int64_t *row_count, int64_t *sum)
{
    const int columns[] = {1};
    struct tarn_merge_split split = {
        .partition = f->entries[0].partition, .files = f->entries, .file_count = f->entry_count};
    struct tarn_scan_spec spec = {.columns = columns, .column_count = 1, .limit = -1};
    struct tarn_source *source;

    *row_count = *sum = 0;
    expect_ok(tarn_scan_open(f->t->op, &f->table, &split, 1, &spec, &source));
    for (;;) {
        struct tarn_batch *batch;
        expect_ok(source->next(source, f->t->op, &batch));
        if (batch == NULL)
            break;
        for (int64_t i = 0; i < batch->row_count; i++) {
            struct tarn_value v =
                tarn_test_value(f->t->arena, f->types[1], tarn_batch_column(batch, 0), i);
            *sum += v.integer;
        }
        *row_count += batch->row_count;
        tarn_batch_unref(batch);
    }
    source->close(source);
    tarn_store_drop(&f->store);
}

TARN_TEST(order, rows_in_order_become_one_file)
{
    for (int text = 0; text < 2; text++) {
        struct fixture f;
        int64_t rows, sum;

        open_writer(t, &f, text ? "STRING" : "BIGINT");
        expect_ok(add(&f, 0, 5000, 1, text));
        finish(&f);
        expect_int(f.entry_count, 1);
        expect_int(f.entries[0].file.row_count, 5000);
        expect_int(f.entries[0].file.min_sequence, 0);
        expect_int(f.entries[0].file.max_sequence, 4999);
        read_back(&f, &rows, &sum);
        expect_int(rows, 5000);
        expect_int(sum, 5000);
    }
}

TARN_TEST(order, later_rows_win_where_it_breaks)
{
    struct fixture f;
    int64_t rows, sum;

    open_writer(t, &f, "BIGINT");
    expect_ok(add(&f, 0, 2000, 1, false));
    expect_ok(add(&f, 100, 10, 100, false)); /* goes back: ten rows anew */
    expect_ok(add(&f, 2000, 500, 1, false));
    finish(&f);
    expect_true(f.entry_count >= 2);
    for (size_t i = 1; i < f.entry_count; i++)
        expect_true(f.entries[i].file.min_sequence > f.entries[0].file.max_sequence);
    read_back(&f, &rows, &sum);
    expect_int(rows, 2500);
    expect_int(sum, 2490 + 1000);
}

/* A key that comes twice, first in one batch and then in the next, is one row. */
TARN_TEST(order, the_same_key_again_breaks_it)
{
    struct fixture f;
    int64_t rows, sum;

    open_writer(t, &f, "BIGINT");
    expect_ok(add(&f, 0, 1000, 1, false));
    expect_ok(add(&f, 999, 1000, 2, false));
    finish(&f);
    read_back(&f, &rows, &sum);
    expect_int(rows, 1999);
    expect_int(sum, 999 + 2000);
}

TARN_TEST(order, a_failure_leaves_no_file)
{
    struct fixture f;
    struct tarn_object *objects;
    size_t count;
    struct tarn_value bad[] = {tarn_test_int(9000), tarn_test_null(), tarn_test_int(0)};

    open_writer(t, &f, "BIGINT");
    expect_ok(add(&f, 0, 2000, 1, false));
    expect_ok(add(&f, 0, 2000, 1, false)); /* the first file is finished */
    struct tarn_batch *batch = tarn_test_batch(f.types, 3, bad, 1);
    expect_status(tarn_table_writer_add(f.writer, t->op, batch), TARN_VALUE_INVALID, "v");
    tarn_batch_unref(batch);
    tarn_table_writer_free(f.writer);
    expect_ok(tarn_store_list(f.store, t->op, "", true, &objects, &count));
    expect_int(count, 0);
    tarn_store_drop(&f.store);
}
