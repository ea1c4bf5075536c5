#include "table/receipts.h"

/* Receipts of snapshots that are no more part of the history: void, or in doubt (server/table/README.md, "Receipts"). */

#define VOID_BATCH_RECEIPTS 10000

/* --- the past rewritten --- */

/* A user's last identifier is what is left of theirs: in the receipts, or among those forgotten. */
static struct tarn_status *restore_last(struct tarn_table *table, struct tarn_slice user)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf last_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf forgotten_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf last = {0};
    tarn_receipt__user_key(table, 'r', user, &prefix);
    tarn_receipt__user_key(table, 'l', user, &last_key);
    tarn_receipt__user_key(table, 'm', user, &forgotten_key);
    bool any;
    int64_t best = INT64_MIN, identifier;
    TARN_TRY(tarn_receipt__find_number(table, &forgotten_key, &any, &best));
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_slice rest = tarn_receipt__behind(key, prefix.size);
        if (!tarn_key_take_i64(&rest, &identifier))
            return tarn_receipt__damaged(table);
        if (identifier == TARN_COMMIT_IDENTIFIER_BATCH)
            break; /* the largest: batches come last */
        best = TARN_MAX(best, identifier);
        any = true;
    }
    TARN_TRY(tarn_state_iterator_error(it));
    tarn_key_add_i64(&last, best);
    tarn_key_add_i64(&last,
                     0); /* where is not known: behind a gap it says nothing of what lies in it */
    if (any)
        tarn_receipt__put(batch, table, &last_key, &last);
    else
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                                tarn_buf_slice(&last_key));
    return tarn_state_write(table->env->state, batch, false);
}

/* left: the tag of what is kept of it. */
static void void_one(struct tarn_state_batch *batch, struct tarn_table *table, int64_t snapshot_id,
                     struct tarn_slice identity_and_kind, struct tarn_slice time, char left)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf landed = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf gone = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, 'r', &landed);
    tarn_buf_add_slice(&landed, identity_and_kind);
    tarn_table__tagged_key(table->uuid, left, &gone);
    tarn_buf_add_slice(&gone, identity_and_kind);
    tarn_key_add_i64(&value, snapshot_id);
    tarn_buf_add_slice(&value, time);
    tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                            tarn_buf_slice(&landed));
    tarn_receipt__put(batch, table, &gone, &value);
}

/* At most VOID_BATCH_RECEIPTS of those from `from` on become void ('v') or doubtful ('d'); their users are put into `users`. */
static struct tarn_status *void_some(struct tarn_table *table, int64_t from, char left,
                                     struct tarn_map *users, bool *more)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf begin = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf user = {0};
    tarn_table__tagged_key(table->uuid, 'o', &prefix);
    tarn_table__tagged_key(table->uuid, 'o', &begin);
    tarn_key_add_i64(&begin, from);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    tarn_state_iterator_seek(it, tarn_buf_slice(&begin));
    struct tarn_slice key, value;
    size_t n = 0;
    for (; n < VOID_BATCH_RECEIPTS && tarn_state_iterator_next(it, &key, &value); n++) {
        struct tarn_slice rest = tarn_receipt__behind(key, prefix.size), identity;
        struct tarn_identity who;
        int64_t snapshot_id;
        if (!tarn_key_take_i64(&rest, &snapshot_id))
            return tarn_receipt__damaged(table);
        identity = rest;
        if (!tarn_receipt__take_identity(&rest, &user, &who))
            return tarn_receipt__damaged(table);
        void_one(batch, table, snapshot_id, identity, value, left);
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, key);
        if (who.identifier == TARN_COMMIT_IDENTIFIER_BATCH)
            continue;
        /* Not known until it is restored: one that is too high would have a replay thrown away. */
        TARN_OWN(tarn_buf_drop) struct tarn_buf last_key = {0};
        tarn_receipt__user_key(table, 'l', who.user, &last_key);
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                                tarn_buf_slice(&last_key));
        tarn_map_set(users, who.user, table);
    }
    TARN_TRY(tarn_state_iterator_error(it));
    *more = n == VOID_BATCH_RECEIPTS;
    return tarn_state_write(table->env->state, batch, false);
}

static struct tarn_status *void_all(struct tarn_table *table, int64_t from, char left)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *users = tarn_map_new();
    for (bool more = true; more;)
        TARN_TRY(void_some(table, from, left, users, &more));
    size_t cursor = 0;
    struct tarn_slice user;
    void *unused;
    while (tarn_map_next(users, &cursor, &user, &unused))
        TARN_TRY(restore_last(table, user));
    return TARN_OK;
}

struct tarn_status *tarn_table__receipts_void(struct tarn_table *table, int64_t from)
{
    return void_all(table, from, 'v');
}

void tarn_table__anchor_put(struct tarn_state_batch *batch, struct tarn_table *table, int64_t id,
                            uint64_t json_hash)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    tarn_table__tagged_key(table->uuid, 'a', &key);
    tarn_key_add_i64(&value, id);
    tarn_key_add_u64(&value, json_hash);
    tarn_receipt__put(batch, table, &key, &value);
}

struct tarn_status *tarn_table__anchor(struct tarn_table *table, int64_t *id, uint64_t *json_hash)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    bool found;
    *id = 0;
    tarn_table__tagged_key(table->uuid, 'a', &key);
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (found && (!tarn_key_take_i64(&rest, id) || !tarn_key_take_u64(&rest, json_hash)))
        return tarn_receipt__damaged(table);
    return TARN_OK;
}

void tarn_table__anchor_remove(struct tarn_state_batch *batch, struct tarn_table *table)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_table__tagged_key(table->uuid, 'a', &key);
    tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&key));
}

/* --- in doubt --- */

struct tarn_status *tarn_table__receipts_doubt(struct tarn_table *table, int64_t from)
{
    table->doubt_ended = false;
    return void_all(table, from, 'd');
}

struct tarn_status *tarn_table__receipts_doubt_retained(struct tarn_table *table,
                                                        struct tarn_range range)
{
    int64_t horizon, from = table->view == NULL ? 0 : table->view->view.earliest_id;
    from = TARN_MIN(from, range.earliest);
    TARN_TRY(tarn_table__horizon(table, &horizon));
    if (from < range.earliest) /* first: what follows may be cut off */
        TARN_TRY(tarn_receipt__raise_horizon(
            table, horizon == INT64_MAX ? range.earliest : TARN_MAX(horizon, range.earliest)));
    return tarn_table__receipts_doubt(table, from);
}

struct tarn_status *tarn_table__receipts_end_doubt(struct tarn_table *table, int64_t earliest)
{
    if (table->doubt_ended)
        return TARN_OK;
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__tagged_key(table->uuid, 'd', &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    while (tarn_state_iterator_next(it, &key, &value)) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf rolled_back = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf kept = {0};
        struct tarn_slice rest = value;
        int64_t snapshot_id;
        if (!tarn_key_take_i64(&rest, &snapshot_id))
            return tarn_receipt__damaged(table);
        if (snapshot_id < earliest)
            continue;
        tarn_table__tagged_key(table->uuid, 'v', &rolled_back);
        tarn_buf_add_slice(&rolled_back, tarn_receipt__behind(key, prefix.size));
        tarn_buf_add_slice(&kept, value);
        tarn_receipt__put(batch, table, &rolled_back, &kept);
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, key);
    }
    TARN_TRY(tarn_state_iterator_error(it));
    TARN_TRY(tarn_state_write(table->env->state, batch, false));
    table->doubt_ended = true;
    return TARN_OK;
}
