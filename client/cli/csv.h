/*
 * csv - RFC 4180 text taken apart as it arrives, in pieces of any size.
 *
 * Shape    what stood in quotes is text, even when empty; an unquoted empty cell is null. Lines end
 *          with LF or CR LF; a quoted cell may hold both. An empty line is a row of one null.
 * Limits   TARN_CLI_CSV_CELL_MAX bytes a cell, TARN_CLI_CSV_CELLS_MAX a row.
 * Errors   INPUT_MALFORMED with the line; and what the callbacks return.
 */
#ifndef TARN_CLI_CSV_H
#define TARN_CLI_CSV_H

#include "base/base.h"

#define TARN_CLI_CSV_CELL_MAX (64u << 20)
#define TARN_CLI_CSV_CELLS_MAX 100000

struct tarn_cli_csv {
    /* Borrowed for the call. `quoted` false with no text: null. */
    struct tarn_status *(*cell)(void *arg, struct tarn_slice text, bool quoted);
    struct tarn_status *(*row)(void *arg); /* the cells since the last one were a row */
    void *arg;

    /* private; zeroes at the start */
    enum {
        TARN_CLI_CSV_CELL_START,
        TARN_CLI_CSV_PLAIN,
        TARN_CLI_CSV_QUOTED,
        TARN_CLI_CSV_QUOTE_ENDED,
        TARN_CLI_CSV_QUOTE_CR
    } state;
    struct tarn_buf text;
    size_t cell_count; /* of this row */
    int64_t line;      /* ended so far */
};

TARN_MUST struct tarn_status *tarn_cli_csv_feed(struct tarn_cli_csv *csv, struct tarn_slice bytes);
TARN_MUST struct tarn_status *tarn_cli_csv_end(struct tarn_cli_csv *csv);
void tarn_cli_csv_drop(struct tarn_cli_csv *csv);

#endif
