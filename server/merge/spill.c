/*
 * spill - sorted runs in one unnamed local file, as plain columns.
 *
 * Shape    a segment is batches one after the other: its size and row count (8 bytes each), then its columns.
 *          A column is 1 byte (has a bitmap), the bitmap, and by type: values; or offsets from 0
 *          (4 bytes each, one more than rows) and what they point into; a ROW's fields. Every part
 *          begins without an offset, whatever the array had. Host byte order: nobody else reads it.
 */
#include "merge/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct tarn_merge_spill {
    int fd;
    int64_t size;
    const struct tarn_type **types; /* owned list of borrowed types */
    int column_count;
    struct tarn_buf block; /* a batch being written */
};

struct segment_reader {
    struct tarn_merge_input input; /* first */
    const struct tarn_merge_spill *spill;
    int64_t at, end;
    uint32_t place;
};

#define HEAD_SIZE 16

struct tarn_status *tarn_merge__spill_open(const char *scratch_dir,
                                           const struct tarn_type *const *types, int column_count,
                                           struct tarn_merge_spill **out)
{
    TARN_OWN(tarn_free_drop) char *path = tarn_format("%s/tarn-spill-XXXXXX", scratch_dir);
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0)
        return tarn_status_errno(errno, "spill file in %s", scratch_dir);
    unlink(path); /* gone with the last close, also after a crash */
    struct tarn_merge_spill *spill = tarn_calloc(1, sizeof *spill);
    spill->fd = fd;
    spill->column_count = column_count;
    spill->types = tarn_alloc(((size_t)column_count + 1) * sizeof *spill->types);
    memcpy(spill->types, types, (size_t)column_count * sizeof *spill->types);
    *out = spill;
    return TARN_OK;
}

void tarn_merge__spill_close(struct tarn_merge_spill *spill)
{
    if (spill == NULL)
        return;
    close(spill->fd);
    tarn_buf_drop(&spill->block);
    free(spill->types);
    free(spill);
}

void tarn_merge__spill_clear(struct tarn_merge_spill *spill)
{
    if (ftruncate(spill->fd, 0) == 0) /* else it only keeps its space until the close */
        spill->size = 0;
}

/* --- writing --- */

static void put_bits(const uint8_t *bits, int64_t begin, int64_t count, struct tarn_buf *out)
{
    size_t size = (size_t)(count + 7) / 8, at = out->size;

    if ((begin & 7) == 0) {
        tarn_buf_add(out, bits + begin / 8, size);
        return;
    }
    tarn_buf_add_zeros(out, size);
    for (int64_t i = 0; i < count; i++)
        out->data[at + (size_t)(i >> 3)] |=
            (uint8_t)((bits[(begin + i) >> 3] >> ((begin + i) & 7) & 1) << (i & 7));
}

/* Offsets from 0; answers the range they point into. */
static void put_offsets(const struct ArrowArray *a, int64_t begin, int64_t count,
                        struct tarn_buf *out, int32_t *first, int32_t *total)
{
    const int32_t *offsets = (const int32_t *)a->buffers[1] + begin;

    *first = count == 0 ? 0 : offsets[0];
    *total = count == 0 ? 0 : offsets[count] - offsets[0];
    tarn_buf_reserve(out, ((size_t)count + 1) * 4);
    for (int64_t i = 0; i <= count; i++) {
        int32_t offset = count == 0 ? 0 : offsets[i] - *first;
        tarn_buf_add(out, &offset, 4);
    }
}

/* Rows [begin, begin + count) of the memory behind the array: its offset is in begin already. */
static void put_array(const struct tarn_type *type, const struct ArrowArray *a, int64_t begin,
                      int64_t count, struct tarn_buf *out)
{
    static const struct tarn_type count_type = {.id = TARN_TYPE_INT};
    bool has_bitmap = a->null_count != 0 && a->buffers[0] != NULL;
    int width = tarn_merge__type_width(type);
    int32_t first, total;

    tarn_buf_add_byte(out, has_bitmap);
    if (has_bitmap)
        put_bits(a->buffers[0], begin, count, out);
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        if (count > 0)
            put_bits(a->buffers[1], begin, count, out);
        return;
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        put_offsets(a, begin, count, out, &first, &total);
        if (total > 0)
            tarn_buf_add(out, (const uint8_t *)a->buffers[2] + first, (size_t)total);
        return;
    case TARN_TYPE_ARRAY:
        put_offsets(a, begin, count, out, &first, &total);
        put_array(type->element, a->children[0], first + a->children[0]->offset, total, out);
        return;
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET: {
        const struct ArrowArray *entries = a->children[0];
        bool multiset = type->id == TARN_TYPE_MULTISET;
        const struct tarn_type *types[2] = {multiset ? type->element : type->key,
                                            multiset ? &count_type : type->element};
        put_offsets(a, begin, count, out, &first, &total);
        for (int i = 0; i < 2; i++)
            put_array(types[i], entries->children[i],
                      first + entries->offset + entries->children[i]->offset, total, out);
        return;
    }
    case TARN_TYPE_ROW:
        for (size_t i = 0; i < type->field_count; i++)
            put_array(type->fields[i].type, a->children[i], begin + a->children[i]->offset, count,
                      out);
        return;
    default:
        if (count > 0)
            tarn_buf_add(out, (const uint8_t *)a->buffers[1] + begin * width,
                         (size_t)(count * width));
        return;
    }
}

