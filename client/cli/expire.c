#include "ask.h"
#include "print.h"

#include "tarn/v1/maintenance.pb-c.h"

/* Expiry of snapshots on demand. */

const struct tarn_cli_option tarn_cli_expire_options[] = {
    {"keep-last", 0, "N", "N snapshots stay; without --older-than no more than these", false},
    {"older-than", 0, "DURATION", "younger snapshots stay: 12h, 7d", false},
    {"dry-run", 0, NULL, "say what would go, and do nothing", false},
    {0},
};

static const char *which(struct tarn_cli *cli, const Tarn__V1__ExpireResponse *r)
{
    int64_t last = r->to - 1;
    return r->from == last ? tarn_arena_printf(cli->op.arena, "snapshot %" PRId64, last)
                           : tarn_arena_printf(cli->op.arena, "snapshots %" PRId64 " to %" PRId64,
                                               r->from, last);
}

static void say(struct tarn_cli *cli, const Tarn__V1__ExpireResponse *r, bool dry)
{
    const char *table = cli->args.words[0];
    if (r->snapshots == 0)
        tarn_cli_say(cli, "no snapshot of %s %s", table, dry ? "would expire" : "expires now");
    else
        tarn_cli_say(cli,
                     "%s of %s %s, with %" PRId64 " data file%s (%" PRId64 " bytes), %" PRId64
                     " of changelogs, %" PRId64 " manifests and lists",
                     which(cli, r), table, dry ? "would expire" : "expired", r->data_files,
                     r->data_files == 1 ? "" : "s", r->data_bytes, r->changelog_files,
                     r->manifests);
    if (r->kept_by != NULL && r->kept_by[0] != '\0')
        tarn_cli_say(cli, "the next one stays: %s", r->kept_by);
    if (r->outside_files > 0)
        tarn_cli_say(cli, "%" PRId64 " files lie outside of the warehouse, and stay",
                     r->outside_files);
}

static struct tarn_status *print(struct tarn_cli *cli, const Tarn__V1__ExpireResponse *r, bool dry)
{
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = tarn_cli_record_new(cli);
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {{"from", r->from},
                  {"to", r->to},
                  {"snapshots", r->snapshots},
                  {"data_files", r->data_files},
                  {"data_bytes", r->data_bytes},
                  {"changelog_files", r->changelog_files},
                  {"manifests", r->manifests},
                  {"index_files", r->index_files},
                  {"statistics", r->statistics},
                  {"outside_files", r->outside_files}};
    for (size_t i = 0; i < TARN_COUNT_OF(fields); i++)
        tarn_cli_record_int(record, fields[i].name, NULL, TARN_CLI_INT, fields[i].value);
    tarn_cli_record_text(record, "kept_by", NULL, r->kept_by);
    tarn_cli_record_int(record, "dry_run", NULL, TARN_CLI_BOOL, dry);
    return tarn_cli_record_end(record);
}

struct tarn_status *tarn_cli_expire(struct tarn_cli *cli)
{
    Tarn__V1__ExpireRequest request = TARN__V1__EXPIRE_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ExpireResponse *answer = NULL;
    const char *age = tarn_cli_args_text(&cli->args, "older-than");

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(
        tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "keep-last", 1, &request.keep_last)));
    request.by_age = age != NULL;
    struct tarn_status *s =
        age == NULL ? TARN_OK : tarn_parse_duration(tarn_slice_str(age), &request.older_than_ms);
    if (s != TARN_OK)
        return tarn_cli_misused(cli, tarn_status_wrap(s, "--older-than"));
    request.dry_run = tarn_cli_args_has(&cli->args, "dry-run");
    TARN_TRY(tarn_cli_ask(cli, "MaintenanceService/Expire", &request.base,
                          &tarn__v1__expire_response__descriptor, &answer));
    if (cli->format != TARN_CLI_TABLE)
        return print(cli, answer, request.dry_run);
    say(cli, answer, request.dry_run);
    return TARN_OK;
}
