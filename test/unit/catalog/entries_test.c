/*
 * Promise: a table whose name can't safely be a folder, whose folder is to be called by its uuid, which lies elsewhere, or which is of
 * another kind is found by its name as the others are, by every daemon that has the warehouse; what a crash leaves of a rename or a
 * drop is no second table; nothing outside of the warehouse is touched that an administrator didn't allow, nor ever removed.
 */
#include "fixture.h"

#include "catalog/internal.h"

static void setup(struct house *h, struct tarn_test *t)
{
    house_init(h, t);
    make_database(h, "db");
}

static void reopen(struct house *h)
{
    static int number;
    close_catalog(h);
    open_catalog(h, tarn_arena_printf(h->t->arena, "state-%d", number++));
}

static bool has(struct house *h, const char *key)
{
    bool found;
    expect_ok(tarn_store_stat(h->store, h->t->op, key, &found, NULL));
    return found;
}

static const char *path_of(struct house *h, const char *name)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(find_table(h, "db", name, NULL, &table));
    return tarn_arena_str(h->t->arena, S(tarn_table_path(table)));
}

static void make(struct house *h, const char *name)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(make_table(h, "db", name, &table));
}

static struct tarn_status *rename_table(struct house *h, const char *name, const char *to)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(find_table(h, "db", name, NULL, &table));
    return tarn_catalog_rename_table(h->t->op, h->catalog, table, S("db"), S(name), S("db"), S(to));
}

static struct tarn_status *drop_table(struct house *h, const char *name)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(find_table(h, "db", name, NULL, &table));
    return tarn_catalog_drop_table(h->t->op, h->catalog, table, S("db"), S(name));
}

static const char *names(struct house *h)
{
    struct tarn_table_info *list;
    size_t count;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    expect_ok(tarn_catalog_tables(h->t->op, h->catalog, S("db"), &list, &count));
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : "|", TARN_SLICE_ARG(list[i].name));
    return tarn_arena_str(h->t->arena, tarn_buf_slice(&text));
}

/* --- folders by uuid --- */

TARN_TEST(entries, a_table_in_a_folder_by_uuid_is_found_by_its_name)
{
    TARN_OWN(house_fini) struct house h;
    setup(&h, t);
    h.options.folders_by_uuid = true;
    reopen(&h);
    make(&h, "t");
    const char *uuid = uuid_of_table(&h, "db", "t");
    expect_str(path_of(&h, "t"), tarn_arena_printf(t->arena, "tables/%s", uuid));
    h.options.folders_by_uuid = false; /* what is there stays where it is */
    reopen(&h);
    expect_str(names(&h), "t");
    expect_str(uuid_of_table(&h, "db", "t"), uuid);
    expect_int(has(&h, "db.db/t/schema/schema-0"), false);
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *again = NULL;
    expect_status(make_table(&h, "db", "t", &again), TARN_TABLE_EXISTS, "db.t");
}

TARN_TEST(entries, a_rename_leaves_a_folder_by_uuid_where_it_is)
{
    TARN_OWN(house_fini) struct house h;
    setup(&h, t);
    h.options.folders_by_uuid = true;
    reopen(&h);
    make(&h, "t");
    make(&h, "taken");
    const char *path = path_of(&h, "t");
    expect_status(rename_table(&h, "t", "taken"), TARN_TABLE_EXISTS, "db.taken");
    expect_ok(rename_table(&h, "t", "u"));
    expect_str(path_of(&h, "u"), path);
    expect_str(names(&h), "taken|u");
    reopen(&h);
    expect_str(names(&h), "taken|u");
    expect_str(path_of(&h, "u"), path);
    make(&h, "t"); /* the old name is free */
    expect_ok(drop_table(&h, "u"));
    expect_false(has(&h, tarn_arena_printf(t->arena, "%s/schema/schema-0", path)));
    expect_str(names(&h), "t|taken");
}

