#include "exec/fetch.h"

#include <ctype.h>
#include <curl/curl.h>
#include <pthread.h>
#include <strings.h>
#include <time.h>

#include "exec/exec.h"

/*
 * A line is one libcurl multi handle with the connections it keeps. A call takes a line for itself,
 * the one used last first, so that its connections are warm; libcurl doesn't allow two threads to share
 * connections. Lanes are the requests a call runs at once; connection_max counts them over all lines.
 *
 * The loop looks every tick at the op, which wakes nobody when it is cancelled, and at each transfer's
 * byte counts: libcurl's own low-speed limit counts in seconds and averages.
 */
#define CONNECT_TIMEOUT_MS 5000
#define IDLE_TIMEOUT_MS 30000
#define CONNECTION_MAX 256
#define CONNECTION_AGE_S                                                                           \
    20L                   /* idle for longer, it isn't used again: servers close theirs silently */
#define LINE_AGE_MS 60000 /* unused for longer, a line is closed when another comes back */

struct line {
    CURLM *multi;
    CURL *lanes[TARN_FETCH_LANES_MAX]; /* NULL until first needed */
    int64_t used_ms;
    struct line *newer, *older; /* in the list of idle ones */
};

struct tarn_fetch {
    char *ca_file; /* owned; NULL: the system's */
    int64_t connect_timeout_ms, idle_timeout_ms;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t freed;
    int free_count; /* lanes that may still be taken */
    struct line *newest, *oldest;
};

/* One request on its way. */
struct transfer {
    struct tarn_op *op;
    struct tarn_fetch_call *call;
    CURL *easy;
    int lane;
    struct curl_slist *headers;
    size_t read_size;       /* of the request's body, handed to libcurl */
    size_t body_before;     /* size of the caller's buffer at the start */
    size_t header_bytes;    /* of the answer */
    size_t header_capacity; /* of answer.headers */
    int attempt_count;      /* connections that were about to be written to */
    bool too_large;         /* the answer's body */
    bool bad_header;        /* too many, or too large */

    int64_t moved_ms;       /* when the count last changed */
    curl_off_t moved_bytes; /* the count */
    char error[CURL_ERROR_SIZE];
};

/* --- life --- */

static int64_t real_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void init_library(void)
{
    CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    tarn_assert(code == CURLE_OK);
}

struct tarn_status *tarn_fetch_new(const struct tarn_fetch_options *options,
                                   struct tarn_fetch **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_library);
    struct tarn_fetch *fetch = tarn_calloc(1, sizeof *fetch);
    pthread_condattr_t attributes;

    fetch->ca_file = tarn_strdup(options->ca_file);
    fetch->connect_timeout_ms =
        options->connect_timeout_ms > 0 ? options->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    fetch->idle_timeout_ms =
        options->idle_timeout_ms > 0 ? options->idle_timeout_ms : IDLE_TIMEOUT_MS;
    fetch->free_count = options->connection_max > 0 ? options->connection_max : CONNECTION_MAX;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&fetch->lock, NULL);
    pthread_cond_init(&fetch->freed, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = fetch;
    return TARN_OK;
}

static void line_free(struct line *line)
{
    if (line == NULL)
        return;
    for (int i = 0; i < TARN_FETCH_LANES_MAX; i++)
        if (line->lanes[i] != NULL)
            curl_easy_cleanup(line->lanes[i]);
    curl_multi_cleanup(line->multi);
    free(line);
}

void tarn_fetch_free(struct tarn_fetch *fetch)
{
    if (fetch == NULL)
        return;
    for (struct line *line = fetch->newest, *older; line != NULL; line = older) {
        older = line->older;
        line_free(line);
    }
    pthread_cond_destroy(&fetch->freed);
    pthread_mutex_destroy(&fetch->lock);
    free(fetch->ca_file);
    free(fetch);
}

/* --- lines and lanes --- */

static void wait_for_lane(struct tarn_fetch *fetch)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TARN_FETCH_TICK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&fetch->freed, &fetch->lock, &until);
}

