#include "hms/internal.h"

#include <pthread.h>
#include <pwd.h>
#include <unistd.h>

/*
 * Passes, one at a time.
 *
 *           +--- something changed, and it is time ---> small pass --+
 *   idle ---+--- start, check_ms over, was away ------> check -------+--> idle
 *                                                                    +--> (it failed) idle, back-off, then a check
 *
 * `tick` is a timer's job that mostly finds nothing to do. A pass runs in it; others that come meanwhile see `running`.
 * `memory` and the client belong to the pass, everything else is under the lock.
 */

#define TICK_MS 250
#define BACK_OFF_MIN_MS 1000
#define BACK_OFF_MAX_MS 60000
#define REST_FACTOR                                                                                \
    10 /* commits alone bring a pass no sooner than so many times what the last one took, */
#define REST_MAX_MS 30000 /* but for this */
/* How soon commits are looked at where no table has partitions there: they could only bring another program's schema. */
#define COMMITS_IDLE_MS 10000

struct tarn_hms {
    struct tarn_hms_options options;
    char *uri, *user;
    struct tarn_hms__client client;
    struct tarn_hms__memory memory;

    pthread_mutex_t lock; /* guards what follows */
    struct tarn_timer *timer;
    struct tarn_op stop; /* cancelled when it ends */
    bool running, has_partitions, changed, committed, check_due;
    int64_t checked_ms, not_before_ms, back_off_ms, pass_ended_ms,
        rest_ms; /* monotonic; rest: a time */
    bool down;
    char *failure;
    int64_t in_step_ms, table_count, database_count, refused_count;
    struct tarn_hms_problem *problems; /* owned, with their strings */
    size_t problem_count;
};

/* --- what is told of a pass --- */

struct tally {
    int64_t databases, tables, refused;
    bool has_partitions;
    struct tarn_hms_problem *problems;
    size_t problem_count;
};

/* How many of them are there. */
static int64_t count_known(const struct tarn_map *map, struct tally *tally)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    int64_t pushed = 0;
    while (tarn_map_next(map, &cursor, &key, &value)) {
        const struct tarn_hms__known *known = value;
        tally->has_partitions = tally->has_partitions || known->partitions != 0;
        pushed += known->pushed && known->problem == NULL;
        if (known->problem == NULL)
            continue;
        tally->refused++;
        if (tally->problem_count == TARN_HMS_PROBLEMS_MAX)
            continue;
        char *name = tarn_slice_dup(key); /* "db\0table" or "db" */
        for (size_t i = 0; i < key.size; i++)
            name[i] = name[i] == '\0' ? '.' : name[i];
        tally->problems[tally->problem_count++] =
            (struct tarn_hms_problem){name, tarn_strdup(known->problem)};
    }
    return pushed;
}

static void free_problems(struct tarn_hms_problem *problems, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)problems[i].table);
        free((char *)(uintptr_t)problems[i].problem);
    }
    free(problems);
}

static void make_tally(const struct tarn_hms *hms, struct tally *out)
{
    *out = (struct tally){.problems = tarn_calloc(TARN_HMS_PROBLEMS_MAX, sizeof *out->problems)};
    out->databases = count_known(hms->memory.databases, out);
    out->tables = count_known(hms->memory.tables, out);
}

/* With the lock. */
static void keep_tally(struct tarn_hms *hms, const struct tally *tally)
{
    hms->database_count = tally->databases;
    hms->table_count = tally->tables;
    hms->refused_count = tally->refused;
    hms->has_partitions = tally->has_partitions;
    free_problems(hms->problems, hms->problem_count);
    hms->problems = tally->problems;
    hms->problem_count = tally->problem_count;
    tarn_metric_set(TARN_M_HMS_TABLES, NULL, (double)hms->table_count);
    tarn_metric_set(TARN_M_HMS_REFUSED, NULL, (double)hms->refused_count);
}

