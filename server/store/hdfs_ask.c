/*
 * hdfs_ask - requests to the NameNodes and on to DataNodes, sent again where what went wrong may pass.
 *
 * One try is one NameNode, and the DataNode it sends us to. Then comes the next NameNode where the first is a
 * standby or doesn't answer, else the same again, after a random time that grows. What the caller wants
 * sent only once is sent again only where it surely wasn't carried out.
 *
 * A delegation token is part of every URL, so no URL is ever part of a message.
 */
#include "store/hdfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/exec.h"

#define DELAY_MIN_MS 25
#define DELAY_MAX_MS 5000
#define ANSWER_MAX ((size_t)64 << 10) /* of errors, and of what isn't data */
#define TOKEN_SIZE_MAX ((size_t)16 << 10)

/* --- waiting --- */

void tarn_hdfs__back_off(struct tarn_op *op, int try_count)
{
    int64_t limit_ms = DELAY_MIN_MS;
    for (int i = 0; i < try_count && limit_ms < DELAY_MAX_MS; i++)
        limit_ms *= 2;
    limit_ms = TARN_MIN(limit_ms, (int64_t)DELAY_MAX_MS);
    int64_t ms = limit_ms / 2 + (int64_t)(tarn_random_u64() % (uint64_t)(limit_ms / 2 + 1));
    tarn_store__wait_ms(op, ms);
}

/* --- who asks --- */

static struct tarn_status *read_token(const char *path, char **out)
{
    struct tarn_slice text;
    TARN_OWN(tarn_free_drop) char *memory = tarn_calloc(1, TOKEN_SIZE_MAX + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, memory, TOKEN_SIZE_MAX + 1);
    if (fd >= 0)
        close(fd);
    if (size < 0)
        return tarn_status_new(TARN_STORE_DENIED, "can't read hdfs.delegation_token_file %s", path);
    for (text = tarn_slice_of(memory, (size_t)size);
         text.size > 0 && text.data[text.size - 1] <= ' ';)
        text.size--;
    bool good = text.size > 0 && text.size <= TOKEN_SIZE_MAX;
    for (size_t i = 0; i < text.size; i++)
        good = good && text.data[i] > ' ' && text.data[i] < 0x7f;
    if (!good)
        return tarn_status_new(
            TARN_STORE_DENIED,
            "hdfs.delegation_token_file %s holds no token: expected its URL-safe "
            "text, alone",
            path);
    *out = tarn_slice_dup(text);
    return TARN_OK;
}

/* Under the mutex. Whoever renews a token replaces the file. */
static struct tarn_status *refresh_token(struct tarn_hdfs *hdfs)
{
    struct stat st;
    const char *path = hdfs->settings.token_file;
    if (stat(path, &st) != 0) {
        if (hdfs->token != NULL)
            return TARN_OK; /* it is being replaced */
        /* Not OBJECT_NOT_FOUND: that would say of the path that is asked for that it isn't there. */
        return tarn_status_new(TARN_STORE_DENIED, "can't read hdfs.delegation_token_file %s", path);
    }
    int64_t mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (hdfs->token != NULL && mtime_ns == hdfs->token_mtime_ns)
        return TARN_OK;
    char *token;
    TARN_TRY(read_token(path, &token));
    free(hdfs->token);
    hdfs->token = token;
    hdfs->token_mtime_ns = mtime_ns;
    return TARN_OK;
}

static struct tarn_status *add_identity(struct tarn_hdfs *hdfs, struct tarn_buf *url)
{
    if (hdfs->settings.token_file[0] == '\0') {
        tarn_buf_add_str(url, "&user.name=");
        tarn_url_encode(url, tarn_slice_str(hdfs->settings.user), "");
        return TARN_OK;
    }
    pthread_mutex_lock(&hdfs->mutex);
    struct tarn_status *status = refresh_token(hdfs);
    if (status == TARN_OK) {
        tarn_buf_add_str(url, "&delegation=");
        tarn_url_encode(url, tarn_slice_str(hdfs->token), "");
    }
    pthread_mutex_unlock(&hdfs->mutex);
    return status;
}

/* --- one try --- */

enum verdict { DONE, FAILED, AGAIN, ELSEWHERE };

struct attempt {
    struct tarn_hdfs *hdfs;
    struct tarn_op *op;
    const struct tarn_hdfs_request *request;
    struct tarn_buf *out;
    size_t out_before;
    const char *endpoint;
    struct tarn_status *status; /* owned: of the last try */
    bool unsure;                /* the last try may have been carried out */
    const char *exception;
};

static void fail(struct attempt *a, struct tarn_status *consumed)
{
    tarn_status_free(a->status);
    a->status = consumed;
}

static bool is_success(int http_status)
{
    return http_status >= 200 && http_status < 300;
}

