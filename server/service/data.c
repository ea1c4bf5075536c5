#include "service/internal.h"

/* Rows in and out: what is decided before a worker gets the stream, and the commit after it. */

/* --- what a plan says, for a worker --- */

static void take_splits(struct tarn_op *op, const struct tarn_plan *plan, struct tarn_scan *out)
{
    out->splits = tarn_arena_calloc(op->arena, plan->split_count + 1, sizeof *out->splits);
    out->split_count = plan->split_count;
    for (size_t i = 0; i < plan->split_count; i++) {
        const struct tarn_split *from = &plan->splits[i];
        struct tarn_scan_split *to = &out->splits[i];
        *to = (struct tarn_scan_split){.partition = from->partition,
                                       .bucket = from->bucket,
                                       .raw = from->raw,
                                       .file_count = from->file_count};
        to->files = tarn_arena_calloc(op->arena, from->file_count + 1, sizeof *to->files);
        for (size_t f = 0; f < from->file_count; f++)
            to->files[f] = tarn_service__pack(op, &from->files[f].entry, false);
    }
}

static struct tarn_status *describe_plan(struct tarn_op *op, struct tarn_service *service,
                                         struct tarn_table *table, const struct tarn_plan *plan,
                                         struct tarn_table_description *out)
{
    int64_t *ids = tarn_arena_alloc(op->arena, (plan->file_count + 1) * sizeof *ids);
    size_t n = 0;
    for (size_t i = 0; i < plan->split_count; i++)
        for (size_t f = 0; f < plan->splits[i].file_count && n < plan->file_count; f++)
            ids[n++] = plan->splits[i].files[f].entry.file.schema_id;
    return tarn_service__describe(op, service, table, plan->schema, ids, n, out);
}

/* --- a load --- */

static const char *const mode_names[] = {"auto", "append", "upsert", "overwrite", "delete"};

/* An overwrite writes rows as any load does; its commit removes what was there. */
static struct tarn_status *settle_mode(const struct tarn_table_view *view, const char *table,
                                       enum tarn_load_mode asked, enum tarn_load_mode *out)
{
    bool keyed = !tarn_schema_is_append(&view->schema);
    bool chosen = asked == TARN_LOAD_AUTO || asked == TARN_LOAD_OVERWRITE;
    *out = !chosen ? asked : keyed ? TARN_LOAD_UPSERT : TARN_LOAD_APPEND;
    if ((unsigned)asked >= TARN_LOAD_MODE_COUNT)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "load mode %d is unknown", (int)asked);
    if (keyed && *out == TARN_LOAD_APPEND)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "table %s has a primary key: rows are upserted, not appended",
                               table);
    if (!keyed && *out != TARN_LOAD_APPEND)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "mode %s needs a primary key, table %s has none", mode_names[*out],
                               table);
    return TARN_OK;
}

static struct tarn_status *settle_identity(struct tarn_op *op, struct tarn_slice user,
                                           int64_t identifier, struct tarn_ingest *out)
{
    TARN_TRY(tarn_service__check_name("commit_user", user));
    bool batch = identifier == TARN_SNAPSHOT_NONE;
    if (user.size == 0 && !batch)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "commit_identifier needs a commit_user");
    char random[TARN_UUID_SIZE];
    tarn_uuid_random(random);
    out->user = tarn_arena_copy(op->arena, user.size > 0 ? user : tarn_slice_str(random));
    out->identifier = batch ? TARN_COMMIT_IDENTIFIER_BATCH : identifier;
    return TARN_OK;
}

/* An overwrite begins with no keys at all. */
static void settle_base(struct tarn_op *op, const struct tarn_table_view *view,
                        struct tarn_ingest *ingest)
{
    ingest->is_assigned = !tarn_schema_is_append(&view->schema) && view->options.bucket == -1 &&
                          ingest->overwrite == TARN_OVERWRITE_NONE;
    if (!ingest->is_assigned)
        return;
    ingest->base_snapshot_id = view->has_snapshot ? view->snapshot.id : 0;
    ingest->base_proof = ingest->index_manifest = tarn_slice_str("");
    if (!view->has_snapshot)
        return;
    ingest->base_proof = tarn_arena_copy(op->arena, tarn_snapshot_proof(&view->snapshot));
    if (view->snapshot.index_manifest.data != NULL)
        ingest->index_manifest = tarn_arena_copy(op->arena, view->snapshot.index_manifest);
}

