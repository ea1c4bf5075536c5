/*
 * Promise: a body of any client is read: keys that aren't known, nulls and no body at all are fine, integers are exact; what is
 * of another kind is refused by its name. A schema keeps what the client numbered where it can.
 */
#include "fixture.h"

static struct tarn_json *parse(const char *text)
{
    struct tarn_json *json;
    expect_ok(tarn_rest__parse(S(text), &json));
    return json;
}

TARN_TEST(body, nothing_is_an_empty_object)
{
    static const char *const empty[] = {"", " \t", "{}"};
    for (size_t i = 0; i < TARN_COUNT_OF(empty); i++) {
        TARN_OWN(tarn_json_drop) struct tarn_json *json = parse(empty[i]);
        expect_uint(tarn_json_count(json), 0);
    }
}

TARN_TEST(body, what_is_no_object_is_refused)
{
    struct tarn_json *json;
    struct tarn_status *s = tarn_rest__parse(S("[1]"), &json);
    expect_status(s, TARN_INVALID_ARGUMENT, "no JSON object");
    s = tarn_rest__parse(S("{\"a\":"), &json);
    expect_status(s, TARN_JSON_MALFORMED, "the body");
}

TARN_TEST(body, null_is_not_there)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = parse(
        "{\"text\":null,\"int\":null,\"bool\":null,\"map\":null,\"list\":null,\"more\":[1.5]}");
    struct tarn_slice text;
    int64_t integer;
    bool truth;
    const struct tarn_pair *pairs;
    const struct tarn_slice *texts;
    size_t count;
    expect_ok(tarn_rest__text(json, "text", &text));
    expect_null(text.data);
    expect_ok(tarn_rest__integer(json, "int", &integer));
    expect_int(integer, TARN_SNAPSHOT_NONE);
    expect_ok(tarn_rest__bool(json, "bool", true, &truth));
    expect_true(truth);
    expect_ok(tarn_rest__pairs(t->op, json, "map", &pairs, &count));
    expect_uint(count, 0);
    expect_ok(tarn_rest__texts(t->op, json, "list", &texts, &count));
    expect_uint(count, 0);
    struct tarn_status *s = tarn_rest__need_text(json, "text", &text);
    expect_status(s, TARN_INVALID_ARGUMENT, "\"text\" is missing");
}

TARN_TEST(body, integers_are_exact)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json =
        parse("{\"commitIdentifier\":9223372036854775807}");
    int64_t integer;
    expect_ok(tarn_rest__integer(json, "commitIdentifier", &integer));
    expect_int(integer, INT64_MAX);
}

TARN_TEST(body, options_are_taken_by_their_text)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json =
        parse("{\"options\":{\"a\":\"x\",\"b\":4,\"c\":true,\"d\":null,\"e\":\"\"}}");
    const struct tarn_pair *pairs;
    size_t count;
    expect_ok(tarn_rest__pairs(t->op, json, "options", &pairs, &count));
    expect_uint(count, 4);
    expect_slice(pairs[0].value, "x");
    expect_slice(pairs[1].value, "4");
    expect_slice(pairs[2].value, "true");
    expect_slice(pairs[3].key, "e");
}

TARN_TEST(body, another_kind_is_refused_by_its_name)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json =
        parse("{\"t\":1,\"i\":\"1\",\"b\":1,\"o\":[],\"m\":{\"k\":[]},\"l\":[1]}");
    struct tarn_slice text;
    int64_t integer;
    bool truth;
    const struct tarn_json *object;
    const struct tarn_pair *pairs;
    const struct tarn_slice *texts;
    size_t count;
    expect_status(tarn_rest__text(json, "t", &text), TARN_INVALID_ARGUMENT, "\"t\" is no text");
    expect_status(tarn_rest__integer(json, "i", &integer), TARN_INVALID_ARGUMENT, "\"i\"");
    expect_status(tarn_rest__bool(json, "b", false, &truth), TARN_INVALID_ARGUMENT, "\"b\"");
    expect_status(tarn_rest__object(json, "o", &object), TARN_INVALID_ARGUMENT, "\"o\"");
    expect_status(tarn_rest__pairs(t->op, json, "m", &pairs, &count), TARN_INVALID_ARGUMENT,
                  "\"m\"");
    expect_status(tarn_rest__texts(t->op, json, "l", &texts, &count), TARN_INVALID_ARGUMENT,
                  "\"l\"");
}