/* What an answer that is no success means. `final_step`: the one that does the work. */
static enum verdict judge(struct attempt *a, const struct tarn_fetch_answer *answer,
                          struct tarn_slice body, bool final_step)
{
    struct tarn_hdfs_failure failure;
    const struct tarn_hdfs_request *request = a->request;
    tarn_hdfs__decode_failure(answer->status, body, a->op->arena, &failure);
    bool told = failure.exception[0] != '\0';
    bool may_pass = failure.again || answer->status == 429 || (!told && answer->status >= 500);
    a->exception = failure.exception;
    a->unsure = final_step && !told && failure.reason == TARN_STORE_UNAVAILABLE;
    fail(a, told ? tarn_status_new(failure.reason, "%s '%s': %s: %s", request->op, request->path,
                                   failure.exception, failure.message)
                 : tarn_status_new(failure.reason,
                                   "%s '%s': HTTP status %d, without a word of WebHDFS",
                                   request->op, request->path, answer->status));
    if (failure.standby)
        return ELSEWHERE;
    return may_pass ? AGAIN : FAILED;
}

static enum verdict judge_silence(struct attempt *a, struct tarn_status *consumed, bool sent,
                                  bool final_step)
{
    enum tarn_reason reason = tarn_status_reason(consumed);
    a->unsure = sent && final_step;
    fail(a, tarn_status_wrap(consumed, "%s '%s'", a->request->op, a->request->path));
    if (reason != TARN_STORE_UNAVAILABLE)
        return FAILED; /* the op has ended, or the answer is too large */
    return final_step && a->request->two_steps ? AGAIN : ELSEWHERE;
}

static enum verdict send(struct attempt *a, const char *url, struct tarn_slice body,
                         struct tarn_buf *out, bool final_step, struct tarn_fetch_answer *answer)
{
    static const char *const headers[] = {"Content-Type: application/octet-stream",
                                          "X-XSRF-HEADER: tarn"};
    size_t before = out->size;
    struct tarn_fetch_request request = {
        .method = a->request->method,
        .url = url,
        .headers = headers,
        .header_count = TARN_COUNT_OF(headers),
        .body = body,
        .answer_max = final_step ? TARN_MAX(a->request->answer_max, ANSWER_MAX) : ANSWER_MAX,
    };
    *answer = (struct tarn_fetch_answer){0};
    struct tarn_status *status = tarn_fetch(a->hdfs->fetch, a->op, &request, out, answer);
    if (status != TARN_OK) {
        out->size = before;
        return judge_silence(a, status, answer->sent, final_step);
    }
    if (is_success(answer->status) || (!final_step && answer->status == 307))
        return DONE;
    enum verdict verdict =
        judge(a, answer, tarn_slice_of(out->data + before, out->size - before), final_step);
    out->size = before;
    return verdict;
}

/* The NameNode's answer to noredirect=true; older ones, and gateways, redirect all the same. */
static struct tarn_status *find_location(struct attempt *a, const struct tarn_fetch_answer *answer,
                                         struct tarn_slice body, char **out)
{
    struct tarn_slice header = tarn_fetch_header(answer, "location");
    if (answer->status == 307 && header.size > 0)
        *out = tarn_arena_str(a->op->arena, header);
    else
        TARN_TRY(tarn_hdfs__decode_location(body, a->op->arena, out));
    if (tarn_hdfs__may_follow(a->endpoint, *out))
        return TARN_OK;
    return tarn_status_new(TARN_STORE_UNAVAILABLE,
                           "%s '%s': the NameNode sends on to a place that isn't gone to (want %s)",
                           a->request->op, a->request->path,
                           strncmp(a->endpoint, "https", 5) == 0 ? "https://" : "http://");
}

static enum verdict send_on(struct attempt *a, const char *url)
{
    char *location = NULL;
    struct tarn_fetch_answer answer;
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    enum verdict verdict = send(a, url, (struct tarn_slice){0}, &body, false, &answer);
    if (verdict != DONE)
        return verdict;
    struct tarn_status *status = find_location(a, &answer, tarn_buf_slice(&body), &location);
    if (status != TARN_OK) {
        a->unsure = false;
        fail(a, status);
        return FAILED;
    }
    return send(a, location, a->request->body, a->out, true, &answer);
}

static enum verdict try_once(struct attempt *a)
{
    struct tarn_fetch_answer answer;
    const struct tarn_hdfs_request *request = a->request;
    TARN_OWN(tarn_buf_drop) struct tarn_buf url = {0};
    a->unsure = false;
    a->exception = "";
    tarn_buf_printf(&url, "%s/webhdfs/v1", a->endpoint);
    tarn_url_encode(&url, tarn_slice_str(request->path), "/");
    tarn_buf_printf(&url, "?op=%s%s%s", request->op, request->query == NULL ? "" : request->query,
                    request->two_steps ? "&noredirect=true" : "");
    struct tarn_status *status = add_identity(a->hdfs, &url);
    if (status != TARN_OK) {
        fail(a, status);
        return FAILED;
    }
    if (request->two_steps)
        return send_on(a, tarn_buf_cstr(&url));
    return send(a, tarn_buf_cstr(&url), request->body, a->out, true, &answer);
}

