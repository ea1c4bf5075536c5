#include "table/commit_internal.h"

/*
 * The door of the commit, on the caller's thread: what no table could take is told before it is queued, so that it disturbs
 * nobody; whether its files are there is looked at, beside others who do the same. Then it waits for the loop (commit.c).
 */

static struct tarn_status *invalid_file(const struct tarn_data_file *f, const char *what)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT, "file %.*s %s", TARN_SLICE_ARG(f->name), what);
}

static struct tarn_status *check_entry(const struct tarn_table *table,
                                       const struct tarn_manifest_entry *e)
{
    const struct tarn_data_file *f = &e->file;
    if (f->name.size == 0 || memchr(f->name.data, '/', f->name.size) != NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%.*s\" is no name of a data file",
                               TARN_SLICE_ARG(f->name));
    if (f->row_count < 0 || f->size < 0 || f->level < 0)
        return invalid_file(f, "has a negative size, row count or level");
    if (f->schema_id < 0)
        return invalid_file(f, "was written under a schema with a negative id");
    if (f->unknown)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s: the record of file %.*s has fields that this version of "
                               "Tarn does not know and would lose",
                               tarn_table_name(table), TARN_SLICE_ARG(f->name));
    if (e->total_buckets > 0 && e->bucket >= e->total_buckets)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "file %.*s is of bucket %d of %d",
                               TARN_SLICE_ARG(f->name), e->bucket, e->total_buckets);
    return TARN_OK;
}

static struct tarn_status *check_part(const struct tarn_table *table,
                                      const struct tarn_commit_part *part, bool twice_is_fine)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    for (size_t i = 0; i < part->count; i++) {
        TARN_TRY(check_entry(table, &part->entries[i]));
        tarn_buf_clear(&identity);
        tarn_manifest_identity(&part->entries[i], &identity);
        if (tarn_map_set(seen, tarn_buf_slice(&identity), seen) != NULL && !twice_is_fine)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "the commit names file %.*s twice",
                                   TARN_SLICE_ARG(part->entries[i].file.name));
    }
    for (size_t i = 0; i < part->changelog_count; i++) {
        TARN_TRY(check_entry(table, &part->changelog[i]));
        if (part->changelog[i].kind != TARN_ENTRY_ADD)
            return invalid_file(&part->changelog[i].file, "is deleted from a changelog");
    }
    return TARN_OK;
}

static struct tarn_status *check_request(const struct tarn_table *table,
                                         const struct tarn_commit *commit, bool discard)
{
    size_t count = tarn_commit_entry_count(commit);
    if (count > TARN_COMMIT_ENTRIES_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "a commit of %zu files; at most %d", count,
                               TARN_COMMIT_ENTRIES_MAX);
    if (commit->user.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a commit needs a user");
    if (tarn_slice_is(commit->user, TARN_COMMIT_OWN_USER))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "commit user \"" TARN_COMMIT_OWN_USER "\" is the daemon's own");
    if (commit->overwrite != TARN_OVERWRITE_NONE && commit->kind != TARN_COMMIT_OVERWRITE)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "an overwrite is of kind OVERWRITE, not %s",
                               tarn_commit_kind_name(commit->kind));
    for (size_t i = 0; i < commit->property_count; i++)
        if (tarn_slice_is(commit->properties[i].key, TARN_RECEIPTS_PROPERTY))
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "property " TARN_RECEIPTS_PROPERTY " is the daemon's own");
    TARN_TRY(check_part(table, &commit->append, discard));
    return check_part(table, &commit->compact, false);
}

/* Files of one part that are not where they should be. */
static struct tarn_status *check_files(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_table_view *view,
                                       const struct tarn_commit_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        const struct tarn_manifest_entry *e = &part->entries[i];
        if (e->kind != TARN_ENTRY_ADD || e->file.external_path.data != NULL)
            continue;
        TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
        TARN_TRY(tarn_bucket_path(&view->schema, &view->options, e->partition, e->bucket, &path));
        bool found;
        const char *key = tarn_table__key(op, table, "%s/%.*s", tarn_buf_cstr(&path),
                                          TARN_SLICE_ARG(e->file.name));
        TARN_TRY(tarn_store_stat(table->env->store, op, key, &found, NULL));
        if (!found)
            return tarn_status_new(TARN_FILE_MISSING, "%s is not there", key);
    }
    return TARN_OK;
}