static struct line *line_new(void)
{
    struct line *line = tarn_calloc(1, sizeof *line);
    line->multi = curl_multi_init();
    tarn_assert(line->multi != NULL);
    curl_multi_setopt(line->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl_multi_setopt(line->multi, CURLMOPT_MAXCONNECTS, (long)TARN_FETCH_LANES_MAX);
    return line;
}

static struct line *unlink_line(struct tarn_fetch *fetch, struct line *line)
{
    if (line == NULL)
        return NULL;
    *(line->newer != NULL ? &line->newer->older : &fetch->newest) = line->older;
    *(line->older != NULL ? &line->older->newer : &fetch->oldest) = line->newer;
    line->newer = line->older = NULL;
    return line;
}

/* Waits for one lane and takes as many more, up to `want`, as are free: a call that held some while it
 * waited for others could block itself with its like. */
static struct tarn_status *take_line(struct tarn_fetch *fetch, struct tarn_op *op, int want,
                                     struct line **out, int *lanes)
{
    struct tarn_status *status = tarn_op_check(op);
    pthread_mutex_lock(&fetch->lock);
    while (status == TARN_OK && fetch->free_count == 0) {
        wait_for_lane(fetch);
        status = tarn_op_check(op);
    }
    if (status == TARN_OK) {
        *lanes = TARN_MIN(want, fetch->free_count);
        fetch->free_count -= *lanes;
        *out = unlink_line(fetch, fetch->newest);
    }
    pthread_mutex_unlock(&fetch->lock);
    if (status == TARN_OK && *out == NULL)
        *out = line_new();
    return status;
}

static void give_line(struct tarn_fetch *fetch, struct line *line, int lanes)
{
    struct line *old = NULL;
    line->used_ms = real_ms();
    pthread_mutex_lock(&fetch->lock);
    fetch->free_count += lanes;
    line->older = fetch->newest;
    *(line->older != NULL ? &line->older->newer : &fetch->oldest) = line;
    fetch->newest = line;
    if (line->used_ms - fetch->oldest->used_ms > LINE_AGE_MS)
        old = unlink_line(fetch, fetch->oldest);
    pthread_cond_broadcast(&fetch->freed);
    pthread_mutex_unlock(&fetch->lock);
    line_free(old);
}

/* --- what libcurl calls --- */

static size_t give_body(char *out, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    struct tarn_slice body = transfer->call->request.body;
    size_t n = TARN_MIN(size * count, body.size - transfer->read_size);
    if (n > 0)
        memcpy(out, body.data + transfer->read_size, n);
    transfer->read_size += n;
    return n;
}

static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    struct tarn_buf *body = transfer->call->body;
    size_t n = size * count, max = transfer->call->request.answer_max;
    if (max == 0)
        max = TARN_FETCH_ANSWER_MAX;
    if (n > max - (body->size - transfer->body_before)) {
        transfer->too_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    tarn_buf_add(body, data, n);
    return n;
}

static struct tarn_slice trimmed(const char *text, size_t size)
{
    while (size > 0 && isspace((unsigned char)text[size - 1]))
        size--;
    while (size > 0 && isspace((unsigned char)text[0])) {
        text++;
        size--;
    }
    return tarn_slice_of(text, size);
}

static void add_header(struct transfer *transfer, struct tarn_slice name, struct tarn_slice value)
{
    struct tarn_fetch_answer *answer = &transfer->call->answer;
    if (answer->header_count == transfer->header_capacity) {
        size_t capacity = TARN_MAX(transfer->header_capacity * 2, (size_t)16);
        struct tarn_pair *grown =
            tarn_arena_calloc(transfer->op->arena, capacity, sizeof *answer->headers);
        if (answer->header_count > 0)
            memcpy(grown, answer->headers, answer->header_count * sizeof *grown);
        answer->headers = grown;
        transfer->header_capacity = capacity;
    }
    char *lower = tarn_arena_str(transfer->op->arena, name);
    for (char *c = lower; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    answer->headers[answer->header_count++] = (struct tarn_pair){
        tarn_slice_of(lower, name.size), tarn_arena_copy(transfer->op->arena, value)};
}

static size_t take_header(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    size_t n = size * count;
    transfer->header_bytes += n;
    if (transfer->header_bytes > TARN_FETCH_HEADER_BYTES_MAX ||
        transfer->call->answer.header_count == TARN_FETCH_HEADERS_MAX) {
        transfer->bad_header = true;
        return 0;
    }
    /* A status line begins an answer; one before it was an interim one (100 Continue). */
    if (n >= 5 && memcmp(data, "HTTP/", 5) == 0) {
        transfer->call->answer.header_count = 0;
        return n;
    }
    const char *colon = memchr(data, ':', n);
    if (colon != NULL)
        add_header(transfer, tarn_slice_of(data, (size_t)(colon - data)),
                   trimmed(colon + 1, n - 1 - (size_t)(colon - data)));
    return n;
}

/* Just before a request is written to a connection. libcurl sends anew what met a kept connection that
 * was closed meanwhile: not what changes something, for it may have been carried out. */
static int before_request(void *arg, char *peer, char *own, int peer_port, int own_port)
{
    struct transfer *transfer = arg;
    const char *method = transfer->call->request.method;
    bool harmless =
        strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "DELETE") == 0;
    return transfer->attempt_count++ > 0 && !harmless ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* --- one request --- */

static struct tarn_status *add_headers(struct transfer *transfer)
{
    const struct tarn_fetch_request *request = &transfer->call->request;
    for (size_t i = 0; i < request->header_count; i++) {
        if (strpbrk(request->headers[i], "\r\n") != NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "a header of the request has a line break");
        transfer->headers = curl_slist_append(transfer->headers, request->headers[i]);
    }
    /* libcurl would wait a second for "100 Continue" before a large body. */
    transfer->headers = curl_slist_append(transfer->headers, "Expect:");
    return TARN_OK;
}

static void set_method(struct transfer *transfer)
{
    const struct tarn_fetch_request *request = &transfer->call->request;
    CURL *easy = transfer->easy;
    if (strcmp(request->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (request->body.data != NULL || strcmp(request->method, "PUT") == 0 ||
        strcmp(request->method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body.size);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
        curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_options(const struct tarn_fetch *fetch, struct transfer *transfer)
{
    CURL *easy = transfer->easy;
    curl_easy_reset(easy); /* its multi keeps the connections */
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "tarn/" TARN_VERSION);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)fetch->connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, CONNECTION_AGE_S);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
    if (fetch->ca_file != NULL) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, fetch->ca_file);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(easy, CURLOPT_URL, transfer->call->request.url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    set_method(transfer);
}

static struct tarn_status *transfer_begin(struct tarn_fetch *fetch, struct line *line,
                                          struct transfer *transfer)
{
    CURL **easy = &line->lanes[transfer->lane];
    TARN_TRY(add_headers(transfer));
    if (*easy == NULL)
        *easy = curl_easy_init();
    tarn_assert(*easy != NULL);
    transfer->easy = *easy;
    transfer->body_before = transfer->call->body->size;
    transfer->moved_ms = real_ms();
    set_options(fetch, transfer);
    CURLMcode code = curl_multi_add_handle(line->multi, transfer->easy);
    tarn_assert(code == CURLM_OK);
    return TARN_OK;
}

/* "https://host:port/path": what may stand in a message. Queries may hold signatures. */
static int url_shown_size(const char *url)
{
    return (int)TARN_MIN(strcspn(url, "?"), (size_t)512);
}

static struct tarn_status *outcome(const struct tarn_fetch *fetch, const struct transfer *transfer,
                                   CURLcode code)
{
    const struct tarn_fetch_request *request = &transfer->call->request;
    const char *url = request->url;
    if (code == CURLE_OK)
        return TARN_OK;
    if (transfer->too_large)
        return tarn_status_new(TARN_TOO_LARGE, "the answer to %s %.*s is larger than %zu bytes",
                               request->method, url_shown_size(url), url,
                               request->answer_max == 0 ? TARN_FETCH_ANSWER_MAX
                                                        : request->answer_max);
    const char *why = transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(code);
    if (transfer->bad_header)
        why = "the answer's headers are too many or too large";
    else if (code == CURLE_ABORTED_BY_CALLBACK)
        why = "the connection was closed before an answer came";
    return tarn_status_new(TARN_STORE_UNAVAILABLE, "%s %.*s: %s", request->method,
                           url_shown_size(url), url, why);
}

/* After the last byte, or when it was given up (status). */
static void transfer_end(const struct tarn_fetch *fetch, struct line *line,
                         struct transfer *transfer, CURLcode code, struct tarn_status *status)
{
    struct tarn_fetch_answer *answer = &transfer->call->answer;
    long http = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &http);
    answer->sent = transfer->attempt_count > 0;
    transfer->call->status = status != TARN_OK ? status : outcome(fetch, transfer, code);
    bool whole = transfer->call->status == TARN_OK;
    answer->status = whole || transfer->too_large ? (int)http : 0;
    if (!whole)
        transfer->call->body->size = transfer->body_before;
    curl_multi_remove_handle(line->multi, transfer->easy);
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    transfer->call = NULL;
}

/* --- the loop --- */

struct run {
    struct tarn_fetch *fetch;
    struct tarn_op *op;
    struct line *line;
    int lane_count;
    struct tarn_fetch_call *calls;
    size_t count, next; /* calls, and the first that hasn't begun */
    int running;
    struct transfer transfers[TARN_FETCH_LANES_MAX]; /* call NULL: the lane is free */
};

static void begin_next(struct run *run, int lane)
{
    struct transfer *transfer = &run->transfers[lane];
    while (run->next < run->count) {
        struct tarn_fetch_call *call = &run->calls[run->next++];
        *transfer = (struct transfer){.op = run->op, .call = call, .lane = lane};
        call->status = transfer_begin(run->fetch, run->line, transfer);
        if (call->status == TARN_OK) {
            run->running++;
            return;
        }
        curl_slist_free_all(transfer->headers);
        transfer->call = NULL;
    }
}

static void end_one(struct run *run, struct transfer *transfer, CURLcode code,
                    struct tarn_status *status)
{
    transfer_end(run->fetch, run->line, transfer, code, status);
    run->running--;
}

static void end_finished(struct run *run)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(run->line->multi, &left)) != NULL) {
        struct transfer *transfer = NULL;
        CURLcode code = message->data.result; /* removing the handle frees the message */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        int lane = transfer->lane;
        end_one(run, transfer, code, TARN_OK);
        begin_next(run, lane);
    }
}

