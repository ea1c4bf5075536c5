#include "hms/internal.h"

#include <ctype.h>

/* A table of ours as Paimon's HiveCatalog (2.0, table.type = external) makes it, and the three marks of ours. test/interop/hms.py holds one
 * against the other. */

#define COMMENT_LENGTH_MAX 256 /* characters; the metastore's column is no longer */
#define HIVE_CHAR_MAX 255
#define HIVE_VARCHAR_MAX 65535
#define PARAMETERS_OWN_MAX 10 /* beside the table's options */

/* --- names, locations --- */

bool tarn_hms__name_fits(struct tarn_slice name)
{
    bool fits = name.size > 0 && name.size <= 128;
    for (size_t i = 0; i < name.size && fits; i++)
        fits = islower(name.data[i]) || isdigit(name.data[i]) || name.data[i] == '_';
    return fits;
}

struct tarn_slice tarn_hms__location(struct tarn_arena *arena, struct tarn_slice uri)
{
    struct tarn_slice file = tarn_slice_str("file:///");
    while (uri.size > 1 && uri.data[uri.size - 1] == '/')
        uri.size--;
    if (!tarn_slice_starts_with(uri, file))
        return uri;
    return tarn_slice_str(tarn_arena_printf(arena, "file:/%.*s", (int)(uri.size - file.size),
                                            (const char *)uri.data + file.size));
}

/* --- types --- */

static bool print_type(const struct tarn_type *type, struct tarn_buf *out);

static bool print_around(const char *word, const struct tarn_type *of, const char *end,
                         struct tarn_buf *out)
{
    tarn_buf_add_str(out, word);
    bool fine = print_type(of, out);
    tarn_buf_add_str(out, end);
    return fine;
}

static bool print_map(const struct tarn_type *type, struct tarn_buf *out)
{
    tarn_buf_add_str(out, "map<");
    bool fine = print_type(type->key, out);
    tarn_buf_add_byte(out, ',');
    return print_type(type->element, out) && (tarn_buf_add_byte(out, '>'), fine);
}

static bool print_struct(const struct tarn_type *type, struct tarn_buf *out)
{
    bool fine = true;
    tarn_buf_add_str(out, "struct<");
    for (size_t i = 0; i < type->field_count && fine; i++) {
        tarn_buf_printf(out, "%s%.*s:", i == 0 ? "" : ",", TARN_SLICE_ARG(type->fields[i].name));
        fine = print_type(type->fields[i].type, out);
    }
    tarn_buf_add_byte(out, '>');
    return fine;
}

static void print_length(const char *word, const struct tarn_type *type, int32_t max,
                         struct tarn_buf *out)
{
    if (type->length > max)
        tarn_buf_add_str(out, "string");
    else
        tarn_buf_printf(out, "%s(%d)", word, type->length);
}

/* Those that have one word whatever they hold; NULL: it isn't one. */
static const char *plain_type(enum tarn_type_id id)
{
    switch (id) {
    case TARN_TYPE_BOOLEAN:
        return "boolean";
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
    case TARN_TYPE_BLOB:
        return "binary";
    case TARN_TYPE_TINYINT:
        return "tinyint";
    case TARN_TYPE_SMALLINT:
        return "smallint";
    case TARN_TYPE_INT:
        return "int";
    case TARN_TYPE_BIGINT:
        return "bigint";
    case TARN_TYPE_FLOAT:
        return "float";
    case TARN_TYPE_DOUBLE:
        return "double";
    case TARN_TYPE_DATE:
        return "date";
    case TARN_TYPE_TIME:
        return "string";
    case TARN_TYPE_TIMESTAMP:
        return "timestamp";
    case TARN_TYPE_TIMESTAMP_LTZ:
        return "timestamp with local time zone";
    case TARN_TYPE_VARIANT:
        return "struct<value:binary,metadata:binary>";
    default:
        return NULL;
    }
}

