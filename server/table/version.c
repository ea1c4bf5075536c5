#include "table/internal.h"

/* Which snapshot a reader means: by id or by time (docs/format.md, "Time travel"). */

static struct tarn_status *by_id(struct tarn_op *op, struct tarn_table *table,
                                 const struct tarn_table_view *view, int64_t id,
                                 struct tarn_snapshot *out)
{
    int64_t latest = view->has_snapshot ? view->snapshot.id : 0;
    if (id > latest || id <= 0)
        return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND,
                               "table %s has no snapshot %" PRId64 "; the latest is %" PRId64,
                               table->name, id, latest);
    bool found = id >= view->earliest_id;
    struct tarn_slice json;
    if (found)
        TARN_TRY(tarn_table__read_snapshot(op, table, id, op->arena, &found, &json, out));
    if (!found)
        return tarn_status_new(TARN_SNAPSHOT_EXPIRED,
                               "snapshot %" PRId64
                               " of table %s has expired; the earliest is %" PRId64,
                               id, table->name, view->earliest_id);
    return TARN_OK;
}

/* The latest snapshot with time <= time_ms. Times need not rise with ids, so the search goes back from the newest
 * as Paimon's does only where it must: binary search over ids, as Paimon has it. */
static struct tarn_status *by_time(struct tarn_op *op, struct tarn_table *table,
                                   const struct tarn_table_view *view, int64_t time_ms,
                                   struct tarn_snapshot *out)
{
    int64_t low = view->earliest_id, high = view->snapshot.id;
    struct tarn_snapshot first;
    TARN_TRY(by_id(op, table, view, low, &first));
    if (first.time_ms > time_ms) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf asked = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf earliest = {0};
        tarn_format_time(time_ms, &asked);
        tarn_format_time(first.time_ms, &earliest);
        return tarn_status_new(TARN_NO_SNAPSHOT_AT,
                               "table %s has no snapshot at %s; its earliest, %" PRId64
                               ", is of %s",
                               table->name, tarn_buf_cstr(&asked), low, tarn_buf_cstr(&earliest));
    }
    *out = first;
    while (low <= high) {
        int64_t middle = low + (high - low) / 2;
        struct tarn_snapshot snapshot;
        TARN_TRY(by_id(op, table, view, middle, &snapshot));
        if (snapshot.time_ms <= time_ms) {
            *out = snapshot;
            low = middle + 1;
        } else {
            high = middle - 1;
        }
    }
    return TARN_OK;
}

struct tarn_status *tarn_table_snapshot(struct tarn_op *op, struct tarn_table *table,
                                        struct tarn_version version, bool *found,
                                        struct tarn_snapshot *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    *found = true;
    if (version.snapshot_id != TARN_SNAPSHOT_NONE)
        return by_id(op, table, view, version.snapshot_id, out);
    if (version.time_ms != TARN_SNAPSHOT_NONE) {
        if (!view->has_snapshot)
            return tarn_status_new(TARN_NO_SNAPSHOT_AT, "table %s has no snapshot yet",
                                   table->name);
        return by_time(op, table, view, version.time_ms, out);
    }
    *found = view->has_snapshot;
    return *found ? by_id(op, table, view, view->snapshot.id, out) : TARN_OK;
}

struct tarn_status *tarn_table_snapshots(struct tarn_op *op, struct tarn_table *table, int64_t from,
                                         size_t max, struct tarn_snapshot **out, size_t *count)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    *out = NULL;
    *count = 0;
    if (!view->has_snapshot)
        return TARN_OK;
    int64_t id = TARN_MAX(from, view->earliest_id);
    size_t most = id > view->snapshot.id ? 0 : (size_t)(view->snapshot.id - id) + 1;
    *out = tarn_arena_calloc(op->arena, TARN_MIN(most, max) + 1, sizeof **out);
    for (; id <= view->snapshot.id && *count < max; id++) {
        bool here;
        struct tarn_slice json;
        TARN_TRY(
            tarn_table__read_snapshot(op, table, id, op->arena, &here, &json, &(*out)[*count]));
        if (here) /* one that expired meanwhile is left out */
            (*count)++;
    }
    return TARN_OK;
}

struct tarn_status *tarn_table_manifests(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_snapshot *snapshot,
                                         struct tarn_manifest_file **base, size_t *base_count,
                                         struct tarn_manifest_file **delta, size_t *delta_count)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_table__read_list(op, table, snapshot->base_list, op->arena, base, base_count));
    return tarn_table__read_list(op, table, snapshot->delta_list, op->arena, delta, delta_count);
}