/* Bytes either way so far; headers of the answer count, and so does having connected. */
static curl_off_t moved_bytes(const struct transfer *transfer)
{
    curl_off_t up = 0, down = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_UPLOAD_T, &up);
    curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
    return up + down + (curl_off_t)transfer->header_bytes + transfer->attempt_count;
}

static void end_idle(struct run *run)
{
    int64_t now = real_ms();
    for (int lane = 0; lane < run->lane_count; lane++) {
        struct transfer *transfer = &run->transfers[lane];
        if (transfer->call == NULL)
            continue;
        curl_off_t moved = moved_bytes(transfer);
        if (moved != transfer->moved_bytes) {
            transfer->moved_bytes = moved;
            transfer->moved_ms = now;
        } else if (now - transfer->moved_ms >= run->fetch->idle_timeout_ms &&
                   transfer->attempt_count > 0) { /* before that, libcurl minds the connect time */
            const char *url = transfer->call->request.url;
            end_one(run, transfer, CURLE_OK,
                    tarn_status_new(TARN_STORE_UNAVAILABLE, "%s %.*s: no byte in %" PRId64 " ms",
                                    transfer->call->request.method, url_shown_size(url), url,
                                    run->fetch->idle_timeout_ms));
            begin_next(run, lane);
        }
    }
}

