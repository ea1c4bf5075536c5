#include "service/internal.h"

#include <time.h>

/* What a version of a table consists of: splits, files, and sums over partitions and buckets. */

struct tarn_status *tarn_service_plan(struct tarn_op *op, struct tarn_service *service,
                                      struct tarn_table_ref ref, struct tarn_version version,
                                      struct tarn_slice where, struct tarn_plan *out,
                                      const char ***paths)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    struct tarn_plan_request request = {.version = version, .where = where, .with_stats = true};
    TARN_TRY(tarn_table_plan(op, table, &request, out));
    *paths = tarn_arena_calloc(op->arena, out->split_count + 1, sizeof **paths);
    for (size_t i = 0; i < out->split_count; i++)
        TARN_TRY(tarn_service__bucket_path(op, out->schema, out->options, out->splits[i].partition,
                                           out->splits[i].bucket, &(*paths)[i]));
    return TARN_OK;
}

/* --- files --- */

struct key_printer {
    const struct tarn_type **types;
    struct tarn_value *values;
    size_t count;
};

static struct key_printer key_printer(struct tarn_op *op, const struct tarn_schema *schema)
{
    int *columns;
    struct key_printer p = {.count = tarn_schema_trimmed_key_columns(schema, op->arena, &columns)};
    p.types = tarn_arena_calloc(op->arena, p.count + 1, sizeof *p.types);
    p.values = tarn_arena_calloc(op->arena, p.count + 1, sizeof *p.values);
    for (size_t i = 0; i < p.count; i++)
        p.types[i] = schema->fields[columns[i]].type;
    return p;
}

static const char *print_key(struct tarn_op *op, const struct key_printer *p, struct tarn_slice key)
{
    if (p->count == 0 || key.size == 0)
        return "";
    struct tarn_status *s = tarn_row_deserialize(key, p->types, p->count, p->values);
    if (s != TARN_OK) { /* as in partition_text */
        tarn_status_free(s);
        return "(damaged)";
    }
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < p->count; i++) {
        if (i > 0)
            tarn_buf_add_byte(&text, ',');
        tarn_value_print(p->types[i], &p->values[i], &text);
    }
    return tarn_arena_str(op->arena, tarn_buf_slice(&text));
}

static struct tarn_status *file_path(struct tarn_op *op, const struct tarn_plan *plan,
                                     const struct tarn_manifest_entry *entry, const char **out)
{
    if (entry->file.external_path.data != NULL) {
        *out = tarn_arena_str(op->arena, entry->file.external_path);
        return TARN_OK;
    }
    const char *folder;
    TARN_TRY(tarn_service__bucket_path(op, plan->schema, plan->options, entry->partition,
                                       entry->bucket, &folder));
    *out = tarn_arena_printf(op->arena, "%s/%.*s", folder, TARN_SLICE_ARG(entry->file.name));
    return TARN_OK;
}

static struct tarn_status *plan_files(struct tarn_op *op, struct tarn_service *service,
                                      struct tarn_table_ref ref, struct tarn_version version,
                                      struct tarn_slice where, bool with_stats,
                                      struct tarn_plan *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    struct tarn_plan_request request = {
        .version = version, .where = where, .with_stats = with_stats, .no_splits = true};
    return tarn_table_plan(op, table, &request, out);
}

struct tarn_status *tarn_service_list_files(struct tarn_op *op, struct tarn_service *service,
                                            struct tarn_table_ref ref, struct tarn_version version,
                                            struct tarn_slice where, int64_t *snapshot_id,
                                            struct tarn_file_facts **out, size_t *count)
{
    struct tarn_plan plan;
    TARN_TRY(plan_files(op, service, ref, version, where, true, &plan));
    struct key_printer keys = key_printer(op, plan.schema);
    struct tarn_file_facts *list = tarn_arena_calloc(op->arena, plan.file_count + 1, sizeof *list);
    for (size_t i = 0; i < plan.file_count; i++) {
        const struct tarn_manifest_entry *entry = &plan.files[i].entry;
        list[i].file = &plan.files[i];
        list[i].partition = tarn_service__partition_text(op, plan.schema, entry->partition);
        list[i].min_key = print_key(op, &keys, entry->file.min_key);
        list[i].max_key = print_key(op, &keys, entry->file.max_key);
        TARN_TRY(file_path(op, &plan, entry, &list[i].path));
    }
    *snapshot_id = plan.has_snapshot ? plan.snapshot.id : 0;
    *out = list;
    *count = plan.file_count;
    return TARN_OK;
}

/* --- sums --- */

/* Files carry the wall clock of their writer's zone; the daemon's own is the best guess at it. */
static int64_t epoch_of_local(int64_t local_ms)
{
    time_t seconds = (time_t)(local_ms / 1000);
    struct tm fields;
    if (gmtime_r(&seconds, &fields) == NULL)
        return local_ms;
    fields.tm_isdst = -1;
    time_t real = mktime(&fields);
    return real == (time_t)-1 ? local_ms : (int64_t)real * 1000 + local_ms % 1000;
}

