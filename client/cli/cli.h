/*
 * cli - the program `tarn`: one run of it, from its words to its exit code.
 *
 * A command is a function over a `struct tarn_cli` and its parsed words; commands.c lists them all,
 * and help is made from that list. A command asks the daemon (ask.h), shows what came (print.h) and
 * returns a status; what goes to standard error and the exit code follow from it in cli.c.
 *
 * Memory   what a command needs until its end lies in cli->op.arena.
 * Threads  one. A signal handler may cancel cli->op.
 */
#ifndef TARN_CLI_CLI_H
#define TARN_CLI_CLI_H

#include <stdio.h>

#include "tarn/client.h"

#include "args.h"

enum tarn_cli_format {
    TARN_CLI_TABLE,
    TARN_CLI_JSON,
    TARN_CLI_JSONL,
    TARN_CLI_CSV,
    TARN_CLI_PARQUET, /* scan only, as is the next */
    TARN_CLI_ARROW
};

struct tarn_cli {
    FILE *out, *err;
    int in_fd;
    bool out_is_terminal, err_is_terminal;

    /* private to the room, from here on */
    struct tarn_op op;
    struct tarn_client *client; /* NULL: not yet connected */
    struct tarn_cli_args args;
    const struct tarn_cli_command *command;
    enum tarn_cli_format format;
    bool format_given;
    int verbose;
    bool wrong_usage; /* the status is about how we were called */
    bool no_advice;   /* ... about this machine, of which reasons.def knows nothing */
    bool out_closed;  /* nobody reads what we print any more */
};

typedef struct tarn_status *(*tarn_cli_run_fn)(struct tarn_cli *cli);

struct tarn_cli_command {
    const char *name;  /* "status", "db create" */
    const char *words; /* as usage shows them: "DATABASE.TABLE FILE..." */
    int word_min;
    int word_max;                          /* -1: any number */
    const struct tarn_cli_option *options; /* NULL: none of its own */
    tarn_cli_run_fn run;                   /* NULL: not in this version */
    const char *summary;                   /* one line */
    const char *more;                      /* what --help adds; NULL: nothing */
};
extern const struct tarn_cli_command tarn_cli_commands[]; /* ends with name NULL */
extern const struct tarn_cli_option tarn_cli_global_options[];

/* The whole run: argv[0] is the program. The exit code: 0 fine, 1 it failed, 2 wrong usage, 141
 * nobody reads the output. cli->op is made and ended by the caller. */
int tarn_cli_run(struct tarn_cli *cli, int argc, char *const *argv);

/* INVALID_ARGUMENT, exit code 2, and a hint at --help. */
TARN_MUST TARN_NONNULL struct tarn_status *tarn_cli_usage(struct tarn_cli *cli, const char *format,
                                                          ...) TARN_PRINTF(2, 3);
/* A status about a word of the command line: the same hint and exit code. NULL stays NULL. */
TARN_MUST struct tarn_status *tarn_cli_misused(struct tarn_cli *cli, struct tarn_status *consumed);
/* A status about a file or setting of this machine: shown without the advice of its reason, which
 * speaks of the daemon's. NULL stays NULL. */
TARN_MUST struct tarn_status *tarn_cli_local(struct tarn_cli *cli, struct tarn_status *consumed);
/* "what: this version of Tarn does not have it yet" */
TARN_MUST struct tarn_status *tarn_cli_not_yet(const char *what);
/* Flushes; the status of what could not be written. */
TARN_MUST struct tarn_status *tarn_cli_flush(struct tarn_cli *cli);

/* help.c */
void tarn_cli_help(FILE *out, const char *group); /* NULL: all commands; else those of "db" */
void tarn_cli_help_command(FILE *out, const struct tarn_cli_command *command);

