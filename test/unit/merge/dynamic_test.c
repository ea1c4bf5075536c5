/*
 * Promise: a key's bucket is what its partition's hash index says; a new key goes into the first bucket that isn't full,
 * and each partition counts for itself; what is put is what Paimon's own writer puts; files that can't be committed are
 * written again with all their rows; a key that moves to another partition is deleted where it was; a writer that fails
 * leaves nothing.
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
    const struct tarn_type *types[4];
    int64_t next_sequence;
    struct tarn_manifest_entry *entries;
    size_t entry_count;
    struct tarn_index_file *indexes;
    size_t index_count;
    struct tarn_merge_split *known;
    size_t known_count;
};

static struct tarn_status *next_sequence(void *arg, struct tarn_op *op TARN_UNUSED,
                                         struct tarn_slice partition TARN_UNUSED,
                                         int32_t bucket TARN_UNUSED, int64_t count, int64_t *first)
{
    struct fixture *f = arg;
    *first = f->next_sequence;
    f->next_sequence += count;
    return TARN_OK;
}

static void fixture_fini(struct fixture *f)
{
    tarn_store_unref(f->store);
}

/* A table of (p, id, v), by p; key_count 1: its key is the id alone. */
static void setup_keys(struct tarn_test *t, struct fixture *f, const char *rows, const char *most,
                       size_t key_count)
{
    struct tarn_pair *options = tarn_arena_calloc(t->arena, 3, sizeof *options);
    struct tarn_slice *keys = tarn_arena_calloc(t->arena, 2, sizeof *keys);
    struct tarn_schema draft = {.options = options,
                                .option_count = 3,
                                .primary_keys = keys + 2 - key_count,
                                .primary_key_count = key_count,
                                .partition_keys = keys,
                                .partition_key_count = 1};
    const struct tarn_field *fields;

    *f = (struct fixture){.t = t};
    options[0] = (struct tarn_pair){tarn_slice_str("bucket"), tarn_slice_str("-1")};
    options[1] =
        (struct tarn_pair){tarn_slice_str("dynamic-bucket.target-row-num"), tarn_slice_str(rows)};
    options[2] =
        (struct tarn_pair){tarn_slice_str("dynamic-bucket.max-buckets"), tarn_slice_str(most)};
    keys[0] = tarn_slice_str("p");
    keys[1] = tarn_slice_str("id");
    expect_ok(tarn_store_open("memory:", &f->store));
    expect_ok(tarn_columns_parse(tarn_slice_str("p INT NOT NULL, id INT NOT NULL, v BIGINT"),
                                 t->arena, &fields, &draft.field_count));
    draft.fields = fields;
    expect_ok(tarn_schema_create(&draft, 0, t->arena, &f->schema));
    expect_ok(tarn_options_parse(&f->schema, t->arena, &f->options));
    f->table = (struct tarn_merge_table){
        .store = f->store, .path = "db.db/t", .schema = &f->schema, .options = &f->options};
    for (int i = 0; i < 3; i++)
        f->types[i] = f->schema.fields[i].type;
    f->types[3] = &tarn_merge__kind_type;
}

static void setup(struct tarn_test *t, struct fixture *f, const char *rows, const char *most)
{
    setup_keys(t, f, rows, most, 2);
}

static struct tarn_table_writer *open_writer(struct fixture *f)
{
    struct tarn_write_spec spec = {.sequence = next_sequence,
                                   .sequence_arg = f,
                                   .buffer_size = 1 << 20,
                                   .indexes = f->indexes,
                                   .index_count = f->index_count,
                                   .known = f->known,
                                   .known_count = f->known_count};
    struct tarn_table_writer *writer;
    expect_ok(tarn_table_writer_open(f->t->op, &f->table, &spec, &writer));
    return writer;
}

