/*
 * Schema evolution: what Java makes of a schema and a list of changes we make, member by member, and what it refuses we refuse
 * (test/golden/evolve, recorded by test/interop/evolve.py, which also names where we differ). Paths lead where they say, ids are never
 * used again, keys follow renames, and doors are told the column.
 */
#include "test.h"

#include "format/cast.h"
#include "format/evolve.h"
#include "schema_changes.h"

#define S tarn_slice_str

static const char table[] =
    "{\"id\": 4, \"fields\": ["
    "{\"id\": 0, \"name\": \"k\", \"type\": \"BIGINT NOT NULL\"},"
    "{\"id\": 1, \"name\": \"p\", \"type\": \"INT NOT NULL\"},"
    "{\"id\": 2, \"name\": \"v\", \"type\": \"INT\"},"
    "{\"id\": 3, \"name\": \"r\", \"type\": {\"type\": \"ROW\", \"fields\": ["
    "{\"id\": 4, \"name\": \"x\", \"type\": \"INT\"}, {\"id\": 5, \"name\": \"y\", \"type\": \"STRING\"}]}},"
    "{\"id\": 6, \"name\": \"m\", \"type\": {\"type\": \"MAP\", \"key\": \"STRING NOT NULL\", \"value\": {\"type\": \"ARRAY\","
    "\"element\": {\"type\": \"ROW\", \"fields\": [{\"id\": 7, \"name\": \"z\", \"type\": \"INT\"}]}}}}],"
    "\"highestFieldId\": 9, \"partitionKeys\": [\"p\"], \"primaryKeys\": [\"p\", \"k\"],"
    "\"options\": {\"bucket\": \"2\", \"sequence.field\": \"v\"}, \"timeMillis\": 1}";

/* The next schema of `json`, as a line of text. */
static struct tarn_status *evolve(struct tarn_test *t, const char *json, const char *changes,
                                  bool has_snapshot, const char **out)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *list = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_schema schema, next, again;
    struct tarn_schema_change *parsed;
    size_t count;
    expect_ok(tarn_schema_decode(S(json), t->arena, &schema));
    expect_ok(tarn_json_parse(S(changes), &list));
    expect_ok(tarn_test_schema_changes(list, t->arena, &parsed, &count));
    TARN_TRY(tarn_schema_evolve(&schema, parsed, count, has_snapshot, 5, t->arena, &next));
    tarn_schema_encode(&next, &text);
    expect_ok(tarn_schema_decode(tarn_buf_slice(&text), t->arena, &again)); /* always readable */
    TARN_OWN(tarn_json_drop) struct tarn_json *doc = NULL;
    expect_ok(tarn_json_parse(tarn_buf_slice(&text), &doc));
    tarn_buf_clear(&text);
    tarn_json_print(doc, 0, &text);
    *out = tarn_arena_str(t->arena, tarn_buf_slice(&text));
    return TARN_OK;
}

static void expect_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in %s", part, text);
}

static void accept(struct tarn_test *t, const char *changes, const char *part)
{
    const char *text = NULL;
    expect_ok(evolve(t, table, changes, true, &text));
    expect_has(text, part);
}

static void refuse(struct tarn_test *t, const char *changes, enum tarn_reason reason,
                   const char *part)
{
    const char *text = NULL;
    expect_status(evolve(t, table, changes, true, &text), reason, part);
}

/* A schema as a line of text: options sorted, which Java keeps in no order. */
static const char *plain(struct tarn_test *t, const struct tarn_schema *schema)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_schema s = *schema;
    struct tarn_pair *options = tarn_arena_calloc(t->arena, s.option_count + 1, sizeof *options);
    for (size_t i = 0; i < s.option_count; i++) {
        size_t at = i;
        for (; at > 0 && tarn_slice_compare(options[at - 1].key, s.options[i].key) > 0; at--)
            options[at] = options[at - 1];
        options[at] = s.options[i];
    }
    s.options = options;
    tarn_schema_encode(&s, &text);
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

static struct tarn_schema schema_of(struct tarn_test *t, const struct tarn_json *json)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_schema schema;
    tarn_json_print(json, 0, &text);
    expect_ok(tarn_schema_decode(tarn_buf_slice(&text), t->arena, &schema));
    return schema;
}

