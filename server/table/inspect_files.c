#include "table/inspect_internal.h"

#include <stdlib.h>

/*
 * What a snapshot or tag names: lists, manifests, index files; and the data files that its manifests name. Of those a sample is the files whose
 * names have the smallest hashes: an ADD and the DELETE of a file have one hash, so what is left of both is told without having all in memory.
 */

#define CANDIDATES_MAX 1000 /* of a sample: many may be deleted again */

struct seen_file {
    int64_t size;
    uint64_t hash;
    int net; /* ADDs and DELETEs */
};
struct tarn_file_look {
    struct tarn_map *files; /* partition, bucket and name -> struct seen_file, owned */
    uint64_t hash_max;      /* of a sample: larger ones are not among them */
    int64_t external_count;
};

static struct tarn_file_look *look_of(struct tarn_inspect *in)
{
    if (in->look == NULL) {
        in->look = tarn_calloc(1, sizeof *in->look);
        in->look->files = tarn_map_new();
        in->look->hash_max = UINT64_MAX;
    }
    return in->look;
}

static void look_end(struct tarn_file_look *look)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *file;
    while (tarn_map_next(look->files, &cursor, &key, &file))
        free(file);
    tarn_map_free(look->files);
    free(look);
}

/* --- which files --- */

static int rising(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

/* Half of the candidates go, those with the larger hashes. */
static void thin_out(struct tarn_file_look *look)
{
    size_t n = tarn_map_count(look->files), cursor = 0, gone = 0;
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    uint64_t *hashes = tarn_arena_calloc(arena, n, sizeof *hashes);
    struct tarn_slice key, *keys = tarn_arena_calloc(arena, n, sizeof *keys);
    void *value;
    for (size_t i = 0; tarn_map_next(look->files, &cursor, &key, &value); i++)
        hashes[i] = ((struct seen_file *)value)->hash;
    qsort(hashes, n, sizeof *hashes, rising);
    look->hash_max = hashes[CANDIDATES_MAX - 1];
    cursor = 0;
    while (tarn_map_next(look->files, &cursor, &key, &value))
        if (((struct seen_file *)value)->hash > look->hash_max)
            keys[gone++] = tarn_arena_copy(arena, key);
    for (size_t i = 0; i < gone; i++)
        free(tarn_map_remove(look->files, keys[i]));
}

struct collect {
    struct tarn_inspect *in;
    bool nothing, adds_only; /* of a delta: what it deletes was there before it */
};

static void collect_one(struct tarn_inspect *in, const struct tarn_manifest_entry *e)
{
    struct tarn_file_look *look = look_of(in);
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    if (e->file.external_path.data != NULL) {
        look->external_count += e->kind == TARN_ENTRY_ADD;
        return;
    }
    tarn_key_add_bytes(&key, e->partition);
    tarn_key_add_i64(&key, e->bucket);
    tarn_buf_add_slice(&key, e->file.name);
    uint64_t hash = tarn_xxh64(tarn_buf_slice(&key), 0);
    if (hash > look->hash_max)
        return;
    struct seen_file *file = tarn_map_find(look->files, tarn_buf_slice(&key));
    if (file == NULL) {
        file = tarn_calloc(1, sizeof *file);
        file->hash = hash;
        tarn_map_set(look->files, tarn_buf_slice(&key), file);
    }
    file->net += e->kind == TARN_ENTRY_ADD ? 1 : -1;
    file->size = e->file.size;
    if (in->files == TARN_INSPECT_SAMPLE && tarn_map_count(look->files) >= 2 * CANDIDATES_MAX)
        thin_out(look);
}

static struct tarn_status *collect(void *arg, struct tarn_manifest_entry *entries, size_t count)
{
    struct collect *c = arg;
    for (size_t i = 0; i < count && !c->nothing; i++)
        if (!c->adds_only || entries[i].kind == TARN_ENTRY_ADD)
            collect_one(c->in, &entries[i]);
    return TARN_OK;
}

/* --- manifests --- */

static bool see(struct tarn_inspect *in, struct tarn_slice name)
{
    bool is_new = tarn_map_find(in->seen, name) == NULL;
    if (is_new)
        tarn_map_set(in->seen, name, in);
    return is_new;
}

/* Each is read once, but for those whose files are wanted. */
static struct tarn_status *read_manifests(struct tarn_inspect *in,
                                          const struct tarn_version_check *check,
                                          const struct tarn_manifest_file *files, size_t count,
                                          struct collect *c)
{
    for (size_t i = 0; i < count; i++) {
        bool bad, is_new = see(in, files[i].name);
        if (!is_new && c->nothing)
            continue;
        in->found.manifest_count += is_new;
        const char *where =
            tarn_table__key(in->op, in->table, "manifest/%.*s", TARN_SLICE_ARG(files[i].name));
        struct tarn_status *s = tarn_table__walk_manifest(in->op, in->table, &files[i], collect, c);
        if (s != TARN_OK && !is_new && !tarn_store_is_away(s)) { /* it was told before */
            tarn_status_free(s);
            continue;
        }
        TARN_TRY(tarn_inspect__judge(
            in, s, where, tarn_arena_printf(in->op->arena, "%s can't be read whole", check->name),
            &bad));
    }
    return TARN_OK;
}

/* What a tag has live is wanted, too, whatever history says of it. */
static struct tarn_status *collect_tag(struct tarn_inspect *in,
                                       const struct tarn_version_check *check,
                                       const struct tarn_manifests *m)
{
    struct tarn_file_look *history = look_of(in);
    struct collect c = {.in = in};
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    in->look = NULL;
    struct tarn_file_look *tag = look_of(in);
    struct tarn_status *s = read_manifests(in, check, m->files, m->count, &c);
    in->look = history;
    history->external_count += tag->external_count;
    while (tarn_map_next(tag->files, &cursor, &key, &value)) {
        struct seen_file *file = value;
        if (file->net <= 0)
            continue;
        struct seen_file *own = tarn_alloc(sizeof *own);
        *own = (struct seen_file){.size = file->size, .hash = file->hash, .net = 1};
        free(tarn_map_set(history->files, key, own));
    }
    look_end(tag);
    return s;
}

static struct tarn_status *check_list(struct tarn_inspect *in,
                                      const struct tarn_version_check *check, enum tarn_list which,
                                      struct tarn_slice name, bool *bad)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_manifest_file *files;
    size_t count;
    return tarn_inspect__judge(
        in, tarn_table__read_list(in->op, in->table, check->snapshot, which, arena, &files, &count),
        tarn_table__key(in->op, in->table, "manifest/%.*s", TARN_SLICE_ARG(name)),
        tarn_arena_printf(in->op->arena, "%s can't be read whole", check->name), bad);
}

