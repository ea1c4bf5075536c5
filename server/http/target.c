#include "http/internal.h"

/*
 * The target of a request: split where it was sent with a '/', '?', '&' or '=', and only then decoded, each piece once.
 * A decoded '/' is part of a name.
 */

static struct tarn_status *malformed(const char *what)
{
    return tarn_status_new(TARN_INVALID_ARGUMENT, "malformed URL: %s", what);
}

static struct tarn_status *too_many(int max, const char *what, int *http)
{
    *http = 414;
    return tarn_status_new(TARN_INVALID_ARGUMENT, "more than %d %s in the URL", max, what);
}

/* '+' is a blank, in paths too: so Java's URLEncoder and its imitators write it. */
static struct tarn_status *decode(struct tarn_slice text, struct tarn_arena *arena,
                                  struct tarn_slice *out)
{
    if (!tarn_url_decode(text, arena, out))
        return malformed("a % without two hexadecimal digits");
    if (memchr(out->data, 0, out->size) != NULL)
        return malformed("a NUL");
    return tarn_utf8_valid(*out) ? TARN_OK : malformed("what is escaped is not UTF-8");
}

/* The next piece of *rest up to `c`. */
static struct tarn_slice cut(struct tarn_slice *rest, char c)
{
    const uint8_t *at = rest->size == 0 ? NULL : memchr(rest->data, c, rest->size);
    size_t size = at == NULL ? rest->size : (size_t)(at - rest->data);
    struct tarn_slice front = tarn_slice_of(rest->data, size);
    size_t skip = at == NULL ? size : size + 1;
    *rest = tarn_slice_of(rest->data + skip, rest->size - skip);
    return front;
}

static struct tarn_status *split_path(struct tarn_slice path, struct tarn_arena *arena,
                                      struct tarn_http_request *out, int *http)
{
    struct tarn_slice *segments =
        tarn_arena_alloc(arena, TARN_HTTP_SEGMENTS_MAX * sizeof *segments);
    size_t count = 1;
    for (size_t i = 1; i < path.size; i++)
        count += path.data[i] == '/';
    if (count > TARN_HTTP_SEGMENTS_MAX)
        return too_many(TARN_HTTP_SEGMENTS_MAX, "segments", http);
    struct tarn_slice rest = tarn_slice_of(path.data + 1, path.size - 1);
    for (size_t i = 0; i < count; i++)
        TARN_TRY(decode(cut(&rest, '/'), arena, &segments[i]));
    out->segments = segments;
    out->segment_count = count;
    return TARN_OK;
}

static struct tarn_status *split_query(struct tarn_slice query, struct tarn_arena *arena,
                                       struct tarn_http_request *out, int *http)
{
    if (query.size == 0)
        return TARN_OK;
    struct tarn_pair *pairs = tarn_arena_alloc(arena, TARN_HTTP_QUERY_MAX * sizeof *pairs);
    out->query = pairs;
    while (query.size > 0) {
        struct tarn_slice value = cut(&query, '&');
        if (value.size == 0)
            continue;
        if (out->query_count == TARN_HTTP_QUERY_MAX)
            return too_many(TARN_HTTP_QUERY_MAX, "parameters", http);
        struct tarn_pair *pair = &pairs[out->query_count++];
        TARN_TRY(decode(cut(&value, '='), arena, &pair->key));
        TARN_TRY(decode(value, arena, &pair->value));
    }
    return TARN_OK;
}

/* "http://host/path" is what clients of proxies send, and must be understood. */
static struct tarn_slice without_authority(struct tarn_slice target, struct tarn_arena *arena)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < TARN_COUNT_OF(schemes); i++) {
        size_t size = strlen(schemes[i]);
        if (target.size <= size || strncasecmp((const char *)target.data, schemes[i], size) != 0)
            continue;
        while (size < target.size && strchr("/?", target.data[size]) == NULL)
            size++;
        if (size == target.size)
            return tarn_slice_str("/");
        if (target.data[size] == '/')
            return tarn_slice_of(target.data + size, target.size - size);
        return tarn_slice_str(tarn_arena_printf(arena, "/%.*s", (int)(target.size - size),
                                                (const char *)target.data + size));
    }
    return target;
}

struct tarn_status *tarn_http__target_parse(struct tarn_slice target, struct tarn_arena *arena,
                                            struct tarn_http_request *out, int *http)
{
    for (size_t i = 0; i < target.size; i++)
        if (target.data[i] <= ' ' || target.data[i] >= 0x7f || target.data[i] == '#')
            return malformed("a character that must be escaped");
    struct tarn_slice query = without_authority(target, arena);
    if (query.size == 0 || query.data[0] != '/')
        return malformed("want a path");
    out->path = cut(&query, '?');
    TARN_TRY(split_path(out->path, arena, out, http));
    return split_query(query, arena, out, http);
}