TARN_TEST(entries, what_a_cut_off_rename_or_drop_left_is_no_table)
{
    TARN_OWN(house_fini) struct house h;
    setup(&h, t);
    h.options.folders_by_uuid = true;
    reopen(&h);
    make(&h, "t");
    TARN_OWN(tarn_buf_drop) struct tarn_buf entry = {0};
    expect_ok(tarn_store_get(h.store, t->op, ".tarn/tables/db/t", &entry));
    expect_ok(tarn_store_put(h.store, t->op, ".tarn/tables/db/new", tarn_buf_slice(&entry)));
    expect_ok(tarn_store_put(h.store, t->op, ".tarn/tables/db/gone",
                             S("{\"uuid\":\"11111111-2222-4333-8444-555555555555\","
                               "\"folder\":\"tables/11111111-2222-4333-8444-555555555555\"}")));
    reopen(&h);
    expect_str(names(&h), "t");
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_status(find_table(&h, "db", "new", NULL, &table), TARN_TABLE_NOT_FOUND, "db.new");
    make(&h, "gone"); /* its name is free */
    const char *uuid = uuid_of_table(&h, "db", "t");
    expect_ok(rename_table(&h, "t", "new")); /* the same once more goes on */
    expect_str(uuid_of_table(&h, "db", "new"), uuid);
    expect_str(names(&h), "gone|new");
}

static const char *const strange[] = {
    "a#b", "a?b", "100%", "a%2fb", "*",   "a{b}", "a[b]",
    "a:b", " a",  "a ",   "a\"b",  "a|b", "a<b>", "`a`",
};

TARN_TEST(entries, names_that_clients_would_cut_or_match_are_no_folders)
{
    TARN_OWN(house_fini) struct house h;
    setup(&h, t);
    for (size_t i = 0; i < TARN_COUNT_OF(strange); i++) {
        make(&h, strange[i]);
        expect_str(path_of(&h, strange[i]),
                   tarn_arena_printf(t->arena, "tables/%s", uuid_of_table(&h, "db", strange[i])));
    }
    static const char *const plain[] = {"a", "a b+c", "a'b", "ä", "a.b", "a;b&c=d", "(a)~!@,"};
    for (size_t i = 0; i < TARN_COUNT_OF(plain); i++) {
        make(&h, plain[i]);
        expect_str(path_of(&h, plain[i]), tarn_arena_printf(t->arena, "db.db/%s", plain[i]));
    }
    const char *before = names(&h);
    reopen(&h);
    expect_str(names(&h), before);
    for (size_t i = 0; i < TARN_COUNT_OF(strange); i++)
        expect_ok(drop_table(&h, strange[i]));
}

TARN_TEST(entries, a_rename_to_such_a_name_takes_the_folder_along)
{
    TARN_OWN(house_fini) struct house h;
    setup(&h, t);
    make(&h, "t");
    const char *uuid = uuid_of_table(&h, "db", "t");
    expect_ok(rename_table(&h, "t", "t#1"));
    expect_str(names(&h), "t#1");
    expect_str(path_of(&h, "t#1"), tarn_arena_printf(t->arena, "tables/%s", uuid));
    expect_false(has(&h, "db.db/t/schema/schema-0"));
    reopen(&h);
    expect_str(uuid_of_table(&h, "db", "t#1"), uuid);
    expect_ok(rename_table(&h, "t#1", "t")); /* and stays there */
    expect_str(path_of(&h, "t"), tarn_arena_printf(t->arena, "tables/%s", uuid));
    reopen(&h);
    expect_str(names(&h), "t");
}

/* --- of another kind --- */

static struct tarn_status *make_kind(struct house *h, const char *name, const char *location,
                                     struct tarn_catalog_entry *out)
{
    struct tarn_schema draft;
    struct tarn_pair type = {S("type"), S("format-table")};
    make_draft(h, &draft);
    draft.primary_key_count = 0;
    draft.options = &type;
    return tarn_catalog_create_entry(h->t->op, h->catalog, S("db"), S(name), &draft, S(location),
                                     out);
}

static struct tarn_status *get(struct house *h, const char *name, struct tarn_catalog_entry *out)
{
    return tarn_catalog_entry(h->t->op, h->catalog, S("db"), S(name), S(NULL), out);
}

