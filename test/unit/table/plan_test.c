/*
 * Promise: plans at tags (also of expired snapshots), watermarks and times; limits; pins that outlive a restart; buckets that
 * were touched; and a plan that is read slowly says when its snapshot is gone, never a wrong list of files.
 */
#include "fixture.h"

#include <unistd.h>

static void append(struct fixture *f, const char *name, int bucket, int64_t low, int64_t high)
{
    static int64_t identifier;
    int64_t id;
    struct tarn_manifest_entry e =
        fixture_entry(f, TARN_ENTRY_ADD, name, bucket, 0, low, high, low);
    expect_ok(fixture_append(f, "plans", ++identifier, &e, 1, &id));
}

static const char *key(struct fixture *f, const char *name)
{
    return tarn_arena_printf(f->t->arena, "db.db/t/%s", name);
}

static void copy(struct fixture *f, const char *from, const char *to)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    expect_ok(tarn_store_get(f->store, f->t->op, key(f, from), &bytes));
    expect_ok(tarn_store_put(f->store, f->t->op, key(f, to), tarn_buf_slice(&bytes)));
}

static void expire_below(struct fixture *f, int64_t earliest)
{
    for (int64_t id = 1; id < earliest; id++)
        expect_ok(tarn_store_remove(
            f->store, f->t->op,
            key(f, tarn_arena_printf(f->t->arena, "snapshot/snapshot-%" PRId64, id))));
    expect_ok(tarn_store_put(f->store, f->t->op, key(f, "snapshot/EARLIEST"),
                             tarn_slice_str(tarn_arena_printf(f->t->arena, "%" PRId64, earliest))));
}

static const char *names_of(struct fixture *f, const struct tarn_plan *plan)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < plan->file_count; i++)
        tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : " ",
                        TARN_SLICE_ARG(plan->files[i].entry.file.name));
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

static struct tarn_version at_tag(const char *name)
{
    struct tarn_version v = TARN_VERSION_LATEST;
    v.tag = tarn_slice_str(name);
    return v;
}

TARN_TEST(plan, of_a_tag_is_its_snapshots_also_when_that_expired)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "a", 0, 0, 9);
    append(&f, "b", 1, 10, 19);
    copy(&f, "snapshot/snapshot-2", "tag/tag-two");
    append(&f, "c", 0, 20, 29);
    struct tarn_plan_request request = {.version = at_tag("two"), .no_splits = true};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.snapshot.id, 2);
    expect_str(names_of(&f, &plan), "a b");
    expire_below(&f, 3);
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.snapshot.id, 2);
    expect_str(names_of(&f, &plan), "a b");
    request.where = tarn_slice_str("id >= 10");
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_str(names_of(&f, &plan), "b");
    request.version = at_tag("three");
    expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_TAG_NOT_FOUND, "three");
    request.version = at_tag("../snapshot/snapshot-3");
    expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_TAG_NOT_FOUND, "");
}

TARN_TEST(plan, names_the_earliest_where_changes_are_no_longer_known)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    for (int i = 0; i < 5; i++)
        append(&f, tarn_arena_printf(t->arena, "f%d", i), 0, i * 10, i * 10 + 9);
    expire_below(&f, 3);
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST,
                                        .changes = TARN_CHANGES_AUTO,
                                        .changes_from = 1,
                                        .no_splits = true};
    struct tarn_plan plan;
    expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_SNAPSHOT_EXPIRED,
                  "earliest is 2");
    request.changes_from = 2;
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_str(names_of(&f, &plan), "f2 f3 f4");
    request.changes = TARN_CHANGES_DIFF;
    expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_SNAPSHOT_EXPIRED,
                  "earliest is 3");
    request.changes_from = 5; /* nothing changed since */
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.file_count, 0);
    request.changes_from = 6;
    expect_status(tarn_table_plan(t->op, f.table, &request, &plan), TARN_INVALID_ARGUMENT, "");
}

TARN_TEST(plan, that_is_read_slowly_says_when_its_snapshot_expired)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "a", 0, 0, 9);
    append(&f, "b", 1, 10, 19);
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(1)};
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *slow = NULL, *quick = NULL;
    struct tarn_plan_batch batch;
    expect_ok(tarn_table_plan_begin(t->op, f.table, &request, &slow));
    request.version = TARN_VERSION_LATEST;
    expect_ok(tarn_table_plan_begin(t->op, f.table, &request, &quick));
    append(&f, "c", 0, 20, 29); /* not of theirs */
    expire_below(&f, 2);
    expect_status(tarn_plan_cursor_next(slow, &batch), TARN_SNAPSHOT_EXPIRED, "earliest is 2");
    expect_ok(tarn_plan_cursor_next(quick, &batch));
    expect_int(batch.file_count, 2);
    expect_ok(tarn_plan_cursor_next(quick, &batch));
    expect_int(batch.file_count, 0);
    expect_int(tarn_plan_cursor_head(quick)->files_left, 2);
}

