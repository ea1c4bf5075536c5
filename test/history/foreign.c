#include "history.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Other writers of the table, as Paimon's own: they read the newest snapshot, write manifests, put the next one if
 * absent; they roll back (hint first, snapshots from the newest down, then what only those named) and expire
 * (snapshots from the oldest up, then what only those named).
 */

static const char *key(const char *format, ...) TARN_PRINTF(1, 2);
static const char *key(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_buf_add_str(&text, HISTORY_TABLE "/");
    tarn_buf_vprintf(&text, format, args);
    va_end(args);
    return tarn_arena_str(world->op->arena, tarn_buf_slice(&text));
}

static void must(struct tarn_status *s)
{
    if (s != TARN_OK)
        broken("the simulator: %s", tarn_status_message(s));
}

static void put(const char *name, struct tarn_slice body)
{
    must(tarn_store_put(world->truth, world->op, key("%s", name), body));
}

static void put_hint(const char *name, int64_t id)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, id);
    put(name, tarn_slice_str(text));
}

static void read_list(struct tarn_slice name, struct tarn_manifest_file **out, size_t *count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    must(tarn_store_get(world->memory, world->op, key("manifest/%.*s", TARN_SLICE_ARG(name)),
                        &bytes));
    must(tarn_manifest_list_decode(tarn_arena_copy(world->op->arena, tarn_buf_slice(&bytes)),
                                   world->op->arena, out, count));
}

/* base ++ delta of a snapshot. */
static struct tarn_manifest_file *manifests_of(const struct snap *snap, size_t *count)
{
    struct tarn_manifest_file *lists[2], *all;
    size_t counts[2];
    read_list(snap->s.base_list, &lists[0], &counts[0]);
    read_list(snap->s.delta_list, &lists[1], &counts[1]);
    *count = counts[0] + counts[1];
    all = tarn_arena_calloc(world->op->arena, *count + 1, sizeof *all);
    for (int l = 0; l < 2; l++)
        if (counts[l] > 0)
            memcpy(all + (l == 0 ? 0 : counts[0]), lists[l], counts[l] * sizeof *all);
    return all;
}

static struct tarn_slice name_of(const char *what)
{
    static int count;
    return tarn_slice_str(tarn_arena_printf(world->op->arena, "%s-foreign-%d", what, ++count));
}

static struct tarn_slice put_list(const struct tarn_manifest_file *files, size_t count,
                                  int64_t *size)
{
    const uint8_t sync[16] = {1};
    struct tarn_slice name = name_of("manifest-list");
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    must(tarn_manifest_list_encode(files, count, tarn_slice_str("zstd"), 1, sync, &bytes));
    *size = (int64_t)bytes.size;
    put(tarn_arena_printf(world->op->arena, "manifest/%.*s", TARN_SLICE_ARG(name)),
        tarn_buf_slice(&bytes));
    return name;
}

/* What it brings: new files of one bucket, or one that replaces all of the bucket. */
static size_t make_entries(const struct snap *latest, struct tarn_manifest_entry **out)
{
    int bucket = (int)sim_between(SIM_WORK, 0, 1);
    int partition = (int)sim_between(SIM_WORK, 0, world->plan.partitions - 1);
    bool compacts = latest != NULL && sim_chance(SIM_WORK, 250);
    size_t live = latest == NULL ? 0 : latest->live.count, n = 0;
    *out = tarn_arena_calloc(world->op->arena, live + 3, sizeof **out);
    for (size_t i = 0; compacts && i < live; i++)
        if (latest->live.list[i]->bucket == bucket && latest->live.list[i]->partition == partition)
            (*out)[n++] = file_entry(latest->live.list[i], TARN_ENTRY_DELETE);
    if (n > 0)
        (*out)[n++] = file_entry(file_new(NULL, 1, partition, bucket, 5), TARN_ENTRY_ADD);
    else
        for (int64_t more = sim_between(SIM_WORK, 1, 2); more > 0; more--)
            (*out)[n++] = file_entry(file_new(NULL, 0, partition, bucket, 0), TARN_ENTRY_ADD);
    return n;
}

