/*
 * Promise: a snapshot that its writer has finished is put as it came, byte for byte, if it stands on the latest one, and else refused
 * so that its writer makes another; it lands once, whatever is sent again; its files are never removed, whatever the outcome; and
 * those who commit otherwise beside it lose nothing (finished.c).
 */
#include "commits.h"

#include <time.h>

#include "table/internal.h"

#define S(text) tarn_slice_str(text)
#define BATCH TARN_COMMIT_IDENTIFIER_BATCH
#define NONE TARN_SNAPSHOT_NONE

static struct tarn_snapshot writer(const char *user, int64_t identifier, const char *uuid)
{
    return (struct tarn_snapshot){.commit_user = S(user),
                                  .commit_identifier = identifier,
                                  .kind = TARN_COMMIT_APPEND,
                                  .uuid = S(uuid)};
}

/* Of one file of ten rows. */
static struct tarn_slice craft(struct fixture *f, const char *tag, const struct tarn_snapshot *like,
                               const char *file)
{
    struct tarn_manifest_entry e = fixture_file(f, file);
    return fixture_craft(f, tag, like, &e, 1, NULL);
}

static struct tarn_status *post(struct fixture *f, struct tarn_slice json, const char *base_uuid,
                                struct tarn_commit_result *result)
{
    struct tarn_commit commit;
    *result = (struct tarn_commit_result){0};
    TARN_TRY(tarn_table_read_finished(f->t->op, f->table, json, S(base_uuid), &commit));
    return tarn_table_commit(f->t->op, f->table, &commit, result);
}

static void expect_lands(struct fixture *f, struct tarn_slice json, const char *base_uuid,
                         int64_t id)
{
    struct tarn_commit_result result;
    expect_ok(post(f, json, base_uuid, &result));
    expect_int(result.append_snapshot_id, id);
    expect_false(result.repeated);
}

static void expect_refused(struct fixture *f, struct tarn_slice json, const char *base_uuid,
                           enum tarn_reason reason, const char *part)
{
    struct tarn_commit_result result;
    struct tarn_status *s = post(f, json, base_uuid, &result);
    expect_status(s, reason, part);
}

static bool is_there(struct fixture *f, const char *name)
{
    bool found;
    expect_ok(tarn_store_stat(f->inner, f->t->op,
                              tarn_arena_printf(f->t->arena, "db.db/t/%s", name), &found, NULL));
    return found;
}

static void expect_text(struct fixture *f, const char *name, struct tarn_slice want)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    expect_ok(tarn_store_get(f->inner, f->t->op, tarn_arena_printf(f->t->arena, "db.db/t/%s", name),
                             &bytes));
    expect_bytes(tarn_buf_slice(&bytes), want);
}

TARN_TEST(finished, is_put_byte_for_byte)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_snapshot w = writer("u", BATCH, "uuid-1");
    struct tarn_slice json = craft(&f, "a", &w, "f1");
    json = S(tarn_arena_printf(t->arena, "{\"later\" : [1.50, {}],%.*s", (int)json.size - 1,
                               (const char *)json.data + 1));
    expect_lands(&f, json, NULL, 1);
    expect_text(&f, "snapshot/snapshot-1", json);
    expect_text(&f, "snapshot/LATEST", S("1"));
    expect_str(fixture_files(&f, NONE, NULL), "f1");
    struct tarn_snapshot second = writer("u", BATCH, "uuid-2");
    expect_lands(&f, craft(&f, "b", &second, "f2"), "uuid-1", 2);
    expect_str(fixture_files(&f, NONE, NULL), "f1 f2");
    expect_str(fixture_files(&f, 1, NULL), "f1");
    fixture_restart(&f, true); /* an index that is built of the folder says the same */
    expect_str(fixture_files(&f, NONE, NULL), "f1 f2");
}

