#include "table/internal.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * What a table's folder holds: which snapshots and schemas, and their files. Hints are looked at first
 * and believed only where the folder agrees with them.
 */

const char *tarn_table__key(struct tarn_op *op, struct tarn_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *rest = NULL;
    int size = vasprintf(&rest, format, args);
    va_end(args);
    tarn_assert(size >= 0);
    pthread_mutex_lock(&table->lock);
    char *key = tarn_arena_printf(op->arena, "%s/%s", table->path, rest);
    pthread_mutex_unlock(&table->lock);
    free(rest);
    return key;
}

struct tarn_status *tarn_table__check_here(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    enum tarn_reason gone = table->gone;
    struct tarn_status *status =
        gone == TARN_NO_REASON
            ? TARN_OK
            : tarn_status_new(gone, "table %s (%s) is no longer there", table->name, table->uuid);
    pthread_mutex_unlock(&table->lock);
    return status;
}

/* "snapshot-17" -> 17; anything else -> false: engines leave temporary files with the same prefix. */
static bool parse_id(struct tarn_slice key, const char *prefix, int64_t *id)
{
    size_t begin = key.size;
    while (begin > 0 && key.data[begin - 1] != '/')
        begin--;
    struct tarn_slice name = tarn_slice_of(key.data + begin, key.size - begin);
    size_t n = strlen(prefix);
    if (name.size <= n || name.size > n + 18 || memcmp(name.data, prefix, n) != 0)
        return false;
    int64_t value = 0;
    for (size_t i = n; i < name.size; i++) {
        if (name.data[i] < '0' || name.data[i] > '9')
            return false;
        value = value * 10 + (name.data[i] - '0');
    }
    *id = value;
    return true;
}

static struct tarn_status *exists(struct tarn_op *op, struct tarn_table *table, const char *key,
                                  bool *found)
{
    return tarn_store_stat(table->env->store, op, key, found, NULL);
}

/* The id in a hint file, or 0 where there is none that can be used. Hints never make anything fail. */
static int64_t read_hint(struct tarn_op *op, struct tarn_table *table, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_status *s = tarn_store_get(table->env->store, op,
                                           tarn_table__key(op, table, "snapshot/%s", name), &text);
    int64_t id = 0;
    if (s == TARN_OK)
        s = tarn_parse_i64(tarn_buf_slice(&text), &id);
    if (s != TARN_OK) {
        tarn_status_free(s);
        return 0;
    }
    return id;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Ids have no gaps. What lies below one is no history: a process that died before it could take back the snapshot that
 * it put under an id that others had used and expired (README.md, I3). */
static struct tarn_status *find_run(struct tarn_op *op, struct tarn_table *table, int64_t *ids,
                                    size_t count, struct tarn_range *out)
{
    qsort(ids, count, sizeof *ids, newest_first);
    *out = (struct tarn_range){ids[0], ids[0]};
    for (size_t i = 1; out->earliest > 1;) {
        int64_t below = out->earliest - 1;
        bool there = i < count && ids[i] == below;
        if (there)
            i++;
        else /* a list may be short of it */
            TARN_TRY(exists(op, table,
                            tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, below),
                            &there));
        if (!there)
            break;
        out->earliest = below;
    }
    return TARN_OK;
}

/* latest: what is known of it, and what lies above a gap behind that is no history either: a put that came late, after its ground
 * was rolled back; 0: nothing. */
