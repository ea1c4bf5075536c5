#include "service/internal.h"

/* Compaction on demand, and the queue. */

#define ALL_BUCKETS (-1)      /* of a job: a rescale's */
#define PROGRESS_WAIT_MS 5000 /* at least so often the caller hears something */

/* --- which partitions --- */

static const struct tarn_partition_value *find_value(const struct tarn_partition_value *partition,
                                                     size_t count, struct tarn_slice column)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(partition[i].column, column))
            return &partition[i];
    return NULL;
}

static struct tarn_status *parse_value(struct tarn_op *op, const struct tarn_schema *schema,
                                       const struct tarn_partition_value *given,
                                       struct tarn_value *out)
{
    const struct tarn_field *field = &schema->fields[tarn_schema_find(schema, given->column)];
    if (given->is_null) {
        *out = (struct tarn_value){.is_null = true};
        return TARN_OK;
    }
    struct tarn_status *s = tarn_value_parse(field->type, given->value, op->arena, out);
    return s == TARN_OK ? TARN_OK
                        : tarn_status_wrap(s, "partition column %.*s", TARN_SLICE_ARG(field->name));
}

/* The values named must be those of the first so many partition keys, in any order. */
static struct tarn_status *make_prefix(struct tarn_op *op, const struct tarn_schema *schema,
                                       const struct tarn_partition_value *partition, size_t count,
                                       struct tarn_value **out)
{
    if (count > schema->partition_key_count)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "%zu partition values, the table has %zu keys", count,
                               schema->partition_key_count);
    *out = tarn_arena_calloc(op->arena, count + 1, sizeof **out);
    for (size_t i = 0; i < count; i++) {
        const struct tarn_partition_value *value =
            find_value(partition, count, schema->partition_keys[i]);
        if (value == NULL)
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "the partition values leave out %.*s; name the first keys",
                                   TARN_SLICE_ARG(schema->partition_keys[i]));
        TARN_TRY(parse_value(op, schema, value, &(*out)[i]));
    }
    return TARN_OK;
}

/* --- what became of the picked buckets --- */

struct compaction {
    struct tarn_op *op;
    struct tarn_maintain *maintain;
    struct tarn_catalog *catalog;
    struct tarn_table *table;
    const struct tarn_job_info *picks;
    size_t pick_count;
    int64_t *ids;
    size_t id_count;
    struct tarn_compact_progress progress;
    tarn_compact_fn tell;
    void *arg;
};

static bool picked(const struct compaction *c, const char *partition, int32_t bucket)
{
    for (size_t i = 0; i < c->pick_count; i++)
        if ((c->picks[i].bucket == bucket || c->picks[i].bucket == ALL_BUCKETS) &&
            strcmp(c->picks[i].partition, partition) == 0)
            return true;
    return false;
}

static struct tarn_status *count_files(const struct compaction *c, int64_t *out)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, c->op);
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(&op, c->table, &view));
    struct tarn_bucket_files *buckets;
    size_t count;
    TARN_TRY(tarn_table_buckets(&op, c->table, tarn_slice_str(NULL), &buckets, &count));
    *out = 0;
    for (size_t i = 0; i < count; i++)
        if (picked(c, tarn_service__partition_text(&op, &view->schema, buckets[i].partition),
                   buckets[i].bucket))
            *out += (int64_t)buckets[i].file_count;
    return TARN_OK;
}

static struct tarn_status *tell(struct compaction *c)
{
    struct tarn_status *s = c->tell(c->arg, c->op, &c->progress);
    c->progress.picks = NULL;
    c->progress.pick_count = 0;
    return s;
}

/* One wait under an op of its own: a long compaction must not fill the arena. */
static struct tarn_status *wait_once(struct compaction *c, bool *finished)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, c->op);
    struct tarn_compact_state state;
    TARN_TRY(tarn_maintain_wait(&op, c->maintain, c->ids, c->id_count, PROGRESS_WAIT_MS, &state));
    struct tarn_compact_progress *p = &c->progress;
    p->done = state.done;
    p->failed = state.failed;
    p->bytes_rewritten = state.bytes_rewritten;
    p->snapshot_id = state.last_snapshot_id;
    if (state.failure != NULL && p->failure == NULL)
        p->failure = tarn_arena_str(c->op->arena, tarn_slice_str(state.failure));
    *finished = state.finished;
    return TARN_OK;
}

/* Where the table was dropped meanwhile, nothing was compacted, whatever became of the tasks. */
static struct tarn_status *count_after(struct compaction *c)
{
    struct tarn_status *s = count_files(c, &c->progress.files_after);
    struct tarn_status *gone = tarn_catalog_check_table(c->op, c->catalog, c->table);
    if (gone == TARN_OK)
        return s;
    tarn_status_free(s);
    return gone;
}

static struct tarn_status *follow(struct compaction *c)
{
    for (bool finished = c->id_count == 0; !finished;) {
        TARN_TRY(wait_once(c, &finished));
        if (!finished)
            TARN_TRY(tell(c));
    }
    TARN_TRY(count_after(c));
    return tell(c);
}

static void take_picks(struct compaction *c, const struct tarn_job_info *picks)
{
    c->picks = picks;
    c->ids = tarn_arena_calloc(c->op->arena, c->pick_count + 1, sizeof *c->ids);
    for (size_t i = 0; i < c->pick_count; i++)
        if (picks[i].id > 0)
            c->ids[c->id_count++] = picks[i].id;
}

