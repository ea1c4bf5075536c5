#include "store/store.h"

#include <ctype.h>

#include "exec/exec.h"
#include "store/internal.h"

#include <time.h>

/* The path of one system call must stay below PATH_MAX, with a temporary name at its end. */
#define KEY_SIZE_MAX ((size_t)3800)
#define SEGMENT_SIZE_MAX ((size_t)255)

struct tarn_store_reader {
    struct tarn_store *store; /* shared */
    void *driver;
    int64_t size;
};

struct tarn_store_writer {
    struct tarn_store *store; /* shared */
    void *driver;
};

#define NAP_MS 20 /* so soon a wait learns that nobody wants its end any more */

void tarn_store__wait_ms(const struct tarn_op *op, int64_t ms)
{
    tarn_exec_wait_begin();
    while (ms > 0 && !tarn_op_is_cancelled(op) && tarn_op_wait_ms(op, 1) > 0) {
        int64_t nap_ms = TARN_MIN(ms, (int64_t)NAP_MS);
        struct timespec nap = {0, nap_ms * 1000000};
        nanosleep(&nap, NULL);
        ms -= nap_ms;
    }
    tarn_exec_wait_end();
}

bool tarn_store_is_away(const struct tarn_status *s)
{
    return tarn_status_reason(s) == TARN_STORE_UNAVAILABLE;
}

/* ---- keys ---- */

static struct tarn_status *segment_check(const char *key, const char *segment, size_t size)
{
    if (size == 0)
        return tarn_status_new(TARN_PATH_INVALID,
                               "key '%s' has an empty segment (a slash too many)", key);
    if ((size == 1 && segment[0] == '.') || (size == 2 && segment[0] == '.' && segment[1] == '.'))
        return tarn_status_new(TARN_PATH_INVALID, "key '%s' has the segment '%.*s'", key, (int)size,
                               segment);
    if (size > SEGMENT_SIZE_MAX)
        return tarn_status_new(
            TARN_PATH_INVALID,
            "a segment of key '%.64s...' has %zu bytes, at most %zu are possible", key, size,
            SEGMENT_SIZE_MAX);
    return TARN_OK;
}

struct tarn_status *tarn_store__key_check(const char *key, bool may_be_root)
{
    size_t size = strnlen(key, KEY_SIZE_MAX + 1);
    if (size == 0)
        return may_be_root ? TARN_OK : tarn_status_new(TARN_PATH_INVALID, "the key is empty");
    if (size > KEY_SIZE_MAX)
        return tarn_status_new(TARN_PATH_INVALID,
                               "key '%.64s...' is longer than the %zu bytes that are possible", key,
                               KEY_SIZE_MAX);
    if (!tarn_utf8_valid(tarn_slice_of(key, size)))
        return tarn_status_new(TARN_PATH_INVALID, "the key is not UTF-8");
    for (const char *segment = key;;) {
        const char *end = strchrnul(segment, '/');
        TARN_TRY(segment_check(key, segment, (size_t)(end - segment)));
        if (*end == '\0')
            return TARN_OK;
        segment = end + 1;
    }
}

/* What every call asks first: is the key one, and does the caller still want an answer? */
static struct tarn_status *admit(struct tarn_op *op, const char *key, bool may_be_root)
{
    tarn_assert_may_wait();
    TARN_TRY(tarn_store__key_check(key, may_be_root));
    return tarn_op_check(op);
}

static int compare_objects(const void *a, const void *b)
{
    return tarn_slice_compare(((const struct tarn_object *)a)->key,
                              ((const struct tarn_object *)b)->key);
}

void tarn_store__sort(struct tarn_object *objects, size_t count)
{
    if (count > 1)
        qsort(objects, count, sizeof *objects, compare_objects);
}

/* ---- life ---- */

struct tarn_store *tarn_store_new(const struct tarn_store_ops *ops, void *self)
{
    struct tarn_store *store = tarn_calloc(1, sizeof *store);
    store->ops = ops;
    store->self = self;
    store->uri = tarn_format("%s:", ops->scheme);
    atomic_init(&store->ref_count, 1);
    return store;
}

