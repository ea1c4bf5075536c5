/*
 * The queue: one task a bucket (M1), a report counts only under its present token (M2), what a worker is given is
 * live then (M3); leases run out, failures are tried again and given up.
 */
#include "maintain/advise.h"
#include "maintain/internal.h"
#include "store/faulty.h"
#include "test/lib/test.h"

#include <unistd.h>

struct house {
    struct tarn_test *t;
    struct tarn_exec *exec;
    struct tarn_store *store;
    struct tarn_state *state;
    struct tarn_table_env env;
    struct tarn_catalog *catalog;
    struct tarn_maintain *maintain;
    struct tarn_table *table;
    const char *worker;
    int file_count;
};

#define S(text) tarn_slice_str(text)

static const char *join(struct house *h, const char *address)
{
    struct tarn_worker_info info = {.name = "w", .address = address, .version = "1", .slots = 1};
    const char *id;
    expect_ok(tarn_maintain_register(h->t->op, h->maintain, &info, &id));
    return id;
}

/* Of database "db"; option NULL: none. */
static struct tarn_table *make_table_with(struct house *h, const char *name, const char *option,
                                          const char *value)
{
    struct tarn_table *table;
    struct tarn_schema draft = {.version = 3};
    struct tarn_slice key = S("id");
    struct tarn_pair options[] = {{S("bucket"), S("1")}, {S(option), S(value)}};
    expect_ok(tarn_columns_parse(S("id BIGINT NOT NULL"), h->t->arena, &draft.fields,
                                 &draft.field_count));
    draft.primary_keys = &key;
    draft.primary_key_count = 1;
    bool buckets = option != NULL && strcmp(option, "bucket") == 0; /* in place of the first */
    draft.options = options + buckets;
    draft.option_count = option == NULL || buckets ? 1 : 2;
    expect_ok(tarn_catalog_create_table(h->t->op, h->catalog, S("db"), S(name), &draft, &table));
    return table;
}

static struct tarn_table *make_table(struct house *h, const char *name)
{
    return make_table_with(h, name, NULL, NULL);
}

static void house_init_with(struct house *h, struct tarn_test *t,
                            struct tarn_maintain_options options)
{
    *h = (struct house){.t = t, .exec = tarn_exec_new(2, 16)};
    bool fresh;
    TARN_OWN(tarn_store_drop) struct tarn_store *memory = NULL;
    expect_ok(tarn_store_open("memory:", &memory));
    h->store = tarn_store_faulty_new(memory);
    expect_ok(tarn_state_open(tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t)), &fresh,
                              &h->state));
    h->env = (struct tarn_table_env){
        .store = h->store, .state = h->state, .exec = h->exec, .commit_retries = 3};
    expect_ok(tarn_catalog_open(t->op, &h->env, "test", "/data", &h->catalog));
    struct tarn_database_info info = {.name = S("db")};
    expect_ok(tarn_database_create(t->op, h->catalog, &info, false));
    h->table = make_table(h, "t");
    options.catalog = h->catalog;
    options.exec = h->exec;
    h->maintain = tarn_maintain_new(&options);
    h->worker = join(h, "127.0.0.1:1");
}

static void house_init(struct house *h, struct tarn_test *t, int64_t lease_ms, bool automatic)
{
    house_init_with(h, t,
                    (struct tarn_maintain_options){
                        .automatic = automatic, .check_interval_ms = 20, .lease_ms = lease_ms});
}

static void house_fini(struct house *h)
{
    tarn_maintain_free(h->maintain);
    tarn_table_drop_ref(&h->table);
    tarn_catalog_close(h->catalog);
    tarn_state_close(h->state);
    tarn_store_unref(h->store);
    tarn_exec_free(h->exec);
}

static struct tarn_slice key_row(struct house *h, int64_t id)
{
    static const struct tarn_type type = {.id = TARN_TYPE_BIGINT};
    const struct tarn_type *types[] = {&type};
    struct tarn_value value = {.integer = id};
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    tarn_row_serialize(types, &value, 1, &row);
    return tarn_arena_copy(h->t->arena, tarn_buf_slice(&row));
}

/* A made-up file of keys 1..10; it is there, as the commit wants it. */
static struct tarn_manifest_entry made_up(struct house *h, const char *name, int level)
{
    struct tarn_manifest_entry e = {
        .kind = TARN_ENTRY_ADD, .partition = tarn_row_empty(), .total_buckets = 1};
    e.file = (struct tarn_data_file){.name = S(name),
                                     .size = 100,
                                     .row_count = 10,
                                     .min_key = key_row(h, 1),
                                     .max_key = key_row(h, 10),
                                     .key_stats = tarn_stats_empty(),
                                     .value_stats = tarn_stats_empty(),
                                     .level = level,
                                     .creation_time_ms = 1,
                                     .min_sequence = h->file_count * 10,
                                     .max_sequence = h->file_count * 10 + 9,
                                     .has_value_stats_columns = true,
                                     .first_row_id = TARN_FILE_NONE};
    expect_ok(tarn_store_put(h->store, h->t->op,
                             tarn_arena_printf(h->t->arena, "db.db/t/bucket-0/%s", name), S("x")));
    return e;
}

static void load(struct house *h, int count)
{
    for (int i = 0; i < count; i++) {
        struct tarn_manifest_entry e =
            made_up(h, tarn_arena_printf(h->t->arena, "f%d", h->file_count), 0);
        struct tarn_commit commit = {.user = S("u"),
                                     .identifier = h->file_count++,
                                     .watermark = TARN_SNAPSHOT_NONE,
                                     .append.entries = &e,
                                     .append.count = 1};
        struct tarn_commit_result result;
        expect_ok(tarn_table_commit(h->t->op, h->table, &commit, &result));
    }
}

static size_t order_full(struct house *h)
{
    struct tarn_compact_order order = {.table = h->table, .full = true};
    struct tarn_job_info *picks;
    size_t count;
    expect_ok(tarn_maintain_compact(h->t->op, h->maintain, &order, &picks, &count));
    return count;
}

/* A task for the worker, waiting up to wait_ms; id 0: there was none. */
static struct tarn_task take(struct house *h, const char *worker, int64_t wait_ms)
{
    struct tarn_task *tasks;
    size_t count;
    expect_ok(tarn_maintain_poll(h->t->op, h->maintain, worker, 1, wait_ms, &tasks, &count));
    if (count == 0)
        return (struct tarn_task){0};
    tarn_table_drop_ref(&tasks[0].table);
    return tasks[0];
}

static struct tarn_status *report(struct house *h, const char *worker, const struct tarn_task *task,
                                  int64_t *snapshot)
{
    size_t n = task->file_count;
    struct tarn_manifest_entry *entries = tarn_arena_calloc(h->t->arena, n + 1, sizeof *entries);
    for (size_t i = 0; i < n; i++) {
        entries[i] = task->files[i];
        entries[i].kind = TARN_ENTRY_DELETE;
    }
    entries[n] =
        made_up(h, tarn_arena_printf(h->t->arena, "out-%" PRId64, task->token), task->output_level);
    struct tarn_report r = {.lease = {task->id, task->token},
                            .entries = entries,
                            .entry_count = n + 1,
                            .bytes_out = 100};
    return tarn_maintain_report(h->t->op, h->maintain, worker, &r, snapshot);
}

