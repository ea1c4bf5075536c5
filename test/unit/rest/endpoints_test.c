/*
 * Promise: each endpoint answers as the protocol says: what is there, pages and patterns of lists, the error and its type where
 * something isn't; what Tarn doesn't have yet is 501; and what a client made is in the folder when it is told so.
 */
#include "fixture.h"

#define TABLES "/databases/db/tables"
#define COLUMNS                                                                                     \
    "{\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"}],\"partitionKeys\":[],"   \
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\",\"write-only\":\"false\"},\"comment\":" \
    "\"c\"}"

static const char *create(struct rest_fixture *f, const char *name)
{
    return rest_create(f, name, COLUMNS);
}

static void setup(struct rest_fixture *f, struct tarn_test *t)
{
    rest_init(f, t);
    static const char *const names[] = {"orders", "orders2", "t a+b"};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++)
        expect_str(create(f, names[i]), "200 ");
}

TARN_TEST(config, finds_the_warehouse_encoded_once_and_twice)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    f.service.service.warehouse_name = "my-wh.1";
    static const char *const good[] = {
        "/v1/config", "/v1/config?warehouse=", "/v1/config?warehouse=my-wh.1",
        "/v1/config?warehouse=my%2Dwh%2E1", "/v1/config?warehouse=my%252Dwh%252E1"};
    for (size_t i = 0; i < TARN_COUNT_OF(good); i++)
        rest_expect(rest_ask(&f, "GET", good[i], ""), 200, "\"defaults\":{\"prefix\":\"my-wh.1\"}");
    rest_expect(rest_ask(&f, "GET", "/v1/config?warehouse=other", ""), 400, "my-wh.1");
    rest_expect(rest_ask(&f, "GET", "/v1/other/databases", ""), 400, "/v1/config");
}

TARN_TEST(config, names_the_versions_to_a_client_that_is_too_old)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    f.agent = "okhttp/4.12.0";
    rest_expect(rest_ask(&f, "GET", "/v1/config", ""), 400, "versions 1.2 to 2.1");
    rest_expect(rest_ask(&f, "GET", "/v1/config?warehouse=w", ""), 200, "prefix");
    f.agent = "Apache-HttpClient/5.5.1 (Java/17.0.15)";
    rest_expect(rest_ask(&f, "GET", "/v1/config", ""), 200, "prefix");
}

TARN_TEST(databases, live)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    expect_str(
        rest_ask(&f, "POST", "/databases", "{\"name\":\"shop\",\"options\":{\"owner\":\"me\"}}"),
        "200 ");
    rest_expect(rest_ask(&f, "POST", "/databases", "{\"name\":\"shop\",\"options\":null}"), 409,
                "\"resourceType\":\"DATABASE\",\"resourceName\":\"shop\"");
    const char *got = rest_ask(&f, "GET", "/databases/shop", "");
    rest_expect(got, 200, "\"options\":{\"owner\":\"me\"},\"owner\":\"me\",\"createdAt\":");
    rest_expect(got, 200, "/shop.db\"");
    expect_str(rest_ask(&f, "GET", "/databases", ""),
               "200 {\"databases\":[\"db\",\"shop\"],\"nextPageToken\":null}");
    expect_str(rest_ask(&f, "GET", "/databases?maxResults=1", ""),
               "200 {\"databases\":[\"db\"],\"nextPageToken\":\"db\"}");
    expect_str(rest_ask(&f, "GET", "/databases?databaseNamePattern=s%25", ""),
               "200 {\"databases\":[\"shop\"],\"nextPageToken\":null}");
    expect_str(rest_ask(&f, "POST", "/databases/shop",
                        "{\"removals\":[\"owner\",\"nope\"],\"updates\":{\"a\":\"b\"}}"),
               "200 {\"removed\":[\"owner\"],\"updated\":[\"a\"],\"missing\":[\"nope\"]}");
    expect_str(rest_ask(&f, "DELETE", "/databases/shop", ""), "200 ");
    rest_expect(rest_ask(&f, "GET", "/databases/shop", ""), 404, "\"resourceType\":\"DATABASE\"");
    rest_expect(rest_ask(&f, "GET", "/databases/.hidden", ""), 404,
                "\"resourceType\":\"DATABASE\"");
}

TARN_TEST(databases, keep_their_id)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    struct tarn_database_info first, second, others;
    expect_ok(tarn_service_get_database(t->op, &f.service.service, S("db"), &first));
    expect_str(rest_ask(&f, "POST", "/databases/db", "{\"updates\":{\"a\":\"b\"}}"),
               "200 {\"removed\":[],\"updated\":[\"a\"],\"missing\":[]}");
    expect_ok(tarn_service_get_database(t->op, &f.service.service, S("db"), &second));
    expect_str(second.uuid, first.uuid);
    expect_int(second.created_ms, first.created_ms);
    /* One that others made */
    expect_ok(tarn_store_put(f.service.inner, t->op, "theirs.db/x", S("")));
    expect_ok(tarn_service_get_database(t->op, &f.service.service, S("theirs"), &others));
    expect_true(tarn_uuid_valid(S(others.uuid)));
    expect_ok(tarn_service_get_database(t->op, &f.service.service, S("theirs"), &second));
    expect_str(second.uuid, others.uuid);
}

