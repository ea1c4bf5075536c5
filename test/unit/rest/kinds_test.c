/*
 * Promise: format and object tables are made, found, listed, altered, renamed and dropped as the protocol says; what the daemon doesn't do
 * with them is 501 and says so. Tables outside of the warehouse are refused with the reason unless they were allowed. Names with any
 * character that a name may have go through paths, URLs and bodies as they are; others are refused.
 */
#include "fixture.h"

#define TABLES "/databases/db/tables"
#define FIELDS                                                                                     \
    "{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT\"},{\"id\":1,\"name\":\"dt\",\"type\":\"STRING\"}"

static const char *create(struct rest_fixture *f, const char *name, const char *fields,
                          const char *partition_keys, const char *options)
{
    return rest_create(f, name,
                       tarn_arena_printf(f->service.t->arena,
                                         "{\"fields\":[%s],\"partitionKeys\":[%s],"
                                         "\"primaryKeys\":[],\"options\":{%s}}",
                                         fields, partition_keys, options));
}

static void setup(struct rest_fixture *f, struct tarn_test *t)
{
    rest_init(f, t);
    expect_str(
        create(f, "logs", FIELDS, "\"dt\"",
               "\"type\":\"format-table\",\"file.format\":\"csv\",\"csv.field-delimiter\":\";\""),
        "200 ");
    expect_str(create(f, "files", "", "", "\"type\":\"object-table\""), "200 ");
    expect_str(create(f, "orders", FIELDS, "", ""), "200 ");
}

static const char *uuid_of(struct rest_fixture *f, const char *name)
{
    struct tarn_table_facts facts;
    expect_ok(
        tarn_service_get_table(f->service.t->op, &f->service.service, fixture_ref(name), &facts));
    return facts.uuid;
}

TARN_TEST(kinds, are_found_by_name_and_id)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    const char *got = rest_ask(&f, "GET", TABLES "/logs", "");
    rest_expect(got, 200, "\"database\":\"db\",\"name\":\"logs\"");
    rest_expect(got, 200,
                tarn_arena_printf(t->arena, "/tables/%s\",\"isExternal\":false,\"schemaId\":0",
                                  uuid_of(&f, "logs")));
    rest_expect(got, 200, "\"fields\":[" FIELDS "],\"partitionKeys\":[\"dt\"]");
    rest_expect(got, 200,
                "\"options\":{\"type\":\"format-table\",\"file.format\":\"csv\",\"csv.field-"
                "delimiter\":\";\"}");
    expect_str(
        rest_ask(&f, "GET", tarn_arena_printf(t->arena, "/tables/id/%s", uuid_of(&f, "logs")), ""),
        got);
    rest_expect(rest_ask(&f, "GET", TABLES "/files", ""), 200,
                "{\"id\":0,\"name\":\"path\",\"type\":\"STRING NOT NULL\"},"
                "{\"id\":1,\"name\":\"name\",\"type\":\"STRING NOT NULL\"},"
                "{\"id\":2,\"name\":\"length\",\"type\":\"BIGINT NOT NULL\"},"
                "{\"id\":3,\"name\":\"mtime\",\"type\":\"BIGINT NOT NULL\"},"
                "{\"id\":4,\"name\":\"atime\",\"type\":\"BIGINT NOT NULL\"},"
                "{\"id\":5,\"name\":\"owner\",\"type\":\"STRING\"}");
}

TARN_TEST(kinds, are_listed_by_type)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    rest_expect(rest_ask(&f, "GET", TABLES, ""), 200, "[\"files\",\"logs\",\"orders\"]");
    rest_expect(rest_ask(&f, "GET", TABLES "?tableType=format-table", ""), 200, "[\"logs\"]");
    rest_expect(rest_ask(&f, "GET", TABLES "?tableType=object-table", ""), 200, "[\"files\"]");
    rest_expect(rest_ask(&f, "GET", TABLES "?tableType=table", ""), 200, "[\"orders\"]");
    rest_expect(rest_ask(&f, "GET", "/databases/db/table-details?maxResults=2", ""), 200,
                "\"nextPageToken\":\"logs\"");
    rest_expect(rest_ask(&f, "GET", "/databases/db/table-details?tableType=format-table", ""), 200,
                "\"csv.field-delimiter\":\";\"");
    rest_expect(rest_ask(&f, "GET", "/tables", ""), 200,
                "{\"database\":\"db\",\"object\":\"files\"},{\"database\":\"db\",\"object\":"
                "\"logs\"}");
}

