#include "csv.h"

static struct tarn_status *malformed(const struct tarn_cli_csv *csv, const char *what)
{
    return tarn_status_new(TARN_INPUT_MALFORMED, "CSV line %" PRId64 ": %s", csv->line + 1, what);
}

static struct tarn_status *end_cell(struct tarn_cli_csv *csv, bool quoted)
{
    if (++csv->cell_count > TARN_CLI_CSV_CELLS_MAX)
        return malformed(csv, "too many columns");
    struct tarn_status *status = csv->cell(csv->arg, tarn_buf_slice(&csv->text), quoted);
    tarn_buf_clear(&csv->text);
    csv->state = TARN_CLI_CSV_CELL_START;
    return status;
}

static struct tarn_status *end_row(struct tarn_cli_csv *csv, bool quoted)
{
    TARN_TRY(end_cell(csv, quoted));
    csv->cell_count = 0;
    csv->line++;
    return csv->row(csv->arg);
}

static struct tarn_status *add(struct tarn_cli_csv *csv, const uint8_t *bytes, size_t size)
{
    if (csv->text.size + size > TARN_CLI_CSV_CELL_MAX)
        return malformed(csv, "a cell is too long");
    tarn_buf_add(&csv->text, bytes, size);
    return TARN_OK;
}

static struct tarn_status *plain(struct tarn_cli_csv *csv, uint8_t c)
{
    if (c == '"' && csv->state == TARN_CLI_CSV_CELL_START) {
        csv->state = TARN_CLI_CSV_QUOTED;
        return TARN_OK;
    }
    if (c == ',')
        return end_cell(csv, false);
    if (c == '\n') {
        if (csv->text.size > 0 && csv->text.data[csv->text.size - 1] == '\r')
            csv->text.size--;
        return end_row(csv, false);
    }
    csv->state = TARN_CLI_CSV_PLAIN;
    return add(csv, &c, 1);
}

static struct tarn_status *after_quote(struct tarn_cli_csv *csv, uint8_t c)
{
    if (c == '\n')
        return end_row(csv, true);
    if (csv->state == TARN_CLI_CSV_QUOTE_CR)
        return malformed(csv, "a carriage return alone after a quoted cell");
    if (c == ',')
        return end_cell(csv, true);
    if (c == '\r') {
        csv->state = TARN_CLI_CSV_QUOTE_CR;
        return TARN_OK;
    }
    if (c != '"')
        return malformed(csv, "text after the closing quote");
    csv->state = TARN_CLI_CSV_QUOTED; /* doubled: one of the text */
    return add(csv, &c, 1);
}

struct tarn_status *tarn_cli_csv_feed(struct tarn_cli_csv *csv, struct tarn_slice bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        switch (csv->state) {
        case TARN_CLI_CSV_CELL_START:
        case TARN_CLI_CSV_PLAIN:
            TARN_TRY(plain(csv, bytes.data[i]));
            break;
        case TARN_CLI_CSV_QUOTED: {
            const uint8_t *quote = memchr(bytes.data + i, '"', bytes.size - i);
            size_t size = quote == NULL ? bytes.size - i : (size_t)(quote - (bytes.data + i));
            TARN_TRY(add(csv, bytes.data + i, size));
            i += size;
            if (quote != NULL)
                csv->state = TARN_CLI_CSV_QUOTE_ENDED;
            break;
        }
        case TARN_CLI_CSV_QUOTE_ENDED:
        case TARN_CLI_CSV_QUOTE_CR:
            TARN_TRY(after_quote(csv, bytes.data[i]));
            break;
        }
    }
    return TARN_OK;
}

struct tarn_status *tarn_cli_csv_end(struct tarn_cli_csv *csv)
{
    switch (csv->state) {
    case TARN_CLI_CSV_QUOTED:
        return malformed(csv, "the text ends inside a quoted cell");
    case TARN_CLI_CSV_QUOTE_ENDED:
    case TARN_CLI_CSV_QUOTE_CR:
        return end_row(csv, true);
    case TARN_CLI_CSV_PLAIN:
        return end_row(csv, false);
    case TARN_CLI_CSV_CELL_START:
        break;
    }
    return csv->cell_count > 0 ? end_row(csv, false) : TARN_OK;
}

void tarn_cli_csv_drop(struct tarn_cli_csv *csv)
{
    tarn_buf_drop(&csv->text);
}
