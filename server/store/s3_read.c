/*
 * s3_read - readers. Opening one asks for the object's end, where columnar files keep their directory, and so
 * learns size and ETag by the same request. Every read says which object it means (If-Match): one that was
 * replaced meanwhile is an error, never a mix.
 *
 * Large reads go to the store as they come. Small ones (of narrow columns, which lie side by side) are
 * cut out of windows of WINDOW_SIZE, the last WINDOWS of which are kept; an object of up to WHOLE_SIZE_MAX is
 * one window.
 */
#include "store/s3.h"

#define TAIL_SIZE ((int64_t)64 << 10)
#define WINDOW_SIZE ((int64_t)1 << 20)
#define WHOLE_SIZE_MAX ((int64_t)2 << 20)
#define DIRECT_SIZE ((size_t)256 << 10)
#define WINDOWS 4

struct window {
    struct tarn_buf bytes;
    int64_t offset;
    uint64_t used; /* when last, by the reader's count */
};

struct reader {
    struct tarn_s3 *s3; /* borrowed: the store outlives it */
    char *key, *etag;
    int64_t size;
    struct window tail;   /* immutable */
    pthread_mutex_t lock; /* guards all below */
    uint64_t use_count;
    struct window windows[WINDOWS];
};

/* --- open --- */

static struct reader *reader_new(struct tarn_s3 *s3, const char *key, struct tarn_slice etag,
                                 int64_t size)
{
    struct reader *reader = tarn_calloc(1, sizeof *reader);
    reader->s3 = s3;
    reader->key = tarn_strdup(key);
    reader->etag = tarn_slice_dup(etag);
    reader->size = size;
    reader->tail.offset = size;
    pthread_mutex_init(&reader->lock, NULL);
    return reader;
}

static struct tarn_status *not_found(const char *key)
{
    return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no object '%s'", key);
}

/* The bytes that `range` asked for, from *first on. */
static struct tarn_status *take_range(struct tarn_s3_request *request, int64_t *first,
                                      int64_t *size)
{
    int64_t last;
    if (request->status == 200) {
        *first = 0;
        *size = (int64_t)request->answer.size;
        return TARN_OK;
    }
    if (request->status == 206 &&
        tarn_s3__content_range(tarn_fetch_header(&request->http, "content-range"), first, &last,
                               size) &&
        last - *first + 1 == (int64_t)request->answer.size)
        return TARN_OK;
    return tarn_status_new(TARN_STORE_UNAVAILABLE, "GET of '%s' was answered %d with %zu bytes",
                           request->key, request->status, request->answer.size);
}

static struct reader *reader_of(struct tarn_s3 *s3, struct tarn_s3_request *request, int64_t first,
                                int64_t size)
{
    struct reader *reader =
        reader_new(s3, request->key, tarn_fetch_header(&request->http, "etag"), size);
    if (first + (int64_t)request->answer.size == size) {
        reader->tail.offset = first;
        reader->tail.bytes = request->answer;
        request->answer = (struct tarn_buf){0};
    }
    return reader;
}

/* Where the end can't be had: the object is empty, or the store takes no ranges counted from there. */
static struct tarn_status *open_by_head(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                        struct reader **out)
{
    int64_t first, size;
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "GET", .key = key};
    tarn_s3__add_header(&request, "range",
                        tarn_arena_printf(op->arena, "bytes=0-%" PRId64, TAIL_SIZE - 1));
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    if (request.status == 404)
        return not_found(key);
    if (request.status == 416) {
        *out = reader_new(s3, key, tarn_slice_str(""), 0);
        return TARN_OK;
    }
    TARN_TRY(take_range(&request, &first, &size));
    *out = reader_of(s3, &request, first, size);
    return TARN_OK;
}

/* All the store can do is to give the whole object. */
static struct tarn_status *open_without_ranges(struct tarn_s3 *s3, struct tarn_op *op,
                                               const char *key, struct reader **out)
{
    int64_t first, size;
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {
        .method = "GET", .key = key, .answer_max = TARN_STORE_GET_MAX};
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    if (request.status == 404)
        return not_found(key);
    TARN_TRY(take_range(&request, &first, &size));
    *out = reader_of(s3, &request, first, size);
    return TARN_OK;
}

