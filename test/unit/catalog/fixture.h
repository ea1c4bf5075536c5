/* fixture - a catalog of a warehouse on local disk, with a state of its own that can be closed, lost and opened again. */
#ifndef TARN_TEST_CATALOG_FIXTURE_H
#define TARN_TEST_CATALOG_FIXTURE_H

#include "catalog/entries.h"
#include "test/lib/test.h"

#define S(text) tarn_slice_str(text)

struct house {
    struct tarn_test *t;
    struct tarn_exec *exec;
    struct tarn_store *store;
    struct tarn_state *state;
    struct tarn_table_env env;
    struct tarn_catalog *catalog;
    struct tarn_catalog_options options; /* of the next open_catalog */
};

/* With the state in folder "state". */
void house_init(struct house *h, struct tarn_test *t);
void house_fini(struct house *h);
/* state: the folder that it lies in; another one is a state that was lost. */
void open_catalog(struct house *h, const char *state);
void close_catalog(struct house *h);
void make_database(struct house *h, const char *name);
/* Columns id, the key, and v. Until the next call. */
void make_draft(struct house *h, struct tarn_schema *out);
struct tarn_status *make_table(struct house *h, const char *database, const char *name,
                               struct tarn_table **out);
struct tarn_status *find_table(struct house *h, const char *database, const char *name,
                               const char *uuid, struct tarn_table **out);
const char *uuid_of_table(struct house *h, const char *database, const char *name);

#endif
