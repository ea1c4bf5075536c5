#include "table/plan.h"

#include "format/file_index.h"

/*
 * What can't hold a row that passes: by partition, bucket, bounds (prune_bounds.c), file index. Each test answers "may",
 * and says no only where that is proven; what is damaged or not known proves nothing.
 */

#define WANTED_BUCKETS_MAX                                                                         \
    10000                  /* combinations of bucket key values; more: every bucket is looked at */
#define INDEX_READS_MAX 64 /* index files beside data files that one plan fetches */
#define INDEX_READ_SIZE_MAX ((int64_t)1 << 20)
#define INDEX_READ_PAYS ((int64_t)4 << 20) /* a data file smaller than this is as soon read */
#define SCRATCH_SIZE ((size_t)1 << 20)

void tarn_plan__scratch_reset(struct tarn_planner *p)
{
    if (p->scratch != NULL && tarn_arena_size(p->scratch) <= SCRATCH_SIZE)
        return;
    tarn_arena_drop(&p->scratch);
    p->scratch = tarn_arena_new();
}

/* --- what the predicate fixes --- */

/* The values that `column` may have where the predicate is true: of an EQ or IN that is joined to the root by ANDs
 * only. NULL: any. Walks the postfix list once. */
static const struct tarn_value *fixed_values(const struct tarn_predicate *p, int column,
                                             struct tarn_arena *arena, size_t *count)
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
        bool names = n->op == TARN_PRED_EQ || n->op == TARN_PRED_IN;
        if (names && n->column == column && n->value_count > 0) {
            *count = n->value_count;
            return n->values;
        }
    }
    return NULL;
}

static bool is_true(const struct tarn_predicate *p)
{
    return p->node_count == 0 || (p->node_count == 1 && p->nodes[0].op == TARN_PRED_TRUE);
}

static void prepare_buckets(struct tarn_planner *p)
{
    const struct tarn_options *o = p->plan.options;
    struct tarn_arena *arena = p->op->arena;
    size_t n = o->bucket_key_count, combinations = 1;
    p->wanted_of = -1;
    if (o->bucket <= 0 || n == 0)
        return;
    const struct tarn_value **values = tarn_arena_calloc(arena, n, sizeof *values);
    p->bucket_value_counts = tarn_arena_calloc(arena, n, sizeof *p->bucket_value_counts);
    for (size_t i = 0; i < n; i++) {
        values[i] = fixed_values(&p->plan.where, o->bucket_key_columns[i], arena,
                                 &p->bucket_value_counts[i]);
        if (values[i] == NULL || p->bucket_value_counts[i] > WANTED_BUCKETS_MAX)
            return;
        combinations *= p->bucket_value_counts[i];
        if (combinations > WANTED_BUCKETS_MAX)
            return;
    }
    p->bucket_values = values;
}

struct tarn_status *tarn_plan__prepare(struct tarn_planner *p)
{
    struct tarn_plan *plan = &p->plan;
    struct tarn_arena *arena = p->op->arena;
    size_t field_count = plan->schema->field_count;
    p->is_append = tarn_schema_is_append(plan->schema);
    p->partition_count = tarn_schema_partition_columns(plan->schema, arena, &p->partition_columns);
    p->partition_types = tarn_partition_types(plan->schema, arena);
    p->key_count = tarn_schema_trimmed_key_columns(plan->schema, arena, &p->key_columns);
    p->key_types = tarn_arena_calloc(arena, p->key_count + 1, sizeof *p->key_types);
    for (size_t i = 0; i < p->key_count; i++)
        p->key_types[i] = plan->schema->fields[p->key_columns[i]].type;
    p->row = tarn_arena_calloc(arena, field_count + 1, sizeof *p->row);
    p->bounds = tarn_arena_calloc(arena, field_count + 1, sizeof *p->bounds);
    p->key_values = tarn_arena_calloc(arena, p->key_count * 2 + 1, sizeof *p->key_values);
    p->index_reads_left = plan->options->file_index_read ? INDEX_READS_MAX : 0;
    p->has_where = p->request.where.size > 0;
    p->wanted_of = -1;
    if (!p->has_where)
        return TARN_OK;
    TARN_TRY(tarn_predicate_parse(p->request.where, plan->schema, arena, &plan->where));
    TARN_TRY(tarn_predicate_restrict(&plan->where, p->partition_columns, p->partition_count, arena,
                                     &p->partition_where));
    TARN_TRY(
        tarn_predicate_restrict(&plan->where, p->key_columns, p->key_count, arena, &p->key_where));
    p->has_key_where = p->key_count > 0 && !is_true(&p->key_where);
    p->index_helps = plan->options->file_index_read && tarn_file_index_helps(&plan->where);
    prepare_buckets(p);
    return TARN_OK;
}

