#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>

#define S(text) tarn_slice_str(text)

static void put(struct tarn_test *t, struct tarn_store *store, const char *key, const char *body)
{
    expect_ok(tarn_store_put(store, t->op, key, S(body)));
}

static void expect_object(struct tarn_test *t, struct tarn_store *store, const char *key,
                          const char *body)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_ok(tarn_store_get(store, t->op, key, &got));
    expect_slice(tarn_buf_slice(&got), body);
}

static void expect_absent(struct tarn_test *t, struct tarn_store *store, const char *key)
{
    bool found = true;
    expect_ok(tarn_store_stat(store, t->op, key, &found, NULL));
    expect_false(found);
}

/* "a/ b 3" for folder a and object b of 3 bytes. */
static const char *listed(struct tarn_test *t, struct tarn_store *store, const char *prefix,
                          bool recursive)
{
    size_t count = 0;
    struct tarn_object *objects = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    expect_ok(tarn_store_list(store, t->op, prefix, recursive, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : " ", TARN_SLICE_ARG(objects[i].key));
        if (objects[i].is_folder)
            tarn_buf_add_str(&text, "/");
        else
            tarn_buf_printf(&text, " %" PRId64, objects[i].size);
    }
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

void conformance_put_then_get_gives_the_same_bytes(struct tarn_test *t, struct tarn_store *store)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 65537, 1 << 20};
    for (size_t i = 0; i < TARN_COUNT_OF(sizes); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
        struct tarn_slice bytes = tarn_test_random_bytes(t, sizes[i]);
        const char *key = tarn_arena_printf(t->arena, "db.db/t/f-%zu", i);
        expect_ok(tarn_store_put(store, t->op, key, bytes));
        tarn_buf_add_str(&got, "kept"); /* get appends */
        expect_ok(tarn_store_get(store, t->op, key, &got));
        expect_int(got.size, 4 + sizes[i]);
        expect_bytes(tarn_slice_of(got.data + 4, got.size - 4), bytes);
    }
}

void conformance_put_replaces(struct tarn_test *t, struct tarn_store *store)
{
    put(t, store, "hint", "a long first one");
    put(t, store, "hint", "2");
    expect_object(t, store, "hint", "2");
    expect_str(listed(t, store, "", true), "hint 1");
}

void conformance_hints_are_replaced(struct tarn_test *t, struct tarn_store *store)
{
    expect_ok(tarn_store_put_hint(store, t->op, "t/snapshot/LATEST", S("a long first one")));
    for (const char *const *text = (const char *const[]){"2", "9", "10", "11", "3", NULL};
         *text != NULL; text++) {
        expect_ok(tarn_store_put_hint(store, t->op, "t/snapshot/LATEST", tarn_slice_str(*text)));
        expect_object(t, store, "t/snapshot/LATEST", *text);
    }
    expect_str(listed(t, store, "", true), "t/snapshot/LATEST 1");
}

void conformance_put_many_puts_all(struct tarn_test *t, struct tarn_store *store)
{
    enum { COUNT = 150 };
    struct tarn_new_object objects[COUNT] = {0};
    expect_ok(tarn_store_put_many(store, t->op, NULL, 0));
    for (int i = 0; i < COUNT; i++) {
        objects[i].key =
            tarn_arena_printf(t->arena, "t/%s/m-%03d", i % 50 == 7 ? "index" : "manifest", i);
        objects[i].body = tarn_test_random_bytes(t, (size_t)i * 97);
    }
    expect_ok(tarn_store_put_many(store, t->op, objects, COUNT));
    for (int i = 0; i < COUNT; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
        expect_ok(tarn_store_get(store, t->op, objects[i].key, &got));
        expect_bytes(tarn_buf_slice(&got), objects[i].body);
    }
    size_t count;
    struct tarn_object *all;
    expect_ok(tarn_store_list(store, t->op, "", true, &all, &count));
    expect_int(count, COUNT); /* and nothing hidden */
}