TARN_TEST(kinds, are_altered_renamed_and_dropped)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    const char *uuid = uuid_of(&f, "logs");
    expect_str(rest_ask(&f, "POST", TABLES "/logs",
                        "{\"changes\":[{\"action\":\"setOption\",\"key\":\"a\",\"value\":\"b\"},"
                        "{\"action\":\"addColumn\",\"fieldNames\":[\"x\"],\"dataType\":\"INT\"}]}"),
               "200 ");
    const char *got = rest_ask(&f, "GET", TABLES "/logs", "");
    rest_expect(got, 200, "\"a\":\"b\"");
    rest_expect(got, 200, "{\"id\":2,\"name\":\"x\",\"type\":\"INT\"}");
    rest_expect(rest_ask(&f, "POST", TABLES "/logs",
                         "{\"changes\":[{\"action\":\"setOption\",\"key\":\"type\",\"value\":"
                         "\"table\"}]}"),
                400, "type");
    rest_expect(rest_ask(&f, "POST", TABLES "/logs",
                         "{\"changes\":[{\"action\":\"dropColumn\",\"fieldNames\":[\"no\"]}]}"),
                404, "\"resourceType\":\"COLUMN\"");
    rest_expect(rest_ask(&f, "POST", TABLES "/files",
                         "{\"changes\":[{\"action\":\"dropColumn\",\"fieldNames\":[\"owner\"]}]}"),
                400, "object table");
    rest_expect(rest_ask(&f, "POST", "/tables/rename",
                         "{\"source\":{\"database\":\"db\",\"object\":\"logs\"},\"destination\":"
                         "{\"database\":\"db\",\"object\":\"orders\"}}"),
                409, "\"resourceType\":\"TABLE\",\"resourceName\":\"orders\"");
    expect_str(rest_ask(&f, "POST", "/tables/rename",
                        "{\"source\":{\"database\":\"db\",\"object\":\"logs\"},\"destination\":"
                        "{\"database\":\"db\",\"object\":\"logs2\"}}"),
               "200 ");
    expect_str(uuid_of(&f, "logs2"), uuid);
    rest_expect(rest_ask(&f, "GET", TABLES "/logs", ""), 404, "\"TABLE\"");
    rest_expect(create(&f, "logs2", FIELDS, "", ""), 409, "\"resourceType\":\"TABLE\"");
    expect_str(rest_ask(&f, "DELETE", TABLES "/logs2", ""), "200 ");
    rest_expect(rest_ask(&f, "GET", TABLES "/logs2", ""), 404, "\"TABLE\"");
    rest_expect(rest_ask(&f, "GET", tarn_arena_printf(t->arena, "/tables/id/%s", uuid), ""), 404,
                "\"TABLE\"");
}

TARN_TEST(kinds, have_no_history_here)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    static const struct {
        const char *method, *path, *body;
    } calls[] = {
        {"GET", "/logs/snapshot", ""},
        {"GET", "/logs/snapshots", ""},
        {"GET", "/logs/tags", ""},
        {"GET", "/logs/branches", ""},
        {"GET", "/logs/partitions", ""},
        {"POST", "/logs/tags", "{\"tagName\":\"v\"}"},
        {"POST", "/logs/commit", "{\"snapshot\":{}}"},
        {"POST", "/files/rollback", "{\"instant\":{\"type\":\"snapshot\",\"snapshotId\":1}}"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(calls); i++)
        rest_expect(rest_ask(&f, calls[i].method,
                             tarn_arena_printf(t->arena, TABLES "%s", calls[i].path),
                             calls[i].body),
                    501, "-table");
    struct tarn_table_ref ref = fixture_ref("logs");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_status(tarn_service__table(t->op, &f.service.service, ref, TARN_ACTION_WRITE, &table),
                  TARN_ENTRY_ONLY, "format-table");
}

TARN_TEST(kinds, that_cannot_be_are_refused)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    setup(&f, t);
    static const struct {
        const char *fields, *options;
        int status;
        const char *why;
    } bad[] = {
        {FIELDS, "\"type\":\"format-table\",\"file.format\":\"avro\"", 400, "parquet, orc, csv"},
        {FIELDS, "\"type\":\"format-table\",\"metastore.partitioned-table\":\"true\"", 501,
         "metastore.partitioned-table"},
        {"", "\"type\":\"format-table\"", 400, "columns"},
        {FIELDS, "\"type\":\"object-table\"", 400, "an object table has columns"},
        {FIELDS, "\"type\":\"lance-table\"", 501, "lance-table"},
        {FIELDS, "\"path\":\"file:///elsewhere/t\"", 400, "external_paths"},
        {FIELDS, "\"type\":\"format-table\",\"path\":\"file:///elsewhere/t\"", 400,
         "external_paths"},
        {"", "\"type\":\"object-table\",\"path\":\"s3://b/x\"", 400, "external_paths"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        rest_expect(create(&f, "bad", bad[i].fields, "", bad[i].options), bad[i].status,
                    bad[i].why);
    rest_expect(rest_ask(&f, "GET", TABLES "/bad", ""), 404, "\"TABLE\"");
}

/* --- names --- */

/* As Java's clients encode a segment of a path. */
static const char *encode(struct tarn_arena *arena, const char *text)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    for (const char *c = text; *c != '\0'; c++)
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
            strchr("*-._", *c) != NULL)
            tarn_buf_add_byte(&out, (uint8_t)*c);
        else if (*c == ' ')
            tarn_buf_add_byte(&out, '+');
        else
            tarn_buf_printf(&out, "%%%02X", (unsigned)(uint8_t)*c);
    return tarn_arena_str(arena, tarn_buf_slice(&out));
}

