/*
 * Promise: an expiry removes what count and age say, and nothing that a snapshot that stays, a tag, a branch, a consumer or a pin needs; all that
 * it removes is gone, and all that stays can be read; cut off at any call of the store it leaves a table that is whole, and the next one finishes.
 * (docs/faults.md, rows 14 and 15)
 */
#include "table/expire.h"

#include "commits.h"
#include "fault_others.h"
#include "shape.h"
#include "survivors.h"

#include <pthread.h>

#include "table/refs.h"
#include "table/watch.h"

#define NONE TARN_SNAPSHOT_NONE
#define S(text) tarn_slice_str(text)
#define QUIET "\"bucket\":\"-1\",\"manifest.merge-min-count\":\"100000\""

static const struct shape dynamic = {.primary_key = true, .options = QUIET};
static const struct shape hourly = {.primary_key = true,
                                    .partition_count = 1,
                                    .options = QUIET ",\"snapshot.time-retained\":\"2 min\","
                                                     "\"snapshot.num-retained.min\":\"2\","
                                                     "\"snapshot.num-retained.max\":\"8\""};

/* --- commits of files that are there --- */

static struct tarn_manifest_entry entry(struct fixture *f, enum tarn_entry_kind kind,
                                        const char *name, int level)
{
    return shape_entry(f, kind, tarn_arena_str(f->t->arena, S(name)), tarn_row_empty(), 0, -1,
                       level, 1, 10);
}

static int64_t commit_to(struct fixture *f, struct tarn_table *table, struct tarn_commit *c)
{
    static int
        number; /* whoever brings the same files again is another one, or it would be a replay */
    struct tarn_commit_result result;
    c->user = S(tarn_arena_printf(f->t->arena, "w%d", number++));
    c->identifier = TARN_COMMIT_IDENTIFIER_BATCH;
    c->watermark = c->base_snapshot_id = NONE;
    survivors_put(f, c->append.entries, c->append.count);
    survivors_put(f, c->append.changelog, c->append.changelog_count);
    survivors_put(f, c->compact.entries, c->compact.count);
    for (size_t i = 0; i < c->append.index_count; i++)
        if (c->append.index[i].kind == TARN_ENTRY_ADD)
            survivors_put_key(f, "index", c->append.index[i].name);
    if (c->statistics.data != NULL)
        survivors_put_key(f, "statistics", c->statistics);
    expect_ok(tarn_table_commit(f->t->op, table, c, &result));
    return TARN_MAX(result.append_snapshot_id, result.compact_snapshot_id);
}

static int64_t add(struct fixture *f, const char *name)
{
    struct tarn_manifest_entry e = entry(f, TARN_ENTRY_ADD, name, 0);
    struct tarn_commit c = {.kind = TARN_COMMIT_APPEND, .append = {.entries = &e, .count = 1}};
    return commit_to(f, f->table, &c);
}

/* `gone` in level 0 (and `gone_too` in level 5, or NULL) become `name` in level 5. */
static int64_t compact(struct fixture *f, const char *gone, const char *gone_too, const char *name)
{
    struct tarn_manifest_entry e[3] = {entry(f, TARN_ENTRY_DELETE, gone, 0)};
    size_t n = 1;
    if (gone_too != NULL)
        e[n++] = entry(f, TARN_ENTRY_DELETE, gone_too, 5);
    e[n++] = entry(f, TARN_ENTRY_ADD, name, 5);
    struct tarn_commit c = {.compact = {.entries = e, .count = n}};
    return commit_to(f, f->table, &c);
}

static int64_t drop(struct fixture *f, const char *name, int level)
{
    struct tarn_manifest_entry e = entry(f, TARN_ENTRY_DELETE, name, level);
    struct tarn_commit c = {.kind = TARN_COMMIT_OVERWRITE, .append = {.entries = &e, .count = 1}};
    return commit_to(f, f->table, &c);
}

static void tag(struct fixture *f, const char *name, int64_t id)
{
    struct tarn_tag tag;
    expect_ok(tarn_table_create_tag(f->t->op, f->table, S(name), TARN_VERSION_ID(id), NONE, &tag));
}

/* --- expiries --- */

static const struct tarn_expire_request last_1 = {
    .keep_last = 1, .older_than_ms = TARN_EXPIRE_OPTION, .keep_from = INT64_MAX};

static struct tarn_expire_request keep(int64_t count)
{
    struct tarn_expire_request r = last_1;
    r.keep_last = count;
    return r;
}

static struct tarn_expiry expire(struct fixture *f, struct tarn_expire_request request)
{
    struct tarn_expiry out;
    expect_ok(tarn_table_expire(f->t->op, f->table, &request, &out));
    return out;
}

/* One after which all is as it should be. */
static struct tarn_expiry expire_well(struct fixture *f, struct tarn_expire_request request)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *named = survivors_named(f);
    TARN_OWN(tarn_map_drop) struct tarn_map *there = survivors_there(f);
    struct tarn_expiry out = expire(f, request);
    survivors_check(f, there, named);
    return out;
}

static bool has_file(struct fixture *f, const char *name)
{
    return folder_has(f, tarn_arena_printf(f->t->arena, "bucket-0/%s", name));
}

static struct tarn_status *plan_of(struct fixture *f, int64_t id)
{
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(id), .no_splits = true};
    struct tarn_plan plan;
    return tarn_table_plan(f->t->op, f->table, &request, &plan);
}

static const char *hint(struct fixture *f)
{
    return tarn_arena_str(f->t->arena, folder_get(f, "snapshot/EARLIEST"));
}

