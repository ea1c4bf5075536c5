#include "print.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ask.h"
#include "csv.h"
#include "grid.h"

#include "tarn/v1/data.pb-c.h"

const struct tarn_cli_option tarn_cli_scan_options[] = {
    {"columns", 0, "A,B", "these columns only, in this order", false},
    {"where", 0, "EXPR", "rows for which this SQL expression holds", false},
    {"limit", 0, "N", "at most N rows", false},
    TARN_CLI_VERSION_OPTIONS,
    {"to", 0, "FILE", "write there; the name tells the format where -o does not", false},
    {"changes", 0, "FROM..TO",
     "what changed after snapshot FROM up to TO (else the latest), with rowkind", false},
    {"how", 0, "HOW", "of --changes: auto, delta, changelog or diff", false},
    {0},
};

/* --- where the bytes go --- */

/* A regular file appears under its name when it is complete, and not before. */
struct target {
    FILE *out;
    const char *path; /* NULL: standard output */
    char *partial;    /* owned; NULL: written in place (a pipe, a device) */
};

static void target_drop(struct target *target)
{
    if (target->path != NULL && target->out != NULL)
        fclose(target->out);
    if (target->partial != NULL) {
        unlink(target->partial);
        free(target->partial);
    }
    *target = (struct target){0};
}

static struct tarn_status *target_open(struct tarn_cli *cli, struct target *target)
{
    struct stat about;
    target->path = tarn_cli_args_text(&cli->args, "to");
    target->out = cli->out;
    if (target->path == NULL)
        return TARN_OK;
    target->out = NULL;
    int fd;
    if (stat(target->path, &about) == 0 && !S_ISREG(about.st_mode)) {
        fd = open(target->path, O_WRONLY | O_CLOEXEC);
    } else {
        target->partial = tarn_format("%s.XXXXXX", target->path);
        fd = mkstemp(target->partial);
        mode_t mask = umask(0);
        umask(mask);
        if (fd >= 0 && fchmod(fd, 0666 & ~mask) != 0) {
            close(fd);
            fd = -1;
        }
    }
    target->out = fd < 0 ? NULL : fdopen(fd, "w");
    if (target->out == NULL)
        return tarn_cli_local(cli, tarn_status_errno(errno, "cannot write %s", target->path));
    return TARN_OK;
}

static struct tarn_status *target_close(struct tarn_cli *cli, struct target *target)
{
    if (target->path == NULL)
        return tarn_cli_flush(cli);
    bool good = fflush(target->out) == 0;
    good = fclose(tarn_move(target->out)) == 0 && good;
    if (good && target->partial != NULL) {
        good = rename(target->partial, target->path) == 0;
        if (good)
            tarn_free_drop(&target->partial);
    }
    return good ? TARN_OK : tarn_status_errno(errno, "cannot write %s", target->path);
}

static struct tarn_status *write_out(struct tarn_cli *cli, struct target *target,
                                     struct tarn_slice bytes)
{
    if (bytes.size == 0 || fwrite(bytes.data, 1, bytes.size, target->out) == bytes.size)
        return TARN_OK;
    int error = errno;
    cli->out_closed = target->path == NULL && error == EPIPE;
    return tarn_status_errno(error, "cannot write %s",
                             target->path == NULL ? "the output" : target->path);
}

/* --- what becomes of them --- */

struct sink {
    struct tarn_cli *cli;
    struct target target;
    struct tarn_cli_csv csv; /* of a table */
    struct tarn_cli_grid *grid;
    bool titles_done;
    size_t cell_count; /* of this row */
    bool between, any; /* of a JSON array: a comma is due; there was a row */
};

static void sink_drop(struct sink *sink)
{
    tarn_cli_csv_drop(&sink->csv);
    tarn_cli_grid_free(sink->grid);
    target_drop(&sink->target);
}

static struct tarn_status *table_cell(void *arg, struct tarn_slice text, bool quoted)
{
    struct sink *sink = arg;
    sink->cell_count++;
    if (!sink->titles_done) {
        tarn_cli_grid_title(sink->grid, text);
        return TARN_OK;
    }
    if (sink->cell_count > tarn_cli_grid_column_count(sink->grid))
        return tarn_status_new(TARN_INTERNAL, "the server sent a row with too many columns");
    if (text.size == 0 && !quoted)
        tarn_cli_grid_null(sink->grid, "null");
    else
        tarn_cli_grid_cell(sink->grid, text);
    return TARN_OK;
}

