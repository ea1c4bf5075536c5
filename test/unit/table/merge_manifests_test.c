/*
 * Manifests merged beside the commits: what a list says is the same before and after, at every step; thresholds are
 * Paimon's; a result that no longer fits is thrown away and leaves nothing; nothing is removed while an attempt is open
 * (docs/format.md, "Manifest merging").
 */
#include "shape.h"

#include "table/merge_manifests.h"

static struct tarn_manifest_entry file_of(struct fixture *f, enum tarn_entry_kind kind,
                                          const char *name)
{
    return shape_entry(f, kind, name, tarn_row_empty(), 0, 2, 0, 1, 10);
}

static void begin(struct fixture *f, struct tarn_test *t, const char *options)
{
    struct shape shape = {.primary_key = true,
                          .options = tarn_arena_printf(t->arena, "\"bucket\":\"2\"%s", options)};
    shape_init(f, t, &shape);
}

static void land(struct fixture *f, enum tarn_entry_kind kind, const char *name)
{
    struct tarn_manifest_entry e = file_of(f, kind, name);
    shape_land(f, "x", kind == TARN_ENTRY_ADD ? TARN_COMMIT_APPEND : TARN_COMMIT_OVERWRITE, &e, 1,
               NULL, 0);
}

static void land_many(struct fixture *f, const char *prefix, int count)
{
    for (int i = 0; i < count; i++)
        land(f, TARN_ENTRY_ADD, tarn_arena_printf(f->t->arena, "%s%02d", prefix, i));
}

static struct tarn_head *head_of(struct fixture *f)
{
    expect_ok(tarn_table__head_manifests(f->t->op, f->table, f->table->head));
    return f->table->head;
}

/* What entries a list of manifests has, in order: "+a -b". */
static const char *entries_of(struct fixture *f, const struct tarn_manifest_file *files,
                              size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++) {
        struct tarn_manifest_entry *entries;
        size_t n;
        expect_ok(
            tarn_table__read_manifest(f->t->op, f->table, &files[i], f->t->arena, &entries, &n));
        tarn_buf_printf(&text, "%s%s", text.size == 0 ? "" : " | ", shape_names(f, entries, n));
    }
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

static int by_text(const void *a, const void *b)
{
    return tarn_slice_compare(*(const struct tarn_slice *)a, *(const struct tarn_slice *)b);
}

/* What is live by these manifests: every identity, sorted. */
static struct tarn_slice live_of(struct fixture *f, const struct tarn_manifest_file *files,
                                 size_t count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *live = tarn_map_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf identity = {0};
    for (size_t i = 0; i < count; i++) {
        struct tarn_manifest_entry *entries;
        size_t n;
        expect_ok(
            tarn_table__read_manifest(f->t->op, f->table, &files[i], f->t->arena, &entries, &n));
        for (size_t e = 0; e < n; e++) {
            tarn_buf_clear(&identity);
            tarn_manifest_identity(&entries[e], &identity);
            if (entries[e].kind == TARN_ENTRY_ADD)
                expect_null(tarn_map_set(live, tarn_buf_slice(&identity), live));
            else
                expect_not_null(tarn_map_remove(live, tarn_buf_slice(&identity)));
        }
    }
    size_t n = 0, cursor = 0;
    struct tarn_slice *keys =
        tarn_arena_calloc(f->t->arena, tarn_map_count(live) + 1, sizeof *keys);
    void *value;
    while (tarn_map_next(live, &cursor, &keys[n], &value))
        n++;
    qsort(keys, n, sizeof *keys, by_text);
    TARN_OWN(tarn_buf_drop) struct tarn_buf all = {0};
    for (size_t i = 0; i < n; i++)
        tarn_key_add_bytes(&all, keys[i]);
    return tarn_arena_copy(f->t->arena, tarn_buf_slice(&all));
}

