/*
 * Promise: views and functions lie in the warehouse and nowhere else, so that a lost state loses none and another daemon has them;
 * they go with their database; a rename that was cut off goes on; and one that is damaged is named and can be dropped.
 */
#include "fixture.h"

#include "catalog/internal.h"

#define VIEW S("{\"query\":\"SELECT 1\",\"fields\":[],\"more\":[1]}")

static void setup(struct house *h, struct tarn_test *t)
{
    house_init(h, t);
    make_database(h, "db");
}

static struct tarn_object_ref view(const char *name)
{
    return (struct tarn_object_ref){TARN_OBJECT_VIEW, S("db"), S(name)};
}

static struct tarn_object_ref function(const char *name)
{
    return (struct tarn_object_ref){TARN_OBJECT_FUNCTION, S("db"), S(name)};
}

static void make(struct house *h, struct tarn_object_ref ref)
{
    struct tarn_catalog_object made;
    expect_ok(tarn_catalog_create_object(h->t->op, h->catalog, ref, VIEW, &made));
}

static size_t count_of(struct house *h, enum tarn_object_kind kind)
{
    struct tarn_table_info *list;
    size_t count;
    expect_ok(tarn_catalog_objects(h->t->op, h->catalog, kind, S("db"), &list, &count));
    return count;
}

TARN_TEST(objects, are_in_the_warehouse_and_nowhere_else)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_catalog_object before, after;
    setup(&h, t);
    make(&h, view("a b.ä%"));
    make(&h, function("a b.ä%"));
    expect_ok(tarn_catalog_object(t->op, h.catalog, view("a b.ä%"), &before));
    close_catalog(&h);
    open_catalog(&h, "another");
    expect_ok(tarn_catalog_object(t->op, h.catalog, view("a b.ä%"), &after));
    expect_str(after.uuid, before.uuid);
    expect_int(after.created_ms, before.created_ms);
    expect_bytes(after.body, VIEW);
    expect_int(count_of(&h, TARN_OBJECT_VIEW), 1);
    expect_int(count_of(&h, TARN_OBJECT_FUNCTION), 1);
    bool found;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    expect_ok(tarn_store_find(h.store, t->op, ".tarn/views/db/a b.ä%", &found, &text));
    expect_true(found);
}

TARN_TEST(objects, go_with_their_database)
{
    TARN_OWN(house_fini) struct house h;
    int64_t dropped;
    setup(&h, t);
    make(&h, function("f"));
    expect_status(tarn_database_drop(t->op, h.catalog, S("db"), false, &dropped),
                  TARN_DATABASE_NOT_EMPTY, "1 function");
    make(&h, view("v"));
    expect_status(tarn_database_drop(t->op, h.catalog, S("db"), false, &dropped),
                  TARN_DATABASE_NOT_EMPTY, "1 view");
    expect_ok(tarn_database_drop(t->op, h.catalog, S("db"), true, &dropped));
    expect_int(dropped, 0);
    struct tarn_catalog_object object;
    expect_status(tarn_catalog_object(t->op, h.catalog, view("v"), &object),
                  TARN_DATABASE_NOT_FOUND, "db");
    expect_status(tarn_catalog_create_object(t->op, h.catalog, view("v"), VIEW, &object),
                  TARN_DATABASE_NOT_FOUND, "db");
    make_database(&h, "db");
    expect_int(count_of(&h, TARN_OBJECT_VIEW), 0);
    expect_int(count_of(&h, TARN_OBJECT_FUNCTION), 0);
    /* others dropped it by its folder, and one of the name is made again */
    make(&h, view("v"));
    expect_ok(tarn_store_remove(h.store, t->op, "db.db/.tarn-database"));
    expect_ok(tarn_store_prune(h.store, t->op, "db.db"));
    make_database(&h, "db");
    expect_int(count_of(&h, TARN_OBJECT_VIEW), 0);
    expect_ok(tarn_database_drop(t->op, h.catalog, S("db"), false, &dropped));
}

