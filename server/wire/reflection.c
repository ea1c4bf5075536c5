/*
 * grpc.reflection v1 and v1alpha (the same messages): which files describe a name.
 *
 * The index is made once, from a FileDescriptorSet: files by name; symbols (messages with those
 * inside, enums, services, methods, extensions) by full name, each leading to its file.
 */
#include "internal.h"

#define FILES_MAX 4096
#define SYMBOLS_MAX 100000
#define NAME_MAX_BYTES 512
#define NESTING_MAX 32
#define ANSWER_FILES_MAX 1024 /* of one file with all it imports */

struct file {
    struct tarn_slice bytes; /* the FileDescriptorProto; borrowed */
    struct tarn_slice name;
    struct tarn_slice package;
};

struct tarn_wire__reflection {
    struct file *files;
    size_t file_count, file_capacity;
    struct tarn_map *by_name;   /* file name -> struct file */
    struct tarn_map *by_symbol; /* full name -> struct file */
    struct tarn_map
        *one_response; /* "/package.Service/Method" -> any, of methods that don't stream */
    size_t symbol_count;
};

/* --- the index --- */

static struct tarn_status *bad_file(const struct file *file, const char *what)
{
    return tarn_status_new(TARN_INTERNAL, "descriptors: file %.*s: %s",
                           (int)TARN_MIN(file->name.size, (size_t)NAME_MAX_BYTES),
                           (const char *)file->name.data, what);
}

/* "scope.name", or "name" in the root. */
static struct tarn_status *full_name(const struct file *file, struct tarn_slice scope,
                                     struct tarn_slice name, struct tarn_buf *out)
{
    if (name.size == 0 || name.size + scope.size >= NAME_MAX_BYTES)
        return bad_file(file, "a name is missing or too long");
    if (scope.size > 0) {
        tarn_buf_add_slice(out, scope);
        tarn_buf_add_byte(out, '.');
    }
    tarn_buf_add_slice(out, name);
    return TARN_OK;
}

static struct tarn_status *add_symbol(struct tarn_wire__reflection *r, struct file *file,
                                      struct tarn_slice scope, struct tarn_slice declaration,
                                      struct tarn_buf *name)
{
    TARN_TRY(full_name(file, scope, tarn_wire__pb_find(declaration, 1), name));
    if (r->symbol_count++ >= SYMBOLS_MAX)
        return bad_file(file, "too many symbols");
    if (tarn_map_find(r->by_symbol, tarn_buf_slice(name)) == NULL)
        tarn_map_set(r->by_symbol, tarn_buf_slice(name), file);
    return TARN_OK;
}

/* DescriptorProto: nested_type 3, enum_type 4, extension 6. */
static struct tarn_status *index_message(struct tarn_wire__reflection *r, struct file *file,
                                         struct tarn_slice scope, struct tarn_slice message,
                                         int depth)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    struct tarn_wire__pb reader = tarn_wire__pb_of(message);
    struct tarn_wire__field field;

    if (depth > NESTING_MAX)
        return bad_file(file, "messages are nested too deep");
    TARN_TRY(add_symbol(r, file, scope, message, &name));
    while (tarn_wire__pb_next(&reader, &field)) {
        if (field.type != PB_BYTES)
            continue;
        if (field.number == 3) {
            TARN_TRY(index_message(r, file, tarn_buf_slice(&name), field.bytes, depth + 1));
        } else if (field.number == 4 || field.number == 6) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf inner = {0};
            TARN_TRY(add_symbol(r, file, tarn_buf_slice(&name), field.bytes, &inner));
        }
    }
    return reader.bad ? bad_file(file, "a message is damaged") : TARN_OK;
}

/* MethodDescriptorProto: name 1, server_streaming 6. */
static void index_kind(struct tarn_wire__reflection *r, struct file *file,
                       struct tarn_slice service, struct tarn_slice method)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    struct tarn_wire__pb reader = tarn_wire__pb_of(method);
    struct tarn_wire__field field;

    while (tarn_wire__pb_next(&reader, &field))
        if (field.number == 6 && field.type == PB_VARINT && field.value != 0)
            return;
    tarn_buf_add_byte(&path, '/');
    tarn_buf_add_slice(&path, service);
    tarn_buf_add_byte(&path, '/');
    tarn_buf_add_slice(&path, tarn_wire__pb_find(method, 1));
    tarn_map_set(r->one_response, tarn_buf_slice(&path), file);
}

