/*
 * Promise: whatever its kind, a call carries its messages whole and in order, ends with the status
 * its method returned, and ends soon and on both sides when either side gives up, is slow, says too
 * much or goes away. What is cut short is never taken for complete.
 */
#include "echo.h"

#include <stdio.h>
#include <unistd.h>

static struct tarn_client_call *open_call(struct tarn_test *t, struct echo *echo, const char *path)
{
    struct tarn_client_call *call = NULL;
    expect_ok(tarn_channel_call(echo->channel, t->op, path, &call));
    return call;
}

static const char *read_text(struct tarn_test *t, struct tarn_client_call *call)
{
    struct tarn_message *message = NULL;
    expect_ok(tarn_client_call_read(call, &message));
    return message_text(t, message);
}

TARN_TEST(wire_call, unary_answers)
{
    struct echo echo;
    const char *answer = NULL;
    echo_start(&echo, NULL);
    expect_ok(echo_ask(t, &echo, "/t.Echo/Unary", "hello", &answer));
    expect_str(answer, "hello");
    expect_ok(echo_ask(t, &echo, "/t.Echo/Unary", "", &answer));
    expect_str(answer, "");
    expect_ok(echo_ask(t, &echo, "/t.Echo/Slow", "not declared as one response", &answer));
    expect_str(answer, "not declared as one response");
    echo_stop(&echo);
}

static char again_at[64];

static void listen_again(struct tarn_wire_server_options *options)
{
    options->listen = again_at;
}

TARN_TEST(wire_call, a_pause_finds_the_server_that_is_back)
{
    const int64_t pause_ms = 60000;
    struct echo first, second;
    const char *answer = NULL;
    echo_start(&first, NULL);
    snprintf(again_at, sizeof again_at, "%s", tarn_wire_server_address(first.server));
    expect_ok(echo_ask(t, &first, "/t.Echo/Unary", "hello", &answer));
    struct tarn_channel *channel = tarn_move(first.channel);
    echo_stop(&first);
    first.channel = channel;
    expect_status(echo_ask(t, &first, "/t.Echo/Unary", "hello", &answer), TARN_UNAVAILABLE, "");
    echo_start(&second, listen_again);
    int64_t from_ms = tarn_clock_mono_ms();
    tarn_channel_pause(channel, pause_ms);
    expect_true(tarn_clock_mono_ms() - from_ms < pause_ms); /* it was found, not slept through */
    expect_ok(echo_ask(t, &first, "/t.Echo/Unary", "back", &answer));
    expect_str(answer, "back");
    tarn_channel_close(channel);
    echo_stop(&second);
}

TARN_TEST(wire_call, client_streams)
{
    struct echo echo;
    echo_start(&echo, NULL);
    struct tarn_client_call *call = open_call(t, &echo, "/t.Echo/Collect");
    expect_ok(tarn_client_call_write(call, text_message("one ")));
    expect_ok(tarn_client_call_write(call, text_message("")));
    expect_ok(tarn_client_call_write(call, text_message("two ")));
    expect_ok(tarn_client_call_write(call, text_message("three")));
    expect_ok(tarn_client_call_writes_done(call));
    expect_str(read_text(t, call), "one two three");
    expect_null(read_text(t, call));
    expect_ok(tarn_client_call_finish(call));
    expect_ok(tarn_client_call_finish(call)); /* may be asked again */
    tarn_client_call_free(call);
    echo_stop(&echo);
}

TARN_TEST(wire_call, an_answer_before_the_last_write_is_not_waited_for_by_writes)
{
    struct echo echo;
    echo_start(&echo, NULL);
    struct tarn_client_call *call =
        open_call(t, &echo, "/t.Echo/Slow"); /* reads one, answers, ends */
    struct tarn_status *s = tarn_client_call_write(call, text_message("first"));
    int64_t begun = tarn_clock_mono_ms();
    while (s == TARN_OK && tarn_clock_mono_ms() - begun < 10000)
        s = tarn_client_call_write(call, text_message("one more"));
    expect_status(s, TARN_CANCELLED, "wants no more");
    expect_true(tarn_clock_mono_ms() - begun < 9000);
    expect_str(read_text(t, call), "first"); /* it can still be read */
    expect_null(read_text(t, call));
    expect_ok(tarn_client_call_finish(call));
    tarn_client_call_free(call);
    echo_stop(&echo);
}

