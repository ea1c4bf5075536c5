/*
 * Promise: with a certificate the address speaks TLS only; a new pair serves the next handshake while connections go on
 * with theirs; a broken one is an error for whoever brings it, and the old one stays.
 */
#include "fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

static const char *dir; /* of the running test */

static const char *in_dir(struct tarn_test *t, const char *name)
{
    return tarn_arena_printf(t->arena, "%s/%s", dir, name);
}

static void run(const char *command)
{
    expect_int(system(command), 0);
}

static void make_pair(struct tarn_test *t, const char *name)
{
    run(tarn_arena_printf(t->arena,
                          "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                          "-nodes -days 2 -subj /CN=%s -keyout %s.key -out %s.pem 2>/dev/null",
                          dir, name, name, name));
}

static void copy_pair(struct tarn_test *t, const char *cert, const char *key)
{
    run(tarn_arena_printf(t->arena, "cd %s && cp %s.pem server.pem && cp %s.key server.key", dir,
                          cert, key));
}

static void start(struct tarn_test *t, struct http_fixture *f, const char *client_ca)
{
    if (system("openssl version >/dev/null 2>&1") != 0)
        tarn_test_skip(t, "no openssl command");
    signal(SIGPIPE, SIG_IGN); /* as in the daemon */
    dir = tarn_test_dir(t);
    make_pair(t, "one");
    make_pair(t, "two");
    copy_pair(t, "one", "one");
    http_init(f);
    f->options.cert_file = in_dir(t, "server.pem");
    f->options.key_file = in_dir(t, "server.key");
    f->options.client_ca_file = client_ca == NULL ? "" : in_dir(t, client_ca);
    f->options.head_ms = 1000;
    http_start(f);
}

struct client {
    int fd;
    SSL *ssl;      /* NULL: the handshake failed */
    char name[64]; /* of the server's certificate */
};

static void client_close(struct client *c)
{
    SSL_free(c->ssl);
    close(c->fd);
}

/* Shows the pair `own` if that is not NULL. The version is the highest it may be. */
static struct client connect_tls(struct tarn_test *t, struct http_fixture *f, const char *own,
                                 int version)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, 0);
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_max_proto_version(context, version);
    if (own != NULL) {
        char *file = tarn_arena_printf(t->arena, "%s/%s.pem", dir, own);
        expect_int(SSL_CTX_use_certificate_file(context, file, SSL_FILETYPE_PEM), 1);
        file = tarn_arena_printf(t->arena, "%s/%s.key", dir, own);
        expect_int(SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM), 1);
    }
    struct client c = {.fd = http_dial(f), .ssl = SSL_new(context)};
    SSL_CTX_free(context);
    SSL_set_fd(c.ssl, c.fd);
    if (SSL_connect(c.ssl) != 1) {
        SSL_free(c.ssl);
        c.ssl = NULL;
        return c;
    }
    X509 *certificate = SSL_get1_peer_certificate(c.ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, c.name,
                              sizeof c.name);
    X509_free(certificate);
    return c;
}

/* The body's size; -1: no answer came. */
static int64_t get(struct client *c, const char *target)
{
    if (c->ssl == NULL)
        return -1;
    char text[16384];
    int size = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
    SSL_write(c->ssl, text, size);
    int64_t got = 0, want = -1;
    while (want < 0 || got < want) {
        int n = SSL_read(c->ssl, text, sizeof text - 1);
        if (n <= 0)
            return -1;
        text[n] = '\0';
        const char *length = strstr(text, "\r\nContent-Length: "), *end = strstr(text, "\r\n\r\n");
        if (want < 0 && (length == NULL || end == NULL))
            return -1; /* a head comes in one record */
        if (want < 0) {
            want = atoll(length + 18);
            n -= (int)(end + 4 - text);
        }
        got += n;
    }
    return got;
}

TARN_TEST(http_tls, serves_and_reloads)
{
    TARN_OWN(http_fini) struct http_fixture f;
    start(t, &f, NULL);
    TARN_OWN(client_close) struct client early = connect_tls(t, &f, NULL, 0);
    expect_str(early.name, "one");
    expect_int(get(&early, "/healthz"), 3);

    copy_pair(t, "two", "one");
    expect_status(tarn_http_reload_tls(f.http), TARN_CONFIG_INVALID, "tls.key");
    tarn_test_write_file(in_dir(t, "server.pem"), tarn_slice_str("no certificate"));
    expect_status(tarn_http_reload_tls(f.http), TARN_CONFIG_INVALID, "server.pem: ");
    TARN_OWN(client_close) struct client same = connect_tls(t, &f, NULL, 0);
    expect_str(same.name, "one");

    copy_pair(t, "two", "two");
    expect_ok(tarn_http_reload_tls(f.http));
    TARN_OWN(client_close) struct client late = connect_tls(t, &f, NULL, TLS1_2_VERSION);
    expect_str(late.name, "two");
    expect_int(get(&late, "/healthz"), 3);
    expect_int(get(&early, "/healthz"), 3);
    expect_int(get(&early, "/big?n=9000000"), 9000000);
    expect_int(get(&late, "/big?n=9000000"), 9000000);
    expect_int(get(&early, "/t/fixed/of/b"), 5);
}

TARN_TEST(http_tls, speaks_nothing_else)
{
    TARN_OWN(http_fini) struct http_fixture f;
    start(t, &f, NULL);
    int plain = http_dial(&f), silent = http_dial(&f);
    http_send_str(plain, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_null(strstr(http_receive(t, plain, false), "HTTP"));
    TARN_OWN(client_close) struct client old = connect_tls(t, &f, NULL, TLS1_1_VERSION);
    expect_null(old.ssl);
    ERR_clear_error();
    expect_true(http_is_closed(silent)); /* a handshake has its time */
    close(plain), close(silent);
}

TARN_TEST(http_tls, drains)
{
    TARN_OWN(http_fini) struct http_fixture f;
    start(t, &f, NULL);
    TARN_OWN(client_close) struct client c = connect_tls(t, &f, NULL, 0);
    expect_int(get(&c, "/healthz"), 3);
    tarn_http_drain(f.http, 5000);
    char byte;
    expect_int(SSL_read(c.ssl, &byte, 1), 0);
    expect_int(SSL_get_error(c.ssl, 0), SSL_ERROR_ZERO_RETURN); /* closed in good order */
}

TARN_TEST(http_tls, asks_clients_for_a_certificate)
{
    TARN_OWN(http_fini) struct http_fixture f;
    start(t, &f, "two.pem");
    static const struct {
        const char *own;
        int64_t size;
    } cases[] = {{"two", 3}, {"one", -1}, {NULL, -1}};
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(client_close) struct client c = connect_tls(t, &f, cases[i].own, 0);
        expect_int(get(&c, "/healthz"), cases[i].size);
    }
    ERR_clear_error();
}

TARN_TEST(http_tls, names_missing_and_broken_files)
{
    TARN_OWN(http_fini) struct http_fixture f;
    http_init(&f);
    dir = tarn_test_dir(t);
    f.options.cert_file = in_dir(t, "x.pem");
    expect_status(tarn_http_start(&f.options, &f.http), TARN_CONFIG_INVALID, "without tls.key");
    f.options.key_file = f.options.cert_file;
    expect_status(tarn_http_start(&f.options, &f.http), TARN_CONFIG_INVALID, f.options.cert_file);
    expect_status(tarn_http_check_tls(&f.options), TARN_CONFIG_INVALID, "No such file");
    f.options.cert_file = "";
    expect_status(tarn_http_start(&f.options, &f.http), TARN_CONFIG_INVALID, "without tls.cert");
}
