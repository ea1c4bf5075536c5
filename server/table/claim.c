#include "table/commit_internal.h"

#include <time.h>

/*
 * The claim: step 6. A snapshot is put if absent on top of a ground (snapshot N-1) that was seen since the attempt began.
 *
 *   ground seen lately? --no--> look --gone--> TAKEN
 *        |                       |
 *        +--------- put until known ----exists----> read back: ours? MADE : TAKEN
 *                     |      |
 *                  created   time is over -> UNKNOWN: kept open, settled before anything else is put (I5)
 *                     |
 *            took long? look again --gone--> taken back, unless another stands on it
 */

static const char *snapshot_key(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    return tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, id);
}

struct tarn_status *tarn_table__lies_there(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                           struct tarn_slice json, bool *found, bool *same)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    *same = false;
    TARN_TRY(tarn_store_find(table->env->store, op, snapshot_key(op, table, id), found, &bytes));
    *same = *found && tarn_slice_equal(tarn_buf_slice(&bytes), json);
    return TARN_OK;
}

struct tarn_status *tarn_table__check_ground(struct tarn_op *op, struct tarn_table *table,
                                             int64_t ground_id, struct tarn_slice ground_json,
                                             bool *stands)
{
    if (ground_id == 0) { /* nothing: slot 1 may have been used, and have expired */
        struct tarn_range range;
        TARN_TRY(tarn_table__find_range(op, table, &range));
        *stands = range.latest == 0;
        return TARN_OK;
    }
    bool found, late = false;
    TARN_TRY(tarn_table__lies_there(op, table, ground_id, ground_json, &found, stands));
    if (*stands) /* it was rolled back, and one more put of it has come since */
        TARN_TRY(tarn_table__is_late(op, table, ground_id, ground_json, &late));
    *stands = *stands && !late;
    return TARN_OK;
}

/* Is what lies at N the bytes of this attempt? */
static struct tarn_status *read_back(struct tarn_op *op, const struct tarn_put *put, bool *found,
                                     bool *ours)
{
    return tarn_table__lies_there(op, put->table, put->id, put->json, found, ours);
}

/* Failures that the store promises to have come before any effect. Whatever else a put fails with may have
 * come after it. */
static bool is_definite(const struct tarn_status *s)
{
    switch (tarn_status_reason(s)) {
    case TARN_STORE_DENIED:
    case TARN_DISK_FULL:
    case TARN_PATH_INVALID:
    case TARN_OBJECT_NOT_FOUND: /* the folder is gone */
        return true;
    default:
        return false;
    }
}

