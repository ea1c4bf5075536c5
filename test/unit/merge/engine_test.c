/*
 * What versions of a key become by partial-update and aggregation equals a naive model, for random histories in any split
 * of runs and batches; merged in two steps they become the same as in one; each function gives its known answers.
 */
#include "test.h"
#include "memory_input.h"
#include "batch.h"

#include "merge/internal.h"

#define COLUMNS_MAX 8
#define RECORDS_MAX 600

struct record {
    struct tarn_value row[COLUMNS_MAX]; /* [0] the key */
    int64_t sequence;
    int8_t kind;
};

struct engine {
    struct tarn_test *t;
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_merge_table table;
    struct tarn_merge_layout layout;
    int column_count;
};

/* --- a table: "k INT NOT NULL, ..." and "key=value;key=value" --- */

static void engine_init(struct engine *e, struct tarn_test *t, const char *columns,
                        const char *text)
{
    struct tarn_pair *pairs = tarn_arena_calloc(t->arena, 16, sizeof *pairs);
    struct tarn_schema draft = {.options = pairs};
    struct tarn_slice *key = tarn_arena_calloc(t->arena, 1, sizeof *key);
    const struct tarn_field *fields;
    char *at = (char *)(uintptr_t)tarn_arena_str(t->arena, tarn_slice_str(text)), *option;

    *e = (struct engine){.t = t};
    pairs[draft.option_count++] = (struct tarn_pair){tarn_slice_str("bucket"), tarn_slice_str("1")};
    while ((option = strsep(&at, ";")) != NULL) {
        char *value = strchr(option, '=');
        *value++ = 0;
        pairs[draft.option_count++] =
            (struct tarn_pair){tarn_slice_str(option), tarn_slice_str(value)};
    }
    expect_ok(tarn_columns_parse(tarn_slice_str(columns), t->arena, &fields, &draft.field_count));
    draft.fields = fields;
    *key = tarn_slice_str("k");
    draft.primary_keys = key;
    draft.primary_key_count = 1;
    expect_ok(tarn_schema_create(&draft, 0, t->arena, &e->schema));
    expect_ok(tarn_options_parse(&e->schema, t->arena, &e->options));
    e->table =
        (struct tarn_merge_table){.path = "db.db/t", .schema = &e->schema, .options = &e->options};
    expect_ok(tarn_merge__layout_make(&e->table, t->arena, &e->layout));
    e->column_count = (int)e->schema.field_count;
}

/* --- runs in memory --- */

static int by_key(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->row[0].integer != y->row[0].integer)
        return x->row[0].integer < y->row[0].integer ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Sorts the records and makes a run of them. */
static struct tarn_merge_input *input_of(const struct engine *e, struct record *records,
                                         size_t count, size_t batch_rows)
{
    struct memory_input *m = memory_input_new(count, 0);
    int n = e->column_count;

    qsort(records, count, sizeof *records, by_key);
    for (size_t at = 0; at < count; at += batch_rows) {
        size_t rows = TARN_MIN(batch_rows, count - at);
        struct tarn_value *v = tarn_calloc(rows * (size_t)(n + 2), sizeof *v);
        for (size_t i = 0; i < rows; i++) {
            struct tarn_value *to = v + i * (size_t)(n + 2);
            memcpy(to, records[at + i].row, (size_t)n * sizeof *to);
            to[n] = tarn_test_int(records[at + i].sequence);
            to[n + 1] = tarn_test_int(records[at + i].kind);
        }
        m->batches[m->count++] = tarn_test_batch(e->layout.types, n + 2, v, (int64_t)rows);
        free(v);
    }
    return &m->input;
}

