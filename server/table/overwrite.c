#include "table/internal.h"

/*
 * An overwrite as a snapshot has it: the DELETEs of what is overwritten, found in the index, and the new
 * files, in the last level of their bucket where they fit (docs/format.md, "Overwrite").
 */

struct spec { /* one of the partitions that are named; a value not set fits any */
    const bool *is_set;
    struct tarn_value *values;
    bool full;
};

struct target { /* what is overwritten */
    struct tarn_table *table;
    bool all;
    const struct tarn_type **types; /* of the partition columns */
    size_t column_count;
    struct spec *specs;
    size_t spec_count;
    struct tarn_map *partitions; /* serialized rows; what exists of those that are meant */
};

static void target_fini(struct target *target)
{
    tarn_map_free(target->partitions);
}

static void add_partition(struct target *target, struct tarn_slice partition)
{
    tarn_map_set(target->partitions, partition, target);
}

/* --- which partitions --- */

static struct tarn_status *parse_spec(struct tarn_op *op, struct target *target,
                                      const struct tarn_partition_spec *in, struct spec *out)
{
    const struct tarn_schema *schema = &target->table->view->view.schema;
    const struct tarn_options *options = &target->table->view->view.options;
    out->is_set = in->is_set;
    out->values = tarn_arena_calloc(op->arena, target->column_count + 1, sizeof *out->values);
    out->full = true;
    for (size_t i = 0; i < target->column_count; i++) {
        out->full = out->full && in->is_set[i];
        if (!in->is_set[i])
            continue;
        if (in->is_null[i] || tarn_slice_equal(in->values[i], options->partition_default_name)) {
            out->values[i].is_null = true;
            continue;
        }
        struct tarn_status *s =
            tarn_value_parse(target->types[i], in->values[i], op->arena, &out->values[i]);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "partition column %.*s",
                                    TARN_SLICE_ARG(schema->partition_keys[i]));
    }
    return TARN_OK;
}

static struct tarn_status *fits_a_spec(const struct target *target, struct tarn_slice partition,
                                       struct tarn_value *scratch, bool *out)
{
    *out = false;
    TARN_TRY(tarn_row_deserialize(partition, target->types, target->column_count, scratch));
    for (size_t s = 0; s < target->spec_count && !*out; s++) {
        const struct spec *spec = &target->specs[s];
        bool fits = true;
        for (size_t i = 0; i < target->column_count && fits; i++)
            fits = !spec->is_set[i] ||
                   tarn_value_compare(target->types[i], &spec->values[i], &scratch[i]) == 0;
        *out = fits;
    }
    return TARN_OK;
}

/* Walks the partitions that have live files, one step of the index each. */
static struct tarn_status *find_partitions(struct tarn_op *op, struct target *target)
{
    struct tarn_table *table = target->table;
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf partition = {0};
    struct tarn_value *scratch =
        tarn_arena_calloc(op->arena, target->column_count + 1, sizeof *scratch);
    tarn_table__bucket_prefix(table->uuid, tarn_slice_str(NULL), NULL, &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&prefix));
    size_t uuid_size = prefix.size;
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        TARN_TRY(tarn_op_check(op));
        struct tarn_slice rest = tarn_slice_of(key.data + uuid_size, key.size - uuid_size);
        tarn_buf_clear(&partition);
        if (!tarn_key_take_bytes(&rest, &partition))
            return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a key of the index is damaged",
                                   table->name);
        bool fits;
        TARN_TRY(fits_a_spec(target, tarn_buf_slice(&partition), scratch, &fits));
        if (fits)
            add_partition(target, tarn_buf_slice(&partition));
        tarn_buf_clear(&prefix);
        tarn_table__bucket_prefix(table->uuid, tarn_buf_slice(&partition), NULL, &prefix);
        prefix.data[prefix.size -
                    1]++; /* behind all keys of the partition, which end it with 00 00 */
        tarn_state_iterator_seek(it, tarn_buf_slice(&prefix));
    }
    return tarn_state_iterator_error(it);
}

static struct tarn_status *find_named(struct tarn_op *op, struct target *target,
                                      const struct tarn_commit *commit)
{
    target->spec_count = commit->partition_count;
    target->specs = tarn_arena_calloc(op->arena, target->spec_count + 1, sizeof *target->specs);
    bool all_full = true;
    for (size_t i = 0; i < target->spec_count; i++) {
        TARN_TRY(parse_spec(op, target, &commit->partitions[i], &target->specs[i]));
        all_full = all_full && target->specs[i].full;
    }
    if (!all_full)
        return find_partitions(op, target);
    for (size_t i = 0; i < target->spec_count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
        tarn_row_serialize(target->types, target->specs[i].values, target->column_count, &row);
        add_partition(target, tarn_buf_slice(&row));
    }
    return TARN_OK;
}

