/*
 * Promise: whatever byte of a state's files is cut off, zeroed or flipped: what opens is the state as it was at one moment, whole, or it is
 * STATE_DAMAGED with the folder's name, at the open or where the damage is read. An earlier moment only where the log or the manifest,
 * which say in what order things came, are hurt: rooms that keep something here catch up with the store from any moment. Never a
 * value that nobody wrote, never a hole. (docs/faults.md, row 22)
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state/internal.h"
#include "test/lib/test.h"

#define KEYS 300 /* the first two thirds in tables, the rest in the log */
#define FLUSHED 200
#define FILES_MAX 32

struct file {
    const char *name;
    struct tarn_slice body;
};

static const char *key_of(struct tarn_test *t, int i)
{
    return tarn_arena_printf(t->arena, "key %05d", i);
}

static const char *value_of(struct tarn_test *t, int i)
{
    return tarn_arena_printf(t->arena, "value %d of some length, not the shortest", i * 7919);
}

static struct tarn_state *open_state(const char *folder)
{
    bool fresh;
    struct tarn_state *state = NULL;
    expect_ok(tarn_state_open(folder, &fresh, &state));
    return state;
}

static void put(struct tarn_test *t, struct tarn_state *state, int i)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_state_batch_put(batch, state, TARN_FAMILY_RECEIPTS, tarn_slice_str(key_of(t, i)),
                         tarn_slice_str(value_of(t, i)));
    expect_ok(tarn_state_write(state, batch, true)); /* acknowledged */
}

static void fill(struct tarn_test *t, const char *folder)
{
    struct tarn_state *state = open_state(folder);
    for (int i = 0; i < KEYS; i++) {
        put(t, state, i);
        if (i >= FLUSHED || i % (FLUSHED / 2) != FLUSHED / 2 - 1)
            continue;
        char *error = NULL;
        rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
        rocksdb_flush_cf(state->db, options, state->families[TARN_FAMILY_RECEIPTS], &error);
        rocksdb_flushoptions_destroy(options);
        expect_null(error);
    }
}

/* With tables, a log, and a manifest that says something: what a process that was killed leaves. */
static const char *make(struct tarn_test *t)
{
    const char *folder = tarn_arena_printf(t->arena, "%s/made", tarn_test_dir(t));
    pid_t child = fork();
    if (child == 0) {
        fill(t, folder);
        _exit(0);
    }
    int status;
    expect_int(waitpid(child, &status, 0), child);
    expect_int(status, 0);
    return folder;
}

static int read_all(struct tarn_test *t, const char *folder, struct file *files)
{
    int count = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        const char *n = entry->d_name;
        if (n[0] == '.' || strcmp(n, "LOCK") == 0 || strcmp(n, "HOLDER") == 0 ||
            strncmp(n, "LOG", 3) == 0)
            continue;
        TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
        tarn_test_read_file(tarn_arena_printf(t->arena, "%s/%s", folder, n), &body);
        expect_true(count < FILES_MAX);
        files[count++] = (struct file){tarn_arena_printf(t->arena, "%s", n),
                                       tarn_arena_copy(t->arena, tarn_buf_slice(&body))};
    }
    closedir(entries);
    return count;
}

static void remove_all(const char *folder)
{
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
}

/* A copy with one file that is another. */
static void lay_out(struct tarn_test *t, const char *folder, const struct file *files, int count,
                    int changed, struct tarn_slice body)
{
    remove_all(folder);
    mkdir(folder, 0700);
    for (int i = 0; i < count; i++)
        tarn_test_write_file(tarn_arena_printf(t->arena, "%s/%s", folder, files[i].name),
                             i == changed ? body : files[i].body);
}

struct seen {
    int refused, read_refused, whole, earlier;
};

static bool says_the_order(const char *name)
{
    return strstr(name, ".log") != NULL || strncmp(name, "MANIFEST", 8) == 0;
}

