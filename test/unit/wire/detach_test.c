/*
 * Promise: a detached call holds no thread, takes messages from any thread one at a time, and tells its owner of its
 * end exactly once and last, whoever ended it: the owner, the client, or the server that stops. One encoded message is
 * shared by many calls.
 */
#include <unistd.h>

#include "echo.h"

#define CALLS 200

struct stream {
    struct hand *hand;
    struct tarn_call *call;
    atomic_int written, ended;
    atomic_int late; /* events after the end */
};
struct hand {
    struct tarn_exec *exec;
    struct tarn_wire_server *server;
    struct tarn_channel *channel;
    struct stream streams[CALLS];
    atomic_int count, ended;
};

static void on_written(void *arg)
{
    struct stream *stream = arg;
    if (atomic_load(&stream->ended) != 0)
        atomic_fetch_add(&stream->late, 1);
    atomic_fetch_add(&stream->written, 1);
}

static void on_ended(void *arg)
{
    struct stream *stream = arg;
    atomic_fetch_add(&stream->ended, 1);
    atomic_fetch_add(&stream->hand->ended, 1);
}

static const struct tarn_call_events events = {on_written, on_ended};

static struct tarn_status *hand_over(void *self, struct tarn_op *op TARN_UNUSED,
                                     struct tarn_call *call)
{
    struct hand *hand = self;
    struct tarn_message *request = NULL;
    TARN_TRY(tarn_call_read(call, &request));
    tarn_message_free(request);
    struct stream *stream = &hand->streams[atomic_load(&hand->count)]; /* they come one by one */
    stream->hand = hand;
    stream->call = call;
    tarn_call_detach(call, &events, stream);
    atomic_fetch_add(&hand->count, 1);
    return TARN_OK;
}

static void start(struct hand *hand)
{
    memset(hand, 0, sizeof *hand);
    tarn_log_set_level(TARN_WARN);
    hand->exec = tarn_exec_new(2, 4);
    struct tarn_wire_method methods[] = {
        {.path = "/t.Hand/Over", .fn = hand_over, .self = hand},
    };
    struct tarn_wire_server_options options = {.listen = "127.0.0.1:0", .exec = hand->exec};
    expect_ok(tarn_wire_server_start(&options, methods, 1, &hand->server));
    struct tarn_channel_options client = {.address = tarn_wire_server_address(hand->server)};
    expect_ok(tarn_channel_open(&client, &hand->channel));
}

static void stop(struct hand *hand)
{
    tarn_channel_close(hand->channel);
    for (int i = 0; i < atomic_load(&hand->count); i++)
        tarn_call_release(hand->streams[i].call);
    tarn_wire_server_free(hand->server);
    for (int i = 0; i < atomic_load(&hand->count); i++) {
        expect_int(atomic_load(&hand->streams[i].ended), 1);
        expect_int(atomic_load(&hand->streams[i].late), 0);
    }
    tarn_exec_free(hand->exec);
}

static struct tarn_client_call *ask(struct tarn_test *t, struct hand *hand)
{
    struct tarn_client_call *call = NULL;
    int before = atomic_load(&hand->count);
    expect_ok(tarn_channel_call(hand->channel, t->op, "/t.Hand/Over", &call));
    expect_ok(tarn_client_call_write(call, text_message("please")));
    expect_ok(tarn_client_call_writes_done(call));
    expect_true(comes_to(&hand->count, before + 1));
    return call;
}

static const char *read_one(struct tarn_test *t, struct tarn_client_call *call)
{
    struct tarn_message *message = NULL;
    expect_ok(tarn_client_call_read(call, &message));
    return message_text(t, message);
}

