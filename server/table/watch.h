/*
 * watch - what a subscription asks a table: one snapshot after the other, which of that id it is, and where
 * consumers stand.
 *
 * A consumer is a file consumer/consumer-ID that says which snapshot a reader wants next. Every engine's expiry keeps
 * what the slowest one has not read (docs/format.md, "Consumers").
 *
 * Memory   what is found lies in the op's arena.
 * Threads  any that may wait.
 */
#ifndef TARN_TABLE_WATCH_H
#define TARN_TABLE_WATCH_H

#include "table/table.h"

#define TARN_CONSUMER_ID_SIZE_MAX 200
#define TARN_CONSUMER_FILE_SIZE_MAX 4096

/* As its file is now. *found false: it isn't there, be it expired, rolled back or not yet committed. *identity is a
 * hash of the file's bytes, never 0: an id is used again after a roll-back, with other bytes. */
TARN_MUST struct tarn_status *tarn_table_find_snapshot(struct tarn_op *op, struct tarn_table *table,
                                                       int64_t id, bool *found,
                                                       struct tarn_snapshot *out,
                                                       uint64_t *identity);
/* Is that the snapshot of that id whose changes and files the table knows? Between two looks others may have put another
 * one in its place: then what is planned is of the old one. */
TARN_MUST struct tarn_status *tarn_table_is_indexed(struct tarn_table *table, int64_t id,
                                                    uint64_t identity, bool *out);
/* Snapshot `id` has expired: is the next one, whose identity is next_identity, known to have been put upon the one of `identity`? As
 * long as the index had both. Looks where the index is behind the folder. */
TARN_MUST struct tarn_status *tarn_table_follows(struct tarn_op *op, struct tarn_table *table,
                                                 int64_t id, uint64_t identity,
                                                 uint64_t next_identity, bool *out);
/* Does history begin with snapshot `id` of this identity, although one lies below it in the folder? It doesn't stand on that, which is another
 * history's. look: where the index is behind the folder. *known false: it still is, or others put another one there. */
TARN_MUST struct tarn_status *tarn_table_begins_history(struct tarn_op *op,
                                                        struct tarn_table *table, int64_t id,
                                                        uint64_t identity, bool look, bool *known,
                                                        bool *out);
/* Ids of the retained snapshots as the folder has them now, however lately the table was looked at, but for those of another history
 * below the one that the index knows; 0, 0: none. Others
 * may be at work in it: what doesn't fit is asked again. */
TARN_MUST struct tarn_status *tarn_table_find_ids(struct tarn_op *op, struct tarn_table *table,
                                                  int64_t *earliest, int64_t *latest);
/* The first retained snapshot with time >= time_ms; latest + 1 where there is none. */
TARN_MUST struct tarn_status *tarn_table_snapshot_since(struct tarn_op *op,
                                                        struct tarn_table *table,
                                                        const struct tarn_table_view *view,
                                                        int64_t time_ms, int64_t *id);

struct tarn_consumer {
    struct tarn_slice id;
    int64_t next_snapshot;
    int64_t time_ms; /* of its file; 0: not known */
};
/* INVALID_ARGUMENT for an id that is no name of a file. */
TARN_MUST struct tarn_status *tarn_consumer_check_id(struct tarn_slice id);
/* In order of id. A file that says nothing is left out, with a warning in the log. */
TARN_MUST struct tarn_status *tarn_table_consumers(struct tarn_op *op, struct tarn_table *table,
                                                   struct tarn_consumer **out, size_t *count);
TARN_MUST struct tarn_status *tarn_table_find_consumer(struct tarn_op *op, struct tarn_table *table,
                                                       struct tarn_slice id, bool *found,
                                                       struct tarn_consumer *out);
/* Durable when it returns. */
TARN_MUST struct tarn_status *tarn_table_set_consumer(struct tarn_op *op, struct tarn_table *table,
                                                      struct tarn_slice id, int64_t next_snapshot);
TARN_MUST struct tarn_status *tarn_table_drop_consumer(struct tarn_op *op, struct tarn_table *table,
                                                       struct tarn_slice id);

/* The bytes of such a file. INVALID_ARGUMENT where they name no snapshot. */
TARN_MUST struct tarn_status *tarn_consumer_decode(struct tarn_slice json, int64_t *next_snapshot);
void tarn_consumer_encode(int64_t next_snapshot, struct tarn_buf *out); /* appends */

#endif