TARN_TEST(tables, are_found_by_name_and_id)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    expect_true(fixture_has(&f.service, "db.db/orders/schema/schema-0"));
    struct tarn_table_facts facts;
    expect_ok(tarn_service_get_table(t->op, &f.service.service, fixture_ref("orders"), &facts));
    const char *by_name = rest_ask(&f, "GET", TABLES "/orders", "");
    const char *by_id =
        rest_ask(&f, "GET", tarn_arena_printf(t->arena, "/tables/id/%s", facts.uuid), "");
    expect_str(by_id, by_name);
    rest_expect(by_name, 200, "\"database\":\"db\",\"name\":\"orders\"");
    rest_expect(by_name, 200,
                "/db.db/orders\",\"isExternal\":false,\"schemaId\":0,\"schema\":" COLUMNS);
    rest_expect(rest_ask(&f, "GET", TABLES "/t+a%2Bb", ""), 200, "\"name\":\"t a+b\"");
    rest_expect(rest_ask(&f, "GET", TABLES "/t%20a%2Bb", ""), 200, "\"name\":\"t a+b\"");
    rest_expect(rest_ask(&f, "GET", TABLES "/nope", ""), 404,
                "\"resourceType\":\"TABLE\",\"resourceName\":\"nope\"");
    rest_expect(rest_ask(&f, "GET", "/tables/id/nope", ""), 404, "\"resourceType\":\"TABLE\"");
    rest_expect(rest_ask(&f, "GET", TABLES "/orders%24branch_dev", ""), 404, "no branch dev");
    rest_expect(rest_ask(&f, "GET", TABLES "/orders%24snapshots", ""), 404, "\"TABLE\"");
    rest_expect(rest_ask(&f, "GET", TABLES "/..%2F..%2Fx", ""), 404, "\"TABLE\"");
}

TARN_TEST(tables, are_listed_page_by_page)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    static const struct {
        const char *query, *answer;
    } lists[] = {
        {"", "[\"orders\",\"orders2\",\"t a+b\"],\"nextPageToken\":null"},
        {"?maxResults=0", "[\"orders\",\"orders2\",\"t a+b\"],\"nextPageToken\":null"},
        {"?maxResults=2", "[\"orders\",\"orders2\"],\"nextPageToken\":\"orders2\""},
        {"?maxResults=2&pageToken=orders2", "[\"t a+b\"],\"nextPageToken\":null"},
        {"?tableNamePattern=orders%25", "[\"orders\",\"orders2\"],\"nextPageToken\":null"},
        {"?tableNamePattern=orders", "[\"orders\"],\"nextPageToken\":null"},
        {"?tableNamePattern=order_", "[],\"nextPageToken\":null"},
        {"?tableNamePattern=order%5Cs2", "[\"orders2\"],\"nextPageToken\":null"},
        {"?tableNamePattern=o%25%25", "[\"orders\",\"orders2\"],\"nextPageToken\":null"},
        {"?tableType=table", "[\"orders\",\"orders2\",\"t a+b\"],\"nextPageToken\":null"},
        {"?tableType=format-table", "[],\"nextPageToken\":null"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(lists); i++)
        rest_expect(
            rest_ask(&f, "GET", tarn_arena_printf(t->arena, TABLES "%s", lists[i].query), ""), 200,
            lists[i].answer);
    rest_expect(rest_ask(&f, "GET", TABLES "?maxResults=a", ""), 400, "maxResults");
    rest_expect(rest_ask(&f, "GET", TABLES "?tableNamePattern=a%25b", ""), 400,
                "Can only support prefix sql like pattern query now.");
    rest_expect(rest_ask(&f, "GET", "/databases/nope/tables", ""), 404, "\"DATABASE\"");
    const char *details = rest_ask(&f, "GET", "/databases/db/table-details?maxResults=1", "");
    rest_expect(details, 200, "{\"tableDetails\":[{\"id\":");
    rest_expect(details, 200, "\"nextPageToken\":\"orders\"");
}

