#include "history.h"

#include <stdio.h>

/*
 * What really happened. The store at the bottom tells of each snapshot that comes or goes; each is read with
 * nothing but the decoders of room format and held against the one before and against what clients asked for.
 */

struct latest { /* the newest snapshot from event `seq` on */
    int seq;
    int64_t ms;
    struct snap *snap;
};
static struct latest *latests;
static size_t latest_count, latest_capacity;
static _Thread_local enum removal my_removal = REMOVED_BY_US;

enum removal *removal_by_me(void)
{
    return &my_removal;
}

/* --- sets of files --- */

static size_t files_place(const struct files *files, const struct file *file, bool *found)
{
    size_t low = 0, high = files->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (files->list[middle]->number < file->number)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < files->count && files->list[low] == file;
    return low;
}

void files_add(struct files *files, struct file *file)
{
    bool found;
    size_t at = files_place(files, file, &found);
    if (found)
        return;
    TARN_GROW(files->list, files->count, files->capacity);
    memmove(&files->list[at + 1], &files->list[at], (files->count - at) * sizeof *files->list);
    files->list[at] = file;
    files->count++;
}

bool files_remove(struct files *files, const struct file *file)
{
    bool found;
    size_t at = files_place(files, file, &found);
    if (!found)
        return false;
    files->count--;
    memmove(&files->list[at], &files->list[at + 1], (files->count - at) * sizeof *files->list);
    return true;
}

bool files_have(const struct files *files, const struct file *file)
{
    bool found;
    files_place(files, file, &found);
    return found;
}

bool files_equal(const struct files *a, const struct files *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->list, b->list, a->count * sizeof *a->list) == 0);
}

void files_copy(struct files *to, const struct files *from)
{
    to->count = 0;
    for (size_t i = 0; i < from->count; i++)
        files_add(to, from->list[i]);
}

static const char *files_text(const struct files *files)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < files->count; i++)
        tarn_buf_printf(&text, " %s", files->list[i]->name);
    return tarn_arena_str(world->op->arena, tarn_buf_slice(&text));
}

/* --- data files --- */

struct file *file_new(struct request *request, int part, int partition, int bucket, int level)
{
    struct file *file = tarn_calloc(1, sizeof *file);
    file->number = (int)world->file_count;
    file->request = request;
    file->part = part;
    file->partition = partition;
    file->bucket = bucket;
    file->level = level;
    file->low = level > 0 ? 0 : file->number;
    file->high = level > 0 ? 100000 : file->number + 9;
    file->first_sequence = file->number * 100;
    if (request == NULL)
        snprintf(file->name, sizeof file->name, "x%d", file->number);
    else
        snprintf(file->name, sizeof file->name, "r%d%c%d", request->number, "ac"[part],
                 file -> number);
    TARN_GROW(world->files, world->file_count, world->file_capacity);
    world->files[world->file_count++] = file;
    tarn_map_set(world->file_by_name, tarn_slice_str(file->name), file);
    return file;
}

struct file *changelog_file_new(struct request *request, int part, const struct file *of)
{
    struct file *file = file_new(request, part, of->partition, of->bucket, 0);
    file->is_changelog = true;
    return file;
}

struct index_file *index_file_new(struct request *request, int part, const struct file *of,
                                  const struct snap *base)
{
    struct index_file *index = tarn_calloc(1, sizeof *index);
    index->request = request;
    index->part = part;
    index->partition = of->partition;
    index->bucket = of->bucket;
    index->made_from = base == NULL ? NULL : base->indexes.of[of->partition][of->bucket];
    index->data_file = tarn_slice_str(of->name);
    snprintf(index->name, sizeof index->name, "i%d", world->index_count++);
    tarn_map_set(world->index_by_name, tarn_slice_str(index->name), index);
    return index;
}

bool is_overwrite(const struct request *r)
{
    return r->commit.kind == TARN_COMMIT_OVERWRITE ||
           (r->index[0] != NULL &&
            strcmp(world->plan.index_type, TARN_INDEX_DELETION_VECTORS) == 0);
}

static bool overwrites_partition(const struct request *r, int partition)
{
    const struct file any = {.partition = partition};
    return overwrites(r, &any);
}

bool overwrites(const struct request *r, const struct file *file)
{
    switch (r->commit.overwrite) {
    case TARN_OVERWRITE_NONE:
        return false;
    case TARN_OVERWRITE_TABLE:
        return true;
    case TARN_OVERWRITE_PARTITIONS:
        return file->partition == r->partition;
    case TARN_OVERWRITE_DYNAMIC:
        break;
    }
    for (size_t i = 0; i < r->adds[0].count; i++)
        if (r->adds[0].list[i]->partition == file->partition)
            return true;
    return false;
}

struct file *file_find(struct tarn_slice name)
{
    return tarn_map_find(world->file_by_name, name);
}

static struct tarn_slice key_row(int64_t id)
{
    static const struct tarn_type type = {.id = TARN_TYPE_BIGINT};
    const struct tarn_type *types[] = {&type};
    struct tarn_value value = {.integer = id};
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    tarn_row_serialize(types, &value, 1, &row);
    return tarn_arena_copy(world->op->arena, tarn_buf_slice(&row));
}

static struct tarn_slice partition_row(int partition)
{
    static const struct tarn_type type = {.id = TARN_TYPE_INT};
    const struct tarn_type *types[] = {&type};
    struct tarn_value value = {.integer = partition};
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    if (world->plan.partitions == 1)
        return tarn_row_empty();
    tarn_row_serialize(types, &value, 1, &row);
    return tarn_arena_copy(world->op->arena, tarn_buf_slice(&row));
}

