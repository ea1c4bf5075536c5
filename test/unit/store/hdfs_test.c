/*
 * Promise: over WebHDFS a store keeps what every store promises (conformance.h), and tells what happened where
 * answers are lost, where NameNodes change, where a file isn't there and where it may not be seen.
 *
 * On a fake (test/lib/fake_webhdfs.h). With TARN_TEST_WEBHDFS=http://127.0.0.1:9870 the conformance cases run
 * against that server, which test/interop/hdfs_main_job.py does with a real one.
 */
#include "conformance.h"
#include "store/internal.h"

static struct tarn_store *open_real(struct tarn_test *t)
{
    char uuid[TARN_UUID_SIZE];
    struct tarn_store *store = NULL;
    const char *endpoint = getenv("TARN_TEST_WEBHDFS");
    if (endpoint == NULL)
        tarn_test_skip(t, "TARN_TEST_WEBHDFS names no server");
    struct tarn_conf *conf = tarn_conf_new();
    tarn_uuid_random(uuid);
    expect_ok(
        tarn_conf_set(conf, tarn_arena_printf(t->arena, "hdfs.webhdfs_endpoint=%s", endpoint)));
    expect_ok(tarn_conf_set(conf, "hdfs.user=root"));
    expect_ok(tarn_conf_set(conf, "hdfs.chunk_size=64 kb"));
    expect_ok(tarn_store__hdfs_open(conf, tarn_arena_printf(t->arena, "hdfs:///tarn-test/%s", uuid),
                                    &store));
    tarn_conf_free(conf);
    return store;
}

#define REAL(case)                                                                                 \
    TARN_TEST(hdfs_real, case)                                                                     \
    {                                                                                              \
        struct tarn_store *store = open_real(t);                                                   \
        conformance_##case(t, store);                                                              \
        tarn_store_unref(store);                                                                   \
    }
CONFORMANCE(REAL)