static void check_case(struct tarn_test *t, const struct tarn_json *bases, struct tarn_slice line)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    struct tarn_schema_change *changes;
    struct tarn_schema next;
    size_t count;
    expect_ok(tarn_json_parse(line, &json));
    const char *name = tarn_arena_str(t->arena, tarn_json_text(tarn_json_find(json, "name")));
    const char *base = tarn_arena_str(t->arena, tarn_json_text(tarn_json_find(json, "base")));
    const struct tarn_json *want = tarn_json_find(json, "want");
    struct tarn_schema schema = schema_of(t, tarn_json_find(bases, base));
    expect_ok(
        tarn_test_schema_changes(tarn_json_find(json, "changes"), t->arena, &changes, &count));
    TARN_OWN(tarn_status_drop) struct tarn_status *s =
        tarn_schema_evolve(&schema, changes, count,
                           tarn_json_is_true(tarn_json_find(json, "snapshot")), 0, t->arena, &next);
    if ((s != NULL) != (tarn_json_kind(want) == TARN_JSON_NULL))
        fail_msg("%s: Java says otherwise than %s", name,
                 s == NULL ? "that it is fine" : tarn_status_message(s));
    if (s != NULL)
        return;
    struct tarn_schema java = schema_of(t, want);
    if (strcmp(plain(t, &next), plain(t, &java)) != 0)
        fail_msg("%s: got %s, want %s", name, plain(t, &next), plain(t, &java));
}

TARN_TEST(evolve, does_what_java_does)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf golden = {0};
    TARN_OWN(tarn_json_drop) struct tarn_json *bases = NULL;
    tarn_test_golden("evolve/cases.jsonl", &golden);
    size_t count = 0, at = 0;
    while (at < golden.size) {
        const uint8_t *end = memchr(golden.data + at, '\n', golden.size - at);
        assert_non_null(end);
        struct tarn_slice line = tarn_slice_of(golden.data + at, (size_t)(end - golden.data) - at);
        at += line.size + 1;
        if (count++ == 0)
            expect_ok(tarn_json_parse(line, &bases));
        else
            check_case(t, bases, line);
    }
    assert_true(count > 300);
}

/* Every type to every other. */
TARN_TEST(evolve, casts_what_java_casts)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf golden = {0};
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    tarn_test_golden("evolve/casts.json", &golden);
    expect_ok(tarn_json_parse(tarn_buf_slice(&golden), &json));
    const struct tarn_json *types = tarn_json_find(json, "types");
    for (size_t i = 0; i < 2 * tarn_json_count(types) * tarn_json_count(types); i++) {
        size_t n = tarn_json_count(types), from = i / n % n, to = i % n;
        bool explicit_too = i < n * n;
        const struct tarn_type *source, *target;
        expect_ok(tarn_type_from_json(tarn_json_at(types, from), t->arena, &source));
        expect_ok(tarn_type_from_json(tarn_json_at(types, to), t->arena, &target));
        struct tarn_slice row = tarn_json_text(
            tarn_json_at(tarn_json_find(json, explicit_too ? "explicit" : "implicit"), from));
        bool refused_for_nulls = source->nullable && !target->nullable; /* before casts are asked */
        bool blob = source->id == TARN_TYPE_BLOB || target->id == TARN_TYPE_BLOB; /* likewise */
        if (!refused_for_nulls && !blob &&
            tarn_cast_allowed(source, target, explicit_too) != (row.data[to] == 'x'))
            fail_msg("type %zu to type %zu, %s: Java says %c", from, to,
                     explicit_too ? "explicit" : "implicit", row.data[to]);
    }
}

TARN_TEST(evolve, tells_doors_the_column)
{
    const char *text = NULL;
    TARN_OWN(tarn_status_drop) struct tarn_status *s = evolve(
        t, table, "[{\"action\":\"dropColumn\",\"fieldNames\":[\"r\",\"no\"]}]", true, &text);
    expect_int(tarn_status_reason(s), TARN_COLUMN_NOT_FOUND);
    expect_str(tarn_status_get(s, "column"), "r.no");
    TARN_OWN(tarn_status_drop) struct tarn_status *e = evolve(
        t, table, "[{\"action\":\"renameColumn\",\"fieldNames\":[\"r\",\"x\"],\"newName\":\"y\"}]",
        true, &text);
    expect_int(tarn_status_reason(e), TARN_COLUMN_EXISTS);
    expect_str(tarn_status_get(e, "column"), "r.y");
}

