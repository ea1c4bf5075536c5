#include "table/plan.h"

/*
 * Which files a bucket has at the plan's snapshot: live ones from pages, and where the index has gone on since, those
 * that were removed later; or what was listed from elsewhere. Files that can't hold a row are left out on the way.
 */

/* --- work on a bucket --- */

#define SPARE_ARENA_SIZE ((size_t)256 << 10) /* a smaller arena isn't begun anew */

struct tarn_bucket_work *tarn_plan__work_new(struct tarn_bucket_work *spare)
{
    if (spare == NULL) {
        struct tarn_bucket_work *work = tarn_calloc(1, sizeof *work);
        work->arena = tarn_arena_new();
        return work;
    }
    struct tarn_bucket_work kept = *spare;
    tarn_page_set_fini(&kept.pages);
    if (tarn_arena_size(kept.arena) > SPARE_ARENA_SIZE) {
        tarn_arena_free(kept.arena);
        kept.arena = tarn_arena_new();
    }
    *spare = (struct tarn_bucket_work){.refs = kept.refs,
                                       .capacity = kept.capacity,
                                       .split_ends = kept.split_ends,
                                       .split_raw = kept.split_raw,
                                       .split_capacity = kept.split_capacity,
                                       .arena = kept.arena};
    return spare;
}

void tarn_plan__work_free(struct tarn_bucket_work *work)
{
    if (work == NULL)
        return;
    free(work->refs);
    free(work->split_ends);
    free(work->split_raw);
    tarn_page_set_fini(&work->pages);
    tarn_arena_free(work->arena);
    free(work);
}

void tarn_plan__work_drop(struct tarn_bucket_work **work)
{
    tarn_plan__work_free(*work);
    *work = NULL;
}

struct tarn_ref *tarn_plan__ref_add(struct tarn_bucket_work *work,
                                    const struct tarn_manifest_entry *entry,
                                    struct tarn_slice packed, int64_t added_by)
{
    const struct tarn_data_file *f = &entry->file;
    TARN_GROW(work->refs, work->count, work->capacity);
    struct tarn_ref *ref = &work->refs[work->count++];
    *ref = (struct tarn_ref){
        .packed = packed.data,
        .packed_size = (uint32_t)packed.size,
        .min_key_at = (uint32_t)(f->min_key.data - packed.data),
        .min_key_size = (uint32_t)f->min_key.size,
        .max_key_at = (uint32_t)(f->max_key.data - packed.data),
        .max_key_size = (uint32_t)f->max_key.size,
        .name_at = (uint32_t)(f->name.data - packed.data),
        .name_size = (uint16_t)f->name.size,
        .has_deletes = f->delete_row_count != TARN_FILE_NONE && f->delete_row_count > 0,
        .level = f->level,
        .order = (uint32_t)work->count - 1,
        .total_buckets = entry->total_buckets,
        .added_by = added_by,
        .made = f->creation_time_ms,
        .size = f->size,
        .row_count = f->row_count,
        .min_sequence = f->min_sequence,
        .may_match = true,
    };
    return ref;
}

/* --- one file --- */

static struct tarn_status *damaged(const struct tarn_planner *p)
{
    return tarn_status_new(TARN_STATE_DAMAGED, "table %s: an entry of the index is damaged",
                           tarn_table_name(p->table));
}

/* By bucket and keys: what an entry says without statistics. */
static struct tarn_status *passes_bare(struct tarn_planner *p,
                                       const struct tarn_manifest_entry *entry, bool *out)
{
    *out = !p->skips_level_0 || entry->file.level > 0;
    if (!*out) {
        p->plan.files_seen--; /* no file of this plan */
        return TARN_OK;
    }
    *out = tarn_plan__bucket_passes(p, entry->bucket, entry->total_buckets);
    if (!*out) {
        p->plan.pruned_by_bucket++;
        return TARN_OK;
    }
    if (p->request.changes == TARN_CHANGES_DIFF)
        return TARN_OK;
    TARN_TRY(tarn_plan__key_passes(p, entry, out));
    p->plan.pruned_by_key += !*out;
    return TARN_OK;
}

