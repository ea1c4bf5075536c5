#include "history.h"

#include <errno.h>

#include "ask.h"
#include "csv.h"
#include "grid.h"

#include "tarn/v1/data.pb-c.h"

/*
 * The changelog of a table as it is committed, or its snapshots.
 *
 * The stream says which snapshots there are; the rows of each are asked for by a scan of its changes, and printed when
 * all of them have come: a scan that breaks off is asked for again and nothing is printed twice. A consumer moves
 * behind a snapshot once it was printed: at least once, whatever ends us.
 */

#define SCAN_TRIES 60
#define SCAN_PAUSE_MS 250
#define KEEP_EVERY_MS 1000
#define LAST_WORD_MS 5000 /* for the consumer, after Ctrl-C */

const struct tarn_cli_option tarn_cli_watch_options[] = {
    {"from", 0, "WHERE", "latest (what comes from now on), earliest, a snapshot, or a time", false},
    {"resume", 0, "TOKEN", "behind the event of --events that had this resume_token", false},
    {"consumer", 0, "ID", "begin where this consumer stands, and move it behind what was printed",
     false},
    {"events", 0, NULL, "snapshots instead of rows", false},
    {"columns", 0, "A,B", "these columns only, in this order", false},
    {"where", 0, "EXPR", "changes of rows for which this SQL expression holds", false},
    {"how", 0, "HOW", "auto, delta, changelog or diff: what says what changed", false},
    {"limit", 0, "N", "end after N rows (or events)", false},
    {"until", 0, "SNAPSHOT", "end behind this snapshot", false},
    {0},
};

struct watch {
    struct tarn_cli *cli;
    Tarn__V1__SubscribeRequest request;
    Tarn__V1__ScanRequest scan;
    Tarn__V1__Changes changes; /* of the scan, as is the next */
    Tarn__V1__Version version;
    struct tarn_client_subscription *subscription;
    const char *consumer; /* NULL: none */
    bool events;
    bool told_loss; /* of this outage: until the next event */
    int64_t left, until;
    int64_t printed_id, kept_id, kept_ms; /* snapshots, for the consumer */

    struct tarn_cli_column event_columns[TARN_CLI_SNAPSHOT_COLUMN_COUNT + 1];
    struct tarn_cli_list *list; /* of events */
    FILE *spool;                /* the rows of one snapshot, until all have come */
    struct tarn_buf header;     /* of CSV, as it was printed */
    struct tarn_cli_grid *grid;
    bool titles_done;
    size_t cell_count;
};

static void watch_drop(struct watch *watch)
{
    tarn_client_subscription_drop(&watch->subscription);
    tarn_cli_list_drop(&watch->list);
    tarn_cli_grid_drop(&watch->grid);
    tarn_buf_drop(&watch->header);
    if (watch->spool != NULL)
        fclose(watch->spool);
}

/* --- the words --- */

static struct tarn_status *read_from(struct tarn_cli *cli, Tarn__V1__SubscribeRequest *request)
{
    const char *from = tarn_cli_args_text(&cli->args, "from");
    struct tarn_slice text = tarn_slice_str(from);
    int64_t number = 0;

    if (from == NULL || strcmp(from, "latest") == 0)
        return TARN_OK;
    if (strcmp(from, "earliest") == 0) {
        request->from_case = TARN__V1__SUBSCRIBE_REQUEST__FROM_EARLIEST;
        request->earliest = true;
        return TARN_OK;
    }
    struct tarn_status *s = tarn_parse_i64(text, &number);
    if (s == TARN_OK && number >= 1) {
        request->from_case = TARN__V1__SUBSCRIBE_REQUEST__FROM_SNAPSHOT_ID;
        request->snapshot_id = number;
        return TARN_OK;
    }
    tarn_status_free(s);
    s = tarn_parse_time(text, &number);
    if (s != TARN_OK ||
        strspn(from, "-0123456789") == text.size) { /* no bare number is a time here */
        bool dated = s == TARN_OK && strchr(from + 1, '-') != NULL;
        tarn_status_free(s);
        if (!dated)
            return tarn_cli_usage(
                cli, "--from \"%.50s\": expected latest, earliest, a snapshot or a time", from);
    }
    request->from_case = TARN__V1__SUBSCRIBE_REQUEST__FROM_TIME_MS;
    request->time_ms = number;
    return TARN_OK;
}

