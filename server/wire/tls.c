/*
 * TLS of the server: certificate and key are files that may change while it runs.
 *
 * gRPC asks `fetch` at each handshake. It answers "unchanged" unless reload put a new pair there.
 * Pairs are checked before they are taken, so that a broken file is an error for whoever reloads
 * and not a server nobody can reach.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>

#include <grpc/grpc_security.h>
#include <grpc/support/time.h>

#define PEM_SIZE_MAX (1u << 20)

struct pem_set {
    char *cert, *key, *ca; /* owned; ca NULL: clients show no certificate */
};

struct tarn_wire__tls {
    char *cert_file, *key_file, *ca_file; /* owned */
    pthread_mutex_t lock;                 /* guards `next` */
    struct pem_set next;                  /* for the next handshake; cert NULL: unchanged */
};

struct tarn_status *tarn_wire__read_pem(const char *path, char **out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: %s", path, strerror(errno));
    char *text = tarn_alloc(PEM_SIZE_MAX + 1);
    size_t size = fread(text, 1, PEM_SIZE_MAX + 1, file);
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed || size > PEM_SIZE_MAX || size == 0 || memchr(text, 0, size) != NULL) {
        free(text);
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: not a PEM file", path);
    }
    text[size] = '\0';
    if (strstr(text, "-----BEGIN ") == NULL) {
        free(text);
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: not a PEM file", path);
    }
    *out = tarn_realloc(text, size + 1);
    return TARN_OK;
}

static void pem_set_drop(struct pem_set *set)
{
    free(set->cert);
    free(set->key);
    free(set->ca);
    *set = (struct pem_set){0};
}

/*
 * Would gRPC take the pair? It tells only when a port is opened with it, so one is, on loopback and
 * for a moment.
 */
static struct tarn_status *check_set(const struct tarn_wire__tls *tls, const struct pem_set *set)
{
    grpc_ssl_pem_key_cert_pair pair = {.private_key = set->key, .cert_chain = set->cert};
    grpc_server_credentials *credentials = grpc_ssl_server_credentials_create_ex(
        set->ca, &pair, 1, GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE, NULL);
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server *server = grpc_server_create(NULL, NULL);
    gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);

    grpc_server_register_completion_queue(server, queue, NULL);
    bool good = grpc_server_add_http2_port(server, "127.0.0.1:0", credentials) > 0;
    grpc_server_shutdown_and_notify(server, queue, NULL);
    grpc_completion_queue_next(queue, never, NULL);
    grpc_server_destroy(server);
    grpc_completion_queue_shutdown(queue);
    while (grpc_completion_queue_next(queue, never, NULL).type != GRPC_QUEUE_SHUTDOWN)
        ;
    grpc_completion_queue_destroy(queue);
    grpc_server_credentials_release(credentials);
    if (!good)
        return tarn_status_new(TARN_CONFIG_INVALID,
                               "certificate %s and key %s are damaged or not a pair",
                               tls->cert_file, tls->key_file);
    return TARN_OK;
}

static struct tarn_status *read_set(const struct tarn_wire__tls *tls, struct pem_set *out)
{
    TARN_OWN(pem_set_drop) struct pem_set set = {0};
    TARN_TRY(tarn_wire__read_pem(tls->cert_file, &set.cert));
    TARN_TRY(tarn_wire__read_pem(tls->key_file, &set.key));
    if (tls->ca_file != NULL)
        TARN_TRY(tarn_wire__read_pem(tls->ca_file, &set.ca));
    TARN_TRY(check_set(tls, &set));
    *out = set;
    set = (struct pem_set){0};
    return TARN_OK;
}

static grpc_ssl_certificate_config_reload_status fetch(void *arg,
                                                       grpc_ssl_server_certificate_config **config)
{
    struct tarn_wire__tls *tls = arg;
    TARN_OWN(pem_set_drop) struct pem_set set = {0};

    pthread_mutex_lock(&tls->lock);
    set = tls->next;
    tls->next = (struct pem_set){0};
    pthread_mutex_unlock(&tls->lock);
    if (set.cert == NULL)
        return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    grpc_ssl_pem_key_cert_pair pair = {.private_key = set.key, .cert_chain = set.cert};
    /* It insists on roots, even where it asks no client for a certificate. */
    *config =
        grpc_ssl_server_certificate_config_create(set.ca != NULL ? set.ca : set.cert, &pair, 1);
    return *config == NULL ? GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL
                           : GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

struct tarn_status *tarn_wire__tls_open(const struct tarn_wire_server_options *options,
                                        struct tarn_wire__tls **out,
                                        grpc_server_credentials **credentials)
{
    struct tarn_wire__tls *tls;
    struct tarn_status *status;

    *out = NULL;
    if (options->cert_file == NULL) {
        *credentials = grpc_insecure_server_credentials_create();
        return TARN_OK;
    }
    if (options->key_file == NULL)
        return tarn_status_new(TARN_CONFIG_INVALID, "a certificate without a key");
    tls = tarn_calloc(1, sizeof *tls);
    tls->cert_file = tarn_strdup(options->cert_file);
    tls->key_file = tarn_strdup(options->key_file);
    tls->ca_file = tarn_strdup(options->client_ca_file);
    pthread_mutex_init(&tls->lock, NULL);
    status = read_set(tls, &tls->next);
    if (status != NULL) {
        tarn_wire__tls_free(tls);
        return status;
    }
    *credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            tls->ca_file != NULL ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                 : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            fetch, tls));
    *out = tls;
    return TARN_OK;
}

void tarn_wire__tls_free(struct tarn_wire__tls *tls)
{
    if (tls == NULL)
        return;
    pem_set_drop(&tls->next);
    pthread_mutex_destroy(&tls->lock);
    free(tls->cert_file);
    free(tls->key_file);
    free(tls->ca_file);
    free(tls);
}

struct tarn_status *tarn_wire_server_reload_tls(struct tarn_wire_server *server)
{
    struct tarn_wire__tls *tls = server->tls;
    struct pem_set set = {0};

    if (tls == NULL)
        return TARN_OK;
    TARN_TRY(read_set(tls, &set));
    pthread_mutex_lock(&tls->lock);
    pem_set_drop(&tls->next);
    tls->next = set;
    pthread_mutex_unlock(&tls->lock);
    return TARN_OK;
}
