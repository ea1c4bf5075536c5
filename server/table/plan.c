#include "table/internal.h"

#include "table/index.h"

/*
 * Planning: which files hold rows of a snapshot that a query may want. The index is walked, not the manifests:
 * LIVE entries added by then, and REMOVED ones removed later. Files are dropped only where it is proven that no
 * row passes; what the plan keeps is filtered exactly by the reader.
 */

struct planner {
    struct tarn_op *op;
    struct tarn_table *table;
    const struct tarn_plan_request *request;
    struct tarn_plan *plan;
    size_t capacity;

    struct tarn_predicate partition_where; /* what `where` says of partition columns alone */
    struct tarn_predicate key_where;       /* … of primary key columns alone */
    bool has_where;
    const struct tarn_type **partition_types;
    int *partition_columns;
    size_t partition_count;
    int *key_columns; /* trimmed primary key */
    size_t key_count;
    int32_t wanted_bucket_of; /* bucket count that wanted_bucket was reckoned for */
    int32_t wanted_bucket;    /* -1: any */
    struct tarn_value
        *bucket_values; /* one a bucket key column, where `where` fixes them all; else NULL */

    struct tarn_slice last_partition; /* the verdict on it is kept */
    bool last_partition_passes;
    const struct tarn_schema **schemas; /* by id, those that were needed */
    int64_t schema_capacity;
};

/* --- what the predicate fixes --- */

/* Is node `i` an EQ on a column, joined to the root by ANDs only? Walks the postfix list once. */
static const struct tarn_value *fixed_value(const struct tarn_predicate *p, int column,
                                            struct tarn_arena *arena)
{
    /* sure[i]: node i must be true where the root is. A node's operands end right before it. */
    bool *sure = tarn_arena_calloc(arena, p->node_count + 1, sizeof *sure);
    size_t *begin =
        tarn_arena_calloc(arena, p->node_count + 1, sizeof *begin); /* where its subtree begins */
    for (size_t i = 0; i < p->node_count; i++) {
        switch (p->nodes[i].op) {
        case TARN_PRED_NOT:
            begin[i] = begin[i - 1];
            break;
        case TARN_PRED_AND:
        case TARN_PRED_OR:
            begin[i] = begin[begin[i - 1] - 1];
            break;
        default:
            begin[i] = i;
        }
    }
    if (p->node_count > 0)
        sure[p->node_count - 1] = true;
    for (size_t i = p->node_count; i-- > 0;) {
        const struct tarn_predicate_node *n = &p->nodes[i];
        if (!sure[i])
            continue;
        if (n->op == TARN_PRED_AND) {
            sure[i - 1] = true;
            sure[begin[i - 1] - 1] = true;
        }
        if (n->column == column &&
            (n->op == TARN_PRED_EQ || (n->op == TARN_PRED_IN && n->value_count == 1)))
            return &n->values[0];
    }
    return NULL;
}

static struct tarn_status *prepare_where(struct planner *p)
{
    struct tarn_plan *plan = p->plan;
    struct tarn_arena *arena = p->op->arena;
    p->partition_count = tarn_schema_partition_columns(plan->schema, arena, &p->partition_columns);
    p->partition_types = tarn_partition_types(plan->schema, arena);
    p->key_count = tarn_schema_trimmed_key_columns(plan->schema, arena, &p->key_columns);
    p->has_where = p->request->where.size > 0;
    if (!p->has_where)
        return TARN_OK;
    TARN_TRY(tarn_predicate_parse(p->request->where, plan->schema, arena, &plan->where));
    TARN_TRY(tarn_predicate_restrict(&plan->where, p->partition_columns, p->partition_count, arena,
                                     &p->partition_where));
    TARN_TRY(
        tarn_predicate_restrict(&plan->where, p->key_columns, p->key_count, arena, &p->key_where));
    const struct tarn_options *o = plan->options;
    if (o->bucket <= 0 || o->bucket_key_count == 0)
        return TARN_OK;
    struct tarn_value *values = tarn_arena_calloc(arena, o->bucket_key_count, sizeof *values);
    for (size_t i = 0; i < o->bucket_key_count; i++) {
        const struct tarn_value *v = fixed_value(&plan->where, o->bucket_key_columns[i], arena);
        if (v == NULL)
            return TARN_OK;
        values[i] = *v;
    }
    p->bucket_values = values;
    return TARN_OK;
}

/* --- pruning, one test each --- */

