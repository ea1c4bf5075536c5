/*
 * Rows written to a table are read back as a model of it says, before and after compaction: upserts,
 * deletes, sequence fields, partitions, buckets, spills, projections, predicates, schema changes; what
 * entries say of their files is true; failures leave no file.
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
    const struct tarn_type **types; /* columns, then the row kind */
    int column_count;
    int64_t next_sequence;
    struct tarn_manifest_entry *live;
    size_t live_count;
    int64_t buffer_size;
};

static void make_table(struct tarn_test *t, struct fixture *f, const char *columns,
                       const char *keys, const char *partitions, const struct tarn_pair *options,
                       size_t option_count)
{
    struct tarn_schema draft = {.options = options, .option_count = option_count};
    struct tarn_slice *key_list = tarn_arena_calloc(t->arena, 4, sizeof *key_list);
    struct tarn_slice *partition = tarn_arena_calloc(t->arena, 1, sizeof *partition);
    const struct tarn_field *fields;

    memset(f, 0, sizeof *f);
    f->t = t;
    f->buffer_size = 64 << 20;
    expect_ok(tarn_store_open("memory:", &f->store));
    expect_ok(tarn_columns_parse(tarn_slice_str(columns), t->arena, &fields, &draft.field_count));
    draft.fields = fields;
    *partition = tarn_slice_str(partitions);
    draft.partition_keys = partition;
    draft.partition_key_count = partitions == NULL ? 0 : 1;
    for (const char *at = keys; at != NULL;) {
        const char *comma = strchr(at, ',');
        key_list[draft.primary_key_count++] =
            tarn_slice_of(at, comma == NULL ? strlen(at) : (size_t)(comma - at));
        at = comma == NULL ? NULL : comma + 1;
    }
    draft.primary_keys = key_list;
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

static struct tarn_status *next_sequence(void *arg, struct tarn_op *op, struct tarn_slice partition,
                                         int32_t bucket, int64_t count, int64_t *first)
{
    struct fixture *f = arg;
    *first = f->next_sequence; /* one counter for all buckets: above what each has */
    f->next_sequence += count;
    return TARN_OK;
}

static struct tarn_status *try_write(struct fixture *f, const struct tarn_value *rows,
                                     int64_t count, int64_t batch_size,
                                     struct tarn_manifest_entry **entries, size_t *n)
{
    struct tarn_write_spec spec = {.sequence = next_sequence,
                                   .sequence_arg = f,
                                   .buffer_size = f->buffer_size,
                                   .scratch_dir = tarn_test_dir(f->t)};
    struct tarn_table_writer *writer = NULL;
    int stride = f->column_count + 1;
    struct tarn_status *s = tarn_table_writer_open(f->t->op, &f->table, &spec, &writer);

    for (int64_t at = 0; at < count && s == TARN_OK; at += batch_size) {
        struct tarn_batch *batch =
            tarn_test_batch(f->types, stride, rows + at * stride, TARN_MIN(batch_size, count - at));
        s = tarn_table_writer_add(writer, f->t->op, batch);
        tarn_batch_unref(batch);
    }
    if (s == TARN_OK)
        s = tarn_table_writer_finish(writer, f->t->op, f->t->arena, entries, n);
    tarn_table_writer_free(writer);
    return s;
}

static void apply(struct fixture *f, const struct tarn_manifest_entry *entries, size_t count)
{
    struct tarn_manifest_entry *next =
        tarn_arena_calloc(f->t->arena, f->live_count + count + 1, sizeof *next);
    size_t n = 0;

    for (size_t i = 0; i < f->live_count; i++) {
        bool gone = false;
        for (size_t j = 0; j < count; j++)
            gone = gone || (entries[j].kind == TARN_ENTRY_DELETE &&
                            tarn_slice_equal(entries[j].file.name, f->live[i].file.name));
        if (!gone)
            next[n++] = f->live[i];
    }
    for (size_t j = 0; j < count; j++) {
        if (entries[j].kind == TARN_ENTRY_ADD)
            next[n++] = entries[j];
    }
    f->live = next;
    f->live_count = n;
}

static void write_rows(struct fixture *f, const struct tarn_value *rows, int64_t count,
                       int64_t batch_size)
{
    struct tarn_manifest_entry *entries;
    size_t n;
    expect_ok(try_write(f, rows, count, batch_size, &entries, &n));
    apply(f, entries, n);
}

static bool same_bucket(const struct tarn_manifest_entry *a, const struct tarn_manifest_entry *b)
{
    return a->bucket == b->bucket && tarn_slice_equal(a->partition, b->partition);
}

/* Groups live files by bucket. */
static struct tarn_merge_split *splits_of(struct fixture *f, bool raw, size_t *count)
{
    struct tarn_merge_split *splits =
        tarn_arena_calloc(f->t->arena, f->live_count + 1, sizeof *splits);
    bool *done = tarn_arena_calloc(f->t->arena, f->live_count + 1, sizeof *done);

    *count = 0;
    for (size_t i = 0; i < f->live_count; i++) {
        struct tarn_manifest_entry *files;
        size_t n = 0;
        if (done[i])
            continue;
        files = tarn_arena_calloc(f->t->arena, f->live_count, sizeof *files);
        for (size_t j = i; j < f->live_count; j++) {
            if (!done[j] && same_bucket(&f->live[i], &f->live[j])) {
                files[n++] = f->live[j];
                done[j] = true;
            }
        }
        splits[(*count)++] = (struct tarn_merge_split){.partition = f->live[i].partition,
                                                       .bucket = f->live[i].bucket,
                                                       .raw = raw,
                                                       .files = files,
                                                       .file_count = n};
    }
    return splits;
}

/* Rows as lines of text, sorted: "1|a|null". */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *sorted_lines(struct tarn_test *t, const char **lines, size_t n)
{
    struct tarn_buf text = {0};

    if (n > 1)
        qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++)
        tarn_buf_printf(&text, "%s\n", lines[i]);
    char *out = tarn_arena_str(t->arena, tarn_buf_slice(&text));
    tarn_buf_drop(&text);
    return out;
}

static const char *line_of(struct tarn_test *t, const struct tarn_type *const *types,
                           const struct tarn_value *values, int n)
{
    struct tarn_buf text = {0};

    for (int i = 0; i < n; i++) {
        tarn_buf_add_str(&text, i == 0 ? "" : "|");
        tarn_value_print(types[i], &values[i], &text);
    }
    char *out = tarn_arena_str(t->arena, tarn_buf_slice(&text));
    tarn_buf_drop(&text);
    return out;
}

static struct tarn_status *try_scan(struct fixture *f, bool raw, const int *columns,
                                    size_t column_count, const char *where, int64_t limit,
                                    const char **out, int64_t *rows)
{
    struct tarn_test *t = f->t;
    struct tarn_predicate predicate;
    struct tarn_scan_spec spec = {.columns = columns, .column_count = column_count, .limit = limit};
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;
    size_t split_count, n = 0, capacity = 0;
    const char **lines = NULL;
    struct tarn_merge_split *splits = splits_of(f, raw, &split_count);

    if (where != NULL) {
        expect_ok(tarn_predicate_parse(tarn_slice_str(where), &f->schema, t->arena, &predicate));
        spec.where = &predicate;
    }
    TARN_TRY(tarn_scan_open(t->op, &f->table, splits, split_count, &spec, &source));
    *rows = 0;
    for (;;) {
        struct tarn_batch *batch;
        struct tarn_status *s = source->next(source, t->op, &batch);
        if (s != TARN_OK) {
            free(lines);
            return s;
        }
        if (batch == NULL)
            break;
        expect_int(batch->column_count, column_count);
        expect_true(batch->row_count > 0);
        *rows += batch->row_count;
        for (int64_t r = 0; r < batch->row_count; r++) {
            struct tarn_value values[16];
            const struct tarn_type *types[16];
            for (size_t c = 0; c < column_count; c++) {
                types[c] = f->types[columns[c]];
                values[c] =
                    tarn_test_value(t->arena, types[c], tarn_batch_column(batch, (int)c), r);
            }
            TARN_GROW(lines, n, capacity);
            lines[n++] = line_of(t, types, values, (int)column_count);
        }
        tarn_batch_unref(batch);
    }
    *out = sorted_lines(t, lines, n);
    free(lines);
    return TARN_OK;
}

