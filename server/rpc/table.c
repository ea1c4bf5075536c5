#include "rpc/internal.h"

#include "tarn/v1/table.pb-c.h"

/* TableService. */

#define SPLITS_PER_MESSAGE 100
#define FILES_PER_MESSAGE 1000

/* --- data files --- */

static Tarn__V1__Stats *put_stats(struct tarn_op *op, const struct tarn_stats *stats)
{
    Tarn__V1__Stats *out = TARN_RPC_NEW(op, Tarn__V1__Stats, stats);
    out->min = tarn_rpc__bytes(stats->min);
    out->max = tarn_rpc__bytes(stats->max);
    out->n_null_counts = stats->count;
    out->null_counts = (int64_t *)(uintptr_t)stats->null_counts;
    return out;
}

static void put_optionals(const struct tarn_data_file *f, Tarn__V1__DataFile *out)
{
    if (f->creation_time_ms != TARN_FILE_NONE) {
        out->_creation_time_case = TARN__V1__DATA_FILE___CREATION_TIME_CREATION_TIME_MS;
        out->creation_time_ms = f->creation_time_ms;
    }
    if (f->delete_row_count != TARN_FILE_NONE) {
        out->_delete_row_count_case = TARN__V1__DATA_FILE___DELETE_ROW_COUNT_DELETE_ROW_COUNT;
        out->delete_row_count = f->delete_row_count;
    }
    if (f->embedded_index.data != NULL) {
        out->_embedded_index_case = TARN__V1__DATA_FILE___EMBEDDED_INDEX_EMBEDDED_INDEX;
        out->embedded_index = tarn_rpc__bytes(f->embedded_index);
    }
    if (f->external_path.data != NULL) {
        out->_external_path_case = TARN__V1__DATA_FILE___EXTERNAL_PATH_EXTERNAL_PATH;
        out->external_path = tarn_rpc__bytes(f->external_path);
    }
    if (f->first_row_id != TARN_FILE_NONE) {
        out->_first_row_id_case = TARN__V1__DATA_FILE___FIRST_ROW_ID_FIRST_ROW_ID;
        out->first_row_id = f->first_row_id;
    }
}

static Tarn__V1__DataFile *put_file(struct tarn_op *op, const struct tarn_data_file *f)
{
    Tarn__V1__DataFile *out = TARN_RPC_NEW(op, Tarn__V1__DataFile, data_file);
    out->name = tarn_rpc__bytes(f->name);
    out->size = f->size;
    out->row_count = f->row_count;
    out->min_key = tarn_rpc__bytes(f->min_key);
    out->max_key = tarn_rpc__bytes(f->max_key);
    out->key_stats = put_stats(op, &f->key_stats);
    out->value_stats = put_stats(op, &f->value_stats);
    out->min_sequence = f->min_sequence;
    out->max_sequence = f->max_sequence;
    out->schema_id = f->schema_id;
    out->level = f->level;
    out->n_extra_files = f->extra_file_count;
    out->extra_files = tarn_rpc__bytes_list(op, f->extra_files, f->extra_file_count);
    out->source = f->source;
    out->has_value_stats_columns = f->has_value_stats_columns;
    out->n_value_stats_columns = f->value_stats_column_count;
    out->value_stats_columns =
        tarn_rpc__bytes_list(op, f->value_stats_columns, f->value_stats_column_count);
    put_optionals(f, out);
    return out;
}

static struct tarn_stats take_stats(const Tarn__V1__Stats *in)
{
    if (in == NULL)
        return (struct tarn_stats){0};
    return (struct tarn_stats){tarn_rpc__slice(in->min), tarn_rpc__slice(in->max), in->null_counts,
                               in->n_null_counts};
}

