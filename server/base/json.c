#include "base/json.h"

#include <jansson.h>
#include <math.h>

#include "base/text.h"

/* A struct tarn_json is a json_t under another name; nobody else sees jansson's. */
static json_t *inner(const struct tarn_json *json)
{
    return (json_t *)(uintptr_t)json;
}

static struct tarn_json *outer(json_t *json)
{
    tarn_assert(json != NULL); /* jansson gives NULL only when memory is gone, or for our faults */
    return (struct tarn_json *)json;
}

/* --- parsing --- */

struct place {
    int line;
    int column;
};

static struct place place_of(struct tarn_slice text, size_t offset)
{
    struct place at = {1, 1};
    for (size_t i = 0; i < offset; i++) {
        at.column = text.data[i] == '\n' ? 1 : at.column + 1;
        at.line += text.data[i] == '\n';
    }
    return at;
}

static struct tarn_status *malformed(struct tarn_slice text, size_t offset, const char *what)
{
    struct place at = place_of(text, offset);
    return tarn_status_new(TARN_JSON_MALFORMED, "line %d, column %d: %s", at.line, at.column, what);
}

/*
 * Before the library sees them: nesting is bounded because it recurses, and the number of values
 * because each takes up to a hundred times the bytes it was written with.
 */
static struct tarn_status *check_shape(struct tarn_slice text)
{
    size_t depth = 0, value_count = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        in_string = c == '"';
        if (c == '[' || c == '{') {
            if (++depth > TARN_JSON_DEPTH_MAX)
                return malformed(text, i, "nested deeper than 64");
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
        if ((c == '[' || c == '{' || c == ',') && ++value_count > TARN_JSON_VALUES_MAX)
            return malformed(text, i, "more than 1048576 values");
    }
    return TARN_OK;
}

struct tarn_status *tarn_json_parse(struct tarn_slice text, struct tarn_json **out)
{
    _Static_assert(TARN_JSON_DEPTH_MAX == 64 && TARN_JSON_VALUES_MAX == 1 << 20,
                   "see the messages");
    if (text.size > TARN_JSON_SIZE_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "JSON text of %zu bytes; at most %u are read",
                               text.size, TARN_JSON_SIZE_MAX);
    TARN_TRY(check_shape(text));

    json_error_t error;
    json_t *json = json_loadb(text.size == 0 ? "" : (const char *)text.data, text.size,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (json == NULL) {
        /* jansson quotes what it met near the fault: bytes from outside, not always UTF-8. */
        const char *message =
            tarn_utf8_valid(tarn_slice_str(error.text)) ? error.text : "not valid JSON";
        return tarn_status_new(TARN_JSON_MALFORMED, "line %d, column %d: %s", error.line,
                               error.column, message);
    }
    *out = outer(json);
    return TARN_OK;
}

void tarn_json_free(struct tarn_json *json)
{
    json_decref(inner(json));
}

void tarn_json_drop(struct tarn_json **json)
{
    tarn_json_free(*json);
    *json = NULL;
}

static int add_to_buf(const char *data, size_t size, void *out)
{
    tarn_buf_add(out, data, size);
    return 0;
}

void tarn_json_print(const struct tarn_json *json, int indent, struct tarn_buf *out)
{
    size_t layout = indent > 0 ? JSON_INDENT((size_t)indent) : JSON_COMPACT;
    int failed = json_dump_callback(inner(json), add_to_buf, out, layout | JSON_ENCODE_ANY);
    tarn_assert(failed == 0);
}

/* --- building --- */

/* What isn't UTF-8, and NUL, becomes U+FFFD: what we print, we and others can read. */
static struct tarn_slice repair(struct tarn_slice text, struct tarn_buf *storage)
{
    if (text.size == 0)
        return tarn_slice_of("", 0);
    if (tarn_utf8_valid(text) && memchr(text.data, 0, text.size) == NULL)
        return text;
    for (size_t i = 0; i < text.size;) {
        size_t n = 1, left = text.size - i;
        while (n <= 4 && n <= left && !tarn_utf8_valid(tarn_slice_of(text.data + i, n)))
            n++;
        bool is_bad = n > 4 || n > left || text.data[i] == 0;
        if (is_bad)
            tarn_buf_add_str(storage, "\xef\xbf\xbd");
        else
            tarn_buf_add(storage, text.data + i, n);
        i += is_bad ? 1 : n;
    }
    return tarn_buf_slice(storage);
}

struct tarn_json *tarn_json_object(void)
{
    return outer(json_object());
}

struct tarn_json *tarn_json_array(void)
{
    return outer(json_array());
}

struct tarn_json *tarn_json_string(struct tarn_slice text)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf storage = {0};
    struct tarn_slice good = repair(text, &storage);
    return outer(json_stringn((const char *)good.data, good.size));
}