static struct tarn_status *add(struct fixture *f, struct tarn_table_writer *writer, int p,
                               int first, int count, int64_t v)
{
    struct tarn_value *rows = tarn_arena_calloc(f->t->arena, (size_t)count * 4, sizeof *rows);

    for (int i = 0; i < count; i++) {
        rows[4 * i] = tarn_test_int(p);
        rows[4 * i + 1] = tarn_test_int(first + i);
        rows[4 * i + 2] = tarn_test_int(v);
        rows[4 * i + 3] = tarn_test_int(0);
    }
    struct tarn_batch *batch = tarn_test_batch(f->types, 4, rows, count);
    struct tarn_status *s = tarn_table_writer_add(writer, f->t->op, batch);
    tarn_batch_unref(batch);
    return s;
}

/* Entries and index files of the writer; the latter replace those of their buckets, as a commit does. */
static void finish(struct fixture *f, struct tarn_table_writer *writer)
{
    const struct tarn_index_file *made;
    size_t made_count;
    struct tarn_index_file *combined;

    expect_ok(
        tarn_table_writer_finish(writer, f->t->op, f->t->arena, &f->entries, &f->entry_count));
    tarn_table_writer_indexes(writer, &made, &made_count);
    struct tarn_index_file *copies = tarn_arena_calloc(f->t->arena, made_count + 1, sizeof *copies);
    for (size_t i = 0; i < made_count; i++) {
        copies[i] = made[i];
        copies[i].partition = tarn_arena_copy(f->t->arena, made[i].partition);
        copies[i].name = tarn_arena_copy(f->t->arena, made[i].name);
    }
    expect_ok(tarn_index_combine(f->indexes, f->index_count, copies, made_count, true, f->t->arena,
                                 &combined, &f->index_count));
    f->indexes = combined;
    tarn_table_writer_free(writer);
}

static void load(struct fixture *f, int p, int first, int count, int64_t v)
{
    struct tarn_table_writer *writer = open_writer(f);
    expect_ok(add(f, writer, p, first, count, v));
    finish(f, writer);
}

static int64_t rows_of_bucket(const struct fixture *f, int32_t bucket)
{
    int64_t rows = 0;
    for (size_t i = 0; i < f->entry_count; i++)
        rows += f->entries[i].bucket == bucket ? f->entries[i].file.row_count : 0;
    return rows;
}

TARN_TEST(dynamic, fills_one_bucket_after_the_other_in_each_partition)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(t, &f, "5", "4");
    for (int p = 1; p <= 2; p++) { /* trap K46 */
        load(&f, p, 0, 20, 1);
        for (int b = 0; b < 4; b++)
            expect_int(rows_of_bucket(&f, b), 5);
        expect_int(f.entries[0].total_buckets, -1);
    }
    expect_int(f.index_count, 8);
    load(&f, 1, 100, 2, 1); /* all are full, and there may be no more */
    expect_int(f.index_count, 8);
    expect_int(f.entry_count, 2);
}

TARN_TEST(dynamic, leaves_keys_where_they_are)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(t, &f, "5", "-1");
    load(&f, 1, 0, 12, 1);
    expect_int(rows_of_bucket(&f, 2), 2);
    f.options.dynamic_bucket_rows = 100;
    struct tarn_index_file *before = f.indexes;
    load(&f, 1, 3, 9, 2); /* known ones */
    expect_int(rows_of_bucket(&f, 0), 2);
    expect_int(rows_of_bucket(&f, 1), 5);
    expect_int(rows_of_bucket(&f, 2), 2);
    for (size_t i = 0; i < 3; i++)
        expect_bytes(f.indexes[i].name, before[i].name);
    load(&f, 1, 10, 5, 3); /* 10 and 11 are known, 12 to 14 go where there is room */
    expect_int(rows_of_bucket(&f, 2), 2);
    expect_int(rows_of_bucket(&f, 0), 3);
}

