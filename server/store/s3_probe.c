/*
 * s3_probe - does the store keep its promises? Asked once at start, on a key of our own below .tarn/.
 *
 * RACERS conditional PUTs at the same time: one is created, all others are refused, and the one that was created
 * is what is read and listed afterwards. A store that ignores the condition (200 to each), doesn't know it
 * (501, 400) or looks before it puts (two winners) would lose commits.
 */
#include "store/s3.h"

#define RACERS 8
#define TRIES_MAX 3 /* where the network was too bad to tell */
#define WHAT_IT_MEANS                                                                               \
    "two writers could replace each other's commits there. If nobody but this daemon ever commits " \
    "to the warehouse, no other daemon, engine or job, set s3.conditional_put = single_writer"

static const char *racer_body(struct tarn_op *op, size_t racer)
{
    return tarn_arena_printf(op->arena, "racer %zu", racer);
}

static struct tarn_status *unfit(const struct tarn_s3 *s3, const char *what)
{
    return tarn_status_new(TARN_CONFIG_INVALID,
                           "the store at %s has no conditional PUT: %s; " WHAT_IT_MEANS,
                           s3->settings.endpoint, what);
}

/* Refusals of the header itself, not of the request. */
static bool is_unknown_header(const struct tarn_s3_request *request)
{
    enum tarn_reason reason = tarn_status_reason(request->failure);
    return reason == TARN_UNIMPLEMENTED ||
           (reason == TARN_IO_ERROR && request->http.status / 100 == 4);
}

static struct tarn_status *race(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                struct tarn_s3_request *requests, size_t *winner, bool *ambiguous)
{
    size_t won = 0;
    for (size_t i = 0; i < RACERS; i++) {
        requests[i] = (struct tarn_s3_request){
            .method = "PUT", .key = key, .body = tarn_slice_str(racer_body(op, i))};
        tarn_s3__add_header(&requests[i], "if-none-match", "*");
    }
    tarn_s3__ask_all(s3, op, requests, RACERS);
    for (size_t i = 0; i < RACERS; i++) {
        if (is_unknown_header(&requests[i]))
            return unfit(s3, tarn_status_message(requests[i].failure));
        TARN_TRY(tarn_move(requests[i].failure));
        *ambiguous = *ambiguous || requests[i].ambiguous;
        if (requests[i].status / 100 == 2) {
            *winner = i;
            won++;
        }
    }
    /* The network was bad; a store that ignores the condition answers 200 all the same. */
    if (*ambiguous && won <= 1)
        return tarn_status_new(TARN_STORE_UNAVAILABLE,
                               "the store at %s answered too badly to tell whether it keeps its "
                               "promises",
                               s3->settings.endpoint);
    if (won > 1)
        return unfit(s3, tarn_arena_printf(op->arena,
                                           "of %d PUTs of one object with If-None-Match: *, %zu "
                                           "were told that they created it",
                                           RACERS, won));
    return won == 1 ? TARN_OK : unfit(s3, "a PUT with If-None-Match: * created nothing");
}

static struct tarn_status *check_object(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                        const char *want)
{
    struct tarn_object *objects;
    size_t count, seen = 0;
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "GET", .key = key};
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    if (request.status != 200 || !tarn_slice_is(tarn_buf_slice(&request.answer), want))
        return unfit(s3, "what was created first was replaced");
    TARN_TRY(tarn_s3__list(s3, op, ".tarn", false, &objects, &count));
    for (size_t i = 0; i < count; i++)
        seen += tarn_slice_is(objects[i].key, key);
    return seen == 1 ? TARN_OK
                     : tarn_status_new(TARN_CONFIG_INVALID,
                                       "the store at %s doesn't list what was just put",
                                       s3->settings.endpoint);
}

static struct tarn_status *probe_conditional(struct tarn_s3 *s3, struct tarn_op *op,
                                             const char *key, bool *ambiguous)
{
    size_t winner = 0;
    struct tarn_s3_request requests[RACERS] = {0};
    struct tarn_status *status = race(s3, op, key, requests, &winner, ambiguous);
    for (size_t i = 0; i < RACERS; i++)
        tarn_s3__request_drop(&requests[i]);
    TARN_TRY(status);
    return check_object(s3, op, key, racer_body(op, winner));
}

/* Whether it can be written, read and listed at all. */
static struct tarn_status *probe_plain(struct tarn_s3 *s3, struct tarn_op *op, const char *key)
{
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "PUT", .key = key, .body = tarn_slice_str("probe")};
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    return check_object(s3, op, key, "probe");
}

static struct tarn_status *probe_once(struct tarn_s3 *s3, struct tarn_op *op, bool *ambiguous)
{
    char id[TARN_UUID_SIZE];
    tarn_uuid_random(id);
    const char *key = tarn_arena_printf(op->arena, ".tarn/probe-%s", id);
    struct tarn_status *status = s3->settings.single_writer
                                     ? probe_plain(s3, op, key)
                                     : probe_conditional(s3, op, key, ambiguous);
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request removal = {.method = "DELETE", .key = key};
    struct tarn_status *removed = tarn_s3__ask(s3, op, &removal);
    if (status == TARN_OK)
        return removed;
    tarn_status_free(removed);
    return status;
}

struct tarn_status *tarn_s3__probe(void *self, struct tarn_op *op)
{
    for (int tries = 1;; tries++) {
        bool ambiguous = false;
        struct tarn_status *status = probe_once(self, op, &ambiguous);
        if (!ambiguous || tarn_status_reason(status) != TARN_STORE_UNAVAILABLE ||
            tries == TRIES_MAX)
            return status;
        tarn_status_free(status);
    }
}
