#include "ask.h"

#include <errno.h>
#include <stdio.h>

/* --- the connection --- */

#define TOKEN_SIZE_MAX 8192

/* The first line of the file. */
static struct tarn_status *read_token(struct tarn_cli *cli, const char *path, char **out)
{
    char line[TOKEN_SIZE_MAX];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return tarn_cli_local(cli, tarn_status_errno(errno, "token file %s", path));
    char *got = fgets(line, sizeof line, file);
    fclose(file);
    size_t size = got == NULL ? 0 : strcspn(line, "\r\n \t");
    if (size == 0 || size == sizeof line - 1)
        return tarn_cli_misused(cli,
                                tarn_status_new(TARN_INVALID_ARGUMENT,
                                                "token file %s: expected a token on line 1", path));
    *out = tarn_arena_str(cli->op.arena, tarn_slice_of(line, size));
    memset(line, 0, sizeof line);
    return TARN_OK;
}

struct tarn_status *tarn_cli_connect(struct tarn_cli *cli)
{
    char *token = NULL;
    const char *token_file = tarn_cli_args_text(&cli->args, "token-file");

    if (cli->client != NULL)
        return TARN_OK;
    if (token_file != NULL)
        TARN_TRY(read_token(cli, token_file, &token));
    struct tarn_client_options options = {
        .server = tarn_cli_args_text(&cli->args, "server"),
        .token = token,
        .ca_file = tarn_cli_args_text(&cli->args, "ca"),
        .cert_file = tarn_cli_args_text(&cli->args, "cert"),
        .key_file = tarn_cli_args_text(&cli->args, "key"),
    };
    if (options.ca_file == NULL && (options.cert_file != NULL || options.key_file != NULL))
        return tarn_cli_usage(cli, "--cert and --key need --ca, the authority of the server");
    return tarn_cli_local(cli, tarn_client_open(&options, &cli->client));
}

static void trace(const struct tarn_cli *cli, const char *method, int64_t from_ns)
{
    if (cli->verbose > 0)
        fprintf(cli->err, "tarn: %s %s: %.1f ms, request %s\n", tarn_client_server(cli->client),
                method, (double)(tarn_clock_mono_ns() - from_ns) / 1e6, cli->op.request_id);
}

struct tarn_status *tarn_cli_ask(struct tarn_cli *cli, const char *method,
                                 const ProtobufCMessage *request,
                                 const ProtobufCMessageDescriptor *type, void *out)
{
    TARN_TRY(tarn_cli_connect(cli));
    int64_t from_ns = tarn_clock_mono_ns();
    ProtobufCMessage *answer = NULL;
    cli->op.stale_ms = 0;
    struct tarn_status *status =
        tarn_client_call(cli->client, &cli->op, method, request, type, &answer);
    trace(cli, method, from_ns);
    if (status == NULL)
        *(ProtobufCMessage **)out = answer;
    if (status == NULL && cli->op.stale_ms > 0)
        fprintf(cli->err,
                "tarn: the server can't reach its store; this is what it knew %.1f s ago\n",
                (double)cli->op.stale_ms / 1e3);
    return status;
}

struct tarn_status *tarn_cli_ask_stream(struct tarn_cli *cli, const char *method,
                                        const ProtobufCMessage *request,
                                        struct tarn_client_stream **out)
{
    TARN_TRY(tarn_cli_connect(cli));
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    int64_t from_ns = tarn_clock_mono_ns();
    TARN_TRY(tarn_client_stream_open(cli->client, &cli->op, method, &stream));
    TARN_TRY(tarn_client_stream_send(stream, request));
    TARN_TRY(tarn_client_stream_done(stream));
    trace(cli, method, from_ns);
    *out = tarn_move(stream);
    return TARN_OK;
}

struct tarn_status *tarn_cli_next(struct tarn_client_stream *stream,
                                  const ProtobufCMessageDescriptor *type, void *out)
{
    ProtobufCMessage *message = NULL;
    TARN_TRY(tarn_client_stream_receive(stream, type, &message));
    *(ProtobufCMessage **)out = message;
    return TARN_OK;
}

void tarn_cli_message_drop(void *pointer_to_message)
{
    ProtobufCMessage **message = pointer_to_message;
    if (*message != NULL)
        protobuf_c_message_free_unpacked(*message, NULL);
    *message = NULL;
}

/* --- requests --- */

ProtobufCBinaryData tarn_cli_bytes(struct tarn_slice text)
{
    return (ProtobufCBinaryData){.len = text.size, .data = (uint8_t *)(uintptr_t)text.data};
}

ProtobufCBinaryData tarn_cli_bytes_str(const char *text)
{
    return tarn_cli_bytes(tarn_slice_str(text));
}