static const char *quote(struct tarn_arena *arena, const char *text)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = tarn_json_string(tarn_slice_str(text));
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_json_print(json, 0, &out);
    return tarn_arena_str(arena, tarn_buf_slice(&out));
}

static const char *create_named(struct rest_fixture *f, const char *name)
{
    return rest_ask(f, "POST", TABLES,
                    tarn_arena_printf(f->service.t->arena,
                                      "{\"identifier\":{\"database\":\"db\",\"object\":%s},"
                                      "\"schema\":{\"fields\":[" FIELDS "]}}",
                                      quote(f->service.t->arena, name)));
}

TARN_TEST(names, go_through_as_they_are)
{
    static const char *const names[] = {"*",
                                        "?",
                                        "{}",
                                        "'",
                                        "\"",
                                        "%",
                                        "%2e%2e",
                                        "%2F",
                                        ";",
                                        "a;b",
                                        "#",
                                        "a b",
                                        "a+b",
                                        "&a=b",
                                        "[x]",
                                        "(x)",
                                        "~",
                                        "!",
                                        "@",
                                        "^",
                                        "`",
                                        "|",
                                        "<x>",
                                        ":",
                                        ",",
                                        "=",
                                        "ä",
                                        "аdmin",
                                        "\xe2\x80\xae"
                                        "b",
                                        "a\xcc\x88",
                                        "${x}x",
                                        "select 1; --"};
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        if (strchr(names[i], '$') != NULL) {
            rest_expect(create_named(&f, names[i]), 400, "$");
            continue;
        }
        expect_str(create_named(&f, names[i]), "200 ");
        const char *path = tarn_arena_printf(t->arena, TABLES "/%s", encode(t->arena, names[i]));
        const char *quoted = quote(t->arena, names[i]);
        rest_expect(rest_ask(&f, "GET", path, ""), 200,
                    tarn_arena_printf(t->arena, "\"name\":%s,", quoted));
        rest_expect(rest_ask(&f, "GET", TABLES, ""), 200, quoted);
        rest_expect(rest_ask(&f, "POST", tarn_arena_printf(t->arena, "%s/tags", path),
                             "{\"tagName\":\"v\"}"),
                    404, "SNAPSHOT");
        expect_str(rest_ask(&f, "DELETE", path, ""), "200 ");
        rest_expect(rest_ask(&f, "GET", path, ""), 404,
                    tarn_arena_printf(t->arena, "\"resourceName\":%s", quoted));
    }
    struct tarn_object *left;
    size_t count;
    expect_ok(tarn_store_list(f.service.inner, t->op, "tables", true, &left, &count));
    expect_int(count, 0);
}

TARN_TEST(names, that_lead_elsewhere_are_refused)
{
    static const char *const names[] = {"",     ".",     "..", "../x", "a/b",  "a\\b", "a\nb",
                                        "\x01", ".tarn", "_x", "a$b",  "\x7f", "a\tb"};
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        rest_expect(create_named(&f, names[i]), 400, "");
        rest_expect(
            rest_ask(&f, "POST", "/databases",
                     tarn_arena_printf(t->arena, "{\"name\":%s}", quote(t->arena, names[i]))),
            400, "");
    }
    TARN_OWN(tarn_buf_drop) struct tarn_buf longest = {0};
    for (int i = 0; i < 10240; i++)
        tarn_buf_add_byte(&longest, 'x');
    const char *name = tarn_arena_str(t->arena, tarn_buf_slice(&longest));
    rest_expect(create_named(&f, name), 400, "longer than 200 bytes");
    struct tarn_object *left;
    size_t count;
    expect_ok(tarn_store_list(f.service.inner, t->op, "db.db", false, &left, &count));
    for (size_t i = 0; i < count; i++)
        expect_false(left[i].is_folder);
}