static void pause_ms(int64_t ms)
{
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* Puts the same bytes until the store says created or exists, or TARN_SETTLE_MS is over. Absent proves nothing (I4).
 * fresh: nothing was put for this attempt before, so a failure before any effect is a failure. */
static struct tarn_status *put_until_known(struct tarn_op *op, struct tarn_put *put, bool fresh)
{
    int64_t give_up = tarn_clock_mono_ms() + TARN_SETTLE_MS;
    const char *key = snapshot_key(op, put->table, put->id);
    for (int64_t wait = 10;; wait = TARN_MIN(wait * 2, (int64_t)1000)) {
        bool created, found = false, ours = false;
        if (fresh)
            put->begun_ms = tarn_clock_mono_ms();
        struct tarn_status *s =
            tarn_store_put_if_absent(put->table->env->store, op, key, put->json, &created);
        if (s == TARN_OK && created) {
            put->claim = TARN_CLAIM_MADE;
            return TARN_OK;
        }
        if (s != TARN_OK && fresh && is_definite(s))
            return s;
        fresh = false; /* a later failure says nothing about this one */
        put->unknown = true;
        tarn_log_status(op, TARN_WARN, "commit.put_unknown", s);
        s = read_back(op, put, &found, &ours);
        if (s == TARN_OK && found) {
            put->claim = ours ? TARN_CLAIM_MADE : TARN_CLAIM_TAKEN;
            return TARN_OK;
        }
        tarn_status_free(s);
        if (tarn_clock_mono_ms() >= give_up) {
            put->claim = TARN_CLAIM_UNKNOWN;
            return TARN_OK;
        }
        pause_ms(wait);
    }
}

/* Does snapshot `above` stand on ours, or was it there before: of a history whose N is gone? */
struct tarn_status *tarn_table__is_followed(struct tarn_op *op, const struct tarn_put *put,
                                            int64_t above, bool *out)
{
    struct tarn_snapshot next;
    struct tarn_slice json;
    bool found;
    *out = false;
    TARN_TRY(tarn_table__read_snapshot(op, put->table, above, op->arena, &found, &json, &next));
    if (!found)
        return TARN_OK;
    if (put->base_of_next.data == NULL) { /* ours names no manifest to know it by */
        *out = above == put->id + 1 && next.time_ms >= put->time_ms;
        return TARN_OK;
    }
    struct tarn_manifest_file *base;
    size_t count;
    TARN_TRY(
        tarn_table__read_list(op, put->table, &next, TARN_LIST_BASE, op->arena, &base, &count));
    for (size_t i = 0; i < count && !*out; i++)
        *out = tarn_slice_equal(base[i].name, put->base_of_next);
    return TARN_OK;
}

/* Is what it names still there? Not where the folder was made again: then it isn't this table's any more. Nor where it had landed
 * and others rolled it back: with its manifests went its data files. */
struct tarn_status *tarn_table__has_manifests(struct tarn_op *op, const struct tarn_put *put,
                                              bool *out)
{
    struct tarn_snapshot snapshot;
    TARN_TRY(tarn_snapshot_decode(put->json, op->arena, &snapshot));
    return tarn_store_stat(
        put->table->env->store, op,
        tarn_table__key(op, put->table, "manifest/%.*s", TARN_SLICE_ARG(snapshot.base_list)), out,
        NULL);
}

/* N isn't there, and snapshots above it are: it was used, and has expired. By ours, if what is left stands on that; a merge
 * of manifests may hide it. What is put there now would be a stranger below the history. */
static struct tarn_status *judge_past(struct tarn_op *op, struct tarn_put *put, int64_t above)
{
    bool followed;
    TARN_TRY(tarn_table__is_followed(op, put, above, &followed));
    put->claim = followed ? TARN_CLAIM_MADE : TARN_CLAIM_PAST;
    put->expired = true;
    return TARN_OK;
}

struct tarn_status *tarn_table__take_back(struct tarn_op *op, struct tarn_put *put)
{
    struct tarn_table *table = put->table;
    bool found, ours, followed;
    TARN_TRY(read_back(op, put, &found, &ours));
    if (!ours)
        return TARN_OK;
    TARN_TRY(tarn_table__is_followed(op, put, put->id + 1, &followed));
    if (followed)
        return TARN_OK;
    TARN_TRY(tarn_store_remove(table->env->store, op, snapshot_key(op, table, put->id)));
    put->taken_back = true;
    tarn_log(op, TARN_WARN, "commit.taken_back", "table=%s snapshot=%" PRId64,
             tarn_log_quote(op, tarn_table_name(table)), put->id);
    return TARN_OK;
}

/* The put took long: N-1 may have been rolled back, or N used by others and expired away. Nobody was told of N yet, so
 * it is taken back, unless another writer already stands on it. A roll-back leaves snapshots below N, others' history
 * some above it; where N is the only one, N-1 has expired because N was there. */
static struct tarn_status *look_back(struct tarn_op *op, struct tarn_put *put)
{
    struct tarn_table *table = put->table;
    bool stands = false, found, ours;
    int64_t below, above;
    if (put->ground_id != 0)
        TARN_TRY(tarn_table__check_ground(op, table, put->ground_id, put->ground_json, &stands));
    if (stands) /* so it does, unless it was rolled back itself, and put again */
        TARN_TRY(tarn_table__has_manifests(op, put, &stands));
    if (stands)
        return TARN_OK;
    TARN_TRY(tarn_table__find_neighbours(op, table, put->id, &below, &above));
    if (below == 0 &&
        above == 0) /* the only one: what it stood on has expired, or there never was any */
        TARN_TRY(tarn_table__has_manifests(op, put, &stands));
    if (stands)
        return TARN_OK;
    TARN_TRY(read_back(op, put, &found, &ours));
    if (!found && above != 0)
        return judge_past(op, put, above);
    if (!ours) { /* who took the ground away took it, too, and may have put another there */
        put->claim = TARN_CLAIM_TAKEN;
        put->taken_back = true;
        return TARN_OK;
    }
    TARN_TRY(tarn_table__take_back(op, put));
    if (put->taken_back)
        put->claim = TARN_CLAIM_TAKEN;
    return TARN_OK;
}

static bool seen_lately(const struct tarn_put *put)
{
    return tarn_clock_mono_ms() - put->ground_seen_ms <= TARN_CLAIM_AGE_MAX_MS;
}

/* Before the same bytes are put again: is slot N still the next one, and are they still worth it? *over: it is decided. */
static struct tarn_status *look_before(struct tarn_op *op, struct tarn_put *put, bool *over)
{
    bool found, ours, whole;
    int64_t below, above;
    *over = false;
    TARN_TRY(read_back(op, put, &found, &ours));
    if (found)
        return TARN_OK;
    TARN_TRY(tarn_table__find_neighbours(op, put->table, put->id, &below, &above));
    TARN_TRY(tarn_table__has_manifests(op, put, &whole));
    *over = above != 0 || !whole;
    if (above != 0)
        return judge_past(op, put, above);
    put->claim = TARN_CLAIM_TAKEN; /* by us, and then by a roll-back, if it isn't whole */
    put->taken_back = !whole;
    return TARN_OK;
}

static struct tarn_status *claim(struct tarn_op *op, struct tarn_put *put, bool fresh)
{
    bool over = false;
    if (fresh && !seen_lately(put)) { /* I3 */
        int64_t begun = tarn_clock_mono_ms();
        bool stands;
        TARN_TRY(
            tarn_table__check_ground(op, put->table, put->ground_id, put->ground_json, &stands));
        put->ground_seen_ms = begun;
        put->claim = TARN_CLAIM_TAKEN;
        if (!stands)
            return TARN_OK;
    }
    if (!fresh) {
        struct tarn_status *unseen = look_before(op, put, &over);
        if (unseen != TARN_OK) {
            tarn_log_status(op, TARN_WARN, "commit.put_unknown", unseen);
            put->claim = TARN_CLAIM_UNKNOWN;
        }
        if (unseen != TARN_OK || over)
            return TARN_OK;
    }
    TARN_TRY(put_until_known(op, put, fresh));
    if (put->claim != TARN_CLAIM_MADE || (fresh && seen_lately(put)))
        return TARN_OK;
    struct tarn_status *s = look_back(op, put);
    if (s != TARN_OK) {
        tarn_log_status(op, TARN_ERROR, "commit.look_back_failed", s);
        put->claim = TARN_CLAIM_UNKNOWN;
    }
    return TARN_OK;
}

/* --- on a thread of the pool, or in the mailbox --- */

static void run_put(void *arg)
{
    struct tarn_group *group = arg;
    struct tarn_table *table = group->table;
    TARN_OWN(tarn_op_fini) struct tarn_op op; /* the group's own is the mailbox's */
    tarn_op_init(&op);
    memcpy(op.request_id, group->op.request_id, sizeof op.request_id);
    tarn_exec_wait_begin();
    group->put.status = claim(&op, &group->put, true);
    tarn_exec_wait_end();
    pthread_mutex_lock(&table->lock);
    group->put_done = true;
    pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock); /* from here on the group may be gone */
}

