#include "history.h"

#include <stdio.h>
#include <stdlib.h>

#include "table/expire.h"

/*
 * What clients do, what they are told, and whether it is so.
 *
 * An answer speaks of some moment between the begin and the end of its call; it is held against what was true
 * in between. A call whose process died has no answer.
 */

const char *reason_of(const struct tarn_status *s)
{
    return s == TARN_OK ? "OK" : tarn_reason_name(tarn_status_reason(s));
}

/* --- making requests --- */

static struct request *request_new(void)
{
    struct request *r = tarn_calloc(1, sizeof *r);
    r->number = (int)world->request_count;
    r->settled_seq = -1;
    r->commit = (struct tarn_commit){.watermark = TARN_SNAPSHOT_NONE,
                                     .base_snapshot_id = TARN_SNAPSHOT_NONE,
                                     .kind = TARN_COMMIT_APPEND};
    TARN_GROW(world->requests, world->request_count, world->request_capacity);
    world->requests[world->request_count++] = r;
    return r;
}

static void add_file(struct request *r, int part, int partition, int bucket, int level)
{
    files_add(&r->adds[part], file_new(r, part, partition, bucket, level));
    r->has_part[part] = true;
}

/* Entries as they are sent, in an arena that outlives every replay. */
static void finish_part(struct request *r, int part, struct tarn_commit_part *out)
{
    size_t count = r->adds[part].count + r->removes[part].count, n = 0;
    struct tarn_manifest_entry *entries =
        tarn_arena_calloc(world->op->arena, count + 1, sizeof *entries);
    for (size_t i = 0; i < r->removes[part].count; i++)
        entries[n++] = file_entry(r->removes[part].list[i], TARN_ENTRY_DELETE);
    for (size_t i = 0; i < r->adds[part].count; i++)
        entries[n++] = file_entry(r->adds[part].list[i], TARN_ENTRY_ADD);
    out->entries = entries;
    out->count = count;
    struct tarn_manifest_entry *changes =
        tarn_arena_calloc(world->op->arena, r->changes[part].count + 1, sizeof *changes);
    for (size_t i = 0; i < r->changes[part].count; i++)
        changes[i] = file_entry(r->changes[part].list[i], TARN_ENTRY_ADD);
    out->changelog = changes;
    out->changelog_count = r->changes[part].count;
    const struct index_file *index = r->index[part];
    struct tarn_index_file *indexes = tarn_arena_calloc(world->op->arena, 2, sizeof *indexes);
    if (index != NULL && r->names_index[part])
        indexes[out->index_count++] = index_entry(index->made_from, TARN_ENTRY_DELETE);
    if (index != NULL)
        indexes[out->index_count++] = index_entry(index, TARN_ENTRY_ADD);
    out->index = indexes;
}

/* One for each new file. An overwrite brings none: streams don't read it. */
static void add_changes(struct request *r)
{
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; !(part == 0 && is_overwrite(r)) && i < r->adds[part].count; i++)
            if (part == 0 || sim_chance(SIM_WORK, 500))
                files_add(&r->changes[part], changelog_file_new(r, part, r->adds[part].list[i]));
}

static void finish_request(struct request *r, const char *user, int64_t identifier)
{
    snprintf(r->user, sizeof r->user, "%s", user);
    r->identifier = identifier;
    r->streaming = identifier != TARN_COMMIT_IDENTIFIER_BATCH;
    r->commit.user = tarn_slice_str(r->user);
    r->commit.identifier = identifier;
    if (world->plan.changelog)
        add_changes(r);
    finish_part(r, 0, &r->commit.append);
    finish_part(r, 1, &r->commit.compact);
    if (sim_chance(SIM_WORK, 200))
        r->commit.watermark = sim_now_ms();
    r->content = r->streaming ? 0 : tarn_commit_content(&r->commit);
}

/* The live files of a bucket as this client sees them; false: it couldn't look. */
static bool look_at_bucket(struct life *life, int partition, int bucket, struct files *out)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    struct tarn_plan plan;
    struct tarn_status *s = tarn_table_plan(&op, life->table, &request, &plan);
    if (s != TARN_OK) {
        tarn_status_free(s);
        return false;
    }
    for (size_t i = 0; i < plan.file_count; i++) {
        struct file *file = file_find(plan.files[i].entry.file.name);
        if (file == NULL)
            broken("a plan names file %.*s, which nobody wrote",
                   TARN_SLICE_ARG(plan.files[i].entry.file.name));
        if (file->bucket == bucket && file->partition == partition)
            files_add(out, file);
    }
    return true;
}