/* Where rows merge, value statistics rule out whole sections only (prune.c): what they say is kept. */
static struct tarn_status *passes_stats(struct tarn_planner *p,
                                        const struct tarn_manifest_entry *entry, bool *out,
                                        bool *may_match)
{
    enum tarn_verdict verdict = TARN_VERDICT_PASSES;
    if (p->has_where && p->request.changes != TARN_CHANGES_DIFF)
        TARN_TRY(tarn_plan__stats_verdict(p, &entry->file, &verdict));
    *may_match = verdict == TARN_VERDICT_PASSES;
    *out = *may_match || (verdict == TARN_VERDICT_STATS && !p->is_append);
    p->plan.pruned_by_key += !*out && verdict == TARN_VERDICT_KEY;
    p->plan.pruned_by_stats += !*out && verdict == TARN_VERDICT_STATS;
    return TARN_OK;
}

/* A packed entry with statistics, whose memory stays. */
static struct tarn_status *consider_full(struct tarn_planner *p, struct tarn_bucket_work *work,
                                         struct tarn_slice packed, int64_t added_by, bool is_before)
{
    struct tarn_manifest_entry entry;
    bool passes, may_match;
    p->plan.files_seen++;
    tarn_plan__scratch_reset(p);
    TARN_TRY(tarn_manifest_entry_view(packed, p->scratch, &entry));
    TARN_TRY(passes_bare(p, &entry, &passes));
    if (passes)
        TARN_TRY(passes_stats(p, &entry, &passes, &may_match));
    if (!passes)
        return TARN_OK;
    struct tarn_ref *ref = tarn_plan__ref_add(work, &entry, packed, added_by);
    ref->has_stats = true;
    ref->is_before = is_before;
    ref->may_match = may_match;
    return TARN_OK;
}

/* --- live files --- */

/* STATS beside the pages of a bucket, where the filter wants them. */
struct stats_walk {
    struct tarn_state_iterator *it; /* NULL: not opened yet */
    struct tarn_buf key;
};

static void stats_walk_fini(struct stats_walk *w)
{
    tarn_state_iterator_free(w->it);
    tarn_buf_drop(&w->key);
}

/* The entry, which lies in page `page`, gets its statistics, which are there until the next step. */
static struct tarn_status *add_stats(struct tarn_planner *p, const struct tarn_bucket_work *work,
                                     size_t page, uint64_t hash, struct tarn_slice packed,
                                     struct stats_walk *w, struct tarn_manifest_entry *entry)
{
    const struct tarn_page_set *set = &work->pages;
    struct tarn_slice stats;
    if (w->it == NULL) {
        struct tarn_state_range range = {set->pages[page].from, set->pages[set->count - 1].to,
                                         set->view, false};
        w->it = tarn_state_iterator_open(p->table->env->state, TARN_FAMILY_STATS, &range);
    }
    TARN_TRY(tarn_manifest_entry_view(packed, p->scratch, entry)); /* with its lists */
    struct tarn_live_name name = {entry->file.level, entry->file.creation_time_ms, entry->file.name,
                                  hash};
    tarn_buf_clear(&w->key);
    tarn_table__live_key_in(p->table->uuid, work->key, &name, &w->key);
    if (!tarn_state_iterator_find(w->it, tarn_buf_slice(&w->key), &stats)) {
        TARN_TRY(tarn_state_iterator_error(w->it));
        return damaged(p);
    }
    return tarn_manifest_stats_view(stats, p->scratch, &entry->file);
}

static struct tarn_slice name_of(const struct tarn_ref *ref)
{
    return tarn_slice_of(ref->packed + ref->name_at, ref->name_size);
}

