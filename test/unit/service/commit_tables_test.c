/*
 * A commit to several tables happens as a whole: what is refused leaves nothing, and what was begun is finished
 * forward, once, by whoever starts next.
 */
#include "fixture.h"

#include <time.h>

#include "service/intent.h"

#define BATCH TARN_COMMIT_IDENTIFIER_BATCH

static void setup(struct fixture *f, struct tarn_test *t)
{
    fixture_init(f, t);
    f->service.intents = tarn_intents_new(&f->service);
    fixture_table(f, "a", "id BIGINT NOT NULL, v STRING", "id");
    fixture_table(f, "b", "id BIGINT NOT NULL, v STRING", "id");
}

static void fini(struct fixture *f)
{
    tarn_intents_free(f->service.intents);
    fixture_fini(f);
}

static struct tarn_commit_request append(struct fixture *f, const char *table, const char *file,
                                         int64_t identifier)
{
    struct tarn_slice packed = fixture_file(f, table, file, 1, 9);
    struct tarn_manifest_entry *entry;
    expect_ok(tarn_service__unpack(f->t->op, &packed, 1, &entry));
    return (struct tarn_commit_request){
        .ref = fixture_ref(table),
        .commit = {.user = S("job"),
                   .identifier = identifier,
                   .watermark = TARN_SNAPSHOT_NONE,
                   .base_snapshot_id = TARN_SNAPSHOT_NONE,
                   .append = {.entries = entry, .count = 1}},
    };
}

static size_t intent_count(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->inner, f->t->op, ".tarn/intents", false, &objects, &count));
    return count;
}

static int64_t record_count(struct fixture *f, const char *table)
{
    struct tarn_table_facts facts;
    expect_ok(tarn_service_get_table(f->t->op, &f->service, fixture_ref(table), &facts));
    return facts.record_count;
}

static enum tarn_commit_state fate(struct fixture *f, const char *table, int64_t identifier)
{
    struct tarn_commit_fate out;
    expect_ok(tarn_service_get_commit(f->t->op, &f->service, fixture_ref(table), S("job"),
                                      identifier, TARN_SNAPSHOT_NONE, &out));
    return out.state;
}

TARN_TEST(commit_tables, all_land_once)
{
    TARN_OWN(fini) struct fixture f;
    setup(&f, t);
    struct tarn_commit_request both[] = {append(&f, "a", "data-1", 7),
                                         append(&f, "b", "data-2", 7)};
    struct tarn_commit_request again[] = {both[0], both[1]};
    struct tarn_commit_result first[2], second[2];
    expect_ok(tarn_service_commit_tables(t->op, &f.service, both, 2, first, NULL));
    expect_int(first[0].append_snapshot_id, 1);
    expect_int(first[1].append_snapshot_id, 1);
    expect_int(intent_count(&f), 0);
    expect_ok(tarn_service_commit_tables(t->op, &f.service, again, 2, second, NULL));
    for (int i = 0; i < 2; i++) {
        expect_true(second[i].repeated);
        expect_int(second[i].append_snapshot_id, 1);
    }
    expect_int(record_count(&f, "a"), 9);
    expect_int(record_count(&f, "b"), 9);
}

