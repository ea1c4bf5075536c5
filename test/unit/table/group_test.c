/*
 * Group commit: who may share a snapshot, whose identity it carries, and that everybody hidden in it is as durable as the
 * snapshot itself (docs/architecture.md, "The life of a commit"; README.md of room table, I8, I9).
 */
#include "fixture.h"
#include "commits.h"

#define BATCH TARN_COMMIT_IDENTIFIER_BATCH

/* --- who may share --- */

TARN_TEST(group, appends_that_wait_become_one_snapshot_in_order_of_arrival)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    for (int i = 0; i < 10; i++)
        crowd_append(&c, "batcher", BATCH, tarn_arena_printf(t->arena, "f%d", i), i % 2);
    crowd_run(&c);
    for (int i = 0; i < 10; i++) {
        expect_int(c.calls[i].reason, TARN_NO_REASON);
        expect_int(c.calls[i].result.append_snapshot_id, 2); /* 1 held the mailbox up */
    }
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 plug1");
    struct tarn_manifest_file *base, *delta;
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    size_t base_count, delta_count;
    expect_ok(tarn_table_manifests(t->op, f.table, &s, &base, &base_count, &delta, &delta_count));
    expect_int(delta_count, 1);
    const char *order = crowd_manifest(&c, delta[0].name);
    expect_str(order, "f0 f1 f2 f3 f4 f5 f6 f7 f8 f9");
}

TARN_TEST(group, of_batches_carries_the_daemons_user_and_a_rising_number)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_append(&c, "b", BATCH, "fb", 0);
    crowd_run(&c);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_slice(s.commit_user, "tarn");
    expect_int(s.commit_identifier, 2);
    expect_int(s.property_count, 1);
    expect_slice(s.properties[0].key, "tarn.receipts");
    expect_contains(tarn_arena_str(t->arena, s.properties[0].value),
                    "[\"a\",9223372036854775807,\"");
}

TARN_TEST(group, of_one_is_signed_by_it_and_says_nothing_more)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_run(&c);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_slice(s.commit_user, "a");
    expect_int(s.commit_identifier, BATCH);
    expect_int(s.property_count, 0);
}

TARN_TEST(group, holds_one_streaming_user_whose_last_identifier_it_carries)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "b1", BATCH, "f0", 0);
    crowd_append(&c, "s", 5, "f1", 0);
    crowd_append(&c, "other", 9, "f2", 0); /* another streaming user: not in this one */
    crowd_append(&c, "s", 6, "f3", 0);
    crowd_append(&c, "b2", BATCH, "f4", 0);
    crowd_run(&c);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_slice(s.commit_user, "s");
    expect_int(s.commit_identifier, 6);
    const int64_t want[] = {2, 2, 3, 2, 2};
    for (int i = 0; i < 5; i++)
        expect_int(c.calls[i].result.append_snapshot_id, want[i]);
    s = crowd_snapshot(&c, 3);
    expect_slice(s.commit_user, "other");
    expect_int(s.commit_identifier, 9);
}

TARN_TEST(group, with_all_holds_any_number_of_streaming_users)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t, "\"tarn.group-commit\":\"all\"");
    struct crowd c;
    crowd_init(&c, &f);
    for (int i = 0; i < 5; i++)
        crowd_append(&c, tarn_arena_printf(t->arena, "s%d", i), 7 + i,
                     tarn_arena_printf(t->arena, "f%d", i), 0);
    crowd_run(&c);
    for (int i = 0; i < 5; i++)
        expect_int(c.calls[i].result.append_snapshot_id, 2);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_slice(s.commit_user, "s4");
    fixture_restart(&f, true); /* each is found again, from the snapshot alone */
    for (int i = 0; i < 5; i++) {
        struct tarn_commit_fate fate =
            crowd_fate(&c, tarn_arena_printf(t->arena, "s%d", i), 7 + i, 0);
        expect_int(fate.state, TARN_COMMIT_LANDED);
        expect_int(fate.append_snapshot_id, 2);
    }
}