/* One live entry that the snapshot sees. */
static struct tarn_status *consider_live(struct tarn_planner *p, struct tarn_bucket_work *work,
                                         struct stats_walk *walk, size_t page, size_t i,
                                         struct tarn_slice packed, int64_t added_by,
                                         struct tarn_page_bounds *bounds)
{
    uint64_t hash = tarn_page_hash(work->pages.pages[page].content, i);
    struct tarn_manifest_entry entry;
    bool passes, may_match = true;
    tarn_plan__scratch_reset(p);
    TARN_TRY(tarn_manifest_entry_view(packed, NULL, &entry));
    if (bounds != NULL && !bounds->has_values)
        TARN_TRY(tarn_plan__page_bounds_add(p, bounds, &entry.file, i == 0));
    p->plan.files_seen++;
    TARN_TRY(passes_bare(p, &entry, &passes));
    bool bounding = bounds != NULL && bounds->has_values;
    if (bounding || (passes && p->has_where))
        TARN_TRY(add_stats(p, work, page, hash, packed, walk, &entry));
    if (bounding) { /* an append table's: what its page is bounded by judges the file, too */
        TARN_TRY(tarn_plan__page_bounds_add(p, bounds, &entry.file, i == 0));
        bool matches = tarn_plan__bounds_match(p);
        p->plan.pruned_by_stats += passes && !matches;
        passes = passes && matches;
    } else if (passes) {
        TARN_TRY(passes_stats(p, &entry, &passes, &may_match));
    }
    if (!passes)
        return TARN_OK;
    struct tarn_ref *ref = tarn_plan__ref_add(work, &entry, packed, added_by);
    ref->may_match = may_match;
    ref->hash = hash;
    return TARN_OK;
}

/* Bounds are kept where a page is looked at whole for the first time, of keys or, in append tables, of values. */
static struct tarn_page_bounds *bounds_wanted(struct tarn_planner *p,
                                              const struct tarn_page_ref *ref)
{
    bool of_keys = p->has_key_where;
    bool of_values = p->has_where && p->is_append;
    if ((!of_keys && !of_values) || ref->version == 0 ||
        (ref->bounds != NULL &&
         ref->bounds->schema_stamp == tarn_plan__schema_stamp(p->plan.schema)))
        return NULL;
    return tarn_plan__page_bounds_new(p, of_values);
}

static struct tarn_status *gather_page(struct tarn_planner *p, struct tarn_bucket_work *work,
                                       struct stats_walk *walk, size_t page)
{
    const struct tarn_page_ref *ref = &work->pages.pages[page];
    struct tarn_page_bounds *bounds = bounds_wanted(p, ref);
    struct tarn_status *s = TARN_OK;
    for (size_t i = 0; i < ref->content->count && s == TARN_OK; i++) {
        struct tarn_slice packed;
        int64_t added_by;
        if (!tarn_table__split_value(tarn_page_entry(ref->content, i), &added_by, &packed))
            s = damaged(p);
        else if (added_by <= p->plan.snapshot.id)
            s = consider_live(p, work, walk, page, i, packed, added_by, bounds);
        else
            tarn_page_bounds_unref(tarn_move(bounds)); /* not of all its files */
    }
    if (s == TARN_OK && bounds != NULL && ref->content->count > 0)
        tarn_table__pages_keep_bounds(p->table, ref, tarn_page_bounds_ref(bounds));
    tarn_page_bounds_unref(bounds);
    return s;
}

static struct tarn_status *gather_live(struct tarn_planner *p, struct tarn_bucket_work *work)
{
    TARN_OWN(stats_walk_fini) struct stats_walk walk = {0};
    for (size_t i = 0; i < work->pages.count; i++) {
        const struct tarn_page_ref *ref = &work->pages.pages[i];
        if ((i & 15) == 0)
            TARN_TRY(tarn_op_check(p->op));
        if (ref->content != NULL) {
            TARN_TRY(gather_page(p, work, &walk, i));
            continue;
        }
        p->plan.files_seen += ref->file_count;
        *(ref->bounds->has_values ? &p->plan.pruned_by_stats : &p->plan.pruned_by_key) +=
            ref->file_count;
    }
    return TARN_OK;
}

/* --- files that were removed since --- */

