#include "table/expire_internal.h"
#include "table/refs.h"

/*
 * What stays, and so what of a round must stay: the snapshots that are left, tags, and branches with theirs. A file may come back into history after
 * it was deleted, so of the data files nothing is taken on trust: one goes only if none of them has it.
 */

#define DAY_MS INT64_C(86400000)

static void keep_file(struct tarn_leave *leave, struct tarn_slice key)
{
    struct tarn_leaving *l = tarn_map_find(leave->files, key);
    if (l != NULL)
        l->kept = true;
}

static void keep_meta(struct tarn_leave *leave, const char *key)
{
    struct tarn_leaving *l = key == NULL ? NULL : tarn_map_find(leave->meta, tarn_slice_str(key));
    if (l != NULL)
        l->kept = true;
}

/* --- the snapshots that are left, as the index has them --- */

/* Is it live, at whatever level? Seeks from level to level. */
static struct tarn_status *is_live(struct tarn_leave *leave, struct tarn_state_iterator *it,
                                   const struct tarn_leaving *l, bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf at = {0};
    struct tarn_slice key, value;
    tarn_buf_add(&at, leave->table->uuid, TARN_INDEX_UUID_SIZE);
    tarn_buf_add_slice(&at, l->bucket_key);
    size_t prefix_size = at.size;
    int64_t level = INT64_MIN;
    *out = false;
    for (;;) {
        at.size = prefix_size;
        tarn_key_add_i64(&at, level);
        tarn_key_add_bytes(&at, l->name);
        tarn_state_iterator_seek(it, tarn_buf_slice(&at));
        if (!tarn_state_iterator_next(it, &key, &value) || key.size < prefix_size ||
            memcmp(key.data, at.data, prefix_size) != 0)
            return tarn_state_iterator_error(it);
        *out = tarn_slice_starts_with(key, tarn_buf_slice(&at));
        struct tarn_slice rest = tarn_slice_of(key.data + prefix_size, key.size - prefix_size);
        int64_t there;
        if (*out)
            return TARN_OK;
        if (!tarn_key_take_i64(&rest, &there))
            return tarn_table__damaged_value(key);
        level = there > level ? there : level + 1;
    }
}

static struct tarn_status *keep_live(struct tarn_leave *leave)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_buf_add(&from, leave->table->uuid, TARN_INDEX_UUID_SIZE);
    tarn_table__range_end(leave->table->uuid, tarn_slice_str(NULL), &to);
    struct tarn_state_range range = {.from = tarn_buf_slice(&from), .to = tarn_buf_slice(&to)};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(leave->table->env->state, TARN_FAMILY_NAMES, &range);
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(leave->files, &cursor, &key, &value)) {
        struct tarn_leaving *l = value;
        if (!l->kept)
            TARN_TRY(is_live(leave, it, l, &l->kept));
    }
    return TARN_OK;
}

/* What any of them added, took away or wrote as changelog. */
struct tarn_status *tarn_leave__keep_indexed(struct tarn_leave *leave, int64_t from)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf end = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf file_key = {0};
    tarn_table__change_prefix(leave->table->uuid, from + 1, 0, &first);
    tarn_table__range_end(leave->table->uuid, tarn_slice_str(NULL), &end);
    struct tarn_state_range range = {
        .from = tarn_buf_slice(&first), .to = tarn_buf_slice(&end), .is_long = true};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(leave->table->env->state, TARN_FAMILY_CHANGES, &range);
    struct tarn_slice key, value;
    for (size_t steps = 1; leave->data_count > 0 && tarn_state_iterator_next(it, &key, &value);
         steps++) {
        if ((steps & 4095) == 0)
            TARN_TRY(tarn_op_check(leave->op));
        struct tarn_slice rest =
            tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE + 9, key.size - TARN_INDEX_UUID_SIZE - 9);
        size_t size = tarn_table__bucket_size(rest);
        int64_t level, made;
        tarn_buf_clear(&file_key);
        tarn_buf_add(&file_key, rest.data, size);
        rest = tarn_slice_of(rest.data + size, rest.size - size);
        if (size == 0 || !tarn_key_take_i64(&rest, &level) || !tarn_key_take_i64(&rest, &made) ||
            !tarn_key_take_bytes(&rest, &file_key))
            return tarn_table__damaged_value(value);
        keep_file(leave, tarn_buf_slice(&file_key));
    }
    return tarn_state_iterator_error(it);
}

