/*
 * The wrapping store itself: each call asks what it is to suffer, and then mostly does what was asked. What
 * is promised stands in faulty.h.
 */
#include <unistd.h>

#include "exec/exec.h"
#include "store/faulty_internal.h"

#define KILLED_EXIT 137 /* what a shell shows for kill -9 */

struct handle { /* a reader or writer */
    struct faulty *faulty;
    char *key; /* owned */
    struct tarn_store_reader *reader;
    struct tarn_store_writer *writer;
    bool torn; /* the writer lost bytes: it must not finish */
};

static bool suffers(const struct strike *strike, enum tarn_fault fault)
{
    return strike->hit && strike->fault == fault;
}

/* Deaths before the call, late puts that are due, and delays happen here. */
static struct strike begin(struct faulty *f, struct tarn_op *op, const char *call, const char *key)
{
    int64_t delay_ms;
    struct strike strike;
    tarn_store__faulty_draw(f, call, key, &strike, &delay_ms);
    tarn_store__faulty_land(f, strike.number);
    if (suffers(&strike, TARN_FAULT_KILL_BEFORE))
        _exit(KILLED_EXIT);
    if (delay_ms > 0)
        tarn_store__wait_ms(op, delay_ms);
    return strike;
}

static struct tarn_status *refuse(const struct strike *strike, enum tarn_reason reason,
                                  const char *what)
{
    return tarn_status_new(reason, "%s '%s': injected %s", strike->call, strike->key, what);
}

/* Not NULL: nothing is to happen, and this is the answer. */
static struct tarn_status *prevented(const struct strike *strike)
{
    if (!strike->hit)
        return TARN_OK;
    switch (strike->fault) {
    case TARN_FAULT_FAIL_BEFORE:
    case TARN_FAULT_TEAR:
        return refuse(strike, TARN_IO_ERROR, "failure");
    case TARN_FAULT_KILL_WITHIN:
        _exit(KILLED_EXIT);
    case TARN_FAULT_UNKNOWN:
    case TARN_FAULT_LATE:
        return refuse(strike,
                      strcmp(strike->call, "put_if_absent") == 0 ? TARN_OUTCOME_UNKNOWN
                                                                 : TARN_STORE_UNAVAILABLE,
                      "loss of the connection");
    case TARN_FAULT_FULL:
        return refuse(strike, TARN_DISK_FULL, "full disk");
    case TARN_FAULT_DENIED:
        return refuse(strike, TARN_STORE_DENIED, "403");
    case TARN_FAULT_UNAVAILABLE:
        return refuse(strike, TARN_STORE_UNAVAILABLE, "503");
    case TARN_FAULT_THROTTLE:
        return tarn_status_new(TARN_STORE_UNAVAILABLE,
                               "%s '%s': injected 503 SlowDown, retry after %" PRId64 " ms",
                               strike->call, strike->key, strike->delay_ms);
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
    return refuse(strike,
                  strcmp(strike->call, "put_if_absent") == 0 ? TARN_OUTCOME_UNKNOWN : TARN_IO_ERROR,
                  "failure after it was done");
}

/* Half of the bytes are lost, or the process with them. */
static bool tears(const struct strike *strike)
{
    return suffers(strike, TARN_FAULT_TEAR) || suffers(strike, TARN_FAULT_KILL_WITHIN);
}

/* ---- calls ---- */

static struct tarn_status *hidden(const struct strike *strike)
{
    return suffers(strike, TARN_FAULT_NOT_FOUND) ? refuse(strike, TARN_OBJECT_NOT_FOUND, "404")
                                                 : TARN_OK;
}

static struct tarn_status *faulty_get(void *self, struct tarn_op *op, const char *key,
                                      size_t size_max, struct tarn_buf *out)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "get", key);
    TARN_TRY(prevented(&strike));
    TARN_TRY(hidden(&strike));
    return after(&strike, f->inner->ops->get(f->inner->self, op, key, size_max, out));
}

static struct tarn_status *faulty_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                       struct tarn_object *out)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "stat", key);
    TARN_TRY(prevented(&strike));
    TARN_TRY(after(&strike, f->inner->ops->stat(f->inner->self, op, key, found, out)));
    if (suffers(&strike, TARN_FAULT_NOT_FOUND))
        *found = false;
    return TARN_OK;
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

static struct tarn_status *put_as(struct faulty *f, struct strike *strike, struct tarn_op *op,
                                  struct tarn_slice body, bool is_hint)
{
    if (tears(strike))
        tear(f, op, strike->key, body);
    TARN_TRY(prevented(strike));
    struct tarn_status *status = is_hint ? tarn_store_put_hint(f->inner, op, strike->key, body)
                                         : tarn_store_put(f->inner, op, strike->key, body);
    if (status == TARN_OK)
        tarn_store__faulty_born(f, strike->number, strike->key);
    return after(strike, status);
}

static struct tarn_status *faulty_put(void *self, struct tarn_op *op, const char *key,
                                      struct tarn_slice body)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "put", key);
    return put_as(f, &strike, op, body, false);
}