TARN_TEST(expire, by_count_leaves_the_last_ones_and_they_can_be_read)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    compact(&f, "a", NULL, "a5");
    add(&f, "b");
    expect_int(compact(&f, "b", "a5", "ab5"), 4);
    struct tarn_expire_request dry = keep(2);
    dry.dry_run = true;
    struct tarn_expiry would = expire(&f, dry);
    expect_int(others_oldest(&f), 1);
    struct tarn_expiry out = expire_well(&f, keep(2)); /* 3 and 4 stay */
    expect_int(out.from, 1);
    expect_int(out.to, 3);
    expect_int(out.snapshot_count, 2);
    expect_int(out.data_file_count, 1); /* a: what 3 and 4 have is a5, b, ab5 */
    expect_int(out.data_byte_count, 1000);
    expect_int(would.data_file_count, 1);
    expect_int(would.to, 3);
    expect_int(would.manifest_count, out.manifest_count);
    expect_contains(out.kept_by, "last that stay");
    expect_str(hint(&f), "3");
    expect_false(has_file(&f, "a"));
    expect_true(has_file(&f, "a5"));
    expect_str(fixture_files(&f, 3, NULL), "a5 b");
    expect_status(plan_of(&f, 2), TARN_SNAPSHOT_EXPIRED, "earliest is 3");
    expect_int(expire_well(&f, keep(2)).snapshot_count, 0);
    expect_int(expire_well(&f, keep(1)).data_file_count, 2);
    expect_str(fixture_files(&f, NONE, NULL), "ab5");
    for (int drop_state = 0; drop_state < 2; drop_state++) {
        fixture_restart(&f, drop_state == 1);
        expect_str(fixture_files(&f, NONE, NULL), "ab5");
        expect_status(plan_of(&f, 3), TARN_SNAPSHOT_EXPIRED, "earliest is 4");
        expect_int(expire_well(&f, keep(1)).snapshot_count, 0);
    }
    expect_int(add(&f, "c"), 5);
    survivors_check(&f, NULL, NULL);
}

TARN_TEST(expire, by_age_asks_when_the_next_one_was_made)
{
    TARN_OWN(fixture_fini) struct fixture f;
    pause_init();
    shape_init(&f, t, &hourly);
    int64_t begin = tarn_clock_wall_ms();
    for (int i = 0; i < 7; i++) { /* at 0, 30, 60, ... s */
        struct tarn_manifest_entry e =
            shape_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%d", i),
                        shape_partition(&f, &hourly, "d", 0), 0, -1, 0, 1, 10);
        struct tarn_commit c = {.kind = TARN_COMMIT_APPEND, .append = {.entries = &e, .count = 1}};
        commit_to(&f, f.table, &c);
        pause_for(30000);
    }
    struct tarn_expire_request r = {.keep_last = TARN_EXPIRE_OPTION,
                                    .older_than_ms = TARN_EXPIRE_OPTION,
                                    .keep_from = INT64_MAX};
    struct tarn_expiry out = expire_well(&f, r); /* 210 s: what was made before 90 s is old */
    expect_int(out.to, 3); /* 3's successor, at 90 s, is not older than two minutes */
    expect_contains(out.kept_by, "too young");
    expect_int(out.next_ms, begin + 90000 + 120000 + 1);
    r.now_ms = out.next_ms - 1;
    expect_int(expire_well(&f, r).snapshot_count, 0);
    r.now_ms = out.next_ms;
    expect_int(expire_well(&f, r).snapshot_count, 1);
    r.now_ms = begin + 3600000;
    out = expire_well(&f, r);
    expect_int(out.to, 6); /* two stay in any case */
    expect_int(out.next_ms, INT64_MAX);
    r.older_than_ms = 0;
    expect_int(expire_well(&f, r).snapshot_count, 0);
    r.keep_last = 1;
    expect_int(expire_well(&f, r).to, 7);
}

TARN_TEST(expire, beyond_the_most_goes_whatever_its_age)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &hourly);
    for (int i = 0; i < 12; i++) {
        struct tarn_manifest_entry e =
            shape_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%d", i),
                        shape_partition(&f, &hourly, "d", 0), 0, -1, 0, 1, 10);
        struct tarn_commit c = {.kind = TARN_COMMIT_APPEND, .append = {.entries = &e, .count = 1}};
        commit_to(&f, f.table, &c);
    }
    struct tarn_expire_request r = {.keep_last = TARN_EXPIRE_OPTION,
                                    .older_than_ms = TARN_EXPIRE_OPTION,
                                    .keep_from = INT64_MAX};
    expect_int(expire_well(&f, r).to, 5);
}

TARN_TEST(retention, is_what_the_options_say)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_expire_request r = {.keep_last = 0, .older_than_ms = TARN_EXPIRE_OPTION};
    struct tarn_expiry out;
    expect_status(tarn_table_expire(t->op, f.table, &r, &out), TARN_INVALID_ARGUMENT, "latest");
    r = (struct tarn_expire_request){.keep_last = 1, .older_than_ms = -5};
    expect_status(tarn_table_expire(t->op, f.table, &r, &out), TARN_INVALID_ARGUMENT, "-5 ms");
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_retention retention;
    expect_ok(tarn_table_look(t->op, f.table, &view));
    expect_ok(tarn_retention_parse(&view->schema, &retention));
    expect_int(retention.least, 10);
    expect_int(retention.most, INT32_MAX);
    expect_int(retention.time_ms, 3600000);
    expect_int(expire(&f, last_1).snapshot_count, 0); /* of no snapshot at all */
}

TARN_TEST(expire, leaves_changelogs_that_outlive_their_snapshots_to_others)
{
    static const struct shape longer = {.primary_key = true,
                                        .options = QUIET ",\"changelog.time-retained\":\"2 h\""};
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_expiry out;
    shape_init(&f, t, &longer);
    add(&f, "a");
    add(&f, "b");
    expect_status(tarn_table_expire(t->op, f.table, &last_1, &out), TARN_UNSUPPORTED_FEATURE,
                  "changelog.time-retained");
    expect_int(others_oldest(&f), 1);
}

TARN_TEST(expire, leaves_a_table_with_long_lived_changelogs)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_expiry out;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    add(&f, "b");
    folder_put(&f, "changelog/changelog-1", S("{}"));
    expect_status(tarn_table_expire(t->op, f.table, &last_1, &out), TARN_UNSUPPORTED_FEATURE,
                  "changelog/");
    expect_int(others_oldest(&f), 1);
}

/* --- what holds snapshots --- */

TARN_TEST(expire, stops_at_what_is_still_to_be_read)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_pin pin;
    struct tarn_expiry out;
    shape_init(&f, t, &dynamic);
    for (int i = 0; i < 10; i++)
        add(&f, tarn_arena_printf(t->arena, "f%d", i));
    expect_ok(tarn_table_set_consumer(t->op, f.table, S("c"), 4));
    out = expire_well(&f, last_1);
    expect_int(out.to, 4);
    expect_contains(out.kept_by, "consumer c");
    expect_ok(tarn_table_drop_consumer(t->op, f.table, S("c")));
    expect_ok(tarn_table_pin(t->op, f.table, 6, 60000, &pin));
    out = expire_well(&f, last_1);
    expect_int(out.to, 6);
    expect_contains(out.kept_by, "pinned");
    expect_str(fixture_files(&f, 6, NULL), "f0 f1 f2 f3 f4 f5");
    expect_ok(tarn_table_renew_pin(t->op, f.table, S(pin.id), 0, &pin));
    struct tarn_expire_request r = last_1;
    r.keep_from = 8;
    out = expire_well(&f, r);
    expect_int(out.to, 8);
    expect_contains(out.kept_by, "task");
    expect_int(expire_well(&f, last_1).to, 10);
}

