#include "table/commit_internal.h"

/*
 * What became of a commit: asked by those who lost the answer. "Not committed" is said only when it can't land any more:
 * an attempt whose outcome isn't known is settled first, and where one of this process' life before may still be under way, the slot
 * that it would take is filled.
 *
 *   queued, in flight, open ... OPEN          receipt .... LANDED
 *   void receipt .............. ROLLED_BACK   refusal .... REFUSED
 *   could lie below the horizon NOT_KNOWN     else ....... NOT_COMMITTED
 *
 * Refusals are kept in the family RECEIPTS as a ring (layout: receipts.c).
 */

#define REFUSALS_MAX 4096
#define REFUSAL_MESSAGE_MAX 1000
#define SETTLE_TRIES 3

static void refusal_key(const struct tarn_table *table, const struct tarn_identity *who,
                        struct tarn_buf *key)
{
    tarn_table__tagged_key(table->uuid, 'f', key);
    tarn_key_add_bytes(key, who->user);
    tarn_key_add_i64(key, who->identifier);
    tarn_key_add_u64(key, who->content);
}

/* --- refusals --- */

/* Those that say something about the request; whatever else a commit fails with may be over when it is sent again. */
bool tarn_table__is_refusal(const struct tarn_status *s)
{
    switch (tarn_status_code(s)) {
    case TARN_CODE_INVALID_ARGUMENT:
    case TARN_CODE_FAILED_PRECONDITION:
    case TARN_CODE_ABORTED:
        return true;
    default:
        return false;
    }
}

static struct tarn_status *get(struct tarn_table *table, const struct tarn_buf *key, bool *found,
                               struct tarn_buf *value)
{
    return tarn_state_get(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(key), found,
                          value);
}

static void put(struct tarn_state_batch *batch, struct tarn_table *table,
                const struct tarn_buf *key, const struct tarn_buf *value)
{
    tarn_state_batch_put(batch, table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(key),
                         tarn_buf_slice(value));
}

static struct tarn_status *next_number(struct tarn_table *table, struct tarn_state_batch *batch,
                                       int64_t *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    bool found;
    tarn_table__tagged_key(table->uuid, 'n', &key);
    TARN_TRY(get(table, &key, &found, &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (!found || !tarn_key_take_i64(&rest, out))
        *out = 0;
    tarn_buf_clear(&value);
    tarn_key_add_i64(&value, *out + 1);
    put(batch, table, &key, &value);
    return TARN_OK;
}

/* The ring's slot belongs to refusal `number` from now on; the one that it held before is forgotten, unless that identity
 * was refused again since. */
static struct tarn_status *take_slot(struct tarn_table *table, struct tarn_state_batch *batch,
                                     int64_t number, const struct tarn_buf *refusal)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf old_key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf old = {0};
    bool found;
    int64_t held = number - REFUSALS_MAX, latest;
    tarn_table__tagged_key(table->uuid, 'q', &key);
    tarn_key_add_i64(&key, number % REFUSALS_MAX);
    TARN_TRY(get(table, &key, &found, &old_key));
    if (found)
        TARN_TRY(get(table, &old_key, &found, &old));
    struct tarn_slice rest = tarn_buf_slice(&old);
    if (found && tarn_key_take_i64(&rest, &latest) && latest == held)
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                                tarn_buf_slice(&old_key));
    put(batch, table, &key, refusal);
    return TARN_OK;
}

static struct tarn_status *remember(struct tarn_table *table, const struct tarn_identity *who,
                                    const struct tarn_status *why)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    struct tarn_slice message = tarn_slice_str(tarn_status_message(why));
    int64_t number;
    message.size = TARN_MIN(message.size, (size_t)REFUSAL_MESSAGE_MAX);
    refusal_key(table, who, &key);
    TARN_TRY(next_number(table, batch, &number));
    TARN_TRY(take_slot(table, batch, number, &key));
    tarn_key_add_i64(&value, number);
    tarn_key_add_i64(&value, tarn_clock_wall_ms());
    tarn_key_add_bytes(&value, tarn_slice_str(tarn_reason_name(tarn_status_reason(why))));
    tarn_key_add_bytes(&value, message);
    put(batch, table, &key, &value);
    return tarn_state_write(table->env->state, batch, false);
}