/* The newest snapshot as this client sees it, *base NULL: none; false: it couldn't look. */
static bool look_at_newest(struct life *life, struct snap **base)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    struct tarn_plan plan;
    struct tarn_status *s = tarn_table_plan(&op, life->table, &request, &plan);
    bool seen = s == TARN_OK;
    *base =
        seen && plan.has_snapshot ? truth_find(plan.snapshot.id, plan.snapshot.delta_list) : NULL;
    tarn_status_free(s);
    return seen;
}

/* One part brings an index file of a bucket that it writes to, made from the one that is there. It says so by that one's name, by the
 * snapshot that it saw, or where it saw none, not at all. */
static void add_index(struct life *life, struct request *r)
{
    struct snap *base;
    int part = r->adds[1].count > 0 && sim_chance(SIM_WORK, 500);
    if (r->adds[part].count == 0 || sim_chance(SIM_WORK, 600) || !look_at_newest(life, &base))
        return;
    const struct file *of =
        r->adds[part].list[sim_between(SIM_WORK, 0, (int64_t)r->adds[part].count - 1)];
    struct index_file *index = index_file_new(r, part, of, base);
    r->index[part] = index;
    r->names_index[part] = index->made_from != NULL && sim_chance(SIM_WORK, 500);
    if (r->names_index[part] || (index->made_from == NULL && sim_chance(SIM_WORK, 500)))
        return;
    r->commit.base_snapshot_id = base == NULL ? 0 : base->id;
    if (base != NULL)
        r->commit.base_snapshot_proof = tarn_snapshot_proof(&base->s);
}

/* A later one of its stream has landed, and the daemon may have lost what tells of it: it couldn't refuse this one. */
static bool is_too_late(const char *user, int64_t identifier)
{
    for (size_t i = 0; i < world->request_count; i++) {
        const struct request *r = world->requests[i];
        if (r->streaming && strcmp(r->user, user) == 0 && r->identifier > identifier &&
            r->landing_count[0] + r->landing_count[1] > 0)
            return world->receipts_may_be_lost || world->history_has_gaps;
    }
    return false;
}

static bool is_used(const char *user, int64_t identifier)
{
    for (size_t i = 0; i < world->request_count; i++)
        if (world->requests[i]->identifier == identifier &&
            strcmp(world->requests[i]->user, user) == 0)
            return true;
    return false;
}

/* The stream's next one, with gaps; now and then one that was left out before. */
static int64_t draw_identifier(const char *user, int number)
{
    static int64_t next[16];
    next[number] += sim_between(SIM_WORK, 1, 3);
    if (sim_chance(SIM_WORK, 80))
        for (int64_t back = next[number] - 1; back > next[number] - 8 && back > 0; back--)
            if (!is_used(user, back) && !is_too_late(user, back))
                return back;
    return next[number];
}

/* Every second one stays in one partition. */
static int any_partition(int same)
{
    return sim_chance(SIM_WORK, 500) ? same
                                     : (int)sim_between(SIM_WORK, 0, world->plan.partitions - 1);
}

static void make_overwrite(struct request *r, int partition)
{
    r->commit.kind = TARN_COMMIT_OVERWRITE;
    r->commit.overwrite = TARN_OVERWRITE_TABLE;
    if (world->plan.partitions == 1 || sim_chance(SIM_WORK, 200))
        return;
    r->commit.overwrite =
        sim_chance(SIM_WORK, 500) ? TARN_OVERWRITE_DYNAMIC : TARN_OVERWRITE_PARTITIONS;
    if (r->commit.overwrite == TARN_OVERWRITE_DYNAMIC)
        return;
    struct tarn_slice *value = tarn_arena_calloc(world->op->arena, 1, sizeof *value);
    bool *is = tarn_arena_calloc(world->op->arena, 2, sizeof *is);
    struct tarn_partition_spec *spec = tarn_arena_calloc(world->op->arena, 1, sizeof *spec);
    *value = tarn_slice_str(tarn_arena_printf(world->op->arena, "%d", partition));
    is[0] = true;
    *spec = (struct tarn_partition_spec){.values = value, .is_set = is, .is_null = is + 1};
    r->partition = partition;
    r->commit.partitions = spec;
    r->commit.partition_count = 1;
    r->has_part[0] = true;
}