static struct tarn_status *report_failure(struct house *h, const struct tarn_task *task)
{
    struct tarn_report r = {.lease = {task->id, task->token},
                            .failure = TARN_MEMORY_EXHAUSTED,
                            .failure_message = S("too much")};
    int64_t snapshot;
    return tarn_maintain_report(h->t->op, h->maintain, h->worker, &r, &snapshot);
}

static const char *job_state(struct house *h, int64_t id)
{
    struct tarn_job_info *jobs;
    size_t count;
    expect_ok(tarn_maintain_jobs(h->t->op, h->maintain, NULL, true, false, &jobs, &count));
    for (size_t i = 0; i < count; i++)
        if (jobs[i].id == id)
            return jobs[i].state;
    return "unknown";
}

TARN_TEST(queue, leases_a_task_and_commits_its_report_once)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    load(&h, 3);
    expect_int(order_full(&h), 1);
    expect_int(order_full(&h), 1); /* M1: the same task */
    struct tarn_task task = take(&h, h.worker, 1000);
    expect_int(task.file_count, 3);
    expect_int(task.output_level, 5);
    expect_true(task.drop_delete);
    expect_true(task.token > tarn_catalog_epoch(h.catalog) << 32);
    expect_int(take(&h, h.worker, 0).id, 0);
    int64_t snapshot, again;
    expect_ok(report(&h, h.worker, &task, &snapshot));
    expect_int(snapshot, 4);
    expect_ok(report(&h, h.worker, &task, &again)); /* the answer was lost: the same one */
    expect_int(again, 4);
    expect_str(job_state(&h, task.id), "done");
    struct tarn_bucket_files *buckets;
    size_t count;
    expect_ok(tarn_table_buckets(t->op, h.table, tarn_slice_str(NULL), &buckets, &count));
    expect_int(buckets[0].file_count, 1);
}

/* --- another bucket count --- */

static void set_buckets(struct house *h, const char *count)
{
    struct tarn_schema_change change = {
        .kind = TARN_CHANGE_SET_OPTION, .key = S("bucket"), .value = S(count)};
    expect_ok(tarn_catalog_alter_table(h->t->op, h->catalog, h->table, &change, 1));
}

static size_t order_rescale(struct house *h, int32_t bucket_count, bool dry_run,
                            struct tarn_job_info **picks)
{
    struct tarn_rescale_order order = {
        .table = h->table, .bucket_count = bucket_count, .dry_run = dry_run};
    size_t count;
    expect_ok(tarn_maintain_rescale(h->t->op, h->maintain, &order, picks, &count));
    return count;
}

/* All of its files become one of bucket 2 of 4. */
static struct tarn_status *report_rescaled(struct house *h, const struct tarn_task *task,
                                           int64_t *snapshot)
{
    size_t n = task->file_count;
    struct tarn_manifest_entry *entries = tarn_arena_calloc(h->t->arena, n + 1, sizeof *entries);
    for (size_t i = 0; i < n; i++) {
        entries[i] = task->files[i];
        entries[i].kind = TARN_ENTRY_DELETE;
    }
    const char *name = tarn_arena_printf(h->t->arena, "out-%" PRId64, task->token);
    entries[n] = made_up(h, name, task->output_level);
    entries[n].bucket = 2;
    entries[n].total_buckets = 4;
    expect_ok(tarn_store_put(h->store, h->t->op,
                             tarn_arena_printf(h->t->arena, "db.db/t/bucket-2/%s", name), S("x")));
    struct tarn_report r = {
        .lease = {task->id, task->token}, .entries = entries, .entry_count = n + 1};
    return tarn_maintain_report(h->t->op, h->maintain, h->worker, &r, snapshot);
}

TARN_TEST(queue, rescales_a_partition_as_a_whole_or_not_at_all)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_job_info *picks;
    int64_t snapshot;
    int32_t count;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    expect_int(order_rescale(&h, 4, true, &picks), 1);
    expect_str(picks[0].state, "planned");
    expect_int(take(&h, h.worker, 0).id, 0);
    set_buckets(&h, "4");
    expect_int(order_rescale(&h, 4, false, &picks), 1);
    expect_int(order_full(&h), 1);
    struct tarn_task task = take(&h, h.worker, 1000); /* first, and alone: M1 */
    expect_true(task.rescale);
    expect_int(task.file_count, 2);
    expect_int(take(&h, h.worker, 0).id, 0);
    load(&h, 1); /* what it began with isn't all any more */
    expect_status(report_rescaled(&h, &task, &snapshot), TARN_COMMIT_CONFLICT, "leaves file f2");
    expect_str(job_state(&h, task.id), "queued");
    task = take(&h, h.worker, 5000);
    expect_int(task.file_count, 3);
    expect_ok(report_rescaled(&h, &task, &snapshot));
    expect_int(snapshot, 4);
    expect_str(job_state(&h, task.id), "done");
    expect_ok(tarn_table_bucket_count(h.table, tarn_row_empty(), &count));
    expect_int(count, 4);
    expect_int(order_rescale(&h, 4, false, &picks), 0);
}

TARN_TEST(queue, a_rescale_waits_for_a_compaction_that_runs_and_is_given_to_our_workers_alone)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_job_info *picks;
    int64_t snapshot;
    house_init(&h, t, 60000, false);
    const char *theirs = join(&h, "");
    load(&h, 2);
    order_full(&h);
    struct tarn_task compaction = take(&h, h.worker, 1000);
    set_buckets(&h, "4");
    expect_int(order_rescale(&h, 4, false, &picks), 1);
    expect_int(take(&h, h.worker, 0).id, 0);
    expect_ok(report(&h, h.worker, &compaction, &snapshot));
    expect_int(take(&h, theirs, 0).id, 0);
    expect_true(take(&h, h.worker, 1000).rescale);
}

TARN_TEST(queue, what_is_cancelled_is_fenced_off)
{
    TARN_OWN(house_fini) struct house h;
    int64_t snapshot;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    order_full(&h);
    struct tarn_task task = take(&h, h.worker, 1000);
    expect_ok(tarn_maintain_cancel(t->op, h.maintain, task.id));
    expect_str(job_state(&h, task.id), "failed");
    expect_status(report(&h, h.worker, &task, &snapshot), TARN_LEASE_LOST, "");
    expect_status(tarn_maintain_cancel(t->op, h.maintain, task.id), TARN_INVALID_ARGUMENT,
                  "is not queued");
    expect_status(tarn_maintain_cancel(t->op, h.maintain, 999), TARN_INVALID_ARGUMENT, "job 999");
}

/* A load that would make a rescale fail again and again lets it pass. */
TARN_TEST(queue, loads_wait_for_a_rescale_that_lost_often_enough)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_job_info *picks;
    int64_t snapshot;
    struct tarn_manifest_entry entry = {.partition = tarn_row_empty()};
    house_init(&h, t, 600000, false);
    load(&h, 1);
    set_buckets(&h, "4");
    order_rescale(&h, 4, false, &picks);
    for (int tries = 1; tries < TARN_RESCALE_TRIES_ALONE; tries++) {
        struct tarn_task task = take(&h, h.worker, 5000);
        tarn_maintain_let_rescale(t->op, h.maintain, h.table, &entry, 1, 600000); /* at once */
        load(&h, 1);
        expect_status(report_rescaled(&h, &task, &snapshot), TARN_COMMIT_CONFLICT, "");
    }
    expect_true(take(&h, h.worker, 5000).rescale);
    int64_t began = tarn_clock_mono_ms();
    tarn_maintain_let_rescale(t->op, h.maintain, h.table, &entry, 1, 30);
    expect_true(tarn_clock_mono_ms() - began >= 30);
}

