/*
 * File indexes that Java wrote, asked random predicates and held against the rows of the file: where a
 * row passes, the file is never left out; and where a predicate looks only at bitmaps of exact values,
 * it is left out exactly when no row passes. The same rows, written here, give the same bytes.
 */
#include "test.h"

#include "format/file_index.h"
#include "format/file_index_write.h"

#include <math.h>

#define ROWS_MAX 300

struct table { /* one of test/golden/file_index */
    const char *name;
    struct tarn_schema schema;
    struct tarn_slice index;
    struct tarn_value *values; /* row after row */
    size_t row_count;
};

static const struct tarn_value *row_of(const struct table *table, size_t i)
{
    return table->values + i * table->schema.field_count;
}

static struct tarn_slice golden(struct tarn_test *t, const char *name, const char *ending)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(tarn_arena_printf(t->arena, "file_index/%s.%s", name, ending), &bytes);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&bytes));
}

static struct tarn_slice take_until(struct tarn_slice *text, char mark)
{
    const uint8_t *end = memchr(text->data, mark, text->size);
    size_t size = end == NULL ? text->size : (size_t)(end - text->data);
    struct tarn_slice taken = tarn_slice_of(text->data, size);
    size += end != NULL;
    *text = tarn_slice_of(text->data + size, text->size - size);
    return taken;
}

static void load(struct tarn_test *t, const char *name, struct table *out)
{
    struct tarn_slice text = golden(t, name, "rows");
    out->name = name;
    out->index = golden(t, name, "index");
    expect_ok(tarn_schema_decode(golden(t, name, "schema"), t->arena, &out->schema));
    out->values =
        tarn_arena_calloc(t->arena, ROWS_MAX * out->schema.field_count, sizeof *out->values);
    for (out->row_count = 0; text.size > 0; out->row_count++) {
        struct tarn_slice line = take_until(&text, '\n');
        for (size_t c = 0; c < out->schema.field_count; c++) {
            struct tarn_slice word = take_until(&line, '\t');
            struct tarn_value *v = &out->values[out->row_count * out->schema.field_count + c];
            if (tarn_slice_is(word, "\\N"))
                v->is_null = true;
            else
                expect_ok(tarn_value_parse(out->schema.fields[c].type, word, t->arena, v));
        }
    }
}

/* As GoldenIndexes.java: 70000 rows, sets of them as arrays, bitmaps and runs. */
static void load_large(struct tarn_test *t, struct table *out)
{
    *out =
        (struct table){.name = "large", .index = golden(t, "large", "index"), .row_count = 70000};
    expect_ok(tarn_schema_decode(golden(t, "large", "schema"), t->arena, &out->schema));
    expect_int(out->schema.field_count, 3);
    out->values = tarn_arena_calloc(t->arena, 3 * out->row_count, sizeof *out->values);
    for (size_t i = 0; i < out->row_count; i++) {
        struct tarn_value *v = &out->values[3 * i];
        v[0].integer = (int64_t)(i % 3);
        v[1].integer = (int64_t)(i / 10000);
        v[2] = (struct tarn_value){.is_null = i % 7 == 0, .integer = (int64_t)(i % 2)};
    }
}

/* ---- random expressions, as text: what users type is what is bound */

static void add_quoted(struct tarn_buf *out, struct tarn_slice text)
{
    tarn_buf_add_byte(out, '\'');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\'')
            tarn_buf_add_byte(out, '\'');
        tarn_buf_add_byte(out, text.data[i]);
    }
    tarn_buf_add_byte(out, '\'');
}

static void add_literal(struct tarn_buf *out, const struct tarn_type *type,
                        const struct tarn_value *v)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_value_print(type, v, &text);
    bool real = type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE;
    if (v->is_null)
        tarn_buf_add_str(out, "NULL");
    else if (type->id == TARN_TYPE_VARBINARY) {
        tarn_buf_add_str(out, "X'");
        for (size_t i = 0; i < v->bytes.size; i++)
            tarn_buf_printf(out, "%02x", v->bytes.data[i]);
        tarn_buf_add_str(out, "'");
    } else if (type->id == TARN_TYPE_BOOLEAN || (real && isfinite(v->real)) ||
               (type->id >= TARN_TYPE_TINYINT && type->id <= TARN_TYPE_BIGINT))
        tarn_buf_add_slice(out, tarn_buf_slice(&text));
    else
        add_quoted(out, tarn_buf_slice(&text));
}

/* A value that occurs, or one close to it. */
static struct tarn_value any_value(struct tarn_test *t, const struct table *table, size_t column)
{
    const struct tarn_type *type = table->schema.fields[column].type;
    struct tarn_value v = {.is_null = true};
    for (int i = 0; i < 100 && v.is_null;
         i++) /* NULL as a literal makes constants, not questions */
        v = row_of(table, tarn_test_random_below(t, table->row_count))[column];
    if (v.is_null || !tarn_test_random_one_in(t, 3))
        return v;
    if (type->id >= TARN_TYPE_TINYINT && type->id <= TARN_TYPE_BIGINT)
        v.integer += v.integer > 100 ? -1 : 1;
    else if (type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE)
        v.real += tarn_test_random_one_in(t, 2) ? 0.25 : 0.125;
    else if ((type->id <= TARN_TYPE_VARCHAR || type->id == TARN_TYPE_VARBINARY) && v.bytes.size > 1)
        v.bytes.size--;
    else if (type->id == TARN_TYPE_TIMESTAMP || type->id == TARN_TYPE_TIMESTAMP_LTZ)
        v.time.ms += v.time.ms > 0 ? -1 : 1;
    return v;
}

