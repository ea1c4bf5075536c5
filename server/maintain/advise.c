#include "maintain/advise.h"
#include "maintain/internal.h"

#include <math.h>

#define SNAPSHOTS_MAX 10000 /* of the history; the newest */
#define BUCKET_SIZE_AIM ((int64_t)1 << 30)
#define BUCKET_SIZE_MIN ((int64_t)64 << 20) /* no bucket is made smaller than this for speed */
#define RATE_SPAN_MIN_MS 60000 /* a shorter history says nothing of how fast rows come */
#define TASK_BYTES_PER_SECOND                                                                      \
    ((int64_t)20 << 20) /* that one compaction reads, to be on the safe side */
#define BETTER_BY                                                                                  \
    0.9 /* a trigger is changed where this share, or less, of the present cost is left */
#define TARGET_SIZE_MIN ((int64_t)32 << 20)
#define TARGET_SIZE_MAX ((int64_t)1 << 30)
#define TARGET_SIZE_DEFAULT ((int64_t)128 << 20)

/* --- replay --- */

struct bucket { /* one of a partition's, which are all alike */
    struct tarn_manifest_entry *files;
    size_t count, capacity;
};
struct replay {
    const struct tarn_schema *schema;
    const struct tarn_options *options;
    double kept;
    int64_t made;
    double new_size, rewritten, run_sum;
    int64_t run_samples;
};

static void add_file(struct replay *r, struct bucket *b, int level, int64_t size)
{
    TARN_GROW(b->files, b->count, b->capacity);
    int64_t n = ++r->made;
    b->files[b->count] = (struct tarn_manifest_entry){.partition = tarn_row_empty()};
    b->files[b->count++].file = (struct tarn_data_file){.name = tarn_slice_str(""),
                                                        .size = size,
                                                        .level = level,
                                                        .min_sequence = n,
                                                        .max_sequence = n,
                                                        .creation_time_ms = TARN_FILE_NONE};
}

/* As often as the rules say. */
static void compact(struct replay *r, struct bucket *b)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    for (;;) {
        struct tarn_bucket_files files = {.files = b->files, .file_count = b->count};
        struct tarn_pick pick;
        if (!tarn_pick_compaction(r->schema, r->options, &files, false, 0, arena, &pick))
            return;
        double size = 0;
        for (size_t i = 0; i < pick.file_count; i++) {
            struct tarn_manifest_entry *e = &b->files[pick.files[i] - b->files];
            size += (double)e->file.size;
            e->kind = TARN_ENTRY_DELETE;
        }
        size_t left = 0;
        for (size_t i = 0; i < b->count; i++)
            if (b->files[i].kind == TARN_ENTRY_ADD)
                b->files[left++] = b->files[i];
        b->count = left;
        r->rewritten += size * r->kept;
        add_file(r, b, pick.output_level, (int64_t)(size * r->kept));
    }
}

static void load_into(struct replay *r, struct bucket *b, int64_t size)
{
    add_file(r, b, 0, size);
    r->new_size += (double)size;
    compact(r, b);
    r->run_sum += tarn_run_count(b->files, b->count);
    r->run_samples++;
}

static double files_of(const struct replay *r, const struct bucket *b)
{
    double files = 0;
    for (size_t i = 0; i < b->count; i++)
        files += b->files[i].file.level == 0
                     ? 1
                     : fmax(1, ceil((double)b->files[i].file.size /
                                    (double)TARN_MAX(r->options->target_file_size, 1)));
    return files;
}

