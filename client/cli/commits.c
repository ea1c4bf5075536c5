#include "ask.h"
#include "print.h"

#include "tarn/v1/table.pb-c.h"

/* What became of a commit; what a commit user has committed last. */

const struct tarn_cli_option tarn_cli_commits_options[] = {
    {"user", 0, "USER", "the commit user", false},
    {"id", 0, "N", "the commit identifier; of a batch: 9223372036854775807", false},
    {"since", 0, "SNAPSHOT", "the writer began at this snapshot: nothing of it landed before",
     false},
    {0},
};

static const char *state_name(Tarn__V1__GetCommitResponse__State state)
{
    switch (state) {
    case TARN__V1__GET_COMMIT_RESPONSE__STATE__LANDED:
        return "landed";
    case TARN__V1__GET_COMMIT_RESPONSE__STATE__REFUSED:
        return "refused";
    case TARN__V1__GET_COMMIT_RESPONSE__STATE__OPEN:
        return "open";
    case TARN__V1__GET_COMMIT_RESPONSE__STATE__ROLLED_BACK:
        return "rolled back";
    case TARN__V1__GET_COMMIT_RESPONSE__STATE__NOT_KNOWN:
        return "no longer known";
    case TARN__V1__GET_COMMIT_RESPONSE__STATE__NOT_COMMITTED:
        return "not committed";
    default: /* of a later version */
        return "?";
    }
}

static void add_id(struct tarn_cli_record *record, const char *key, const char *title, int64_t id)
{
    if (id > 0)
        tarn_cli_record_int(record, key, title, TARN_CLI_INT, id);
    else
        tarn_cli_record_text(record, key, NULL, NULL);
}

static struct tarn_status *show_fate(struct tarn_cli *cli, Tarn__V1__TableRef *table, char *user,
                                     int64_t identifier)
{
    Tarn__V1__GetCommitRequest request = TARN__V1__GET_COMMIT_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__GetCommitResponse *answer = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = NULL;

    request.table = table;
    request.commit_user = user;
    request.commit_identifier = identifier;
    if (tarn_cli_args_has(&cli->args, "since")) {
        request._since_case = TARN__V1__GET_COMMIT_REQUEST___SINCE_SINCE_SNAPSHOT;
        TARN_TRY(tarn_cli_misused(
            cli, tarn_cli_args_int(&cli->args, "since", 0, &request.since_snapshot)));
    }
    TARN_TRY(tarn_cli_ask(cli, "TableService/GetCommit", &request.base,
                          &tarn__v1__get_commit_response__descriptor, &answer));
    record = tarn_cli_record_new(cli);
    tarn_cli_record_text(record, "state", "State", state_name(answer->state));
    add_id(record, "snapshot", "Snapshot", answer->snapshot_id);
    add_id(record, "compact_snapshot", "Compaction's snapshot", answer->compact_snapshot_id);
    tarn_cli_record_text(record, "reason", answer->reason[0] != '\0' ? "Reason" : NULL,
                         tarn_cli_or_null(answer->reason));
    tarn_cli_record_text(record, "message", answer->message[0] != '\0' ? "Message" : NULL,
                         tarn_cli_or_null(answer->message));
    add_id(record, "horizon_snapshot", "Known since snapshot", answer->horizon_snapshot);
    return tarn_cli_record_end(record);
}

static struct tarn_status *show_last(struct tarn_cli *cli, Tarn__V1__TableRef *table, char *user)
{
    Tarn__V1__FilterCommittedRequest request = TARN__V1__FILTER_COMMITTED_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__FilterCommittedResponse *answer = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = NULL;

    request.table = table;
    request.commit_user = user;
    TARN_TRY(tarn_cli_ask(cli, "TableService/FilterCommitted", &request.base,
                          &tarn__v1__filter_committed_response__descriptor, &answer));
    record = tarn_cli_record_new(cli);
    tarn_cli_record_text(record, "user", "User", user);
    if (answer->_last_case == TARN__V1__FILTER_COMMITTED_RESPONSE___LAST_LAST_COMMITTED)
        tarn_cli_record_int(record, "last_identifier", "Last identifier", TARN_CLI_INT,
                            answer->last_committed);
    else
        tarn_cli_record_text(record, "last_identifier", "Last identifier", NULL);
    return tarn_cli_record_end(record);
}

struct tarn_status *tarn_cli_commits(struct tarn_cli *cli)
{
    Tarn__V1__TableRef *table;
    int64_t identifier = 0;
    const char *given = tarn_cli_args_text(&cli->args, "user");
    if (given == NULL)
        return tarn_cli_usage(cli, "--user names whose commits to look for");
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "id", INT64_MIN, &identifier)));
    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &table));
    char *user = tarn_arena_str(cli->op.arena, tarn_slice_str(given));
    return tarn_cli_args_has(&cli->args, "id") ? show_fate(cli, table, user, identifier)
                                               : show_last(cli, table, user);
}