static struct tarn_status *gather_removed(struct tarn_planner *p, struct tarn_bucket_work *work)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__removed_from(p->table->uuid, work->key, p->plan.snapshot.id + 1, &from);
    tarn_table__range_end(p->table->uuid, work->key, &to);
    struct tarn_state_range range = {tarn_buf_slice(&from), tarn_buf_slice(&to), work->pages.view,
                                     false};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(p->table->env->state, TARN_FAMILY_REMOVED, &range);
    struct tarn_slice key, value, packed;
    for (size_t steps = 1; tarn_state_iterator_next(it, &key, &value); steps++) {
        int64_t added_by;
        if ((steps & 1023) == 0)
            TARN_TRY(tarn_op_check(p->op));
        if (!tarn_table__split_value(value, &added_by, &packed))
            return damaged(p);
        if (added_by <= p->plan.snapshot.id)
            TARN_TRY(consider_full(p, work, tarn_arena_copy(work->arena, packed), added_by, false));
    }
    return tarn_state_iterator_error(it);
}

/* --- statistics of the files of a batch --- */

/* A file that was removed since it was gathered took its statistics along. */
static struct tarn_status *add_of_removed(struct tarn_planner *p,
                                          const struct tarn_bucket_work *work,
                                          const struct tarn_ref *ref, struct tarn_buf *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_table__removed_from(p->table->uuid, work->key, p->plan.snapshot.id + 1, &from);
    tarn_table__range_end(p->table->uuid, work->key, &to);
    struct tarn_state_range range = {.from = tarn_buf_slice(&from), .to = tarn_buf_slice(&to)};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(p->table->env->state, TARN_FAMILY_REMOVED, &range);
    struct tarn_slice key, value, packed;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_manifest_entry removed;
        int64_t by;
        if (!tarn_table__split_value(value, &by, &packed))
            return damaged(p);
        TARN_TRY(tarn_manifest_entry_view(packed, NULL, &removed));
        if (by == ref->added_by && removed.file.level == ref->level &&
            tarn_slice_equal(removed.file.name, name_of(ref))) {
            struct tarn_slice fields, stats;
            TARN_TRY(tarn_manifest_entry_fields(packed, &fields, &stats));
            const uint8_t *behind = fields.data + fields.size; /* where packed statistics lie */
            tarn_buf_add(out, behind, (size_t)(packed.data + packed.size - behind));
            return TARN_OK;
        }
    }
    TARN_TRY(tarn_state_iterator_error(it));
    TARN_TRY(tarn_table__pages_check(p->table, p->epoch, p->plan.snapshot.id)); /* it expired? */
    return damaged(p);
}

static int by_key_order(const void *a, const void *b)
{
    const struct tarn_late_file *left = a, *right = b;
    return (left->order > right->order) - (left->order < right->order);
}

/* Of files of one bucket. The walk is a short one: who reads slowly holds nothing in the state. */
static struct tarn_status *bucket_stats(struct tarn_planner *p, struct tarn_late_file *files,
                                        size_t count, struct tarn_buf *out)
{
    const struct tarn_bucket_work *work = files->work;
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    tarn_buf_add(&key, p->table->uuid, TARN_INDEX_UUID_SIZE);
    tarn_buf_add_slice(&key, work->key);
    tarn_table__range_end(p->table->uuid, work->key, &to);
    struct tarn_state_range range = {
        .from = tarn_buf_slice(&key), .to = tarn_buf_slice(&to), .is_long = true};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(p->table->env->state, TARN_FAMILY_STATS, &range);
    qsort(files, count, sizeof *files, by_key_order);
    for (size_t i = 0; i < count; i++) {
        const struct tarn_ref *ref = files[i].ref;
        struct tarn_live_name name = {ref->level, ref->made, name_of(ref), ref->hash};
        struct tarn_slice stats;
        tarn_buf_clear(&key);
        tarn_table__live_key_in(p->table->uuid, work->key, &name, &key);
        files[i].at = out->size;
        if (tarn_state_iterator_find(it, tarn_buf_slice(&key), &stats)) {
            tarn_buf_add_slice(out, stats);
            continue;
        }
        TARN_TRY(tarn_state_iterator_error(it));
        TARN_TRY(add_of_removed(p, work, ref, out));
    }
    return TARN_OK;
}