TARN_TEST(plan, with_a_limit_has_no_more_files_than_surely_hold_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    for (int i = 0; i < 10; i++) /* apart from each other: each is read as it lies */
        append(&f, tarn_arena_printf(t->arena, "f%d", i), 0, i * 10, i * 10 + 9);
    struct tarn_manifest_entry e[10];
    int64_t id;
    for (int i = 0; i < 5; i++)
        e[i] = fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "g%d", i), 1, 5,
                             i * 10, i * 10 + 9, 1000);
    expect_ok(fixture_compact(&f, e, 5, &id));
    struct tarn_plan_request request = {
        .version = TARN_VERSION_LATEST, .has_limit = true, .limit = 25};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_true(plan.rows >= 25 && plan.files_left < 15);
    expect_int(plan.pruned_by_limit, 15 - plan.files_left);
    request.limit = 0;
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.file_count, 0);
    request.limit = 25;
    request.where = tarn_slice_str("v = 'x'"); /* who knows how many rows pass */
    expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
    expect_int(plan.files_left, 15);
}

TARN_TEST(pins, keep_a_snapshot_over_a_restart_until_they_run_out)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "a", 0, 0, 9);
    append(&f, "b", 0, 10, 19);
    struct tarn_pin one, two, gone;
    int64_t keep;
    expect_ok(tarn_table_keep_from(t->op, f.table, &keep));
    expect_true(keep == INT64_MAX);
    expect_ok(tarn_table_pin(t->op, f.table, 2, 60000, &two));
    expect_ok(tarn_table_pin(t->op, f.table, 1, 60000, &one));
    fixture_restart(&f, false);
    expect_ok(tarn_table_keep_from(t->op, f.table, &keep));
    expect_int(keep, 1);
    expect_ok(tarn_table_renew_pin(t->op, f.table, tarn_slice_str(one.id), 0, &gone));
    expect_ok(tarn_table_keep_from(t->op, f.table, &keep));
    expect_int(keep, 2);
    expect_status(tarn_table_renew_pin(t->op, f.table, tarn_slice_str(one.id), 1000, &gone),
                  TARN_PIN_NOT_FOUND, one.id);
    expect_status(tarn_table_renew_pin(t->op, f.table, tarn_slice_str("x"), 1000, &gone),
                  TARN_PIN_NOT_FOUND, "");
    expect_status(tarn_table_pin(t->op, f.table, 3, 60000, &gone), TARN_SNAPSHOT_NOT_FOUND, "3");
    expect_status(tarn_table_pin(t->op, f.table, 2, TARN_PIN_KEEP_MAX_MS + 1, &gone),
                  TARN_INVALID_ARGUMENT, "at most");
    expect_ok(tarn_table_keep_from(t->op, f.table, &keep)); /* what failed pins nothing */
    expect_int(keep, 2);
    expect_ok(tarn_table_renew_pin(t->op, f.table, tarn_slice_str(two.id), 1, &two));
    usleep(5000);
    expect_ok(tarn_table_keep_from(t->op, f.table, &keep));
    expect_true(keep == INT64_MAX);
}

TARN_TEST(pins, are_bounded)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "a", 0, 0, 9);
    struct tarn_pin pin;
    for (int i = 0; i < TARN_PINS_MAX; i++)
        expect_ok(tarn_table_pin(t->op, f.table, 1, 60000, &pin));
    expect_status(tarn_table_pin(t->op, f.table, 1, 60000, &pin), TARN_BUSY, "1000 pins");
}

TARN_TEST(touched, buckets_are_said_once_and_all_at_first)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_touched touched;
    append(&f, "a", 0, 0, 9);
    tarn_table_take_touched(t->op, f.table, &touched);
    expect_true(touched.all);
    tarn_table_take_touched(t->op, f.table, &touched);
    expect_false(touched.all);
    expect_int(touched.count, 0);
    append(&f, "b", 1, 10, 19);
    append(&f, "c", 1, 20, 29);
    tarn_table_take_touched(t->op, f.table, &touched);
    expect_int(touched.count, 1);
    expect_int(touched.buckets[0].bucket, 1);
    expect_false(touched.buckets[0].unknown);
    expect_int(touched.buckets[0].change_count, 2);
    const struct tarn_file_change *came = touched.buckets[0].changes;
    expect_true(came[0].added && came[0].level == 0 && came[0].stamp < came[1].stamp);
    expect_int(came[1].stamp, tarn_table_change_stamp(f.table));
    expect_uint(came[0].name_hash, tarn_xxh64(tarn_slice_str("b"), 0));
    struct tarn_bucket_files picture;
    expect_ok(tarn_table_bucket_picture(t->op, f.table, touched.buckets[0].partition, 1, INT64_MAX,
                                        SIZE_MAX, &picture));
    expect_int(picture.file_count, 2);
    expect_ok(tarn_table_bucket_picture(t->op, f.table, touched.buckets[0].partition, 1, 1000,
                                        SIZE_MAX, &picture));
    expect_int(picture.file_count, 0); /* none is smaller */
    struct tarn_touched_bucket *all;
    size_t count;
    expect_ok(tarn_table_bucket_list(t->op, f.table, &all, &count));
    expect_int(count, 2);
}

