#include <errno.h>

#include "ask.h"
#include "print.h"

#include "tarn/v1/table.pb-c.h"

/* What a version of a table consists of: files, buckets, and what a scan would read. */

const struct tarn_cli_option tarn_cli_version_options[] = {TARN_CLI_VERSION_OPTIONS, {0}};
const struct tarn_cli_option tarn_cli_files_options[] = {
    {"where", 0, "EXPR", "files that may hold rows for which this holds", false},
    TARN_CLI_VERSION_OPTIONS,
    {0},
};
const struct tarn_cli_option tarn_cli_plan_options[] = {
    {"where", 0, "EXPR", "the condition of the scan", false},
    {"explain", 0, NULL, "each split and its files", false},
    {"limit", 0, "N", "no more files than surely hold N rows", false},
    {"changes", 0, "FROM[..TO]", "what changed after snapshot FROM, up to TO or the latest", false},
    {"how", 0, "HOW", "of changes: auto, delta, changelog or diff", false},
    {"pin", 0, "SECONDS", "keep the snapshot from expiry for so long", false},
    TARN_CLI_VERSION_OPTIONS,
    {0},
};

/* --- files --- */

static const struct tarn_cli_column file_columns[] = {
    {"partition", "PARTITION", TARN_CLI_TEXT},
    {"bucket", "BUCKET", TARN_CLI_INT},
    {"level", "LEVEL", TARN_CLI_INT},
    {"file", "FILE", TARN_CLI_TEXT},
    {"path", NULL, TARN_CLI_TEXT},
    {"size_bytes", "SIZE", TARN_CLI_SIZE},
    {"rows", "ROWS", TARN_CLI_INT},
    {"deletes", NULL, TARN_CLI_INT},
    {"min_key", "MIN KEY", TARN_CLI_TEXT},
    {"max_key", "MAX KEY", TARN_CLI_TEXT},
    {"min_sequence", NULL, TARN_CLI_INT},
    {"max_sequence", NULL, TARN_CLI_INT},
    {"schema", NULL, TARN_CLI_INT},
    {"source", NULL, TARN_CLI_TEXT},
    {"added_by", "SNAPSHOT", TARN_CLI_INT},
    {"created", "CREATED", TARN_CLI_TIME},
};

static void add_file(struct tarn_cli_list *list, const Tarn__V1__FileInfo *info)
{
    Tarn__V1__DataFile none;
    tarn__v1__data_file__init(&none);
    const Tarn__V1__DataFile *file = info->file != NULL ? info->file : &none;

    tarn_cli_list_text(list, tarn_cli_or_null(info->partition));
    tarn_cli_list_int(list, info->bucket);
    tarn_cli_list_int(list, info->level);
    tarn_cli_list_slice(list, tarn_cli_slice(file->name));
    tarn_cli_list_text(list, tarn_cli_or_null(info->path));
    tarn_cli_list_int(list, file->size);
    tarn_cli_list_int(list, file->row_count);
    tarn_cli_list_int_or_null(list, file->_delete_row_count_case != 0, file->delete_row_count);
    tarn_cli_list_text(list, tarn_cli_or_null(info->min_key));
    tarn_cli_list_text(list, tarn_cli_or_null(info->max_key));
    tarn_cli_list_int(list, file->min_sequence);
    tarn_cli_list_int(list, file->max_sequence);
    tarn_cli_list_int(list, file->schema_id);
    tarn_cli_list_text(list, file->source == 0 ? "append" : file->source == 1 ? "compact" : NULL);
    tarn_cli_list_int_or_null(list, info->added_by > 0, info->added_by);
    tarn_cli_list_int(list, file->_creation_time_case != 0 ? file->creation_time_ms : 0);
}

struct tarn_status *tarn_cli_files(struct tarn_cli *cli)
{
    Tarn__V1__ListFilesRequest request = TARN__V1__LIST_FILES_REQUEST__INIT;
    const char *where = tarn_cli_args_text(&cli->args, "where");
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_version(cli, &request.version));
    if (where != NULL)
        request.where = (char *)(uintptr_t)where;
    TARN_TRY(tarn_cli_ask_stream(cli, "TableService/ListFiles", &request.base, &stream));
    for (;;) {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListFilesResponse *answer = NULL;
        TARN_TRY(tarn_cli_next(stream, &tarn__v1__list_files_response__descriptor, &answer));
        if (list == NULL)
            list = tarn_cli_list_new(cli, file_columns, TARN_COUNT_OF(file_columns));
        if (answer == NULL)
            return tarn_cli_list_end(list);
        for (size_t i = 0; i < answer->n_files; i++)
            add_file(list, answer->files[i]);
    }
}

/* --- buckets --- */

