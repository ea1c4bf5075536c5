/*
 * Promise: a batch takes effect whole, prefixes end where they should, and a state that is held,
 * damaged, newer or unreadable is told apart from a fresh one, in words that say what to do.
 */
#include "state/state.h"

#include "state/internal.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) tarn_slice_str(text)

static struct tarn_state *open_state(const char *folder, bool want_fresh)
{
    bool fresh = !want_fresh;
    struct tarn_state *state = NULL;
    expect_ok(tarn_state_open(folder, &fresh, &state));
    expect_int(fresh, want_fresh);
    return state;
}

static void put(struct tarn_state *state, enum tarn_family family, const char *key,
                const char *value)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_state_batch_put(batch, state, family, S(key), S(value));
    expect_ok(tarn_state_write(state, batch, false));
}

static void expect_stored(struct tarn_state *state, enum tarn_family family, const char *key,
                          const char *value)
{
    bool found = false;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_ok(tarn_state_get(state, family, S(key), &found, &got));
    expect_int(found, value != NULL);
    expect_slice(tarn_buf_slice(&got), value == NULL ? "" : value);
}

/* "a=1 b=2", from `seek` on where that isn't NULL. */
static const char *listed(struct tarn_test *t, struct tarn_state *state, struct tarn_slice prefix,
                          const char *seek)
{
    struct tarn_slice key, value;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_state_iterator_drop) struct tarn_state_iterator *it =
        tarn_state_iterator_new(state, TARN_FAMILY_LIVE, prefix);
    if (seek != NULL)
        tarn_state_iterator_seek(it, S(seek));
    while (tarn_state_iterator_next(it, &key, &value))
        tarn_buf_printf(&text, "%s%.*s=%.*s", text.size == 0 ? "" : " ", TARN_SLICE_ARG(key),
                        TARN_SLICE_ARG(value));
    expect_false(tarn_state_iterator_next(it, &key, &value)); /* the end stays the end */
    expect_ok(tarn_state_iterator_error(it));
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

TARN_TEST(state, remembers_over_a_restart)
{
    const char *folder = tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t));
    struct tarn_state *state = open_state(folder, true);
    put(state, TARN_FAMILY_LIVE, "k", "v");
    put(state, TARN_FAMILY_RECEIPTS, "k", "other");
    put(state, TARN_FAMILY_RECEIPTS, "empty", "");
    expect_stored(state, TARN_FAMILY_LIVE, "k", "v");
    tarn_state_close(state);
    state = open_state(folder, false);
    expect_stored(state, TARN_FAMILY_LIVE, "k", "v");
    expect_stored(state, TARN_FAMILY_RECEIPTS, "k", "other");
    expect_stored(state, TARN_FAMILY_RECEIPTS, "empty", "");
    expect_stored(state, TARN_FAMILY_STATS, "k", NULL);
    tarn_state_close(state);
    tarn_state_close(NULL);
}

/* RocksDB's threads don't come along through a fork, so children are this program run anew, with a
 * task in the environment: it is done before main. */
#define CHILD_TASK "TARN_STATE_TEST_CHILD"

static void put_and_die(const char *folder)
{
    bool fresh;
    struct tarn_state *state;
    struct tarn_state_batch *batch = tarn_state_batch_new();
    if (tarn_state_open(folder, &fresh, &state) != TARN_OK)
        _exit(1);
    tarn_state_batch_put(batch, state, TARN_FAMILY_CATALOG, S("db"), S("1"));
    if (tarn_state_write(state, batch, true) != TARN_OK)
        _exit(2);
    kill(getpid(), SIGKILL);
}

static void be_refused(const char *folder)
{
    bool fresh;
    struct tarn_state *state;
    struct tarn_status *status = tarn_state_open(folder, &fresh, &state);
    _exit(tarn_status_reason(status) == TARN_DATA_DIR_HELD ? 0 : 1);
}

