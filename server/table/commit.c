#include "table/commit_internal.h"

#include <time.h>

/*
 * The commit, as README.md tells it. Requests wait in the table's queue; one loop in the table's mailbox makes groups of
 * them (group.c) and each group a snapshot. While snapshot N is being put by a thread of the pool, the manifests of N+1 are
 * written on top of it; puts go one after the other.
 *
 *   queued --take--> group --nothing flies: check--> writing --------------> flying --land--> landed --announce--> answered
 *                      |                               |   ^                   |
 *                      +--on a guess, on what flies----+   |                   +-> taken: adopt, back to the queue
 *                                                      +---+ check: without    +-> unknown: kept open until settled
 *                                                            those refused
 */

/* How long a group that would be written beside a flight waits for those just answered: they often come again, and who
 * comes too late waits for two flights. A part of a flight, which over a network is long. */
#define LINGER_NS_MIN 1000000
#define LINGER_PARTS 4
#define WAIT_SLICE_NS 5000000

/* What is on its way. At most one group is in each stage. */
struct pipeline {
    struct tarn_table *table;
    struct tarn_group
        *writing; /* its manifests are being written, on top of the head or of what flies */
    struct tarn_group *flying; /* its snapshot is being put */
    struct tarn_group *landed; /* its snapshot was made, its callers don't know yet */
    size_t held_count; /* requests in the queue that all wait for what flies; 0: not known */
};

static void announce_landed(struct pipeline *p)
{
    if (p->landed != NULL)
        tarn_table__announce(tarn_move(p->landed));
}

/* --- ends that are no snapshot --- */

/* Nobody may be to blame but one: then each goes alone, and the others land. Nothing is left when they are told. */
static void fail(struct tarn_group *group, struct tarn_status *consumed)
{
    tarn_table__unprepare(group);
    if (group->count > 1 && tarn_table__is_refusal(consumed)) {
        for (size_t i = 0; i < group->count; i++)
            group->members[i]->alone = true;
        tarn_status_free(consumed);
        tarn_table__requeue(group);
    } else {
        if (group->count == 1)
            tarn_table__refused(&group->op, group->table, group->members[0]->request, consumed);
        tarn_table__answer_all(group, consumed);
    }
    tarn_table__group_free(group);
}

/* Another writer has the slot: its snapshot is adopted, and the members try again on top of it. */
static void give_way(struct tarn_group *group)
{
    struct tarn_table *table = group->table;
    if (group->put.unknown)
        tarn_table__late_keep(table, &group->put, TARN_LATE_ALWAYS);
    tarn_table__unprepare(group);
    struct tarn_status *s = tarn_table__refresh(&group->op, table);
    if (s != TARN_OK) { /* the next use looks again, and tells */
        tarn_log_status(&group->op, TARN_WARN, "commit.look_failed", s);
        tarn_head_free(table->head);
        table->head = NULL;
    }
    size_t kept = 0;
    for (size_t i = 0; i < group->count; i++) {
        struct tarn_member *m = group->members[i];
        if (m->tries++ < table->env->commit_retries)
            group->members[kept++] = m;
        else
            tarn_table__answer(table, m,
                               tarn_status_new(TARN_SNAPSHOT_TAKEN,
                                               "other writers took the next snapshot of table %s "
                                               "%d times",
                                               tarn_table_name(table), m->tries),
                               0, false);
    }
    group->count = kept;
    tarn_table__requeue(group);
    tarn_table__group_free(group);
}

/* --- the stages --- */

/* Where nothing flies: the table is there, no attempt is open, the head is known. */
static struct tarn_status *stand(struct tarn_group *group)
{
    struct tarn_table *table = group->table;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_table__settle(&group->op, table));
    return table->head != NULL ? TARN_OK : tarn_table__refresh(&group->op, table);
}

/* On the head: checked first, since all of the past is in the index. */
static void write_on_head(struct pipeline *p, struct tarn_group *group)
{
    struct tarn_table *table = group->table;
    struct tarn_status *s = stand(group);
    if (s != TARN_OK) {
        fail(group, s);
        return;
    }
    bool changed;
    tarn_table__check_group(group, &changed);
    if (group->count == 0) {
        tarn_table__group_free(group);
        return;
    }
    s = tarn_table__prepare(group, table->head);
    if (s != TARN_OK) {
        fail(group, s);
        return;
    }
    group->checked = true;
    p->writing = group;
    announce_landed(p); /* this may take a while */
    tarn_table__write(group, tarn_store_is_remote(table->env->store) ? table->head : NULL);
}

/* The entries of an overwrite are found in the index, which has to have all of the past. */
static bool knows_its_entries(const struct tarn_group *group)
{
    if (group->members[0]->request->commit->finished != NULL) /* it fits one head only */
        return false;
    return group->members[0]->request->commit->overwrite == TARN_OVERWRITE_NONE ||
           group->kind == TARN_COMMIT_COMPACT;
}

