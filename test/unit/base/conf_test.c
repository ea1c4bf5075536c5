/*
 * Promise: the effective configuration is the defaults, then the file, the environment and --set;
 * whatever isn't understood is refused with its place and the nearest key, never skipped. The sample
 * file says what keys.def says.
 */
#include "test.h"

static struct tarn_status *load(struct tarn_conf *conf, const char *text)
{
    return tarn_conf_load_text(conf, "t.conf", tarn_slice_str(text));
}

static void refuse_file(const char *text, const char *part)
{
    struct tarn_conf *conf = tarn_conf_new();
    struct tarn_status *s = load(conf, text);
    tarn_conf_free(conf);
    expect_status(s, TARN_CONFIG_INVALID, part);
}

TARN_TEST(conf, has_the_defaults_of_the_table)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    expect_str(tarn_conf_text(conf, TARN_CONF_server_grpc_listen), "127.0.0.1:7420");
    expect_int(tarn_conf_int(conf, TARN_CONF_worker_count), -1);
    expect_int(tarn_conf_int(conf, TARN_CONF_worker_memory), 1 << 30);
    expect_int(tarn_conf_int(conf, TARN_CONF_commit_foreign_check), 1000);
    expect_true(tarn_conf_bool(conf, TARN_CONF_compaction_auto));
    expect_str(tarn_conf_key_name(TARN_CONF_log_level), "log.level");
}

TARN_TEST(conf, later_wins_file_environment_set)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    expect_ok(load(
        conf, "# comment\n; another\n[commit]\nretries = 1\n\n[worker]\r\nmemory=64 mb ; note\r\n"
              "count : 2\n[warehouse]\nuri = file:///a b"));
    expect_int(tarn_conf_int(conf, TARN_CONF_commit_retries), 1);
    expect_int(tarn_conf_int(conf, TARN_CONF_worker_memory), 64 << 20);
    expect_int(tarn_conf_int(conf, TARN_CONF_worker_count), 2);
    expect_str(tarn_conf_text(conf, TARN_CONF_warehouse_uri), "file:///a b");
    char *environment[] = {"PATH=/bin", "TARN_COMMIT_RETRIES=2", "TARN_WAREHOUSE_NAME=w=x",
                           "TARN_S3_REGION=r-1", NULL};
    expect_ok(tarn_conf_load_environment(conf, environment));
    expect_int(tarn_conf_int(conf, TARN_CONF_commit_retries), 2);
    expect_str(tarn_conf_text(conf, TARN_CONF_warehouse_name), "w=x");
    expect_str(tarn_conf_text(conf, TARN_CONF_s3_region), "r-1"); /* a section with a digit */
    expect_ok(tarn_conf_set(conf, "commit.retries=3"));
    expect_int(tarn_conf_int(conf, TARN_CONF_commit_retries), 3);
    expect_ok(tarn_conf_set(conf, "warehouse.uri="));
    expect_str(tarn_conf_text(conf, TARN_CONF_warehouse_uri), "");
}

TARN_TEST(conf, names_file_line_and_the_nearest_key)
{
    refuse_file("[commit]\n\nretires = 1\n", "t.conf:3: no such key: commit.retires; did you mean "
                                             "commit.retries?");
    refuse_file("[server]\nforeign_check = 1\n",
                "t.conf:2: no such key: server.foreign_check; did you mean "
                "commit.foreign_check?");
    refuse_file("[nonsense]\nwhatever = 1\n", "t.conf:2: no such key: nonsense.whatever");
    refuse_file("retries = 1\n", "t.conf:1: no such key: retries; is its section missing, as in ");
    refuse_file("[server]\ngrpc_listen 127.0.0.1:1\n",
                "t.conf:2: there is no = behind server.grpc_listen");
    refuse_file("[worker]\nmemory = lots\n", "t.conf:2: worker.memory: \"lots\" is not a size");
    refuse_file("[commit]\nretries = 1\nretries = 2\n",
                "t.conf:3: commit.retries is already set in "
                "line 2");
}

TARN_TEST(conf, refuses_lines_it_does_not_understand)
{
    refuse_file("[commit]\nretries\n", "t.conf:2: neither [section] nor key = value");
    refuse_file("[commit\nretries = 1\n", "t.conf:1: neither");
    /* The first fault is reported, whichever kind it is. */
    refuse_file("[commit]\nx\nretires = 1\n", "t.conf:2: neither");
    refuse_file("[commit]\nretires = 1\nx\n", "t.conf:2: no such key");
    /* inih would take an indented line for the rest of the value before. */
    refuse_file("[commit]\nretries = 1\n  foreign_check = 2 s\n", "t.conf:3");
}

TARN_TEST(conf, refuses_a_line_that_would_be_cut_and_keeps_the_longest_whole)
{
    char value[400];
    for (int size = 180; size < 260; size++) {
        char *text = tarn_arena_printf(t->arena, "[log]\nlevel = info\n[warehouse]\nuri = %.*s\n",
                                       size - 6, (const char *)memset(value, 'x', sizeof value));
        struct tarn_conf *conf = tarn_conf_new();
        struct tarn_status *s = load(conf, text);
        size_t got = strlen(tarn_conf_text(conf, TARN_CONF_warehouse_uri));
        tarn_conf_free(conf);
        if (size > TARN_CONF_LINE_SIZE_MAX) {
            expect_status(s, TARN_CONFIG_INVALID, "t.conf:4: the line is longer than 197 bytes");
            continue;
        }
        expect_ok(s);
        expect_uint(got, size - 6);
    }
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    expect_status(tarn_conf_load_text(conf, "t.conf", tarn_slice_of("[log]\nlevel=a\0b\n", 16)),
                  TARN_CONFIG_INVALID, "t.conf:2: the line holds a NUL byte");
}

