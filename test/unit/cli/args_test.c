/*
 * Promise: options may stand anywhere and in every usual spelling; what is unknown or incomplete is
 * named, with the nearest known name; values that look like options are still values.
 */
#include "test.h"

#include "cli/args.h"

static const struct tarn_cli_option global[] = {
    {"server", 0, "HOST:PORT", "", false},
    {"output", 'o', "FORMAT", "", false},
    {"verbose", 'v', NULL, "", true},
    {"quiet", 'q', NULL, "", false},
    {0},
};
static const struct tarn_cli_option own[] = {
    {"limit", 0, "N", "", false},
    {"option", 0, "K=V", "", true},
    {"full", 0, NULL, "", false},
    {0},
};

static struct tarn_status *parse(struct tarn_cli_args *args, const char *const *words)
{
    int count = 0;
    while (words[count] != NULL)
        count++;
    *args = (struct tarn_cli_args){.tables = {global, own}};
    return tarn_cli_args_parse(args, count, (char *const *)(uintptr_t)words);
}
#define PARSE(args, ...) parse((args), (const char *const[]){__VA_ARGS__, NULL})

TARN_TEST(cli_args, takes_options_anywhere)
{
    TARN_OWN(tarn_cli_args_drop) struct tarn_cli_args args = {0};
    int64_t limit = 0;
    expect_ok(PARSE(&args, "--limit", "5", "db.t", "-ojson", "-v", "file", "--full", "-v"));
    expect_int(args.word_count, 2);
    expect_str(args.words[0], "db.t");
    expect_str(args.words[1], "file");
    expect_str(tarn_cli_args_text(&args, "output"), "json");
    expect_true(tarn_cli_args_has(&args, "full"));
    expect_false(tarn_cli_args_has(&args, "quiet"));
    expect_ok(tarn_cli_args_int(&args, "limit", 0, &limit));
    expect_int(limit, 5);
}

TARN_TEST(cli_args, takes_every_spelling)
{
    static const char *const spellings[][3] = {
        {"-o", "csv", NULL},          {"-ocsv", NULL, NULL},     {"-o=csv", NULL, NULL},
        {"--output=csv", NULL, NULL}, {"--output", "csv", NULL}, {"-qvocsv", NULL, NULL},
        {"-qo", "csv", NULL},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(spellings); i++) {
        TARN_OWN(tarn_cli_args_drop) struct tarn_cli_args args = {0};
        expect_ok(parse(&args, spellings[i]));
        expect_str(tarn_cli_args_text(&args, "output"), "csv");
        expect_int(args.word_count, 0);
    }
}

TARN_TEST(cli_args, the_word_behind_an_option_is_its_value)
{
    TARN_OWN(tarn_cli_args_drop) struct tarn_cli_args args = {0};
    expect_ok(PARSE(&args, "--server", "--limit", "--limit=-3", "--option", "-", "--", "--full"));
    expect_str(tarn_cli_args_text(&args, "server"), "--limit");
    expect_str(tarn_cli_args_text(&args, "limit"), "-3");
    expect_str(tarn_cli_args_text(&args, "option"), "-");
    expect_int(args.word_count, 1);
    expect_str(args.words[0], "--full");
}

TARN_TEST(cli_args, one_value_is_given_once_and_many_are_kept)
{
    TARN_OWN(tarn_cli_args_drop) struct tarn_cli_args args = {0};
    size_t cursor = 0;
    expect_ok(PARSE(&args, "--option", "a=1", "--limit=1", "--option=b=2=3", "--full", "--full"));
    expect_str(tarn_cli_args_text(&args, "limit"), "1");
    expect_str(tarn_cli_args_next(&args, "option", &cursor), "a=1");
    expect_str(tarn_cli_args_next(&args, "option", &cursor), "b=2=3");
    expect_null(tarn_cli_args_next(&args, "option", &cursor));
    tarn_cli_args_drop(&args);
    expect_status(PARSE(&args, "--limit=1", "--limit", "2"), TARN_INVALID_ARGUMENT,
                  "--limit is given twice: \"1\" and \"2\"");
}

