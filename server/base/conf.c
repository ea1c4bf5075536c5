#include "base/conf.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct key_row {
    const char *section;
    const char *key;
    const char *name; /* section.key */
    enum tarn_conf_kind kind;
    const char *default_text;
};

static const struct key_row keys[TARN_CONF_KEY_COUNT] = {
#define K(section, key, kind, default_text, meaning)                                               \
    {#section, #key, #section "." #key, TARN_CONF_##kind, default_text},
#include "base/keys.def"
#undef K
};

struct value {
    char *text;     /* owned */
    int64_t number; /* what text says, for kinds other than TEXT */
};

struct tarn_conf {
    struct value values[TARN_CONF_KEY_COUNT];
};

const char *tarn_conf_key_name(enum tarn_conf_key key)
{
    tarn_assert((unsigned)key < TARN_CONF_KEY_COUNT);
    return keys[key].name;
}

/* --- setting one value --- */

static struct tarn_status *parse_value(enum tarn_conf_kind kind, struct tarn_slice text,
                                       int64_t *number)
{
    bool yes = false;
    switch (kind) {
    case TARN_CONF_TEXT:
        return TARN_OK;
    case TARN_CONF_BOOL:
        TARN_TRY(tarn_parse_bool(text, &yes));
        *number = yes;
        return TARN_OK;
    case TARN_CONF_INT:
        return tarn_parse_i64(text, number);
    case TARN_CONF_SIZE:
        return tarn_parse_size(text, number);
    case TARN_CONF_DURATION:
        return tarn_parse_duration(text, number);
    }
    return tarn_status_new(TARN_INTERNAL, "no such kind of key: %d", (int)kind);
}

/* `where`: the file and line, the variable, or --set; `key` may be any text. */
static struct tarn_status *set_value(struct tarn_conf *conf, enum tarn_conf_key key,
                                     struct tarn_slice text, const char *where)
{
    int64_t number = 0;
    struct tarn_status *s = parse_value(keys[key].kind, text, &number);
    TARN_TRY(
        tarn_status_wrap(tarn_status_as(s, TARN_CONFIG_INVALID), "%s: %s", where, keys[key].name));
    free(conf->values[key].text);
    conf->values[key] = (struct value){tarn_slice_dup(text), number};
    return TARN_OK;
}

/* "KEY VALUE", which was cut at a ':' in the value. */
static const char *without_equals(const char *name)
{
    size_t size = strcspn(name, " ");
    for (size_t i = 0; name[size] == ' ' && i < TARN_CONF_KEY_COUNT; i++)
        if (strlen(keys[i].name) == size && memcmp(keys[i].name, name, size) == 0)
            return keys[i].name;
    return NULL;
}

static struct tarn_status *unknown_key(const char *name, const char *where)
{
    const char *names[TARN_CONF_KEY_COUNT], *whole = without_equals(name);
    if (whole != NULL)
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: there is no = behind %s", where, whole);
    for (size_t i = 0; i < TARN_CONF_KEY_COUNT; i++)
        names[i] = keys[i].name;
    const char *nearest = tarn_nearest(name, names, TARN_CONF_KEY_COUNT);
    /* Right key, wrong section or none: too far for an edit distance, and the likeliest slip of all. */
    const char *dot = strrchr(name, '.'), *key = dot == NULL ? name : dot + 1;
    for (size_t i = 0; nearest == NULL && i < TARN_CONF_KEY_COUNT; i++)
        if (strcmp(keys[i].key, key) == 0)
            nearest = keys[i].name;
    if (nearest == NULL)
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: no such key: %.100s", where, name);
    return tarn_status_new(TARN_CONFIG_INVALID, "%s: no such key: %.100s; %s %s?", where, name,
                           dot == NULL ? "is its section missing, as in" : "did you mean", nearest);
}

static struct tarn_status *find_key(const char *name, const char *where, enum tarn_conf_key *out)
{
    for (size_t i = 0; i < TARN_CONF_KEY_COUNT; i++) {
        if (strcmp(keys[i].name, name) == 0) {
            *out = (enum tarn_conf_key)i;
            return TARN_OK;
        }
    }
    return unknown_key(name, where);
}

struct tarn_conf *tarn_conf_new(void)
{
    struct tarn_conf *conf = tarn_calloc(1, sizeof *conf);
    for (size_t i = 0; i < TARN_CONF_KEY_COUNT; i++) {
        struct tarn_status *s =
            set_value(conf, (enum tarn_conf_key)i, tarn_slice_str(keys[i].default_text), "default");
        tarn_assert(s == NULL);
    }
    return conf;
}

void tarn_conf_free(struct tarn_conf *conf)
{
    if (conf == NULL)
        return;
    for (size_t i = 0; i < TARN_CONF_KEY_COUNT; i++)
        free(conf->values[i].text);
    free(conf);
}

void tarn_conf_drop(struct tarn_conf **conf)
{
    tarn_conf_free(*conf);
    *conf = NULL;
}

/* --- a file: inih calls read_line for each line, and on_pair for each pair it found in it --- */

struct loader {
    struct tarn_conf *conf;
    const char *path;
    struct tarn_slice rest;
    int line;                             /* the one handed out last */
    int set_in_line[TARN_CONF_KEY_COUNT]; /* 0: not yet */
    struct tarn_status *fault;            /* owned; the first */
    int fault_line;
};

static void keep_fault(struct loader *loader, struct tarn_status *consumed)
{
    if (loader->fault != NULL) {
        tarn_status_free(consumed);
        return;
    }
    loader->fault = consumed;
    loader->fault_line = loader->line;
}

/* A line that inih would cut, or a C string would end early, is a fault and ends the file. */
static char *read_line(char *out, int out_size, void *stream)
{
    struct loader *loader = stream;
    if (loader->rest.size == 0 || loader->fault != NULL)
        return NULL;
    loader->line++;
    const uint8_t *begin = loader->rest.data;
    const uint8_t *newline = memchr(begin, '\n', loader->rest.size);
    size_t size = newline == NULL ? loader->rest.size : (size_t)(newline - begin);
    size_t taken = newline == NULL ? size : size + 1;
    bool has_nul = memchr(begin, 0, size) != NULL;

    if (size > TARN_CONF_LINE_SIZE_MAX || size + 2 > (size_t)out_size || has_nul) {
        keep_fault(loader,
                   tarn_status_new(TARN_CONFIG_INVALID, "%s:%d: %s", loader->path, loader->line,
                                   has_nul ? "the line holds a NUL byte"
                                           : "the line is longer than 197 bytes"));
        return NULL;
    }
    memcpy(out, begin, taken);
    out[taken] = 0;
    loader->rest.data += taken;
    loader->rest.size -= taken;
    return out;
}

static int on_pair(void *user, const char *section, const char *key, const char *value)
{
    struct loader *loader = user;
    TARN_OWN(tarn_free_drop) char *where = tarn_format("%s:%d", loader->path, loader->line);
    TARN_OWN(tarn_free_drop) char *name =
        section[0] == 0 ? tarn_strdup(key) : tarn_format("%s.%s", section, key);
    enum tarn_conf_key id = 0;
    struct tarn_status *s = find_key(name, where, &id);

    /* An indented line arrives as the key before it once more: refused with the same words. */
    if (s == NULL && loader->set_in_line[id] != 0)
        s = tarn_status_new(TARN_CONFIG_INVALID, "%s: %s is already set in line %d", where, name,
                            loader->set_in_line[id]);
    if (s == NULL) {
        loader->set_in_line[id] = loader->line;
        s = set_value(loader->conf, id, tarn_slice_str(value), where);
    }
    if (s == NULL)
        return 1;
    keep_fault(loader, s);
    return 0;
}

struct tarn_status *tarn_conf_load_text(struct tarn_conf *conf, const char *path,
                                        struct tarn_slice text)
{
    _Static_assert(TARN_CONF_LINE_SIZE_MAX == 197 && TARN_CONF_LINE_SIZE_MAX + 2 < INI_MAX_LINE,
                   "a line and its break must fit what inih reads at once");
    struct loader loader = {.conf = conf, .path = path, .rest = text};
    int line = ini_parse_stream(read_line, &loader, on_pair, &loader);
    if (loader.fault != NULL && (line <= 0 || line >= loader.fault_line))
        return loader.fault;
    tarn_status_free(loader.fault);
    if (line == 0)
        return TARN_OK;
    if (line < 0)
        return tarn_status_new(TARN_MEMORY_EXHAUSTED, "%s: no memory to read it", path);
    return tarn_status_new(TARN_CONFIG_INVALID, "%s:%d: neither [section] nor key = value", path,
                           line);
}

static struct tarn_status *read_file(const char *path, struct tarn_buf *out)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: %s", path, strerror(errno));
    size_t got;
    do {
        tarn_buf_reserve(out, 8192);
        got = fread(out->data + out->size, 1, 8192, file);
        out->size += got;
    } while (got > 0 && out->size <= TARN_CONF_FILE_SIZE_MAX);
    bool failed = ferror(file);
    int error = errno;
    fclose(file);
    if (failed)
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: %s", path, strerror(error));
    if (out->size > TARN_CONF_FILE_SIZE_MAX)
        return tarn_status_new(TARN_CONFIG_INVALID, "%s: larger than %u bytes", path,
                               TARN_CONF_FILE_SIZE_MAX);
    return TARN_OK;
}

