#include "service/internal.h"

/* Tables: what is known of one, and the draft a new one is made of. */

static const char *folder_uri(struct tarn_op *op, const struct tarn_table *table)
{
    return tarn_arena_printf(op->arena, "%s/%s", tarn_store_uri(tarn_table_store(table)),
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
        .uri = folder_uri(op, table),
        .is_external = tarn_catalog_is_external(service->catalog, table),
        .snapshot_id = view->has_snapshot ? view->snapshot.id : 0,
        .record_count =
            view->has_snapshot ? TARN_MAX(view->snapshot.total_record_count, (int64_t)0) : 0,
        .refuse_write = view->options.refuse_write,
        .is_compacted = tarn_table_is_compacted(table),
    };
    tarn_table_names(op, table, &out->database, &out->name);
    out->schema.id = view->schema.id;
    if (!with_schema)
        return TARN_OK;
    out->updated_ms = view->schema.time_ms;
    out->schema = view->schema;
    out->view = view;
    return tarn_table_created(op, table, view, &out->created_ms);
}

void tarn_service__entry_facts(struct tarn_op *op, struct tarn_service *service,
                               const struct tarn_catalog_entry *entry, struct tarn_table_facts *out)
{
    *out = (struct tarn_table_facts){
        .database = entry->database,
        .name = entry->name,
        .uuid = tarn_arena_str(op->arena, tarn_slice_str(entry->uuid)),
        .main_uuid = tarn_arena_str(op->arena, tarn_slice_str(entry->uuid)),
        .uri = tarn_catalog_entry_uri(op, service->catalog, entry),
        .is_external = entry->location.data != NULL,
        .schema = entry->schema,
        .is_entry = true,
        .created_ms = entry->created_ms,
        .updated_ms = entry->updated_ms,
        .refuse_write = tarn_slice_str("type: engines read and write its files by themselves"),
    };
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
    draft->options = all; /* has room for two more: choose */
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
    return tarn_status_wrap(tarn_status_as(s, TARN_SCHEMA_INVALID), "schema_json");
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

static void choose(struct tarn_op *op, struct tarn_schema *draft, struct tarn_table_facts *facts,
                   const char *key, const char *value)
{
    struct tarn_pair *chosen =
        tarn_arena_calloc(op->arena, facts->default_count + 1, sizeof *chosen);
    for (size_t i = 0; i < facts->default_count; i++)
        chosen[i] = facts->defaults[i];
    struct tarn_pair pair = {tarn_slice_str(key), tarn_slice_str(value)};
    chosen[facts->default_count++] = pair;
    facts->defaults = chosen;
    ((struct tarn_pair *)(uintptr_t)draft->options)[draft->option_count++] = pair;
}

/* Writers without a running assigner can't write dynamic buckets, which are Paimon's default. */
static void choose_bucket(struct tarn_op *op, struct tarn_schema *draft,
                          struct tarn_table_facts *facts)
{
    bool keyed =
        draft->primary_key_count > 0 || tarn_schema_option(draft, "primary-key").data != NULL;
    if (keyed && tarn_schema_option(draft, "bucket").data == NULL)
        choose(op, draft, facts, "bucket", "1");
}

/* Writers compact, and expire, unless a table is write-only: it is where the daemon does all of that, and nobody asked for something else. */
static void choose_writers(struct tarn_op *op, struct tarn_schema *draft,
                           struct tarn_table_facts *facts)
{
    struct tarn_options options;
    if (tarn_schema_option(draft, "write-only").data != NULL ||
        tarn_schema_option(draft, "write.compaction-skip").data != NULL)
        return;
    struct tarn_status *s = tarn_options_parse(draft, op->arena, &options);
    if (s == TARN_OK && tarn_maintain_lacks(draft, &options) == NULL)
        choose(op, draft, facts, "write-only", "true");
    tarn_status_free(s); /* creating says it again */
}

/* --- of which kind --- */

#define OBJECT_COLUMNS                                                                             \
    "path STRING NOT NULL, name STRING NOT NULL, length BIGINT NOT NULL, mtime BIGINT NOT NULL, "  \
    "atime BIGINT NOT NULL, owner STRING"

static bool is_kind(struct tarn_slice type, const char *kind)
{
    return type.size == strlen(kind) && strncasecmp((const char *)type.data, kind, type.size) == 0;
}

static struct tarn_status *check_format(const struct tarn_schema *draft)
{
    static const char *const formats[] = {"parquet", "orc", "csv", "json", "text"};
    struct tarn_slice format = tarn_schema_option(draft, "file.format"),
                      listed = tarn_schema_option(draft, "metastore.partitioned-table");
    bool known = format.data == NULL;
    for (size_t i = 0; i < TARN_COUNT_OF(formats); i++)
        known = known || is_kind(format, formats[i]);
    if (!known)
        return tarn_status_new(
            TARN_SCHEMA_INVALID,
            "file.format = %.*s: a format table has parquet, orc, csv, json or text",
            TARN_SLICE_ARG(format));
    if (draft->primary_key_count > 0)
        return tarn_status_new(TARN_SCHEMA_INVALID, "a format table has no primary key");
    if (listed.data != NULL && is_kind(listed, "true"))
        return tarn_status_new(
            TARN_UNIMPLEMENTED,
            "metastore.partitioned-table = true of format tables: leave it out, and "
            "engines list the folders");
    return TARN_OK;
}

static struct tarn_status *check_object_columns(struct tarn_op *op, struct tarn_schema *draft)
{
    const struct tarn_field *fields;
    size_t count;
    TARN_TRY(tarn_columns_parse(tarn_slice_str(OBJECT_COLUMNS), op->arena, &fields, &count));
    bool same = draft->field_count == 0 || draft->field_count == count;
    for (size_t i = 0; same && i < draft->field_count; i++)
        same = tarn_slice_equal(draft->fields[i].name, fields[i].name) &&
               tarn_type_equal(draft->fields[i].type, fields[i].type, false);
    if (!same || draft->partition_key_count > 0 || draft->primary_key_count > 0)
        return tarn_status_new(TARN_SCHEMA_INVALID, "an object table has columns " OBJECT_COLUMNS
                                                    " and no keys: leave them out");
    draft->fields = fields;
    draft->field_count = count;
    draft->highest_field_id = 0; /* ids are given anew */
    return TARN_OK;
}

/* *entry_only: it is no table of Paimon's. */
static struct tarn_status *check_kind(struct tarn_op *op, struct tarn_schema *draft,
                                      bool *entry_only)
{
    struct tarn_slice type = tarn_schema_option(draft, "type");
    *entry_only = true;
    if (is_kind(type, "format-table"))
        return check_format(draft);
    if (is_kind(type, "object-table"))
        return check_object_columns(op, draft);
    *entry_only = false;
    return type.data == NULL || is_kind(type, "table")
               ? TARN_OK
               : tarn_status_new(TARN_UNIMPLEMENTED, "tables of option type = %.*s",
                                 TARN_SLICE_ARG(type));
}

/* Option path is said by where the table is, and not kept among the others. */
static struct tarn_slice take_path(struct tarn_schema *draft)
{
    struct tarn_slice path = tarn_schema_option(draft, "path");
    struct tarn_pair *options =
        (struct tarn_pair *)(uintptr_t)draft->options; /* of merge_options */
    size_t kept = 0;
    for (size_t i = 0; i < draft->option_count; i++)
        if (!tarn_slice_is(options[i].key, "path"))
            options[kept++] = options[i];
    draft->option_count = kept;
    return path;
}

/* What a request makes. */
struct making {
    struct tarn_schema draft;
    struct tarn_slice path; /* option path; absent: in the warehouse */
    bool entry_only;
    struct tarn_table_facts chosen;
};

/* Their columns are known. */
static bool may_lack_columns(const struct tarn_table_request *request)
{
    for (size_t i = 0; i < request->option_count; i++)
        if (tarn_slice_is(request->options[i].key, "type"))
            return is_kind(request->options[i].value, "object-table") &&
                   request->field_count == 0 && request->columns_sql.size == 0 &&
                   request->like == NULL && request->schema_json.size == 0;
    return false;
}

static struct tarn_status *make_draft(struct tarn_op *op, struct tarn_service *service,
                                      const struct tarn_table_request *request, struct making *out)
{
    struct tarn_schema *draft = &out->draft;
    TARN_TRY(check_texts(request));
    if (!may_lack_columns(request))
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
    out->path = take_path(draft);
    TARN_TRY(check_kind(op, draft, &out->entry_only));
    if (out->entry_only || out->path.size > 0)
        return TARN_OK;
    if (!request->as_given)
        choose_bucket(op, draft, &out->chosen);
    choose_writers(op, draft, &out->chosen);
    return TARN_OK;
}

/* What there is of that name. */
static struct tarn_status *facts_of(struct tarn_op *op, struct tarn_service *service,
                                    struct tarn_table_ref ref, enum tarn_action action,
                                    struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_catalog_entry *entry;
    TARN_TRY(tarn_service__find(op, service, ref, action, &table, &entry));
    if (entry == NULL)
        return tarn_service__facts(op, service, table, true, out);
    tarn_service__entry_facts(op, service, entry, out);
    return TARN_OK;
}

static struct tarn_status *make(struct tarn_op *op, struct tarn_service *service,
                                const struct tarn_table_request *request,
                                const struct making *making, struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_catalog_entry entry;
    struct tarn_catalog *catalog = service->catalog;
    if (making->entry_only) {
        TARN_TRY(tarn_catalog_create_entry(op, catalog, request->database, request->name,
                                           &making->draft, making->path, &entry));
        tarn_service__entry_facts(op, service, &entry, out);
        return TARN_OK;
    }
    TARN_TRY(making->path.size > 0
                 ? tarn_catalog_create_external(op, catalog, request->database, request->name,
                                                &making->draft, making->path, &table)
                 : tarn_catalog_create_table(op, catalog, request->database, request->name,
                                             &making->draft, &table));
    return tarn_service__facts(op, service, table, true, out);
}

struct tarn_status *tarn_service_create_table(struct tarn_op *op, struct tarn_service *service,
                                              const struct tarn_table_request *request,
                                              struct tarn_table_facts *out)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_CREATE, request->database));
    TARN_TRY(tarn_service__check_name("table name", request->name));
    struct making making = {0};
    TARN_TRY(make_draft(op, service, request, &making));
    struct tarn_status *s = make(op, service, request, &making, out);
    if (request->ignore_if_exists && tarn_status_reason(s) == TARN_TABLE_EXISTS) {
        struct tarn_table_ref ref = {.database = request->database, .table = request->name};
        tarn_status_free(s);
        return facts_of(op, service, ref, TARN_ACTION_CREATE, out);
    }
    TARN_TRY(s);
    out->defaults = making.chosen.defaults;
    out->default_count = making.chosen.default_count;
    return TARN_OK;
}