static struct request *make_request(struct life *life, int client)
{
    char user[24];
    bool streaming = sim_chance(SIM_WORK, 500);
    int64_t dice = sim_between(SIM_WORK, 0, 99);
    int partition = (int)sim_between(SIM_WORK, 0, world->plan.partitions - 1);
    struct files removes = {0};
    struct request *r;
    if (dice < 25) { /* compact, with an append part or alone */
        int bucket = (int)sim_between(SIM_WORK, 0, 1);
        if (look_at_bucket(life, partition, bucket, &removes) && removes.count > 0) {
            if (removes.count > 1 && sim_chance(SIM_WORK, 100)) /* levels may overlap: refused */
                files_remove(&removes, removes.list[0]);
        }
        r = request_new();
        if (dice < 12 || removes.count == 0)
            add_file(r, 0, any_partition(partition), (int)sim_between(SIM_WORK, 0, 1), 0);
        if (removes.count > 0) {
            r->removes[1] = removes;
            add_file(r, 1, partition, bucket, 5);
        }
    } else {
        r = request_new();
        if (dice < (world->plan.partitions > 1 ? 37 : 30) && world->plan.overwrites)
            make_overwrite(r, partition);
        bool one = r->commit.overwrite == TARN_OVERWRITE_PARTITIONS;
        bool drops = one && streaming && sim_chance(SIM_WORK, 400);
        for (int64_t n = drops ? 0 : sim_between(SIM_WORK, 1, 3); n > 0; n--)
            add_file(r, 0, one ? partition : any_partition(partition),
                     (int)sim_between(SIM_WORK, 0, 1), 0);
    }
    int number = streaming ? client % world->plan.users : client;
    snprintf(user, sizeof user, "%s%d", streaming ? "stream-" : "batch-", number);
    if (world->plan.index_type != NULL)
        add_index(life, r);
    finish_request(r, user,
                   streaming ? draw_identifier(user, number) : TARN_COMMIT_IDENTIFIER_BATCH);
    return r;
}

/* --- commits --- */

static struct snap *landing_of(const struct request *r, int part, int64_t id, int seq)
{
    for (int i = r->landing_count[part]; i-- > 0;) /* the newest of that id */
        if (r->landings[part][i]->id == id && r->landings[part][i]->created_seq < seq)
            return r->landings[part][i];
    return NULL;
}

/* The part's landing that is in the history all the time from `begin` to `end`; NULL: none. */
static struct snap *landed_throughout(const struct request *r, int part, int begin, int end)
{
    for (int i = 0; i < r->landing_count[part]; i++) {
        struct snap *snap = r->landings[part][i];
        if (snap->created_seq < begin && truth_survives(snap, end))
            return snap;
    }
    return NULL;
}

/* Others' doings may be noticed so much later. What was rolled back and put anew, and then expired, before anybody could
 * look is not to be told from what was there before. */
static bool may_seem_there(const struct snap *snap, int begin, int64_t begin_ms)
{
    return truth_survives(snap, begin) ||
           (world->history_has_gaps && snap->id <= world->expired_to) ||
           snap->removed_ms >= begin_ms - world->plan.foreign_check_ms;
}

static bool is_landed(const struct request *r, int part, int seq)
{
    return landed_throughout(r, part, seq, seq) != NULL;
}

/* Or may seem to have. */
static bool landed_within(const struct request *r, int part, int begin, int end, int64_t begin_ms)
{
    for (int i = 0; i < r->landing_count[part]; i++) {
        struct snap *snap = r->landings[part][i];
        if (snap->created_seq < end && may_seem_there(snap, begin, begin_ms))
            return true;
    }
    return false;
}

static void check_told_landed(struct request *r, int part, int64_t id, int begin, int end,
                              int64_t begin_ms)
{
    struct snap *snap = landing_of(r, part, id, end);
    if (snap == NULL)
        broken("request %d is told that its %s part is in snapshot %" PRId64 ", and it isn't",
               r->number, part == 0 ? "append" : "compact", id);
    if (!may_seem_there(snap, begin, begin_ms))
        broken("request %d is told that it is in snapshot %" PRId64
               ", which was rolled back before",
               r->number, id);
    snap->told = true;
    truth_seen(snap);
}

static bool is_final_refusal(enum tarn_reason reason)
{
    return reason == TARN_COMMIT_CONFLICT || reason == TARN_INDEX_STALE ||
           reason == TARN_COMMIT_IDENTIFIER_STALE;
}

