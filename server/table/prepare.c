#include "table/commit_internal.h"
#include "table/index.h"

/*
 * From a group to a snapshot: check, which is exact, and prepare, which writes manifests. While another snapshot is being
 * put, prepare comes first, on a guess that nobody will be refused; check then decides, and what it takes out is prepared
 * again without it.
 */

/* --- check: steps 2 and 3 --- */

static struct tarn_status *check_seen(struct tarn_table *table, const struct tarn_member *member,
                                      int64_t *snapshot_id)
{
    const struct tarn_request *r = member->request;
    const struct tarn_commit *commit = r->commit;
    *snapshot_id = 0;
    if (commit->finished != NULL)
        TARN_TRY(tarn_table__finished_seen(table, member, snapshot_id));
    else if (!r->nameless)
        TARN_TRY(tarn_table__receipt_find(table, commit->user, commit->identifier, r->content,
                                          member->kind, snapshot_id));
    if (*snapshot_id != 0 || r->nameless)
        return TARN_OK;
    int64_t doubtful, last;
    struct tarn_identity who = {commit->user, commit->identifier, r->content};
    TARN_TRY(tarn_table__is_in_doubt(table, &who, member->kind, &doubtful));
    if (doubtful != 0) /* nothing lands twice */
        return tarn_status_new(
            TARN_OUTCOME_UNKNOWN,
            "identifier %" PRId64 " of user %.*s landed in snapshot %" PRId64
            " of table %s, which others may have rolled back before it expired; it is not put "
            "again",
            commit->identifier, TARN_SLICE_ARG(commit->user), doubtful, tarn_table_name(table));
    /* Who finishes snapshots has looked for its own: a writer restored from an older state goes on from there. */
    if (commit->identifier == TARN_COMMIT_IDENTIFIER_BATCH || commit->finished != NULL)
        return TARN_OK;
    TARN_TRY(tarn_table__last_identifier(table, commit->user, &last));
    if (last == TARN_SNAPSHOT_NONE || commit->identifier >= last)
        return TARN_OK;
    return tarn_status_new(
        TARN_COMMIT_IDENTIFIER_STALE,
        "identifier %" PRId64 " of user %.*s never landed in table %s, but %" PRId64 " has",
        commit->identifier, TARN_SLICE_ARG(commit->user), tarn_table_name(table), last);
}

bool tarn_table__schemas_related(const struct tarn_schema *a, const struct tarn_schema *b)
{
    for (size_t i = 0; i < a->field_count; i++)
        for (size_t k = 0; k < b->field_count; k++)
            if (a->fields[i].id == b->fields[k].id)
                return true;
    return false;
}

/*
 * Files of a writer that began before the table was replaced have no column that it has now: each row would be nulls. Ids are never given
 * again, so what the oldest of these schemas has in common with the present one, those between have, too.
 */
static struct tarn_status *check_related(struct tarn_op *op, struct tarn_table *table,
                                         int64_t oldest)
{
    const struct tarn_schema *now = &table->view->view.schema;
    bool known = table->related_to == now->id && oldest >= table->related_from, found = true;
    struct tarn_schema then;
    if (oldest < 0 || oldest >= now->id || known)
        return TARN_OK;
    TARN_TRY(tarn_table__read_schema(op, table, oldest, op->arena, &found, &then));
    if (found && !tarn_table__schemas_related(&then, now))
        return tarn_status_new(TARN_COMMIT_CONFLICT,
                               "table %s was replaced since: it has no column of schema %" PRId64
                               " any more, under which these files were written",
                               tarn_table_name(table), oldest);
    table->related_from = oldest;
    table->related_to = now->id;
    return TARN_OK;
}

static struct tarn_status *check_schemas(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_manifest_entry *entries, size_t count)
{
    int64_t last = -1, oldest = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        last = TARN_MAX(last, entries[i].file.schema_id);
        if (entries[i].kind == TARN_ENTRY_ADD)
            oldest = TARN_MIN(oldest, entries[i].file.schema_id);
    }
    if (last >
        table->view->view.schema.id) /* another writer may have made it since the last look */
        TARN_TRY(tarn_table__look_schema(op, table));
    for (size_t i = 0; i < count; i++)
        if (entries[i].file.schema_id > table->view->view.schema.id)
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "file %.*s was written under schema %" PRId64
                                   ", which table %s doesn't have",
                                   TARN_SLICE_ARG(entries[i].file.name), entries[i].file.schema_id,
                                   tarn_table_name(table));
    return check_related(op, table, oldest);
}

