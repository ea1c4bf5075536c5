/*
 * Promise: views and functions are answered as they were sent, members beside included; lists have pages and patterns; changes are
 * all made or none; and each error has the type that clients look at.
 */
#include "fixture.h"

#define VIEWS "/databases/db/views"
#define FUNCTIONS "/databases/db/functions"
#define BODY                                                                                       \
    "\"fields\":[{\"id\":0,\"name\":\"a\",\"type\":\"INT NOT NULL\",\"x\":[1,null,2.5]}],"         \
    "\"query\":\"SELECT 'ä' AS a\",\"dialects\":{\"spark\":\"SELECT 1\"},\"comment\":null,"       \
    "\"options\":{\"k\":\"v\"},\"later\":{\"than\":[\"us\"]}"

static const char *create(struct rest_fixture *f, const char *name)
{
    return rest_ask(f, "POST", VIEWS,
                    tarn_arena_printf(f->service.t->arena,
                                      "{\"identifier\":{\"database\":\"db\",\"object\":\"%s\"},"
                                      "\"schema\":{" BODY "},\"unknown\":1}",
                                      name));
}

static const char *alter(struct rest_fixture *f, const char *path, const char *changes)
{
    return rest_ask(f, "POST", path,
                    tarn_arena_printf(f->service.t->arena, "{\"changes\":[%s]}", changes));
}

TARN_TEST(views, are_answered_as_they_were_sent)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    expect_str(create(&f, "v"), "200 ");
    const char *got = rest_ask(&f, "GET", VIEWS "/v", "");
    rest_expect(got, 200, "\"schema\":{" BODY "},\"name\":\"v\",\"owner\":\"");
    rest_expect(got, 200, "{\"id\":\"");
    rest_expect(create(&f, "v"), 409, "\"resourceType\":\"VIEW\",\"resourceName\":\"v\"");
    rest_expect(create(&f, ".v"), 400, "begins with");
    expect_str(rest_ask(&f, "POST", VIEWS,
                        "{\"identifier\":{\"database\":\"db\",\"object\":\"bare\"},"
                        "\"schema\":{\"query\":\"q\",\"fields\":[]}}"),
               "200 ");
    rest_expect(rest_ask(&f, "GET", VIEWS "/bare", ""), 200,
                "{\"query\":\"q\",\"fields\":[],\"options\":{},\"dialects\":{}}");
    rest_expect(rest_ask(&f, "GET", VIEWS "/nope", ""), 404,
                "\"resourceType\":\"VIEW\",\"resourceName\":\"nope\"");
    rest_expect(rest_ask(&f, "GET", VIEWS "/x%24snapshots", ""), 404, "\"resourceType\":\"VIEW\"");
    rest_expect(rest_ask(&f, "GET", "/databases/nope/views/v", ""), 404,
                "\"resourceType\":\"DATABASE\"");
    expect_str(rest_ask(&f, "DELETE", VIEWS "/v", ""), "200 ");
    rest_expect(rest_ask(&f, "DELETE", VIEWS "/v", ""), 404, "\"resourceType\":\"VIEW\"");
}

TARN_TEST(views, that_are_none_are_refused_by_the_member)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    static const char *const bad[][2] = {
        {"{}", "\\\"query\\\" is missing"},
        {"{\"query\":1,\"fields\":[]}", "\\\"query\\\" is no text"},
        {"{\"query\":\"q\"}", "\\\"fields\\\" is missing"},
        {"{\"query\":\"q\",\"fields\":[\"a\"]}", "no object"},
        {"{\"query\":\"q\",\"fields\":[],\"dialects\":{\"d\":{}}}", "no text"},
        {"{\"query\":\"q\",\"fields\":[],\"options\":[]}", "\\\"options\\\" is no object"}};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        rest_expect(rest_ask(&f, "POST", VIEWS,
                             tarn_arena_printf(t->arena,
                                               "{\"identifier\":{\"database\":\"db\",\"object\":"
                                               "\"v\"},\"schema\":%s}",
                                               bad[i][0])),
                    400, bad[i][1]);
    rest_expect(
        rest_ask(&f, "POST", VIEWS, "{\"identifier\":{\"database\":\"db\",\"object\":\"v\"}}"), 400,
        "schema");
    expect_str(rest_ask(&f, "GET", VIEWS, ""), "200 {\"views\":[],\"nextPageToken\":null}");
}

