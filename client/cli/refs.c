#include "ask.h"
#include "print.h"

#include "tarn/v1/table.pb-c.h"

/* Tags and branches of a table, and its way back. */

const struct tarn_cli_option tarn_cli_tag_create_options[] = {
    {"snapshot", 0, "N", "the version that snapshot N made; else the latest", false},
    {"at", 0, "TIME", "the latest version committed at or before TIME", false},
    {"keep", 0, "DURATION", "how long the tag is kept: 30d, 12h; else until it is dropped", false},
    {0},
};
const struct tarn_cli_option tarn_cli_branch_create_options[] = {
    {"tag", 0, "TAG", "begins with the tag's snapshot; else with none", false},
    {0},
};
const struct tarn_cli_option tarn_cli_schema_rollback_options[] = {
    {"to", 0, "ID", "the schema that will be the newest; see tarn schemas", false},
    {0},
};

const struct tarn_cli_option tarn_cli_rollback_options[] = {
    {"to-snapshot", 0, "N", "snapshot N is the latest then", false},
    {"to-tag", 0, "TAG", "the tag's snapshot is, also if it has expired", false},
    {"to-time", 0, "TIME", "the last snapshot at or before TIME is", false},
    {"only-from", 0, "N", "only where snapshot N is the latest now", false},
    {"dry-run", 0, NULL, "say what would go, and do nothing", false},
    {0},
};

/* Of the options of these names at most one is given; a NULL name: there is no such option. */
static struct tarn_status *take_version(struct tarn_cli *cli, const char *by_id,
                                        const char *by_time, const char *by_tag,
                                        Tarn__V1__Version *out)
{
    const char *time = tarn_cli_args_text(&cli->args, by_time);
    const char *tag = by_tag == NULL ? NULL : tarn_cli_args_text(&cli->args, by_tag);
    bool has_id = tarn_cli_args_has(&cli->args, by_id);

    if ((time != NULL) + (tag != NULL) + has_id > 1)
        return tarn_cli_usage(cli, "only one of its options says which version is meant");
    if (time != NULL) {
        out->at_case = TARN__V1__VERSION__AT_TIME_MS;
        struct tarn_status *s = tarn_parse_time(tarn_slice_str(time), &out->time_ms);
        return s == TARN_OK ? s : tarn_cli_misused(cli, tarn_status_wrap(s, "--%s", by_time));
    }
    if (tag != NULL) {
        out->at_case = TARN__V1__VERSION__AT_TAG;
        out->tag = (char *)(uintptr_t)tag;
    }
    if (!has_id)
        return TARN_OK;
    out->at_case = TARN__V1__VERSION__AT_SNAPSHOT_ID;
    return tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, by_id, 1, &out->snapshot_id));
}

/* --- tags --- */

static const struct tarn_cli_column tag_columns[] = {
    {"tag", "TAG", TARN_CLI_TEXT},          {"snapshot", "SNAPSHOT", TARN_CLI_INT},
    {"time", "COMMITTED", TARN_CLI_TIME},   {"created", "TAGGED", TARN_CLI_TIME},
    {"until", "KEPT UNTIL", TARN_CLI_TIME},
};

static void add_tag(struct tarn_cli_list *list, const Tarn__V1__Tag *tag)
{
    bool dated = tag->_create_time_case != 0, ends = dated && tag->_retained_case != 0;
    tarn_cli_list_text(list, tag->name);
    tarn_cli_list_int(list, tag->snapshot->id);
    tarn_cli_list_int(list, tag->snapshot->time_ms);
    if (dated)
        tarn_cli_list_int(list, tag->create_time_ms);
    else
        tarn_cli_list_null(list);
    if (ends)
        tarn_cli_list_int(list, tag->create_time_ms + tag->retained_ms);
    else
        tarn_cli_list_null(list);
}

struct tarn_status *tarn_cli_tag_list(struct tarn_cli *cli)
{
    Tarn__V1__ListTagsRequest request = TARN__V1__LIST_TAGS_REQUEST__INIT;
    Tarn__V1__Page page = TARN__V1__PAGE__INIT;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.page = &page;
    do {
        TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListTagsResponse *answer = NULL;
        TARN_TRY(tarn_cli_ask(cli, "TableService/ListTags", &request.base,
                              &tarn__v1__list_tags_response__descriptor, &answer));
        if (list == NULL)
            list = tarn_cli_list_new(cli, tag_columns, TARN_COUNT_OF(tag_columns));
        for (size_t i = 0; i < answer->n_tags; i++)
            add_tag(list, answer->tags[i]);
        page.token = tarn_arena_str(cli->op.arena, tarn_slice_str(answer->next_page_token));
    } while (page.token[0] != '\0');
    return tarn_cli_list_end(list);
}

