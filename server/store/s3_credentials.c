/*
 * s3_credentials - where the keys come from, and when they are fetched anew.
 *
 * Keys that end are replaced REFRESH_BEFORE_MS before that; until they really end, a failure to replace them
 * only costs another try, RETRY_AFTER_MS later. Keys that a store refuses as expired or unknown are fetched once more
 * (a file may have been changed meanwhile). One thread fetches; the others use what there is, or wait.
 * Neither requests nor answers of these services appear in messages: they hold secrets.
 */
#include "store/s3.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "exec/exec.h"

#define REFRESH_BEFORE_MS 300000
#define RETRY_AFTER_MS 10000
#define FILE_SIZE_MAX ((size_t)1 << 20)
#define INSTANCE_WAIT_MS 5000 /* the metadata service is next door, or not there at all */

struct tarn_s3_credentials {
    const struct tarn_s3_settings *settings; /* borrowed: the store's */
    struct tarn_fetch *fetch;                /* borrowed: the store's */
    enum tarn_s3_source source;              /* never AUTO */
    pthread_mutex_t fetching;                /* held by the thread that fetches; before `lock` */
    pthread_mutex_t lock;                    /* guards all below */
    struct tarn_s3_keys *present;            /* NULL: none yet */
    int64_t next_try_ms;                     /* not before, after a failure; monotonic */
};

/* --- keys --- */

struct tarn_s3_keys *tarn_s3__keys_new(struct tarn_slice access_key, struct tarn_slice secret_key,
                                       struct tarn_slice session_token, int64_t expires_ms)
{
    struct tarn_s3_keys *keys = tarn_calloc(1, sizeof *keys);
    atomic_init(&keys->ref_count, 1);
    keys->access_key = tarn_slice_dup(access_key);
    keys->secret_key = tarn_slice_dup(secret_key);
    keys->session_token = tarn_slice_dup(session_token);
    keys->expires_ms = expires_ms;
    return keys;
}

static struct tarn_s3_keys *keys_ref(struct tarn_s3_keys *keys)
{
    if (keys != NULL)
        atomic_fetch_add(&keys->ref_count, 1);
    return keys;
}

static void wipe(char *secret)
{
    explicit_bzero(secret, strlen(secret));
    free(secret);
}

void tarn_s3__keys_drop(struct tarn_s3_keys **keys)
{
    struct tarn_s3_keys *k = tarn_move(*keys);
    if (k == NULL || atomic_fetch_sub(&k->ref_count, 1) > 1)
        return;
    free(k->access_key);
    wipe(k->secret_key);
    wipe(k->session_token);
    free(k);
}

/* A buffer with a secret in it. */
static void secret_drop(struct tarn_buf *buf)
{
    if (buf->data != NULL)
        explicit_bzero(buf->data, buf->capacity);
    tarn_buf_drop(buf);
}

/* A line break in a key would end the header it is put in; nothing but printable ASCII is ever in one. */
static bool is_printable(struct tarn_slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    return true;
}

static struct tarn_status *make_keys(const char *from, struct tarn_slice access_key,
                                     struct tarn_slice secret_key, struct tarn_slice session_token,
                                     int64_t expires_ms, struct tarn_s3_keys **out)
{
    if (access_key.size == 0 || secret_key.size == 0)
        return tarn_status_new(TARN_STORE_DENIED, "%s has no access key and secret key", from);
    if (!is_printable(access_key) || !is_printable(secret_key) || !is_printable(session_token))
        return tarn_status_new(TARN_STORE_DENIED,
                               "%s: a key holds blanks or characters that keys don't have", from);
    *out = tarn_s3__keys_new(access_key, secret_key, session_token, expires_ms);
    return TARN_OK;
}

/* --- files --- */

static struct tarn_status *read_file(const char *path, struct tarn_buf *out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return tarn_status_new(TARN_STORE_DENIED, "read %s: %s", path, strerror(errno));
    char bytes[4096];
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0 && out->size + n <= FILE_SIZE_MAX)
        tarn_buf_add(out, bytes, n);
    explicit_bzero(bytes, sizeof bytes);
    bool whole = n == 0 && !ferror(file);
    fclose(file);
    return whole ? TARN_OK
                 : tarn_status_new(TARN_STORE_DENIED, "read %s: it can't be read, or is too large",
                                   path);
}

