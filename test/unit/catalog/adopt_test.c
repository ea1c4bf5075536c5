/*
 * Promise: what others do with folders of the warehouse shows in the lists by itself; a table that they move stays itself, one that they copy
 * or make is a new one, whose compaction is its writers' until somebody says otherwise; and that is kept in the folder.
 */
#include "fixture.h"

static void put_foreign(struct house *h, const char *folder)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    tarn_test_golden("schema/java-primary-key.json", &schema);
    expect_ok(tarn_store_put(h->store, h->t->op,
                             tarn_arena_printf(h->t->arena, "%s/schema/schema-0", folder),
                             tarn_buf_slice(&schema)));
}

static void find(struct house *h, const char *name, struct tarn_table **out)
{
    expect_ok(tarn_catalog_table(h->t->op, h->catalog, S("theirs"), S(name), S(""), out));
}

static const char *uuid_of(struct house *h, const char *name)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    find(h, name, &table);
    return tarn_arena_str(h->t->arena, S(tarn_table_uuid(table)));
}

static bool is_compacted(struct house *h, const char *name)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    find(h, name, &table);
    return tarn_table_is_compacted(table);
}

static const char *tables(struct house *h, const char *database)
{
    struct tarn_table_info *list;
    size_t count;
    const char *text = "";
    expect_ok(tarn_catalog_tables(h->t->op, h->catalog, S(database), &list, &count));
    for (size_t i = 0; i < count; i++)
        text = tarn_arena_printf(h->t->arena, "%s%s%.*s", text, i == 0 ? "" : " ",
                                 TARN_SLICE_ARG(list[i].name));
    return text;
}

static const char *identity(struct house *h, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    expect_ok(tarn_store_get(h->store, h->t->op,
                             tarn_arena_printf(h->t->arena, "theirs.db/%s/.tarn-table", name),
                             &text));
    return tarn_arena_str(h->t->arena, tarn_buf_slice(&text));
}

TARN_TEST(adopt, whose_compaction_it_is_lasts)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    put_foreign(&h, "theirs.db/t");
    expect_str(tables(&h, "theirs"), "t");
    expect_false(is_compacted(&h, "t"));
    struct tarn_schema draft = {.version = 3};
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *ours = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(
        tarn_columns_parse(S("id BIGINT NOT NULL"), t->arena, &draft.fields, &draft.field_count));
    expect_ok(tarn_catalog_create_table(t->op, h.catalog, S("theirs"), S("ours"), &draft, &ours));
    expect_true(tarn_table_is_compacted(ours));
    tarn_table_drop_ref(&ours);
    find(&h, "t", &table);
    expect_ok(tarn_catalog_set_compaction(t->op, h.catalog, table, true));
    expect_true(tarn_table_is_compacted(table));
    tarn_table_drop_ref(&table);
    close_catalog(&h);
    open_catalog(&h, "another");
    expect_true(is_compacted(&h, "t"));
    expect_true(is_compacted(&h, "ours"));
    /* renamed, here and by others, it is still so; given back, it isn't */
    find(&h, "t", &table);
    expect_ok(tarn_catalog_rename_table(t->op, h.catalog, table, S("theirs"), S("t"), S("theirs"),
                                        S("u")));
    expect_true(strstr(identity(&h, "u"), "\"tarn\"") != NULL);
    expect_ok(tarn_catalog_set_compaction(t->op, h.catalog, table, false));
    expect_true(strstr(identity(&h, "u"), "\"writers\"") != NULL);
    expect_true(strstr(identity(&h, "u"), tarn_table_uuid(table)) != NULL);
    expect_false(is_compacted(&h, "u"));
}

TARN_TEST(adopt, an_identity_of_before_means_the_daemon_compacts)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    put_foreign(&h, "theirs.db/t");
    expect_ok(tarn_store_put(
        h.store, t->op, "theirs.db/t/.tarn-table",
        S("{\"uuid\": \"0b2f7c1a-7a3e-4d5b-9c51-111111111111\", \"name\": \"theirs.t\"}")));
    expect_true(is_compacted(&h, "t"));
    expect_str(uuid_of(&h, "t"), "0b2f7c1a-7a3e-4d5b-9c51-111111111111");
}