struct tarn_status *tarn_cli_tag_create(struct tarn_cli *cli)
{
    Tarn__V1__CreateTagRequest request = TARN__V1__CREATE_TAG_REQUEST__INIT;
    Tarn__V1__Version version = TARN__V1__VERSION__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__Tag *tag = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = NULL;
    const char *keep = tarn_cli_args_text(&cli->args, "keep");

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(take_version(cli, "snapshot", "at", NULL, &version));
    request.version = version.at_case == TARN__V1__VERSION__AT__NOT_SET ? NULL : &version;
    request.name = (char *)(uintptr_t)cli->args.words[1];
    request.request_id = tarn_cli_request_id(cli);
    if (keep != NULL) {
        struct tarn_status *s = tarn_parse_duration(tarn_slice_str(keep), &request.retained_ms);
        if (s == TARN_OK && request.retained_ms == 0)
            s = tarn_status_new(TARN_INVALID_ARGUMENT, "a tag is kept for more than nothing");
        if (s != TARN_OK)
            return tarn_cli_misused(cli, tarn_status_wrap(s, "--keep"));
    }
    TARN_TRY(tarn_cli_ask(cli, "TableService/CreateTag", &request.base, &tarn__v1__tag__descriptor,
                          &tag));
    if (cli->format == TARN_CLI_TABLE) {
        tarn_cli_say(cli, "tag %s names snapshot %" PRId64, tag->name, tag->snapshot->id);
        return TARN_OK;
    }
    record = tarn_cli_record_new(cli);
    tarn_cli_record_text(record, "tag", NULL, tag->name);
    tarn_cli_record_int(record, "snapshot", NULL, TARN_CLI_INT, tag->snapshot->id);
    return tarn_cli_record_end(record);
}

struct tarn_status *tarn_cli_tag_drop(struct tarn_cli *cli)
{
    Tarn__V1__DropTagRequest request = TARN__V1__DROP_TAG_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DropTagResponse *answer = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.name = (char *)(uintptr_t)cli->args.words[1];
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "TableService/DropTag", &request.base,
                          &tarn__v1__drop_tag_response__descriptor, &answer));
    return tarn_cli_dropped(cli, "tag", request.name);
}

/* --- branches --- */

static const struct tarn_cli_column branch_columns[] = {{"branch", "BRANCH", TARN_CLI_TEXT}};

struct tarn_status *tarn_cli_branch_list(struct tarn_cli *cli)
{
    Tarn__V1__ListBranchesRequest request = TARN__V1__LIST_BRANCHES_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__ListBranchesResponse *answer = NULL;
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(tarn_cli_ask(cli, "TableService/ListBranches", &request.base,
                          &tarn__v1__list_branches_response__descriptor, &answer));
    list = tarn_cli_list_new(cli, branch_columns, TARN_COUNT_OF(branch_columns));
    for (size_t i = 0; i < answer->n_branches; i++)
        tarn_cli_list_text(list, answer->branches[i]);
    return tarn_cli_list_end(list);
}

/* What was done to the branch that the second word names. */
static struct tarn_status *say_branch(struct tarn_cli *cli, const char *name)
{
    if (cli->format == TARN_CLI_TABLE) {
        tarn_cli_say(cli, "the branch is table %s$branch_%s", cli->args.words[0], name);
        return TARN_OK;
    }
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = tarn_cli_record_new(cli);
    tarn_cli_record_text(record, "branch", NULL, name);
    return tarn_cli_record_end(record);
}

static struct tarn_status *say_forwarded(struct tarn_cli *cli, const char *name,
                                         const Tarn__V1__FastForwardResponse *r)
{
    tarn_cli_say(cli, "%s is at snapshot %" PRId64 " of branch %s", cli->args.words[0],
                 r->snapshot_id, name);
    if (r->undone_to == 0)
        tarn_cli_say(cli, "nothing of the table was undone");
    else if (r->undone_from == r->undone_to)
        tarn_cli_say(cli, "snapshot %" PRId64 " of the table was undone", r->undone_to);
    else
        tarn_cli_say(cli, "snapshots %" PRId64 " to %" PRId64 " of the table were undone",
                     r->undone_from, r->undone_to);
    if (cli->format == TARN_CLI_TABLE)
        return TARN_OK;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = tarn_cli_record_new(cli);
    tarn_cli_record_text(record, "fast_forwarded_to", NULL, name);
    tarn_cli_record_int(record, "snapshot", NULL, TARN_CLI_INT, r->snapshot_id);
    tarn_cli_record_int(record, "undone_from", NULL, TARN_CLI_INT, r->undone_from);
    tarn_cli_record_int(record, "undone_to", NULL, TARN_CLI_INT, r->undone_to);
    return tarn_cli_record_end(record);
}

struct tarn_status *tarn_cli_branch_create(struct tarn_cli *cli)
{
    Tarn__V1__CreateBranchRequest request = TARN__V1__CREATE_BRANCH_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__CreateBranchResponse *answer = NULL;
    const char *tag = tarn_cli_args_text(&cli->args, "tag");

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.branch = (char *)(uintptr_t)cli->args.words[1];
    request.tag = (char *)(uintptr_t)(tag == NULL ? "" : tag);
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "TableService/CreateBranch", &request.base,
                          &tarn__v1__create_branch_response__descriptor, &answer));
    return say_branch(cli, request.branch);
}

