#include "echo.h"

#include <unistd.h>

struct tarn_message *text_message(const char *text)
{
    return tarn_message_copy(tarn_slice_str(text));
}

const char *message_text(struct tarn_test *t, struct tarn_message *consumed)
{
    if (consumed == NULL)
        return NULL;
    const char *text = tarn_arena_str(t->arena, tarn_message_bytes(consumed));
    tarn_message_free(consumed);
    return text;
}

bool comes_to(atomic_int *value, int wanted)
{
    for (int i = 0; i < 5000; i++) {
        if (atomic_load(value) == wanted)
            return true;
        usleep(1000);
    }
    return false;
}

static struct tarn_status *read_text(struct tarn_op *op, struct tarn_call *call, char **out)
{
    TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
    TARN_TRY(tarn_call_read(call, &message));
    if (message == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "no request");
    *out = tarn_arena_str(op->arena, tarn_message_bytes(message));
    return TARN_OK;
}

static struct tarn_status *unary(void *self TARN_UNUSED, struct tarn_op *op TARN_UNUSED,
                                 struct tarn_call *call)
{
    struct tarn_message *message = NULL;
    TARN_TRY(tarn_call_read(call, &message));
    if (message == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "no request");
    return tarn_call_write(call, message); /* as it came: no copy */
}

static struct tarn_status *collect_all(struct echo *echo, struct tarn_call *call)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf all = {0};
    for (;;) {
        TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
        struct tarn_status *status = tarn_call_read(call, &message);
        if (status != NULL) {
            atomic_fetch_add(&echo->broken_count, 1);
            return status;
        }
        if (message == NULL)
            break;
        tarn_buf_add_slice(&all, tarn_message_bytes(message));
    }
    atomic_fetch_add(&echo->clean_end_count, 1);
    return tarn_call_write(call, tarn_message_copy(tarn_buf_slice(&all)));
}

static struct tarn_status *collect(void *self, struct tarn_op *op TARN_UNUSED,
                                   struct tarn_call *call)
{
    struct echo *echo = self;
    atomic_fetch_add(&echo->running, 1);
    struct tarn_status *status = collect_all(echo, call);
    atomic_fetch_sub(&echo->running, 1);
    return status;
}

static struct tarn_status *repeat_all(struct echo *echo, struct tarn_op *op, struct tarn_call *call)
{
    char *text = NULL;
    long count = 0, size = 0;
    TARN_TRY(read_text(op, call, &text));
    sscanf(text, "%ld %ld", &count, &size);
    for (long i = 0; i < count; i++) {
        uint8_t *bytes;
        struct tarn_message *message = tarn_message_new((size_t)size, &bytes);
        memset(bytes, 'a' + (int)(i % 26), (size_t)size);
        TARN_TRY(tarn_call_write(call, message));
        atomic_fetch_add(&echo->written, 1);
    }
    return TARN_OK;
}

static struct tarn_status *repeat(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct echo *echo = self;
    atomic_fetch_add(&echo->running, 1);
    struct tarn_status *status = repeat_all(echo, op, call);
    atomic_store(&echo->last_reason, (int)tarn_status_reason(status));
    atomic_fetch_sub(&echo->running, 1);
    return status;
}

static struct tarn_status *chat(void *self TARN_UNUSED, struct tarn_op *op TARN_UNUSED,
                                struct tarn_call *call)
{
    for (;;) {
        struct tarn_message *message = NULL;
        TARN_TRY(tarn_call_read(call, &message));
        if (message == NULL)
            return TARN_OK;
        TARN_TRY(tarn_call_write(call, message));
    }
}

static struct tarn_status *fail_as(void *self TARN_UNUSED, struct tarn_op *op,
                                   struct tarn_call *call)
{
    char *text = NULL;
    TARN_TRY(read_text(op, call, &text));
    char *blank = strchr(text, ' ');
    if (blank == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "expected REASON TEXT");
    *blank = '\0';
    return tarn_status_new(tarn_reason_find(text), "%s", blank + 1);
}

static struct tarn_status *wait_cancelled(void *self, struct tarn_op *op,
                                          struct tarn_call *call TARN_UNUSED)
{
    struct echo *echo = self;
    struct tarn_status *status;

    atomic_fetch_add(&echo->running, 1);
    while ((status = tarn_op_check(op)) == NULL)
        usleep(1000);
    atomic_store(&echo->last_reason, (int)tarn_status_reason(status));
    atomic_fetch_sub(&echo->running, 1);
    return status;
}

static struct tarn_status *sleep_ms(void *self, struct tarn_op *op, struct tarn_call *call)
{
    struct echo *echo = self;
    char *text = NULL;
    TARN_TRY(read_text(op, call, &text));
    atomic_fetch_add(&echo->running, 1);
    usleep((useconds_t)atoi(text) * 1000);
    atomic_fetch_sub(&echo->running, 1);
    return tarn_call_write(call, text_message("slept"));
}

static struct tarn_status *who(void *self TARN_UNUSED, struct tarn_op *op, struct tarn_call *call)
{
    struct tarn_slice extra = tarn_call_metadata(call, "x-test");
    const char *text = tarn_arena_printf(op->arena, "%s|%s|%s|%.*s", op->request_id, op->principal,
                                         tarn_call_peer(call), TARN_SLICE_ARG(extra));
    return tarn_call_write(call, text_message(text));
}

void echo_start(struct echo *echo, void (*tune)(struct tarn_wire_server_options *options))
{
    memset(echo, 0, sizeof *echo);
    tarn_log_set_level(TARN_WARN);
    echo->exec = tarn_exec_new(4, 64);
    struct tarn_wire_method methods[] = {
        {.path = "/t.Echo/Unary", .fn = unary, .self = echo, .one_response = true},
        {.path = "/t.Echo/Slow", .fn = unary, .self = echo},
        {.path = "/t.Echo/Collect", .fn = collect, .self = echo, .one_response = true},
        {.path = "/t.Echo/Repeat", .fn = repeat, .self = echo},
        {.path = "/t.Echo/RepeatOne", .fn = repeat, .self = echo, .one_response = true},
        {.path = "/t.Echo/Chat", .fn = chat, .self = echo},
        {.path = "/t.Echo/Fail", .fn = fail_as, .self = echo},
        {.path = "/t.Echo/Wait", .fn = wait_cancelled, .self = echo},
        {.path = "/t.Echo/Sleep", .fn = sleep_ms, .self = echo, .one_response = true},
        {.path = "/t.Echo/Who", .fn = who, .self = echo, .one_response = true},
    };
    static const char *const services[] = {"t.Echo", NULL};
    struct tarn_wire_server_options options = {
        .listen = "127.0.0.1:0", .exec = echo->exec, .services = services};
    if (tune != NULL)
        tune(&options);
    expect_ok(tarn_wire_server_start(&options, methods, TARN_COUNT_OF(methods), &echo->server));
    struct tarn_channel_options client = {.address = tarn_wire_server_address(echo->server)};
    expect_ok(tarn_channel_open(&client, &echo->channel));
}

void echo_stop(struct echo *echo)
{
    tarn_channel_close(echo->channel);
    tarn_wire_server_free(echo->server);
    tarn_exec_free(echo->exec);
}

struct tarn_status *echo_ask(struct tarn_test *t, struct echo *echo, const char *path,
                             const char *text, const char **answer)
{
    struct tarn_message *response = NULL;
    TARN_TRY(tarn_channel_unary(echo->channel, t->op, path, text_message(text), &response));
    *answer = message_text(t, response);
    return TARN_OK;
}
