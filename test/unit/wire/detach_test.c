/*
 * Promise: a detached call holds no thread, takes messages from any thread one at a time, and tells its owner of its
 * end exactly once and last, whoever ended it: the owner, the client, or the server that stops. One encoded message is
 * shared by many calls. A deferred unary call is answered once from any thread, whether its client is still there or not, and a
 * server that stops waits for that.
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
    atomic_int pause_us; /* how long whoever is told of a write takes */
};

static void on_written(void *arg)
{
    struct stream *stream = arg;
    usleep((useconds_t)atomic_load(&stream->hand->pause_us));
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

static void *go_away(void *arg)
{
    usleep(20000);
    tarn_client_call_free(arg); /* cancels */
    return NULL;
}

/* A write that completes at once is told of in the thread that writes, and a queue thread hears meanwhile that the
 * client went away: the owner, who lets go of all at the end, must not hear of it in the middle. */
TARN_TEST(wire_detach, the_end_waits_for_who_is_being_told_of_a_write)
{
    struct hand hand;
    pthread_t thread;
    start(&hand);
    struct tarn_client_call *call = ask(t, &hand);
    struct stream *stream = &hand.streams[0];
    atomic_store(&hand.pause_us, 150000);
    expect_int(pthread_create(&thread, NULL, go_away, call), 0);
    expect_true(tarn_call_write_async(stream->call, text_message("message")));
    pthread_join(thread, NULL);
    expect_true(comes_to(&stream->ended, 1));
    stop(&hand);
}

/* --- unary, deferred --- */

struct waiters {
    struct tarn_exec *exec;
    struct tarn_wire_server *server;
    struct tarn_channel *channel;
    struct tarn_call *calls[CALLS];
    atomic_int count;
};

static struct tarn_status *defer(void *self, struct tarn_op *op TARN_UNUSED, struct tarn_call *call)
{
    struct waiters *w = self;
    struct tarn_message *request = NULL;
    TARN_TRY(tarn_call_read(call, &request));
    tarn_message_free(request);
    w->calls[atomic_load(&w->count)] = call; /* they come one by one */
    tarn_call_defer(call);
    atomic_fetch_add(&w->count, 1);
    return TARN_OK;
}

static void start_waiters(struct waiters *w)
{
    memset(w, 0, sizeof *w);
    tarn_log_set_level(TARN_WARN);
    w->exec = tarn_exec_new(2, 4);
    struct tarn_wire_method methods[] = {
        {.path = "/t.Wait/For", .fn = defer, .self = w, .one_response = true}};
    struct tarn_wire_server_options options = {
        .listen = "127.0.0.1:0", .exec = w->exec, .message_max_bytes = 1000};
    expect_ok(tarn_wire_server_start(&options, methods, 1, &w->server));
    struct tarn_channel_options client = {.address = tarn_wire_server_address(w->server)};
    expect_ok(tarn_channel_open(&client, &w->channel));
}

static void stop_waiters(struct waiters *w)
{
    tarn_channel_close(w->channel);
    tarn_wire_server_free(w->server); /* waits for the last answer */
    tarn_exec_free(w->exec);
}

static struct tarn_client_call *wait_for(struct tarn_test *t, struct waiters *w)
{
    struct tarn_client_call *call = NULL;
    int before = atomic_load(&w->count);
    expect_ok(tarn_channel_call(w->channel, t->op, "/t.Wait/For", &call));
    expect_ok(tarn_client_call_write(call, text_message("please")));
    expect_ok(tarn_client_call_writes_done(call));
    expect_true(comes_to(&w->count, before + 1));
    return call;
}

/* Far more of them than there are threads. */
TARN_TEST(wire_defer, answers_from_elsewhere_in_any_order)
{
    static struct waiters w;
    static struct tarn_client_call *calls[CALLS];
    start_waiters(&w);
    for (int i = 0; i < CALLS; i++)
        calls[i] = wait_for(t, &w);
    for (int i = CALLS - 1; i >= 0; i--)
        tarn_call_answer(w.calls[i], text_message(tarn_arena_printf(t->arena, "answer %d", i)),
                         TARN_OK);
    for (int i = 0; i < CALLS; i++) {
        expect_str(read_one(t, calls[i]), tarn_arena_printf(t->arena, "answer %d", i));
        expect_null(read_one(t, calls[i]));
        expect_ok(tarn_client_call_finish(calls[i]));
        tarn_client_call_free(calls[i]);
    }
    stop_waiters(&w);
}

TARN_TEST(wire_defer, refuses_says_what_is_too_large_and_outlives_its_client)
{
    static struct waiters w;
    start_waiters(&w);
    struct tarn_client_call *refused = wait_for(t, &w), *large = wait_for(t, &w),
                            *gone = wait_for(t, &w);
    uint8_t *bytes;
    tarn_call_answer(w.calls[0], NULL, tarn_status_new(TARN_COMMIT_CONFLICT, "no"));
    struct tarn_message *too_large = tarn_message_new(2000, &bytes);
    memset(bytes, 0, 2000);
    tarn_call_answer(w.calls[1], too_large, TARN_OK);
    expect_status(tarn_client_call_finish(refused), TARN_COMMIT_CONFLICT, "no");
    expect_status(tarn_client_call_finish(large), TARN_TOO_LARGE, "2000");
    tarn_client_call_free(gone); /* cancels */
    usleep(20000);
    tarn_call_answer(w.calls[2], text_message("to nobody"), TARN_OK);
    tarn_client_call_free(refused);
    tarn_client_call_free(large);
    stop_waiters(&w);
}

static void *answer_late(void *arg)
{
    struct waiters *w = arg;
    usleep(50000);
    tarn_call_answer(w->calls[0], text_message("late"), TARN_OK);
    return NULL;
}

TARN_TEST(wire_defer, a_server_that_drains_waits_for_the_answer)
{
    static struct waiters w;
    pthread_t thread;
    start_waiters(&w);
    struct tarn_client_call *call = wait_for(t, &w);
    expect_int(pthread_create(&thread, NULL, answer_late, &w), 0);
    tarn_wire_server_drain(w.server, 5000);
    expect_str(read_one(t, call), "late");
    expect_ok(tarn_client_call_finish(call));
    tarn_client_call_free(call);
    pthread_join(thread, NULL);
    stop_waiters(&w);
}