static struct tarn_status *list_range(struct tarn_op *op, struct tarn_table *table, int64_t latest,
                                      struct tarn_range *out)
{
    struct tarn_object *objects;
    size_t count, n = 0;
    TARN_TRY(tarn_store_list(table->env->store, op, tarn_table__key(op, table, "snapshot"), false,
                             &objects, &count));
    *out = (struct tarn_range){0, 0};
    TARN_OWN(tarn_free_drop) int64_t *ids = tarn_calloc(count + 1, sizeof *ids);
    for (size_t i = 0; i < count; i++)
        if (!objects[i].is_folder && parse_id(objects[i].key, "snapshot-", &ids[n]) && ids[n] > 0 &&
            (latest == 0 || ids[n] < latest))
            n++;
    if (latest != 0) /* whether it is listed or not */
        ids[n++] = latest;
    if (n == 0)
        return TARN_OK;
    TARN_TRY(find_run(op, table, ids, n, out));
    for (bool next = true; next; out->latest += next) /* and of the newest */
        TARN_TRY(exists(op, table,
                        tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, out->latest + 1),
                        &next));
    return TARN_OK;
}

struct tarn_status *tarn_table__find_neighbours(struct tarn_op *op, struct tarn_table *table,
                                                int64_t id, int64_t *below, int64_t *above)
{
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(tarn_store_list(table->env->store, op, tarn_table__key(op, table, "snapshot"), false,
                             &objects, &count));
    *below = *above = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t other;
        if (objects[i].is_folder || !parse_id(objects[i].key, "snapshot-", &other) || other <= 0)
            continue;
        if (other < id)
            *below = TARN_MAX(*below, other);
        else if (other > id)
            *above = *above == 0 ? other : TARN_MIN(*above, other);
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__find_range(struct tarn_op *op, struct tarn_table *table,
                                           struct tarn_range *out)
{
    int64_t latest = read_hint(op, table, "LATEST");
    int64_t earliest = read_hint(op, table, "EARLIEST");
    bool has_earliest = earliest > 0 && earliest <= latest, has_latest = latest > 0, has_next;
    if (has_latest)
        TARN_TRY(exists(op, table, tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, latest),
                        &has_latest));
    if (has_latest)
        TARN_TRY(exists(op, table,
                        tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, latest + 1),
                        &has_next));
    if (!has_latest || has_next)
        return list_range(op, table, 0, out);
    if (has_earliest)
        TARN_TRY(exists(op, table,
                        tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, earliest),
                        &has_earliest));
    *out = (struct tarn_range){earliest, latest};
    return has_earliest ? TARN_OK : list_range(op, table, latest, out);
}

struct tarn_status *tarn_table__read_snapshot(struct tarn_op *op, struct tarn_table *table,
                                              int64_t id, struct tarn_arena *arena, bool *found,
                                              struct tarn_slice *json, struct tarn_snapshot *out)
{
    const char *key = tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, id);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_status *s = tarn_store_find(table->env->store, op, key, found, &bytes);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s", table->name);
    if (!*found)
        return TARN_OK;
    if (tarn_table__is_late(table, id, tarn_buf_slice(&bytes))) {
        *found = false;
        return TARN_OK;
    }
    *json = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    s = tarn_snapshot_decode(*json, arena, out);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "%s", key);
    if (out->id != id)
        return tarn_status_new(TARN_SNAPSHOT_MALFORMED, "%s says it is snapshot %" PRId64, key,
                               out->id);
    return TARN_OK;
}

/* A file of the manifest folder, whole. */
static struct tarn_status *read_metadata(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_slice name, struct tarn_arena *arena,
                                         struct tarn_slice *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    const char *key = tarn_table__key(op, table, "manifest/%.*s", TARN_SLICE_ARG(name));
    struct tarn_status *s = tarn_store_get(table->env->store, op, key, &bytes);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s", table->name);
    *out = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    return TARN_OK;
}

