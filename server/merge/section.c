/*
 * section - files of a bucket into sections, and sections into few sorted runs (format.md 9.3).
 *
 * Sections don't overlap, so each is merged for itself; a run's files don't overlap, so they are read
 * one after the other. Files in order of their smallest key each go to the run that ended first.
 */
#include "merge/internal.h"

struct bounds {
    const struct tarn_manifest_entry *file;
    struct tarn_value *min, *max;
};

struct key { /* what comparing needs */
    const struct tarn_type *const *types;
    size_t count;
};

static int compare_keys(const struct key *key, const struct tarn_value *a,
                        const struct tarn_value *b)
{
    for (size_t i = 0; i < key->count; i++) {
        int c = tarn_value_compare(key->types[i], &a[i], &b[i]);
        if (c != 0)
            return c;
    }
    return 0;
}

static int by_bounds(const void *a, const void *b, void *key)
{
    const struct bounds *x = a, *y = b;
    int c = compare_keys(key, x->min, y->min);

    if (c == 0)
        c = compare_keys(key, x->max, y->max);
    return c != 0 ? c : tarn_slice_compare(x->file->file.name, y->file->file.name);
}

static struct tarn_status *read_bounds(const struct key *key,
                                       const struct tarn_manifest_entry *files, size_t count,
                                       struct tarn_arena *arena, struct bounds **out)
{
    struct bounds *all = tarn_arena_calloc(arena, count, sizeof *all);

    for (size_t i = 0; i < count; i++) {
        const struct tarn_data_file *file = &files[i].file;
        struct tarn_status *s;

        all[i].file = &files[i];
        all[i].min = tarn_arena_calloc(arena, key->count, sizeof *all[i].min);
        all[i].max = tarn_arena_calloc(arena, key->count, sizeof *all[i].max);
        s = tarn_row_deserialize(file->min_key, key->types, key->count, all[i].min);
        if (s == TARN_OK)
            s = tarn_row_deserialize(file->max_key, key->types, key->count, all[i].max);
        if (s == TARN_OK && compare_keys(key, all[i].min, all[i].max) > 0)
            s = tarn_status_new(TARN_ROW_MALFORMED, "the smallest key is above the largest");
        if (s != TARN_OK)
            return tarn_status_wrap(s, "key bounds of file %.*s", TARN_SLICE_ARG(file->name));
    }
    *out = all;
    return TARN_OK;
}

struct tail { /* a run being filled: its files are a chain through `next` */
    const struct tarn_value *max;
    size_t first, last, file_count;
};

/* The heap's order: the run that ended first on top. */
static void sink(const struct key *key, struct tail *heap, size_t count, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && compare_keys(key, heap[child + 1].max, heap[child].max) < 0)
            child++;
        if (compare_keys(key, heap[at].max, heap[child].max) <= 0)
            return;
        struct tail moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

static void rise(const struct key *key, struct tail *heap, size_t at)
{
    while (at > 0 && compare_keys(key, heap[at].max, heap[(at - 1) / 2].max) < 0) {
        struct tail moved = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = moved;
        at = (at - 1) / 2;
    }
}

