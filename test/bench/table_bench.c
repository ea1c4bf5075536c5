/*
 * table_bench - what room `table` alone costs a commit: no network, no service, made-up file entries.
 *
 *   table_bench FOLDER THREADS COMMITS [streams=N] [delay_ms=N] [fill=N] [buckets=N]
 *
 * THREADS callers commit one file COMMITS times each, in FOLDER (made; its disk is what is measured), as batches; with
 * streams, so many of them under rising identifiers. delay_ms: a remote store that takes so long for each put. fill: so
 * many files are in the table before. Prints one line "RESULT table key=value …".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "table/table.h"

#define FILL_COMMIT_FILES 10000

static const char schema_json[] =
    "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"},"
    "{\"id\":1,\"name\":\"v\",\"type\":\"STRING\"}],\"highestFieldId\":1,\"partitionKeys\":[],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"%d\"},\"timeMillis\":1}";

struct bench {
    struct tarn_table *table;
    int thread_count, commit_count, stream_count, bucket_count;
    int64_t fill;
};
struct caller {
    struct bench *bench;
    int number;
    double *latencies_ms;
    int64_t last_snapshot;
    pthread_t thread;
};

static void check(struct tarn_status *s, const char *what)
{
    if (s == TARN_OK)
        return;
    fprintf(stderr, "table_bench: %s: %s\n", what, tarn_status_message(s));
    exit(1);
}

static double now_ms(void)
{
    return (double)tarn_clock_mono_ns() / 1e6;
}

static struct tarn_slice key_row(struct tarn_arena *arena, int64_t id)
{
    static const struct tarn_type type = {.id = TARN_TYPE_BIGINT};
    const struct tarn_type *types[] = {&type};
    struct tarn_value value = {.integer = id};
    struct tarn_buf row = {0};
    tarn_row_serialize(types, &value, 1, &row);
    struct tarn_slice kept = tarn_arena_copy(arena, tarn_buf_slice(&row));
    tarn_buf_drop(&row);
    return kept;
}

static struct tarn_manifest_entry make_entry(struct tarn_arena *arena, const struct bench *b,
                                             int64_t number, int bucket, int64_t low, int level)
{
    char uuid[TARN_UUID_SIZE];
    int64_t *nulls = tarn_arena_calloc(arena, 1, sizeof *nulls);
    tarn_uuid_random(uuid);
    struct tarn_manifest_entry e = {
        .partition = tarn_row_empty(), .bucket = bucket, .total_buckets = b->bucket_count};
    e.file = (struct tarn_data_file){.name = tarn_slice_str(tarn_arena_printf(
                                         arena, "data-%s-%" PRId64 ".parquet", uuid, number)),
                                     .size = 100000000,
                                     .row_count = 1000,
                                     .min_key = key_row(arena, low),
                                     .max_key = key_row(arena, low + 999),
                                     .value_stats = tarn_stats_empty(),
                                     .min_sequence = number * 1000,
                                     .max_sequence = number * 1000 + 999,
                                     .level = level,
                                     .creation_time_ms = 1,
                                     .source = TARN_SOURCE_APPEND,
                                     .has_value_stats_columns = true,
                                     .first_row_id = TARN_FILE_NONE};
    e.file.key_stats = (struct tarn_stats){e.file.min_key, e.file.max_key, nulls, 1};
    return e;
}

static int64_t commit(const struct bench *b, const char *user, int64_t identifier,
                      const struct tarn_manifest_entry *entries, size_t count)
{
    struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_commit c = {.user = tarn_slice_str(user),
                            .identifier = identifier,
                            .watermark = TARN_SNAPSHOT_NONE,
                            .base_snapshot_id = TARN_SNAPSHOT_NONE,
                            .append = {.entries = entries, .count = count}};
    struct tarn_commit_result result;
    check(tarn_table_commit(&op, b->table, &c, &result), "commit");
    tarn_op_fini(&op);
    return result.append_snapshot_id;
}

static void fill(const struct bench *b)
{
    for (int64_t done = 0; done < b->fill;) {
        struct tarn_arena *arena = tarn_arena_new();
        struct tarn_manifest_entry *entries =
            tarn_arena_calloc(arena, FILL_COMMIT_FILES, sizeof *entries);
        size_t n = 0;
        for (; n < FILL_COMMIT_FILES && done < b->fill; n++, done++)
            entries[n] = make_entry(arena, b, done, (int)(done % b->bucket_count),
                                    done / b->bucket_count * 1000, done % 20 == 19 ? 0 : 5);
        commit(b, "fill", TARN_COMMIT_IDENTIFIER_BATCH, entries, n);
        tarn_arena_free(arena);
    }
}

static void *run_caller(void *arg)
{
    struct caller *c = arg;
    const struct bench *b = c->bench;
    char user[32];
    bool streams = c->number < b->stream_count;
    snprintf(user, sizeof user, "%s-%d", streams ? "stream" : "batch", c->number);
    for (int i = 0; i < b->commit_count; i++) {
        struct tarn_arena *arena = tarn_arena_new();
        int64_t number = b->fill + (int64_t)c->number * b->commit_count + i;
        struct tarn_manifest_entry e =
            make_entry(arena, b, number, c->number % b->bucket_count, 1, 0);
        double begun = now_ms();
        c->last_snapshot = commit(b, user, streams ? i : TARN_COMMIT_IDENTIFIER_BATCH, &e, 1);
        c->latencies_ms[i] = now_ms() - begun;
        tarn_arena_free(arena);
    }
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(struct bench *b)
{
    size_t count = (size_t)b->thread_count * (size_t)b->commit_count;
    struct caller *all = calloc((size_t)b->thread_count, sizeof *all);
    double *latencies = calloc(count + 1, sizeof *latencies);
    int64_t last = 0, cpu = tarn_clock_cpu_ns();
    double begun = now_ms();
    for (int i = 0; i < b->thread_count; i++) {
        all[i] = (struct caller){.bench = b,
                                 .number = i,
                                 .latencies_ms = latencies + (size_t)i * (size_t)b->commit_count};
        if (pthread_create(&all[i].thread, NULL, run_caller, &all[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < b->thread_count; i++) {
        pthread_join(all[i].thread, NULL);
        last = TARN_MAX(last, all[i].last_snapshot);
    }
    double wall_s = (now_ms() - begun) / 1e3;
    double streaming = 0;
    for (int i = 0; i < b->stream_count; i++)
        for (int k = 0; k < b->commit_count; k++)
            streaming = TARN_MAX(streaming, all[i].latencies_ms[k]);
    double cpu_us = (double)(tarn_clock_cpu_ns() - cpu) / 1e3 / (double)count;
    qsort(latencies, count, sizeof *latencies, by_size);
    printf("RESULT table threads=%d streams=%d fill=%" PRId64 " ok=%zu wall_s=%.3f"
           " commits_per_s=%.1f p50_ms=%.2f p99_ms=%.2f max_ms=%.2f stream_max_ms=%.2f"
           " cpu_us=%.0f last_snapshot=%" PRId64 "\n",
           b->thread_count, b->stream_count, b->fill, count, wall_s, (double)count / wall_s,
           latencies[count / 2], latencies[count * 99 / 100], latencies[count - 1], streaming,
           cpu_us, last);
    free(latencies);
    free(all);
}

static int64_t option(int argc, char **argv, const char *name, int64_t usual)
{
    size_t n = strlen(name);
    for (int i = 4; i < argc; i++)
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            return strtoll(argv[i] + n + 1, NULL, 10);
    return usual;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: table_bench FOLDER THREADS COMMITS [streams=N] [delay_ms=N] [fill=N] "
              "[buckets=N]\n",
              stderr);
        return 2;
    }
    struct bench b = {.thread_count = atoi(argv[2]), .commit_count = atoi(argv[3])};
    int64_t delay_ms = option(argc, argv, "delay_ms", 0);
    b.stream_count = (int)option(argc, argv, "streams", 0);
    b.bucket_count = (int)option(argc, argv, "buckets", 16);
    b.fill = option(argc, argv, "fill", 0);
    mkdir(argv[1], 0755);
    tarn_log_set_level(TARN_WARN);

    struct tarn_arena *arena = tarn_arena_new();
    struct tarn_exec *exec = tarn_exec_new(2, 512);
    struct tarn_store *inner, *store;
    struct tarn_state *state;
    struct tarn_op op;
    bool fresh;
    tarn_op_init(&op);
    check(tarn_store_open(tarn_arena_printf(arena, "file://%s/warehouse", argv[1]), &inner),
          "store");
    store = tarn_store_ref(inner);
    if (delay_ms > 0) {
        tarn_store_unref(store);
        store = tarn_store_faulty_new(inner);
        tarn_store_faulty_set_remote(store, true);
        struct tarn_fault_rule rule = {
            .call = "puts", .fault = TARN_FAULT_DELAY, .delay_ms = delay_ms};
        tarn_store_faulty_add(store, &rule);
    }
    check(tarn_state_open(tarn_arena_printf(arena, "%s/state", argv[1]), &fresh, &state), "state");
    check(tarn_store_put(store, &op, "db.db/t/schema/schema-0",
                         tarn_slice_str(tarn_arena_printf(arena, schema_json, b.bucket_count))),
          "schema");
    struct tarn_table_env env = {.store = store,
                                 .state = state,
                                 .exec = exec,
                                 .foreign_check_ms = 1000,
                                 .receipts_retain_ms = INT64_C(30) * 86400 * 1000,
                                 .commit_retries = 10};
    check(tarn_table_open(&op, &env, "db.db/t", "11111111-2222-3333-4444-555555555555", "db.t",
                          &b.table),
          "table");
    fill(&b);
    run(&b);
    tarn_table_unref(b.table);
    tarn_state_close(state);
    tarn_store_unref(store);
    tarn_store_unref(inner);
    tarn_op_fini(&op);
    tarn_exec_free(exec);
    tarn_arena_free(arena);
    return 0;
}
