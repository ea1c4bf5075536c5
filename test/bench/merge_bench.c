/*
 * merge_bench - the row paths of rooms merge and columnar alone, one thread, no daemon: for profiling
 * and for the core rates that `make bench` prints.
 *
 *   merge_bench scan    TABLE_FOLDER [COLUMN,…]   merge-on-read, batches thrown away
 *   merge_bench arrow   TABLE_FOLDER [COLUMN,…]   the same, encoded as an Arrow stream
 *   merge_bench compact TABLE_FOLDER              all live files into level 5; the new ones are removed
 *   merge_bench load    TABLE_FOLDER FILE         a Parquet file upserted; the new files are removed
 *
 * Each prints one line "RESULT what key=value …": CPU seconds of the process from opening the table on, and
 * its peak memory. The folder is a table as it lies in a warehouse; nothing is committed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "merge/merge.h"

#define BUFFER_SIZE ((int64_t)128 << 20)

struct bench {
    struct tarn_op op;
    struct tarn_store *store;
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_merge_table table;
    struct tarn_manifest_entry *files;
    size_t file_count;
    int64_t rows, bytes, next_sequence;
};

static void check(struct tarn_status *s)
{
    if (s == TARN_OK)
        return;
    fprintf(stderr, "merge_bench: %s\n", tarn_status_message(s));
    exit(1);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int64_t peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

/* --- the table's newest snapshot --- */

static struct tarn_slice get(struct bench *b, const char *key)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    check(tarn_store_get(b->store, &b->op, key, &bytes));
    return tarn_arena_copy(b->op.arena, tarn_buf_slice(&bytes));
}

/* The largest N of objects `prefix`N in a folder. */
static int64_t newest(struct bench *b, const char *folder, const char *prefix)
{
    struct tarn_object *objects;
    size_t count;
    int64_t last = -1;

    check(tarn_store_list(b->store, &b->op, folder, false, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        const char *key = tarn_arena_str(b->op.arena, objects[i].key);
        const char *name = strrchr(key, '/') + 1;
        if (strncmp(name, prefix, strlen(prefix)) == 0)
            last = TARN_MAX(last, strtoll(name + strlen(prefix), NULL, 10));
    }
    return last;
}

static void apply(struct bench *b, const struct tarn_manifest_entry *entries, size_t count)
{
    struct tarn_manifest_entry *files =
        tarn_arena_calloc(b->op.arena, b->file_count + count + 1, sizeof *files);
    size_t n = 0;

    memcpy(files, b->files, b->file_count * sizeof *files);
    n = b->file_count;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind == TARN_ENTRY_ADD)
            files[n++] = entries[i];
        for (size_t j = 0; j < n && entries[i].kind == TARN_ENTRY_DELETE; j++) {
            if (tarn_slice_equal(files[j].file.name, entries[i].file.name)) {
                files[j] = files[--n];
                break;
            }
        }
    }
    b->files = files;
    b->file_count = n;
}

static void read_list(struct bench *b, struct tarn_slice list)
{
    struct tarn_manifest_file *manifests;
    size_t count;

    check(tarn_manifest_list_decode(get(b, tarn_arena_printf(b->op.arena, "%s/manifest/%.*s",
                                                             b->table.path, TARN_SLICE_ARG(list))),
                                    b->op.arena, &manifests, &count));
    for (size_t i = 0; i < count; i++) {
        struct tarn_manifest_entry *entries;
        size_t n;
        check(tarn_manifest_decode(
            get(b, tarn_arena_printf(b->op.arena, "%s/manifest/%.*s", b->table.path,
                                     TARN_SLICE_ARG(manifests[i].name))),
            b->op.arena, &entries, &n));
        apply(b, entries, n);
    }
}