TARN_TEST(queue, finds_work_by_itself)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, true);
    load(&h, 4);
    tarn_maintain_notice(h.maintain, h.table);
    expect_int(take(&h, h.worker, 200).id, 0); /* four runs don't call for it */
    load(&h, 1);
    tarn_maintain_notice(h.maintain, h.table);
    struct tarn_task task = take(&h, h.worker, 5000);
    expect_int(task.file_count, 5);
}

/* Checks go one after the other: when work is found in what was noticed later, the table was looked at. */
TARN_TEST(queue, leaves_alone_what_its_writers_compact)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, true);
    struct tarn_table *theirs = h.table;
    tarn_table_set_compacted(theirs, false);
    load(&h, 5);
    tarn_maintain_notice(h.maintain, theirs);
    for (int i = 0; i < 2; i++) {
        h.table = make_table(&h, i == 0 ? "u" : "v");
        load(&h, 5);
        tarn_maintain_notice(h.maintain, h.table);
        struct tarn_task task = take(&h, h.worker, 5000);
        expect_int(task.file_count, 5);
        tarn_table_drop_ref(&h.table);
    }
    h.table = theirs;
    struct tarn_job_info *jobs;
    size_t count;
    expect_ok(tarn_maintain_jobs(t->op, h.maintain, theirs, true, false, &jobs, &count));
    expect_int(count, 0);
    expect_int(order_full(&h), 1); /* who names it compacts it */
    expect_ok(tarn_maintain_jobs(t->op, h.maintain, theirs, true, false, &jobs, &count));
    expect_int(count, 1);
}

TARN_TEST(queue, fences_off_a_worker_whose_lease_ran_out)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 150, false);
    load(&h, 3);
    order_full(&h);
    struct tarn_task first = take(&h, h.worker, 1000);
    const char *other = join(&h, "127.0.0.1:2");
    struct tarn_task second = {0};
    for (int64_t begun = tarn_clock_mono_ms();
         second.id == 0 && tarn_clock_mono_ms() - begun < 20000;)
        second = take(&h, other, 100);
    expect_int(second.id, first.id);
    expect_true(second.token > first.token);
    int64_t snapshot;
    expect_status(report(&h, h.worker, &first, &snapshot), TARN_LEASE_LOST, "not leased");
    struct tarn_lease_ref lease = {first.id, first.token};
    int64_t *lost;
    size_t lost_count;
    expect_ok(tarn_maintain_renew(t->op, h.maintain, h.worker, &lease, 1, &lost, &lost_count));
    expect_int(lost_count, 1);
    expect_ok(report(&h, other, &second, &snapshot));
    expect_int(snapshot, 4);
}

TARN_TEST(queue, a_lease_that_is_renewed_lasts)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 400, false);
    load(&h, 3);
    order_full(&h);
    struct tarn_task task = take(&h, h.worker, 1000);
    struct tarn_lease_ref lease = {task.id, task.token};
    for (int i = 0; i < 10; i++) {
        usleep(100000);
        int64_t *lost;
        size_t lost_count;
        expect_ok(tarn_maintain_renew(t->op, h.maintain, h.worker, &lease, 1, &lost, &lost_count));
        expect_int(lost_count, 0);
    }
    int64_t snapshot;
    expect_ok(report(&h, h.worker, &task, &snapshot));
}

TARN_TEST(queue, a_result_whose_inputs_are_gone_changes_nothing) /* K04 */
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    order_full(&h);
    struct tarn_task task = take(&h, h.worker, 1000);
    struct tarn_manifest_entry gone[2] = {task.files[0], task.files[1]};
    gone[0].kind = gone[1].kind = TARN_ENTRY_DELETE;
    struct tarn_commit drop = {.user = S("u"),
                               .identifier = 100,
                               .watermark = TARN_SNAPSHOT_NONE,
                               .kind = TARN_COMMIT_OVERWRITE,
                               .append.entries = gone,
                               .append.count = 2};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, h.table, &drop, &result));
    int64_t snapshot;
    expect_status(report(&h, h.worker, &task, &snapshot), TARN_COMMIT_CONFLICT, "no longer live");
    struct tarn_bucket_files *buckets;
    size_t count;
    expect_ok(tarn_table_buckets(t->op, h.table, tarn_slice_str(NULL), &buckets, &count));
    expect_int(count, 0);
}

TARN_TEST(queue, tries_again_with_back_off)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    order_full(&h);
    struct tarn_task task = take(&h, h.worker, 1000);
    expect_ok(report_failure(&h, &task));
    expect_str(job_state(&h, task.id), "queued");
    expect_int(take(&h, h.worker, 100).id, 0); /* not at once */
    struct tarn_task again = take(&h, h.worker, 10000);
    expect_int(again.id, task.id);
    int64_t snapshot;
    expect_ok(report(&h, h.worker, &again, &snapshot));
}

TARN_TEST(queue, takes_back_at_once_what_a_dead_worker_held)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    order_full(&h);
    struct tarn_worker_info info = {
        .name = "host-4242", .address = "127.0.0.1:3", .version = "1", .slots = 1, .local = true};
    const char *id;
    expect_ok(tarn_maintain_register(t->op, h.maintain, &info, &id));
    struct tarn_task task = take(&h, id, 1000);
    tarn_maintain_worker_ended(h.maintain, 242); /* somebody else's */
    expect_str(job_state(&h, task.id), "leased");
    tarn_maintain_worker_ended(h.maintain, 4242);
    expect_str(job_state(&h, task.id), "queued");
    int64_t snapshot;
    expect_status(report(&h, id, &task, &snapshot), TARN_LEASE_LOST, "not leased");
    struct tarn_task again = take(&h, h.worker, 10000);
    expect_int(again.id, task.id);
    expect_ok(report(&h, h.worker, &again, &snapshot));
}

#define NEVER_MS 86400000

/* However long it takes. */
static void look_at_all(struct tarn_maintain *m)
{
    while (tarn_maintain__check(m, NEVER_MS))
        ;
}

/* --- compactions that were undone --- */

#define REST_MS 60000

/* Looks for work when the test says so, by the clock that the test moves. */
static void house_init_still(struct house *h, struct tarn_test *t)
{
    tarn_clock_fake(1000000000);
    house_init_with(h, t,
                    (struct tarn_maintain_options){.automatic = true,
                                                   .check_interval_ms = NEVER_MS,
                                                   .lease_ms = NEVER_MS,
                                                   .undone_rest_ms = REST_MS});
}

static void house_fini_still(struct house *h)
{
    house_fini(h);
    tarn_clock_fake(-1);
}

static struct tarn_task check_and_take(struct house *h)
{
    tarn_maintain_notice(h->maintain, h->table);
    look_at_all(h->maintain);
    return take(h, h->worker, 0);
}

/* --- what workers leave behind --- */

static const char *data_key(struct house *h, const char *name)
{
    return tarn_arena_printf(h->t->arena, "db.db/t/bucket-0/%s", name);
}

static const char *lease_name(struct house *h, const struct tarn_task *task, const char *before,
                              const char *after)
{
    return data_key(h, tarn_arena_printf(h->t->arena, "%s%.18s%s", before, task->file_uuid, after));
}

static void write_object(struct house *h, const char *key)
{
    expect_ok(tarn_store_put(h->store, h->t->op, key, S("rows")));
}