struct tarn_status *tarn_table__read_list(struct tarn_op *op, struct tarn_table *table,
                                          struct tarn_slice name, struct tarn_arena *arena,
                                          struct tarn_manifest_file **out, size_t *count)
{
    struct tarn_slice bytes;
    TARN_TRY(read_metadata(op, table, name, arena, &bytes));
    struct tarn_status *s = tarn_manifest_list_decode(bytes, arena, out, count);
    return s == TARN_OK ? s
                        : tarn_status_wrap(s, "table %s, manifest list %.*s", table->name,
                                           TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_table__read_manifest(struct tarn_op *op, struct tarn_table *table,
                                              struct tarn_slice name, struct tarn_arena *arena,
                                              struct tarn_manifest_entry **out, size_t *count)
{
    struct tarn_slice bytes;
    TARN_TRY(read_metadata(op, table, name, arena, &bytes));
    struct tarn_status *s = tarn_manifest_decode(bytes, arena, out, count);
    return s == TARN_OK
               ? s
               : tarn_status_wrap(s, "table %s, manifest %.*s", table->name, TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_table__read_schema(struct tarn_op *op, struct tarn_table *table,
                                            int64_t id, struct tarn_arena *arena, bool *found,
                                            struct tarn_schema *out)
{
    const char *key = tarn_table__key(op, table, "schema/schema-%" PRId64, id);
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    struct tarn_status *s = tarn_store_find(table->env->store, op, key, found, &bytes);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s", table->name);
    if (!*found)
        return TARN_OK;
    s = tarn_schema_decode(tarn_arena_copy(arena, tarn_buf_slice(&bytes)), arena, out);
    return s == TARN_OK ? s : tarn_status_wrap(s, "%s", key);
}

struct tarn_status *tarn_table__latest_schema_id(struct tarn_op *op, struct tarn_table *table,
                                                 int64_t from, int64_t *out)
{
    if (from < 0) {
        struct tarn_object *objects;
        size_t count;
        TARN_TRY(tarn_store_list(table->env->store, op, tarn_table__key(op, table, "schema"), false,
                                 &objects, &count));
        for (size_t i = 0; i < count; i++) {
            int64_t id;
            if (!objects[i].is_folder && parse_id(objects[i].key, "schema-", &id))
                from = TARN_MAX(from, id);
        }
        if (from < 0)
            return tarn_status_new(TARN_TABLE_NOT_FOUND, "table %s has no schema in %s",
                                   table->name, table->path);
    }
    for (;; from++) {
        bool next;
        TARN_TRY(exists(op, table, tarn_table__key(op, table, "schema/schema-%" PRId64, from + 1),
                        &next));
        if (!next)
            break;
    }
    *out = from;
    return TARN_OK;
}

void tarn_head_free(struct tarn_head *head)
{
    if (head == NULL)
        return;
    tarn_arena_free(head->arena);
    free(head);
}

void tarn_head_drop(struct tarn_head **head)
{
    tarn_head_free(*head);
    *head = NULL;
}

struct tarn_status *tarn_table__load_head(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                          bool *found, struct tarn_head **out)
{
    TARN_OWN(tarn_head_drop) struct tarn_head *head = tarn_calloc(1, sizeof *head);
    head->arena = tarn_arena_new();
    head->id = id;
    *found = true;
    if (id == 0)
        head->manifests_known = true;
    else
        TARN_TRY(tarn_table__read_snapshot(op, table, id, head->arena, found, &head->json,
                                           &head->snapshot));
    if (*found)
        *out = tarn_move(head);
    return TARN_OK;
}

struct tarn_status *tarn_table__head_manifests(struct tarn_op *op, struct tarn_table *table,
                                               struct tarn_head *head)
{
    if (head->manifests_known)
        return TARN_OK;
    struct tarn_manifest_file *base, *delta;
    size_t base_count, delta_count;
    TARN_TRY(tarn_table__read_list(op, table, head->snapshot.base_list, head->arena, &base,
                                   &base_count));
    TARN_TRY(tarn_table__read_list(op, table, head->snapshot.delta_list, head->arena, &delta,
                                   &delta_count));
    head->manifest_count = base_count + delta_count;
    head->manifests =
        tarn_arena_calloc(head->arena, head->manifest_count + 1, sizeof *head->manifests);
    if (base_count > 0)
        memcpy(head->manifests, base, base_count * sizeof *base);
    if (delta_count > 0)
        memcpy(head->manifests + base_count, delta, delta_count * sizeof *delta);
    head->manifests_known = true;
    return TARN_OK;
}