TARN_TEST(finished, stands_on_the_latest_or_is_made_again)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_snapshot w = writer("u", 1, "uuid-1"), other = writer("o", 1, "uuid-o");
    struct tarn_slice early = craft(&f, "early", &w, "f1");
    expect_lands(&f, craft(&f, "other", &other, "f2"), NULL, 1);
    expect_refused(&f, early, NULL, TARN_SNAPSHOT_TAKEN, "not the next one");
    expect_true(is_there(&f, "manifest/list-early-1-0")); /* they are its writer's */
    expect_true(is_there(&f, "manifest/manifest-early-1"));
    struct tarn_slice again = craft(&f, "again", &w, "f1");
    expect_refused(&f, again, "uuid-x", TARN_SNAPSHOT_TAKEN, "another one of that id");
    expect_lands(&f, again, "uuid-o", 2);
    expect_str(fixture_files(&f, NONE, NULL), "f1 f2");
    struct tarn_commit_fate fate;
    expect_ok(tarn_table_find_commit(t->op, f.table, S("u"), 1, 0, NONE, &fate));
    expect_int(fate.state, TARN_COMMIT_LANDED);
}

TARN_TEST(finished, upon_another_history_of_that_id_isnt_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_snapshot w = writer("u", 1, NULL), other = writer("o", 1, NULL);
    expect_lands(&f, craft(&f, "one", &other, "f1"), NULL, 1);
    struct tarn_slice json = craft(&f, "two", &w, "f2"); /* a 1.x client: it says no uuid */
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-1"));
    fixture_foreign(&f, "x", &(struct tarn_manifest_entry){0}, 0);
    expect_refused(&f, json, NULL, TARN_SNAPSHOT_TAKEN, "base list");
    expect_true(is_there(&f, "manifest/list-two-2-0"));
}

TARN_TEST(finished, lands_once)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_commit_result result;
    struct tarn_snapshot w = writer("u", BATCH, "uuid-1"), old = writer("o", BATCH, NULL);
    struct tarn_slice first = craft(&f, "a", &w, "f1");
    expect_lands(&f, first, NULL, 1);
    struct tarn_slice second = craft(&f, "b", &old, "f2"); /* without a uuid */
    expect_lands(&f, second, NULL, 2);
    expect_ok(post(&f, first, NULL, &result)); /* the very same */
    expect_int(result.append_snapshot_id, 1);
    expect_true(result.repeated);
    expect_ok(post(&f, second, NULL, &result));
    expect_int(result.append_snapshot_id, 2);
    w.uuid = S("uuid-3"); /* made anew, of the same files */
    expect_ok(post(&f, craft(&f, "c", &w, "f1"), NULL, &result));
    expect_int(result.append_snapshot_id, 1);
    expect_true(result.repeated);
    expect_str(fixture_files(&f, NONE, NULL), "f1 f2");
    expect_false(is_there(&f, "snapshot/snapshot-3"));
}

TARN_TEST(finished, an_identifier_taken_again_for_other_files_is_another_commit)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_commit_result result;
    struct tarn_snapshot w = writer("u", 5, "uuid-5"), next = writer("u", 6, "uuid-6");
    expect_lands(&f, craft(&f, "a", &w, "f5"), NULL, 1);
    expect_lands(&f, craft(&f, "b", &next, "f6"), NULL, 2);
    next.uuid = S("uuid-6b"); /* sent again, upon what has come since */
    expect_ok(post(&f, craft(&f, "c", &next, "f6"), NULL, &result));
    expect_true(result.repeated);
    next.uuid = S("uuid-6c"); /* the job was restored from what it was at 5 */
    expect_lands(&f, craft(&f, "d", &next, "f6-again"), NULL, 3);
    expect_str(fixture_files(&f, NONE, NULL), "f5 f6 f6-again");
}

TARN_TEST(finished, is_judged_as_any_other)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_snapshot w = writer("u", BATCH, "uuid-1");
    struct tarn_manifest_entry gone = fixture_file(&f, "never");
    gone.kind = TARN_ENTRY_DELETE;
    w.kind = TARN_COMMIT_COMPACT;
    expect_refused(&f, fixture_craft(&f, "a", &w, &gone, 1, NULL), NULL, TARN_COMMIT_CONFLICT,
                   "never");
    expect_true(is_there(&f, "manifest/manifest-a-1"));
    w.kind = TARN_COMMIT_APPEND;
    struct tarn_manifest_entry later = fixture_file(&f, "later");
    later.file.schema_id = 7;
    expect_refused(&f, fixture_craft(&f, "b", &w, &later, 1, NULL), NULL, TARN_INVALID_ARGUMENT,
                   "schema 7");
    w.schema_id = 3;
    expect_refused(&f, craft(&f, "c", &w, "f"), NULL, TARN_INVALID_ARGUMENT, "schema 3");
    expect_false(is_there(&f, "snapshot/snapshot-1"));
}

