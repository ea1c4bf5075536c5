/*
 * Promise: a store that fails, lies, stalls or forgets is met as store.h says: what may pass is tried again within
 * a budget and the op's time; 403 is never "not there"; a creation whose answer was lost is known by its own
 * mark or its outcome is said to be unknown; an object that was replaced isn't read as a mix; half a list is none.
 */
#include "s3_fixture.h"

#include <unistd.h>

#define S(text) tarn_slice_str(text)

static void rules(struct tarn_test *t, struct s3_fixture *f, const char *json)
{
    expect_str(fake_server_ask(t, &f->fake, tarn_arena_printf(t->arena, "rules %s", json)), "ok");
}

static struct tarn_s3 *driver_of(struct s3_fixture *f)
{
    return f->store->self;
}

/* ---- again ---- */

TARN_TEST(s3_again, what_may_pass_is_tried_again)
{
    static const char *const faults[] = {
        "{\"do\": \"answer\", \"status\": 503, \"count\": 2}",
        "{\"do\": \"answer\", \"status\": 500, \"count\": 1}",
        "{\"do\": \"answer\", \"status\": 502, \"code\": \"\", \"count\": 1}",
        "{\"do\": \"answer\", \"status\": 429, \"code\": \"TooMany\", \"count\": 1}",
        "{\"do\": \"answer\", \"status\": 400, \"code\": \"RequestTimeout\", \"count\": 1}",
        "{\"do\": \"answer\", \"status\": 409, \"code\": \"OperationAborted\", \"count\": 1}",
        "{\"do\": \"reset\", \"count\": 2}",
        "{\"do\": \"reset_after\", \"count\": 1}",
        "{\"do\": \"hang\", \"ms\": 2000, \"count\": 1}",
        "{\"do\": \"truncate\", \"keep\": 2, \"count\": 1, \"method\": \"GET\"}",
    };
    struct s3_fixture f;
    s3_start(t, &f, "", "s3.timeout=300ms");
    for (size_t i = 0; i < TARN_COUNT_OF(faults); i++) {
        bool found;
        struct tarn_object *objects;
        size_t count;
        TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
        const char *key = tarn_arena_printf(t->arena, "f%zu", i);
        rules(t, &f, tarn_arena_printf(t->arena, "[%s]", faults[i]));
        expect_ok(tarn_store_put(f.store, t->op, key, S("hello")));
        rules(t, &f, tarn_arena_printf(t->arena, "[%s]", faults[i]));
        expect_ok(tarn_store_get(f.store, t->op, key, &got));
        expect_slice(tarn_buf_slice(&got), "hello");
        expect_ok(tarn_store_stat(f.store, t->op, key, &found, NULL));
        expect_true(found);
        rules(t, &f, tarn_arena_printf(t->arena, "[%s]", faults[i]));
        expect_ok(tarn_store_list(f.store, t->op, "", true, &objects, &count));
        expect_int(count, i + 1);
    }
    s3_stop(&f);
}

TARN_TEST(s3_again, it_ends_with_the_stores_last_word)
{
    struct s3_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    s3_start(t, &f, "", "s3.retries=3");
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 503, \"message\": \"Please reduce\"}]");
    expect_status(tarn_store_get(f.store, t->op, "f", &got), TARN_STORE_UNAVAILABLE,
                  "GET s3://lake/some/wh/f was answered 503 SlowDown: Please reduce");
    expect_int(fake_server_count(t, &f.fake, "GET", "/f"), 4);
    s3_stop(&f);
}

TARN_TEST(s3_again, retry_after_is_obeyed_within_the_ops_time)
{
    struct s3_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    s3_start(t, &f, "", "");
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 503, \"retry_after\": 1, \"count\": 1}]");
    int64_t before = tarn_clock_mono_ms();
    expect_ok(tarn_store_put(f.store, t->op, "f", S("x")));
    expect_true(tarn_clock_mono_ms() - before >= 1000);
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 503, \"retry_after\": 20}]");
    t->op->deadline_mono_ms = tarn_clock_mono_ms() + 3000;
    before = tarn_clock_mono_ms();
    expect_status(tarn_store_get(f.store, t->op, "f", &got), TARN_STORE_UNAVAILABLE, "503");
    expect_true(tarn_clock_mono_ms() - before < 2000); /* it knows that it would be too late */
    s3_stop(&f);
}

