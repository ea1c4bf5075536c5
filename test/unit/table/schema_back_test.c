/*
 * Promise: schemas go back only as far as nothing was written by those that go, and each plan afterwards is made by what is there: no bound
 * that was kept under a schema that went is believed under another one of the same id.
 */
#include "table/refs.h"

#include "fault_others.h"
#include "table/plan.h"

#define S(text) tarn_slice_str(text)

static struct tarn_status *back(struct fixture *f, int64_t to)
{
    int64_t from;
    return tarn_table_roll_back_schema(f->t->op, f->table, to, &from);
}

static int64_t newest(struct fixture *f)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(f->t->op, f->table, &view));
    return view->schema.id;
}

static void setup(struct fixture *f, struct tarn_test *t)
{
    fixture_init(f, t);
    fixture_look_every(f, 0);
    others_put_schema(f, 1, "w");
    others_put_schema(f, 2, "w2");
    others_put_schema(f, 3, "w3");
    expect_int(newest(f), 3);
}

TARN_TEST(schema_back, goes_as_far_as_nothing_was_written)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    expect_status(back(&f, 4), TARN_INVALID_ARGUMENT, "Schema 4 of table");
    expect_status(back(&f, -1), TARN_INVALID_ARGUMENT, "does not exist");
    expect_ok(back(&f, 3));
    expect_int(newest(&f), 3);
    expect_ok(back(&f, 2));
    expect_int(newest(&f), 2);
    expect_false(folder_has(&f, "schema/schema-3"));
    fixture_land(&f, 1, "a"); /* of schema 2 */
    expect_status(back(&f, 1), TARN_SCHEMA_IN_USE, "schema 2 is still referenced by");
    expect_true(folder_has(&f, "schema/schema-2"));
    expect_int(newest(&f), 2);
    others_put_schema(&f, 3, "again");
    expect_int(newest(&f), 3);
    for (int drop = 0; drop < 2; drop++) {
        expect_ok(back(&f, 2));
        fixture_restart(&f, drop == 1);
        expect_int(newest(&f), 2);
        expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "a");
    }
}

TARN_TEST(schema_back, leaves_those_that_tags_changelogs_and_files_are_of)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_tag tag;
    struct tarn_roll_back_result r;
    setup(&f, t);
    expect_ok(back(&f, 0));
    struct tarn_manifest_entry e = fixture_file(&f, "a");
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, &e, 1, &id));
    others_put_schema(&f, 1, "w");
    expect_int(newest(&f), 1);
    fixture_land(&f, 2, "b");
    expect_ok(tarn_table_create_tag(t->op, f.table, S("kept"), TARN_VERSION_ID(2),
                                    TARN_SNAPSHOT_NONE, &tag));
    struct tarn_roll_back to = {.to = TARN_VERSION_ID(1), .only_from = TARN_SNAPSHOT_NONE};
    struct tarn_slice changelog = folder_get(&f, "snapshot/snapshot-2"),
                      tagged = folder_get(&f, "tag/tag-kept");
    expect_ok(tarn_table_roll_back(t->op, f.table, &to, &r));
    folder_put(&f, "tag/tag-kept", tagged); /* of a snapshot that is no more in the history */
    expect_status(back(&f, 0), TARN_SCHEMA_IN_USE, "schema 1");
    expect_ok(tarn_table_drop_tag(t->op, f.table, S("kept")));
    folder_put(&f, "changelog/changelog-2", changelog);
    expect_status(back(&f, 0), TARN_SCHEMA_IN_USE, "schema 1");
    folder_remove(&f, "changelog/changelog-2");
    expect_ok(back(&f, 0));
    expect_int(newest(&f), 0);
}

TARN_TEST(schema_back, that_is_cut_off_goes_on)
{
    for (int skip = 0; skip < 3; skip++) {
        TARN_OWN(fixture_fini) struct fixture f;
        setup(&f, t);
        struct tarn_fault_rule once = {.call = "remove",
                                       .key_part = "schema/",
                                       .skip_count = skip,
                                       .hit_count = 1,
                                       .fault = skip % 2 == 0 ? TARN_FAULT_FAIL_BEFORE
                                                              : TARN_FAULT_FAIL_AFTER};
        tarn_store_faulty_add(f.store, &once);
        struct tarn_status *s = back(&f, 0);
        expect_true(s != TARN_OK);
        tarn_status_free(s);
        tarn_store_faulty_clear(f.store);
        for (int again = 0; again < 2; again++) {
            int64_t there = newest(&f);
            expect_true(
                folder_has(&f, tarn_arena_printf(t->arena, "schema/schema-%d", (int)there)));
            expect_false(
                folder_has(&f, tarn_arena_printf(t->arena, "schema/schema-%d", (int)there + 1)));
            fixture_restart(&f, false);
        }
        expect_ok(back(&f, 0));
        expect_int(newest(&f), 0);
    }
}

/* A schema of the same id that others put in its place is told apart from it. */
TARN_TEST(schema_back, bounds_of_pages_are_of_one_schema_only)
{
    struct tarn_schema one = {.id = 2, .time_ms = 1795970707704},
                       other = {.id = 2, .time_ms = 1795970707705};
    expect_true(tarn_plan__schema_stamp(&one) != tarn_plan__schema_stamp(&other));
    other = one;
    expect_int(tarn_plan__schema_stamp(&other), tarn_plan__schema_stamp(&one));
    other.id = 3;
    expect_true(tarn_plan__schema_stamp(&one) != tarn_plan__schema_stamp(&other));
    (void)t;
}