/* --- a version by its manifests --- */

struct hit {
    struct tarn_leaving *file;
    enum tarn_entry_kind kind;
};
struct hits { /* what a manifest says of the files of this round; in the round's arena */
    struct hit *list;
    size_t count;
};

struct searching {
    struct tarn_leave *leave;
    struct hit *list; /* owned */
    size_t count, capacity;
    struct tarn_buf key;
};

static void searching_fini(struct searching *s)
{
    free(s->list);
    tarn_buf_drop(&s->key);
}

static struct tarn_status *search_entries(void *arg, struct tarn_manifest_entry *entries,
                                          size_t count)
{
    struct searching *s = arg;
    for (size_t i = 0; i < count; i++) {
        tarn_buf_clear(&s->key);
        tarn_leave__file_key(&entries[i], &s->key);
        struct tarn_leaving *file = tarn_map_find(s->leave->files, tarn_buf_slice(&s->key));
        if (file == NULL)
            continue;
        TARN_GROW(s->list, s->count, s->capacity);
        s->list[s->count++] = (struct hit){file, entries[i].kind};
    }
    return TARN_OK;
}

/* Each manifest is read once a round, however many versions name it. */
static struct tarn_status *search(struct tarn_leave *leave, struct tarn_op *op,
                                  const struct tarn_manifest_file *file, const struct hits **out)
{
    struct hits *hits = tarn_map_find(leave->seen, file->name);
    *out = hits;
    if (hits != NULL)
        return TARN_OK;
    TARN_OWN(searching_fini) struct searching s = {.leave = leave};
    TARN_TRY(tarn_table__walk_manifest(op, leave->table, file, search_entries, &s));
    hits = tarn_arena_calloc(leave->op->arena, 1, sizeof *hits);
    hits->list = tarn_arena_calloc(leave->op->arena, s.count + 1, sizeof *hits->list);
    hits->count = s.count;
    if (s.count > 0)
        memcpy(hits->list, s.list, s.count * sizeof *s.list);
    tarn_map_set(leave->seen, file->name, hits);
    *out = hits;
    return TARN_OK;
}

struct root { /* what of a version counts */
    struct tarn_op *op;
    bool parts; /* lists and manifests */
    bool live;  /* files that are live in it */
    bool added; /* files that it added */
    bool changelog;
};

static void keep_manifest(struct tarn_leave *leave, struct tarn_op *op, struct tarn_slice name)
{
    keep_meta(leave, tarn_table__key(op, leave->table, "manifest/%.*s", TARN_SLICE_ARG(name)));
}

static void keep_list(struct tarn_leave *leave, const struct root *r, struct tarn_slice name,
                      const struct tarn_manifest_file *files, size_t count)
{
    keep_manifest(leave, r->op, name);
    for (size_t i = 0; i < count; i++)
        keep_manifest(leave, r->op, files[i].name);
}

/* Files that these manifests leave live; all: that they add. */
static struct tarn_status *keep_entries(struct tarn_leave *leave, const struct root *r,
                                        const struct tarn_manifest_file *files, size_t count,
                                        bool all)
{
    const struct hits **hits = tarn_arena_calloc(r->op->arena, count + 1, sizeof *hits);
    for (size_t i = 0; i < count; i++) {
        TARN_TRY(tarn_op_check(leave->op));
        TARN_TRY(search(leave, r->op, &files[i], &hits[i]));
        for (size_t k = 0; k < hits[i]->count; k++)
            hits[i]->list[k].file->net = 0;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < hits[i]->count; k++)
            hits[i]->list[k].file->net += hits[i]->list[k].kind == TARN_ENTRY_ADD ? 1
                                          : all                                   ? 0
                                                                                  : -1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < hits[i]->count; k++)
            hits[i]->list[k].file->kept |= hits[i]->list[k].file->net > 0;
    return TARN_OK;
}

