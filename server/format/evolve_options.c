/* Options in the evolution of a schema: which may change, and those that name columns. */
#include "format/evolve_internal.h"

#include "format/ddl.h"
#include "format/options_judge.h"

#include <strings.h>

/* ---- lists of names */

bool tarn_format__next_name(struct tarn_slice *rest, struct tarn_slice *name)
{
    while (rest->size > 0) {
        const uint8_t *comma = memchr(rest->data, ',', rest->size);
        size_t size = comma == NULL ? rest->size : (size_t)(comma - rest->data);
        *name = tarn_format__trim(tarn_slice_of(rest->data, size));
        size += comma != NULL;
        *rest = tarn_slice_of(rest->data + size, rest->size - size);
        if (name->size > 0)
            return true;
    }
    return false;
}

bool tarn_format__names_have(struct tarn_slice names, struct tarn_slice name)
{
    struct tarn_slice each;
    while (tarn_format__next_name(&names, &each))
        if (tarn_slice_equal(each, name))
            return true;
    return false;
}

static bool names_are(struct tarn_slice names, const struct tarn_slice *list, size_t count)
{
    struct tarn_slice each;
    size_t n = 0;
    while (tarn_format__next_name(&names, &each))
        if (n == count || !tarn_slice_equal(each, list[n++]))
            return false;
    return n == count;
}

static bool ends_with(struct tarn_slice s, const char *end)
{
    size_t n = strlen(end);
    return s.size >= n && memcmp(s.data + s.size - n, end, n) == 0;
}

/* ---- what is frozen */

/* Options that decide what is in the files: frozen once there is a snapshot. */
static const char *const frozen[] = {
    "bucket-key",
    "bucket-function.type",
    "data-file.path-directory",
    "merge-engine",
    "sequence.snapshot-ordering",
    "aggregation.remove-record-on-delete",
    "partial-update.remove-record-on-delete",
    "partial-update.remove-record-on-sequence-group",
    "rowkind.field",
    "primary-key",
    "primary-key.nullable",
    "partition",
    "dynamic-bucket.initial-buckets",
    "force-lookup",
    "row-tracking.enabled",
    "data-evolution.enabled",
    "index-file-in-data-file-dir",
    "blob-field",
    "blob-descriptor-field",
    "blob-view-field",
    "pk-clustering-override",
};

static struct tarn_status *refused(struct tarn_slice key, const char *why)
{
    return tarn_status_new(TARN_SCHEMA_INVALID, "option %.*s %s", TARN_SLICE_ARG(key), why);
}

static bool is_true(struct tarn_slice value)
{
    return tarn_format__is_word(value, "true");
}

static bool has_option(const struct tarn_format__draft *d, const char *key)
{
    return tarn_schema_option(d->old, key).data != NULL;
}

static struct tarn_status *check_bucket(struct tarn_slice was, struct tarn_slice value)
{
    struct tarn_slice key = tarn_slice_str("bucket");
    if (value.data == NULL)
        return refused(key, "can't be reset once the table has a snapshot");
    if (was.data == NULL || tarn_slice_is(was, "-1") || tarn_slice_is(value, "-1"))
        return refused(key, "can't change from or to -1 once the table has a snapshot");
    return TARN_OK;
}

/* Of a table with snapshots; value absent: the option is removed. */
static struct tarn_status *check_option(const struct tarn_format__draft *d, struct tarn_slice key,
                                        struct tarn_slice was, struct tarn_slice value)
{
    for (size_t i = 0; i < TARN_COUNT_OF(frozen); i++)
        if (tarn_slice_is(key, frozen[i]))
            return refused(key, "can't be changed once the table has a snapshot: make a new table");
    if (tarn_slice_is(key, "bucket"))
        return check_bucket(was, value);
    if (tarn_slice_is(key, "deletion-vectors.enabled") && is_true(was) != is_true(value) &&
        !is_true(tarn_schema_option(d->old, "deletion-vectors.modifiable")))
        return refused(key, "can't be changed once the table has a snapshot, unless "
                            "deletion-vectors.modifiable = true: rows could show twice before a "
                            "full compaction");
    bool ignoring =
        tarn_slice_is(key, "ignore-delete") || tarn_slice_is(key, "ignore-update-before");
    if (ignoring && value.data != NULL && is_true(was) && !is_true(value))
        return refused(key, "can't go from true to false once the table has a snapshot");
    if (tarn_slice_is(key, "clustering.columns") && has_option(d, "pk-clustering-override"))
        return refused(key, "can't be changed where pk-clustering-override is set");
    return TARN_OK;
}

