/*
 * memory - a store in this process' memory, for tests: the semantics of the others without a disk.
 *
 * Folders are what the keys make of them: one exists as long as something lies in it.
 */
#include <pthread.h>

#include "store/internal.h"

struct body { /* immutable once published; shared by the object and its readers */
    atomic_int ref_count;
    size_t size;
    uint8_t *data;
};

struct entry {
    char *key; /* owned */
    struct body *body;
    int64_t mtime_ms;
};

struct memory {
    pthread_mutex_t mutex; /* guards all below */
    struct entry *entries; /* in order of key */
    size_t count;
    size_t capacity;
};

struct writer {
    struct memory *memory;
    char *key;
    struct tarn_buf bytes;
};

static struct body *body_new(struct tarn_slice bytes)
{
    struct body *body = tarn_calloc(1, sizeof *body);
    atomic_init(&body->ref_count, 1);
    body->size = bytes.size;
    body->data = tarn_alloc(bytes.size + 1);
    if (bytes.size > 0)
        memcpy(body->data, bytes.data, bytes.size);
    return body;
}

static void body_unref(struct body *body)
{
    if (body == NULL || atomic_fetch_sub(&body->ref_count, 1) > 1)
        return;
    free(body->data);
    free(body);
}

/* The place of `key`, or where it would be. Under the mutex, like all below that take entries. */
static size_t place_of(const struct memory *m, const char *key, bool *found)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = strcmp(m->entries[middle].key, key);
        if (c == 0) {
            *found = true;
            return middle;
        }
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = false;
    return low;
}

/* Whether `key` lies below folder `prefix`; "" is the root. */
static bool is_below(const char *key, const char *prefix)
{
    size_t size = strlen(prefix);
    return size == 0 || (strncmp(key, prefix, size) == 0 && key[size] == '/');
}

/* The first entry below `prefix` is not always next to it ("a.b" sorts before "a/b"). */
static size_t first_below(const struct memory *m, const char *prefix)
{
    bool found;
    if (prefix[0] == '\0')
        return 0;
    TARN_OWN(tarn_free_drop) char *start = tarn_format("%s/", prefix);
    return place_of(m, start, &found);
}

static bool is_folder(const struct memory *m, const char *key)
{
    size_t i = first_below(m, key);
    return i < m->count && is_below(m->entries[i].key, key);
}

/* An object can't stand where a folder is, nor have objects below it: a file system refuses both,
 * and a table that lived on one store must be able to live on the other. */
static struct tarn_status *place_check(const struct memory *m, const char *key)
{
    if (is_folder(m, key))
        return tarn_status_new(TARN_PATH_INVALID, "'%s' is a folder", key);
    TARN_OWN(tarn_free_drop) char *parent = tarn_strdup(key);
    for (char *slash; (slash = strrchr(parent, '/')) != NULL;) {
        bool found;
        *slash = '\0';
        place_of(m, parent, &found);
        if (found)
            return tarn_status_new(TARN_PATH_INVALID, "'%s' is an object, so '%s' can't be one",
                                   parent, key);
    }
    return TARN_OK;
}

static void insert_at(struct memory *m, size_t at, char *key, struct body *body)
{
    TARN_GROW(m->entries, m->count, m->capacity);
    memmove(&m->entries[at + 1], &m->entries[at], (m->count - at) * sizeof *m->entries);
    m->entries[at] = (struct entry){key, body, tarn_clock_wall_ms()};
    m->count++;
}

