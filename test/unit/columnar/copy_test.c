/*
 * Promise: row groups that go from one file into another unread are to readers what their rows written anew would be,
 * between rows and in statistics; what can't be taken as it is isn't; damage is told by file and column, and no bytes
 * crash or lead outside of the file.
 */
#include "columnar_fixture.h"

#define COLUMNS                                                                                    \
    "k BIGINT NOT NULL, s STRING, d DECIMAL(20,2), f DOUBLE, t TIMESTAMP(3), b BOOLEAN, l ARRAY<ROW<x INT, y STRING>>"

static const char lines_a[] =
    "{\"k\": 1, \"s\": \"ant\", \"d\": 1.00, \"f\": 1.5, \"t\": \"2026-01-31 12:00:00\", \"b\": true, \"l\": [{\"x\": 1, \"y\": \"u\"}, {\"x\": null, \"y\": null}]}\n"
    "{\"k\": 2, \"s\": null, \"d\": null, \"f\": null, \"t\": null, \"b\": null, \"l\": null}\n"
    "{\"k\": 3, \"s\": \"ant\", \"d\": -7.25, \"f\": -2, \"t\": \"1969-12-31 23:59:59.999\", \"b\": false, \"l\": []}\n";
static const char lines_b[] =
    "{\"k\": 4, \"s\": \"zebra\", \"d\": 99999999999999.99, \"f\": \"NaN\", \"t\": \"2027-01-01 00:00:00\", \"b\": true, \"l\": [{\"x\": 2, \"y\": \"\"}]}\n"
    "{\"k\": 5, \"s\": \"bee\", \"d\": 0.01, \"f\": 0.5, \"t\": null, \"b\": true, \"l\": null}\n";

struct fixture {
    struct tarn_test *t;
    struct tarn_store *store;
    struct rows a, b;
    struct tarn_column_write columns[8];
    struct tarn_file_write spec;
    bool bounded[8];
};

static void open_fixture(struct tarn_test *t, struct fixture *f)
{
    struct tarn_file_result result;

    *f = (struct fixture){.t = t};
    expect_ok(tarn_store_open("memory:", &f->store));
    f->a = rows_json(t, COLUMNS, lines_a);
    f->b = rows_json(t, COLUMNS, lines_b);
    for (size_t i = 0; i < f->a.field_count; i++)
        f->columns[i] =
            (struct tarn_column_write){f->a.fields[i].name, f->a.fields[i].id, f->a.fields[i].type};
    /* row groups of a byte: there are none too small to be copied */
    f->spec = (struct tarn_file_write){"parquet", "zstd", 1, 1, f->columns, f->a.field_count};
    expect_ok(file_write(t, f->store, "t/a.parquet", &f->a, "zstd", &result));
    expect_ok(file_write(t, f->store, "t/b.parquet", &f->b, "zstd", &result));
}

static void close_fixture(struct fixture *f)
{
    rows_clear(&f->a);
    rows_clear(&f->b);
    tarn_store_drop(&f->store);
}

static struct tarn_file_copy *open_copy(struct fixture *f, const char *key)
{
    struct tarn_file_copy *copy = NULL;
    expect_ok(tarn_file_copy_open(f->store, f->t->op, key, &f->spec, f->bounded, &copy));
    return copy;
}

static struct tarn_status *copy_all(struct fixture *f, struct tarn_file_writer *writer,
                                    struct tarn_file_copy *copy)
{
    const struct tarn_row_group *groups;
    size_t count = tarn_file_copy_groups(copy, &groups);
    struct tarn_status *s = TARN_OK;

    for (size_t i = 0; i < count && s == TARN_OK; i++)
        s = tarn_file_writer_copy(writer, f->t->op, copy, i);
    return s;
}

/* A file by a script: a, b: rows written; A, B: row groups copied. */
static void write_script(struct fixture *f, const char *key, const char *script,
                         struct tarn_file_result *result)
{
    struct tarn_file_writer *writer = NULL;

    expect_ok(tarn_file_writer_open(f->store, f->t->op, key, &f->spec, &writer));
    for (; *script != '\0'; script++) {
        struct rows *rows = *script == 'a' || *script == 'A' ? &f->a : &f->b;
        if (*script >= 'a') {
            for (size_t i = 0; i < rows->count; i++)
                expect_ok(tarn_file_writer_add(writer, f->t->op, rows->batches[i]));
        } else {
            struct tarn_file_copy *copy =
                open_copy(f, *script == 'A' ? "t/a.parquet" : "t/b.parquet");
            expect_true(copy != NULL);
            expect_ok(copy_all(f, writer, copy));
            tarn_file_copy_close(copy);
        }
    }
    expect_ok(tarn_file_writer_finish(writer, f->t->op, f->t->arena, result));
}

