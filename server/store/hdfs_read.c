/*
 * hdfs_read - objects and folders as they are: whole, by parts, as lists.
 */
#include "store/hdfs.h"

#include <stdio.h>

#define WHOLE_SIZE_MAX ((int64_t)256 << 10) /* smaller objects are read when they are opened */
#define PAGE_SIZE_MAX ((size_t)32 << 20)    /* of its JSON */

static struct tarn_status *ask_open(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *path,
                                    int64_t offset, size_t size, struct tarn_buf *out)
{
    char query[64];
    snprintf(query, sizeof query, "&offset=%" PRId64 "&length=%zu", offset, size);
    struct tarn_hdfs_request request = {.method = "GET",
                                        .op = "OPEN",
                                        .path = path,
                                        .query = query,
                                        .two_steps = true,
                                        .answer_max = size};
    return tarn_hdfs__ask(hdfs, op, &request, out, NULL);
}

/* One byte more than is allowed is asked for, and shows what is too large. */
struct tarn_status *tarn_hdfs__get(void *self, struct tarn_op *op, const char *key, size_t size_max,
                                   struct tarn_buf *out)
{
    size_t before = out->size;
    struct tarn_status *status =
        ask_open(self, op, tarn_hdfs__path(self, op, key), 0, size_max + 1, out);
    bool too_large = tarn_status_reason(status) == TARN_TOO_LARGE ||
                     (status == TARN_OK && out->size - before > size_max);
    if (!too_large)
        return status;
    tarn_status_free(status);
    return tarn_status_new(TARN_TOO_LARGE, "object '%s' has more than the %zu bytes that are read",
                           key, size_max);
}

/* ---- readers ---- */

struct reader {
    struct tarn_hdfs *hdfs;
    char *key;  /* owned */
    char *path; /* owned; by inode where the store tells it */
    int64_t size;
    struct tarn_buf bytes; /* all of a small one */
};

static struct tarn_status *read_part(const struct reader *reader, struct tarn_op *op,
                                     int64_t offset, size_t size, struct tarn_buf *out)
{
    struct tarn_status *status = ask_open(reader->hdfs, op, reader->path, offset, size, out);
    if (status != TARN_OK)
        return tarn_status_wrap(status, "read '%s'", reader->key);
    if (out->size == size)
        return TARN_OK;
    return tarn_status_new(
        TARN_IO_ERROR, "read '%s': %zu bytes came of %zu at %" PRId64 ": the object has changed",
        reader->key, out->size, size, offset);
}

struct tarn_status *tarn_hdfs__open_reader(void *self, struct tarn_op *op, const char *key,
                                           void **out, int64_t *size)
{
    bool found;
    struct tarn_hdfs_status status;
    const char *path = tarn_hdfs__path(self, op, key);
    TARN_TRY(tarn_hdfs__find(self, op, path, &found, &status));
    if (!found || status.is_folder)
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no object '%s'", key);
    struct reader *reader = tarn_calloc(1, sizeof *reader);
    reader->hdfs = self;
    reader->key = tarn_strdup(key);
    reader->path = status.file_id == 0 ? tarn_strdup(path)
                                       : tarn_format("/.reserved/.inodes/%" PRId64, status.file_id);
    reader->size = *size = status.size;
    if (reader->size <= WHOLE_SIZE_MAX) {
        struct tarn_status *failed = read_part(reader, op, 0, (size_t)reader->size, &reader->bytes);
        if (failed != TARN_OK) {
            tarn_hdfs__close_reader(reader);
            return failed;
        }
    }
    *out = reader;
    return TARN_OK;
}

struct tarn_status *tarn_hdfs__read_at(void *self, struct tarn_op *op, int64_t offset, size_t size,
                                       uint8_t *out, size_t *got)
{
    const struct reader *reader = self;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    if (reader->size <= WHOLE_SIZE_MAX) { /* the offset lies within, as does all of it (store.c) */
        memcpy(out, reader->bytes.data + offset, size);
    } else {
        TARN_TRY(read_part(reader, op, offset, size, &bytes));
        memcpy(out, bytes.data, size);
    }
    *got = size;
    return TARN_OK;
}

void tarn_hdfs__close_reader(void *self)
{
    struct reader *reader = self;
    tarn_buf_drop(&reader->bytes);
    free(reader->key);
    free(reader->path);
    free(reader);
}

