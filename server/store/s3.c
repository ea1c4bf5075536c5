#include "store/s3.h"

#include "exec/exec.h"

#define PIECE_SIZE                                                                                 \
    ((size_t)8 << 20) /* of a whole object: the first in one request, the rest side by side */
#define PIECES_AT_ONCE ((size_t)8)
#define LIST_MAX ((size_t)20000000) /* objects in one list; more is TOO_LARGE */
#define PAGE_SIZE_MAX ((size_t)16 << 20)

/* --- one object --- */

static struct tarn_status *not_found(const char *key)
{
    return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no object '%s'", key);
}

/* A status that isn't one this request can have. */
static struct tarn_status *unexpected(const struct tarn_s3_request *request)
{
    return tarn_status_new(TARN_STORE_UNAVAILABLE, "%s of '%s' was answered %d", request->method,
                           request->key, request->status);
}

static char *range_text(struct tarn_op *op, int64_t offset, size_t size)
{
    return tarn_arena_printf(op->arena, "bytes=%" PRId64 "-%" PRId64, offset,
                             offset + (int64_t)size - 1);
}

static struct tarn_slice header_of(const struct tarn_s3_request *request, const char *name)
{
    return tarn_fetch_header(&request->http, name);
}

/* Part [offset, offset + body) of an object whose whole size is *size; body and header agree. */
static struct tarn_status *check_part(const struct tarn_s3_request *request, int64_t offset,
                                      int64_t *size)
{
    int64_t first, last;
    if (!tarn_s3__content_range(header_of(request, "content-range"), &first, &last, size) ||
        first != offset || last - first + 1 != (int64_t)request->answer.size)
        return tarn_status_new(
            TARN_STORE_UNAVAILABLE,
            "GET of '%s' from byte %" PRId64 " was answered with %zu bytes as '%.*s'", request->key,
            offset, request->answer.size, TARN_SLICE_ARG(header_of(request, "content-range")));
    return TARN_OK;
}

static struct tarn_status *get_plain(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                     size_t size_max, struct tarn_buf *out)
{
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "GET", .key = key, .answer_max = size_max};
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    if (request.status == 404)
        return not_found(key);
    if (request.status != 200)
        return unexpected(&request);
    tarn_buf_add_slice(out, tarn_buf_slice(&request.answer));
    return TARN_OK;
}

static struct tarn_status *get_rest(struct tarn_s3 *s3, struct tarn_op *op,
                                    const struct tarn_s3_request *first, int64_t size,
                                    size_t size_max, struct tarn_buf *out)
{
    size_t have = first->answer.size;
    if ((uint64_t)size > size_max)
        return tarn_status_new(TARN_TOO_LARGE,
                               "object '%s' has %" PRId64 " bytes, at most %zu are read",
                               first->key, size, size_max);
    if ((uint64_t)size == have)
        return TARN_OK;
    size_t rest = (size_t)size - have;
    tarn_buf_reserve(out, rest);
    TARN_TRY(tarn_s3__read_range(s3, op, first->key, header_of(first, "etag"), (int64_t)have, rest,
                                 out->data + out->size));
    out->size += rest;
    return TARN_OK;
}

static struct tarn_status *s3_get(void *self, struct tarn_op *op, const char *key, size_t size_max,
                                  struct tarn_buf *out)
{
    int64_t size;
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "GET", .key = key, .answer_max = size_max};
    TARN_TRY(tarn_s3__key_check(self, key));
    tarn_s3__add_header(&request, "range", range_text(op, 0, PIECE_SIZE));
    TARN_TRY(tarn_s3__ask(self, op, &request));
    switch (request.status) {
    case 206:
        TARN_TRY(check_part(&request, 0, &size));
        tarn_buf_add_slice(out, tarn_buf_slice(&request.answer));
        return get_rest(self, op, &request, size, size_max, out);
    case 200: /* ranges are not obligatory */
        tarn_buf_add_slice(out, tarn_buf_slice(&request.answer));
        return TARN_OK;
    case 416: /* an empty object has no first byte */
        return get_plain(self, op, key, size_max, out);
    case 404:
        return not_found(key);
    default:
        return unexpected(&request);
    }
}

