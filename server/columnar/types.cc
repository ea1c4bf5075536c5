/* types - Paimon's types as Arrow's, and back. The canonical layouts are listed in columnar.h. */
#include "columnar/internal.h"

#include <arrow/c/bridge.h>

namespace tarn
{

const __int128 kPow10[39] = {
#define P(n) (__int128)n##LL
    P(1),
    P(10),
    P(100),
    P(1000),
    P(10000),
    P(100000),
    P(1000000),
    P(10000000),
    P(100000000),
    P(1000000000),
    P(10000000000),
    P(100000000000),
    P(1000000000000),
    P(10000000000000),
    P(100000000000000),
    P(1000000000000000),
    P(10000000000000000),
    P(100000000000000000),
    P(1000000000000000000),
#define Q(n) (__int128)1000000000000000000LL * n##LL
    Q(10),
    Q(100),
    Q(1000),
    Q(10000),
    Q(100000),
    Q(1000000),
    Q(10000000),
    Q(100000000),
    Q(1000000000),
    Q(10000000000),
    Q(100000000000),
    Q(1000000000000),
    Q(10000000000000),
    Q(100000000000000),
    Q(1000000000000000),
    Q(10000000000000000),
    Q(100000000000000000),
    Q(1000000000000000000),
    Q(1000000000000000000) * 10,
    Q(1000000000000000000) * 100,
#undef P
#undef Q
};

std::string type_text(const struct tarn_type *type)
{
    struct tarn_buf text = {};
    tarn_type_print(type, &text);
    std::string out = string_of(tarn_buf_slice(&text));
    tarn_buf_drop(&text);
    return out;
}

const struct tarn_field *copy_fields(const struct tarn_field *fields, size_t count,
                                     struct tarn_arena *arena)
{
    struct tarn_field *out = (struct tarn_field *)tarn_arena_calloc(arena, count, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        out[i].id = fields[i].id;
        out[i].name = tarn_arena_copy(arena, fields[i].name);
        out[i].type = copy_type(fields[i].type, arena);
    }
    return out;
}

const struct tarn_type *copy_type(const struct tarn_type *type, struct tarn_arena *arena)
{
    if (type == NULL)
        return NULL;
    struct tarn_type *out = (struct tarn_type *)tarn_arena_calloc(arena, 1, sizeof *out);
    *out = *type;
    out->crs = type->crs.data == NULL ? type->crs : tarn_arena_copy(arena, type->crs);
    out->algorithm =
        type->algorithm.data == NULL ? type->algorithm : tarn_arena_copy(arena, type->algorithm);
    out->key = copy_type(type->key, arena);
    out->element = copy_type(type->element, arena);
    out->fields = copy_fields(type->fields, type->field_count, arena);
    return out;
}

bool ticks_from_time(int64_t ms, int32_t ns, int precision, int64_t *out)
{
    if (precision <= 3) {
        *out = ms;
        return true;
    }
    int64_t per_ms = precision <= 6 ? 1000 : 1000000;
    int64_t part = precision <= 6 ? ns / 1000 : ns;
    if (ms < 0 &&
        part > 0) { /* towards zero first, so that the smallest values don't overflow on the way */
        ms += 1;
        part -= per_ms;
    }
    return !__builtin_mul_overflow(ms, per_ms, out) && !__builtin_add_overflow(*out, part, out);
}

void time_from_ticks(int64_t ticks, int precision, int64_t *ms, int32_t *ns)
{
    int64_t per_ms = precision <= 3 ? 1 : precision <= 6 ? 1000 : 1000000;
    *ms = floor_div(ticks, per_ms);
    *ns = (int32_t)(floor_mod(ticks, per_ms) * (1000000 / per_ms));
}

static arrow::TimeUnit::type unit_of(int precision)
{
    return precision <= 3   ? arrow::TimeUnit::MILLI
           : precision <= 6 ? arrow::TimeUnit::MICRO
                            : arrow::TimeUnit::NANO;
}

static TypePtr struct_type(const struct tarn_field *fields, size_t count)
{
    arrow::FieldVector children;
    for (size_t i = 0; i < count; i++)
        children.push_back(arrow::field(string_of(fields[i].name), arrow_type(fields[i].type),
                                        fields[i].type->nullable));
    return arrow::struct_(std::move(children));
}

TypePtr arrow_type(const struct tarn_type *type)
{
    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        return arrow::utf8();
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
    case TARN_TYPE_BLOB:
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY:
        return arrow::binary();
    case TARN_TYPE_BOOLEAN:
        return arrow::boolean();
    case TARN_TYPE_TINYINT:
        return arrow::int8();
    case TARN_TYPE_SMALLINT:
        return arrow::int16();
    case TARN_TYPE_INT:
        return arrow::int32();
    case TARN_TYPE_BIGINT:
        return arrow::int64();
    case TARN_TYPE_FLOAT:
        return arrow::float32();
    case TARN_TYPE_DOUBLE:
        return arrow::float64();
    case TARN_TYPE_DATE:
        return arrow::date32();
    case TARN_TYPE_TIME:
        return arrow::time32(arrow::TimeUnit::MILLI);
    case TARN_TYPE_DECIMAL:
        return arrow::decimal128(type->precision, type->scale);
    case TARN_TYPE_TIMESTAMP:
        return arrow::timestamp(unit_of(type->precision));
    case TARN_TYPE_TIMESTAMP_LTZ:
        return arrow::timestamp(unit_of(type->precision), "UTC");
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_VECTOR:
        return arrow::list(
            arrow::field("element", arrow_type(type->element), type->element->nullable));
    case TARN_TYPE_MAP:
        return std::make_shared<arrow::MapType>(
            arrow::field("key", arrow_type(type->key), false),
            arrow::field("value", arrow_type(type->element), type->element->nullable));
    case TARN_TYPE_MULTISET:
        return std::make_shared<arrow::MapType>(
            arrow::field("key", arrow_type(type->element), false),
            arrow::field("value", arrow::int32(), false));
    case TARN_TYPE_ROW:
        return struct_type(type->fields, type->field_count);
    case TARN_TYPE_VARIANT:
        return arrow::struct_({arrow::field("value", arrow::binary(), false),
                               arrow::field("metadata", arrow::binary(), false)});
    }
    fail(TARN_UNSUPPORTED_FEATURE, "type %d has no columnar layout", (int)type->id);
}

