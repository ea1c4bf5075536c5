#include "table/commit_internal.h"

/*
 * Puts that may come late: of an attempt whose outcome isn't known, or that was settled and is no part of history. As long as another
 * snapshot has slot N it can't land. Where others roll back below N it can: above a gap, or upon what isn't its ground. So the table
 * remembers it for a while: it is no snapshot to any reader here, and each look takes it back, unless another writer already stands on
 * it (I3).
 *
 *   keep_open -> open: late where its ground is gone -> settled: landed -> forgotten
 *                                                               else   -> late, wherever it lands -> forgotten after LATE_KEPT_MS
 */

#define LATE_KEPT_MS 900000 /* no call of a store lasts longer */

struct tarn_late {
    struct tarn_late *next;
    struct tarn_arena *arena;
    struct tarn_put put; /* what is needed to know it, in the arena */
    bool open;
    int64_t until_ms;
};

static void late_free(struct tarn_late *late)
{
    tarn_arena_free(late->arena);
    free(late);
}

void tarn_table__late_keep(struct tarn_table *table, const struct tarn_put *put, bool open)
{
    struct tarn_late *late = tarn_calloc(1, sizeof *late);
    late->arena = tarn_arena_new();
    late->open = open;
    late->put = (struct tarn_put){.table = table,
                                  .id = put->id,
                                  .json = tarn_arena_copy(late->arena, put->json),
                                  .ground_id = put->ground_id,
                                  .ground_json = tarn_arena_copy(late->arena, put->ground_json),
                                  .time_ms = put->time_ms};
    if (put->base_of_next.data != NULL)
        late->put.base_of_next = tarn_arena_copy(late->arena, put->base_of_next);
    late->until_ms = open ? INT64_MAX : tarn_clock_mono_ms() + LATE_KEPT_MS;
    pthread_mutex_lock(&table->lock);
    late->next = table->late;
    table->late = late;
    pthread_mutex_unlock(&table->lock);
}

void tarn_table__late_settle(struct tarn_table *table, bool landed)
{
    pthread_mutex_lock(&table->lock);
    for (struct tarn_late *late = table->late; late != NULL; late = late->next)
        if (late->open) {
            late->open = false;
            late->until_ms = landed ? INT64_MIN : tarn_clock_mono_ms() + LATE_KEPT_MS;
        }
    pthread_mutex_unlock(&table->lock);
}

/* Under the lock. */
static const struct tarn_late *find(const struct tarn_table *table, int64_t id,
                                    struct tarn_slice json)
{
    const struct tarn_late *late = table->late;
    while (late != NULL && (late->until_ms == INT64_MIN || late->put.id != id ||
                            !tarn_slice_equal(late->put.json, json)))
        late = late->next;
    return late;
}

struct tarn_status *tarn_table__is_late(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                        struct tarn_slice json, bool *out)
{
    int64_t ground_id = 0;
    struct tarn_slice ground = {0};
    pthread_mutex_lock(&table->lock);
    const struct tarn_late *late = find(table, id, json);
    *out = late != NULL && !late->open;
    if (late != NULL && late->open) {
        ground_id = late->put.ground_id;
        ground = tarn_arena_copy(op->arena, late->put.ground_json);
    }
    pthread_mutex_unlock(&table->lock);
    if (ground_id == 0)
        return TARN_OK;
    TARN_TRY(tarn_table__check_ground(op, table, ground_id, ground, out));
    *out = !*out;
    return TARN_OK;
}

static void forget(struct tarn_table *table, int64_t before_ms)
{
    struct tarn_late *over = NULL;
    pthread_mutex_lock(&table->lock);
    for (struct tarn_late **at = &table->late; *at != NULL;) {
        struct tarn_late *late = *at;
        if (late->until_ms >= before_ms) {
            at = &late->next;
            continue;
        }
        *at = late->next;
        late->next = over;
        over = late;
    }
    pthread_mutex_unlock(&table->lock);
    while (over != NULL) {
        struct tarn_late *late = over;
        over = late->next;
        late_free(late);
    }
}

struct tarn_status *tarn_table__late_take_back(struct tarn_op *op, struct tarn_table *table)
{
    forget(table, tarn_clock_mono_ms());
    /* Only the mailbox, where this is, takes any out of the list. */
    for (struct tarn_late *late = table->late; late != NULL; late = late->next) {
        bool is_late;
        if (table->head != NULL && table->head->id > late->put.id)
            continue; /* another has the slot */
        TARN_TRY(tarn_table__is_late(op, table, late->put.id, late->put.json, &is_late));
        if (is_late)
            TARN_TRY(tarn_table__take_back(op, &late->put));
    }
    return TARN_OK;
}

void tarn_table__late_free(struct tarn_table *table)
{
    forget(table, INT64_MAX);
}