static struct tarn_status *merge(const struct engine *e, struct tarn_merge_input **inputs,
                                 size_t input_count, bool drop_retract, struct record *out,
                                 size_t *count)
{
    struct tarn_test *t = e->t;
    int n = e->column_count, columns[COLUMNS_MAX + 2];
    struct tarn_merge_key_spec key, order;
    TARN_OWN(tarn_source_drop) struct tarn_source *source = NULL;

    for (int i = 0; i < n + 2; i++)
        columns[i] = i;
    tarn_merge__layout_keys(&e->layout, NULL, t->arena, &key, &order);
    struct tarn_merge_tree_spec spec = {
        .key = &key,
        .order = &order,
        .sequence_column = n,
        .kind_column = n + 1,
        .drop_retract = drop_retract,
        .ignore_delete = e->options.ignore_delete,
        .keep_first = e->options.merge_engine == TARN_MERGE_FIRST_ROW,
        .engine = tarn_merge__engine_spec(&e->layout, columns, n, t->arena),
        .columns = columns,
        .types = e->layout.types,
        .column_count = n + 2,
    };
    TARN_TRY(tarn_merge__tree_open(t->op, &spec, inputs, input_count, &source));
    for (*count = 0;;) {
        struct tarn_batch *batch;
        TARN_TRY(source->next(source, t->op, &batch));
        if (batch == NULL)
            return TARN_OK;
        for (int64_t i = 0; i < batch->row_count; i++, (*count)++) {
            struct record *r = &out[*count];
            for (int c = 0; c < n; c++) {
                r->row[c] =
                    tarn_test_value(t->arena, e->layout.types[c], tarn_batch_column(batch, c), i);
                if (e->layout.types[c]->id == TARN_TYPE_VARCHAR && !r->row[c].is_null)
                    r->row[c].bytes = /* the batch goes */
                        tarn_slice_str(tarn_arena_str(t->arena, r->row[c].bytes));
            }
            r->sequence = tarn_test_value(t->arena, &tarn_merge__sequence_type,
                                          tarn_batch_column(batch, n), i)
                              .integer;
            r->kind = (int8_t)tarn_test_value(t->arena, &tarn_merge__kind_type,
                                              tarn_batch_column(batch, n + 1), i)
                          .integer;
        }
        tarn_batch_unref(batch);
    }
}

static const char *text_of(const struct engine *e, int column, const struct tarn_value *v)
{
    struct tarn_buf out = {0};
    if (v->is_null)
        return NULL;
    tarn_value_print(e->layout.types[column], v, &out);
    const char *text = tarn_arena_str(e->t->arena, tarn_buf_slice(&out));
    tarn_buf_drop(&out);
    return text;
}

static const char *line_of(const struct engine *e, const char *const *cells, int64_t sequence,
                           int kind)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    for (int c = 0; c < e->column_count; c++)
        tarn_buf_printf(&out, "%s|", cells[c] == NULL ? "-" : cells[c]);
    tarn_buf_printf(&out, "@%d %s\n", (int)sequence, kind == 3 ? "D" : "I");
    return tarn_arena_str(e->t->arena, tarn_buf_slice(&out));
}

static const char *lines_of(const struct engine *e, const struct record *records, size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    for (size_t i = 0; i < count; i++) {
        const char *cells[COLUMNS_MAX];
        for (int c = 0; c < e->column_count; c++)
            cells[c] = text_of(e, c, &records[i].row[c]);
        tarn_buf_add_str(&out, line_of(e, cells, records[i].sequence, records[i].kind));
    }
    return tarn_arena_str(e->t->arena, tarn_buf_slice(&out));
}

/* --- the model: cells as texts, one version after the other --- */

static const char *join(struct tarn_test *t, const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return tarn_arena_printf(t->arena, "%s,%s", a, b);
}

/* "[1,2]" and "[3]" as "[1,2,3]" */
static const char *concat(struct tarn_test *t, const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    int x = (int)strlen(a) - 2, y = (int)strlen(b) - 2;
    return tarn_arena_printf(t->arena, "[%.*s%s%.*s]", x, a + 1, x > 0 && y > 0 ? ", " : "", y,
                             b + 1);
}

static const char *number(struct tarn_test *t, int64_t v)
{
    return tarn_arena_printf(t->arena, "%" PRId64, v);
}

