/*
 * faulty - a store that disturbs chosen calls of the one it wraps.
 *
 * Tests add rules by tarn_store_faulty_add. Processes under test take them from the environment:
 *
 *   TARN_STORE_FAULTS="call:key_part:skip:hits:fault[:delay_ms];…"
 *
 *   call      get stat put put_if_absent remove list move_folder prune open read_at create append
 *             finish, or * for any
 *   key_part  what the key must contain (no ':' or ';'); empty: any key
 *   skip      matching calls that go through first
 *   hits      how many are disturbed then; 0: all
 *   fault     fail_before fail_after unknown delay tear full empty_list kill_before kill_after
 *   delay_ms  for delay
 *
 * "*::17:1:kill_after" ends the process after its 18th call of the store, and
 * "put_if_absent:snapshot/:0:1:kill_before" before its first snapshot. A crash test counts the
 * calls of an undisturbed run and then stops at each in turn. Calls are counted as they begin.
 *
 * Rules are asked in the order of adding; the first that strikes ends the asking, and a rule counts
 * only the calls that come to it. aborts and closes can't fail and are not counted.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "store/internal.h"

#define KILLED_EXIT 137 /* what a shell shows for kill -9 */

struct rule {
    struct tarn_fault_rule is; /* its strings are owned */
    int64_t seen;
};

struct faulty {
    struct tarn_store *inner; /* shared */
    atomic_int call_count;
    pthread_mutex_t mutex; /* guards the rules */
    struct rule *rules;
    size_t count;
    size_t capacity;
};

struct handle { /* a reader or writer */
    struct faulty *faulty;
    char *key; /* owned */
    struct tarn_store_reader *reader;
    struct tarn_store_writer *writer;
    bool torn; /* the writer lost bytes: it must not finish */
};

/* What one call is to suffer. */
struct strike {
    bool hit;
    enum tarn_fault fault;
    const char *call;
    const char *key;
};

/* ---- rules ---- */

static bool matches(const struct rule *rule, const char *call, const char *key)
{
    return (strcmp(rule->is.call, "*") == 0 || strcmp(rule->is.call, call) == 0) &&
           (rule->is.key_part == NULL || strstr(key, rule->is.key_part) != NULL);
}

static bool strikes_now(struct rule *rule)
{
    int64_t nth = rule->seen++;
    return nth >= rule->is.skip_count &&
           (rule->is.hit_count == 0 || nth - rule->is.skip_count < rule->is.hit_count);
}

static void wait_ms(int64_t ms)
{
    struct timespec rest = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&rest, &rest) != 0) {}
}

/* Counts the call and finds what happens to it. Deaths before the call and delays happen here. */
static struct strike begin(struct faulty *f, const char *call, const char *key)
{
    int64_t delay_ms = 0;
    struct strike strike = {.call = call, .key = key};
    atomic_fetch_add(&f->call_count, 1);
    pthread_mutex_lock(&f->mutex);
    for (size_t i = 0; i < f->count && !strike.hit; i++) {
        if (matches(&f->rules[i], call, key) && strikes_now(&f->rules[i])) {
            strike.hit = true;
            strike.fault = f->rules[i].is.fault;
            delay_ms = f->rules[i].is.delay_ms;
        }
    }
    pthread_mutex_unlock(&f->mutex);
    if (strike.hit && strike.fault == TARN_FAULT_KILL_BEFORE)
        _exit(KILLED_EXIT);
    if (strike.hit && strike.fault == TARN_FAULT_DELAY)
        wait_ms(delay_ms);
    return strike;
}

/* Not NULL: nothing is to happen, and this is the answer. */
static struct tarn_status *prevented(const struct strike *strike)
{
    if (!strike->hit)
        return TARN_OK;
    switch (strike->fault) {
    case TARN_FAULT_FAIL_BEFORE:
    case TARN_FAULT_TEAR:
        return tarn_status_new(TARN_IO_ERROR, "%s '%s': injected failure", strike->call,
                               strike->key);
    case TARN_FAULT_UNKNOWN:
        return tarn_status_new(strcmp(strike->call, "put_if_absent") == 0 ? TARN_OUTCOME_UNKNOWN
                                                                          : TARN_STORE_UNAVAILABLE,
                               "%s '%s': injected loss of the connection", strike->call,
                               strike->key);
    case TARN_FAULT_FULL:
        return tarn_status_new(TARN_DISK_FULL, "%s '%s': injected full disk", strike->call,
                               strike->key);
    default:
        return TARN_OK;
    }
}

