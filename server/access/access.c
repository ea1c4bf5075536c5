#include "access/access.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Who asks. A token file has one principal a line, "name:token" or "token" (then named by its line); blank
 * lines and lines that begin with # are skipped. Tokens are compared in constant time and never logged.
 */

#define TOKEN_FILE_SIZE_MAX (1 << 20)
#define TOKEN_SIZE_MIN 8
#define TOKEN_SIZE_MAX 256

#define PRINCIPAL_WORKER "tarn-worker" /* those that know the workers' secret */
#define PRINCIPAL_ANYBODY "anonymous"

struct token {
    char *name, *secret;
};

struct tarn_access {
    bool needs_token;
    char *token_file;
    char worker_secret[TOKEN_SIZE_MAX + 1];
    pthread_mutex_t lock; /* guards tokens */
    struct token *tokens;
    size_t token_count;
};

struct token_list {
    struct token *items;
    size_t count, capacity;
};

static void token_list_fini(struct token_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].secret);
    }
    free(list->items);
    *list = (struct token_list){0};
}

static struct tarn_status *read_file(const char *path, struct tarn_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tarn_status_new(TARN_CONFIG_INVALID, "auth.token_file %s: %s", path,
                               strerror(errno));
    struct stat st;
    struct tarn_status *s = TARN_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > TOKEN_FILE_SIZE_MAX)
        s = tarn_status_new(TARN_CONFIG_INVALID,
                            "auth.token_file %s is no file of at most %d bytes", path,
                            TOKEN_FILE_SIZE_MAX);
    else if (st.st_mode & S_IROTH)
        s = tarn_status_new(TARN_CONFIG_INVALID,
                            "auth.token_file %s may be read by everybody; chmod o-r it", path);
    uint8_t chunk[4096];
    ssize_t got = 0;
    while (s == TARN_OK && (got = read(fd, chunk, sizeof chunk)) > 0) {
        tarn_buf_add(out, chunk, (size_t)got);
        if (out->size > TOKEN_FILE_SIZE_MAX)
            s = tarn_status_new(TARN_CONFIG_INVALID, "auth.token_file %s grew while it was read",
                                path);
    }
    if (s == TARN_OK && got < 0)
        s = tarn_status_new(TARN_CONFIG_INVALID, "auth.token_file %s: %s", path, strerror(errno));
    close(fd);
    return s;
}

static struct tarn_status *add_line(struct token_list *list, const char *path, int line,
                                    struct tarn_slice text)
{
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\r'))
        text.size--;
    if (text.size == 0 || text.data[0] == '#')
        return TARN_OK;
    const uint8_t *colon = memchr(text.data, ':', text.size);
    struct tarn_slice name =
        colon == NULL ? text : tarn_slice_of(text.data, (size_t)(colon - text.data));
    struct tarn_slice secret =
        colon == NULL ? text : tarn_slice_of(colon + 1, text.size - name.size - 1);
    if (secret.size < TOKEN_SIZE_MIN || secret.size > TOKEN_SIZE_MAX ||
        (colon != NULL && name.size == 0))
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "auth.token_file %s:%d: want name:token, a token of %d to %d "
                               "characters",
                               path, line, TOKEN_SIZE_MIN, TOKEN_SIZE_MAX);
    TARN_GROW(list->items, list->count, list->capacity);
    list->items[list->count++] =
        (struct token){colon == NULL ? tarn_format("token-%d", line) : tarn_slice_dup(name),
                       tarn_slice_dup(secret)};
    return TARN_OK;
}

static struct tarn_status *load_tokens(const char *path, struct token_list *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(token_list_fini) struct token_list list = {0};
    TARN_TRY(read_file(path, &text));
    int line = 1;
    for (size_t begin = 0; begin < text.size; line++) {
        const uint8_t *newline = memchr(text.data + begin, '\n', text.size - begin);
        size_t end = newline == NULL ? text.size : (size_t)(newline - text.data);
        TARN_TRY(add_line(&list, path, line, tarn_slice_of(text.data + begin, end - begin)));
        begin = end + 1;
    }
    if (list.count == 0)
        return tarn_status_new(TARN_CONFIG_INVALID, "auth.token_file %s has no token", path);
    *out = list;
    list = (struct token_list){0};
    return TARN_OK;
}

struct tarn_status *tarn_access_open(const struct tarn_conf *conf, struct tarn_access **out)
{
    const char *mode = tarn_conf_text(conf, TARN_CONF_auth_mode);
    bool token = strcmp(mode, "token") == 0;
    if (!token && strcmp(mode, "none") != 0)
        return strcmp(mode, "oidc") == 0
                   ? tarn_status_new(TARN_UNIMPLEMENTED,
                                     "auth.mode = oidc is not there yet; use token")
                   : tarn_status_new(TARN_CONFIG_INVALID, "auth.mode = %s; want none or token",
                                     mode);
    const char *file = tarn_conf_text(conf, TARN_CONF_auth_token_file);
    if (token && file[0] == '\0')
        return tarn_status_new(TARN_CONFIG_INVALID, "auth.mode = token needs auth.token_file");
    struct tarn_access *access = tarn_calloc(1, sizeof *access);
    pthread_mutex_init(&access->lock, NULL);
    access->needs_token = token;
    access->token_file = tarn_strdup(file);
    uint8_t secret[TARN_SHA256_SIZE];
    tarn_random_bytes(secret, sizeof secret);
    TARN_OWN(tarn_buf_drop) struct tarn_buf hex = {0};
    tarn_hex_encode(tarn_slice_of(secret, sizeof secret), &hex);
    snprintf(access->worker_secret, sizeof access->worker_secret, "%s", tarn_buf_cstr(&hex));
    struct tarn_status *s = token ? tarn_access_reload(access) : TARN_OK;
    if (s != TARN_OK) {
        tarn_access_close(access);
        return s;
    }
    *out = access;
    return TARN_OK;
}

