/*
 * Receipts: an identity that landed is answered with its snapshot, whatever became of the snapshot's file; one that was
 * rolled back may land again; what isn't known any more is said to be so, and "not committed" only where it can't land
 * (docs/architecture.md, "The life of a commit"; README.md of room table, I10 to I13).
 */
#include "commits.h"

#include "table/internal.h"

#define BATCH TARN_COMMIT_IDENTIFIER_BATCH
#define DAY_MS (INT64_C(86400) * 1000)

static int64_t append(struct fixture *f, const char *user, int64_t identifier, const char *name)
{
    struct tarn_manifest_entry e = fixture_entry(f, TARN_ENTRY_ADD, name, 0, 0, 1, 2, 0);
    int64_t id;
    expect_ok(fixture_append(f, user, identifier, &e, 1, &id));
    return id;
}

static uint64_t content_of(struct fixture *f, const char *name)
{
    struct tarn_manifest_entry e = fixture_entry(f, TARN_ENTRY_ADD, name, 0, 0, 1, 2, 0);
    struct tarn_commit c = {.append = {.entries = &e, .count = 1}};
    return tarn_commit_content(&c);
}

static struct tarn_commit_fate fate_of(struct fixture *f, const char *user, int64_t identifier,
                                       uint64_t content, int64_t since)
{
    struct tarn_commit_fate fate;
    expect_ok(tarn_table_find_commit(f->t->op, f->table, tarn_slice_str(user), identifier, content,
                                     since, &fate));
    return fate;
}

static void expect_fate(struct tarn_commit_fate fate, enum tarn_commit_state state,
                        int64_t append_snapshot_id)
{
    expect_int(fate.state, state);
    expect_int(fate.append_snapshot_id, append_snapshot_id);
}

static int64_t count_snapshots(struct fixture *f)
{
    struct tarn_snapshot *list;
    size_t count;
    expect_ok(tarn_table_snapshots(f->t->op, f->table, 1, 1000, &list, &count));
    return (int64_t)count;
}

/* As another writer does it: the files of snapshots above `id` go, from the newest on. */
static void roll_back_to(struct fixture *f, int64_t id, int64_t latest)
{
    struct tarn_test *t = f->t;
    expect_ok(tarn_store_put(f->inner, t->op, "db.db/t/snapshot/LATEST",
                             tarn_slice_str(tarn_arena_printf(t->arena, "%" PRId64, id))));
    for (; latest > id; latest--)
        expect_ok(tarn_store_remove(
            f->inner, t->op,
            tarn_arena_printf(t->arena, "db.db/t/snapshot/snapshot-%" PRId64, latest)));
}

static void expire_below(struct fixture *f, int64_t id)
{
    struct tarn_test *t = f->t;
    for (int64_t i = 1; i < id; i++)
        expect_ok(tarn_store_remove(
            f->inner, t->op, tarn_arena_printf(t->arena, "db.db/t/snapshot/snapshot-%" PRId64, i)));
    expect_ok(tarn_store_put(f->inner, t->op, "db.db/t/snapshot/EARLIEST",
                             tarn_slice_str(tarn_arena_printf(t->arena, "%" PRId64, id))));
}

static void look(struct fixture *f)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(f->t->op, f->table, &view));
}

/* --- landed --- */

TARN_TEST(receipts, tell_batches_of_one_user_apart_by_what_they_bring)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    expect_int(append(&f, "b", BATCH, "f1"), 1);
    expect_int(append(&f, "b", BATCH, "f2"), 2);
    for (int drop = 0; drop < 2;
         drop++) { /* replays are answered alike, with and without the state */
        expect_int(append(&f, "b", BATCH, "f1"), 1);
        expect_int(append(&f, "b", BATCH, "f2"), 2);
        expect_int(count_snapshots(&f), 2);
        expect_fate(fate_of(&f, "b", BATCH, content_of(&f, "f1"), TARN_SNAPSHOT_NONE),
                    TARN_COMMIT_LANDED, 1);
        expect_fate(fate_of(&f, "b", BATCH, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 2);
        fixture_restart(&f, true);
    }
}