/* The last one's index manifest, or one in which the first new file's bucket has another index file. */
static struct tarn_slice make_index_manifest(const struct snap *latest,
                                             const struct tarn_manifest_entry *added)
{
    const struct file *of = file_find(added->file.name);
    if (world->plan.index_type == NULL || sim_chance(SIM_WORK, 600))
        return latest == NULL ? tarn_slice_str(NULL) : latest->s.index_manifest;
    struct indexes next = {0};
    struct tarn_index_file files[HISTORY_PARTITIONS_MAX * HISTORY_BUCKETS];
    size_t count = 0;
    if (latest != NULL)
        next = latest->indexes;
    next.of[of->partition][of->bucket] = index_file_new(NULL, 0, of, latest);
    for (int p = 0; p < HISTORY_PARTITIONS_MAX; p++)
        for (int b = 0; b < HISTORY_BUCKETS; b++)
            if (next.of[p][b] != NULL)
                files[count++] = index_entry(next.of[p][b], TARN_ENTRY_ADD);
    const uint8_t sync[16] = {1};
    struct tarn_slice name = name_of("index-manifest");
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    must(tarn_index_manifest_encode(files, count, tarn_slice_str("zstd"), 1, sync, &bytes));
    put(tarn_arena_printf(world->op->arena, "manifest/%.*s", TARN_SLICE_ARG(name)),
        tarn_buf_slice(&bytes));
    return name;
}

static void encode(const struct snap *latest, int64_t id, const struct tarn_manifest_entry *entries,
                   size_t count, struct tarn_buf *json)
{
    const uint8_t sync[16] = {1};
    struct tarn_manifest_file delta, *base = NULL;
    size_t base_count = 0;
    int64_t records = 0;
    TARN_OWN(tarn_buf_drop) struct tarn_buf manifest = {0};
    if (latest != NULL)
        base = manifests_of(latest, &base_count);
    must(tarn_manifest_encode(entries, count, tarn_slice_str("zstd"), 1, sync, &manifest));
    static const struct tarn_type of_partition = {.id = TARN_TYPE_INT};
    const struct tarn_type *types[] = {&of_partition};
    must(tarn_manifest_summarize(entries, count, types, world->plan.partitions > 1, 0,
                                 world->op->arena, &delta));
    delta.name = name_of("manifest");
    delta.size = (int64_t)manifest.size;
    put(tarn_arena_printf(world->op->arena, "manifest/%.*s", TARN_SLICE_ARG(delta.name)),
        tarn_buf_slice(&manifest));
    for (size_t i = 0; i < count; i++)
        records += entries[i].kind == TARN_ENTRY_ADD ? 10 : -10;
    struct tarn_snapshot s = {
        .version = 3,
        .id = id,
        .commit_user = tarn_slice_str("foreign-writer"),
        .commit_identifier = id,
        .kind = entries[count - 1].file.level > 0 ? TARN_COMMIT_COMPACT : TARN_COMMIT_APPEND,
        .time_ms = tarn_clock_wall_ms(),
        .delta_record_count = records,
        .total_record_count = records + (latest == NULL ? 0 : latest->s.total_record_count),
        .watermark = latest == NULL ? TARN_SNAPSHOT_NONE : latest->s.watermark,
        .next_row_id = TARN_SNAPSHOT_NONE,
        .changelog_record_count = TARN_SNAPSHOT_NONE,
        .changelog_list_size = TARN_SNAPSHOT_NONE,
        .index_manifest = make_index_manifest(latest, &entries[count - 1])};
    s.base_list = put_list(base, base_count, &s.base_list_size);
    s.delta_list = put_list(&delta, 1, &s.delta_list_size);
    tarn_snapshot_encode(&s, json);
}

/* Others don't stand on what nobody may stand on; it is gone soon. */
static void wait_for_ground(void)
{
    for (int i = 0; world->floating_count > 0; i++) {
        if (i > 60000)
            broken("a snapshot that stands on nothing stays in the folder");
        sim_sleep_ms(50);
    }
}

void foreign_commit(void)
{
    for (int tries = 0; tries < 5; tries++) {
        wait_for_ground();
        struct snap *latest = truth_latest();
        int64_t id = latest == NULL ? 1 : latest->id + 1;
        struct tarn_manifest_entry *entries;
        size_t count = make_entries(latest, &entries);
        TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
        encode(latest, id, entries, count, &json);
        sim_sleep_ms(sim_between(SIM_WORK, 0, 30));
        wait_for_ground();
        if (truth_latest() != latest)
            continue;
        bool created;
        must(tarn_store_put_if_absent(world->truth, world->op,
                                      key("snapshot/snapshot-%" PRId64, id), tarn_buf_slice(&json),
                                      &created));
        if (!created)
            continue;
        sim_sleep_ms(sim_between(SIM_WORK, 0, 30));
        if (sim_chance(SIM_WORK, 900) || world->plan.lies)
            put_hint("snapshot/LATEST", id);
        return;
    }
}

/* --- rewriting the past --- */

