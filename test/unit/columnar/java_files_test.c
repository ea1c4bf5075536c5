/*
 * Promise: data files that Java Paimon wrote hold, read here, the rows that Java's own reader returns; and what
 * is written here of those rows has the same Parquet schema as Java's file.
 * Files: test/golden/table (see test/golden/README.md).
 */
#include "columnar_fixture.h"

#include <stdlib.h>

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_char(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* The lines, sorted; each with its own characters sorted too, since the golden text has the entries of a map in
 * another order than the file, and nothing but the order may differ. */
static const char *sorted(struct tarn_test *t, struct tarn_slice text)
{
    char *copy = tarn_arena_str(t->arena, text);
    char **lines = tarn_arena_calloc(t->arena, text.size + 1, sizeof *lines);
    size_t count = 0;
    struct tarn_buf out = {0};
    for (char *save, *line = strtok_r(copy, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save))
        qsort(line, strlen(line), 1, by_char), lines[count++] = line;
    qsort(lines, count, sizeof *lines, by_text);
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&out, "%s\n", lines[i]);
    const char *result = tarn_arena_str(t->arena, tarn_buf_slice(&out));
    tarn_buf_drop(&out);
    return result;
}

/* Columns of a golden table's schema. */
static struct rows rows_of_schema(struct tarn_test *t, const char *table, int version)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_schema *schema = tarn_arena_calloc(t->arena, 1, sizeof *schema);
    tarn_test_golden(tarn_arena_printf(t->arena, "table/%s/schema/schema-%d", table, version),
                     &json);
    expect_ok(
        tarn_schema_decode(tarn_arena_copy(t->arena, tarn_buf_slice(&json)), t->arena, schema));
    return (struct rows){.fields = schema->fields, .field_count = schema->field_count};
}

/* All data files of bucket-0, none of them superseded. */
static void read_all(struct tarn_test *t, const char *table, struct rows *r)
{
    struct tarn_store *store = NULL;
    struct tarn_object *objects;
    size_t count, seen = 0;
    expect_ok(tarn_store_open(
        tarn_arena_printf(t->arena, "file://%s",
                          tarn_test_path(t, tarn_arena_printf(t->arena, "golden/table/%s", table))),
        &store));
    expect_ok(tarn_store_list(store, t->op, "bucket-0", true, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        const char *key = tarn_arena_str(t->arena, objects[i].key);
        if (strstr(key, ".parquet") == NULL)
            continue;
        expect_ok(file_read(t, store, key, r, r, 0, 0));
        seen++;
    }
    expect_true(seen > 0);
    tarn_store_drop(&store);
}

static void same_rows(struct tarn_test *t, const char *table)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct rows r = rows_of_schema(t, table, 0);
    read_all(t, table, &r);
    tarn_test_golden(tarn_arena_printf(t->arena, "table/%s.jsonl", table), &text);
    struct rows want = {.fields = r.fields, .field_count = r.field_count};
    struct tarn_input_options options = options_of(&want, TARN_DATA_JSONL);
    expect_ok(rows_read(t, &want, &options, NULL, tarn_buf_slice(&text), 0, false));
    expect_str(sorted(t, rows_print(t, &r, TARN_DATA_JSONL)),
               sorted(t, rows_print(t, &want, TARN_DATA_JSONL)));
    /* and through a file of ours */
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    struct rows again = {.fields = r.fields, .field_count = r.field_count};
    expect_ok(tarn_store_open("memory:", &store));
    expect_ok(file_write(t, store, "a.parquet", &want, "zstd", &result));
    expect_ok(file_read(t, store, "a.parquet", &again, &again, 0, 0));
    expect_str(sorted(t, rows_print(t, &again, TARN_DATA_JSONL)),
               sorted(t, rows_print(t, &want, TARN_DATA_JSONL)));
    rows_clear(&again);
    rows_clear(&want);
    rows_clear(&r);
    tarn_store_drop(&store);
}

TARN_TEST(java_files, every_type)
{
    same_rows(t, "append_all");
}

TARN_TEST(java_files, of_pypaimon_without_field_ids)
{
    same_rows(t, "py_append");
}

/* Writes the rows of append_all and has an independent reader compare its schema with Java's file. */
TARN_TEST(java_files, have_the_schema_that_we_write)
{
    const char *python =
        tarn_arena_printf(t->arena, "%s/.cache/tarn/lab/engines/venv/bin/python", getenv("HOME"));
    struct rows r = rows_of_schema(t, "append_all", 0);
    struct tarn_store *store = NULL;
    struct tarn_file_result result;
    if (system(tarn_arena_printf(t->arena, "test -x %s", python)) != 0)
        tarn_test_skip(t, "no pyarrow in %s", python);
    read_all(t, "append_all", &r);
    const char *dir = tarn_test_dir(t);
    expect_ok(tarn_store_open(tarn_arena_printf(t->arena, "file://%s", dir), &store));
    expect_ok(file_write(t, store, "ours.parquet", &r, "zstd", &result));
    expect_int(system(tarn_arena_printf(t->arena, "%s %s %s/ours.parquet %s/bucket-0", python,
                                        tarn_test_path(t, "interop/parquet_shape.py"), dir,
                                        tarn_test_path(t, "golden/table/append_all"))),
               0);
    rows_clear(&r);
    tarn_store_drop(&store);
}