TARN_TEST(s3_again, an_outage_does_not_multiply_the_load)
{
    struct s3_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    s3_start(t, &f, "", "");
    driver_of(&f)->tokens = 20; /* four retries */
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 503}]");
    for (int i = 0; i < 10; i++)
        expect_status(tarn_store_get(f.store, t->op, "f", &got), TARN_STORE_UNAVAILABLE, "503");
    expect_int(fake_server_count(t, &f.fake, "GET", "/f"), 14);
    rules(t, &f, "[]");
    for (int i = 0; i < 5; i++) /* and comes back with success */
        expect_ok(tarn_store_put(f.store, t->op, "f", S("x")));
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 503, \"count\": 1}]");
    expect_ok(tarn_store_get(f.store, t->op, "f", &got));
    s3_stop(&f);
}

TARN_TEST(s3_again, cancelling_ends_the_waiting)
{
    struct s3_fixture f;
    s3_start(t, &f, "", "");
    rules(t, &f, "[{\"do\": \"hang\"}]");
    t->op->deadline_mono_ms = tarn_clock_mono_ms() + 200;
    expect_status(tarn_store_put(f.store, t->op, "f", S("x")), TARN_DEADLINE_EXCEEDED, "");
    s3_stop(&f);
}

/* ---- refusals ---- */

TARN_TEST(s3_refusals, denied_is_never_not_there)
{
    bool found, created;
    size_t count;
    struct s3_fixture f;
    struct tarn_object *objects;
    struct tarn_store_reader *reader;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    s3_start(t, &f, "", "");
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 403}]");
    expect_status(tarn_store_get(f.store, t->op, "f", &got), TARN_STORE_DENIED, "AccessDenied");
    expect_status(tarn_store_find(f.store, t->op, "f", &found, &got), TARN_STORE_DENIED, "");
    expect_status(tarn_store_stat(f.store, t->op, "f", &found, NULL), TARN_STORE_DENIED, "");
    expect_status(tarn_store_put(f.store, t->op, "f", S("x")), TARN_STORE_DENIED, "");
    expect_status(tarn_store_put_if_absent(f.store, t->op, "f", S("x"), &created),
                  TARN_STORE_DENIED, "");
    expect_status(tarn_store_remove(f.store, t->op, "f"), TARN_STORE_DENIED, "");
    expect_status(tarn_store_list(f.store, t->op, "", true, &objects, &count), TARN_STORE_DENIED,
                  "");
    expect_status(tarn_store_reader_open(f.store, t->op, "f", &reader), TARN_STORE_DENIED, "");
    expect_status(tarn_store_move_folder(f.store, t->op, "a", "b"), TARN_STORE_DENIED, "");
    s3_stop(&f);
}

TARN_TEST(s3_refusals, only_s3s_own_word_means_not_there)
{
    bool found;
    struct s3_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    s3_start(t, &f, "", "s3.retries=0");
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 404, \"code\": \"\"}]"); /* a proxy's */
    expect_status(tarn_store_find(f.store, t->op, "f", &found, &got), TARN_STORE_UNAVAILABLE,
                  "404");
    rules(t, &f, "[]");
    struct tarn_store *other = s3_open(&f, "s3://no-such-bucket/wh");
    expect_status(tarn_store_find(other, t->op, "f", &found, &got), TARN_STORE_UNAVAILABLE,
                  "there is no bucket 'no-such-bucket'");
    expect_status(tarn_store_stat(other, t->op, "f", &found, NULL), TARN_STORE_UNAVAILABLE,
                  "there is no bucket");
    tarn_store_unref(other);
    rules(t, &f,
          "[{\"do\": \"answer\", \"status\": 301, \"code\": \"PermanentRedirect\", "
          "\"headers\": {\"x-amz-bucket-region\": \"eu-west-9\"}}]");
    expect_status(tarn_store_find(f.store, t->op, "f", &found, &got), TARN_STORE_UNAVAILABLE,
                  "in region eu-west-9; set");
    s3_stop(&f);
}

