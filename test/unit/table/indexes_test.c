/*
 * Index files: a snapshot's index manifest holds exactly what is live after the commit, and an index file that was not
 * made from what is there now is refused, where Paimon lets the last writer win (docs/architecture.md, step 3).
 */
#include "shape.h"

#include "format/avro.h"

#define NONE TARN_SNAPSHOT_NONE

static const struct shape dynamic = {.primary_key = true, .options = "\"bucket\":\"-1\""};
static const struct shape vectors = {.options =
                                         "\"bucket\":\"-1\",\"deletion-vectors.enabled\":\"true\""};

static struct tarn_index_file hash(enum tarn_entry_kind kind, const char *name, int bucket)
{
    return shape_index(kind, TARN_INDEX_HASH, name, tarn_row_empty(), bucket);
}

static struct tarn_manifest_entry file_in(struct fixture *f, enum tarn_entry_kind kind,
                                          const char *name, int bucket)
{
    return shape_entry(f, kind, name, tarn_row_empty(), bucket, -1, 0, 1, 10);
}

/* What the index manifest of the head has, "a b". */
static const char *live_indexes(struct fixture *f)
{
    const struct tarn_index_file *files;
    size_t count;
    expect_ok(tarn_table__index_files(f->t->op, f->table, f->table->head->snapshot.index_manifest,
                                      &files, &count));
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : " ", TARN_SLICE_ARG(files[i].name));
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

static struct tarn_status *check(struct fixture *f, enum tarn_commit_kind kind,
                                 const struct tarn_index_file *index, size_t count, int64_t base)
{
    return shape_check(f, kind, NULL, 0, index, count, base);
}

TARN_TEST(indexes, are_combined_carried_on_and_gone_when_nothing_is_left)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_index_file first[] = {hash(TARN_ENTRY_ADD, "h0", 0), hash(TARN_ENTRY_ADD, "h1", 1)};
    shape_land(&f, "x", TARN_COMMIT_APPEND, NULL, 0, first, 2);
    expect_str(live_indexes(&f), "h0 h1");
    struct tarn_slice name = f.table->head->snapshot.index_manifest;
    expect_true(tarn_slice_starts_with(name, tarn_slice_str("index-manifest-")));
    struct tarn_slice kept = tarn_arena_copy(t->arena, name);
    shape_land(&f, "x", TARN_COMMIT_APPEND, NULL, 0, NULL, 0);
    expect_bytes(f.table->head->snapshot.index_manifest, kept); /* the same file */
    struct tarn_index_file next[] = {hash(TARN_ENTRY_DELETE, "h0", 0),
                                     hash(TARN_ENTRY_ADD, "h2", 0)};
    shape_land(&f, "x", TARN_COMMIT_APPEND, NULL, 0, next, 2);
    expect_str(live_indexes(&f), "h1 h2");
    struct tarn_index_file last[] = {hash(TARN_ENTRY_DELETE, "h2", 0),
                                     hash(TARN_ENTRY_DELETE, "h1", 1)};
    shape_land(&f, "x", TARN_COMMIT_OVERWRITE, NULL, 0, last, 2);
    expect_null(f.table->head->snapshot.index_manifest.data);
    tarn_table__index_files_end(f.table); /* and all of it can be read again */
    expect_str(live_indexes(&f), "");
}

TARN_TEST(indexes, are_read_once)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_index_file first = hash(TARN_ENTRY_ADD, "h0", 0);
    shape_land(&f, "x", TARN_COMMIT_APPEND, NULL, 0, &first, 1);
    struct tarn_fault_rule rule = {.call = "get",
                                   .key_part = "index-manifest",
                                   .hit_count = 1000,
                                   .fault = TARN_FAULT_FAIL_BEFORE};
    tarn_table__index_files_end(f.table);
    expect_str(live_indexes(&f), "h0");
    tarn_store_faulty_add(f.store, &rule);
    for (int i = 0; i < 5; i++) {
        struct tarn_index_file change[] = {
            hash(TARN_ENTRY_DELETE, tarn_arena_printf(t->arena, "h%d", i), 0),
            hash(TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "h%d", i + 1), 0)};
        expect_ok(check(&f, TARN_COMMIT_APPEND, change, 2, NONE));
        shape_land(&f, "x", TARN_COMMIT_APPEND, NULL, 0, change, 2);
    }
    expect_str(live_indexes(&f), "h5");
    tarn_table__index_files_end(f.table);
    expect_status(check(&f, TARN_COMMIT_APPEND, &first, 1, NONE), TARN_IO_ERROR, "index manifest");
    tarn_store_faulty_clear(f.store);
}