/* A tag keeps no changelog: what came back from one, or branched off it, names one that may be gone. */
static struct tarn_status *keep_changelog(struct tarn_leave *leave, const struct root *r,
                                          const struct tarn_snapshot *snapshot)
{
    struct tarn_manifest_file *files;
    size_t count;
    struct tarn_slice name = snapshot->changelog_list;
    if (!r->changelog || name.data == NULL)
        return TARN_OK;
    struct tarn_status *s = tarn_table__read_list(
        r->op, leave->table, snapshot, TARN_LIST_CHANGELOG, r->op->arena, &files, &count);
    const char *key = tarn_table__key(r->op, leave->table, "manifest/%.*s", TARN_SLICE_ARG(name));
    if (tarn_status_reason(s) == TARN_OBJECT_NOT_FOUND &&
        tarn_map_find(leave->meta, tarn_slice_str(key)) == NULL) {
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_TRY(s);
    keep_list(leave, r, name, files, count);
    return leave->data_count > 0 ? keep_entries(leave, r, files, count, true) : TARN_OK;
}

/* Its index manifest with the files in it, and its statistics: by whatever version, since a roll-back brings old ones back. */
static struct tarn_status *keep_index(struct tarn_leave *leave, struct tarn_op *op,
                                      const struct tarn_snapshot *snapshot)
{
    struct tarn_index_file *files;
    size_t count;
    struct tarn_slice name = snapshot->index_manifest;
    if (!leave->has_index)
        return TARN_OK;
    if (snapshot->statistics.data != NULL)
        keep_meta(leave, tarn_table__key(op, leave->table, "statistics/%.*s",
                                         TARN_SLICE_ARG(snapshot->statistics)));
    if (name.data == NULL || tarn_map_find(leave->seen, name) != NULL)
        return TARN_OK;
    TARN_TRY(tarn_leave__index_manifest(op, leave->table, name, op->arena, &files, &count));
    keep_manifest(leave, op, name);
    for (size_t i = 0; i < count; i++) {
        const char *key;
        TARN_TRY(tarn_leave__index_key(leave, &files[i], &key));
        keep_meta(leave, key);
    }
    tarn_map_set(leave->seen, name, leave);
    return TARN_OK;
}

static struct tarn_status *keep_lists(struct tarn_leave *leave, const struct root *r,
                                      const struct tarn_snapshot *snapshot)
{
    struct tarn_manifest_file *base = NULL, *delta, *both;
    size_t base_count = 0, delta_count;
    TARN_TRY(tarn_table__read_list(r->op, leave->table, snapshot, TARN_LIST_DELTA, r->op->arena,
                                   &delta, &delta_count));
    if (r->parts || r->live)
        TARN_TRY(tarn_table__read_list(r->op, leave->table, snapshot, TARN_LIST_BASE, r->op->arena,
                                       &base, &base_count));
    if (r->parts) {
        keep_list(leave, r, snapshot->base_list, base, base_count);
        keep_list(leave, r, snapshot->delta_list, delta, delta_count);
    }
    if (leave->data_count > 0 && r->added)
        TARN_TRY(keep_entries(leave, r, delta, delta_count, true));
    if (leave->data_count == 0 || !r->live)
        return TARN_OK;
    both = tarn_arena_calloc(r->op->arena, base_count + delta_count + 1, sizeof *both);
    if (base_count > 0)
        memcpy(both, base, base_count * sizeof *base);
    if (delta_count > 0)
        memcpy(both + base_count, delta, delta_count * sizeof *delta);
    return keep_entries(leave, r, both, base_count + delta_count, false);
}

static struct tarn_status *keep_version(struct tarn_leave *leave, const struct root *r,
                                        const struct tarn_snapshot *snapshot)
{
    if (r->parts || r->live || r->added)
        TARN_TRY(keep_lists(leave, r, snapshot));
    TARN_TRY(keep_changelog(leave, r, snapshot));
    return keep_index(leave, r->op, snapshot);
}

/* --- this table's own --- */

/* Manifests are carried from snapshot to snapshot: what `end` doesn't name, no later one does. */
static struct tarn_status *keep_end(struct tarn_leave *leave)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, leave->op);
    struct root r = {.op = &op, .parts = true, .changelog = true};
    struct tarn_snapshot end;
    bool found;
    TARN_TRY(tarn_leave__snapshot(leave, &op, leave->end, &found, &end));
    return found ? keep_version(leave, &r, &end) : TARN_OK;
}

/* A roll-back that is committed as a snapshot (Paimon's OVERWRITE) takes the index manifest and statistics of an old one again. */
static struct tarn_status *keep_taken_again(struct tarn_leave *leave)
{
    static const char overwrite[] = "OVERWRITE";
    for (int64_t id = leave->end + 1; leave->has_index && id <= leave->head_id; id++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
        bool found;
        TARN_TRY(tarn_op_check(leave->op));
        TARN_TRY(tarn_table__indexed_snapshot(leave->table, id, &found, &json));
        if (!found || memmem(json.data, json.size, overwrite, sizeof overwrite - 1) == NULL)
            continue;
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init_child(&op, leave->op);
        struct tarn_snapshot snapshot;
        TARN_TRY(tarn_snapshot_decode(tarn_buf_slice(&json), op.arena, &snapshot));
        TARN_TRY(keep_index(leave, &op, &snapshot));
    }
    return TARN_OK;
}

