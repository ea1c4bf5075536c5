/*
 * Promise: whatever is committed, removed, put back, rolled back, expired or lost with the state, a plan of every retained
 * snapshot has exactly its files, with their statistics; changes between every two snapshots are what the snapshots
 * between say; and a plan with a condition never leaves out a file with a row that passes, also across renamed,
 * dropped, added and retyped columns. Held against a model that knows every file and row.
 */
#include "table/table.h"

#include "test/lib/test.h"

#define FILES_MAX 400
#define SNAPSHOTS_MAX 60
#define ROWS_MAX 6
#define BUCKETS 3

struct row {
    int64_t id, a;
    bool a_null, s_null;
    char s[4];
};
struct file { /* one that was ever written */
    int partition, bucket, level;
    int64_t schema_id;
    struct row rows[ROWS_MAX];
    int row_count;
    struct tarn_manifest_entry entry;
};
struct change {
    int file;
    enum tarn_entry_kind kind;
};
struct version {
    enum tarn_commit_kind kind;
    bool live[FILES_MAX];
    struct change changes[16];
    int change_count;
    int changelog[4];
    int changelog_count;
};
struct model {
    struct tarn_test *t;
    bool is_append;
    struct tarn_exec *exec;
    struct tarn_store *store;
    struct tarn_state *state;
    struct tarn_table_env env;
    struct tarn_table *table;
    int states;
    struct file files[FILES_MAX];
    int file_count;
    struct version versions[SNAPSHOTS_MAX]; /* by id */
    int64_t earliest, latest;
    int written; /* names of objects */
    int64_t schema_id;
    int64_t seen, left_out; /* of plans with conditions */
};

static const struct tarn_type bigint_not_null = {.id = TARN_TYPE_BIGINT},
                              int_type = {.id = TARN_TYPE_INT, .nullable = true},
                              long_type = {.id = TARN_TYPE_BIGINT, .nullable = true},
                              text_type = {.id = TARN_TYPE_VARCHAR,
                                           .nullable = true,
                                           .length = TARN_TYPE_LENGTH_MAX},
                              part_type = {.id = TARN_TYPE_INT};

/* Schema 1 renames a to b and makes it a BIGINT, and has another s. */
static const char *schema_json(const struct model *m, int id)
{
    const char *keys = m->is_append
                           ? "\"primaryKeys\":[],\"options\":{\"bucket\":\"-1\"}"
                           : "\"primaryKeys\":[\"p\",\"id\"],\"options\":{\"bucket\":\"3\"}";
    return tarn_arena_printf(
        m->t->arena,
        "{\"version\":3,\"id\":%d,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"},%s"
        "{\"id\":3,\"name\":\"p\",\"type\":\"INT NOT NULL\"}],\"highestFieldId\":4,"
        "\"partitionKeys\":[\"p\"],%s,\"timeMillis\":1}",
        id,
        id == 0
            ? "{\"id\":1,\"name\":\"a\",\"type\":\"INT\"},{\"id\":2,\"name\":\"s\",\"type\":\"STRING\"},"
            : "{\"id\":1,\"name\":\"b\",\"type\":\"BIGINT\"},{\"id\":4,\"name\":\"s\",\"type\":\"STRING\"},",
        keys);
}

static struct tarn_slice row_of(struct model *m, const struct tarn_type *const *types,
                                const struct tarn_value *values, size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_row_serialize(types, values, count, &bytes);
    return tarn_arena_copy(m->t->arena, tarn_buf_slice(&bytes));
}

/* --- the folder, as other writers would make it --- */

static const char *key(struct model *m, const char *format, ...)
{
    va_list args;
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    va_start(args, format);
    tarn_buf_add_str(&text, "db.db/t/");
    tarn_buf_vprintf(&text, format, args);
    va_end(args);
    return tarn_arena_str(m->t->arena, tarn_buf_slice(&text));
}

