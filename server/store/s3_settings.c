/* s3_settings - section [s3] and the warehouse's URI as one struct, with what the environment adds. */
#include "store/s3.h"

#include <ctype.h>
#include <errno.h>
#include <unistd.h>

#define PART_SIZE_MIN ((int64_t)5 << 20) /* S3's own limits */
#define PART_SIZE_MAX ((int64_t)1 << 30)

static const char *text_of(const struct tarn_conf *conf, enum tarn_conf_key key)
{
    return tarn_conf_text(conf, key);
}

/* The key's value, else that of the first variable that has one, else `otherwise`; owned. */
static char *value_or(const struct tarn_conf *conf, enum tarn_conf_key key, const char *variable,
                      const char *variable2, const char *otherwise)
{
    const char *value = text_of(conf, key);
    if (value[0] == '\0' && variable != NULL)
        value = getenv(variable);
    if ((value == NULL || value[0] == '\0') && variable2 != NULL)
        value = getenv(variable2);
    return tarn_strdup(value == NULL || value[0] == '\0' ? otherwise : value);
}

static struct tarn_status *wrong(enum tarn_conf_key key, const char *value, const char *want)
{
    return tarn_status_new(TARN_CONFIG_INVALID, "%s = %s; want %s", tarn_conf_key_name(key), value,
                           want);
}

/* --- the URI --- */

static struct tarn_status *read_uri(const char *uri, struct tarn_s3_settings *out)
{
    const char *at = uri + strcspn(uri, ":") + 1;
    if (strncmp(at, "//", 2) != 0)
        return tarn_status_new(TARN_PATH_INVALID, "'%s' names no bucket: expected s3://bucket/path",
                               uri);
    at += 2;
    size_t size = strcspn(at, "/");
    bool good = size >= 3 && size <= 63;
    for (size_t i = 0; good && i < size; i++)
        good = isalnum((unsigned char)at[i]) || strchr(".-_", at[i]) != NULL;
    if (!good)
        return tarn_status_new(
            TARN_PATH_INVALID,
            "'%s': a bucket's name has 3 to 63 letters, digits, '-', '_' and '.'; expected "
            "s3://bucket/path",
            uri);
    out->bucket = tarn_slice_dup(tarn_slice_of(at, size));
    at += size;
    at += at[0] == '/';
    size = strlen(at);
    while (size > 0 && at[size - 1] == '/')
        size--;
    out->prefix = tarn_slice_dup(tarn_slice_of(at, size));
    struct tarn_status *status = tarn_store__key_check(out->prefix, true);
    return status == TARN_OK ? TARN_OK : tarn_status_wrap(status, "'%s'", uri);
}

/* --- endpoints --- */

/* "https://host[:port]" without anything behind; *host without the scheme's own port. */
static struct tarn_status *check_endpoint(enum tarn_conf_key key, char *endpoint, char **host)
{
    bool secure = strncmp(endpoint, "https://", 8) == 0;
    size_t size = strlen(endpoint);
    while (size > 0 && endpoint[size - 1] == '/')
        endpoint[--size] = '\0';
    if (!secure && strncmp(endpoint, "http://", 7) != 0)
        return wrong(key, endpoint, "http://HOST:PORT or https://HOST:PORT");
    const char *name = endpoint + (secure ? 8 : 7);
    size_t port = strlen(name);
    if (name[0] == '\0' || strpbrk(name, "/?#@ \t") != NULL)
        return wrong(key, endpoint, "http://HOST:PORT or https://HOST:PORT");
    if (port > 4 && secure && strcmp(name + port - 4, ":443") == 0)
        port -= 4;
    else if (port > 3 && !secure && strcmp(name + port - 3, ":80") == 0)
        port -= 3;
    *host = tarn_slice_dup(tarn_slice_of(name, port));
    return TARN_OK;
}

