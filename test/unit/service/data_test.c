/*
 * Promise: what a load is, is settled before a worker hears of it; its commit happens once; files of
 * a commit that was refused are removed, those of one whose outcome nobody knows are not; a worker
 * is told every schema it needs.
 */
#include "fixture.h"

#include <pthread.h>
#include <unistd.h>

static struct tarn_status *begin(struct fixture *f, const char *table, enum tarn_load_mode mode,
                                 const char *user, int64_t identifier, struct tarn_ingest *out)
{
    return tarn_service_ingest_begin(f->t->op, &f->service, fixture_ref(table), mode, S(user),
                                     identifier, out);
}

#define BATCH TARN_SNAPSHOT_NONE

static void setup(struct fixture *f, struct tarn_test *t)
{
    fixture_init(f, t);
    fixture_table(f, "k", "id BIGINT NOT NULL, v BIGINT", "id");
    fixture_table(f, "a", "id BIGINT, v BIGINT", NULL);
    fixture_worker(f, "127.0.0.1:1");
}

TARN_TEST(ingest, settles_the_mode)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    static const struct {
        const char *table;
        enum tarn_load_mode asked, got;
    } good[] = {
        {"k", TARN_LOAD_AUTO, TARN_LOAD_UPSERT},   {"a", TARN_LOAD_AUTO, TARN_LOAD_APPEND},
        {"k", TARN_LOAD_UPSERT, TARN_LOAD_UPSERT}, {"k", TARN_LOAD_DELETE, TARN_LOAD_DELETE},
        {"a", TARN_LOAD_APPEND, TARN_LOAD_APPEND},
    };
    struct tarn_ingest ingest;
    for (size_t i = 0; i < TARN_COUNT_OF(good); i++) {
        expect_ok(begin(&f, good[i].table, good[i].asked, "", BATCH, &ingest));
        expect_int(ingest.mode, good[i].got);
        expect_true(ingest.user.size > 0);
        expect_str(ingest.worker_address, "127.0.0.1:1");
        expect_int(ingest.description.schema_count, 1);
        tarn_service_ingest_end(&f.service, &ingest, false);
    }
    expect_status(begin(&f, "k", TARN_LOAD_APPEND, "", BATCH, &ingest), TARN_INVALID_ARGUMENT,
                  "primary key");
    expect_status(begin(&f, "a", TARN_LOAD_UPSERT, "", BATCH, &ingest), TARN_INVALID_ARGUMENT,
                  "upsert");
    expect_status(begin(&f, "a", TARN_LOAD_DELETE, "", BATCH, &ingest), TARN_INVALID_ARGUMENT,
                  "delete");
    expect_ok(begin(&f, "a", TARN_LOAD_OVERWRITE, "", BATCH, &ingest));
    expect_int(ingest.mode, TARN_LOAD_APPEND);
    expect_int(ingest.overwrite, TARN_OVERWRITE_TABLE); /* it has no partitions */
    tarn_service_ingest_end(&f.service, &ingest, false);
    expect_status(begin(&f, "a", TARN_LOAD_MODE_COUNT, "", BATCH, &ingest), TARN_INVALID_ARGUMENT,
                  "mode");
    expect_status(begin(&f, "a", TARN_LOAD_AUTO, "", 7, &ingest), TARN_INVALID_ARGUMENT,
                  "commit_user");
    expect_status(begin(&f, "b", TARN_LOAD_AUTO, "", BATCH, &ingest), TARN_TABLE_NOT_FOUND, "db.b");
}

TARN_TEST(ingest, commits_once_under_one_identity)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest first, second;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "u", 1, &first));
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "u", 1, &second)); /* while the first still runs */
    struct tarn_slice a = fixture_file(&f, "k", "data-a", 1, 3),
                      b = fixture_file(&f, "k", "data-b", 1, 3);
    expect_ok(fixture_commit(&f, &first, &a, 1, &snapshot, &repeated));
    expect_int(snapshot, 1);
    expect_false(repeated);
    expect_ok(fixture_commit(&f, &second, &b, 1, &snapshot, &repeated));
    expect_int(snapshot, 1);
    expect_true(repeated);
    tarn_service_ingest_end(&f.service, &first, false);
    tarn_service_ingest_end(&f.service, &second, false);
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "u", 1, &first));
    expect_int(first.repeated_snapshot_id, 1);
    expect_null(first.worker_id);
    tarn_service_ingest_end(&f.service, &first, false);
}

TARN_TEST(ingest, without_files_makes_no_snapshot)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "u", 1, &ingest));
    expect_ok(fixture_commit(&f, &ingest, NULL, 0, &snapshot, &repeated));
    expect_int(snapshot, 0);
    tarn_service_ingest_end(&f.service, &ingest, false);
}