void tarn_table__start_put(struct tarn_group *group, const struct tarn_head *ground, bool here)
{
    struct tarn_put *put = &group->put;
    put->table = group->table;
    put->id = group->next->id;
    put->json = group->next->json;
    put->ground_id = ground->id;
    put->ground_json = tarn_arena_copy(group->op.arena, ground->json);
    put->time_ms = group->next->snapshot.time_ms;
    put->ground_seen_ms = group->ground_seen_ms;
    put->status = TARN_OK;
    group->put_done = false;
    group->table->put_begun_ms = tarn_clock_mono_ms();
    tarn_table__late_note(group->table, put, false);
    if (here)
        run_put(group);
    else
        tarn_exec_post(group->table->env->exec, run_put, group);
}

/* --- unknown --- */

static struct tarn_status *unknown_status(const struct tarn_group *group,
                                          const struct tarn_request *r)
{
    return tarn_status_new(TARN_OUTCOME_UNKNOWN,
                           "the store did not say whether snapshot %" PRId64
                           " of table %s was made: ask for user %.*s, identifier %" PRId64,
                           group->put.id, tarn_table_name(group->table),
                           TARN_SLICE_ARG(r->commit->user), r->commit->identifier);
}

void tarn_table__keep_open(struct tarn_group *group)
{
    struct tarn_table *table = group->table;
    tarn_assert(!table->attempt.open); /* I5 */
    group->open_identities =
        tarn_arena_calloc(group->op.arena, group->count + 1, sizeof *group->open_identities);
    group->open_count = group->count;
    group->open_content = tarn_table__delta_content(&group->delta);
    for (size_t i = 0; i < group->count; i++) {
        const struct tarn_request *r = group->members[i]->request;
        group->open_identities[i] = (struct tarn_identity){
            tarn_arena_copy(group->op.arena, r->commit->user), r->commit->identifier, r->content};
    }
    table->attempt = (struct tarn_attempt){true, group};
    tarn_table__late_keep(table, &group->put, TARN_LATE_OPEN);
    for (size_t i = 0; i < group->open_count; i++)
        tarn_table__answer(table, group->members[i],
                           unknown_status(group, group->members[i]->request), 0, false);
    group->count = 0;
}