static const struct tarn_cli_column bucket_columns[] = {
    {"partition", "PARTITION", TARN_CLI_TEXT}, {"bucket", "BUCKET", TARN_CLI_INT},
    {"records", "RECORDS", TARN_CLI_INT},      {"deletes", "DELETES", TARN_CLI_INT},
    {"files", "FILES", TARN_CLI_INT},          {"size_bytes", "SIZE", TARN_CLI_SIZE},
    {"sorted_runs", "RUNS", TARN_CLI_INT},     {"levels", "LEVELS", TARN_CLI_INT},
    {"last_file", "LAST FILE", TARN_CLI_TIME},
};

struct tarn_status *tarn_cli_buckets(struct tarn_cli *cli)
{
    Tarn__V1__ListBucketsRequest request = TARN__V1__LIST_BUCKETS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListBucketsResponse *answer = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_version(cli, &request.version));
    TARN_TRY(tarn_cli_ask(cli, "TableService/ListBuckets", &request.base,
                          &tarn__v1__list_buckets_response__descriptor, &answer));
    list = tarn_cli_list_new(cli, bucket_columns, TARN_COUNT_OF(bucket_columns));
    for (size_t i = 0; i < answer->n_buckets; i++) {
        const Tarn__V1__BucketInfo *info = answer->buckets[i];
        tarn_cli_list_text(list, tarn_cli_or_null(info->partition));
        tarn_cli_list_int(list, info->bucket);
        tarn_cli_list_int(list, info->record_count);
        tarn_cli_list_int(list, info->delete_row_count);
        tarn_cli_list_int(list, info->file_count);
        tarn_cli_list_int(list, info->size);
        tarn_cli_list_int(list, info->sorted_runs);
        tarn_cli_list_int(list, info->levels);
        tarn_cli_list_int(list, info->last_file_time_ms);
    }
    return tarn_cli_list_end(list);
}

/* --- plan --- */

static const struct tarn_cli_column split_columns[] = {
    {"path", "SPLIT", TARN_CLI_TEXT},  {"bucket", NULL, TARN_CLI_INT},
    {"merge", "MERGE", TARN_CLI_BOOL}, {"changelog", NULL, TARN_CLI_BOOL},
    {"before", NULL, TARN_CLI_ANY},    {"files", "FILES", TARN_CLI_INT},
    {"rows", "ROWS", TARN_CLI_INT},    {"size_bytes", "SIZE", TARN_CLI_SIZE},
    {"names", "NAMES", TARN_CLI_ANY},
};

static void add_split(struct tarn_cli *cli, struct tarn_cli_list *list,
                      const Tarn__V1__Split *split)
{
    int64_t rows = 0, size = 0;
    ProtobufCBinaryData *names =
        tarn_arena_calloc(cli->op.arena, split->n_files + 1, sizeof *names);

    for (size_t i = 0; i < split->n_files; i++) {
        rows += split->files[i]->row_count;
        size += split->files[i]->size;
        names[i] = split->files[i]->name;
    }
    tarn_cli_list_text(list, split->path);
    tarn_cli_list_int(list, split->bucket);
    tarn_cli_list_int(list, !split->raw);
    tarn_cli_list_int(list, split->is_changelog);
    ProtobufCBinaryData *before =
        tarn_arena_calloc(cli->op.arena, split->n_before_files + 1, sizeof *before);
    for (size_t i = 0; i < split->n_before_files; i++)
        before[i] = split->before_files[i]->name;
    tarn_cli_list_any(list, tarn_cli_names_json(before, split->n_before_files),
                      tarn_cli_names_text(cli, before, split->n_before_files));
    tarn_cli_list_int(list, (int64_t)split->n_files);
    tarn_cli_list_int(list, rows);
    tarn_cli_list_int(list, size);
    tarn_cli_list_any(list, tarn_cli_names_json(names, split->n_files),
                      tarn_cli_names_text(cli, names, split->n_files));
}

static void add_summary(struct tarn_cli_record *r, const Tarn__V1__PlanSummary *s)
{
    tarn_cli_record_int(r, "snapshot", "snapshot", TARN_CLI_INT, s->snapshot_id);
    tarn_cli_record_int(r, "schema", "schema", TARN_CLI_INT, s->schema_id);
    tarn_cli_record_int(r, "files_seen", "files seen", TARN_CLI_INT, s->files_seen);
    tarn_cli_record_int(r, "pruned_by_partition", "left out by partition", TARN_CLI_INT,
                        s->pruned_by_partition);
    tarn_cli_record_int(r, "pruned_by_bucket", "left out by bucket", TARN_CLI_INT,
                        s->pruned_by_bucket);
    tarn_cli_record_int(r, "pruned_by_key", "left out by key", TARN_CLI_INT, s->pruned_by_key);
    tarn_cli_record_int(r, "pruned_by_stats", "left out by statistics", TARN_CLI_INT,
                        s->pruned_by_stats);
    tarn_cli_record_int(r, "pruned_by_index", "left out by file index", TARN_CLI_INT,
                        s->pruned_by_index);
    tarn_cli_record_int(r, "pruned_by_limit", "left out by limit", TARN_CLI_INT,
                        s->pruned_by_limit);
    tarn_cli_record_int(r, "files_left", "files to read", TARN_CLI_INT, s->files_left);
    tarn_cli_record_int(r, "rows", "rows in them, unmerged", TARN_CLI_INT, s->rows);
    tarn_cli_record_int(r, "splits", "splits", TARN_CLI_INT, s->splits);
    tarn_cli_record_int(r, "micros", "planned in microseconds", TARN_CLI_INT, s->micros);
    if (s->pin == NULL)
        return;
    tarn_cli_record_text(r, "pin", "pin", s->pin->id);
    tarn_cli_record_int(r, "pin_expires", "pinned until", TARN_CLI_TIME, s->pin->expires_ms);
}

