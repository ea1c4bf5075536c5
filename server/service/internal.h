/*
 * internal - what the files of room `service` share: finding tables, names, descriptions.
 */
#ifndef TARN_SERVICE_INTERNAL_H
#define TARN_SERVICE_INTERNAL_H

#include <stdio.h>

#include "catalog/entries.h"
#include "service/service.h"

/* UTF-8 without NUL: what may be handed on as a name. */
TARN_MUST struct tarn_status *tarn_service__check_name(const char *what, struct tarn_slice name);
/* Asks access, then finds the table. *out is owned. */
TARN_MUST struct tarn_status *tarn_service__table(struct tarn_op *op, struct tarn_service *service,
                                                  struct tarn_table_ref ref,
                                                  enum tarn_action action, struct tarn_table **out);
/* The same for those that have to do with tables of all kinds: *entry, in the op's arena, where it isn't one of Paimon's; else NULL,
 * and *table is owned. */
TARN_MUST struct tarn_status *tarn_service__find(struct tarn_op *op, struct tarn_service *service,
                                                 struct tarn_table_ref ref, enum tarn_action action,
                                                 struct tarn_table **table,
                                                 struct tarn_catalog_entry **entry);
/* What is known of one that is nothing but an entry. */
void tarn_service__entry_facts(struct tarn_op *op, struct tarn_service *service,
                               const struct tarn_catalog_entry *entry,
                               struct tarn_table_facts *out);
/* Asks access for the warehouse (database absent) or a database. */
TARN_MUST struct tarn_status *tarn_service__check(struct tarn_op *op, struct tarn_service *service,
                                                  enum tarn_action action,
                                                  struct tarn_slice database);
/* Asks access for a table; who may do it to the table may do it to its branches. */
TARN_MUST struct tarn_status *tarn_service__check_table(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        enum tarn_action action,
                                                        struct tarn_slice database,
                                                        struct tarn_slice object);
size_t tarn_service__page_size(struct tarn_page page);
/* A page's pattern, taken apart. INVALID_ARGUMENT. */
struct tarn_pattern {
    struct tarn_slice text; /* what a name begins with, or is */
    bool is_whole;
};
TARN_MUST struct tarn_status *tarn_service__pattern(struct tarn_op *op, struct tarn_slice pattern,
                                                    struct tarn_pattern *out);
bool tarn_service__matches(const struct tarn_pattern *pattern, struct tarn_slice name);

const char *tarn_service__partition_text(struct tarn_op *op, const struct tarn_schema *schema,
                                         struct tarn_slice partition);
/* The folder of a bucket relative to the table. */
TARN_MUST struct tarn_status *tarn_service__bucket_path(struct tarn_op *op,
                                                        const struct tarn_schema *schema,
                                                        const struct tarn_options *options,
                                                        struct tarn_slice partition, int32_t bucket,
                                                        const char **out);
/* With the schemas that `files` were written by, and `reading`. */
TARN_MUST struct tarn_status *tarn_service__describe(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     struct tarn_table *table,
                                                     const struct tarn_schema *reading,
                                                     const int64_t *schema_ids, size_t count,
                                                     struct tarn_table_description *out);
/* Files carry the wall clock of their writer's zone; the daemon's own is the best guess at it. 0: it isn't said. */
int64_t tarn_service__epoch_of_local(int64_t local_ms);
struct tarn_slice tarn_service__pack(struct tarn_op *op, const struct tarn_manifest_entry *entry,
                                     bool with_stats);
TARN_MUST struct tarn_status *tarn_service__unpack(struct tarn_op *op,
                                                   const struct tarn_slice *packed, size_t count,
                                                   struct tarn_manifest_entry **out);
/* --- commits (commit.c, messages.c) --- */
TARN_MUST struct tarn_status *tarn_service__check_commit(struct tarn_op *op,
                                                         struct tarn_table *table,
                                                         const struct tarn_table_view *view,
                                                         struct tarn_commit_request *request);
/* The request's serialized messages as its two parts. */
TARN_MUST struct tarn_status *tarn_service__take_messages(struct tarn_op *op,
                                                          const struct tarn_table_view *view,
                                                          struct tarn_commit_request *request);
/* Is this part of a commit to several tables that isn't finished yet? */
bool tarn_service__intent_open(struct tarn_service *service, const char *uuid,
                               struct tarn_slice user, int64_t identifier);
TARN_MUST struct tarn_status *tarn_service__facts(struct tarn_op *op, struct tarn_service *service,
                                                  struct tarn_table *table, bool with_schema,
                                                  struct tarn_table_facts *out);

/* --- data.c --- */
/* What a worker needs to read the plan's files, and a worker. */
TARN_MUST struct tarn_status *tarn_service__scan_of_plan(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_table *table,
                                                         const struct tarn_plan *plan,
                                                         struct tarn_scan *out);
/* TABLE_NOT_FOUND where the table isn't any more what was described to a worker, which wrote there. */
TARN_MUST struct tarn_status *tarn_service__still_there(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table *table,
    const struct tarn_table_description *description);
/* --- work.c --- */
TARN_MUST struct tarn_status *tarn_service__pack_indexes(struct tarn_op *op,
                                                         const struct tarn_index_file *files,
                                                         size_t count, struct tarn_slice *out);
/* DELETEs by name, then ADDs. INTERNAL for files of another type. */
TARN_MUST struct tarn_status *tarn_service__unpack_indexes(
    struct tarn_op *op, struct tarn_slice added, const struct tarn_slice *removed, size_t count,
    struct tarn_index_file **out, size_t *out_count);

#endif