/* ServiceDescriptorProto: method 2. */
static struct tarn_status *index_service(struct tarn_wire__reflection *r, struct file *file,
                                         struct tarn_slice service)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    struct tarn_wire__pb reader = tarn_wire__pb_of(service);
    struct tarn_wire__field field;

    TARN_TRY(add_symbol(r, file, file->package, service, &name));
    while (tarn_wire__pb_next(&reader, &field)) {
        if (field.number == 2 && field.type == PB_BYTES) {
            TARN_OWN(tarn_buf_drop) struct tarn_buf method = {0};
            TARN_TRY(add_symbol(r, file, tarn_buf_slice(&name), field.bytes, &method));
            index_kind(r, file, tarn_buf_slice(&name), field.bytes);
        }
    }
    return reader.bad ? bad_file(file, "a service is damaged") : TARN_OK;
}

/* FileDescriptorProto: message_type 4, enum_type 5, service 6, extension 7. */
static struct tarn_status *index_symbols(struct tarn_wire__reflection *r, struct file *file)
{
    struct tarn_wire__pb reader = tarn_wire__pb_of(file->bytes);
    struct tarn_wire__field field;

    while (tarn_wire__pb_next(&reader, &field)) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
        if (field.type != PB_BYTES)
            continue;
        if (field.number == 4)
            TARN_TRY(index_message(r, file, file->package, field.bytes, 0));
        else if (field.number == 5 || field.number == 7)
            TARN_TRY(add_symbol(r, file, file->package, field.bytes, &name));
        else if (field.number == 6)
            TARN_TRY(index_service(r, file, field.bytes));
    }
    return reader.bad ? bad_file(file, "not a FileDescriptorProto") : TARN_OK;
}

static struct tarn_status *list_files(struct tarn_wire__reflection *r,
                                      struct tarn_slice descriptors)
{
    struct tarn_wire__pb reader = tarn_wire__pb_of(descriptors);
    struct tarn_wire__field field;

    while (tarn_wire__pb_next(&reader, &field)) {
        if (field.number != 1 || field.type != PB_BYTES)
            continue;
        if (r->file_count == FILES_MAX)
            return tarn_status_new(TARN_INTERNAL, "descriptors: more than %d files", FILES_MAX);
        TARN_GROW(r->files, r->file_count, r->file_capacity);
        r->files[r->file_count++] = (struct file){
            .bytes = field.bytes,
            .name = tarn_wire__pb_find(field.bytes, 1),
            .package = tarn_wire__pb_find(field.bytes, 2),
        };
    }
    if (reader.bad)
        return tarn_status_new(TARN_INTERNAL, "descriptors: not a FileDescriptorSet");
    return TARN_OK;
}

struct tarn_status *tarn_wire__reflection_new(struct tarn_slice descriptors,
                                              struct tarn_wire__reflection **out)
{
    TARN_OWN(tarn_wire__reflection_drop) struct tarn_wire__reflection *r =
        tarn_calloc(1, sizeof *r);
    r->by_name = tarn_map_new();
    r->by_symbol = tarn_map_new();
    r->one_response = tarn_map_new();
    TARN_TRY(list_files(r, descriptors));
    TARN_TRY(list_files(r, tarn_wire__own_descriptors()));
    for (size_t i = 0; i < r->file_count; i++) { /* the array stands still from here on */
        if (tarn_map_find(r->by_name, r->files[i].name) != NULL)
            continue; /* given twice, or ours and theirs */
        tarn_map_set(r->by_name, r->files[i].name, &r->files[i]);
        TARN_TRY(index_symbols(r, &r->files[i]));
    }
    *out = tarn_move(r);
    return TARN_OK;
}

void tarn_wire__reflection_free(struct tarn_wire__reflection *r)
{
    if (r == NULL)
        return;
    tarn_map_free(r->by_name);
    tarn_map_free(r->by_symbol);
    tarn_map_free(r->one_response);
    free(r->files);
    free(r);
}

void tarn_wire__reflection_drop(struct tarn_wire__reflection **r)
{
    tarn_wire__reflection_free(*r);
    *r = NULL;
}

bool tarn_wire__reflection_one_response(const struct tarn_wire__reflection *r, const char *path)
{
    return tarn_map_find(r->one_response, tarn_slice_str(path)) != NULL;
}

/* --- answers: file_descriptor_response 4, all_extension_numbers 5, services 6, error 7 --- */

static void put_error(struct tarn_buf *reply, enum tarn_code code, const char *what,
                      struct tarn_slice name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf error = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool shown = name.size > 0 && name.size <= NAME_MAX_BYTES && tarn_utf8_valid(name);

    tarn_buf_printf(&text, "%s: %.*s", what, shown ? (int)name.size : 1,
                    shown ? (const char *)name.data : "?");
    tarn_wire__pb_put_number(&error, 1, (uint64_t)code);
    tarn_wire__pb_put_bytes(&error, 2, tarn_buf_slice(&text));
    tarn_wire__pb_put_bytes(reply, 7, tarn_buf_slice(&error));
}

