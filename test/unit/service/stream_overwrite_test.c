/*
 * Promise: a stream passes an overwrite over, unless the table says that streams see them: with a primary key it is then the
 * difference that the overwrite made, without one the files that came; and never, where a compaction's changelog tells of it.
 * (test/interop/streams.py holds the rows against Java's streaming reader.)
 */
#include "fixture.h"
#include "service/subscribe_internal.h"

struct shape {
    const char *key; /* NULL: none */
    const char *option, *producer;
};

/* As somebody else's schema: some of the options are refused beside each other where Tarn makes one. */
static void add_options(struct fixture *f, struct tarn_table *table, const struct shape *shape)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(f->t->op, table, &view));
    struct tarn_schema next = view->schema;
    struct tarn_pair options[8];
    assert_true(next.option_count + 2 <= TARN_COUNT_OF(options));
    memcpy(options, next.options, next.option_count * sizeof *options);
    if (shape->option != NULL)
        options[next.option_count++] = (struct tarn_pair){S(shape->option), S("true")};
    if (shape->producer != NULL)
        options[next.option_count++] =
            (struct tarn_pair){S("changelog-producer"), S(shape->producer)};
    next.id++;
    next.options = options;
    expect_ok(tarn_table_put_schema(f->t->op, table, &next, view->has_snapshot));
}

static struct tarn_table *make_table(struct fixture *f, const struct shape *shape)
{
    struct tarn_slice keys[] = {S("id")};
    struct tarn_pair options[] = {{S("bucket"), S(shape->key != NULL ? "1" : "-1")}};
    struct tarn_table *table;
    struct tarn_table_facts facts;
    struct tarn_table_request request = {
        .database = S("db"),
        .name = S("k"),
        .columns_sql = S("id BIGINT NOT NULL, v BIGINT"),
        .primary_keys = keys,
        .primary_key_count = shape->key != NULL,
        .options = options,
        .option_count = 1,
    };
    expect_ok(tarn_service_create_table(f->t->op, &f->service, &request, &facts));
    expect_ok(tarn_catalog_table(f->t->op, f->service.catalog, S("db"), S("k"), S(""), &table));
    add_options(f, table, shape);
    return table;
}

static void commit(struct fixture *f, struct tarn_table *table, bool keyed, const char *file,
                   bool overwrite)
{
    static int64_t identifier;
    struct tarn_manifest_entry entry;
    struct tarn_commit_result result;
    expect_ok(tarn_manifest_entry_unpack(fixture_file(f, "k", file, 1, 9), f->t->arena, &entry));
    if (!keyed) {
        entry.total_buckets = -1;
        entry.file.min_key = entry.file.max_key = tarn_row_empty();
        entry.file.key_stats = tarn_stats_empty();
    }
    struct tarn_commit c = {
        .user = S("u"),
        .identifier = ++identifier,
        .watermark = TARN_SNAPSHOT_NONE,
        .base_snapshot_id = TARN_SNAPSHOT_NONE,
        .kind = overwrite ? TARN_COMMIT_OVERWRITE : TARN_COMMIT_APPEND,
        .overwrite = overwrite ? TARN_OVERWRITE_TABLE : TARN_OVERWRITE_NONE,
        .append.entries = &entry,
        .append.count = 1,
    };
    expect_ok(tarn_table_commit(f->t->op, table, &c, &result));
}

static void add_names(struct tarn_buf *text, const char *mark, const struct tarn_plan_file *files,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(text, "%s%.*s ", mark, TARN_SLICE_ARG(files[i].entry.file.name));
}

/* What a stream is told of a snapshot: "-gone +come". */
static const char *told(struct fixture *f, struct tarn_table *table, int64_t id, int how)
{
    const struct tarn_topic_spec spec = {.changes = true, .how = how, .where = ""};
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_plan plan;
    const char **paths;
    bool differs;
    expect_ok(tarn_service__plan_event(f->t->op, table, &spec, id, false, &plan, &paths, &differs));
    for (size_t i = 0; i < plan.split_count; i++) {
        add_names(&text, "-", plan.splits[i].before_files, plan.splits[i].before_count);
        add_names(&text, "+", plan.splits[i].files, plan.splits[i].file_count);
        expect_int(plan.splits[i].before_count > 0, differs);
    }
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

static void expect_told(struct tarn_test *t, struct shape shape, const char *of_overwrite)
{
    TARN_OWN(fixture_fini) struct fixture f;
    fixture_init(&f, t);
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = make_table(&f, &shape);
    commit(&f, table, shape.key != NULL, "a", false);
    commit(&f, table, shape.key != NULL, "b", true);
    commit(&f, table, shape.key != NULL, "c", false);
    expect_str(told(&f, table, 2, TARN_CHANGES_AUTO), of_overwrite);
    if (shape.producer == NULL) { /* else changelog files tell */
        expect_str(told(&f, table, 1, TARN_CHANGES_AUTO), "+a ");
        expect_str(told(&f, table, 3, TARN_CHANGES_AUTO), "+c ");
    }
    expect_str(told(&f, table, 2, TARN_CHANGES_DIFF), "-a +b ");
}

TARN_TEST(overwrite, is_passed_over)
{
    expect_told(t, (struct shape){.key = "id"}, "");
    expect_told(t, (struct shape){.key = NULL}, "");
    /* each option is about its own kind of table */
    expect_told(t, (struct shape){.key = "id", .option = "streaming-read-append-overwrite"}, "");
    expect_told(t, (struct shape){.option = "streaming-read-overwrite"}, "");
}

TARN_TEST(overwrite, is_told_where_the_table_says_so)
{
    expect_told(t, (struct shape){.key = "id", .option = "streaming-read-overwrite"}, "-a +b ");
    expect_told(t, (struct shape){.option = "streaming-read-append-overwrite"}, "+b ");
    expect_told(
        t, (struct shape){.key = "id", .option = "streaming-read-overwrite", .producer = "input"},
        "-a +b ");
}

TARN_TEST(overwrite, is_left_to_the_changelog_of_a_compaction)
{
    static const char *const producers[] = {"lookup", "full-compaction"};
    for (size_t i = 0; i < TARN_COUNT_OF(producers); i++)
        expect_told(t,
                    (struct shape){.key = "id",
                                   .option = "streaming-read-overwrite",
                                   .producer = producers[i]},
                    "");
}