/* Set to what the schema says already, if not in its options. */
static bool says_so_already(const struct tarn_schema *s, struct tarn_slice key,
                            struct tarn_slice value)
{
    if (tarn_slice_is(key, "type")) {
        struct tarn_slice was = tarn_schema_option(s, "type");
        if (was.data == NULL)
            was = tarn_slice_str("table"); /* the default */
        return was.size == value.size &&
               strncasecmp((const char *)was.data, (const char *)value.data, was.size) == 0;
    }
    if (tarn_slice_is(key, "primary-key"))
        return s->primary_key_count > 0 && names_are(value, s->primary_keys, s->primary_key_count);
    return tarn_slice_is(key, "partition") && s->partition_key_count > 0 &&
           names_are(value, s->partition_keys, s->partition_key_count);
}

static void remove_option(struct tarn_format__draft *d, struct tarn_slice key)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->option_count; i++)
        if (!tarn_slice_equal(d->options[i].key, key))
            d->options[kept++] = d->options[i];
    d->option_count = kept;
}

static void put_option(struct tarn_format__draft *d, struct tarn_slice key, struct tarn_slice value)
{
    for (size_t i = 0; i < d->option_count; i++) {
        if (tarn_slice_equal(d->options[i].key, key)) {
            d->options[i].value = value;
            return;
        }
    }
    d->options[d->option_count++] = (struct tarn_pair){key, value};
}

struct tarn_status *tarn_format__change_option(struct tarn_format__draft *d, struct tarn_slice key,
                                               struct tarn_slice value)
{
    struct tarn_slice was = tarn_schema_option(d->old, tarn_arena_str(d->arena, key));
    if (key.size == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a change names no option");
    if (value.data != NULL && says_so_already(d->old, key, value))
        return TARN_OK;
    if (tarn_slice_is(key, "type") || tarn_slice_is(key, "path"))
        return refused(key, "can't be changed: make a new table");
    bool same = value.data != NULL && was.data != NULL && tarn_slice_equal(was, value);
    if (d->has_snapshot && !same)
        TARN_TRY(check_option(d, key, was, value));
    if (value.data == NULL)
        remove_option(d, key);
    else
        put_option(d, key, value);
    return TARN_OK;
}

/* ---- options that name columns */

/* The value is a list of columns. */
static const char *const lists[] = {
    "bucket-key",
    "sequence.field",
    "rowkind.field",
    "record-level.time-field",
    "upsert-key",
    "clustering.columns",
    "sink.clustering.by-columns",
    "vector-field",
    "partial-update.remove-record-on-sequence-group",
};
static const char *const blob_lists[] = {"blob-field", "blob-descriptor-field",
                                         "blob.stored-descriptor-fields", "blob-view-field"};
static const char *const map_options[] = {"map.storage-layout", "map.shared-shredding.max-columns",
                                          "map.shared-shredding.column-placement-policy"};

static const struct tarn_slice fields_prefix = {(const uint8_t *)"fields.", 7};
static const struct tarn_slice index_prefix = {(const uint8_t *)"file-index.", 11};

static bool is_index_list(struct tarn_slice key) /* file-index.TYPE.columns */
{
    return tarn_slice_starts_with(key, index_prefix) && ends_with(key, ".columns");
}

static bool is_column_list(struct tarn_slice key)
{
    for (size_t i = 0; i < TARN_COUNT_OF(lists); i++)
        if (tarn_slice_is(key, lists[i]))
            return true;
    return is_index_list(key);
}

/* Columns before, and columns of the value: fields.A,B.sequence-group = C,D. */
static bool is_group(struct tarn_slice key)
{
    return tarn_slice_starts_with(key, fields_prefix) && ends_with(key, ".sequence-group");
}

/* An item of file-index.*.columns may be a key in a MAP: column[key]. */
static size_t bare_size(struct tarn_slice item)
{
    const uint8_t *bracket = item.size == 0 ? NULL : memchr(item.data, '[', item.size);
    return bracket == NULL || item.data[item.size - 1] != ']' ? item.size
                                                              : (size_t)(bracket - item.data);
}

static bool is_item(struct tarn_slice item, struct tarn_slice name)
{
    return tarn_slice_equal(item, name) ||
           tarn_slice_equal(tarn_slice_of(item.data, bare_size(item)), name);
}

/* The list with `to` for `from`; blanks and everything else as they were. */
static struct tarn_slice rename_in_list(struct tarn_arena *arena, struct tarn_slice names,
                                        struct tarn_slice from, struct tarn_slice to)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    size_t start = 0;
    for (size_t i = 0; i <= names.size; i++) {
        if (i < names.size && names.data[i] != ',')
            continue;
        struct tarn_slice raw = tarn_slice_of(names.data + start, i - start);
        struct tarn_slice item = tarn_format__trim(raw);
        if (start > 0)
            tarn_buf_printf(&out, ",");
        if (is_item(item, from))
            tarn_buf_printf(&out, "%.*s%.*s", TARN_SLICE_ARG(to), (int)(item.size - from.size),
                            (const char *)item.data + from.size);
        else
            tarn_buf_add_slice(&out, raw);
        start = i + 1;
    }
    return tarn_arena_copy(arena, tarn_buf_slice(&out));
}

