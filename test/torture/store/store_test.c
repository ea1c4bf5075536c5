/*
 * Promise: whichever store call of a small life of a table fails, and in whatever way, nothing
 * leaks, nothing half written is seen, and who asks again gets to the same end.
 *
 * The scenario is what a commit does: a data file by a writer, manifests at once, the snapshot by
 * put_if_absent with reading back, a hint, a look at everything, the removal of the file before.
 */
#include "store/internal.h"
#include "test.h"

#define S(text) tarn_slice_str(text)
#define TRIES_MAX 4

static struct tarn_status *write_data(struct tarn_test *t, struct tarn_store *store)
{
    struct tarn_store_writer *writer = NULL;
    TARN_TRY(tarn_store_writer_open(store, t->op, "t/bucket-0/data", &writer));
    struct tarn_status *status = tarn_store_writer_append(writer, t->op, S("rows and "));
    if (status == TARN_OK)
        status = tarn_store_writer_append(writer, t->op, S("more rows"));
    if (status != TARN_OK) {
        tarn_store_writer_abort(writer);
        return status;
    }
    status = tarn_store_writer_finish(writer, t->op);
    if (tarn_status_reason(status) ==
        TARN_OBJECT_EXISTS) /* a finish that failed after it was done */
        tarn_status_drop(&status);
    return status;
}

/* As a commit does it: an unknown outcome is read back. */
static struct tarn_status *claim(struct tarn_test *t, struct tarn_store *store)
{
    bool created;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    struct tarn_status *status =
        tarn_store_put_if_absent(store, t->op, "t/snapshot/snapshot-1", S("mine"), &created);
    bool unknown = tarn_status_reason(status) == TARN_OUTCOME_UNKNOWN;
    if (status != TARN_OK && !unknown)
        return status;
    if (status == TARN_OK && created)
        return TARN_OK;
    struct tarn_status *read = tarn_store_get(store, t->op, "t/snapshot/snapshot-1", &got);
    if (read != TARN_OK) {
        tarn_status_free(status);
        return read; /* not known: again */
    }
    tarn_status_free(status);
    expect_slice(tarn_buf_slice(&got), "mine");
    return TARN_OK;
}

static struct tarn_status *look_around(struct tarn_test *t, struct tarn_store *store)
{
    bool found;
    size_t count, got;
    uint8_t bytes[32];
    struct tarn_object *objects;
    struct tarn_store_reader *reader = NULL;
    TARN_TRY(tarn_store_stat(store, t->op, "t/bucket-0/data", &found, NULL));
    TARN_TRY(tarn_store_list(store, t->op, "t", true, &objects, &count));
    TARN_TRY(tarn_store_reader_open(store, t->op, "t/bucket-0/data", &reader));
    struct tarn_status *status =
        tarn_store_reader_read_at(reader, t->op, 0, sizeof bytes, bytes, &got);
    tarn_store_reader_close(reader);
    if (status == TARN_OK)
        expect_slice(tarn_slice_of(bytes, got), "rows and more rows");
    return status;
}

static struct tarn_status *rename_table(struct tarn_test *t, struct tarn_store *store)
{
    struct tarn_status *status = tarn_store_move_folder(store, t->op, "t", "u");
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) /* it was done before */
        tarn_status_drop(&status);
    return status;
}

static struct tarn_status *put_old(struct tarn_test *t, struct tarn_store *store)
{
    return tarn_store_put(store, t->op, "t/old", S("old"));
}

static struct tarn_status *put_manifests(struct tarn_test *t, struct tarn_store *store)
{
    static const char *const keys[] = {"t/manifest/m", "t/manifest/n"};
    struct tarn_new_object objects[] = {{.key = keys[0], .body = S("manifest")},
                                        {.key = keys[1], .body = S("another")}};
    TARN_TRY(tarn_store_remove_many(store, t->op, keys, 2)); /* what a try before left */
    return tarn_store_put_many(store, t->op, objects, 2);
}

static struct tarn_status *put_hint(struct tarn_test *t, struct tarn_store *store)
{
    return tarn_store_put_hint(store, t->op, "t/snapshot/LATEST", S("1"));
}