static void put_schema(struct model *m, int id)
{
    expect_ok(tarn_store_put(m->store, m->t->op, key(m, "schema/schema-%d", id),
                             tarn_slice_str(schema_json(m, id))));
    m->schema_id = id;
}

static struct tarn_slice put_object(struct model *m, const char *kind, const struct tarn_buf *bytes)
{
    const char *name = tarn_arena_printf(m->t->arena, "%s-%d", kind, m->written++);
    expect_ok(
        tarn_store_put(m->store, m->t->op, key(m, "manifest/%s", name), tarn_buf_slice(bytes)));
    return tarn_slice_str(name);
}

static struct tarn_slice put_list(struct model *m, const struct tarn_manifest_entry *entries,
                                  size_t count, int64_t *size)
{
    const uint8_t sync[16] = {1};
    TARN_OWN(tarn_buf_drop) struct tarn_buf manifest = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf list = {0};
    const struct tarn_type *types[] = {&part_type};
    struct tarn_manifest_file file;
    if (count > 0) {
        expect_ok(tarn_manifest_encode(entries, count, tarn_slice_str("zstd"), 1, sync, &manifest));
        expect_ok(tarn_manifest_summarize(entries, count, types, 1, 0, m->t->arena, &file));
        file.name = put_object(m, "manifest", &manifest);
        file.size = (int64_t)manifest.size;
    }
    expect_ok(tarn_manifest_list_encode(&file, count > 0, tarn_slice_str("zstd"), 1, sync, &list));
    *size = (int64_t)list.size;
    return put_object(m, "manifest-list", &list);
}

/* Snapshot `id` of the model becomes one of the folder; its base is written anew. */
static void put_snapshot(struct model *m, int64_t id)
{
    const struct version *v = &m->versions[id];
    struct tarn_manifest_entry base[FILES_MAX], delta[16], changelog[4];
    size_t base_count = 0;
    for (int i = 0; i < m->file_count && id > 1; i++)
        if (m->versions[id - 1].live[i])
            base[base_count++] = m->files[i].entry;
    for (int i = 0; i < v->change_count; i++) {
        delta[i] = m->files[v->changes[i].file].entry;
        delta[i].kind = v->changes[i].kind;
    }
    for (int i = 0; i < v->changelog_count; i++)
        changelog[i] = m->files[v->changelog[i]].entry;
    struct tarn_snapshot s = {.version = 3,
                              .id = id,
                              .schema_id = m->schema_id,
                              .commit_user = tarn_slice_str("model"),
                              .commit_identifier = m->written,
                              .kind = v->kind,
                              .time_ms = 1000 * id,
                              .watermark = TARN_SNAPSHOT_NONE,
                              .next_row_id = TARN_SNAPSHOT_NONE,
                              .changelog_record_count = TARN_SNAPSHOT_NONE,
                              .changelog_list_size = TARN_SNAPSHOT_NONE};
    s.base_list = put_list(m, base, base_count, &s.base_list_size);
    s.delta_list = put_list(m, delta, (size_t)v->change_count, &s.delta_list_size);
    if (v->changelog_count > 0)
        s.changelog_list =
            put_list(m, changelog, (size_t)v->changelog_count, &s.changelog_list_size);
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    bool created;
    tarn_snapshot_encode(&s, &json);
    expect_ok(tarn_store_put_if_absent(m->store, m->t->op, key(m, "snapshot/snapshot-%" PRId64, id),
                                       tarn_buf_slice(&json), &created));
    expect_true(created);
}

static void put_hint(struct model *m, const char *name, int64_t id)
{
    const char *text = tarn_arena_printf(m->t->arena, "%" PRId64, id);
    expect_ok(
        tarn_store_put(m->store, m->t->op, key(m, "snapshot/%s", name), tarn_slice_str(text)));
}

/* --- life of the model --- */

