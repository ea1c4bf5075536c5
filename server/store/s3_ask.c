/*
 * s3_ask - requests to the store, sent again where what went wrong may pass.
 *
 * Again    no answer, 5xx but 501, 429, 409 of a race, 400 RequestTimeout, an answer that isn't what it
 *          should be (half a list, an error under 200): after a random time up to DELAY_MIN_MS << n, or what Retry-After
 *          says. 401/403 with an expired or unknown key: at once, with keys fetched anew, once. A clock too
 *          far off: at once, with the store's time, once.
 * Budget   a retry costs RETRY_COST of at most TARN_S3_TOKENS_MAX tokens, a success brings one back: in an outage each
 *          call soon fails with its first attempt, and the store that comes back isn't trampled.
 * Several  requests at once are tried in rounds: what failed goes into the next one together.
 */
#include "store/s3.h"

#include <stdio.h>

#include "exec/exec.h"

#define DELAY_MIN_MS 50
#define DELAY_MAX_MS 5000
#define RETRY_AFTER_MAX_MS 30000
#define RETRY_COST 5.0
#define ERROR_SIZE_MAX ((size_t)64 << 10) /* what an error may need, however little was asked for */
#define UNHASHED_SIZE ((size_t)1 << 20) /* over TLS, larger bodies are signed without their hash */

enum verdict { DONE, FAILED, AGAIN, AGAIN_NOW };

/* What one request needs between its attempts. */
struct attempt {
    struct tarn_s3_request *request;
    struct tarn_s3_keys *keys; /* those it was last signed with */
    int try_count;
    bool renewed, reset_clock; /* each once */
    bool over;
    int64_t delay_ms;
    char *url; /* in the round's arena, as the headers */
    const char **headers;
};

/* --- requests --- */

void tarn_s3__add_query(struct tarn_s3_request *request, const char *name, struct tarn_slice value)
{
    tarn_assert(request->query_count < TARN_COUNT_OF(request->query));
    request->query[request->query_count++] = (struct tarn_pair){tarn_slice_str(name), value};
}

void tarn_s3__add_header(struct tarn_s3_request *request, const char *name, const char *value)
{
    tarn_assert(request->header_count < TARN_COUNT_OF(request->headers));
    request->headers[request->header_count++] =
        (struct tarn_pair){tarn_slice_str(name), tarn_slice_str(value)};
}

void tarn_s3__request_drop(struct tarn_s3_request *request)
{
    tarn_buf_drop(&request->answer);
    tarn_status_drop(&request->failure);
}

char *tarn_s3__full_key(const struct tarn_s3 *s3, struct tarn_op *op, const char *key)
{
    const char *prefix = s3->settings.prefix;
    return tarn_arena_printf(op->arena, "%s%s%s", prefix,
                             prefix[0] != '\0' && key[0] != '\0' ? "/" : "", key);
}

struct tarn_status *tarn_s3__key_check(const struct tarn_s3 *s3, const char *key)
{
    size_t prefix = strlen(s3->settings.prefix), size = strlen(key);
    if (prefix + (prefix > 0) + size <= TARN_S3_KEY_MAX)
        return TARN_OK;
    return tarn_status_new(
        TARN_PATH_INVALID,
        "key '%.64s...' has %zu bytes with the warehouse's prefix, more than the "
        "%zu that S3 takes",
        key, prefix + (prefix > 0) + size, TARN_S3_KEY_MAX);
}

/* "/bucket/prefix/key", encoded; without the bucket where that is the host's first part. */
static char *path_of(const struct tarn_s3 *s3, struct tarn_op *op,
                     const struct tarn_s3_request *request)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    tarn_buf_add_byte(&path, '/');
    if (s3->settings.path_style) {
        tarn_buf_add_str(&path, s3->settings.bucket);
        tarn_buf_add_str(&path, request->key == NULL ? "" : "/");
    }
    if (request->key != NULL)
        tarn_url_encode(&path, tarn_slice_str(tarn_s3__full_key(s3, op, request->key)), "/");
    return tarn_arena_str(op->arena, tarn_buf_slice(&path));
}

/* --- one attempt, signed --- */

