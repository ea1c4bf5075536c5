#include "table/receipts.h"

/* From where on every identity is known, and how what is older is forgotten. */

#define FORGET_BATCH_RECEIPTS 1000

/* --- the horizon --- */

struct tarn_status *tarn_table__horizon(struct tarn_table *table, int64_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__tagged_key(table->uuid, 'z', &key);
    bool found;
    *out = INT64_MAX; /* nothing is known */
    return tarn_receipt__find_number(table, &key, &found, out);
}

struct tarn_status *tarn_receipt__raise_horizon(struct tarn_table *table, int64_t id)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_receipt__put_number(batch, table, 'z', TARN_MAX(id, (int64_t)1));
    tarn_receipt__put_number(batch, table, 'g', TARN_MAX(id, (int64_t)1));
    return tarn_state_write(table->env->state, batch, false);
}

struct tarn_status *tarn_table__horizon_rise(struct tarn_table *table, struct tarn_range range)
{
    int64_t horizon, indexed, anchor;
    uint64_t hash;
    TARN_TRY(tarn_table__horizon(table, &horizon));
    TARN_TRY(tarn_table__indexed_id(table, &indexed, &hash));
    TARN_TRY(tarn_table__anchor(table, &anchor, &hash));
    indexed = TARN_MAX(indexed, anchor); /* where it is being built anew */
    bool unknown = horizon == INT64_MAX;
    /* The snapshot that was indexed last has expired: others have committed past it, and nobody knows who, nor on what. */
    bool gap = range.earliest > TARN_MAX(indexed, (int64_t)1) && range.earliest > horizon;
    if (!unknown && !gap)
        return TARN_OK;
    return unknown ? tarn_receipt__raise_horizon(table, range.earliest)
                   : tarn_table__receipts_doubt_retained(table, range);
}

struct tarn_status *tarn_table__may_lie_below(struct tarn_table *table,
                                              const struct tarn_identity *who, bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf gap_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    int64_t gap = 0, last, landed;
    bool found;
    *out = true;
    if (who->identifier == TARN_COMMIT_IDENTIFIER_BATCH)
        return TARN_OK;
    tarn_table__tagged_key(table->uuid, 'g', &gap_key);
    TARN_TRY(tarn_receipt__find_number(table, &gap_key, &found, &gap));
    tarn_receipt__user_key(table, 'l', who->user, &key);
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (!found)
        return TARN_OK;
    if (!tarn_key_take_i64(&rest, &last) || !tarn_key_take_i64(&rest, &landed))
        return tarn_receipt__damaged(table);
    *out = who->identifier <= last || landed < gap;
    return TARN_OK;
}

/* --- forgetting --- */

/* The last identifier of a user outlives its receipt. */
static struct tarn_status *keep_last(struct tarn_table *table, struct tarn_state_batch *batch,
                                     struct tarn_map *lasts, const struct tarn_identity *who,
                                     struct tarn_arena *arena)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_receipt__user_key(table, 'm', who->user, &key);
    int64_t *last = tarn_map_find(lasts, who->user);
    if (last == NULL) {
        bool found;
        last = tarn_arena_alloc(arena, sizeof *last);
        *last = INT64_MIN;
        TARN_TRY(tarn_receipt__find_number(table, &key, &found, last));
        tarn_map_set(lasts, who->user, last);
    }
    *last = TARN_MAX(*last, who->identifier);
    tarn_key_add_i64(&value, *last);
    tarn_receipt__put(batch, table, &key, &value);
    return TARN_OK;
}

/* A user's last batch goes with its receipt: most users are one job's. */
static struct tarn_status *forget_last_batch(struct tarn_table *table,
                                             struct tarn_state_batch *batch,
                                             const struct tarn_identity *who)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    uint64_t content;
    TARN_TRY(tarn_table__last_batch(table, who->user, &content));
    if (content != who->content)
        return TARN_OK;
    tarn_receipt__user_key(table, 'b', who->user, &key);
    tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key));
    return TARN_OK;
}

