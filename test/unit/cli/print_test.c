/*
 * Promise: one description gives a table, JSON, JSON lines and CSV with the same content; nothing a
 * server sends can move a terminal's cursor; wide characters stay aligned.
 */
#include "fake.h"

#include <locale.h>
#include <time.h>

#include "cli/grid.h"
#include "cli/print.h"
#include "cli/text.h"

static const char *escaped(struct tarn_test *t, const char *text)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_cli_escape(tarn_slice_str(text), &out);
    return tarn_arena_str(t->arena, tarn_buf_slice(&out));
}

TARN_TEST(cli_text, escapes_what_a_terminal_obeys)
{
    expect_str(escaped(t, "plain \xc3\xa4\xe4\xb8\xad"), "plain \xc3\xa4\xe4\xb8\xad");
    expect_str(escaped(t, "\033[2J\a\n\r\t\177"), "\\x1b[2J\\x07\\n\\r\\t\\x7f");
    expect_str(escaped(t, "\xc2\x9b"
                          "31m"),
               "\\x9b31m"); /* C1 */
    expect_str(escaped(t, "a\xe2\x80\xae"
                          "b"),
               "a\\u{202e}b"); /* right to left override */
    expect_str(escaped(t, "\xff\xc3"), "\\xff\\xc3");
    expect_str(escaped(t, "\xc0\x80\xed\xa0\x80"), "\\xc0\\x80\\xed\\xa0\\x80");
}

TARN_TEST(cli_text, knows_widths)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    expect_int(tarn_cli_width(tarn_slice_str("abc")), 3);
    expect_int(tarn_cli_width(tarn_slice_str("\xc3\xa4")), 1);
    expect_int(tarn_cli_width(tarn_slice_str("\xe4\xb8\xad\xe6\x96\x87")), 4);
    expect_int(tarn_cli_width(tarn_slice_str("e\xcc\x81")), 1); /* a combining accent */
}

TARN_TEST(cli_text, knows_numbers)
{
    static const char *const good[] = {"0", "-12", "+1.5", ".5", "1e9", "1.5E-3", "7."};
    static const char *const bad[] = {"",      "-",   ".",  "1e", "2026-01-31",
                                      "1.2.3", "0x1", "1 ", "NaN"};
    for (size_t i = 0; i < TARN_COUNT_OF(good); i++)
        expect_true(tarn_cli_is_number(tarn_slice_str(good[i])));
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_false(tarn_cli_is_number(tarn_slice_str(bad[i])));
}

TARN_TEST(cli_text, writes_local_times_with_their_offset)
{
    setenv("TZ", "Asia/Kolkata", 1);
    tzset();
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_cli_local_time(1769860800123, &out);
    tarn_buf_add_byte(&out, ' ');
    tarn_cli_local_time(-1, &out);
    expect_str(tarn_buf_cstr(&out), "2026-01-31T17:30:00.123+05:30 1970-01-01T05:29:59.999+05:30");
}

/* --- lists and records in each format --- */

static const struct tarn_cli_column columns[] = {
    {"name", "NAME", TARN_CLI_TEXT},       {"count", "COUNT", TARN_CLI_INT},
    {"size_bytes", "SIZE", TARN_CLI_SIZE}, {"made", "MADE", TARN_CLI_TIME},
    {"ok", "OK", TARN_CLI_BOOL},           {"hidden", NULL, TARN_CLI_TEXT},
};

static struct tarn_cli new_cli(enum tarn_cli_format format, char **text, size_t *size)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    setenv("TZ", "UTC", 1);
    tzset();
    struct tarn_cli cli = {.format = format, .out = open_memstream(text, size)};
    return cli;
}

static const char *printed(struct tarn_test *t, struct tarn_cli *cli, char **text, size_t *size)
{
    fclose(cli->out);
    const char *copy = tarn_arena_str(t->arena, tarn_slice_of(*text, *size));
    free(*text);
    return copy;
}

static void add_rows(struct tarn_cli_list *list)
{
    tarn_cli_list_text(list, "a,\"b\"");
    tarn_cli_list_int(list, -5);
    tarn_cli_list_int(list, 1536);
    tarn_cli_list_int(list, 1769860800000);
    tarn_cli_list_int(list, 1);
    tarn_cli_list_text(list, "h");
    tarn_cli_list_text(list, "\xe4\xb8\xad\x1b");
    tarn_cli_list_null(list);
    tarn_cli_list_int(list, 0);
    tarn_cli_list_int(list, 0);
    tarn_cli_list_int(list, 0);
    tarn_cli_list_text(list, NULL);
}

static const char *list_as(struct tarn_test *t, enum tarn_cli_format format, bool rows)
{
    char *text = NULL;
    size_t size = 0;
    struct tarn_cli cli = new_cli(format, &text, &size);
    TARN_OWN(tarn_cli_list_drop) struct tarn_cli_list *list =
        tarn_cli_list_new(&cli, columns, TARN_COUNT_OF(columns));
    if (rows)
        add_rows(list);
    expect_ok(tarn_cli_list_end(list));
    return printed(t, &cli, &text, &size);
}

