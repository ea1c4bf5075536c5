#include "fixture.h"

#include "store/internal.h"

void fixture_init(struct fixture *f, struct tarn_test *t)
{
    memset(f, 0, sizeof *f);
    f->t = t;
    f->exec = tarn_exec_new(2, 32);
    f->inner = tarn_store__memory_new();
    f->store = tarn_store_faulty_new(f->inner);
    bool fresh;
    const char *folder = tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t));
    expect_ok(tarn_state_open(folder, &fresh, &f->state));
    f->env = (struct tarn_table_env){
        .store = f->store, .state = f->state, .exec = f->exec, .commit_retries = 5};
    f->conf = tarn_conf_new();
    struct tarn_service *s = &f->service;
    expect_ok(tarn_access_open(f->conf, &s->access));
    t->op->principal = "tester";
    expect_ok(tarn_catalog_open(t->op, &f->env, "w", tarn_test_dir(t), &s->catalog));
    struct tarn_maintain_options maintain = {
        .catalog = s->catalog, .exec = f->exec, .check_interval_ms = 1000, .lease_ms = 60000};
    s->maintain = tarn_maintain_new(&maintain);
    s->exec = f->exec;
    s->store = f->store;
    s->answers = tarn_answers_new();
    s->warehouse_name = "w";
    s->lease_ms = 60000;
    atomic_store(&s->grpc_address, "g");
    atomic_store(&s->http_address, "h");
    struct tarn_database_info made, info = {.name = S("db")};
    expect_ok(tarn_service_create_database(t->op, s, &info, false, &made));
}

void fixture_fini(struct fixture *f)
{
    tarn_maintain_free(f->service.maintain);
    tarn_catalog_close(f->service.catalog);
    tarn_answers_free(f->service.answers);
    tarn_exec_free(f->exec);
    tarn_access_close(f->service.access);
    tarn_conf_free(f->conf);
    tarn_store_unref(f->store);
    tarn_store_unref(f->inner);
    tarn_state_close(f->state);
}

struct tarn_table_ref fixture_ref(const char *table)
{
    return (struct tarn_table_ref){S("db"), S(table), S("")};
}

void fixture_table(struct fixture *f, const char *name, const char *columns, const char *key)
{
    struct tarn_slice keys[] = {S(key)};
    struct tarn_table_facts facts;
    struct tarn_table_request request = {
        .database = S("db"),
        .name = S(name),
        .columns_sql = S(columns),
        .primary_keys = keys,
        .primary_key_count = key == NULL ? 0 : 1,
    };
    expect_ok(tarn_service_create_table(f->t->op, &f->service, &request, &facts));
}

static struct tarn_slice key_row(struct fixture *f, int64_t key)
{
    struct tarn_type type = {.id = TARN_TYPE_BIGINT};
    const struct tarn_type *types[] = {&type};
    struct tarn_value value = {.integer = key};
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};
    tarn_row_serialize(types, &value, 1, &row);
    return tarn_arena_copy(f->t->arena, tarn_buf_slice(&row));
}

struct tarn_slice fixture_file(struct fixture *f, const char *table, const char *name, int64_t low,
                               int64_t high)
{
    static const int64_t no_nulls[] = {0};
    struct tarn_manifest_entry e = {
        .partition = tarn_row_empty(), .total_buckets = 1, .file = {.name = S(name)}};
    struct tarn_data_file *d = &e.file;
    d->size = 4;
    d->row_count = high - low + 1;
    d->min_key = key_row(f, low);
    d->max_key = key_row(f, high);
    d->key_stats = (struct tarn_stats){d->min_key, d->max_key, no_nulls, 1};
    d->value_stats = tarn_stats_empty();
    d->max_sequence = high - low;
    d->creation_time_ms = d->first_row_id = TARN_FILE_NONE;
    d->source = TARN_SOURCE_APPEND;
    const char *key = tarn_arena_printf(f->t->arena, "db.db/%s/bucket-0/%s", table, name);
    expect_ok(tarn_store_put(f->inner, f->t->op, key, S("data")));
    return tarn_service__pack(f->t->op, &e, true);
}

struct tarn_status *fixture_commit(struct fixture *f, struct tarn_ingest *ingest,
                                   const struct tarn_slice *files, size_t count, int64_t *snapshot,
                                   bool *repeated)
{
    struct tarn_written written = {.entries = files, .count = count};
    bool again;
    struct tarn_status *s =
        tarn_service_ingest_commit(f->t->op, &f->service, ingest, &written, snapshot, repeated,
                                   &again, &(struct tarn_backlog){0});
    tarn_assert(!again); /* not expect_false: a fuzzer has this file, too */
    return s;
}

bool fixture_has(struct fixture *f, const char *key)
{
    bool found;
    expect_ok(tarn_store_stat(f->inner, f->t->op, key, &found, NULL));
    return found;
}

const char *fixture_worker(struct fixture *f, const char *address)
{
    struct tarn_worker_info info = {.name = "w", .address = address, .version = "1", .slots = 4};
    const char *id;
    int64_t lease_ms;
    expect_ok(tarn_service_register(f->t->op, &f->service, &info, &id, &lease_ms));
    return id;
}
