/*
 * Promise: over WebHDFS a store keeps what every store promises (conformance.h), and tells what happened where
 * answers are lost, where NameNodes change, where a file isn't there and where it may not be seen.
 *
 * On a fake, test/lib/fake_webhdfs.py. With TARN_TEST_WEBHDFS=http://127.0.0.1:9870 the conformance cases run
 * against that server too, which test/interop/hdfs_main_job.py does with a real one.
 */
#include "conformance.h"
#include "fake_server.h"
#include "store/hdfs.h"

#include <unistd.h>

#define S(text) tarn_slice_str(text)
#define ROOT "/some/wh"

struct fixture {
    struct fake_server fake;
    struct tarn_conf *conf;
    struct tarn_store *store;
};

static void set(struct fixture *f, const char *assignment)
{
    expect_ok(tarn_conf_set(f->conf, assignment));
}

static void reopen(struct fixture *f)
{
    tarn_store_drop(&f->store);
    expect_ok(tarn_store__hdfs_open(f->conf, "hdfs://nameservice" ROOT, &f->store));
}

/* Not opened yet. */
static void prepare(struct tarn_test *t, struct fixture *f, const char *arguments)
{
    *f = (struct fixture){.conf = tarn_conf_new()};
    fake_server_start(t, &f->fake, "fake_webhdfs.py", arguments);
    set(f,
        tarn_arena_printf(t->arena, "hdfs.webhdfs_endpoint=http://127.0.0.1:%d,http://127.0.0.1:%d",
                          f->fake.ports[0], f->fake.ports[1]));
    set(f, "hdfs.user=root");
    set(f, "hdfs.chunk_size=64 kb");
    set(f, "hdfs.retries=3");
}

static void start(struct tarn_test *t, struct fixture *f, const char *arguments)
{
    prepare(t, f, arguments);
    reopen(f);
}

static void stop(struct fixture *f)
{
    tarn_store_drop(&f->store);
    tarn_conf_free(f->conf);
    fake_server_stop(&f->fake);
}

static void rules(struct tarn_test *t, struct fixture *f, const char *json)
{
    expect_str(fake_server_ask(t, &f->fake, tarn_arena_printf(t->arena, "rules [%s]", json)), "ok");
}

/* All files below the root, hidden ones and the probe's too. */
static const char *files(struct tarn_test *t, struct fixture *f)
{
    return fake_server_ask(t, &f->fake, "files");
}

/* How many requests of that operation there were since the last count. */
static int count(struct tarn_test *t, struct fixture *f, const char *operation)
{
    return fake_server_count(t, &f->fake, operation, "");
}

static struct tarn_status *claim(struct tarn_test *t, struct fixture *f, const char *body,
                                 bool *created)
{
    return tarn_store_put_if_absent(f->store, t->op, "t/snapshot-1", S(body), created);
}

/* ---- conformance ---- */

#define FAKE(case)                                                                                 \
    TARN_TEST(hdfs, case)                                                                          \
    {                                                                                              \
        struct fixture f;                                                                          \
        start(t, &f, "--page 7");                                                                  \
        conformance_##case(t, f.store);                                                            \
        stop(&f);                                                                                  \
    }
CONFORMANCE(FAKE)

static struct tarn_store *open_real(struct tarn_test *t, const char *endpoint)
{
    char uuid[TARN_UUID_SIZE];
    struct tarn_store *store = NULL;
    struct fixture f = {.conf = tarn_conf_new()};
    tarn_uuid_random(uuid);
    set(&f, tarn_arena_printf(t->arena, "hdfs.webhdfs_endpoint=%s", endpoint));
    set(&f, "hdfs.user=root");
    set(&f, "hdfs.chunk_size=64 kb");
    expect_ok(tarn_store__hdfs_open(
        f.conf, tarn_arena_printf(t->arena, "hdfs:///tarn-test/%s", uuid), &store));
    tarn_conf_free(f.conf);
    return store;
}

#define NAME_AND_CASE(case) {#case, conformance_##case},
static const struct {
    const char *name;
    void (*run)(struct tarn_test *t, struct tarn_store *store);
} cases[] = {CONFORMANCE(NAME_AND_CASE)};