static struct tarn_slice trimmed(struct tarn_slice text)
{
    while (text.size > 0 && isspace(text.data[text.size - 1]))
        text.size--;
    while (text.size > 0 && isspace(text.data[0])) {
        text.data++;
        text.size--;
    }
    return text;
}

static struct tarn_status *from_settings(const struct tarn_s3_settings *settings,
                                         struct tarn_s3_keys **out)
{
    TARN_OWN(secret_drop) struct tarn_buf secret = {0};
    TARN_OWN(secret_drop) struct tarn_buf token = {0};
    TARN_TRY(read_file(settings->secret_key_file, &secret));
    if (settings->session_token_file[0] != '\0')
        TARN_TRY(read_file(settings->session_token_file, &token));
    return make_keys(settings->secret_key_file, tarn_slice_str(settings->access_key),
                     trimmed(tarn_buf_slice(&secret)), trimmed(tarn_buf_slice(&token)), INT64_MAX,
                     out);
}

static struct tarn_status *from_environment(struct tarn_s3_keys **out)
{
    return make_keys("the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)",
                     tarn_slice_str(getenv("AWS_ACCESS_KEY_ID")),
                     tarn_slice_str(getenv("AWS_SECRET_ACCESS_KEY")),
                     tarn_slice_str(getenv("AWS_SESSION_TOKEN")), INT64_MAX, out);
}

/* --- the shared credentials file --- */

struct profile {
    bool found;
    struct tarn_slice access_key, secret_key, session_token;
};

/* "[name]" and "[profile name]" */
static bool names_profile(struct tarn_slice line, const char *profile)
{
    line = trimmed(tarn_slice_of(line.data + 1, line.size - 2));
    if (tarn_slice_starts_with(line, tarn_slice_str("profile ")))
        line = trimmed(tarn_slice_of(line.data + 8, line.size - 8));
    return tarn_slice_is(line, profile);
}

static void take_setting(struct profile *profile, struct tarn_slice line, const uint8_t *equals)
{
    struct tarn_slice name = trimmed(tarn_slice_of(line.data, (size_t)(equals - line.data)));
    struct tarn_slice value =
        trimmed(tarn_slice_of(equals + 1, line.size - (size_t)(equals + 1 - line.data)));
    if (tarn_slice_is(name, "aws_access_key_id"))
        profile->access_key = value;
    else if (tarn_slice_is(name, "aws_secret_access_key"))
        profile->secret_key = value;
    else if (tarn_slice_is(name, "aws_session_token"))
        profile->session_token = value;
}

struct tarn_status *tarn_s3__profile_find(struct tarn_slice text, const char *name,
                                          struct tarn_s3_keys **out)
{
    struct profile profile = {0};
    bool inside = false;
    int number = 0;
    while (text.size > 0) {
        const uint8_t *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        struct tarn_slice line = trimmed(tarn_slice_of(text.data, size));
        size += end != NULL;
        text = tarn_slice_of(text.data + size, text.size - size);
        number++;
        if (line.size == 0 || line.data[0] == '#' || line.data[0] == ';')
            continue;
        if (line.data[0] == '[') {
            if (line.data[line.size - 1] != ']')
                return tarn_status_new(TARN_VALUE_INVALID, "line %d: a section isn't closed",
                                       number);
            inside = names_profile(line, name);
            profile.found = profile.found || inside;
            continue;
        }
        const uint8_t *equals = memchr(line.data, '=', line.size);
        if (equals == NULL)
            return tarn_status_new(TARN_VALUE_INVALID, "line %d: expected NAME = VALUE", number);
        if (inside)
            take_setting(&profile, line, equals);
    }
    TARN_OWN(tarn_free_drop) char *what = tarn_format("profile [%s]", name);
    if (!profile.found)
        return tarn_status_new(TARN_VALUE_INVALID, "there is no %s", what);
    return make_keys(what, profile.access_key, profile.secret_key, profile.session_token, INT64_MAX,
                     out);
}

static struct tarn_status *from_shared_file(const struct tarn_s3_settings *settings,
                                            struct tarn_s3_keys **out)
{
    TARN_OWN(secret_drop) struct tarn_buf text = {0};
    TARN_TRY(read_file(settings->credentials_file, &text));
    struct tarn_status *s = tarn_s3__profile_find(tarn_buf_slice(&text), settings->profile, out);
    return tarn_status_wrap(tarn_status_as(s, TARN_STORE_DENIED), "%s", settings->credentials_file);
}

