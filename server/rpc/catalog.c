#include "rpc/alter.h"
#include "rpc/objects.h"

/* CatalogService. */

/* --- databases --- */

static void fill_database(struct tarn_op *op, const struct tarn_database_info *info,
                          Tarn__V1__Database *out)
{
    out->name = tarn_rpc__bytes(info->name);
    out->options = tarn_rpc__options(op, info->options, info->option_count);
    out->n_options = info->option_count;
    out->comment = tarn_rpc__bytes(info->comment);
    out->table_count = info->table_count;
}

static struct tarn_status *create_database(struct tarn_op *op, struct tarn_service *service,
                                           const void *request, void *response)
{
    const Tarn__V1__CreateDatabaseRequest *q = request;
    struct tarn_database_info out, info = {
                                       .name = tarn_rpc__slice(q->name),
                                       .options = tarn_rpc__pairs(op, q->options, q->n_options),
                                       .option_count = q->n_options,
                                   };
    if (q->comment.len > 0)
        info.comment = tarn_rpc__slice(q->comment);
    TARN_TRY(tarn_service_create_database(op, service, &info, q->ignore_if_exists, &out));
    fill_database(op, &out, response);
    return TARN_OK;
}

static struct tarn_status *get_database(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    const Tarn__V1__GetDatabaseRequest *q = request;
    struct tarn_database_info info;
    TARN_TRY(tarn_service_get_database(op, service, tarn_rpc__slice(q->name), &info));
    fill_database(op, &info, response);
    return TARN_OK;
}

static struct tarn_status *list_databases(struct tarn_op *op, struct tarn_service *service,
                                          const void *request, void *response)
{
    const Tarn__V1__ListDatabasesRequest *q = request;
    Tarn__V1__ListDatabasesResponse *r = response;
    struct tarn_database_info *list;
    size_t count;
    const char *next;
    TARN_TRY(tarn_service_list_databases(op, service, tarn_rpc__page(q->page), false, &list, &count,
                                         &next));
    r->databases = TARN_RPC_ARRAY(op, count, *r->databases);
    r->n_databases = count;
    r->next_page_token = tarn_rpc__str(next);
    for (size_t i = 0; i < count; i++) {
        r->databases[i] = TARN_RPC_NEW(op, Tarn__V1__Database, database);
        fill_database(op, &list[i], r->databases[i]);
    }
    return TARN_OK;
}

static struct tarn_status *alter_database(struct tarn_op *op, struct tarn_service *service,
                                          const void *request, void *response)
{
    const Tarn__V1__AlterDatabaseRequest *q = request;
    struct tarn_database_info info;
    TARN_TRY(tarn_service_alter_database(
        op, service, tarn_rpc__slice(q->name), tarn_rpc__pairs(op, q->set, q->n_set), q->n_set,
        tarn_rpc__slices(op, q->remove, q->n_remove), q->n_remove, &info));
    fill_database(op, &info, response);
    return TARN_OK;
}

static struct tarn_status *drop_database(struct tarn_op *op, struct tarn_service *service,
                                         const void *request, void *response)
{
    const Tarn__V1__DropDatabaseRequest *q = request;
    Tarn__V1__DropDatabaseResponse *r = response;
    return tarn_service_drop_database(op, service, tarn_rpc__slice(q->name), q->cascade,
                                      q->ignore_if_missing, &r->tables_dropped);
}

/* --- tables --- */

static void fill_schema(struct tarn_op *op, const struct tarn_schema *schema, Tarn__V1__Table *out)
{
    out->fields = tarn_rpc__fields(op, schema->fields, schema->field_count);
    out->n_fields = schema->field_count;
    out->partition_keys =
        tarn_rpc__bytes_list(op, schema->partition_keys, schema->partition_key_count);
    out->n_partition_keys = schema->partition_key_count;
    out->primary_keys = tarn_rpc__bytes_list(op, schema->primary_keys, schema->primary_key_count);
    out->n_primary_keys = schema->primary_key_count;
    out->options = tarn_rpc__options(op, schema->options, schema->option_count);
    out->n_options = schema->option_count;
    out->comment = tarn_rpc__bytes(schema->comment);
    out->created_ms = schema->time_ms;
}