struct tarn_store *tarn_store_ref(struct tarn_store *store)
{
    int before = atomic_fetch_add_explicit(&store->ref_count, 1, memory_order_relaxed);
    tarn_assert(before > 0);
    return store;
}

void tarn_store_unref(struct tarn_store *store)
{
    if (store == NULL)
        return;
    int before = atomic_fetch_sub_explicit(&store->ref_count, 1, memory_order_acq_rel);
    tarn_assert(before > 0);
    if (before > 1)
        return;
    store->ops->close(store->self);
    free(store->uri);
    free(store);
}

void tarn_store_drop(struct tarn_store **store)
{
    tarn_store_unref(*store);
    *store = NULL;
}

const char *tarn_store_uri(const struct tarn_store *store)
{
    return store->uri;
}

bool tarn_store_key_of(const struct tarn_store *store, struct tarn_slice uri,
                       struct tarn_slice *key)
{
    struct tarn_slice root = tarn_slice_str(store->uri);
    if (!tarn_slice_starts_with(uri, root) || uri.size <= root.size + 1 ||
        uri.data[root.size] != '/')
        return false;
    *key = tarn_slice_of(uri.data + root.size + 1, uri.size - root.size - 1);
    return true;
}

void tarn_store__set_uri(struct tarn_store *store, const char *uri)
{
    size_t size = strlen(uri);
    while (size > 0 && uri[size - 1] == '/')
        size--;
    free(store->uri);
    store->uri = tarn_slice_dup(tarn_slice_of(uri, size));
}

/* "file:///a/b" and Hadoop's "file:/a/b"; taken literally, nothing is percent-decoded. *size: without
 * slashes at the end. */
static struct tarn_status *local_path(const char *uri, const char **folder, size_t *uri_size)
{
    size_t size = strlen(uri);
    while (size > 0 && uri[size - 1] == '/')
        size--;
    const char *path = uri + strlen("file:");
    if (strncmp(path, "//", 2) == 0)
        path += 2;
    if (path[0] != '/' || (size_t)(path - uri) >= size)
        return tarn_status_new(TARN_PATH_INVALID,
                               "'%s' does not name a folder: expected file:///absolute/path", uri);
    *folder = path;
    *uri_size = size;
    return TARN_OK;
}

static struct tarn_status *local_check(const struct tarn_conf *conf, const char *uri)
{
    const char *path;
    size_t size;
    return local_path(uri, &path, &size);
}

static struct tarn_status *local_open(const struct tarn_conf *conf, const char *uri,
                                      struct tarn_store **out)
{
    const char *path;
    size_t size;
    TARN_TRY(local_path(uri, &path, &size));
    TARN_OWN(tarn_free_drop) char *folder =
        tarn_slice_dup(tarn_slice_of(path, size - (size_t)(path - uri)));
    return tarn_store__local_open(folder, out);
}

static struct tarn_status *memory_check(const struct tarn_conf *conf, const char *uri)
{
    if (strcmp(uri, "memory:") == 0)
        return TARN_OK;
    return tarn_status_new(TARN_PATH_INVALID, "'%s' is no store: expected memory:", uri);
}

static struct tarn_status *memory_open(const struct tarn_conf *conf, const char *uri,
                                       struct tarn_store **out)
{
    *out = tarn_store__memory_new();
    return TARN_OK;
}

/* One line a driver: what its URIs begin with, what can be said of one and its settings alone, opening it. */
static const struct driver {
    const char *scheme;
    struct tarn_status *(*check)(const struct tarn_conf *conf, const char *uri);
    struct tarn_status *(*open)(const struct tarn_conf *conf, const char *uri,
                                struct tarn_store **out);
} drivers[] = {
    {"file:", local_check, local_open},
    {"memory:", memory_check, memory_open},
    {"s3:", tarn_store__s3_check, tarn_store__s3_open},
    {"s3a:", tarn_store__s3_check, tarn_store__s3_open},
    {"hdfs:", tarn_store__hdfs_check, tarn_store__hdfs_open},
};