/* --- looking --- */

struct tarn_status *tarn_service_get_table(struct tarn_op *op, struct tarn_service *service,
                                           struct tarn_table_ref ref, struct tarn_table_facts *out)
{
    return facts_of(op, service, ref, TARN_ACTION_READ, out);
}

/* --- changing --- */

static struct tarn_status *alter_entry(struct tarn_op *op, struct tarn_service *service,
                                       struct tarn_catalog_entry *entry,
                                       const struct tarn_schema_change *changes, size_t count,
                                       struct tarn_table_facts *out)
{
    bool fixed = is_kind(tarn_schema_option(&entry->schema, "type"), "object-table");
    for (size_t i = 0; fixed && i < count; i++)
        if (changes[i].kind != TARN_CHANGE_SET_OPTION &&
            changes[i].kind != TARN_CHANGE_REMOVE_OPTION && changes[i].kind != TARN_CHANGE_COMMENT)
            return tarn_status_new(TARN_SCHEMA_INVALID,
                                   "the columns of an object table can't be changed");
    TARN_TRY(tarn_catalog_alter_entry(op, service->catalog, entry->database, entry->name, changes,
                                      count, entry));
    tarn_service__entry_facts(op, service, entry, out);
    return TARN_OK;
}

struct tarn_status *tarn_service_alter_table(struct tarn_op *op, struct tarn_service *service,
                                             struct tarn_table_ref ref,
                                             const struct tarn_schema_change *changes, size_t count,
                                             struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_catalog_entry *entry;
    TARN_TRY(tarn_service__find(op, service, ref, TARN_ACTION_ALTER, &table, &entry));
    if (count == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "changes is empty");
    if (entry != NULL)
        return alter_entry(op, service, entry, changes, count, out);
    TARN_TRY(tarn_catalog_alter_table(op, service->catalog, table, changes, count));
    return tarn_service__facts(op, service, table, true, out);
}