void tarn_table__refused(const struct tarn_op *op, struct tarn_table *table,
                         const struct tarn_request *request, const struct tarn_status *why)
{
    if (why == TARN_OK || !tarn_table__is_refusal(why) ||
        tarn_status_reason(why) == TARN_SNAPSHOT_TAKEN) /* it comes again, upon another one */
        return;
    struct tarn_identity who = {request->commit->user, request->commit->identifier,
                                request->content};
    tarn_log_status(op, TARN_WARN, "commit.refusal_forgotten", remember(table, &who, why));
}

struct refusal {
    bool found;
    int64_t time_ms;
    enum tarn_reason reason;
    const char *message;
};

static struct tarn_status *find_refusal(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_identity *who, struct refusal *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf reason = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf message = {0};
    int64_t number;
    *out = (struct refusal){0};
    refusal_key(table, who, &key);
    TARN_TRY(get(table, &key, &out->found, &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    if (!out->found)
        return TARN_OK;
    if (!tarn_key_take_i64(&rest, &number) || !tarn_key_take_i64(&rest, &out->time_ms) ||
        !tarn_key_take_bytes(&rest, &reason) || !tarn_key_take_bytes(&rest, &message))
        return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a refusal is damaged",
                               tarn_table_name(table));
    out->reason = tarn_reason_find(tarn_buf_cstr(&reason));
    out->message = tarn_arena_str(op->arena, tarn_buf_slice(&message));
    out->found = tarn_clock_wall_ms() - out->time_ms <= table->env->receipts_retain_ms;
    return TARN_OK;
}

/* --- asking --- */

struct question {
    struct tarn_op *op;
    struct tarn_table *table;
    struct tarn_identity who;
    int64_t since;
    struct tarn_commit_fate *out;
    struct tarn_status *status;
};

static const enum tarn_commit_kind append_kinds[] = {TARN_COMMIT_APPEND, TARN_COMMIT_OVERWRITE,
                                                     TARN_COMMIT_ANALYZE};

static bool is_same(const struct tarn_identity *who, const struct tarn_request *r)
{
    return who->identifier == r->commit->identifier &&
           tarn_slice_equal(who->user, r->commit->user) &&
           (who->content == 0 || who->content == r->content);
}

static bool is_queued(struct tarn_table *table, const struct tarn_identity *who)
{
    bool found = false;
    pthread_mutex_lock(&table->lock);
    for (const struct tarn_member *m = table->queue_first; m != NULL && !found; m = m->next)
        found = is_same(who, m->request);
    pthread_mutex_unlock(&table->lock);
    return found;
}

static struct tarn_status *find_landed(struct question *q)
{
    struct tarn_commit_fate *out = q->out;
    const struct tarn_identity *who = &q->who;
    for (size_t i = 0; i < TARN_COUNT_OF(append_kinds) && out->append_snapshot_id == 0; i++)
        TARN_TRY(tarn_table__receipt_find(q->table, who->user, who->identifier, who->content,
                                          append_kinds[i], &out->append_snapshot_id));
    TARN_TRY(tarn_table__receipt_find(q->table, who->user, who->identifier, who->content,
                                      TARN_COMMIT_COMPACT, &out->compact_snapshot_id));
    if (out->append_snapshot_id != 0 || out->compact_snapshot_id != 0)
        out->state = TARN_COMMIT_LANDED;
    /* A compact part lands behind its append part: what took that away would have taken this one, too. */
    for (size_t i = 0; i < TARN_COUNT_OF(append_kinds) && out->append_snapshot_id == 0; i++) {
        int64_t id = 0;
        if (out->compact_snapshot_id != 0)
            TARN_TRY(tarn_table__is_in_doubt(q->table, who, append_kinds[i], &id));
        if (id < out->compact_snapshot_id)
            out->append_snapshot_id = id;
    }
    return TARN_OK;
}

/* Of the compact part of what landed: it may be anywhere. */
static struct tarn_status *doubt_compact(struct question *q)
{
    int64_t id = 0;
    if (q->out->compact_snapshot_id == 0)
        TARN_TRY(tarn_table__is_in_doubt(q->table, &q->who, TARN_COMMIT_COMPACT, &id));
    if (id == 0)
        return TARN_OK;
    q->out->state = TARN_COMMIT_NOT_KNOWN;
    return tarn_table__horizon(q->table, &q->out->horizon_snapshot_id);
}

static struct tarn_status *find_voided(struct question *q, int64_t *time_ms)
{
    struct tarn_commit_fate *out = q->out;
    *time_ms = INT64_MIN;
    for (size_t i = 0; i < TARN_COUNT_OF(append_kinds) && out->append_snapshot_id == 0; i++)
        TARN_TRY(tarn_table__voided_find(q->table, &q->who, append_kinds[i],
                                         &out->append_snapshot_id, time_ms));
    TARN_TRY(tarn_table__voided_find(q->table, &q->who, TARN_COMMIT_COMPACT,
                                     &out->compact_snapshot_id, time_ms));
    if (out->append_snapshot_id != 0 || out->compact_snapshot_id != 0)
        out->state = TARN_COMMIT_ROLLED_BACK;
    return TARN_OK;
}

static struct tarn_status *is_doubtful(struct question *q, bool *out)
{
    int64_t id = 0;
    for (size_t i = 0; i < TARN_COUNT_OF(append_kinds) && id == 0; i++)
        TARN_TRY(tarn_table__is_in_doubt(q->table, &q->who, append_kinds[i], &id));
    if (id == 0)
        TARN_TRY(tarn_table__is_in_doubt(q->table, &q->who, TARN_COMMIT_COMPACT, &id));
    *out = id != 0;
    return tarn_table__horizon(q->table, &q->out->horizon_snapshot_id);
}

/* May it have landed where nobody remembers? */
static struct tarn_status *find_forgotten(struct question *q, bool *out)
{
    int64_t horizon;
    TARN_TRY(tarn_table__horizon(q->table, &horizon));
    q->out->horizon_snapshot_id = horizon;
    *out = horizon > 1 && (q->since == TARN_SNAPSHOT_NONE || q->since + 1 < horizon);
    return *out ? tarn_table__may_lie_below(q->table, &q->who, out) : TARN_OK;
}

/* An attempt of this process' life before, if there is one, is for the slot behind the head that was found at open. */
static bool may_still_land(const struct tarn_table *table)
{
    return !table->slot_filled && table->head->id <= table->opened_id;
}

/* *again: a slot was filled, so what was found may have changed. */
static struct tarn_status *find_fate(struct question *q, bool *again)
{
    struct tarn_table *table = q->table;
    struct refusal refusal;
    int64_t voided_ms;
    bool forgotten;
    *again = false;
    *q->out = (struct tarn_commit_fate){.state = TARN_COMMIT_NOT_COMMITTED};
    if (table->head == NULL) /* the index fell behind a snapshot that was just put */
        TARN_TRY(tarn_table__refresh(q->op, table));
    TARN_TRY(find_landed(q));
    if (q->out->state == TARN_COMMIT_LANDED)
        return doubt_compact(q);
    if (may_still_land(table)) {
        TARN_TRY(tarn_table__put_empty(table));
        *again = true;
        return TARN_OK;
    }
    TARN_TRY(find_voided(q, &voided_ms));
    TARN_TRY(find_refusal(q->op, table, &q->who, &refusal));
    if (refusal.found && refusal.time_ms >= voided_ms) {
        *q->out = (struct tarn_commit_fate){
            .state = TARN_COMMIT_REFUSED, .reason = refusal.reason, .message = refusal.message};
        return TARN_OK;
    }
    TARN_TRY(is_doubtful(q, &forgotten)); /* it landed once more behind the roll-back */
    if (!forgotten && q->out->state == TARN_COMMIT_ROLLED_BACK && q->out->append_snapshot_id != 0)
        return TARN_OK;
    if (!forgotten)
        TARN_TRY(find_forgotten(q, &forgotten)); /* of one part rolled back, the other may stand */
    if (forgotten) {
        q->out->state = TARN_COMMIT_NOT_KNOWN;
        q->out->append_snapshot_id = q->out->compact_snapshot_id = 0;
    }
    return TARN_OK;
}

static struct tarn_status *answer(struct question *q)
{
    struct tarn_table *table = q->table;
    TARN_TRY(tarn_table__check_here(table));
    *q->out = (struct tarn_commit_fate){.state = TARN_COMMIT_OPEN};
    if (is_queued(table, &q->who))
        return TARN_OK;
    struct tarn_status *s = tarn_table__settle(q->op, table);
    if (table->attempt.open && tarn_table__is_open(table, &q->who)) {
        tarn_status_free(s);
        return TARN_OK;
    }
    if (s != TARN_OK)
        return s;
    TARN_TRY(tarn_table__refresh(q->op, table));
    if (q->who.identifier == TARN_COMMIT_IDENTIFIER_BATCH && q->who.content == 0)
        TARN_TRY(tarn_table__last_batch(table, q->who.user, &q->who.content));
    bool again = true;
    for (int tries = 0; tries <= SETTLE_TRIES && again; tries++)
        TARN_TRY(find_fate(q, &again));
    return !again ? TARN_OK
                  : tarn_status_new(TARN_STORE_UNAVAILABLE,
                                    "table %s: it could not be settled whether identifier %" PRId64
                                    " of user %.*s can still land",
                                    tarn_table_name(table), q->who.identifier,
                                    TARN_SLICE_ARG(q->who.user));
}

static void run_question(void *arg)
{
    struct question *q = arg;
    q->status = answer(q);
}

struct tarn_status *tarn_table_find_commit(struct tarn_op *op, struct tarn_table *table,
                                           struct tarn_slice user, int64_t identifier,
                                           uint64_t content, int64_t since,
                                           struct tarn_commit_fate *out)
{
    bool batch = identifier == TARN_COMMIT_IDENTIFIER_BATCH;
    struct question q = {.op = op,
                         .table = table,
                         .who = {user, identifier, batch ? content : 0},
                         .since = since,
                         .out = out};
    tarn_mailbox_call(table->mailbox, run_question, &q);
    return q.status;
}

struct tarn_status *tarn_table_find_landed(struct tarn_table *table, struct tarn_slice user,
                                           int64_t identifier, int64_t *snapshot_id)
{
    struct tarn_commit_fate fate = {0};
    struct question q = {.table = table, .who = {user, identifier, 0}, .out = &fate};
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(find_landed(&q));
    *snapshot_id = fate.append_snapshot_id;
    return TARN_OK;
}

/* --- Paimon's rule --- */

struct filter {
    struct tarn_op *op;
    struct tarn_table *table;
    struct tarn_slice user;
    int64_t last;
    struct tarn_status *status;
};

static void run_filter(void *arg)
{
    struct filter *f = arg;
    f->status = tarn_table__check_here(f->table);
    if (f->status == TARN_OK)
        f->status = tarn_table__settle(f->op, f->table);
    if (f->status == TARN_OK)
        f->status = tarn_table__refresh(f->op, f->table);
    if (f->status == TARN_OK)
        f->status = tarn_table__last_identifier(f->table, f->user, &f->last);
}

struct tarn_status *tarn_table_filter_committed(struct tarn_op *op, struct tarn_table *table,
                                                struct tarn_slice user, const int64_t *identifiers,
                                                size_t count, bool *keep, int64_t *last_identifier)
{
    struct filter f = {.op = op, .table = table, .user = user};
    tarn_mailbox_call(table->mailbox, run_filter, &f);
    if (f.status != TARN_OK)
        return f.status;
    for (size_t i = 0; i < count; i++)
        keep[i] = f.last == TARN_SNAPSHOT_NONE || identifiers[i] > f.last;
    *last_identifier = f.last;
    return TARN_OK;
}