TARN_TEST(s3_refusals, a_wrong_secret_is_denied)
{
    struct s3_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    s3_start(t, &f, "", "");
    tarn_test_write_file(driver_of(&f)->settings.secret_key_file, S("another"));
    struct tarn_status *s = tarn_store_get(f.store, t->op, "f", &got);
    expect_null(strstr(tarn_status_message(s), "another"));
    expect_status(s, TARN_STORE_DENIED, "SignatureDoesNotMatch");
    s3_stop(&f);
}

/* ---- creation ---- */

static void expect_created(struct tarn_test *t, struct s3_fixture *f, const char *key, bool want)
{
    bool created = !want;
    expect_ok(tarn_store_put_if_absent(f->store, t->op, key, S("mine"), &created));
    expect_int(created, want);
}

TARN_TEST(s3_creation, knows_its_own_attempt)
{
    struct s3_fixture f;
    s3_start(t, &f, "", "s3.timeout=300ms");
    rules(t, &f, "[{\"do\": \"reset_after\", \"method\": \"PUT\", \"count\": 1}]");
    expect_created(t, &f, "a", true); /* carried out by the first, found by the second */
    rules(t, &f, "[{\"do\": \"after\", \"status\": 500, \"method\": \"PUT\", \"count\": 2}]");
    expect_created(t, &f, "b", true);
    rules(t, &f, "[{\"do\": \"hang_after\", \"ms\": 1000, \"method\": \"PUT\", \"count\": 1}]");
    expect_created(t, &f, "c", true);
    rules(t, &f,
          "[{\"do\": \"answer\", \"status\": 409, \"code\": \"ConditionalRequestConflict\", "
          "\"method\": \"PUT\", \"count\": 1}]");
    expect_created(t, &f, "d", true);
    /* somebody else's, met by a second attempt */
    expect_ok(tarn_store_put(f.store, t->op, "e", S("mine")));
    rules(t, &f, "[{\"do\": \"reset\", \"method\": \"PUT\", \"count\": 1}]");
    expect_created(t, &f, "e", false); /* the same bytes, but not our attempt */
    s3_stop(&f);
}

TARN_TEST(s3_creation, says_when_it_does_not_know)
{
    bool created = false;
    struct s3_fixture f;
    s3_start(t, &f, "", "s3.timeout=200ms s3.retries=1");
    rules(t, &f, "[{\"do\": \"reset_after\", \"method\": \"PUT\"}]");
    expect_status(tarn_store_put_if_absent(f.store, t->op, "a", S("mine"), &created),
                  TARN_OUTCOME_UNKNOWN, "'a'");
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 503, \"method\": \"PUT\"}]");
    expect_status(tarn_store_put_if_absent(f.store, t->op, "b", S("mine"), &created),
                  TARN_OUTCOME_UNKNOWN, "503");
    /* It lands later than anybody waits; then it is there, once. */
    rules(t, &f, "[{\"do\": \"late\", \"ms\": 700, \"method\": \"PUT\", \"count\": 2}]");
    expect_status(tarn_store_put_if_absent(f.store, t->op, "c", S("mine"), &created),
                  TARN_OUTCOME_UNKNOWN, "'c'");
    usleep(900000);
    rules(t, &f, "[]");
    expect_ok(tarn_store_put_if_absent(f.store, t->op, "c", S("other"), &created));
    expect_false(created);
    /* Nothing was sent at all: nothing is unknown. */
    struct tarn_op op;
    tarn_op_init(&op);
    op.deadline_mono_ms = tarn_clock_mono_ms() - 1;
    expect_status(tarn_store_put_if_absent(f.store, &op, "d", S("x"), &created),
                  TARN_DEADLINE_EXCEEDED, "");
    tarn_op_fini(&op);
    s3_stop(&f);
}

TARN_TEST(s3_creation, of_several_at_once_knows_its_own_attempts)
{
    struct s3_fixture f;
    struct tarn_new_object objects[40];
    s3_start(t, &f, "", "");
    for (int i = 0; i < 40; i++)
        objects[i] = (struct tarn_new_object){.key = tarn_arena_printf(t->arena, "m/%d", i),
                                              .body = S("manifest")};
    rules(t, &f,
          "[{\"do\": \"reset_after\", \"method\": \"PUT\", \"skip\": 3, \"count\": 5}, "
          "{\"do\": \"answer\", \"status\": 503, \"method\": \"PUT\", \"skip\": 9, \"count\": 4}]");
    expect_ok(tarn_store_put_many(f.store, t->op, objects, 40));
    rules(t, &f, "[]");
    expect_status(tarn_store_put_many(f.store, t->op, objects, 1), TARN_OBJECT_EXISTS, "m/0");
    s3_stop(&f);
}

