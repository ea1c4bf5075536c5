/*
 * s3_write - writers, and several objects at once.
 *
 * What fits into one part is one conditional PUT when the writer is finished. A larger object is a multipart
 * upload, begun when the second part is full; PARTS_AT_ONCE parts go up side by side. Nothing is visible before the
 * upload is completed. An upload that was neither completed nor aborted (a crash) stays in the bucket, unseen,
 * until a lifecycle rule removes it: docs/operations.md.
 */
#include "store/s3.h"

#define PARTS_AT_ONCE ((size_t)2)
#define PARTS_MAX 10000                   /* S3's own limit */
#define GROW_PARTS 1000                   /* after so many parts, the next are twice as large */
#define ABORT_WAIT_MS 10000               /* to clean up, when the operation itself is over */
#define MANY_BYTES_MAX ((size_t)64 << 20) /* of several objects: signed and sent at the same time */

struct writer {
    struct tarn_s3 *s3; /* borrowed: the store outlives it */
    char *key;
    char id[TARN_UUID_SIZE]; /* tells our object from another one */
    struct tarn_buf bytes;   /* not yet sent */
    char *upload;            /* its id; NULL: none was begun */
    char **etags;            /* of the parts sent */
    size_t part_count, part_capacity;
};

struct tarn_status *tarn_s3__open_writer(void *self, struct tarn_op *op, const char *key,
                                         void **out)
{
    TARN_TRY(tarn_s3__key_check(self, key));
    struct writer *writer = tarn_calloc(1, sizeof *writer);
    writer->s3 = self;
    writer->key = tarn_strdup(key);
    tarn_uuid_random(writer->id);
    *out = writer;
    return TARN_OK;
}

static void writer_free(struct writer *writer)
{
    for (size_t i = 0; i < writer->part_count; i++)
        free(writer->etags[i]);
    free(writer->etags);
    free(writer->upload);
    free(writer->key);
    tarn_buf_drop(&writer->bytes);
    free(writer);
}

/* --- an upload --- */

struct wanted {
    const char *root, *name;
    struct tarn_slice text; /* out */
};

static struct tarn_status *decode_wanted(void *arg, struct tarn_op *op, struct tarn_slice body)
{
    struct wanted *wanted = arg;
    return tarn_s3__decode_one(body, op->arena, wanted->root, wanted->name, &wanted->text);
}

static struct tarn_status *begin_upload(struct writer *writer, struct tarn_op *op)
{
    struct wanted wanted = {"InitiateMultipartUpload", "UploadId", {0}};
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {
        .method = "POST", .key = writer->key, .decode = decode_wanted, .decode_arg = &wanted};
    tarn_s3__add_query(&request, "uploads", tarn_slice_str(""));
    tarn_s3__add_header(&request, TARN_S3_ID_HEADER, writer->id);
    TARN_TRY(tarn_s3__ask(writer->s3, op, &request));
    if (wanted.text.size == 0)
        return tarn_status_new(TARN_STORE_UNAVAILABLE, "no upload of '%s' was begun: %d",
                               writer->key, request.status);
    writer->upload = tarn_slice_dup(wanted.text);
    return TARN_OK;
}

static size_t part_size(const struct writer *writer)
{
    return (size_t)writer->s3->settings.part_size << (writer->part_count / GROW_PARTS);
}

static void make_part(struct writer *writer, struct tarn_op *op, size_t number,
                      struct tarn_slice bytes, struct tarn_s3_request *out)
{
    *out = (struct tarn_s3_request){.method = "PUT", .key = writer->key, .body = bytes};
    tarn_s3__add_query(out, "partNumber",
                       tarn_slice_str(tarn_arena_printf(op->arena, "%zu", number)));
    tarn_s3__add_query(out, "uploadId", tarn_slice_str(writer->upload));
}

static struct tarn_status *keep_part(struct writer *writer, struct tarn_s3_request *request)
{
    struct tarn_slice etag = tarn_fetch_header(&request->http, "etag");
    if (request->status / 100 != 2 || etag.size == 0)
        return tarn_status_new(TARN_STORE_UNAVAILABLE, "part %zu of '%s' was answered %d%s",
                               writer->part_count + 1, writer->key, request->status,
                               etag.size == 0 ? " without an ETag" : "");
    TARN_GROW(writer->etags, writer->part_count, writer->part_capacity);
    writer->etags[writer->part_count++] = tarn_slice_dup(etag);
    return TARN_OK;
}