void tarn_advise_replay(const struct tarn_schema *schema, const struct tarn_options *options,
                        const struct tarn_load_history *h, int32_t bucket_count,
                        struct tarn_advise_effect *out)
{
    struct replay r = {.schema = schema, .options = options, .kept = h->kept};
    struct bucket *buckets = tarn_calloc((size_t)h->partition_count + 1, sizeof *buckets);
    *out = (struct tarn_advise_effect){.write_amplification = 1};
    for (int32_t i = 0; i < h->partition_count; i++)
        if (h->start_sizes[i] > 0)
            add_file(&r, &buckets[i], options->level_count - 1, h->start_sizes[i] / bucket_count);
    for (size_t i = 0; i < h->load_count; i++)
        load_into(&r, &buckets[h->loads[i].partition],
                  TARN_MAX(h->loads[i].size / bucket_count, (int64_t)1));
    if (r.new_size > 0)
        out->write_amplification = (r.new_size + r.rewritten) / r.new_size;
    if (r.run_samples > 0)
        out->read_fan_out = r.run_sum / (double)r.run_samples;
    for (int32_t i = 0; i < h->partition_count; i++) {
        out->files += files_of(&r, &buckets[i]) * bucket_count;
        free(buckets[i].files);
    }
    free(buckets);
}

/* --- the choice --- */

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* By size, and by what one compaction at a time can do for a bucket; a multiple of what there is, so that each bucket is divided. */
static int32_t choose_buckets(const struct tarn_load_history *h, const struct tarn_advice *a)
{
    double per_second = 0;
    if (h->span_ms >= RATE_SPAN_MIN_MS)
        per_second =
            (double)a->new_size * a->now.effect.write_amplification * 1000 / (double)h->span_ms;
    int64_t by_speed = (int64_t)fmin(ceil(per_second / (double)TASK_BYTES_PER_SECOND), 10000);
    int64_t want = TARN_MAX(divide_up(a->largest_partition_size, a->bucket_size_aim),
                            TARN_MIN(by_speed, a->largest_partition_size / BUCKET_SIZE_MIN));
    int64_t have = a->now.bucket_count;
    if (want <= have)
        return a->now.bucket_count; /* fewer of them would help nobody much */
    return (int32_t)TARN_MIN(divide_up(want, have) * have, (int64_t)10000);
}

static double cost_of(const struct tarn_advise_effect *e)
{
    return e->write_amplification * e->read_fan_out;
}

static void choose_trigger(const struct tarn_schema *schema, const struct tarn_options *options,
                           const struct tarn_load_history *h, struct tarn_advise_setting *out)
{
    static const int triggers[] = {3, 4, 5, 6, 8, 10};
    struct tarn_options tried = *options;
    tried.target_file_size = out->target_file_size;
    tarn_advise_replay(schema, &tried, h, out->bucket_count, &out->effect);
    double limit = cost_of(&out->effect) * BETTER_BY;
    bool levels_follow = options->level_count == options->run_trigger + 1; /* Paimon's default */
    for (size_t i = 0; i < TARN_COUNT_OF(triggers); i++) {
        struct tarn_advise_effect effect;
        tried.run_trigger = triggers[i];
        tried.level_count = levels_follow ? triggers[i] + 1 : options->level_count;
        tarn_advise_replay(schema, &tried, h, out->bucket_count, &effect);
        if (cost_of(&effect) > limit)
            continue;
        limit = cost_of(&effect);
        out->run_trigger = triggers[i];
        out->effect = effect;
    }
}

void tarn_advise_choose(const struct tarn_schema *schema, const struct tarn_options *options,
                        const struct tarn_load_history *h, struct tarn_advice *a)
{
    a->now = (struct tarn_advise_setting){.bucket_count = options->bucket,
                                          .writer_parallelism = options->bucket,
                                          .run_trigger = options->run_trigger,
                                          .target_file_size = options->target_file_size};
    tarn_advise_replay(schema, options, h, options->bucket, &a->now.effect);
    a->advised = a->now;
    a->advised.bucket_count = choose_buckets(h, a);
    a->advised.writer_parallelism = a->advised.bucket_count;
    if (options->target_file_size < TARGET_SIZE_MIN || options->target_file_size > TARGET_SIZE_MAX)
        a->advised.target_file_size = TARGET_SIZE_DEFAULT;
    choose_trigger(schema, options, h, &a->advised);
}

/* --- the table's history --- */

struct reading {
    struct tarn_map *partitions; /* -> heap int64_t: its number, and 1 */
    struct tarn_load *loads;
    size_t count, capacity;
    int64_t *changes; /* of each partition's size, in all */
    int32_t partition_count;
    size_t change_capacity;
    double read, written; /* by compactions */
};

