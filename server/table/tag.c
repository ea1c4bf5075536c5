#include "table/refs.h"

#include "table/internal.h"

/* Tags are files, Paimon's, made and dropped by every engine: nothing of them is kept elsewhere. */

#define FOLDER "tag"
#define PREFIX "tag-"
#define LOOKS_MAX 5

static const char *key_of(struct tarn_op *op, struct tarn_table *table, struct tarn_slice name)
{
    return tarn_table__key(op, table, FOLDER "/" PREFIX "%.*s", TARN_SLICE_ARG(name));
}

static struct tarn_status *not_found(struct tarn_table *table, struct tarn_slice name)
{
    return tarn_status_new(TARN_TAG_NOT_FOUND, "table %s has no tag %.*s", tarn_table_name(table),
                           TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_table__read_tag(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_slice name, struct tarn_slice *json,
                                         struct tarn_tag *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    bool found = false;
    struct tarn_status *s = tarn_tag_check_name(name);
    if (s != TARN_OK) { /* there can't be one */
        tarn_status_free(s);
        return tarn_status_new(TARN_TAG_NOT_FOUND, "table %s has no tag of this name",
                               tarn_table_name(table));
    }
    TARN_TRY(tarn_store_find(table->env->store, op, key_of(op, table, name), &found, &text));
    if (!found)
        return not_found(table, name);
    *json = tarn_arena_copy(op->arena, tarn_buf_slice(&text));
    out->name = tarn_arena_copy(op->arena, name);
    TARN_OWN(tarn_buf_drop) struct tarn_buf snapshot = {0};
    s = tarn_tag_decode(*json, op->arena, out);
    if (s == TARN_OK)
        s = tarn_tag_encode_snapshot(*json, &snapshot);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "table %s, tag %.*s", tarn_table_name(table),
                                TARN_SLICE_ARG(name));
    out->snapshot.json = tarn_arena_copy(op->arena, tarn_buf_slice(&snapshot));
    return TARN_OK;
}

/* --- create --- */

/* The bytes of the snapshot's file as they are now. */
static struct tarn_status *read_target(struct tarn_op *op, struct tarn_table *table,
                                       struct tarn_version version, int64_t *id,
                                       struct tarn_slice *json)
{
    struct tarn_snapshot snapshot;
    bool found;
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        TARN_TRY(tarn_table_snapshot(op, table, version, &found, &snapshot));
        if (!found)
            return tarn_status_new(TARN_SNAPSHOT_NOT_FOUND, "table %s has no snapshot yet",
                                   tarn_table_name(table));
        *id = snapshot.id;
        TARN_TRY(
            tarn_table__read_snapshot(op, table, snapshot.id, op->arena, &found, json, &snapshot));
        if (found)
            return TARN_OK;
        tarn_table__look_again(table); /* it went meanwhile */
    }
    return tarn_status_new(TARN_STORE_UNAVAILABLE, "the history of table %s is being rewritten",
                           tarn_table_name(table));
}

static struct tarn_status *put(struct tarn_op *op, struct tarn_table *table, struct tarn_slice name,
                               struct tarn_slice json)
{
    bool created, found;
    const char *key = key_of(op, table, name);
    struct tarn_status *s = tarn_store_put_if_absent(table->env->store, op, key, json, &created);
    if (tarn_status_reason(s) == TARN_OUTCOME_UNKNOWN) { /* the same bytes are as good as ours */
        TARN_OWN(tarn_buf_drop) struct tarn_buf there = {0};
        tarn_status_free(s);
        TARN_TRY(tarn_store_put_if_absent(table->env->store, op, key, json, &created));
        if (created)
            return TARN_OK;
        TARN_TRY(tarn_store_find(table->env->store, op, key, &found, &there));
        created = found && tarn_slice_equal(tarn_buf_slice(&there), json);
        s = TARN_OK;
    }
    TARN_TRY(s);
    return created ? TARN_OK
                   : tarn_status_new(TARN_TAG_EXISTS, "table %s has a tag %.*s already",
                                     tarn_table_name(table), TARN_SLICE_ARG(name));
}

/* Others may have expired the snapshot before they could see the tag: then it keeps nothing. */
static struct tarn_status *check_kept(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                      struct tarn_slice json)
{
    struct tarn_snapshot snapshot;
    struct tarn_slice now;
    bool found;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, op->arena, &found, &now, &snapshot));
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table__view_ref(table);
    if (found && tarn_slice_equal(now, json) &&
        id >= view->earliest_id) /* an expiry here says it before */
        return TARN_OK;
    found = found && id >= view->earliest_id;
    return tarn_status_new(found ? TARN_SNAPSHOT_ROLLED_BACK : TARN_SNAPSHOT_EXPIRED,
                           "snapshot %" PRId64 " of table %s went while it was tagged", id,
                           tarn_table_name(table));
}

struct tarn_status *tarn_table_create_tag(struct tarn_op *op, struct tarn_table *table,
                                          struct tarn_slice name, struct tarn_version version,
                                          int64_t retained_ms, struct tarn_tag *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    int64_t id,
        made_ms = retained_ms == TARN_SNAPSHOT_NONE ? TARN_SNAPSHOT_NONE : tarn_clock_wall_ms();
    struct tarn_slice json;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_tag_check_name(name));
    if (retained_ms != TARN_SNAPSHOT_NONE &&
        (retained_ms <= 0 || retained_ms > TARN_TAG_RETAINED_MAX_MS))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "a tag can't be kept for %" PRId64 " ms, only for 1 to %" PRId64,
                               retained_ms, TARN_TAG_RETAINED_MAX_MS);
    TARN_TRY(read_target(op, table, version, &id, &json));
    tarn_tag_encode(json, made_ms, retained_ms, &text);
    TARN_TRY(put(op, table, name, tarn_buf_slice(&text)));
    struct tarn_status *s = check_kept(op, table, id, json);
    if (s != TARN_OK) { /* it names nothing that is sure to stay */
        tarn_log_status(op, TARN_WARN, "table.left_behind",
                        tarn_store_remove(table->env->store, op, key_of(op, table, name)));
        return s;
    }
    out->name = tarn_arena_copy(op->arena, name);
    return tarn_tag_decode(tarn_arena_copy(op->arena, tarn_buf_slice(&text)), op->arena, out);
}

/* --- look and drop --- */

struct tarn_status *tarn_table_tag_names(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_slice prefix, struct tarn_slice **out,
                                         size_t *count)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_named *named;
    size_t named_count;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_table__list_named(op, table, FOLDER, PREFIX, &named, &named_count));
    *out = tarn_arena_calloc(op->arena, named_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < named_count; i++)
        if (tarn_slice_starts_with(named[i].name, prefix))
            (*out)[(*count)++] = named[i].name;
    return TARN_OK;
}

struct tarn_status *tarn_table_find_tag(struct tarn_op *op, struct tarn_table *table,
                                        struct tarn_slice name, struct tarn_tag *out)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    struct tarn_slice json;
    TARN_TRY(tarn_table__check_here(table));
    return tarn_table__read_tag(op, table, name, &json, out);
}

struct tarn_status *tarn_table_drop_tag(struct tarn_op *op, struct tarn_table *table,
                                        struct tarn_slice name)
{
    TARN_OWN(tarn_table__leave) TARN_UNUSED pthread_rwlock_t *place = tarn_table__enter(table);
    bool found = false;
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(tarn_tag_check_name(name));
    TARN_TRY(tarn_store_stat(table->env->store, op, key_of(op, table, name), &found, NULL));
    return found ? tarn_store_remove(table->env->store, op, key_of(op, table, name))
                 : not_found(table, name);
}