TARN_TEST(receipts, of_a_batch_do_not_depend_on_the_order_of_its_files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry e[] = {fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 2, 0),
                                      fixture_entry(&f, TARN_ENTRY_ADD, "b", 1, 0, 1, 2, 0)};
    int64_t id;
    expect_ok(fixture_append(&f, "u", BATCH, e, 2, &id));
    TARN_OWN(tarn_free_drop) struct tarn_manifest_entry *swapped = tarn_calloc(2, sizeof *swapped);
    swapped[0] = e[1];
    swapped[1] = e[0];
    expect_ok(fixture_append(&f, "u", BATCH, swapped, 2, &id));
    expect_int(id, 1);
    expect_int(count_snapshots(&f), 1);
}

TARN_TEST(receipts, of_those_hidden_in_a_group_come_back_from_the_snapshot_alone)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "b1", BATCH, "f1", 0);
    crowd_append(&c, "s", 5, "f2", 0);
    crowd_append(&c, "s", 6, "f3", 0);
    crowd_append(&c, "b2", BATCH, "f4", 0);
    crowd_run(&c);
    for (int drop = 0; drop < 2; drop++) {
        expect_fate(fate_of(&f, "b1", BATCH, content_of(&f, "f1"), TARN_SNAPSHOT_NONE),
                    TARN_COMMIT_LANDED, 2);
        expect_fate(fate_of(&f, "s", 5, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 2);
        expect_fate(fate_of(&f, "s", 6, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 2);
        expect_int(append(&f, "s", 5, "f2"), 2);
        expect_int(append(&f, "b2", BATCH, "f4"), 2);
        fixture_restart(&f, true);
    }
}

TARN_TEST(receipts, of_both_parts_of_a_commit_are_told)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    struct tarn_manifest_entry x[] = {fixture_entry(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 9, 0),
                                      fixture_entry(&f, TARN_ENTRY_ADD, "x", 0, 5, 1, 9, 0)};
    struct tarn_commit commit = {.user = tarn_slice_str("b"),
                                 .identifier = BATCH,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .append = {.entries = &a, .count = 1},
                                 .compact = {.entries = x, .count = 2}};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    for (int drop = 0; drop < 2; drop++) {
        struct tarn_commit_fate fate =
            fate_of(&f, "b", BATCH, tarn_commit_content(&commit), TARN_SNAPSHOT_NONE);
        expect_fate(fate, TARN_COMMIT_LANDED, 1);
        expect_int(fate.compact_snapshot_id, 2);
        fixture_restart(&f, true);
    }
}

/* What tells one batch from another counts its changelog, which may be expired before the snapshot is. */
TARN_TEST(receipts, of_a_batch_outlive_its_changelog)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry file = fixture_file(&f, "a"), log = fixture_file(&f, "log");
    struct tarn_commit commit = {
        .user = tarn_slice_str("b"),
        .identifier = BATCH,
        .watermark = TARN_SNAPSHOT_NONE,
        .base_snapshot_id = TARN_SNAPSHOT_NONE,
        .append = {.entries = &file, .count = 1, .changelog = &log, .changelog_count = 1}};
    struct tarn_commit_result result;
    struct tarn_snapshot snapshot;
    bool found;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_ok(tarn_table_snapshot(t->op, f.table, TARN_VERSION_ID(1), &found, &snapshot));
    expect_ok(tarn_store_remove(f.inner, t->op,
                                tarn_arena_printf(t->arena, "db.db/t/manifest/%.*s",
                                                  TARN_SLICE_ARG(snapshot.changelog_list))));
    fixture_restart(&f, true);
    expect_fate(fate_of(&f, "b", BATCH, tarn_commit_content(&commit), TARN_SNAPSHOT_NONE),
                TARN_COMMIT_LANDED, 1);
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_true(result.repeated);
    expect_int(count_snapshots(&f), 1);
}