/* Where keys cross partitions, a load is told of all files: it reads the keys that there are. */
static struct tarn_status *find_known(struct tarn_op *op, struct tarn_service *service,
                                      struct tarn_ingest *ingest)
{
    const struct tarn_table_view *view = ingest->view;
    if (!view->options.keys_cross_partitions)
        return tarn_service__describe(op, service, ingest->table, &view->schema, NULL, 0,
                                      &ingest->description);
    if (ingest->overwrite == TARN_OVERWRITE_DYNAMIC)
        return tarn_status_new(
            TARN_UNSUPPORTED_FEATURE,
            "table %s: an overwrite of some partitions, where keys may lie in any: "
            "set dynamic-partition-overwrite to false to overwrite all of it",
            tarn_table_name(ingest->table));
    struct tarn_plan plan = {0};
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(ingest->base_snapshot_id)};
    if (ingest->base_snapshot_id > 0)
        TARN_TRY(tarn_table_plan(op, ingest->table, &request, &plan));
    plan.schema = &view->schema; /* the keys' types are those of the rows to come */
    take_splits(op, &plan, &ingest->known);
    return describe_plan(op, service, ingest->table, &plan, &ingest->description);
}

static struct tarn_status *begin(struct tarn_op *op, struct tarn_service *service,
                                 struct tarn_ingest *ingest)
{
    struct tarn_table *table = ingest->table;
    if (ingest->identifier != TARN_COMMIT_IDENTIFIER_BATCH)
        TARN_TRY(tarn_table_find_landed(table, ingest->user, ingest->identifier,
                                        &ingest->repeated_snapshot_id));
    if (ingest->repeated_snapshot_id != 0)
        return TARN_OK;
    TARN_TRY(find_known(op, service, ingest));
    return tarn_maintain_begin_stream(op, service->maintain, &ingest->worker_id,
                                      &ingest->worker_address);
}

struct tarn_status *tarn_service_ingest_begin(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref, enum tarn_load_mode mode,
                                              struct tarn_slice user, int64_t identifier,
                                              struct tarn_ingest *out)
{
    struct tarn_ingest ingest = {0};
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_WRITE, &table));
    TARN_TRY(tarn_table_look_now(op, table, &view)); /* its sequence numbers start above theirs */
    TARN_TRY(tarn_options_check_write(&view->options));
    TARN_TRY(tarn_options_check_merge(&view->options));
    TARN_TRY(settle_mode(view, tarn_table_name(table), mode, &ingest.mode));
    if (mode == TARN_LOAD_OVERWRITE)
        ingest.overwrite =
            view->schema.partition_key_count > 0 && view->options.dynamic_partition_overwrite
                ? TARN_OVERWRITE_DYNAMIC
                : TARN_OVERWRITE_TABLE;
    TARN_TRY(settle_identity(op, user, identifier, &ingest));
    settle_base(op, view, &ingest);
    /* Where the option was changed, partitions may be left that have the old number. */
    ingest.ask_bucket_counts =
        view->options.bucket > 0 && view->schema.id > 0 && ingest.overwrite == TARN_OVERWRITE_NONE;
    ingest.table = table;
    ingest.view = view;
    TARN_TRY(begin(op, service, &ingest));
    tarn_move(table);
    tarn_move(view);
    *out = ingest;
    return TARN_OK;
}

/* --- its commit --- */

/* Under the path that the worker was given: the table may have moved since. */
static struct tarn_status *remove_file(struct tarn_op *op, struct tarn_service *service,
                                       const struct tarn_ingest *ingest, const char *folder,
                                       struct tarn_slice name)
{
    return tarn_store_remove(tarn_table_store(ingest->table), op,
                             tarn_arena_printf(op->arena, "%s/%s/%.*s", ingest->description.path,
                                               folder, TARN_SLICE_ARG(name)));
}

static struct tarn_status *remove_entry(struct tarn_op *op, struct tarn_service *service,
                                        const struct tarn_ingest *ingest,
                                        const struct tarn_manifest_entry *e)
{
    const char *folder;
    TARN_TRY(tarn_service__bucket_path(op, &ingest->view->schema, &ingest->view->options,
                                       e->partition, e->bucket, &folder));
    for (size_t i = 0; i < e->file.extra_file_count; i++)
        TARN_TRY(remove_file(op, service, ingest, folder, e->file.extra_files[i]));
    return remove_file(op, service, ingest, folder, e->file.name);
}

/* The commit is known not to have happened: nobody will ever name these files. Under an op of its
 * own, for the caller may be gone. */
