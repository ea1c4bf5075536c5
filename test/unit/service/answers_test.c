/*
 * Promise: a request with an id is carried out once for an hour, its answer given again; other
 * callers, methods and ids are other requests; what failed is carried out anew; memory is bounded.
 */
#include "fixture.h"

#include <pthread.h>
#include <unistd.h>

static struct tarn_answer *begin(struct tarn_test *t, struct tarn_answers *answers, const char *id,
                                 const char *request, struct tarn_slice *answer)
{
    struct tarn_answer *ticket = NULL;
    expect_ok(tarn_answers_begin(t->op, answers, "/m", S(id), S(request), &ticket, answer));
    return ticket;
}

TARN_TEST(answers, are_given_again)
{
    struct tarn_answers *answers = tarn_answers_new();
    struct tarn_slice answer;
    t->op->principal = "ann";
    struct tarn_answer *ticket = begin(t, answers, "1", "do", &answer);
    expect_not_null(ticket);
    tarn_answers_keep(ticket, S("done"));
    expect_null(begin(t, answers, "1", "do", &answer));
    expect_slice(answer, "done");
    expect_status(tarn_answers_begin(t->op, answers, "/m", S("1"), S("other"), &ticket, &answer),
                  TARN_INVALID_ARGUMENT, "request_id 1");
    ticket = begin(t, answers, "2", "do", &answer);
    expect_not_null(ticket);
    tarn_answers_forget(ticket);
    t->op->principal = "bob";
    ticket = begin(t, answers, "1", "do", &answer);
    expect_not_null(ticket);
    tarn_answers_forget(ticket);
    tarn_answers_free(answers);
}

TARN_TEST(answers, of_failures_are_not_kept)
{
    struct tarn_answers *answers = tarn_answers_new();
    struct tarn_slice answer;
    for (int i = 0; i < 3; i++)
        tarn_answers_forget(begin(t, answers, "1", "do", &answer));
    tarn_answers_forget(NULL);
    tarn_answers_free(answers);
}

TARN_TEST(answers, are_forgotten_after_an_hour)
{
    struct tarn_answers *answers = tarn_answers_new();
    struct tarn_slice answer;
    tarn_clock_fake(1000000000);
    tarn_answers_keep(begin(t, answers, "1", "do", &answer), S("done"));
    tarn_clock_fake(1000000000 + TARN_ANSWER_RETAIN_MS - 1);
    expect_null(begin(t, answers, "1", "do", &answer));
    tarn_clock_fake(1000000000 + TARN_ANSWER_RETAIN_MS + 1);
    struct tarn_answer *ticket = begin(t, answers, "1", "do", &answer);
    expect_not_null(ticket);
    tarn_answers_keep(ticket, S("done anew"));
    tarn_answers_free(answers);
}

TARN_TEST(answers, are_bounded_and_the_oldest_go_first)
{
    struct tarn_answers *answers = tarn_answers_new();
    struct tarn_slice answer;
    char id[16];
    for (int i = 0; i < TARN_ANSWERS_MAX + 5; i++) {
        snprintf(id, sizeof id, "%d", i);
        tarn_answers_keep(begin(t, answers, id, "do", &answer), S("x"));
    }
    expect_null(begin(t, answers, "5", "do", &answer));
    struct tarn_answer *ticket = begin(t, answers, "4", "do", &answer);
    expect_not_null(ticket);
    tarn_answers_forget(ticket);
    /* and by bytes */
    uint8_t *large = tarn_calloc(1, TARN_ANSWERS_BYTES_MAX);
    tarn_answers_keep(begin(t, answers, "large", "do", &answer),
                      tarn_slice_of(large, TARN_ANSWERS_BYTES_MAX - 2));
    free(large);
    expect_null(begin(t, answers, "large", "do", &answer));
    ticket = begin(t, answers, "100", "do", &answer);
    expect_not_null(ticket);
    tarn_answers_forget(ticket);
    tarn_answers_free(answers);
}

TARN_TEST(answers, refuse_a_long_id)
{
    struct tarn_answers *answers = tarn_answers_new();
    struct tarn_answer *ticket = NULL;
    struct tarn_slice answer;
    struct tarn_slice id = tarn_test_random_bytes(t, 129);
    expect_status(tarn_answers_begin(t->op, answers, "/m", id, S(""), &ticket, &answer),
                  TARN_INVALID_ARGUMENT, "request_id");
    tarn_answers_free(answers);
}

/* --- at the same time --- */

struct crowd {
    struct tarn_answers *answers;
    atomic_int carried_out, heard;
    bool first_fails;
};

static void *one_of_many(void *arg)
{
    struct crowd *c = arg;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_answer *ticket;
    struct tarn_slice answer = {0};
    if (tarn_answers_begin(&op, c->answers, "/m", S("id"), S("do"), &ticket, &answer) != TARN_OK)
        return NULL;
    if (ticket == NULL) {
        atomic_fetch_add(&c->heard, tarn_slice_is(answer, "done"));
        return NULL;
    }
    usleep(20000);
    if (atomic_fetch_add(&c->carried_out, 1) == 0 && c->first_fails)
        tarn_answers_forget(ticket);
    else
        tarn_answers_keep(ticket, S("done"));
    return NULL;
}

static void run_crowd(struct crowd *c)
{
    pthread_t threads[16];
    c->answers = tarn_answers_new();
    for (size_t i = 0; i < TARN_COUNT_OF(threads); i++)
        pthread_create(&threads[i], NULL, one_of_many, c);
    for (size_t i = 0; i < TARN_COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    tarn_answers_free(c->answers);
}

TARN_TEST(answers, sixteen_at_once_are_one)
{
    struct crowd c = {0};
    run_crowd(&c);
    expect_int(c.carried_out, 1);
    expect_int(c.heard, 15);
}

TARN_TEST(answers, when_the_first_fails_one_of_the_waiting_goes_on)
{
    struct crowd c = {.first_fails = true};
    run_crowd(&c);
    expect_int(c.carried_out, 2);
    expect_int(c.heard, 14);
}

TARN_TEST(answers, who_waits_may_give_up)
{
    struct tarn_answers *answers = tarn_answers_new();
    struct tarn_slice answer;
    struct tarn_answer *first = begin(t, answers, "1", "do", &answer), *second = NULL;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    op.deadline_mono_ms = tarn_clock_mono_ms() + 20;
    expect_status(tarn_answers_begin(&op, answers, "/m", S("1"), S("do"), &second, &answer),
                  TARN_DEADLINE_EXCEEDED, "");
    expect_null(second);
    tarn_answers_keep(first, S("done"));
    tarn_answers_free(answers);
}