char *tarn_cli_request_id(struct tarn_cli *cli)
{
    char *id = tarn_arena_alloc(cli->op.arena, TARN_UUID_SIZE);
    tarn_uuid_random(id);
    return id;
}

struct tarn_status *tarn_cli_table_ref(struct tarn_cli *cli, const char *name,
                                       Tarn__V1__TableRef **out)
{
    const char *dot = strchr(name, '.');
    if (dot == NULL || dot == name || dot[1] == '\0')
        return tarn_cli_usage(cli, "\"%.200s\": expected DATABASE.TABLE", name);
    const char *dollar = strchr(dot, '$');
    if (dollar != NULL &&
        (strncmp(dollar, "$branch_", 8) != 0 || strchr(dollar + 1, '$') != NULL)) {
        TARN_OWN(tarn_free_drop) char *what = tarn_format("a system table (%.200s)", name);
        return tarn_cli_not_yet(what);
    }
    Tarn__V1__TableRef *ref = tarn_arena_alloc(cli->op.arena, sizeof *ref);
    tarn__v1__table_ref__init(ref);
    ref->database = tarn_cli_bytes(tarn_slice_of(name, (size_t)(dot - name)));
    ref->table = tarn_cli_bytes_str(dot + 1);
    *out = ref;
    return TARN_OK;
}

#define FILE_SIZE_MAX (16u << 20) /* a message has no room for more */

struct tarn_status *tarn_cli_read_file(struct tarn_cli *cli, const char *path,
                                       ProtobufCBinaryData *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    char chunk[4096];
    size_t got;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return tarn_cli_local(cli, tarn_status_errno(errno, "cannot open %s", path));
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0 && text.size <= FILE_SIZE_MAX)
        tarn_buf_add(&text, chunk, got);
    bool failed = ferror(file) != 0;
    int error = errno;
    fclose(file);
    if (failed)
        return tarn_cli_local(cli, tarn_status_errno(error, "cannot read %s", path));
    if (text.size > FILE_SIZE_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "%s: larger than any schema file", path);
    *out = tarn_cli_bytes(tarn_arena_copy(cli->op.arena, tarn_buf_slice(&text)));
    return TARN_OK;
}

struct tarn_status *tarn_cli_option_pairs(struct tarn_cli *cli, const char *name,
                                          Tarn__V1__Option ***out, size_t *count)
{
    size_t cursor = 0, made = 0;
    TARN_OWN(tarn_free_drop) char *what = tarn_format("--%s", name);
    Tarn__V1__Option **options =
        tarn_arena_calloc(cli->op.arena, cli->args.given_count + 1, sizeof *options);

    for (const char *text; (text = tarn_cli_args_next(&cli->args, name, &cursor)) != NULL;) {
        struct tarn_slice key, value;
        TARN_TRY(tarn_cli_misused(cli, tarn_cli_pair(text, what, &key, &value)));
        Tarn__V1__Option *option = tarn_arena_alloc(cli->op.arena, sizeof *option);
        tarn__v1__option__init(option);
        option->key = tarn_cli_bytes(key);
        option->value = tarn_cli_bytes(value);
        options[made++] = option;
    }
    *out = options;
    *count = made;
    return TARN_OK;
}

struct tarn_status *tarn_cli_option_names(struct tarn_cli *cli, const char *name,
                                          ProtobufCBinaryData **out, size_t *count)
{
    const char *text = tarn_cli_args_text(&cli->args, name);
    struct tarn_slice *names = NULL;
    size_t name_count = 0;

    if (text == NULL)
        return TARN_OK;
    struct tarn_status *status = tarn_cli_names(cli->op.arena, text, &names, &name_count);
    if (status != NULL)
        return tarn_cli_misused(cli, tarn_status_wrap(status, "--%s", name));
    *out = tarn_arena_calloc(cli->op.arena, name_count, sizeof **out);
    for (size_t i = 0; i < name_count; i++)
        (*out)[i] = tarn_cli_bytes(names[i]);
    *count = name_count;
    return TARN_OK;
}

struct tarn_status *tarn_cli_version(struct tarn_cli *cli, Tarn__V1__Version **out)
{
    const char *at = tarn_cli_args_text(&cli->args, "at");
    const char *tag = tarn_cli_args_text(&cli->args, "tag");
    bool by_id = tarn_cli_args_has(&cli->args, "snapshot");
    bool by_watermark = tarn_cli_args_has(&cli->args, "watermark");
    Tarn__V1__Version *version = tarn_arena_alloc(cli->op.arena, sizeof *version);