static struct tarn_status *open_by_tail(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                        struct reader **out)
{
    int64_t first, size;
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "GET", .key = key};
    tarn_s3__add_header(&request, "range",
                        tarn_arena_printf(op->arena, "bytes=-%" PRId64, TAIL_SIZE));
    struct tarn_status *status = tarn_s3__ask(s3, op, &request);
    if (tarn_status_reason(status) == TARN_TOO_LARGE) { /* the range was passed over */
        tarn_status_free(status);
        return open_without_ranges(s3, op, key, out);
    }
    TARN_TRY(status);
    if (request.status == 404)
        return not_found(key);
    if (request.status == 416)
        return open_by_head(s3, op, key, out);
    TARN_TRY(take_range(&request, &first, &size));
    if (first + (int64_t)request.answer.size != size)
        return open_by_head(s3, op, key, out);
    *out = reader_of(s3, &request, first, size);
    return TARN_OK;
}

struct tarn_status *tarn_s3__open_reader(void *self, struct tarn_op *op, const char *key,
                                         void **out, int64_t *size)
{
    struct reader *reader = NULL;
    TARN_TRY(tarn_s3__key_check(self, key));
    TARN_TRY(open_by_tail(self, op, key, &reader));
    *size = reader->size;
    *out = reader;
    return TARN_OK;
}

void tarn_s3__reader_close(void *self)
{
    struct reader *reader = self;
    for (int i = 0; i < WINDOWS; i++)
        tarn_buf_drop(&reader->windows[i].bytes);
    tarn_buf_drop(&reader->tail.bytes);
    pthread_mutex_destroy(&reader->lock);
    free(reader->key);
    free(reader->etag);
    free(reader);
}

/* --- reads --- */

static bool holds(const struct window *window, int64_t offset, size_t size)
{
    return offset >= window->offset &&
           offset + (int64_t)size <= window->offset + (int64_t)window->bytes.size;
}

static void copy_out(const struct window *window, int64_t offset, size_t size, uint8_t *out)
{
    memcpy(out, window->bytes.data + (offset - window->offset), size);
}

static struct tarn_status *fill(struct reader *reader, struct tarn_op *op, int64_t offset,
                                size_t size, struct window *window)
{
    bool whole = reader->size <= WHOLE_SIZE_MAX;
    int64_t start = whole ? 0 : offset;
    int64_t end = whole ? reader->size
                        : TARN_MIN(offset + TARN_MAX(WINDOW_SIZE, (int64_t)size), reader->size);
    tarn_buf_clear(&window->bytes);
    tarn_buf_reserve(&window->bytes, (size_t)(end - start));
    TARN_TRY(tarn_s3__read_range(reader->s3, op, reader->key, tarn_slice_str(reader->etag), start,
                                 (size_t)(end - start), window->bytes.data));
    window->bytes.size = (size_t)(end - start);
    window->offset = start;
    return TARN_OK;
}

/* Under the lock: the window that holds it, or the one used longest ago, filled. */
static struct tarn_status *find_window(struct reader *reader, struct tarn_op *op, int64_t offset,
                                       size_t size, struct window **out)
{
    struct window *oldest = &reader->windows[0];
    *out = NULL;
    for (int i = 0; i < WINDOWS && *out == NULL; i++) {
        if (holds(&reader->windows[i], offset, size))
            *out = &reader->windows[i];
        else if (reader->windows[i].used < oldest->used)
            oldest = &reader->windows[i];
    }
    if (*out == NULL) {
        TARN_TRY(fill(reader, op, offset, size, oldest));
        *out = oldest;
    }
    (*out)->used = ++reader->use_count;
    return TARN_OK;
}

struct tarn_status *tarn_s3__read_at(void *self, struct tarn_op *op, int64_t offset, size_t size,
                                     uint8_t *out, size_t *got)
{
    struct reader *reader = self;
    struct window *window = NULL;
    struct tarn_status *status = TARN_OK;
    *got = 0;
    if (offset >= reader->size)
        return TARN_OK;
    size = (size_t)TARN_MIN((uint64_t)size, (uint64_t)(reader->size - offset));
    if (holds(&reader->tail, offset, size)) {
        copy_out(&reader->tail, offset, size, out);
    } else if (size >= DIRECT_SIZE) {
        status = tarn_s3__read_range(reader->s3, op, reader->key, tarn_slice_str(reader->etag),
                                     offset, size, out);
    } else {
        pthread_mutex_lock(&reader->lock);
        status = find_window(reader, op, offset, size, &window);
        if (status == TARN_OK)
            copy_out(window, offset, size, out);
        pthread_mutex_unlock(&reader->lock);
    }
    if (status == TARN_OK)
        *got = size;
    return status;
}
