#include "maintain/internal.h"

#include <time.h>

/*
 * Which files of a bucket to compact, and to which level: Paimon's universal compaction for primary-key buckets
 * (docs/format.md, "Compaction picking"), its rules for append tables otherwise. Pure: no I/O, no clock.
 */

struct run { /* one sorted run: a level-0 file, or all files of a level above */
    int level;
    int64_t size;
    size_t begin, count; /* in picker.files */
};

struct picker {
    const struct tarn_options *options;
    struct tarn_arena *arena;
    const struct tarn_manifest_entry **files; /* in order of runs */
    size_t file_count;
    struct run *runs; /* level 0 newest first, then levels ascending */
    int run_count;
    int top_level; /* the highest that exists for this bucket */
    bool force_up_level_0;
};

int tarn_run_count(const struct tarn_manifest_entry *files, size_t count)
{
    int runs = 0;
    for (size_t i = 0; i < count; i++) {
        bool first_of_level = true;
        for (size_t j = 0; j < i && files[i].file.level > 0; j++)
            first_of_level &= files[j].file.level != files[i].file.level;
        runs += files[i].file.level == 0 || first_of_level;
    }
    return runs;
}

static int64_t newest_of(const struct picker *p, const struct run *run)
{
    int64_t newest = TARN_FILE_NONE;
    for (size_t i = run->begin; i < run->begin + run->count; i++)
        if (p->files[i]->file.creation_time_ms != TARN_FILE_NONE)
            newest = newest == TARN_FILE_NONE
                         ? p->files[i]->file.creation_time_ms
                         : TARN_MAX(newest, p->files[i]->file.creation_time_ms);
    return newest;
}

/* Level 0 newest first (docs/format.md, "LSM state"), then by level. */
static int by_run(const void *a, const void *b)
{
    const struct tarn_data_file *l = &(*(const struct tarn_manifest_entry *const *)a)->file;
    const struct tarn_data_file *r = &(*(const struct tarn_manifest_entry *const *)b)->file;
    if (l->level != r->level)
        return l->level < r->level ? -1 : 1;
    if (l->level > 0)
        return tarn_slice_compare(l->name, r->name);
    if (l->max_sequence != r->max_sequence)
        return l->max_sequence > r->max_sequence ? -1 : 1;
    if (l->min_sequence != r->min_sequence)
        return l->min_sequence < r->min_sequence ? -1 : 1;
    if (l->creation_time_ms != r->creation_time_ms)
        return l->creation_time_ms < r->creation_time_ms ? -1 : 1;
    return tarn_slice_compare(l->name, r->name);
}

static void make_runs(struct picker *p, const struct tarn_bucket_files *bucket)
{
    p->file_count = bucket->file_count;
    p->files = tarn_arena_calloc(p->arena, p->file_count + 1, sizeof *p->files);
    p->runs = tarn_arena_calloc(p->arena, p->file_count + 1, sizeof *p->runs);
    for (size_t i = 0; i < p->file_count; i++)
        p->files[i] = &bucket->files[i];
    qsort(p->files, p->file_count, sizeof *p->files, by_run);
    p->top_level = p->options->level_count - 1;
    for (size_t i = 0; i < p->file_count; i++) {
        int level = p->files[i]->file.level;
        if (level == 0 || p->run_count == 0 || p->runs[p->run_count - 1].level != level)
            p->runs[p->run_count++] = (struct run){.level = level, .begin = i};
        p->runs[p->run_count - 1].size += p->files[i]->file.size;
        p->runs[p->run_count - 1].count++;
        p->top_level = TARN_MAX(p->top_level, level);
    }
}

static int64_t size_of_runs(const struct picker *p, int begin, int end)
{
    int64_t size = 0;
    for (int i = begin; i < end; i++)
        size += p->runs[i].size;
    return size;
}

/* --- the rules; each answers how many runs from the front to take, 0: none --- */

static int64_t newest_at_top_ms(const struct picker *p)
{
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < p->file_count; i++)
        if (p->files[i]->file.level == p->top_level &&
            p->files[i]->file.creation_time_ms != TARN_FILE_NONE)
            newest = TARN_MAX(newest, p->files[i]->file.creation_time_ms);
    return newest;
}

static bool is_full_late(const struct picker *p, int64_t now_ms)
{
    int64_t last_full = newest_at_top_ms(p), interval_ms = p->options->optimization_interval_ms;
    return interval_ms >= 0 && (last_full == INT64_MIN || now_ms - last_full > interval_ms);
}