static int32_t partition_of(struct reading *r, struct tarn_slice partition)
{
    int64_t *number = tarn_map_find(r->partitions, partition);
    if (number == NULL) {
        number = tarn_alloc(sizeof *number);
        *number = ++r->partition_count;
        tarn_map_set(r->partitions, partition, number);
        TARN_GROW(r->changes, (size_t)*number - 1, r->change_capacity);
        r->changes[*number - 1] = 0;
    }
    return (int32_t)(*number - 1);
}

static void reading_fini(struct reading *r)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *number;
    while (tarn_map_next(r->partitions, &cursor, &key, &number))
        free(number);
    tarn_map_free(r->partitions);
    free(r->loads);
    free(r->changes);
}

static void read_entry(struct reading *r, const struct tarn_manifest_entry *e, bool compacted,
                       size_t first)
{
    int32_t p = partition_of(r, e->partition);
    bool added = e->kind == TARN_ENTRY_ADD;
    r->changes[p] += added ? e->file.size : -e->file.size;
    if (compacted) {
        *(added ? &r->written : &r->read) += (double)e->file.size;
        return;
    }
    if (!added)
        return;
    for (size_t i = first; i < r->count; i++)
        if (r->loads[i].partition == p) {
            r->loads[i].size += e->file.size;
            return;
        }
    TARN_GROW(r->loads, r->count, r->capacity);
    r->loads[r->count++] = (struct tarn_load){.partition = p, .size = e->file.size};
}

static struct tarn_status *read_snapshot(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_snapshot *snapshot, struct reading *r)
{
    TARN_OWN(tarn_op_fini) struct tarn_op part;
    struct tarn_manifest_entry *entries;
    size_t count, first = r->count;
    tarn_op_init_child(&part, op);
    TARN_TRY(tarn_table_delta(&part, table, snapshot->id, &entries, &count));
    bool compacted = snapshot->kind == TARN_COMMIT_COMPACT ||
                     tarn_slice_is(snapshot->commit_user, TARN_COMPACTION_USER); /* a rescale */
    for (size_t i = 0; i < count; i++)
        read_entry(r, &entries[i], compacted, first);
    return TARN_OK;
}

/* Live bytes of each partition now, and before the history began. */
static struct tarn_status *read_sizes(struct tarn_op *op, struct tarn_table *table,
                                      struct reading *r, int64_t **start, struct tarn_advice *out)
{
    struct tarn_bucket_files *buckets;
    size_t count;
    TARN_TRY(tarn_table_buckets(op, table, tarn_slice_str(NULL), &buckets, &count));
    for (size_t i = 0; i < count; i++)
        partition_of(r, buckets[i].partition);
    int64_t *live = tarn_arena_calloc(op->arena, (size_t)r->partition_count + 1, sizeof *live);
    *start = tarn_arena_calloc(op->arena, (size_t)r->partition_count + 1, sizeof **start);
    for (size_t i = 0; i < count; i++) {
        int64_t *size = &live[partition_of(r, buckets[i].partition)];
        for (size_t f = 0; f < buckets[i].file_count; f++)
            *size += buckets[i].files[f].file.size;
        int32_t runs = tarn_run_count(buckets[i].files, buckets[i].file_count);
        out->files += (int64_t)buckets[i].file_count;
        out->runs_max = TARN_MAX(out->runs_max, runs);
        out->largest_partition_size = TARN_MAX(out->largest_partition_size, *size);
    }
    for (int32_t p = 0; p < r->partition_count; p++)
        (*start)[p] = TARN_MAX(live[p] - r->changes[p], (int64_t)0);
    return TARN_OK;
}