struct tarn_status *tarn_plan__late_stats(struct tarn_planner *p, struct tarn_late_file *files,
                                          size_t count, struct tarn_buf *out)
{
    tarn_buf_clear(out);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && files[end].work == files[begin].work;)
            end++;
        TARN_TRY(bucket_stats(p, files + begin, end - begin, out));
    }
    return TARN_OK;
}

/* The first bucket above `after` that had files which were removed since the plan's snapshot. Appends its key. */
static struct tarn_status *next_removed(struct tarn_planner *p, bool *found, struct tarn_buf *out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf from = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf to = {0};
    if (p->after.size > 0)
        tarn_table__range_end(p->table->uuid, tarn_buf_slice(&p->after), &from);
    else
        tarn_buf_add(&from, p->table->uuid, TARN_INDEX_UUID_SIZE);
    tarn_table__range_end(p->table->uuid, tarn_slice_str(NULL), &to);
    struct tarn_state_range range = {.from = tarn_buf_slice(&from), .to = tarn_buf_slice(&to)};
    TARN_OWN(tarn_state_iterator_drop)
    struct tarn_state_iterator *it =
        tarn_state_iterator_open(p->table->env->state, TARN_FAMILY_REMOVED, &range);
    struct tarn_slice key, value;
    *found = false;
    while (tarn_state_iterator_next(it, &key, &value)) {
        struct tarn_slice rest =
            tarn_slice_of(key.data + TARN_INDEX_UUID_SIZE, key.size - TARN_INDEX_UUID_SIZE);
        size_t size = tarn_table__bucket_size(rest);
        struct tarn_slice bucket = tarn_slice_of(rest.data, size);
        rest = tarn_slice_of(rest.data + size, rest.size - size);
        int64_t removed_by;
        if (size == 0 || !tarn_key_take_i64(&rest, &removed_by))
            return damaged(p);
        if (removed_by > p->plan.snapshot.id) {
            *found = true;
            tarn_buf_clear(out);
            tarn_buf_add_slice(out, bucket);
            return TARN_OK;
        }
        tarn_buf_clear(&from);
        tarn_table__removed_from(p->table->uuid, bucket, p->plan.snapshot.id + 1, &from);
        tarn_state_iterator_seek(it, tarn_buf_slice(&from));
    }
    return tarn_state_iterator_error(it);
}

/* --- the next bucket --- */

static struct tarn_status *find_indexed(struct tarn_planner *p, bool *found,
                                        struct tarn_page_bucket *out)
{
    struct tarn_slice after = tarn_buf_slice(&p->after);
    TARN_TRY(tarn_table__pages_next(p->op, p->table, after, found, out));
    if (!tarn_table__pages_is_past(p->table, p->plan.snapshot.id))
        return TARN_OK;
    TARN_OWN(tarn_buf_drop) struct tarn_buf removed = {0};
    bool also;
    TARN_TRY(next_removed(p, &also, &removed));
    int order = !also || !*found
                    ? 0
                    : tarn_slice_compare(tarn_buf_slice(&removed), tarn_buf_slice(&out->key));
    if (also && (!*found || order < 0)) {
        tarn_buf_clear(&out->key);
        tarn_buf_add_slice(&out->key, tarn_buf_slice(&removed));
        out->file_count = 0;
        *found = true;
    }
    if (also) /* what was removed may have been written for another count */
        out->total_buckets = 0;
    return TARN_OK;
}

static struct tarn_status *gather_indexed(struct tarn_planner *p, struct tarn_bucket_work *work)
{
    TARN_TRY(tarn_table__pages_load(p->op, p->table, work->key, p->epoch, p->plan.snapshot.id,
                                    p->has_where, tarn_plan__page_wanted, p, &work->pages));
    TARN_TRY(gather_live(p, work));
    return work->pages.is_past ? gather_removed(p, work) : TARN_OK;
}

