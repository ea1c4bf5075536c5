#include "maintain/picture.h"

void tarn_picture_init(struct tarn_picture *p, const struct tarn_schema *schema,
                       const struct tarn_options *options)
{
    *p = (struct tarn_picture){.kind = !tarn_schema_is_append(schema) ? TARN_PICTURE_RUNS
                                       : options->bucket > 0          ? TARN_PICTURE_FILES
                                                                      : TARN_PICTURE_SMALL,
                               .small_limit = tarn_maintain_small_limit(options),
                               .is_marked =
                                   tarn_schema_is_append(schema) && options->deletion_vectors};
}

void tarn_picture_fini(struct tarn_picture *p)
{
    free(p->runs);
    *p = (struct tarn_picture){0};
}

/* --- runs --- */

/* NULL: there is none. */
static struct tarn_picture_run *find_run(struct tarn_picture *p, const struct tarn_file_change *c)
{
    for (size_t i = p->run_count; i-- > 0;)
        if (p->runs[i].file.level == c->level &&
            (c->level > 0 || p->runs[i].file.name_hash == c->name_hash))
            return &p->runs[i];
    return NULL;
}

static bool add_to_runs(struct tarn_picture *p, const struct tarn_file_change *c, int64_t now_ms)
{
    struct tarn_picture_run *run = find_run(p, c);
    if (run == NULL) {
        TARN_GROW(p->runs, p->run_count, p->run_capacity);
        p->runs[p->run_count++] =
            (struct tarn_picture_run){.file = *c, .file_count = 1, .seen_ms = now_ms};
        return true;
    }
    if (c->level == 0)
        return false; /* it is there already */
    run->file.size += c->size;
    run->file.row_count += c->row_count;
    if (c->creation_time_ms >= run->file.creation_time_ms)
        run->stale = false;
    run->file.creation_time_ms = TARN_MAX(run->file.creation_time_ms, c->creation_time_ms);
    run->file_count++;
    return true;
}

static bool take_from_runs(struct tarn_picture *p, const struct tarn_file_change *c)
{
    struct tarn_picture_run *run = find_run(p, c);
    if (run == NULL)
        return false;
    run->file.size -= c->size;
    run->file.row_count -= c->row_count;
    run->stale |= c->creation_time_ms >= run->file.creation_time_ms;
    if (--run->file_count == 0)
        *run = p->runs[--p->run_count];
    return true;
}

static bool is_settled(const struct tarn_picture *p)
{
    for (size_t i = 0; i < p->run_count; i++)
        if (p->runs[i].stale || p->runs[i].file.size < 0)
            return false;
    return p->file_count >= 0 && p->small_file_count >= 0 && p->small_size >= 0;
}

/* --- changes --- */

static bool change_one(struct tarn_picture *p, const struct tarn_file_change *c, int64_t now_ms)
{
    bool small = c->size < p->small_limit;
    int sign = c->added ? 1 : -1;
    if (p->kind == TARN_PICTURE_SMALL && !small)
        return true;
    p->file_count += sign;
    p->size += sign * c->size;
    p->small_file_count += small ? sign : 0;
    p->small_size += small ? sign * c->size : 0;
    p->row_count += sign * c->row_count;
    if (c->delete_row_count != TARN_FILE_NONE)
        p->delete_row_count += sign * c->delete_row_count;
    if (p->kind != TARN_PICTURE_RUNS)
        return true;
    return c->added ? add_to_runs(p, c, now_ms) : take_from_runs(p, c);
}

bool tarn_picture_change(struct tarn_picture *p, const struct tarn_file_change *changes,
                         size_t count, int64_t now_ms)
{
    for (size_t i = 0; i < count; i++)
        if (!change_one(p, &changes[i], now_ms))
            return false;
    return is_settled(p);
}

void tarn_picture_add_files(struct tarn_picture *p, const struct tarn_manifest_entry *files,
                            size_t count, int64_t now_ms)
{
    for (size_t i = 0; i < count; i++) {
        struct tarn_file_change c = tarn_file_change_of(&files[i].file, true);
        change_one(p, &c, now_ms);
    }
}

/* --- what it says --- */

