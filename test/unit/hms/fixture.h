/* fixture - a catalog on local disk, and a small Hive metastore of one thread in the same process, which keeps what it is told and can
 * be told to behave badly. */
#ifndef TARN_TEST_HMS_FIXTURE_H
#define TARN_TEST_HMS_FIXTURE_H

#include <pthread.h>

#include "hms/internal.h"
#include "test/lib/test.h"

#define S(text) tarn_slice_str(text)

enum fake_manner {
    FAKE_GOOD,
    FAKE_SILENT,  /* takes calls, never answers */
    FAKE_CLOSES,  /* hangs up instead of answering */
    FAKE_GARBAGE, /* answers what is no Thrift */
    FAKE_HALF,    /* answers the first bytes, and hangs up */
    FAKE_DEEP,    /* answers a struct nested a million times */
    FAKE_REFUSES  /* answers an exception to all that changes something */
};

struct fake {
    pthread_t thread;
    int listen_fd, port;
    _Atomic int manner;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards what follows */
    struct tarn_arena *arena;
    struct tarn_map *databases;  /* name -> struct tarn_hms__database */
    struct tarn_map *tables;     /* "db.t" -> struct tarn_hms__table */
    struct tarn_map *partitions; /* "db.t/value,value" -> anything */
    int64_t calls, changes;
};
void fake_start(struct fake *fake);
void fake_stop(struct fake *fake);
/* A table or database as somebody else would make it: without a mark. */
void fake_add_table(struct fake *fake, const char *database, const char *name);
/* A copy of it in the test's arena, or NULL. */
struct tarn_hms__table *fake_table(struct fake *fake, struct tarn_test *t, const char *name);
bool fake_has_database(struct fake *fake, const char *name);
bool fake_has_partition(struct fake *fake, const char *name); /* "db.t/a,b" */
/* What somebody does behind the mirror's back. */
void fake_drop(struct fake *fake, const char *name);
void fake_set_location(struct fake *fake, const char *name, const char *location);
int64_t fake_changes(struct fake *fake);

struct house {
    struct tarn_test *t;
    struct tarn_exec *exec;
    struct tarn_store *store;
    struct tarn_state *state;
    struct tarn_table_env env;
    struct tarn_catalog *catalog;
    struct fake fake;
    _Atomic(struct tarn_hms *) hms;
};
void house_init(struct house *h, struct tarn_test *t);
void house_fini(struct house *h);
void start_mirror(struct house *h, int64_t check_ms, int64_t timeout_ms);
void stop_mirror(struct house *h);
void make_database(struct house *h, const char *name);
void make_table(struct house *h, const char *database, const char *name, const char *columns);
void drop_table(struct house *h, const char *database, const char *name);
struct tarn_hms_info info_of(struct house *h);
/* Asks again and again; fails the test after two minutes. */
#define WAIT_UNTIL(condition)                                                                      \
    do {                                                                                           \
        int64_t wait_end_ms = tarn_clock_mono_ms() + 120000;                                       \
        while (!(condition)) {                                                                     \
            if (tarn_clock_mono_ms() > wait_end_ms)                                                \
                expect_unreachable("never: %s", #condition);                                       \
            usleep(5000);                                                                          \
        }                                                                                          \
    } while (0)

#endif
