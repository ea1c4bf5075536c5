#include "fixture.h"

static void on_changed(void *arg)
{
    struct house *h = arg;
    struct tarn_hms *hms = atomic_load(&h->hms);
    if (hms != NULL)
        tarn_hms_catalog_changed(hms);
}

void house_init(struct house *h, struct tarn_test *t)
{
    bool fresh;
    *h = (struct house){.t = t, .exec = tarn_exec_new(2, 16)};
    expect_ok(
        tarn_store_open(tarn_arena_printf(t->arena, "file://%s/w", tarn_test_dir(t)), &h->store));
    expect_ok(tarn_state_open(tarn_arena_printf(t->arena, "%s/state", tarn_test_dir(t)), &fresh,
                              &h->state));
    h->env = (struct tarn_table_env){.store = h->store,
                                     .state = h->state,
                                     .exec = h->exec,
                                     .commit_retries = 3,
                                     .catalog_changed = on_changed,
                                     .catalog_changed_arg = h};
    expect_ok(tarn_catalog_open(t->op, &h->env, "test", "/data/one", &h->catalog));
    fake_start(&h->fake);
}

void house_fini(struct house *h)
{
    stop_mirror(h);
    fake_stop(&h->fake);
    tarn_catalog_close(h->catalog);
    tarn_state_close(h->state);
    tarn_store_unref(h->store);
    tarn_exec_free(h->exec);
}

void start_mirror(struct house *h, int64_t check_ms, int64_t timeout_ms)
{
    struct tarn_hms_options options = {
        .exec = h->exec,
        .catalog = h->catalog,
        .store = h->store,
        .uri = tarn_arena_printf(h->t->arena, "thrift://127.0.0.1:%d", h->fake.port),
        .user = "keeper",
        .check_ms = check_ms,
        .connect_timeout_ms = 5000,
        .timeout_ms = timeout_ms,
    };
    atomic_store(&h->hms, tarn_hms_new(&options));
}

/* Nobody changes the catalog meanwhile. */
void stop_mirror(struct house *h)
{
    tarn_hms_free(atomic_exchange(&h->hms, NULL));
}

void make_database(struct house *h, const char *name)
{
    struct tarn_database_info info = {.name = S(name)};
    expect_ok(tarn_database_create(h->t->op, h->catalog, &info, false));
}

void make_table(struct house *h, const char *database, const char *name, const char *columns)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_schema draft = {.version = 3};
    struct tarn_pair bucket = {S("bucket"), S("-1")};
    draft.options = &bucket;
    draft.option_count = 1;
    expect_ok(tarn_columns_parse(S(columns), h->t->arena, &draft.fields, &draft.field_count));
    expect_ok(
        tarn_catalog_create_table(h->t->op, h->catalog, S(database), S(name), &draft, &table));
}

void drop_table(struct house *h, const char *database, const char *name)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(tarn_catalog_table(h->t->op, h->catalog, S(database), S(name), S(NULL), &table));
    expect_ok(tarn_catalog_drop_table(h->t->op, h->catalog, table, S(database), S(name)));
}

struct tarn_hms_info info_of(struct house *h)
{
    struct tarn_hms_info info;
    tarn_hms_info(h->t->op, atomic_load(&h->hms), &info);
    return info;
}
