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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state/internal.h"
#include "test/lib/test.h"

/* Stands in for libc's: in which order files are synced, "M" a manifest, "m" a mark. */
static char synced[64];

int fdatasync(int fd)
{
    char path[300] = "", link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    const char *name = size > 0 ? strrchr(path, '/') : NULL;
    bool mark = name != NULL && strcmp(name, "/MARK") == 0;
    bool manifest = name != NULL && strncmp(name, "/MANIFEST-", 10) == 0;
    if ((mark || manifest) && strlen(synced) + 1 < sizeof synced)
        strcat(synced, mark ? "m" : "M");
    return (int)syscall(SYS_fdatasync, fd);
}

#define KEYS 300 /* the first two thirds in tables, the rest in the log */
#define FLUSHED 200
#define FILES_MAX 64

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
    return tarn_arena_printf(t->arena, "value %d of some length, not the shortest %0100d", i * 7919,
                             i);
}

static struct tarn_state *open_state(const char *folder)
{
    bool fresh;
    struct tarn_state *state = NULL;
    expect_ok(tarn_state_open(folder, &fresh, &state));
    return state;
}

/* What one batch says of several families must come back together. */
static const enum tarn_family families[] = {TARN_FAMILY_LIVE, TARN_FAMILY_RECEIPTS,
                                            TARN_FAMILY_PINS};

static void put(struct tarn_test *t, struct tarn_state *state, int i)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    for (size_t f = 0; f < TARN_COUNT_OF(families); f++)
        tarn_state_batch_put(batch, state, families[f], tarn_slice_str(key_of(t, i)),
                             tarn_slice_str(value_of(t, i)));
    expect_ok(tarn_state_write(state, batch, true)); /* acknowledged */
}

static void flush(struct tarn_state *state, size_t family_count)
{
    for (size_t f = 0; f < family_count; f++) {
        char *error = NULL;
        rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
        rocksdb_flush_cf(state->db, options, state->families[families[f]], &error);
        rocksdb_flushoptions_destroy(options);
        expect_null(error);
    }
}

static void fill(struct tarn_test *t, const char *folder, int from, int to)
{
    struct tarn_state *state = open_state(folder);
    for (int i = from; i < to; i++) {
        put(t, state, i);
        if (i == FLUSHED / 2) {
            flush(state, TARN_COUNT_OF(families));
            expect_ok(tarn_state__mark(state)); /* the log so far is gone */
        }
        if (i == FLUSHED - 1)
            flush(state, 2); /* the third has it in the log alone */
    }
}

/* Before this process opens a state itself: RocksDB's threads don't survive a fork. */
static void fill_and_die(struct tarn_test *t, const char *folder, int from, int to)
{
    pid_t child = fork();
    if (child == 0) {
        fill(t, folder, from, to);
        _exit(0);
    }
    int status;
    expect_int(waitpid(child, &status, 0), child);
    expect_int(status, 0);
}

/* With tables, a log, and a manifest that says something: what a process that was killed leaves. lives: so many there
 * were. */
