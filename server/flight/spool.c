/* spool - an input that must be sought in, kept in the scratch folder for as long as it is read. The file
 * has no name there: whatever ends this process, the disk gets its space back. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LOOK_EVERY ((int64_t)8 << 20) /* bytes between two looks at the free space */

static struct tarn_status *open_unnamed(struct tarn_flight__spool *spool, const char *dir)
{
    TARN_OWN(tarn_free_drop) char *name = tarn_format("%s/spool-XXXXXX", dir);

    spool->fd = mkostemp(name, O_CLOEXEC);
    if (spool->fd < 0)
        return tarn_status_errno(errno, "create %s", name);
    unlink(name);
    snprintf(spool->path, sizeof spool->path, "/proc/self/fd/%d", spool->fd);
    return TARN_OK;
}

static struct tarn_status *check_space(const struct tarn_flight__spool *spool, const char *dir,
                                       int64_t size)
{
    struct statvfs st;
    int64_t left;

    if (fstatvfs(spool->fd, &st) != 0 || __builtin_mul_overflow(st.f_bavail, st.f_frsize, &left))
        return TARN_OK; /* a disk that doesn't say; a write will */
    if (left < TARN_SPOOL_RESERVE)
        return tarn_status_new(TARN_DISK_FULL,
                               "%s has %" PRId64 " bytes left after %" PRId64 " of the input", dir,
                               left, size);
    return TARN_OK;
}

static struct tarn_status *write_all(const struct tarn_flight__spool *spool, const char *dir,
                                     struct tarn_slice bytes)
{
    while (bytes.size > 0) {
        ssize_t n = write(spool->fd, bytes.data, bytes.size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return tarn_status_errno(n < 0 ? errno : ENOSPC, "write into %s", dir);
        bytes = tarn_slice_of(bytes.data + n, bytes.size - (size_t)n);
    }
    return TARN_OK;
}

struct tarn_status *tarn_flight__spool_fill(struct tarn_flight__spool *spool, const char *dir,
                                            struct tarn_flight__parts *parts, struct tarn_op *op)
{
    int64_t size = 0, next_look = 0;

    TARN_TRY(open_unnamed(spool, dir));
    for (;;) {
        struct tarn_slice piece;
        if (size >= next_look) {
            TARN_TRY(tarn_op_check(op));
            TARN_TRY(check_space(spool, dir, size));
            next_look += LOOK_EVERY;
        }
        TARN_TRY(tarn_flight__parts_take(parts, &piece));
        if (piece.size == 0)
            return TARN_OK;
        TARN_TRY(write_all(spool, dir, piece));
        size += (int64_t)piece.size;
    }
}

void tarn_flight__spool_drop(struct tarn_flight__spool *spool)
{
    if (spool->fd >= 0)
        close(spool->fd);
    spool->fd = -1;
}