__attribute__((constructor)) static void child_main(void)
{
    const char *task = getenv(CHILD_TASK);
    if (task != NULL && task[0] == 'p')
        put_and_die(task + 1);
    if (task != NULL)
        be_refused(task + 1);
}

static int run_child(char task, const char *folder)
{
    int wait_status = -1;
    TARN_OWN(tarn_free_drop) char *text = tarn_format("%c%s", task, folder);
    pid_t child = fork();
    if (child == 0) {
        setenv(CHILD_TASK, text, 1);
        execl("/proc/self/exe", "state_test", (char *)NULL);
        _exit(99);
    }
    expect_int(waitpid(child, &wait_status, 0), child);
    return wait_status;
}

TARN_TEST(state, synced_batches_survive_kill)
{
    const char *folder = tarn_test_dir(t);
    int wait_status = run_child('p', folder);
    expect_true(WIFSIGNALED(wait_status));
    struct tarn_state *state = open_state(folder, false); /* the lock died with its holder */
    expect_stored(state, TARN_FAMILY_CATALOG, "db", "1");
    tarn_state_close(state);
}

TARN_TEST(state, batches_put_remove_and_remove_ranges)
{
    struct tarn_state *state = open_state(tarn_test_dir(t), true);
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    for (const char *k = "abcdef"; *k != '\0'; k++)
        put(state, TARN_FAMILY_LIVE, (char[]){*k, '\0'}, "1");
    tarn_state_batch_remove_range(batch, state, TARN_FAMILY_LIVE, S("b"), S("d"));
    tarn_state_batch_remove_range(batch, state, TARN_FAMILY_LIVE, S("f"), S("a")); /* empty */
    tarn_state_batch_remove(batch, state, TARN_FAMILY_LIVE, S("e"));
    tarn_state_batch_remove(batch, state, TARN_FAMILY_LIVE, S("not there"));
    tarn_state_batch_put(batch, state, TARN_FAMILY_LIVE, S("c"),
                         S("2")); /* later in the batch wins */
    expect_str(listed(t, state, S(""), NULL), "a=1 b=1 c=1 d=1 e=1 f=1");
    expect_ok(tarn_state_write(state, batch, true));
    expect_str(listed(t, state, S(""), NULL), "a=1 c=2 d=1 f=1");
    tarn_state_close(state);
}

TARN_TEST(state, prefixes_end_where_they_should)
{
    struct tarn_state *state = open_state(tarn_test_dir(t), true);
    put(state, TARN_FAMILY_LIVE, "a", "0");
    put(state, TARN_FAMILY_LIVE, "ab", "1");
    put(state, TARN_FAMILY_LIVE, "ab\xff", "2");
    put(state, TARN_FAMILY_LIVE, "ac", "3");
    put(state, TARN_FAMILY_LIVE, "\xff", "4");
    put(state, TARN_FAMILY_LIVE, "\xff\xff", "5");
    expect_str(listed(t, state, S("ab"), NULL), "ab=1 ab\xff=2");
    expect_str(listed(t, state, S("ab\xff"), NULL), "ab\xff=2");
    expect_str(listed(t, state, S("\xff"), NULL), "\xff=4 \xff\xff=5");
    expect_str(listed(t, state, S("b"), NULL), "");
    expect_str(listed(t, state, S("a"), "ab"), "ab=1 ab\xff=2 ac=3");
    expect_str(listed(t, state, S("ab"), "a"),
               "ab=1 ab\xff=2"); /* a seek stays inside the prefix */
    expect_str(listed(t, state, S("ab"), "b"), "");
    expect_str(listed(t, state, S(""), "\xff"), "\xff=4 \xff\xff=5");
    tarn_state_close(state);
}