TARN_TEST(wire_detach, writes_and_ends_from_elsewhere)
{
    struct hand hand;
    start(&hand);
    struct tarn_client_call *call = ask(t, &hand);
    struct stream *stream = &hand.streams[0];
    for (int i = 1; i <= 3; i++) {
        expect_true(tarn_call_write_async(
            stream->call, text_message(tarn_arena_printf(t->arena, "message %d", i))));
        expect_true(comes_to(&stream->written, i));
        expect_str(read_one(t, call), tarn_arena_printf(t->arena, "message %d", i));
    }
    struct tarn_status *end = tarn_status_new(TARN_SNAPSHOT_EXPIRED, "too late");
    tarn_status_set(end, "earliest_snapshot", "12");
    tarn_status_set(end, "earliest_token", "0a0b");
    tarn_call_end(stream->call, end);
    expect_true(comes_to(&stream->ended, 1));
    expect_false(tarn_call_write_async(stream->call, text_message("late")));
    expect_null(read_one(t, call));
    struct tarn_status *s = tarn_client_call_finish(call);
    expect_str(tarn_status_get(s, "earliest_snapshot"), "12");
    expect_str(tarn_status_get(s, "earliest_token"), "0a0b");
    expect_null(tarn_status_get(s, "advice"));
    expect_status(s, TARN_SNAPSHOT_EXPIRED, "too late");
    tarn_client_call_free(call);
    stop(&hand);
}

/* More calls than threads; one set of bytes for all of them. */
TARN_TEST(wire_detach, many_calls_share_one_message)
{
    static struct hand hand;
    static struct tarn_client_call *calls[CALLS];
    start(&hand);
    for (int i = 0; i < CALLS; i++)
        calls[i] = ask(t, &hand);
    uint8_t *bytes;
    struct tarn_message *message = tarn_message_new(100, &bytes);
    memset(bytes, 'x', 100);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CALLS; i++) {
            expect_true(comes_to(&hand.streams[i].written, round));
            expect_true(tarn_call_write_async(hand.streams[i].call, tarn_message_share(message)));
        }
        for (int i = 0; i < CALLS; i++)
            expect_int(strlen(read_one(t, calls[i])), 100);
    }
    tarn_message_free(message);
    for (int i = 0; i < CALLS; i++)
        tarn_client_call_free(calls[i]); /* goes away without a word */
    expect_true(comes_to(&hand.ended, CALLS));
    stop(&hand);
}

TARN_TEST(wire_detach, one_message_at_a_time)
{
    struct hand hand;
    start(&hand);
    struct tarn_client_call *call = ask(t, &hand);
    int refused = 0;
    for (int i = 0; i < 1000; i++) {
        uint8_t *bytes;
        struct tarn_message *message = tarn_message_new(100000, &bytes);
        memset(bytes, 'x', 100000);
        refused += !tarn_call_write_async(hand.streams[0].call, message);
    }
    expect_true(refused > 0); /* nobody reads: it stops */
    tarn_client_call_free(call);
    expect_true(comes_to(&hand.ended, 1));
    stop(&hand);
}

TARN_TEST(wire_detach, a_stuck_one_is_aborted)
{
    struct hand hand;
    start(&hand);
    struct tarn_client_call *call = ask(t, &hand);
    uint8_t *bytes;
    struct tarn_message *message = tarn_message_new(15 << 20, &bytes);
    memset(bytes, 'x', 15 << 20);
    expect_true(tarn_call_write_async(hand.streams[0].call, message));
    usleep(50000);
    expect_int(atomic_load(&hand.streams[0].written), 0);
    tarn_call_abort(hand.streams[0].call, tarn_status_new(TARN_BUSY, "too slow"));
    expect_true(comes_to(&hand.ended, 1));
    struct tarn_status *s = TARN_OK;
    struct tarn_message *got = NULL;
    s = tarn_client_call_read(call, &got);
    tarn_message_free(got);
    tarn_status_free(s);
    expect_status(tarn_client_call_finish(call), TARN_BUSY, "too slow");
    tarn_client_call_free(call);
    stop(&hand);
}

TARN_TEST(wire_detach, drain_ends_them_at_once)
{
    struct hand hand;
    start(&hand);
    struct tarn_client_call *call = ask(t, &hand);
    int64_t from = tarn_clock_mono_ms();
    tarn_call_release(hand.streams[0].call);
    atomic_store(&hand.count, 0);
    tarn_wire_server_drain(hand.server, 20000);
    expect_true(tarn_clock_mono_ms() - from < 5000);
    expect_int(atomic_load(&hand.ended), 1);
    expect_null(read_one(t, call));
    expect_status(tarn_client_call_finish(call), TARN_SHUTTING_DOWN, "");
    tarn_client_call_free(call);
    stop(&hand);
}
