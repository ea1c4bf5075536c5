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

/* The put is done. */
static void land(struct pipeline *p)
{
    struct tarn_group *flown = tarn_move(p->flying);
    p->held_count = 0;
    tarn_table__wait(flown, &flown->put_done);
    p->table->put_took_ms = tarn_clock_mono_ms() - p->table->put_begun_ms;
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
        tarn_table__start_put(group, table->head);
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
    if (!wants)
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

static void run_commits(void *arg);

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
        tarn_mailbox_post(table->mailbox, run_commits, table);
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
    struct tarn_table *table = p->table;
    struct tarn_group *group = tarn_table__take_group(table, p->flying);
    if (group != NULL) {
        begin(p, group);
        return;
    }
    pthread_mutex_lock(&table->lock);
    p->held_count = p->flying != NULL ? table->queue_count : 0;
    pthread_mutex_unlock(&table->lock);
}

static void run_commits(void *arg)
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
    tarn_table__start_put(group, table->head);
    p.flying = group;
    tarn_table__wait(group, &group->put_done);
    s = tarn_status_copy(group->put.status);
    land(&p);
    announce_landed(&p);
    return s != TARN_OK || !table->attempt.open ? s : unsettled(table);
}

/* --- the door --- */

static struct tarn_status *invalid_file(const struct tarn_data_file *f, const char *what)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT, "file %.*s %s", TARN_SLICE_ARG(f->name), what);
}

/* What no table could take: told before it is queued, so that it disturbs nobody. */
static struct tarn_status *check_entry(const struct tarn_table *table,
                                       const struct tarn_manifest_entry *e)
{
    const struct tarn_data_file *f = &e->file;
    if (f->name.size == 0 || memchr(f->name.data, '/', f->name.size) != NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%.*s\" is no name of a data file",
                               TARN_SLICE_ARG(f->name));
    if (f->row_count < 0 || f->size < 0 || f->level < 0)
        return invalid_file(f, "has a negative size, row count or level");
    if (f->schema_id < 0)
        return invalid_file(f, "was written under a schema with a negative id");
    if (f->unknown)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s: the record of file %.*s has fields that this version of "
                               "Tarn does not know and would lose",
                               tarn_table_name(table), TARN_SLICE_ARG(f->name));
    if (e->total_buckets > 0 && e->bucket >= e->total_buckets)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "file %.*s is of bucket %d of %d",
                               TARN_SLICE_ARG(f->name), e->bucket, e->total_buckets);
    return TARN_OK;
}

static struct tarn_status *check_part(const struct tarn_table *table,
                                      const struct tarn_commit_part *part, bool twice_is_fine)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    for (size_t i = 0; i < part->count; i++) {
        TARN_TRY(check_entry(table, &part->entries[i]));
        tarn_buf_clear(&identity);
        tarn_manifest_identity(&part->entries[i], &identity);
        if (tarn_map_set(seen, tarn_buf_slice(&identity), seen) != NULL && !twice_is_fine)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "the commit names file %.*s twice",
                                   TARN_SLICE_ARG(part->entries[i].file.name));
    }
    for (size_t i = 0; i < part->changelog_count; i++) {
        TARN_TRY(check_entry(table, &part->changelog[i]));
        if (part->changelog[i].kind != TARN_ENTRY_ADD)
            return invalid_file(&part->changelog[i].file, "is deleted from a changelog");
    }
    return TARN_OK;
}

static struct tarn_status *check_request(const struct tarn_table *table,
                                         const struct tarn_commit *commit, bool discard)
{
    size_t count = tarn_commit_entry_count(commit);
    if (count > TARN_COMMIT_ENTRIES_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "a commit of %zu files; at most %d", count,
                               TARN_COMMIT_ENTRIES_MAX);
    if (commit->user.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a commit needs a user");
    if (tarn_slice_is(commit->user, TARN_COMMIT_OWN_USER))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "commit user \"" TARN_COMMIT_OWN_USER "\" is the daemon's own");
    if (commit->overwrite != TARN_OVERWRITE_NONE && commit->kind != TARN_COMMIT_OVERWRITE)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "an overwrite is of kind OVERWRITE, not %s",
                               tarn_commit_kind_name(commit->kind));
    for (size_t i = 0; i < commit->property_count; i++)
        if (tarn_slice_is(commit->properties[i].key, TARN_RECEIPTS_PROPERTY))
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "property " TARN_RECEIPTS_PROPERTY " is the daemon's own");
    TARN_TRY(check_part(table, &commit->append, discard));
    return check_part(table, &commit->compact, false);
}

