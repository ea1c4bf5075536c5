/*
 * schedule - what a tick of the scheduler costs.
 *
 *   schedule FOLDER TABLES [ROUNDS]
 *
 * So many tables (made in memory; FOLDER holds the index), each with a bucket that has 5 sorted runs and a task that waits. A tick in
 * which a commit touched every one of them: each picture takes the change in and is picked from anew, each task's score is made, the
 * best is chosen, and the lag of those that are waited for is measured. Prints one line "RESULT schedule key=value …" of CPU times, the least of
 * ROUNDS (5).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "maintain/internal.h"

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
static void tell(struct bench *b, struct followed *f, size_t table, int add, bool remove)
{
    tarn_maintain__look_later(b->maintain, f, tarn_row_empty(), 0);
    struct pictured *p = tarn_maintain__pictured(f, tarn_row_empty(), 0);
    struct tarn_file_change changes[8];
    size_t n = 0;
    if (remove) {
        changes[n] = p->picture.runs[0].file;
        changes[n++].added = false;
    }
    for (int i = 0; i < add; i++)
        changes[n++] = file_of(b, table);
    if (!tarn_picture_change(&p->picture, changes, n, tarn_clock_mono_ms()))
        abort();
}

static void begin(struct bench *b, size_t i)
{
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table_last_view(b->tables[i]);
    struct followed *f = tarn_maintain__absorb(&b->op, b->maintain, b->tables[i]);
    f->is_waited_for = i % 10 == 0;
    f->all = false;
    tarn_maintain__look_later(b->maintain, f, tarn_row_empty(), 0);
    struct pictured *p = tarn_maintain__pictured(f, tarn_row_empty(), 0);
    tarn_picture_init(&p->picture, &view->schema, &view->options);
    p->known = true;
    tell(b, f, i, 5, false);
}

/* One table of a tick: what check_bucket does with a picture that is known. */
static void follow(struct bench *b, size_t i)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    TARN_OWN(tarn_table_view_drop)
    const struct tarn_table_view *view = tarn_table_last_view(b->tables[i]);
    struct tarn_bucket_files files;
    struct tarn_pick pick;
    struct wish wish;
    int64_t local = tarn_maintain__local_ms();
    tarn_op_init(&op);
    struct pictured *p = tarn_maintain__pictured(tarn_maintain__followed(b->maintain, b->tables[i]),
                                                 tarn_row_empty(), 0);
    tarn_picture_as_bucket(&p->picture, tarn_row_empty(), 0, op.arena, &files);
    if (!tarn_pick_compaction(&view->schema, &view->options, &files, false, local, op.arena, &pick))
        abort();
    tarn_maintain__make_wish(b->maintain, view, &p->picture, &files, &pick, local, &wish);
    if (tarn_maintain__enqueue(b->maintain, b->tables[i], &view->schema, &wish) == 0)
        abort();
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
    for (size_t i = 0; i < b.count; i++) {
        begin(&b, i);
        follow(&b, i);
    }
    double best[3] = {1e9, 1e9, 1e9};
    for (int round = 0; round < rounds; round++) {
        struct choice choice;
        double at[4] = {cpu_ms()};
        for (size_t i = 0; i < b.count; i++) {
            tell(&b, tarn_maintain__followed(b.maintain, b.tables[i]), i, 1, true);
            follow(&b, i);
        }
        at[1] = cpu_ms();
        if (tarn_maintain__choose(b.maintain, NULL, &choice) == NULL ||
            choice.queued_count != b.count)
            abort();
        at[2] = cpu_ms();
        tarn_maintain__measure_lag(b.maintain);
        at[3] = cpu_ms();
        for (int i = 0; i < 3; i++)
            best[i] = TARN_MIN(best[i], at[i + 1] - at[i]);
    }
    printf("RESULT schedule tables=%zu all_changed_ms=%.1f choice_ms=%.1f lag_ms=%.1f\n", b.count,
           best[0], best[1], best[2]);
    return 0; /* the process ends here; what it holds goes with it */
}