TARN_TEST(wire_call, empty_streams_end_well)
{
    struct echo echo;
    echo_start(&echo, NULL);
    const char *paths[] = {"/t.Echo/Collect", "/t.Echo/Chat"};
    for (int i = 0; i < 40; i++) {
        struct tarn_client_call *call = open_call(t, &echo, paths[i % 2]);
        expect_ok(tarn_client_call_writes_done(call));
        if (i % 2 == 0)
            expect_str(read_text(t, call), "");
        expect_null(read_text(t, call));
        expect_ok(tarn_client_call_finish(call));
        tarn_client_call_free(call);
    }
    expect_int(atomic_load(&echo.clean_end_count), 20);
    echo_stop(&echo);
}

TARN_TEST(wire_call, server_streams)
{
    struct echo echo;
    echo_start(&echo, NULL);
    const char *paths[] = {"/t.Echo/Repeat", "/t.Echo/RepeatOne"};
    for (int p = 0; p < 2; p++) { /* also where one response was promised and more come */
        struct tarn_client_call *call = open_call(t, &echo, paths[p]);
        expect_ok(tarn_client_call_write(call, text_message("1000 10")));
        expect_ok(tarn_client_call_writes_done(call));
        for (int i = 0; i < 1000; i++) {
            const char *text = read_text(t, call);
            expect_not_null(text);
            expect_int(text[9], 'a' + i % 26);
        }
        expect_null(read_text(t, call));
        expect_ok(tarn_client_call_finish(call));
        tarn_client_call_free(call);
    }
    echo_stop(&echo);
}

TARN_TEST(wire_call, both_stream_in_turn)
{
    struct echo echo;
    echo_start(&echo, NULL);
    struct tarn_client_call *call = open_call(t, &echo, "/t.Echo/Chat");
    for (int i = 0; i < 200; i++) {
        const char *text = tarn_arena_printf(t->arena, "message %d", i);
        expect_ok(tarn_client_call_write(call, text_message(text)));
        expect_str(read_text(t, call), text);
    }
    expect_ok(tarn_client_call_writes_done(call));
    expect_null(read_text(t, call));
    expect_ok(tarn_client_call_finish(call));
    tarn_client_call_free(call);
    echo_stop(&echo);
}

struct writer {
    struct tarn_client_call *call;
    int count;
    struct tarn_status *status;
};

static void *write_all(void *arg)
{
    struct writer *w = arg;
    for (int i = 0; i < w->count && w->status == NULL; i++)
        w->status = tarn_client_call_write(w->call, text_message("0123456789"));
    if (w->status == NULL)
        w->status = tarn_client_call_writes_done(w->call);
    return NULL;
}

TARN_TEST(wire_call, reads_and_writes_on_two_threads)
{
    struct echo echo;
    pthread_t thread;
    int count = 0;
    echo_start(&echo, NULL);
    struct writer w = {.call = open_call(t, &echo, "/t.Echo/Chat"), .count = 5000};
    expect_int(pthread_create(&thread, NULL, write_all, &w), 0);
    for (;;) {
        struct tarn_message *message = NULL;
        expect_ok(tarn_client_call_read(w.call, &message));
        if (message == NULL)
            break;
        count++;
        tarn_message_free(message);
    }
    pthread_join(thread, NULL);
    expect_ok(w.status);
    expect_int(count, 5000);
    expect_ok(tarn_client_call_finish(w.call));
    tarn_client_call_free(w.call);
    echo_stop(&echo);
}

TARN_TEST(wire_call, big_messages_come_whole)
{
    struct echo echo;
    struct tarn_message *response = NULL;
    struct tarn_slice bytes = tarn_test_random_bytes(t, 15 << 20);
    echo_start(&echo, NULL);
    expect_ok(tarn_channel_unary(echo.channel, t->op, "/t.Echo/Unary", tarn_message_copy(bytes),
                                 &response));
    expect_bytes(tarn_message_bytes(response), bytes);
    tarn_message_free(response);
    echo_stop(&echo);
}

static void small_messages(struct tarn_wire_server_options *options)
{
    options->message_max_bytes = 1000;
}

TARN_TEST(wire_call, too_large_is_refused_both_ways)
{
    struct echo echo;
    const char *answer;
    struct tarn_message *response = NULL;
    echo_start(&echo, small_messages);
    uint8_t *bytes;
    struct tarn_message *message = tarn_message_new(1001, &bytes);
    memset(bytes, 'x', 1001);
    expect_status(tarn_channel_unary(echo.channel, t->op, "/t.Echo/Unary", message, &response),
                  TARN_TOO_LARGE, "1001");
    expect_status(echo_ask(t, &echo, "/t.Echo/Repeat", "1 1001", &answer), TARN_TOO_LARGE, "1001");
    message = tarn_message_new((16 << 20) + 1, &bytes); /* the client's own limit */
    memset(bytes, 'x', (16 << 20) + 1);
    expect_status(tarn_channel_unary(echo.channel, t->op, "/t.Echo/Unary", message, &response),
                  TARN_TOO_LARGE, "16777217");
    expect_ok(echo_ask(t, &echo, "/t.Echo/Unary", "still here", &answer));
    echo_stop(&echo);
}