static struct tarn_status *find_driver(const char *uri, const struct driver **out)
{
    for (size_t i = 0; i < TARN_COUNT_OF(drivers); i++) {
        if (strncmp(uri, drivers[i].scheme, strlen(drivers[i].scheme)) != 0)
            continue;
        *out = &drivers[i];
        if (drivers[i].open != NULL)
            return TARN_OK;
        return tarn_status_new(TARN_UNIMPLEMENTED,
                               "no driver for '%s' yet: use file:///absolute/path", uri);
    }
    return tarn_status_new(TARN_PATH_INVALID,
                           "'%s' is no store: expected file:///absolute/path, s3://bucket/path, "
                           "hdfs://host:port/path or memory:",
                           uri);
}

/* ---- settings ---- */

static const struct tarn_conf *settings; /* set before there are threads; then never again */

static bool is_of_a_driver(const char *name)
{
    return strncmp(name, "s3.", 3) == 0 || strncmp(name, "hdfs.", 5) == 0;
}

void tarn_store_configure(const struct tarn_conf *conf)
{
    settings = conf;
}

static const char *as_variable(struct tarn_arena *arena, enum tarn_conf_key key)
{
    char *variable = tarn_arena_printf(arena, "TARN_%s=%s", tarn_conf_key_name(key),
                                       tarn_conf_text(settings, key));
    for (char *p = variable; *p != '='; p++)
        *p = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
    return variable;
}

const char *const *tarn_store_environment(struct tarn_arena *arena)
{
    size_t count = 0;
    const char **list = tarn_arena_calloc(arena, TARN_CONF_KEY_COUNT + 1, sizeof *list);
    for (int key = 0; key < TARN_CONF_KEY_COUNT && settings != NULL; key++) {
        if (is_of_a_driver(tarn_conf_key_name((enum tarn_conf_key)key)))
            list[count++] = as_variable(arena, (enum tarn_conf_key)key);
    }
    return list;
}

static void defaults_drop(struct tarn_conf **conf)
{
    if (*conf != settings)
        tarn_conf_free(*conf);
}

struct tarn_status *tarn_store_check_uri(const char *uri)
{
    const struct driver *driver;
    TARN_OWN(defaults_drop) struct tarn_conf *conf = (struct tarn_conf *)settings;
    TARN_TRY(find_driver(uri, &driver));
    if (conf == NULL)
        conf = tarn_conf_new();
    return driver->check(conf, uri);
}

static struct tarn_status *open_driver(const char *uri, struct tarn_store **out)
{
    const struct driver *driver;
    TARN_OWN(defaults_drop) struct tarn_conf *conf = (struct tarn_conf *)settings;
    TARN_TRY(find_driver(uri, &driver));
    if (conf == NULL)
        conf = tarn_conf_new();
    TARN_TRY(driver->check(conf, uri));
    TARN_TRY(driver->open(conf, uri, out));
    tarn_store__set_uri(*out, uri);
    return TARN_OK;
}

struct tarn_status *tarn_store_open(const char *uri, struct tarn_store **out)
{
    TARN_OWN(tarn_store_drop) struct tarn_store *store = NULL;
    TARN_TRY(open_driver(uri, &store));
    const char *faults = getenv("TARN_STORE_FAULTS");
    if (faults != NULL && faults[0] != '\0') {
        TARN_OWN(tarn_store_drop) struct tarn_store *faulty = tarn_store_faulty_new(store);
        TARN_TRY(tarn_store__faulty_parse(faulty, faults));
        *out = tarn_move(faulty);
        return TARN_OK;
    }
    *out = tarn_move(store);
    return TARN_OK;
}

/* ---- objects ---- */

struct tarn_status *tarn_store_get(struct tarn_store *s, struct tarn_op *op, const char *key,
                                   struct tarn_buf *out)
{
    TARN_TRY(admit(op, key, false));
    size_t size_before = out->size;
    struct tarn_status *status = s->ops->get(s->self, op, key, TARN_STORE_GET_MAX, out);
    if (status != TARN_OK)
        out->size = size_before; /* nothing half read is left behind */
    return status;
}

struct tarn_status *tarn_store_find(struct tarn_store *s, struct tarn_op *op, const char *key,
                                    bool *found, struct tarn_buf *out)
{
    struct tarn_status *status = tarn_store_get(s, op, key, out);
    *found = status == TARN_OK;
    if (tarn_status_reason(status) != TARN_OBJECT_NOT_FOUND)
        return status;
    tarn_status_free(status);
    return TARN_OK;
}

