/*
 * The catalog: names, the tables that others put into a warehouse, uuids that last, drops and renames in one step,
 * and one owner of a warehouse at a time.
 */
#include "fixture.h"

#include "catalog/partition_notes.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

TARN_TEST(catalog, keeps_every_uuid_when_the_state_is_lost)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(make_table(&h, "db", "t", &table));
    const char *uuid = uuid_of_table(&h, "db", "t");
    tarn_table_drop_ref(&table);
    close_catalog(&h);
    open_catalog(&h, "another"); /* with a new, empty state */
    expect_str(uuid_of_table(&h, "db", "t"), uuid);
    expect_int(tarn_catalog_epoch(h.catalog), 2);
}

TARN_TEST(catalog, adopts_what_others_put_there_when_it_is_named)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    tarn_test_golden("schema/java-primary-key.json", &schema);
    expect_ok(
        tarn_store_put(h.store, t->op, "theirs.db/t/schema/schema-0", tarn_buf_slice(&schema)));
    const char *uuid = uuid_of_table(&h, "theirs", "t");
    expect_int(strlen(uuid), 36);
    struct tarn_table_info *tables;
    size_t count;
    expect_ok(tarn_catalog_tables(t->op, h.catalog, S("theirs"), &tables, &count));
    expect_int(count, 1);
    expect_str(tables[0].uuid, uuid);
    /* a copied folder is another table */
    expect_ok(
        tarn_store_put(h.store, t->op, "theirs.db/copy/schema/schema-0", tarn_buf_slice(&schema)));
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    expect_ok(tarn_store_get(h.store, t->op, "theirs.db/t/.tarn-table", &identity));
    expect_ok(
        tarn_store_put(h.store, t->op, "theirs.db/copy/.tarn-table", tarn_buf_slice(&identity)));
    expect_true(strcmp(uuid_of_table(&h, "theirs", "copy"), uuid) != 0);
    expect_str(uuid_of_table(&h, "theirs", "t"), uuid);
}

TARN_TEST(catalog, names_an_identity_that_is_damaged)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *found = NULL;
    expect_ok(make_table(&h, "db", "t", &table));
    const char *uuid = tarn_arena_str(t->arena, S(tarn_table_uuid(table)));
    static const char *const damaged[] = {"", "garbage", "[]", "{\"uuid\": \"x\"}"};
    for (size_t i = 0; i < TARN_COUNT_OF(damaged); i++) {
        expect_ok(tarn_store_put(h.store, t->op, "db.db/t/.tarn-table", S(damaged[i])));
        expect_status(find_table(&h, "db", "t", NULL, &found), TARN_IDENTITY_DAMAGED,
                      "db.db/t/.tarn-table");
    }
    /* what the advice promises */
    expect_ok(tarn_store_remove(h.store, t->op, "db.db/t/.tarn-table"));
    expect_true(strcmp(uuid_of_table(&h, "db", "t"), uuid) != 0);
}

TARN_TEST(catalog, fences_a_table_that_was_dropped_and_made_again) /* K53 */
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *first = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *second = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *found = NULL;
    expect_ok(make_table(&h, "db", "t", &first));
    const char *old = tarn_arena_str(t->arena, S(tarn_table_uuid(first)));
    expect_status(make_table(&h, "db", "t", &second), TARN_TABLE_EXISTS, "db.t");
    expect_ok(tarn_catalog_drop_table(t->op, h.catalog, first, S("db"), S("t")));
    expect_status(find_table(&h, "db", "t", NULL, &found), TARN_TABLE_NOT_FOUND, "db.t");
    struct tarn_object *left;
    size_t count;
    expect_ok(tarn_store_list(h.store, t->op, "db.db/t", true, &left, &count));
    expect_int(count, 0);
    expect_ok(make_table(&h, "db", "t", &second));
    expect_status(find_table(&h, "db", "t", old, &found), TARN_TABLE_REPLACED, old);
    struct tarn_commit commit = {.user = S("u"), .identifier = 1, .watermark = TARN_SNAPSHOT_NONE};
    struct tarn_commit_result result;
    expect_status(tarn_table_commit(t->op, first, &commit, &result), TARN_TABLE_NOT_FOUND,
                  "no longer there");
}