static int early_full(const struct picker *p, int64_t now_ms, const char **why)
{
    const struct tarn_options *o = p->options;
    if (p->run_count < 2)
        return 0;
    if (is_full_late(p, now_ms)) {
        *why = "optimization interval";
        return p->run_count;
    }
    int64_t total = size_of_runs(p, 0, p->run_count);
    if (o->total_size_threshold >= 0 && total < o->total_size_threshold) {
        *why = "total size threshold";
        return p->run_count;
    }
    bool has_top = p->runs[p->run_count - 1].level == p->top_level;
    int64_t below = total - (has_top ? p->runs[p->run_count - 1].size : 0);
    if (o->incremental_size_threshold >= 0 && below > o->incremental_size_threshold) {
        *why = "incremental size threshold";
        return p->run_count;
    }
    return 0;
}

static int size_amplification(const struct picker *p, const char **why)
{
    if (p->run_count < p->options->run_trigger || p->run_count < 2)
        return 0;
    int64_t below = size_of_runs(p, 0, p->run_count - 1);
    if ((double)below * 100 <=
        (double)p->options->size_amplification_percent * (double)p->runs[p->run_count - 1].size)
        return 0;
    *why = "size amplification";
    return p->run_count;
}

static bool is_offpeak(const struct tarn_options *o, int64_t now_ms)
{
    int start = o->offpeak_start_hour, end = o->offpeak_end_hour;
    if (start < 0 || end < 0 || start == end)
        return false;
    int hour =
        (int)(((now_ms / 3600000) % 24 + 24) % 24); /* now_ms is local wall clock as if UTC */
    return start < end ? hour >= start && hour < end : hour >= start || hour < end;
}

/* From `count` runs on, takes what is not larger than what was taken; once one was, runs of level 0 and 1 come along. */
static int extend_by_ratio(const struct picker *p, int count, bool triggered, int64_t now_ms,
                           bool *out_triggered)
{
    const struct tarn_options *o = p->options;
    int ratio = o->size_ratio_percent + (is_offpeak(o, now_ms) ? o->offpeak_ratio : 0);
    int64_t size = size_of_runs(p, 0, count);
    for (; count < p->run_count; count++) {
        const struct run *next = &p->runs[count];
        if ((double)size * (100.0 + ratio) / 100.0 < (double)next->size &&
            (!triggered || next->level > 1))
            break;
        size += next->size;
        triggered = true;
    }
    *out_triggered = triggered;
    return count;
}

static int size_ratio(const struct picker *p, int64_t now_ms, const char **why)
{
    if (p->run_count < p->options->run_trigger)
        return 0;
    bool triggered;
    int count = extend_by_ratio(p, 1, false, now_ms, &triggered);
    *why = "size ratio";
    return triggered ? count : 0;
}

static int file_count(const struct picker *p, int64_t now_ms, const char **why)
{
    if (p->run_count <= p->options->run_trigger)
        return 0;
    bool triggered;
    int count = p->run_count - p->options->run_trigger + 1;
    count = extend_by_ratio(p, count, count > 1, now_ms, &triggered);
    *why = "file count";
    return triggered ? count : 0;
}

static int all_of_level_0(const struct picker *p, int64_t now_ms, const char **why)
{
    int count = 0;
    while (count < p->run_count && p->runs[count].level == 0)
        count++;
    if (count == 0)
        return 0;
    bool triggered;
    *why = "forced up from level 0";
    return extend_by_ratio(p, count, true, now_ms, &triggered);
}

/* --- the pick --- */

/* The output level of the first `count` runs; may take more of them (docs/format.md, "Output level"). */
static int output_level(const struct picker *p, int *count)
{
    if (*count == p->run_count)
        return p->top_level;
    int level = TARN_MAX(0, p->runs[*count].level - 1);
    if (level == 0) {
        while (*count < p->run_count) {
            level = p->runs[(*count)++].level;
            if (level != 0)
                break;
        }
    }
    return *count == p->run_count ? p->top_level : level;
}

static bool take(struct picker *p, int count, const char *why, struct tarn_pick *out)
{
    if (count == 0)
        return false;
    int level = output_level(p, &count);
    size_t end = p->runs[count - 1].begin + p->runs[count - 1].count;
    if (end == 1 && p->files[0]->file.level == level)
        return false; /* a single file that is where it belongs */
    int highest = 0;  /* of what stays behind and what is picked */
    for (int i = 0; i < p->run_count; i++)
        highest = TARN_MAX(highest, p->runs[i].level);
    *out = (struct tarn_pick){.files = p->files,
                              .file_count = end,
                              .output_level = level,
                              .top_level = p->top_level,
                              .why = why};
    out->drop_delete = level != 0 && (level >= highest || p->options->deletion_vectors);
    return true;
}

static bool has_vector(const struct tarn_manifest_entry *entry)
{
    return entry->file.vector.path.data != NULL;
}

