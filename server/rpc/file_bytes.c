#include "rpc/table.h"

/*
 * Splits as bytes on the wire, written straight from what the table keeps: a plan may have a million, and as messages
 * each would take ten times as long. The numbers are the fields' of proto/tarn/v1/table.proto; files are fields already
 * (format/entry_pack.c).
 */

void tarn_rpc__add_bytes_field(struct tarn_buf *out, uint32_t field, struct tarn_slice bytes)
{
    tarn_buf_reserve(out, bytes.size + TARN_FIELD_ROOM);
    out->size = (size_t)(tarn_put_bytes(out->data + out->size, field, bytes) - out->data);
}

static size_t file_size(const struct tarn_plan_bytes *file)
{
    return file->file.size + file->stats.size + file->vector.size;
}

static size_t files_size(const struct tarn_plan_bytes *files, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += 1 + tarn_varint_size(file_size(&files[i])) + file_size(&files[i]);
    return size;
}

static uint8_t *put_piece(uint8_t *to, struct tarn_slice piece)
{
    if (piece.size > 0)
        memcpy(to, piece.data, piece.size);
    return to + piece.size;
}

static uint8_t *put_files(uint8_t *to, uint32_t field, const struct tarn_plan_bytes *files,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to = tarn_put_varint(tarn_put_key(to, field, TARN_FORM_BYTES), file_size(&files[i]));
        to = put_piece(to, files[i].file);
        to = put_piece(to, files[i].stats);
        to = put_piece(to, files[i].vector);
    }
    return to;
}

void tarn_rpc__split_head(const struct tarn_split *split, struct tarn_slice path,
                          int64_t snapshot_id, struct tarn_buf *out)
{
    tarn_buf_clear(out);
    tarn_buf_reserve(out, split->partition.size + path.size + TARN_FIELD_ROOM * 5);
    uint8_t *to = tarn_put_some_bytes(out->data, 1, split->partition);
    to = tarn_put_some_number(to, 2, split->bucket);
    to = tarn_put_some_bytes(to, 5, path);
    to = tarn_put_some_number(to, 8, split->is_changelog);
    to = tarn_put_some_number(to, 9, snapshot_id);
    out->size = (size_t)(to - out->data);
}

void tarn_rpc__add_split(struct tarn_buf *out, uint32_t field, struct tarn_slice head,
                         const struct tarn_split *split, const struct tarn_plan_bytes *files)
{
    uint8_t own[TARN_FIELD_ROOM * 2];
    uint8_t *to = tarn_put_some_number(own, 3, split->raw);
    to = tarn_put_some_number(to, 6, split->total_buckets);
    struct tarn_slice tail = tarn_slice_of(own, (size_t)(to - own));
    size_t size =
        head.size + tail.size + files_size(files, split->file_count + split->before_count);
    tarn_buf_reserve(out, size + TARN_FIELD_ROOM);
    to = tarn_put_varint(tarn_put_key(out->data + out->size, field, TARN_FORM_BYTES), size);
    to = put_piece(to, head);
    to = put_piece(to, tail);
    to = put_files(to, 4, files, split->file_count);
    to = put_files(to, 7, files + split->file_count, split->before_count);
    out->size = (size_t)(to - out->data);
}