TARN_TEST(finished, names_what_is_there)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_snapshot w = writer("u", BATCH, "uuid-1");
    static const char *const lost[] = {"list-%s-1-0", "list-%s-1-1", "manifest-%s-1"};
    for (size_t i = 0; i < TARN_COUNT_OF(lost); i++) {
        const char *tag = tarn_arena_printf(t->arena, "lost%zu", i);
        struct tarn_slice json = craft(&f, tag, &w, "f");
        TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
        tarn_buf_printf(&key, "db.db/t/manifest/%.*s%s%s", (int)(strstr(lost[i], "%s") - lost[i]),
                        lost[i], tag, strstr(lost[i], "%s") + 2);
        expect_ok(tarn_store_remove(f.inner, t->op, tarn_buf_cstr(&key)));
        expect_refused(&f, json, NULL, TARN_INVALID_ARGUMENT, tag);
    }
    w.index_manifest = S("index-manifest-0");
    expect_refused(&f, craft(&f, "i", &w, "f"), NULL, TARN_INVALID_ARGUMENT, "index-manifest-0");
    w.index_manifest = S(NULL);
    struct tarn_pair receipts = {S(TARN_RECEIPTS_PROPERTY), S("[]")};
    w.properties = &receipts;
    w.property_count = 1;
    expect_refused(&f, craft(&f, "r", &w, "f"), NULL, TARN_INVALID_ARGUMENT,
                   TARN_RECEIPTS_PROPERTY);
    expect_refused(&f, S("{}"), NULL, TARN_INVALID_ARGUMENT, "the snapshot");
    expect_refused(&f, S("[]"), NULL, TARN_INVALID_ARGUMENT, "the snapshot");
}

/* --- beside others --- */

static void rule(struct fixture *f, enum tarn_fault fault, int hits)
{
    struct tarn_fault_rule r = {
        .call = "put_if_absent", .key_part = "snapshot/", .hit_count = hits, .fault = fault};
    tarn_store_faulty_add(f->store, &r);
}