/* Might some call of the request still land, or have landed? */
static bool is_in_doubt(const struct request *r)
{
    for (int i = 0; i < r->call_count; i++) {
        const struct call *c = &r->calls[i];
        if (c->end == HISTORY_NEVER || c->told == TOLD_UNKNOWN || c->told == TOLD_LANDED)
            return true;
    }
    return false;
}

static void check_refused(struct request *r, struct call *c)
{
    for (int part = 0; part < 2; part++) {
        if (!r->has_part[part] || c->ids[part] != 0)
            continue;
        struct snap *snap = landed_throughout(r, part, c->begin, c->end);
        if (part == 1 && r->has_part[0])
            continue; /* its append part decides; the compact part may be refused by what came after it */
        if (snap != NULL && is_final_refusal(c->reason) && !world->receipts_may_be_lost)
            broken("request %d is refused (%s) although it is in snapshot %" PRId64, r->number,
                   tarn_reason_name(c->reason), snap->id);
        if (!is_in_doubt(r) && is_landed(r, part, c->end))
            broken("request %d is told %s and nothing else, and has landed", r->number,
                   tarn_reason_name(c->reason));
    }
    if (is_final_refusal(c->reason) && r->running == 0) /* it speaks of this call alone */
        r->settled_seq = TARN_MAX(r->settled_seq, c->begin);
}

/* COMMIT_IDENTIFIER_STALE: a later identifier of this user has landed. */
static void check_stale(const struct request *r, const struct call *c)
{
    for (size_t i = 0; i < world->request_count; i++) {
        const struct request *other = world->requests[i];
        if (other->streaming && strcmp(other->user, r->user) == 0 &&
            other->identifier > r->identifier &&
            (landed_within(other, 0, c->begin, c->end, c->begin_ms) ||
             landed_within(other, 1, c->begin, c->end, c->begin_ms)))
            return;
    }
    broken("request %d is told that a later identifier of %s has landed, and none has", r->number,
           r->user);
}

static void judge(struct request *r, struct call *c, const struct tarn_commit_result *result,
                  enum tarn_reason reason)
{
    c->reason = reason;
    c->ids[0] = result->append_snapshot_id;
    c->ids[1] = result->compact_snapshot_id;
    c->told = reason == TARN_NO_REASON         ? TOLD_LANDED
              : reason == TARN_OUTCOME_UNKNOWN ? TOLD_UNKNOWN
              : c->ids[0] != 0                 ? TOLD_LANDED
                                               : TOLD_REFUSED;
    world->answers[c->told]++;
    for (int part = 0; part < 2; part++) {
        if (!r->has_part[part]) {
            if (c->ids[part] != 0 && reason == TARN_NO_REASON)
                broken("request %d has no such part, and it is told to be in snapshot %" PRId64,
                       r->number, c->ids[part]);
        } else if (c->ids[part] != 0) {
            check_told_landed(r, part, c->ids[part], c->begin, c->end, c->begin_ms);
        } else if (reason == TARN_NO_REASON) {
            broken("request %d is told that it has landed, and not where", r->number);
        }
    }
    if (c->told == TOLD_REFUSED)
        check_refused(r, c);
    if (reason == TARN_COMMIT_IDENTIFIER_STALE && !world->receipts_may_be_lost)
        check_stale(r, c);
    if (reason == TARN_INTERNAL)
        broken("request %d meets a fault of Tarn's own", r->number);
}

static void commit(struct life *life, struct request *r)
{
    if (r->call_count == CALLS_MAX)
        return;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct call *c = &r->calls[r->call_count++];
    struct tarn_commit_result result;
    *c = (struct call){.life = life->number, .end = HISTORY_NEVER, .begin_ms = sim_now_ms()};
    c->begin = note("request %d: commit (%s, %" PRId64 ")%s%s%s", r->number, r->user,
                    r->streaming ? r->identifier : -1, r->has_part[0] ? " append" : "",
                    r->commit.overwrite != TARN_OVERWRITE_NONE ? " overwrite" : "",
                    r->has_part[1] ? " compact" : "");
    r->running++;
    struct tarn_commit commit = r->commit;
    commit.check_files = false;
    struct tarn_status *s = tarn_table_commit(&op, life->table, &commit, &result);
    r->running--;
    if (life->dead) { /* nobody hears this */
        note("request %d: no answer", r->number);
    } else {
        c->end_ms = sim_now_ms();
        c->end = note("request %d: %s in %" PRId64 ", %" PRId64 "%s %s", r->number, reason_of(s),
                      result.append_snapshot_id, result.compact_snapshot_id,
                      s == TARN_OK && result.repeated ? " (repeated)" : "",
                      s == TARN_OK ? "" : tarn_status_message(s));
        judge(r, c, &result, tarn_status_reason(s));
    }
    tarn_status_free(s);
}