static struct tarn_manifest_entry *copy_entries(struct tarn_arena *arena,
                                                const struct tarn_manifest_entry *entries,
                                                size_t count)
{
    struct tarn_manifest_entry *copy = tarn_arena_calloc(arena, count + 1, sizeof *copy);
    if (count > 0)
        memcpy(copy, entries, count * sizeof *copy);
    return copy;
}

/* To be thinned out: the request's are copied, those of an overwrite were made for this attempt. */
static struct tarn_manifest_entry *own_entries(struct tarn_arena *arena,
                                               const struct tarn_manifest_entry *request,
                                               const struct tarn_commit_part *part)
{
    return part->entries != request ? (struct tarn_manifest_entry *)part->entries
                                    : copy_entries(arena, part->entries, part->count);
}

/* What is left of a member's part, or why it can't be. *nothing: a dynamic overwrite of no partition. */
static struct tarn_status *check_part(struct tarn_group *group, const struct tarn_member *member,
                                      struct tarn_commit_part *part, bool *nothing)
{
    struct tarn_op *op = &group->op;
    struct tarn_table *table = group->table;
    const struct tarn_commit *commit = member->request->commit;
    struct tarn_resolved resolved = {.part = *member->part};
    if (commit->finished != NULL)
        TARN_TRY(tarn_table__finished_stands(op, table, table->head, commit->finished));
    TARN_TRY(check_schemas(op, table, member->part->entries, member->part->count));
    if (member->request->missing != TARN_OK)
        return tarn_status_copy(member->request->missing);
    if (commit->overwrite != TARN_OVERWRITE_NONE && member->kind != TARN_COMMIT_COMPACT)
        TARN_TRY(tarn_table__resolve_overwrite(op, table, table->head, commit, &resolved));
    *nothing = resolved.nothing;
    if (*nothing)
        return TARN_OK;
    *part = resolved.part;
    struct tarn_candidate candidate = {.kind = member->kind,
                                       .user = commit->user,
                                       .entries =
                                           own_entries(op->arena, member->part->entries, part),
                                       .count = part->count,
                                       .known_count = resolved.known_count,
                                       .index = part->index,
                                       .index_count = part->index_count,
                                       .base_snapshot_id = commit->base_snapshot_id,
                                       .base_snapshot_proof = commit->base_snapshot_proof,
                                       .assigned = commit->assigned};
    TARN_TRY(tarn_table__check_conflicts(op, table, table->head, &candidate));
    if (commit->finished != NULL && candidate.count != part->count)
        return tarn_status_new(TARN_COMMIT_CONFLICT,
                               "%zu files that the snapshot adds are live in table %s already",
                               part->count - candidate.count, tarn_table_name(table));
    part->entries = candidate.entries;
    part->count = candidate.count;
    int64_t overlaps = 0;
    TARN_TRY(tarn_table__check_sequences(op, table, group->highest, part->entries, part->count,
                                         &overlaps));
    member->request->result->sequence_overlap_count += overlaps;
    return TARN_OK;
}

/* What becomes of one member: it goes on with `part`, or is answered. */
struct verdict {
    struct tarn_commit_part part;
    struct tarn_status *status; /* owned: it can't land */
    int64_t snapshot_id;        /* it has landed there before */
    bool nothing;               /* there is nothing to do */
};

static bool goes_on(const struct verdict *v)
{
    return v->status == TARN_OK && v->snapshot_id == 0 && !v->nothing;
}

/* True: all go on. */
static bool judge(struct tarn_group *group, struct verdict *verdicts)
{
    bool all = true;
    tarn_map_free(group->highest);
    group->highest = tarn_map_new();
    for (size_t i = 0; i < group->count; i++) {
        struct tarn_member *member = group->members[i];
        struct verdict *v = &verdicts[i];
        tarn_status_free(v->status);
        *v = (struct verdict){0};
        if (member == &member->request->append)
            member->request->result->sequence_overlap_count = 0;
        v->status = check_seen(group->table, member, &v->snapshot_id);
        if (v->status == TARN_OK && v->snapshot_id == 0)
            v->status = check_part(group, member, &v->part, &v->nothing);
        all &= goes_on(v);
    }
    return all;
}

