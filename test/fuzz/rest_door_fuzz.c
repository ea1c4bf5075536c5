/*
 * Promise: no request breaks the REST door or what is behind it: whatever a client asks, of a database with a table, a branch, a view
 * and a function, is answered with a status of the protocol and JSON or nothing, and never with 500: a store in memory has no
 * faults. An input is "METHOD /path?query", a line feed, and the body.
 */
#include "../unit/rest/fixture.c" /* the service in memory that its tests have */

#include <stdlib.h>
#include <unistd.h>

/* What of test/lib/test.c the fixture calls. */
const char *tarn_test_dir(struct tarn_test *t TARN_UNUSED)
{
    static char folder[] = "/tmp/tarn-fuzz-XXXXXX";
    tarn_assert(folder[sizeof folder - 2] != 'X' || mkdtemp(folder) != NULL);
    return folder;
}

void tarn_expect_ok(struct tarn_status *s, const char *what TARN_UNUSED,
                    const char *file TARN_UNUSED, int line TARN_UNUSED)
{
    tarn_assert(s == TARN_OK);
}

void tarn_expect_contains(const char *got, const char *part, const char *what TARN_UNUSED,
                          const char *file TARN_UNUSED, int line TARN_UNUSED)
{
    tarn_assert(strstr(got, part) != NULL);
}

void tarn_test_fail(const char *file TARN_UNUSED, int line TARN_UNUSED,
                    const char *format TARN_UNUSED, ...)
{
    tarn_assert(false);
}

/* --- */

static struct rest_fixture door;

static void must(const char *method, const char *target, const char *body)
{
    struct tarn_op op;
    tarn_op_init(&op);
    op.principal = "fuzzer";
    tarn_assert(atoi(rest_ask_in(&door, &op, method, target, body)) == 200);
    tarn_op_fini(&op);
}

#define FIELDS "\"fields\":[{\"id\":0,\"name\":\"x\",\"type\":\"INT NOT NULL\"}]"

static void make_database(void)
{
    must("POST", "/databases", "{\"name\":\"db\"}");
    must("POST", "/databases/db/tables",
         "{\"identifier\":{\"database\":\"db\",\"object\":\"t\"},\"schema\":{" FIELDS
         ",\"primaryKeys\":[\"x\"],\"options\":{\"bucket\":\"1\"}}}");
    must("POST", "/databases/db/tables/t/branches", "{\"branch\":\"b\"}");
    must("POST", "/databases/db/views",
         "{\"identifier\":{\"database\":\"db\",\"object\":\"v\"},\"schema\":{" FIELDS
         ",\"query\":\"SELECT 1\",\"dialects\":{},\"options\":{}}}");
    must("POST", "/databases/db/functions",
         "{\"name\":\"f\",\"inputParams\":[],\"returnParams\":[],\"definitions\":{}}");
}

static void remove_all(void)
{
    struct tarn_op op;
    struct tarn_database_info *list;
    size_t count;
    const char *next;
    tarn_op_init(&op);
    op.principal = "fuzzer";
    do {
        expect_ok(tarn_service_list_databases(&op, &door.service.service, (struct tarn_page){0},
                                              true, &list, &count, &next));
        for (size_t i = 0; i < count; i++) {
            int64_t dropped;
            expect_ok(tarn_service_drop_database(&op, &door.service.service, list[i].name, true,
                                                 false, &dropped));
        }
    } while (count > 0);
    tarn_op_fini(&op);
}

static void open_door(void)
{
    static struct tarn_test t = {.name = "fuzz"};
    tarn_log_set_level(TARN_ERROR);
    tarn_op_init(&t.op_storage);
    t.op = &t.op_storage;
    t.arena = t.op->arena;
    rest_init(&door, &t);
    remove_all();
    make_database();
}

static void expect_answer(const char *answer)
{
    static const int of_the_protocol[] = {200, 400, 401, 403, 404, 409, 414, 501, 503};
    bool is_known = false;
    for (size_t i = 0; i < TARN_COUNT_OF(of_the_protocol); i++)
        is_known |= atoi(answer) == of_the_protocol[i];
    tarn_assert(is_known);
    if (strlen(answer) == strlen("200 ") || strncmp(answer, "400 malformed URL", 17) == 0)
        return; /* that is of the HTTP room, before there is a route */
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    expect_ok(tarn_json_parse(tarn_slice_str(answer + strlen("200 ")), &json));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *blank = size == 0 ? NULL : memchr(data, ' ', size);
    const uint8_t *line = size == 0 ? NULL : memchr(data, '\n', size);
    if (blank == NULL || line == NULL || blank > line || size > 64 << 10)
        return 0;
    if (door.rest == NULL)
        open_door();
    struct tarn_op op;
    tarn_op_init(&op);
    op.principal = "fuzzer";
    const char *method = tarn_arena_str(op.arena, tarn_slice_of(data, (size_t)(blank - data)));
    const char *target =
        tarn_arena_str(op.arena, tarn_slice_of(blank + 1, (size_t)(line - blank - 1)));
    const char *body =
        tarn_arena_str(op.arena, tarn_slice_of(line + 1, size - (size_t)(line + 1 - data)));
    const char *answer = rest_ask_in(&door, &op, method, target, body);
    expect_answer(answer);
    bool may_have_changed = atoi(answer) == 200 && strcmp(method, "GET") != 0;
    tarn_op_fini(&op);
    if (may_have_changed) { /* the next one finds what this one found */
        remove_all();
        make_database();
    }
    return 0;
}