static const char *scan(struct fixture *f, const int *columns, size_t column_count,
                        const char *where)
{
    const char *out = NULL;
    int64_t rows;
    expect_ok(try_scan(f, false, columns, column_count, where, -1, &out, &rows));
    return out;
}

/* Compacts every bucket into `level`. */
static void compact(struct fixture *f, int level, bool drop_delete)
{
    size_t split_count;
    struct tarn_merge_split *splits = splits_of(f, false, &split_count);

    for (size_t i = 0; i < split_count; i++) {
        struct tarn_compact_spec spec = {.files = splits[i].files,
                                         .file_count = splits[i].file_count,
                                         .output_level = level,
                                         .drop_delete = drop_delete};
        struct tarn_compact_result result;
        expect_ok(tarn_compact_run(f->t->op, &f->table, &spec, f->t->arena, &result));
        apply(f, result.entries, result.entry_count);
        /* what was replaced goes, as after the commit's snapshot expires */
        for (size_t j = 0; j < result.entry_count; j++) {
            struct tarn_manifest_entry gone = result.entries[j];
            bool moved = false;
            for (size_t k = 0; k < result.entry_count; k++)
                moved = moved || (result.entries[k].kind == TARN_ENTRY_ADD &&
                                  tarn_slice_equal(result.entries[k].file.name, gone.file.name));
            gone.kind = TARN_ENTRY_ADD;
            if (!moved)
                tarn_merge_remove_files(f->t->op, &f->table, &gone, 1);
        }
    }
}

static size_t object_count(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->store, f->t->op, "", true, &objects, &count));
    return count;
}

#define I(v) tarn_test_int(v)
#define T(v) tarn_test_text(v)
#define D(v) tarn_test_real(v)
#define NONE tarn_test_null()
#define PAIR(k, v)                                                                                 \
    {                                                                                              \
        {(const uint8_t *)k, sizeof k - 1},                                                        \
        {                                                                                          \
            (const uint8_t *)v, sizeof v - 1                                                       \
        }                                                                                          \
    }

TARN_TEST(table, upserts_and_deletes)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1")};
    struct fixture f;
    make_table(t, &f, "id BIGINT, name STRING", "id", NULL, options, 1);
    struct tarn_value first[] = {I(3), T("c"), I(0), I(1), T("a"),  I(0),
                                 I(2), T("b"), I(0), I(1), T("aa"), I(2)};
    struct tarn_value second[] = {I(2), NONE, I(3), I(3), T("cc"), I(0)};
    const int both[] = {0, 1}, name[] = {1};

    write_rows(&f, first, 4, 100);
    expect_int(f.live_count, 1);
    const struct tarn_data_file *file = &f.live[0].file;
    expect_int(file->row_count, 3);
    expect_int(file->min_sequence, 0);
    expect_int(file->max_sequence, 3);
    expect_int(file->delete_row_count, 0);
    expect_int(file->level, 0);
    expect_int(file->source, TARN_SOURCE_APPEND);
    expect_false(file->has_value_stats_columns);
    expect_int(file->value_stats.count, 2);
    expect_int(file->key_stats.count, 1);
    /* format.md 5.3: BIGINT 1 and 3 */
    struct tarn_buf want = {0};
    expect_ok(tarn_hex_decode(tarn_slice_str("0000000100000000000000000100000000000000"), &want));
    expect_bytes(file->min_key, tarn_buf_slice(&want));
    expect_bytes(file->key_stats.min, tarn_buf_slice(&want));
    tarn_buf_clear(&want);
    expect_ok(tarn_hex_decode(tarn_slice_str("0000000100000000000000000300000000000000"), &want));
    expect_bytes(file->max_key, tarn_buf_slice(&want));
    tarn_buf_drop(&want);
    expect_true(tarn_slice_starts_with(file->name, tarn_slice_str("data-")));
    expect_str(scan(&f, both, 2, NULL), "1|aa\n2|b\n3|c\n");

    write_rows(&f, second, 2, 1);
    expect_int(f.live[1].file.delete_row_count, 1);
    expect_str(scan(&f, both, 2, NULL), "1|aa\n3|cc\n");
    expect_str(scan(&f, name, 1, NULL), "aa\ncc\n"); /* known-traps K19 */
    expect_str(scan(&f, name, 1, "name = 'c'"), ""); /* K16: the old version must not show */
    expect_str(scan(&f, name, 1, "id > 1"), "cc\n");

    compact(&f, 5, true);
    expect_int(f.live_count, 1);
    expect_int(f.live[0].file.level, 5);
    expect_int(f.live[0].file.source, TARN_SOURCE_COMPACT);
    expect_int(f.live[0].file.row_count, 2);
    expect_int(f.live[0].file.delete_row_count, 0);
    expect_str(scan(&f, both, 2, NULL), "1|aa\n3|cc\n");
    expect_int(object_count(&f), 1);
    tarn_store_drop(&f.store);
}

/* known-traps K20 and K28 */
TARN_TEST(table, sequence_field_decides_in_buffer_read_and_compaction)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1"), PAIR("sequence.field", "c"),
                                        PAIR("sequence.field.sort-order", "descending")};
    struct tarn_value rows[] = {T("a"), T("b"), I(1),   I(0),   T("a"), T("d"),
                                I(3),   I(0),   T("a"), T("e"), I(2),   I(0)};
    const int value[] = {1};
    struct fixture f;

    make_table(t, &f, "k STRING, v STRING, c INT", "k", NULL, options, 3);
    write_rows(&f, rows, 3, 100);
    expect_str(scan(&f, value, 1, NULL), "b\n");
    tarn_store_drop(&f.store);

    make_table(t, &f, "k STRING, v STRING, c INT", "k", NULL, options, 3);
    for (int i = 0; i < 3; i++)
        write_rows(&f, rows + 4 * i, 1, 1);
    expect_int(f.live_count, 3);
    expect_str(scan(&f, value, 1, NULL), "b\n");
    compact(&f, 5, true);
    expect_int(f.live_count, 1);
    expect_str(scan(&f, value, 1, NULL), "b\n");
    tarn_store_drop(&f.store);
}

/* known-traps K30, first part */
TARN_TEST(table, rowkind_field_comes_before_ignore_delete)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1"), PAIR("ignore-delete", "true"),
                                        PAIR("rowkind.field", "kind")};
    struct tarn_value rows[] = {I(1),    T("A"), T("+I"), I(0),   I(1),    T("A"),
                                T("-D"), I(0),   I(1),    T("B"), T("+I"), I(0)};
    const int value[] = {1};
    struct fixture f;

    make_table(t, &f, "id INT, v STRING, kind STRING", "id", NULL, options, 3);
    write_rows(&f, rows, 1, 1);
    write_rows(&f, rows + 4, 1, 1);
    expect_str(scan(&f, value, 1, NULL), "A\n");
    write_rows(&f, rows + 8, 1, 1);
    expect_str(scan(&f, value, 1, NULL), "B\n");
    tarn_store_drop(&f.store);
}

