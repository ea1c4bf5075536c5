#include "table/expire_internal.h"

/*
 * What a round of expiry may take along: what the deltas behind the expired snapshots delete, what only their changelogs list, and what they
 * are made of. In proportion to them: no manifest is read that deletes nothing. What of it stays is said in expire_roots.c.
 */

/* --- where files lie --- */

static const char *key_of_uri(struct tarn_leave *leave, struct tarn_slice uri)
{
    struct tarn_slice key;
    return tarn_store_key_of(leave->table->env->store, uri, &key)
               ? tarn_arena_str(leave->op->arena, key)
               : NULL;
}

static struct tarn_status *bucket_file(struct tarn_leave *leave, struct tarn_slice partition,
                                       int32_t bucket, struct tarn_slice name, const char **out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf folder = {0};
    TARN_TRY(
        tarn_bucket_path(&leave->view->schema, &leave->view->options, partition, bucket, &folder));
    *out = tarn_table__key(leave->op, leave->table, "%s/%.*s", tarn_buf_cstr(&folder),
                           TARN_SLICE_ARG(name));
    return TARN_OK;
}

/* Beside the data file. */
static const char *sibling(struct tarn_leave *leave, const char *key, struct tarn_slice name)
{
    const char *slash = strrchr(key, '/');
    return tarn_arena_printf(leave->op->arena, "%.*s%.*s", (int)(slash - key + 1), key,
                             TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_leave__index_key(struct tarn_leave *leave,
                                          const struct tarn_index_file *file, const char **out)
{
    struct tarn_slice beside =
        tarn_schema_option(&leave->view->schema, "index-file-in-data-file-dir");
    if (file->external_path.data != NULL) {
        *out = key_of_uri(leave, file->external_path);
        return TARN_OK;
    }
    if (tarn_slice_is(beside, "true"))
        return bucket_file(leave, file->partition, file->bucket, file->name, out);
    *out = tarn_table__key(leave->op, leave->table, "index/%.*s", TARN_SLICE_ARG(file->name));
    return TARN_OK;
}

/* --- what was found --- */

void tarn_leave__file_key(const struct tarn_manifest_entry *entry, struct tarn_buf *key)
{
    tarn_key_add_bytes(key, entry->partition);
    tarn_key_add_i64(key, entry->bucket);
    tarn_buf_add_slice(key, entry->file.name);
}

static struct tarn_status *add_file(struct tarn_leave *leave,
                                    const struct tarn_manifest_entry *entry,
                                    enum tarn_leaving_kind kind)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    struct tarn_arena *arena = leave->op->arena;
    const struct tarn_data_file *file = &entry->file;
    tarn_leave__file_key(entry, &key);
    if (tarn_map_find(leave->files, tarn_buf_slice(&key)) != NULL)
        return TARN_OK;
    struct tarn_leaving *l = tarn_arena_calloc(arena, 1, sizeof *l);
    l->kind = kind;
    l->size = file->size;
    l->made_ms = file->creation_time_ms;
    struct tarn_slice whole = tarn_arena_copy(arena, tarn_buf_slice(&key));
    size_t bucket_size = whole.size - file->name.size;
    l->bucket_key = tarn_slice_of(whole.data, bucket_size);
    l->name = tarn_slice_of(whole.data + bucket_size, file->name.size);
    if (file->external_path.data != NULL)
        l->key = key_of_uri(leave, file->external_path);
    else
        TARN_TRY(bucket_file(leave, entry->partition, entry->bucket, file->name, &l->key));
    if (l->key != NULL && file->extra_file_count > 0) {
        l->extra_keys = tarn_arena_calloc(arena, file->extra_file_count, sizeof *l->extra_keys);
        l->extra_count = file->extra_file_count;
        for (size_t i = 0; i < l->extra_count; i++)
            l->extra_keys[i] = sibling(leave, l->key, file->extra_files[i]);
    }
    tarn_map_set(leave->files, whole, l);
    leave->data_count++;
    return TARN_OK;
}

static void add_meta(struct tarn_leave *leave, const char *key, enum tarn_leaving_kind kind)
{
    struct tarn_slice name = tarn_slice_str(key);
    if (key == NULL || tarn_map_find(leave->meta, name) != NULL)
        return;
    struct tarn_leaving *l = tarn_arena_calloc(leave->op->arena, 1, sizeof *l);
    l->kind = kind;
    l->key = tarn_arena_str(leave->op->arena, name);
    tarn_map_set(leave->meta, name, l);
    leave->has_index |= kind == TARN_LEAVING_INDEX || kind == TARN_LEAVING_STATISTICS;
}

/* --- reading the expired --- */

struct reading {
    struct tarn_leave *leave;
    struct tarn_op *op; /* of one snapshot: its lists don't stay in memory */
    int64_t id;
    bool with_parts; /* it goes, and isn't just what comes behind those that do */
    enum tarn_leaving_kind kind;
};

static void add_manifest(struct reading *r, struct tarn_slice name, enum tarn_leaving_kind kind)
{
    add_meta(r->leave,
             tarn_table__key(r->op, r->leave->table, "manifest/%.*s", TARN_SLICE_ARG(name)), kind);
}

bool tarn_leave__is_damaged(const struct tarn_status *s)
{
    enum tarn_reason reason = tarn_status_reason(s);
    return reason == TARN_SNAPSHOT_MALFORMED || reason == TARN_MANIFEST_MALFORMED ||
           reason == TARN_AVRO_MALFORMED || reason == TARN_COMPRESSED_MALFORMED;
}

/* What can't be read any more takes nothing along but itself: an expiry that was cut off may have removed it. */
static struct tarn_status *pass_over(struct reading *r, struct tarn_status *s)
{
    if (tarn_status_reason(s) != TARN_OBJECT_NOT_FOUND && !tarn_leave__is_damaged(s))
        return s;
    if (r->id >= r->leave->view->earliest_id)
        tarn_log(r->op, TARN_WARN, "table.expired_unread", "table=%s snapshot=%" PRId64 " why=%s",
                 tarn_log_quote(r->op, tarn_table_name(r->leave->table)), r->id,
                 tarn_log_quote(r->op, tarn_status_message(s)));
    tarn_status_free(s);
    return TARN_OK;
}

static struct tarn_status *take_entries(void *arg, struct tarn_manifest_entry *entries,
                                        size_t count)
{
    struct reading *r = arg;
    enum tarn_entry_kind wanted = r->kind == TARN_LEAVING_DATA ? TARN_ENTRY_DELETE : TARN_ENTRY_ADD;
    for (size_t i = 0; i < count; i++)
        if (entries[i].kind == wanted)
            TARN_TRY(add_file(r->leave, &entries[i], r->kind));
    return TARN_OK;
}

static struct tarn_status *take_files(struct reading *r, enum tarn_leaving_kind kind,
                                      const struct tarn_manifest_file *files, size_t count)
{
    r->kind = kind;
    for (size_t i = 0; i < count; i++) {
        if (kind == TARN_LEAVING_DATA && files[i].deleted_count == 0)
            continue;
        TARN_TRY(pass_over(
            r, tarn_table__walk_manifest(r->op, r->leave->table, &files[i], take_entries, r)));
    }
    return TARN_OK;
}

/* *count 0 where it can't be read. What is there goes. */
static struct tarn_status *read_list(struct reading *r, const struct tarn_snapshot *snapshot,
                                     enum tarn_list which, struct tarn_manifest_file **files,
                                     size_t *count)
{
    struct tarn_slice name = which == TARN_LIST_BASE    ? snapshot->base_list
                             : which == TARN_LIST_DELTA ? snapshot->delta_list
                                                        : snapshot->changelog_list;
    struct tarn_status *s =
        tarn_table__read_list(r->op, r->leave->table, snapshot, which, r->op->arena, files, count);
    if (s != TARN_OK)
        *count = 0;
    if (r->with_parts && tarn_status_reason(s) != TARN_OBJECT_NOT_FOUND)
        add_manifest(r, name, TARN_LEAVING_LIST);
    for (size_t i = 0; r->with_parts && i < *count; i++)
        add_manifest(r, (*files)[i].name, TARN_LEAVING_MANIFEST);
    return pass_over(r, s);
}

struct tarn_status *tarn_leave__index_manifest(struct tarn_op *op, struct tarn_table *table,
                                               struct tarn_slice name, struct tarn_arena *arena,
                                               struct tarn_index_file **out, size_t *count)
{
    return tarn_status_wrap(tarn_table__read_index_manifest(op, table, name, arena, out, count),
                            "index manifest %.*s", TARN_SLICE_ARG(name));
}

static struct tarn_status *take_index(struct reading *r, struct tarn_slice name)
{
    struct tarn_leave *leave = r->leave;
    struct tarn_index_file *files;
    size_t count = 0;
    const char *key = tarn_table__key(r->op, leave->table, "manifest/%.*s", TARN_SLICE_ARG(name));
    if (name.data == NULL || tarn_map_find(leave->meta, tarn_slice_str(key)) != NULL)
        return TARN_OK;
    add_manifest(r, name, TARN_LEAVING_LIST);
    leave->has_index = true;
    struct tarn_status *s =
        tarn_leave__index_manifest(r->op, leave->table, name, r->op->arena, &files, &count);
    if (s != TARN_OK)
        count = 0;
    TARN_TRY(pass_over(r, s));
    for (size_t i = 0; i < count; i++) {
        const char *file_key;
        TARN_TRY(tarn_leave__index_key(leave, &files[i], &file_key));
        add_meta(leave, file_key, TARN_LEAVING_INDEX);
    }
    return TARN_OK;
}

/* What the snapshot is made of, but for its delta list. */
static struct tarn_status *take_parts(struct reading *r, const struct tarn_snapshot *snapshot)
{
    struct tarn_leave *leave = r->leave;
    struct tarn_manifest_file *files;
    size_t count;
    TARN_TRY(read_list(r, snapshot, TARN_LIST_BASE, &files, &count));
    if (snapshot->changelog_list.data != NULL) {
        TARN_TRY(read_list(r, snapshot, TARN_LIST_CHANGELOG, &files, &count));
        TARN_TRY(take_files(r, TARN_LEAVING_CHANGELOG, files, count));
    }
    if (snapshot->statistics.data != NULL)
        add_meta(leave,
                 tarn_table__key(r->op, leave->table, "statistics/%.*s",
                                 TARN_SLICE_ARG(snapshot->statistics)),
                 TARN_LEAVING_STATISTICS);
    return take_index(r, snapshot->index_manifest);
}

struct tarn_status *tarn_leave__snapshot(struct tarn_leave *leave, struct tarn_op *op, int64_t id,
                                         bool *found, struct tarn_snapshot *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_slice text;
    if (id < leave->view->earliest_id)
        return tarn_table__read_snapshot(op, leave->table, id, op->arena, found, &text, out);
    TARN_TRY(tarn_table__indexed_snapshot(leave->table, id, found, &json));
    if (!*found)
        return tarn_status_new(TARN_BUSY, "the history of table %s was rewritten meanwhile",
                               tarn_table_name(leave->table));
    text = tarn_arena_copy(op->arena, tarn_buf_slice(&json));
    TARN_TRY(tarn_snapshot_decode(text, op->arena, out));
    out->json = text;
    return TARN_OK;
}

/* What was live before `id` and isn't any more was seen last by the one below it. */
static struct tarn_status *collect_one(struct tarn_leave *leave, int64_t id, bool with_parts)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, leave->op);
    struct reading r = {.leave = leave, .op = &op, .id = id, .with_parts = with_parts};
    struct tarn_snapshot snapshot;
    struct tarn_manifest_file *delta;
    size_t delta_count;
    bool found;
    TARN_TRY(tarn_op_check(leave->op));
    TARN_TRY(tarn_leave__snapshot(leave, &op, id, &found, &snapshot));
    if (!found)
        return TARN_OK;
    TARN_TRY(read_list(&r, &snapshot, TARN_LIST_DELTA, &delta, &delta_count));
    if (id > leave->begin)
        TARN_TRY(take_files(&r, TARN_LEAVING_DATA, delta, delta_count));
    return with_parts ? take_parts(&r, &snapshot) : TARN_OK;
}

struct tarn_status *tarn_leave__collect(struct tarn_leave *leave)
{
    for (int64_t id = leave->begin; id < leave->end; id++) {
        TARN_TRY(collect_one(leave, id, true));
        if (leave->data_count >= TARN_EXPIRE_ROUND_FILES && id + 1 >= leave->view->earliest_id)
            leave->end = id + 1;
    }
    return collect_one(leave, leave->end, false);
}
