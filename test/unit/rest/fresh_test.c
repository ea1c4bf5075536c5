/*
 * Promise: what a table is answered with is never of before: its schema's text is kept, and yet each change, rename, drop and new
 * table of the same name shows in the next answer, to everybody; and an answer is of one schema whole.
 */
#include <pthread.h>

#include "fixture.h"

#define TABLES "/databases/db/tables"
#define FIELD(id, name) "{\"id\":" #id ",\"name\":\"" name "\",\"type\":\"BIGINT\"}"

static const char *create(struct rest_fixture *f, const char *name, const char *fields)
{
    return rest_create(
        f, name,
        tarn_arena_printf(f->service.t->arena, "{\"fields\":[%s],\"options\":{}}", fields));
}

static const char *alter(struct rest_fixture *f, const char *name, const char *change)
{
    return rest_ask(f, "POST", tarn_arena_printf(f->service.t->arena, TABLES "/%s", name),
                    tarn_arena_printf(f->service.t->arena, "{\"changes\":[%s]}", change));
}

static const char *get(struct rest_fixture *f, const char *name)
{
    return rest_ask(f, "GET", tarn_arena_printf(f->service.t->arena, TABLES "/%s", name), "");
}

/* Twice, the second time as it was kept; and as a list, which prints it anew, has it. */
static void expect_table(struct rest_fixture *f, const char *name, const char *part)
{
    const char *first = get(f, name);
    rest_expect(first, 200, part);
    expect_str(get(f, name), first);
    rest_expect(rest_ask(f, "GET", "/databases/db/table-details", ""), 200, first + strlen("200 "));
}

TARN_TEST(fresh, each_change_shows_at_once)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    f.service.env.foreign_check_ms = 3600000; /* no look at the folder helps */
    expect_str(create(&f, "a", FIELD(0, "x")), "200 ");
    expect_table(&f, "a", "\"schemaId\":0,\"schema\":{\"fields\":[" FIELD(0, "x") "]");
    expect_str(
        alter(&f, "a", "{\"action\":\"addColumn\",\"fieldNames\":[\"y\"],\"dataType\":\"BIGINT\"}"),
        "200 ");
    expect_table(&f, "a",
                 "\"schemaId\":1,\"schema\":{\"fields\":[" FIELD(0, "x") "," FIELD(1, "y") "]");
    expect_str(alter(&f, "a", "{\"action\":\"setOption\",\"key\":\"k\",\"value\":\"1\"}"), "200 ");
    expect_table(&f, "a", "\"options\":{\"write-only\":\"true\",\"k\":\"1\"},\"comment\":null");
    expect_str(alter(&f, "a", "{\"action\":\"updateComment\",\"comment\":\"c\"}"), "200 ");
    expect_table(&f, "a", "\"options\":{\"write-only\":\"true\",\"k\":\"1\"},\"comment\":\"c\"");
    /* What is refused changes nothing. */
    rest_expect(alter(&f, "a", "{\"action\":\"dropColumn\",\"fieldNames\":[\"z\"]}"), 404, "z");
    expect_table(&f, "a", "\"schemaId\":3,");
}

TARN_TEST(fresh, a_name_stands_for_what_it_names_now)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    f.service.env.foreign_check_ms = 3600000;
    expect_str(create(&f, "a", FIELD(0, "x")), "200 ");
    expect_table(&f, "a", "\"name\":\"a\"");
    const char *first = get(&f, "a");
    expect_str(rest_ask(&f, "POST", "/tables/rename",
                        "{\"source\":{\"database\":\"db\",\"object\":\"a\"},"
                        "\"destination\":{\"database\":\"db\",\"object\":\"b\"}}"),
               "200 ");
    rest_expect(get(&f, "a"), 404, "\"TABLE\"");
    expect_table(&f, "b", "/db.db/b\",\"isExternal\":false,\"schemaId\":0");
    expect_str(create(&f, "a", FIELD(0, "other")), "200 ");
    expect_table(&f, "a", FIELD(0, "other"));
    expect_table(&f, "b", FIELD(0, "x"));
    expect_str(rest_ask(&f, "DELETE", TABLES "/a", ""), "200 ");
    rest_expect(get(&f, "a"), 404, "\"TABLE\"");
    expect_str(create(&f, "a", FIELD(0, "x")), "200 ");
    expect_table(&f, "a", FIELD(0, "x"));
    expect_false(strncmp(get(&f, "a"), first, 50) == 0); /* its id is another one */
}