/* What the caller hears after the call went through with `status`, which it consumes. */
static struct tarn_status *after(const struct strike *strike, struct tarn_status *status)
{
    if (!strike->hit)
        return status;
    if (strike->fault == TARN_FAULT_KILL_AFTER)
        _exit(KILLED_EXIT);
    if (strike->fault != TARN_FAULT_FAIL_AFTER || status != TARN_OK)
        return status;
    return tarn_status_new(
        strcmp(strike->call, "put_if_absent") == 0 ? TARN_OUTCOME_UNKNOWN : TARN_IO_ERROR,
        "%s '%s': injected failure after it was done", strike->call, strike->key);
}

/* ---- calls ---- */

static struct tarn_status *faulty_get(void *self, struct tarn_op *op, const char *key,
                                      size_t size_max, struct tarn_buf *out)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "get", key);
    TARN_TRY(prevented(&strike));
    return after(&strike, f->inner->ops->get(f->inner->self, op, key, size_max, out));
}

static struct tarn_status *faulty_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                       struct tarn_object *out)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "stat", key);
    TARN_TRY(prevented(&strike));
    return after(&strike, f->inner->ops->stat(f->inner->self, op, key, found, out));
}

/* Half of the bytes go to a writer that is given up: as a process that stopped in between. */
static void tear(struct faulty *f, struct tarn_op *op, const char *key, struct tarn_slice body)
{
    struct tarn_store_writer *writer = NULL;
    struct tarn_status *status = tarn_store_writer_open(f->inner, op, key, &writer);
    if (status == TARN_OK)
        status = tarn_store_writer_append(writer, op, tarn_slice_of(body.data, body.size / 2));
    tarn_status_free(status);
    tarn_store_writer_abort(writer);
}

static struct tarn_status *faulty_put(void *self, struct tarn_op *op, const char *key,
                                      struct tarn_slice body)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "put", key);
    if (strike.hit && strike.fault == TARN_FAULT_TEAR)
        tear(f, op, key, body);
    TARN_TRY(prevented(&strike));
    return after(&strike, f->inner->ops->put(f->inner->self, op, key, body));
}

static struct tarn_status *faulty_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                                struct tarn_slice body, bool *created)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "put_if_absent", key);
    *created = false;
    if (strike.hit && strike.fault == TARN_FAULT_TEAR)
        tear(f, op, key, body);
    TARN_TRY(prevented(&strike));
    struct tarn_status *status =
        after(&strike, f->inner->ops->put_if_absent(f->inner->self, op, key, body, created));
    if (status != TARN_OK)
        *created = false;
    return status;
}

static struct tarn_status *faulty_remove(void *self, struct tarn_op *op, const char *key)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "remove", key);
    TARN_TRY(prevented(&strike));
    return after(&strike, f->inner->ops->remove(f->inner->self, op, key));
}

static struct tarn_status *faulty_list(void *self, struct tarn_op *op, const char *prefix,
                                       bool recursive, struct tarn_object **out, size_t *count)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "list", prefix);
    TARN_TRY(prevented(&strike));
    TARN_TRY(
        after(&strike, f->inner->ops->list(f->inner->self, op, prefix, recursive, out, count)));
    if (strike.hit && strike.fault == TARN_FAULT_EMPTY_LIST)
        *count = 0;
    return TARN_OK;
}

static struct tarn_status *faulty_move_folder(void *self, struct tarn_op *op, const char *from,
                                              const char *to)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "move_folder", from);
    TARN_TRY(prevented(&strike));
    return after(&strike, f->inner->ops->move_folder(f->inner->self, op, from, to));
}

static struct tarn_status *faulty_prune(void *self, struct tarn_op *op, const char *key)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "prune", key);
    TARN_TRY(prevented(&strike));
    return after(&strike, f->inner->ops->prune(f->inner->self, op, key));
}

/* ---- readers and writers ---- */

static struct handle *handle_new(struct faulty *f, const char *key)
{
    struct handle *handle = tarn_calloc(1, sizeof *handle);
    handle->faulty = f;
    handle->key = tarn_strdup(key);
    return handle;
}

static void handle_free(void *self)
{
    struct handle *handle = self;
    tarn_store_reader_close(handle->reader);
    tarn_store_writer_abort(handle->writer);
    free(handle->key);
    free(handle);
}

static struct tarn_status *faulty_open(void *self, struct tarn_op *op, const char *key, void **out,
                                       int64_t *size)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "open", key);
    TARN_TRY(prevented(&strike));
    struct handle *handle = handle_new(f, key);
    struct tarn_status *status =
        after(&strike, tarn_store_reader_open(f->inner, op, key, &handle->reader));
    if (status != TARN_OK) {
        handle_free(handle);
        return status;
    }
    *size = tarn_store_reader_size(handle->reader);
    *out = handle;
    return TARN_OK;
}