static void open_state(struct model *m, bool lose)
{
    bool fresh;
    if (m->state == NULL || lose)
        m->states++;
    tarn_table_drop_ref(&m->table);
    tarn_state_close(m->state);
    expect_ok(tarn_state_open(tarn_arena_printf(m->t->arena, "%s/state-%d", tarn_test_dir(m->t), 0),
                              &fresh, &m->state));
    m->env.state = m->state;
    expect_ok(
        tarn_table_open(m->t->op, &m->env, "db.db/t",
                        tarn_arena_printf(m->t->arena, "11111111-2222-3333-4444-%012d", m->states),
                        "db.t", &m->table));
}

static void model_init(struct model *m, struct tarn_test *t, bool is_append)
{
    *m = (struct model){.t = t, .is_append = is_append, .earliest = 1};
    m->exec = tarn_exec_new(2, 16);
    expect_ok(tarn_store_open("memory:", &m->store));
    m->env = (struct tarn_table_env){.store = m->store, .exec = m->exec, .commit_retries = 10};
    put_schema(m, 0);
    open_state(m, false);
}

static void model_fini(struct model *m)
{
    tarn_table_drop_ref(&m->table);
    tarn_state_close(m->state);
    tarn_store_unref(m->store);
    tarn_exec_free(m->exec);
}

static struct model *model_new(struct tarn_test *t, bool is_append)
{
    struct model *m = tarn_arena_calloc(t->arena, 1, sizeof *m);
    model_init(m, t, is_append);
    return m;
}

static uint64_t pick(struct model *m, uint64_t below)
{
    return tarn_test_random_below(m->t, below);
}

static int bucket_of(int64_t id)
{
    const struct tarn_type *types[] = {&bigint_not_null};
    struct tarn_value value = {.integer = id};
    return tarn_bucket_of(TARN_BUCKET_DEFAULT, types, &value, 1, BUCKETS);
}

static int64_t pick_id(struct model *m, int bucket)
{
    int64_t id;
    do
        id = (int64_t)pick(m, 60);
    while (!m->is_append && bucket_of(id) != bucket);
    return id;
}

/* Statistics of a column as a writer might have them: right, or not there. */
static void set_stats(struct model *m, const struct tarn_type *type,
                      const struct tarn_value *values, int count, struct tarn_value *min,
                      struct tarn_value *max, int64_t *nulls)
{
    *min = *max = (struct tarn_value){.is_null = true};
    *nulls = 0;
    for (int i = 0; i < count; i++) {
        *nulls += values[i].is_null;
        if (values[i].is_null)
            continue;
        if (min->is_null || tarn_value_compare(type, &values[i], min) < 0)
            *min = values[i];
        if (max->is_null || tarn_value_compare(type, &values[i], max) > 0)
            *max = values[i];
    }
    if (pick(m, 8) == 0)
        *nulls = TARN_STATS_UNKNOWN;
    if (pick(m, 8) == 0)
        *min = *max = (struct tarn_value){.is_null = true};
}

