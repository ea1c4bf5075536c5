/*
 * Promise: rows of changes come with their kind in front, as the files have them and in the order in which
 * these are given; the difference of two states, put on top of the first, is the second, says nothing of rows that are the same,
 * and tells a changed row by what it was and what it is.
 */
#include "test.h"
#include "batch.h"

#include "merge/internal.h"

#define I(v) tarn_test_int(v)
#define T(v) tarn_test_text(v)
#define NONE tarn_test_null()
enum { INSERT, BEFORE, AFTER, DELETED };

struct fixture {
    struct tarn_test *t;
    struct tarn_store *store;
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_merge_table table;
    const struct tarn_type **types; /* columns, then the row kind */
    int column_count;
    int64_t next_sequence;
};

static void make_table(struct tarn_test *t, struct fixture *f, const char *columns, const char *key)
{
    struct tarn_slice *keys = tarn_arena_calloc(t->arena, 1, sizeof *keys);
    struct tarn_pair *options = tarn_arena_calloc(t->arena, 1, sizeof *options);
    struct tarn_schema draft = {.options = options, .option_count = key != NULL};
    const struct tarn_field *fields;

    memset(f, 0, sizeof *f);
    f->t = t;
    keys[0] = tarn_slice_str(key);
    options[0] = (struct tarn_pair){tarn_slice_str("bucket"), tarn_slice_str("1")};
    expect_ok(tarn_store_open("memory:", &f->store));
    expect_ok(tarn_columns_parse(tarn_slice_str(columns), t->arena, &fields, &draft.field_count));
    draft.fields = fields;
    draft.primary_keys = keys;
    draft.primary_key_count = key != NULL;
    expect_ok(tarn_schema_create(&draft, 0, t->arena, &f->schema));
    expect_ok(tarn_options_parse(&f->schema, t->arena, &f->options));
    f->table = (struct tarn_merge_table){
        .store = f->store, .path = "db.db/t", .schema = &f->schema, .options = &f->options};
    f->column_count = (int)f->schema.field_count;
    f->types = tarn_arena_calloc(t->arena, f->schema.field_count + 1, sizeof *f->types);
    for (int i = 0; i < f->column_count; i++)
        f->types[i] = f->schema.fields[i].type;
    f->types[f->column_count] = &tarn_merge__kind_type;
}

static struct tarn_status *next_sequence(void *arg, struct tarn_op *op TARN_UNUSED,
                                         struct tarn_slice partition TARN_UNUSED,
                                         int32_t bucket TARN_UNUSED, int64_t count, int64_t *first)
{
    struct fixture *f = arg;
    *first = f->next_sequence;
    f->next_sequence += count;
    return TARN_OK;
}

/* One file of these rows (each with its kind behind the columns); in the arena. */
static struct tarn_manifest_entry file_of(struct fixture *f, const struct tarn_value *rows,
                                          int64_t count)
{
    struct tarn_write_spec spec = {.sequence = next_sequence,
                                   .sequence_arg = f,
                                   .buffer_size = 64 << 20,
                                   .scratch_dir = tarn_test_dir(f->t)};
    struct tarn_table_writer *writer;
    struct tarn_manifest_entry *entries;
    size_t n;
    struct tarn_batch *batch = tarn_test_batch(f->types, f->column_count + 1, rows, count);
    expect_ok(tarn_table_writer_open(f->t->op, &f->table, &spec, &writer));
    expect_ok(tarn_table_writer_add(writer, f->t->op, batch));
    tarn_batch_unref(batch);
    expect_ok(tarn_table_writer_finish(writer, f->t->op, f->t->arena, &entries, &n));
    tarn_table_writer_free(writer);
    expect_int(n, 1);
    return entries[0];
}

