/*
 * s3_move - a folder to another place: S3 has none, so every object is copied, then every old one removed.
 *
 *   intent put -> all copied, the schemas last -> all old ones removed, the schemas first -> intent removed
 *
 * A folder is a table for those who have schemas in it: at each moment the old place, the new one or both are a
 * whole table. As long as the old one has schemas it is the one that counts; without them the move has happened,
 * and what is left there only waits for its removal. The intent, .tarn/moves/HASH, names both places; a move that
 * was cut off is finished by the same move asked for again, or by finish_moves, which whoever owns the
 * warehouse calls at its start. What others put into the old place meanwhile is moved too, as long as it is seen
 * before the old place is empty.
 */
#include "store/s3.h"

#define INTENTS ".tarn/moves"
#define ROUNDS_MAX 10
#define BATCH ((size_t)256)
#define COPY_SIZE_MAX ((int64_t)5 << 30) /* S3's own limit of one copy */

struct move {
    struct tarn_s3 *s3;
    const char *from, *to;
    struct tarn_status *left; /* owned: why some of the old place is still there */
};

/* --- one object --- */

static struct tarn_status *decode_copy(void *arg, struct tarn_op *op, struct tarn_slice body)
{
    struct tarn_slice etag;
    return tarn_s3__decode_one(body, op->arena, "CopyObject", "ETag", &etag);
}

static char *new_key(const struct move *move, struct tarn_op *op, const struct tarn_object *object)
{
    return tarn_arena_printf(op->arena, "%s%s", move->to,
                             (const char *)object->key.data + strlen(move->from));
}

/* A source that is gone (404) was moved or removed by somebody. */
static void make_copy(struct move *move, struct tarn_op *op, const struct tarn_object *object,
                      struct tarn_s3_request *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf source = {0};
    const char *full = tarn_s3__full_key(move->s3, op, (const char *)object->key.data);
    tarn_buf_printf(&source, "/%s/", move->s3->settings.bucket);
    tarn_url_encode(&source, tarn_slice_str(full), "/");
    *out = (struct tarn_s3_request){
        .method = "PUT", .key = new_key(move, op, object), .decode = decode_copy};
    tarn_s3__add_header(out, "x-amz-copy-source",
                        tarn_arena_str(op->arena, tarn_buf_slice(&source)));
}

static struct tarn_status *copy_some(struct move *move, struct tarn_op *op,
                                     const struct tarn_object *objects, size_t count)
{
    struct tarn_s3_request *requests = tarn_arena_calloc(op->arena, count, sizeof *requests);
    for (size_t i = 0; i < count; i++)
        make_copy(move, op, &objects[i], &requests[i]);
    struct tarn_status *status = tarn_s3__ask_every(move->s3, op, requests, count);
    for (size_t i = 0; i < count; i++) {
        if (status == TARN_OK && requests[i].status / 100 != 2 && requests[i].status != 404)
            status = tarn_status_new(TARN_STORE_UNAVAILABLE, "copying to '%s' was answered %d",
                                     requests[i].key, requests[i].status);
        tarn_s3__request_drop(&requests[i]);
    }
    return status;
}

static struct tarn_status *copy_all(struct move *move, struct tarn_op *op,
                                    const struct tarn_object *objects, size_t count)
{
    for (size_t i = 0; i < count; i += BATCH) {
        TARN_OWN(tarn_op_fini) struct tarn_op child;
        tarn_op_init_child(&child, op);
        TARN_TRY(copy_some(move, &child, &objects[i], TARN_MIN(BATCH, count - i)));
    }
    return TARN_OK;
}