TARN_TEST(wire_call, deadline_ends_both_sides)
{
    struct echo echo;
    const char *answer;
    echo_start(&echo, NULL);
    t->op->deadline_mono_ms = tarn_clock_mono_ms() + 100;
    expect_status(echo_ask(t, &echo, "/t.Echo/Wait", "", &answer), TARN_DEADLINE_EXCEEDED, "");
    expect_true(comes_to(&echo.running, 0));
    expect_int(tarn_clock_mono_ms() - t->op->deadline_mono_ms < 1000, 1);
    t->op->deadline_mono_ms = INT64_MAX;
    echo_stop(&echo);
}

static void *cancel_soon(void *op)
{
    usleep(100000);
    tarn_op_cancel(op);
    return NULL;
}

TARN_TEST(wire_call, client_cancels)
{
    struct echo echo;
    const char *answer;
    pthread_t thread;
    echo_start(&echo, NULL);
    expect_int(pthread_create(&thread, NULL, cancel_soon, t->op), 0);
    expect_status(echo_ask(t, &echo, "/t.Echo/Wait", "", &answer), TARN_CANCELLED, "");
    pthread_join(thread, NULL);
    expect_true(comes_to(&echo.running, 0));
    expect_int(atomic_load(&echo.last_reason), TARN_CANCELLED);
    atomic_store(&t->op->cancelled, false);
    expect_ok(echo_ask(t, &echo, "/t.Echo/Unary", "next", &answer));
    echo_stop(&echo);
}

TARN_TEST(wire_call, a_stream_cut_short_is_not_an_end)
{
    struct echo echo;
    int rounds = tarn_test_rounds(200);
    echo_start(&echo, NULL);
    for (int i = 0; i < rounds; i++) {
        struct tarn_client_call *call = open_call(t, &echo, "/t.Echo/Collect");
        for (int m = 0; m <= i % 3; m++)
            expect_ok(tarn_client_call_write(call, text_message("part")));
        if (i % 2 == 0)
            usleep(200);
        tarn_client_call_free(call); /* cancels */
    }
    usleep(100000);
    expect_int(atomic_load(&echo.clean_end_count), 0);
    echo_stop(&echo);
    expect_int(atomic_load(&echo.clean_end_count), 0);
}

TARN_TEST(wire_call, a_stream_out_of_time_is_not_an_end)
{
    struct echo echo;
    echo_start(&echo, NULL);
    for (int i = 0; i < 30; i++) {
        t->op->deadline_mono_ms = tarn_clock_mono_ms() + 5 + i % 10;
        struct tarn_client_call *call = NULL;
        struct tarn_status *status =
            tarn_channel_call(echo.channel, t->op, "/t.Echo/Collect", &call);
        if (status == NULL)
            status = tarn_client_call_write(call, text_message("part"));
        if (status == NULL)
            status = tarn_client_call_finish(call);
        expect_status(status, TARN_DEADLINE_EXCEEDED, "");
        tarn_client_call_free(call);
    }
    t->op->deadline_mono_ms = INT64_MAX;
    expect_true(comes_to(&echo.running, 0));
    echo_stop(&echo);
    expect_int(atomic_load(&echo.clean_end_count), 0);
}

TARN_TEST(wire_call, a_lost_connection_is_not_an_end)
{
    struct echo echo;
    echo_start(&echo, NULL);
    struct tarn_client_call *call = open_call(t, &echo, "/t.Echo/Collect");
    expect_ok(tarn_client_call_write(call, text_message("part")));
    expect_true(comes_to(&echo.running, 1));
    tarn_client_call_free(call);
    tarn_channel_close(tarn_move(echo.channel));
    expect_true(comes_to(&echo.broken_count, 1));
    expect_int(atomic_load(&echo.clean_end_count), 0);
    echo_stop(&echo);
}

