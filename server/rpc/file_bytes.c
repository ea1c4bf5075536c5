#include "rpc/table.h"

/*
 * Files and splits as bytes on the wire, written straight from what the table knows: a plan may have a million, and as
 * messages each would take ten times as long. The bytes are those that protobuf-c would write (held by
 * test/unit/rpc/file_bytes_test.c); the numbers are the fields' of proto/tarn/v1/table.proto.
 */

enum wire_type { VARINT = 0, BYTES = 2 };

static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

static size_t varint_size(uint64_t value)
{
    size_t n = 1;
    for (; value >= 0x80; value >>= 7)
        n++;
    return n;
}

static uint8_t *put_key(uint8_t *to, uint32_t field, enum wire_type type)
{
    return put_varint(to, (uint64_t)field << 3 | type);
}

static uint8_t *put_bytes(uint8_t *to, uint32_t field, struct tarn_slice bytes)
{
    to = put_key(to, field, BYTES);
    to = put_varint(to, bytes.size);
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    return to + bytes.size;
}

/* As proto3 has it: what is 0 or empty isn't said. */
static uint8_t *put_number(uint8_t *to, uint32_t field, int64_t value)
{
    return value == 0 ? to : put_varint(put_key(to, field, VARINT), (uint64_t)value);
}

static uint8_t *put_text(uint8_t *to, uint32_t field, struct tarn_slice bytes)
{
    return bytes.size == 0 ? to : put_bytes(to, field, bytes);
}

/* What may be 0 and there. */
static uint8_t *put_optional(uint8_t *to, uint32_t field, int64_t value)
{
    return value == TARN_FILE_NONE ? to : put_varint(put_key(to, field, VARINT), (uint64_t)value);
}

void tarn_rpc__add_bytes_field(struct tarn_buf *out, uint32_t field, struct tarn_slice bytes)
{
    tarn_buf_reserve(out, bytes.size + 20);
    out->size = (size_t)(put_bytes(out->data + out->size, field, bytes) - out->data);
}

/* The size of what was written behind `at` goes in front of it, behind its field. */
static void close_message(struct tarn_buf *out, size_t at, uint32_t field)
{
    uint8_t head[20];
    size_t size = out->size - at;
    size_t head_size = (size_t)(put_varint(put_key(head, field, BYTES), size) - head);
    tarn_buf_reserve(out, head_size);
    memmove(out->data + at + head_size, out->data + at, size);
    memcpy(out->data + at, head, head_size);
    out->size += head_size;
}

static void add_stats(struct tarn_buf *out, uint32_t field, const struct tarn_stats *stats)
{
    size_t at = out->size, counts_size = 0;
    for (size_t i = 0; i < stats->count; i++)
        counts_size += varint_size((uint64_t)stats->null_counts[i]);
    tarn_buf_reserve(out, stats->min.size + stats->max.size + counts_size + 40);
    uint8_t *to = out->data + at;
    to = put_text(to, 1, stats->min);
    to = put_text(to, 2, stats->max);
    if (stats->count > 0) {
        to = put_varint(put_key(to, 3, BYTES), counts_size);
        for (size_t i = 0; i < stats->count; i++)
            to = put_varint(to, (uint64_t)stats->null_counts[i]);
    }
    out->size = (size_t)(to - out->data);
    close_message(out, at, field);
}

static size_t list_size(const struct tarn_slice *list, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += list[i].size + 12;
    return size;
}

static uint8_t *put_list(uint8_t *to, uint32_t field, const struct tarn_slice *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to = put_bytes(to, field, list[i]);
    return to;
}

void tarn_rpc__add_file(struct tarn_buf *out, const struct tarn_data_file *f, bool with_stats)
{
    tarn_buf_reserve(out, f->name.size + f->min_key.size + f->max_key.size + 64);
    uint8_t *to = out->data + out->size;
    to = put_text(to, 1, f->name);
    to = put_number(to, 2, f->size);
    to = put_number(to, 3, f->row_count);
    to = put_text(to, 4, f->min_key);
    to = put_text(to, 5, f->max_key);
    out->size = (size_t)(to - out->data);
    if (with_stats) {
        add_stats(out, 6, &f->key_stats);
        add_stats(out, 7, &f->value_stats);
    }
    tarn_buf_reserve(out, list_size(f->extra_files, f->extra_file_count) +
                              list_size(f->value_stats_columns, f->value_stats_column_count) +
                              f->embedded_index.size + f->external_path.size + 160);
    to = out->data + out->size;
    to = put_number(to, 8, f->min_sequence);
    to = put_number(to, 9, f->max_sequence);
    to = put_number(to, 10, f->schema_id);
    to = put_number(to, 11, f->level);
    to = put_list(to, 12, f->extra_files, f->extra_file_count);
    to = put_optional(to, 13, f->creation_time_ms);
    to = put_optional(to, 14, f->delete_row_count);
    if (f->embedded_index.data != NULL)
        to = put_bytes(to, 15, f->embedded_index);
    to = put_number(to, 16, f->source);
    to = put_number(to, 17, with_stats && f->has_value_stats_columns);
    to = put_list(to, 18, f->value_stats_columns, with_stats ? f->value_stats_column_count : 0);
    if (f->external_path.data != NULL)
        to = put_bytes(to, 19, f->external_path);
    to = put_optional(to, 20, f->first_row_id);
    out->size = (size_t)(to - out->data);
}

static void add_files(struct tarn_buf *out, uint32_t field, const struct tarn_plan_file *files,
                      size_t count, bool with_stats)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = out->size;
        tarn_rpc__add_file(out, &files[i].entry.file, with_stats);
        close_message(out, at, field);
    }
}

static void add_number(struct tarn_buf *out, uint32_t field, int64_t value)
{
    tarn_buf_reserve(out, 20);
    out->size = (size_t)(put_number(out->data + out->size, field, value) - out->data);
}

void tarn_rpc__add_split(struct tarn_buf *out, const struct tarn_split *split,
                         struct tarn_slice path, int64_t snapshot_id, bool with_stats)
{
    tarn_buf_reserve(out, split->partition.size + 40);
    out->size = (size_t)(put_text(out->data + out->size, 1, split->partition) - out->data);
    add_number(out, 2, split->bucket);
    add_number(out, 3, split->raw);
    add_files(out, 4, split->files, split->file_count, with_stats);
    if (path.size > 0)
        tarn_rpc__add_bytes_field(out, 5, path);
    add_number(out, 6, split->total_buckets);
    add_files(out, 7, split->before_files, split->before_count, with_stats);
    add_number(out, 8, split->is_changelog);
    add_number(out, 9, snapshot_id);
}
