/*
 * A file on its way to its name: begun hidden, written, synced, then named in one step.
 *
 * What a failed sync of a folder did to the names in it nobody can tell any more: the kernel forgets
 * that they were never written, and the next sync would succeed. So the store remembers, takes
 * nothing more and promises nothing more (local.sync_lost); who wants to go on begins anew with
 * what the disk then shows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "store/local.h"

#define TEMPORARY_STEM_MAX 200 /* of the name: dots, uuid and ".tmp" must fit into 255 bytes too */
#define FOLDER_TRIES_MAX 8     /* a folder may be pruned between finding and using it */

void tarn_store__draft_fini(struct draft *draft)
{
    tarn_store__close_drop(&draft->file);
    if (draft->folder >= 0 && draft->temporary[0] != '\0')
        unlinkat(draft->folder, draft->temporary, 0);
    tarn_store__close_drop(&draft->folder);
    free(draft->key);
    draft->key = NULL;
}

static void name_temporary(struct draft *draft)
{
    char uuid[TARN_UUID_SIZE];
    size_t stem = strnlen(draft->name, TEMPORARY_STEM_MAX);
    while (stem > 0 && ((unsigned char)draft->name[stem] & 0xc0) == 0x80)
        stem--; /* not through the middle of a character: the name must stay UTF-8 */
    tarn_uuid_random(uuid);
    snprintf(draft->temporary, sizeof draft->temporary, ".%.*s.%s.tmp", (int)stem, draft->name,
             uuid);
}

struct tarn_status *tarn_store__local_writable(const struct local *local, const char *key)
{
    if (!atomic_load(&local->sync_lost))
        return TARN_OK;
    return tarn_status_new(TARN_IO_ERROR,
                           "'%s' is not written: a sync of a folder failed before, and what is on "
                           "the disk is no longer known; check it, then restart",
                           key);
}

/* 0 or errno. */
static int create_hidden(struct draft *draft)
{
    name_temporary(draft);
    draft->file =
        openat(draft->folder, draft->temporary,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, TARN_STORE_FILE_MODE);
    if (draft->file >= 0)
        return 0;
    draft->temporary[0] = '\0'; /* nothing to remove */
    return errno;
}

static int hide_spare(struct draft *draft)
{
    name_temporary(draft);
    int error = tarn_store__spare_link(draft->file, draft->folder, draft->temporary);
    if (error == 0)
        return 0;
    draft->temporary[0] = '\0';
    tarn_store__close_drop(&draft->file);
    return error;
}

static int take_spare(struct draft *draft, bool hidden)
{
    draft->file = tarn_store__spare_take(draft->local->spares, draft->folder);
    draft->spare = draft->file >= 0 && !hidden;
    if (draft->file < 0)
        return create_hidden(draft);
    return hidden ? hide_spare(draft) : 0;
}

static struct tarn_status *begin(struct draft *draft, struct local *local, const char *key,
                                 bool small, bool hidden)
{
    int error = ENOENT;
    *draft = (struct draft){.local = local, .folder = -1, .file = -1, .key = tarn_strdup(key)};
    TARN_TRY(tarn_store__local_writable(local, key));
    for (int tries = 0; tries < FOLDER_TRIES_MAX && error == ENOENT; tries++) {
        tarn_store__close_drop(&draft->folder);
        TARN_TRY(
            tarn_store__local_open_parent(local, draft->key, true, &draft->folder, &draft->name));
        error = small ? take_spare(draft, hidden) : create_hidden(draft);
    }
    return error == 0 ? TARN_OK : tarn_store__local_error(error, "create", key);
}

struct tarn_status *tarn_store__draft_begin(struct draft *draft, struct local *local,
                                            const char *key)
{
    return begin(draft, local, key, false, true);
}

struct tarn_status *tarn_store__draft_begin_small(struct draft *draft, struct local *local,
                                                  const char *key, bool hidden)
{
    return begin(draft, local, key, true, hidden);
}

struct tarn_status *tarn_store__draft_write(struct draft *draft, struct tarn_slice bytes)
{
    while (bytes.size > 0 && !draft->failed) {
        ssize_t n = write(draft->file, bytes.data, bytes.size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            draft->failed = true;
            return tarn_store__local_error(errno, "write", draft->key);
        }
        bytes.data += n;
        bytes.size -= (size_t)n;
    }
    return TARN_OK;
}

/* After a failed sync the pages count as clean and the next sync would succeed: never try again. */
struct tarn_status *tarn_store__draft_synced(struct draft *draft, int error)
{
    draft->failed |= error != 0;
    draft->synced = !draft->failed;
    return draft->synced ? TARN_OK : tarn_store__local_error(error, "sync", draft->key);
}