TARN_TEST(cli_args, names_what_is_wrong)
{
    static const struct {
        const char *word, *message;
    } cases[] = {
        {"--limt", "unknown option --limt; did you mean --limit?"},
        {"--limt=3", "unknown option --limt; did you mean --limit?"},
        {"--zzzzzzz", "unknown option --zzzzzzz"},
        {"-x", "unknown option -x"},
        {"--limit", "--limit needs a value: --limit N"},
        {"-o", "--output needs a value"},
        {"--full=yes", "--full takes no value"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(tarn_cli_args_drop) struct tarn_cli_args args = {0};
        expect_status(PARSE(&args, cases[i].word), TARN_INVALID_ARGUMENT, cases[i].message);
    }
}

TARN_TEST(cli_args, numbers_are_whole_and_in_bounds)
{
    static const char *const bad[] = {"", "x", "1.5", "-1", "9223372036854775808", "1 "};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        TARN_OWN(tarn_cli_args_drop) struct tarn_cli_args args = {0};
        int64_t out = 7;
        expect_ok(PARSE(&args, "--limit", bad[i]));
        expect_status(tarn_cli_args_int(&args, "limit", 0, &out), TARN_INVALID_ARGUMENT, "--limit");
        expect_int(out, 7);
    }
}

TARN_TEST(cli_args, finds_the_word_behind_options)
{
    const char *argv[] = {"-v", "--server", "h:1", "-o", "json", "--unknown", "db", "list"};
    char *const *v = (char *const *)(uintptr_t)argv;
    expect_int(tarn_cli_args_word(global, 8, v, 0), 6);
    expect_int(tarn_cli_args_word(global, 8, v, 7), 7);
    expect_int(tarn_cli_args_word(global, 5, v, 0), 5);
    expect_int(tarn_cli_args_word(global, 2, v, 0), 2); /* a value is missing */
}

static void expect_names(struct tarn_test *t, const char *text, const char *joined)
{
    struct tarn_slice *names = NULL;
    size_t count = 0;
    TARN_OWN(tarn_buf_drop) struct tarn_buf all = {0};
    expect_ok(tarn_cli_names(t->arena, text, &names, &count));
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&all, "%s%.*s", i > 0 ? "|" : "", TARN_SLICE_ARG(names[i]));
    expect_str(tarn_buf_cstr(&all), joined);
}

TARN_TEST(cli_names, are_divided_at_commas)
{
    expect_names(t, "a", "a");
    expect_names(t, " a , b c ,d", "a|b c|d");
    expect_names(t, "`a,b`, `c``d` ,e", "a,b|c`d|e");
    expect_names(t, "k=v,x=`", "k=v|x=`");
}

TARN_TEST(cli_names, that_are_empty_or_unended_are_refused)
{
    static const char *const bad[] = {"", ",", "a,", ",a", "a,,b", "`a", "`a`b", "``", "  "};
    struct tarn_slice *names = NULL;
    size_t count = 0;
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_status(tarn_cli_names(t->arena, bad[i], &names, &count), TARN_INVALID_ARGUMENT, "");
}

TARN_TEST(cli_pair, needs_a_key_and_a_sign)
{
    struct tarn_slice key, value;
    expect_ok(tarn_cli_pair("a=b=c", "--set", &key, &value));
    expect_slice(key, "a");
    expect_slice(value, "b=c");
    expect_ok(tarn_cli_pair("a=", "--set", &key, &value));
    expect_int(value.size, 0);
    expect_status(tarn_cli_pair("ab", "--set", &key, &value), TARN_INVALID_ARGUMENT,
                  "--set \"ab\"");
    expect_status(tarn_cli_pair("=b", "--set", &key, &value), TARN_INVALID_ARGUMENT, "KEY=VALUE");
}
