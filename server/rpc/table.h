/* table - what the files of TableService share. */
#ifndef TARN_RPC_TABLE_H
#define TARN_RPC_TABLE_H

#include "rpc/internal.h"
#include "tarn/v1/table.pb-c.h"

/* --- messages, built in the op's arena (data_file.c, table.c) --- */
Tarn__V1__DataFile *tarn_rpc__put_file(struct tarn_op *op, const struct tarn_data_file *file);
/* Plans have a million splits: these are written without the message in between (file_bytes.c). What all of a bucket
 * have in common, in `out` … */
void tarn_rpc__split_head(const struct tarn_split *split, struct tarn_slice path,
                          int64_t snapshot_id, struct tarn_buf *out);
/* … and one of them, as a field, with its files, then those of before. Appends. */
void tarn_rpc__add_split(struct tarn_buf *out, uint32_t field, struct tarn_slice head,
                         const struct tarn_split *split, const struct tarn_plan_bytes *files);
/* A field of bytes: its key, its size, the bytes. */
void tarn_rpc__add_bytes_field(struct tarn_buf *out, uint32_t field, struct tarn_slice bytes);
struct tarn_data_file tarn_rpc__take_file(struct tarn_op *op, const Tarn__V1__DataFile *in);
Tarn__V1__Snapshot *tarn_rpc__put_snapshot(struct tarn_op *op, const struct tarn_snapshot *s);

TARN_MUST struct tarn_status *tarn_rpc__take_commit(struct tarn_op *op,
                                                    const Tarn__V1__CommitRequest *q,
                                                    struct tarn_commit_request *out);
TARN_MUST struct tarn_status *tarn_rpc__take_entries(struct tarn_op *op,
                                                     Tarn__V1__FileEntry *const *in, size_t count,
                                                     const struct tarn_manifest_entry **out);
/* False: there is nothing to say. */
bool tarn_rpc__put_backlog(const struct tarn_backlog *backlog, Tarn__V1__Backlog *out);
void tarn_rpc__put_commit(const struct tarn_commit_result *result, Tarn__V1__CommitResponse *out);

/* --- methods that have a file of their own --- */
TARN_MUST struct tarn_status *tarn_rpc__get_commit(struct tarn_op *op, struct tarn_service *service,
                                                   const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__commit_tables(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__filter_committed(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         const void *request, void *response);
void tarn_rpc__commit(struct tarn_op *op, struct tarn_service *service, const void *request,
                      struct tarn_rpc__run *run);
TARN_MUST struct tarn_status *tarn_rpc__plan(struct tarn_op *op, struct tarn_rpc *rpc,
                                             struct tarn_call *call);
TARN_MUST struct tarn_status *tarn_rpc__renew_pin(struct tarn_op *op, struct tarn_service *service,
                                                  const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__subscribe(struct tarn_op *op, struct tarn_rpc *rpc,
                                                  struct tarn_call *call);
TARN_MUST struct tarn_status *tarn_rpc__list_consumers(struct tarn_op *op,
                                                       struct tarn_service *service,
                                                       const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__set_consumer(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__drop_consumer(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__create_tag(struct tarn_op *op, struct tarn_service *service,
                                                   const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__list_tags(struct tarn_op *op, struct tarn_service *service,
                                                  const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__drop_tag(struct tarn_op *op, struct tarn_service *service,
                                                 const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__roll_back(struct tarn_op *op, struct tarn_service *service,
                                                  const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__list_partitions(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__create_partitions(struct tarn_op *op,
                                                          struct tarn_service *service,
                                                          const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__mark_partitions(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__drop_partitions(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__roll_back_schema(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__create_branch(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__list_branches(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__rename_branch(struct tarn_op *op,
                                                      struct tarn_service *service,
                                                      const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__drop_branch(struct tarn_op *op,
                                                    struct tarn_service *service,
                                                    const void *request, void *response);
TARN_MUST struct tarn_status *tarn_rpc__fast_forward(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     const void *request, void *response);

#endif