/* Hash assigners walk snapshots back for their own user. */
TARN_TEST(group, with_all_holds_one_streaming_user_where_buckets_are_dynamic)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_schema(
        &f, t,
        "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"},"
        "{\"id\":1,\"name\":\"v\",\"type\":\"STRING\"}],\"highestFieldId\":1,\"partitionKeys\":[],"
        "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"-1\",\"tarn.group-commit\":\"all\"},"
        "\"timeMillis\":1}");
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    for (int i = 0; i < 3; i++)
        crowd_append(&c, tarn_arena_printf(t->arena, "s%d", i), 1,
                     tarn_arena_printf(t->arena, "f%d", i), i % 2);
    crowd_append(&c, "b", BATCH, "f9", 0);
    crowd_run(&c);
    const int64_t want[] = {1, 2, 3, 1};
    for (int i = 0; i < 4; i++)
        expect_int(c.calls[i].result.append_snapshot_id, want[i]);
}

TARN_TEST(group, with_none_is_never_shared)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t, "\"tarn.group-commit\":\"none\"");
    struct crowd c;
    crowd_init(&c, &f);
    for (int i = 0; i < 4; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    crowd_run(&c);
    for (int i = 0; i < 4; i++)
        expect_int(c.calls[i].result.append_snapshot_id, 2 + i);
}

TARN_TEST(group, of_compactions_is_of_different_buckets)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_compact(&c, "c0", NULL, "x0", 0, 1, 9);
    crowd_compact(&c, "c1", NULL, "x1", 1, 1, 9);
    crowd_compact(&c, "c2", NULL, "x2", 0, 20, 29); /* bucket 0 again */
    crowd_run(&c);
    expect_int(c.calls[0].result.compact_snapshot_id, 2);
    expect_int(c.calls[1].result.compact_snapshot_id, 2);
    expect_int(c.calls[2].result.compact_snapshot_id, 3);
    expect_int(crowd_snapshot(&c, 2).kind, TARN_COMMIT_COMPACT);
}

TARN_TEST(group, is_of_one_kind)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_compact(&c, "c", NULL, "x0", 1, 1, 9);
    crowd_append(&c, "b", BATCH, "fb", 0);
    crowd_run(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[2].result.append_snapshot_id, 2);
    expect_int(c.calls[1].result.compact_snapshot_id, 3);
}

TARN_TEST(group, is_parted_by_properties_that_disagree)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    struct tarn_pair red = {tarn_slice_str("colour"), tarn_slice_str("red")},
                     blue = {tarn_slice_str("colour"), tarn_slice_str("blue")},
                     size = {tarn_slice_str("size"), tarn_slice_str("big")};
    crowd_append(&c, "a", BATCH, "fa", 0)->properties = &red;
    crowd_append(&c, "b", BATCH, "fb", 0)->properties = &blue;
    crowd_append(&c, "c", BATCH, "fc", 0)->properties = &size;
    for (int i = 0; i < 3; i++)
        c.calls[i].commit.property_count = 1;
    crowd_run(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[1].result.append_snapshot_id, 3);
    expect_int(c.calls[2].result.append_snapshot_id, 2);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_int(s.property_count, 3);
    expect_slice(s.properties[0].value, "red");
    expect_slice(s.properties[1].value, "big");
}

TARN_TEST(group, is_parted_by_a_file_that_two_name_and_the_second_is_judged_after_the_first)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "a", BATCH, "same", 0);
    crowd_append(&c, "b", BATCH, "same", 0);
    crowd_run(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[1].reason, TARN_COMMIT_CONFLICT);
}

TARN_TEST(group, is_parted_by_the_same_identity_which_is_answered_alike)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "s", 5, "f1", 0);
    crowd_append(&c, "s", 5, "f1", 0);
    crowd_append(&c, "b", BATCH, "f2", 0);
    crowd_append(&c, "b", BATCH, "f2", 0);
    crowd_run(&c);
    for (int i = 0; i < 4; i++)
        expect_int(c.calls[i].result.append_snapshot_id, 2);
    expect_false(c.calls[0].result.repeated);
    expect_true(c.calls[1].result.repeated);
    expect_true(c.calls[3].result.repeated);
}