/* Rows as "+I 1|a", in order, with blanks between. */
static const char *read_changes(struct fixture *f, const struct tarn_merge_split *splits,
                                size_t count, const int *columns, size_t column_count,
                                const char *where, int64_t limit)
{
    struct tarn_test *t = f->t;
    struct tarn_predicate predicate;
    struct tarn_scan_spec spec = {.columns = columns, .column_count = column_count, .limit = limit};
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;
    struct tarn_buf text = {0};
    static const struct tarn_type kind = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};

    if (where != NULL) {
        expect_ok(tarn_predicate_parse(tarn_slice_str(where), &f->schema, t->arena, &predicate));
        spec.where = &predicate;
    }
    expect_ok(tarn_changes_open(t->op, &f->table, splits, count, &spec, &source));
    for (;;) {
        struct tarn_batch *batch;
        expect_ok(source->next(source, t->op, &batch));
        if (batch == NULL)
            break;
        expect_int(batch->column_count, column_count + 1);
        expect_true(batch->row_count > 0);
        for (int64_t r = 0; r < batch->row_count; r++) {
            struct tarn_value value =
                tarn_test_value(t->arena, &kind, tarn_batch_column(batch, 0), r);
            tarn_buf_printf(&text, "%s%.*s ", text.size == 0 ? "" : " ",
                            TARN_SLICE_ARG(value.bytes));
            for (size_t c = 0; c < column_count; c++) {
                const struct tarn_type *type = f->types[columns[c]];
                value = tarn_test_value(t->arena, type, tarn_batch_column(batch, (int)c + 1), r);
                tarn_buf_add_str(&text, c == 0 ? "" : "|");
                tarn_value_print(type, &value, &text);
            }
        }
        tarn_batch_unref(batch);
    }
    const char *out = tarn_arena_str(t->arena, tarn_buf_slice(&text));
    tarn_buf_drop(&text);
    return out;
}

static const int both[] = {0, 1}, second[] = {1};

TARN_TEST(changes, records_as_the_files_have_them)
{
    struct fixture f;
    make_table(t, &f, "id BIGINT NOT NULL, v STRING", "id");
    struct tarn_value a[] = {I(2), T("b"), I(INSERT), I(1), T("a"), I(INSERT)};
    struct tarn_value b[] = {I(1),      T("x"), I(AFTER), I(3),      NONE,
                             I(INSERT), I(2),   T("b"),   I(DELETED)};
    struct tarn_manifest_entry files[2];
    files[0] = file_of(&f, a, 2);
    files[1] = file_of(&f, b, 3);
    struct tarn_merge_split split = {
        .partition = files[0].partition, .files = files, .file_count = 2};
    expect_str(read_changes(&f, &split, 1, both, 2, NULL, -1),
               "+I 1|a +I 2|b +U 1|x -D 2|b +I 3|null");
    expect_str(read_changes(&f, &split, 1, second, 1, "id = 1", -1), "+I a +U x");
    expect_str(read_changes(&f, &split, 1, both, 2, NULL, 3), "+I 1|a +I 2|b +U 1|x");
    expect_str(read_changes(&f, &split, 1, both, 2, "v = 'b'", 1), "+I 2|b");
    tarn_store_unref(f.store);
}

TARN_TEST(changes, appended_rows_are_inserts)
{
    struct fixture f;
    make_table(t, &f, "id BIGINT, v STRING", NULL);
    struct tarn_value a[] = {I(2), T("b"), I(INSERT), I(1), T("a"), I(INSERT)};
    struct tarn_manifest_entry file = file_of(&f, a, 2);
    struct tarn_merge_split split = {.partition = file.partition, .files = &file, .file_count = 1};
    expect_str(read_changes(&f, &split, 1, both, 2, NULL, -1), "+I 2|b +I 1|a");
    struct tarn_value c[] = {I(7), T("c"), I(INSERT)};
    struct tarn_manifest_entry other = file_of(&f, c, 1);
    struct tarn_merge_split difference = {.partition = file.partition,
                                          .files = &other,
                                          .file_count = 1,
                                          .differs = true,
                                          .before_files = &file,
                                          .before_count = 1};
    expect_str(read_changes(&f, &difference, 1, both, 2, NULL, -1), "-D 2|b -D 1|a +I 7|c");
    tarn_store_unref(f.store);
}

