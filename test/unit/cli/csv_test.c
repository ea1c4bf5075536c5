/*
 * Promise: RFC 4180 text means the same however it is cut into pieces; quoted and unquoted emptiness
 * differ; what is malformed is refused with its line.
 */
#include "test.h"

#include "cli/csv.h"

struct seen {
    struct tarn_buf text; /* cells as [text], nulls as [NULL], rows end with a slash */
};

static struct tarn_status *cell(void *arg, struct tarn_slice text, bool quoted)
{
    struct seen *seen = arg;
    if (text.size == 0 && !quoted)
        tarn_buf_add_str(&seen->text, "[NULL]");
    else
        tarn_buf_printf(&seen->text, "[%.*s]", TARN_SLICE_ARG(text));
    return TARN_OK;
}

static struct tarn_status *row(void *arg)
{
    tarn_buf_add_str(&((struct seen *)arg)->text, "/");
    return TARN_OK;
}

static struct tarn_status *feed(const char *text, size_t piece, struct seen *seen)
{
    TARN_OWN(tarn_cli_csv_drop) struct tarn_cli_csv csv = {.cell = cell, .row = row, .arg = seen};
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i += piece)
        TARN_TRY(tarn_cli_csv_feed(&csv, tarn_slice_of(text + i, TARN_MIN(piece, size - i))));
    return tarn_cli_csv_end(&csv);
}

TARN_TEST(cli_csv, means_the_same_in_any_pieces)
{
    static const struct {
        const char *text, *cells;
    } cases[] = {
        {"", ""},
        {"a,b\n1,2\n", "[a][b]/[1][2]/"},
        {"a,b\r\n1,2\r\n", "[a][b]/[1][2]/"},
        {"a,b\n1,2", "[a][b]/[1][2]/"},
        {"a,b\n,\"\"\n", "[a][b]/[NULL][]/"},
        {"a\n\n\"\"\n", "[a]/[NULL]/[]/"},
        {"\"a,\"\"b\"\"\nc\",d\n", "[a,\"b\"\nc][d]/"},
        {"\"a\r\nb\"\r\nc", "[a\r\nb]/[c]/"},
        {"a\"b,c", "[a\"b][c]/"},
        {"a,", "[a][NULL]/"},
        {"\"a\"", "[a]/"},
        {"a\rb,c\n", "[a\rb][c]/"},
        {"\xc3\xa4,\xe4\xb8\xad\n", "[\xc3\xa4][\xe4\xb8\xad]/"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        for (size_t piece = 1; piece < 9; piece++) {
            struct seen seen = {0};
            expect_ok(feed(cases[i].text, piece, &seen));
            expect_str(tarn_buf_cstr(&seen.text), cases[i].cells);
            tarn_buf_drop(&seen.text);
        }
    }
}

TARN_TEST(cli_csv, refuses_what_is_malformed_with_its_line)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a\n\"b\n", "CSV line 2: the text ends inside a quoted cell"},
        {"a\nb\n\"c\"d\n", "CSV line 3: text after the closing quote"},
        {"\"a\"\rb\n", "CSV line 1: a carriage return alone"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        struct seen seen = {0};
        expect_status(feed(cases[i].text, 3, &seen), TARN_INPUT_MALFORMED, cases[i].message);
        tarn_buf_drop(&seen.text);
    }
}

TARN_TEST(cli_csv, bounds_the_cells_of_a_row)
{
    struct seen seen = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (int i = 0; i < TARN_CLI_CSV_CELLS_MAX + 1; i++)
        tarn_buf_add_byte(&text, ',');
    expect_status(feed(tarn_buf_cstr(&text), 1 << 20, &seen), TARN_INPUT_MALFORMED,
                  "too many columns");
    tarn_buf_drop(&seen.text);
}