static struct tarn_status *remove_all(struct move *move, struct tarn_op *op,
                                      const struct tarn_object *objects, size_t count)
{
    const char **keys = tarn_arena_alloc(op->arena, (count + 1) * sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = (const char *)objects[i].key.data;
    return tarn_s3__remove_many(move->s3, op, keys, count);
}

/* --- the move --- */

static bool is_schema(const struct move *move, const struct tarn_object *object)
{
    struct tarn_slice rest =
        tarn_slice_of(object->key.data + strlen(move->from), object->key.size - strlen(move->from));
    return tarn_slice_starts_with(rest, tarn_slice_str("/schema/"));
}

/* Schemas behind all others; returns how many others there are. */
static size_t schemas_last(const struct move *move, struct tarn_op *op, struct tarn_object *objects,
                           size_t count)
{
    struct tarn_object *schemas = tarn_arena_calloc(op->arena, count + 1, sizeof *schemas);
    size_t n = 0, schema_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_schema(move, &objects[i]))
            schemas[schema_count++] = objects[i];
        else
            objects[n++] = objects[i];
    }
    if (schema_count > 0)
        memcpy(&objects[n], schemas, schema_count * sizeof *schemas);
    return n;
}

static struct tarn_status *check_sizes(const struct tarn_object *objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (objects[i].size > COPY_SIZE_MAX)
            return tarn_status_new(TARN_UNIMPLEMENTED,
                                   "'%.*s' has %" PRId64
                                   " bytes: objects above 5 GiB can't be moved "
                                   "on S3",
                                   TARN_SLICE_ARG(objects[i].key), objects[i].size);
    return TARN_OK;
}

/* Copies what lies in the old place and takes its schemas away: from then on the move has happened. */
static struct tarn_status *move_over(struct move *move, struct tarn_op *op, bool *empty)
{
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(tarn_s3__list(move->s3, op, move->from, true, &objects, &count));
    *empty = count == 0;
    TARN_TRY(check_sizes(objects, count));
    size_t others = schemas_last(move, op, objects, count);
    TARN_TRY(copy_all(move, op, objects, others));
    TARN_TRY(copy_all(move, op, objects + others, count - others));
    TARN_TRY(remove_all(move, op, objects + others, count - others));
    struct tarn_status *left = remove_all(move, op, objects, others);
    if (left != TARN_OK)
        move->left = left;
    return TARN_OK;
}

static struct tarn_status *remove_key(struct tarn_s3 *s3, struct tarn_op *op, const char *key)
{
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "DELETE", .key = key};
    return tarn_s3__ask(s3, op, &request);
}

/* Whether the old place is still a table: then it is the one that counts. */
static struct tarn_status *is_begun_only(struct move *move, struct tarn_op *op, bool *out)
{
    struct tarn_object *objects;
    size_t count;
    const char *folder = tarn_arena_printf(op->arena, "%s/schema", move->from);
    TARN_TRY(tarn_s3__list(move->s3, op, folder, true, &objects, &count));
    *out = count > 0;
    return TARN_OK;
}

/* What an attempt before copied may be out of date. */
static struct tarn_status *clear_target(struct move *move, struct tarn_op *op)
{
    bool begun_only;
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(is_begun_only(move, op, &begun_only));
    if (!begun_only)
        return TARN_OK;
    TARN_TRY(tarn_s3__list(move->s3, op, move->to, true, &objects, &count));
    return remove_all(move, op, objects, count);
}

/* Objects of the old place that couldn't be removed don't undo the move: the intent stays, and with it the way
 * to finish. */
static struct tarn_status *carry_out(struct move *move, struct tarn_op *op, const char *intent)
{
    bool empty = false;
    for (int round = 0; !empty; round++) {
        if (round == ROUNDS_MAX)
            return tarn_status_new(TARN_STORE_UNAVAILABLE,
                                   "'%s' can't be moved: somebody keeps writing there", move->from);
        TARN_TRY(move_over(move, op, &empty));
        if (move->left == TARN_OK)
            continue;
        tarn_log_status(op, TARN_WARN, "store.move_left_behind", tarn_move(move->left));
        return TARN_OK;
    }
    return remove_key(move->s3, op, intent);
}

/* --- intents --- */

static char *intent_key(struct tarn_op *op, const char *from, const char *to)
{
    char hash[TARN_S3_HASH_SIZE];
    tarn_s3__hash(tarn_slice_str(tarn_arena_printf(op->arena, "%s\n%s", from, to)), hash);
    return tarn_arena_printf(op->arena, INTENTS "/%s", hash);
}