static struct tarn_status *partition_passes(struct planner *p, struct tarn_slice partition,
                                            bool *out)
{
    *out = true;
    if (!p->has_where || p->partition_count == 0)
        return TARN_OK;
    if (p->last_partition.data != NULL && tarn_slice_equal(p->last_partition, partition)) {
        *out = p->last_partition_passes;
        return TARN_OK;
    }
    struct tarn_value *row = tarn_arena_calloc(p->op->arena, p->partition_count, sizeof *row);
    struct tarn_value *values =
        tarn_arena_calloc(p->op->arena, p->plan->schema->field_count, sizeof *values);
    TARN_TRY(tarn_row_deserialize(partition, p->partition_types, p->partition_count, row));
    for (size_t i = 0; i < p->partition_count; i++)
        values[p->partition_columns[i]] = row[i];
    *out = tarn_predicate_eval(&p->partition_where, p->plan->schema, values) == TARN_TRUE;
    p->last_partition = partition;
    p->last_partition_passes = *out;
    return TARN_OK;
}

static bool bucket_passes(struct planner *p, const struct tarn_manifest_entry *entry)
{
    if (p->bucket_values == NULL || entry->total_buckets <= 0)
        return true;
    const struct tarn_options *o = p->plan->options;
    if (p->wanted_bucket_of != entry->total_buckets) { /* the count is each partition's own */
        const struct tarn_type **types =
            tarn_arena_calloc(p->op->arena, o->bucket_key_count, sizeof *types);
        for (size_t i = 0; i < o->bucket_key_count; i++)
            types[i] = p->plan->schema->fields[o->bucket_key_columns[i]].type;
        p->wanted_bucket_of = entry->total_buckets;
        p->wanted_bucket = tarn_bucket_of(o->bucket_function, types, p->bucket_values,
                                          o->bucket_key_count, entry->total_buckets);
    }
    return entry->bucket == p->wanted_bucket;
}

/* The schema a file was written by, read once. */
static struct tarn_status *file_schema(struct planner *p, int64_t id,
                                       const struct tarn_schema **out)
{
    if (id == p->plan->schema->id) {
        *out = p->plan->schema;
        return TARN_OK;
    }
    if (id < 0 || id >= p->schema_capacity)
        return tarn_status_new(TARN_MANIFEST_MALFORMED, "table %s: a file names schema %" PRId64,
                               p->table->name, id);
    if (p->schemas[id] == NULL)
        TARN_TRY(tarn_table_schema(p->op, p->table, id, &p->schemas[id]));
    *out = p->schemas[id];
    return TARN_OK;
}

static struct tarn_bounds *unknown_bounds(struct planner *p, int64_t row_count)
{
    struct tarn_bounds *bounds =
        tarn_arena_calloc(p->op->arena, p->plan->schema->field_count, sizeof *bounds);
    for (size_t i = 0; i < p->plan->schema->field_count; i++)
        bounds[i] = (struct tarn_bounds){.null_count = TARN_STATS_UNKNOWN, .row_count = row_count};
    return bounds;
}

/* Sets bounds[target] from position `at` of stats decoded as min and max. */
static void set_bounds(struct tarn_bounds *bounds, int target, const struct tarn_stats *stats,
                       size_t at, const struct tarn_value *min, const struct tarn_value *max)
{
    struct tarn_bounds *b = &bounds[target];
    b->known = true;
    b->min = min[at];
    b->max = max[at];
    if (at < stats->count)
        b->null_count = stats->null_counts[at];
}

/* Key statistics: one a key column, in key order. False: they can't be used. */
static bool key_bounds(struct planner *p, const struct tarn_data_file *file,
                       struct tarn_bounds *bounds)
{
    const struct tarn_type **types =
        tarn_arena_calloc(p->op->arena, p->key_count + 1, sizeof *types);
    struct tarn_value *min = tarn_arena_calloc(p->op->arena, p->key_count * 2 + 1, sizeof *min);
    struct tarn_value *max = min + p->key_count;
    for (size_t i = 0; i < p->key_count; i++)
        types[i] = p->plan->schema->fields[p->key_columns[i]].type;
    struct tarn_status *s = tarn_row_deserialize(file->key_stats.min, types, p->key_count, min);
    if (s == TARN_OK)
        s = tarn_row_deserialize(file->key_stats.max, types, p->key_count, max);
    if (s != TARN_OK) { /* pruning is optional: bounds that don't decode prune nothing */
        tarn_status_free(s);
        return false;
    }
    for (size_t i = 0; i < p->key_count; i++)
        set_bounds(bounds, p->key_columns[i], &file->key_stats, i, min, max);
    return true;
}