/* The column that fields.COLUMN.WHAT is about: the longest name that fits, as names may hold dots. */
static size_t named_size(const struct tarn_field *fields, size_t count, struct tarn_slice rest)
{
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) {
        struct tarn_slice name = fields[i].name;
        if (name.size > longest && tarn_slice_starts_with(rest, name) && rest.size > name.size &&
            rest.data[name.size] == '.')
            longest = name.size;
    }
    return longest;
}

static struct tarn_slice after(struct tarn_slice s, size_t size)
{
    return tarn_slice_of(s.data + size, s.size - size);
}

static struct tarn_slice rename_in_key(const struct tarn_format__draft *d, struct tarn_slice key,
                                       struct tarn_slice from, struct tarn_slice to)
{
    struct tarn_slice rest;
    if (is_group(key)) {
        size_t names = key.size - fields_prefix.size - strlen(".sequence-group");
        struct tarn_slice renamed =
            rename_in_list(d->arena, tarn_slice_of(key.data + fields_prefix.size, names), from, to);
        return tarn_slice_str(
            tarn_arena_printf(d->arena, "fields.%.*s.sequence-group", TARN_SLICE_ARG(renamed)));
    }
    if (tarn_slice_starts_with(key, fields_prefix)) {
        rest = after(key, fields_prefix.size);
        size_t size = named_size(d->root.fields, d->root.field_count, rest);
        if (size == 0 || !tarn_slice_equal(tarn_slice_of(rest.data, size), from))
            return key;
        return tarn_slice_str(tarn_arena_printf(d->arena, "fields.%.*s%.*s", TARN_SLICE_ARG(to),
                                                (int)(rest.size - size),
                                                (const char *)rest.data + size));
    }
    /* file-index.TYPE.COLUMN.WHAT */
    const uint8_t *dot =
        tarn_slice_starts_with(key, index_prefix)
            ? memchr(key.data + index_prefix.size, '.', key.size - index_prefix.size)
            : NULL;
    if (dot == NULL)
        return key;
    rest = after(key, (size_t)(dot + 1 - key.data));
    if (!tarn_slice_starts_with(rest, from) || rest.size <= from.size ||
        rest.data[from.size] != '.')
        return key;
    return tarn_slice_str(tarn_arena_printf(
        d->arena, "%.*s%.*s%.*s", (int)(rest.data - key.data), (const char *)key.data,
        TARN_SLICE_ARG(to), (int)(rest.size - from.size), (const char *)rest.data + from.size));
}

void tarn_format__rename_in_options(struct tarn_format__draft *d, struct tarn_slice from,
                                    struct tarn_slice to)
{
    for (size_t i = 0; i < d->option_count; i++) {
        struct tarn_pair *option = &d->options[i];
        if (is_column_list(option->key) || is_group(option->key))
            option->value = rename_in_list(d->arena, option->value, from, to);
        option->key = rename_in_key(d, option->key, from, to);
    }
}

/* Takes the name out of the list; the option goes with the last one. */
static void drop_from_list(struct tarn_format__draft *d, const char *key, struct tarn_slice name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf left = {0};
    for (size_t i = 0; i < d->option_count; i++) {
        struct tarn_slice names = d->options[i].value, each;
        if (!tarn_slice_is(d->options[i].key, key) || names.size == 0)
            continue;
        while (tarn_format__next_name(&names, &each))
            if (!tarn_slice_equal(each, name))
                tarn_buf_printf(&left, "%s%.*s", left.size == 0 ? "" : ",", TARN_SLICE_ARG(each));
        d->options[i].value = tarn_arena_copy(d->arena, tarn_buf_slice(&left));
        if (left.size == 0)
            remove_option(d, d->options[i].key);
        return;
    }
}