static struct tarn_status *table_row(void *arg)
{
    struct sink *sink = arg;
    if (sink->titles_done && sink->cell_count != tarn_cli_grid_column_count(sink->grid))
        return tarn_status_new(TARN_INTERNAL, "the server sent a row with too few columns");
    sink->titles_done = true;
    sink->cell_count = 0;
    return ferror(sink->target.out) ? tarn_cli_flush(sink->cli) : TARN_OK;
}

/* JSON lines become the elements of an array: commas instead of line ends. */
static struct tarn_status *array_bytes(struct sink *sink, struct tarn_slice bytes)
{
    while (bytes.size > 0) {
        const uint8_t *end = memchr(bytes.data, '\n', bytes.size);
        size_t size = end == NULL ? bytes.size : (size_t)(end - bytes.data);
        if (size > 0) {
            if (!sink->any || sink->between)
                TARN_TRY(
                    write_out(sink->cli, &sink->target, tarn_slice_str(sink->any ? ",\n" : "[\n")));
            sink->any = true;
            sink->between = false;
            TARN_TRY(write_out(sink->cli, &sink->target, tarn_slice_of(bytes.data, size)));
        }
        sink->between = sink->any && end != NULL;
        size += end != NULL;
        bytes = tarn_slice_of(bytes.data + size, bytes.size - size);
    }
    return TARN_OK;
}

static struct tarn_status *sink_bytes(struct sink *sink, struct tarn_slice bytes)
{
    if (sink->cli->format == TARN_CLI_TABLE)
        return tarn_cli_csv_feed(&sink->csv, bytes);
    if (sink->cli->format == TARN_CLI_JSON)
        return array_bytes(sink, bytes);
    return write_out(sink->cli, &sink->target, bytes);
}

static struct tarn_status *sink_end(struct sink *sink, const Tarn__V1__ScanSummary *summary)
{
    FILE *out = sink->target.out;

    if (sink->cli->format == TARN_CLI_JSON) {
        fputs(sink->any ? "\n]\n" : "[]\n", out);
    } else if (sink->cli->format == TARN_CLI_TABLE) {
        TARN_TRY(tarn_cli_csv_end(&sink->csv));
        tarn_cli_grid_flush(sink->grid);
        fprintf(out, "(%" PRId64 " %s", summary->rows, summary->rows == 1 ? "row" : "rows");
        if (summary->snapshot_id > 0)
            fprintf(out, ", snapshot %" PRId64 ")\n", summary->snapshot_id);
        else
            fprintf(out, "; the table has no snapshot yet)\n");
    }
    return target_close(sink->cli, &sink->target);
}

/* --- the words --- */

static void format_by_name(struct tarn_cli *cli)
{
    static const struct {
        const char *ending;
        enum tarn_cli_format format;
    } endings[] = {{".parquet", TARN_CLI_PARQUET}, {".arrow", TARN_CLI_ARROW},
                   {".feather", TARN_CLI_ARROW},   {".csv", TARN_CLI_CSV},
                   {".jsonl", TARN_CLI_JSONL},     {".ndjson", TARN_CLI_JSONL},
                   {".json", TARN_CLI_JSON}};
    const char *to = tarn_cli_args_text(&cli->args, "to");
    const char *dot = to == NULL ? NULL : strrchr(to, '.');

    if (to == NULL || cli->format_given)
        return;
    cli->format = TARN_CLI_JSONL;
    for (size_t i = 0; dot != NULL && i < TARN_COUNT_OF(endings); i++)
        if (strcasecmp(dot, endings[i].ending) == 0)
            cli->format = endings[i].format;
}

static Tarn__V1__DataFormat wire_format(enum tarn_cli_format format)
{
    switch (format) {
    case TARN_CLI_TABLE:
    case TARN_CLI_CSV:
        return TARN__V1__DATA_FORMAT__CSV;
    case TARN_CLI_JSON:
    case TARN_CLI_JSONL:
        return TARN__V1__DATA_FORMAT__JSONL;
    case TARN_CLI_PARQUET:
        return TARN__V1__DATA_FORMAT__PARQUET;
    case TARN_CLI_ARROW:
        break;
    }
    return TARN__V1__DATA_FORMAT__ARROW;
}