/* The first `size` bytes as parts of `step`; they are forgotten. */
static struct tarn_status *send_parts(struct writer *writer, struct tarn_op *op, size_t size,
                                      size_t step)
{
    struct tarn_s3_request requests[PARTS_AT_ONCE + 1] = {0};
    size_t count = 0;
    if (writer->upload == NULL)
        TARN_TRY(begin_upload(writer, op));
    for (size_t at = 0; at < size; at += step, count++) {
        tarn_assert(count <= PARTS_AT_ONCE);
        if (writer->part_count + count == PARTS_MAX)
            return tarn_status_new(TARN_TOO_LARGE, "'%s' has more than %d parts", writer->key,
                                   PARTS_MAX);
        make_part(writer, op, writer->part_count + count + 1,
                  tarn_slice_of(writer->bytes.data + at, TARN_MIN(step, size - at)),
                  &requests[count]);
    }
    struct tarn_status *status = tarn_s3__ask_every(writer->s3, op, requests, count);
    for (size_t i = 0; i < count; i++) {
        if (status == TARN_OK)
            status = keep_part(writer, &requests[i]);
        tarn_s3__request_drop(&requests[i]);
    }
    if (status != TARN_OK)
        return status;
    writer->bytes.size -= size;
    memmove(writer->bytes.data, writer->bytes.data + size, writer->bytes.size);
    return TARN_OK;
}

struct tarn_status *tarn_s3__append(void *self, struct tarn_op *op, struct tarn_slice bytes)
{
    struct writer *writer = self;
    while (bytes.size > 0) {
        size_t step = part_size(writer), full = step * PARTS_AT_ONCE;
        size_t room = writer->bytes.size < full ? full - writer->bytes.size : 0;
        size_t n = TARN_MIN(bytes.size, room);
        tarn_buf_add(&writer->bytes, bytes.data, n);
        bytes = tarn_slice_of(bytes.data + n, bytes.size - n);
        if (writer->bytes.size < full || bytes.size == 0)
            continue; /* the last part must be there for finish */
        TARN_OWN(tarn_op_fini) struct tarn_op child;
        tarn_op_init_child(&child, op);
        TARN_TRY(send_parts(writer, &child, full, step));
    }
    return TARN_OK;
}

/* --- the end --- */

static struct tarn_status *exists(const struct writer *writer)
{
    return tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", writer->key);
}

static void add_parts(const struct writer *writer, struct tarn_buf *out)
{
    tarn_buf_add_str(out, "<CompleteMultipartUpload "
                          "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (size_t i = 0; i < writer->part_count; i++) {
        tarn_buf_printf(out, "<Part><PartNumber>%zu</PartNumber><ETag>", i + 1);
        for (const char *c = writer->etags[i]; *c != '\0'; c++)
            if (*c == '"')
                tarn_buf_add_str(out, "&quot;");
            else if (*c == '&' || *c == '<' || *c == '>')
                tarn_buf_printf(out, "&#%d;", *c);
            else
                tarn_buf_add_byte(out, (uint8_t)*c);
        tarn_buf_add_str(out, "</ETag></Part>");
    }
    tarn_buf_add_str(out, "</CompleteMultipartUpload>");
}

/* The upload is gone: completed by an attempt whose answer was lost? */
static struct tarn_status *was_completed(struct writer *writer, struct tarn_op *op)
{
    bool found;
    struct tarn_s3_meta meta;
    TARN_TRY(tarn_s3__look(writer->s3, op, writer->key, &found, &meta));
    if (found && tarn_slice_is(meta.id, writer->id))
        return TARN_OK;
    if (found)
        return exists(writer);
    return tarn_status_new(TARN_STORE_UNAVAILABLE, "the upload of '%s' is gone", writer->key);
}

/* Not every store heeds the condition here, so it is also looked for before: these names are never used twice
 * but by mistake. */
static struct tarn_status *complete(struct writer *writer, struct tarn_op *op)
{
    bool found;
    struct tarn_s3_meta meta;
    struct wanted wanted = {"CompleteMultipartUpload", "ETag", {0}};
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    TARN_TRY(tarn_s3__look(writer->s3, op, writer->key, &found, &meta));
    if (found)
        return exists(writer);
    add_parts(writer, &body);
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "POST",
                                      .key = writer->key,
                                      .body = tarn_buf_slice(&body),
                                      .decode = decode_wanted,
                                      .decode_arg = &wanted};
    tarn_s3__add_query(&request, "uploadId", tarn_slice_str(writer->upload));
    if (!writer->s3->settings.single_writer)
        tarn_s3__add_header(&request, "if-none-match", "*");
    TARN_TRY(tarn_s3__ask(writer->s3, op, &request));
    if (request.status / 100 == 2)
        return TARN_OK;
    if (request.status == 412 || request.status == 404)
        return was_completed(writer, op);
    return tarn_status_new(TARN_STORE_UNAVAILABLE, "completing '%s' was answered %d", writer->key,
                           request.status);
}

