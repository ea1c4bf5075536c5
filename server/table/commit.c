#include "table/internal.h"

#include <time.h>

/*
 * The commit, as README.md tells it. Requests wait in the table's queue; the mailbox takes a group from its
 * front (one commit, today), and makes it one snapshot, or two where it has an append and a compact part.
 *
 *   queued -> [check_group] -> checked -> [write_manifests] -> written -> [claim_snapshot] -> claimed -> published
 *                 |                                                |          |
 *                 +-> answered: repeated, refused                  |          +-> unknown: kept open until settled
 *                                                                  +-> taken: adopt, back to check_group
 */

struct tarn_pending_commit {
    struct tarn_pending_commit *next;
    struct tarn_op *op; /* the caller's, asked whether it still wants this; it waits at `done` */
    const struct tarn_commit *commit;
    struct tarn_commit_result *result;
    struct tarn_status *status; /* set by the mailbox, consumed by the caller */
    struct tarn_gate *done;
};

/* One part of a commit on its way to be a snapshot. */
struct part {
    const struct tarn_commit *commit;
    enum tarn_commit_kind kind;
    struct tarn_manifest_entry *entries; /* a copy: may be thinned out */
    size_t count;
    struct tarn_snapshot snapshot;
    struct tarn_buf json;
    struct tarn_manifest_file *manifests; /* base ++ delta of the new snapshot */
    size_t manifest_count;
    struct tarn_objects objects;
    struct tarn_arena *arena; /* of the new head */
};

static void part_fini(struct part *part)
{
    tarn_buf_drop(&part->json);
    tarn_arena_free(part->arena);
}

/* --- step 2: seen before? --- */

static struct tarn_status *check_seen(struct tarn_table *table, const struct tarn_commit *commit,
                                      enum tarn_commit_kind kind, int64_t *snapshot_id)
{
    *snapshot_id = 0;
    if (commit->identifier == TARN_COMMIT_IDENTIFIER_BATCH)
        return TARN_OK;
    int64_t last;
    TARN_TRY(tarn_table__receipt_find(table, commit->user, commit->identifier, 0, kind,
                                      snapshot_id));
    TARN_TRY(tarn_table__last_identifier(table, commit->user, &last));
    if (*snapshot_id == 0 && last != TARN_SNAPSHOT_NONE && commit->identifier < last)
        return tarn_status_new(TARN_COMMIT_IDENTIFIER_STALE,
                               "identifier %" PRId64
                               " of user %.*s never landed in table %s, but %" PRId64 " has",
                               commit->identifier, TARN_SLICE_ARG(commit->user), table->name, last);
    return TARN_OK;
}

/* --- step 5: manifests and the snapshot's text --- */

static int64_t record_delta(const struct part *part)
{
    int64_t sum = 0;
    for (size_t i = 0; i < part->count; i++)
        sum += part->entries[i].kind == TARN_ENTRY_ADD ? part->entries[i].file.row_count
                                                       : -part->entries[i].file.row_count;
    return sum;
}

/* Statistics are of the schema they were made under; a later schema drops them. */
static struct tarn_slice inherited_statistics(const struct tarn_table *table)
{
    const struct tarn_snapshot *last = &table->head->snapshot;
    bool fit = table->head->id != 0 && last->schema_id == table->view->view.schema.id;
    return fit ? last->statistics : tarn_slice_str(NULL);
}

