#include "exec/internal.h"

#include <stdlib.h>
#include <time.h>

/* Cancelling an op wakes nobody, so a wait looks at the op this often. */
#define GATE_LOOK_MS 10

struct tarn_gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open;
};

struct tarn_gate *tarn_gate_new(void)
{
    struct tarn_gate *gate = tarn_calloc(1, sizeof *gate);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->opened, &attributes);
    pthread_condattr_destroy(&attributes);
    return gate;
}

void tarn_gate_free(struct tarn_gate *gate)
{
    if (gate == NULL)
        return;
    /* Whoever opened it may still be on the way out of tarn_gate_open. */
    pthread_mutex_lock(&gate->lock);
    pthread_mutex_unlock(&gate->lock);
    pthread_cond_destroy(&gate->opened);
    pthread_mutex_destroy(&gate->lock);
    free(gate);
}

void tarn_gate_open(struct tarn_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

/* Real time, also under a faked clock: a test's other threads move in real time. */
static void wait_a_little(struct tarn_gate *gate)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += GATE_LOOK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&gate->opened, &gate->lock, &until);
}

bool tarn_gate_wait(struct tarn_gate *gate, const struct tarn_op *op)
{
    tarn_assert_may_wait();
    pthread_mutex_lock(&gate->lock);
    bool is_open = gate->is_open;
    pthread_mutex_unlock(&gate->lock);
    if (is_open)
        return true;

    tarn_exec_wait_begin();
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_open) {
        if (op == NULL)
            pthread_cond_wait(&gate->opened, &gate->lock);
        else if (tarn_op_is_cancelled(op) || tarn_op_wait_ms(op, 1) == 0)
            break;
        else
            wait_a_little(gate);
    }
    is_open = gate->is_open;
    pthread_mutex_unlock(&gate->lock);
    tarn_exec_wait_end();
    return is_open;
}
