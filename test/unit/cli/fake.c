#include "fake.h"

#include <locale.h>
#include <unistd.h>

static struct fake_method *find(struct fake *fake, const char *path)
{
    for (size_t i = 0; i < fake->method_count; i++)
        if (strcmp(fake->methods[i].path, path) == 0)
            return &fake->methods[i];
    return NULL;
}

static struct fake_method *method(struct fake *fake, const char *path)
{
    struct fake_method *found = find(fake, path);
    if (found != NULL)
        return found;
    tarn_assert(fake->server == NULL && fake->method_count < 32);
    found = &fake->methods[fake->method_count++];
    *found = (struct fake_method){.path = tarn_strdup(path)};
    return found;
}

void fake_answers(struct fake *fake, const char *path, const ProtobufCMessage *message)
{
    struct fake_method *m = method(fake, path);
    TARN_GROW(m->answers, m->answer_count, m->answer_capacity);
    struct tarn_buf *answer = &m->answers[m->answer_count++];
    *answer = (struct tarn_buf){0};
    size_t size = protobuf_c_message_get_packed_size(message);
    tarn_buf_add_zeros(answer, size);
    if (size > 0)
        protobuf_c_message_pack(message, answer->data);
}

void fake_fails(struct fake *fake, const char *path, struct tarn_status *consumed)
{
    method(fake, path)->outcome = consumed;
}

void fake_fails_first(struct fake *fake, const char *path, struct tarn_status *consumed)
{
    method(fake, path)->first_outcome = consumed;
}

void fake_early(struct fake *fake, const char *path)
{
    method(fake, path)->early = true;
}

static struct tarn_status *read_all(struct fake_method *m, struct tarn_call *call)
{
    for (;;) {
        TARN_OWN(tarn_message_drop) struct tarn_message *message = NULL;
        TARN_TRY(tarn_call_read(call, &message));
        if (message == NULL)
            return TARN_OK;
        TARN_GROW(m->requests, m->request_count, m->request_capacity);
        struct tarn_buf *request = &m->requests[m->request_count++];
        *request = (struct tarn_buf){0};
        tarn_buf_add_slice(request, tarn_message_bytes(message));
        if (m->early)
            return TARN_OK;
    }
}

static struct tarn_status *serve(void *self, struct tarn_op *op TARN_UNUSED, struct tarn_call *call)
{
    struct fake_method *m = self;
    TARN_TRY(read_all(m, call));
    for (size_t i = 0; i < m->answer_count; i++)
        TARN_TRY(tarn_call_write(call, tarn_message_copy(tarn_buf_slice(&m->answers[i]))));
    bool first = m->first_outcome != NULL && m->request_count == 1;
    return tarn_status_copy(first ? m->first_outcome : m->outcome);
}

void fake_start(struct fake *fake)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    tarn_log_set_level(TARN_ERROR);
    *fake = (struct fake){.in_fd = -1, .exec = tarn_exec_new(2, 16)};
    fake->methods = tarn_calloc(32, sizeof *fake->methods);
}

static void serve_now(struct fake *fake)
{
    struct tarn_wire_method methods[32];
    static const char *const services[] = {"tarn.v1.Fake", NULL};
    struct tarn_wire_server_options options = {
        .listen = "127.0.0.1:0", .exec = fake->exec, .services = services};
    TARN_OWN(tarn_buf_drop) struct tarn_buf paths = {0};

    if (fake->server != NULL)
        return;
    char *full[32];
    for (size_t i = 0; i < fake->method_count; i++) {
        full[i] = tarn_format("/tarn.v1.%s", fake->methods[i].path);
        methods[i] =
            (struct tarn_wire_method){.path = full[i], .fn = serve, .self = &fake->methods[i]};
    }
    expect_ok(tarn_wire_server_start(&options, methods, fake->method_count, &fake->server));
    for (size_t i = 0; i < fake->method_count; i++)
        free(full[i]);
}

static void free_bufs(struct tarn_buf *bufs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tarn_buf_drop(&bufs[i]);
    free(bufs);
}

void fake_stop(struct fake *fake)
{
    tarn_wire_server_free(fake->server);
    tarn_exec_free(fake->exec);
    for (size_t i = 0; i < fake->method_count; i++) {
        struct fake_method *m = &fake->methods[i];
        free(m->path);
        free_bufs(m->answers, m->answer_count);
        free_bufs(m->requests, m->request_count);
        tarn_status_free(m->outcome);
        tarn_status_free(m->first_outcome);
    }
    free(fake->methods);
}

size_t fake_request_count(struct fake *fake, const char *path)
{
    struct fake_method *m = find(fake, path);
    return m == NULL ? 0 : m->request_count;
}

ProtobufCMessage *fake_request(struct fake *fake, const char *path, size_t index,
                               const ProtobufCMessageDescriptor *type)
{
    struct fake_method *m = find(fake, path);
    if (m == NULL || index >= m->request_count)
        expect_unreachable("%s got no message %zu", path, index);
    return protobuf_c_message_unpack(type, NULL, m->requests[index].size, m->requests[index].data);
}

struct run fake_run(struct tarn_test *t, struct fake *fake, ...)
{
    const char *argv[64] = {"tarn", "--server"};
    int argc = 2;
    char *out = NULL, *err = NULL;
    size_t out_size = 0, err_size = 0;
    va_list words;

    serve_now(fake);
    argv[argc++] = tarn_wire_server_address(fake->server);
    va_start(words, fake);
    for (const char *word; (word = va_arg(words, const char *)) != NULL && argc < 63;)
        argv[argc++] = word;
    va_end(words);
    struct tarn_cli cli = {
        .out = open_memstream(&out, &out_size),
        .err = open_memstream(&err, &err_size),
        .in_fd = fake->in_fd,
        .out_is_terminal = fake->terminal,
        .err_is_terminal = fake->terminal,
    };
    tarn_op_init(&cli.op);
    struct run run = {.code = tarn_cli_run(&cli, argc, (char *const *)(uintptr_t)argv)};
    tarn_op_fini(&cli.op);
    fclose(cli.out);
    fclose(cli.err);
    run.out = tarn_arena_str(t->arena, tarn_slice_of(out, out_size));
    run.err = tarn_arena_str(t->arena, tarn_slice_of(err, err_size));
    free(out);
    free(err);
    return run;
}
