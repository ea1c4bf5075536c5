/*
 * Promise: commits are linearizable; what was acknowledged is never lost, nothing lands twice, and every answer is
 * true, under kills, faults of the store, late puts, other writers, roll-backs, expiry, replays, pauses and lost
 * state (server/table/README.md, I1 to I7).
 *
 * Each seed is a run of its own in a child process (history.h says how). TARN_SEEDS: how many, TARN_FIRST: from
 * which on. TARN_HISTORY_LOGS: the folder for the traces of runs that broke. TARN_HISTORY_TABLES: a folder
 * where runs leave their tables (others.py lets other readers look at them). The state is simulated, but in each
 * 16th seed (TARN_REAL_STATE_EACH) it is RocksDB's.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "history.h"
#include "test/lib/test.h"

#define RUN_SECONDS_MAX 60 /* of real time: a run takes a tenth of one */
#define CHILDREN_MAX 8

struct outcome {
    uint64_t hash;
    int64_t snapshots, requests;
    int64_t answers[4], fates[6];
    int64_t lives, floating, events, overwrites[4] /* by tarn_overwrite */, drops, changelogs,
        indexes, expiries, files_removed;
};

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text == NULL || text[0] == '\0' ? otherwise : strtoull(text, NULL, 10);
}

/* Not what a handler may do, but the run is lost anyway. */
static void on_alarm(int number)
{
    broken("it takes more than %d s", RUN_SECONDS_MAX);
}

static void play(uint64_t seed, enum mutation mutation, const char *scratch, struct outcome *out)
{
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL); /* the tests catch some */
    signal(SIGALRM, on_alarm);
    alarm(RUN_SECONDS_MAX);
    run_seed(seed, mutation, scratch, &out->hash);
    if (getenv("TARN_HISTORY_TABLES") != NULL)
        leave_table(getenv("TARN_HISTORY_TABLES"));
    out->snapshots = (int64_t)world->snap_count;
    out->requests = (int64_t)world->request_count;
    out->lives = world->life_count;
    out->events = world->events_told;
    out->expiries = world->expiries;
    out->files_removed = world->files_removed;
    memcpy(out->answers, world->answers, sizeof out->answers);
    memcpy(out->fates, world->fates, sizeof out->fates);
    for (size_t i = 0; i < world->snap_count; i++)
        out->floating += world->snaps[i]->floating;
    for (size_t i = 0; i < world->snap_count; i++)
        out->changelogs += world->snaps[i]->changes.count > 0;
    for (size_t i = 0; i < world->request_count; i++)
        for (int part = 0; part < 2; part++)
            out->indexes += world->requests[i]->index[part] != NULL &&
                            world->requests[i]->landing_count[part] > 0;
    for (size_t i = 0; i < world->request_count; i++) {
        const struct request *r = world->requests[i];
        out->overwrites[r->commit.overwrite] += r->landing_count[0] > 0;
        out->drops += r->landing_count[0] > 0 && r->adds[0].count == 0;
    }
    if (getenv("TARN_HISTORY_TRACE") != NULL)
        printf("%s", tarn_buf_cstr(&world->trace));
    fflush(stdout);
    _exit(0);
}

static pid_t start(uint64_t seed, enum mutation mutation, const char *scratch, struct outcome *out)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        play(seed, mutation, scratch, out);
    return child;
}

static struct outcome *outcomes_new(size_t count)
{
    struct outcome *list =
        mmap(NULL, count * sizeof *list, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return list == MAP_FAILED ? NULL : list;
}

struct tally {
    uint64_t passed, failed;
    struct outcome sum;
};

static void count(struct tally *tally, uint64_t seed, int status, const struct outcome *one)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        tally->passed++;
        tally->sum.snapshots += one->snapshots;
        tally->sum.requests += one->requests;
        tally->sum.lives += one->lives;
        tally->sum.events += one->events;
        tally->sum.floating += one->floating;
        tally->sum.drops += one->drops;
        tally->sum.changelogs += one->changelogs;
        tally->sum.indexes += one->indexes;
        tally->sum.expiries += one->expiries;
        tally->sum.files_removed += one->files_removed;
        for (int i = 0; i < 4; i++)
            tally->sum.overwrites[i] += one->overwrites[i];
        for (int i = 0; i < 4; i++)
            tally->sum.answers[i] += one->answers[i];
        for (int i = 0; i < 6; i++)
            tally->sum.fates[i] += one->fates[i];
        return;
    }
    tally->failed++;
    if (WIFSIGNALED(status))
        printf("seed %" PRIu64 ": ended by signal %d (%s)\n", seed, WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != HISTORY_BROKEN_EXIT)
        printf("seed %" PRIu64 ": ended with status %d\n", seed, WEXITSTATUS(status));
}