static struct tarn_status *put_intent(const struct move *move, struct tarn_op *op, const char *key)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_set_str(json, "from", move->from);
    tarn_json_set_str(json, "to", move->to);
    tarn_json_print(json, 0, &text);
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "PUT", .key = key, .body = tarn_buf_slice(&text)};
    return tarn_s3__ask(move->s3, op, &request);
}

static struct tarn_status *check_places(const struct move *move, struct tarn_op *op)
{
    struct tarn_object *objects;
    size_t count;
    bool found;
    struct tarn_s3_meta meta;
    TARN_TRY(tarn_s3__list(move->s3, op, move->from, true, &objects, &count));
    if (count == 0)
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "there is no folder '%s'", move->from);
    TARN_TRY(check_sizes(objects, count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_s3__key_check(move->s3, new_key(move, op, &objects[i])));
    TARN_TRY(tarn_s3__look(move->s3, op, move->to, &found, &meta));
    TARN_TRY(tarn_s3__list(move->s3, op, move->to, true, &objects, &count));
    if (found || count > 0)
        return tarn_status_new(TARN_OBJECT_EXISTS, "'%s' is already there", move->to);
    return TARN_OK;
}

struct tarn_status *tarn_s3__move_folder(void *self, struct tarn_op *op, const char *from,
                                         const char *to)
{
    bool begun;
    struct tarn_s3_meta meta;
    struct move move = {.s3 = self, .from = from, .to = to};
    const char *intent = intent_key(op, from, to);
    TARN_TRY(tarn_s3__key_check(self, from));
    TARN_TRY(tarn_s3__key_check(self, to));
    TARN_TRY(tarn_s3__look(self, op, intent, &begun, &meta));
    if (begun) {
        TARN_TRY(clear_target(&move, op));
    } else {
        TARN_TRY(tarn_s3__finish_moves(self, op, true));
        TARN_TRY(check_places(&move, op));
        TARN_TRY(put_intent(&move, op, intent));
    }
    return carry_out(&move, op, intent);
}

static struct tarn_status *read_intent(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                       struct move *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_s3__request_drop)
    struct tarn_s3_request request = {.method = "GET", .key = key};
    *out = (struct move){.s3 = s3};
    TARN_TRY(tarn_s3__ask(s3, op, &request));
    if (request.status == 404)
        return TARN_OK;
    TARN_TRY(tarn_json_parse(tarn_buf_slice(&request.answer), &json));
    struct tarn_slice from = tarn_json_text(tarn_json_find(json, "from"));
    struct tarn_slice to = tarn_json_text(tarn_json_find(json, "to"));
    out->from = tarn_arena_str(op->arena, from);
    out->to = tarn_arena_str(op->arena, to);
    TARN_TRY(tarn_store__key_check(out->from, false));
    TARN_TRY(tarn_store__key_check(out->to, false));
    return strcmp(intent_key(op, out->from, out->to), key) == 0
               ? TARN_OK
               : tarn_status_new(TARN_VALUE_INVALID, "it isn't the move that its name says");
}

static struct tarn_status *finish_move(struct tarn_s3 *s3, struct tarn_op *op, const char *key,
                                       bool happened_only)
{
    bool begun_only;
    struct move move;
    TARN_TRY(read_intent(s3, op, key, &move));
    if (move.from == NULL)
        return TARN_OK;
    TARN_TRY(is_begun_only(&move, op, &begun_only));
    if (begun_only && happened_only)
        return TARN_OK;
    TARN_TRY(clear_target(&move, op));
    return carry_out(&move, op, key);
}

struct tarn_status *tarn_s3__finish_moves(void *self, struct tarn_op *op, bool happened_only)
{
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(tarn_s3__list(self, op, INTENTS, false, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        const char *key = (const char *)objects[i].key.data;
        if (objects[i].is_folder)
            continue;
        struct tarn_status *status = finish_move(self, op, key, happened_only);
        if (status != TARN_OK)
            return tarn_status_wrap(status, "the move in '%s', which was cut off", key);
    }
    return TARN_OK;
}
