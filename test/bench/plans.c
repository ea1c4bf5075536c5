/*
 * plans - what plans cost, to the last byte decoded by a client.
 *
 *   plans gen  FOLDER FILES BUCKETS ROUNDS        FOLDER: of a table without snapshots; nothing else may use it
 *   plans plan SERVER DB.TABLE REPEATS [--where EXPR] [--stats] [--snapshot N]
 *
 * gen writes snapshots as another writer would: the first one's base list names FILES files in manifests of 50,000,
 * and each round's delta deletes them all and adds as many anew. Keys are as in `commits fill`: disjoint ranges in
 * each bucket, one file in twenty at level 0 (an append table: all in bucket 0, column `a` rising with time). Each
 * file has statistics of columns id, a, b, c, s1, s2. No data file exists. Prints one line "RESULT what key=value …".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/format.h"
#include "tarn/client.h"
#include "tarn/plan.h"
#include "tarn/v1/table.pb-c.h"

#define MANIFEST_ENTRIES 50000
#define STATS_COLUMNS 6

static void check(struct tarn_status *s, const char *what)
{
    if (s == TARN_OK)
        return;
    fprintf(stderr, "plans: %s: %s\n", what, tarn_status_message(s));
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* --- gen --- */

struct gen {
    const char *folder;
    struct tarn_arena *arena;
    struct tarn_schema schema;
    bool is_append;
    int64_t files;
    int buckets;
    const struct tarn_type *stats_types[STATS_COLUMNS];
    struct tarn_slice stats_names[STATS_COLUMNS];
};