static struct tarn_status *faulty_put_hint(void *self, struct tarn_op *op, const char *key,
                                           struct tarn_slice body)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "put_hint", key);
    return put_as(f, &strike, op, body, true);
}

/* Each by the throw of a coin, but at least one is missing. */
static void put_some(struct faulty *f, struct tarn_op *op, const struct tarn_new_object *objects,
                     size_t count, uint64_t dice)
{
    size_t missing = (size_t)(dice % count);
    for (size_t i = 0; i < count; i++) {
        if (i != missing && (dice >> (i % 32) & 1) == 0)
            tarn_status_free(tarn_store_put_many(f->inner, op, &objects[i], 1));
    }
}

static struct tarn_status *faulty_put_many(void *self, struct tarn_op *op,
                                           const struct tarn_new_object *objects, size_t count)
{
    struct faulty *f = self;
    if (count == 0)
        return TARN_OK;
    struct strike strike = begin(f, op, "put_many", objects[0].key);
    if (tears(&strike))
        put_some(f, op, objects, count, strike.dice);
    TARN_TRY(prevented(&strike));
    struct tarn_status *status = tarn_store_put_many(f->inner, op, objects, count);
    for (size_t i = 0; i < count && status == TARN_OK; i++)
        if (!objects[i].foreseen)
            tarn_store__faulty_born(f, strike.number, objects[i].key);
    return after(&strike, status);
}

static void faulty_unforesee(void *self, const char *key)
{
    tarn_store_unforesee(((struct faulty *)self)->inner, key);
}

static struct tarn_status *faulty_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                                struct tarn_slice body, bool *created)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "put_if_absent", key);
    *created = false;
    if (tears(&strike))
        tear(f, op, key, body);
    if (suffers(&strike, TARN_FAULT_LATE))
        tarn_store__faulty_put_late(f, &strike, key, body);
    TARN_TRY(prevented(&strike));
    struct tarn_status *status =
        f->inner->ops->put_if_absent(f->inner->self, op, key, body, created);
    if (status == TARN_OK && *created)
        tarn_store__faulty_born(f, strike.number, key);
    status = after(&strike, status);
    if (status != TARN_OK)
        *created = false;
    return status;
}

static struct tarn_status *faulty_remove(void *self, struct tarn_op *op, const char *key)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "remove", key);
    TARN_TRY(prevented(&strike));
    return after(&strike, f->inner->ops->remove(f->inner->self, op, key));
}

static void leave_out_young(struct faulty *f, const struct strike *strike,
                            struct tarn_object *objects, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        const char *key = (const char *)objects[i].key.data; /* ends with a NUL */
        if (objects[i].is_folder ||
            !tarn_store__faulty_is_young(f, key, strike->number, strike->calls))
            objects[kept++] = objects[i];
    }
    *count = kept;
}

static struct tarn_status *faulty_list(void *self, struct tarn_op *op, const char *prefix,
                                       bool recursive, struct tarn_object **out, size_t *count)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "list", prefix);
    TARN_TRY(prevented(&strike));
    TARN_TRY(
        after(&strike, f->inner->ops->list(f->inner->self, op, prefix, recursive, out, count)));
    if (suffers(&strike, TARN_FAULT_EMPTY_LIST))
        *count = 0;
    if (suffers(&strike, TARN_FAULT_SHORT_LIST))
        *count = strike.dice == 0 ? *count / 2 : (size_t)(strike.dice % (*count + 1));
    if (suffers(&strike, TARN_FAULT_STALE_LIST))
        leave_out_young(f, &strike, *out, count);
    return TARN_OK;
}

static struct tarn_status *faulty_move_folder(void *self, struct tarn_op *op, const char *from,
                                              const char *to)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "move_folder", from);
    TARN_TRY(prevented(&strike));
    return after(&strike, f->inner->ops->move_folder(f->inner->self, op, from, to));
}

static struct tarn_status *faulty_prune(void *self, struct tarn_op *op, const char *key)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "prune", key);
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
    struct strike strike = begin(f, op, "open", key);
    TARN_TRY(prevented(&strike));
    TARN_TRY(hidden(&strike));
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
    struct strike strike = begin(handle->faulty, op, "read_at", handle->key);
    TARN_TRY(prevented(&strike));
    return after(&strike, tarn_store_reader_read_at(handle->reader, op, offset, size, out, got));
}

static struct tarn_status *faulty_create(void *self, struct tarn_op *op, const char *key,
                                         void **out)
{
    struct faulty *f = self;
    struct strike strike = begin(f, op, "create", key);
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
    struct strike strike = begin(handle->faulty, op, "append", handle->key);
    if (tears(&strike))
        tarn_status_free(tarn_store_writer_append(handle->writer, op,
                                                  tarn_slice_of(bytes.data, bytes.size / 2)));
    struct tarn_status *status = prevented(&strike);
    if (status == TARN_OK)
        return after(&strike, tarn_store_writer_append(handle->writer, op, bytes));
    handle->torn = true; /* bytes are missing: as with a real error, no finish after this */
    return status;
}

