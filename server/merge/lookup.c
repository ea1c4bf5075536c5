/*
 * lookup - which rows of higher levels the records of level 0 take the place of, in tables with deletion vectors.
 *
 * Keys of level 0, merged, and those of each level above, which are sorted and don't overlap, are walked side by side: only key columns are
 * read, and only files whose keys meet those of a file of level 0. Rows that a deletion vector marks are no rows any more.
 */
#include "merge/internal.h"

struct looking {
    struct tarn_op *op;
    struct tarn_merge_layout *layout;
    struct tarn_merge_lookup *lookup;
    struct tarn_arena *arena;
    const struct tarn_manifest_entry **news; /* files of level 0 */
    size_t new_count;
    const bool *wanted; /* of the upper files */
    int *columns;       /* the key's, then sequence fields that aren't among them */
    int column_count;
    struct tarn_merge_key_spec key, order;
    struct tarn_merge_tree_spec tree;
};

struct keys { /* of level 0, in order */
    struct tarn_source *source;
    struct tarn_batch *batch; /* NULL: at the end */
    struct tarn_merge_keys keys;
    uint32_t row;
};

static void keys_fini(struct keys *k)
{
    tarn_merge__keys_drop(&k->keys);
    tarn_batch_drop(&k->batch);
    tarn_source_drop(&k->source);
}

static struct tarn_status *next_batch(struct looking *l, struct keys *k)
{
    tarn_merge__keys_drop(&k->keys);
    tarn_batch_drop(&k->batch);
    k->row = 0;
    TARN_TRY(k->source->next(k->source, l->op, &k->batch));
    return k->batch == NULL ? TARN_OK : tarn_merge__keys_build(&l->key, k->batch, &k->keys);
}

static struct tarn_status *open_keys(struct looking *l, struct keys *out)
{
    struct tarn_merge_section section = {.run_count = l->new_count};
    section.runs = tarn_arena_calloc(l->arena, l->new_count + 1, sizeof *section.runs);
    for (size_t i = 0; i < l->new_count; i++)
        section.runs[i] = (struct tarn_merge_run){.files = &l->news[i], .file_count = 1};
    struct tarn_merge_input **inputs = tarn_merge__section_inputs(
        l->layout, &section, l->columns, (size_t)l->column_count, l->arena);
    TARN_TRY(tarn_merge__tree_open(l->op, &l->tree, inputs, section.run_count, &out->source));
    return next_batch(l, out);
}

/* Rows of a batch of an upper file, whose first row is `first`, that have a key of level 0. */
static struct tarn_status *match_batch(struct looking *l, struct keys *k,
                                       const struct tarn_merge_keys *upper, int64_t first,
                                       int64_t count, const struct tarn_deletions *old,
                                       struct tarn_deletions *found)
{
    for (int64_t i = 0; i < count && first + i < found->row_count; i++) {
        if (old->rows != NULL && tarn_deletions_has(old, first + i))
            continue;
        int c = 1;
        while (k->batch != NULL &&
               (c = tarn_merge__keys_compare(&k->keys, k->row, upper, (uint32_t)i)) < 0) {
            if (++k->row == k->batch->row_count)
                TARN_TRY(next_batch(l, k));
        }
        if (k->batch == NULL)
            return TARN_OK;
        if (c == 0)
            tarn_deletions_add(found, first + i);
    }
    return TARN_OK;
}

static struct tarn_status *match_batches(struct looking *l, struct keys *k,
                                         struct tarn_merge_input *input,
                                         const struct tarn_deletions *old,
                                         struct tarn_deletions *found)
{
    for (int64_t first = 0; k->batch != NULL;) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        struct tarn_merge_keys keys = {0};
        uint32_t place;
        TARN_TRY(tarn_op_check(l->op));
        TARN_TRY(input->next(input, l->op, &batch, &place));
        if (batch == NULL)
            return TARN_OK;
        struct tarn_status *s = tarn_merge__keys_build(&l->key, batch, &keys);
        if (s == TARN_OK)
            s = match_batch(l, k, &keys, first, batch->row_count, old, found);
        first += batch->row_count;
        tarn_merge__keys_drop(&keys);
        TARN_TRY(s);
    }
    return TARN_OK;
}

static struct tarn_status *match_file(struct looking *l, struct keys *k, size_t upper)
{
    const struct tarn_manifest_entry *entry = &l->lookup->upper[upper];
    struct tarn_deletions *found = &l->lookup->found[upper];
    struct tarn_manifest_entry whole = *entry;
    const struct tarn_manifest_entry *files[] = {&whole};
    TARN_TRY(
        tarn_merge__deletions_read(l->op, l->layout->table, &entry->file, &l->lookup->old[upper]));
    TARN_TRY(tarn_deletions_init(found, entry->file.row_count));
    whole.file.vector = (struct tarn_vector_ref){0};
    struct tarn_merge_run_spec spec = {.layout = l->layout,
                                       .files = files,
                                       .file_count = 1,
                                       .columns = l->columns,
                                       .column_count = l->layout->key_count};
    struct tarn_merge_input *input = tarn_merge__run_new(&spec);
    struct tarn_status *s = match_batches(l, k, input, &l->lookup->old[upper], found);
    tarn_merge__input_drop(&input);
    return s;
}