static void remove_files(struct tarn_service *service, const struct tarn_ingest *ingest,
                         const struct tarn_manifest_entry *entries, size_t count)
{
    if (count == 0)
        return;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        struct tarn_status *s = remove_entry(&op, service, ingest, &entries[i]);
        left += s != TARN_OK;
        tarn_log_status(&op, TARN_WARN, "ingest.file_left", s);
    }
    tarn_log(&op, TARN_INFO, "ingest.files_removed", "table=%s files=%zu left=%zu",
             tarn_log_quote(&op, ingest->description.name), count - left, left);
}

/* The table is gone from where the worker wrote: so are the folders that it made there. */
static void prune_place(struct tarn_service *service, const struct tarn_ingest *ingest)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_status *s =
        tarn_store_prune(tarn_table_store(ingest->table), &op, ingest->description.path);
    tarn_log_status(&op, TARN_WARN, "ingest.folder_left", s);
}

static struct tarn_status *check_entries(const struct tarn_manifest_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (entries[i].kind != TARN_ENTRY_ADD || entries[i].file.external_path.data != NULL)
            return tarn_status_new(TARN_INTERNAL,
                                   "the worker's answer names a file that no load makes: %.*s",
                                   TARN_SLICE_ARG(entries[i].file.name));
    return TARN_OK;
}

/* A load takes its time. A table whose folder others removed or replaced meanwhile must not get a
 * snapshot: it would lie in a folder without schema, and the rows that were acknowledged with it.
 * One that was renamed is there, but its new files lie where it was. */
struct tarn_status *tarn_service__still_there(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table *of,
                                              const struct tarn_table_description *description)
{
    struct tarn_slice database, name;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    tarn_table_names(op, of, &database, &name);
    TARN_TRY(tarn_catalog_table(op, service->catalog, database, name,
                                tarn_slice_str(tarn_table_uuid(of)), &table));
    if (strcmp(tarn_table_path(table), description->path) != 0)
        return tarn_status_new(TARN_TABLE_NOT_FOUND,
                               "table %s was renamed to %s while rows were written",
                               description->name, tarn_table_name(table));
    return TARN_OK;
}

struct loaded { /* what a worker wrote, unpacked */
    struct tarn_manifest_entry *entries, *changelog;
    size_t count, changelog_count;
    struct tarn_index_file *indexes;
    size_t index_count;
};

static struct tarn_status *unpack(struct tarn_op *op, const struct tarn_written *written,
                                  struct loaded *out)
{
    *out = (struct loaded){.count = written->count, .changelog_count = written->changelog_count};
    TARN_TRY(tarn_service__unpack(op, written->entries, written->count, &out->entries));
    TARN_TRY(
        tarn_service__unpack(op, written->changelog, written->changelog_count, &out->changelog));
    TARN_TRY(check_entries(out->changelog, out->changelog_count));
    if (written->indexes.size > 0)
        TARN_TRY(tarn_index_manifest_decode(tarn_arena_copy(op->arena, written->indexes), op->arena,
                                            &out->indexes, &out->index_count));
    return check_entries(out->entries, out->count);
}

static void remove_loaded(struct tarn_service *service, const struct tarn_ingest *ingest,
                          const struct loaded *loaded)
{
    remove_files(service, ingest, loaded->entries, loaded->count);
    if (loaded->changelog_count > 0)
        remove_files(service, ingest, loaded->changelog, loaded->changelog_count);
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    for (size_t i = 0; i < loaded->index_count; i++)
        tarn_log_status(&op, TARN_WARN, "ingest.file_left",
                        remove_file(&op, service, ingest, "index", loaded->indexes[i].name));
}

void tarn_service_ingest_discard(struct tarn_service *service, const struct tarn_ingest *ingest,
                                 const struct tarn_written *written)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct loaded loaded;
    struct tarn_status *s = unpack(&op, written, &loaded);
    if (s == TARN_OK)
        remove_loaded(service, ingest, &loaded);
    tarn_log_status(&op, TARN_WARN, "ingest.file_left", s);
}

#define RESCALE_WAIT_MS 300000
#define ASSIGN_TIMES_MAX 8 /* only other programs can come between any more */

/* The buckets were assigned by an index that has been replaced: once more, by the present one, and with the table's other loads
 * kept out. */