TARN_TEST(hdfs_real, conforms)
{
    const char *endpoint = getenv("TARN_TEST_WEBHDFS");
    if (endpoint == NULL)
        tarn_test_skip(t, "TARN_TEST_WEBHDFS names no server");
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        printf("%s\n", cases[i].name); /* the last one is the one that failed */
        struct tarn_store *store = open_real(t, endpoint);
        expect_ok(tarn_store_probe(store, t->op));
        cases[i].run(t, store);
        tarn_store_unref(store);
    }
}

/* ---- answers that are lost ---- */

TARN_TEST(hdfs, a_rename_whose_answer_was_lost_was_ours)
{
    bool created = false;
    struct fixture f;
    start(t, &f, "");
    rules(t, &f, "{\"op\": \"RENAME\", \"count\": 1, \"do\": \"reset_after\"}");
    expect_ok(claim(t, &f, "mine", &created));
    expect_true(created);
    expect_str(files(t, &f), "{\"" ROOT "/t/snapshot-1\": 4}");
    stop(&f);
}

TARN_TEST(hdfs, a_rename_that_was_lost_is_asked_again)
{
    bool created = false;
    struct fixture f;
    start(t, &f, "");
    rules(t, &f, "{\"op\": \"RENAME\", \"part\": \"snapshot\", \"count\": 2, \"do\": \"reset\"}");
    expect_ok(claim(t, &f, "mine", &created));
    expect_true(created);
    rules(t, &f, "{\"op\": \"RENAME\", \"part\": \"snapshot\", \"count\": 1, \"do\": \"reset\"}");
    expect_ok(claim(t, &f, "again", &created)); /* it is there by now: ours of before */
    expect_false(created);
    expect_str(files(t, &f), "{\"" ROOT "/t/snapshot-1\": 4}");
    stop(&f);
}

/* The late one finds its file gone. */
TARN_TEST(hdfs, a_rename_that_comes_late_is_none)
{
    bool created = false;
    struct fixture f;
    start(t, &f, "");
    rules(
        t, &f,
        "{\"op\": \"RENAME\", \"part\": \"snapshot\", \"count\": 1, \"do\": \"late\", \"ms\": 300}");
    expect_ok(claim(t, &f, "mine", &created));
    expect_true(created);
    expect_ok(tarn_store_remove(f.store, t->op, "t/snapshot-1"));
    usleep(500000);
    expect_str(files(t, &f), "{}");
    stop(&f);
}

TARN_TEST(hdfs, what_nobody_can_say_is_unknown)
{
    bool created = true;
    struct fixture f;
    start(t, &f, "");
    expect_ok(claim(t, &f, "first", &created));
    expect_ok(tarn_store_remove(f.store, t->op, "t/snapshot-1"));
    rules(
        t, &f,
        "{\"op\": \"RENAME\", \"do\": \"reset_after\"}, {\"op\": \"GETFILESTATUS\", \"do\": \"reset\"}");
    expect_status(claim(t, &f, "mine", &created), TARN_OUTCOME_UNKNOWN, "snapshot-1");
    expect_false(created);
    expect_status(tarn_store_put(f.store, t->op, "t/hint", S("1")), TARN_STORE_UNAVAILABLE,
                  "t/hint");
    rules(t, &f, "");
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_ok(tarn_store_get(f.store, t->op, "t/snapshot-1", &got)); /* read back: it is there */
    expect_slice(tarn_buf_slice(&got), "mine");
    stop(&f);
}

/* A gateway's 503 may come after the deed. */
TARN_TEST(hdfs, a_plain_503_to_a_rename_says_nothing)
{
    bool created = false;
    struct fixture f;
    start(t, &f, "");
    rules(
        t, &f,
        "{\"op\": \"RENAME\", \"part\": \"snapshot\", \"count\": 1, \"do\": \"plain\", \"status\": 503}");
    expect_ok(claim(t, &f, "mine", &created));
    expect_true(created);
    stop(&f);
}

TARN_TEST(hdfs, each_try_to_create_has_a_name_of_its_own)
{
    bool created = false;
    struct fixture f;
    start(t, &f, "");
    rules(
        t, &f,
        "{\"op\": \"CREATE\", \"step\": 2, \"part\": \"snapshot\", \"count\": 1, \"do\": \"reset_after\"}");
    expect_ok(claim(t, &f, "mine", &created));
    expect_true(created);
    expect_str(files(t, &f), "{\"" ROOT "/t/snapshot-1\": 4}"); /* the other is taken away */
    rules(t, &f, "{\"op\": \"CREATE\", \"step\": 2, \"do\": \"reset\"}");
    expect_status(tarn_store_put(f.store, t->op, "t/f", S("x")), TARN_STORE_UNAVAILABLE, "t/.f");
    stop(&f);
}