/* Engines that plan by them fail where they aren't there, and so would every later snapshot, which takes them along. */
static struct tarn_status *check_statistics(struct tarn_op *op, struct tarn_table *table,
                                            struct tarn_slice name)
{
    bool found;
    const char *key = tarn_table__key(op, table, "statistics/%.*s", TARN_SLICE_ARG(name));
    TARN_TRY(tarn_store_stat(table->env->store, op, key, &found, NULL));
    return found ? TARN_OK : tarn_status_new(TARN_FILE_MISSING, "%s is not there", key);
}

/* On the caller's thread: many callers look at the same time, and the table waits for none of them. Told only where
 * the request hasn't landed already: then its files may be compacted away by now. */
static struct tarn_status *find_missing(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_table_view *view,
                                        const struct tarn_commit *commit)
{
    if (!commit->check_files && commit->finished == NULL)
        return TARN_OK;
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    if (commit->check_files) {
        TARN_TRY(check_files(op, table, view, &commit->append));
        TARN_TRY(check_files(op, table, view, &commit->compact));
    }
    return commit->statistics.size > 0 ? check_statistics(op, table, commit->statistics) : TARN_OK;
}

static bool part_is_empty(const struct tarn_commit_part *part)
{
    return part->count + part->changelog_count + part->index_count == 0;
}

/* Paimon's rule: an append of nothing makes no snapshot unless it is asked for, nor does a dynamic overwrite; a static
 * one empties what it names. */
static bool has_append(const struct tarn_commit *commit, const struct tarn_table_view *view)
{
    if (!part_is_empty(&commit->append) || commit->kind == TARN_COMMIT_ANALYZE)
        return true;
    switch (commit->overwrite) {
    case TARN_OVERWRITE_NONE:
        return commit->force_empty;
    case TARN_OVERWRITE_DYNAMIC:
        return commit->force_empty || view->schema.partition_key_count == 0;
    default:
        return true;
    }
}

/* An append that takes something away is an OVERWRITE to those who read streams (docs/format.md, "Snapshots"). */
enum tarn_commit_kind tarn_commit_append_kind(const struct tarn_commit *commit)
{
    const struct tarn_commit_part *part = &commit->append;
    if (commit->kind != TARN_COMMIT_APPEND)
        return commit->kind;
    for (size_t i = 0; i < part->count; i++)
        if (part->entries[i].kind == TARN_ENTRY_DELETE)
            return TARN_COMMIT_OVERWRITE;
    for (size_t i = 0; i < part->index_count; i++)
        if (tarn_slice_is(part->index[i].type, TARN_INDEX_DELETION_VECTORS))
            return TARN_COMMIT_OVERWRITE;
    return TARN_COMMIT_APPEND;
}

static bool is_nameless(const struct tarn_commit *commit)
{
    return commit->identifier == TARN_COMMIT_IDENTIFIER_BATCH && part_is_empty(&commit->append) &&
           part_is_empty(&commit->compact) && commit->statistics.data == NULL;
}

/* BUSY: so many wait that one table, whose store may be away, would take all of the server's calls. */
static struct tarn_status *enqueue(struct tarn_table *table, struct tarn_request *r)
{
    struct tarn_member *m = r->has_append ? &r->append : &r->compact;
    pthread_mutex_lock(&table->lock);
    if (table->queue_count >= TARN_COMMIT_QUEUE_MAX) {
        pthread_mutex_unlock(&table->lock);
        return tarn_status_new(TARN_BUSY, "%d commits wait for table %s already",
                               TARN_COMMIT_QUEUE_MAX, table->name);
    }
    *table->queue_last = m;
    table->queue_last = &m->next;
    bool runs = table->loop_runs;
    table->loop_runs = true;
    if (++table->queue_count >= table->wanted_count)
        pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock);
    if (!runs)
        tarn_mailbox_post_last(table->mailbox, tarn_table__run_commits, table);
    return TARN_OK;
}