/* The wanted files of one level, in order of their keys. */
static struct tarn_status *match_level(struct looking *l, int32_t level)
{
    TARN_OWN(keys_fini) struct keys keys = {0};
    struct tarn_manifest_entry *files =
        tarn_arena_calloc(l->arena, l->lookup->upper_count + 1, sizeof *files);
    size_t *places = tarn_arena_calloc(l->arena, l->lookup->upper_count + 1, sizeof *places);
    size_t n = 0, count;
    struct tarn_merge_section *sections;
    for (size_t i = 0; i < l->lookup->upper_count; i++) {
        if (!l->wanted[i] || l->lookup->upper[i].file.level != level)
            continue;
        places[n] = i;
        files[n++] = l->lookup->upper[i];
    }
    if (n == 0)
        return TARN_OK;
    TARN_TRY(tarn_merge__sections(l->layout->key_types, l->layout->key_count, files, n, l->arena,
                                  &sections, &count));
    if (count != n)
        return tarn_status_new(TARN_DATA_FILE_MALFORMED, "files of level %d overlap", level);
    TARN_TRY(open_keys(l, &keys));
    for (size_t i = 0; i < count && keys.batch != NULL; i++)
        TARN_TRY(match_file(l, &keys, places[sections[i].runs[0].files[0] - files]));
    return TARN_OK;
}

/* Upper files whose keys meet those of a file of level 0. */
static struct tarn_status *find_wanted(struct looking *l, const struct tarn_manifest_entry *files,
                                       size_t count)
{
    size_t upper_count = l->lookup->upper_count, n = 0, section_count;
    struct tarn_manifest_entry *all =
        tarn_arena_calloc(l->arena, count + upper_count + 1, sizeof *all);
    bool *wanted = tarn_arena_calloc(l->arena, upper_count + 1, sizeof *wanted);
    struct tarn_merge_section *sections;
    l->news = tarn_arena_calloc(l->arena, count + 1, sizeof *l->news);
    memcpy(all, l->lookup->upper, upper_count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        if (files[i].file.level > 0)
            continue;
        l->news[l->new_count++] = &files[i];
        all[upper_count + n++] = files[i];
    }
    l->wanted = wanted;
    TARN_TRY(tarn_merge__sections(l->layout->key_types, l->layout->key_count, all, upper_count + n,
                                  l->arena, &sections, &section_count));
    for (size_t s = 0; s < section_count; s++) {
        bool meets = false;
        for (int pass = 0; pass < 2; pass++)
            for (size_t r = 0; r < sections[s].run_count; r++)
                for (size_t f = 0; f < sections[s].runs[r].file_count; f++) {
                    size_t at = (size_t)(sections[s].runs[r].files[f] - all);
                    if (pass == 0)
                        meets = meets || at >= upper_count;
                    else if (at < upper_count)
                        wanted[at] = meets;
                }
    }
    return TARN_OK;
}

static void plan_columns(struct looking *l)
{
    const struct tarn_merge_layout *layout = l->layout;
    const struct tarn_options *options = layout->table->options;
    size_t most = layout->key_count + options->sequence_column_count;
    int *places = tarn_arena_calloc(l->arena, (size_t)layout->column_count + 1, sizeof *places);
    int *identity = tarn_arena_calloc(l->arena, most + 1, sizeof *identity);
    for (int i = 0; i < layout->column_count; i++)
        places[i] = -1;
    l->columns = tarn_arena_calloc(l->arena, most + 1, sizeof *l->columns);
    for (size_t i = 0; i < most; i++) {
        int column = i < layout->key_count ? layout->key_columns[i]
                                           : options->sequence_columns[i - layout->key_count];
        identity[i] = (int)i;
        if (places[column] >= 0)
            continue;
        places[column] = l->column_count;
        l->columns[l->column_count++] = column;
    }
    tarn_merge__layout_keys(layout, places, l->arena, &l->key, &l->order);
    l->tree = (struct tarn_merge_tree_spec){.key = &l->key,
                                            .order = &l->order,
                                            .sequence_column = l->column_count,
                                            .kind_column = l->column_count + 1,
                                            .ignore_delete = options->ignore_delete,
                                            .columns = identity,
                                            .types = layout->key_types,
                                            .column_count = (int)layout->key_count};
}

struct tarn_status *tarn_merge__look_up(struct tarn_op *op, struct tarn_merge_layout *layout,
                                        const struct tarn_manifest_entry *files, size_t count,
                                        struct tarn_arena *arena, struct tarn_merge_lookup *lookup)
{
    struct looking l = {.op = op, .layout = layout, .lookup = lookup, .arena = arena};
    int32_t highest = 0;
    lookup->old = tarn_arena_calloc(arena, lookup->upper_count + 1, sizeof *lookup->old);
    lookup->found = tarn_arena_calloc(arena, lookup->upper_count + 1, sizeof *lookup->found);
    if (lookup->upper_count == 0)
        return TARN_OK;
    TARN_TRY(find_wanted(&l, files, count));
    if (l.new_count == 0)
        return TARN_OK;
    plan_columns(&l);
    for (size_t i = 0; i < lookup->upper_count; i++)
        highest = TARN_MAX(highest, lookup->upper[i].file.level);
    for (int32_t level = 1; level <= highest; level++)
        TARN_TRY(match_level(&l, level));
    return TARN_OK;
}

void tarn_merge__lookup_fini(struct tarn_merge_lookup *lookup)
{
    for (size_t i = 0; i < lookup->upper_count && lookup->old != NULL; i++) {
        tarn_deletions_fini(&lookup->old[i]);
        tarn_deletions_fini(&lookup->found[i]);
    }
}