/* Which columns of the file's schema its value statistics cover, in their order. */
static size_t covered_columns(struct planner *p, const struct tarn_schema *schema,
                              const struct tarn_data_file *file, int **out)
{
    int *columns = tarn_arena_calloc(
        p->op->arena, schema->field_count + file->value_stats_column_count + 1, sizeof *columns);
    size_t n = 0;
    if (file->has_value_stats_columns)
        for (size_t i = 0; i < file->value_stats_column_count; i++)
            columns[n++] = tarn_schema_find(schema, file->value_stats_columns[i]);
    else if (file->value_stats.count > 0 || schema->field_count == 0)
        for (size_t i = 0; i < schema->field_count; i++)
            columns[n++] = (int)i;
    *out = columns;
    return n;
}

/* Value statistics, mapped by field id to the columns of the plan's schema. A column that the file's schema lacks
 * is null in every row; a column whose type has changed since has no usable bounds. */
static struct tarn_status *value_bounds(struct planner *p, const struct tarn_data_file *file,
                                        struct tarn_bounds *bounds)
{
    const struct tarn_schema *now = p->plan->schema, *then = NULL;
    TARN_TRY(file_schema(p, file->schema_id, &then));
    int *covered;
    size_t count = covered_columns(p, then, file, &covered);
    const struct tarn_type **types = tarn_arena_calloc(p->op->arena, count + 1, sizeof *types);
    struct tarn_value *min = tarn_arena_calloc(p->op->arena, count * 2 + 1, sizeof *min),
                      *max = min + count;
    bool usable = true;
    for (size_t i = 0; i < count; i++) {
        usable &= covered[i] >= 0;
        if (usable)
            types[i] = then->fields[covered[i]].type;
    }
    struct tarn_status *s =
        usable ? tarn_row_deserialize(file->value_stats.min, types, count, min) : TARN_OK;
    if (s == TARN_OK && usable)
        s = tarn_row_deserialize(file->value_stats.max, types, count, max);
    if (s != TARN_OK) {
        tarn_status_free(s);
        usable = false;
    }
    for (size_t i = 0; usable && i < count; i++) {
        int target = tarn_schema_find_id(now, then->fields[covered[i]].id);
        if (target >= 0 && tarn_type_equal(now->fields[target].type, types[i], true))
            set_bounds(bounds, target, &file->value_stats, i, min, max);
    }
    for (size_t i = 0; i < now->field_count; i++)
        if (tarn_schema_find_id(then, now->fields[i].id) < 0)
            bounds[i].null_count = file->row_count;
    return TARN_OK;
}

static struct tarn_status *key_passes(struct planner *p, const struct tarn_data_file *file,
                                      bool *out)
{
    struct tarn_bounds *bounds = unknown_bounds(p, file->row_count);
    *out = !key_bounds(p, file, bounds) ||
           tarn_predicate_may_match(&p->key_where, p->plan->schema, bounds);
    return TARN_OK;
}

static struct tarn_status *values_pass(struct planner *p, const struct tarn_data_file *file,
                                       bool *out)
{
    struct tarn_bounds *bounds = unknown_bounds(p, file->row_count);
    TARN_TRY(value_bounds(p, file, bounds));
    *out = tarn_predicate_may_match(&p->plan->where, p->plan->schema, bounds);
    return TARN_OK;
}

/* --- collecting --- */

static struct tarn_status *consider(struct planner *p, const struct tarn_live *live)
{
    struct tarn_plan *plan = p->plan;
    /* Postponed files wait for their bucket (format.md "Buckets"): listed, but no reader sees their rows. */
    if (live->entry.bucket < 0 && !p->request->no_splits)
        return TARN_OK;
    plan->files_seen++;
    bool passes;
    TARN_TRY(partition_passes(p, live->entry.partition, &passes));
    if (!passes) {
        plan->pruned_by_partition++;
        return TARN_OK;
    }
    if (!bucket_passes(p, &live->entry)) {
        plan->pruned_by_bucket++;
        return TARN_OK;
    }
    struct tarn_plan_file file = {live->entry, live->added_by};
    if (p->has_where || p->request->with_stats)
        TARN_TRY(tarn_table__stats_find(p->table, live, p->op->arena, &file.entry));
    if (p->has_where && p->key_count > 0) {
        TARN_TRY(key_passes(p, &file.entry.file, &passes));
        if (!passes) {
            plan->pruned_by_key++;
            return TARN_OK;
        }
    }
    if (p->has_where && tarn_schema_is_append(plan->schema)) {
        TARN_TRY(values_pass(p, &file.entry.file, &passes));
        if (!passes) {
            plan->pruned_by_stats++;
            return TARN_OK;
        }
    }
    if (plan->file_count == p->capacity) {
        size_t capacity = p->capacity == 0 ? 64 : p->capacity * 2;
        struct tarn_plan_file *files = tarn_arena_calloc(p->op->arena, capacity, sizeof *files);
        if (plan->file_count > 0)
            memcpy(files, plan->files, plan->file_count * sizeof *files);
        plan->files = files;
        p->capacity = capacity;
    }
    plan->files[plan->file_count++] = file;
    return TARN_OK;
}

