/*
 * local - objects as files below a folder of this host.
 *
 * An object is first a hidden file ".<name>.<uuid>.tmp" in its own folder, complete and synced;
 * then it gets its name in one step: link (put_if_absent: the kernel decides who was first, between
 * processes too), rename without replacing (writers), rename (put). The folder is synced before the
 * caller hears of it. What a crash leaves is a hidden file at most; orphan removal takes it.
 */
#include "store/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define READ_FLAGS (O_RDONLY | O_NONBLOCK) /* a pipe in the way must not hold us up */

/* ---- whole objects ---- */

#define HINT_SIZE_MAX 32

/* Reads it whole; -1: it is larger, or can't be read. */
static ssize_t read_hint(int file, uint8_t out[HINT_SIZE_MAX])
{
    struct stat st;
    bool fits = fstat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
                st.st_size <= HINT_SIZE_MAX;
    return fits ? pread(file, out, HINT_SIZE_MAX, 0) : -1;
}

static bool hint_is(int file, struct tarn_slice body)
{
    uint8_t now[HINT_SIZE_MAX];
    ssize_t size = read_hint(file, now);
    return size >= 0 && tarn_slice_equal(tarn_slice_of(now, (size_t)size), body);
}

/* In its place, where one digit changes: a file for each commit that another is moved over costs a disk more than the
 * commit's other files. A byte is written whole, so a reader, and a disk after a crash, has the old hint or the new one; of
 * two bytes it could have one each, a number that never was, which engines believe. False: it isn't done that way, or
 * somebody else wrote at the same time. */
static bool overwrite_hint(struct local *local, const char *key, struct tarn_slice body)
{
    uint8_t before[HINT_SIZE_MAX];
    size_t differ = 0, at = 0;
    TARN_OWN(tarn_store__close_drop) int file =
        tarn_store__local_open_at(local, key, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    ssize_t size = file < 0 ? -1 : read_hint(file, before);
    if (size < 0 || (size_t)size != body.size)
        return false;
    for (size_t i = 0; i < body.size; i++) {
        if (before[i] != body.data[i]) {
            differ++;
            at = i;
        }
    }
    if (differ > 1 || (differ == 1 && pwrite(file, body.data + at, 1, (off_t)at) != 1))
        return false;
    return hint_is(file, body);
}

/* Syncs are for what must outlive a loss of power: a hint that is behind, or empty, is one that is
 * not believed. */
static struct tarn_status *local_put_hint(void *self, struct tarn_op *op, const char *key,
                                          struct tarn_slice body)
{
    TARN_TRY(tarn_store__local_writable(self, key));
    if (overwrite_hint(self, key, body))
        return TARN_OK;
    TARN_OWN(tarn_store__draft_fini) struct draft draft;
    TARN_TRY(tarn_store__draft_begin(&draft, self, key));
    TARN_TRY(tarn_store__draft_write(&draft, body));
    if (renameat(draft.folder, draft.temporary, draft.folder, draft.name) != 0)
        return tarn_store__local_error(errno, "replace", key);
    draft.temporary[0] = '\0';
    return TARN_OK;
}

static struct tarn_status *local_put(void *self, struct tarn_op *op, const char *key,
                                     struct tarn_slice body)
{
    TARN_OWN(tarn_store__draft_fini) struct draft draft;
    TARN_TRY(tarn_store__draft_begin(&draft, self, key));
    TARN_TRY(tarn_store__draft_write(&draft, body));
    TARN_TRY(tarn_store__draft_sync(&draft));
    if (renameat(draft.folder, draft.temporary, draft.folder, draft.name) != 0)
        return tarn_store__local_error(errno, "replace", key);
    draft.temporary[0] = '\0';
    return tarn_store__sync_folder(self, draft.folder, key);
}

/* A look first: losers of a race then write nothing. *there: answered already. */
static struct tarn_status *look_before(struct local *local, const char *key, bool *there)
{
    struct stat st;
    const char *name;
    TARN_OWN(tarn_store__close_drop) int folder = -1;
    *there = false;
    struct tarn_status *status = tarn_store__local_open_parent(local, key, false, &folder, &name);
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) {
        tarn_status_drop(&status);
        return TARN_OK;
    }
    TARN_TRY(status);
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return TARN_OK; /* the attempt itself will say what is wrong */
    *there = true;
    return tarn_store__sync_present(local, folder, name, key);
}