struct tarn_manifest_entry file_entry(const struct file *file, enum tarn_entry_kind kind)
{
    static int64_t no_nulls[1];
    struct tarn_manifest_entry e = {.kind = kind,
                                    .partition = partition_row(file->partition),
                                    .bucket = file->bucket,
                                    .total_buckets = 2};
    e.file = (struct tarn_data_file){.name = tarn_slice_str(file->name),
                                     .size = 1000,
                                     .row_count = 10,
                                     .min_key = key_row(file->low),
                                     .max_key = key_row(file->high),
                                     .value_stats = tarn_stats_empty(),
                                     .min_sequence = file->first_sequence,
                                     .max_sequence = file->first_sequence + 9,
                                     .level = file->level,
                                     .creation_time_ms = 1,
                                     .source =
                                         file->level > 0 ? TARN_SOURCE_COMPACT : TARN_SOURCE_APPEND,
                                     .has_value_stats_columns = true,
                                     .first_row_id = TARN_FILE_NONE};
    e.file.key_stats = (struct tarn_stats){e.file.min_key, e.file.max_key, no_nulls, 1};
    return e;
}

struct tarn_index_file index_entry(const struct index_file *index, enum tarn_entry_kind kind)
{
    struct tarn_vector_range *range = tarn_arena_calloc(world->op->arena, 1, sizeof *range);
    *range = (struct tarn_vector_range){
        .data_file = index->data_file, .offset = 1, .length = 22, .cardinality = 1};
    bool vectors = strcmp(world->plan.index_type, TARN_INDEX_DELETION_VECTORS) == 0;
    return (struct tarn_index_file){.kind = kind,
                                    .partition = partition_row(index->partition),
                                    .bucket = index->bucket,
                                    .type = tarn_slice_str(world->plan.index_type),
                                    .name = tarn_slice_str(index->name),
                                    .size = 40,
                                    .row_count = 1,
                                    .has_vectors = vectors,
                                    .vectors = range,
                                    .vector_count = vectors};
}

/* --- readers of our own --- */

static bool may_miss, missed; /* of a snapshot that may stand on what was rewritten meanwhile */

static struct tarn_slice read_object(const char *folder, struct tarn_slice name)
{
    struct tarn_arena *arena = world->op->arena;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_status *s = tarn_store_get(
        world->memory, world->op,
        tarn_arena_printf(arena, HISTORY_TABLE "/%s/%.*s", folder, TARN_SLICE_ARG(name)), &bytes);
    if (s != TARN_OK && may_miss) {
        tarn_status_free(s);
        missed = true;
        return tarn_slice_str(NULL);
    }
    if (s != TARN_OK)
        broken("a snapshot names %s/%.*s, which isn't there", folder, TARN_SLICE_ARG(name));
    return tarn_arena_copy(arena, tarn_buf_slice(&bytes));
}

struct manifest { /* decoded once: objects never change, but they may be gone */
    struct tarn_manifest_entry *entries;
    size_t count;
};

static bool is_there(struct tarn_slice name)
{
    bool found;
    struct tarn_status *s = tarn_store_stat(
        world->memory, world->op,
        tarn_arena_printf(world->op->arena, HISTORY_TABLE "/manifest/%.*s", TARN_SLICE_ARG(name)),
        &found, NULL);
    tarn_assert(s == TARN_OK);
    return found;
}

static const struct manifest *read_manifest(struct tarn_slice name)
{
    struct manifest *m = tarn_map_find(world->manifests, name);
    if (m != NULL && is_there(name))
        return m;
    struct tarn_slice bytes = read_object("manifest", name);
    if (missed)
        return NULL;
    m = tarn_arena_calloc(world->op->arena, 1, sizeof *m);
    struct tarn_status *s = tarn_manifest_decode(bytes, world->op->arena, &m->entries, &m->count);
    if (s != TARN_OK)
        broken("manifest %.*s: %s", TARN_SLICE_ARG(name), tarn_status_message(s));
    tarn_map_set(world->manifests, name, m);
    return m;
}

static void read_entries(struct tarn_slice list, struct tarn_manifest_entry **out, size_t *count)
{
    struct tarn_arena *arena = world->op->arena;
    struct tarn_manifest_file *manifests;
    size_t manifest_count, capacity = 0;
    *out = NULL;
    *count = 0;
    struct tarn_slice bytes = read_object("manifest", list);
    if (missed)
        return;
    struct tarn_status *s = tarn_manifest_list_decode(bytes, arena, &manifests, &manifest_count);
    if (s != TARN_OK)
        broken("manifest list %.*s: %s", TARN_SLICE_ARG(list), tarn_status_message(s));
    for (size_t m = 0; m < manifest_count; m++) {
        const struct manifest *one = read_manifest(manifests[m].name);
        if (one == NULL)
            return;
        for (size_t i = 0; i < one->count; i++) {
            TARN_GROW(*out, *count, capacity);
            (*out)[(*count)++] = one->entries[i];
        }
    }
}

static struct file *entry_file(const struct tarn_manifest_entry *entry)
{
    struct file *file = file_find(entry->file.name);
    /* Paimon lifts what an overwrite brings to the top level. */
    if (file != NULL && entry->file.level == 5 && file->request != NULL &&
        file->request->commit.overwrite != TARN_OVERWRITE_NONE)
        file->level = 5;
    if (file == NULL)
        broken("a manifest names file %.*s, which nobody wrote", TARN_SLICE_ARG(entry->file.name));
    if (entry->bucket != file->bucket || entry->file.level != file->level)
        broken("a manifest has file %s in bucket %d, level %d and not %d, %d", file->name,
               entry->bucket, entry->file.level, file->bucket, file->level);
    if (!tarn_slice_equal(entry->partition, partition_row(file->partition)))
        broken("a manifest has file %s in another partition than %d", file->name, file->partition);
    return file;
}

