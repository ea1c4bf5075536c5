/*
 * Shared between the files of room state only. RocksDB's header is seen here and nowhere else.
 */
#ifndef TARN_STATE_INTERNAL_H
#define TARN_STATE_INTERNAL_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "state/state.h"

/* Raised with every change of the families' contents that an older program would misread. */
#define TARN_STATE_FORMAT 1

#define TARN_STATE_LOAD_PREFIX                                                                     \
    "loading-" /* files in the folder that are ours until they are taken in */
/* Of the first level, in proportion to the write buffers: with RocksDB's own 256 MiB it would be rewritten whole for every
 * few MiB that arrive. */
#define TARN_STATE_LEVEL_SIZE ((uint64_t)32 << 20)

struct tarn_state {
    char *folder; /* owned */
    int holder;   /* the lock that says who has the folder; -1: none */
    pthread_rwlock_t
        door;      /* door.c: read by who uses db and the families, written by who replaces them */
    rocksdb_t *db; /* NULL: closed, and could not be opened again yet */
    rocksdb_options_t *unnamed_options;
    rocksdb_options_t *options;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write;
    rocksdb_writeoptions_t *write_synced;
    rocksdb_column_family_handle_t *families[TARN_FAMILY_COUNT];
    rocksdb_column_family_handle_t *unnamed; /* RocksDB's own "default"; holds nothing */
    atomic_int iterator_count;               /* and views */
    atomic_int loading;                      /* load_begin without its end */
    atomic_uint load_count;                  /* names of files that are loaded */

    /* intact.c: since the last mark */
    atomic_size_t unmarked_size;
    _Atomic int64_t marked_ms;
    atomic_size_t marked_size; /* of the MANIFEST then */
    pthread_mutex_t marking;   /* held by who writes the mark */

    /* door.c: what ended the writes */
    atomic_bool stopped;
    pthread_mutex_t stopping;       /* over the two below */
    struct tarn_status *stopped_by; /* owned */
    int64_t opened_ms;              /* when it was last tried */
};

/* RocksDB's text as a status; frees it. NULL is success. `what` is the verb, "open". */
TARN_MUST struct tarn_status *tarn_state__error(const struct tarn_state *state, char *consumed,
                                                const char *what);

/* ---- the door: between the two, db and families stay what they are ---- */

/* For reading; db may be NULL: tarn_state__closed says why. */
void tarn_state__enter(struct tarn_state *state);
/* For writing. A failure isn't entered: no write is taken. */
TARN_MUST struct tarn_status *tarn_state__enter_to_write(struct tarn_state *state);
void tarn_state__leave(struct tarn_state *state);
/* As tarn_state__error, after a write within: if it failed, it was the last one. */
TARN_MUST struct tarn_status *tarn_state__written(struct tarn_state *state, char *consumed,
                                                  const char *what);
TARN_MUST struct tarn_status *tarn_state__closed(struct tarn_state *state);

/* RocksDB alone: the holder stays. close: NULL is fine. */
TARN_MUST struct tarn_status *tarn_state__open_database(struct tarn_state *state);
void tarn_state__close_database(struct tarn_state *state);

/* Takes the folder for this process or says who has it: DATA_DIR_HELD. */
TARN_MUST struct tarn_status *tarn_state__hold(const char *folder, int *holder);

rocksdb_options_t *tarn_state__options(void);

/* Before the open: STATE_DAMAGED where RocksDB would open without a word what lacks a piece (intact.c). */
TARN_MUST struct tarn_status *tarn_state__check_intact(const char *folder);
/* What the manifest says now is durable, and its loss would be noticed: files that it doesn't need are removed. */
TARN_MUST struct tarn_status *tarn_state__mark(struct tarn_state *state);
/* After a batch of so many bytes; a mark that fails is logged. */
void tarn_state__mark_sometimes(struct tarn_state *state, size_t written_size);

#endif