void tarn_format__add_to_list(struct tarn_format__draft *d, const char *key, struct tarn_slice name)
{
    struct tarn_slice old_key = tarn_slice_str("blob.stored-descriptor-fields"), names = {0};
    for (size_t i = 0; i < d->option_count; i++)
        if (tarn_slice_is(d->options[i].key, key))
            names = d->options[i].value;
    for (size_t i = 0; names.size == 0 && i < d->option_count; i++) {
        if (strcmp(key, "blob-descriptor-field") == 0 &&
            tarn_slice_equal(d->options[i].key, old_key)) {
            names = d->options[i].value; /* what the option was called before */
            remove_option(d, old_key);
        }
    }
    put_option(d, tarn_slice_str(key),
               tarn_slice_str(tarn_arena_printf(d->arena, "%.*s%s%.*s", TARN_SLICE_ARG(names),
                                                names.size == 0 ? "" : ",", TARN_SLICE_ARG(name))));
}

void tarn_format__drop_from_options(struct tarn_format__draft *d, const struct tarn_field *field)
{
    bool blob = tarn_format__is_blob(field->type);
    for (size_t i = 0; blob && i < TARN_COUNT_OF(blob_lists); i++)
        drop_from_list(d, blob_lists[i], field->name);
    if (field->type->id == TARN_TYPE_VECTOR) {
        drop_from_list(d, "vector-field", field->name);
        remove_option(d, tarn_slice_str(tarn_arena_printf(d->arena, "field.%.*s.vector-dim",
                                                          TARN_SLICE_ARG(field->name))));
    }
    bool map = field->type->id == TARN_TYPE_MAP && !blob;
    for (size_t i = 0; map && i < TARN_COUNT_OF(map_options); i++)
        remove_option(
            d, tarn_slice_str(tarn_arena_printf(d->arena, "fields.%.*s.%s",
                                                TARN_SLICE_ARG(field->name), map_options[i])));
}

bool tarn_format__is_indexed(const struct tarn_format__draft *d, struct tarn_slice name)
{
    for (size_t i = 0; i < d->old->option_count; i++) {
        struct tarn_pair option = d->old->options[i];
        if (tarn_slice_starts_with(option.key, tarn_slice_str("pk-")) &&
            ends_with(option.key, ".index.columns") && tarn_format__names_have(option.value, name))
            return true;
    }
    return false;
}

static struct tarn_status *no_column(struct tarn_slice key, struct tarn_slice column)
{
    return tarn_status_new(TARN_SCHEMA_INVALID,
                           "option %.*s: there is no column \"%.*s\"; change or reset the option",
                           TARN_SLICE_ARG(key), TARN_SLICE_ARG(column));
}

static struct tarn_status *check_names(const struct tarn_schema *s, struct tarn_slice key,
                                       struct tarn_slice names)
{
    struct tarn_slice each;
    while (tarn_format__next_name(&names, &each))
        if (tarn_schema_find(s, each) < 0 &&
            tarn_schema_find(s, tarn_slice_of(each.data, bare_size(each))) < 0)
            return no_column(key, each);
    return TARN_OK;
}

struct tarn_status *tarn_format__check_named_columns(const struct tarn_schema *s)
{
    for (size_t i = 0; i < s->option_count; i++) {
        struct tarn_slice key = s->options[i].key;
        if (is_index_list(key) || tarn_slice_is(key, "record-level.time-field") ||
            tarn_slice_is(key, "upsert-key") || tarn_slice_is(key, "vector-field"))
            TARN_TRY(check_names(s, key, s->options[i].value));
        if (is_group(key))
            TARN_TRY(check_names(s, key, s->options[i].value));
        if (!tarn_slice_starts_with(key, fields_prefix) ||
            tarn_slice_is(key, "fields.default-aggregate-function"))
            continue;
        struct tarn_slice rest = after(key, fields_prefix.size);
        const uint8_t *dot = rest.size == 0 ? NULL : memchr(rest.data, '.', rest.size);
        if (dot != NULL && named_size(s->fields, s->field_count, rest) == 0)
            TARN_TRY(check_names(s, key, tarn_slice_of(rest.data, (size_t)(dot - rest.data))));
    }
    return TARN_OK;
}
