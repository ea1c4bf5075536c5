/*
 * Promise: an inspection finds what is missing or unreadable in a folder, says where, and calls nothing damaged that is whole; it writes
 * nothing, and what others take away meanwhile is no finding.
 */
#include "table/inspect.h"

#include "fault_others.h"

#include "table/refs.h"
#include "table/watch.h"

#define S(text) tarn_slice_str(text)
#define NONE TARN_SNAPSHOT_NONE

static struct tarn_inspection inspect(struct fixture *f, enum tarn_inspect_files files)
{
    struct tarn_inspection found;
    expect_ok(tarn_table_inspect(f->t->op, &f->env, "db.db/t", "db.t", files, &found));
    return found;
}

/* "KIND where: what" of each finding, one a line. */
static const char *told(struct fixture *f, const struct tarn_inspection *found)
{
    static const char *const kinds[] = {"damage", "limit", "note"};
    const char *text = "";
    for (size_t i = 0; i < found->finding_count; i++) {
        const struct tarn_finding *one = &found->findings[i];
        expect_true(one->advice[0] != '\0');
        text = tarn_arena_printf(f->t->arena, "%s%s %s: %s\n", text, kinds[one->kind], one->where,
                                 one->what);
    }
    return text;
}

static void expect_told(struct fixture *f, const struct tarn_inspection *found, const char *part)
{
    const char *text = told(f, found);
    if (strstr(text, part) == NULL)
        expect_str(text, part);
}

static void put_file(struct fixture *f, const struct tarn_manifest_entry *e)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    for (int64_t i = 0; i < e->file.size; i++)
        tarn_buf_add_byte(&bytes, 'x');
    folder_put(
        f,
        tarn_arena_printf(f->t->arena, "bucket-%d/%.*s", e->bucket, TARN_SLICE_ARG(e->file.name)),
        tarn_buf_slice(&bytes));
}

/* Three snapshots with their files, and hints. */
static void land(struct fixture *f)
{
    const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        struct tarn_manifest_entry file = fixture_file(f, names[i]);
        put_file(f, &file);
        fixture_land(f, i + 1, names[i]);
    }
    folder_put(f, "snapshot/LATEST", S("3"));
    folder_put(f, "snapshot/EARLIEST", S("1"));
}

/* A history as its writers leave it, with a tag, a branch of it, a consumer. */
static void build(struct fixture *f)
{
    struct tarn_tag tag;
    land(f);
    expect_ok(tarn_table_create_tag(f->t->op, f->table, S("two"), TARN_VERSION_ID(2), NONE, &tag));
    expect_ok(tarn_table_create_branch(f->t->op, f->table, S("b1"), S("two")));
    folder_put(f, "branch/branch-b1/snapshot/LATEST", S("2"));
    expect_ok(tarn_table_set_consumer(f->t->op, f->table, S("reader"), 2));
}

static const char *picture(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count;
    const char *text = "";
    expect_ok(tarn_store_list(f->inner, f->t->op, "", true, &objects, &count));
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf body = {0};
        const char *key = tarn_arena_str(f->t->arena, objects[i].key);
        expect_ok(tarn_store_get(f->inner, f->t->op, key, &body));
        text = tarn_arena_printf(f->t->arena, "%s%s %016" PRIx64 " %" PRId64 "\n", text, key,
                                 tarn_xxh64(tarn_buf_slice(&body), 0), objects[i].mtime_ms);
    }
    return text;
}

TARN_TEST(inspect, finds_nothing_where_all_is_whole_and_writes_nothing)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    build(&f);
    const char *before = picture(&f);
    static const enum tarn_inspect_files ways[] = {TARN_INSPECT_SAMPLE, TARN_INSPECT_ALL,
                                                   TARN_INSPECT_NONE};
    static const int64_t looked[] = {3 + 2, 3 + 2,
                                     0}; /* of the table's, and the branch's own history */
    for (size_t i = 0; i < TARN_COUNT_OF(ways); i++) {
        struct tarn_inspection found = inspect(&f, ways[i]);
        expect_str(told(&f, &found), "");
        expect_int(found.damage_count + found.limit_count, 0);
        expect_int(found.earliest_id, 1);
        expect_int(found.latest_id, 3);
        expect_int(found.snapshot_count, 3);
        expect_int(found.schema_count, 2);
        expect_int(found.tag_count, 2);
        expect_int(found.branch_count, 1);
        expect_int(found.consumer_count, 1);
        expect_int(found.file_count, 3);
        expect_int(found.looked_count, looked[i]);
        expect_true(found.can_compact && !found.is_write_only);
    }
    expect_str(picture(&f), before);
}

