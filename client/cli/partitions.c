#include "ask.h"
#include "print.h"

#include "tarn/v1/table.pb-c.h"

/* Partitions: those there are, and what is made, marked and dropped of them. */

const struct tarn_cli_option tarn_cli_partitions_create_options[] = {
    {"if-not-exists", 0, NULL, "fine if it is there already", false},
    {0},
};
const struct tarn_cli_option tarn_cli_partitions_mark_options[] = {
    {"undo", 0, NULL, "it isn't done", false},
    {0},
};
const struct tarn_cli_option tarn_cli_partitions_drop_options[] = {
    {"if-exists", 0, NULL, "fine if it isn't there", false},
    {0},
};

/* --- list --- */

static const struct tarn_cli_column columns[] = {
    {"partition", "PARTITION", TARN_CLI_TEXT}, {"values", NULL, TARN_CLI_ANY},
    {"records", "RECORDS", TARN_CLI_INT},      {"files", "FILES", TARN_CLI_INT},
    {"size_bytes", "SIZE", TARN_CLI_SIZE},     {"buckets", "BUCKETS", TARN_CLI_INT},
    {"last_file", "LAST FILE", TARN_CLI_TIME}, {"done", "DONE", TARN_CLI_TIME},
    {"created", NULL, TARN_CLI_TIME},
};

static struct tarn_json *values_json(const Tarn__V1__PartitionInfo *info)
{
    struct tarn_json *object = tarn_json_object();
    for (size_t i = 0; i < info->n_values; i++) {
        TARN_OWN(tarn_free_drop) char *key =
            tarn_slice_dup(tarn_cli_slice(info->values[i]->column));
        tarn_json_set(object, key,
                      info->values[i]->is_null
                          ? tarn_json_null()
                          : tarn_json_string(tarn_cli_slice(info->values[i]->value)));
    }
    return object;
}

struct tarn_status *tarn_cli_partitions(struct tarn_cli *cli)
{
    Tarn__V1__ListPartitionsRequest request = TARN__V1__LIST_PARTITIONS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListPartitionsResponse *answer = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_version(cli, &request.version));
    TARN_TRY(tarn_cli_ask(cli, "TableService/ListPartitions", &request.base,
                          &tarn__v1__list_partitions_response__descriptor, &answer));
    list = tarn_cli_list_new(cli, columns, TARN_COUNT_OF(columns));
    for (size_t i = 0; i < answer->n_partitions; i++) {
        const Tarn__V1__PartitionInfo *info = answer->partitions[i];
        tarn_cli_list_text(list, tarn_cli_or_null(info->partition));
        tarn_cli_list_any(list, values_json(info), tarn_slice_str(""));
        tarn_cli_list_int(list, info->record_count);
        tarn_cli_list_int(list, info->file_count);
        tarn_cli_list_int(list, info->size);
        tarn_cli_list_int_or_null(list, info->bucket_count > 0, info->bucket_count);
        tarn_cli_list_int_or_null(list, info->last_file_time_ms > 0, info->last_file_time_ms);
        tarn_cli_list_int_or_null(list, info->_done_case != 0, info->done_ms);
        tarn_cli_list_int_or_null(list, info->_created_case != 0, info->created_ms);
    }
    return tarn_cli_list_end(list);
}

/* --- changing them --- */

struct tarn_status *tarn_cli_partition(struct tarn_cli *cli, const char *text, const char *what,
                                       Tarn__V1__PartitionValue ***out, size_t *count)
{
    struct tarn_slice *parts = NULL;
    size_t part_count = 0;

    struct tarn_status *status = tarn_cli_names(cli->op.arena, text, &parts, &part_count);
    if (status != NULL)
        return tarn_cli_misused(cli, tarn_status_wrap(status, "%s", what));
    *out = tarn_arena_calloc(cli->op.arena, part_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < part_count; i++) {
        Tarn__V1__PartitionValue *value = tarn_arena_alloc(cli->op.arena, sizeof *value);
        struct tarn_slice key, v;
        tarn__v1__partition_value__init(value);
        TARN_TRY(tarn_cli_misused(cli, tarn_cli_pair((const char *)parts[i].data, what, &key, &v)));
        bool quoted = v.size >= 2 && v.data[0] == '\'' && v.data[v.size - 1] == '\'';
        value->is_null = tarn_slice_is(v, "null");
        value->column = tarn_cli_bytes(key);
        value->value = tarn_cli_bytes(quoted ? tarn_slice_of(v.data + 1, v.size - 2) : v);
        (*out)[(*count)++] = value;
    }
    return TARN_OK;
}