TARN_TEST(tables, of_all_databases_are_listed_by_their_full_names)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    expect_str(rest_ask(&f, "POST", "/databases", "{\"name\":\"db-2\"}"), "200 ");
    expect_str(
        rest_ask(&f, "POST", "/databases/db-2/tables",
                 "{\"identifier\":{\"database\":\"db-2\",\"object\":\"a\"},\"schema\":" COLUMNS
                 "}"),
        "200 ");
    expect_str(rest_ask(&f, "GET", "/tables?maxResults=2", ""),
               "200 {\"tables\":[{\"database\":\"db-2\",\"object\":\"a\"},{\"database\":\"db\","
               "\"object\":\"orders\"}],\"nextPageToken\":\"db.orders\"}");
    expect_str(rest_ask(&f, "GET", "/tables?maxResults=2&pageToken=db.orders", ""),
               "200 {\"tables\":[{\"database\":\"db\",\"object\":\"orders2\"},{\"database\":\"db\","
               "\"object\":\"t a+b\"}],\"nextPageToken\":null}");
    expect_str(
        rest_ask(&f, "GET", "/tables?databaseNamePattern=db-%25", ""),
        "200 {\"tables\":[{\"database\":\"db-2\",\"object\":\"a\"}],\"nextPageToken\":null}");
}

#define RENAME(from, to)                                                                           \
    "{\"source\":{\"database\":\"db\",\"object\":\"" from                                          \
    "\"},\"destination\":{\"database\":\"db\",\"object\":\"" to "\"}}"

TARN_TEST(tables, are_renamed_and_dropped)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    struct tarn_table_facts before, after;
    expect_ok(tarn_service_get_table(t->op, &f.service.service, fixture_ref("orders"), &before));
    rest_expect(create(&f, "orders"), 409,
                "\"resourceType\":\"TABLE\",\"resourceName\":\"orders\"");
    rest_expect(rest_ask(&f, "POST", "/tables/rename", RENAME("orders", "orders2")), 409,
                "\"resourceName\":\"orders2\"");
    rest_expect(rest_ask(&f, "POST", "/tables/rename", RENAME("nope", "x")), 404,
                "\"resourceName\":\"nope\"");
    rest_expect(rest_ask(&f, "POST", "/tables/rename", RENAME("orders", "a/b")), 400, "slash");
    expect_str(rest_ask(&f, "POST", "/tables/rename", RENAME("orders", "bills")), "200 ");
    expect_true(fixture_has(&f.service, "db.db/bills/schema/schema-0"));
    expect_ok(tarn_service_get_table(t->op, &f.service.service, fixture_ref("bills"), &after));
    expect_str(after.uuid, before.uuid);
    expect_str(rest_ask(&f, "DELETE", TABLES "/bills", ""), "200 ");
    rest_expect(rest_ask(&f, "DELETE", TABLES "/bills", ""), 404, "\"TABLE\"");
    expect_false(fixture_has(&f.service, "db.db/bills/schema/schema-0"));
    rest_expect(
        rest_ask(&f, "POST", "/databases/nope/tables",
                 "{\"identifier\":{\"database\":\"nope\",\"object\":\"a\"},\"schema\":" COLUMNS
                 "}"),
        404, "\"resourceType\":\"DATABASE\",\"resourceName\":\"nope\"");
    rest_expect(rest_ask(&f, "POST", TABLES, "{\"schema\":" COLUMNS "}"), 400, "identifier");
}

static void commit(struct rest_fixture *f, const char *file, int64_t low, int64_t high)
{
    struct tarn_slice packed = fixture_file(&f->service, "orders", file, low, high);
    struct tarn_manifest_entry *entries;
    expect_ok(tarn_service__unpack(f->service.t->op, &packed, 1, &entries));
    struct tarn_commit commit = {.user = S("u"),
                                 .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .base_snapshot_id = TARN_SNAPSHOT_NONE,
                                 .append = {.entries = entries, .count = 1}};
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(tarn_service__table(f->service.t->op, &f->service.service, fixture_ref("orders"),
                                  TARN_ACTION_WRITE, &table));
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(f->service.t->op, table, &commit, &result));
}