static const char *model_add(struct tarn_test *t, const char *function, const char *acc,
                             const char *in, bool first)
{
    int64_t a = acc == NULL ? 0 : atoll(acc), b = in == NULL ? 0 : atoll(in);

    if (strcmp(function, "last_value") == 0)
        return in;
    if (strcmp(function, "first_value") == 0)
        return first ? in : acc;
    if (strcmp(function, "first_non_null_value") == 0)
        return acc == NULL ? in : acc;
    if (strcmp(function, "listagg") == 0)
        return join(t, acc, in);
    if (strcmp(function, "collect") == 0)
        return concat(t, acc, in);
    if (strcmp(function, "sum") == 0)
        return acc == NULL || in == NULL ? (acc == NULL ? in : acc) : number(t, a + b);
    if (strcmp(function, "max") == 0)
        return acc == NULL || (in != NULL && b > a) ? in : acc;
    if (strcmp(function, "min") == 0)
        return acc == NULL || (in != NULL && b < a) ? in : acc;
    return in == NULL ? acc : in;
}

static const char *model_retract(struct tarn_test *t, const char *function, const char *acc,
                                 const char *in)
{
    if (strcmp(function, "sum") == 0)
        return in == NULL ? acc : number(t, (acc == NULL ? 0 : atoll(acc)) - atoll(in));
    return strcmp(function, "last_value") == 0 || in != NULL ? NULL : acc;
}

static const char *model_key(const struct engine *e, const char *const *functions,
                             const struct record *versions, size_t count)
{
    const char *cells[COLUMNS_MAX] = {NULL};

    for (size_t i = 0; i < count; i++) {
        for (int c = 0; c < e->column_count; c++) {
            const char *in = text_of(e, c, &versions[i].row[c]);
            if (c == 0)
                cells[c] = in;
            else if ((versions[i].kind & 1) != 0 && count > 1)
                cells[c] = model_retract(e->t, functions[c], cells[c], in);
            else
                cells[c] = model_add(e->t, functions[c], cells[c], in, i == 0);
        }
    }
    return line_of(e, cells, versions[count - 1].sequence, count > 1 ? 0 : versions[0].kind);
}

static const char *model(const struct engine *e, const char *const *functions,
                         struct record *records, size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};

    qsort(records, count, sizeof *records, by_key);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && records[end].row[0].integer == records[i].row[0].integer;
             end++)
            continue;
        tarn_buf_add_str(&out, model_key(e, functions, records + i, end - i));
    }
    return tarn_arena_str(e->t->arena, tarn_buf_slice(&out));
}

/* --- histories --- */

static struct tarn_value random_value(const struct engine *e, const struct tarn_type *type)
{
    struct tarn_test *t = e->t;
    static const char *const texts[] = {"a", "bb", "a text that is longer than sixteen"};

    if (tarn_test_random_one_in(t, 3))
        return tarn_test_null();
    if (type->id == TARN_TYPE_INT)
        return tarn_test_int((int64_t)tarn_test_random_below(t, 9) - 4);
    if (type->id == TARN_TYPE_VARCHAR)
        return tarn_test_text(texts[tarn_test_random_below(t, 3)]);
    size_t n = tarn_test_random_below(t, 4);
    struct tarn_value *items = tarn_arena_calloc(t->arena, n + 1, sizeof *items);
    for (size_t i = 0; i < n; i++)
        items[i] = tarn_test_int((int64_t)tarn_test_random_below(t, 5));
    return (struct tarn_value){.list = {.items = items, .count = n}};
}

/* Records of ascending sequence. retracts: so many of a hundred. */
static size_t random_history(const struct engine *e, unsigned retracts, struct record *out)
{
    size_t count = 1 + tarn_test_random_below(e->t, RECORDS_MAX - 1);
    uint64_t keys = 1 + tarn_test_random_below(e->t, tarn_test_random_one_in(e->t, 2) ? 5 : 300);

    for (size_t i = 0; i < count; i++) {
        out[i].sequence = (int64_t)i;
        out[i].kind = tarn_test_random_below(e->t, 100) < retracts ? 3 : 0;
        out[i].row[0] = tarn_test_int((int64_t)tarn_test_random_below(e->t, keys));
        for (int c = 1; c < e->column_count; c++)
            out[i].row[c] = random_value(e, e->layout.types[c]);
    }
    return count;
}