static void sign(const struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempt,
                 const char *path, const char *host)
{
    enum { OWN_MAX = 5 };
    const struct tarn_s3_request *request = attempt->request;
    size_t count = request->header_count;
    struct tarn_pair *pairs = tarn_arena_calloc(op->arena, count + OWN_MAX, sizeof *pairs);
    char time[TARN_S3_TIME_SIZE], hash[TARN_S3_HASH_SIZE] = "UNSIGNED-PAYLOAD";
    int64_t now = tarn_clock_wall_ms() + atomic_load(&s3->skew_ms);
    bool secure = strncmp(s3->settings.endpoint, "https:", 6) == 0;

    if (count > 0)
        memcpy(pairs, request->headers, count * sizeof *pairs);
    attempt->headers = tarn_arena_calloc(op->arena, count + OWN_MAX + 1, sizeof(char *));
    size_t n = 0;
    if (attempt->keys != NULL) {
        tarn_s3__time(now, time);
        if (!secure || request->body.size <= UNHASHED_SIZE)
            tarn_s3__hash(request->body, hash);
        pairs[count++] = (struct tarn_pair){tarn_slice_str("x-amz-date"), tarn_slice_str(time)};
        pairs[count++] =
            (struct tarn_pair){tarn_slice_str("x-amz-content-sha256"), tarn_slice_str(hash)};
        if (attempt->keys->session_token[0] != '\0')
            pairs[count++] = (struct tarn_pair){tarn_slice_str("x-amz-security-token"),
                                                tarn_slice_str(attempt->keys->session_token)};
    }
    for (; n < count; n++)
        attempt->headers[n] = tarn_arena_printf(
            op->arena, "%.*s: %.*s", TARN_SLICE_ARG(pairs[n].key), TARN_SLICE_ARG(pairs[n].value));
    if (attempt->keys == NULL)
        return;
    pairs[count++] = (struct tarn_pair){tarn_slice_str("host"), tarn_slice_str(host)};
    struct tarn_s3_signing signing = {
        .method = request->method,
        .path = path,
        .query = request->query,
        .query_count = request->query_count,
        .headers = pairs,
        .header_count = count,
        .payload_hash = hash,
        .region = s3->settings.region,
        .service = "s3",
        .access_key = attempt->keys->access_key,
        .secret_key = attempt->keys->secret_key,
        .time_ms = now,
    };
    TARN_OWN(tarn_buf_drop) struct tarn_buf authorization = {0};
    tarn_buf_add_str(&authorization, "authorization: ");
    tarn_s3__sign(&signing, &authorization);
    attempt->headers[n] = tarn_arena_str(op->arena, tarn_buf_slice(&authorization));
}

static size_t header_count(const struct attempt *attempt)
{
    size_t n = 0;
    while (attempt->headers[n] != NULL)
        n++;
    return n;
}

/* Into the round's arena. */
static void prepare(const struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempt,
                    struct tarn_fetch_call *call)
{
    struct tarn_s3_request *request = attempt->request;
    const char *host = s3->settings.host, *endpoint = s3->settings.endpoint;
    const char *path = path_of(s3, op, request);
    TARN_OWN(tarn_buf_drop) struct tarn_buf url = {0};
    if (!s3->settings.path_style)
        host = tarn_arena_printf(op->arena, "%s.%s", s3->settings.bucket, host);
    tarn_buf_printf(&url, "%.*s//%s%s", (int)strcspn(endpoint, "/"), endpoint, host, path);
    if (request->query_count > 0) {
        tarn_buf_add_byte(&url, '?');
        tarn_s3__query(request->query, request->query_count, &url);
    }
    attempt->url = tarn_arena_str(op->arena, tarn_buf_slice(&url));
    sign(s3, op, attempt, path, host);
    tarn_buf_clear(&request->answer);
    *call = (struct tarn_fetch_call){
        .request = {.method = request->method,
                    .url = attempt->url,
                    .headers = attempt->headers,
                    .header_count = header_count(attempt),
                    .body = request->body,
                    .answer_max = request->answer_max == 0
                                      ? 0
                                      : TARN_MAX(request->answer_max, ERROR_SIZE_MAX)},
        .body = &request->answer,
    };
}

/* --- what an answer means --- */

static bool is_one_of(struct tarn_slice code, const char *const *codes)
{
    for (; *codes != NULL; codes++)
        if (tarn_slice_is(code, *codes))
            return true;
    return false;
}

static const char *const expired_codes[] = {
    "ExpiredToken",       "ExpiredTokenException", "InvalidToken",          "TokenRefreshRequired",
    "InvalidAccessKeyId", "RequestExpired",        "SignatureDoesNotMatch", NULL};
static const char *const passing_codes[] = {"RequestTimeout",
                                            "OperationAborted",
                                            "ConditionalRequestConflict",
                                            "SlowDown",
                                            "InternalError",
                                            "ServiceUnavailable",
                                            NULL};