static struct tarn_status *faulty_read_at(void *self, struct tarn_op *op, int64_t offset,
                                          size_t size, uint8_t *out, size_t *got)
{
    struct handle *handle = self;
    struct strike strike = begin(handle->faulty, "read_at", handle->key);
    TARN_TRY(prevented(&strike));
    return after(&strike, tarn_store_reader_read_at(handle->reader, op, offset, size, out, got));
}

static struct tarn_status *faulty_create(void *self, struct tarn_op *op, const char *key,
                                         void **out)
{
    struct faulty *f = self;
    struct strike strike = begin(f, "create", key);
    TARN_TRY(prevented(&strike));
    struct handle *handle = handle_new(f, key);
    struct tarn_status *status =
        after(&strike, tarn_store_writer_open(f->inner, op, key, &handle->writer));
    if (status != TARN_OK) {
        handle_free(handle);
        return status;
    }
    *out = handle;
    return TARN_OK;
}

static struct tarn_status *faulty_append(void *self, struct tarn_op *op, struct tarn_slice bytes)
{
    struct handle *handle = self;
    struct strike strike = begin(handle->faulty, "append", handle->key);
    struct tarn_status *status = prevented(&strike);
    if (status == TARN_OK)
        return after(&strike, tarn_store_writer_append(handle->writer, op, bytes));
    handle->torn = true; /* bytes are missing: as with a real error, no finish after this */
    if (strike.fault == TARN_FAULT_TEAR)
        tarn_status_free(tarn_store_writer_append(handle->writer, op,
                                                  tarn_slice_of(bytes.data, bytes.size / 2)));
    return status;
}

static struct tarn_status *faulty_finish(void *self, struct tarn_op *op)
{
    struct handle *handle = self;
    struct strike strike = begin(handle->faulty, "finish", handle->key);
    struct tarn_status *status = prevented(&strike);
    if (status == TARN_OK && handle->torn)
        status = tarn_status_new(TARN_IO_ERROR,
                                 "'%s' is not published: a write to it failed before", handle->key);
    if (status == TARN_OK)
        status = after(&strike, tarn_store_writer_finish(tarn_move(handle->writer), op));
    handle_free(handle);
    return status;
}

/* ---- life ---- */

static void clear_rules(struct faulty *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free((char *)f->rules[i].is.call);
        free((char *)f->rules[i].is.key_part);
    }
    f->count = 0;
}

static void faulty_close(void *self)
{
    struct faulty *f = self;
    clear_rules(f);
    free(f->rules);
    pthread_mutex_destroy(&f->mutex);
    tarn_store_unref(f->inner);
    free(f);
}

static const struct tarn_store_ops faulty_ops = {
    .scheme = "faulty",
    .get = faulty_get,
    .stat = faulty_stat,
    .put = faulty_put,
    .put_if_absent = faulty_put_if_absent,
    .remove = faulty_remove,
    .list = faulty_list,
    .move_folder = faulty_move_folder,
    .prune = faulty_prune,
    .open = faulty_open,
    .read_at = faulty_read_at,
    .reader_close = handle_free,
    .create = faulty_create,
    .append = faulty_append,
    .finish = faulty_finish,
    .abort = handle_free,
    .close = faulty_close,
};

struct tarn_store *tarn_store_faulty_new(struct tarn_store *inner)
{
    struct faulty *f = tarn_calloc(1, sizeof *f);
    f->inner = tarn_store_ref(inner);
    atomic_init(&f->call_count, 0);
    pthread_mutex_init(&f->mutex, NULL);
    struct tarn_store *store = tarn_store_new(&faulty_ops, f);
    free(store->uri);
    store->uri = tarn_strdup(inner->uri);
    return store;
}

static struct faulty *faulty_of(const struct tarn_store *store)
{
    tarn_assert(store->ops == &faulty_ops);
    return store->self;
}

void tarn_store_faulty_add(struct tarn_store *store, const struct tarn_fault_rule *rule)
{
    struct faulty *f = faulty_of(store);
    pthread_mutex_lock(&f->mutex);
    TARN_GROW(f->rules, f->count, f->capacity);
    struct rule *added = &f->rules[f->count++];
    *added = (struct rule){.is = *rule};
    added->is.call = tarn_strdup(rule->call);
    added->is.key_part = tarn_strdup(rule->key_part);
    pthread_mutex_unlock(&f->mutex);
}

void tarn_store_faulty_clear(struct tarn_store *store)
{
    struct faulty *f = faulty_of(store);
    pthread_mutex_lock(&f->mutex);
    clear_rules(f);
    pthread_mutex_unlock(&f->mutex);
}

int tarn_store_faulty_call_count(const struct tarn_store *store)
{
    return atomic_load(&faulty_of(store)->call_count);
}