struct tarn_status *tarn_cli_changes_how(struct tarn_cli *cli, Tarn__V1__Changes__How *out)
{
    static const char *const names[] = {"auto", "delta", "changelog", "diff"};
    const char *how = tarn_cli_args_text(&cli->args, "how");
    *out = TARN__V1__CHANGES__HOW__AUTO;
    for (size_t i = 0; how != NULL && i < TARN_COUNT_OF(names); i++)
        if (strcmp(how, names[i]) == 0) {
            *out = (Tarn__V1__Changes__How)i;
            return TARN_OK;
        }
    if (how == NULL)
        return TARN_OK;
    return tarn_cli_usage(cli, "--how \"%.50s\": expected auto, delta, changelog or diff", how);
}

static struct tarn_status *read_resume(struct tarn_cli *cli, Tarn__V1__SubscribeRequest *request)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf token = {0};
    const char *hex = tarn_cli_args_text(&cli->args, "resume");
    if (hex == NULL)
        return TARN_OK;
    if (tarn_cli_args_has(&cli->args, "from"))
        return tarn_cli_usage(cli, "--from and --resume both say where to begin");
    struct tarn_status *s = tarn_hex_decode(tarn_slice_str(hex), &token);
    bool good = s == TARN_OK && token.size > 0;
    tarn_status_free(s);
    if (!good)
        return tarn_cli_usage(
            cli, "--resume \"%.50s\": expected a resume_token, as --events -o jsonl prints it",
            hex);
    request->from_case = TARN__V1__SUBSCRIBE_REQUEST__FROM_RESUME_TOKEN;
    request->resume_token = tarn_cli_bytes(tarn_arena_copy(cli->op.arena, tarn_buf_slice(&token)));
    return TARN_OK;
}

static struct tarn_status *read_words(struct watch *watch)
{
    struct tarn_cli *cli = watch->cli;
    Tarn__V1__SubscribeRequest *request = &watch->request;
    const char *where = tarn_cli_args_text(&cli->args, "where");

    watch->left = INT64_MAX;
    watch->events = tarn_cli_args_has(&cli->args, "events");
    watch->consumer = tarn_cli_args_text(&cli->args, "consumer");
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request->table));
    TARN_TRY(read_from(cli, request));
    TARN_TRY(read_resume(cli, request));
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "limit", 1, &watch->left)));
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "until", 1, &watch->until)));
    if (watch->consumer != NULL && tarn_cli_args_text(&cli->args, "from") == NULL &&
        request->from_case == TARN__V1__SUBSCRIBE_REQUEST__FROM__NOT_SET) {
        request->from_case = TARN__V1__SUBSCRIBE_REQUEST__FROM_CONSUMER;
        request->consumer = (char *)(uintptr_t)watch->consumer;
    }
    if (watch->consumer != NULL)
        request->keep_consumer = (char *)(uintptr_t)watch->consumer;
    if (watch->events) {
        if (where != NULL || tarn_cli_args_has(&cli->args, "columns") ||
            tarn_cli_args_has(&cli->args, "how"))
            return tarn_cli_usage(cli, "--where, --columns and --how are of rows, not of --events");
        return TARN_OK;
    }
    watch->scan.table = request->table;
    if (where != NULL)
        watch->scan.where = (char *)(uintptr_t)where;
    return tarn_cli_option_names(cli, "columns", &watch->scan.columns, &watch->scan.n_columns);
}

/* --- events --- */

static struct tarn_status *add_event(struct watch *watch, const Tarn__V1__SubscribeResponse *event)
{
    struct tarn_cli_column *columns = watch->event_columns;
    TARN_OWN(tarn_buf_drop) struct tarn_buf token = {0};
    if (watch->list == NULL) {
        memcpy(columns, tarn_cli_snapshot_columns, sizeof tarn_cli_snapshot_columns);
        columns[TARN_CLI_SNAPSHOT_COLUMN_COUNT] =
            (struct tarn_cli_column){"resume_token", NULL, TARN_CLI_TEXT};
        watch->list = tarn_cli_list_new(watch->cli, columns, TARN_COUNT_OF(watch->event_columns));
    }
    tarn_cli_add_snapshot(watch->list, event->snapshot, false);
    tarn_hex_encode(tarn_cli_slice(event->resume_token), &token);
    tarn_cli_list_text(watch->list, tarn_buf_cstr(&token));
    return tarn_cli_flush(watch->cli);
}