TARN_TEST(state, iterators_see_the_moment_they_began)
{
    struct tarn_slice key, value;
    struct tarn_state *state = open_state(tarn_test_dir(t), true);
    put(state, TARN_FAMILY_LIVE, "a", "1");
    struct tarn_state_iterator *it = tarn_state_iterator_new(state, TARN_FAMILY_LIVE, S(""));
    put(state, TARN_FAMILY_LIVE, "a", "2");
    put(state, TARN_FAMILY_LIVE, "b", "2");
    expect_true(tarn_state_iterator_next(it, &key, &value));
    expect_slice(value, "1");
    expect_false(tarn_state_iterator_next(it, &key, &value));
    tarn_state_iterator_free(it);
    tarn_state_close(state);
}

TARN_TEST(state, keys_and_values_are_any_bytes)
{
    bool found;
    struct tarn_state *state = open_state(tarn_test_dir(t), true);
    struct tarn_slice key = tarn_slice_of("\0a\0", 3), value = tarn_test_random_bytes(t, 200000);
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    tarn_state_batch_put(batch, state, TARN_FAMILY_STATS, key, value);
    tarn_state_batch_put(batch, state, TARN_FAMILY_STATS, tarn_slice_of(NULL, 0),
                         S("of the empty key"));
    expect_ok(tarn_state_write(state, batch, false));
    expect_ok(tarn_state_get(state, TARN_FAMILY_STATS, key, &found, &got));
    expect_bytes(tarn_buf_slice(&got), value);
    got.size = 0;
    expect_ok(tarn_state_get(state, TARN_FAMILY_STATS, tarn_slice_of(NULL, 0), &found, &got));
    expect_slice(tarn_buf_slice(&got), "of the empty key");
    tarn_state_close(state);
}

/* ---- states that can't be opened ---- */

static void expect_refused(const char *folder, enum tarn_reason reason, const char *part)
{
    bool fresh = false;
    struct tarn_state *state = NULL;
    expect_status(tarn_state_open(folder, &fresh, &state), reason, part);
    expect_null(state);
}

TARN_TEST(state, held_names_the_holder)
{
    const char *folder = tarn_test_dir(t);
    struct tarn_state *state = open_state(folder, true);
    expect_refused(folder, TARN_DATA_DIR_HELD, folder);
    expect_refused(folder, TARN_DATA_DIR_HELD,
                   tarn_arena_printf(t->arena, "process %d on host", (int)getpid()));
    put(state, TARN_FAMILY_LIVE, "k", "v"); /* the refused attempts did it no harm */
    expect_int(run_child('r', folder), 0);
    tarn_state_close(state);
    tarn_state_close(open_state(folder, false));
}

TARN_TEST(state, rocksdbs_own_lock_is_held_too)
{
    const char *folder = tarn_test_dir(t);
    struct tarn_state *state = open_state(folder, true);
    /* as if the holder file had been deleted: two locks stand in the way */
    expect_int(unlink(tarn_arena_printf(t->arena, "%s/HOLDER", folder)), 0);
    expect_refused(folder, TARN_DATA_DIR_HELD, "lock");
    tarn_state_close(state);
}

/* A file of the state whose name begins so; in the test's arena. */
static const char *file_of(struct tarn_test *t, const char *folder, const char *part)
{
    const char *path = NULL;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strstr(entry->d_name, part) != NULL)
            path = tarn_arena_printf(t->arena, "%s/%s", folder, entry->d_name);
    }
    closedir(entries);
    expect_not_null(path);
    return path;
}

/* A state with a table file in it. */
static const char *filled(struct tarn_test *t)
{
    const char *folder = tarn_test_dir(t);
    struct tarn_state *state = open_state(folder, true);
    for (int i = 0; i < 1000; i++)
        put(state, TARN_FAMILY_LIVE, tarn_arena_printf(t->arena, "key %d", i), "value");
    char *error = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush_cf(state->db, options, state->families[TARN_FAMILY_LIVE], &error);
    rocksdb_flushoptions_destroy(options);
    expect_null(error);
    tarn_state_close(state);
    return folder;
}

