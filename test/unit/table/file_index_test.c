/*
 * Promise: a plan leaves out the files whose file index rules them out, and no others: an index in the manifest entry or in
 * the one file beside the data file, of whatever schema the file was written by; the file beside is fetched only where that
 * pays, and no fetch that fails, or brings something else, costs a row. Of files that are merged all go, or none.
 */
#include "fixture.h"

#include <stdio.h>

#define BIG ((int64_t)8 << 20) /* of such a data file an index beside it is fetched */
#define BUCKET "db.db/t/bucket-0/"

/* The golden index: i is a multiple of 3 up to 597, s is "text 1" to "text 199"; bloom filters. */
static struct tarn_slice golden(struct tarn_test *t, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_test_golden(name, &bytes);
    return tarn_arena_copy(t->arena, tarn_buf_slice(&bytes));
}

static void append_table(struct fixture *f, struct tarn_test *t)
{
    fixture_init_schema(f, t, tarn_arena_str(t->arena, golden(t, "file_index/bloom.schema")));
}

static struct tarn_manifest_entry file(struct fixture *f, const char *name)
{
    struct tarn_manifest_entry e = fixture_entry(f, TARN_ENTRY_ADD, name, 0, 0, 0, 199, 0);
    e.total_buckets = -1;
    e.file.min_key = e.file.max_key = tarn_row_empty();
    e.file.key_stats = tarn_stats_empty();
    return e;
}

static struct tarn_manifest_entry embedded(struct fixture *f, const char *name)
{
    struct tarn_manifest_entry e = file(f, name);
    e.file.embedded_index = golden(f->t, "file_index/bloom.index");
    return e;
}

static struct tarn_manifest_entry beside(struct fixture *f, const char *name)
{
    struct tarn_slice *side = tarn_arena_calloc(f->t->arena, 1, sizeof *side);
    struct tarn_manifest_entry e = file(f, name);
    *side = tarn_slice_str(tarn_arena_printf(f->t->arena, "%s.index", name));
    e.file.extra_files = side;
    e.file.extra_file_count = 1;
    e.file.size = BIG;
    return e;
}

static void put(struct fixture *f, const char *name, struct tarn_slice bytes)
{
    expect_ok(tarn_store_put(f->inner, f->t->op,
                             tarn_arena_printf(f->t->arena, BUCKET "%s.index", name), bytes));
}

static void append(struct fixture *f, struct tarn_manifest_entry *entries, size_t count)
{
    static int64_t identifier;
    int64_t id;
    expect_ok(fixture_append(f, "u", ++identifier, entries, count, &id));
}

/* Every file that the plan has not, the index has left out. */
static void expect_files(struct fixture *f, const char *where, const char *files, int64_t left_out)
{
    struct tarn_plan_request request = {
        .version = TARN_VERSION_LATEST, .where = tarn_slice_str(where), .no_splits = true};
    struct tarn_plan plan;
    expect_str(fixture_files(f, TARN_SNAPSHOT_NONE, where), files);
    expect_ok(tarn_table_plan(f->t->op, f->table, &request, &plan));
    expect_int(plan.pruned_by_index, left_out);
    expect_int(plan.pruned_by_stats + plan.pruned_by_key, 0);
}

/* How often the plan asks the store. */
static int calls_of(struct fixture *f, const char *where)
{
    int before = tarn_store_faulty_call_count(f->store);
    fixture_files(f, TARN_SNAPSHOT_NONE, where);
    return tarn_store_faulty_call_count(f->store) - before;
}

TARN_TEST(file_index, in_the_entry_leaves_its_file_out)
{
    TARN_OWN(fixture_fini) struct fixture f;
    append_table(&f, t);
    struct tarn_manifest_entry e[] = {embedded(&f, "a"), file(&f, "b")};
    append(&f, e, 2);
    expect_files(&f, "i = 300", "a b", 0);
    expect_files(&f, "i = 301", "b", 1);
    expect_files(&f, "i IN (301, 302) AND s = 'text 1'", "b", 1);
    expect_files(&f, "i = 301 OR s = 'text 1'", "a b", 0);
    expect_files(&f, "i > 100000", "a b", 0); /* such an index knows nothing of order */
}