static bool is_there(struct house *h, const char *key)
{
    bool found;
    expect_ok(tarn_store_stat(h->store, h->t->op, key, &found, NULL));
    return found;
}

TARN_TEST(leftovers, of_a_dead_worker_go_and_nothing_else)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    order_full(&h);
    struct tarn_worker_info info = {
        .name = "host-4242", .address = "127.0.0.1:3", .version = "1", .slots = 1, .local = true};
    const char *id;
    expect_ok(tarn_maintain_register(t->op, h.maintain, &info, &id));
    struct tarn_task task = take(&h, id, 1000);
    const char *whole = lease_name(&h, &task, "data-", "-9abc-0123456789ab-0.parquet"),
               *draft = lease_name(&h, &task, ".data-", "-9abc-0123456789ab-1.parquet.x.tmp"),
               *other = data_key(&h, "data-00000000-0000-4000-9abc-0123456789ab-0.parquet");
    write_object(&h, whole);
    write_object(&h, draft);
    write_object(&h, other);
    tarn_maintain__clean_tick(h.maintain);
    expect_true(is_there(&h, whole)); /* it is leased */
    tarn_maintain_worker_ended(h.maintain, 4242);
    tarn_maintain__clean_tick(h.maintain);
    expect_false(is_there(&h, whole));
    expect_false(is_there(&h, draft));
    expect_true(is_there(&h, other));
    struct tarn_task again = take(&h, h.worker, 10000);
    expect_int(again.id, task.id);
    expect_true(memcmp(again.file_uuid, task.file_uuid, 18) != 0);
    int64_t snapshot;
    expect_ok(report(&h, h.worker, &again, &snapshot));
}

TARN_TEST(leftovers, of_a_worker_that_may_be_alive_go_when_it_has_had_time)
{
    TARN_OWN(house_fini_still) struct house h;
    house_init_still(&h, t);
    load(&h, 5);
    struct tarn_task task = check_and_take(&h);
    const char *file = lease_name(&h, &task, "data-", "-9abc-0123456789ab-0.parquet");
    write_object(&h, file);
    tarn_maintain_undone(h.maintain, h.table, tarn_row_empty(), 0);
    tarn_maintain__clean_tick(h.maintain);
    expect_true(is_there(&h, file));
    tarn_clock_fake(1000000000 + NEVER_MS);
    tarn_maintain__clean_tick(h.maintain);
    expect_false(is_there(&h, file));
}

static void *hurry(void *is_over)
{
    int64_t now = 1000000000;
    while (!atomic_load((atomic_bool *)is_over)) {
        tarn_clock_fake(now += 1000);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return NULL;
}

/* The result may be committed: the store said nothing when the snapshot was put. */
TARN_TEST(leftovers, stay_where_they_may_be_live)
{
    TARN_OWN(house_fini_still) struct house h;
    house_init_still(&h, t);
    load(&h, 5);
    struct tarn_task task = check_and_take(&h);
    const char *file = lease_name(&h, &task, "data-", "-9abc-0123456789ab-0.parquet");
    struct tarn_fault_rule silent = {
        .call = "put_if_absent", .key_part = "snapshot/snapshot-", .fault = TARN_FAULT_UNKNOWN};
    write_object(&h, file);
    tarn_store_faulty_add(h.store, &silent);
    int64_t snapshot;
    atomic_bool is_over = false;
    pthread_t clock; /* the store is asked until some time has passed */
    expect_int(pthread_create(&clock, NULL, hurry, &is_over), 0);
    struct tarn_status *s = report(&h, h.worker, &task, &snapshot);
    atomic_store(&is_over, true);
    pthread_join(clock, NULL);
    expect_status(s, TARN_OUTCOME_UNKNOWN, "");
    tarn_store_faulty_clear(h.store);
    expect_int(h.maintain->left_count, 0);
    tarn_clock_fake(1000000000 + 2 * (int64_t)NEVER_MS);
    tarn_maintain__clean_tick(h.maintain);
    expect_true(is_there(&h, file));
}

TARN_TEST(queue, a_bucket_whose_compaction_was_undone_is_left_alone_for_a_while)
{
    TARN_OWN(house_fini_still) struct house h;
    house_init_still(&h, t);
    load(&h, 5);
    tarn_maintain_undone(h.maintain, h.table, tarn_row_empty(), 0);
    expect_int(check_and_take(&h).id, 0);
    tarn_clock_fake(1000000000 + REST_MS - 1);
    expect_int(check_and_take(&h).id, 0);
    tarn_clock_fake(1000000000 + REST_MS);
    expect_true(check_and_take(&h).id > 0);
}

TARN_TEST(queue, only_the_bucket_whose_compaction_was_undone_is_left_alone)
{
    TARN_OWN(house_fini_still) struct house h;
    house_init_still(&h, t);
    load(&h, 5);
    tarn_maintain_undone(h.maintain, h.table, tarn_row_empty(), 1);
    expect_true(check_and_take(&h).id > 0);
}

/* The next one was under way already: it counts no more, and isn't given out anew before its time. */
TARN_TEST(queue, undoing_a_compaction_fences_off_the_next_one)
{
    TARN_OWN(house_fini_still) struct house h;
    house_init_still(&h, t);
    load(&h, 5);
    struct tarn_task task = check_and_take(&h);
    expect_true(task.id > 0);
    tarn_maintain_undone(h.maintain, h.table, tarn_row_empty(), 0);
    int64_t snapshot;
    expect_status(report(&h, h.worker, &task, &snapshot), TARN_LEASE_LOST, "not leased");
    expect_int(check_and_take(&h).id, 0);
    tarn_clock_fake(1000000000 + REST_MS);
    struct tarn_task again = check_and_take(&h);
    expect_int(again.id, task.id);
    expect_ok(report(&h, h.worker, &again, &snapshot));
}

TARN_TEST(queue, who_orders_a_compaction_need_not_wait_for_one_that_was_undone)
{
    TARN_OWN(house_fini_still) struct house h;
    house_init_still(&h, t);
    load(&h, 5);
    struct tarn_task task = check_and_take(&h);
    tarn_maintain_undone(h.maintain, h.table, tarn_row_empty(), 0);
    expect_int(take(&h, h.worker, 0).id, 0);
    order_full(&h);
    expect_int(take(&h, h.worker, 0).id, task.id);
}

/* docs/decisions/015-write-only-where-the-daemon-has-all.md */
TARN_TEST(queue, leaves_alone_what_writers_compact)
{
    TARN_OWN(house_fini_still) struct house h;
    house_init_still(&h, t);
    load(&h, 5);
    struct tarn_schema_change change = {
        .kind = TARN_CHANGE_SET_OPTION, .key = S("write-only"), .value = S("false")};
    expect_ok(tarn_catalog_alter_table(t->op, h.catalog, h.table, &change, 1));
    expect_int(check_and_take(&h).id, 0);
    change.value = S("true");
    expect_ok(tarn_catalog_alter_table(t->op, h.catalog, h.table, &change, 1));
    expect_true(check_and_take(&h).id > 0);
}

TARN_TEST(queue, holds_snapshots_that_a_running_task_reads)
{
    TARN_OWN(house_fini_still) struct house h;
    struct tarn_expiry out;
    house_init_still(&h, t);
    load(&h, 5);
    struct tarn_task task = check_and_take(&h);
    expect_true(task.seen_id > 0);
    load(&h, 3);
    expect_ok(tarn_maintain_expire(t->op, h.maintain, h.table, 1, TARN_EXPIRE_OPTION, false, &out));
    expect_int(out.to, task.seen_id);
    expect_true(out.is_held);
    expect_contains(out.kept_by, "task");
    tarn_maintain_undone(h.maintain, h.table, tarn_row_empty(), 0); /* it ends */
    expect_ok(tarn_maintain_expire(t->op, h.maintain, h.table, 1, TARN_EXPIRE_OPTION, false, &out));
    expect_false(out.is_held);
    expect_true(out.to > task.seen_id);
}

TARN_TEST(queue, a_broken_file_is_not_tried_again)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    order_full(&h);
    struct tarn_task task = take(&h, h.worker, 1000);
    struct tarn_report r = {.lease = {task.id, task.token},
                            .failure = TARN_DATA_FILE_MALFORMED,
                            .failure_message = S("f0")};
    int64_t snapshot;
    expect_ok(tarn_maintain_report(t->op, h.maintain, h.worker, &r, &snapshot));
    expect_str(job_state(&h, task.id), "failed");
}

