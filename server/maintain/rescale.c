#include "maintain/internal.h"

#define POSTPONE_BUCKETS_MAX 10000 /* that are made by size */

/* Partitions whose bucket count isn't the table's: which those are, and what a worker needs to rewrite one. */

/* --- in each other's way --- */

static bool is_beside(const struct task *a, const struct task *b)
{
    return a->table == b->table &&
           tarn_slice_equal(tarn_buf_slice(&a->partition), tarn_buf_slice(&b->partition));
}

const char *tarn_maintain__held_by_rescale(struct tarn_maintain *m, const struct task *t)
{
    if (m->rescale_count == 0)
        return NULL;
    if (!t->rescale)
        return tarn_maintain__open_task(m, t->table, tarn_buf_slice(&t->partition),
                                        TARN_RESCALE_BUCKET) == NULL
                   ? NULL
                   : "rescale";
    for (size_t i = 0; i < m->open_count; i++)
        if (m->open[i]->state == TASK_LEASED && !m->open[i]->rescale && is_beside(m->open[i], t))
            return "compact";
    return NULL;
}

static bool goes_alone(struct tarn_maintain *m, struct tarn_table *table,
                       const struct tarn_manifest_entry *entries, size_t count)
{
    for (size_t i = 0; i < count && m->rescale_count > 0; i++) {
        const struct task *t =
            tarn_maintain__open_task(m, table, entries[i].partition, TARN_RESCALE_BUCKET);
        if (t != NULL && t->state == TASK_LEASED && t->attempts >= TARN_RESCALE_TRIES_ALONE)
            return true;
    }
    return false;
}

void tarn_maintain_let_rescale(struct tarn_op *op, struct tarn_maintain *m,
                               struct tarn_table *table, const struct tarn_manifest_entry *entries,
                               size_t count, int64_t wait_ms)
{
    int64_t until = tarn_clock_mono_ms() + wait_ms;
    pthread_mutex_lock(&m->lock);
    while (goes_alone(m, table, entries, count) && tarn_clock_mono_ms() < until)
        if (!tarn_maintain__wait(m, op, until - tarn_clock_mono_ms()))
            break;
    pthread_mutex_unlock(&m->lock);
}

/* --- one partition --- */

struct tarn_status *tarn_maintain_may_rescale(const struct tarn_table_view *view, const char *table)
{
    const struct tarn_options *options = &view->options;
    if (options->bucket <= 0)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s has bucket = %d: only fixed buckets are rescaled", table,
                               options->bucket);
    TARN_TRY(tarn_options_check_write(options));
    TARN_TRY(tarn_options_check_merge(options));
    if (options->pk_clustering)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s has pk-clustering-override: it is not rescaled here",
                               table);
    if (options->deletion_vectors ||
        (view->has_snapshot && view->snapshot.index_manifest.data != NULL))
        return tarn_status_new(
            TARN_UNSUPPORTED_FEATURE,
            "table %s has deletion vectors (deletion-vectors.enabled): it is not "
            "rescaled here",
            table);
    return TARN_OK;
}

static bool is_to_rescale(const struct tarn_bucket_files *bucket, int32_t bucket_count)
{
    return bucket->bucket >= 0 && bucket->total_buckets > 0 &&
           bucket->total_buckets != bucket_count;
}

struct tarn_status *tarn_maintain__fill_rescale(struct tarn_op *op, struct tarn_table *table,
                                                struct tarn_slice partition, struct tarn_task *out,
                                                bool *nothing)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look_now(op, table, &view));
    TARN_TRY(tarn_maintain_may_rescale(view, tarn_table_name(table)));
    out->seen_id = view->has_snapshot ? view->snapshot.id : 0;
    struct tarn_bucket_files *buckets;
    size_t bucket_count, file_count = 0;
    TARN_TRY(tarn_table_buckets(op, table, partition, &buckets, &bucket_count));
    *nothing = true;
    for (size_t i = 0; i < bucket_count; i++) {
        *nothing = *nothing && !is_to_rescale(&buckets[i], view->options.bucket);
        file_count += buckets[i].file_count;
    }
    out->files = tarn_arena_calloc(op->arena, file_count + 1, sizeof *out->files);
    for (size_t i = 0; i < bucket_count && !*nothing; i++) {
        struct tarn_bucket_files files;
        if (buckets[i].bucket < 0)
            continue;
        TARN_TRY(tarn_table_bucket(op, table, partition, buckets[i].bucket, &files));
        for (size_t f = 0; f < files.file_count && out->file_count < file_count; f++)
            out->files[out->file_count++] = files.files[f];
    }
    out->rescale = true;
    out->partition = partition;
    out->bucket = TARN_RESCALE_BUCKET;
    out->output_level = out->top_level = view->options.level_count - 1;
    out->why = "rescale";
    return TARN_OK;
}

