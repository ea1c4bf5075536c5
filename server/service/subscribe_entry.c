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
    bool whole, differs;
    bool begins; /* it doesn't stand on the snapshot before */
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
    TARN_TRY(tarn_service__plan_event(op, m->table, m->spec, m->entry->snapshot_id, m->whole, &plan,
                                      &paths, &m->differs));
    size_t begin = 0;
    do {
        size_t end = begin, files = 0;
        while (end < plan.split_count && end - begin < TARN_SUBSCRIBE_SPLITS_PER_EVENT &&
               files < TARN_SUBSCRIBE_FILES_PER_EVENT) {
            files += plan.splits[end].file_count + plan.splits[end].before_count;
            end++;
        }
        TARN_TRY(add_event(op, m, plan.splits + begin, paths + begin, end - begin, m->differs,
                           end == plan.split_count));
        begin = end;
    } while (begin < plan.split_count);
    return TARN_OK;
}

static bool is_gone(const struct tarn_status *s)
{
    enum tarn_reason reason = tarn_status_reason(s);
    return reason == TARN_SNAPSHOT_EXPIRED || reason == TARN_SNAPSHOT_NOT_FOUND ||
           reason == TARN_SNAPSHOT_ROLLED_BACK || reason == TARN_OBJECT_NOT_FOUND;
}

/* A difference needs what was before, too. */
static struct tarn_status *check_before(struct tarn_op *op, const struct maker *m)
{
    struct tarn_snapshot snapshot;
    uint64_t identity;
    int64_t before = m->entry->snapshot_id - 1;
    bool found;
    if (!m->differs || before == 0)
        return TARN_OK;
    TARN_TRY(tarn_table_find_snapshot(op, m->table, before, &found, &snapshot, &identity));
    if (found && !m->begins)
        return TARN_OK;
    return tarn_service__reset(op, m->table, TARN_SNAPSHOT_EXPIRED,
                               "snapshot %" PRId64 " of table %s has expired", before,
                               tarn_table_name(m->table));
}

/* Are both the snapshot and, for a difference, the one before the same in the folder and in the table's index? */
static struct tarn_status *check_same(struct tarn_op *op, const struct maker *m, bool *same)
{
    const struct tarn_entry *entry = m->entry;
    struct tarn_snapshot again;
    uint64_t identity;
    bool found;
    TARN_TRY(tarn_table_is_indexed(m->table, entry->snapshot_id, entry->identity, same));
    if (*same && m->differs && entry->snapshot_id > 1)
        TARN_TRY(
            tarn_table_is_indexed(m->table, entry->snapshot_id - 1, entry->parent_identity, same));
    if (!*same)
        return TARN_OK;
    TARN_TRY(tarn_table_find_snapshot(op, m->table, entry->snapshot_id, &found, &again, &identity));
    *same = found && identity == entry->identity;
    return TARN_OK;
}

/* Its events. *made false: others were at work meanwhile, or the table's last look is older than the snapshot. */
static struct tarn_status *make_events(struct tarn_op *op, struct maker *m, bool *made)
{
    *made = true;
    if (!m->spec->changes)
        return add_event(op, m, NULL, NULL, 0, false, true);
    m->differs = m->spec->how == TARN_CHANGES_DIFF && !m->whole;
    TARN_TRY(check_same(op, m, made));
    if (!*made)
        return check_before(op, m);
    struct tarn_status *s = add_splits(op, m);
    if (s != TARN_OK && !is_gone(s))
        return s;
    struct tarn_status *unknown = check_same(op, m, made);
    if (unknown != TARN_OK) {
        tarn_status_free(s);
        return unknown;
    }
    /* What it names is damaged, if it stands: that doesn't pass. */
    if (*made && tarn_status_reason(s) == TARN_OBJECT_NOT_FOUND)
        return s;
    *made = *made && s == TARN_OK;
    tarn_status_free(s);
    return *made ? TARN_OK : check_before(op, m);
}

/* Somebody's put came late, and history begins with this snapshot: who was told what lies below it can't go on, and who begins with it was
 * told nothing that it follows. *known false: others are at work. */
static struct tarn_status *check_begins(struct tarn_op *op, struct maker *m,
                                        const struct tarn_position *last, bool *known)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_entry *entry = m->entry;
    if (m->spec->changes) /* which wait for the next look */
        TARN_TRY(tarn_service__look(op, m->table, &view));
    TARN_TRY(tarn_service__looked(tarn_table_begins_history(
        op, m->table, entry->snapshot_id, entry->identity, !m->spec->changes, known, &m->begins)));
    if (!m->begins)
        return TARN_OK;
    entry->parent_identity = 0;
    if (last->identity == 0)
        return TARN_OK;
    return tarn_service__reset(op, m->table, TARN_SNAPSHOT_EXPIRED,
                               "snapshot %" PRId64
                               " of table %s doesn't stand on the one before it, which was told: "
                               "history begins with it",
                               entry->snapshot_id, tarn_table_name(m->table));
}

/* In this order: what is after `last` is read while `last` is there, before and behind, so it was put upon it. */
struct tarn_status *tarn_service__entry_make(struct tarn_op *op, struct tarn_table *table,
                                             const struct tarn_topic_spec *spec,
                                             const struct tarn_position *last, uint64_t identity,
                                             bool whole, struct tarn_entry **out)
{
    TARN_OWN(tarn_service__entry_drop) struct tarn_entry *entry = tarn_calloc(1, sizeof *entry);
    struct maker m = {.table = table, .spec = spec, .entry = entry, .whole = whole};
    struct tarn_position parent = *last, self = *last;
    struct tarn_status *s = TARN_OK;
    bool found, known = false, made = false;
    *out = NULL;
    atomic_init(&entry->ref_count, 1);
    entry->door = spec->door;
    entry->snapshot_id = last->snapshot_id + 1;
    if (parent.identity == 0) /* it was gone, or the stream begins here */
        TARN_TRY(tarn_table_find_snapshot(op, table, parent.snapshot_id, &found, &m.snapshot,
                                          &parent.identity));
    TARN_TRY(tarn_table_find_snapshot(op, table, entry->snapshot_id, &found, &m.snapshot,
                                      &entry->identity));
    if (identity != 0 && (!found || entry->identity != identity)) {
        self.snapshot_id = entry->snapshot_id;
        self.identity = identity;
        self.behind = false;
        return tarn_service__check_position(op, table, &self);
    }
    entry->parent_identity = parent.identity;
    if (found)
        s = check_begins(op, &m, last, &known);
    if (s == TARN_OK && found && known)
        s = make_events(op, &m, &made);
    if (s != TARN_OK && !is_gone(s))
        return s;
    struct tarn_status *ended = tarn_service__check_position(op, table, &parent);
    if (ended != TARN_OK) { /* it says more */
        tarn_status_free(s);
        return ended;
    }
    TARN_TRY(s);
    if (!made)
        return tarn_service__check_left(op, table, entry->snapshot_id);
    *out = tarn_move(entry);
    return TARN_OK;
}
