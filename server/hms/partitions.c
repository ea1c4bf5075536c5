#include "hms/internal.h"

/* Partitions of a table that has partition columns there: the set of them, by values. What is there under a name that is ours is
 * taken to be right. */

struct set {
    struct tarn_hms__partition *list;
    size_t count;
    uint64_t digest; /* of the set, whatever its order; never 0 */
};

/* Values behind each other, so that no two partitions look alike. */
static void values_key(const struct tarn_slice *values, size_t count, struct tarn_buf *out)
{
    tarn_buf_clear(out);
    for (size_t i = 0; i < count; i++) {
        tarn_buf_printf(out, "%zu:", values[i].size);
        tarn_buf_add_slice(out, values[i]);
    }
}

/* "dt=a%3Ab/hour=3[/]" -> "a:b", "3"; false: it hasn't `count` parts. */
static bool parse_name(struct tarn_arena *arena, struct tarn_slice name, size_t count,
                       const struct tarn_slice **out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    struct tarn_slice *values = tarn_arena_calloc(arena, count + 1, sizeof *values);
    size_t n = 0;
    while (name.size > 0) {
        const uint8_t *slash = memchr(name.data, '/', name.size);
        size_t size = slash == NULL ? name.size : (size_t)(slash - name.data);
        const uint8_t *equals = memchr(name.data, '=', size);
        if (equals == NULL || n == count)
            return false;
        size_t at = (size_t)(equals - name.data) + 1;
        tarn_buf_clear(&value);
        tarn_path_unescape(tarn_slice_of(name.data + at, size - at), &value);
        values[n++] = tarn_arena_copy(arena, tarn_buf_slice(&value));
        size_t step = TARN_MIN(size + 1, name.size);
        name = tarn_slice_of(name.data + step, name.size - step);
    }
    *out = values;
    return n == count;
}

/* --- ours --- */

static struct tarn_status *shape(struct tarn_hms__push *push, const struct tarn_table_view *view,
                                 struct tarn_slice row, const struct tarn_hms__table *want,
                                 struct tarn_buf *path, struct tarn_hms__partition *out)
{
    struct tarn_arena *arena = push->op->arena;
    struct tarn_slice data_dir = view->options.data_dir;
    tarn_buf_clear(path);
    TARN_TRY(tarn_partition_path(&view->schema, &view->options, row, path));
    struct tarn_slice name = tarn_buf_slice(path);
    if (!parse_name(arena, name, want->key_count, &out->values))
        return tarn_status_new(TARN_INTERNAL, "partition %.*s hasn't %zu parts",
                               TARN_SLICE_ARG(name), want->key_count);
    if (name.size > 0 && name.data[name.size - 1] == '/')
        name.size--;
    out->location = tarn_slice_str(tarn_arena_printf(
        arena, "%.*s%s%.*s/%.*s", TARN_SLICE_ARG(want->location), data_dir.data == NULL ? "" : "/",
        TARN_SLICE_ARG(data_dir), TARN_SLICE_ARG(name)));
    return TARN_OK;
}

static struct tarn_status *list_ours(struct tarn_hms__push *push, struct tarn_table *table,
                                     const struct tarn_hms__table *want, struct set *out,
                                     int64_t *snapshot_id)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf buf = {0};
    struct tarn_partition_totals *totals;
    size_t count;
    TARN_TRY(tarn_table_partition_totals(push->op, table, &view, &totals, &count));
    *out = (struct set){.list = tarn_arena_calloc(push->op->arena, count + 1, sizeof *out->list)};
    for (size_t i = 0; i < count; i++) {
        struct tarn_hms__partition *partition = &out->list[out->count++];
        TARN_TRY(shape(push, view, totals[i].partition, want, &buf, partition));
        values_key(partition->values, want->key_count, &buf);
        out->digest ^= tarn_xxh64(tarn_buf_slice(&buf), 0);
    }
    out->digest |= 1;
    *snapshot_id = view->has_snapshot ? view->snapshot.id : 0;
    return TARN_OK;
}

/* --- the difference --- */