TARN_TEST(snapshots, are_their_files_own_text)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    static const char *const none[] = {"/snapshot", "/snapshots/LATEST", "/snapshots/EARLIEST",
                                       "/snapshots/1", "/snapshots/some-tag"};
    for (size_t i = 0; i < TARN_COUNT_OF(none); i++)
        rest_expect(
            rest_ask(&f, "GET", tarn_arena_printf(t->arena, TABLES "/orders%s", none[i]), ""), 404,
            "\"resourceType\":\"SNAPSHOT\"");
    expect_str(rest_ask(&f, "GET", TABLES "/orders/snapshots", ""),
               "200 {\"snapshots\":[],\"nextPageToken\":null}");
    commit(&f, "f1", 1, 3);
    commit(&f, "f2", 4, 4);
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};
    expect_ok(tarn_store_get(f.service.inner, t->op, "db.db/orders/snapshot/snapshot-1", &first));
    expect_ok(tarn_store_get(f.service.inner, t->op, "db.db/orders/snapshot/snapshot-2", &second));
    expect_str(
        rest_ask(&f, "GET", TABLES "/orders/snapshot", ""),
        tarn_arena_printf(t->arena,
                          "200 {\"snapshot\":{\"snapshot\":%s,\"recordCount\":4,"
                          "\"fileSizeInBytes\":8,\"fileCount\":2,\"lastFileCreationTime\":0}}",
                          tarn_buf_cstr(&second)));
    expect_str(rest_ask(&f, "GET", TABLES "/orders/snapshots", ""),
               tarn_arena_printf(t->arena, "200 {\"snapshots\":[%s,%s],\"nextPageToken\":null}",
                                 tarn_buf_cstr(&first), tarn_buf_cstr(&second)));
    expect_str(rest_ask(&f, "GET", TABLES "/orders/snapshots?maxResults=1", ""),
               tarn_arena_printf(t->arena, "200 {\"snapshots\":[%s],\"nextPageToken\":\"1\"}",
                                 tarn_buf_cstr(&first)));
    const char *one = tarn_arena_printf(t->arena, "200 {\"snapshot\":%s}", tarn_buf_cstr(&first));
    expect_str(rest_ask(&f, "GET", TABLES "/orders/snapshots/1", ""), one);
    expect_str(rest_ask(&f, "GET", TABLES "/orders/snapshots/EARLIEST", ""), one);
    rest_expect(rest_ask(&f, "GET", TABLES "/orders/snapshots/3", ""), 404, "\"SNAPSHOT\"");
    /* A tag: the snapshot, and when it was made */
    expect_ok(tarn_store_put(f.service.inner, t->op, "db.db/orders/tag/tag-v 1",
                             S(tarn_arena_printf(t->arena, "{\"tagCreateTime\":[2026,1,1,0,0],%s",
                                                 tarn_buf_cstr(&first) + 1))));
    rest_expect(rest_ask(&f, "GET", TABLES "/orders/snapshots/v+1", ""), 200, "\"id\"");
    expect_null(strstr(rest_ask(&f, "GET", TABLES "/orders/snapshots/v+1", ""), "tagCreateTime"));
}

TARN_TEST(consumers, are_listed_and_reset)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    commit(&f, "f1", 1, 3);
    expect_str(rest_ask(&f, "POST", TABLES "/orders/consumers/reset",
                        "{\"consumerId\":\"c1\",\"nextSnapshotId\":1}"),
               "200 ");
    expect_str(rest_ask(&f, "POST", TABLES "/orders/consumers/reset",
                        "{\"consumerId\":\"c2\",\"nextSnapshotId\":2}"),
               "200 ");
    expect_str(
        rest_ask(&f, "GET", TABLES "/orders/consumers?maxResults=1", ""),
        "200 {\"consumers\":[{\"consumerId\":\"c1\",\"nextSnapshot\":1}],\"nextPageToken\":\"c1\"}");
    expect_str(
        rest_ask(&f, "GET", TABLES "/orders/consumers?pageToken=c1", ""),
        "200 {\"consumers\":[{\"consumerId\":\"c2\",\"nextSnapshot\":2}],\"nextPageToken\":null}");
    for (int i = 0; i < 2; i++) /* gone is gone */
        expect_str(rest_ask(&f, "POST", TABLES "/orders/consumers/reset",
                            "{\"consumerId\":\"c1\",\"nextSnapshotId\":null}"),
                   "200 ");
    rest_expect(rest_ask(&f, "POST", TABLES "/orders/consumers/reset", "{}"), 400, "consumerId");
    expect_false(fixture_has(&f.service, "db.db/orders/consumer/consumer-c1"));
    expect_true(fixture_has(&f.service, "db.db/orders/consumer/consumer-c2"));
}

TARN_TEST(absent, is_501)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    rest_expect(rest_ask(&f, "GET", "/no/such/endpoint", ""), 501, "\"code\":501");
    rest_expect(rest_ask(&f, "DELETE", "/databases", ""), 501, "\"code\":501");
    expect_str(rest_ask(&f, "POST", TABLES "/orders/auth", "{\"select\":[\"id\"]}"), "200 {}");
    rest_expect(rest_ask(&f, "POST", TABLES "/nope/auth", "{}"), 404, "\"TABLE\"");
}

static const char *alter(struct rest_fixture *f, const char *changes)
{
    return rest_ask(f, "POST", TABLES "/orders",
                    tarn_arena_printf(f->service.t->arena, "{\"changes\":[%s]}", changes));
}

