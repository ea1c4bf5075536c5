/*
 * s3_fixture - an S3 store over a fake server, for the tests of the driver.
 */
#ifndef TARN_TEST_S3_FIXTURE_H
#define TARN_TEST_S3_FIXTURE_H

#include "conformance.h"
#include "fake_server.h"
#include "store/s3.h"

#define ACCESS "AKIDTEST"
#define SECRET "secret/of+the=test"

struct s3_fixture {
    struct fake_server fake;
    struct tarn_conf *conf;
    struct tarn_store *store;
};

/* `settings`: "key=value key=value" over the defaults of these tests; opened unless uri is NULL. */
static inline void s3_set(struct tarn_test *t, struct s3_fixture *f, const char *settings)
{
    char *text = tarn_arena_str(t->arena, tarn_slice_str(settings)), *state = NULL;
    for (char *word = strtok_r(text, " ", &state); word != NULL; word = strtok_r(NULL, " ", &state))
        expect_ok(tarn_conf_set(f->conf, word));
}

static inline struct tarn_store *s3_open(struct s3_fixture *f, const char *uri)
{
    struct tarn_store *store = NULL;
    expect_ok(tarn_store__s3_open(f->conf, uri, &store));
    return store;
}

static inline void s3_start(struct tarn_test *t, struct s3_fixture *f, const char *arguments,
                            const char *settings)
{
    char *secret = tarn_arena_printf(t->arena, "%s/secret", tarn_test_dir(t));
    tarn_test_write_file(secret, tarn_slice_str(SECRET "\n"));
    *f = (struct s3_fixture){.conf = tarn_conf_new()};
    fake_server_start(
        t, &f->fake, "fake_s3.py",
        tarn_arena_printf(t->arena, "--access " ACCESS " --secret " SECRET " %s", arguments));
    s3_set(t, f,
           tarn_arena_printf(t->arena,
                             "s3.endpoint=http://127.0.0.1:%d s3.access_key=" ACCESS
                             " s3.secret_key_file=%s s3.part_size=5mb",
                             f->fake.ports[0], secret));
    s3_set(t, f, settings);
    f->store = s3_open(f, "s3://lake/some/wh");
}

static inline void s3_stop(struct s3_fixture *f)
{
    tarn_store_unref(f->store);
    tarn_conf_free(f->conf);
    fake_server_stop(&f->fake);
}

#endif