struct tarn_status *tarn_conf_load_file(struct tarn_conf *conf, const char *path)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_TRY(read_file(path, &text));
    return tarn_conf_load_text(conf, path, tarn_buf_slice(&text));
}

/* --- variables and --set --- */

static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* "SECTION_KEY" as "section.key", owned; NULL: it doesn't begin with a section and '_'. */
static char *name_of_variable(struct tarn_slice variable)
{
    for (size_t i = 0; i < TARN_CONF_KEY_COUNT; i++) {
        size_t size = strlen(keys[i].section);
        bool matches = variable.size > size && variable.data[size] == '_';
        for (size_t k = 0; matches && k < size; k++) {
            char c = (char)variable.data[k];
            bool upper = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
            matches = upper && to_lower(c) == keys[i].section[k];
        }
        if (!matches)
            continue;
        char *name = tarn_slice_dup(variable);
        for (char *p = name; *p != 0; p++)
            *p = to_lower(*p);
        name[size] = '.';
        return name;
    }
    return NULL;
}

static struct tarn_status *load_variable(struct tarn_conf *conf, const char *variable)
{
    static const char prefix[] = "TARN_";
    const char *equals = strchr(variable, '=');
    if (equals == NULL || strncmp(variable, prefix, sizeof prefix - 1) != 0)
        return TARN_OK;
    const char *begin = variable + sizeof prefix - 1;
    TARN_OWN(tarn_free_drop) char *name =
        name_of_variable(tarn_slice_of(begin, (size_t)(equals - begin)));
    if (name == NULL)
        return TARN_OK;
    TARN_OWN(tarn_free_drop) char *where =
        tarn_format("variable %.*s", (int)TARN_MIN(equals - variable, 200L), variable);
    enum tarn_conf_key key = 0;
    TARN_TRY(find_key(name, where, &key));
    return set_value(conf, key, tarn_slice_str(equals + 1), where);
}