TARN_TEST(hdfs, a_moved_folder_is_known_by_its_inode)
{
    struct fixture f;
    start(t, &f, "");
    expect_ok(tarn_store_put(f.store, t->op, "a/f", S("x")));
    rules(t, &f, "{\"op\": \"RENAME\", \"count\": 1, \"do\": \"reset_after\"}");
    expect_ok(tarn_store_move_folder(f.store, t->op, "a", "b/c"));
    expect_str(files(t, &f), "{\"" ROOT "/b/c/f\": 1}");
    stop(&f);
}

/* ---- what must not be read as "not there" ---- */

static void expect_each_read(struct tarn_test *t, struct fixture *f, enum tarn_reason reason,
                             const char *part)
{
    bool found;
    size_t n;
    struct tarn_object *objects;
    struct tarn_store_reader *reader;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_status(tarn_store_get(f->store, t->op, "t/f", &got), reason, part);
    expect_status(tarn_store_find(f->store, t->op, "t/f", &found, &got), reason, part);
    expect_status(tarn_store_stat(f->store, t->op, "t/f", &found, NULL), reason, part);
    expect_status(tarn_store_list(f->store, t->op, "t", true, &objects, &n), reason, part);
    expect_status(tarn_store_reader_open(f->store, t->op, "t/f", &reader), reason, part);
}

TARN_TEST(hdfs, a_refusal_is_not_absence)
{
    struct fixture f;
    start(t, &f, "");
    rules(
        t, &f,
        "{\"do\": \"answer\", \"status\": 403, \"exception\": \"AccessControlException\", "
        "\"message\": \"Permission denied: user=root, access=READ, inode=\\\"/x (is not a directory)\"}");
    expect_each_read(t, &f, TARN_STORE_DENIED, "Permission denied");
    expect_status(tarn_store_remove(f.store, t->op, "t/f"), TARN_STORE_DENIED, "Permission");
    rules(t, &f, "{\"do\": \"plain\", \"status\": 401}");
    expect_each_read(t, &f, TARN_STORE_DENIED, "401");
    rules(t, &f, "{\"do\": \"plain\", \"status\": 403}");
    expect_each_read(t, &f, TARN_STORE_DENIED, "403");
    stop(&f);
}

/* What isn't WebHDFS answers 404 to everything, or anything. */
TARN_TEST(hdfs, a_404_without_a_word_is_not_absence)
{
    struct fixture f;
    start(t, &f, "");
    rules(t, &f, "{\"do\": \"plain\", \"status\": 404}");
    expect_each_read(t, &f, TARN_STORE_UNAVAILABLE, "404");
    expect_status(tarn_store_remove(f.store, t->op, "t/f"), TARN_STORE_UNAVAILABLE, "404");
    stop(&f);
}

TARN_TEST(hdfs, bad_days_pass_or_are_told)
{
    struct fixture f;
    start(t, &f, "");
    expect_ok(tarn_store_put(f.store, t->op, "t/f", S("x")));
    rules(
        t, &f,
        "{\"count\": 2, \"do\": \"answer\", \"status\": 403, \"exception\": \"RetriableException\", "
        "\"message\": \"org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot\"}");
    expect_ok(tarn_store_put(f.store, t->op, "t/f", S("yy")));
    rules(t, &f,
          "{\"do\": \"answer\", \"status\": 403, \"exception\": \"SafeModeException\", "
          "\"message\": \"Cannot create file. Name node is in safe mode.\"}");
    expect_status(tarn_store_put(f.store, t->op, "t/f", S("x")), TARN_STORE_UNAVAILABLE,
                  "safe mode");
    rules(t, &f,
          "{\"op\": \"CREATE\", \"do\": \"answer\", \"status\": 403, \"exception\": "
          "\"DSQuotaExceededException\", \"message\": \"The DiskSpace quota is exceeded\"}");
    expect_status(tarn_store_put(f.store, t->op, "t/f", S("x")), TARN_DISK_FULL, "quota");
    expect_str(files(t, &f), "{\"" ROOT "/t/f\": 2}");
    stop(&f);
}

