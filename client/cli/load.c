#include "print.h"
#include "text.h"
#include "tarn/v1/maintenance.pb-c.h"
#include "upload.h"

#include <time.h>

const struct tarn_cli_option tarn_cli_load_options[] = {
    {"format", 0, "FORMAT", "parquet, orc, csv, jsonl or arrow; else told by the name", false},
    {"mode", 0, "MODE",
     "append, upsert, overwrite or delete; else upsert where there is a primary key, else append",
     false},
    {"op-column", 0, "COLUMN", "column that says +I, -U, +U or -D of each row", false},
    {"null", 0, "TEXT", "CSV: this text, unquoted, is null too", true},
    {"delimiter", 0, "C", "CSV: what stands between cells; \\t is a tab", false},
    {"skip-bad", 0, "N", "leave out up to N rows that cannot be read; else the first one fails",
     false},
    {"commit-user", 0, "USER", "whose commit it is", false},
    {"commit-id", 0, "N", "with --commit-user: sent again, it is not committed twice", false},
    {"no-wait", 0, NULL, "end at once where compaction is far behind; else when it has caught up",
     false},
    {0},
};

/* --- the words --- */

static struct tarn_status *load_mode(struct tarn_cli *cli, Tarn__V1__LoadMode *out)
{
    static const char *const names[] = {"auto", "append", "upsert", "overwrite", "delete"};
    static const Tarn__V1__LoadMode modes[] = {
        TARN__V1__LOAD_MODE__AUTO, TARN__V1__LOAD_MODE__APPEND_ROWS, TARN__V1__LOAD_MODE__UPSERT,
        TARN__V1__LOAD_MODE__OVERWRITE_ROWS, TARN__V1__LOAD_MODE__DELETE_ROWS};
    const char *text = tarn_cli_args_text(&cli->args, "mode");

    for (size_t i = 0; text != NULL && i < TARN_COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = modes[i];
            return TARN_OK;
        }
    }
    if (text == NULL)
        return TARN_OK;
    const char *nearest = tarn_nearest(text, names, TARN_COUNT_OF(names));
    return tarn_cli_usage(
        cli, "--mode \"%.50s\": expected append, upsert, overwrite or delete%s%s%s", text,
        nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static struct tarn_status *delimiter(struct tarn_cli *cli, const struct tarn_cli_source *sources,
                                     size_t count, ProtobufCBinaryData *out)
{
    const char *text = tarn_cli_args_text(&cli->args, "delimiter");
    size_t tab_count = 0;
    bool given = text != NULL;

    for (size_t i = 0; i < count; i++)
        tab_count += sources[i].tabs;
    if (text == NULL && tab_count > 0 && tab_count < count)
        return tarn_cli_usage(cli, "files with tabs and files without: load them one after the "
                                   "other, or say --delimiter");
    if (text == NULL)
        text = tab_count > 0 ? "\t" : "";
    if (strcmp(text, "\\t") == 0 || strcasecmp(text, "tab") == 0)
        text = "\t";
    if ((given && text[0] == '\0') || strlen(text) > 1 ||
        (text[0] != '\0' && strchr("\"\r\n", text[0]) != NULL) || (uint8_t)text[0] >= 0x80)
        return tarn_cli_usage(cli, "--delimiter \"%.20s\": expected one ASCII character", text);
    *out = tarn_cli_bytes_str(text);
    return TARN_OK;
}

static struct tarn_status *commit_identity(struct tarn_cli *cli, Tarn__V1__IngestStart *start)
{
    const char *user = tarn_cli_args_text(&cli->args, "commit-user");
    int64_t id = 0;

    if (user != NULL)
        start->commit_user = (char *)(uintptr_t)user;
    if (!tarn_cli_args_has(&cli->args, "commit-id"))
        return TARN_OK;
    if (user == NULL || user[0] == '\0')
        return tarn_cli_usage(cli, "--commit-id needs --commit-user");
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "commit-id", 0, &id)));
    start->_commit_identifier_case = TARN__V1__INGEST_START___COMMIT_IDENTIFIER_COMMIT_IDENTIFIER;
    start->commit_identifier = id;
    return TARN_OK;
}