TARN_TEST(entries, of_another_kind_there_is_the_entry)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_catalog_entry made, entry;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_slice database, name;
    setup(&h, t);
    make(&h, "t");
    expect_status(make_kind(&h, "t", NULL, &made), TARN_TABLE_EXISTS, "db.t");
    expect_ok(make_kind(&h, "f", NULL, &made));
    expect_status(make_kind(&h, "f", NULL, &entry), TARN_TABLE_EXISTS, "db.f");
    expect_status(make_table(&h, "db", "f", &table), TARN_TABLE_EXISTS, "db.f");
    reopen(&h);
    expect_str(names(&h), "f|t");
    expect_status(find_table(&h, "db", "f", NULL, &table), TARN_ENTRY_ONLY, "format-table");
    expect_status(tarn_catalog_table_by_uuid(t->op, h.catalog, S(made.uuid), &table),
                  TARN_ENTRY_ONLY, "no table of Paimon's");
    expect_true(tarn_catalog_find_entry_names(t->op, h.catalog, S(made.uuid), &database, &name));
    expect_bytes(name, S("f"));
    expect_ok(get(&h, "f", &entry));
    expect_str(entry.uuid, made.uuid);
    expect_int(entry.schema.field_count, 2);
    expect_status(get(&h, "t", &entry), TARN_TABLE_NOT_FOUND, "db.t");
    struct tarn_schema_change change = {
        .kind = TARN_CHANGE_SET_OPTION, .key = S("csv.field-delimiter"), .value = S(";")};
    expect_ok(tarn_catalog_alter_entry(t->op, h.catalog, S("db"), S("f"), &change, 1, &entry));
    expect_status(
        tarn_catalog_rename_entry(t->op, h.catalog, S("db"), S("f"), S("db"), S("t"), &entry),
        TARN_TABLE_EXISTS, "db.t");
    expect_ok(
        tarn_catalog_rename_entry(t->op, h.catalog, S("db"), S("f"), S("db"), S("g"), &entry));
    reopen(&h);
    expect_ok(get(&h, "g", &entry));
    expect_str(entry.uuid, made.uuid);
    expect_bytes(tarn_schema_option(&entry.schema, "csv.field-delimiter"), S(";"));
    expect_str(names(&h), "g|t");
}

/* Under two names, a drop of one would take the files of both. */
TARN_TEST(entries, one_of_another_kind_whose_rename_is_cut_off_has_one_name)
{
    TARN_OWN(house_fini) struct house h;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_catalog_entry made, entry;
    setup(&h, t);
    expect_ok(make_kind(&h, "f", NULL, &made));
    expect_ok(tarn_store_get(h.store, t->op, ".tarn/tables/db/f", &text));
    const char *begun =
        tarn_arena_printf(t->arena, "%.*s,\"renamed_to\":{\"database\":\"db\",\"table\":\"g\"}}",
                          (int)((const uint8_t *)memrchr(text.data, '}', text.size) - text.data),
                          (const char *)text.data);
    expect_ok(tarn_store_put(h.store, t->op, ".tarn/tables/db/f", S(begun)));
    reopen(&h);
    expect_str(names(&h), "f"); /* not yet */
    expect_ok(get(&h, "f", &entry));
    expect_ok(tarn_store_put(h.store, t->op, ".tarn/tables/db/g", tarn_buf_slice(&text)));
    reopen(&h);
    expect_str(names(&h), "g");
    expect_status(get(&h, "f", &entry), TARN_TABLE_NOT_FOUND, "db.f");
    expect_ok(get(&h, "g", &entry));
    expect_ok(tarn_catalog_drop_entry(t->op, h.catalog, S("db"), S("g")));
    reopen(&h);
    expect_str(names(&h), "");
}

TARN_TEST(entries, a_drop_removes_the_files_of_a_folder_in_the_warehouse)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_catalog_entry made, entry;
    setup(&h, t);
    expect_ok(make_kind(&h, "f", NULL, &made));
    const char *file = tarn_arena_printf(t->arena, "%.*s/d=1/x.csv", TARN_SLICE_ARG(made.folder));
    expect_ok(tarn_store_put(h.store, t->op, file, S("1,a")));
    expect_ok(tarn_catalog_drop_entry(t->op, h.catalog, S("db"), S("f")));
    expect_false(has(&h, file));
    expect_status(get(&h, "f", &entry), TARN_TABLE_NOT_FOUND, "db.f");
    expect_ok(make_kind(&h, "f", NULL, &made)); /* and they go with their database */
    int64_t dropped;
    expect_status(tarn_database_drop(t->op, h.catalog, S("db"), false, &dropped),
                  TARN_DATABASE_NOT_EMPTY, "has 1 table");
    expect_ok(tarn_database_drop(t->op, h.catalog, S("db"), true, &dropped));
    expect_int(dropped, 1);
    expect_false(has(&h, ".tarn/tables/db/f"));
}