/* The list records say what their manifests hold. */
static void expect_summaries(struct fixture *f, const struct tarn_manifest_file *files,
                             size_t count)
{
    const struct tarn_schema *schema = &f->table->view->view.schema;
    for (size_t i = 0; i < count; i++) {
        struct tarn_manifest_entry *entries;
        struct tarn_manifest_file want;
        size_t n;
        expect_ok(
            tarn_table__read_manifest(f->t->op, f->table, &files[i], f->t->arena, &entries, &n));
        expect_ok(tarn_manifest_summarize(entries, n, tarn_partition_types(schema, f->t->arena),
                                          schema->partition_key_count, schema->id, f->t->arena,
                                          &want));
        TARN_OWN(tarn_buf_drop) struct tarn_buf got_bytes = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf want_bytes = {0};
        const uint8_t sync[16] = {1};
        want.name = files[i].name;
        want.size = files[i].size;
        expect_ok(
            tarn_manifest_list_encode(&files[i], 1, tarn_slice_str("none"), 1, sync, &got_bytes));
        expect_ok(
            tarn_manifest_list_encode(&want, 1, tarn_slice_str("none"), 1, sync, &want_bytes));
        expect_bytes(tarn_buf_slice(&got_bytes), tarn_buf_slice(&want_bytes));
        TARN_OWN(tarn_buf_drop) struct tarn_buf object = {0};
        expect_ok(tarn_store_get(
            f->inner, f->t->op,
            tarn_arena_printf(f->t->arena, "db.db/t/manifest/%.*s", TARN_SLICE_ARG(files[i].name)),
            &object));
        expect_int(files[i].size, object.size);
    }
}

static size_t objects_in_store(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->inner, f->t->op, "db.db/t/manifest", true, &objects, &count));
    return count;
}

static void merge(struct fixture *f)
{
    head_of(f);
    tarn_table__merge_consider(f->table);
    tarn_table__merge_wait(f->table);
}

/* As an attempt does it; the copy lies in the test's arena. */
static bool apply(struct fixture *f, struct tarn_manifest_file **files, size_t *count)
{
    struct tarn_head *head = head_of(f);
    bool used;
    *count = head->manifest_count;
    *files = tarn_arena_calloc(f->t->arena, *count + 1, sizeof **files);
    memcpy(*files, head->manifests, *count * sizeof **files);
    tarn_table__merge_apply(f->t->op, f->table, *files, count, &used);
    return used;
}

/* The attempt became the head. */
static void make_head(struct fixture *f, struct tarn_manifest_file *files, size_t count)
{
    f->table->head->manifests = files;
    f->table->head->manifest_count = count;
    tarn_table__merge_settle(f->t->op, f->table, true);
}

TARN_TEST(merge_manifests, waits_for_thirty_and_keeps_their_order)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t, "");
    land_many(&f, "f", 29);
    merge(&f);
    expect_false(apply(&f, &files, &count));
    expect_int(count, 29);
    land(&f, TARN_ENTRY_DELETE, "f03"); /* the thirtieth */
    struct tarn_slice live = live_of(&f, head_of(&f)->manifests, 30);
    merge(&f);
    expect_true(apply(&f, &files, &count));
    expect_int(count, 1);
    expect_bytes(live_of(&f, files, count), live);
    expect_summaries(&f, files, count);
    expect_true(strncmp(entries_of(&f, files, count), "+f00 +f01 +f02 +f04 +f05", 24) == 0);
    make_head(&f, files, count);
    merge(&f);
    expect_false(apply(&f, &files, &count));
}

TARN_TEST(merge_manifests, goes_in_front_of_what_came_meanwhile)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t, ",\"manifest.merge-min-count\":\"3\"");
    land_many(&f, "f", 3);
    merge(&f);
    land(&f, TARN_ENTRY_ADD, "late");
    land(&f, TARN_ENTRY_DELETE, "f01");
    struct tarn_slice live = live_of(&f, head_of(&f)->manifests, 5);
    expect_true(apply(&f, &files, &count));
    expect_int(count, 3);
    expect_str(entries_of(&f, files, count), "+f00 +f01 +f02 | +late | -f01");
    expect_bytes(live_of(&f, files, count), live);
    /* Another attempt beside it doesn't get it; nor is another merge begun. */
    struct tarn_manifest_file *others;
    size_t other_count, objects = objects_in_store(&f);
    expect_false(apply(&f, &others, &other_count));
    merge(&f);
    expect_int(objects_in_store(&f), objects);
    tarn_table__merge_settle(t->op, f.table, false); /* it didn't land: the next one gets it */
    expect_true(apply(&f, &files, &count));
    expect_int(count, 3);
    tarn_table__merge_settle(t->op, f.table, true);
}