/* --- tags --- */

static struct tarn_status *list_names(struct tarn_op *op, struct tarn_table *of,
                                      struct tarn_arena *arena, struct tarn_slice **out,
                                      size_t *count)
{
    struct tarn_named *named;
    TARN_TRY(tarn_table__list_named(op, of, "tag", "tag-", &named, count));
    *out = tarn_arena_calloc(arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++)
        (*out)[i] = tarn_arena_copy(arena, named[i].name);
    return TARN_OK;
}

/* *found false: it was dropped meanwhile. */
static struct tarn_status *read_tag(struct tarn_op *op, struct tarn_table *of,
                                    struct tarn_slice name, bool *found, struct tarn_tag *out)
{
    struct tarn_slice json;
    struct tarn_status *s = tarn_table__read_tag(op, of, name, &json, out);
    *found = s == TARN_OK;
    if (tarn_status_reason(s) != TARN_TAG_NOT_FOUND)
        return s;
    tarn_status_free(s);
    return TARN_OK;
}

/* The earliest moment at which a file of the round was made: it is in no version of before. Files say it by the clock of their
 * writer's zone. */
static int64_t oldest_ms(const struct tarn_leave *leave)
{
    int64_t oldest = INT64_MAX;
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(leave->files, &cursor, &key, &value)) {
        const struct tarn_leaving *l = value;
        if (!l->kept)
            oldest = TARN_MIN(oldest, l->made_ms);
    }
    return oldest == INT64_MAX || oldest < INT64_MIN + DAY_MS ? oldest : oldest - DAY_MS;
}

/* A tag of a snapshot that stays, as it is in history, is as good as that. */
static struct tarn_status *is_of_history(struct tarn_leave *leave, const struct tarn_tag *tag,
                                         bool *out)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, leave->op);
    struct tarn_snapshot snapshot;
    *out = false;
    if (tag->snapshot.id < leave->end || tag->snapshot.id > leave->head_id)
        return TARN_OK;
    TARN_TRY(tarn_leave__snapshot(leave, &op, tag->snapshot.id, out, &snapshot));
    *out = *out && tarn_slice_equal(snapshot.delta_list, tag->snapshot.delta_list);
    return TARN_OK;
}

static struct tarn_status *keep_tag(struct tarn_leave *leave, const struct tarn_tag *tag,
                                    int64_t nearest, int64_t oldest)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, leave->op);
    int64_t id = tag->snapshot.id;
    bool of_history;
    TARN_TRY(is_of_history(leave, tag, &of_history));
    /* What an older tag than the nearest has, and the expired ones, too, the nearest has: but for what was deleted and came back. */
    bool near = id >= nearest;
    struct root r = {.op = &op,
                     .parts = !of_history && near,
                     .live = !of_history && (near || tag->snapshot.time_ms >= oldest)};
    struct tarn_status *s = keep_version(leave, &r, &tag->snapshot);
    return s == TARN_OK ? s : tarn_status_wrap(s, "tag %.*s", TARN_SLICE_ARG(tag->name));
}

static struct tarn_status *keep_tags(struct tarn_leave *leave)
{
    int64_t nearest = INT64_MIN, oldest = oldest_ms(leave);
    struct tarn_op *op = leave->op;
    TARN_TRY(list_names(op, leave->table, op->arena, &leave->tag_names, &leave->tag_count));
    struct tarn_tag *tags = tarn_arena_calloc(op->arena, leave->tag_count + 1, sizeof *tags);
    size_t count = 0;
    for (size_t i = 0; i < leave->tag_count; i++) {
        bool found;
        TARN_TRY(tarn_op_check(op));
        TARN_TRY(read_tag(op, leave->table, leave->tag_names[i], &found, &tags[count]));
        if (found && tags[count].snapshot.id <= leave->begin)
            nearest = TARN_MAX(nearest, tags[count].snapshot.id);
        count += found;
    }
    for (size_t i = 0; i < count; i++)
        TARN_TRY(keep_tag(leave, &tags[i], nearest, oldest));
    return TARN_OK;
}