/* Seeds first .. first + n - 1, as many at once as there are processors. */
static struct tally run_seeds(struct tarn_test *t, uint64_t first, uint64_t n,
                              enum mutation mutation, bool until_broken, uint64_t real_state_each)
{
    struct tally tally = {0};
    pid_t children[CHILDREN_MAX] = {0};
    uint64_t seeds[CHILDREN_MAX];
    struct outcome *outcomes = outcomes_new(CHILDREN_MAX);
    int slots = (int)TARN_MIN(sysconf(_SC_NPROCESSORS_ONLN), (long)CHILDREN_MAX);
    int running = 0;
    uint64_t next = first;
    expect_not_null(outcomes);
    while (running > 0 || (next < first + n && !(until_broken && tally.failed > 0))) {
        for (int i = 0; i < slots && next < first + n && !(until_broken && tally.failed > 0); i++) {
            if (children[i] != 0)
                continue;
            memset(&outcomes[i], 0, sizeof outcomes[i]);
            seeds[i] = next++;
            bool real = real_state_each != 0 && seeds[i] % real_state_each == 0;
            children[i] = start(seeds[i], mutation, real ? tarn_test_dir(t) : NULL, &outcomes[i]);
            running++;
        }
        int status;
        pid_t ended = wait(&status);
        for (int i = 0; i < slots; i++)
            if (ended > 0 && children[i] == ended) {
                count(&tally, seeds[i], status, &outcomes[i]);
                children[i] = 0;
                running--;
            }
    }
    munmap(outcomes, CHILDREN_MAX * sizeof *outcomes);
    return tally;
}

TARN_TEST(history, seeds)
{
    uint64_t first = number_of("TARN_FIRST", 1), n = number_of("TARN_SEEDS", 40);
    struct tally tally =
        run_seeds(t, first, n, MUTATION_NONE, false, number_of("TARN_REAL_STATE_EACH", 16));
    const struct outcome *sum = &tally.sum;
    printf("%" PRIu64 " seeds from %" PRIu64 ": %" PRIu64 " broke; %" PRId64 " lives, %" PRId64
           " requests, %" PRId64 " snapshots (%" PRId64 " taken back)\n"
           "  overwrites: table %" PRId64 ", partition %" PRId64 " (dropped %" PRId64
           "), dynamic %" PRId64 "; with changelog: %" PRId64 " snapshots; index files: %" PRId64
           "; expiries: %" PRId64 ", files removed: %" PRId64 "\n"
           "  streams: %" PRId64 " snapshots told\n  told: landed %" PRId64 ", refused %" PRId64
           ", unknown %" PRId64 "\n"
           "  asked: landed %" PRId64 ", refused %" PRId64 ", open %" PRId64
           ", rolled back %" PRId64 ", not known %" PRId64 ", not committed %" PRId64 "\n",
           n, first, tally.failed, sum->lives, sum->requests, sum->snapshots, sum->floating,
           sum->overwrites[TARN_OVERWRITE_TABLE], sum->overwrites[TARN_OVERWRITE_PARTITIONS],
           sum->drops, sum->overwrites[TARN_OVERWRITE_DYNAMIC], sum->changelogs, sum->indexes,
           sum->expiries, sum->files_removed, sum->events, sum->answers[1], sum->answers[2],
           sum->answers[3], sum->fates[0], sum->fates[1], sum->fates[2], sum->fates[3],
           sum->fates[4], sum->fates[5]);
    expect_uint(tally.failed, 0);
}

TARN_TEST(history, a_seed_reproduces_its_run)
{
    struct outcome *outcomes = outcomes_new(2);
    expect_not_null(outcomes);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        for (int i = 0; i < 2; i++) {
            int status;
            outcomes[i].hash = (uint64_t)i;
            waitpid(start(seed, MUTATION_NONE, NULL, &outcomes[i]), &status, 0);
        }
        expect_uint(outcomes[0].hash, outcomes[1].hash);
    }
}

/* A checker that never fails proves nothing: each rule of the store, broken, must be noticed. */
TARN_TEST(history, broken_stores_are_noticed)
{
    for (enum mutation m = MUTATION_NONE + 1; m < MUTATION_COUNT; m++) {
        struct tally tally = run_seeds(t, 1, 40, m, true, 0);
        if (tally.failed == 0)
            expect_unreachable("40 runs over a store that is broken by %s went well",
                               mutation_name(m));
    }
}
