/*
 * plan - the splits of a plan as they stream in: what a reader of files wants to know, without a message for each file.
 *
 * Shape    tarn_client_plan_next gives the splits of one message after the other, the summary stands at the end. A plan
 *          of a million files takes a second or less this way; as messages of the protobuf library it takes several.
 * Memory   splits and all they point to are valid until the next call.
 * Errors   as of a stream; INTERNAL where the server's bytes are no plan.
 */
#ifndef TARN_CLIENT_PLAN_H
#define TARN_CLIENT_PLAN_H

#include "tarn/client.h"
#include "tarn/v1/table.pb-c.h"

#define TARN_CLIENT_NONE INT64_MIN /* of optional numbers */

struct tarn_client_stats {
    struct tarn_slice min, max; /* serialized rows */
    const int64_t *null_counts; /* -1: not known */
    size_t count;
};
struct tarn_client_file {
    struct tarn_slice name, min_key, max_key;
    int64_t size, row_count, min_sequence, max_sequence, schema_id;
    int32_t level, source;
    int64_t creation_time_ms, delete_row_count, first_row_id; /* or NONE */
    struct tarn_client_stats key_stats, value_stats;          /* where the request asked for them */
    bool has_value_stats_columns;
    const struct tarn_slice *value_stats_columns, *extra_files;
    size_t value_stats_column_count, extra_file_count;
    struct tarn_slice embedded_index, external_path; /* data NULL: none */
};
struct tarn_client_split {
    struct tarn_slice partition; /* serialized row */
    int32_t bucket, total_buckets;
    bool raw, is_changelog;
    struct tarn_slice path; /* folder of the bucket, relative to the table */
    struct tarn_client_file *files, *before_files;
    size_t file_count, before_count;
    int64_t snapshot_id;
};

struct tarn_client_plan;
TARN_MUST struct tarn_status *tarn_client_plan_begin(struct tarn_client *client, struct tarn_op *op,
                                                     const Tarn__V1__PlanRequest *request,
                                                     struct tarn_client_plan **out);
/* *count 0: that was all. */
TARN_MUST struct tarn_status *tarn_client_plan_next(struct tarn_client_plan *plan,
                                                    const struct tarn_client_split **out,
                                                    size_t *count);
const Tarn__V1__PlanSummary *tarn_client_plan_summary(
    const struct tarn_client_plan *plan);                  /* NULL before the end */
void tarn_client_plan_free(struct tarn_client_plan *plan); /* cancels what is unfinished */
void tarn_client_plan_drop(struct tarn_client_plan **plan);
/* The splits of one PlanResponse's bytes, in the arena; *summary: the bytes of its summary, or absent. For tests. */
TARN_MUST struct tarn_status *tarn_client_plan_decode(struct tarn_slice bytes,
                                                      struct tarn_arena *arena,
                                                      struct tarn_client_split **out, size_t *count,
                                                      struct tarn_slice *summary);

#endif
