#include "table/internal.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * What a table's folder holds: which snapshots and schemas, and their files. Hints are looked at first
 * and believed only where the folder agrees with them.
 */

/* Is it of what a branch has of its own? */
static bool is_of_branch(const char *rest)
{
    static const char *const folders[] = {"snapshot", "schema", "tag", "changelog", "consumer"};
    size_t n = strcspn(rest, "/");
    bool is = false;
    for (size_t i = 0; i < TARN_COUNT_OF(folders); i++)
        is = is || (strlen(folders[i]) == n && memcmp(rest, folders[i], n) == 0);
    return is;
}

const char *tarn_table__key(struct tarn_op *op, struct tarn_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *rest = NULL;
    int size = vasprintf(&rest, format, args);
    va_end(args);
    tarn_assert(size >= 0);
    pthread_mutex_lock(&table->lock);
    char *key = table->branch[0] != '\0' && is_of_branch(rest)
                    ? tarn_arena_printf(op->arena, "%s/" TARN_BRANCH_FOLDER "%s/%s", table->path,
                                        table->branch, rest)
                    : tarn_arena_printf(op->arena, "%s/%s", table->path, rest);
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

struct tarn_status *tarn_table__read_hint(struct tarn_op *op, struct tarn_table *table,
                                          const char *name, int64_t *id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool found;
    *id = 0;
    TARN_TRY(tarn_store_find(table->env->store, op, tarn_table__key(op, table, "snapshot/%s", name),
                             &found, &text));
    struct tarn_status *s = found ? tarn_parse_i64(tarn_buf_slice(&text), id) : TARN_OK;
    if (s != TARN_OK)
        *id = 0;
    tarn_status_free(s);
    return TARN_OK;
}

static const char *snapshot_key(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    return tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, id);
}

struct tarn_status *tarn_table__list_named(struct tarn_op *op, struct tarn_table *table,
                                           const char *folder, const char *prefix,
                                           struct tarn_named **out, size_t *count)
{
    struct tarn_object *objects;
    size_t object_count, n = strlen(prefix);
    TARN_TRY(tarn_store_list(table->env->store, op, tarn_table__key(op, table, "%s", folder), false,
                             &objects, &object_count));
    *out = tarn_arena_calloc(op->arena, object_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < object_count; i++) {
        struct tarn_slice key = objects[i].key;
        const uint8_t *slash = memrchr(key.data, '/', key.size);
        struct tarn_slice name =
            slash == NULL ? key
                          : tarn_slice_of(slash + 1, key.size - (size_t)(slash + 1 - key.data));
        if (!objects[i].is_folder && tarn_slice_starts_with(name, tarn_slice_str(prefix)))
            (*out)[(*count)++] = (struct tarn_named){tarn_slice_of(name.data + n, name.size - n),
                                                     objects[i].mtime_ms};
    }
    return TARN_OK;
}

/* --- the range ---
 * A list may be short or old: what isn't in it is asked for by name. So lists only spare questions, but where nothing at all is
 * known: no hint, no view, no index. */

struct ids {       /* of a list, rising */
    int64_t *list; /* owned */
    size_t count;
};

static void ids_fini(struct ids *ids)
{
    free(ids->list);
}

