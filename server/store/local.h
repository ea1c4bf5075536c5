/*
 * local - what the files of the local driver share: finding the place of a key, walking folders.
 *
 * A key never leads out of the root, whatever links lie on the way: openat2 with RESOLVE_BENEATH
 * sees to it, and where the kernel hasn't it, links are refused altogether.
 */
#ifndef TARN_STORE_LOCAL_H
#define TARN_STORE_LOCAL_H

#include <sys/stat.h>
#include <unistd.h>

#include "store/internal.h"

struct local {
    int root;     /* the root folder, open for reading */
    bool openat2; /* the kernel has it */
};

/* The status of a failed system call: `what` is the verb, "write". */
TARN_MUST struct tarn_status *tarn_store__local_error(int error, const char *what, const char *key);
bool tarn_store__local_is_absent(int error); /* ENOENT, or a segment is no folder */

/* Opens what `key` names ("" is the root), never beyond the root. -1 and errno. */
int tarn_store__local_open_at(const struct local *local, const char *key, int flags);

/* Opens the folder that `key` lies in, *name its last segment (borrowed from key). create: makes
 * missing ones, and each is durable before anything is put into it. */
TARN_MUST struct tarn_status *tarn_store__local_open_parent(const struct local *local,
                                                            const char *key, bool create, int *fd,
                                                            const char **name);

/* Opens the absolute `path` as a root, making it and its parents. */
TARN_MUST struct tarn_status *tarn_store__local_open_root(const char *path, int *fd);

/* Walking folders: the driver's list and prune. */
TARN_MUST struct tarn_status *tarn_store__local_list(void *self, struct tarn_op *op,
                                                     const char *prefix, bool recursive,
                                                     struct tarn_object **out, size_t *count);
TARN_MUST struct tarn_status *tarn_store__local_prune(void *self, struct tarn_op *op,
                                                      const char *key);

static inline int64_t tarn_store__mtime_ms(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static inline void tarn_store__close_drop(int *fd) /* for TARN_OWN */
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

#endif
