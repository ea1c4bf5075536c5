/*
 * Many at once in the local driver. put_many: all files are written and named, then all are synced side by side with
 * their folders, for the time of one sync. That the names are there before the bytes are durable
 * harms nobody, since nothing refers to them until put_many has returned. One that is foreseen stays hidden until its
 * put_if_absent comes, which then needs no more than to name it. remove_many: a sync a folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "store/local.h"

#define BATCH_COUNT_MAX ((size_t)64) /* each holds two files open; more are more batches in a row */

struct batch {
    struct local *local; /* borrowed */
    struct draft *drafts;
    size_t count; /* begun */
    int *fds;     /* of files, then of folders; borrowed from the drafts */
    int *errors;
    size_t *folder_of; /* the draft whose folder it is, for each behind the files */
    size_t fd_count;
    bool complete;
};

/* Unless complete, what was named is taken back: nobody has been told. */
static void batch_fini(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->complete)
            tarn_store__draft_unname(&batch->drafts[i]);
        tarn_store__draft_fini(&batch->drafts[i]);
    }
    free(batch->drafts);
    free(batch->fds);
    free(batch->errors);
    free(batch->folder_of);
}

static struct tarn_status *write_one(struct draft *draft, const struct tarn_new_object *object)
{
    TARN_TRY(tarn_store__draft_write(draft, object->body));
    if (!object->foreseen) {
        if (tarn_store__is_folder_at(draft->folder, draft->name))
            return tarn_store__taken_by_folder(draft->key);
        TARN_TRY(tarn_store__draft_name(draft));
    }
    /* Only a nudge: with all bytes on their way now, one write of the journal serves all the syncs
     * that follow. Whatever goes wrong here is for fsync to tell. */
    sync_file_range(draft->file, 0, 0, SYNC_FILE_RANGE_WRITE);
    return TARN_OK;
}

/* Neighbours lie in the same folder mostly; one that is synced twice is no harm. */
static void gather(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        batch->fds[batch->fd_count++] = batch->drafts[i].file;
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->drafts[i].named) /* foreseen */
            continue;
        if (i > 0 &&
            tarn_store__is_same_folder(batch->drafts[i - 1].folder, batch->drafts[i].folder))
            continue;
        batch->folder_of[batch->fd_count] = i;
        batch->fds[batch->fd_count++] = batch->drafts[i].folder;
    }
}

/* All answers are looked at: a folder's failure must be remembered, whatever else failed. */
static struct tarn_status *judge(struct batch *batch)
{
    struct tarn_status *first = TARN_OK;
    for (size_t i = 0; i < batch->fd_count; i++) {
        bool is_file = i < batch->count;
        struct draft *draft = &batch->drafts[is_file ? i : batch->folder_of[i]];
        struct tarn_status *status =
            is_file ? tarn_store__draft_synced(draft, batch->errors[i])
                    : tarn_store__folder_synced(batch->local, batch->errors[i], draft->key);
        if (first == TARN_OK)
            first = status;
        else
            tarn_status_free(status);
    }
    return first;
}

static struct tarn_status *put_batch(struct local *local, struct tarn_op *op,
                                     const struct tarn_new_object *objects, size_t count)
{
    TARN_OWN(batch_fini) struct batch batch = {
        .local = local,
        .drafts = tarn_calloc(count + 1, sizeof *batch.drafts),
        .fds = tarn_calloc(2 * count + 1, sizeof *batch.fds),
        .errors = tarn_calloc(2 * count + 1, sizeof *batch.errors),
        .folder_of = tarn_calloc(2 * count + 1, sizeof *batch.folder_of),
    };
    for (size_t i = 0; i < count; i++) {
        TARN_TRY(tarn_store__draft_begin_small(&batch.drafts[batch.count++], local, objects[i].key,
                                               objects[i].foreseen));
        TARN_TRY(write_one(&batch.drafts[i], &objects[i]));
    }
    TARN_TRY(tarn_op_check(op));
    gather(&batch);
    tarn_store__sync_all(batch.local->crew, batch.fds, batch.errors, batch.fd_count);
    TARN_TRY(judge(&batch));
    batch.complete = true;
    if (count > 0 && objects[count - 1].foreseen)
        tarn_store__ready_keep(local, &batch.drafts[count - 1], objects[count - 1].body);
    return TARN_OK;
}

struct tarn_status *tarn_store__local_put_many(void *self, struct tarn_op *op,
                                               const struct tarn_new_object *objects, size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t n = TARN_MIN(count - done, BATCH_COUNT_MAX);
        TARN_TRY(put_batch(self, op, objects + done, n));
        done += n;
    }
    return TARN_OK;
}

/* ---- remove_many ---- */

struct removal {
    struct local *local; /* borrowed */
    int folders[BATCH_COUNT_MAX];
    const char *keys[BATCH_COUNT_MAX]; /* one that lay in it, for messages */
    size_t count;
};

static void removal_fini(struct removal *removal)
{
    for (size_t i = 0; i < removal->count; i++)
        close(removal->folders[i]);
}

static struct tarn_status *remove_one(struct removal *removal, const char *key)
{
    const char *name;
    TARN_OWN(tarn_store__close_drop) int folder = -1;
    struct tarn_status *status =
        tarn_store__local_open_parent(removal->local, key, false, &folder, &name);
    if (tarn_status_reason(status) == TARN_OBJECT_NOT_FOUND) {
        tarn_status_free(status);
        return TARN_OK;
    }
    TARN_TRY(status);
    if (unlinkat(folder, name, 0) != 0)
        return tarn_store__local_is_absent(errno) || errno == EISDIR
                   ? TARN_OK
                   : tarn_store__local_error(errno, "delete", key);
    if (removal->count > 0 &&
        tarn_store__is_same_folder(folder, removal->folders[removal->count - 1]))
        return TARN_OK;
    removal->keys[removal->count] = key;
    removal->folders[removal->count++] = folder;
    folder = -1;
    return TARN_OK;
}

static struct tarn_status *sync_folders(struct removal *removal)
{
    int errors[BATCH_COUNT_MAX];
    struct tarn_status *first = TARN_OK;
    tarn_store__sync_all(removal->local->crew, removal->folders, errors, removal->count);
    for (size_t i = 0; i < removal->count; i++) {
        struct tarn_status *status =
            tarn_store__folder_synced(removal->local, errors[i], removal->keys[i]);
        if (first == TARN_OK)
            first = status;
        else
            tarn_status_free(status);
    }
    return first;
}

/* What was deleted before one that could not be is made durable all the same. */
static struct tarn_status *remove_batch(struct local *local, const char *const *keys, size_t count)
{
    TARN_OWN(removal_fini) struct removal removal = {.local = local};
    struct tarn_status *status = tarn_store__local_writable(local, keys[0]);
    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = remove_one(&removal, keys[i]);
    struct tarn_status *synced = sync_folders(&removal);
    if (status == TARN_OK)
        return synced;
    tarn_status_free(synced);
    return status;
}

struct tarn_status *tarn_store__local_remove_many(void *self, struct tarn_op *op,
                                                  const char *const *keys, size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t n = TARN_MIN(count - done, BATCH_COUNT_MAX);
        TARN_TRY(tarn_op_check(op));
        TARN_TRY(remove_batch(self, keys + done, n));
        done += n;
    }
    return TARN_OK;
}
