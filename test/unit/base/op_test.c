/*
 * Promise: an operation ends by its deadline, by its own cancellation or by its parent's; the faked
 * clock decides what time it is.
 */
#include "test.h"

TARN_TEST(clock, stands_where_it_was_put)
{
    tarn_clock_fake(1764443255123);
    expect_int(tarn_clock_wall_ms(), 1764443255123);
    expect_int(tarn_clock_mono_ms(), 1764443255123);
    tarn_clock_fake(-1);
    int64_t before = tarn_clock_mono_ns();
    expect_true(tarn_clock_mono_ns() >= before);
    expect_true(tarn_clock_wall_ms() > 1700000000000);
    expect_true(tarn_clock_cpu_ns() > 0);
}

TARN_TEST(op, has_a_request_id_and_no_deadline)
{
    struct tarn_op op;
    tarn_op_init(&op);
    expect_true(tarn_uuid_valid(tarn_slice_str(op.request_id)));
    expect_str(op.principal, "");
    expect_ok(tarn_op_check(&op));
    expect_int(tarn_op_wait_ms(&op, 1000), 1000);
    tarn_op_fini(&op);
    expect_null(op.arena);
}

TARN_TEST(op, ends_with_its_deadline)
{
    tarn_clock_fake(1000);
    t->op->deadline_mono_ms = 1500;
    expect_ok(tarn_op_check(t->op));
    expect_int(tarn_op_wait_ms(t->op, 100), 100);
    expect_int(tarn_op_wait_ms(t->op, 1000), 500);
    tarn_clock_fake(1500);
    expect_int(tarn_op_wait_ms(t->op, 1000), 0);
    expect_status(tarn_op_check(t->op), TARN_DEADLINE_EXCEEDED, "");
}

TARN_TEST(op, is_cancelled_with_its_parent_and_not_the_other_way)
{
    struct tarn_op child, other;
    t->op->deadline_mono_ms = tarn_clock_mono_ms() + 1000000;
    t->op->principal = "anna";
    tarn_op_init_child(&child, t->op);
    tarn_op_init_child(&other, t->op);
    expect_str(child.request_id, t->op->request_id);
    expect_str(child.principal, "anna");
    expect_int(child.deadline_mono_ms, t->op->deadline_mono_ms);

    tarn_op_cancel(&other);
    expect_true(tarn_op_is_cancelled(&other));
    expect_false(tarn_op_is_cancelled(t->op));
    expect_false(tarn_op_is_cancelled(&child));
    tarn_op_cancel(t->op);
    expect_status(tarn_op_check(&child), TARN_CANCELLED, "");
    tarn_op_fini(&child);
    tarn_op_fini(&other);
}

static void count(const void *what)
{
    (**(int *const *)what)++;
}

TARN_TEST(op, lets_go_of_what_it_held_while_its_arena_is_there)
{
    struct tarn_op op;
    int let_go = 0;
    tarn_op_init(&op);
    for (int i = 0; i < 3; i++) {
        int **what = tarn_arena_alloc(op.arena, sizeof *what);
        *what = &let_go;
        tarn_op_hold(&op, count, what);
    }
    expect_int(let_go, 0);
    tarn_op_fini(&op);
    expect_int(let_go, 3);
    tarn_op_fini(&op); /* nothing is left */
    expect_int(let_go, 3);
}