static struct tarn_status *find_target(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_commit *commit, struct target *target)
{
    const struct tarn_schema *schema = &table->view->view.schema;
    *target = (struct target){.table = table, .partitions = tarn_map_new()};
    target->types = tarn_partition_types(schema, op->arena);
    target->column_count = schema->partition_key_count;
    target->all = commit->overwrite == TARN_OVERWRITE_TABLE || target->column_count == 0;
    if (target->all)
        return TARN_OK;
    if (commit->overwrite == TARN_OVERWRITE_PARTITIONS)
        return find_named(op, target, commit);
    for (size_t i = 0; i < commit->append.count; i++)
        add_partition(target, commit->append.entries[i].partition);
    return TARN_OK;
}

static struct tarn_status *is_target(struct tarn_op *op, const struct target *target,
                                     struct tarn_slice partition, bool *out)
{
    *out = target->all || tarn_map_find(target->partitions, partition) != NULL;
    if (*out || target->spec_count == 0)
        return TARN_OK;
    struct tarn_value *scratch =
        tarn_arena_calloc(op->arena, target->column_count + 1, sizeof *scratch);
    return fits_a_spec(target, partition, scratch, out);
}

/* --- the DELETEs --- */

struct collector {
    struct tarn_op *op;
    struct target *target;
    struct tarn_manifest_entry *entries; /* NULL: they are only counted */
    size_t count, capacity;
};

/* Is the key of a bucket that the overwrite is about? Files of others wait to be given theirs. */
static struct tarn_status *has_bucket(const struct collector *c, struct tarn_slice key,
                                      size_t prefix_size, bool *out)
{
    struct tarn_slice rest = tarn_slice_of(key.data + prefix_size, key.size - prefix_size);
    TARN_OWN(tarn_buf_drop) struct tarn_buf partition = {0};
    int64_t bucket;
    if ((c->target->all && !tarn_key_take_bytes(&rest, &partition)) ||
        !tarn_key_take_i64(&rest, &bucket))
        return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a key of the index is damaged",
                               c->target->table->name);
    *out = bucket >= 0 || c->target->table->view->view.options.bucket == -2;
    return TARN_OK;
}

/* What says that a file is gone has no statistics: nobody would look at them. */
static void make_delete(struct tarn_manifest_entry *entry)
{
    entry->kind = TARN_ENTRY_DELETE;
    entry->file.key_stats = tarn_stats_empty();
    entry->file.value_stats = tarn_stats_empty();
    entry->file.has_value_stats_columns = true;
    entry->file.value_stats_columns = NULL;
    entry->file.value_stats_column_count = 0;
}

static struct tarn_status *collect(struct collector *c, struct tarn_slice prefix)
{
    struct tarn_table *table = c->target->table;
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_LIVE, prefix);
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        bool meant;
        TARN_TRY(has_bucket(c, key, prefix.size, &meant));
        if (!meant)
            continue;
        if (c->count % 1024 == 0)
            TARN_TRY(tarn_op_check(c->op));
        if (c->entries == NULL) {
            c->count++;
            continue;
        }
        tarn_assert(c->count < c->capacity); /* nobody else writes to the index meanwhile */
        struct tarn_live live;
        TARN_TRY(tarn_table__live_decode(value, c->op->arena, &live));
        c->entries[c->count] = live.entry;
        make_delete(&c->entries[c->count++]);
    }
    return tarn_state_iterator_error(it);
}

static struct tarn_status *collect_all(struct collector *c)
{
    struct target *target = c->target;
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    if (target->all) {
        tarn_table__bucket_prefix(target->table->uuid, tarn_slice_str(NULL), NULL, &prefix);
        return collect(c, tarn_buf_slice(&prefix));
    }
    size_t cursor = 0;
    struct tarn_slice partition;
    void *value;
    while (tarn_map_next(target->partitions, &cursor, &partition, &value)) {
        tarn_buf_clear(&prefix);
        tarn_table__bucket_prefix(target->table->uuid, partition, NULL, &prefix);
        TARN_TRY(collect(c, tarn_buf_slice(&prefix)));
    }
    return TARN_OK;
}

/* --- the new files --- */

static int by_bucket(const void *a, const void *b)
{
    const struct tarn_manifest_entry *left = *(struct tarn_manifest_entry *const *)a;
    const struct tarn_manifest_entry *right = *(struct tarn_manifest_entry *const *)b;
    int c = tarn_slice_compare(left->partition, right->partition);
    return c != 0 ? c : (left->bucket > right->bucket) - (left->bucket < right->bucket);
}

static bool may_upgrade(const struct tarn_table *table, const struct tarn_commit *commit)
{
    const struct tarn_options *options = &table->view->view.options;
    if (!options->overwrite_upgrade || options->pk_clustering ||
        tarn_schema_is_append(&table->view->view.schema) || commit->compact.count > 0 ||
        commit->compact.index_count > 0)
        return false;
    for (size_t i = 0; i < commit->append.count; i++) {
        const struct tarn_manifest_entry *e = &commit->append.entries[i];
        if (e->kind != TARN_ENTRY_ADD || e->file.level > 0 || e->bucket < 0)
            return false;
    }
    return true;
}

