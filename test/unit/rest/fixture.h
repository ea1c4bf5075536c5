/* fixture - the routes of room rest over a service in memory, asked without a socket. */
#ifndef TARN_TEST_REST_FIXTURE_H
#define TARN_TEST_REST_FIXTURE_H

#include "../service/fixture.h"
#include "http/internal.h"
#include "rest/internal.h"

struct rest_fixture {
    struct fixture service; /* warehouse "w" with database "db" */
    struct tarn_rest *rest;
    struct tarn_http__routes *routes;
    const char *agent; /* User-Agent of the calls that follow, or NULL */
};
void rest_init(struct rest_fixture *f, struct tarn_test *t);
void rest_fini(struct rest_fixture *f);

/* target: behind "/v1/w", or all of it where it begins with "/v1/"; body "": none. The status' three digits, a blank, the
 * body. */
const char *rest_ask(struct rest_fixture *f, const char *method, const char *target,
                     const char *body);
/* The same in an op of the caller's, whose arena the answer lies in: for threads. */
const char *rest_ask_in(struct rest_fixture *f, struct tarn_op *op, const char *method,
                        const char *target, const char *body);
/* Makes table `name` of database "db"; schema: as JSON, with its braces. What is answered. */
const char *rest_create(struct rest_fixture *f, const char *name, const char *schema);
/* What is answered says this status and has this part. */
void rest_expect(const char *answer, int status, const char *part);

#endif
