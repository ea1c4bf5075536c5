#include "table.h"
#include "upload.h"

#define DEFINITION                                                                                 \
    {"columns", 0, "SQL", "the columns: 'id BIGINT NOT NULL, name STRING'", false},                \
        {"like", 0, "DATABASE.TABLE", "columns, keys and options of that table", false},           \
        {"schema-file", 0, "FILE", "those of a Paimon schema file (schema-0)", false},             \
        {"from-file", 0, "FILE", "the columns of a Parquet or Arrow file", false},                 \
        {"primary-key", 0, "A,B", "its primary key", false},                                       \
        {"partition-by", 0, "A,B", "the columns it is partitioned by", false},                     \
        {"option", 0, "KEY=VALUE", "a table option, as bucket=4", true},                           \
    {                                                                                              \
        "comment", 0, "TEXT", "what it is for", false                                              \
    }
const struct tarn_cli_option tarn_cli_table_create_options[] = {
    DEFINITION,
    {"if-not-exists", 0, NULL, "fine where it is already there", false},
    {0},
};
const struct tarn_cli_option tarn_cli_table_replace_options[] = {DEFINITION, {0}};

/* --- the columns of a file: the daemon's worker reads them --- */

static struct tarn_status *send_file(struct tarn_cli *cli, struct tarn_client_stream *stream,
                                     const struct tarn_cli_source *source)
{
    struct tarn_cli_progress progress;
    int64_t sent = 0;

    tarn_cli_progress_start(&progress, cli, "read columns", true, tarn_cli_source_size(source));
    struct tarn_status *status = tarn_cli_upload(cli, stream, source, &progress, &sent);
    tarn_cli_progress_end(&progress);
    TARN_TRY(status);
    return tarn_client_stream_done(stream);
}

static struct tarn_status *infer(struct tarn_cli *cli, const char *path,
                                 Tarn__V1__InferResponse **out)
{
    struct tarn_cli_source source;
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__InferResponse *more = NULL;

    TARN_TRY(tarn_cli_source_of(cli, path, NULL, &source));
    if (source.format != TARN__V1__DATA_FORMAT__PARQUET &&
        source.format != TARN__V1__DATA_FORMAT__ARROW)
        return tarn_cli_usage(cli,
                              "%s does not name the types of its columns (Parquet and Arrow "
                              "do): use --columns",
                              path);
    TARN_TRY(tarn_cli_connect(cli));
    TARN_TRY(tarn_client_stream_open(cli->client, &cli->op, "DataService/Infer", &stream));
    TARN_TRY(send_file(cli, stream, &source));
    TARN_TRY(tarn_cli_next(stream, &tarn__v1__infer_response__descriptor, out));
    if (*out == NULL)
        return tarn_status_new(TARN_INTERNAL, "the server answered with no columns");
    return tarn_cli_next(stream, &tarn__v1__infer_response__descriptor, &more);
}

/* --- the request --- */

/* Its columns are always the same. */
static bool is_object_table(const Tarn__V1__CreateTableRequest *request)
{
    for (size_t i = 0; i < request->n_options; i++)
        if (tarn_slice_is(tarn_cli_slice(request->options[i]->key), "type"))
            return tarn_slice_is(tarn_cli_slice(request->options[i]->value), "object-table");
    return false;
}

static struct tarn_status *check_source(struct tarn_cli *cli,
                                        const Tarn__V1__CreateTableRequest *request)
{
    static const char *const names[] = {"columns", "like", "schema-file", "from-file"};
    int count = 0;
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++)
        count += tarn_cli_args_has(&cli->args, names[i]);
    if (count != 1 && !(count == 0 && is_object_table(request)))
        return tarn_cli_usage(cli, "%s needs %s of --columns, --like, --schema-file, --from-file",
                              cli->command->name, count == 0 ? "one" : "only one");
    return TARN_OK;
}

static struct tarn_status *make_request(struct tarn_cli *cli, Tarn__V1__CreateTableRequest *request,
                                        Tarn__V1__InferResponse **inferred)
{
    const char *like = tarn_cli_args_text(&cli->args, "like");
    const char *schema_file = tarn_cli_args_text(&cli->args, "schema-file");
    const char *from_file = tarn_cli_args_text(&cli->args, "from-file");
    Tarn__V1__TableRef *table = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &table));
    TARN_TRY(tarn_cli_option_names(cli, "primary-key", &request->primary_keys,
                                   &request->n_primary_keys));
    TARN_TRY(tarn_cli_option_names(cli, "partition-by", &request->partition_keys,
                                   &request->n_partition_keys));
    TARN_TRY(tarn_cli_option_pairs(cli, "option", &request->options, &request->n_options));
    TARN_TRY(check_source(cli, request));
    request->database = table->database;
    request->table = table->table;
    request->columns_sql = tarn_cli_bytes_str(tarn_cli_args_text(&cli->args, "columns"));
    request->comment = tarn_cli_bytes_str(tarn_cli_args_text(&cli->args, "comment"));
    request->request_id = tarn_cli_request_id(cli);
    if (like != NULL)
        TARN_TRY(tarn_cli_table_ref(cli, like, &request->like));
    if (schema_file != NULL)
        TARN_TRY(tarn_cli_read_file(cli, schema_file, &request->schema_json));
    if (from_file != NULL) {
        TARN_TRY(infer(cli, from_file, inferred));
        request->fields = (*inferred)->fields;
        request->n_fields = (*inferred)->n_fields;
    }
    return TARN_OK;
}

struct tarn_status *tarn_cli_table_create(struct tarn_cli *cli)
{
    Tarn__V1__CreateTableRequest request = TARN__V1__CREATE_TABLE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__InferResponse *inferred = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Table *made = NULL;

    TARN_TRY(make_request(cli, &request, &inferred));
    request.ignore_if_exists = tarn_cli_args_has(&cli->args, "if-not-exists");
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/CreateTable", &request.base,
                          &tarn__v1__table__descriptor, &made));
    return tarn_cli_show_made(cli, "created", made);
}

struct tarn_status *tarn_cli_table_replace(struct tarn_cli *cli)
{
    Tarn__V1__ReplaceTableRequest request = TARN__V1__REPLACE_TABLE_REQUEST__INIT;
    Tarn__V1__CreateTableRequest definition = TARN__V1__CREATE_TABLE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__InferResponse *inferred = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Table *made = NULL;

    TARN_TRY(make_request(cli, &definition, &inferred));
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.definition = &definition;
    request.request_id = definition.request_id;
    TARN_TRY(tarn_cli_ask(cli, "CatalogService/ReplaceTable", &request.base,
                          &tarn__v1__table__descriptor, &made));
    return tarn_cli_show_made(cli, "replaced", made);
}
