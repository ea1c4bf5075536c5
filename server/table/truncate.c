#include "table/index.h"
#include "table/internal.h"

/* The newest part of a history goes, in the mailbox: for a roll-back, and for a fast-forward that puts another there. */

static const char *snapshot_key(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    return tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, id);
}

struct tarn_status *tarn_table__put_hint(struct tarn_op *op, struct tarn_table *table,
                                         const char *name, int64_t id)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRId64, id);
    return tarn_store_put(table->env->store, op, tarn_table__key(op, table, "snapshot/%s", name),
                          tarn_slice_of(text, (size_t)size));
}

/* 0: none. */
static struct tarn_status *put_latest(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    return id > 0 ? tarn_table__put_hint(op, table, "LATEST", id)
                  : tarn_store_remove(table->env->store, op,
                                      tarn_table__key(op, table, "snapshot/LATEST"));
}

struct tarn_status *tarn_table__hint_back(struct tarn_op *op, struct tarn_table *table, int64_t to,
                                          bool *removed)
{
    bool follows = false;
    if (to > 0)
        TARN_TRY(tarn_store_stat(table->env->store, op, snapshot_key(op, table, to + 1), &follows,
                                 NULL));
    *removed = !follows;
    return put_latest(op, table, follows ? to : 0);
}

struct tarn_status *tarn_table__tags_above(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                           const struct tarn_slice **out, size_t *count)
{
    struct tarn_named *named;
    size_t named_count;
    TARN_TRY(tarn_table__list_named(op, table, "tag", "tag-", &named, &named_count));
    struct tarn_slice *above = tarn_arena_calloc(op->arena, named_count + 1, sizeof *above);
    *count = 0;
    for (size_t i = 0; i < named_count; i++) {
        struct tarn_tag tag;
        struct tarn_slice json;
        struct tarn_status *s = tarn_table__read_tag(op, table, named[i].name, &json, &tag);
        if (tarn_status_reason(s) == TARN_TAG_NOT_FOUND) { /* it went meanwhile */
            tarn_status_free(s);
            continue;
        }
        TARN_TRY(s);
        if (tag.snapshot.id > id)
            above[(*count)++] = named[i].name;
    }
    *out = above;
    return TARN_OK;
}

/* What the index doesn't know under this id is another writer's, who went on from what is left already. */
static struct tarn_status *remove_snapshot(struct tarn_op *op, struct tarn_table *table, int64_t id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf indexed = {0};
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    bool there, known;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, op->arena, &there, &json, &snapshot));
    if (!there)
        return TARN_OK;
    TARN_TRY(tarn_table__indexed_snapshot(table, id, &known, &indexed));
    if (known && !tarn_slice_equal(tarn_buf_slice(&indexed), json))
        return tarn_status_new(TARN_SNAPSHOT_TAKEN,
                               "another writer put snapshot %" PRId64
                               " of table %s while its history was rewritten",
                               id, tarn_table_name(table));
    return tarn_store_remove(table->env->store, op, snapshot_key(op, table, id));
}

static int falling(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Of `folder`, those above `to`, the newest first, each once. newest: up to it they are there, if not listed. */
static struct tarn_status *ids_above(struct tarn_op *op, struct tarn_table *table,
                                     const char *folder, const char *prefix, int64_t newest,
                                     int64_t to, int64_t **out, size_t *count)
{
    struct tarn_named *named;
    size_t named_count;
    TARN_TRY(tarn_table__list_named(op, table, folder, prefix, &named, &named_count));
    size_t known = newest > to ? (size_t)(newest - to) : 0, n = 0;
    *out = tarn_arena_calloc(op->arena, named_count + known + 1, sizeof **out);
    for (size_t i = 0; i < known; i++) /* a list may be short or old */
        (*out)[n++] = newest - (int64_t)i;
    for (size_t i = 0; i < named_count; i++) {
        int64_t id;
        struct tarn_status *s = tarn_parse_i64(named[i].name, &id);
        if (s == TARN_OK && id > TARN_MAX(newest, to))
            (*out)[n++] = id;
        tarn_status_free(s);
    }
    qsort(*out, n, sizeof **out, falling);
    *count = n;
    return TARN_OK;
}

/* Another writer may have put one on top of what went: behind a gap it is none of a history. What begins right behind `to` is. */
static struct tarn_status *remove_strays(struct tarn_op *op, struct tarn_table *table, int64_t to)
{
    int64_t *ids, next = to + 1;
    size_t count;
    TARN_TRY(ids_above(op, table, "snapshot", "snapshot-", 0, to, &ids, &count));
    while (count > 0 && ids[count - 1] == next) {
        count--;
        next++;
    }
    if (count > 0) /* its writer's hint may name it, and would be believed after it has gone */
        TARN_TRY(put_latest(op, table, next - 1));
    for (size_t i = 0; i < count; i++) {
        tarn_log(op, TARN_WARN, "table.stray_removed", "table=%s snapshot=%" PRId64,
                 tarn_log_quote(op, tarn_table_name(table)), ids[i]);
        TARN_TRY(tarn_store_remove(table->env->store, op, snapshot_key(op, table, ids[i])));
    }
    return TARN_OK;
}

static struct tarn_status *remove_snapshots(struct tarn_op *op, struct tarn_table *table,
                                            int64_t from, int64_t to)
{
    int64_t *ids;
    size_t count;
    TARN_TRY(ids_above(op, table, "snapshot", "snapshot-", from, to, &ids, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(remove_snapshot(op, table, ids[i]));
    return count == 0 ? TARN_OK : remove_strays(op, table, to);
}

static struct tarn_status *remove_changelogs(struct tarn_op *op, struct tarn_table *table,
                                             int64_t to)
{
    int64_t *ids;
    size_t count;
    TARN_TRY(ids_above(op, table, "changelog", "changelog-", 0, to, &ids, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(
            tarn_store_remove(table->env->store, op,
                              tarn_table__key(op, table, "changelog/changelog-%" PRId64, ids[i])));
    return TARN_OK;
}

struct tarn_status *tarn_table__truncate(struct tarn_op *op, struct tarn_table *table, int64_t from,
                                         int64_t to, const struct tarn_slice *tags,
                                         size_t tag_count)
{
    TARN_TRY(remove_snapshots(op, table, from, to));
    TARN_TRY(remove_changelogs(op, table, to));
    for (size_t i = 0; i < tag_count; i++)
        TARN_TRY(
            tarn_store_remove(table->env->store, op,
                              tarn_table__key(op, table, "tag/tag-%.*s", TARN_SLICE_ARG(tags[i]))));
    return TARN_OK;
}

struct tarn_status *tarn_table__rewritten(struct tarn_op *op, struct tarn_table *table,
                                          struct tarn_status *consumed)
{
    struct tarn_status *looked = tarn_table__refresh(op, table);
    if (consumed == TARN_OK)
        return looked;
    tarn_status_free(looked);
    return tarn_status_wrap(consumed, "the history of table %s may be rewritten in part",
                            tarn_table_name(table));
}