/* The file and all it imports, the file first: a client then needs to ask only once. */
static void put_files(const struct tarn_wire__reflection *r, const struct file *file,
                      struct tarn_buf *reply)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf response = {0};
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    const struct file *queue[ANSWER_FILES_MAX];
    size_t count = 1;

    queue[0] = file;
    tarn_map_set(seen, file->name, (void *)(uintptr_t)file);
    for (size_t i = 0; i < count; i++) {
        struct tarn_wire__pb reader = tarn_wire__pb_of(queue[i]->bytes);
        struct tarn_wire__field field;
        tarn_wire__pb_put_bytes(&response, 1, queue[i]->bytes);
        while (tarn_wire__pb_next(&reader, &field)) {
            if (field.number != 3 || field.type != PB_BYTES) /* dependency */
                continue;
            struct file *import = tarn_map_find(r->by_name, field.bytes);
            if (import == NULL || count == ANSWER_FILES_MAX ||
                tarn_map_set(seen, import->name, import) != NULL)
                continue;
            queue[count++] = import;
        }
    }
    tarn_wire__pb_put_bytes(reply, 4, tarn_buf_slice(&response));
}

static void put_file_of(const struct tarn_wire__reflection *r, const struct tarn_map *map,
                        const char *missing, struct tarn_slice name, struct tarn_buf *reply)
{
    const struct file *file = tarn_map_find(map, name);
    if (file == NULL)
        put_error(reply, TARN_CODE_NOT_FOUND, missing, name);
    else
        put_files(r, file, reply);
}

static void put_services(const char *const *services, size_t service_count, struct tarn_buf *reply)
{
    static const char *const own[] = {"grpc.health.v1.Health",
                                      "grpc.reflection.v1.ServerReflection",
                                      "grpc.reflection.v1alpha.ServerReflection"};
    TARN_OWN(tarn_buf_drop) struct tarn_buf list = {0};

    for (size_t i = 0; i < service_count + TARN_COUNT_OF(own); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf service = {0};
        tarn_wire__pb_put_str(&service, 1,
                              i < service_count ? services[i] : own[i - service_count]);
        tarn_wire__pb_put_bytes(&list, 1, tarn_buf_slice(&service));
    }
    tarn_wire__pb_put_bytes(reply, 6, tarn_buf_slice(&list));
}

/* Nothing of ours is extended: proto3 has extensions for options only. */
static void put_no_extensions(const struct tarn_wire__reflection *r, struct tarn_slice type,
                              struct tarn_buf *reply)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf numbers = {0};
    if (tarn_map_find(r->by_symbol, type) == NULL) {
        put_error(reply, TARN_CODE_NOT_FOUND, "no such type", type);
        return;
    }
    tarn_wire__pb_put_bytes(&numbers, 1, type);
    tarn_wire__pb_put_bytes(reply, 5, tarn_buf_slice(&numbers));
}

struct tarn_status *tarn_wire__reflection_answer(const struct tarn_wire__reflection *r,
                                                 const char *const *services, size_t service_count,
                                                 struct tarn_slice request, struct tarn_buf *reply)
{
    struct tarn_wire__pb reader = tarn_wire__pb_of(request);
    struct tarn_wire__field field, asked = {0};
    struct tarn_slice host = {NULL, 0};

    while (tarn_wire__pb_next(&reader, &field)) {
        if (field.type != PB_BYTES)
            continue;
        if (field.number == 1)
            host = field.bytes;
        else if (field.number >= 3 && field.number <= 7)
            asked = field; /* a oneof: the last one counts */
    }
    if (reader.bad || request.size > (size_t)16 * NAME_MAX_BYTES)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "not a ServerReflectionRequest");
    tarn_wire__pb_put_bytes(reply, 1, host);
    tarn_wire__pb_put_bytes(reply, 2, request);
    switch (asked.number) {
    case 3:
        put_file_of(r, r->by_name, "no such file", asked.bytes, reply);
        break;
    case 4:
        put_file_of(r, r->by_symbol, "no such symbol", asked.bytes, reply);
        break;
    case 5:
        put_error(reply, TARN_CODE_NOT_FOUND, "no such extension of",
                  tarn_wire__pb_find(asked.bytes, 1));
        break;
    case 6:
        put_no_extensions(r, asked.bytes, reply);
        break;
    case 7:
        put_services(services, service_count, reply);
        break;
    default:
        put_error(reply, TARN_CODE_INVALID_ARGUMENT, "the request asks for nothing known",
                  (struct tarn_slice){NULL, 0});
    }
    return TARN_OK;
}

struct tarn_status *tarn_wire__reflect(struct tarn_call *call, struct tarn_slice request,
                                       struct tarn_buf *reply, bool *stay TARN_UNUSED)
{
    struct tarn_wire_server *server = call->server;
    return tarn_wire__reflection_answer(server->reflection, (const char *const *)server->services,
                                        server->service_count, request, reply);
}