static struct tarn_status *check_piece(const struct tarn_s3_request *request,
                                       struct tarn_slice etag, int64_t offset, size_t size)
{
    int64_t whole;
    if (request->status == 404)
        return not_found(request->key);
    struct tarn_slice now = header_of(request, "etag");
    if (request->status == 412 ||
        (request->status == 206 && etag.size > 0 && !tarn_slice_equal(etag, now)))
        return tarn_status_new(TARN_IO_ERROR, "object '%s' was replaced while it was read",
                               request->key);
    if (request->status != 206)
        return unexpected(request);
    TARN_TRY(check_part(request, offset, &whole));
    return request->answer.size == size ? TARN_OK : unexpected(request);
}

static struct tarn_status *read_pieces(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                       struct tarn_slice etag, int64_t offset, size_t size,
                                       uint8_t *out)
{
    struct tarn_s3_request requests[PIECES_AT_ONCE] = {0};
    size_t piece = TARN_MIN(size, TARN_MAX(size / PIECES_AT_ONCE + 1, PIECE_SIZE / 2)), count = 0;
    for (size_t at = 0; at < size; at += piece, count++) {
        struct tarn_s3_request *request = &requests[count];
        size_t n = TARN_MIN(piece, size - at);
        *request = (struct tarn_s3_request){.method = "GET", .key = key, .answer_max = n};
        tarn_s3__add_header(request, "range", range_text(op, offset + (int64_t)at, n));
        if (etag.size > 0)
            tarn_s3__add_header(request, "if-match", tarn_arena_str(op->arena, etag));
    }
    struct tarn_status *status = tarn_s3__ask_every(s3, op, requests, count);
    for (size_t i = 0; i < count; i++) {
        size_t at = i * piece, n = TARN_MIN(piece, size - at);
        if (status == TARN_OK)
            status = check_piece(&requests[i], etag, offset + (int64_t)at, n);
        if (status == TARN_OK)
            memcpy(out + at, requests[i].answer.data, n);
        tarn_s3__request_drop(&requests[i]);
    }
    return status;
}

struct tarn_status *tarn_s3__read_range(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                        struct tarn_slice etag, int64_t offset, size_t size,
                                        uint8_t *out)
{
    for (size_t at = 0; at < size;) {
        size_t n = TARN_MIN(size - at, PIECE_SIZE / 2 * PIECES_AT_ONCE);
        /* A stream's op lives long: what its reads leave behind goes with each of them. */
        TARN_OWN(tarn_op_fini) struct tarn_op child;
        tarn_op_init_child(&child, op);
        TARN_TRY(read_pieces(s3, &child, key, etag, offset + (int64_t)at, n, out + at));
        at += n;
    }
    return TARN_OK;
}

static void take_meta(const struct tarn_s3_request *request, int64_t size, struct tarn_s3_meta *out)
{
    *out = (struct tarn_s3_meta){
        .size = size,
        .etag = header_of(request, "etag"),
        .id = header_of(request, TARN_S3_ID_HEADER),
    };
    if (!tarn_s3__http_date(header_of(request, "last-modified"), &out->mtime_ms))
        out->mtime_ms = 0;
}

/* A GET of one byte: the answer to a HEAD can't say whether the object or the whole bucket is missing. */
struct tarn_status *tarn_s3__look(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                  bool *found, struct tarn_s3_meta *out)
{
    int64_t size = 0, first, last;
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "GET", .key = key};
    *found = false;
    TARN_TRY(tarn_s3__key_check(s3, key));
    tarn_s3__add_header(&request, "range", range_text(op, 0, 1));
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    if (request.status == 404)
        return TARN_OK;
    if (request.status == 416) { /* empty, but that answer lacks the rest */
        tarn_s3__request_drop(&request);
        request = (struct tarn_s3_request){.method = "GET", .key = key};
        TARN_TRY(tarn_s3__ask(s3, op, &request));
        if (request.status == 404)
            return TARN_OK;
    }
    if (request.status != 200 && request.status != 206)
        return unexpected(&request);
    if (request.status == 200)
        size = (int64_t)request.answer.size;
    else if (!tarn_s3__content_range(header_of(&request, "content-range"), &first, &last, &size))
        return unexpected(&request);
    *found = true;
    take_meta(&request, size, out);
    return TARN_OK;
}

