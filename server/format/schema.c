#include "format/schema.h"

#include "format/ddl.h"
#include "format/options_judge.h"

#include <limits.h>

#define TARN_SCHEMA_VERSION 3
#define TARN_SCHEMA_OPTIONS_MAX 10000

static const char *const known_members[] = {
    "version",     "id",      "fields",  "highestFieldId", "partitionKeys",
    "primaryKeys", "options", "comment", "timeMillis"};

static struct tarn_status *malformed(const char *member, const char *expected)
{
    return tarn_status_new(TARN_SCHEMA_MALFORMED, "\"%s\" %s", member, expected);
}

/* ---- decode */

static struct tarn_status *take_int(const struct tarn_json *json, const char *member, int64_t min,
                                    int64_t max, const int64_t *fallback, int64_t *out)
{
    const struct tarn_json *value = tarn_json_find(json, member);
    if ((value == NULL || tarn_json_kind(value) == TARN_JSON_NULL) && fallback != NULL) {
        *out = *fallback;
        return TARN_OK;
    }
    if (value == NULL || tarn_json_kind(value) != TARN_JSON_INTEGER)
        return malformed(member, "is missing or no integer");
    *out = tarn_json_int(value);
    if (*out < min || *out > max)
        return malformed(member, "is out of range");
    return TARN_OK;
}

static struct tarn_status *take_names(const struct tarn_json *json, const char *member,
                                      struct tarn_arena *arena, const struct tarn_slice **out,
                                      size_t *count)
{
    const struct tarn_json *array = tarn_json_find(json, member);
    if (array == NULL || tarn_json_kind(array) != TARN_JSON_ARRAY)
        return malformed(member, "is missing or no array");
    size_t n = tarn_json_count(array);
    if (n > TARN_COLUMNS_MAX)
        return malformed(member, "has too many members");
    struct tarn_slice *names = tarn_arena_calloc(arena, n, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        const struct tarn_json *name = tarn_json_at(array, i);
        if (tarn_json_kind(name) != TARN_JSON_STRING)
            return malformed(member, "holds something that is no text");
        names[i] = tarn_arena_copy(arena, tarn_json_text(name));
    }
    *out = names;
    *count = n;
    return TARN_OK;
}

/* Java reads numbers and booleans as their text, so a hand-written file may hold them. */
static struct tarn_status *option_text(const struct tarn_json *value, struct tarn_arena *arena,
                                       struct tarn_slice *out)
{
    switch (tarn_json_kind(value)) {
    case TARN_JSON_STRING:
        *out = tarn_arena_copy(arena, tarn_json_text(value));
        return TARN_OK;
    case TARN_JSON_INTEGER:
        *out = tarn_slice_str(tarn_arena_printf(arena, "%lld", (long long)tarn_json_int(value)));
        return TARN_OK;
    case TARN_JSON_BOOL:
        *out = tarn_slice_str(tarn_json_is_true(value) ? "true" : "false");
        return TARN_OK;
    default:
        return malformed("options", "holds a value that is no text");
    }
}

static struct tarn_status *take_options(const struct tarn_json *json, struct tarn_arena *arena,
                                        struct tarn_schema *out)
{
    const struct tarn_json *object = tarn_json_find(json, "options");
    if (object == NULL || tarn_json_kind(object) != TARN_JSON_OBJECT)
        return malformed("options", "is missing or no object");
    size_t n = tarn_json_count(object), i = 0;
    if (n > TARN_SCHEMA_OPTIONS_MAX)
        return malformed("options", "has too many members");
    struct tarn_pair *pairs = tarn_arena_calloc(arena, n + 2, sizeof *pairs);
    void *cursor = NULL;
    struct tarn_slice key;
    const struct tarn_json *value;
    while (i < n && tarn_json_next(object, &cursor, &key, &value)) {
        if (tarn_json_kind(value) == TARN_JSON_NULL)
            continue; /* null is the same as not there */
        pairs[i].key = tarn_arena_copy(arena, key);
        TARN_TRY(option_text(value, arena, &pairs[i].value));
        i++;
    }
    out->options = pairs;
    out->option_count = i;
    /* What old versions meant by leaving an option out, said explicitly as Java does on reading. */
    if (out->version <= 1 && tarn_schema_option(out, "bucket").data == NULL)
        pairs[out->option_count++] =
            (struct tarn_pair){tarn_slice_str("bucket"), tarn_slice_str("1")};
    if (out->version <= 2 && tarn_schema_option(out, "file.format").data == NULL)
        pairs[out->option_count++] =
            (struct tarn_pair){tarn_slice_str("file.format"), tarn_slice_str("orc")};
    return TARN_OK;
}