/* False: Hive has none for it. */
static bool print_type(const struct tarn_type *type, struct tarn_buf *out)
{
    const char *plain = plain_type(type->id);
    if (plain != NULL) {
        tarn_buf_add_str(out, plain);
        return true;
    }
    switch (type->id) {
    case TARN_TYPE_CHAR:
        print_length("char", type, HIVE_CHAR_MAX, out);
        return true;
    case TARN_TYPE_VARCHAR:
        print_length("varchar", type, HIVE_VARCHAR_MAX, out);
        return true;
    case TARN_TYPE_DECIMAL:
        tarn_buf_printf(out, "decimal(%d,%d)", type->precision, type->scale);
        return true;
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_VECTOR:
        return print_around("array<", type->element, ">", out);
    case TARN_TYPE_MULTISET:
        return print_around("map<", type->element, ",int>", out);
    case TARN_TYPE_MAP:
        return print_map(type, out);
    case TARN_TYPE_ROW:
        return print_struct(type, out);
    default:
        return false;
    }
}

/* --- columns --- */

/* The metastore makes them so. */
static struct tarn_slice lower(struct tarn_arena *arena, struct tarn_slice name)
{
    char *text = tarn_arena_str(arena, name);
    for (char *c = text; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return tarn_slice_of(text, name.size);
}

/* One line, and no more than the metastore keeps. */
static struct tarn_slice short_comment(struct tarn_arena *arena, struct tarn_slice comment)
{
    size_t length = 0, cut = comment.size;
    if (comment.data == NULL)
        return comment;
    char *text = tarn_arena_str(arena, comment);
    for (size_t i = 0; i < comment.size; i++) {
        if (text[i] == '\n' || text[i] == '\r')
            text[i] = ' ';
        length += ((uint8_t)text[i] & 0xc0) != 0x80;
        if (length == COMMENT_LENGTH_MAX - 2 && cut == comment.size)
            cut = i; /* before the character that is one too many beside the dots */
    }
    if (length > COMMENT_LENGTH_MAX)
        return tarn_slice_str(tarn_arena_printf(arena, "%.*s...", (int)cut, text));
    return tarn_slice_of(text, comment.size);
}

static struct tarn_status *shape_column(struct tarn_arena *arena, const struct tarn_field *field,
                                        struct tarn_hms__column *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf type = {0};
    if (!print_type(field->type, &type)) {
        tarn_buf_clear(&type);
        tarn_type_print(field->type, &type);
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE, "Hive has no type for column %.*s %s",
                               TARN_SLICE_ARG(field->name), tarn_buf_cstr(&type));
    }
    *out = (struct tarn_hms__column){
        .name = lower(arena, field->name),
        .type = tarn_arena_copy(arena, tarn_buf_slice(&type)),
        .comment = field->description.data == NULL ? field->description
                                                   : tarn_arena_copy(arena, field->description),
    };
    return TARN_OK;
}

static bool is_key(const struct tarn_schema *schema, struct tarn_slice name)
{
    for (size_t i = 0; i < schema->partition_key_count; i++)
        if (tarn_slice_equal(schema->partition_keys[i], name))
            return true;
    return false;
}

static struct tarn_status *check_distinct(const struct tarn_hms__table *table)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    for (size_t i = 0; i < table->column_count + table->key_count; i++) {
        const struct tarn_hms__column *column =
            i < table->column_count ? &table->columns[i] : &table->keys[i - table->column_count];
        if (tarn_map_set(seen, column->name, seen) != NULL)
            return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                                   "Hive can't tell two columns apart that are named %.*s",
                                   TARN_SLICE_ARG(column->name));
    }
    return TARN_OK;
}

static bool option_is_true(const struct tarn_schema *schema, const char *key)
{
    bool value = false;
    struct tarn_slice text = tarn_schema_option(schema, key);
    if (text.data != NULL)
        tarn_status_free(tarn_parse_bool(text, &value));
    return value;
}