static void fill_snapshot(struct tarn_op *op, struct tarn_table *table, struct part *part)
{
    const struct tarn_head *head = table->head;
    const struct tarn_snapshot *last = &head->snapshot;
    struct tarn_snapshot *s = &part->snapshot;
    int64_t total = head->id == 0 || last->total_record_count == TARN_SNAPSHOT_NONE
                        ? 0
                        : last->total_record_count;
    char uuid[TARN_UUID_SIZE];
    tarn_uuid_random(uuid);
    s->version = 3;
    s->uuid = tarn_arena_copy(op->arena, tarn_slice_str(uuid));
    s->id = head->id + 1;
    s->schema_id = table->view->view.schema.id;
    s->index_manifest = head->id == 0 ? tarn_slice_str(NULL) : last->index_manifest;
    s->commit_user = part->commit->user;
    s->writer_version = tarn_slice_str("tarn-" TARN_VERSION);
    s->commit_identifier = part->commit->identifier;
    s->kind = part->kind;
    s->time_ms = tarn_clock_wall_ms();
    s->delta_record_count = record_delta(part);
    s->total_record_count = total + s->delta_record_count;
    s->changelog_record_count = TARN_SNAPSHOT_NONE;
    s->changelog_list_size = TARN_SNAPSHOT_NONE;
    s->watermark = head->id == 0 ? TARN_SNAPSHOT_NONE : last->watermark;
    if (part->commit->watermark != TARN_SNAPSHOT_NONE)
        s->watermark = TARN_MAX(s->watermark, part->commit->watermark);
    s->properties = part->commit->properties;
    s->property_count = part->commit->property_count;
    s->next_row_id =
        head->id == 0 || last->next_row_id == TARN_SNAPSHOT_NONE ? 0 : last->next_row_id;
    s->statistics = inherited_statistics(table);
}

static struct tarn_status *write_manifests(struct tarn_op *op, struct tarn_table *table,
                                           struct part *part)
{
    struct tarn_manifest_file *base, *delta;
    size_t base_count, delta_count;
    TARN_TRY(tarn_table__head_manifests(op, table, table->head));
    fill_snapshot(op, table, part);
    TARN_TRY(tarn_table__merge_base(op, table, table->head, &base, &base_count, &part->objects));
    TARN_TRY(tarn_table__encode_list(op, table, base, base_count, &part->snapshot.base_list,
                                     &part->snapshot.base_list_size, &part->objects));
    TARN_TRY(tarn_table__encode_manifests(op, table, part->entries, part->count, &delta,
                                          &delta_count, &part->objects));
    TARN_TRY(tarn_table__encode_list(op, table, delta, delta_count, &part->snapshot.delta_list,
                                     &part->snapshot.delta_list_size, &part->objects));
    part->manifest_count = base_count + delta_count;
    part->manifests =
        tarn_arena_calloc(op->arena, part->manifest_count + 1, sizeof *part->manifests);
    if (base_count > 0)
        memcpy(part->manifests, base, base_count * sizeof *base);
    if (delta_count > 0)
        memcpy(part->manifests + base_count, delta, delta_count * sizeof *delta);
    tarn_snapshot_encode(&part->snapshot, &part->json);
    return tarn_table__put_objects(op, table, &part->objects);
}

/* --- step 6: the claim --- */

enum claim { CLAIM_MADE, CLAIM_TAKEN, CLAIM_UNKNOWN };

static const char *snapshot_key(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    return tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, id);
}

/* Does snapshot N-1 exist, and is it the one this attempt stands on? (I3) */
static struct tarn_status *check_ground(struct tarn_op *op, struct tarn_table *table, bool *stands)
{
    *stands = true;
    if (table->head->id == 0)
        return TARN_OK;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    bool found;
    TARN_TRY(tarn_store_find(table->env->store, op, snapshot_key(op, table, table->head->id),
                             &found, &bytes));
    *stands = found && tarn_slice_equal(tarn_buf_slice(&bytes), table->head->json);
    return TARN_OK;
}

/* Is what lies at N the bytes of this attempt? */
static struct tarn_status *read_back(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                     struct tarn_slice json, bool *found, bool *ours)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    *ours = false;
    TARN_TRY(tarn_store_find(table->env->store, op, snapshot_key(op, table, id), found, &bytes));
    *ours = *found && tarn_slice_equal(tarn_buf_slice(&bytes), json);
    return TARN_OK;
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
    tarn_exec_wait_begin();
    nanosleep(&t, NULL);
    tarn_exec_wait_end();
}