static bool take_removed_by(struct tarn_slice key, int64_t *out)
{
    size_t prefix = TARN_UUID_SIZE - 1;
    if (key.size < prefix)
        return false;
    struct tarn_slice rest = tarn_slice_of(key.data + prefix, key.size - prefix);
    size_t bucket_size = tarn_table__bucket_size(rest);
    rest = tarn_slice_of(rest.data + bucket_size, rest.size - bucket_size);
    return bucket_size > 0 && tarn_key_take_i64(&rest, out);
}

/* Walks one family; only entries that the plan's snapshot sees are considered. */
static struct tarn_status *walk(struct planner *p, struct tarn_state_iterator *it, bool removed)
{
    int64_t at = p->plan->snapshot.id;
    struct tarn_slice key, value;
    int64_t steps = 0;
    while (tarn_state_iterator_next(it, &key, &value)) {
        if ((++steps & 1023) == 0)
            TARN_TRY(tarn_op_check(p->op));
        int64_t removed_by = INT64_MAX;
        if (removed && !take_removed_by(key, &removed_by))
            return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a key of the index is damaged",
                                   p->table->name);
        struct tarn_live live;
        TARN_TRY(tarn_table__live_decode(value, p->op->arena, &live));
        if (live.added_by <= at && removed_by > at)
            TARN_TRY(consider(p, &live));
    }
    return tarn_state_iterator_error(it);
}

static int by_bucket(const void *a, const void *b)
{
    const struct tarn_manifest_entry *left = &((const struct tarn_plan_file *)a)->entry;
    const struct tarn_manifest_entry *right = &((const struct tarn_plan_file *)b)->entry;
    int c = tarn_slice_compare(left->partition, right->partition);
    if (c == 0)
        c = (left->bucket > right->bucket) - (left->bucket < right->bucket);
    if (c == 0)
        c = (left->file.level > right->file.level) - (left->file.level < right->file.level);
    return c != 0 ? c : tarn_slice_compare(left->file.name, right->file.name);
}

static struct tarn_status *collect(struct planner *p)
{
    struct tarn_state *state = p->table->env->state;
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(p->table->uuid, tarn_slice_str(NULL), NULL, &prefix);
    pthread_mutex_lock(&p->table->index_lock); /* both iterators see one state of the index */
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *live =
        tarn_state_iterator_new(state, TARN_FAMILY_LIVE, tarn_buf_slice(&prefix));
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *removed =
        tarn_state_iterator_new(state, TARN_FAMILY_REMOVED, tarn_buf_slice(&prefix));
    pthread_mutex_unlock(&p->table->index_lock);
    TARN_TRY(walk(p, live, false));
    TARN_TRY(walk(p, removed, true));
    if (p->plan->file_count > 0)
        qsort(p->plan->files, p->plan->file_count, sizeof *p->plan->files, by_bucket);
    return TARN_OK;
}

/* A value filter may drop a whole section of overlapping files, never one file of it: another may hold the newer
 * version of a row. */
static struct tarn_status *prune_sections(struct planner *p)
{
    struct tarn_plan *plan = p->plan;
    if (!p->has_where || tarn_schema_is_append(plan->schema))
        return TARN_OK;
    size_t kept = 0;
    for (size_t begin = 0, end; begin < plan->file_count; begin = end) {
        for (end = begin + 1; end < plan->file_count; end++)
            if (plan->files[end].entry.bucket != plan->files[begin].entry.bucket ||
                !tarn_slice_equal(plan->files[end].entry.partition,
                                  plan->files[begin].entry.partition))
                break;
        size_t count = end - begin;
        int *section_of = tarn_arena_calloc(p->op->arena, count + 1, sizeof *section_of);
        int section_count;
        TARN_TRY(tarn_table__sections(p->op, plan->schema, plan->files + begin, count, section_of,
                                      &section_count));
        bool *wanted = tarn_arena_calloc(p->op->arena, (size_t)section_count + 1, sizeof *wanted);
        for (size_t i = 0; i < count; i++) {
            bool passes = true;
            if (!wanted[section_of[i]])
                TARN_TRY(values_pass(p, &plan->files[begin + i].entry.file, &passes));
            wanted[section_of[i]] |= passes;
        }
        for (size_t i = 0; i < count; i++) {
            if (wanted[section_of[i]])
                plan->files[kept++] = plan->files[begin + i];
            else
                plan->pruned_by_stats++;
        }
    }
    plan->file_count = kept;
    return TARN_OK;
}

