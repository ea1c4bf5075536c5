/*
 * Promise: a changelog replayed from the start is the table. `input`: each load's has every row as it came, by key and in the order in
 * which they count, whether rows spill, come in order or don't. `lookup` and `full-compaction`: each record fits what was told before, whatever
 * files and levels are compacted in which order, merged or moved; exactly the records of Paimon's rules. A load or compaction that
 * failed leaves no file of it.
 */
#include "test.h"
#include "batch.h"

#include "merge/internal.h"

#define I(v) tarn_test_int(v)
#define T(v) tarn_test_text(v)
#define NONE tarn_test_null()
enum { INSERT, BEFORE, AFTER, DELETED };
#define COLUMNS 3 /* id, s, v; then the row kind */
#define KEYS_MAX 40

struct files {
    struct tarn_manifest_entry *items;
    size_t count;
};

struct fixture {
    struct tarn_test *t;
    struct tarn_store *store;
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_merge_table table;
    const struct tarn_type **types; /* columns, then the row kind */
    int64_t next_sequence, buffer_size;
    struct files live, log;     /* log: what the last load or compaction wrote */
    const char *told[KEYS_MAX]; /* by key: what the changelog says it is; NULL: not there */
    bool strict;                /* each record must fit what was told before */
};

/* Options as pairs of texts, up to a NULL. */
static void make_table(struct tarn_test *t, struct fixture *f, const char *const *options)
{
    struct tarn_slice *keys = tarn_arena_calloc(t->arena, 1, sizeof *keys);
    struct tarn_pair *pairs = tarn_arena_calloc(t->arena, 10, sizeof *pairs);
    struct tarn_schema draft = {.options = pairs, .option_count = 1};
    const struct tarn_field *fields;

    memset(f, 0, sizeof *f);
    f->t = t;
    f->buffer_size = 64 << 20;
    keys[0] = tarn_slice_str("id");
    pairs[0] = (struct tarn_pair){tarn_slice_str("bucket"), tarn_slice_str("1")};
    for (; *options != NULL; options += 2)
        pairs[draft.option_count++] =
            (struct tarn_pair){tarn_slice_str(options[0]), tarn_slice_str(options[1])};
    expect_ok(tarn_store_open("memory:", &f->store));
    expect_ok(tarn_columns_parse(tarn_slice_str("id INT NOT NULL, s INT, v STRING"), t->arena,
                                 &fields, &draft.field_count));
    draft.fields = fields;
    draft.primary_keys = keys;
    draft.primary_key_count = 1;
    expect_ok(tarn_schema_create(&draft, 0, t->arena, &f->schema));
    expect_ok(tarn_options_parse(&f->schema, t->arena, &f->options));
    f->table = (struct tarn_merge_table){
        .store = f->store, .path = "db.db/t", .schema = &f->schema, .options = &f->options};
    f->types = tarn_arena_calloc(t->arena, COLUMNS + 1, sizeof *f->types);
    for (int i = 0; i < COLUMNS; i++)
        f->types[i] = f->schema.fields[i].type;
    f->types[COLUMNS] = &tarn_merge__kind_type;
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

static void apply(struct fixture *f, const struct tarn_manifest_entry *entries, size_t count)
{
    struct files next = {
        .items = tarn_arena_calloc(f->t->arena, f->live.count + count + 1, sizeof *next.items)};

    for (size_t i = 0; i < f->live.count; i++) {
        bool gone = false;
        for (size_t j = 0; j < count; j++)
            gone = gone || (entries[j].kind == TARN_ENTRY_DELETE &&
                            tarn_slice_equal(entries[j].file.name, f->live.items[i].file.name));
        if (!gone)
            next.items[next.count++] = f->live.items[i];
    }
    for (size_t j = 0; j < count; j++) {
        if (entries[j].kind == TARN_ENTRY_ADD)
            next.items[next.count++] = entries[j];
    }
    f->live = next;
}

static struct tarn_status *try_load(struct fixture *f, const struct tarn_value *rows, int64_t count,
                                    int64_t batch_size, bool no_changelog)
{
    struct tarn_write_spec spec = {.sequence = next_sequence,
                                   .sequence_arg = f,
                                   .buffer_size = f->buffer_size,
                                   .scratch_dir = tarn_test_dir(f->t),
                                   .no_changelog = no_changelog};
    struct tarn_table_writer *writer = NULL;
    struct files files = {0};
    struct tarn_status *s = tarn_table_writer_open(f->t->op, &f->table, &spec, &writer);

    for (int64_t at = 0; at < count && s == TARN_OK; at += batch_size) {
        struct tarn_batch *batch = tarn_test_batch(f->types, COLUMNS + 1, rows + at * (COLUMNS + 1),
                                                   TARN_MIN(batch_size, count - at));
        s = tarn_table_writer_add(writer, f->t->op, batch);
        tarn_batch_unref(batch);
    }
    if (s == TARN_OK)
        s = tarn_table_writer_finish(writer, f->t->op, f->t->arena, &files.items, &files.count);
    if (s == TARN_OK) {
        tarn_table_writer_changelog(writer, f->t->arena, &f->log.items, &f->log.count);
        apply(f, files.items, files.count);
    }
    tarn_table_writer_free(writer);
    return s;
}

static void load(struct fixture *f, const struct tarn_value *rows, int64_t count,
                 int64_t batch_size)
{
    expect_ok(try_load(f, rows, count, batch_size, false));
}

/* What the last load or compaction told, as "+I 1|null|a -D 2|5|b"; and the replay follows it. */
static void follow(struct fixture *f, const char *kind, int64_t id, const char *row)
{
    bool add = strcmp(kind, "+I") == 0 || strcmp(kind, "+U") == 0;
    const char **told = &f->told[id];

    if (f->strict) {
        expect_true((*told != NULL) == (strcmp(kind, "-U") == 0 || strcmp(kind, "-D") == 0));
        if (*told != NULL)
            expect_str(row, *told);
    }
    if (f->strict || strcmp(kind, "-U") != 0)
        *told = add ? row : NULL;
}

static const char *told(struct fixture *f)
{
    struct tarn_test *t = f->t;
    static const int all[] = {0, 1, 2};
    static const struct tarn_type kind_type = {.id = TARN_TYPE_VARCHAR, .length = INT32_MAX};
    struct tarn_merge_split split = {
        .partition = tarn_row_empty(), .files = f->log.items, .file_count = f->log.count};
    struct tarn_scan_spec spec = {.columns = all, .column_count = COLUMNS, .limit = -1};
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};

    expect_ok(tarn_changes_open(t->op, &f->table, &split, 1, &spec, &source));
    for (;;) {
        struct tarn_batch *batch;
        expect_ok(source->next(source, t->op, &batch));
        if (batch == NULL)
            break;
        for (int64_t r = 0; r < batch->row_count; r++) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
            const char *kind = tarn_arena_str(
                t->arena,
                tarn_test_value(t->arena, &kind_type, tarn_batch_column(batch, 0), r).bytes);
            int64_t id = 0;
            for (int c = 0; c < COLUMNS; c++) {
                struct tarn_value value =
                    tarn_test_value(t->arena, f->types[c], tarn_batch_column(batch, c + 1), r);
                id = c == 0 ? value.integer : id;
                tarn_buf_add_str(&row, c == 0 ? "" : "|");
                tarn_value_print(f->types[c], &value, &row);
            }
            const char *line = tarn_arena_str(t->arena, tarn_buf_slice(&row));
            tarn_buf_printf(&text, "%s%s %s", text.size == 0 ? "" : " ", kind, line);
            follow(f, kind, id, line);
        }
        tarn_batch_unref(batch);
    }
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

