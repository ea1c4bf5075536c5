/*
 * test - how tests are written here: TARN_TEST registers itself, main() runs what registered.
 *
 *   TARN_TEST(snapshot_decode, names_the_field_that_is_wrong)
 *   {
 *       struct tarn_status *s = tarn_snapshot_decode(tarn_slice_str("{}"), t->arena, &snapshot);
 *       expect_status(s, TARN_SNAPSHOT_MALFORMED, "id");
 *   }
 *
 * Shape    one _test.c is one program. `prog PATTERN` runs the tests whose "suite.name" matches the
 *          shell pattern; `prog -l` lists them. The last line is "N passed, N failed, N skipped".
 * Memory   each test gets a fresh `t`; t->op and t->arena (the op's own) end with the test, as do
 *          the folders of tarn_test_dir and a faked clock.
 * Random   tarn_test_random* start each test from TARN_SEED (else from the time) and the test's
 *          name, so that one test alone sees the same numbers. A failure prints the seed.
 * Threads  expectations end a test by longjmp: only on the thread that runs it. Other threads store
 *          what they saw, and the test looks at it after joining.
 *
 * All of cmocka's assert_* may be used too; this is the only door to it.
 */
#ifndef TARN_TEST_LIB_TEST_H
#define TARN_TEST_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"

struct tarn_test {
    struct tarn_arena *arena; /* t->op's */
    struct tarn_op *op;       /* no deadline */
    const char *name;         /* "suite.name" */
    uint64_t random_state;
    struct tarn_op op_storage;
    const struct tarn_test_entry *entry;
    char **dirs; /* made by tarn_test_dir, removed at the end */
    size_t dir_count;
    size_t dir_capacity;
};

typedef void (*tarn_test_fn)(struct tarn_test *t);

struct tarn_test_entry {
    const char *name;
    int line;
    tarn_test_fn run;
    struct tarn_test_entry *next;
};
void tarn_test_register(struct tarn_test_entry *entry);

#define TARN_TEST(suite, test)                                                                     \
    static void suite##__##test(struct tarn_test *t);                                              \
    __attribute__((constructor)) static void suite##__##test##__register(void)                     \
    {                                                                                              \
        static struct tarn_test_entry entry = {#suite "." #test, __LINE__, suite##__##test, NULL}; \
        tarn_test_register(&entry);                                                                \
    }                                                                                              \
    static void suite##__##test(TARN_UNUSED struct tarn_test *t)

/* --- expectations; each names the place and both values when it does not hold --- */

/* Consumes `s`. The message must contain `part` ("" or NULL: any message). */
#define expect_status(s, reason, part) tarn_expect_status((s), (reason), (part), __FILE__, __LINE__)
#define expect_ok(s) tarn_expect_ok((s), #s, __FILE__, __LINE__) /* consumes */
#define expect_true(x) tarn_expect_true(!!(x), #x, __FILE__, __LINE__)
#define expect_false(x) tarn_expect_true(!(x), "!(" #x ")", __FILE__, __LINE__)
#define expect_null(p) tarn_expect_true((p) == NULL, #p " == NULL", __FILE__, __LINE__)
#define expect_not_null(p) tarn_expect_true((p) != NULL, #p " != NULL", __FILE__, __LINE__)
/* The value first, then what it should be. */
#define expect_int(got, want)                                                                      \
    tarn_expect_int((int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)
#define expect_uint(got, want)                                                                     \
    tarn_expect_uint((uint64_t)(got), (uint64_t)(want), #got, __FILE__, __LINE__)
#define expect_double(got, want) tarn_expect_double((got), (want), #got, __FILE__, __LINE__)
#define expect_str(got, want) tarn_expect_str((got), (want), #got, __FILE__, __LINE__)
/* A slice against a C string, a slice against a slice, a text that must contain another. */
#define expect_slice(got, want)                                                                    \
    tarn_expect_slice((got), tarn_slice_str(want), #got, __FILE__, __LINE__)
#define expect_bytes(got, want) tarn_expect_slice((got), (want), #got, __FILE__, __LINE__)
#define expect_contains(got, part) tarn_expect_contains((got), (part), #got, __FILE__, __LINE__)
/* Fails with a message of its own. */
#define expect_unreachable(...) tarn_test_fail(__FILE__, __LINE__, __VA_ARGS__)

void tarn_expect_status(struct tarn_status *consumed, enum tarn_reason reason, const char *part,
                        const char *file, int line);
void tarn_expect_ok(struct tarn_status *consumed, const char *what, const char *file, int line);
void tarn_expect_true(bool holds, const char *what, const char *file, int line);
void tarn_expect_int(int64_t got, int64_t want, const char *what, const char *file, int line);
void tarn_expect_uint(uint64_t got, uint64_t want, const char *what, const char *file, int line);
void tarn_expect_double(double got, double want, const char *what, const char *file, int line);
void tarn_expect_str(const char *got, const char *want, const char *what, const char *file,
                     int line);
void tarn_expect_slice(struct tarn_slice got, struct tarn_slice want, const char *what,
                       const char *file, int line);
void tarn_expect_contains(const char *got, const char *part, const char *what, const char *file,
                          int line);
void tarn_test_fail(const char *file, int line, const char *format, ...) TARN_PRINTF(3, 4);

/* Ends the test as skipped; the reason is shown in the summary. Does not return. */
#define tarn_test_skip(t, ...) tarn_test_skip_at((t), __FILE__, __LINE__, __VA_ARGS__)
void tarn_test_skip_at(struct tarn_test *t, const char *file, int line, const char *format, ...)
    TARN_PRINTF(4, 5);

/* --- files --- */

/* Replaces *out (owned, tarn_buf_drop) by test/golden/<name>; a missing file fails the test. */
void tarn_test_golden(const char *name, struct tarn_buf *out);
bool tarn_test_has_golden(const char *name);
/* The path of test/<name> in the source tree; lies in t->arena. */
const char *tarn_test_path(struct tarn_test *t, const char *name);
/* A new empty folder, removed with all it holds when the test ends (kept with TARN_KEEP=1). */
const char *tarn_test_dir(struct tarn_test *t);
void tarn_test_write_file(const char *path, struct tarn_slice body);
void tarn_test_read_file(const char *path, struct tarn_buf *out);

/* --- numbers --- */
uint64_t tarn_test_seed(void);
uint64_t tarn_test_random(struct tarn_test *t);
uint64_t tarn_test_random_below(struct tarn_test *t, uint64_t bound); /* 0 .. bound-1; bound > 0 */
int64_t tarn_test_random_between(struct tarn_test *t, int64_t low, int64_t high); /* both incl. */
bool tarn_test_random_one_in(struct tarn_test *t, uint64_t n);
struct tarn_slice tarn_test_random_bytes(struct tarn_test *t, size_t size); /* in t->arena */
/* Times a property is tried: `usual`, times TARN_EFFORT (check-long sets it to 100). */
int tarn_test_rounds(int usual);
/* Of many cases that are alike a build with sanitizers takes one of so many. No multiple of 2 or 3: kinds that alternate are all met. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TARN_TEST_STRIDE 5
#else
#define TARN_TEST_STRIDE 1
#endif

#endif