struct tarn_status *tarn_table__judge_one(struct tarn_group *group)
{
    struct verdict v = {0};
    (void)judge(group, &v);
    return v.status;
}

static void answer(struct tarn_group *group, struct tarn_member *member, struct verdict *v)
{
    bool repeated = v->status == TARN_OK && v->snapshot_id != 0;
    if (member->request->commit->finished != NULL &&
        tarn_status_reason(v->status) == TARN_SNAPSHOT_TAKEN)
        tarn_table__give_turn(group->table, member->request->commit->finished);
    tarn_table__refused(&group->op, group->table, member->request, v->status);
    tarn_table__answer(group->table, member, tarn_move(v->status), v->snapshot_id, repeated);
}

void tarn_table__check_group(struct tarn_group *group, bool *changed)
{
    struct verdict *verdicts =
        tarn_arena_calloc(group->op.arena, group->count + 1, sizeof *verdicts);
    size_t kept = 0;
    *changed = false;
    /* What is told without a put isn't met by one: others may have rolled back what it is told by. */
    if (!judge(group, verdicts) && !tarn_table__looked_lately(group->table)) {
        struct tarn_status *s = tarn_table__refresh(&group->op, group->table);
        if (s == TARN_OK)
            (void)judge(group, verdicts);
        for (size_t i = 0; s != TARN_OK && i < group->count; i++) {
            tarn_status_free(verdicts[i].status); /* all: there is no head to stand on any more */
            verdicts[i] = (struct verdict){.status = tarn_status_copy(s)};
        }
        tarn_status_free(s);
    }
    for (size_t i = 0; i < group->count; i++) {
        struct verdict *v = &verdicts[i];
        bool keep = goes_on(v);
        *changed |= !keep || v->part.count != group->parts[i].count;
        if (!keep) {
            answer(group, group->members[i], v);
            continue;
        }
        group->members[kept] = group->members[i];
        group->parts[kept++] = v->part;
    }
    group->count = kept;
}

/* --- prepare: step 5 --- */

static struct tarn_status *too_many_rows(const struct tarn_group *group)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT,
                           "table %s would have more rows than can be counted",
                           tarn_table_name(group->table));
}

static struct tarn_status *record_count(const struct tarn_group *group,
                                        const struct tarn_manifest_entry *entries, size_t count,
                                        int64_t *sum)
{
    *sum = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t rows = entries[i].file.row_count;
        if (__builtin_add_overflow(*sum, entries[i].kind == TARN_ENTRY_ADD ? rows : -rows, sum))
            return too_many_rows(group);
    }
    return TARN_OK;
}

/* Rows behind the snapshot. What others wrote as theirs may be missing or wrong: where ours couldn't be told from it, the index has the
 * number; on a guess it hasn't yet, and this fails. */
static struct tarn_status *total_of(struct tarn_group *group, const struct tarn_head *ground,
                                    int64_t delta, int64_t *out)
{
    struct tarn_table *table = group->table;
    int64_t total = ground->id == 0 ? 0 : ground->snapshot.total_record_count;
    if (total != TARN_SNAPSHOT_NONE && !__builtin_add_overflow(total, delta, out) && *out >= 0)
        return TARN_OK;
    if (ground != table->head)
        return tarn_status_new(TARN_BUSY, "the rows of table %s are not known yet",
                               tarn_table_name(table));
    TARN_TRY(tarn_table__live_rows(&group->op, table, &total));
    return !__builtin_add_overflow(total, delta, out) && *out >= 0 ? TARN_OK : too_many_rows(group);
}

/* The members' entries, one behind the other; a copy, since they get their stamps. An overwrite has no changelog:
 * readers of one skip it (docs/format.md, "Snapshots"). */
