/*
 * Promise: partitions that somebody made are listed without files until they are dropped; what is marked as done stays so until the partition
 * goes, whoever makes it go, and nothing is half done; a drop is one commit of all rows, and what isn't there is said.
 */
#include "fixture.h"

#define TABLES "/databases/db/tables"
#define T TABLES "/t"
#define FACTS                                                                                      \
    "\"recordCount\":0,\"fileSizeInBytes\":0,\"fileCount\":0,\"lastFileCreationTime\":0,\"totalBuckets\":0"

static void setup(struct rest_fixture *f, struct tarn_test *t)
{
    rest_init(f, t);
    expect_str(rest_create(f, "t",
                           "{\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"},"
                           "{\"id\":1,\"name\":\"d\",\"type\":\"DATE\"},{\"id\":2,\"name\":\"h\","
                           "\"type\":\"INT\"}],\"partitionKeys\":[\"d\",\"h\"],\"primaryKeys\":[],"
                           "\"options\":{\"bucket\":\"-1\"}}"),
               "200 ");
}

/* A partition of day 19723 (2024-01-01) and that hour, as clients name it. */
#define DAY(h) "{\"d\":\"19723\",\"h\":\"" h "\"}"
#define CREATE(specs, ignore) "{\"partitionSpecs\":[" specs "],\"ignoreIfExists\":" ignore "}"
#define DROP(specs, ignore) "{\"partitionSpecs\":[" specs "],\"ignoreIfNotExists\":" ignore "}"
#define MARK(specs) "{\"specs\":[" specs "]}"

/* A snapshot that adds a file of partition (2024-01-01, hour), or drops what matches. */
static int64_t append(struct rest_fixture *f, int32_t hour, const char *name)
{
    struct tarn_test *t = f->service.t;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    static const struct tarn_type date = {.id = TARN_TYPE_DATE}, whole = {.id = TARN_TYPE_INT};
    const struct tarn_type *types[] = {&date, &whole};
    struct tarn_value values[] = {{.integer = 19723}, {.integer = hour}};
    tarn_row_serialize(types, values, 2, &row);
    expect_ok(
        tarn_catalog_table(t->op, f->service.service.catalog, S("db"), S("t"), S(""), &table));
    struct tarn_manifest_entry e = {.partition = tarn_buf_slice(&row),
                                    .total_buckets = -1,
                                    .file = {.name = S(name),
                                             .size = 7,
                                             .row_count = 3,
                                             .creation_time_ms = 1700000000000,
                                             .delete_row_count = TARN_FILE_NONE,
                                             .first_row_id = TARN_FILE_NONE}};
    struct tarn_commit commit = {.user = S("u"),
                                 .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .append = {.entries = &e, .count = 1},
                                 .base_snapshot_id = TARN_SNAPSHOT_NONE};
    struct tarn_commit_result result = {0};
    expect_ok(tarn_table_commit(t->op, table, &commit, &result));
    return result.append_snapshot_id;
}

static const char *list(struct rest_fixture *f)
{
    return rest_ask(f, "GET", T "/partitions", "");
}

static bool has(const char *answer, const char *part)
{
    return strstr(answer, part) != NULL;
}

TARN_TEST(partitions, without_files_are_listed_until_they_are_dropped)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    expect_str(
        rest_ask(&f, "POST", T "/partitions", CREATE(DAY("3") "," DAY("03") "," DAY("4"), "false")),
        "200 {\"created\":[" DAY("3") "," DAY("4") "],\"existed\":[]}");
    const char *got = list(&f);
    expect_true(has(got, "{\"partitions\":[{\"spec\":" DAY("3") "," FACTS ",\"done\":false,"
                                                                "\"createdAt\":"));
    expect_true(has(got, DAY("4")));
    rest_expect(rest_ask(&f, "POST", T "/partitions", CREATE(DAY("5") "," DAY("4"), "false")), 409,
                "\"resourceType\":\"PARTITION\"");
    expect_false(has(list(&f), DAY("5"))); /* all or none */
    expect_str(rest_ask(&f, "POST", T "/partitions", CREATE(DAY("5") "," DAY("4"), "true")),
               "200 {\"created\":[" DAY("5") "],\"existed\":[" DAY("4") "]}");
    rest_expect(rest_ask(&f, "POST", T "/partitions/drop", DROP(DAY("4") "," DAY("9"), "false")),
                404, "d=19723/h=9");
    expect_true(has(list(&f), DAY("4")));
    expect_str(rest_ask(&f, "POST", T "/partitions/drop", DROP(DAY("4") "," DAY("9"), "true")),
               "200 {\"dropped\":[" DAY("4") "],\"missing\":[" DAY("9") "]}");
    expect_false(has(list(&f), DAY("4")));
    rest_expect(rest_ask(&f, "GET", T "/snapshot", ""), 404,
                "SNAPSHOT"); /* nothing was committed */
    expect_str(rest_ask(&f, "POST", T "/partitions/drop", DROP("{\"d\":\"2024-01-01\"}", "false")),
               "200 {\"dropped\":[" DAY("3") "," DAY("5") "],\"missing\":[]}");
    expect_str(list(&f), "200 {\"partitions\":[],\"nextPageToken\":null}");
}

