/*
 * inspect_internal - what the two files of an inspection share.
 */
#ifndef TARN_TABLE_INSPECT_INTERNAL_H
#define TARN_TABLE_INSPECT_INTERNAL_H

#include "table/index.h"
#include "table/inspect.h"

struct tarn_file_look; /* inspect_files.c */

struct tarn_inspect {
    struct tarn_op *op;
    struct tarn_table *table; /* bare: of the branch that is looked at */
    enum tarn_inspect_files files;
    struct tarn_inspection found;
    struct tarn_finding *list;
    struct tarn_map *seen; /* names of manifests and lists that were read, of all branches */
    /* of this branch */
    struct tarn_map *schemas; /* those that can be read, by id */
    const struct tarn_schema *latest;
    struct tarn_options options; /* of it */
    bool has_options;
    struct tarn_range range;
    struct tarn_manifests below, this; /* of the last two snapshots; no arena: unreadable */
    struct tarn_file_look *look;       /* NULL: none yet */
};

void tarn_inspect__find(struct tarn_inspect *in, enum tarn_finding_kind kind, const char *where,
                        const char *advice, const char *format, ...) TARN_PRINTF(5, 6);
/* What was found since doesn't count. */
void tarn_inspect__take_back(struct tarn_inspect *in, const struct tarn_inspection *before);
TARN_MUST struct tarn_status *tarn_inspect__judge(struct tarn_inspect *in, struct tarn_status *s,
                                                  const char *where, const char *what, bool *bad);
bool tarn_inspect__has_schema(const struct tarn_inspect *in, int64_t id);

/* --- what a snapshot names (inspect_files.c) --- */
struct tarn_version_check {
    const struct tarn_snapshot *snapshot;
    const char *name, *where; /* "snapshot 7", its file */
    bool is_first, is_latest; /* of history */
    bool is_tag;
};
/* Its schema, lists, manifests and index files; which data files they name is kept for look_at_files. In in->this its manifests. */
TARN_MUST struct tarn_status *tarn_inspect__version(struct tarn_inspect *in,
                                                    const struct tarn_version_check *check);
/* Are the data files there that this branch's versions named? Ends in->look. */
TARN_MUST struct tarn_status *tarn_inspect__look_at_files(struct tarn_inspect *in);

#endif
