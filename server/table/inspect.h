/*
 * inspect - what lies in a table's folder, is it whole, and what of it would not work here? For folders that others made.
 *
 * Reads the folder and nothing else, and writes nothing, neither there nor in the state: every schema, snapshot, manifest list, manifest
 * and index manifest, hints, tags, branches and consumers; of data files it looks whether they are there, in their size. What others
 * expire or roll back meanwhile is no finding.
 *
 * Memory   what is found lies in the op's arena.
 * Threads  any that may wait.
 */
#ifndef TARN_TABLE_INSPECT_H
#define TARN_TABLE_INSPECT_H

#include "table/table.h"

#define TARN_FINDINGS_MAX 200         /* of a table; of more only the number is told */
#define TARN_INSPECT_SAMPLE_FILES 100 /* of the latest snapshot */

enum tarn_finding_kind {
    TARN_FINDING_DAMAGE, /* something is missing or can't be read */
    TARN_FINDING_LIMIT,  /* it is whole, and this version does less with it than its engine */
    TARN_FINDING_NOTE    /* worth knowing */
};
struct tarn_finding {
    enum tarn_finding_kind kind;
    const char *where; /* below the warehouse's root */
    const char *what;
    const char *advice; /* what to do */
};
enum tarn_inspect_files {
    TARN_INSPECT_SAMPLE, /* some of the latest snapshot's, chosen by their names: the same at each call */
    TARN_INSPECT_ALL, /* of all snapshots and tags; takes some 200 bytes of memory a file */
    TARN_INSPECT_NONE
};
struct tarn_inspection { /* the branches' are counted in */
    int64_t schema_count, tag_count, branch_count, consumer_count, manifest_count;
    int64_t earliest_id, latest_id, snapshot_count; /* of the main branch; 0: none */
    int64_t file_count;                             /* its latest snapshot's; -1: not known */
    int64_t looked_count;                           /* files that were looked at */
    bool is_write_only; /* option write-only: its writers don't compact */
    bool can_compact;   /* it has no option or column that Tarn can't merge or write */
    const struct tarn_finding *findings;
    size_t finding_count;
    int64_t damage_count, limit_count, left_off_count; /* of those too many to be told as well */
};
/* Fails only where the store can't be asked; whatever is wrong with the folder is a finding. */
TARN_MUST struct tarn_status *tarn_table_inspect(struct tarn_op *op,
                                                 const struct tarn_table_env *env, const char *path,
                                                 const char *name, enum tarn_inspect_files files,
                                                 struct tarn_inspection *out);

#endif
