/*
 * args - the words of a command line, by tables of options.
 *
 * Shape    options may stand anywhere: "--limit 5", "--limit=5", "-o json", "-ojson", "-o=json". What
 *          follows an option that takes a value is that value, whatever it begins with. "--" ends
 *          options; "-" alone is a word. An option with a value is given once, unless it is `many`.
 * Memory   values and words are borrowed from argv.
 * Errors   INVALID_ARGUMENT names the option, with the nearest known one.
 */
#ifndef TARN_CLI_ARGS_H
#define TARN_CLI_ARGS_H

#include "base/base.h"

struct tarn_cli_option {
    const char *name;  /* without dashes; NULL ends a table */
    char letter;       /* 0: none */
    const char *value; /* what help calls its value; NULL: a switch */
    const char *help;
    bool many;
};

#define TARN_CLI_TABLES_MAX 2 /* of options: the global ones and the command's */

struct tarn_cli_given {
    const struct tarn_cli_option *option;
    const char *value; /* NULL: a switch */
};

struct tarn_cli_args {
    const struct tarn_cli_option *tables[TARN_CLI_TABLES_MAX];
    struct tarn_cli_given *given;
    size_t given_count, given_capacity;
    const char **words;
    size_t word_count, word_capacity;
};

/* `args` has its tables set and is else empty. */
TARN_MUST struct tarn_status *tarn_cli_args_parse(struct tarn_cli_args *args, int argc,
                                                  char *const *argv);
void tarn_cli_args_drop(struct tarn_cli_args *args);
/* The first word at or after argv[from] that is neither an option of `table` nor the value of one;
 * options that the table lacks are passed over. argc where there is none. */
int tarn_cli_args_word(const struct tarn_cli_option *table, int argc, char *const *argv, int from);

/* The option must be in one of the tables. NULL, false: not given. */
const char *tarn_cli_args_text(const struct tarn_cli_args *args, const char *name);
bool tarn_cli_args_has(const struct tarn_cli_args *args, const char *name);
/* Walks a `many` option: start with *cursor = 0, NULL at the end. */
const char *tarn_cli_args_next(const struct tarn_cli_args *args, const char *name, size_t *cursor);
/* The same, with its name, over the options of all names of the list (NULL ends it), as typed. */
const struct tarn_cli_given *tarn_cli_args_next_of(const struct tarn_cli_args *args,
                                                   const char *const *names, size_t *cursor);
/* *out stays as it is where the option was not given. INVALID_ARGUMENT below `min`. */
TARN_MUST struct tarn_status *tarn_cli_args_int(const struct tarn_cli_args *args, const char *name,
                                                int64_t min, int64_t *out);

/* "a, `b,c`, d" into names; backquotes keep commas and blanks, and stand for themselves doubled. */
TARN_MUST struct tarn_status *tarn_cli_names(struct tarn_arena *arena, const char *text,
                                             struct tarn_slice **out, size_t *count);
/* "a.`b.c`.d" into names, one at least; *at goes behind them, to what is no dot: `end`, the end of the text, or whatever stands behind a
 * backquote. */
TARN_MUST struct tarn_status *tarn_cli_path(struct tarn_arena *arena, const char **at, char end,
                                            struct tarn_slice **out, size_t *count);
/* "key=value" in two; INVALID_ARGUMENT without the sign or with an empty key. */
TARN_MUST struct tarn_status *tarn_cli_pair(const char *text, const char *what,
                                            struct tarn_slice *key, struct tarn_slice *value);

#endif
