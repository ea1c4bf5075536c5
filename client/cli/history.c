#include "history.h"

#include "ask.h"

/* The history of a table: snapshots, schemas, manifests, and its options. */

const struct tarn_cli_option tarn_cli_snapshots_options[] = {
    {"limit", 0, "N", "only the first N", false},
    {0},
};
const struct tarn_cli_option tarn_cli_options_options[] = {
    {"stored", 0, NULL, "only those that the table stores", false},
    {0},
};

/* --- snapshots --- */

const struct tarn_cli_column tarn_cli_snapshot_columns[TARN_CLI_SNAPSHOT_COLUMN_COUNT] = {
    {"id", "SNAPSHOT", TARN_CLI_INT},
    {"time", "TIME", TARN_CLI_TIME},
    {"kind", "KIND", TARN_CLI_TEXT},
    {"schema", "SCHEMA", TARN_CLI_INT},
    {"total_records", "RECORDS", TARN_CLI_INT},
    {"delta_records", "CHANGE", TARN_CLI_INT},
    {"commit_user", "USER", TARN_CLI_TEXT},
    {"commit_identifier", "IDENTIFIER", TARN_CLI_INT},
    {"base_manifest_list", NULL, TARN_CLI_TEXT},
    {"delta_manifest_list", NULL, TARN_CLI_TEXT},
    {"changelog_manifest_list", NULL, TARN_CLI_TEXT},
    {"index_manifest", NULL, TARN_CLI_TEXT},
    {"watermark", NULL, TARN_CLI_INT},
    {"properties", NULL, TARN_CLI_ANY},
    {"uuid", NULL, TARN_CLI_TEXT},
};

const char *tarn_cli_kind_name(Tarn__V1__CommitKind kind)
{
    switch (kind) {
    case TARN__V1__COMMIT_KIND__APPEND:
        return "APPEND";
    case TARN__V1__COMMIT_KIND__COMPACT:
        return "COMPACT";
    case TARN__V1__COMMIT_KIND__OVERWRITE:
        return "OVERWRITE";
    case TARN__V1__COMMIT_KIND__ANALYZE:
        return "ANALYZE";
    default: /* of a later version */
        return "?";
    }
}

void tarn_cli_add_snapshot(struct tarn_cli_list *list, const Tarn__V1__Snapshot *snapshot,
                           bool for_people)
{
    tarn_cli_list_int(list, snapshot->id);
    tarn_cli_list_int(list, snapshot->time_ms);
    tarn_cli_list_text(list, tarn_cli_kind_name(snapshot->kind));
    tarn_cli_list_int(list, snapshot->schema_id);
    tarn_cli_list_int(list, snapshot->total_record_count);
    tarn_cli_list_int(list, snapshot->delta_record_count);
    tarn_cli_list_text(list, snapshot->commit_user);
    if (for_people && snapshot->commit_identifier == INT64_MAX)
        tarn_cli_list_null(list); /* a batch */
    else
        tarn_cli_list_int(list, snapshot->commit_identifier);
    tarn_cli_list_text(list, tarn_cli_or_null(snapshot->base_manifest_list));
    tarn_cli_list_text(list, tarn_cli_or_null(snapshot->delta_manifest_list));
    tarn_cli_list_text(list, tarn_cli_or_null(snapshot->changelog_manifest_list));
    tarn_cli_list_text(list, tarn_cli_or_null(snapshot->index_manifest));
    if (snapshot->_watermark_case != 0)
        tarn_cli_list_int(list, snapshot->watermark);
    else
        tarn_cli_list_null(list);
    tarn_cli_list_any(list, tarn_cli_options_json(snapshot->properties, snapshot->n_properties),
                      tarn_slice_str(""));
    tarn_cli_list_text(list, tarn_cli_or_null(snapshot->uuid));
}

struct tarn_status *tarn_cli_snapshots(struct tarn_cli *cli)
{
    Tarn__V1__ListSnapshotsRequest request = TARN__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Tarn__V1__Page page = TARN__V1__PAGE__INIT;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;
    int64_t left = INT64_MAX;

    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "limit", 0, &left)));
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.page = &page;
    do {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListSnapshotsResponse *answer = NULL;
        TARN_TRY(tarn_cli_ask(cli, "TableService/ListSnapshots", &request.base,
                              &tarn__v1__list_snapshots_response__descriptor, &answer));
        if (list == NULL)
            list =
                tarn_cli_list_new(cli, tarn_cli_snapshot_columns, TARN_CLI_SNAPSHOT_COLUMN_COUNT);
        for (size_t i = 0; i < answer->n_snapshots && left > 0; i++, left--)
            tarn_cli_add_snapshot(list, answer->snapshots[i], cli->format == TARN_CLI_TABLE);
        page.token = tarn_arena_str(cli->op.arena, tarn_slice_str(answer->next_page_token));
    } while (page.token[0] != '\0' && left > 0);
    return tarn_cli_list_end(list);
}

/* --- schemas --- */

static const struct tarn_cli_column schema_columns[] = {
    {"id", "SCHEMA", TARN_CLI_INT},
    {"time", "TIME", TARN_CLI_TIME},
    {"columns", "COLUMNS", TARN_CLI_ANY},
    {"primary_keys", "PRIMARY KEY", TARN_CLI_ANY},
    {"partition_keys", "PARTITIONED BY", TARN_CLI_ANY},
    {"options", "OPTIONS", TARN_CLI_ANY},
    {"comment", "COMMENT", TARN_CLI_TEXT},
};