TARN_TEST(objects, a_rename_keeps_the_uuid_and_goes_on_where_it_was_cut_off)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_catalog_object before, after;
    setup(&h, t);
    make(&h, view("v"));
    make(&h, view("other"));
    expect_ok(tarn_catalog_object(t->op, h.catalog, view("v"), &before));
    expect_status(tarn_catalog_rename_object(t->op, h.catalog, view("v"), S("db"), S("other")),
                  TARN_VIEW_EXISTS, "other");
    expect_status(tarn_catalog_rename_object(t->op, h.catalog, view("v"), S("db"), S("v")),
                  TARN_VIEW_EXISTS, "v");
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    expect_ok(tarn_store_get(h.store, t->op, ".tarn/views/db/v", &text));
    expect_ok(tarn_store_put(h.store, t->op, ".tarn/views/db/w", tarn_buf_slice(&text)));
    expect_ok(tarn_catalog_rename_object(t->op, h.catalog, view("v"), S("db"), S("w")));
    expect_ok(tarn_catalog_object(t->op, h.catalog, view("w"), &after));
    expect_str(after.uuid, before.uuid);
    expect_status(tarn_catalog_object(t->op, h.catalog, view("v"), &after), TARN_VIEW_NOT_FOUND,
                  "db.v");
    expect_int(count_of(&h, TARN_OBJECT_VIEW), 2);
}

TARN_TEST(objects, one_that_is_damaged_is_named_and_can_be_dropped)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_catalog_object object;
    setup(&h, t);
    static const char *const bad[] = {
        "", "{", "[]", "{\"uuid\":\"x\",\"body\":{}}",
        "{\"uuid\":\"00000000-0000-4000-8000-000000000000\",\"body\":{\"query\":1,\"fields\":[]}}"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        expect_ok(tarn_store_put(h.store, t->op, ".tarn/views/db/v", S(bad[i])));
        expect_status(tarn_catalog_object(t->op, h.catalog, view("v"), &object),
                      TARN_OBJECT_DAMAGED, ".tarn/views/db/v");
        expect_status(tarn_catalog_alter_object(t->op, h.catalog, view("v"), NULL, 0, &object),
                      TARN_OBJECT_DAMAGED, ".tarn/views/db/v");
        expect_int(count_of(&h, TARN_OBJECT_VIEW), 1);
        expect_ok(tarn_catalog_drop_object(t->op, h.catalog, view("v")));
        expect_int(count_of(&h, TARN_OBJECT_VIEW), 0);
    }
}

TARN_TEST(objects, have_a_size_and_text)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_catalog_object object;
    setup(&h, t);
    TARN_OWN(tarn_buf_drop) struct tarn_buf value = {0};
    for (int i = 0; i < TARN_OBJECT_SIZE_MAX; i++)
        tarn_buf_add_byte(&value, 'x');
    expect_status(
        tarn_catalog_create_object(t->op, h.catalog, view("v"), tarn_buf_slice(&value), &object),
        TARN_JSON_MALFORMED, "");
    tarn_buf_add_byte(&value, 'x');
    expect_status(
        tarn_catalog_create_object(t->op, h.catalog, view("v"), tarn_buf_slice(&value), &object),
        TARN_TOO_LARGE, "limit");
    make(&h, view("v"));
    struct tarn_object_change change = {TARN_OBJECT_SET_OPTION, S("k"), tarn_buf_slice(&value)};
    expect_status(tarn_catalog_alter_object(t->op, h.catalog, view("v"), &change, 1, &object),
                  TARN_TOO_LARGE, "limit");
    static const struct tarn_object_change bad[] = {
        {TARN_OBJECT_SET_OPTION, {0}, {(const uint8_t *)"v", 1}},
        {TARN_OBJECT_SET_OPTION, {(const uint8_t *)"k", 1}, {(const uint8_t *)"\xff", 1}},
        {TARN_OBJECT_SET_OPTION, {(const uint8_t *)"k", 1}, {(const uint8_t *)"a\0b", 3}},
        {TARN_OBJECT_SET_OPTION, {(const uint8_t *)"a\0b", 3}, {(const uint8_t *)"v", 1}},
        {TARN_OBJECT_ADD_PART, {(const uint8_t *)"\xff", 1}, {(const uint8_t *)"v", 1}}};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_status(tarn_catalog_alter_object(t->op, h.catalog, view("v"), &bad[i], 1, &object),
                      TARN_INVALID_ARGUMENT, "");
    expect_ok(tarn_catalog_object(t->op, h.catalog, view("v"), &object));
    expect_bytes(object.body, VIEW);
}