TARN_TEST(views, are_listed_page_by_page)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    static const char *const names[] = {"c", "a", "b", "a b"};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++)
        expect_str(create(&f, names[i]), "200 ");
    expect_str(rest_ask(&f, "POST", "/databases", "{\"name\":\"other\"}"), "200 ");
    expect_str(
        rest_ask(&f, "POST", "/databases/other/views",
                 "{\"identifier\":{\"database\":\"other\",\"object\":\"a\"},\"schema\":{" BODY
                 "}}"),
        "200 ");
    expect_str(rest_ask(&f, "GET", VIEWS, ""),
               "200 {\"views\":[\"a\",\"a b\",\"b\",\"c\"],\"nextPageToken\":null}");
    expect_str(rest_ask(&f, "GET", VIEWS "?maxResults=2", ""),
               "200 {\"views\":[\"a\",\"a b\"],\"nextPageToken\":\"a b\"}");
    expect_str(rest_ask(&f, "GET", VIEWS "?maxResults=2&pageToken=a+b", ""),
               "200 {\"views\":[\"b\",\"c\"],\"nextPageToken\":null}");
    expect_str(rest_ask(&f, "GET", VIEWS "?viewNamePattern=a%25", ""),
               "200 {\"views\":[\"a\",\"a b\"],\"nextPageToken\":null}");
    rest_expect(rest_ask(&f, "GET", VIEWS "?viewNamePattern=%25a", ""), 400, "prefix sql like");
    rest_expect(rest_ask(&f, "GET", VIEWS "?maxResults=x", ""), 400, "\"resourceType\":\"VIEW\"");
    expect_str(
        rest_ask(&f, "GET", "/views?databaseNamePattern=o%25", ""),
        "200 {\"views\":[{\"database\":\"other\",\"object\":\"a\"}],\"nextPageToken\":null}");
    expect_str(
        rest_ask(&f, "GET", "/views?viewNamePattern=a&maxResults=1", ""),
        "200 {\"views\":[{\"database\":\"db\",\"object\":\"a\"}],\"nextPageToken\":\"db.a\"}");
    const char *details = rest_ask(&f, "GET", "/databases/db/view-details?maxResults=1", "");
    rest_expect(details, 200, "{\"viewDetails\":[{\"id\":\"");
    rest_expect(details, 200, "\"schema\":{" BODY "},\"name\":\"a\"");
    rest_expect(details, 200, "\"nextPageToken\":\"a\"}");
    rest_expect(rest_ask(&f, "GET", "/databases/nope/views", ""), 404, "\"DATABASE\"");
}

TARN_TEST(views, of_a_page_of_details_have_a_bound)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    struct tarn_table_query query = {.database = S("db")};
    struct tarn_catalog_object *list;
    size_t count, seen = 0;
    const char *next;
    TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
    tarn_buf_add_str(&body, "{\"fields\":[],\"query\":\"");
    for (int i = 0; i < TARN_OBJECT_SIZE_MAX - 40; i++)
        tarn_buf_add_byte(&body, 'q');
    tarn_buf_add_str(&body, "\"}");
    for (int i = 0; i < 5; i++) {
        struct tarn_object_ref ref = {TARN_OBJECT_VIEW, S("db"),
                                      S(tarn_arena_printf(t->arena, "v%d", i))};
        struct tarn_catalog_object made;
        expect_ok(tarn_service_create_object(t->op, &f.service.service, ref, tarn_buf_slice(&body),
                                             false, &made));
    }
    do {
        expect_ok(tarn_service_list_objects(t->op, &f.service.service, TARN_OBJECT_VIEW, &query,
                                            &list, &count, &next));
        expect_true(count > 0 && count <= 3);
        seen += count;
        query.page.token = S(next);
    } while (next[0] != '\0');
    expect_int(seen, 5);
}

