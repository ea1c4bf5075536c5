#include "table/plan.h"

/*
 * Plans of what isn't one state of the index: what changed between two snapshots (docs/format.md, "Changes between snapshots"),
 * and the files of a tag whose snapshot has expired, which only its manifests know.
 */

#define LISTED_MAX 5000000 /* entries of one plan; more: TOO_LARGE */

/* --- the list --- */

struct tarn_status *tarn_plan__list_add(struct tarn_planner *p,
                                        const struct tarn_manifest_entry *entry,
                                        struct tarn_slice packed, int64_t added_by, bool is_before)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    if (p->listed_count >= LISTED_MAX)
        return tarn_status_new(
            TARN_TOO_LARGE, "more than %d files changed: plan fewer snapshots at once", LISTED_MAX);
    tarn_key_add_bytes(&key, entry->partition);
    tarn_key_add_i64(&key, entry->bucket);
    TARN_GROW(p->listed, p->listed_count, p->listed_capacity);
    struct tarn_slice last =
        p->listed_count == 0 ? (struct tarn_slice){0} : p->listed[p->listed_count - 1].key;
    p->listed[p->listed_count] = (struct tarn_listed){
        .key = tarn_slice_equal(last, tarn_buf_slice(&key))
                   ? last
                   : tarn_arena_copy(p->listed_arena, tarn_buf_slice(&key)),
        .packed = tarn_arena_copy(p->listed_arena, packed),
        .added_by = added_by,
        .order = p->listed_count,
        .is_before = is_before,
    };
    p->listed_count++;
    return TARN_OK;
}

static int by_bucket(const void *a, const void *b)
{
    const struct tarn_listed *left = a, *right = b;
    int c = tarn_slice_compare(left->key, right->key);
    return c != 0 ? c : (left->order > right->order) - (left->order < right->order);
}

void tarn_plan__sort_listed(struct tarn_planner *p)
{
    if (p->listed_count > 1)
        qsort(p->listed, p->listed_count, sizeof *p->listed, by_bucket);
}

/* --- changes of one snapshot --- */

typedef struct tarn_status *(*change_fn)(void *arg, const struct tarn_manifest_entry *entry,
                                         struct tarn_slice packed, int64_t added_by);

/* Calls fn with each; all is borrowed for the call. */
static struct tarn_status *each_change(struct tarn_planner *p, int64_t snapshot_id,
                                       enum tarn_change what, change_fn fn, void *arg)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__change_prefix(p->table->uuid, snapshot_id, what, &from);
    tarn_table__change_prefix(p->table->uuid, snapshot_id, what + 1, &to);
    struct tarn_state_range range = {.from = tarn_buf_slice(&from), .to = tarn_buf_slice(&to)};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(p->table->env->state, TARN_FAMILY_CHANGES, &range);
    struct tarn_slice key, value, packed;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_manifest_entry entry;
        int64_t added_by;
        if (!tarn_table__split_value(value, &added_by, &packed))
            return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a change in the index is damaged",
                                   tarn_table_name(p->table));
        tarn_plan__scratch_reset(p);
        TARN_TRY(tarn_manifest_entry_view(packed, p->scratch, &entry));
        TARN_TRY(fn(arg, &entry, packed, added_by));
    }
    TARN_TRY(tarn_state_iterator_error(it));
    return tarn_op_check(p->op);
}

static struct tarn_status *list_change(void *arg, const struct tarn_manifest_entry *entry,
                                       struct tarn_slice packed, int64_t added_by)
{
    return tarn_plan__list_add(arg, entry, packed, added_by, false);
}

/* --- DIFF: what was added and is still there, against what was there and is removed --- */

struct diff {
    struct tarn_planner *p;
    struct tarn_map *net; /* identity -> struct net */
    struct tarn_arena *arena;
};
struct net {
    struct tarn_slice packed;
    int64_t added_by;
    bool is_before;
    bool gone; /* it is there at both ends, or at neither */
};

static struct tarn_status *diff_added(void *arg, const struct tarn_manifest_entry *entry,
                                      struct tarn_slice packed, int64_t added_by)
{
    struct diff *d = arg;
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    tarn_manifest_identity(entry, &identity);
    struct net *n = tarn_map_find(d->net, tarn_buf_slice(&identity));
    if (n != NULL && n->is_before) { /* removed before, and put back */
        n->gone = true;
        return TARN_OK;
    }
    if (n == NULL) {
        if (tarn_map_count(d->net) >= LISTED_MAX)
            return tarn_status_new(TARN_TOO_LARGE,
                                   "more than %d files changed: plan fewer snapshots", LISTED_MAX);
        n = tarn_arena_calloc(d->arena, 1, sizeof *n);
        tarn_map_set(d->net, tarn_buf_slice(&identity), n);
    }
    *n = (struct net){.packed = tarn_arena_copy(d->arena, packed), .added_by = added_by};
    return TARN_OK;
}

