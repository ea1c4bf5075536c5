/* hdfs - the driver's calls, and opening it. What it is and promises stands in hdfs.h. */
#include "store/hdfs.h"

#define OPEN_MS 60000 /* asking for the root may take so long at most */

static struct tarn_status *hdfs_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                     struct tarn_object *out)
{
    struct tarn_hdfs_status status = {0};
    TARN_TRY(tarn_hdfs__find(self, op, tarn_hdfs__path(self, op, key), found, &status));
    *found = *found && !status.is_folder;
    out->size = status.size;
    out->mtime_ms = status.mtime_ms;
    return TARN_OK;
}

static struct tarn_status *hdfs_put(void *self, struct tarn_op *op, const char *key,
                                    struct tarn_slice body)
{
    bool done = false;
    TARN_TRY(tarn_hdfs__known(tarn_hdfs__put(self, op, key, body, TARN_HDFS_REPLACE, &done)));
    if (done)
        return TARN_OK;
    return tarn_status_new(TARN_PATH_INVALID, "'%s' is a folder", key);
}

/* ---- creation, and whether it is to be trusted ---- */

/* A gateway before something else might do as HDFS does in all but this. */
static struct tarn_status *hdfs_probe(void *self, struct tarn_op *op)
{
    bool done = false;
    char *one = NULL, *two = NULL;
    struct tarn_hdfs *hdfs = self;
    struct tarn_slice body = tarn_slice_str("is rename without replacing what it says?");
    const char *path = tarn_hdfs__path(hdfs, op, ".tarn/probe");
    TARN_TRY(tarn_hdfs__create_draft(hdfs, op, path, body, &one));
    struct tarn_status *status = tarn_hdfs__create_draft(hdfs, op, path, body, &two);
    if (status == TARN_OK)
        status = tarn_hdfs__rename(hdfs, op, one, two, TARN_HDFS_KEEP, &done);
    tarn_hdfs__discard(hdfs, one);
    tarn_hdfs__discard(hdfs, two);
    tarn_hdfs__discard(hdfs, tarn_hdfs__path(hdfs, op, ".tarn")); /* unless there is more in it */
    TARN_TRY(status);
    if (!done)
        return TARN_OK;
    return tarn_status_new(
        TARN_CONFIG_INVALID,
        "WebHDFS at %s renames onto a file that is there (tried in %s), so that "
        "two writers could take the same snapshot; only HDFS' own rename is safe",
        hdfs->settings.endpoints[0], path);
}

static struct tarn_status *hdfs_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                              struct tarn_slice body, bool *created)
{
    bool found;
    struct tarn_hdfs_status status = {0};
    *created = false;
    TARN_TRY(tarn_hdfs__put(self, op, key, body, TARN_HDFS_KEEP, created));
    if (*created)
        return TARN_OK;
    TARN_TRY(tarn_hdfs__find(self, op, tarn_hdfs__path(self, op, key), &found, &status));
    if (found && status.is_folder)
        return tarn_status_new(TARN_PATH_INVALID, "'%s' is a folder", key);
    return TARN_OK;
}

/* ---- folders ---- */

static struct tarn_status *hdfs_remove(void *self, struct tarn_op *op, const char *key)
{
    return tarn_hdfs__delete(self, op, tarn_hdfs__path(self, op, key));
}

/* The folder's inode tells a move of ours whose answer was lost from a folder that was there. */
static struct tarn_status *settle_move(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *to,
                                       int64_t file_id, struct tarn_status *consumed)
{
    bool found = false;
    struct tarn_hdfs_status status = {0};
    struct tarn_status *looked =
        tarn_hdfs__find(hdfs, op, tarn_hdfs__path(hdfs, op, to), &found, &status);
    tarn_status_free(looked);
    if (!found)
        return consumed;
    enum tarn_reason reason = tarn_status_reason(consumed);
    tarn_status_free(consumed);
    if (file_id != 0 && status.file_id == file_id)
        return TARN_OK;
    return reason == TARN_STORE_DENIED
               ? tarn_status_new(reason, "'%s' is there and may not be replaced", to)
               : tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", to);
}