static struct tarn_status *write_block(struct tarn_merge_spill *spill)
{
    const uint8_t *data = spill->block.data;
    size_t left = spill->block.size;

    while (left > 0) {
        ssize_t written = pwrite(spill->fd, data, left, spill->size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return tarn_status_errno(errno, "spill file");
        data += written;
        left -= (size_t)written;
        spill->size += written;
    }
    return TARN_OK;
}

struct tarn_status *tarn_merge__spill_write(struct tarn_merge_spill *spill, struct tarn_op *op,
                                            struct tarn_merge_input *input,
                                            struct tarn_merge_segment *out)
{
    int64_t offset = spill->size;

    for (;;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        uint32_t place;
        int64_t head[2];

        TARN_TRY(input->next(input, op, &batch, &place));
        if (batch == NULL)
            break;
        tarn_buf_clear(&spill->block);
        tarn_buf_add_zeros(&spill->block, HEAD_SIZE);
        for (int i = 0; i < spill->column_count; i++) {
            const struct ArrowArray *a = tarn_batch_column(batch, i);
            put_array(spill->types[i], a, a->offset, batch->row_count, &spill->block);
        }
        head[0] = (int64_t)spill->block.size;
        head[1] = batch->row_count;
        memcpy(spill->block.data, head, sizeof head);
        TARN_TRY(write_block(spill));
    }
    *out = (struct tarn_merge_segment){offset, spill->size - offset};
    return TARN_OK;
}

/* --- reading: our own bytes, yet a disk may have changed them --- */

struct rest { /* of a block */
    const uint8_t *at;
    size_t left;
};

static struct tarn_status *take(struct rest *rest, size_t size, const uint8_t **out)
{
    if (size > rest->left)
        return tarn_status_new(TARN_IO_ERROR, "the spill file is damaged");
    *out = rest->at;
    rest->at += size;
    rest->left -= size;
    return TARN_OK;
}

static struct tarn_status *take_buffer(struct rest *rest, size_t size, struct ArrowArray *array,
                                       int index)
{
    const uint8_t *bytes = NULL;

    TARN_TRY(take(rest, size, &bytes));
    memcpy(tarn_merge__array_buffer(array, index, size, false), bytes, size);
    return TARN_OK;
}

static struct tarn_status *take_validity(struct rest *rest, struct ArrowArray *array, int64_t count)
{
    const uint8_t *flag = NULL;