TARN_TEST(table, refuses_null_and_bad_kinds_and_leaves_nothing)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1"), PAIR("rowkind.field", "kind")};
    struct fixture f;
    struct tarn_manifest_entry *entries;
    size_t n;
    make_table(t, &f, "id INT, v INT NOT NULL, kind STRING", "id", NULL, options, 2);
    struct tarn_value null_value[] = {I(1), I(1), T("+I"), I(0), I(2), NONE, T("+I"), I(0)};
    struct tarn_value null_key[] = {NONE, I(1), T("+I"), I(0)};
    struct tarn_value bad_kind[] = {I(1), I(1), T("x"), I(0)};
    struct tarn_value null_kind[] = {I(1), I(1), NONE, I(0)};
    struct tarn_value bare_delete[] = {I(1), NONE, T("-D"), I(0)};

    expect_status(try_write(&f, null_value, 2, 9, &entries, &n), TARN_VALUE_INVALID,
                  "row 2: column v");
    expect_status(try_write(&f, null_key, 1, 9, &entries, &n), TARN_VALUE_INVALID, "column id");
    expect_status(try_write(&f, bad_kind, 1, 9, &entries, &n), TARN_VALUE_INVALID, "\"x\"");
    expect_status(try_write(&f, null_kind, 1, 9, &entries, &n), TARN_VALUE_INVALID, "null");
    expect_int(object_count(&f), 0);
    write_rows(&f, bare_delete, 1, 9); /* a delete needs its key only */
    expect_int(f.live[0].file.delete_row_count, 1);
    tarn_store_drop(&f.store);
}

TARN_TEST(table, append_keeps_rows_and_their_order)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1"), PAIR("bucket-key", "a")};
    const int both[] = {0, 1};
    struct fixture f;
    make_table(t, &f, "a INT, b STRING", NULL, NULL, options, 2);
    struct tarn_value rows[] = {I(2), T("x"), I(0), I(1), NONE, I(0), I(2), T("x"), I(0)};
    struct tarn_value remove[] = {I(2), T("x"), I(3)};
    struct tarn_manifest_entry *entries;
    size_t n;

    write_rows(&f, rows, 3, 2);
    write_rows(&f, rows, 3, 2);
    expect_int(f.live[0].file.min_sequence, 0);
    expect_int(f.live[0].file.max_sequence, 2);
    expect_int(f.live[1].file.min_sequence, 3);
    expect_bytes(f.live[0].file.min_key, tarn_row_empty());
    expect_int(f.live[0].file.key_stats.count, 0);
    expect_str(scan(&f, both, 2, NULL), "1|null\n1|null\n2|x\n2|x\n2|x\n2|x\n");
    expect_status(try_write(&f, remove, 1, 1, &entries, &n), TARN_VALUE_INVALID, "delete");
    compact(&f, 0, false);
    expect_int(f.live_count, 1);
    expect_int(f.live[0].file.min_sequence, 0);
    expect_int(f.live[0].file.max_sequence, 5);
    expect_str(scan(&f, both, 2, "b IS NULL"), "1|null\n1|null\n");
    tarn_store_drop(&f.store);
}

TARN_TEST(table, counts_without_columns_and_limits_exactly)
{
    const int one[] = {1};
    struct fixture f;
    make_table(t, &f, "a INT, b INT", NULL, NULL, NULL, 0);
    struct tarn_value *rows = tarn_arena_calloc(t->arena, 3 * 20000, sizeof *rows);
    const char *text;
    int64_t count;

    for (int i = 0; i < 20000; i++) {
        rows[3 * i] = I(i);
        rows[3 * i + 1] = I(i % 10);
        rows[3 * i + 2] = I(0);
    }
    write_rows(&f, rows, 20000, 3000);
    expect_int(f.live[0].total_buckets, -1);
    expect_int(f.live[0].bucket, 0);
    expect_ok(try_scan(&f, true, NULL, 0, NULL, -1, &text, &count));
    expect_int(count, 20000);
    expect_ok(try_scan(&f, true, NULL, 0, "b = 3", -1, &text, &count));
    expect_int(count, 2000);
    expect_ok(try_scan(&f, true, one, 1, NULL, 8193, &text, &count));
    expect_int(count, 8193);
    expect_ok(try_scan(&f, true, one, 1, "b = 3", 7, &text, &count));
    expect_int(count, 7);
    expect_ok(try_scan(&f, true, one, 1, NULL, 0, &text, &count));
    expect_int(count, 0);
    tarn_store_drop(&f.store);
}

/* format.md appendix A: INT keys 0, 1, -1, 42 in 5 buckets; pypaimon's keys in 4 (BIGINT). */
TARN_TEST(table, rows_go_to_paimons_buckets)
{
    const struct tarn_pair five[] = {PAIR("bucket", "5")};
    const struct {
        const char *type;
        struct tarn_value key;
        int bucket;
    } cases[] = {
        {"INT", I(0), 4},
        {"INT", I(1), 3},
        {"INT", I(-1), 2},
        {"INT", I(42), 2},
        {"BIGINT", I(-1), 2},
        {"BIGINT", I(INT64_C(123456789012345)), 3},
        {"BIGINT", I(1), 3},
        {"STRING", T(""), 4},
        {"STRING", T("abc"), 4},
        {"STRING", T("abcdefg"), 3},
        {"STRING", T("abcdefgh"), 3},
        {"STRING", T("hello world"), 4},
        {"DATE", I(19857), 3},
    };

    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        struct fixture f;
        make_table(t, &f, tarn_arena_printf(t->arena, "k %s, v INT", cases[i].type), "k", NULL,
                   five, 1);
        struct tarn_value row[] = {cases[i].key, I(1), I(0)};
        write_rows(&f, row, 1, 1);
        expect_int(f.live[0].bucket, cases[i].bucket);
        expect_int(f.live[0].total_buckets, 5);
        tarn_store_drop(&f.store);
    }
}

TARN_TEST(table, old_files_are_read_through_their_schema)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1")};
    const int all[] = {0, 1, 2};
    struct fixture f;
    make_table(t, &f, "id INT, a INT, b STRING", "id", NULL, options, 1);
    struct tarn_value rows[] = {I(1), I(10), T("x"), I(0)};
    write_rows(&f, rows, 1, 1);

    /* a renamed to z and widened, b dropped, c added */
    struct tarn_schema old = f.schema;
    const struct tarn_schema *olds[] = {&old};
    struct tarn_field fields[3] = {old.fields[0], old.fields[1], old.fields[2]};
    struct tarn_type big = *fields[1].type;
    big.id = TARN_TYPE_BIGINT;
    fields[1].name = tarn_slice_str("z");
    fields[1].type = &big;
    fields[2].name = tarn_slice_str("b"); /* the old name, another column */
    fields[2].id = 3;
    f.schema.id = 1;
    f.schema.fields = fields;
    f.table.old_schemas = olds;
    f.table.old_schema_count = 1;
    for (int i = 0; i < 3; i++)
        f.types[i] = fields[i].type;
    expect_str(scan(&f, all, 3, NULL), "1|10|null\n");
    struct tarn_value more[] = {
        I(2), I(INT64_C(5000000000)), T("new"), I(0), I(1), NONE, T("newer"), I(0)};
    write_rows(&f, more, 2, 2);
    expect_str(scan(&f, all, 3, NULL), "1|null|newer\n2|5000000000|new\n");
    compact(&f, 5, true);
    expect_int(f.live[0].file.schema_id, 1);
    expect_str(scan(&f, all, 3, NULL), "1|null|newer\n2|5000000000|new\n");
    f.live[0].file.schema_id = 9;
    const char *text;
    int64_t count;
    expect_status(try_scan(&f, false, all, 3, NULL, -1, &text, &count), TARN_DATA_FILE_MALFORMED,
                  "schema 9");
    tarn_store_drop(&f.store);
}

