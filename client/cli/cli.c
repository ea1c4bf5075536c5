#include "cli.h"

#include <errno.h>
#include <poll.h>

#include "text.h"

#define UNIMPLEMENTED_TEXT "this version of Tarn does not have it yet"

/* --- what commands say about themselves --- */

struct tarn_status *tarn_cli_misused(struct tarn_cli *cli, struct tarn_status *consumed)
{
    if (consumed != NULL)
        cli->wrong_usage = true;
    return consumed;
}

struct tarn_status *tarn_cli_local(struct tarn_cli *cli, struct tarn_status *consumed)
{
    if (consumed != NULL)
        cli->no_advice = true;
    return consumed;
}

struct tarn_status *tarn_cli_usage(struct tarn_cli *cli, const char *format, ...)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    va_list args;
    va_start(args, format);
    tarn_buf_vprintf(&text, format, args);
    va_end(args);
    return tarn_cli_misused(cli,
                            tarn_status_new(TARN_INVALID_ARGUMENT, "%s", tarn_buf_cstr(&text)));
}

struct tarn_status *tarn_cli_not_yet(const char *what)
{
    return tarn_status_new(TARN_UNIMPLEMENTED, "%s: " UNIMPLEMENTED_TEXT, what);
}

/* A stream only says that some write failed; a pipe without a reader can still be asked. */
static int why_failed(FILE *out)
{
    struct pollfd fd = {.fd = fileno(out), .events = POLLOUT};
    if (fd.fd >= 0 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR) != 0)
        return EPIPE;
    return EIO;
}

struct tarn_status *tarn_cli_flush(struct tarn_cli *cli)
{
    errno = 0;
    if (fflush(cli->out) == 0 && !ferror(cli->out))
        return TARN_OK;
    int error = errno != 0 ? errno : why_failed(cli->out);
    cli->out_closed = error == EPIPE;
    return tarn_status_errno(error, "cannot write the output");
}

/* --- errors: one line, what, why; what to do --- */

static void say_error(struct tarn_cli *cli, const struct tarn_status *status)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    const char *message = tarn_status_message(status);
    const char *advice = tarn_status_advice(status);
    bool not_yet = tarn_status_reason(status) == TARN_UNIMPLEMENTED && strstr(message, " yet");

    tarn_cli_escape(tarn_slice_str(message), &text);
    if (cli->wrong_usage)
        tarn_buf_printf(&text, "; see tarn %s%s--help",
                        cli->command != NULL ? cli->command->name : "",
                        cli->command != NULL ? " " : "");
    else if (advice[0] != '\0' && !cli->no_advice && !not_yet && strstr(message, advice) == NULL &&
             strstr(message, "; ") == NULL)
        tarn_buf_printf(&text, "; %s", advice); /* one that says it itself has a semicolon */
    fprintf(cli->err, "tarn: %s\n", tarn_buf_cstr(&text));
    if (cli->verbose > 0)
        fprintf(cli->err, "tarn: reason %s, code %s, request %s\n",
                tarn_reason_name(tarn_status_reason(status)),
                tarn_code_name(tarn_status_code(status)), cli->op.request_id);
}

static int finish(struct tarn_cli *cli, struct tarn_status *consumed)
{
    TARN_OWN(tarn_status_drop) struct tarn_status *status = consumed;

    if (status == NULL)
        status = tarn_cli_flush(cli);
    if (status == NULL)
        return 0;
    if (cli->out_closed)
        return 141; /* as a shell reports SIGPIPE */
    if (tarn_op_is_cancelled(&cli->op)) {
        fprintf(cli->err, "tarn: interrupted\n");
        return 1;
    }
    say_error(cli, status);
    return cli->wrong_usage ? 2 : 1;
}

/* --- which command --- */

static const struct tarn_cli_command *find_command(const char *name)
{
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static bool is_group(const char *word)
{
    size_t size = strlen(word);
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++)
        if (strncmp(c->name, word, size) == 0 && c->name[size] == ' ')
            return true;
    return false;
}