TARN_TEST(queue, a_table_that_was_dropped_is_not_tried_again)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    order_full(&h);
    expect_ok(tarn_catalog_drop_table(t->op, h.catalog, h.table, S(""), S("")));
    expect_int(take(&h, h.worker, 0).id, 0);
    expect_str(job_state(&h, 1), "failed");
}

TARN_TEST(queue, a_table_that_others_removed_is_no_success)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    load(&h, 2);
    order_full(&h);
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(h.store, t->op, "db.db/t", true, &objects, &count));
    for (size_t i = 0; i < count; i++)
        expect_ok(tarn_store_remove(h.store, t->op, tarn_arena_str(t->arena, objects[i].key)));
    expect_int(take(&h, h.worker, 0).id, 0);
    expect_str(job_state(&h, 1), "failed");
}

/* The daemon keeps a long poll open; that is no word from the worker. */
TARN_TEST(queue, an_open_poll_does_not_keep_a_silent_worker)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 100, false);
    struct tarn_task *tasks;
    size_t count;
    int64_t begun = tarn_clock_mono_ms();
    expect_status(tarn_maintain_poll(t->op, h.maintain, h.worker, 1, 20000, &tasks, &count),
                  TARN_WORKER_LOST, "not registered");
    expect_true(tarn_clock_mono_ms() - begun < 10000);
}

TARN_TEST(queue, an_unknown_worker_is_told_to_register)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    struct tarn_task *tasks;
    size_t count;
    expect_status(tarn_maintain_poll(t->op, h.maintain, "w-0", 1, 0, &tasks, &count),
                  TARN_WORKER_LOST, "not registered");
}

TARN_TEST(queue, streams_go_to_the_idlest_worker)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t, 60000, false);
    join(&h, "127.0.0.1:2");
    const char *a, *b, *address;
    expect_ok(tarn_maintain_begin_stream(t->op, h.maintain, &a, &address));
    expect_ok(tarn_maintain_begin_stream(t->op, h.maintain, &b, &address));
    expect_true(strcmp(a, b) != 0);
    tarn_maintain_end_stream(h.maintain, a, false);
    const char *c;
    expect_ok(tarn_maintain_begin_stream(t->op, h.maintain, &c, &address));
    expect_str(c, a);
    tarn_maintain_end_stream(h.maintain, b, true); /* it broke: nothing goes there any more */
    struct tarn_worker_info *workers;
    size_t count;
    expect_ok(tarn_maintain_workers(t->op, h.maintain, &workers, &count));
    expect_int(count, 1);
}

/* --- the order of tasks --- */

static void load_into(struct house *h, struct tarn_table *table, const char *folder, int count)
{
    for (int i = 0; i < count; i++) {
        struct tarn_manifest_entry e =
            made_up(h, tarn_arena_printf(h->t->arena, "f%d", h->file_count), 0);
        expect_ok(tarn_store_put(
            h->store, h->t->op,
            tarn_arena_printf(h->t->arena, "db.db/%s/bucket-0/f%d", folder, h->file_count),
            S("x")));
        struct tarn_commit commit = {.user = S("u"),
                                     .identifier = h->file_count++,
                                     .watermark = TARN_SNAPSHOT_NONE,
                                     .append.entries = &e,
                                     .append.count = 1};
        struct tarn_commit_result result;
        expect_ok(tarn_table_commit(h->t->op, table, &commit, &result));
    }
    tarn_maintain_notice(h->maintain, table);
}

static struct tarn_job_info explained(struct house *h, int64_t id)
{
    struct tarn_job_info *jobs;
    size_t count;
    expect_ok(tarn_maintain_jobs(h->t->op, h->maintain, NULL, true, true, &jobs, &count));
    for (size_t i = 0; i < count; i++)
        if (jobs[i].id == id)
            return jobs[i];
    expect_unreachable("no job %" PRId64, id);
    return (struct tarn_job_info){0};
}

#define NEVER 3600000

static void quiet_house(struct house *h, struct tarn_test *t, struct tarn_maintain_options options)
{
    options.automatic = true;
    options.check_interval_ms = NEVER; /* tests check themselves */
    options.lease_ms = 60000;
    options.freshness_ms = 10000;
    house_init_with(h, t, options);
}

/* The score, and which files, made again from what is told. */
static void expect_recomputable(struct house *h, const struct tarn_job_info *job)
{
    const struct tarn_decision *d = job->decision;
    struct tarn_score score;
    expect_not_null(d);
    tarn_score(&d->inputs, &score);
    expect_double(score.total, d->score.total);
    expect_double(job->priority, d->score.total);
    for (size_t i = 0; i < d->alternative_count; i++) {
        tarn_score(&d->alternatives[i].inputs, &score);
        expect_double(score.total, d->alternatives[i].score);
        expect_true(score.total <= d->score.total);
    }
    const struct tarn_explained_pick *p = d->pick;
    expect_not_null(p);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *shown = NULL;
    expect_ok(tarn_table_look(h->t->op, h->table, &shown));
    struct tarn_options options = shown->options;
    struct tarn_bucket_files b = {.partition = tarn_row_empty(), .file_count = p->run_count};
    struct tarn_pick pick;
    b.files = tarn_arena_calloc(h->t->arena, p->run_count + 1, sizeof *b.files);
    for (size_t i = 0; i < p->run_count; i++)
        b.files[i].file = (struct tarn_data_file){.name = S(""),
                                                  .level = p->runs[i].level,
                                                  .size = p->runs[i].size,
                                                  .creation_time_ms = p->runs[i].created_ms,
                                                  .max_sequence = (int64_t)(p->run_count - i)};
    options.run_trigger = p->run_trigger;
    options.level_count = p->level_count;
    expect_true(tarn_pick_compaction(&shown->schema, &options, &b, p->full, p->local_ms,
                                     h->t->arena, &pick));
    expect_str(pick.why, job->why);
    expect_int(pick.file_count, job->file_count);
    expect_int(pick.output_level, job->output_level);
}

TARN_TEST(order, what_hurts_readers_most_comes_first_and_is_explained)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    struct tarn_table *other = make_table(&h, "worse");
    load_into(&h, h.table, "t", 5);
    load_into(&h, other, "worse", 9);
    look_at_all(h.maintain);
    struct tarn_task first = take(&h, h.worker, 0), second = take(&h, h.worker, 0);
    expect_int(first.file_count, 9);
    expect_int(second.file_count, 5);
    struct tarn_job_info job = explained(&h, first.id);
    expect_int(job.decision->queued_count, 2);
    expect_int(job.decision->alternative_count, 1);
    expect_int(job.decision->alternatives[0].job_id, second.id);
    expect_int(job.decision->inputs.runs, 9);
    expect_recomputable(&h, &job);
    job = explained(&h, second.id);
    expect_int(job.decision->alternative_count, 0);
    expect_recomputable(&h, &job);
    tarn_table_unref(other);
}