void read_delta(const struct tarn_snapshot *s, struct files *added, struct files *removed)
{
    struct tarn_manifest_entry *entries;
    size_t count;
    read_entries(s->delta_list, &entries, &count);
    for (size_t i = 0; i < count; i++) {
        struct file *file = entry_file(&entries[i]);
        struct files *to = entries[i].kind == TARN_ENTRY_ADD ? added : removed;
        if (files_have(added, file) || files_have(removed, file))
            broken("the delta of snapshot %" PRId64 " names %s twice", s->id, file->name);
        files_add(to, file);
    }
    free(entries);
}

static void read_changes(const struct tarn_snapshot *s, struct files *changes)
{
    struct tarn_manifest_entry *entries;
    size_t count;
    if (s->changelog_list.size == 0)
        return;
    read_entries(s->changelog_list, &entries, &count);
    for (size_t i = 0; i < count; i++) {
        struct file *file = entry_file(&entries[i]);
        if (!file->is_changelog || entries[i].kind != TARN_ENTRY_ADD || files_have(changes, file))
            broken("the changelog of snapshot %" PRId64 " has %s, twice or as none", s->id,
                   file->name);
        files_add(changes, file);
    }
    free(entries);
}

static void read_indexes(const struct tarn_snapshot *s, struct indexes *out)
{
    struct tarn_index_file *list;
    size_t count;
    *out = (struct indexes){0};
    if (s->index_manifest.size == 0)
        return;
    struct tarn_slice bytes = read_object("manifest", s->index_manifest);
    if (missed)
        return;
    struct tarn_status *status = tarn_index_manifest_decode(bytes, world->op->arena, &list, &count);
    if (status != TARN_OK)
        broken("index manifest %.*s: %s", TARN_SLICE_ARG(s->index_manifest),
               tarn_status_message(status));
    for (size_t i = 0; i < count; i++) {
        const struct index_file *index = tarn_map_find(world->index_by_name, list[i].name);
        if (index == NULL || list[i].bucket != index->bucket ||
            !tarn_slice_equal(list[i].partition, partition_row(index->partition)))
            broken("snapshot %" PRId64 " has index file %.*s, out of nothing or of another bucket",
                   s->id, TARN_SLICE_ARG(list[i].name));
        if (out->of[index->partition][index->bucket] != NULL)
            broken("snapshot %" PRId64 " has two index files of bucket %d: %s", s->id,
                   index->bucket, index->name);
        out->of[index->partition][index->bucket] = index;
    }
}

/* Paimon's rule: an entry that any manifest deletes is gone, wherever the ADD stands. */
void read_live(const struct tarn_snapshot *s, bool with_delta, struct files *live)
{
    struct files deleted = {0};
    for (int pass = 0; pass < 2; pass++) {
        struct tarn_slice lists[] = {s->base_list, s->delta_list};
        for (int l = 0; l < (with_delta ? 2 : 1); l++) {
            struct tarn_manifest_entry *entries;
            size_t count;
            read_entries(lists[l], &entries, &count);
            for (size_t i = 0; i < count; i++) {
                struct file *file = entry_file(&entries[i]);
                if (pass == 0 && entries[i].kind == TARN_ENTRY_DELETE)
                    files_add(&deleted, file);
                if (pass == 1 && entries[i].kind == TARN_ENTRY_ADD && !files_have(&deleted, file)) {
                    if (files_have(live, file))
                        broken("the manifests of snapshot %" PRId64 " add %s twice", s->id,
                               file->name);
                    files_add(live, file);
                }
            }
            free(entries);
        }
    }
    free(deleted.list);
}

/* --- which snapshot was there when --- */

struct snap *truth_latest(void)
{
    return latest_count == 0 ? NULL : latests[latest_count - 1].snap;
}

int64_t truth_earliest_id(void)
{
    for (int64_t id = TARN_MAX(world->hinted, (int64_t)1); id < HISTORY_IDS_MAX; id++)
        if (world->at[id] != NULL && !world->at[id]->floating)
            return id;
    return 0;
}

static void note_latest(int seq)
{
    struct snap *latest = NULL;
    for (int64_t id = HISTORY_IDS_MAX - 1; id > 0 && latest == NULL; id--)
        if (world->at[id] != NULL && !world->at[id]->floating)
            latest = world->at[id];
    if (latest == truth_latest())
        return;
    TARN_GROW(latests, latest_count, latest_capacity);
    latests[latest_count++] = (struct latest){seq, sim_now_ms(), latest};
}

bool truth_was_latest(const struct snap *snap, int64_t from_ms, int seq)
{
    if (snap == NULL && (latest_count == 0 || latests[0].ms >= from_ms))
        return true;
    for (size_t i = 0; i < latest_count; i++) {
        bool over = i + 1 < latest_count && latests[i + 1].ms < from_ms;
        if (latests[i].snap == snap && latests[i].seq <= seq && !over)
            return true;
    }
    return false;
}

bool truth_survives(const struct snap *snap, int seq)
{
    return snap->removed_seq > seq ||
           (snap->removal != REMOVED_ROLL_BACK && snap->removal != REMOVED_BY_US);
}

struct snap *truth_find(int64_t id, struct tarn_slice delta_list)
{
    for (size_t i = world->snap_count; i-- > 0;)
        if (world->snaps[i]->id == id &&
            tarn_slice_equal(world->snaps[i]->s.delta_list, delta_list))
            return world->snaps[i];
    return NULL;
}