TARN_TEST(ingest, that_is_refused_leaves_no_file)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    struct tarn_slice files[] = {fixture_file(&f, "k", "data-a", 1, 3),
                                 fixture_file(&f, "k", "data-b", 1, 3)};
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/k/bucket-0/data-b"));
    expect_status(fixture_commit(&f, &ingest, files, 2, &snapshot, &repeated), TARN_FILE_MISSING,
                  "data-b");
    expect_false(fixture_has(&f, "db.db/k/bucket-0/data-a"));
    tarn_service_ingest_end(&f.service, &ingest, false);
}

TARN_TEST(ingest, commits_its_changelog_or_removes_it)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated, again;
    struct tarn_written written;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    struct tarn_slice file = fixture_file(&f, "k", "data-a", 1, 3),
                      log = fixture_file(&f, "k", "changelog-a", 1, 4);
    written = (struct tarn_written){&file, 1, &log, 1, S("")};
    expect_ok(tarn_service_ingest_commit(t->op, &f.service, &ingest, &written, &snapshot, &repeated,
                                         &again, &(struct tarn_backlog){0}));
    tarn_service_ingest_end(&f.service, &ingest, false);
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_catalog_table(t->op, f.service.catalog, S("db"), S("k"), S(""), &table));
    expect_ok(tarn_table_look(t->op, table, &view));
    expect_int(view->snapshot.changelog_record_count, 4);
    expect_true(view->snapshot.changelog_list.size > 0);
    expect_int(view->snapshot.total_record_count, 3);

    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    file = fixture_file(&f, "k", "data-b", 1, 3);
    log = fixture_file(&f, "k", "changelog-b", 1, 4);
    written = (struct tarn_written){&file, 1, &log, 1, S("")};
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/k/bucket-0/data-b"));
    expect_status(tarn_service_ingest_commit(t->op, &f.service, &ingest, &written, &snapshot,
                                             &repeated, &again, &(struct tarn_backlog){0}),
                  TARN_FILE_MISSING, "data-b");
    expect_false(fixture_has(&f, "db.db/k/bucket-0/changelog-b"));
    expect_true(fixture_has(&f, "db.db/k/bucket-0/changelog-a"));
    tarn_service_ingest_end(&f.service, &ingest, false);
}

TARN_TEST(ingest, into_a_table_that_was_dropped_leaves_no_file)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    expect_ok(tarn_service_drop_table(t->op, &f.service, fixture_ref("k"), false));
    struct tarn_slice file = fixture_file(&f, "k", "data-a", 1, 3);
    expect_status(fixture_commit(&f, &ingest, &file, 1, &snapshot, &repeated), TARN_TABLE_NOT_FOUND,
                  "");
    expect_false(fixture_has(&f, "db.db/k/bucket-0/data-a"));
    tarn_service_ingest_end(&f.service, &ingest, false);
}

TARN_TEST(ingest, into_a_table_that_was_renamed_says_so_and_leaves_no_file)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    struct tarn_table_facts facts;
    expect_ok(
        tarn_service_rename_table(t->op, &f.service, fixture_ref("k"), S("db"), S("n"), &facts));
    struct tarn_slice file = fixture_file(&f, "k", "data-a", 1, 3);
    expect_status(fixture_commit(&f, &ingest, &file, 1, &snapshot, &repeated), TARN_TABLE_NOT_FOUND,
                  "db.k was renamed to db.n");
    expect_false(fixture_has(&f, "db.db/k/bucket-0/data-a"));
    tarn_service_ingest_end(&f.service, &ingest, false);
}

TARN_TEST(ingest, into_a_folder_that_others_removed_makes_no_snapshot)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/k/schema/schema-0"));
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/k/.tarn-table"));
    struct tarn_slice file = fixture_file(&f, "k", "data-a", 1, 3);
    expect_status(fixture_commit(&f, &ingest, &file, 1, &snapshot, &repeated), TARN_TABLE_NOT_FOUND,
                  "db.k");
    expect_false(fixture_has(&f, "db.db/k/bucket-0/data-a"));
    expect_false(fixture_has(&f, "db.db/k/snapshot/snapshot-1"));
    tarn_service_ingest_end(&f.service, &ingest, false);
}

static struct tarn_schema first_schema(struct fixture *f, const char *table)
{
    struct tarn_test *t = f->t;
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_schema out;
    expect_ok(tarn_store_get(
        f->inner, t->op, tarn_arena_printf(t->arena, "db.db/%s/schema/schema-0", table), &json));
    expect_ok(tarn_schema_decode(tarn_arena_copy(t->arena, tarn_buf_slice(&json)), t->arena, &out));
    return out;
}

