#include "fixture.h"

void open_catalog(struct house *h, const char *state)
{
    bool fresh;
    expect_ok(tarn_state_open(tarn_arena_printf(h->t->arena, "%s/%s", tarn_test_dir(h->t), state),
                              &fresh, &h->state));
    h->env = (struct tarn_table_env){
        .store = h->store, .state = h->state, .exec = h->exec, .commit_retries = 3};
    expect_ok(
        tarn_catalog_open_with(h->t->op, &h->env, "test", "/data/one", &h->options, &h->catalog));
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

void make_draft(struct house *h, struct tarn_schema *out)
{
    static struct tarn_slice key;
    static struct tarn_pair bucket;
    key = S("id");
    bucket = (struct tarn_pair){S("bucket"), S("1")};
    *out = (struct tarn_schema){.version = 3};
    expect_ok(tarn_columns_parse(S("id BIGINT NOT NULL, v STRING"), h->t->arena, &out->fields,
                                 &out->field_count));
    out->primary_keys = &key;
    out->primary_key_count = 1;
    out->options = &bucket;
    out->option_count = 1;
}

struct tarn_status *make_table(struct house *h, const char *database, const char *name,
                               struct tarn_table **out)
{
    struct tarn_schema draft;
    make_draft(h, &draft);
    return tarn_catalog_create_table(h->t->op, h->catalog, S(database), S(name), &draft, out);
}

struct tarn_status *find_table(struct house *h, const char *database, const char *name,
                               const char *uuid, struct tarn_table **out)
{
    return tarn_catalog_table(h->t->op, h->catalog, S(database), S(name), S(uuid), out);
}

const char *uuid_of_table(struct house *h, const char *database, const char *name)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(find_table(h, database, name, NULL, &table));
    return tarn_arena_str(h->t->arena, S(tarn_table_uuid(table)));
}