/* ---- removal ---- */

TARN_TEST(s3_removal, a_late_one_does_not_meet_the_next_object)
{
    bool created = false;
    struct s3_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    s3_start(t, &f, "", "s3.timeout=300ms");
    expect_ok(tarn_store_put(f.store, t->op, "snapshot-5", S("rolled back")));
    rules(t, &f, "[{\"do\": \"late\", \"ms\": 900, \"method\": \"DELETE\", \"count\": 1}]");
    expect_ok(tarn_store_remove(f.store, t->op, "snapshot-5"));
    expect_ok(tarn_store_put_if_absent(f.store, t->op, "snapshot-5", S("acknowledged"), &created));
    expect_true(created);
    usleep(1200000);
    expect_ok(tarn_store_get(f.store, t->op, "snapshot-5", &got));
    expect_slice(tarn_buf_slice(&got), "acknowledged");
    s3_stop(&f);
}

TARN_TEST(s3_removal, works_where_the_condition_is_not_known)
{
    static const char *const lacks[] = {"unknown", "ignored"};
    for (size_t i = 0; i < TARN_COUNT_OF(lacks); i++) {
        struct s3_fixture f;
        s3_start(t, &f, tarn_arena_printf(t->arena, "--conditions %s", lacks[i]),
                 "s3.conditional_put=single_writer");
        for (int k = 0; k < 2; k++) {
            expect_ok(tarn_store_put(f.store, t->op, "f", S("x")));
            expect_ok(tarn_store_remove(f.store, t->op, "f"));
            expect_str(fake_server_ask(t, &f.fake, "objects"), "{}");
        }
        s3_stop(&f);
    }
}

/* ---- large objects ---- */

static struct tarn_status *write_large(struct tarn_test *t, struct s3_fixture *f, const char *key,
                                       struct tarn_slice bytes)
{
    struct tarn_store_writer *writer;
    TARN_TRY(tarn_store_writer_open(f->store, t->op, key, &writer));
    for (size_t at = 0; at < bytes.size; at += 3000000) {
        struct tarn_status *s = tarn_store_writer_append(
            writer, t->op,
            tarn_slice_of(bytes.data + at, TARN_MIN((size_t)3000000, bytes.size - at)));
        if (s != TARN_OK) {
            tarn_store_writer_abort(writer);
            return s;
        }
    }
    return tarn_store_writer_finish(writer, t->op);
}

TARN_TEST(s3_upload, goes_up_in_parts_through_faults)
{
    struct s3_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    struct tarn_slice bytes = tarn_test_random_bytes(t, ((size_t)21 << 20) + 7);
    s3_start(t, &f, "", "");
    rules(t, &f,
          "[{\"do\": \"reset\", \"part\": \"partNumber=2\", \"count\": 1}, "
          "{\"do\": \"answer\", \"status\": 503, \"part\": \"partNumber=3\", \"count\": 1}, "
          "{\"do\": \"after\", \"status\": 200, \"code\": \"InternalError\", \"method\": \"POST\", "
          "\"part\": \"uploadId\", \"count\": 1}]"); /* an error under 200, and it was done */
    expect_ok(write_large(t, &f, "large", bytes));
    expect_int(fake_server_count(t, &f.fake, "PUT", "partNumber"), 7);
    expect_str(fake_server_ask(t, &f.fake, "uploads"), "0");
    rules(t, &f, "[{\"do\": \"truncate\", \"keep\": 1000, \"method\": \"GET\", \"count\": 2}]");
    expect_ok(tarn_store_get(f.store, t->op, "large", &got));
    expect_true(tarn_slice_equal(tarn_buf_slice(&got), bytes));
    expect_status(write_large(t, &f, "large", bytes), TARN_OBJECT_EXISTS, "large");
    expect_str(fake_server_ask(t, &f.fake, "uploads"), "0"); /* aborted */
    s3_stop(&f);
}

