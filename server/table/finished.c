#include "table/commit_internal.h"
#include "table/index.h"

/*
 * Snapshots that their writers have finished, as clients of Paimon's REST catalog do: manifests, lists and the id are theirs, and
 * nothing of it can be made anew. Such a one stands alone and goes through the commit (commit.c) like any other request, but
 * for three steps:
 *
 *   seen     it is there if a snapshot of its id is it, by uuid or to the byte; or its identity landed with the same files
 *   check    it stands on the head, or is refused with SNAPSHOT_TAKEN: its writer rebases. Then as all others (conflict.c)
 *   prepare  the bytes are as they came; nothing is written, so there is nothing to remove either: its files are its writer's
 *
 * A writer that rebases takes many times as long as a commit of the daemon's own, so that on a busy table each of its snapshots would come too late.
 * One that did gets the table to itself for a turn: as long as its round may have taken, and at most half of the time.
 */

#define TURN_MIN_MS 50
#define TURN_MAX_MS 2000

/* --- what it names, read on the caller's thread --- */

/* What a client wrote is wrong, not damaged. */
static struct tarn_status *of_the_writer(struct tarn_status *s)
{
    enum tarn_reason reason = tarn_status_reason(s);
    if (reason != TARN_OBJECT_NOT_FOUND && reason != TARN_MANIFEST_MALFORMED &&
        reason != TARN_AVRO_MALFORMED && reason != TARN_SNAPSHOT_MALFORMED)
        return s;
    return tarn_status_wrap(tarn_status_as(s, TARN_INVALID_ARGUMENT), "the snapshot");
}

static struct tarn_status *check_members(const struct tarn_snapshot *s)
{
    if (s->version != 3)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "the snapshot is of version %d, want 3",
                               s->version);
    if (s->id < 1 || s->id == INT64_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "the snapshot has id %" PRId64 ", which none can have", s->id);
    for (size_t i = 0; i < s->property_count; i++)
        if (tarn_slice_is(s->properties[i].key, TARN_RECEIPTS_PROPERTY))
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "property " TARN_RECEIPTS_PROPERTY " is the daemon's own");
    return TARN_OK;
}

static struct tarn_status *read_entries(struct tarn_op *op, struct tarn_table *table,
                                        const struct tarn_manifest_file *files, size_t count,
                                        const struct tarn_manifest_entry **out, size_t *out_count)
{
    struct tarn_manifest_entry **lists = tarn_arena_calloc(op->arena, count + 1, sizeof *lists);
    size_t *counts = tarn_arena_calloc(op->arena, count + 1, sizeof *counts), n = 0;
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t said = files[i].added_count + files[i].deleted_count;
        if (said > TARN_COMMIT_ENTRIES_MAX - (int64_t)*out_count)
            return tarn_status_new(TARN_TOO_LARGE, "a commit of more than %d files",
                                   TARN_COMMIT_ENTRIES_MAX);
        TARN_TRY(tarn_table__read_manifest(op, table, &files[i], op->arena, &lists[i], &counts[i]));
        *out_count += counts[i];
    }
    struct tarn_manifest_entry *all = tarn_arena_calloc(op->arena, *out_count + 1, sizeof *all);
    for (size_t i = 0; i < count; n += counts[i++])
        if (counts[i] > 0)
            memcpy(all + n, lists[i], counts[i] * sizeof *all);
    *out = all;
    return TARN_OK;
}

static struct tarn_status *read_lists(struct tarn_op *op, struct tarn_table *table,
                                      struct tarn_finished *f, struct tarn_commit_part *part)
{
    struct tarn_manifest_file *changelog;
    size_t changelog_count;
    TARN_TRY(tarn_table__read_list(op, table, &f->snapshot, TARN_LIST_BASE, op->arena, &f->base,
                                   &f->base_count));
    TARN_TRY(tarn_table__read_list(op, table, &f->snapshot, TARN_LIST_DELTA, op->arena, &f->delta,
                                   &f->delta_count));
    TARN_TRY(read_entries(op, table, f->delta, f->delta_count, &part->entries, &part->count));
    if (f->snapshot.changelog_list.data != NULL) {
        TARN_TRY(tarn_table__read_list(op, table, &f->snapshot, TARN_LIST_CHANGELOG, op->arena,
                                       &changelog, &changelog_count));
        TARN_TRY(read_entries(op, table, changelog, changelog_count, &part->changelog,
                              &part->changelog_count));
    }
    if (f->snapshot.index_manifest.data == NULL)
        return TARN_OK;
    bool found;
    const char *key =
        tarn_table__key(op, table, "manifest/%.*s", TARN_SLICE_ARG(f->snapshot.index_manifest));
    TARN_TRY(tarn_store_stat(table->env->store, op, key, &found, NULL));
    return found ? TARN_OK : tarn_status_new(TARN_OBJECT_NOT_FOUND, "%s is not there", key);
}