static struct tarn_status *publish(struct memory *m, const char *key, struct tarn_slice bytes,
                                   bool replace, bool *created)
{
    bool found;
    struct tarn_status *status = TARN_OK;
    pthread_mutex_lock(&m->mutex);
    size_t at = place_of(m, key, &found);
    *created = false;
    if (!found) {
        status = place_check(m, key);
        if (status == TARN_OK) {
            insert_at(m, at, tarn_strdup(key), body_new(bytes));
            *created = true;
        }
    } else if (replace) {
        body_unref(m->entries[at].body);
        m->entries[at].body = body_new(bytes);
        m->entries[at].mtime_ms = tarn_clock_wall_ms();
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static struct tarn_status *memory_put(void *self, struct tarn_op *op, const char *key,
                                      struct tarn_slice body)
{
    bool created;
    return publish(self, key, body, true, &created);
}

static struct tarn_status *memory_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                                struct tarn_slice body, bool *created)
{
    return publish(self, key, body, false, created);
}

/* The body of an object, a reference the caller ends; NULL where there is none. */
static struct body *find_body(struct memory *m, const char *key, int64_t *mtime_ms)
{
    bool found;
    struct body *body = NULL;
    pthread_mutex_lock(&m->mutex);
    size_t at = place_of(m, key, &found);
    if (found) {
        body = m->entries[at].body;
        atomic_fetch_add(&body->ref_count, 1);
        *mtime_ms = m->entries[at].mtime_ms;
    }
    pthread_mutex_unlock(&m->mutex);
    return body;
}

static struct tarn_status *memory_get(void *self, struct tarn_op *op, const char *key,
                                      size_t size_max, struct tarn_buf *out)
{
    int64_t mtime_ms;
    struct tarn_status *status = TARN_OK;
    struct body *body = find_body(self, key, &mtime_ms);
    if (body == NULL)
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no object '%s'", key);
    if (body->size > size_max)
        status = tarn_status_new(TARN_TOO_LARGE, "object '%s' has %zu bytes, at most %zu are read",
                                 key, body->size, size_max);
    else
        tarn_buf_add(out, body->data, body->size);
    body_unref(body);
    return status;
}

static struct tarn_status *memory_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                       struct tarn_object *out)
{
    int64_t mtime_ms = 0;
    struct body *body = find_body(self, key, &mtime_ms);
    *found = body != NULL;
    if (body != NULL) {
        out->size = (int64_t)body->size;
        out->mtime_ms = mtime_ms;
    }
    body_unref(body);
    return TARN_OK;
}

static struct tarn_status *memory_remove(void *self, struct tarn_op *op, const char *key)
{
    bool found;
    struct memory *m = self;
    pthread_mutex_lock(&m->mutex);
    size_t at = place_of(m, key, &found);
    if (found) {
        free(m->entries[at].key);
        body_unref(m->entries[at].body);
        m->count--;
        memmove(&m->entries[at], &m->entries[at + 1], (m->count - at) * sizeof *m->entries);
    }
    pthread_mutex_unlock(&m->mutex);
    return TARN_OK;
}

/* What a list shows of one entry: itself, or the folder right under `prefix` that it lies in. */
static struct tarn_object seen_from(const struct entry *entry, size_t prefix_size, bool recursive)
{
    const char *rest = entry->key + (prefix_size == 0 ? 0 : prefix_size + 1);
    const char *slash = recursive ? NULL : strchr(rest, '/');
    if (slash != NULL)
        return (struct tarn_object){tarn_slice_of(entry->key, (size_t)(slash - entry->key)), 0, 0,
                                    true};
    return (struct tarn_object){tarn_slice_str(entry->key), (int64_t)entry->body->size,
                                entry->mtime_ms, false};
}