/* Puts the same bytes until the store says created or exists, or TARN_SETTLE_MS is over. Absent proves nothing (I4). */
static struct tarn_status *put_until_known(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                           struct tarn_slice json, enum claim *out)
{
    int64_t give_up = tarn_clock_mono_ms() + TARN_SETTLE_MS;
    bool first = true;
    for (int64_t wait = 10;; wait = TARN_MIN(wait * 2, (int64_t)1000)) {
        bool created, found = false, ours = false;
        struct tarn_status *s = tarn_store_put_if_absent(
            table->env->store, op, snapshot_key(op, table, id), json, &created);
        if (s == TARN_OK && created) {
            *out = CLAIM_MADE;
            return TARN_OK;
        }
        if (first && is_definite(s)) /* a later one would say nothing about the first */
            return s;
        first = false;
        tarn_log_status(op, TARN_WARN, "commit.put_unknown", s);
        s = read_back(op, table, id, json, &found, &ours);
        if (s == TARN_OK && found) {
            *out = ours ? CLAIM_MADE : CLAIM_TAKEN;
            return TARN_OK;
        }
        tarn_status_free(s);
        if (tarn_clock_mono_ms() >= give_up) {
            *out = CLAIM_UNKNOWN;
            return TARN_OK;
        }
        pause_ms(wait);
    }
}

/* Keeps an attempt whose outcome nobody knows: it is settled before anything else is put. */
static void keep_open(struct tarn_table *table, int64_t id, struct tarn_slice json)
{
    tarn_buf_clear(&table->attempt.json);
    tarn_buf_add_slice(&table->attempt.json, json);
    table->attempt.snapshot_id = id;
    table->attempt.open = true;
}

static struct tarn_status *unknown_status(struct tarn_table *table, int64_t id)
{
    return tarn_status_new(
        TARN_OUTCOME_UNKNOWN,
        "the store did not say whether snapshot %" PRId64 " of table %s was made", id, table->name);
}

/* I5: an open attempt is settled first. Afterwards the slot N is filled, by it or by another. */
static struct tarn_status *settle(struct tarn_op *op, struct tarn_table *table)
{
    if (!table->attempt.open)
        return TARN_OK;
    enum claim claim;
    int64_t id = table->attempt.snapshot_id;
    TARN_TRY(put_until_known(op, table, id, tarn_buf_slice(&table->attempt.json), &claim));
    if (claim == CLAIM_UNKNOWN)
        return tarn_status_new(
            TARN_STORE_UNAVAILABLE,
            "table %s takes no commit before the store says what became of snapshot %" PRId64,
            table->name, id);
    table->attempt.open = false;
    tarn_log(op, TARN_WARN, "commit.settled", "table=%s snapshot=%" PRId64 " landed=%d",
             table->name, id, claim == CLAIM_MADE);
    return tarn_table__refresh(op, table);
}

/* The put took long: N-1 may have been rolled back or expired away meanwhile. Nobody was told of N yet, so it
 * is taken back, unless another writer already stands on it. */
static struct tarn_status *look_back(struct tarn_op *op, struct tarn_table *table,
                                     struct part *part, enum claim *out)
{
    bool stands = false, followed = false;
    struct tarn_status *s = check_ground(op, table, &stands);
    if (s == TARN_OK && !stands)
        s = tarn_store_stat(table->env->store, op, snapshot_key(op, table, part->snapshot.id + 1),
                            &followed, NULL);
    if (s == TARN_OK && !stands && !followed) {
        s = tarn_store_remove(table->env->store, op, snapshot_key(op, table, part->snapshot.id));
        *out = CLAIM_TAKEN;
    }
    if (s == TARN_OK)
        return TARN_OK;
    tarn_log_status(op, TARN_ERROR, "commit.look_back_failed", s);
    keep_open(table, part->snapshot.id, tarn_buf_slice(&part->json));
    return unknown_status(table, part->snapshot.id);
}

static struct tarn_status *claim_snapshot(struct tarn_op *op, struct tarn_table *table,
                                          struct part *part, enum claim *out)
{
    bool stands;
    TARN_TRY(check_ground(op, table, &stands));
    *out = CLAIM_TAKEN;
    if (!stands)
        return TARN_OK;
    int64_t begun = tarn_clock_mono_ms();
    TARN_TRY(put_until_known(op, table, part->snapshot.id, tarn_buf_slice(&part->json), out));
    if (*out == CLAIM_UNKNOWN) {
        keep_open(table, part->snapshot.id, tarn_buf_slice(&part->json));
        return unknown_status(table, part->snapshot.id);
    }
    if (*out != CLAIM_MADE || tarn_clock_mono_ms() - begun <= TARN_CLAIM_AGE_MAX_MS)
        return TARN_OK;
    return look_back(op, table, part, out);
}