static size_t random_rows(struct tarn_test *t)
{
    return 1 + tarn_test_random_below(t, tarn_test_random_one_in(t, 2) ? 4 : 300);
}

/* All in one step, each record in whichever run. */
static void at_once(const struct engine *e, const struct record *records, size_t count,
                    struct record *out, size_t *out_count)
{
    size_t runs = 1 + tarn_test_random_below(e->t, 6);
    struct tarn_merge_input *inputs[6];
    struct record *of_run = tarn_calloc(count + 1, sizeof *of_run);
    uint8_t *run = tarn_calloc(count + 1, 1);

    for (size_t i = 0; i < count; i++)
        run[i] = (uint8_t)tarn_test_random_below(e->t, runs);
    for (size_t r = 0; r < runs; r++) {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
            if (run[i] == r)
                of_run[n++] = records[i];
        }
        inputs[r] = input_of(e, of_run, n, random_rows(e->t));
    }
    expect_ok(merge(e, inputs, runs, false, out, out_count));
    free(of_run);
    free(run);
}

/* Neighbours by age first, what they become then. */
static void in_steps(const struct engine *e, const struct record *records, size_t count,
                     struct record *out, size_t *out_count)
{
    struct tarn_merge_input *inputs[4];
    size_t runs = 1 + tarn_test_random_below(e->t, 4), begin = 0;
    struct record *part = tarn_calloc(count + 1, sizeof *part);
    struct record *merged = tarn_calloc(count + 1, sizeof *merged);

    for (size_t r = 0; r < runs; r++) {
        size_t n, left = count - begin;
        size_t take = r + 1 == runs ? left : tarn_test_random_below(e->t, left + 1);
        memcpy(part, records + begin, take * sizeof *part);
        at_once(e, part, take, merged, &n);
        inputs[r] = input_of(e, merged, n, random_rows(e->t));
        begin += take;
    }
    expect_ok(merge(e, inputs, runs, false, out, out_count));
    free(part);
    free(merged);
}

static void check_model(struct tarn_test *t, const char *columns, const char *options,
                        const char *const *functions, unsigned retracts, bool again)
{
    struct record *records = tarn_calloc(RECORDS_MAX, sizeof *records);
    struct record *out = tarn_calloc(RECORDS_MAX, sizeof *out);
    struct record *sorted = tarn_calloc(RECORDS_MAX, sizeof *sorted);
    size_t n;
    struct engine e;

    engine_init(&e, t, columns, options);
    size_t count = random_history(&e, retracts, records);
    memcpy(sorted, records, count * sizeof *sorted);
    const char *want = model(&e, functions, sorted, count);
    at_once(&e, records, count, out, &n);
    expect_str(lines_of(&e, out, n), want);
    if (again) {
        in_steps(&e, records, count, out, &n);
        expect_str(lines_of(&e, out, n), want);
    }
    free(records);
    free(out);
    free(sorted);
}

TARN_TEST(engine, partial_update_equals_the_model)
{
    static const char *const functions[] = {"", "", "", ""};
    for (int round = 0; round < tarn_test_rounds(40); round++)
        check_model(t, "k INT NOT NULL, a INT, s STRING, l ARRAY<INT>",
                    "merge-engine=partial-update", functions, 0, true);
}

TARN_TEST(engine, aggregation_equals_the_model)
{
    static const char *const functions[] = {
        "",           "sum",         "max",     "listagg",
        "last_value", "first_value", "collect", "first_non_null_value"};
    for (int round = 0; round < tarn_test_rounds(40); round++)
        check_model(
            t, "k INT NOT NULL, a INT, b INT, s STRING, c INT, d STRING, l ARRAY<INT>, e INT",
            "merge-engine=aggregation;fields.a.aggregate-function=sum;"
            "fields.b.aggregate-function=max;fields.s.aggregate-function=listagg;"
            "fields.c.aggregate-function=last_value;fields.d.aggregate-function=first_value;"
            "fields.l.aggregate-function=collect;"
            "fields.e.aggregate-function=first_non_null_value",
            functions, 0, true);
}