void truth_seen(struct snap *snap)
{
    for (; snap != NULL && !snap->seen; snap = snap->parent)
        snap->seen = true;
}

bool truth_expired(const struct snap *snap)
{
    return snap->removal == REMOVED_EXPIRE ||
           (snap->removal == REMOVED_NOT && snap->id < world->hinted);
}

bool may_rewrite(void)
{
    /* Two who rewrite the past at once harm each other: neither Paimon's nor ours can see the other begin. */
    if (world->plan.keep_last > 0 && (world->expiring > 0 || world->ghosts > 0 ||
                                      tarn_store_faulty_late_count(world->faulty) > 0))
        return false;
    return world->floating_count == 0 &&
           (!world->plan.lose_state ||
            (world->ghosts == 0 &&
             (!world->plan.kills || tarn_store_faulty_late_count(world->faulty) == 0)));
}

/* --- one more snapshot --- */

#define MEMBERS_MAX 512

struct members {
    struct request *list[MEMBERS_MAX];
    int part, count;
};

static void add_overwritten(const struct snap *snap, const struct request *r, struct files *removed)
{
    for (size_t i = 0; snap->parent != NULL && i < snap->parent->live.count; i++)
        if (overwrites(r, snap->parent->live.list[i]))
            files_add(removed, snap->parent->live.list[i]);
}

/* A partition that was dropped: nothing is added that tells whose snapshot it is. Only streams do that here. */
static struct request *find_drop(const struct snap *snap)
{
    if (snap->s.kind != TARN_COMMIT_OVERWRITE)
        return NULL;
    for (size_t i = 0; i < world->request_count; i++) {
        struct request *r = world->requests[i];
        if (r->commit.overwrite != TARN_OVERWRITE_NONE && r->adds[0].count == 0 &&
            r->identifier == snap->s.commit_identifier &&
            tarn_slice_equal(r->commit.user, snap->s.commit_user))
            return r;
    }
    return NULL;
}

/* Whose parts are in this snapshot: each whole, and nothing else. */
static void find_members(const struct snap *snap, struct members *members)
{
    struct files removed = {0}, changes = {0};
    members->count = 0;
    members->part = -1;
    for (size_t i = 0; i < snap->added.count; i++) {
        struct file *file = snap->added.list[i];
        struct request *r = file->request;
        if (r == NULL)
            broken("snapshot %" PRId64 " adds the foreign file %s", snap->id, file->name);
        if (members->part >= 0 && members->part != file->part)
            broken("snapshot %" PRId64 " mixes append and compact parts", snap->id);
        members->part = file->part;
        if (members->count > 0 && members->list[members->count - 1] == r)
            continue; /* files of one request have numbers in a row */
        members->list[members->count++] = r;
        for (size_t f = 0; f < r->changes[file->part].count; f++)
            files_add(&changes, r->changes[file->part].list[f]);
        for (size_t f = 0; f < r->adds[file->part].count; f++)
            if (!files_have(&snap->added, r->adds[file->part].list[f]))
                broken("snapshot %" PRId64 " has request %d but for its file %s", snap->id,
                       r->number, r->adds[file->part].list[f]->name);
        for (size_t f = 0; f < r->removes[file->part].count; f++)
            files_add(&removed, r->removes[file->part].list[f]);
        if (file->part == 0)
            add_overwritten(snap, r, &removed);
    }
    struct request *drop = members->count == 0 ? find_drop(snap) : NULL;
    if (drop != NULL) {
        members->part = 0;
        members->list[members->count++] = drop;
        add_overwritten(snap, drop, &removed);
    }
    if (!files_equal(&changes, &snap->changes))
        broken("the changelog of snapshot %" PRId64 " is%s; asked for was%s", snap->id,
               files_text(&snap->changes), files_text(&changes));
    free(changes.list);
    if (!files_equal(&removed, &snap->removed))
        broken("snapshot %" PRId64 " removes%s; asked for was%s", snap->id,
               files_text(&snap->removed), files_text(&removed));
    free(removed.list);
}

static void check_kind(const struct snap *snap, const struct members *members)
{
    enum tarn_commit_kind kind = members->part == 1 ? TARN_COMMIT_COMPACT : TARN_COMMIT_APPEND;
    if (members->count == 0) {
        if (snap->s.kind != TARN_COMMIT_COMPACT)
            broken("snapshot %" PRId64 " is empty and %s", snap->id,
                   tarn_commit_kind_name(snap->s.kind));
        return;
    }
    if (members->part == 0)
        kind =
            is_overwrite(members->list[0]) ? TARN_COMMIT_OVERWRITE : members->list[0]->commit.kind;
    if (snap->s.kind != kind)
        broken("snapshot %" PRId64 " is %s", snap->id, tarn_commit_kind_name(snap->s.kind));
    if (kind == TARN_COMMIT_OVERWRITE && members->count != 1)
        broken("an overwrite shares snapshot %" PRId64, snap->id);
}

static const char *index_name(const struct index_file *index)
{
    return index == NULL ? "none" : index->name;
}