static void nap_ms(int64_t ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* A call of the crowd that brings this snapshot. */
static void crowd_post(struct crowd *c, struct tarn_slice json)
{
    struct tarn_commit *commit = crowd_append(c, "x", 1, "unused", 0);
    expect_ok(tarn_table_read_finished(c->f->t->op, c->f->table, json, S(NULL), commit));
}

TARN_TEST(finished, one_of_unknown_outcome_is_settled_and_keeps_its_files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    struct tarn_commit_result result;
    fixture_init(&f, t);
    crowd_init(&c, &f);
    c.no_plug = true;
    struct tarn_snapshot w = writer("u", 7, "uuid-7");
    struct tarn_slice json = craft(&f, "a", &w, "f1");
    rule(&f, TARN_FAULT_UNKNOWN, 0);
    crowd_post(&c, json);
    tarn_clock_fake(tarn_clock_wall_ms());
    crowd_start(&c);
    tarn_gate_open(f.gate);
    nap_ms(100);
    tarn_clock_fake(tarn_clock_wall_ms() + 60000);
    crowd_finish(&c);
    tarn_clock_fake(-1);
    expect_int(c.calls[0].reason, TARN_OUTCOME_UNKNOWN);
    expect_true(is_there(&f, "manifest/list-a-1-0"));
    expect_false(is_there(&f, "snapshot/snapshot-1"));
    tarn_store_faulty_clear(f.store);
    expect_ok(post(&f, json, NULL, &result)); /* sent again: the first one was made meanwhile */
    expect_int(result.append_snapshot_id, 1);
    expect_true(result.repeated);
    expect_text(&f, "snapshot/snapshot-1", json);
    expect_str(fixture_files(&f, NONE, NULL), "f1");
}

TARN_TEST(finished, who_loses_the_slot_is_told_and_keeps_its_files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    fixture_look_no_more(&f);
    struct tarn_snapshot w = writer("u", 7, "uuid-7");
    struct tarn_slice json = craft(&f, "a", &w, "f1");
    struct tarn_manifest_entry theirs = fixture_file(&f, "theirs");
    fixture_foreign(&f, "x", &theirs, 1);
    expect_refused(&f, json, NULL, TARN_SNAPSHOT_TAKEN, "not the next one");
    expect_true(is_there(&f, "manifest/list-a-1-0"));
    expect_true(is_there(&f, "manifest/manifest-a-1"));
    expect_str(fixture_files(&f, NONE, NULL), "theirs");
    expect_lands(&f, craft(&f, "b", &w, "f1"), NULL, 2);
}

TARN_TEST(finished, goes_alone_in_its_turn)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    fixture_init(&f, t);
    crowd_init(&c, &f);
    c.no_plug = true;
    struct tarn_snapshot w = writer("w", 1, "uuid-1"), late = writer("l", 1, "uuid-2");
    struct tarn_slice first = craft(&f, "a", &w, "f1"), second = craft(&f, "b", &late, "f2");
    crowd_post(&c, first);
    for (int i = 0; i < 8; i++)
        crowd_append(&c, "s", i + 1, tarn_arena_printf(t->arena, "g%d", i), 0);
    crowd_post(&c, second);
    for (int i = 8; i < 12; i++)
        crowd_append(&c, "s", i + 1, tarn_arena_printf(t->arena, "g%d", i), 0);
    crowd_run(&c);
    expect_int(c.calls[0].reason, TARN_NO_REASON);
    expect_int(c.calls[0].result.append_snapshot_id, 1);
    expect_text(&f, "snapshot/snapshot-1", first);
    for (int i = 1; i < c.count; i++)
        expect_int(c.calls[i].reason, i == 9 ? TARN_SNAPSHOT_TAKEN : TARN_NO_REASON);
    expect_str(fixture_files(&f, NONE, NULL), "f1 g0 g1 g10 g11 g2 g3 g4 g5 g6 g7 g8 g9");
}

/* --- turns --- */

/* An append waits in the queue before a snapshot that is finished, after one that came too late. */
static void come_late(struct crowd *c, struct fixture *f, struct tarn_test *t)
{
    struct tarn_snapshot w = writer("w", 1, "uuid-1");
    fixture_init(f, t);
    crowd_init(c, f);
    c->no_plug = true;
    tarn_clock_fake(tarn_clock_wall_ms());
    struct tarn_slice early = craft(f, "early", &w, "f1");
    fixture_land(f, 1, "first");
    expect_refused(f, early, NULL, TARN_SNAPSHOT_TAKEN, "not the next one");
    w.uuid = S("uuid-2");
    crowd_append(c, "s", 2, "g", 0);
    crowd_post(c, craft(f, "again", &w, "f1"));
}

TARN_TEST(finished, who_came_too_late_has_a_turn)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    come_late(&c, &f, t);
    crowd_run(&c);
    tarn_clock_fake(-1);
    expect_int(c.calls[1].reason, TARN_NO_REASON); /* overtakes */
    expect_int(c.calls[1].result.append_snapshot_id, 2);
    expect_int(c.calls[0].reason, TARN_NO_REASON); /* and then the others go on */
    expect_int(c.calls[0].result.append_snapshot_id, 3);
}

TARN_TEST(finished, a_turn_ends)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct crowd c;
    come_late(&c, &f, t);
    tarn_clock_fake(tarn_clock_wall_ms() + 60000);
    crowd_run(&c);
    tarn_clock_fake(-1);
    expect_int(c.calls[0].reason, TARN_NO_REASON);
    expect_int(c.calls[0].result.append_snapshot_id, 2);
    expect_int(c.calls[1].reason, TARN_SNAPSHOT_TAKEN);
}

