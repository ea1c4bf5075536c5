#include "history.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "state_sim.h"

/* One seed: what it draws, the threads that play it, and the end where all must be calm and true. */

struct world *world;

static const char schema_json[] =
    "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"},"
    "{\"id\":1,\"name\":\"v\",\"type\":\"STRING\"},{\"id\":2,\"name\":\"p\",\"type\":\"INT NOT NULL\"}],"
    "\"highestFieldId\":2,\"partitionKeys\":[%s],\"primaryKeys\":[\"id\"%s],"
    "\"options\":{\"bucket\":\"2\",\"tarn.group-commit\":\"%s\",\"changelog-producer\":\"%s\"},"
    "\"timeMillis\":1}";

int note(const char *format, ...)
{
    int seq = ++world->seq;
    va_list args;
    va_start(args, format);
    tarn_buf_printf(&world->trace, "%6d %9.3f t%-3d ", seq, (double)sim_now_ms() / 1000,
                    sim_thread_number());
    tarn_buf_vprintf(&world->trace, format, args);
    tarn_buf_add_str(&world->trace, "\n");
    va_end(args);
    return seq;
}

static void write_trace(void)
{
    const char *folder = getenv("TARN_HISTORY_LOGS");
    TARN_OWN(tarn_free_drop) char *path =
        tarn_format("%s/history-%" PRIu64 "-%s.log", folder != NULL ? folder : "/tmp",
                    world->plan.seed, mutation_name(world->plan.mutation));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, world->trace.data, world->trace.size) < 0)
        return;
    close(fd);
    printf("  the whole run: %s\n", path);
}

void broken(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_buf_vprintf(&text, format, args);
    va_end(args);
    note("BROKEN: %s", tarn_buf_cstr(&text));
    if (world->hash != NULL)
        *world->hash = tarn_xxh64(tarn_buf_slice(&world->trace), 0);
    printf("seed %" PRIu64 "%s%s: %s\n", world->plan.seed,
           world->plan.mutation == MUTATION_NONE ? "" : " under ",
           world->plan.mutation == MUTATION_NONE ? "" : mutation_name(world->plan.mutation),
           tarn_buf_cstr(&text));
    if (world->plan.mutation == MUTATION_NONE || getenv("TARN_HISTORY_LOGS") != NULL)
        write_trace();
    fflush(stdout);
    _exit(HISTORY_BROKEN_EXIT);
}

static void on_stuck(const char *why)
{
    broken("%s", why);
}

/* --- what the seed draws --- */

static void draw_plan(struct plan *p, uint64_t seed, enum mutation mutation)
{
    static const char *const groups[] = {"batch", "batch", "batch", "all", "none"};
    *p = (struct plan){.seed = seed, .mutation = mutation};
    p->clients = (int)sim_between(SIM_WORK, 1, sim_chance(SIM_WORK, 300) ? 16 : 5);
    p->users = (int)sim_between(SIM_WORK, 1, 3);
    p->operations = (int)sim_between(SIM_WORK, 10, 200 / p->clients);
    p->watchers = (int)sim_between(SIM_WORK, 0, 2);
    p->remote = sim_chance(SIM_WORK, 500);
    p->faults = sim_chance(SIM_WORK, 600);
    p->kills = sim_chance(SIM_WORK, 600);
    p->foreign = sim_chance(SIM_WORK, 600);
    p->rewrites = sim_chance(SIM_WORK, 500);
    p->pauses = sim_chance(SIM_WORK, 400);
    p->lose_state = sim_chance(SIM_WORK, 400);
    p->overwrites = sim_chance(SIM_WORK, 500);
    p->foreign_check_ms = sim_chance(SIM_WORK, 500) ? 0 : sim_between(SIM_WORK, 1, 3000);
    p->latency_ms = sim_chance(SIM_WORK, 500) ? 5 : 60;
    p->group_commit = groups[sim_between(SIM_WORK, 0, 4)];
    p->lies = p->faults && seed % 4 == 3;
    p->partitions = sim_chance(SIM_WORK, 500) ? 3 : 1;
    p->changelog = sim_chance(SIM_WORK, 400);
    if (sim_chance(SIM_WORK, 400))
        p->index_type = sim_chance(SIM_WORK, 500) ? TARN_INDEX_HASH : TARN_INDEX_DELETION_VECTORS;
    if (sim_chance(SIM_WORK, 500))
        p->keep_last = sim_between(SIM_WORK, 1, sim_chance(SIM_WORK, 500) ? 4 : 20);
}

