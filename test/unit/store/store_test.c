/*
 * Promise: every driver behaves alike (conformance.h), the local one with and without openat2, and
 * a faulty one without rules is not to be told from what it wraps.
 */
#include "conformance.h"
#include "store/internal.h"

static struct tarn_store *open_local(struct tarn_test *t)
{
    struct tarn_store *store = NULL;
    expect_ok(
        tarn_store_open(tarn_arena_printf(t->arena, "file://%s/w", tarn_test_dir(t)), &store));
    return store;
}

static struct tarn_store *open_local_stepwise(struct tarn_test *t)
{
    struct tarn_store *store = open_local(t);
    tarn_store__local_without_openat2(store);
    return store;
}

static struct tarn_store *open_memory(struct tarn_test *t)
{
    struct tarn_store *store = NULL;
    expect_ok(tarn_store_open("memory:", &store));
    return store;
}

static struct tarn_store *wrap(struct tarn_store *inner)
{
    struct tarn_store *faulty = tarn_store_faulty_new(inner);
    expect_str(tarn_store_uri(faulty), tarn_store_uri(inner));
    tarn_store_unref(inner);
    return faulty;
}

static struct tarn_store *open_faulty_local(struct tarn_test *t)
{
    return wrap(open_local(t));
}

static struct tarn_store *open_faulty_memory(struct tarn_test *t)
{
    return wrap(open_memory(t));
}

#define CONFORMS(driver, case)                                                                     \
    TARN_TEST(driver, case)                                                                        \
    {                                                                                              \
        struct tarn_store *store = open_##driver(t);                                               \
        conformance_##case(t, store);                                                              \
        tarn_store_unref(store);                                                                   \
    }
#define LOCAL(case) CONFORMS(local, case)
#define LOCAL_STEPWISE(case) CONFORMS(local_stepwise, case)
#define MEMORY(case) CONFORMS(memory, case)
#define FAULTY_LOCAL(case) CONFORMS(faulty_local, case)
#define FAULTY_MEMORY(case) CONFORMS(faulty_memory, case)

CONFORMANCE(LOCAL)
CONFORMANCE(LOCAL_STEPWISE)
CONFORMANCE(MEMORY)
CONFORMANCE(FAULTY_LOCAL)
CONFORMANCE(FAULTY_MEMORY)

/* ---- what a URI may be ---- */

TARN_TEST(store_open, s3_asks_nobody_yet)
{
    struct tarn_store *store = NULL;
    expect_ok(tarn_store_open("s3a://bucket/prefix/", &store));
    expect_str(tarn_store_uri(store), "s3a://bucket/prefix");
    struct tarn_slice key;
    expect_true(tarn_store_key_of(store, tarn_slice_str("s3a://bucket/prefix/a/b"), &key));
    expect_slice(key, "a/b");
    static const char *const elsewhere[] = {"s3a://bucket/prefix", "s3a://bucket/prefix/",
                                            "s3a://bucket/prefixed/a", "s3://bucket/prefix/a", ""};
    for (size_t i = 0; i < TARN_COUNT_OF(elsewhere); i++)
        expect_false(tarn_store_key_of(store, tarn_slice_str(elsewhere[i]), &key));
    expect_true(tarn_store_is_remote(store));
    expect_true(tarn_store_is_flat(store));
    tarn_store_unref(store);
}

static void expect_no_store(const char *uri, enum tarn_reason reason)
{
    struct tarn_store *store = NULL;
    expect_status(tarn_store_open(uri, &store), reason, uri);
    expect_null(store);
}

TARN_TEST(store_open, refuses_what_it_has_no_driver_for)
{
    expect_no_store("file://host/w", TARN_PATH_INVALID);
    expect_no_store("file://", TARN_PATH_INVALID);
    expect_no_store("file:///", TARN_PATH_INVALID);
    expect_no_store("file:relative", TARN_PATH_INVALID);
    expect_no_store("/just/a/path", TARN_PATH_INVALID);
    expect_no_store("", TARN_PATH_INVALID);
}

TARN_TEST(store_open, keeps_the_uri_without_its_last_slash)
{
    const char *uri = tarn_arena_printf(t->arena, "file://%s/a/b", tarn_test_dir(t));
    const char *hadoop = tarn_arena_printf(t->arena, "file:%s/c//", tarn_test_dir(t));
    TARN_OWN(tarn_store_drop) struct tarn_store *store = NULL;
    expect_ok(tarn_store_open(tarn_arena_printf(t->arena, "%s/", uri), &store));
    expect_str(tarn_store_uri(store), uri);
    tarn_store_drop(&store);
    expect_ok(tarn_store_open(hadoop, &store));
    expect_int(strlen(tarn_store_uri(store)), strlen(hadoop) - 2);
}

TARN_TEST(store_settings, travel_by_environment)
{
    bool found = false, found_other = false;
    struct tarn_conf *conf = tarn_conf_new();
    expect_ok(tarn_conf_set(conf, "hdfs.user=hal"));
    expect_null(tarn_store_environment(t->arena)[0]);
    tarn_store_configure(conf);
    for (const char *const *v = tarn_store_environment(t->arena); *v != NULL; v++) {
        found |= strcmp(*v, "TARN_HDFS_USER=hal") == 0;
        found_other |= strstr(*v, "WORKER") != NULL;
    }
    expect_true(found);
    expect_false(found_other);
    expect_status(tarn_store_check_uri("hdfs:///w"), TARN_CONFIG_INVALID, "webhdfs_endpoint");
    expect_ok(tarn_conf_set(conf, "hdfs.webhdfs_endpoint=http://h:1"));
    expect_ok(tarn_store_check_uri("hdfs:///w"));
    tarn_store_configure(NULL);
    tarn_conf_free(conf);
}