struct tarn_status *tarn_table_read_finished(struct tarn_op *op, struct tarn_table *table,
                                             struct tarn_slice json, struct tarn_slice base_uuid,
                                             struct tarn_commit *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_TRY(tarn_table__check_here(table));
    struct tarn_finished *f = tarn_arena_calloc(op->arena, 1, sizeof *f);
    f->json = tarn_arena_copy(op->arena, json);
    f->base_uuid = base_uuid;
    TARN_TRY(of_the_writer(tarn_snapshot_decode(f->json, op->arena, &f->snapshot)));
    TARN_TRY(check_members(&f->snapshot));
    *out = (struct tarn_commit){
        .user = f->snapshot.commit_user,
        .identifier = f->snapshot.commit_identifier,
        .watermark = f->snapshot.watermark,
        .kind = f->snapshot.kind,
        .statistics =
            f->snapshot.kind == TARN_COMMIT_ANALYZE ? f->snapshot.statistics : tarn_slice_str(NULL),
        .base_snapshot_id = TARN_SNAPSHOT_NONE,
        .force_empty = true,
        .finished = f,
    };
    return of_the_writer(read_lists(op, table, f, &out->append));
}

/* --- seen --- */

/* Is the snapshot of its id this one? */
static struct tarn_status *find_itself(struct tarn_table *table, const struct tarn_finished *f,
                                       int64_t *snapshot_id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot there;
    bool found;
    TARN_TRY(tarn_table__indexed_snapshot(table, f->snapshot.id, &found, &json));
    if (!found)
        return TARN_OK;
    TARN_TRY(tarn_snapshot_decode(tarn_buf_slice(&json), arena, &there));
    bool same = f->snapshot.uuid.size > 0 ? tarn_slice_equal(there.uuid, f->snapshot.uuid)
                                          : tarn_slice_equal(tarn_buf_slice(&json), f->json);
    *snapshot_id = same ? f->snapshot.id : 0;
    return TARN_OK;
}

/* What the index knows of a snapshot's changes, as tarn_commit_content has it; 0: nothing is known of it any more. */
static struct tarn_status *content_of(struct tarn_table *table, int64_t id, uint64_t *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__change_prefix(table->uuid, id, TARN_CHANGE_ADDED, &from);
    tarn_table__change_prefix(table->uuid, id, TARN_CHANGE_REMOVED + 1, &to);
    struct tarn_state_range range = {.from = tarn_buf_slice(&from), .to = tarn_buf_slice(&to)};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(table->env->state, TARN_FAMILY_CHANGES, &range);
    struct tarn_delta delta = {0};
    struct tarn_slice key, value;
    bool any = false;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_live live;
        uint8_t what = key.data[TARN_INDEX_UUID_SIZE + 8];
        TARN_TRY(tarn_table__live_decode(value, arena, &live));
        live.entry.kind = what == TARN_CHANGE_REMOVED ? TARN_ENTRY_DELETE : TARN_ENTRY_ADD;
        bool is_changelog = what == TARN_CHANGE_CHANGELOG;
        *(is_changelog ? &delta.changelog : &delta.entries) = &live.entry;
        *(is_changelog ? &delta.changelog_count : &delta.count) = 1;
        tarn_table__delta_let_go(&delta);
        any = true;
    }
    *out = any ? tarn_table__delta_content(&delta) : 0;
    return tarn_state_iterator_error(it);
}

/* Paimon's writers take an identifier again where they were restored from an older state, for other files: that is no repetition,
 * and those of whom nothing is known any more aren't either, since a writer that sends again has looked for its own first. */
static struct tarn_status *is_repeated(struct tarn_table *table, const struct tarn_request *r,
                                       int64_t id, bool *out)
{
    uint64_t content;
    *out = true;
    if (r->content != 0) /* a batch, told from others by its files */
        return TARN_OK;
    TARN_TRY(content_of(table, id, &content));
    *out = content == tarn_commit_content(r->commit);
    return TARN_OK;
}

struct tarn_status *tarn_table__finished_seen(struct tarn_table *table,
                                              const struct tarn_member *member,
                                              int64_t *snapshot_id)
{
    const struct tarn_request *r = member->request;
    int64_t landed;
    bool repeated;
    *snapshot_id = 0;
    TARN_TRY(find_itself(table, r->commit->finished, snapshot_id));
    if (*snapshot_id != 0 || r->nameless)
        return TARN_OK;
    TARN_TRY(tarn_table__receipt_find(table, r->commit->user, r->commit->identifier, r->content,
                                      member->kind, &landed));
    if (landed == 0)
        return TARN_OK;
    TARN_TRY(is_repeated(table, r, landed, &repeated));
    *snapshot_id = repeated ? landed : 0;
    return TARN_OK;
}

/* --- check --- */

static struct tarn_status *taken(const struct tarn_table *table, const struct tarn_finished *f,
                                 const struct tarn_head *head, const char *why)
{
    return tarn_status_new(TARN_SNAPSHOT_TAKEN,
                           "snapshot %" PRId64 " of table %s, upon snapshot %" PRId64 ": %s",
                           f->snapshot.id, table->name, head->id, why);
}