static void take_optionals(const Tarn__V1__DataFile *in, struct tarn_data_file *f)
{
    f->creation_time_ms = f->delete_row_count = f->first_row_id = TARN_FILE_NONE;
    if (in->_creation_time_case == TARN__V1__DATA_FILE___CREATION_TIME_CREATION_TIME_MS)
        f->creation_time_ms = in->creation_time_ms;
    if (in->_delete_row_count_case == TARN__V1__DATA_FILE___DELETE_ROW_COUNT_DELETE_ROW_COUNT)
        f->delete_row_count = in->delete_row_count;
    if (in->_embedded_index_case == TARN__V1__DATA_FILE___EMBEDDED_INDEX_EMBEDDED_INDEX)
        f->embedded_index = tarn_rpc__slice(in->embedded_index);
    if (in->_external_path_case == TARN__V1__DATA_FILE___EXTERNAL_PATH_EXTERNAL_PATH)
        f->external_path = tarn_rpc__slice(in->external_path);
    if (in->_first_row_id_case == TARN__V1__DATA_FILE___FIRST_ROW_ID_FIRST_ROW_ID)
        f->first_row_id = in->first_row_id;
}

static struct tarn_data_file take_file(struct tarn_op *op, const Tarn__V1__DataFile *in)
{
    struct tarn_data_file f = {
        .name = tarn_rpc__slice(in->name),
        .size = in->size,
        .row_count = in->row_count,
        .min_key = tarn_rpc__slice(in->min_key),
        .max_key = tarn_rpc__slice(in->max_key),
        .key_stats = take_stats(in->key_stats),
        .value_stats = take_stats(in->value_stats),
        .min_sequence = in->min_sequence,
        .max_sequence = in->max_sequence,
        .schema_id = in->schema_id,
        .level = in->level,
        .extra_files = tarn_rpc__slices(op, in->extra_files, in->n_extra_files),
        .extra_file_count = in->n_extra_files,
        .source = in->source == TARN_SOURCE_APPEND || in->source == TARN_SOURCE_COMPACT
                      ? (enum tarn_file_source)in->source
                      : TARN_SOURCE_UNKNOWN,
        .has_value_stats_columns = in->has_value_stats_columns,
        .value_stats_columns =
            tarn_rpc__slices(op, in->value_stats_columns, in->n_value_stats_columns),
        .value_stats_column_count = in->n_value_stats_columns,
    };
    take_optionals(in, &f);
    return f;
}

/* --- commit --- */

static struct tarn_status *take_entries(struct tarn_op *op, Tarn__V1__FileEntry *const *in,
                                        size_t count, const struct tarn_manifest_entry **out)
{
    struct tarn_manifest_entry *list = TARN_RPC_ARRAY(op, count, *list);
    for (size_t i = 0; i < count; i++) {
        if (in[i]->file == NULL || in[i]->kind < 0 || in[i]->kind > 1)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "entry %zu has %s", i,
                                   in[i]->file == NULL ? "no file" : "a kind other than 0 and 1");
        list[i] = (struct tarn_manifest_entry){
            .kind = in[i]->kind == 0 ? TARN_ENTRY_ADD : TARN_ENTRY_DELETE,
            .partition = tarn_rpc__slice(in[i]->partition),
            .bucket = in[i]->bucket,
            .total_buckets = in[i]->total_buckets,
            .file = take_file(op, in[i]->file),
        };
        if (list[i].partition.size == 0)
            list[i].partition = tarn_row_empty();
    }
    *out = list;
    return TARN_OK;
}

static struct tarn_status *commit(struct tarn_op *op, struct tarn_service *service,
                                  const void *request, void *response)
{
    const Tarn__V1__CommitRequest *q = request;
    Tarn__V1__CommitResponse *r = response;
    struct tarn_commit c = {
        .user = tarn_slice_str(q->commit_user),
        .identifier = q->commit_identifier,
        .watermark = TARN_SNAPSHOT_NONE,
        .properties = tarn_rpc__pairs(op, q->properties, q->n_properties),
        .property_count = q->n_properties,
        .append_count = q->n_append,
        .compact_count = q->n_compact,
    };
    if (q->_watermark_case == TARN__V1__COMMIT_REQUEST___WATERMARK_WATERMARK)
        c.watermark = q->watermark;
    TARN_TRY(take_entries(op, q->append, q->n_append, &c.append));
    TARN_TRY(take_entries(op, q->compact, q->n_compact, &c.compact));
    struct tarn_commit_result result;
    TARN_TRY(tarn_service_commit(op, service, tarn_rpc__ref(q->table), &c, &result));
    r->snapshot_id = result.append_snapshot_id;
    r->compact_snapshot_id = result.compact_snapshot_id;
    r->repeated_commit = result.repeated;
    return TARN_OK;
}

