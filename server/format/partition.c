#include "format/partition.h"

#include "format/value_internal.h"

/* ---- escaping */

void tarn_path_escape(struct tarn_slice text, struct tarn_buf *out)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c < 0x20 || c == 0x7f || (c < 0x80 && strchr("\"#%'*/:=?\\{}[]^", c) != NULL))
            tarn_buf_printf(out, "%%%02X", c);
        else
            tarn_buf_add_byte(out, c);
    }
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void tarn_path_unescape(struct tarn_slice text, struct tarn_buf *out)
{
    for (size_t i = 0; i < text.size; i++) {
        int high = i + 2 < text.size ? hex_digit(text.data[i + 1]) : -1;
        int low = i + 2 < text.size ? hex_digit(text.data[i + 2]) : -1;
        if (text.data[i] != '%' || high < 0 || low < 0) {
            tarn_buf_add_byte(out, text.data[i]);
            continue;
        }
        int unit = high << 4 | low; /* a UTF-16 code unit, here below 0x100 */
        if (unit >= 0x80) {
            tarn_buf_add_byte(out, (uint8_t)(0xc0 | unit >> 6));
            unit = 0x80 | (unit & 0x3f);
        }
        tarn_buf_add_byte(out, (uint8_t)unit);
        i += 2;
    }
}

/* ---- values as directory names */

/* Java's Character.isWhitespace: no-break spaces are not among them. */
static bool is_java_blank(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a && c != 0x2007) || c == 0x2028 || c == 0x2029 ||
           c == 0x205f || c == 0x3000;
}

static bool is_blank(struct tarn_slice text)
{
    while (text.size > 0) {
        uint32_t code;
        size_t size = tarn_format__utf8_next(text, &code);
        if (!is_java_blank(code))
            return false;
        text = tarn_slice_of(text.data + size, text.size - size);
    }
    return true;
}

/* LocalDateTime.toString: no seconds where they are zero, the fraction in groups of three. */
static void print_iso(const struct tarn_value *value, struct tarn_buf *out)
{
    int64_t days, nanos;

    tarn_format__split_timestamp(value->time.ms, value->time.ns, &days, &nanos);
    int64_t fraction = nanos % 1000000000;
    int digits = fraction == 0 ? 0 : fraction % 1000000 == 0 ? 3 : fraction % 1000 == 0 ? 6 : 9;
    tarn_format__print_date(days, out);
    tarn_buf_add_byte(out, 'T');
    tarn_format__print_clock(nanos, digits, out);
    if (nanos % (INT64_C(60) * 1000000000) == 0)
        out->size -= 3; /* ":00" */
}

/* Paimon's cast of a timestamp to a string: as many digits as the precision, more where needed. */
static void print_sql_timestamp(const struct tarn_type *type, const struct tarn_value *value,
                                struct tarn_buf *out)
{
    int64_t days, nanos;

    tarn_format__split_timestamp(value->time.ms, value->time.ns, &days, &nanos);
    tarn_format__print_date(days, out);
    tarn_buf_add_byte(out, ' ');
    tarn_format__print_clock(nanos, type->precision, out);
}

/* Paimon's cast of a time: up to `precision` digits, one at least, none behind the last that counts. */
static void print_sql_time(const struct tarn_type *type, const struct tarn_value *value,
                           struct tarn_buf *out)
{
    int64_t ms = tarn_format__floor_mod(value->integer, TARN_MS_PER_DAY);
    int64_t rest = ms % 1000;

    tarn_format__print_clock((ms - rest) * 1000000, 0, out);
    for (int i = 0; i < type->precision; i++) {
        tarn_buf_printf(out, "%s%d", i == 0 ? "." : "", (int)(rest / 100));
        rest = rest % 100 * 10;
        if (rest == 0)
            break;
    }
}

static void print_name(const struct tarn_type *type, const struct tarn_value *value, bool legacy,
                       struct tarn_buf *out)
{
    switch (type->id) {
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        if (legacy)
            tarn_buf_printf(out, "%" PRId64, value->integer);
        else if (type->id == TARN_TYPE_DATE)
            tarn_format__print_date(value->integer, out);
        else
            print_sql_time(type, value, out);
        return;
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        if (legacy)
            print_iso(value, out);
        else
            print_sql_timestamp(type, value, out);
        return;
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        tarn_format__print_java_real(value->real, type->id == TARN_TYPE_FLOAT, out);
        return;
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        tarn_buf_add_slice(out, value->bytes);
        return;
    default:
        tarn_value_print(type, value, out);
        return;
    }
}