static const char *make(struct tarn_test *t, int lives)
{
    const char *folder = tarn_arena_printf(t->arena, "%s/made %d", tarn_test_dir(t), lives);
    for (int i = 0; i < lives; i++)
        fill_and_die(t, folder, KEYS * i / lives, KEYS * (i + 1) / lives);
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
        size_t in_count = 0;
        for (size_t f = 0; f < TARN_COUNT_OF(families); f++) {
            bool found;
            TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
            struct tarn_status *s =
                tarn_state_get(state, families[f], tarn_slice_str(key_of(t, i)), &found, &value);
            if (s != TARN_OK) {
                damaged++;
                expect_status(s, TARN_STATE_DAMAGED, folder);
                continue;
            }
            in_count += found;
            if (found && !tarn_slice_is(tarn_buf_slice(&value), value_of(t, i))) {
                expect_unreachable("%s: key %d has another value", what, i);
            }
        }
        if (damaged == 0 && in_count != 0 && in_count != TARN_COUNT_OF(families)) {
            expect_unreachable("%s: key %d is in %zu of %zu families", what, i, in_count,
                               TARN_COUNT_OF(families));
        }
        if (in_count == 0)
            continue;
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

static void damage_each(struct tarn_test *t, const char *made, int rounds)
{
    struct file files[FILES_MAX];
    struct seen all = {0};
    const char *folder = tarn_arena_printf(t->arena, "%s/tried", tarn_test_dir(t));
    int count = read_all(t, made, files);
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

/* RocksDB reads a manifest to the last record that is whole, families and files that a later one names never were. */
static void cut_manifest_anywhere(struct tarn_test *t, const char *made, struct seen *all)
{
    struct file files[FILES_MAX];
    const char *folder = tarn_arena_printf(t->arena, "%s/tried", tarn_test_dir(t));
    struct seen seen = {0};
    int count = read_all(t, made, files);
    for (int i = 0; i < count; i++) {
        if (strncmp(files[i].name, "MANIFEST", 8) != 0)
            continue;
        for (size_t at = 0; at < files[i].body.size; at += 41)
            try_one(t, folder, files, count, i, tarn_slice_of(files[i].body.data, at),
                    tarn_arena_printf(t->arena, "%s cut at %zu", files[i].name, at), true, &seen);
    }
    print_message("cut: %d refused, %d whole, %d of an earlier moment\n", seen.refused, seen.whole,
                  seen.earlier);
    expect_int(seen.earlier, 0);
    all->refused += seen.refused;
    all->whole += seen.whole;
}

/* The header of a record in the first block of the log, behind some others. */
static size_t some_record(struct tarn_slice log)
{
    size_t at = 0;
    while (at < 10000)
        at += 7 + (size_t)(log.data[at + 4] | log.data[at + 5] << 8);
    return at;
}

/* A page that a loss of power kept from the disk: RocksDB skips zeros where a header should be, to the next block. */
static void make_a_hole(struct tarn_test *t, const char *made)
{
    struct file files[FILES_MAX];
    struct seen seen = {0};
    const char *folder = tarn_arena_printf(t->arena, "%s/tried", tarn_test_dir(t));
    int count = read_all(t, made, files);
    for (int i = 0; i < count; i++) {
        if (strstr(files[i].name, ".log") == NULL)
            continue;
        struct tarn_slice holed = copy(t, files[i].body);
        size_t at = some_record(holed);
        expect_true(holed.size > 33000);
        memset(bytes_of(holed) + at, 0, 32768 - at);
        struct tarn_state *state = NULL;
        lay_out(t, folder, files, count, i, holed);
        state = open_state(folder);
        int found_count = 0, last = -1;
        for (int k = FLUSHED; k < KEYS; k++) {
            bool found;
            TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
            expect_ok(tarn_state_get(state, TARN_FAMILY_RECEIPTS, tarn_slice_str(key_of(t, k)),
                                     &found, &value));
            found_count += found;
            last = found ? k - FLUSHED : last;
        }
        tarn_state_close(state);
        expect_true(found_count > 0);
        expect_int(found_count, last + 1);
        seen.earlier++;
    }
    expect_int(seen.earlier, 1);
}

/* Killed between making the file MARK and writing it. */
static void empty_mark(struct tarn_test *t, const char *made)
{
    struct file files[FILES_MAX];
    const char *folder = tarn_arena_printf(t->arena, "%s/tried", tarn_test_dir(t));
    int count = read_all(t, made, files), tried = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(files[i].name, "MARK") != 0)
            continue;
        lay_out(t, folder, files, count, i, tarn_slice_str(""));
        tarn_state_close(open_state(folder));
        tried++;
    }
    expect_int(tried, 1);
}

TARN_TEST(corrupt, what_is_damaged_is_noticed_and_what_opens_is_of_one_moment)
{
    struct seen cut = {0};
    const char *one = make(t, 1), *two = make(t, 2);
    const char *log = tarn_arena_printf(t->arena, "%s/log", tarn_test_dir(t));
    fill_and_die(t, log, FLUSHED, KEYS);
    make_a_hole(t, log);
    empty_mark(t, log);
    cut_manifest_anywhere(t, one, &cut);
    cut_manifest_anywhere(t, two, &cut);
    expect_true(cut.refused > 0 && cut.whole > 0);
    damage_each(t, one, tarn_test_rounds(6));
    damage_each(t, two, tarn_test_rounds(2));
}

/* Else a loss of power between the two would leave a state that is fine and is refused. */
TARN_TEST(corrupt, mark_says_only_what_is_on_the_disk)
{
    struct tarn_state *state =
        open_state(tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t)));
    put(t, state, 1);
    synced[0] = '\0';
    expect_ok(tarn_state__mark(state));
    expect_str(synced, "Mm");
    tarn_state_close(state);
}