/* --- what became of it? --- */

/* It landed, or a later one of its stream, and nothing is left that tells of it: sent again, it would land again, or behind it. */
static bool is_forgotten(const struct request *r)
{
    if (r->streaming && is_too_late(r->user, r->identifier))
        return true;
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < r->landing_count[part]; i++)
            if (truth_expired(r->landings[part][i]) &&
                (world->receipts_may_be_lost || world->history_has_gaps))
                return true;
    return false;
}

static const char *const state_names[] = {"landed",      "refused",   "open",
                                          "rolled back", "not known", "not committed"};

static bool is_running(const struct request *r, int begin)
{
    if (r->running > 0)
        return true;
    for (int i = 0; i < r->call_count; i++)
        if (r->calls[i].end > begin)
            return true;
    return false;
}

/* "Not committed": it isn't in the history, and won't be unless it is sent again. */
static void check_not_committed(struct request *r, int begin, int end)
{
    for (int part = 0; part < 2; part++) {
        struct snap *snap = landed_throughout(r, part, begin, end);
        if (snap != NULL)
            broken("request %d is told \"not committed\" and is in snapshot %" PRId64, r->number,
                   snap->id);
    }
    bool sent_meanwhile = is_running(r, begin);
    if (!sent_meanwhile && (is_landed(r, 0, end) || is_landed(r, 1, end)))
        broken("request %d is told \"not committed\" and has landed", r->number);
    if (!sent_meanwhile)
        r->settled_seq = TARN_MAX(r->settled_seq, begin);
}

static bool was_rolled_back(const struct request *r, int end)
{
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < r->landing_count[part]; i++)
            if (r->landings[part][i]->created_seq < end &&
                !truth_survives(r->landings[part][i], end))
                return true;
    return false;
}

static void check_fate(struct request *r, const struct tarn_commit_fate *fate, int begin, int end,
                       int64_t begin_ms)
{
    int64_t ids[] = {fate->append_snapshot_id, fate->compact_snapshot_id};
    bool landed =
        landed_throughout(r, 0, begin, end) != NULL || landed_throughout(r, 1, begin, end) != NULL;
    switch (fate->state) {
    case TARN_COMMIT_LANDED:
        if (ids[0] == 0 && ids[1] == 0)
            broken("request %d has landed in no snapshot", r->number);
        for (int part = 0; part < 2; part++) {
            if (ids[part] != 0)
                check_told_landed(r, part, ids[part], begin, end, begin_ms);
            else if (landed_throughout(r, part, begin, end) != NULL &&
                     !world->receipts_may_be_lost &&
                     (part == 1 || !world->history_has_gaps)) /* it went before the compact part */
                broken("request %d: its %s part has landed too", r->number,
                       part == 0 ? "append" : "compact");
        }
        break;
    case TARN_COMMIT_REFUSED:
        if (is_forgotten(r))
            break; /* the call that was refused didn't know either */
        check_not_committed(r, begin, end);
        break;
    case TARN_COMMIT_NOT_COMMITTED:
        check_not_committed(r, begin, end);
        break;
    case TARN_COMMIT_ROLLED_BACK:
        if (!was_rolled_back(r, end))
            broken("request %d is told that it was rolled back", r->number);
        if (landed_throughout(r, 0, begin, end) != NULL)
            broken("request %d is told that it was rolled back and is in the history", r->number);
        break;
    case TARN_COMMIT_OPEN:
        if (!is_in_doubt(r) && !is_running(r, begin))
            broken("request %d is told to be open, and no call of it is", r->number);
        break;
    case TARN_COMMIT_NOT_KNOWN:
        if (!world->receipts_may_be_lost && !world->history_has_gaps)
            broken("request %d is not known any more, and no receipt was lost", r->number);
        if (landed && fate->horizon_snapshot_id <= 1)
            broken("request %d is not known, with all history known", r->number);
        break;
    }
}