/* Compacts the files of level 0 beside those above, which stay, and gives these their new deletion vectors. */
static void compact_news(struct fixture *f, int level, struct tarn_compact_result *result)
{
    struct tarn_manifest_entry *files =
        tarn_arena_calloc(f->t->arena, f->live_count + 1, sizeof *files);
    struct tarn_manifest_entry *upper =
        tarn_arena_calloc(f->t->arena, f->live_count + 1, sizeof *upper);
    struct tarn_compact_spec spec = {
        .files = files, .upper = upper, .output_level = level, .drop_delete = true};
    for (size_t i = 0; i < f->live_count; i++) {
        if (f->live[i].file.level == 0)
            files[spec.file_count++] = f->live[i];
        else
            upper[spec.upper_count++] = f->live[i];
    }
    expect_ok(tarn_compact_run(f->t->op, &f->table, &spec, f->t->arena, result));
    apply(f, result->entries, result->entry_count);
    for (size_t i = 0; i < result->index_count; i++)
        for (size_t v = 0; v < result->indexes[i].vector_count; v++)
            for (size_t k = 0; k < f->live_count; k++) {
                const struct tarn_vector_range *range = &result->indexes[i].vectors[v];
                struct tarn_vector_ref *ref = &f->live[k].file.vector;
                if (!tarn_slice_equal(f->live[k].file.name, range->data_file))
                    continue;
                *ref = (struct tarn_vector_ref){.offset = range->offset,
                                                .length = range->length,
                                                .cardinality = range->cardinality};
                expect_ok(tarn_index_file_path(&f->schema, &f->options, &result->indexes[i],
                                               f->t->arena, &ref->path));
            }
}

/* Each file is read as it lies: what isn't marked shows twice. */
static const char *scan_raw(struct fixture *f, const int *columns, size_t n)
{
    const char *text;
    int64_t count;
    expect_ok(try_scan(f, true, columns, n, NULL, -1, &text, &count));
    return text;
}

TARN_TEST(table, what_level_0_takes_the_place_of_is_marked_above)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1"),
                                        PAIR("deletion-vectors.enabled", "true")};
    const int all[] = {0, 1};
    struct tarn_value first[] = {I(1), T("a"), I(0), I(2), T("b"), I(0), I(3), T("c"), I(0)},
                      next[] = {I(2), T("x"), I(0), I(3), T("c"), I(3), I(4), T("d"), I(0)};
    struct tarn_compact_result result;
    struct fixture f;
    make_table(t, &f, "k INT, v STRING", "k", NULL, options, 2);
    write_rows(&f, first, 3, 3);
    compact(&f, 5, true);
    write_rows(&f, next, 3, 3);
    compact_news(&f, 4, &result);
    expect_int(result.index_count, 1);
    expect_int(result.indexes[0].vectors[0].cardinality, 2);
    expect_int(f.live_count, 2);
    expect_str(scan_raw(&f, all, 2), "1|a\n2|x\n4|d\n");
    expect_str(scan(&f, all, 2, NULL), "1|a\n2|x\n4|d\n");
    tarn_store_drop(&f.store);
}

TARN_TEST(table, a_row_above_that_wins_by_its_sequence_field_comes_along)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1"), PAIR("sequence.field", "s"),
                                        PAIR("deletion-vectors.enabled", "true")};
    const int all[] = {0, 1};
    struct tarn_value first[] = {I(1), I(5), I(0), I(2), I(5), I(0)},
                      next[] = {I(1), I(4), I(0), I(2), I(6), I(0)};
    struct tarn_compact_result result;
    struct fixture f;
    make_table(t, &f, "k INT, s INT", "k", NULL, options, 3);
    write_rows(&f, first, 2, 2);
    compact(&f, 5, true);
    write_rows(&f, next, 2, 2);
    compact_news(&f, 4, &result);
    expect_int(result.indexes[0].vectors[0].cardinality, 2);
    expect_str(scan_raw(&f, all, 2), "1|5\n2|6\n");
    tarn_store_drop(&f.store);
}

TARN_TEST(table, large_files_move_up_without_rewrite)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1"), PAIR("target-file-size", "1 b")};
    const int id[] = {0};
    struct fixture f;
    make_table(t, &f, "id INT, v INT", "id", NULL, options, 2);
    struct tarn_value a[] = {I(1), I(1), I(0)}, b[] = {I(2), I(2), I(3)}, c[] = {I(3), I(1), I(0)};
    struct tarn_compact_result result;

    write_rows(&f, a, 1, 1);
    write_rows(&f, b, 1, 1);
    write_rows(&f, c, 1, 1);
    struct tarn_compact_spec spec = {
        .files = f.live, .file_count = 3, .output_level = 5, .drop_delete = true};
    expect_ok(tarn_compact_run(t->op, &f.table, &spec, t->arena, &result));
    expect_int(result.upgraded_count, 2); /* the delete's file is rewritten: into nothing */
    expect_int(result.entry_count, 5);
    expect_int(result.rows_in, 1);
    expect_int(result.rows_out, 0);
    apply(&f, result.entries, result.entry_count);
    expect_int(f.live_count, 2);
    expect_int(f.live[0].file.level, 5);
    expect_int(f.live[0].file.source, TARN_SOURCE_APPEND);
    expect_str(scan(&f, id, 1, NULL), "1\n3\n");
    /* what was only moved isn't removed with a failed commit */
    tarn_merge_remove_files(t->op, &f.table, result.entries, result.entry_count);
    expect_str(scan(&f, id, 1, NULL), "1\n3\n");
    tarn_store_drop(&f.store);
}

/* What entries say of files but for names, sizes and times. */
static void expect_same_file(const struct tarn_data_file *a, const struct tarn_data_file *b)
{
    expect_int(a->row_count, b->row_count);
    expect_int(a->delete_row_count, b->delete_row_count);
    expect_int(a->min_sequence, b->min_sequence);
    expect_int(a->max_sequence, b->max_sequence);
    expect_int(a->level, b->level);
    expect_int(a->source, b->source);
    expect_int(a->schema_id, b->schema_id);
    expect_bytes(a->min_key, b->min_key);
    expect_bytes(a->max_key, b->max_key);
    expect_bytes(a->key_stats.min, b->key_stats.min);
    expect_bytes(a->key_stats.max, b->key_stats.max);
    expect_bytes(a->value_stats.min, b->value_stats.min);
    expect_bytes(a->value_stats.max, b->value_stats.max);
    expect_int(a->value_stats.count, b->value_stats.count);
    for (size_t i = 0; i < a->value_stats.count; i++)
        expect_int(a->value_stats.null_counts[i], b->value_stats.null_counts[i]);
    expect_bytes(a->embedded_index, b->embedded_index);
}