static void add_leaf(struct tarn_test *t, const struct table *table, size_t column,
                     struct tarn_buf *out)
{
    static const char *const ops[] = {"=", "<>", "<", "<=", ">", ">=", "<=>", "="};
    const struct tarn_field *f = &table->schema.fields[column];
    struct tarn_value v = any_value(t, table, column);
    tarn_buf_printf(out, "`%.*s` ", TARN_SLICE_ARG(f->name));
    switch (v.is_null ? 0 : tarn_test_random_below(t, 6)) {
    case 0:
        tarn_buf_add_str(out, tarn_test_random_one_in(t, 2) ? "IS NULL" : "IS NOT NULL");
        return;
    case 1:
        tarn_buf_add_str(out, tarn_test_random_one_in(t, 2) ? "IN (" : "NOT IN (");
        for (uint64_t i = tarn_test_random_below(t, 4); i <= 4; i++) {
            add_literal(out, f->type, &v);
            tarn_buf_add_str(out, i < 4 ? ", " : ")");
            v = any_value(t, table, column);
        }
        return;
    case 2:
        if (f->type->id <= TARN_TYPE_VARCHAR && !v.is_null) {
            v.bytes.size = TARN_MIN(v.bytes.size, (size_t)1 + tarn_test_random_below(t, 3));
            tarn_buf_add_str(out, "LIKE ");
            add_quoted(out, tarn_slice_str(
                                tarn_arena_printf(t->arena, "%.*s%%", TARN_SLICE_ARG(v.bytes))));
            return;
        }
        break;
    default:
        break;
    }
    tarn_buf_printf(out, "%s ", ops[tarn_test_random_below(t, TARN_COUNT_OF(ops))]);
    add_literal(out, f->type, &v);
}

static void add_expression(struct tarn_test *t, const struct table *table, int depth,
                           const size_t *columns, size_t column_count, struct tarn_buf *out)
{
    if (depth == 0 || tarn_test_random_one_in(t, 4)) {
        add_leaf(t, table, columns[tarn_test_random_below(t, column_count)], out);
        return;
    }
    if (tarn_test_random_one_in(t, 4))
        tarn_buf_add_str(out, "NOT ");
    tarn_buf_add_str(out, "(");
    add_expression(t, table, depth - 1, columns, column_count, out);
    tarn_buf_add_str(out, tarn_test_random_one_in(t, 3) ? " OR " : " AND ");
    add_expression(t, table, depth - 1, columns, column_count, out);
    tarn_buf_add_str(out, ")");
}

struct tally {
    int excluded, kept;
};

/* Cut texts may end inside a character; such a literal is refused, and the round is another's. */
static void try_one(struct tarn_test *t, const struct table *table, const size_t *columns,
                    size_t column_count, bool exact, struct tally *tally)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_predicate p;
    struct tarn_file_index_verdict verdict;
    bool any = false;
    add_expression(t, table, (int)tarn_test_random_below(t, 4), columns, column_count, &text);
    struct tarn_status *s =
        tarn_predicate_parse(tarn_buf_slice(&text), &table->schema, t->arena, &p);
    if (s != NULL) {
        tarn_status_free(s);
        return;
    }
    for (size_t i = 0; i < table->row_count && !any; i++)
        any = tarn_predicate_eval(&p, &table->schema, row_of(table, i)) == TARN_TRUE;
    expect_ok(tarn_file_index_may_match(table->index, &p, &table->schema, &table->schema,
                                        (int64_t)table->row_count, &verdict));
    if (any && !verdict.may_match)
        expect_unreachable("%s: a row passes, but %s on column %d denies it: %s", table->name,
                           verdict.index, verdict.column, tarn_buf_cstr(&text));
    if (exact && !any && verdict.may_match && p.column_count > 0)
        expect_unreachable("%s: no row passes, and no index saw it: %s", table->name,
                           tarn_buf_cstr(&text));
    tally->excluded += !verdict.may_match;
    tally->kept += verdict.may_match;
}

static void try_table(struct tarn_test *t, const char *name, bool exact, int rounds)
{
    struct table table = {0};
    struct tally tally = {0};
    size_t columns[32], count = 0;
    if (strcmp(name, "large") == 0)
        load_large(t, &table);
    else
        load(t, name, &table);
    for (size_t c = 0; c < table.schema.field_count; c++) {
        enum tarn_type_id id = table.schema.fields[c].type->id;
        bool time = id == TARN_TYPE_TIMESTAMP || id == TARN_TYPE_TIMESTAMP_LTZ;
        if (!exact || !time) /* an index of times may hold more than it tells */
            columns[count++] = c;
    }
    for (int i = 0; i < tarn_test_rounds(rounds); i++)
        try_one(t, &table, columns, count, exact, &tally);
    if (tally.excluded < rounds / 100)
        expect_unreachable("%s: only %d of %d left out", name, tally.excluded, rounds);
    expect_true(tally.kept > rounds / 100);
}