static void set_entry(struct model *m, struct file *f, int number)
{
    struct tarn_value values[4][ROWS_MAX], min[4], max[4];
    bool old = f->schema_id == 0;
    const struct tarn_type *types[] = {&bigint_not_null, old ? &int_type : &long_type, &text_type,
                                       &part_type};
    int64_t *nulls = tarn_arena_calloc(m->t->arena, 5, sizeof *nulls);
    for (int i = 0; i < f->row_count; i++) {
        values[0][i] = (struct tarn_value){.integer = f->rows[i].id};
        values[1][i] = (struct tarn_value){.is_null = f->rows[i].a_null, .integer = f->rows[i].a};
        values[2][i] = (struct tarn_value){.is_null = f->rows[i].s_null,
                                           .bytes = tarn_slice_str(f->rows[i].s)};
        values[3][i] = (struct tarn_value){.integer = f->partition};
    }
    for (int c = 0; c < 4; c++)
        set_stats(m, types[c], values[c], f->row_count, &min[c], &max[c], &nulls[c]);
    struct tarn_value low = {.integer = INT64_MAX}, high = {.integer = INT64_MIN},
                      partition = {.integer = f->partition};
    for (int i = 0; i < f->row_count; i++) {
        low.integer = TARN_MIN(low.integer, f->rows[i].id);
        high.integer = TARN_MAX(high.integer, f->rows[i].id);
    }
    const struct tarn_type *key_types[] = {&bigint_not_null}, *part_types[] = {&part_type};
    int64_t *no_nulls = tarn_arena_calloc(m->t->arena, 1, sizeof *no_nulls);
    f->entry = (struct tarn_manifest_entry){.partition = row_of(m, part_types, &partition, 1),
                                            .bucket = f->bucket,
                                            .total_buckets = m->is_append ? -1 : BUCKETS};
    f->entry.file = (struct tarn_data_file){
        .name = tarn_slice_str(tarn_arena_printf(m->t->arena, "f%03d", number)),
        .size = 1000 + number,
        .row_count = f->row_count,
        .min_key = m->is_append ? tarn_row_empty() : row_of(m, key_types, &low, 1),
        .max_key = m->is_append ? tarn_row_empty() : row_of(m, key_types, &high, 1),
        .key_stats = tarn_stats_empty(),
        .value_stats = {row_of(m, types, min, 4), row_of(m, types, max, 4), nulls, 4},
        .min_sequence = number,
        .max_sequence = number,
        .schema_id = f->schema_id,
        .level = f->level,
        .creation_time_ms = pick(m, 10) == 0 ? TARN_FILE_NONE : (int64_t)pick(m, 1000),
        .delete_row_count = 0,
        .source = TARN_SOURCE_APPEND,
        .first_row_id = TARN_FILE_NONE,
    };
    if (!m->is_append && pick(m, 4) != 0)
        f->entry.file.key_stats =
            (struct tarn_stats){f->entry.file.min_key, f->entry.file.max_key, no_nulls, 1};
}

static int make_file(struct model *m)
{
    struct file *f = &m->files[m->file_count];
    f->partition = (int)pick(m, 3);
    f->bucket = m->is_append ? 0 : (int)pick(m, BUCKETS);
    f->level = m->is_append ? 0 : (int)pick(m, 3);
    f->schema_id = pick(m, 3) == 0 ? 0 : m->schema_id;
    f->row_count = 1 + (int)pick(m, ROWS_MAX);
    for (int i = 0; i < f->row_count; i++) {
        struct row *r = &f->rows[i];
        r->id = pick_id(m, f->bucket);
        r->a_null = pick(m, 4) == 0;
        r->a = (int64_t)pick(m, 40);
        r->s_null = pick(m, 4) == 0;
        snprintf(r->s, sizeof r->s, "%c%c", 'a' + (int)pick(m, 4), 'a' + (int)pick(m, 4));
    }
    set_entry(m, f, m->file_count);
    return m->file_count++;
}

static void add_change(struct version *v, int file, enum tarn_entry_kind kind)
{
    v->changes[v->change_count++] = (struct change){file, kind};
    v->live[file] = kind == TARN_ENTRY_ADD;
}

static void commit(struct model *m)
{
    int64_t id = m->latest + 1;
    struct version *v = &m->versions[id];
    *v = (struct version){.kind = (enum tarn_commit_kind)pick(m, 3)};
    if (id > 1)
        memcpy(v->live, m->versions[id - 1].live, sizeof v->live);
    for (int i = 0, n = 1 + (int)pick(m, 4); i < n; i++)
        add_change(v, make_file(m), TARN_ENTRY_ADD);
    for (int i = 0, n = (int)pick(m, 5); i < n; i++) { /* away with old ones; put back what was */
        int file = (int)pick(m, (uint64_t)m->file_count);
        bool touched = false;
        for (int c = 0; c < v->change_count; c++)
            touched |= v->changes[c].file == file;
        if (!touched)
            add_change(v, file, v->live[file] ? TARN_ENTRY_DELETE : TARN_ENTRY_ADD);
    }
    for (int i = 0, n = (int)pick(m, 3); i < n; i++)
        v->changelog[v->changelog_count++] = make_file(m);
    m->latest = id;
    put_snapshot(m, id);
    put_hint(m, "LATEST", id);
}

