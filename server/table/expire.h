/*
 * expire - snapshots that nobody keeps any more go, and what only they name.
 *
 * Which    Paimon's rule (docs/format.md, "Expiry"): by count and age, as the table's options or the request say; never what a consumer has
 *          still to read, a pin holds, or the caller says is being read.
 * What     data files that the expired ones saw last, their changelog files, manifests, lists, index files and statistics that nothing else
 *          names: no snapshot that stays, no tag and no branch. Then their own files, the oldest first.
 * Crash    at any moment leaves a table that is whole from its earliest snapshot on; the next call finishes.
 * Threads  any that may wait, one call a table at a time (BUSY). Commits go on beside it.
 */
#ifndef TARN_TABLE_EXPIRE_H
#define TARN_TABLE_EXPIRE_H

#include "table/table.h"

#define TARN_EXPIRE_OPTION INT64_MIN /* what the table's option says */

struct tarn_expire_request {
    int64_t
        keep_last; /* snapshots; TARN_EXPIRE_OPTION, or at least 1. Without older_than_ms no more than these stay */
    int64_t older_than_ms; /* younger ones stay; TARN_EXPIRE_OPTION, or at least 0 */
    int64_t now_ms;        /* wall clock; 0: what it says */
    int64_t keep_from;     /* this snapshot and later ones are being read; INT64_MAX: none is */
    bool dry_run;          /* counts what would go */
};
struct tarn_expiry {
    int64_t from, to;       /* snapshots from <= id < to went; equal: none */
    int64_t snapshot_count; /* this and the following: removed, or what would be */
    int64_t data_file_count, data_byte_count, changelog_file_count, manifest_count,
        index_file_count, statistics_count;
    int64_t outside_count; /* data files that lie outside of the table's store, and stay */
    bool is_held;          /* by a consumer, a pin or a task */
    const char *kept_by;   /* why snapshot `to` stays; in the op's arena */
    int64_t
        next_ms; /* wall clock: until then no snapshot gets old enough; INT64_MAX: age isn't what they wait for */
};

/* UNSUPPORTED_FEATURE: the table keeps changelogs longer than snapshots, or has such. BUSY: another expiry of it runs, or tags and
 * branches changed meanwhile. *_MALFORMED, OBJECT_NOT_FOUND: something that may name files can't be read, so that nothing is deleted. */
TARN_MUST struct tarn_status *tarn_table_expire(struct tarn_op *op, struct tarn_table *table,
                                                const struct tarn_expire_request *request,
                                                struct tarn_expiry *out);

/* What a table's options say of it. */
struct tarn_retention {
    int64_t least, most; /* snapshots that stay in any case; at most so many stay */
    int64_t time_ms;     /* younger ones stay */
    const char
        *longer_changelog; /* the option that keeps changelogs longer than snapshots; NULL: none */
};
TARN_MUST struct tarn_status *tarn_retention_parse(const struct tarn_schema *schema,
                                                   struct tarn_retention *out);

#endif
