/* refs - tags, branches and roll-backs: what every door asks for. As service.h; lists lie in the op's arena. */
#ifndef TARN_SERVICE_REFS_H
#define TARN_SERVICE_REFS_H

#include "service/service.h"
#include "table/refs.h"

TARN_MUST struct tarn_status *tarn_service_create_tag(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_slice name, struct tarn_version version, int64_t retained_ms, struct tarn_tag *out);
/* Those whose names begin with `prefix`, in order of name; a page goes on behind the name that its token is. */
TARN_MUST struct tarn_status *tarn_service_list_tags(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     struct tarn_table_ref ref,
                                                     struct tarn_slice prefix,
                                                     struct tarn_page page, struct tarn_tag **out,
                                                     size_t *count, const char **next_token);
TARN_MUST struct tarn_status *tarn_service_find_tag(struct tarn_op *op,
                                                    struct tarn_service *service,
                                                    struct tarn_table_ref ref,
                                                    struct tarn_slice name, struct tarn_tag *out);
TARN_MUST struct tarn_status *tarn_service_drop_tag(struct tarn_op *op,
                                                    struct tarn_service *service,
                                                    struct tarn_table_ref ref,
                                                    struct tarn_slice name);
TARN_MUST struct tarn_status *tarn_service_roll_back(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     struct tarn_table_ref ref,
                                                     const struct tarn_roll_back *request,
                                                     struct tarn_roll_back_result *out);
/* As tarn_table_roll_back_schema. */
TARN_MUST struct tarn_status *tarn_service_roll_back_schema(struct tarn_op *op,
                                                            struct tarn_service *service,
                                                            struct tarn_table_ref ref, int64_t to,
                                                            int64_t *from);
/* For writers that lost to a compaction of the daemon's and ask on their own: back to the snapshot before `from`, which must be the latest, only
 * where that undoes nothing but such a compaction, and nobody has gone on from it. COMMIT_CONFLICT, SNAPSHOT_TAKEN. */
TARN_MUST struct tarn_status *tarn_service_undo_compaction(struct tarn_op *op,
                                                           struct tarn_service *service,
                                                           struct tarn_table_ref ref, int64_t from,
                                                           struct tarn_roll_back_result *out);

/* --- branches of a table; ref names the table itself --- */
TARN_MUST struct tarn_status *tarn_service_list_branches(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_table_ref ref,
                                                         struct tarn_slice **out, size_t *count);
TARN_MUST struct tarn_status *tarn_service_create_branch(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_table_ref ref,
                                                         struct tarn_slice branch,
                                                         struct tarn_slice tag /* or absent */);
TARN_MUST struct tarn_status *tarn_service_drop_branch(struct tarn_op *op,
                                                       struct tarn_service *service,
                                                       struct tarn_table_ref ref,
                                                       struct tarn_slice branch);
TARN_MUST struct tarn_status *tarn_service_rename_branch(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_table_ref ref,
                                                         struct tarn_slice branch,
                                                         struct tarn_slice to);
/* *snapshot_id: the latest of the table afterwards; *undone: what it had, and has no more. */
TARN_MUST struct tarn_status *tarn_service_fast_forward(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    struct tarn_slice branch, int64_t *snapshot_id, struct tarn_undone *undone);

#endif