/* --- step 7: publish --- */

static void write_hint(struct tarn_op *op, struct tarn_table *table, const char *name, int64_t id)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, id);
    /* A hint never makes a commit fail. */
    tarn_log_status(op, TARN_WARN, "commit.hint_failed",
                    tarn_store_put(table->env->store, op,
                                   tarn_table__key(op, table, "snapshot/%s", name),
                                   tarn_slice_str(text)));
}

static struct tarn_slice keep(struct tarn_arena *arena, struct tarn_slice s)
{
    return s.data == NULL ? s : tarn_arena_copy(arena, s);
}

static struct tarn_stats keep_stats(struct tarn_arena *arena, const struct tarn_stats *in)
{
    struct tarn_stats out = *in;
    int64_t *counts = tarn_arena_calloc(arena, in->count + 1, sizeof *counts);
    if (in->count > 0)
        memcpy(counts, in->null_counts, in->count * sizeof *counts);
    out.min = keep(arena, in->min);
    out.max = keep(arena, in->max);
    out.null_counts = counts;
    return out;
}

/* The new snapshot as the table's head; its manifests need not be read again. */
static struct tarn_status *advance_head(struct tarn_table *table, struct part *part)
{
    struct tarn_head *head = tarn_calloc(1, sizeof *head);
    head->arena = tarn_arena_new();
    head->id = part->snapshot.id;
    head->json = tarn_arena_copy(head->arena, tarn_buf_slice(&part->json));
    struct tarn_status *s = tarn_snapshot_decode(head->json, head->arena, &head->snapshot);
    if (s != TARN_OK) {
        tarn_head_free(head);
        return s;
    }
    head->manifest_count = part->manifest_count;
    head->manifests =
        tarn_arena_calloc(head->arena, part->manifest_count + 1, sizeof *head->manifests);
    for (size_t i = 0; i < part->manifest_count; i++) {
        head->manifests[i] = part->manifests[i];
        head->manifests[i].name = keep(head->arena, part->manifests[i].name);
        head->manifests[i].partition_stats =
            keep_stats(head->arena, &part->manifests[i].partition_stats);
    }
    head->manifests_known = true;
    tarn_head_free(table->head);
    table->head = head;
    return TARN_OK;
}

static struct tarn_status *publish(struct tarn_op *op, struct tarn_table *table, struct part *part)
{
    /* From here the commit has happened: what fails below is caught up by the next look, never told as failure. */
    struct tarn_status *s =
        tarn_table__index_add(op, table, &part->snapshot, tarn_buf_slice(&part->json),
                              &(struct tarn_delta){.entries = part->entries, .count = part->count});
    if (s == TARN_OK)
        s = advance_head(table, part);
    if (s == TARN_OK)
        s = tarn_table__publish_view(op, table);
    if (s != TARN_OK) {
        tarn_log_status(op, TARN_ERROR, "commit.index_behind", s);
        tarn_head_free(table->head);
        table->head = NULL; /* the next use reads everything anew */
        pthread_mutex_lock(&table->lock);
        table->looked_ms = INT64_MIN / 2;
        pthread_mutex_unlock(&table->lock);
    }
    write_hint(op, table, "LATEST", part->snapshot.id);
    tarn_metric_add(TARN_M_COMMITS, tarn_commit_kind_name(part->kind), 1);
    tarn_log(op, TARN_INFO, "table.commit",
             "table=%s snapshot=%" PRId64 " kind=%s user=%s identifier=%" PRId64
             " entries=%zu records=%" PRId64,
             table->name, part->snapshot.id, tarn_commit_kind_name(part->kind),
             tarn_log_quote(op, tarn_arena_str(op->arena, part->commit->user)),
             part->commit->identifier, part->count, part->snapshot.delta_record_count);
    if (table->env->committed != NULL)
        table->env->committed(table->env->committed_arg, table, part->snapshot.id);
    return TARN_OK;
}

/* --- one part, to its end --- */

