/*
 * pieces - an overlapping section cut into what has to be merged and row groups that one file alone has.
 *
 * Units are row groups of files that could be copied, and whole files else. In order of their smallest keys, a row
 * group that begins behind all before it and ends before all that follow is alone: its rows are what merging
 * them gives. Only tables with one key column: footers bound columns, not rows of several.
 */
#include "merge/internal.h"

/* Files below this share of a section aren't opened: they have little that could be copied, and it bounds
 * how many are open at once. */
#define SHARE_MIN 64
/* Less than this between two row groups that are copied would be a small row group of its own: the second is merged, too.
 * A share of the row group. */
#define BETWEEN_MIN 2

struct unit {
    const struct tarn_manifest_entry *file;
    size_t run;
    int64_t row_begin, row_end;    /* end 0: all */
    struct tarn_merge_group group; /* copy NULL: not to be copied */
};

struct search {
    const struct tarn_merge_roll *roll;
    const struct tarn_merge_layout *layout;
    struct tarn_arena *arena;
    struct tarn_merge_pieces *out;
    struct unit *units;
    size_t count, capacity;
    size_t piece_capacity, copy_capacity;
};

/* --- units --- */

static void add_unit(struct search *search, const struct unit *unit)
{
    TARN_GROW(search->units, search->count, search->capacity);
    search->units[search->count++] = *unit;
}

static struct tarn_status *add_whole(struct search *search, const struct tarn_manifest_entry *file,
                                     size_t run)
{
    struct unit unit = {.file = file, .run = run};
    const struct tarn_type *const *types = search->layout->key_types;

    unit.group.size = file->file.size;
    TARN_TRY(tarn_row_deserialize(file->file.min_key, types, 1, &unit.group.min));
    TARN_TRY(tarn_row_deserialize(file->file.max_key, types, 1, &unit.group.max));
    add_unit(search, &unit);
    return TARN_OK;
}

/* Each row group as a unit; *known false where one has no bounds. */
static struct tarn_status *add_groups(struct search *search, const struct tarn_manifest_entry *file,
                                      size_t run, struct tarn_file_copy *copy, bool *known)
{
    const struct tarn_row_group *groups;
    size_t count = tarn_file_copy_groups(copy, &groups);
    size_t key = tarn_merge__key_place(search->roll, 0);
    size_t sequence = tarn_merge__sequence_place(search->roll);
    int64_t row = 0;

    *known = true;
    for (size_t i = 0; i < count && *known; row += groups[i++].row_count) {
        struct unit unit = {file,
                            run,
                            row,
                            row + groups[i].row_count,
                            {copy, i, groups[i].row_count, groups[i].size, 0, 0, {0}, {0}}};
        struct tarn_value least, most;

        if (groups[i].row_count == 0)
            continue;
        TARN_TRY(tarn_file_copy_bounds(copy, i, sequence, search->arena, known, &least, &most));
        if (!*known)
            break;
        unit.group.min_sequence = least.integer;
        unit.group.max_sequence = most.integer;
        TARN_TRY(tarn_file_copy_bounds(copy, i, key, search->arena, known, &unit.group.min,
                                       &unit.group.max));
        if (*known)
            add_unit(search, &unit);
    }
    return TARN_OK;
}

static struct tarn_status *add_file(struct search *search, struct tarn_op *op,
                                    const struct tarn_manifest_entry *file, size_t run, bool large)
{
    struct tarn_merge_pieces *out = search->out;
    struct tarn_file_copy *copy = NULL;
    const struct tarn_row_group *groups;
    size_t before = search->count;
    bool known = false;

    if (large)
        TARN_TRY(tarn_merge__copy_open(search->roll, op, file, &copy));
    if (copy != NULL) {
        TARN_GROW(out->copies, out->copy_count, search->copy_capacity);
        out->copies[out->copy_count++] = copy;
        if (tarn_file_copy_groups(copy, &groups) > 1)
            TARN_TRY(add_groups(search, file, run, copy, &known));
    }
    if (known)
        return TARN_OK;
    search->count = before;
    return add_whole(search, file, run);
}

static struct tarn_status *find_units(struct search *search, struct tarn_op *op,
                                      const struct tarn_merge_section *section)
{
    int64_t size = 0;

    for (size_t r = 0; r < section->run_count; r++) {
        for (size_t f = 0; f < section->runs[r].file_count; f++)
            size += section->runs[r].files[f]->file.size;
    }
    for (size_t r = 0; r < section->run_count; r++) {
        for (size_t f = 0; f < section->runs[r].file_count; f++) {
            const struct tarn_manifest_entry *file = section->runs[r].files[f];
            TARN_TRY(add_file(search, op, file, r, file->file.size >= size / SHARE_MIN));
        }
    }
    return TARN_OK;
}

