/*
 * Promise: what is asked at once goes side by side: large reads of one reader by several threads take the time of one; and
 * those who were refused together don't come back together: the time to the next try is random, below a bound that grows.
 */
#include "s3_fixture.h"

#include <pthread.h>

#define READERS 6
#define PART ((int64_t)2 << 20)

struct part {
    struct tarn_store_reader *reader;
    pthread_t thread;
    int64_t offset;
    uint8_t *bytes;
    enum tarn_reason reason;
    size_t got;
};

static void *read_part(void *arg)
{
    struct part *p = arg;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_status *s =
        tarn_store_reader_read_at(p->reader, &op, p->offset, PART, p->bytes, &p->got);
    p->reason = tarn_status_reason(s);
    tarn_status_free(s);
    return NULL;
}

TARN_TEST(s3_many, reads_of_one_object_go_side_by_side)
{
    struct s3_fixture f;
    struct tarn_store_reader *reader;
    struct part parts[READERS];
    struct tarn_slice bytes = tarn_test_random_bytes(t, (size_t)(READERS * PART));
    s3_start(t, &f, "", "");
    expect_ok(tarn_store_put(f.store, t->op, "f", bytes));
    expect_ok(tarn_store_reader_open(f.store, t->op, "f", &reader));
    expect_str(
        fake_server_ask(t, &f.fake, "rules [{\"do\": \"slow\", \"ms\": 400, \"method\": \"GET\"}]"),
        "ok");
    int64_t begun = tarn_clock_mono_ms();
    for (int i = 0; i < READERS; i++) {
        parts[i] = (struct part){
            .reader = reader, .offset = i * PART, .bytes = tarn_arena_alloc(t->arena, PART)};
        expect_int(pthread_create(&parts[i].thread, NULL, read_part, &parts[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(parts[i].thread, NULL);
        expect_int(parts[i].reason, TARN_NO_REASON);
        expect_bytes(tarn_slice_of(parts[i].bytes, parts[i].got),
                     tarn_slice_of(bytes.data + parts[i].offset, PART));
    }
    int64_t took = tarn_clock_mono_ms() - begun;
    expect_true(took >= 400 && took < 400 * READERS * 3 / 4);
    expect_int(fake_server_count(t, &f.fake, "GET", "/f"),
               READERS + 1); /* and the one that opened it */
    tarn_store_reader_close(reader);
    s3_stop(&f);
}

TARN_TEST(s3_many, that_were_refused_together_come_back_at_random)
{
    enum { TRIES = 12, BOUND_MS = 100 + 200 + 400 };
    struct s3_fixture f;
    int64_t least = INT64_MAX, most = 0;
    s3_start(t, &f, "", "");
    expect_ok(tarn_store_put(f.store, t->op, "f", tarn_slice_str("x")));
    for (int i = 0; i < TRIES; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
        expect_str(fake_server_ask(t, &f.fake,
                                   "rules [{\"do\": \"answer\", \"status\": 503, \"count\": 3}]"),
                   "ok");
        int64_t begun = tarn_clock_mono_ms();
        expect_ok(tarn_store_get(f.store, t->op, "f", &got));
        int64_t took = tarn_clock_mono_ms() - begun;
        least = TARN_MIN(least, took);
        most = TARN_MAX(most, took);
    }
    expect_true(most < BOUND_MS + 1500); /* what a busy machine adds */
    expect_true(most - least > 60);      /* 1 in 10^9 by chance */
    s3_stop(&f);
}