static struct tarn_status *make_start(struct tarn_cli *cli, const struct tarn_cli_source *sources,
                                      size_t count, Tarn__V1__IngestStart *start)
{
    size_t cursor = 0;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &start->table));
    TARN_TRY(load_mode(cli, &start->mode));
    TARN_TRY(delimiter(cli, sources, count, &start->delimiter));
    TARN_TRY(commit_identity(cli, start));
    TARN_TRY(
        tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "skip-bad", 0, &start->skip_bad_max)));
    start->op_column = tarn_cli_bytes_str(tarn_cli_args_text(&cli->args, "op-column"));
    start->null_texts =
        tarn_arena_calloc(cli->op.arena, cli->args.given_count + 1, sizeof *start->null_texts);
    for (const char *text; (text = tarn_cli_args_next(&cli->args, "null", &cursor)) != NULL;)
        start->null_texts[start->n_null_texts++] = tarn_cli_bytes_str(text);
    return TARN_OK;
}

static struct tarn_status *find_sources(struct tarn_cli *cli, struct tarn_cli_source **out,
                                        size_t *count)
{
    size_t stdin_count = 0;
    *count = cli->args.word_count - 1;
    *out = tarn_arena_calloc(cli->op.arena, *count, sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        const char *path = cli->args.words[i + 1];
        stdin_count += strcmp(path, "-") == 0;
        TARN_TRY(
            tarn_cli_source_of(cli, path, tarn_cli_args_text(&cli->args, "format"), &(*out)[i]));
    }
    if (stdin_count > 1)
        return tarn_cli_usage(cli, "standard input (-) can be read once only");
    return TARN_OK;
}

/* --- the call --- */

static struct tarn_status *send_all(struct tarn_cli *cli, struct tarn_client_stream *stream,
                                    Tarn__V1__IngestStart *start,
                                    const struct tarn_cli_source *sources, size_t count,
                                    struct tarn_cli_progress *progress)
{
    Tarn__V1__IngestRequest request = TARN__V1__INGEST_REQUEST__INIT;
    int64_t sent = 0;

    request.part_case = TARN__V1__INGEST_REQUEST__PART_START;
    request.start = start;
    TARN_TRY(tarn_client_stream_send(stream, &request.base));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(tarn_cli_upload(cli, stream, &sources[i], progress, &sent));
    return tarn_client_stream_done(stream);
}

static struct tarn_status *ingest(struct tarn_cli *cli, Tarn__V1__IngestStart *start,
                                  const struct tarn_cli_source *sources, size_t count,
                                  struct tarn_cli_progress *progress,
                                  Tarn__V1__IngestResponse **out)
{
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__IngestResponse *more = NULL;

    TARN_TRY(tarn_cli_connect(cli));
    TARN_TRY(tarn_client_stream_open(cli->client, &cli->op, "DataService/Ingest", &stream));
    TARN_TRY(send_all(cli, stream, start, sources, count, progress));
    tarn_cli_progress_note(progress, "all is sent; waiting for the commit");
    TARN_TRY(tarn_cli_next(stream, &tarn__v1__ingest_response__descriptor, out));
    if (*out == NULL)
        return tarn_status_new(TARN_INTERNAL, "the server answered a load with nothing");
    /* The outcome of the call counts, not only that there was an answer. */
    return tarn_cli_next(stream, &tarn__v1__ingest_response__descriptor, &more);
}

/* --- the answer --- */

static const struct tarn_cli_column bad_columns[] = {
    {"file", NULL, TARN_CLI_TEXT},
    {"line", NULL, TARN_CLI_INT},
    {"column", NULL, TARN_CLI_TEXT},
    {"reason", NULL, TARN_CLI_TEXT},
};