/* Partitions are columns there, unless the table asks for partitions (metastore.partitioned-table). */
static struct tarn_status *shape_columns(struct tarn_arena *arena, const struct tarn_schema *schema,
                                         struct tarn_hms__table *out)
{
    bool partitioned =
        schema->partition_key_count > 0 && option_is_true(schema, "metastore.partitioned-table");
    out->columns = tarn_arena_calloc(arena, schema->field_count + 1, sizeof *out->columns);
    out->keys = tarn_arena_calloc(arena, schema->partition_key_count + 1, sizeof *out->keys);
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct tarn_field *field = &schema->fields[i];
        if (partitioned && is_key(schema, field->name))
            continue;
        struct tarn_hms__column *column = &out->columns[out->column_count++];
        TARN_TRY(shape_column(arena, field, column));
        column->comment = short_comment(arena, column->comment);
    }
    for (size_t i = 0; partitioned && i < schema->partition_key_count; i++) {
        int at = tarn_schema_find(schema, schema->partition_keys[i]);
        if (at >= 0)
            TARN_TRY(shape_column(arena, &schema->fields[at], &out->keys[out->key_count++]));
    }
    return check_distinct(out);
}

/* --- parameters --- */

static void add(struct tarn_hms__table *out, const char *key, struct tarn_slice value)
{
    out->parameters[out->parameter_count++] = (struct tarn_pair){tarn_slice_str(key), value};
}

static struct tarn_slice joined(struct tarn_arena *arena, const struct tarn_slice *names,
                                size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : ",", TARN_SLICE_ARG(names[i]));
    return tarn_arena_copy(arena, tarn_buf_slice(&text));
}

static struct tarn_slice bucket_key(struct tarn_arena *arena, const struct tarn_schema *schema,
                                    const struct tarn_options *options)
{
    struct tarn_slice *names =
        tarn_arena_calloc(arena, options->bucket_key_count + 1, sizeof *names);
    for (size_t i = 0; i < options->bucket_key_count; i++)
        names[i] = schema->fields[options->bucket_key_columns[i]].name;
    return joined(arena, names, options->bucket_key_count);
}

static void shape_parameters(struct tarn_arena *arena, const struct tarn_hms__source *source,
                             struct tarn_hms__table *out)
{
    const struct tarn_schema *schema = source->schema;
    out->parameters = tarn_arena_calloc(arena, schema->option_count + PARAMETERS_OWN_MAX,
                                        sizeof *out->parameters);
    if (schema->primary_key_count > 0)
        add(out, "primary-key", joined(arena, schema->primary_keys, schema->primary_key_count));
    if (schema->partition_key_count > 0)
        add(out, "partition", joined(arena, schema->partition_keys, schema->partition_key_count));
    if (source->options->bucket_key_count > 0)
        add(out, "bucket-key", bucket_key(arena, schema, source->options));
    add(out, "table_type", tarn_slice_str("PAIMON"));
    add(out, "storage_handler", tarn_slice_str("org.apache.paimon.hive.PaimonStorageHandler"));
    add(out, "EXTERNAL", tarn_slice_str("TRUE"));
    if (schema->comment.data != NULL)
        add(out, "comment", schema->comment);
    add(out, HMS_MARK_WAREHOUSE, source->warehouse);
    add(out, HMS_MARK_TABLE, tarn_slice_str(source->uuid));
    size_t fixed = out->parameter_count;
    for (size_t i = 0; i < schema->option_count; i++) {
        struct tarn_pair option = schema->options[i];
        char *key = tarn_arena_str(arena, option.key);
        if (tarn_hms__parameter(out->parameters, fixed, key).data == NULL)
            add(out, key, option.value);
    }
}

