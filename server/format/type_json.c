#include "format/type.h"

#include "format/ddl.h"

#include <limits.h>

static struct tarn_status *type_from_json(const struct tarn_json *json, int depth,
                                          struct tarn_arena *arena, const struct tarn_type **out);

static struct tarn_status *malformed(const char *what)
{
    return tarn_status_new(TARN_SCHEMA_MALFORMED, "%s", what);
}

/* ---- types */

static struct tarn_status *atomic_from_json(const struct tarn_json *json, struct tarn_arena *arena,
                                            const struct tarn_type **out)
{
    struct tarn_format__scanner s = {
        .text = tarn_json_text(json), .reason = TARN_SCHEMA_MALFORMED, .arena = arena};
    const struct tarn_type *type = NULL;
    TARN_TRY(tarn_format__scan_type(&s, 0, &type));
    if (!tarn_format__scan_end(&s))
        return tarn_format__scan_error(&s, "the end of the type");
    *out = type;
    return TARN_OK;
}

static struct tarn_status *element_from_json(const struct tarn_json *json, const char *member,
                                             int depth, struct tarn_arena *arena,
                                             const struct tarn_type **out)
{
    const struct tarn_json *part = tarn_json_find(json, member);
    if (part == NULL)
        return tarn_status_new(TARN_SCHEMA_MALFORMED, "a nested type has no \"%s\"", member);
    return type_from_json(part, depth + 1, arena, out);
}

static bool contains(struct tarn_slice text, const char *part)
{
    return text.size > 0 && memmem(text.data, text.size, part, strlen(part)) != NULL;
}

static struct tarn_status *nested_from_json(const struct tarn_json *json, int depth,
                                            struct tarn_arena *arena, const struct tarn_type **out)
{
    static const struct {
        const char *word;
        enum tarn_type_id id;
    } kinds[] = {{"ARRAY", TARN_TYPE_ARRAY},
                 {"MULTISET", TARN_TYPE_MULTISET},
                 {"MAP", TARN_TYPE_MAP},
                 {"ROW", TARN_TYPE_ROW},
                 {"VECTOR", TARN_TYPE_VECTOR}};
    struct tarn_slice word = tarn_json_text(tarn_json_find(json, "type"));
    struct tarn_type *type = tarn_arena_calloc(arena, 1, sizeof *type);
    size_t k = 0;
    while (k < TARN_COUNT_OF(kinds) && !tarn_slice_starts_with(word, tarn_slice_str(kinds[k].word)))
        k++;
    if (k == TARN_COUNT_OF(kinds))
        return tarn_status_new(TARN_SCHEMA_MALFORMED, "unknown nested type \"%.*s\"",
                               (int)TARN_MIN(word.size, (size_t)40), (const char *)word.data);
    type->id = kinds[k].id;
    type->nullable = !contains(word, "NOT NULL");
    if (type->id == TARN_TYPE_ROW) {
        TARN_TRY(tarn_fields_from_json(tarn_json_find(json, "fields"), depth + 1, arena,
                                       &type->fields, &type->field_count));
    } else if (type->id == TARN_TYPE_MAP) {
        TARN_TRY(element_from_json(json, "key", depth, arena, &type->key));
        TARN_TRY(element_from_json(json, "value", depth, arena, &type->element));
    } else {
        TARN_TRY(element_from_json(json, "element", depth, arena, &type->element));
    }
    if (type->id == TARN_TYPE_VECTOR) {
        int64_t length = tarn_json_int(tarn_json_find(json, "length"));
        if (length < 1 || length > TARN_TYPE_LENGTH_MAX)
            return malformed("the length of a VECTOR is missing or out of range");
        type->length = (int32_t)length;
    }
    *out = type;
    return TARN_OK;
}

static struct tarn_status *type_from_json(const struct tarn_json *json, int depth,
                                          struct tarn_arena *arena, const struct tarn_type **out)
{
    if (depth >= TARN_TYPE_DEPTH_MAX)
        return tarn_status_new(TARN_SCHEMA_MALFORMED, "a type is nested more than %d deep",
                               TARN_TYPE_DEPTH_MAX);
    if (json != NULL && tarn_json_kind(json) == TARN_JSON_STRING)
        return atomic_from_json(json, arena, out);
    if (json != NULL && tarn_json_kind(json) == TARN_JSON_OBJECT)
        return nested_from_json(json, depth, arena, out);
    return malformed("a type is neither text nor an object");
}