static void add_schema(struct tarn_cli *cli, struct tarn_cli_list *list,
                       const Tarn__V1__SchemaVersion *schema)
{
    tarn_cli_list_int(list, schema->id);
    tarn_cli_list_int(list, schema->time_ms);
    tarn_cli_list_any(list, tarn_cli_fields_json(schema->fields, schema->n_fields),
                      tarn_cli_fields_text(cli, schema->fields, schema->n_fields));
    tarn_cli_list_any(list, tarn_cli_names_json(schema->primary_keys, schema->n_primary_keys),
                      tarn_cli_names_text(cli, schema->primary_keys, schema->n_primary_keys));
    tarn_cli_list_any(list, tarn_cli_names_json(schema->partition_keys, schema->n_partition_keys),
                      tarn_cli_names_text(cli, schema->partition_keys, schema->n_partition_keys));
    tarn_cli_list_any(list, tarn_cli_options_json(schema->options, schema->n_options),
                      tarn_cli_options_text(cli, schema->options, schema->n_options));
    tarn_cli_list_slice(list, tarn_cli_or_absent(schema->comment));
}

struct tarn_status *tarn_cli_schemas(struct tarn_cli *cli)
{
    Tarn__V1__ListSchemasRequest request = TARN__V1__LIST_SCHEMAS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListSchemasResponse *answer = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_ask(cli, "TableService/ListSchemas", &request.base,
                          &tarn__v1__list_schemas_response__descriptor, &answer));
    list = tarn_cli_list_new(cli, schema_columns, TARN_COUNT_OF(schema_columns));
    for (size_t i = 0; i < answer->n_schemas; i++)
        add_schema(cli, list, answer->schemas[i]);
    return tarn_cli_list_end(list);
}

/* --- manifests --- */

static const struct tarn_cli_column manifest_columns[] = {
    {"snapshot", NULL, TARN_CLI_INT},
    {"name", "MANIFEST", TARN_CLI_TEXT},
    {"list", "LIST", TARN_CLI_TEXT},
    {"size_bytes", "SIZE", TARN_CLI_SIZE},
    {"added_files", "ADDED", TARN_CLI_INT},
    {"deleted_files", "DELETED", TARN_CLI_INT},
    {"schema", "SCHEMA", TARN_CLI_INT},
    {"min_partition", "MIN PARTITION", TARN_CLI_TEXT},
    {"max_partition", "MAX PARTITION", TARN_CLI_TEXT},
};

struct tarn_status *tarn_cli_manifests(struct tarn_cli *cli)
{
    Tarn__V1__ListManifestsRequest request = TARN__V1__LIST_MANIFESTS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListManifestsResponse *answer = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_version(cli, &request.version));
    TARN_TRY(tarn_cli_ask(cli, "TableService/ListManifests", &request.base,
                          &tarn__v1__list_manifests_response__descriptor, &answer));
    list = tarn_cli_list_new(cli, manifest_columns, TARN_COUNT_OF(manifest_columns));
    for (size_t i = 0; i < answer->n_manifests; i++) {
        const Tarn__V1__ManifestFile *manifest = answer->manifests[i];
        tarn_cli_list_int(list, answer->snapshot_id);
        tarn_cli_list_text(list, manifest->name);
        tarn_cli_list_text(list, manifest->list);
        tarn_cli_list_int(list, manifest->size);
        tarn_cli_list_int(list, manifest->added_files);
        tarn_cli_list_int(list, manifest->deleted_files);
        tarn_cli_list_int(list, manifest->schema_id);
        tarn_cli_list_text(list, tarn_cli_or_null(manifest->min_partition));
        tarn_cli_list_text(list, tarn_cli_or_null(manifest->max_partition));
    }
    return tarn_cli_list_end(list);
}

/* --- options --- */

static const struct tarn_cli_column option_columns[] = {
    {"key", "OPTION", TARN_CLI_TEXT},      {"value", "VALUE", TARN_CLI_TEXT},
    {"default", "DEFAULT", TARN_CLI_TEXT}, {"stored", "STORED", TARN_CLI_BOOL},
    {"effect", "EFFECT", TARN_CLI_TEXT},
};

struct tarn_status *tarn_cli_options(struct tarn_cli *cli)
{
    Tarn__V1__ListOptionsRequest request = TARN__V1__LIST_OPTIONS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListOptionsResponse *answer = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;
    bool stored_only = tarn_cli_args_has(&cli->args, "stored");

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_ask(cli, "TableService/ListOptions", &request.base,
                          &tarn__v1__list_options_response__descriptor, &answer));
    list = tarn_cli_list_new(cli, option_columns, TARN_COUNT_OF(option_columns));
    for (size_t i = 0; i < answer->n_options; i++) {
        const Tarn__V1__OptionInfo *option = answer->options[i];
        if (stored_only && !option->stored)
            continue;
        tarn_cli_list_text(list, option->key);
        tarn_cli_list_text(list, option->value);
        tarn_cli_list_text(list, tarn_cli_or_null(option->default_value));
        tarn_cli_list_int(list, option->stored);
        tarn_cli_list_text(list, tarn_cli_or_null(option->effect));
    }
    return tarn_cli_list_end(list);
}