static int32_t highest_id_in(const struct tarn_type *type);

static int32_t highest_id(const struct tarn_field *fields, size_t count)
{
    int32_t highest = -1;
    for (size_t i = 0; i < count; i++) {
        int32_t nested = highest_id_in(fields[i].type);
        highest = TARN_MAX(highest, fields[i].id);
        highest = TARN_MAX(highest, nested);
    }
    return highest;
}

static int32_t highest_id_in(const struct tarn_type *type)
{
    if (type == NULL || type->id < TARN_TYPE_ARRAY)
        return -1;
    int32_t in_fields = highest_id(type->fields, type->field_count);
    int32_t in_key = highest_id_in(type->key), in_element = highest_id_in(type->element);
    int32_t in_parts = TARN_MAX(in_key, in_element);
    return TARN_MAX(in_fields, in_parts);
}

/* The names within a row, however deep, occur once: values are found by name in JSON and in files. */
static struct tarn_status *check_rows(const struct tarn_type *type, int depth,
                                      struct tarn_slice column, enum tarn_reason reason)
{
    if (type == NULL)
        return TARN_OK;
    if (depth >= TARN_TYPE_DEPTH_MAX)
        return tarn_status_new(reason, "column \"%.*s\" is nested more than %d deep",
                               TARN_SLICE_ARG(column), TARN_TYPE_DEPTH_MAX);
    if (type->id < TARN_TYPE_ARRAY)
        return TARN_OK;
    TARN_OWN(tarn_map_drop) struct tarn_map *names = tarn_map_new();
    for (size_t i = 0; i < type->field_count; i++) {
        const struct tarn_field *field = &type->fields[i];
        if (tarn_format__trim(field->name).size == 0)
            return tarn_status_new(reason, "column \"%.*s\" has a part without name",
                                   TARN_SLICE_ARG(column));
        if (tarn_map_set(names, field->name, names) != NULL)
            return tarn_status_new(reason, "column \"%.*s\" has two parts named \"%.*s\"",
                                   TARN_SLICE_ARG(column), TARN_SLICE_ARG(field->name));
        TARN_TRY(check_rows(field->type, depth + 1, column, reason));
    }
    TARN_TRY(check_rows(type->key, depth + 1, column, reason));
    return check_rows(type->element, depth + 1, column, reason);
}

/* Names and ids occur once; keys name columns and name them once. */
static struct tarn_status *check_shape(const struct tarn_schema *s, enum tarn_reason reason)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *names = tarn_map_new();
    TARN_OWN(tarn_map_drop) struct tarn_map *ids = tarn_map_new();
    for (size_t i = 0; i < s->field_count; i++) {
        if (tarn_format__trim(s->fields[i].name).size == 0) /* blank: Java reads no such schema */
            return tarn_status_new(reason, "column %zu has no name", i + 1);
        if (tarn_map_set(names, s->fields[i].name, (void *)&s->fields[i]) != NULL)
            return tarn_status_new(reason, "column \"%.*s\" occurs twice",
                                   TARN_SLICE_ARG(s->fields[i].name));
        if (tarn_map_set(ids, tarn_slice_of(&s->fields[i].id, sizeof s->fields[i].id), ids) != NULL)
            return tarn_status_new(reason, "field id %d occurs twice", s->fields[i].id);
        TARN_TRY(check_rows(s->fields[i].type, 0, s->fields[i].name, reason));
    }
    for (int k = 0; k < 2; k++) {
        const struct tarn_slice *keys = k == 0 ? s->partition_keys : s->primary_keys;
        size_t count = k == 0 ? s->partition_key_count : s->primary_key_count;
        const char *what = k == 0 ? "partition key" : "primary key";
        TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
        for (size_t i = 0; i < count; i++) {
            const struct tarn_field *field = tarn_map_find(names, keys[i]);
            if (field == NULL)
                return tarn_status_new(reason, "%s \"%.*s\" is no column", what,
                                       TARN_SLICE_ARG(keys[i]));
            if (tarn_map_set(seen, keys[i], seen) != NULL)
                return tarn_status_new(reason, "%s \"%.*s\" is named twice", what,
                                       TARN_SLICE_ARG(keys[i]));
            if (!tarn_type_is_ordered(field->type))
                return tarn_status_new(reason, "%s \"%.*s\" is of a type that can't be a key", what,
                                       TARN_SLICE_ARG(keys[i]));
        }
    }
    return TARN_OK;
}