static void overwrite(const char *path, const char *bytes, off_t offset)
{
    int fd = open(path, O_WRONLY);
    expect_true(fd >= 0);
    expect_int(pwrite(fd, bytes, strlen(bytes), offset), strlen(bytes));
    close(fd);
}

TARN_TEST(state, damage_is_state_damaged)
{
    const char *folder = filled(t);
    overwrite(file_of(t, folder, "MANIFEST-"), "garbage garbage garbage garbage", 0);
    expect_refused(folder, TARN_STATE_DAMAGED, folder);
    folder = filled(t);
    expect_int(unlink(file_of(t, folder, ".sst")), 0);
    expect_refused(folder, TARN_STATE_DAMAGED, folder);
    folder = filled(t);
    expect_int(unlink(file_of(t, folder, "MANIFEST-")), 0);
    expect_refused(folder, TARN_STATE_DAMAGED, folder);
    folder = filled(t);
    expect_int(unlink(file_of(t, folder, "CURRENT")), 0);
    expect_refused(folder, TARN_STATE_DAMAGED, "CURRENT");
    folder = filled(t);
    expect_int(truncate(file_of(t, folder, "CURRENT"), 0), 0);
    expect_refused(folder, TARN_STATE_DAMAGED, folder);
}

TARN_TEST(state, a_damaged_block_is_an_error_not_an_end)
{
    struct tarn_slice key, value;
    const char *folder = filled(t);
    overwrite(file_of(t, folder, ".sst"), "garbage garbage garbage garbage", 100);
    struct tarn_state *state = open_state(folder, false);
    struct tarn_state_iterator *it = tarn_state_iterator_new(state, TARN_FAMILY_LIVE, S("key"));
    while (tarn_state_iterator_next(it, &key, &value)) {}
    expect_status(tarn_state_iterator_error(it), TARN_STATE_DAMAGED, "read");
    tarn_state_iterator_free(it);
    tarn_state_close(state);
}

TARN_TEST(state, a_newer_format_is_refused)
{
    const char *folder = tarn_test_dir(t);
    struct tarn_state *state = open_state(folder, true);
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_state_batch_put(batch, state, TARN_FAMILY_META, S("format"),
                         tarn_slice_of("\0\0\0\0\0\0\0\2", 8));
    expect_ok(tarn_state_write(state, batch, true));
    tarn_state_close(state);
    expect_refused(folder, TARN_STATE_NEWER, "its format is 2");
}

TARN_TEST(state, a_family_of_the_future_is_refused)
{
    char *error = NULL;
    const char *folder = tarn_test_dir(t);
    struct tarn_state *state = open_state(folder, true);
    rocksdb_column_family_handle_t *handle =
        rocksdb_create_column_family(state->db, state->options, "tomorrow", &error);
    expect_null(error);
    rocksdb_column_family_handle_destroy(handle);
    tarn_state_close(state);
    expect_refused(folder, TARN_STATE_NEWER, "tomorrow");
}

TARN_TEST(state, contents_without_a_format_are_not_fresh)
{
    const char *folder = tarn_test_dir(t);
    struct tarn_state *state = open_state(folder, true);
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_state_batch_remove(batch, state, TARN_FAMILY_META, S("format"));
    expect_ok(tarn_state_write(state, batch, true));
    tarn_state_close(state);
    state = open_state(folder, true); /* empty: creation was cut short */
    tarn_state_batch_put(batch, state, TARN_FAMILY_CATALOG, S("db"), S("1"));
    expect_ok(tarn_state_write(state, batch, true)); /* removes the format again */
    tarn_state_close(state);
    expect_refused(folder, TARN_STATE_DAMAGED, "format");
}

TARN_TEST(state, a_bad_place_is_named)
{
    const char *path = tarn_arena_printf(t->arena, "%s/f", tarn_test_dir(t));
    tarn_test_write_file(path, S("x"));
    expect_refused(tarn_arena_printf(t->arena, "%s/state", path), TARN_OBJECT_NOT_FOUND, path);
    expect_refused(tarn_arena_printf(t->arena, "%s-no/state", path), TARN_OBJECT_NOT_FOUND, path);
}

