#include "table/commit_internal.h"

/*
 * Puts that may come late. An attempt whose outcome wasn't known was settled, and its snapshot is not part of history; but one of its puts
 * may still be under way to slot N. As long as another snapshot has N it can't land. Where others roll back below N it can: above
 * a gap, or upon what isn't its ground. So the table remembers it for a while: it is no snapshot to any reader here, and each look takes it
 * back, unless another writer already stands on it (I3).
 */

#define LATE_KEPT_MS 900000 /* no call of a store lasts longer */

struct tarn_late {
    struct tarn_late *next;
    struct tarn_arena *arena;
    struct tarn_put put; /* what is needed to know it, in the arena */
    int64_t until_ms;
};

static void late_free(struct tarn_late *late)
{
    tarn_arena_free(late->arena);
    free(late);
}

void tarn_table__late_keep(struct tarn_table *table, const struct tarn_put *put)
{
    struct tarn_late *late = tarn_calloc(1, sizeof *late);
    late->arena = tarn_arena_new();
    late->put = (struct tarn_put){.table = table,
                                  .id = put->id,
                                  .json = tarn_arena_copy(late->arena, put->json),
                                  .time_ms = put->time_ms};
    if (put->base_of_next.data != NULL)
        late->put.base_of_next = tarn_arena_copy(late->arena, put->base_of_next);
    late->until_ms = tarn_clock_mono_ms() + LATE_KEPT_MS;
    pthread_mutex_lock(&table->lock);
    late->next = table->late;
    table->late = late;
    pthread_mutex_unlock(&table->lock);
}

bool tarn_table__is_late(struct tarn_table *table, int64_t id, struct tarn_slice json)
{
    bool found = false;
    pthread_mutex_lock(&table->lock);
    for (const struct tarn_late *late = table->late; late != NULL && !found; late = late->next)
        found = late->put.id == id && tarn_slice_equal(late->put.json, json);
    pthread_mutex_unlock(&table->lock);
    return found;
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
    for (struct tarn_late *late = table->late; late != NULL; late = late->next)
        if (table->head == NULL || table->head->id <= late->put.id)
            TARN_TRY(tarn_table__take_back(op, &late->put));
    return TARN_OK;
}

void tarn_table__late_free(struct tarn_table *table)
{
    forget(table, INT64_MAX);
}