static struct tarn_status *diff_removed(void *arg, const struct tarn_manifest_entry *entry,
                                        struct tarn_slice packed, int64_t added_by)
{
    struct diff *d = arg;
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    tarn_manifest_identity(entry, &identity);
    struct net *n = tarn_map_find(d->net, tarn_buf_slice(&identity));
    if (n != NULL && n->is_before) { /* put back, and removed again */
        n->gone = false;
        return TARN_OK;
    }
    if (n != NULL) { /* came and went in between */
        n->gone = true;
        return TARN_OK;
    }
    n = tarn_arena_calloc(d->arena, 1, sizeof *n);
    *n = (struct net){tarn_arena_copy(d->arena, packed), added_by, true, false};
    tarn_map_set(d->net, tarn_buf_slice(&identity), n);
    return TARN_OK;
}

static struct tarn_status *list_diff(struct tarn_planner *p, int64_t from, int64_t to)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *net = tarn_map_new();
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct diff d = {p, net, arena};
    for (int64_t id = from + 1; id <= to;
         id++) { /* a snapshot that puts a file back removes it first */
        TARN_TRY(each_change(p, id, TARN_CHANGE_REMOVED, diff_removed, &d));
        TARN_TRY(each_change(p, id, TARN_CHANGE_ADDED, diff_added, &d));
    }
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(net, &cursor, &key, &value)) {
        struct net *n = value;
        struct tarn_manifest_entry entry;
        if (n->gone)
            continue;
        tarn_plan__scratch_reset(p);
        TARN_TRY(tarn_manifest_entry_view(n->packed, p->scratch, &entry));
        TARN_TRY(tarn_plan__list_add(p, &entry, n->packed, n->added_by, n->is_before));
    }
    return TARN_OK;
}

/* --- a range of snapshots --- */

static struct tarn_status *kind_of(struct tarn_planner *p, int64_t id, enum tarn_commit_kind *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_snapshot snapshot;
    bool found;
    TARN_TRY(tarn_table__indexed_snapshot(p->table, id, &found, &json));
    if (!found)
        return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "snapshot %" PRId64 " of table %s has expired", id,
                               tarn_table_name(p->table));
    TARN_TRY(tarn_snapshot_decode(tarn_buf_slice(&json), arena, &snapshot));
    *out = snapshot.kind;
    return TARN_OK;
}

static enum tarn_changes resolve_auto(const struct tarn_planner *p)
{
    if (p->request.changes != TARN_CHANGES_AUTO)
        return p->request.changes;
    struct tarn_slice producer = tarn_schema_option(p->plan.schema, "changelog-producer");
    return producer.size == 0 || tarn_slice_is(producer, "none") ? TARN_CHANGES_DELTA
                                                                 : TARN_CHANGES_CHANGELOG;
}

static struct tarn_status *check_range(struct tarn_planner *p, int64_t earliest, int64_t *from)
{
    int64_t to = p->plan.has_snapshot ? p->plan.snapshot.id : 0;
    *from = p->request.changes_from;
    int64_t first = p->request.changes == TARN_CHANGES_DIFF ? earliest : earliest - 1;
    if (*from > to || *from < 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "changes of table %s from snapshot %" PRId64 " to %" PRId64,
                               tarn_table_name(p->table), *from, to);
    if (to > 0 && *from < first)
        return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "changes of table %s from snapshot %" PRId64
                               " on are not kept any more; the earliest is %" PRId64,
                               tarn_table_name(p->table), *from, first);
    bool begins = false;
    if (*from > 0 && *from < to && !p->request.of_itself)
        TARN_TRY(tarn_table__begins(p->op, p->table, *from + 1, &begins));
    if (begins)
        return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "snapshot %" PRId64 " of table %s doesn't stand on snapshot %" PRId64
                               ": history begins with it, and changes are those behind it",
                               *from + 1, tarn_table_name(p->table), *from);
    return TARN_OK;
}

struct tarn_status *tarn_plan__list_changes(struct tarn_planner *p, int64_t earliest)
{
    int64_t from, to = p->plan.has_snapshot ? p->plan.snapshot.id : 0;
    p->request.changes = resolve_auto(p);
    TARN_TRY(check_range(p, earliest, &from));
    p->is_changelog = p->request.changes == TARN_CHANGES_CHANGELOG;
    if (p->request.changes == TARN_CHANGES_DIFF)
        TARN_TRY(list_diff(p, from, to));
    for (int64_t id = from + 1; id <= to && p->request.changes != TARN_CHANGES_DIFF; id++) {
        enum tarn_commit_kind kind;
        TARN_TRY(kind_of(p, id, &kind));
        if (p->is_changelog && kind != TARN_COMMIT_OVERWRITE)
            TARN_TRY(each_change(p, id, TARN_CHANGE_CHANGELOG, list_change, p));
        if (!p->is_changelog && (kind == TARN_COMMIT_APPEND ||
                                 (kind == TARN_COMMIT_OVERWRITE && p->request.with_overwrites)))
            TARN_TRY(each_change(p, id, TARN_CHANGE_ADDED, list_change, p));
    }
    tarn_plan__sort_listed(p);
    return TARN_OK;
}

