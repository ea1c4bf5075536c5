#include "table/watch.h"

#include "table/index.h"
#include "table/internal.h"

/* Snapshots by id and by time, for those that read them one after the other. */

static uint64_t identity_of(struct tarn_slice json)
{
    uint64_t identity = tarn_xxh64(json, 0);
    return identity + (identity == 0);
}

struct tarn_status *tarn_table_find_snapshot(struct tarn_op *op, struct tarn_table *table,
                                             int64_t id, bool *found, struct tarn_snapshot *out,
                                             uint64_t *identity)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_slice json;
    TARN_TRY(tarn_table__check_here(table));
    *found = false;
    if (id <= 0)
        return TARN_OK;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, op->arena, found, &json, out));
    if (*found)
        *identity = identity_of(json);
    return TARN_OK;
}

struct tarn_status *tarn_table_is_indexed(struct tarn_table *table, int64_t id, uint64_t identity,
                                          bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    bool found;
    TARN_TRY(tarn_table__indexed_snapshot(table, id, &found, &json));
    *out = found && identity_of(tarn_buf_slice(&json)) == identity;
    return TARN_OK;
}

/* Looks where the index is behind the folder. */
static struct tarn_status *look_for(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                    uint64_t identity, bool *out)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_is_indexed(table, id, identity, out));
    if (*out)
        return TARN_OK;
    tarn_table__look_again(table);
    TARN_TRY(tarn_table_look(op, table, &view));
    return tarn_table_is_indexed(table, id, identity, out);
}

struct tarn_status *tarn_table_follows(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                       uint64_t identity, uint64_t next_identity, bool *out)
{
    TARN_TRY(look_for(op, table, id + 1, next_identity, out));
    return *out ? tarn_table_is_indexed(table, id, identity, out) : TARN_OK;
}

struct tarn_status *tarn_table_begins_history(struct tarn_op *op, struct tarn_table *table,
                                              int64_t id, uint64_t identity, bool look, bool *known,
                                              bool *out)
{
    *out = false;
    if (look)
        TARN_TRY(look_for(op, table, id, identity, known));
    else
        TARN_TRY(tarn_table_is_indexed(table, id, identity, known));
    return *known ? tarn_table__begins(op, table, id, out) : TARN_OK;
}

struct tarn_status *tarn_table_find_ids(struct tarn_op *op, struct tarn_table *table,
                                        int64_t *earliest, int64_t *latest)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_range range;
    TARN_TRY(tarn_table__check_here(table));
    int64_t first;
    bool begins = false;
    TARN_TRY(tarn_table__find_range(op, table, &range));
    TARN_TRY(tarn_table__indexed_first(table, &first));
    if (first > range.earliest && first <= range.latest)
        TARN_TRY(tarn_table__begins(op, table, first, &begins));
    *earliest = begins ? first : range.earliest;
    *latest = range.latest;
    return TARN_OK;
}

/* Below the first one that is early enough, as Paimon searches: times may not rise with ids where clocks differ. */
struct tarn_status *tarn_table_snapshot_since(struct tarn_op *op, struct tarn_table *table,
                                              const struct tarn_table_view *view, int64_t time_ms,
                                              int64_t *id)
{
    int64_t low = view->earliest_id, high = view->has_snapshot ? view->snapshot.id + 1 : 1;
    if (!view->has_snapshot)
        low = high;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        struct tarn_snapshot snapshot;
        uint64_t identity;
        bool found;
        TARN_TRY(tarn_table_find_snapshot(op, table, middle, &found, &snapshot, &identity));
        if (!found || snapshot.time_ms < time_ms) /* not there: it expired meanwhile */
            low = middle + 1;
        else
            high = middle;
    }
    *id = low;
    return TARN_OK;
}