static struct tarn_status *assign_again(struct tarn_op *op, struct tarn_ingest *ingest)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    if (!ingest->is_alone)
        tarn_exec_write_lock(tarn_table_assigning(ingest->table));
    ingest->is_alone = true;
    TARN_TRY(tarn_table_look_now(op, ingest->table, &view));
    if (view->options.bucket != -1)
        return tarn_status_new(TARN_INDEX_STALE,
                               "table %s was altered while rows were loaded: load them again",
                               tarn_table_name(ingest->table));
    settle_base(op, view, ingest);
    ingest->again_count++;
    tarn_log(op, TARN_INFO, "ingest.assigned_again", "table=%s times=%d snapshot=%" PRId64,
             tarn_log_quote(op, ingest->description.name), ingest->again_count,
             ingest->base_snapshot_id);
    return TARN_OK;
}

/* A partition was rescaled meanwhile: its rows once more, for the buckets that there are now. */
static struct tarn_status *bucket_again(struct tarn_op *op, struct tarn_service *service,
                                        struct tarn_ingest *ingest, const struct loaded *loaded)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    int64_t *ids = tarn_arena_alloc(op->arena, (loaded->count + 1) * sizeof *ids);
    TARN_TRY(tarn_table_look_now(op, ingest->table, &view));
    if (view->options.bucket < 1)
        return tarn_status_new(TARN_BUCKET_MISMATCH,
                               "table %s was altered while rows were loaded: load them again",
                               tarn_table_name(ingest->table));
    for (size_t i = 0; i < loaded->count; i++)
        ids[i] = loaded->entries[i].file.schema_id;
    TARN_TRY(tarn_service__describe(op, service, ingest->table, &view->schema, ids, loaded->count,
                                    &ingest->description));
    tarn_table_view_drop(&ingest->view);
    ingest->view = tarn_move(view);
    ingest->ask_bucket_counts = true;
    ingest->again_count++;
    tarn_log(op, TARN_INFO, "ingest.bucketed_again", "table=%s times=%d",
             tarn_log_quote(op, ingest->description.name), ingest->again_count);
    return TARN_OK;
}

static struct tarn_status *commit_loaded(struct tarn_op *op, struct tarn_ingest *ingest,
                                         const struct tarn_commit *commit,
                                         struct tarn_commit_result *result)
{
    bool shared = ingest->is_assigned && !ingest->is_alone;
    if (shared)
        tarn_exec_read_lock(tarn_table_assigning(ingest->table));
    struct tarn_status *s = tarn_table_commit(op, ingest->table, commit, result);
    if (shared)
        pthread_rwlock_unlock(tarn_table_assigning(ingest->table));
    return s;
}

/* Files without a primary key don't tell the order of all rows; a changelog has each version of a key, files the last one. */
static bool may_bucket_again(const struct tarn_ingest *ingest, const struct loaded *loaded)
{
    return ingest->overwrite == TARN_OVERWRITE_NONE && ingest->view->options.bucket > 0 &&
           !tarn_schema_is_append(&ingest->view->schema) && loaded->changelog_count == 0 &&
           ingest->again_count < ASSIGN_TIMES_MAX;
}

/* What is left when it wasn't committed: nothing, or all where it is to be tried again. */
static struct tarn_status *settle_failure(struct tarn_op *op, struct tarn_service *service,
                                          struct tarn_ingest *ingest, const struct loaded *loaded,
                                          struct tarn_status *s, bool *again)
{
    if (tarn_status_reason(s) == TARN_OUTCOME_UNKNOWN)
        return s;
    /* Not where the files don't hold all that was given: a changelog has each version of a key. */
    bool may_again = ingest->is_assigned && !ingest->view->options.keys_cross_partitions &&
                     loaded->changelog_count == 0;
    if (may_again && tarn_status_reason(s) == TARN_INDEX_STALE &&
        ingest->again_count < ASSIGN_TIMES_MAX) {
        tarn_status_free(s);
        s = assign_again(op, ingest);
        *again = s == TARN_OK;
    } else if (tarn_status_reason(s) == TARN_BUCKET_MISMATCH && may_bucket_again(ingest, loaded)) {
        tarn_status_free(s);
        s = bucket_again(op, service, ingest, loaded);
        *again = s == TARN_OK;
    }
    if (!*again)
        remove_loaded(service, ingest, loaded);
    if (tarn_status_reason(s) == TARN_TABLE_NOT_FOUND)
        prune_place(service, ingest);
    return s;
}

