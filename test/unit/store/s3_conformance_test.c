/*
 * Promise: the S3 driver behaves as every driver does (conformance.h; S3 is flat), over a server that pages lists
 * by two and checks signatures; with the bucket in the host's name and in the path; with the conditional PUT
 * and, as the only writer, without it. With TARN_TEST_S3=ENDPOINT,BUCKET,ACCESS,SECRET also over that server.
 */
#include "s3_fixture.h"

#define CONFORMS(driver, case, arguments, settings)                                                \
    TARN_TEST(driver, case)                                                                        \
    {                                                                                              \
        struct s3_fixture f;                                                                       \
        s3_start(t, &f, arguments, settings);                                                      \
        conformance_##case (t, f.store);                                                           \
        s3_stop(&f);                                                                               \
    }
#define S3(case) CONFORMS(s3, case, "--page 2", "")
CONFORMANCE_FLAT(S3)

#define SINGLE(case)                                                                               \
    CONFORMS(s3_single_writer, case, "--conditions ignored", "s3.conditional_put=single_writer")
SINGLE(put_if_absent_never_overwrites)
SINGLE(finish_does_not_replace)
SINGLE(writers_publish_whole_or_nothing)

/* No ranges: everything still works, in larger pieces. */
#define RANGELESS(case) CONFORMS(s3_rangeless, case, "--ranges no", "")
RANGELESS(put_then_get_gives_the_same_bytes)
RANGELESS(stat_knows_size_and_time)
RANGELESS(read_at_is_bounded_by_the_object)

TARN_TEST(s3_host, bucket_in_the_hosts_name)
{
    struct s3_fixture f;
    s3_start(t, &f, "", "s3.path_style=false");
    s3_set(t, &f, tarn_arena_printf(t->arena, "s3.endpoint=http://localhost:%d", f.fake.ports[0]));
    struct tarn_store *store = s3_open(&f, "s3://lake/a b/é");
    conformance_list_is_in_order_of_key(t, store);
    expect_int(fake_server_count(t, &f.fake, "PUT", "/lake/"), 0);
    tarn_store_unref(store);
    s3_stop(&f);
}

/* ---- a real one ---- */

static void start_real(struct tarn_test *t, struct s3_fixture *f)
{
    char id[TARN_UUID_SIZE], *words[4] = {0}, *state = NULL;
    const char *where = getenv("TARN_TEST_S3");
    if (where == NULL)
        tarn_test_skip(t, "TARN_TEST_S3 names no server");
    char *text = tarn_arena_str(t->arena, tarn_slice_str(where));
    for (int i = 0; i < 4; i++)
        words[i] = strtok_r(i == 0 ? text : NULL, ",", &state);
    expect_not_null(words[3]);
    char *secret = tarn_arena_printf(t->arena, "%s/secret", tarn_test_dir(t));
    tarn_test_write_file(secret, tarn_slice_str(words[3]));
    *f = (struct s3_fixture){.conf = tarn_conf_new()};
    s3_set(t, f,
           tarn_arena_printf(t->arena,
                             "s3.endpoint=%s s3.access_key=%s s3.secret_key_file=%s "
                             "s3.part_size=5mb",
                             words[0], words[2], secret));
    tarn_uuid_random(id);
    f->store = s3_open(f, tarn_arena_printf(t->arena, "s3://%s/conformance/%s", words[1], id));
}

static void stop_real(struct s3_fixture *f)
{
    tarn_store_unref(f->store);
    tarn_conf_free(f->conf);
}

#define REAL(case)                                                                                 \
    start_real(t, &f);                                                                             \
    conformance_##case (t, f.store); stop_real(&f);

TARN_TEST(s3_real, conforms)
{
    struct s3_fixture f;
    CONFORMANCE_FLAT(REAL)
}

TARN_TEST(s3_real, keeps_its_promises)
{
    struct s3_fixture f;
    start_real(t, &f);
    expect_ok(tarn_store_probe(f.store, t->op));
    stop_real(&f);
}

TARN_TEST(s3_real, large_objects_go_up_in_parts)
{
    struct s3_fixture f;
    struct tarn_store_writer *writer;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    start_real(t, &f);
    struct tarn_slice bytes = tarn_test_random_bytes(t, ((size_t)12 << 20) + 12345);
    expect_ok(tarn_store_writer_open(f.store, t->op, "t/large", &writer));
    for (size_t at = 0; at < bytes.size; at += 1000003)
        expect_ok(tarn_store_writer_append(
            writer, t->op,
            tarn_slice_of(bytes.data + at, TARN_MIN((size_t)1000003, bytes.size - at))));
    expect_ok(tarn_store_writer_finish(writer, t->op));
    expect_ok(tarn_store_get(f.store, t->op, "t/large", &got));
    expect_true(tarn_slice_equal(tarn_buf_slice(&got), bytes));
    expect_ok(tarn_store_writer_open(f.store, t->op, "t/aborted", &writer));
    expect_ok(tarn_store_writer_append(writer, t->op, bytes));
    tarn_store_writer_abort(writer);
    stop_real(&f);
}