/* Compacts all live files, which stay. */
static const struct tarn_data_file *compact_aside(struct fixture *f, int64_t row_group_size,
                                                  struct tarn_compact_result *result)
{
    struct tarn_compact_spec spec = {.files = f->live,
                                     .file_count = f->live_count,
                                     .output_level = f->schema.primary_key_count > 0 ? 5 : 0,
                                     .drop_delete = true};
    f->options.row_group_size = row_group_size;
    expect_ok(tarn_compact_run(f->t->op, &f->table, &spec, f->t->arena, result));
    expect_int(result->entry_count, f->live_count + 1);
    return &result->entries[f->live_count].file;
}

static void check_copies(struct tarn_test *t, const char *keys, const struct tarn_pair *options,
                         size_t option_count)
{
    struct fixture f;
    struct tarn_compact_result copied, written;
    make_table(t, &f, "id INT, v DOUBLE, s STRING", keys, NULL, options, option_count);
    struct tarn_value a[] = {I(1), D(2.5), T("x"), I(0), I(2), NONE, NONE, I(0)};
    struct tarn_value b[] = {I(5), D(-1), T("a long one"), I(0)};
    struct tarn_value c[] = {I(7), D(0), NONE, I(0), I(8), NONE, T("y"), I(0)};
    const int all[] = {0, 1, 2};

    write_rows(&f, c, 2, 2);
    write_rows(&f, a, 2, 2);
    write_rows(&f, b, 1, 1);
    const struct tarn_data_file *x = compact_aside(&f, 1, &copied);
    const struct tarn_data_file *y = compact_aside(&f, 0, &written);
    expect_int(copied.rows_copied, 5);
    expect_int(copied.rows_in, 5);
    expect_int(written.rows_copied, 0);
    expect_same_file(x, y);
    apply(&f, copied.entries, copied.entry_count);
    expect_int(f.live_count, 1);
    expect_str(scan(&f, all, 3, NULL),
               "1|2.5|x\n2|null|null\n5|-1|a long one\n7|0|null\n8|null|y\n");
    expect_str(scan(&f, all, 3, "v >= 2.5"), "1|2.5|x\n");
    tarn_store_drop(&f.store);
}

TARN_TEST(table, copied_files_have_the_entries_that_a_rewrite_gives)
{
    const struct tarn_pair keyed[] = {PAIR("bucket", "1"), PAIR("file-index.bitmap.columns", "s,v"),
                                      PAIR("file-index.in-manifest-threshold", "1 mb")};
    const struct tarn_pair thin[] = {PAIR("bucket", "1"), PAIR("data-file.thin-mode", "true")};
    const struct tarn_pair append[] = {PAIR("bucket", "1"), PAIR("bucket-key", "id")};

    check_copies(t, "id", keyed, 3);
    check_copies(t, "id", thin, 2);
    check_copies(t, NULL, append, 2);
    check_copies(t, NULL, NULL, 0);
}

TARN_TEST(table, deletes_and_older_schemas_are_not_copied)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1"), PAIR("file.block-size", "1 b")};
    struct fixture f;
    struct tarn_compact_result result;
    make_table(t, &f, "id INT, v INT", "id", NULL, options, 2);
    struct tarn_value a[] = {I(1), I(1), I(0), I(2), I(1), I(3)}, b[] = {I(3), I(1), I(0)};
    struct tarn_schema renamed = f.schema;
    struct tarn_field fields[2];
    const int id[] = {0};

    write_rows(&f, a, 2, 2);
    write_rows(&f, b, 1, 1);
    compact_aside(&f, 1, &result);
    expect_int(result.rows_copied, 1); /* b's */
    expect_int(result.rows_out, 2);
    const struct tarn_schema *old[] = {&f.schema};
    memcpy(fields, f.schema.fields, sizeof fields);
    fields[1].name = tarn_slice_str("w");
    renamed.fields = fields;
    renamed.id = f.schema.id + 1;
    f.table.schema = &renamed;
    f.table.old_schemas = old;
    f.table.old_schema_count = 1;
    compact_aside(&f, 1, &result);
    expect_int(result.rows_copied, 0);
    apply(&f, result.entries, result.entry_count);
    expect_str(scan(&f, id, 1, NULL), "1\n3\n");
    /* a schema that only has other options is no other schema to files */
    struct tarn_schema same = renamed;
    const struct tarn_schema *before[] = {&renamed};
    same.id = renamed.id + 1;
    f.table.schema = &same;
    f.table.old_schemas = before;
    struct tarn_value more[] = {I(9), I(1), I(0)};
    write_rows(&f, more, 1, 1);
    compact_aside(&f, 1, &result);
    expect_int(result.rows_copied, 3);
    tarn_store_drop(&f.store);
}

/* Files of some keys each: key, value, kind; `width` 0: the keys themselves, ten a file; else within so many. */
static void write_keys(struct fixture *f, bool text, int64_t first, int64_t width, int64_t value)
{
    struct tarn_test *t = f->t;
    struct tarn_value rows[3 * 10];
    int64_t count = 10;

    for (int64_t i = 0; i < count; i++) {
        int64_t k =
            width == 0 ? first + i : first + (int64_t)tarn_test_random_below(t, (uint64_t)width);
        rows[3 * i] = text ? T(tarn_arena_printf(t->arena, "key-%04d", (int)k)) : I(k);
        rows[3 * i + 1] = I(value + i);
        rows[3 * i + 2] = I(width != 0 && tarn_test_random_one_in(t, 4) ? 3 : 0);
    }
    write_rows(f, rows, count, count);
}

/* A file of twelve row groups below files that overlap some of them: the others are copied, and the result is that of
 * merging all. */
static int64_t check_pieces(struct tarn_test *t, bool text)
{
    const struct tarn_pair options[] = {
        PAIR("bucket", "1"), PAIR("file-index.bitmap.columns", "v,k"),
        PAIR("file-index.in-manifest-threshold", "1 mb"), PAIR("data-file.thin-mode", "true")};
    const int all[] = {0, 1};
    struct fixture f;
    struct tarn_compact_result result, written;
    make_table(t, &f, text ? "k STRING, v INT" : "k INT, v INT", "k", NULL, options,
               3 + tarn_test_random_below(t, 2));
    for (int64_t i = 0; i < 12; i++)
        write_keys(&f, text, i * 10, 0, i);
    compact_aside(&f, 1, &result);
    expect_int(result.rows_copied, 120);
    apply(&f, result.entries, result.entry_count);
    size_t files = 1 + tarn_test_random_below(t, 3);
    for (size_t i = 0; i < files; i++)
        write_keys(&f, text, (int64_t)tarn_test_random_below(t, 110),
                   1 + (int64_t)tarn_test_random_below(t, 20), 1000 + (int64_t)i);
    const struct tarn_data_file *x = compact_aside(&f, 1, &result);
    const struct tarn_data_file *y = compact_aside(&f, 0, &written);
    const char *want = scan(&f, all, 2, NULL);
    expect_int(written.rows_copied, 0);
    expect_int(result.rows_in, written.rows_in);
    expect_same_file(x, y);
    apply(&f, result.entries, result.entry_count);
    expect_str(scan(&f, all, 2, NULL), want);
    tarn_store_drop(&f.store);
    return result.rows_copied;
}

TARN_TEST(table, row_groups_that_nothing_overlaps_are_copied_out_of_a_merge)
{
    int64_t copied = 0;

    for (int round = 0; round < tarn_test_rounds(20); round++)
        copied += check_pieces(t, round % 2 == 0);
    expect_true(copied > 0);
}

