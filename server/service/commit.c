#include "service/internal.h"

/*
 * Commits by clients that write data files themselves. An entry that is wrong would make the table
 * unreadable for everybody, so each is held against the schema it says it was written by.
 */

struct checker {
    struct tarn_op *op;
    struct tarn_table *table;
    const struct tarn_table_view *view;
    const struct tarn_schema *schema; /* of the file at hand */
    const struct tarn_type **partition_types;
    struct tarn_value *values; /* room for a row of any of the types */
    struct tarn_value *partition;
};

static struct tarn_status *entry_error(const struct tarn_manifest_entry *e, const char *what,
                                       struct tarn_status *consumed)
{
    struct tarn_status *s =
        tarn_status_new(TARN_INVALID_ARGUMENT, "file %.*s: %s%s%s", TARN_SLICE_ARG(e->file.name),
                        what, consumed == NULL ? "" : ": ", tarn_status_message(consumed));
    tarn_status_free(consumed);
    return s;
}

static struct tarn_status *check_row(struct checker *c, const struct tarn_manifest_entry *e,
                                     const char *what, struct tarn_slice row,
                                     const struct tarn_type *const *types, size_t count)
{
    struct tarn_status *s = tarn_row_deserialize(row, types, count, c->values);
    return s == TARN_OK ? TARN_OK : entry_error(e, what, s);
}

static struct tarn_status *check_stats(struct checker *c, const struct tarn_manifest_entry *e,
                                       const char *what, struct tarn_stats *stats,
                                       const struct tarn_type *const *types, size_t count)
{
    if (stats->min.size == 0 && stats->max.size == 0 && stats->count == 0)
        *stats = tarn_stats_empty();
    bool empty = stats->count == 0 && tarn_slice_equal(stats->min, tarn_row_empty()) &&
                 tarn_slice_equal(stats->max, tarn_row_empty());
    if (empty)
        return TARN_OK;
    if (stats->count != count)
        return entry_error(e, "its statistics have another number of columns", NULL);
    TARN_TRY(check_row(c, e, what, stats->min, types, count));
    return check_row(c, e, what, stats->max, types, count);
}

static size_t key_types(struct checker *c, const struct tarn_type ***out)
{
    int *columns;
    size_t count = tarn_schema_trimmed_key_columns(c->schema, c->op->arena, &columns);
    *out = tarn_arena_calloc(c->op->arena, count + 1, sizeof **out);
    for (size_t i = 0; i < count; i++)
        (*out)[i] = c->schema->fields[columns[i]].type;
    return count;
}

/* Columns that the value statistics are about: those named, or all of the file's schema. */
static struct tarn_status *value_types(struct checker *c, const struct tarn_manifest_entry *e,
                                       const struct tarn_type ***out, size_t *count)
{
    const struct tarn_data_file *f = &e->file;
    *count = f->has_value_stats_columns ? f->value_stats_column_count : c->schema->field_count;
    if (*count > c->schema->field_count)
        return entry_error(e, "more statistics than columns", NULL);
    *out = tarn_arena_calloc(c->op->arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        int column = f->has_value_stats_columns
                         ? tarn_schema_find(c->schema, f->value_stats_columns[i])
                         : (int)i;
        if (column < 0)
            return entry_error(e, "statistics of a column that its schema hasn't", NULL);
        (*out)[i] = c->schema->fields[column].type;
    }
    return TARN_OK;
}

static struct tarn_status *load_schema(struct checker *c, const struct tarn_manifest_entry *e)
{
    int64_t id = e->file.schema_id;
    if (id < 0 || id > c->view->schema.id)
        return entry_error(e, "its schema_id is none of the table's", NULL);
    if (c->schema != NULL && c->schema->id == id)
        return TARN_OK;
    c->schema = &c->view->schema;
    if (id != c->view->schema.id)
        TARN_TRY(tarn_table_schema(c->op, c->table, id, &c->schema));
    c->values = tarn_arena_calloc(c->op->arena,
                                  TARN_MAX(c->schema->field_count, c->view->schema.field_count) + 1,
                                  sizeof *c->values);
    return TARN_OK;
}

static struct tarn_status *check_numbers(const struct tarn_manifest_entry *e)
{
    const struct tarn_data_file *f = &e->file;
    if (f->size < 0 || f->row_count < 0 || f->level < 0 || f->min_sequence > f->max_sequence)
        return entry_error(e, "a number is out of range", NULL);
    if (f->delete_row_count != TARN_FILE_NONE &&
        (f->delete_row_count < 0 || f->delete_row_count > f->row_count))
        return entry_error(e, "its number of deleted rows is out of range", NULL);
    if (e->bucket < -2 || e->total_buckets < -2)
        return entry_error(e, "its bucket is out of range", NULL);
    if (f->external_path.data != NULL)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE, "file %.*s lies outside of the table",
                               TARN_SLICE_ARG(f->name));
    return TARN_OK;
}