/* Each call found the table before the other one was done, as calls do that wait for each other: one of them is told so. */
TARN_TEST(catalog, changes_no_other_table_than_the_one_that_was_found)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *first = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *second = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *found = NULL;
    expect_ok(make_table(&h, "db", "t", &first));
    expect_ok(tarn_catalog_drop_table(t->op, h.catalog, first, S("db"), S("t")));
    expect_ok(make_table(&h, "db", "t", &second));
    const char *names[] = {"t", ""};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        struct tarn_slice database = S(i == 0 ? "db" : ""), name = S(names[i]);
        expect_status(tarn_catalog_drop_table(t->op, h.catalog, first, database, name),
                      TARN_TABLE_NOT_FOUND, "by another call");
        expect_status(
            tarn_catalog_rename_table(t->op, h.catalog, first, database, name, S("db"), S("u")),
            TARN_TABLE_NOT_FOUND, "by another call");
    }
    expect_ok(find_table(&h, "db", "t", tarn_table_uuid(second), &found));
    expect_true(found == second);
    /* renamed: who dropped or renamed it under its old name came too late */
    expect_ok(
        tarn_catalog_rename_table(t->op, h.catalog, second, S("db"), S("t"), S("db"), S("u")));
    expect_status(tarn_catalog_drop_table(t->op, h.catalog, second, S("db"), S("t")),
                  TARN_TABLE_NOT_FOUND, "db.t");
    expect_status(
        tarn_catalog_rename_table(t->op, h.catalog, second, S("db"), S("t"), S("db"), S("v")),
        TARN_TABLE_NOT_FOUND, "db.t");
    tarn_table_drop_ref(&found);
    expect_ok(find_table(&h, "db", "u", tarn_table_uuid(second), &found));
    expect_ok(tarn_catalog_drop_table(t->op, h.catalog, second, S("db"), S("u$branch_main")));
}

#define RACERS 4
struct race {
    struct house *h;
    int number;
    pthread_t thread;
    int landed;
};

static void *alter_database(void *arg)
{
    struct race *race = arg;
    struct tarn_op op;
    tarn_op_init(&op);
    for (int i = 0; i < 20; i++) {
        char key[32];
        snprintf(key, sizeof key, "k-%d-%d", race->number, i);
        struct tarn_pair set = {S(key), S("v")};
        struct tarn_status *s =
            tarn_database_alter(&op, race->h->catalog, S("db"), &set, 1, NULL, 0);
        race->landed += s == TARN_OK;
        tarn_status_free(s);
    }
    tarn_op_fini(&op);
    return NULL;
}

TARN_TEST(catalog, loses_no_option_of_a_database_that_is_altered_by_many)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_database_info info;
    struct race races[RACERS];
    int landed = 0;
    house_init(&h, t);
    make_database(&h, "db");
    for (int i = 0; i < RACERS; i++) {
        races[i] = (struct race){.h = &h, .number = i};
        expect_int(pthread_create(&races[i].thread, NULL, alter_database, &races[i]), 0);
    }
    for (int i = 0; i < RACERS; i++) {
        pthread_join(races[i].thread, NULL);
        landed += races[i].landed;
    }
    expect_int(landed, RACERS * 20);
    expect_ok(tarn_database_get(t->op, h.catalog, S("db"), &info));
    expect_int((int64_t)info.option_count, landed);
}

/* Creates and drops the database all the time; the other makes tables in it. What both were told must fit. */
static void *drop_database(void *arg)
{
    struct race *race = arg;
    struct tarn_op op;
    tarn_op_init(&op);
    for (int i = 0; i < 60; i++) {
        struct tarn_database_info info = {.name = S("db")};
        int64_t dropped;
        struct tarn_status *s = tarn_database_drop(&op, race->h->catalog, S("db"), false, &dropped);
        race->landed += s == TARN_OK;
        if (s == TARN_OK)
            s = tarn_database_create(&op, race->h->catalog, &info, false);
        tarn_status_free(s);
    }
    tarn_op_fini(&op);
    return NULL;
}