/* The commands, by file: status.c */
struct tarn_status *tarn_cli_status(struct tarn_cli *cli);
/* db.c */
struct tarn_status *tarn_cli_db_create(struct tarn_cli *cli);
struct tarn_status *tarn_cli_db_list(struct tarn_cli *cli);
struct tarn_status *tarn_cli_db_show(struct tarn_cli *cli);
struct tarn_status *tarn_cli_db_alter(struct tarn_cli *cli);
struct tarn_status *tarn_cli_db_drop(struct tarn_cli *cli);
/* table.c, create.c, alter.c */
struct tarn_status *tarn_cli_table_create(struct tarn_cli *cli);
struct tarn_status *tarn_cli_table_register(struct tarn_cli *cli);
struct tarn_status *tarn_cli_table_replace(struct tarn_cli *cli);
struct tarn_status *tarn_cli_table_list(struct tarn_cli *cli);
struct tarn_status *tarn_cli_table_show(struct tarn_cli *cli);
struct tarn_status *tarn_cli_table_alter(struct tarn_cli *cli);
struct tarn_status *tarn_cli_table_rename(struct tarn_cli *cli);
struct tarn_status *tarn_cli_table_drop(struct tarn_cli *cli);
/* partitions.c */
struct tarn_status *tarn_cli_partitions(struct tarn_cli *cli);
struct tarn_status *tarn_cli_partitions_create(struct tarn_cli *cli);
struct tarn_status *tarn_cli_partitions_mark(struct tarn_cli *cli);
struct tarn_status *tarn_cli_partitions_drop(struct tarn_cli *cli);
/* load.c, scan.c */
struct tarn_status *tarn_cli_load(struct tarn_cli *cli);
struct tarn_status *tarn_cli_scan(struct tarn_cli *cli);
/* look.c, history.c */
struct tarn_status *tarn_cli_files(struct tarn_cli *cli);
struct tarn_status *tarn_cli_buckets(struct tarn_cli *cli);
struct tarn_status *tarn_cli_plan(struct tarn_cli *cli);
struct tarn_status *tarn_cli_snapshots(struct tarn_cli *cli);
struct tarn_status *tarn_cli_schemas(struct tarn_cli *cli);
struct tarn_status *tarn_cli_manifests(struct tarn_cli *cli);
struct tarn_status *tarn_cli_options(struct tarn_cli *cli);
/* commits.c */
struct tarn_status *tarn_cli_commits(struct tarn_cli *cli);
/* compact.c */
struct tarn_status *tarn_cli_compact(struct tarn_cli *cli);
struct tarn_status *tarn_cli_rescale(struct tarn_cli *cli);
struct tarn_status *tarn_cli_jobs(struct tarn_cli *cli);
/* advise.c */
struct tarn_status *tarn_cli_advise(struct tarn_cli *cli);
/* delete.c */
struct tarn_status *tarn_cli_delete(struct tarn_cli *cli);
/* expire.c */
struct tarn_status *tarn_cli_expire(struct tarn_cli *cli);
/* adopt.c */
struct tarn_status *tarn_cli_adopt(struct tarn_cli *cli);
/* watch.c, consumer.c */
struct tarn_status *tarn_cli_watch(struct tarn_cli *cli);
struct tarn_status *tarn_cli_consumer_list(struct tarn_cli *cli);
struct tarn_status *tarn_cli_consumer_set(struct tarn_cli *cli);
struct tarn_status *tarn_cli_consumer_drop(struct tarn_cli *cli);
/* refs.c */
struct tarn_status *tarn_cli_tag_list(struct tarn_cli *cli);
struct tarn_status *tarn_cli_tag_create(struct tarn_cli *cli);
struct tarn_status *tarn_cli_tag_drop(struct tarn_cli *cli);
struct tarn_status *tarn_cli_branch_list(struct tarn_cli *cli);
struct tarn_status *tarn_cli_branch_create(struct tarn_cli *cli);
struct tarn_status *tarn_cli_branch_rename(struct tarn_cli *cli);
struct tarn_status *tarn_cli_branch_drop(struct tarn_cli *cli);
struct tarn_status *tarn_cli_branch_fast_forward(struct tarn_cli *cli);
struct tarn_status *tarn_cli_rollback(struct tarn_cli *cli);
struct tarn_status *tarn_cli_schema_rollback(struct tarn_cli *cli);
/* objects.c */
struct tarn_status *tarn_cli_view_create(struct tarn_cli *cli);
struct tarn_status *tarn_cli_view_list(struct tarn_cli *cli);
struct tarn_status *tarn_cli_view_show(struct tarn_cli *cli);
struct tarn_status *tarn_cli_view_alter(struct tarn_cli *cli);
struct tarn_status *tarn_cli_view_rename(struct tarn_cli *cli);
struct tarn_status *tarn_cli_view_drop(struct tarn_cli *cli);
struct tarn_status *tarn_cli_function_create(struct tarn_cli *cli);
struct tarn_status *tarn_cli_function_list(struct tarn_cli *cli);
struct tarn_status *tarn_cli_function_show(struct tarn_cli *cli);
struct tarn_status *tarn_cli_function_alter(struct tarn_cli *cli);
struct tarn_status *tarn_cli_function_rename(struct tarn_cli *cli);
struct tarn_status *tarn_cli_function_drop(struct tarn_cli *cli);
/* smoke.c */
struct tarn_status *tarn_cli_smoke(struct tarn_cli *cli);

extern const struct tarn_cli_option tarn_cli_commits_options[], tarn_cli_db_create_options[],
    tarn_cli_db_alter_options[], tarn_cli_db_drop_options[], tarn_cli_table_create_options[],
    tarn_cli_table_alter_options[], tarn_cli_table_drop_options[], tarn_cli_load_options[],
    tarn_cli_scan_options[], tarn_cli_version_options[], tarn_cli_plan_options[],
    tarn_cli_files_options[], tarn_cli_snapshots_options[], tarn_cli_options_options[],
    tarn_cli_compact_options[], tarn_cli_rescale_options[], tarn_cli_jobs_options[],
    tarn_cli_adopt_options[];
extern const struct tarn_cli_option tarn_cli_watch_options[], tarn_cli_consumer_set_options[],
    tarn_cli_tag_create_options[], tarn_cli_rollback_options[], tarn_cli_schema_rollback_options[],
    tarn_cli_table_replace_options[], tarn_cli_partitions_create_options[],
    tarn_cli_partitions_mark_options[], tarn_cli_partitions_drop_options[],
    tarn_cli_branch_create_options[], tarn_cli_object_create_options[],
    tarn_cli_view_alter_options[], tarn_cli_function_alter_options[],
    tarn_cli_object_drop_options[], tarn_cli_expire_options[], tarn_cli_advise_options[],
    tarn_cli_delete_options[];

#endif