/* "3..7", "3.." */
static struct tarn_status *read_changes(struct tarn_cli *cli, Tarn__V1__ScanRequest *request)
{
    const char *text = tarn_cli_args_text(&cli->args, "changes");
    const char *dots = text == NULL ? NULL : strstr(text, "..");
    int64_t from = 0, to = 0;

    if (text == NULL && tarn_cli_args_has(&cli->args, "how"))
        return tarn_cli_usage(cli, "--how is of --changes");
    if (text == NULL)
        return TARN_OK;
    if (request->version != NULL)
        return tarn_cli_usage(cli, "--changes names its versions itself");
    struct tarn_status *s = dots == NULL
                                ? tarn_status_new(TARN_VALUE_INVALID, "no dots")
                                : tarn_parse_i64(tarn_slice_of(text, (size_t)(dots - text)), &from);
    bool open_ended = dots != NULL && dots[2] == '\0';
    if (s == TARN_OK && !open_ended)
        s = tarn_parse_i64(tarn_slice_str(dots + 2), &to);
    bool good = s == TARN_OK && from >= 0 && (open_ended || (to >= from && to > 0));
    tarn_status_free(s);
    if (!good)
        return tarn_cli_usage(cli, "--changes \"%.50s\": expected FROM..TO, two snapshots", text);
    request->changes = tarn_arena_alloc(cli->op.arena, sizeof *request->changes);
    tarn__v1__changes__init(request->changes);
    request->changes->from_snapshot = from;
    TARN_TRY(tarn_cli_changes_how(cli, &request->changes->how));
    if (open_ended)
        return TARN_OK;
    request->version = tarn_arena_alloc(cli->op.arena, sizeof *request->version);
    tarn__v1__version__init(request->version);
    request->version->at_case = TARN__V1__VERSION__AT_SNAPSHOT_ID;
    request->version->snapshot_id = to;
    return TARN_OK;
}

static struct tarn_status *make_request(struct tarn_cli *cli, Tarn__V1__ScanRequest *request)
{
    const char *where = tarn_cli_args_text(&cli->args, "where");
    bool binary = cli->format == TARN_CLI_PARQUET || cli->format == TARN_CLI_ARROW;

    if (binary && cli->out_is_terminal && !tarn_cli_args_has(&cli->args, "to"))
        return tarn_cli_usage(cli, "that format is not for a terminal: add --to FILE, or redirect "
                                   "the output");
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request->table));
    TARN_TRY(tarn_cli_version(cli, &request->version));
    TARN_TRY(read_changes(cli, request));
    TARN_TRY(tarn_cli_option_names(cli, "columns", &request->columns, &request->n_columns));
    if (tarn_cli_args_has(&cli->args, "limit"))
        request->_limit_case = TARN__V1__SCAN_REQUEST___LIMIT_LIMIT;
    int64_t limit = 0;
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "limit", 0, &limit)));
    request->limit = limit;
    if (where != NULL)
        request->where = (char *)(uintptr_t)where;
    request->format = wire_format(cli->format);
    return TARN_OK;
}

/* --- the call --- */

static struct tarn_status *receive_all(struct tarn_client_stream *stream, struct sink *sink)
{
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ScanResponse *last = NULL;

    for (;;) {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ScanResponse *answer = NULL;
        TARN_TRY(tarn_cli_next(stream, &tarn__v1__scan_response__descriptor, &answer));
        if (answer == NULL)
            break;
        TARN_TRY(sink_bytes(sink, tarn_cli_slice(answer->data)));
        if (answer->summary != NULL) {
            tarn_cli_message_drop(&last);
            last = tarn_move(answer);
        }
    }
    if (last == NULL)
        return tarn_status_new(TARN_INTERNAL, "the server's stream ended without a summary");
    return sink_end(sink, last->summary);
}

struct tarn_status *tarn_cli_scan(struct tarn_cli *cli)
{
    Tarn__V1__ScanRequest request = TARN__V1__SCAN_REQUEST__INIT;
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(sink_drop) struct sink sink = {.cli = cli};

    format_by_name(cli);
    TARN_TRY(make_request(cli, &request));
    TARN_TRY(tarn_cli_ask_stream(cli, "DataService/Scan", &request.base, &stream));
    TARN_TRY(target_open(cli, &sink.target));
    if (cli->format == TARN_CLI_TABLE)
        sink.grid = tarn_cli_grid_new(sink.target.out, true, 0);
    sink.csv = (struct tarn_cli_csv){.cell = table_cell, .row = table_row, .arg = &sink};
    return receive_all(stream, &sink);
}