/* Java maps the first list of names once: a column renamed twice, or two that change places, lose their keys there. */
TARN_TEST(evolve, renames_follow_each_other)
{
    const char *text = NULL;
    expect_ok(evolve(t, table,
                     "[{\"action\":\"renameColumn\",\"fieldNames\":[\"k\"],\"newName\":\"t\"},"
                     "{\"action\":\"renameColumn\",\"fieldNames\":[\"v\"],\"newName\":\"k\"},"
                     "{\"action\":\"renameColumn\",\"fieldNames\":[\"t\"],\"newName\":\"v\"}]",
                     true, &text));
    expect_has(text, "\"primaryKeys\":[\"p\",\"v\"]");
    expect_has(text, "\"sequence.field\":\"k\"");
    refuse(t,
           "[{\"action\":\"renameColumn\",\"fieldNames\":[\"k\"],\"newName\":\"t\"},"
           "{\"action\":\"dropColumn\",\"fieldNames\":[\"t\"]}]",
           TARN_SCHEMA_INVALID, "column t is part of the primary key");
}

/* Java does something else than asked, or nothing, where a path leads nowhere: those are refused here. */
TARN_TEST(evolve, paths_lead_where_they_say)
{
    accept(t,
           "[{\"action\":\"updateColumnType\",\"fieldNames\":[\"m\",\"value\",\"element\",\"z\"],"
           "\"newDataType\":\"BIGINT\",\"keepNullability\":true}]",
           "\"name\":\"z\",\"type\":\"BIGINT\"");
    refuse(t, "[{\"action\":\"dropColumn\",\"fieldNames\":[\"m\",\"value\",\"element\",\"z\"]}]",
           TARN_SCHEMA_INVALID, "m.value.element.z is the last one");
    refuse(t, "[{\"action\":\"dropColumn\",\"fieldNames\":[\"m\",\"element\",\"z\"]}]",
           TARN_COLUMN_NOT_FOUND, "column m.element does not exist");
    refuse(t, "[{\"action\":\"dropColumn\",\"fieldNames\":[\"m\",\"value\"]}]", TARN_SCHEMA_INVALID,
           "has a type only");
    refuse(t, "[{\"action\":\"addColumn\",\"fieldNames\":[\"v\",\"w\"],\"dataType\":\"INT\"}]",
           TARN_SCHEMA_INVALID, "column v is INT, no ROW that takes fields");
    refuse(t,
           "[{\"action\":\"updateColumnType\",\"fieldNames\":[\"m\",\"key\"],\"newDataType\":"
           "\"INT\",\"keepNullability\":true}]",
           TARN_SCHEMA_INVALID, "column m is a MAP, whose keys can't be changed");
    refuse(t, "[{\"action\":\"dropColumn\",\"fieldNames\":[]}]", TARN_INVALID_ARGUMENT,
           "names no column");
}

TARN_TEST(evolve, ids_are_never_used_again)
{
    const char *text = NULL;
    expect_ok(
        evolve(t, table,
               "[{\"action\":\"dropColumn\",\"fieldNames\":[\"m\"]},"
               "{\"action\":\"addColumn\",\"fieldNames\":[\"m\"],\"dataType\":{\"type\":"
               "\"ROW\",\"fields\":[{\"id\":0,\"name\":\"z\",\"type\":\"INT\"}]}},"
               "{\"action\":\"addColumn\",\"fieldNames\":[\"r\",\"n\"],\"dataType\":\"INT\"}]",
               true, &text));
    expect_has(text, "\"highestFieldId\":12");
    expect_has(text, "\"id\":12,\"name\":\"n\"");
}

TARN_TEST(evolve, a_type_is_never_nested_deeper_than_files_can_say)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf change = {0};
    tarn_buf_printf(&change,
                    "[{\"action\":\"addColumn\",\"fieldNames\":[\"r\",\"d\"],\"dataType\":");
    for (int i = 0; i < TARN_TYPE_DEPTH_MAX - 1; i++)
        tarn_buf_printf(&change, "{\"type\":\"ARRAY\",\"element\":");
    tarn_buf_printf(&change, "\"INT\"");
    for (int i = 0; i < TARN_TYPE_DEPTH_MAX - 1; i++)
        tarn_buf_printf(&change, "}");
    tarn_buf_printf(&change, "}]");
    refuse(t, tarn_buf_cstr(&change), TARN_SCHEMA_INVALID, "nested more than");
}
