#include "table/internal.h"

/*
 * What only the committer knows, put into the entries of a snapshot: row ids, the snapshot's own id as sequence
 * number, and the largest sequence number of the table as a property (docs/format.md, "Stamps").
 */

#define MAX_SEQUENCE_PROPERTY "sequence.generation.max-sequence-number"
#define SCRATCH_SIZE_MAX (1 << 20)
#define ROW_ID_COLUMN "_ROW_ID"

/* --- row tracking --- */

/* As Java does where row-tracking.partition-group-on-commit: rows of one partition get ids in a row. */
static void group_by_partition(struct tarn_op *op, struct tarn_manifest_entry *entries,
                               size_t count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *places = tarn_map_new();
    size_t *place_of = tarn_arena_calloc(op->arena, count + 1, sizeof *place_of);
    for (size_t i = 0; i < count; i++) {
        uintptr_t place = (uintptr_t)tarn_map_find(places, entries[i].partition);
        if (place == 0) {
            place = tarn_map_count(places) + 1;
            tarn_map_set(places, entries[i].partition, (void *)place);
        }
        place_of[i] = place - 1;
    }
    size_t place_count = tarn_map_count(places);
    if (place_count <= 1)
        return;
    size_t *next = tarn_arena_calloc(op->arena, place_count + 1, sizeof *next);
    for (size_t i = 0; i < count; i++)
        next[place_of[i] + 1]++;
    for (size_t i = 1; i <= place_count; i++)
        next[i] += next[i - 1];
    struct tarn_manifest_entry *sorted = tarn_arena_calloc(op->arena, count, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[next[place_of[i]]++] = entries[i];
    memcpy(entries, sorted, count * sizeof *entries);
}

/* A writer leaves 0 where the rows are new with this snapshot. */
static void stamp_change(struct tarn_data_file *file, int64_t snapshot_id)
{
    if (file->min_sequence == 0)
        file->min_sequence = file->max_sequence = snapshot_id;
    else if (file->max_sequence == 0)
        file->max_sequence = snapshot_id;
}

static bool has_row_ids(const struct tarn_data_file *file)
{
    if (file->first_row_id != TARN_FILE_NONE)
        return true;
    for (size_t i = 0; file->has_write_columns && i < file->write_column_count; i++)
        if (tarn_slice_is(file->write_columns[i], ROW_ID_COLUMN))
            return true;
    return false;
}

static bool is_blob_file(struct tarn_slice name)
{
    static const char end[] = ".blob";
    size_t n = sizeof end - 1;
    return name.size >= n && memcmp(name.data + name.size - n, end, n) == 0;
}

static struct tarn_status *stamp_row_ids(const struct tarn_table *table,
                                         struct tarn_data_file *file, int64_t *next)
{
    if (file->source == TARN_SOURCE_UNKNOWN)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "table %s tracks rows: file %.*s must say whether a writer or a "
                               "compaction made it",
                               table->name, TARN_SLICE_ARG(file->name));
    if (file->source != TARN_SOURCE_APPEND || has_row_ids(file))
        return TARN_OK;
    if (is_blob_file(file->name))
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "file %.*s: rows of BLOB files are not numbered by this version",
                               TARN_SLICE_ARG(file->name));
    file->first_row_id = *next;
    if (file->row_count < 0 || __builtin_add_overflow(*next, file->row_count, next))
        return tarn_status_new(TARN_INVALID_ARGUMENT, "table %s has no row ids left for file %.*s",
                               table->name, TARN_SLICE_ARG(file->name));
    return TARN_OK;
}

static struct tarn_status *stamp_rows(struct tarn_op *op, struct tarn_table *table,
                                      struct tarn_snapshot *snapshot,
                                      struct tarn_manifest_entry *entries, size_t count)
{
    if (table->view->view.options.row_tracking_by_partition)
        group_by_partition(op, entries, count);
    int64_t next = snapshot->next_row_id == TARN_SNAPSHOT_NONE ? 0 : snapshot->next_row_id;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != TARN_ENTRY_ADD)
            continue;
        stamp_change(&entries[i].file, snapshot->id);
        TARN_TRY(stamp_row_ids(table, &entries[i].file, &next));
    }
    snapshot->next_row_id = next;
    return TARN_OK;
}

