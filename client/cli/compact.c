#include "explain.h"
#include "print.h"
#include "progress.h"

#include "ask.h"

#include "tarn/v1/maintenance.pb-c.h"

const struct tarn_cli_option tarn_cli_compact_options[] = {
    {"full", 0, NULL, "all files of a bucket into one run; else what the options call for", false},
    {"partition", 0, "K=V[,K=V]", "only this partition; k=null: where k is null", false},
    {"wait", 0, NULL, "until it is done", false},
    {"dry-run", 0, NULL, "say what would be done, and do nothing", false},
    {0},
};
const struct tarn_cli_option tarn_cli_rescale_options[] = {
    {"buckets", 0, "N", "so many from now on", false},
    {"partition", 0, "K=V[,K=V]",
     "only this partition; others keep their buckets, new ones get N; k=null: where k is null",
     false},
    {"no-wait", 0, NULL, "end once it is queued; else when it is done", false},
    {"dry-run", 0, NULL, "say what would be done, and do nothing", false},
    {0},
};
const struct tarn_cli_option tarn_cli_jobs_options[] = {
    {"cancel", 0, NULL, "end JOB, which is queued or runs: nothing of it is committed", false},
    {"table", 0, "DATABASE.TABLE", "only those of this table", false},
    {"ended", 0, NULL, "those that ended lately, too", false},
    {"explain", 0, NULL,
     "how each was decided on: its score, what that is made of, who was next, budgets", false},
    {0},
};

/* --- jobs --- */

static const struct tarn_cli_column job_columns[] = {
    {"id", "JOB", TARN_CLI_INT},
    {"table", "TABLE", TARN_CLI_TEXT},
    {"kind", "KIND", TARN_CLI_TEXT},
    {"partition", "PARTITION", TARN_CLI_TEXT},
    {"bucket", "BUCKET", TARN_CLI_INT},
    {"state", "STATE", TARN_CLI_TEXT},
    {"files", "FILES", TARN_CLI_INT},
    {"size_bytes", "SIZE", TARN_CLI_SIZE},
    {"output_level", "LEVEL", TARN_CLI_INT},
    {"worker", "WORKER", TARN_CLI_TEXT},
    {"attempts", "ATTEMPTS", TARN_CLI_INT},
    {"created", "CREATED", TARN_CLI_TIME},
    {"ended", "ENDED", TARN_CLI_TIME},
    {"failure", "FAILURE", TARN_CLI_TEXT},
    {"priority", NULL, TARN_CLI_REAL},
    {"why", NULL, TARN_CLI_TEXT},
    {"snapshot", NULL, TARN_CLI_INT},
    {"bytes_written", NULL, TARN_CLI_SIZE},
    {"rows_in", NULL, TARN_CLI_INT},
    {"rows_out", NULL, TARN_CLI_INT},
    {"cpu_ns", NULL, TARN_CLI_INT},
    {"decision", NULL, TARN_CLI_ANY},
};
/* At a terminal: what explains; programs get all of it anyway. */
static const struct tarn_cli_column explain_columns[] = {
    {"id", "JOB", TARN_CLI_INT},
    {"table", "TABLE", TARN_CLI_TEXT},
    {"kind", NULL, TARN_CLI_TEXT},
    {"partition", "PARTITION", TARN_CLI_TEXT},
    {"bucket", "BUCKET", TARN_CLI_INT},
    {"state", "STATE", TARN_CLI_TEXT},
    {"files", "FILES", TARN_CLI_INT},
    {"size_bytes", "SIZE", TARN_CLI_SIZE},
    {"output_level", "LEVEL", TARN_CLI_INT},
    {"worker", NULL, TARN_CLI_TEXT},
    {"attempts", NULL, TARN_CLI_INT},
    {"created", NULL, TARN_CLI_TIME},
    {"ended", NULL, TARN_CLI_TIME},
    {"failure", NULL, TARN_CLI_TEXT},
    {"priority", "PRIORITY", TARN_CLI_REAL},
    {"why", "WHY", TARN_CLI_TEXT},
    {"snapshot", NULL, TARN_CLI_INT},
    {"bytes_written", NULL, TARN_CLI_SIZE},
    {"rows_in", NULL, TARN_CLI_INT},
    {"rows_out", NULL, TARN_CLI_INT},
    {"cpu_ns", NULL, TARN_CLI_INT},
    {"decision", NULL, TARN_CLI_ANY},
};
_Static_assert(TARN_COUNT_OF(job_columns) == TARN_COUNT_OF(explain_columns), "add_job fills both");