/* --- files that wait for buckets --- */

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Of a partition that has no buckets yet, by what waits for them (docs/format.md, "Postpone bucket"). */
static int32_t first_bucket_count(const struct tarn_options *options,
                                  const struct tarn_bucket_files *bucket)
{
    int64_t rows = 0, size = 0;
    if (options->postpone_bucket_count > 0)
        return options->postpone_bucket_count;
    for (size_t i = 0; i < bucket->file_count; i++) {
        rows += bucket->files[i].file.row_count;
        size += bucket->files[i].file.size;
    }
    int64_t count = options->postpone_rows > 0
                        ? divide_up(rows, options->postpone_rows)
                        : divide_up(size, TARN_MAX(options->postpone_size, (int64_t)1));
    return (int32_t)TARN_MAX((int64_t)1, TARN_MIN(count, (int64_t)POSTPONE_BUCKETS_MAX));
}

struct tarn_status *tarn_maintain__fill_postponed(struct tarn_table *table,
                                                  const struct tarn_table_view *view,
                                                  const struct tarn_bucket_files *bucket,
                                                  struct tarn_task *out)
{
    TARN_TRY(tarn_table_bucket_count(table, bucket->partition, &out->bucket_count));
    if (out->bucket_count == 0)
        out->bucket_count = first_bucket_count(&view->options, bucket);
    out->rescale = out->postponed = true;
    return TARN_OK;
}

/* --- all that are named --- */

struct partition_files { /* of one that is to be rescaled */
    struct tarn_slice partition;
    int32_t file_count;
    int64_t size;
};

static int64_t enqueue(struct tarn_maintain *m, const struct tarn_rescale_order *order,
                       const struct tarn_schema *schema, const struct partition_files *files)
{
    struct task *t =
        tarn_maintain__open_task(m, order->table, files->partition, TARN_RESCALE_BUCKET);
    if (t == NULL && m->open_count >= TARN_QUEUE_MAX)
        return 0;
    if (t == NULL) {
        t = tarn_maintain__new_task(m, order->table, schema, files->partition, TARN_RESCALE_BUCKET);
        t->rescale = t->ordered = true;
        t->why = "rescale";
        t->file_count = files->file_count;
        t->bytes = files->size;
        t->inputs = (struct tarn_score_inputs){.ordered = true,
                                               .pick_size = files->size,
                                               .file_count = files->file_count,
                                               .full_interval_ms = -1};
        tarn_maintain__open(m, t);
    }
    t->not_before_ms = 0;
    pthread_cond_broadcast(&m->changed);
    return t->id;
}

static struct tarn_status *order_partition(struct tarn_op *op, struct tarn_maintain *m,
                                           const struct tarn_rescale_order *order,
                                           const struct tarn_schema *schema,
                                           const struct partition_files *files,
                                           struct tarn_job_info *out)
{
    int64_t id = 0;
    pthread_mutex_lock(&m->lock);
    if (!order->dry_run)
        id = enqueue(m, order, schema, files);
    pthread_mutex_unlock(&m->lock);
    if (id == 0 && !order->dry_run)
        return tarn_status_new(TARN_BUSY, "%d tasks are waiting already", TARN_QUEUE_MAX);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_status_free(tarn_partition_print(schema, files->partition, &text));
    *out = (struct tarn_job_info){.id = id,
                                  .kind = "rescale",
                                  .bucket = -1,
                                  .file_count = files->file_count,
                                  .bytes = files->size,
                                  .why = "rescale",
                                  .state = id == 0 ? "planned" : "queued",
                                  .worker = "",
                                  .failure = "",
                                  .created_ms = tarn_clock_wall_ms()};
    out->table = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_name(order->table)));
    out->partition = tarn_arena_str(op->arena, tarn_buf_slice(&text));
    return TARN_OK;
}

/* The partition that begins at buckets[*at], which moves behind it; false: it has the count already. */
static bool take_partition(const struct tarn_bucket_files *buckets, size_t count, size_t *at,
                           int32_t bucket_count, struct partition_files *out)
{
    bool differs = false;
    *out = (struct partition_files){.partition = buckets[*at].partition};
    for (; *at < count && tarn_slice_equal(buckets[*at].partition, out->partition); (*at)++) {
        const struct tarn_bucket_files *b = &buckets[*at];
        differs = differs || is_to_rescale(b, bucket_count);
        for (size_t i = 0; i < b->file_count && b->bucket >= 0; i++) {
            out->file_count++;
            out->size += b->files[i].file.size;
        }
    }
    return differs;
}

struct tarn_status *tarn_maintain_rescale(struct tarn_op *op, struct tarn_maintain *m,
                                          const struct tarn_rescale_order *order,
                                          struct tarn_job_info **picks, size_t *count)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look_now(op, order->table, &view));
    TARN_TRY(tarn_maintain_may_rescale(view, tarn_table_name(order->table)));
    struct tarn_bucket_files *buckets;
    size_t bucket_count;
    TARN_TRY(tarn_table_buckets(op, order->table, tarn_slice_str(NULL), &buckets, &bucket_count));
    *picks = tarn_arena_calloc(op->arena, bucket_count + 1, sizeof **picks);
    *count = 0;
    for (size_t at = 0; at < bucket_count;) {
        struct partition_files files;
        if (!take_partition(buckets, bucket_count, &at, order->bucket_count, &files) ||
            !tarn_maintain__has_prefix(&view->schema, files.partition, order->prefix,
                                       order->prefix_count, op->arena))
            continue;
        TARN_TRY(order_partition(op, m, order, &view->schema, &files, &(*picks)[*count]));
        (*count)++;
    }
    return TARN_OK;
}