static void say_bad_rows(struct tarn_cli *cli, const Tarn__V1__IngestResponse *answer)
{
    for (size_t i = 0; i < answer->n_bad_rows; i++) {
        const Tarn__V1__BadRow *row = answer->bad_rows[i];
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        tarn_cli_escape(tarn_cli_slice(row->file), &text);
        tarn_buf_printf(&text, ":%" PRId64 ": ", row->line);
        if (row->column.len > 0) {
            tarn_cli_escape(tarn_cli_slice(row->column), &text);
            tarn_buf_add_str(&text, ": ");
        }
        tarn_cli_escape(tarn_cli_slice(row->reason), &text);
        fprintf(cli->err, "%s\n", tarn_buf_cstr(&text));
    }
    if (answer->bad_row_count > (int64_t)answer->n_bad_rows)
        fprintf(cli->err, "... and %" PRId64 " more\n",
                answer->bad_row_count - (int64_t)answer->n_bad_rows);
}

static void say_loaded(struct tarn_cli *cli, const Tarn__V1__IngestResponse *answer)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf size = {0};

    tarn_format_size(answer->bytes_written, &size);
    if (answer->repeated_commit)
        tarn_cli_say(cli,
                     "this commit had landed before, as snapshot %" PRId64 "; nothing was "
                     "written",
                     answer->snapshot_id);
    else if (answer->snapshot_id == 0)
        tarn_cli_say(cli, "no rows: nothing to commit");
    else
        tarn_cli_say(cli, "%" PRId64 " %s in %" PRId64 " %s (%s), snapshot %" PRId64, answer->rows,
                     answer->rows == 1 ? "row" : "rows", answer->files_written,
                     answer->files_written == 1 ? "file" : "files", tarn_buf_cstr(&size),
                     answer->snapshot_id);
    if (answer->bad_row_count > 0)
        tarn_cli_say(cli, "%" PRId64 " bad %s left out", answer->bad_row_count,
                     answer->bad_row_count == 1 ? "row was" : "rows were");
}

/* --- compaction that is behind --- */

static struct tarn_json *backlog_json(const Tarn__V1__Backlog *b)
{
    if (b == NULL)
        return tarn_json_null();
    struct tarn_json *object = tarn_json_object();
    tarn_json_set_str(object, "advice",
                      b->advice == TARN__V1__BACKLOG__ADVICE__WAIT ? "wait" : "behind");
    tarn_json_set_int(object, "bucket", b->bucket);
    tarn_json_set_int(object, "sorted_runs", b->sorted_runs);
    tarn_json_set_int(object, "compaction_trigger", b->compaction_trigger);
    tarn_json_set_int(object, "stop_trigger", b->stop_trigger);
    return object;
}

static void say_backlog(struct tarn_cli *cli, const Tarn__V1__Backlog *b)
{
    fprintf(
        cli->err,
        "compaction is behind: bucket %d has %d sorted runs, %d start a compaction, and writers "
        "wait above %d\n",
        b->bucket, b->sorted_runs, b->compaction_trigger, b->stop_trigger);
}

