/*
 * Promise: what the protocol has besides tables themselves: ways back of a schema, replacing, tokens, permissions. Each answers what is true
 * today.
 */
#include "fixture.h"

#define ORDERS "/databases/db/tables/orders"

static void setup(struct rest_fixture *f, struct tarn_test *t)
{
    rest_init(f, t);
    expect_str(rest_create(
                   f, "orders",
                   "{\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"}],"
                   "\"partitionKeys\":[],\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\"}}"),
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

/* --- replace --- */

#define SCHEMA(fields, keys)                                                                       \
    "{\"schema\":{\"fields\":[" fields "],\"partitionKeys\":[],\"primaryKeys\":[" keys "],"        \
    "\"options\":{\"bucket\":\"2\"},\"comment\":null}}"
#define TEXT_KEY "{\"id\":0,\"name\":\"k\",\"type\":\"STRING NOT NULL\"}"

static struct tarn_status *commit(struct rest_fixture *f, const char *name, int64_t schema_id)
{
    struct tarn_test *t = f->service.t;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(
        tarn_catalog_table(t->op, f->service.service.catalog, S("db"), S("orders"), S(""), &table));
    struct tarn_manifest_entry e = {.partition = tarn_row_empty(),
                                    .total_buckets = schema_id == 0 ? 1 : 2,
                                    .file = {.name = S(name),
                                             .size = 7,
                                             .row_count = 3,
                                             .schema_id = schema_id,
                                             .creation_time_ms = 1700000000000,
                                             .delete_row_count = TARN_FILE_NONE,
                                             .first_row_id = TARN_FILE_NONE}};
    struct tarn_commit commit = {.user = S("u"),
                                 .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .append = {.entries = &e, .count = 1},
                                 .base_snapshot_id = TARN_SNAPSHOT_NONE};
    struct tarn_commit_result result = {0};
    return tarn_table_commit(t->op, table, &commit, &result);
}

static const char *uuid_of(struct rest_fixture *f)
{
    struct tarn_table_facts facts;
    expect_ok(tarn_service_get_table(f->service.t->op, &f->service.service, fixture_ref("orders"),
                                     &facts));
    return facts.uuid;
}

TARN_TEST(replace, empties_the_table_and_keeps_its_id_and_history)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    const char *uuid = uuid_of(&f);
    expect_ok(commit(&f, "a", 0));
    expect_str(rest_ask(&f, "POST", ORDERS "/replace", SCHEMA(TEXT_KEY, "\"k\"")), "200 ");
    const char *got = rest_ask(&f, "GET", ORDERS, "");
    rest_expect(got, 200, "\"schemaId\":1");
    rest_expect(got, 200,
                "{\"id\":1,\"name\":\"k\",\"type\":\"STRING NOT NULL\"}"); /* no column of before */
    expect_str(uuid_of(&f), uuid);
    got = rest_ask(&f, "GET", ORDERS "/snapshot", "");
    rest_expect(got, 200, "\"commitKind\": \"OVERWRITE\"");
    rest_expect(got, 200, "\"fileCount\":0");
    rest_expect(rest_ask(&f, "GET", ORDERS "/snapshots/1", ""), 200, "\"schemaId\": 0");
    /* A writer that began before it brings nothing but nulls. */
    expect_status(commit(&f, "late", 0), TARN_COMMIT_CONFLICT, "was replaced since");
    expect_ok(commit(&f, "b", 1));
    expect_str(
        rest_ask(&f, "POST", ORDERS,
                 "{\"changes\":[{\"action\":\"addColumn\",\"fieldNames\":[\"v\"],\"dataType\":"
                 "\"INT\",\"comment\":null,\"move\":null}]}"),
        "200 ");
    expect_ok(commit(&f, "c", 1)); /* older, but of the same table */
    expect_str(rest_ask(&f, "POST", ORDERS "/rollback",
                        "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":3}}"),
               "200 ");
    rest_expect(rest_ask(&f, "GET", ORDERS, ""), 200,
                "\"schemaId\":2"); /* nothing of it is undone */
    expect_str(rest_ask(&f, "POST", ORDERS "/rollback",
                        "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":1}}"),
               "200 ");
    rest_expect(rest_ask(&f, "GET", ORDERS, ""), 200, "\"schemaId\":0"); /* nothing else reads it */
    expect_ok(commit(&f, "d", 0));
}