TARN_TEST(merge_manifests, that_fit_no_more_are_thrown_away)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t, ",\"manifest.merge-min-count\":\"3\"");
    land_many(&f, "f", 3);
    size_t objects = objects_in_store(&f);
    merge(&f);
    expect_int(objects_in_store(&f), objects + 1);
    head_of(&f)->manifest_count = 2; /* rolled back, or merged by another writer */
    f.table->attempt.open = true;
    merge(&f);
    expect_int(objects_in_store(&f), objects + 1); /* I2 */
    f.table->attempt.open = false;
    expect_false(apply(&f, &files, &count));
    merge(&f);
    expect_int(objects_in_store(&f), objects);
}

TARN_TEST(merge_manifests, that_nobody_used_are_gone_with_the_table)
{
    for (int open = 0; open < 2; open++) {
        TARN_OWN(fixture_fini) struct fixture f;
        begin(&f, t, ",\"manifest.merge-min-count\":\"3\"");
        land_many(&f, "f", 3);
        size_t objects = objects_in_store(&f);
        merge(&f);
        f.table->attempt.open = open;
        tarn_table__merge_end(f.table);
        expect_int(objects_in_store(&f), objects + (size_t)open);
        f.table->attempt.open = false;
        head_of(&f)->manifest_count = 2;
        merge(&f); /* none starts any more */
        expect_int(objects_in_store(&f), objects);
    }
}

TARN_TEST(merge_manifests, of_files_that_vanish_end_quietly)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t, ",\"manifest.merge-min-count\":\"3\"");
    land_many(&f, "f", 3);
    expect_ok(tarn_store_remove(f.inner, t->op, "db.db/t/manifest/manifest-land-2")); /* expired */
    size_t objects = objects_in_store(&f);
    merge(&f);
    expect_int(objects_in_store(&f), objects);
    expect_false(apply(&f, &files, &count));
    tarn_table__merge_consider(f.table); /* not at once again */
    tarn_table__merge_wait(f.table);
    expect_int(objects_in_store(&f), objects);
}

TARN_TEST(merge_manifests, whose_result_can_not_be_put_leave_nothing)
{
    static const enum tarn_fault faults[] = {TARN_FAULT_FAIL_BEFORE, TARN_FAULT_FAIL_AFTER};
    for (size_t i = 0; i < TARN_COUNT_OF(faults); i++) {
        TARN_OWN(fixture_fini) struct fixture f;
        struct tarn_manifest_file *files;
        size_t count;
        begin(&f, t, ",\"manifest.merge-min-count\":\"3\"");
        land_many(&f, "f", 3);
        size_t objects = objects_in_store(&f);
        struct tarn_fault_rule rule = {
            .call = "put_many", .key_part = "manifest", .hit_count = 1, .fault = faults[i]};
        tarn_store_faulty_add(f.store, &rule);
        merge(&f);
        tarn_store_faulty_clear(f.store);
        expect_int(objects_in_store(&f), objects);
        expect_false(apply(&f, &files, &count));
    }
}

TARN_TEST(merge_manifests, older_than_an_hour_are_not_used)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t, ",\"manifest.merge-min-count\":\"3\"");
    land_many(&f, "f", 3);
    size_t objects = objects_in_store(&f);
    tarn_clock_fake(1000000);
    merge(&f);
    tarn_clock_fake(1000000 + 61 * 60 * 1000); /* who cleans up may have found them by now */
    expect_false(apply(&f, &files, &count));
    merge(&f); /* removes them, and begins anew */
    expect_int(objects_in_store(&f), objects + 1);
    expect_true(apply(&f, &files, &count));
    tarn_table__merge_settle(t->op, f.table, true);
}

/* --- what vanishes --- */

