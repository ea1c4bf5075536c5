#include "print.h"
#include "table.h"

const struct tarn_cli_option tarn_cli_adopt_options[] = {
    {"all", 0, NULL, "every database of the warehouse", false},
    {"check", 0, NULL, "look, say what is there, and write nothing", false},
    {"files", 0, "WHICH", "data files to look for: sample (100 of each table), all, none", false},
    {"compaction", 0, "WHO", "tarn: the daemon compacts them from now on; writers: it does not",
     false},
    {0},
};

const char *tarn_cli_compaction_word(Tarn__V1__CompactionOwner owner)
{
    return owner == TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_TARN      ? "tarn"
           : owner == TARN__V1__COMPACTION_OWNER__COMPACTION_OWNER_WRITERS ? "writers"
                                                                           : NULL;
}

/* --- the request --- */

/* Index of the option's word in the list; where it isn't given, 0. */
static struct tarn_status *choose(struct tarn_cli *cli, const char *option,
                                  const char *const *words, size_t count, size_t *out)
{
    const char *word = tarn_cli_args_text(&cli->args, option);
    *out = 0;
    for (size_t i = 0; word != NULL && i < count; i++)
        if (strcmp(words[i], word) == 0) {
            *out = i;
            return TARN_OK;
        }
    return word == NULL ? TARN_OK
                        : tarn_cli_usage(cli, "--%s %s: it is %s or %s", option, word,
                                         words[count - 2], words[count - 1]);
}

static struct tarn_status *make_request(struct tarn_cli *cli, Tarn__V1__AdoptRequest *request)
{
    static const char *const files[] = {"sample", "all", "none"}; /* in the order of the enum */
    static const char *const owners[] = {"", "tarn", "writers"};
    size_t chosen, count = cli->args.word_count;
    bool all = tarn_cli_args_has(&cli->args, "all");
    if (all == (count > 0))
        return tarn_cli_usage(cli, "%s",
                              all ? "--all goes without targets" : "name a target, or --all");
    request->targets = tarn_arena_calloc(cli->op.arena, count + 1, sizeof *request->targets);
    for (size_t i = 0; i < count; i++)
        request->targets[i] = tarn_cli_bytes_str(cli->args.words[i]);
    request->n_targets = count;
    request->check_only = tarn_cli_args_has(&cli->args, "check");
    TARN_TRY(choose(cli, "files", files, TARN_COUNT_OF(files), &chosen));
    request->files = (Tarn__V1__AdoptRequest__Files)chosen;
    TARN_TRY(choose(cli, "compaction", owners, TARN_COUNT_OF(owners), &chosen));
    request->compaction = (Tarn__V1__CompactionOwner)chosen;
    return TARN_OK;
}

/* --- the reports --- */

static const struct tarn_cli_column columns[] = {
    {"database", "DATABASE", TARN_CLI_TEXT},
    {"table", "TABLE", TARN_CLI_TEXT},
    {"path", NULL, TARN_CLI_TEXT},
    {"uuid", NULL, TARN_CLI_TEXT},
    {"outcome", "OUTCOME", TARN_CLI_TEXT},
    {"compaction", "COMPACTION", TARN_CLI_TEXT},
    {"schemas", NULL, TARN_CLI_INT},
    {"snapshots", "SNAPSHOTS", TARN_CLI_INT},
    {"earliest_snapshot", NULL, TARN_CLI_INT},
    {"latest_snapshot", NULL, TARN_CLI_INT},
    {"tags", "TAGS", TARN_CLI_INT},
    {"branches", "BRANCHES", TARN_CLI_INT},
    {"consumers", "CONSUMERS", TARN_CLI_INT},
    {"manifests", NULL, TARN_CLI_INT},
    {"files", "FILES", TARN_CLI_INT},
    {"files_looked", NULL, TARN_CLI_INT},
    {"damages", "DAMAGES", TARN_CLI_INT},
    {"limits", "LIMITS", TARN_CLI_INT},
    {"findings_left_off", NULL, TARN_CLI_INT},
    {"findings", NULL, TARN_CLI_ANY},
    {"failure", NULL, TARN_CLI_TEXT},
    {"advice", NULL, TARN_CLI_TEXT},
};

static const char *outcome_word(Tarn__V1__AdoptReport__Outcome outcome)
{
    static const char *const words[] = {"?", "adopted", "known", "checked", "no_table", "failed"};
    return (size_t)outcome < TARN_COUNT_OF(words) ? words[outcome] : words[0];
}

static const char *kind_word(Tarn__V1__Finding__Kind kind)
{
    static const char *const words[] = {"?", "damage", "limit", "note"};
    return (size_t)kind < TARN_COUNT_OF(words) ? words[kind] : words[0];
}

static struct tarn_json *findings_json(const Tarn__V1__AdoptReport *r)
{
    struct tarn_json *list = tarn_json_array();
    for (size_t i = 0; i < r->n_findings; i++) {
        const Tarn__V1__Finding *f = r->findings[i];
        struct tarn_json *one = tarn_json_object();
        tarn_json_set_str(one, "kind", kind_word(f->kind));
        tarn_json_set_slice(one, tarn_slice_str("where"), tarn_cli_slice(f->where));
        tarn_json_set_slice(one, tarn_slice_str("what"), tarn_cli_slice(f->what));
        tarn_json_set_slice(one, tarn_slice_str("advice"), tarn_cli_slice(f->advice));
        tarn_json_add(list, one);
    }
    return list;
}

