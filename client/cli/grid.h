/*
 * grid - rows of cells in aligned columns, printed in pages so that any number of rows fits memory.
 *
 * Shape    widths are those of a page, never less than those of the pages before. A cell wider than
 *          TARN_CLI_GRID_WIDTH_MAX is printed whole and pushes its row to the right. A column whose
 *          cells are all numbers stands at the right. Text is escaped (text.h).
 */
#ifndef TARN_CLI_GRID_H
#define TARN_CLI_GRID_H

#include <stdio.h>

#include "base/base.h"

#define TARN_CLI_GRID_WIDTH_MAX 64
#define TARN_CLI_GRID_PAGE_ROWS 1000
#define TARN_CLI_GRID_PAGE_BYTES (4u << 20)

struct tarn_cli_grid;

/* `ruled`: a line of dashes below the titles. `indent`: blanks before each line. */
struct tarn_cli_grid *tarn_cli_grid_new(FILE *out, bool ruled, int indent);
void tarn_cli_grid_free(struct tarn_cli_grid *grid); /* what was not flushed is not printed */
void tarn_cli_grid_drop(struct tarn_cli_grid **grid);
void tarn_cli_grid_title(struct tarn_cli_grid *grid, struct tarn_slice title); /* before any cell */
size_t tarn_cli_grid_column_count(const struct tarn_cli_grid *grid);
void tarn_cli_grid_cell(struct tarn_cli_grid *grid, struct tarn_slice text);
/* A cell that stands at the right whatever its text, as "1.5 MiB". */
void tarn_cli_grid_number(struct tarn_cli_grid *grid, struct tarn_slice text);
void tarn_cli_grid_null(struct tarn_cli_grid *grid, const char *shown_as);
/* Prints the page: titles first, if they were not yet. Full pages are printed by themselves. */
void tarn_cli_grid_flush(struct tarn_cli_grid *grid);

#endif