/* --- plan --- */

static Tarn__V1__Split *put_split(struct tarn_op *op, const struct tarn_split *split,
                                  const char *path)
{
    Tarn__V1__Split *out = TARN_RPC_NEW(op, Tarn__V1__Split, split);
    out->partition = tarn_rpc__bytes(split->partition);
    out->bucket = split->bucket;
    out->raw = split->raw;
    out->path = tarn_rpc__str(path);
    out->n_files = split->file_count;
    out->files = TARN_RPC_ARRAY(op, split->file_count, *out->files);
    for (size_t i = 0; i < split->file_count; i++)
        out->files[i] = put_file(op, &split->files[i].entry.file);
    return out;
}

static Tarn__V1__PlanSummary *put_summary(struct tarn_op *op, const struct tarn_plan *plan)
{
    Tarn__V1__PlanSummary *out = TARN_RPC_NEW(op, Tarn__V1__PlanSummary, plan_summary);
    out->snapshot_id = plan->has_snapshot ? plan->snapshot.id : 0;
    out->schema_id = plan->schema->id;
    out->files_seen = plan->files_seen;
    out->pruned_by_partition = plan->pruned_by_partition;
    out->pruned_by_bucket = plan->pruned_by_bucket;
    out->pruned_by_key = plan->pruned_by_key;
    out->pruned_by_stats = plan->pruned_by_stats;
    out->splits = (int64_t)plan->split_count;
    for (size_t i = 0; i < plan->split_count; i++)
        out->files_left += (int64_t)plan->splits[i].file_count;
    return out;
}

/* Messages are built one at a time, each in an arena of its own: a plan may be large. */
static struct tarn_status *write_splits(struct tarn_op *op, struct tarn_call *call,
                                        const struct tarn_plan *plan, const char *const *paths,
                                        size_t begin, size_t end)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part;
    tarn_op_init_child(&part, op);
    Tarn__V1__PlanResponse *r = TARN_RPC_NEW(&part, Tarn__V1__PlanResponse, plan_response);
    r->splits = TARN_RPC_ARRAY(&part, end - begin, *r->splits);
    for (size_t i = begin; i < end; i++)
        r->splits[r->n_splits++] = put_split(&part, &plan->splits[i], paths[i]);
    if (end == plan->split_count)
        r->summary = put_summary(&part, plan);
    return tarn_rpc__write(call, &r->base);
}

static struct tarn_status *plan(struct tarn_op *op, struct tarn_service *service,
                                struct tarn_call *call, const Tarn__V1__PlanRequest *q)
{
    struct tarn_version version;
    struct tarn_plan p;
    const char **paths;
    TARN_TRY(tarn_rpc__version(q->version, &version));
    TARN_TRY(tarn_service_plan(op, service, tarn_rpc__ref(q->table), version,
                               tarn_slice_str(q->where), &p, &paths));
    size_t begin = 0;
    do {
        size_t end = begin, files = 0;
        while (end < p.split_count && end - begin < SPLITS_PER_MESSAGE && files < FILES_PER_MESSAGE)
            files += p.splits[end++].file_count;
        TARN_TRY(write_splits(op, call, &p, paths, begin, end));
        begin = end;
    } while (begin < p.split_count);
    return TARN_OK;
}

/* --- history --- */