TARN_TEST(alter, takes_every_change_of_the_protocol)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    /* As Java 1.4.2 sends them, and pypaimon, whose action comes last. */
    expect_str(
        alter(
            &f,
            "{\"action\":\"addColumn\",\"fieldNames\":[\"z\"],\"dataType\":\"BIGINT\",\"comment\":\"c\",\"move\":"
            "{\"fieldName\":\"z\",\"referenceFieldName\":\"id\",\"type\":\"BEFORE\"}},"
            "{\"fieldNames\":[\"r\"],\"dataType\":{\"type\":\"ROW\",\"fields\":[{\"id\":0,\"name\":\"x\",\"type\":"
            "\"INT\"},{\"id\":1,\"name\":\"y\",\"type\":{\"type\":\"ARRAY\",\"element\":\"INT\"}}]},\"comment\":null,"
            "\"move\":null,\"action\":\"addColumn\"},"
            "{\"action\":\"updateColumnType\",\"fieldNames\":[\"r\",\"y\",\"element\"],\"newDataType\":\"BIGINT\","
            "\"keepNullability\":true},"
            "{\"action\":\"dropColumn\",\"fieldNames\":[\"r\",\"x\"]},"
            "{\"action\":\"renameColumn\",\"fieldNames\":[\"z\"],\"newName\":\"zz\"},"
            "{\"action\":\"updateColumnComment\",\"fieldNames\":[\"zz\"],\"newComment\":\"d\"},"
            "{\"action\":\"updateColumnDefaultValue\",\"fieldNames\":[\"zz\"],\"newDefaultValue\":\"7\"},"
            "{\"action\":\"updateColumnPosition\",\"move\":{\"fieldName\":\"zz\",\"referenceFieldName\":null,"
            "\"type\":\"LAST\"}},"
            "{\"action\":\"setOption\",\"key\":\"k\",\"value\":\"v\"},"
            "{\"action\":\"removeOption\",\"key\":\"nope\"},"
            "{\"action\":\"updateComment\",\"comment\":null}"),
        "200 ");
    const char *got = rest_ask(&f, "GET", TABLES "/orders", "");
    rest_expect(
        got, 200,
        "\"schemaId\":1,\"schema\":{\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"},"
        "{\"id\":2,\"name\":\"r\",\"type\":{\"type\":\"ROW\",\"fields\":[{\"id\":4,\"name\":\"y\",\"type\":"
        "{\"type\":\"ARRAY\",\"element\":\"BIGINT\"}}]}},{\"id\":1,\"name\":\"zz\",\"type\":\"BIGINT\","
        "\"description\":\"d\",\"defaultValue\":\"7\"}]");
    rest_expect(
        got, 200,
        "\"options\":{\"bucket\":\"1\",\"write-only\":\"false\",\"k\":\"v\"},\"comment\":null");
    expect_true(fixture_has(&f.service, "db.db/orders/schema/schema-1"));
    expect_str(
        alter(
            &f,
            "{\"action\":\"updateColumnNullability\",\"fieldNames\":[\"zz\"],\"newNullability\":true}"),
        "200 ");
    expect_str(
        alter(
            &f,
            "{\"action\":\"dropPrimaryKey\"},{\"action\":\"setOption\",\"key\":\"bucket\",\"value\":\"-1\"}"),
        "200 ");
    rest_expect(rest_ask(&f, "GET", TABLES "/orders", ""), 200, "\"primaryKeys\":[]");
}