static struct tarn_status *start(struct compaction *c, const struct tarn_compact_request *request)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(c->op, c->table, &view));
    TARN_TRY(tarn_options_check_write(&view->options));
    TARN_TRY(tarn_options_check_merge(&view->options));
    struct tarn_value *prefix = NULL;
    TARN_TRY(
        make_prefix(c->op, &view->schema, request->partition, request->partition_count, &prefix));
    struct tarn_compact_order order = {c->table, request->full, request->dry_run, prefix,
                                       request->partition_count};
    struct tarn_job_info *picks;
    TARN_TRY(tarn_maintain_compact(c->op, c->maintain, &order, &picks, &c->pick_count));
    take_picks(c, picks);
    return TARN_OK;
}

static struct tarn_status *go_on(struct compaction *c, bool wait, bool dry_run)
{
    TARN_TRY(count_files(c, &c->progress.files_before));
    c->progress.files_after = c->progress.files_before;
    c->progress.total = dry_run ? (int64_t)c->pick_count : (int64_t)c->id_count;
    c->progress.picks = c->picks;
    c->progress.pick_count = c->pick_count;
    TARN_TRY(tell(c));
    return wait && !dry_run ? follow(c) : TARN_OK;
}

struct tarn_status *tarn_service_compact(struct tarn_op *op, struct tarn_service *service,
                                         const struct tarn_compact_request *request,
                                         tarn_compact_fn fn, void *arg)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, request->table, TARN_ACTION_MAINTAIN, &table));
    struct compaction c = {.op = op,
                           .maintain = service->maintain,
                           .catalog = service->catalog,
                           .table = table,
                           .tell = fn,
                           .arg = arg};
    TARN_TRY(start(&c, request));
    return go_on(&c, request->wait, request->dry_run);
}

/* --- another bucket count --- */

/* New partitions have it from here on; those that there are keep theirs until they are rewritten. */
static struct tarn_status *set_bucket_option(struct tarn_op *op, struct tarn_service *service,
                                             const struct tarn_rescale_request *request)
{
    struct tarn_schema_change change = {
        .kind = TARN_CHANGE_SET_OPTION,
        .key = tarn_slice_str("bucket"),
        .value = tarn_slice_str(tarn_arena_printf(op->arena, "%" PRId32, request->bucket_count))};
    struct tarn_table_facts facts;
    return tarn_service_alter_table(op, service, request->table, &change, 1, &facts);
}

static struct tarn_status *start_rescale(struct compaction *c, struct tarn_service *service,
                                         const struct tarn_rescale_request *request)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look_now(c->op, c->table, &view));
    TARN_TRY(tarn_maintain_may_rescale(view, tarn_table_name(c->table)));
    struct tarn_value *prefix = NULL;
    TARN_TRY(
        make_prefix(c->op, &view->schema, request->partition, request->partition_count, &prefix));
    if (!request->dry_run && view->options.bucket != request->bucket_count)
        TARN_TRY(set_bucket_option(c->op, service, request));
    struct tarn_rescale_order order = {c->table, request->bucket_count, request->dry_run, prefix,
                                       request->partition_count};
    struct tarn_job_info *picks;
    TARN_TRY(tarn_maintain_rescale(c->op, c->maintain, &order, &picks, &c->pick_count));
    take_picks(c, picks);
    return TARN_OK;
}

struct tarn_status *tarn_service_rescale(struct tarn_op *op, struct tarn_service *service,
                                         const struct tarn_rescale_request *request,
                                         tarn_compact_fn fn, void *arg)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, request->table, TARN_ACTION_MAINTAIN, &table));
    if (request->bucket_count < 1)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "%" PRId32 " buckets: 1 is the least",
                               request->bucket_count);
    struct compaction c = {.op = op,
                           .maintain = service->maintain,
                           .catalog = service->catalog,
                           .table = table,
                           .tell = fn,
                           .arg = arg};
    TARN_TRY(start_rescale(&c, service, request));
    return go_on(&c, request->wait, request->dry_run);
}

struct tarn_status *tarn_service_cancel_job(struct tarn_op *op, struct tarn_service *service,
                                            int64_t id)
{
    TARN_TRY(tarn_service__check(op, service, TARN_ACTION_MAINTAIN, tarn_slice_str(NULL)));
    return tarn_maintain_cancel(op, service->maintain, id);
}

/* --- expiry --- */

struct tarn_status *tarn_service_expire(struct tarn_op *op, struct tarn_service *service,
                                        const struct tarn_expire_order *order,
                                        struct tarn_expiry *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, order->table, TARN_ACTION_MAINTAIN, &table));
    return tarn_maintain_expire(op, service->maintain, table, order->keep_last,
                                order->older_than_ms, order->dry_run, out);
}

struct tarn_status *tarn_service_advise(struct tarn_op *op, struct tarn_service *service,
                                        struct tarn_table_ref ref, int64_t bucket_size,
                                        struct tarn_advice *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    return tarn_maintain_advise(op, service->maintain, table, bucket_size, out);
}

struct tarn_status *tarn_service_backlog(struct tarn_op *op, struct tarn_service *service,
                                         struct tarn_table_ref ref, struct tarn_backlog *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_service__table(op, service, ref, TARN_ACTION_READ, &table));
    tarn_maintain_table_backlog(op, service->maintain, table, out);
    return TARN_OK;
}

struct tarn_status *tarn_service_list_jobs(struct tarn_op *op, struct tarn_service *service,
                                           const struct tarn_table_ref *ref, bool ended,
                                           bool explain, struct tarn_job_info **out, size_t *count)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    if (ref != NULL)
        TARN_TRY(tarn_service__table(op, service, *ref, TARN_ACTION_READ, &table));
    else
        TARN_TRY(tarn_service__check(op, service, TARN_ACTION_READ, tarn_slice_str(NULL)));
    return tarn_maintain_jobs(op, service->maintain, table, ended, explain, out, count);
}
