/*
 * Promise: with a certificate the server speaks TLS only; a new one serves the next handshake
 * without a restart; a broken one is an error for whoever brings it, and the old one stays.
 */
#include "echo.h"

#include <stdlib.h>
#include <unistd.h>

static const char *dir; /* of the running test */
static bool with_client_ca;

static const char *in_dir(struct tarn_test *t, const char *name)
{
    return tarn_arena_printf(t->arena, "%s/%s", dir, name);
}

static void run(const char *command)
{
    expect_int(system(command), 0);
}

/* Self-signed: NAME.pem and NAME.key. */
static void make_pair(struct tarn_test *t, const char *name)
{
    run(tarn_arena_printf(t->arena,
                          "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
                          "-nodes -days 2 -subj /CN=localhost "
                          "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 "
                          "-keyout %s.key -out %s.pem 2>/dev/null",
                          dir, name, name));
}

static void copy_pair(struct tarn_test *t, const char *from_cert, const char *from_key)
{
    run(tarn_arena_printf(t->arena, "cd %s && cp %s server.pem && cp %s server.key", dir, from_cert,
                          from_key));
}

static char cert[300], key[300], ca[300];

static void with_tls(struct tarn_wire_server_options *options)
{
    options->cert_file = cert;
    options->key_file = key;
    options->client_ca_file = with_client_ca ? ca : NULL;
}

static void start(struct tarn_test *t, struct echo *echo)
{
    if (system("openssl version >/dev/null 2>&1") != 0)
        tarn_test_skip(t, "no openssl command");
    dir = tarn_test_dir(t);
    make_pair(t, "one");
    make_pair(t, "two");
    copy_pair(t, "one.pem", "one.key");
    snprintf(cert, sizeof cert, "%s/server.pem", dir);
    snprintf(key, sizeof key, "%s/server.key", dir);
    snprintf(ca, sizeof ca, "%s/two.pem", dir);
    echo_start(echo, with_tls);
    tarn_log_set_level(TARN_ERROR); /* the library speaks of each refused handshake */
}

/* A call over a channel of its own, trusting `trusted`; shows `own` if not NULL. */
static struct tarn_status *call_over_tls(struct tarn_test *t, struct echo *echo,
                                         const char *trusted, const char *own)
{
    TARN_OWN(tarn_channel_drop) struct tarn_channel *channel = NULL;
    TARN_OWN(tarn_message_drop) struct tarn_message *response = NULL;
    struct tarn_channel_options options = {.address = tarn_wire_server_address(echo->server)};

    options.ca_file = in_dir(t, trusted);
    if (own != NULL) {
        options.cert_file = in_dir(t, tarn_arena_printf(t->arena, "%s.pem", own));
        options.key_file = in_dir(t, tarn_arena_printf(t->arena, "%s.key", own));
    }
    TARN_TRY(tarn_channel_open(&options, &channel));
    TARN_TRY(tarn_channel_unary(channel, t->op, "/t.Echo/Unary", text_message("x"), &response));
    return TARN_OK;
}

TARN_TEST(wire_tls, serves_and_reloads)
{
    struct echo echo;
    const char *answer;
    with_client_ca = false;
    start(t, &echo);
    expect_ok(call_over_tls(t, &echo, "one.pem", NULL));
    expect_status(call_over_tls(t, &echo, "two.pem", NULL), TARN_UNAVAILABLE, "127.0.0.1:");
    expect_status(echo_ask(t, &echo, "/t.Echo/Unary", "plain", &answer), TARN_UNAVAILABLE, "");

    copy_pair(t, "two.pem", "one.key"); /* not a pair */
    expect_status(tarn_wire_server_reload_tls(echo.server), TARN_CONFIG_INVALID, "not a pair");
    expect_ok(call_over_tls(t, &echo, "one.pem", NULL));

    copy_pair(t, "two.pem", "two.key");
    expect_ok(tarn_wire_server_reload_tls(echo.server));
    expect_ok(call_over_tls(t, &echo, "two.pem", NULL));
    expect_status(call_over_tls(t, &echo, "one.pem", NULL), TARN_UNAVAILABLE, "");
    echo_stop(&echo);
}

TARN_TEST(wire_tls, asks_clients_for_a_certificate)
{
    struct echo echo;
    with_client_ca = true;
    start(t, &echo);
    expect_ok(call_over_tls(t, &echo, "one.pem", "two"));
    expect_status(call_over_tls(t, &echo, "one.pem", NULL), TARN_UNAVAILABLE, "");
    expect_status(call_over_tls(t, &echo, "one.pem", "one"), TARN_UNAVAILABLE, "");
    echo_stop(&echo);
}

TARN_TEST(wire_tls, missing_and_broken_files_are_named)
{
    struct tarn_wire_server *server = NULL;
    struct tarn_channel *channel = NULL;
    dir = tarn_test_dir(t);
    const char *path = in_dir(t, "x.pem");
    struct tarn_wire_server_options options = {
        .listen = "127.0.0.1:0", .cert_file = path, .key_file = path};
    struct tarn_channel_options client = {.address = "127.0.0.1:1", .ca_file = path};
    expect_status(tarn_wire_server_start(&options, NULL, 0, &server), TARN_CONFIG_INVALID, path);
    expect_status(tarn_channel_open(&client, &channel), TARN_CONFIG_INVALID, path);
    tarn_test_write_file(path, tarn_slice_str("not a certificate"));
    expect_status(tarn_wire_server_start(&options, NULL, 0, &server), TARN_CONFIG_INVALID,
                  "not a PEM file");
}
