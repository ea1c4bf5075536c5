/*
 * json - JSON texts of values and rows.
 *
 * RapidJSON reads (iteratively, so depth costs no stack); its events become a flat list of nodes in
 * which a container knows how many nodes it spans. Numbers stay text, so decimals stay exact.
 */
#include "columnar/text.h"

#include <algorithm>
#include <unordered_set>

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

namespace tarn
{

namespace
{

const int kDepthMax = TARN_TYPE_DEPTH_MAX + 2;
const size_t kNodesMax = 8 << 20; /* of one record */

enum class Kind : uint8_t { Null, True, False, Number, String, Object, Array };
struct Node {
    Kind kind;
    uint32_t span;        /* nodes, with this one */
    uint32_t begin, size; /* of the text; Object and Array: size counts members or items */
};

class Tape
{
  public:
    std::vector<Node> nodes;
    std::string text;
    std::vector<uint32_t> open;
    const char *refused = NULL;

    void clear()
    {
        nodes.clear();
        text.clear();
        open.clear();
        refused = NULL;
    }
    std::string_view view(const Node &n) const
    {
        return std::string_view(text).substr(n.begin, n.size);
    }

    bool leaf(Kind kind)
    {
        nodes.push_back({kind, 1, 0, 0});
        return nodes.size() <= kNodesMax || refuse("the value has too many parts");
    }
    bool textual(Kind kind, const char *s, size_t size)
    {
        nodes.push_back({kind, 1, (uint32_t)text.size(), (uint32_t)size});
        text.append(s, size);
        return nodes.size() <= kNodesMax || refuse("the value has too many parts");
    }
    bool begin(Kind kind)
    {
        if (open.size() >= (size_t)kDepthMax)
            return refuse("values are nested too deeply");
        open.push_back((uint32_t)nodes.size());
        return leaf(kind);
    }
    bool end(size_t count)
    {
        Node &n = nodes[open.back()];
        n.span = (uint32_t)(nodes.size() - open.back());
        n.size = (uint32_t)count;
        open.pop_back();
        return true;
    }
    bool refuse(const char *why)
    {
        refused = why;
        return false;
    }

    /* RapidJSON's events. Numbers come as text, by flag; the typed ones are never called. */
    bool Null()
    {
        return leaf(Kind::Null);
    }
    bool Bool(bool b)
    {
        return leaf(b ? Kind::True : Kind::False);
    }
    bool Int(int)
    {
        return refuse("number");
    }
    bool Uint(unsigned)
    {
        return refuse("number");
    }
    bool Int64(int64_t)
    {
        return refuse("number");
    }
    bool Uint64(uint64_t)
    {
        return refuse("number");
    }
    bool Double(double)
    {
        return refuse("number");
    }
    bool RawNumber(const char *s, rapidjson::SizeType n, bool)
    {
        return textual(Kind::Number, s, n);
    }
    bool String(const char *s, rapidjson::SizeType n, bool)
    {
        return textual(Kind::String, s, n);
    }
    bool Key(const char *s, rapidjson::SizeType n, bool)
    {
        return textual(Kind::String, s, n);
    }
    bool StartObject()
    {
        return begin(Kind::Object);
    }
    bool EndObject(rapidjson::SizeType n)
    {
        return end(n);
    }
    bool StartArray()
    {
        return begin(Kind::Array);
    }
    bool EndArray(rapidjson::SizeType n)
    {
        return end(n);
    }
};

const char *kind_name(Kind kind)
{
    static const char *const kNames[] = {"null",     "true",      "false",   "a number",
                                         "a string", "an object", "an array"};
    return kNames[(int)kind];
}

} // namespace

class JsonRow
{
  public:
    Tape tape;
    rapidjson::Reader reader;
    std::vector<uint8_t> seen; /* of the row's columns */

    bool parse(std::string_view text, std::string *why);
    bool append(Column &column, uint32_t at, std::string *why);

