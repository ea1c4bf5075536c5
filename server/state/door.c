#include "state/internal.h"

#include <sys/statvfs.h>

/*
 * What becomes of a state that couldn't write. RocksDB's own ways on from there lead over assertions, so none of them is
 * taken: after a write that failed, no other one reaches RocksDB. Reads go on. Where the disk was full the state is closed
 * and opened again, by the next write that finds room and nobody reading: as after the end of a process, all that was
 * acknowledged is in its logs. After any other failure (a sync, say: what is in memory then isn't what is on the disk) it
 * takes a restart.
 */

#define ROOM_MIN                                                                                   \
    ((uint64_t)8 << 20) /* two write buffers: enough to open, and to go on for a while */
#define TRY_EVERY_MS 500

void tarn_state__enter(struct tarn_state *state)
{
    pthread_rwlock_rdlock(&state->door);
}

void tarn_state__leave(struct tarn_state *state)
{
    pthread_rwlock_unlock(&state->door);
}

/* ---- stopped ---- */

static void stop(struct tarn_state *state, const struct tarn_status *why)
{
    pthread_mutex_lock(&state->stopping);
    bool first = !atomic_exchange(&state->stopped, true);
    tarn_status_free(state->stopped_by);
    state->stopped_by = tarn_status_copy(why);
    pthread_mutex_unlock(&state->stopping);
    if (first)
        tarn_log(NULL, TARN_ERROR, "state.stopped", "error=%s", tarn_status_message(why));
}

struct tarn_status *tarn_state_problem(struct tarn_state *state)
{
    pthread_mutex_lock(&state->stopping);
    struct tarn_status *s = TARN_OK;
    if (atomic_load(&state->stopped)) {
        bool full = tarn_status_reason(state->stopped_by) == TARN_DISK_FULL;
        s = tarn_status_wrap(tarn_status_copy(state->stopped_by), "no write is taken until %s",
                             full ? "there is room" : "a restart");
    }
    pthread_mutex_unlock(&state->stopping);
    return s;
}

void tarn_state_memory(struct tarn_state *state, struct tarn_state_memory *out)
{
    *out = (struct tarn_state_memory){0};
    tarn_state__enter(state);
    for (int i = 0; state->db != NULL && i < TARN_FAMILY_COUNT; i++) {
        uint64_t size = 0;
        if (rocksdb_property_int_cf(state->db, state->families[i], "rocksdb.size-all-mem-tables",
                                    &size) == 0)
            out->buffers_size += size;
        /* one cache for all of them */
        rocksdb_property_int_cf(state->db, state->families[i], "rocksdb.block-cache-usage",
                                &out->cache_size);
    }
    tarn_state__leave(state);
}

struct tarn_status *tarn_state__closed(struct tarn_state *state)
{
    struct tarn_status *s = tarn_state_problem(state);
    return s != TARN_OK
               ? s
               : tarn_status_new(TARN_BUSY, "the state in %s was just opened again", state->folder);
}

struct tarn_status *tarn_state__written(struct tarn_state *state, char *consumed, const char *what)
{
    struct tarn_status *s = tarn_state__error(state, consumed, what);
    if (s != TARN_OK)
        stop(state, s);
    return s;
}

/* ---- opened again ---- */

static bool has_room(const char *folder)
{
    struct statvfs disk;
    return statvfs(folder, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize >= ROOM_MIN;
}

static bool is_worth_a_try(struct tarn_state *state)
{
    int64_t now = tarn_clock_mono_ms();
    pthread_mutex_lock(&state->stopping);
    bool worth = tarn_status_reason(state->stopped_by) == TARN_DISK_FULL &&
                 now - state->opened_ms >= TRY_EVERY_MS && has_room(state->folder);
    if (worth)
        state->opened_ms = now;
    pthread_mutex_unlock(&state->stopping);
    return worth;
}

static struct tarn_status *open_again(struct tarn_state *state)
{
    tarn_state__close_database(state);
    TARN_TRY(tarn_state__check_intact(state->folder));
    TARN_TRY(tarn_state__open_database(state));
    return tarn_state__mark(state);
}

/* With the door to itself. */
static struct tarn_status *go_on(struct tarn_state *state)
{
    if (!atomic_load(&state->stopped)) /* another thread did */
        return TARN_OK;
    if (atomic_load(&state->iterator_count) > 0 || !is_worth_a_try(state))
        return tarn_state_problem(state);
    struct tarn_status *s = open_again(state);
    if (s != TARN_OK) {
        tarn_state__close_database(state);
        stop(state, s);
        return s;
    }
    pthread_mutex_lock(&state->stopping);
    atomic_store(&state->stopped, false);
    tarn_status_drop(&state->stopped_by);
    pthread_mutex_unlock(&state->stopping);
    tarn_log(NULL, TARN_INFO, "state.goes_on", "folder=%s", state->folder);
    return TARN_OK;
}

struct tarn_status *tarn_state__enter_to_write(struct tarn_state *state)
{
    tarn_state__enter(state);
    if (!atomic_load(&state->stopped))
        return TARN_OK;
    tarn_state__leave(state);
    pthread_rwlock_wrlock(&state->door);
    struct tarn_status *s = go_on(state);
    pthread_rwlock_unlock(&state->door);
    TARN_TRY(s);
    tarn_state__enter(state);
    if (!atomic_load(&state->stopped))
        return TARN_OK;
    tarn_state__leave(state); /* it stopped again at once */
    return tarn_state__closed(state);
}