/* In a folder by uuid, so that the database's own folder doesn't show it. */
TARN_TEST(catalog, drops_no_database_below_a_table_that_is_made)
{
    TARN_OWN(house_fini) struct house h;
    struct race race = {.h = &h};
    house_init(&h, t);
    make_database(&h, "db");
    expect_int(pthread_create(&race.thread, NULL, drop_database, &race), 0);
    for (int i = 0; i < 60; i++) {
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *found = NULL;
        struct tarn_status *s = make_table(&h, "db", "50%", &table);
        if (s == TARN_OK) { /* then it is there until it is dropped */
            expect_ok(find_table(&h, "db", "50%", tarn_table_uuid(table), &found));
            expect_ok(tarn_catalog_drop_table(t->op, h.catalog, table, S("db"), S("50%")));
        }
        tarn_status_free(s);
    }
    pthread_join(race.thread, NULL);
}

TARN_TEST(catalog, starts_beside_a_database_it_cannot_look_into)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    make_database(&h, "closed");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(make_table(&h, "db", "t", &table));
    tarn_table_drop_ref(&table);
    close_catalog(&h);
    struct tarn_store *faulty = tarn_store_faulty_new(h.store), *plain = h.store;
    struct tarn_fault_rule rule = {
        .call = "list", .key_part = "closed.db", .fault = TARN_FAULT_FAIL_BEFORE};
    tarn_store_faulty_add(faulty, &rule);
    h.store = faulty;
    open_catalog(&h, "state");
    expect_int(strlen(uuid_of_table(&h, "db", "t")), 36);
    close_catalog(&h);
    tarn_store_unref(faulty);
    h.store = plain;
    open_catalog(&h, "state");
}

TARN_TEST(catalog, renames_with_the_same_uuid)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    make_database(&h, "other");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *taken = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *found = NULL;
    expect_ok(make_table(&h, "db", "t", &table));
    expect_ok(make_table(&h, "other", "taken", &taken));
    expect_status(
        tarn_catalog_rename_table(t->op, h.catalog, table, S(""), S(""), S("other"), S("taken")),
        TARN_TABLE_EXISTS, "");
    expect_status(
        tarn_catalog_rename_table(t->op, h.catalog, table, S(""), S(""), S("nowhere"), S("t")),
        TARN_DATABASE_NOT_FOUND, "");
    const char *uuid = uuid_of_table(&h, "db", "t");
    expect_ok(
        tarn_catalog_rename_table(t->op, h.catalog, table, S(""), S(""), S("other"), S("moved")));
    expect_str(uuid_of_table(&h, "other", "moved"), uuid);
    expect_status(find_table(&h, "db", "t", NULL, &found), TARN_TABLE_NOT_FOUND, "");
    expect_str(tarn_table_name(table), "other.moved");
}

TARN_TEST(catalog, refuses_names_that_could_be_something_else)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    const char *bad[] = {"",        ".",   "..",     "a/b",  "a\\b",    ".hidden",
                         "_hidden", "a$b", "x\x01y", "x.db", "\xff\xfe"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_database_info info = {.name = S(bad[i])};
        expect_status(tarn_database_create(t->op, h.catalog, &info, false), TARN_NAME_INVALID,
                      "database name");
    }
    make_database(&h, "stra\xc3\x9f"
                      "e b*r%20"); /* odd, but its own folder */
    struct tarn_database_info *list;
    size_t count;
    expect_ok(tarn_database_list(t->op, h.catalog, &list, &count));
    expect_int(count, 1);
    expect_slice(list[0].name, "stra\xc3\x9f"
                               "e b*r%20");
}

TARN_TEST(catalog, keeps_names_apart_that_differ_in_case) /* K40 */
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *a = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *b = NULL;
    expect_ok(make_table(&h, "db", "events", &a));
    expect_ok(make_table(&h, "db", "Events", &b));
    expect_true(strcmp(uuid_of_table(&h, "db", "events"), uuid_of_table(&h, "db", "Events")) != 0);
}

TARN_TEST(catalog, drops_a_database_only_when_it_is_empty_or_told_to)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(make_table(&h, "db", "t", &table));
    int64_t dropped;
    expect_status(tarn_database_drop(t->op, h.catalog, S("db"), false, &dropped),
                  TARN_DATABASE_NOT_EMPTY, "1 table");
    expect_ok(tarn_database_drop(t->op, h.catalog, S("db"), true, &dropped));
    expect_int(dropped, 1);
    expect_status(tarn_database_drop(t->op, h.catalog, S("db"), true, &dropped),
                  TARN_DATABASE_NOT_FOUND, "db");
}

