#include "ask.h"
#include "print.h"

#include "tarn/v1/data.pb-c.h"

/* Deletes by predicate. */

const struct tarn_cli_option tarn_cli_delete_options[] = {
    {"where", 0, "CONDITION", "rows of which it is true: id = 7 OR name LIKE 'a%'", false},
    {"commit-user", 0, "USER", "as whom it is committed", false},
    {0},
};

static struct tarn_status *print(struct tarn_cli *cli, const Tarn__V1__DeleteResponse *r)
{
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = tarn_cli_record_new(cli);
    tarn_cli_record_int(record, "snapshot", NULL, TARN_CLI_INT, r->snapshot_id);
    tarn_cli_record_int(record, "rows", NULL, TARN_CLI_INT, r->rows);
    tarn_cli_record_int(record, "files", NULL, TARN_CLI_INT, r->files);
    return tarn_cli_record_end(record);
}

struct tarn_status *tarn_cli_delete(struct tarn_cli *cli)
{
    Tarn__V1__DeleteRequest request = TARN__V1__DELETE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DeleteResponse *answer = NULL;
    const char *where = tarn_cli_args_text(&cli->args, "where");
    const char *user = tarn_cli_args_text(&cli->args, "commit-user");

    if (where == NULL)
        return tarn_cli_misused(cli,
                                tarn_status_new(TARN_INVALID_ARGUMENT, "--where says which rows"));
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.where = (char *)(uintptr_t)where;
    if (user != NULL)
        request.commit_user = (char *)(uintptr_t)user;
    TARN_TRY(tarn_cli_ask(cli, "DataService/Delete", &request.base,
                          &tarn__v1__delete_response__descriptor, &answer));
    if (cli->format != TARN_CLI_TABLE)
        return print(cli, answer);
    if (answer->snapshot_id == 0)
        tarn_cli_say(cli, "no row of %s is deleted by that", cli->args.words[0]);
    else
        tarn_cli_say(cli,
                     "%" PRId64 " row%s of %s deleted, in %" PRId64 " file%s: snapshot %" PRId64,
                     answer->rows, answer->rows == 1 ? "" : "s", cli->args.words[0], answer->files,
                     answer->files == 1 ? "" : "s", answer->snapshot_id);
    return TARN_OK;
}