TARN_TEST(views, change_whole_or_not_at_all)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    expect_str(create(&f, "v"), "200 ");
    expect_str(alter(&f, VIEWS "/v",
                     "{\"action\":\"setOption\",\"key\":\"k2\",\"value\":\"v2\"},"
                     "{\"action\":\"removeOption\",\"key\":\"k\"},"
                     "{\"action\":\"updateComment\",\"comment\":\"new\"},"
                     "{\"action\":\"addDialect\",\"dialect\":\"flink\",\"query\":\"f\"},"
                     "{\"action\":\"updateDialect\",\"dialect\":\"flink\",\"query\":\"g\"},"
                     "{\"action\":\"dropDialect\",\"dialect\":\"spark\"}"),
               "200 ");
    const char *got = rest_ask(&f, "GET", VIEWS "/v", "");
    rest_expect(got, 200,
                "\"dialects\":{\"flink\":\"g\"},\"comment\":\"new\",\"options\":{\"k2\":\"v2\"},"
                "\"later\":{\"than\":[\"us\"]}");
    rest_expect(alter(&f, VIEWS "/v",
                      "{\"action\":\"setOption\",\"key\":\"k3\",\"value\":\"v\"},"
                      "{\"action\":\"addDialect\",\"dialect\":\"flink\",\"query\":\"x\"}"),
                409, "\"resourceType\":\"DIALECT\",\"resourceName\":\"flink\"");
    static const char *const missing[] = {"updateDialect", "dropDialect"};
    for (size_t i = 0; i < TARN_COUNT_OF(missing); i++)
        rest_expect(alter(&f, VIEWS "/v",
                          tarn_arena_printf(
                              t->arena, "{\"action\":\"%s\",\"dialect\":\"trino\",\"query\":\"x\"}",
                              missing[i])),
                    404, "\"resourceType\":\"DIALECT\",\"resourceName\":\"trino\"");
    static const char *const bad[] = {"addDefinition", "addColumn"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        rest_expect(
            alter(&f, VIEWS "/v", tarn_arena_printf(t->arena, "{\"action\":\"%s\"}", bad[i])), 400,
            bad[i]);
    expect_str(rest_ask(&f, "GET", VIEWS "/v", ""), got);
    rest_expect(alter(&f, VIEWS "/nope", ""), 404,
                "\"resourceType\":\"VIEW\",\"resourceName\":\"nope\"");
}

static const char *rename_view(struct rest_fixture *f, const char *from, const char *database,
                               const char *to)
{
    return rest_ask(f, "POST", "/views/rename",
                    tarn_arena_printf(f->service.t->arena,
                                      "{\"source\":{\"database\":\"db\",\"object\":\"%s\"},"
                                      "\"destination\":{\"database\":\"%s\",\"object\":\"%s\"}}",
                                      from, database, to));
}

TARN_TEST(views, are_renamed_and_share_names_with_tables)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    static const char table[] =
        "{\"identifier\":{\"database\":\"db\",\"object\":\"%s\"},\"schema\":{\"fields\":[{\"id\":0,"
        "\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"}],\"primaryKeys\":[\"id\"],\"options\":{"
        "\"bucket\":\"1\"}}}";
    const char *orders = tarn_arena_printf(t->arena, table, "orders");
    expect_str(rest_ask(&f, "POST", "/databases/db/tables", orders), "200 ");
    rest_expect(create(&f, "orders"), 409,
                "\"resourceType\":\"TABLE\",\"resourceName\":\"orders\"");
    expect_str(create(&f, "v"), "200 ");
    expect_str(create(&f, "w"), "200 ");
    rest_expect(
        rest_ask(&f, "POST", "/databases/db/tables", tarn_arena_printf(t->arena, table, "v")), 409,
        "\"resourceType\":\"VIEW\",\"resourceName\":\"v\"");
    rest_expect(rest_ask(&f, "POST", "/tables/rename",
                         "{\"source\":{\"database\":\"db\",\"object\":\"orders\"},"
                         "\"destination\":{\"database\":\"db\",\"object\":\"v\"}}"),
                409, "\"resourceType\":\"VIEW\",\"resourceName\":\"v\"");
    rest_expect(rename_view(&f, "v", "db", "w"), 409, "\"VIEW\",\"resourceName\":\"w\"");
    rest_expect(rename_view(&f, "v", "db", "v"), 409, "\"VIEW\",\"resourceName\":\"v\"");
    rest_expect(rename_view(&f, "v", "db", "orders"), 409, "\"TABLE\",\"resourceName\":\"orders\"");
    rest_expect(rename_view(&f, "nope", "db", "x"), 404, "\"VIEW\",\"resourceName\":\"nope\"");
    rest_expect(rename_view(&f, "v", "nope", "x"), 404, "\"DATABASE\"");
    expect_str(rename_view(&f, "v", "db", "x"), "200 ");
    expect_str(rest_ask(&f, "GET", VIEWS, ""),
               "200 {\"views\":[\"w\",\"x\"],\"nextPageToken\":null}");
}