static struct tarn_status *hdfs_move_folder(void *self, struct tarn_op *op, const char *from,
                                            const char *to)
{
    bool found;
    struct tarn_hdfs_status folder;
    const char *from_path = tarn_hdfs__path(self, op, from);
    char *to_path = tarn_hdfs__path(self, op, to), *slash = strrchr(to_path, '/');
    TARN_TRY(tarn_hdfs__find(self, op, from_path, &found, &folder));
    if (!found || !folder.is_folder)
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no folder '%s'", from);
    *slash = '\0';
    TARN_TRY(tarn_hdfs__make_folder(self, op, to_path[0] == '\0' ? "/" : to_path));
    *slash = '/';
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf query = {0};
    tarn_buf_add_str(&query, "&renameoptions=NONE&destination=");
    tarn_url_encode(&query, tarn_slice_str(to_path), "/");
    struct tarn_hdfs_request request = {
        .method = "PUT", .op = "RENAME", .path = from_path, .query = tarn_buf_cstr(&query)};
    struct tarn_status *status = tarn_hdfs__ask(self, op, &request, &out, NULL);
    return status == TARN_OK ? TARN_OK : settle_move(self, op, to, folder.file_id, status);
}

/* ---- life ---- */

static void hdfs_close(void *self)
{
    struct tarn_hdfs *hdfs = self;
    tarn_fetch_free(hdfs->fetch);
    tarn_hdfs__settings_fini(&hdfs->settings);
    free(hdfs->token);
    pthread_mutex_destroy(&hdfs->mutex);
    free(hdfs);
}

static const struct tarn_store_ops hdfs_ops = {
    .scheme = "hdfs",
    .remote = true,
    .probe = hdfs_probe,
    .get = tarn_hdfs__get,
    .stat = hdfs_stat,
    .put = hdfs_put,
    .put_many = tarn_hdfs__put_many,
    .put_if_absent = hdfs_put_if_absent,
    .remove = hdfs_remove,
    .remove_many = tarn_hdfs__remove_many,
    .list = tarn_hdfs__list,
    .move_folder = hdfs_move_folder,
    .prune = tarn_hdfs__prune,
    .open = tarn_hdfs__open_reader,
    .read_at = tarn_hdfs__read_at,
    .reader_close = tarn_hdfs__close_reader,
    .create = tarn_hdfs__create,
    .append = tarn_hdfs__append,
    .finish = tarn_hdfs__finish,
    .abort = tarn_hdfs__abort,
    .close = hdfs_close,
};

/* A wrong endpoint or name is better met here than by the first commit. */
static struct tarn_status *look_at_root(struct tarn_hdfs *hdfs, const char *uri)
{
    bool found;
    struct tarn_op op;
    struct tarn_hdfs_status status = {0};
    tarn_op_init(&op);
    op.deadline_mono_ms = tarn_clock_mono_ms() + OPEN_MS;
    struct tarn_status *failure =
        tarn_hdfs__find(hdfs, &op, tarn_hdfs__path(hdfs, &op, ""), &found, &status);
    tarn_op_fini(&op);
    if (failure != TARN_OK)
        return tarn_status_wrap(failure, "%s by WebHDFS at %s (hdfs.webhdfs_endpoint)", uri,
                                hdfs->settings.endpoints[0]);
    if (found && !status.is_folder)
        return tarn_status_new(TARN_PATH_INVALID, "%s is a file", uri);
    return TARN_OK;
}

struct tarn_status *tarn_store__hdfs_open(const struct tarn_conf *conf, const char *uri,
                                          struct tarn_store **out)
{
    struct tarn_hdfs *hdfs = tarn_calloc(1, sizeof *hdfs);
    pthread_mutex_init(&hdfs->mutex, NULL);
    struct tarn_hdfs_settings *settings = &hdfs->settings;
    struct tarn_status *status = tarn_hdfs__settings_read(conf, uri, settings);
    if (status == TARN_OK) {
        struct tarn_fetch_options options = {
            .ca_file = settings->ca_file[0] == '\0' ? NULL : settings->ca_file,
            .connect_timeout_ms = settings->connect_timeout_ms,
            .idle_timeout_ms = settings->idle_timeout_ms,
            .connection_max = settings->connections,
        };
        status = tarn_fetch_new(&options, &hdfs->fetch);
    }
    if (status == TARN_OK)
        status = look_at_root(hdfs, uri);
    if (status != TARN_OK) {
        hdfs_close(hdfs);
        return status;
    }
    *out = tarn_store_new(&hdfs_ops, hdfs);
    return TARN_OK;
}