void tarn_access_close(struct tarn_access *access)
{
    if (access == NULL)
        return;
    struct token_list list = {access->tokens, access->token_count, 0};
    token_list_fini(&list);
    pthread_mutex_destroy(&access->lock);
    explicit_bzero(access->worker_secret, sizeof access->worker_secret);
    free(access->token_file);
    free(access);
}

/* A principal of the workers' name in the file: its token is the secret of all workers, so that those of other
 * hosts can know it. Only at open: workers that run were given the secret of that moment. */
static void adopt_worker_secret(struct tarn_access *access, const struct token_list *list)
{
    for (size_t i = 0; access->tokens == NULL && i < list->count; i++)
        if (strcmp(list->items[i].name, PRINCIPAL_WORKER) == 0)
            snprintf(access->worker_secret, sizeof access->worker_secret, "%s",
                     list->items[i].secret);
}

struct tarn_status *tarn_access_reload(struct tarn_access *access)
{
    if (!access->needs_token)
        return TARN_OK;
    struct token_list list = {0};
    TARN_TRY(load_tokens(access->token_file, &list));
    adopt_worker_secret(access, &list);
    pthread_mutex_lock(&access->lock);
    struct token_list old = {access->tokens, access->token_count, 0};
    access->tokens = list.items;
    access->token_count = list.count;
    pthread_mutex_unlock(&access->lock);
    token_list_fini(&old);
    return TARN_OK;
}

const char *tarn_access_worker_secret(const struct tarn_access *access)
{
    return access->worker_secret;
}

struct tarn_status *tarn_access_authenticate(struct tarn_access *access, struct tarn_op *op,
                                             struct tarn_slice token)
{
    if (tarn_secret_equal(token, tarn_slice_str(access->worker_secret))) {
        op->principal = PRINCIPAL_WORKER;
        return TARN_OK;
    }
    if (!access->needs_token) {
        op->principal = PRINCIPAL_ANYBODY;
        return TARN_OK;
    }
    const char *name = NULL;
    pthread_mutex_lock(&access->lock);
    for (size_t i = 0; i < access->token_count; i++) /* all of them: the time must not tell which */
        if (tarn_secret_equal(token, tarn_slice_str(access->tokens[i].secret)))
            name = access->tokens[i].name;
    if (name != NULL)
        op->principal = tarn_arena_str(op->arena, tarn_slice_str(name));
    pthread_mutex_unlock(&access->lock);
    if (name == NULL)
        return tarn_status_new(TARN_UNAUTHENTICATED, token.size == 0
                                                         ? "this server wants a token"
                                                         : "the token is not known here");
    return TARN_OK;
}

struct tarn_status *tarn_access_check(struct tarn_access *access, struct tarn_op *op,
                                      enum tarn_action action, const char *database,
                                      const char *table)
{
    bool worker = strcmp(op->principal, PRINCIPAL_WORKER) == 0;
    /* Where everybody is trusted, a worker on another host needs no token either. */
    if (action == TARN_ACTION_WORK && access->needs_token && !worker)
        return tarn_status_new(TARN_PERMISSION_DENIED, "%s is no worker of this server",
                               op->principal);
    if (op->principal[0] == '\0')
        return tarn_status_new(TARN_UNAUTHENTICATED, "nobody has said who asks");
    return TARN_OK;
}

static int by_text(const void *a, const void *b)
{
    return tarn_slice_compare(*(const struct tarn_slice *)a, *(const struct tarn_slice *)b);
}

void tarn_access_principals(struct tarn_access *access, struct tarn_op *op,
                            const struct tarn_slice **out, size_t *count)
{
    pthread_mutex_lock(&access->lock);
    struct tarn_slice *list = tarn_arena_calloc(op->arena, access->token_count + 1, sizeof *list);
    size_t all = 0, n = 0;
    for (size_t i = 0; i < access->token_count; i++)
        if (strcmp(access->tokens[i].name, PRINCIPAL_WORKER) != 0)
            list[all++] = tarn_arena_copy(op->arena, tarn_slice_str(access->tokens[i].name));
    pthread_mutex_unlock(&access->lock);
    if (!access->needs_token)
        list[all++] = tarn_slice_str(PRINCIPAL_ANYBODY);
    qsort(list, all, sizeof *list, by_text);
    for (size_t i = 0; i < all; i++)
        if (n == 0 || !tarn_slice_equal(list[n - 1], list[i]))
            list[n++] = list[i];
    *out = list;
    *count = n;
}