static void note_plan(const struct plan *p)
{
    note("seed %" PRIu64
         ": %d clients x %d, %d users, %d watchers%s%s%s%s%s%s%s%s%s%s%s%s%s, keep %" PRId64
         ", foreign_check %" PRId64 " ms, group-commit %s, latency %d",
         p->seed, p->clients, p->operations, p->users, p->watchers, p->remote ? ", remote" : "",
         p->faults ? ", faults" : "", p->lies ? ", lies" : "", p->kills ? ", kills" : "",
         p->foreign ? ", foreign" : "", p->rewrites ? ", rewrites" : "",
         p->pauses ? ", pauses" : "", p->lose_state ? ", lost state" : "",
         p->overwrites ? ", overwrites" : "", p->partitions > 1 ? ", partitions" : "",
         p->changelog ? ", changelog" : "", p->index_type != NULL ? ", index files " : "",
         p->index_type != NULL ? p->index_type : "", p->keep_last, p->foreign_check_ms,
         p->group_commit, p->latency_ms);
}

/* --- the threads --- */

static void *run_client(void *arg)
{
    client_main((int)(intptr_t)arg);
    world->clients_running--;
    return NULL;
}

static void *run_watcher(void *arg)
{
    watcher_main((int)(intptr_t)arg);
    return NULL;
}

static void *run_foreign(void *arg)
{
    for (int deeds = (int)sim_between(SIM_WORK, 1, 60); deeds > 0 && !world->calm; deeds--) {
        sim_sleep_ms(sim_between(SIM_WORK, 0, sim_chance(SIM_WORK, 500) ? 300 : 8000));
        if (world->calm)
            break;
        int64_t dice = sim_between(SIM_WORK, 0, 99);
        if (world->plan.foreign && dice < 70)
            foreign_commit();
        else if (world->plan.rewrites && dice < 85)
            foreign_roll_back();
        else if (world->plan.rewrites)
            foreign_expire();
    }
    world->helpers_running--;
    return NULL;
}

static void *run_expirer(void *arg)
{
    expirer_main();
    world->helpers_running--;
    return NULL;
}

/* What is there isn't found for a while. Of snapshots nobody could tell that from a roll-back (docs/faults.md). */
static void draw_flips(void)
{
    static const char *const keys[] = {"manifest/", "snapshot/LATEST", "snapshot/EARLIEST"};
    size_t count =
        world->plan.lose_state ? 1 : TARN_COUNT_OF(keys); /* then hints are all there is */
    for (size_t i = 0; i < count; i++)
        if (sim_chance(SIM_WORK, 300))
            tarn_store_faulty_add(
                world->faulty,
                &(struct tarn_fault_rule){.call = "get",
                                          .key_part = keys[i],
                                          .skip_count = (int)sim_between(SIM_WORK, 0, 10),
                                          .hit_count = (int)sim_between(SIM_WORK, 1, 3),
                                          .fault = TARN_FAULT_NOT_FOUND});
}