/* Each breaks one thing, and must be told of it: where, and that it is. */
struct breakage {
    const char *remove, *put, *body;
    const char *told;
};
static const struct breakage breakages[] = {
    {NULL, "snapshot/snapshot-2", "{ not json",
     "damage db.db/t/snapshot/snapshot-2: the snapshot can't be read"},
    {"snapshot/snapshot-2", NULL, NULL,
     "damage db.db/t/snapshot/snapshot-2: snapshot 2 is missing between 1 and 3"},
    {NULL, "snapshot/LATEST", "2",
     "note db.db/t/snapshot/LATEST: the hint says 2, and it is snapshot 3"},
    {NULL, "snapshot/LATEST", "what?", "note db.db/t/snapshot/LATEST: the hint says what?"},
    {"snapshot/LATEST", NULL, NULL, "note db.db/t/snapshot/LATEST: the hint isn't there"},
    {NULL, "snapshot/EARLIEST", "7",
     "note db.db/t/snapshot/EARLIEST: the hint says 7, and it is snapshot 1"},
    {NULL, "schema/schema-1", "[]", "damage db.db/t/schema/schema-1: the schema can't be read"},
    {"schema/schema-0", "schema/schema-1", "[]",
     "damage db.db/t/snapshot/snapshot-1: snapshot 1 is of schema 0"},
    {NULL, "tag/tag-bad", "", "damage db.db/t/tag/tag-bad: the tag can't be read"},
    {NULL, "consumer/consumer-x", "{}",
     "damage db.db/t/consumer/consumer-x: the consumer can't be read"},
    {NULL, "consumer/consumer-x", "{\"nextSnapshot\": 0}", "damage db.db/t/consumer/consumer-x"},
    {NULL, "changelog/changelog-1", "{}", "limit db.db/t/changelog: 1 changelogs"},
    {NULL, "branch/branch-b1/snapshot/snapshot-2", "x",
     "damage db.db/t/branch/branch-b1/snapshot/snapshot-2"},
    {"branch/branch-b1/schema/schema-0", NULL, NULL,
     "damage db.db/t/branch/branch-b1/schema: there is no schema"},
    {NULL, "branch/branch-7/schema/schema-0", "{}",
     "limit db.db/t/branch/branch-7: the branch can't be used here"},
    {"bucket-0/b", NULL, NULL,
     "damage db.db/t/bucket-0/b: a manifest names it, and it isn't there"},
    {NULL, "bucket-0/c", "short", "damage db.db/t/bucket-0/c: it has 5 bytes"},
};

TARN_TEST(inspect, names_what_is_broken_and_where)
{
    for (size_t i = 0; i < TARN_COUNT_OF(breakages); i++) {
        TARN_OWN(fixture_fini) struct fixture f;
        const struct breakage *b = &breakages[i];
        fixture_init(&f, t);
        build(&f);
        if (b->remove != NULL)
            folder_remove(&f, b->remove);
        if (b->put != NULL)
            folder_put(&f, b->put, S(b->body));
        struct tarn_inspection found = inspect(&f, TARN_INSPECT_SAMPLE);
        expect_told(&f, &found, b->told);
        expect_int(found.damage_count > 0, strncmp(b->told, "damage", 6) == 0);
    }
}

/* The name of each file that a snapshot needs, in turn. */
TARN_TEST(inspect, names_each_list_and_manifest_that_is_gone_or_cut)
{
    struct tarn_object *objects;
    size_t count, done = 0;
    for (size_t i = 0; i <= done; i++)
        for (int cut = 0; cut <= 1; cut++) {
            TARN_OWN(fixture_fini) struct fixture f;
            fixture_init(&f, t);
            build(&f);
            expect_ok(tarn_store_list(f.inner, t->op, "db.db/t/manifest", false, &objects, &count));
            if (i == count)
                return;
            done = count;
            const char *key = tarn_arena_str(t->arena, objects[i].key);
            TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
            expect_ok(tarn_store_get(f.inner, t->op, key, &bytes));
            if (cut)
                expect_ok(
                    tarn_store_put(f.inner, t->op, key, tarn_slice_of(bytes.data, bytes.size - 1)));
            else
                expect_ok(tarn_store_remove(f.inner, t->op, key));
            struct tarn_inspection found = inspect(&f, TARN_INSPECT_NONE);
            expect_true(found.damage_count > 0);
            expect_told(&f, &found, strrchr(key, '/') + 1);
        }
}