SchemaPtr arrow_schema(const struct tarn_field *fields, size_t count)
{
    arrow::FieldVector columns;
    for (size_t i = 0; i < count; i++)
        columns.push_back(arrow::field(string_of(fields[i].name), arrow_type(fields[i].type),
                                       fields[i].type->nullable));
    return arrow::schema(std::move(columns));
}

/* --- inference: what a table should have to hold a foreign file's column --- */

static struct tarn_type *plain(struct tarn_arena *arena, enum tarn_type_id id, bool nullable)
{
    struct tarn_type *t = (struct tarn_type *)tarn_arena_calloc(arena, 1, sizeof *t);
    t->id = id;
    t->nullable = nullable;
    return t;
}
static const struct tarn_type *sized(struct tarn_arena *arena, enum tarn_type_id id, bool nullable,
                                     int32_t length)
{
    struct tarn_type *t = plain(arena, id, nullable);
    t->length = length;
    return t;
}
static const struct tarn_type *precise(struct tarn_arena *arena, enum tarn_type_id id,
                                       bool nullable, int precision, int scale)
{
    struct tarn_type *t = plain(arena, id, nullable);
    t->precision = precision;
    t->scale = scale;
    return t;
}

static const struct tarn_type *infer_nested(const arrow::DataType &type, bool nullable,
                                            struct tarn_arena *arena, int depth)
{
    if (type.id() == arrow::Type::STRUCT) {
        struct tarn_type *t = plain(arena, TARN_TYPE_ROW, nullable);
        struct tarn_field *fields = (struct tarn_field *)tarn_arena_calloc(
            arena, (size_t)type.num_fields(), sizeof *fields);
        for (int i = 0; i < type.num_fields(); i++) {
            const arrow::Field &f = *type.field(i);
            fields[i].name = tarn_arena_copy(arena, slice_of(f.name()));
            fields[i].type = infer_type(*f.type(), f.nullable(), arena, depth + 1);
        }
        t->fields = fields;
        t->field_count = (size_t)type.num_fields();
        return t;
    }
    if (type.id() == arrow::Type::MAP) {
        const arrow::MapType &map = static_cast<const arrow::MapType &>(type);
        struct tarn_type *t = plain(arena, TARN_TYPE_MAP, nullable);
        t->key = infer_type(*map.key_type(), false, arena, depth + 1);
        t->element = infer_type(*map.item_type(), map.item_field()->nullable(), arena, depth + 1);
        return t;
    }
    struct tarn_type *t = plain(arena, TARN_TYPE_ARRAY, nullable);
    t->element = infer_type(*type.field(0)->type(), type.field(0)->nullable(), arena, depth + 1);
    return t;
}

