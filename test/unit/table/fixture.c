#include "fixture.h"

#include <stdio.h>

#include "table/internal.h"

static const char schema_json[] =
    "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"},"
    "{\"id\":1,\"name\":\"v\",\"type\":\"STRING\"}],\"highestFieldId\":1,\"partitionKeys\":[],"
    "\"primaryKeys\":[\"id\"],\"options\":{\"bucket\":\"2\"%s%s},\"timeMillis\":1}";

static void open_all(struct fixture *f)
{
    bool fresh;
    expect_ok(tarn_state_open(f->state_dir, &fresh, &f->state));
    f->env = (struct tarn_table_env){.store = f->store,
                                     .state = f->state,
                                     .exec = f->exec,
                                     .foreign_check_ms = 0,
                                     .receipts_retain_ms = INT64_C(30) * 86400 * 1000,
                                     .commit_retries = 10};
    expect_ok(tarn_table_open(f->t->op, &f->env, "db.db/t", "11111111-2222-3333-4444-555555555555",
                              "db.t", &f->table));
}

void fixture_init(struct fixture *f, struct tarn_test *t)
{
    fixture_init_options(f, t, NULL);
}

void fixture_init_options(struct fixture *f, struct tarn_test *t, const char *options)
{
    fixture_init_schema(f, t,
                        tarn_arena_printf(t->arena, schema_json, options == NULL ? "" : ",",
                                          options == NULL ? "" : options));
}

void fixture_init_schema(struct fixture *f, struct tarn_test *t, const char *schema)
{
    *f = (struct fixture){.t = t};
    f->exec = tarn_exec_new(2, 16);
    expect_ok(tarn_store_open("memory:", &f->inner));
    f->store = tarn_store_faulty_new(f->inner);
    f->state_dir = tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t));
    expect_ok(tarn_store_put(f->store, t->op, "db.db/t/schema/schema-0", tarn_slice_str(schema)));
    open_all(f);
}

static void close_all(struct fixture *f)
{
    tarn_table_drop_ref(&f->table);
    tarn_state_close(f->state);
    f->state = NULL;
}

void fixture_restart(struct fixture *f, bool drop_state)
{
    close_all(f);
    if (drop_state)
        f->state_dir = tarn_arena_printf(f->t->arena, "%s/state", tarn_test_dir(f->t));
    open_all(f);
}

struct look {
    struct fixture *f;
    int64_t every_ms;
};

static void look_every(void *arg)
{
    const struct look *look = arg;
    look->f->env.foreign_check_ms = look->every_ms;
}

void fixture_look_every(struct fixture *f, int64_t ms)
{
    struct look look = {f, ms};
    tarn_mailbox_call(f->table->mailbox, look_every, &look); /* where it is read */
}

void fixture_look_no_more(struct fixture *f)
{
    fixture_look_every(f, 3600000);
}

void fixture_fini(struct fixture *f)
{
    close_all(f);
    tarn_store_unref(f->store);
    tarn_store_unref(f->inner);
    tarn_exec_free(f->exec);
}

static struct tarn_slice key_row(struct fixture *f, int64_t id)
{
    static const struct tarn_type type = {.id = TARN_TYPE_BIGINT};
    const struct tarn_type *types[] = {&type};
    struct tarn_value value = {.integer = id};
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    tarn_row_serialize(types, &value, 1, &row);
    return tarn_arena_copy(f->t->arena, tarn_buf_slice(&row));
}

struct tarn_manifest_entry fixture_entry(struct fixture *f, enum tarn_entry_kind kind,
                                         const char *name, int32_t bucket, int level, int64_t low,
                                         int64_t high, int64_t first_sequence)
{
    int64_t *nulls = tarn_arena_calloc(f->t->arena, 1, sizeof *nulls);
    struct tarn_manifest_entry e = {
        .kind = kind, .partition = tarn_row_empty(), .bucket = bucket, .total_buckets = 2};
    e.file = (struct tarn_data_file){.name = tarn_slice_str(name),
                                     .size = 1000,
                                     .row_count = high - low + 1,
                                     .min_key = key_row(f, low),
                                     .max_key = key_row(f, high),
                                     .value_stats = tarn_stats_empty(),
                                     .min_sequence = first_sequence,
                                     .max_sequence = first_sequence + high - low,
                                     .level = level,
                                     .creation_time_ms = 1,
                                     .source = TARN_SOURCE_APPEND,
                                     .has_value_stats_columns = true,
                                     .first_row_id = TARN_FILE_NONE};
    e.file.key_stats = (struct tarn_stats){e.file.min_key, e.file.max_key, nulls, 1};
    return e;
}

