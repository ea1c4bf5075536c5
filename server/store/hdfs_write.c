/*
 * hdfs_write - objects come into being: drafts under hidden names, and the rename that publishes them.
 */
#include "store/hdfs.h"

#define STEM_SIZE_MAX                                                                              \
    ((size_t)200) /* of the name: dots, uuid and ".tmp" must fit into 255 bytes too */
#define CREATE_TRIES_MAX 4
#define SETTLE_TRIES_MAX 6
#define DISCARD_MS 10000
#define LANES_MAX ((size_t)8)

/* --- drafts --- */

static char *hidden_name(struct tarn_arena *arena, const char *path)
{
    char uuid[TARN_UUID_SIZE];
    const char *name = strrchr(path, '/') + 1;
    size_t stem = strnlen(name, STEM_SIZE_MAX);
    while (stem > 0 && ((unsigned char)name[stem] & 0xc0) == 0x80)
        stem--; /* not through the middle of a character */
    tarn_uuid_random(uuid);
    return tarn_arena_printf(arena, "%.*s.%.*s.%s.tmp", (int)(name - path), path, (int)stem, name,
                             uuid);
}

/* What was created and can't be used is taken away; whatever comes of that, nobody looks at it. */
void tarn_hdfs__discard(struct tarn_hdfs *hdfs, const char *draft)
{
    if (draft == NULL)
        return;
    struct tarn_op op;
    tarn_op_init(&op);
    op.deadline_mono_ms = tarn_clock_mono_ms() + DISCARD_MS;
    tarn_status_free(tarn_hdfs__delete(hdfs, &op, draft));
    tarn_op_fini(&op);
}

/* Each try has a name of its own: one that was given up may still arrive, and would truncate the other. */
struct tarn_status *tarn_hdfs__create_draft(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                            const char *path, struct tarn_slice body, char **draft)
{
    for (int tries = 1;; tries++) {
        struct tarn_hdfs_outcome outcome;
        TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
        char *name = hidden_name(op->arena, path);
        struct tarn_hdfs_request request = {
            .method = "PUT",
            .op = "CREATE",
            .path = name,
            .query = "&overwrite=false&createparent=true",
            .two_steps = true,
            .once = true,
            .body = body,
        };
        struct tarn_status *status = tarn_hdfs__ask(hdfs, op, &request, &out, &outcome);
        if (status == TARN_OK) {
            *draft = name;
            return TARN_OK;
        }
        enum tarn_reason reason = tarn_status_reason(status);
        if (outcome.unsure || reason == TARN_IO_ERROR || reason == TARN_DISK_FULL)
            tarn_hdfs__discard(hdfs, name); /* a part of it may be there */
        if (!outcome.unsure || tries == CREATE_TRIES_MAX)
            return status;
        tarn_status_free(status);
        tarn_hdfs__back_off(op, tries);
        TARN_TRY(tarn_op_check(op));
    }
}

/* --- renaming --- */

enum told { RENAMED, TAKEN, SOURCE_GONE, UNSURE, REFUSED };

static enum told ask_rename(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *from,
                            const char *to, enum tarn_hdfs_rename how, struct tarn_status **status)
{
    struct tarn_hdfs_outcome outcome;
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf query = {0};
    tarn_buf_add_str(&query, "&destination=");
    tarn_url_encode(&query, tarn_slice_str(to), "/");
    tarn_buf_printf(&query, "&renameoptions=%s", how == TARN_HDFS_REPLACE ? "OVERWRITE" : "NONE");
    struct tarn_hdfs_request request = {.method = "PUT",
                                        .op = "RENAME",
                                        .path = from,
                                        .query = tarn_buf_cstr(&query),
                                        .once = true};
    *status = tarn_hdfs__ask(hdfs, op, &request, &out, &outcome);
    if (*status == TARN_OK) {
        /* The old rename's answer, for one that doesn't know renameoptions. */
        bool renamed = true;
        if (out.size > 0)
            tarn_status_free(tarn_hdfs__decode_boolean(tarn_buf_slice(&out), &renamed));
        return renamed ? RENAMED : TAKEN;
    }
    if (outcome.unsure)
        return UNSURE;
    switch (tarn_status_reason(*status)) {
    case TARN_OBJECT_EXISTS:
        return TAKEN;
    case TARN_OBJECT_NOT_FOUND:
        return SOURCE_GONE;
    default:
        return REFUSED;
    }
}