TARN_TEST(receipts, of_another_writer_are_kept_as_well)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    fixture_foreign(&f, "flink", &a, 1); /* its identifier is the snapshot's id */
    expect_fate(fate_of(&f, "flink", 1, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 1);
}

TARN_TEST(receipts, property_of_a_stranger_that_is_none_is_left_out)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    static const char *const bad[] = {"{",
                                      "[]",
                                      "7",
                                      "[[]]",
                                      "[[\"u\"]]",
                                      "[[\"u\",\"x\"]]",
                                      "[[\"u\",1,\"00000000000000ab\"]]",
                                      "[[\"u\",9223372036854775807,\"zz\"],[\"v\",3]]"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_pair pair = {tarn_slice_str("tarn.receipts"), tarn_slice_str(bad[i])};
        a.file.name = tarn_slice_str(tarn_arena_printf(t->arena, "a%zu", i));
        fixture_foreign_properties(&f, "flink", &a, 1, &pair, 1);
        look(&f);
    }
    expect_int(count_snapshots(&f), TARN_COUNT_OF(bad));
    expect_fate(fate_of(&f, "v", 3, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 8);
    expect_fate(fate_of(&f, "u", 1, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_COMMITTED, 0);
}

/* --- refused, stale --- */

TARN_TEST(receipts, of_a_refusal_say_why)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 2, 0);
    int64_t id;
    expect_status(fixture_append(&f, "s", 2, &a, 1, &id), TARN_COMMIT_CONFLICT, "already live");
    for (int restart = 0; restart < 2; restart++) {
        struct tarn_commit_fate fate = fate_of(&f, "s", 2, 0, TARN_SNAPSHOT_NONE);
        expect_fate(fate, TARN_COMMIT_REFUSED, 0);
        expect_int(fate.reason, TARN_COMMIT_CONFLICT);
        expect_contains(fate.message, "already live");
        fixture_restart(&f, false);
    }
    int64_t landed = append(&f, "s", 2, "b"); /* another attempt of the same checkpoint */
    expect_fate(fate_of(&f, "s", 2, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, landed);
}

TARN_TEST(receipts, of_refusals_are_bounded)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 2, 0);
    int64_t id;
    for (int i = 2; i < 4200; i++) {
        struct tarn_status *s = fixture_append(&f, "s", i, &a, 1, &id);
        expect_int(tarn_status_reason(s), TARN_COMMIT_CONFLICT);
        tarn_status_free(s);
    }
    expect_fate(fate_of(&f, "s", 4199, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_REFUSED, 0);
    expect_fate(fate_of(&f, "s", 3, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_COMMITTED, 0);
}

TARN_TEST(receipts, refuse_an_identifier_below_the_last_that_never_landed)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 7, "a");
    struct tarn_manifest_entry b = fixture_entry(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 2, 0);
    int64_t id;
    for (int drop = 0; drop < 2; drop++) {
        expect_status(fixture_append(&f, "s", 6, &b, 1, &id), TARN_COMMIT_IDENTIFIER_STALE,
                      "identifier 6 of user s never landed in table db.t, but 7 has");
        fixture_restart(&f, true);
    }
}

/* --- filter --- */

TARN_TEST(receipts, filter_by_the_users_last_identifier)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 3, "a");
    append(&f, "s", 5, "b");
    append(&f, "other", 9, "c");
    const int64_t ids[] = {2, 3, 4, 5, 6, 7};
    bool keep[6];
    int64_t last;
    expect_ok(
        tarn_table_filter_committed(t->op, f.table, tarn_slice_str("s"), ids, 6, keep, &last));
    expect_int(last, 5);
    for (int i = 0; i < 6; i++)
        expect_int(keep[i], ids[i] > 5); /* 4 never landed, and never will: Paimon's rule */
    expect_ok(
        tarn_table_filter_committed(t->op, f.table, tarn_slice_str("new"), ids, 6, keep, &last));
    expect_int(last, TARN_SNAPSHOT_NONE);
    expect_true(keep[0] && keep[5]);
}

/* --- rolled back --- */