static struct tarn_status *check_lists(struct tarn_inspect *in,
                                       const struct tarn_version_check *check)
{
    TARN_OWN(tarn_table__manifests_fini) struct tarn_manifests m = {0};
    bool bad, base_bad, delta_bad;
    bool all = in->files == TARN_INSPECT_ALL,
         sample = in->files == TARN_INSPECT_SAMPLE && check->is_latest;
    TARN_TRY(check_list(in, check, TARN_LIST_BASE, check->snapshot->base_list, &base_bad));
    TARN_TRY(check_list(in, check, TARN_LIST_DELTA, check->snapshot->delta_list, &delta_bad));
    if (base_bad || delta_bad)
        return TARN_OK;
    TARN_TRY(tarn_inspect__judge(in,
                                 tarn_table__read_manifests(in->op, in->table, check->snapshot, &m),
                                 check->where, check->name, &bad));
    if (bad)
        return TARN_OK;
    if (all && check->is_tag)
        return collect_tag(in, check, &m);
    struct collect base = {.in = in, .nothing = !sample && !(all && check->is_first)},
                   delta = {
                       .in = in, .nothing = !sample && !all, .adds_only = all && !check->is_first};
    TARN_TRY(read_manifests(in, check, m.files, m.base_count, &base));
    TARN_TRY(read_manifests(in, check, m.files + m.base_count, m.count - m.base_count, &delta));
    if (check->is_latest && in->table->branch[0] == '\0') {
        in->found.file_count = 0;
        for (size_t i = 0; i < m.count; i++)
            in->found.file_count += m.files[i].added_count - m.files[i].deleted_count;
    }
    if (!check->is_tag) {
        in->this = m;
        m = (struct tarn_manifests){0};
    }
    return TARN_OK;
}