static Tarn__V1__Snapshot *put_snapshot(struct tarn_op *op, const struct tarn_snapshot *s)
{
    Tarn__V1__Snapshot *out = TARN_RPC_NEW(op, Tarn__V1__Snapshot, snapshot);
    out->id = s->id;
    out->schema_id = s->schema_id;
    out->commit_user = tarn_rpc__text(op, s->commit_user);
    out->commit_identifier = s->commit_identifier;
    out->kind = (Tarn__V1__CommitKind)s->kind;
    out->time_ms = s->time_ms;
    out->total_record_count = s->total_record_count;
    out->delta_record_count = s->delta_record_count;
    out->base_manifest_list = tarn_rpc__text(op, s->base_list);
    out->delta_manifest_list = tarn_rpc__text(op, s->delta_list);
    out->changelog_manifest_list = tarn_rpc__text(op, s->changelog_list);
    out->index_manifest = tarn_rpc__text(op, s->index_manifest);
    out->properties = tarn_rpc__options(op, s->properties, s->property_count);
    out->n_properties = s->property_count;
    out->uuid = tarn_rpc__text(op, s->uuid);
    if (s->watermark != TARN_SNAPSHOT_NONE) {
        out->_watermark_case = TARN__V1__SNAPSHOT___WATERMARK_WATERMARK;
        out->watermark = s->watermark;
    }
    return out;
}

static struct tarn_status *list_snapshots(struct tarn_op *op, struct tarn_service *service,
                                          const void *request, void *response)
{
    const Tarn__V1__ListSnapshotsRequest *q = request;
    Tarn__V1__ListSnapshotsResponse *r = response;
    struct tarn_snapshot *list;
    size_t count;
    const char *next;
    TARN_TRY(tarn_service_list_snapshots(op, service, tarn_rpc__ref(q->table),
                                         tarn_rpc__page(q->page), &list, &count, &next));
    r->snapshots = TARN_RPC_ARRAY(op, count, *r->snapshots);
    r->n_snapshots = count;
    r->next_page_token = tarn_rpc__str(next);
    for (size_t i = 0; i < count; i++)
        r->snapshots[i] = put_snapshot(op, &list[i]);
    return TARN_OK;
}

static Tarn__V1__SchemaVersion *put_schema(struct tarn_op *op, const struct tarn_schema *s)
{
    Tarn__V1__SchemaVersion *out = TARN_RPC_NEW(op, Tarn__V1__SchemaVersion, schema_version);
    out->id = s->id;
    out->fields = tarn_rpc__fields(op, s->fields, s->field_count);
    out->n_fields = s->field_count;
    out->partition_keys = tarn_rpc__bytes_list(op, s->partition_keys, s->partition_key_count);
    out->n_partition_keys = s->partition_key_count;
    out->primary_keys = tarn_rpc__bytes_list(op, s->primary_keys, s->primary_key_count);
    out->n_primary_keys = s->primary_key_count;
    out->options = tarn_rpc__options(op, s->options, s->option_count);
    out->n_options = s->option_count;
    out->comment = tarn_rpc__bytes(s->comment);
    out->time_ms = s->time_ms;
    return out;
}

static struct tarn_status *list_schemas(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    const Tarn__V1__ListSchemasRequest *q = request;
    Tarn__V1__ListSchemasResponse *r = response;
    const struct tarn_schema **list;
    size_t count;
    TARN_TRY(tarn_service_list_schemas(op, service, tarn_rpc__ref(q->table), &list, &count));
    r->schemas = TARN_RPC_ARRAY(op, count, *r->schemas);
    r->n_schemas = count;
    for (size_t i = 0; i < count; i++)
        r->schemas[i] = put_schema(op, list[i]);
    return TARN_OK;
}

static struct tarn_status *list_manifests(struct tarn_op *op, struct tarn_service *service,
                                          const void *request, void *response)
{
    const Tarn__V1__ListManifestsRequest *q = request;
    Tarn__V1__ListManifestsResponse *r = response;
    struct tarn_version version;
    struct tarn_manifest_facts *list;
    size_t count;
    TARN_TRY(tarn_rpc__version(q->version, &version));
    TARN_TRY(tarn_service_list_manifests(op, service, tarn_rpc__ref(q->table), version,
                                         &r->snapshot_id, &list, &count));
    r->manifests = TARN_RPC_ARRAY(op, count, *r->manifests);
    r->n_manifests = count;
    for (size_t i = 0; i < count; i++) {
        Tarn__V1__ManifestFile *m = TARN_RPC_NEW(op, Tarn__V1__ManifestFile, manifest_file);
        m->name = tarn_rpc__str(list[i].name);
        m->size = list[i].size;
        m->added_files = list[i].added_count;
        m->deleted_files = list[i].deleted_count;
        m->schema_id = list[i].schema_id;
        m->list = tarn_rpc__str(list[i].list);
        m->min_partition = tarn_rpc__str(list[i].min_partition);
        m->max_partition = tarn_rpc__str(list[i].max_partition);
        r->manifests[i] = m;
    }
    return TARN_OK;
}