/* Whether a draft is where it was. Nobody but our own rename takes it away. */
static struct tarn_status *is_there(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *path,
                                    bool *there, bool *is_folder)
{
    struct tarn_hdfs_status found = {0};
    TARN_TRY(tarn_hdfs__find(hdfs, op, path, there, &found));
    *is_folder = *there && found.is_folder;
    return TARN_OK;
}

static struct tarn_status *unknown(const char *to, struct tarn_status *consumed)
{
    struct tarn_status *status = tarn_status_new(TARN_OUTCOME_UNKNOWN, "rename to '%s': %s", to,
                                                 tarn_status_message(consumed));
    tarn_status_free(consumed);
    return status;
}

/* A refusal that isn't about the name: of a folder that stands there it is said in many ways. */
static struct tarn_status *refused(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *to,
                                   struct tarn_status *consumed)
{
    bool there = false, is_folder = false;
    struct tarn_status *looked = is_there(hdfs, op, to, &there, &is_folder);
    tarn_status_free(looked);
    if (!is_folder)
        return consumed;
    tarn_status_free(consumed);
    return tarn_status_new(TARN_PATH_INVALID, "'%s' is a folder", to);
}

/*
 * The draft's rename may have been carried out by a try whose answer was lost, or may yet be. As long as the
 * draft is there it has not been; once it is gone it has. So: ask again until one of both is told, and when
 * nobody can be asked, nobody knows.
 */
struct tarn_status *tarn_hdfs__rename(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *from,
                                      const char *to, enum tarn_hdfs_rename how, bool *done)
{
    bool was_unsure = false;
    *done = false;
    for (int tries = 0;; tries++) {
        struct tarn_status *status = TARN_OK;
        enum told told = ask_rename(hdfs, op, from, to, how, &status);
        if (told == RENAMED) {
            *done = true;
            return TARN_OK;
        }
        if (!was_unsure && told != UNSURE) {
            if (told != TAKEN)
                return refused(hdfs, op, to, status);
            tarn_status_free(status);
            return TARN_OK;
        }
        was_unsure = true;
        bool there = false, is_folder = false;
        struct tarn_status *looked = is_there(hdfs, op, from, &there, &is_folder);
        if (looked != TARN_OK) {
            tarn_status_free(status);
            return unknown(to, looked);
        }
        if (!there) {
            tarn_status_free(status);
            *done = true;
            return TARN_OK;
        }
        if (told == TAKEN) { /* by somebody else: the draft is still here */
            tarn_status_free(status);
            return TARN_OK;
        }
        if (told == REFUSED)
            return refused(hdfs, op, to, status);
        if (tries == SETTLE_TRIES_MAX)
            return unknown(to, status);
        tarn_status_free(status);
        tarn_hdfs__back_off(op, tries);
        struct tarn_status *over = tarn_op_check(op);
        if (over != TARN_OK)
            return unknown(to, over);
    }
}

struct tarn_status *tarn_hdfs__put(struct tarn_hdfs *hdfs, struct tarn_op *op, const char *key,
                                   struct tarn_slice body, enum tarn_hdfs_rename how, bool *done)
{
    char *draft = NULL;
    const char *path = tarn_hdfs__path(hdfs, op, key);
    *done = false;
    TARN_TRY(tarn_hdfs__create_draft(hdfs, op, path, body, &draft));
    struct tarn_status *status = tarn_hdfs__rename(hdfs, op, draft, path, how, done);
    if (!*done && tarn_status_reason(status) != TARN_OUTCOME_UNKNOWN)
        tarn_hdfs__discard(hdfs, draft);
    return status;
}