struct tarn_status *tarn_conf_load_environment(struct tarn_conf *conf, char *const *environment)
{
    for (; *environment != NULL; environment++)
        TARN_TRY(load_variable(conf, *environment));
    return TARN_OK;
}

struct tarn_status *tarn_conf_set(struct tarn_conf *conf, const char *section_dot_key_equals_value)
{
    const char *text = section_dot_key_equals_value, *equals = strchr(text, '=');
    if (equals == NULL)
        return tarn_status_new(TARN_CONFIG_INVALID, "--set %.100s: expected section.key=value",
                               text);
    TARN_OWN(tarn_free_drop) char *name =
        tarn_slice_dup(tarn_slice_of(text, (size_t)(equals - text)));
    enum tarn_conf_key key = 0;
    TARN_TRY(find_key(name, "--set", &key));
    return set_value(conf, key, tarn_slice_str(equals + 1), "--set");
}

/* --- asking and printing --- */

const char *tarn_conf_text(const struct tarn_conf *conf, enum tarn_conf_key key)
{
    tarn_assert((unsigned)key < TARN_CONF_KEY_COUNT);
    return conf->values[key].text;
}

bool tarn_conf_bool(const struct tarn_conf *conf, enum tarn_conf_key key)
{
    tarn_assert((unsigned)key < TARN_CONF_KEY_COUNT && keys[key].kind == TARN_CONF_BOOL);
    return conf->values[key].number != 0;
}

int64_t tarn_conf_int(const struct tarn_conf *conf, enum tarn_conf_key key)
{
    tarn_assert((unsigned)key < TARN_CONF_KEY_COUNT && keys[key].kind != TARN_CONF_TEXT);
    return conf->values[key].number;
}

void tarn_conf_print(const struct tarn_conf *conf, struct tarn_buf *out)
{
    for (size_t i = 0; i < TARN_CONF_KEY_COUNT; i++) {
        if (i == 0 || strcmp(keys[i].section, keys[i - 1].section) != 0)
            tarn_buf_printf(out, "%s[%s]\n", i == 0 ? "" : "\n", keys[i].section);
        const char *value = conf->values[i].text;
        tarn_buf_printf(out, "%s =%s%s\n", keys[i].key, value[0] == 0 ? "" : " ", value);
    }
}
