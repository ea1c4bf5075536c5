#include "service/internal.h"

/* Tables: what is known of one, and the draft a new one is made of. */

static const char *folder_uri(struct tarn_op *op, struct tarn_service *service,
                              const struct tarn_table *table)
{
    return tarn_arena_printf(op->arena, "%s/%s", tarn_store_uri(service->store),
                             tarn_table_path(table));
}

static void let_go_of_view(const void *view)
{
    tarn_table_view_unref(view);
}

struct tarn_status *tarn_service__facts(struct tarn_op *op, struct tarn_service *service,
                                        struct tarn_table *table, bool with_schema,
                                        struct tarn_table_facts *out)
{
    const struct tarn_table_view *view;
    TARN_TRY(tarn_table_look_or_last(op, table, &view));
    tarn_op_hold(op, let_go_of_view, view);
    *out = (struct tarn_table_facts){
        .uuid = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_uuid(table))),
        .main_uuid = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_main_uuid(table))),
        .uri = folder_uri(op, service, table),
        .snapshot_id = view->has_snapshot ? view->snapshot.id : 0,
        .record_count = view->has_snapshot ? view->snapshot.total_record_count : 0,
        .refuse_write = view->options.refuse_write,
        .is_compacted = tarn_table_is_compacted(table),
    };
    tarn_catalog_names_of(op, table, &out->database, &out->name);
    out->schema.id = view->schema.id;
    if (!with_schema)
        return TARN_OK;
    out->updated_ms = view->schema.time_ms;
    out->schema = view->schema;
    out->view = view;
    return tarn_table_created(op, table, view, &out->created_ms);
}

/* --- a new table --- */

static bool has_option(const struct tarn_pair *options, size_t count, struct tarn_slice key)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(options[i].key, key))
            return true;
    return false;
}

/* The options taken over, replaced and followed by those of the request. */
static void merge_options(struct tarn_op *op, const struct tarn_table_request *request,
                          struct tarn_schema *draft)
{
    struct tarn_pair *all =
        tarn_arena_calloc(op->arena, draft->option_count + request->option_count + 2, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < draft->option_count; i++)
        if (!has_option(request->options, request->option_count, draft->options[i].key))
            all[n++] = draft->options[i];
    for (size_t i = 0; i < request->option_count; i++)
        if (!has_option(request->options, i, request->options[i].key))
            all[n++] = request->options[i];
    draft->options = all; /* has room for one more: choose_defaults */
    draft->option_count = n;
}

static struct tarn_status *check_texts(const struct tarn_table_request *request)
{
    for (size_t i = 0; i < request->option_count; i++) {
        TARN_TRY(tarn_service__check_name("option key", request->options[i].key));
        TARN_TRY(tarn_service__check_name("option value", request->options[i].value));
        if (has_option(request->options, i, request->options[i].key))
            return tarn_status_new(TARN_SCHEMA_INVALID, "option %.*s is given twice",
                                   TARN_SLICE_ARG(request->options[i].key));
    }
    for (size_t i = 0; i < request->partition_key_count; i++)
        TARN_TRY(tarn_service__check_name("partition key", request->partition_keys[i]));
    for (size_t i = 0; i < request->primary_key_count; i++)
        TARN_TRY(tarn_service__check_name("primary key", request->primary_keys[i]));
    TARN_TRY(tarn_service__check_name("columns_sql", request->columns_sql));
    return tarn_service__check_name("comment", request->comment);
}

static struct tarn_status *check_field(const struct tarn_field *field)
{
    TARN_TRY(tarn_service__check_name("column name", field->name));
    TARN_TRY(tarn_service__check_name("column description", field->description));
    return tarn_service__check_name("column default", field->default_value);
}