/* h0 in bucket 0 and h1 in bucket 1 at snapshot 1; bucket 0 has g0 from snapshot 2 on; 3 changes none. */
static void two_buckets(struct fixture *f, struct tarn_test *t)
{
    shape_init(f, t, &dynamic);
    struct tarn_index_file first[] = {hash(TARN_ENTRY_ADD, "h0", 0), hash(TARN_ENTRY_ADD, "h1", 1)};
    struct tarn_index_file next[] = {hash(TARN_ENTRY_DELETE, "h0", 0),
                                     hash(TARN_ENTRY_ADD, "g0", 0)};
    shape_land(f, "x", TARN_COMMIT_APPEND, NULL, 0, first, 2);
    shape_land(f, "x", TARN_COMMIT_APPEND, NULL, 0, next, 2);
    shape_land(f, "x", TARN_COMMIT_APPEND, NULL, 0, NULL, 0);
}

TARN_TEST(indexes, name_the_file_that_they_were_made_from)
{
    TARN_OWN(fixture_fini) struct fixture f;
    two_buckets(&f, t);
    struct tarn_index_file n0 = hash(TARN_ENTRY_ADD, "n0", 0), n2 = hash(TARN_ENTRY_ADD, "n2", 2);
    struct tarn_index_file right[] = {n0, hash(TARN_ENTRY_DELETE, "g0", 0)};
    struct tarn_index_file old[] = {hash(TARN_ENTRY_DELETE, "h0", 0), n0};
    struct tarn_index_file both[] = {hash(TARN_ENTRY_DELETE, "g0", 0),
                                     hash(TARN_ENTRY_DELETE, "h0", 0), n0};
    struct tarn_index_file other[] = {hash(TARN_ENTRY_DELETE, "h1", 1), n0};
    expect_ok(check(&f, TARN_COMMIT_APPEND, right, 2, NONE));
    expect_ok(check(&f, TARN_COMMIT_APPEND, &n2, 1, NONE)); /* the bucket's first */
    expect_status(check(&f, TARN_COMMIT_APPEND, &n0, 1, NONE), TARN_INDEX_STALE,
                  "bucket 0 of table db.t has index file g0 of type HASH by now");
    expect_status(check(&f, TARN_COMMIT_APPEND, old, 2, NONE), TARN_INDEX_STALE, "g0");
    expect_status(check(&f, TARN_COMMIT_APPEND, both, 3, NONE), TARN_INDEX_STALE, "g0");
    expect_status(check(&f, TARN_COMMIT_APPEND, other, 2, NONE), TARN_INDEX_STALE, "g0");
    struct tarn_index_file gone = hash(TARN_ENTRY_DELETE, "x2", 2);
    expect_status(check(&f, TARN_COMMIT_COMPACT, &gone, 1, NONE), TARN_INDEX_STALE,
                  "index file x2 of type HASH is no longer that of bucket 2");
}

TARN_TEST(indexes, or_the_snapshot_that_they_were_made_from)
{
    TARN_OWN(fixture_fini) struct fixture f;
    two_buckets(&f, t);
    struct tarn_index_file n0 = hash(TARN_ENTRY_ADD, "n0", 0), n1 = hash(TARN_ENTRY_ADD, "n1", 1);
    expect_ok(check(&f, TARN_COMMIT_APPEND, &n0, 1, 3));
    expect_ok(check(&f, TARN_COMMIT_APPEND, &n0, 1, 2));
    expect_status(check(&f, TARN_COMMIT_APPEND, &n0, 1, 1), TARN_INDEX_STALE, "g0");
    expect_ok(check(&f, TARN_COMMIT_APPEND, &n1, 1, 1)); /* bucket 1 hasn't changed since */
    expect_status(check(&f, TARN_COMMIT_APPEND, &n1, 1, NONE), TARN_INDEX_STALE, "h1");
    expect_status(check(&f, TARN_COMMIT_APPEND, &n1, 1, 4), TARN_INDEX_STALE,
                  "h1"); /* rolled back? */
    expect_status(check(&f, TARN_COMMIT_APPEND, &n1, 1, 0), TARN_INDEX_STALE, "h1");
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-1")); /* expired */
    expect_ok(tarn_table__refresh(t->op, f.table));
    expect_status(check(&f, TARN_COMMIT_APPEND, &n1, 1, 1), TARN_INDEX_STALE, "h1");
    expect_ok(check(&f, TARN_COMMIT_APPEND, &n1, 1, 2));
}