/* Who writes under a name of its own doesn't ask by it: not knowing is a failure like others. Consumes. */
struct tarn_status *tarn_hdfs__known(struct tarn_status *status)
{
    if (tarn_status_reason(status) != TARN_OUTCOME_UNKNOWN)
        return status;
    struct tarn_status *failed =
        tarn_status_new(TARN_STORE_UNAVAILABLE, "%s", tarn_status_message(status));
    tarn_status_free(status);
    return failed;
}

static struct tarn_status *put_new(struct tarn_hdfs *hdfs, struct tarn_op *op,
                                   const struct tarn_new_object *object)
{
    bool done = false;
    TARN_TRY(tarn_hdfs__known(
        tarn_hdfs__put(hdfs, op, object->key, object->body, TARN_HDFS_KEEP, &done)));
    if (!done)
        return tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", object->key);
    return TARN_OK;
}

/* --- many at once --- */

struct batch {
    struct tarn_hdfs *hdfs;
    const struct tarn_op *op;
    const struct tarn_new_object *objects; /* to be put */
    const char *const *keys;               /* or to be removed */
    size_t count;
    atomic_size_t next;
    atomic_bool failed;
};

struct lane {
    struct batch *batch;
    pthread_t thread;
    struct tarn_status *status; /* owned: the first failure */
};

static struct tarn_status *do_one(const struct batch *batch, size_t i)
{
    struct tarn_op op;
    tarn_op_init_child(&op, batch->op);
    struct tarn_status *status =
        batch->objects != NULL
            ? put_new(batch->hdfs, &op, &batch->objects[i])
            : tarn_hdfs__delete(batch->hdfs, &op,
                                tarn_hdfs__path(batch->hdfs, &op, batch->keys[i]));
    tarn_op_fini(&op);
    return status;
}

/* Takes one after the other until there is none left, or one has failed. */
static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    struct batch *batch = lane->batch;
    while (lane->status == TARN_OK && !atomic_load(&batch->failed)) {
        size_t i = atomic_fetch_add(&batch->next, 1);
        if (i >= batch->count)
            break;
        lane->status = do_one(batch, i);
    }
    if (lane->status != TARN_OK)
        atomic_store(&batch->failed, true);
    return NULL;
}

static struct tarn_status *run_batch(struct batch *batch)
{
    struct lane lanes[LANES_MAX] = {0};
    size_t lane_count = TARN_MIN(batch->count, LANES_MAX), started = 1;
    if (batch->count == 0)
        return TARN_OK;
    for (size_t i = 0; i < lane_count; i++)
        lanes[i].batch = batch;
    while (started < lane_count &&
           pthread_create(&lanes[started].thread, NULL, run_lane, &lanes[started]) == 0)
        started++;
    run_lane(&lanes[0]); /* this thread's own; where no other can be made it does all */
    struct tarn_status *first = tarn_move(lanes[0].status);
    for (size_t i = 1; i < started; i++) {
        pthread_join(lanes[i].thread, NULL);
        if (first == TARN_OK)
            first = lanes[i].status;
        else
            tarn_status_free(lanes[i].status);
    }
    return first;
}

struct tarn_status *tarn_hdfs__put_many(void *self, struct tarn_op *op,
                                        const struct tarn_new_object *objects, size_t count)
{
    struct batch batch = {.hdfs = self, .op = op, .objects = objects, .count = count};
    return run_batch(&batch);
}

struct tarn_status *tarn_hdfs__remove_many(void *self, struct tarn_op *op, const char *const *keys,
                                           size_t count)
{
    struct batch batch = {.hdfs = self, .op = op, .keys = keys, .count = count};
    return run_batch(&batch);
}