static struct tarn_status *print_event(struct watch *watch,
                                       const Tarn__V1__SubscribeResponse *event)
{
    struct tarn_cli *cli = watch->cli;
    const Tarn__V1__Snapshot *snapshot = event->snapshot;
    watch->left--;
    if (cli->format != TARN_CLI_TABLE)
        return add_event(watch, event);
    TARN_OWN(tarn_buf_drop) struct tarn_buf line = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf time = {0};
    tarn_format_time(snapshot->time_ms, &time);
    tarn_buf_printf(
        &line,
        "snapshot %" PRId64 "  %s  %-9s  %+" PRId64 " records, %" PRId64 " in all, schema %" PRId64,
        snapshot->id, tarn_buf_cstr(&time), tarn_cli_kind_name(snapshot->kind),
        snapshot->delta_record_count, snapshot->total_record_count, snapshot->schema_id);
    fprintf(cli->out, "%s\n", tarn_buf_cstr(&line));
    return tarn_cli_flush(cli);
}

/* --- rows --- */

static struct tarn_status *spool_failed(void)
{
    return tarn_status_errno(errno, "cannot keep the rows of a snapshot in a temporary file");
}

static struct tarn_status *spool_begin(struct watch *watch)
{
    if (watch->spool == NULL)
        watch->spool = tmpfile();
    if (watch->spool == NULL || fseek(watch->spool, 0, SEEK_SET) != 0)
        return spool_failed();
    return TARN_OK;
}

/* All rows of a snapshot's changes into the spool; *rows of them, *size bytes. */
static struct tarn_status *fetch_rows(struct watch *watch, int64_t *rows, int64_t *size)
{
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    bool complete = false;
    *size = 0;
    TARN_TRY(spool_begin(watch));
    TARN_TRY(tarn_cli_ask_stream(watch->cli, "DataService/Scan", &watch->scan.base, &stream));
    for (;;) {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ScanResponse *answer = NULL;
        TARN_TRY(tarn_cli_next(stream, &tarn__v1__scan_response__descriptor, &answer));
        if (answer == NULL)
            break;
        if (answer->data.len > 0 &&
            fwrite(answer->data.data, 1, answer->data.len, watch->spool) != answer->data.len)
            return spool_failed();
        *size += (int64_t)answer->data.len;
        if (answer->summary != NULL) {
            *rows = answer->summary->rows;
            complete = true;
        }
    }
    if (!complete)
        return tarn_status_new(TARN_UNAVAILABLE, "the scan ended without a summary");
    return fflush(watch->spool) == 0 ? TARN_OK : spool_failed();
}

/* Cancelled: not by us, the caller looks; a server that stops cancels what is under way. */
static bool passes(const struct tarn_status *s)
{
    return tarn_status_code(s) == TARN_CODE_UNAVAILABLE || tarn_status_reason(s) == TARN_BUSY ||
           tarn_status_reason(s) == TARN_CANCELLED;
}

static void say_lost(void *arg, const struct tarn_status *why)
{
    struct watch *watch = arg;
    if (!watch->told_loss)
        fprintf(watch->cli->err, "tarn: connection lost, trying again: %s\n",
                tarn_status_message(why));
    watch->told_loss = false;
}

static struct tarn_status *fetch_patiently(struct watch *watch, int64_t *rows, int64_t *size)
{
    for (int tries = 1;; tries++) {
        struct tarn_status *s = fetch_rows(watch, rows, size);
        if (s == TARN_OK || !passes(s) || tries == SCAN_TRIES ||
            tarn_op_is_cancelled(&watch->cli->op))
            return s;
        if (tries == 1 && tarn_status_reason(s) != TARN_BUSY) {
            say_lost(watch, s);
            watch->told_loss = true; /* the subscription will notice, too */
        }
        tarn_status_free(s);
        tarn_client_pause(watch->cli->client, SCAN_PAUSE_MS);
    }
}

static struct tarn_status *grid_cell(void *arg, struct tarn_slice text, bool quoted)
{
    struct watch *watch = arg;
    watch->cell_count++;
    if (!watch->titles_done)
        tarn_cli_grid_title(watch->grid, text);
    else if (text.size == 0 && !quoted)
        tarn_cli_grid_null(watch->grid, "null");
    else
        tarn_cli_grid_cell(watch->grid, text);
    return TARN_OK;
}

static struct tarn_status *grid_row(void *arg)
{
    struct watch *watch = arg;
    if (watch->titles_done && watch->cell_count != tarn_cli_grid_column_count(watch->grid))
        return tarn_status_new(TARN_INTERNAL,
                               "the server sent a row with another count of columns");
    watch->titles_done = true;
    watch->cell_count = 0;
    return TARN_OK;
}