TARN_TEST(expire, does_nothing_where_it_can_not_read_who_holds_what)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_expiry out;
    shape_init(&f, t, &dynamic);
    for (int i = 0; i < 5; i++)
        add(&f, tarn_arena_printf(t->arena, "f%d", i));
    folder_put(&f, "consumer/consumer-x", S("{"));
    expect_status(tarn_table_expire(t->op, f.table, &last_1, &out), TARN_JSON_MALFORMED,
                  "consumer-x");
    folder_remove(&f, "consumer/consumer-x");
    folder_put(&f, "tag/tag-x", S("{}"));
    expect_status(tarn_table_expire(t->op, f.table, &last_1, &out), TARN_SNAPSHOT_MALFORMED, "x");
    folder_remove(&f, "tag/tag-x");
    tag(&f, "y", 2);
    TARN_OWN(tarn_map_drop) struct tarn_map *there = survivors_there(&f);
    struct tarn_fault_rule gone = {
        .call = "get", .key_part = "manifest-list", .skip_count = 8, .fault = TARN_FAULT_NOT_FOUND};
    tarn_store_faulty_add(f.store, &gone); /* those of the tag are read after the expired ones' */
    struct tarn_status *s = tarn_table_expire(t->op, f.table, &last_1, &out);
    expect_status(s, TARN_OBJECT_NOT_FOUND, "manifest-list");
    tarn_store_faulty_clear(f.store);
    TARN_OWN(tarn_map_drop) struct tarn_map *now = survivors_there(&f);
    expect_int(tarn_map_count(now), tarn_map_count(there));
    expect_int(expire_well(&f, last_1).to, 5);
}

TARN_TEST(expire, leaves_what_tags_have)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    compact(&f, "a", NULL, "a5");
    tag(&f, "one", 1);
    tag(&f, "two", 2);
    tag(&f, "again", 2);
    add(&f, "b");
    compact(&f, "b", "a5", "ab5");
    expire_well(&f, last_1);
    expect_true(has_file(&f, "a"));
    expect_true(has_file(&f, "a5"));
    expect_false(has_file(&f, "b"));
    struct tarn_plan_request request = {
        .version = {.tag = S("two"), TARN_VERSION_NONE, .snapshot_id = NONE}, .no_splits = true};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.file_count, 1);
    expect_slice(plan.files[0].entry.file.name, "a5");
}

/* A file that was deleted and is there again: of the versions before, a tag may have it, too. */
/* It may lie right below the history, or with a gap between. */
TARN_TEST(expire, lets_a_tag_that_was_expired_be_rolled_back_to)
{
    for (int tagged = 1; tagged <= 3; tagged++) {
        TARN_OWN(fixture_fini) struct fixture f;
        struct tarn_roll_back request = {
            .only_from = NONE, .to = {.tag = S("t"), TARN_VERSION_NONE, .snapshot_id = NONE}};
        struct tarn_roll_back_result result;
        shape_init(&f, t, &dynamic);
        for (int i = 0; i < 5; i++)
            add(&f, tarn_arena_printf(t->arena, "a%d", i));
        tag(&f, "t", tagged);
        expire_well(&f, keep(2));
        expect_ok(tarn_table_roll_back(t->op, f.table, &request, &result));
        expect_str(hint(&f), tarn_arena_printf(t->arena, "%d", tagged));
        expect_int(add(&f, "b"), tagged + 1);
        expect_int(add(&f, "c"), tagged + 2);
        fixture_restart(&f, true);
        TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
        expect_ok(tarn_table_look(t->op, f.table, &view));
        expect_int(view->earliest_id, tagged);
        expect_ok(plan_of(&f, tagged));
    }
}

/* The table may end before the branch begins, or have others under its ids: neither is that branch's past. */
TARN_TEST(expire, lets_a_branch_be_gone_forward_to_that_has_lost_where_it_began)
{
    for (int own = 0; own < 6; own++) {
        TARN_OWN(fixture_fini) struct fixture f;
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *branch = NULL;
        TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
        struct tarn_expiry out;
        shape_init(&f, t, &dynamic);
        add(&f, "a");
        tag(&f, "t", 1);
        expect_ok(tarn_table_create_branch(t->op, f.table, S("b"), S("t")));
        expect_ok(tarn_table_open_branch(t->op, &f.env, "db.db/t", tarn_table_uuid(f.table), S("b"),
                                         "b", &branch));
        for (int i = 0; i < 3; i++) {
            struct tarn_manifest_entry e =
                entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "b%d", i), 0);
            struct tarn_commit c = {.kind = TARN_COMMIT_APPEND,
                                    .append = {.entries = &e, .count = 1}};
            commit_to(&f, branch, &c);
        }
        struct tarn_expire_request last = keep(1);
        expect_ok(tarn_table_expire(t->op, branch, &last, &out));
        expect_int(out.to, 4);
        for (int i = 0; i < own; i++)
            add(&f, tarn_arena_printf(t->arena, "own%d", i));
        struct tarn_undone undone;
        expect_ok(tarn_table_fast_forward(t->op, f.table, branch, &undone));
        expect_ok(tarn_table_look(t->op, f.table, &view));
        expect_int(view->earliest_id, 4);
        expect_int(view->snapshot.id, 4);
        expect_str(hint(&f), "4");
        expect_int(others_oldest(&f), 4);
        expect_str(fixture_files(&f, NONE, NULL), "a b0 b1 b2");
        expect_int(add(&f, "c"), 5);
        fixture_restart(&f, true);
        expect_str(fixture_files(&f, NONE, NULL), "a b0 b1 b2 c");
    }
}

TARN_TEST(expire, leaves_files_that_came_back)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");             /* 1 */
    drop(&f, "a", 0);         /* 2 */
    add(&f, "a");             /* 3 */
    add(&f, "b");             /* 4 */
    expire_well(&f, keep(3)); /* 2 stays */
    expect_true(has_file(&f, "a"));
    expire_well(&f, keep(1));
    expect_true(has_file(&f, "a"));
    tag(&f, "four", 4);
    drop(&f, "a", 0);   /* 5 */
    tag(&f, "five", 5); /* the nearest tag hasn't it */
    add(&f, "a");       /* 6 */
    drop(&f, "a", 0);   /* 7 */
    add(&f, "c");       /* 8 */
    expire_well(&f, last_1);
    expect_true(has_file(&f, "a"));
    expect_true(has_file(&f, "b"));
}