static struct tarn_status *s3_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                   struct tarn_object *out)
{
    struct tarn_s3_meta meta = {0};
    TARN_TRY(tarn_s3__look(self, op, key, found, &meta));
    out->size = meta.size;
    out->mtime_ms = meta.mtime_ms;
    return TARN_OK;
}

static struct tarn_status *s3_put(void *self, struct tarn_op *op, const char *key,
                                  struct tarn_slice body)
{
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "PUT", .key = key, .body = body};
    TARN_TRY(tarn_s3__key_check(self, key));
    TARN_TRY(tarn_s3__ask(self, op, &request));
    return request.status / 100 == 2 ? TARN_OK : unexpected(&request);
}

/* --- creation --- */

static struct tarn_status *unknown(struct tarn_status *consumed, const char *key)
{
    struct tarn_status *status =
        tarn_status_new(TARN_OUTCOME_UNKNOWN, "whether '%s' was created isn't known: %s", key,
                        tarn_status_message(consumed));
    tarn_status_free(consumed);
    return status;
}

struct tarn_status *tarn_s3__whose(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                   const char *id, bool *ours)
{
    bool found;
    struct tarn_s3_meta meta;
    struct tarn_status *status = tarn_s3__look(s3, op, key, &found, &meta);
    if (status != TARN_OK)
        return unknown(status, key);
    if (!found)
        return tarn_status_new(TARN_OUTCOME_UNKNOWN,
                               "'%s' was there, and is gone; whose it was isn't known", key);
    *ours = tarn_slice_is(meta.id, id);
    return TARN_OK;
}

static struct tarn_status *put_created(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                       struct tarn_slice body, const char *id, bool *created)
{
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "PUT", .key = key, .body = body};
    if (!s3->settings.single_writer)
        tarn_s3__add_header(&request, "if-none-match", "*");
    tarn_s3__add_header(&request, TARN_S3_ID_HEADER, id);
    struct tarn_status *status = tarn_s3__ask(s3, op, &request);
    if (status != TARN_OK)
        return request.ambiguous ? unknown(status, key) : status;
    if (request.status == 412)
        return request.ambiguous ? tarn_s3__whose(s3, op, key, id, created) : TARN_OK;
    *created = request.status / 100 == 2;
    return *created ? TARN_OK : unexpected(&request);
}

struct tarn_status *tarn_s3__create(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                    struct tarn_slice body, bool *created)
{
    char id[TARN_UUID_SIZE];
    *created = false;
    TARN_TRY(tarn_s3__key_check(s3, key));
    if (s3->settings.single_writer) { /* looks before it puts; nobody else does */
        bool found;
        struct tarn_s3_meta meta;
        TARN_TRY(tarn_s3__look(s3, op, key, &found, &meta));
        if (found)
            return TARN_OK;
    }
    tarn_uuid_random(id);
    return put_created(s3, op, key, body, id, created);
}

static struct tarn_status *s3_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                            struct tarn_slice body, bool *created)
{
    return tarn_s3__create(self, op, key, body, created);
}

static struct tarn_status *remove_that(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                       struct tarn_slice etag)
{
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "DELETE", .key = key};
    if (etag.size > 0)
        tarn_s3__add_header(&request, "if-match", tarn_arena_str(op->arena, etag));
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    return request.status / 100 == 2 || request.status == 404 || request.status == 412
               ? TARN_OK
               : unexpected(&request);
}

/* A removal whose answer was lost may be carried out much later, when another object has the name: a snapshot
 * that was rolled back, say, and the acknowledged one after it. So it says which object it means. A store that
 * doesn't know the condition passes over it, or says so once. */
static struct tarn_status *s3_remove(void *self, struct tarn_op *op, const char *key)
{
    bool found;
    struct tarn_s3 *s3 = self;
    struct tarn_s3_meta meta;
    TARN_TRY(tarn_s3__look(s3, op, key, &found, &meta));
    if (!found)
        return TARN_OK;
    if (atomic_load(&s3->plain_removals))
        return remove_that(s3, op, key, tarn_slice_str(NULL));
    struct tarn_status *status = remove_that(s3, op, key, meta.etag);
    if (tarn_status_reason(status) != TARN_UNIMPLEMENTED)
        return status;
    tarn_status_free(status);
    atomic_store(&s3->plain_removals, true);
    return remove_that(s3, op, key, tarn_slice_str(NULL));
}