/* Rows that were given buckets by the hash indexes of snapshot `base`, in this partition. */
static struct tarn_status *check_assigned(struct fixture *f, struct tarn_slice partition,
                                          int64_t base)
{
    struct tarn_manifest_entry file =
        shape_entry(f, TARN_ENTRY_ADD, "data-z", partition, 1, -1, 0, 1, 10);
    struct tarn_candidate c = {.kind = TARN_COMMIT_APPEND,
                               .user = tarn_slice_str("u"),
                               .entries = &file,
                               .count = 1,
                               .base_snapshot_id = base,
                               .assigned = true};
    return tarn_table__check_conflicts(f->t->op, f->table, f->table->head, &c);
}

TARN_TEST(indexes, of_a_partition_say_where_all_its_keys_are)
{
    TARN_OWN(fixture_fini) struct fixture f;
    two_buckets(&f, t);
    expect_ok(check_assigned(&f, tarn_row_empty(), 3));
    expect_ok(check_assigned(&f, tarn_row_empty(), 2));
    expect_status(check_assigned(&f, tarn_row_empty(), 1),
                  TARN_INDEX_STALE, /* though bucket 1's is the same */
                  "no longer that of snapshot 1");
    expect_status(check_assigned(&f, tarn_row_empty(), 0), TARN_INDEX_STALE, "");
    expect_status(check_assigned(&f, tarn_row_empty(), 4), TARN_INDEX_STALE, "");
    expect_ok(check_assigned(&f, tarn_slice_str("another partition"), 1));
}

/* A commit of ours: one data file and these changes, made from snapshot `base`. *proof: what tells its snapshot from others of that id. */
static struct tarn_status *land(struct fixture *f, const char *file,
                                const struct tarn_index_file *index, size_t count, int64_t base,
                                struct tarn_slice base_proof, struct tarn_slice *proof)
{
    struct tarn_manifest_entry entry = file_in(f, TARN_ENTRY_ADD, file, 0);
    struct tarn_commit commit = {
        .user = tarn_slice_str("u"),
        .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
        .watermark = NONE,
        .kind = TARN_COMMIT_APPEND,
        .base_snapshot_id = base,
        .base_snapshot_proof = base_proof,
        .append = {.entries = &entry, .count = 1, .index = index, .index_count = count}};
    struct tarn_commit_result result;
    struct tarn_snapshot snapshot;
    bool found;
    TARN_TRY(tarn_table_commit(f->t->op, f->table, &commit, &result));
    TARN_TRY(tarn_table_snapshot(f->t->op, f->table, TARN_VERSION_ID(result.append_snapshot_id),
                                 &found, &snapshot));
    *proof = tarn_snapshot_proof(&snapshot);
    return TARN_OK;
}

/* Of a snapshot that others rolled back, the id alone says nothing once it is used again. */
TARN_TEST(indexes, from_a_snapshot_that_was_replaced_are_stale)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_slice first, second, again, any = tarn_slice_str(NULL);
    struct tarn_index_file h0 = hash(TARN_ENTRY_ADD, "h0", 0), n0 = hash(TARN_ENTRY_ADD, "n0", 0);
    struct tarn_index_file next[] = {hash(TARN_ENTRY_DELETE, "h0", 0),
                                     hash(TARN_ENTRY_ADD, "g0", 0)};
    expect_ok(land(&f, "a", &h0, 1, 0, any, &first));
    expect_ok(land(&f, "b", next, 2, NONE, any, &second));
    expect_str(live_indexes(&f), "g0");
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-2")); /* others */
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/t/snapshot/LATEST", tarn_slice_str("1")));
    expect_ok(land(&f, "c", NULL, 0, NONE, any, &again)); /* 2 once more, with h0 */
    expect_status(land(&f, "d", &n0, 1, 2, second, &any), TARN_INDEX_STALE, "h0");
    expect_status(land(&f, "d", &n0, 1, 1, second, &any), TARN_INDEX_STALE, "h0");
    expect_status(land(&f, "d", &n0, 1, 2, tarn_slice_str("x"), &any), TARN_INDEX_STALE, "h0");
    expect_ok(land(&f, "d", &n0, 1, 1, first, &any)); /* the bucket's file is that of 1 */
    expect_str(live_indexes(&f), "n0");
}