static struct tarn_status *commit(struct fixture *f, const struct tarn_commit *c,
                                  int64_t *snapshot_id)
{
    struct tarn_commit_result result;
    struct tarn_status *s = tarn_table_commit(f->t->op, f->table, c, &result);
    *snapshot_id = c->compact.count > 0 ? result.compact_snapshot_id : result.append_snapshot_id;
    return s;
}

struct tarn_status *fixture_append(struct fixture *f, const char *user, int64_t identifier,
                                   const struct tarn_manifest_entry *entries, size_t count,
                                   int64_t *snapshot_id)
{
    struct tarn_commit c = {.user = tarn_slice_str(user),
                            .identifier = identifier,
                            .watermark = TARN_SNAPSHOT_NONE,
                            .kind = TARN_COMMIT_APPEND,
                            .append.entries = entries,
                            .append.count = count};
    return commit(f, &c, snapshot_id);
}

struct tarn_manifest_entry fixture_file(struct fixture *f, const char *name)
{
    return fixture_entry(f, TARN_ENTRY_ADD, name, 0, 0, 1, 10, 0);
}

int64_t fixture_land(struct fixture *f, int64_t identifier, const char *name)
{
    struct tarn_manifest_entry e = fixture_file(f, name);
    int64_t id;
    expect_ok(fixture_append(f, "u", identifier, &e, 1, &id));
    return id;
}

struct tarn_commit_fate fixture_fate(struct fixture *f, int64_t identifier)
{
    struct tarn_commit_fate fate;
    expect_ok(tarn_table_find_commit(f->t->op, f->table, tarn_slice_str("u"), identifier, 0,
                                     TARN_SNAPSHOT_NONE, &fate));
    return fate;
}

struct tarn_status *fixture_compact(struct fixture *f, const struct tarn_manifest_entry *entries,
                                    size_t count, int64_t *snapshot_id)
{
    struct tarn_commit c = {.user = tarn_slice_str("compactor"),
                            .identifier = TARN_COMMIT_IDENTIFIER_BATCH,
                            .watermark = TARN_SNAPSHOT_NONE,
                            .compact.entries = entries,
                            .compact.count = count};
    return commit(f, &c, snapshot_id);
}

static int by_name(const void *a, const void *b)
{
    return tarn_slice_compare(((const struct tarn_plan_file *)a)->entry.file.name,
                              ((const struct tarn_plan_file *)b)->entry.file.name);
}

const char *fixture_files(struct fixture *f, int64_t id, const char *where)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_plan_request request = {
        .version = TARN_VERSION_ID(id), .where = tarn_slice_str(where), .no_splits = true};
    struct tarn_plan plan;
    expect_ok(tarn_table_plan(&op, f->table, &request, &plan));
    if (plan.file_count > 0)
        qsort(plan.files, plan.file_count, sizeof *plan.files, by_name);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < plan.file_count; i++)
        tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : " ",
                        TARN_SLICE_ARG(plan.files[i].entry.file.name));
    return tarn_arena_str(f->t->arena, tarn_buf_slice(&text));
}

static struct tarn_slice put_manifest(struct fixture *f, const char *name,
                                      const struct tarn_buf *bytes)
{
    expect_ok(tarn_store_put(f->inner, f->t->op,
                             tarn_arena_printf(f->t->arena, "db.db/t/manifest/%s", name),
                             tarn_buf_slice(bytes)));
    return tarn_slice_str(name);
}

int64_t fixture_foreign(struct fixture *f, const char *user,
                        const struct tarn_manifest_entry *entries, size_t count)
{
    return fixture_foreign_properties(f, user, entries, count, NULL, 0);
}