/* The table, as rows by key. */
static void scan(struct fixture *f, const char **rows)
{
    struct tarn_test *t = f->t;
    static const int all[] = {0, 1, 2};
    struct tarn_merge_split split = {
        .partition = tarn_row_empty(), .files = f->live.items, .file_count = f->live.count};
    struct tarn_scan_spec spec = {.columns = all, .column_count = COLUMNS, .limit = -1};
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;

    expect_ok(tarn_scan_open(t->op, &f->table, &split, 1, &spec, &source));
    for (;;) {
        struct tarn_batch *batch;
        expect_ok(source->next(source, t->op, &batch));
        if (batch == NULL)
            break;
        for (int64_t r = 0; r < batch->row_count; r++) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
            int64_t id = 0;
            for (int c = 0; c < COLUMNS; c++) {
                struct tarn_value value =
                    tarn_test_value(t->arena, f->types[c], tarn_batch_column(batch, c), r);
                id = c == 0 ? value.integer : id;
                tarn_buf_add_str(&row, c == 0 ? "" : "|");
                tarn_value_print(f->types[c], &value, &row);
            }
            expect_null(rows[id]);
            rows[id] = tarn_arena_str(t->arena, tarn_buf_slice(&row));
        }
        tarn_batch_unref(batch);
    }
}