static struct tarn_status *check_entry(struct checker *c, struct tarn_manifest_entry *e)
{
    /* The one decoder of such entries knows what names may look like. */
    struct tarn_slice packed = tarn_service__pack(c->op, e, true);
    struct tarn_status *s = tarn_manifest_entry_unpack(packed, c->op->arena, e);
    if (s != TARN_OK)
        return entry_error(e, "is no data file", s);
    TARN_TRY(check_numbers(e));
    TARN_TRY(load_schema(c, e));
    TARN_TRY(check_row(c, e, "its partition", e->partition, c->partition_types,
                       c->view->schema.partition_key_count));
    const struct tarn_type **types;
    size_t count = key_types(c, &types);
    if (e->file.min_key.size == 0)
        e->file.min_key = tarn_row_empty();
    if (e->file.max_key.size == 0)
        e->file.max_key = tarn_row_empty();
    TARN_TRY(check_row(c, e, "its min_key", e->file.min_key, types, count));
    TARN_TRY(check_row(c, e, "its max_key", e->file.max_key, types, count));
    TARN_TRY(check_stats(c, e, "its key_stats", &e->file.key_stats, types, count));
    TARN_TRY(value_types(c, e, &types, &count));
    return check_stats(c, e, "its value_stats", &e->file.value_stats, types, count);
}

static struct tarn_status *check_entries(struct checker *c, const struct tarn_manifest_entry **list,
                                         size_t count)
{
    struct tarn_manifest_entry *copy = tarn_arena_calloc(c->op->arena, count + 1, sizeof *copy);
    if (count > 0)
        memcpy(copy, *list, count * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        TARN_TRY(check_entry(c, &copy[i]));
    *list = copy;
    return TARN_OK;
}

static struct tarn_status *index_error(const struct tarn_index_file *f, const char *what)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT, "index file %.*s %s", TARN_SLICE_ARG(f->name),
                           what);
}

static struct tarn_status *check_index(struct checker *c, const struct tarn_index_file *f)
{
    if (f->name.size == 0 || memchr(f->name.data, '/', f->name.size) != NULL)
        return index_error(f, "has no name that a file can have");
    TARN_TRY(tarn_service__check_name("index file name", f->name));
    bool known = tarn_slice_is(f->type, TARN_INDEX_HASH) ||
                 tarn_slice_is(f->type, TARN_INDEX_DELETION_VECTORS);
    if (!known || f->external_path.data != NULL)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "index file %.*s is of type \"%.*s\"%s; HASH and DELETION_VECTORS "
                               "within the table are what can be committed",
                               TARN_SLICE_ARG(f->name), TARN_SLICE_ARG(f->type),
                               f->external_path.data != NULL ? " and lies outside of the table"
                                                             : "");
    if (f->size < 0 || f->row_count < 0 || f->bucket < 0)
        return index_error(f, "has a negative number");
    for (size_t i = 0; i < f->vector_count; i++) {
        const struct tarn_vector_range *v = &f->vectors[i];
        if (v->offset < 0 || v->length < 0 || (int64_t)v->offset + v->length > f->size)
            return index_error(f, "has a deletion vector outside of it");
    }
    struct tarn_status *s = tarn_row_deserialize(f->partition, c->partition_types,
                                                 c->view->schema.partition_key_count, c->partition);
    if (s == TARN_OK)
        return TARN_OK;
    tarn_status_free(s);
    return index_error(f, "has a partition that is no row of the table's partition columns");
}

static struct tarn_status *check_part(struct checker *c, struct tarn_commit_part *part)
{
    TARN_TRY(check_entries(c, &part->entries, part->count));
    TARN_TRY(check_entries(c, &part->changelog, part->changelog_count));
    for (size_t i = 0; i < part->changelog_count; i++)
        if (part->changelog[i].kind != TARN_ENTRY_ADD)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "changelog file %.*s can only be added",
                                   TARN_SLICE_ARG(part->changelog[i].file.name));
    for (size_t i = 0; i < part->index_count; i++)
        TARN_TRY(check_index(c, &part->index[i]));
    return TARN_OK;
}

/* --- what a commit is --- */

/* Rows of older snapshots that readers of increments must not take for new ones: an OVERWRITE (docs/format.md,
 * "Commit kinds"). */
static enum tarn_commit_kind append_kind(const struct tarn_commit *commit)
{
    if (commit->statistics.size > 0)
        return TARN_COMMIT_ANALYZE;
    if (commit->overwrite != TARN_OVERWRITE_NONE)
        return TARN_COMMIT_OVERWRITE;
    return tarn_commit_append_kind(commit);
}

