/*
 * Promise: whatever mix of calls, cancellations, deadlines and slow readers is under way, a drain
 * ends soon, every call gets one outcome, and nothing is left behind (the sanitizers look).
 */
#include "echo.h"

#include <unistd.h>

#define CLIENTS 8

struct client {
    struct tarn_channel *channel;
    pthread_t thread;
    uint64_t random;
    atomic_bool *stop;
    long ok_count, failed_count;
    int odd_code; /* one that nobody should see */
};

static uint64_t next(struct client *c)
{
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return c->random >> 33;
}

static void note(struct client *c, struct tarn_status *consumed)
{
    enum tarn_code code = tarn_status_code(consumed);
    if (code == TARN_CODE_OK)
        c->ok_count++;
    else
        c->failed_count++;
    if (code != TARN_CODE_OK && code != TARN_CODE_CANCELLED &&
        code != TARN_CODE_DEADLINE_EXCEEDED && code != TARN_CODE_UNAVAILABLE)
        c->odd_code = (int)code;
    tarn_status_free(consumed);
}

static void call_once(struct client *c, struct tarn_op *op)
{
    struct tarn_message *response = NULL;
    note(c, tarn_channel_unary(c->channel, op, "/t.Echo/Unary", text_message("hello"), &response));
    tarn_message_free(response);
}

/* Reads some, then perhaps leaves in the middle. */
static void stream_some(struct client *c, struct tarn_op *op, const char *path, const char *request)
{
    TARN_OWN(tarn_client_call_drop) struct tarn_client_call *call = NULL;
    struct tarn_status *status = tarn_channel_call(c->channel, op, path, &call);
    if (status == NULL)
        status = tarn_client_call_write(call, text_message(request));
    if (status != NULL) {
        note(c, status);
        return;
    }
    tarn_status_free(tarn_client_call_writes_done(call));
    for (uint64_t n = next(c) % 20; n > 0; n--) {
        struct tarn_message *message = NULL;
        tarn_status_free(tarn_client_call_read(call, &message));
        if (message == NULL) {
            note(c, tarn_client_call_finish(call));
            return;
        }
        tarn_message_free(message);
    }
}

static void *run_client(void *arg)
{
    struct client *c = arg;
    while (!atomic_load(c->stop)) {
        struct tarn_op op;
        tarn_op_init(&op);
        if (next(c) % 4 == 0)
            op.deadline_mono_ms = tarn_clock_mono_ms() + (int64_t)(next(c) % 4);
        switch (next(c) % 5) {
        case 0:
        case 1:
            call_once(c, &op);
            break;
        case 2:
            stream_some(c, &op, "/t.Echo/Repeat", "100 20000");
            break;
        case 3:
            stream_some(c, &op, "/t.Echo/Chat", "a");
            break;
        default:
            stream_some(c, &op, "/grpc.health.v1.Health/Watch", "");
        }
        tarn_op_fini(&op);
    }
    return NULL;
}

static void two_queues(struct tarn_wire_server_options *options)
{
    options->queue_threads = 2;
}

TARN_TEST(wire_stress, drain_under_load)
{
    int rounds = tarn_test_rounds(6);
    for (int round = 0; round < rounds; round++) {
        struct echo echo;
        struct client clients[CLIENTS];
        atomic_bool stop = false;
        long ok_count = 0;

        echo_start(&echo, round % 3 == 0 ? two_queues : NULL);
        for (int i = 0; i < CLIENTS; i++) {
            clients[i] = (struct client){
                .channel = echo.channel, .random = tarn_test_random(t), .stop = &stop};
            expect_int(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
        }
        usleep(150000);
        int64_t from = tarn_clock_mono_ms();
        tarn_wire_server_drain(echo.server, round % 2 == 0 ? 0 : 100);
        int64_t took_ms = tarn_clock_mono_ms() - from;
        atomic_store(&stop, true);
        for (int i = 0; i < CLIENTS; i++) {
            pthread_join(clients[i].thread, NULL);
            expect_int(clients[i].odd_code, 0);
            ok_count += clients[i].ok_count;
        }
        expect_true(took_ms < 5000);
        expect_true(ok_count > 0);
        expect_int(atomic_load(&echo.running), 0);
        echo_stop(&echo);
    }
}
