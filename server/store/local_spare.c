/*
 * Spare files: made ahead, without a name, in folders that get many small files. A file system may look long for a free
 * inode (ext4 without a journal steps over each that was deleted in the last minutes, some 0.4 ms); a commit that
 * takes a spare one doesn't wait for that. What isn't used goes with its last descriptor, after a crash too.
 *
 * A folder is one to make spare files for once it was asked for some in a short time, and until it has been quiet for long.
 * Where there can be no such files (NFS), all of this stays idle.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "store/local.h"

#define FOLDER_COUNT_MAX ((size_t)8)
#define FILE_COUNT_MAX ((size_t)32)
#define FILE_COUNT_LOW ((size_t)12) /* a thread that is woken costs: seldom, and for many at once */
#define TAKE_COUNT_HOT 8            /* takes before a folder gets any */
#define QUIET_S 5                   /* without a take: given up */

struct spare_folder {
    dev_t device;
    ino_t inode;
    int fd; /* owned; -1: the slot is free */
    int files[FILE_COUNT_MAX];
    size_t file_count;
    size_t take_count;
    time_t taken_s; /* by the monotonic clock */
};

struct spares {
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work;
    struct spare_folder folders[FOLDER_COUNT_MAX];
    pthread_t thread;
    bool started;
    bool unsupported;
    bool stop;
};

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void give_up(struct spare_folder *folder)
{
    for (size_t i = 0; i < folder->file_count; i++)
        close(folder->files[i]);
    tarn_store__close_drop(&folder->fd);
    *folder = (struct spare_folder){.fd = -1};
}

static bool is_short(const struct spare_folder *folder, size_t enough)
{
    return folder->fd >= 0 && folder->take_count >= TAKE_COUNT_HOT && folder->file_count < enough;
}

/* Under the mutex: gives up those that are quiet. NULL: none is short of files. */
static struct spare_folder *find_short(struct spares *spares)
{
    time_t now = now_s();
    struct spare_folder *found = NULL;
    for (size_t i = 0; i < FOLDER_COUNT_MAX; i++) {
        struct spare_folder *folder = &spares->folders[i];
        if (folder->fd >= 0 && now - folder->taken_s > QUIET_S)
            give_up(folder);
        else if (is_short(folder, FILE_COUNT_LOW))
            found = folder;
    }
    return found;
}

/* Under the mutex, which it leaves while it makes them; only this thread gives folders up. */
static void fill(struct spares *spares, struct spare_folder *folder)
{
    while (is_short(folder, FILE_COUNT_MAX) && !spares->stop && !spares->unsupported) {
        int fd = folder->fd;
        pthread_mutex_unlock(&spares->mutex);
        int file = openat(fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, TARN_STORE_FILE_MODE);
        int error = errno;
        pthread_mutex_lock(&spares->mutex);
        if (file >= 0) {
            folder->files[folder->file_count++] = file;
            continue;
        }
        folder->take_count = 0; /* full, or it is no more: asked again later */
        spares->unsupported = error == EOPNOTSUPP || error == EISDIR || error == EINVAL;
    }
}

static bool has_folders(const struct spares *spares)
{
    for (size_t i = 0; i < FOLDER_COUNT_MAX; i++) {
        if (spares->folders[i].fd >= 0)
            return true;
    }
    return false;
}

static void *serve(void *arg)
{
    struct spares *spares = arg;
    pthread_mutex_lock(&spares->mutex);
    while (!spares->stop) {
        struct spare_folder *folder = find_short(spares);
        if (folder != NULL) {
            fill(spares, folder);
        } else if (has_folders(spares)) {
            struct timespec until = {.tv_sec = now_s() + QUIET_S + 1};
            pthread_cond_clockwait(&spares->work, &spares->mutex, CLOCK_MONOTONIC, &until);
        } else {
            pthread_cond_wait(&spares->work, &spares->mutex);
        }
    }
    pthread_mutex_unlock(&spares->mutex);
    return NULL;
}

/* Under the mutex. NULL: it is none of those that are known, and there are enough. */
static struct spare_folder *find_folder(struct spares *spares, int fd)
{
    struct stat st;
    struct spare_folder *free_slot = NULL;
    if (fstat(fd, &st) != 0)
        return NULL;
    for (size_t i = 0; i < FOLDER_COUNT_MAX; i++) {
        struct spare_folder *folder = &spares->folders[i];
        if (folder->fd < 0)
            free_slot = folder;
        else if (folder->inode == st.st_ino && folder->device == st.st_dev)
            return folder;
    }
    int own = free_slot == NULL ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return NULL;
    *free_slot = (struct spare_folder){.device = st.st_dev, .inode = st.st_ino, .fd = own};
    return free_slot;
}

/* Under the mutex. */
static void ask_for_more(struct spares *spares, const struct spare_folder *folder)
{
    if (!is_short(folder, FILE_COUNT_LOW))
        return;
    if (!spares->started)
        spares->started = pthread_create(&spares->thread, NULL, serve, spares) == 0;
    pthread_cond_signal(&spares->work);
}

int tarn_store__spare_take(struct spares *spares, int folder_fd)
{
    int file = -1;
    pthread_mutex_lock(&spares->mutex);
    struct spare_folder *folder = spares->unsupported ? NULL : find_folder(spares, folder_fd);
    if (folder != NULL) {
        folder->take_count++;
        folder->taken_s = now_s();
        if (folder->file_count > 0)
            file = folder->files[--folder->file_count];
        ask_for_more(spares, folder);
    }
    pthread_mutex_unlock(&spares->mutex);
    return file;
}

int tarn_store__spare_link(int file, int folder, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/* Some sandboxes allow the one and not the other. What it tries is gone before anybody could see it as an object. */
static bool can_be_named(int folder)
{
    char uuid[TARN_UUID_SIZE], name[TARN_UUID_SIZE + 16];
    TARN_OWN(tarn_store__close_drop) int file =
        openat(folder, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, TARN_STORE_FILE_MODE);
    tarn_uuid_random(uuid);
    snprintf(name, sizeof name, ".spare.%s.tmp", uuid);
    return file >= 0 && tarn_store__spare_link(file, folder, name) == 0 &&
           unlinkat(folder, name, 0) == 0;
}

struct spares *tarn_store__spares_new(int root)
{
    struct spares *spares = tarn_calloc(1, sizeof *spares);
    pthread_mutex_init(&spares->mutex, NULL);
    pthread_cond_init(&spares->work, NULL);
    for (size_t i = 0; i < FOLDER_COUNT_MAX; i++)
        spares->folders[i].fd = -1;
    spares->unsupported = !can_be_named(root);
    return spares;
}

void tarn_store__spares_free(struct spares *spares)
{
    pthread_mutex_lock(&spares->mutex);
    spares->stop = true;
    pthread_cond_signal(&spares->work);
    pthread_mutex_unlock(&spares->mutex);
    if (spares->started)
        pthread_join(spares->thread, NULL);
    for (size_t i = 0; i < FOLDER_COUNT_MAX; i++)
        give_up(&spares->folders[i]);
    pthread_mutex_destroy(&spares->mutex);
    pthread_cond_destroy(&spares->work);
    free(spares);
}