static void foresee(struct tarn_test *t, struct tarn_store *store, const char *beside,
                    const char *body)
{
    const struct tarn_new_object objects[] = {
        {.key = beside, .body = S("m")},
        {.key = "t/s/1", .body = tarn_slice_str(body), .foreseen = true}};
    bool found;
    expect_ok(tarn_store_put_many(store, t->op, objects, 2));
    expect_object(t, store, beside, "m");
    expect_ok(tarn_store_stat(store, t->op, "t/s/1", &found, NULL));
    expect_false(found);
}

void conformance_foreseen_is_put_only_by_its_put(struct tarn_test *t, struct tarn_store *store)
{
    bool created;
    foresee(t, store, "t/m/1", "one");
    foresee(t, store, "t/m/2", "two"); /* in its place */
    expect_ok(tarn_store_put_if_absent(store, t->op, "t/s/1", S("two"), &created));
    expect_true(created);
    expect_object(t, store, "t/s/1", "two");
    expect_str(listed(t, store, "t/s", true), "t/s/1 3");

    expect_ok(tarn_store_remove(store, t->op, "t/s/1"));
    foresee(t, store, "t/m/3", "three");
    expect_ok(tarn_store_put_if_absent(store, t->op, "t/s/1", S("another"), &created));
    expect_true(created);
    expect_object(t, store, "t/s/1", "another");

    expect_ok(tarn_store_remove(store, t->op, "t/s/1"));
    foresee(t, store, "t/m/4", "four");
    expect_ok(tarn_store_put(store, t->op, "t/s/1", S("somebody's")));
    expect_ok(tarn_store_put_if_absent(store, t->op, "t/s/1", S("four"), &created));
    expect_false(created);
    expect_object(t, store, "t/s/1", "somebody's");
    expect_str(listed(t, store, "t/s", true), "t/s/1 10");

    expect_ok(tarn_store_remove(store, t->op, "t/s/1"));
    put(t, store, "t/s/0", "zero");
    foresee(t, store, "t/m/5", "five");
    expect_ok(tarn_store_move_folder(store, t->op, "t/s", "t/u"));
    expect_ok(tarn_store_put_if_absent(store, t->op, "t/s/1", S("five"), &created));
    expect_true(created);
    expect_object(t, store, "t/s/1", "five");

    expect_ok(tarn_store_remove(store, t->op, "t/s/1"));
    foresee(t, store, "t/m/6", "six");
    tarn_store_unforesee(store, "t/s/1");
    tarn_store_unforesee(store, "t/s/1");
    expect_str(listed(t, store, "t/s", true), "");
    expect_ok(tarn_store_put_if_absent(store, t->op, "t/s/1", S("six"), &created));
    expect_true(created);
    expect_object(t, store, "t/s/1", "six");
}

void conformance_put_many_does_not_replace(struct tarn_test *t, struct tarn_store *store)
{
    put(t, store, "t/b", "first");
    struct tarn_new_object exists[] = {{.key = "t/a", .body = S("1")},
                                       {.key = "t/b", .body = S("2")},
                                       {.key = "t/c", .body = S("3")}};
    expect_status(tarn_store_put_many(store, t->op, exists, 3), TARN_OBJECT_EXISTS, "t/b");
    expect_object(t, store, "t/b", "first");
    struct tarn_new_object bad[] = {{.key = "t/e", .body = S("1")},
                                    {.key = "t/../e", .body = S("2")}};
    expect_status(tarn_store_put_many(store, t->op, bad, 2), TARN_PATH_INVALID, "..");
    expect_absent(t, store, "t/e");
}

void conformance_get_of_nothing_is_not_found(struct tarn_test *t, struct tarn_store *store)
{
    struct tarn_store_reader *reader = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    put(t, store, "there", "x");
    expect_status(tarn_store_get(store, t->op, "a/b", &got), TARN_OBJECT_NOT_FOUND, "a/b");
    expect_status(tarn_store_get(store, t->op, "there/b", &got), TARN_OBJECT_NOT_FOUND, "there/b");
    expect_status(tarn_store_reader_open(store, t->op, "ther", &reader), TARN_OBJECT_NOT_FOUND,
                  "ther");
    expect_int(got.size, 0);
    expect_absent(t, store, "there/b");
}