TARN_TEST(alter, names_the_column_that_is_wrong)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    rest_expect(alter(&f, "{\"action\":\"dropColumn\",\"fieldNames\":[\"nope\"]}"), 404,
                "\"resourceType\":\"COLUMN\",\"resourceName\":\"nope\"");
    rest_expect(
        alter(&f, "{\"action\":\"addColumn\",\"fieldNames\":[\"id\"],\"dataType\":\"INT\"}"), 409,
        "\"resourceType\":\"COLUMN\",\"resourceName\":\"id\"");
    static const struct {
        const char *change, *part;
    } bad[] = {
        {"{\"action\":\"dropColumn\",\"fieldNames\":[\"id\"]}", "id"},
        {"{\"action\":\"dropColumn\"}", "fieldNames"},
        {"{\"action\":\"grow\"}", "grow"},
        {"{}", "action"},
        {"7", "action"},
        {"{\"action\":\"addColumn\",\"fieldNames\":[\"a\"]}", "dataType"},
        {"{\"action\":\"addColumn\",\"fieldNames\":[\"a\"],\"dataType\":\"SMALL\"}", "dataType"},
        {"{\"action\":\"updateColumnPosition\"}", "move"},
        {"{\"action\":\"updateColumnPosition\",\"move\":{\"fieldName\":\"id\",\"type\":\"UP\"}}",
         "UP"},
        {"{\"action\":\"setOption\",\"key\":\"bucket\",\"value\":\"x\"}", "bucket"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        rest_expect(alter(&f, bad[i].change), 400, bad[i].part);
    rest_expect(alter(&f, ""), 400, "changes");
    rest_expect(
        rest_ask(&f, "POST", TABLES "/nope", "{\"changes\":[{\"action\":\"dropPrimaryKey\"}]}"),
        404, "\"resourceType\":\"TABLE\"");
    expect_false(fixture_has(&f.service, "db.db/orders/schema/schema-1"));
}

TARN_TEST(tags, are_made_listed_told_and_dropped)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    rest_expect(rest_ask(&f, "POST", TABLES "/orders/tags", "{\"tagName\":\"v1\"}"), 404,
                "\"resourceType\":\"SNAPSHOT\"");
    commit(&f, "f1", 1, 3);
    commit(&f, "f2", 4, 4);
    expect_str(rest_ask(&f, "POST", TABLES "/orders/tags",
                        "{\"tagName\":\"v 1\",\"snapshotId\":1,\"timeRetained\":\"1d\"}"),
               "200 ");
    expect_str(rest_ask(&f, "POST", TABLES "/orders/tags",
                        "{\"tagName\":\"v2\",\"snapshotId\":null,\"timeRetained\":null}"),
               "200 ");
    rest_expect(rest_ask(&f, "POST", TABLES "/orders/tags", "{\"tagName\":\"v2\"}"), 409,
                "\"resourceType\":\"TAG\",\"resourceName\":\"v2\"");
    rest_expect(
        rest_ask(&f, "POST", TABLES "/orders/tags", "{\"tagName\":\"v3\",\"snapshotId\":9}"), 404,
        "\"resourceType\":\"SNAPSHOT\"");
    rest_expect(
        rest_ask(&f, "POST", TABLES "/orders/tags", "{\"tagName\":\"v3\",\"timeRetained\":\"x\"}"),
        400, "timeRetained");
    rest_expect(rest_ask(&f, "POST", TABLES "/orders/tags", "{\"tagName\":\"a/b\"}"), 400, "name");
    expect_true(fixture_has(&f.service, "db.db/orders/tag/tag-v 1"));
    expect_str(rest_ask(&f, "GET", TABLES "/orders/tags", ""),
               "200 {\"tags\":[\"v 1\",\"v2\"],\"nextPageToken\":null}");
    expect_str(rest_ask(&f, "GET", TABLES "/orders/tags?maxResults=1", ""),
               "200 {\"tags\":[\"v 1\"],\"nextPageToken\":\"v 1\"}");
    expect_str(rest_ask(&f, "GET", TABLES "/orders/tags?tagNamePrefix=v2%25", ""),
               "200 {\"tags\":[\"v2\"],\"nextPageToken\":null}");
    const char *got = rest_ask(&f, "GET", TABLES "/orders/tags/v+1", "");
    rest_expect(got, 200, "{\"tagName\":\"v 1\",\"snapshot\":{");
    rest_expect(got, 200, "\"tagTimeRetained\":\"PT24H\"}");
    expect_null(strstr(rest_ask(&f, "GET", TABLES "/orders/tags/v2", ""), "tagTimeRetained"));
    expect_str(rest_ask(&f, "DELETE", TABLES "/orders/tags/v+1", ""), "200 ");
    rest_expect(rest_ask(&f, "DELETE", TABLES "/orders/tags/v+1", ""), 404,
                "\"resourceType\":\"TAG\",\"resourceName\":\"v 1\"");
    rest_expect(rest_ask(&f, "GET", TABLES "/orders/tags/v+1", ""), 404,
                "\"resourceType\":\"TAG\"");
    rest_expect(rest_ask(&f, "GET", TABLES "/nope/tags", ""), 404, "\"resourceType\":\"TABLE\"");
}

static const char *roll_back(struct rest_fixture *f, const char *body)
{
    return rest_ask(f, "POST", TABLES "/orders/rollback", body);
}

TARN_TEST(roll_back, goes_to_a_snapshot_or_a_tag)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    for (int i = 1; i <= 4; i++)
        commit(&f, tarn_arena_printf(t->arena, "f%d", i), i, i);
    expect_str(rest_ask(&f, "POST", TABLES "/orders/tags", "{\"tagName\":\"v1\",\"snapshotId\":1}"),
               "200 ");
    rest_expect(
        roll_back(&f, "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":1},\"fromSnapshot\":3}"),
        500, "is 4, not 3");
    rest_expect(roll_back(&f, "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":7}}"), 404,
                "\"resourceType\":\"SNAPSHOT\",\"resourceName\":\"7\"");
    rest_expect(roll_back(&f, "{\"instant\":{\"type\":\"tag\",\"tagName\":\"nope\"}}"), 404,
                "\"resourceType\":\"TAG\",\"resourceName\":\"nope\"");
    rest_expect(roll_back(&f, "{}"), 400, "instant");
    rest_expect(roll_back(&f, "{\"instant\":{}}"), 400, "");
    expect_str(
        roll_back(&f,
                  "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":3},\"fromSnapshot\":null}"),
        "200 ");
    expect_false(fixture_has(&f.service, "db.db/orders/snapshot/snapshot-4"));
    expect_str(roll_back(&f, "{\"instant\":{\"type\":\"tag\",\"tagName\":\"v1\"}}"), "200 ");
    expect_false(fixture_has(&f.service, "db.db/orders/snapshot/snapshot-2"));
    expect_true(fixture_has(&f.service, "db.db/orders/snapshot/snapshot-1"));
}