/* --- files --- */

static Tarn__V1__FileInfo *put_file_info(struct tarn_op *op, const struct tarn_file_facts *facts)
{
    Tarn__V1__FileInfo *out = TARN_RPC_NEW(op, Tarn__V1__FileInfo, file_info);
    out->partition = tarn_rpc__str(facts->partition);
    out->bucket = facts->file->entry.bucket;
    out->level = facts->file->entry.file.level;
    out->file = put_file(op, &facts->file->entry.file);
    out->added_by = facts->file->added_by;
    out->min_key = tarn_rpc__str(facts->min_key);
    out->max_key = tarn_rpc__str(facts->max_key);
    out->path = tarn_rpc__str(facts->path);
    return out;
}

static struct tarn_status *write_files(struct tarn_op *op, struct tarn_call *call,
                                       int64_t snapshot_id, const struct tarn_file_facts *list,
                                       size_t count)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part;
    tarn_op_init_child(&part, op);
    Tarn__V1__ListFilesResponse *r =
        TARN_RPC_NEW(&part, Tarn__V1__ListFilesResponse, list_files_response);
    r->snapshot_id = snapshot_id;
    r->files = TARN_RPC_ARRAY(&part, count, *r->files);
    r->n_files = count;
    for (size_t i = 0; i < count; i++)
        r->files[i] = put_file_info(&part, &list[i]);
    return tarn_rpc__write(call, &r->base);
}

static struct tarn_status *list_files(struct tarn_op *op, struct tarn_service *service,
                                      struct tarn_call *call, const Tarn__V1__ListFilesRequest *q)
{
    struct tarn_version version;
    struct tarn_file_facts *list;
    size_t count;
    int64_t snapshot_id;
    TARN_TRY(tarn_rpc__version(q->version, &version));
    TARN_TRY(tarn_service_list_files(op, service, tarn_rpc__ref(q->table), version,
                                     tarn_slice_str(q->where), &snapshot_id, &list, &count));
    size_t begin = 0;
    do {
        size_t n = TARN_MIN(count - begin, (size_t)FILES_PER_MESSAGE);
        TARN_TRY(write_files(op, call, snapshot_id, list + begin, n));
        begin += n;
    } while (begin < count);
    return TARN_OK;
}

static Tarn__V1__PartitionValue **put_values(struct tarn_op *op,
                                             const struct tarn_group_facts *facts)
{
    Tarn__V1__PartitionValue **out = TARN_RPC_ARRAY(op, facts->value_count, *out);
    for (size_t i = 0; i < facts->value_count; i++) {
        out[i] = TARN_RPC_NEW(op, Tarn__V1__PartitionValue, partition_value);
        out[i]->column = tarn_rpc__bytes(facts->values[i].column);
        out[i]->value = tarn_rpc__bytes(facts->values[i].value);
        out[i]->is_null = facts->values[i].is_null;
    }
    return out;
}

static struct tarn_status *list_partitions(struct tarn_op *op, struct tarn_service *service,
                                           const void *request, void *response)
{
    const Tarn__V1__ListPartitionsRequest *q = request;
    Tarn__V1__ListPartitionsResponse *r = response;
    struct tarn_version version;
    struct tarn_group_facts *list;
    size_t count;
    TARN_TRY(tarn_rpc__version(q->version, &version));
    TARN_TRY(tarn_service_list_groups(op, service, tarn_rpc__ref(q->table), version, false, &list,
                                      &count));
    r->partitions = TARN_RPC_ARRAY(op, count, *r->partitions);
    r->n_partitions = count;
    for (size_t i = 0; i < count; i++) {
        Tarn__V1__PartitionInfo *p = TARN_RPC_NEW(op, Tarn__V1__PartitionInfo, partition_info);
        p->partition = tarn_rpc__str(list[i].partition);
        p->values = put_values(op, &list[i]);
        p->n_values = list[i].value_count;
        p->record_count = list[i].record_count;
        p->file_count = list[i].file_count;
        p->size = list[i].size;
        p->bucket_count = list[i].bucket_count;
        p->last_file_time_ms = list[i].last_file_ms;
        r->partitions[i] = p;
    }
    return TARN_OK;
}