static void expect_same_stats(const struct fixture *f, const struct tarn_file_result *x,
                              const struct tarn_file_result *y)
{
    expect_int(x->row_count, y->row_count);
    for (size_t i = 0; i < f->a.field_count; i++) {
        const struct tarn_type *type = f->a.fields[i].type;
        expect_int(x->columns[i].none, y->columns[i].none);
        if (x->columns[i].none)
            continue;
        expect_int(x->columns[i].null_count, y->columns[i].null_count);
        expect_int(x->columns[i].has_bounds, y->columns[i].has_bounds);
        if (!x->columns[i].has_bounds)
            continue;
        expect_int(tarn_value_compare(type, &x->columns[i].min, &y->columns[i].min), 0);
        expect_int(tarn_value_compare(type, &x->columns[i].max, &y->columns[i].max), 0);
    }
}

TARN_TEST(copy, gives_what_rows_written_anew_give)
{
    static const char *const scripts[] = {"A", "AB", "aB", "Ab", "AbA", "BaabAB", "aAbB"};
    struct fixture f;

    open_fixture(t, &f);
    for (size_t i = 0; i < TARN_COUNT_OF(scripts); i++) {
        char plain[16] = "";
        struct tarn_file_result copied, written;
        struct rows x = rows_of(t, COLUMNS), y = rows_of(t, COLUMNS);
        struct tarn_object stat;
        bool found;

        for (size_t c = 0; scripts[i][c] != '\0'; c++)
            plain[c] = (char)(scripts[i][c] | 0x20);
        const char *key = tarn_arena_printf(t->arena, "t/copied-%zu.parquet", i);
        const char *anew = tarn_arena_printf(t->arena, "t/written-%zu.parquet", i);
        write_script(&f, key, scripts[i], &copied);
        write_script(&f, anew, plain, &written);
        expect_ok(file_read(t, f.store, key, &f.a, &x, 0, 0));
        expect_ok(file_read(t, f.store, anew, &f.a, &y, 0, 0));
        expect_bytes(rows_print(t, &x, TARN_DATA_JSONL), rows_print(t, &y, TARN_DATA_JSONL));
        /* Doubles: what the manifest doesn't vouch for has no bounds; here b's NaN takes them from both. */
        if (strchr(plain, 'b') != NULL)
            expect_same_stats(&f, &copied, &written);
        expect_ok(tarn_store_stat(f.store, t->op, key, &found, &stat));
        expect_int(copied.size, stat.size);
        rows_clear(&x);
        rows_clear(&y);
    }
    close_fixture(&f);
}

TARN_TEST(copy, keeps_bounds_of_doubles_where_they_are_known_to_have_no_nan)
{
    struct fixture f;
    struct tarn_file_result copied, written;

    open_fixture(t, &f);
    write_script(&f, "t/1.parquet", "A", &copied);
    expect_true(!copied.columns[3].has_bounds);
    f.bounded[3] = true;
    write_script(&f, "t/2.parquet", "Aa", &copied);
    write_script(&f, "t/3.parquet", "aa", &written);
    expect_true(copied.columns[3].has_bounds);
    expect_same_stats(&f, &copied, &written);
    close_fixture(&f);
}

TARN_TEST(copy, a_copy_can_be_copied)
{
    struct fixture f;
    struct tarn_file_result result;
    struct rows x = rows_of(t, COLUMNS);

    open_fixture(t, &f);
    write_script(&f, "t/1.parquet", "AbA", &result);
    struct tarn_file_copy *copy = open_copy(&f, "t/1.parquet");
    struct tarn_file_writer *writer = NULL;
    const struct tarn_row_group *groups;
    expect_int(tarn_file_copy_groups(copy, &groups), 3);
    expect_int(groups[1].row_count, 2);
    expect_int(tarn_file_copy_row_count(copy), 8);
    expect_ok(tarn_file_writer_open(f.store, t->op, "t/2.parquet", &f.spec, &writer));
    expect_ok(copy_all(&f, writer, copy));
    tarn_file_copy_close(copy);
    expect_ok(tarn_file_writer_finish(writer, t->op, t->arena, &result));
    expect_ok(file_read(t, f.store, "t/2.parquet", &f.a, &x, 0, 0));
    expect_slice(rows_print(t, &x, TARN_DATA_JSONL),
                 tarn_arena_printf(t->arena, "%s%s%s", lines_a, lines_b, lines_a));
    rows_clear(&x);
    close_fixture(&f);
}