struct tarn_status *tarn_store__draft_sync(struct draft *draft)
{
    if (draft->failed)
        return tarn_status_new(TARN_IO_ERROR, "'%s' is not published: a write to it failed before",
                               draft->key);
    return tarn_store__draft_synced(draft, fsync(draft->file) == 0 ? 0 : errno);
}

struct tarn_status *tarn_store__folder_synced(struct local *local, int error, const char *key)
{
    if (error == 0)
        return TARN_OK;
    if (error != ENOSPC && error != EDQUOT) /* those lose nothing: what is dirty stays dirty */
        atomic_store(&local->sync_lost, true);
    return tarn_store__local_error(error, "sync the folder of", key);
}

struct tarn_status *tarn_store__sync_folder(struct local *local, int folder, const char *key)
{
    TARN_TRY(tarn_store__local_writable(local, key));
    return tarn_store__folder_synced(local, fsync(folder) == 0 ? 0 : errno, key);
}

struct tarn_status *tarn_store__taken_by_folder(const char *key)
{
    return tarn_status_new(TARN_PATH_INVALID, "'%s' is a folder", key);
}

bool tarn_store__is_folder_at(int folder, const char *name)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

bool tarn_store__is_same_folder(int a, int b)
{
    struct stat of_a, of_b;
    return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_ino == of_b.st_ino &&
           of_a.st_dev == of_b.st_dev;
}

/* Errors of link that say for certain that no link was made. */
static bool certainly_not(int error)
{
    static const int certain[] = {
        EEXIST, ENOSPC,       EDQUOT, EACCES, EPERM,  EROFS,      ENOENT, ENOTDIR,
        EMLINK, ENAMETOOLONG, ELOOP,  EXDEV,  EINVAL, EOPNOTSUPP, ENOSYS,
    };
    for (size_t i = 0; i < TARN_COUNT_OF(certain); i++) {
        if (certain[i] == error)
            return true;
    }
    return false;
}

/* 0 or errno. */
static int move_name(struct draft *draft)
{
    int result =
        renameat2(draft->folder, draft->temporary, draft->folder, draft->name, RENAME_NOREPLACE);
    if (result != 0)
        return errno;
    draft->temporary[0] = '\0';
    return 0;
}

static int link_name(const struct draft *draft)
{
    int result = linkat(draft->folder, draft->temporary, draft->folder, draft->name, 0);
    return result == 0 ? 0 : errno;
}

/* File systems without hard links still have a rename that doesn't replace. */
static int give_name(struct draft *draft)
{
    int error = link_name(draft);
    bool no_links = error == EPERM || error == EOPNOTSUPP || error == ENOSYS;
    return no_links ? move_name(draft) : error;
}

/* Over NFS a reply may be lost and the repetition answered with "exists" or an error: two names
 * mean that the link is ours, unless another file lies there: somebody may copy folders by links. */
static bool has_its_name(const struct draft *draft)
{
    struct stat own, there;
    if (fstat(draft->file, &own) != 0 || own.st_nlink < 2)
        return false;
    return fstatat(draft->folder, draft->name, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
           (own.st_ino == there.st_ino && own.st_dev == there.st_dev);
}

static struct tarn_status *sync_name(struct local *local, int folder, const char *name,
                                     const char *key)
{
    TARN_OWN(tarn_store__close_drop) int file =
        openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 && errno != ELOOP && errno != ENOENT)
        return tarn_store__local_error(errno, "open, to sync it,", key);
    if (file >= 0 && fsync(file) != 0 && errno != EINVAL) /* EINVAL: a pipe */
        return tarn_store__local_error(errno, "sync", key);
    return tarn_store__sync_folder(local, folder, key);
}

/* --- what is there and may not last --- */

struct doubt {
    struct doubt *next;
    char key[];
};

static void doubt(struct local *local, const char *key)
{
    size_t size = strlen(key) + 1;
    struct doubt *one = tarn_alloc(sizeof *one + size);
    memcpy(one->key, key, size);
    pthread_mutex_lock(&local->mutex);
    one->next = local->doubts;
    local->doubts = one;
    pthread_mutex_unlock(&local->mutex);
}

