/*
 * internal - what the files of this room share.
 *
 * parts    the messages of a load: one after another, as files of bytes.
 * spool    bytes that must be sought in, in a file without a name.
 */
#ifndef TARN_FLIGHT_INTERNAL_H
#define TARN_FLIGHT_INTERNAL_H

#include <stdatomic.h>

#include "flight/flight.h"

struct tarn_flight {
    struct tarn_flight_options options;
    atomic_int ingest_count; /* loads that run: they share the write buffer */
};

struct tarn_status *tarn_flight__ingest(void *self, struct tarn_op *op, struct tarn_call *call);
struct tarn_status *tarn_flight__scan(void *self, struct tarn_op *op, struct tarn_call *call);
struct tarn_status *tarn_flight__infer(void *self, struct tarn_op *op, struct tarn_call *call);

TARN_MUST struct tarn_status *tarn_flight__format(int format, enum tarn_data_format *out);
/* Columns as the API names them; in the arena. */
Tarn__V1__Field **tarn_flight__fields(const struct tarn_field *fields, size_t count,
                                      struct tarn_arena *arena);
/* A C string in the arena; INVALID_ARGUMENT names `what` where it isn't text, has a NUL or is too long. */
TARN_MUST struct tarn_status *tarn_flight__text(struct tarn_slice bytes, const char *what,
                                                struct tarn_arena *arena, const char **out);

/* Splits as the API has them; in the arena, and borrowing from the message. (scan.c) */
TARN_MUST struct tarn_status *tarn_flight__splits(Tarn__V1__SplitTask *const *splits, size_t count,
                                                  struct tarn_arena *arena,
                                                  struct tarn_merge_split **out);

/* --- parts.c --- */
enum tarn_flight__part_kind { TARN_PART_DATA, TARN_PART_FILE, TARN_PART_TASK, TARN_PART_END };
struct tarn_flight__part {
    enum tarn_flight__part_kind kind;
    struct tarn_slice data; /* borrowed from the bytes, or in the arena */
    const char *file_name;
    enum tarn_data_format format;
    const Tarn__V1__IngestTask *task;
};
/* A message of the stream. What isn't plain `data` is decoded into the arena. */
TARN_MUST struct tarn_status *tarn_flight__part_decode(struct tarn_slice bytes,
                                                       struct tarn_arena *arena,
                                                       struct tarn_flight__part *out);

struct tarn_flight__parts {
    struct tarn_call *call;
    struct tarn_message *message;  /* owned: what the part lies in */
    struct tarn_arena *arena;      /* owned: likewise */
    struct tarn_flight__part part; /* the present one; its data is what is not yet taken */
    int file_count;
};
/* Reads the first part; what is decoded of it lies in the op's arena. */
TARN_MUST struct tarn_status *tarn_flight__parts_open(struct tarn_flight__parts *parts,
                                                      struct tarn_op *op, struct tarn_call *call);
void tarn_flight__parts_drop(struct tarn_flight__parts *parts);
/* Skips to the next file; its name lies in the op's arena. *found false: there is none. */
TARN_MUST struct tarn_status *tarn_flight__parts_next_file(struct tarn_flight__parts *parts,
                                                           struct tarn_op *op, const char **name,
                                                           enum tarn_data_format *format,
                                                           bool *found);
/* The next bytes of the present file, as many as came together; none: its end. Valid until the next call. */
TARN_MUST struct tarn_status *tarn_flight__parts_take(struct tarn_flight__parts *parts,
                                                      struct tarn_slice *out);
/* The same as a tarn_pull_fn. */
struct tarn_status *tarn_flight__parts_pull(void *parts, struct tarn_op *op, uint8_t *out,
                                            size_t size, size_t *got);

/* --- spool.c --- */
struct tarn_flight__spool {
    int fd;        /* -1: none */
    char path[40]; /* opens it again, as long as fd is open */
};
/* The rest of the present file into a file of `dir` that nobody else sees. */
TARN_MUST struct tarn_status *tarn_flight__spool_fill(struct tarn_flight__spool *spool,
                                                      const char *dir,
                                                      struct tarn_flight__parts *parts,
                                                      struct tarn_op *op);
void tarn_flight__spool_drop(struct tarn_flight__spool *spool);

/* --- delete.c --- */
struct tarn_status *tarn_flight__delete(void *flight, struct tarn_op *op, struct tarn_call *call);

#endif