/* The files f1 and f2 as one, by this user. */
static void compact(struct rest_fixture *f, const char *user)
{
    struct tarn_slice packed[3] = {fixture_file(&f->service, "orders", "f1", 1, 1),
                                   fixture_file(&f->service, "orders", "f2", 2, 2),
                                   fixture_file(&f->service, "orders", "c", 1, 2)};
    struct tarn_manifest_entry *entries;
    expect_ok(tarn_service__unpack(f->service.t->op, packed, 3, &entries));
    entries[0].kind = entries[1].kind = TARN_ENTRY_DELETE;
    entries[2].file.level = 5;
    struct tarn_commit c = {.user = S(user),
                            .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                            .watermark = TARN_SNAPSHOT_NONE,
                            .base_snapshot_id = TARN_SNAPSHOT_NONE,
                            .compact = {.entries = entries, .count = 3}};
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(tarn_service__table(f->service.t->op, &f->service.service, fixture_ref("orders"),
                                  TARN_ACTION_WRITE, &table));
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(f->service.t->op, table, &c, &result));
    expect_int(result.compact_snapshot_id, 3);
}

#define UNDO "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":2},\"fromSnapshot\":3}"

TARN_TEST(roll_back, undoes_only_a_compaction_of_the_daemon_that_nobody_has_passed)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    commit(&f, "f1", 1, 1);
    commit(&f, "f2", 2, 2);
    rest_expect(
        roll_back(&f, "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":1},\"fromSnapshot\":2}"),
        500, "is none");
    compact(&f, "somebody");
    rest_expect(roll_back(&f, UNDO), 500, "another writer's");
    expect_str(roll_back(&f, "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":2}}"), "200 ");
    compact(&f, TARN_COMPACTION_USER);
    expect_str(rest_ask(&f, "POST", TABLES "/orders/tags", "{\"tagName\":\"v3\"}"), "200 ");
    rest_expect(roll_back(&f, UNDO), 500, "held by a tag");
    expect_str(rest_ask(&f, "DELETE", TABLES "/orders/tags/v3", ""), "200 ");
    expect_str(rest_ask(&f, "POST", TABLES "/orders/consumers/reset",
                        "{\"consumerId\":\"c\",\"nextSnapshotId\":4}"),
               "200 ");
    rest_expect(roll_back(&f, UNDO), 500, "held by a consumer");
    expect_str(rest_ask(&f, "POST", TABLES "/orders/consumers/reset", "{\"consumerId\":\"c\"}"),
               "200 ");
    expect_str(roll_back(&f, UNDO), "200 ");
    expect_false(fixture_has(&f.service, "db.db/orders/snapshot/snapshot-3"));
    expect_true(fixture_has(&f.service, "db.db/orders/snapshot/snapshot-2"));
}

/* A compaction of the whole table, leased to a worker. */
static struct tarn_lease_ref lease_compaction(struct rest_fixture *f, const char *worker)
{
    struct tarn_op *op = f->service.t->op;
    struct tarn_maintain *maintain = f->service.service.maintain;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_job_info *picks;
    struct tarn_task *tasks;
    size_t count;
    expect_ok(tarn_service__table(op, &f->service.service, fixture_ref("orders"), TARN_ACTION_WRITE,
                                  &table));
    struct tarn_compact_order order = {.table = table, .full = true};
    expect_ok(tarn_maintain_compact(op, maintain, &order, &picks, &count));
    expect_ok(tarn_maintain_poll(op, maintain, worker, 1, 0, &tasks, &count));
    expect_int(count, 1);
    tarn_table_drop_ref(&tasks[0].table);
    return (struct tarn_lease_ref){tasks[0].id, tasks[0].token};
}

/* How that is done: test/unit/maintain/queue_test.c. */
TARN_TEST(roll_back, has_the_bucket_left_alone_whose_compaction_it_undid)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    const char *worker = fixture_worker(&f.service, "127.0.0.1:1");
    commit(&f, "f1", 1, 1);
    commit(&f, "f2", 2, 2);
    struct tarn_lease_ref lease = lease_compaction(&f, worker);
    compact(&f, TARN_COMPACTION_USER);
    int64_t *lost;
    size_t lost_count;
    expect_ok(tarn_maintain_renew(t->op, f.service.service.maintain, worker, &lease, 1, &lost,
                                  &lost_count));
    expect_int(lost_count, 0);
    expect_str(roll_back(&f, UNDO), "200 ");
    expect_ok(tarn_maintain_renew(t->op, f.service.service.maintain, worker, &lease, 1, &lost,
                                  &lost_count));
    expect_int(lost_count, 1);
}