#define REMOVALS_AT_ONCE ((size_t)256)

static struct tarn_status *remove_some(struct tarn_s3 *s3, struct tarn_op *op,
                                       const char *const *keys, size_t count)
{
    struct tarn_s3_request *requests = tarn_arena_calloc(op->arena, count, sizeof *requests);
    for (size_t i = 0; i < count; i++)
        requests[i] = (struct tarn_s3_request){.method = "DELETE", .key = keys[i]};
    struct tarn_status *status = tarn_s3__ask_every(s3, op, requests, count);
    for (size_t i = 0; i < count; i++) {
        if (status == TARN_OK && requests[i].status / 100 != 2 && requests[i].status != 404)
            status = unexpected(&requests[i]);
        tarn_s3__request_drop(&requests[i]);
    }
    return status;
}

/* Of names that are not used twice (files of a table that goes, of one that moved): unconditional. */
struct tarn_status *tarn_s3__remove_many(void *self, struct tarn_op *op, const char *const *keys,
                                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_s3__key_check(self, keys[i]));
    for (size_t i = 0; i < count; i += REMOVALS_AT_ONCE) {
        TARN_OWN(tarn_op_fini) struct tarn_op child;
        tarn_op_init_child(&child, op);
        TARN_TRY(remove_some(self, &child, &keys[i], TARN_MIN(REMOVALS_AT_ONCE, count - i)));
    }
    return TARN_OK;
}

/* --- lists --- */

struct listing {
    struct tarn_s3_page page;
    size_t before; /* objects, when the page began: a half one is forgotten */
};

static struct tarn_status *decode_page(void *arg, struct tarn_op *op, struct tarn_slice body)
{
    struct listing *listing = arg;
    listing->page.count = listing->before;
    return tarn_s3__decode_page(body, op->arena, &listing->page);
}

static struct tarn_status *next_page(struct tarn_s3 *s3, struct tarn_op *op, const char *prefix,
                                     bool recursive, struct listing *listing)
{
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {
        .method = "GET", .answer_max = PAGE_SIZE_MAX, .decode = decode_page, .decode_arg = listing};
    struct tarn_slice token = listing->page.token;
    tarn_s3__add_query(&request, "list-type", tarn_slice_str("2"));
    tarn_s3__add_query(&request, "encoding-type", tarn_slice_str("url"));
    tarn_s3__add_query(&request, "prefix", tarn_slice_str(prefix));
    if (!recursive)
        tarn_s3__add_query(&request, "delimiter", tarn_slice_str("/"));
    if (token.size > 0)
        tarn_s3__add_query(&request, "continuation-token", token);
    listing->before = listing->page.count;
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    if (request.status != 200)
        return tarn_status_new(TARN_STORE_UNAVAILABLE, "the list of '%s' was answered %d", prefix,
                               request.status);
    if (listing->page.more && tarn_slice_equal(listing->page.token, token))
        return tarn_status_new(TARN_STORE_UNAVAILABLE, "the list of '%s' goes in a circle", prefix);
    if (listing->page.count > LIST_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "there are more than %zu objects below '%s'",
                               LIST_MAX, prefix);
    return TARN_OK;
}

/* Relative to the root, a folder without its slash; false: no key of ours. */
static bool adapt(struct tarn_op *op, size_t root_size, struct tarn_object *object)
{
    struct tarn_slice key = object->key;
    if (object->is_folder && key.data[key.size - 1] == '/')
        key.size--;
    if (key.size <= root_size || memchr(key.data, '\0', key.size) != NULL)
        return false;
    object->key =
        tarn_arena_copy(op->arena, tarn_slice_of(key.data + root_size, key.size - root_size));
    struct tarn_status *status = tarn_store__key_check((const char *)object->key.data, false);
    bool good = status == TARN_OK;
    tarn_status_free(status);
    return good;
}