struct tarn_status *tarn_store_stat(struct tarn_store *s, struct tarn_op *op, const char *key,
                                    bool *found, struct tarn_object *out)
{
    struct tarn_object object = {0};
    TARN_TRY(admit(op, key, false));
    TARN_TRY(s->ops->stat(s->self, op, key, found, &object));
    object.key = tarn_slice_str(key);
    if (*found && out != NULL)
        *out = object;
    return TARN_OK;
}

struct tarn_status *tarn_store_put(struct tarn_store *s, struct tarn_op *op, const char *key,
                                   struct tarn_slice body)
{
    TARN_TRY(admit(op, key, false));
    return s->ops->put(s->self, op, key, body);
}

struct tarn_status *tarn_store_put_hint(struct tarn_store *s, struct tarn_op *op, const char *key,
                                        struct tarn_slice body)
{
    TARN_TRY(admit(op, key, false));
    return s->ops->put_hint != NULL ? s->ops->put_hint(s->self, op, key, body)
                                    : s->ops->put(s->self, op, key, body);
}

static struct tarn_status *put_new(struct tarn_store *s, struct tarn_op *op,
                                   const struct tarn_new_object *object)
{
    struct tarn_store_writer *writer;
    TARN_TRY(tarn_store_writer_open(s, op, object->key, &writer));
    struct tarn_status *status = tarn_store_writer_append(writer, op, object->body);
    if (status != TARN_OK) {
        tarn_store_writer_abort(writer);
        return status;
    }
    return tarn_store_writer_finish(writer, op);
}

struct tarn_status *tarn_store_put_many(struct tarn_store *s, struct tarn_op *op,
                                        const struct tarn_new_object *objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TARN_TRY(admit(op, objects[i].key, false));
    if (count > 0 && objects[count - 1].foreseen && s->ops->unforesee == NULL)
        count--;
    if (s->ops->put_many != NULL)
        return s->ops->put_many(s->self, op, objects, count);
    for (size_t i = 0; i < count; i++)
        TARN_TRY(put_new(s, op, &objects[i]));
    return TARN_OK;
}

void tarn_store_unforesee(struct tarn_store *s, const char *key)
{
    if (s->ops->unforesee != NULL)
        s->ops->unforesee(s->self, key);
}

bool tarn_store_is_remote(const struct tarn_store *s)
{
    return s->ops->remote;
}

bool tarn_store_is_flat(const struct tarn_store *s)
{
    return s->ops->flat;
}

struct tarn_status *tarn_store_probe(struct tarn_store *s, struct tarn_op *op)
{
    tarn_assert_may_wait();
    return s->ops->probe == NULL ? TARN_OK : s->ops->probe(s->self, op);
}

struct tarn_status *tarn_store_finish_moves(struct tarn_store *s, struct tarn_op *op,
                                            bool happened_only)
{
    tarn_assert_may_wait();
    return s->ops->finish_moves == NULL ? TARN_OK
                                        : s->ops->finish_moves(s->self, op, happened_only);
}

struct tarn_status *tarn_store_put_if_absent(struct tarn_store *s, struct tarn_op *op,
                                             const char *key, struct tarn_slice body, bool *created)
{
    TARN_TRY(admit(op, key, false));
    return s->ops->put_if_absent(s->self, op, key, body, created);
}

struct tarn_status *tarn_store_remove(struct tarn_store *s, struct tarn_op *op, const char *key)
{
    TARN_TRY(admit(op, key, false));
    return s->ops->remove(s->self, op, key);
}

struct tarn_status *tarn_store_remove_many(struct tarn_store *s, struct tarn_op *op,
                                           const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TARN_TRY(admit(op, keys[i], false));
    if (s->ops->remove_many != NULL)
        return s->ops->remove_many(s->self, op, keys, count);
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_store_remove(s, op, keys[i]));
    return TARN_OK;
}