static struct tarn_status *list_buckets(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    const Tarn__V1__ListBucketsRequest *q = request;
    Tarn__V1__ListBucketsResponse *r = response;
    struct tarn_version version;
    struct tarn_group_facts *list;
    size_t count;
    TARN_TRY(tarn_rpc__version(q->version, &version));
    TARN_TRY(tarn_service_list_groups(op, service, tarn_rpc__ref(q->table), version, true, &list,
                                      &count));
    r->buckets = TARN_RPC_ARRAY(op, count, *r->buckets);
    r->n_buckets = count;
    for (size_t i = 0; i < count; i++) {
        Tarn__V1__BucketInfo *b = TARN_RPC_NEW(op, Tarn__V1__BucketInfo, bucket_info);
        b->partition = tarn_rpc__str(list[i].partition);
        b->bucket = list[i].bucket;
        b->record_count = list[i].record_count;
        b->file_count = list[i].file_count;
        b->size = list[i].size;
        b->sorted_runs = list[i].run_count;
        b->delete_row_count = list[i].delete_row_count;
        b->levels = list[i].level_count;
        b->last_file_time_ms = list[i].last_file_ms;
        r->buckets[i] = b;
    }
    return TARN_OK;
}

static struct tarn_status *list_options(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    const Tarn__V1__ListOptionsRequest *q = request;
    Tarn__V1__ListOptionsResponse *r = response;
    struct tarn_option_facts *list;
    size_t count;
    TARN_TRY(tarn_service_list_options(op, service, tarn_rpc__ref(q->table), &list, &count));
    r->options = TARN_RPC_ARRAY(op, count, *r->options);
    r->n_options = count;
    for (size_t i = 0; i < count; i++) {
        Tarn__V1__OptionInfo *o = TARN_RPC_NEW(op, Tarn__V1__OptionInfo, option_info);
        o->key = tarn_rpc__str(list[i].key);
        o->value = tarn_rpc__str(list[i].value);
        o->default_value = tarn_rpc__str(list[i].default_value);
        o->stored = list[i].stored;
        o->effect = tarn_rpc__str(list[i].effect);
        r->options[i] = o;
    }
    return TARN_OK;
}

/* --- streams --- */

static struct tarn_status *serve_plan(struct tarn_op *op, struct tarn_rpc *rpc,
                                      struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__plan_request__descriptor, &request));
    return plan(op, tarn_rpc__service(rpc), call, request);
}

static struct tarn_status *serve_list_files(struct tarn_op *op, struct tarn_rpc *rpc,
                                            struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__list_files_request__descriptor, &request));
    return list_files(op, tarn_rpc__service(rpc), call, request);
}

#define U(method, request, response, fn) TARN_RPC_UNARY(TableService, method, request, response, fn)
const struct tarn_rpc__method tarn_rpc__table_methods[] = {
    U(Commit, commit_request, commit_response, commit),
    TARN_RPC_STREAM(TableService, Plan, serve_plan),
    U(ListSnapshots, list_snapshots_request, list_snapshots_response, list_snapshots),
    U(ListSchemas, list_schemas_request, list_schemas_response, list_schemas),
    U(ListManifests, list_manifests_request, list_manifests_response, list_manifests),
    TARN_RPC_STREAM(TableService, ListFiles, serve_list_files),
    U(ListPartitions, list_partitions_request, list_partitions_response, list_partitions),
    U(ListBuckets, list_buckets_request, list_buckets_response, list_buckets),
    U(ListOptions, list_options_request, list_options_response, list_options),
    TARN_RPC_END,
};
