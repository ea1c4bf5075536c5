/*
 * Promise: keys are found where they are configured, in the documented order; those that end are replaced in
 * time, and once more when the store calls them expired; a clock that is off is corrected; a custom CA is the one that counts;
 * no secret is ever in a message.
 */
#include "s3_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#define S(text) tarn_slice_str(text)

static const char *const variables[] = {
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
};

/* A fake and a conf without keys, in an environment without any. */
static void start_bare(struct tarn_test *t, struct s3_fixture *f, const char *arguments)
{
    for (size_t i = 0; i < TARN_COUNT_OF(variables); i++)
        unsetenv(variables[i]);
    *f = (struct s3_fixture){.conf = tarn_conf_new()};
    fake_server_start(
        t, &f->fake, "fake_s3.py",
        tarn_arena_printf(t->arena, "--access " ACCESS " --secret " SECRET " %s", arguments));
    s3_set(t, f,
           tarn_arena_printf(t->arena,
                             "s3.endpoint=http://127.0.0.1:%d s3.sts_endpoint=http://127.0.0.1:%d "
                             "s3.instance_endpoint=http://127.0.0.1:%d",
                             f->fake.ports[0], f->fake.ports[0], f->fake.ports[0]));
}

static void stop_bare(struct s3_fixture *f)
{
    if (f->store != NULL)
        tarn_store_unref(f->store);
    tarn_conf_free(f->conf);
    fake_server_stop(&f->fake);
}

static struct tarn_status *touch(struct tarn_test *t, struct s3_fixture *f)
{
    if (f->store == NULL)
        f->store = s3_open(f, "s3://lake/wh");
    return tarn_store_put(f->store, t->op, "f", S("x"));
}

static const char *file_with(struct tarn_test *t, const char *text)
{
    const char *path = tarn_arena_printf(t->arena, "%s/f", tarn_test_dir(t));
    tarn_test_write_file(path, S(text));
    return path;
}

TARN_TEST(s3_credentials, of_the_environment)
{
    struct s3_fixture f;
    start_bare(t, &f, "");
    setenv("AWS_ACCESS_KEY_ID", ACCESS, 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    expect_ok(touch(t, &f));
    stop_bare(&f);
}

TARN_TEST(s3_credentials, with_a_session_token)
{
    struct s3_fixture f;
    start_bare(t, &f, "");
    expect_str(
        fake_server_ask(t, &f.fake,
                        "keys {\"TMP\": {\"secret\": \"s\", \"token\": \"to/ken+=\", \"expires\": "
                        "null}}"),
        "ok");
    setenv("AWS_ACCESS_KEY_ID", "TMP", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    setenv("AWS_SESSION_TOKEN", "to/ken+=", 1);
    expect_ok(touch(t, &f));
    tarn_store_drop(&f.store);
    /* and as files */
    s3_set(t, &f,
           tarn_arena_printf(t->arena, "s3.access_key=TMP s3.secret_key_file=%s",
                             file_with(t, "s\n")));
    s3_set(t, &f,
           tarn_arena_printf(t->arena, "s3.session_token_file=%s", file_with(t, "to/ken+=\n")));
    unsetenv("AWS_SESSION_TOKEN");
    expect_ok(touch(t, &f));
    stop_bare(&f);
}

TARN_TEST(s3_credentials, of_the_shared_file)
{
    struct s3_fixture f;
    start_bare(t, &f, "");
    const char *path = file_with(t, "[default]\naws_access_key_id = X\naws_secret_access_key = y\n"
                                    "[lake]\naws_access_key_id = " ACCESS
                                    "\naws_secret_access_key = " SECRET "\n");
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    setenv("AWS_PROFILE", "lake", 1);
    expect_ok(touch(t, &f));
    tarn_store_drop(&f.store);
    s3_set(t, &f, "s3.profile=nobody");
    expect_status(touch(t, &f), TARN_STORE_DENIED, "no profile [nobody]");
    stop_bare(&f);
}

TARN_TEST(s3_credentials, missing_ones_say_where_they_were_looked_for)
{
    struct s3_fixture f;
    start_bare(t, &f, "");
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file", 1);
    expect_status(touch(t, &f), TARN_STORE_DENIED, "/no/such/file");
    stop_bare(&f);
}

TARN_TEST(s3_credentials, anonymous_asks_unsigned)
{
    struct s3_fixture f;
    start_bare(t, &f, "");
    s3_set(t, &f, "s3.credentials=anonymous");
    expect_status(touch(t, &f), TARN_STORE_DENIED, "no signature");
    fake_server_ask(t, &f.fake, "keys {}");
    expect_ok(touch(t, &f));
    stop_bare(&f);
}

TARN_TEST(s3_credentials, of_web_identity_until_they_end)
{
    struct s3_fixture f;
    start_bare(t, &f, "--lifetime 600");
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file_with(t, "the-web-token\n"), 1);
    for (int i = 0; i < 3; i++)
        expect_ok(touch(t, &f));
    expect_int(fake_server_count(t, &f.fake, "POST", "/"), 1);
    /* Called expired by the store: once more, and the request succeeds. */
    fake_server_ask(
        t, &f.fake,
        "rules [{\"do\": \"answer\", \"status\": 400, \"code\": \"ExpiredToken\", \"method\": "
        "\"PUT\", \"count\": 1}]");
    expect_ok(touch(t, &f));
    expect_int(fake_server_count(t, &f.fake, "POST", "/"), 1);
    fake_server_ask(
        t, &f.fake,
        "rules [{\"do\": \"answer\", \"status\": 403, \"code\": \"ExpiredToken\", \"method\": "
        "\"PUT\"}]");
    expect_status(touch(t, &f), TARN_STORE_DENIED, "ExpiredToken"); /* and not for ever */
    expect_int(fake_server_count(t, &f.fake, "PUT", "/"), 2);
    stop_bare(&f);
}

TARN_TEST(s3_credentials, are_replaced_before_they_end)
{
    struct s3_fixture f;
    start_bare(t, &f, "--lifetime 200"); /* less than what is left when they are replaced */
    s3_set(t, &f, "s3.credentials=web_identity s3.role_arn=arn:aws:iam::1:role/r");
    s3_set(t, &f,
           tarn_arena_printf(t->arena, "s3.web_identity_token_file=%s",
                             file_with(t, "the-web-token")));
    expect_ok(touch(t, &f));
    expect_ok(touch(t, &f));
    expect_int(fake_server_count(t, &f.fake, "POST", "/"), 1); /* tried at most every so often */
    fake_server_ask(t, &f.fake,
                    "rules [{\"do\": \"answer\", \"status\": 500, \"method\": \"POST\"}]");
    expect_ok(touch(t, &f)); /* a failure to replace them harms nobody yet */
    stop_bare(&f);
}

TARN_TEST(s3_credentials, of_web_identity_that_is_refused)
{
    struct s3_fixture f;
    start_bare(t, &f, "");
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file_with(t, "wrong-secret-token"), 1);
    struct tarn_status *s = touch(t, &f);
    expect_null(strstr(tarn_status_message(s), "wrong-secret-token"));
    expect_status(s, TARN_STORE_DENIED, "400 InvalidIdentityToken: bad token");
    stop_bare(&f);
}

