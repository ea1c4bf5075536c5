/*
 * Promise: what the protocol has besides tables themselves: ways back of a schema, tokens, permissions. Each answers what is true today.
 */
#include "fixture.h"

#define ORDERS "/databases/db/tables/orders"

static void setup(struct rest_fixture *f, struct tarn_test *t)
{
    rest_init(f, t);
    expect_str(rest_ask(f, "POST", "/databases/db/tables",
                        "{\"identifier\":{\"database\":\"db\",\"object\":\"orders\"},\"schema\":"
                        "{\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"}],"
                        "\"partitionKeys\":[],\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":"
                        "\"1\"}}}"),
               "200 ");
}

TARN_TEST(rollback_schema, undoes_changes_that_nothing_was_written_by)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    for (int i = 0; i < 2; i++)
        expect_str(rest_ask(&f, "POST", ORDERS,
                            "{\"changes\":[{\"action\":\"updateComment\",\"comment\":\"x\"}]}"),
                   "200 ");
    expect_true(fixture_has(&f.service, "db.db/orders/schema/schema-2"));
    rest_expect(rest_ask(&f, "POST", ORDERS "/rollback-schema", "{\"schemaId\":3}"), 400,
                "Schema 3 of table db.orders does not exist.");
    rest_expect(rest_ask(&f, "POST", ORDERS "/rollback-schema", "{}"), 400, "schemaId");
    rest_expect(
        rest_ask(&f, "POST", "/databases/db/tables/nope/rollback-schema", "{\"schemaId\":0}"), 404,
        "\"TABLE\"");
    expect_str(rest_ask(&f, "POST", ORDERS "/rollback-schema", "{\"schemaId\":1}"), "200 ");
    expect_false(fixture_has(&f.service, "db.db/orders/schema/schema-2"));
    rest_expect(rest_ask(&f, "GET", ORDERS, ""), 200, "\"schemaId\":1");
}

TARN_TEST(token, adds_nothing_and_holds_for_a_day)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    const char *got = rest_ask(&f, "GET", ORDERS "/token", "");
    const char *ends = strstr(got, "\"expiresAtMillis\":");
    rest_expect(got, 200, "{\"token\":{},\"expiresAtMillis\":");
    expect_true(ends != NULL && strtoll(ends + 18, NULL, 10) >= tarn_clock_wall_ms() + 86400000);
    rest_expect(rest_ask(&f, "GET", "/databases/db/tables/nope/token", ""), 404, "\"TABLE\"");
}

TARN_TEST(permissions, are_those_of_who_has_a_token)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    expect_str(rest_ask(&f, "GET", "/permissions?resourceType=CATALOG_ALL", ""),
               "200 {\"permissions\":[{\"resource\":{\"type\":\"CATALOG_ALL\"},\"access\":\"ALL\","
               "\"principal\":\"anonymous\"}],\"nextPageToken\":null}");
    static const char *const none[] = {"/permissions?resourceType=TABLE&database=db&table=t",
                                       "/permissions?resourceType=CATALOG_ALL&principal=alice",
                                       "/permissions?resourceType=CATALOG&access=DROP",
                                       "/permissions?resourceType=CATALOG&pageToken=anonymous"};
    for (size_t i = 0; i < TARN_COUNT_OF(none); i++)
        expect_str(rest_ask(&f, "GET", none[i], ""),
                   "200 {\"permissions\":[],\"nextPageToken\":null}");
    rest_expect(rest_ask(&f, "GET", "/permissions", ""), 400, "CATALOG_ALL");
    rest_expect(rest_ask(&f, "POST", "/permissions/grant", "{}"), 501, "token_file");
    rest_expect(rest_ask(&f, "POST", "/permissions/revoke", "{}"), 501, "token_file");
}