static struct tarn_status *local_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                               struct tarn_slice body, bool *created)
{
    bool there;
    *created = false;
    TARN_TRY(tarn_store__ready_claim(self, key, body, &there, created));
    if (there)
        return TARN_OK;
    TARN_TRY(look_before(self, key, &there));
    if (there)
        return TARN_OK;
    TARN_OWN(tarn_store__draft_fini) struct draft draft;
    TARN_TRY(tarn_store__draft_begin_small(&draft, self, key, true));
    TARN_TRY(tarn_store__draft_write(&draft, body));
    return tarn_store__draft_claim(&draft, created);
}

/* Opens an object that is one; a folder or a pipe is none. */
static struct tarn_status *open_object(struct local *local, const char *key, int flags, int *fd,
                                       struct stat *st)
{
    TARN_TRY(tarn_store__local_trusted(local, key));
    TARN_OWN(tarn_store__close_drop) int opened = tarn_store__local_open_at(local, key, flags);
    if (opened < 0)
        return tarn_store__local_is_absent(errno)
                   ? tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no object '%s'", key)
                   : tarn_store__local_error(errno, "open", key);
    if (fstat(opened, st) != 0)
        return tarn_store__local_error(errno, "look at", key);
    if (!S_ISREG(st->st_mode))
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "'%s' is a %s, no object", key,
                               S_ISDIR(st->st_mode) ? "folder" : "special file");
    *fd = opened;
    opened = -1;
    return TARN_OK;
}

static struct tarn_status *read_fully(int fd, const char *key, int64_t offset, size_t size,
                                      uint8_t *out, size_t *got)
{
    *got = 0;
    while (*got < size) {
        ssize_t n = pread(fd, out + *got, size - *got, offset + (int64_t)*got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tarn_store__local_error(errno, "read", key);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return TARN_OK;
}

static struct tarn_status *local_get(void *self, struct tarn_op *op, const char *key,
                                     size_t size_max, struct tarn_buf *out)
{
    struct stat st;
    size_t got;
    TARN_OWN(tarn_store__close_drop) int fd = -1;
    TARN_TRY(open_object(self, key, READ_FLAGS, &fd, &st));
    if ((uint64_t)st.st_size > size_max)
        return tarn_status_new(TARN_TOO_LARGE,
                               "object '%s' has %" PRId64 " bytes, at most %zu are read", key,
                               (int64_t)st.st_size, size_max);
    tarn_buf_reserve(out, (size_t)st.st_size + 1);
    TARN_TRY(read_fully(fd, key, 0, (size_t)st.st_size, out->data + out->size, &got));
    out->size += got;
    return TARN_OK;
}

static struct tarn_status *local_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                      struct tarn_object *out)
{
    struct stat st;
    TARN_OWN(tarn_store__close_drop) int fd = -1;
    struct tarn_status *status = open_object(self, key, O_PATH, &fd, &st);
    *found = status == TARN_OK;
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) {
        tarn_status_drop(&status);
        return TARN_OK;
    }
    TARN_TRY(status);
    out->size = st.st_size;
    out->mtime_ms = tarn_store__mtime_ms(&st);
    return TARN_OK;
}

/* Durable: what a roll-back removed must not come back after a loss of power. */
static struct tarn_status *local_remove(void *self, struct tarn_op *op, const char *key)
{
    const char *name;
    TARN_OWN(tarn_store__close_drop) int folder = -1;
    TARN_TRY(tarn_store__local_writable(self, key));
    struct tarn_status *status = tarn_store__local_open_parent(self, key, false, &folder, &name);
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) {
        tarn_status_drop(&status);
        return TARN_OK;
    }
    TARN_TRY(status);
    if (unlinkat(folder, name, 0) == 0)
        return tarn_store__sync_folder(self, folder, key);
    /* A folder is no object, so there was none to delete. */
    if (tarn_store__local_is_absent(errno) || errno == EISDIR)
        return TARN_OK;
    return tarn_store__local_error(errno, "delete", key);
}

static struct tarn_status *local_move_folder(void *self, struct tarn_op *op, const char *from,
                                             const char *to)
{
    const char *from_name, *to_name;
    TARN_OWN(tarn_store__close_drop) int from_folder = -1;
    TARN_OWN(tarn_store__close_drop) int to_folder = -1;
    TARN_TRY(tarn_store__local_writable(self, from));
    TARN_TRY(tarn_store__local_open_parent(self, from, false, &from_folder, &from_name));
    if (!tarn_store__is_folder_at(from_folder, from_name))
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no folder '%s'", from);
    TARN_TRY(tarn_store__local_open_parent(self, to, true, &to_folder, &to_name));
    int failed = renameat2(from_folder, from_name, to_folder, to_name, RENAME_NOREPLACE);
    /* Without the flag an empty folder would be replaced, which loses nothing; one that holds
     * something is refused by the kernel. */
    if (failed != 0 && (errno == EINVAL || errno == ENOSYS))
        failed = renameat(from_folder, from_name, to_folder, to_name);
    if (failed != 0 && (errno == EEXIST || errno == ENOTEMPTY))
        return tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", to);
    if (failed != 0)
        return tarn_store__local_error(errno, "move the folder", from);
    TARN_TRY(tarn_store__sync_folder(self, to_folder, to));
    return tarn_store__sync_folder(self, from_folder, from);
}