static bool is_table(const Tarn__V1__AdoptReport *r)
{
    return r->outcome != TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_NO_TABLE;
}

static void add_report(struct tarn_cli_list *list, const Tarn__V1__AdoptReport *r)
{
    const int64_t counts[] = {
        r->schemas,  r->snapshots, r->earliest_snapshot, r->latest_snapshot, r->tags,
        r->branches, r->consumers, r->manifests,         r->files,           r->files_looked,
        r->damages,  r->limits,    r->findings_left_off};
    tarn_cli_list_slice(list, tarn_cli_slice(r->database));
    tarn_cli_list_slice(list, tarn_cli_slice(r->name));
    tarn_cli_list_slice(list, tarn_cli_slice(r->path));
    tarn_cli_list_text(list, tarn_cli_or_null(r->uuid));
    tarn_cli_list_text(list, outcome_word(r->outcome));
    tarn_cli_list_text(list, is_table(r) ? tarn_cli_compaction_word(r->compaction) : NULL);
    for (size_t i = 0; i < TARN_COUNT_OF(counts); i++)
        if (!is_table(r) || counts[i] < 0)
            tarn_cli_list_null(list);
        else
            tarn_cli_list_int(list, counts[i]);
    tarn_cli_list_any(list, findings_json(r), tarn_slice_str(NULL));
    tarn_cli_list_slice(list, tarn_cli_or_absent(r->failure));
    tarn_cli_list_slice(list, tarn_cli_or_absent(r->advice));
}

static void say_report(struct tarn_cli *cli, const Tarn__V1__AdoptReport *r)
{
    if (r->failure.len > 0)
        tarn_cli_say(cli, "%s: %.*s: %.*s%s%.*s", is_table(r) ? "failed" : "no table",
                     TARN_SLICE_ARG(tarn_cli_slice(r->path)),
                     TARN_SLICE_ARG(tarn_cli_slice(r->failure)), r->advice.len > 0 ? "; " : "",
                     TARN_SLICE_ARG(tarn_cli_slice(r->advice)));
    for (size_t i = 0; i < r->n_findings; i++) {
        const Tarn__V1__Finding *f = r->findings[i];
        tarn_cli_say(cli, "%s: %.*s: %.*s; %.*s", kind_word(f->kind),
                     TARN_SLICE_ARG(tarn_cli_slice(f->where)),
                     TARN_SLICE_ARG(tarn_cli_slice(f->what)),
                     TARN_SLICE_ARG(tarn_cli_slice(f->advice)));
    }
    if (r->findings_left_off > 0)
        tarn_cli_say(cli, "%.*s: %" PRId64 " more were found",
                     TARN_SLICE_ARG(tarn_cli_slice(r->path)), r->findings_left_off);
}

struct reports {
    Tarn__V1__AdoptReport **list; /* owned */
    size_t count, capacity;
    int64_t damaged_count, failed_count;
};

static void reports_fini(struct reports *reports)
{
    for (size_t i = 0; i < reports->count; i++)
        tarn_cli_message_drop(&reports->list[i]);
    free(reports->list);
}

static struct tarn_status *read_reports(struct tarn_client_stream *stream, struct reports *out)
{
    for (;;) {
        Tarn__V1__AdoptReport *report = NULL;
        TARN_TRY(tarn_cli_next(stream, &tarn__v1__adopt_report__descriptor, &report));
        if (report == NULL)
            return TARN_OK;
        TARN_GROW(out->list, out->count, out->capacity);
        out->list[out->count++] = report;
        out->failed_count += report->outcome == TARN__V1__ADOPT_REPORT__OUTCOME__OUTCOME_FAILED;
        out->damaged_count += report->damages > 0;
    }
}

static struct tarn_status *show(struct tarn_cli *cli, const struct reports *reports)
{
    TARN_OWN(tarn_cli_list_drop)
    struct tarn_cli_list *list = tarn_cli_list_new(cli, columns, TARN_COUNT_OF(columns));
    for (size_t i = 0; i < reports->count; i++)
        add_report(list, reports->list[i]);
    TARN_TRY(tarn_cli_list_end(list));
    for (size_t i = 0; i < reports->count; i++)
        say_report(cli, reports->list[i]);
    if (reports->failed_count > 0 || reports->damaged_count > 0)
        return tarn_status_new(TARN_TABLE_DAMAGED,
                               "%" PRId64 " of %zu folders are damaged, %" PRId64
                               " could not be taken",
                               reports->damaged_count, reports->count, reports->failed_count);
    return TARN_OK;
}

struct tarn_status *tarn_cli_adopt(struct tarn_cli *cli)
{
    Tarn__V1__AdoptRequest request = TARN__V1__ADOPT_REQUEST__INIT;
    TARN_OWN(tarn_client_stream_drop) struct tarn_client_stream *stream = NULL;
    TARN_OWN(reports_fini) struct reports reports = {0};

    TARN_TRY(make_request(cli, &request));
    TARN_TRY(tarn_cli_ask_stream(cli, "CatalogService/Adopt", &request.base, &stream));
    TARN_TRY(read_reports(stream, &reports));
    return show(cli, &reports);
}