void conformance_stat_knows_size_and_time(struct tarn_test *t, struct tarn_store *store)
{
    bool found = false;
    struct tarn_object object;
    int64_t before = tarn_clock_wall_ms();
    put(t, store, "a/b", "hello");
    expect_ok(tarn_store_stat(store, t->op, "a/b", &found, &object));
    expect_true(found);
    expect_int(object.size, 5);
    expect_slice(object.key, "a/b");
    /* a file system's clock ticks coarsely */
    expect_true(object.mtime_ms >= before - 1000 && object.mtime_ms <= tarn_clock_wall_ms() + 1000);
}

void conformance_folders_are_no_objects(struct tarn_test *t, struct tarn_store *store)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    put(t, store, "a/b/c", "x");
    expect_absent(t, store, "a");
    expect_absent(t, store, "a/b");
    expect_status(tarn_store_get(store, t->op, "a/b", &got), TARN_OBJECT_NOT_FOUND, "a/b");
    expect_ok(tarn_store_remove(store, t->op, "a/b")); /* no object of that name: fine */
    expect_object(t, store, "a/b/c", "x");
}

void conformance_put_if_absent_never_overwrites(struct tarn_test *t, struct tarn_store *store)
{
    bool created = false;
    const char *key = "db.db/t/snapshot/snapshot-1";
    expect_ok(tarn_store_put_if_absent(store, t->op, key, S("first"), &created));
    expect_true(created);
    expect_ok(tarn_store_put_if_absent(store, t->op, key, S("second"), &created));
    expect_false(created);
    expect_object(t, store, key, "first");
    expect_str(listed(t, store, "", true), "db.db/t/snapshot/snapshot-1 5");
    expect_ok(tarn_store_remove(store, t->op, key));
    expect_ok(tarn_store_put_if_absent(store, t->op, key, S("third"), &created));
    expect_true(created);
}

/* ---- the race ---- */

#define RACERS 16
#define ROUNDS 40

struct racer {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct tarn_store *store;
    int id;
    bool won[ROUNDS];
    bool failed;
};

static const char *race_body(char *out, size_t size, int racer, int round)
{
    snprintf(out, size, "racer %d in round %d", racer, round);
    return out;
}

static void *race(void *arg)
{
    struct racer *racer = arg;
    for (int round = 0; round < ROUNDS; round++) {
        char key[64], body[64];
        struct tarn_op op;
        tarn_op_init(&op);
        snprintf(key, sizeof key, "race/%d/snapshot-%d", round / 8, round);
        race_body(body, sizeof body, racer->id, round);
        pthread_barrier_wait(racer->barrier);
        struct tarn_status *status =
            tarn_store_put_if_absent(racer->store, &op, key, S(body), &racer->won[round]);
        racer->failed |= status != TARN_OK;
        tarn_status_free(status);
        tarn_op_fini(&op);
    }
    return NULL;
}

