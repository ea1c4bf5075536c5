/*
 * partition_notes - what is said of a table's partitions besides their files: that one exists though it has none, and that one is done.
 *
 * Truth    an object of the warehouse for each table and branch that has notes, .tarn/partitions/<table's uuid>/main or branch-NAME:
 *          {"partitions": [{"path": "dt=2026-01-31/hour=3/", "created": ms, "done": ms, "done_at": snapshot}]}. It goes with its table or branch.
 * Shape    path: of the partition's folder (format/partition.h), escaped, with a slash at its end: one for each partition.
 * Errors   OBJECT_DAMAGED; TOO_LARGE where there would be more than TARN_PARTITION_NOTES_MAX.
 */
#ifndef TARN_CATALOG_PARTITION_NOTES_H
#define TARN_CATALOG_PARTITION_NOTES_H

#include "catalog/catalog.h"

#define TARN_PARTITION_NOTES_MAX 100000

struct tarn_partition_note {
    struct tarn_slice path;
    int64_t created_ms; /* somebody made it; 0: nobody did, it is there as long as it has files */
    int64_t done_ms;    /* 0: it isn't done */
    int64_t done_at;    /* the latest snapshot when it was marked */
};
/* In order of path. */
TARN_MUST struct tarn_status *tarn_catalog_partition_notes(struct tarn_op *op,
                                                           struct tarn_catalog *catalog,
                                                           struct tarn_table *table,
                                                           struct tarn_partition_note **out,
                                                           size_t *count);
/* Is told what there is, and gives in its place what there shall be (in the op's arena, any order); the same pointer: nothing changes. */
typedef struct tarn_status *(*tarn_partition_notes_fn)(void *arg, struct tarn_op *op,
                                                       struct tarn_partition_note **notes,
                                                       size_t *count);
/* One after the other. TABLE_NOT_FOUND where the table is gone. */
TARN_MUST struct tarn_status *tarn_catalog_change_partition_notes(struct tarn_op *op,
                                                                  struct tarn_catalog *catalog,
                                                                  struct tarn_table *table,
                                                                  tarn_partition_notes_fn change,
                                                                  void *arg);
/* All of the table, or of this branch. */
TARN_MUST struct tarn_status *tarn_catalog_forget_partition_notes(struct tarn_op *op,
                                                                  struct tarn_catalog *catalog,
                                                                  struct tarn_table *table);

#endif
