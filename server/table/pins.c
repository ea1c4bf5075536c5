#include "table/index.h"

/*
 * Pins: readers that keep a snapshot from expiry for a while. In the family PINS: uuid | id -> snapshot, expires.
 * They are kept in the state so that a restart doesn't end them; a lost state does, and expiry waits for the longest one
 * then.
 */

static void pin_key(const struct tarn_table *table, struct tarn_slice id, struct tarn_buf *key)
{
    tarn_buf_add(key, table->uuid, TARN_INDEX_UUID_SIZE);
    tarn_buf_add_slice(key, id);
}

static bool decode_pin(struct tarn_slice value, struct tarn_pin *out)
{
    return tarn_key_take_i64(&value, &out->snapshot_id) &&
           tarn_key_take_i64(&value, &out->expires_ms) && value.size == 0;
}

static struct tarn_status *damaged(const struct tarn_table *table)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "table %s: a pin is damaged",
                           tarn_table_name(table));
}

static struct tarn_status *check_keep(int64_t keep_ms)
{
    if (keep_ms >= 0 && keep_ms <= TARN_PIN_KEEP_MAX_MS)
        return TARN_OK;
    return tarn_status_new(TARN_INVALID_ARGUMENT,
                           "a snapshot can be pinned for at most %" PRId64
                           " ms at a time, not %" PRId64,
                           TARN_PIN_KEEP_MAX_MS, keep_ms);
}

/* Those that haven't run out; the others are forgotten. */
static struct tarn_status *look_at_pins(struct tarn_table *table, size_t *count, int64_t *lowest)
{
    struct tarn_state *state = table->env->state;
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_new(state, TARN_FAMILY_PINS, tarn_slice_str(table->uuid));
    struct tarn_slice key, value;
    int64_t now = tarn_clock_wall_ms();
    bool any_over = false;
    *count = 0;
    *lowest = INT64_MAX;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_pin pin;
        if (!decode_pin(value, &pin))
            return damaged(table);
        if (pin.expires_ms <= now) {
            tarn_state_batch_remove(batch, state, TARN_FAMILY_PINS, key);
            any_over = true;
            continue;
        }
        (*count)++;
        *lowest = TARN_MIN(*lowest, pin.snapshot_id);
    }
    TARN_TRY(tarn_state_iterator_error(it));
    return any_over ? tarn_state_write(state, batch, false) : TARN_OK;
}

static struct tarn_status *put_pin(struct tarn_table *table, const struct tarn_pin *pin)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    pin_key(table, tarn_slice_str(pin->id), &key);
    tarn_key_add_i64(&value, pin->snapshot_id);
    tarn_key_add_i64(&value, pin->expires_ms);
    tarn_state_batch_put(batch, table->env->state, TARN_FAMILY_PINS, tarn_buf_slice(&key),
                         tarn_buf_slice(&value));
    return tarn_state_write(table->env->state, batch, true); /* the reader relies on it */
}

struct tarn_status *tarn_table_pin(struct tarn_op *op, struct tarn_table *table,
                                   int64_t snapshot_id, int64_t keep_ms, struct tarn_pin *out)
{
    size_t count;
    int64_t lowest;
    TARN_TRY(check_keep(keep_ms));
    *out =
        (struct tarn_pin){.snapshot_id = snapshot_id, .expires_ms = tarn_clock_wall_ms() + keep_ms};
    tarn_uuid_random(out->id);
    pthread_mutex_lock(&table->pin_lock);
    struct tarn_status *s = look_at_pins(table, &count, &lowest);
    if (s == TARN_OK && count >= TARN_PINS_MAX)
        s = tarn_status_new(TARN_BUSY, "table %s has %d pins already", tarn_table_name(table),
                            TARN_PINS_MAX);
    if (s == TARN_OK)
        s = put_pin(table, out);
    pthread_mutex_unlock(&table->pin_lock);
    TARN_TRY(s);
    /* After the pin stands: an expiry that began before it would otherwise go unnoticed. */
    struct tarn_snapshot snapshot;
    bool found;
    s = tarn_table_snapshot(op, table, TARN_VERSION_ID(snapshot_id), &found, &snapshot);
    if (s != TARN_OK) {
        struct tarn_pin gone;
        tarn_status_free(tarn_table_renew_pin(op, table, tarn_slice_str(out->id), 0, &gone));
    }
    return s;
}

static struct tarn_status *renew(struct tarn_table *table, struct tarn_slice id, int64_t keep_ms,
                                 struct tarn_pin *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    struct tarn_state *state = table->env->state;
    bool found;
    int64_t now = tarn_clock_wall_ms();
    pin_key(table, id, &key);
    TARN_TRY(tarn_state_get(state, TARN_FAMILY_PINS, tarn_buf_slice(&key), &found, &value));
    if (found && !decode_pin(tarn_buf_slice(&value), out))
        return damaged(table);
    if (!found || out->expires_ms <= now)
        return tarn_status_new(TARN_PIN_NOT_FOUND, "table %s has no pin %.*s any more",
                               tarn_table_name(table), TARN_SLICE_ARG(id));
    memcpy(out->id, id.data, id.size);
    out->id[id.size] = '\0';
    out->expires_ms = now + keep_ms;
    if (keep_ms > 0)
        return put_pin(table, out);
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_state_batch_remove(batch, state, TARN_FAMILY_PINS, tarn_buf_slice(&key));
    return tarn_state_write(state, batch, false);
}

struct tarn_status *tarn_table_renew_pin(struct tarn_op *op, struct tarn_table *table,
                                         struct tarn_slice id, int64_t keep_ms,
                                         struct tarn_pin *out)
{
    TARN_TRY(tarn_table__check_here(table));
    TARN_TRY(check_keep(keep_ms));
    if (!tarn_uuid_valid(id))
        return tarn_status_new(TARN_PIN_NOT_FOUND, "table %s has no such pin",
                               tarn_table_name(table));
    pthread_mutex_lock(&table->pin_lock);
    struct tarn_status *s = renew(table, id, keep_ms, out);
    pthread_mutex_unlock(&table->pin_lock);
    return s;
}

/* --- a lost state ---
 * In PINS, too: below no table's uuid. */

#define LOST_KEY "lost"

struct tarn_status *tarn_table_pins_lost(struct tarn_state *state)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    TARN_OWN(tarn_state_batch_drop) struct tarn_state_batch *batch = tarn_state_batch_new();
    tarn_key_add_i64(&value, tarn_clock_wall_ms() + TARN_PIN_KEEP_MAX_MS);
    tarn_state_batch_put(batch, state, TARN_FAMILY_PINS, tarn_slice_str(LOST_KEY),
                         tarn_buf_slice(&value));
    return tarn_state_write(state, batch, true);
}

struct tarn_status *tarn_table__pins_lost_until(struct tarn_table *table, int64_t *until_ms)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    bool found;
    *until_ms = INT64_MIN;
    TARN_TRY(tarn_state_get(table->env->state, TARN_FAMILY_PINS, tarn_slice_str(LOST_KEY), &found,
                            &value));
    struct tarn_slice rest = tarn_buf_slice(&value);
    return !found || tarn_key_take_i64(&rest, until_ms) ? TARN_OK : damaged(table);
}

struct tarn_status *tarn_table_keep_from(struct tarn_op *op, struct tarn_table *table,
                                         int64_t *snapshot_id)
{
    size_t count;
    TARN_TRY(tarn_table__check_here(table));
    pthread_mutex_lock(&table->pin_lock);
    struct tarn_status *s = look_at_pins(table, &count, snapshot_id);
    pthread_mutex_unlock(&table->pin_lock);
    return s;
}