static struct tarn_status *memory_list(void *self, struct tarn_op *op, const char *prefix,
                                       bool recursive, struct tarn_object **out, size_t *count)
{
    struct memory *m = self;
    size_t prefix_size = strlen(prefix);
    pthread_mutex_lock(&m->mutex);
    size_t first = first_below(m, prefix), end = first, n = 0;
    while (end < m->count && is_below(m->entries[end].key, prefix))
        end++;
    struct tarn_object *objects = tarn_arena_calloc(op->arena, end - first + 1, sizeof *objects);
    for (size_t i = first; i < end; i++) {
        struct tarn_object object = seen_from(&m->entries[i], prefix_size, recursive);
        /* What lies in one folder lies together, so a folder's twin is the one before. */
        if (object.is_folder && n > 0 && objects[n - 1].is_folder &&
            tarn_slice_equal(objects[n - 1].key, object.key))
            continue;
        object.key = tarn_arena_copy(op->arena, object.key);
        objects[n++] = object;
    }
    pthread_mutex_unlock(&m->mutex);
    tarn_store__sort(objects, n); /* folder "a" sorts before "a.b", its entries "a/…" after */
    *out = objects;
    *count = n;
    return TARN_OK;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static struct tarn_status *move_entries(struct memory *m, const char *from, const char *to)
{
    bool found;
    if (!is_folder(m, from))
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no folder '%s'", from);
    place_of(m, to, &found);
    if (found || is_folder(m, to))
        return tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", to);
    TARN_TRY(place_check(m, to));
    for (size_t i = first_below(m, from); i < m->count && is_below(m->entries[i].key, from); i++) {
        char *moved = tarn_format("%s%s", to, m->entries[i].key + strlen(from));
        free(m->entries[i].key);
        m->entries[i].key = moved;
    }
    qsort(m->entries, m->count, sizeof *m->entries, compare_entries);
    return TARN_OK;
}

static struct tarn_status *memory_move_folder(void *self, struct tarn_op *op, const char *from,
                                              const char *to)
{
    struct memory *m = self;
    pthread_mutex_lock(&m->mutex);
    struct tarn_status *status = move_entries(m, from, to);
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static struct tarn_status *memory_prune(void *self, struct tarn_op *op, const char *key)
{
    return TARN_OK;
}

static struct tarn_status *memory_open(void *self, struct tarn_op *op, const char *key,
                                       void **reader, int64_t *size)
{
    int64_t mtime_ms;
    struct body *body = find_body(self, key, &mtime_ms);
    if (body == NULL)
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no object '%s'", key);
    *size = (int64_t)body->size;
    *reader = body;
    return TARN_OK;
}

static struct tarn_status *memory_read_at(void *reader, struct tarn_op *op, int64_t offset,
                                          size_t size, uint8_t *out, size_t *got)
{
    const struct body *body = reader;
    size_t start = TARN_MIN((size_t)offset, body->size);
    *got = TARN_MIN(size, body->size - start);
    memcpy(out, body->data + start, *got);
    return TARN_OK;
}

static void memory_reader_close(void *reader)
{
    body_unref(reader);
}

static struct tarn_status *memory_create(void *self, struct tarn_op *op, const char *key,
                                         void **out)
{
    struct memory *m = self;
    pthread_mutex_lock(&m->mutex);
    struct tarn_status *status = place_check(m, key);
    pthread_mutex_unlock(&m->mutex);
    TARN_TRY(status);
    struct writer *writer = tarn_calloc(1, sizeof *writer);
    writer->memory = m;
    writer->key = tarn_strdup(key);
    *out = writer;
    return TARN_OK;
}

static struct tarn_status *memory_append(void *self, struct tarn_op *op, struct tarn_slice bytes)
{
    struct writer *writer = self;
    tarn_buf_add(&writer->bytes, bytes.data, bytes.size);
    return TARN_OK;
}

static void memory_abort(void *self)
{
    struct writer *writer = self;
    tarn_buf_drop(&writer->bytes);
    free(writer->key);
    free(writer);
}

static struct tarn_status *memory_finish(void *self, struct tarn_op *op)
{
    bool created;
    struct writer *writer = self;
    struct tarn_status *status =
        publish(writer->memory, writer->key, tarn_buf_slice(&writer->bytes), false, &created);
    if (status == TARN_OK && !created)
        status = tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", writer->key);
    memory_abort(writer);
    return status;
}

static void memory_close(void *self)
{
    struct memory *m = self;
    for (size_t i = 0; i < m->count; i++) {
        free(m->entries[i].key);
        body_unref(m->entries[i].body);
    }
    free(m->entries);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

static const struct tarn_store_ops memory_ops = {
    .scheme = "memory",
    .get = memory_get,
    .stat = memory_stat,
    .put = memory_put,
    .put_if_absent = memory_put_if_absent,
    .remove = memory_remove,
    .list = memory_list,
    .move_folder = memory_move_folder,
    .prune = memory_prune,
    .open = memory_open,
    .read_at = memory_read_at,
    .reader_close = memory_reader_close,
    .create = memory_create,
    .append = memory_append,
    .finish = memory_finish,
    .abort = memory_abort,
    .close = memory_close,
};

struct tarn_store *tarn_store__memory_new(void)
{
    struct memory *m = tarn_calloc(1, sizeof *m);
    pthread_mutex_init(&m->mutex, NULL);
    return tarn_store_new(&memory_ops, m);
}