TARN_TEST(s3_credentials, of_the_instance_only_when_asked)
{
    struct s3_fixture f;
    start_bare(t, &f, "");
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file", 1);
    expect_status(touch(t, &f), TARN_STORE_DENIED, "");
    expect_int(fake_server_count(t, &f.fake, "PUT", "/latest/api/token"), 0);
    tarn_store_drop(&f.store);
    s3_set(t, &f, "s3.credentials=instance");
    expect_ok(touch(t, &f));
    expect_ok(touch(t, &f));
    expect_int(fake_server_count(t, &f.fake, "PUT", "/latest/api/token"), 1);
    stop_bare(&f);
}

TARN_TEST(s3_credentials, a_clock_that_is_off_is_corrected)
{
    struct s3_fixture f;
    start_bare(t, &f, "");
    setenv("AWS_ACCESS_KEY_ID", ACCESS, 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    fake_server_ask(t, &f.fake, "skew 7200");
    expect_ok(touch(t, &f));
    expect_int(fake_server_count(t, &f.fake, "PUT", "/"), 2);
    expect_ok(touch(t, &f));
    expect_int(fake_server_count(t, &f.fake, "PUT", "/"), 1);
    stop_bare(&f);
}

/* ---- settings ---- */

static void expect_wrong(struct tarn_test *t, const char *set, const char *uri,
                         enum tarn_reason reason, const char *why)
{
    struct tarn_s3_settings settings;
    struct tarn_conf *conf = tarn_conf_new();
    expect_ok(tarn_conf_set(conf, set));
    struct tarn_status *s = tarn_s3__settings_read(conf, uri, &settings);
    tarn_conf_free(conf);
    expect_status(s, reason, why);
}

TARN_TEST(s3_settings, wrong_ones_are_named)
{
    const char *uri = "s3://bucket/p";
    expect_wrong(t, "s3.endpoint=host:9000", uri, TARN_CONFIG_INVALID, "s3.endpoint = host:9000");
    expect_wrong(t, "s3.endpoint=http://h/path", uri, TARN_CONFIG_INVALID, "s3.endpoint");
    expect_wrong(t, "s3.endpoint=http://u@h", uri, TARN_CONFIG_INVALID, "s3.endpoint");
    expect_wrong(t, "s3.path_style=maybe", uri, TARN_CONFIG_INVALID, "auto, true or false");
    expect_wrong(t, "s3.conditional_put=no", uri, TARN_CONFIG_INVALID, "single_writer");
    expect_wrong(t, "s3.credentials=x", uri, TARN_CONFIG_INVALID, "web_identity");
    expect_wrong(t, "s3.credentials=static", uri, TARN_CONFIG_INVALID, "s3.secret_key_file");
    expect_wrong(t, "s3.credentials=web_identity", uri, TARN_CONFIG_INVALID, "s3.role_arn");
    expect_wrong(t, "s3.access_key=a", uri, TARN_CONFIG_INVALID, "s3.secret_key_file is empty");
    expect_wrong(t, "s3.ca_file=/no/such", uri, TARN_CONFIG_INVALID, "s3.ca_file = /no/such can't");
    expect_wrong(t, "s3.part_size=1mb", uri, TARN_CONFIG_INVALID, "s3.part_size");
    expect_wrong(t, "s3.retries=1000", uri, TARN_CONFIG_INVALID, "s3.retries");
    expect_wrong(t, "s3.region=a b", uri, TARN_CONFIG_INVALID, "s3.region");
    expect_wrong(t, "s3.retries=1", "s3:/bucket", TARN_PATH_INVALID, "names no bucket");
    expect_wrong(t, "s3.retries=1", "s3://", TARN_PATH_INVALID, "3 to 63");
    expect_wrong(t, "s3.retries=1", "s3://bu?cket/a", TARN_PATH_INVALID, "3 to 63");
    expect_wrong(t, "s3.retries=1", "s3://bucket/a//b", TARN_PATH_INVALID, "empty segment");
    expect_wrong(t, "s3.retries=1", "s3://bucket/../b", TARN_PATH_INVALID, "'..'");
}

TARN_TEST(s3_settings, amazons_own_endpoints_by_region)
{
    struct tarn_s3_settings settings;
    struct tarn_conf *conf = tarn_conf_new();
    for (size_t i = 0; i < TARN_COUNT_OF(variables); i++)
        unsetenv(variables[i]);
    expect_ok(tarn_conf_set(conf, "s3.region=eu-central-1"));
    expect_ok(tarn_s3__settings_read(conf, "s3a://bucket/a/b//", &settings));
    expect_str(settings.endpoint, "https://s3.eu-central-1.amazonaws.com");
    expect_str(settings.sts_endpoint, "https://sts.eu-central-1.amazonaws.com");
    expect_str(settings.prefix, "a/b");
    expect_false(settings.path_style);
    tarn_s3__settings_fini(&settings);
    expect_ok(tarn_s3__settings_read(conf, "s3://dotted.bucket", &settings));
    expect_true(settings.path_style);
    expect_str(settings.prefix, "");
    tarn_s3__settings_fini(&settings);
    expect_ok(tarn_conf_set(conf, "s3.endpoint=https://minio.example:443/"));
    expect_ok(tarn_s3__settings_read(conf, "s3://bucket", &settings));
    expect_true(settings.path_style);
    expect_str(settings.host, "minio.example");
    tarn_s3__settings_fini(&settings);
    tarn_conf_free(conf);
}

/* ---- TLS ---- */

static bool make_certificate(const char *dir)
{
    TARN_OWN(tarn_free_drop)
    char *command = tarn_format(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout %s/key -out %s/cert "
        ">/dev/null 2>&1",
        dir, dir);
    int status = system(command);
    return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TARN_TEST(s3_tls, the_ca_that_is_configured_counts)
{
    struct s3_fixture f;
    const char *dir = tarn_test_dir(t);
    if (!make_certificate(dir))
        tarn_test_skip(t, "there is no openssl to make a certificate");
    start_bare(t, &f, tarn_arena_printf(t->arena, "--tls %s/cert %s/key", dir, dir));
    setenv("AWS_ACCESS_KEY_ID", ACCESS, 1);
    setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
    s3_set(t, &f,
           tarn_arena_printf(t->arena, "s3.endpoint=https://127.0.0.1:%d s3.retries=0",
                             f.fake.ports[0]));
    expect_status(touch(t, &f), TARN_STORE_UNAVAILABLE, "certificate");
    tarn_store_drop(&f.store);
    s3_set(t, &f, tarn_arena_printf(t->arena, "s3.ca_file=%s/cert", dir));
    expect_ok(touch(t, &f));
    /* A large body goes unhashed there. */
    struct tarn_slice bytes = tarn_test_random_bytes(t, (size_t)3 << 20);
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_ok(tarn_store_put(f.store, t->op, "large", bytes));
    expect_ok(tarn_store_get(f.store, t->op, "large", &got));
    expect_true(tarn_slice_equal(tarn_buf_slice(&got), bytes));
    stop_bare(&f);
}