static struct tarn_status *decode_members(const struct tarn_json *json, struct tarn_arena *arena,
                                          struct tarn_schema *s)
{
    static const int64_t one = 1, zero = 0;
    int64_t n = 0;
    TARN_TRY(take_int(json, "version", 0, INT32_MAX, &one, &n));
    s->version = (int32_t)n;
    TARN_TRY(take_int(json, "id", 0, INT64_MAX, NULL, &s->id));
    TARN_TRY(tarn_fields_from_json(tarn_json_find(json, "fields"), 0, arena, &s->fields,
                                   &s->field_count));
    TARN_TRY(take_int(json, "highestFieldId", -1, INT32_MAX, NULL, &n));
    s->highest_field_id = (int32_t)n;
    TARN_TRY(take_names(json, "partitionKeys", arena, &s->partition_keys, &s->partition_key_count));
    TARN_TRY(take_names(json, "primaryKeys", arena, &s->primary_keys, &s->primary_key_count));
    TARN_TRY(take_options(json, arena, s));
    TARN_TRY(take_int(json, "timeMillis", INT64_MIN, INT64_MAX, &zero, &s->time_ms));
    const struct tarn_json *comment = tarn_json_find(json, "comment");
    if (comment != NULL && tarn_json_kind(comment) == TARN_JSON_STRING)
        s->comment = tarn_arena_copy(arena, tarn_json_text(comment));
    else if (comment != NULL && tarn_json_kind(comment) != TARN_JSON_NULL)
        return malformed("comment", "is no text");
    s->unknown_json =
        tarn_format__unknown_members(json, known_members, TARN_COUNT_OF(known_members), arena);
    if (s->highest_field_id < highest_id(s->fields, s->field_count))
        return malformed("highestFieldId", "is below the id of a field");
    return check_shape(s, TARN_SCHEMA_MALFORMED);
}

struct tarn_status *tarn_schema_decode(struct tarn_slice json, struct tarn_arena *arena,
                                       struct tarn_schema *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *doc = NULL;
    struct tarn_schema schema = {0};
    struct tarn_status *s = tarn_json_parse(json, &doc);
    TARN_TRY(tarn_status_as(s, TARN_SCHEMA_MALFORMED));
    if (tarn_json_kind(doc) != TARN_JSON_OBJECT)
        return tarn_status_new(TARN_SCHEMA_MALFORMED, "the schema is no JSON object");
    TARN_TRY(decode_members(doc, arena, &schema));
    *out = schema;
    return TARN_OK;
}

/* ---- encode */

static struct tarn_json *names_to_json(const struct tarn_slice *names, size_t count)
{
    struct tarn_json *array = tarn_json_array();
    for (size_t i = 0; i < count; i++)
        tarn_json_add(array, tarn_json_string(names[i]));
    return array;
}

void tarn_schema_encode(const struct tarn_schema *s, struct tarn_buf *out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_object();
    /* What an older version implied is spelled out by decode, so this is version 3 now. */
    tarn_json_set_int(json, "version", TARN_MAX(s->version, TARN_SCHEMA_VERSION));
    tarn_json_set_int(json, "id", s->id);
    tarn_json_set(json, "fields", tarn_fields_to_json(s->fields, s->field_count));
    tarn_json_set_int(json, "highestFieldId", s->highest_field_id);
    tarn_json_set(json, "partitionKeys", names_to_json(s->partition_keys, s->partition_key_count));
    tarn_json_set(json, "primaryKeys", names_to_json(s->primary_keys, s->primary_key_count));
    struct tarn_json *options = tarn_json_object();
    for (size_t i = 0; i < s->option_count; i++)
        tarn_json_set_slice(options, s->options[i].key, s->options[i].value);
    tarn_json_set(json, "options", options);
    if (s->comment.data != NULL)
        tarn_json_set_slice(json, tarn_slice_str("comment"), s->comment);
    tarn_json_set_int(json, "timeMillis", s->time_ms);
    tarn_format__add_members(json, s->unknown_json);
    tarn_json_print(json, 2, out);
}