static void copy_entries(struct tarn_op *op, struct part *part,
                         const struct tarn_manifest_entry *entries, size_t count)
{
    part->entries = tarn_arena_calloc(op->arena, count + 1, sizeof *part->entries);
    if (count > 0)
        memcpy(part->entries, entries, count * sizeof *entries);
    part->count = count;
}

static struct tarn_status *ensure_head(struct tarn_op *op, struct tarn_table *table)
{
    return table->head != NULL ? TARN_OK : tarn_table__refresh(op, table);
}

/* Every entry names where it belongs in a way this table can have. */
static struct tarn_status *check_entries(struct tarn_table *table,
                                         const struct tarn_manifest_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct tarn_data_file *f = &entries[i].file;
        if (f->name.size == 0 || memchr(f->name.data, '/', f->name.size) != NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%.*s\" is no name of a data file",
                                   TARN_SLICE_ARG(f->name));
        if (f->row_count < 0 || f->size < 0 || f->level < 0)
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "file %.*s has a negative size, row count or level",
                                   TARN_SLICE_ARG(f->name));
        if (f->schema_id < 0 || f->schema_id > table->view->view.schema.id)
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "file %.*s was written under schema %" PRId64
                                   ", which table %s doesn't have",
                                   TARN_SLICE_ARG(f->name), f->schema_id, table->name);
    }
    return TARN_OK;
}

static struct tarn_status *check_files_exist(struct tarn_op *op, struct tarn_table *table,
                                             const struct part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        const struct tarn_manifest_entry *e = &part->entries[i];
        if (e->kind != TARN_ENTRY_ADD || e->file.external_path.data != NULL)
            continue;
        TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
        TARN_TRY(tarn_bucket_path(&table->view->view.schema, &table->view->view.options,
                                  e->partition, e->bucket, &path));
        bool found;
        const char *key = tarn_table__key(op, table, "%s/%.*s", tarn_buf_cstr(&path),
                                          TARN_SLICE_ARG(e->file.name));
        TARN_TRY(tarn_store_stat(table->env->store, op, key, &found, NULL));
        if (!found)
            return tarn_status_new(TARN_FILE_MISSING, "%s is not there", key);
    }
    return TARN_OK;
}

/* One attempt on top of the present head. *again: another writer's snapshot came first and was adopted. */
static struct tarn_status *attempt_part(struct tarn_op *op, struct tarn_table *table,
                                        struct part *part, enum tarn_commit_kind kind,
                                        const struct tarn_manifest_entry *entries, size_t count,
                                        bool check_files, int64_t *snapshot_id, bool *repeated,
                                        bool *again)
{
    *again = false;
    TARN_TRY(ensure_head(op, table));
    TARN_TRY(check_seen(table, part->commit, kind, snapshot_id));
    *repeated = *snapshot_id != 0;
    if (*repeated)
        return TARN_OK;
    copy_entries(op, part, entries, count);
    TARN_TRY(check_entries(table, part->entries, part->count));
    struct tarn_candidate candidate = {.kind = kind,
                                       .user = part->commit->user,
                                       .entries = part->entries,
                                       .count = part->count,
                                       .base_snapshot_id = part->commit->base_snapshot_id};
    TARN_TRY(tarn_table__check_conflicts(op, table, table->head, &candidate));
    part->count = candidate.count;
    if (check_files)
        TARN_TRY(check_files_exist(op, table, part));
    enum claim claim = CLAIM_TAKEN;
    struct tarn_status *s = write_manifests(op, table, part);
    if (s == TARN_OK)
        s = claim_snapshot(op, table, part, &claim);
    if (s != TARN_OK) {
        if (!table->attempt.open) /* else the files may be part of a snapshot: they stay (I2) */
            tarn_table__remove_objects(op, table, &part->objects);
        return s;
    }
    if (claim == CLAIM_MADE) { /* I1: visible from here on */
        *snapshot_id = part->snapshot.id;
        return publish(op, table, part);
    }
    tarn_table__remove_objects(op, table, &part->objects);
    *again = true;
    return tarn_table__refresh(op, table);
}

