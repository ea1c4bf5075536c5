/*
 * hdfs_read - objects and folders as they are: whole, by parts, as lists.
 */
#include "store/hdfs.h"

#include <stdio.h>

#define OBJECTS_MAX ((size_t)8 << 20)       /* of one list; beyond it TOO_LARGE */
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

struct walk {
    struct tarn_hdfs *hdfs;
    struct tarn_op *op;
    bool recursive;
    struct tarn_object *objects; /* owned; keys in the op's arena. With the folders */
    size_t count;
    size_t capacity;
};

static void walk_fini(struct walk *walk)
{
    free(walk->objects);
}

/* What is asked for as a folder and is a file is listed as itself, without a name. */
static struct tarn_status *visit(struct walk *walk, const char *prefix,
                                 const struct tarn_hdfs_status *entry)
{
    char *key = prefix[0] == '\0' ? tarn_arena_str(walk->op->arena, entry->name)
                                  : tarn_arena_printf(walk->op->arena, "%s/%.*s", prefix,
                                                      TARN_SLICE_ARG(entry->name));
    struct tarn_status *odd = tarn_store__key_check(key, false);
    tarn_status_free(odd);
    if (entry->name.size == 0 || odd != TARN_OK)
        return TARN_OK;
    if (walk->count >= OBJECTS_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "folder '%s' holds more than %zu objects", prefix,
                               OBJECTS_MAX);
    TARN_GROW(walk->objects, walk->count, walk->capacity);
    walk->objects[walk->count++] = (struct tarn_object){
        .key = tarn_slice_str(key),
        .size = entry->is_folder ? 0 : entry->size,
        .mtime_ms = entry->is_folder ? 0 : entry->mtime_ms,
        .is_folder = entry->is_folder,
    };
    return TARN_OK;
}

/* *after: the last name of the page, where the next one begins; empty: there is none. */
static struct tarn_status *walk_page(struct walk *walk, const char *prefix, struct tarn_buf *after)
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
                                        .path = tarn_hdfs__path(walk->hdfs, walk->op, prefix),
                                        .query = tarn_buf_cstr(&query),
                                        .answer_max = PAGE_SIZE_MAX};
    struct tarn_status *status = tarn_hdfs__ask(walk->hdfs, walk->op, &request, &body, NULL);
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

static struct tarn_status *walk_folder(struct walk *walk, const char *prefix)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf after = {0};
    do
        TARN_TRY(walk_page(walk, prefix, &after));
    while (after.size > 0);
    return TARN_OK;
}

/* Folders found on the way stand in the list themselves, behind the place that is looked at. */
static struct tarn_status *walk_from(struct walk *walk, const char *prefix)
{
    TARN_TRY(walk_folder(walk, prefix));
    for (size_t i = 0; walk->recursive && i < walk->count; i++) {
        if (walk->objects[i].is_folder) /* keys of the walk end with a NUL */
            TARN_TRY(walk_folder(walk, (const char *)walk->objects[i].key.data));
    }
    return TARN_OK;
}

struct tarn_status *tarn_hdfs__list(void *self, struct tarn_op *op, const char *prefix,
                                    bool recursive, struct tarn_object **out, size_t *count)
{
    size_t n = 0;
    TARN_OWN(walk_fini) struct walk walk = {.hdfs = self, .op = op, .recursive = recursive};
    TARN_TRY(walk_from(&walk, prefix));
    struct tarn_object *objects = tarn_arena_calloc(op->arena, walk.count + 1, sizeof *objects);
    for (size_t i = 0; i < walk.count; i++) {
        if (!recursive || !walk.objects[i].is_folder)
            objects[n++] = walk.objects[i];
    }
    tarn_store__sort(objects, n);
    *out = objects;
    *count = n;
    return TARN_OK;
}

/* From below upwards; one that still holds something refuses to go. */
struct tarn_status *tarn_hdfs__prune(void *self, struct tarn_op *op, const char *key)
{
    bool found;
    struct tarn_hdfs_status status;
    TARN_OWN(walk_fini) struct walk walk = {.hdfs = self, .op = op, .recursive = true};
    const char *path = tarn_hdfs__path(self, op, key);
    TARN_TRY(tarn_hdfs__find(self, op, path, &found, &status));
    if (!found || !status.is_folder)
        return TARN_OK;
    TARN_TRY(walk_from(&walk, key));
    tarn_store__sort(walk.objects, walk.count);
    for (size_t i = walk.count; i > 0; i--) { /* what lies below a folder sorts after it */
        if (walk.objects[i - 1].is_folder)
            TARN_TRY(tarn_hdfs__delete(
                self, op, tarn_hdfs__path(self, op, (const char *)walk.objects[i - 1].key.data)));
    }
    return key[0] == '\0' ? TARN_OK : tarn_hdfs__delete(self, op, path);
}
