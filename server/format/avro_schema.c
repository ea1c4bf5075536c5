#include "format/avro_schema.h"

#include <stdatomic.h>

/* Parsing keeps the named types seen so far; a name may be used inside its own definition. */
struct parser {
    struct tarn_arena *arena;
    struct tarn_map *named; /* both the full and the short name to the node */
    size_t node_count;
};

static struct tarn_status *parse_node(struct parser *p, const struct tarn_json *json,
                                      struct tarn_slice space, int depth,
                                      const struct tarn_avro_node **out);

static struct tarn_status *bad(const char *what)
{
    return tarn_status_new(TARN_AVRO_MALFORMED, "avro.schema: %s", what);
}

static struct tarn_status *new_node(struct parser *p, enum tarn_avro_kind kind,
                                    struct tarn_avro_node **out)
{
    if (p->node_count++ >= TARN_AVRO_NODES_MAX)
        return bad("too many types");
    *out = tarn_arena_calloc(p->arena, 1, sizeof **out);
    (*out)->kind = kind;
    return TARN_OK;
}

static bool find_primitive(struct tarn_slice name, enum tarn_avro_kind *out)
{
    static const char *const names[] = {"null",  "boolean", "int",   "long",
                                        "float", "double",  "bytes", "string"};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        if (tarn_slice_is(name, names[i])) {
            *out = (enum tarn_avro_kind)i; /* the enum begins in this order */
            return true;
        }
    }
    return false;
}

static struct tarn_slice full_name(struct parser *p, struct tarn_slice name,
                                   struct tarn_slice space)
{
    if (space.size == 0 || memchr(name.data, '.', name.size) != NULL)
        return name;
    return tarn_slice_str(
        tarn_arena_printf(p->arena, "%.*s.%.*s", TARN_SLICE_ARG(space), TARN_SLICE_ARG(name)));
}

static struct tarn_status *parse_name(struct parser *p, struct tarn_slice name,
                                      struct tarn_slice space, const struct tarn_avro_node **out)
{
    enum tarn_avro_kind kind;
    if (name.size == 0 || name.size > 1024)
        return bad("a type's name is empty or too long");
    if (find_primitive(name, &kind)) {
        struct tarn_avro_node *node = NULL;
        TARN_TRY(new_node(p, kind, &node));
        *out = node;
        return TARN_OK;
    }
    *out = tarn_map_find(p->named, full_name(p, name, space));
    if (*out == NULL)
        *out = tarn_map_find(p->named, name);
    return *out != NULL
               ? TARN_OK
               : tarn_status_new(TARN_AVRO_MALFORMED, "avro.schema: unknown type \"%.*s\"",
                                 (int)TARN_MIN(name.size, (size_t)60), (const char *)name.data);
}

/* Gives the node its name and answers with the namespace for what lies inside. */
static struct tarn_status *register_name(struct parser *p, const struct tarn_json *json,
                                         struct tarn_slice space, struct tarn_avro_node *node,
                                         struct tarn_slice *inner)
{
    struct tarn_slice name = tarn_json_text(tarn_json_find(json, "name"));
    struct tarn_slice own = tarn_json_text(tarn_json_find(json, "namespace"));
    if (name.size == 0 || name.size > 1024 || own.size > 1024)
        return bad("a named type's name is missing or too long");
    *inner = own.data != NULL ? own : space;
    if (tarn_map_set(p->named, full_name(p, name, *inner), node) != NULL)
        return bad("a type is defined twice");
    return TARN_OK;
}

static struct tarn_status *new_children(struct parser *p, struct tarn_avro_node *node, size_t count)
{
    if (count > TARN_AVRO_NODES_MAX)
        return bad("too many types");
    node->children = tarn_arena_calloc(p->arena, count, sizeof(struct tarn_avro_node *));
    node->child_count = count;
    return TARN_OK;
}

