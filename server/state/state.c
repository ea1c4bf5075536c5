#include "state/state.h"

#include "exec/exec.h"
#include "state/internal.h"

struct tarn_state_batch {
    rocksdb_writebatch_t *writes;
    bool lacks_some; /* of what was put into it while the state was closed */
};

struct tarn_state_view {
    struct tarn_state *state;           /* borrowed, as below */
    const rocksdb_snapshot_t *snapshot; /* NULL: the state was closed */
};

#define READ_AHEAD_SIZE ((size_t)256 << 10)
#define STEPS_MAX 8 /* cost about what a seek does */

struct tarn_state_iterator {
    struct tarn_state *state; /* borrowed: it outlives its iterators */
    rocksdb_iterator_t *it;   /* NULL: the state was closed */
    rocksdb_readoptions_t *read;
    struct tarn_buf lower; /* RocksDB keeps pointers to the bounds */
    struct tarn_buf upper;
    bool on_next; /* standing on what the next call of next yields */
};

static const char *chars(struct tarn_slice s)
{
    return s.size == 0 ? "" : (const char *)s.data;
}

static _Thread_local uint64_t read_count;

uint64_t tarn_state_read_count(void)
{
    return read_count;
}

struct tarn_status *tarn_state_get(struct tarn_state *state, enum tarn_family family,
                                   struct tarn_slice key, bool *found, struct tarn_buf *out)
{
    char *error = NULL;
    size_t size = 0;
    tarn_assert_may_wait();
    read_count++;
    *found = false;
    tarn_state__enter(state);
    struct tarn_status *s = TARN_OK;
    rocksdb_pinnableslice_t *value = NULL;
    if (state->db == NULL)
        s = tarn_state__closed(state);
    else
        value = rocksdb_get_pinned_cf(state->db, state->read, state->families[family], chars(key),
                                      key.size, &error);
    if (value != NULL) {
        const char *data = rocksdb_pinnableslice_value(value, &size);
        tarn_buf_add(out, data, size);
        *found = true;
        rocksdb_pinnableslice_destroy(value);
    }
    tarn_state__leave(state);
    return s != TARN_OK ? s : tarn_state__error(state, error, "read");
}

/* ---- batches ---- */

struct tarn_state_batch *tarn_state_batch_new(void)
{
    struct tarn_state_batch *batch = tarn_calloc(1, sizeof *batch);
    batch->writes = rocksdb_writebatch_create();
    return batch;
}

void tarn_state_batch_free(struct tarn_state_batch *batch)
{
    if (batch == NULL)
        return;
    rocksdb_writebatch_destroy(batch->writes);
    free(batch);
}

void tarn_state_batch_drop(struct tarn_state_batch **batch)
{
    tarn_state_batch_free(*batch);
    *batch = NULL;
}

void tarn_state_batch_put(struct tarn_state_batch *batch, struct tarn_state *state,
                          enum tarn_family family, struct tarn_slice key, struct tarn_slice value)
{
    tarn_state__enter(state);
    if (state->db == NULL)
        batch->lacks_some = true;
    else
        rocksdb_writebatch_put_cf(batch->writes, state->families[family], chars(key), key.size,
                                  chars(value), value.size);
    tarn_state__leave(state);
}

void tarn_state_batch_remove(struct tarn_state_batch *batch, struct tarn_state *state,
                             enum tarn_family family, struct tarn_slice key)
{
    tarn_state__enter(state);
    if (state->db == NULL)
        batch->lacks_some = true;
    else
        rocksdb_writebatch_delete_cf(batch->writes, state->families[family], chars(key), key.size);
    tarn_state__leave(state);
}

void tarn_state_batch_remove_range(struct tarn_state_batch *batch, struct tarn_state *state,
                                   enum tarn_family family, struct tarn_slice from,
                                   struct tarn_slice to)
{
    if (tarn_slice_compare(from, to) >= 0) /* an empty range; RocksDB would refuse the batch */
        return;
    tarn_state__enter(state);
    if (state->db == NULL)
        batch->lacks_some = true;
    else
        rocksdb_writebatch_delete_range_cf(batch->writes, state->families[family], chars(from),
                                           from.size, chars(to), to.size);
    tarn_state__leave(state);
}

struct tarn_status *tarn_state_write(struct tarn_state *state, struct tarn_state_batch *batch,
                                     bool synced)
{
    char *error = NULL;
    tarn_assert_may_wait();
    size_t size = 0;
    if (batch->lacks_some)
        return tarn_state__closed(state);
    TARN_TRY(tarn_state__enter_to_write(state));
    rocksdb_write(state->db, synced ? state->write_synced : state->write, batch->writes, &error);
    struct tarn_status *s = tarn_state__written(state, error, "write");
    rocksdb_writebatch_data(batch->writes, &size);
    if (s == TARN_OK)
        tarn_state__mark_sometimes(state, size);
    tarn_state__leave(state);
    return s;
}

/* ---- iterators ---- */

/* The first key after all that begin with `prefix`; empty: there is none (all ff). */
static void after_prefix(struct tarn_slice prefix, struct tarn_buf *out)
{
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == 0xff)
        prefix.size--;
    if (prefix.size == 0)
        return;
    tarn_buf_add(out, prefix.data, prefix.size);
    out->data[out->size - 1]++;
}

