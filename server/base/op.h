/*
 * op - one operation on its way through the rooms: deadline, cancellation, memory, who and which.
 *
 * Leads every call that may wait. Its arena is dropped with it, and what it holds is let go of; anything that must
 * outlive the operation is copied elsewhere.
 *
 * Threads  an op is used by one thread at a time, except cancel and is_cancelled: any.
 */
#ifndef TARN_BASE_OP_H
#define TARN_BASE_OP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

#define TARN_REQUEST_ID_SIZE 40

struct tarn_op_held; /* op.c */
struct tarn_op {
    struct tarn_arena *arena; /* owned by the op */
    int64_t deadline_mono_ms; /* INT64_MAX: none */
    atomic_bool cancelled;
    const struct tarn_op *parent; /* cancelled when it is; may be NULL. Outlives this one */
    char request_id[TARN_REQUEST_ID_SIZE];
    const char *principal; /* who asks; borrowed, never NULL ("" before authentication) */
    int64_t stale_ms;      /* 0: the answer is of now; else the store was away, and so old it is */
    struct tarn_op_held *held;
};

void tarn_op_init(struct tarn_op *op); /* no deadline, a random request id */
void tarn_op_init_child(struct tarn_op *op, const struct tarn_op *parent);
void tarn_op_fini(struct tarn_op *op);
/* let_go(what) is called when the op ends: so an answer may borrow of what is shared, instead of copying it. */
void tarn_op_hold(struct tarn_op *op, void (*let_go)(const void *what), const void *what);
void tarn_op_cancel(struct tarn_op *op);
bool tarn_op_is_cancelled(const struct tarn_op *op);
/* CANCELLED or DEADLINE_EXCEEDED once that is so. Long loops ask now and then. */
TARN_MUST struct tarn_status *tarn_op_check(const struct tarn_op *op);
/* Milliseconds until the deadline, at least 0, at most `max_ms`. */
int64_t tarn_op_wait_ms(const struct tarn_op *op, int64_t max_ms);

#endif
