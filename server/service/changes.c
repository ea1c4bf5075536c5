#include "service/subscribe_internal.h"

/* Rows that changed between two snapshots, for a worker to read: snapshot by snapshot, as a stream tells them. */

#define SNAPSHOTS_MAX 100000 /* of one scan */

struct gathered {
    struct tarn_scan_split *splits;
    size_t count, capacity;
    int64_t *schema_ids;
    size_t schema_count, schema_capacity;
};

static void gathered_drop(struct gathered *g)
{
    free(g->splits);
    free(g->schema_ids);
}

static struct tarn_slice *pack_files(struct tarn_op *op, struct gathered *g,
                                     const struct tarn_plan_file *files, size_t count)
{
    struct tarn_slice *out = tarn_arena_calloc(op->arena, count + 1, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        int64_t schema_id = files[i].entry.file.schema_id;
        out[i] = tarn_service__pack(op, &files[i].entry, false);
        if (g->schema_count > 0 && g->schema_ids[g->schema_count - 1] == schema_id)
            continue;
        TARN_GROW(g->schema_ids, g->schema_count, g->schema_capacity);
        g->schema_ids[g->schema_count++] = schema_id;
    }
    return out;
}

static void add_splits(struct tarn_op *op, struct gathered *g, const struct tarn_plan *plan,
                       bool differs)
{
    for (size_t i = 0; i < plan->split_count; i++) {
        const struct tarn_split *from = &plan->splits[i];
        struct tarn_slice *before = pack_files(op, g, from->before_files, from->before_count);
        TARN_GROW(g->splits, g->count, g->capacity);
        g->splits[g->count++] = (struct tarn_scan_split){
            .partition = from->partition,
            .bucket = from->bucket,
            .files = pack_files(op, g, from->files, from->file_count),
            .file_count = from->file_count,
            .differs = differs,
            .before_files = before,
            .before_count = differs ? from->before_count : 0,
        };
    }
}

/* --- the difference of two states --- */

static int by_bucket(const struct tarn_split *a, const struct tarn_split *b)
{
    int c = tarn_slice_compare(a->partition, b->partition);
    return c != 0 ? c : (a->bucket > b->bucket) - (a->bucket < b->bucket);
}

static int split_order(const void *a, const void *b)
{
    return by_bucket(a, b);
}

/* All files of the plan, one split a bucket, in order. */
static void join_buckets(struct tarn_op *op, struct tarn_plan *plan)
{
    size_t kept = 0;
    if (plan->split_count > 1)
        qsort(plan->splits, plan->split_count, sizeof *plan->splits, split_order);
    for (size_t i = 0; i < plan->split_count; i++) {
        struct tarn_split *split = &plan->splits[i],
                          *last = kept == 0 ? NULL : &plan->splits[kept - 1];
        if (last == NULL || by_bucket(last, split) != 0) {
            plan->splits[kept++] = *split;
            continue;
        }
        size_t n = last->file_count + split->file_count;
        struct tarn_plan_file *files = tarn_arena_calloc(op->arena, n, sizeof *files);
        memcpy(files, last->files, last->file_count * sizeof *files);
        memcpy(files + last->file_count, split->files, split->file_count * sizeof *files);
        last->files = files;
        last->file_count = n;
    }
    plan->split_count = kept;
}

/* Deletion vectors only grow: two of one file that mark as many rows are the same, wherever they lie. */
static bool same_vector(const struct tarn_vector_ref *a, const struct tarn_vector_ref *b)
{
    if (a->path.data == NULL || b->path.data == NULL)
        return a->path.data == b->path.data;
    if (a->cardinality != TARN_FILE_NONE && b->cardinality != TARN_FILE_NONE)
        return a->cardinality == b->cardinality;
    return a->offset == b->offset && tarn_slice_equal(a->path, b->path);
}

