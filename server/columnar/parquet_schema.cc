/*
 * parquet_schema - the Parquet schema of a table's columns, as Paimon writes it.
 *
 * Source   docs/format.md "Parquet": physical and logical types, names of groups, ids of nested parts.
 */
#include "columnar/parquet_schema.h"

namespace tarn
{

using namespace parquet;
using namespace parquet::schema;

namespace
{

NodePtr primitive(const std::string &name, Repetition::type repetition,
                  std::shared_ptr<const LogicalType> logical, Type::type physical, int32_t id,
                  int length = -1)
{
    return PrimitiveNode::Make(name, repetition, std::move(logical), physical, length, id);
}

NodePtr decimal(const std::string &name, Repetition::type repetition, const struct tarn_type *type,
                int32_t id)
{
    std::shared_ptr<const LogicalType> logical = LogicalType::Decimal(type->precision, type->scale);
    if (type->precision <= 9)
        return primitive(name, repetition, logical, Type::INT32, id);
    if (type->precision <= 18)
        return primitive(name, repetition, logical, Type::INT64, id);
    return primitive(name, repetition, logical, Type::FIXED_LEN_BYTE_ARRAY, id,
                     ::arrow::DecimalType::DecimalSize(type->precision));
}

NodePtr timestamp(const std::string &name, Repetition::type repetition,
                  const struct tarn_type *type, int32_t id)
{
    if (type->precision > 6)
        return primitive(name, repetition, LogicalType::None(), Type::INT96, id);
    bool utc = type->id == TARN_TYPE_TIMESTAMP_LTZ;
    LogicalType::TimeUnit::unit unit =
        type->precision <= 3 ? LogicalType::TimeUnit::MILLIS : LogicalType::TimeUnit::MICROS;
    return primitive(name, repetition, LogicalType::Timestamp(utc, unit, false, true), Type::INT64,
                     id);
}

NodePtr node(const std::string &name, const struct tarn_type *type, bool nullable, int32_t id,
             int32_t around, int depth);

NodePtr list(const std::string &name, Repetition::type repetition, const struct tarn_type *type,
             int32_t id, int32_t around, int depth)
{
    NodePtr element = node("element", type->element, type->element->nullable,
                           element_id(around, depth + 1), around, depth + 1);
    NodePtr repeated = GroupNode::Make("list", Repetition::REPEATED, {element});
    return GroupNode::Make(name, repetition, {repeated}, LogicalType::List(), id);
}

NodePtr map(const std::string &name, Repetition::type repetition, const struct tarn_type *type,
            int32_t id, int32_t around, int depth)
{
    bool multiset = type->id == TARN_TYPE_MULTISET;
    NodePtr key = node("key", multiset ? type->element : type->key, false,
                       key_id(around, depth + 1), around, depth + 1);
    NodePtr value = multiset ? primitive("value", Repetition::REQUIRED, LogicalType::None(),
                                         Type::INT32, element_id(around, depth + 1))
                             : node("value", type->element, type->element->nullable,
                                    element_id(around, depth + 1), around, depth + 1);
    NodePtr repeated = GroupNode::Make("key_value", Repetition::REPEATED, {key, value});
    return GroupNode::Make(name, repetition, {repeated}, LogicalType::Map(), id);
}

NodePtr row(const std::string &name, Repetition::type repetition, const struct tarn_type *type,
            int32_t id)
{
    NodeVector children;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct tarn_field *f = &type->fields[i];
        children.push_back(node(string_of(f->name), f->type, f->type->nullable, f->id, f->id, 0));
    }
    return GroupNode::Make(name, repetition, children, std::shared_ptr<const LogicalType>(), id);
}

NodePtr node(const std::string &name, const struct tarn_type *type, bool nullable, int32_t id,
             int32_t around, int depth)
{
    Repetition::type rep = nullable ? Repetition::OPTIONAL : Repetition::REQUIRED;
    switch (type->id) {
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
        return primitive(name, rep, LogicalType::String(), Type::BYTE_ARRAY, id);
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
    case TARN_TYPE_BLOB:
        return primitive(name, rep, LogicalType::None(), Type::BYTE_ARRAY, id);
    case TARN_TYPE_GEOMETRY:
    case TARN_TYPE_GEOGRAPHY:
        fail(TARN_UNSUPPORTED_FEATURE, "column %s: %s is not written by this version", name.c_str(),
             type_text(type).c_str());
    case TARN_TYPE_BOOLEAN:
        return primitive(name, rep, LogicalType::None(), Type::BOOLEAN, id);
    case TARN_TYPE_TINYINT:
        return primitive(name, rep, LogicalType::Int(8, true), Type::INT32, id);
    case TARN_TYPE_SMALLINT:
        return primitive(name, rep, LogicalType::Int(16, true), Type::INT32, id);
    case TARN_TYPE_INT:
        return primitive(name, rep, LogicalType::None(), Type::INT32, id);
    case TARN_TYPE_BIGINT:
        return primitive(name, rep, LogicalType::None(), Type::INT64, id);
    case TARN_TYPE_FLOAT:
        return primitive(name, rep, LogicalType::None(), Type::FLOAT, id);
    case TARN_TYPE_DOUBLE:
        return primitive(name, rep, LogicalType::None(), Type::DOUBLE, id);
    case TARN_TYPE_DATE:
        return primitive(name, rep, LogicalType::Date(), Type::INT32, id);
    case TARN_TYPE_TIME:
        return primitive(name, rep, LogicalType::Time(true, LogicalType::TimeUnit::MILLIS),
                         Type::INT32, id);
    case TARN_TYPE_DECIMAL:
        return decimal(name, rep, type, id);
    case TARN_TYPE_TIMESTAMP:
    case TARN_TYPE_TIMESTAMP_LTZ:
        return timestamp(name, rep, type, id);
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_VECTOR:
        return list(name, rep, type, id, around, depth);
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
        return map(name, rep, type, id, around, depth);
    case TARN_TYPE_ROW:
        return row(name, rep, type, id);
    case TARN_TYPE_VARIANT:
        return GroupNode::Make(
            name, rep,
            {primitive("value", Repetition::REQUIRED, LogicalType::None(), Type::BYTE_ARRAY, 0),
             primitive("metadata", Repetition::REQUIRED, LogicalType::None(), Type::BYTE_ARRAY, 1)},
            std::shared_ptr<const LogicalType>(), id);
    }
    fail(TARN_UNSUPPORTED_FEATURE, "column %s has a type without a Parquet form", name.c_str());
}

} // namespace

std::shared_ptr<GroupNode> parquet_schema(const struct tarn_column_write *columns, size_t count)
{
    NodeVector nodes;
    for (size_t i = 0; i < count; i++)
        nodes.push_back(node(string_of(columns[i].name), columns[i].type, columns[i].type->nullable,
                             columns[i].field_id, columns[i].field_id, 0));
    return std::static_pointer_cast<GroupNode>(
        GroupNode::Make("paimon_schema", Repetition::REQUIRED, nodes));
}

} // namespace tarn
