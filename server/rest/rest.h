/*
 * rest - the door of Paimon's REST catalog protocol: JSON over room `http`, translated into operations of `service`.
 *
 * Shape    /v1/config, and all else below /v1/{prefix}/, where the prefix is the warehouse's name, which the config gives to
 *          clients. An endpoint of the protocol that Tarn doesn't have yet answers 501, and so does what no version known here
 *          has: clients fall back from that where they can. docs/rest.md says which is which.
 * Errors   {"message", "resourceType", "resourceName", "code"}. Clients read 404 and 409 by the type, take 409 for "exists
 *          already" and nothing else, and send again what was answered 429 or 503: these are said only of what was surely
 *          not done (errors.c).
 * Bodies   JSON, whatever Content-Type says. Keys that aren't known and nulls are passed over, integers are exact.
 * Memory   routes and what they point at live as long as the struct, which outlives the server.
 * Threads  any.
 * Source   Paimon's REST catalog, clients 1.2 to 2.1; test/interop/rest_*.py runs the real ones.
 */
#ifndef TARN_REST_H
#define TARN_REST_H

#include "http/http.h"

struct tarn_rest;
struct tarn_rest *tarn_rest_new(struct tarn_service *service);
void tarn_rest_free(struct tarn_rest *rest); /* NULL is fine */
const struct tarn_http_route *tarn_rest_routes(const struct tarn_rest *rest, size_t *count);
/* For tarn_http_options: of paths below /v1/ in the protocol's shape, else a line of text. */
void tarn_rest_print_error(void *self, const struct tarn_http_request *request,
                           const struct tarn_status *status, struct tarn_http_response *response);

#endif