static int by_place(const void *a, const void *b)
{
    const struct tarn_manifest_entry *x = *(const struct tarn_manifest_entry *const *)a;
    const struct tarn_manifest_entry *y = *(const struct tarn_manifest_entry *const *)b;
    int c = tarn_slice_compare(x->partition, y->partition);
    if (c == 0)
        c = (x->bucket > y->bucket) - (x->bucket < y->bucket);
    return c != 0 ? c : (x->file.level > y->file.level) - (x->file.level < y->file.level);
}

static int by_text(const void *a, const void *b)
{
    const struct tarn_group_facts *x = a, *y = b;
    int c = strcmp(x->partition, y->partition);
    return c != 0 ? c : (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

static struct tarn_status *partition_values(struct tarn_op *op, const struct tarn_schema *schema,
                                            struct tarn_slice partition,
                                            struct tarn_group_facts *out)
{
    size_t count = schema->partition_key_count;
    const struct tarn_type **types = tarn_partition_types(schema, op->arena);
    struct tarn_value *values = tarn_arena_calloc(op->arena, count + 1, sizeof *values);
    struct tarn_partition_value *list = tarn_arena_calloc(op->arena, count + 1, sizeof *list);
    TARN_TRY(tarn_row_deserialize(partition, types, count, values));
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++) {
        tarn_buf_clear(&text);
        tarn_value_print(types[i], &values[i], &text);
        list[i] = (struct tarn_partition_value){
            tarn_arena_copy(op->arena, schema->partition_keys[i]),
            tarn_arena_copy(op->arena, tarn_buf_slice(&text)), values[i].is_null};
    }
    out->values = list;
    out->value_count = count;
    return TARN_OK;
}

/* Entries are of one group, in order of bucket and level. */
static struct tarn_status *sum_group(struct tarn_op *op, const struct tarn_schema *schema,
                                     const struct tarn_manifest_entry *const *entries, size_t count,
                                     bool by_bucket, struct tarn_group_facts *out)
{
    *out = (struct tarn_group_facts){
        .partition = tarn_service__partition_text(op, schema, entries[0]->partition),
        .bucket = by_bucket ? entries[0]->bucket : 0,
        .file_count = (int64_t)count,
    };
    for (size_t i = 0; i < count; i++) {
        const struct tarn_data_file *f = &entries[i]->file;
        bool new_bucket = i == 0 || entries[i]->bucket != entries[i - 1]->bucket;
        bool new_level = new_bucket || f->level != entries[i - 1]->file.level;
        out->record_count += f->row_count;
        out->size += f->size;
        out->bucket_count += new_bucket;
        out->level_count += new_level;
        out->run_count += f->level == 0 || new_level;
        if (f->delete_row_count != TARN_FILE_NONE)
            out->delete_row_count += f->delete_row_count;
        if (f->creation_time_ms != TARN_FILE_NONE)
            out->last_file_ms = TARN_MAX(out->last_file_ms, epoch_of_local(f->creation_time_ms));
    }
    return by_bucket ? TARN_OK : partition_values(op, schema, entries[0]->partition, out);
}

struct tarn_status *tarn_service_list_groups(struct tarn_op *op, struct tarn_service *service,
                                             struct tarn_table_ref ref, struct tarn_version version,
                                             bool by_bucket, struct tarn_group_facts **out,
                                             size_t *count)
{
    struct tarn_plan plan;
    TARN_TRY(plan_files(op, service, ref, version, tarn_slice_str(NULL), false, &plan));
    const struct tarn_manifest_entry **entries =
        tarn_arena_calloc(op->arena, plan.file_count + 1, sizeof *entries);
    for (size_t i = 0; i < plan.file_count; i++)
        entries[i] = &plan.files[i].entry;
    if (plan.file_count > 1)
        qsort(entries, plan.file_count, sizeof *entries, by_place);
    struct tarn_group_facts *list = tarn_arena_calloc(op->arena, plan.file_count + 1, sizeof *list);
    size_t n = 0;
    for (size_t begin = 0, end; begin < plan.file_count; begin = end) {
        for (end = begin + 1; end < plan.file_count; end++)
            if (!tarn_slice_equal(entries[begin]->partition, entries[end]->partition) ||
                (by_bucket && entries[begin]->bucket != entries[end]->bucket))
                break;
        TARN_TRY(sum_group(op, plan.schema, entries + begin, end - begin, by_bucket, &list[n++]));
    }
    if (n > 1)
        qsort(list, n, sizeof *list, by_text);
    *out = list;
    *count = n;
    return TARN_OK;
}