static struct tarn_status *remove_old(struct tarn_test *t, struct tarn_store *store)
{
    return tarn_store_remove(store, t->op, "t/old");
}

static struct tarn_status *prune(struct tarn_test *t, struct tarn_store *store)
{
    return tarn_store_prune(store, t->op, "t");
}

typedef struct tarn_status *(*step_fn)(struct tarn_test *t, struct tarn_store *store);
static const step_fn steps[] = {
    put_old,     write_data, put_manifests, claim,        put_hint,
    look_around, remove_old, prune,         rename_table,
};

/* One step after the other, from *step on; one that was done may be done again. */
static struct tarn_status *live(struct tarn_test *t, struct tarn_store *store, int *step)
{
    for (; *step < (int)TARN_COUNT_OF(steps); ++*step)
        TARN_TRY(steps[*step](t, store));
    return TARN_OK;
}

static void expect_end(struct tarn_test *t, struct tarn_store *inner)
{
    size_t count;
    struct tarn_object *objects;
    static const char *const keys[] = {"u/bucket-0/data", "u/manifest/m", "u/manifest/n",
                                       "u/snapshot/LATEST", "u/snapshot/snapshot-1"};
    static const int64_t sizes[] = {18, 8, 7, 1, 4};
    expect_ok(tarn_store_list(inner, t->op, "", true, &objects, &count));
    expect_int(count, TARN_COUNT_OF(keys)); /* and no hidden remains */
    for (size_t i = 0; i < count; i++) {
        expect_slice(objects[i].key, keys[i]);
        expect_int(objects[i].size, sizes[i]);
    }
}

static struct tarn_store *open_inner(struct tarn_test *t, bool local)
{
    struct tarn_store *store = NULL;
    if (!local)
        return tarn_store__memory_new();
    expect_ok(tarn_store__local_open(tarn_test_dir(t), &store));
    return store;
}

/* Runs the scenario with the nth call disturbed; the number of calls it took. */
static int run(struct tarn_test *t, bool local, int nth, int hits, enum tarn_fault fault)
{
    int step = 0, failures = 0;
    struct tarn_store *inner = open_inner(t, local);
    struct tarn_store *store = tarn_store_faulty_new(inner);
    struct tarn_fault_rule rule = {"*", NULL, nth, hits, fault, 1, 1};
    if (nth >= 0)
        tarn_store_faulty_add(store, &rule);
    for (struct tarn_status *status; (status = live(t, store, &step)) != TARN_OK;) {
        tarn_status_free(status);
        if (++failures > TRIES_MAX)
            expect_unreachable("call %d, fault %d: stuck at step %d", nth, fault, step);
    }
    int calls = tarn_store_faulty_call_count(store);
    expect_end(t, inner);
    tarn_store_unref(store);
    tarn_store_unref(inner);
    return calls;
}

static void torture(struct tarn_test *t, bool local)
{
    static const enum tarn_fault faults[] = {
        TARN_FAULT_FAIL_BEFORE, TARN_FAULT_FAIL_AFTER, TARN_FAULT_UNKNOWN,
        TARN_FAULT_DELAY,       TARN_FAULT_TEAR,       TARN_FAULT_FULL,
        TARN_FAULT_EMPTY_LIST,  TARN_FAULT_SHORT_LIST, TARN_FAULT_STALE_LIST,
        TARN_FAULT_DENIED,      TARN_FAULT_NOT_FOUND,  TARN_FAULT_UNAVAILABLE,
        TARN_FAULT_LATE,
    };
    int calls = run(t, local, -1, 0, TARN_FAULT_DELAY);
    expect_true(calls >= 15);
    for (size_t f = 0; f < TARN_COUNT_OF(faults); f++) {
        for (int nth = 0; nth < calls; nth++) {
            run(t, local, nth, 1, faults[f]);
            run(t, local, nth, 3, faults[f]); /* trying again fails too, twice */
        }
    }
}

TARN_TEST(store_torture, each_call_fails_once_in_memory)
{
    torture(t, false);
}

TARN_TEST(store_torture, each_call_fails_once_on_disk)
{
    torture(t, true);
}
