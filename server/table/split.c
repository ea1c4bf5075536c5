#include "table/plan.h"

/* Packing the files of a bucket into splits as Paimon packs them (docs/format.md, "Batch plan"). */

/* --- keys: decoded once, as one number where there is one whole number to compare --- */

struct ranged {
    size_t at; /* of the ref */
    union {
        struct {
            const struct tarn_value *min, *max;
        };
        struct {
            int64_t min_number, max_number;
        };
    };
};

struct key_order {
    const struct tarn_planner *p;
    const struct tarn_ref *refs;
    bool is_number;
};

static bool is_number(const struct tarn_planner *p)
{
    return p->key_count == 1 &&
           ((p->key_types[0]->id >= TARN_TYPE_TINYINT && p->key_types[0]->id <= TARN_TYPE_BIGINT) ||
            p->key_types[0]->id == TARN_TYPE_DATE);
}

static int compare_values(const struct tarn_planner *p, const struct tarn_value *a,
                          const struct tarn_value *b)
{
    for (size_t i = 0; i < p->key_count; i++) {
        int c = tarn_value_compare(p->key_types[i], &a[i], &b[i]);
        if (c != 0)
            return c;
    }
    return 0;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_range(const void *a, const void *b, void *arg)
{
    const struct ranged *left = a, *right = b;
    const struct key_order *order = arg;
    int c;
    if (order->is_number) {
        c = compare_numbers(left->min_number, right->min_number);
        c = c != 0 ? c : compare_numbers(left->max_number, right->max_number);
    } else {
        c = compare_values(order->p, left->min, right->min);
        c = c != 0 ? c : compare_values(order->p, left->max, right->max);
    }
    return c != 0 ? c : compare_numbers((int64_t)left->at, (int64_t)right->at);
}

static int by_arrival(const void *a, const void *b, void *arg)
{
    const struct ranged *left = a, *right = b;
    const struct key_order *order = arg;
    int c = compare_numbers(order->refs[left->at].added_by, order->refs[right->at].added_by);
    return c != 0 ? c : by_range(a, b, arg);
}

static struct tarn_slice key_at(const struct tarn_ref *ref, uint32_t at, uint32_t size)
{
    return tarn_slice_of(ref->packed + at, size);
}

static struct tarn_status *decode_ranges(const struct key_order *order, size_t count,
                                         struct tarn_arena *arena, struct ranged *out)
{
    const struct tarn_planner *p = order->p;
    for (size_t i = 0; i < count; i++) {
        const struct tarn_ref *ref = &order->refs[i];
        struct tarn_value number[2];
        struct tarn_value *min =
            order->is_number ? number : tarn_arena_calloc(arena, p->key_count * 2 + 1, sizeof *min);
        struct tarn_value *max = min + (order->is_number ? 1 : p->key_count);
        TARN_TRY(tarn_row_deserialize(key_at(ref, ref->min_key_at, ref->min_key_size), p->key_types,
                                      p->key_count, min));
        TARN_TRY(tarn_row_deserialize(key_at(ref, ref->max_key_at, ref->max_key_size), p->key_types,
                                      p->key_count, max));
        out[i].at = i;
        if (order->is_number) {
            out[i].min_number = min->is_null ? INT64_MIN : min->integer;
            out[i].max_number = max->is_null ? INT64_MIN : max->integer;
        } else {
            out[i].min = min;
            out[i].max = max;
        }
    }
    return TARN_OK;
}

typedef int (*range_order)(const void *, const void *, void *);

/* Where the run that begins at `from` ends: up to there all is in order. */
static size_t run_end(const struct ranged *list, size_t from, size_t count, range_order compare,
                      struct key_order *order)
{
    size_t end = from + 1;
    while (end < count && compare(&list[end - 1], &list[end], order) <= 0)
        end++;
    return TARN_MIN(end, count);
}

/* Two runs, one behind the other, into one. */
static void merge_runs(const struct ranged *from, size_t middle, size_t end, range_order compare,
                       struct key_order *order, struct ranged *to)
{
    size_t left = 0, right = middle;
    while (left < middle && right < end)
        *to++ = compare(&from[left], &from[right], order) <= 0 ? from[left++] : from[right++];
    memcpy(to, from + left, (middle - left) * sizeof *to);
    memcpy(to + (middle - left), from + right, (end - right) * sizeof *to);
}

/* Files lie in a few runs that are in order already, one a level: those are merged, two and two. What comes back is
 * the list, or memory of the arena. */
static struct ranged *sort_ranges(struct ranged *list, size_t count, range_order compare,
                                  struct key_order *order, struct tarn_arena *arena)
{
    struct ranged *other = NULL;
    while (run_end(list, 0, count, compare, order) < count) {
        if (other == NULL)
            other = tarn_arena_alloc(arena, count * sizeof *other);
        for (size_t begin = 0, middle, end; begin < count; begin = end) {
            middle = run_end(list, begin, count, compare, order);
            end = middle < count ? run_end(list, middle, count, compare, order) : count;
            merge_runs(list + begin, middle - begin, end - begin, compare, order, other + begin);
        }
        struct ranged *sorted = other;
        other = list;
        list = sorted;
    }
    return list;
}

static void apply_order(struct tarn_ref *refs, const struct ranged *list, size_t count,
                        struct tarn_arena *arena)
{
    bool same = true;
    for (size_t i = 0; i < count && same; i++)
        same = list[i].at == i;
    if (same)
        return;
    struct tarn_ref *sorted = tarn_arena_alloc(arena, count * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = refs[list[i].at];
    memcpy(refs, sorted, count * sizeof *sorted);
}

static bool overlaps(const struct key_order *order, const struct ranged *next,
                     const struct ranged *last)
{
    return order->is_number ? next->min_number <= last->max_number
                            : compare_values(order->p, next->min, last->max) <= 0;
}

static bool reaches_further(const struct key_order *order, const struct ranged *next,
                            const struct ranged *last)
{
    return order->is_number ? next->max_number > last->max_number
                            : compare_values(order->p, next->max, last->max) > 0;
}

struct tarn_status *tarn_plan__sections(struct tarn_planner *p, struct tarn_ref *refs, size_t count,
                                        struct tarn_arena *arena, int **section_of,
                                        int *section_count)
{
    struct key_order order = {p, refs, is_number(p)};
    struct ranged *list = tarn_arena_alloc(arena, (count + 1) * sizeof *list);
    int *sections = tarn_arena_alloc(arena, (count + 1) * sizeof *sections);
    TARN_TRY(decode_ranges(&order, count, arena, list));
    list = sort_ranges(list, count, by_range, &order, arena);
    *section_count = 0;
    const struct ranged *furthest = NULL;
    for (size_t i = 0; i < count; i++) {
        if (furthest == NULL || !overlaps(&order, &list[i], furthest)) {
            (*section_count)++;
            furthest = &list[i];
        } else if (reaches_further(&order, &list[i], furthest)) {
            furthest = &list[i];
        }
        sections[i] = *section_count - 1;
    }
    apply_order(refs, list, count, arena);
    *section_of = sections;
    return TARN_OK;
}

/* In the order of Paimon's manifests: as they came, and what came at once by key, as a compaction writes it. */
static struct tarn_status *sort_by_arrival(struct tarn_planner *p, struct tarn_ref *refs,
                                           size_t count, struct tarn_arena *arena)
{
    struct key_order order = {p, refs, is_number(p)};
    struct ranged *list = tarn_arena_alloc(arena, (count + 1) * sizeof *list);
    TARN_TRY(decode_ranges(&order, count, arena, list));
    list = sort_ranges(list, count, by_arrival, &order, arena);
    apply_order(refs, list, count, arena);
    return TARN_OK;
}

/* --- packing --- */

struct packer {
    struct tarn_planner *p;
    struct tarn_bucket_work *work;
    int64_t weight; /* of the split being filled */
    bool open;
};

static void end_split(struct packer *k, size_t end, bool raw)
{
    struct tarn_bucket_work *work = k->work;
    if (work->split_count == work->split_capacity) {
        work->split_capacity = work->split_capacity == 0 ? 16 : work->split_capacity * 2;
        work->split_ends =
            tarn_realloc(work->split_ends, work->split_capacity * sizeof *work->split_ends);
        work->split_raw =
            tarn_realloc(work->split_raw, work->split_capacity * sizeof *work->split_raw);
    }
    work->split_ends[work->split_count] = end;
    work->split_raw[work->split_count++] = raw;
}

/* An item is the refs from `begin` up to `end`, which stay together. */
static void pack_item(struct packer *k, size_t begin, size_t end)
{
    const struct tarn_options *o = k->p->plan.options;
    int64_t size = 0;
    for (size_t i = begin; i < end; i++)
        if (__builtin_add_overflow(size, k->work->refs[i].size, &size))
            size = INT64_MAX / 4;
    int64_t weight = TARN_MIN(TARN_MAX(size, o->split_open_cost), INT64_MAX / 4);
    if (k->open && k->weight > 0 && k->weight + weight > o->split_target_size) {
        end_split(k, begin, false);
        k->weight = 0;
    }
    k->open = true;
    k->weight = TARN_MIN(k->weight + weight, INT64_MAX / 4);
}

static int by_sequence(const void *a, const void *b)
{
    const struct tarn_ref *left = a, *right = b;
    int c = compare_numbers(left->min_sequence, right->min_sequence);
    c = c != 0 ? c : compare_numbers(left->added_by, right->added_by);
    return c != 0 ? c : compare_numbers(left->order, right->order);
}

static void sort_refs(struct tarn_ref *refs, size_t count,
                      int (*compare)(const void *, const void *))
{
    for (size_t i = 1; i < count; i++)
        if (compare(&refs[i - 1], &refs[i]) > 0) {
            qsort(refs, count, sizeof *refs, compare);
            return;
        }
}

bool tarn_plan__reads_raw(const struct tarn_planner *p, const struct tarn_ref *refs, size_t count)
{
    bool marked = p->plan.options->deletion_vectors;
    for (size_t i = 0; i < count; i++)
        if (refs[i].level == 0 || refs[i].has_deletes ||
            (refs[i].level != refs[0].level && !marked))
            return false;
    return true;
}

static int by_level(const void *a, const void *b)
{
    const struct tarn_ref *left = a, *right = b;
    int c = compare_numbers(left->level, right->level);
    return c != 0 ? c
                  : tarn_slice_compare(key_at(left, left->name_at, left->name_size),
                                       key_at(right, right->name_at, right->name_size));
}

/* One split, whatever there is. before files of a DIFF come after the others. */
static int by_side(const void *a, const void *b)
{
    const struct tarn_ref *left = a, *right = b;
    int c = compare_numbers(left->is_before, right->is_before);
    return c != 0 ? c : by_sequence(a, b);
}

/* A file of changes among others of its bucket. */
struct change {
    struct tarn_ref ref;
    struct tarn_slice writer; /* its name up to the number, which is counted on from file to file */
    int64_t number;
    int64_t first; /* sequence number of all files of this writer and snapshot */
};

static void read_name(struct change *c)
{
    struct tarn_slice name = key_at(&c->ref, c->ref.name_at, c->ref.name_size);
    size_t dash = name.size, end;
    while (dash > 0 && name.data[dash - 1] != '-')
        dash--;
    for (end = dash; end < name.size && name.data[end] >= '0' && name.data[end] <= '9' &&
                     c->number < INT64_MAX / 16;
         end++)
        c->number = c->number * 10 + (name.data[end] - '0');
    c->writer = tarn_slice_of(name.data, dash);
}

static int by_writer(const void *a, const void *b)
{
    const struct change *left = a, *right = b;
    int c = compare_numbers(left->ref.added_by, right->ref.added_by);
    c = c != 0 ? c : compare_numbers(left->first, right->first);
    c = c != 0 ? c : tarn_slice_compare(left->writer, right->writer);
    c = c != 0 ? c : compare_numbers(left->number, right->number);
    return c != 0 ? c : by_sequence(&left->ref, &right->ref);
}

/* Changes are told snapshot by snapshot, and of one as they were written: its files are numbered, while sequence numbers
 * of a changelog go up and down (what an update replaced has an old one). */
static void sort_changes(struct tarn_ref *refs, size_t count, struct tarn_arena *arena)
{
    struct change *all = tarn_arena_calloc(arena, count + 1, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[i].ref = refs[i];
        read_name(&all[i]);
    }
    for (int pass = 0; pass < 2 && count > 1; pass++) {
        qsort(all, count, sizeof *all, by_writer);
        for (size_t begin = 0, end; pass == 0 && begin < count; begin = end) {
            int64_t first = all[begin].ref.min_sequence;
            for (end = begin + 1; end < count && all[end].ref.added_by == all[begin].ref.added_by &&
                                  tarn_slice_equal(all[end].writer, all[begin].writer);
                 end++)
                first = TARN_MIN(first, all[end].ref.min_sequence);
            for (size_t i = begin; i < end; i++)
                all[i].first = first;
        }
    }
    for (size_t i = 0; i < count; i++)
        refs[i] = all[i].ref;
}

static struct tarn_status *split_sections(struct packer *k, struct tarn_arena *arena)
{
    struct tarn_bucket_work *work = k->work;
    int *section_of, section_count;
    TARN_TRY(
        tarn_plan__sections(k->p, work->refs, work->count, arena, &section_of, &section_count));
    for (size_t begin = 0, end; begin < work->count; begin = end) {
        for (end = begin + 1; end < work->count && section_of[end] == section_of[begin];)
            end++;
        if (k->p->request.changes != TARN_CHANGES_NONE)
            sort_changes(work->refs + begin, end - begin, arena);
        pack_item(k, begin, end);
    }
    end_split(k, work->count, false);
    for (size_t s = 0, begin = 0; s < work->split_count; begin = work->split_ends[s++])
        work->split_raw[s] = work->split_ends[s] - begin == 1 && !work->refs[begin].has_deletes;
    return TARN_OK;
}

static void split_each(struct packer *k)
{
    for (size_t i = 0; i < k->work->count; i++)
        pack_item(k, i, i + 1);
    end_split(k, k->work->count, true);
    for (size_t s = 0; s < k->work->split_count; s++)
        k->work->split_raw[s] = true;
}

struct tarn_status *tarn_plan__split_bucket(struct tarn_planner *p, struct tarn_bucket_work *work)
{
    struct packer k = {.p = p, .work = work};
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    bool unaware = p->is_append && p->plan.options->bucket < 0;
    work->split_count = work->next_split = work->next_ref = 0;
    if (p->request.no_splits) {
        sort_refs(work->refs, work->count, by_level);
        end_split(&k, work->count, false);
        return TARN_OK;
    }
    if (p->request.changes == TARN_CHANGES_DIFF ||
        (p->request.changes != TARN_CHANGES_NONE && p->request.whole_buckets && !unaware)) {
        if (p->request.changes == TARN_CHANGES_DIFF || p->is_append)
            sort_refs(work->refs, work->count, by_side);
        else
            sort_changes(work->refs, work->count, arena);
        end_split(&k, work->count, p->request.changes != TARN_CHANGES_DIFF);
        return TARN_OK;
    }
    if (p->is_append) {
        sort_refs(work->refs, work->count, by_sequence);
        split_each(&k);
        return TARN_OK;
    }
    if (!tarn_plan__reads_raw(p, work->refs, work->count))
        return split_sections(&k, arena);
    TARN_TRY(sort_by_arrival(p, work->refs, work->count, arena));
    split_each(&k);
    return TARN_OK;
}