TARN_TEST(inspect, lists_every_option_that_would_not_work)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t,
                         "\"record-level.expire-time\":\"1 d\",\"file.format\":\"csv\","
                         "\"write-only\":\"true\"");
    struct tarn_inspection found = inspect(&f, TARN_INSPECT_SAMPLE);
    expect_told(
        &f, &found,
        "limit db.db/t/schema/schema-0: record-level.expire-time = 1 d: rows are neither read");
    expect_told(&f, &found,
                "limit db.db/t/schema/schema-0: file.format = csv: rows are neither read");
    expect_int(found.limit_count, 2);
    expect_int(found.damage_count, 0);
    expect_true(found.is_write_only && !found.can_compact);
    expect_int(found.latest_id, 0);
    expect_int(found.file_count, 0);
}

TARN_TEST(inspect, looks_for_all_files_that_some_version_needs)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    build(&f);
    /* a and b become d, in level 5: only the older snapshots and the tag need them any more */
    struct tarn_manifest_entry entries[] = {
        fixture_entry(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 10, 1),
        fixture_entry(&f, TARN_ENTRY_DELETE, "b", 0, 0, 1, 10, 1),
        fixture_entry(&f, TARN_ENTRY_ADD, "d", 0, 5, 1, 10, 1)};
    int64_t id;
    expect_ok(fixture_compact(&f, entries, TARN_COUNT_OF(entries), &id));
    put_file(&f, &entries[2]);
    folder_put(&f, "snapshot/LATEST", S("4"));
    struct tarn_inspection found = inspect(&f, TARN_INSPECT_ALL);
    expect_str(told(&f, &found), "");
    expect_int(found.file_count, 2);
    folder_remove(&f, "bucket-0/a");
    found = inspect(&f, TARN_INSPECT_ALL);
    expect_told(&f, &found, "damage db.db/t/bucket-0/a");
    expect_int(found.damage_count, 1);
    /* when its snapshots have expired, the tag and the branch need it still */
    for (int i = 1; i <= 3; i++)
        folder_remove(&f, tarn_arena_printf(t->arena, "snapshot/snapshot-%d", i));
    folder_put(&f, "snapshot/EARLIEST", S("4"));
    folder_remove(&f, "branch/branch-b1/snapshot/snapshot-2");
    found = inspect(&f, TARN_INSPECT_ALL);
    expect_int(found.damage_count, 1);
    folder_remove(&f, "branch/branch-b1/tag/tag-two");
    found = inspect(&f, TARN_INSPECT_ALL);
    expect_int(found.damage_count, 1);
    folder_remove(&f, "tag/tag-two");
    found = inspect(&f, TARN_INSPECT_ALL);
    expect_int(found.damage_count, 0);
    folder_remove(&f, "bucket-0/d");
    found = inspect(&f, TARN_INSPECT_SAMPLE);
    expect_told(&f, &found, "damage db.db/t/bucket-0/d");
}

static void expire(void *arg)
{
    others_expire(arg, 3);
}

TARN_TEST(inspect, what_others_expire_meanwhile_is_no_damage)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct moment m = {
        .call = "get", .key_part = "snapshot/snapshot-1", .afterwards = true, .act = expire};
    fixture_init(&f, t);
    land(&f);
    m.arg = &f;
    moment_init(&f, &m);
    struct tarn_inspection found = inspect(&f, TARN_INSPECT_SAMPLE);
    expect_int(m.happened, 1);
    expect_int(found.damage_count, 0);
    fixture_restart(&f, false);
}

/* Far more files than a sample has, most of them deleted again: what is looked at is live. */
TARN_TEST(inspect, a_sample_is_of_live_files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    enum { COUNT = 3000, LIVE = 30 };
    fixture_init(&f, t);
    struct tarn_manifest_entry *entries = tarn_arena_calloc(t->arena, COUNT, sizeof *entries);
    for (int i = 0; i < COUNT; i++) {
        entries[i] = fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%04d", i), 0,
                                   0, 1, 10, 1);
        put_file(&f, &entries[i]);
    }
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, entries, COUNT, &id));
    struct tarn_inspection found = inspect(&f, TARN_INSPECT_SAMPLE);
    expect_int(found.looked_count, TARN_INSPECT_SAMPLE_FILES);
    expect_int(found.file_count, COUNT);
    expect_int(found.damage_count, 0);
    for (int i = LIVE; i < COUNT; i++) {
        entries[i].kind = TARN_ENTRY_DELETE;
        folder_remove(&f, tarn_arena_printf(t->arena, "bucket-0/f%04d", i));
    }
    expect_ok(fixture_compact(&f, entries + LIVE, COUNT - LIVE, &id));
    found = inspect(&f, TARN_INSPECT_SAMPLE);
    expect_int(found.damage_count, 0);
    expect_int(found.file_count, LIVE);
    expect_true(found.looked_count > 0 && found.looked_count <= LIVE);
}