static void open_table(struct bench *b, const char *folder)
{
    struct tarn_arena *arena;
    struct tarn_snapshot snapshot;
    char *full = realpath(folder, NULL);
    char *slash = full == NULL ? NULL : strrchr(full, '/');

    if (slash == NULL || slash == full) {
        fprintf(stderr, "merge_bench: %s is no folder of a table\n", folder);
        exit(1);
    }
    *slash = '\0';
    tarn_op_init(&b->op);
    arena = b->op.arena;
    check(tarn_store_open(tarn_arena_printf(arena, "file://%s", full), &b->store));
    b->table.path = tarn_arena_printf(arena, "%s", slash + 1);
    free(full);

    const char *schemas = tarn_arena_printf(arena, "%s/schema", b->table.path);
    const char *snapshots = tarn_arena_printf(arena, "%s/snapshot", b->table.path);
    check(tarn_schema_decode(get(b, tarn_arena_printf(arena, "%s/schema-%" PRId64, schemas,
                                                      newest(b, schemas, "schema-"))),
                             arena, &b->schema));
    check(tarn_options_parse(&b->schema, arena, &b->options));
    int64_t last = newest(b, snapshots, "snapshot-");
    if (last >= 0) {
        check(tarn_snapshot_decode(
            get(b, tarn_arena_printf(arena, "%s/snapshot-%" PRId64, snapshots, last)), arena,
            &snapshot));
        read_list(b, snapshot.base_list);
        read_list(b, snapshot.delta_list);
    }
    b->table.store = b->store;
    b->table.schema = &b->schema;
    b->table.options = &b->options;
    for (size_t i = 0; i < b->file_count; i++) {
        b->rows += b->files[i].file.row_count;
        b->bytes += b->files[i].file.size;
        b->next_sequence = TARN_MAX(b->next_sequence, b->files[i].file.max_sequence + 1);
    }
}

/* --- what is measured --- */

static struct tarn_status *count_bytes(void *arg, struct tarn_op *op, struct tarn_slice bytes)
{
    *(int64_t *)arg += (int64_t)bytes.size;
    return TARN_OK;
}

static size_t choose_columns(const struct bench *b, const char *names, int *columns)
{
    size_t n = 0;

    for (size_t i = 0; i < b->schema.field_count; i++) {
        struct tarn_slice name = b->schema.fields[i].name;
        bool chosen = names == NULL;
        for (const char *at = names; at != NULL && !chosen; at = strchr(at, ',')) {
            at += *at == ',';
            chosen = strcspn(at, ",") == name.size && memcmp(at, name.data, name.size) == 0;
        }
        if (chosen)
            columns[n++] = (int)i;
    }
    return n;
}

static void scan(struct bench *b, const char *names, bool arrow)
{
    int *columns = tarn_arena_calloc(b->op.arena, b->schema.field_count, sizeof *columns);
    struct tarn_field *fields =
        tarn_arena_calloc(b->op.arena, b->schema.field_count, sizeof *fields);
    struct tarn_scan_spec spec = {.columns = columns, .limit = -1, .scratch_dir = "/tmp"};
    struct tarn_merge_split split = {.partition = b->files[0].partition,
                                     .bucket = b->files[0].bucket,
                                     .files = b->files,
                                     .file_count = b->file_count};
    struct tarn_source *source;
    struct tarn_output *output = NULL;
    int64_t rows = 0, bytes = 0;

    spec.column_count = choose_columns(b, names, columns);
    for (size_t i = 0; i < spec.column_count; i++)
        fields[i] = b->schema.fields[columns[i]];
    if (arrow)
        check(tarn_output_open(&b->op, TARN_DATA_ARROW, fields, spec.column_count, count_bytes,
                               &bytes, &output));
    check(tarn_scan_open(&b->op, &b->table, &split, 1, &spec, &source));
    for (;;) {
        struct tarn_batch *batch;
        check(source->next(source, &b->op, &batch));
        if (batch == NULL)
            break;
        rows += batch->row_count;
        if (output != NULL)
            check(tarn_output_add(output, &b->op, batch));
        tarn_batch_unref(batch);
    }
    if (output != NULL) {
        check(tarn_output_finish(output, &b->op));
        tarn_output_close(output);
    }
    source->close(source);
    double cpu = cpu_seconds();
    printf("RESULT %s rows_stored=%" PRId64 " rows_out=%" PRId64 " bytes_out=%" PRId64
           " cpu_s=%.3f stored_rows_per_cpu_s=%.0f peak_rss_mib=%" PRId64 "\n",
           arrow ? "arrow" : "scan", b->rows, rows, bytes, cpu, (double)b->rows / cpu, peak_mib());
}