/* --- sequence.snapshot-ordering --- */

static void stamp_order(const struct tarn_snapshot *snapshot, struct tarn_manifest_entry *entries,
                        size_t count)
{
    if (snapshot->kind ==
        TARN_COMMIT_COMPACT) /* its rows have the numbers of where they came from */
        return;
    for (size_t i = 0; i < count; i++)
        if (entries[i].kind == TARN_ENTRY_ADD)
            entries[i].file.min_sequence = entries[i].file.max_sequence = snapshot->id;
}

/* --- write.sequence-number-init-mode = snapshot --- */

/* The largest number in the table, once: snapshots carry it on from then. */
static struct tarn_status *largest_live(struct tarn_op *op, struct tarn_table *table, bool *found,
                                        int64_t *largest)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__bucket_prefix(table->uuid, tarn_slice_str(NULL), NULL, &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_LIVE, tarn_buf_slice(&prefix));
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_live live;
        if (tarn_arena_size(arena) > SCRATCH_SIZE_MAX) {
            TARN_TRY(tarn_op_check(op));
            tarn_arena_free(arena);
            arena = tarn_arena_new();
        }
        TARN_TRY(tarn_table__live_decode(value, arena, &live));
        *largest = TARN_MAX(*largest, live.entry.file.max_sequence);
        *found = true;
    }
    return tarn_state_iterator_error(it);
}

static struct tarn_status *carried_on(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_snapshot *last, bool *found,
                                      int64_t *largest)
{
    for (size_t i = 0; i < last->property_count; i++) {
        if (!tarn_slice_is(last->properties[i].key, MAX_SEQUENCE_PROPERTY))
            continue;
        struct tarn_status *s = tarn_parse_i64(last->properties[i].value, largest);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "table %s, snapshot %" PRId64 ", property %s", table->name,
                                    last->id, MAX_SEQUENCE_PROPERTY);
        *found = true;
        return TARN_OK;
    }
    return largest_live(op, table, found, largest);
}

static void set_property(struct tarn_op *op, struct tarn_snapshot *snapshot, const char *name,
                         struct tarn_slice value)
{
    struct tarn_pair *pairs =
        tarn_arena_calloc(op->arena, snapshot->property_count + 1, sizeof *pairs);
    size_t n = 0;
    for (size_t i = 0; i < snapshot->property_count; i++)
        if (!tarn_slice_is(snapshot->properties[i].key, name))
            pairs[n++] = snapshot->properties[i];
    pairs[n++] = (struct tarn_pair){tarn_slice_str(name), value};
    snapshot->properties = pairs;
    snapshot->property_count = n;
}

static struct tarn_status *stamp_largest(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_snapshot *last,
                                         struct tarn_snapshot *snapshot,
                                         const struct tarn_manifest_entry *entries, size_t count)
{
    bool found = false;
    int64_t largest = INT64_MIN;
    if (last != NULL)
        TARN_TRY(carried_on(op, table, last, &found, &largest));
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != TARN_ENTRY_ADD)
            continue;
        largest = TARN_MAX(largest, entries[i].file.max_sequence);
        found = true;
    }
    if (found)
        set_property(op, snapshot, MAX_SEQUENCE_PROPERTY,
                     tarn_slice_str(tarn_arena_printf(op->arena, "%" PRId64, largest)));
    return TARN_OK;
}

struct tarn_status *tarn_table__stamp(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_snapshot *last,
                                      struct tarn_snapshot *snapshot,
                                      struct tarn_manifest_entry *entries, size_t count)
{
    const struct tarn_options *options = &table->view->view.options;
    if (options->row_tracking)
        TARN_TRY(stamp_rows(op, table, snapshot, entries, count));
    if (options->snapshot_ordering)
        stamp_order(snapshot, entries, count);
    if (options->sequence_init_from_snapshot)
        TARN_TRY(stamp_largest(op, table, last, snapshot, entries, count));
    return TARN_OK;
}