bool tarn_table__is_open(const struct tarn_table *table, const struct tarn_identity *who)
{
    const struct tarn_group *open = table->attempt.group;
    for (size_t i = 0; open != NULL && i < open->open_count; i++) {
        const struct tarn_identity *o = &open->open_identities[i];
        if (o->identifier == who->identifier && tarn_slice_equal(o->user, who->user) &&
            (who->content == 0 || o->content == who->content))
            return true;
    }
    return false;
}

/* Its id was used. If by another, a put that is still under way may arrive below their history, and nobody shall take it for
 * a part of that: it can't be read without its lists. Manifests stay: if it was ours, others stand on them. */
static void remove_lists(struct tarn_op *op, struct tarn_group *open)
{
    const struct tarn_slice lists[] = {open->next->snapshot.base_list,
                                       open->next->snapshot.delta_list};
    for (size_t i = 0; i < TARN_COUNT_OF(lists); i++)
        tarn_log_status(op, TARN_WARN, "table.left_behind",
                        tarn_store_remove(open->table->env->store, op,
                                          tarn_table__key(op, open->table, "manifest/%.*s",
                                                          TARN_SLICE_ARG(lists[i]))));
}

struct tarn_status *tarn_table__settle(struct tarn_op *op, struct tarn_table *table)
{
    struct tarn_group *open = table->attempt.group;
    if (!table->attempt.open)
        return TARN_OK;
    tarn_exec_wait_begin();
    struct tarn_status *s = claim(op, &open->put, false);
    tarn_exec_wait_end();
    if (s != TARN_OK)
        return s;
    if (open->put.claim == TARN_CLAIM_UNKNOWN)
        return tarn_status_new(
            TARN_STORE_UNAVAILABLE,
            "table %s takes no commit before the store says what became of snapshot %" PRId64,
            tarn_table_name(table), open->put.id);
    bool landed = open->put.claim == TARN_CLAIM_MADE, past = open->put.claim == TARN_CLAIM_PAST;
    tarn_log(op, TARN_WARN, "commit.settled", "table=%s snapshot=%" PRId64 " landed=%d",
             tarn_log_quote(op, tarn_table_name(table)), open->put.id, landed);
    table->attempt = (struct tarn_attempt){false, NULL};
    if ((landed || past) && open->merge_used) /* who knows what names what it wrote */
        tarn_table__merge_settle(op, table, true);
    open->merge_used = open->merge_used && !landed && !past;
    tarn_table__late_settle(table, landed);
    if (past && !open->is_finished) /* else they aren't ours to remove */
        remove_lists(op, open);
    else if (!landed)
        tarn_table__unprepare(open);
    s = tarn_table__refresh(op, table);
    if (s == TARN_OK && landed && open->put.expired) /* the folder doesn't say it any more */
        s = tarn_table__receipts_note(table, &open->next->snapshot, open->open_content);
    tarn_table__group_free(open);
    return s;
}

void tarn_table__attempt_free(struct tarn_table *table)
{
    tarn_table__group_free(table->attempt.group);
    table->attempt = (struct tarn_attempt){false, NULL};
}