const struct tarn_type *infer_type(const arrow::DataType &type, bool nullable,
                                   struct tarn_arena *arena, int depth)
{
    using T = arrow::Type;
    if (depth > TARN_TYPE_DEPTH_MAX)
        fail(TARN_UNSUPPORTED_FEATURE, "types are nested more than %d deep", TARN_TYPE_DEPTH_MAX);
    switch (type.id()) {
    case T::STRING:
    case T::LARGE_STRING:
    case T::STRING_VIEW:
        return sized(arena, TARN_TYPE_VARCHAR, nullable, TARN_TYPE_LENGTH_MAX);
    case T::BINARY:
    case T::LARGE_BINARY:
    case T::BINARY_VIEW:
        return sized(arena, TARN_TYPE_VARBINARY, nullable, TARN_TYPE_LENGTH_MAX);
    case T::FIXED_SIZE_BINARY:
        return sized(
            arena, TARN_TYPE_BINARY, nullable,
            std::max(1, static_cast<const arrow::FixedSizeBinaryType &>(type).byte_width()));
    case T::BOOL:
        return plain(arena, TARN_TYPE_BOOLEAN, nullable);
    case T::INT8:
        return plain(arena, TARN_TYPE_TINYINT, nullable);
    case T::INT16:
    case T::UINT8:
        return plain(arena, TARN_TYPE_SMALLINT, nullable);
    case T::INT32:
    case T::UINT16:
        return plain(arena, TARN_TYPE_INT, nullable);
    case T::INT64:
    case T::UINT32:
        return plain(arena, TARN_TYPE_BIGINT, nullable);
    case T::UINT64:
        return precise(arena, TARN_TYPE_DECIMAL, nullable, 20, 0);
    case T::FLOAT:
        return plain(arena, TARN_TYPE_FLOAT, nullable);
    case T::DOUBLE:
        return plain(arena, TARN_TYPE_DOUBLE, nullable);
    case T::DATE32:
    case T::DATE64:
        return plain(arena, TARN_TYPE_DATE, nullable);
    case T::TIME32:
    case T::TIME64:
        return precise(arena, TARN_TYPE_TIME, nullable, 3, 0);
    case T::DECIMAL32:
    case T::DECIMAL64:
    case T::DECIMAL128:
    case T::DECIMAL256: {
        const arrow::DecimalType &d = static_cast<const arrow::DecimalType &>(type);
        if (d.precision() > 38 || d.scale() < 0 || d.scale() > d.precision())
            break;
        return precise(arena, TARN_TYPE_DECIMAL, nullable, d.precision(), d.scale());
    }
    case T::TIMESTAMP: {
        const arrow::TimestampType &t = static_cast<const arrow::TimestampType &>(type);
        int precision = t.unit() == arrow::TimeUnit::SECOND  ? 0
                        : t.unit() == arrow::TimeUnit::MILLI ? 3
                        : t.unit() == arrow::TimeUnit::MICRO ? 6
                                                             : 9;
        return precise(arena, t.timezone().empty() ? TARN_TYPE_TIMESTAMP : TARN_TYPE_TIMESTAMP_LTZ,
                       nullable, precision, 0);
    }
    case T::DICTIONARY:
        return infer_type(*static_cast<const arrow::DictionaryType &>(type).value_type(), nullable,
                          arena, depth + 1);
    case T::EXTENSION:
        return infer_type(*static_cast<const arrow::ExtensionType &>(type).storage_type(), nullable,
                          arena, depth + 1);
    case T::STRUCT:
    case T::MAP:
    case T::LIST:
    case T::LARGE_LIST:
    case T::FIXED_SIZE_LIST:
        return infer_nested(type, nullable, arena, depth);
    default:
        break;
    }
    fail(TARN_UNSUPPORTED_FEATURE, "no column type holds Arrow's %s", type.ToString().c_str());
}

} // namespace tarn

struct tarn_status *tarn_arrow_schema(const struct tarn_field *fields, size_t count,
                                      struct ArrowSchema *out)
{
    return tarn::guarded(TARN_INTERNAL, "schema", [&] {
        tarn::must(arrow::ExportSchema(*tarn::arrow_schema(fields, count), out), TARN_INTERNAL,
                   "schema");
    });
}