static struct tarn_status *parse_record(struct parser *p, const struct tarn_json *json,
                                        struct tarn_slice space, int depth,
                                        struct tarn_avro_node *node)
{
    struct tarn_slice inner;
    const struct tarn_json *fields = tarn_json_find(json, "fields");
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    TARN_TRY(register_name(p, json, space, node, &inner));
    if (fields == NULL || tarn_json_kind(fields) != TARN_JSON_ARRAY)
        return bad("a record has no fields");
    TARN_TRY(new_children(p, node, tarn_json_count(fields)));
    node->names = tarn_arena_calloc(p->arena, node->child_count, sizeof *node->names);
    for (size_t i = 0; i < node->child_count; i++) {
        const struct tarn_json *field = tarn_json_at(fields, i);
        struct tarn_slice name = tarn_json_text(tarn_json_find(field, "name"));
        if (name.size == 0 || tarn_map_set(seen, name, node) != NULL)
            return bad("a field's name is missing or occurs twice");
        node->names[i] = tarn_arena_copy(p->arena, name);
        TARN_TRY(
            parse_node(p, tarn_json_find(field, "type"), inner, depth + 1, &node->children[i]));
    }
    return TARN_OK;
}

static struct tarn_status *parse_union(struct parser *p, const struct tarn_json *json,
                                       struct tarn_slice space, int depth,
                                       const struct tarn_avro_node **out)
{
    struct tarn_avro_node *node = NULL;
    TARN_TRY(new_node(p, TARN_AVRO_UNION, &node));
    TARN_TRY(new_children(p, node, tarn_json_count(json)));
    if (node->child_count == 0)
        return bad("a union has no branches");
    for (size_t i = 0; i < node->child_count; i++) {
        TARN_TRY(parse_node(p, tarn_json_at(json, i), space, depth + 1, &node->children[i]));
        if (node->children[i]->kind == TARN_AVRO_UNION)
            return bad("a union lies in a union");
    }
    *out = node;
    return TARN_OK;
}

static struct tarn_status *parse_item(struct parser *p, const struct tarn_json *json,
                                      const char *member, struct tarn_slice space, int depth,
                                      struct tarn_avro_node *node)
{
    TARN_TRY(new_children(p, node, 1));
    return parse_node(p, tarn_json_find(json, member), space, depth + 1, &node->children[0]);
}

/* A type with a meaning of its own; the node of a named type may be meant in other places, too. */
static struct tarn_status *parse_logical(struct parser *p, const struct tarn_json *json,
                                         struct tarn_slice space, int depth,
                                         const struct tarn_avro_node **out)
{
    TARN_TRY(parse_node(p, tarn_json_find(json, "type"), space, depth + 1, out));
    struct tarn_slice logical = tarn_json_text(tarn_json_find(json, "logicalType"));
    if (logical.data == NULL || (*out)->kind > TARN_AVRO_STRING)
        return TARN_OK;
    struct tarn_avro_node *node = NULL;
    TARN_TRY(new_node(p, (*out)->kind, &node));
    node->logical = tarn_arena_copy(p->arena, logical);
    node->scale = tarn_json_int(tarn_json_find(json, "scale"));
    *out = node;
    return TARN_OK;
}

static struct tarn_status *parse_object(struct parser *p, const struct tarn_json *json,
                                        struct tarn_slice space, int depth,
                                        const struct tarn_avro_node **out)
{
    const struct tarn_json *type = tarn_json_find(json, "type");
    struct tarn_slice word = tarn_json_text(type), inner;
    struct tarn_avro_node *node = NULL;
    bool record = tarn_slice_is(word, "record") || tarn_slice_is(word, "error");
    bool fixed = tarn_slice_is(word, "fixed"), symbols = tarn_slice_is(word, "enum");
    bool array = tarn_slice_is(word, "array"), map = tarn_slice_is(word, "map");
    if (!record && !fixed && !symbols && !array && !map) /* {"type": "long", "logicalType": …} */
        return parse_logical(p, json, space, depth, out);
    TARN_TRY(new_node(p,
                      record    ? TARN_AVRO_RECORD
                      : fixed   ? TARN_AVRO_FIXED
                      : symbols ? TARN_AVRO_ENUM
                      : array   ? TARN_AVRO_ARRAY
                                : TARN_AVRO_MAP,
                      &node));
    *out = node;
    if (record)
        return parse_record(p, json, space, depth, node);
    if (array || map)
        return parse_item(p, json, array ? "items" : "values", space, depth, node);
    node->size = fixed ? tarn_json_int(tarn_json_find(json, "size"))
                       : (int64_t)tarn_json_count(tarn_json_find(json, "symbols"));
    if (fixed) {
        node->logical =
            tarn_arena_copy(p->arena, tarn_json_text(tarn_json_find(json, "logicalType")));
        node->scale = tarn_json_int(tarn_json_find(json, "scale"));
    }
    if (node->size < 0 || node->size > TARN_AVRO_EXPANDED_MAX)
        return bad("a fixed size is out of range");
    return register_name(p, json, space, node, &inner);
}