static struct tarn_status *check_analyze(const struct tarn_commit *commit)
{
    TARN_TRY(tarn_service__check_name("statistics", commit->statistics));
    if (memchr(commit->statistics.data, '/', commit->statistics.size) != NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "statistics is the name of a file");
    if (tarn_commit_entry_count(commit) > 0 || commit->overwrite != TARN_OVERWRITE_NONE)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a commit of statistics brings no files beside them");
    return TARN_OK;
}

static struct tarn_status *check_identity(struct tarn_op *op, struct tarn_commit *commit)
{
    TARN_TRY(tarn_service__check_name("commit_user", commit->user));
    TARN_TRY(tarn_service__check_name("operation", commit->operation));
    for (size_t i = 0; i < commit->property_count; i++) {
        TARN_TRY(tarn_service__check_name("property key", commit->properties[i].key));
        TARN_TRY(tarn_service__check_name("property value", commit->properties[i].value));
    }
    if (commit->user.size > 0)
        return TARN_OK;
    if (commit->identifier != TARN_COMMIT_IDENTIFIER_BATCH)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "commit_identifier needs a commit_user");
    char user[TARN_UUID_SIZE];
    tarn_uuid_random(user);
    commit->user = tarn_arena_copy(op->arena, tarn_slice_str(user));
    return TARN_OK;
}

static struct tarn_status *match_partition(struct tarn_op *op, const struct tarn_schema *schema,
                                           const struct tarn_partition_match *match,
                                           struct tarn_partition_spec *out)
{
    size_t count = schema->partition_key_count;
    struct tarn_slice *values = tarn_arena_calloc(op->arena, count + 1, sizeof *values);
    bool *is_null = tarn_arena_calloc(op->arena, count + 1, sizeof *is_null);
    bool *is_set = tarn_arena_calloc(op->arena, count + 1, sizeof *is_set);
    for (size_t i = 0; i < match->value_count; i++) {
        const struct tarn_partition_value *v = &match->values[i];
        size_t at = 0;
        while (at < count && !tarn_slice_equal(schema->partition_keys[at], v->column))
            at++;
        if (at == count)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%.*s\" is no partition column",
                                   TARN_SLICE_ARG(v->column));
        if (is_set[at])
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "partition column \"%.*s\" is named twice",
                                   TARN_SLICE_ARG(v->column));
        values[at] = v->value;
        is_null[at] = v->is_null;
        is_set[at] = true;
    }
    *out = (struct tarn_partition_spec){values, is_null, is_set};
    return TARN_OK;
}

static struct tarn_status *match_partitions(struct tarn_op *op, const struct tarn_schema *schema,
                                            struct tarn_commit_request *request)
{
    bool wanted = request->commit.overwrite == TARN_OVERWRITE_PARTITIONS;
    if (wanted != (request->match_count > 0))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               wanted ? "overwrite.partitions names none"
                                      : "overwrite.partitions goes with PARTITIONS only");
    bool by_partition = wanted || request->commit.overwrite == TARN_OVERWRITE_DYNAMIC;
    if (by_partition && schema->partition_key_count == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the table has no partitions to overwrite");
    struct tarn_partition_spec *specs =
        tarn_arena_calloc(op->arena, request->match_count + 1, sizeof *specs);
    for (size_t i = 0; i < request->match_count; i++)
        TARN_TRY(match_partition(op, schema, &request->matches[i], &specs[i]));
    request->commit.partitions = specs;
    request->commit.partition_count = request->match_count;
    return TARN_OK;
}

static struct tarn_status *check_parts(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_table_view *view,
                                       struct tarn_commit *commit)
{
    if (tarn_commit_entry_count(commit) > TARN_COMMIT_ENTRIES_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "%zu entries in one commit, at most %d",
                               tarn_commit_entry_count(commit), TARN_COMMIT_ENTRIES_MAX);
    struct checker c = {.op = op, .table = table, .view = view};
    c.partition_types = tarn_partition_types(&view->schema, op->arena);
    c.partition =
        tarn_arena_calloc(op->arena, view->schema.partition_key_count + 1, sizeof *c.partition);
    TARN_TRY(check_part(&c, &commit->append));
    return check_part(&c, &commit->compact);
}

/* Everything about a request that can be judged without its table's history. */
struct tarn_status *tarn_service__check_commit(struct tarn_op *op, struct tarn_table *table,
                                               const struct tarn_table_view *view,
                                               struct tarn_commit_request *request)
{
    struct tarn_commit *commit = &request->commit;
    TARN_TRY(tarn_options_check_commit(&view->options));
    TARN_TRY(check_identity(op, commit));
    if (request->message_count > 0)
        TARN_TRY(tarn_service__take_messages(op, view, request));
    TARN_TRY(check_parts(op, table, view, commit));
    TARN_TRY(match_partitions(op, &view->schema, request));
    commit->kind = append_kind(commit);
    if (commit->kind == TARN_COMMIT_ANALYZE)
        TARN_TRY(check_analyze(commit));
    commit->check_files = true;
    return TARN_OK;
}