static void add_job(struct tarn_cli_list *list, const Tarn__V1__Job *job)
{
    tarn_cli_list_int(list, job->id);
    tarn_cli_list_text(list, job->table);
    tarn_cli_list_text(list, job->kind);
    tarn_cli_list_text(list, tarn_cli_or_null(job->partition));
    tarn_cli_list_int(list, job->bucket);
    tarn_cli_list_text(list, job->state);
    tarn_cli_list_int(list, job->files);
    tarn_cli_list_int(list, job->bytes);
    tarn_cli_list_int(list, job->output_level);
    tarn_cli_list_text(list, tarn_cli_or_null(job->worker));
    tarn_cli_list_int(list, job->attempts);
    tarn_cli_list_int(list, job->created_ms);
    tarn_cli_list_int(list, job->ended_ms);
    tarn_cli_list_text(list, tarn_cli_or_null(job->failure));
    tarn_cli_list_real(list, job->priority);
    tarn_cli_list_text(list, tarn_cli_or_null(job->why));
    tarn_cli_list_int(list, job->snapshot_id);
    tarn_cli_list_int(list, job->bytes_written);
    tarn_cli_list_int(list, job->rows_in);
    tarn_cli_list_int(list, job->rows_out);
    tarn_cli_list_int(list, job->cpu_ns);
    if (job->decision == NULL)
        tarn_cli_list_null(list);
    else
        tarn_cli_list_any(list, tarn_cli_message_json(&job->decision->base), tarn_slice_str(""));
}

static struct tarn_status *cancel(struct tarn_cli *cli, int64_t id)
{
    Tarn__V1__CancelJobRequest request = TARN__V1__CANCEL_JOB_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__CancelJobResponse *answer = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = tarn_cli_record_new(cli);

    request.id = id;
    TARN_TRY(tarn_cli_ask(cli, "MaintenanceService/CancelJob", &request.base,
                          &tarn__v1__cancel_job_response__descriptor, &answer));
    tarn_cli_say(cli, "cancelled job %" PRId64, id);
    tarn_cli_record_int(r, "cancelled", NULL, TARN_CLI_INT, id);
    return tarn_cli_record_end(r);
}

struct tarn_status *tarn_cli_jobs(struct tarn_cli *cli)
{
    Tarn__V1__ListJobsRequest request = TARN__V1__LIST_JOBS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListJobsResponse *answer = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;
    const char *table = tarn_cli_args_text(&cli->args, "table");
    bool one = cli->args.word_count > 0, found = false;
    int64_t id = 0;

    if (one) {
        struct tarn_status *status = tarn_parse_i64(tarn_slice_str(cli->args.words[0]), &id);
        if (status != NULL)
            return tarn_cli_misused(cli, tarn_status_wrap(status, "JOB"));
    }
    if (tarn_cli_args_has(&cli->args, "cancel"))
        return one ? cancel(cli, id)
                   : tarn_cli_misused(
                         cli, tarn_status_new(TARN_INVALID_ARGUMENT, "--cancel: which JOB?"));
    if (table != NULL)
        TARN_TRY(tarn_cli_table_ref(cli, table, &request.table));
    request.explain = tarn_cli_args_has(&cli->args, "explain");
    request.ended = one || tarn_cli_args_has(&cli->args, "ended");
    TARN_TRY(tarn_cli_ask(cli, "MaintenanceService/ListJobs", &request.base,
                          &tarn__v1__list_jobs_response__descriptor, &answer));
    bool explain = request.explain;
    for (size_t i = 0; i < answer->n_jobs; i++)
        found |= answer->jobs[i]->id == id;
    if (one && !found)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "job %" PRId64 " is not known; tarn jobs --ended lists them", id);
    list =
        tarn_cli_list_new(cli, explain ? explain_columns : job_columns, TARN_COUNT_OF(job_columns));
    for (size_t i = 0; i < answer->n_jobs; i++)
        if (!one || answer->jobs[i]->id == id)
            add_job(list, answer->jobs[i]);
    TARN_TRY(tarn_cli_list_end(list));
    for (size_t i = 0; i < answer->n_jobs; i++)
        if (!one || answer->jobs[i]->id == id)
            tarn_cli_say_decision(cli, answer->jobs[i]);
    return TARN_OK;
}

/* --- compact --- */

static struct tarn_status *follow(struct tarn_client_stream *stream,
                                  struct tarn_cli_progress *progress,
                                  Tarn__V1__CompactProgress **first,
                                  Tarn__V1__CompactProgress **last)
{
    for (;;) {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__CompactProgress *answer = NULL;
        TARN_TRY(tarn_cli_next(stream, &tarn__v1__compact_progress__descriptor, &answer));
        if (answer == NULL)
            return TARN_OK;
        progress->total = answer->tasks_total;
        tarn_cli_progress_step(progress, answer->tasks_done + answer->tasks_failed);
        if (*first == NULL) {
            *first = tarn_move(answer);
            continue;
        }
        tarn_cli_message_drop(last);
        *last = tarn_move(answer);
    }
}

static void say_compacted(struct tarn_cli *cli, const Tarn__V1__CompactProgress *p,
                          const char *what, bool waited)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf size = {0};
    const char *tasks = p->tasks_total == 1 ? "task" : "tasks";

    tarn_format_size(p->bytes_rewritten, &size);
    if (p->tasks_total == 0)
        tarn_cli_say(cli, "nothing to %s", what);
    else if (tarn_cli_args_has(&cli->args, "dry-run"))
        tarn_cli_say(cli, "would run %" PRId64 " %s", p->tasks_total, tasks);
    else if (!waited)
        tarn_cli_say(cli, "queued %" PRId64 " %s; tarn jobs shows them", p->tasks_total, tasks);
    else
        tarn_cli_say(cli,
                     "%" PRId64 " of %" PRId64 " %s done: %" PRId64 " files became %" PRId64
                     ", %s rewritten, snapshot %" PRId64,
                     p->tasks_done, p->tasks_total, tasks, p->files_before, p->files_after,
                     tarn_buf_cstr(&size), p->snapshot_id);
}