/* ---- looking */

int tarn_schema_find(const struct tarn_schema *schema, struct tarn_slice name)
{
    for (size_t i = 0; i < schema->field_count; i++)
        if (tarn_slice_equal(schema->fields[i].name, name))
            return (int)i;
    return -1;
}

int tarn_schema_find_id(const struct tarn_schema *schema, int32_t field_id)
{
    for (size_t i = 0; i < schema->field_count; i++)
        if (schema->fields[i].id == field_id)
            return (int)i;
    return -1;
}

struct tarn_slice tarn_schema_option(const struct tarn_schema *schema, const char *key)
{
    for (size_t i = 0; i < schema->option_count; i++)
        if (tarn_slice_is(schema->options[i].key, key)) /* an empty value is there all the same */
            return schema->options[i].value.data == NULL ? tarn_slice_str("")
                                                         : schema->options[i].value;
    return (struct tarn_slice){0};
}

bool tarn_schema_is_append(const struct tarn_schema *schema)
{
    return schema->primary_key_count == 0;
}

static bool is_partition_key(const struct tarn_schema *s, struct tarn_slice name)
{
    for (size_t i = 0; i < s->partition_key_count; i++)
        if (tarn_slice_equal(s->partition_keys[i], name))
            return true;
    return false;
}

size_t tarn_schema_partition_columns(const struct tarn_schema *s, struct tarn_arena *a, int **out)
{
    *out = tarn_arena_calloc(a, s->partition_key_count, sizeof **out);
    for (size_t i = 0; i < s->partition_key_count; i++)
        (*out)[i] = tarn_schema_find(s, s->partition_keys[i]);
    return s->partition_key_count;
}

size_t tarn_schema_trimmed_key_columns(const struct tarn_schema *s, struct tarn_arena *a, int **out)
{
    size_t n = 0;
    *out = tarn_arena_calloc(a, s->primary_key_count, sizeof **out);
    for (size_t i = 0; i < s->primary_key_count; i++)
        if (!is_partition_key(s, s->primary_keys[i]))
            (*out)[n++] = tarn_schema_find(s, s->primary_keys[i]);
    return n;
}

/* ---- create */

/* "a, b" of an option as names. */
static struct tarn_status *split_names(struct tarn_slice text, const char *option,
                                       struct tarn_arena *arena, const struct tarn_slice **out,
                                       size_t *count)
{
    size_t n = 1, start = 0, k = 0;
    for (size_t i = 0; i < text.size; i++)
        n += text.data[i] == ',';
    struct tarn_slice *names = tarn_arena_calloc(arena, n, sizeof *names);
    for (size_t i = 0; i <= text.size; i++) {
        if (i < text.size && text.data[i] != ',')
            continue;
        names[k] =
            tarn_arena_copy(arena, tarn_format__trim(tarn_slice_of(text.data + start, i - start)));
        if (names[k++].size == 0)
            return tarn_status_new(TARN_SCHEMA_INVALID, "option %s = \"%.*s\" holds an empty name",
                                   option, TARN_SLICE_ARG(text));
        start = i + 1;
    }
    *out = names;
    *count = k;
    return TARN_OK;
}

/* Moves options primary-key and partition into the arrays. */
static struct tarn_status *move_key_options(struct tarn_arena *arena, struct tarn_schema *s)
{
    struct tarn_pair *kept = tarn_arena_calloc(arena, s->option_count, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < s->option_count; i++) {
        struct tarn_slice key = s->options[i].key, value = s->options[i].value;
        bool primary = tarn_slice_is(key, "primary-key");
        if (!primary && !tarn_slice_is(key, "partition")) {
            for (size_t j = 0; j < n; j++)
                if (tarn_slice_equal(kept[j].key, key))
                    return tarn_status_new(TARN_SCHEMA_INVALID, "option %.*s is given twice",
                                           TARN_SLICE_ARG(key));
            kept[n].key = tarn_arena_copy(arena, key);
            kept[n++].value = tarn_arena_copy(arena, value);
            continue;
        }
        if ((primary ? s->primary_key_count : s->partition_key_count) > 0)
            return tarn_status_new(TARN_SCHEMA_INVALID,
                                   "the %s keys are given by the table and by option %.*s",
                                   primary ? "primary" : "partition", TARN_SLICE_ARG(key));
        TARN_TRY(primary ? split_names(value, "primary-key", arena, &s->primary_keys,
                                       &s->primary_key_count)
                         : split_names(value, "partition", arena, &s->partition_keys,
                                       &s->partition_key_count));
    }
    s->options = kept;
    s->option_count = n;
    return TARN_OK;
}

