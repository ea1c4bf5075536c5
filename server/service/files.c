#include "service/partitions.h"

#include <time.h>

/* What a version of a table consists of: files, and sums over partitions and buckets. */

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

static struct tarn_status *file_path(struct tarn_op *op, struct tarn_plan_stream *stream,
                                     const struct tarn_manifest_entry *entry, const char **out)
{
    if (entry->file.external_path.data != NULL) {
        *out = tarn_arena_str(op->arena, entry->file.external_path);
        return TARN_OK;
    }
    struct tarn_slice folder;
    TARN_TRY(tarn_plan_stream_path(stream, entry->partition, entry->bucket, &folder));
    *out = tarn_arena_printf(op->arena, "%.*s/%.*s", TARN_SLICE_ARG(folder),
                             TARN_SLICE_ARG(entry->file.name));
    return TARN_OK;
}

struct tarn_status *tarn_service_files_next(struct tarn_op *op, struct tarn_plan_stream *stream,
                                            struct tarn_file_facts **out, size_t *count)
{
    const struct tarn_plan *head = tarn_plan_stream_head(stream);
    struct tarn_plan_batch batch;
    TARN_TRY(tarn_plan_stream_next(stream, &batch));
    struct key_printer keys = key_printer(op, head->schema);
    struct tarn_file_facts *list = tarn_arena_calloc(op->arena, batch.file_count + 1, sizeof *list);
    for (size_t i = 0; i < batch.file_count; i++) {
        const struct tarn_manifest_entry *entry = &batch.files[i].entry;
        list[i].file = &batch.files[i];
        list[i].partition = tarn_service__partition_text(op, head->schema, entry->partition);
        list[i].min_key = print_key(op, &keys, entry->file.min_key);
        list[i].max_key = print_key(op, &keys, entry->file.max_key);
        TARN_TRY(file_path(op, stream, entry, &list[i].path));
    }
    *out = list;
    *count = batch.file_count;
    return TARN_OK;
}

/* --- sums --- */

int64_t tarn_service__epoch_of_local(int64_t local_ms)
{
    if (local_ms == TARN_FILE_NONE)
        return 0;
    time_t seconds = (time_t)(local_ms / 1000);
    struct tm fields;
    if (gmtime_r(&seconds, &fields) == NULL)
        return local_ms;
    fields.tm_isdst = -1;
    time_t real = mktime(&fields);
    return real == (time_t)-1 ? local_ms : (int64_t)real * 1000 + local_ms % 1000;
}