/* Files of the last level with deleted rows, alone. */
static bool pick_marked(struct picker *p, struct tarn_pick *out)
{
    size_t n = 0;
    for (size_t i = 0; i < p->file_count; i++)
        if (has_vector(p->files[i]))
            p->files[n++] = p->files[i];
    *out = (struct tarn_pick){.files = p->files,
                              .file_count = n,
                              .output_level = p->top_level,
                              .top_level = p->top_level,
                              .drop_delete = true,
                              .why = "deleted rows"};
    return n > 0;
}

static bool pick_full(struct picker *p, struct tarn_pick *out)
{
    if (p->run_count == 1 && p->runs[0].level == p->top_level)
        return pick_marked(p, out);
    return take(p, p->run_count, "full", out);
}

/* changelog-producer = full-compaction: what isn't in the last level yet, its readers don't know of. As many commits as
 * full-compaction.delta-commits may wait, each a run; a pick that is due before that goes all the way. */
static int for_changelog(const struct picker *p, int count, int64_t now_ms, const char **why)
{
    const struct tarn_options *o = p->options;
    bool has_top = p->runs[p->run_count - 1].level == p->top_level;
    int waiting = p->run_count - (has_top ? 1 : 0);
    if (o->changelog_producer != TARN_CHANGELOG_FULL_COMPACTION || waiting == 0)
        return count;
    bool many = o->full_compaction_commits > 0 && waiting >= o->full_compaction_commits;
    if (count == 0 && !many && !is_full_late(p, now_ms))
        return 0;
    *why = "changelog";
    return p->run_count;
}

/* first-row: readers merge nothing above level 0, and a compaction of the upper levels alone doesn't know what lies below: a key would be
 * there twice. */
static bool needs_all(const struct picker *p)
{
    return p->options->merge_engine == TARN_MERGE_FIRST_ROW && p->runs[0].level == 0;
}

static bool pick_sorted(struct picker *p, bool full, int64_t now_ms, struct tarn_pick *out)
{
    if (p->run_count == 0)
        return false;
    if (full || needs_all(p))
        return pick_full(p, out);
    const char *why = "";
    int count = early_full(p, now_ms, &why);
    if (count == 0)
        count = size_amplification(p, &why);
    if (count == 0)
        count = size_ratio(p, now_ms, &why);
    if (count == 0)
        count = file_count(p, now_ms, &why);
    if (count == 0 && p->force_up_level_0)
        count = all_of_level_0(p, now_ms, &why);
    count = for_changelog(p, count, now_ms, &why);
    return take(p, count, why, out);
}

/* --- append tables (docs/format.md, "Append table compaction") --- */

static int by_sequence(const void *a, const void *b)
{
    const struct tarn_data_file *l = &(*(const struct tarn_manifest_entry *const *)a)->file;
    const struct tarn_data_file *r = &(*(const struct tarn_manifest_entry *const *)b)->file;
    if (l->min_sequence != r->min_sequence)
        return l->min_sequence < r->min_sequence ? -1 : 1;
    return tarn_slice_compare(l->name, r->name);
}

static int by_size(const void *a, const void *b)
{
    const struct tarn_data_file *l = &(*(const struct tarn_manifest_entry *const *)a)->file;
    const struct tarn_data_file *r = &(*(const struct tarn_manifest_entry *const *)b)->file;
    if (l->size != r->size)
        return l->size < r->size ? -1 : 1;
    return tarn_slice_compare(l->name, r->name);
}

int64_t tarn_maintain_small_limit(const struct tarn_options *o)
{
    return (int64_t)((double)o->target_file_size * o->small_file_ratio);
}

/* So many of its rows are deleted that it is worth writing it without them. */
static bool is_thinned(const struct tarn_options *o, const struct tarn_manifest_entry *entry)
{
    const struct tarn_data_file *f = &entry->file;
    return has_vector(entry) && f->vector.cardinality != TARN_FILE_NONE &&
           (double)f->vector.cardinality > o->delete_ratio * (double)f->row_count;
}

/* A fixed bucket keeps its order: only neighbours are merged. */
static bool pick_ordered(struct picker *p, bool full, struct tarn_pick *out)
{
    qsort(p->files, p->file_count, sizeof *p->files, by_sequence);
    size_t begin = 0, end = p->file_count;
    if (full) {
        while (begin < end && !has_vector(p->files[begin]) &&
               p->files[begin]->file.size >= tarn_maintain_small_limit(p->options))
            begin++;
        bool small = false, marked = false;
        for (size_t i = begin; i < end; i++) {
            small |= p->files[i]->file.size < tarn_maintain_small_limit(p->options);
            marked |= has_vector(p->files[i]);
        }
        if (!marked && (!small || end - begin < 2))
            return false;
        *out =
            (struct tarn_pick){.files = p->files + begin, .file_count = end - begin, .why = "full"};
        return true;
    }
    int64_t size = 0;
    for (size_t i = 0; i < p->file_count; i++) {
        size += p->files[i]->file.size;
        if (i + 1 - begin >= (size_t)p->options->append_min_file_count) {
            *out = (struct tarn_pick){
                .files = p->files + begin, .file_count = i + 1 - begin, .why = "file count"};
            return true;
        }
        while (size >= 2 * p->options->target_file_size && begin <= i)
            size -= p->files[begin++]->file.size;
    }
    return false;
}