TARN_TEST(replace, of_an_empty_table_makes_no_snapshot)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    for (int i = 0; i < 2; i++)
        expect_str(rest_ask(&f, "POST", ORDERS "/replace", SCHEMA(TEXT_KEY, "\"k\"")), "200 ");
    rest_expect(rest_ask(&f, "GET", ORDERS "/snapshot", ""), 404, "SNAPSHOT");
    rest_expect(rest_ask(&f, "GET", ORDERS, ""), 200, "\"schemaId\":2");
}

TARN_TEST(replace, that_cant_be_leaves_the_table_as_it_is)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    expect_ok(commit(&f, "a", 0));
    static const struct {
        const char *path, *body;
        int status;
        const char *part;
    } cases[] = {
        {ORDERS "/replace", "{}", 400, "schema"},
        {ORDERS "/replace", SCHEMA(TEXT_KEY, "\"nope\""), 400, "nope"},
        {ORDERS "/replace",
         "{\"schema\":{\"fields\":[" TEXT_KEY ",{\"id\":1,\"name\":\"d\",\"type\":\"INT\"}],"
         "\"partitionKeys\":[\"d\"],\"primaryKeys\":[],\"options\":{}}}",
         501, "partition columns"},
        {"/databases/db/tables/nope/replace", SCHEMA(TEXT_KEY, ""), 404, "\"TABLE\""},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++)
        rest_expect(rest_ask(&f, "POST", cases[i].path, cases[i].body), cases[i].status,
                    cases[i].part);
    expect_str(rest_ask(&f, "POST", ORDERS "/branches", "{\"branch\":\"b\",\"fromTag\":null}"),
               "200 ");
    rest_expect(rest_ask(&f, "POST", ORDERS "$branch_b/replace", SCHEMA(TEXT_KEY, "")), 400,
                "is a branch");
    rest_expect(rest_ask(&f, "GET", ORDERS "/snapshot", ""), 200, "\"fileCount\":1");
    rest_expect(rest_ask(&f, "GET", ORDERS, ""), 200, "\"schemaId\":0");
}

/* --- register --- */

#define REGISTER(name, path)                                                                       \
    "{\"identifier\":{\"database\":\"db\",\"object\":\"" name "\"},\"path\":\"" path "\"}"

TARN_TEST(register, takes_a_table_where_its_name_says_and_nowhere_else)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    setup(&f, t);
    const char *body = REGISTER("found", "db.db/found/");
    expect_ok(tarn_store_get(f.service.store, t->op, "db.db/orders/schema/schema-0", &schema));
    rest_expect(rest_ask(&f, "POST", "/databases/db/register", body), 400, "there is no table");
    expect_ok(tarn_store_put(f.service.store, t->op, "db.db/found/schema/schema-0",
                             tarn_buf_slice(&schema)));
    const char *other = REGISTER("found", "db.db/orders");
    rest_expect(rest_ask(&f, "POST", "/databases/db/register", other), 400, "can't lie in");
    rest_expect(
        rest_ask(&f, "POST", "/databases/db/register", REGISTER("found", "s3://x/db.db/found")),
        400, "outside the warehouse");
    rest_expect(rest_ask(&f, "POST", "/databases/db/register", "{}"), 400, "identifier");
    rest_expect(rest_ask(&f, "POST", "/databases/nope/register", body), 400, "can't lie in");
    rest_expect(
        rest_ask(&f, "POST", "/databases/nope/register", REGISTER("found", "nope.db/found")), 404,
        "\"DATABASE\"");
    expect_str(rest_ask(&f, "POST", "/databases/db/register", body), "200 ");
    rest_expect(rest_ask(&f, "POST", "/databases/db/register", body), 409,
                "\"resourceType\":\"TABLE\",\"resourceName\":\"found\"");
    rest_expect(rest_ask(&f, "GET", "/databases/db/tables/found", ""), 200, "\"name\":\"found\"");
}