TARN_TEST(catalog, changes_a_schema_whole_or_not_at_all)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(make_table(&h, "db", "t", &table));
    const struct tarn_slice n = S("n"), nope = S("nope"), id = S("id");
    struct tarn_schema_change changes[] = {
        {.kind = TARN_CHANGE_ADD_COLUMN,
         .path = &n,
         .path_count = 1,
         .move = TARN_MOVE_AFTER,
         .reference = id},
        {.kind = TARN_CHANGE_DROP_COLUMN, .path = &nope, .path_count = 1},
    };
    expect_ok(tarn_type_parse(S("INT"), t->arena, &changes[0].type));
    expect_status(tarn_catalog_alter_table(t->op, h.catalog, table, changes, 2),
                  TARN_COLUMN_NOT_FOUND, "nope");
    expect_ok(tarn_catalog_alter_table(t->op, h.catalog, table, changes, 1));
    changes[1].path = &n;
    expect_ok(tarn_catalog_alter_table(t->op, h.catalog, table, changes + 1, 1));
    changes[0].move = TARN_MOVE_NONE;
    expect_ok(tarn_catalog_alter_table(t->op, h.catalog, table, changes,
                                       1)); /* K34: a new id, never the old one */
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(t->op, table, &view));
    expect_int(view->schema.id, 3);
    expect_int(view->schema.field_count, 3);
    expect_int(view->schema.fields[2].id, 3);
    changes[1].path = &id;
    expect_status(tarn_catalog_alter_table(t->op, h.catalog, table, changes + 1, 1),
                  TARN_SCHEMA_INVALID, "part of the primary key");
}

TARN_TEST(owner, a_second_daemon_names_the_holder_and_stops)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    struct tarn_catalog *second = NULL;
    struct tarn_status *s = tarn_catalog_open(t->op, &h.env, "test", "/data/two", &second);
    expect_contains(tarn_status_message(s), "/data/one");
    expect_status(s, TARN_WAREHOUSE_HELD, "epoch 1");
    expect_ok(tarn_catalog_check_owner(t->op, h.catalog));
}

/* Who has the warehouse can't be told then: nobody takes it, and no epoch runs over. */
TARN_TEST(owner, one_that_is_damaged_is_refused)
{
    static const char *const bad[] = {"",
                                      "garbage",
                                      "[]",
                                      "{}",
                                      "{\"epoch\": \"1\"}",
                                      "{\"epoch\": -1}",
                                      "{\"epoch\": 9223372036854775807}"};
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    TARN_OWN(tarn_buf_drop) struct tarn_buf before = {0};
    expect_ok(tarn_store_get(h.store, t->op, ".tarn/owner", &before));
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_catalog *second = NULL;
        expect_ok(tarn_store_put(h.store, t->op, ".tarn/owner", S(bad[i])));
        expect_status(tarn_catalog_open(t->op, &h.env, "test", "/data/one", &second),
                      TARN_OWNER_DAMAGED, ".tarn/owner");
    }
    expect_ok(tarn_store_put(h.store, t->op, ".tarn/owner", tarn_buf_slice(&before)));
}

TARN_TEST(owner, one_that_was_replaced_learns_it_before_it_deletes)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(make_table(&h, "db", "t", &table));
    expect_ok(tarn_store_put(
        h.store, t->op, ".tarn/owner",
        S("{\"epoch\": 9, \"holder\": \"x\", \"dataDir\": \"/data/two\", \"host\": \"h\", \"pid\": 1}")));
    expect_status(tarn_catalog_drop_table(t->op, h.catalog, table, S(""), S("")),
                  TARN_WAREHOUSE_HELD, "/data/two");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *still = NULL;
    expect_ok(find_table(&h, "db", "t", NULL, &still));
}

/* --- a table that is renamed while it is read --- */

struct reader {
    struct house *h;
    struct tarn_slice uuid;
    atomic_bool stop;
    int failures, reads;
};