static const char *const full_codes[] = {"InsufficientStorage", "XMinioStorageFull",
                                         "QuotaExceeded", "StorageFull", NULL};

static const char *shown_key(const struct tarn_s3 *s3, struct tarn_op *op,
                             const struct tarn_s3_request *request)
{
    return tarn_arena_printf(op->arena, "s3://%s/%s", s3->settings.bucket,
                             request->key == NULL ? s3->settings.prefix
                                                  : tarn_s3__full_key(s3, op, request->key));
}

static struct tarn_status *refused(const struct tarn_s3 *s3, struct tarn_op *op,
                                   const struct tarn_s3_request *request, enum tarn_reason reason,
                                   int http, const struct tarn_s3_error *error)
{
    return tarn_status_new(reason, "%s %s was answered %d%s%.*s%s%.*s", request->method,
                           shown_key(s3, op, request), http, error->code.size > 0 ? " " : "",
                           TARN_SLICE_ARG(error->code), error->message.size > 0 ? ": " : "",
                           TARN_SLICE_ARG(error->message));
}

static int64_t retry_after_ms(const struct tarn_fetch_answer *answer)
{
    int64_t seconds = 0;
    struct tarn_slice text = tarn_fetch_header(answer, "retry-after");
    if (text.size == 0)
        return 0;
    struct tarn_status *s = tarn_parse_i64(text, &seconds);
    bool number = s == TARN_OK && seconds > 0; /* a date is not read: the random delay will do */
    tarn_status_free(s);
    return number ? TARN_MIN(seconds, (int64_t)RETRY_AFTER_MAX_MS / 1000) * 1000 : 0;
}

/* The store's clock, where it says that ours is too far off. */
static bool learn_clock(struct tarn_s3 *s3, struct attempt *attempt,
                        const struct tarn_fetch_answer *answer)
{
    int64_t theirs;
    if (attempt->reset_clock || !tarn_s3__http_date(tarn_fetch_header(answer, "date"), &theirs))
        return false;
    atomic_store(&s3->skew_ms, theirs - tarn_clock_wall_ms());
    attempt->reset_clock = true;
    return true;
}

static enum verdict judge_denied(struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempt,
                                 int http, const struct tarn_s3_error *error)
{
    struct tarn_s3_request *request = attempt->request;
    if (tarn_slice_is(error->code, "RequestTimeTooSkewed") &&
        learn_clock(s3, attempt, &request->http))
        return AGAIN_NOW;
    if ((http == 401 || is_one_of(error->code, expired_codes)) && attempt->keys != NULL &&
        !attempt->renewed) {
        attempt->renewed = true;
        return AGAIN_NOW;
    }
    request->failure = refused(s3, op, request, TARN_STORE_DENIED, http, error);
    return FAILED;
}

static struct tarn_status *wrong_place(const struct tarn_s3 *s3,
                                       const struct tarn_s3_request *request,
                                       const struct tarn_s3_error *error)
{
    struct tarn_slice region = tarn_fetch_header(&request->http, "x-amz-bucket-region");
    if (region.size == 0)
        region = error->region;
    return tarn_status_new(TARN_STORE_UNAVAILABLE,
                           "bucket %s is not at %s for region %s%s%.*s; set s3.endpoint and "
                           "s3.region",
                           s3->settings.bucket, s3->settings.endpoint, s3->settings.region,
                           region.size > 0 ? ", but in region " : "", TARN_SLICE_ARG(region));
}

/* 4xx, 3xx and 501: what won't pass by itself, as a status; OK: an answer for the caller. */
static struct tarn_status *final_word(const struct tarn_s3 *s3, struct tarn_op *op,
                                      const struct tarn_s3_request *request, int http,
                                      const struct tarn_s3_error *error)
{
    if (http == 412 || http == 416 || http == 304)
        return TARN_OK;
    if (http == 404 &&
        (tarn_slice_is(error->code, "NoSuchKey") || tarn_slice_is(error->code, "NoSuchUpload")))
        return TARN_OK;
    if (tarn_slice_is(error->code, "NoSuchBucket"))
        return tarn_status_new(TARN_STORE_UNAVAILABLE, "there is no bucket '%s' at %s",
                               s3->settings.bucket, s3->settings.endpoint);
    if (http >= 300 && http < 400)
        return wrong_place(s3, request, error);
    if (http == 507 || is_one_of(error->code, full_codes))
        return refused(s3, op, request, TARN_DISK_FULL, http, error);
    if (http == 413 || tarn_slice_is(error->code, "EntityTooLarge"))
        return refused(s3, op, request, TARN_TOO_LARGE, http, error);
    if (http == 501)
        return refused(s3, op, request, TARN_UNIMPLEMENTED, http, error);
    /* A 404 that isn't S3's (a proxy's, say) doesn't mean that nothing is there. */
    return refused(s3, op, request, http == 404 ? TARN_STORE_UNAVAILABLE : TARN_IO_ERROR, http,
                   error);
}

