#include "store/local.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define FOLDER_MODE 0777 /* less the umask: engines of other users share the warehouse */

struct tarn_status *tarn_store__local_error(int error, const char *what, const char *key)
{
    const char *text = strerrordesc_np(error);
    if (text == NULL)
        text = "unknown error";
    switch (error) {
    case ENOENT:
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "%s '%s': %s", what, key, text);
    case EACCES:
    case EPERM:
    case EROFS:
        return tarn_status_new(TARN_STORE_DENIED, "%s '%s': %s", what, key, text);
    case ENOSPC:
    case EDQUOT:
        return tarn_status_new(TARN_DISK_FULL, "%s '%s': %s", what, key, text);
    case EXDEV:
        return tarn_status_new(TARN_PATH_INVALID, "%s '%s': it leads out of the store", what, key);
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
        return tarn_status_new(TARN_PATH_INVALID, "%s '%s': %s", what, key, text);
    case ESTALE:
    case ETIMEDOUT:
    case EHOSTDOWN:
    case ENOTCONN:
    case EMFILE:
    case ENFILE:
        return tarn_status_new(TARN_STORE_UNAVAILABLE, "%s '%s': %s", what, key, text);
    default:
        return tarn_status_new(TARN_IO_ERROR, "%s '%s': %s", what, key, text);
    }
}

bool tarn_store__local_is_absent(int error)
{
    return error == ENOENT || error == ENOTDIR;
}

static int open_beneath(const struct local *local, const char *key, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    /* EAGAIN: something was renamed while the kernel looked; it could not be sure. */
    for (int tries = 0; tries < 64; tries++) {
        long fd = syscall(SYS_openat2, local->root, key, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            return (int)fd;
    }
    return -1;
}

/* Segment by segment, no links: for kernels (and sandboxes) without openat2. */
static int open_stepwise(const struct local *local, const char *key, int flags)
{
    int folder = dup(local->root);
    for (const char *segment = key; folder >= 0;) {
        char name[NAME_MAX + 1];
        const char *slash = strchrnul(segment, '/');
        bool last = *slash == '\0';
        size_t size = (size_t)(slash - segment);
        if (size > NAME_MAX) {
            close(folder);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, segment, size);
        name[size] = '\0';
        int next =
            openat(folder, name, (last ? flags : O_PATH | O_DIRECTORY) | O_CLOEXEC | O_NOFOLLOW);
        int error = errno;
        close(folder);
        errno = error;
        if (next < 0 || last)
            return next;
        folder = next;
        segment = slash + 1;
    }
    return -1;
}

int tarn_store__local_open_at(const struct local *local, const char *key, int flags)
{
    flags |= O_CLOEXEC;
    if (key[0] == '\0')
        key = ".";
    return local->openat2 ? open_beneath(local, key, flags) : open_stepwise(local, key, flags);
}

/* Makes one folder and its entry durable. EEXIST is fine: the other maker may not have come to its
 * fsync yet, so ours is done all the same. local: NULL before there is one. */
static struct tarn_status *make_folder(struct local *local, int parent, const char *name,
                                       const char *path)
{
    if (mkdirat(parent, name, FOLDER_MODE) != 0 && errno != EEXIST)
        return tarn_store__local_error(errno, "make the folder", path);
    if (fsync(parent) == 0)
        return TARN_OK;
    int error = errno;
    if (local != NULL)
        tarn_status_free(tarn_store__folder_synced(local, error, path));
    return tarn_store__local_error(error, "sync the folder above", path);
}

/* Opens folder `path`, from the root downwards, and makes what is missing on the way. */
static struct tarn_status *make_folders(struct local *local, const char *path, int *out)
{
    TARN_OWN(tarn_free_drop) char *part = tarn_strdup(path);
    TARN_OWN(tarn_store__close_drop) int folder =
        tarn_store__local_open_at(local, "", FOLDER_FLAGS);
    if (folder < 0)
        return tarn_store__local_error(errno, "open the root of", path);
    for (char *name = part; name != NULL;) {
        char *slash = strchr(name, '/');
        if (slash != NULL)
            *slash = '\0';
        int next = tarn_store__local_open_at(local, part, FOLDER_FLAGS);
        if (next < 0 && errno == ENOENT) {
            TARN_TRY(make_folder(local, folder, name, part));
            next = tarn_store__local_open_at(local, part, FOLDER_FLAGS);
        }
        if (next < 0)
            return tarn_store__local_error(errno, "open the folder", part);
        close(folder);
        folder = next;
        if (slash != NULL)
            *slash = '/';
        name = slash == NULL ? NULL : slash + 1;
    }
    *out = folder;
    folder = -1;
    return TARN_OK;
}

struct tarn_status *tarn_store__local_open_parent(struct local *local, const char *key, bool create,
                                                  int *fd, const char **name)
{
    const char *slash = strrchr(key, '/');
    size_t folder_size = slash == NULL ? 0 : (size_t)(slash - key);
    TARN_OWN(tarn_free_drop) char *folder = tarn_slice_dup(tarn_slice_of(key, folder_size));
    *name = slash == NULL ? key : slash + 1;
    *fd = tarn_store__local_open_at(local, folder, FOLDER_FLAGS);
    if (*fd >= 0)
        return TARN_OK;
    if (errno == ENOENT && create && folder_size > 0)
        return make_folders(local, folder, fd);
    if (!create && tarn_store__local_is_absent(errno))
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no folder of '%s'", key);
    return tarn_store__local_error(errno, "open the folder of", key);
}

/* The root is the administrator's: links on the way to it are followed. */
struct tarn_status *tarn_store__local_open_root(const char *path, int *out)
{
    *out = open(path, FOLDER_FLAGS);
    if (*out >= 0)
        return TARN_OK;
    if (errno != ENOENT)
        return tarn_store__local_error(errno, "open the folder", path);

    const char *slash = strrchr(path, '/');
    TARN_OWN(tarn_free_drop) char *above =
        slash == path ? tarn_strdup("/")
                      : tarn_slice_dup(tarn_slice_of(path, (size_t)(slash - path)));
    TARN_OWN(tarn_store__close_drop) int parent = -1;
    TARN_TRY(tarn_store__local_open_root(above, &parent));
    TARN_TRY(make_folder(NULL, parent, slash + 1, path));
    *out = open(path, FOLDER_FLAGS);
    return *out >= 0 ? TARN_OK : tarn_store__local_error(errno, "open the folder", path);
}