static struct tarn_status *print_piece(struct watch *watch, struct tarn_cli_csv *csv,
                                       struct tarn_slice bytes)
{
    if (watch->grid != NULL)
        return tarn_cli_csv_feed(csv, bytes);
    if (bytes.size > 0 && fwrite(bytes.data, 1, bytes.size, watch->cli->out) != bytes.size)
        return tarn_cli_flush(watch->cli);
    return TARN_OK;
}

/* CSV begins with a line of names (no name has a line break: columns are quoted then, and the line is only longer).
 * It is printed when it is news. */
static void pass_header(struct watch *watch, struct tarn_slice *bytes)
{
    const uint8_t *end = memchr(bytes->data, '\n', bytes->size);
    size_t size = end == NULL ? bytes->size : (size_t)(end - bytes->data) + 1;
    struct tarn_slice header = tarn_slice_of(bytes->data, size);
    if (!tarn_slice_equal(header, tarn_buf_slice(&watch->header))) {
        tarn_buf_clear(&watch->header);
        tarn_buf_add_slice(&watch->header, header);
        return;
    }
    *bytes = tarn_slice_of(bytes->data + size, bytes->size - size);
}

static struct tarn_status *print_rows(struct watch *watch, int64_t size)
{
    TARN_OWN(tarn_cli_csv_drop) struct tarn_cli_csv csv = {
        .cell = grid_cell, .row = grid_row, .arg = watch};
    static uint8_t piece[64 << 10];
    struct tarn_cli *cli = watch->cli;

    if (cli->format == TARN_CLI_TABLE)
        watch->grid = tarn_cli_grid_new(cli->out, true, 0);
    watch->titles_done = false;
    rewind(watch->spool);
    for (int64_t at = 0; at < size;) {
        size_t want = (size_t)TARN_MIN((int64_t)sizeof piece, size - at);
        size_t got = fread(piece, 1, want, watch->spool);
        if (got == 0)
            return spool_failed();
        struct tarn_slice bytes = tarn_slice_of(piece, got);
        if (at == 0 && cli->format == TARN_CLI_CSV)
            pass_header(watch, &bytes);
        TARN_TRY(print_piece(watch, &csv, bytes));
        at += (int64_t)got;
    }
    if (watch->grid != NULL) {
        TARN_TRY(tarn_cli_csv_end(&csv));
        tarn_cli_grid_flush(watch->grid);
        tarn_cli_grid_drop(&watch->grid);
    }
    return tarn_cli_flush(cli);
}

/* Has the snapshot more changes than the `limit` that were printed? The summary of a scan doesn't say. */
static struct tarn_status *has_more(struct watch *watch, int64_t limit, bool *more)
{
    int64_t rows = 0, size = 0;
    watch->scan.limit = limit + 1;
    struct tarn_status *s = fetch_patiently(watch, &rows, &size);
    *more = rows > limit;
    return s == TARN_OK ? TARN_OK : tarn_status_wrap(s, "whether these were all of the rows");
}

/* Printed as a whole: a consumer may stand behind it. */
static struct tarn_status *mark_printed(struct watch *watch, int64_t snapshot_id, int64_t limit)
{
    bool more = false;
    if (watch->consumer != NULL && !watch->events && watch->left <= 0)
        TARN_TRY(has_more(watch, limit, &more));
    if (more)
        fprintf(watch->cli->err,
                "tarn: snapshot %" PRId64 " has more rows than --limit: consumer %s stays in front "
                "of it\n",
                snapshot_id, watch->consumer);
    else
        watch->printed_id = snapshot_id;
    return TARN_OK;
}

static struct tarn_status *watch_rows(struct watch *watch, const Tarn__V1__Snapshot *snapshot)
{
    int64_t rows = 0, size = 0;
    struct tarn_cli *cli = watch->cli;

    TARN_TRY(tarn_cli_changes_how(cli, &watch->changes.how));
    watch->changes.from_snapshot = snapshot->id - 1;
    watch->version.at_case = TARN__V1__VERSION__AT_SNAPSHOT_ID;
    watch->version.snapshot_id = snapshot->id;
    watch->scan.changes = &watch->changes;
    watch->scan.version = &watch->version;
    if (watch->left != INT64_MAX) {
        watch->scan._limit_case = TARN__V1__SCAN_REQUEST___LIMIT_LIMIT;
        watch->scan.limit = watch->left;
    }
    watch->scan.format = cli->format == TARN_CLI_TABLE || cli->format == TARN_CLI_CSV
                             ? TARN__V1__DATA_FORMAT__CSV
                             : TARN__V1__DATA_FORMAT__JSONL;
    struct tarn_status *s = fetch_patiently(watch, &rows, &size);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "rows of snapshot %" PRId64, snapshot->id);
    if (rows == 0)
        return TARN_OK;
    if (cli->format == TARN_CLI_TABLE)
        fprintf(cli->out, "snapshot %" PRId64 ", %s\n", snapshot->id,
                tarn_cli_kind_name(snapshot->kind));
    watch->left -= rows;
    return print_rows(watch, size);
}

