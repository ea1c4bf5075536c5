/*
 * print - what a command found, shown as a table, JSON, JSON lines or CSV from one description.
 *
 * A *list* is rows of the columns it was made with; a *record* is one object of named values, which
 * may hold lists. Cells are given in order of the columns; a row ends with its last cell.
 *
 *              table (for people)             json, jsonl, csv (for programs)
 *   size       1.5 MiB                        bytes
 *   time       local, with its offset         <key>_ms: milliseconds, and <key>: ISO, UTC
 *   null       -                              null, in CSV nothing
 *
 * A list of a record prints below it in tables, as an array in JSON, as JSON text in CSV.
 */
#ifndef TARN_CLI_PRINT_H
#define TARN_CLI_PRINT_H

#include "cli.h"

enum tarn_cli_kind {
    TARN_CLI_TEXT,
    TARN_CLI_INT,
    TARN_CLI_SIZE, /* bytes */
    TARN_CLI_TIME, /* milliseconds since 1970; 0: null */
    TARN_CLI_BOOL,
    TARN_CLI_REAL,
    TARN_CLI_ANY /* JSON, and a text for tables */
};

struct tarn_cli_column {
    const char *key;   /* of JSON and CSV: snake_case, without a unit */
    const char *title; /* of tables; NULL: not shown there */
    enum tarn_cli_kind kind;
};

struct tarn_cli_list;
/* Prints while rows come; `columns` is borrowed. */
struct tarn_cli_list *tarn_cli_list_new(struct tarn_cli *cli, const struct tarn_cli_column *columns,
                                        size_t column_count);
void tarn_cli_list_drop(struct tarn_cli_list **list);
void tarn_cli_list_slice(struct tarn_cli_list *list, struct tarn_slice text); /* absent: null */
void tarn_cli_list_text(struct tarn_cli_list *list, const char *text);        /* NULL: null */
void tarn_cli_list_int(struct tarn_cli_list *list, int64_t value); /* INT SIZE TIME BOOL */
void tarn_cli_list_real(struct tarn_cli_list *list, double value);
void tarn_cli_list_any(struct tarn_cli_list *list, struct tarn_json *consumed,
                       struct tarn_slice text);
void tarn_cli_list_null(struct tarn_cli_list *list);
void tarn_cli_list_int_or_null(struct tarn_cli_list *list, bool there, int64_t value);
/* What is left, and the end of an array. Not for the list of a record. */
TARN_MUST struct tarn_status *tarn_cli_list_end(struct tarn_cli_list *list);

struct tarn_cli_record;
struct tarn_cli_record *tarn_cli_record_new(struct tarn_cli *cli);
void tarn_cli_record_drop(struct tarn_cli_record **record);
/* title NULL: only in JSON and CSV */
void tarn_cli_record_slice(struct tarn_cli_record *record, const char *key, const char *title,
                           struct tarn_slice text);
void tarn_cli_record_text(struct tarn_cli_record *record, const char *key, const char *title,
                          const char *text);
void tarn_cli_record_int(struct tarn_cli_record *record, const char *key, const char *title,
                         enum tarn_cli_kind kind, int64_t value);
void tarn_cli_record_any(struct tarn_cli_record *record, const char *key, const char *title,
                         struct tarn_json *consumed, struct tarn_slice text);
/* A list of the record; owned by it. With title, it is shown below the values in tables. */
struct tarn_cli_list *tarn_cli_record_list(struct tarn_cli_record *record, const char *key,
                                           const char *title, const struct tarn_cli_column *columns,
                                           size_t column_count);
TARN_MUST struct tarn_status *tarn_cli_record_end(struct tarn_cli_record *record);

/* A line for people: nothing where output is for programs. */
void tarn_cli_say(struct tarn_cli *cli, const char *format, ...) TARN_PRINTF(2, 3);
/* "dropped WHAT NAME", or the record {"dropped": NAME}. */
TARN_MUST struct tarn_status *tarn_cli_dropped(struct tarn_cli *cli, const char *what,
                                               const char *name);
void tarn_cli_csv_text(struct tarn_slice text, struct tarn_buf *out); /* quoted where it must be */

#endif