static void expect_told_is_table(struct fixture *f)
{
    const char *rows[KEYS_MAX] = {0};

    scan(f, rows);
    for (int i = 0; i < KEYS_MAX; i++)
        expect_str(f->told[i] == NULL ? "none" : f->told[i], rows[i] == NULL ? "none" : rows[i]);
}

static size_t object_count(struct fixture *f)
{
    struct tarn_test *t = f->t;
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->store, t->op, "", true, &objects, &count));
    return count;
}

/* --- input --- */

static const char *const input[] = {"changelog-producer", "input", NULL};

TARN_TEST(changelog, input_has_every_row)
{
    struct fixture f;
    make_table(t, &f, input);
    struct tarn_value rows[] = {I(2), NONE, T("b"), I(INSERT), I(1), NONE, T("a"), I(INSERT),
                                I(2), NONE, T("c"), I(BEFORE), I(2), NONE, T("d"), I(AFTER),
                                I(9), NONE, NONE,   I(DELETED)};
    load(&f, rows, 5, 5);
    expect_str(told(&f), "+I 1|null|a +I 2|null|b -U 2|null|c +U 2|null|d -D 9|null|null");
    expect_int(f.log.count, 1);
    const struct tarn_manifest_entry *log = &f.log.items[0];
    expect_true(tarn_slice_starts_with(log->file.name, tarn_slice_str("changelog-")));
    expect_int(log->file.level, 0);
    expect_int(log->file.source, TARN_SOURCE_APPEND);
    expect_int(log->file.row_count, 5);
    expect_int(log->file.delete_row_count, 2);
    expect_int(log->file.min_sequence, 0);
    expect_int(log->file.max_sequence, 4);
    expect_int(f.live.count, 1);
    expect_int(f.live.items[0].file.row_count, 3);
    expect_told_is_table(&f);
    tarn_store_drop(&f.store);
}

TARN_TEST(changelog, input_tells_versions_of_a_key_by_sequence_field)
{
    static const char *const options[] = {"changelog-producer",
                                          "input",
                                          "sequence.field",
                                          "s",
                                          "changelog-file.prefix",
                                          "log-",
                                          NULL};
    struct fixture f;
    make_table(t, &f, options);
    struct tarn_value rows[] = {I(1),       I(3),      T("last"), I(INSERT), I(1),      I(1),
                                T("first"), I(INSERT), I(1),      I(2),      T("next"), I(INSERT)};
    load(&f, rows, 3, 3);
    expect_str(told(&f), "+I 1|1|first +I 1|2|next +I 1|3|last");
    expect_true(tarn_slice_starts_with(f.log.items[0].file.name, tarn_slice_str("log-")));
    expect_told_is_table(&f);
    tarn_store_drop(&f.store);
}

