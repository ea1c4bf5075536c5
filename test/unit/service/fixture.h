/* fixture - a service over a memory store (wrapped in faulty) and a state in a temporary folder. */
#ifndef TARN_TEST_SERVICE_FIXTURE_H
#define TARN_TEST_SERVICE_FIXTURE_H

#include "service/internal.h"
#include "test/lib/test.h"

#define S(text) tarn_slice_str(text)
#define NOW TARN_VERSION_LATEST

struct fixture {
    struct tarn_test *t;
    struct tarn_exec *exec;
    struct tarn_store *inner, *store; /* store is `inner`, wrapped in faulty */
    struct tarn_state *state;
    struct tarn_table_env env;
    struct tarn_conf *conf;
    struct tarn_service service;
};

/* With database "db"; the op's principal is "tester". */
void fixture_init(struct fixture *f, struct tarn_test *t);
void fixture_fini(struct fixture *f);

struct tarn_table_ref fixture_ref(const char *table);
/* A table of the given columns; key NULL: none. */
void fixture_table(struct fixture *f, const char *name, const char *columns, const char *key);
/* A packed entry of a made-up file of a table with key `id BIGINT`, which is put into the store. */
struct tarn_slice fixture_file(struct fixture *f, const char *table, const char *name, int64_t low,
                               int64_t high);
bool fixture_has(struct fixture *f, const char *key);
/* The end of an ingest as a worker reports it: these packed entries. It isn't told to write them again. */
struct tarn_status *fixture_commit(struct fixture *f, struct tarn_ingest *ingest,
                                   const struct tarn_slice *files, size_t count, int64_t *snapshot,
                                   bool *repeated);
/* Registers a worker; its id. */
const char *fixture_worker(struct fixture *f, const char *address);

#endif
