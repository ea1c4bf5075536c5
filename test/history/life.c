#include "history.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "state_sim.h"

/*
 * The lives of the daemon: each a set of objects of its own over the one store, ended in order or by a kill.
 *
 * A killed life goes on as a ghost, whose new calls of the store have no effect and whose answers nobody hears;
 * what it had under way arrives now, minutes later, or never. Its state is copied in the moment of the kill, so
 * that what the ghost writes to it afterwards is lost.
 */

const char *mutation_name(enum mutation mutation)
{
    static const char *const names[] = {"none",     "put_replaces", "put_lost",     "both_created",
                                        "read_old", "put_twice",    "lose_manifest"};
    return names[mutation];
}

/* --- the store as one life sees it --- */

struct life_store {
    struct life *life;
    struct tarn_store *below;
};

static struct tarn_status *dead_status(void)
{
    return tarn_status_new(TARN_STORE_UNAVAILABLE, "this process is dead");
}

static void wait_ms(int64_t ms)
{
    tarn_exec_wait_begin();
    sim_sleep_ms(ms);
    tarn_exec_wait_end();
}

static bool is_snapshot_key(const char *key)
{
    return strstr(key, "/snapshot/snapshot-") != NULL;
}

static int64_t latency(bool is_put)
{
    int64_t ms = sim_between(SIM_STORE, 0, world->plan.latency_ms);
    if (world->calm)
        return ms;
    if (sim_chance(SIM_STORE, 10))
        ms += sim_between(SIM_STORE, 0, 2000);
    if (world->plan.pauses && sim_chance(SIM_STORE, is_put ? 20 : 3))
        ms += sim_between(SIM_STORE, 1000, 60000);
    return ms;
}

static void stand_still(struct life *life)
{
    while (!life->dead && sim_now_ms() < life->paused_until_ms)
        wait_ms(life->paused_until_ms - sim_now_ms());
}

/* The call was under way when its process died: true, it arrives all the same, now. Until then it is a ghost. */
static bool arrives_late(void)
{
    bool arrives = sim_chance(SIM_STORE, 500);
    if (arrives)
        wait_ms(sim_chance(SIM_STORE, 300) ? sim_between(SIM_STORE, 1000, 600000)
                                           : sim_between(SIM_STORE, 0, 500));
    return arrives;
}

/* Not while a claim is under way that was begun before the past was rewritten, where the state may be lost: only that tells the next life of
 * it. */
bool life_may_die(const struct life *life)
{
    if (!world->plan.lose_state)
        return true;
    if (!world->plan.kills && world->last_rewrite_ms >= 0 &&
        tarn_store_faulty_late_count(world->faulty) > 0)
        return false;
    return sim_now_ms() >= world->hold_until_ms && world->floating_count == 0 &&
           (life->snapshot_puts == 0 || life->put_begun_ms > world->last_rewrite_ms);
}

static void maybe_die(struct life *life)
{
    if (world->calm || life->calls_left == 0 || --life->calls_left > 0)
        return;
    if (!life->dead && world->life == life && life_may_die(life))
        life_kill();
}

/* On the way to the store. An error: it doesn't get there. */
static struct tarn_status *go(struct life *life, bool writes, bool is_put)
{
    stand_still(life);
    maybe_die(life);
    if (life->dead)
        return dead_status();
    life->writing += writes;
    if (is_put) {
        life->snapshot_puts++;
        life->put_begun_ms = sim_now_ms();
    }
    wait_ms(latency(is_put));
    /* Whoever rewrites the past needs time for it, and so do proofs that this life holds (I3). */
    while (is_put && !life->dead && sim_now_ms() < world->hold_until_ms)
        wait_ms(100);
    if (!life->dead) {
        life->writing -= writes;
        return TARN_OK;
    }
    bool arrives = writes && arrives_late();
    world->ghosts -= writes;
    return arrives ? TARN_OK : dead_status();
}

/* On the way back. */
static struct tarn_status *come_back(struct life *life, struct tarn_status *answer)
{
    maybe_die(life);
    if (!life->dead)
        wait_ms(latency(false));
    stand_still(life);
    if (!life->dead)
        return answer;
    tarn_status_free(answer);
    return dead_status();
}

static struct tarn_status *life_get(void *self, struct tarn_op *op, const char *key,
                                    size_t size_max, struct tarn_buf *out)
{
    struct life_store *s = self;
    TARN_TRY(go(s->life, false, false));
    if (world->plan.mutation == MUTATION_READ_OLD && is_snapshot_key(key) &&
        sim_chance(SIM_STORE, 100))
        return tarn_status_new(TARN_OBJECT_NOT_FOUND, "'%s': an old answer", key);
    return come_back(s->life, tarn_store_get(s->below, op, key, out));
}