static void fill_request(struct tarn_request *r)
{
    const struct tarn_commit *commit = r->commit;
    bool batch = commit->identifier == TARN_COMMIT_IDENTIFIER_BATCH;
    r->content = batch ? tarn_commit_content(commit) : 0;
    r->nameless = is_nameless(commit);
    r->append = (struct tarn_member){
        .request = r, .kind = tarn_commit_append_kind(commit), .part = &commit->append};
    r->compact =
        (struct tarn_member){.request = r, .kind = TARN_COMMIT_COMPACT, .part = &commit->compact};
}

static struct tarn_status *queue_commit(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_commit *commit, struct tarn_request *r)
{
    TARN_TRY(tarn_table__check_here(table));
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table__view_ref(table);
    bool discard = commit->kind == TARN_COMMIT_APPEND && view->options.discard_duplicate_files;
    TARN_TRY(check_request(table, commit, discard));
    r->has_append = has_append(commit, view);
    r->has_compact = !part_is_empty(&commit->compact);
    fill_request(r);
    if (!r->has_append && !r->has_compact) {
        r->done(r->done_arg, TARN_OK);
        return TARN_OK;
    }
    r->missing = find_missing(op, table, view, commit);
    struct tarn_status *missing = r->missing, *refused = enqueue(table, r);
    if (refused != TARN_OK)
        tarn_status_free(missing);
    return refused; /* where it is OK, the request may be gone */
}

void tarn_table_commit_start(struct tarn_op *op, struct tarn_table *table,
                             const struct tarn_commit *commit, struct tarn_commit_result *out,
                             tarn_commit_done_fn done, void *arg)
{
    memset(out, 0, sizeof *out);
    struct tarn_request *r = tarn_arena_calloc(op->arena, 1, sizeof *r);
    *r = (struct tarn_request){
        .op = op, .commit = commit, .result = out, .done = done, .done_arg = arg};
    struct tarn_status *s = queue_commit(op, table, commit, r);
    if (s != TARN_OK)
        done(arg, s);
}

struct waiting {
    struct tarn_gate *gate;
    struct tarn_status *status;
};

static void stop_waiting(void *arg, struct tarn_status *status)
{
    struct waiting *w = arg;
    w->status = status;
    tarn_gate_open(w->gate);
}

struct tarn_status *tarn_table_commit(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_commit *commit,
                                      struct tarn_commit_result *out)
{
    struct waiting w = {.gate = tarn_gate_new()};
    tarn_table_commit_start(op, table, commit, out, stop_waiting, &w);
    /* Not given up while the mailbox has it: its own deadline ends it in the queue. */
    tarn_gate_wait(w.gate, NULL);
    tarn_gate_free(w.gate);
    return w.status;
}

/* --- without a put --- */

struct check_job {
    struct tarn_request request;
    struct tarn_table *table;
    struct tarn_status *status;
};

static struct tarn_status *check(struct check_job *job)
{
    struct tarn_table *table = job->table;
    TARN_TRY(tarn_table__check_here(table));
    if (table->head == NULL || !tarn_table__looked_lately(table))
        TARN_TRY(tarn_table__refresh(job->request.op, table));
    struct tarn_group *group = tarn_table__group_new(table, job->request.append.kind);
    group->members[group->count++] = &job->request.append;
    struct tarn_status *s = tarn_table__judge_one(group);
    tarn_table__group_free(group);
    return s;
}

static void run_check(void *arg)
{
    struct check_job *job = arg;
    job->status = check(job);
}

struct tarn_status *tarn_table_check_commit(struct tarn_op *op, struct tarn_table *table,
                                            const struct tarn_commit *commit)
{
    struct tarn_commit_result result = {0};
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table__view_ref(table);
    struct check_job job = {.request = {.op = op, .commit = commit, .result = &result},
                            .table = table};
    bool discard = commit->kind == TARN_COMMIT_APPEND && view->options.discard_duplicate_files;
    TARN_TRY(check_request(table, commit, discard));
    fill_request(&job.request);
    job.request.missing = find_missing(op, table, view, commit);
    tarn_mailbox_call(table->mailbox, run_check, &job);
    tarn_status_free(job.request.missing);
    return job.status;
}