TARN_TEST(expire, leaves_what_branches_have_also_when_their_tag_is_gone)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    tag(&f, "t", 1);
    expect_ok(tarn_table_create_branch(t->op, f.table, S("b"), S("t")));
    struct tarn_table *b = NULL;
    expect_ok(tarn_table_open_branch(t->op, &f.env, tarn_table_path(f.table),
                                     tarn_table_uuid(f.table), S("b"), "db.t$branch_b", &b));
    expect_ok(tarn_table_drop_tag(t->op, f.table, S("t")));
    folder_remove(&f, "branch/branch-b/tag/tag-t");
    compact(&f, "a", NULL, "a5");
    add(&f, "c");
    expire_well(&f, last_1);
    expect_true(has_file(&f, "a"));
    struct tarn_manifest_entry gone[] = {entry(&f, TARN_ENTRY_DELETE, "a", 0),
                                         entry(&f, TARN_ENTRY_ADD, "ba5", 5)};
    struct tarn_commit c = {.compact = {.entries = gone, .count = 2}};
    expect_int(commit_to(&f, b, &c), 2);
    struct tarn_expiry out;
    expect_ok(tarn_table_expire(t->op, b, &last_1, &out)); /* the branch's own */
    expect_int(out.to, 2);
    expect_false(has_file(&f, "a"));
    expect_true(has_file(&f, "a5"));
    survivors_check(&f, NULL, NULL);
    tarn_table_unref(b);
}

TARN_TEST(expire, takes_changelogs_index_files_and_statistics)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_manifest_entry e = entry(&f, TARN_ENTRY_ADD, "a", 0),
                               log = entry(&f, TARN_ENTRY_ADD, "log-a", 0);
    struct tarn_slice extra = S("a.index");
    e.file.extra_files = &extra;
    e.file.extra_file_count = 1;
    struct tarn_index_file h0 =
        shape_index(TARN_ENTRY_ADD, TARN_INDEX_HASH, "h0", tarn_row_empty(), 0);
    struct tarn_commit c = {
        .kind = TARN_COMMIT_APPEND,
        .append = {&e, 1, .changelog = &log, .changelog_count = 1, .index = &h0, .index_count = 1}};
    commit_to(&f, f.table, &c);
    struct tarn_commit statistics = {.kind = TARN_COMMIT_ANALYZE, .statistics = S("stat-1")};
    commit_to(&f, f.table, &statistics);
    tag(&f, "t", 2);
    struct tarn_index_file next[] = {
        shape_index(TARN_ENTRY_DELETE, TARN_INDEX_HASH, "h0", tarn_row_empty(), 0),
        shape_index(TARN_ENTRY_ADD, TARN_INDEX_HASH, "h1", tarn_row_empty(), 0)};
    struct tarn_commit index = {.kind = TARN_COMMIT_APPEND,
                                .append = {.index = next, .index_count = 2}};
    commit_to(&f, f.table, &index);
    statistics.statistics = S("stat-2");
    commit_to(&f, f.table, &statistics);
    e.kind = TARN_ENTRY_DELETE;
    struct tarn_commit gone = {.kind = TARN_COMMIT_OVERWRITE,
                               .append = {.entries = &e, .count = 1}};
    commit_to(&f, f.table, &gone);
    expire_well(&f, last_1);
    expect_false(has_file(&f, "log-a")); /* as Paimon: a tag keeps no changelog */
    expect_true(has_file(&f, "a.index"));
    expect_true(folder_has(&f, "index/h0"));
    expect_true(folder_has(&f, "statistics/stat-1"));
    expect_ok(tarn_table_drop_tag(t->op, f.table, S("t")));
    add(&f, "b");
    expire_well(&f, last_1);
}

TARN_TEST(expire, takes_extra_files_along)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_manifest_entry e = entry(&f, TARN_ENTRY_ADD, "a", 0);
    struct tarn_slice extra = S("a.index");
    e.file.extra_files = &extra;
    e.file.extra_file_count = 1;
    struct tarn_commit c = {.kind = TARN_COMMIT_APPEND, .append = {.entries = &e, .count = 1}};
    commit_to(&f, f.table, &c);
    e.kind = TARN_ENTRY_DELETE;
    c.kind = TARN_COMMIT_OVERWRITE;
    commit_to(&f, f.table, &c);
    expect_int(expire_well(&f, last_1).data_file_count, 1);
    expect_false(has_file(&f, "a.index"));
    expect_false(has_file(&f, "a"));
}

/* Its slot was filled, and has expired since; what it brings may be committed again. */
TARN_TEST(expire, leaves_a_put_that_came_late_below_the_history)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    struct tarn_slice base = folder_get(&f, "snapshot/snapshot-1");
    tag(&f, "t", 1); /* so that there is something to stand on */
    add(&f, "b");
    add(&f, "c");
    expire_well(&f, last_1);
    struct tarn_manifest_entry late = entry(&f, TARN_ENTRY_ADD, "late", 0);
    others_put(&f, 2, base, "late", &late, 1);
    fixture_restart(&f, false);
    add(&f, "d");
    expect_int(expire(&f, last_1).from, 3);
    expect_true(folder_has(&f, "snapshot/snapshot-2"));
    expect_str(hint(&f), "4");
}

/* An expiry that was cut off leaves snapshots below EARLIEST that lack files, and LATEST may lag behind. */
TARN_TEST(expire, what_it_left_when_it_was_cut_off_is_history_to_nobody)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_expiry out;
    shape_init(&f, t, &dynamic);
    for (int i = 0; i < 5; i++)
        add(&f, tarn_arena_printf(t->arena, "a%d", i));
    struct tarn_expire_request last_2 = keep(2);
    tarn_store_faulty_add(f.store, &(struct tarn_fault_rule){.call = "remove",
                                                             .key_part = "manifest/",
                                                             .skip_count = 1,
                                                             .fault = TARN_FAULT_FAIL_BEFORE});
    expect_status(tarn_table_expire(t->op, f.table, &last_2, &out), TARN_IO_ERROR, "remove");
    tarn_store_faulty_clear(f.store);
    expect_true(folder_has(&f, "snapshot/snapshot-3"));
    folder_put(&f, "snapshot/LATEST", S("4"));
    fixture_restart(&f, true);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(t->op, f.table, &view));
    expect_int(view->earliest_id, 4);
    expect_int(view->snapshot.id, 5);

    others_append(&f, "b");
    tarn_store_faulty_add(f.store, &(struct tarn_fault_rule){.call = "get",
                                                             .key_part = "/EARLIEST",
                                                             .fault = TARN_FAULT_DENIED});
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *none = NULL;
    expect_status(tarn_table_look(t->op, f.table, &none), TARN_STORE_DENIED, "EARLIEST");
    tarn_store_faulty_clear(f.store);
    expect_int(expire(&f, last_1).to, 6);
    expect_int(others_oldest(&f), 6);
}