/* Small ones lie in the entry, larger ones beside the file; both say what is there, and nothing else. A changelog has none. */
static void check_indexes(struct tarn_test *t, const char *threshold)
{
    struct tarn_pair options[] = {
        PAIR("bucket", "1"),
        PAIR("file-index.bitmap.columns", "s"),
        PAIR("file-index.bloom-filter.columns", "id,s"),
        PAIR("file-index.bloom-filter.id.items", "10"),
        PAIR("file-index.bloom-filter.s.items", "10"),
        PAIR("changelog-producer", "input"),
        {tarn_slice_str("file-index.in-manifest-threshold"), tarn_slice_str(threshold)}};
    struct fixture f;
    struct tarn_value rows[] = {I(1), T("a"), I(0), I(5), T("c"), I(0), I(9), NONE, I(0)};
    struct tarn_predicate there, not_there;
    struct tarn_file_index_verdict verdict;
    make_table(t, &f, "id INT, s STRING", "id", NULL, options, TARN_COUNT_OF(options));
    expect_ok(
        tarn_predicate_parse(tarn_slice_str("s = 'c' AND id = 5"), &f.schema, t->arena, &there));
    expect_ok(tarn_predicate_parse(tarn_slice_str("s = 'b'"), &f.schema, t->arena, &not_there));
    write_rows(&f, rows, 3, 3);
    for (int round = 0; round < 2; round++) {
        const struct tarn_data_file *file = &f.live[0].file;
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        expect_int(f.live_count, 1);
        tarn_buf_add_slice(&bytes, file->embedded_index);
        expect_int(file->extra_file_count, strcmp(threshold, "1 b") == 0);
        if (file->extra_file_count == 1) {
            expect_bytes(tarn_file_index_side(file), file->extra_files[0]);
            expect_ok(tarn_store_get(f.store, t->op,
                                     tarn_arena_printf(t->arena, "db.db/t/bucket-0/%.*s",
                                                       TARN_SLICE_ARG(file->extra_files[0])),
                                     &bytes));
        }
        expect_ok(tarn_file_index_may_match(tarn_buf_slice(&bytes), &there, &f.schema, &f.schema, 3,
                                            &verdict));
        expect_true(verdict.may_match);
        expect_ok(tarn_file_index_may_match(tarn_buf_slice(&bytes), &not_there, &f.schema,
                                            &f.schema, 3, &verdict));
        expect_false(verdict.may_match);
        if (round == 0) {
            write_rows(&f, rows + 3, 1, 1);
            compact(&f, 5, true);
        }
    }
    size_t left = object_count(&f); /* two changelogs, a file and what lies beside it */
    expect_int(left, strcmp(threshold, "1 b") == 0 ? 4 : 3);
    tarn_store_drop(&f.store);
}

TARN_TEST(table, files_get_their_indexes)
{
    check_indexes(t, "1 b");
    check_indexes(t, "1 mb");
}

/* A compaction stores what rows are known by; of new rows the committer says it. */
TARN_TEST(table, rows_that_are_tracked_keep_their_ids)
{
    const struct tarn_pair options[] = {PAIR("row-tracking.enabled", "true"),
                                        PAIR("target-file-row-num", "3")};
    const struct tarn_value rows[] = {I(10), I(0), I(11), I(0), I(12), I(0), I(13), I(0)};
    const int64_t want[] = {100, 101, 102, 7};
    struct fixture f;
    struct tarn_arena *arena = t->arena;
    make_table(t, &f, "v INT", NULL, NULL, options, 2);
    write_rows(&f, rows, 4, 4);
    expect_int(f.live_count, 2);
    for (size_t i = 0; i < 2; i++) {
        expect_int(f.live[i].file.min_sequence, 0);
        expect_int(f.live[i].file.max_sequence, 0);
        f.live[i].file.min_sequence = f.live[i].file.max_sequence = 5 + (int64_t)i; /* the stamps */
        f.live[i].file.first_row_id = i == 0 ? 100 : 7;
    }
    f.options.target_file_row_count = INT64_MAX;
    for (int round = 0; round < 2; round++) { /* the second time they are stored */
        compact(&f, 0, false);
        expect_int(f.live_count, 1);
        struct tarn_data_file *file = &f.live[0].file;
        expect_int(file->first_row_id, TARN_FILE_NONE);
        expect_int(file->min_sequence, 5);
        expect_int(file->max_sequence, 6);
        expect_int(file->write_column_count, 3);
        expect_slice(file->write_columns[1], "_ROW_ID");
        struct tarn_column_read columns[] = {
            {.file_name = file->write_columns[1], .type = &tarn_merge__sequence_type},
            {.file_name = file->write_columns[2], .type = &tarn_merge__sequence_type}};
        struct tarn_file_read spec = {.columns = columns, .column_count = 2};
        TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        expect_ok(tarn_file_reader_open(
            f.store, t->op,
            tarn_arena_printf(arena, "db.db/t/bucket-0/%.*s", TARN_SLICE_ARG(file->name)), &spec,
            &source));
        expect_ok(source->next(source, t->op, &batch));
        expect_int(batch->row_count, 4);
        for (int64_t i = 0; i < 4; i++) {
            struct tarn_value id, sequence;
            tarn_column_value(tarn_batch_column(batch, 0), columns[0].type, i, &id);
            tarn_column_value(tarn_batch_column(batch, 1), columns[1].type, i, &sequence);
            expect_int(id.integer, want[i]);
            expect_int(sequence.integer, i < 3 ? 5 : 6);
        }
    }
    tarn_store_drop(&f.store);
}

/* Each call to the store fails once, in turn: the writer and the compaction say so and leave no file. */
TARN_TEST(table, a_failing_store_leaves_nothing_half_done)
{
    const struct tarn_pair options[] = {PAIR("bucket", "2"), PAIR("target-file-row-num", "5"),
                                        PAIR("file-index.bitmap.columns", "v"),
                                        PAIR("file-index.in-manifest-threshold", "1 b")};
    struct fixture f;
    make_table(t, &f, "id INT, v STRING", "id", NULL, options, 4);
    struct tarn_value rows[3 * 40];
    struct tarn_manifest_entry *entries;
    size_t n, before;
    struct tarn_compact_result result;

    for (int i = 0; i < 40; i++) {
        rows[3 * i] = I(i);
        rows[3 * i + 1] = T("text");
        rows[3 * i + 2] = I(0);
    }
    write_rows(&f, rows, 40, 40);
    write_rows(&f, rows, 40, 40);
    before = object_count(&f);
    struct tarn_store *inner = f.store, *faulty = tarn_store_faulty_new(inner);
    f.table.store = faulty;
    static const char *const calls[] = {"create", "append", "finish", "open", "read_at", "put"};
    for (size_t c = 0; c < TARN_COUNT_OF(calls); c++) {
        for (int skip = 0, failed = 1; failed == 1; skip++) {
            struct tarn_fault_rule rule = {calls[c], NULL, skip, 1, TARN_FAULT_FAIL_BEFORE, 0, 0};
            struct tarn_merge_split *splits;
            size_t split_count;

            tarn_store_faulty_add(faulty, &rule);
            struct tarn_status *s = try_write(&f, rows, 40, 40, &entries, &n);
            failed = s != TARN_OK;
            if (failed)
                expect_status(s, TARN_IO_ERROR, "");
            else
                tarn_merge_remove_files(t->op, &f.table, entries, n);
            expect_int(object_count(&f), before);
            tarn_store_faulty_clear(faulty);

            tarn_store_faulty_add(faulty, &rule);
            splits = splits_of(&f, false, &split_count);
            struct tarn_compact_spec spec = {.files = splits[0].files,
                                             .file_count = splits[0].file_count,
                                             .output_level = 5,
                                             .drop_delete = true};
            s = tarn_compact_run(t->op, &f.table, &spec, t->arena, &result);
            if (s != TARN_OK) {
                failed = 1;
                expect_status(s, TARN_IO_ERROR, "");
            } else {
                tarn_merge_remove_files(t->op, &f.table, result.entries, result.entry_count);
            }
            expect_int(object_count(&f), before);
            tarn_store_faulty_clear(faulty);
        }
    }
    tarn_store_drop(&faulty);
    tarn_store_drop(&f.store);
}