    *out = NULL;
    if (at == NULL && tag == NULL && !by_id && !by_watermark)
        return TARN_OK;
    if ((at != NULL) + (tag != NULL) + by_id + by_watermark > 1)
        return tarn_cli_usage(cli, "--snapshot, --tag, --watermark and --at exclude each other");
    tarn__v1__version__init(version);
    if (at != NULL) {
        version->at_case = TARN__V1__VERSION__AT_TIME_MS;
        struct tarn_status *status = tarn_parse_time(tarn_slice_str(at), &version->time_ms);
        if (status != NULL)
            return tarn_cli_misused(cli, tarn_status_wrap(status, "--at"));
    } else if (tag != NULL) {
        version->at_case = TARN__V1__VERSION__AT_TAG;
        version->tag = (char *)(uintptr_t)tag;
    } else if (by_id) {
        version->at_case = TARN__V1__VERSION__AT_SNAPSHOT_ID;
        TARN_TRY(tarn_cli_misused(
            cli, tarn_cli_args_int(&cli->args, "snapshot", 1, &version->snapshot_id)));
    } else {
        version->at_case = TARN__V1__VERSION__AT_WATERMARK;
        TARN_TRY(tarn_cli_misused(
            cli, tarn_cli_args_int(&cli->args, "watermark", INT64_MIN, &version->watermark)));
    }
    *out = version;
    return TARN_OK;
}

/* --- answers --- */

struct tarn_slice tarn_cli_slice(ProtobufCBinaryData bytes)
{
    return bytes.data == NULL ? tarn_slice_of("", 0) : tarn_slice_of(bytes.data, bytes.len);
}

struct tarn_slice tarn_cli_or_absent(ProtobufCBinaryData bytes)
{
    return bytes.len == 0 ? (struct tarn_slice){NULL, 0} : tarn_slice_of(bytes.data, bytes.len);
}

const char *tarn_cli_or_null(const char *text)
{
    return text == NULL || text[0] == '\0' ? NULL : text;
}

struct tarn_json *tarn_cli_names_json(const ProtobufCBinaryData *names, size_t count)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(array, tarn_json_string(tarn_cli_slice(names[i])));
    return array;
}

static struct tarn_slice keep(struct tarn_cli *cli, const struct tarn_buf *text)
{
    return tarn_arena_copy(cli->op.arena, tarn_buf_slice(text));
}

struct tarn_slice tarn_cli_names_text(struct tarn_cli *cli, const ProtobufCBinaryData *names,
                                      size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++) {
        tarn_buf_add_str(&text, i > 0 ? ", " : "");
        tarn_buf_add_slice(&text, tarn_cli_slice(names[i]));
    }
    return keep(cli, &text);
}

struct tarn_json *tarn_cli_options_json(Tarn__V1__Option *const *options, size_t count)
{
    struct tarn_json *object = tarn_json_object();
    for (size_t i = 0; i < count; i++)
        tarn_json_set_slice(object, tarn_cli_slice(options[i]->key),
                            tarn_cli_slice(options[i]->value));
    return object;
}

struct tarn_slice tarn_cli_options_text(struct tarn_cli *cli, Tarn__V1__Option *const *options,
                                        size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++) {
        tarn_buf_add_str(&text, i > 0 ? ", " : "");
        tarn_buf_add_slice(&text, tarn_cli_slice(options[i]->key));
        tarn_buf_add_str(&text, " = ");
        tarn_buf_add_slice(&text, tarn_cli_slice(options[i]->value));
    }
    return keep(cli, &text);
}

struct tarn_json *tarn_cli_fields_json(Tarn__V1__Field *const *fields, size_t count)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++) {
        const Tarn__V1__Field *field = fields[i];
        struct tarn_json *object = tarn_json_object();
        tarn_json_set_int(object, "id", field->id);
        tarn_json_set(object, "name", tarn_json_string(tarn_cli_slice(field->name)));
        tarn_json_set_str(object, "type", field->type);
        if (field->description.len > 0)
            tarn_json_set(object, "comment", tarn_json_string(tarn_cli_slice(field->description)));
        if (field->default_value.len > 0)
            tarn_json_set(object, "default",
                          tarn_json_string(tarn_cli_slice(field->default_value)));
        tarn_json_add(array, object);
    }
    return array;
}

struct tarn_slice tarn_cli_fields_text(struct tarn_cli *cli, Tarn__V1__Field *const *fields,
                                       size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++) {
        tarn_buf_add_str(&text, i > 0 ? ", " : "");
        tarn_buf_add_slice(&text, tarn_cli_slice(fields[i]->name));
        tarn_buf_printf(&text, " %s", fields[i]->type);
    }
    return keep(cli, &text);
}