TARN_TEST(changelog, of_an_overwrite_there_is_none)
{
    struct fixture f;
    make_table(t, &f, input);
    struct tarn_value row[] = {I(1), NONE, T("a"), I(INSERT)};
    expect_ok(try_load(&f, row, 1, 1, true));
    expect_int(f.log.count, 0);
    expect_int(object_count(&f), 1);
    tarn_store_drop(&f.store);
}

/* Rows in key order are written as they come: their changelog too, to a file that goes on until the order breaks. */
TARN_TEST(changelog, input_of_rows_in_order_is_one_file)
{
    struct fixture f;
    make_table(t, &f, input);
    f.buffer_size = 1;
    struct tarn_value rows[KEYS_MAX * (COLUMNS + 1)];
    for (int i = 0; i < KEYS_MAX; i++) {
        struct tarn_value *r = rows + i * (COLUMNS + 1);
        r[0] = I(i < KEYS_MAX - 1 ? i : 0);
        r[1] = NONE;
        r[2] = T("v");
        r[3] = I(INSERT);
    }
    load(&f, rows, KEYS_MAX - 1, 3);
    expect_int(f.log.count, 1);
    expect_int(f.log.items[0].file.row_count, KEYS_MAX - 1);
    load(&f, rows, KEYS_MAX, 3);
    expect_int(f.log.count, 2); /* up to the last batch, in which key 0 comes again, and that */
    expect_int(f.log.items[0].file.row_count + f.log.items[1].file.row_count, KEYS_MAX);
    expect_true(f.log.items[0].file.max_sequence < f.log.items[1].file.min_sequence);
    tarn_store_drop(&f.store);
}

/* A random load: of few keys, so that they come again within it and with others. */
static int64_t random_rows(struct tarn_test *t, bool pairs, struct tarn_value **out)
{
    int64_t count = (int64_t)tarn_test_random_below(t, 60);
    struct tarn_value *rows =
        tarn_arena_calloc(t->arena, (size_t)(count + 1) * (COLUMNS + 1), sizeof *rows);
    static int number;

    for (int64_t i = 0; i < count; i++) {
        struct tarn_value *r = rows + i * (COLUMNS + 1);
        r[0] = I((int64_t)tarn_test_random_below(t, KEYS_MAX));
        r[1] = tarn_test_random_one_in(t, 4) ? NONE : I((int64_t)tarn_test_random_below(t, 4));
        r[2] = tarn_test_random_one_in(t, 3) ? T("same")
                                             : T(tarn_arena_printf(t->arena, "v%d", number++));
        r[3] = I(tarn_test_random_one_in(t, 3)            ? DELETED
                 : pairs && tarn_test_random_one_in(t, 3) ? AFTER
                                                          : INSERT);
    }
    *out = rows;
    return count;
}

static void check_input(struct tarn_test *t)
{
    struct fixture f;
    const char *options[9] = {"changelog-producer", "input", "target-file-row-num",
                              tarn_test_random_one_in(t, 2) ? "7" : "1000", NULL};
    if (tarn_test_random_one_in(t, 3)) {
        options[4] = "data-file.thin-mode";
        options[5] = "true";
    }
    make_table(t, &f, options);
    for (int commit = 0; commit < 6; commit++) {
        struct tarn_value *rows;
        int64_t count = random_rows(t, true, &rows);
        f.buffer_size = tarn_test_random_one_in(t, 2) ? 1 : 64 << 20; /* 1: each batch spills */
        load(&f, rows, count, 1 + (int64_t)tarn_test_random_below(t, 30));
        int64_t logged = 0;
        for (size_t i = 0; i < f.log.count; i++)
            logged += f.log.items[i].file.row_count;
        expect_int(logged, count);
        told(&f);
        expect_told_is_table(&f);
    }
    tarn_store_drop(&f.store);
}