/* ---- NameNodes ---- */

TARN_TEST(hdfs, the_active_namenode_is_found)
{
    bool created = false;
    struct fixture f;
    start(t, &f, "");
    expect_ok(tarn_store_put(f.store, t->op, "t/f", S("x")));
    expect_str(fake_server_ask(t, &f.fake, "switch"), "ok");
    expect_ok(claim(t, &f, "mine", &created));
    expect_true(created);
    count(t, &f, "");
    expect_ok(tarn_store_put(f.store, t->op, "t/f", S("x"))); /* and is kept to */
    expect_int(count(t, &f, "RENAME"), 1);
    expect_str(fake_server_ask(t, &f.fake, "switch"), "ok");
    reopen(&f);
    stop(&f);
}

TARN_TEST(hdfs, a_namenode_that_is_gone_is_passed_over)
{
    struct fixture f;
    prepare(t, &f, "");
    set(&f,
        tarn_arena_printf(t->arena, "hdfs.webhdfs_endpoint=http://127.0.0.1:1,http://127.0.0.1:%d",
                          f.fake.ports[0]));
    reopen(&f);
    expect_ok(tarn_store_put(f.store, t->op, "t/f", S("x")));
    set(&f, "hdfs.webhdfs_endpoint=http://127.0.0.1:1");
    struct tarn_store *none = NULL;
    expect_status(tarn_store__hdfs_open(f.conf, "hdfs://x/w", &none), TARN_STORE_UNAVAILABLE,
                  "hdfs.webhdfs_endpoint");
    stop(&f);
}

TARN_TEST(hdfs, it_goes_only_where_it_may)
{
    static const char *const places[] = {"ftp://127.0.0.1/x",
                                         "file:///etc/passwd",
                                         "https://127.0.0.1:1/x",
                                         "http://u:p@127.0.0.1:1/x",
                                         "http:///x",
                                         "//127.0.0.1/x",
                                         "http://127.0.0.1:1/a b",
                                         "gopher://127.0.0.1:1/x"};
    struct fixture f;
    start(t, &f, "");
    for (size_t i = 0; i < TARN_COUNT_OF(places); i++) {
        rules(t, &f,
              tarn_arena_printf(t->arena,
                                "{\"op\": \"CREATE\", \"do\": \"go\", \"location\": \"%s\"}",
                                places[i]));
        expect_status(tarn_store_put(f.store, t->op, "t/f", S("x")), TARN_STORE_UNAVAILABLE,
                      "isn't gone to");
    }
    expect_true(tarn_hdfs__may_follow("https://nn", "https://dn:9865/webhdfs/v1/x?op=OPEN"));
    expect_false(tarn_hdfs__may_follow("https://nn", "http://dn:9864/webhdfs/v1/x?op=OPEN"));
    stop(&f);
}

TARN_TEST(hdfs, a_redirect_by_status_is_followed_too)
{
    struct fixture f;
    start(t, &f, "--redirect 307");
    conformance_names_are_taken_as_they_are(t, f.store);
    stop(&f);
}

/* ---- who asks ---- */

TARN_TEST(hdfs, a_token_is_read_again_and_never_told)
{
    struct fixture f;
    const char *path = tarn_arena_printf(t->arena, "%s/token", tarn_test_dir(t));
    prepare(t, &f, "--token CANARY1");
    set(&f, tarn_arena_printf(t->arena, "hdfs.delegation_token_file=%s", path));
    struct tarn_store *none = NULL;
    expect_status(tarn_store__hdfs_open(f.conf, "hdfs://x" ROOT, &none), TARN_STORE_DENIED,
                  "token"); /* and not: there is no root yet */
    tarn_test_write_file(path, S("CANARY1\n"));
    reopen(&f);
    expect_ok(tarn_store_put(f.store, t->op, "t/f", S("x")));
    expect_str(fake_server_ask(t, &f.fake, "token CANARY2"), "ok");
    struct tarn_status *status = tarn_store_put(f.store, t->op, "t/f", S("x"));
    expect_null(strstr(tarn_status_message(status), "CANARY"));
    expect_status(status, TARN_STORE_DENIED, "InvalidToken");
    rules(t, &f, "{\"do\": \"reset\"}");
    status = tarn_store_put(f.store, t->op, "t/f", S("x"));
    expect_null(strstr(tarn_status_message(status), "CANARY"));
    expect_status(status, TARN_STORE_UNAVAILABLE, "CREATE");
    rules(t, &f, "");
    tarn_test_write_file(path, S("CANARY2"));
    expect_ok(tarn_store_put(f.store, t->op, "t/f", S("x")));
    tarn_test_write_file(path, S("no token, this"));
    expect_status(tarn_store_put(f.store, t->op, "t/f", S("x")), TARN_STORE_DENIED, "no token");
    stop(&f);
}