/* ---- lists ---- */

/* What is asked for as a folder and is a file is listed as itself, without a name. */
static struct tarn_status *visit(struct tarn_walk *walk, const char *prefix,
                                 const struct tarn_hdfs_status *entry)
{
    const char *key = tarn_store__walk_key(walk, prefix, entry->name);
    struct tarn_status *odd = tarn_store__key_check(key, false);
    tarn_status_free(odd);
    if (entry->name.size == 0 || odd != TARN_OK)
        return TARN_OK;
    struct tarn_object object = {.key = tarn_slice_str(key),
                                 .size = entry->size,
                                 .mtime_ms = entry->mtime_ms,
                                 .is_folder = entry->is_folder};
    return tarn_store__walk_add(walk, prefix, &object);
}

/* *after: the last name of the page, where the next one begins; empty: there is none. */
static struct tarn_status *walk_page(struct tarn_walk *walk, const char *prefix,
                                     struct tarn_buf *after)
{
    struct tarn_hdfs_page page;
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf query = {0};
    if (after->size > 0) {
        tarn_buf_add_str(&query, "&startAfter=");
        tarn_url_encode(&query, tarn_buf_slice(after), "");
    }
    struct tarn_hdfs_request request = {.method = "GET",
                                        .op = "LISTSTATUS_BATCH",
                                        .path = tarn_hdfs__path(walk->driver, walk->op, prefix),
                                        .query = tarn_buf_cstr(&query),
                                        .answer_max = PAGE_SIZE_MAX};
    struct tarn_status *status = tarn_hdfs__ask(walk->driver, walk->op, &request, &body, NULL);
    enum tarn_reason reason = tarn_status_reason(status);
    if (reason == TARN_OBJECT_NOT_FOUND || reason == TARN_PATH_INVALID)
        tarn_status_drop(&status); /* nothing there, or a file on the way */
    if (status != TARN_OK || reason != TARN_NO_REASON) {
        after->size = 0;
        return status;
    }
    TARN_TRY(tarn_hdfs__decode_page(tarn_buf_slice(&body), walk->op->arena, &page));
    for (size_t i = 0; i < page.count; i++)
        TARN_TRY(visit(walk, prefix, &page.entries[i]));
    struct tarn_slice last = {0};
    if (page.remaining > 0 && page.count > 0)
        last = page.entries[page.count - 1].name;
    if (page.remaining > 0 && (last.size == 0 || tarn_slice_equal(last, tarn_buf_slice(after))))
        return tarn_status_new(TARN_STORE_UNAVAILABLE,
                               "the list of '%s' does not get on: %" PRId64 " are left", prefix,
                               page.remaining);
    tarn_buf_clear(after);
    tarn_buf_add_slice(after, last);
    return TARN_OK;
}

static struct tarn_status *list_folder(struct tarn_walk *walk, const char *prefix)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf after = {0};
    do
        TARN_TRY(walk_page(walk, prefix, &after));
    while (after.size > 0);
    return TARN_OK;
}

struct tarn_status *tarn_hdfs__list(void *self, struct tarn_op *op, const char *prefix,
                                    bool recursive, struct tarn_object **out, size_t *count)
{
    TARN_OWN(tarn_store__walk_fini)
    struct tarn_walk walk = {
        .driver = self, .op = op, .recursive = recursive, .list_folder = list_folder};
    return tarn_store__walk_list(&walk, prefix, out, count);
}

/* HDFS refuses to delete one that still holds something. */
static struct tarn_status *remove_if_empty(struct tarn_walk *walk, const char *folder)
{
    return tarn_hdfs__delete(walk->driver, walk->op,
                             tarn_hdfs__path(walk->driver, walk->op, folder));
}

struct tarn_status *tarn_hdfs__prune(void *self, struct tarn_op *op, const char *key)
{
    bool found;
    struct tarn_hdfs_status status;
    TARN_OWN(tarn_store__walk_fini)
    struct tarn_walk walk = {.driver = self, .op = op, .list_folder = list_folder};
    TARN_TRY(tarn_hdfs__find(self, op, tarn_hdfs__path(self, op, key), &found, &status));
    if (!found || !status.is_folder)
        return TARN_OK;
    return tarn_store__walk_prune(&walk, key, remove_if_empty);
}