TARN_TEST(ingest, begins_on_what_others_left_a_moment_ago)
{
    TARN_OWN(fixture_fini) struct fixture f;
    TARN_OWN(tarn_buf_drop) struct tarn_buf schema = {0};
    fixture_init(&f, t);
    f.env.foreign_check_ms = 3600000; /* before there is a table */
    fixture_table(&f, "k", "id BIGINT NOT NULL, v BIGINT", "id");
    fixture_worker(&f, "127.0.0.1:1");
    struct tarn_ingest ingest;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    expect_int(ingest.view->schema.id, 0);
    tarn_service_ingest_end(&f.service, &ingest, false);

    struct tarn_schema next = first_schema(&f, "k");
    next.id = 1;
    tarn_schema_encode(&next, &schema);
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/k/schema/schema-1", tarn_buf_slice(&schema)));
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    expect_int(ingest.view->schema.id, 1);
    tarn_service_ingest_end(&f.service, &ingest, false);
}

/* Time runs fast, so that the commit soon gives up asking. */
static void *hurry(void *arg)
{
    atomic_bool *stop = arg;
    for (int64_t now = 1000000000; !atomic_load(stop); now += 1000) {
        tarn_clock_fake(now);
        usleep(2000);
    }
    return NULL;
}

TARN_TEST(ingest, whose_outcome_is_unknown_keeps_its_files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "u", 1, &ingest));
    struct tarn_slice file = fixture_file(&f, "k", "data-a", 1, 3);
    struct tarn_fault_rule rule = {
        .call = "put_if_absent", .key_part = "snapshot/snapshot-1", .fault = TARN_FAULT_UNKNOWN};
    tarn_store_faulty_add(f.store, &rule);
    atomic_bool stop = false;
    pthread_t clock;
    pthread_create(&clock, NULL, hurry, &stop);
    struct tarn_status *s = fixture_commit(&f, &ingest, &file, 1, &snapshot, &repeated);
    atomic_store(&stop, true);
    pthread_join(clock, NULL);
    tarn_clock_fake(-1);
    expect_status(s, TARN_OUTCOME_UNKNOWN, "");
    expect_true(fixture_has(&f, "db.db/k/bucket-0/data-a"));
    /* The store is well again: asked with the same identity, it is answered. */
    tarn_store_faulty_clear(f.store);
    expect_ok(fixture_commit(&f, &ingest, &file, 1, &snapshot, &repeated));
    expect_int(snapshot, 1);
    expect_true(fixture_has(&f, "db.db/k/bucket-0/data-a"));
    tarn_service_ingest_end(&f.service, &ingest, false);
}

TARN_TEST(ingest, of_an_unpackable_entry_is_refused)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "u", 1, &ingest));
    struct tarn_slice nonsense = S("nonsense");
    expect_status(fixture_commit(&f, &ingest, &nonsense, 1, &snapshot, &repeated),
                  TARN_MANIFEST_MALFORMED, "");
    tarn_service_ingest_end(&f.service, &ingest, false);
}

TARN_TEST(scan, names_the_schemas_that_its_files_need)
{
    TARN_OWN(fixture_fini) struct fixture f;
    setup(&f, t);
    struct tarn_scan scan;
    expect_ok(tarn_service_scan_begin(t->op, &f.service, fixture_ref("k"), NOW, S(""), &scan));
    expect_int(scan.snapshot_id, 0); /* an empty table still has columns */
    expect_int(scan.split_count, 0);
    expect_int(scan.description.schema_count, 1);
    tarn_service_stream_end(&f.service, scan.worker_id, false);

    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(begin(&f, "k", TARN_LOAD_AUTO, "", BATCH, &ingest));
    struct tarn_slice file = fixture_file(&f, "k", "data-a", 1, 3);
    expect_ok(fixture_commit(&f, &ingest, &file, 1, &snapshot, &repeated));
    tarn_service_ingest_end(&f.service, &ingest, false);
    struct tarn_slice column = S("w");
    struct tarn_schema_change change = {
        .kind = TARN_CHANGE_ADD_COLUMN, .path = &column, .path_count = 1};
    struct tarn_table_facts facts;
    expect_ok(tarn_type_parse(S("STRING"), t->arena, &change.type));
    expect_ok(tarn_service_alter_table(t->op, &f.service, fixture_ref("k"), &change, 1, &facts));

    expect_ok(
        tarn_service_scan_begin(t->op, &f.service, fixture_ref("k"), NOW, S("id = 2"), &scan));
    expect_int(scan.snapshot_id, 1);
    expect_int(scan.split_count, 1);
    expect_int(scan.splits[0].file_count, 1);
    expect_int(scan.description.schema_count, 2);
    expect_int(scan.description.schema_id, 1);
    expect_str(scan.description.path, "db.db/k");
    tarn_service_stream_end(&f.service, scan.worker_id,
                            true); /* it broke: that worker is forgotten */
    struct tarn_server_status status;
    expect_ok(tarn_service_status(t->op, &f.service, &status));
    expect_int(status.worker_count, 0);
    expect_status(tarn_service_scan_begin(t->op, &f.service, fixture_ref("k"), NOW, S("("), &scan),
                  TARN_EXPRESSION_INVALID, "");
}