TARN_TEST(group, is_parted_where_two_write_one_bucket_under_snapshot_ordering)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(&f, t, "\"sequence.snapshot-ordering\":\"true\"");
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_append(&c, "b", BATCH, "fb", 1);
    crowd_append(&c, "c", BATCH, "fc", 0);
    crowd_run(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[1].result.append_snapshot_id, 2);
    expect_int(c.calls[2].result.append_snapshot_id, 3);
}

TARN_TEST(group, is_parted_by_bucket_counts_that_disagree)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    c.no_plug = true;
    crowd_append(&c, "a", BATCH, "fa", 0);
    struct tarn_commit *four = crowd_append(&c, "b", BATCH, "fb", 0);
    ((struct tarn_manifest_entry *)(uintptr_t)four->append.entries)->total_buckets = 4;
    crowd_run(&c);
    expect_int(c.calls[0].reason, TARN_NO_REASON);
    expect_int(c.calls[1].reason, TARN_BUCKET_MISMATCH);
}

TARN_TEST(group, has_a_bound)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    for (int i = 0; i < 300; i++)
        crowd_append(&c, "b", BATCH, tarn_arena_printf(t->arena, "f%03d", i), i % 2);
    crowd_run(&c);
    int second = 0, third = 0;
    for (int i = 0; i < 300; i++) {
        second += c.calls[i].result.append_snapshot_id == 2;
        third += c.calls[i].result.append_snapshot_id == 3;
    }
    expect_int(second, 256);
    expect_int(third, 44);
}

TARN_TEST(group, loses_the_one_that_is_refused_and_no_other)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "a", BATCH, "fa", 0);
    crowd_append(&c, "bad", BATCH, "plug1", 0); /* live by then */
    crowd_append(&c, "b", BATCH, "fb", 1);
    struct tarn_commit *invalid = crowd_append(&c, "worse", BATCH, "in/valid", 1);
    (void)invalid;
    crowd_append(&c, "old", 3, "fold", 1);
    ((struct tarn_manifest_entry *)(uintptr_t)c.calls[4].commit.append.entries)->file.schema_id = 7;
    crowd_run(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[1].reason, TARN_COMMIT_CONFLICT);
    expect_int(c.calls[2].result.append_snapshot_id, 2);
    expect_int(c.calls[3].reason, TARN_INVALID_ARGUMENT);
    expect_int(c.calls[4].reason, TARN_INVALID_ARGUMENT);
}

TARN_TEST(group, never_reorders_what_one_user_sends)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "s", 1, "f1", 0);
    crowd_append(&c, "r", 1, "g1", 0); /* stays: another streaming user */
    crowd_append(&c, "r", 2, "g2", 0); /* stays behind it */
    crowd_append(&c, "s", 2, "f2", 0);
    crowd_run(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[3].result.append_snapshot_id, 2);
    expect_int(c.calls[1].result.append_snapshot_id, 3);
    expect_int(c.calls[2].result.append_snapshot_id, 3);
    expect_int(crowd_snapshot(&c, 3).commit_identifier, 2);
}

/* --- what the snapshot says of all --- */

TARN_TEST(group, has_the_largest_watermark_and_the_operation_that_all_name)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    crowd_append(&c, "a", BATCH, "fa", 0)->watermark = 100;
    crowd_append(&c, "b", BATCH, "fb", 0)->watermark = 70;
    crowd_append(&c, "c", BATCH, "fc", 0);
    for (int i = 0; i < 3; i++)
        c.calls[i].commit.operation = tarn_slice_str("WRITE");
    crowd_run(&c);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_int(s.watermark, 100);
    expect_slice(s.operation, "WRITE");
    expect_int(s.delta_record_count, 6);
    crowd_clear(&c);
    crowd_append(&c, "a", BATCH, "ga", 0)->operation = tarn_slice_str("WRITE");
    crowd_append(&c, "b", BATCH, "gb", 0)->operation = tarn_slice_str("MERGE");
    crowd_run(&c);
    s = crowd_snapshot(&c, 4);
    expect_null(s.operation.data);
    expect_int(s.watermark, 100); /* carried on */
}