/* What is live after it is what was, but for what its members bring; each was made from what it replaces. */
static void check_indexes(const struct snap *snap, const struct members *members)
{
    struct indexes want = {0};
    if (snap->parent != NULL)
        want = snap->parent->indexes;
    for (int i = 0; i < members->count; i++) {
        const struct request *r = members->list[i];
        const struct index_file *index = r->index[members->part];
        for (int p = 0; members->part == 0 && p < HISTORY_PARTITIONS_MAX; p++)
            if (overwrites_partition(r, p))
                want.of[p][0] = want.of[p][1] = NULL;
        if (index == NULL)
            continue;
        const struct index_file **place = &want.of[index->partition][index->bucket];
        if (*place != index->made_from && r->commit.overwrite == TARN_OVERWRITE_NONE)
            broken("snapshot %" PRId64 " brings index file %s, made from %s where %s is", snap->id,
                   index->name, index_name(index->made_from), index_name(*place));
        *place = index;
    }
    for (int p = 0; p < HISTORY_PARTITIONS_MAX; p++)
        for (int b = 0; b < HISTORY_BUCKETS; b++)
            if (want.of[p][b] != snap->indexes.of[p][b])
                broken("snapshot %" PRId64 " has index file %s in bucket %d and not %s", snap->id,
                       index_name(snap->indexes.of[p][b]), b, index_name(want.of[p][b]));
}

static bool same(struct tarn_slice a, const char *b)
{
    return tarn_slice_equal(a, tarn_slice_str(b));
}

static struct tarn_slice property(const struct tarn_snapshot *s, const char *key)
{
    for (size_t i = 0; i < s->property_count; i++)
        if (same(s->properties[i].key, key))
            return s->properties[i].value;
    return tarn_slice_str(NULL);
}

/* Every member but the one that the snapshot carries has its receipt, and nobody else has one. */
static void check_receipts(const struct snap *snap, const struct members *members,
                           const struct request *carried)
{
    struct tarn_slice text = property(&snap->s, "tarn.receipts");
    int hidden = members->count - (carried != NULL);
    int found = 0;
    for (size_t i = 0; i + 1 < text.size; i++)
        found += text.data[i] == '[' && text.data[i + 1] == '"';
    /* A batch whose entries don't tell its content has a receipt although it is alone. */
    if (carried != NULL && !carried->streaming && found > 0) {
        carried = NULL;
        hidden++;
    }
    if (found != hidden)
        broken("snapshot %" PRId64 " hides %d identities and has %d receipts: %.*s", snap->id,
               hidden, found, TARN_SLICE_ARG(text));
    for (int i = 0; i < members->count; i++) {
        const struct request *r = members->list[i];
        char want[80];
        int n = snprintf(want, sizeof want, "[\"%s\",%" PRId64, r->user, r->identifier);
        if (r != carried && memmem(text.data, text.size, want, (size_t)n) == NULL)
            broken("snapshot %" PRId64 " lacks the receipt of request %d: %s in %.*s", snap->id,
                   r->number, want, TARN_SLICE_ARG(text));
        n = snprintf(want, sizeof want, "%016" PRIx64, r->content);
        if (r != carried && !r->streaming && r->content != 0 &&
            memmem(text.data, text.size, want, (size_t)n) == NULL)
            broken("snapshot %" PRId64 " lacks the content %s of request %d: %.*s", snap->id, want,
                   r->number, TARN_SLICE_ARG(text));
    }
}

/* Stock clients walk snapshots back for their user's last identifier: what a snapshot carries must be it. */
static void check_identity(const struct snap *snap, const struct members *members)
{
    const struct request *last = NULL;
    bool all = strcmp(world->plan.group_commit, "all") == 0;
    for (int i = 0; i < members->count; i++) {
        const struct request *r = members->list[i];
        if (!r->streaming)
            continue;
        if (last != NULL && strcmp(last->user, r->user) != 0) {
            if (!all)
                broken("snapshot %" PRId64 " holds two streaming users: %s and %s", snap->id,
                       last->user, r->user);
            continue;
        }
        if (last == NULL || r->identifier > last->identifier)
            last = r;
    }
    if (last == NULL && members->count == 1)
        last = members->list[0];
    if (members->count > 1 && strcmp(world->plan.group_commit, "none") == 0)
        broken("snapshot %" PRId64 " has %d members where tarn.group-commit is none", snap->id,
               members->count);
    if (last == NULL) {
        if (!same(snap->s.commit_user, "tarn") || snap->s.commit_identifier != snap->id)
            broken("snapshot %" PRId64 " of %d batches carries (%.*s, %" PRId64 ")", snap->id,
                   members->count, TARN_SLICE_ARG(snap->s.commit_user), snap->s.commit_identifier);
    } else if (!all) {
        if (!same(snap->s.commit_user, last->user) || snap->s.commit_identifier != last->identifier)
            broken("snapshot %" PRId64 " carries (%.*s, %" PRId64 ") and not (%s, %" PRId64 ")",
                   snap->id, TARN_SLICE_ARG(snap->s.commit_user), snap->s.commit_identifier,
                   last->user, last->identifier);
    }
    if (!all)
        check_receipts(snap, members, last);
}

/* Was there a reason for this request to land now? */
static void check_cause(const struct snap *snap, const struct request *r)
{
    for (int i = 0; i < r->call_count; i++) {
        const struct call *c = &r->calls[i];
        bool refused = c->end != HISTORY_NEVER && c->told == TOLD_REFUSED && c->ids[0] == 0;
        if (!refused && c->begin > r->settled_seq)
            return;
    }
    broken("request %d lands in snapshot %" PRId64 ", after all its calls were answered \"not "
           "committed\"",
           r->number, snap->id);
}

static bool may_be_forgotten(void)
{
    return world->receipts_may_be_lost || world->history_has_gaps;
}

static void check_once(struct snap *snap, struct request *r, int part)
{
    for (int i = 0; i < r->landing_count[part]; i++) {
        const struct snap *before = r->landings[part][i];
        if (truth_expired(before) && may_be_forgotten())
            continue; /* nothing is left that tells of it */
        if (before != snap && !before->floating && truth_survives(before, snap->created_seq))
            broken("request %d lands twice, in snapshots %" PRId64 " and %" PRId64, r->number,
                   before->id, snap->id);
    }
}