/* The words behind the table. */
static struct tarn_status *take_specs(struct tarn_cli *cli, Tarn__V1__PartitionSpec ***out,
                                      size_t *count)
{
    *count = 0;
    *out = tarn_arena_calloc(cli->op.arena, cli->args.word_count + 1, sizeof **out);
    for (size_t i = 1; i < cli->args.word_count; i++) {
        Tarn__V1__PartitionSpec *spec = tarn_arena_alloc(cli->op.arena, sizeof *spec);
        tarn__v1__partition_spec__init(spec);
        TARN_TRY(tarn_cli_partition(cli, cli->args.words[i], "PARTITION", &spec->values,
                                    &spec->n_values));
        (*out)[(*count)++] = spec;
    }
    return TARN_OK;
}

static struct tarn_slice name_text(struct tarn_cli *cli, const Tarn__V1__PartitionName *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < name->n_values; i++)
        tarn_buf_printf(&text, "%s%.*s=%.*s", i == 0 ? "" : "/",
                        TARN_SLICE_ARG(tarn_cli_slice(name->values[i]->key)),
                        TARN_SLICE_ARG(tarn_cli_slice(name->values[i]->value)));
    return tarn_arena_copy(cli->op.arena, tarn_buf_slice(&text));
}

static struct tarn_json *names_json(struct tarn_cli *cli, Tarn__V1__PartitionName *const *names,
                                    size_t count)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(array, tarn_json_string(name_text(cli, names[i])));
    return array;
}

/* verb: "dropped"; others: what the rest is, "missing". */
static struct tarn_status *ask(struct tarn_cli *cli, const char *method,
                               const ProtobufCMessage *request, const char *verb,
                               const char *others)
{
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ChangePartitionsResponse *answer = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = NULL;
    TARN_TRY(tarn_cli_ask(cli, method, request, &tarn__v1__change_partitions_response__descriptor,
                          &answer));
    if (cli->format == TARN_CLI_TABLE) {
        for (size_t i = 0; i < answer->n_changed; i++)
            tarn_cli_say(cli, "%s %.*s", verb, TARN_SLICE_ARG(name_text(cli, answer->changed[i])));
        for (size_t i = 0; i < answer->n_others; i++)
            tarn_cli_say(cli, "%s %.*s", others, TARN_SLICE_ARG(name_text(cli, answer->others[i])));
        if (answer->snapshot_id != 0)
            tarn_cli_say(cli, "snapshot %" PRId64, answer->snapshot_id);
        return TARN_OK;
    }
    record = tarn_cli_record_new(cli);
    tarn_cli_record_any(record, verb, NULL, names_json(cli, answer->changed, answer->n_changed),
                        tarn_slice_str(""));
    tarn_cli_record_any(record, others, NULL, names_json(cli, answer->others, answer->n_others),
                        tarn_slice_str(""));
    if (answer->snapshot_id != 0)
        tarn_cli_record_int(record, "snapshot", NULL, TARN_CLI_INT, answer->snapshot_id);
    return tarn_cli_record_end(record);
}

struct tarn_status *tarn_cli_partitions_create(struct tarn_cli *cli)
{
    Tarn__V1__CreatePartitionsRequest request = TARN__V1__CREATE_PARTITIONS_REQUEST__INIT;
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(take_specs(cli, &request.partitions, &request.n_partitions));
    request.ignore_if_exists = tarn_cli_args_has(&cli->args, "if-not-exists");
    request.request_id = tarn_cli_request_id(cli);
    return ask(cli, "TableService/CreatePartitions", &request.base, "created", "existed");
}

struct tarn_status *tarn_cli_partitions_mark(struct tarn_cli *cli)
{
    Tarn__V1__MarkPartitionsRequest request = TARN__V1__MARK_PARTITIONS_REQUEST__INIT;
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(take_specs(cli, &request.partitions, &request.n_partitions));
    request.undo = tarn_cli_args_has(&cli->args, "undo");
    request.request_id = tarn_cli_request_id(cli);
    return ask(cli, "TableService/MarkPartitions", &request.base,
               request.undo ? "unmarked" : "marked", "missing");
}

struct tarn_status *tarn_cli_partitions_drop(struct tarn_cli *cli)
{
    Tarn__V1__DropPartitionsRequest request = TARN__V1__DROP_PARTITIONS_REQUEST__INIT;
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(take_specs(cli, &request.partitions, &request.n_partitions));
    request.ignore_if_missing = tarn_cli_args_has(&cli->args, "if-exists");
    request.request_id = tarn_cli_request_id(cli);
    return ask(cli, "TableService/DropPartitions", &request.base, "dropped", "missing");
}