static int by_min(const void *a, const void *b, void *type)
{
    const struct unit *x = a, *y = b;
    int c = tarn_value_compare(type, &x->group.min, &y->group.min);

    if (c == 0)
        c = x->run < y->run ? -1 : x->run > y->run;
    return c != 0 ? c : (x->row_begin > y->row_begin) - (x->row_begin < y->row_begin);
}

/* Those that aren't alone, or better merged with what is before them, lose their copy. */
static void choose(struct search *search)
{
    const struct tarn_type *type = search->layout->key_types[0];
    const struct tarn_value *max = NULL; /* of all before */
    int64_t between = 0;                 /* bytes to be merged since the last copy */

    for (size_t i = 0; i < search->count; i++) {
        struct tarn_merge_group *group = &search->units[i].group;
        bool alone = max == NULL || tarn_value_compare(type, max, &group->min) < 0;

        if (alone && i + 1 < search->count)
            alone = tarn_value_compare(type, &group->max, &search->units[i + 1].group.min) < 0;
        if (max == NULL || tarn_value_compare(type, &group->max, max) > 0)
            max = &group->max;
        if (!alone || (between > 0 && between < group->size / BETWEEN_MIN))
            group->copy = NULL;
        between = group->copy == NULL ? between + group->size : 0;
    }
}

/* --- pieces --- */

static struct tarn_merge_piece *add_piece(struct search *search)
{
    struct tarn_merge_pieces *out = search->out;

    TARN_GROW(out->items, out->count, search->piece_capacity);
    out->items[out->count] = (struct tarn_merge_piece){0};
    return &out->items[out->count++];
}

/* The rows of units [begin, end) that lie in one run. */
static void fill_run(struct search *search, size_t begin, size_t end, size_t r,
                     struct tarn_merge_run *run)
{
    struct tarn_merge_rows *rows = tarn_arena_calloc(search->arena, end - begin, sizeof *rows);

    run->files = tarn_arena_calloc(search->arena, end - begin, sizeof *run->files);
    run->rows = rows;
    for (size_t i = begin; i < end; i++) {
        const struct unit *unit = &search->units[i];
        size_t n = run->file_count;

        if (unit->run != r)
            continue;
        if (n > 0 && run->files[n - 1] == unit->file) {
            rows[n - 1].end = unit->row_end;
            continue;
        }
        run->files[n] = unit->file;
        rows[n] = (struct tarn_merge_rows){unit->row_begin, unit->row_end};
        run->file_count++;
    }
}

static void add_merge(struct search *search, const struct tarn_merge_section *section, size_t begin,
                      size_t end)
{
    struct tarn_merge_section *part = &add_piece(search)->section;

    part->runs = tarn_arena_calloc(search->arena, section->run_count, sizeof *part->runs);
    for (size_t r = 0; r < section->run_count; r++) {
        fill_run(search, begin, end, r, &part->runs[part->run_count]);
        if (part->runs[part->run_count].file_count > 0)
            part->run_count++;
    }
}

static void cut(struct search *search, const struct tarn_merge_section *section)
{
    size_t begin = 0;

    for (size_t i = 0; i < search->count; i++) {
        if (search->units[i].group.copy == NULL)
            continue;
        if (begin < i)
            add_merge(search, section, begin, i);
        add_piece(search)->group = search->units[i].group;
        begin = i + 1;
    }
    if (begin < search->count)
        add_merge(search, section, begin, search->count);
}

struct tarn_status *tarn_merge__pieces_find(const struct tarn_merge_roll *roll,
                                            const struct tarn_merge_layout *layout,
                                            struct tarn_op *op,
                                            const struct tarn_merge_section *section,
                                            struct tarn_arena *arena, struct tarn_merge_pieces *out)
{
    struct search search = {.roll = roll, .layout = layout, .arena = arena, .out = out};
    struct tarn_status *s = TARN_OK;

    *out = (struct tarn_merge_pieces){0};
    if (layout->key_count != 1) {
        add_piece(&search)->section = *section;
        return TARN_OK;
    }
    s = find_units(&search, op, section);
    if (s == TARN_OK) {
        qsort_r(search.units, search.count, sizeof *search.units, by_min,
                (void *)(uintptr_t)layout->key_types[0]);
        choose(&search);
        cut(&search, section);
    } else {
        tarn_merge__pieces_drop(out);
    }
    free(search.units);
    return s;
}

void tarn_merge__pieces_drop(struct tarn_merge_pieces *pieces)
{
    for (size_t i = 0; i < pieces->copy_count; i++)
        tarn_file_copy_close(pieces->copies[i]);
    free(pieces->copies);
    free(pieces->items);
    *pieces = (struct tarn_merge_pieces){0};
}