TARN_TEST(fresh, a_branch_has_a_schema_of_its_own)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    f.service.env.foreign_check_ms = 3600000;
    expect_str(create(&f, "a", FIELD(0, "x")), "200 ");
    expect_str(rest_ask(&f, "POST", TABLES "/a/branches", "{\"branch\":\"dev\"}"), "200 ");
    rest_expect(get(&f, "a%24branch_dev"), 200, FIELD(0, "x") "]");
    expect_str(alter(&f, "a%24branch_dev",
                     "{\"action\":\"renameColumn\",\"fieldNames\":[\"x\"],\"newName\":\"theirs\"}"),
               "200 ");
    rest_expect(get(&f, "a%24branch_dev"), 200, FIELD(0, "theirs") "]");
    expect_table(&f, "a", FIELD(0, "x"));
}

TARN_TEST(fresh, what_others_changed_shows_with_the_next_look)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t); /* looks each time */
    expect_str(create(&f, "a", FIELD(0, "x")), "200 ");
    expect_table(&f, "a", "\"schemaId\":0");
    expect_ok(tarn_store_put(
        f.service.inner, t->op, "db.db/a/schema/schema-1",
        S("{\"version\":3,\"id\":1,\"fields\":[" FIELD(0, "x") "," FIELD(
            1, "theirs") "],\"highestFieldId\":1,\"partitionKeys\":[],\"primaryKeys\":[],"
                         "\"options\":{},\"timeMillis\":7}")));
    expect_table(&f, "a",
                 "\"schemaId\":1,\"schema\":{\"fields\":[" FIELD(0, "x") "," FIELD(1, "theirs"));
}

/* --- many at once --- */

#define READERS 4
#define CHANGES 100

struct reader {
    struct rest_fixture *f;
    pthread_t thread;
    atomic_int *acknowledged; /* the schema that everybody must see */
    atomic_bool *is_over;
    int older, torn, count; /* answers that were wrong; all */
};

/* Schema n has option v = n. */
static void judge(struct reader *r, const char *answer, int at_least)
{
    char option[32];
    const char *id = strstr(answer, "\"schemaId\":");
    int schema = id == NULL ? -1 : atoi(id + strlen("\"schemaId\":"));
    snprintf(option, sizeof option, ",\"v\":\"%d\"}", schema);
    r->older += schema < at_least;
    r->torn += strncmp(answer, "200 ", 4) != 0 || (schema > 0 && strstr(answer, option) == NULL);
    r->count++;
}

static void *read_on(void *arg)
{
    struct reader *r = arg;
    while (!atomic_load(r->is_over) || r->count == 0) {
        struct tarn_op op;
        tarn_op_init(&op);
        op.principal = "tester";
        int at_least = atomic_load(r->acknowledged);
        judge(r, rest_ask_in(r->f, &op, "GET", TABLES "/a", ""), at_least);
        tarn_op_fini(&op);
    }
    return NULL;
}

TARN_TEST(fresh, readers_beside_changes_see_one_schema_whole_and_never_an_older_one)
{
    TARN_OWN(rest_fini) struct rest_fixture f;
    rest_init(&f, t);
    f.service.env.foreign_check_ms = 3600000;
    expect_str(create(&f, "a", FIELD(0, "x")), "200 ");
    atomic_int acknowledged = 0;
    atomic_bool is_over = false;
    struct reader readers[READERS];
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.f = &f, .acknowledged = &acknowledged, .is_over = &is_over};
        expect_int(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
    }
    const char *refused = NULL;
    for (int n = 1; n <= CHANGES && refused == NULL; n++) {
        const char *answer =
            alter(&f, "a",
                  tarn_arena_printf(
                      t->arena, "{\"action\":\"setOption\",\"key\":\"v\",\"value\":\"%d\"}", n));
        if (strcmp(answer, "200 ") != 0)
            refused = answer;
        else
            atomic_store(&acknowledged, n);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < READERS; i++)
        expect_int(pthread_join(readers[i].thread, NULL), 0);
    for (int i = 0; i < READERS; i++) {
        expect_int(readers[i].older, 0);
        expect_int(readers[i].torn, 0);
    }
    if (refused != NULL)
        expect_unreachable("an alteration was refused: %s", refused);
}