TARN_TEST(indexes, of_a_snapshot_are_proven_by_its_lists_name_too)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_slice proof;
    struct tarn_snapshot snapshot;
    bool found;
    struct tarn_index_file h0 = hash(TARN_ENTRY_ADD, "h0", 0), n0 = hash(TARN_ENTRY_ADD, "n0", 0);
    expect_ok(land(&f, "a", &h0, 1, NONE, tarn_slice_str(NULL), &proof));
    expect_ok(tarn_table_snapshot(t->op, f.table, TARN_VERSION_ID(1), &found, &snapshot));
    expect_bytes(proof, snapshot.uuid);
    expect_ok(land(&f, "b", &n0, 1, 1, snapshot.delta_list, &proof));
    snapshot.uuid = tarn_slice_str(NULL); /* as Paimon 1 writes them */
    expect_bytes(tarn_snapshot_proof(&snapshot), snapshot.delta_list);
}

/* What was made from a file that is gone isn't the bucket's first. */
TARN_TEST(indexes, from_what_was_rolled_back_are_not_the_buckets_first)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_slice first, second, again, any = tarn_slice_str(NULL);
    struct tarn_index_file h0 = hash(TARN_ENTRY_ADD, "h0", 0), n0 = hash(TARN_ENTRY_ADD, "n0", 0);
    expect_ok(land(&f, "a", NULL, 0, NONE, any, &first));
    expect_ok(land(&f, "b", &h0, 1, 1, first, &second));
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/snapshot/snapshot-2")); /* others */
    expect_ok(tarn_store_put(f.inner, t->op, "db.db/t/snapshot/LATEST", tarn_slice_str("1")));
    expect_ok(land(&f, "c", NULL, 0, NONE, any, &again));
    expect_status(land(&f, "d", &n0, 1, 2, second, &any), TARN_INDEX_STALE,
                  "has no index file of type HASH any more");
    expect_ok(land(&f, "d", &n0, 1, 2, again, &any));
    expect_str(live_indexes(&f), "n0");
}

TARN_TEST(indexes, of_one_bucket_are_one_file)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_index_file twice[] = {hash(TARN_ENTRY_ADD, "a", 0), hash(TARN_ENTRY_ADD, "b", 0)};
    expect_status(check(&f, TARN_COMMIT_APPEND, twice, 2, NONE), TARN_COMMIT_CONFLICT, "second");
}

/* --- deletion vectors --- */

static void two_files(struct fixture *f, struct tarn_test *t)
{
    shape_init(f, t, &vectors);
    struct tarn_manifest_entry files[] = {file_in(f, TARN_ENTRY_ADD, "a", 0),
                                          file_in(f, TARN_ENTRY_ADD, "b", 0)};
    shape_land(f, "x", TARN_COMMIT_APPEND, files, 2, NULL, 0);
}

static struct tarn_index_file dv(struct fixture *f, enum tarn_entry_kind kind, const char *name,
                                 const char *files)
{
    return shape_vectors(f, kind, name, tarn_row_empty(), 0, files);
}

TARN_TEST(indexes, two_deletes_in_one_file_conflict)
{
    TARN_OWN(fixture_fini) struct fixture f;
    two_files(&f, t);
    struct tarn_index_file x = dv(&f, TARN_ENTRY_ADD, "x", "a"),
                           y = dv(&f, TARN_ENTRY_ADD, "y", "a"),
                           z = dv(&f, TARN_ENTRY_ADD, "z", "b");
    expect_ok(check(&f, TARN_COMMIT_OVERWRITE, &x, 1, NONE));
    shape_land(&f, "x", TARN_COMMIT_OVERWRITE, NULL, 0, &x, 1);
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, &y, 1, NONE), TARN_COMMIT_CONFLICT,
                  "data file a");
    expect_ok(check(&f, TARN_COMMIT_OVERWRITE, &z, 1, NONE)); /* another file */
    struct tarn_index_file more[] = {dv(&f, TARN_ENTRY_DELETE, "x", "a"), y};
    expect_ok(check(&f, TARN_COMMIT_OVERWRITE, more, 2, NONE));
    shape_land(&f, "x", TARN_COMMIT_OVERWRITE, NULL, 0, more, 2);
    expect_str(live_indexes(&f), "y");
    struct tarn_index_file late[] = {dv(&f, TARN_ENTRY_DELETE, "x", "a"),
                                     dv(&f, TARN_ENTRY_ADD, "w", "a")};
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, late, 2, NONE), TARN_COMMIT_CONFLICT,
                  "it is not live");
}

