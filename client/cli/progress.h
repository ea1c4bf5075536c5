/*
 * progress - how far long work is, on standard error: a bar at a terminal, a plain line every
 * TARN_CLI_PROGRESS_LINE_MS elsewhere, so that a log stays short.
 */
#ifndef TARN_CLI_PROGRESS_H
#define TARN_CLI_PROGRESS_H

#include "cli.h"

#define TARN_CLI_PROGRESS_BAR_MS 100
#define TARN_CLI_PROGRESS_LINE_MS 5000

struct tarn_cli_progress {
    struct tarn_cli *cli;
    const char *what; /* "load" */
    bool bytes;       /* the numbers are bytes; else tasks */
    int64_t total;    /* 0: not known */
    int64_t start_ms, shown_ms;
    bool bar_there;
};

void tarn_cli_progress_start(struct tarn_cli_progress *progress, struct tarn_cli *cli,
                             const char *what, bool bytes, int64_t total);
void tarn_cli_progress_step(struct tarn_cli_progress *progress, int64_t done);
/* Instead of a number: what is waited for. At a terminal only. */
void tarn_cli_progress_note(struct tarn_cli_progress *progress, const char *note);
void tarn_cli_progress_end(struct tarn_cli_progress *progress); /* takes the bar away */

#endif