TARN_TEST(adopt, a_branch_is_compacted_as_its_table)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    put_foreign(&h, "theirs.db/t");
    put_foreign(&h, "theirs.db/t/branch/branch-b");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *branch = NULL;
    find(&h, "t", &table);
    find(&h, "t$branch_b", &branch);
    expect_false(tarn_table_is_compacted(branch));
    expect_status(tarn_catalog_set_compaction(t->op, h.catalog, branch, true),
                  TARN_INVALID_ARGUMENT, "branch");
    expect_ok(tarn_catalog_set_compaction(t->op, h.catalog, table, true));
    expect_true(tarn_table_is_compacted(branch));
}

TARN_TEST(adopt, a_folder_that_others_move_is_the_same_table)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    put_foreign(&h, "theirs.db/t");
    const char *uuid = uuid_of(&h, "t");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    find(&h, "t", &table);
    expect_ok(tarn_catalog_set_compaction(t->op, h.catalog, table, true));
    expect_ok(tarn_store_move_folder(h.store, t->op, "theirs.db/t", "theirs.db/a"));
    expect_str(tables(&h, "theirs"), "a");
    expect_str(uuid_of(&h, "a"), uuid);
    expect_true(is_compacted(&h, "a"));
    expect_true(strstr(identity(&h, "a"), "theirs.a") != NULL);
    const struct tarn_table_view *view;
    expect_status(tarn_table_look_now(t->op, table, &view), TARN_TABLE_NOT_FOUND, "theirs.t");
    /* into another database, which is listed first */
    expect_ok(tarn_store_move_folder(h.store, t->op, "theirs.db/a", "more.db/z"));
    expect_str(tables(&h, "more"), "z");
    expect_str(tables(&h, "theirs"), "");
    /* and a copy is another one */
    put_foreign(&h, "theirs.db/copy");
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    expect_ok(tarn_store_get(h.store, t->op, "more.db/z/.tarn-table", &text));
    expect_ok(tarn_store_put(h.store, t->op, "theirs.db/copy/.tarn-table", tarn_buf_slice(&text)));
    expect_true(strcmp(uuid_of(&h, "copy"), uuid) != 0);
    expect_false(is_compacted(&h, "copy"));
}

TARN_TEST(adopt, what_others_remove_vanishes)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_database_info *databases;
    size_t count;
    house_init(&h, t);
    put_foreign(&h, "theirs.db/t");
    put_foreign(&h, "theirs.db/t/branch/branch-b");
    put_foreign(&h, "theirs.db/u");
    put_foreign(&h, "other.db/v");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *branch = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *gone = NULL;
    find(&h, "t", &table);
    find(&h, "t$branch_b", &branch);
    expect_str(tables(&h, "theirs"), "t u"); /* branches aren't tables of it */
    expect_str(tables(&h, "other"), "v");
    const char *uuid = tarn_table_uuid(table), *branch_uuid = tarn_table_uuid(branch);
    expect_ok(tarn_store_move_folder(h.store, t->op, "theirs.db/t", "elsewhere"));
    expect_str(tables(&h, "theirs"), "u");
    expect_status(tarn_catalog_table_by_uuid(t->op, h.catalog, S(uuid), &gone),
                  TARN_TABLE_NOT_FOUND, uuid);
    expect_status(tarn_catalog_table_by_uuid(t->op, h.catalog, S(branch_uuid), &gone),
                  TARN_TABLE_NOT_FOUND, branch_uuid);
    /* a database with all that is in it */
    const char *v = NULL;
    {
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *other = NULL;
        expect_ok(tarn_catalog_table(t->op, h.catalog, S("other"), S("v"), S(""), &other));
        v = tarn_arena_str(t->arena, S(tarn_table_uuid(other)));
    }
    expect_ok(tarn_store_move_folder(h.store, t->op, "other.db", "gone"));
    expect_ok(tarn_database_list(t->op, h.catalog, &databases, &count));
    expect_int(count, 1);
    expect_status(tarn_catalog_table_by_uuid(t->op, h.catalog, S(v), &gone), TARN_TABLE_NOT_FOUND,
                  v);
}

