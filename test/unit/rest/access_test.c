/*
 * Promise: every endpoint asks the one hook (tarn_access_check) before it tells or does anything: whom the hook refuses is refused
 * everywhere, be it there what the call is about or not, and nothing is changed.
 */
#include "fixture.h"

#define FIELDS "\"fields\":[{\"id\":0,\"name\":\"x\",\"type\":\"INT\"}]"
#define TABLE "{\"identifier\":{\"database\":\"db\",\"object\":\"t\"},\"schema\":{" FIELDS "}}"
#define VIEW                                                                                       \
    "{\"identifier\":{\"database\":\"db\",\"object\":\"v\"},\"schema\":{" FIELDS                   \
    ",\"query\":\"SELECT 1\",\"dialects\":{},\"options\":{}}}"
#define FUNCTION "{\"name\":\"f\",\"inputParams\":[],\"returnParams\":[],\"definitions\":{}}"

/* What any endpoint needs to have in its body, so that it comes to the hook. */
static const char body_of_all[] =
    "{\"identifier\":{\"database\":\"db\",\"object\":\"new\"},"
    "\"source\":{\"database\":\"db\",\"object\":\"t\"},"
    "\"destination\":{\"database\":\"db\",\"object\":\"new\"},"
    "\"schema\":{" FIELDS ",\"query\":\"SELECT 1\",\"dialects\":{},\"options\":{}},"
    "\"changes\":[{\"action\":\"setOption\",\"key\":\"k\",\"value\":\"v\"}],"
    "\"name\":\"new\",\"inputParams\":[],\"returnParams\":[],\"definitions\":{},"
    "\"tagName\":\"new\",\"branch\":\"new\",\"toBranch\":\"new\",\"consumerId\":\"c\",\"nextSnapshotId\":1,"
    "\"instant\":{\"type\":\"snapshot\",\"snapshotId\":1},\"specs\":[{}],\"partitionSpecs\":[{}],"
    "\"schemaId\":0,\"removals\":[\"a\"],\"updates\":{\"a\":\"b\"},\"path\":\"x\","
    "\"snapshot\":{\"version\":3,\"id\":1,\"schemaId\":0,\"baseManifestList\":\"a\",\"deltaManifestList\":\"b\","
    "\"commitUser\":\"u\",\"commitIdentifier\":1,\"commitKind\":\"APPEND\",\"timeMillis\":1,"
    "\"totalRecordCount\":0,\"deltaRecordCount\":0}}";

/* The pattern with its arguments filled in: such as are there, or are not. */
static const char *target_of(struct tarn_test *t, const char *pattern, bool there, const char *id)
{
    static const struct {
        const char *argument, *value;
    } names[] = {
        {"{prefix}", "w"},   {"{database}", "db"}, {"{table}", "t"},  {"{view}", "v"},
        {"{function}", "f"}, {"{tag}", "g"},       {"{branch}", "b"}, {"{version}", "1"},
    };
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    const char *whole = pattern;
    while (*pattern != '\0') {
        size_t size = *pattern == '{' ? strcspn(pattern, "}") + 1 : 1;
        const char *value = NULL;
        for (size_t i = 0; size > 1 && i < TARN_COUNT_OF(names); i++)
            if (strncmp(pattern, names[i].argument, size) == 0 && (there || i == 0))
                value = names[i].value;
        if (size > 1 && value == NULL)
            value = there ? id : "nope";
        if (value == NULL)
            tarn_buf_add(&out, pattern, size);
        else
            tarn_buf_add_str(&out, value);
        pattern += size;
    }
    if (strcmp(whole, "/v1/{prefix}/permissions") == 0)
        tarn_buf_add_str(&out, "?resourceType=CATALOG");
    return tarn_arena_str(t->arena, tarn_buf_slice(&out));
}

/* All that is there, as those see it who may. */
static const char *everything(struct rest_fixture *f)
{
    static const char *const lists[] = {
        "/databases",
        "/databases/db",
        "/databases/db/table-details",
        "/databases/db/view-details",
        "/databases/db/function-details",
        "/databases/db/tables/t/tags",
        "/databases/db/tables/t/branches",
        "/databases/db/tables/t/consumers",
    };
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    for (size_t i = 0; i < TARN_COUNT_OF(lists); i++) {
        const char *answer = rest_ask(f, "GET", lists[i], "");
        rest_expect(answer, 200, "");
        tarn_buf_add_str(&out, answer);
    }
    return tarn_arena_str(f->service.t->arena, tarn_buf_slice(&out));
}

TARN_TEST(access, is_asked_by_every_endpoint_first)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    expect_str(rest_ask(&f, "POST", "/databases/db/tables", TABLE), "200 ");
    expect_str(rest_ask(&f, "POST", "/databases/db/views", VIEW), "200 ");
    expect_str(rest_ask(&f, "POST", "/databases/db/functions", FUNCTION), "200 ");
    expect_str(rest_ask(&f, "POST", "/databases/db/tables/t/branches", "{\"branch\":\"b\"}"),
               "200 ");
    struct tarn_table_facts facts;
    expect_ok(tarn_service_get_table(t->op, &f.service.service, fixture_ref("t"), &facts));
    const char *before = everything(&f);
    size_t count, asked = 0;
    const struct tarn_http_route *routes = tarn_rest_routes(f.rest, &count);
    for (size_t i = 0; i < 2 * count; i++) {
        const struct tarn_http_route *route = &routes[i / 2];
        bool there = i % 2 == 0;
        if (strcmp(route->pattern, "/v1/config") == 0)
            continue;
        const char *target = target_of(t, route->pattern, there, facts.uuid);
        struct tarn_op op;
        tarn_op_init(&op); /* nobody's: the hook refuses it */
        const char *answer = rest_ask_in(&f, &op, route->method, target,
                                         strcmp(route->method, "POST") == 0 ? body_of_all : "");
        bool refused = atoi(answer) == 401 && strstr(answer, "nobody has said who asks") != NULL;
        /* An id that isn't there is about nothing that one could be allowed. */
        refused |= !there && strstr(route->pattern, "/tables/id/") != NULL && atoi(answer) == 404;
        /* What nobody may do yet tells nothing either. */
        refused |= strstr(route->pattern, "/permissions/") != NULL && atoi(answer) == 501;
        answer = tarn_arena_str(t->arena, tarn_slice_str(answer));
        tarn_op_fini(&op);
        if (!refused)
            expect_unreachable("%s %s: %s (a 400: body_of_all lacks what it wants)", route->method,
                               target, answer);
        asked++;
    }
    expect_true(asked > 100);
    expect_str(everything(&f), before);
}