static void gather(struct tarn_group *group, struct tarn_manifest_entry **entries,
                   struct tarn_index_file **index, size_t *index_count)
{
    size_t count = 0, changelog_count = 0, n = 0;
    for (size_t i = 0; i < group->count; i++) {
        count += group->parts[i].count;
        changelog_count += group->parts[i].changelog_count;
        n += group->parts[i].index_count;
    }
    struct tarn_arena *arena = group->op.arena;
    struct tarn_manifest_entry *changelog =
        tarn_arena_calloc(arena, changelog_count + 1, sizeof *changelog);
    *entries = tarn_arena_calloc(arena, count + 1, sizeof **entries);
    *index = tarn_arena_calloc(arena, n + 1, sizeof **index);
    group->delta = (struct tarn_delta){.entries = *entries, .changelog = changelog};
    *index_count = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct tarn_commit_part *p = &group->parts[i];
        if (p->count > 0)
            memcpy(*entries + group->delta.count, p->entries, p->count * sizeof **entries);
        if (p->changelog_count > 0 && group->kind != TARN_COMMIT_OVERWRITE)
            memcpy(changelog + group->delta.changelog_count, p->changelog,
                   p->changelog_count * sizeof *changelog);
        if (p->index_count > 0)
            memcpy(*index + *index_count, p->index, p->index_count * sizeof **index);
        group->delta.count += p->count;
        group->delta.changelog_count +=
            group->kind != TARN_COMMIT_OVERWRITE ? p->changelog_count : 0;
        *index_count += p->index_count;
    }
}

/* Statistics are of the schema they were made under; a later schema drops them. */
static struct tarn_slice statistics_of(const struct tarn_group *group,
                                       const struct tarn_head *ground)
{
    if (group->kind == TARN_COMMIT_ANALYZE)
        return group->members[0]->request->commit->statistics;
    bool fit = ground->id != 0 && ground->snapshot.schema_id == group->table->view->view.schema.id;
    return fit ? ground->snapshot.statistics : tarn_slice_str(NULL);
}

/* What all members say, or nothing. */
static struct tarn_slice operation_of(const struct tarn_group *group)
{
    if (group->count == 0)
        return tarn_slice_str(NULL);
    struct tarn_slice operation = group->members[0]->request->commit->operation;
    for (size_t i = 1; i < group->count; i++)
        if (!tarn_slice_equal(operation, group->members[i]->request->commit->operation))
            return tarn_slice_str(NULL);
    return operation.size == 0 ? tarn_slice_str(NULL) : operation;
}

/* Times of a table don't fall where a clock does: readers search them by halves. */
static int64_t time_of(const struct tarn_head *ground)
{
    int64_t now = tarn_clock_wall_ms();
    return ground->id == 0 ? now : TARN_MAX(now, ground->snapshot.time_ms);
}

static int64_t watermark_of(const struct tarn_group *group, const struct tarn_head *ground)
{
    int64_t watermark = ground->id == 0 ? TARN_SNAPSHOT_NONE : ground->snapshot.watermark;
    for (size_t i = 0; i < group->count; i++) /* none is the smallest number */
        watermark = TARN_MAX(watermark, group->members[i]->request->commit->watermark);
    return watermark;
}