/* Files of one part that are not where they should be. */
static struct tarn_status *check_files(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_table_view *view,
                                       const struct tarn_commit_part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        const struct tarn_manifest_entry *e = &part->entries[i];
        if (e->kind != TARN_ENTRY_ADD || e->file.external_path.data != NULL)
            continue;
        TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
        TARN_TRY(tarn_bucket_path(&view->schema, &view->options, e->partition, e->bucket, &path));
        bool found;
        const char *key = tarn_table__key(op, table, "%s/%.*s", tarn_buf_cstr(&path),
                                          TARN_SLICE_ARG(e->file.name));
        TARN_TRY(tarn_store_stat(table->env->store, op, key, &found, NULL));
        if (!found)
            return tarn_status_new(TARN_FILE_MISSING, "%s is not there", key);
    }
    return TARN_OK;
}

/* On the caller's thread: many callers look at the same time, and the table waits for none of them. Told only where
 * the request hasn't landed already: then its files may be compacted away by now. */
static struct tarn_status *find_missing(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_table_view *view,
                                        const struct tarn_commit *commit)
{
    if (!commit->check_files)
        return TARN_OK;
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_TRY(check_files(op, table, view, &commit->append));
    return check_files(op, table, view, &commit->compact);
}

static bool part_is_empty(const struct tarn_commit_part *part)
{
    return part->count + part->changelog_count + part->index_count == 0;
}

/* Paimon's rule: an append of nothing makes no snapshot unless it is asked for, nor does a dynamic overwrite; a static
 * one empties what it names. */
static bool has_append(const struct tarn_commit *commit, const struct tarn_table_view *view)
{
    if (!part_is_empty(&commit->append) || commit->kind == TARN_COMMIT_ANALYZE)
        return true;
    switch (commit->overwrite) {
    case TARN_OVERWRITE_NONE:
        return commit->force_empty;
    case TARN_OVERWRITE_DYNAMIC:
        return commit->force_empty || view->schema.partition_key_count == 0;
    default:
        return true;
    }
}

/* An append that takes something away is an OVERWRITE to those who read streams (docs/format.md, "Snapshots"). */
enum tarn_commit_kind tarn_commit_append_kind(const struct tarn_commit *commit)
{
    const struct tarn_commit_part *part = &commit->append;
    if (commit->kind != TARN_COMMIT_APPEND)
        return commit->kind;
    for (size_t i = 0; i < part->count; i++)
        if (part->entries[i].kind == TARN_ENTRY_DELETE)
            return TARN_COMMIT_OVERWRITE;
    for (size_t i = 0; i < part->index_count; i++)
        if (tarn_slice_is(part->index[i].type, TARN_INDEX_DELETION_VECTORS))
            return TARN_COMMIT_OVERWRITE;
    return TARN_COMMIT_APPEND;
}

static bool is_nameless(const struct tarn_commit *commit)
{
    return commit->identifier == TARN_COMMIT_IDENTIFIER_BATCH && part_is_empty(&commit->append) &&
           part_is_empty(&commit->compact) && commit->statistics.data == NULL;
}

/* BUSY: so many wait that one table, whose store may be away, would take all of the server's calls. */
static struct tarn_status *enqueue(struct tarn_table *table, struct tarn_request *r)
{
    struct tarn_member *m = r->has_append ? &r->append : &r->compact;
    pthread_mutex_lock(&table->lock);
    if (table->queue_count >= TARN_COMMIT_QUEUE_MAX) {
        pthread_mutex_unlock(&table->lock);
        return tarn_status_new(TARN_BUSY, "%d commits wait for table %s already",
                               TARN_COMMIT_QUEUE_MAX, table->name);
    }
    *table->queue_last = m;
    table->queue_last = &m->next;
    bool runs = table->loop_runs;
    table->loop_runs = true;
    if (++table->queue_count >= table->wanted_count)
        pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock);
    if (!runs)
        tarn_mailbox_post(table->mailbox, run_commits, table);
    return TARN_OK;
}

