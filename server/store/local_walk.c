/*
 * Lists and prunes folders of the local driver. One folder is open at a time, whatever the
 * depth, and links to folders are shown but not entered, so that no walk goes in circles.
 */
#include "store/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* A link is what it leads to, as long as that is inside the store. */
static bool look_through(const struct local *local, const char *key, struct stat *st)
{
    TARN_OWN(tarn_store__close_drop) int fd = tarn_store__local_open_at(local, key, O_PATH);
    return fd >= 0 && fstat(fd, st) == 0;
}

/* Adds one entry; what is no object (pipes, names that can't be keys, gone by now) is left out. */
static struct tarn_status *visit(struct tarn_walk *walk, int folder, const char *prefix,
                                 const char *name)
{
    struct stat st;
    if (!tarn_utf8_valid(tarn_slice_str(name)))
        return TARN_OK;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return tarn_store__local_is_absent(errno)
                   ? TARN_OK
                   : tarn_store__local_error(errno, "look into", prefix);
    const char *key = tarn_store__walk_key(walk, prefix, tarn_slice_str(name));
    bool is_link = S_ISLNK(st.st_mode);
    if (is_link && !look_through(walk->driver, key, &st))
        return TARN_OK;
    bool is_folder = S_ISDIR(st.st_mode);
    if (!(is_folder || S_ISREG(st.st_mode)) || (is_folder && is_link && walk->recursive))
        return TARN_OK;
    struct tarn_object object = {.key = tarn_slice_str(key),
                                 .size = st.st_size,
                                 .mtime_ms = tarn_store__mtime_ms(&st),
                                 .is_folder = is_folder};
    return tarn_store__walk_add(walk, prefix, &object);
}

static struct tarn_status *visit_all(struct tarn_walk *walk, DIR *folder, const char *prefix)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL)
            return errno == 0 ? TARN_OK : tarn_store__local_error(errno, "list", prefix);
        if (!is_dot(entry->d_name))
            TARN_TRY(visit(walk, dirfd(folder), prefix, entry->d_name));
    }
}

static struct tarn_status *list_folder(struct tarn_walk *walk, const char *prefix)
{
    int fd = tarn_store__local_open_at(walk->driver, prefix, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return tarn_store__local_is_absent(errno) ? TARN_OK
                                                  : tarn_store__local_error(errno, "list", prefix);
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        int error = errno;
        close(fd);
        return tarn_store__local_error(error, "list", prefix);
    }
    struct tarn_status *status = visit_all(walk, folder, prefix);
    closedir(folder);
    return status;
}

struct tarn_status *tarn_store__local_list(void *self, struct tarn_op *op, const char *prefix,
                                           bool recursive, struct tarn_object **out, size_t *count)
{
    TARN_OWN(tarn_store__walk_fini)
    struct tarn_walk walk = {
        .driver = self, .op = op, .recursive = recursive, .list_folder = list_folder};
    return tarn_store__walk_list(&walk, prefix, out, count);
}

static struct tarn_status *remove_if_empty(struct tarn_walk *walk, const char *key)
{
    const char *name;
    TARN_OWN(tarn_store__close_drop) int above = -1;
    struct tarn_status *status =
        tarn_store__local_open_parent(walk->driver, key, false, &above, &name);
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) {
        tarn_status_drop(&status);
        return TARN_OK;
    }
    TARN_TRY(status);
    if (unlinkat(above, name, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY || errno == EEXIST ||
        errno == EBUSY || tarn_store__local_is_absent(errno))
        return TARN_OK;
    return tarn_store__local_error(errno, "remove the folder", key);
}

/* Not synced: an empty folder that comes back harms nobody. */
struct tarn_status *tarn_store__local_prune(void *self, struct tarn_op *op, const char *key)
{
    TARN_OWN(tarn_store__walk_fini)
    struct tarn_walk walk = {.driver = self, .op = op, .list_folder = list_folder};
    return tarn_store__walk_prune(&walk, key, remove_if_empty);
}