/* ---- readers and writers ---- */

struct reader {
    int fd;
    char *key; /* owned */
};

static struct tarn_status *local_open(void *self, struct tarn_op *op, const char *key, void **out,
                                      int64_t *size)
{
    struct stat st;
    int fd;
    TARN_TRY(open_object(self, key, READ_FLAGS, &fd, &st));
    struct reader *reader = tarn_calloc(1, sizeof *reader);
    reader->fd = fd;
    reader->key = tarn_strdup(key);
    *size = st.st_size;
    *out = reader;
    return TARN_OK;
}

static struct tarn_status *local_read_at(void *self, struct tarn_op *op, int64_t offset,
                                         size_t size, uint8_t *out, size_t *got)
{
    const struct reader *reader = self;
    return read_fully(reader->fd, reader->key, offset, size, out, got);
}

static void local_reader_close(void *self)
{
    struct reader *reader = self;
    close(reader->fd);
    free(reader->key);
    free(reader);
}

static struct tarn_status *local_create(void *self, struct tarn_op *op, const char *key, void **out)
{
    struct draft *draft = tarn_calloc(1, sizeof *draft);
    struct tarn_status *status = tarn_store__draft_begin(draft, self, key);
    if (status == TARN_OK && tarn_store__is_folder_at(draft->folder, draft->name))
        status = tarn_store__taken_by_folder(key);
    if (status != TARN_OK) {
        tarn_store__draft_fini(draft);
        free(draft);
        return status;
    }
    *out = draft;
    return TARN_OK;
}

static struct tarn_status *local_append(void *self, struct tarn_op *op, struct tarn_slice bytes)
{
    return tarn_store__draft_write(self, bytes);
}

static void local_abort(void *self)
{
    tarn_store__draft_fini(self);
    free(self);
}

static struct tarn_status *local_finish(void *self, struct tarn_op *op)
{
    struct tarn_status *status = tarn_store__draft_publish(self);
    local_abort(self);
    return status;
}

/* ---- life ---- */

static void local_close(void *self)
{
    struct local *local = self;
    tarn_store__sync_crew_free(local->crew);
    tarn_store__spares_free(local->spares);
    tarn_store__local_forget_doubts(local);
    tarn_store__ready_forget(local);
    pthread_mutex_destroy(&local->mutex);
    tarn_store__close_drop(&local->root);
    free(local);
}

static const struct tarn_store_ops local_ops = {
    .scheme = "file",
    .get = local_get,
    .stat = local_stat,
    .put = local_put,
    .put_hint = local_put_hint,
    .put_many = tarn_store__local_put_many,
    .unforesee = tarn_store__local_unforesee,
    .put_if_absent = local_put_if_absent,
    .remove = local_remove,
    .remove_many = tarn_store__local_remove_many,
    .list = tarn_store__local_list,
    .move_folder = local_move_folder,
    .prune = tarn_store__local_prune,
    .open = local_open,
    .read_at = local_read_at,
    .reader_close = local_reader_close,
    .create = local_create,
    .append = local_append,
    .finish = local_finish,
    .abort = local_abort,
    .close = local_close,
};

struct tarn_status *tarn_store__local_open(const char *path, struct tarn_store **out)
{
    int root;
    TARN_TRY(tarn_store__local_open_root(path, &root));
    struct local *local = tarn_calloc(1, sizeof *local);
    local->root = root;
    local->openat2 = true;
    local->crew = tarn_store__sync_crew_new();
    local->spares = tarn_store__spares_new(root);
    pthread_mutex_init(&local->mutex, NULL);
    int probe = tarn_store__local_open_at(local, "", O_PATH | O_DIRECTORY);
    local->openat2 = probe >= 0; /* old kernels say ENOSYS, some sandboxes EPERM */
    tarn_store__close_drop(&probe);
    *out = tarn_store_new(&local_ops, local);
    return TARN_OK;
}

void tarn_store__local_without_openat2(struct tarn_store *store)
{
    tarn_assert(store->ops == &local_ops);
    ((struct local *)store->self)->openat2 = false;
}