static void *read_on(void *arg)
{
    struct reader *r = arg;
    while (!atomic_load(&r->stop)) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
        tarn_op_init(&op);
        struct tarn_plan_request request = {.version = TARN_VERSION_LATEST};
        struct tarn_plan plan;
        struct tarn_status *s = tarn_catalog_table_by_uuid(&op, r->h->catalog, r->uuid, &table);
        if (s == TARN_OK)
            s = tarn_table_plan(&op, table, &request, &plan);
        r->failures += s != TARN_OK;
        r->reads++;
        tarn_status_free(s);
    }
    return NULL;
}

/* Found by name: there, or not there under that name, but never taken for removed. */
static void *name_on(void *arg)
{
    struct reader *r = arg;
    while (!atomic_load(&r->stop)) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
        tarn_op_init(&op);
        struct tarn_status *s =
            tarn_catalog_table(&op, r->h->catalog, S("db"), S("t"), S(NULL), &table);
        r->failures += s != TARN_OK && tarn_status_reason(s) != TARN_TABLE_NOT_FOUND;
        r->failures += s == TARN_OK && !tarn_slice_is(r->uuid, tarn_table_uuid(table));
        tarn_status_free(s);
    }
    return NULL;
}

TARN_TEST(catalog, a_rename_is_one_step_for_readers)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(make_table(&h, "db", "t", &table));
    struct reader by_uuid = {.h = &h, .uuid = S(uuid_of_table(&h, "db", "t"))};
    struct reader by_name = by_uuid;
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, read_on, &by_uuid);
    pthread_create(&threads[1], NULL, name_on, &by_name);
    int failures = 0;
    for (int i = 0; i < 40; i++) {
        struct tarn_status *s = tarn_catalog_rename_table(t->op, h.catalog, table, S(""), S(""),
                                                          S("db"), S(i % 2 == 0 ? "u" : "t"));
        failures += s != TARN_OK;
        tarn_status_free(s);
    }
    atomic_store(&by_uuid.stop, true);
    atomic_store(&by_name.stop, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    expect_int(failures, 0);
    expect_int(by_uuid.failures, 0);
    expect_int(by_name.failures, 0);
    expect_true(by_uuid.reads > 0);
    expect_str(uuid_of_table(&h, "db", "t"), (const char *)by_uuid.uuid.data);
}

/* Who only looks is told what was there, and how long ago; who asks for what is now is told that nobody knows. */
TARN_TEST(away, store_leaves_names_and_says_their_age)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    struct tarn_store *faulty = tarn_store_faulty_new(h.store), *plain = h.store;
    close_catalog(&h);
    h.store = faulty;
    open_catalog(&h, "state");
    make_database(&h, "db");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *made = NULL, *found = NULL, *unknown = NULL;
    expect_ok(make_table(&h, "db", "t", &made));
    struct tarn_database_info *databases;
    struct tarn_table_info *tables;
    size_t count;
    expect_ok(tarn_database_list_or_last(t->op, h.catalog, &databases, &count));
    expect_int(count, 1);
    expect_int(t->op->stale_ms, 0);
    usleep(5000);
    struct tarn_fault_rule rule = {.call = "*", .fault = TARN_FAULT_UNKNOWN};
    tarn_store_faulty_add(faulty, &rule);
    expect_status(tarn_database_list(t->op, h.catalog, &databases, &count), TARN_STORE_UNAVAILABLE,
                  "");
    expect_int(t->op->stale_ms, 0);
    expect_ok(tarn_database_list_or_last(t->op, h.catalog, &databases, &count));
    expect_int(count, 1);
    expect_true(t->op->stale_ms >= 5);
    t->op->stale_ms = 0;
    expect_ok(tarn_catalog_tables_or_last(t->op, h.catalog, S("db"), &tables, &count));
    expect_int(count, 1);
    expect_true(tarn_slice_is(tables[0].name, "t"));
    expect_true(t->op->stale_ms >= 5);
    t->op->stale_ms = 0;
    expect_ok(tarn_catalog_table_or_last(t->op, h.catalog, S("db"), S("t"), S(""), &found));
    expect_true(found == made);
    expect_true(t->op->stale_ms > 0);
    expect_status(
        tarn_catalog_table_or_last(t->op, h.catalog, S("db"), S("other"), S(""), &unknown),
        TARN_STORE_UNAVAILABLE, "db.other");
    tarn_store_faulty_clear(faulty);
    tarn_table_drop_ref(&found);
    tarn_table_drop_ref(&made);
    close_catalog(&h);
    h.store = plain;
    open_catalog(&h, "state");
    tarn_store_unref(faulty);
}