/* With the lock. Consumes the status. */
static void pass_failed(struct tarn_hms *hms, struct tarn_status *s)
{
    if (tarn_op_is_cancelled(&hms->stop)) {
        tarn_status_free(s);
        return;
    }
    hms->back_off_ms = TARN_MIN(TARN_MAX(hms->back_off_ms * 2, (int64_t)BACK_OFF_MIN_MS),
                                (int64_t)BACK_OFF_MAX_MS);
    hms->not_before_ms = tarn_clock_mono_ms() + hms->back_off_ms;
    hms->check_due = true;
    if (!hms->down || strcmp(hms->failure, tarn_status_message(s)) != 0)
        tarn_log(NULL, TARN_WARN, "hms.down", "uri=%s reason=%s error=%s",
                 tarn_log_quote(NULL, hms->uri), tarn_reason_name(tarn_status_reason(s)),
                 tarn_log_quote(NULL, tarn_status_message(s)));
    free(hms->failure);
    hms->failure = tarn_strdup(tarn_status_message(s));
    hms->down = true;
    tarn_metric_add(TARN_M_HMS_FAILURES, "unavailable", 1);
    tarn_status_free(s);
}

/* With the lock. */
static void pass_went_well(struct tarn_hms *hms, bool check, int64_t took_ms)
{
    int64_t now_ms = tarn_clock_mono_ms();
    if (hms->down || hms->in_step_ms == 0)
        tarn_log(NULL, TARN_INFO, "hms.in_step",
                 "uri=%s databases=%" PRId64 " tables=%" PRId64 " refused=%" PRId64,
                 tarn_log_quote(NULL, hms->uri), hms->database_count, hms->table_count,
                 hms->refused_count);
    hms->down = false;
    hms->back_off_ms = 0;
    hms->not_before_ms = 0;
    hms->rest_ms = TARN_MIN(took_ms * REST_FACTOR, (int64_t)REST_MAX_MS);
    hms->in_step_ms = tarn_clock_wall_ms();
    if (check)
        hms->checked_ms = now_ms;
}

static void end_pass(struct tarn_hms *hms, bool check, int64_t began_ms, struct tarn_status *s)
{
    struct tally tally;
    make_tally(hms, &tally); /* committers take the lock: it is held for no walk */
    pthread_mutex_lock(&hms->lock);
    keep_tally(hms, &tally);
    hms->pass_ended_ms = tarn_clock_mono_ms();
    if (s != TARN_OK)
        pass_failed(hms, s);
    else
        pass_went_well(hms, check, hms->pass_ended_ms - began_ms);
    tarn_metric_set(TARN_M_HMS_UP, NULL, hms->down ? 0 : 1);
    hms->running = false;
    pthread_mutex_unlock(&hms->lock);
}

/* --- when --- */

/* With the lock: is a pass due? It has the marks then. */
static bool begin_pass(struct tarn_hms *hms, bool *check, bool *names_changed)
{
    int64_t now_ms = tarn_clock_mono_ms();
    int64_t rest_ms = TARN_MAX(hms->rest_ms, (int64_t)(hms->has_partitions ? 0 : COMMITS_IDLE_MS));
    bool commits = hms->committed && now_ms - hms->pass_ended_ms >= rest_ms;
    *check = hms->check_due || now_ms - hms->checked_ms >= hms->options.check_ms;
    if (hms->running || tarn_op_is_cancelled(&hms->stop) || now_ms < hms->not_before_ms ||
        !(*check || hms->changed || commits))
        return false;
    *names_changed = hms->changed;
    hms->running = true;
    hms->changed = hms->committed = hms->check_due = false;
    return true;
}

static void tick(void *arg)
{
    struct tarn_hms *hms = arg;
    bool check, names_changed;
    pthread_mutex_lock(&hms->lock);
    bool due = begin_pass(hms, &check, &names_changed);
    pthread_mutex_unlock(&hms->lock);
    if (!due)
        return;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, &hms->stop);
    struct tarn_hms__pass pass = {
        .op = &op,
        .catalog = hms->options.catalog,
        .client = &hms->client,
        .memory = &hms->memory,
        .user = hms->user,
        .warehouse = tarn_slice_str(tarn_store_uri(hms->options.store)),
        .check = check,
        .names_changed = names_changed,
    };
    int64_t began_ms = tarn_clock_mono_ms();
    tarn_exec_wait_begin(); /* most of it is */
    struct tarn_status *s = tarn_hms__run_pass(&pass);
    tarn_exec_wait_end();
    end_pass(hms, check, began_ms, s);
}