static enum verdict judge_good(struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempt)
{
    bool found;
    struct tarn_s3_error error;
    struct tarn_s3_request *request = attempt->request;
    if (request->decode == NULL)
        return DONE;
    struct tarn_status *s =
        request->decode(request->decode_arg, op, tarn_buf_slice(&request->answer));
    if (s == TARN_OK)
        return DONE;
    struct tarn_status *not_xml =
        tarn_s3__decode_error(tarn_buf_slice(&request->answer), op->arena, &found, &error);
    if (not_xml == TARN_OK && found) { /* Complete and Copy fail under 200 */
        request->failure =
            refused(s3, op, request, TARN_STORE_UNAVAILABLE, request->http.status, &error);
        tarn_status_free(s);
    } else {
        request->failure =
            tarn_status_new(TARN_STORE_UNAVAILABLE, "the answer to %s %s: %s", request->method,
                            shown_key(s3, op, request), tarn_status_message(s));
        tarn_status_free(s);
    }
    tarn_status_free(not_xml);
    request->ambiguous = true;
    return AGAIN;
}

static enum verdict judge_bad(struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempt)
{
    bool found;
    struct tarn_s3_error error = {0};
    struct tarn_s3_request *request = attempt->request;
    int http = request->http.status;
    tarn_status_free(
        tarn_s3__decode_error(tarn_buf_slice(&request->answer), op->arena, &found, &error));
    request->code = error.code;
    if (http >= 500 && http != 501 && http != 507) {
        request->ambiguous = true;
        request->failure = refused(s3, op, request, TARN_STORE_UNAVAILABLE, http, &error);
        return AGAIN;
    }
    if (http == 429 || http == 408 || is_one_of(error.code, passing_codes)) {
        request->failure = refused(s3, op, request, TARN_STORE_UNAVAILABLE, http, &error);
        return AGAIN;
    }
    if (http == 401 || http == 403 || is_one_of(error.code, expired_codes))
        return judge_denied(s3, op, attempt, http, &error);
    request->failure = final_word(s3, op, request, http, &error);
    return request->failure == TARN_OK ? DONE : FAILED;
}

static void count_answer(const struct tarn_fetch_answer *answer)
{
    char label[16] = "none";
    if (answer->status != 0)
        snprintf(label, sizeof label, "%d", answer->status);
    tarn_metric_add(TARN_M_STORE_REQUESTS, label, 1);
}

static enum verdict judge(struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempt,
                          struct tarn_fetch_call *call)
{
    struct tarn_s3_request *request = attempt->request;
    count_answer(&call->answer);
    request->http = call->answer;
    request->status = call->answer.status;
    if (request->status == 200 && tarn_fetch_header(&request->http, "content-range").data != NULL)
        request->status = 206; /* some say so of a part too */
    if (call->status != TARN_OK) {
        request->failure = call->status; /* ours now */
        request->ambiguous = request->ambiguous || call->answer.sent;
        enum tarn_reason reason = tarn_status_reason(call->status);
        return reason == TARN_STORE_UNAVAILABLE ? AGAIN : FAILED;
    }
    return request->status / 100 == 2 ? judge_good(s3, op, attempt) : judge_bad(s3, op, attempt);
}

/* --- again? --- */

static bool spend(struct tarn_s3 *s3)
{
    pthread_mutex_lock(&s3->lock);
    bool may = s3->tokens >= RETRY_COST;
    if (may)
        s3->tokens -= RETRY_COST;
    pthread_mutex_unlock(&s3->lock);
    return may;
}

static void earn(struct tarn_s3 *s3)
{
    pthread_mutex_lock(&s3->lock);
    s3->tokens = TARN_MIN(s3->tokens + 1, TARN_S3_TOKENS_MAX);
    pthread_mutex_unlock(&s3->lock);
}

static int64_t random_delay(int try_count)
{
    int64_t most = (int64_t)DELAY_MIN_MS << TARN_MIN(try_count, 16);
    return (int64_t)(tarn_random_u64() % (uint64_t)TARN_MIN(most, (int64_t)DELAY_MAX_MS));
}