TARN_TEST(cli_list, is_a_table)
{
    expect_str(list_as(t, TARN_CLI_TABLE, true),
               "NAME    COUNT     SIZE  MADE                           OK\n"
               "a,\"b\"      -5  1.5 KiB  2026-01-31T12:00:00.000+00:00  yes\n"
               "\xe4\xb8\xad\\x1b      -      0 B  -                              no\n");
    expect_str(list_as(t, TARN_CLI_TABLE, false), "(none)\n");
}

TARN_TEST(cli_list, is_json)
{
    const char *first = "{\"name\":\"a,\\\"b\\\"\",\"count\":-5,\"size_bytes\":1536,"
                        "\"made_ms\":1769860800000,\"made\":\"2026-01-31T12:00:00.000Z\","
                        "\"ok\":true,\"hidden\":\"h\"}";
    const char *second = "{\"name\":\"\xe4\xb8\xad\\u001B\",\"count\":null,\"size_bytes\":0,"
                         "\"made_ms\":null,\"made\":null,\"ok\":false,\"hidden\":null}";
    expect_str(list_as(t, TARN_CLI_JSONL, true),
               tarn_arena_printf(t->arena, "%s\n%s\n", first, second));
    expect_str(list_as(t, TARN_CLI_JSON, true),
               tarn_arena_printf(t->arena, "[\n%s,\n%s\n]\n", first, second));
    expect_str(list_as(t, TARN_CLI_JSON, false), "[]\n");
    expect_str(list_as(t, TARN_CLI_JSONL, false), "");
}

TARN_TEST(cli_list, is_csv)
{
    expect_str(list_as(t, TARN_CLI_CSV, true),
               "name,count,size_bytes,made,ok,hidden\n"
               "\"a,\"\"b\"\"\",-5,1536,2026-01-31T12:00:00.000Z,true,h\n"
               "\xe4\xb8\xad\x1b,,0,,false,\n");
    expect_str(list_as(t, TARN_CLI_CSV, false), "name,count,size_bytes,made,ok,hidden\n");
}

static const char *record_as(struct tarn_test *t, enum tarn_cli_format format)
{
    static const struct tarn_cli_column part[] = {{"k", "K", TARN_CLI_TEXT}};
    char *text = NULL;
    size_t size = 0;
    struct tarn_cli cli = new_cli(format, &text, &size);
    TARN_OWN(tarn_cli_record_drop) struct tarn_cli_record *record = tarn_cli_record_new(&cli);
    tarn_cli_record_text(record, "name", "the name", "x\ny");
    tarn_cli_record_int(record, "n", "n", TARN_CLI_INT, 3);
    tarn_cli_record_text(record, "none", "none", NULL);
    tarn_cli_record_int(record, "secret", NULL, TARN_CLI_INT, 1);
    struct tarn_cli_list *list = tarn_cli_record_list(record, "parts", "parts", part, 1);
    tarn_cli_list_text(list, "p1");
    tarn_cli_list_text(list, "p2");
    expect_ok(tarn_cli_record_end(record));
    return printed(t, &cli, &text, &size);
}

TARN_TEST(cli_record, in_each_format)
{
    expect_str(record_as(t, TARN_CLI_TABLE),
               "the name  x\\ny\nn         3\nnone      -\nparts\n  K\n  p1\n  p2\n");
    expect_str(record_as(t, TARN_CLI_JSONL),
               "{\"name\":\"x\\ny\",\"n\":3,\"none\":null,\"secret\":1,"
               "\"parts\":[{\"k\":\"p1\"},{\"k\":\"p2\"}]}\n");
    expect_str(record_as(t, TARN_CLI_CSV), "name,n,none,secret,parts\n\"x\ny\",3,,1,"
                                           "\"[{\"\"k\"\":\"\"p1\"\"},{\"\"k\"\":\"\"p2\"\"}]\"\n");
}

TARN_TEST(cli_grid, pages_without_losing_rows_or_wide_cells)
{
    char *text = NULL;
    size_t size = 0;
    struct tarn_cli cli = new_cli(TARN_CLI_TABLE, &text, &size);
    TARN_OWN(tarn_cli_grid_drop) struct tarn_cli_grid *grid = tarn_cli_grid_new(cli.out, true, 0);
    char wide[200];
    memset(wide, 'w', sizeof wide);
    tarn_cli_grid_title(grid, tarn_slice_str("a"));
    tarn_cli_grid_title(grid, tarn_slice_str("b"));
    for (int i = 0; i < 2500; i++) {
        tarn_cli_grid_cell(grid,
                           i == 2400 ? tarn_slice_of(wide, sizeof wide) : tarn_slice_str("x"));
        tarn_cli_grid_null(grid, "null");
    }
    tarn_cli_grid_flush(grid);
    const char *all = printed(t, &cli, &text, &size);
    size_t lines = 0;
    for (const char *c = all; *c != '\0'; c++)
        lines += *c == '\n';
    expect_int(lines, 2502);
    expect_contains(all, tarn_arena_printf(t->arena, "%.200s  null\n", wide));
    expect_contains(all, "a  b\n-  ----\nx  null\n");
}