TARN_TEST(order, a_table_that_took_much_waits_for_one_that_took_nothing)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    struct tarn_table *other = make_table(&h, "other");
    load_into(&h, h.table, "t", 6);
    look_at_all(h.maintain);
    struct tarn_task task = take(&h, h.worker, 0);
    int64_t snapshot;
    expect_ok(report(&h, h.worker, &task, &snapshot));
    load_into(&h, h.table, "t", 5); /* one run more than the other: its output */
    load_into(&h, other, "other", 5);
    look_at_all(h.maintain);
    task = take(&h, h.worker, 0);
    expect_str(explained(&h, task.id).table, "db.other");
    expect_double(explained(&h, task.id).decision->inputs.table_share, 0);
    task = take(&h, h.worker, 0);
    expect_str(explained(&h, task.id).table, "db.t");
    expect_true(explained(&h, task.id).decision->inputs.table_share > 0.4);
    tarn_table_unref(other);
}

TARN_TEST(order, a_table_with_work_all_the_time_keeps_no_other_waiting)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    struct tarn_table *tables[] = {h.table, make_table(&h, "t1"), make_table(&h, "t2")};
    for (size_t i = 0; i < TARN_COUNT_OF(tables); i++)
        load_into(&h, tables[i], tarn_arena_printf(t->arena, "t%zu", i), 5);
    for (size_t i = 0; i < TARN_COUNT_OF(tables); i++) { /* a tick has time for one */
        expect_true(tarn_maintain__check(h.maintain, 0));
        struct tarn_job_info *jobs;
        size_t count;
        expect_ok(tarn_maintain_jobs(t->op, h.maintain, NULL, false, false, &jobs, &count));
        expect_int(count, i + 1);
        for (size_t j = 0; j <= i; j++)
            tarn_maintain_notice(h.maintain, tables[j]);
    }
    tarn_table_unref(tables[1]);
    tarn_table_unref(tables[2]);
}

TARN_TEST(order, pictures_go_with_the_database)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    struct tarn_database_info info = {.name = S("stays")};
    struct tarn_table *other;
    int64_t dropped;
    expect_ok(tarn_database_create(t->op, h.catalog, &info, false));
    struct tarn_schema draft = {.version = 3};
    expect_ok(tarn_columns_parse(S("id BIGINT"), t->arena, &draft.fields, &draft.field_count));
    expect_ok(tarn_catalog_create_table(t->op, h.catalog, info.name, S("t"), &draft, &other));
    load_into(&h, h.table, "t", 1);
    tarn_maintain_notice(h.maintain, other);
    look_at_all(h.maintain);
    expect_int(tarn_map_count(h.maintain->followed), 2);
    tarn_maintain__sweep_followed(h.maintain);
    expect_int(h.maintain->picture_count, 1);
    expect_ok(tarn_database_drop(t->op, h.catalog, S("db"), true, &dropped));
    tarn_maintain__sweep_followed(h.maintain);
    expect_int(h.maintain->picture_count, 0);
    expect_null(tarn_maintain__followed(h.maintain, h.table));
    expect_true(tarn_maintain__followed(h.maintain, other) != NULL);
    tarn_table_unref(other);
}

TARN_TEST(order, buckets_that_a_tick_has_no_time_for_are_looked_at_by_the_next)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    load_into(&h, h.table, "t", 5);
    look_at_all(h.maintain);
    for (int bucket = 0; bucket < 4; bucket++)
        tarn_table_touch(h.table, tarn_row_empty(), bucket);
    tarn_maintain_notice(h.maintain, h.table);
    for (size_t left = 4; left-- > 0;) {
        expect_true(tarn_maintain__check(h.maintain, 0));
        expect_int(tarn_map_count(tarn_maintain__followed(h.maintain, h.table)->changed), left);
    }
    expect_false(tarn_maintain__check(h.maintain, 0));
}

TARN_TEST(
    order,
    commits_are_followed_without_reading) /* what the index is asked for is counted by its removal */
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    load_into(&h, h.table, "t", 1);
    look_at_all(h.maintain); /* the first look reads */
    load_into(&h, h.table, "t", 3);
    look_at_all(h.maintain);
    expect_int(take(&h, h.worker, 0).id, 0);
    load_into(&h, h.table, "t", 1);
    pthread_mutex_lock(&h.maintain->pictures_lock);
    struct followed *f = tarn_maintain__absorb(t->op, h.maintain, h.table);
    struct pictured *p = tarn_maintain__pictured(f, tarn_row_empty(), 0);
    expect_true(p->known); /* by what the commits said */
    expect_int(p->picture.run_count, 5);
    pthread_mutex_unlock(&h.maintain->pictures_lock);
    look_at_all(h.maintain);
    expect_int(take(&h, h.worker, 0).file_count, 5);
}

TARN_TEST(budget, holds_back_what_is_too_much_and_says_so)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){.table_bytes_per_second = 1});
    load_into(&h, h.table, "t", 5);
    look_at_all(h.maintain);
    struct tarn_task task = take(&h, h.worker, 0); /* 500 bytes, of 10: the bucket was full */
    int64_t snapshot;
    expect_ok(report(&h, h.worker, &task, &snapshot));
    expect_int(explained(&h, task.id).decision->bytes_of_table.tokens, 10);
    load_into(&h, h.table, "t", 5);
    look_at_all(h.maintain);
    expect_int(take(&h, h.worker, 0).id, 0);
    struct tarn_job_info job = explained(&h, task.id + 1);
    expect_str(job.state, "queued");
    expect_str(job.decision->held_by, "compaction.table_bytes_per_second");
    expect_true(job.decision->bytes_of_table.tokens < -480);
    struct tarn_table *other = make_table(&h, "other"); /* nobody else is held back */
    load_into(&h, other, "other", 5);
    look_at_all(h.maintain);
    expect_int(take(&h, h.worker, 0).file_count, 5);
    tarn_table_unref(other);
}

TARN_TEST(budget, cpu_of_a_table_is_paid_off_before_its_next_task)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){.table_cpu_percent = 1});
    struct tarn_table *other = make_table(&h, "other");
    load_into(&h, h.table, "t", 5);
    look_at_all(h.maintain);
    struct tarn_task task = take(&h, h.worker, 0);
    struct tarn_report costly = {.lease = {task.id, task.token}, .cpu_ns = 1000000000};
    int64_t snapshot; /* ten seconds' worth is a tenth of that */
    expect_ok(tarn_maintain_report(t->op, h.maintain, h.worker, &costly, &snapshot));
    load_into(&h, h.table, "t", 1);
    load_into(&h, other, "other", 5);
    look_at_all(h.maintain);
    struct tarn_task next = take(&h, h.worker, 0);
    expect_str(explained(&h, next.id).table, "db.other");
    expect_int(take(&h, h.worker, 0).id, 0);
    struct tarn_job_info job = explained(&h, next.id == task.id + 1 ? task.id + 2 : task.id + 1);
    expect_str(job.decision->held_by, "compaction.table_cpu_percent");
    expect_true(job.decision->cpu_of_table.tokens < -800000000);
    expect_int(job.decision->cpu_of_database.rate, 0);
    tarn_table_unref(other);
}