static ProtobufCBinaryData schema_json(struct tarn_op *op, const struct tarn_schema *schema)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_schema_encode(schema, &text);
    return tarn_rpc__bytes(tarn_arena_copy(op->arena, tarn_buf_slice(&text)));
}

static void fill_table(struct tarn_op *op, const struct tarn_table_facts *facts,
                       Tarn__V1__Table *out)
{
    out->database = tarn_rpc__bytes(facts->database);
    out->name = tarn_rpc__bytes(facts->name);
    out->uuid = tarn_rpc__str(facts->uuid);
    out->path = tarn_rpc__str(facts->uri);
    out->schema_id = facts->schema.id;
    fill_schema(op, &facts->schema, out);
    out->snapshot_id = facts->snapshot_id;
    out->record_count = facts->record_count;
    if (facts->view != NULL || facts->is_entry)
        out->schema_json = schema_json(op, &facts->schema);
    out->refuse_write = tarn_rpc__text(op, facts->refuse_write);
    out->defaults_applied = tarn_rpc__options(op, facts->defaults, facts->default_count);
    out->n_defaults_applied = facts->default_count;
    out->compaction = tarn_rpc__compaction_owner(facts->is_compacted);
}

/* What is in the request, but for `like`, which lies in *like. */
static struct tarn_table_request take_definition(struct tarn_op *op,
                                                 const Tarn__V1__CreateTableRequest *q,
                                                 struct tarn_table_ref *like)
{
    struct tarn_field *fields = TARN_RPC_ARRAY(op, q->n_fields, *fields);
    const char **types = TARN_RPC_ARRAY(op, q->n_fields, *types);
    for (size_t i = 0; i < q->n_fields; i++) {
        fields[i] = tarn_rpc__field(q->fields[i]);
        types[i] = q->fields[i]->type;
    }
    *like = tarn_rpc__ref(q->like);
    return (struct tarn_table_request){
        .database = tarn_rpc__slice(q->database),
        .name = tarn_rpc__slice(q->table),
        .fields = fields,
        .field_types = types,
        .field_count = q->n_fields,
        .columns_sql = tarn_rpc__slice(q->columns_sql),
        .like = q->like == NULL ? NULL : like,
        .schema_json = tarn_rpc__slice(q->schema_json),
        .partition_keys = tarn_rpc__slices(op, q->partition_keys, q->n_partition_keys),
        .partition_key_count = q->n_partition_keys,
        .primary_keys = tarn_rpc__slices(op, q->primary_keys, q->n_primary_keys),
        .primary_key_count = q->n_primary_keys,
        .options = tarn_rpc__pairs(op, q->options, q->n_options),
        .option_count = q->n_options,
        .comment = tarn_rpc__slice(q->comment),
        .ignore_if_exists = q->ignore_if_exists,
    };
}

static struct tarn_status *create_table(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    struct tarn_table_ref like;
    struct tarn_table_request t = take_definition(op, request, &like);
    struct tarn_table_facts facts;
    TARN_TRY(tarn_service_create_table(op, service, &t, &facts));
    fill_table(op, &facts, response);
    return TARN_OK;
}

static struct tarn_status *register_table(struct tarn_op *op, struct tarn_service *service,
                                          const void *request, void *response)
{
    const Tarn__V1__RegisterTableRequest *q = request;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_service_register_table(op, service, tarn_rpc__slice(q->database),
                                         tarn_rpc__slice(q->table), tarn_rpc__slice(q->path),
                                         &facts));
    fill_table(op, &facts, response);
    return TARN_OK;
}

static struct tarn_status *replace_table(struct tarn_op *op, struct tarn_service *service,
                                         const void *request, void *response)
{
    const Tarn__V1__ReplaceTableRequest *q = request;
    struct tarn_table_ref like;
    struct tarn_table_facts facts;
    if (q->definition == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "definition is missing");
    struct tarn_table_request t = take_definition(op, q->definition, &like);
    TARN_TRY(tarn_service_replace_table(op, service, tarn_rpc__ref(q->table), &t, &facts));
    fill_table(op, &facts, response);
    return TARN_OK;
}