/* Commits whose outcome wasn't known for a moment are judged by what they stand on: here by each other, and by a ground that is gone. It
 * has expired if nothing is left of what was below it, but for what a cut-off expiry left; else it was rolled back, and they came once more. */
TARN_TEST(expire, of_what_they_stand_on_undoes_no_commits)
{
    for (int expired = 0; expired < 2; expired++) {
        TARN_OWN(fixture_fini) struct fixture f;
        TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
        shape_init(&f, t, &dynamic);
        add(&f, "a");
        add(&f, "b");
        for (int i = 0; i < 3; i++) {
            tarn_store_faulty_add(f.store,
                                  &(struct tarn_fault_rule){.call = "put_if_absent",
                                                            .key_part = "snapshot-",
                                                            .hit_count = 1,
                                                            .fault = TARN_FAULT_FAIL_AFTER});
            expect_int(add(&f, tarn_arena_printf(t->arena, "c%d", i)), 3 + i);
        }
        tarn_store_faulty_clear(f.store);
        folder_put(&f, expired ? "snapshot/EARLIEST" : "snapshot/LATEST", S(expired ? "3" : "1"));
        folder_remove(&f, "snapshot/snapshot-2");
        expect_ok(tarn_table_look(t->op, f.table, &view));
        expect_int(view->snapshot.id, expired ? 5 : 1);
        expect_int(add(&f, "d"), expired ? 6 : 2);
        for (int64_t id = 3; id <= 5; id++)
            expect_true(expired == folder_has(&f, tarn_arena_printf(
                                                      t->arena, "snapshot/snapshot-%" PRId64, id)));
    }
}

/* --- beside others --- */

static void tag_it(void *arg)
{
    struct fixture *f = arg;
    folder_put(f, "tag/tag-late", folder_get(f, "snapshot/snapshot-1"));
}

static void branch_it(void *arg)
{
    struct fixture *f = arg;
    folder_put(f, "branch/branch-b/snapshot/snapshot-1", folder_get(f, "snapshot/snapshot-1"));
    folder_put(f, "branch/branch-b/schema/schema-0", folder_get(f, "schema/schema-0"));
}

/* Whoever takes hold of a snapshot before it is said that it goes is seen. */
static void taken_hold_of(struct tarn_test *t, void (*act)(void *), const char *listed)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    compact(&f, "a", NULL, "a5");
    struct moment m = {
        .call = "list", .key_part = listed, .afterwards = true, .act = act, .arg = &f};
    moment_init(&f, &m);
    expect_int(expire(&f, last_1).to, 2);
    expect_int(m.happened, 1);
    expect_true(has_file(&f, "a"));
    survivors_check(&f, NULL, NULL);
}

TARN_TEST(expire, sees_a_tag_or_branch_that_is_made_meanwhile)
{
    taken_hold_of(t, tag_it, "/tag");
    taken_hold_of(t, branch_it, "/branch");
}

struct taken_back {
    struct fixture *f;
    struct tarn_store *faulty; /* NULL: no fault */
    struct moment *moment;
    int count;
};

static int64_t looked_earliest(struct fixture *f)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    tarn_op_init(&op);
    expect_ok(tarn_table_look(&op, f->table, &view));
    return view->earliest_id;
}

/* Others were there first, and what they did can't be read. */
static void commit_in_vain(struct fixture *f, struct tarn_store *faulty)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_commit_result result;
    struct tarn_manifest_entry b = entry(f, TARN_ENTRY_ADD, "b", 0);
    struct tarn_commit c = {.user = S("in vain"),
                            .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                            .watermark = NONE,
                            .base_snapshot_id = NONE,
                            .kind = TARN_COMMIT_APPEND,
                            .append = {.entries = &b, .count = 1}};
    tarn_op_init(&op);
    tarn_store_faulty_add(faulty, &(struct tarn_fault_rule){.call = "get",
                                                            .key_part = "manifest/",
                                                            .fault = TARN_FAULT_FAIL_BEFORE});
    expect_status(tarn_table_commit(&op, f->table, &c, &result), TARN_IO_ERROR, "");
    tarn_store_faulty_clear(faulty);
}

/* A tag comes after tags were looked at; then, when it was said that the snapshot goes, somebody looks or commits in vain. */
static void tag_and_look(void *arg)
{
    struct taken_back *b = arg;
    switch (b->count++) {
    case 0:
        tag_it(b->f);
        break;
    case 1:
        others_append(b->f, "others");
        if (b->faulty != NULL)
            commit_in_vain(b->f, b->faulty);
        else
            expect_int(looked_earliest(b->f), 2);
        break;
    case 2: /* it was taken back, and begins anew */
        expect_int(looked_earliest(b->f), 1);
        expect_ok(plan_of(b->f, 1));
    }
    b->moment->happened = 0;
}

TARN_TEST(expire, is_taken_back_as_a_whole)
{
    for (int lost = 0; lost < 2; lost++) {
        TARN_OWN(fixture_fini) struct fixture f;
        shape_init(&f, t, &dynamic);
        add(&f, "a");
        compact(&f, "a", NULL, "a5");
        struct taken_back b = {.f = &f, .faulty = lost ? f.store : NULL};
        struct moment m = {
            .call = "list", .key_part = "/tag", .afterwards = true, .act = tag_and_look, .arg = &b};
        b.moment = &m;
        moment_init(&f, &m);
        expect_int(expire(&f, last_1).to, 3);
        expect_true(b.count > 2);
        expect_true(has_file(&f, "a"));
    }
}

static void pin_it(void *arg)
{
    struct fixture *f = arg;
    struct tarn_pin pin;
    tarn_status_free(tarn_table_pin(f->t->op, f->table, 1, 60000, &pin));
}

