#include "ask.h"
#include "print.h"

#include "tarn/v1/maintenance.pb-c.h"

/* What other settings would do to a table. */

const struct tarn_cli_option tarn_cli_advise_options[] = {
    {"bucket-size", 0, "SIZE", "that a bucket is to have at most; 1 GiB unless given", false},
    {0},
};
static const struct tarn_cli_column cause_columns[] = {{"cause", "CAUSE", TARN_CLI_TEXT}};

static const struct tarn_cli_column setting_columns[] = {
    {"setting", "SETTING", TARN_CLI_TEXT},
    {"buckets", "BUCKETS", TARN_CLI_INT},
    {"writer_parallelism", "WRITERS", TARN_CLI_INT},
    {"compaction_trigger", "TRIGGER", TARN_CLI_INT},
    {"target_file_size", "FILE SIZE", TARN_CLI_SIZE},
    {"files", "FILES", TARN_CLI_REAL},
    {"write_amplification", "WRITTEN", TARN_CLI_REAL},
    {"read_fan_out", "RUNS", TARN_CLI_REAL},
};

static void add_setting(struct tarn_cli_list *list, const char *what,
                        const Tarn__V1__AdviseSetting *s)
{
    if (s == NULL)
        return;
    tarn_cli_list_text(list, what);
    tarn_cli_list_int(list, s->buckets);
    tarn_cli_list_int(list, s->writer_parallelism);
    tarn_cli_list_int(list, s->compaction_trigger);
    tarn_cli_list_int(list, s->target_file_size);
    tarn_cli_list_real(list, s->files);
    tarn_cli_list_real(list, s->write_amplification);
    tarn_cli_list_real(list, s->read_fan_out);
}

struct tarn_status *tarn_cli_advise(struct tarn_cli *cli)
{
    Tarn__V1__AdviseRequest request = TARN__V1__ADVISE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__AdviseResponse *answer = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = NULL;
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    const char *size = tarn_cli_args_text(&cli->args, "bucket-size");
    if (size != NULL) {
        struct tarn_status *status = tarn_parse_size(tarn_slice_str(size), &request.bucket_size);
        if (status == TARN_OK && request.bucket_size < 1)
            status = tarn_status_new(TARN_INVALID_ARGUMENT, "a bucket has bytes");
        if (status != TARN_OK)
            return tarn_cli_misused(cli, tarn_status_wrap(status, "--bucket-size"));
    }
    TARN_TRY(tarn_cli_ask(cli, "MaintenanceService/Advise", &request.base,
                          &tarn__v1__advise_response__descriptor, &answer));
    r = tarn_cli_record_new(cli);
    tarn_cli_record_int(r, "first_snapshot", "replayed from snapshot", TARN_CLI_INT,
                        answer->first_snapshot);
    tarn_cli_record_int(r, "last_snapshot", "to snapshot", TARN_CLI_INT, answer->last_snapshot);
    tarn_cli_record_int(r, "span_ms", NULL, TARN_CLI_INT, answer->span_ms);
    tarn_cli_record_int(r, "loaded_bytes", "loaded", TARN_CLI_SIZE, answer->loaded_bytes);
    tarn_cli_record_int(r, "largest_partition_bytes", "largest partition", TARN_CLI_SIZE,
                        answer->largest_partition_bytes);
    tarn_cli_record_int(r, "files_now", "files now", TARN_CLI_INT, answer->files);
    tarn_cli_record_int(r, "sorted_runs_max", "most sorted runs of a bucket now", TARN_CLI_INT,
                        answer->sorted_runs_max);
    struct tarn_cli_list *list = tarn_cli_record_list(
        r, "settings",
        "what it would come to (WRITTEN: bytes for each one loaded; RUNS: merged by a read)",
        setting_columns, TARN_COUNT_OF(setting_columns));
    add_setting(list, "now", answer->now);
    add_setting(list, "advised", answer->advised);
    list = tarn_cli_record_list(r, "causes", "what makes reads slow", cause_columns, 1);
    for (size_t i = 0; i < answer->n_causes; i++)
        tarn_cli_list_text(list, answer->causes[i]);
    return tarn_cli_record_end(r);
}