TARN_TEST(partitions, done_goes_with_the_partition)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    append(&f, 1, "a");
    append(&f, 2, "b");
    expect_str(rest_ask(&f, "POST", T "/partitions/mark", MARK(DAY("1") "," DAY("7"))), "200 ");
    const char *got = list(&f);
    expect_true(has(got, "\"spec\":" DAY("1") ",\"recordCount\":3"));
    expect_true(has(got, "\"done\":true"));
    expect_true(has(strstr(got, DAY("2")), "\"done\":false"));
    expect_false(has(got, DAY("7"))); /* what isn't there isn't marked */
    append(&f, 1, "late");
    expect_true(has(list(&f), "\"done\":true"));
    expect_str(rest_ask(&f, "POST", T "/partitions/drop", DROP(DAY("1"), "false")),
               "200 {\"dropped\":[" DAY("1") "],\"missing\":[]}");
    rest_expect(rest_ask(&f, "GET", T "/snapshot", ""), 200, "\"commitKind\": \"OVERWRITE\"");
    append(&f, 1, "new");
    expect_false(has(list(&f), "\"done\":true"));
}

/* The same where a commit of somebody else made it go, who knows nothing of marks. */
TARN_TEST(partitions, that_others_emptied_are_not_done_when_they_come_again)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    append(&f, 1, "a");
    append(&f, 2, "b");
    expect_str(rest_ask(&f, "POST", T "/partitions/mark", MARK(DAY("1") "," DAY("2"))), "200 ");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(tarn_catalog_table(t->op, f.service.service.catalog, S("db"), S("t"), S(""), &table));
    struct tarn_slice values[] = {S("2024-01-01"), S("1")};
    bool no[] = {false, false}, yes[] = {true, true};
    struct tarn_partition_spec spec = {values, no, yes};
    struct tarn_commit commit = {.user = S("other"),
                                 .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .kind = TARN_COMMIT_OVERWRITE,
                                 .overwrite = TARN_OVERWRITE_PARTITIONS,
                                 .partitions = &spec,
                                 .partition_count = 1,
                                 .base_snapshot_id = TARN_SNAPSHOT_NONE};
    struct tarn_commit_result result = {0};
    expect_ok(tarn_table_commit(t->op, table, &commit, &result));
    expect_false(has(list(&f), DAY("1")));
    append(&f, 1, "again");
    const char *got = list(&f);
    expect_true(has(strstr(got, DAY("1")), "\"done\":false"));
    expect_true(has(strstr(got, DAY("2")), "\"done\":true"));
    expect_str(rest_ask(&f, "POST", T "/partitions/mark", MARK(DAY("1"))), "200 ");
    expect_true(has(strstr(list(&f), DAY("1")), "\"done\":true"));
}

TARN_TEST(partitions, that_are_named_wrongly_change_nothing)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    append(&f, 1, "a");
    static const struct {
        const char *path, *body, *part;
    } cases[] = {
        {"/partitions", CREATE("{\"d\":\"19723\"}", "true"), "all 2 of its columns"},
        {"/partitions", CREATE("{\"d\":\"19723\",\"h\":\"x\"}", "true"), "partition column h"},
        {"/partitions", CREATE("{\"nope\":\"1\"}", "true"), "no partition column"},
        {"/partitions", CREATE("7", "true"), "partitionSpecs"},
        {"/partitions/mark", MARK("{\"nope\":\"1\"}"), "no partition column"},
        {"/partitions/drop", DROP("{}", "true"), "by no column"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++)
        rest_expect(rest_ask(&f, "POST", tarn_arena_printf(t->arena, "%s%s", T, cases[i].path),
                             cases[i].body),
                    400, cases[i].part);
    rest_expect(rest_ask(&f, "POST", TABLES "/nope/partitions/mark", MARK(DAY("1"))), 404,
                "\"resourceType\":\"TABLE\"");
    expect_true(has(list(&f), DAY("1")));
    expect_false(fixture_has(&f.service, ".tarn/partitions"));
}

TARN_TEST(partitions, notes_go_with_their_table)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    struct tarn_table_facts facts;
    setup(&f, t);
    expect_ok(tarn_service_get_table(t->op, &f.service.service, fixture_ref("t"), &facts));
    const char *key = tarn_arena_printf(t->arena, ".tarn/partitions/%s/main", facts.uuid);
    expect_str(rest_ask(&f, "POST", T "/partitions", CREATE(DAY("1"), "true")),
               "200 {\"created\":[" DAY("1") "],\"existed\":[]}");
    expect_true(fixture_has(&f.service, key));
    expect_str(rest_ask(&f, "POST", "/tables/rename",
                        "{\"source\":{\"database\":\"db\",\"object\":\"t\"},\"destination\":{"
                        "\"database\":\"db\",\"object\":\"u\"}}"),
               "200 ");
    rest_expect(rest_ask(&f, "GET", TABLES "/u/partitions", ""), 200, DAY("1"));
    expect_str(rest_ask(&f, "DELETE", TABLES "/u", ""), "200 ");
    expect_false(fixture_has(&f.service, key));
}