/* The nearest first word, or with `group` the nearest second one. */
static const char *nearest_word(struct tarn_cli *cli, const char *word, const char *group)
{
    const char *names[128];
    size_t count = 0, skip = group == NULL ? 0 : strlen(group) + 1;

    for (const struct tarn_cli_command *c = tarn_cli_commands;
         c->name != NULL && count < TARN_COUNT_OF(names); c++) {
        if (group != NULL && (strncmp(c->name, group, skip - 1) != 0 || c->name[skip - 1] != ' '))
            continue;
        const char *from = c->name + skip;
        names[count++] = tarn_arena_str(cli->op.arena, tarn_slice_of(from, strcspn(from, " ")));
    }
    return tarn_nearest(word, names, count);
}

static struct tarn_status *unknown_command(struct tarn_cli *cli, const char *word,
                                           const char *group)
{
    const char *nearest = nearest_word(cli, word, group);
    const char *before = group == NULL ? "" : group;
    const char *blank = group == NULL ? "" : " ";
    if (nearest == NULL)
        return tarn_cli_usage(cli, "unknown command %s%s%.100s", before, blank, word);
    return tarn_cli_usage(cli, "unknown command %s%s%.100s; did you mean %s%s%s?", before, blank,
                          word, before, blank, nearest);
}

static struct tarn_status *group_alone(struct tarn_cli *cli, const char *group)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    size_t size = strlen(group);
    for (const struct tarn_cli_command *c = tarn_cli_commands; c->name != NULL; c++)
        if (strncmp(c->name, group, size) == 0 && c->name[size] == ' ')
            tarn_buf_printf(&text, "%s%s", text.size > 0 ? ", " : "", c->name + size + 1);
    return tarn_cli_usage(cli, "%s what? one of %s", group, tarn_buf_cstr(&text));
}

/* argv without the words that named the command. */
struct rest {
    char **argv;
    int argc;
};

static void leave_out(struct rest *rest, int at)
{
    for (int i = at; i + 1 < rest->argc; i++)
        rest->argv[i] = rest->argv[i + 1];
    rest->argc--;
}

static bool asks_for(const struct rest *rest, const char *option, const char *letter)
{
    for (int i = 0; i < rest->argc && strcmp(rest->argv[i], "--") != 0; i++)
        if (strcmp(rest->argv[i], option) == 0 || strcmp(rest->argv[i], letter) == 0)
            return true;
    return false;
}

/* *command NULL without a status: help was asked for and given. */
static struct tarn_status *choose_command(struct tarn_cli *cli, struct rest *rest,
                                          const struct tarn_cli_command **command)
{
    bool help = asks_for(rest, "--help", "-h");
    int at = tarn_cli_args_word(tarn_cli_global_options, rest->argc, rest->argv, 0);

    *command = NULL;
    if (at < rest->argc && strcmp(rest->argv[at], "help") == 0) {
        help = true;
        leave_out(rest, at);
        at = tarn_cli_args_word(tarn_cli_global_options, rest->argc, rest->argv, at);
    }
    if (at == rest->argc) {
        if (help || rest->argc == 0) {
            tarn_cli_help(rest->argc == 0 && !help ? cli->err : cli->out, NULL);
            cli->wrong_usage = !help;
            return TARN_OK;
        }
        struct tarn_cli_args args = {.tables = {tarn_cli_global_options}};
        struct tarn_status *status = tarn_cli_args_parse(&args, rest->argc, rest->argv);
        tarn_cli_args_drop(&args);
        return status != NULL ? tarn_cli_misused(cli, status) : tarn_cli_usage(cli, "no command");
    }
    const char *name = rest->argv[at];
    leave_out(rest, at);
    if (is_group(name)) {
        at = tarn_cli_args_word(tarn_cli_global_options, rest->argc, rest->argv, at);
        bool alone = find_command(name) != NULL; /* a command by itself, too */
        if (at == rest->argc && help && !alone)
            return tarn_cli_help(cli->out, name), TARN_OK;
        if (at == rest->argc && !alone)
            return group_alone(cli, name);
        const char *full = at == rest->argc
                               ? name
                               : tarn_arena_printf(cli->op.arena, "%s %s", name, rest->argv[at]);
        bool found = at < rest->argc && find_command(full) != NULL;
        if (!found && !alone)
            return unknown_command(cli, rest->argv[at], name);
        if (found) {
            leave_out(rest, at);
            name = full;
        }
    }
    *command = find_command(name);
    if (*command == NULL)
        return unknown_command(cli, name, NULL);
    if (help && (*command)->run != NULL) {
        tarn_cli_help_command(cli->out, *command);
        *command = NULL;
    }
    return TARN_OK;
}

