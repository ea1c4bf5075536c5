/*
 * hms - a Hive metastore as a mirror: the databases, tables and partitions of the catalog, pushed over Thrift, as Paimon's
 * own HiveCatalog would write them, so that Hive and older engines see the tables. The daemon stays the source.
 *
 * Life     one pass at a time, as a job of the pool, never in a caller's thread: a small one soon after something changed, a
 *          whole one (the check) at start, every check_ms, and after the metastore was away: it compares all, and repairs. README.md
 *          has the passes.
 * Owner    what is made there carries parameters tarn.warehouse, tarn.table and tarn.fingerprint. What does not is never changed
 *          and never dropped, data never deleted: tables are EXTERNAL_TABLE.
 * Trouble  a metastore that is away, slow, or answers nonsense costs nobody anything: the pass ends, the next one comes with
 *          back-off. One that refuses a single table gets it again at the next check, or when the table changes.
 * Threads  any.
 */
#ifndef TARN_HMS_H
#define TARN_HMS_H

#include "catalog/catalog.h"

struct tarn_hms;
struct tarn_hms_options {
    struct tarn_exec *exec;
    struct tarn_catalog *catalog;
    struct tarn_store *store; /* whose URI is the mark, and the beginning of locations */
    const char *uri;          /* thrift://HOST:PORT[,thrift://HOST:PORT]..., asked in this order */
    const char *user; /* owner of what is made there; "": the account this process runs under */
    int64_t check_ms; /* between two checks */
    int64_t connect_timeout_ms; /* of one address */
    int64_t timeout_ms;         /* of one call, whole */
};
/* CONFIG_INVALID: not such a list. */
TARN_MUST struct tarn_status *tarn_hms_check_uri(const char *uri);
/* The strings are copied. The first pass begins by itself. */
struct tarn_hms *tarn_hms_new(const struct tarn_hms_options *options);
void tarn_hms_free(struct tarn_hms *hms); /* ends a running pass; NULL is fine */

/* Neither waits, both may be called from any lock's inside: a table has a new snapshot; a name or a schema changed. */
void tarn_hms_notice(struct tarn_hms *hms, struct tarn_table *table);
void tarn_hms_catalog_changed(struct tarn_hms *hms);

#define TARN_HMS_PROBLEMS_MAX 20
struct tarn_hms_problem {
    const char *table, *problem; /* "db.t", why it isn't pushed */
};
struct tarn_hms_info {
    const char *uri;
    const char *state;   /* "starting", "pushing", "in step" or "down" */
    const char *failure; /* down: why; else "" */
    int64_t in_step_ms;  /* wall clock, when the last pass ended well; 0: none has */
    int64_t database_count, table_count; /* that are there and ours */
    int64_t refused_count;               /* tables and databases that can't be pushed */
    struct tarn_hms_problem *problems;   /* some of them, by name */
    size_t problem_count;
};
/* Lies in the op's arena. */
void tarn_hms_info(struct tarn_op *op, struct tarn_hms *hms, struct tarn_hms_info *out);

#endif