struct tarn_status *tarn_service_ingest_commit(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_ingest *ingest,
                                               const struct tarn_written *written,
                                               int64_t *snapshot_id, bool *repeated, bool *again,
                                               struct tarn_backlog *backlog)
{
    *snapshot_id = 0;
    *repeated = *again = false;
    *backlog = (struct tarn_backlog){0};
    if (written->count == 0 && ingest->overwrite != TARN_OVERWRITE_TABLE)
        return TARN_OK;
    struct loaded loaded;
    TARN_TRY(unpack(op, written, &loaded));
    struct tarn_commit commit = {
        .user = ingest->user,
        .identifier = ingest->identifier,
        .watermark = TARN_SNAPSHOT_NONE,
        .kind =
            ingest->overwrite == TARN_OVERWRITE_NONE ? TARN_COMMIT_APPEND : TARN_COMMIT_OVERWRITE,
        .overwrite = ingest->overwrite,
        .base_snapshot_id = ingest->is_assigned ? ingest->base_snapshot_id : TARN_SNAPSHOT_NONE,
        .base_snapshot_proof = ingest->base_proof,
        .assigned = ingest->is_assigned,
        .append.entries = loaded.entries,
        .append.count = loaded.count,
        .append.changelog = loaded.changelog,
        .append.changelog_count = loaded.changelog_count,
        .append.index = loaded.indexes,
        .append.index_count = loaded.index_count,
        .check_files = true,
    };
    struct tarn_commit_result result;
    tarn_maintain_let_rescale(op, service->maintain, ingest->table, loaded.entries, loaded.count,
                              RESCALE_WAIT_MS);
    struct tarn_status *s =
        tarn_service__still_there(op, service, ingest->table, &ingest->description);
    if (s == TARN_OK)
        s = commit_loaded(op, ingest, &commit, &result);
    if (s != TARN_OK)
        s = settle_failure(op, service, ingest, &loaded, s, again);
    TARN_TRY(s);
    if (*again)
        return TARN_OK;
    /* repeated: the same identity landed while this load ran. Whether these files are part of that
     * snapshot is not worth a guess: they stay, and orphan removal finds out. */
    *snapshot_id = result.append_snapshot_id;
    *repeated = result.repeated;
    tarn_maintain_backlog(op, service->maintain, ingest->table, loaded.entries, loaded.count,
                          backlog);
    for (size_t i = 0; i < loaded.count && !result.repeated; i++)
        tarn_metric_add(TARN_M_ROWS_LOADED, NULL, (double)loaded.entries[i].file.row_count);
    return TARN_OK;
}

void tarn_service_ingest_end(struct tarn_service *service, struct tarn_ingest *ingest,
                             bool worker_failed)
{
    if (ingest->is_alone)
        pthread_rwlock_unlock(tarn_table_assigning(ingest->table));
    tarn_service_stream_end(service, ingest->worker_id, worker_failed);
    tarn_table_view_drop(&ingest->view);
    tarn_table_drop_ref(&ingest->table);
}

/* --- a scan --- */

struct tarn_status *tarn_service__scan_of_plan(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_table *table,
                                               const struct tarn_plan *plan, struct tarn_scan *out)
{
    *out = (struct tarn_scan){.snapshot_id = plan->has_snapshot ? plan->snapshot.id : 0};
    take_splits(op, plan, out);
    TARN_TRY(describe_plan(op, service, table, plan, &out->description));
    return tarn_maintain_begin_stream(op, service->maintain, &out->worker_id, &out->worker_address);
}

struct tarn_status *tarn_service_scan_begin(struct tarn_op *op, struct tarn_service *service,
                                            struct tarn_table_ref ref, struct tarn_version version,
                                            struct tarn_slice where, struct tarn_scan *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    struct tarn_plan_request request = {.version = version, .where = where};
    struct tarn_plan plan;
    TARN_TRY(tarn_table_plan(op, table, &request, &plan));
    TARN_TRY(tarn_options_check_merge(plan.options));
    return tarn_service__scan_of_plan(op, service, table, &plan, out);
}

struct tarn_status *tarn_service_infer_begin(struct tarn_op *op, struct tarn_service *service,
                                             const char **worker_id, const char **worker_address)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_READ, tarn_slice_str(NULL)));
    return tarn_maintain_begin_stream(op, service->maintain, worker_id, worker_address);
}

void tarn_service_stream_end(struct tarn_service *service, const char *worker_id,
                             bool worker_failed)
{
    if (worker_id != NULL)
        tarn_maintain_end_stream(service->maintain, worker_id, worker_failed);
}

const char *tarn_service_worker_secret(const struct tarn_service *service)
{
    return tarn_access_worker_secret(service->access);
}