static struct tarn_status *commit_part(struct tarn_op *op, struct tarn_table *table,
                                       const struct tarn_pending_commit *pending,
                                       enum tarn_commit_kind kind,
                                       const struct tarn_manifest_entry *entries, size_t count,
                                       int64_t *snapshot_id, bool *repeated)
{
    const struct tarn_commit *commit = pending->commit;
    for (int tries = 0; tries <= table->env->commit_retries; tries++) {
        TARN_TRY(tarn_op_check(pending->op));
        TARN_OWN(part_fini) struct part part = {.commit = commit, .kind = kind};
        bool again;
        /* A request that is sent again after a lost answer is checked for its files, as Paimon does. */
        TARN_TRY(attempt_part(op, table, &part, kind, entries, count, commit->check_files,
                              snapshot_id, repeated, &again));
        if (!again)
            return TARN_OK;
    }
    return tarn_status_new(TARN_SNAPSHOT_TAKEN,
                           "other writers took the next snapshot of table %s %d times", table->name,
                           table->env->commit_retries + 1);
}

/* Both parts. The compact part of a commit whose append part landed is reported, never undone. */
static struct tarn_status *commit_one(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_pending_commit *pending)
{
    const struct tarn_commit *commit = pending->commit;
    struct tarn_commit_result *result = pending->result;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(settle(op, table));
    bool repeated = false, compact_repeated = false;
    if (commit->append.count > 0 || commit->compact.count == 0)
        TARN_TRY(commit_part(op, table, pending, commit->kind, commit->append.entries,
                             commit->append.count, &result->append_snapshot_id, &repeated));
    if (commit->compact.count > 0) {
        struct tarn_status *s =
            commit_part(op, table, pending, TARN_COMMIT_COMPACT, commit->compact.entries,
                        commit->compact.count, &result->compact_snapshot_id, &compact_repeated);
        if (s != TARN_OK && result->append_snapshot_id != 0)
            s = tarn_status_wrap(s,
                                 "the rows landed in snapshot %" PRId64 ", their compaction didn't",
                                 result->append_snapshot_id);
        if (s != TARN_OK)
            return s;
    }
    result->repeated = repeated || (compact_repeated && result->append_snapshot_id == 0);
    return TARN_OK;
}

/* --- the queue --- */

static struct tarn_pending_commit *take_group(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    struct tarn_pending_commit *first = table->pending_first;
    if (first != NULL) {
        table->pending_first = first->next;
        if (table->pending_first == NULL)
            table->pending_last = &table->pending_first;
    }
    pthread_mutex_unlock(&table->lock);
    return first;
}

static void run_commits(void *arg)
{
    struct tarn_table *table = arg;
    struct tarn_pending_commit *p = take_group(table);
    if (p == NULL)
        return;
    int64_t begun = tarn_clock_mono_ns();
    /* An op of its own: a caller that gives up must not tear a put in two. It is asked between attempts. */
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    memcpy(op.request_id, p->op->request_id, sizeof op.request_id);
    p->status = commit_one(&op, table, p);
    tarn_metric_observe(TARN_M_COMMIT_SECONDS, NULL, (double)(tarn_clock_mono_ns() - begun) / 1e9);
    if (p->status != TARN_OK)
        tarn_metric_add(TARN_M_COMMIT_FAILURES, tarn_reason_name(tarn_status_reason(p->status)), 1);
    tarn_gate_open(p->done);
}

struct tarn_status *tarn_table_commit(struct tarn_op *op, struct tarn_table *table,
                                      const struct tarn_commit *commit,
                                      struct tarn_commit_result *out)
{
    if (commit->append.count + commit->compact.count > TARN_COMMIT_ENTRIES_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "a commit of %zu files; at most %d",
                               commit->append.count + commit->compact.count,
                               TARN_COMMIT_ENTRIES_MAX);
    if (commit->user.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a commit needs a user");
    memset(out, 0, sizeof *out);
    struct tarn_pending_commit pending = {
        .op = op, .commit = commit, .result = out, .done = tarn_gate_new()};
    pthread_mutex_lock(&table->lock);
    *table->pending_last = &pending;
    table->pending_last = &pending.next;
    pthread_mutex_unlock(&table->lock);
    tarn_mailbox_post(table->mailbox, run_commits, table);
    /* Not given up while the mailbox has it: the op's own deadline ends the work there. */
    tarn_gate_wait(pending.done, NULL);
    tarn_gate_free(pending.done);
    return pending.status;
}