  private:
    bool append_atomic(Column &column, const Node &n, std::string *why);
    bool append_list(Column &column, uint32_t at, std::string *why);
    bool append_map(Column &column, uint32_t at, std::string *why);
    bool append_pair(Column &column, uint32_t key, uint32_t value,
                     std::unordered_set<std::string> &keys, std::string *why);
    bool append_row(Column &column, uint32_t at, std::string *why);
};

JsonRowPtr json_row_new()
{
    return JsonRowPtr(new JsonRow);
}
void JsonRowDrop::operator()(JsonRow *row) const
{
    delete row;
}

bool JsonRow::parse(std::string_view text, std::string *why)
{
    using namespace rapidjson;
    tape.clear();
    MemoryStream stream(text.data(), text.size());
    const unsigned kFlags =
        kParseNumbersAsStringsFlag | kParseIterativeFlag | kParseValidateEncodingFlag;
    ParseResult result = reader.Parse<kFlags>(stream, tape);
    if (result)
        return true;
    if (tape.refused != NULL)
        *why = tape.refused;
    else
        *why = std::string("not JSON at byte ") + std::to_string(result.Offset() + 1) + ": " +
               GetParseError_En(result.Code());
    return false;
}

bool JsonRow::append_atomic(Column &column, const Node &n, std::string *why)
{
    enum tarn_type_id id = column.type->id;
    bool number = (id >= TARN_TYPE_TINYINT && id <= TARN_TYPE_DOUBLE) || id == TARN_TYPE_DECIMAL;
    if (id == TARN_TYPE_BOOLEAN && (n.kind == Kind::True || n.kind == Kind::False)) {
        column.append_fixed((int8_t)(n.kind == Kind::True));
        return true;
    }
    if (n.kind == Kind::String || (n.kind == Kind::Number && number))
        return append_text(column, tape.view(n), why);
    *why = std::string("expected ") + type_text(column.type) + ", found " + kind_name(n.kind);
    return false;
}

bool JsonRow::append_list(Column &column, uint32_t at, std::string *why)
{
    const Node n = tape.nodes[at];
    if (n.kind != Kind::Array) {
        *why = std::string("expected an array, found ") + kind_name(n.kind);
        return false;
    }
    if (column.type->id == TARN_TYPE_VECTOR && (int64_t)n.size != column.type->length) {
        *why = "expected " + std::to_string(column.type->length) + " items, found " +
               std::to_string(n.size);
        return false;
    }
    for (uint32_t i = at + 1; i < at + n.span; i += tape.nodes[i].span)
        if (!append(column.child(0), i, why))
            return false;
    column.append_list();
    return true;
}

bool JsonRow::append_pair(Column &column, uint32_t key, uint32_t value,
                          std::unordered_set<std::string> &keys, std::string *why)
{
    const Node &k = tape.nodes[key];
    if (k.kind == Kind::Null) {
        *why = "a map has a null key";
        return false;
    }
    if (!append(column.child(0), key, why) || !append(column.child(1), value, why))
        return false;
    std::string identity; /* by value: 1 and 1.0 are one DECIMAL */
    column.child(0).add_identity(column.child(0).length() - 1, &identity);
    if (keys.insert(std::move(identity)).second)
        return true;
    bool word = k.kind == Kind::String || k.kind == Kind::Number;
    *why = "a map has " + (word ? "the key " + std::string(tape.view(k)) : "a key") + " twice";
    return false;
}

bool JsonRow::append_map(Column &column, uint32_t at, std::string *why)
{
    const Node n = tape.nodes[at];
    std::unordered_set<std::string> keys;
    uint32_t end = at + n.span;
    const struct tarn_type *key_type =
        column.type->id == TARN_TYPE_MAP ? column.type->key : column.type->element;
    if (n.kind == Kind::Object && is_text(key_type)) {
        for (uint32_t i = at + 1; i < end; i += 1 + tape.nodes[i + 1].span)
            if (!append_pair(column, i, i + 1, keys, why))
                return false;
    } else if (n.kind == Kind::Array) {
        for (uint32_t i = at + 1; i < end; i += tape.nodes[i].span) {
            if (tape.nodes[i].kind != Kind::Array || tape.nodes[i].size != 2) {
                *why = "expected pairs [key, value]";
                return false;
            }
            if (!append_pair(column, i + 1, i + 1 + tape.nodes[i + 1].span, keys, why))
                return false;
        }
    } else {
        *why =
            std::string(is_text(key_type) ? "expected an object" : "expected an array of pairs") +
            ", found " + kind_name(n.kind);
        return false;
    }
    column.append_list();
    return true;
}

bool JsonRow::append_row(Column &column, uint32_t at, std::string *why)
{
    const struct tarn_type *type = column.type;
    const Node n = tape.nodes[at];
    if (n.kind != Kind::Object) {
        *why = std::string("expected an object, found ") + kind_name(n.kind);
        return false;
    }
    int64_t rows = column.length();
    for (uint32_t i = at + 1; i < at + n.span; i += 1 + tape.nodes[i + 1].span) {
        std::string_view name = tape.view(tape.nodes[i]);
        size_t f = 0;
        while (f < type->field_count && view_of(type->fields[f].name) != name)
            f++;
        if (f == type->field_count || column.child(f).length() > rows) {
            *why = f == type->field_count ? "the row has no field " + std::string(name)
                                          : "field " + std::string(name) + " is there twice";
            return false;
        }
        if (!append(column.child(f), i + 1, why)) {
            *why = std::string(name) + ": " + *why;
            return false;
        }
    }
    for (size_t f = 0; f < type->field_count; f++) {
        if (column.child(f).length() > rows)
            continue;
        if (!type->fields[f].type->nullable) {
            *why = "field " + string_of(type->fields[f].name) + " is NOT NULL and missing";
            return false;
        }
        column.child(f).append_null();
    }
    column.append_row();
    return true;
}

/* Depth is bounded by the type's. On failure parts may have been appended: the caller cuts them off. */
bool JsonRow::append(Column &column, uint32_t at, std::string *why)
{
    const Node &n = tape.nodes[at];
    if (n.kind == Kind::Null) {
        if (!column.type->nullable) {
            *why = "NOT NULL, and the value is null";
            return false;
        }
        column.append_null();
        return true;
    }
    switch (column.type->id) {
    case TARN_TYPE_ARRAY:
    case TARN_TYPE_VECTOR:
        return append_list(column, at, why);
    case TARN_TYPE_MAP:
    case TARN_TYPE_MULTISET:
        return append_map(column, at, why);
    case TARN_TYPE_ROW:
        return append_row(column, at, why);
    default:
        return append_atomic(column, n, why);
    }
}

/* Cuts back what a refused value left, in a column that may be nested. */
bool append_json(JsonRow &json, Column &column, std::string_view text, std::string *why)
{
    return json.parse(text, why) && json.append(column, 0, why);
}

bool append_json_row(JsonRow &json, RowBuilder &rows, std::string_view line, std::string *column,
                     std::string *why)
{
    column->clear();
    if (!json.parse(line, why))
        return false;
    const Tape &tape = json.tape;
    const Node root = tape.nodes[0];
    if (root.kind != Kind::Object) {
        *why = std::string("expected an object, found ") + kind_name(root.kind);
        return false;
    }
    json.seen.assign(rows.field_count + 1, 0);
    for (uint32_t i = 1; i < root.span; i += 1 + tape.nodes[i + 1].span) {
        std::string_view name = tape.view(tape.nodes[i]);
        int f = rows.find(name);
        bool op = rows.has_op && name == rows.op_column;
        *column = std::string(name);
        if (f < 0 && !op) {
            *why = rows.unknown_text(name);
            return false;
        }
        uint8_t &seen = json.seen[op ? rows.field_count : (size_t)f];
        if (seen++) {
            *why = "the column is there twice";
            return false;
        }
        bool text = tape.nodes[i + 1].kind == Kind::String;
        if (op && !rows.set_op(text ? tape.view(tape.nodes[i + 1]) : "", why))
            return false;
        if (f >= 0 && !json.append(rows.column((size_t)f), i + 1, why))
            return false;
    }
    for (size_t f = 0; f < rows.field_count; f++)
        if (!json.seen[f] && !rows.fields[f].type->nullable && !rows.only_keys_required) {
            *column = string_of(rows.fields[f].name);
            *why = "NOT NULL, and the line has no value";
            return false;
        }
    if (rows.has_op && !json.seen[rows.field_count]) {
        *column = rows.op_column;
        *why = "the line has no value";
        return false;
    }
    column->clear();
    return true;
}

} // namespace tarn