/* Identifiers of a streaming user rise along the history. */
static void check_rising(const struct snap *snap, const struct request *r)
{
    for (size_t i = 0; i < world->request_count; i++) {
        const struct request *other = world->requests[i];
        if (!other->streaming || strcmp(other->user, r->user) != 0 ||
            other->identifier <= r->identifier)
            continue;
        for (int l = 0; l < other->landing_count[0]; l++) {
            const struct snap *before = other->landings[0][l];
            if (truth_expired(before) && may_be_forgotten())
                continue;
            if (before != snap && !before->floating && truth_survives(before, snap->created_seq))
                broken("identifier %" PRId64 " of %s lands in snapshot %" PRId64 ", %" PRId64
                       " had landed in %" PRId64,
                       r->identifier, r->user, snap->id, other->identifier, before->id);
        }
    }
}

static void check_numbers(const struct snap *snap, const struct members *members)
{
    const struct tarn_snapshot *s = &snap->s;
    int64_t delta = 10 * ((int64_t)snap->added.count - (int64_t)snap->removed.count);
    int64_t before = snap->parent == NULL ? 0 : snap->parent->s.total_record_count;
    if (s->delta_record_count != delta || s->total_record_count != before + delta)
        broken("snapshot %" PRId64 " counts %" PRId64 " + %" PRId64 " records; %" PRId64
               " before it, %" PRId64 " in it",
               s->id, s->total_record_count, s->delta_record_count, before, delta);
    if (TARN_MAX(s->changelog_record_count, (int64_t)0) != 10 * (int64_t)snap->changes.count)
        broken("snapshot %" PRId64 " counts %" PRId64 " changed records in %zu files", s->id,
               s->changelog_record_count, snap->changes.count);
    int64_t watermark = snap->parent == NULL ? TARN_SNAPSHOT_NONE : snap->parent->s.watermark;
    for (int i = 0; i < members->count; i++)
        watermark = TARN_MAX(watermark, members->list[i]->commit.watermark);
    if (s->watermark != watermark)
        broken("snapshot %" PRId64 " has watermark %" PRId64 " and not %" PRId64, s->id,
               s->watermark, watermark);
    if (snap->parent != NULL && s->time_ms < snap->parent->s.time_ms)
        broken("snapshot %" PRId64 " is older than the one before it", s->id);
}

/* Its ground: the snapshot before it, whose files are its base. */
static bool stands(struct snap *snap)
{
    struct snap *latest = truth_latest();
    if (latest != NULL && snap->id <= latest->id)
        return false;
    if (snap->id <= world->expired_to)
        return false;
    struct snap *parent = world->at[snap->id - 1];
    if (snap->id > 1 && (parent == NULL || parent->floating))
        return false;
    may_miss = world->last_rewrite_ms >= 0;
    read_live(&snap->s, false, &snap->live);
    read_delta(&snap->s, &snap->added, &snap->removed);
    read_changes(&snap->s, &snap->changes);
    read_indexes(&snap->s, &snap->indexes);
    bool whole = !missed;
    may_miss = missed = false;
    snap->parent = parent;
    return whole &&
           (parent == NULL ? snap->live.count == 0 : files_equal(&snap->live, &parent->live));
}

static void check_delta(struct snap *snap)
{
    for (size_t i = 0; i < snap->removed.count; i++)
        if (!files_remove(&snap->live, snap->removed.list[i]))
            broken("snapshot %" PRId64 " removes %s, which isn't live", snap->id,
                   snap->removed.list[i]->name);
    for (size_t i = 0; i < snap->added.count; i++) {
        if (files_have(&snap->live, snap->added.list[i]))
            broken("snapshot %" PRId64 " adds %s, which is live", snap->id,
                   snap->added.list[i]->name);
        files_add(&snap->live, snap->added.list[i]);
    }
    struct files read = {0};
    read_live(&snap->s, true, &read);
    if (!files_equal(&read, &snap->live))
        broken("the manifests of snapshot %" PRId64 " say%s, its history says%s", snap->id,
               files_text(&read), files_text(&snap->live));
    free(read.list);
}

static void check_ours(struct snap *snap)
{
    struct members members;
    find_members(snap, &members);
    check_kind(snap, &members);
    check_indexes(snap, &members);
    check_numbers(snap, &members);
    check_identity(snap, &members);
    for (int i = 0; i < members.count; i++) {
        struct request *r = members.list[i];
        check_cause(snap, r);
        check_once(snap, r, members.part);
        if (r->streaming && members.part == 0)
            check_rising(snap, r);
    }
}

static void add_landing(struct request *r, int part, struct snap *snap)
{
    tarn_assert(r->landing_count[part] < LANDINGS_MAX);
    r->landings[part][r->landing_count[part]++] = snap;
}

static void add_landings(struct snap *snap)
{
    const struct request *last = NULL;
    for (size_t i = 0; i < snap->added.count; i++) {
        struct file *file = snap->added.list[i];
        struct request *r = file->request;
        if (r == NULL || r == last)
            continue;
        last = r;
        add_landing(r, file->part, snap);
    }
    struct request *drop = snap->added.count == 0 ? find_drop(snap) : NULL;
    if (drop != NULL)
        add_landing(drop, 0, snap);
}