/* ---- memory ---- */

TARN_TEST(state, says_what_it_holds_in_memory)
{
    struct tarn_state_memory before, after;
    struct tarn_state *state = open_state(tarn_test_dir(t), true);
    char *value = tarn_arena_alloc(t->arena, 1001);
    memset(value, 'x', 1000);
    value[1000] = '\0';
    tarn_state_memory(state, &before);
    for (int i = 0; i < 200; i++)
        put(state, TARN_FAMILY_LIVE, tarn_arena_printf(t->arena, "%d", i), value);
    tarn_state_memory(state, &after);
    expect_true(after.buffers_size >= before.buffers_size + 200000);
    expect_true(after.buffers_size < 16 << 20);
    expect_true(after.cache_size < 32 << 20);
    tarn_state_close(state);
}

/* ---- what isn't needed any more ---- */

static int log_count(const char *folder)
{
    int count = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += strstr(entry->d_name, ".log") != NULL;
    closedir(entries);
    return count;
}

static void tidy_later(struct tarn_state *state)
{
    atomic_store(&state->marked_ms, -60000); /* a minute has passed */
    tarn_state_tidy(state);
}

TARN_TEST(state, an_idle_state_lets_go_of_what_it_does_not_need)
{
    char *error = NULL;
    const char *folder = tarn_test_dir(t);
    struct tarn_state *state = open_state(folder, true);
    put(state, TARN_FAMILY_LIVE, "a", "1");
    put(state, TARN_FAMILY_META, "b", "1");
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush_cf(state->db, options, state->families[TARN_FAMILY_META], &error);
    rocksdb_flush_cf(state->db, options, state->families[TARN_FAMILY_LIVE], &error);
    rocksdb_flushoptions_destroy(options);
    expect_null(error);
    expect_int(log_count(folder), 2);
    tarn_state_tidy(state); /* the last mark was a moment ago */
    expect_int(log_count(folder), 2);
    tidy_later(state);
    expect_int(log_count(folder), 1);
    expect_int(unlink(tarn_arena_printf(t->arena, "%s/MARK", folder)), 0);
    tidy_later(state); /* nothing waits: nothing is written */
    expect_int(access(tarn_arena_printf(t->arena, "%s/MARK", folder), F_OK), -1);
    tarn_state_close(state);
}

/* ---- what it costs ---- */

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "VmRSS: %ld kB", &kib);
    if (file != NULL)
        fclose(file);
    return kib;
}

TARN_TEST(state, is_small_and_quick_when_idle)
{
    const char *folder = filled(t);
    int64_t before = tarn_clock_mono_ms();
    struct tarn_state *state = open_state(folder, false);
    int64_t open_ms = tarn_clock_mono_ms() - before;
    long kib = resident_kib();
    print_message("open %" PRId64 " ms, resident %ld KiB\n", open_ms, kib);
    tarn_state_close(state);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    expect_true(kib < 64 * 1024);
    expect_true(open_ms < 1000); /* 200 ms on a quiet machine */
#endif
}

/* ---- views and loads ---- */

static const char *walked(struct tarn_test *t, struct tarn_state *state,
                          const struct tarn_state_range *range)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it = tarn_state_iterator_open(state, TARN_FAMILY_LIVE, range);
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value))
        tarn_buf_printf(&text, "%.*s=%.*s ", TARN_SLICE_ARG(key), TARN_SLICE_ARG(value));
    expect_ok(tarn_state_iterator_error(it));
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

