/*
 * parts - the stream of a load, message by message: files of bytes.
 *
 * `data` comes from the client as it sent it, so it is the daemon's word no more: a task or a start in the
 * middle of the stream is refused. A message that is nothing but data is not decoded, its bytes are used
 * where they lie.
 */
#include "internal.h"

#define DATA_TAG 0x1a                     /* field 3, bytes */
#define ARENA_SIZE_MAX ((size_t)64 << 10) /* then what earlier parts left in it is dropped */

/* Is the message one `data` field and nothing else? */
static bool is_plain_data(struct tarn_slice bytes, struct tarn_slice *data)
{
    uint64_t size = 0;
    size_t at = 1;

    if (bytes.size < 2 || bytes.data[0] != DATA_TAG)
        return false;
    for (int shift = 0;; shift += 7) {
        if (at == bytes.size || shift > 28)
            return false;
        uint8_t byte = bytes.data[at++];
        size |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    if (size != bytes.size - at)
        return false;
    *data = tarn_slice_of(bytes.data + at, (size_t)size);
    return true;
}

struct tarn_status *tarn_flight__part_decode(struct tarn_slice bytes, struct tarn_arena *arena,
                                             struct tarn_flight__part *out)
{
    const Tarn__V1__IngestRequest *request;

    *out = (struct tarn_flight__part){.kind = TARN_PART_DATA};
    if (is_plain_data(bytes, &out->data))
        return TARN_OK;
    const void *message;
    TARN_TRY(tarn_flight_unpack(&tarn__v1__ingest_request__descriptor, bytes, arena, &message));
    request = message;
    switch (request->part_case) {
    case TARN__V1__INGEST_REQUEST__PART_DATA:
        out->data = tarn_flight_slice(request->data);
        return TARN_OK;
    case TARN__V1__INGEST_REQUEST__PART_FILE:
        out->kind = TARN_PART_FILE;
        TARN_TRY(tarn_flight__format((int)request->file->format, &out->format));
        return tarn_flight__text(tarn_flight_slice(request->file->name), "the file's name", arena,
                                 &out->file_name);
    case TARN__V1__INGEST_REQUEST__PART_TASK:
        out->kind = TARN_PART_TASK;
        out->task = request->task;
        return TARN_OK;
    default:
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a message that is neither task, file nor data");
    }
}

static struct tarn_status *read_part(struct tarn_flight__parts *parts, struct tarn_arena *arena)
{
    tarn_message_drop(&parts->message);
    TARN_TRY(tarn_call_read(parts->call, &parts->message));
    if (parts->message == NULL) {
        parts->part = (struct tarn_flight__part){.kind = TARN_PART_END};
        return TARN_OK;
    }
    return tarn_flight__part_decode(tarn_message_bytes(parts->message), arena, &parts->part);
}

struct tarn_status *tarn_flight__parts_open(struct tarn_flight__parts *parts, struct tarn_op *op,
                                            struct tarn_call *call)
{
    *parts = (struct tarn_flight__parts){.call = call};
    return read_part(parts, op->arena);
}

void tarn_flight__parts_drop(struct tarn_flight__parts *parts)
{
    tarn_message_drop(&parts->message);
    tarn_arena_drop(&parts->arena);
}

static struct tarn_status *next_part(struct tarn_flight__parts *parts)
{
    if (parts->arena == NULL || tarn_arena_size(parts->arena) > ARENA_SIZE_MAX) {
        tarn_arena_drop(&parts->arena);
        parts->arena = tarn_arena_new();
    }
    TARN_TRY(read_part(parts, parts->arena));
    if (parts->part.kind == TARN_PART_TASK)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a task in the middle of the stream");
    return TARN_OK;
}

struct tarn_status *tarn_flight__parts_next_file(struct tarn_flight__parts *parts,
                                                 struct tarn_op *op, const char **name,
                                                 enum tarn_data_format *format, bool *found)
{
    if (parts->part.kind == TARN_PART_TASK)
        TARN_TRY(next_part(parts));
    if (parts->part.kind == TARN_PART_DATA && parts->file_count == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "data before a file");
    while (parts->part.kind ==
           TARN_PART_DATA) /* what its reader didn't want: an Arrow file's footer */
        TARN_TRY(next_part(parts));
    *found = parts->part.kind == TARN_PART_FILE;
    if (!*found)
        return TARN_OK;
    if (++parts->file_count > TARN_FLIGHT_FILES_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "more than %d files at once", TARN_FLIGHT_FILES_MAX);
    *name = tarn_arena_str(op->arena, tarn_slice_str(parts->part.file_name));
    *format = parts->part.format;
    return next_part(parts);
}

struct tarn_status *tarn_flight__parts_take(struct tarn_flight__parts *parts,
                                            struct tarn_slice *out)
{
    while (parts->part.kind == TARN_PART_DATA && parts->part.data.size == 0)
        TARN_TRY(next_part(parts));
    *out = parts->part.kind == TARN_PART_DATA ? parts->part.data : (struct tarn_slice){NULL, 0};
    parts->part.data = (struct tarn_slice){NULL, 0};
    return TARN_OK;
}

struct tarn_status *tarn_flight__parts_pull(void *arg, struct tarn_op *op TARN_UNUSED, uint8_t *out,
                                            size_t size, size_t *got)
{
    struct tarn_flight__parts *parts = arg;

    *got = 0;
    while (*got < size) {
        struct tarn_slice piece;
        TARN_TRY(tarn_flight__parts_take(parts, &piece));
        if (piece.size == 0)
            break;
        size_t n = TARN_MIN(size - *got, piece.size);
        memcpy(out + *got, piece.data, n);
        *got += n;
        parts->part.data = tarn_slice_of(piece.data + n, piece.size - n);
    }
    return TARN_OK;
}