TARN_TEST(changelog, input_replayed_is_the_table)
{
    for (int round = 0; round < tarn_test_rounds(40); round++)
        check_input(t);
}

/* Each call to the store fails once, in turn. */
TARN_TEST(changelog, of_a_load_that_failed_nothing_is_left)
{
    struct fixture f;
    make_table(t, &f, input);
    struct tarn_value rows[] = {I(2), NONE, T("b"), I(INSERT), I(1), NONE, T("a"), I(INSERT)};
    struct tarn_store *inner = f.store, *faulty = tarn_store_faulty_new(inner);
    static const char *const calls[] = {"create", "append", "finish"};

    f.table.store = faulty;
    for (size_t c = 0; c < TARN_COUNT_OF(calls); c++) {
        int fails = 0;
        for (bool failed = true; failed; fails++) {
            struct tarn_fault_rule rule = {calls[c], NULL, fails, 1, TARN_FAULT_FAIL_BEFORE, 0, 0};
            tarn_store_faulty_add(faulty, &rule);
            size_t before = object_count(&f);
            struct tarn_status *s = try_load(&f, rows, 2, 2, false);
            failed = s != TARN_OK;
            if (failed) {
                expect_status(s, TARN_IO_ERROR, "");
                expect_int(object_count(&f), before);
            }
            tarn_store_faulty_clear(faulty);
        }
        expect_true(fails >= 3); /* one for each of the two files, and then none */
    }
    tarn_store_drop(&faulty);
    tarn_store_drop(&f.store);
}

/* --- compactions --- */

#define TOP 5

static int by_level(const void *a, const void *b)
{
    const struct tarn_data_file *x = &((const struct tarn_manifest_entry *)a)->file;
    const struct tarn_data_file *y = &((const struct tarn_manifest_entry *)b)->file;
    return x->level != y->level ? x->level - y->level : x->min_sequence > y->min_sequence ? 1 : -1;
}

/* Level 0, and as many levels above it as are wanted: as a picker takes them. */
static struct tarn_status *try_compact(struct fixture *f, int wanted)
{
    struct tarn_manifest_entry *files = f->live.items;
    struct tarn_compact_spec spec = {.files = files, .top_level = TOP};
    struct tarn_compact_result result;
    size_t n = 0, count = f->live.count;

    if (count == 0)
        return TARN_OK;
    qsort(files, count, sizeof *files, by_level);
    for (int taken = 0; n < count; n++) {
        int level = files[n].file.level;
        bool next = level > 0 && (n == 0 || files[n - 1].file.level != level);
        if (next && taken >= wanted && level > 1)
            break;
        taken += next;
    }
    if (n == 0)
        return TARN_OK;
    spec.file_count = n;
    spec.output_level = n == count ? TOP : files[n].file.level - 1;
    spec.drop_delete = spec.output_level >= files[count - 1].file.level;
    if (f->options.changelog_producer == TARN_CHANGELOG_LOOKUP) {
        spec.above = files + n;
        spec.above_count = count - n;
    }
    TARN_TRY(tarn_compact_run(f->t->op, &f->table, &spec, f->t->arena, &result));
    f->log = (struct files){result.changelog, result.changelog_count};
    apply(f, result.entries, result.entry_count);
    return TARN_OK;
}

static const char *compacted(struct fixture *f, int wanted)
{
    f->log = (struct files){0};
    expect_ok(try_compact(f, wanted));
    return told(f);
}

