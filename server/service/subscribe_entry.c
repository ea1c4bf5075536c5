#include "service/subscribe_internal.h"

/* One snapshot as the events that tell of it, encoded once for all who will hear of it. */

struct tarn_entry *tarn_service__entry_ref(struct tarn_entry *entry)
{
    atomic_fetch_add(&entry->ref_count, 1);
    return entry;
}

void tarn_service__entry_unref(struct tarn_entry *entry)
{
    if (entry == NULL || atomic_fetch_sub(&entry->ref_count, 1) != 1)
        return;
    for (size_t i = 0; i < entry->count; i++)
        entry->door->free_encoded(entry->events[i]);
    free(entry->events);
    free(entry);
}

void tarn_service__entry_drop(struct tarn_entry **entry)
{
    tarn_service__entry_unref(*entry);
    *entry = NULL;
}

uint64_t tarn_service__topic_filter(const struct tarn_topic_spec *spec)
{
    return tarn_xxh64(tarn_slice_str(spec->where), (uint64_t)(spec->how * 2 + spec->changes));
}

struct maker {
    struct tarn_table *table;
    const struct tarn_topic_spec *spec;
    struct tarn_entry *entry;
    size_t capacity;
    struct tarn_snapshot snapshot;
    bool whole;
};

static struct tarn_status *add_event(struct tarn_op *op, struct maker *m,
                                     const struct tarn_split *splits, const char *const *paths,
                                     size_t count, bool differs, bool last)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part; /* each message's pieces go with it */
    TARN_OWN(tarn_buf_drop) struct tarn_buf token = {0};
    struct tarn_entry *entry = m->entry;
    struct tarn_position position = {
        .snapshot_id = entry->snapshot_id,
        .identity = entry->identity,
        .behind = last,
        .whole = m->whole && !last,
        .next_part = last ? 0 : (uint32_t)entry->count + 1,
        .filter = last ? 0 : tarn_service__topic_filter(m->spec),
    };
    snprintf(position.uuid, sizeof position.uuid, "%s", tarn_table_uuid(m->table));
    tarn_service__token_encode(&position, &token);
    struct tarn_subscribe_event event = {
        .snapshot = &m->snapshot,
        .splits = splits,
        .paths = paths,
        .split_count = count,
        .differs = differs,
        .last = last,
        .whole = m->whole,
        .token = tarn_buf_slice(&token),
    };
    size_t size;
    void *encoded;
    tarn_op_init_child(&part, op);
    TARN_TRY(entry->door->encode(&part, &event, &encoded, &size));
    TARN_GROW(entry->events, entry->count, m->capacity);
    entry->events[entry->count++] = encoded;
    entry->size_bytes += size;
    if (entry->size_bytes > TARN_SUBSCRIBE_ENTRY_SIZE_MAX)
        return tarn_status_new(TARN_TOO_LARGE,
                               "the splits of snapshot %" PRId64
                               " take more than %d bytes: subscribe to snapshots, and plan it",
                               entry->snapshot_id, TARN_SUBSCRIBE_ENTRY_SIZE_MAX);
    return TARN_OK;
}

static struct tarn_status *add_splits(struct tarn_op *op, struct maker *m)
{
    struct tarn_plan plan;
    const char **paths;
    bool differs;
    TARN_TRY(tarn_service__plan_event(op, m->table, m->spec, m->entry->snapshot_id, m->whole, &plan,
                                      &paths, &differs));
    size_t begin = 0;
    do {
        size_t end = begin, files = 0;
        while (end < plan.split_count && end - begin < TARN_SUBSCRIBE_SPLITS_PER_EVENT &&
               files < TARN_SUBSCRIBE_FILES_PER_EVENT) {
            files += plan.splits[end].file_count + plan.splits[end].before_count;
            end++;
        }
        TARN_TRY(add_event(op, m, plan.splits + begin, paths + begin, end - begin, differs,
                           end == plan.split_count));
        begin = end;
    } while (begin < plan.split_count);
    return TARN_OK;
}

/* Is it still the snapshot that was looked at before the plan? */
static struct tarn_status *check_same(struct tarn_op *op, const struct maker *m)
{
    struct tarn_snapshot again;
    uint64_t identity;
    bool found;
    TARN_TRY(
        tarn_table_find_snapshot(op, m->table, m->entry->snapshot_id, &found, &again, &identity));
    if (found && identity == m->entry->identity)
        return TARN_OK;
    return tarn_service__reset(op, m->table, TARN_SNAPSHOT_ROLLED_BACK,
                               "snapshot %" PRId64 " of table %s was undone while it was planned",
                               m->entry->snapshot_id, tarn_table_name(m->table));
}

struct tarn_status *tarn_service__entry_make(struct tarn_op *op, struct tarn_table *table,
                                             const struct tarn_topic_spec *spec,
                                             int64_t snapshot_id, bool whole,
                                             struct tarn_entry **out)
{
    TARN_OWN(tarn_service__entry_drop) struct tarn_entry *entry = tarn_calloc(1, sizeof *entry);
    struct maker m = {.table = table, .spec = spec, .entry = entry, .whole = whole};
    bool found;
    *out = NULL;
    atomic_init(&entry->ref_count, 1);
    entry->snapshot_id = snapshot_id;
    entry->door = spec->door;
    TARN_TRY(
        tarn_table_find_snapshot(op, table, snapshot_id, &found, &m.snapshot, &entry->identity));
    if (!found)
        return TARN_OK;
    if (spec->changes) {
        TARN_TRY(add_splits(op, &m));
        TARN_TRY(check_same(op, &m));
    } else {
        TARN_TRY(add_event(op, &m, NULL, NULL, 0, false, true));
    }
    *out = tarn_move(entry);
    return TARN_OK;
}