static void compact(struct bench *b)
{
    struct tarn_compact_spec spec = {.files = b->files,
                                     .file_count = b->file_count,
                                     .output_level = b->options.level_count - 1,
                                     .drop_delete = true,
                                     .scratch_dir = "/tmp"};
    struct tarn_compact_result result;

    check(tarn_compact_run(&b->op, &b->table, &spec, b->op.arena, &result));
    double cpu = cpu_seconds();
    printf("RESULT compact rows_in=%" PRId64 " rows_out=%" PRId64 " rows_copied=%" PRId64
           " mib_in=%.1f mib_out=%.1f cpu_s=%.3f"
           " rows_in_per_cpu_s=%.0f mib_in_per_cpu_s=%.1f peak_rss_mib=%" PRId64 "\n",
           result.rows_in, result.rows_out, result.rows_copied, (double)result.bytes_in / 1048576.0,
           (double)result.bytes_out / 1048576.0, cpu, (double)result.rows_in / cpu,
           (double)result.bytes_in / 1048576.0 / cpu, peak_mib());
    tarn_merge_remove_files(&b->op, &b->table, result.entries, result.entry_count);
}

static struct tarn_status *next_sequence(void *arg, struct tarn_op *op, struct tarn_slice partition,
                                         int32_t bucket, int64_t count, int64_t *first)
{
    struct bench *b = arg;
    *first = b->next_sequence;
    b->next_sequence += count;
    return TARN_OK;
}

static void load(struct bench *b, const char *path)
{
    struct tarn_input_options options = {.format = TARN_DATA_PARQUET,
                                         .name = path,
                                         .fields = b->schema.fields,
                                         .field_count = b->schema.field_count};
    struct tarn_write_spec spec = {.sequence = next_sequence,
                                   .sequence_arg = b,
                                   .buffer_size = BUFFER_SIZE,
                                   .scratch_dir = "/tmp"};
    struct tarn_input *input;
    struct tarn_table_writer *writer;
    struct tarn_manifest_entry *entries;
    size_t count;
    int64_t rows = 0, bytes = 0;

    check(tarn_input_open(&b->op, &options, path, NULL, NULL, &input));
    check(tarn_table_writer_open(&b->op, &b->table, &spec, &writer));
    for (;;) {
        struct tarn_batch *batch;
        check(tarn_input_next(input, &b->op, &batch));
        if (batch == NULL)
            break;
        rows += batch->row_count;
        check(tarn_table_writer_add(writer, &b->op, batch));
        tarn_batch_unref(batch);
    }
    check(tarn_table_writer_finish(writer, &b->op, b->op.arena, &entries, &count));
    tarn_table_writer_free(writer);
    tarn_input_close(input);
    double cpu = cpu_seconds();
    for (size_t i = 0; i < count; i++)
        bytes += entries[i].file.size;
    printf("RESULT load rows=%" PRId64 " files=%zu mib_out=%.1f cpu_s=%.3f rows_per_cpu_s=%.0f"
           " peak_rss_mib=%" PRId64 "\n",
           rows, count, (double)bytes / 1048576.0, cpu, (double)rows / cpu, peak_mib());
    tarn_merge_remove_files(&b->op, &b->table, entries, count);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    const char *what = argc > 1 ? argv[1] : "";
    const char *more = argc > 3 ? argv[3] : NULL;
    bool reads = strcmp(what, "scan") == 0 || strcmp(what, "arrow") == 0;

    if (argc < 3 ||
        !(reads || strcmp(what, "compact") == 0 || (strcmp(what, "load") == 0 && more != NULL))) {
        fputs("usage: merge_bench scan|arrow|compact|load TABLE_FOLDER [COLUMN,... | FILE]\n",
              stderr);
        return 2;
    }
    open_table(&b, argv[2]);
    if (b.file_count == 0 && strcmp(what, "load") != 0) {
        fprintf(stderr, "merge_bench: %s has no data files\n", argv[2]);
        return 1;
    }
    if (reads)
        scan(&b, more, strcmp(what, "arrow") == 0);
    else if (strcmp(what, "compact") == 0)
        compact(&b);
    else
        load(&b, more);
    tarn_store_unref(b.store);
    tarn_op_fini(&b.op);
    return 0;
}