TARN_TEST(engine, retracts_equal_the_model)
{
    static const char *const functions[] = {"", "sum", "last_value", "last_non_null_value"};
    for (int round = 0; round < tarn_test_rounds(40); round++)
        check_model(t, "k INT NOT NULL, a INT, b INT, s STRING",
                    "merge-engine=aggregation;fields.a.aggregate-function=sum;"
                    "fields.b.aggregate-function=last_value",
                    functions, 30, false);
}

/* --- known answers --- */

static struct record record_of(const struct engine *e, int64_t sequence, int8_t kind,
                               const struct tarn_value *row)
{
    struct record r = {.sequence = sequence, .kind = kind};
    memcpy(r.row, row, (size_t)e->column_count * sizeof *row);
    return r;
}

#define I tarn_test_int
#define T tarn_test_text
#define NONE tarn_test_null()
#define ROW(...) ((struct tarn_value[]){__VA_ARGS__})

static const char *merge_all(const struct engine *e, struct record *records, size_t count)
{
    struct record out[8];
    size_t n;
    struct tarn_merge_input *input = input_of(e, records, count, 2);
    expect_ok(merge(e, &input, 1, false, out, &n));
    return lines_of(e, out, n);
}

/* docs/format.md, "Partial update": run with Paimon's Java library. */
TARN_TEST(engine, a_sequence_group_keeps_old_values_out)
{
    struct engine e;
    engine_init(&e, t, "k INT NOT NULL, g INT, b STRING, n INT, x STRING",
                "merge-engine=partial-update;fields.g.sequence-group=b,n;"
                "fields.n.aggregate-function=sum");
    struct record records[] = {
        record_of(&e, 1, 0, ROW(I(1), I(5), T("b5"), I(10), T("x1"))),
        record_of(&e, 2, 0, ROW(I(1), I(3), T("b3"), I(7), NONE)),
        record_of(&e, 3, 0, ROW(I(1), NONE, T("zz"), I(100), T("x2"))),
        record_of(&e, 4, 0, ROW(I(1), I(6), NONE, I(1), NONE)),
    };
    expect_str(merge_all(&e, records, 4), "1|6|-|18|x2|@4 I\n");
    records[3].kind = 3;
    expect_str(merge_all(&e, records, 4), "1|6|-|16|x2|@4 I\n");
}

TARN_TEST(engine, a_delete_removes_the_row_where_options_say_so)
{
    struct engine e;
    engine_init(&e, t, "k INT NOT NULL, a INT, b INT",
                "merge-engine=partial-update;partial-update.remove-record-on-delete=true");
    struct record records[] = {
        record_of(&e, 1, 0, ROW(I(1), I(1), I(2))),
        record_of(&e, 2, 1, ROW(I(1), I(7), I(7))),
        record_of(&e, 3, 3, ROW(I(1), I(1), NONE)),
        record_of(&e, 4, 0, ROW(I(1), NONE, I(9))),
    };
    expect_str(merge_all(&e, records, 2), "1|1|2|@2 I\n");
    expect_str(merge_all(&e, records, 3), "1|1|-|@3 D\n");
    expect_str(merge_all(&e, records, 4), "1|1|9|@4 I\n");
    engine_init(&e, t, "k INT NOT NULL, a INT, b INT",
                "merge-engine=aggregation;aggregation.remove-record-on-delete=true;"
                "fields.a.aggregate-function=first_value");
    records[1].kind = 0;
    expect_str(merge_all(&e, records, 3), "1|1|-|@3 D\n");
    expect_str(merge_all(&e, records, 4), "1|-|9|@4 I\n"); /* it begins anew */
}