TARN_TEST(file_index, beside_its_file_is_fetched)
{
    TARN_OWN(fixture_fini) struct fixture f;
    append_table(&f, t);
    struct tarn_manifest_entry e[] = {beside(&f, "a"), file(&f, "b")};
    append(&f, e, 2);
    put(&f, "a", golden(t, "file_index/bloom.index"));
    expect_files(&f, "i = 300", "a b", 0);
    expect_files(&f, "i = 301", "b", 1);
    expect_files(&f, NULL, "a b", 0);
    expect_int(calls_of(&f, "i = 301"), calls_of(&f, NULL) + 2); /* a stat and a get */
}

TARN_TEST(file_index, that_can_not_be_had_rules_nothing_out)
{
    TARN_OWN(fixture_fini) struct fixture f;
    append_table(&f, t);
    struct tarn_slice index = golden(t, "file_index/bloom.index");
    TARN_OWN(tarn_buf_drop) struct tarn_buf huge = {0};
    struct tarn_manifest_entry e[] = {
        beside(&f, "absent"), beside(&f, "cut"), beside(&f, "empty"), beside(&f, "huge"),
        beside(&f, "wrong"),  beside(&f, "yes"), embedded(&f, "zero")};
    e[6].file.embedded_index.size = 40;
    append(&f, e, TARN_COUNT_OF(e));
    tarn_buf_add(&huge, index.data, index.size);
    for (int i = 0; i <= 1 << 20; i += 16)
        tarn_buf_add(&huge, "behind the index", 16);
    put(&f, "cut", tarn_slice_of(index.data, index.size / 2));
    put(&f, "empty", tarn_slice_str(""));
    put(&f, "huge", tarn_buf_slice(&huge));
    put(&f, "wrong", tarn_slice_str("a page of the store that is no index"));
    put(&f, "yes", index);
    expect_files(&f, "i = 301", "absent cut empty huge wrong zero", 1);
    static const enum tarn_fault faults[] = {TARN_FAULT_FAIL_BEFORE, TARN_FAULT_DENIED,
                                             TARN_FAULT_UNAVAILABLE, TARN_FAULT_NOT_FOUND};
    for (size_t i = 0; i < TARN_COUNT_OF(faults); i++)
        for (int get = 0; get < 2; get++) {
            struct tarn_fault_rule rule = {
                .call = get ? "get" : "stat", .key_part = ".index", .fault = faults[i]};
            tarn_store_faulty_add(f.store, &rule);
            expect_files(&f, "i = 301", "absent cut empty huge wrong yes zero", 0);
            tarn_store_faulty_clear(f.store);
        }
    expect_files(&f, "i = 301", "absent cut empty huge wrong zero", 1);
}

TARN_TEST(file_index, is_not_fetched_where_that_does_not_pay)
{
    TARN_OWN(fixture_fini) struct fixture f;
    append_table(&f, t);
    struct tarn_manifest_entry e[] = {beside(&f, "far"), beside(&f, "small"), beside(&f, "two")};
    struct tarn_slice two[] = {tarn_slice_str("two.index"), tarn_slice_str("three.index")};
    e[0].file.external_path = tarn_slice_str("s3://elsewhere/far");
    e[1].file.size = 1 << 20; /* as soon read itself */
    e[2].file.extra_files = two;
    e[2].file.extra_file_count = 2; /* which of them? */
    append(&f, e, 3);
    put(&f, "far", golden(t, "file_index/bloom.index"));
    put(&f, "small", golden(t, "file_index/bloom.index"));
    put(&f, "two", golden(t, "file_index/bloom.index"));
    expect_files(&f, "i = 301", "far small two", 0);
    expect_int(calls_of(&f, "i = 301"), calls_of(&f, NULL));
}