TARN_TEST(group, with_changelog_names_it_in_a_list_of_its_own)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    struct tarn_manifest_entry log = fixture_entry(&f, TARN_ENTRY_ADD, "log", 0, 0, 1, 5, 0);
    struct tarn_commit *with = crowd_append(&c, "a", BATCH, "fa", 0);
    with->append.changelog = &log;
    with->append.changelog_count = 1;
    crowd_append(&c, "b", BATCH, "fb", 0);
    crowd_run(&c);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_int(s.changelog_record_count, 5);
    expect_true(s.changelog_list.size > 0 && s.changelog_list_size > 0);
    s = crowd_snapshot(&c, 1);
    expect_int(s.changelog_record_count, TARN_SNAPSHOT_NONE);
}

/* --- two parts --- */

TARN_TEST(parts, of_one_commit_are_an_append_and_a_compact_snapshot)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    struct tarn_manifest_entry x[] = {fixture_entry(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 9, 0),
                                      fixture_entry(&f, TARN_ENTRY_ADD, "x", 0, 5, 1, 9, 0)};
    struct tarn_commit commit = {.user = tarn_slice_str("s"),
                                 .identifier = 4,
                                 .watermark = 8,
                                 .append = {.entries = &a, .count = 1},
                                 .compact = {.entries = x, .count = 2}};
    struct tarn_commit_result result;
    for (int i = 0; i < 2; i++) {
        expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
        expect_int(result.append_snapshot_id, 1);
        expect_int(result.compact_snapshot_id, 2);
        expect_int(result.repeated, i == 1);
    }
    struct crowd c;
    crowd_init(&c, &f);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_int(s.kind, TARN_COMMIT_COMPACT);
    expect_slice(s.commit_user, "s");
    expect_int(s.commit_identifier, 4);
    expect_int(s.watermark, 8);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "x");
}

TARN_TEST(parts, found_half_done_are_finished)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    struct tarn_manifest_entry x[] = {fixture_entry(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 9, 0),
                                      fixture_entry(&f, TARN_ENTRY_ADD, "x", 0, 5, 1, 9, 0)};
    int64_t id;
    expect_ok(fixture_append(&f, "s", 4, &a, 1, &id));
    struct tarn_commit commit = {.user = tarn_slice_str("s"),
                                 .identifier = 4,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .append = {.entries = &a, .count = 1},
                                 .compact = {.entries = x, .count = 2}};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_int(result.append_snapshot_id, 1);
    expect_int(result.compact_snapshot_id, 2);
    expect_false(result.repeated);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "x");
}