TARN_TEST(functions, live)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    static const char body[] =
        "\"inputParams\":[{\"id\":0,\"name\":\"x\",\"type\":\"INT\"}],\"returnParams\":null,"
        "\"deterministic\":true,\"definitions\":{\"spark\":{\"type\":\"sql\",\"definition\":\"x+1\"}},"
        "\"comment\":\"c\",\"options\":{}";
    const char *made = tarn_arena_printf(t->arena, "{\"name\":\"f\",%s}", body);
    expect_str(rest_ask(&f, "POST", FUNCTIONS, made), "200 ");
    rest_expect(rest_ask(&f, "POST", FUNCTIONS, made), 409,
                "\"resourceType\":\"FUNCTION\",\"resourceName\":\"f\"");
    rest_expect(rest_ask(&f, "GET", FUNCTIONS "/f", ""), 200, body);
    rest_expect(rest_ask(&f, "GET", FUNCTIONS "/f", ""), 200, "\"uuid\":\"");
    expect_str(rest_ask(&f, "POST", FUNCTIONS, "{\"name\":\"g\",\"definitions\":null}"), "200 ");
    rest_expect(rest_ask(&f, "GET", FUNCTIONS "/g", ""), 200, "{\"definitions\":{},\"options\":{}");
    expect_str(rest_ask(&f, "GET", FUNCTIONS "?functionNamePattern=f%25", ""),
               "200 {\"functions\":[\"f\"],\"nextPageToken\":null}");
    expect_str(
        rest_ask(&f, "GET", "/functions?maxResults=1", ""),
        "200 {\"functions\":[{\"database\":\"db\",\"object\":\"f\"}],\"nextPageToken\":\"db.f\"}");
    rest_expect(rest_ask(&f, "GET", "/databases/db/function-details", ""), 200,
                "{\"functionDetails\":[{\"inputParams\"");
    expect_str(alter(&f, FUNCTIONS "/f",
                     "{\"action\":\"addDefinition\",\"name\":\"flink\",\"definition\":{\"type\":"
                     "\"lambda\",\"definition\":\"l\",\"language\":\"JAVA\"}},"
                     "{\"action\":\"updateDefinition\",\"name\":\"spark\",\"definition\":{\"type\":"
                     "\"sql\",\"definition\":\"x+2\"}},"
                     "{\"action\":\"updateComment\",\"comment\":null}"),
               "200 ");
    rest_expect(
        rest_ask(&f, "GET", FUNCTIONS "/f", ""), 200,
        "\"definitions\":{\"spark\":{\"type\":\"sql\",\"definition\":\"x+2\"},\"flink\":{"
        "\"type\":\"lambda\",\"definition\":\"l\",\"language\":\"JAVA\"}},\"comment\":null");
    rest_expect(alter(&f, FUNCTIONS "/f", "{\"action\":\"dropDefinition\",\"name\":\"trino\"}"),
                404, "\"resourceType\":\"DEFINITION\",\"resourceName\":\"trino\"");
    rest_expect(alter(&f, FUNCTIONS "/f",
                      "{\"action\":\"addDefinition\",\"name\":\"spark\",\"definition\":{}}"),
                409, "\"resourceType\":\"DEFINITION\",\"resourceName\":\"spark\"");
    rest_expect(alter(&f, FUNCTIONS "/f", "{\"action\":\"addDefinition\",\"name\":\"n\"}"), 400,
                "definition");
    rest_expect(rest_ask(&f, "POST", FUNCTIONS, "{}"), 400, "name");
    rest_expect(rest_ask(&f, "GET", FUNCTIONS "/nope", ""), 404,
                "\"resourceType\":\"FUNCTION\",\"resourceName\":\"nope\"");
    expect_str(rest_ask(&f, "DELETE", FUNCTIONS "/f", ""), "200 ");
    rest_expect(rest_ask(&f, "DELETE", FUNCTIONS "/f", ""), 404, "\"FUNCTION\"");
}
