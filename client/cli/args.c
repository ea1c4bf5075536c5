#include "args.h"

static const struct tarn_cli_option *find_name(const struct tarn_cli_option *table,
                                               struct tarn_slice name)
{
    for (; table != NULL && table->name != NULL; table++)
        if (tarn_slice_is(name, table->name))
            return table;
    return NULL;
}

static const struct tarn_cli_option *find_letter(const struct tarn_cli_option *table, char letter)
{
    for (; table != NULL && table->name != NULL; table++)
        if (table->letter == letter && letter != '\0')
            return table;
    return NULL;
}

static const struct tarn_cli_option *find_option(const struct tarn_cli_args *args,
                                                 struct tarn_slice name)
{
    const struct tarn_cli_option *option = NULL;
    for (int i = 0; i < TARN_CLI_TABLES_MAX && option == NULL; i++)
        option = find_name(args->tables[i], name);
    return option;
}

static struct tarn_status *unknown_option(const struct tarn_cli_args *args, struct tarn_slice name)
{
    const char *names[128];
    size_t count = 0;
    TARN_OWN(tarn_free_drop) char *text = tarn_slice_dup(name);

    for (int i = 0; i < TARN_CLI_TABLES_MAX; i++)
        for (const struct tarn_cli_option *o = args->tables[i]; o != NULL && o->name != NULL; o++)
            if (count < TARN_COUNT_OF(names))
                names[count++] = o->name;
    const char *nearest = tarn_nearest(text, names, count);
    if (nearest == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "unknown option --%.100s", text);
    return tarn_status_new(TARN_INVALID_ARGUMENT, "unknown option --%.100s; did you mean --%s?",
                           text, nearest);
}

/* Of two values one would silently not count. Switches say the same thing twice. */
static struct tarn_status *give(struct tarn_cli_args *args, const struct tarn_cli_option *option,
                                const char *value)
{
    for (size_t i = 0; i < args->given_count && value != NULL && !option->many; i++)
        if (args->given[i].option == option)
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "--%s is given twice: \"%.100s\" and \"%.100s\"", option->name,
                                   args->given[i].value, value);
    TARN_GROW(args->given, args->given_count, args->given_capacity);
    args->given[args->given_count++] = (struct tarn_cli_given){option, value};
    return TARN_OK;
}

/* `*at` is the option's place in argv, and the last one it used when this returns. */
static struct tarn_status *take_value(struct tarn_cli_args *args,
                                      const struct tarn_cli_option *option, const char *attached,
                                      int argc, char *const *argv, int *at)
{
    if (option->value == NULL) {
        if (attached != NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "--%s takes no value", option->name);
        return give(args, option, NULL);
    }
    if (attached == NULL) {
        if (*at + 1 >= argc)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "--%s needs a value: --%s %s",
                                   option->name, option->name, option->value);
        attached = argv[++*at];
    }
    return give(args, option, attached);
}

static struct tarn_status *parse_long(struct tarn_cli_args *args, int argc, char *const *argv,
                                      int *at)
{
    const char *text = argv[*at] + 2;
    const char *equals = strchr(text, '=');
    struct tarn_slice name =
        tarn_slice_of(text, equals != NULL ? (size_t)(equals - text) : strlen(text));
    const struct tarn_cli_option *option = find_option(args, name);

    if (option == NULL)
        return unknown_option(args, name);
    return take_value(args, option, equals != NULL ? equals + 1 : NULL, argc, argv, at);
}

/* One letter, or several switches in one word, the last of which may take a value. */
static struct tarn_status *parse_letters(struct tarn_cli_args *args, int argc, char *const *argv,
                                         int *at)
{
    for (const char *letter = argv[*at] + 1; *letter != '\0'; letter++) {
        const struct tarn_cli_option *option = NULL;
        for (int i = 0; i < TARN_CLI_TABLES_MAX && option == NULL; i++)
            option = find_letter(args->tables[i], *letter);
        if (option == NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT, "unknown option -%.30s", letter);
        if (option->value == NULL) {
            TARN_TRY(give(args, option, NULL));
            continue;
        }
        const char *attached = letter[1] == '\0' ? NULL : letter + 1 + (letter[1] == '=');
        return take_value(args, option, attached, argc, argv, at);
    }
    return TARN_OK;
}

struct tarn_status *tarn_cli_args_parse(struct tarn_cli_args *args, int argc, char *const *argv)
{
    bool ended = false;

