/* fixture - a catalog of a warehouse on local disk, with a state of its own that can be closed, lost and opened again. */
#ifndef TARN_TEST_CATALOG_FIXTURE_H
#define TARN_TEST_CATALOG_FIXTURE_H

#include "catalog/catalog.h"
#include "test/lib/test.h"

#define S(text) tarn_slice_str(text)

struct house {
    struct tarn_test *t;
    struct tarn_exec *exec;
    struct tarn_store *store;
    struct tarn_state *state;
    struct tarn_table_env env;
    struct tarn_catalog *catalog;
};

/* With the state in folder "state". */
void house_init(struct house *h, struct tarn_test *t);
void house_fini(struct house *h);
/* state: the folder that it lies in; another one is a state that was lost. */
void open_catalog(struct house *h, const char *state);
void close_catalog(struct house *h);
void make_database(struct house *h, const char *name);

#endif