static struct tarn_status *life_stat(void *self, struct tarn_op *op, const char *key, bool *found,
                                     struct tarn_object *out)
{
    struct life_store *s = self;
    TARN_TRY(go(s->life, false, false));
    return come_back(s->life, tarn_store_stat(s->below, op, key, found, out));
}

static struct tarn_status *life_put(void *self, struct tarn_op *op, const char *key,
                                    struct tarn_slice body)
{
    struct life_store *s = self;
    TARN_TRY(go(s->life, true, false));
    return come_back(s->life, tarn_store_put(s->below, op, key, body));
}

static struct tarn_status *life_put_many(void *self, struct tarn_op *op,
                                         const struct tarn_new_object *objects, size_t count)
{
    struct life_store *s = self;
    TARN_TRY(go(s->life, true, false));
    if (s->life->dead && count > 1)
        count = (size_t)sim_between(SIM_STORE, 1, (int64_t)count);
    struct tarn_status *status = tarn_store_put_many(s->below, op, objects, count);
    if (world->plan.mutation == MUTATION_LOSE_MANIFEST && sim_chance(SIM_STORE, 50) && count > 0) {
        note("mutation: %s is lost", objects[0].key);
        tarn_status_free(tarn_store_remove(world->memory, op, objects[0].key));
    }
    return come_back(s->life, status);
}

static struct tarn_status *put_snapshot(struct life_store *s, struct tarn_op *op, const char *key,
                                        struct tarn_slice body, bool *created)
{
    enum mutation mutation = world->plan.mutation;
    bool found;
    if (mutation == MUTATION_PUT_REPLACES) {
        *created = true;
        return tarn_store_put(world->truth, op, key, body);
    }
    if (mutation == MUTATION_PUT_LOST && sim_chance(SIM_STORE, 50)) {
        note("mutation: the put of %s is lost", key);
        *created = true;
        return TARN_OK;
    }
    if (mutation == MUTATION_PUT_TWICE && sim_chance(SIM_STORE, 100)) {
        TARN_TRY(tarn_store_stat(s->below, op, key, &found, NULL));
        if (found)
            return tarn_store_put_if_absent(s->below, op, key, body, created);
        TARN_TRY(tarn_store_put_if_absent(s->below, op, key, body, created));
        note("mutation: %s goes away", key);
        *created = true;
        return tarn_store_remove(world->memory, op, key);
    }
    /* One that was held up doesn't come a second time, minutes later: who dies meanwhile can't take that back. */
    bool was_held_up = world->plan.kills && world->plan.lose_state && world->last_rewrite_ms >= 0 &&
                       s->life->put_begun_ms <= world->last_rewrite_ms + HISTORY_CLAIM_AGE_MS + 200;
    struct tarn_status *status =
        tarn_store_put_if_absent(was_held_up ? world->truth : s->below, op, key, body, created);
    if (mutation == MUTATION_BOTH_CREATED && status == TARN_OK)
        *created = true;
    return status;
}

static struct tarn_status *life_put_if_absent(void *self, struct tarn_op *op, const char *key,
                                              struct tarn_slice body, bool *created)
{
    struct life_store *s = self;
    bool is_put = is_snapshot_key(key);
    TARN_TRY(go(s->life, true, is_put)); /* a dead life's count is nobody's business */
    struct tarn_status *answer =
        come_back(s->life, is_put ? put_snapshot(s, op, key, body, created)
                                  : tarn_store_put_if_absent(s->below, op, key, body, created));
    s->life->snapshot_puts -= is_put;
    return answer;
}

static struct tarn_status *life_remove(void *self, struct tarn_op *op, const char *key)
{
    struct life_store *s = self;
    TARN_TRY(go(s->life, true, false));
    return come_back(s->life, tarn_store_remove(s->below, op, key));
}

static struct tarn_status *life_list(void *self, struct tarn_op *op, const char *prefix,
                                     bool recursive, struct tarn_object **out, size_t *count)
{
    struct life_store *s = self;
    TARN_TRY(go(s->life, false, false));
    return come_back(s->life, tarn_store_list(s->below, op, prefix, recursive, out, count));
}

static struct tarn_status *life_prune(void *self, struct tarn_op *op, const char *key)
{
    return TARN_OK;
}

static void life_close(void *self)
{
    free(self);
}

#define LIFE_OPS(is_remote)                                                                        \
    {                                                                                              \
        .scheme = "life", .remote = is_remote, .get = life_get, .stat = life_stat,                 \
        .put = life_put, .put_many = life_put_many, .put_if_absent = life_put_if_absent,           \
        .remove = life_remove, .list = life_list, .prune = life_prune, .close = life_close         \
    }

struct tarn_store *life_store_new(struct life *life, struct tarn_store *below)
{
    static const struct tarn_store_ops local = LIFE_OPS(false), remote = LIFE_OPS(true);
    struct life_store *s = tarn_calloc(1, sizeof *s);
    *s = (struct life_store){life, below};
    return tarn_store_new(world->plan.remote ? &remote : &local, s);
}