/* docs/format.md, "Dynamic buckets": keys INT 1 and 2. */
TARN_TEST(dynamic, puts_what_paimon_puts)
{
    TARN_OWN(fixture_fini) struct fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    setup(t, &f, "5", "-1");
    load(&f, 7, 1, 2, 1);
    expect_int(f.index_count, 1);
    expect_int(f.indexes[0].size, 8);
    expect_int(f.indexes[0].row_count, 2);
    const char *key =
        tarn_arena_printf(t->arena, "db.db/t/index/%.*s", TARN_SLICE_ARG(f.indexes[0].name));
    expect_ok(tarn_store_get(f.store, t->op, key, &bytes));
    expect_int(bytes.size, 8);
    expect_true(memcmp(bytes.data, "\x57\x59\xf9\x9e\x4f\xe4\xbb\xf0", 8) == 0 ||
                memcmp(bytes.data, "\x4f\xe4\xbb\xf0\x57\x59\xf9\x9e", 8) == 0);
}

TARN_TEST(dynamic, writes_again_what_was_assigned_by_an_old_index)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(t, &f, "3", "-1");
    struct tarn_table_writer *late = open_writer(&f);
    expect_ok(add(&f, late, 1, 0, 6, 7)); /* 0-2 to bucket 0, 3-5 to bucket 1 */
    load(&f, 1, 4, 3, 1);                 /* another one came first: 4-6 to bucket 0 */
    struct tarn_index_file *present = f.indexes;
    size_t present_count = f.index_count;
    finish(&f, late);
    struct tarn_manifest_entry *old = f.entries;
    size_t old_count = f.entry_count;
    f.indexes = present;
    f.index_count = present_count;
    struct tarn_table_writer *again = open_writer(&f);
    expect_ok(tarn_table_writer_add_files(again, t->op, &f.table, old, old_count));
    finish(&f, again);
    expect_int(rows_of_bucket(&f, 0), 2); /* 4 and 5 */
    expect_int(rows_of_bucket(&f, 1), 3);
    expect_int(rows_of_bucket(&f, 2), 1);
}

/* The rows of one file, "id kind id kind", in order. */
static const char *rows_of_file(struct fixture *f, const struct tarn_manifest_entry *file)
{
    struct tarn_merge_layout layout;
    const int columns[] = {0, 1};
    struct tarn_merge_run_spec spec;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};

    expect_ok(tarn_merge__layout_make(&f->table, f->t->arena, &layout));
    spec = (struct tarn_merge_run_spec){.layout = &layout,
                                        .files = &file,
                                        .file_count = 1,
                                        .columns = columns,
                                        .column_count = 2,
                                        .with_system = true};
    struct tarn_merge_input *input = tarn_merge__run_new(&spec);
    for (;;) {
        struct tarn_batch *batch;
        uint32_t place;
        expect_ok(input->next(input, f->t->op, &batch, &place));
        if (batch == NULL)
            break;
        for (int64_t i = 0; i < batch->row_count; i++)
            tarn_buf_printf(
                &text, "%" PRId32 "/%" PRId32 "%s ",
                ((const int32_t *)tarn_batch_column(batch, 0)->buffers[1])[i],
                ((const int32_t *)tarn_batch_column(batch, 1)->buffers[1])[i],
                ((const int8_t *)tarn_batch_column(batch, 3)->buffers[1])[i] == 3 ? "-" : "+");
        tarn_batch_unref(batch);
    }
    input->close(input);
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

/* Rows of all files of the load, in order of partitions. */
static const char *rows_of_load(struct fixture *f)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (int p = 1; p <= 3; p++) {
        struct tarn_value value = tarn_test_int(p);
        TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
        tarn_row_serialize(f->types, &value, 1, &row);
        for (size_t i = 0; i < f->entry_count; i++)
            if (tarn_slice_equal(f->entries[i].partition, tarn_buf_slice(&row)))
                tarn_buf_add_str(&text, rows_of_file(f, &f->entries[i]));
    }
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