TARN_TEST(wire_call, server_ends_while_client_writes)
{
    struct echo echo;
    echo_start(&echo, NULL);
    struct tarn_client_call *call = open_call(t, &echo, "/t.Echo/Fail");
    struct tarn_status *status = NULL;
    expect_ok(tarn_client_call_write(call, text_message("TABLE_EXISTS db.t")));
    for (int i = 0; i < 5000 && status == NULL; i++) {
        status = tarn_client_call_write(call, text_message("more"));
        usleep(100);
    }
    expect_status(status, TARN_TABLE_EXISTS, "db.t"); /* the write says why */
    expect_status(tarn_client_call_finish(call), TARN_TABLE_EXISTS, "db.t");
    tarn_client_call_free(call);
    echo_stop(&echo);
}

TARN_TEST(wire_call, slow_reader_stops_the_writer)
{
    struct echo echo;
    echo_start(&echo, NULL);
    struct tarn_client_call *call = open_call(t, &echo, "/t.Echo/Repeat");
    expect_ok(tarn_client_call_write(call, text_message("100000 1000000"))); /* 100 GB */
    expect_ok(tarn_client_call_writes_done(call));
    expect_not_null(read_text(t, call));
    usleep(500000);
    long before = atomic_load(&echo.written);
    usleep(200000);
    expect_int(atomic_load(&echo.written), before);
    expect_true(before < 40); /* the windows of HTTP/2 hold the rest */
    tarn_client_call_free(call);
    expect_true(comes_to(&echo.running, 0));
    expect_int(atomic_load(&echo.last_reason), TARN_CANCELLED);
    echo_stop(&echo);
}

struct flood {
    struct tarn_client_call *call;
    atomic_int written;
    struct tarn_status *status;
};

static void *run_flood(void *arg)
{
    struct flood *flood = arg;
    while (flood->status == NULL) {
        uint8_t *bytes;
        struct tarn_message *message = tarn_message_new(1000000, &bytes);
        memset(bytes, 'x', 1000000);
        flood->status = tarn_client_call_write(flood->call, message);
        atomic_fetch_add(&flood->written, 1);
    }
    return NULL;
}

TARN_TEST(wire_call, server_that_does_not_read_stops_the_client)
{
    struct echo echo;
    pthread_t thread;
    echo_start(&echo, NULL);
    struct flood flood = {.call = open_call(t, &echo, "/t.Echo/Wait")};
    expect_int(pthread_create(&thread, NULL, run_flood, &flood), 0);
    usleep(500000);
    int before = atomic_load(&flood.written);
    usleep(200000);
    expect_int(atomic_load(&flood.written), before);
    expect_true(before < 40);
    tarn_op_cancel(t->op);
    pthread_join(thread, NULL);
    expect_status(flood.status, TARN_CANCELLED, "");
    tarn_client_call_free(flood.call);
    expect_true(comes_to(&echo.running, 0));
    echo_stop(&echo);
}

static void count_release(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

TARN_TEST(wire_call, wrapped_bodies_are_released_once)
{
    struct echo echo;
    atomic_int released = 0;
    struct tarn_message *response = NULL;
    struct tarn_slice body = tarn_test_random_bytes(t, 100000);
    echo_start(&echo, NULL);
    struct tarn_message *message =
        tarn_message_wrap(tarn_slice_str("head"), body, count_release, &released);
    expect_uint(tarn_message_bytes(message).size, 100004);
    tarn_message_free(message);
    expect_int(atomic_load(&released), 1);
    message = tarn_message_wrap(tarn_slice_str("head"), body, count_release, &released);
    expect_ok(tarn_channel_unary(echo.channel, t->op, "/t.Echo/Unary", message, &response));
    struct tarn_slice got = tarn_message_bytes(response);
    expect_uint(got.size, 100004);
    expect_bytes(tarn_slice_of(got.data + 4, body.size), body);
    tarn_message_free(response);
    expect_true(comes_to(&released, 2));
    echo_stop(&echo);
}

TARN_TEST(wire_call, many_at_once)
{
    struct echo echo;
    struct tarn_client_call *calls[300];
    echo_start(&echo, NULL);
    for (int i = 0; i < 300; i++) {
        calls[i] = open_call(t, &echo, "/t.Echo/Unary");
        expect_ok(
            tarn_client_call_write(calls[i], text_message(tarn_arena_printf(t->arena, "%d", i))));
    }
    for (int i = 0; i < 300; i++) {
        expect_str(read_text(t, calls[i]), tarn_arena_printf(t->arena, "%d", i));
        expect_ok(tarn_client_call_finish(calls[i]));
        tarn_client_call_free(calls[i]);
    }
    echo_stop(&echo);
}
