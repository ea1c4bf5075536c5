/*
 * Promise: what the committer puts into entries is made anew when the snapshot's id, or what it stands on, changes: another
 * writer's snapshot that takes the id gets its row ids, and ours go on behind them; sequence numbers are those of the snapshot
 * that holds them, also of one that was prepared on a guess.
 */
#include "commits.h"
#include "fault_others.h"
#include "shape.h"

#include <time.h>

#define BATCH TARN_COMMIT_IDENTIFIER_BATCH

static struct tarn_manifest_entry rows(struct fixture *f, const char *name, int64_t count)
{
    return shape_entry(f, TARN_ENTRY_ADD, name, tarn_row_empty(), 0, -1, 0, 1, count);
}

static void others_take_the_id(void *arg)
{
    struct fixture *f = arg;
    struct tarn_manifest_entry x = rows(f, "x", 7);
    x.file.first_row_id = 10;
    x.file.min_sequence = x.file.max_sequence = 2;
    others_commit(f, "flink", &x, 1);
}

static int by_name(const void *a, const void *b)
{
    const struct tarn_plan_file *x = a, *y = b;
    return tarn_slice_compare(x->entry.file.name, y->entry.file.name);
}

/* "name@snapshot:sequence+row", in order of names; of files by others, too. */
static const char *stamps(struct fixture *f)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(f->t->op, f->table, &request, &plan));
    qsort(plan.files, plan.file_count, sizeof *plan.files, by_name);
    for (size_t i = 0; i < plan.file_count; i++) {
        const struct tarn_data_file *d = &plan.files[i].entry.file;
        tarn_buf_printf(&text, "%s%.*s@%" PRId64 ":%" PRId64, i == 0 ? "" : " ",
                        TARN_SLICE_ARG(d->name), plan.files[i].added_by, d->min_sequence);
        expect_int(d->max_sequence, d->min_sequence);
        if (d->first_row_id != TARN_FILE_NONE)
            tarn_buf_printf(&text, "+%" PRId64, d->first_row_id);
    }
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

TARN_TEST(stamp_again, gives_row_ids_behind_those_of_who_was_faster)
{
    static const struct shape tracked = {.options =
                                             "\"bucket\":\"-1\",\"row-tracking.enabled\":\"true\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &tracked);
    struct tarn_manifest_entry a = rows(&f, "a", 10), b = rows(&f, "b", 20), d = rows(&f, "d", 5);
    int64_t id;
    expect_ok(fixture_append(&f, "u", 1, &a, 1, &id));
    struct moment m = {
        .call = "put_if_absent", .key_part = "snapshot-2", .act = others_take_the_id, .arg = &f};
    moment_init(&f, &m);
    expect_ok(fixture_append(&f, "u", 2, &b, 1, &id));
    expect_int(m.happened, 1);
    expect_int(id, 3);
    expect_ok(fixture_append(&f, "u", 3, &d, 1, &id));
    expect_str(stamps(&f), "a@1:1+0 b@3:3+17 d@4:4+37 x@2:2+10");
    struct tarn_snapshot s;
    expect_ok(tarn_snapshot_decode(folder_get(&f, "snapshot/snapshot-4"), t->arena, &s));
    expect_int(s.next_row_id, 42);
}

/* Each of them stands on a guess of the one before. */
TARN_TEST(stamp_again, numbers_by_the_snapshot_that_holds_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t,
                         "\"tarn.group-commit\":\"none\",\"sequence.snapshot-ordering\":\"true\"");
    fixture_look_no_more(&f);
    struct crowd c;
    crowd_init(&c, &f);
    struct tarn_fault_rule slow = {.call = "put_if_absent",
                                   .key_part = "snapshot/",
                                   .skip_count = 1,
                                   .fault = TARN_FAULT_DELAY,
                                   .delay_ms = 60};
    tarn_store_faulty_add(f.store, &slow);
    for (int i = 0; i < 4; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    crowd_start(&c); /* plug1 is snapshot 1 */
    tarn_gate_open(f.gate);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* 2 is being put, 3 is prepared */
    struct tarn_manifest_entry x = fixture_entry(&f, TARN_ENTRY_ADD, "x", 1, 0, 1, 1, 2);
    expect_int(fixture_foreign(&f, "flink", &x, 1), 2);
    crowd_finish(&c);
    for (int i = 0; i < 4; i++)
        expect_int(c.calls[i].result.append_snapshot_id, 3 + i);
    expect_str(stamps(&f), "f0@3:3 f1@4:4 f2@5:5 f3@6:6 plug1@1:1 x@2:2");
}