/* --- branches --- */

static struct tarn_status *find_branch(struct house *h, const char *object, struct tarn_table **out)
{
    return tarn_catalog_table(h->t->op, h->catalog, S("shop"), S(object), S(""), out);
}

TARN_TEST(branches, are_tables_beside_their_table)
{
    TARN_OWN(house_fini) struct house h;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *main = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *a = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *again = NULL;
    house_init(&h, t);
    make_database(&h, "shop");
    expect_ok(make_table(&h, "shop", "t", &main));
    expect_status(find_branch(&h, "t$branch_a", &a), TARN_BRANCH_NOT_FOUND, "no branch a");
    expect_status(find_branch(&h, "t$branch_", &a), TARN_NAME_INVALID, "$");
    expect_status(find_branch(&h, "t$a", &a), TARN_NAME_INVALID, "$");
    expect_status(find_branch(&h, "u$branch_a", &a), TARN_TABLE_NOT_FOUND, "shop.u");
    expect_ok(tarn_catalog_create_branch(t->op, h.catalog, main, S("a"), S("")));
    expect_ok(find_branch(&h, "t$branch_a", &a));
    expect_ok(find_branch(&h, "t$branch_a", &again));
    expect_true(a == again); /* one to all who use it */
    expect_str(tarn_table_branch(a), "a");
    expect_str(tarn_table_name(a), "shop.t$branch_a");
    tarn_table_drop_ref(&again);
    expect_ok(find_branch(&h, "t$branch_MAIN", &again));
    expect_true(again == main);
    tarn_table_drop_ref(&again);
    /* by its own uuid and by the table's */
    expect_ok(tarn_catalog_table_by_uuid(t->op, h.catalog, S(tarn_table_uuid(a)), &again));
    expect_true(a == again);
    tarn_table_drop_ref(&again);
    expect_ok(tarn_catalog_table(t->op, h.catalog, S("shop"), S("t$branch_a"),
                                 S(tarn_table_uuid(main)), &again));
    expect_ok(tarn_catalog_check_table(t->op, h.catalog, a));
    struct tarn_table_info *tables;
    size_t count;
    expect_ok(tarn_catalog_tables(t->op, h.catalog, S("shop"), &tables, &count));
    expect_int((int64_t)count, 1);
    expect_status(tarn_catalog_drop_table(t->op, h.catalog, a, S(""), S("")), TARN_INVALID_ARGUMENT,
                  "a branch");
    expect_status(tarn_catalog_rename_table(t->op, h.catalog, a, S(""), S(""), S("shop"), S("x")),
                  TARN_INVALID_ARGUMENT, "a branch");
    expect_status(tarn_catalog_create_branch(t->op, h.catalog, a, S("b"), S("")),
                  TARN_INVALID_ARGUMENT, "none of its own");
}