struct tarn_status *tarn_type_from_json(const struct tarn_json *json, struct tarn_arena *arena,
                                        const struct tarn_type **out)
{
    return type_from_json(json, 0, arena, out);
}

struct tarn_json *tarn_type_to_json(const struct tarn_type *type)
{
    if (type->id < TARN_TYPE_ARRAY) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
        tarn_type_print(type, &text);
        return tarn_json_string(tarn_buf_slice(&text));
    }
    static const char *const names[] = {"ARRAY", "MULTISET", "MAP", "ROW", "VECTOR"};
    const char *name = names[type->id - TARN_TYPE_ARRAY];
    TARN_OWN(tarn_buf_drop) struct tarn_buf word = {0};
    tarn_buf_printf(&word, "%s%s", name, type->nullable ? "" : " NOT NULL");
    struct tarn_json *object = tarn_json_object();
    tarn_json_set(object, "type", tarn_json_string(tarn_buf_slice(&word)));
    if (type->id == TARN_TYPE_MAP) {
        tarn_json_set(object, "key", tarn_type_to_json(type->key));
        tarn_json_set(object, "value", tarn_type_to_json(type->element));
    } else if (type->id == TARN_TYPE_ROW) {
        tarn_json_set(object, "fields", tarn_fields_to_json(type->fields, type->field_count));
    } else {
        tarn_json_set(object, "element", tarn_type_to_json(type->element));
    }
    if (type->id == TARN_TYPE_VECTOR)
        tarn_json_set_int(object, "length", type->length);
    return object;
}

/* ---- members that aren't known here */

static bool is_known(struct tarn_slice key, const char *const *known, size_t known_count)
{
    for (size_t i = 0; i < known_count; i++)
        if (tarn_slice_is(key, known[i]))
            return true;
    return false;
}

struct tarn_slice tarn_format__unknown_members(const struct tarn_json *object,
                                               const char *const *known, size_t known_count,
                                               struct tarn_arena *arena)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *rest = tarn_json_object();
    void *cursor = NULL;
    struct tarn_slice key;
    const struct tarn_json *value;
    while (tarn_json_next(object, &cursor, &key, &value))
        if (!is_known(key, known, known_count))
            tarn_json_set(rest, tarn_arena_str(arena, key), tarn_json_copy(value));
    if (tarn_json_count(rest) == 0)
        return (struct tarn_slice){0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_print(rest, 0, &text);
    return tarn_arena_copy(arena, tarn_buf_slice(&text));
}

void tarn_format__add_members(struct tarn_json *object, struct tarn_slice json)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *more = NULL;
    if (json.data == NULL)
        return;
    struct tarn_status *s = tarn_json_parse(json, &more);
    if (s != NULL) { /* the text is our own print of what was parsed before */
        tarn_status_free(s);
        return;
    }
    void *cursor = NULL;
    struct tarn_slice key;
    const struct tarn_json *value;
    while (tarn_json_next(more, &cursor, &key, &value)) {
        TARN_OWN(tarn_free_drop) char *name = tarn_slice_dup(key);
        if (tarn_json_find(object, name) == NULL)
            tarn_json_set(object, name, tarn_json_copy(value));
    }
}

/* ---- fields */

static struct tarn_status *optional_text(const struct tarn_json *object, const char *member,
                                         struct tarn_arena *arena, struct tarn_slice *out)
{
    const struct tarn_json *json = tarn_json_find(object, member);
    if (json == NULL || tarn_json_kind(json) == TARN_JSON_NULL)
        return TARN_OK;
    if (tarn_json_kind(json) != TARN_JSON_STRING)
        return tarn_status_new(TARN_SCHEMA_MALFORMED, "\"%s\" of a field is no text", member);
    *out = tarn_arena_copy(arena, tarn_json_text(json));
    return TARN_OK;
}