static void add_names(const struct snap *snap, struct tarn_map *names)
{
    size_t count;
    struct tarn_manifest_file *manifests = manifests_of(snap, &count);
    for (size_t i = 0; i < count; i++)
        tarn_map_set(names, manifests[i].name, names);
    tarn_map_set(names, snap->s.base_list, names);
    tarn_map_set(names, snap->s.delta_list, names);
    if (snap->s.index_manifest.size > 0)
        tarn_map_set(names, snap->s.index_manifest, names);
    if (snap->s.changelog_list.size == 0)
        return;
    read_list(snap->s.changelog_list, &manifests, &count);
    for (size_t i = 0; i < count; i++)
        tarn_map_set(names, manifests[i].name, names);
    tarn_map_set(names, snap->s.changelog_list, names);
}

/* Removes what the snapshots of `gone` name and no snapshot that is there does. */
static void remove_unused(struct tarn_map *gone)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *used = tarn_map_new();
    for (int64_t id = TARN_MAX(world->hinted, (int64_t)1); id < HISTORY_IDS_MAX; id++)
        if (world->at[id] != NULL && !world->at[id]->floating)
            add_names(world->at[id], used);
    size_t cursor = 0;
    struct tarn_slice name;
    void *value;
    while (tarn_map_next(gone, &cursor, &name, &value))
        if (tarn_map_find(used, name) == NULL)
            must(tarn_store_remove(world->truth, world->op,
                                   key("manifest/%.*s", TARN_SLICE_ARG(name))));
}

static void remove_snapshot(int64_t id, enum removal why)
{
    *removal_by_me() = why;
    must(tarn_store_remove(world->truth, world->op, key("snapshot/snapshot-%" PRId64, id)));
    *removal_by_me() = REMOVED_BY_US;
}

/* From here on no put of a snapshot arrives that was begun before, unless it took longer than a claim may. */
static void hold(void)
{
    world->hold_until_ms = INT64_MAX / 4;
}

static void let_go(void)
{
    world->last_rewrite_ms = sim_now_ms();
    world->hold_until_ms = sim_now_ms() + HISTORY_CLAIM_AGE_MS + 200;
}

void foreign_roll_back(void)
{
    struct snap *latest = truth_latest();
    int64_t earliest = truth_earliest_id();
    if (!may_rewrite() || latest == NULL || latest->id == earliest ||
        sim_now_ms() < world->hold_until_ms)
        return;
    int64_t target = sim_between(SIM_WORK, TARN_MAX(earliest, latest->id - 6), latest->id - 1);
    note("foreign: rolls back to %" PRId64, target);
    hold();
    TARN_OWN(tarn_map_drop) struct tarn_map *gone = tarn_map_new();
    put_hint("snapshot/LATEST", target);
    for (int64_t id = latest->id; id > target; id--) {
        add_names(world->at[id], gone);
        remove_snapshot(id, REMOVED_ROLL_BACK);
        if (sim_chance(SIM_WORK, 300))
            sim_sleep_ms(sim_between(SIM_WORK, 0, 50));
    }
    remove_unused(gone);
    let_go();
    note("foreign: rolled back to %" PRId64, target);
    if (sim_chance(SIM_WORK,
                   400)) /* with what follows, a fast-forward: the same ids, another content */
        for (int64_t n = sim_between(SIM_WORK, 1, 5); n > 0; n--)
            foreign_commit();
}

void foreign_expire(void)
{
    struct snap *latest = truth_latest();
    int64_t earliest = truth_earliest_id();
    if (!may_rewrite() || latest == NULL || latest->id == earliest ||
        sim_now_ms() < world->hold_until_ms)
        return;
    int64_t left = sim_between(SIM_WORK, earliest + 1, latest->id);
    if (sim_chance(SIM_WORK, 500))
        left = TARN_MAX(left, latest->id - 3);
    note("foreign: expires up to %" PRId64, left - 1);
    hold();
    TARN_OWN(tarn_map_drop) struct tarn_map *gone = tarn_map_new();
    for (int64_t id = earliest; id < left; id++) {
        add_names(world->at[id], gone);
        remove_snapshot(id, REMOVED_EXPIRE);
        if (sim_chance(SIM_WORK, 200))
            sim_sleep_ms(sim_between(SIM_WORK, 0, 50));
    }
    remove_unused(gone);
    *removal_by_me() = REMOVED_EXPIRE;
    if (sim_chance(SIM_WORK, 900))
        put_hint("snapshot/EARLIEST", left);
    *removal_by_me() = REMOVED_BY_US;
    let_go();
}