/* False: the answer was an error, or nobody heard it. */
static bool ask(struct life *life, struct request *r, enum tarn_commit_state *state)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_commit_fate fate = {0};
    int64_t begin_ms = sim_now_ms();
    int begin = note("request %d: what became of it?", r->number);
    struct tarn_status *s = tarn_table_find_commit(&op, life->table, r->commit.user, r->identifier,
                                                   r->content, TARN_SNAPSHOT_NONE, &fate);
    if (life->dead) {
        tarn_status_free(s);
        return false;
    }
    int end = note("request %d: %s, %" PRId64 ", %" PRId64 " (from %" PRId64 ") %s", r->number,
                   s == TARN_OK ? state_names[fate.state] : reason_of(s), fate.append_snapshot_id,
                   fate.compact_snapshot_id, fate.horizon_snapshot_id,
                   s == TARN_OK ? "" : tarn_status_message(s));
    if (s != TARN_OK) {
        tarn_status_free(s);
        return false;
    }
    *state = fate.state;
    world->fates[fate.state]++;
    check_fate(r, &fate, begin, end, begin_ms);
    return true;
}

/* --- which identifiers of a user have landed? --- */

static int64_t last_identifier(const char *user, int begin, int end, bool surely, int64_t begin_ms)
{
    int64_t last = TARN_SNAPSHOT_NONE;
    for (size_t i = 0; i < world->request_count; i++) {
        const struct request *r = world->requests[i];
        if (!r->streaming || strcmp(r->user, user) != 0)
            continue;
        for (int part = 0; part < 2; part++)
            if (surely ? landed_throughout(r, part, begin, end) != NULL
                       : landed_within(r, part, begin, end, begin_ms))
                last = TARN_MAX(last, r->identifier);
    }
    return last;
}

static void filter(struct life *life, int client)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    int64_t identifiers[40], last = TARN_SNAPSHOT_NONE;
    bool keep[40];
    char user[24];
    snprintf(user, sizeof user, "stream-%d", client % world->plan.users);
    for (int i = 0; i < 40; i++)
        identifiers[i] = i * 3 + 1;
    int64_t begin_ms = sim_now_ms();
    int begin = note("which identifiers of %s have landed?", user);
    struct tarn_status *s = tarn_table_filter_committed(&op, life->table, tarn_slice_str(user),
                                                        identifiers, 40, keep, &last);
    if (!life->dead && s == TARN_OK) {
        int end = note("those of %s up to %" PRId64, user, last);
        int64_t low = last_identifier(user, begin, end, true, begin_ms);
        int64_t high = last_identifier(user, begin, end, false, begin_ms);
        if (last > high || (last < low && !world->receipts_may_be_lost && !world->history_has_gaps))
            broken("the last identifier of %s is told to be %" PRId64 ", it is %" PRId64
                   " to %" PRId64,
                   user, last, low, high);
        for (int i = 0; i < 40; i++)
            if (keep[i] != (identifiers[i] > last))
                broken("identifier %" PRId64 " of %s, whose last one is %" PRId64 ", is %s",
                       identifiers[i], user, last, keep[i] ? "kept" : "left out");
    }
    tarn_status_free(s);
}

/* --- plans --- */

/* Every second one asks for one partition. -1: all. */
static int draw_where(struct tarn_plan_request *request)
{
    if (world->plan.partitions == 1 || sim_chance(SIM_WORK, 500))
        return -1;
    int partition = (int)sim_between(SIM_WORK, 0, world->plan.partitions - 1);
    request->where = tarn_slice_str(tarn_arena_printf(world->op->arena, "p = %d", partition));
    return partition;
}

static size_t count_of(const struct files *files, int partition)
{
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++)
        count += partition < 0 || files->list[i]->partition == partition;
    return count;
}