/* All that run, and those that hadn't begun. */
static void give_up(struct run *run, struct tarn_status *consumed)
{
    for (int lane = 0; lane < run->lane_count; lane++)
        if (run->transfers[lane].call != NULL)
            end_one(run, &run->transfers[lane], CURLE_OK, tarn_status_copy(consumed));
    while (run->next < run->count)
        run->calls[run->next++].status = tarn_status_copy(consumed);
    tarn_status_free(consumed);
}

static void run_calls(struct run *run)
{
    for (int lane = 0; lane < run->lane_count; lane++)
        begin_next(run, lane);
    while (run->running > 0) {
        int running = 0;
        curl_multi_perform(run->line->multi, &running);
        end_finished(run);
        if (run->running == 0)
            break;
        struct tarn_status *status = tarn_op_check(run->op);
        if (status != TARN_OK) {
            give_up(run, status);
            break;
        }
        end_idle(run);
        curl_multi_poll(run->line->multi, NULL, 0,
                        (int)tarn_op_wait_ms(run->op, TARN_FETCH_TICK_MS), NULL);
    }
}

void tarn_fetch_all(struct tarn_fetch *fetch, struct tarn_op *op, struct tarn_fetch_call *calls,
                    size_t count)
{
    tarn_assert_may_wait();
    for (size_t i = 0; i < count; i++) {
        calls[i].answer = (struct tarn_fetch_answer){0};
        calls[i].status = TARN_OK;
    }
    if (count == 0)
        return;
    struct run *run = tarn_calloc(1, sizeof *run);
    *run = (struct run){.fetch = fetch, .op = op, .calls = calls, .count = count};
    int want = (int)TARN_MIN(count, (size_t)TARN_FETCH_LANES_MAX);
    tarn_exec_wait_begin();
    struct tarn_status *status = take_line(fetch, op, want, &run->line, &run->lane_count);
    if (status == TARN_OK) {
        run_calls(run);
        give_line(fetch, run->line, run->lane_count);
    } else {
        give_up(run, status);
    }
    tarn_exec_wait_end();
    free(run);
}

struct tarn_status *tarn_fetch(struct tarn_fetch *fetch, struct tarn_op *op,
                               const struct tarn_fetch_request *request, struct tarn_buf *body,
                               struct tarn_fetch_answer *out)
{
    struct tarn_fetch_call call = {.request = *request, .body = body};
    tarn_fetch_all(fetch, op, &call, 1);
    *out = call.answer;
    return call.status;
}

struct tarn_slice tarn_fetch_header(const struct tarn_fetch_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++)
        if (tarn_slice_is(answer->headers[i].key, name))
            return answer->headers[i].value;
    return tarn_slice_str(NULL);
}

void tarn_url_encode(struct tarn_buf *out, struct tarn_slice text, const char *keep)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c != '\0' && (strchr("-._~", c) != NULL || strchr(keep, c) != NULL));
        if (plain)
            tarn_buf_add_byte(out, c);
        else
            tarn_buf_printf(out, "%%%02X", c);
    }
}