/* On top of what flies, on a guess that nobody will be refused. */
static void write_on_flying(struct pipeline *p, struct tarn_group *group)
{
    struct tarn_status *s = tarn_table__prepare(group, p->flying->next);
    if (s != TARN_OK) { /* where it fails again without a guess, it is told */
        tarn_status_free(s);
        tarn_table__unprepare(group);
        group->write_done = true;
        p->writing = group;
        return;
    }
    p->writing = group;
    tarn_metric_add(TARN_M_COMMITS_PIPELINED, NULL, 1);
    tarn_table__start_write(group);
}

static bool was_made(const struct tarn_group *flown)
{
    return flown->put.status == TARN_OK && flown->put.claim == TARN_CLAIM_MADE;
}

/* What stands on something that wasn't made goes back, behind the members of that. */
static void call_back(struct pipeline *p)
{
    struct tarn_group *group = tarn_move(p->writing);
    if (group == NULL)
        return;
    tarn_table__wait(group, &group->write_done);
    tarn_status_free(tarn_move(group->write_status));
    tarn_table__unprepare(group);
    tarn_table__requeue(group);
    tarn_table__group_free(group);
}

/* One committer alone never comes while its snapshot is put: nothing is won by a second thread, which has to be woken and to
 * wake this one. Over a network a put takes so long that somebody may come. */
static bool is_alone(struct tarn_table *table, const struct tarn_group *group)
{
    pthread_mutex_lock(&table->lock);
    bool alone = group->count == 1 && table->queue_first == NULL;
    pthread_mutex_unlock(&table->lock);
    return alone && !tarn_store_is_remote(table->env->store);
}

/* The put is done. */
static void land(struct pipeline *p)
{
    struct tarn_group *flown = tarn_move(p->flying);
    p->held_count = 0;
    tarn_table__wait(flown, &flown->put_done);
    p->table->put_took_ms = tarn_clock_mono_ms() - p->table->put_begun_ms;
    p->table->put_alone = is_alone(p->table, flown);
    if (was_made(flown)) { /* I1: visible from here on */
        if (flown->put.unknown)
            tarn_table__late_keep(p->table, &flown->put, TARN_LATE_IF_UNDONE);
        tarn_table__advance(flown);
        p->landed = flown;
        if (p->writing !=
            NULL) /* I3: our own put, since its attempt began; some time after it began */
            p->writing->ground_seen_ms = flown->put.begun_ms;
        return;
    }
    call_back(p);
    if (flown->put.status != TARN_OK)
        fail(flown, tarn_move(flown->put.status));
    else if (flown->put.claim == TARN_CLAIM_TAKEN)
        give_way(flown);
    else
        tarn_table__keep_open(flown); /* I2 */
}

/* The manifests are written and nothing flies: checked now if it was a guess, its snapshot is put. */
static void launch(struct pipeline *p)
{
    struct tarn_group *group = tarn_move(p->writing);
    struct tarn_table *table = group->table;
    struct tarn_status *s = tarn_move(group->write_status);
    bool right = s == TARN_OK && group->next != NULL && table->head != NULL;
    if (s != TARN_OK && group->checked) {
        fail(group, s);
        return;
    }
    tarn_status_free(s);
    if (right && !group->checked) {
        bool changed;
        tarn_table__check_group(group, &changed);
        right = !changed;
    }
    if (right && tarn_xxh64(table->head->json, 0) == group->ground_hash) { /* I8 */
        tarn_table__start_put(group, table->head, table->put_alone && is_alone(table, group));
        p->flying = group;
        return;
    }
    tarn_table__unprepare(group);
    if (group->count == 0)
        tarn_table__group_free(group);
    else
        write_on_head(p, group);
}

static void begin(struct pipeline *p, struct tarn_group *group)
{
    if (p->flying != NULL && knows_its_entries(group)) {
        write_on_flying(p, group);
        return;
    }
    if (p->flying != NULL) {
        land(p);
        announce_landed(p);
    }
    write_on_head(p, group);
}

/* --- the loop --- */

enum turn { TURN_GROUP, TURN_LAND, TURN_LAUNCH, TURN_LEAVE, TURN_WAIT };

/* Until the next group may be taken; 0: now. */
static int64_t group_wait_ns(const struct pipeline *p)
{
    struct tarn_table *table = p->table;
    int64_t spaced_ms = 0;
    if (table->env->min_interval_ms > 0)
        spaced_ms = table->put_begun_ms + table->env->min_interval_ms - tarn_clock_mono_ms();
    if (spaced_ms > 0)
        return spaced_ms * 1000000;
    if (p->flying == NULL || table->queue_count >= table->answered_count)
        return 0;
    int64_t linger_ns =
        TARN_MAX(table->put_took_ms * 1000000 / LINGER_PARTS, (int64_t)LINGER_NS_MIN);
    return TARN_MAX(table->answered_ns + linger_ns - tarn_clock_mono_ns(), (int64_t)0);
}