/* --- schemas, through an endpoint --- */

static const char *create(struct rest_fixture *f, const char *name, const char *fields,
                          const char *rest)
{
    const char *body = tarn_arena_printf(
        f->service.t->arena,
        "{\"identifier\":{\"database\":\"db\",\"object\":\"%s\"},\"schema\":{\"fields\":%s,\"partitionKeys\":[],"
        "\"primaryKeys\":[]%s}}",
        name, fields, rest);
    return rest_ask(f, "POST", "/databases/db/tables", body);
}

TARN_TEST(schema, keeps_the_ids_of_the_client)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    rest_expect(
        create(&f, "t",
               "[{\"id\":3,\"name\":\"a\",\"type\":\"INT\"},{\"id\":5,\"name\":\"r\",\"type\":"
               "{\"type\":\"ROW\",\"fields\":[{\"id\":9,\"name\":\"x\",\"type\":\"INT\"}]}}]",
               ""),
        200, "");
    rest_expect(
        rest_ask(&f, "GET", "/databases/db/tables/t", ""), 200,
        "\"fields\":[{\"id\":3,\"name\":\"a\",\"type\":\"INT\"},{\"id\":5,\"name\":\"r\",\"type\":"
        "{\"type\":\"ROW\",\"fields\":[{\"id\":9,\"name\":\"x\",\"type\":\"INT\"}]}}]");
    struct tarn_table_facts facts;
    expect_ok(tarn_service_get_table(t->op, &f.service.service, fixture_ref("t"), &facts));
    expect_int(facts.schema.highest_field_id, 9);
}

TARN_TEST(schema, gives_ids_anew_where_one_occurs_twice)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    rest_expect(
        create(&f, "t",
               "[{\"id\":1,\"name\":\"a\",\"type\":\"INT\"},{\"id\":2,\"name\":\"r\",\"type\":"
               "{\"type\":\"ROW\",\"fields\":[{\"id\":1,\"name\":\"x\",\"type\":\"INT\"}]}}]",
               ",\"comment\":null,\"options\":null"),
        200, "");
    rest_expect(
        rest_ask(&f, "GET", "/databases/db/tables/t", ""), 200,
        "\"fields\":[{\"id\":0,\"name\":\"a\",\"type\":\"INT\"},{\"id\":1,\"name\":\"r\",\"type\":"
        "{\"type\":\"ROW\",\"fields\":[{\"id\":2,\"name\":\"x\",\"type\":\"INT\"}]}}]");
}

TARN_TEST(schema, what_is_wrong_in_it_is_the_clients_fault)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    static const struct {
        const char *fields, *rest, *part;
    } bad[] = {
        {"[{\"id\":0,\"name\":\"a\",\"type\":\"NONSENSE\"}]", "", "NONSENSE"},
        {"[{\"id\":0,\"type\":\"INT\"}]", "", "name"},
        {"7", "", "fields"},
        {"[]", "", "columns"},
        {"[{\"id\":0,\"name\":\"a\",\"type\":\"INT\"}]", ",\"options\":{\"bucket\":\"x\"}",
         "bucket"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        rest_expect(create(&f, "t", bad[i].fields, bad[i].rest), 400, bad[i].part);
    static const char *const later[] = {"\"type\":\"materialized-table\"",
                                        "\"type\":\"lance-table\"", "\"type\":\"iceberg-table\""};
    for (size_t i = 0; i < TARN_COUNT_OF(later); i++)
        rest_expect(create(&f, "t", "[{\"id\":0,\"name\":\"a\",\"type\":\"INT\"}]",
                           tarn_arena_printf(t->arena, ",\"options\":{%s}", later[i])),
                    501, "\"resourceType\":\"TABLE\",\"resourceName\":\"t\"");
    rest_expect(rest_ask(&f, "GET", "/databases/db/tables", ""), 200, "\"tables\":[]");
}