static struct tarn_status *check_names(const struct tarn_schema *s)
{
    static const char *const taken[] = {"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind",
                                        "_ROW_ID"};
    if (s->field_count == 0)
        return tarn_status_new(TARN_SCHEMA_INVALID, "a table needs at least one column");
    if (s->field_count > TARN_COLUMNS_MAX)
        return tarn_status_new(TARN_SCHEMA_INVALID, "%zu columns are more than %d", s->field_count,
                               TARN_COLUMNS_MAX);
    for (size_t i = 0; i < s->field_count; i++) {
        struct tarn_slice name = s->fields[i].name;
        bool bad = tarn_slice_starts_with(name, tarn_slice_str("_KEY_"));
        for (size_t j = 0; j < TARN_COUNT_OF(taken); j++)
            bad = bad || tarn_slice_is(name, taken[j]);
        if (bad)
            return tarn_status_new(TARN_SCHEMA_INVALID,
                                   "column \"%.*s\" has a name that Paimon keeps for itself",
                                   TARN_SLICE_ARG(name));
        if (!tarn_utf8_valid(name) || (name.size > 0 && memchr(name.data, 0, name.size) != NULL))
            return tarn_status_new(TARN_SCHEMA_INVALID, "the name of column %zu is no text", i + 1);
    }
    return TARN_OK;
}

static struct tarn_status *check_keys(const struct tarn_schema *s)
{
    if (s->primary_key_count == 0)
        return TARN_OK;
    size_t trimmed = 0;
    for (size_t i = 0; i < s->primary_key_count; i++)
        trimmed += !is_partition_key(s, s->primary_keys[i]);
    if (trimmed == 0)
        return tarn_status_new(TARN_SCHEMA_INVALID,
                               "the primary key has no column beside the partition keys");
    return TARN_OK;
}

/* Ids from here on are of Paimon's own columns (SpecialFields.SYSTEM_FIELD_ID_START). */
#define TARN_FIELD_ID_MAX (INT32_MAX / 2 - 1)

static bool ids_of_type_occur_once(const struct tarn_type *type, struct tarn_map *seen);

static bool ids_occur_once(const struct tarn_field *fields, size_t count, struct tarn_map *seen)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].id > TARN_FIELD_ID_MAX ||
            tarn_map_set(seen, tarn_slice_of(&fields[i].id, sizeof fields[i].id), seen) != NULL ||
            !ids_of_type_occur_once(fields[i].type, seen))
            return false;
    return true;
}

static bool ids_of_type_occur_once(const struct tarn_type *type, struct tarn_map *seen)
{
    if (type == NULL || type->id < TARN_TYPE_ARRAY)
        return true;
    return ids_occur_once(type->fields, type->field_count, seen) &&
           ids_of_type_occur_once(type->key, seen) && ids_of_type_occur_once(type->element, seen);
}

static bool keeps_ids(const struct tarn_schema *draft)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    return draft->highest_field_id > 0 && ids_occur_once(draft->fields, draft->field_count, seen);
}

/* The columns with their ids. */
static const struct tarn_field *settle_ids(const struct tarn_schema *draft,
                                           struct tarn_arena *arena, int32_t *highest)
{
    int32_t next = 0;
    const struct tarn_field *fields =
        keeps_ids(draft) ? draft->fields
                         : tarn_format__assign_ids(draft->fields, draft->field_count, &next, arena);
    *highest = highest_id(fields, draft->field_count);
    return fields;
}