/* The manifests of a snapshot, in the test's arena. */
static void read_lists(struct fixture *f, int64_t id, struct tarn_manifest_file **out,
                       size_t *count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_snapshot last;
    *out = tarn_arena_calloc(f->t->arena, 1000, sizeof **out);
    *count = 0;
    if (id == 0)
        return;
    expect_ok(tarn_store_get(
        f->inner, f->t->op,
        tarn_arena_printf(f->t->arena, "db.db/t/snapshot/snapshot-%" PRId64, id), &json));
    expect_ok(tarn_snapshot_decode(tarn_arena_copy(f->t->arena, tarn_buf_slice(&json)), f->t->arena,
                                   &last));
    struct tarn_slice lists[] = {last.base_list, last.delta_list};
    for (int i = 0; i < 2; i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf list = {0};
        struct tarn_manifest_file *files;
        size_t n;
        expect_ok(tarn_store_get(
            f->inner, f->t->op,
            tarn_arena_printf(f->t->arena, "db.db/t/manifest/%.*s", TARN_SLICE_ARG(lists[i])),
            &list));
        expect_ok(tarn_manifest_list_decode(tarn_arena_copy(f->t->arena, tarn_buf_slice(&list)),
                                            f->t->arena, &files, &n));
        memcpy(*out + *count, files, n * sizeof *files);
        *count += n;
    }
}

static int64_t latest_id(struct fixture *f)
{
    bool found = true;
    int64_t id = 0;
    while (found)
        expect_ok(tarn_store_stat(
            f->inner, f->t->op,
            tarn_arena_printf(f->t->arena, "db.db/t/snapshot/snapshot-%" PRId64, ++id), &found,
            NULL));
    return id - 1;
}

struct tarn_slice fixture_craft(struct fixture *f, const char *tag,
                                const struct tarn_snapshot *like,
                                const struct tarn_manifest_entry *entries, size_t count,
                                int64_t *id)
{
    const uint8_t sync[16] = {1};
    struct tarn_arena *arena = f->t->arena;
    TARN_OWN(tarn_buf_drop) struct tarn_buf manifest = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf base_list = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf delta_list = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_manifest_file file, *base;
    struct tarn_snapshot s = *like;
    size_t base_count;
    s.version = 3;
    s.id = latest_id(f) + 1;
    s.time_ms = 1000 * s.id;
    s.total_record_count = s.delta_record_count = 1;
    s.watermark = s.next_row_id = TARN_SNAPSHOT_NONE;
    s.changelog_record_count = s.changelog_list_size = TARN_SNAPSHOT_NONE;
    read_lists(f, s.id - 1, &base, &base_count);
    expect_ok(tarn_manifest_encode(entries, count, tarn_slice_str("zstd"), 1, sync, &manifest));
    expect_ok(tarn_manifest_summarize(entries, count, NULL, 0, 0, arena, &file));
    file.name =
        put_manifest(f, tarn_arena_printf(arena, "manifest-%s-%" PRId64, tag, s.id), &manifest);
    file.size = (int64_t)manifest.size;
    expect_ok(
        tarn_manifest_list_encode(base, base_count, tarn_slice_str("zstd"), 1, sync, &base_list));
    expect_ok(tarn_manifest_list_encode(&file, 1, tarn_slice_str("zstd"), 1, sync, &delta_list));
    s.base_list =
        put_manifest(f, tarn_arena_printf(arena, "list-%s-%" PRId64 "-0", tag, s.id), &base_list);
    s.delta_list =
        put_manifest(f, tarn_arena_printf(arena, "list-%s-%" PRId64 "-1", tag, s.id), &delta_list);
    s.base_list_size = (int64_t)base_list.size;
    s.delta_list_size = (int64_t)delta_list.size;
    tarn_snapshot_encode(&s, &json);
    if (id != NULL)
        *id = s.id;
    return tarn_arena_copy(arena, tarn_buf_slice(&json));
}

int64_t fixture_foreign_properties(struct fixture *f, const char *user,
                                   const struct tarn_manifest_entry *entries, size_t count,
                                   const struct tarn_pair *properties, size_t property_count)
{
    struct tarn_snapshot like = {.commit_user = tarn_slice_str(user),
                                 .commit_identifier = latest_id(f) + 1,
                                 .kind = TARN_COMMIT_APPEND,
                                 .properties = properties,
                                 .property_count = property_count};
    int64_t id;
    bool created;
    struct tarn_slice json = fixture_craft(f, "foreign", &like, entries, count, &id);
    expect_ok(tarn_store_put_if_absent(
        f->inner, f->t->op,
        tarn_arena_printf(f->t->arena, "db.db/t/snapshot/snapshot-%" PRId64, id), json, &created));
    expect_true(created);
    return id;
}

int64_t fixture_metric(const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_metrics_print(&text);
    size_t length = strlen(name);
    const char *line = tarn_buf_cstr(&text);
    while (line != NULL && !(strncmp(line, name, length) == 0 && line[length] == ' ')) {
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return line == NULL ? 0 : strtoll(line + length, NULL, 10);
}