static void roll_back(struct model *m)
{
    if (m->latest <= m->earliest)
        return;
    int64_t to = m->earliest + (int64_t)pick(m, (uint64_t)(m->latest - m->earliest));
    put_hint(m, "LATEST", to);
    for (; m->latest > to; m->latest--)
        expect_ok(
            tarn_store_remove(m->store, m->t->op, key(m, "snapshot/snapshot-%" PRId64, m->latest)));
}

static void expire(struct model *m)
{
    if (m->latest <= m->earliest)
        return;
    int64_t to = m->earliest + (int64_t)pick(m, (uint64_t)(m->latest - m->earliest)) + 1;
    for (; m->earliest < to; m->earliest++)
        expect_ok(tarn_store_remove(m->store, m->t->op,
                                    key(m, "snapshot/snapshot-%" PRId64, m->earliest)));
    put_hint(m, "EARLIEST", to);
}

/* --- what a plan must be --- */

static int number_of(const struct tarn_plan_file *f)
{
    int number = -1;
    sscanf((const char *)f->entry.file.name.data, "f%3d", &number);
    return number;
}

static void expect_same_file(struct model *m, const struct tarn_plan_file *got)
{
    int number = number_of(got);
    expect_true(number >= 0 && number < m->file_count);
    const struct tarn_manifest_entry *want = &m->files[number].entry;
    TARN_OWN(tarn_buf_drop) struct tarn_buf a = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf b = {0};
    tarn_manifest_entry_pack(&got->entry, true, &a);
    tarn_manifest_entry_pack(want, true, &b);
    expect_bytes(tarn_buf_slice(&a), tarn_buf_slice(&b));
}

static void run_plan(struct model *m, struct tarn_op *op, const struct tarn_plan_request *request,
                     struct tarn_plan *out)
{
    struct tarn_status *s = tarn_table_plan(op, m->table, request, out);
    if (s != TARN_OK)
        print_message("%s\n", tarn_status_message(s));
    expect_ok(s);
}

static void expect_files(struct model *m, const bool *want, const struct tarn_plan_file *files,
                         size_t count)
{
    bool got[FILES_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        expect_same_file(m, &files[i]);
        expect_false(got[number_of(&files[i])]);
        got[number_of(&files[i])] = true;
    }
    for (int i = 0; i < m->file_count; i++)
        expect_int(got[i], want[i]);
}

static void check_snapshot(struct model *m, int64_t id)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_plan_request request = {
        .version = TARN_VERSION_ID(id), .with_stats = true, .no_splits = pick(m, 2) == 0};
    struct tarn_plan plan;
    run_plan(m, &op, &request, &plan);
    expect_files(m, m->versions[id].live, plan.files, plan.file_count);
    size_t in_splits = 0;
    for (size_t i = 0; i < plan.split_count; i++)
        in_splits += plan.splits[i].file_count;
    expect_int(in_splits, request.no_splits ? 0 : plan.file_count);
}