static bool has_file(const struct tarn_split *split, const struct tarn_plan_file *file)
{
    for (size_t i = 0; i < split->file_count; i++) {
        const struct tarn_manifest_entry *e = &split->files[i].entry;
        if (tarn_slice_equal(e->file.name, file->entry.file.name) &&
            e->file.level == file->entry.file.level &&
            same_vector(&e->file.vector, &file->entry.file.vector))
            return true;
    }
    return false;
}

/* Is the bucket the same at both ends? Without a key, files that are at both ends say nothing, and are left out. */
static bool same_bucket(struct tarn_split *before, struct tarn_split *after, bool keyed)
{
    struct tarn_split b = *before, a = *after;
    size_t left_before = 0, left_after = 0;
    struct tarn_plan_file *kept_before = b.file_count == 0 ? NULL : b.files;
    for (size_t i = 0; i < b.file_count; i++)
        if (!has_file(&a, &b.files[i]))
            left_before++;
    for (size_t i = 0; i < a.file_count; i++)
        if (!has_file(&b, &a.files[i]))
            left_after++;
    if (left_before == 0 && left_after == 0)
        return true;
    if (keyed)
        return false;
    /* In two steps: each list is looked at while the other is whole. */
    bool *keep = tarn_calloc(b.file_count + a.file_count + 1, sizeof *keep);
    for (size_t i = 0; i < b.file_count; i++)
        keep[i] = !has_file(&a, &kept_before[i]);
    for (size_t i = 0; i < a.file_count; i++)
        keep[b.file_count + i] = !has_file(&b, &a.files[i]);
    before->file_count = after->file_count = 0;
    for (size_t i = 0; i < b.file_count; i++)
        if (keep[i])
            before->files[before->file_count++] = before->files[i];
    for (size_t i = 0; i < a.file_count; i++)
        if (keep[b.file_count + i])
            after->files[after->file_count++] = after->files[i];
    free(keep);
    return false;
}

/* What differs between the two, if anything; one of them may be NULL. */
static void add_difference(struct tarn_split *before, struct tarn_split *after, bool keyed,
                           struct tarn_plan *out)
{
    struct tarn_split none = {.partition = before != NULL ? before->partition : after->partition,
                              .bucket = before != NULL ? before->bucket : after->bucket};
    struct tarn_split b = before != NULL ? *before : none, a = after != NULL ? *after : none;
    if (same_bucket(&b, &a, keyed))
        return;
    a.raw = false;
    a.total_buckets = after != NULL ? after->total_buckets : before->total_buckets;
    a.before_files = b.files;
    a.before_count = b.file_count;
    out->splits[out->split_count++] = a;
    out->file_count += a.file_count + a.before_count;
}

static struct tarn_status *plan_at(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                   struct tarn_slice where, struct tarn_plan *out)
{
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(id), .where = where};
    *out = (struct tarn_plan){0};
    if (id == 0) /* before the first one there was nothing */
        return TARN_OK;
    return tarn_table_plan(op, table, &request, out);
}

struct tarn_status *tarn_service__plan_difference(struct tarn_op *op, struct tarn_table *table,
                                                  int64_t from, int64_t to, struct tarn_slice where,
                                                  struct tarn_plan *out)
{
    struct tarn_plan before, after;
    size_t b = 0, a = 0;
    TARN_TRY(plan_at(op, table, from, where, &before));
    TARN_TRY(plan_at(op, table, to, where, &after));
    bool keyed = after.schema->primary_key_count > 0;
    join_buckets(op, &before);
    join_buckets(op, &after);
    *out = after;
    out->file_count = out->split_count = 0;
    out->splits = tarn_arena_calloc(op->arena, before.split_count + after.split_count + 1,
                                    sizeof *out->splits);
    while (b < before.split_count || a < after.split_count) {
        int order = b == before.split_count  ? 1
                    : a == after.split_count ? -1
                                             : by_bucket(&before.splits[b], &after.splits[a]);
        add_difference(order <= 0 ? &before.splits[b] : NULL, order >= 0 ? &after.splits[a] : NULL,
                       keyed, out);
        b += order <= 0;
        a += order >= 0;
    }
    return TARN_OK;
}