static struct tarn_status *parse_fields(struct tarn_op *op,
                                        const struct tarn_table_request *request,
                                        struct tarn_schema *draft)
{
    if (request->field_count > TARN_COLUMNS_MAX)
        return tarn_status_new(TARN_SCHEMA_INVALID, "%zu columns, at most %d", request->field_count,
                               TARN_COLUMNS_MAX);
    struct tarn_field *fields =
        tarn_arena_calloc(op->arena, request->field_count + 1, sizeof *fields);
    for (size_t i = 0; i < request->field_count; i++) {
        fields[i] = request->fields[i];
        TARN_TRY(check_field(&fields[i]));
        struct tarn_status *s = request->field_types == NULL
                                    ? TARN_OK
                                    : tarn_type_parse(tarn_slice_str(request->field_types[i]),
                                                      op->arena, &fields[i].type);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "column %.*s", TARN_SLICE_ARG(fields[i].name));
        if (request->keep_ids)
            draft->highest_field_id = TARN_MAX(draft->highest_field_id, fields[i].id);
    }
    draft->fields = fields;
    draft->field_count = request->field_count;
    return TARN_OK;
}

static struct tarn_status *take_over_table(struct tarn_op *op, struct tarn_service *service,
                                           struct tarn_table_ref ref, struct tarn_schema *draft)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    const struct tarn_table_view *view;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    TARN_TRY(tarn_table_look(op, table, &view));
    tarn_op_hold(op, let_go_of_view, view);
    *draft = view->schema;
    draft->highest_field_id = 0; /* ids are given anew */
    return TARN_OK;
}

/* What a user sent as a schema file is wrong, not damaged. */
static struct tarn_status *decode_schema(struct tarn_op *op, struct tarn_slice json,
                                         struct tarn_schema *draft)
{
    struct tarn_status *s = tarn_schema_decode(json, op->arena, draft);
    draft->highest_field_id = 0; /* ids are given anew */
    if (s == TARN_OK)
        return TARN_OK;
    struct tarn_status *user =
        tarn_status_new(TARN_SCHEMA_INVALID, "schema_json: %s", tarn_status_message(s));
    tarn_status_free(s);
    return user;
}

static struct tarn_status *take_columns(struct tarn_op *op, struct tarn_service *service,
                                        const struct tarn_table_request *request,
                                        struct tarn_schema *draft)
{
    int sources = (request->field_count > 0) + (request->columns_sql.size > 0) +
                  (request->like != NULL) + (request->schema_json.size > 0);
    if (sources != 1)
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "the columns come from %s; give exactly one of fields, "
                               "columns_sql, like, schema_json",
                               sources == 0 ? "nowhere" : "several places");
    if (request->like != NULL)
        return take_over_table(op, service, *request->like, draft);
    if (request->schema_json.size > 0)
        return decode_schema(op, request->schema_json, draft);
    if (request->columns_sql.size > 0)
        return tarn_columns_parse(request->columns_sql, op->arena, &draft->fields,
                                  &draft->field_count);
    return parse_fields(op, request, draft);
}

/* Writers without a running assigner can't write dynamic buckets, which are Paimon's default. */
static void choose_defaults(struct tarn_op *op, struct tarn_schema *draft,
                            struct tarn_table_facts *facts)
{
    struct tarn_slice bucket = tarn_slice_str("bucket");
    bool keyed = draft->primary_key_count > 0 ||
                 has_option(draft->options, draft->option_count, tarn_slice_str("primary-key"));
    if (!keyed || has_option(draft->options, draft->option_count, bucket))
        return;
    struct tarn_pair *chosen = tarn_arena_calloc(op->arena, 1, sizeof *chosen);
    *chosen = (struct tarn_pair){bucket, tarn_slice_str("1")};
    ((struct tarn_pair *)(uintptr_t)draft->options)[draft->option_count++] = *chosen;
    facts->defaults = chosen;
    facts->default_count = 1;
}

/* What is no table of Paimon's with its files below the warehouse can't be made yet. */
static struct tarn_status *check_kind(const struct tarn_schema *draft)
{
    struct tarn_slice type = tarn_schema_option(draft, "type");
    if (tarn_schema_option(draft, "path").data != NULL)
        return tarn_status_new(TARN_UNIMPLEMENTED, "external tables: option path = %.*s",
                               TARN_SLICE_ARG(tarn_schema_option(draft, "path")));
    return type.data == NULL || tarn_slice_is(type, "table")
               ? TARN_OK
               : tarn_status_new(TARN_UNIMPLEMENTED, "tables of option type = %.*s",
                                 TARN_SLICE_ARG(type));
}

