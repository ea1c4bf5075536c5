#include "rpc/table.h"

/* TableService: its methods, and the simple ones of them. */

#define FILES_PER_MESSAGE 1000

/* --- history --- */

Tarn__V1__Snapshot *tarn_rpc__put_snapshot(struct tarn_op *op, const struct tarn_snapshot *s)
{
    Tarn__V1__Snapshot *out = TARN_RPC_NEW(op, Tarn__V1__Snapshot, snapshot);
    out->id = s->id;
    out->schema_id = s->schema_id;
    out->commit_user = tarn_rpc__text(op, s->commit_user);
    out->commit_identifier = s->commit_identifier;
    out->kind = (Tarn__V1__CommitKind)s->kind;
    out->time_ms = s->time_ms;
    out->total_record_count = TARN_MAX(s->total_record_count, (int64_t)0);
    out->delta_record_count =
        s->delta_record_count == TARN_SNAPSHOT_NONE ? 0 : s->delta_record_count;
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
        r->snapshots[i] = tarn_rpc__put_snapshot(op, &list[i]);
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
    out->file = tarn_rpc__put_file(op, &facts->file->entry.file);
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
    Tarn__V1__ListFilesResponse *r =
        TARN_RPC_NEW(op, Tarn__V1__ListFilesResponse, list_files_response);
    r->snapshot_id = snapshot_id;
    r->files = TARN_RPC_ARRAY(op, count, *r->files);
    r->n_files = count;
    for (size_t i = 0; i < count; i++)
        r->files[i] = put_file_info(op, &list[i]);
    return tarn_rpc__write(call, &r->base);
}

static struct tarn_status *list_files(struct tarn_op *op, struct tarn_service *service,
                                      struct tarn_call *call, const Tarn__V1__ListFilesRequest *q)
{
    TARN_OWN(tarn_plan_stream_drop) struct tarn_plan_stream *stream = NULL;
    struct tarn_plan_request request = {
        .where = tarn_slice_str(q->where), .with_stats = true, .no_splits = true};
    TARN_TRY(tarn_rpc__version(q->version, &request.version));
    TARN_TRY(tarn_service_plan_begin(op, service, tarn_rpc__ref(q->table), &request, 0, &stream));
    const struct tarn_plan *head = tarn_plan_stream_head(stream);
    bool first = true;
    for (;;) {
        TARN_OWN(tarn_op_fini) struct tarn_op part;
        tarn_op_init_child(&part, op);
        struct tarn_file_facts *list;
        size_t count;
        TARN_TRY(tarn_service_files_next(&part, stream, &list, &count));
        if (count == 0 && !first)
            return TARN_OK;
        TARN_TRY(write_files(&part, call, head->has_snapshot ? head->snapshot.id : 0, list, count));
        first = false;
    }
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
    TARN_TRY(
        tarn_service_list_buckets(op, service, tarn_rpc__ref(q->table), version, &list, &count));
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

static struct tarn_status *serve_list_files(struct tarn_op *op, struct tarn_rpc *rpc,
                                            struct tarn_call *call)
{
    void *request;
    TARN_TRY(tarn_rpc__read(op, call, &tarn__v1__list_files_request__descriptor, &request));
    return list_files(op, tarn_rpc__service(rpc), call, request);
}

#define U(method, request, response, fn) TARN_RPC_UNARY(TableService, method, request, response, fn)
const struct tarn_rpc__method tarn_rpc__table_methods[] = {
    TARN_RPC_STARTED(TableService, Commit, commit_request, commit_response, tarn_rpc__commit),
    U(CommitTables, commit_tables_request, commit_tables_response, tarn_rpc__commit_tables),
    U(GetCommit, get_commit_request, get_commit_response, tarn_rpc__get_commit),
    U(FilterCommitted, filter_committed_request, filter_committed_response,
      tarn_rpc__filter_committed),
    TARN_RPC_STREAM(TableService, Plan, tarn_rpc__plan),
    TARN_RPC_UNARY(TableService, RenewPin, renew_pin_request, renew_pin_response,
                   tarn_rpc__renew_pin),
    TARN_RPC_STREAM(TableService, Subscribe, tarn_rpc__subscribe),
    U(ListConsumers, list_consumers_request, list_consumers_response, tarn_rpc__list_consumers),
    U(SetConsumer, set_consumer_request, set_consumer_response, tarn_rpc__set_consumer),
    U(DropConsumer, drop_consumer_request, drop_consumer_response, tarn_rpc__drop_consumer),
    U(CreateTag, create_tag_request, tag, tarn_rpc__create_tag),
    U(ListTags, list_tags_request, list_tags_response, tarn_rpc__list_tags),
    U(DropTag, drop_tag_request, drop_tag_response, tarn_rpc__drop_tag),
    U(CreateBranch, create_branch_request, create_branch_response, tarn_rpc__create_branch),
    U(ListBranches, list_branches_request, list_branches_response, tarn_rpc__list_branches),
    U(RenameBranch, rename_branch_request, rename_branch_response, tarn_rpc__rename_branch),
    U(DropBranch, drop_branch_request, drop_branch_response, tarn_rpc__drop_branch),
    U(FastForward, fast_forward_request, fast_forward_response, tarn_rpc__fast_forward),
    U(RollBack, roll_back_request, roll_back_response, tarn_rpc__roll_back),
    U(RollBackSchema, roll_back_schema_request, roll_back_schema_response,
      tarn_rpc__roll_back_schema),
    U(ListSnapshots, list_snapshots_request, list_snapshots_response, list_snapshots),
    U(ListSchemas, list_schemas_request, list_schemas_response, list_schemas),
    U(ListManifests, list_manifests_request, list_manifests_response, list_manifests),
    TARN_RPC_STREAM(TableService, ListFiles, serve_list_files),
    U(ListPartitions, list_partitions_request, list_partitions_response, tarn_rpc__list_partitions),
    U(CreatePartitions, create_partitions_request, change_partitions_response,
      tarn_rpc__create_partitions),
    U(MarkPartitions, mark_partitions_request, change_partitions_response,
      tarn_rpc__mark_partitions),
    U(DropPartitions, drop_partitions_request, change_partitions_response,
      tarn_rpc__drop_partitions),
    U(ListBuckets, list_buckets_request, list_buckets_response, list_buckets),
    U(ListOptions, list_options_request, list_options_response, list_options),
    TARN_RPC_END,
};