static struct tarn_status *parse_node(struct parser *p, const struct tarn_json *json,
                                      struct tarn_slice space, int depth,
                                      const struct tarn_avro_node **out)
{
    if (json == NULL)
        return bad("a type is missing");
    if (depth >= TARN_AVRO_DEPTH_MAX)
        return bad("types are nested too deep");
    switch (tarn_json_kind(json)) {
    case TARN_JSON_STRING:
        return parse_name(p, tarn_json_text(json), space, out);
    case TARN_JSON_ARRAY:
        return parse_union(p, json, space, depth, out);
    case TARN_JSON_OBJECT:
        return parse_object(p, json, space, depth, out);
    default:
        return bad("a type is neither name, union nor object");
    }
}

const struct tarn_avro_node *tarn_avro__record_of(const struct tarn_avro_node *top)
{
    const struct tarn_avro_node *record = NULL;
    if (top->kind == TARN_AVRO_RECORD)
        return top;
    for (size_t i = 0; top->kind == TARN_AVRO_UNION && i < top->child_count; i++) {
        if (top->children[i]->kind == TARN_AVRO_RECORD && record != NULL)
            return NULL;
        if (top->children[i]->kind == TARN_AVRO_RECORD)
            record = top->children[i];
    }
    return record;
}

static struct tarn_status *parse(struct tarn_slice text, struct tarn_arena *arena,
                                 const struct tarn_avro_node **out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_map_drop) struct tarn_map *named = tarn_map_new();
    struct parser p = {.arena = arena, .named = named};
    struct tarn_status *s = tarn_json_parse(text, &json);
    TARN_TRY(tarn_status_wrap(tarn_status_as(s, TARN_AVRO_MALFORMED), "avro.schema"));
    TARN_TRY(parse_node(&p, json, (struct tarn_slice){0}, 0, out));
    return tarn_avro__record_of(*out) != NULL ? TARN_OK : bad("the top is no record");
}

/* --- schemas that were met: manifests by the thousand have the same few, and to parse one takes longer than a small
 * manifest's records. The first ones are kept, for good; others are parsed each time. */

#define KNOWN_COUNT_MAX 32
#define KNOWN_SIZE_MAX ((size_t)16 << 10)

struct known {
    struct tarn_arena *arena; /* owned: it holds all of this */
    struct tarn_slice text;
    const struct tarn_avro_node *top;
};

static _Atomic(const struct known *) known[KNOWN_COUNT_MAX];

/* NULL: not known. *room: there is a place to put it. */
static const struct known *find_known(struct tarn_slice text, bool *room)
{
    *room = false;
    for (size_t i = 0; i < KNOWN_COUNT_MAX && !*room; i++) {
        const struct known *one = atomic_load(&known[i]);
        if (one != NULL && tarn_slice_equal(one->text, text))
            return one;
        *room = one == NULL;
    }
    return NULL;
}

static bool put_known(const struct known *one)
{
    bool put = false;
    for (size_t i = 0; i < KNOWN_COUNT_MAX && !put; i++) {
        const struct known *none = NULL;
        put = atomic_compare_exchange_strong(&known[i], &none, one);
    }
    return put;
}

static void remember(struct tarn_slice text)
{
    struct tarn_arena *arena = tarn_arena_new();
    struct known *one = tarn_arena_alloc(arena, sizeof *one);
    *one = (struct known){.arena = arena, .text = tarn_arena_copy(arena, text)};
    struct tarn_status *s = parse(text, arena, &one->top);
    if (s != TARN_OK || !put_known(one))
        tarn_arena_free(arena);
    tarn_status_free(s);
}

struct tarn_status *tarn_avro__parse_schema(struct tarn_slice text, struct tarn_arena *arena,
                                            const struct tarn_avro_node **out)
{
    bool room;
    if (text.size > TARN_AVRO_SCHEMA_SIZE_MAX)
        return bad("too large");
    const struct known *one = find_known(text, &room);
    if (one != NULL) {
        *out = one->top;
        return TARN_OK;
    }
    TARN_TRY(parse(text, arena, out));
    if (room && text.size <= KNOWN_SIZE_MAX)
        remember(text);
    return TARN_OK;
}