/* --- until it is answered --- */

static enum verdict try_until(struct attempt *a)
{
    enum verdict verdict = AGAIN;
    const struct tarn_hdfs_settings *settings = &a->hdfs->settings;
    size_t active = atomic_load(&a->hdfs->active), elsewhere_count = 0;
    for (int tries = 0; verdict != DONE && verdict != FAILED; tries++) {
        a->endpoint = settings->endpoints[active % settings->endpoint_count];
        verdict = try_once(a);
        if (verdict == DONE || verdict == FAILED)
            break;
        if ((a->request->once && a->unsure) || tries >= settings->retries)
            return FAILED;
        tarn_metric_add(TARN_M_STORE_RETRIES, NULL, 1);
        if (verdict == ELSEWHERE) {
            active++;
            elsewhere_count++;
        }
        /* All have been asked: only now is it worth waiting. */
        if (verdict == AGAIN || elsewhere_count % settings->endpoint_count == 0)
            tarn_hdfs__back_off(a->op, tries);
        struct tarn_status *over = tarn_op_check(a->op);
        if (over != TARN_OK) {
            fail(a, over);
            return FAILED;
        }
    }
    if (verdict == DONE)
        atomic_store(&a->hdfs->active, active % settings->endpoint_count);
    return verdict;
}

struct tarn_status *tarn_hdfs__ask(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                   const struct tarn_hdfs_request *request, struct tarn_buf *out,
                                   struct tarn_hdfs_outcome *outcome)
{
    struct attempt attempt = {.hdfs = hdfs, .op = op, .request = request, .out = out};
    attempt.exception = "";
    enum verdict verdict = try_until(&attempt);
    if (outcome != NULL) {
        *outcome = (struct tarn_hdfs_outcome){.unsure = verdict != DONE && attempt.unsure};
        snprintf(outcome->exception, sizeof outcome->exception, "%s", attempt.exception);
    }
    if (verdict == DONE) {
        tarn_status_free(attempt.status); /* of tries before */
        return TARN_OK;
    }
    return attempt.status;
}

/* --- what is asked often --- */

char *tarn_hdfs__path(const struct tarn_hdfs *hdfs, struct tarn_op *op, const char *key)
{
    if (key[0] == '\0')
        return tarn_arena_printf(op->arena, "%s",
                                 hdfs->settings.root[0] == '\0' ? "/" : hdfs->settings.root);
    return tarn_arena_printf(op->arena, "%s/%s", hdfs->settings.root, key);
}

struct tarn_status *tarn_hdfs__find(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *path,
                                    bool *found, struct tarn_hdfs_status *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    struct tarn_hdfs_request request = {.method = "GET", .op = "GETFILESTATUS", .path = path};
    struct tarn_status *status = tarn_hdfs__ask(hdfs, op, &request, &body, NULL);
    *found = status == TARN_OK;
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) {
        tarn_status_free(status);
        return TARN_OK;
    }
    TARN_TRY(status);
    return tarn_hdfs__decode_status(tarn_buf_slice(&body), op->arena, out);
}

/* What isn't there, and a folder that holds something, stay as they are. */
struct tarn_status *tarn_hdfs__delete(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *path)
{
    struct tarn_hdfs_outcome outcome;
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    struct tarn_hdfs_request request = {
        .method = "DELETE", .op = "DELETE", .path = path, .query = "&recursive=false"};
    struct tarn_status *status = tarn_hdfs__ask(hdfs, op, &request, &body, &outcome);
    enum tarn_reason reason = tarn_status_reason(status);
    if (reason == TARN_OBJECT_NOT_FOUND || reason == TARN_PATH_INVALID ||
        strcmp(outcome.exception, "PathIsNotEmptyDirectoryException") == 0)
        tarn_status_drop(&status); /* PATH_INVALID: a file is on the way to it */
    return status;
}

struct tarn_status *tarn_hdfs__make_folder(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                           const char *path)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    struct tarn_hdfs_request request = {.method = "PUT", .op = "MKDIRS", .path = path};
    struct tarn_status *status = tarn_hdfs__ask(hdfs, op, &request, &body, NULL);
    if (tarn_status_reason(status) != TARN_OBJECT_EXISTS)
        return status;
    tarn_status_free(status);
    return tarn_status_new(TARN_PATH_INVALID, "'%s' is no folder", path);
}
