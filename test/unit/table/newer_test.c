/*
 * What a newer Paimon wrote into records of manifests and manifest lists survives or stops the commit: it is never
 * lost in silence.
 */
#include "fixture.h"

#include "format/avro.h"

#define NONE TARN_SNAPSHOT_NONE
#define FUTURE ",{\"name\":\"_FUTURE\",\"type\":\"long\"}"

/* What the header of an Avro container says of `key`. */
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
    expect_true(false);
    return value;
}

/* Gives the only record of an object one field more, behind all others; `end` closes the schema behind them. Its size. */
static int64_t grow_record(struct fixture *f, const char *name, const char *end)
{
    const char *key = tarn_arena_printf(f->t->arena, "db.db/t/manifest/%s", name);
    TARN_OWN(tarn_buf_drop) struct tarn_buf file = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    expect_ok(tarn_store_get(f->inner, f->t->op, key, &file));
    struct tarn_slice schema = header_value(&file, "avro.schema");
    expect_true(schema.size > strlen(end));
    schema.size -= strlen(end);
    struct tarn_avro_reader r;
    bool more = false;
    expect_ok(tarn_avro_open(tarn_buf_slice(&file), f->t->arena, &r));
    expect_ok(tarn_avro_next(&r, &more));
    expect_true(more);
    const uint8_t sync[TARN_AVRO_SYNC_SIZE] = {1};
    TARN_OWN(tarn_avro_writer_drop) struct tarn_avro_writer w = {0};
    expect_ok(tarn_avro_begin(
        &w, tarn_arena_printf(f->t->arena, "%.*s" FUTURE "%s", TARN_SLICE_ARG(schema), end),
        tarn_slice_str("none"), 1, sync, &out));
    tarn_buf_add(&w.block, r.cursor, (size_t)(r.end - r.cursor));
    tarn_avro_add_long(&w.block, 7);
    expect_ok(tarn_avro_end_record(&w));
    expect_ok(tarn_avro_end(&w));
    expect_ok(tarn_store_put(f->inner, f->t->op, key, tarn_buf_slice(&out)));
    return (int64_t)out.size;
}

/* Snapshot 2 names a delta list of this size. */
static void grow_list(struct fixture *f, int64_t size)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_snapshot s;
    expect_ok(tarn_store_get(f->inner, f->t->op, "db.db/t/snapshot/snapshot-2", &json));
    expect_ok(tarn_snapshot_decode(tarn_buf_slice(&json), f->t->arena, &s));
    s.delta_list_size = size;
    tarn_snapshot_encode(&s, &out);
    expect_ok(
        tarn_store_put(f->inner, f->t->op, "db.db/t/snapshot/snapshot-2", tarn_buf_slice(&out)));
}

/* Its manifest has a field more, and is named with the size that it has now. */
static void grow_manifest(struct fixture *f)
{
    static const char list[] = "db.db/t/manifest/list-foreign-2-1";
    const uint8_t sync[TARN_AVRO_SYNC_SIZE] = {2};
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    struct tarn_manifest_file *files;
    size_t count;
    int64_t size = grow_record(f, "manifest-foreign-2", "]}}]}");
    expect_ok(tarn_store_get(f->inner, f->t->op, list, &bytes));
    expect_ok(tarn_manifest_list_decode(tarn_buf_slice(&bytes), f->t->arena, &files, &count));
    files[0].size = size;
    expect_ok(tarn_manifest_list_encode(files, count, tarn_slice_str("none"), 1, sync, &out));
    expect_ok(tarn_store_put(f->inner, f->t->op, list, tarn_buf_slice(&out)));
    grow_list(f, (int64_t)out.size);
}

/* Snapshot 1 is ours with file a, snapshot 2 a stranger's with file x. */
static void begin(struct fixture *f, struct tarn_test *t)
{
    int64_t id;
    fixture_init(f, t);
    struct tarn_manifest_entry a = fixture_entry(f, TARN_ENTRY_ADD, "a", 0, 0, 1, 10, 0),
                               x = fixture_entry(f, TARN_ENTRY_ADD, "x", 0, 0, 1, 3, 20);
    expect_ok(fixture_append(f, "u", 1, &a, 1, &id));
    expect_int(fixture_foreign(f, "stranger", &x, 1), 2);
}

TARN_TEST(newer, field_in_a_manifest_list_stops_commits_and_not_reads)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin(&f, t);
    grow_list(&f, grow_record(&f, "list-foreign-2-1", "]}"));
    expect_str(fixture_files(&f, NONE, NULL), "a x");
    struct tarn_manifest_entry b = fixture_entry(&f, TARN_ENTRY_ADD, "b", 0, 0, 1, 3, 30);
    int64_t id;
    expect_status(fixture_append(&f, "u", 2, &b, 1, &id), TARN_UNSUPPORTED_FEATURE,
                  "manifest manifest-foreign-2 has fields");
    expect_str(fixture_files(&f, NONE, NULL), "a x");
}

TARN_TEST(newer, field_of_a_file_stops_what_would_write_it_anew)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin(&f, t);
    grow_manifest(&f);
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(&op, f.table, &request, &plan));
    expect_int(plan.file_count, 2);
    const struct tarn_manifest_entry *x = &plan.files[0].entry;
    if (!tarn_slice_equal(x->file.name, tarn_slice_str("x")))
        x = &plan.files[1].entry;
    expect_true(x->file.unknown);
    struct tarn_manifest_entry upgrade[] = {*x, *x};
    upgrade[0].kind = TARN_ENTRY_DELETE;
    upgrade[1].file.level = 5;
    int64_t id;
    expect_status(fixture_compact(&f, upgrade, 2, &id), TARN_UNSUPPORTED_FEATURE,
                  "file x has fields");
    expect_str(fixture_files(&f, NONE, NULL), "a x");
}

TARN_TEST(newer, field_of_a_file_outlives_the_merging_of_manifests)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin(&f, t);
    grow_manifest(&f);
    int64_t id;
    for (int i = 0; i < 70; i++) { /* twice what is merged: manifest.merge-min-count is 30 */
        struct tarn_manifest_entry e = fixture_entry(
            &f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%d", i), 0, 0, 1, 3, 100 + 10 * i);
        expect_ok(fixture_append(&f, "u", 10 + i, &e, 1, &id));
    }
    bool found;
    expect_ok(tarn_store_stat(f.inner, t->op, "db.db/t/manifest/manifest-foreign-2", &found, NULL));
    expect_true(found);
    fixture_restart(&f, true); /* all is read again from the manifests */
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST, .no_splits = true};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(&op, f.table, &request, &plan));
    expect_int(plan.file_count, 72);
    int unknown = 0;
    for (size_t i = 0; i < plan.file_count; i++)
        unknown += plan.files[i].entry.file.unknown;
    expect_int(unknown, 1);
}