TARN_TEST(expire, sees_a_pin_that_is_made_meanwhile)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    compact(&f, "a", NULL, "a5");
    struct moment m = {
        .call = "list", .key_part = "/tag", .afterwards = true, .act = pin_it, .arg = &f};
    moment_init(&f, &m);
    struct tarn_expiry out = expire(&f, last_1);
    expect_int(out.snapshot_count, 0);
    expect_contains(out.kept_by, "pinned");
    expect_int(m.happened, 1);
    expect_str(fixture_files(&f, 1, NULL), "a");
}

TARN_TEST(expire, ends_plans_of_what_goes)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    compact(&f, "a", NULL, "a5");
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(1), .no_splits = true};
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *cursor = NULL;
    struct tarn_plan_batch batch;
    expect_ok(tarn_table_plan_begin(t->op, f.table, &request, &cursor));
    expire_well(&f, last_1);
    expect_status(tarn_plan_cursor_next(cursor, &batch), TARN_SNAPSHOT_EXPIRED, "");
}

TARN_TEST(expire, waits_for_the_outcome_of_a_commit)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a");
    compact(&f, "a", NULL, "a5");
    struct tarn_fault_rule lost = {
        .call = "*", .key_part = "snapshot-3", .fault = TARN_FAULT_UNKNOWN};
    struct tarn_manifest_entry b = entry(&f, TARN_ENTRY_ADD, "b", 0);
    struct tarn_commit c = {.user = S("w"),
                            .identifier = 1,
                            .watermark = NONE,
                            .base_snapshot_id = NONE,
                            .kind = TARN_COMMIT_APPEND,
                            .append = {.entries = &b, .count = 1}};
    struct tarn_commit_result result;
    struct tarn_expiry out;
    survivors_put(&f, &b, 1);
    tarn_store_faulty_add(f.store, &lost);
    struct hurry hurry;
    hurry_start(&hurry); /* so that it soon gives up asking */
    struct tarn_status *first = tarn_table_commit(t->op, f.table, &c, &result);
    struct tarn_status *second = tarn_table_expire(t->op, f.table, &last_1, &out);
    hurry_stop(&hurry);
    expect_status(first, TARN_OUTCOME_UNKNOWN, "");
    expect_status(second, TARN_STORE_UNAVAILABLE, "");
    expect_true(has_file(&f, "a"));
    expect_int(others_oldest(&f), 1);
    tarn_store_faulty_clear(f.store);
    expect_ok(tarn_table_commit(t->op, f.table, &c, &result));
    expire_well(&f, last_1);
    expect_false(has_file(&f, "a"));
}

struct busy {
    struct fixture *f;
    int64_t expired;
    enum tarn_reason reason;
    atomic_bool stop;
    pthread_t thread;
};

static void *expire_all_the_time(void *arg)
{
    struct busy *b = arg;
    struct tarn_expire_request r = last_1;
    r.keep_last = 3;
    while (!b->stop && b->reason == TARN_NO_REASON) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        struct tarn_expiry out;
        tarn_op_init(&op);
        struct tarn_status *s = tarn_table_expire(&op, b->f->table, &r, &out);
        b->expired += out.snapshot_count;
        b->reason = s == TARN_OK ? TARN_NO_REASON : tarn_status_reason(s);
        tarn_status_free(s);
    }
    return NULL;
}

TARN_TEST(expire, goes_on_beside_commits)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    add(&f, "a0");
    compact(&f, "a0", NULL, "big0");
    struct busy busy = {.f = &f};
    expect_int(pthread_create(&busy.thread, NULL, expire_all_the_time, &busy), 0);
    for (int i = 1; i <= 60; i++) {
        const char *small = tarn_arena_printf(t->arena, "a%d", i);
        add(&f, small);
        compact(&f, small, tarn_arena_printf(t->arena, "big%d", i - 1),
                tarn_arena_printf(t->arena, "big%d", i));
    }
    busy.stop = true;
    pthread_join(busy.thread, NULL);
    expect_int(busy.reason, TARN_NO_REASON);
    expire_well(&f, keep(1));
    expect_str(fixture_files(&f, NONE, NULL), "big60");
    survivors_check(&f, NULL, NULL);
}

/* --- cut off --- */

static void story(struct fixture *f)
{
    add(f, "a");
    compact(f, "a", NULL, "a5");
    tag(f, "t", 2);
    struct tarn_manifest_entry b = entry(f, TARN_ENTRY_ADD, "b", 0),
                               log = entry(f, TARN_ENTRY_ADD, "log", 0);
    struct tarn_index_file h =
        shape_index(TARN_ENTRY_ADD, TARN_INDEX_HASH, "h0", tarn_row_empty(), 0);
    struct tarn_commit c = {
        .kind = TARN_COMMIT_APPEND,
        .append = {&b, 1, .changelog = &log, .changelog_count = 1, .index = &h, .index_count = 1}};
    commit_to(f, f->table, &c);
    compact(f, "b", "a5", "ab5");
    add(f, "d");
}

/* The n-th call fails, or all do from there on; then the process ends, or doesn't, and the next expiry makes up for it. */
static bool cut_off(struct tarn_test *t, int n, bool for_good, bool after, int restart)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    story(&f);
    TARN_OWN(tarn_map_drop) struct tarn_map *named = survivors_named(&f);
    TARN_OWN(tarn_map_drop) struct tarn_map *there = survivors_there(&f);
    struct tarn_fault_rule rule = {.call = "*",
                                   .skip_count = n,
                                   .hit_count = for_good ? 0 : 1,
                                   .fault = after ? TARN_FAULT_FAIL_AFTER : TARN_FAULT_FAIL_BEFORE};
    struct tarn_expiry out;
    int before = tarn_store_faulty_call_count(f.store);
    tarn_store_faulty_add(f.store, &rule);
    struct tarn_status *s = tarn_table_expire(t->op, f.table, &last_1, &out);
    bool all = tarn_store_faulty_call_count(f.store) - before <= n;
    expect_true(!all || s == TARN_OK);
    tarn_status_free(s);
    tarn_store_faulty_clear(f.store);
    if (restart > 0)
        fixture_restart(&f, restart == 2);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(t->op, f.table, &view));
    for (int64_t id = view->earliest_id; id <= view->snapshot.id; id++) {
        const char *files = fixture_files(&f, id, NULL); /* whoever may read it finds it whole */
        expect_str(folder_files(&f, id), files);
        for (const char *name = files; *name != '\0';) {
            size_t size = strcspn(name, " ");
            expect_true(has_file(&f, tarn_arena_printf(t->arena, "%.*s", (int)size, name)));
            name += size + (name[size] == ' ');
        }
    }
    expire(&f, last_1);
    survivors_check(&f, there, named);
    expect_int(others_oldest(&f), 5);
    expect_str(hint(&f), "5");
    expect_str(fixture_files(&f, NONE, NULL), "ab5 d");
    expect_true(has_file(&f, "a5"));
    return !all;
}