TARN_TEST(adopt, a_path_is_a_database_s_or_table_s)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    const char *root = tarn_store_uri(h.store), *bare = root + strlen("file://");
    const char *const roots[] = {root, bare, tarn_arena_printf(t->arena, "file:%s", bare)};
    struct tarn_slice database, name;
    for (size_t i = 0; i < TARN_COUNT_OF(roots); i++) {
        static const char *const tails[] = {"", "/", "/a.db", "/a.db/", "/a.db/t", "/a.db/t/"};
        static const char *const found[] = {" ", " ", "a ", "a ", "a t", "a t"};
        for (size_t k = 0; k < TARN_COUNT_OF(tails); k++) {
            expect_ok(tarn_catalog_locate(
                t->op, h.catalog, S(tarn_arena_printf(t->arena, "%s%s", roots[i], tails[k])),
                &database, &name));
            expect_str(tarn_arena_printf(t->arena, "%.*s %.*s", TARN_SLICE_ARG(database),
                                         TARN_SLICE_ARG(name)),
                       found[k]);
        }
    }
    expect_ok(tarn_catalog_locate(t->op, h.catalog, S("a.db/t"), &database, &name));
    expect_slice(name, "t");
    const char *const outside[] = {"/etc/passwd.db/t", "s3://bucket/a.db/t",
                                   tarn_arena_printf(t->arena, "%s2/a.db/t", bare)};
    for (size_t i = 0; i < TARN_COUNT_OF(outside); i++)
        expect_status(tarn_catalog_locate(t->op, h.catalog, S(outside[i]), &database, &name),
                      TARN_PATH_INVALID, "outside the warehouse");
    static const char *const misplaced[] = {"a/t", "a.db/t/snapshot", "../a.db/t", "a.db/../b.db",
                                            ".db/t"};
    for (size_t i = 0; i < TARN_COUNT_OF(misplaced); i++)
        expect_status(tarn_catalog_locate(t->op, h.catalog, S(misplaced[i]), &database, &name),
                      TARN_PATH_INVALID, "no place of a database or table");
    expect_status(tarn_catalog_locate(t->op, h.catalog, S(""), &database, &name), TARN_PATH_INVALID,
                  "empty");
}

TARN_TEST(adopt, folders_are_looked_at_before_they_are_adopted)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_folder *list, one;
    size_t count;
    house_init(&h, t);
    put_foreign(&h, "theirs.db/bad$name");
    expect_ok(tarn_store_put(h.store, t->op, "theirs.db/junk/README", S("x")));
    put_foreign(&h, "theirs.db/mine");
    put_foreign(&h, "theirs.db/new");
    put_foreign(&h, "theirs.db/odd");
    expect_ok(tarn_store_put(h.store, t->op, "theirs.db/odd/.tarn-table", S("?")));
    const char *uuid = uuid_of(&h, "mine");
    expect_ok(tarn_catalog_folders(t->op, h.catalog, S("theirs"), &list, &count));
    expect_int(count, 5);
    expect_slice(list[0].name, "bad$name");
    expect_true(!list[0].is_table && strstr(list[0].why_not, "bad$name") != NULL);
    expect_true(!list[1].is_table && strstr(list[1].why_not, "schema") != NULL);
    expect_true(list[2].is_table && list[2].has_identity);
    expect_str(list[2].uuid, uuid);
    expect_true(list[3].is_table && !list[3].has_identity && list[3].damaged == NULL);
    expect_true(list[4].is_table && !list[4].has_identity && list[4].damaged != NULL);
    expect_ok(tarn_catalog_folder(t->op, h.catalog, S("theirs"), S("new"), &one));
    expect_str(one.path, "theirs.db/new");
    expect_status(tarn_catalog_folder(t->op, h.catalog, S("theirs"), S("none"), &one),
                  TARN_TABLE_NOT_FOUND, "no folder none");
    expect_status(tarn_catalog_folders(t->op, h.catalog, S("none"), &list, &count),
                  TARN_DATABASE_NOT_FOUND, "none");
    struct tarn_object *objects;
    expect_ok(tarn_store_list(h.store, t->op, "theirs.db/new", true, &objects, &count));
    expect_int(count, 1); /* nothing but its schema */
}