static struct tarn_status *fill_snapshot(struct tarn_group *group, const struct tarn_head *ground,
                                         struct tarn_snapshot *s)
{
    const struct tarn_snapshot *last = &ground->snapshot;
    const struct tarn_delta *delta = &group->delta;
    bool first = ground->id == 0;
    char uuid[TARN_UUID_SIZE];
    tarn_uuid_random(uuid);
    *s = (struct tarn_snapshot){
        .version = 3,
        .uuid = tarn_arena_copy(group->op.arena, tarn_slice_str(uuid)),
        .id = ground->id + 1,
        .schema_id = group->table->view->view.schema.id,
        .index_manifest = first ? tarn_slice_str(NULL) : last->index_manifest,
        .writer_version = tarn_slice_str("tarn-" TARN_VERSION),
        .kind = group->kind,
        .time_ms = time_of(ground),
        .changelog_record_count = TARN_SNAPSHOT_NONE,
        .changelog_list_size = TARN_SNAPSHOT_NONE,
        .watermark = watermark_of(group, ground),
        .statistics = statistics_of(group, ground),
        .operation = operation_of(group),
        .next_row_id = first || last->next_row_id == TARN_SNAPSHOT_NONE ? 0 : last->next_row_id};
    tarn_table__sign(group, s);
    TARN_TRY(record_count(group, delta->entries, delta->count, &s->delta_record_count));
    return total_of(group, ground, s->delta_record_count, &s->total_record_count);
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

/* Its manifests need not be read again. */
struct tarn_status *tarn_table__make_head(struct tarn_group *group, struct tarn_slice json,
                                          const struct tarn_manifest_file *base, size_t base_count,
                                          const struct tarn_manifest_file *delta,
                                          size_t delta_count)
{
    TARN_OWN(tarn_head_drop) struct tarn_head *head = tarn_calloc(1, sizeof *head);
    head->arena = tarn_arena_new();
    head->json = tarn_arena_copy(head->arena, json);
    TARN_TRY(tarn_snapshot_decode(head->json, head->arena, &head->snapshot));
    head->id = head->snapshot.id;
    head->manifest_count = base_count + delta_count;
    head->manifests =
        tarn_arena_calloc(head->arena, head->manifest_count + 1, sizeof *head->manifests);
    for (size_t i = 0; i < head->manifest_count; i++) {
        const struct tarn_manifest_file *from = i < base_count ? &base[i] : &delta[i - base_count];
        head->manifests[i] = *from;
        head->manifests[i].name = keep(head->arena, from->name);
        head->manifests[i].partition_stats = keep_stats(head->arena, &from->partition_stats);
    }
    head->manifests_known = true;
    group->next = tarn_move(head);
    return TARN_OK;
}

static struct tarn_status *encode_changelog(struct tarn_group *group,
                                            struct tarn_snapshot *snapshot)
{
    const struct tarn_delta *delta = &group->delta;
    struct tarn_manifest_file *files;
    size_t count;
    if (delta->changelog_count == 0)
        return TARN_OK;
    TARN_TRY(tarn_table__encode_manifests(&group->op, group->table, delta->changelog,
                                          delta->changelog_count, &files, &count, &group->objects));
    TARN_TRY(record_count(group, delta->changelog, delta->changelog_count,
                          &snapshot->changelog_record_count));
    return tarn_table__encode_list(&group->op, group->table, files, count,
                                   &snapshot->changelog_list, &snapshot->changelog_list_size,
                                   &group->objects);
}

static struct tarn_status *encode_all(struct tarn_group *group, struct tarn_head *ground)
{
    struct tarn_op *op = &group->op;
    struct tarn_table *table = group->table;
    struct tarn_manifest_entry *entries;
    struct tarn_index_file *index;
    struct tarn_manifest_file *delta;
    size_t index_count, delta_count, base_count = ground->manifest_count;
    struct tarn_snapshot s;
    gather(group, &entries, &index, &index_count);
    TARN_TRY(fill_snapshot(group, ground, &s));
    TARN_TRY(tarn_table__stamp(op, table, ground->id == 0 ? NULL : &ground->snapshot, &s, entries,
                               group->delta.count));
    struct tarn_manifest_file *base = tarn_arena_calloc(op->arena, base_count + 1, sizeof *base);
    if (base_count > 0)
        memcpy(base, ground->manifests, base_count * sizeof *base);
    tarn_table__merge_apply(op, table, base, &base_count, &group->merge_used);
    TARN_TRY(tarn_table__encode_list(op, table, base, base_count, &s.base_list, &s.base_list_size,
                                     &group->objects));
    TARN_TRY(tarn_table__encode_manifests(op, table, entries, group->delta.count, &delta,
                                          &delta_count, &group->objects));
    TARN_TRY(tarn_table__encode_list(op, table, delta, delta_count, &s.delta_list,
                                     &s.delta_list_size, &group->objects));
    TARN_TRY(encode_changelog(group, &s));
    if (index_count > 0)
        TARN_TRY(tarn_table__combine_indexes(op, table, s.index_manifest, index, index_count,
                                             &group->objects, &s.index_manifest));
    group->put.base_of_next =
        delta_count > 0 ? keep(op->arena, delta[0].name) : tarn_slice_str(NULL);
    group->user = s.commit_user;
    group->identifier = s.commit_identifier;
    group->record_count = s.delta_record_count;
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    tarn_snapshot_encode(&s, &json);
    return tarn_table__make_head(group, tarn_buf_slice(&json), base, base_count, delta,
                                 delta_count);
}

/* --- write --- */

/* All at once, and beside them what the store can do ahead for the snapshot that will name them. */
static const char *snapshot_key(struct tarn_group *group)
{
    return tarn_table__key(&group->op, group->table, "snapshot/snapshot-%" PRId64, group->next->id);
}

static struct tarn_status *put_objects(struct tarn_group *group)
{
    struct tarn_op *op = &group->op;
    struct tarn_table *table = group->table;
    const struct tarn_objects *objects = &group->objects;
    struct tarn_new_object *list = tarn_arena_calloc(op->arena, objects->count + 1, sizeof *list);
    if (objects->count > 0)
        memcpy(list, objects->list, objects->count * sizeof *list);
    list[objects->count] = (struct tarn_new_object){
        .key = snapshot_key(group), .body = group->next->json, .foreseen = true};
    return tarn_store_put_many(table->env->store, op, list, objects->count + 1);
}

/* The look at N-1, beside it. */

struct look {
    struct tarn_op op;
    struct tarn_table *table;
    const struct tarn_head *ground;
    struct tarn_status *status;
    struct tarn_gate *done;
    int64_t begun_ms;
    bool stands;
};

static void run_look(void *arg)
{
    struct look *look = arg;
    look->begun_ms = tarn_clock_mono_ms();
    look->status = tarn_table__check_ground(&look->op, look->table, look->ground->id,
                                            look->ground->json, &look->stands);
    tarn_gate_open(look->done);
}

/* Both at once: a remote store answers each after a round trip. A look that failed or found something else is left to
 * the claim, which looks again. */
static struct tarn_status *put_and_look(struct tarn_group *group, const struct tarn_head *ground)
{
    struct look look = {.table = group->table, .ground = ground, .done = tarn_gate_new()};
    tarn_op_init(&look.op);
    tarn_exec_post(group->table->env->exec, run_look, &look);
    struct tarn_status *s = put_objects(group);
    tarn_gate_wait(look.done, NULL);
    if (look.status == TARN_OK && look.stands)
        group->ground_seen_ms = look.begun_ms;
    tarn_status_free(look.status);
    tarn_gate_free(look.done);
    tarn_op_fini(&look.op);
    return s;
}

struct tarn_status *tarn_table__prepare(struct tarn_group *group, struct tarn_head *ground)
{
    group->checked = false;
    group->write_done = false;
    group->ground_hash = tarn_xxh64(ground->json, 0);
    TARN_TRY(tarn_table__head_manifests(&group->op, group->table, ground));
    if (group->count > 0 && group->members[0]->request->commit->finished != NULL)
        return tarn_table__finished_prepare(group);
    return encode_all(group, ground);
}

void tarn_table__write(struct tarn_group *group, const struct tarn_head *look)
{
    struct tarn_table *table = group->table;
    tarn_exec_wait_begin();
    struct tarn_status *s =
        look != NULL && look->id != 0 ? put_and_look(group, look) : put_objects(group);
    tarn_exec_wait_end();
    pthread_mutex_lock(&table->lock);
    group->write_status = s;
    group->write_done = true;
    pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock);
}