/* New files of a bucket that don't overlap are as good as compacted: nothing else is in the bucket. */
static struct tarn_status *upgrade(struct tarn_op *op, struct tarn_table *table,
                                   struct tarn_manifest_entry *entries, size_t count)
{
    const struct tarn_schema *schema = &table->view->view.schema;
    int32_t last_level = table->view->view.options.level_count - 1;
    struct tarn_manifest_entry **sorted = tarn_arena_calloc(op->arena, count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &entries[i];
    qsort(sorted, count, sizeof *sorted, by_bucket);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && by_bucket(&sorted[begin], &sorted[end]) == 0;)
            end++;
        const struct tarn_manifest_entry *one, *other;
        TARN_TRY(tarn_table__find_overlap(op->arena, schema,
                                          (const struct tarn_manifest_entry *const *)sorted + begin,
                                          end - begin, &one, &other));
        for (size_t i = begin; i < end && one == NULL; i++)
            sorted[i]->file.level = last_level;
    }
    return TARN_OK;
}

static struct tarn_status *check_inside(struct tarn_op *op, const struct target *target,
                                        const struct tarn_commit *commit)
{
    for (size_t i = 0; i < commit->append.count; i++) {
        const struct tarn_manifest_entry *e = &commit->append.entries[i];
        bool inside;
        TARN_TRY(is_target(op, target, e->partition, &inside));
        if (!inside)
            return tarn_status_new(
                TARN_INVALID_ARGUMENT,
                "file %.*s lies outside of the partitions of table %s that are overwritten",
                TARN_SLICE_ARG(e->file.name), target->table->name);
    }
    return TARN_OK;
}

/* --- all of it --- */

static struct tarn_status *resolve_entries(struct tarn_op *op, struct target *target,
                                           const struct tarn_commit *commit, bool has_snapshot,
                                           struct tarn_resolved *out)
{
    struct collector c = {.op = op, .target = target};
    if (has_snapshot)
        TARN_TRY(collect_all(&c));
    c.capacity = c.count;
    c.entries =
        tarn_arena_calloc(op->arena, c.capacity + commit->append.count + 1, sizeof *c.entries);
    c.count = 0;
    if (c.capacity > 0)
        TARN_TRY(collect_all(&c));
    if (commit->append.count > 0)
        memcpy(c.entries + c.count, commit->append.entries,
               commit->append.count * sizeof *c.entries);
    if (may_upgrade(target->table, commit))
        TARN_TRY(upgrade(op, target->table, c.entries + c.count, commit->append.count));
    out->known_count = c.count;
    out->part.entries = c.entries;
    out->part.count = c.count + commit->append.count;
    return TARN_OK;
}

static struct tarn_status *resolve_indexes(struct tarn_op *op, struct target *target,
                                           const struct tarn_commit *commit,
                                           struct tarn_slice manifest, struct tarn_resolved *out)
{
    const struct tarn_index_file *files;
    size_t count, n = 0;
    TARN_TRY(tarn_table__index_files(op, target->table, manifest, &files, &count));
    struct tarn_index_file *changes =
        tarn_arena_calloc(op->arena, count + commit->append.index_count + 1, sizeof *changes);
    for (size_t i = 0; i < count; i++) {
        bool inside;
        TARN_TRY(is_target(op, target, files[i].partition, &inside));
        if (!inside)
            continue;
        tarn_table__keep_index_file(op->arena, &files[i], &changes[n]);
        changes[n++].kind = TARN_ENTRY_DELETE;
    }
    if (commit->append.index_count > 0)
        memcpy(changes + n, commit->append.index, commit->append.index_count * sizeof *changes);
    out->part.index = changes;
    out->part.index_count = n + commit->append.index_count;
    return TARN_OK;
}

struct tarn_status *tarn_table__resolve_overwrite(struct tarn_op *op, struct tarn_table *table,
                                                  const struct tarn_head *head,
                                                  const struct tarn_commit *commit,
                                                  struct tarn_resolved *out)
{
    TARN_OWN(target_fini) struct target target;
    bool has_snapshot = head != NULL && head->id != 0;
    *out = (struct tarn_resolved){0};
    TARN_TRY(find_target(op, table, commit, &target));
    /* What was forgotten must not wipe anything: Paimon's rule, too. */
    out->nothing =
        !target.all && commit->overwrite == TARN_OVERWRITE_DYNAMIC && commit->append.count == 0;
    if (out->nothing)
        return TARN_OK;
    TARN_TRY(check_inside(op, &target, commit));
    TARN_TRY(resolve_entries(op, &target, commit, has_snapshot, out));
    return resolve_indexes(op, &target, commit,
                           has_snapshot ? head->snapshot.index_manifest : tarn_slice_str(NULL),
                           out);
}