/* Under the lock: is it the turn of somebody who isn't in the queue? Then the others wait. */
static bool waits_for_another(const struct tarn_table *table, int64_t *left_ms)
{
    *left_ms = tarn_table__turn_left_ms(table);
    for (const struct tarn_member *m = table->queue_first; *left_ms > 0 && m != NULL; m = m->next)
        if (m->request->commit->finished != NULL)
            return false;
    return *left_ms > 0;
}

/* Under the lock. TURN_WAIT: for news, at most *wait_ns; so many requests in the queue are news. */
static enum turn next_turn(const struct pipeline *p, int64_t *wait_ns)
{
    struct tarn_table *table = p->table;
    table->wanted_count = SIZE_MAX;
    bool others = tarn_mailbox_count(table->mailbox) > 0;
    bool wants = table->queue_first != NULL && !others && table->queue_count != p->held_count;
    *wait_ns = WAIT_SLICE_NS; /* others may come to the mailbox without news */
    if (p->flying != NULL && p->flying->put_done)
        return TURN_LAND;
    if (p->flying == NULL && p->writing != NULL && p->writing->write_done)
        return TURN_LAUNCH;
    if (p->flying == NULL && p->writing == NULL && !wants)
        return TURN_LEAVE;
    if (p->writing != NULL)
        return TURN_WAIT;
    table->wanted_count = table->queue_count + 1;
    int64_t left_ms;
    bool waits = wants && waits_for_another(table, &left_ms);
    if (waits)
        *wait_ns = TARN_MIN(*wait_ns, left_ms * 1000000);
    if (!wants || waits)
        return TURN_WAIT;
    int64_t ns = group_wait_ns(p);
    if (table->env->min_interval_ms == 0)
        table->wanted_count = table->answered_count;
    *wait_ns = TARN_MIN(*wait_ns, ns);
    return ns > 0 ? TURN_WAIT : TURN_GROUP;
}

/* Under the lock. */
static void wait_for_news(struct tarn_table *table, int64_t wait_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    tarn_exec_wait_begin();
    pthread_cond_timedwait(&table->news, &table->lock, &until);
    tarn_exec_wait_end();
}

static enum turn wait_for_turn(struct pipeline *p)
{
    struct tarn_table *table = p->table;
    int64_t wait_ns;
    enum turn turn;
    pthread_mutex_lock(&table->lock);
    while ((turn = next_turn(p, &wait_ns)) == TURN_WAIT)
        wait_for_news(table, wait_ns);
    if (turn == TURN_LEAVE) /* if there is more, the loop is posted again, behind those who wait */
        table->loop_runs = table->queue_first != NULL;
    bool again = table->loop_runs;
    pthread_mutex_unlock(&table->lock);
    if (turn == TURN_LEAVE && again)
        tarn_mailbox_post(table->mailbox, tarn_table__run_commits, table);
    return turn;
}

static bool is_written(const struct tarn_group *group)
{
    pthread_mutex_lock(&group->table->lock);
    bool done = group->write_done;
    pthread_mutex_unlock(&group->table->lock);
    return done;
}

static void next_group(struct pipeline *p)
{
    size_t left;
    struct tarn_group *group = tarn_table__take_group(p->table, p->flying, &left);
    if (group != NULL)
        begin(p, group);
    else
        p->held_count = p->flying != NULL ? left : 0;
}

void tarn_table__run_commits(void *arg)
{
    struct pipeline p = {.table = arg};
    for (;;) {
        switch (wait_for_turn(&p)) {
        case TURN_LAND:
            land(&p);
            /* Its callers wait for the next put to begin, if that is soon. */
            if (p.writing == NULL || !is_written(p.writing))
                announce_landed(&p);
            break;
        case TURN_LAUNCH:
            launch(&p);
            announce_landed(&p);
            break;
        case TURN_GROUP:
            next_group(&p);
            break;
        default:
            return;
        }
    }
}

/* --- a snapshot of nothing --- */

static struct tarn_status *unsettled(const struct tarn_table *table)
{
    return tarn_status_new(TARN_STORE_UNAVAILABLE,
                           "table %s: the store does not say whether its next snapshot was made",
                           tarn_table_name(table));
}

struct tarn_status *tarn_table__put_empty(struct tarn_table *table)
{
    struct tarn_group *group = tarn_table__group_new(table, TARN_COMMIT_COMPACT);
    struct pipeline p = {.table = table};
    struct tarn_status *s = stand(group);
    if (s == TARN_OK)
        s = tarn_table__prepare(group, table->head);
    if (s != TARN_OK) {
        tarn_table__unprepare(group);
        tarn_table__group_free(group);
        return s;
    }
    tarn_table__write(group, NULL);
    s = tarn_move(group->write_status);
    if (s != TARN_OK) {
        tarn_table__unprepare(group);
        tarn_table__group_free(group);
        return s;
    }
    tarn_table__start_put(group, table->head, false);
    p.flying = group;
    tarn_table__wait(group, &group->put_done);
    s = tarn_status_copy(group->put.status);
    land(&p);
    announce_landed(&p);
    return s != TARN_OK || !table->attempt.open ? s : unsettled(table);
}