TARN_TEST(table, cancellation_ends_a_write_and_a_scan)
{
    struct fixture f;
    const int id[] = {0};
    struct tarn_value row[] = {I(1), I(0)};
    struct tarn_manifest_entry *entries;
    size_t n;
    const char *text;
    int64_t count;
    make_table(t, &f, "id INT", NULL, NULL, NULL, 0);
    write_rows(&f, row, 1, 1);
    tarn_op_cancel(t->op);
    expect_status(try_write(&f, row, 1, 1, &entries, &n), TARN_CANCELLED, "");
    expect_status(try_scan(&f, true, id, 1, NULL, -1, &text, &count), TARN_CANCELLED, "");
    tarn_store_drop(&f.store);
}

/* --- the property: any table against a model --- */

#define KEYS 60

static void check_table(struct tarn_test *t)
{
    struct fixture f;
    struct tarn_pair options[8];
    size_t n = 0;
    bool text_key = tarn_test_random_one_in(t, 2), partitioned = tarn_test_random_one_in(t, 2);
    bool field = tarn_test_random_one_in(t, 2), descending = field && tarn_test_random_one_in(t, 2);
    struct {
        bool present;
        struct tarn_value field, value;
        int kind;
    } model[2][KEYS] = {0};
    const int all[] = {0, 1, 2, 3};
    struct tarn_pair bucket = PAIR("bucket", "3"), sequence = PAIR("sequence.field", "s"),
                     order = PAIR("sequence.field.sort-order", "descending"),
                     thin = PAIR("data-file.thin-mode", "true"),
                     rows_max = PAIR("target-file-row-num", "17"),
                     tiny_groups =
                         PAIR("file.block-size", "1 b"); /* none is too small to be copied */

    options[n++] = bucket;
    if (field)
        options[n++] = sequence;
    if (descending)
        options[n++] = order;
    if (tarn_test_random_one_in(t, 2))
        options[n++] = thin;
    if (tarn_test_random_one_in(t, 2))
        options[n++] = rows_max;
    if (tarn_test_random_one_in(t, 2))
        options[n++] = tiny_groups;
    make_table(t, &f,
               text_key ? "p INT, k STRING, s INT, v DECIMAL(12, 2)"
                        : "p INT, k BIGINT, s INT, v DECIMAL(12, 2)",
               partitioned ? "p,k" : "k", partitioned ? "p" : NULL, options, n);
    f.buffer_size = tarn_test_random_one_in(t, 2) ? 1 : 1 << 20; /* 1: every batch spills */
    for (int commit = 0; commit < 6; commit++) {
        int64_t count = (int64_t)tarn_test_random_below(t, 150);
        struct tarn_value *rows = tarn_arena_calloc(t->arena, (size_t)count * 5 + 1, sizeof *rows);
        for (int64_t i = 0; i < count; i++) {
            int p = partitioned ? (int)tarn_test_random_below(t, 2) : 0;
            int k = (int)tarn_test_random_below(t, KEYS),
                kind = tarn_test_random_one_in(t, 4) ? 3 : 0;
            struct tarn_value *r = rows + 5 * i;
            r[0] = I(p);
            r[1] = text_key ? T(tarn_arena_printf(t->arena, "key-number-%d", k)) : I(k - 20);
            r[2] = tarn_test_random_one_in(t, 4) ? NONE : I((int64_t)tarn_test_random_below(t, 4));
            r[3] = tarn_test_random_one_in(t, 8)
                       ? NONE
                       : tarn_test_decimal(tarn_test_random_between(t, -500, 500));
            r[4] = I(kind);
            /* the model: the later wins unless the field says it is older */
            bool wins = true;
            if (field && model[p][k].present) {
                struct tarn_value *old = &model[p][k].field;
                if (old->is_null || r[2].is_null)
                    wins = old->is_null;
                else
                    wins = descending ? r[2].integer <= old->integer : r[2].integer >= old->integer;
            }
            if (wins) {
                model[p][k].present = true;
                model[p][k].field = r[2];
                model[p][k].value = r[3];
                model[p][k].kind = kind;
            }
        }
        write_rows(&f, rows, count, 1 + (int64_t)tarn_test_random_below(t, 60));
        if (tarn_test_random_one_in(t, 3) && !field)
            compact(&f, 5, true);
        else if (tarn_test_random_one_in(t, 3))
            compact(&f, 3, false);

        const char *lines[2 * KEYS];
        size_t line_count = 0;
        for (int p = 0; p < 2; p++) {
            for (int k = 0; k < KEYS; k++) {
                struct tarn_value row[] = {
                    I(p), text_key ? T(tarn_arena_printf(t->arena, "key-number-%d", k)) : I(k - 20),
                    model[p][k].field, model[p][k].value};
                if (model[p][k].present && model[p][k].kind == 0)
                    lines[line_count++] = line_of(t, f.types, row, 4);
            }
        }
        expect_str(scan(&f, all, 4, NULL), sorted_lines(t, lines, line_count));
    }
    expect_int(object_count(&f), f.live_count);
    tarn_store_drop(&f.store);
}

TARN_TEST(table, equals_the_model)
{
    for (int round = 0; round < tarn_test_rounds(40); round++)
        check_table(t);
}

/* --- another bucket count --- */

/* The partition's files become those of `bucket_count` buckets. */
static struct tarn_compact_result rescale(struct fixture *f, int32_t bucket_count)
{
    struct tarn_write_spec write = {.sequence = next_sequence,
                                    .sequence_arg = f,
                                    .buffer_size = f->buffer_size,
                                    .scratch_dir = tarn_test_dir(f->t),
                                    .no_changelog = true};
    struct tarn_rescale_spec spec = {
        .files = f->live, .file_count = f->live_count, .write = &write};
    struct tarn_compact_result result;

    f->options.bucket = bucket_count;
    expect_ok(tarn_rescale_run(f->t->op, &f->table, &spec, f->t->arena, &result));
    apply(f, result.entries, result.entry_count);
    return result;
}

static void write_some(struct fixture *f, int from, int count, int kind)
{
    struct tarn_value *rows = tarn_arena_calloc(f->t->arena, (size_t)count * 3, sizeof *rows);

    for (int i = 0; i < count; i++) {
        rows[3 * i] = I(from + i);
        rows[3 * i + 1] = I(1000 * f->next_sequence + i);
        rows[3 * i + 2] = I(kind);
    }
    write_rows(f, rows, count, 100);
}

static int level_rows(const struct fixture *f, int level)
{
    int64_t rows = 0;
    for (size_t i = 0; i < f->live_count; i++)
        rows += f->live[i].file.level == level ? f->live[i].file.row_count : 0;
    return (int)rows;
}