static void check_changes(struct model *m, int64_t from, int64_t to)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    bool delta[FILES_MAX] = {false}, changelog[FILES_MAX] = {false};
    size_t delta_count = 0;
    for (int64_t id = from + 1; id <= to; id++) {
        const struct version *v = &m->versions[id];
        for (int i = 0; i < v->change_count && v->kind == TARN_COMMIT_APPEND; i++) {
            delta_count += v->changes[i].kind == TARN_ENTRY_ADD;
            delta[v->changes[i].file] |= v->changes[i].kind == TARN_ENTRY_ADD;
        }
        for (int i = 0; i < v->changelog_count && v->kind != TARN_COMMIT_OVERWRITE; i++)
            changelog[v->changelog[i]] = true;
    }
    struct tarn_plan_request request = {.version = TARN_VERSION_ID(to),
                                        .with_stats = true,
                                        .changes = TARN_CHANGES_DELTA,
                                        .changes_from = from,
                                        .whole_buckets = pick(m, 2) == 0};
    struct tarn_plan plan;
    run_plan(m, &op, &request, &plan);
    expect_int(plan.file_count, delta_count); /* one that is added twice is a change twice */
    for (size_t i = 0; i < plan.file_count; i++)
        expect_true(delta[number_of(&plan.files[i])]);
    request.changes = TARN_CHANGES_CHANGELOG;
    run_plan(m, &op, &request, &plan);
    expect_files(m, changelog, plan.files, plan.file_count);
    for (size_t i = 0; i < plan.split_count; i++)
        expect_true(plan.splits[i].is_changelog);
    if (from < m->earliest)
        return;
    bool after[FILES_MAX] = {false}, before[FILES_MAX] = {false};
    for (int i = 0; i < m->file_count; i++) {
        after[i] = m->versions[to].live[i] && !m->versions[from].live[i];
        before[i] = m->versions[from].live[i] && !m->versions[to].live[i];
    }
    request.changes = TARN_CHANGES_DIFF;
    run_plan(m, &op, &request, &plan);
    bool got_after[FILES_MAX] = {false}, got_before[FILES_MAX] = {false};
    for (size_t s = 0; s < plan.split_count; s++) {
        for (size_t i = 0; i < plan.splits[s].file_count; i++)
            got_after[number_of(&plan.splits[s].files[i])] = true;
        for (size_t i = 0; i < plan.splits[s].before_count; i++)
            got_before[number_of(&plan.splits[s].before_files[i])] = true;
    }
    for (int i = 0; i < m->file_count; i++) {
        expect_int(got_after[i], after[i]);
        expect_int(got_before[i], before[i]);
    }
}

/* --- pruning --- */

static void random_condition(struct model *m, struct tarn_buf *out, int depth)
{
    const char *a = m->schema_id == 0 ? "a" : "b";
    if (depth > 0 && pick(m, 3) == 0) {
        if (pick(m, 4) == 0)
            tarn_buf_add_str(out, "NOT ");
        tarn_buf_add_byte(out, '(');
        random_condition(m, out, depth - 1);
        tarn_buf_add_str(out, pick(m, 2) == 0 ? " AND " : " OR ");
        random_condition(m, out, depth - 1);
        tarn_buf_add_byte(out, ')');
        return;
    }
    static const char *const compare[] = {"=", "<>", "<", "<=", ">", ">=", "<=>"};
    const char *c = compare[pick(m, TARN_COUNT_OF(compare))];
    int n = (int)pick(m, 60), k = (int)pick(m, 60);
    char text[3] = {(char)('a' + pick(m, 4)), (char)('a' + pick(m, 4)), 0};
    switch (pick(m, 8)) {
    case 0:
        tarn_buf_printf(out, "id %s %d", c, n);
        break;
    case 1:
        tarn_buf_printf(out, "id IN (%d, %d)", n, k);
        break;
    case 2:
        tarn_buf_printf(out, "%s %s %d", a, c, n % 40);
        break;
    case 3:
        tarn_buf_printf(out, "%s IS %sNULL", a, pick(m, 2) == 0 ? "NOT " : "");
        break;
    case 4:
        tarn_buf_printf(out, "s %s '%s'", c, text);
        break;
    case 5:
        tarn_buf_printf(out, "s LIKE '%c%%'", text[0]);
        break;
    case 6:
        tarn_buf_printf(out, "p %s %d", c, n % 3);
        break;
    default:
        tarn_buf_printf(out, "s IS %sNULL", pick(m, 2) == 0 ? "NOT " : "");
        break;
    }
}

