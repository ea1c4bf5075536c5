#include "ask.h"
#include "print.h"

#include "tarn/v1/admin.pb-c.h"

static const struct tarn_cli_column worker_columns[] = {
    {"id", "WORKER", TARN_CLI_TEXT},
    {"name", "NAME", TARN_CLI_TEXT},
    {"address", "ADDRESS", TARN_CLI_TEXT},
    {"local", "LOCAL", TARN_CLI_BOOL},
    {"busy", "BUSY", TARN_CLI_INT},
    {"slots", "SLOTS", TARN_CLI_INT},
    {"memory_max_bytes", "MEMORY", TARN_CLI_SIZE},
    {"version", "VERSION", TARN_CLI_TEXT},
    {"last_seen", "LAST SEEN", TARN_CLI_TIME},
};
static const struct tarn_cli_column mirror_columns[] = {
    {"kind", "KIND", TARN_CLI_TEXT},       {"uri", "URI", TARN_CLI_TEXT},
    {"state", "STATE", TARN_CLI_TEXT},     {"databases", "DATABASES", TARN_CLI_INT},
    {"tables", "TABLES", TARN_CLI_INT},    {"refused", "REFUSED", TARN_CLI_INT},
    {"in_step", "IN STEP", TARN_CLI_TIME}, {"failure", "FAILURE", TARN_CLI_TEXT},
};
static const struct tarn_cli_column problem_columns[] = {
    {"table", "TABLE", TARN_CLI_TEXT},
    {"problem", "PROBLEM", TARN_CLI_TEXT},
};

static void add_workers(struct tarn_cli_record *record, const Tarn__V1__GetStatusResponse *answer)
{
    struct tarn_cli_list *list = tarn_cli_record_list(record, "workers", "workers", worker_columns,
                                                      TARN_COUNT_OF(worker_columns));
    for (size_t i = 0; i < answer->n_workers; i++) {
        const Tarn__V1__WorkerInfo *worker = answer->workers[i];
        tarn_cli_list_text(list, worker->id);
        tarn_cli_list_text(list, worker->name);
        tarn_cli_list_text(list, worker->address);
        tarn_cli_list_int(list, worker->local);
        tarn_cli_list_int(list, worker->busy);
        tarn_cli_list_int(list, worker->slots);
        tarn_cli_list_int(list, worker->memory_max_bytes);
        tarn_cli_list_text(list, worker->version);
        tarn_cli_list_int(list, worker->last_seen_ms);
    }
}

static void add_mirrors(struct tarn_cli_record *record, const Tarn__V1__GetStatusResponse *answer)
{
    struct tarn_cli_list *list = tarn_cli_record_list(record, "mirrors", "mirrors", mirror_columns,
                                                      TARN_COUNT_OF(mirror_columns));
    for (size_t i = 0; i < answer->n_mirrors; i++) {
        const Tarn__V1__MirrorInfo *mirror = answer->mirrors[i];
        tarn_cli_list_text(list, mirror->kind);
        tarn_cli_list_text(list, mirror->uri);
        tarn_cli_list_text(list, mirror->state);
        tarn_cli_list_int(list, mirror->databases);
        tarn_cli_list_int(list, mirror->tables);
        tarn_cli_list_int(list, mirror->refused);
        tarn_cli_list_int(list, mirror->in_step_ms);
        tarn_cli_list_text(list, mirror->failure);
    }
}

static void add_problems(struct tarn_cli_record *record, const Tarn__V1__GetStatusResponse *answer)
{
    struct tarn_cli_list *list = tarn_cli_record_list(
        record, "problems", "problems", problem_columns, TARN_COUNT_OF(problem_columns));
    for (size_t i = 0; i < answer->n_problems; i++) {
        tarn_cli_list_text(list, answer->problems[i]->table);
        tarn_cli_list_text(list, answer->problems[i]->problem);
    }
}

struct tarn_status *tarn_cli_status(struct tarn_cli *cli)
{
    Tarn__V1__GetStatusRequest request = TARN__V1__GET_STATUS_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__GetStatusResponse *answer = NULL;
    TARN_TRY(tarn_cli_ask(cli, "AdminService/GetStatus", &request.base,
                          &tarn__v1__get_status_response__descriptor, &answer));

    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *r = tarn_cli_record_new(cli);
    tarn_cli_record_text(r, "server", "server", tarn_client_server(cli->client));
    tarn_cli_record_text(r, "state", "state", answer->state);
    tarn_cli_record_text(r, "version", "version", answer->version);
    tarn_cli_record_text(r, "client_version", "client version", TARN_VERSION);
    tarn_cli_record_text(r, "warehouse_name", "warehouse", answer->warehouse_name);
    tarn_cli_record_text(r, "warehouse_uri", "warehouse URI", answer->warehouse_uri);
    tarn_cli_record_text(r, "grpc_address", "gRPC", tarn_cli_or_null(answer->grpc_address));
    tarn_cli_record_text(r, "http_address", "HTTP", tarn_cli_or_null(answer->http_address));
    tarn_cli_record_int(r, "started", "started", TARN_CLI_TIME, answer->started_ms);
    tarn_cli_record_int(r, "epoch", "epoch", TARN_CLI_INT, answer->epoch);
    tarn_cli_record_int(r, "databases", "databases", TARN_CLI_INT, answer->databases);
    tarn_cli_record_int(r, "tables", "tables", TARN_CLI_INT, answer->tables);
    tarn_cli_record_int(r, "tasks_queued", "tasks queued", TARN_CLI_INT, answer->tasks_queued);
    tarn_cli_record_int(r, "tasks_leased", "tasks running", TARN_CLI_INT, answer->tasks_leased);
    tarn_cli_record_int(r, "resident_bytes", "memory", TARN_CLI_SIZE, answer->resident_bytes);
    tarn_cli_record_int(r, "worker_restarts", "worker restarts", TARN_CLI_INT,
                        answer->worker_restarts);
    add_workers(r, answer);
    if (answer->n_mirrors > 0)
        add_mirrors(r, answer);
    add_problems(r, answer);
    return tarn_cli_record_end(r);
}