TARN_TEST(merge_manifests, drop_pairs_and_keep_deletes_of_what_came_before)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t,
          ",\"manifest.merge-min-count\":\"2\",\"manifest.target-file-size\":\"1 gb\","
          "\"manifest.full-compaction-threshold-size\":\"1 tb\"");
    struct tarn_manifest_entry big[2000];
    for (int i = 0; i < 2000; i++)
        big[i] =
            file_of(&f, TARN_ENTRY_ADD,
                    tarn_arena_printf(t->arena, "big%04d-%016" PRIx64, i, tarn_test_random(t)));
    shape_land(&f, "x", TARN_COMMIT_APPEND, big, 2000, NULL, 0);
    big[7].kind = TARN_ENTRY_DELETE;
    shape_land(&f, "x", TARN_COMMIT_OVERWRITE, &big[7], 1, NULL, 0);
    land(&f, TARN_ENTRY_ADD, "a");
    land(&f, TARN_ENTRY_DELETE, "a");
    land(&f, TARN_ENTRY_ADD, "a"); /* put back, as a roll-back does */
    land(&f, TARN_ENTRY_ADD, "b");
    land(&f, TARN_ENTRY_DELETE, "b");
    land(&f, TARN_ENTRY_ADD, "c");
    struct tarn_slice live = live_of(&f, head_of(&f)->manifests, 8);
    merge(&f);
    expect_true(apply(&f, &files, &count));
    expect_int(count, 2); /* the large one is left for later */
    expect_slice(files[0].name, "manifest-land-1");
    expect_str(entries_of(&f, files + 1, 1),
               tarn_arena_printf(t->arena, "-%.*s +a +c", TARN_SLICE_ARG(big[7].file.name)));
    expect_bytes(live_of(&f, files, count), live);
    expect_summaries(&f, files + 1, 1);
    make_head(&f, files, count);
}

/* Else each entry would be written again with each thirtieth commit: by its bytes, nearly all of them the schema's text, a
 * manifest of one entry is as large as one of fifty. */
TARN_TEST(merge_manifests, that_hold_more_entries_than_all_behind_them_are_left_for_later)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t, "");
    struct tarn_manifest_entry some[50];
    for (int i = 0; i < 50; i++)
        some[i] = file_of(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "some%d", i));
    shape_land(&f, "x", TARN_COMMIT_APPEND, some, 50, NULL, 0);
    land_many(&f, "f", 29);
    expect_true(head_of(&f)->manifests[0].size < 29 * head_of(&f)->manifests[1].size);
    struct tarn_slice live = live_of(&f, head_of(&f)->manifests, 30);
    merge(&f);
    expect_true(apply(&f, &files, &count));
    expect_int(count, 2);
    expect_slice(files[0].name, "manifest-land-1");
    expect_int(files[1].added_count, 29);
    expect_bytes(live_of(&f, files, count), live);
    make_head(&f, files, count);
}

TARN_TEST(merge_manifests, that_hold_the_target_are_merged_however_few_they_are)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t, ",\"manifest.target-file-size\":\"8 kb\"");
    land_many(&f, "f", 8); /* some 3 kb each, nearly all of it the schema's text */
    int64_t each = head_of(&f)->manifests[0].size;
    size_t group = (size_t)((8192 + each - 1) / each);
    struct tarn_merge_run runs[9];
    TARN_OWN(tarn_map_drop) struct tarn_map *none = tarn_map_new();
    size_t n =
        tarn_table__minor_runs(&f.table->view->view.options, none, head_of(&f)->manifests, 8, runs);
    expect_int(n, 8 / group);
    for (size_t i = 0; i < n; i++) {
        expect_int(runs[i].begin, i * group);
        expect_int(runs[i].end, (i + 1) * group);
    }
    merge(&f);
    expect_true(apply(&f, &files, &count));
    expect_int(count, 8 / group + 8 % group);
    make_head(&f, files, count);
}