TARN_TEST(copy, takes_only_what_a_rewrite_would_give)
{
    struct fixture f;
    struct tarn_type required, narrow;

    open_fixture(t, &f);
    f.spec.compression = "snappy";
    expect_true(open_copy(&f, "t/a.parquet") == NULL);
    f.spec.compression = "zstd";
    f.spec.row_group_size = 0; /* the file's row group is far below what a writer fills */
    expect_true(open_copy(&f, "t/a.parquet") == NULL);
    f.spec.row_group_size = 1;
    f.spec.column_count--;
    expect_true(open_copy(&f, "t/a.parquet") == NULL);
    f.spec.column_count++;
    f.columns[1].field_id++;
    expect_true(open_copy(&f, "t/a.parquet") == NULL);
    f.columns[1].field_id--;
    f.columns[1].name = tarn_slice_str("t");
    expect_true(open_copy(&f, "t/a.parquet") == NULL);
    f.columns[1].name = f.a.fields[1].name;
    required = *f.columns[1].type;
    required.nullable = false;
    f.columns[1].type = &required;
    expect_true(open_copy(&f, "t/a.parquet") == NULL);
    f.columns[1].type = f.a.fields[1].type;
    narrow = *f.columns[2].type;
    narrow.precision = 18;
    f.columns[2].type = &narrow;
    expect_true(open_copy(&f, "t/a.parquet") == NULL);
    f.columns[2].type = f.a.fields[2].type;
    struct tarn_file_copy *copy = open_copy(&f, "t/a.parquet");
    expect_true(copy != NULL);
    tarn_file_copy_close(copy);
    close_fixture(&f);
}

/* What the fuzzer begins with must get as far as a copy. */
TARN_TEST(copy, the_fuzzers_seed_is_copied)
{
    struct fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct rows r =
        rows_of(t, "k BIGINT NOT NULL, s STRING, d DECIMAL(20,2), f DOUBLE, l ARRAY<INT>");

    open_fixture(t, &f);
    for (size_t i = 0; i < r.field_count; i++)
        f.columns[i] = (struct tarn_column_write){r.fields[i].name, (int32_t)i, r.fields[i].type};
    f.spec.column_count = r.field_count;
    tarn_test_read_file(tarn_test_path(t, "fuzz/corpus/parquet_copy/two_rows.parquet"), &bytes);
    expect_ok(tarn_store_put(f.store, t->op, "t/seed.parquet", tarn_buf_slice(&bytes)));
    struct tarn_file_copy *copy = open_copy(&f, "t/seed.parquet");
    expect_true(copy != NULL);
    expect_int(tarn_file_copy_row_count(copy), 2);
    tarn_file_copy_close(copy);
    close_fixture(&f);
}

/* --- damage --- */

static struct tarn_status *try_copy(struct fixture *f, struct tarn_slice bytes, int64_t *rows)
{
    static int number;
    const char *from = tarn_arena_printf(f->t->arena, "t/damaged-%d.parquet", number);
    const char *to = tarn_arena_printf(f->t->arena, "t/copy-%d.parquet", number++);
    struct tarn_file_copy *copy = NULL;
    struct tarn_file_writer *writer = NULL;
    struct tarn_file_result result = {0};

    *rows = 0;
    expect_ok(tarn_store_put(f->store, f->t->op, from, bytes));
    struct tarn_status *s =
        tarn_file_copy_open(f->store, f->t->op, from, &f->spec, f->bounded, &copy);
    if (s == TARN_OK && copy != NULL) {
        expect_ok(tarn_file_writer_open(f->store, f->t->op, to, &f->spec, &writer));
        s = copy_all(f, writer, copy);
        if (s == TARN_OK)
            s = tarn_file_writer_finish(writer, f->t->op, f->t->arena, &result);
        else
            tarn_file_writer_abort(writer);
        *rows = result.row_count;
    }
    tarn_file_copy_close(copy);
    return s;
}

TARN_TEST(copy, tells_damage_by_file_and_column)
{
    struct fixture f;
    int64_t rows;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};

    open_fixture(t, &f);
    expect_ok(tarn_store_get(f.store, t->op, "t/a.parquet", &bytes));
    expect_ok(try_copy(&f, tarn_buf_slice(&bytes), &rows));
    expect_int(rows, 3);
    bytes.data[4] = 0xff; /* the first page's header: a field of no type */
    expect_status(try_copy(&f, tarn_buf_slice(&bytes), &rows), TARN_DATA_FILE_MALFORMED,
                  "row group 0, column k: ");
    close_fixture(&f);
}

/* Each byte in turn is another one: an error, a file that isn't taken, or a copy; and a copy is as large as its rows say. */
TARN_TEST(copy, no_byte_leads_astray)
{
    struct fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    size_t taken = 0, refused = 0;

    open_fixture(t, &f);
    expect_ok(tarn_store_get(f.store, t->op, "t/b.parquet", &bytes));
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t was = bytes.data[i];
        int64_t rows;
        bytes.data[i] = (uint8_t)(was ^ (1 + tarn_test_random_below(t, 255)));
        struct tarn_status *s = try_copy(&f, tarn_buf_slice(&bytes), &rows);
        bytes.data[i] = was;
        if (s != TARN_OK) {
            if (strstr(tarn_status_message(s), "t/damaged-") == NULL)
                expect_str(tarn_status_message(s), "a message that names the damaged file");
            refused++;
        } else {
            taken += rows > 0;
        }
        tarn_status_free(s);
    }
    expect_true(taken > 0 && refused > 0);
    close_fixture(&f);
}