TARN_TEST(budget, memory_of_a_database_bounds_its_tasks_alone)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){.database_memory_max_bytes = 100});
    struct tarn_worker_info info = {.name = "big",
                                    .address = "127.0.0.1:7",
                                    .version = "1",
                                    .slots = 2,
                                    .memory_max_bytes = 120}; /* 60 a task */
    const char *id;
    expect_ok(tarn_maintain_register(t->op, h.maintain, &info, &id));
    struct tarn_table *second = make_table(&h, "second");
    load_into(&h, h.table, "t", 5);
    load_into(&h, second, "second", 5);
    look_at_all(h.maintain);
    struct tarn_task task = take(&h, id, 0);
    expect_true(task.id != 0);
    expect_int(take(&h, id, 0).id, 0);
    struct tarn_job_info job = explained(&h, 3 - task.id);
    expect_int(job.decision->database_memory_bytes, 60);
    struct tarn_report done = {.lease = {task.id, task.token}};
    int64_t snapshot;
    expect_ok(tarn_maintain_report(t->op, h.maintain, id, &done, &snapshot));
    expect_int(take(&h, id, 0).id, 3 - task.id);
    tarn_table_unref(second);
}

TARN_TEST(budget, bounds_what_runs_at_the_same_time)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){.database_tasks = 1});
    struct tarn_table *other = make_table(&h, "other");
    load_into(&h, h.table, "t", 5);
    load_into(&h, other, "other", 5);
    look_at_all(h.maintain);
    struct tarn_task task = take(&h, h.worker, 0);
    expect_int(task.file_count, 5);
    expect_int(take(&h, h.worker, 0).id, 0);
    expect_ok(report_failure(&h, &task));
    expect_int(take(&h, h.worker, 0).file_count, 5); /* the other one: the first backs off */
    tarn_table_unref(other);
}

TARN_TEST(window, puts_off_all_but_what_somebody_waits_for)
{
    TARN_OWN(house_fini) struct house h;
    int minute = (int)(tarn_maintain__local_ms() / 60000 % 1440);
    quiet_house(
        &h, t,
        (struct tarn_maintain_options){.window = {(minute + 120) % 1440, (minute + 180) % 1440}});
    load_into(&h, h.table, "t", 5);
    look_at_all(h.maintain);
    expect_int(take(&h, h.worker, 0).id, 0);
    expect_str(explained(&h, 1).decision->held_by, "compaction.window");
    load_into(&h, h.table, "t", 4); /* past the stop trigger */
    look_at_all(h.maintain);
    expect_int(take(&h, h.worker, 0).file_count, 9);
}

static enum tarn_backlog_advice advice(struct house *h)
{
    struct tarn_manifest_entry at = {.partition = tarn_row_empty()};
    struct tarn_backlog backlog, of_table;
    tarn_maintain_backlog(h->t->op, h->maintain, h->table, &at, 1, &backlog);
    tarn_maintain_table_backlog(h->t->op, h->maintain, h->table, &of_table);
    expect_int(backlog.advice, of_table.advice);
    expect_int(backlog.runs, of_table.runs);
    return backlog.advice;
}

TARN_TEST(backlog, tells_writers_to_slow_down_and_to_wait)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    load_into(&h, h.table, "t", 1);
    expect_int(advice(&h), TARN_BACKLOG_NONE); /* nothing is known yet */
    look_at_all(h.maintain);
    load_into(&h, h.table, "t", 4);
    expect_int(advice(&h), TARN_BACKLOG_NONE);
    load_into(&h, h.table, "t", 1);
    expect_int(advice(&h), TARN_BACKLOG_BEHIND); /* 6 of 5 */
    load_into(&h, h.table, "t", 2);
    expect_int(advice(&h), TARN_BACKLOG_BEHIND);
    load_into(&h, h.table, "t", 1);
    expect_int(advice(&h), TARN_BACKLOG_WAIT); /* 9, the stop trigger is 8 */
    look_at_all(h.maintain);
    struct tarn_task task = take(&h, h.worker, 0);
    expect_int(advice(&h), TARN_BACKLOG_WAIT); /* it runs */
    int64_t snapshot;
    expect_ok(report(&h, h.worker, &task, &snapshot));
    expect_int(advice(&h), TARN_BACKLOG_NONE);
    load_into(&h, h.table, "t", 9);
    expect_int(advice(&h), TARN_BACKLOG_WAIT);
    h.maintain->options.undone_rest_ms = NEVER;
    tarn_maintain_undone(h.maintain, h.table, tarn_row_empty(), 0);
    expect_int(advice(&h),
               TARN_BACKLOG_BEHIND); /* nobody will compact it: who waits would wait for ever */
}

/* --- advice --- */

struct fed { /* a table and what was written into it */
    struct tarn_table *table;
    const char *name;
    int32_t total_buckets; /* 0: 1 */
    int64_t target;        /* 0: what a compaction writes is one file */
    double loaded, written, run_sum;
    int samples;
};

static struct tarn_manifest_entry sized(struct house *h, const struct fed *f, int32_t bucket,
                                        int level, int64_t size)
{
    struct tarn_manifest_entry e =
        made_up(h, tarn_arena_printf(h->t->arena, "a%d", h->file_count), level);
    expect_ok(tarn_store_put(
        h->store, h->t->op,
        tarn_arena_printf(h->t->arena, "db.db/%s/bucket-%d/a%d", f->name, bucket, h->file_count),
        S("x")));
    e.bucket = bucket;
    e.total_buckets = f->total_buckets == 0 ? 1 : f->total_buckets;
    e.file.size = size;
    if (f->target > 0) /* of an append table */
        e.file.min_key = e.file.max_key = tarn_row_empty();
    h->file_count++;
    return e;
}

static void feed_into(struct house *h, struct fed *f, int32_t bucket, int64_t size)
{
    struct tarn_manifest_entry e = sized(h, f, bucket, 0, size);
    struct tarn_commit commit = {.user = S("u"),
                                 .identifier = h->file_count,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .append.entries = &e,
                                 .append.count = 1};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(h->t->op, f->table, &commit, &result));
    f->loaded += (double)size;
    f->written += (double)size;
}

static void feed(struct house *h, struct fed *f, int64_t size)
{
    feed_into(h, f, 0, size);
}

/* As workers would, until there is nothing to do. */
static void compact_all(struct house *h, struct fed *f)
{
    for (;;) {
        tarn_maintain_notice(h->maintain, f->table);
        look_at_all(h->maintain);
        struct tarn_task task = take(h, h->worker, 0);
        if (task.id == 0)
            return;
        size_t n = task.file_count;
        int64_t size = 0, snapshot;
        struct tarn_manifest_entry *entries =
            tarn_arena_calloc(h->t->arena, 2 * n + 1, sizeof *entries);
        for (size_t i = 0; i < n; i++) {
            entries[i] = task.files[i];
            entries[i].kind = TARN_ENTRY_DELETE;
            size += task.files[i].file.size;
        }
        f->written += (double)size;
        for (; f->target > 0 && size > f->target; size -= f->target)
            entries[n++] = sized(h, f, task.bucket, task.output_level, f->target);
        entries[n] = sized(h, f, task.bucket, task.output_level, size);
        struct tarn_report r = {
            .lease = {task.id, task.token}, .entries = entries, .entry_count = n + 1};
        expect_ok(tarn_maintain_report(h->t->op, h->maintain, h->worker, &r, &snapshot));
    }
}