TARN_TEST(cross, a_key_leaves_where_it_was)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup_keys(t, &f, "100", "-1", 1);
    load(&f, 1, 0, 3, 1);
    expect_str(rows_of_load(&f), "1/0+ 1/1+ 1/2+ ");
    expect_int(f.index_count, 0); /* nothing on disk says where keys are */
    expect_int(f.entries[0].total_buckets, -1);
    f.known = tarn_arena_calloc(t->arena, 1, sizeof *f.known);
    f.known[0] = (struct tarn_merge_split){
        .partition = f.entries[0].partition, .files = f.entries, .file_count = f.entry_count};
    f.known_count = 1;
    struct tarn_table_writer *writer = open_writer(&f);
    expect_ok(add(&f, writer, 2, 1, 3, 2)); /* 1 and 2 move, 3 is new */
    expect_ok(add(&f, writer, 3, 2, 1, 3)); /* 2 goes on */
    expect_ok(add(&f, writer, 1, 0, 1, 4)); /* 0 stays */
    finish(&f, writer);
    expect_str(rows_of_load(&f), "1/0+ 1/1- 1/2- 2/1+ 2/2- 2/3+ 3/2+ ");
}

TARN_TEST(cross, a_key_that_comes_back_is_there)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup_keys(t, &f, "100", "-1", 1);
    struct tarn_table_writer *writer = open_writer(&f);
    expect_ok(add(&f, writer, 1, 0, 2, 1));
    expect_ok(add(&f, writer, 2, 0, 1, 2));
    expect_ok(add(&f, writer, 1, 0, 1, 3));
    finish(&f, writer);
    expect_str(rows_of_load(&f), "1/0+ 1/1+ 2/0- ");
}

static size_t count_objects(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->store, f->t->op, "db.db/t", true, &objects, &count));
    return count;
}

TARN_TEST(cross, a_key_moves_within_a_batch)
{
    TARN_OWN(fixture_fini) struct fixture f;
    static const int moves[][2] = {{1, 7}, {1, 8}, {2, 7}, {1, 9}, {1, 7}, {3, 8}, {1, 6}};
    struct tarn_value rows[4 * TARN_COUNT_OF(moves)];
    setup_keys(t, &f, "100", "-1", 1);
    struct tarn_table_writer *writer = open_writer(&f);
    for (size_t i = 0; i < TARN_COUNT_OF(moves); i++) {
        rows[4 * i] = tarn_test_int(moves[i][0]);
        rows[4 * i + 1] = tarn_test_int(moves[i][1]);
        rows[4 * i + 2] = tarn_test_int(1);
        rows[4 * i + 3] = tarn_test_int(0);
    }
    struct tarn_batch *batch = tarn_test_batch(f.types, 4, rows, TARN_COUNT_OF(moves));
    expect_ok(tarn_table_writer_add(writer, t->op, batch));
    tarn_batch_unref(batch);
    finish(&f, writer);
    expect_str(rows_of_load(&f), "1/6+ 1/7+ 1/8- 1/9+ 2/7- 3/8+ ");
}

TARN_TEST(dynamic, leaves_nothing_when_it_fails)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(t, &f, "5", "-1");
    load(&f, 1, 0, 5, 1);
    size_t before = count_objects(&f);
    const char *key =
        tarn_arena_printf(t->arena, "db.db/t/index/%.*s", TARN_SLICE_ARG(f.indexes[0].name));
    struct tarn_table_writer *writer = open_writer(&f);
    expect_ok(add(&f, writer, 2, 0, 5, 1));
    tarn_table_writer_free(writer); /* given up */
    expect_int(count_objects(&f), before);
    expect_ok(tarn_store_put(f.store, t->op, key, tarn_slice_str("short")));
    writer = open_writer(&f);
    expect_status(add(&f, writer, 1, 0, 5, 1), TARN_DATA_FILE_MALFORMED, "5 bytes");
    tarn_table_writer_free(writer);
    expect_int(count_objects(&f), before);
}
