/*
 * schedule - what a tick of the scheduler costs.
 *
 *   schedule FOLDER TABLES [ROUNDS]
 *
 * So many tables (made in memory; FOLDER holds the index), each with a bucket that has 5 sorted runs and a task that waits. A commit touches every
 * one of them: in as many ticks as it takes, each picture takes the change in and is picked from anew; then each task's score is made and the best is
 * chosen, and the lag of those that are waited for is measured. Prints one line "RESULT schedule key=value …" of CPU times, the least of ROUNDS (5).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "maintain/internal.h"
#include "table/pages_internal.h"

static void check(struct tarn_status *s)
{
    if (s == TARN_OK)
        return;
    fprintf(stderr, "%s\n", tarn_status_message(s));
    exit(1);
}

static double cpu_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

struct bench {
    struct tarn_op op;
    struct tarn_table_env env;
    struct tarn_maintain *maintain;
    struct tarn_table **tables;
    size_t count;
    int64_t made;
};

static struct tarn_file_change file_of(struct bench *b, size_t table)
{
    int64_t n = ++b->made;
    return (struct tarn_file_change){.added = true,
                                     .name_hash = (uint64_t)n * 0x9E3779B97F4A7C15u,
                                     .size = 1000 + (int64_t)(table * 7919 % 100000),
                                     .row_count = 100,
                                     .delete_row_count = (int64_t)(table % 50),
                                     .min_sequence = n * 10,
                                     .max_sequence = n * 10 + 9,
                                     .creation_time_ms = n};
}

static void make_tables(struct bench *b, struct tarn_catalog *catalog)
{
    struct tarn_schema draft = {.version = 3};
    struct tarn_slice key = tarn_slice_str("id");
    struct tarn_pair bucket = {tarn_slice_str("bucket"), tarn_slice_str("1")};
    check(tarn_columns_parse(tarn_slice_str("id BIGINT NOT NULL"), b->op.arena, &draft.fields,
                             &draft.field_count));
    draft.primary_keys = &key;
    draft.primary_key_count = 1;
    draft.options = &bucket;
    draft.option_count = 1;
    b->tables = tarn_calloc(b->count, sizeof *b->tables);
    for (size_t i = 0; i < b->count; i++) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        char database[32], name[32];
        tarn_op_init(&op);
        snprintf(database, sizeof database, "d%zu", i / 1000);
        snprintf(name, sizeof name, "t%zu", i);
        struct tarn_database_info info = {.name = tarn_slice_str(database)};
        if (i % 1000 == 0)
            check(tarn_database_create(&op, catalog, &info, false));
        check(tarn_catalog_create_table(&op, catalog, info.name, tarn_slice_str(name), &draft,
                                        &b->tables[i]));
    }
}

/* As a commit tells it: its file comes, one of before goes, so that there are always as many. */
static void tell(struct bench *b, size_t i, int add, const struct tarn_file_change *remove)
{
    struct tarn_table *table = b->tables[i];
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_key_add_bytes(&key, tarn_row_empty());
    tarn_key_add_i64(&key, 0);
    pthread_mutex_lock(&table->index_lock);
    int64_t stamp = ++table->pages->change_stamp;
    struct tarn_file_change gone = {0};
    if (remove != NULL) {
        gone = *remove;
        gone.added = false;
        gone.stamp = stamp;
        tarn_table__touch_bucket(table->pages, tarn_buf_slice(&key), &gone);
    }
    for (int n = 0; n < add; n++) {
        struct tarn_file_change come = file_of(b, i);
        come.stamp = stamp;
        tarn_table__touch_bucket(table->pages, tarn_buf_slice(&key), &come);
    }
    pthread_mutex_unlock(&table->index_lock);
    tarn_maintain_notice(b->maintain, table);
}

static struct pictured *picture_of(struct bench *b, size_t i)
{
    return tarn_maintain__pictured(tarn_maintain__followed(b->maintain, b->tables[i]),
                                   tarn_row_empty(), 0);
}