/* --- branches --- */

static struct tarn_status *keep_branch_tags(struct tarn_leave *leave, struct tarn_table *of)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, leave->op);
    struct tarn_slice *names;
    size_t count;
    TARN_TRY(list_names(&op, of, op.arena, &names, &count));
    for (size_t i = 0; i < count; i++) {
        struct root r = {.op = &op, .parts = true, .live = true};
        struct tarn_tag tag;
        bool found;
        TARN_TRY(tarn_op_check(leave->op));
        TARN_TRY(read_tag(&op, of, names[i], &found, &tag));
        if (found)
            TARN_TRY(keep_version(leave, &r, &tag.snapshot));
    }
    return TARN_OK;
}

/* Any of its snapshots may name what is here: it began as one of them, and may have become the table's history (fast-forward). */
static struct tarn_status *keep_branch_snapshots(struct tarn_leave *leave, struct tarn_table *of)
{
    struct tarn_range range;
    TARN_TRY(tarn_table__find_range(leave->op, of, &range));
    for (int64_t id = range.earliest; range.latest != 0 && id <= range.latest; id++) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init_child(&op, leave->op);
        struct root r = {.op = &op,
                         .parts = true,
                         .live = id == range.earliest,
                         .added = id > range.earliest,
                         .changelog = true};
        struct tarn_snapshot snapshot;
        struct tarn_slice json;
        bool found;
        TARN_TRY(tarn_op_check(leave->op));
        TARN_TRY(tarn_table__read_snapshot(&op, of, id, op.arena, &found, &json, &snapshot));
        if (!found)
            return tarn_status_new(TARN_BUSY, "the history of table %s changes meanwhile",
                                   tarn_table_name(of));
        TARN_TRY(keep_version(leave, &r, &snapshot));
    }
    return TARN_OK;
}

static struct tarn_status *keep_branch(struct tarn_leave *leave, struct tarn_slice name)
{
    const char *title =
        name.size == 0 ? tarn_table_name(leave->table)
                       : tarn_arena_printf(leave->op->arena, "%s, branch %.*s",
                                           tarn_table_name(leave->table), TARN_SLICE_ARG(name));
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *of =
        tarn_table__bare(leave->table->env, tarn_table_path(leave->table), name, title);
    TARN_TRY(keep_branch_snapshots(leave, of));
    return keep_branch_tags(leave, of);
}

/* Of the table that `table` belongs to, each but itself; the main branch is "". */
static struct tarn_status *list_branches(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_slice **out, size_t *count)
{
    struct tarn_slice *names;
    size_t n;
    TARN_TRY(tarn_table_branches(op, table, &names, &n));
    *out = tarn_arena_calloc(op->arena, n + 2, sizeof **out);
    *count = 0;
    if (table->branch[0] != '\0')
        (*out)[(*count)++] = tarn_slice_str("");
    for (size_t i = 0; i < n; i++)
        if (!tarn_slice_is(names[i], table->branch))
            (*out)[(*count)++] = names[i];
    return TARN_OK;
}

static struct tarn_status *keep_branches(struct tarn_leave *leave)
{
    TARN_TRY(list_branches(leave->op, leave->table, &leave->branch_names, &leave->branch_count));
    for (size_t i = 0; i < leave->branch_count; i++)
        TARN_TRY(keep_branch(leave, leave->branch_names[i]));
    return TARN_OK;
}

struct tarn_status *tarn_leave__check_refs(struct tarn_leave *leave, bool *same)
{
    struct tarn_slice *tags, *branches;
    size_t tag_count, branch_count;
    struct tarn_op *op = leave->op;
    TARN_TRY(list_names(op, leave->table, op->arena, &tags, &tag_count));
    TARN_TRY(list_branches(op, leave->table, &branches, &branch_count));
    *same = tarn_slices_equal(tags, tag_count, leave->tag_names, leave->tag_count) &&
            tarn_slices_equal(branches, branch_count, leave->branch_names, leave->branch_count);
    return TARN_OK;
}

struct tarn_status *tarn_leave__keep(struct tarn_leave *leave)
{
    TARN_TRY(keep_live(leave));
    TARN_TRY(tarn_leave__keep_indexed(leave, leave->end));
    TARN_TRY(keep_end(leave));
    TARN_TRY(keep_taken_again(leave));
    TARN_TRY(keep_tags(leave));
    return keep_branches(leave);
}