/* Primary key columns are NOT NULL, or, with option primary-key.nullable, the reverse. */
static void force_key_nullability(struct tarn_field *fields, const struct tarn_schema *s,
                                  struct tarn_arena *arena)
{
    bool nullable = tarn_slice_is(tarn_schema_option(s, "primary-key.nullable"), "true");
    for (size_t i = 0; i < s->primary_key_count; i++) {
        struct tarn_field *field = &fields[tarn_schema_find(s, s->primary_keys[i])];
        field->type = tarn_type_with_nullable(field->type, nullable, arena);
    }
}

struct tarn_status *tarn_format__settle_schema(struct tarn_schema *s, struct tarn_arena *arena)
{
    struct tarn_field *fields = tarn_arena_calloc(arena, s->field_count, sizeof *fields);
    s->version = TARN_SCHEMA_VERSION;
    TARN_TRY(move_key_options(arena, s));
    TARN_TRY(check_names(s));
    TARN_TRY(check_shape(s, TARN_SCHEMA_INVALID));
    TARN_TRY(check_keys(s));
    memcpy(fields, s->fields, s->field_count * sizeof *fields);
    s->fields = fields;
    force_key_nullability(fields, s, arena);
    return tarn_format__check_options(s, arena);
}

struct tarn_status *tarn_schema_create(const struct tarn_schema *draft, int64_t time_ms,
                                       struct tarn_arena *arena, struct tarn_schema *out)
{
    struct tarn_schema s = *draft;
    s.id = 0;
    s.time_ms = time_ms;
    TARN_TRY(tarn_format__apply_directives(&s, arena));
    s.fields = settle_ids(&s, arena, &s.highest_field_id);
    TARN_TRY(tarn_format__settle_schema(&s, arena));
    *out = s;
    return TARN_OK;
}

static const struct tarn_field *partition_field(const struct tarn_schema *s, size_t i)
{
    return &s->fields[tarn_schema_find(s, s->partition_keys[i])];
}

static struct tarn_status *check_same_partitions(const struct tarn_schema *old,
                                                 const struct tarn_schema *new)
{
    bool same = old->partition_key_count == new->partition_key_count;
    for (size_t i = 0; same && i < old->partition_key_count; i++)
        same = tarn_slice_equal(old->partition_keys[i], new->partition_keys[i]) &&
               partition_field(old, i)->type->id == partition_field(new, i)->type->id;
    return same ? TARN_OK
                : tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                                  "a table's partition columns and their types stay when it is "
                                  "replaced; drop it and make it anew");
}

struct tarn_status *tarn_schema_replace(const struct tarn_schema *old,
                                        const struct tarn_schema *draft, int64_t time_ms,
                                        struct tarn_arena *arena, struct tarn_schema *out)
{
    struct tarn_schema s = *draft;
    int32_t next = old->highest_field_id + 1;
    s.id = old->id + 1;
    s.time_ms = time_ms;
    TARN_TRY(tarn_format__apply_directives(&s, arena));
    s.fields = tarn_format__assign_ids(s.fields, s.field_count, &next, arena);
    s.highest_field_id = highest_id(s.fields, s.field_count);
    TARN_TRY(tarn_format__settle_schema(&s, arena));
    TARN_TRY(check_same_partitions(old, &s));
    *out = s;
    return TARN_OK;
}

struct tarn_status *tarn_columns_parse(struct tarn_slice text, struct tarn_arena *arena,
                                       const struct tarn_field **fields, size_t *count)
{
    struct tarn_format__scanner s = {.text = text, .reason = TARN_SCHEMA_INVALID, .arena = arena};
    TARN_OWN(tarn_free_drop) struct tarn_field *list = NULL;
    size_t n = 0, capacity = 0;
    do {
        if (n == TARN_COLUMNS_MAX)
            return tarn_status_new(TARN_SCHEMA_INVALID, "more than %d columns", TARN_COLUMNS_MAX);
        TARN_GROW(list, n, capacity);
        TARN_TRY(tarn_format__scan_field(&s, 0, &list[n]));
        n++;
    } while (tarn_format__scan_char(&s, ','));
    if (!tarn_format__scan_end(&s))
        return tarn_format__scan_error(&s, "\",\" or the end");
    *fields = (const struct tarn_field *)(const void *)tarn_arena_copy(
                  arena, tarn_slice_of(list, n * sizeof *list))
                  .data;
    *count = n;
    return TARN_OK;
}
