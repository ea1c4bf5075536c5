/*
 * Promise: no sequence of calls tells the drivers apart: local (with openat2 and without) gives the
 * answers of memory, which is short enough to be believed.
 *
 * Empty folders are pruned after each step: only a file system has them.
 */
#include "store/internal.h"
#include "test.h"

#define DRIVERS 3
#define WRITE 10 /* the last call: a step of a writer */

struct world {
    struct tarn_test *t;
    struct tarn_store *stores[DRIVERS];
    struct tarn_store_writer *writers[DRIVERS];
    struct tarn_buf answers[DRIVERS];
};

/* Few names, so that keys meet as object, folder and neither. */
static const char *any_key(struct tarn_test *t)
{
    static const char *const names[] = {"a", "b", "a.b", "c-\xc3\xa9", ".h"};
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    uint64_t depth = 1 + tarn_test_random_below(t, 3);
    for (uint64_t i = 0; i < depth; i++)
        tarn_buf_printf(&key, "%s%s", i == 0 ? "" : "/",
                        names[tarn_test_random_below(t, TARN_COUNT_OF(names))]);
    return tarn_arena_str(t->arena, tarn_buf_slice(&key));
}

static void note(struct tarn_buf *answer, struct tarn_status *consumed)
{
    tarn_buf_printf(answer, " %s", tarn_reason_name(tarn_status_reason(consumed)));
    tarn_status_free(consumed);
}

static void note_all(struct world *w, int d, const char *prefix, bool recursive)
{
    size_t count = 0;
    struct tarn_object *objects = NULL;
    note(&w->answers[d],
         tarn_store_list(w->stores[d], w->t->op, prefix, recursive, &objects, &count));
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&w->answers[d], " %.*s:%d:%" PRId64, TARN_SLICE_ARG(objects[i].key),
                        objects[i].is_folder, objects[i].size);
}

static void write_step(struct world *w, int d, const char *key, struct tarn_slice body)
{
    struct tarn_op *op = w->t->op;
    if (w->writers[d] == NULL) {
        note(&w->answers[d], tarn_store_writer_open(w->stores[d], op, key, &w->writers[d]));
        return;
    }
    note(&w->answers[d], tarn_store_writer_append(w->writers[d], op, body));
    if (body.size % 2 == 0)
        note(&w->answers[d], tarn_store_writer_finish(tarn_move(w->writers[d]), op));
}

static void step(struct world *w, int d, uint64_t call, const char *key, const char *other,
                 struct tarn_slice body)
{
    bool flag = false;
    struct tarn_object object = {0};
    struct tarn_op *op = w->t->op;
    struct tarn_store *store = w->stores[d];
    struct tarn_buf *answer = &w->answers[d];
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    switch (call) {
    case 0:
        note(answer, tarn_store_put(store, op, key, body));
        break;
    case 1:
        note(answer, tarn_store_put_if_absent(store, op, key, body, &flag));
        break;
    case 2:
        note(answer, tarn_store_remove(store, op, key));
        break;
    case 3:
        note(answer, tarn_store_get(store, op, key, &got));
        break;
    case 4:
        note(answer, tarn_store_stat(store, op, key, &flag, &object));
        break;
    case 5:
        note_all(w, d, key, body.size % 2 == 0);
        break;
    case 6:
        note(answer, tarn_store_move_folder(store, op, key, other));
        break;
    case 7: {
        struct tarn_new_object object_of_many = {.key = key, .body = body};
        note(answer, tarn_store_put_many(store, op, &object_of_many, 1));
        break;
    }
    case 8: {
        const char *const keys[] = {key, other};
        note(answer, tarn_store_remove_many(store, op, keys, 2));
        break;
    }
    case 9:
        note(answer, tarn_store_put_hint(store, op, key, body));
        break;
    default:
        write_step(w, d, key, body);
        break;
    }
    tarn_buf_printf(answer, " %d %" PRId64 " ", flag, object.size);
    tarn_buf_add(answer, got.data, got.size);
    if (w->writers[d] == NULL) /* else it would prune the folder that the writer made for itself */
        note(answer, tarn_store_prune(store, op, ""));
    note_all(w, d, "", true);
}

static void run(struct world *w, int step_count)
{
    for (int i = 0; i < step_count; i++) {
        uint64_t call = tarn_test_random_below(w->t, WRITE + 1);
        const char *key = any_key(w->t), *other = any_key(w->t);
        struct tarn_slice body = tarn_slice_of("0123456789", tarn_test_random_below(w->t, 11));
        /* a writer's own folder and file are seen on disk only */
        if (w->writers[0] != NULL)
            call = WRITE;
        for (int d = 0; d < DRIVERS; d++) {
            tarn_buf_clear(&w->answers[d]);
            tarn_buf_printf(&w->answers[d], "call %d of %s, %s, %zu:", (int)call, key, other,
                            body.size);
            step(w, d, call, key, other, body);
        }
        if (w->writers[0] != NULL) /* its hidden file is in the local list */
            continue;
        for (int d = 1; d < DRIVERS; d++)
            expect_str(tarn_buf_cstr(&w->answers[d]), tarn_buf_cstr(&w->answers[0]));
    }
}

TARN_TEST(drivers, give_the_same_answers)
{
    for (int round = 0; round < tarn_test_rounds(5); round++) {
        struct world w = {.t = t};
        w.stores[0] = tarn_store__memory_new();
        for (int d = 1; d < DRIVERS; d++)
            expect_ok(tarn_store__local_open(tarn_test_dir(t), &w.stores[d]));
        tarn_store__local_without_openat2(w.stores[2]);
        run(&w, 120);
        for (int d = 0; d < DRIVERS; d++) {
            tarn_store_writer_abort(w.writers[d]);
            tarn_store_unref(w.stores[d]);
            tarn_buf_drop(&w.answers[d]);
        }
    }
}
