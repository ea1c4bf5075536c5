/*
 * Promise: a picture that is kept up by changes says of its bucket what the bucket's files say: the same sums, and the same pick. Held
 * against a list of the files, over random commits and compactions.
 */
#include "maintain/picture.h"
#include "test/lib/test.h"

#define FILES_MAX 300

struct model {
    struct tarn_test *t;
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_manifest_entry files[FILES_MAX];
    size_t count;
    int64_t made;
};

static void model_init(struct model *m, struct tarn_test *t, const char *keys, const char *options)
{
    const char *json = tarn_arena_printf(
        t->arena,
        "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"}],"
        "\"highestFieldId\":0,\"partitionKeys\":[],\"primaryKeys\":[%s],\"options\":{%s},\"timeMillis\":1}",
        keys, options);
    memset(m, 0, sizeof *m);
    m->t = t;
    expect_ok(tarn_schema_decode(tarn_slice_str(json), t->arena, &m->schema));
    expect_ok(tarn_options_parse(&m->schema, t->arena, &m->options));
}

static struct tarn_manifest_entry *add(struct model *m, int level, int64_t size)
{
    struct tarn_manifest_entry *e = &m->files[m->count++];
    int64_t n = ++m->made;
    *e = (struct tarn_manifest_entry){.partition = tarn_row_empty()};
    e->file = (struct tarn_data_file){
        .name = tarn_slice_str(tarn_arena_printf(m->t->arena, "f%" PRId64, n)),
        .size = size,
        .row_count = size / 10 + 1,
        .delete_row_count = tarn_test_random_one_in(m->t, 4) ? TARN_FILE_NONE : size / 50,
        .level = level,
        .min_sequence = n * 10,
        .max_sequence = n * 10 + 9,
        .creation_time_ms = n * 1000};
    return e;
}

/* What a compaction of these files does, or a commit of some new ones where there are none. */
static size_t step(struct model *m, const struct tarn_pick *pick, struct tarn_file_change *out)
{
    size_t n = 0, kept = 0;
    int64_t size = 0;
    for (size_t i = 0; pick != NULL && i < pick->file_count; i++) {
        out[n++] = tarn_file_change_of(&pick->files[i]->file, false);
        size += pick->files[i]->file.size;
    }
    for (size_t i = 0; i < m->count; i++) {
        bool goes = false;
        for (size_t p = 0; pick != NULL && p < pick->file_count; p++)
            goes |= pick->files[p] == &m->files[i];
        if (!goes)
            m->files[kept++] = m->files[i];
    }
    m->count = kept;
    int64_t news = tarn_test_random_between(m->t, 1, 3);
    for (int64_t i = 0; i < news; i++)
        out[n++] = tarn_file_change_of(
            &add(m, pick == NULL ? 0 : pick->output_level,
                 pick == NULL ? tarn_test_random_between(m->t, 1, 1000) : size / news + 1)
                 ->file,
            true);
    return n;
}

static bool pick_of(struct model *m, struct tarn_bucket_files *bucket, int64_t now,
                    struct tarn_pick *out)
{
    return tarn_pick_compaction(&m->schema, &m->options, bucket, false, now, m->t->arena, out);
}

static void expect_same_sums(const struct model *m, const struct tarn_picture *p)
{
    int64_t size = 0, rows = 0, deletes = 0, small = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct tarn_data_file *f = &m->files[i].file;
        size += f->size;
        rows += f->row_count;
        deletes += f->delete_row_count == TARN_FILE_NONE ? 0 : f->delete_row_count;
        small += f->size < p->small_limit;
    }
    expect_int(p->file_count, m->count);
    expect_int(p->size, size);
    expect_int(p->row_count, rows);
    expect_int(p->delete_row_count, deletes);
    expect_int(p->small_file_count, small);
}