static struct tarn_status *get_table(struct tarn_op *op, struct tarn_service *service,
                                     const void *request, void *response)
{
    const Tarn__V1__GetTableRequest *q = request;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_service_get_table(op, service, tarn_rpc__ref(q->table), &facts));
    fill_table(op, &facts, response);
    return TARN_OK;
}

static struct tarn_status *list_tables(struct tarn_op *op, struct tarn_service *service,
                                       const void *request, void *response)
{
    const Tarn__V1__ListTablesRequest *q = request;
    Tarn__V1__ListTablesResponse *r = response;
    struct tarn_table_facts *list;
    size_t count;
    const char *next;
    struct tarn_table_query query = {.database = tarn_rpc__slice(q->database),
                                     .page = tarn_rpc__page(q->page)};
    TARN_TRY(tarn_service_list_tables(op, service, &query, false, &list, &count, &next));
    r->tables = TARN_RPC_ARRAY(op, count, *r->tables);
    r->n_tables = count;
    r->next_page_token = tarn_rpc__str(next);
    for (size_t i = 0; i < count; i++) {
        r->tables[i] = TARN_RPC_NEW(op, Tarn__V1__Table, table);
        fill_table(op, &list[i], r->tables[i]);
    }
    return TARN_OK;
}

static struct tarn_status *alter_table(struct tarn_op *op, struct tarn_service *service,
                                       const void *request, void *response)
{
    const Tarn__V1__AlterTableRequest *q = request;
    struct tarn_schema_change *changes;
    size_t count;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_rpc__changes(op, q->changes, q->n_changes, &changes, &count));
    TARN_TRY(
        tarn_service_alter_table(op, service, tarn_rpc__ref(q->table), changes, count, &facts));
    fill_table(op, &facts, response);
    return TARN_OK;
}

static struct tarn_status *rename_table(struct tarn_op *op, struct tarn_service *service,
                                        const void *request, void *response)
{
    const Tarn__V1__RenameTableRequest *q = request;
    struct tarn_table_facts facts;
    TARN_TRY(tarn_service_rename_table(op, service, tarn_rpc__ref(q->table),
                                       tarn_rpc__slice(q->to_database),
                                       tarn_rpc__slice(q->to_table), &facts));
    fill_table(op, &facts, response);
    return TARN_OK;
}

static struct tarn_status *drop_table(struct tarn_op *op, struct tarn_service *service,
                                      const void *request, void *response TARN_UNUSED)
{
    const Tarn__V1__DropTableRequest *q = request;
    return tarn_service_drop_table(op, service, tarn_rpc__ref(q->table), q->ignore_if_missing);
}

#define U(method, request, response, fn)                                                           \
    TARN_RPC_UNARY(CatalogService, method, request, response, fn)
const struct tarn_rpc__method tarn_rpc__catalog_methods[] = {
    U(CreateDatabase, create_database_request, database, create_database),
    U(GetDatabase, get_database_request, database, get_database),
    U(ListDatabases, list_databases_request, list_databases_response, list_databases),
    U(AlterDatabase, alter_database_request, database, alter_database),
    U(DropDatabase, drop_database_request, drop_database_response, drop_database),
    U(CreateTable, create_table_request, table, create_table),
    U(GetTable, get_table_request, table, get_table),
    U(ListTables, list_tables_request, list_tables_response, list_tables),
    U(AlterTable, alter_table_request, table, alter_table),
    U(RegisterTable, register_table_request, table, register_table),
    U(ReplaceTable, replace_table_request, table, replace_table),
    U(RenameTable, rename_table_request, table, rename_table),
    U(DropTable, drop_table_request, drop_table_response, drop_table),
    U(CreateObject, create_object_request, catalog_object, tarn_rpc__create_object),
    U(GetObject, get_object_request, catalog_object, tarn_rpc__get_object),
    U(ListObjects, list_objects_request, list_objects_response, tarn_rpc__list_objects),
    U(AlterObject, alter_object_request, catalog_object, tarn_rpc__alter_object),
    U(RenameObject, rename_object_request, catalog_object, tarn_rpc__rename_object),
    U(DropObject, drop_object_request, drop_object_response, tarn_rpc__drop_object),
    TARN_RPC_STREAM(CatalogService, Adopt, tarn_rpc__adopt),
    TARN_RPC_END,
};