/* --- global options --- */

static struct tarn_status *set_format(struct tarn_cli *cli)
{
    static const char *const names[] = {"table", "json", "jsonl", "csv", "parquet", "arrow"};
    const char *text = tarn_cli_args_text(&cli->args, "output");
    bool scan = strcmp(cli->command->name, "scan") == 0;
    size_t count = scan ? TARN_COUNT_OF(names) : 4;

    if (text == NULL) {
        cli->format = cli->out_is_terminal ? TARN_CLI_TABLE : scan ? TARN_CLI_JSONL : TARN_CLI_JSON;
        return TARN_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            cli->format = (enum tarn_cli_format)i;
            cli->format_given = true;
            return TARN_OK;
        }
    }
    return tarn_cli_usage(cli, "-o \"%.50s\": expected table, json, jsonl%s", text,
                          scan ? ", csv, parquet or arrow" : " or csv");
}

static struct tarn_status *set_timeout(struct tarn_cli *cli)
{
    const char *text = tarn_cli_args_text(&cli->args, "timeout");
    int64_t ms = 0;

    if (text == NULL)
        return TARN_OK;
    struct tarn_status *status = tarn_parse_duration(tarn_slice_str(text), &ms);
    bool plain = text[strspn(text, "0123456789")] == '\0'; /* as in other tools: seconds */
    bool good =
        status == NULL && ms > 0 && (!plain || !__builtin_mul_overflow(ms, (int64_t)1000, &ms));
    tarn_status_free(status);
    if (!good)
        return tarn_cli_usage(
            cli, "--timeout \"%.50s\": expected seconds, or \"500 ms\", \"2 min\"", text);
    if (__builtin_add_overflow(tarn_clock_mono_ms(), ms, &cli->op.deadline_mono_ms))
        cli->op.deadline_mono_ms = INT64_MAX;
    return TARN_OK;
}

static struct tarn_status *check_words(struct tarn_cli *cli)
{
    const struct tarn_cli_command *command = cli->command;
    size_t count = cli->args.word_count;

    if (count < (size_t)command->word_min)
        return tarn_cli_usage(cli, "%s needs %s", command->name, command->words);
    if (command->word_max >= 0 && count > (size_t)command->word_max)
        return tarn_cli_usage(cli, "%s: \"%.100s\" is one word too many", command->name,
                              cli->args.words[command->word_max]);
    return TARN_OK;
}

static struct tarn_status *run_command(struct tarn_cli *cli, const struct rest *rest)
{
    cli->args.tables[0] = tarn_cli_global_options;
    cli->args.tables[1] = cli->command->options;
    TARN_TRY(tarn_cli_misused(cli, tarn_cli_args_parse(&cli->args, rest->argc, rest->argv)));
    size_t cursor = 0;
    while (tarn_cli_args_next_of(&cli->args, (const char *const[]){"verbose", NULL}, &cursor))
        cli->verbose++;
    TARN_TRY(set_format(cli));
    TARN_TRY(set_timeout(cli));
    TARN_TRY(check_words(cli));
    return cli->command->run(cli);
}

static struct tarn_status *run(struct tarn_cli *cli, struct rest *rest)
{
    const struct tarn_cli_command *command = NULL;

    if (rest->argc > 0 && asks_for(rest, "--version", "--version")) {
        fprintf(cli->out, "tarn %s\n", TARN_VERSION);
        return TARN_OK;
    }
    TARN_TRY(choose_command(cli, rest, &command));
    if (command == NULL)
        return TARN_OK;
    cli->command = command;
    if (command->run == NULL)
        return tarn_cli_not_yet(command->name);
    return run_command(cli, rest);
}

int tarn_cli_run(struct tarn_cli *cli, int argc, char *const *argv)
{
    struct rest rest = {.argc = argc > 0 ? argc - 1 : 0};
    rest.argv = tarn_arena_calloc(cli->op.arena, (size_t)argc + 1, sizeof *rest.argv);
    for (int i = 0; i < rest.argc; i++)
        rest.argv[i] = argv[i + 1];

    int code = finish(cli, run(cli, &rest));
    if (code == 0 && cli->wrong_usage)
        code = 2;
    tarn_client_drop(&cli->client);
    tarn_cli_args_drop(&cli->args);
    return code;
}