static struct tarn_status *check_changelog(struct tarn_inspect *in,
                                           const struct tarn_version_check *check)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_manifest_file *files;
    size_t count;
    bool bad;
    struct collect c = {
        .in = in, .nothing = in->files != TARN_INSPECT_ALL || check->is_tag, .adds_only = true};
    if (check->snapshot->changelog_list.data == NULL)
        return TARN_OK;
    struct tarn_status *s = tarn_table__read_list(in->op, in->table, check->snapshot,
                                                  TARN_LIST_CHANGELOG, arena, &files, &count);
    TARN_TRY(tarn_inspect__judge(
        in, s,
        tarn_table__key(in->op, in->table, "manifest/%.*s",
                        TARN_SLICE_ARG(check->snapshot->changelog_list)),
        tarn_arena_printf(in->op->arena, "the changelog of %s can't be read", check->name), &bad));
    return bad ? TARN_OK : read_manifests(in, check, files, count, &c);
}

/* --- files beside them --- */

static struct tarn_status *check_there(struct tarn_inspect *in,
                                       const struct tarn_version_check *check, const char *folder,
                                       struct tarn_slice name, int64_t size)
{
    const char *where = tarn_table__key(in->op, in->table, "%s/%.*s", folder, TARN_SLICE_ARG(name));
    struct tarn_object object = {0};
    bool found = false, bad;
    if (!see(in, tarn_slice_str(where)))
        return TARN_OK;
    TARN_TRY(tarn_inspect__judge(
        in, tarn_store_stat(in->table->env->store, in->op, where, &found, &object), where,
        "it can't be looked at", &bad));
    if (bad)
        return TARN_OK;
    if (!found)
        tarn_inspect__find(in, TARN_FINDING_DAMAGE, where,
                           tarn_reason_advice(TARN_OBJECT_NOT_FOUND),
                           "%s names it, and it isn't there", check->name);
    else if (size >= 0 && (uint64_t)object.size != (uint64_t)size)
        tarn_inspect__find(in, TARN_FINDING_DAMAGE, where,
                           tarn_reason_advice(TARN_DATA_FILE_MALFORMED),
                           "it has %" PRIu64 " bytes, and its manifest says %" PRId64,
                           (uint64_t)object.size, size);
    return TARN_OK;
}

static struct tarn_status *check_index(struct tarn_inspect *in,
                                       const struct tarn_version_check *check)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_slice name = check->snapshot->index_manifest;
    struct tarn_index_file *files = NULL;
    size_t count = 0;
    bool bad;
    if (name.data == NULL || !see(in, name))
        return TARN_OK;
    const char *where = tarn_table__key(in->op, in->table, "manifest/%.*s", TARN_SLICE_ARG(name));
    struct tarn_status *s =
        tarn_table__read_index_manifest(in->op, in->table, name, arena, &files, &count);
    TARN_TRY(tarn_inspect__judge(
        in, s, where,
        tarn_arena_printf(in->op->arena, "the index manifest of %s can't be read", check->name),
        &bad));
    for (size_t i = 0; i < count && !bad && in->files != TARN_INSPECT_NONE; i++)
        if (files[i].external_path.data == NULL)
            TARN_TRY(check_there(in, check, "index", files[i].name, files[i].size));
    return TARN_OK;
}