void tarn_hms_notice(struct tarn_hms *hms, struct tarn_table *table TARN_UNUSED)
{
    pthread_mutex_lock(&hms->lock);
    hms->committed = true;
    pthread_mutex_unlock(&hms->lock);
}

void tarn_hms_catalog_changed(struct tarn_hms *hms)
{
    pthread_mutex_lock(&hms->lock);
    hms->changed = true;
    pthread_mutex_unlock(&hms->lock);
}

/* --- from beginning to end --- */

static char *account(void)
{
    struct passwd entry, *found = NULL;
    char buffer[4096];
    if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != NULL)
        return tarn_strdup(found->pw_name);
    return tarn_strdup("tarn");
}

struct tarn_hms *tarn_hms_new(const struct tarn_hms_options *options)
{
    struct tarn_hms *hms = tarn_calloc(1, sizeof *hms);
    hms->options = *options;
    hms->uri = tarn_strdup(options->uri);
    hms->user = options->user[0] == '\0' ? account() : tarn_strdup(options->user);
    hms->client = (struct tarn_hms__client){.user = hms->user,
                                            .connect_timeout_ms = options->connect_timeout_ms,
                                            .timeout_ms = options->timeout_ms};
    /* It was checked before; an empty list says at the first pass that nobody is there. */
    tarn_status_free(
        tarn_hms__parse_uri(hms->uri, &hms->client.addresses, &hms->client.address_count));
    tarn_hms__memory_init(&hms->memory);
    hms->check_due = true;
    pthread_mutex_init(&hms->lock, NULL);
    tarn_op_init(&hms->stop);
    hms->timer = tarn_timer_new(options->exec, 1, TICK_MS, tick, hms);
    return hms;
}

void tarn_hms_free(struct tarn_hms *hms)
{
    if (hms == NULL)
        return;
    tarn_op_cancel(&hms->stop);
    tarn_timer_cancel(hms->timer);
    tarn_hms__client_fini(&hms->client);
    tarn_hms__memory_fini(&hms->memory);
    free_problems(hms->problems, hms->problem_count);
    tarn_op_fini(&hms->stop);
    pthread_mutex_destroy(&hms->lock);
    free(hms->failure);
    free(hms->user);
    free(hms->uri);
    free(hms);
}

static int by_table(const void *a, const void *b)
{
    return strcmp(((const struct tarn_hms_problem *)a)->table,
                  ((const struct tarn_hms_problem *)b)->table);
}

void tarn_hms_info(struct tarn_op *op, struct tarn_hms *hms, struct tarn_hms_info *out)
{
    pthread_mutex_lock(&hms->lock);
    bool behind = hms->running || hms->changed || hms->check_due;
    *out = (struct tarn_hms_info){
        .uri = tarn_arena_str(op->arena, tarn_slice_str(hms->uri)),
        .state = hms->down              ? "down"
                 : hms->in_step_ms == 0 ? "starting"
                 : behind               ? "pushing"
                                        : "in step",
        .failure = hms->down ? tarn_arena_str(op->arena, tarn_slice_str(hms->failure)) : "",
        .in_step_ms = hms->in_step_ms,
        .database_count = hms->database_count,
        .table_count = hms->table_count,
        .refused_count = hms->refused_count,
        .problems = tarn_arena_calloc(op->arena, hms->problem_count + 1, sizeof *out->problems),
        .problem_count = hms->problem_count,
    };
    for (size_t i = 0; i < hms->problem_count; i++)
        out->problems[i] = (struct tarn_hms_problem){
            tarn_arena_str(op->arena, tarn_slice_str(hms->problems[i].table)),
            tarn_arena_str(op->arena, tarn_slice_str(hms->problems[i].problem))};
    pthread_mutex_unlock(&hms->lock);
    qsort(out->problems, out->problem_count, sizeof *out->problems, by_table);
}