/* --- the consumer --- */

static struct tarn_status *keep_consumer(struct watch *watch, bool now)
{
    Tarn__V1__SetConsumerRequest request = TARN__V1__SET_CONSUMER_REQUEST__INIT;
    if (watch->consumer == NULL || watch->printed_id == watch->kept_id ||
        (!now && tarn_clock_mono_ms() - watch->kept_ms < KEEP_EVERY_MS))
        return TARN_OK;
    TARN_OWN(tarn_op_fini) struct tarn_op op; /* ours may be cancelled */
    tarn_op_init(&op);
    op.deadline_mono_ms = tarn_clock_mono_ms() + LAST_WORD_MS;
    ProtobufCMessage *answer = NULL;
    request.table = watch->request.table;
    request.id = (char *)(uintptr_t)watch->consumer;
    request.next_snapshot = watch->printed_id + 1;
    TARN_TRY(tarn_client_call(watch->cli->client, &op, "TableService/SetConsumer", &request.base,
                              &tarn__v1__set_consumer_response__descriptor, &answer));
    protobuf_c_message_free_unpacked(answer, NULL);
    watch->kept_id = watch->printed_id;
    watch->kept_ms = tarn_clock_mono_ms();
    return TARN_OK;
}

/* It is moved with the next one, or at the end. */
static void keep_if_due(struct watch *watch)
{
    struct tarn_status *s = keep_consumer(watch, false);
    if (s != TARN_OK && watch->cli->verbose > 0)
        fprintf(watch->cli->err, "tarn: consumer %s: %s\n", watch->consumer,
                tarn_status_message(s));
    tarn_status_free(s);
}

/* --- the run --- */

static struct tarn_status *watch_all(struct watch *watch)
{
    struct tarn_cli *cli = watch->cli;
    int reconnects = 0;
    while (watch->left > 0) {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__SubscribeResponse *event = NULL;
        TARN_TRY(tarn_client_subscription_next(watch->subscription, &cli->op, &event));
        if (event->snapshot == NULL)
            return tarn_status_new(TARN_INTERNAL, "the server sent an event without a snapshot");
        if (cli->verbose > 0 &&
            tarn_client_subscription_reconnects(watch->subscription) > reconnects)
            fprintf(cli->err, "tarn: connected again; snapshot %" PRId64 " has come\n",
                    event->snapshot->id);
        reconnects = tarn_client_subscription_reconnects(watch->subscription);
        if (watch->until > 0 && event->snapshot->id > watch->until)
            return TARN_OK;
        watch->told_loss = false;
        int64_t limit = watch->left;
        TARN_TRY(watch->events ? print_event(watch, event) : watch_rows(watch, event->snapshot));
        TARN_TRY(mark_printed(watch, event->snapshot->id, limit));
        keep_if_due(watch);
        if (event->snapshot->id == watch->until)
            return TARN_OK;
    }
    return TARN_OK;
}

struct tarn_status *tarn_cli_watch(struct tarn_cli *cli)
{
    TARN_OWN(watch_drop) struct watch watch = {.cli = cli};
    tarn__v1__subscribe_request__init(&watch.request);
    tarn__v1__scan_request__init(&watch.scan);
    tarn__v1__changes__init(&watch.changes);
    tarn__v1__version__init(&watch.version);
    if (cli->format == TARN_CLI_JSON) /* an array without an end is of no use to a pipe */
        cli->format = TARN_CLI_JSONL;
    TARN_TRY(read_words(&watch));
    TARN_TRY(tarn_cli_connect(cli));
    tarn_client_subscribe(cli->client, &watch.request, &watch.subscription);
    tarn_client_subscription_on_loss(watch.subscription, say_lost, &watch);
    struct tarn_status *s = watch_all(&watch);
    struct tarn_status *kept = keep_consumer(&watch, true);
    if (tarn_op_is_cancelled(&cli->op)) /* Ctrl-C is how it ends */
        tarn_status_drop(&s);
    if (s == TARN_OK)
        return kept;
    tarn_status_free(kept);
    return s;
}