void draw_faults(void)
{
    if (!world->plan.faults || world->calm || sim_chance(SIM_WORK, 300)) {
        tarn_store_faulty_clear(world->faulty);
        return;
    }
    struct tarn_fault_plan faults = {.seed = sim_random(SIM_STORE)};
    static const enum tarn_fault kinds[] = {TARN_FAULT_FAIL_BEFORE, TARN_FAULT_FAIL_AFTER,
                                            TARN_FAULT_UNKNOWN,     TARN_FAULT_LATE,
                                            TARN_FAULT_DENIED,      TARN_FAULT_UNAVAILABLE};
    static const enum tarn_fault lists[] = {TARN_FAULT_SHORT_LIST, TARN_FAULT_STALE_LIST,
                                            TARN_FAULT_EMPTY_LIST};
    for (size_t i = 0; i < TARN_COUNT_OF(kinds); i++)
        if (sim_chance(SIM_WORK, 500))
            faults.per_mille[kinds[i]] =
                (int)sim_between(SIM_WORK, 1, sim_chance(SIM_WORK, 300) ? 150 : 30);
    if (sim_chance(SIM_WORK, 100))
        faults.per_mille[TARN_FAULT_THROTTLE] = 1;
    for (size_t i = 0; world->plan.lies && i < TARN_COUNT_OF(lists); i++)
        if (sim_chance(SIM_WORK, 500))
            faults.per_mille[lists[i]] = (int)sim_between(SIM_WORK, 1, 300);
    faults.stale_calls = 100;
    faults.throttle_ms = sim_chance(SIM_WORK, 300) ? 600000 : 3000;
    faults.late_ms = sim_chance(SIM_WORK, 500) ? 0 : sim_chance(SIM_WORK, 300) ? 300000 : 2000;
    faults.late_calls = (int)sim_between(SIM_WORK, faults.late_ms == 0, 50);
    faults.key_part = sim_chance(SIM_WORK, 300) ? "snapshot/snapshot-" : NULL;
    note("faults: before %d after %d unknown %d late %d denied %d unavailable %d throttle %d",
         faults.per_mille[TARN_FAULT_FAIL_BEFORE], faults.per_mille[TARN_FAULT_FAIL_AFTER],
         faults.per_mille[TARN_FAULT_UNKNOWN], faults.per_mille[TARN_FAULT_LATE],
         faults.per_mille[TARN_FAULT_DENIED], faults.per_mille[TARN_FAULT_UNAVAILABLE],
         faults.per_mille[TARN_FAULT_THROTTLE]);
    tarn_store_faulty_plan(world->faulty, &faults);
    if (world->plan.lies)
        draw_flips();
}

/* The folder that the next life starts with. */
static const char *left_folder(char *folder, size_t size)
{
    snprintf(folder, size, "%s", world->left);
    if (!world->plan.lose_state || world->floating_count > 0 || sim_chance(SIM_WORK, 500))
        return folder; /* what the next life must know isn't lost (docs/faults.md) */
    size_t unsynced = state_sim_unsynced(world->left);
    world->receipts_may_be_lost = true;
    snprintf(folder, size, "%s-%s", world->left, sim_chance(SIM_WORK, 500) ? "lost" : "old");
    if (strstr(folder, "old") != NULL)
        state_sim_copy(world->left, folder, (size_t)sim_between(SIM_WORK, 0, (int64_t)unsynced));
    return folder;
}

static void start_next(void)
{
    char folder[sizeof world->left + 8];
    if (sim_chance(SIM_WORK, 500))
        sim_sleep_ms(sim_between(SIM_WORK, 0, 30000));
    life_start(left_folder(folder, sizeof folder));
}

/* Between two of its deeds the table works. */
static void play(void)
{
    while (world->clients_running > 0) {
        if (world->life == NULL) {
            start_next();
            continue;
        }
        sim_sleep_ms(sim_between(SIM_WORK, 1, sim_chance(SIM_WORK, 500) ? 200 : 5000));
        int64_t dice = sim_between(SIM_WORK, 0, 99);
        if (world->life == NULL)
            continue;
        if (dice < 20)
            draw_faults();
        else if (dice < 25 && world->plan.kills && life_may_die(world->life))
            life_kill();
        else if (dice < 30 && world->plan.kills && life_may_die(world->life))
            life_shut_down();
        else if (dice < 33 && world->plan.pauses &&
                 sim_now_ms() > world->life->paused_until_ms + 5000) {
            world->life->paused_until_ms =
                sim_now_ms() +
                sim_between(SIM_WORK, 100, sim_chance(SIM_WORK, 500) ? 8000 : 120000);
            note("life %d: stands still until %.3f", world->life->number,
                 (double)world->life->paused_until_ms / 1000);
        }
    }
}

static void *run_settle(void *arg)
{
    settle_all();
    world->clients_running--;
    return NULL;
}