TARN_TEST(hdfs, the_probe_refuses_renames_that_replace)
{
    struct fixture f;
    start(t, &f, "");
    expect_ok(tarn_store_probe(f.store, t->op));
    expect_str(files(t, &f), "{}");
    stop(&f);
    start(t, &f, "--renames careless");
    expect_status(tarn_store_probe(f.store, t->op), TARN_CONFIG_INVALID, "renames onto");
    expect_str(files(t, &f), "{}");
    stop(&f);
}

/* ---- bytes ---- */

TARN_TEST(hdfs, half_an_answer_is_none)
{
    struct fixture f;
    size_t n = 0;
    struct tarn_object *objects;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    start(t, &f, "--page 2");
    for (int i = 0; i < 5; i++)
        expect_ok(tarn_store_put(f.store, t->op, tarn_arena_printf(t->arena, "t/%d", i),
                                 S("0123456789")));
    rules(t, &f,
          "{\"op\": \"OPEN\", \"step\": 2, \"count\": 1, \"do\": \"truncate\", \"bytes\": 4}");
    tarn_buf_add_str(&got, "kept");
    expect_ok(tarn_store_get(f.store, t->op, "t/1", &got));
    expect_slice(tarn_buf_slice(&got), "kept0123456789");
    rules(t, &f,
          "{\"op\": \"LISTSTATUS_BATCH\", \"skip\": 1, \"count\": 1, \"do\": \"truncate\", "
          "\"bytes\": 100}");
    expect_ok(tarn_store_list(f.store, t->op, "t", true, &objects, &n));
    expect_int(n, 5);
    rules(t, &f, "{\"op\": \"LISTSTATUS_BATCH\", \"skip\": 1, \"do\": \"garble\"}");
    expect_status(tarn_store_list(f.store, t->op, "t", true, &objects, &n), TARN_STORE_UNAVAILABLE,
                  "WebHDFS");
    rules(t, &f, "{\"op\": \"GETFILESTATUS\", \"do\": \"garble\"}");
    bool found;
    expect_status(tarn_store_stat(f.store, t->op, "t/1", &found, NULL), TARN_STORE_UNAVAILABLE,
                  "WebHDFS");
    stop(&f);
}

TARN_TEST(hdfs, large_objects_are_appended_in_chunks)
{
    enum { SIZE = 300000 };
    struct fixture f;
    struct tarn_store_writer *writer;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    struct tarn_slice bytes = tarn_test_random_bytes(t, SIZE);
    start(t, &f, "");
    expect_ok(tarn_store_writer_open(f.store, t->op, "t/data", &writer));
    for (size_t at = 0; at < SIZE; at += 7000)
        expect_ok(tarn_store_writer_append(
            writer, t->op, tarn_slice_of(bytes.data + at, TARN_MIN((size_t)7000, SIZE - at))));
    expect_ok(tarn_store_writer_finish(writer, t->op));
    expect_int(count(t, &f, "APPEND"), 8); /* two steps each; the first of the five was CREATE */
    expect_ok(tarn_store_get(f.store, t->op, "t/data", &got));
    expect_bytes(tarn_buf_slice(&got), bytes);

    rules(t, &f,
          "{\"op\": \"APPEND\", \"step\": 2, \"skip\": 1, \"count\": 1, \"do\": \"reset_after\"}");
    expect_ok(tarn_store_writer_open(f.store, t->op, "t/more", &writer));
    expect_status(tarn_store_writer_append(writer, t->op, bytes), TARN_STORE_UNAVAILABLE, "APPEND");
    expect_ok(tarn_store_writer_append(writer, t->op, S("x")));
    expect_status(tarn_store_writer_finish(writer, t->op), TARN_IO_ERROR, "t/more");
    expect_str(files(t, &f), "{\"" ROOT "/t/data\": 300000}");
    stop(&f);
}