struct tarn_state_iterator *tarn_state_iterator_open(struct tarn_state *state,
                                                     enum tarn_family family,
                                                     const struct tarn_state_range *range)
{
    struct tarn_state_iterator *it = tarn_calloc(1, sizeof *it);
    tarn_assert_may_wait();
    it->state = state;
    it->read = rocksdb_readoptions_create();
    if (range->from.size > 0) {
        tarn_buf_add_slice(&it->lower, range->from);
        rocksdb_readoptions_set_iterate_lower_bound(it->read, (const char *)it->lower.data,
                                                    it->lower.size);
    }
    if (range->to.size > 0) {
        tarn_buf_add_slice(&it->upper, range->to);
        rocksdb_readoptions_set_iterate_upper_bound(it->read, (const char *)it->upper.data,
                                                    it->upper.size);
    }
    if (range->view != NULL)
        rocksdb_readoptions_set_snapshot(it->read, range->view->snapshot);
    if (range->is_long) {
        rocksdb_readoptions_set_readahead_size(it->read, READ_AHEAD_SIZE);
        rocksdb_readoptions_set_fill_cache(it->read, 0);
    }
    it->on_next = true;
    tarn_state__enter(state);
    atomic_fetch_add(&state->iterator_count, 1);
    if (state->db != NULL) {
        it->it = rocksdb_create_iterator_cf(state->db, it->read, state->families[family]);
        rocksdb_iter_seek_to_first(it->it);
    }
    tarn_state__leave(state);
    return it;
}

struct tarn_state_iterator *tarn_state_iterator_new(struct tarn_state *state,
                                                    enum tarn_family family,
                                                    struct tarn_slice prefix)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf end = {0};
    after_prefix(prefix, &end);
    struct tarn_state_range range = {.from = prefix, .to = tarn_buf_slice(&end)};
    return tarn_state_iterator_open(state, family, &range);
}

/* ---- views ---- */

struct tarn_state_view *tarn_state_view_new(struct tarn_state *state)
{
    struct tarn_state_view *view = tarn_calloc(1, sizeof *view);
    view->state = state;
    tarn_state__enter(state);
    atomic_fetch_add(&state->iterator_count, 1);
    view->snapshot = state->db == NULL ? NULL : rocksdb_create_snapshot(state->db);
    tarn_state__leave(state);
    return view;
}

void tarn_state_view_free(struct tarn_state_view *view)
{
    if (view == NULL)
        return;
    if (view->snapshot != NULL)
        rocksdb_release_snapshot(view->state->db, view->snapshot);
    atomic_fetch_sub(&view->state->iterator_count, 1);
    free(view);
}

void tarn_state_view_drop(struct tarn_state_view **view)
{
    tarn_state_view_free(*view);
    *view = NULL;
}

static bool valid(const struct tarn_state_iterator *it)
{
    return it->it != NULL && rocksdb_iter_valid(it->it);
}

void tarn_state_iterator_seek(struct tarn_state_iterator *it, struct tarn_slice key)
{
    if (it->it != NULL)
        rocksdb_iter_seek(it->it, chars(key), key.size); /* before the prefix: its first key */
    it->on_next = true;
}

bool tarn_state_iterator_next(struct tarn_state_iterator *it, struct tarn_slice *key,
                              struct tarn_slice *value)
{
    size_t size = 0;
    read_count++;
    if (!it->on_next && valid(it))
        rocksdb_iter_next(it->it);
    it->on_next = false;
    if (!valid(it))
        return false;
    const char *data = rocksdb_iter_key(it->it, &size);
    *key = tarn_slice_of(data, size);
    data = rocksdb_iter_value(it->it, &size);
    *value = tarn_slice_of(data, size);
    return true;
}

static struct tarn_slice key_of(const struct tarn_state_iterator *it)
{
    size_t size = 0;
    const char *data = rocksdb_iter_key(it->it, &size);
    return tarn_slice_of(data, size);
}

bool tarn_state_iterator_find(struct tarn_state_iterator *it, struct tarn_slice key,
                              struct tarn_slice *value)
{
    int order = valid(it) ? tarn_slice_compare(key_of(it), key) : 1;
    for (int steps = 0; order < 0 && steps < STEPS_MAX; steps++) {
        read_count++;
        rocksdb_iter_next(it->it);
        order = valid(it) ? tarn_slice_compare(key_of(it), key) : -1;
        if (order > 0) { /* between two neighbours */
            it->on_next = true;
            return false;
        }
        if (!valid(it))
            break;
    }
    if (it->it == NULL)
        return false;
    if (order != 0) {
        read_count++;
        rocksdb_iter_seek(it->it, chars(key), key.size);
        if (!valid(it) || tarn_slice_compare(key_of(it), key) != 0) {
            it->on_next = true;
            return false;
        }
    }
    size_t size = 0;
    const char *data = rocksdb_iter_value(it->it, &size);
    *value = tarn_slice_of(data, size);
    it->on_next = false;
    return true;
}

/* An error looks like the end until this is asked. */
struct tarn_status *tarn_state_iterator_error(struct tarn_state_iterator *it)
{
    char *error = NULL;
    if (it->it == NULL)
        return tarn_state__closed(it->state);
    rocksdb_iter_get_error(it->it, &error);
    return tarn_state__error(it->state, error, "read");
}

void tarn_state_iterator_free(struct tarn_state_iterator *it)
{
    if (it == NULL)
        return;
    if (it->it != NULL)
        rocksdb_iter_destroy(it->it);
    rocksdb_readoptions_destroy(it->read);
    tarn_buf_drop(&it->lower);
    tarn_buf_drop(&it->upper);
    atomic_fetch_sub(&it->state->iterator_count, 1);
    free(it);
}

void tarn_state_iterator_drop(struct tarn_state_iterator **it)
{
    tarn_state_iterator_free(*it);
    *it = NULL;
}