static void settle(struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempt,
                   enum verdict verdict)
{
    struct tarn_s3_request *request = attempt->request;
    attempt->try_count++;
    attempt->delay_ms = 0;
    if (verdict == AGAIN_NOW)
        return;
    if (verdict == DONE)
        earn(s3);
    if (verdict != AGAIN || attempt->try_count > s3->settings.retries || !spend(s3)) {
        attempt->over = true;
        return;
    }
    attempt->delay_ms = TARN_MAX(retry_after_ms(&request->http), random_delay(attempt->try_count));
    if (tarn_op_wait_ms(op, attempt->delay_ms) < attempt->delay_ms) {
        attempt->over = true; /* it would come after the deadline */
        return;
    }
    tarn_metric_add(TARN_M_STORE_RETRIES, NULL, 1);
    tarn_status_drop(&request->failure);
}

static struct tarn_status *wait_for(struct tarn_op *op, int64_t delay_ms)
{
    tarn_store__wait_ms(op, delay_ms);
    return tarn_op_check(op);
}

/* --- rounds --- */

static struct tarn_status *present_keys(struct tarn_s3 *s3, struct tarn_op *op,
                                        struct attempt *attempt)
{
    struct tarn_s3_keys *old = attempt->keys;
    attempt->keys = NULL;
    struct tarn_status *s = tarn_s3__credentials_get(s3->credentials, op,
                                                     attempt->renewed ? old : NULL, &attempt->keys);
    tarn_s3__keys_drop(&old);
    return s;
}

static size_t prepare_round(struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempts,
                            size_t count, struct tarn_fetch_call *calls, size_t *which)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (attempts[i].over)
            continue;
        attempts[i].request->failure = present_keys(s3, op, &attempts[i]);
        if (attempts[i].request->failure != TARN_OK) {
            attempts[i].over = true;
            continue;
        }
        prepare(s3, op, &attempts[i], &calls[n]);
        which[n++] = i;
    }
    return n;
}

/* False: nothing is left to do. */
static bool play_round(struct tarn_s3 *s3, struct tarn_op *op, struct attempt *attempts,
                       size_t count)
{
    TARN_OWN(tarn_free_drop)
    struct tarn_fetch_call *calls = tarn_calloc(count, sizeof *calls);
    TARN_OWN(tarn_free_drop) size_t *which = tarn_calloc(count, sizeof *which);
    size_t n = prepare_round(s3, op, attempts, count, calls, which);
    if (n == 0)
        return false;
    int64_t delay_ms = 0;
    bool more = false;
    tarn_fetch_all(s3->fetch, op, calls, n);
    for (size_t i = 0; i < n; i++) {
        struct attempt *attempt = &attempts[which[i]];
        settle(s3, op, attempt, judge(s3, op, attempt, &calls[i]));
        delay_ms = TARN_MAX(delay_ms, attempt->over ? 0 : attempt->delay_ms);
        more = more || !attempt->over;
    }
    if (!more)
        return false;
    struct tarn_status *s = wait_for(op, delay_ms);
    for (size_t i = 0; s != TARN_OK && i < count; i++)
        if (!attempts[i].over) {
            attempts[i].over = true;
            attempts[i].request->failure = tarn_status_copy(s);
        }
    bool go_on = s == TARN_OK;
    tarn_status_free(s);
    return go_on;
}

void tarn_s3__ask_all(struct tarn_s3 *s3, struct tarn_op *op, struct tarn_s3_request *requests,
                      size_t count)
{
    if (count == 0)
        return;
    TARN_OWN(tarn_free_drop) struct attempt *attempts = tarn_calloc(count, sizeof *attempts);
    for (size_t i = 0; i < count; i++)
        attempts[i].request = &requests[i];
    while (play_round(s3, op, attempts, count))
        ;
    for (size_t i = 0; i < count; i++)
        tarn_s3__keys_drop(&attempts[i].keys);
}

struct tarn_status *tarn_s3__ask(struct tarn_s3 *s3, struct tarn_op *op,
                                 struct tarn_s3_request *request)
{
    tarn_s3__ask_all(s3, op, request, 1);
    return tarn_move(request->failure);
}

struct tarn_status *tarn_s3__ask_every(struct tarn_s3 *s3, struct tarn_op *op,
                                       struct tarn_s3_request *requests, size_t count)
{
    struct tarn_status *first = TARN_OK;
    tarn_s3__ask_all(s3, op, requests, count);
    for (size_t i = 0; i < count; i++) {
        if (first == TARN_OK)
            first = tarn_move(requests[i].failure);
        tarn_status_drop(&requests[i].failure);
    }
    return first;
}