static void created(int64_t id, struct tarn_slice body)
{
    struct tarn_arena *arena = world->op->arena;
    struct snap *snap = tarn_calloc(1, sizeof *snap);
    snap->id = id;
    snap->number = (int)world->snap_count;
    snap->removed_seq = HISTORY_NEVER;
    snap->created_ms = sim_now_ms();
    snap->json = tarn_arena_copy(arena, body);
    struct tarn_status *s = tarn_snapshot_decode(snap->json, arena, &snap->s);
    if (s != TARN_OK)
        broken("snapshot %" PRId64 ": %s", id, tarn_status_message(s));
    if (snap->s.id != id)
        broken("snapshot-%" PRId64 " says it is %" PRId64, id, snap->s.id);
    snap->foreign =
        snap->s.commit_user.size > 7 && memcmp(snap->s.commit_user.data, "foreign", 7) == 0;
    TARN_GROW(world->snaps, world->snap_count, world->snap_capacity);
    world->snaps[world->snap_count++] = snap;
    snap->floating = !stands(snap);
    snap->created_seq =
        note("+ snapshot-%" PRId64 " %s by (%.*s, %" PRId64 ")%s: +%s -%s", id,
             tarn_commit_kind_name(snap->s.kind), TARN_SLICE_ARG(snap->s.commit_user),
             snap->s.commit_identifier, snap->floating ? " FLOATING" : "", files_text(&snap->added),
             files_text(&snap->removed));
    if (snap->floating && !snap->foreign && id < world->hinted)
        return; /* a put that took long met a place that was taken, and expired: that is history to nobody */
    world->at[id] = snap;
    if (snap->floating) {
        world->floating_count++;
        if (snap->foreign || world->last_rewrite_ms < 0)
            broken("snapshot %" PRId64 " doesn't stand on the one before it", id);
        return;
    }
    if (!snap->foreign) {
        check_ours(snap);
        truth_seen(snap->parent); /* itself when it is told: who put it may be dead by now */
    }
    check_delta(snap);
    add_landings(snap);
    note_latest(snap->created_seq);
}

static bool any_is_seen(void)
{
    for (int64_t id = 1; id < HISTORY_IDS_MAX; id++)
        if (world->at[id] != NULL && world->at[id]->seen)
            return true;
    return false;
}

static void removed(int64_t id)
{
    struct snap *snap = world->at[id];
    if (snap == NULL)
        return;
    bool by_us = my_removal == REMOVED_BY_US;
    bool ours_expired = by_us && !snap->floating && id < world->hinted;
    snap->removal = ours_expired ? REMOVED_EXPIRE : my_removal;
    snap->removed_ms = sim_now_ms();
    snap->removed_seq = note("- snapshot-%" PRId64 " %s", id,
                             snap->removal == REMOVED_ROLL_BACK ? "rolled back"
                             : snap->removal == REMOVED_EXPIRE  ? "expired"
                                                                : "taken back");
    world->at[id] = NULL;
    if (my_removal == REMOVED_ROLL_BACK)
        world->was_rolled_back = true;
    if (snap->removal == REMOVED_EXPIRE)
        world->expired_to = TARN_MAX(world->expired_to, id);
    /* Where the past was rewritten and part of it is gone, nobody can tell from where on it was another; nor whether it was,
     * where nothing is left of what the daemon has seen. */
    if (!by_us && !snap->floating &&
        (!snap->seen || (world->was_rolled_back && world->expired_to > 0) || !any_is_seen()))
        world->history_has_gaps = true;
    if (snap->floating)
        world->floating_count--;
    if (by_us && !ours_expired && (!snap->floating || snap->told))
        broken("the daemon removed snapshot %" PRId64, id);
    if (!by_us)
        world->last_rewrite_ms = sim_now_ms();
    note_latest(snap->removed_seq);
}

void truth_leave_behind(void)
{
    int64_t earliest = truth_earliest_id();
    for (int64_t id = 1; id < earliest; id++) {
        if (world->at[id] == NULL || !world->at[id]->floating)
            continue;
        note("snapshot-%" PRId64 " is left below the history", id);
        world->at[id] = NULL;
        world->floating_count--;
    }
}

void truth_check_folder(void)
{
    struct snap *latest = truth_latest();
    if (world->floating_count > 0)
        broken("a snapshot that stands on nothing was left in the folder");
    for (int64_t id = truth_earliest_id(); latest != NULL && id <= latest->id; id++) {
        struct snap *snap = world->at[id];
        if (snap == NULL)
            broken("there is no snapshot %" PRId64 " between others", id);
        struct tarn_slice name =
            tarn_slice_str(tarn_arena_printf(world->op->arena, "snapshot-%" PRId64, id));
        if (!tarn_slice_equal(read_object("snapshot", name), snap->json))
            broken("snapshot %" PRId64 " was changed", id);
        struct files live = {0};
        read_live(&snap->s, true, &live);
        if (!files_equal(&live, &snap->live))
            broken("snapshot %" PRId64 " now reads%s and not%s", id, files_text(&live),
                   files_text(&snap->live));
        free(live.list);
        struct indexes indexes;
        read_indexes(&snap->s, &indexes);
        if (memcmp(&indexes, &snap->indexes, sizeof indexes) != 0)
            broken("the index files of snapshot %" PRId64 " are others by now", id);
    }
}

/* --- the store at the bottom --- */

static bool snapshot_id(const char *key, int64_t *id)
{
    static const char prefix[] = HISTORY_TABLE "/snapshot/snapshot-";
    if (strncmp(key, prefix, sizeof prefix - 1) != 0)
        return false;
    struct tarn_status *s = tarn_parse_i64(tarn_slice_str(key + sizeof prefix - 1), id);
    bool is_one = s == TARN_OK && *id > 0 && *id < HISTORY_IDS_MAX;
    tarn_status_free(s);
    return is_one;
}