TARN_TEST(conf, looks_only_at_variables_of_its_sections)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    char *ignored[] = {"TARN_SERVER=host:1",
                       "TARN_TOKEN=x",
                       "TARN_CACHE=/c",
                       "TARN_FOO_BAR=1",
                       "TARN_",
                       "TARN_COMMIT",
                       "TARN_commit_retries=9",
                       "TARN_PARENT_PID=1",
                       "TARN_MEMORY_MAX=1",
                       "XTARN_COMMIT_RETRIES=9",
                       "TARN_COMMITS_X=1",
                       "TARN_COMMIT_RETRIES",
                       NULL};
    expect_ok(tarn_conf_load_environment(conf, ignored));
    expect_int(tarn_conf_int(conf, TARN_CONF_commit_retries), 10);
    char *unknown[] = {"TARN_COMMIT_RETIRES=1", NULL};
    expect_status(tarn_conf_load_environment(conf, unknown), TARN_CONFIG_INVALID,
                  "variable TARN_COMMIT_RETIRES: no such key: commit.retires; did you mean "
                  "commit.retries?");
    char *bad[] = {"TARN_COMPACTION_AUTO=maybe", NULL};
    expect_status(tarn_conf_load_environment(conf, bad), TARN_CONFIG_INVALID,
                  "variable TARN_COMPACTION_AUTO: compaction.auto: \"maybe\" is not true or false");
}

TARN_TEST(conf, set_names_what_it_expected)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    expect_status(tarn_conf_set(conf, "commit.retries"), TARN_CONFIG_INVALID, "section.key=value");
    expect_status(tarn_conf_set(conf, "log.levle=info"), TARN_CONFIG_INVALID,
                  "--set: no such key: log.levle; did you mean log.level?");
    expect_status(tarn_conf_set(conf, "commit.retries=many"), TARN_CONFIG_INVALID, "integer");
    expect_int(tarn_conf_int(conf, TARN_CONF_commit_retries), 10);
}

TARN_TEST(conf, file_is_found_read_or_named)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    const char *dir = tarn_test_dir(t), *path = tarn_arena_printf(t->arena, "%s/a.conf", dir);
    expect_status(tarn_conf_load_file(conf, path), TARN_CONFIG_INVALID, "a.conf: No such file");
    expect_status(tarn_conf_load_file(conf, dir), TARN_CONFIG_INVALID, "Is a directory");
    tarn_test_write_file(path, tarn_slice_str("\xef\xbb\xbf[commit]\nretries = 4\n"));
    expect_ok(tarn_conf_load_file(conf, path));
    expect_int(tarn_conf_int(conf, TARN_CONF_commit_retries), 4);
    TARN_OWN(tarn_buf_drop) struct tarn_buf huge = {0};
    tarn_buf_add_zeros(&huge, TARN_CONF_FILE_SIZE_MAX + 1);
    memset(huge.data, '\n', huge.size);
    tarn_test_write_file(path, tarn_buf_slice(&huge));
    expect_status(tarn_conf_load_file(conf, path), TARN_CONFIG_INVALID, "larger than 1048576");
}

TARN_TEST(conf, prints_what_loads_to_the_same)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *a = tarn_conf_new();
    TARN_OWN(tarn_conf_drop) struct tarn_conf *b = tarn_conf_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};
    expect_ok(tarn_conf_set(a, "warehouse.uri=file:///x"));
    expect_ok(tarn_conf_set(a, "worker.memory=2 gb"));
    tarn_conf_print(a, &first);
    expect_contains(tarn_buf_cstr(&first), "[worker]\ncount = -1\nprogram =\nmemory = 2 gb\n");
    expect_ok(tarn_conf_load_text(b, "printed", tarn_buf_slice(&first)));
    tarn_conf_print(b, &second);
    expect_str(tarn_buf_cstr(&second), tarn_buf_cstr(&first));
}

TARN_TEST(conf, sample_holds_every_key_with_its_default)
{
    TARN_OWN(tarn_conf_drop) struct tarn_conf *defaults = tarn_conf_new();
    TARN_OWN(tarn_conf_drop) struct tarn_conf *conf = tarn_conf_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf sample = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf live = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf want = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    tarn_test_read_file(tarn_test_path(t, "../conf/tarnd.conf"), &sample);

    /* Switched on ("#key = value", while meanings are "# text"), with wrong values before: each key
     * must be there, or the wrong value stays. */
    for (const char *p = tarn_buf_cstr(&sample); *p != 0;) {
        size_t size = strcspn(p, "\n");
        bool is_key = p[0] == '#' && p[1] >= 'a' && p[1] <= 'z';
        tarn_buf_add(&live, p + is_key, size - is_key);
        tarn_buf_add_str(&live, "\n");
        p += size + (p[size] == '\n');
    }
    static const char *const wrong[] = {"x", "false", "77", "77 kb", "77 s"};
    for (int i = 0; i < TARN_CONF_KEY_COUNT; i++)
        for (size_t k = 0; k < TARN_COUNT_OF(wrong); k++)
            tarn_status_free(tarn_conf_set(
                conf, tarn_arena_printf(t->arena, "%s=%s", tarn_conf_key_name(i), wrong[k])));
    expect_ok(tarn_conf_load_text(conf, "conf/tarnd.conf", tarn_buf_slice(&live)));
    tarn_conf_print(conf, &got);
    tarn_conf_print(defaults, &want);
    expect_str(tarn_buf_cstr(&got), tarn_buf_cstr(&want));
}