TARN_TEST(state, many_keys_are_found_in_order)
{
    struct tarn_state *state = open_state(filled(t), false);
    struct tarn_slice value, key;
    for (int i = 0; i < 40; i += 2)
        put(state, TARN_FAMILY_LIVE, tarn_arena_printf(t->arena, "find%02d", i),
            tarn_arena_printf(t->arena, "%d", i));
    struct tarn_state_range range = {.from = S("find"), .to = S("finf")};
    struct tarn_state_iterator *it = tarn_state_iterator_open(state, TARN_FAMILY_LIVE, &range);
    static const int wanted[] = {0, 1, 2, 3, 4, 5, 9, 10, 38, 39, 41, 7, 8, 8, 0, 30, 12};
    for (size_t i = 0; i < TARN_COUNT_OF(wanted); i++) { /* near, far, behind, twice, not there */
        const char *name = tarn_arena_printf(t->arena, "find%02d", wanted[i]);
        bool there = wanted[i] % 2 == 0 && wanted[i] < 40;
        expect_int(tarn_state_iterator_find(it, tarn_slice_str(name), &value), there);
        if (there)
            expect_str(tarn_arena_str(t->arena, value),
                       tarn_arena_printf(t->arena, "%d", wanted[i]));
    }
    expect_true(tarn_state_iterator_next(it, &key, &value)); /* what comes behind the last */
    expect_str(tarn_arena_str(t->arena, key), "find14");
    expect_false(tarn_state_iterator_find(it, S("find15"), &value));
    expect_true(tarn_state_iterator_next(it, &key, &value));
    expect_str(tarn_arena_str(t->arena, key), "find16");
    tarn_state_iterator_free(it);
    tarn_state_close(state);
}

TARN_TEST(state, a_view_is_one_moment_of_all_families)
{
    struct tarn_state *state = open_state(filled(t), false);
    put(state, TARN_FAMILY_LIVE, "va", "1");
    put(state, TARN_FAMILY_LIVE, "vb", "1");
    struct tarn_state_view *view = tarn_state_view_new(state);
    put(state, TARN_FAMILY_LIVE, "vb", "2");
    put(state, TARN_FAMILY_LIVE, "vc", "2");
    struct tarn_state_range then = {.from = S("v"), .to = S("w"), .view = view},
                            now = {.from = S("vb"), .to = S("w"), .is_long = true};
    expect_str(walked(t, state, &then), "va=1 vb=1 ");
    expect_str(walked(t, state, &now), "vb=2 vc=2 ");
    tarn_state_view_free(view);
    tarn_state_close(state);
}

TARN_TEST(state, a_load_is_there_whole_and_over_a_restart)
{
    const char *folder = filled(t);
    struct tarn_state *state = open_state(folder, false);
    put(state, TARN_FAMILY_LIVE, "la", "old");
    struct tarn_state_loader *loader;
    expect_ok(tarn_state_loader_new(state, TARN_FAMILY_LIVE, &loader));
    expect_ok(tarn_state_loader_put(loader, S("la"), S("new")));
    expect_ok(tarn_state_loader_put(loader, S("lb"), S("")));
    struct tarn_state_range range = {.from = S("l"), .to = S("m")};
    expect_str(walked(t, state, &range), "la=old ");
    expect_ok(tarn_state_loader_finish(loader));
    tarn_state_loader_free(loader);
    expect_str(walked(t, state, &range), "la=new lb= ");
    /* One that isn't finished, and an empty one, leave nothing. */
    expect_ok(tarn_state_loader_new(state, TARN_FAMILY_LIVE, &loader));
    expect_ok(tarn_state_loader_put(loader, S("lx"), S("x")));
    tarn_state_loader_free(loader);
    expect_ok(tarn_state_loader_new(state, TARN_FAMILY_LIVE, &loader));
    expect_ok(tarn_state_loader_finish(loader));
    tarn_state_loader_free(loader);
    tarn_state_close(state);
    const char *left = tarn_arena_printf(t->arena, "%s/loading-0", folder);
    tarn_test_write_file(left, S("of a load that a crash cut short"));
    state = open_state(folder, false);
    expect_int(access(left, F_OK), -1);
    expect_str(walked(t, state, &range), "la=new lb= ");
    tarn_state_close(state);
}
