#include "table/index.h"

/*
 * Does a snapshot stand on the one below it? Its base list should name what that one left, but for manifests that were merged. Where
 * it doesn't, a put came late upon a history that had been rewritten, and another writer took it for the newest.
 */

void tarn_table__manifests_fini(struct tarn_manifests *m)
{
    tarn_arena_free(m->arena);
    *m = (struct tarn_manifests){0};
}

struct tarn_status *tarn_table__read_manifests(struct tarn_op *op, struct tarn_table *table,
                                               const struct tarn_snapshot *snapshot,
                                               struct tarn_manifests *out)
{
    TARN_OWN(tarn_table__manifests_fini) struct tarn_manifests m = {.arena = tarn_arena_new()};
    struct tarn_manifest_file *base, *delta;
    size_t delta_count;
    TARN_TRY(
        tarn_table__read_list(op, table, snapshot, TARN_LIST_BASE, m.arena, &base, &m.base_count));
    TARN_TRY(
        tarn_table__read_list(op, table, snapshot, TARN_LIST_DELTA, m.arena, &delta, &delta_count));
    m.count = m.base_count + delta_count;
    m.files = tarn_arena_calloc(m.arena, m.count + 1, sizeof *m.files);
    if (m.base_count > 0)
        memcpy(m.files, base, m.base_count * sizeof *base);
    if (delta_count > 0)
        memcpy(m.files + m.base_count, delta, delta_count * sizeof *delta);
    *out = m;
    m.arena = NULL;
    return TARN_OK;
}

/* --- what manifests say, as a sum in which their order and pairs of ADD and DELETE don't show --- */

struct sum {
    uint64_t hashes[2];
    bool minus;
};

static struct tarn_status *add_entries(void *arg, struct tarn_manifest_entry *entries, size_t count)
{
    struct sum *sum = arg;
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    for (size_t i = 0; i < count; i++) {
        tarn_buf_clear(&identity);
        tarn_manifest_identity(&entries[i], &identity);
        bool minus = sum->minus != (entries[i].kind == TARN_ENTRY_DELETE);
        for (uint64_t seed = 0; seed < TARN_COUNT_OF(sum->hashes); seed++) {
            uint64_t hash = tarn_xxh64(tarn_buf_slice(&identity), seed);
            sum->hashes[seed] += minus ? 0 - hash : hash;
        }
    }
    return TARN_OK;
}

/* Of those whose names `others` hasn't. */
static struct tarn_status *add_manifests(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_manifest_file *files, size_t count,
                                         const struct tarn_map *others, struct sum *sum)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_map_find(others, files[i].name) == NULL)
            TARN_TRY(tarn_table__walk_manifest(op, table, &files[i], add_entries, sum));
    return TARN_OK;
}

static struct tarn_map *names_of(struct tarn_manifest_file *files, size_t count)
{
    struct tarn_map *names = tarn_map_new();
    for (size_t i = 0; i < count; i++)
        tarn_map_set(names, files[i].name, &files[i]);
    return names;
}

struct tarn_status *tarn_table__stands_on(struct tarn_op *op, struct tarn_table *table,
                                          const struct tarn_manifests *below,
                                          const struct tarn_manifests *next, bool *out)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *before = names_of(below->files, below->count);
    TARN_OWN(tarn_map_drop) struct tarn_map *after = names_of(next->files, next->base_count);
    struct sum sum = {0};
    struct tarn_status *s = add_manifests(op, table, next->files, next->base_count, before, &sum);
    sum.minus = true;
    if (s == TARN_OK)
        s = add_manifests(op, table, below->files, below->count, after, &sum);
    *out = s == TARN_OK && sum.hashes[0] == 0 && sum.hashes[1] == 0;
    return s;
}

struct tarn_status *tarn_table__begins(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                       bool *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_snapshot below;
    struct tarn_slice json;
    int64_t first;
    TARN_TRY(tarn_table__indexed_first(table, &first));
    *out = first == id && id > 1;
    return *out ? tarn_table__read_snapshot(op, table, id - 1, arena, out, &json, &below) : TARN_OK;
}