/* A commit on its way; lies in its op's arena. */
struct commit_run {
    struct tarn_service *service;
    struct tarn_table *table;
    const struct tarn_table_view *view; /* what the request was completed with may lie in it */
    struct tarn_op *op;
    const struct tarn_commit *commit;
    struct tarn_backlog *backlog;
    struct tarn_status *status;
    tarn_commit_done_fn done;
    void *arg;
};

static struct tarn_status *open_commit(struct tarn_op *op, struct commit_run *run,
                                       struct tarn_commit_request *request)
{
    TARN_TRY(tarn_service__table(op, run->service, request->ref, TARN_ACTION_WRITE, &run->table));
    TARN_TRY(tarn_table_look(op, run->table, &run->view));
    return tarn_service__check_commit(op, run->table, run->view, request);
}

static void end_commit(void *arg)
{
    struct commit_run *run = arg;
    if (run->status == TARN_OK)
        tarn_maintain_backlog(run->op, run->service->maintain, run->table,
                              run->commit->append.entries, run->commit->append.count, run->backlog);
    tarn_table_view_drop(&run->view);
    tarn_table_drop_ref(&run->table);
    run->done(run->arg, run->status);
}

/* In the table's mailbox, which has better to do than to send answers. */
static void post_end(void *arg, struct tarn_status *status)
{
    struct commit_run *run = arg;
    run->status = status;
    tarn_exec_post(run->service->exec, end_commit, run);
}

void tarn_service_commit(struct tarn_op *op, struct tarn_service *service,
                         struct tarn_commit_request *request, struct tarn_commit_result *out,
                         struct tarn_backlog *backlog, tarn_commit_done_fn done, void *arg)
{
    struct commit_run *run = tarn_arena_calloc(op->arena, 1, sizeof *run);
    *run = (struct commit_run){.service = service,
                               .op = op,
                               .commit = &request->commit,
                               .backlog = backlog,
                               .done = done,
                               .arg = arg};
    *backlog = (struct tarn_backlog){0};
    run->status = open_commit(op, run, request);
    if (run->status != TARN_OK)
        end_commit(run);
    else
        tarn_table_commit_start(op, run->table, &request->commit, out, post_end, run);
}

/* --- snapshots that are finished --- */

struct tarn_status *tarn_service_commit_snapshot(struct tarn_op *op, struct tarn_service *service,
                                                 const struct tarn_snapshot_request *request,
                                                 bool *landed)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_commit commit;
    struct tarn_commit_result result;
    TARN_TRY(tarn_service__table(op, service, request->ref, TARN_ACTION_WRITE, &table));
    TARN_TRY(tarn_table_read_finished(op, table, request->json, request->base_uuid, &commit));
    TARN_TRY(tarn_table_look(op, table, &view)); /* its files may be of a schema made just now */
    TARN_TRY(check_parts(op, table, view, &commit));
    struct tarn_status *s = tarn_table_commit(op, table, &commit, &result);
    *landed = s == TARN_OK;
    if (tarn_status_reason(s) != TARN_SNAPSHOT_TAKEN)
        return s;
    tarn_log(op, TARN_DEBUG, "commit.snapshot_stale", "why=%s",
             tarn_log_quote(op, tarn_status_message(s)));
    tarn_status_free(s);
    return TARN_OK;
}

/* --- what became of it --- */

static struct tarn_status *check_user(struct tarn_slice user)
{
    if (user.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the request names no commit_user");
    return tarn_service__check_name("commit_user", user);
}

struct tarn_status *tarn_service_get_commit(struct tarn_op *op, struct tarn_service *service,
                                            struct tarn_table_ref ref, struct tarn_slice user,
                                            int64_t identifier, int64_t since,
                                            struct tarn_commit_fate *out)
{
    TARN_TRY(check_user(user));
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    /* Asked first: one that lands and ends between the two was open. */
    bool open = tarn_service__intent_open(service, tarn_table_uuid(table), user, identifier);
    TARN_TRY(tarn_table_find_commit(op, table, user, identifier, 0, since, out));
    bool landed = out->state == TARN_COMMIT_LANDED || out->state == TARN_COMMIT_REFUSED;
    if (!landed && open)
        out->state = TARN_COMMIT_OPEN;
    return TARN_OK;
}

struct tarn_status *tarn_service_filter_committed(struct tarn_op *op, struct tarn_service *service,
                                                  struct tarn_table_ref ref, struct tarn_slice user,
                                                  const int64_t *identifiers, size_t count,
                                                  bool *keep, int64_t *last_identifier)
{
    TARN_TRY(check_user(user));
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    return tarn_table_filter_committed(op, table, user, identifiers, count, keep, last_identifier);
}