TARN_TEST(merge_manifests, in_full_leave_out_partitions_where_nothing_was_deleted)
{
    struct shape shape = {.partition_count = 1,
                          .options = "\"bucket\":\"-1\",\"manifest.target-file-size\":\"1 kb\","
                                     "\"manifest.full-compaction-threshold-size\":\"4 kb\""};
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    shape_init(&f, t, &shape);
    struct tarn_slice one = shape_partition(&f, &shape, "1", 0),
                      two = shape_partition(&f, &shape, "2", 0);
    struct tarn_manifest_entry a[] = {shape_entry(&f, TARN_ENTRY_ADD, "a", one, 0, -1, 0, 1, 10),
                                      shape_entry(&f, TARN_ENTRY_ADD, "a2", one, 0, -1, 0, 1, 10)},
                               b = shape_entry(&f, TARN_ENTRY_ADD, "b", two, 0, -1, 0, 1, 10),
                               c = shape_entry(&f, TARN_ENTRY_ADD, "c", one, 0, -1, 0, 1, 10),
                               gone = a[0], late = c;
    gone.kind = late.kind = TARN_ENTRY_DELETE;
    shape_land(&f, "x", TARN_COMMIT_APPEND, a, 2, NULL, 0);  /* loses an entry */
    shape_land(&f, "x", TARN_COMMIT_APPEND, &b, 1, NULL, 0); /* another partition */
    shape_land(&f, "x", TARN_COMMIT_OVERWRITE, &gone, 1, NULL, 0);
    shape_land(&f, "x", TARN_COMMIT_APPEND, &c, 1, NULL, 0);
    shape_land(&f, "x", TARN_COMMIT_OVERWRITE, &late, 1, NULL, 0);
    struct tarn_slice live = live_of(&f, head_of(&f)->manifests, 5);
    merge(&f);
    expect_true(apply(&f, &files, &count));
    expect_int(count, 2);
    expect_slice(files[1].name, "manifest-land-2");
    expect_str(entries_of(&f, files, count), "+a2 | +b");
    expect_bytes(live_of(&f, files, count), live);
    expect_int(files[0].deleted_count, 0);
    expect_summaries(&f, files, count);
    make_head(&f, files, count);
}

TARN_TEST(merge_manifests, of_nothing_but_pairs_are_nothing)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct tarn_manifest_file *files;
    size_t count;
    begin(&f, t, ",\"manifest.merge-min-count\":\"2\"");
    land(&f, TARN_ENTRY_ADD, "a");
    land(&f, TARN_ENTRY_DELETE, "a");
    merge(&f);
    expect_true(apply(&f, &files, &count));
    expect_int(count, 0);
    make_head(&f, files, count);
}

/* --- the property --- */

static void random_snapshot(struct fixture *f, const struct shape *shape, char *state,
                            int file_count)
{
    struct tarn_manifest_entry entries[12];
    size_t n = 0, want = 1 + (size_t)tarn_test_random_below(f->t, 12);
    char touched[256] = {0};
    while (n < want) {
        int i = (int)tarn_test_random_below(f->t, (uint64_t)file_count);
        if (touched[i]) {
            want--;
            continue;
        }
        touched[i] = 1;
        char dt[2] = {(char)('0' + i % 4), 0};
        entries[n++] =
            shape_entry(f, state[i] ? TARN_ENTRY_DELETE : TARN_ENTRY_ADD,
                        tarn_arena_printf(f->t->arena, "file-%03d-%08x", i, i * 7919),
                        shape_partition(f, shape, i % 4 == 3 ? NULL : dt, 0), 0, -1, 0, 1, 10);
        state[i] = !state[i];
    }
    shape_land(f, "x", TARN_COMMIT_OVERWRITE, entries, n, NULL, 0);
}