static void create_partitioned(struct rest_fixture *f)
{
    expect_str(
        rest_ask(
            f, "POST", TABLES,
            "{\"identifier\":{\"database\":\"db\",\"object\":\"p\"},\"schema\":{\"fields\":["
            "{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT\"},{\"id\":1,\"name\":\"d t\",\"type\":"
            "\"STRING\"},{\"id\":2,\"name\":\"h\",\"type\":\"INT\"}],\"partitionKeys\":[\"d t\",\"h\"],"
            "\"primaryKeys\":[],\"options\":{\"bucket\":\"-1\"}}}"),
        "200 ");
}

/* dt NULL: a null. */
static void commit_partition(struct rest_fixture *f, const char *dt, int64_t hour, const char *file)
{
    static const struct tarn_type text = {.id = TARN_TYPE_VARCHAR,
                                          .nullable = true,
                                          .length = TARN_TYPE_LENGTH_MAX},
                                  number = {.id = TARN_TYPE_INT, .nullable = true};
    const struct tarn_type *types[] = {&text, &number};
    struct tarn_value values[] = {{.bytes = S(dt), .is_null = dt == NULL}, {.integer = hour}};
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    tarn_row_serialize(types, values, 2, &row);
    struct tarn_slice packed = fixture_file(&f->service, "p", file, 1, 5);
    struct tarn_manifest_entry *entry;
    expect_ok(tarn_service__unpack(f->service.t->op, &packed, 1, &entry));
    entry->partition = tarn_buf_slice(&row);
    entry->bucket = 0;
    entry->total_buckets = -1;
    entry->file.min_key = entry->file.max_key = tarn_row_empty();
    entry->file.key_stats = tarn_stats_empty();
    entry->file.creation_time_ms = 1700000000000;
    struct tarn_commit commit = {.user = S("u"),
                                 .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .base_snapshot_id = TARN_SNAPSHOT_NONE,
                                 .append = {.entries = entry, .count = 1}};
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(tarn_service__table(f->service.t->op, &f->service.service, fixture_ref("p"),
                                  TARN_ACTION_WRITE, &table));
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(f->service.t->op, table, &commit, &result));
}

TARN_TEST(partitions, are_listed_by_name_with_their_sums)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    create_partitioned(&f);
    expect_str(rest_ask(&f, "GET", TABLES "/p/partitions", ""),
               "200 {\"partitions\":[],\"nextPageToken\":null}");
    commit_partition(&f, "b/c=d", 3, "f1");
    commit_partition(&f, NULL, 4, "f2");
    commit_partition(&f, "b/c=d", 3, "f3");
    const char *both = rest_ask(&f, "GET", TABLES "/p/partitions", "");
    rest_expect(
        both, 200,
        "{\"partitions\":[{\"spec\":{\"d t\":\"__DEFAULT_PARTITION__\",\"h\":\"4\"},\"recordCount\":5,"
        "\"fileSizeInBytes\":4,\"fileCount\":1,\"lastFileCreationTime\":");
    rest_expect(
        both, 200,
        "{\"spec\":{\"d t\":\"b/c=d\",\"h\":\"3\"},\"recordCount\":10,\"fileSizeInBytes\":8,\"fileCount\":2,");
    rest_expect(rest_ask(&f, "GET", TABLES "/p/partitions?maxResults=1", ""), 200,
                "\"nextPageToken\":\"d t=__DEFAULT_PARTITION__/h=4\"");
    const char *second = rest_ask(
        &f, "GET", TABLES "/p/partitions?pageToken=d+t%3D__DEFAULT_PARTITION__%2Fh%3D4", "");
    rest_expect(second, 200, "{\"partitions\":[{\"spec\":{\"d t\":\"b/c=d\",\"h\":\"3\"}");
    expect_str(rest_ask(&f, "GET", TABLES "/p/partitions?partitionNamePattern=d+t%3Db%25", ""),
               second);
    expect_str(
        rest_ask(
            &f, "POST", TABLES "/p/partitions/list-by-names",
            "{\"specs\":[{\"h\":\"3\",\"d t\":\"b/c=d\"},{\"d t\":\"no\",\"h\":\"3\"},{\"h\":\"3\"}]}"),
        second);
    expect_str(
        rest_ask(&f, "POST", TABLES "/p/partitions/list-by-filter",
                 "{\"filter\":\"{}\",\"partitionNamePattern\":\"d t=b%\",\"maxResults\":null}"),
        second);
    rest_expect(rest_ask(&f, "POST", TABLES "/p/partitions/list-by-names", "{\"specs\":[7]}"), 400,
                "specs");
    commit(&f, "f1", 1, 3);
    expect_str(rest_ask(&f, "GET", TABLES "/orders/partitions", ""),
               "200 {\"partitions\":[],\"nextPageToken\":null}");
    rest_expect(rest_ask(&f, "GET", TABLES "/nope/partitions", ""), 404, "\"TABLE\"");
}
