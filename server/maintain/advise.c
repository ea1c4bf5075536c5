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

struct bucket { /* one of the parts that it is divided into, which are all alike */
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

static void add_file(struct replay *r, struct bucket *b, int level, int64_t size, int64_t n)
{
    TARN_GROW(b->files, b->count, b->capacity);
    b->files[b->count] = (struct tarn_manifest_entry){.partition = tarn_row_empty()};
    b->files[b->count++].file = (struct tarn_data_file){.name = tarn_slice_str(""),
                                                        .size = size,
                                                        .level = level,
                                                        .min_sequence = n,
                                                        .max_sequence = n,
                                                        .creation_time_ms = TARN_FILE_NONE};
}

/* Of append tables each file is one; of others they stand for a sorted run. The number of files. */
static size_t add_output(struct replay *r, struct bucket *b, int level, int64_t size, int64_t n)
{
    size_t count = 1;
    int64_t most =
        tarn_schema_is_append(r->schema) ? TARN_MAX(r->options->target_file_size, 1) : INT64_MAX;
    for (; size > most; size -= most, count++)
        add_file(r, b, level, most, n);
    add_file(r, b, level, size, n);
    return count;
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
        int64_t n = tarn_schema_is_append(r->schema) ? pick.files[0]->file.min_sequence
                                                     : ++r->made; /* order stays */
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
        if (add_output(r, b, pick.output_level, (int64_t)(size * r->kept), n) >= pick.file_count)
            return; /* it came to nothing */
    }
}

static void load_into(struct replay *r, struct bucket *b, const struct tarn_load *load,
                      int32_t parts)
{
    int32_t count = TARN_MAX(load->file_count, 1);
    int64_t size = TARN_MAX(load->size / parts / count, (int64_t)1);
    for (int32_t i = 0; i < count; i++) {
        add_file(r, b, 0, size, ++r->made);
        r->new_size += (double)size;
    }
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
                        const struct tarn_load_history *h, int32_t parts,
                        struct tarn_advise_effect *out)
{
    struct replay r = {.schema = schema, .options = options, .kept = h->kept};
    struct bucket *buckets = tarn_calloc((size_t)h->bucket_count + 1, sizeof *buckets);
    int top = tarn_schema_is_append(schema) ? 0 : options->level_count - 1;
    *out = (struct tarn_advise_effect){.write_amplification = 1};
    for (int32_t i = 0; i < h->bucket_count; i++)
        if (h->start_sizes[i] > 0)
            add_output(&r, &buckets[i], top, h->start_sizes[i] / parts, ++r.made);
    for (size_t i = 0; i < h->load_count; i++)
        load_into(&r, &buckets[h->loads[i].bucket], &h->loads[i], parts);
    if (r.new_size > 0)
        out->write_amplification = (r.new_size + r.rewritten) / r.new_size;
    if (r.run_samples > 0)
        out->read_fan_out = r.run_sum / (double)r.run_samples;
    for (int32_t i = 0; i < h->bucket_count; i++) {
        out->files += files_of(&r, &buckets[i]) * parts;
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
    int64_t have = a->now.bucket_count;
    int64_t fast = TARN_MIN(by_speed, a->largest_partition_size / BUCKET_SIZE_MIN);
    int64_t parts =
        TARN_MAX(divide_up(a->largest_bucket_size, a->bucket_size_aim), divide_up(fast, have));
    if (parts > 10000 / have)
        parts = 10000 / have;
    return (int32_t)(parts < 2 ? have : have * parts); /* fewer would help nobody much */
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
    int32_t parts = out->bucket_count / options->bucket; /* of -1: it stays */
    tried.target_file_size = out->target_file_size;
    tarn_advise_replay(schema, &tried, h, parts, &out->effect);
    double limit = cost_of(&out->effect) * BETTER_BY;
    bool levels_follow = options->level_count == options->run_trigger + 1; /* Paimon's default */
    for (size_t i = 0; i < TARN_COUNT_OF(triggers); i++) {
        struct tarn_advise_effect effect;
        tried.run_trigger = tried.append_min_file_count = triggers[i];
        tried.level_count = levels_follow ? triggers[i] + 1 : options->level_count;
        tarn_advise_replay(schema, &tried, h, parts, &effect);
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
    bool append = tarn_schema_is_append(schema);
    a->now = (struct tarn_advise_setting){.bucket_count = options->bucket,
                                          .writer_parallelism = TARN_MAX(options->bucket, 1),
                                          .run_trigger = append ? options->append_min_file_count
                                                                : options->run_trigger,
                                          .target_file_size = options->target_file_size};
    tarn_advise_replay(schema, options, h, 1, &a->now.effect);
    a->advised = a->now;
    if (options->bucket > 0)
        a->advised.bucket_count = choose_buckets(h, a);
    a->advised.writer_parallelism = TARN_MAX(a->advised.bucket_count, 1);
    if (options->target_file_size < TARGET_SIZE_MIN || options->target_file_size > TARGET_SIZE_MAX)
        a->advised.target_file_size = TARGET_SIZE_DEFAULT;
    choose_trigger(schema, options, h, &a->advised);
}

/* --- the table's history --- */

struct place { /* a bucket of a partition */
    int32_t number;
    size_t load; /* its latest, and 1 */
    int64_t change;
};
struct reading {
    struct tarn_map *places; /* key of partition and bucket -> heap struct place */
    struct tarn_load *loads;
    size_t count, capacity;
    double read, written; /* by compactions */
};

static struct place *place_of(struct reading *r, struct tarn_slice partition, int32_t bucket)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    tarn_key_add_bytes(&key, partition);
    tarn_key_add_i64(&key, bucket);
    struct place *p = tarn_map_find(r->places, tarn_buf_slice(&key));
    if (p == NULL) {
        p = tarn_calloc(1, sizeof *p);
        p->number = (int32_t)tarn_map_count(r->places);
        tarn_map_set(r->places, tarn_buf_slice(&key), p);
    }
    return p;
}

static void reading_fini(struct reading *r)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *place;
    while (tarn_map_next(r->places, &cursor, &key, &place))
        free(place);
    tarn_map_free(r->places);
    free(r->loads);
}