/* Of all that is pushed; it stands among the parameters itself, at their end. */
static void add_fingerprint(struct tarn_arena *arena, struct tarn_hms__table *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_hms__put_table(&bytes, out, 0);
    add(out, HMS_MARK_FINGERPRINT,
        tarn_slice_str(
            tarn_arena_printf(arena, "%016" PRIx64, tarn_xxh64(tarn_buf_slice(&bytes), 0))));
}

struct tarn_status *tarn_hms__shape_table(struct tarn_arena *arena,
                                          const struct tarn_hms__source *source,
                                          struct tarn_hms__table *out)
{
    if (!tarn_hms__name_fits(source->name))
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "Hive's names have a-z, 0-9 and _ only, 128 of them at most");
    *out = (struct tarn_hms__table){
        .database = source->database,
        .name = source->name,
        .owner = tarn_slice_str(source->user),
        .kind = tarn_slice_str("EXTERNAL_TABLE"),
        .location = tarn_hms__location(
            arena, tarn_slice_str(tarn_arena_printf(
                       arena, "%.*s/%s", TARN_SLICE_ARG(source->warehouse), source->path))),
        .input_format = tarn_slice_str("org.apache.paimon.hive.mapred.PaimonInputFormat"),
        .output_format = tarn_slice_str("org.apache.paimon.hive.mapred.PaimonOutputFormat"),
        .serde = tarn_slice_str("org.apache.paimon.hive.PaimonSerDe"),
    };
    TARN_TRY(shape_columns(arena, source->schema, out));
    shape_parameters(arena, source, out);
    add_fingerprint(arena, out);
    return TARN_OK;
}

/* --- databases --- */

void tarn_hms__shape_database(struct tarn_arena *arena, const struct tarn_database_info *info,
                              struct tarn_slice warehouse, struct tarn_hms__database *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    *out = (struct tarn_hms__database){
        .name = info->name,
        .comment = info->comment,
        .location = tarn_hms__location(arena, tarn_slice_str(info->uri)),
    };
    out->parameters = tarn_arena_calloc(arena, info->option_count + 2, sizeof *out->parameters);
    for (size_t i = 0; i < info->option_count; i++)
        if (tarn_slice_is(info->options[i].key, "owner"))
            out->owner = info->options[i].value;
        else if (tarn_slice_is(info->options[i].key, "comment") && out->comment.data == NULL)
            out->comment = info->options[i].value;
        else if (!tarn_slice_is(info->options[i].key, "location"))
            out->parameters[out->parameter_count++] = info->options[i];
    out->parameters[out->parameter_count++] =
        (struct tarn_pair){tarn_slice_str(HMS_MARK_WAREHOUSE), warehouse};
    tarn_hms__put_database(&bytes, out);
    out->parameters[out->parameter_count++] =
        (struct tarn_pair){tarn_slice_str(HMS_MARK_FINGERPRINT),
                           tarn_slice_str(tarn_arena_printf(
                               arena, "%016" PRIx64, tarn_xxh64(tarn_buf_slice(&bytes), 0)))};
}

/* --- comparing --- */

bool tarn_hms__is_ours(const struct tarn_pair *parameters, size_t count,
                       struct tarn_slice warehouse)
{
    struct tarn_slice mark = tarn_hms__parameter(parameters, count, HMS_MARK_WAREHOUSE);
    return mark.data != NULL && tarn_slice_equal(mark, warehouse);
}

static bool has_pair(const struct tarn_pair *list, size_t count, const struct tarn_pair *pair)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(list[i].key, pair->key)) /* it may hold any byte */
            return tarn_slice_equal(list[i].value, pair->value);
    return false;
}

/* The first of ours that is missing there, or another; NULL: none. */
static const char *parameters_differ(struct tarn_arena *arena, const struct tarn_pair *want,
                                     size_t want_count, const struct tarn_pair *have,
                                     size_t have_count)
{
    for (size_t i = 0; i < want_count; i++)
        if (!has_pair(have, have_count, &want[i]))
            return tarn_arena_printf(arena, "parameter %.*s", TARN_SLICE_ARG(want[i].key));
    return NULL;
}