/* --- services --- */

/* An error of a service with its own words, but never its body. */
static struct tarn_status *service_failed(struct tarn_op *op, const char *what,
                                          const struct tarn_fetch_answer *answer,
                                          const struct tarn_buf *body)
{
    bool found;
    struct tarn_s3_error error;
    TARN_OWN(tarn_status_drop)
    struct tarn_status *s = tarn_s3__decode_error(tarn_buf_slice(body), op->arena, &found, &error);
    enum tarn_reason reason =
        answer->status >= 500 || answer->status == 429 ? TARN_STORE_UNAVAILABLE : TARN_STORE_DENIED;
    if (s != TARN_OK || !found)
        return tarn_status_new(reason, "%s answered %d", what, answer->status);
    return tarn_status_new(reason, "%s answered %d %.*s: %.*s", what, answer->status,
                           TARN_SLICE_ARG(error.code), TARN_SLICE_ARG(error.message));
}

static void role_request(const struct tarn_s3_settings *settings, struct tarn_slice token,
                         struct tarn_buf *out)
{
    tarn_buf_add_str(out, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=");
    tarn_url_encode(out, tarn_slice_str(settings->role_arn), "");
    tarn_buf_add_str(out, "&RoleSessionName=tarn&WebIdentityToken=");
    tarn_url_encode(out, token, "");
}

static struct tarn_status *from_web_identity(struct tarn_s3_credentials *credentials,
                                             struct tarn_op *op, struct tarn_s3_keys **out)
{
    static const char *const headers[] = {"Content-Type: application/x-www-form-urlencoded"};
    const struct tarn_s3_settings *settings = credentials->settings;
    TARN_OWN(secret_drop) struct tarn_buf token = {0};
    TARN_OWN(secret_drop) struct tarn_buf body = {0};
    TARN_OWN(secret_drop) struct tarn_buf answer_body = {0};
    struct tarn_fetch_answer answer;
    TARN_TRY(read_file(settings->web_identity_token_file, &token));
    role_request(settings, trimmed(tarn_buf_slice(&token)), &body);
    struct tarn_fetch_request request = {
        .method = "POST",
        .url = tarn_arena_printf(op->arena, "%s/", settings->sts_endpoint),
        .headers = headers,
        .header_count = TARN_COUNT_OF(headers),
        .body = tarn_buf_slice(&body),
    };
    TARN_TRY(tarn_fetch(credentials->fetch, op, &request, &answer_body, &answer));
    if (answer.status != 200)
        return service_failed(op, request.url, &answer, &answer_body);
    struct tarn_status *s = tarn_s3__decode_role(tarn_buf_slice(&answer_body), op->arena, out);
    return tarn_status_wrap(tarn_status_as(s, TARN_STORE_DENIED), "%s", request.url);
}

static struct tarn_status *ask_instance(struct tarn_s3_credentials *credentials, struct tarn_op *op,
                                        const char *method, const char *path, const char *header,
                                        struct tarn_buf *body)
{
    struct tarn_fetch_answer answer;
    struct tarn_fetch_request request = {
        .method = method,
        .url = tarn_arena_printf(op->arena, "%s%s", credentials->settings->instance_endpoint, path),
        .headers = &header,
        .header_count = 1,
        .answer_max = (size_t)64 << 10,
    };
    TARN_TRY(tarn_fetch(credentials->fetch, op, &request, body, &answer));
    return answer.status == 200 ? TARN_OK
                                : tarn_status_new(TARN_STORE_DENIED,
                                                  "the instance's metadata service answered %d to "
                                                  "%s %s",
                                                  answer.status, method, request.url);
}

static struct tarn_status *instance_keys(struct tarn_slice text, struct tarn_s3_keys **out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    int64_t expires_ms = INT64_MAX;
    struct tarn_status *s = tarn_json_parse(text, &json);
    if (s != TARN_OK || tarn_json_kind(json) != TARN_JSON_OBJECT) {
        tarn_status_free(s);
        return tarn_status_new(TARN_STORE_DENIED,
                               "the instance's metadata service gives no JSON object");
    }
    struct tarn_slice expires = tarn_json_text(tarn_json_find(json, "Expiration"));
    if (expires.size > 0)
        TARN_TRY(tarn_parse_time(expires, &expires_ms));
    return make_keys("the instance's metadata service",
                     tarn_json_text(tarn_json_find(json, "AccessKeyId")),
                     tarn_json_text(tarn_json_find(json, "SecretAccessKey")),
                     tarn_json_text(tarn_json_find(json, "Token")), expires_ms, out);
}

/* Version 2: a token first, then the name of the instance's role, then its keys. */
static struct tarn_status *from_instance(struct tarn_s3_credentials *credentials,
                                         struct tarn_op *op, struct tarn_s3_keys **out)
{
    static const char path[] = "/latest/meta-data/iam/security-credentials/";
    TARN_OWN(secret_drop) struct tarn_buf token = {0};
    TARN_OWN(secret_drop) struct tarn_buf keys = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf role = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf url = {0};
    TARN_TRY(ask_instance(credentials, op, "PUT", "/latest/api/token",
                          "X-aws-ec2-metadata-token-ttl-seconds: 21600", &token));
    struct tarn_slice text = trimmed(tarn_buf_slice(&token));
    if (text.size == 0 || !is_printable(text))
        return tarn_status_new(TARN_STORE_DENIED, "the instance's metadata service gives no token");
    const char *header =
        tarn_arena_printf(op->arena, "X-aws-ec2-metadata-token: %.*s", TARN_SLICE_ARG(text));
    TARN_TRY(ask_instance(credentials, op, "GET", path, header, &role));
    text = trimmed(tarn_buf_slice(&role));
    if (text.size == 0 || !is_printable(text))
        return tarn_status_new(TARN_STORE_DENIED, "the instance has no role");
    tarn_buf_add_str(&url, path);
    tarn_url_encode(&url, text, "");
    TARN_TRY(ask_instance(credentials, op, "GET", tarn_buf_cstr(&url), header, &keys));
    return instance_keys(tarn_buf_slice(&keys), out);
}

/* --- the present ones --- */

static enum tarn_s3_source choose_source(const struct tarn_s3_settings *settings)
{
    if (settings->source != TARN_S3_AUTO)
        return settings->source;
    if (settings->access_key[0] != '\0')
        return TARN_S3_STATIC;
    const char *key = getenv("AWS_ACCESS_KEY_ID");
    if (key != NULL && key[0] != '\0')
        return TARN_S3_ENVIRONMENT;
    if (settings->role_arn[0] != '\0' && settings->web_identity_token_file[0] != '\0')
        return TARN_S3_WEB_IDENTITY;
    return TARN_S3_FILE;
}

struct tarn_s3_credentials *tarn_s3__credentials_new(const struct tarn_s3_settings *settings,
                                                     struct tarn_fetch *fetch)
{
    struct tarn_s3_credentials *credentials = tarn_calloc(1, sizeof *credentials);
    credentials->settings = settings;
    credentials->fetch = fetch;
    credentials->source = choose_source(settings);
    pthread_mutex_init(&credentials->fetching, NULL);
    pthread_mutex_init(&credentials->lock, NULL);
    return credentials;
}

void tarn_s3__credentials_free(struct tarn_s3_credentials *credentials)
{
    if (credentials == NULL)
        return;
    tarn_s3__keys_drop(&credentials->present);
    pthread_mutex_destroy(&credentials->fetching);
    pthread_mutex_destroy(&credentials->lock);
    free(credentials);
}

static struct tarn_status *fetch_keys(struct tarn_s3_credentials *credentials, struct tarn_op *op,
                                      struct tarn_s3_keys **out)
{
    switch (credentials->source) {
    case TARN_S3_STATIC:
        return from_settings(credentials->settings, out);
    case TARN_S3_ENVIRONMENT:
        return from_environment(out);
    case TARN_S3_WEB_IDENTITY:
        return from_web_identity(credentials, op, out);
    case TARN_S3_INSTANCE:
        return from_instance(credentials, op, out);
    default:
        return from_shared_file(credentials->settings, out);
    }
}

static const char *source_name(enum tarn_s3_source source)
{
    static const char *const names[] = {
        [TARN_S3_STATIC] = "s3.access_key",         [TARN_S3_ENVIRONMENT] = "the environment",
        [TARN_S3_WEB_IDENTITY] = "web identity",    [TARN_S3_FILE] = "the shared credentials file",
        [TARN_S3_INSTANCE] = "the instance's role",
    };
    return names[source];
}

/* Under no lock but `fetching`. The op's deadline may be generous; the metadata service's is not. */
static struct tarn_status *fetch_in_time(struct tarn_s3_credentials *credentials,
                                         struct tarn_op *op, struct tarn_s3_keys **out)
{
    TARN_OWN(tarn_op_fini) struct tarn_op child;
    tarn_op_init_child(&child, op);
    if (credentials->source == TARN_S3_INSTANCE)
        child.deadline_mono_ms =
            TARN_MIN(child.deadline_mono_ms, tarn_clock_mono_ms() + INSTANCE_WAIT_MS);
    struct tarn_status *s = fetch_keys(credentials, &child, out);
    if (s == TARN_OK)
        return TARN_OK;
    return tarn_status_wrap(s, "credentials of %s", source_name(credentials->source));
}

enum need { FRESH, RENEW, MISSING };

/* Under the lock. */
static enum need need_of(const struct tarn_s3_credentials *credentials,
                         const struct tarn_s3_keys *refused)
{
    const struct tarn_s3_keys *present = credentials->present;
    if (present == NULL || present == refused)
        return MISSING;
    if (present->expires_ms == INT64_MAX)
        return FRESH;
    int64_t left = present->expires_ms - tarn_clock_wall_ms();
    if (left <= 0)
        return MISSING;
    bool may_try = tarn_clock_mono_ms() >= credentials->next_try_ms;
    return left <= REFRESH_BEFORE_MS && may_try ? RENEW : FRESH;
}

static enum need look(struct tarn_s3_credentials *credentials, const struct tarn_s3_keys *refused,
                      struct tarn_s3_keys **out)
{
    pthread_mutex_lock(&credentials->lock);
    enum need need = need_of(credentials, refused);
    *out = need == MISSING ? NULL : keys_ref(credentials->present);
    pthread_mutex_unlock(&credentials->lock);
    return need;
}

/* `fetching` is held. A failure matters only where there is nothing to go on with. */
static struct tarn_status *renew(struct tarn_s3_credentials *credentials, struct tarn_op *op,
                                 enum need need, struct tarn_s3_keys **out)
{
    struct tarn_s3_keys *keys = NULL;
    struct tarn_status *s = fetch_in_time(credentials, op, &keys);
    pthread_mutex_lock(&credentials->lock);
    if (s == TARN_OK) {
        struct tarn_s3_keys *old = credentials->present;
        credentials->present = keys;
        credentials->next_try_ms = tarn_clock_mono_ms() + RETRY_AFTER_MS;
        keys_ref(keys);
        pthread_mutex_unlock(&credentials->lock);
        tarn_s3__keys_drop(&old);
        tarn_s3__keys_drop(out);
        *out = keys;
        return TARN_OK;
    }
    credentials->next_try_ms = tarn_clock_mono_ms() + RETRY_AFTER_MS;
    pthread_mutex_unlock(&credentials->lock);
    if (need == MISSING)
        return s;
    tarn_log_status(op, TARN_WARN, "store.credentials_failed", s);
    return TARN_OK;
}

struct tarn_status *tarn_s3__credentials_get(struct tarn_s3_credentials *credentials,
                                             struct tarn_op *op, const struct tarn_s3_keys *refused,
                                             struct tarn_s3_keys **out)
{
    *out = NULL;
    if (credentials->source == TARN_S3_ANONYMOUS)
        return TARN_OK;
    enum need need = look(credentials, refused, out);
    if (need == FRESH)
        return TARN_OK;
    tarn_exec_wait_begin();
    if (need == MISSING)
        pthread_mutex_lock(&credentials->fetching);
    else if (pthread_mutex_trylock(&credentials->fetching) != 0) {
        tarn_exec_wait_end(); /* somebody is at it */
        return TARN_OK;
    }
    tarn_s3__keys_drop(out);
    need = look(credentials, refused, out); /* it may have been done meanwhile */
    struct tarn_status *s = need == FRESH ? TARN_OK : renew(credentials, op, need, out);
    pthread_mutex_unlock(&credentials->fetching);
    tarn_exec_wait_end();
    if (s != TARN_OK)
        tarn_s3__keys_drop(out);
    return s;
}
