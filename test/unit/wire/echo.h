/*
 * echo - a server of all kinds of method, for the tests of room wire. Requests are plain text.
 *
 *   /t.Echo/Unary    answers "<request>"                 /t.Echo/Collect  joins all requests
 *   /t.Echo/Repeat   "N SIZE": N messages of SIZE bytes  /t.Echo/Chat     each request back at once
 *   /t.Echo/Fail     the status REASON of "REASON TEXT"  /t.Echo/Wait     until its op is cancelled
 *   /t.Echo/Sleep    "MS", heeding nothing               /t.Echo/Who      "id|principal|peer|x-test"
 */
#ifndef TARN_TEST_WIRE_ECHO_H
#define TARN_TEST_WIRE_ECHO_H

#include <pthread.h>

#include "test.h"

#include "wire/wire.h"

struct echo {
    struct tarn_exec *exec;
    struct tarn_wire_server *server;
    struct tarn_channel *channel;
    atomic_int running;         /* methods that run now */
    atomic_int clean_end_count; /* Collect saw the end of its stream */
    atomic_int broken_count;    /* Collect saw its stream break */
    atomic_int last_reason;     /* with which the last Wait or Repeat ended */
    atomic_long written;        /* messages Repeat has handed over */
};

/* `tune` may change the options before the start; NULL: none. */
void echo_start(struct echo *echo, void (*tune)(struct tarn_wire_server_options *options));
void echo_stop(struct echo *echo);

struct tarn_message *text_message(const char *text);
/* A unary call with text; the answer in t->arena. */
struct tarn_status *echo_ask(struct tarn_test *t, struct echo *echo, const char *path,
                             const char *text, const char **answer);
const char *message_text(struct tarn_test *t, struct tarn_message *consumed);
/* Waits up to 5 s until *value is `wanted`. */
bool comes_to(atomic_int *value, int wanted);

#endif
