#include "catalog/internal.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/*
 * The warehouse's owner object, .tarn/owner: one daemon at a time, and an epoch that grows with every start.
 *
 *   {"epoch": 7, "holder": uuid of the run, "dataDir": …, "host": …, "pid": …, "beatMillis": …, "released": false}
 *
 * Taking: the object is read and judged, then replaced. Its previous epoch's claim, .tarn/epoch-N by put-if-absent,
 * decides between two that try at once: only one of them gets N. A holder with our own data directory is ourselves,
 * before a restart (the lock of the state directory tells: nobody else has it open). Another one is believed to live
 * as long as its heartbeat is younger than OWNER_DEAD_MS, or, on this host, its process is there.
 */

#define BEAT_MS 5000
#define OWNER_DEAD_MS 30000
#define EPOCH_MAX ((INT64_C(1) << 31) - 2) /* a fencing token is an epoch and 32 bits of count */

struct owner {
    int64_t epoch, beat_ms, pid;
    struct tarn_slice holder, data_dir, host;
    bool released;
};

static struct tarn_status *read_owner(struct tarn_op *op, struct tarn_catalog *catalog, bool *found,
                                      struct owner *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    struct tarn_status *s = tarn_store_find(catalog->env->store, op, TARN_OWNER_KEY, found, &text);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "warehouse %s", tarn_store_uri(catalog->env->store));
    if (!*found)
        return TARN_OK;
    s = tarn_json_parse(tarn_buf_slice(&text), &json);
    const struct tarn_json *epoch = s == TARN_OK ? tarn_json_find(json, "epoch") : NULL;
    bool fine = epoch != NULL && tarn_json_kind(epoch) == TARN_JSON_INTEGER &&
                tarn_json_int(epoch) > 0 && tarn_json_int(epoch) <= EPOCH_MAX;
    if (!fine) { /* who has the warehouse can't be told, so nobody takes it */
        struct tarn_status *damaged = tarn_status_new(
            TARN_OWNER_DAMAGED, "%s/" TARN_OWNER_KEY ": %s", tarn_store_uri(catalog->env->store),
            s != TARN_OK ? tarn_status_message(s) : "it has no valid epoch");
        tarn_status_free(s);
        return damaged;
    }
    out->epoch = tarn_json_int(epoch);
    out->beat_ms = tarn_json_int(tarn_json_find(json, "beatMillis"));
    out->pid = tarn_json_int(tarn_json_find(json, "pid"));
    out->holder = tarn_arena_copy(op->arena, tarn_json_text(tarn_json_find(json, "holder")));
    out->data_dir = tarn_arena_copy(op->arena, tarn_json_text(tarn_json_find(json, "dataDir")));
    out->host = tarn_arena_copy(op->arena, tarn_json_text(tarn_json_find(json, "host")));
    out->released = tarn_json_is_true(tarn_json_find(json, "released"));
    return TARN_OK;
}

static void host_name(char out[256])
{
    if (gethostname(out, 256) != 0)
        memcpy(out, "unknown", sizeof "unknown");
    out[255] = '\0';
}

static struct tarn_status *write_owner(struct tarn_op *op, struct tarn_catalog *catalog,
                                       bool released)
{
    char host[256];
    host_name(host);
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    tarn_json_set_int(json, "epoch", catalog->epoch);
    tarn_json_set_str(json, "holder", catalog->holder);
    tarn_json_set_str(json, "dataDir", catalog->data_dir);
    tarn_json_set_str(json, "host", host);
    tarn_json_set_int(json, "pid", getpid());
    tarn_json_set_int(json, "beatMillis", tarn_clock_wall_ms());
    tarn_json_set_bool(json, "released", released);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_print(json, 2, &text);
    return tarn_store_put(catalog->env->store, op, TARN_OWNER_KEY, tarn_buf_slice(&text));
}

static bool lives(const struct tarn_catalog *catalog, const struct owner *owner)
{
    char host[256];
    host_name(host);
    if (owner->released || tarn_slice_is(owner->data_dir, catalog->data_dir))
        return false;
    if (tarn_slice_is(owner->host, host)) /* a process of this host can be asked */
        return owner->pid > 0 && (kill((pid_t)owner->pid, 0) == 0 || errno == EPERM);
    int64_t age = tarn_clock_wall_ms() - owner->beat_ms;
    return age < OWNER_DEAD_MS;
}