TARN_TEST(receipts, of_what_was_rolled_back_are_void_and_may_be_made_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    append(&f, "s", 2, "b");
    append(&f, "b", BATCH, "c");
    roll_back_to(&f, 1, 3);
    for (int restart = 0; restart < 2; restart++) {
        expect_fate(fate_of(&f, "s", 1, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 1);
        expect_fate(fate_of(&f, "s", 2, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_ROLLED_BACK, 2);
        expect_fate(fate_of(&f, "b", BATCH, content_of(&f, "c"), TARN_SNAPSHOT_NONE),
                    TARN_COMMIT_ROLLED_BACK, 3);
        expect_fate(fate_of(&f, "b", BATCH, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_ROLLED_BACK, 3);
        fixture_restart(&f, false);
    }
    const int64_t two = 2;
    bool keep;
    int64_t last;
    expect_ok(
        tarn_table_filter_committed(t->op, f.table, tarn_slice_str("s"), &two, 1, &keep, &last));
    expect_int(last, 1);
    expect_true(keep);
    int64_t again = append(&f, "s", 2, "b");
    expect_fate(fate_of(&f, "s", 2, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, again);
    expect_int(append(&f, "b", BATCH, "c"), again + 1);
    expect_fate(fate_of(&f, "b", BATCH, content_of(&f, "c"), TARN_SNAPSHOT_NONE),
                TARN_COMMIT_LANDED, again + 1);
}

TARN_TEST(receipts, of_what_others_put_in_the_place_of_ours_are_theirs)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    append(&f, "s", 2, "b");
    roll_back_to(&f, 1, 2);
    struct tarn_manifest_entry x = fixture_entry(&f, TARN_ENTRY_ADD, "x", 0, 0, 1, 2, 0);
    expect_int(fixture_foreign(&f, "flink", &x, 1), 2);
    expect_fate(fate_of(&f, "flink", 2, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 2);
    expect_fate(fate_of(&f, "s", 2, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_ROLLED_BACK, 2);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "a x");
}

/* --- the horizon --- */

TARN_TEST(receipts, outlive_their_snapshots)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    append(&f, "b", BATCH, "b");
    append(&f, "s", 2, "c");
    expire_below(&f, 3);
    for (int restart = 0; restart < 2; restart++) {
        expect_fate(fate_of(&f, "s", 1, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 1);
        expect_int(append(&f, "b", BATCH, "b"), 2); /* answered, though its snapshot is gone */
        fixture_restart(&f, false);
    }
}

TARN_TEST(receipts, after_a_lost_disk_are_not_known_any_more_below_what_is_retained)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    append(&f, "b", BATCH, "b");
    append(&f, "s", 5, "c");
    expire_below(&f, 3);
    fixture_restart(&f, true);
    struct tarn_commit_fate fate = fate_of(&f, "b", BATCH, content_of(&f, "b"), TARN_SNAPSHOT_NONE);
    expect_fate(fate, TARN_COMMIT_NOT_KNOWN, 0);
    expect_int(fate.horizon_snapshot_id, 3);
    expect_fate(fate_of(&f, "s", 1, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_KNOWN, 0);
    /* Those that can't lie below: it began at 2 or later; it is above the user's last one. */
    expect_fate(fate_of(&f, "b", BATCH, content_of(&f, "b"), 2), TARN_COMMIT_NOT_COMMITTED, 0);
    expect_fate(fate_of(&f, "b", BATCH, content_of(&f, "b"), 1), TARN_COMMIT_NOT_KNOWN, 0);
    expect_fate(fate_of(&f, "s", 6, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_COMMITTED, 0);
    expect_fate(fate_of(&f, "s", 5, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 3);
}

TARN_TEST(receipts, of_what_others_committed_and_expired_meanwhile_are_not_known)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    fixture_look_no_more(&f); /* nobody looks */
    struct tarn_manifest_entry x = fixture_entry(&f, TARN_ENTRY_ADD, "x", 0, 0, 1, 2, 0);
    for (int i = 0; i < 4; i++) {
        x.file.name = tarn_slice_str(tarn_arena_printf(t->arena, "x%d", i));
        fixture_foreign(&f, "flink", &x, 1); /* 2 to 5 */
    }
    expire_below(&f, 4);
    fixture_restart(&f, false);
    expect_fate(fate_of(&f, "s", 1, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_KNOWN,
                0); /* or rolled back */
    expect_fate(fate_of(&f, "s", 2, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_KNOWN,
                0); /* in the gap? */
    expect_fate(fate_of(&f, "flink", 6, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_COMMITTED, 0);
    expect_fate(fate_of(&f, "flink", 5, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 5);
    struct tarn_commit_fate fate = fate_of(&f, "flink", 3, 0, TARN_SNAPSHOT_NONE);
    expect_fate(fate, TARN_COMMIT_NOT_KNOWN, 0);
    expect_int(fate.horizon_snapshot_id, 4);
}

TARN_TEST(receipts, are_forgotten_after_their_time_but_for_the_last_identifier)
{
    TARN_OWN(fixture_fini) struct fixture f;
    int64_t now = 1000 * DAY_MS;
    tarn_clock_fake(now);
    fixture_init(&f, t);
    append(&f, "s", 7, "a");
    append(&f, "b", BATCH, "b");
    tarn_clock_fake(now + 20 * DAY_MS);
    append(&f, "other", 1, "c");
    append(&f, "other", 2, "d");
    expire_below(&f, 4);
    look(&f);
    expect_fate(fate_of(&f, "b", BATCH, content_of(&f, "b"), TARN_SNAPSHOT_NONE),
                TARN_COMMIT_LANDED, 2);
    tarn_clock_fake(now + 31 * DAY_MS); /* 1 and 2 are older than 30 days, 3 isn't */
    expect_ok(tarn_table__receipts_forget(f.table, 4));
    struct tarn_commit_fate fate = fate_of(&f, "b", BATCH, content_of(&f, "b"), TARN_SNAPSHOT_NONE);
    expect_fate(fate, TARN_COMMIT_NOT_KNOWN, 0);
    expect_int(fate.horizon_snapshot_id, 3);
    expect_fate(fate_of(&f, "s", 7, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_KNOWN, 0);
    expect_fate(fate_of(&f, "s", 8, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_COMMITTED, 0);
    expect_fate(fate_of(&f, "other", 1, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 3);
    struct tarn_manifest_entry z = fixture_entry(&f, TARN_ENTRY_ADD, "z", 0, 0, 1, 2, 0);
    int64_t id;
    expect_status(fixture_append(&f, "s", 6, &z, 1, &id), TARN_COMMIT_IDENTIFIER_STALE, "7");
    tarn_clock_fake(-1);
}

static size_t key_count(struct fixture *f, const char *tags)
{
    size_t count = 0;
    for (; *tags != 0; tags++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
        struct tarn_slice key, value;
        tarn_table__tagged_key(f->table->uuid, *tags, &prefix);
        TARN_OWN(tarn_state_iterator_drop)
        struct tarn_state_iterator *it =
            tarn_state_iterator_new(f->env.state, TARN_FAMILY_RECEIPTS, tarn_buf_slice(&prefix));
        while (tarn_state_iterator_next(it, &key, &value))
            count++;
    }
    return count;
}

TARN_TEST(receipts, that_are_void_or_in_doubt_are_forgotten_after_their_time_too)
{
    TARN_OWN(fixture_fini) struct fixture f;
    int64_t now = 1000 * DAY_MS;
    tarn_clock_fake(now);
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    append(&f, "job", BATCH, "b");
    append(&f, "s", 2, "c");
    roll_back_to(&f, 1, 3);
    look(&f);
    expect_int(key_count(&f, "v"), 2);
    expect_fate(fate_of(&f, "s", 2, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_ROLLED_BACK, 3);
    tarn_clock_fake(now + 29 * DAY_MS);
    expect_ok(tarn_table__receipts_forget(f.table, 1));
    expect_int(key_count(&f, "v"), 2);
    tarn_clock_fake(now + 31 * DAY_MS);
    expect_ok(tarn_table__receipts_forget(f.table, 1));
    expect_int(key_count(&f, "v"), 0);
    expect_fate(fate_of(&f, "s", 1, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 1);
    expect_fate(fate_of(&f, "s", 2, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_COMMITTED, 0);
    tarn_clock_fake(-1);
}

TARN_TEST(receipts, that_were_forgotten_take_a_jobs_last_batch_along)
{
    TARN_OWN(fixture_fini) struct fixture f;
    int64_t now = 1000 * DAY_MS;
    tarn_clock_fake(now);
    fixture_init(&f, t);
    append(&f, "job 1", BATCH, "a");
    append(&f, "job 2", BATCH, "b");
    append(&f, "job 3", BATCH, "c");
    expire_below(&f, 3);
    tarn_clock_fake(now + 31 * DAY_MS);
    look(&f);
    expect_ok(tarn_table__receipts_forget(f.table, 3));
    expect_int(key_count(&f, "rob"), 3); /* those of the snapshot that is retained */
    expect_fate(fate_of(&f, "job 1", BATCH, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_NOT_KNOWN, 0);
    tarn_clock_fake(-1);
}

TARN_TEST(receipts, that_were_forgotten_leave_the_last_identifier_after_a_roll_back)
{
    TARN_OWN(fixture_fini) struct fixture f;
    int64_t now = 1000 * DAY_MS;
    tarn_clock_fake(now);
    fixture_init(&f, t);
    append(&f, "s", 7, "a");
    append(&f, "x", 1, "b");
    append(&f, "s", 8, "c");
    expire_below(&f, 2);
    tarn_clock_fake(now + 31 * DAY_MS);
    expect_ok(tarn_table__receipts_forget(f.table, 2));
    roll_back_to(&f, 2, 3);
    const int64_t eight = 8;
    bool keep;
    int64_t last;
    expect_ok(
        tarn_table_filter_committed(t->op, f.table, tarn_slice_str("s"), &eight, 1, &keep, &last));
    expect_int(last, 7);
    expect_true(keep);
    tarn_clock_fake(-1);
}

/* --- open --- */

TARN_TEST(receipts, of_what_waits_in_the_queue_are_open)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "s", 5, "a", 0);
    crowd_start(&c);
    struct asker asker;
    asker_start(&asker, &f, "s", 5);
    crowd_finish(&c);
    struct tarn_commit_fate fate = asker_finish(&asker);
    expect_true(fate.state == TARN_COMMIT_OPEN || fate.state == TARN_COMMIT_LANDED);
    expect_fate(fate_of(&f, "s", 5, 0, TARN_SNAPSHOT_NONE), TARN_COMMIT_LANDED, 2);
}

/* --- the door --- */

TARN_TEST(receipts, words_of_the_daemon_are_nobody_elses)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 2, 0);
    int64_t id;
    expect_status(fixture_append(&f, "tarn", 1, &a, 1, &id), TARN_INVALID_ARGUMENT, "daemon's own");
    struct tarn_pair pair = {tarn_slice_str("tarn.receipts"), tarn_slice_str("[]")};
    struct tarn_commit commit = {.user = tarn_slice_str("u"),
                                 .identifier = 1,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .properties = &pair,
                                 .property_count = 1,
                                 .append = {.entries = &a, .count = 1}};
    struct tarn_commit_result result;
    expect_status(tarn_table_commit(t->op, f.table, &commit, &result), TARN_INVALID_ARGUMENT,
                  "tarn.receipts");
}

/* --- told without a put --- */

TARN_TEST(receipts, are_not_told_from_before_a_roll_back_that_nobody_saw)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    append(&f, "s", 1, "a");
    append(&f, "b", BATCH, "b");
    append(&f, "s", 7, "c");
    roll_back_to(&f, 1, 3);
    expect_int(append(&f, "b", BATCH, "b"), 2); /* made again, not told to be there */
    roll_back_to(&f, 1, 2);
    expect_int(append(&f, "s", 5, "d"), 2); /* nor refused because of 7 */
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "a d");
}