    for (int i = 0; i < argc; i++) {
        if (ended || argv[i][0] != '-' || argv[i][1] == '\0') {
            TARN_GROW(args->words, args->word_count, args->word_capacity);
            args->words[args->word_count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (argv[i][1] == '-') {
            TARN_TRY(parse_long(args, argc, argv, &i));
        } else {
            TARN_TRY(parse_letters(args, argc, argv, &i));
        }
    }
    return TARN_OK;
}

void tarn_cli_args_drop(struct tarn_cli_args *args)
{
    free(args->given);
    free(args->words);
    *args = (struct tarn_cli_args){0};
}

/* Does the option at argv[at] take the next word for its value? */
static bool eats_next(const struct tarn_cli_option *table, const char *word)
{
    if (word[1] == '-') {
        const struct tarn_cli_option *option = find_name(table, tarn_slice_str(word + 2));
        return option != NULL && option->value != NULL; /* "name=value" is found nowhere */
    }
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        const struct tarn_cli_option *option = find_letter(table, *letter);
        if (option == NULL)
            return false;
        if (option->value != NULL)
            return letter[1] == '\0';
    }
    return false;
}

int tarn_cli_args_word(const struct tarn_cli_option *table, int argc, char *const *argv, int from)
{
    for (int i = from; i < argc; i++) {
        if (argv[i][0] != '-' || argv[i][1] == '\0')
            return i;
        if (eats_next(table, argv[i]))
            i++;
    }
    return argc;
}

/* --- asking --- */

static void assert_known(const struct tarn_cli_args *args, const char *name)
{
    tarn_assert(find_option(args, tarn_slice_str(name)) != NULL);
}

const char *tarn_cli_args_text(const struct tarn_cli_args *args, const char *name)
{
    assert_known(args, name);
    for (size_t i = args->given_count; i > 0; i--)
        if (strcmp(args->given[i - 1].option->name, name) == 0)
            return args->given[i - 1].value;
    return NULL;
}

bool tarn_cli_args_has(const struct tarn_cli_args *args, const char *name)
{
    size_t cursor = 0;
    return tarn_cli_args_next_of(args, (const char *const[]){name, NULL}, &cursor) != NULL;
}

const struct tarn_cli_given *tarn_cli_args_next_of(const struct tarn_cli_args *args,
                                                   const char *const *names, size_t *cursor)
{
    for (size_t n = 0; names[n] != NULL; n++)
        assert_known(args, names[n]);
    while (*cursor < args->given_count) {
        const struct tarn_cli_given *given = &args->given[(*cursor)++];
        for (size_t n = 0; names[n] != NULL; n++)
            if (strcmp(given->option->name, names[n]) == 0)
                return given;
    }
    return NULL;
}

const char *tarn_cli_args_next(const struct tarn_cli_args *args, const char *name, size_t *cursor)
{
    const struct tarn_cli_given *given =
        tarn_cli_args_next_of(args, (const char *const[]){name, NULL}, cursor);
    return given == NULL ? NULL : given->value;
}

struct tarn_status *tarn_cli_args_int(const struct tarn_cli_args *args, const char *name,
                                      int64_t min, int64_t *out)
{
    const char *text = tarn_cli_args_text(args, name);
    if (text == NULL)
        return TARN_OK;
    int64_t value = 0;
    struct tarn_status *status = tarn_parse_i64(tarn_slice_str(text), &value);
    bool good = status == NULL && value >= min;
    tarn_status_free(status);
    if (!good)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "--%s \"%.100s\": expected a whole number from %" PRId64 " up", name,
                               text, min);
    *out = value;
    return TARN_OK;
}

/* --- small languages of values --- */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\n");
}

static struct tarn_status *quoted_name(const char **at, struct tarn_buf *name)
{
    for (const char *c = *at + 1; *c != '\0'; c++) {
        if (*c != '`') {
            tarn_buf_add_byte(name, (uint8_t)*c);
        } else if (c[1] == '`') {
            tarn_buf_add_byte(name, '`');
            c++;
        } else {
            *at = c + 1;
            return TARN_OK;
        }
    }
    return tarn_status_new(TARN_INVALID_ARGUMENT, "\"%.100s\": a backquote that does not end", *at);
}

static void plain_name(const char **at, const char *ends, struct tarn_buf *name)
{
    size_t size = strcspn(*at, ends);
    const char *next = *at + size;
    while (size > 0 && strchr(" \t\n", (*at)[size - 1]) != NULL)
        size--;
    tarn_buf_add(name, *at, size);
    *at = next;
}

struct tarn_status *tarn_cli_names(struct tarn_arena *arena, const char *text,
                                   struct tarn_slice **out, size_t *count)
{
    size_t max = 1;
    for (const char *c = text; *c != '\0'; c++)
        max += *c == ',';
    struct tarn_slice *names = tarn_arena_calloc(arena, max, sizeof *names);
    size_t made = 0;

    for (const char *at = skip_blanks(text);; at = skip_blanks(at + 1)) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
        if (*at == '`')
            TARN_TRY(quoted_name(&at, &name));
        else
            plain_name(&at, ",", &name);
        at = skip_blanks(at);
        if (name.size == 0 || (*at != ',' && *at != '\0'))
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "\"%.200s\": expected names with commas between", text);
        tarn_assert(made < max);
        names[made++] = tarn_arena_copy(arena, tarn_buf_slice(&name));
        if (*at == '\0')
            break;
    }
    *out = names;
    *count = made;
    return TARN_OK;
}

struct tarn_status *tarn_cli_path(struct tarn_arena *arena, const char **at, char end,
                                  struct tarn_slice **out, size_t *count)
{
    const char ends[] = {'.', end, '\0'}, *text = skip_blanks(*at);
    struct tarn_slice *names = tarn_arena_calloc(arena, strlen(text) + 1, sizeof *names);
    size_t made = 0;

    for (*at = text;; ++*at) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
        if (**at == '`')
            TARN_TRY(quoted_name(at, &name));
        else
            plain_name(at, ends, &name);
        if (name.size == 0)
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "\"%.200s\": expected a column, or names with dots between that "
                                   "lead into one",
                                   text);
        names[made++] = tarn_arena_copy(arena, tarn_buf_slice(&name));
        if (**at != '.')
            break;
    }
    *out = names;
    *count = made;
    return TARN_OK;
}

struct tarn_status *tarn_cli_pair(const char *text, const char *what, struct tarn_slice *key,
                                  struct tarn_slice *value)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%s \"%.200s\": expected KEY=VALUE", what,
                               text);
    *key = tarn_slice_of(text, (size_t)(equals - text));
    *value = tarn_slice_str(equals + 1);
    return TARN_OK;
}