static int by_first(const void *a, const void *b)
{
    const struct tail *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Packs bounds [begin, end), one section, into runs. */
static void pack(const struct key *key, const struct bounds *all, size_t begin, size_t end,
                 struct tarn_arena *arena, struct tarn_merge_section *out)
{
    struct tail *heap = tarn_alloc((end - begin) * sizeof *heap);
    size_t *next = tarn_calloc(end, sizeof *next);
    size_t runs = 0;

    for (size_t i = begin; i < end; i++) {
        if (runs > 0 && compare_keys(key, heap[0].max, all[i].min) < 0) {
            next[heap[0].last] = i;
            heap[0].last = i;
            heap[0].file_count++;
            heap[0].max = all[i].max;
            sink(key, heap, runs, 0);
        } else {
            heap[runs] = (struct tail){all[i].max, i, i, 1};
            rise(key, heap, runs++);
        }
    }
    qsort(heap, runs, sizeof *heap, by_first);
    out->run_count = runs;
    out->runs = tarn_arena_calloc(arena, runs, sizeof *out->runs);
    for (size_t r = 0; r < runs; r++) {
        struct tarn_merge_run *run = &out->runs[r];
        size_t at = heap[r].first;

        run->file_count = heap[r].file_count;
        run->files = tarn_arena_calloc(arena, run->file_count, sizeof *run->files);
        for (size_t f = 0; f < run->file_count; f++, at = next[at])
            run->files[f] = all[at].file;
    }
    free(next);
    free(heap);
}

struct tarn_status *tarn_merge__sections(const struct tarn_type *const *key_types, size_t key_count,
                                         const struct tarn_manifest_entry *files, size_t file_count,
                                         struct tarn_arena *arena, struct tarn_merge_section **out,
                                         size_t *count)
{
    struct key key = {key_types, key_count};
    struct bounds *all = NULL;
    struct tarn_merge_section *sections = tarn_arena_calloc(arena, file_count, sizeof *sections);
    size_t section_count = 0;

    TARN_TRY(read_bounds(&key, files, file_count, arena, &all));
    if (file_count > 1)
        qsort_r(all, file_count, sizeof *all, by_bounds, &key);
    for (size_t begin = 0, end; begin < file_count; begin = end) {
        const struct tarn_value *max = all[begin].max;
        for (end = begin + 1; end < file_count && compare_keys(&key, all[end].min, max) <= 0;
             end++) {
            if (compare_keys(&key, all[end].max, max) > 0)
                max = all[end].max;
        }
        pack(&key, all, begin, end, arena, &sections[section_count++]);
    }
    *out = sections;
    *count = section_count;
    return TARN_OK;
}

struct tarn_status *tarn_merge__overlapping(const struct tarn_type *const *key_types,
                                            size_t key_count,
                                            const struct tarn_merge_section *section,
                                            const struct tarn_manifest_entry *files,
                                            size_t file_count, struct tarn_arena *arena,
                                            const struct tarn_manifest_entry ***out, size_t *count)
{
    struct key key = {key_types, key_count};
    struct bounds *all = NULL, *one = NULL, whole = {0};

    *out = tarn_arena_calloc(arena, file_count + 1, sizeof **out);
    *count = 0;
    if (file_count == 0)
        return TARN_OK;
    for (size_t r = 0; r < section->run_count; r++) {
        for (size_t f = 0; f < section->runs[r].file_count; f++) {
            TARN_TRY(read_bounds(&key, section->runs[r].files[f], 1, arena, &one));
            if (whole.min == NULL || compare_keys(&key, one->min, whole.min) < 0)
                whole.min = one->min;
            if (whole.max == NULL || compare_keys(&key, one->max, whole.max) > 0)
                whole.max = one->max;
        }
    }
    TARN_TRY(read_bounds(&key, files, file_count, arena, &all));
    for (size_t i = 0; i < file_count; i++)
        if (compare_keys(&key, all[i].min, whole.max) <= 0 &&
            compare_keys(&key, all[i].max, whole.min) >= 0)
            (*out)[(*count)++] = &files[i];
    return TARN_OK;
}

int tarn_merge__file_age_compare(const struct tarn_manifest_entry *a,
                                 const struct tarn_manifest_entry *b)
{
    const struct tarn_data_file *x = &a->file, *y = &b->file;

    if (x->level != y->level)
        return x->level > y->level ? -1 : 1;
    if (x->max_sequence != y->max_sequence)
        return x->max_sequence < y->max_sequence ? -1 : 1;
    if (x->creation_time_ms != y->creation_time_ms)
        return x->creation_time_ms < y->creation_time_ms ? -1 : 1;
    if (x->min_sequence != y->min_sequence)
        return x->min_sequence > y->min_sequence ? -1 : 1;
    return tarn_slice_compare(x->name, y->name);
}