static int rising(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

static struct tarn_status *list_ids(struct tarn_op *op, struct tarn_table *table, struct ids *out)
{
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(tarn_store_list(table->env->store, op, tarn_table__key(op, table, "snapshot"), false,
                             &objects, &count));
    out->list = tarn_calloc(count + 1, sizeof *out->list);
    for (size_t i = 0; i < count; i++) {
        int64_t *id = &out->list[out->count];
        if (!objects[i].is_folder && parse_id(objects[i].key, "snapshot-", id) && *id > 0)
            out->count++;
    }
    qsort(out->list, out->count, sizeof *out->list, rising);
    return TARN_OK;
}

static struct tarn_status *is_there(struct tarn_op *op, struct tarn_table *table,
                                    const struct ids *ids, int64_t id, bool *out)
{
    *out =
        id > 0 && ids->count > 0 && bsearch(&id, ids->list, ids->count, sizeof id, rising) != NULL;
    return *out || id <= 0 ? TARN_OK : exists(op, table, snapshot_key(op, table, id), out);
}

/* Ids have no gaps. What lies behind one is no history: a put that came late, above what others had rolled back, or under an
 * id that others had used and expired (README.md, I3). */
static struct tarn_status *walk_run(struct tarn_op *op, struct tarn_table *table, int64_t in,
                                    struct tarn_range *out)
{
    TARN_OWN(ids_fini) struct ids ids = {0};
    bool there = in > 0;
    *out = (struct tarn_range){0, 0};
    TARN_TRY(list_ids(op, table, &ids));
    if (!there)
        in = ids.count > 0 ? ids.list[ids.count - 1] : 1;
    if (!there)
        TARN_TRY(is_there(op, table, &ids, in, &there));
    if (!there)
        return TARN_OK;
    for (out->earliest = in; there; out->earliest -= there)
        TARN_TRY(is_there(op, table, &ids, out->earliest - 1, &there));
    there = true;
    for (out->latest = in; there; out->latest += there)
        TARN_TRY(is_there(op, table, &ids, out->latest + 1, &there));
    return TARN_OK;
}

/* Others may be at work meanwhile. An expiry takes from below: what is left begins higher. *moved: a roll-back takes from above, and
 * what lies below the earliest may be missing for that. */
static struct tarn_status *find_run(struct tarn_op *op, struct tarn_table *table, int64_t in,
                                    bool *moved, struct tarn_range *out)
{
    bool there;
    *moved = false;
    TARN_TRY(walk_run(op, table, in, out));
    if (out->latest == 0)
        return TARN_OK;
    TARN_TRY(exists(op, table, snapshot_key(op, table, out->earliest), &there));
    if (there)
        return TARN_OK;
    TARN_TRY(exists(op, table, snapshot_key(op, table, out->latest), &there));
    *moved = !there;
    if (*moved)
        *out = (struct tarn_range){0, 0};
    for (there = *moved; !there && out->earliest < out->latest;) {
        out->earliest++;
        TARN_TRY(exists(op, table, snapshot_key(op, table, out->earliest), &there));
    }
    return TARN_OK;
}

/* What was seen last; 0, 0: nothing. */
static struct tarn_status *find_known(struct tarn_table *table, struct tarn_range *out)
{
    uint64_t hash;
    pthread_mutex_lock(&table->lock);
    bool has_view = table->view != NULL && table->view->view.has_snapshot;
    if (has_view)
        *out = (struct tarn_range){table->view->view.earliest_id, table->view->view.snapshot.id};
    pthread_mutex_unlock(&table->lock);
    if (has_view)
        return TARN_OK;
    TARN_TRY(tarn_table__indexed_id(table, &out->latest, &hash));
    out->earliest = out->latest;
    return TARN_OK;
}

/* One that is in history, where LATEST doesn't say which the last one is; 0: none is known. What the hint names, or was the newest: it
 * may have been rolled back, and the earliest not; or all that was known has expired, and EARLIEST says up to where. */
static struct tarn_status *find_one(struct tarn_op *op, struct tarn_table *table, int64_t latest,
                                    int64_t earliest, struct tarn_range known, int64_t *out)
{
    int64_t candidates[] = {TARN_MAX(latest, known.latest), TARN_MIN(latest, known.latest),
                            earliest, known.earliest};
    bool there = false;
    *out = 0;
    for (size_t i = 0; i < TARN_COUNT_OF(candidates) && !there; i++) {
        *out = candidates[i];
        if (*out > 0)
            TARN_TRY(exists(op, table, snapshot_key(op, table, *out), &there));
    }
    *out = there ? *out : 0;
    return TARN_OK;
}

/* *named: a hint or what was known says that there are any. */
static struct tarn_status *find_range(struct tarn_op *op, struct tarn_table *table, bool *named,
                                      bool *moved, struct tarn_range *out)
{
    int64_t latest, earliest;
    struct tarn_range known;
    bool has_latest = false, has_next = true, has_earliest = false;
    *moved = false;
    TARN_OWN(tarn_status_drop)
    struct tarn_status *unread = tarn_table__read_hint(op, table, "LATEST", &latest);
    TARN_TRY(tarn_table__read_hint(op, table, "EARLIEST", &earliest));
    if (latest > 0)
        TARN_TRY(exists(op, table, snapshot_key(op, table, latest), &has_latest));
    if (has_latest)
        TARN_TRY(exists(op, table, snapshot_key(op, table, latest + 1), &has_next));
    if (!has_next && earliest > 0 && earliest <= latest)
        TARN_TRY(exists(op, table, snapshot_key(op, table, earliest), &has_earliest));
    *out = (struct tarn_range){earliest, latest};
    if (has_earliest)
        return TARN_OK;
    TARN_TRY(find_known(table, &known));
    *named = latest > 0 || earliest > 0 || known.latest > 0;
    if (has_next)
        TARN_TRY(find_one(op, table, latest, earliest, known, &latest));
    if (latest == 0 && unread != TARN_OK) /* and a list alone is not to be trusted */
        return tarn_move(unread);
    TARN_TRY(find_run(op, table, latest, moved, out));
    /* Where it is there, it is the first one, whatever a cut-off expiry left below it. */
    if (earliest > out->earliest && earliest <= out->latest)
        TARN_TRY(exists(op, table, snapshot_key(op, table, earliest), &has_earliest));
    if (has_earliest)
        out->earliest = earliest;
    return TARN_OK;
}

#define RANGE_TRIES 3

struct tarn_status *tarn_table__find_range(struct tarn_op *op, struct tarn_table *table,
                                           struct tarn_range *out)
{
    bool named = true, moved = false;
    *out = (struct tarn_range){0, 0};
    /* What is said to be there may have been rolled back since; who did it says first what is left. */
    for (int tries = 0; tries < RANGE_TRIES && (named || moved) && out->latest == 0; tries++)
        TARN_TRY(find_range(op, table, &named, &moved, out));
    return !moved ? TARN_OK
                  : tarn_status_new(TARN_STORE_UNAVAILABLE,
                                    "table %s: others roll its history back while it is looked for",
                                    table->name);
}

/* A list and the range: each may show what the other doesn't. What lies below the earliest is no history: an expiry was cut off. But
 * where no hint and nothing known led to it, the range may be what is asked about, alone above what others rolled back: then it's
 * EARLIEST that tells, which an expiry puts first. */
struct tarn_status *tarn_table__find_neighbours(struct tarn_op *op, struct tarn_table *table,
                                                int64_t id, int64_t *below, int64_t *above)
{
    TARN_OWN(ids_fini) struct ids ids = {0};
    struct tarn_range range;
    int64_t earliest;
    *below = *above = 0;
    TARN_TRY(tarn_table__find_range(op, table, &range));
    TARN_TRY(tarn_table__read_hint(op, table, "EARLIEST", &earliest));
    TARN_TRY(list_ids(op, table, &ids));
    if (range.earliest != id)
        earliest = range.earliest;
    if (range.latest != 0 && range.earliest < id)
        *below = TARN_MIN(range.latest, id - 1);
    if (range.latest > id)
        *above = TARN_MAX(range.earliest, id + 1);
    for (size_t i = 0; i < ids.count; i++) {
        if (ids.list[i] < earliest)
            continue;
        if (ids.list[i] < id)
            *below = TARN_MAX(*below, ids.list[i]);
        else if (ids.list[i] > id && (*above == 0 || ids.list[i] < *above))
            *above = ids.list[i];
    }
    return TARN_OK;
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
    bool is_late;
    TARN_TRY(tarn_table__is_late(op, table, id, tarn_buf_slice(&bytes), &is_late));
    *found = !is_late;
    if (is_late)
        return TARN_OK;
    *json = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    s = tarn_snapshot_decode(*json, arena, out);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "%s", key);
    out->json = *json;
    if (out->id != id)
        return tarn_status_new(TARN_SNAPSHOT_MALFORMED, "%s says it is snapshot %" PRId64, key,
                               out->id);
    return TARN_OK;
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
    if (s != TARN_OK)
        return tarn_status_wrap(s, "%s", key);
    return out->id == id ? TARN_OK
                         : tarn_status_new(TARN_SCHEMA_MALFORMED, "%s says it is schema %" PRId64,
                                           key, out->id);
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
        bool first = false;
        if (from < 0)
            TARN_TRY(exists(op, table, tarn_table__key(op, table, "schema/schema-0"), &first));
        from += first;
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
    TARN_TRY(tarn_table__read_list(op, table, &head->snapshot, TARN_LIST_BASE, head->arena, &base,
                                   &base_count));
    TARN_TRY(tarn_table__read_list(op, table, &head->snapshot, TARN_LIST_DELTA, head->arena, &delta,
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