static struct tarn_status *show(struct tarn_cli *cli, const Tarn__V1__CompactProgress *first,
                                const Tarn__V1__CompactProgress *end, const char *what, bool waited)
{
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = tarn_cli_record_new(cli);

    say_compacted(cli, end, what, waited);
    tarn_cli_record_int(r, "snapshot", NULL, TARN_CLI_INT, end->snapshot_id);
    tarn_cli_record_int(r, "tasks_total", NULL, TARN_CLI_INT, end->tasks_total);
    tarn_cli_record_int(r, "tasks_done", NULL, TARN_CLI_INT, end->tasks_done);
    tarn_cli_record_int(r, "tasks_failed", NULL, TARN_CLI_INT, end->tasks_failed);
    tarn_cli_record_int(r, "files_before", NULL, TARN_CLI_INT, end->files_before);
    tarn_cli_record_int(r, "files_after", NULL, TARN_CLI_INT, end->files_after);
    tarn_cli_record_int(r, "bytes_rewritten", NULL, TARN_CLI_INT, end->bytes_rewritten);
    bool show_picks = !waited || tarn_cli_args_has(&cli->args, "dry-run");
    struct tarn_cli_list *list = tarn_cli_record_list(
        r, "picks", show_picks ? "picked" : NULL, explain_columns, TARN_COUNT_OF(explain_columns));
    for (size_t i = 0; i < first->n_picks; i++)
        add_job(list, first->picks[i]);
    TARN_TRY(tarn_cli_record_end(r));
    for (size_t i = 0; i < first->n_picks && tarn_cli_args_has(&cli->args, "dry-run"); i++)
        tarn_cli_say_decision(cli, first->picks[i]);
    if (end->tasks_failed > 0)
        return tarn_status_new(TARN_INTERNAL,
                               "%" PRId64 " of %" PRId64 " tasks failed: %s; tarn "
                               "jobs --ended shows each",
                               end->tasks_failed, end->tasks_total, end->failure);
    return TARN_OK;
}

static struct tarn_status *run(struct tarn_cli *cli, const char *method, const char *what,
                               const ProtobufCMessage *request, bool wait)
{
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__CompactProgress *first = NULL;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__CompactProgress *last = NULL;
    struct tarn_cli_progress progress;

    TARN_TRY(tarn_cli_ask_stream(cli, method, request, &stream));
    tarn_cli_progress_start(&progress, cli, what, false, 0);
    struct tarn_status *status = follow(stream, &progress, &first, &last);
    tarn_cli_progress_end(&progress);
    TARN_TRY(status);
    if (first == NULL)
        return tarn_status_new(TARN_INTERNAL, "the server answered a %s with nothing", what);
    return show(cli, first, last != NULL ? last : first, what, wait);
}

struct tarn_status *tarn_cli_compact(struct tarn_cli *cli)
{
    Tarn__V1__CompactRequest request = TARN__V1__COMPACT_REQUEST__INIT;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    const char *partition = tarn_cli_args_text(&cli->args, "partition");
    if (partition != NULL)
        TARN_TRY(tarn_cli_partition(cli, partition, "--partition", &request.partition,
                                    &request.n_partition));
    request.full = tarn_cli_args_has(&cli->args, "full");
    request.wait = tarn_cli_args_has(&cli->args, "wait");
    request.dry_run = tarn_cli_args_has(&cli->args, "dry-run");
    return run(cli, "MaintenanceService/Compact", "compact", &request.base, request.wait);
}

/* --- rescale --- */

struct tarn_status *tarn_cli_rescale(struct tarn_cli *cli)
{
    Tarn__V1__RescaleRequest request = TARN__V1__RESCALE_REQUEST__INIT;
    int64_t buckets = 0;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    const char *partition = tarn_cli_args_text(&cli->args, "partition");
    if (partition != NULL)
        TARN_TRY(tarn_cli_partition(cli, partition, "--partition", &request.partition,
                                    &request.n_partition));
    TARN_TRY(tarn_cli_args_int(&cli->args, "buckets", 1, &buckets));
    if (buckets < 1 || buckets > INT32_MAX)
        return tarn_cli_misused(
            cli, tarn_status_new(TARN_INVALID_ARGUMENT, "--buckets N: how many are there to be?"));
    request.buckets = (int32_t)buckets;
    request.wait = !tarn_cli_args_has(&cli->args, "no-wait");
    request.dry_run = tarn_cli_args_has(&cli->args, "dry-run");
    return run(cli, "MaintenanceService/Rescale", "rescale", &request.base, request.wait);
}