/* --- its beginning and its end --- */

static void open_table(struct life *life)
{
    while (!life->dead) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init(&op);
        struct tarn_table *table = NULL;
        struct tarn_status *s =
            tarn_table_open(&op, &life->env, HISTORY_TABLE, HISTORY_UUID, "db.t", &table);
        if (s == TARN_OK) {
            life->table = table;
            note("life %d: open", life->number);
            return;
        }
        note("life %d: doesn't open: %s", life->number, tarn_status_message(s));
        if (++life->failures % 10 == 0)
            draw_faults(); /* else it might never get through */
        if (world->calm && !life->dead && life->failures > 20)
            broken("the table doesn't open any more: %s", tarn_status_message(s));
        tarn_status_free(s);
        sim_sleep_ms(500);
    }
}

static void tell_watchers(void *arg, struct tarn_table *table, int64_t snapshot_id)
{
    struct life *life = arg;
    if (life->table != NULL && life->subscriptions != NULL) /* not while it is opened or closed */
        tarn_subscriptions_notice(life->subscriptions, table);
}

void life_start(const char *folder)
{
    struct life *life = tarn_calloc(1, sizeof *life);
    bool fresh;
    life->number = ++world->life_count;
    snprintf(life->folder, sizeof life->folder, "%s", folder);
    life->exec = tarn_exec_new(2, 64);
    life->store = life_store_new(life, world->faulty);
    struct tarn_status *s = tarn_state_open(folder, &fresh, &life->state);
    if (s != TARN_OK)
        broken("the state %s doesn't open: %s", folder, tarn_status_message(s));
    life->env = (struct tarn_table_env){.store = life->store,
                                        .state = life->state,
                                        .exec = life->exec,
                                        .foreign_check_ms = world->plan.foreign_check_ms,
                                        .receipts_retain_ms = INT64_C(30) * 24 * 3600 * 1000,
                                        .commit_retries = 10,
                                        .committed = tell_watchers,
                                        .committed_arg = life};
    const struct tarn_subscriptions_options options = {
        .exec = life->exec,
        .foreign_check_ms = TARN_MAX(world->plan.foreign_check_ms, (int64_t)500),
        .slow_after_ms = 30000,
        .subscriber_max = 10};
    life->subscriptions = tarn_subscriptions_new(&options);
    if (world->plan.kills && !world->calm && sim_chance(SIM_WORK, 600))
        life->calls_left = (int)sim_between(SIM_WORK, 1, sim_chance(SIM_WORK, 500) ? 60 : 1500);
    note("life %d: starts with %s%s", life->number, folder + strlen(world->folder),
         fresh ? " (nothing in it)" : "");
    life->users = 1; /* until it is open or dead */
    world->life = life;
    open_table(life);
    life->users--;
}

static void end_life(struct life *life)
{
    while (life->users > 0)
        sim_sleep_ms(10);
    struct tarn_subscriptions *subscriptions = life->subscriptions;
    life->subscriptions = NULL;
    sim_sleep_ms(1000); /* a commit may still be telling of itself */
    tarn_subscriptions_free(subscriptions);
    tarn_table_drop_ref(&life->table);
    tarn_state_close(life->state);
    tarn_exec_free(life->exec);
    tarn_store_unref(life->store);
}

static void *bury(void *life)
{
    end_life(life);
    world->helpers_running--;
    return NULL;
}

void life_kill(void)
{
    struct life *life = world->life;
    TARN_OWN(sim_unpin) TARN_UNUSED bool pinned = sim_pin();
    note("life %d: killed", life->number);
    life->dead = true;
    world->ghosts += life->writing;
    world->life = NULL;
    snprintf(world->left, sizeof world->left, "%sstate-%d", world->folder, life->number + 1);
    state_sim_copy(life->folder, world->left, 0);
    world->helpers_running++;
    pthread_t thread;
    pthread_create(&thread, NULL, bury, life);
    pthread_detach(thread);
}

void life_shut_down(void)
{
    struct life *life = world->life;
    note("life %d: shuts down", life->number);
    world->life = NULL;
    end_life(life);
    note("life %d: over", life->number);
    truth_leave_behind();
    snprintf(world->left, sizeof world->left, "%sstate-%d", world->folder, life->number + 1);
    state_sim_copy(life->folder, world->left, 0);
}

struct life *life_enter_or_leave(const bool *leave)
{
    while (world->life == NULL || world->life->table == NULL) {
        if (leave != NULL && *leave)
            return NULL;
        sim_sleep_ms(100);
    }
    world->life->users++;
    return world->life;
}

struct life *life_enter(void)
{
    return life_enter_or_leave(NULL);
}

void life_leave(struct life *life)
{
    life->users--;
}
