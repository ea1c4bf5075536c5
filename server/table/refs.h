/*
 * refs - tags and branches of a table, and its way back: to a snapshot that is there, or that a tag kept.
 *
 * Memory   what is found lies in the op's arena.
 * Threads  any that may wait.
 */
#ifndef TARN_TABLE_REFS_H
#define TARN_TABLE_REFS_H

#include "format/tag.h"
#include "table/table.h"

/* --- tags --- */

/* version: by id or time, or the latest. retained_ms: how long the tag is kept; TARN_SNAPSHOT_NONE: until it is dropped. The snapshot is
 * there when it returns, and the tag durable. TAG_EXISTS, SNAPSHOT_NOT_FOUND, SNAPSHOT_EXPIRED, NO_SNAPSHOT_AT, NAME_INVALID. */
TARN_MUST struct tarn_status *tarn_table_create_tag(struct tarn_op *op, struct tarn_table *table,
                                                    struct tarn_slice name,
                                                    struct tarn_version version,
                                                    int64_t retained_ms, struct tarn_tag *out);
/* Names in order of their bytes, those that begin with `prefix`. */
TARN_MUST struct tarn_status *tarn_table_tag_names(struct tarn_op *op, struct tarn_table *table,
                                                   struct tarn_slice prefix,
                                                   struct tarn_slice **out, size_t *count);
/* TAG_NOT_FOUND. */
TARN_MUST struct tarn_status *tarn_table_find_tag(struct tarn_op *op, struct tarn_table *table,
                                                  struct tarn_slice name, struct tarn_tag *out);
/* What only this tag kept of an expired snapshot stays behind, as orphans. TAG_NOT_FOUND. */
TARN_MUST struct tarn_status *tarn_table_drop_tag(struct tarn_op *op, struct tarn_table *table,
                                                  struct tarn_slice name);

/* --- roll-back --- */

struct tarn_roll_back {
    struct tarn_version to; /* by id, tag or time */
    int64_t only_from; /* only where this snapshot is the latest; TARN_SNAPSHOT_NONE: whatever is */
    bool dry_run;      /* says what would go */
    /* Only where the latest snapshot is a compaction by this user, without a changelog, that nobody has passed: no tag, pin or consumer.
     * Absent: whatever it is. COMMIT_CONFLICT. */
    struct tarn_slice only_compaction_by;
};
struct tarn_roll_back_result {
    int64_t from, to;              /* ids of the latest snapshot before and after */
    const struct tarn_slice *tags; /* of snapshots above `to`: they go too */
    size_t tag_count;
    bool restored; /* the snapshot had expired: a tag gives it back, and it is the only one then */
};
/* Snapshots above the target go, the newest first; their receipts are void, streams that had them end with SNAPSHOT_ROLLED_BACK. Data
 * files stay behind, as orphans. In order with commits: those that wait are made on top of what is left. Cut off half way it
 * leaves a table at some snapshot in between, and the same call goes on. To before the table was replaced it takes the schema back, too. SNAPSHOT_TAKEN where only_from is not the latest. */
TARN_MUST struct tarn_status *tarn_table_roll_back(struct tarn_op *op, struct tarn_table *table,
                                                   const struct tarn_roll_back *request,
                                                   struct tarn_roll_back_result *out);

/* --- branches: of the main branch's table; who keeps tables sees that nobody creates, drops or moves one meanwhile (catalog/branch.c).
 * A branch is a folder branch/branch-NAME with snapshots, schemas, tags and consumers of its own; files it shares with the table. --- */

/* NAME_INVALID: a name of a file without $, and neither "main" nor digits only. */
TARN_MUST struct tarn_status *tarn_branch_check_name(struct tarn_slice name);
TARN_MUST struct tarn_status *tarn_table_branches(struct tarn_op *op, struct tarn_table *table,
                                                  struct tarn_slice **out,
                                                  size_t *count); /* in order */
TARN_MUST struct tarn_status *tarn_table_has_branch(struct tarn_op *op, struct tarn_table *table,
                                                    struct tarn_slice name, bool *out);
/* With the tag, its snapshot and the schemas up to its own; without one (absent) with all schemas and no snapshot. BRANCH_EXISTS,
 * TAG_NOT_FOUND. Cut off it leaves a branch that can be dropped. */
TARN_MUST struct tarn_status *tarn_table_create_branch(struct tarn_op *op, struct tarn_table *table,
                                                       struct tarn_slice name,
                                                       struct tarn_slice tag);
/* The folder goes; data files of its own stay behind, as orphans. BRANCH_NOT_FOUND. */
TARN_MUST struct tarn_status *tarn_table_remove_branch(struct tarn_op *op, struct tarn_table *table,
                                                       struct tarn_slice name);
TARN_MUST struct tarn_status *tarn_table_rename_branch(struct tarn_op *op, struct tarn_table *table,
                                                       struct tarn_slice name,
                                                       struct tarn_slice to);
/* Snapshots of the table that went; to 0: none. */
struct tarn_undone {
    int64_t from, to;
};
/* From the first snapshot on in which they differ, the table's history becomes the branch's, with its schemas and tags from there on. As a
 * roll-back to where they part, and then commits of others: cut off it leaves a history in between, and the same call goes on. */
TARN_MUST struct tarn_status *tarn_table_fast_forward(struct tarn_op *op, struct tarn_table *table,
                                                      struct tarn_table *branch,
                                                      struct tarn_undone *undone);

#endif