/* A row as the plan's schema sees it: by field id, so that an s of before is no s of now. */
static bool row_passes(const struct tarn_plan *plan, const struct file *f, const struct row *r)
{
    bool same_s = f->schema_id == plan->schema->id;
    struct tarn_value values[4] = {
        {.integer = r->id},
        {.is_null = r->a_null, .integer = r->a},
        {.is_null = r->s_null || !same_s, .bytes = tarn_slice_str(r->s)},
        {.integer = f->partition},
    };
    return tarn_predicate_eval(&plan->where, plan->schema, values) == TARN_TRUE;
}

static void check_pruning(struct model *m)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    TARN_OWN(tarn_buf_drop) struct tarn_buf where = {0};
    tarn_op_init(&op);
    random_condition(m, &where, 3);
    struct tarn_plan_request request = {.version = TARN_VERSION_LATEST,
                                        .where = tarn_buf_slice(&where)};
    struct tarn_plan plan;
    bool got[FILES_MAX] = {false};
    run_plan(m, &op, &request, &plan);
    for (size_t i = 0; i < plan.file_count; i++)
        got[number_of(&plan.files[i])] = true;
    int64_t left_out = plan.pruned_by_partition + plan.pruned_by_bucket + plan.pruned_by_key +
                       plan.pruned_by_stats + plan.pruned_by_index;
    expect_int(plan.files_seen, left_out + (int64_t)plan.file_count);
    m->seen += plan.files_seen;
    m->left_out += left_out;
    for (int i = 0; i < m->file_count; i++) {
        const struct file *f = &m->files[i];
        for (int r = 0; r < f->row_count && m->versions[m->latest].live[i] && !got[i]; r++)
            if (row_passes(&plan, f, &f->rows[r])) {
                print_message("f%03d of schema %d is left out, but its row %d passes: %s\n", i,
                              (int)f->schema_id, r, tarn_buf_cstr(&where));
                expect_true(false);
            }
    }
}

static void check_all(struct model *m)
{
    if (m->latest == 0)
        return;
    for (int64_t id = m->earliest; id <= m->latest; id++)
        check_snapshot(m, id);
    for (int64_t from = m->earliest - 1; from < m->latest; from++)
        for (int64_t to = from + 1; to <= m->latest; to++)
            check_changes(m, from, to);
    for (int i = 0; i < 60; i++)
        check_pruning(m);
}

static void live_through(struct tarn_test *t, bool is_append)
{
    struct model *m = model_new(t, is_append);
    for (int step = 0; step < 30 && m->file_count < FILES_MAX - 20 && m->latest < SNAPSHOTS_MAX - 2;
         step++) {
        switch (pick(m, 12)) {
        case 0:
            roll_back(m);
            break;
        case 1:
            expire(m);
            break;
        case 2:
            open_state(m, pick(m, 2) == 0);
            break;
        case 3:
            if (m->schema_id == 0 && step > 10)
                put_schema(m, 1);
            break;
        default:
            commit(m);
        }
        if (pick(m, 6) == 0)
            check_all(m);
    }
    check_all(m);
    open_state(m, true); /* built from the folder alone, it says the same */
    check_all(m);
    print_message("%d files; of %" PRId64 " seen with conditions %" PRId64 " were left out\n",
                  m->file_count, m->seen, m->left_out);
    expect_true(m->seen == 0 || m->left_out > 0);
    model_fini(m);
}

TARN_TEST(plans, of_an_append_table_hold_what_its_history_says)
{
    live_through(t, true);
}

TARN_TEST(plans, of_a_table_with_keys_hold_what_its_history_says)
{
    live_through(t, false);
}