static void check_plan(const struct tarn_plan *plan, int partition, struct snap **out)
{
    *out = NULL;
    if (!plan->has_snapshot) {
        if (plan->file_count > 0)
            broken("a plan of no snapshot has files");
        return;
    }
    struct snap *snap = truth_find(plan->snapshot.id, plan->snapshot.delta_list);
    if (snap == NULL)
        broken("a plan is of a snapshot %" PRId64 " that never was", plan->snapshot.id);
    struct files files = {0};
    for (size_t i = 0; i < plan->file_count; i++) {
        struct file *file = file_find(plan->files[i].entry.file.name);
        if (file == NULL || files_have(&files, file))
            broken("a plan has file %.*s, twice or out of nothing",
                   TARN_SLICE_ARG(plan->files[i].entry.file.name));
        files_add(&files, file);
        if (!files_have(&snap->live, file))
            broken("the plan of snapshot %" PRId64 " has %s, which isn't in it", snap->id,
                   file->name);
        if (partition >= 0 && file->partition != partition)
            broken("a plan of partition %d has %s, of %d", partition, file->name, file->partition);
    }
    size_t want = count_of(&snap->live, partition);
    if (files.count != want)
        broken("the plan of snapshot %" PRId64 " has %zu files and not %zu", snap->id, files.count,
               want);
    free(files.list);
    truth_seen(snap);
    *out = snap;
}

/* Everything that this life acknowledged before is in what it plans. */
static void check_sees_own(const struct life *life, const struct snap *snap, int begin)
{
    for (size_t i = 0; i < world->request_count; i++) {
        const struct request *r = world->requests[i];
        for (int c = 0; c < r->call_count; c++) {
            const struct call *call = &r->calls[c];
            if (call->life != life->number || call->told != TOLD_LANDED || call->end > begin)
                continue;
            for (int part = 0; part < 2; part++) {
                const struct snap *own = /* of that id there may be another by now */
                    call->ids[part] == 0 ? NULL : landing_of(r, part, call->ids[part], call->end);
                if (own != NULL && truth_survives(own, world->seq) &&
                    (snap == NULL || own->id > snap->id))
                    broken("a plan is of snapshot %" PRId64 ", %" PRId64
                           " was acknowledged before it began",
                           snap == NULL ? 0 : snap->id, own->id);
            }
        }
    }
}

static void plan_latest(struct life *life)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST,
                                        .no_splits = sim_chance(SIM_WORK, 500)};
    int partition = draw_where(&request);
    struct tarn_plan plan = {0};
    int64_t begin_ms = sim_now_ms();
    int begin = note("plan");
    struct tarn_status *s = tarn_table_plan(&op, life->table, &request, &plan);
    if (!life->dead && s == TARN_OK) {
        int end = note("planned snapshot %" PRId64, plan.has_snapshot ? plan.snapshot.id : 0);
        struct snap *snap;
        check_plan(&plan, partition, &snap);
        if (!truth_was_latest(snap, begin_ms - world->plan.foreign_check_ms, end))
            broken("a plan of the latest snapshot is of %" PRId64 ", which isn't",
                   snap == NULL ? 0 : snap->id);
        check_sees_own(life, snap, begin);
    } else if (s != TARN_OK) {
        note("plan: %s", tarn_status_message(s));
        if (world->calm && !life->dead)
            broken("a plan fails: %s", tarn_status_message(s));
    }
    tarn_status_free(s);
}

static void plan_older(struct life *life)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct snap *latest = truth_latest();
    if (latest == NULL)
        return;
    int64_t id = sim_between(SIM_WORK, TARN_MAX(latest->id - 12, (int64_t)1), latest->id);
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(id), .no_splits = true};
    int partition = draw_where(&request);
    struct tarn_plan plan = {0};
    struct snap *there = world->at[id];
    int64_t begin_ms = sim_now_ms();
    int begin = note("plan of snapshot %" PRId64, id);
    struct tarn_status *s = tarn_table_plan(&op, life->table, &request, &plan);
    if (!life->dead && s == TARN_OK) {
        struct snap *snap;
        note("planned snapshot %" PRId64, plan.snapshot.id);
        check_plan(&plan, partition, &snap);
        if (snap == NULL || snap->id != id)
            broken("a plan of snapshot %" PRId64 " is of %" PRId64, id,
                   snap == NULL ? 0 : snap->id);
        if (!truth_survives(snap, begin) &&
            snap->removed_ms < begin_ms - world->plan.foreign_check_ms)
            broken("a plan is of snapshot %" PRId64 ", which was rolled back before", id);
    } else if (s != TARN_OK) {
        note("plan: %s", tarn_status_message(s));
        if (world->calm && !life->dead && there != NULL && world->at[id] == there &&
            id >= truth_earliest_id())
            broken("a plan of snapshot %" PRId64 " fails: %s", id, tarn_status_message(s));
    }
    tarn_status_free(s);
}

/* --- expiries --- */