static struct tarn_status *read_endpoint(const struct tarn_conf *conf, struct tarn_s3_settings *out)
{
    const char *domain = strncmp(out->region, "cn-", 3) == 0 ? "amazonaws.com.cn" : "amazonaws.com";
    TARN_OWN(tarn_free_drop) char *ours = tarn_format("https://s3.%s.%s", out->region, domain);
    out->endpoint =
        value_or(conf, TARN_CONF_s3_endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", ours);
    TARN_TRY(check_endpoint(TARN_CONF_s3_endpoint, out->endpoint, &out->host));
    TARN_OWN(tarn_free_drop) char *sts = tarn_format("https://sts.%s.%s", out->region, domain);
    out->sts_endpoint =
        value_or(conf, TARN_CONF_s3_sts_endpoint, "AWS_ENDPOINT_URL_STS", NULL, sts);
    out->instance_endpoint =
        value_or(conf, TARN_CONF_s3_instance_endpoint, "AWS_EC2_METADATA_SERVICE_ENDPOINT", NULL,
                 "http://169.254.169.254");
    TARN_OWN(tarn_free_drop) char *sts_host = NULL;
    TARN_OWN(tarn_free_drop) char *instance_host = NULL;
    TARN_TRY(check_endpoint(TARN_CONF_s3_sts_endpoint, out->sts_endpoint, &sts_host));
    TARN_TRY(
        check_endpoint(TARN_CONF_s3_instance_endpoint, out->instance_endpoint, &instance_host));

    const char *style = text_of(conf, TARN_CONF_s3_path_style);
    bool amazon = strcmp(out->endpoint, ours) == 0;
    if (strcmp(style, "auto") == 0) /* a certificate's "*" covers no dots */
        out->path_style = !amazon || strchr(out->bucket, '.') != NULL;
    else if (strcmp(style, "true") == 0 || strcmp(style, "false") == 0)
        out->path_style = strcmp(style, "true") == 0;
    else
        return wrong(TARN_CONF_s3_path_style, style, "auto, true or false");
    return TARN_OK;
}

/* --- credentials --- */

static struct tarn_status *read_source(const struct tarn_conf *conf, struct tarn_s3_settings *out)
{
    static const char *const names[] = {"auto", "static",   "environment", "web_identity",
                                        "file", "instance", "anonymous"};
    const char *name = text_of(conf, TARN_CONF_s3_credentials);
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++)
        if (strcmp(name, names[i]) == 0) {
            out->source = (enum tarn_s3_source)i;
            return TARN_OK;
        }
    return wrong(TARN_CONF_s3_credentials, name,
                 "auto, static, environment, web_identity, file, instance or anonymous");
}

static char *home_file(const char *name)
{
    const char *home = getenv("HOME");
    return tarn_format("%s/%s", home == NULL ? "" : home, name);
}

static struct tarn_status *read_credentials(const struct tarn_conf *conf,
                                            struct tarn_s3_settings *out)
{
    TARN_OWN(tarn_free_drop) char *shared = home_file(".aws/credentials");
    TARN_TRY(read_source(conf, out));
    out->access_key = tarn_strdup(text_of(conf, TARN_CONF_s3_access_key));
    out->secret_key_file = tarn_strdup(text_of(conf, TARN_CONF_s3_secret_key_file));
    out->session_token_file = tarn_strdup(text_of(conf, TARN_CONF_s3_session_token_file));
    out->credentials_file =
        value_or(conf, TARN_CONF_s3_credentials_file, "AWS_SHARED_CREDENTIALS_FILE", NULL, shared);
    out->profile = value_or(conf, TARN_CONF_s3_profile, "AWS_PROFILE", NULL, "default");
    out->role_arn = value_or(conf, TARN_CONF_s3_role_arn, "AWS_ROLE_ARN", NULL, "");
    out->web_identity_token_file = value_or(conf, TARN_CONF_s3_web_identity_token_file,
                                            "AWS_WEB_IDENTITY_TOKEN_FILE", NULL, "");
    bool key = out->access_key[0] != '\0', secret = out->secret_key_file[0] != '\0';
    if (key != secret)
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "s3.access_key and s3.secret_key_file go together; %s is empty",
                               key ? "s3.secret_key_file" : "s3.access_key");
    if (out->source == TARN_S3_STATIC && !key)
        return tarn_status_new(
            TARN_CONFIG_INVALID,
            "s3.credentials = static needs s3.access_key and s3.secret_key_file");
    if (out->source == TARN_S3_WEB_IDENTITY &&
        (out->role_arn[0] == '\0' || out->web_identity_token_file[0] == '\0'))
        return tarn_status_new(
            TARN_CONFIG_INVALID,
            "s3.credentials = web_identity needs s3.role_arn and s3.web_identity_token_file");
    return TARN_OK;
}