void conformance_put_if_absent_has_one_winner(struct tarn_test *t, struct tarn_store *store)
{
    pthread_barrier_t barrier;
    struct racer racers[RACERS] = {0};
    pthread_barrier_init(&barrier, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
        racers[i].barrier = &barrier;
        racers[i].store = store;
        racers[i].id = i;
        pthread_create(&racers[i].thread, NULL, race, &racers[i]);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(racers[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    for (int round = 0; round < ROUNDS; round++) {
        int winner = -1, winner_count = 0;
        char key[64], body[64];
        for (int i = 0; i < RACERS; i++) {
            expect_false(racers[i].failed);
            winner_count += racers[i].won[round];
            winner = racers[i].won[round] ? i : winner;
        }
        expect_int(winner_count, 1);
        snprintf(key, sizeof key, "race/%d/snapshot-%d", round / 8, round);
        expect_object(t, store, key, race_body(body, sizeof body, winner, round));
    }
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(store, t->op, "race", true, &objects, &count));
    expect_int(count, ROUNDS); /* the losers left nothing */
}

/* ---- writers ---- */

void conformance_writers_publish_whole_or_nothing(struct tarn_test *t, struct tarn_store *store)
{
    struct tarn_store_writer *writer = NULL;
    expect_ok(tarn_store_writer_open(store, t->op, "t/bucket-0/data-1.parquet", &writer));
    expect_ok(tarn_store_writer_append(writer, t->op, S("one ")));
    expect_absent(t, store, "t/bucket-0/data-1.parquet");
    expect_ok(tarn_store_writer_append(writer, t->op, S("two")));
    expect_absent(t, store, "t/bucket-0/data-1.parquet");
    expect_ok(tarn_store_writer_finish(writer, t->op));
    expect_object(t, store, "t/bucket-0/data-1.parquet", "one two");
    expect_str(listed(t, store, "", true), "t/bucket-0/data-1.parquet 7");

    expect_ok(tarn_store_writer_open(store, t->op, "t/empty", &writer));
    expect_ok(tarn_store_writer_finish(writer, t->op));
    expect_object(t, store, "t/empty", "");
}

void conformance_abort_leaves_nothing(struct tarn_test *t, struct tarn_store *store)
{
    struct tarn_store_writer *writer = NULL;
    expect_ok(tarn_store_writer_open(store, t->op, "t/f", &writer));
    expect_ok(tarn_store_writer_append(writer, t->op, S("lost")));
    tarn_store_writer_abort(writer);
    tarn_store_writer_abort(NULL);
    expect_str(listed(t, store, "", true), "");
}

void conformance_finish_does_not_replace(struct tarn_test *t, struct tarn_store *store)
{
    struct tarn_store_writer *writer = NULL;
    expect_ok(tarn_store_writer_open(store, t->op, "t/f", &writer));
    expect_ok(tarn_store_writer_append(writer, t->op, S("mine")));
    put(t, store, "t/f", "theirs");
    expect_status(tarn_store_writer_finish(writer, t->op), TARN_OBJECT_EXISTS, "t/f");
    expect_object(t, store, "t/f", "theirs");
    expect_str(listed(t, store, "", true), "t/f 6");
}

struct observer {
    struct tarn_store *store;
    atomic_bool stop;
    int half_seen;
    int seen;
};

#define OBSERVED_SIZE ((size_t)100000)

/* Looks as long as somebody writes: all of one letter, whole, or nothing. */
static void *observe(void *arg)
{
    struct observer *observer = arg;
    while (!atomic_load(&observer->stop)) {
        struct tarn_op op;
        TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
        tarn_op_init(&op);
        struct tarn_status *status = tarn_store_get(observer->store, &op, "t/f", &got);
        if (status == TARN_OK) {
            observer->seen++;
            if (got.size != OBSERVED_SIZE || memchr("abcdefgh", got.data[0], 8) == NULL ||
                memcmp(got.data, got.data + 1, got.size - 1) != 0)
                observer->half_seen++;
        } else if (tarn_status_reason(status) != TARN_OBJECT_NOT_FOUND) {
            observer->half_seen++;
        }
        tarn_status_free(status);
        tarn_op_fini(&op);
    }
    return NULL;
}

void conformance_readers_see_nothing_half_written(struct tarn_test *t, struct tarn_store *store)
{
    pthread_t thread;
    bool created;
    struct observer observer = {.store = store};
    uint8_t *bytes = tarn_arena_alloc(t->arena, OBSERVED_SIZE);
    pthread_create(&thread, NULL, observe, &observer);
    struct tarn_status *failure = TARN_OK;
    for (int i = 0; i < 60 && failure == TARN_OK; i++) {
        struct tarn_slice body = tarn_slice_of(bytes, OBSERVED_SIZE);
        memset(bytes, "abcdefgh"[i % 8], OBSERVED_SIZE);
        failure = i % 3 == 0   ? tarn_store_put(store, t->op, "t/f", body)
                  : i % 3 == 1 ? tarn_store_remove(store, t->op, "t/f")
                               : tarn_store_put_if_absent(store, t->op, "t/f", body, &created);
    }
    atomic_store(&observer.stop, true);
    pthread_join(thread, NULL);
    expect_ok(failure);
    expect_int(observer.half_seen, 0);
}

/* ---- readers ---- */

void conformance_read_at_is_bounded_by_the_object(struct tarn_test *t, struct tarn_store *store)
{
    uint8_t out[16];
    size_t got = 99;
    struct tarn_store_reader *reader = NULL;
    put(t, store, "f", "0123456789");
    expect_ok(tarn_store_reader_open(store, t->op, "f", &reader));
    expect_int(tarn_store_reader_size(reader), 10);
    expect_ok(tarn_store_reader_read_at(reader, t->op, 3, 4, out, &got));
    expect_slice(tarn_slice_of(out, got), "3456");
    expect_ok(tarn_store_reader_read_at(reader, t->op, 8, 16, out, &got));
    expect_slice(tarn_slice_of(out, got), "89");
    expect_ok(tarn_store_reader_read_at(reader, t->op, 10, 16, out, &got));
    expect_int(got, 0);
    expect_ok(tarn_store_reader_read_at(reader, t->op, INT64_MAX, SIZE_MAX, out, &got));
    expect_int(got, 0);
    expect_status(tarn_store_reader_read_at(reader, t->op, -1, 1, out, &got), TARN_INVALID_ARGUMENT,
                  "-1");
    tarn_store_reader_close(reader);
    tarn_store_reader_close(NULL);
}

void conformance_an_open_reader_outlives_removal(struct tarn_test *t, struct tarn_store *store)
{
    uint8_t out[8];
    size_t got = 0;
    struct tarn_store_reader *reader = NULL;
    put(t, store, "f", "first");
    expect_ok(tarn_store_reader_open(store, t->op, "f", &reader));
    put(t, store, "f", "other");
    expect_ok(tarn_store_remove(store, t->op, "f"));
    expect_ok(tarn_store_reader_read_at(reader, t->op, 0, 8, out, &got));
    expect_slice(tarn_slice_of(out, got), "first");
    tarn_store_reader_close(reader);
}

/* ---- removal and lists ---- */

void conformance_remove_of_nothing_is_fine(struct tarn_test *t, struct tarn_store *store)
{
    put(t, store, "a/b", "x");
    expect_ok(tarn_store_remove(store, t->op, "a/c"));
    expect_ok(tarn_store_remove(store, t->op, "no/such/folder"));
    expect_ok(tarn_store_remove(store, t->op, "a/b/c"));
    expect_ok(tarn_store_remove(store, t->op, "a/b"));
    expect_ok(tarn_store_remove(store, t->op, "a/b"));
    expect_str(listed(t, store, "", true), "");
}

void conformance_remove_many_removes_all(struct tarn_test *t, struct tarn_store *store)
{
    enum { COUNT = 70 };
    const char *keys[COUNT + 2];
    expect_ok(tarn_store_remove_many(store, t->op, NULL, 0));
    put(t, store, "t/kept", "x");
    put(t, store, "t/f/g", "x");
    for (int i = 0; i < COUNT; i++) {
        keys[i] = tarn_arena_printf(t->arena, "t/%d/f-%d", i % 3, i);
        put(t, store, keys[i], "x");
    }
    keys[COUNT] = "no/such";
    keys[COUNT + 1] = "t/kept/below";
    expect_ok(tarn_store_remove_many(store, t->op, keys, COUNT + 2));
    expect_str(listed(t, store, "", true), "t/f/g 1 t/kept 1");
    keys[0] = "..";
    expect_status(tarn_store_remove_many(store, t->op, keys, 1), TARN_PATH_INVALID, "..");
}

void conformance_list_is_in_order_of_key(struct tarn_test *t, struct tarn_store *store)
{
    put(t, store, "d/b/2", "22");
    put(t, store, "d/a.x", "1");
    put(t, store, "d/a/z", "333");
    put(t, store, "d/a/y/x", "4444");
    put(t, store, "d/\xc3\xa9", "");
    put(t, store, "da", "no");
    put(t, store, "d.z", "no");
    expect_str(listed(t, store, "d", false), "d/a/ d/a.x 1 d/b/ d/\xc3\xa9 0");
    expect_str(listed(t, store, "d", true), "d/a.x 1 d/a/y/x 4 d/a/z 3 d/b/2 2 d/\xc3\xa9 0");
    expect_str(listed(t, store, "", false), "d/ d.z 2 da 2");
    expect_str(listed(t, store, "d/a", false), "d/a/y/ d/a/z 3");
}

void conformance_list_shows_hidden_names(struct tarn_test *t, struct tarn_store *store)
{
    put(t, store, "t/.tarn-table", "u");
    put(t, store, ".tarn/owner", "o");
    expect_str(listed(t, store, "", true), ".tarn/owner 1 t/.tarn-table 1");
    expect_str(listed(t, store, "", false), ".tarn/ t/");
}

void conformance_list_of_nothing_is_empty(struct tarn_test *t, struct tarn_store *store)
{
    expect_str(listed(t, store, "", true), "");
    expect_str(listed(t, store, "no/such", false), "");
    put(t, store, "f", "x");
    expect_str(listed(t, store, "f", false), ""); /* an object is no folder */
}

/* ---- keys ---- */

static void expect_no_key(struct tarn_test *t, struct tarn_store *store, const char *key,
                          const char *why)
{
    bool flag;
    struct tarn_object *objects;
    size_t count;
    struct tarn_store_reader *reader;
    struct tarn_store_writer *writer;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_status(tarn_store_get(store, t->op, key, &got), TARN_PATH_INVALID, why);
    expect_status(tarn_store_put(store, t->op, key, S("x")), TARN_PATH_INVALID, why);
    expect_status(tarn_store_put_if_absent(store, t->op, key, S("x"), &flag), TARN_PATH_INVALID,
                  why);
    expect_status(tarn_store_stat(store, t->op, key, &flag, NULL), TARN_PATH_INVALID, why);
    expect_status(tarn_store_remove(store, t->op, key), TARN_PATH_INVALID, why);
    expect_status(tarn_store_reader_open(store, t->op, key, &reader), TARN_PATH_INVALID, why);
    expect_status(tarn_store_writer_open(store, t->op, key, &writer), TARN_PATH_INVALID, why);
    expect_status(tarn_store_move_folder(store, t->op, key, "to"), TARN_PATH_INVALID, why);
    expect_status(tarn_store_move_folder(store, t->op, "from", key), TARN_PATH_INVALID, why);
    if (key[0] == '\0')
        return; /* the root may be listed and pruned */
    expect_status(tarn_store_list(store, t->op, key, true, &objects, &count), TARN_PATH_INVALID,
                  why);
    expect_status(tarn_store_prune(store, t->op, key), TARN_PATH_INVALID, why);
}

void conformance_keys_that_are_none_are_refused(struct tarn_test *t, struct tarn_store *store)
{
    expect_no_key(t, store, "", "empty");
    expect_no_key(t, store, "/etc/passwd", "empty segment");
    expect_no_key(t, store, "a//b", "empty segment");
    expect_no_key(t, store, "a/", "empty segment");
    expect_no_key(t, store, "..", "'..'");
    expect_no_key(t, store, "../a", "'..'");
    expect_no_key(t, store, "a/../../b", "'..'");
    expect_no_key(t, store, "a/..", "'..'");
    expect_no_key(t, store, "./a", "'.'");
    expect_no_key(t, store, "a/./b", "'.'");
    expect_no_key(t, store, "a/\xff", "UTF-8");
    expect_no_key(t, store, "a/\xc0\xae\xc0\xae/b", "UTF-8"); /* ".." in overlong UTF-8 */
    char long_name[300];
    memset(long_name, 'n', 256);
    long_name[256] = '\0';
    expect_no_key(t, store, tarn_arena_printf(t->arena, "a/%s/b", long_name), "256 bytes");
    char *long_key = tarn_arena_alloc(t->arena, 10001);
    for (int i = 0; i < 10000; i++)
        long_key[i] = i % 2 == 0 ? 'k' : '/';
    long_key[9999] = 'k';
    long_key[10000] = '\0';
    expect_no_key(t, store, long_key, "longer");
    /* names that only look like it */
    put(t, store, "..a/...", "x");
    expect_object(t, store, "..a/...", "x");
}

void conformance_longest_names_work(struct tarn_test *t, struct tarn_store *store)
{
    char name[256];
    bool created = false;
    struct tarn_store_writer *writer = NULL;
    for (int i = 0; i < 254; i += 2)
        memcpy(name + i, "\xc3\xa9", 2); /* two bytes each, so that a cut may fall inside one */
    name[254] = 'x';
    name[255] = '\0';
    put(t, store, tarn_arena_printf(t->arena, "%s/%s", name, name), "1");
    const char *key = tarn_arena_printf(t->arena, "a/%s", name);
    expect_ok(tarn_store_put_if_absent(store, t->op, key, S("2"), &created));
    expect_true(created);
    expect_object(t, store, key, "2");
    key = tarn_arena_printf(t->arena, "b/%s", name);
    expect_ok(tarn_store_writer_open(store, t->op, key, &writer));
    expect_ok(tarn_store_writer_finish(writer, t->op));
    expect_object(t, store, key, "");
}

/* Paimon escapes names of partitions ("dt=2024-01-01 10%3A00"), and what it escapes comes as it is. */
void conformance_names_are_taken_as_they_are(struct tarn_test *t, struct tarn_store *store)
{
    static const char *const names[] = {
        "dt=2024-01-01 10%3A00",
        "%41",
        "a+b",
        "a b",
        "a&b=c",
        "a#b",
        "a?b",
        "a;b",
        "a'b\"c",
        "a,b~c!d@e$f",
        "(a)[b]{c}",
        "a*b^c|d<e>`f",
        "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80",
    };
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        bool created = false;
        struct tarn_store_reader *reader = NULL;
        const char *folder = tarn_arena_printf(t->arena, "t/%s", names[i]);
        const char *key = tarn_arena_printf(t->arena, "%s/%s", folder, names[i]);
        const char *moved = tarn_arena_printf(t->arena, "u/%s", names[i]);
        put(t, store, key, names[i]);
        expect_object(t, store, key, names[i]);
        expect_ok(tarn_store_put_if_absent(store, t->op, key, S("y"), &created));
        expect_false(created);
        expect_ok(tarn_store_reader_open(store, t->op, key, &reader));
        tarn_store_reader_close(reader);
        expect_str(listed(t, store, "t", true),
                   tarn_arena_printf(t->arena, "%s %zu", key, strlen(names[i])));
        expect_ok(tarn_store_move_folder(store, t->op, folder, moved));
        expect_object(t, store, tarn_arena_printf(t->arena, "%s/%s", moved, names[i]), names[i]);
    }
}

/* Stores that are far away may see only in the end that it can't be. */
static struct tarn_status *write_whole(struct tarn_test *t, struct tarn_store *store,
                                       const char *key)
{
    struct tarn_store_writer *writer = NULL;
    TARN_TRY(tarn_store_writer_open(store, t->op, key, &writer));
    struct tarn_status *status = tarn_store_writer_append(writer, t->op, S("y"));
    if (status == TARN_OK)
        return tarn_store_writer_finish(writer, t->op);
    tarn_store_writer_abort(writer);
    return status;
}

void conformance_objects_and_folders_exclude_each_other(struct tarn_test *t,
                                                        struct tarn_store *store)
{
    bool created = true;
    put(t, store, "a/b", "x");
    expect_status(tarn_store_put(store, t->op, "a", S("y")), TARN_PATH_INVALID, "a");
    expect_status(tarn_store_put_if_absent(store, t->op, "a", S("y"), &created), TARN_PATH_INVALID,
                  "folder");
    expect_false(created);
    expect_status(tarn_store_put_if_absent(store, t->op, "a/b/c", S("y"), &created),
                  TARN_PATH_INVALID, "a/b");
    expect_status(tarn_store_put(store, t->op, "a/b/c/d", S("y")), TARN_PATH_INVALID, "a/b");
    expect_status(write_whole(t, store, "a"), TARN_PATH_INVALID, "a");
    expect_status(write_whole(t, store, "a/b/c"), TARN_PATH_INVALID, "a/b");
    struct tarn_new_object many[] = {{.key = "c", .body = S("1")}, {.key = "a", .body = S("2")}};
    expect_status(tarn_store_put_many(store, t->op, many, 2), TARN_PATH_INVALID, "a");
    expect_ok(tarn_store_remove(store, t->op, "c")); /* whether it is there isn't said */
    expect_str(listed(t, store, "", true), "a/b 1");
}

/* ---- folders ---- */

void conformance_move_folder_moves_all_or_refuses(struct tarn_test *t, struct tarn_store *store)
{
    put(t, store, "db.db/t/schema/schema-0", "s");
    put(t, store, "db.db/t/snapshot/snapshot-1", "1");
    put(t, store, "db.db/t2/f", "other");
    put(t, store, "db.db/f", "file");
    expect_status(tarn_store_move_folder(store, t->op, "db.db/t", "db.db/t2"), TARN_OBJECT_EXISTS,
                  "db.db/t2");
    expect_status(tarn_store_move_folder(store, t->op, "db.db/t", "db.db/f"), TARN_OBJECT_EXISTS,
                  "db.db/f");
    expect_status(tarn_store_move_folder(store, t->op, "db.db/no", "db.db/t3"),
                  TARN_OBJECT_NOT_FOUND, "db.db/no");
    expect_status(tarn_store_move_folder(store, t->op, "no.db/no", "db.db/t3"),
                  TARN_OBJECT_NOT_FOUND, "no.db/no");
    expect_status(tarn_store_move_folder(store, t->op, "db.db/f", "db.db/t3"),
                  TARN_OBJECT_NOT_FOUND, "db.db/f");
    expect_status(tarn_store_move_folder(store, t->op, "db.db/t", "db.db/t/below"),
                  TARN_PATH_INVALID, "itself");
    expect_status(tarn_store_move_folder(store, t->op, "db.db/t", "db.db/t"), TARN_PATH_INVALID,
                  "itself");
    expect_ok(tarn_store_move_folder(store, t->op, "db.db/t", "new.db/t3"));
    expect_str(listed(t, store, "", true), "db.db/f 4 db.db/t2/f 5 new.db/t3/schema/schema-0 1 "
                                           "new.db/t3/snapshot/snapshot-1 1");
    expect_absent(t, store, "db.db/t/schema/schema-0");
}

void conformance_prune_keeps_what_holds_something(struct tarn_test *t, struct tarn_store *store)
{
    put(t, store, "t/a/b/c", "x");
    put(t, store, "t/a/d/e", "y");
    put(t, store, "t/f", "z");
    expect_ok(tarn_store_remove(store, t->op, "t/a/b/c"));
    expect_ok(tarn_store_prune(store, t->op, "t"));
    expect_str(listed(t, store, "t/a", false), "t/a/d/");
    expect_str(listed(t, store, "t", true), "t/a/d/e 1 t/f 1");
    expect_ok(tarn_store_remove(store, t->op, "t/a/d/e"));
    expect_ok(tarn_store_remove(store, t->op, "t/f"));
    expect_ok(tarn_store_prune(store, t->op, "t"));
    expect_str(listed(t, store, "", false), "");
    expect_ok(tarn_store_prune(store, t->op, "t"));
    expect_ok(tarn_store_prune(store, t->op, ""));
}

void conformance_a_cancelled_op_does_nothing(struct tarn_test *t, struct tarn_store *store)
{
    struct tarn_op op;
    bool created = false;
    struct tarn_store_writer *writer = NULL;
    expect_ok(tarn_store_writer_open(store, t->op, "w", &writer));
    tarn_op_init(&op);
    tarn_op_cancel(&op);
    expect_status(tarn_store_put_if_absent(store, &op, "f", S("x"), &created), TARN_CANCELLED, "");
    expect_status(tarn_store_put(store, &op, "f", S("x")), TARN_CANCELLED, "");
    expect_status(tarn_store_writer_finish(writer, &op), TARN_CANCELLED, "");
    tarn_op_fini(&op);
    expect_str(listed(t, store, "", true), "");
}