/* Values of theirs that aren't ours; those of ours that are there are taken out of `ours`. */
static struct tarn_status *find_extra(struct tarn_hms__push *push,
                                      const struct tarn_hms__table *want, struct tarn_map *ours,
                                      const struct tarn_slice ***out, size_t *count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    struct tarn_slice *names;
    size_t name_count;
    *count = 0;
    TARN_TRY(tarn_hms__list_partitions(push->op, push->client, want, &names, &name_count));
    const struct tarn_slice **extra =
        tarn_arena_calloc(push->op->arena, name_count + 1, sizeof *extra);
    for (size_t i = 0; i < name_count; i++) {
        const struct tarn_slice *values;
        if (!parse_name(push->op->arena, names[i], want->key_count, &values))
            continue; /* nothing that could be named to it */
        values_key(values, want->key_count, &key);
        if (tarn_map_remove(ours, tarn_buf_slice(&key)) == NULL)
            extra[(*count)++] = values;
    }
    *out = extra;
    return TARN_OK;
}

static struct tarn_map *map_of(const struct set *set, size_t key_count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    struct tarn_map *map = tarn_map_new();
    for (size_t i = 0; i < set->count; i++) {
        values_key(set->list[i].values, key_count, &key);
        tarn_map_set(map, tarn_buf_slice(&key), &set->list[i]);
    }
    return map;
}

static struct tarn_status *add_all(struct tarn_hms__push *push, const struct tarn_hms__table *want,
                                   const struct tarn_map *missing)
{
    struct tarn_hms__partition some[HMS_PARTITIONS_AT_ONCE];
    size_t cursor = 0, count = 0;
    struct tarn_slice key;
    void *partition;
    while (tarn_map_next(missing, &cursor, &key, &partition)) {
        some[count++] = *(struct tarn_hms__partition *)partition;
        if (count == HMS_PARTITIONS_AT_ONCE) {
            TARN_TRY(tarn_hms__add_partitions(push->op, push->client, want, some, count));
            count = 0;
        }
    }
    return count == 0 ? TARN_OK
                      : tarn_hms__add_partitions(push->op, push->client, want, some, count);
}

static void tell(struct tarn_hms__push *push, const struct tarn_hms__table *want, size_t added,
                 size_t dropped, bool was_right)
{
    bool repair = push->check && was_right;
    enum tarn_metric metric = repair ? TARN_M_HMS_REPAIRS : TARN_M_HMS_CHANGES;
    tarn_metric_add(metric, "partition_created", (double)added);
    tarn_metric_add(metric, "partition_dropped", (double)dropped);
    if (added + dropped > 0)
        tarn_log(push->op, repair ? TARN_WARN : TARN_INFO, repair ? "hms.repaired" : "hms.pushed",
                 "what=partitions name=%.*s.%.*s created=%zu dropped=%zu",
                 TARN_SLICE_ARG(want->database), TARN_SLICE_ARG(want->name), added, dropped);
}

static struct tarn_status *make_equal(struct tarn_hms__push *push,
                                      const struct tarn_hms__table *want, const struct set *set,
                                      bool was_right)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *missing = map_of(set, want->key_count);
    const struct tarn_slice **extra;
    size_t extra_count;
    TARN_TRY(find_extra(push, want, missing, &extra, &extra_count));
    TARN_TRY(add_all(push, want, missing));
    for (size_t i = 0; i < extra_count; i++)
        TARN_TRY(tarn_hms__drop_partition(push->op, push->client, want, extra[i]));
    tell(push, want, tarn_map_count(missing), extra_count, was_right);
    return TARN_OK;
}

struct tarn_status *tarn_hms__push_partitions(struct tarn_hms__push *push, struct tarn_table *table,
                                              const struct tarn_hms__table *want,
                                              struct tarn_hms__known *known)
{
    struct set set;
    int64_t snapshot_id;
    TARN_TRY(list_ours(push, table, want, &set, &snapshot_id));
    bool was_right = known->partitions == set.digest;
    if (!was_right || push->check) {
        known->partitions = 0;
        TARN_TRY(make_equal(push, want, &set, was_right));
    }
    known->partitions = set.digest;
    known->snapshot_id = snapshot_id;
    return TARN_OK;
}