/* --- writers --- */

struct writer {
    struct tarn_hdfs *hdfs;
    char *key;             /* owned */
    char *draft;           /* owned; NULL: nothing was sent yet */
    struct tarn_buf bytes; /* not yet sent, less than a chunk */
    bool failed;
};

struct tarn_status *tarn_hdfs__create(void *self, struct tarn_op *op, const char *key, void **out)
{
    struct writer *writer = tarn_calloc(1, sizeof *writer);
    writer->hdfs = self;
    writer->key = tarn_strdup(key);
    *out = writer;
    return TARN_OK;
}

static void writer_free(struct writer *writer)
{
    tarn_buf_drop(&writer->bytes);
    free(writer->draft);
    free(writer->key);
    free(writer);
}

void tarn_hdfs__abort(void *self)
{
    struct writer *writer = self;
    tarn_hdfs__discard(writer->hdfs, writer->draft);
    writer_free(writer);
}

/* An append whose answer was lost may have been done or not, in whole or in part: the writer ends. */
static struct tarn_status *append_to_draft(struct writer *writer, struct tarn_op *op,
                                           struct tarn_slice bytes)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_hdfs_request request = {.method = "POST",
                                        .op = "APPEND",
                                        .path = writer->draft,
                                        .two_steps = true,
                                        .once = true,
                                        .body = bytes};
    return tarn_hdfs__ask(writer->hdfs, op, &request, &out, NULL);
}

static struct tarn_status *send_bytes(struct writer *writer, struct tarn_op *op,
                                      struct tarn_slice bytes)
{
    char *draft = NULL;
    if (writer->draft != NULL)
        return append_to_draft(writer, op, bytes);
    const char *path = tarn_hdfs__path(writer->hdfs, op, writer->key);
    TARN_TRY(tarn_hdfs__create_draft(writer->hdfs, op, path, bytes, &draft));
    writer->draft = tarn_strdup(draft);
    return TARN_OK;
}

struct tarn_status *tarn_hdfs__append(void *self, struct tarn_op *op, struct tarn_slice bytes)
{
    struct writer *writer = self;
    size_t chunk = writer->hdfs->settings.chunk_size;
    while (bytes.size > 0 && !writer->failed) {
        size_t size = TARN_MIN(bytes.size, chunk - writer->bytes.size);
        tarn_buf_add(&writer->bytes, bytes.data, size);
        bytes = tarn_slice_of(bytes.data + size, bytes.size - size);
        if (writer->bytes.size < chunk)
            return TARN_OK;
        struct tarn_status *status = send_bytes(writer, op, tarn_buf_slice(&writer->bytes));
        writer->failed = status != TARN_OK;
        tarn_buf_clear(&writer->bytes);
        TARN_TRY(status);
    }
    return TARN_OK;
}

static struct tarn_status *publish(struct writer *writer, struct tarn_op *op)
{
    bool done = false;
    if (writer->failed)
        return tarn_status_new(TARN_IO_ERROR, "'%s' is not published: a write to it failed before",
                               writer->key);
    if (writer->bytes.size > 0 || writer->draft == NULL)
        TARN_TRY(send_bytes(writer, op, tarn_buf_slice(&writer->bytes)));
    const char *path = tarn_hdfs__path(writer->hdfs, op, writer->key);
    TARN_TRY(tarn_hdfs__rename(writer->hdfs, op, writer->draft, path, TARN_HDFS_KEEP, &done));
    if (!done)
        return tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", writer->key);
    free(writer->draft);
    writer->draft = NULL;
    return TARN_OK;
}

struct tarn_status *tarn_hdfs__finish(void *self, struct tarn_op *op)
{
    struct writer *writer = self;
    struct tarn_status *status = tarn_hdfs__known(publish(writer, op));
    tarn_hdfs__abort(writer);
    return status;
}