TARN_TEST(finished, others_wait_for_whose_turn_it_is_no_longer_than_that)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_snapshot w = writer("w", 1, "uuid-1");
    struct tarn_slice early = craft(&f, "early", &w, "f1");
    fixture_land(&f, 1, "first");
    expect_refused(&f, early, NULL, TARN_SNAPSHOT_TAKEN, "not the next one");
    expect_int(fixture_land(&f, 2, "second"), 2); /* its writer never comes again */
}

/* Two that say nothing by it are not the same one. */
TARN_TEST(finished, is_not_known_by_an_empty_uuid)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_snapshot one = writer("u", BATCH, ""), other = writer("o", BATCH, "");
    struct tarn_slice late = craft(&f, "late", &other, "f2");
    expect_lands(&f, craft(&f, "a", &one, "f1"), NULL, 1);
    expect_refused(&f, late, NULL, TARN_SNAPSHOT_TAKEN, "not the next one");
}

TARN_TEST(finished, brings_the_statistics_that_it_names)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    struct tarn_snapshot w = {.commit_user = S("u"),
                              .commit_identifier = BATCH,
                              .kind = TARN_COMMIT_ANALYZE,
                              .statistics = S("stat-1")};
    struct tarn_slice json = fixture_craft(&f, "a", &w, NULL, 0, NULL);
    expect_refused(&f, json, NULL, TARN_FILE_MISSING, "statistics/stat-1");
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/t/statistics/stat-1", S("{}")));
    expect_lands(&f, json, NULL, 1);
}

/* --- totals that others say --- */

static struct tarn_slice saying(struct fixture *f, struct tarn_slice json, int64_t total)
{
    struct tarn_snapshot s;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    expect_ok(tarn_snapshot_decode(json, f->t->arena, &s));
    s.total_record_count = total;
    tarn_snapshot_encode(&s, &text);
    return tarn_arena_copy(f->t->arena, tarn_buf_slice(&text));
}

static int64_t newest_total(struct fixture *f)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(f->t->op, f->table, &view));
    return view->snapshot.total_record_count;
}

static void truncate(struct fixture *f)
{
    struct tarn_commit commit = {.user = S("t"),
                                 .identifier = BATCH,
                                 .watermark = NONE,
                                 .kind = TARN_COMMIT_OVERWRITE,
                                 .overwrite = TARN_OVERWRITE_TABLE};
    struct tarn_commit_result result;
    expect_ok(tarn_table_commit(f->t->op, f->table, &commit, &result));
}

/* Twenty rows are there. What is said of them stops nobody, and where no total can come of it, they are counted. */
TARN_TEST(finished, totals_that_cannot_be_stop_nobody)
{
    static const struct {
        int64_t said, appended;
    } cases[] = {{20, 30}, {NONE, 30}, {INT64_MAX, 30}, {-7, 30}, {0, 10}};
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(fixture_fini) struct fixture f;
        fixture_init(&f, t);
        struct tarn_snapshot w = writer("u", BATCH, NULL);
        fixture_land(&f, 1, "f1");
        expect_lands(&f, saying(&f, craft(&f, "a", &w, "f2"), cases[i].said), NULL, 2);
        fixture_land(&f, 2, "f3");
        expect_int(newest_total(&f), cases[i].appended);
        truncate(&f);
        expect_int(newest_total(&f), 0);
        expect_str(fixture_files(&f, NONE, NULL), "");
    }
}

TARN_TEST(finished, more_rows_than_can_be_counted_are_refused)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    int64_t id;
    struct tarn_manifest_entry e[] = {fixture_file(&f, "f1"), fixture_file(&f, "f2")};
    e[0].file.row_count = e[1].file.row_count = INT64_MAX;
    expect_status(fixture_append(&f, "u", 1, e, 2, &id), TARN_INVALID_ARGUMENT, "more rows");
    expect_ok(fixture_append(&f, "u", 2, e, 1, &id));
    expect_status(fixture_append(&f, "u", 3, e + 1, 1, &id), TARN_INVALID_ARGUMENT, "more rows");
    truncate(&f);
    fixture_land(&f, 4, "f3");
    expect_int(newest_total(&f), 10);
}