static void sample_of(struct house *h, struct fed *f, int32_t bucket)
{
    struct tarn_bucket_files *buckets;
    size_t count;
    expect_ok(tarn_table_buckets(h->t->op, f->table, tarn_slice_str(NULL), &buckets, &count));
    for (size_t i = 0; i < count; i++)
        if (buckets[i].bucket == bucket)
            f->run_sum += tarn_run_count(buckets[i].files, buckets[i].file_count);
    f->samples++;
}

static void sample(struct house *h, struct fed *f)
{
    sample_of(h, f, 0);
}

static void expect_within(double got, double want, double share)
{
    if (got < want * (1 - share) || got > want * (1 + share))
        expect_unreachable("%g is not within %g of %g", got, share, want);
}

TARN_TEST(advice, comes_true)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    struct fed now = {.table = h.table, .name = "t"};
    struct fed then = {.table =
                           make_table_with(&h, "advised", "num-sorted-run.compaction-trigger", "3"),
                       .name = "advised"};
    int64_t sizes[60];
    for (size_t i = 0; i < TARN_COUNT_OF(sizes); i++) {
        sizes[i] = tarn_test_random_between(t, 1000, 3000);
        feed(&h, &now, sizes[i]);
        compact_all(&h, &now);
        sample(&h, &now);
    }
    struct tarn_advice advice;
    expect_ok(tarn_maintain_advise(t->op, h.maintain, h.table, 0, &advice));
    expect_int(advice.now.bucket_count, 1);
    expect_int(advice.advised.bucket_count, 1); /* it is small */
    expect_int(advice.new_size, (int64_t)now.loaded);
    expect_double(advice.kept, 1);
    expect_within(advice.now.effect.write_amplification, now.written / now.loaded, 0.15);
    expect_within(advice.now.effect.read_fan_out, now.run_sum / now.samples, 0.15);
    expect_int(advice.advised.writer_parallelism % advice.advised.bucket_count, 0);
    /* Another table, with what a replay of the first says for that setting. */
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(t->op, then.table, &view));
    struct tarn_load loads[TARN_COUNT_OF(sizes)];
    for (size_t i = 0; i < TARN_COUNT_OF(sizes); i++) {
        loads[i] = (struct tarn_load){.size = sizes[i]};
        feed(&h, &then, sizes[i]);
        compact_all(&h, &then);
        sample(&h, &then);
    }
    struct tarn_load_history history = {.loads = loads,
                                        .load_count = TARN_COUNT_OF(loads),
                                        .start_sizes = (int64_t[]){0},
                                        .bucket_count = 1,
                                        .kept = 1};
    struct tarn_advise_effect effect;
    tarn_advise_replay(&view->schema, &view->options, &history, 1, &effect);
    expect_within(effect.write_amplification, then.written / then.loaded, 0.15);
    expect_within(effect.read_fan_out, then.run_sum / then.samples, 0.15);
    tarn_table_unref(then.table);
}

TARN_TEST(advice, comes_true_of_uneven_buckets)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    struct fed fed = {
        .table = make_table_with(&h, "u", "bucket", "3"), .name = "u", .total_buckets = 3};
    for (int i = 0; i < 90; i++) {
        /* the first gets most commits, the last few and small ones */
        int32_t bucket = i % 10 < 7 ? 0 : i % 10 < 9 ? 1 : 2;
        feed_into(&h, &fed, bucket, tarn_test_random_between(t, 1000, 3000) / (bucket + 1));
        compact_all(&h, &fed);
        sample_of(&h, &fed, bucket);
    }
    struct tarn_advice advice;
    expect_ok(tarn_maintain_advise(t->op, h.maintain, fed.table, 0, &advice));
    expect_within(advice.now.effect.write_amplification, fed.written / fed.loaded, 0.15);
    expect_within(advice.now.effect.read_fan_out, fed.run_sum / fed.samples, 0.15);
    expect_true(advice.largest_bucket_size > advice.largest_partition_size / 2);
    /* What the largest calls for, and not the mean. */
    int64_t aim = advice.largest_bucket_size / 2 + 1;
    expect_ok(tarn_maintain_advise(t->op, h.maintain, fed.table, aim, &advice));
    expect_int(advice.advised.bucket_count, 6);
    tarn_table_unref(fed.table);
}

TARN_TEST(advice, comes_true_of_append_tables)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    struct tarn_schema draft = {.version = 3};
    struct tarn_pair options[] = {{S("bucket"), S("-1")}, {S("target-file-size"), S("128 mb")}};
    struct fed fed = {.name = "ap", .total_buckets = -1, .target = (int64_t)128 << 20};
    expect_ok(tarn_columns_parse(S("id BIGINT"), t->arena, &draft.fields, &draft.field_count));
    draft.options = options;
    draft.option_count = TARN_COUNT_OF(options);
    expect_ok(tarn_catalog_create_table(t->op, h.catalog, S("db"), S("ap"), &draft, &fed.table));
    for (int i = 0; i < 60; i++) {
        feed(&h, &fed, (int64_t)tarn_test_random_between(t, 5, 40) << 20);
        compact_all(&h, &fed);
        sample(&h, &fed);
    }
    struct tarn_advice advice;
    expect_ok(tarn_maintain_advise(t->op, h.maintain, fed.table, 0, &advice));
    expect_true(fed.written > fed.loaded);
    expect_int(advice.now.bucket_count, -1);
    expect_int(advice.advised.bucket_count, -1);
    expect_within(advice.now.effect.write_amplification, fed.written / fed.loaded, 0.15);
    expect_within(advice.now.effect.read_fan_out, fed.run_sum / fed.samples, 0.15);
    expect_within(advice.now.effect.files, (double)advice.files, 0.15);
    expect_int(advice.cause_count, 0);
    tarn_table_unref(fed.table);
}

TARN_TEST(advice, a_bucket_that_is_too_large_is_divided)
{
    TARN_OWN(house_fini) struct house h;
    quiet_house(&h, t, (struct tarn_maintain_options){0});
    struct fed fed = {.table = h.table, .name = "t"};
    struct tarn_advice advice;
    expect_status(tarn_maintain_advise(t->op, h.maintain, h.table, 0, &advice),
                  TARN_INVALID_ARGUMENT, "loaded");
    for (int i = 0; i < 10; i++)
        feed(&h, &fed, (int64_t)1 << 29);
    expect_ok(tarn_maintain_advise(t->op, h.maintain, h.table, 0, &advice));
    expect_int(advice.runs_max, 10);
    expect_int(advice.largest_partition_size, (int64_t)10 << 29);
    expect_int(advice.advised.bucket_count, 5); /* of a GiB each */
    expect_int(advice.advised.writer_parallelism, advice.advised.bucket_count);
    expect_int(advice.cause_count, 2);
    expect_contains(advice.causes[0], "up to 10 sorted runs");
    expect_contains(advice.causes[0], "compaction is behind"); /* its worker did nothing */
    expect_contains(advice.causes[1], "tarn rescale --buckets 5");
    expect_ok(tarn_maintain_advise(t->op, h.maintain, h.table, (int64_t)1 << 29, &advice));
    expect_int(advice.advised.bucket_count, 10);
    expect_status(tarn_maintain_advise(t->op, h.maintain, h.table, -1, &advice),
                  TARN_INVALID_ARGUMENT, "-1");
}