TARN_TEST(plan, of_many_files_in_one_bucket_goes_page_by_page)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    struct tarn_manifest_entry *e = tarn_arena_calloc(t->arena, 2000, sizeof *e);
    for (int i = 0; i < 2000; i++) {
        e[i] = fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%04d", i), 0, 5,
                             i * 10, i * 10 + 9, i * 10);
        e[i].file.creation_time_ms = i;
    }
    expect_ok(fixture_compact(&f, e, 2000, &id));
    for (int round = 0; round < 3; round++) { /* afterwards pages are bounded */
        int64_t key_asked = 11115;
        const char *where = tarn_arena_printf(t->arena, "id = %" PRId64, key_asked);
        const char *found = fixture_files(&f, TARN_SNAPSHOT_NONE, where);
        expect_true(strcmp(found, "f1111") == 0 || found[0] == '\0'); /* of this bucket or not */
        struct tarn_plan_request request = {
            .version = TARN_VERSION_LATEST, .where = tarn_slice_str("id < 100"), .no_splits = true};
        struct tarn_plan plan;
        expect_ok(tarn_table_plan(t->op, f.table, &request, &plan));
        expect_int(plan.file_count, 10);
        expect_int(plan.files_seen, 2000);
        expect_int(plan.pruned_by_key, 1990);
    }
    /* A change in the middle of a page is seen by the next plan, and not by one of the snapshot before. */
    struct tarn_manifest_entry change[2] = {
        e[5], fixture_entry(&f, TARN_ENTRY_ADD, "new", 0, 5, 50, 59, 50)};
    change[0].kind = TARN_ENTRY_DELETE;
    change[1].file.creation_time_ms = 1000;
    expect_ok(fixture_compact(&f, change, 2, &id));
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, "id BETWEEN 45 AND 62"), "f0004 f0006 new");
    expect_str(fixture_files(&f, 1, "id BETWEEN 45 AND 62"), "f0004 f0005 f0006");
    fixture_restart(&f, true);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, "id BETWEEN 45 AND 62"), "f0004 f0006 new");
    expect_str(fixture_files(&f, 1, "id BETWEEN 45 AND 62"), "f0004 f0005 f0006");
}

TARN_TEST(plan, of_a_large_bucket_has_statistics_also_of_what_is_removed_meanwhile)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    enum { COUNT = 51000 };
    int64_t id, seen = 0;
    struct tarn_manifest_entry *e = tarn_arena_calloc(t->arena, COUNT, sizeof *e);
    for (int i = 0; i < COUNT; i++) { /* names are no order */
        e[i] = fixture_entry(&f, TARN_ENTRY_ADD,
                             tarn_arena_printf(t->arena, "f%05d", (i * 7919) % COUNT), 0, 5, i * 10,
                             i * 10 + 9, i * 10);
        e[i].file.creation_time_ms = i / 3;
    }
    expect_ok(fixture_compact(&f, e, COUNT, &id));
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .with_stats = true};
    TARN_OWN(tarn_plan_cursor_drop) struct tarn_plan_cursor *cursor = NULL;
    struct tarn_plan_batch batch;
    expect_ok(tarn_table_plan_begin(t->op, f.table, &request, &cursor));
    do {
        expect_ok(tarn_plan_cursor_next(cursor, &batch));
        for (size_t i = 0; i < batch.file_count; i++) {
            const struct tarn_data_file *file = &batch.files[i].entry.file;
            expect_bytes(file->key_stats.min, file->min_key);
            expect_bytes(file->key_stats.max, file->max_key);
        }
        if (seen == 0) { /* some that were given out, and some that will be */
            struct tarn_manifest_entry gone[] = {e[3], e[40000], e[COUNT - 1]};
            for (int i = 0; i < 3; i++)
                gone[i].kind = TARN_ENTRY_DELETE;
            expect_ok(fixture_compact(&f, gone, 3, &id));
        }
        seen += (int64_t)batch.file_count;
    } while (batch.file_count > 0);
    expect_int(seen, COUNT);
}