static struct tarn_status *gather_listed(struct tarn_planner *p, struct tarn_bucket_work *work)
{
    while (p->listed_next < p->listed_count &&
           tarn_slice_equal(p->listed[p->listed_next].key, work->key)) {
        const struct tarn_listed *l = &p->listed[p->listed_next++];
        TARN_TRY(consider_full(p, work, l->packed, l->added_by, l->is_before));
    }
    return TARN_OK;
}

static struct tarn_status *find_bucket(struct tarn_planner *p, bool *found,
                                       struct tarn_page_bucket *out)
{
    if (!p->is_listed)
        return find_indexed(p, found, out);
    struct tarn_slice after = tarn_buf_slice(&p->after);
    while (p->listed_next < p->listed_count && after.size > 0 &&
           tarn_slice_equal(p->listed[p->listed_next].key, after))
        p->listed_next++; /* of a bucket that was ruled out */
    *found = p->listed_next < p->listed_count;
    out->total_buckets = 0;
    out->file_count = 0;
    if (!*found)
        return TARN_OK;
    struct tarn_slice key = p->listed[p->listed_next].key;
    for (size_t i = p->listed_next; i < p->listed_count && tarn_slice_equal(p->listed[i].key, key);
         i++)
        out->file_count++;
    tarn_buf_clear(&out->key);
    tarn_buf_add_slice(&out->key, key);
    return TARN_OK;
}

/* Whole buckets that are ruled out by what they are. */
static struct tarn_status *bucket_matters(struct tarn_planner *p, struct tarn_bucket_work *work,
                                          const struct tarn_page_bucket *bucket, bool *out)
{
    /* Postponed files wait for their bucket (format.md "Buckets"): listed, but no reader sees their rows. */
    *out = work->bucket >= 0 || p->request.no_splits;
    if (!*out)
        return TARN_OK;
    TARN_TRY(tarn_plan__partition_passes(p, work->partition, out));
    if (!*out) {
        p->plan.files_seen += bucket->file_count;
        p->plan.pruned_by_partition += bucket->file_count;
        return TARN_OK;
    }
    *out = tarn_plan__bucket_passes(p, work->bucket, bucket->total_buckets);
    if (!*out) {
        p->plan.files_seen += bucket->file_count;
        p->plan.pruned_by_bucket += bucket->file_count;
    }
    return TARN_OK;
}

struct tarn_status *tarn_plan__next_bucket(struct tarn_planner *p, bool *found,
                                           struct tarn_bucket_work *work)
{
    TARN_OWN(tarn_page_bucket_fini) struct tarn_page_bucket bucket = {0};
    for (int64_t steps = 1;; steps++) {
        bool matters;
        if ((steps & 63) == 0)
            TARN_TRY(tarn_op_check(p->op));
        TARN_TRY(find_bucket(p, found, &bucket));
        if (!*found)
            return TARN_OK;
        tarn_buf_clear(&p->after);
        tarn_buf_add_slice(&p->after, tarn_buf_slice(&bucket.key));
        work->key = tarn_arena_copy(work->arena, tarn_buf_slice(&bucket.key));
        if (!tarn_table__parse_bucket(work->key, work->arena, &work->partition, &work->bucket))
            return damaged(p);
        TARN_TRY(bucket_matters(p, work, &bucket, &matters));
        if (!matters)
            continue;
        TARN_TRY(p->is_listed ? gather_listed(p, work) : gather_indexed(p, work));
        TARN_TRY(tarn_plan__prune_bucket(p, work));
        if (work->count > 0)
            return TARN_OK;
        tarn_page_set_fini(&work->pages);
        if (tarn_arena_size(work->arena) > SPARE_ARENA_SIZE) { /* nothing of it is left */
            tarn_arena_free(work->arena);
            work->arena = tarn_arena_new();
        }
    }
}