TARN_TEST(file_index_property, bitmaps_of_version_1)
{
    try_table(t, "v1", false, 3000);
}

TARN_TEST(file_index_property, bitmaps_of_version_2)
{
    try_table(t, "v2", false, 3000);
}

TARN_TEST(file_index_property, bitmaps_are_exact)
{
    try_table(t, "v1", true, 3000);
    try_table(t, "v2", true, 3000);
}

TARN_TEST(file_index_property, bitmaps_in_blocks)
{
    try_table(t, "blocks", true, 3000);
}

TARN_TEST(file_index_property, bitmaps_of_many_rows)
{
    try_table(t, "large", true, 300);
}

TARN_TEST(file_index_property, bloom_filters)
{
    try_table(t, "bloom", false, 3000);
}

/* Any bytes changed: a verdict or an error, and whatever else the sanitizers see. */
TARN_TEST(file_index_property, damage_is_survived)
{
    static const char *const names[] = {"v1", "v2", "blocks", "bloom"};
    struct table tables[4] = {0};
    for (int i = 0; i < 4; i++)
        load(t, names[i], &tables[i]);
    for (int round = 0; round < tarn_test_rounds(3000); round++) {
        struct table *table = &tables[tarn_test_random_below(t, 4)];
        size_t columns[32], count = 0;
        struct tarn_slice whole = table->index;
        uint8_t *bytes = tarn_alloc(whole.size);
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        struct tarn_predicate p;
        struct tarn_file_index_verdict verdict;
        for (size_t c = 0; c < table->schema.field_count; c++)
            columns[count++] = c;
        memcpy(bytes, whole.data, whole.size);
        for (uint64_t i = tarn_test_random_below(t, 4); i <= 4; i++)
            bytes[tarn_test_random_below(t, whole.size)] = (uint8_t)tarn_test_random(t);
        size_t size =
            tarn_test_random_one_in(t, 4) ? tarn_test_random_below(t, whole.size) : whole.size;
        add_expression(t, table, 3, columns, count, &text);
        struct tarn_status *s =
            tarn_predicate_parse(tarn_buf_slice(&text), &table->schema, t->arena, &p);
        if (s == NULL)
            s = tarn_file_index_may_match(tarn_slice_of(bytes, size), &p, &table->schema,
                                          &table->schema, (int64_t)table->row_count, &verdict);
        if (s != NULL && tarn_status_reason(s) != TARN_EXPRESSION_INVALID &&
            tarn_status_reason(s) != TARN_FILE_INDEX_MALFORMED)
            expect_unreachable("%s: %s", tarn_buf_cstr(&text), tarn_status_message(s));
        tarn_status_free(s);
        free(bytes);
    }
}

/* ---- written here */

static void write_indexes(struct tarn_test *t, const struct table *table, struct tarn_buf *out)
{
    struct tarn_options options;
    expect_ok(tarn_options_parse(&table->schema, t->arena, &options));
    struct tarn_file_index_writer *w = tarn_file_index_writer_new(&table->schema, &options);
    for (size_t r = 0; r < table->row_count; r++)
        for (size_t i = 0; i < options.file_index_count; i++)
            tarn_file_index_writer_add(w, i, row_of(table, r) + options.file_indexes[i].column);
    tarn_file_index_writer_finish(w, out);
    tarn_file_index_writer_free(w);
}

static void expect_javas(struct tarn_test *t, const struct table *table)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    write_indexes(t, table, &bytes);
    expect_bytes(tarn_buf_slice(&bytes), table->index);
}

TARN_TEST(file_index_property, the_bytes_are_javas)
{
    static const char *const names[] = {"v1", "v2", "blocks"};
    struct table table;
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        load(t, names[i], &table);
        expect_javas(t, &table);
    }
    load_large(t, &table);
    expect_javas(t, &table);
}

/* Of a bit-slice index, which isn't read here, what Java wrote is found as it is in ours. */
TARN_TEST(file_index_property, bit_slices_are_javas)
{
    struct table table;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    load(t, "bloom", &table);
    table.schema.options = tarn_arena_calloc(t->arena, 1, sizeof(struct tarn_pair));
    table.schema.option_count = 1;
    *(struct tarn_pair *)(uintptr_t)table.schema.options =
        (struct tarn_pair){tarn_slice_str("file-index.bsi.columns"), tarn_slice_str("other")};
    write_indexes(t, &table, &bytes);
    size_t head = bytes.data[15]; /* what is behind it is the index */
    expect_true(bytes.size > head + 100);
    expect_not_null(
        memmem(table.index.data, table.index.size, bytes.data + head, bytes.size - head));
}
