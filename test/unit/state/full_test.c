/*
 * Promise: a state whose disk is full says DISK_FULL and takes no write, whatever it was about to write; it is read as before,
 * has all that it acknowledged, and goes on by itself when there is room.
 */
#include "state/state.h"

#include "test.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define S(text) tarn_slice_str(text)

static struct tarn_status *write_one(struct tarn_test *t, struct tarn_state *state, int i,
                                     size_t size)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_state_batch_put(batch, state, TARN_FAMILY_LIVE,
                         tarn_slice_str(tarn_arena_printf(t->arena, "full%06d", i)),
                         tarn_test_random_bytes(t, size));
    return tarn_state_write(state, batch, true);
}

static int count_of(struct tarn_state *state)
{
    struct tarn_slice key, value;
    int count = 0;
    struct tarn_state_iterator *it = tarn_state_iterator_new(state, TARN_FAMILY_LIVE, S("full"));
    while (tarn_state_iterator_next(it, &key, &value))
        count++;
    expect_ok(tarn_state_iterator_error(it));
    tarn_state_iterator_free(it);
    return count;
}

static void mount_small(struct tarn_test *t, const char *folder)
{
    if (geteuid() != 0 || mount("none", folder, "tmpfs", 0, "size=32m") != 0)
        tarn_test_skip(t, "a small disk can't be mounted here");
}

/* So that `left` bytes are free, in pages of 4 KiB. */
static const char *fill_up(struct tarn_test *t, const char *folder, size_t left)
{
    const char *path = tarn_arena_printf(t->arena, "%s/filler", folder);
    struct statvfs disk;
    expect_int(statvfs(folder, &disk), 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    expect_int(posix_fallocate(fd, 0, (off_t)(disk.f_bavail * disk.f_frsize - left)), 0);
    close(fd);
    return path;
}

static void expect_full(struct tarn_test *t, struct tarn_state *state, const char *folder, int i)
{
    expect_status(write_one(t, state, i, 10), TARN_DISK_FULL, folder);
}

/* A state with `before` keys on a disk with so much left: written until it is full, and again when it isn't. */
static void fill_and_go_on(struct tarn_test *t, int before, size_t left, size_t value_size)
{
    const char *folder = tarn_test_dir(t);
    struct tarn_status *s = TARN_OK;
    struct stat log;
    int count = 0;
    bool fresh;
    struct tarn_state *state = NULL;
    mount_small(t, folder);
    expect_ok(tarn_state_open(folder, &fresh, &state));
    for (; count < before; count++)
        expect_ok(write_one(t, state, count, 100));
    const char *filler = fill_up(t, folder, left);
    while (count < 100000 && (s = write_one(t, state, count, value_size)) == TARN_OK)
        count++;
    expect_status(s, TARN_DISK_FULL, folder);
    expect_full(t, state, folder, count);
    expect_status(tarn_state_problem(state), TARN_DISK_FULL, "until there is room");
    expect_int(count_of(state), count); /* reads go on */
    expect_int(stat(tarn_arena_printf(t->arena, "%s/LOG", folder), &log), 0);
    expect_int(log.st_size, 0); /* a line that it can't write ends the process with the next one */
    expect_int(unlink(filler), 0);
    struct tarn_state_view *view = tarn_state_view_new(state);
    expect_full(t, state, folder, count); /* not under who reads */
    tarn_state_view_free(view);
    expect_ok(write_one(t, state, count, value_size));
    expect_ok(tarn_state_problem(state));
    expect_int(count_of(state), count + 1);
    expect_ok(write_one(t, state, count + 1, value_size));
    tarn_state_close(state);
    expect_ok(tarn_state_open(folder, &fresh, &state));
    expect_int(count_of(state), count + 2);
    tarn_state_close(state);
    umount2(folder, MNT_DETACH);
}

TARN_TEST(state, a_full_disk_is_disk_full)
{
    fill_and_go_on(t, 3, 3 << 20, 100000);
}

TARN_TEST(state, a_full_disk_is_left_behind_wherever_it_was_met)
{
    for (size_t left = 0; left < 96 << 10; left += 12 << 10) { /* in its log, first of all keys … */
        fill_and_go_on(t, 0, left, 30000);
        fill_and_go_on(t, 100, left, 3000);
    }
    for (size_t left = 5 << 20; left < 8 << 20;
         left += 700 << 10) /* … or in a table, or its MANIFEST */
        fill_and_go_on(t, 10, left, 50000);
}

TARN_TEST(state, on_a_full_disk_it_opens_or_says_so)
{
    const char *folder = tarn_test_dir(t);
    bool fresh;
    struct tarn_state *state = NULL;
    mount_small(t, folder);
    for (size_t left = 0; left < 512 << 10; left += 28 << 10) {
        expect_ok(tarn_state_open(folder, &fresh, &state));
        expect_ok(write_one(t, state, 1, 100000));
        tarn_state_close(state);
        const char *filler = fill_up(t, folder, left);
        struct tarn_status *s = tarn_state_open(folder, &fresh, &state);
        if (s == TARN_OK)
            tarn_state_close(state);
        else
            expect_status(s, TARN_DISK_FULL, folder);
        expect_int(unlink(filler), 0);
    }
    expect_ok(tarn_state_open(folder, &fresh, &state));
    expect_int(count_of(state), 1);
    tarn_state_close(state);
    umount2(folder, MNT_DETACH);
}

TARN_TEST(state, a_load_onto_a_full_disk_leaves_nothing)
{
    const char *folder = tarn_test_dir(t);
    bool fresh;
    struct tarn_state *state = NULL;
    mount_small(t, folder);
    expect_ok(tarn_state_open(folder, &fresh, &state));
    for (size_t left = 0; left < 400 << 10; left += 36 << 10) {
        const char *filler = fill_up(t, folder, left);
        struct tarn_state_loader *loader;
        struct tarn_status *s = tarn_state_loader_new(state, TARN_FAMILY_LIVE, &loader);
        tarn_state_load_begin(state);
        for (int i = 0; s == TARN_OK && i < 100; i++)
            s = tarn_state_loader_put(loader,
                                      tarn_slice_str(tarn_arena_printf(t->arena, "full%06d", i)),
                                      tarn_test_random_bytes(t, 5000));
        if (s == TARN_OK)
            s = tarn_state_loader_finish(loader);
        expect_status(s, TARN_DISK_FULL, folder);
        tarn_state_loader_free(loader);
        tarn_state_load_end(state);
        expect_int(unlink(filler), 0);
        expect_int(count_of(state), 0);
    }
    expect_ok(write_one(t, state, 1, 100000));
    tarn_state_close(state);
    umount2(folder, MNT_DETACH);
}