TARN_TEST(changes, a_difference_is_of_rows)
{
    struct fixture f;
    make_table(t, &f, "id BIGINT NOT NULL, v STRING", "id");
    struct tarn_value a[] = {I(1), T("a"), I(INSERT), I(2), T("b"), I(INSERT),
                             I(3), NONE,   I(INSERT), I(4), T(""),  I(INSERT)};
    struct tarn_value b[] = {I(1),      T("a"),    I(INSERT), I(2),      T("bb"),
                             I(INSERT), I(3),      NONE,      I(INSERT), I(4),
                             NONE,      I(INSERT), I(5),      T("e"),    I(INSERT)};
    struct tarn_value c[] = {I(1), T("a"), I(DELETED)};
    struct tarn_manifest_entry files[3] = {file_of(&f, a, 4), file_of(&f, b, 5), file_of(&f, c, 1)};
    struct tarn_merge_split split = {.partition = files[0].partition,
                                     .files = files,
                                     .file_count = 3,
                                     .differs = true,
                                     .before_files = files,
                                     .before_count = 1};
    /* 1 went, 2 and 4 are others, 3 is as it was, 5 came */
    expect_str(read_changes(&f, &split, 1, both, 2, NULL, -1),
               "-D 1|a -U 2|b +U 2|bb -U 4| +U 4|null +I 5|e");
    expect_str(read_changes(&f, &split, 1, both, 2, "id >= 4", -1), "-U 4| +U 4|null +I 5|e");
    expect_str(read_changes(&f, &split, 1, second, 1, NULL, 2), "-D a -U b");
    split.file_count = 1;
    expect_str(read_changes(&f, &split, 1, both, 2, NULL, -1), "");
    split.before_count = 0;
    expect_str(read_changes(&f, &split, 1, both, 2, NULL, -1), "+I 1|a +I 2|b +I 3|null +I 4|");
    split.before_count = 3;
    split.file_count = 0;
    expect_str(read_changes(&f, &split, 1, both, 2, NULL, -1),
               "-D 2|bb -D 3|null -D 4|null -D 5|e");
    tarn_store_unref(f.store);
}

/* Random states of many batches: the difference, put on the first, is the second. */
TARN_TEST(changes, a_difference_leads_from_one_state_to_the_other)
{
    enum { KEYS = 20000 };
    struct fixture f;
    static int64_t before[KEYS], after[KEYS]; /* 0: no row */
    make_table(t, &f, "id BIGINT NOT NULL, v BIGINT", "id");
    memset(before, 0, sizeof before);
    struct tarn_manifest_entry files[4];
    struct tarn_value *rows = tarn_arena_calloc(t->arena, KEYS * 3, sizeof *rows);
    for (int n = 0; n < 4; n++) {
        int64_t count = 0;
        if (n == 2)
            memcpy(after, before, sizeof after);
        int64_t *state = n < 2 ? before : after;
        for (int64_t id = 0; id < KEYS; id++) {
            if (!tarn_test_random_one_in(t, 2))
                continue;
            bool gone = tarn_test_random_one_in(t, 3);
            state[id] = gone ? 0 : (int64_t)tarn_test_random_below(t, 3) + 1;
            rows[count * 3] = I(id);
            rows[count * 3 + 1] = I(gone ? 9 : state[id]);
            rows[count * 3 + 2] = I(gone ? DELETED : INSERT);
            count++;
        }
        files[n] = file_of(&f, rows, count);
    }
    struct tarn_merge_split split = {.partition = files[0].partition,
                                     .files = files,
                                     .file_count = 4,
                                     .differs = true,
                                     .before_files = files,
                                     .before_count = 2};
    struct tarn_scan_spec spec = {.columns = both, .column_count = 2, .limit = -1};
    struct tarn_source *source;
    expect_ok(tarn_changes_open(t->op, &f.table, &split, 1, &spec, &source));
    for (;;) {
        struct tarn_batch *batch;
        expect_ok(source->next(source, t->op, &batch));
        if (batch == NULL)
            break;
        const struct ArrowArray *kinds = tarn_batch_column(batch, 0);
        const char *text = (const char *)kinds->buffers[2];
        for (int64_t r = 0; r < batch->row_count; r++) {
            struct tarn_value id =
                tarn_test_value(t->arena, f.types[0], tarn_batch_column(batch, 1), r);
            struct tarn_value v =
                tarn_test_value(t->arena, f.types[1], tarn_batch_column(batch, 2), r);
            char sign = text[(kinds->offset + r) * 2], what = text[(kinds->offset + r) * 2 + 1];
            int64_t *row = &before[id.integer];
            if (sign == '-') {
                expect_int(*row, v.integer);
                *row = what == 'U' ? -1 : 0; /* an update's other half must follow */
            } else {
                expect_int(*row, what == 'U' ? -1 : 0);
                *row = v.integer;
            }
        }
        tarn_batch_unref(batch);
    }
    tarn_source_drop(&source);
    for (int64_t id = 0; id < KEYS; id++)
        expect_int(before[id], after[id]);
    tarn_store_unref(f.store);
}