TARN_TEST(s3_upload, a_failed_one_is_aborted)
{
    struct s3_fixture f;
    struct tarn_slice bytes = tarn_test_random_bytes(t, (size_t)16 << 20);
    s3_start(t, &f, "", "s3.retries=1");
    rules(t, &f, "[{\"do\": \"answer\", \"status\": 500, \"part\": \"partNumber=3\"}]");
    expect_status(write_large(t, &f, "a", bytes), TARN_STORE_UNAVAILABLE, "500");
    expect_str(fake_server_ask(t, &f.fake, "uploads"), "0");
    rules(t, &f,
          "[{\"do\": \"answer\", \"status\": 507, \"code\": \"InsufficientStorage\", "
          "\"part\": \"partNumber=1\"}]");
    expect_status(write_large(t, &f, "a", bytes), TARN_DISK_FULL, "507");
    expect_str(fake_server_ask(t, &f.fake, "uploads"), "0");
    expect_str(fake_server_ask(t, &f.fake, "objects"), "{}");
    s3_stop(&f);
}

/* ---- readers ---- */

TARN_TEST(s3_reader, never_mixes_two_objects)
{
    size_t got;
    struct s3_fixture f;
    struct tarn_store_reader *reader;
    uint8_t *out = tarn_arena_alloc(t->arena, 1 << 20);
    struct tarn_slice one = tarn_test_random_bytes(t, (size_t)4 << 20),
                      two = tarn_test_random_bytes(t, (size_t)4 << 20);
    s3_start(t, &f, "", "");
    expect_ok(tarn_store_put(f.store, t->op, "f", one));
    expect_ok(tarn_store_reader_open(f.store, t->op, "f", &reader));
    expect_ok(tarn_store_reader_read_at(reader, t->op, 100, 1 << 20, out, &got));
    expect_bytes(tarn_slice_of(out, got), tarn_slice_of(one.data + 100, 1 << 20));
    expect_ok(tarn_store_put(f.store, t->op, "f", two));
    expect_status(tarn_store_reader_read_at(reader, t->op, 100, 1 << 20, out, &got), TARN_IO_ERROR,
                  "replaced");
    expect_ok(tarn_store_remove(f.store, t->op, "f"));
    expect_status(tarn_store_reader_read_at(reader, t->op, 100, 1 << 20, out, &got),
                  TARN_OBJECT_NOT_FOUND, "f");
    tarn_store_reader_close(reader);
    s3_stop(&f);
}

/* As a columnar reader asks: the directory at the end, then many small columns, then large ones. */
TARN_TEST(s3_reader, asks_seldom)
{
    size_t got;
    struct s3_fixture f;
    struct tarn_store_reader *reader;
    uint8_t *out = tarn_arena_alloc(t->arena, 3 << 20);
    struct tarn_slice bytes = tarn_test_random_bytes(t, (size_t)8 << 20);
    s3_start(t, &f, "", "");
    expect_ok(tarn_store_put(f.store, t->op, "f", bytes));
    fake_server_count(t, &f.fake, "GET", "");
    expect_ok(tarn_store_reader_open(f.store, t->op, "f", &reader));
    int64_t size = tarn_store_reader_size(reader);
    expect_ok(tarn_store_reader_read_at(reader, t->op, size - 8, 8, out, &got));
    expect_ok(tarn_store_reader_read_at(reader, t->op, size - 20000, 20000, out, &got));
    expect_bytes(tarn_slice_of(out, got), tarn_slice_of(bytes.data + size - 20000, 20000));
    expect_int(fake_server_count(t, &f.fake, "GET", ""), 1);
    for (int i = 0; i < 100; i++) {
        int64_t at = 4 + (int64_t)i * 20000;
        expect_ok(tarn_store_reader_read_at(reader, t->op, at, 20000, out, &got));
        expect_bytes(tarn_slice_of(out, got), tarn_slice_of(bytes.data + at, 20000));
    }
    expect_int(fake_server_count(t, &f.fake, "GET", ""), 2);
    expect_ok(tarn_store_reader_read_at(reader, t->op, 5 << 20, 3 << 20, out, &got));
    expect_bytes(tarn_slice_of(out, got), tarn_slice_of(bytes.data + (5 << 20), 3 << 20));
    expect_int(fake_server_count(t, &f.fake, "GET", ""), 1);
    tarn_store_reader_close(reader);
    s3_stop(&f);
}