/* The worked example of Paimon's own records. */
static void check_example(struct tarn_test *t, const char *producer, const char *deduplicate,
                          const char *want)
{
    const char *options[] = {"changelog-producer", producer, "changelog-producer.row-deduplicate",
                             deduplicate, NULL};
    struct fixture f;
    make_table(t, &f, options);
    f.strict = true;
    struct tarn_value first[] = {I(1),   NONE,      T("a"), I(INSERT), I(2),      NONE,
                                 T("b"), I(INSERT), I(4),   NONE,      T("same"), I(INSERT)};
    struct tarn_value second[] = {I(1),      NONE,      T("a1"), I(INSERT), I(1),      NONE,
                                  T("a2"),   I(INSERT), I(2),    NONE,      T("b"),    I(DELETED),
                                  I(3),      NONE,      T("c"),  I(INSERT), I(4),      NONE,
                                  T("same"), I(INSERT), I(9),    NONE,      T("none"), I(DELETED)};
    load(&f, first, 3, 3);
    expect_int(f.log.count, 0);
    expect_str(compacted(&f, TOP), "+I 1|null|a +I 2|null|b +I 4|null|same");
    expect_int(f.log.count, 1);
    expect_int(f.log.items[0].file.level, TOP);
    expect_int(f.log.items[0].file.source, TARN_SOURCE_APPEND);
    load(&f, second, 6, 6);
    expect_str(compacted(&f, TOP), want);
    expect_int(f.log.items[0].file.min_sequence, 0);
    expect_told_is_table(&f);
    expect_str(compacted(&f, TOP), "");
    tarn_store_drop(&f.store);
}

TARN_TEST(changelog, of_compactions_is_as_paimon_writes_it)
{
    static const char all[] = "-U 1|null|a +U 1|null|a2 -D 2|null|b +I 3|null|c "
                              "-U 4|null|same +U 4|null|same";
    static const char changed[] = "-U 1|null|a +U 1|null|a2 -D 2|null|b +I 3|null|c";
    check_example(t, "lookup", "false", all);
    check_example(t, "lookup", "true", changed);
    check_example(t, "full-compaction", "false", all);
    check_example(t, "full-compaction", "true", changed);
}

TARN_TEST(changelog, of_updates_leaves_columns_out_that_dont_count)
{
    static const char *const options[] = {"changelog-producer",
                                          "lookup",
                                          "changelog-producer.row-deduplicate",
                                          "true",
                                          "changelog-producer.row-deduplicate-ignore-fields",
                                          "none, s",
                                          NULL};
    struct fixture f;
    make_table(t, &f, options);
    struct tarn_value a[] = {I(1), I(1), T("a"), I(INSERT), I(2), I(1), T("b"), I(INSERT)};
    struct tarn_value b[] = {I(1), I(2), T("a"), I(INSERT), I(2), I(1), T("c"), I(INSERT)};
    load(&f, a, 2, 2);
    compacted(&f, TOP);
    load(&f, b, 2, 2);
    expect_str(compacted(&f, 0), "-U 2|1|b +U 2|1|c");
    tarn_store_drop(&f.store);
}

/* What a level above holds, which isn't picked, is what was before; where a sequence field says that it is the later one, it is written
 * again, since readers that look at the lowest level alone must find it there. */
TARN_TEST(changelog, of_a_lookup_finds_what_lies_above)
{
    static const char *const options[] = {"changelog-producer", "lookup", "sequence.field", "s",
                                          NULL};
    struct fixture f;
    make_table(t, &f, options);
    f.strict = true;
    struct tarn_value a[] = {I(1),   I(5),      T("a"), I(INSERT), I(2),   I(5),
                             T("b"), I(INSERT), I(7),   I(1),      T("x"), I(INSERT)};
    struct tarn_value b[] = {I(1),       I(4),      T("older"), I(INSERT), I(2),   I(6),
                             T("newer"), I(INSERT), I(3),       NONE,      T("c"), I(DELETED)};
    load(&f, a, 3, 3);
    expect_str(compacted(&f, TOP), "+I 1|5|a +I 2|5|b +I 7|1|x");
    load(&f, b, 3, 3);
    expect_str(compacted(&f, 0), "-U 1|5|a +U 1|5|a -U 2|5|b +U 2|6|newer");
    expect_int(f.live.count, 2);
    expect_told_is_table(&f);
    for (size_t i = 0; i < 2; i++)
        if (f.live.items[i].file.level < TOP) {
            expect_int(f.live.items[i].file.row_count, 3); /* 1 as it is above, 2, the delete */
            expect_int(f.live.items[i].file.min_sequence, 0);
        }
    tarn_store_drop(&f.store);
}