TARN_TEST(file_index, is_fetched_a_few_times_in_a_plan_and_the_rest_is_planned)
{
    enum { FILES = 70, FETCHES = 64 };
    TARN_OWN(fixture_fini) struct fixture f;
    append_table(&f, t);
    struct tarn_manifest_entry e[FILES];
    for (int i = 0; i < FILES; i++) {
        e[i] = beside(&f, tarn_arena_printf(t->arena, "f%02d", i));
        put(&f, tarn_arena_printf(t->arena, "f%02d", i), golden(t, "file_index/bloom.index"));
    }
    append(&f, e, FILES);
    expect_files(&f, "i = 301", "f64 f65 f66 f67 f68 f69", FETCHES);
    expect_int(calls_of(&f, "i = 301"), calls_of(&f, NULL) + 2 * FETCHES);
}

TARN_TEST(file_index, is_passed_over_where_the_table_says_so)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_schema(
        &f, t,
        "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"i\",\"type\":\"INT\"}],"
        "\"highestFieldId\":0,\"partitionKeys\":[],\"primaryKeys\":[],\"options\":{"
        "\"bucket\":\"-1\",\"file-index.read.enabled\":\"false\"},\"timeMillis\":1}");
    struct tarn_manifest_entry e[] = {embedded(&f, "a"), beside(&f, "b")};
    append(&f, e, 2);
    put(&f, "b", golden(t, "file_index/bloom.index"));
    expect_files(&f, "i = 301", "a b", 0);
}

/* Which column an index is about, the schema says that its file was written by. */
TARN_TEST(file_index, speaks_of_the_columns_that_its_file_had)
{
    TARN_OWN(fixture_fini) struct fixture f;
    append_table(&f, t);
    struct tarn_manifest_entry old = embedded(&f, "old");
    append(&f, &old, 1);
    expect_ok(tarn_store_put(
        f.store, t->op, "db.db/t/schema/schema-1",
        tarn_slice_str(
            "{\"version\":3,\"id\":1,\"fields\":[{\"id\":0,\"name\":\"number\",\"type\":\"BIGINT\"},"
            "{\"id\":5,\"name\":\"i\",\"type\":\"INT\"},{\"id\":1,\"name\":\"s\",\"type\":\"STRING\"}],"
            "\"highestFieldId\":5,\"partitionKeys\":[],\"primaryKeys\":[],\"options\":{"
            "\"bucket\":\"-1\"},\"timeMillis\":2}")));
    struct tarn_manifest_entry next = file(&f, "next");
    next.file.schema_id = 1;
    append(&f, &next, 1);
    expect_files(&f, "s = 'text x'", "next", 1);
    expect_files(&f, "number = 300", "next old", 0);
    expect_files(&f, "i IS NULL", "next old", 0);
    expect_files(&f, "s = 'text 1'", "next old", 0);
}

/* A newer version of a row may lie in any file of a section: it goes as a whole, or stays. */
TARN_TEST(file_index, of_files_that_are_merged_speaks_for_all_of_them)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_schema(
        &f, t,
        "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"},"
        "{\"id\":1,\"name\":\"s\",\"type\":\"STRING\"}],\"highestFieldId\":1,\"partitionKeys\":[],"
        "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"1\"},\"timeMillis\":1}");
    struct tarn_manifest_entry e[] = {
        fixture_entry(&f, TARN_ENTRY_ADD, "alone", 0, 0, 0, 99, 0),
        fixture_entry(&f, TARN_ENTRY_ADD, "both1", 0, 0, 100, 199, 100),
        fixture_entry(&f, TARN_ENTRY_ADD, "both2", 0, 0, 150, 250, 200),
        fixture_entry(&f, TARN_ENTRY_ADD, "one1", 0, 0, 300, 399, 301),
        fixture_entry(&f, TARN_ENTRY_ADD, "one2", 0, 0, 350, 450, 401)};
    for (size_t i = 0; i < TARN_COUNT_OF(e); i++) {
        e[i].total_buckets = 1;
        if (i < 4) /* one2 has none */
            e[i].file.embedded_index = golden(t, "file_index/bloom.index");
    }
    append(&f, e, TARN_COUNT_OF(e));
    expect_files(&f, "s = 'text x'", "one1 one2", 3);
    expect_files(&f, "s = 'text 1'", "alone both1 both2 one1 one2", 0);
}