static int by_text(const void *a, const void *b)
{
    const struct tarn_group_facts *x = a, *y = b;
    int c = strcmp(x->partition, y->partition);
    return c != 0 ? c : (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

/* Groups in the making. Files come in order of partition, bucket and level. */
struct summing {
    struct tarn_op *op;
    const struct tarn_schema *schema;
    bool by_bucket;
    struct tarn_group_facts *list; /* on the heap */
    size_t count, capacity;
    struct tarn_buf partition; /* of the last file */
    int32_t bucket, level;
};

static void summing_fini(struct summing *s)
{
    free(s->list);
    tarn_buf_drop(&s->partition);
}

static struct tarn_status *begin_group(struct summing *s, const struct tarn_manifest_entry *entry)
{
    TARN_GROW(s->list, s->count, s->capacity);
    struct tarn_group_facts *g = &s->list[s->count++];
    *g = (struct tarn_group_facts){
        .partition = tarn_service__partition_text(s->op, s->schema, entry->partition),
        .bucket = s->by_bucket ? entry->bucket : 0,
    };
    tarn_buf_clear(&s->partition);
    tarn_buf_add_slice(&s->partition, entry->partition);
    return s->by_bucket ? TARN_OK
                        : tarn_service__partition_values(s->op, s->schema, entry->partition,
                                                         &g->values, &g->value_count);
}

static struct tarn_status *sum_file(struct summing *s, const struct tarn_manifest_entry *entry)
{
    const struct tarn_data_file *f = &entry->file;
    bool new_partition =
        s->count == 0 || !tarn_slice_equal(entry->partition, tarn_buf_slice(&s->partition));
    bool new_bucket = new_partition || entry->bucket != s->bucket;
    bool new_level = new_bucket || f->level != s->level;
    if (new_partition || (s->by_bucket && new_bucket))
        TARN_TRY(begin_group(s, entry));
    s->bucket = entry->bucket;
    s->level = f->level;
    struct tarn_group_facts *g = &s->list[s->count - 1];
    g->file_count++;
    g->record_count += f->row_count;
    g->size += f->size;
    g->level_count += new_level;
    g->run_count += f->level == 0 || new_level;
    if (f->delete_row_count != TARN_FILE_NONE)
        g->delete_row_count += f->delete_row_count;
    if (tarn_service__epoch_of_local(f->creation_time_ms) >= g->last_file_ms)
        g->total_buckets = TARN_MAX(entry->total_buckets, 0);
    g->last_file_ms = TARN_MAX(g->last_file_ms, tarn_service__epoch_of_local(f->creation_time_ms));
    return TARN_OK;
}

static struct tarn_status *sum_groups(struct tarn_op *op, struct tarn_service *service,
                                      struct tarn_table_ref ref, struct tarn_version version,
                                      bool by_bucket, struct tarn_group_facts **out, size_t *count)
{
    TARN_OWN(tarn_plan_stream_drop) struct tarn_plan_stream *stream = NULL;
    struct tarn_plan_request request = {.version = version, .no_splits = true};
    struct tarn_plan_batch batch;
    TARN_TRY(tarn_service_plan_begin(op, service, ref, &request, 0, &stream));
    TARN_OWN(summing_fini) struct summing s = {
        .op = op, .schema = tarn_plan_stream_head(stream)->schema, .by_bucket = by_bucket};
    do {
        TARN_TRY(tarn_plan_stream_next(stream, &batch));
        for (size_t i = 0; i < batch.file_count; i++)
            TARN_TRY(sum_file(&s, &batch.files[i].entry));
    } while (batch.file_count > 0);
    struct tarn_group_facts *list = tarn_arena_calloc(op->arena, s.count + 1, sizeof *list);
    if (s.count > 0)
        memcpy(list, s.list, s.count * sizeof *list);
    if (s.count > 1)
        qsort(list, s.count, sizeof *list, by_text);
    *out = list;
    *count = s.count;
    return TARN_OK;
}

struct tarn_status *tarn_service_list_buckets(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref,
                                              struct tarn_version version,
                                              struct tarn_group_facts **out, size_t *count)
{
    return sum_groups(op, service, ref, version, true, out, count);
}

/* Of the latest version: by the sums that the index keeps. */
static struct tarn_status *group_of(struct tarn_op *op, const struct tarn_schema *schema,
                                    const struct tarn_partition_facts *from,
                                    struct tarn_group_facts *out)
{
    *out = (struct tarn_group_facts){
        .partition = tarn_service__partition_text(op, schema, from->row),
        .record_count = from->totals.record_count,
        .file_count = from->totals.file_count,
        .size = from->totals.size,
        .last_file_ms = from->last_file_ms,
        .total_buckets = TARN_MAX(from->totals.total_buckets, 0),
        .created_ms = from->created_ms,
        .done_ms = from->done_ms,
    };
    return tarn_service__partition_values(op, schema, from->row, &out->values, &out->value_count);
}

struct tarn_status *tarn_service_list_partition_groups(struct tarn_op *op,
                                                       struct tarn_service *service,
                                                       struct tarn_table_ref ref,
                                                       struct tarn_version version,
                                                       struct tarn_group_facts **out, size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_partitions_fini) struct tarn_partitions all = {0};
    if (version.snapshot_id != TARN_SNAPSHOT_NONE || version.time_ms != TARN_SNAPSHOT_NONE ||
        version.watermark != TARN_SNAPSHOT_NONE || version.tag.size > 0)
        return sum_groups(op, service, ref, version, false, out, count);
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_service__partitions(op, service, table, &all));
    *out = tarn_arena_calloc(op->arena, all.count + 1, sizeof **out);
    *count = all.count;
    for (size_t i = 0; i < all.count; i++)
        TARN_TRY(group_of(op, &all.view->schema, &all.list[i], &(*out)[i]));
    if (all.count > 1)
        qsort(*out, all.count, sizeof **out, by_text);
    return TARN_OK;
}