/* --- what snapshots changed --- */

static struct tarn_status *gather_snapshot(struct tarn_op *op, struct tarn_table *table,
                                           const struct tarn_topic_spec *spec, int64_t id,
                                           struct gathered *g)
{
    struct tarn_plan plan;
    const char **paths;
    bool differs;
    TARN_TRY(tarn_service__plan_event(op, table, spec, id, false, &plan, &paths, &differs));
    add_splits(op, g, &plan, differs);
    return TARN_OK;
}

static struct tarn_status *check_range(struct tarn_op *op, struct tarn_table *table, int64_t from,
                                       int64_t to)
{
    if (from < 0 || from >= to)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "changes after snapshot %" PRId64 " up to snapshot %" PRId64, from,
                               to);
    if (to - from > SNAPSHOTS_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "changes of more than %d snapshots", SNAPSHOTS_MAX);
    /* Is the first of them there, or why not: expired, or undone since the caller heard of it. */
    const struct tarn_position first = {.snapshot_id = from + 1};
    return tarn_service__check_position(op, table, &first);
}

/* Changes come from the table's index. Where it has the last snapshot as the folder does, it has what led there, too:
 * asked before and behind. */
static struct tarn_status *check_history(struct tarn_op *op, struct tarn_table *table, int64_t to)
{
    struct tarn_snapshot snapshot;
    uint64_t identity;
    bool same;
    TARN_TRY(tarn_table_find_snapshot(op, table, to, &same, &snapshot, &identity));
    if (same)
        TARN_TRY(tarn_table_is_indexed(table, to, identity, &same));
    if (same)
        return TARN_OK;
    return tarn_status_new(TARN_BUSY, "others are rewriting the history of table %s",
                           tarn_table_name(table));
}

struct tarn_status *tarn_service_changes_begin(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_table_ref ref, int64_t from, int how,
                                               struct tarn_version version, struct tarn_slice where,
                                               struct tarn_scan *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_OWN(gathered_drop) struct gathered g = {0};
    struct tarn_snapshot last;
    bool found;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_table_look(op, table, &view));
    TARN_TRY(tarn_table_snapshot(op, table, version, &found, &last));
    *out = (struct tarn_scan){.changes = true, .snapshot_id = found ? last.id : 0};
    bool changed = found && from != last.id;
    if (changed) {
        TARN_TRY(check_range(op, table, from, last.id));
        TARN_TRY(check_history(op, table, last.id));
    }
    struct tarn_topic_spec spec = {
        .changes = true, .how = how, .where = tarn_arena_str(op->arena, where)};
    if (view->schema.primary_key_count >
        0) /* a merge is needed, or records are what only an engine of the table's kind understands */
        TARN_TRY(tarn_options_check_merge(&view->options));
    if (found && how == TARN_CHANGES_DIFF && from < last.id) {
        struct tarn_plan plan;
        TARN_TRY(tarn_service__plan_difference(op, table, from, last.id, where, &plan));
        add_splits(op, &g, &plan, true);
    }
    for (int64_t id = from + 1; found && how != TARN_CHANGES_DIFF && id <= last.id; id++)
        TARN_TRY(gather_snapshot(op, table, &spec, id, &g));
    if (changed)
        TARN_TRY(check_history(op, table, last.id));
    out->split_count = g.count;
    out->splits = tarn_arena_calloc(op->arena, g.count + 1, sizeof *out->splits);
    if (g.count > 0)
        memcpy(out->splits, g.splits, g.count * sizeof *out->splits);
    TARN_TRY(tarn_service__describe(op, service, table, &view->schema, g.schema_ids, g.schema_count,
                                    &out->description));
    return tarn_maintain_begin_stream(op, service->maintain, &out->worker_id, &out->worker_address);
}