struct tarn_status *tarn_s3__list(struct tarn_s3 *s3, struct tarn_op *op, const char *prefix,
                                  bool recursive, struct tarn_object **out, size_t *count)
{
    struct listing listing = {0};
    const char *full = tarn_s3__full_key(s3, op, prefix);
    size_t root_size = strlen(s3->settings.prefix), n = 0;
    if (full[0] != '\0')
        full = tarn_arena_printf(op->arena, "%s/", full);
    TARN_TRY(tarn_s3__key_check(s3, prefix));
    do
        TARN_TRY(next_page(s3, op, full, recursive, &listing));
    while (listing.page.more);
    for (size_t i = 0; i < listing.page.count; i++) {
        struct tarn_object object = listing.page.objects[i];
        if (tarn_slice_starts_with(object.key, tarn_slice_str(full)) &&
            adapt(op, root_size + (root_size > 0), &object))
            listing.page.objects[n++] = object;
    }
    tarn_store__sort(listing.page.objects, n);
    *out = listing.page.objects;
    *count = n;
    return TARN_OK;
}

static struct tarn_status *s3_list(void *self, struct tarn_op *op, const char *prefix,
                                   bool recursive, struct tarn_object **out, size_t *count)
{
    return tarn_s3__list(self, op, prefix, recursive, out, count);
}

/* There are no folders but what keys make of them. */
static struct tarn_status *s3_prune(void *self, struct tarn_op *op, const char *key)
{
    return TARN_OK;
}

/* --- life --- */

static void s3_close(void *self)
{
    struct tarn_s3 *s3 = self;
    tarn_s3__credentials_free(s3->credentials);
    tarn_fetch_free(s3->fetch);
    tarn_s3__settings_fini(&s3->settings);
    pthread_mutex_destroy(&s3->lock);
    free(s3);
}

static const struct tarn_store_ops s3_ops = {
    .scheme = "s3",
    .remote = true,
    .flat = true,
    .get = s3_get,
    .stat = s3_stat,
    .put = s3_put,
    .put_many = tarn_s3__put_many,
    .put_if_absent = s3_put_if_absent,
    .remove = s3_remove,
    .remove_many = tarn_s3__remove_many,
    .list = s3_list,
    .move_folder = tarn_s3__move_folder,
    .finish_moves = tarn_s3__finish_moves,
    .probe = tarn_s3__probe,
    .prune = s3_prune,
    .open = tarn_s3__open_reader,
    .read_at = tarn_s3__read_at,
    .reader_close = tarn_s3__reader_close,
    .create = tarn_s3__open_writer,
    .append = tarn_s3__append,
    .finish = tarn_s3__finish,
    .abort = tarn_s3__abort,
    .close = s3_close,
};

struct tarn_status *tarn_store__s3_open(const struct tarn_conf *conf, const char *uri,
                                        struct tarn_store **out)
{
    struct tarn_s3_settings settings;
    struct tarn_fetch *fetch;
    TARN_TRY(tarn_s3__settings_read(conf, uri, &settings));
    struct tarn_fetch_options options = {
        .ca_file = settings.ca_file[0] == '\0' ? NULL : settings.ca_file,
        .connect_timeout_ms = settings.connect_timeout_ms,
        .idle_timeout_ms = settings.idle_timeout_ms,
        .connection_max = settings.connections,
    };
    struct tarn_status *status = tarn_fetch_new(&options, &fetch);
    if (status != TARN_OK) {
        tarn_s3__settings_fini(&settings);
        return status;
    }
    struct tarn_s3 *s3 = tarn_calloc(1, sizeof *s3);
    s3->settings = settings;
    s3->fetch = fetch;
    s3->tokens = TARN_S3_TOKENS_MAX;
    pthread_mutex_init(&s3->lock, NULL);
    s3->credentials = tarn_s3__credentials_new(&s3->settings, fetch);
    *out = tarn_store_new(&s3_ops, s3);
    return TARN_OK;
}

struct tarn_status *tarn_store__s3_check(const struct tarn_conf *conf, const char *uri)
{
    struct tarn_s3_settings settings;
    TARN_TRY(tarn_s3__settings_read(conf, uri, &settings));
    tarn_s3__settings_fini(&settings);
    return TARN_OK;
}