struct tarn_status *tarn_store__local_trusted(struct local *local, const char *key)
{
    if (!atomic_load(&local->sync_lost))
        return TARN_OK;
    pthread_mutex_lock(&local->mutex);
    const struct doubt *one = local->doubts;
    while (one != NULL && strcmp(one->key, key) != 0)
        one = one->next;
    pthread_mutex_unlock(&local->mutex);
    return one == NULL ? TARN_OK
                       : tarn_status_new(TARN_IO_ERROR,
                                         "'%s' is there, and may not last: its sync was lost", key);
}

void tarn_store__local_forget_doubts(struct local *local)
{
    while (local->doubts != NULL) {
        struct doubt *one = local->doubts;
        local->doubts = one->next;
        free(one);
    }
}

/* Consumes. */
static struct tarn_status *as_unknown(struct local *local, struct tarn_status *status,
                                      const char *key)
{
    if (status == TARN_OK)
        return TARN_OK;
    if (atomic_load(&local->sync_lost))
        doubt(local, key);
    struct tarn_status *unknown =
        tarn_status_new(TARN_OUTCOME_UNKNOWN, "'%s' is there, and may not last: %s", key,
                        tarn_status_message(status));
    tarn_status_free(status);
    return unknown;
}

/* The answer "one is there" must last as well: it may be another program's that never syncs, or ours
 * of a try before. A link is taken as a name alone. */
struct tarn_status *tarn_store__sync_present(struct local *local, int folder, const char *name,
                                             const char *key)
{
    if (tarn_store__is_folder_at(folder, name))
        return tarn_store__taken_by_folder(key);
    return as_unknown(local, sync_name(local, folder, name, key), key);
}

/* Nobody yet, or *created; OUTCOME_UNKNOWN from where the name may be there and may not last. */
struct tarn_status *tarn_store__draft_claim(struct draft *draft, bool *created)
{
    *created = false;
    if (!draft->synced)
        TARN_TRY(tarn_store__draft_sync(draft));
    int error = give_name(draft);
    if (error != 0 && !has_its_name(draft)) {
        if (!certainly_not(error))
            return tarn_status_new(TARN_OUTCOME_UNKNOWN, "link '%s': %s", draft->key,
                                   strerrordesc_np(error));
        if (error != EEXIST)
            return tarn_store__local_error(error, "link", draft->key);
        return tarn_store__sync_present(draft->local, draft->folder, draft->name, draft->key);
    }
    if (draft->temporary[0] != '\0' && unlinkat(draft->folder, draft->temporary, 0) == 0)
        draft->temporary[0] = '\0';
    TARN_TRY(as_unknown(draft->local,
                        tarn_store__sync_folder(draft->local, draft->folder, draft->key),
                        draft->key));
    *created = true;
    return TARN_OK;
}

/* File systems without RENAME_NOREPLACE (NFS) have links. */
static int rename_without_replacing(struct draft *draft)
{
    int error = move_name(draft);
    return error == EINVAL || error == ENOSYS ? link_name(draft) : error;
}

/* Nothing of a spare file lies in its folder and keeps that from being pruned: *error ENOENT, and it is made again. */
static struct tarn_status *link_spare(struct draft *draft, int *error)
{
    *error = tarn_store__spare_link(draft->file, draft->folder, draft->name);
    for (int tries = 1; tries < FOLDER_TRIES_MAX && *error == ENOENT; tries++) {
        tarn_store__close_drop(&draft->folder);
        TARN_TRY(tarn_store__local_open_parent(draft->local, draft->key, true, &draft->folder,
                                               &draft->name));
        *error = tarn_store__spare_link(draft->file, draft->folder, draft->name);
    }
    return TARN_OK;
}

/* For objects that are named by uuid: one that exists is an error. */
struct tarn_status *tarn_store__draft_name(struct draft *draft)
{
    int error = 0;
    if (draft->spare)
        TARN_TRY(link_spare(draft, &error));
    else
        error = rename_without_replacing(draft);
    if (error == EEXIST)
        return tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", draft->key);
    if (error != 0)
        return tarn_store__local_error(error, "publish", draft->key);
    draft->named = true;
    return TARN_OK;
}

void tarn_store__draft_unname(struct draft *draft)
{
    if (draft->named)
        unlinkat(draft->folder, draft->name, 0);
    draft->named = false;
}

struct tarn_status *tarn_store__draft_publish(struct draft *draft)
{
    TARN_TRY(tarn_store__draft_sync(draft));
    TARN_TRY(tarn_store__draft_name(draft));
    struct tarn_status *status = tarn_store__sync_folder(draft->local, draft->folder, draft->key);
    if (status != TARN_OK)
        tarn_store__draft_unname(draft); /* nobody has been told its name */
    return status;
}