bool tarn_picture_may_need(const struct tarn_picture *p, const struct tarn_options *o)
{
    if (p->is_marked)
        return true;
    switch (p->kind) {
    case TARN_PICTURE_RUNS:
        return p->run_count > 0;
    case TARN_PICTURE_FILES:
        return p->file_count >= o->append_min_file_count;
    case TARN_PICTURE_SMALL:
        return p->small_file_count > 1 &&
               (p->small_file_count >= o->append_min_file_count ||
                p->small_size + p->small_file_count * o->split_open_cost >=
                    2 * o->target_file_size);
    }
    return true;
}

void tarn_picture_as_bucket(const struct tarn_picture *p, struct tarn_slice partition,
                            int32_t bucket, struct tarn_arena *arena, struct tarn_bucket_files *out)
{
    *out = (struct tarn_bucket_files){
        .partition = partition, .bucket = bucket, .file_count = p->run_count};
    out->files = tarn_arena_calloc(arena, p->run_count + 1, sizeof *out->files);
    for (size_t i = 0; i < p->run_count; i++) {
        const struct tarn_file_change *f = &p->runs[i].file;
        /* The name breaks ties between files of level 0 that nothing else tells apart; any order of those will do. */
        out->files[i] = (struct tarn_manifest_entry){.partition = partition, .bucket = bucket};
        out->files[i].file =
            (struct tarn_data_file){.name = tarn_slice_of((const uint8_t *)&f->name_hash, 8),
                                    .size = f->size,
                                    .row_count = f->row_count,
                                    .min_sequence = f->min_sequence,
                                    .max_sequence = f->max_sequence,
                                    .level = f->level,
                                    .creation_time_ms = f->creation_time_ms,
                                    .delete_row_count = f->delete_row_count,
                                    .first_row_id = TARN_FILE_NONE};
    }
}

int64_t tarn_picture_oldest_ms(const struct tarn_picture *p)
{
    int64_t oldest = 0;
    for (size_t i = 0; i < p->run_count; i++)
        if (p->runs[i].file.level == 0 && (oldest == 0 || p->runs[i].seen_ms < oldest))
            oldest = p->runs[i].seen_ms;
    return oldest;
}

/* Since the newest file of the highest level was made, where a compaction of all puts its output; of a bucket that has none there: a whole interval. */
static int64_t full_age_ms(const struct tarn_picture *p, const struct tarn_options *o,
                           int64_t local_ms)
{
    int top = o->level_count - 1;
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < p->run_count; i++) {
        const struct tarn_file_change *f = &p->runs[i].file;
        if (f->level >= top && f->creation_time_ms != TARN_FILE_NONE)
            newest = TARN_MAX(newest, f->creation_time_ms);
    }
    return newest == INT64_MIN ? o->optimization_interval_ms : TARN_MAX(local_ms - newest, 0);
}

void tarn_picture_inputs(const struct tarn_picture *p, const struct tarn_schema *schema,
                         const struct tarn_options *o, const struct tarn_pick *pick, int64_t now_ms,
                         int64_t local_ms, struct tarn_score_inputs *out)
{
    bool append = tarn_schema_is_append(schema);
    int64_t oldest = tarn_picture_oldest_ms(p);
    *out = (struct tarn_score_inputs){
        .runs = (int32_t)TARN_MIN(append ? p->file_count : (int64_t)p->run_count, INT32_MAX),
        .run_trigger = append ? TARN_MAX(o->append_min_file_count, 1) : o->run_trigger,
        .run_stop_trigger = append ? 0 : o->run_stop_trigger,
        .row_count = p->row_count,
        .delete_row_count = p->delete_row_count,
        .file_count = p->file_count,
        .small_file_count = p->small_file_count,
        .full_interval_ms = append ? -1 : o->optimization_interval_ms,
        .lag_ms = oldest == 0 ? 0 : now_ms - oldest,
    };
    if (out->full_interval_ms >= 0)
        out->full_age_ms = full_age_ms(p, o, local_ms);
    for (size_t i = 0; i < pick->file_count; i++) {
        const struct tarn_data_file *f = &pick->files[i]->file;
        out->pick_size += f->size;
        out->new_size += f->level == 0 ? f->size : 0;
    }
}
