/*
 * Deletion vectors: Java's bytes are read as the rows that it marked and written as the very same bytes, in both forms; and
 * whatever else lies there is named instead of believed.
 */
#include "test.h"

#include "format/deletion_vector.h"

static struct tarn_slice golden(struct tarn_test *t, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(name, &bytes);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&bytes));
}

struct rule { /* of test/golden/make/GoldenVectors.java */
    const char *name;
    int64_t rows;
};
static const struct rule rules[] = {{"few", 10},       {"one", 1},         {"edges", 200000},
                                    {"third", 200000}, {"half", 200000},   {"runs", 300000},
                                    {"all", 70000},    {"many", 9 * 65536}};

static bool is_deleted(const char *name, int64_t i)
{
    switch (name[0]) {
    case 'f':
        return i == 3 || i == 5;
    case 'e':
        return i == 65535 || i == 65536 || i == 131071;
    case 't':
        return i % 3 == 0;
    case 'h':
        return i < 100000;
    case 'r':
        return i % 1000 < 37;
    case 'm':
        return i % 65536 == i / 65536;
    default: /* one, all */
        return true;
    }
}

static const struct rule *rule_of(const char *name)
{
    for (size_t i = 0; i < TARN_COUNT_OF(rules); i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    assert_true(false);
    return NULL;
}

static struct tarn_slice behind(struct tarn_slice file, long offset)
{
    return tarn_slice_of(file.data + offset, file.size - (size_t)offset);
}

static void check_golden(struct tarn_test *t, bool wide, const char *name, long offset, long length,
                         long count)
{
    struct tarn_slice file =
        golden(t, wide ? "deletion_vector/wide.index" : "deletion_vector/narrow.index");
    const struct rule *rule = rule_of(name);
    TARN_OWN(tarn_deletions_fini) struct tarn_deletions d = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf again = {0};
    struct tarn_slice record;
    assert_int_equal(file.data[0], TARN_DELETION_INDEX_VERSION);
    expect_ok(tarn_deletions_decode(behind(file, offset), length, rule->rows, &d));
    assert_int_equal(d.count, count);
    for (int64_t i = 0; i < rule->rows; i++)
        if (tarn_deletions_has(&d, i) != is_deleted(name, i))
            fail_msg("%s: row %lld", name, (long long)i);
    assert_int_equal(tarn_deletions_encode(&d, wide, &again), length);
    expect_ok(tarn_deletions_find(behind(file, offset), length, &record));
    assert_int_equal(record.size, again.size);
    assert_memory_equal(record.data, again.data, again.size);
}

TARN_TEST(deletion_vector, javas_bytes_are_read_and_written)
{
    struct tarn_slice text = golden(t, "deletion_vector/vectors.txt");
    char form[16], name[16];
    long offset, length, count;
    int taken, n = 0;
    for (const char *at = (const char *)text.data;
         sscanf(at, "%15s %15s %ld %ld %ld %n", form, name, &offset, &length, &count, &taken) == 5;
         at += taken, n++)
        check_golden(t, strcmp(form, "wide") == 0, name, offset, length, count);
    assert_int_equal(n, 16);
}

TARN_TEST(deletion_vector, deleted_rows_are_met_in_order)
{
    TARN_OWN(tarn_deletions_fini) struct tarn_deletions d = {0};
    expect_ok(tarn_deletions_init(&d, 200));
    assert_int_equal(tarn_deletions_next(&d, 0), 200);
    tarn_deletions_add(&d, 199);
    tarn_deletions_add(&d, 64);
    tarn_deletions_add(&d, 64);
    assert_int_equal(d.count, 2);
    assert_int_equal(tarn_deletions_next(&d, 0), 64);
    assert_int_equal(tarn_deletions_next(&d, 64), 64);
    assert_int_equal(tarn_deletions_next(&d, 65), 199);
    assert_int_equal(tarn_deletions_next(&d, 200), 200);
    expect_status(tarn_deletions_init(&d, TARN_DELETIONS_ROWS_MAX + 1), TARN_TOO_LARGE, "rows");
}

/* Rows behind the first 2^32 have a bitmap of their own; only what is touched takes memory. */
TARN_TEST(deletion_vector, the_last_row_there_can_be)
{
    for (int wide = 0; wide < 2; wide++) {
        TARN_OWN(tarn_deletions_fini) struct tarn_deletions d = {0};
        TARN_OWN(tarn_deletions_fini) struct tarn_deletions again = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
        expect_ok(tarn_deletions_init(&d, TARN_DELETIONS_ROWS_MAX));
        tarn_deletions_add(&d, TARN_DELETIONS_ROWS_MAX - 1);
        int64_t length = tarn_deletions_encode(&d, wide != 0, &bytes);
        expect_ok(
            tarn_deletions_decode(tarn_buf_slice(&bytes), length, TARN_DELETIONS_ROWS_MAX, &again));
        assert_int_equal(again.count, 1);
        assert_true(tarn_deletions_has(&again, TARN_DELETIONS_ROWS_MAX - 1));
    }
}

static struct tarn_buf few(bool wide, int64_t *length)
{
    TARN_OWN(tarn_deletions_fini) struct tarn_deletions d = {0};
    struct tarn_buf bytes = {0};
    expect_ok(tarn_deletions_init(&d, 10));
    tarn_deletions_add(&d, 3);
    tarn_deletions_add(&d, 5);
    *length = tarn_deletions_encode(&d, wide, &bytes);
    return bytes;
}

TARN_TEST(deletion_vector, damage_is_named)
{
    for (int wide = 0; wide < 2; wide++) {
        int64_t length;
        struct tarn_deletions d = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf b = few(wide != 0, &length);
        struct tarn_slice whole = tarn_buf_slice(&b);
        for (size_t cut = 0; cut < whole.size; cut++)
            expect_status(tarn_deletions_decode(tarn_slice_of(whole.data, cut), length, 10, &d),
                          TARN_DELETION_VECTOR_MALFORMED, cut < 8 ? "begins behind" : "cut short");
        expect_status(tarn_deletions_decode(whole, length + 1, 10, &d),
                      TARN_DELETION_VECTOR_MALFORMED, "the index manifest says");
        expect_status(tarn_deletions_decode(whole, length, 5, &d), TARN_DELETION_VECTOR_MALFORMED,
                      "beyond the 5");
        for (size_t i = 0; i < whole.size; i++) { /* no byte of it is without meaning */
            b.data[i] ^= 0x40;
            expect_status(tarn_deletions_decode(whole, length, 10, &d),
                          TARN_DELETION_VECTOR_MALFORMED, "");
            b.data[i] ^= 0x40;
        }
        expect_ok(tarn_deletions_decode(whole, length, 10, &d));
        tarn_deletions_fini(&d);
    }
}
