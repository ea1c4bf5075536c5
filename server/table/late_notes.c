#include "table/commit_internal.h"
#include "table/index.h"
#include "table/receipts.h"

/*
 * What a life of the process leaves to the next one about puts that may come late (late.c): each put is noted before it starts. A kill
 * leaves the note, a loss of power may not: then nobody knows the put (docs/faults.md). The next put takes it away, if it is
 * known what became of this one; else it stays as long as the put may be under way.
 *
 *   RECEIPTS  'w' | snapshot id | hash of its JSON -> until (wall clock), was an answer unknown?, snapshot's time, ground's id and JSON,
 *             base_of_next, JSON
 */

static void note_key(const struct tarn_table *table, const struct tarn_put *put,
                     struct tarn_buf *key)
{
    tarn_table__tagged_key(table->uuid, 'w', key);
    tarn_key_add_i64(key, put->id);
    tarn_key_add_u64(key, tarn_xxh64(put->json, 0));
}

static void note_value(const struct tarn_put *put, bool unknown, struct tarn_buf *value)
{
    tarn_key_add_i64(value, tarn_clock_wall_ms() + TARN_LATE_KEPT_MS);
    tarn_key_add_i64(value, unknown);
    tarn_key_add_i64(value, put->time_ms);
    tarn_key_add_i64(value, put->ground_id);
    tarn_key_add_bytes(value, put->ground_json);
    tarn_key_add_bytes(value, put->base_of_next);
    tarn_key_add_bytes(value, put->json);
}

void tarn_table__late_note(struct tarn_table *table, const struct tarn_put *put, bool unknown)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    note_key(table, put, &key);
    note_value(put, unknown, &value);
    if (table->noted.size > 0 && !unknown)
        tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS,
                                tarn_buf_slice(&table->noted));
    tarn_receipt__put(batch, table, &key, &value);
    tarn_buf_clear(&table->noted);
    if (!unknown)
        tarn_buf_add_slice(&table->noted, tarn_buf_slice(&key));
    tarn_log_status(NULL, TARN_WARN, "commit.put_not_noted",
                    tarn_state_write(table->env->state, batch, false));
}

static struct tarn_status *remove_note(struct tarn_table *table, struct tarn_slice key)
{
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_state_batch_remove(batch, table->env->state, TARN_FAMILY_RECEIPTS, key);
    return tarn_state_write(table->env->state, batch, false);
}

void tarn_table__late_unnote(struct tarn_table *table, const struct tarn_put *put)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    note_key(table, put, &key);
    tarn_log_status(NULL, TARN_WARN, "commit.put_not_noted",
                    remove_note(table, tarn_buf_slice(&key)));
}

/* --- the next life --- */

static bool take_bytes(struct tarn_slice *rest, struct tarn_arena *arena, struct tarn_slice *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    if (!tarn_key_take_bytes(rest, &bytes))
        return false;
    *out = bytes.size == 0 ? tarn_slice_str(NULL) : tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    return true;
}

static bool take_note(struct tarn_slice key, struct tarn_slice value, struct tarn_arena *arena,
                      int64_t *until_ms, bool *unknown, struct tarn_put *put)
{
    int64_t is_unknown;
    if (!tarn_key_take_i64(&key, &put->id) || !tarn_key_take_i64(&value, until_ms) ||
        !tarn_key_take_i64(&value, &is_unknown) || !tarn_key_take_i64(&value, &put->time_ms) ||
        !tarn_key_take_i64(&value, &put->ground_id) ||
        !take_bytes(&value, arena, &put->ground_json) ||
        !take_bytes(&value, arena, &put->base_of_next) || !take_bytes(&value, arena, &put->json))
        return false;
    *unknown = is_unknown != 0;
    return true;
}

/* It landed by the only put that there was. */
static struct tarn_status *is_over(struct tarn_table *table, const struct tarn_put *put,
                                   bool unknown, bool *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    bool found = false;
    if (!unknown)
        TARN_TRY(tarn_table__indexed_snapshot(table, put->id, &found, &json));
    *out = found && tarn_slice_equal(tarn_buf_slice(&json), put->json);
    return TARN_OK;
}

struct tarn_status *tarn_table__late_restore(struct tarn_table *table)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    tarn_table__tagged_key(table->uuid, 'w', &prefix);
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(table->env->state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
    struct tarn_slice key, value;
    int64_t now_ms = tarn_clock_wall_ms();
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_put put = {.table = table};
        int64_t until_ms;
        bool unknown, over;
        if (!take_note(tarn_receipt__behind(key, prefix.size), value, arena, &until_ms, &unknown,
                       &put))
            return tarn_receipt__damaged(table);
        TARN_TRY(is_over(table, &put, unknown, &over));
        if (over || until_ms <= now_ms)
            TARN_TRY(remove_note(table, key));
        else
            tarn_table__late_remember(table, &put, TARN_LATE_IF_UNDONE);
    }
    return tarn_state_iterator_error(it);
}