/* Who kept one is told that it is gone; under the same name there may be another. */
TARN_TEST(branches, end_with_what_they_are_of)
{
    TARN_OWN(house_fini) struct house h;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *main = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *a = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *again = NULL;
    const struct tarn_table_view *view;
    house_init(&h, t);
    make_database(&h, "shop");
    expect_ok(make_table(&h, "shop", "t", &main));
    expect_ok(tarn_catalog_create_branch(t->op, h.catalog, main, S("a"), S("")));
    expect_ok(find_branch(&h, "t$branch_a", &a));
    /* dropped and made again */
    expect_ok(tarn_catalog_drop_branch(t->op, h.catalog, main, S("a")));
    expect_status(tarn_table_look(t->op, a, &view), TARN_TABLE_NOT_FOUND, "no longer there");
    expect_status(find_branch(&h, "t$branch_a", &again), TARN_BRANCH_NOT_FOUND, "a");
    expect_ok(tarn_catalog_create_branch(t->op, h.catalog, main, S("a"), S("")));
    tarn_table_drop_ref(&a);
    expect_ok(find_branch(&h, "t$branch_a", &a));
    /* renamed */
    expect_ok(tarn_catalog_rename_branch(t->op, h.catalog, main, S("a"), S("b")));
    expect_status(tarn_table_look(t->op, a, &view), TARN_TABLE_NOT_FOUND, "no longer there");
    tarn_table_drop_ref(&a);
    expect_ok(find_branch(&h, "t$branch_b", &a));
    /* its table is moved */
    expect_ok(tarn_catalog_rename_table(t->op, h.catalog, main, S(""), S(""), S("shop"), S("u")));
    expect_status(tarn_table_look(t->op, a, &view), TARN_TABLE_NOT_FOUND, "no longer there");
    tarn_table_drop_ref(&a);
    expect_ok(find_branch(&h, "u$branch_b", &a));
    expect_str(tarn_table_path(a), tarn_table_path(main));
    /* removed by another program */
    expect_ok(tarn_store_remove(h.store, t->op, "shop.db/u/branch/branch-b/schema/schema-0"));
    expect_status(find_branch(&h, "u$branch_b", &again), TARN_BRANCH_NOT_FOUND, "b");
    expect_status(tarn_table_look(t->op, a, &view), TARN_TABLE_NOT_FOUND, "no longer there");
    /* its table is dropped, and another has its name */
    expect_ok(tarn_catalog_create_branch(t->op, h.catalog, main, S("c"), S("")));
    tarn_table_drop_ref(&a);
    expect_ok(find_branch(&h, "u$branch_c", &a));
    expect_ok(tarn_catalog_drop_table(t->op, h.catalog, main, S("shop"), S("u")));
    expect_status(tarn_table_look(t->op, a, &view), TARN_TABLE_NOT_FOUND, "no longer there");
    tarn_table_drop_ref(&main);
    expect_ok(make_table(&h, "shop", "u", &main));
    expect_status(find_branch(&h, "u$branch_c", &again), TARN_BRANCH_NOT_FOUND, "c");
}

static struct tarn_status *add_note(void *arg TARN_UNUSED, struct tarn_op *op,
                                    struct tarn_partition_note **notes, size_t *count)
{
    *notes = tarn_arena_calloc(op->arena, 1, sizeof **notes);
    (*notes)->path = S("dt=1/");
    (*notes)->created_ms = 1;
    *count = 1;
    return TARN_OK;
}

static void note_partition(struct house *h, struct tarn_table *table)
{
    expect_ok(tarn_catalog_change_partition_notes(h->t->op, h->catalog, table, add_note, NULL));
}

/* What is refused leaves everything as it was, the notes of partitions and who has the branch open. */
TARN_TEST(branches, refused_ones_end_nothing)
{
    TARN_OWN(house_fini) struct house h;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *main = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *a = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_partition_note *notes;
    size_t count;
    house_init(&h, t);
    make_database(&h, "shop");
    expect_ok(make_table(&h, "shop", "t", &main));
    expect_ok(tarn_catalog_create_branch(t->op, h.catalog, main, S("a"), S("")));
    expect_ok(tarn_catalog_create_branch(t->op, h.catalog, main, S("b"), S("")));
    expect_ok(find_branch(&h, "t$branch_a", &a));
    note_partition(&h, main);
    note_partition(&h, a);
    const char *const bad[] = {"", " ", "main", "12", "x/y", "../main", "a$b"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_status(tarn_catalog_create_branch(t->op, h.catalog, main, S(bad[i]), S("")),
                      TARN_NAME_INVALID, "the branch's name");
    expect_status(tarn_catalog_create_branch(t->op, h.catalog, main, S("a"), S("")),
                  TARN_BRANCH_EXISTS, "a");
    expect_status(tarn_catalog_rename_branch(t->op, h.catalog, main, S("a"), S("b")),
                  TARN_BRANCH_EXISTS, "b");
    expect_status(tarn_catalog_rename_branch(t->op, h.catalog, main, S("c"), S("d")),
                  TARN_BRANCH_NOT_FOUND, "c");
    expect_ok(tarn_table_look(t->op, a, &view));
    expect_ok(tarn_catalog_partition_notes(t->op, h.catalog, main, &notes, &count));
    expect_int((int64_t)count, 1);
    expect_ok(tarn_catalog_partition_notes(t->op, h.catalog, a, &notes, &count));
    expect_int((int64_t)count, 1);
}