/* All faults are over: everything is asked for, everything must succeed, and it must be the truth. */
static void end_in_calm(pthread_t *watchers)
{
    pthread_t thread;
    world->calm = true;
    tarn_store_faulty_clear(world->faulty);
    note("calm");
    if (world->life != NULL)
        world->life->paused_until_ms = 0;
    if (world->life != NULL && life_may_die(world->life) && sim_chance(SIM_WORK, 500))
        life_kill();
    while (world->life == NULL)
        start_next();
    world->clients_running = 1;
    pthread_create(&thread, NULL, run_settle, NULL);
    pthread_join(thread, NULL);
    tarn_store_faulty_land(world->faulty);
    while (world->ghosts > 0)
        sim_sleep_ms(1000);
    sim_sleep_ms(20000);
    note("whatever was late has arrived");
    world->clients_running = 1;
    pthread_create(&thread, NULL, run_settle, NULL);
    pthread_join(thread, NULL);
    sim_sleep_ms(60000); /* whoever watches has heard of everything */
    world->watchers_go_home = true;
    for (int i = 0; i < world->plan.watchers; i++)
        pthread_join(watchers[i], NULL);
    life_shut_down();
    while (world->helpers_running > 0)
        sim_sleep_ms(100);
    truth_check_folder();
}

static void open_store(void)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    bool has_partitions = world->plan.partitions > 1;
    tarn_buf_printf(&schema, schema_json, has_partitions ? "\"p\"" : "",
                    has_partitions ? ",\"p\"" : "", world->plan.group_commit,
                    world->plan.changelog ? "input" : "none");
    struct tarn_status *s = tarn_store_open("memory:", &world->memory);
    tarn_assert(s == TARN_OK);
    world->truth = truth_store_new(world->memory);
    world->faulty = tarn_store_faulty_new(world->truth);
    s = tarn_store_put(world->memory, world->op, HISTORY_TABLE "/schema/schema-0",
                       tarn_buf_slice(&schema));
    tarn_assert(s == TARN_OK);
}

void run_seed(uint64_t seed, enum mutation mutation, const char *scratch, uint64_t *hash)
{
    static struct tarn_op op;
    tarn_log_set_level(getenv("TARN_HISTORY_VERBOSE") != NULL ? TARN_DEBUG : TARN_ERROR + 1);
    world = tarn_calloc(1, sizeof *world);
    world->file_by_name = tarn_map_new();
    world->index_by_name = tarn_map_new();
    world->manifests = tarn_map_new();
    world->last_rewrite_ms = -1;
    world->hash = hash;
    sim_start(seed,
              seed % 3 == 0   ? 0
              : seed % 3 == 1 ? 20
                              : 300,
              INT64_C(12) * 3600 * 1000, on_stuck);
    tarn_op_init(&op);
    world->op = &op;
    draw_plan(&world->plan, seed, mutation);
    state_sim_use(scratch == NULL);
    note_plan(&world->plan);
    open_store();
    snprintf(world->folder, sizeof world->folder, "%s%s", scratch == NULL ? "" : scratch,
             scratch == NULL ? "" : "/");
    snprintf(world->left, sizeof world->left, "%sstate-1", world->folder);
    pthread_t clients[16], watchers[4], foreign, expirer;
    world->clients_running = world->plan.clients;
    for (int i = 0; i < world->plan.clients; i++)
        pthread_create(&clients[i], NULL, run_client, (void *)(intptr_t)i);
    for (int i = 0; i < world->plan.watchers; i++)
        pthread_create(&watchers[i], NULL, run_watcher, (void *)(intptr_t)i);
    world->helpers_running += 2;
    pthread_create(&foreign, NULL, run_foreign, NULL);
    pthread_create(&expirer, NULL, run_expirer, NULL);
    play();
    for (int i = 0; i < world->plan.clients; i++)
        pthread_join(clients[i], NULL);
    end_in_calm(watchers);
    pthread_join(foreign, NULL);
    pthread_join(expirer, NULL);
    *hash = tarn_xxh64(tarn_buf_slice(&world->trace), 0);
}