static void fill_request(struct tarn_request *r)
{
    const struct tarn_commit *commit = r->commit;
    bool batch = commit->identifier == TARN_COMMIT_IDENTIFIER_BATCH;
    r->content = batch ? tarn_commit_content(commit) : 0;
    r->nameless = is_nameless(commit);
    r->append = (struct tarn_member){
        .request = r, .kind = tarn_commit_append_kind(commit), .part = &commit->append};
    r->compact =
        (struct tarn_member){.request = r, .kind = TARN_COMMIT_COMPACT, .part = &commit->compact};
}

static struct tarn_status *queue_commit(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_commit *commit, struct tarn_request *r)
{
    TARN_TRY(tarn_table__check_here(table));
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table__view_ref(table);
    bool discard = commit->kind == TARN_COMMIT_APPEND && view->options.discard_duplicate_files;
    TARN_TRY(check_request(table, commit, discard));
    r->has_append = has_append(commit, view);
    r->has_compact = !part_is_empty(&commit->compact);
    fill_request(r);
    if (!r->has_append && !r->has_compact) {
        r->done(r->done_arg, TARN_OK);
        return TARN_OK;
    }
    r->missing = find_missing(op, table, view, commit);
    struct tarn_status *missing = r->missing, *refused = enqueue(table, r);
    if (refused != TARN_OK)
        tarn_status_free(missing);
    return refused; /* where it is OK, the request may be gone */
}

void tarn_table_commit_start(struct tarn_op *op, struct tarn_table *table,
                             const struct tarn_commit *commit, struct tarn_commit_result *out,
                             tarn_commit_done_fn done, void *arg)
{
    memset(out, 0, sizeof *out);
    struct tarn_request *r = tarn_arena_calloc(op->arena, 1, sizeof *r);
    *r = (struct tarn_request){
        .op = op, .commit = commit, .result = out, .done = done, .done_arg = arg};
    struct tarn_status *s = queue_commit(op, table, commit, r);
    if (s != TARN_OK)
        done(arg, s);
}

struct waiting {
    struct tarn_gate *gate;
    struct tarn_status *status;
};

static void stop_waiting(void *arg, struct tarn_status *status)
{
    struct waiting *w = arg;
    w->status = status;
    tarn_gate_open(w->gate);
}

struct tarn_status *tarn_table_commit(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_commit *commit,
                                      struct tarn_commit_result *out)
{
    struct waiting w = {.gate = tarn_gate_new()};
    tarn_table_commit_start(op, table, commit, out, stop_waiting, &w);
    /* Not given up while the mailbox has it: its own deadline ends it in the queue. */
    tarn_gate_wait(w.gate, NULL);
    tarn_gate_free(w.gate);
    return w.status;
}

/* --- without a put --- */

struct check_job {
    struct tarn_request request;
    struct tarn_table *table;
    struct tarn_status *status;
};

static struct tarn_status *check(struct check_job *job)
{
    struct tarn_table *table = job->table;
    TARN_TRY(tarn_table__check_here(table));
    if (table->head == NULL || !tarn_table__looked_lately(table))
        TARN_TRY(tarn_table__refresh(job->request.op, table));
    struct tarn_group *group = tarn_table__group_new(table, job->request.append.kind);
    group->members[group->count++] = &job->request.append;
    struct tarn_status *s = tarn_table__judge_one(group);
    tarn_table__group_free(group);
    return s;
}

static void run_check(void *arg)
{
    struct check_job *job = arg;
    job->status = check(job);
}

struct tarn_status *tarn_table_check_commit(struct tarn_op *op, struct tarn_table *table,
                                            const struct tarn_commit *commit)
{
    struct tarn_commit_result result = {0};
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table__view_ref(table);
    struct check_job job = {.request = {.op = op, .commit = commit, .result = &result},
                            .table = table};
    bool discard = commit->kind == TARN_COMMIT_APPEND && view->options.discard_duplicate_files;
    TARN_TRY(check_request(table, commit, discard));
    fill_request(&job.request);
    job.request.missing = find_missing(op, table, view, commit);
    tarn_mailbox_call(table->mailbox, run_check, &job);
    tarn_status_free(job.request.missing);
    return job.status;
}