TARN_TEST(entries, one_that_is_damaged_is_named_and_can_be_dropped)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_catalog_entry entry;
    setup(&h, t);
    expect_ok(tarn_store_put(h.store, t->op, ".tarn/tables/db/f", S("{\"uuid\":1}")));
    expect_status(get(&h, "f", &entry), TARN_OBJECT_DAMAGED, ".tarn/tables/db/f");
    expect_str(names(&h), "f");
    expect_ok(tarn_catalog_drop_entry(t->op, h.catalog, S("db"), S("f")));
    expect_str(names(&h), "");
}

TARN_TEST(entries, a_view_has_another_name)
{
    TARN_OWN(house_fini) struct house h;
    struct tarn_catalog_entry entry;
    struct tarn_catalog_object view;
    struct tarn_object_ref ref = {TARN_OBJECT_VIEW, S("db"), S("f")}, other = ref;
    struct tarn_slice body = S("{\"query\":\"SELECT 1\",\"fields\":[]}");
    setup(&h, t);
    other.name = S("v");
    expect_ok(make_kind(&h, "f", NULL, &entry));
    expect_status(tarn_catalog_create_object(t->op, h.catalog, ref, body, &view), TARN_TABLE_EXISTS,
                  "db.f");
    expect_ok(tarn_catalog_create_object(t->op, h.catalog, other, body, &view));
    expect_status(make_kind(&h, "v", NULL, &entry), TARN_VIEW_EXISTS, "db.v");
}

/* --- outside of the warehouse --- */

/* The folder that the warehouse, "w", lies in. */
static const char *around(struct house *h)
{
    struct tarn_slice uri = S(tarn_store_uri(h->store));
    return tarn_arena_str(
        h->t->arena, tarn_slice_of(uri.data + strlen("file://"), uri.size - strlen("file:///w")));
}

static const char *outside(struct house *h, const char *name)
{
    return tarn_arena_printf(h->t->arena, "file://%s/out/%s", around(h), name);
}

static struct tarn_status *make_external(struct house *h, const char *name, const char *location,
                                         struct tarn_table **out)
{
    struct tarn_schema draft;
    make_draft(h, &draft);
    return tarn_catalog_create_external(h->t->op, h->catalog, S("db"), S(name), &draft, S(location),
                                        out);
}

static void allow_outside(struct house *h)
{
    h->options.external_paths =
        tarn_arena_printf(h->t->arena, " s3a://b/x/ , file://%s/out/", around(h));
    reopen(h);
}