/* The compaction trigger is 5 sorted runs; nobody compacts here. */
TARN_TEST(commit_tables, each_table_says_how_far_its_compaction_is_behind)
{
    TARN_OWN(fini) struct fixture f;
    setup(&f, t);
    tarn_maintain_free(f.service.maintain);
    f.service.maintain =
        tarn_maintain_new(&(struct tarn_maintain_options){.catalog = f.service.catalog,
                                                          .exec = f.exec,
                                                          .automatic = true,
                                                          .check_interval_ms = 10,
                                                          .lease_ms = 60000});
    struct tarn_commit_result results[2];
    struct tarn_backlog backlogs[2] = {0};
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(tarn_service__table(t->op, &f.service, fixture_ref("b"), TARN_ACTION_READ, &table));
    for (int n = 0; n < 1000 && backlogs[1].advice == TARN_BACKLOG_NONE; n++) {
        struct tarn_commit_request both[] = {
            append(&f, "b", tarn_arena_printf(t->arena, "data-b-%d", n), n),
            append(&f, "a", tarn_arena_printf(t->arena, "data-a-%d", n), n)};
        if (n > 0) /* a is loaded once */
            expect_ok(
                tarn_service_commit_tables(t->op, &f.service, both, 1, results, backlogs + 1));
        else
            expect_ok(tarn_service_commit_tables(t->op, &f.service, both, 2, results, NULL));
        tarn_maintain_notice(f.service.maintain, table);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    struct tarn_commit_request both[] = {append(&f, "a", "data-last", 2000),
                                         append(&f, "b", "data-last", 2000)};
    expect_ok(tarn_service_commit_tables(t->op, &f.service, both, 2, results, backlogs));
    expect_int(backlogs[0].advice, TARN_BACKLOG_NONE);
    expect_int(backlogs[1].advice, TARN_BACKLOG_BEHIND);
    expect_int(backlogs[1].run_trigger, 5);
    expect_true(backlogs[1].runs > 5);
}

TARN_TEST(commit_tables, what_is_no_append_is_refused_before_anything_happens)
{
    TARN_OWN(fini) struct fixture f;
    setup(&f, t);
    struct tarn_commit_result results[2];
    struct tarn_commit_request good = append(&f, "a", "data-1", BATCH);
    struct tarn_commit_request twice[] = {good, good};
    expect_status(tarn_service_commit_tables(t->op, &f.service, twice, 2, results, NULL),
                  TARN_INVALID_ARGUMENT, "twice");
    struct tarn_commit_request overwrite[] = {good, append(&f, "b", "data-2", BATCH)};
    overwrite[1].commit.overwrite = TARN_OVERWRITE_TABLE;
    expect_status(tarn_service_commit_tables(t->op, &f.service, overwrite, 2, results, NULL),
                  TARN_INVALID_ARGUMENT, "adds files");
    struct tarn_commit_request unknown[] = {good, append(&f, "b", "data-2", BATCH)};
    unknown[1].ref = fixture_ref("c");
    expect_status(tarn_service_commit_tables(t->op, &f.service, unknown, 2, results, NULL),
                  TARN_TABLE_NOT_FOUND, "db.c");
    expect_status(tarn_service_commit_tables(t->op, &f.service, NULL, 0, results, NULL),
                  TARN_INVALID_ARGUMENT, "0 tables");
    expect_int(intent_count(&f), 0);
    expect_int(record_count(&f, "a"), 0);
}

TARN_TEST(commit_tables, one_table_that_would_refuse_its_part_refuses_all_of_it)
{
    TARN_OWN(fini) struct fixture f;
    setup(&f, t);
    struct tarn_commit_result results[2];
    struct tarn_commit_request before[] = {append(&f, "b", "data-2", 7)};
    expect_ok(tarn_service_commit_tables(t->op, &f.service, before, 1, results, NULL));
    struct tarn_commit_request live[] = {append(&f, "a", "data-1", 8),
                                         append(&f, "b", "data-2", 8)};
    expect_status(tarn_service_commit_tables(t->op, &f.service, live, 2, results, NULL),
                  TARN_COMMIT_CONFLICT,
                  "table db.b refuses its part of 2: file data-2 is already live");
    struct tarn_commit_request stale[] = {append(&f, "a", "data-1", 6),
                                          append(&f, "b", "data-3", 6)};
    expect_status(tarn_service_commit_tables(t->op, &f.service, stale, 2, results, NULL),
                  TARN_COMMIT_IDENTIFIER_STALE, "db.b");
    expect_int(intent_count(&f), 0);
    expect_int(record_count(&f, "a"), 0);
    expect_int(fate(&f, "a", 8), TARN_COMMIT_NOT_COMMITTED);
}

TARN_TEST(commit_tables, an_intent_that_could_not_be_put_is_no_commit)
{
    TARN_OWN(fini) struct fixture f;
    setup(&f, t);
    struct tarn_commit_request both[] = {append(&f, "a", "data-1", 7),
                                         append(&f, "b", "data-2", 7)};
    struct tarn_commit_result results[2];
    tarn_store_faulty_add(f.store, &(struct tarn_fault_rule){.call = "put_if_absent",
                                                             .key_part = ".tarn/intents",
                                                             .fault = TARN_FAULT_FULL});
    expect_status(tarn_service_commit_tables(t->op, &f.service, both, 2, results, NULL),
                  TARN_DISK_FULL, "");
    expect_int(record_count(&f, "a"), 0);
    expect_true(fate(&f, "a", 7) != TARN_COMMIT_OPEN);
}

struct outcome {
    struct tarn_gate *told;
    struct tarn_status *status;
};

static void tell(void *arg, struct tarn_status *status)
{
    struct outcome *o = arg;
    o->status = status;
    tarn_gate_open(o->told);
}

static struct tarn_status *commit_one(struct fixture *f, struct tarn_commit_request *request)
{
    struct tarn_commit_result result;
    struct outcome o = {.told = tarn_gate_new()};
    tarn_service_commit(f->t->op, &f->service, request, &result, &(struct tarn_backlog){0}, tell,
                        &o);
    tarn_gate_wait(o.told, NULL);
    tarn_gate_free(o.told);
    return o.status;
}

/* As a daemon leaves it that dies behind the first table. */
static void leave_half_done(struct fixture *f, int64_t identifier)
{
    struct tarn_intent_part parts[2] = {0};
    const char *tables[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        struct tarn_table_facts facts;
        const char *file = tarn_arena_printf(f->t->arena, "data-half-%d", i);
        expect_ok(tarn_service_get_table(f->t->op, &f->service, fixture_ref(tables[i]), &facts));
        parts[i].uuid = S(facts.uuid);
        parts[i].name = S(tables[i]);
        parts[i].commit = append(f, tables[i], file, identifier).commit;
    }
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_intent_encode(parts, 2, &bytes);
    expect_ok(tarn_store_put(f->inner, f->t->op, ".tarn/intents/one-that-is-left",
                             tarn_buf_slice(&bytes)));
    struct tarn_commit_request first = append(f, "a", "data-half-0", identifier);
    expect_ok(commit_one(f, &first));
}

static void wait_for_no_intents(struct fixture *f)
{
    for (int i = 0; i < 1000 && intent_count(f) > 0; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    expect_int(intent_count(f), 0);
}

TARN_TEST(commit_tables, what_a_crash_interrupted_is_finished_forward)
{
    TARN_OWN(fini) struct fixture f;
    setup(&f, t);
    leave_half_done(&f, 7);
    expect_int(record_count(&f, "b"), 0);
    expect_ok(tarn_service_recover(t->op, &f.service));
    enum tarn_commit_state state = TARN_COMMIT_OPEN;
    for (int64_t end = tarn_clock_mono_ms() + 10000;
         state != TARN_COMMIT_LANDED && tarn_clock_mono_ms() < end;) {
        state = fate(&f, "b", 7); /* never as if it hadn't been sent */
        expect_true(state == TARN_COMMIT_OPEN || state == TARN_COMMIT_LANDED);
    }
    wait_for_no_intents(&f);
    expect_int(fate(&f, "b", 7), TARN_COMMIT_LANDED);
    expect_int(record_count(&f, "a"), 9); /* once */
    expect_int(record_count(&f, "b"), 9);
}

TARN_TEST(commit_tables, a_damaged_intent_stays_and_harms_nobody)
{
    TARN_OWN(fini) struct fixture f;
    setup(&f, t);
    expect_ok(tarn_store_put(f.inner, t->op, ".tarn/intents/x", S("TARNINT\x01 but no more")));
    expect_ok(tarn_service_recover(t->op, &f.service));
    struct tarn_commit_request both[] = {append(&f, "a", "data-1", 7),
                                         append(&f, "b", "data-2", 7)};
    struct tarn_commit_result results[2];
    expect_ok(tarn_service_commit_tables(t->op, &f.service, both, 2, results, NULL));
    expect_int(intent_count(&f), 1);
}

TARN_TEST(intent, bytes_come_back_as_they_went_in)
{
    TARN_OWN(fini) struct fixture f;
    setup(&f, t);
    struct tarn_pair properties[] = {{S("k"), S("v")}};
    struct tarn_intent_part part = {.uuid = S("u"), .name = S("db.a")};
    part.commit = append(&f, "a", "data-1", 42).commit;
    part.commit.watermark = -5;
    part.commit.properties = properties;
    part.commit.property_count = 1;
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_intent_encode(&part, 1, &bytes);
    struct tarn_intent_part *out;
    size_t count;
    expect_ok(tarn_intent_decode(tarn_buf_slice(&bytes), t->arena, &out, &count));
    expect_int(count, 1);
    expect_true(tarn_slice_is(out->commit.user, "job"));
    expect_int(out->commit.identifier, 42);
    expect_int(out->commit.watermark, -5);
    expect_true(tarn_slice_is(out->commit.properties[0].value, "v"));
    expect_int(out->commit.append.count, 1);
    expect_true(tarn_slice_is(out->commit.append.entries[0].file.name, "data-1"));
    for (size_t i = 0; i < bytes.size; i++) { /* cut anywhere, and with any byte changed */
        struct tarn_status *s =
            tarn_intent_decode(tarn_slice_of(bytes.data, i), t->arena, &out, &count);
        expect_true(tarn_status_reason(s) == TARN_STATE_DAMAGED);
        tarn_status_free(s);
        bytes.data[i] ^= 1;
        s = tarn_intent_decode(tarn_buf_slice(&bytes), t->arena, &out, &count);
        expect_true(s != TARN_OK);
        tarn_status_free(s);
        bytes.data[i] ^= 1;
    }
}