TARN_TEST(parts, come_before_what_their_user_sends_behind_them)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    struct tarn_fault_rule slow = {
        .call = "put_if_absent", .fault = TARN_FAULT_DELAY, .delay_ms = 30};
    tarn_store_faulty_add(f.store, &slow);
    struct tarn_manifest_entry x = fixture_entry(&f, TARN_ENTRY_ADD, "x", 1, 5, 1, 9, 0);
    crowd_append(&c, "s", 20, "f1", 0)->compact =
        (struct tarn_commit_part){.entries = &x, .count = 1};
    crowd_compact(&c, "b", NULL, "y", 0, 1, 9); /* flies between them */
    crowd_append(&c, "s", 22, "f2", 0);         /* engines look for the user's last snapshot */
    crowd_append(&c, "other", BATCH, "f3", 0);
    crowd_run(&c);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_true(c.calls[2].result.append_snapshot_id > c.calls[0].result.compact_snapshot_id);
    const int64_t ids[] = {20, 21, 22, 23};
    bool keep[4];
    int64_t last;
    expect_ok(
        tarn_table_filter_committed(t->op, f.table, tarn_slice_str("s"), ids, 4, keep, &last));
    expect_int(last, 22);
    struct tarn_manifest_entry f4 = fixture_entry(&f, TARN_ENTRY_ADD, "f4", 0, 0, 1, 2, 0);
    int64_t id; /* half of 20 alone would land behind 22: it is too late for it */
    expect_ok(fixture_append(&f, "s", 24, &f4, 1, &id));
    struct tarn_manifest_entry z = fixture_entry(&f, TARN_ENTRY_ADD, "z", 1, 5, 20, 29, 0);
    struct tarn_commit late = c.calls[2].commit;
    late.compact = (struct tarn_commit_part){.entries = &z, .count = 1};
    struct tarn_commit_result result;
    expect_status(tarn_table_commit(t->op, f.table, &late, &result), TARN_COMMIT_IDENTIFIER_STALE,
                  "the rows landed in snapshot");
}

TARN_TEST(parts, whose_compaction_conflicts_lose_no_rows)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    struct tarn_manifest_entry x[] = {fixture_entry(&f, TARN_ENTRY_DELETE, "gone", 0, 0, 1, 9, 0),
                                      fixture_entry(&f, TARN_ENTRY_ADD, "x", 0, 5, 1, 9, 0)};
    struct tarn_commit commit = {.user = tarn_slice_str("s"),
                                 .identifier = 4,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .append = {.entries = &a, .count = 1},
                                 .compact = {.entries = x, .count = 2}};
    struct tarn_commit_result result;
    expect_status(tarn_table_commit(t->op, f.table, &commit, &result), TARN_COMMIT_CONFLICT,
                  "the rows landed in snapshot 1, their compaction didn't");
    expect_int(result.append_snapshot_id, 1);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "a");
}

/* --- appends of nothing, and of what takes away --- */

TARN_TEST(append, of_nothing_makes_no_snapshot_unless_forced)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_commit commit = {
        .user = tarn_slice_str("s"), .identifier = 4, .watermark = TARN_SNAPSHOT_NONE};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_int(result.append_snapshot_id, 0);
    commit.force_empty = true;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_int(result.append_snapshot_id, 1);
    struct crowd c;
    crowd_init(&c, &f);
    struct tarn_snapshot s = crowd_snapshot(&c, 1);
    expect_int(s.kind, TARN_COMMIT_APPEND);
    expect_int(s.commit_identifier, 4);
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_true(result.repeated);
}

TARN_TEST(append, that_deletes_a_file_is_an_overwrite_to_readers_of_streams)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    struct tarn_manifest_entry gone = fixture_entry(&f, TARN_ENTRY_DELETE, "a", 0, 0, 1, 9, 0);
    int64_t id;
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    for (int i = 0; i < 2; i++) {
        expect_ok(fixture_append(&f, "s", 2, &gone, 1, &id));
        expect_int(id, 2); /* and is known again by it */
    }
    struct crowd c;
    crowd_init(&c, &f);
    expect_int(crowd_snapshot(&c, 2).kind, TARN_COMMIT_OVERWRITE);
}

TARN_TEST(analyze, sets_the_statistics_and_changes_nothing_else)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    int64_t id;
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    struct tarn_commit commit = {.user = tarn_slice_str("b"),
                                 .identifier = BATCH,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .kind = TARN_COMMIT_ANALYZE,
                                 .statistics = tarn_slice_str("stat-1")};
    struct tarn_commit_result result;
    commit.check_files = true;
    expect_status(tarn_table_commit(t->op, f.table, &commit, &result), TARN_FILE_MISSING,
                  "statistics/stat-1 is not there");
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/t/statistics/stat-1", tarn_slice_str("{}")));
    for (int i = 0; i < 2; i++) {
        expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
        expect_int(result.append_snapshot_id, 2);
    }
    struct crowd c;
    crowd_init(&c, &f);
    struct tarn_snapshot s = crowd_snapshot(&c, 2);
    expect_int(s.kind, TARN_COMMIT_ANALYZE);
    expect_slice(s.statistics, "stat-1");
    expect_int(s.total_record_count, 9);
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "a");
    struct tarn_manifest_entry b = fixture_entry(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 9, 0);
    expect_ok(fixture_append(&f, "s", 2, &b, 1, &id));
    expect_slice(crowd_snapshot(&c, 3).statistics, "stat-1"); /* inherited */
}