TARN_TEST(merge_manifests, say_the_same_before_and_after)
{
    static const char *const options[] = {
        "\"bucket\":\"-1\",\"manifest.merge-min-count\":\"3\"",
        "\"bucket\":\"-1\",\"manifest.target-file-size\":\"4 kb\",\"manifest.merge-min-count\":\"2\"",
        "\"bucket\":\"-1\",\"manifest.target-file-size\":\"3500\","
        "\"manifest.full-compaction-threshold-size\":\"20 kb\"",
        "\"bucket\":\"-1\",\"manifest.target-file-size\":\"1\","
        "\"manifest.full-compaction-threshold-size\":\"1\"",
    };
    int rounds = tarn_test_rounds(4);
    for (int round = 0; round < rounds; round++) {
        struct shape shape = {.partition_count = 1, .options = options[round % 4]};
        TARN_OWN(fixture_fini) struct fixture f;
        char state[200] = {0};
        int merges = 0;
        shape_init(&f, t, &shape);
        for (int i = 0; i < 30; i++) {
            random_snapshot(&f, &shape, state, sizeof state);
            struct tarn_head *head = head_of(&f);
            struct tarn_slice live = live_of(&f, head->manifests, head->manifest_count);
            size_t before = head->manifest_count, count;
            struct tarn_manifest_file *files;
            merge(&f);
            if (tarn_test_random_one_in(t, 3)) { /* it is applied to a longer list */
                random_snapshot(&f, &shape, state, sizeof state);
                head = head_of(&f);
                live = live_of(&f, head->manifests, head->manifest_count);
                before = head->manifest_count;
            }
            if (!apply(&f, &files, &count))
                continue;
            merges++;
            expect_true(count <= before);
            expect_bytes(live_of(&f, files, count), live);
            expect_summaries(&f, files, count);
            make_head(&f, files, count);
        }
        expect_true(merges > 3);
    }
}

/* --- beside commits that go on (for the thread sanitizer) --- */

TARN_TEST(merge_manifests, run_beside_commits)
{
    TARN_OWN(fixture_fini) struct fixture f;
    begin(&f, t, ",\"manifest.merge-min-count\":\"2\"");
    for (int i = 0; i < 60; i++) {
        land(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%02d", i));
        struct tarn_manifest_file *files;
        size_t count;
        if (apply(&f, &files, &count))
            make_head(&f, files, count);
        head_of(&f);
        tarn_table__merge_consider(f.table); /* and nobody waits for it */
    }
    tarn_table__merge_wait(f.table);
    struct tarn_head *head = head_of(&f);
    expect_true(head->manifest_count < 40);
    TARN_OWN(tarn_buf_drop) struct tarn_buf all = {0};
    tarn_buf_add_str(&all, entries_of(&f, head->manifests, head->manifest_count));
    int adds = 0;
    for (size_t i = 0; i < all.size; i++)
        adds += all.data[i] == '+';
    expect_int(adds, 60);
}

/* --- through the commit loop --- */

static void wait_there(void *table)
{
    tarn_table__merge_wait(table);
}

TARN_TEST(merge_manifests, of_real_commits_rebuild_to_the_same_files)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init_options(
        &f, t,
        "\"manifest.merge-min-count\":\"4\",\"manifest.target-file-size\":\"8 kb\","
        "\"manifest.full-compaction-threshold-size\":\"40 kb\"");
    int64_t id;
    for (int i = 0; i < 80; i++) {
        struct tarn_manifest_entry change[] = {
            fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%02d", i), 0, 0, i * 10,
                          i * 10 + 5, i * 10),
            fixture_entry(&f, TARN_ENTRY_ADD, tarn_arena_printf(t->arena, "f%02d", i), 0, 5, i * 10,
                          i * 10 + 5, i * 10)};
        expect_ok(fixture_append(&f, "u", i + 1, change, 1, &id));
        if (i % 8 == 7) /* a slow machine shall not decide */
            tarn_mailbox_call(f.table->mailbox, wait_there, f.table);
        if (i % 3 != 0)
            continue;
        change[0].kind = TARN_ENTRY_DELETE; /* an upgrade */
        expect_ok(fixture_compact(&f, change, 2, &id));
    }
    const char *files = fixture_files(&f, TARN_SNAPSHOT_NONE, NULL);
    const char *before = fixture_files(&f, 50, NULL);
    fixture_restart(&f, true); /* all is read again from the manifests */
    expect_str(fixture_files(&f, TARN_SNAPSHOT_NONE, NULL), files);
    expect_str(fixture_files(&f, 50, NULL), before);
    struct tarn_head *head = head_of(&f);
    expect_true(head->manifest_count < 60); /* of 107 snapshots */
    size_t deletes = 0;
    for (size_t i = 0; i < head->manifest_count; i++)
        deletes += (size_t)head->manifests[i].deleted_count;
    expect_true(deletes < 27);
}