/* ---- lists ---- */

TARN_TEST(s3_list, half_a_list_is_none)
{
    size_t count;
    struct s3_fixture f;
    struct tarn_object *objects;
    s3_start(t, &f, "--page 3", "s3.retries=2");
    for (int i = 0; i < 10; i++)
        expect_ok(tarn_store_put(f.store, t->op, tarn_arena_printf(t->arena, "t/%d", i), S("x")));
    rules(t, &f, "[{\"do\": \"garble\", \"part\": \"list-type\", \"skip\": 1, \"count\": 1}]");
    expect_ok(tarn_store_list(f.store, t->op, "t", true, &objects, &count));
    expect_int(count, 10);
    rules(t, &f, "[{\"do\": \"garble\", \"part\": \"list-type\", \"skip\": 1}]");
    expect_status(tarn_store_list(f.store, t->op, "t", true, &objects, &count),
                  TARN_STORE_UNAVAILABLE, "the text ends");
    s3_stop(&f);
}

TARN_TEST(s3_list, what_is_no_key_of_ours_is_not_shown)
{
    size_t count;
    struct s3_fixture f;
    struct tarn_object *objects;
    s3_start(t, &f, "", "");
    struct tarn_store *root = s3_open(&f, "s3://lake");
    struct tarn_s3_request request = {.method = "PUT",
                                      .key = "some/wh/t/"}; /* a console's folder */
    expect_ok(tarn_s3__ask(root->self, t->op, &request));
    tarn_s3__request_drop(&request);
    request = (struct tarn_s3_request){.method = "PUT", .key = "some/wh/t//b"};
    expect_ok(tarn_s3__ask(root->self, t->op, &request));
    tarn_s3__request_drop(&request);
    expect_ok(tarn_store_put(f.store, t->op, "t/a", S("x")));
    expect_ok(tarn_store_list(f.store, t->op, "", true, &objects, &count));
    expect_int(count, 1);
    expect_slice(objects[0].key, "t/a");
    expect_ok(tarn_store_list(root, t->op, "some", false, &objects, &count));
    expect_int(count, 1);
    expect_slice(objects[0].key, "some/wh");
    expect_true(objects[0].is_folder);
    tarn_store_unref(root);
    s3_stop(&f);
}

/* ---- moves ---- */

static void put_table(struct tarn_test *t, struct s3_fixture *f)
{
    expect_ok(tarn_store_put(f->store, t->op, "a.db/t/schema/schema-0", S("s")));
    expect_ok(tarn_store_put(f->store, t->op, "a.db/t/snapshot/snapshot-1", S("1")));
    expect_ok(tarn_store_put(f->store, t->op, "a.db/t/bucket-0/f", S("rows")));
}

static const char moved[] =
    "{\"some/wh/b.db/u/bucket-0/f\": 4, \"some/wh/b.db/u/schema/schema-0\": "
    "1, \"some/wh/b.db/u/snapshot/snapshot-1\": 1}";

TARN_TEST(s3_move, one_that_was_cut_off_while_copying_is_begun_again)
{
    struct s3_fixture f;
    s3_start(t, &f, "", "s3.retries=0");
    put_table(t, &f);
    rules(t, &f, "[{\"do\": \"reset\", \"part\": \"/u/schema\", \"method\": \"PUT\"}]");
    expect_status(tarn_store_move_folder(f.store, t->op, "a.db/t", "b.db/u"),
                  TARN_STORE_UNAVAILABLE, "");
    rules(t, &f, "[]");
    /* The old place counts: what it lost meanwhile doesn't come back in the new one. */
    expect_ok(tarn_store_put(f.store, t->op, "a.db/t/snapshot/snapshot-2", S("2")));
    expect_ok(tarn_store_finish_moves(f.store, t->op, true)); /* not one that has happened */
    expect_contains(fake_server_ask(t, &f.fake, "objects"), "some/wh/a.db/t/schema/schema-0");
    expect_ok(tarn_store_remove(f.store, t->op, "a.db/t/snapshot/snapshot-2"));
    expect_ok(tarn_store_move_folder(f.store, t->op, "a.db/t", "b.db/u"));
    expect_str(fake_server_ask(t, &f.fake, "objects"), moved);
    s3_stop(&f);
}