TARN_TEST(indexes, deleted_rows_of_a_file_that_is_no_more_conflict)
{
    TARN_OWN(fixture_fini) struct fixture f;
    two_files(&f, t);
    struct tarn_manifest_entry compact[] = {file_in(&f, TARN_ENTRY_DELETE, "a", 0),
                                            file_in(&f, TARN_ENTRY_DELETE, "b", 0),
                                            file_in(&f, TARN_ENTRY_ADD, "c", 0)};
    shape_land(&f, "x", TARN_COMMIT_COMPACT, compact, 3, NULL, 0);
    struct tarn_index_file x = dv(&f, TARN_ENTRY_ADD, "x", "a"),
                           c = dv(&f, TARN_ENTRY_ADD, "x", "c"),
                           n = dv(&f, TARN_ENTRY_ADD, "x", "n");
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, &x, 1, NONE), TARN_COMMIT_CONFLICT,
                  "file a, which is not live");
    expect_ok(check(&f, TARN_COMMIT_OVERWRITE, &c, 1, NONE));
    struct tarn_manifest_entry added = file_in(&f, TARN_ENTRY_ADD, "n", 0),
                               removed = file_in(&f, TARN_ENTRY_DELETE, "c", 0);
    expect_ok(shape_check(&f, TARN_COMMIT_OVERWRITE, &added, 1, &n, 1, NONE)); /* of its own */
    expect_status(shape_check(&f, TARN_COMMIT_OVERWRITE, &removed, 1, &c, 1, NONE),
                  TARN_COMMIT_CONFLICT, "not live");
}

TARN_TEST(indexes, a_compaction_that_missed_deleted_rows_conflicts)
{
    static const struct shape shapes[] = {
        {.options = "\"bucket\":\"-1\",\"deletion-vectors.enabled\":\"true\""},
        {.options =
             "\"bucket\":\"2\",\"bucket-key\":\"id\",\"deletion-vectors.enabled\":\"true\""}};
    for (int i = 0; i < 2; i++) {
        TARN_OWN(fixture_fini) struct fixture f;
        shape_init(&f, t, &shapes[i]);
        struct tarn_manifest_entry a = file_in(&f, TARN_ENTRY_ADD, "a", 0);
        struct tarn_index_file x = dv(&f, TARN_ENTRY_ADD, "x", "a");
        a.total_buckets = i == 0 ? -1 : 2;
        shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
        struct tarn_manifest_entry compact[] = {a, a};
        compact[0].kind = TARN_ENTRY_DELETE;
        compact[1].file.name = tarn_slice_str("c");
        expect_ok(shape_check(&f, TARN_COMMIT_COMPACT, compact, 2, NULL, 0, NONE));
        shape_land(&f, "x", TARN_COMMIT_OVERWRITE, NULL, 0, &x, 1); /* meanwhile */
        expect_status(shape_check(&f, TARN_COMMIT_COMPACT, compact, 2, NULL, 0, NONE),
                      TARN_COMMIT_CONFLICT, "rows of file a of table db.t were deleted meanwhile");
        struct tarn_index_file gone = dv(&f, TARN_ENTRY_DELETE, "x", "a");
        expect_ok(shape_check(&f, TARN_COMMIT_COMPACT, compact, 2, &gone, 1, NONE));
    }
}

TARN_TEST(indexes, vectors_of_a_bucket_are_one_file_that_must_be_named)
{
    struct shape shape = {.primary_key = true,
                          .options = "\"bucket\":\"2\",\"deletion-vectors.enabled\":\"true\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_index_file x = dv(&f, TARN_ENTRY_ADD, "x", "a b"),
                           y = dv(&f, TARN_ENTRY_ADD, "y", "a");
    shape_land(&f, "x", TARN_COMMIT_COMPACT, NULL, 0, &x, 1);
    expect_status(check(&f, TARN_COMMIT_COMPACT, &y, 1, NONE), TARN_INDEX_STALE, "x");
    expect_ok(check(&f, TARN_COMMIT_COMPACT, &y, 1, 1));
    struct tarn_index_file pair[] = {dv(&f, TARN_ENTRY_DELETE, "x", ""), y};
    expect_ok(check(&f, TARN_COMMIT_COMPACT, pair, 2, NONE));
}

TARN_TEST(indexes, of_a_file_of_an_append_tables_bucket_that_is_no_more_conflict)
{
    static const struct shape shape = {
        .options = "\"bucket\":\"2\",\"bucket-key\":\"id\",\"deletion-vectors.enabled\":\"true\""};
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &shape);
    struct tarn_manifest_entry a = file_in(&f, TARN_ENTRY_ADD, "a", 0);
    a.total_buckets = 2;
    shape_land(&f, "x", TARN_COMMIT_APPEND, &a, 1, NULL, 0);
    struct tarn_manifest_entry compact[] = {a, a};
    compact[0].kind = TARN_ENTRY_DELETE;
    compact[1].file.name = tarn_slice_str("c");
    struct tarn_index_file x = dv(&f, TARN_ENTRY_ADD, "x", "a"),
                           y = dv(&f, TARN_ENTRY_ADD, "y", "c");
    expect_ok(check(&f, TARN_COMMIT_OVERWRITE, &x, 1, 1));
    shape_land(&f, "x", TARN_COMMIT_COMPACT, compact, 2, NULL, 0); /* meanwhile */
    expect_status(check(&f, TARN_COMMIT_OVERWRITE, &x, 1, 1), TARN_COMMIT_CONFLICT,
                  "file a, which is not live");
    expect_ok(check(&f, TARN_COMMIT_OVERWRITE, &y, 1, 2));
}