/* --- partitions and buckets --- */

struct tarn_status *tarn_plan__partition_passes(struct tarn_planner *p, struct tarn_slice partition,
                                                bool *out)
{
    *out = true;
    if (!p->has_where || p->partition_count == 0)
        return TARN_OK;
    if (p->last_known && tarn_slice_equal(tarn_buf_slice(&p->last_partition), partition)) {
        *out = p->last_passes;
        return TARN_OK;
    }
    tarn_plan__scratch_reset(p);
    struct tarn_value *values = tarn_arena_calloc(p->scratch, p->partition_count, sizeof *values);
    TARN_TRY(tarn_row_deserialize(partition, p->partition_types, p->partition_count, values));
    for (size_t i = 0; i < p->partition_count; i++)
        p->row[p->partition_columns[i]] = values[i];
    *out = tarn_predicate_eval(&p->partition_where, p->plan.schema, p->row) == TARN_TRUE;
    tarn_buf_clear(&p->last_partition);
    tarn_buf_add_slice(&p->last_partition, partition);
    p->last_known = true;
    p->last_passes = *out;
    return TARN_OK;
}

/* Every combination of the values that `where` names has a bucket. */
static void reckon_wanted(struct tarn_planner *p, int32_t total_buckets)
{
    const struct tarn_options *o = p->plan.options;
    struct tarn_arena *arena = p->op->arena;
    size_t n = o->bucket_key_count;
    const struct tarn_type **types = tarn_arena_calloc(arena, n, sizeof *types);
    struct tarn_value *values = tarn_arena_calloc(arena, n, sizeof *values);
    size_t *at = tarn_arena_calloc(arena, n, sizeof *at);
    p->wanted_of = total_buckets;
    p->wanted = tarn_arena_calloc(arena, (size_t)total_buckets / 8 + 1, 1);
    for (size_t i = 0; i < n; i++)
        types[i] = p->plan.schema->fields[o->bucket_key_columns[i]].type;
    for (bool more = true; more;) {
        for (size_t i = 0; i < n; i++)
            values[i] = p->bucket_values[i][at[i]];
        int32_t b = tarn_bucket_of(o->bucket_function, types, values, n, total_buckets);
        p->wanted[b / 8] |= (uint8_t)(1 << (b % 8));
        size_t i = 0;
        while (i < n && ++at[i] == p->bucket_value_counts[i])
            at[i++] = 0;
        more = i < n;
    }
}

bool tarn_plan__bucket_passes(struct tarn_planner *p, int32_t bucket, int32_t total_buckets)
{
    if (p->bucket_values == NULL || total_buckets <= 0 || bucket < 0 || bucket >= total_buckets)
        return true;
    if (p->wanted_of != total_buckets) /* the count is each partition's own */
        reckon_wanted(p, total_buckets);
    return p->wanted[bucket / 8] >> (bucket % 8) & 1;
}

/* --- file indexes --- */

/* The bytes of an index beside the data file, where that is worth a read; empty: none. */
static void fetch_index(struct tarn_planner *p, const struct tarn_manifest_entry *entry,
                        struct tarn_buf *out)
{
    struct tarn_slice side = tarn_file_index_side(&entry->file);
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    if (side.size == 0 || p->index_reads_left <= 0 || entry->file.size < INDEX_READ_PAYS ||
        entry->file.external_path.data != NULL)
        return;
    p->index_reads_left--;
    struct tarn_status *s =
        tarn_bucket_path(p->plan.schema, p->plan.options, entry->partition, entry->bucket, &path);
    struct tarn_object object = {0};
    bool found = false;
    const char *key = tarn_arena_printf(p->scratch, "%s/%s/%.*s", tarn_table_path(p->table),
                                        tarn_buf_cstr(&path), TARN_SLICE_ARG(side));
    if (s == TARN_OK)
        s = tarn_store_stat(p->table->env->store, p->op, key, &found, &object);
    if (s == TARN_OK && found && (int64_t)object.size <= INDEX_READ_SIZE_MAX)
        s = tarn_store_get(p->table->env->store, p->op, key, out);
    if (s != TARN_OK) /* the file is planned as if it had none */
        tarn_buf_clear(out);
    tarn_status_free(s);
}