/* --- the rest --- */

static struct tarn_status *read_number(const struct tarn_conf *conf, enum tarn_conf_key key,
                                       int64_t low, int64_t high, int64_t *out)
{
    *out = tarn_conf_int(conf, key);
    if (*out >= low && *out <= high)
        return TARN_OK;
    return tarn_status_new(TARN_CONFIG_INVALID, "%s = %" PRId64 "; want %" PRId64 " to %" PRId64,
                           tarn_conf_key_name(key), *out, low, high);
}

/* So that a start says so, not the first request of a worker. */
static struct tarn_status *check_readable(enum tarn_conf_key key, const char *path)
{
    if (path[0] == '\0' || access(path, R_OK) == 0)
        return TARN_OK;
    return tarn_status_new(TARN_CONFIG_INVALID, "%s = %s can't be read: %s",
                           tarn_conf_key_name(key), path, strerror(errno));
}

static struct tarn_status *read_limits(const struct tarn_conf *conf, struct tarn_s3_settings *out)
{
    int64_t retries, connections;
    const char *put = text_of(conf, TARN_CONF_s3_conditional_put);
    if (strcmp(put, "required") != 0 && strcmp(put, "single_writer") != 0)
        return wrong(TARN_CONF_s3_conditional_put, put, "required or single_writer");
    out->single_writer = strcmp(put, "single_writer") == 0;
    out->ca_file = tarn_strdup(text_of(conf, TARN_CONF_s3_ca_file));
    TARN_TRY(read_number(conf, TARN_CONF_s3_connect_timeout, 10, 600000, &out->connect_timeout_ms));
    TARN_TRY(read_number(conf, TARN_CONF_s3_timeout, 10, 3600000, &out->idle_timeout_ms));
    TARN_TRY(read_number(conf, TARN_CONF_s3_retries, 0, 100, &retries));
    TARN_TRY(read_number(conf, TARN_CONF_s3_connections, 1, 10000, &connections));
    TARN_TRY(
        read_number(conf, TARN_CONF_s3_part_size, PART_SIZE_MIN, PART_SIZE_MAX, &out->part_size));
    out->retries = (int)retries;
    out->connections = (int)connections;
    TARN_TRY(check_readable(TARN_CONF_s3_ca_file, out->ca_file));
    TARN_TRY(check_readable(TARN_CONF_s3_secret_key_file, out->secret_key_file));
    return check_readable(TARN_CONF_s3_session_token_file, out->session_token_file);
}

static struct tarn_status *check_region(const char *region)
{
    for (const char *c = region; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-_", *c) == NULL)
            return wrong(TARN_CONF_s3_region, region, "letters, digits and '-'");
    return TARN_OK;
}

static struct tarn_status *read_all(const struct tarn_conf *conf, const char *uri,
                                    struct tarn_s3_settings *out)
{
    out->region =
        value_or(conf, TARN_CONF_s3_region, "AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1");
    TARN_TRY(check_region(out->region));
    TARN_TRY(read_uri(uri, out));
    TARN_TRY(read_endpoint(conf, out));
    TARN_TRY(read_credentials(conf, out));
    return read_limits(conf, out);
}

struct tarn_status *tarn_s3__settings_read(const struct tarn_conf *conf, const char *uri,
                                           struct tarn_s3_settings *out)
{
    *out = (struct tarn_s3_settings){0};
    struct tarn_status *status = read_all(conf, uri, out);
    if (status != TARN_OK)
        tarn_s3__settings_fini(out);
    return status;
}

void tarn_s3__settings_fini(struct tarn_s3_settings *settings)
{
    char *const texts[] = {
        settings->bucket,           settings->prefix,
        settings->endpoint,         settings->host,
        settings->region,           settings->access_key,
        settings->secret_key_file,  settings->session_token_file,
        settings->credentials_file, settings->profile,
        settings->role_arn,         settings->web_identity_token_file,
        settings->sts_endpoint,     settings->instance_endpoint,
        settings->ca_file,
    };
    for (size_t i = 0; i < TARN_COUNT_OF(texts); i++)
        free(texts[i]);
    *settings = (struct tarn_s3_settings){0};
}
