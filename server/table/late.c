#include "table/commit_internal.h"

/*
 * Puts that may come late: of an attempt whose outcome isn't known, or wasn't for a moment. As long as slot N is filled they can't land.
 * Where others roll back below it they can: above a gap, upon what isn't its ground, or upon its ground without what it names. So the
 * table remembers it for a while, over a restart, too (late_notes.c): it is no snapshot to any reader here, and each look takes it
 * back, unless another writer already stands on it (I3).
 */

struct tarn_late {
    struct tarn_late *next;
    struct tarn_arena *arena;
    struct tarn_put put; /* what is needed to know it, in the arena */
    enum tarn_lateness lateness;
    int64_t until_ms;
};

static void late_free(struct tarn_late *late)
{
    tarn_arena_free(late->arena);
    free(late);
}

static struct tarn_put keep_put(struct tarn_arena *arena, const struct tarn_put *put)
{
    struct tarn_put kept = {.table = put->table,
                            .id = put->id,
                            .json = tarn_arena_copy(arena, put->json),
                            .ground_id = put->ground_id,
                            .ground_json = tarn_arena_copy(arena, put->ground_json),
                            .time_ms = put->time_ms};
    if (put->base_of_next.data != NULL)
        kept.base_of_next = tarn_arena_copy(arena, put->base_of_next);
    return kept;
}

void tarn_table__late_remember(struct tarn_table *table, const struct tarn_put *put,
                               enum tarn_lateness lateness)
{
    struct tarn_late *late = tarn_calloc(1, sizeof *late);
    late->arena = tarn_arena_new();
    late->put = keep_put(late->arena, put);
    late->lateness = lateness;
    late->until_ms =
        lateness == TARN_LATE_OPEN ? INT64_MAX : tarn_clock_mono_ms() + TARN_LATE_KEPT_MS;
    pthread_mutex_lock(&table->lock);
    late->next = table->late;
    table->late = late;
    pthread_mutex_unlock(&table->lock);
}

void tarn_table__late_keep(struct tarn_table *table, const struct tarn_put *put,
                           enum tarn_lateness lateness)
{
    tarn_table__late_note(table, put, true);
    tarn_table__late_remember(table, put, lateness);
}

void tarn_table__late_settle(struct tarn_table *table, bool landed)
{
    pthread_mutex_lock(&table->lock);
    for (struct tarn_late *late = table->late; late != NULL; late = late->next)
        if (late->lateness == TARN_LATE_OPEN) {
            late->lateness = landed ? TARN_LATE_IF_UNDONE : TARN_LATE_ALWAYS;
            late->until_ms = tarn_clock_mono_ms() + TARN_LATE_KEPT_MS;
        }
    pthread_mutex_unlock(&table->lock);
}

/* Is what lies at `id` one of these? *always: none of history whatever stands. *out: a copy, in the op's arena, since the list may change meanwhile. */
static bool find_late(struct tarn_op *op, struct tarn_table *table, int64_t id,
                      struct tarn_slice json, bool *always, struct tarn_put *out)
{
    bool found = false;
    *always = false;
    pthread_mutex_lock(&table->lock);
    for (const struct tarn_late *late = table->late; late != NULL && !*always; late = late->next) {
        if (late->put.id != id || !tarn_slice_equal(late->put.json, json))
            continue;
        found = true;
        *always = late->lateness == TARN_LATE_ALWAYS;
        *out = keep_put(op->arena, &late->put);
    }
    pthread_mutex_unlock(&table->lock);
    return found;
}

static struct tarn_status *seems_undone(struct tarn_op *op, struct tarn_put *put, bool *out);

/* Its ground may be one of these, too, and undone as it is. Whether anybody stands on that isn't asked: it would be this one. */
static struct tarn_status *ground_stands(struct tarn_op *op, struct tarn_put *put, bool *out)
{
    struct tarn_table *table = put->table;
    struct tarn_put ground;
    bool found, always, undone = false;
    TARN_TRY(tarn_table__lies_there(op, table, put->ground_id, put->ground_json, &found, out));
    if (*out && find_late(op, table, put->ground_id, put->ground_json, &always, &ground)) {
        if (!always)
            TARN_TRY(seems_undone(op, &ground, &undone));
        *out = !always && !undone;
    }
    return TARN_OK;
}

static struct tarn_status *seems_undone(struct tarn_op *op, struct tarn_put *put, bool *out)
{
    bool stands = true;
    int64_t below = 0, above;
    TARN_TRY(tarn_table__has_manifests(op, put, &stands));
    *out = !stands;
    if (!stands || put->ground_id == 0)
        return TARN_OK;
    TARN_TRY(ground_stands(op, put, &stands));
    if (!stands)
        TARN_TRY(tarn_table__find_neighbours(op, put->table, put->id, &below, &above));
    *out = below != 0;
    return TARN_OK;
}

#define LOOKS_AGREED 3

/* Was it undone by a roll-back? That leaves snapshots below, or takes away what it names; an expiry of its ground doesn't. One answer
 * "not there" isn't enough. */
static struct tarn_status *is_undone(struct tarn_op *op, struct tarn_put *put, bool *out)
{
    *out = true;
    for (int looks = 0; looks < LOOKS_AGREED && *out; looks++)
        TARN_TRY(seems_undone(op, put, out));
    return TARN_OK;
}

struct tarn_status *tarn_table__is_late(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                        struct tarn_slice json, bool *out)
{
    struct tarn_put put;
    bool followed = false;
    if (find_late(op, table, id, json, out, &put) && !*out)
        TARN_TRY(is_undone(op, &put, out));
    struct tarn_status *s = TARN_OK;
    if (*out) /* then it is history to others, and isn't taken back */
        s = tarn_table__is_followed(op, &put, id + 1, &followed);
    if (tarn_status_reason(s) == TARN_OBJECT_NOT_FOUND) { /* a stranger itself: nobody can tell */
        tarn_status_drop(&s);
        followed = true;
    }
    *out = *out && !followed;
    return s;
}

static struct tarn_late *take_over(struct tarn_table *table, int64_t before_ms)
{
    struct tarn_late *over = NULL;
    pthread_mutex_lock(&table->lock);
    for (struct tarn_late **at = &table->late; *at != NULL;) {
        struct tarn_late *late = *at;
        if (late->until_ms > before_ms) {
            at = &late->next;
            continue;
        }
        *at = late->next;
        late->next = over;
        over = late;
    }
    pthread_mutex_unlock(&table->lock);
    return over;
}

static void forget_over(struct tarn_table *table)
{
    for (struct tarn_late *late = take_over(table, tarn_clock_mono_ms()), *next; late != NULL;
         late = next) {
        next = late->next;
        tarn_table__late_unnote(table, &late->put);
        late_free(late);
    }
}

struct tarn_status *tarn_table__late_take_back(struct tarn_op *op, struct tarn_table *table)
{
    forget_over(table);
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
    for (struct tarn_late *late = table->late, *next; late != NULL; late = next) {
        next = late->next;
        late_free(late);
    }
    tarn_buf_drop(&table->noted);
}