static void expect_bytes_or_nothing(struct tarn_test *t, struct fixture *f)
{
    enum { SIZE = 400000 };
    uint8_t out[100];
    size_t got = 0;
    struct tarn_store_reader *reader;
    uint8_t *bytes = tarn_arena_alloc(t->arena, SIZE);
    memset(bytes, 'a', SIZE);
    expect_ok(tarn_store_put(f->store, t->op, "t/f", tarn_slice_of(bytes, SIZE)));
    expect_ok(tarn_store_reader_open(f->store, t->op, "t/f", &reader));
    expect_ok(tarn_store_reader_read_at(reader, t->op, SIZE - 50, sizeof out, out, &got));
    expect_int(got, 50);
    expect_int(out[49], 'a');
    memset(bytes, 'b', SIZE);
    expect_ok(tarn_store_put(f->store, t->op, "t/f", tarn_slice_of(bytes, SIZE)));
    expect_status(tarn_store_reader_read_at(reader, t->op, 0, sizeof out, out, &got),
                  TARN_OBJECT_NOT_FOUND, "t/f");
    tarn_store_reader_close(reader);
}

TARN_TEST(hdfs, a_reader_gives_no_other_files_bytes)
{
    struct fixture f;
    start(t, &f, "");
    expect_bytes_or_nothing(t, &f);
    stop(&f);
}

/* ---- settings ---- */

static void expect_bad(struct tarn_test *t, const char *assignment, const char *uri,
                       enum tarn_reason reason, const char *part)
{
    struct tarn_conf *conf = tarn_conf_new();
    if (assignment != NULL)
        expect_ok(tarn_conf_set(conf, assignment));
    struct tarn_status *status = tarn_store__hdfs_check(conf, uri);
    tarn_conf_free(conf);
    expect_status(status, reason, part);
}

TARN_TEST(hdfs, settings_are_checked)
{
    expect_bad(t, NULL, "hdfs:/w", TARN_PATH_INVALID, "hdfs://host:port/path");
    expect_bad(t, NULL, "hdfs:///w", TARN_CONFIG_INVALID, "hdfs.webhdfs_endpoint");
    expect_bad(t, NULL, "hdfs://a b/w", TARN_PATH_INVALID, "host");
    expect_bad(t, NULL, "hdfs://u@h/w", TARN_PATH_INVALID, "host");
    expect_bad(t, NULL, "hdfs://h/a/../b", TARN_PATH_INVALID, "..");
    expect_bad(t, "hdfs.webhdfs_endpoint=h:9870", "hdfs://h/w", TARN_CONFIG_INVALID, "h:9870");
    expect_bad(t, "hdfs.webhdfs_endpoint=http://h/path", "hdfs://h/w", TARN_CONFIG_INVALID, "path");
    expect_bad(t, "hdfs.chunk_size=1", "hdfs://h/w", TARN_CONFIG_INVALID, "chunk_size");
    expect_bad(t, "hdfs.retries=-1", "hdfs://h/w", TARN_CONFIG_INVALID, "retries");
    expect_bad(t, "hdfs.connections=0", "hdfs://h/w", TARN_CONFIG_INVALID, "connections");
}

static void expect_settings(const char *assignment, const char *uri, const char *root,
                            const char *endpoint)
{
    struct tarn_hdfs_settings settings;
    struct tarn_conf *conf = tarn_conf_new();
    if (assignment != NULL)
        expect_ok(tarn_conf_set(conf, assignment));
    expect_ok(tarn_hdfs__settings_read(conf, uri, &settings));
    expect_str(settings.root, root);
    expect_str(settings.endpoints[0], endpoint);
    tarn_hdfs__settings_fini(&settings);
    tarn_conf_free(conf);
}

TARN_TEST(hdfs, the_endpoint_follows_from_the_uri)
{
    expect_settings(NULL, "hdfs://nn.example:8020/a/b/", "/a/b", "http://nn.example:9870");
    expect_settings(NULL, "hdfs://nn", "", "http://nn:9870");
    expect_settings(NULL, "hdfs://[::1]:8020/w", "/w", "http://[::1]:9870");
    expect_settings("hdfs.webhdfs_endpoint=https://a:9871/, http://b:1", "hdfs:///w", "/w",
                    "https://a:9871");
}
