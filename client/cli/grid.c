#include "grid.h"

#include "text.h"

struct column {
    struct tarn_buf title; /* escaped */
    size_t width;
    bool at_right; /* no cell so far is anything but a number */
    bool has_number;
};

struct cell {
    size_t begin, end; /* in the page's text */
    size_t width;
};

struct tarn_cli_grid {
    FILE *out;
    bool ruled, titles_printed;
    int indent;
    struct column *columns;
    size_t column_count, column_capacity;
    struct cell *cells; /* row by row */
    size_t cell_count, cell_capacity;
    struct tarn_buf text;
};

struct tarn_cli_grid *tarn_cli_grid_new(FILE *out, bool ruled, int indent)
{
    struct tarn_cli_grid *grid = tarn_calloc(1, sizeof *grid);
    grid->out = out;
    grid->ruled = ruled;
    grid->indent = indent;
    tarn_buf_reserve(&grid->text, 1);
    return grid;
}

void tarn_cli_grid_free(struct tarn_cli_grid *grid)
{
    if (grid == NULL)
        return;
    for (size_t i = 0; i < grid->column_count; i++)
        tarn_buf_drop(&grid->columns[i].title);
    free(grid->columns);
    free(grid->cells);
    tarn_buf_drop(&grid->text);
    free(grid);
}

void tarn_cli_grid_drop(struct tarn_cli_grid **grid)
{
    tarn_cli_grid_free(*grid);
    *grid = NULL;
}

size_t tarn_cli_grid_column_count(const struct tarn_cli_grid *grid)
{
    return grid->column_count;
}

static size_t bounded(size_t width)
{
    return TARN_MIN(width, (size_t)TARN_CLI_GRID_WIDTH_MAX);
}

void tarn_cli_grid_title(struct tarn_cli_grid *grid, struct tarn_slice title)
{
    TARN_GROW(grid->columns, grid->column_count, grid->column_capacity);
    struct column *column = &grid->columns[grid->column_count++];
    *column = (struct column){.at_right = true};
    tarn_cli_escape(title, &column->title);
    column->width = bounded(tarn_cli_width(tarn_buf_slice(&column->title)));
}

enum side { LEFT, RIGHT, EITHER };

static void add_cell(struct tarn_cli_grid *grid, struct tarn_slice text, enum side side)
{
    struct column *column = &grid->columns[grid->cell_count % grid->column_count];

    TARN_GROW(grid->cells, grid->cell_count, grid->cell_capacity);
    struct cell *cell = &grid->cells[grid->cell_count++];
    cell->begin = grid->text.size;
    tarn_cli_escape(text, &grid->text);
    cell->end = grid->text.size;
    cell->width =
        tarn_cli_width(tarn_slice_of(grid->text.data + cell->begin, cell->end - cell->begin));
    column->width = TARN_MAX(column->width, bounded(cell->width));
    column->at_right &= side != LEFT;
    column->has_number |= side == RIGHT;
    if (grid->cell_count % grid->column_count == 0 &&
        (grid->cell_count / grid->column_count >= TARN_CLI_GRID_PAGE_ROWS ||
         grid->text.size >= TARN_CLI_GRID_PAGE_BYTES))
        tarn_cli_grid_flush(grid);
}

void tarn_cli_grid_cell(struct tarn_cli_grid *grid, struct tarn_slice text)
{
    add_cell(grid, text, tarn_cli_is_number(text) ? RIGHT : LEFT);
}

void tarn_cli_grid_number(struct tarn_cli_grid *grid, struct tarn_slice text)
{
    add_cell(grid, text, RIGHT);
}

void tarn_cli_grid_null(struct tarn_cli_grid *grid, const char *shown_as)
{
    add_cell(grid, tarn_slice_str(shown_as), EITHER);
}

/* --- printing --- */

static void pad(FILE *out, size_t count)
{
    fprintf(out, "%*s", (int)count, "");
}

static void print_padded(struct tarn_cli_grid *grid, size_t index, struct tarn_slice text,
                         size_t width)
{
    const struct column *column = &grid->columns[index];
    bool last = index + 1 == grid->column_count;
    bool at_right = column->at_right && column->has_number;
    size_t blanks = column->width > width ? column->width - width : 0;

    if (index == 0)
        pad(grid->out, (size_t)grid->indent);
    if (at_right)
        pad(grid->out, blanks);
    if (text.size > 0)
        fwrite(text.data, 1, text.size, grid->out);
    if (!at_right && !last)
        pad(grid->out, blanks);
    fputs(last ? "\n" : "  ", grid->out);
}

static void print_titles(struct tarn_cli_grid *grid)
{
    for (size_t i = 0; i < grid->column_count; i++) {
        struct tarn_slice title = tarn_buf_slice(&grid->columns[i].title);
        print_padded(grid, i, title, tarn_cli_width(title));
    }
    if (!grid->ruled)
        return;
    for (size_t i = 0; i < grid->column_count; i++) {
        char dashes[TARN_CLI_GRID_WIDTH_MAX];
        memset(dashes, '-', sizeof dashes);
        size_t width = grid->columns[i].width;
        print_padded(grid, i, tarn_slice_of(dashes, width), width);
    }
}

void tarn_cli_grid_flush(struct tarn_cli_grid *grid)
{
    if (grid->column_count == 0)
        return;
    if (!grid->titles_printed)
        print_titles(grid);
    grid->titles_printed = true;
    for (size_t i = 0; i < grid->cell_count; i++) {
        const struct cell *cell = &grid->cells[i];
        print_padded(grid, i % grid->column_count,
                     tarn_slice_of(grid->text.data + cell->begin, cell->end - cell->begin),
                     cell->width);
    }
    grid->cell_count = 0;
    tarn_buf_clear(&grid->text);
}