struct tarn_status *tarn_service_register_table(struct tarn_op *op, struct tarn_service *service,
                                                struct tarn_slice database, struct tarn_slice name,
                                                struct tarn_slice path,
                                                struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_CREATE, database));
    TARN_TRY(tarn_service__check_name("table name", name));
    TARN_TRY(tarn_service__check_name("path", path));
    TARN_TRY(tarn_catalog_register_table(op, service->catalog, database, name, path, &table));
    return tarn_service__facts(op, service, table, true, out);
}

struct tarn_status *tarn_service_replace_table(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_table_ref ref,
                                               const struct tarn_table_request *request,
                                               struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct making making = {0};
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_ALTER, &table));
    TARN_TRY(make_draft(op, service, request, &making));
    if (making.entry_only || making.path.size > 0)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s stays of its type, and where it is, when it is replaced; "
                               "drop it and make it anew",
                               tarn_table_name(table));
    TARN_TRY(tarn_table_look(op, table, &view));
    TARN_TRY(tarn_options_check_commit(
        &view->options)); /* it is emptied, which not every table can be */
    TARN_TRY(tarn_catalog_replace_table(op, service->catalog, table, &making.draft));
    TARN_TRY(tarn_service__facts(op, service, table, true, out));
    out->defaults = making.chosen.defaults;
    out->default_count = making.chosen.default_count;
    return TARN_OK;
}