/* --- what a later version wrote --- */

static struct tarn_slice header_value(const struct tarn_buf *file, const char *key)
{
    const uint8_t *cursor = file->data + 4, *end = file->data + file->size;
    struct tarn_slice name, value = {0};
    int64_t pairs;
    expect_true(tarn_avro_take_long(&cursor, end, &pairs));
    while (pairs-- > 0) {
        expect_true(tarn_avro_take_bytes(&cursor, end, &name));
        expect_true(tarn_avro_take_bytes(&cursor, end, &value));
        if (tarn_slice_equal(name, tarn_slice_str(key)))
            return value;
    }
    expect_unreachable("no %s", key);
    return value;
}

TARN_TEST(indexes, with_fields_of_a_later_version_are_never_written_without_them)
{
    TARN_OWN(fixture_fini) struct fixture f;
    shape_init(&f, t, &dynamic);
    struct tarn_index_file first = hash(TARN_ENTRY_ADD, "h0", 0),
                           more = hash(TARN_ENTRY_ADD, "h1", 1);
    shape_land(&f, "x", TARN_COMMIT_APPEND, NULL, 0, &first, 1);
    const char *key = tarn_arena_printf(t->arena, "db.db/t/manifest/%.*s",
                                        TARN_SLICE_ARG(f.table->head->snapshot.index_manifest));
    TARN_OWN(tarn_buf_drop) struct tarn_buf file = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf grown = {0};
    expect_ok(tarn_store_get(f.inner, t->op, key, &file));
    struct tarn_slice schema = header_value(&file, "avro.schema");
    schema.size -= 2; /* ]} */
    struct tarn_avro_reader r;
    bool any = false;
    expect_ok(tarn_avro_open(tarn_buf_slice(&file), t->arena, &r));
    expect_ok(tarn_avro_next(&r, &any));
    const uint8_t sync[TARN_AVRO_SYNC_SIZE] = {1};
    TARN_OWN(tarn_avro_writer_drop) struct tarn_avro_writer w = {0};
    expect_ok(tarn_avro_begin(&w,
                              tarn_arena_printf(t->arena,
                                                "%.*s,{\"name\":\"_FUTURE\",\"type\":\"long\"}]}",
                                                TARN_SLICE_ARG(schema)),
                              tarn_slice_str("none"), 1, sync, &grown));
    tarn_buf_add(&w.block, r.cursor, (size_t)(r.end - r.cursor));
    tarn_avro_add_long(&w.block, 7);
    expect_ok(tarn_avro_end_record(&w));
    expect_ok(tarn_avro_end(&w));
    expect_ok(tarn_store_put(f.inner, t->op, key, tarn_buf_slice(&grown)));
    tarn_table__index_files_end(f.table);
    struct tarn_objects objects = {0};
    struct tarn_slice name, now = f.table->head->snapshot.index_manifest;
    expect_status(tarn_table__combine_indexes(t->op, f.table, now, &more, 1, &objects, &name),
                  TARN_UNSUPPORTED_FEATURE, "h0");
    expect_int(objects.count, 0);
    expect_ok(tarn_table__combine_indexes(t->op, f.table, now, NULL, 0, &objects, &name));
    expect_bytes(name, now); /* carried on unread */
    struct tarn_index_file replaced[] = {hash(TARN_ENTRY_DELETE, "h0", 0), more};
    expect_ok(tarn_table__combine_indexes(t->op, f.table, now, replaced, 2, &objects, &name));
}