TARN_TEST(engine, deletes_that_it_can_not_take_are_errors)
{
    static const char *const engines[][2] = {
        {"merge-engine=partial-update", "ignore-delete"},
        {"merge-engine=aggregation;fields.a.aggregate-function=max", "fields.a.ignore-retract"},
        {"merge-engine=first-row", "first-row"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(engines); i++) {
        struct engine e;
        struct record out[4];
        size_t n;
        engine_init(&e, t, "k INT NOT NULL, a INT", engines[i][0]);
        struct record records[] = {record_of(&e, 1, 0, ROW(I(1), I(1))),
                                   record_of(&e, 2, 3, ROW(I(1), I(1)))};
        struct tarn_merge_input *input = input_of(&e, records, 2, 8);
        expect_status(merge(&e, &input, 1, false, out, &n), TARN_VALUE_INVALID, engines[i][1]);
        expect_status(tarn_merge__check_kind(&e.layout, 3, 6), TARN_VALUE_INVALID, "row 7");
        expect_ok(tarn_merge__check_kind(&e.layout, 0, 6));
    }
}

TARN_TEST(engine, the_first_row_stays)
{
    struct engine e;
    engine_init(&e, t, "k INT NOT NULL, a INT", "merge-engine=first-row;ignore-delete=true");
    struct record records[] = {record_of(&e, 1, 3, ROW(I(1), I(1))),
                               record_of(&e, 2, 0, ROW(I(1), I(2))),
                               record_of(&e, 3, 0, ROW(I(1), I(3)))};
    expect_str(merge_all(&e, records, 3), "1|2|@2 I\n");
}

static void check_overflow(struct tarn_test *t, const char *type, const char *function,
                           struct tarn_value a, struct tarn_value b, const char *want)
{
    struct engine e;
    struct record out[4];
    size_t n;
    engine_init(&e, t, tarn_arena_printf(t->arena, "k INT NOT NULL, a %s", type),
                tarn_arena_printf(
                    t->arena, "merge-engine=aggregation;fields.a.aggregate-function=%s", function));
    struct record records[] = {record_of(&e, 1, 0, ROW(I(1), a)),
                               record_of(&e, 2, 0, ROW(I(1), b))};
    struct tarn_merge_input *input = input_of(&e, records, 2, 8);
    if (want == NULL) {
        expect_status(merge(&e, &input, 1, false, out, &n), TARN_VALUE_INVALID, type);
        return;
    }
    expect_ok(merge(&e, &input, 1, false, out, &n));
    const char *text = text_of(&e, 1, &out[0].row[1]);
    expect_str(text == NULL ? "null" : text, want);
}

TARN_TEST(engine, numbers_that_do_not_fit)
{
    const __int128 big = ((__int128)1 << 126) - 1;
#define D tarn_test_decimal
    check_overflow(t, "TINYINT", "sum", I(100), I(27), "127");
    check_overflow(t, "TINYINT", "sum", I(100), I(28), NULL);
    check_overflow(t, "BIGINT", "sum", I(INT64_MIN), I(-1), NULL);
    check_overflow(t, "BIGINT", "product", I(INT64_MAX), I(2), NULL);
    check_overflow(t, "BIGINT", "product", I(-3), I(5), "-15");
    check_overflow(t, "DECIMAL(4, 2)", "sum", D(9999), D(1), "null");
    check_overflow(t, "DECIMAL(4, 2)", "sum", D(9999), D(-1), "99.98");
    check_overflow(t, "DECIMAL(4, 2)", "product", D(-50), D(101), "-0.51"); /* -0.505 */
    check_overflow(t, "DECIMAL(4, 2)", "product", D(9999), D(9999), "null");
    check_overflow(t, "DECIMAL(38, 0)", "product", D(big), D(big), "null");
    check_overflow(t, "DECIMAL(38, 0)", "product", D(big / 4), D(1),
                   "21267647932558653966460912964485513215");
}

TARN_TEST(engine, a_column_that_must_not_be_null_is_named)
{
    struct engine e;
    struct record out[4];
    size_t n;
    engine_init(&e, t, "k INT NOT NULL, a DECIMAL(2, 0) NOT NULL",
                "merge-engine=aggregation;fields.a.aggregate-function=sum");
    struct record records[] = {record_of(&e, 1, 0, ROW(I(1), D(99))),
                               record_of(&e, 2, 0, ROW(I(1), D(1)))};
    struct tarn_merge_input *input = input_of(&e, records, 2, 8);
    expect_status(merge(&e, &input, 1, false, out, &n), TARN_VALUE_INVALID, "column a");
}