struct tarn_status *tarn_service_rename_table(struct tarn_op *op, struct tarn_service *service,
                                              struct tarn_table_ref ref,
                                              struct tarn_slice to_database,
                                              struct tarn_slice to_table,
                                              struct tarn_table_facts *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_catalog_entry *entry;
    TARN_TRY(tarn_service__find(op, service, ref, TARN_ACTION_ALTER, &table, &entry));
    struct tarn_slice database, name;
    if (entry != NULL)
        database = entry->database;
    else
        tarn_table_names(op, table, &database, &name);
    if (to_database.size == 0)
        to_database = database;
    TARN_TRY(tarn_service__check_name("database name", to_database));
    TARN_TRY(tarn_service__check_name("table name", to_table));
    if (entry != NULL) {
        TARN_TRY(tarn_catalog_rename_entry(op, service->catalog, entry->database, entry->name,
                                           to_database, to_table, entry));
        tarn_service__entry_facts(op, service, entry, out);
        return TARN_OK;
    }
    TARN_TRY(tarn_catalog_rename_table(op, service->catalog, table, ref.database, ref.table,
                                       to_database, to_table));
    return tarn_service__facts(op, service, table, true, out);
}

struct tarn_status *tarn_service_drop_table(struct tarn_op *op, struct tarn_service *service,
                                            struct tarn_table_ref ref, bool ignore_if_missing)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_catalog_entry *entry;
    struct tarn_status *s = tarn_service__find(op, service, ref, TARN_ACTION_DROP, &table, &entry);
    if (tarn_status_reason(s) == TARN_OBJECT_DAMAGED) {
        tarn_status_free(s); /* what is left of it can still be dropped */
        return tarn_catalog_drop_entry(op, service->catalog, ref.database, ref.table);
    }
    if (ignore_if_missing && (tarn_status_reason(s) == TARN_TABLE_NOT_FOUND ||
                              tarn_status_reason(s) == TARN_DATABASE_NOT_FOUND)) {
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_TRY(s);
    if (entry != NULL)
        return tarn_catalog_drop_entry(op, service->catalog, entry->database, entry->name);
    TARN_TRY(tarn_catalog_drop_table(op, service->catalog, table, ref.database, ref.table));
    tarn_maintain_forget(service->maintain, table);
    return TARN_OK;
}