struct tarn_status *tarn_inspect__version(struct tarn_inspect *in,
                                          const struct tarn_version_check *check)
{
    const struct tarn_snapshot *snapshot = check->snapshot;
    if (!tarn_inspect__has_schema(in, snapshot->schema_id))
        tarn_inspect__find(in, TARN_FINDING_DAMAGE, check->where,
                           tarn_reason_advice(TARN_SCHEMA_MALFORMED),
                           "%s is of schema %" PRId64 ", which isn't there or can't be read",
                           check->name, snapshot->schema_id);
    TARN_TRY(check_lists(in, check));
    TARN_TRY(check_changelog(in, check));
    TARN_TRY(check_index(in, check));
    return snapshot->statistics.data == NULL || in->files == TARN_INSPECT_NONE
               ? TARN_OK
               : check_there(in, check, "statistics", snapshot->statistics, -1);
}

/* --- data files --- */

static struct tarn_status *look_at(struct tarn_inspect *in, struct tarn_slice key,
                                   const struct seen_file *file)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf partition = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf folder = {0};
    int64_t bucket = 0;
    bool bad;
    const struct tarn_version_check check = {.name = "a manifest"};
    tarn_assert(tarn_key_take_bytes(&key, &partition) && tarn_key_take_i64(&key, &bucket));
    struct tarn_status *s = tarn_bucket_path(in->latest, &in->options, tarn_buf_slice(&partition),
                                             (int32_t)bucket, &folder);
    TARN_TRY(tarn_inspect__judge(in, s, in->table->path, "a partition can't be named", &bad));
    if (bad)
        return TARN_OK;
    in->found.looked_count++;
    return check_there(in, &check, tarn_buf_cstr(&folder), key, file->size);
}

struct candidate {
    struct tarn_slice key;
    const struct seen_file *file;
};

static int by_hash(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return rising(&x->file->hash, &y->file->hash);
}

static struct tarn_status *look_at_all(struct tarn_inspect *in, struct tarn_file_look *look)
{
    size_t n = 0, cursor = 0;
    struct tarn_slice key;
    void *value;
    struct candidate *list =
        tarn_arena_calloc(in->op->arena, tarn_map_count(look->files) + 1, sizeof *list);
    while (tarn_map_next(look->files, &cursor, &key, &value))
        if (((struct seen_file *)value)->net > 0)
            list[n++] = (struct candidate){key, value};
    qsort(list, n, sizeof *list, by_hash);
    if (in->files == TARN_INSPECT_SAMPLE)
        n = TARN_MIN(n, (size_t)TARN_INSPECT_SAMPLE_FILES);
    for (size_t i = 0; i < n; i++) {
        TARN_TRY(tarn_op_check(in->op));
        TARN_TRY(look_at(in, list[i].key, list[i].file));
    }
    return TARN_OK;
}

static struct tarn_status *is_there(struct tarn_inspect *in, int64_t id, bool *out)
{
    return tarn_store_stat(in->table->env->store, in->op,
                           tarn_table__key(in->op, in->table, "snapshot/snapshot-%" PRId64, id),
                           out, NULL);
}

static struct tarn_status *look_while_it_stays(struct tarn_inspect *in)
{
    struct tarn_inspection before = in->found;
    bool first = true, last = true;
    TARN_TRY(look_at_all(in, in->look));
    if (in->found.damage_count == before.damage_count)
        return TARN_OK;
    TARN_TRY(is_there(in, in->range.earliest, &first));
    TARN_TRY(is_there(in, in->range.latest, &last));
    if (first && last)
        return TARN_OK;
    tarn_inspect__take_back(in, &before); /* what is missing went with them */
    tarn_inspect__find(in, TARN_FINDING_NOTE, tarn_table__key(in->op, in->table, "snapshot"),
                       "look once more",
                       "snapshots expired or were rolled back while their files were looked at");
    return TARN_OK;
}

struct tarn_status *tarn_inspect__look_at_files(struct tarn_inspect *in)
{
    struct tarn_status *s = TARN_OK;
    if (in->look == NULL)
        return TARN_OK;
    if (in->has_options) /* they say where files lie */
        s = look_while_it_stays(in);
    if (in->look->external_count > 0)
        tarn_inspect__find(in, TARN_FINDING_NOTE, in->table->path,
                           "see to them yourself: they don't lie in the warehouse",
                           "%" PRId64 " data files lie elsewhere, and were not looked at",
                           in->look->external_count);
    look_end(in->look);
    in->look = NULL;
    return s;
}