static void run_write(void *arg)
{
    tarn_table__write(arg, NULL);
}

/* The group's op is the thread's until it is done. */
void tarn_table__start_write(struct tarn_group *group)
{
    tarn_exec_post(group->table->env->exec, run_write, group);
}

void tarn_table__wait(struct tarn_group *group, const bool *done)
{
    struct tarn_table *table = group->table;
    tarn_exec_wait_begin();
    pthread_mutex_lock(&table->lock);
    while (!*done)
        pthread_cond_wait(&table->news, &table->lock);
    pthread_mutex_unlock(&table->lock);
    tarn_exec_wait_end();
}

void tarn_table__unprepare(struct tarn_group *group)
{
    if (!group->put.taken_back) /* a put that is still under way somewhere may bring it back */
        tarn_table__remove_objects(&group->op, group->table, &group->objects);
    group->objects = (struct tarn_objects){0};
    if (group
            ->merge_used) /* likewise: what a snapshot may name yet is not used again, nor removed */
        tarn_table__merge_settle(&group->op, group->table, group->put.taken_back);
    group->merge_used = false;
    if (group->next != NULL)
        tarn_store_unforesee(group->table->env->store, snapshot_key(group));
    tarn_head_free(group->next);
    group->next = NULL;
    group->ground_seen_ms = TARN_NEVER_MS;
}
