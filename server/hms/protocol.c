#include "hms/internal.h"

#include <stdarg.h>

/* Thrift's binary protocol: numbers big-endian, texts and lists behind their counts, fields behind type and id. */

#define VERSION 0x80010000u
#define CALL 1
#define REPLY 2
#define EXCEPTION 3

/* --- writing --- */

static void put_number(struct tarn_buf *out, uint64_t value, int size)
{
    for (int shift = (size - 1) * 8; shift >= 0; shift -= 8)
        tarn_buf_add_byte(out, (uint8_t)(value >> shift));
}

static void put_bytes(struct tarn_buf *out, struct tarn_slice text)
{
    put_number(out, text.size, 4);
    tarn_buf_add_slice(out, text);
}

void tarn_hms__put_call(struct tarn_buf *out, const char *name, int32_t sequence)
{
    put_number(out, VERSION | CALL, 4);
    put_bytes(out, tarn_slice_str(name));
    put_number(out, (uint32_t)sequence, 4);
}

void tarn_hms__put_field(struct tarn_buf *out, enum tarn_hms__type type, int16_t id)
{
    tarn_buf_add_byte(out, (uint8_t)type);
    put_number(out, (uint16_t)id, 2);
}

void tarn_hms__put_i16(struct tarn_buf *out, int16_t id, int16_t value)
{
    tarn_hms__put_field(out, HMS_I16, id);
    put_number(out, (uint16_t)value, 2);
}

void tarn_hms__put_i32(struct tarn_buf *out, int16_t id, int32_t value)
{
    tarn_hms__put_field(out, HMS_I32, id);
    put_number(out, (uint32_t)value, 4);
}

void tarn_hms__put_bool(struct tarn_buf *out, int16_t id, bool value)
{
    tarn_hms__put_field(out, HMS_BOOL, id);
    tarn_buf_add_byte(out, value);
}

void tarn_hms__put_text(struct tarn_buf *out, int16_t id, struct tarn_slice text)
{
    if (text.data == NULL)
        return;
    tarn_hms__put_field(out, HMS_STRING, id);
    put_bytes(out, text);
}

void tarn_hms__put_list(struct tarn_buf *out, int16_t id, enum tarn_hms__type type, size_t count)
{
    tarn_hms__put_field(out, HMS_LIST, id);
    tarn_buf_add_byte(out, (uint8_t)type);
    put_number(out, count, 4);
}

void tarn_hms__put_texts(struct tarn_buf *out, int16_t id, const struct tarn_slice *texts,
                         size_t count)
{
    tarn_hms__put_list(out, id, HMS_STRING, count);
    for (size_t i = 0; i < count; i++)
        put_bytes(out, texts[i]);
}

void tarn_hms__put_pairs(struct tarn_buf *out, int16_t id, const struct tarn_pair *pairs,
                         size_t count)
{
    tarn_hms__put_field(out, HMS_MAP, id);
    tarn_buf_add_byte(out, HMS_STRING);
    tarn_buf_add_byte(out, HMS_STRING);
    put_number(out, count, 4);
    for (size_t i = 0; i < count; i++) {
        put_bytes(out, pairs[i].key);
        put_bytes(out, pairs[i].value);
    }
}

void tarn_hms__put_stop(struct tarn_buf *out)
{
    tarn_buf_add_byte(out, HMS_STOP);
}

/* --- reading --- */

void tarn_hms__reader_init(struct tarn_hms__reader *r, struct tarn_arena *arena)
{
    r->arena = arena;
    r->bytes_left = HMS_REPLY_SIZE_MAX;
    r->memory_left = HMS_REPLY_MEMORY_MAX;
    r->at = r->end = 0;
    r->status = TARN_OK;
}

void tarn_hms__reader_fini(struct tarn_hms__reader *r)
{
    tarn_status_free(tarn_move(r->status));
}

void tarn_hms__spoil(struct tarn_hms__reader *r, const char *format, ...)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    va_list args;
    if (r->status != TARN_OK)
        return;
    va_start(args, format);
    tarn_buf_vprintf(&text, format, args);
    va_end(args);
    r->status = tarn_status_new(TARN_METASTORE_UNAVAILABLE, "its answer makes no sense: %s",
                                tarn_buf_cstr(&text));
}