static void write_file(const struct gen *g, const char *name, struct tarn_slice bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", g->folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes.data, 1, bytes.size, file) != bytes.size ||
        fclose(file) != 0) {
        fprintf(stderr, "plans: %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static void read_schema(struct gen *g)
{
    static const char *const names[STATS_COLUMNS] = {"id", "a", "b", "c", "s1", "s2"};
    char path[4096];
    static char bytes[1 << 20];
    snprintf(path, sizeof path, "%s/schema/schema-0", g->folder);
    FILE *file = fopen(path, "rb");
    size_t size = file == NULL ? 0 : fread(bytes, 1, sizeof bytes, file);
    if (file != NULL)
        fclose(file);
    check(tarn_schema_decode(tarn_slice_of(bytes, size), g->arena, &g->schema), path);
    g->is_append = tarn_schema_is_append(&g->schema);
    for (int i = 0; i < STATS_COLUMNS; i++) {
        int column = tarn_schema_find(&g->schema, tarn_slice_str(names[i]));
        if (column < 0) {
            fprintf(stderr, "plans: the table has no column %s\n", names[i]);
            exit(1);
        }
        g->stats_names[i] = tarn_slice_str(names[i]);
        g->stats_types[i] = g->schema.fields[column].type;
    }
}

static struct tarn_slice row_of(struct tarn_arena *arena, const struct tarn_type *const *types,
                                const struct tarn_value *values, size_t count)
{
    struct tarn_buf bytes = {0};
    tarn_row_serialize(types, values, count, &bytes);
    struct tarn_slice kept = tarn_arena_copy(arena, tarn_buf_slice(&bytes));
    tarn_buf_drop(&bytes);
    return kept;
}

static struct tarn_slice key_row(const struct gen *g, struct tarn_arena *arena, int64_t key)
{
    struct tarn_value value = {.integer = key};
    return row_of(arena, g->stats_types, &value, 1);
}

static struct tarn_slice stats_row(const struct gen *g, struct tarn_arena *arena, int64_t id,
                                   int64_t a, int64_t number)
{
    struct tarn_value values[STATS_COLUMNS] = {
        {.integer = id}, {.integer = a}, {.integer = number % 1000}, {.integer = number % 7}};
    values[4].bytes = tarn_slice_str(tarn_arena_printf(arena, "name-%" PRId64, number % 100000));
    values[5].bytes = tarn_slice_str(tarn_arena_printf(arena, "place-%" PRId64, number % 977));
    return row_of(arena, g->stats_types, values, STATS_COLUMNS);
}

static void make_entry(const struct gen *g, struct tarn_arena *arena, int64_t number, int round,
                       enum tarn_entry_kind kind, struct tarn_manifest_entry *out)
{
    static const int64_t no_nulls[STATS_COLUMNS];
    int bucket = g->is_append ? 0 : (int)(number % g->buckets);
    int64_t low = number / (g->is_append ? 1 : g->buckets) * 1000;
    *out = (struct tarn_manifest_entry){.kind = kind,
                                        .partition = tarn_row_empty(),
                                        .bucket = bucket,
                                        .total_buckets = g->is_append ? -1 : g->buckets};
    struct tarn_data_file *f = &out->file;
    *f = (struct tarn_data_file){
        .name = tarn_slice_str(tarn_arena_printf(
            arena, "data-8a1f2c5e-4b7d-4f3a-9c6e-%012" PRIx64 "-%d.parquet", number, round)),
        .size = 100000000,
        .row_count = 1000,
        .min_key = g->is_append ? tarn_row_empty() : key_row(g, arena, low),
        .max_key = g->is_append ? tarn_row_empty() : key_row(g, arena, low + 999),
        .key_stats = tarn_stats_empty(),
        .min_sequence = g->is_append ? 0 : number * 1000,
        .max_sequence = g->is_append ? 999 : number * 1000 + 999,
        .level = g->is_append || number % 20 == 19 ? 0 : 5,
        .creation_time_ms = INT64_C(1790000000000) + round * INT64_C(100000000) + number,
        .delete_row_count = 0,
        .source = TARN_SOURCE_APPEND,
        .has_value_stats_columns = true,
        .value_stats_columns = g->stats_names,
        .value_stats_column_count = STATS_COLUMNS,
        .first_row_id = TARN_FILE_NONE,
    };
    if (!g->is_append)
        f->key_stats = (struct tarn_stats){f->min_key, f->max_key, no_nulls, 1};
    f->value_stats = (struct tarn_stats){stats_row(g, arena, low, number, number),
                                         stats_row(g, arena, low + 999, number + 1, number + 1),
                                         no_nulls, STATS_COLUMNS};
}

/* One manifest of `count` entries from `first` on; its record for a list. */
static void put_manifest(const struct gen *g, int64_t first, int64_t count, int round,
                         enum tarn_entry_kind kind, struct tarn_manifest_file *out)
{
    const uint8_t sync[16] = {7};
    struct tarn_arena *arena = tarn_arena_new();
    struct tarn_buf bytes = {0};
    struct tarn_manifest_entry *entries =
        tarn_arena_calloc(arena, (size_t)count + 1, sizeof *entries);
    for (int64_t i = 0; i < count; i++)
        make_entry(g, arena, first + i, round, kind, &entries[i]);
    check(tarn_manifest_encode(entries, (size_t)count, tarn_slice_str("zstd"), 1, sync, &bytes),
          "encode");
    check(tarn_manifest_summarize(entries, (size_t)count, NULL, 0, 0, g->arena, out), "summarize");
    const char *name = tarn_arena_printf(g->arena, "manifest-bench-%d-%d-%" PRId64, round,
                                         (int)kind, first / MANIFEST_ENTRIES);
    write_file(g, tarn_arena_printf(g->arena, "manifest/%s", name), tarn_buf_slice(&bytes));
    out->name = tarn_slice_str(name);
    out->size = (int64_t)bytes.size;
    tarn_buf_drop(&bytes);
    tarn_arena_free(arena);
}

static size_t put_manifests(const struct gen *g, int round, enum tarn_entry_kind kind,
                            struct tarn_manifest_file *out)
{
    size_t n = 0;
    for (int64_t first = 0; first < g->files; first += MANIFEST_ENTRIES)
        put_manifest(g, first, TARN_MIN(g->files - first, (int64_t)MANIFEST_ENTRIES), round, kind,
                     &out[n++]);
    return n;
}

static struct tarn_slice put_list(const struct gen *g, const struct tarn_manifest_file *files,
                                  size_t count, int round, int which, int64_t *size)
{
    const uint8_t sync[16] = {9};
    struct tarn_buf bytes = {0};
    const char *name = tarn_arena_printf(g->arena, "manifest-list-bench-%d-%d", round, which);
    check(tarn_manifest_list_encode(files, count, tarn_slice_str("zstd"), 1, sync, &bytes), "list");
    write_file(g, tarn_arena_printf(g->arena, "manifest/%s", name), tarn_buf_slice(&bytes));
    *size = (int64_t)bytes.size;
    tarn_buf_drop(&bytes);
    return tarn_slice_str(name);
}

static void run_gen(const char *folder, int64_t files, int buckets, int rounds)
{
    struct gen g = {
        .folder = folder, .arena = tarn_arena_new(), .files = files, .buckets = buckets};
    static const char *const folders[] = {"snapshot", "manifest"};
    double begun = now_ms();
    read_schema(&g);
    for (size_t i = 0; i < TARN_COUNT_OF(folders); i++)
        mkdir(tarn_arena_printf(g.arena, "%s/%s", folder, folders[i]), 0755);
    size_t manifests = (size_t)(files / MANIFEST_ENTRIES) + 2;
    struct tarn_manifest_file *base =
        tarn_arena_calloc(g.arena, manifests * (size_t)(2 * rounds + 2), sizeof *base);
    size_t base_count = 0, delta_count = 0;
    for (int round = 0; round <= rounds; round++) {
        struct tarn_manifest_file *delta = base + base_count;
        delta_count = 0;
        if (round > 0) {
            delta_count = put_manifests(&g, round - 1, TARN_ENTRY_DELETE, delta);
            delta_count += put_manifests(&g, round, TARN_ENTRY_ADD, delta + delta_count);
        } else {
            base_count = put_manifests(&g, 0, TARN_ENTRY_ADD, base);
        }
        struct tarn_snapshot s = {.version = 3,
                                  .id = round + 1,
                                  .commit_user = tarn_slice_str("bench"),
                                  .commit_identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                                  .kind = round == 0 ? TARN_COMMIT_APPEND : TARN_COMMIT_COMPACT,
                                  .time_ms = tarn_clock_wall_ms(),
                                  .total_record_count = files * 1000,
                                  .watermark = TARN_SNAPSHOT_NONE,
                                  .next_row_id = TARN_SNAPSHOT_NONE,
                                  .changelog_record_count = TARN_SNAPSHOT_NONE,
                                  .changelog_list_size = TARN_SNAPSHOT_NONE};
        s.base_list = put_list(&g, base, base_count, round, 0, &s.base_list_size);
        s.delta_list = put_list(&g, delta, delta_count, round, 1, &s.delta_list_size);
        struct tarn_buf json = {0};
        tarn_snapshot_encode(&s, &json);
        write_file(&g, tarn_arena_printf(g.arena, "snapshot/snapshot-%d", round + 1),
                   tarn_buf_slice(&json));
        tarn_buf_drop(&json);
        base_count += delta_count;
    }
    printf("RESULT gen files=%" PRId64 " rounds=%d wall_s=%.3f\n", files, rounds,
           (now_ms() - begun) / 1e3);
    tarn_arena_free(g.arena);
}

/* --- plan --- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_plan(const char *server, const char *database, const char *table, int repeats,
                     Tarn__V1__PlanRequest *request)
{
    struct tarn_client_options options = {.server = server};
    struct tarn_client *client;
    Tarn__V1__TableRef ref = TARN__V1__TABLE_REF__INIT;
    double *walls = calloc((size_t)repeats + 1, sizeof *walls), first = 0;
    int64_t splits = 0, files = 0, rows = 0;
    check(tarn_client_open(&options, &client), server);
    ref.database = (ProtobufCBinaryData){strlen(database), (uint8_t *)(uintptr_t)database};
    ref.table = (ProtobufCBinaryData){strlen(table), (uint8_t *)(uintptr_t)table};
    request->table = &ref;
    for (int i = 0; i < repeats; i++) {
        struct tarn_client_plan *plan;
        const struct tarn_client_split *part;
        size_t count;
        struct tarn_op op;
        double begun = now_ms();
        splits = files = rows = 0;
        tarn_op_init(&op);
        check(tarn_client_plan_begin(client, &op, request, &plan), "plan");
        do {
            check(tarn_client_plan_next(plan, &part, &count), "plan");
            splits += (int64_t)count;
            for (size_t s = 0; s < count; s++) {
                files += (int64_t)part[s].file_count;
                for (size_t f = 0; f < part[s].file_count; f++)
                    rows += part[s].files[f].row_count;
            }
        } while (count > 0);
        tarn_client_plan_free(plan);
        tarn_op_fini(&op);
        walls[i] = now_ms() - begun;
        first = i == 0 ? walls[0] : first;
    }
    qsort(walls, (size_t)repeats, sizeof *walls, by_size);
    printf("RESULT plan splits=%" PRId64 " files=%" PRId64 " rows=%" PRId64
           " first_ms=%.2f p50_ms=%.2f files_per_s=%.0f\n",
           splits, files, rows, first, walls[repeats / 2],
           (double)files / walls[repeats / 2] * 1e3);
    free(walls);
    tarn_client_close(client);
}

static int usage(void)
{
    fputs("usage: plans gen FOLDER FILES BUCKETS ROUNDS\n"
          "       plans plan SERVER DB.TABLE REPEATS [--where EXPR] [--stats] [--snapshot N]\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    Tarn__V1__PlanRequest request = TARN__V1__PLAN_REQUEST__INIT;
    Tarn__V1__Version version = TARN__V1__VERSION__INIT;
    char database[256], table[256];

    if (argc == 6 && strcmp(argv[1], "gen") == 0 && atol(argv[3]) > 0 && atoi(argv[4]) > 0 &&
        atoi(argv[5]) >= 0) {
        run_gen(argv[2], atol(argv[3]), atoi(argv[4]), atoi(argv[5]));
        return 0;
    }
    if (argc < 5 || strcmp(argv[1], "plan") != 0 || atoi(argv[4]) < 1 ||
        sscanf(argv[3], "%255[^.].%255s", database, table) != 2)
        return usage();
    for (int i = 5; i < argc; i++) {
        if (strcmp(argv[i], "--stats") == 0) {
            request.with_stats = true;
        } else if (strcmp(argv[i], "--where") == 0 && i + 1 < argc) {
            request.where = argv[++i];
        } else if (strcmp(argv[i], "--snapshot") == 0 && i + 1 < argc) {
            version.at_case = TARN__V1__VERSION__AT_SNAPSHOT_ID;
            version.snapshot_id = atol(argv[++i]);
            request.version = &version;
        } else {
            return usage();
        }
    }
    run_plan(argv[2], database, table, atoi(argv[4]), &request);
    return 0;
}