/* A compaction that fails at some call to the store, again and again. */
static void fail_some(struct fixture *f, struct tarn_store *faulty, int wanted)
{
    struct tarn_test *t = f->t;
    static const char *const calls[] = {"create", "append", "finish", "read_at"};
    struct tarn_fault_rule rule = {calls[tarn_test_random_below(t, TARN_COUNT_OF(calls))],
                                   NULL,
                                   (int)tarn_test_random_below(t, 4),
                                   1,
                                   TARN_FAULT_FAIL_BEFORE,
                                   0,
                                   0};
    struct tarn_store *inner = f->table.store;
    struct files live = f->live;
    size_t before = object_count(f);

    f->log = (struct files){0};
    f->table.store = faulty;
    tarn_store_faulty_add(faulty, &rule);
    struct tarn_status *s = try_compact(f, wanted);
    tarn_store_faulty_clear(faulty);
    f->table.store = inner;
    if (s == TARN_OK) {
        told(f); /* it met no fault */
        return;
    }
    expect_status(s, TARN_IO_ERROR, "");
    expect_int(object_count(f), before);
    f->live = live;
}

static void check_compactions(struct tarn_test *t, bool lookup)
{
    const char *options[13] = {"changelog-producer", lookup ? "lookup" : "full-compaction"};
    size_t n = 2;
    struct fixture f;

    options[n++] = "target-file-row-num";
    options[n++] = tarn_test_random_one_in(t, 2) ? "5" : "1000";
    options[n++] = "target-file-size"; /* 1 byte: none is small, and lone files only move */
    options[n++] = tarn_test_random_one_in(t, 2) ? "1 b" : "1 mb";
    if (tarn_test_random_one_in(t, 2)) {
        options[n++] = "changelog-producer.row-deduplicate";
        options[n++] = "true";
    }
    if (tarn_test_random_one_in(t, 2)) {
        options[n++] = "sequence.field";
        options[n++] = "s";
    }
    make_table(t, &f, options);
    f.strict = true;
    struct tarn_store *faulty = tarn_store_faulty_new(f.store);
    for (int step = 0; step < 14; step++) {
        struct tarn_value *rows;
        for (uint64_t loads = tarn_test_random_below(t, 3); loads > 0; loads--) {
            int64_t count = random_rows(t, true, &rows);
            if (tarn_test_random_one_in(t, 3))
                count = TARN_MIN(count, 2); /* few keys, so that files don't touch each other */
            load(&f, rows, count, 1 + (int64_t)tarn_test_random_below(t, 30));
            expect_int(f.log.count, 0);
        }
        int wanted = tarn_test_random_one_in(t, 3) ? TOP : (int)tarn_test_random_below(t, 3);
        if (tarn_test_random_one_in(t, 3))
            fail_some(&f, faulty, wanted);
        compacted(&f, wanted);
        if (!lookup)
            compacted(&f, step % 3 == 0 ? TOP : wanted);
        if (lookup || step % 3 == 0)
            expect_told_is_table(&f);
    }
    tarn_store_drop(&faulty);
    tarn_store_drop(&f.store);
}

TARN_TEST(changelog, of_lookups_replayed_is_the_table)
{
    for (int round = 0; round < tarn_test_rounds(60); round++)
        check_compactions(t, true);
}

TARN_TEST(changelog, of_full_compactions_replayed_is_the_table)
{
    for (int round = 0; round < tarn_test_rounds(60); round++)
        check_compactions(t, false);
}
