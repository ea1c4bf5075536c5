#include "catalog/internal.h"

/* Where tables may lie: names that can be folders, and locations outside of the warehouse. */

/* What some client cuts off an URL at, decodes, or takes for a pattern. */
#define NOT_PLAIN "#?%*{}[]:^|<>\"`"

bool tarn_catalog__is_plain(struct tarn_slice name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == '\0' || strchr(NOT_PLAIN, name.data[i]) != NULL)
            return false;
    return name.size > 0 && name.data[0] != ' ' && name.data[name.size - 1] != ' ';
}

/* --- URIs --- */

static struct tarn_status *refused(struct tarn_slice location, const char *why)
{
    TARN_OWN(tarn_free_drop) char *text =
        tarn_slice_dup(location.size > 200 ? tarn_slice_of(location.data, 200) : location);
    return tarn_status_new(TARN_LOCATION_REFUSED, "location %s %s", tarn_log_quote(NULL, text),
                           why);
}

static const char *find_fault(struct tarn_slice location)
{
    if (location.size > TARN_LOCATION_SIZE_MAX)
        return "is too long";
    if (!tarn_utf8_valid(location))
        return "is not UTF-8";
    for (size_t i = 0; i < location.size; i++) {
        uint8_t c = location.data[i];
        if (c < 0x20 || c == 0x7f || c == '\\' || c == '%' || c == '?' || c == '#')
            return "has a character that is not taken there: one of % ? # \\, or a control character";
    }
    return NULL;
}

/* "s3a://b/x//y/" as "s3", "b", "/x/y"; false: it is none, or has a segment "." or "..". */
static bool divide(struct tarn_op *op, const char *text, const char **scheme,
                   const char **authority, const char **path)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
    if (n == 0 || text[n] != ':' || text[n + 1] != '/')
        return false;
    *scheme = tarn_arena_str(op->arena, tarn_slice_of(text, n));
    if (strcmp(*scheme, "s3a") == 0)
        *scheme = "s3";
    const char *rest = text + n + 1;
    size_t size = 0;
    if (rest[1] == '/') { /* Hadoop's file:/a has no authority at all */
        rest += 2;
        size = strcspn(rest, "/");
    }
    *authority = tarn_arena_str(op->arena, tarn_slice_of(rest, size));
    TARN_OWN(tarn_buf_drop) struct tarn_buf clean = {0};
    for (rest += size; *rest != '\0'; rest += size) {
        rest += strspn(rest, "/");
        size = strcspn(rest, "/");
        struct tarn_slice segment = tarn_slice_of(rest, size);
        if (tarn_slice_is(segment, ".") || tarn_slice_is(segment, ".."))
            return false;
        if (size > 0)
            tarn_buf_printf(&clean, "/%.*s", TARN_SLICE_ARG(segment));
    }
    *path = tarn_arena_str(op->arena, tarn_buf_slice(&clean));
    return (strcmp(*scheme, "file") == 0) == ((*authority)[0] == '\0');
}

struct tarn_status *tarn_catalog__clean_location(struct tarn_op *op, struct tarn_slice location,
                                                 const char **out)
{
    const char *scheme, *authority, *path, *fault = find_fault(location);
    if (fault != NULL)
        return refused(location, fault);
    if (!divide(op, tarn_arena_str(op->arena, location), &scheme, &authority, &path))
        return refused(location, "is no absolute URI without . and .. in it, such as "
                                 "file:///path or s3://bucket/path");
    *out = tarn_arena_printf(op->arena, "%s://%s%s", scheme, authority, path);
    return TARN_OK;
}

/* Both clean. */
static bool is_below(const char *location, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(location, folder, n) == 0 && location[n] == '/';
}

static bool meets(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || is_below(a, b) || is_below(b, a);
}

/* --- what is allowed --- */

/* The next of a list that is divided by commas, clean; *clean NULL: that was the last. */
static struct tarn_status *next_path(struct tarn_op *op, const char **at, const char **clean)
{
    struct tarn_slice text = {0};
    while (text.size == 0 && *at != NULL && **at != '\0') {
        size_t n = strcspn(*at, ",");
        text = tarn_trim(tarn_slice_of(*at, n));
        *at += n + ((*at)[n] == ',');
    }
    *clean = NULL;
    struct tarn_status *s =
        text.size == 0 ? TARN_OK : tarn_catalog__clean_location(op, text, clean);
    return tarn_status_wrap(tarn_status_as(s, TARN_CONFIG_INVALID), "warehouse.external_paths");
}

struct tarn_status *tarn_catalog__take_external_paths(struct tarn_op *op,
                                                      struct tarn_catalog *catalog,
                                                      const char *list)
{
    size_t capacity = 0;
    const char *clean;
    for (;;) {
        TARN_TRY(next_path(op, &list, &clean));
        if (clean == NULL)
            return TARN_OK;
        TARN_GROW(catalog->outside, catalog->outside_count, capacity);
        catalog->outside[catalog->outside_count++] =
            (struct tarn_catalog__outside){.uri = tarn_strdup(clean)};
    }
}

struct tarn_status *tarn_catalog_check_options(const struct tarn_catalog_options *options)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    const char *list = options->external_paths, *clean;
    do
        TARN_TRY(next_path(&op, &list, &clean));
    while (clean != NULL);
    return TARN_OK;
}

struct tarn_status *tarn_catalog__check_location(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_slice location, const char **out,
                                                 struct tarn_catalog__outside **below)
{
    TARN_TRY(tarn_catalog__clean_location(op, location, out));
    const char *warehouse;
    struct tarn_status *s = tarn_catalog__clean_location(
        op, tarn_slice_str(tarn_store_uri(catalog->env->store)), &warehouse);
    bool inside = s == TARN_OK && meets(*out, warehouse);
    tarn_status_free(s); /* "memory:" is nowhere */
    if (inside)
        return refused(location, "meets the warehouse: tables in it have no option path");
    for (size_t i = 0; i < catalog->outside_count; i++)
        if (is_below(*out, catalog->outside[i].uri)) {
            *below = &catalog->outside[i];
            return TARN_OK;
        }
    return refused(location, catalog->outside_count == 0
                                 ? "is outside of the warehouse, and [warehouse] external_paths "
                                   "allows no external tables"
                                 : "is below none of [warehouse] external_paths");
}

struct tarn_status *tarn_catalog__open_outside(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_catalog__outside *outside)
{
    if (outside->env.store != NULL)
        return TARN_OK;
    TARN_OWN(tarn_store_drop) struct tarn_store *store = NULL;
    TARN_TRY(tarn_store_open(outside->uri, &store));
    TARN_TRY(tarn_store_probe(store, op));
    outside->env = *catalog->env;
    outside->env.store = tarn_move(store);
    return TARN_OK;
}