TARN_TEST(overwrite, of_the_table_happens_each_time_it_is_sent)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_commit truncate = {.user = tarn_slice_str("b"),
                                   .identifier = BATCH,
                                   .watermark = TARN_SNAPSHOT_NONE,
                                   .kind = TARN_COMMIT_OVERWRITE,
                                   .overwrite = TARN_OVERWRITE_TABLE,
                                   .operation = tarn_slice_str("TRUNCATE")};
    struct tarn_commit_result result;
    for (int i = 0; i < 2; i++) { /* it names no file: nothing tells one from the next */
        const char *name = tarn_arena_printf(t->arena, "a%d", i);
        struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, name, 0, 0, 1, 9, 0);
        int64_t id;
        expect_ok(fixture_append(&f, "s", 1 + i, &a, 1, &id));
        expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), name);
        expect_ok(tarn_table_commit(t->op, f.table, &truncate, &result));
        expect_false(result.repeated);
        expect_int(result.append_snapshot_id, 2 + 2 * i);
        expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "");
    }
}

TARN_TEST(overwrite, sent_again_is_answered_with_its_snapshot)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_manifest_entry a = fixture_entry(&f, TARN_ENTRY_ADD, "a", 0, 0, 1, 9, 0);
    struct tarn_manifest_entry b = fixture_entry(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 9, 0);
    struct tarn_manifest_entry later = fixture_entry(&f, TARN_ENTRY_ADD, "later", 0, 0, 1, 9, 0);
    int64_t id;
    expect_ok(fixture_append(&f, "s", 1, &a, 1, &id));
    struct tarn_commit commit = {.user = tarn_slice_str("b"),
                                 .identifier = BATCH,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .kind = TARN_COMMIT_OVERWRITE,
                                 .overwrite = TARN_OVERWRITE_TABLE,
                                 .append = {.entries = &b, .count = 1}};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
    expect_ok(fixture_append(&f, "s", 2, &later, 1, &id));
    for (int drop = 0; drop < 2; drop++) { /* by its receipt, and by what the snapshot alone says */
        expect_ok(tarn_table_commit(t->op, f.table, &commit, &result));
        expect_true(result.repeated);
        expect_int(result.append_snapshot_id, 2);
        expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), "b later");
        fixture_restart(&f, true);
    }
}

/* --- what is counted --- */

TARN_TEST(group, is_counted_as_one_snapshot_of_so_many)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct crowd c;
    crowd_init(&c, &f);
    static const char *const names[] = {
        "tarn_commits_total{kind=\"APPEND\"}", "tarn_commit_groups_total{members=\"1\"}",
        "tarn_commit_groups_total{members=\"4\"}", "tarn_commit_seconds_count",
        "tarn_commit_failures_total{reason=\"COMMIT_CONFLICT\"}"};
    const int64_t more[] = {2, 1, 1, 4,
                            1}; /* one holds the mailbox up, three share the next; one is refused */
    int64_t before[TARN_COUNT_OF(names)];
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++)
        before[i] = fixture_metric(names[i]);
    for (int i = 0; i < 3; i++)
        crowd_append(&c, "batcher", BATCH, tarn_arena_printf(t->arena, "f%d", i), 0);
    crowd_compact(&c, "compactor", "gone", "new", 0, 1, 2);
    crowd_run(&c);
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++)
        expect_int(fixture_metric(names[i]), before[i] + more[i]);
}