/* At least one byte more into the buffer, which is empty. */
static bool fetch(struct tarn_hms__reader *r)
{
    size_t got = 0;
    if (r->status == TARN_OK && r->bytes_left == 0)
        tarn_hms__spoil(r, "it is longer than %zu MiB", HMS_REPLY_SIZE_MAX >> 20);
    if (r->status == TARN_OK)
        r->status = r->fetch(r->self, r->buffer, TARN_MIN(sizeof r->buffer, r->bytes_left), &got);
    if (r->status == TARN_OK && got == 0)
        tarn_hms__spoil(r, "it ends in the middle");
    r->at = 0;
    r->end = r->status == TARN_OK ? got : 0;
    r->bytes_left -= r->end;
    return r->status == TARN_OK;
}

/* into NULL: passes over them. */
static bool take(struct tarn_hms__reader *r, uint8_t *into, size_t size)
{
    while (size > 0) {
        if (r->at == r->end && !fetch(r))
            return false;
        size_t some = TARN_MIN(size, r->end - r->at);
        if (into != NULL) {
            memcpy(into, r->buffer + r->at, some);
            into += some;
        }
        r->at += some;
        size -= some;
    }
    return r->status == TARN_OK;
}

static uint64_t get_number(struct tarn_hms__reader *r, size_t size)
{
    uint8_t bytes[8] = {0};
    uint64_t value = 0;
    if (!take(r, bytes, size))
        return 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

int32_t tarn_hms__get_i32(struct tarn_hms__reader *r)
{
    return (int32_t)(uint32_t)get_number(r, 4);
}

bool tarn_hms__get_bool(struct tarn_hms__reader *r)
{
    return get_number(r, 1) != 0;
}

/* A size or count that was said; all that it counts takes a byte at least, so more than can come is a lie. */
static size_t get_count(struct tarn_hms__reader *r, const char *what)
{
    int32_t count = tarn_hms__get_i32(r);
    if (count >= 0 && (size_t)count <= r->bytes_left + (r->end - r->at))
        return (size_t)count;
    tarn_hms__spoil(r, "a %s of %d", what, count);
    return 0;
}

static void *charge(struct tarn_hms__reader *r, size_t size)
{
    if (r->status == TARN_OK && size > r->memory_left)
        tarn_hms__spoil(r, "it takes more than %zu MiB of memory", HMS_REPLY_MEMORY_MAX >> 20);
    if (r->status != TARN_OK)
        return NULL;
    r->memory_left -= size;
    return tarn_arena_calloc(r->arena, 1, size);
}

struct tarn_slice tarn_hms__get_text(struct tarn_hms__reader *r)
{
    size_t size = get_count(r, "text");
    uint8_t *text = charge(r, size + 1);
    if (text == NULL || !take(r, text, size))
        return tarn_slice_str("");
    return tarn_slice_of(text, size);
}

bool tarn_hms__next_field(struct tarn_hms__reader *r, enum tarn_hms__type *type, int16_t *id)
{
    *type = (enum tarn_hms__type)get_number(r, 1);
    if (r->status != TARN_OK || *type == HMS_STOP)
        return false;
    *id = (int16_t)(uint16_t)get_number(r, 2);
    return r->status == TARN_OK;
}

static void skip(struct tarn_hms__reader *r, enum tarn_hms__type type, int depth);

static void skip_fields(struct tarn_hms__reader *r, int depth)
{
    enum tarn_hms__type type;
    int16_t id;
    while (tarn_hms__next_field(r, &type, &id))
        skip(r, type, depth);
}

static void skip_items(struct tarn_hms__reader *r, enum tarn_hms__type key,
                       enum tarn_hms__type value, int depth)
{
    size_t count = get_count(r, "count");
    for (size_t i = 0; i < count && r->status == TARN_OK; i++) {
        if (key != HMS_STOP)
            skip(r, key, depth);
        skip(r, value, depth);
    }
}

static void skip(struct tarn_hms__reader *r, enum tarn_hms__type type, int depth)
{
    if (depth == HMS_DEPTH_MAX)
        tarn_hms__spoil(r, "it is nested deeper than %d", HMS_DEPTH_MAX);
    if (r->status != TARN_OK)
        return;
    enum tarn_hms__type key = HMS_STOP;
    switch (type) {
    case HMS_BOOL:
    case HMS_BYTE:
        take(r, NULL, 1);
        return;
    case HMS_I16:
        take(r, NULL, 2);
        return;
    case HMS_I32:
        take(r, NULL, 4);
        return;
    case HMS_I64:
    case HMS_DOUBLE:
        take(r, NULL, 8);
        return;
    case HMS_STRING:
        take(r, NULL, get_count(r, "text"));
        return;
    case HMS_STRUCT:
        skip_fields(r, depth + 1);
        return;
    case HMS_MAP:
        key = (enum tarn_hms__type)get_number(r, 1);
        /* fall through */
    case HMS_SET:
    case HMS_LIST:
        skip_items(r, key, (enum tarn_hms__type)get_number(r, 1), depth + 1);
        return;
    case HMS_STOP:
        break;
    }
    tarn_hms__spoil(r, "a field of type %d", (int)type);
}

void tarn_hms__skip(struct tarn_hms__reader *r, enum tarn_hms__type type)
{
    skip(r, type, 0);
}

size_t tarn_hms__get_list(struct tarn_hms__reader *r, enum tarn_hms__type item)
{
    enum tarn_hms__type type = (enum tarn_hms__type)get_number(r, 1);
    size_t count = get_count(r, "count");
    if (count > 0 && type != item)
        tarn_hms__spoil(r, "a list of type %d, not %d", (int)type, (int)item);
    return r->status == TARN_OK ? count : 0;
}

void *tarn_hms__next_item(struct tarn_hms__reader *r, void **list, size_t said, size_t *count,
                          size_t *capacity, size_t size)
{
    if (*count == said || r->status != TARN_OK)
        return NULL;
    if (*count == *capacity) {
        size_t more = TARN_MIN(*capacity == 0 ? 8 : *capacity * 2, said);
        void *grown = charge(r, more * size);
        if (grown == NULL)
            return NULL;
        if (*count > 0)
            memcpy(grown, *list, *count * size);
        *list = grown;
        *capacity = more;
    }
    return (uint8_t *)*list + (*count)++ * size;
}

void tarn_hms__get_texts(struct tarn_hms__reader *r, struct tarn_slice **out, size_t *count)
{
    size_t said = tarn_hms__get_list(r, HMS_STRING), capacity = 0;
    void *list = NULL;
    struct tarn_slice *item;
    *count = 0;
    while ((item = tarn_hms__next_item(r, &list, said, count, &capacity, sizeof *item)) != NULL)
        *item = tarn_hms__get_text(r);
    *out = list;
}

void tarn_hms__get_pairs(struct tarn_hms__reader *r, struct tarn_pair **out, size_t *count)
{
    enum tarn_hms__type key = (enum tarn_hms__type)get_number(r, 1);
    enum tarn_hms__type value = (enum tarn_hms__type)get_number(r, 1);
    size_t said = get_count(r, "count"), capacity = 0;
    void *list = NULL;
    struct tarn_pair *item;
    *count = 0;
    if (said > 0 && (key != HMS_STRING || value != HMS_STRING))
        tarn_hms__spoil(r, "a map of types %d and %d", (int)key, (int)value);
    while ((item = tarn_hms__next_item(r, &list, said, count, &capacity, sizeof *item)) != NULL) {
        item->key = tarn_hms__get_text(r);
        item->value = tarn_hms__get_text(r);
    }
    *out = list;
}

/* TApplicationException: 1 message. */
static void get_failure(struct tarn_hms__reader *r, const char *name)
{
    enum tarn_hms__type type;
    int16_t id;
    struct tarn_slice message = tarn_slice_str("it doesn't say why");
    while (tarn_hms__next_field(r, &type, &id))
        if (id == 1 && type == HMS_STRING)
            message = tarn_hms__get_text(r);
        else
            tarn_hms__skip(r, type);
    if (r->status == TARN_OK)
        r->status =
            tarn_status_new(TARN_METASTORE_REFUSED, "%s: %.*s", name,
                            (int)TARN_MIN(message.size, (size_t)500), (const char *)message.data);
}

void tarn_hms__get_reply(struct tarn_hms__reader *r, const char *name, int32_t sequence)
{
    uint32_t head = (uint32_t)get_number(r, 4), kind = head & 0xff;
    if (r->status == TARN_OK &&
        ((head & 0xffff0000u) != VERSION || (kind != REPLY && kind != EXCEPTION)))
        tarn_hms__spoil(
            r, "it begins with %08x (is it a Thrift server without frames, TLS and SASL?)", head);
    struct tarn_slice to = tarn_hms__get_text(r);
    int32_t number = tarn_hms__get_i32(r);
    if (r->status == TARN_OK && (!tarn_slice_is(to, name) || number != sequence))
        tarn_hms__spoil(r, "it answers another call than %s", name);
    if (r->status == TARN_OK && kind == EXCEPTION)
        get_failure(r, name);
}
