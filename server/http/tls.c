#include "http/internal.h"

#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

/*
 * TLS of the door. Certificate and key are files that may change while it runs: a pair is read and checked whole before
 * it takes the place of the last one, and connections hold on to the one they began with.
 */
struct tarn_http__tls {
    char *cert_file, *key_file, *ca_file; /* owned; ca_file NULL: clients show no certificate */
    pthread_mutex_t lock;                 /* guards context */
    SSL_CTX *context;                     /* for the next handshake */
};

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* The first complaint in OpenSSL's queue of this thread, which is emptied. */
static struct tarn_status *complain(const char *what, const char *file)
{
    unsigned long error = ERR_peek_error();
    const char *why =
        ERR_SYSTEM_ERROR(error) ? strerror(ERR_GET_REASON(error)) : ERR_reason_error_string(error);
    ERR_clear_error();
    return tarn_status_new(TARN_CONFIG_INVALID, "%s %s: %s", what, file,
                           why == NULL ? "can't be used" : why);
}

static int choose_protocol(SSL *ssl TARN_UNUSED, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *in, unsigned int in_size, void *arg TARN_UNUSED)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;
    int result = SSL_select_next_proto(&chosen, out_size, ours, sizeof ours - 1, in, in_size);
    *out = chosen;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void drop_context(SSL_CTX **context)
{
    SSL_CTX_free(*context);
}

static struct tarn_status *ask_for_certificates(SSL_CTX *context, const char *ca_file)
{
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ca_file);
    if (names == NULL || SSL_CTX_load_verify_locations(context, ca_file, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return complain("tls.client_ca", ca_file);
    }
    SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return TARN_OK;
}

static struct tarn_status *read_files(const struct tarn_http__tls *tls, SSL_CTX **out)
{
    static const unsigned char session_context[] = "tarn-http";
    ERR_clear_error();
    TARN_OWN(drop_context) SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    tarn_assert(context != NULL);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_id_context(context, session_context, sizeof session_context - 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (SSL_CTX_use_certificate_chain_file(context, tls->cert_file) != 1)
        return complain("tls.cert", tls->cert_file);
    if (SSL_CTX_use_PrivateKey_file(context, tls->key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return complain("tls.key", tls->key_file);
    if (tls->ca_file != NULL)
        TARN_TRY(ask_for_certificates(context, tls->ca_file));
    *out = tarn_move(context);
    return TARN_OK;
}

struct tarn_status *tarn_http__tls_open(const struct tarn_http_options *options,
                                        struct tarn_http__tls **out)
{
    *out = NULL;
    if (!is_set(options->cert_file))
        return is_set(options->key_file) || is_set(options->client_ca_file)
                   ? tarn_status_new(TARN_CONFIG_INVALID,
                                     "tls.key or tls.client_ca without tls.cert")
                   : TARN_OK;
    if (!is_set(options->key_file))
        return tarn_status_new(TARN_CONFIG_INVALID, "tls.cert without tls.key");
    struct tarn_http__tls *tls = tarn_calloc(1, sizeof *tls);
    pthread_mutex_init(&tls->lock, NULL);
    tls->cert_file = tarn_strdup(options->cert_file);
    tls->key_file = tarn_strdup(options->key_file);
    tls->ca_file = is_set(options->client_ca_file) ? tarn_strdup(options->client_ca_file) : NULL;
    struct tarn_status *s = read_files(tls, &tls->context);
    if (s != TARN_OK) {
        tarn_http__tls_free(tls);
        return s;
    }
    *out = tls;
    return TARN_OK;
}

void tarn_http__tls_free(struct tarn_http__tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    pthread_mutex_destroy(&tls->lock);
    free(tls->cert_file);
    free(tls->key_file);
    free(tls->ca_file);
    free(tls);
}

struct tarn_status *tarn_http__tls_reload(struct tarn_http__tls *tls)
{
    SSL_CTX *next;
    TARN_TRY(read_files(tls, &next));
    pthread_mutex_lock(&tls->lock);
    SSL_CTX *last = tls->context;
    tls->context = next;
    pthread_mutex_unlock(&tls->lock);
    SSL_CTX_free(last); /* counted: connections may still hold it */
    return TARN_OK;
}

struct bufferevent *tarn_http__tls_accept(struct tarn_http__tls *tls, struct event_base *base,
                                          int fd)
{
    pthread_mutex_lock(&tls->lock);
    SSL *ssl = SSL_new(tls->context);
    pthread_mutex_unlock(&tls->lock);
    struct bufferevent *bev =
        ssl == NULL ? NULL
                    : bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                     BEV_OPT_CLOSE_ON_FREE);
    if (bev == NULL) {
        SSL_free(ssl);
        close(fd);
        return NULL;
    }
    /* A client that goes without close_notify loses nothing: lengths say where messages end. */
    bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

void tarn_http__tls_say_goodbye(struct bufferevent *bev)
{
    SSL_shutdown(bufferevent_openssl_get_ssl(bev));
    ERR_clear_error();
}