static struct tarn_status *finish_upload(struct writer *writer, struct tarn_op *op)
{
    size_t step = part_size(writer);
    TARN_TRY(send_parts(writer, op, writer->bytes.size, step));
    return complete(writer, op);
}

static void abort_upload(struct writer *writer)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    op.deadline_mono_ms = tarn_clock_mono_ms() + ABORT_WAIT_MS;
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "DELETE", .key = writer->key};
    tarn_s3__add_query(&request, "uploadId", tarn_slice_str(writer->upload));
    tarn_log_status(&op, TARN_WARN, "store.abort_failed", tarn_s3__ask(writer->s3, &op, &request));
}

/* OUTCOME_UNKNOWN is put_if_absent's word alone. */
static struct tarn_status *known(struct tarn_status *consumed)
{
    if (tarn_status_reason(consumed) != TARN_OUTCOME_UNKNOWN)
        return consumed;
    struct tarn_status *plain =
        tarn_status_new(TARN_STORE_UNAVAILABLE, "%s", tarn_status_message(consumed));
    tarn_status_free(consumed);
    return plain;
}

static struct tarn_status *finish_whole(struct writer *writer, struct tarn_op *op)
{
    bool created;
    TARN_TRY(known(
        tarn_s3__create(writer->s3, op, writer->key, tarn_buf_slice(&writer->bytes), &created)));
    return created ? TARN_OK : exists(writer);
}

struct tarn_status *tarn_s3__finish(void *self, struct tarn_op *op)
{
    struct writer *writer = self;
    bool small =
        writer->upload == NULL && writer->bytes.size <= (size_t)writer->s3->settings.part_size;
    struct tarn_status *status = small ? finish_whole(writer, op) : finish_upload(writer, op);
    if (status != TARN_OK && writer->upload != NULL)
        abort_upload(writer);
    writer_free(writer);
    return status;
}

void tarn_s3__abort(void *self)
{
    struct writer *writer = self;
    if (writer->upload != NULL)
        abort_upload(writer);
    writer_free(writer);
}

/* --- several --- */

struct created {
    const char *key;
    char id[TARN_UUID_SIZE];
};

static void make_creation(const struct tarn_s3 *s3, const struct tarn_new_object *object,
                          struct created *created, struct tarn_s3_request *out)
{
    created->key = object->key;
    tarn_uuid_random(created->id);
    *out = (struct tarn_s3_request){.method = "PUT", .key = object->key, .body = object->body};
    if (!s3->settings.single_writer)
        tarn_s3__add_header(out, "if-none-match", "*");
    tarn_s3__add_header(out, TARN_S3_ID_HEADER, created->id);
}

static struct tarn_status *check_creation(struct tarn_s3 *s3, struct tarn_op *op,
                                          const struct created *created,
                                          const struct tarn_s3_request *request)
{
    bool ours = false;
    if (request->status / 100 == 2)
        return TARN_OK;
    if (request->status != 412)
        return tarn_status_new(TARN_STORE_UNAVAILABLE, "PUT of '%s' was answered %d", created->key,
                               request->status);
    if (request->ambiguous)
        TARN_TRY(tarn_s3__whose(s3, op, created->key, created->id, &ours));
    return ours ? TARN_OK
                : tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", created->key);
}

static struct tarn_status *put_some(struct tarn_s3 *s3, struct tarn_op *op,
                                    const struct tarn_new_object *objects, size_t count)
{
    struct tarn_s3_request *requests = tarn_arena_calloc(op->arena, count, sizeof *requests);
    struct created *created = tarn_arena_calloc(op->arena, count, sizeof *created);
    for (size_t i = 0; i < count; i++)
        make_creation(s3, &objects[i], &created[i], &requests[i]);
    struct tarn_status *status = tarn_s3__ask_every(s3, op, requests, count);
    for (size_t i = 0; i < count; i++) {
        if (status == TARN_OK)
            status = check_creation(s3, op, &created[i], &requests[i]);
        tarn_s3__request_drop(&requests[i]);
    }
    return known(status);
}

struct tarn_status *tarn_s3__put_many(void *self, struct tarn_op *op,
                                      const struct tarn_new_object *objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_s3__key_check(self, objects[i].key));
    for (size_t first = 0; first < count;) {
        size_t n = 0, bytes = 0;
        for (; first + n < count && bytes <= MANY_BYTES_MAX; n++)
            bytes += objects[first + n].body.size;
        TARN_TRY(put_some(self, op, &objects[first], n));
        first += n;
    }
    return TARN_OK;
}
