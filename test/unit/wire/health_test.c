/*
 * Promise: load balancers learn by Check and Watch whether the server serves, Watch at every change
 * and at the drain's beginning; watchers cost no threads.
 */
#include "echo.h"
#include "wire/internal.h"

static struct tarn_message *request(const char *service)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    if (service[0] != '\0')
        tarn_wire__pb_put_str(&bytes, 1, service);
    return tarn_message_copy(tarn_buf_slice(&bytes));
}

/* The enum of a HealthCheckResponse; -1: no message. */
static int health(struct tarn_message *consumed)
{
    if (consumed == NULL)
        return -1;
    struct tarn_slice bytes = tarn_message_bytes(consumed);
    int value = bytes.size == 2 && bytes.data[0] == 0x08 ? bytes.data[1] : 100;
    tarn_message_free(consumed);
    return value;
}

static int check(struct tarn_test *t, struct echo *echo, const char *service)
{
    struct tarn_message *response = NULL;
    expect_ok(tarn_channel_unary(echo->channel, t->op, "/grpc.health.v1.Health/Check",
                                 request(service), &response));
    return health(response);
}

TARN_TEST(wire_health, check)
{
    struct echo echo;
    struct tarn_message *response = NULL;
    echo_start(&echo, NULL);
    expect_int(check(t, &echo, ""), 1);
    expect_int(check(t, &echo, "t.Echo"), 1);
    expect_status(tarn_channel_unary(echo.channel, t->op, "/grpc.health.v1.Health/Check",
                                     request("t.Nope"), &response),
                  TARN_OBJECT_NOT_FOUND, "t.Nope");
    expect_status(tarn_channel_unary(echo.channel, t->op, "/grpc.health.v1.Health/Check",
                                     text_message("\x0a\x7f"), &response),
                  TARN_INVALID_ARGUMENT, "HealthCheckRequest");
    tarn_wire_server_set_serving(echo.server, false);
    expect_int(check(t, &echo, ""), 2);
    echo_stop(&echo);
}

static struct tarn_client_call *watch(struct tarn_test *t, struct echo *echo, const char *service)
{
    struct tarn_client_call *call = NULL;
    expect_ok(tarn_channel_call(echo->channel, t->op, "/grpc.health.v1.Health/Watch", &call));
    expect_ok(tarn_client_call_write(call, request(service)));
    expect_ok(tarn_client_call_writes_done(call));
    return call;
}

static int next(struct tarn_client_call *call)
{
    struct tarn_message *message = NULL;
    expect_ok(tarn_client_call_read(call, &message));
    return health(message);
}

TARN_TEST(wire_health, watch_tells_changes)
{
    struct echo echo;
    echo_start(&echo, NULL);
    struct tarn_client_call *call = watch(t, &echo, "t.Echo");
    struct tarn_client_call *unknown = watch(t, &echo, "t.Nope");
    expect_int(next(call), 1);
    expect_int(next(unknown), 3);
    tarn_wire_server_set_serving(echo.server, false);
    expect_int(next(call), 2);
    tarn_wire_server_set_serving(echo.server, true);
    expect_int(next(call), 1);
    tarn_client_call_free(unknown); /* one goes, the other stays */
    tarn_wire_server_set_serving(echo.server, false);
    expect_int(next(call), 2);
    tarn_client_call_free(call);
    echo_stop(&echo);
}

TARN_TEST(wire_health, watchers_end_with_the_drain_and_cost_no_thread)
{
    struct echo echo;
    struct tarn_client_call *calls[200];
    const char *answer;
    echo_start(&echo, NULL);
    for (int i = 0; i < 200; i++)
        calls[i] = watch(t, &echo, "");
    for (int i = 0; i < 200; i++)
        expect_int(next(calls[i]), 1);
    expect_ok(echo_ask(t, &echo, "/t.Echo/Unary", "served", &answer));
    int64_t from = tarn_clock_mono_ms();
    tarn_wire_server_drain(echo.server, 10000);
    expect_true(tarn_clock_mono_ms() - from < 3000);
    for (int i = 0; i < 200; i++) {
        int last = next(calls[i]);
        expect_int(last, 2);
        expect_int(next(calls[i]), -1);
        expect_status(tarn_client_call_finish(calls[i]), TARN_SHUTTING_DOWN, "");
        tarn_client_call_free(calls[i]);
    }
    echo_stop(&echo);
}