static struct tarn_status *write_forgotten(struct tarn_table *table, struct tarn_state_batch *batch,
                                           int64_t earliest, int64_t horizon)
{
    int64_t known;
    TARN_TRY(tarn_table__horizon(table, &known));
    if (horizon > 0)
        tarn_receipt__put_number(batch, table, 'z',
                                 TARN_MAX(known == INT64_MAX ? earliest : known, horizon));
    return tarn_state_write(table->env->state, batch, false);
}

/* Void ones ('v') and those in doubt ('d') lie in no order of time: each call looks at some, from where the last one ended.
 * What was in doubt may have landed: the horizon rises over it. What was void had not. */
static struct tarn_status *forget_gone(struct tarn_table *table, char tag, int64_t before_ms,
                                       int64_t earliest, struct tarn_buf *next)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__tagged_key(table->uuid, tag, &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    if (next->size > 0)
        tarn_state_iterator_seek(it, tarn_buf_slice(next));
    tarn_buf_clear(next);
    struct tarn_slice key, value;
    size_t forgotten = 0;
    int64_t horizon = 0, snapshot_id, time_ms;
    for (size_t n = 0; tarn_state_iterator_next(it, &key, &value); n++) {
        if (n == FORGET_BATCH_RECEIPTS) {
            tarn_buf_add_slice(next, key);
            break;
        }
        if (!tarn_key_take_i64(&value, &snapshot_id) || !tarn_key_take_i64(&value, &time_ms))
            return tarn_receipt__damaged(table);
        if (time_ms >= before_ms)
            continue;
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, key);
        forgotten++;
        if (tag == 'd')
            horizon = TARN_MAX(horizon, snapshot_id + 1);
    }
    TARN_TRY(tarn_state_iterator_error(it));
    return forgotten == 0 ? TARN_OK : write_forgotten(table, batch, earliest, horizon);
}

static struct tarn_status *forget_landed(struct tarn_table *table, int64_t before_ms,
                                         int64_t earliest)
{
    int64_t horizon = 0;
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_map_drop) struct tarn_map *lasts = tarn_map_new();
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf user = {0};
    tarn_table__tagged_key(table->uuid, 'o', &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    for (size_t n = 0; tarn_state_iterator_next(it, &key, &value); n++) {
        struct tarn_slice rest = tarn_receipt__behind(key, prefix.size), time = value;
        TARN_OWN(tarn_buf_drop) struct tarn_buf landed = {0};
        struct tarn_identity who;
        int64_t snapshot_id, time_ms;
        if (!tarn_key_take_i64(&rest, &snapshot_id) || !tarn_key_take_i64(&time, &time_ms))
            return tarn_receipt__damaged(table);
        /* Those of one snapshot go together: the horizon lies between snapshots. */
        if (snapshot_id >= earliest || time_ms >= before_ms ||
            (n >= FORGET_BATCH_RECEIPTS && snapshot_id >= horizon))
            break;
        tarn_table__tagged_key(table->uuid, 'r', &landed);
        tarn_buf_add_slice(&landed, rest);
        if (!tarn_receipt__take_identity(&rest, &user, &who))
            return tarn_receipt__damaged(table);
        if (who.identifier != TARN_COMMIT_IDENTIFIER_BATCH)
            TARN_TRY(keep_last(table, batch, lasts, &who, arena));
        else
            TARN_TRY(forget_last_batch(table, batch, &who));
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, key);
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                                tarn_buf_slice(&landed));
        horizon = snapshot_id + 1;
    }
    TARN_TRY(tarn_state_iterator_error(it));
    return horizon == 0 ? TARN_OK : write_forgotten(table, batch, earliest, horizon);
}

struct tarn_status *tarn_table__receipts_forget(struct tarn_table *table, int64_t earliest)
{
    int64_t before_ms = tarn_clock_wall_ms() - table->env->receipts_retain_ms;
    TARN_TRY(forget_landed(table, before_ms, earliest));
    TARN_TRY(forget_gone(table, 'd', before_ms, earliest, &table->forget_doubtful));
    return forget_gone(table, 'v', before_ms, earliest, &table->forget_void);
}