static struct tarn_status *truth_get(void *self, struct tarn_op *op, const char *key,
                                     size_t size_max, struct tarn_buf *out)
{
    return tarn_store_get(self, op, key, out);
}

static struct tarn_status *truth_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                      struct tarn_object *out)
{
    return tarn_store_stat(self, op, key, found, out);
}

/* An expiry of the daemon's says first from where on history is left: no less than it was told to keep. */
static void hinted(const char *key, struct tarn_slice body)
{
    int64_t id;
    if (strcmp(key, HISTORY_TABLE "/snapshot/EARLIEST") != 0)
        return;
    struct tarn_status *s = tarn_parse_i64(body, &id);
    if (s != TARN_OK || id <= 0 || id >= HISTORY_IDS_MAX)
        broken("EARLIEST becomes \"%.*s\"", TARN_SLICE_ARG(body));
    note("EARLIEST is %" PRId64, id);
    const struct snap *latest = truth_latest();
    if (my_removal == REMOVED_BY_US && id > world->hinted && world->at[id] != NULL &&
        id > latest->id - TARN_MAX(world->plan.keep_last, (int64_t)1) + 1)
        broken("EARLIEST becomes %" PRId64 ", of %" PRId64, id, latest->id);
    if (world->at[id] != NULL)
        world->hinted = TARN_MAX(world->hinted, id);
}

static bool names(const struct snap *snap, const struct file *file, const struct index_file *index)
{
    bool has = file != NULL && (files_have(&snap->live, file) || files_have(&snap->changes, file));
    for (int p = 0; p < HISTORY_PARTITIONS_MAX; p++)
        for (int b = 0; b < HISTORY_BUCKETS; b++)
            has = has || (index != NULL && snap->indexes.of[p][b] == index);
    return has;
}

/* Data and index files are names alone here, and so is their removal: none that a snapshot which is left has, nor of a request that may
 * still land. */
static void file_removed(const char *key)
{
    const char *slash = strrchr(key, '/');
    struct tarn_slice name = tarn_slice_str(slash == NULL ? key : slash + 1);
    const struct file *file = strstr(key, "/bucket-") == NULL ? NULL : file_find(name);
    const struct index_file *index =
        strstr(key, "/index/") == NULL ? NULL : tarn_map_find(world->index_by_name, name);
    const struct request *r = file != NULL ? file->request : index != NULL ? index->request : NULL;
    if (file == NULL && index == NULL)
        return;
    world->files_removed++;
    for (int64_t id = TARN_MAX(world->hinted, (int64_t)1); id < HISTORY_IDS_MAX; id++)
        if (world->at[id] != NULL && !world->at[id]->floating && names(world->at[id], file, index))
            broken("%s is removed, which snapshot %" PRId64 " has", key, id);
    if (r != NULL && r->landing_count[0] + r->landing_count[1] == 0)
        broken("%s is removed, of request %d, which has not landed", key, r->number);
}

/* What happens and what is noted of it are one step: nobody runs in between. */
static struct tarn_status *truth_put(void *self, struct tarn_op *op, const char *key,
                                     struct tarn_slice body)
{
    int64_t id;
    if (snapshot_id(key, &id) && world->plan.mutation != MUTATION_PUT_REPLACES)
        broken("snapshot %" PRId64 " is put whatever is there", id);
    TARN_OWN(sim_unpin) TARN_UNUSED bool pinned = sim_pin();
    TARN_TRY(tarn_store_put(self, op, key, body));
    if (snapshot_id(key, &id)) {
        if (world->at[id] != NULL)
            broken("snapshot %" PRId64 " is replaced by another", id);
        created(id, body);
    }
    hinted(key, body);
    return TARN_OK;
}

static struct tarn_status *truth_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                               struct tarn_slice body, bool *is_created)
{
    int64_t id;
    TARN_OWN(sim_unpin) TARN_UNUSED bool pinned = sim_pin();
    TARN_TRY(tarn_store_put_if_absent(self, op, key, body, is_created));
    if (*is_created && snapshot_id(key, &id))
        created(id, body);
    return TARN_OK;
}

static struct tarn_status *truth_put_many(void *self, struct tarn_op *op,
                                          const struct tarn_new_object *objects, size_t count)
{
    return tarn_store_put_many(self, op, objects, count);
}

static struct tarn_status *truth_remove(void *self, struct tarn_op *op, const char *key)
{
    int64_t id;
    TARN_OWN(sim_unpin) TARN_UNUSED bool pinned = sim_pin();
    TARN_TRY(tarn_store_remove(self, op, key));
    if (snapshot_id(key, &id))
        removed(id);
    file_removed(key);
    return TARN_OK;
}

static struct tarn_status *truth_list(void *self, struct tarn_op *op, const char *prefix,
                                      bool recursive, struct tarn_object **out, size_t *count)
{
    return tarn_store_list(self, op, prefix, recursive, out, count);
}

static struct tarn_status *truth_prune(void *self, struct tarn_op *op, const char *key)
{
    return tarn_store_prune(self, op, key);
}

static void truth_close(void *self)
{
    latest_count = 0;
}

struct tarn_store *truth_store_new(struct tarn_store *memory)
{
    static const struct tarn_store_ops ops = {.scheme = "truth",
                                              .get = truth_get,
                                              .stat = truth_stat,
                                              .put = truth_put,
                                              .put_if_absent = truth_put_if_absent,
                                              .put_many = truth_put_many,
                                              .remove = truth_remove,
                                              .list = truth_list,
                                              .prune = truth_prune,
                                              .close = truth_close};
    return tarn_store_new(&ops, memory);
}