    TARN_TRY(take(rest, 1, &flag));
    if (*flag == 0)
        return TARN_OK;
    array->null_count = -1;
    return take_buffer(rest, (size_t)(count + 7) / 8, array, 0);
}

static struct tarn_status *take_offsets(struct rest *rest, struct ArrowArray *array, int64_t count,
                                        int32_t *total)
{
    TARN_TRY(take_buffer(rest, ((size_t)count + 1) * 4, array, 1));

    const int32_t *offsets = array->buffers[1];
    for (int64_t i = 0; i < count; i++) {
        if (offsets[i] > offsets[i + 1])
            return tarn_status_new(TARN_IO_ERROR, "the spill file is damaged");
    }
    if (offsets[0] != 0)
        return tarn_status_new(TARN_IO_ERROR, "the spill file is damaged");
    *total = offsets[count];
    return TARN_OK;
}

/* *out is made in any case; the caller releases it. */
static struct tarn_status *take_array(const struct tarn_type *type, struct rest *rest,
                                      int64_t count, struct ArrowArray *out)
{
    static const struct tarn_type count_type = {.id = TARN_TYPE_INT};
    int width = tarn_merge__type_width(type);
    int32_t total = 0;

    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        tarn_merge__array_init(out, count, 2, 0);
        TARN_TRY(take_validity(rest, out, count));
        return take_buffer(rest, (size_t)(count + 7) / 8, out, 1);
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        tarn_merge__array_init(out, count, 3, 0);
        TARN_TRY(take_validity(rest, out, count));
        TARN_TRY(take_offsets(rest, out, count, &total));
        return take_buffer(rest, (size_t)total, out, 2);
    case TARN_TYPE_ARRAY:
        tarn_merge__array_init(out, count, 2, 1);
        TARN_TRY(take_validity(rest, out, count));
        TARN_TRY(take_offsets(rest, out, count, &total));
        return take_array(type->element, rest, total, out->children[0]);
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET: {
        bool multiset = type->id == TARN_TYPE_MULTISET;
        tarn_merge__array_init(out, count, 2, 1);
        TARN_TRY(take_validity(rest, out, count));
        TARN_TRY(take_offsets(rest, out, count, &total));
        tarn_merge__array_init(out->children[0], total, 1, 2);
        TARN_TRY(take_array(multiset ? type->element : type->key, rest, total,
                            out->children[0]->children[0]));
        return take_array(multiset ? &count_type : type->element, rest, total,
                          out->children[0]->children[1]);
    }
    case TARN_TYPE_ROW:
        tarn_merge__array_init(out, count, 1, (int)type->field_count);
        TARN_TRY(take_validity(rest, out, count));
        for (size_t i = 0; i < type->field_count; i++)
            TARN_TRY(take_array(type->fields[i].type, rest, count, out->children[i]));
        return TARN_OK;
    default:
        tarn_merge__array_init(out, count, 2, 0);
        TARN_TRY(take_validity(rest, out, count));
        return take_buffer(rest, (size_t)(count * width), out, 1);
    }
}

struct tarn_status *tarn_merge__spill_decode(struct tarn_slice bytes, int64_t row_count,
                                             const struct tarn_type *const *types, int column_count,
                                             struct tarn_batch **out)
{
    struct rest rest = {bytes.data, bytes.size};
    struct tarn_status *s = TARN_OK;
    struct ArrowArray top;

    tarn_merge__array_init(&top, row_count, 1, column_count);
    for (int i = 0; i < column_count && s == TARN_OK; i++)
        s = take_array(types[i], &rest, row_count, top.children[i]);
    if (s != TARN_OK) {
        tarn_merge__array_drop(&top);
        return s;
    }
    *out = tarn_batch_take(&top);
    return TARN_OK;
}

static struct tarn_status *read_fully(int fd, void *to, size_t size, int64_t at)
{
    uint8_t *bytes = to;

    while (size > 0) {
        ssize_t got = pread(fd, bytes, size, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tarn_status_errno(errno, "spill file");
        if (got == 0)
            return tarn_status_new(TARN_IO_ERROR, "the spill file ends too early");
        bytes += got;
        size -= (size_t)got;
        at += got;
    }
    return TARN_OK;
}

static struct tarn_status *reader_next(struct tarn_merge_input *self, struct tarn_op *op,
                                       struct tarn_batch **out, uint32_t *place)
{
    struct segment_reader *reader = (struct segment_reader *)self;
    const struct tarn_merge_spill *spill = reader->spill;
    int64_t head[2];

    *out = NULL;
    *place = reader->place;
    if (reader->at == reader->end)
        return TARN_OK;
    TARN_TRY(read_fully(spill->fd, head, sizeof head, reader->at));
    if (head[0] < HEAD_SIZE || head[0] > reader->end - reader->at || head[1] < 1 ||
        head[1] > INT32_MAX)
        return tarn_status_new(TARN_IO_ERROR, "the spill file is damaged");

    TARN_OWN(tarn_free_drop) uint8_t *block = tarn_alloc((size_t)head[0]);
    TARN_TRY(read_fully(spill->fd, block, (size_t)head[0], reader->at));
    TARN_TRY(tarn_merge__spill_decode(tarn_slice_of(block + HEAD_SIZE, (size_t)head[0] - HEAD_SIZE),
                                      head[1], spill->types, spill->column_count, out));
    reader->at += head[0];
    return TARN_OK;
}

static void reader_close(struct tarn_merge_input *self)
{
    free(self);
}

struct tarn_merge_input *tarn_merge__spill_read(const struct tarn_merge_spill *spill,
                                                struct tarn_merge_segment segment, uint32_t place)
{
    struct segment_reader *reader = tarn_calloc(1, sizeof *reader);

    reader->input = (struct tarn_merge_input){reader_next, reader_close};
    reader->spill = spill;
    reader->at = segment.offset;
    reader->end = segment.offset + segment.size;
    reader->place = place;
    return &reader->input;
}