TARN_TEST(table, a_rescale_changes_buckets_and_no_row)
{
    const struct tarn_pair options[] = {PAIR("bucket", "2")};
    const int columns[] = {0, 1};
    const int counts[] = {5, 1, 4};
    struct fixture f;

    make_table(t, &f, "k BIGINT, v BIGINT", "k", NULL, options, 1);
    for (size_t i = 0; i < TARN_COUNT_OF(counts); i++) {
        write_some(&f, 0, 60, 0);
        write_some(&f, 40, 60, 0);
        write_some(&f, 10, 20, 3);
        const char *before = scan(&f, columns, 2, NULL);
        struct tarn_compact_result result = rescale(&f, counts[i]);
        expect_str(scan(&f, columns, 2, NULL), before);
        expect_int(f.live_count, counts[i]);
        expect_int(level_rows(&f, 5), 80);
        expect_int(result.rows_out, 80);
        for (size_t n = 0; n < f.live_count; n++)
            expect_int(f.live[n].total_buckets, counts[i]);
    }
    write_some(&f, 0, 200, 3);
    rescale(&f, 3);
    expect_int(f.live_count, 0);
    tarn_store_drop(&f.store);
}

TARN_TEST(table, a_rescale_keeps_apart_what_readers_do_not_know_of_yet)
{
    const struct tarn_pair engines[] = {PAIR("merge-engine", "first-row"),
                                        PAIR("changelog-producer", "lookup")};
    const int columns[] = {0, 1};

    for (size_t i = 0; i < TARN_COUNT_OF(engines); i++) {
        const struct tarn_pair options[] = {PAIR("bucket", "1"), engines[i]};
        struct fixture f;
        make_table(t, &f, "k BIGINT, v BIGINT", "k", NULL, options, 2);
        write_some(&f, 0, 50, 0);
        compact(&f, 5, true);
        write_some(&f, 40, 20, 0);
        write_some(&f, 50, 20, 0);
        const char *before = scan(&f, columns, 2, NULL);
        rescale(&f, 4);
        expect_str(scan(&f, columns, 2, NULL), before);
        expect_int(level_rows(&f, 5), 50);
        expect_int(level_rows(&f, 0), 30);
        tarn_store_drop(&f.store);
    }
}

/* Appended rows of a key stay in order; a rescale that fails leaves nothing. */
TARN_TEST(table, a_rescale_of_an_append_table_keeps_the_order_within_a_key)
{
    const struct tarn_pair options[] = {PAIR("bucket", "3"), PAIR("bucket-key", "k")};
    const int columns[] = {0, 1};
    struct fixture f;

    make_table(t, &f, "k BIGINT, v BIGINT", NULL, NULL, options, 2);
    write_some(&f, 0, 30, 0);
    write_some(&f, 0, 30, 0);
    const char *before = scan(&f, columns, 2, NULL);
    rescale(&f, 7);
    expect_str(scan(&f, columns, 2, NULL), before);
    for (size_t i = 0; i < f.live_count; i++) {
        expect_int(f.live[i].total_buckets, 7);
        expect_int(f.live[i].file.level, 0);
    }
    tarn_store_drop(&f.store);
}

static struct tarn_status *two_buckets(void *arg TARN_UNUSED, struct tarn_op *op TARN_UNUSED,
                                       struct tarn_slice partition, int32_t *count)
{
    static const struct tarn_type type = {.id = TARN_TYPE_BIGINT};
    const struct tarn_type *types[] = {&type};
    struct tarn_value value;
    TARN_TRY(tarn_row_deserialize(partition, types, 1, &value));
    *count = value.integer == 1 ? 2 : 0;
    return TARN_OK;
}

TARN_TEST(table, a_partition_that_has_buckets_keeps_their_number)
{
    const struct tarn_pair options[] = {PAIR("bucket", "1")};
    struct tarn_value rows[64 * 3];
    struct tarn_manifest_entry *entries;
    size_t count, of_first = 0;
    struct fixture f;

    make_table(t, &f, "p BIGINT NOT NULL, k BIGINT NOT NULL", "p,k", "p", options, 1);
    for (int i = 0; i < 64; i++) {
        rows[3 * i] = I(i % 2);
        rows[3 * i + 1] = I(i);
        rows[3 * i + 2] = I(0);
    }
    struct tarn_write_spec spec = {.sequence = next_sequence,
                                   .sequence_arg = &f,
                                   .bucket_count = two_buckets,
                                   .buffer_size = f.buffer_size,
                                   .scratch_dir = tarn_test_dir(t)};
    struct tarn_table_writer *writer;
    expect_ok(tarn_table_writer_open(t->op, &f.table, &spec, &writer));
    struct tarn_batch *batch = tarn_test_batch(f.types, 3, rows, 64);
    expect_ok(tarn_table_writer_add(writer, t->op, batch));
    tarn_batch_unref(batch);
    expect_ok(tarn_table_writer_finish(writer, t->op, t->arena, &entries, &count));
    tarn_table_writer_free(writer);
    expect_int(count, 3);
    for (size_t i = 0; i < count; i++)
        of_first += entries[i].total_buckets == 2;
    expect_int(of_first, 2);
    tarn_store_drop(&f.store);
}

/* bucket = -2: nothing is merged; given buckets, each key's rows count in the order of the files, and within one as they came. */
TARN_TEST(table, rows_that_wait_for_a_bucket_are_kept_and_given_it_in_order)
{
    const struct tarn_pair options[] = {PAIR("bucket", "-2")};
    const int columns[] = {0, 1};
    const struct tarn_value first[] = {I(1), I(10), I(0), I(2), I(20), I(0), I(1), I(11), I(0)};
    const struct tarn_value second[] = {I(2), I(0), I(3), I(3), I(30), I(0), I(1), I(12), I(0)};
    struct fixture f;

    make_table(t, &f, "k BIGINT, v BIGINT", "k", NULL, options, 1);
    write_rows(&f, first, 3, 1);
    write_rows(&f, second, 3, 100);
    expect_int(f.live_count, 2);
    for (size_t i = 0; i < f.live_count; i++) {
        expect_int(f.live[i].bucket, -2);
        expect_int(f.live[i].total_buckets, -2);
        expect_int(f.live[i].file.row_count, 3);
        expect_true(
            tarn_slice_starts_with(f.live[i].file.name, tarn_slice_str("data--u-tarn-s-0-w-")));
    }
    struct tarn_manifest_entry waiting[] = {f.live[1], f.live[0]};
    waiting[0].file.creation_time_ms = 2; /* what counts, not numbers nor names */
    waiting[1].file.creation_time_ms = 1;
    struct tarn_write_spec write = {.sequence = next_sequence,
                                    .sequence_arg = &f,
                                    .buffer_size = f.buffer_size,
                                    .scratch_dir = tarn_test_dir(t)};
    struct tarn_rescale_spec spec = {
        .files = waiting, .file_count = 2, .write = &write, .postponed = true};
    struct tarn_compact_result result;
    f.options.bucket = 2;
    expect_ok(tarn_rescale_run(t->op, &f.table, &spec, t->arena, &result));
    apply(&f, result.entries, result.entry_count);
    expect_int(level_rows(&f, 0), 3);
    expect_str(scan(&f, columns, 2, NULL), "1|12\n3|30\n");
    for (size_t i = 0; i < f.live_count; i++)
        expect_int(f.live[i].total_buckets, 2);
    tarn_store_drop(&f.store);
}