/* In calm: nothing is left but what is to be kept. */
static void check_expired(const struct tarn_expiry *out, const struct tarn_status *s)
{
    const struct snap *latest = truth_latest();
    int64_t want =
        latest == NULL ? 0 : TARN_MAX(latest->id - world->plan.keep_last + 1, world->hinted);
    if (s != TARN_OK)
        broken("an expiry fails: %s", tarn_status_message(s));
    /* The oldest go first; what others left below a gap nobody looks for. */
    if (want > 1 && !out->is_held && world->at[want - 1] != NULL && !world->at[want - 1]->floating)
        broken("snapshot %" PRId64 " is left by an expiry that keeps %" PRId64 " of %" PRId64
               " (%s)",
               want - 1, world->plan.keep_last, latest->id, out->kept_by);
}

static void expire(struct life *life)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    const struct tarn_expire_request request = {.keep_last = world->plan.keep_last,
                                                .older_than_ms = TARN_EXPIRE_OPTION,
                                                .keep_from = INT64_MAX};
    struct tarn_expiry out = {0};
    bool calm = world->calm;
    note("expires all but %" PRId64, request.keep_last);
    world->expiring++;
    struct tarn_status *s = tarn_table_expire(&op, life->table, &request, &out);
    world->expiring--;
    note("expired %" PRId64 " to %" PRId64 ": %s %s", out.from, out.to, reason_of(s),
         s == TARN_OK ? "" : tarn_status_message(s));
    world->expiries += s == TARN_OK && !life->dead && out.to > out.from;
    if (calm && !life->dead)
        check_expired(&out, s);
    tarn_status_free(s);
}

void expirer_main(void)
{
    for (int n = (int)sim_between(SIM_WORK, 1, 30); world->plan.keep_last > 0 && n > 0; n--) {
        sim_sleep_ms(sim_between(SIM_WORK, 0, sim_chance(SIM_WORK, 500) ? 500 : 10000));
        struct life *life = life_enter_or_leave(&world->calm);
        if (life != NULL && !world->calm && sim_now_ms() >= world->hold_until_ms)
            expire(life); /* else somebody rewrites the past */
        if (life != NULL)
            life_leave(life);
    }
}

/* --- a client --- */

static struct request *any_request(void)
{
    if (world->request_count == 0)
        return NULL;
    int64_t count = (int64_t)world->request_count;
    int64_t low = sim_chance(SIM_WORK, 700) ? TARN_MAX(count - 12, (int64_t)0) : 0;
    struct request *r = world->requests[sim_between(SIM_WORK, low, count - 1)];
    return r->user[0] == '\0' ? NULL : r;
}

static void step(struct life *life, int client)
{
    int64_t dice = sim_between(SIM_WORK, 0, 99);
    struct request *r = any_request();
    enum tarn_commit_state state;
    if (dice < 55 || r == NULL)
        commit(life, make_request(life, client));
    else if (dice < 72 && !is_forgotten(r))
        commit(life, r);
    else if (dice < 82)
        ask(life, r, &state);
    else if (dice < 87)
        filter(life, client);
    else if (dice < 95)
        plan_latest(life);
    else
        plan_older(life);
}

void client_main(int number)
{
    for (int i = 0; i < world->plan.operations; i++) {
        struct life *life = life_enter();
        step(life, number);
        life_leave(life);
        if (sim_chance(SIM_WORK, 500))
            sim_sleep_ms(sim_between(SIM_WORK, 0, sim_chance(SIM_WORK, 100) ? 20000 : 200));
    }
}

/* --- the end --- */

void settle_all(void)
{
    for (size_t i = 0; i < world->request_count; i++) {
        enum tarn_commit_state state = TARN_COMMIT_OPEN;
        for (int tries = 0; state == TARN_COMMIT_OPEN; tries++) {
            struct life *life = life_enter();
            bool answered = ask(life, world->requests[i], &state);
            life_leave(life);
            if (tries > 20)
                broken("request %zu stays %s", i, answered ? "open" : "without an answer");
        }
        if (sim_chance(SIM_WORK, 250) && !is_forgotten(world->requests[i])) {
            struct life *life = life_enter();
            commit(life, world->requests[i]);
            life_leave(life);
        }
    }
    struct life *life = life_enter();
    plan_latest(life);
    while (world->expiring > 0)
        sim_sleep_ms(100);
    if (world->plan.keep_last > 0)
        expire(life);
    for (int i = 0; i < 10; i++)
        plan_older(life);
    life_leave(life);
}