TARN_TEST(external, nothing_is_allowed_that_nobody_allowed)
{
    TARN_OWN(house_fini) struct house h;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_catalog_entry entry;
    setup(&h, t);
    expect_status(make_external(&h, "t", outside(&h, "t"), &table), TARN_LOCATION_REFUSED,
                  "allows no external tables");
    allow_outside(&h);
    const char *dir = around(&h);
    const struct {
        const char *location, *why;
    } refused[] = {
        {"file:///elsewhere/t", "below none"},
        {outside(&h, ""), "below none"}, /* the path itself */
        {tarn_arena_printf(t->arena, "file://%s/outer/t", dir), "below none"},
        {outside(&h, "../w/t"), "absolute URI"},
        {outside(&h, "a/../../w/t"), "absolute URI"},
        {outside(&h, "./t"), "absolute URI"},
        {outside(&h, "%2e%2e/t"), "not taken there"},
        {outside(&h, "t?x=1"), "not taken there"},
        {outside(&h, "t#x"), "not taken there"},
        {outside(&h, "a\nb"), "not taken there"},
        {"/tmp/t", "absolute URI"},
        {"t", "absolute URI"},
        {"file://host/t", "absolute URI"},
        {"s3:///x/t", "absolute URI"},
        {tarn_arena_printf(t->arena, "file://%s/w/db.db/t", dir), "meets the warehouse"},
        {tarn_arena_printf(t->arena, "file:%s//w/", dir), "meets the warehouse"},
        {tarn_arena_printf(t->arena, "file://%s", dir), "meets the warehouse"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(refused); i++) {
        expect_status(make_external(&h, "t", refused[i].location, &table), TARN_LOCATION_REFUSED,
                      refused[i].why);
        expect_status(make_kind(&h, "t", refused[i].location, &entry), TARN_LOCATION_REFUSED,
                      refused[i].why);
    }
    expect_str(names(&h), "");
    struct tarn_catalog_options options = {.external_paths = "file:///a, b"};
    expect_status(tarn_catalog_check_options(&options), TARN_CONFIG_INVALID, "external_paths");
    options.external_paths = "file:///a,,s3://b";
    expect_ok(tarn_catalog_check_options(&options));
}

TARN_TEST(external, a_table_lives_there_and_its_files_outlive_it)
{
    TARN_OWN(house_fini) struct house h;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    setup(&h, t);
    allow_outside(&h);
    expect_ok(make_external(&h, "t", outside(&h, "a//t/"), &table));
    expect_true(tarn_catalog_is_external(h.catalog, table));
    struct tarn_commit commit = {
        .user = S("u"), .identifier = 1, .watermark = TARN_SNAPSHOT_NONE, .force_empty = true};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, table, &commit, &result));
    tarn_table_drop_ref(&table);
    const char *uuid = uuid_of_table(&h, "db", "t");
    reopen(&h);
    expect_str(uuid_of_table(&h, "db", "t"), uuid);
    expect_ok(rename_table(&h, "t", "u"));
    expect_str(names(&h), "u");
    reopen(&h);
    expect_str(uuid_of_table(&h, "db", "u"), uuid);
    TARN_OWN(tarn_store_drop) struct tarn_store *store = NULL;
    bool found;
    expect_ok(tarn_store_open(outside(&h, "a"), &store));
    expect_ok(tarn_store_stat(store, t->op, "t/.tarn-table", &found, NULL));
    expect_false(found); /* nothing of ours */
    expect_ok(drop_table(&h, "u"));
    expect_str(names(&h), "");
    expect_ok(tarn_store_stat(store, t->op, "t/snapshot/snapshot-1", &found, NULL));
    expect_true(found);
    reopen(&h);
    expect_str(names(&h), "");
}

TARN_TEST(external, a_table_that_is_there_is_taken_with_its_history)
{
    TARN_OWN(house_fini) struct house h;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_store_drop) struct tarn_store *store = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    setup(&h, t);
    allow_outside(&h);
    tarn_test_golden("schema/java-primary-key.json", &schema);
    expect_ok(tarn_store_open(outside(&h, "a"), &store));
    expect_ok(tarn_store_put(store, t->op, "theirs/schema/schema-0", tarn_buf_slice(&schema)));
    expect_status(make_external(&h, "t", outside(&h, "a/theirs"), &table), TARN_SCHEMA_INVALID,
                  "other columns or keys");
    expect_str(names(&h), "");
    struct tarn_schema draft;
    expect_ok(tarn_schema_decode(tarn_buf_slice(&schema), t->arena, &draft));
    expect_ok(tarn_catalog_create_external(t->op, h.catalog, S("db"), S("t"), &draft,
                                           S(outside(&h, "a/theirs")), &table));
    expect_str(names(&h), "t");
}

/* A location is asked about at each opening, not only when it was written down. */
TARN_TEST(external, what_is_no_longer_allowed_is_refused)
{
    TARN_OWN(house_fini) struct house h;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    setup(&h, t);
    allow_outside(&h);
    expect_ok(make_external(&h, "t", outside(&h, "t"), &table));
    tarn_table_drop_ref(&table);
    h.options.external_paths = "";
    reopen(&h);
    expect_status(find_table(&h, "db", "t", NULL, &table), TARN_LOCATION_REFUSED,
                  "allows no external tables");
    expect_str(names(&h), "t");
}
