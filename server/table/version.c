#include "table/internal.h"

#include "table/index.h"

/* Which snapshot a reader means: by id, time, watermark or tag (docs/format.md, "Time travel"). */

#define LOOKS_MAX 5 /* at a history that others rewrite, before the reader is told */

/* Is the snapshot in the folder the one that was indexed? Others may have rolled back and filled up since the look. */
static struct tarn_status *is_indexed(struct tarn_table *table, int64_t id, struct tarn_slice json,
                                      bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf indexed = {0};
    TARN_TRY(tarn_table__indexed_snapshot(table, id, out, &indexed));
    *out = *out && tarn_slice_equal(tarn_buf_slice(&indexed), json);
    return TARN_OK;
}

static struct tarn_status *by_id(struct tarn_op *op, struct tarn_table *table,
                                 const struct tarn_table_view *view, int64_t id,
                                 struct tarn_snapshot *out)
{
    int64_t latest = view->has_snapshot ? view->snapshot.id : 0;
    if (id > latest || id <= 0)
        return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND,
                               "table %s has no snapshot %" PRId64 "; the latest is %" PRId64,
                               table->name, id, latest);
    bool here;
    struct tarn_slice json;
    if (id >= view->earliest_id) {
        TARN_TRY(tarn_table__read_snapshot(op, table, id, op->arena, &here, &json, out));
        if (here)
            TARN_TRY(is_indexed(table, id, json, &here));
        if (!here) /* the view is of the past */
            return tarn_status_new(TARN_OBJECT_NOT_FOUND,
                                   "snapshot %" PRId64 " of table %s is not what it was", id,
                                   table->name);
    } else
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

/* The first snapshot whose watermark has reached the one that is asked for. Watermarks may be missing in between. */
static struct tarn_status *by_watermark(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_table_view *view, int64_t watermark,
                                        struct tarn_snapshot *out)
{
    for (int64_t id = view->earliest_id; id <= view->snapshot.id; id++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
        TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
        struct tarn_snapshot snapshot;
        bool found;
        TARN_TRY(tarn_op_check(op));
        TARN_TRY(tarn_table__indexed_snapshot(table, id, &found, &json));
        if (!found) /* it expired meanwhile */
            continue;
        TARN_TRY(tarn_snapshot_decode(tarn_buf_slice(&json), arena, &snapshot));
        if (snapshot.watermark != TARN_SNAPSHOT_NONE && snapshot.watermark >= watermark)
            return by_id(op, table, view, id, out);
    }
    return tarn_status_new(TARN_NO_SNAPSHOT_AT,
                           "table %s has no snapshot whose watermark has reached %" PRId64,
                           tarn_table_name(table), watermark);
}

/* The snapshot itself may have expired. */
static struct tarn_status *by_tag(struct tarn_op *op, struct tarn_table *table,
                                  struct tarn_slice name, struct tarn_snapshot *out)
{
    struct tarn_slice json;
    struct tarn_tag tag;
    TARN_TRY(tarn_table__read_tag(op, table, name, &json, &tag));
    *out = tag.snapshot;
    return TARN_OK;
}

static struct tarn_status *no_snapshot_yet(const struct tarn_table *table)
{
    return tarn_status_new(TARN_NO_SNAPSHOT_AT, "table %s has no snapshot yet",
                           tarn_table_name(table));
}

/* Where the store is away, as of the last look, which is as young as was promised. */
static struct tarn_status *latest(struct tarn_op *op, struct tarn_table *table,
                                  const struct tarn_table_view *view, struct tarn_snapshot *out)
{
    bool found;
    struct tarn_status *s = by_id(op, table, view, view->snapshot.id, out);
    if (!tarn_store_is_away(s))
        return s;
    tarn_status_free(s);
    TARN_TRY(tarn_table__past(table, view->snapshot.id, op->arena, &found, out));
    if (!found || out->time_ms != view->snapshot.time_ms ||
        !tarn_slice_equal(out->delta_list, view->snapshot.delta_list))
        return tarn_status_new(TARN_OBJECT_NOT_FOUND,
                               "snapshot %" PRId64 " of table %s is not what it was",
                               view->snapshot.id, table->name);
    return TARN_OK;
}

struct tarn_status *tarn_table__find_version(struct tarn_op *op, struct tarn_table *table,
                                             const struct tarn_table_view *view,
                                             struct tarn_version version, bool *found,
                                             struct tarn_snapshot *out)
{
    *found = true;
    if (version.snapshot_id != TARN_SNAPSHOT_NONE)
        return by_id(op, table, view, version.snapshot_id, out);
    if (version.tag.size > 0)
        return by_tag(op, table, version.tag, out);
    if (version.time_ms != TARN_SNAPSHOT_NONE)
        return view->has_snapshot ? by_time(op, table, view, version.time_ms, out)
                                  : no_snapshot_yet(table);
    if (version.watermark != TARN_SNAPSHOT_NONE)
        return view->has_snapshot ? by_watermark(op, table, view, version.watermark, out)
                                  : no_snapshot_yet(table);
    *found = view->has_snapshot;
    return *found ? latest(op, table, view, out) : TARN_OK;
}

struct tarn_status *tarn_table_snapshot(struct tarn_op *op, struct tarn_table *table,
                                        struct tarn_version version, bool *found,
                                        struct tarn_snapshot *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    for (int looks = 1;; looks++) {
        TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
        TARN_TRY(tarn_table_look(op, table, &view));
        struct tarn_status *s = tarn_table__find_version(op, table, view, version, found, out);
        if (tarn_status_reason(s) != TARN_OBJECT_NOT_FOUND)
            return s;
        if (looks == LOOKS_MAX) {
            tarn_status_free(s);
            return tarn_status_new(TARN_STORE_UNAVAILABLE,
                                   "the history of table %s was rewritten %d times meanwhile",
                                   table->name, looks);
        }
        tarn_status_free(s);
        tarn_table__look_again(table);
        TARN_TRY(tarn_op_check(op));
    }
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
    TARN_TRY(
        tarn_table__read_list(op, table, snapshot, TARN_LIST_BASE, op->arena, base, base_count));
    return tarn_table__read_list(op, table, snapshot, TARN_LIST_DELTA, op->arena, delta,
                                 delta_count);
}