static struct tarn_status *advise(struct tarn_op *op, struct tarn_table *table,
                                  const struct tarn_table_view *view, struct reading *r,
                                  struct tarn_advice *out)
{
    struct tarn_snapshot *snapshots;
    size_t count;
    int64_t latest = view->has_snapshot ? view->snapshot.id : 0, *start;
    int64_t from = TARN_MAX(latest - SNAPSHOTS_MAX + 1, (int64_t)1);
    TARN_TRY(tarn_table_snapshots(op, table, from, SNAPSHOTS_MAX, &snapshots, &count));
    for (size_t i = 0; i < count; i++)
        TARN_TRY(read_snapshot(op, table, &snapshots[i], r));
    if (r->count == 0)
        return tarn_status_new(
            TARN_INVALID_ARGUMENT,
            "table %s has no retained snapshot that brought rows; advice is made "
            "from what was loaded",
            tarn_table_name(table));
    TARN_TRY(read_sizes(op, table, r, &start, out));
    struct tarn_load_history h = {.loads = r->loads,
                                  .load_count = r->count,
                                  .start_sizes = start,
                                  .partition_count = r->partition_count,
                                  .span_ms = snapshots[count - 1].time_ms - snapshots[0].time_ms,
                                  .kept = r->read > 0 ? fmin(r->written / r->read, 1) : 1};
    for (size_t i = 0; i < r->count; i++)
        out->new_size += r->loads[i].size;
    out->first_snapshot_id = snapshots[0].id;
    out->last_snapshot_id = snapshots[count - 1].id;
    out->span_ms = h.span_ms;
    out->kept = h.kept;
    tarn_advise_choose(&view->schema, &view->options, &h, out);
    return TARN_OK;
}

/* --- why it is slow --- */

static void add_cause(struct tarn_op *op, struct tarn_advice *out, const struct tarn_buf *text)
{
    out->causes[out->cause_count++] =
        tarn_arena_str(op->arena, tarn_slice_of(text->data, text->size));
}

static const char *why_behind(struct tarn_maintain *m, const struct tarn_table_view *view)
{
    if (tarn_maintain_is_of_writers(&view->schema, &view->options))
        return "its writers compact it, the daemon does not (tarn adopt --compaction tarn)";
    if (!m->options.automatic)
        return "nothing is compacted here by itself (compaction.auto = false)";
    pthread_mutex_lock(&m->lock);
    bool deserted = m->workers == NULL;
    pthread_mutex_unlock(&m->lock);
    return deserted ? "there is no worker to compact it" : "compaction is behind (tarn jobs)";
}

static void find_causes(struct tarn_op *op, struct tarn_maintain *m,
                        const struct tarn_table_view *view, struct tarn_advice *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    const struct tarn_advise_setting *now = &out->now, *advised = &out->advised;
    if (out->runs_max > now->run_trigger) {
        tarn_buf_printf(&text,
                        "a read merges up to %" PRId32 " sorted runs of a bucket, where %" PRId32
                        " call for a "
                        "compaction: %s",
                        out->runs_max, now->run_trigger, why_behind(m, view));
        add_cause(op, out, &text);
    }
    if (advised->bucket_count > now->bucket_count) {
        tarn_buf_clear(&text);
        tarn_buf_printf(&text, "%" PRId32 " buckets: each of the largest partition's has ",
                        now->bucket_count);
        tarn_format_size(out->largest_partition_size / now->bucket_count, &text);
        tarn_buf_printf(&text, ", which one task at a time compacts (aim: ");
        tarn_format_size(out->bucket_size_aim, &text);
        tarn_buf_printf(&text, "); tarn rescale --buckets %" PRId32 " divides them",
                        advised->bucket_count);
        add_cause(op, out, &text);
    }
}

struct tarn_status *tarn_maintain_advise(struct tarn_op *op, struct tarn_maintain *m,
                                         struct tarn_table *table, int64_t bucket_size,
                                         struct tarn_advice *out)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    if (bucket_size < 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a bucket of %" PRId64 " bytes", bucket_size);
    *out = (struct tarn_advice){.bucket_size_aim = bucket_size > 0 ? bucket_size : BUCKET_SIZE_AIM};
    if (tarn_schema_is_append(&view->schema) || view->options.bucket <= 0)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s: advice is for primary-key tables with a fixed number of "
                               "buckets",
                               tarn_table_name(table));
    struct reading r = {.partitions = tarn_map_new()};
    struct tarn_status *s = advise(op, table, view, &r, out);
    reading_fini(&r);
    if (s == TARN_OK)
        find_causes(op, m, view, out);
    return s;
}