TARN_TEST(s3_move, what_is_left_behind_does_not_undo_it)
{
    struct s3_fixture f;
    s3_start(t, &f, "", "s3.retries=0");
    put_table(t, &f);
    rules(t, &f,
          "[{\"do\": \"answer\", \"status\": 500, \"part\": \"/t/snapshot\", \"method\": "
          "\"DELETE\"}]");
    expect_ok(tarn_store_move_folder(f.store, t->op, "a.db/t", "b.db/u"));
    expect_contains(fake_server_ask(t, &f.fake, "objects"), "some/wh/a.db/t/snapshot/snapshot-1");
    expect_ok(tarn_store_finish_moves(f.store, t->op, true)); /* still not, but no error */
    rules(t, &f, "[]");
    expect_ok(tarn_store_finish_moves(f.store, t->op, true));
    expect_str(fake_server_ask(t, &f.fake, "objects"), moved);
    expect_ok(tarn_store_finish_moves(f.store, t->op, false));
    s3_stop(&f);
}

TARN_TEST(s3_move, one_that_a_crash_cut_off_is_finished_at_the_start)
{
    struct s3_fixture f;
    s3_start(t, &f, "", "s3.retries=0");
    put_table(t, &f);
    rules(t, &f,
          "[{\"do\": \"answer\", \"status\": 500, \"part\": \"/t/schema\", \"method\": "
          "\"DELETE\"}]");
    expect_status(tarn_store_move_folder(f.store, t->op, "a.db/t", "b.db/u"),
                  TARN_STORE_UNAVAILABLE, "500"); /* both places are whole */
    rules(t, &f, "[]");
    expect_ok(tarn_store_finish_moves(f.store, t->op, false));
    expect_str(fake_server_ask(t, &f.fake, "objects"), moved);
    s3_stop(&f);
}

/* ---- the probe ---- */

TARN_TEST(s3_probe, a_good_store_is_taken_and_nothing_left_there)
{
    struct s3_fixture f;
    s3_start(t, &f, "", "");
    expect_ok(tarn_store_probe(f.store, t->op));
    expect_str(fake_server_ask(t, &f.fake, "objects"), "{}");
    s3_stop(&f);
}

TARN_TEST(s3_probe, a_store_without_conditional_put_is_refused)
{
    static const char *const lacks[] = {"ignored", "unknown", "racy"};
    for (size_t i = 0; i < TARN_COUNT_OF(lacks); i++) {
        struct s3_fixture f;
        s3_start(t, &f, tarn_arena_printf(t->arena, "--conditions %s", lacks[i]), "");
        struct tarn_status *s = tarn_store_probe(f.store, t->op);
        expect_contains(tarn_status_message(s), "two writers could replace each other's commits");
        expect_status(s, TARN_CONFIG_INVALID, "s3.conditional_put = single_writer");
        expect_str(fake_server_ask(t, &f.fake, "objects"), "{}");
        s3_set(t, &f, "s3.conditional_put=single_writer");
        struct tarn_store *single = s3_open(&f, "s3://lake/some/wh");
        expect_ok(tarn_store_probe(single, t->op));
        bool created;
        expect_ok(tarn_store_put_if_absent(single, t->op, "a", S("1"), &created));
        expect_true(created);
        expect_ok(tarn_store_put_if_absent(single, t->op, "a", S("2"), &created));
        expect_false(created);
        tarn_store_unref(single);
        s3_stop(&f);
    }
}

TARN_TEST(s3_probe, a_bad_network_is_no_verdict)
{
    struct s3_fixture f;
    s3_start(t, &f, "", "s3.retries=1");
    rules(t, &f, "[{\"do\": \"reset_after\", \"method\": \"PUT\", \"skip\": 4}]");
    expect_status(tarn_store_probe(f.store, t->op), TARN_STORE_UNAVAILABLE, "");
    rules(t, &f, "[{\"do\": \"reset_after\", \"method\": \"PUT\", \"count\": 3}]");
    expect_ok(tarn_store_probe(f.store, t->op));
    s3_stop(&f);
}