/* --- a state that only manifests know --- */

struct reading {
    struct tarn_planner *p;
    struct tarn_map *deleted;
    bool deletes; /* the first pass, which finds them */
};

static struct tarn_status *read_one(struct reading *r, const struct tarn_manifest_file *file)
{
    struct tarn_planner *p = r->p;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_manifest_entry *entries;
    size_t count;
    if (r->deletes && file->deleted_count == 0)
        return TARN_OK;
    TARN_TRY(tarn_table__read_manifest(p->op, p->table, file, arena, &entries, &count));
    for (size_t i = 0; i < count; i++) {
        bool passes = entries[i].kind == (r->deletes ? TARN_ENTRY_DELETE : TARN_ENTRY_ADD);
        if (passes && !r->deletes)
            TARN_TRY(tarn_plan__partition_passes(p, entries[i].partition, &passes));
        if (!passes)
            continue;
        tarn_buf_clear(&bytes);
        tarn_manifest_identity(&entries[i], &bytes);
        if (r->deletes) {
            tarn_map_set(r->deleted, tarn_buf_slice(&bytes), p);
            continue;
        }
        if (tarn_map_find(r->deleted, tarn_buf_slice(&bytes)) != NULL)
            continue;
        tarn_buf_clear(&bytes);
        tarn_manifest_entry_pack(&entries[i], true, &bytes);
        TARN_TRY(tarn_plan__list_add(p, &entries[i], tarn_buf_slice(&bytes), 0, false));
    }
    return tarn_op_check(p->op);
}

struct tarn_status *tarn_plan__list_manifests(struct tarn_planner *p)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *deleted = tarn_map_new();
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_manifest_file *files[2];
    size_t counts[2];
    for (int list = 0; list < 2; list++)
        TARN_TRY(tarn_table__read_list(p->op, p->table, &p->plan.snapshot,
                                       list == 0 ? TARN_LIST_BASE : TARN_LIST_DELTA, arena,
                                       &files[list], &counts[list]));
    struct reading r = {p, deleted, true};
    for (int pass = 0; pass < 2; pass++, r.deletes = false)
        for (int list = 0; list < 2; list++)
            for (size_t i = 0; i < counts[list]; i++)
                TARN_TRY(read_one(&r, &files[list][i]));
    tarn_plan__sort_listed(p);
    return TARN_OK;
}

/* --- one snapshot's, for whoever wants to know what was written --- */

static struct tarn_status *read_changes(struct tarn_op *op, struct tarn_table *table,
                                        int64_t snapshot_id, enum tarn_change what,
                                        struct tarn_manifest_entry **list, size_t *count,
                                        size_t *capacity)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__change_prefix(table->uuid, snapshot_id, what, &from);
    tarn_table__change_prefix(table->uuid, snapshot_id, what + 1, &to);
    struct tarn_state_range range = {.from = tarn_buf_slice(&from), .to = tarn_buf_slice(&to)};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(table->env->state, TARN_FAMILY_CHANGES, &range);
    struct tarn_slice key, value, packed;
    while (tarn_state_iterator_next(it, &key, &value)) {
        int64_t added_by;
        if (!tarn_table__split_value(value, &added_by, &packed))
            return tarn_table__damaged_value(value);
        TARN_GROW(*list, *count, *capacity);
        struct tarn_manifest_entry *entry = &(*list)[*count];
        packed = tarn_arena_copy(op->arena, packed);
        TARN_TRY(tarn_manifest_entry_view(packed, op->arena, entry));
        entry->kind = what == TARN_CHANGE_REMOVED ? TARN_ENTRY_DELETE : TARN_ENTRY_ADD;
        (*count)++;
    }
    TARN_TRY(tarn_state_iterator_error(it));
    return tarn_op_check(op);
}

struct tarn_status *tarn_table_delta(struct tarn_op *op, struct tarn_table *table,
                                     int64_t snapshot_id, struct tarn_manifest_entry **out,
                                     size_t *count)
{
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *list = NULL;
    size_t n = 0, capacity = 0;
    TARN_TRY(read_changes(op, table, snapshot_id, TARN_CHANGE_REMOVED, &list, &n, &capacity));
    TARN_TRY(read_changes(op, table, snapshot_id, TARN_CHANGE_ADDED, &list, &n, &capacity));
    *out = tarn_arena_calloc(op->arena, n + 1, sizeof **out);
    if (n > 0)
        memcpy(*out, list, n * sizeof **out);
    *count = n;
    return TARN_OK;
}