static struct tarn_status *receive_plan(struct tarn_cli *cli, struct tarn_client_stream *stream,
                                        struct tarn_cli_record *record, bool explain)
{
    struct tarn_cli_list *list = NULL;
    bool summed = false;

    if (explain)
        list = tarn_cli_record_list(record, "split_list", "splits", split_columns,
                                    TARN_COUNT_OF(split_columns));
    for (;;) {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__PlanResponse *answer = NULL;
        TARN_TRY(tarn_cli_next(stream, &tarn__v1__plan_response__descriptor, &answer));
        if (answer == NULL)
            break;
        for (size_t i = 0; explain && i < answer->n_splits; i++)
            add_split(cli, list, answer->splits[i]);
        if (answer->summary != NULL && !summed)
            add_summary(record, answer->summary);
        summed |= answer->summary != NULL;
    }
    if (!summed)
        return tarn_status_new(TARN_INTERNAL, "the server's plan ended without a summary");
    return TARN_OK;
}

/* --changes FROM or FROM..TO, where TO is a snapshot as with --snapshot. */
static struct tarn_status *take_changes(struct tarn_cli *cli, Tarn__V1__PlanRequest *request)
{
    static const char *const hows[] = {"auto", "delta", "changelog", "diff"};
    const char *range = tarn_cli_args_text(&cli->args, "changes");
    const char *how = tarn_cli_args_text(&cli->args, "how");
    if (range == NULL)
        return how == NULL ? TARN_OK : tarn_cli_usage(cli, "--how goes with --changes");
    Tarn__V1__Changes *changes = tarn_arena_alloc(cli->op.arena, sizeof *changes);
    tarn__v1__changes__init(changes);
    char *end;
    errno = 0;
    changes->from_snapshot = strtoll(range, &end, 10);
    bool bad = end == range || errno != 0 || changes->from_snapshot < 0;
    if (!bad && strncmp(end, "..", 2) == 0) {
        if (request->version != NULL)
            return tarn_cli_usage(cli, "--changes FROM..TO and another version exclude each other");
        const char *to = end + 2;
        request->version = tarn_arena_alloc(cli->op.arena, sizeof *request->version);
        tarn__v1__version__init(request->version);
        request->version->at_case = TARN__V1__VERSION__AT_SNAPSHOT_ID;
        request->version->snapshot_id = strtoll(to, &end, 10);
        bad = end == to || errno != 0;
    }
    if (bad || *end != '\0')
        return tarn_cli_usage(cli, "--changes is FROM or FROM..TO, ids of snapshots");
    size_t i = 0;
    while (how != NULL && i < TARN_COUNT_OF(hows) && strcmp(how, hows[i]) != 0)
        i++;
    if (i == TARN_COUNT_OF(hows))
        return tarn_cli_usage(cli, "--how is auto, delta, changelog or diff");
    changes->how = (Tarn__V1__Changes__How)i;
    request->changes = changes;
    return TARN_OK;
}

struct tarn_status *tarn_cli_plan(struct tarn_cli *cli)
{
    Tarn__V1__PlanRequest request = TARN__V1__PLAN_REQUEST__INIT;
    bool explain = tarn_cli_args_has(&cli->args, "explain");
    int64_t pin_s = 0;
    const char *where = tarn_cli_args_text(&cli->args, "where");
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = tarn_cli_record_new(cli);

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_version(cli, &request.version));
    if (where != NULL)
        request.where = (char *)(uintptr_t)where;
    TARN_TRY(take_changes(cli, &request));
    if (tarn_cli_args_has(&cli->args, "limit"))
        request._limit_case = TARN__V1__PLAN_REQUEST___LIMIT_LIMIT;
    int64_t limit = 0;
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "limit", 0, &limit)));
    request.limit = limit;
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "pin", 0, &pin_s)));
    if (pin_s > INT64_MAX / 1000)
        return tarn_cli_usage(cli, "--pin is a number of seconds");
    request.pin_ms = pin_s * 1000;
    request.summary_only = !explain;
    TARN_TRY(tarn_cli_ask_stream(cli, "TableService/Plan", &request.base, &stream));
    TARN_TRY(receive_plan(cli, stream, record, explain));
    return tarn_cli_record_end(record);
}