struct tarn_json *tarn_json_integer(int64_t value)
{
    return outer(json_integer(value));
}

struct tarn_json *tarn_json_real(double value)
{
    return isfinite(value) ? outer(json_real(value)) : tarn_json_null();
}

struct tarn_json *tarn_json_bool(bool value)
{
    return outer(json_boolean(value));
}

struct tarn_json *tarn_json_null(void)
{
    return outer(json_null());
}

struct tarn_json *tarn_json_copy(const struct tarn_json *json)
{
    return outer(json_deep_copy(inner(json)));
}

static void set(struct tarn_json *object, struct tarn_slice key, struct tarn_json *value)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf storage = {0};
    struct tarn_slice good = repair(key, &storage);
    int failed =
        json_object_setn_new(inner(object), (const char *)good.data, good.size, inner(value));
    tarn_assert(failed == 0);
}

void tarn_json_set(struct tarn_json *object, const char *key, struct tarn_json *value)
{
    set(object, tarn_slice_str(key), value);
}

void tarn_json_set_str(struct tarn_json *object, const char *key, const char *text)
{
    set(object, tarn_slice_str(key), tarn_json_string(tarn_slice_str(text)));
}

void tarn_json_set_slice(struct tarn_json *object, struct tarn_slice key, struct tarn_slice text)
{
    set(object, key, tarn_json_string(text));
}

void tarn_json_set_int(struct tarn_json *object, const char *key, int64_t value)
{
    set(object, tarn_slice_str(key), tarn_json_integer(value));
}

void tarn_json_set_bool(struct tarn_json *object, const char *key, bool value)
{
    set(object, tarn_slice_str(key), tarn_json_bool(value));
}

void tarn_json_remove(struct tarn_json *object, const char *key)
{
    json_object_del(inner(object), key);
}

void tarn_json_add(struct tarn_json *array, struct tarn_json *value)
{
    int failed = json_array_append_new(inner(array), inner(value));
    tarn_assert(failed == 0);
}

/* --- looking --- */

enum tarn_json_kind tarn_json_kind(const struct tarn_json *json)
{
    if (json == NULL)
        return TARN_JSON_NULL;
    switch (json_typeof(inner(json))) {
    case JSON_OBJECT:
        return TARN_JSON_OBJECT;
    case JSON_ARRAY:
        return TARN_JSON_ARRAY;
    case JSON_STRING:
        return TARN_JSON_STRING;
    case JSON_INTEGER:
        return TARN_JSON_INTEGER;
    case JSON_REAL:
        return TARN_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return TARN_JSON_BOOL;
    case JSON_NULL:
        break;
    }
    return TARN_JSON_NULL;
}

const struct tarn_json *tarn_json_find(const struct tarn_json *object, const char *key)
{
    return (const struct tarn_json *)json_object_get(inner(object), key);
}

size_t tarn_json_count(const struct tarn_json *array_or_object)
{
    json_t *json = inner(array_or_object);
    return json_is_array(json) ? json_array_size(json) : json_object_size(json);
}

const struct tarn_json *tarn_json_at(const struct tarn_json *array, size_t index)
{
    return (const struct tarn_json *)json_array_get(inner(array), index);
}

struct tarn_slice tarn_json_text(const struct tarn_json *string)
{
    if (!json_is_string(inner(string)))
        return tarn_slice_of(NULL, 0);
    return tarn_slice_of(json_string_value(inner(string)), json_string_length(inner(string)));
}

int64_t tarn_json_int(const struct tarn_json *integer)
{
    return json_integer_value(inner(integer));
}

double tarn_json_number(const struct tarn_json *real_or_integer)
{
    return json_number_value(inner(real_or_integer));
}

bool tarn_json_is_true(const struct tarn_json *json)
{
    return json_is_true(inner(json));
}

bool tarn_json_next(const struct tarn_json *object, void **cursor, struct tarn_slice *key,
                    const struct tarn_json **value)
{
    json_t *json = inner(object);
    *cursor = *cursor == NULL ? json_object_iter(json) : json_object_iter_next(json, *cursor);
    if (*cursor == NULL)
        return false;
    *key = tarn_slice_of(json_object_iter_key(*cursor), json_object_iter_key_len(*cursor));
    *value = (const struct tarn_json *)json_object_iter_value(*cursor);
    return true;
}