static void read_back(struct tarn_test *t, struct tarn_state *state, const char *folder,
                      const char *what, bool earlier_is_fine, struct seen *seen)
{
    int found_count = 0, last = -1, damaged = 0;
    for (int i = 0; i < KEYS; i++) {
        bool found;
        TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
        struct tarn_status *s = tarn_state_get(state, TARN_FAMILY_RECEIPTS,
                                               tarn_slice_str(key_of(t, i)), &found, &value);
        if (s != TARN_OK) {
            damaged++;
            expect_status(s, TARN_STATE_DAMAGED, folder);
            continue;
        }
        if (!found)
            continue;
        if (!tarn_slice_is(tarn_buf_slice(&value), value_of(t, i))) {
            expect_unreachable("%s: key %d has another value", what, i);
        }
        found_count++;
        last = i;
    }
    if (damaged > 0) {
        seen->read_refused++;
        return;
    }
    if (found_count == KEYS) {
        seen->whole++;
        return;
    }
    if (found_count == last + 1 && earlier_is_fine) {
        seen->earlier++;
        return;
    }
    expect_unreachable("%s: %d of %d keys are gone, without a word", what, KEYS - found_count,
                       KEYS);
}

static void try_one(struct tarn_test *t, const char *folder, const struct file *files, int count,
                    int changed, struct tarn_slice body, const char *what, bool earlier_is_fine,
                    struct seen *seen)
{
    bool fresh = false;
    struct tarn_state *state = NULL;
    lay_out(t, folder, files, count, changed, body);
    struct tarn_status *s = tarn_state_open(folder, &fresh, &state);
    if (s != TARN_OK) {
        seen->refused++;
        if (tarn_status_reason(s) != TARN_STATE_DAMAGED)
            expect_status(s, TARN_STATE_NEWER, folder); /* a name of a family, or the format */
        else
            expect_status(s, TARN_STATE_DAMAGED, folder);
        return;
    }
    expect_true(!fresh || earlier_is_fine);
    read_back(t, state, folder, what, earlier_is_fine, seen);
    tarn_state_close(state);
}

static struct tarn_slice copy(struct tarn_test *t, struct tarn_slice body)
{
    return tarn_arena_copy(t->arena, body);
}

static uint8_t *bytes_of(struct tarn_slice body)
{
    return (uint8_t *)(uintptr_t)body.data;
}

TARN_TEST(corrupt, each_file_cut_zeroed_or_flipped_is_noticed)
{
    struct file files[FILES_MAX];
    struct seen all = {0};
    const char *made = make(t);
    const char *folder = tarn_arena_printf(t->arena, "%s/tried", tarn_test_dir(t));
    int count = read_all(t, made, files), rounds = tarn_test_rounds(12);
    for (int i = 0; i < count; i++) {
        struct tarn_slice body = files[i].body;
        struct seen seen = {0};
        bool earlier = says_the_order(files[i].name);
        if (body.size == 0 || strncmp(files[i].name, "OPTIONS", 7) == 0 ||
            strcmp(files[i].name, "IDENTITY") == 0)
            continue; /* not what it is read from */
        for (int r = 0; r < rounds; r++) {
            size_t at = body.size * (size_t)r / (size_t)rounds;
            struct tarn_slice cut = tarn_slice_of(body.data, at);
            try_one(t, folder, files, count, i, cut,
                    tarn_arena_printf(t->arena, "%s cut at %zu", files[i].name, at), earlier,
                    &seen);
            struct tarn_slice flipped = copy(t, body);
            size_t bit = tarn_test_random_below(t, 8);
            at = tarn_test_random_below(t, body.size);
            bytes_of(flipped)[at] ^= (uint8_t)(1u << bit);
            try_one(t, folder, files, count, i, flipped,
                    tarn_arena_printf(t->arena, "%s flipped at %zu", files[i].name, at), earlier,
                    &seen);
            struct tarn_slice zeroed = copy(t, body);
            at = tarn_test_random_below(t, body.size);
            memset(bytes_of(zeroed) + at, 0, TARN_MIN((size_t)64, body.size - at));
            try_one(t, folder, files, count, i, zeroed,
                    tarn_arena_printf(t->arena, "%s zeroed at %zu", files[i].name, at), earlier,
                    &seen);
        }
        struct tarn_slice zeros = copy(t, body);
        memset(bytes_of(zeros), 0, body.size);
        try_one(t, folder, files, count, i, zeros,
                tarn_arena_printf(t->arena, "%s all zero", files[i].name), earlier, &seen);
        print_message("%s: %d refused, %d refused to be read, %d whole, %d of an earlier moment\n",
                      files[i].name, seen.refused, seen.read_refused, seen.whole, seen.earlier);
        all.refused += seen.refused + seen.read_refused;
    }
    expect_true(all.refused > 0);
}