/* As after its first look, which isn't measured here: it reads the table. */
static void begin(struct bench *b, size_t i)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table_last_view(b->tables[i]);
    tarn_op_init(&op);
    struct followed *f = tarn_maintain__absorb(&op, b->maintain, b->tables[i]);
    f->all = false;
    f->schema_id = view->schema.id;
    tarn_maintain__look_later(b->maintain, f, tarn_row_empty(), 0);
    struct pictured *p = picture_of(b, i);
    tarn_picture_init(&p->picture, &view->schema, &view->options);
    p->known = true;
    tell(b, i, 5, NULL);
}

struct round {
    double all_ms, longest_ms; /* all that changed; the longest tick of those that it took */
    int ticks;
};
/* All that was told, tick by tick. */
static struct round look(struct bench *b)
{
    struct round r = {0};
    for (bool more = true; more; r.ticks++) {
        double begun = cpu_ms();
        more = tarn_maintain__check(b->maintain, TARN_TICK_MS);
        double took = cpu_ms() - begun;
        r.all_ms += took;
        r.longest_ms = TARN_MAX(r.longest_ms, took);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct bench b = {.count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0};
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    if (b.count == 0 || b.count > TARN_QUEUE_MAX) {
        fprintf(stderr, "usage: schedule FOLDER TABLES [ROUNDS]; at most %d tables\n",
                TARN_QUEUE_MAX);
        return 2;
    }
    tarn_op_init(&b.op);
    tarn_log_set_level(TARN_WARN);
    struct tarn_exec *exec = tarn_exec_new(2, 16);
    struct tarn_catalog *catalog;
    bool fresh;
    b.env = (struct tarn_table_env){.exec = exec, .commit_retries = 3, .foreign_check_ms = 3600000};
    check(tarn_store_open("memory:", &b.env.store));
    check(
        tarn_state_open(tarn_arena_printf(b.op.arena, "%s/state", argv[1]), &fresh, &b.env.state));
    check(tarn_catalog_open(&b.op, &b.env, "bench", "/data", &catalog));
    struct tarn_maintain_options options = {.catalog = catalog,
                                            .exec = exec,
                                            .automatic = true,
                                            .check_interval_ms = 3600000,
                                            .lease_ms = 60000,
                                            .freshness_ms = 10000};
    b.maintain = tarn_maintain_new(&options);
    make_tables(&b, catalog);
    for (size_t i = 0; i < b.count; i++)
        begin(&b, i);
    look(&b);
    struct round best = {.all_ms = 1e9};
    double choice_ms = 1e9, lag_ms = 1e9;
    for (int round = 0; round < rounds; round++) {
        struct choice choice;
        for (size_t i = 0; i < b.count; i++)
            tell(&b, i, 1, &picture_of(&b, i)->picture.runs[0].file);
        struct round r = look(&b);
        best = r.all_ms < best.all_ms ? r : best;
        for (size_t i = 0; i < b.count; i += 10)
            tarn_maintain__followed(b.maintain, b.tables[i])->is_waited_for = true;
        double at[3] = {cpu_ms()};
        if (tarn_maintain__choose(b.maintain, NULL, &choice) == NULL ||
            choice.queued_count != b.count)
            abort();
        at[1] = cpu_ms();
        tarn_maintain__measure_lag(b.maintain);
        at[2] = cpu_ms();
        choice_ms = TARN_MIN(choice_ms, at[1] - at[0]);
        lag_ms = TARN_MIN(lag_ms, at[2] - at[1]);
    }
    printf("RESULT schedule tables=%zu all_changed_ms=%.1f ticks=%d longest_tick_ms=%.1f "
           "choice_ms=%.1f lag_ms=%.1f\n",
           b.count, best.all_ms, best.ticks, best.longest_ms, choice_ms, lag_ms);
    return 0; /* the process ends here; what it holds goes with it */
}