TARN_TEST(cut_off, at_any_call_it_leaves_a_whole_table_and_the_next_one_finishes)
{
    for (int kind = 0; kind < 2;
         kind++) /* one call fails though it was done, or none works any more */
        for (int n = 0; cut_off(t, n, kind == 1, kind == 0, (n + kind) % 3); n += TARN_TEST_STRIDE)
            expect_true(n < 1000);
}

/* --- random histories --- */

struct history {
    struct fixture *f;
    struct tarn_table *tables[3]; /* main, and branches */
    int number;
    const char *old[200]; /* names that were deleted */
    int old_count;
    bool
        brings_back; /* files that were deleted: then no index is built anew, which would take them for deleted (docs/decisions/013) */
};

static int dice(struct history *h, int sides)
{
    return (int)tarn_test_random_below(h->f->t, (uint64_t)sides);
}

static void replace_all(struct history *h, struct tarn_table *table)
{
    struct tarn_bucket_files bucket;
    struct tarn_arena *arena = h->f->t->arena;
    expect_ok(tarn_table_bucket(h->f->t->op, table, tarn_row_empty(), 0, &bucket));
    if (bucket.file_count == 0)
        return;
    struct tarn_manifest_entry *e = tarn_arena_calloc(arena, bucket.file_count + 1, sizeof *e);
    for (size_t i = 0; i < bucket.file_count; i++) {
        e[i] = bucket.files[i];
        e[i].kind = TARN_ENTRY_DELETE;
        if (h->old_count < 200)
            h->old[h->old_count++] = tarn_arena_str(arena, e[i].file.name);
    }
    const char *name = bucket.file_count == 1 && bucket.files[0].file.level == 0 && dice(h, 2) == 0
                           ? tarn_arena_str(arena, bucket.files[0].file.name)
                           : tarn_arena_printf(arena, "f%d", h->number++);
    e[bucket.file_count] = entry(h->f, TARN_ENTRY_ADD, name, 5);
    struct tarn_commit c = {.compact = {.entries = e, .count = bucket.file_count + 1}};
    commit_to(h->f, table, &c);
}

static bool is_live(struct history *h, struct tarn_table *table, const char *name)
{
    struct tarn_bucket_files bucket;
    bool live = false;
    expect_ok(tarn_table_bucket(h->f->t->op, table, tarn_row_empty(), 0, &bucket));
    for (size_t i = 0; i < bucket.file_count; i++)
        live = live || tarn_slice_is(bucket.files[i].file.name, name);
    return live;
}

static void append(struct history *h, struct tarn_table *table)
{
    struct tarn_arena *arena = h->f->t->arena;
    const char *name = tarn_arena_printf(arena, "f%d", h->number++);
    if (h->brings_back && h->old_count > 0 && dice(h, 4) == 0) {
        const char *again = h->old[dice(h, h->old_count)];
        if (!is_live(h, table, again))
            name = again;
    }
    struct tarn_manifest_entry e = entry(h->f, TARN_ENTRY_ADD, name, 0),
                               log = entry(h->f, TARN_ENTRY_ADD,
                                           tarn_arena_printf(arena, "log%d", h->number++), 0);
    struct tarn_commit c = {
        .kind = TARN_COMMIT_APPEND,
        .append = {
            .entries = &e, .count = 1, .changelog = &log, .changelog_count = dice(h, 3) == 0}};
    commit_to(h->f, table, &c);
}

/* In the place of an older one, or in a bucket of its own. */
static void put_index(struct history *h, struct tarn_table *table)
{
    struct tarn_commit_result result;
    int number = h->number++, old = 1 + dice(h, number), count = 0;
    struct tarn_index_file files[2];
    if (dice(h, 3) > 0) /* if it is there */
        files[count++] =
            shape_index(TARN_ENTRY_DELETE, TARN_INDEX_HASH,
                        tarn_arena_printf(h->f->t->arena, "h%d", old), tarn_row_empty(), old);
    files[count] = shape_index(TARN_ENTRY_ADD, TARN_INDEX_HASH,
                               tarn_arena_printf(h->f->t->arena, "h%d", number), tarn_row_empty(),
                               count > 0 ? old : number);
    struct tarn_commit c = {.user = S("w"),
                            .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                            .watermark = NONE,
                            .base_snapshot_id = NONE,
                            .kind = TARN_COMMIT_APPEND,
                            .append = {.index = files, .index_count = (size_t)count + 1}};
    survivors_put_key(h->f, "index", files[count].name);
    struct tarn_status *s = tarn_table_commit(h->f->t->op, table, &c, &result);
    if (s != TARN_OK)
        folder_remove(h->f, tarn_arena_printf(h->f->t->arena, "index/h%d", number));
    tarn_status_free(s);
}

static void put_statistics(struct history *h, struct tarn_table *table)
{
    struct tarn_commit c = {.kind = TARN_COMMIT_ANALYZE,
                            .statistics =
                                S(tarn_arena_printf(h->f->t->arena, "stat-%d", h->number++))};
    commit_to(h->f, table, &c);
}

static int64_t earliest(struct history *h)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(h->f->t->op, h->f->table, &view));
    return view->earliest_id;
}

static int64_t any_snapshot(struct history *h)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(h->f->t->op, h->f->table, &view));
    return view->earliest_id + dice(h, (int)(view->snapshot.id - view->earliest_id + 1));
}

static struct tarn_slice any_tag(struct history *h)
{
    struct tarn_slice *names;
    size_t count;
    expect_ok(tarn_table_tag_names(h->f->t->op, h->f->table, S(""), &names, &count));
    return count == 0 ? S("") : names[dice(h, (int)count)];
}

static void branch_off(struct history *h)
{
    int i = 1 + dice(h, 2);
    const char *name = i == 1 ? "b" : "c";
    if (h->tables[i] == NULL) {
        struct tarn_slice from = any_tag(h);
        if (from.size == 0)
            return;
        expect_ok(tarn_table_create_branch(h->f->t->op, h->f->table, S(name), from));
        expect_ok(tarn_table_open_branch(h->f->t->op, &h->f->env, "db.db/t",
                                         tarn_table_uuid(h->f->table), S(name), name,
                                         &h->tables[i]));
        return;
    }
    if (dice(h, 3) > 0)
        return;
    expect_ok(tarn_table_retire(h->f->t->op, h->tables[i], true));
    tarn_table_drop_ref(&h->tables[i]);
    expect_ok(tarn_table_remove_branch(h->f->t->op, h->f->table, S(name)));
}