static struct tarn_status *make_draft(struct tarn_op *op, struct tarn_service *service,
                                      const struct tarn_table_request *request,
                                      struct tarn_schema *draft, struct tarn_table_facts *facts)
{
    TARN_TRY(check_texts(request));
    TARN_TRY(take_columns(op, service, request, draft));
    if (request->partition_key_count > 0) {
        draft->partition_keys = request->partition_keys;
        draft->partition_key_count = request->partition_key_count;
    }
    if (request->primary_key_count > 0) {
        draft->primary_keys = request->primary_keys;
        draft->primary_key_count = request->primary_key_count;
    }
    if (request->comment.size > 0)
        draft->comment = request->comment;
    merge_options(op, request, draft);
    if (!request->as_given)
        choose_defaults(op, draft, facts);
    return check_kind(draft);
}

struct tarn_status *tarn_service_create_table(struct tarn_op *op, struct tarn_service *service,
                                              const struct tarn_table_request *request,
                                              struct tarn_table_facts *out)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_CREATE, request->database));
    TARN_TRY(tarn_service__check_name("table name", request->name));
    struct tarn_schema draft = {0};
    struct tarn_table_facts chosen = {0};
    TARN_TRY(make_draft(op, service, request, &draft, &chosen));
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_status *s = tarn_catalog_create_table(op, service->catalog, request->database,
                                                      request->name, &draft, &table);
    if (request->ignore_if_exists && tarn_status_reason(s) == TARN_TABLE_EXISTS) {
        tarn_status_free(s);
        chosen.default_count = 0;
        s = tarn_catalog_table(op, service->catalog, request->database, request->name,
                               tarn_slice_str(NULL), &table);
    }
    TARN_TRY(s);
    TARN_TRY(tarn_service__facts(op, service, table, true, out));
    out->defaults = chosen.defaults;
    out->default_count = chosen.default_count;
    return TARN_OK;
}

/* --- looking --- */

struct tarn_status *tarn_service_get_table(struct tarn_op *op, struct tarn_service *service,
                                           struct tarn_table_ref ref, struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    return tarn_service__facts(op, service, table, true, out);
}

/* --- changing --- */

struct tarn_status *tarn_service_alter_table(struct tarn_op *op, struct tarn_service *service,
                                             struct tarn_table_ref ref,
                                             const struct tarn_schema_change *changes, size_t count,
                                             struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_ALTER, &table));
    if (count == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "changes is empty");
    TARN_TRY(tarn_catalog_alter_table(op, service->catalog, table, changes, count));
    return tarn_service__facts(op, service, table, true, out);
}

struct tarn_status *tarn_service_rename_table(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref,
                                              struct tarn_slice to_database,
                                              struct tarn_slice to_table,
                                              struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_ALTER, &table));
    struct tarn_slice database, name;
    tarn_catalog_names_of(op, table, &database, &name);
    if (to_database.size == 0)
        to_database = database;
    TARN_TRY(tarn_service__check_name("database name", to_database));
    TARN_TRY(tarn_service__check_name("table name", to_table));
    TARN_TRY(tarn_catalog_rename_table(op, service->catalog, table, to_database, to_table));
    return tarn_service__facts(op, service, table, true, out);
}

struct tarn_status *tarn_service_drop_table(struct tarn_op *op, struct tarn_service *service,
                                            struct tarn_table_ref ref, bool ignore_if_missing)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_status *s = tarn_service__table(op, service, ref, TARN_ACTION_DROP, &table);
    if (ignore_if_missing && (tarn_status_reason(s) == TARN_TABLE_NOT_FOUND ||
                              tarn_status_reason(s) == TARN_DATABASE_NOT_FOUND)) {
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_TRY(s);
    return tarn_catalog_drop_table(op, service->catalog, table);
}