struct tarn_status *tarn_store_list(struct tarn_store *s, struct tarn_op *op, const char *prefix,
                                    bool recursive, struct tarn_object **out, size_t *count)
{
    TARN_TRY(admit(op, prefix, true));
    return s->ops->list(s->self, op, prefix, recursive, out, count);
}

struct tarn_status *tarn_store_move_folder(struct tarn_store *s, struct tarn_op *op,
                                           const char *from, const char *to)
{
    TARN_TRY(admit(op, from, false));
    TARN_TRY(tarn_store__key_check(to, false));
    size_t from_size = strlen(from);
    if (strncmp(from, to, from_size) == 0 && (to[from_size] == '/' || to[from_size] == '\0'))
        return tarn_status_new(TARN_PATH_INVALID, "folder '%s' can't be moved into itself, to '%s'",
                               from, to);
    return s->ops->move_folder(s->self, op, from, to);
}

struct tarn_status *tarn_store_prune(struct tarn_store *s, struct tarn_op *op, const char *key)
{
    TARN_TRY(admit(op, key, true));
    return s->ops->prune(s->self, op, key);
}

/* ---- readers ---- */

struct tarn_status *tarn_store_reader_open(struct tarn_store *s, struct tarn_op *op,
                                           const char *key, struct tarn_store_reader **out)
{
    void *driver = NULL;
    int64_t size = 0;
    TARN_TRY(admit(op, key, false));
    TARN_TRY(s->ops->open(s->self, op, key, &driver, &size));
    struct tarn_store_reader *reader = tarn_calloc(1, sizeof *reader);
    reader->store = tarn_store_ref(s);
    reader->driver = driver;
    reader->size = size;
    *out = reader;
    return TARN_OK;
}

int64_t tarn_store_reader_size(const struct tarn_store_reader *reader)
{
    return reader->size;
}

struct tarn_status *tarn_store_reader_read_at(struct tarn_store_reader *reader, struct tarn_op *op,
                                              int64_t offset, size_t size, uint8_t *out,
                                              size_t *got)
{
    TARN_TRY(tarn_op_check(op));
    /* The offset often comes out of the file itself. */
    if (offset < 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "read at the negative offset %" PRId64,
                               offset);
    *got = 0;
    if (offset >= reader->size || size == 0)
        return TARN_OK;
    uint64_t rest = (uint64_t)(reader->size - offset);
    if (size > rest)
        size = (size_t)rest;
    return reader->store->ops->read_at(reader->driver, op, offset, size, out, got);
}

void tarn_store_reader_close(struct tarn_store_reader *reader)
{
    if (reader == NULL)
        return;
    reader->store->ops->reader_close(reader->driver);
    tarn_store_unref(reader->store);
    free(reader);
}

/* ---- writers ---- */

struct tarn_status *tarn_store_writer_open(struct tarn_store *s, struct tarn_op *op,
                                           const char *key, struct tarn_store_writer **out)
{
    void *driver = NULL;
    TARN_TRY(admit(op, key, false));
    TARN_TRY(s->ops->create(s->self, op, key, &driver));
    struct tarn_store_writer *writer = tarn_calloc(1, sizeof *writer);
    writer->store = tarn_store_ref(s);
    writer->driver = driver;
    *out = writer;
    return TARN_OK;
}

struct tarn_status *tarn_store_writer_append(struct tarn_store_writer *writer, struct tarn_op *op,
                                             struct tarn_slice bytes)
{
    TARN_TRY(tarn_op_check(op));
    return writer->store->ops->append(writer->driver, op, bytes);
}

static void writer_free(struct tarn_store_writer *writer)
{
    tarn_store_unref(writer->store);
    free(writer);
}

struct tarn_status *tarn_store_writer_finish(struct tarn_store_writer *consumed, struct tarn_op *op)
{
    struct tarn_status *status = tarn_op_check(op);
    if (status != TARN_OK)
        consumed->store->ops->abort(consumed->driver);
    else
        status = consumed->store->ops->finish(consumed->driver, op);
    writer_free(consumed);
    return status;
}

void tarn_store_writer_abort(struct tarn_store_writer *consumed)
{
    if (consumed == NULL)
        return;
    consumed->store->ops->abort(consumed->driver);
    writer_free(consumed);
}
