#include "base/op.h"

#include "base/clock.h"
#include "base/text.h"

static void init(struct tarn_op *op)
{
    *op = (struct tarn_op){
        .arena = tarn_arena_new(),
        .deadline_mono_ms = INT64_MAX,
        .principal = "",
    };
}

void tarn_op_init(struct tarn_op *op)
{
    init(op);
    _Static_assert(TARN_REQUEST_ID_SIZE >= TARN_UUID_SIZE, "a request id holds a UUID");
    tarn_uuid_random(op->request_id);
}

void tarn_op_init_child(struct tarn_op *op, const struct tarn_op *parent)
{
    init(op);
    op->parent = parent;
    op->deadline_mono_ms = parent->deadline_mono_ms;
    op->principal = parent->principal;
    memcpy(op->request_id, parent->request_id, sizeof op->request_id);
}

struct tarn_op_held { /* in the op's arena */
    struct tarn_op_held *next;
    void (*let_go)(const void *what);
    const void *what;
};

void tarn_op_hold(struct tarn_op *op, void (*let_go)(const void *what), const void *what)
{
    struct tarn_op_held *held = tarn_arena_alloc(op->arena, sizeof *held);
    *held = (struct tarn_op_held){op->held, let_go, what};
    op->held = held;
}

void tarn_op_fini(struct tarn_op *op)
{
    for (const struct tarn_op_held *held = op->held; held != NULL; held = held->next)
        held->let_go(held->what);
    tarn_arena_free(op->arena);
    *op = (struct tarn_op){.principal = ""};
}

void tarn_op_cancel(struct tarn_op *op)
{
    atomic_store(&op->cancelled, true);
}

bool tarn_op_is_cancelled(const struct tarn_op *op)
{
    for (; op != NULL; op = op->parent)
        if (atomic_load(&op->cancelled))
            return true;
    return false;
}

struct tarn_status *tarn_op_check(const struct tarn_op *op)
{
    if (tarn_op_is_cancelled(op))
        return tarn_status_new(TARN_CANCELLED, "the call was cancelled");
    if (op->deadline_mono_ms != INT64_MAX && tarn_clock_mono_ms() >= op->deadline_mono_ms)
        return tarn_status_new(TARN_DEADLINE_EXCEEDED, "the call's deadline has passed");
    return TARN_OK;
}

int64_t tarn_op_wait_ms(const struct tarn_op *op, int64_t max_ms)
{
    if (op->deadline_mono_ms == INT64_MAX)
        return max_ms;
    int64_t now = tarn_clock_mono_ms();
    if (op->deadline_mono_ms <= now)
        return 0;
    /* Both are after the clock's start, but a caller may have set a deadline before it. */
    int64_t left = op->deadline_mono_ms - now;
    return TARN_MIN(left, max_ms);
}
