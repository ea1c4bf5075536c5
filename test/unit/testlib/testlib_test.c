/* Promise: each test starts from a fresh fixture and the same random numbers for the same seed,
 * and leaves no folder behind. */
#include "test.h"

#include <unistd.h>

static char last_dir[256];

TARN_TEST(testlib, gives_an_op_and_its_arena)
{
    expect_true(t->arena == t->op->arena);
    expect_str(t->name, "testlib.gives_an_op_and_its_arena");
    expect_ok(tarn_op_check(t->op));
}

TARN_TEST(testlib, consumes_the_status_it_expects)
{
    expect_status(tarn_status_new(TARN_BUSY, "come back in %d s", 5), TARN_BUSY, "in 5 s");
}

TARN_TEST(testlib, random_numbers_stay_inside_their_bounds)
{
    for (int i = 0; i < 1000; i++) {
        int64_t n = tarn_test_random_between(t, -3, 3);
        expect_true(n >= -3 && n <= 3);
        expect_true(tarn_test_random_below(t, 7) < 7);
    }
    tarn_test_random_between(t, INT64_MIN, INT64_MAX);
    expect_uint(tarn_test_random_bytes(t, 33).size, 33);
}

TARN_TEST(testlib, makes_a_folder)
{
    struct tarn_buf body = {0};
    const char *dir = tarn_test_dir(t);
    const char *file = tarn_arena_printf(t->arena, "%s/f", dir);

    snprintf(last_dir, sizeof last_dir, "%s", dir);
    tarn_test_write_file(file, tarn_slice_str("bytes"));
    tarn_test_read_file(file, &body);
    expect_slice(tarn_buf_slice(&body), "bytes");
    tarn_buf_drop(&body);
}

TARN_TEST(testlib, and_removes_it_after_the_test)
{
    if (getenv("TARN_KEEP") != NULL)
        tarn_test_skip(t, "TARN_KEEP is set");
    if (last_dir[0] == '\0')
        tarn_test_skip(t, "runs after makes_a_folder only");
    expect_int(access(last_dir, F_OK), -1);
}