static bool columns_equal(const struct tarn_hms__column *a, size_t a_count,
                          const struct tarn_hms__column *b, size_t b_count, bool with_comments)
{
    bool equal = a_count == b_count;
    for (size_t i = 0; i < a_count && equal; i++)
        equal = tarn_slice_equal(a[i].name, b[i].name) && tarn_slice_equal(a[i].type, b[i].type) &&
                (!with_comments || tarn_slice_equal(a[i].comment, b[i].comment));
    return equal;
}

static bool locations_equal(struct tarn_arena *arena, struct tarn_slice a, struct tarn_slice b)
{
    return tarn_slice_equal(tarn_hms__location(arena, a), tarn_hms__location(arena, b));
}

bool tarn_hms__must_recreate(const struct tarn_hms__table *want, const struct tarn_hms__table *have)
{
    return !tarn_slice_equal(
               tarn_hms__parameter(want->parameters, want->parameter_count, HMS_MARK_TABLE),
               tarn_hms__parameter(have->parameters, have->parameter_count, HMS_MARK_TABLE)) ||
           !columns_equal(want->keys, want->key_count, have->keys, have->key_count, false);
}

const char *tarn_hms__table_differs(struct tarn_arena *arena, const struct tarn_hms__table *want,
                                    const struct tarn_hms__table *have)
{
    if (!columns_equal(want->columns, want->column_count, have->columns, have->column_count, true))
        return "columns";
    if (!columns_equal(want->keys, want->key_count, have->keys, have->key_count, true))
        return "partition columns";
    if (!locations_equal(arena, want->location, have->location))
        return "location";
    if (!tarn_slice_equal(want->kind, have->kind))
        return "type";
    if (!tarn_slice_equal(want->input_format, have->input_format) ||
        !tarn_slice_equal(want->output_format, have->output_format) ||
        !tarn_slice_equal(want->serde, have->serde))
        return "format";
    return parameters_differ(arena, want->parameters, want->parameter_count, have->parameters,
                             have->parameter_count);
}

const char *tarn_hms__database_differs(struct tarn_arena *arena,
                                       const struct tarn_hms__database *want,
                                       const struct tarn_hms__database *have)
{
    if (!tarn_slice_equal(want->comment, have->comment))
        return "comment";
    if (!locations_equal(arena, want->location, have->location))
        return "location";
    if (want->owner.data != NULL && !tarn_slice_equal(want->owner, have->owner))
        return "owner";
    return parameters_differ(arena, want->parameters, want->parameter_count, have->parameters,
                             have->parameter_count);
}

static bool is_hives_own(struct tarn_slice key)
{
    static const char *const keys[] = {
        "transient_lastDdlTime",
        "last_modified_by",
        "last_modified_time",
        "numFiles",
        "numRows",
        "numPartitions",
        "totalSize",
        "rawDataSize",
        "COLUMN_STATS_ACCURATE",
        "bucketing_version",
        "TRANSLATED_TO_EXTERNAL",
    };
    for (size_t i = 0; i < TARN_COUNT_OF(keys); i++)
        if (tarn_slice_is(key, keys[i]))
            return true;
    return false;
}

void tarn_hms__keep_parameters(struct tarn_arena *arena, struct tarn_hms__table *want,
                               const struct tarn_hms__table *have)
{
    struct tarn_pair *all =
        tarn_arena_calloc(arena, want->parameter_count + have->parameter_count, sizeof *all);
    size_t count = want->parameter_count;
    memcpy(all, want->parameters, count * sizeof *all);
    for (size_t i = 0; i < have->parameter_count; i++)
        if (is_hives_own(have->parameters[i].key))
            all[count++] = have->parameters[i];
    want->parameters = all;
    want->parameter_count = count;
}