/* ---- partitions */

const struct tarn_type **tarn_partition_types(const struct tarn_schema *schema,
                                              struct tarn_arena *arena)
{
    const struct tarn_type **types =
        tarn_arena_calloc(arena, schema->partition_key_count + 1, sizeof *types);

    for (size_t i = 0; i < schema->partition_key_count; i++) {
        int column = tarn_schema_find(schema, schema->partition_keys[i]);
        tarn_assert(column >= 0); /* decoding a schema checks its keys */
        types[i] = schema->fields[column].type;
    }
    return types;
}

static struct tarn_status *read_partition(const struct tarn_schema *schema,
                                          struct tarn_slice partition, struct tarn_arena *arena,
                                          const struct tarn_type ***types,
                                          struct tarn_value **values)
{
    *types = tarn_partition_types(schema, arena);
    *values = tarn_arena_calloc(arena, schema->partition_key_count + 1, sizeof **values);
    struct tarn_status *s =
        tarn_row_deserialize(partition, *types, schema->partition_key_count, *values);
    return s == NULL ? TARN_OK : tarn_status_wrap(s, "partition");
}

struct tarn_status *tarn_partition_path(const struct tarn_schema *schema,
                                        const struct tarn_options *options,
                                        struct tarn_slice partition, struct tarn_buf *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf name = {0};
    const struct tarn_type **types;
    struct tarn_value *values;

    TARN_TRY(read_partition(schema, partition, arena, &types, &values));
    for (size_t i = 0; i < schema->partition_key_count; i++) {
        tarn_buf_clear(&name);
        if (!values[i].is_null)
            print_name(types[i], &values[i], options->partition_legacy_name, &name);
        if (is_blank(tarn_buf_slice(&name))) { /* null, '' and ' ' share a folder */
            tarn_buf_clear(&name);
            tarn_buf_add_slice(&name, options->partition_default_name);
        }
        tarn_path_escape(schema->partition_keys[i], out);
        tarn_buf_add_byte(out, '=');
        tarn_path_escape(tarn_buf_slice(&name), out);
        tarn_buf_add_byte(out, '/');
    }
    return TARN_OK;
}

struct tarn_status *tarn_bucket_path(const struct tarn_schema *schema,
                                     const struct tarn_options *options,
                                     struct tarn_slice partition, int32_t bucket,
                                     struct tarn_buf *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    struct tarn_slice dir = options->data_dir;

    TARN_TRY(tarn_partition_path(schema, options, partition, &path));
    while (dir.size > 0 && dir.data[dir.size - 1] == '/')
        dir.size--;
    if (dir.size > 0) {
        tarn_buf_add_slice(out, dir);
        tarn_buf_add_byte(out, '/');
    }
    tarn_buf_add_slice(out, tarn_buf_slice(&path));
    if (bucket == TARN_BUCKET_POSTPONE)
        tarn_buf_add_str(out, "bucket-postpone");
    else
        tarn_buf_printf(out, "bucket-%" PRId32, bucket);
    return TARN_OK;
}

struct tarn_status *tarn_partition_print(const struct tarn_schema *schema,
                                         struct tarn_slice partition, struct tarn_buf *out)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    const struct tarn_type **types;
    struct tarn_value *values;

    TARN_TRY(read_partition(schema, partition, arena, &types, &values));
    for (size_t i = 0; i < schema->partition_key_count; i++) {
        tarn_buf_add_str(out, i > 0 ? "," : "");
        tarn_buf_add_slice(out, schema->partition_keys[i]);
        tarn_buf_add_byte(out, '=');
        tarn_value_print(types[i], &values[i], out);
    }
    return TARN_OK;
}

struct tarn_status *tarn_index_file_path(const struct tarn_schema *schema,
                                         const struct tarn_options *options,
                                         const struct tarn_index_file *f, struct tarn_arena *arena,
                                         struct tarn_slice *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    if (f->external_path.data != NULL) {
        *out = tarn_arena_copy(arena, f->external_path);
        return TARN_OK;
    }
    if (options->index_beside_data)
        TARN_TRY(tarn_bucket_path(schema, options, f->partition, f->bucket, &path));
    else
        tarn_buf_add_str(&path, "index");
    tarn_buf_add_byte(&path, '/');
    tarn_buf_add_slice(&path, f->name);
    *out = tarn_arena_copy(arena, tarn_buf_slice(&path));
    return TARN_OK;
}
