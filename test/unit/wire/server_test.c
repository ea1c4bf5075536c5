/*
 * Promise: the server listens where it says or tells why not, asks who calls before a method runs,
 * answers unknown methods, and stops as it says: waits for running calls, then cancels them.
 */
#include "echo.h"

#include <stdio.h>
#include <unistd.h>

TARN_TEST(wire_server, address_taken)
{
    struct echo echo;
    struct tarn_wire_server *second = NULL;
    echo_start(&echo, NULL);
    struct tarn_wire_server_options options = {.listen = tarn_wire_server_address(echo.server),
                                               .exec = echo.exec};
    expect_status(tarn_wire_server_start(&options, NULL, 0, &second), TARN_ADDRESS_IN_USE,
                  options.listen);
    expect_null(second);
    options.listen = "nowhere";
    expect_status(tarn_wire_server_start(&options, NULL, 0, &second), TARN_CONFIG_INVALID,
                  "HOST:PORT");
    options.listen = "127.0.0.1:99999";
    expect_status(tarn_wire_server_start(&options, NULL, 0, &second), TARN_CONFIG_INVALID, "port");
    options.listen = "192.0.2.1:0";
    expect_status(tarn_wire_server_start(&options, NULL, 0, &second), TARN_CONFIG_INVALID,
                  "192.0.2.1");
    echo_stop(&echo);
}

TARN_TEST(wire_server, unknown_method)
{
    struct echo echo;
    const char *answer;
    echo_start(&echo, NULL);
    expect_status(echo_ask(t, &echo, "/t.Echo/Nope", "", &answer), TARN_UNIMPLEMENTED,
                  "/t.Echo/Nope");
    echo_stop(&echo);
}

static struct tarn_status *admit(void *self TARN_UNUSED, struct tarn_op *op, const char *path,
                                 struct tarn_slice token)
{
    if (!tarn_slice_is(token, "s3cret"))
        return tarn_status_new(TARN_UNAUTHENTICATED, "%s: no valid token", path);
    op->principal = tarn_arena_str(op->arena, tarn_slice_str("alice"));
    return TARN_OK;
}

static void with_admit(struct tarn_wire_server_options *options)
{
    options->admit = admit;
}

TARN_TEST(wire_server, asks_who_it_is)
{
    struct echo echo;
    const char *answer;
    echo_start(&echo, with_admit);
    expect_status(echo_ask(t, &echo, "/t.Echo/Who", "", &answer), TARN_UNAUTHENTICATED,
                  "/t.Echo/Who");
    tarn_channel_close(echo.channel);
    struct tarn_channel_options options = {.address = tarn_wire_server_address(echo.server),
                                           .token = "s3cret"};
    expect_ok(tarn_channel_open(&options, &echo.channel));
    strcpy(t->op->request_id, "abc-1.2_3");
    expect_ok(echo_ask(t, &echo, "/t.Echo/Who", "", &answer));
    expect_contains(answer, "abc-1.2_3|alice|127.0.0.1:");
    strcpy(t->op->request_id, "not one; really");
    expect_ok(echo_ask(t, &echo, "/t.Echo/Who", "", &answer));
    expect_true(strstr(answer, "really") == NULL); /* replaced by one of its own */
    expect_true(strchr(answer, '|') > answer + 8);
    echo_stop(&echo);
}

TARN_TEST(wire_server, token_with_line_break_is_refused)
{
    struct tarn_channel *channel = NULL;
    struct tarn_channel_options options = {.address = "127.0.0.1:1", .token = "a\nb"};
    expect_status(tarn_channel_open(&options, &channel), TARN_CONFIG_INVALID, "token");
    options.token = NULL;
    options.address = "127.0.0.1";
    expect_status(tarn_channel_open(&options, &channel), TARN_CONFIG_INVALID, "HOST:PORT");
}

struct drain {
    struct tarn_wire_server *server;
    int64_t grace_ms;
    int64_t took_ms;
};

static void *run_drain(void *arg)
{
    struct drain *drain = arg;
    int64_t from = tarn_clock_mono_ms();
    tarn_wire_server_drain(drain->server, drain->grace_ms);
    drain->took_ms = tarn_clock_mono_ms() - from;
    return NULL;
}

TARN_TEST(wire_server, drain_waits_for_running_calls)
{
    struct echo echo;
    pthread_t thread;
    struct tarn_client_call *call = NULL;
    struct tarn_message *message = NULL;
    echo_start(&echo, NULL);
    expect_ok(tarn_channel_call(echo.channel, t->op, "/t.Echo/Sleep", &call));
    expect_ok(tarn_client_call_write(call, text_message("400")));
    expect_true(comes_to(&echo.running, 1));
    struct drain drain = {.server = echo.server, .grace_ms = 5000};
    expect_int(pthread_create(&thread, NULL, run_drain, &drain), 0);
    expect_ok(tarn_client_call_read(call, &message));
    expect_str(message_text(t, message), "slept");
    expect_ok(tarn_client_call_finish(call));
    tarn_client_call_free(call);
    pthread_join(thread, NULL);
    expect_true(drain.took_ms >= 200 && drain.took_ms < 3000);
    echo_stop(&echo);
}

TARN_TEST(wire_server, drain_cancels_what_does_not_end)
{
    struct echo echo;
    pthread_t thread;
    struct tarn_client_call *call = NULL;
    echo_start(&echo, NULL);
    expect_ok(tarn_channel_call(echo.channel, t->op, "/t.Echo/Wait", &call));
    expect_ok(tarn_client_call_write(call, text_message("")));
    expect_true(comes_to(&echo.running, 1));
    struct drain drain = {.server = echo.server, .grace_ms = 200};
    expect_int(pthread_create(&thread, NULL, run_drain, &drain), 0);
    struct tarn_status *status = tarn_client_call_finish(call);
    expect_int(tarn_status_code(status), TARN_CODE_UNAVAILABLE);
    tarn_status_free(status);
    tarn_client_call_free(call);
    pthread_join(thread, NULL);
    expect_true(drain.took_ms >= 190 && drain.took_ms < 3000);
    echo_stop(&echo);
}

TARN_TEST(wire_server, stopped_server_is_named)
{
    struct echo echo;
    const char *answer;
    echo_start(&echo, NULL);
    expect_ok(echo_ask(t, &echo, "/t.Echo/Unary", "x", &answer));
    char *address = tarn_strdup(tarn_wire_server_address(echo.server));
    char *wanted = tarn_format("cannot reach %s: connection refused", address);
    tarn_wire_server_free(tarn_move(echo.server));
    int64_t from = tarn_clock_mono_ms();
    struct tarn_status *status = echo_ask(t, &echo, "/t.Echo/Unary", "x", &answer);
    expect_int(tarn_status_reason(status), TARN_UNAVAILABLE);
    tarn_status_free(status);
    tarn_channel_close(echo.channel);
    struct tarn_channel_options options = {.address = address};
    expect_ok(tarn_channel_open(&options, &echo.channel));
    expect_status(echo_ask(t, &echo, "/t.Echo/Unary", "x", &answer), TARN_UNAVAILABLE, wanted);
    expect_true(tarn_clock_mono_ms() - from < 3000);
    free(wanted);
    free(address);
    echo_stop(&echo);
}