/* first: the first load of the same snapshot. */
static void read_entry(struct reading *r, const struct tarn_manifest_entry *e, bool compacted,
                       size_t first)
{
    struct place *p = place_of(r, e->partition, e->bucket);
    bool added = e->kind == TARN_ENTRY_ADD;
    p->change += added ? e->file.size : -e->file.size;
    if (compacted) {
        *(added ? &r->written : &r->read) += (double)e->file.size;
        return;
    }
    if (!added)
        return;
    if (p->load <= first) {
        TARN_GROW(r->loads, r->count, r->capacity);
        r->loads[r->count++] = (struct tarn_load){.bucket = p->number};
        p->load = r->count;
    }
    r->loads[p->load - 1].size += e->file.size;
    r->loads[p->load - 1].file_count++;
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

static int64_t size_of(const struct tarn_bucket_files *bucket)
{
    int64_t size = 0;
    for (size_t f = 0; f < bucket->file_count; f++)
        size += bucket->files[f].file.size;
    return size;
}

static void note_sizes(const struct tarn_bucket_files *buckets, size_t count,
                       struct tarn_advice *out)
{
    int64_t partition_size = 0;
    for (size_t i = 0; i < count; i++) {
        bool same = i > 0 && tarn_slice_equal(buckets[i - 1].partition, buckets[i].partition);
        int64_t size = size_of(&buckets[i]);
        partition_size = (same ? partition_size : 0) + size;
        out->files += (int64_t)buckets[i].file_count;
        out->runs_max =
            TARN_MAX(out->runs_max, tarn_run_count(buckets[i].files, buckets[i].file_count));
        out->largest_bucket_size = TARN_MAX(out->largest_bucket_size, size);
        out->largest_partition_size = TARN_MAX(out->largest_partition_size, partition_size);
    }
}

/* Live bytes of each bucket now, and before the history began. */
static struct tarn_status *read_sizes(struct tarn_op *op, struct tarn_table *table,
                                      struct reading *r, int64_t **start, struct tarn_advice *out)
{
    struct tarn_bucket_files *buckets;
    size_t count, cursor = 0;
    struct tarn_slice key;
    void *value;
    TARN_TRY(tarn_table_buckets(op, table, tarn_slice_str(NULL), &buckets, &count));
    note_sizes(buckets, count, out);
    for (size_t i = 0; i < count; i++)
        place_of(r, buckets[i].partition, buckets[i].bucket)->change -= size_of(&buckets[i]);
    *start = tarn_arena_calloc(op->arena, tarn_map_count(r->places) + 1, sizeof **start);
    while (tarn_map_next(r->places, &cursor, &key, &value)) {
        const struct place *p = value;
        (*start)[p->number] = TARN_MAX(-p->change, (int64_t)0);
    }
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
                                  .bucket_count = (int32_t)tarn_map_count(r->places),
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
    if (!tarn_schema_is_append(&view->schema) && out->runs_max > now->run_trigger) {
        tarn_buf_printf(&text,
                        "a read merges up to %" PRId32 " sorted runs of a bucket, where %" PRId32
                        " call for a "
                        "compaction: %s",
                        out->runs_max, now->run_trigger, why_behind(m, view));
        add_cause(op, out, &text);
    }
    if (advised->bucket_count > now->bucket_count) {
        tarn_buf_clear(&text);
        tarn_buf_printf(&text, "%" PRId32 " buckets: the largest has ", now->bucket_count);
        tarn_format_size(out->largest_bucket_size, &text);
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
    if (!tarn_schema_is_append(&view->schema) && view->options.bucket <= 0)
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "table %s: advice is for append tables, and for primary-key tables "
                               "with a fixed number of buckets",
                               tarn_table_name(table));
    struct reading r = {.places = tarn_map_new()};
    struct tarn_status *s = advise(op, table, view, &r, out);
    reading_fini(&r);
    if (s == TARN_OK)
        find_causes(op, m, view, out);
    return s;
}