/* What may be rewritten comes first; *thinned: of some of it many rows are deleted (full: any). */
static size_t sort_candidates(struct picker *p, bool full, bool *thinned)
{
    const struct tarn_manifest_entry **list =
        tarn_arena_calloc(p->arena, p->file_count + 1, sizeof *list);
    size_t n = 0;
    *thinned = false;
    for (size_t i = 0; i < p->file_count; i++) {
        const struct tarn_manifest_entry *file = p->files[i];
        bool thin = full ? has_vector(file) : is_thinned(p->options, file);
        if (thin || file->file.size < tarn_maintain_small_limit(p->options))
            list[n++] = file;
        *thinned |= thin;
    }
    p->files = list;
    if (n > 0)
        qsort(list, n, sizeof *list, by_size);
    return n;
}

/* Without buckets any small files of a partition may go together: bins from the smallest up. Where rows are deleted, files that
 * have many of them come along, and are worth it alone. */
static bool pick_unaware(struct picker *p, bool full, struct tarn_pick *out)
{
    bool thinned;
    size_t small = sort_candidates(p, full, &thinned), count = 0;
    int64_t weight = 0;
    while (count < small && weight < 2 * p->options->target_file_size)
        weight += p->files[count++]->file.size + p->options->split_open_cost;
    bool filled = count > 1 && weight >= 2 * p->options->target_file_size;
    bool many = count >= (size_t)(full ? 2 : TARN_MAX(p->options->append_min_file_count, 2));
    if (thinned && !filled && !many) { /* those alone, as many as a bin takes */
        size_t kept = 0;
        for (size_t i = 0; i < small; i++)
            if (full ? has_vector(p->files[i]) : is_thinned(p->options, p->files[i]))
                p->files[kept++] = p->files[i];
        count = TARN_MIN(kept, TARN_MAX(count, (size_t)1));
    } else if (!filled && !many) {
        return false;
    }
    *out = (struct tarn_pick){.files = p->files,
                              .file_count = count,
                              .why = full                          ? "full"
                                     : thinned && !filled && !many ? "deleted rows"
                                     : filled                      ? "size"
                                                                   : "file count"};
    return true;
}

/* All that waits for buckets: not to be merged, but moved. */
static bool pick_postponed(struct picker *p, struct tarn_pick *out)
{
    *out = (struct tarn_pick){.files = p->files,
                              .file_count = p->file_count,
                              .top_level = p->top_level,
                              .why = "postponed"};
    return p->file_count > 0;
}

bool tarn_pick_compaction(const struct tarn_schema *schema, const struct tarn_options *options,
                          const struct tarn_bucket_files *bucket, bool full, int64_t now_ms,
                          struct tarn_arena *arena, struct tarn_pick *out)
{
    struct picker p = {.options = options, .arena = arena};
    p.force_up_level_0 = options->force_up_level_0 || tarn_maintain_is_waited_for(schema, options);
    make_runs(&p, bucket);
    if (bucket->bucket == TARN_BUCKET_POSTPONE) /* nobody sees their rows before that */
        return pick_postponed(&p, out);
    if (!tarn_schema_is_append(schema))
        return pick_sorted(&p, full, now_ms, out);
    return options->bucket > 0 ? pick_ordered(&p, full, out) : pick_unaware(&p, full, out);
}

size_t tarn_pick_runs(const struct tarn_schema *schema, const struct tarn_options *options,
                      const struct tarn_bucket_files *bucket, struct tarn_arena *arena,
                      struct tarn_run **out)
{
    struct picker p = {.options = options, .arena = arena};
    make_runs(&p, bucket);
    bool append = tarn_schema_is_append(schema);
    if (append)
        qsort(p.files, p.file_count, sizeof *p.files, options->bucket > 0 ? by_sequence : by_size);
    size_t count = append ? p.file_count : (size_t)p.run_count;
    *out = tarn_arena_calloc(arena, count + 1, sizeof **out);
    for (size_t i = 0; i < count; i++) {
        struct run of_file = {.level = 0, .begin = i, .count = 1};
        if (append)
            of_file.size = p.files[i]->file.size;
        const struct run *run = append ? &of_file : &p.runs[i];
        (*out)[i] =
            (struct tarn_run){run->level, (int32_t)run->count, run->size, newest_of(&p, run)};
    }
    return count;
}