static void beat(void *arg)
{
    struct tarn_catalog *catalog = arg;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_status *s = tarn_catalog_check_owner(&op, catalog);
    if (s == TARN_OK)
        s = write_owner(&op, catalog, false);
    tarn_log_status(&op, TARN_ERROR, "warehouse.heartbeat_failed", s);
}

static struct tarn_status *held(struct tarn_catalog *catalog, const struct owner *owner)
{
    return tarn_status_new(
        TARN_WAREHOUSE_HELD,
        "warehouse %s is held by the daemon with data directory %.*s (process %" PRId64
        " on %.*s), epoch %" PRId64,
        tarn_store_uri(catalog->env->store), TARN_SLICE_ARG(owner->data_dir), owner->pid,
        TARN_SLICE_ARG(owner->host), owner->epoch);
}

struct tarn_status *tarn_catalog__take_warehouse(struct tarn_op *op, struct tarn_catalog *catalog)
{
    struct owner owner = {0};
    bool found;
    TARN_TRY(read_owner(op, catalog, &found, &owner));
    if (found && lives(catalog, &owner))
        return held(catalog, &owner);
    tarn_uuid_random(catalog->holder);
    catalog->epoch = owner.epoch + 1;
    bool created;
    const char *claim = tarn_arena_printf(op->arena, ".tarn/epoch-%" PRId64, catalog->epoch);
    TARN_TRY(tarn_store_put_if_absent(catalog->env->store, op, claim,
                                      tarn_slice_str(catalog->holder), &created));
    while (!created) {
        /* Taken: by another that starts right now, or by one that died before it wrote the owner object. */
        struct owner now = {0};
        TARN_TRY(read_owner(op, catalog, &found, &now));
        if (found && now.epoch >= catalog->epoch && lives(catalog, &now))
            return held(catalog, &now);
        catalog->epoch = TARN_MAX(catalog->epoch, now.epoch) + 1;
        claim = tarn_arena_printf(op->arena, ".tarn/epoch-%" PRId64, catalog->epoch);
        TARN_TRY(tarn_store_put_if_absent(catalog->env->store, op, claim,
                                          tarn_slice_str(catalog->holder), &created));
    }
    TARN_TRY(write_owner(op, catalog, false));
    if (owner.epoch > 0) /* claims of the past decide nothing any more */
        TARN_TRY(
            tarn_store_remove(catalog->env->store, op,
                              tarn_arena_printf(op->arena, ".tarn/epoch-%" PRId64, owner.epoch)));
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    catalog->heartbeat = tarn_timer_new(catalog->env->exec, BEAT_MS, BEAT_MS, beat, catalog);
    return TARN_OK;
}

void tarn_catalog__give_warehouse_back(struct tarn_op *op, struct tarn_catalog *catalog)
{
    tarn_timer_cancel(catalog->heartbeat);
    catalog->heartbeat = NULL;
    if (catalog->epoch == 0)
        return;
    struct tarn_status *s = tarn_catalog_check_owner(op, catalog);
    if (s == TARN_OK)
        s = write_owner(op, catalog, true);
    tarn_log_status(op, TARN_WARN, "warehouse.not_given_back", s);
}

struct tarn_status *tarn_catalog_check_owner(struct tarn_op *op, struct tarn_catalog *catalog)
{
    struct owner owner = {0};
    bool found;
    TARN_TRY(read_owner(op, catalog, &found, &owner));
    if (found && tarn_slice_is(owner.holder, catalog->holder) && owner.epoch == catalog->epoch)
        return TARN_OK;
    if (!found)
        return tarn_status_new(TARN_WAREHOUSE_HELD,
                               "the owner object of warehouse %s was removed; epoch was %" PRId64,
                               tarn_store_uri(catalog->env->store), catalog->epoch);
    return held(catalog, &owner);
}

int64_t tarn_catalog_epoch(const struct tarn_catalog *catalog)
{
    return catalog->epoch;
}
