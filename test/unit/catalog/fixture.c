#include "fixture.h"

void open_catalog(struct house *h, const char *state)
{
    bool fresh;
    expect_ok(tarn_state_open(tarn_arena_printf(h->t->arena, "%s/%s", tarn_test_dir(h->t), state),
                              &fresh, &h->state));
    h->env = (struct tarn_table_env){
        .store = h->store, .state = h->state, .exec = h->exec, .commit_retries = 3};
    expect_ok(tarn_catalog_open(h->t->op, &h->env, "test", "/data/one", &h->catalog));
}

void close_catalog(struct house *h)
{
    tarn_catalog_close(h->catalog);
    tarn_state_close(h->state);
}

void house_init(struct house *h, struct tarn_test *t)
{
    *h = (struct house){.t = t, .exec = tarn_exec_new(2, 16)};
    expect_ok(
        tarn_store_open(tarn_arena_printf(t->arena, "file://%s/w", tarn_test_dir(t)), &h->store));
    open_catalog(h, "state");
}

void house_fini(struct house *h)
{
    close_catalog(h);
    tarn_store_unref(h->store);
    tarn_exec_free(h->exec);
}

void make_database(struct house *h, const char *name)
{
    struct tarn_database_info info = {.name = S(name)};
    expect_ok(tarn_database_create(h->t->op, h->catalog, &info, false));
}