static struct tarn_status *faulty_finish(void *self, struct tarn_op *op)
{
    struct handle *handle = self;
    struct strike strike = begin(handle->faulty, op, "finish", handle->key);
    struct tarn_status *status = prevented(&strike);
    if (status == TARN_OK && handle->torn)
        status = tarn_status_new(TARN_IO_ERROR,
                                 "'%s' is not published: a write to it failed before", handle->key);
    if (status == TARN_OK)
        status = tarn_store_writer_finish(tarn_move(handle->writer), op);
    if (status == TARN_OK)
        tarn_store__faulty_born(handle->faulty, strike.number, handle->key);
    status = after(&strike, status);
    handle_free(handle);
    return status;
}

/* ---- life ---- */

static void faulty_close(void *self)
{
    struct faulty *f = self;
    tarn_store__faulty_late_fini(f);
    tarn_store__faulty_forget_rules(f);
    tarn_store__faulty_forget_plan(f);
    free(f->rules);
    pthread_mutex_destroy(&f->mutex);
    tarn_store_unref(f->inner);
    free(f);
}

/* Not disturbed: the probe is about the inner store, and moves are its own calls. */
static struct tarn_status *faulty_probe(void *self, struct tarn_op *op)
{
    return tarn_store_probe(((struct faulty *)self)->inner, op);
}

static struct tarn_status *faulty_finish_moves(void *self, struct tarn_op *op, bool happened_only)
{
    return tarn_store_finish_moves(((struct faulty *)self)->inner, op, happened_only);
}

static const struct tarn_store_ops faulty_ops = {
    .scheme = "faulty",
    .get = faulty_get,
    .stat = faulty_stat,
    .put = faulty_put,
    .put_hint = faulty_put_hint,
    .put_many = faulty_put_many,
    .unforesee = faulty_unforesee,
    .put_if_absent = faulty_put_if_absent,
    .remove = faulty_remove,
    .list = faulty_list,
    .move_folder = faulty_move_folder,
    .finish_moves = faulty_finish_moves,
    .probe = faulty_probe,
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
    f->ops = faulty_ops;
    f->ops.remote = inner->ops->remote;
    f->ops.flat = inner->ops->flat;
    f->inner = tarn_store_ref(inner);
    atomic_init(&f->call_count, 0);
    pthread_mutex_init(&f->mutex, NULL);
    struct tarn_store *store = tarn_store_new(&f->ops, f);
    free(store->uri);
    store->uri = tarn_strdup(inner->uri);
    return store;
}

static struct faulty *faulty_of(const struct tarn_store *store)
{
    tarn_assert(store->ops->close == faulty_close);
    return store->self;
}

void tarn_store_faulty_add(struct tarn_store *store, const struct tarn_fault_rule *rule)
{
    struct faulty *f = faulty_of(store);
    tarn_assert(tarn_store__faulty_is_call(rule->call));
    pthread_mutex_lock(&f->mutex);
    TARN_GROW(f->rules, f->rule_count, f->rule_capacity);
    struct fault_rule *added = &f->rules[f->rule_count++];
    *added = (struct fault_rule){.is = *rule};
    added->is.call = tarn_strdup(rule->call);
    added->is.key_part = tarn_strdup(rule->key_part);
    pthread_mutex_unlock(&f->mutex);
}

void tarn_store_faulty_plan(struct tarn_store *store, const struct tarn_fault_plan *plan)
{
    struct faulty *f = faulty_of(store);
    pthread_mutex_lock(&f->mutex);
    tarn_store__faulty_forget_plan(f);
    if (plan != NULL) {
        f->plan = *plan;
        f->plan.key_part = tarn_strdup(plan->key_part);
        f->counters = tarn_calloc(TARN_STORE_PLAN_COUNTERS, sizeof *f->counters);
        f->has_plan = true;
    }
    pthread_mutex_unlock(&f->mutex);
}

void tarn_store_faulty_clear(struct tarn_store *store)
{
    struct faulty *f = faulty_of(store);
    pthread_mutex_lock(&f->mutex);
    tarn_store__faulty_forget_rules(f);
    tarn_store__faulty_forget_plan(f);
    f->throttled_until_ms = 0;
    pthread_mutex_unlock(&f->mutex);
}

int tarn_store_faulty_call_count(const struct tarn_store *store)
{
    return atomic_load(&faulty_of(store)->call_count);
}

size_t tarn_store_faulty_late_count(const struct tarn_store *store)
{
    struct faulty *f = faulty_of(store);
    pthread_mutex_lock(&f->mutex);
    size_t count = f->late_count;
    pthread_mutex_unlock(&f->mutex);
    return count;
}

void tarn_store_faulty_land(struct tarn_store *store)
{
    tarn_store__faulty_land(faulty_of(store), INT64_MAX);
}

void tarn_store_faulty_set_remote(struct tarn_store *store, bool remote)
{
    faulty_of(store)->ops.remote = remote;
}