struct tarn_status *tarn_cli_branch_rename(struct tarn_cli *cli)
{
    Tarn__V1__RenameBranchRequest request = TARN__V1__RENAME_BRANCH_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__RenameBranchResponse *answer = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.branch = (char *)(uintptr_t)cli->args.words[1];
    request.to = (char *)(uintptr_t)cli->args.words[2];
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "TableService/RenameBranch", &request.base,
                          &tarn__v1__rename_branch_response__descriptor, &answer));
    return say_branch(cli, request.to);
}

struct tarn_status *tarn_cli_branch_drop(struct tarn_cli *cli)
{
    Tarn__V1__DropBranchRequest request = TARN__V1__DROP_BRANCH_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__DropBranchResponse *answer = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.branch = (char *)(uintptr_t)cli->args.words[1];
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "TableService/DropBranch", &request.base,
                          &tarn__v1__drop_branch_response__descriptor, &answer));
    return tarn_cli_dropped(cli, "branch", request.branch);
}

struct tarn_status *tarn_cli_branch_fast_forward(struct tarn_cli *cli)
{
    Tarn__V1__FastForwardRequest request = TARN__V1__FAST_FORWARD_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__FastForwardResponse *answer = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    request.branch = (char *)(uintptr_t)cli->args.words[1];
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "TableService/FastForward", &request.base,
                          &tarn__v1__fast_forward_response__descriptor, &answer));
    return say_forwarded(cli, request.branch, answer);
}

/* --- roll-back --- */

static void say(struct tarn_cli *cli, const Tarn__V1__RollBackResponse *answer, bool dry)
{
    const char *would = dry ? "would go" : "went";
    tarn_cli_say(cli, "%s %s back from snapshot %" PRId64 " to %" PRId64 "%s", cli->args.words[0],
                 would, answer->from, answer->to,
                 answer->restored ? ", which had expired and comes from its tag" : "");
    for (size_t i = 0; i < answer->n_tags; i++)
        tarn_cli_say(cli, "tag %s %s", answer->tags[i], dry ? "would go" : "is gone");
}

struct tarn_status *tarn_cli_rollback(struct tarn_cli *cli)
{
    Tarn__V1__RollBackRequest request = TARN__V1__ROLL_BACK_REQUEST__INIT;
    Tarn__V1__Version to = TARN__V1__VERSION__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__RollBackResponse *answer = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    TARN_TRY(take_version(cli, "to-snapshot", "to-time", "to-tag", &to));
    if (to.at_case == TARN__V1__VERSION__AT__NOT_SET)
        return tarn_cli_usage(cli, "one of --to-snapshot, --to-tag and --to-time says how far");
    TARN_TRY(
        tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "only-from", 1, &request.only_from)));
    request.to = &to;
    request.dry_run = tarn_cli_args_has(&cli->args, "dry-run");
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "TableService/RollBack", &request.base,
                          &tarn__v1__roll_back_response__descriptor, &answer));
    if (cli->format == TARN_CLI_TABLE) {
        say(cli, answer, request.dry_run);
        return TARN_OK;
    }
    struct tarn_json *tags = tarn_json_array();
    for (size_t i = 0; i < answer->n_tags; i++)
        tarn_json_add(tags, tarn_json_string(tarn_slice_str(answer->tags[i])));
    record = tarn_cli_record_new(cli);
    tarn_cli_record_int(record, "from", NULL, TARN_CLI_INT, answer->from);
    tarn_cli_record_int(record, "snapshot", NULL, TARN_CLI_INT, answer->to);
    tarn_cli_record_any(record, "tags", NULL, tags, tarn_slice_str(""));
    tarn_cli_record_int(record, "restored", NULL, TARN_CLI_BOOL, answer->restored);
    tarn_cli_record_int(record, "dry_run", NULL, TARN_CLI_BOOL, request.dry_run);
    return tarn_cli_record_end(record);
}

struct tarn_status *tarn_cli_schema_rollback(struct tarn_cli *cli)
{
    Tarn__V1__RollBackSchemaRequest request = TARN__V1__ROLL_BACK_SCHEMA_REQUEST__INIT;
    TARN_OWN(tarn_cli_message_drop) Tarn__V1__RollBackSchemaResponse *answer = NULL;
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = NULL;

    TARN_TRY(tarn_cli_table_ref(cli, cli->args.words[0], &request.table));
    if (!tarn_cli_args_has(&cli->args, "to"))
        return tarn_cli_usage(cli, "--to says which schema will be the newest");
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_int(&cli->args, "to", 0, &request.schema_id)));
    request.request_id = tarn_cli_request_id(cli);
    TARN_TRY(tarn_cli_ask(cli, "TableService/RollBackSchema", &request.base,
                          &tarn__v1__roll_back_schema_response__descriptor, &answer));
    if (cli->format == TARN_CLI_TABLE) {
        tarn_cli_say(cli, "%s went back from schema %" PRId64 " to %" PRId64, cli->args.words[0],
                     answer->from, answer->to);
        return TARN_OK;
    }
    record = tarn_cli_record_new(cli);
    tarn_cli_record_int(record, "from", NULL, TARN_CLI_INT, answer->from);
    tarn_cli_record_int(record, "schema", NULL, TARN_CLI_INT, answer->to);
    return tarn_cli_record_end(record);
}