static void roll_back(struct history *h)
{
    struct tarn_slice tag_name = any_tag(h);
    struct tarn_roll_back request = {.to = TARN_VERSION_ID(any_snapshot(h)), .only_from = NONE};
    struct tarn_roll_back_result result;
    if (dice(h, 3) == 0 && tag_name.size > 0)
        request.to = (struct tarn_version){.tag = tag_name, TARN_VERSION_NONE, .snapshot_id = NONE};
    struct tarn_status *s = tarn_table_roll_back(h->f->t->op, h->f->table, &request, &result);
    if (tarn_status_reason(s) != TARN_SNAPSHOT_ROLLED_BACK)
        expect_ok(s);
    else
        tarn_status_free(s);
}

static void fast_forward(struct history *h)
{
    struct tarn_table *branch = h->tables[1 + dice(h, 2)];
    struct tarn_undone undone;
    if (branch != NULL)
        expect_ok(tarn_table_fast_forward(h->f->t->op, h->f->table, branch, &undone));
}

/* What the rule says, snapshot by snapshot. */
static int64_t model_end(struct history *h, struct tarn_table *table,
                         const struct tarn_expire_request *r)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_consumer *consumers;
    struct tarn_snapshot *list;
    size_t count, consumer_count;
    int64_t pinned, end;
    struct tarn_op *op = h->f->t->op;
    expect_ok(tarn_table_look(op, table, &view));
    expect_ok(tarn_table_snapshots(op, table, 0, SIZE_MAX, &list, &count));
    expect_ok(tarn_table_consumers(op, table, &consumers, &consumer_count));
    expect_ok(tarn_table_keep_from(op, table, &pinned));
    bool has_age = r->older_than_ms != TARN_EXPIRE_OPTION;
    for (end = view->earliest_id; end <= view->snapshot.id - r->keep_last; end++) {
        bool held = end >= pinned;
        for (size_t i = 0; i < consumer_count; i++)
            held = held || end >= consumers[i].next_snapshot;
        if (held || (has_age && list[end - view->earliest_id + 1].time_ms >=
                                    tarn_clock_wall_ms() - r->older_than_ms))
            break;
    }
    return end;
}

static void expire_some(struct history *h, struct tarn_table *table)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *named = survivors_named(h->f);
    TARN_OWN(tarn_map_drop) struct tarn_map *there = survivors_there(h->f);
    struct tarn_expire_request r = {
        .keep_last = 1 + dice(h, 6), .older_than_ms = TARN_EXPIRE_OPTION, .keep_from = INT64_MAX};
    struct tarn_expiry out;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    if (dice(h, 3) == 0)
        r.older_than_ms = dice(h, 20) * 1000;
    int64_t end = model_end(h, table, &r);
    expect_ok(tarn_table_expire(h->f->t->op, table, &r, &out));
    survivors_check(h->f, there, named);
    expect_ok(tarn_table_look(h->f->t->op, table, &view));
    expect_int(view->earliest_id, end);
}

static void restart(struct history *h)
{
    static const char *const names[] = {"", "b", "c"};
    bool had[3] = {false, h->tables[1] != NULL, h->tables[2] != NULL};
    for (int i = 1; i < 3; i++)
        tarn_table_drop_ref(&h->tables[i]);
    fixture_restart(h->f, !h->brings_back && dice(h, 3) == 0);
    h->tables[0] = h->f->table;
    for (int i = 1; i < 3; i++)
        if (had[i])
            expect_ok(tarn_table_open_branch(h->f->t->op, &h->f->env, "db.db/t",
                                             tarn_table_uuid(h->f->table), S(names[i]), names[i],
                                             &h->tables[i]));
}

static void hold(struct history *h)
{
    struct tarn_pin pin;
    struct tarn_op *op = h->f->t->op;
    switch (dice(h, 4)) {
    case 0:
        expect_ok(tarn_table_set_consumer(op, h->f->table, S("c"), any_snapshot(h)));
        break;
    case 1:
        expect_ok(tarn_table_drop_consumer(op, h->f->table, S("c")));
        break;
    default:
        expect_ok(tarn_table_pin(op, h->f->table, any_snapshot(h), 5000, &pin));
    }
}

static void retag(struct history *h)
{
    struct tarn_slice name = any_tag(h);
    if (dice(h, 3) > 0 || name.size == 0)
        tag(h->f, tarn_arena_printf(h->f->t->arena, "t%d", h->number++), any_snapshot(h));
    else
        expect_ok(tarn_table_drop_tag(h->f->t->op, h->f->table, name));
}

static struct tarn_table *any_table(struct history *h)
{
    struct tarn_table *table = h->tables[dice(h, 5) < 3 ? 0 : 1 + dice(h, 2)];
    return table == NULL ? h->tables[0] : table;
}

static void step(struct history *h)
{
    int what = dice(h, 40);
    pause_for(1000);
    if (h->brings_back && (what == 27 || what == 28 || what == 31 || what == 33))
        what = 0;
    if (what < 12)
        append(h, any_table(h));
    else if (what < 19)
        replace_all(h, any_table(h));
    else if (what < 21)
        put_index(h, any_table(h));
    else if (what < 23)
        put_statistics(h, any_table(h));
    else if (what < 27)
        retag(h);
    else if (what < 29)
        branch_off(h);
    else if (what < 31)
        hold(h);
    else if (what < 32)
        roll_back(h);
    else if (what < 33)
        restart(h);
    else if (what < 34)
        fast_forward(h);
    else
        expire_some(h, any_table(h));
    if (folder_has(h->f, "snapshot/EARLIEST"))
        expect_int(strtoll(hint(h->f), NULL, 10), earliest(h));
}

TARN_TEST(history, of_any_kind_keeps_all_that_is_named_and_nothing_else)
{
    for (int round = 0; round < 6; round++) {
        TARN_OWN(fixture_fini) struct fixture f;
        pause_init();
        shape_init(&f, t, &dynamic);
        struct history h = {.f = &f, .tables = {f.table}, .brings_back = round % 2 == 0};
        append(&h, f.table);
        for (int i = 0; i < 80; i++)
            step(&h);
        for (int i = 1; i < 3; i++)
            tarn_table_drop_ref(&h.tables[i]);
        tarn_clock_fake(-1);
    }
}