static struct tarn_status *field_from_json(const struct tarn_json *json, int depth,
                                           struct tarn_arena *arena, struct tarn_field *out)
{
    static const char *const known[] = {"id", "name", "type", "description", "defaultValue"};
    const struct tarn_json *id = tarn_json_find(json, "id");
    const struct tarn_json *name = tarn_json_find(json, "name");
    *out = (struct tarn_field){0};
    if (name == NULL || tarn_json_kind(name) != TARN_JSON_STRING)
        return malformed("a field has no \"name\"");
    if (id == NULL || tarn_json_kind(id) != TARN_JSON_INTEGER || tarn_json_int(id) < 0 ||
        tarn_json_int(id) > INT32_MAX)
        return tarn_status_new(TARN_SCHEMA_MALFORMED, "\"id\" of field \"%.*s\" is no field id",
                               TARN_SLICE_ARG(tarn_json_text(name)));
    out->id = (int32_t)tarn_json_int(id);
    out->name = tarn_arena_copy(arena, tarn_json_text(name));
    struct tarn_status *s = type_from_json(tarn_json_find(json, "type"), depth, arena, &out->type);
    if (s != NULL)
        return tarn_status_wrap(s, "field \"%.*s\"", TARN_SLICE_ARG(out->name));
    TARN_TRY(optional_text(json, "description", arena, &out->description));
    TARN_TRY(optional_text(json, "defaultValue", arena, &out->default_value));
    out->unknown_json = tarn_format__unknown_members(json, known, TARN_COUNT_OF(known), arena);
    return TARN_OK;
}

struct tarn_status *tarn_fields_from_json(const struct tarn_json *array, int depth,
                                          struct tarn_arena *arena, const struct tarn_field **out,
                                          size_t *count)
{
    if (array == NULL || tarn_json_kind(array) != TARN_JSON_ARRAY)
        return malformed("\"fields\" is no array");
    size_t n = tarn_json_count(array);
    if (n > TARN_COLUMNS_MAX)
        return tarn_status_new(TARN_SCHEMA_MALFORMED, "\"fields\" has %zu members, more than %d", n,
                               TARN_COLUMNS_MAX);
    struct tarn_field *fields = tarn_arena_calloc(arena, n, sizeof *fields);
    for (size_t i = 0; i < n; i++)
        TARN_TRY(field_from_json(tarn_json_at(array, i), depth, arena, &fields[i]));
    *out = fields;
    *count = n;
    return TARN_OK;
}

struct tarn_json *tarn_fields_to_json(const struct tarn_field *fields, size_t count)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++) {
        struct tarn_json *field = tarn_json_object();
        tarn_json_set_int(field, "id", fields[i].id);
        tarn_json_set_slice(field, tarn_slice_str("name"), fields[i].name);
        tarn_json_set(field, "type", tarn_type_to_json(fields[i].type));
        if (fields[i].description.data != NULL)
            tarn_json_set_slice(field, tarn_slice_str("description"), fields[i].description);
        if (fields[i].default_value.data != NULL)
            tarn_json_set_slice(field, tarn_slice_str("defaultValue"), fields[i].default_value);
        tarn_format__add_members(field, fields[i].unknown_json);
        tarn_json_add(array, field);
    }
    return array;
}

/* ---- ids */

/* Within a type a field comes after what is nested in it, as Java has it. */
static const struct tarn_type *assign_in_type(const struct tarn_type *type, int32_t *next,
                                              struct tarn_arena *arena)
{
    if (type == NULL || type->id < TARN_TYPE_ARRAY)
        return type;
    struct tarn_type *copy = tarn_arena_alloc(arena, sizeof *copy);
    *copy = *type;
    copy->key = assign_in_type(type->key, next, arena);
    copy->element = assign_in_type(type->element, next, arena);
    struct tarn_field *fields = tarn_arena_calloc(arena, type->field_count, sizeof *fields);
    for (size_t i = 0; i < type->field_count; i++) {
        fields[i] = type->fields[i];
        fields[i].type = assign_in_type(fields[i].type, next, arena);
        fields[i].id = (*next)++;
    }
    copy->fields = type->field_count == 0 ? NULL : fields;
    return copy;
}

const struct tarn_field *tarn_format__assign_ids(const struct tarn_field *fields, size_t count,
                                                 int32_t *next, struct tarn_arena *arena)
{
    struct tarn_field *copy = tarn_arena_calloc(arena, count, sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        copy[i] = fields[i];
        copy[i].id = (*next)++;
        copy[i].type = assign_in_type(fields[i].type, next, arena);
    }
    return copy;
}

bool tarn_format__is_file_name(struct tarn_slice name)
{
    if (name.size == 0 || name.size > 1024 || tarn_slice_is(name, ".") || tarn_slice_is(name, ".."))
        return false;
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] < 0x20 || name.data[i] == '/' || name.data[i] == '\\' ||
            name.data[i] == 0x7f)
            return false;
    return true;
}