static void expect_same_pick(struct model *m, const struct tarn_picture *p)
{
    struct tarn_bucket_files real = {.partition = tarn_row_empty(), .files = m->files};
    struct tarn_bucket_files pictured;
    struct tarn_pick want = {0}, got = {0};
    real.file_count = m->count;
    tarn_picture_as_bucket(p, tarn_row_empty(), 0, m->t->arena, &pictured);
    int64_t now = m->made * 1000 + tarn_test_random_between(m->t, 0, 20000);
    bool picked = pick_of(m, &real, now, &want);
    expect_int(pick_of(m, &pictured, now, &got), picked);
    expect_int(tarn_run_count(m->files, m->count), p->run_count);
    if (!picked)
        return;
    expect_str(got.why, want.why);
    expect_int(got.output_level, want.output_level);
    struct tarn_score_inputs of_picture, of_files;
    tarn_picture_inputs(p, &m->schema, &m->options, &got, 1, now, &of_picture);
    tarn_picture_inputs(p, &m->schema, &m->options, &want, 1, now, &of_files);
    expect_int(of_picture.pick_size, of_files.pick_size);
    expect_int(of_picture.new_size, of_files.new_size);
}

TARN_TEST(picture, says_what_the_files_say)
{
    static const char *const options[] = {
        "\"bucket\":\"1\"", "\"bucket\":\"1\",\"compaction.optimization-interval\":\"20 s\"",
        "\"bucket\":\"1\",\"num-sorted-run.compaction-trigger\":\"3\",\"num-levels\":\"4\"",
        "\"bucket\":\"1\",\"deletion-vectors.enabled\":\"true\""};
    struct tarn_file_change changes[FILES_MAX + 3];
    int compactions = 0;
    for (int round = 0; round < 40; round++) {
        struct model m;
        struct tarn_picture p;
        model_init(&m, t, "\"id\"", options[round % 4]);
        tarn_picture_init(&p, &m.schema, &m.options);
        for (int i = 0; i < 60 && m.count < FILES_MAX - 4; i++) {
            struct tarn_bucket_files real = {.files = m.files, .file_count = m.count};
            struct tarn_pick pick;
            bool compact =
                tarn_test_random_one_in(t, 3) && pick_of(&m, &real, m.made * 1000, &pick);
            compactions += compact;
            size_t n = step(&m, compact ? &pick : NULL, changes);
            expect_true(tarn_picture_change(&p, changes, n, i + 1));
            expect_same_sums(&m, &p);
            expect_same_pick(&m, &p);
        }
        tarn_picture_fini(&p);
    }
    expect_true(compactions > 20);
}

TARN_TEST(picture, of_an_append_table_never_says_no_where_there_is_something_to_pick)
{
    static const char *const options[] = {
        "\"bucket\":\"2\",\"bucket-key\":\"id\",\"target-file-size\":\"2000 b\"",
        "\"target-file-size\":\"2000 b\",\"source.split.open-file-cost\":\"10 b\""};
    struct tarn_file_change changes[FILES_MAX + 3];
    int picked = 0, spared = 0;
    for (int round = 0; round < 20; round++) {
        struct model m;
        struct tarn_picture p;
        model_init(&m, t, "", options[round % 2]);
        tarn_picture_init(&p, &m.schema, &m.options);
        for (int i = 0; i < 40; i++) {
            struct tarn_bucket_files real = {.files = m.files, .file_count = m.count};
            struct tarn_pick pick;
            bool needs = pick_of(&m, &real, 0, &pick);
            expect_true(!needs || tarn_picture_may_need(&p, &m.options));
            picked += needs;
            spared += !tarn_picture_may_need(&p, &m.options);
            size_t n = step(&m, needs && tarn_test_random_one_in(t, 2) ? &pick : NULL, changes);
            expect_true(tarn_picture_change(&p, changes, n, i + 1));
        }
        tarn_picture_fini(&p);
    }
    expect_true(picked > 10 && spared > 10);
}

TARN_TEST(picture, asks_to_be_made_anew_where_it_can_not_know)
{
    struct model m;
    struct tarn_picture p;
    model_init(&m, t, "\"id\"", "\"bucket\":\"1\"");
    tarn_picture_init(&p, &m.schema, &m.options);
    struct tarn_file_change old = tarn_file_change_of(&add(&m, 5, 100)->file, true);
    struct tarn_file_change newest = tarn_file_change_of(&add(&m, 5, 100)->file, true);
    expect_true(tarn_picture_change(&p, &old, 1, 1));
    expect_true(tarn_picture_change(&p, &newest, 1, 1));
    newest.added = false; /* when was the other one made? */
    expect_false(tarn_picture_change(&p, &newest, 1, 1));
    tarn_picture_fini(&p);
    tarn_picture_init(&p, &m.schema, &m.options);
    old.added = false; /* of one that isn't there */
    expect_false(tarn_picture_change(&p, &old, 1, 1));
    tarn_picture_fini(&p);
}