static void wait_ms(int64_t ms)
{
    struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* The commit is done; who loads again right away would only make it worse. Ends when the daemon says so, or the time of --timeout is up. */
static struct tarn_status *wait_for_compaction(struct tarn_cli *cli,
                                               const Tarn__V1__IngestStart *start,
                                               const Tarn__V1__Backlog *told)
{
    Tarn__V1__GetBacklogRequest request = TARN__V1__GET_BACKLOG_REQUEST__INIT;
    request.table = start->table;
    bool wait = told->advice == TARN__V1__BACKLOG__ADVICE__WAIT;
    int64_t ms = told->retry_after_ms;
    while (wait && tarn_op_wait_ms(&cli->op, INT64_MAX) > 0) {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__GetBacklogResponse *answer = NULL;
        wait_ms(TARN_MIN(TARN_MAX(ms, (int64_t)10), (int64_t)10000));
        TARN_TRY(tarn_cli_ask(cli, "MaintenanceService/GetBacklog", &request.base,
                              &tarn__v1__get_backlog_response__descriptor, &answer));
        wait =
            answer->backlog != NULL && answer->backlog->advice == TARN__V1__BACKLOG__ADVICE__WAIT;
        ms = wait ? answer->backlog->retry_after_ms : 0;
    }
    return TARN_OK;
}

static void mind_backlog(struct tarn_cli *cli, const Tarn__V1__IngestStart *start,
                         const Tarn__V1__IngestResponse *answer)
{
    if (answer->backlog == NULL)
        return;
    say_backlog(cli, answer->backlog);
    if (tarn_cli_args_has(&cli->args, "no-wait"))
        return;
    struct tarn_status *s = wait_for_compaction(cli, start, answer->backlog);
    if (s != TARN_OK) /* the load itself went well */
        fprintf(cli->err, "no longer waiting for compaction: %s\n", tarn_status_message(s));
    tarn_status_free(s);
}

static struct tarn_status *show(struct tarn_cli *cli, const Tarn__V1__IngestResponse *answer)
{
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = NULL;

    say_bad_rows(cli, answer);
    if (cli->format == TARN_CLI_TABLE) {
        say_loaded(cli, answer);
        return TARN_OK;
    }
    r = tarn_cli_record_new(cli);
    tarn_cli_record_int(r, "snapshot", NULL, TARN_CLI_INT, answer->snapshot_id);
    tarn_cli_record_int(r, "rows", NULL, TARN_CLI_INT, answer->rows);
    tarn_cli_record_int(r, "files", NULL, TARN_CLI_INT, answer->files_written);
    tarn_cli_record_int(r, "bytes", NULL, TARN_CLI_INT, answer->bytes_written);
    tarn_cli_record_int(r, "bad_row_count", NULL, TARN_CLI_INT, answer->bad_row_count);
    tarn_cli_record_int(r, "repeated", NULL, TARN_CLI_BOOL, answer->repeated_commit);
    tarn_cli_record_any(r, "backlog", NULL, backlog_json(answer->backlog), tarn_slice_str(""));
    struct tarn_cli_list *list =
        tarn_cli_record_list(r, "bad_rows", NULL, bad_columns, TARN_COUNT_OF(bad_columns));
    for (size_t i = 0; i < answer->n_bad_rows; i++) {
        tarn_cli_list_slice(list, tarn_cli_slice(answer->bad_rows[i]->file));
        tarn_cli_list_int(list, answer->bad_rows[i]->line);
        tarn_cli_list_slice(list, tarn_cli_or_absent(answer->bad_rows[i]->column));
        tarn_cli_list_slice(list, tarn_cli_slice(answer->bad_rows[i]->reason));
    }
    return tarn_cli_record_end(r);
}

struct tarn_status *tarn_cli_load(struct tarn_cli *cli)
{
    Tarn__V1__IngestStart start = TARN__V1__INGEST_START__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__IngestResponse *answer = NULL;
    struct tarn_cli_source *sources = NULL;
    struct tarn_cli_progress progress;
    size_t count = 0;
    int64_t total = 0;

    TARN_TRY(find_sources(cli, &sources, &count));
    TARN_TRY(make_start(cli, sources, count, &start));
    for (size_t i = 0; i < count; i++)
        total += tarn_cli_source_size(&sources[i]);
    tarn_cli_progress_start(&progress, cli, "load", true, total);
    struct tarn_status *status = ingest(cli, &start, sources, count, &progress, &answer);
    tarn_cli_progress_end(&progress);
    TARN_TRY(status);
    TARN_TRY(show(cli, answer));
    mind_backlog(cli, &start, answer);
    return TARN_OK;
}
