/*
 * Promise: the local driver never leaves its root, never overwrites, tells the truth about what is
 * durable when fsync and link fail, and names the reason when the disk is full or forbidden.
 *
 * fsync, linkat and renameat2 below stand in for libc's: they fail on demand.
 */
#include "store/internal.h"
#include "store/local.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) tarn_slice_str(text)

static atomic_int fsync_fails_at; /* the nth from now; 0: none */
static atomic_bool folder_fsync_fails;
static atomic_int fsync_count;
static atomic_int fsync_meets; /* each waits until so many are at it, or 10 s; 0: none waits */
static atomic_int fsync_at_it, fsync_peak;
static int link_error, link_error_after; /* errno of linkat, without and with the link made */
static int rename_error;

static void meet_others(void)
{
    int now = ++fsync_at_it, peak = fsync_peak;
    while (now > peak && !atomic_compare_exchange_weak(&fsync_peak, &peak, now)) {}
    for (int i = 0; i < 10000 && fsync_peak < fsync_meets; i++)
        usleep(1000);
    --fsync_at_it;
}

int fsync(int fd)
{
    struct stat st;
    fsync_count++;
    if (fsync_meets > 0)
        meet_others();
    bool fails = fsync_fails_at > 0 && --fsync_fails_at == 0;
    if (fails || (folder_fsync_fails && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    if (link_error != 0) {
        errno = link_error;
        return -1;
    }
    int result = (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    if (result == 0 && link_error_after != 0) {
        errno = link_error_after;
        return -1;
    }
    return result;
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (rename_error != 0) {
        errno = rename_error;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

static void no_faults(void)
{
    fsync_fails_at = fsync_meets = fsync_peak = 0;
    folder_fsync_fails = false;
    link_error = link_error_after = rename_error = 0;
}

static struct tarn_store *open_store(const char *folder)
{
    struct tarn_store *store = NULL;
    no_faults();
    expect_ok(tarn_store__local_open(folder, &store));
    return store;
}

static struct tarn_status *put_if_absent(struct tarn_test *t, struct tarn_store *store,
                                         const char *key, const char *body, bool *created)
{
    return tarn_store_put_if_absent(store, t->op, key, S(body), created);
}

static struct tarn_status *write_whole(struct tarn_test *t, struct tarn_store *store,
                                       const char *key, struct tarn_slice body)
{
    struct tarn_store_writer *writer = NULL;
    TARN_TRY(tarn_store_writer_open(store, t->op, key, &writer));
    struct tarn_status *status = tarn_store_writer_append(writer, t->op, body);
    if (status != TARN_OK) {
        tarn_store_writer_abort(writer);
        return status;
    }
    return tarn_store_writer_finish(writer, t->op);
}

/* How many entries a folder has, hidden ones too. */
static int entry_count(const char *folder)
{
    int count = 0;
    DIR *entries = opendir(folder);
    expect_not_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(entries);
    return count;
}

static void expect_object(struct tarn_test *t, struct tarn_store *store, const char *key,
                          const char *body)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_ok(tarn_store_get(store, t->op, key, &got));
    expect_slice(tarn_buf_slice(&got), body);
}

/* ---- durability ---- */

TARN_TEST(local, syncs_file_folder_and_each_new_folder)
{
    bool created;
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(tarn_test_dir(t));
    fsync_count = 0;
    expect_ok(put_if_absent(t, store, "a/b/f", "x", &created));
    expect_int(fsync_count, 4); /* root (for a), a (for b), f, b (for f) */
    fsync_count = 0;
    expect_ok(put_if_absent(t, store, "a/b/g", "x", &created));
    expect_int(fsync_count, 2);
    fsync_count = 0;
    expect_ok(put_if_absent(t, store, "a/b/g", "y", &created));
    expect_false(created);
    expect_int(fsync_count, 2); /* that answer must last too, whoever wrote it */
    fsync_count = 0;
    expect_ok(write_whole(t, store, "a/b/h", S("x")));
    expect_int(fsync_count, 2);
    fsync_count = 0;
    expect_ok(tarn_store_put(store, t->op, "a/b/h", S("y")));
    expect_int(fsync_count, 2);
    fsync_count = 0;
    expect_ok(tarn_store_remove(store, t->op, "a/b/h"));
    expect_int(fsync_count, 1);
    fsync_count = 0;
    expect_ok(tarn_store_put_hint(store, t->op, "a/b/h", S("y")));
    expect_int(fsync_count, 0);
}

static ino_t inode_of(const char *path)
{
    struct stat st;
    expect_int(stat(path, &st), 0);
    return st.st_ino;
}

/* Engines believe a hint that names no next snapshot: who reads "1" while "10" is written over "9", or "29" while "20" is
 * over "19", would take that for the newest. */
TARN_TEST(local, a_hint_is_written_in_its_place_where_one_digit_changes)
{
    static const struct {
        const char *text;
        bool in_place;
    } steps[] = {{"8", false},        {"9", true},    {"10", false}, {"11", true},
                 {"11", true},        {"19", true},   {"20", false}, {"30", true},
                 {"99", false},       {"100", false}, {"3", false},  {"1234567890", false},
                 {"1234567891", true}};
    const char *root = tarn_test_dir(t);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(root);
    const char *path = tarn_arena_printf(t->arena, "%s/s/LATEST", root);
    expect_ok(tarn_store_put(store, t->op, "s/LATEST", S("")));
    for (size_t i = 0; i < TARN_COUNT_OF(steps); i++) {
        int before = open(path, O_RDONLY); /* so that its inode isn't given to the next one */
        ino_t inode = inode_of(path);
        expect_ok(tarn_store_put_hint(store, t->op, "s/LATEST", S(steps[i].text)));
        expect_object(t, store, "s/LATEST", steps[i].text);
        expect_int(inode_of(path) == inode, steps[i].in_place);
        close(before);
    }
    expect_int(entry_count(tarn_arena_printf(t->arena, "%s/s", root)), 1);
}

/* ---- spare files ---- */

/* Begins drafts in the folder until one comes of a spare file; false: this file system has none. */
static bool begin_spare(struct local *local, const char *key, bool hidden, struct draft *draft)
{
    int probe = openat(local->root, ".", O_WRONLY | O_TMPFILE, 0600);
    if (probe < 0)
        return false;
    close(probe);
    for (int i = 0; i < 10000; i++) {
        struct stat st;
        expect_ok(tarn_store__draft_begin_small(draft, local, key, false));
        bool is_spare = draft->spare;
        expect_int(fstat(draft->file, &st), 0);
        expect_int(st.st_nlink, is_spare ? 0 : 1);
        if (is_spare && !hidden)
            return true;
        tarn_store__draft_fini(draft);
        if (is_spare) { /* the maker has begun: soon one is there for this too */
            usleep(100000);
            expect_ok(tarn_store__draft_begin_small(draft, local, key, true));
            return true;
        }
        usleep(1000);
    }
    return false;
}

TARN_TEST(local, a_spare_file_gets_its_name_and_leaves_nothing)
{
    bool created;
    struct draft draft;
    const char *root = tarn_test_dir(t), *folder = tarn_arena_printf(t->arena, "%s/m", root);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(root);
    if (!begin_spare(store->self, "m/a", false, &draft))
        tarn_test_skip(t, "no files without a name here");
    expect_int(entry_count(folder), 0);
    expect_ok(tarn_store__draft_write(&draft, S("body")));
    expect_ok(tarn_store__draft_publish(&draft));
    tarn_store__draft_fini(&draft);
    expect_object(t, store, "m/a", "body");
    expect_int(entry_count(folder), 1);

    expect_true(begin_spare(store->self, "m/a", false, &draft)); /* never over another */
    expect_ok(tarn_store__draft_write(&draft, S("other")));
    expect_status(tarn_store__draft_publish(&draft), TARN_OBJECT_EXISTS, "m/a");
    tarn_store__draft_fini(&draft);
    expect_object(t, store, "m/a", "body");

    expect_true(begin_spare(store->self, "m/b", true, &draft));
    expect_ok(tarn_store__draft_write(&draft, S("claimed")));
    expect_int(entry_count(folder),
               2); /* hidden: a file with a name, that a crash can't take the links of */
    expect_ok(tarn_store__draft_claim(&draft, &created));
    expect_true(created);
    tarn_store__draft_fini(&draft);
    expect_object(t, store, "m/b", "claimed");
    expect_int(entry_count(folder), 2);
}

TARN_TEST(local, a_spare_files_folder_may_be_pruned_meanwhile)
{
    struct draft draft;
    const char *root = tarn_test_dir(t);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(root);
    if (!begin_spare(store->self, "m/deep/a", false, &draft))
        tarn_test_skip(t, "no files without a name here");
    expect_int(rmdir(tarn_arena_printf(t->arena, "%s/m/deep", root)), 0);
    expect_int(rmdir(tarn_arena_printf(t->arena, "%s/m", root)), 0);
    expect_ok(tarn_store__draft_write(&draft, S("body")));
    expect_ok(tarn_store__draft_publish(&draft));
    tarn_store__draft_fini(&draft);
    expect_object(t, store, "m/deep/a", "body");
}

TARN_TEST(local, spare_files_go_with_the_store)
{
    struct draft draft;
    const char *root = tarn_test_dir(t);
    int before = entry_count("/proc/self/fd");
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(root);
    bool is_spare = begin_spare(store->self, "m/a", false, &draft);
    if (is_spare) {
        expect_true(entry_count("/proc/self/fd") > before);
        tarn_store__draft_fini(&draft);
    }
    tarn_store_drop(&store);
    store = NULL;
    expect_int(entry_count("/proc/self/fd"), before);
    if (!is_spare)
        tarn_test_skip(t, "no files without a name here");
}

/* ---- many at once ---- */

TARN_TEST(local, put_many_syncs_each_file_and_folder_side_by_side)
{
    enum { COUNT = 12, TOGETHER = 4 };
    struct tarn_new_object objects[COUNT];
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(tarn_test_dir(t));
    expect_ok(tarn_store_put(store, t->op, "a/x", S("x"))); /* the folders are there */
    expect_ok(tarn_store_put(store, t->op, "b/x", S("x")));
    for (int i = 0; i < COUNT; i++)
        objects[i] = (struct tarn_new_object){
            .key = tarn_arena_printf(t->arena, "%s/%d", i < 9 ? "a" : "b", i), .body = S("bytes")};
    fsync_count = 0;
    fsync_meets = TOGETHER;
    expect_ok(tarn_store_put_many(store, t->op, objects, COUNT));
    expect_true(fsync_peak >= TOGETHER);
    no_faults();
    expect_int(fsync_count, COUNT + 2);
}

TARN_TEST(local, remove_many_syncs_each_folder_once)
{
    static const char *const keys[] = {"a/1", "a/2", "a/3", "b/1", "b/2", "no/1"};
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(tarn_test_dir(t));
    for (int i = 0; i < 5; i++)
        expect_ok(tarn_store_put(store, t->op, keys[i], S("x")));
    fsync_count = 0;
    expect_ok(tarn_store_remove_many(store, t->op, keys, TARN_COUNT_OF(keys)));
    expect_int(fsync_count, 2);
    expect_ok(tarn_store_put(store, t->op, keys[0], S("x")));
    fsync_fails_at = 1;
    expect_status(tarn_store_remove_many(store, t->op, keys, 1), TARN_IO_ERROR, "sync the folder");
    expect_status(tarn_store_remove_many(store, t->op, keys, 1), TARN_IO_ERROR, "sync of a folder");
}

/* Each sync in turn: nothing that was named stays, and no later success is taken for its. */
TARN_TEST(local, put_many_takes_back_what_could_not_be_synced)
{
    for (int at = 1; at <= 4; at++) {
        const char *folder = tarn_test_dir(t);
        struct tarn_new_object objects[] = {{.key = "a", .body = S("1")},
                                            {.key = "b", .body = S("2")},
                                            {.key = "c", .body = S("3")}};
        TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
        fsync_fails_at = at;
        expect_status(tarn_store_put_many(store, t->op, objects, 3), TARN_IO_ERROR, "sync");
        expect_int(entry_count(folder), 0);
    }
}

TARN_TEST(local, after_a_failed_sync_of_a_folder_nothing_is_promised)
{
    bool created = true;
    struct tarn_store_writer *writer = NULL, *begun = NULL;
    struct tarn_new_object object = {.key = "m", .body = S("1")};
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(tarn_test_dir(t));
    expect_ok(tarn_store_put(store, t->op, "d/f", S("x")));
    expect_ok(tarn_store_writer_open(store, t->op, "begun", &begun));
    folder_fsync_fails = true;
    expect_status(put_if_absent(t, store, "s", "mine", &created), TARN_OUTCOME_UNKNOWN, "'s'");
    no_faults(); /* the next sync would succeed, and say nothing about the one before */
    expect_status(put_if_absent(t, store, "s", "mine", &created), TARN_OUTCOME_UNKNOWN,
                  "sync of a folder");
    expect_false(created);
    expect_status(put_if_absent(t, store, "s2", "x", &created), TARN_IO_ERROR, "s2");
    expect_status(tarn_store_put(store, t->op, "p", S("x")), TARN_IO_ERROR, "'p'");
    expect_status(tarn_store_put_many(store, t->op, &object, 1), TARN_IO_ERROR, "'m'");
    expect_status(tarn_store_remove(store, t->op, "d/f"), TARN_IO_ERROR, "'d/f'");
    expect_status(tarn_store_move_folder(store, t->op, "d", "e"), TARN_IO_ERROR, "'d'");
    expect_status(tarn_store_writer_open(store, t->op, "w", &writer), TARN_IO_ERROR, "'w'");
    expect_status(tarn_store_writer_finish(begun, t->op), TARN_IO_ERROR, "'begun'");
    expect_object(t, store, "d/f", "x"); /* reading goes on, but for what is in doubt: */
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    bool found;
    expect_status(tarn_store_get(store, t->op, "s", &got), TARN_IO_ERROR, "may not last");
    expect_status(tarn_store_find(store, t->op, "s", &found, &got), TARN_IO_ERROR, "may not last");
    expect_status(tarn_store_stat(store, t->op, "s", &found, NULL), TARN_IO_ERROR, "may not last");
}

/* Another engine may have put it there and never syncs. */
TARN_TEST(local, what_somebody_else_put_is_made_durable_before_it_is_believed)
{
    bool created = true;
    const char *folder = tarn_test_dir(t);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    tarn_test_write_file(tarn_arena_printf(t->arena, "%s/s", folder), S("theirs"));
    fsync_fails_at = 1;
    expect_status(put_if_absent(t, store, "s", "mine", &created), TARN_OUTCOME_UNKNOWN, "sync");
    expect_false(created);
    fsync_count = 0;
    expect_ok(put_if_absent(t, store, "s", "mine", &created));
    expect_false(created);
    expect_int(fsync_count, 2);
}

TARN_TEST(local, a_failed_sync_of_the_file_publishes_nothing)
{
    bool created = true;
    const char *folder = tarn_test_dir(t);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    fsync_fails_at = 1;
    expect_status(put_if_absent(t, store, "f", "x", &created), TARN_IO_ERROR, "sync");
    expect_false(created);
    fsync_fails_at = 1;
    expect_status(write_whole(t, store, "f", S("x")), TARN_IO_ERROR, "sync");
    fsync_fails_at = 1;
    expect_status(tarn_store_put(store, t->op, "f", S("x")), TARN_IO_ERROR, "sync");
    expect_int(entry_count(folder), 0);
}

TARN_TEST(local, a_failed_sync_of_the_folder_leaves_the_outcome_unknown)
{
    bool created = true;
    const char *folder = tarn_test_dir(t);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    fsync_fails_at = 2;
    expect_status(put_if_absent(t, store, "f", "x", &created), TARN_OUTCOME_UNKNOWN, "'f'");
    expect_false(created);
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_status(tarn_store_get(store, t->op, "f", &got), TARN_IO_ERROR, "may not last");
    TARN_OWN(tarn_store_drop) struct tarn_store *anew = open_store(folder);
    fsync_fails_at = 2;
    expect_status(write_whole(t, anew, "g", S("x")), TARN_IO_ERROR, "sync the folder");
    expect_int(entry_count(folder), 1); /* a data file nobody knows is taken back */
}

TARN_TEST(local, a_failed_sync_of_a_new_folder_publishes_nothing)
{
    bool created = true;
    const char *folder = tarn_test_dir(t);
    for (int at = 1; at <= 2; at++) {
        TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
        fsync_fails_at = at;
        expect_status(
            put_if_absent(t, store, tarn_arena_printf(t->arena, "a%d/b/f", at), "x", &created),
            TARN_IO_ERROR, "sync the folder above");
        expect_false(created);
    }
}

TARN_TEST(local, link_errors_are_told_apart)
{
    bool created = true;
    const char *folder = tarn_test_dir(t);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    link_error = ENOSPC;
    expect_status(put_if_absent(t, store, "f", "x", &created), TARN_DISK_FULL, "'f'");
    link_error = EDQUOT;
    expect_status(put_if_absent(t, store, "f", "x", &created), TARN_DISK_FULL, "'f'");
    link_error = EROFS;
    expect_status(put_if_absent(t, store, "f", "x", &created), TARN_STORE_DENIED, "'f'");
    link_error = EIO; /* says nothing about whether it happened */
    expect_status(put_if_absent(t, store, "f", "x", &created), TARN_OUTCOME_UNKNOWN, "'f'");
    expect_int(entry_count(folder), 0);
    no_faults();
    link_error_after = EIO; /* a lost reply, and the link is there: ours */
    expect_ok(put_if_absent(t, store, "f", "x", &created));
    expect_true(created);
    link_error_after = EEXIST; /* the repetition of a lost reply */
    expect_ok(put_if_absent(t, store, "g", "x", &created));
    expect_true(created);
    no_faults();
    link_error = EPERM; /* a file system without hard links */
    expect_ok(put_if_absent(t, store, "h", "x", &created));
    expect_true(created);
    expect_int(entry_count(folder), 3);
}

/* Links every hidden file of the folder `from` into `to`, as a backup does that copies by links. */
static void copy_by_links(const char *from, const char *to)
{
    int source = open(from, O_RDONLY | O_DIRECTORY), target;
    expect_int(mkdir(to, 0755), 0);
    target = open(to, O_RDONLY | O_DIRECTORY);
    DIR *entries = opendir(from);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] == '.' && strlen(entry->d_name) > 2)
            expect_int(linkat(source, entry->d_name, target, entry->d_name, 0), 0);
    closedir(entries);
    close(source);
    close(target);
}

/* A second name of a file that waits for its put doesn't make another's object ours. */
TARN_TEST(local, a_foreseen_file_that_was_linked_by_a_backup_is_not_taken_for_put)
{
    bool created;
    const char *root = tarn_test_dir(t);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(root);
    struct tarn_new_object foreseen = {.key = "s/1", .body = S("ours"), .foreseen = true};
    expect_ok(tarn_store_put_many(store, t->op, &foreseen, 1));
    copy_by_links(tarn_arena_printf(t->arena, "%s/s", root),
                  tarn_arena_printf(t->arena, "%s/backup", root));
    expect_int(entry_count(tarn_arena_printf(t->arena, "%s/backup", root)), 1);
    expect_ok(tarn_store_put(store, t->op, "s/1", S("somebody's")));
    expect_ok(put_if_absent(t, store, "s/1", "ours", &created));
    expect_false(created);
    expect_object(t, store, "s/1", "somebody's");
}

TARN_TEST(local, writers_do_without_rename_noreplace)
{
    const char *folder = tarn_test_dir(t);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    rename_error = EINVAL;
    expect_ok(write_whole(t, store, "f", S("x")));
    expect_status(write_whole(t, store, "f", S("y")), TARN_OBJECT_EXISTS, "'f'");
    expect_object(t, store, "f", "x");
    expect_int(entry_count(folder), 1);
    expect_ok(write_whole(t, store, "a/f", S("x")));
    expect_ok(tarn_store_move_folder(store, t->op, "a", "b"));
    expect_object(t, store, "b/f", "x");
}

/* ---- the root ---- */

static void link_to(const char *folder, const char *name, const char *target)
{
    TARN_OWN(tarn_free_drop) char *path = tarn_format("%s/%s", folder, name);
    expect_int(symlink(target, path), 0);
}

static void expect_outside(struct tarn_test *t, struct tarn_store *store, const char *key,
                           enum tarn_reason reading, enum tarn_reason writing)
{
    bool created;
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_status(tarn_store_get(store, t->op, key, &got), reading, key);
    expect_status(put_if_absent(t, store, key, "x", &created), writing, key);
    expect_status(tarn_store_put(store, t->op, key, S("x")), writing, key);
    expect_status(write_whole(t, store, key, S("x")), writing, key);
}

static void try_to_leave(struct tarn_test *t, bool openat2)
{
    bool created;
    const char *outside = tarn_test_dir(t), *folder = tarn_test_dir(t);
    tarn_test_write_file(tarn_arena_printf(t->arena, "%s/secret", outside), S("secret"));
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    if (!openat2)
        tarn_store__local_without_openat2(store);
    link_to(folder, "absolute", outside);
    link_to(folder, "up", "..");
    link_to(folder, "file", tarn_arena_printf(t->arena, "%s/secret", outside));
    link_to(folder, "gone", "nowhere");
    link_to(folder, "loop", "loop");
    enum tarn_reason reading = openat2 ? TARN_PATH_INVALID : TARN_OBJECT_NOT_FOUND;
    expect_outside(t, store, "absolute/secret", reading, TARN_PATH_INVALID);
    expect_outside(t, store, "up/x", reading, TARN_PATH_INVALID);
    expect_int(entry_count(outside), 1);

    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    expect_status(tarn_store_get(store, t->op, "file", &got), TARN_PATH_INVALID, "file");
    expect_ok(put_if_absent(t, store, "file", "x", &created)); /* the name is taken */
    expect_false(created);
    expect_ok(tarn_store_put(store, t->op, "file", S("y"))); /* replaces the link, not its target */
    expect_object(t, store, "file", "y");
    tarn_test_read_file(tarn_arena_printf(t->arena, "%s/secret", outside), &got);
    expect_slice(tarn_buf_slice(&got), "secret");

    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(store, t->op, "", true, &objects, &count));
    expect_int(count, 1); /* nothing from outside, no circles */
    expect_ok(tarn_store_prune(store, t->op, ""));
    expect_int(entry_count(outside), 1);
}

TARN_TEST(local, links_do_not_lead_out)
{
    try_to_leave(t, true);
}

TARN_TEST(local, links_do_not_lead_out_without_openat2)
{
    try_to_leave(t, false);
}

TARN_TEST(local, links_inside_are_followed)
{
    const char *folder = tarn_test_dir(t);
    size_t count;
    struct tarn_object *objects;
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    expect_ok(tarn_store_put(store, t->op, "real/f", S("x")));
    link_to(folder, "alias", "real");
    link_to(folder, "g", "real/f");
    expect_object(t, store, "alias/f", "x");
    expect_ok(tarn_store_put(store, t->op, "alias/h", S("yy")));
    expect_object(t, store, "real/h", "yy");
    expect_ok(tarn_store_list(store, t->op, "", false, &objects, &count));
    expect_int(count, 3);
    expect_true(objects[0].is_folder); /* alias */
    expect_slice(objects[1].key, "g");
    expect_int(objects[1].size, 1);
    expect_ok(tarn_store_list(store, t->op, "", true, &objects, &count));
    expect_int(count, 3); /* g, real/f, real/h: each file once by each name of its own */
}

TARN_TEST(local, special_files_are_no_objects)
{
    bool found;
    size_t count;
    struct tarn_object *objects;
    const char *folder = tarn_test_dir(t);
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    expect_int(mkfifo(tarn_arena_printf(t->arena, "%s/pipe", folder), 0600), 0);
    expect_int(mkdir(tarn_arena_printf(t->arena, "%s/bad\xff", folder), 0700), 0);
    expect_status(tarn_store_get(store, t->op, "pipe", &got), TARN_OBJECT_NOT_FOUND, "special");
    expect_ok(tarn_store_stat(store, t->op, "pipe", &found, NULL));
    expect_false(found);
    expect_ok(tarn_store_list(store, t->op, "", true, &objects, &count));
    expect_int(count, 0);
}

TARN_TEST(local, what_is_too_large_is_not_read)
{
    const char *folder = tarn_test_dir(t);
    TARN_OWN(tarn_buf_drop) struct tarn_buf got = {0};
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    const char *path = tarn_arena_printf(t->arena, "%s/big", folder);
    tarn_test_write_file(path, S(""));
    expect_int(truncate(path, (off_t)TARN_STORE_GET_MAX + 1), 0); /* a hole */
    expect_status(tarn_store_get(store, t->op, "big", &got), TARN_TOO_LARGE, "268435457");
    expect_int(got.capacity, 0);
}

TARN_TEST(local, survives_a_folder_pruned_under_it)
{
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(tarn_test_dir(t));
    for (int i = 0; i < 20; i++) {
        expect_ok(write_whole(t, store, "a/b/c/f", S("x")));
        expect_ok(tarn_store_remove(store, t->op, "a/b/c/f"));
        expect_ok(tarn_store_prune(store, t->op, "a"));
    }
}

TARN_TEST(local, root_must_be_a_folder)
{
    struct tarn_store *store = NULL;
    const char *path = tarn_arena_printf(t->arena, "%s/f", tarn_test_dir(t));
    tarn_test_write_file(path, S("x"));
    expect_status(tarn_store__local_open(path, &store), TARN_PATH_INVALID, path);
    expect_status(tarn_store__local_open(tarn_arena_printf(t->arena, "%s/below", path), &store),
                  TARN_PATH_INVALID, path);
    expect_status(tarn_store__local_open("/proc/no/such", &store), TARN_OBJECT_NOT_FOUND, "/proc");
}

/* ---- two daemons ---- */

#define DAEMONS 4
#define SHARED_ROUNDS 50

/* Each process opens the warehouse itself and writes down what it won into a pipe. */
static void claim_all(const char *folder, int id, int out)
{
    struct tarn_store *store = NULL;
    char won[SHARED_ROUNDS] = {0};
    struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_status *status = tarn_store__local_open(folder, &store);
    for (int i = 0; i < SHARED_ROUNDS && status == TARN_OK; i++) {
        bool created = false;
        char key[64], body[16];
        snprintf(key, sizeof key, "t/snapshot/snapshot-%d", i + 1);
        snprintf(body, sizeof body, "%d", id);
        status = tarn_store_put_if_absent(store, &op, key, S(body), &created);
        won[i] = created;
    }
    bool wrote = status == TARN_OK && write(out, won, sizeof won) == (ssize_t)sizeof won;
    _exit(wrote ? 0 : 1);
}

TARN_TEST(local, between_processes_link_decides)
{
    int pipes[DAEMONS][2], win_count[SHARED_ROUNDS] = {0}, winner[SHARED_ROUNDS];
    const char *folder = tarn_test_dir(t);
    for (int d = 0; d < DAEMONS; d++) {
        expect_int(pipe(pipes[d]), 0);
        if (fork() == 0)
            claim_all(folder, d, pipes[d][1]);
        close(pipes[d][1]);
    }
    for (int d = 0; d < DAEMONS; d++) {
        char won[SHARED_ROUNDS];
        expect_int(read(pipes[d][0], won, sizeof won), SHARED_ROUNDS);
        close(pipes[d][0]);
        wait(NULL);
        for (int i = 0; i < SHARED_ROUNDS; i++) {
            win_count[i] += won[i];
            winner[i] = won[i] ? d : winner[i];
        }
    }
    TARN_OWN(tarn_store_drop) struct tarn_store *store = open_store(folder);
    for (int i = 0; i < SHARED_ROUNDS; i++) {
        expect_int(win_count[i], 1);
        expect_object(t, store, tarn_arena_printf(t->arena, "t/snapshot/snapshot-%d", i + 1),
                      tarn_arena_printf(t->arena, "%d", winner[i]));
    }
}

/* ---- the disk says no ---- */

/* Runs itself again as another user: root is allowed everything. */
TARN_TEST(local, forbidden_is_store_denied)
{
    if (geteuid() != 0)
        tarn_test_skip(t, "needs root, to become somebody else");
    const char *folder = tarn_test_dir(t);
    chmod(folder, 0755);
    tarn_test_write_file(tarn_arena_printf(t->arena, "%s/secret", folder), S("x"));
    chmod(tarn_arena_printf(t->arena, "%s/secret", folder), 0600);
    pid_t child = fork();
    if (child == 0) {
        bool created;
        struct tarn_store *store = NULL;
        struct tarn_buf got = {0};
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(99);
        if (tarn_store__local_open(folder, &store) != TARN_OK)
            _exit(98); /* the folders above the test's are closed to others */
        struct tarn_status *results[] = {
            tarn_store_get(store, t->op, "secret", &got),
            tarn_store_put(store, t->op, "f", S("x")),
            tarn_store_put_if_absent(store, t->op, "f", S("x"), &created),
            tarn_store_put_if_absent(store, t->op, "a/f", S("x"), &created),
            write_whole(t, store, "f", S("x")),
            tarn_store_remove(store, t->op, "secret"),
        };
        for (size_t i = 0; i < TARN_COUNT_OF(results); i++) {
            if (tarn_status_reason(results[i]) != TARN_STORE_DENIED)
                _exit(1 + (int)i);
        }
        _exit(0);
    }
    int wait_status = -1;
    expect_int(waitpid(child, &wait_status, 0), child);
    expect_true(WIFEXITED(wait_status));
    if (WEXITSTATUS(wait_status) >= 98)
        tarn_test_skip(t, "another user can't be had or can't reach %s", folder);
    expect_int(WEXITSTATUS(wait_status), 0);
}

static const char *small_disk(struct tarn_test *t, unsigned long flags)
{
    const char *folder = tarn_test_dir(t);
    if (geteuid() != 0 || mount("none", folder, "tmpfs", flags, "size=256k") != 0)
        tarn_test_skip(t, "a small disk can't be mounted here");
    return folder;
}

TARN_TEST(local, a_full_disk_is_disk_full_and_heals)
{
    bool created = true;
    const char *folder = small_disk(t, 0);
    struct tarn_store *store = open_store(folder);
    struct tarn_slice big = tarn_test_random_bytes(t, 1 << 20);
    /* Results first and the unmount, then the expectations: they end the test. */
    struct tarn_status *put = tarn_store_put(store, t->op, "f", big);
    struct tarn_status *claim = tarn_store_put_if_absent(store, t->op, "s", big, &created);
    struct tarn_status *written = write_whole(t, store, "w", big);
    int left = entry_count(folder);
    struct tarn_status *healed = tarn_store_put(store, t->op, "f", S("small"));
    tarn_store_unref(store);
    umount2(folder, MNT_DETACH);
    expect_status(put, TARN_DISK_FULL, "'f'");
    expect_status(claim, TARN_DISK_FULL, "'s'");
    expect_status(written, TARN_DISK_FULL, "'w'");
    expect_false(created);
    expect_int(left, 0);
    expect_ok(healed);
}

TARN_TEST(local, a_read_only_disk_is_store_denied)
{
    bool created = true;
    const char *folder = small_disk(t, 0);
    struct tarn_store *store = open_store(folder);
    struct tarn_status *before = tarn_store_put(store, t->op, "f", S("x"));
    tarn_store_unref(store);
    int remounted = mount("none", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL);
    store = open_store(folder);
    struct tarn_buf got = {0};
    struct tarn_status *read = tarn_store_get(store, t->op, "f", &got);
    struct tarn_status *put = tarn_store_put(store, t->op, "f", S("y"));
    struct tarn_status *claim = put_if_absent(t, store, "g/h", "y", &created);
    struct tarn_status *removed = tarn_store_remove(store, t->op, "f");
    tarn_store_unref(store);
    umount2(folder, MNT_DETACH);
    tarn_buf_drop(&got);
    expect_int(remounted, 0);
    expect_ok(before);
    expect_ok(read);
    expect_status(put, TARN_STORE_DENIED, "'f'");
    expect_status(claim, TARN_STORE_DENIED, "'g'");
    expect_status(removed, TARN_STORE_DENIED, "'f'");
}