static struct tarn_status *index_passes(struct tarn_planner *p,
                                        const struct tarn_manifest_entry *entry, bool *out)
{
    const struct tarn_schema *then;
    struct tarn_file_index_verdict verdict = {.may_match = true};
    TARN_OWN(tarn_buf_drop) struct tarn_buf fetched = {0};
    struct tarn_slice bytes = entry->file.embedded_index;
    *out = true;
    if (bytes.size == 0) {
        fetch_index(p, entry, &fetched);
        bytes = tarn_buf_slice(&fetched);
    }
    if (bytes.size == 0)
        return TARN_OK;
    TARN_TRY(tarn_plan__file_schema(p, entry->file.schema_id, &then));
    struct tarn_status *s = tarn_file_index_may_match(bytes, &p->plan.where, p->plan.schema, then,
                                                      entry->file.row_count, &verdict);
    *out = s != TARN_OK || verdict.may_match; /* one that is damaged rules nothing out */
    tarn_status_free(s);
    return TARN_OK;
}

/* --- a bucket --- */

static struct tarn_status *view_ref(struct tarn_planner *p, const struct tarn_ref *ref,
                                    struct tarn_manifest_entry *out)
{
    return tarn_manifest_entry_view(tarn_slice_of(ref->packed, ref->packed_size), p->scratch, out);
}

/* Without merging each file is for itself. Its statistics were asked when it was gathered. */
static struct tarn_status *prune_files(struct tarn_planner *p, struct tarn_bucket_work *work)
{
    size_t kept = 0;
    for (size_t i = 0; i < work->count; i++) {
        struct tarn_manifest_entry entry;
        bool passes;
        tarn_plan__scratch_reset(p);
        if (!work->refs[i].may_match) {
            p->plan.pruned_by_stats++;
            continue;
        }
        TARN_TRY(view_ref(p, &work->refs[i], &entry));
        TARN_TRY(index_passes(p, &entry, &passes));
        if (passes)
            work->refs[kept++] = work->refs[i];
        else
            p->plan.pruned_by_index++;
    }
    work->count = kept;
    return TARN_OK;
}

/* A value filter may drop a whole section of overlapping files, never one file of it: another may hold the newer
 * version of a row. */
static struct tarn_status *prune_sections(struct tarn_planner *p, struct tarn_bucket_work *work)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    int *section_of, section_count;
    TARN_TRY(tarn_plan__sections(p, work->refs, work->count, arena, &section_of, &section_count));
    enum { DROPPED_BY_STATS, DROPPED_BY_INDEX, WANTED };
    uint8_t *fate = tarn_arena_calloc(arena, (size_t)section_count + 1, 1);
    for (size_t i = 0; i < work->count; i++) {
        uint8_t *mine = &fate[section_of[i]];
        struct tarn_manifest_entry entry;
        bool passes = true;
        if (*mine == WANTED || !work->refs[i].may_match)
            continue;
        if (p->index_helps) {
            tarn_plan__scratch_reset(p);
            TARN_TRY(view_ref(p, &work->refs[i], &entry));
            TARN_TRY(index_passes(p, &entry, &passes));
        }
        *mine = passes ? WANTED : DROPPED_BY_INDEX;
    }
    size_t kept = 0;
    for (size_t i = 0; i < work->count; i++) {
        if (fate[section_of[i]] == WANTED)
            work->refs[kept++] = work->refs[i];
        else if (fate[section_of[i]] == DROPPED_BY_INDEX)
            p->plan.pruned_by_index++;
        else
            p->plan.pruned_by_stats++;
    }
    work->count = kept;
    return TARN_OK;
}

struct tarn_status *tarn_plan__prune_bucket(struct tarn_planner *p, struct tarn_bucket_work *work)
{
    /* A DIFF sets files against each other; and of changes by key a row that doesn't pass may take the place of one that
     * did, so that only keys decide there, as in Paimon. */
    if (!p->has_where || p->request.changes == TARN_CHANGES_DIFF)
        return TARN_OK;
    if (p->is_append)
        return p->index_helps ? prune_files(p, work) : TARN_OK;
    if (p->skips_level_0 && tarn_plan__reads_raw(p, work->refs, work->count))
        return prune_files(p, work);
    return p->request.changes == TARN_CHANGES_NONE ? prune_sections(p, work) : TARN_OK;
}