/* The schema a plan reads with: the current one, or for time travel that of the snapshot. */
static struct tarn_status *choose_schema(struct planner *p, const struct tarn_table_view *view)
{
    bool travels = p->request->version.snapshot_id != TARN_SNAPSHOT_NONE ||
                   p->request->version.time_ms != TARN_SNAPSHOT_NONE;
    int64_t id = travels && p->plan->has_snapshot ? p->plan->snapshot.schema_id : view->schema.id;
    TARN_TRY(tarn_table_schema(p->op, p->table, id, &p->plan->schema));
    struct tarn_options *options = tarn_arena_calloc(p->op->arena, 1, sizeof *options);
    TARN_TRY(tarn_options_parse(p->plan->schema, p->op->arena, options));
    p->plan->options = options;
    p->schema_capacity = view->schema.id + 1;
    p->schemas = tarn_arena_calloc(p->op->arena, (size_t)p->schema_capacity, sizeof *p->schemas);
    return TARN_OK;
}

struct tarn_status *tarn_table_plan(struct tarn_op *op, struct tarn_table *table,
                                    const struct tarn_plan_request *request, struct tarn_plan *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    int64_t begun = tarn_clock_mono_ns();
    memset(out, 0, sizeof *out);
    struct planner p = {
        .op = op, .table = table, .request = request, .plan = out, .wanted_bucket_of = -1};
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    TARN_TRY(tarn_table_snapshot(op, table, request->version, &out->has_snapshot, &out->snapshot));
    TARN_TRY(choose_schema(&p, view));
    TARN_TRY(prepare_where(&p));
    if (!out->has_snapshot)
        return TARN_OK;
    TARN_TRY(collect(&p));
    TARN_TRY(prune_sections(&p));
    if (!request->no_splits)
        TARN_TRY(tarn_table__make_splits(op, out->schema, out->options, out));
    tarn_metric_add(TARN_M_PLANS, NULL, 1);
    tarn_metric_observe(TARN_M_PLAN_SECONDS, NULL, (double)(tarn_clock_mono_ns() - begun) / 1e9);
    return TARN_OK;
}

/* --- pictures of buckets --- */

struct tarn_status *tarn_table_buckets(struct tarn_op *op, struct tarn_table *table,
                                       struct tarn_slice partition, struct tarn_bucket_files **out,
                                       size_t *count)
{
    TARN_TRY(tarn_table__check_here(table));
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(table->uuid, partition, NULL, &prefix);
    struct tarn_live *live;
    size_t live_count;
    TARN_TRY(tarn_table__live_list(table, tarn_buf_slice(&prefix), op->arena, &live, &live_count));
    struct tarn_manifest_entry *files = tarn_arena_calloc(op->arena, live_count + 1, sizeof *files);
    struct tarn_bucket_files *list = tarn_arena_calloc(op->arena, live_count + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < live_count; i++) { /* keys come in order of partition and bucket */
        files[i] = live[i].entry;
        if (n == 0 || list[n - 1].bucket != files[i].bucket ||
            !tarn_slice_equal(list[n - 1].partition, files[i].partition))
            list[n++] = (struct tarn_bucket_files){files[i].partition, files[i].bucket,
                                                   files[i].total_buckets, &files[i], 0};
        list[n - 1].file_count++;
    }
    *out = list;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_table_bucket(struct tarn_op *op, struct tarn_table *table,
                                      struct tarn_slice partition, int32_t bucket,
                                      struct tarn_bucket_files *out)
{
    TARN_TRY(tarn_table__check_here(table));
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(table->uuid, partition, &bucket, &prefix);
    struct tarn_live *live;
    size_t count;
    TARN_TRY(tarn_table__live_list(table, tarn_buf_slice(&prefix), op->arena, &live, &count));
    out->partition = partition;
    out->bucket = bucket;
    out->total_buckets = count > 0 ? live[0].entry.total_buckets : 0;
    out->files = tarn_arena_calloc(op->arena, count + 1, sizeof *out->files);
    out->file_count = count;
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_table__stats_find(table, &live[i], op->arena, &out->files[i]));
    return TARN_OK;
}