/* The head's manifests by their names, in whatever order. */
static bool same_names(const struct tarn_head *head, const struct tarn_finished *f)
{
    if (head->manifest_count != f->base_count)
        return false;
    TARN_OWN(tarn_map_drop) struct tarn_map *names = tarn_map_new();
    for (size_t i = 0; i < head->manifest_count; i++)
        tarn_map_set(names, head->manifests[i].name, names);
    for (size_t i = 0; i < f->base_count; i++)
        if (tarn_map_remove(names, f->base[i].name) == NULL)
            return false;
    return true;
}

/* Is its base list what the head left, manifests merged or not? An id can't tell, where others rolled back and filled up. */
static struct tarn_status *check_base(struct tarn_op *op, struct tarn_table *table,
                                      struct tarn_head *head, const struct tarn_finished *f)
{
    TARN_TRY(tarn_table__head_manifests(op, table, head));
    if (same_names(head, f))
        return TARN_OK;
    bool stands;
    struct tarn_manifests below = {.files = head->manifests, .count = head->manifest_count};
    struct tarn_manifests next = {
        .files = f->base, .base_count = f->base_count, .count = f->base_count};
    TARN_TRY(of_the_writer(tarn_table__stands_on(op, table, &below, &next, &stands)));
    return stands ? TARN_OK : taken(table, f, head, "its base list names other files");
}

struct tarn_status *tarn_table__finished_stands(struct tarn_op *op, struct tarn_table *table,
                                                struct tarn_head *head,
                                                const struct tarn_finished *f)
{
    if (f->snapshot.id != head->id + 1)
        return taken(table, f, head, "it is not the next one");
    if (f->base_uuid.data != NULL &&
        (head->id == 0 || !tarn_slice_equal(f->base_uuid, head->snapshot.uuid)))
        return taken(table, f, head, "it was made upon another one of that id");
    if (f->snapshot.schema_id > table->view->view.schema.id)
        TARN_TRY(tarn_table__look_schema(op, table));
    if (f->snapshot.schema_id > table->view->view.schema.id)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "the snapshot is of schema %" PRId64 ", which table %s doesn't have",
                               f->snapshot.schema_id, table->name);
    return check_base(op, table, head, f);
}

/* --- prepare --- */

struct tarn_status *tarn_table__finished_prepare(struct tarn_group *group)
{
    const struct tarn_finished *f = group->members[0]->request->commit->finished;
    const struct tarn_commit_part *part = &group->parts[0];
    group->is_finished = true;
    group->delta = (struct tarn_delta){.entries = part->entries,
                                       .count = part->count,
                                       .changelog = part->changelog,
                                       .changelog_count = part->changelog_count};
    group->put.base_of_next = f->delta_count > 0
                                  ? tarn_arena_copy(group->op.arena, f->delta[0].name)
                                  : tarn_slice_str(NULL);
    group->record_count = f->snapshot.delta_record_count;
    TARN_TRY(
        tarn_table__make_head(group, f->json, f->base, f->base_count, f->delta, f->delta_count));
    group->user = group->next->snapshot.commit_user;
    group->identifier = group->next->snapshot.commit_identifier;
    return TARN_OK;
}

/* --- turns --- */

/* Since the snapshot that it was made upon was the latest; the writer found that some time later. */
static int64_t round_ms(struct tarn_table *table, const struct tarn_finished *f)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot base;
    bool found = false;
    struct tarn_status *s = tarn_table__past(table, f->snapshot.id - 1, arena, &found, &base);
    int64_t ms = s == TARN_OK && found ? tarn_clock_wall_ms() - base.time_ms : TURN_MAX_MS;
    tarn_status_free(s);
    return TARN_MAX(TARN_MIN(ms, (int64_t)TURN_MAX_MS), (int64_t)TURN_MIN_MS);
}

void tarn_table__give_turn(struct tarn_table *table, const struct tarn_finished *f)
{
    int64_t ms = round_ms(table, f), now = tarn_clock_mono_ms();
    pthread_mutex_lock(&table->lock);
    if (now >= table->next_turn_ms) {
        table->turn_began_ms = now;
        table->turn_until_ms = now + ms;
        table->next_turn_ms = now + 2 * ms;
    }
    pthread_mutex_unlock(&table->lock);
}

int64_t tarn_table__turn_left_ms(const struct tarn_table *table)
{
    int64_t left = table->turn_until_ms == 0 ? 0 : table->turn_until_ms - tarn_clock_mono_ms();
    return left < 0 || left > TURN_MAX_MS ? 0 : left;
}

void tarn_table__end_turn(struct tarn_table *table)
{
    int64_t now = tarn_clock_mono_ms();
    pthread_mutex_lock(&table->lock);
    if (table->turn_until_ms != 0)
        table->next_turn_ms = now + TARN_MIN(now - table->turn_began_ms, (int64_t)TURN_MAX_MS);
    table->turn_until_ms = 0;
    pthread_mutex_unlock(&table->lock);
}
