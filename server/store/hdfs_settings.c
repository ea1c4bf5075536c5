/* hdfs_settings - section [hdfs] and the warehouse's URI as one struct. */
#include "store/hdfs.h"

#include <pwd.h>
#include <unistd.h>

#define WEBHDFS_PORT "9870" /* dfs.namenode.http-address, as HDFS comes */
#define CHUNK_SIZE_MIN ((int64_t)64 << 10)
#define CHUNK_SIZE_MAX ((int64_t)256 << 20)

/* "host:port", "[::1]:port", or less of it. */
static bool is_authority(struct tarn_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c != '\0' && strchr("-._:[]", c) != NULL)))
            return false;
    }
    return true;
}

/* *host without the port, *path "/a/b" or "". */
static struct tarn_status *read_uri(const char *uri, struct tarn_slice *host, char **path)
{
    const char *at = uri + strlen("hdfs:");
    if (strncmp(at, "//", 2) != 0)
        return tarn_status_new(TARN_PATH_INVALID, "'%s': expected hdfs://host:port/path", uri);
    at += 2;
    size_t size = strcspn(at, "/");
    struct tarn_slice authority = tarn_slice_of(at, size);
    if (!is_authority(authority))
        return tarn_status_new(TARN_PATH_INVALID,
                               "'%s' names no host: expected hdfs://host:port/path", uri);
    const char *colon = memrchr(at, ':', size);
    const char *bracket = memrchr(at, ']', size);
    if (colon != NULL && (bracket == NULL || colon > bracket))
        size = (size_t)(colon - at);
    *host = tarn_slice_of(at, size);
    const char *folder = at + authority.size;
    size = strlen(folder);
    while (size > 0 && folder[size - 1] == '/')
        size--;
    TARN_OWN(tarn_free_drop) char *root = tarn_slice_dup(tarn_slice_of(folder, size));
    struct tarn_status *status = size == 0 ? TARN_OK : tarn_store__key_check(root + 1, false);
    if (status != TARN_OK)
        return tarn_status_wrap(status, "'%s'", uri);
    *path = tarn_move(root);
    return TARN_OK;
}

/* --- endpoints --- */

static struct tarn_status *add_endpoint(struct tarn_hdfs_settings *out, struct tarn_slice text)
{
    while (text.size > 0 && text.data[text.size - 1] == '/')
        text.size--;
    bool secure = tarn_slice_starts_with(text, tarn_slice_str("https://"));
    size_t scheme = secure ? 8 : 7;
    if ((!secure && !tarn_slice_starts_with(text, tarn_slice_str("http://"))) ||
        text.size == scheme || !is_authority(tarn_slice_of(text.data + scheme, text.size - scheme)))
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "hdfs.webhdfs_endpoint = %.*s; want http://HOST:PORT or "
                               "https://HOST:PORT, several separated by commas",
                               TARN_SLICE_ARG(text));
    if (out->endpoint_count == TARN_HDFS_ENDPOINTS_MAX)
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "hdfs.webhdfs_endpoint names more than %d NameNodes",
                               TARN_HDFS_ENDPOINTS_MAX);
    out->endpoints[out->endpoint_count++] = tarn_slice_dup(text);
    return TARN_OK;
}

static struct tarn_status *read_endpoints(const char *text, struct tarn_slice host, const char *uri,
                                          struct tarn_hdfs_settings *out)
{
    if (text[0] != '\0') {
        while (*text != '\0') {
            size_t blank = strspn(text, " ,"), size = strcspn(text + blank, " ,");
            if (size > 0)
                TARN_TRY(add_endpoint(out, tarn_slice_of(text + blank, size)));
            text += blank + size;
        }
        if (out->endpoint_count > 0)
            return TARN_OK;
    }
    if (host.size == 0)
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "'%s' names no host: set hdfs.webhdfs_endpoint = http://HOST:PORT "
                               "of the NameNode's WebHDFS",
                               uri);
    out->endpoints[out->endpoint_count++] =
        tarn_format("http://%.*s:" WEBHDFS_PORT, TARN_SLICE_ARG(host));
    return TARN_OK;
}

/* --- who --- */

/* As Hadoop's clients: the variable, then the account. */
static char *user_name(const char *configured)
{
    if (configured[0] != '\0')
        return tarn_strdup(configured);
    const char *variable = getenv("HADOOP_USER_NAME");
    if (variable != NULL && variable[0] != '\0')
        return tarn_strdup(variable);
    struct passwd entry, *found = NULL;
    char memory[4096];
    if (getpwuid_r(geteuid(), &entry, memory, sizeof memory, &found) == 0 && found != NULL)
        return tarn_strdup(entry.pw_name);
    return tarn_format("%u", (unsigned)geteuid());
}

struct tarn_status *tarn_hdfs__settings_read(const struct tarn_conf *conf, const char *uri,
                                             struct tarn_hdfs_settings *out)
{
    struct tarn_slice host;
    int64_t chunk = tarn_conf_int(conf, TARN_CONF_hdfs_chunk_size);
    int64_t retries = tarn_conf_int(conf, TARN_CONF_hdfs_retries);
    int64_t connections = tarn_conf_int(conf, TARN_CONF_hdfs_connections);
    *out = (struct tarn_hdfs_settings){0};
    TARN_TRY(read_uri(uri, &host, &out->root));
    if (chunk < CHUNK_SIZE_MIN || chunk > CHUNK_SIZE_MAX)
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "hdfs.chunk_size = %" PRId64 "; want 64 kb to 256 mb", chunk);
    if (retries < 0 || retries > 100)
        return tarn_status_new(TARN_CONFIG_INVALID, "hdfs.retries = %" PRId64 "; want 0 to 100",
                               retries);
    if (connections < 1 || connections > 10000)
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "hdfs.connections = %" PRId64 "; want 1 to 10000", connections);
    out->chunk_size = (size_t)chunk;
    out->retries = (int)retries;
    out->connections = (int)connections;
    out->connect_timeout_ms = tarn_conf_int(conf, TARN_CONF_hdfs_connect_timeout);
    out->idle_timeout_ms = tarn_conf_int(conf, TARN_CONF_hdfs_timeout);
    out->user = user_name(tarn_conf_text(conf, TARN_CONF_hdfs_user));
    out->token_file = tarn_strdup(tarn_conf_text(conf, TARN_CONF_hdfs_delegation_token_file));
    out->ca_file = tarn_strdup(tarn_conf_text(conf, TARN_CONF_hdfs_ca_file));
    return read_endpoints(tarn_conf_text(conf, TARN_CONF_hdfs_webhdfs_endpoint), host, uri, out);
}

void tarn_hdfs__settings_fini(struct tarn_hdfs_settings *settings)
{
    for (size_t i = 0; i < settings->endpoint_count; i++)
        free(settings->endpoints[i]);
    free(settings->root);
    free(settings->user);
    free(settings->token_file);
    free(settings->ca_file);
    *settings = (struct tarn_hdfs_settings){0};
}

struct tarn_status *tarn_store__hdfs_check(const struct tarn_conf *conf, const char *uri)
{
    struct tarn_hdfs_settings settings;
    struct tarn_status *status = tarn_hdfs__settings_read(conf, uri, &settings);
    tarn_hdfs__settings_fini(&settings);
    return status;
}
