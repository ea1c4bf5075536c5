/*
 * Index files of deletion vectors: what is replaced goes with its file, what stays is copied as it lies, nothing is left of what failed.
 */
#include "merge/internal.h"
#include "test.h"

struct fixture {
    struct tarn_test *t;
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_merge_table table;
    struct tarn_store *store;
    struct tarn_index_file *files; /* live */
    size_t count;
};

static void make(struct tarn_test *t, const char *options, struct fixture *f)
{
    const char *json = tarn_arena_printf(
        t->arena,
        "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT\"}],"
        "\"highestFieldId\":0,\"partitionKeys\":[],\"primaryKeys\":[],\"options\":{%s},\"timeMillis\":1}",
        options);
    *f = (struct fixture){.t = t};
    expect_ok(tarn_schema_decode(tarn_slice_str(json), t->arena, &f->schema));
    expect_ok(tarn_options_parse(&f->schema, t->arena, &f->options));
    expect_ok(tarn_store_open("memory:", &f->store));
    f->table = (struct tarn_merge_table){
        .store = f->store, .path = "t", .schema = &f->schema, .options = &f->options};
}

/* Rows [first, first + 3) of a file of 1000. */
static struct tarn_vector_mark mark_of(struct tarn_test *t, const char *name, int64_t first)
{
    struct tarn_vector_mark mark = {.data_file = tarn_slice_str(name)};
    expect_ok(tarn_deletions_init(&mark.deletions, 1000));
    for (int i = 0; i < 3; i++)
        tarn_deletions_add(&mark.deletions, first + i);
    return mark;
}

/* What is live afterwards; -> "-2 +1": so many went and came. */
static const char *change(struct fixture *f, const char *gone, struct tarn_vector_mark *marks,
                          size_t mark_count)
{
    struct tarn_slice names[] = {tarn_slice_str(gone)};
    struct tarn_vector_changes changes = {.partition = tarn_row_empty(),
                                          .indexes = f->files,
                                          .index_count = f->count,
                                          .gone = names,
                                          .gone_count = gone != NULL,
                                          .marks = marks,
                                          .mark_count = mark_count};
    struct tarn_index_file *out, *live;
    size_t n, live_count, removed = 0;
    expect_ok(tarn_merge__vectors_rewrite(f->t->op, &f->table, &changes, f->t->arena, &out, &n));
    for (size_t i = 0; i < mark_count; i++)
        tarn_deletions_fini(&marks[i].deletions);
    for (size_t i = 0; i < n; i++)
        removed += out[i].kind == TARN_ENTRY_DELETE;
    expect_ok(tarn_index_combine(f->files, f->count, out, n, f->options.bucket != -1, f->t->arena,
                                 &live, &live_count));
    f->files = live;
    f->count = live_count;
    return tarn_arena_printf(f->t->arena, "-%zu +%zu", removed, n - removed);
}

/* The first deleted row of a data file; -1: it has no vector. */
static int64_t first_deleted(struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        for (size_t v = 0; v < f->files[i].vector_count; v++) {
            const struct tarn_vector_range *range = &f->files[i].vectors[v];
            if (!tarn_slice_is(range->data_file, name))
                continue;
            TARN_OWN(tarn_deletions_fini) struct tarn_deletions d = {0};
            struct tarn_data_file file = {.row_count = 1000};
            file.vector = (struct tarn_vector_ref){.offset = range->offset,
                                                   .length = range->length,
                                                   .cardinality = range->cardinality};
            expect_ok(tarn_index_file_path(&f->schema, &f->options, &f->files[i], f->t->arena,
                                           &file.vector.path));
            expect_ok(tarn_merge__deletions_read(f->t->op, &f->table, &file, &d));
            expect_int(d.count, 3);
            return tarn_deletions_next(&d, 0);
        }
    return -1;
}

static void check_changes(struct tarn_test *t, const char *options, const char *second)
{
    struct fixture f;
    make(t, options, &f);
    struct tarn_vector_mark two[] = {mark_of(t, "a", 10), mark_of(t, "b", 20)};
    expect_str(change(&f, NULL, two, 2), "-0 +1");
    struct tarn_vector_mark one[] = {mark_of(t, "c", 30)};
    expect_str(change(&f, NULL, one, 1), second);
    expect_int(first_deleted(&f, "a"), 10);
    expect_int(first_deleted(&f, "b"), 20);
    expect_int(first_deleted(&f, "c"), 30);
    struct tarn_vector_mark more[] = {mark_of(t, "b", 5)};
    expect_str(change(&f, "a", more, 1), "-1 +1");
    expect_int(first_deleted(&f, "a"), -1);
    expect_int(first_deleted(&f, "b"), 5);
    expect_int(first_deleted(&f, "c"), 30);
    expect_str(change(&f, "nobody", NULL, 0), "-0 +0");
    tarn_store_drop(&f.store);
}

TARN_TEST(vector_files, without_buckets_only_what_is_touched_is_written_anew)
{
    check_changes(t, "\"deletion-vectors.enabled\":\"true\"", "-0 +1");
}

TARN_TEST(vector_files, a_bucket_has_one)
{
    check_changes(t,
                  "\"deletion-vectors.enabled\":\"true\",\"deletion-vectors.bitmap64\":\"true\","
                  "\"bucket\":\"1\",\"bucket-key\":\"id\"",
                  "-1 +1");
}

TARN_TEST(vector_files, the_last_vector_takes_the_file_along)
{
    struct fixture f;
    make(t, "\"deletion-vectors.enabled\":\"true\"", &f);
    struct tarn_vector_mark one[] = {mark_of(t, "a", 10)};
    expect_str(change(&f, NULL, one, 1), "-0 +1");
    expect_str(change(&f, "a", NULL, 0), "-1 +0");
    expect_int(f.count, 0);
    tarn_store_drop(&f.store);
}

TARN_TEST(vector_files, files_are_rolled_at_their_target_size)
{
    struct fixture f;
    make(t,
         "\"deletion-vectors.enabled\":\"true\",\"deletion-vector.index-file.target-size\":\"1 b\"",
         &f);
    struct tarn_vector_mark two[] = {mark_of(t, "a", 10), mark_of(t, "b", 20)};
    expect_str(change(&f, NULL, two, 2), "-0 +2");
    expect_int(first_deleted(&f, "a"), 10);
    expect_int(first_deleted(&f, "b"), 20);
    tarn_store_drop(&f.store);
}

static bool is_there(struct fixture *f, const struct tarn_index_file *file)
{
    bool found;
    const char *key = tarn_arena_printf(f->t->arena, "t/index/%.*s", TARN_SLICE_ARG(file->name));
    expect_ok(tarn_store_stat(f->store, f->t->op, key, &found, NULL));
    return found;
}

TARN_TEST(vector_files, what_cant_be_committed_is_removed)
{
    struct fixture f;
    make(t, "\"deletion-vectors.enabled\":\"true\"", &f);
    struct tarn_vector_mark one[] = {mark_of(t, "a", 10)};
    expect_str(change(&f, NULL, one, 1), "-0 +1");
    assert_true(is_there(&f, &f.files[0]));
    tarn_merge_remove_index_files(t->op, &f.table, f.files, f.count);
    assert_false(is_there(&f, &f.files[0]));
    tarn_store_drop(&f.store);
}
