/*
 * compact - a pick of files into fewer: sections merged, large lonely files moved up as they are.
 *
 * Primary key tables (format.md 9.3): sections in key order; one that needs merging, and small files,
 * wait in a list that is rewritten at once, so that neighbours end up in one file; a large file of a
 * section of its own ends the list and only changes its level. Append tables (9.5): files read in
 * order and written anew, rows numbered on from the first file's number.
 */
#include "merge/internal.h"

struct compact {
    struct tarn_merge_layout layout;
    const struct tarn_compact_spec *spec;
    struct tarn_arena *arena; /* the caller's: of the result */
    struct tarn_compact_result *result;
    struct tarn_merge_entries deletes, adds;
    struct tarn_merge_entries written;  /* ADDs of new files; subset of adds, for cleaning up */
    struct tarn_merge_entries logged;   /* ADDs of the changelog */
    struct tarn_merge_roll *log;        /* NULL: nothing is told so far */
    struct tarn_merge_section *pending; /* to be rewritten together */
    size_t pending_count;
    struct tarn_merge_key_spec key, order;
    struct tarn_merge_tree_spec tree;
    int *columns;
    struct tarn_merge_lookup lookup;
    const struct tarn_manifest_entry *chosen; /* upper files of which some rows are merged, too … */
    size_t chosen_count;                      /* … but which stay */
};

static void add_entry(struct tarn_merge_entries *list, const struct tarn_manifest_entry *entry,
                      enum tarn_entry_kind kind)
{
    TARN_GROW(list->items, list->count, list->capacity);
    list->items[list->count] = *entry;
    list->items[list->count].file.vector = (struct tarn_vector_ref){0}; /* no matter of entries */
    list->items[list->count++].kind = kind;
}

static struct tarn_merge_roll *new_roll(struct compact *c, bool is_changelog)
{
    const struct tarn_manifest_entry *first = &c->spec->files[0];
    struct tarn_merge_roll_spec spec = {
        .layout = &c->layout,
        .partition = first->partition,
        .bucket = first->bucket,
        .total_buckets =
            first->total_buckets, /* the bucket's own, whatever the option says by now */
        .level = c->spec->output_level,
        .source = is_changelog ? TARN_SOURCE_APPEND : TARN_SOURCE_COMPACT,
        .is_changelog = is_changelog,
        .arena = c->arena,
        .entries = is_changelog ? &c->logged : &c->written,
        .file_uuid = c->spec->file_uuid,
    };
    return tarn_merge__roll_new(&spec);
}

static void note_input(struct compact *c, const struct tarn_manifest_entry *file)
{
    add_entry(&c->deletes, file, TARN_ENTRY_DELETE);
    c->result->rows_in += file->file.row_count;
    c->result->bytes_in += file->file.size;
}

/* Copies a file unread behind what the roll has, where its rows would come out as they are. Whoever makes a changelog of
 * what is compacted needs the rows, and must not come here (nor to merge_pieces). */
static struct tarn_status *copy_file(struct compact *c, struct tarn_op *op,
                                     const struct tarn_manifest_entry *file, int64_t sequence,
                                     struct tarn_merge_roll *roll, bool *copied)
{
    *copied = false;
    if (file->file.vector.path.data != NULL) /* some of its rows are deleted */
        return TARN_OK;
    TARN_TRY(tarn_merge__roll_copy(roll, op, file, sequence, copied));
    if (*copied) {
        c->result->bytes_copied += file->file.size;
        c->result->rows_copied += file->file.row_count;
    }
    return TARN_OK;
}

/* --- primary key tables --- */

static bool is_chosen(const struct compact *c, const struct tarn_manifest_entry *file)
{
    return file >= c->chosen && file < c->chosen + c->chosen_count;
}

/* Has the section nothing but rows of files that stay? */
static bool is_idle(const struct compact *c, const struct tarn_merge_section *section)
{
    for (size_t r = 0; r < section->run_count; r++)
        for (size_t f = 0; f < section->runs[r].file_count; f++)
            if (!is_chosen(c, section->runs[r].files[f]))
                return false;
    return true;
}

static struct tarn_status *merge_section(struct compact *c, struct tarn_op *op,
                                         const struct tarn_merge_section *section,
                                         struct tarn_merge_roll *roll)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_merge_input **inputs = tarn_merge__section_inputs(
        &c->layout, section, c->columns, (size_t)c->layout.column_count, arena);
    struct tarn_source *merged = NULL;
    struct tarn_status *s =
        tarn_merge__tree_open(op, &c->tree, inputs, section->run_count, &merged);

    while (s == TARN_OK) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        s = merged->next(merged, op, &batch);
        if (s != TARN_OK || batch == NULL)
            break;
        s = tarn_merge__roll_add(roll, op, batch, 0);
    }
    tarn_source_drop(&merged); /* before the arena its inputs' specs lie in */
    return s;
}

/* Several runs: row groups that one file alone has are copied, what lies between them is merged. */
static struct tarn_status *merge_pieces(struct compact *c, struct tarn_op *op,
                                        const struct tarn_merge_section *section,
                                        struct tarn_merge_roll *roll)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_merge__pieces_drop) struct tarn_merge_pieces pieces = {0};

    TARN_TRY(tarn_merge__pieces_find(roll, &c->layout, op, section, arena, &pieces));
    for (size_t i = 0; i < pieces.count; i++) {
        const struct tarn_merge_piece *piece = &pieces.items[i];
        if (piece->section.run_count > 0) {
            TARN_TRY(merge_section(c, op, &piece->section, roll));
            continue;
        }
        TARN_TRY(tarn_merge__roll_copy_group(roll, op, &piece->group));
        c->result->rows_copied += piece->group.row_count;
        c->result->bytes_copied += piece->group.size;
    }
    return TARN_OK;
}

static struct tarn_status *copy_or_merge(struct compact *c, struct tarn_op *op,
                                         const struct tarn_merge_section *section,
                                         struct tarn_merge_roll *roll)
{
    bool copied = false;

    TARN_TRY(copy_file(c, op, section->runs[0].files[0], 0, roll, &copied));
    return copied ? TARN_OK : merge_section(c, op, section, roll);
}

/* Then no row group of it is taken for what its rows are. */
static bool has_deleted_rows(const struct compact *c, const struct tarn_merge_section *section)
{
    for (size_t r = 0; r < section->run_count; r++)
        for (size_t f = 0; f < section->runs[r].file_count; f++)
            if (section->runs[r].files[f]->file.vector.path.data != NULL ||
                is_chosen(c, section->runs[r].files[f]))
                return true;
    return false;
}

/* Does the compaction of this section tell what it changes? */
static bool is_told(const struct compact *c, const struct tarn_merge_section *section)
{
    enum tarn_changelog_producer producer = c->layout.table->options->changelog_producer;

    if (producer == TARN_CHANGELOG_FULL_COMPACTION)
        return c->spec->output_level == c->spec->top_level;
    if (producer != TARN_CHANGELOG_LOOKUP)
        return false;
    for (size_t r = 0; r < section->run_count; r++)
        for (size_t f = 0; f < section->runs[r].file_count; f++)
            if (section->runs[r].files[f]->file.level == 0)
                return true;
    return false;
}

/* Merges the section into `roll` (NULL: its files stay as they are) and tells what that changes. */
static struct tarn_status *tell_section(struct compact *c, struct tarn_op *op,
                                        const struct tarn_merge_section *section,
                                        struct tarn_merge_roll *roll)
{
    if (c->log == NULL)
        c->log = new_roll(c, true);
    struct tarn_merge_log_spec spec = {
        .layout = &c->layout,
        .tree = &c->tree,
        .producer = c->layout.table->options->changelog_producer,
        .top_level = c->spec->top_level,
        .section = section,
        .above = c->spec->above,
        .above_count = c->spec->above_count,
        .data = roll,
        .log = c->log,
    };
    return tarn_merge__log_section(op, &spec);
}

static struct tarn_status *rewrite_section(struct compact *c, struct tarn_op *op,
                                           const struct tarn_merge_section *section,
                                           struct tarn_merge_roll *roll)
{
    if (is_told(c, section))
        return tell_section(c, op, section, roll);
    if (has_deleted_rows(c, section))
        return merge_section(c, op, section, roll);
    if (section->run_count > 1)
        return merge_pieces(c, op, section, roll);
    return copy_or_merge(c, op, section,
                         roll); /* one file: what touches nothing is a section of its own */
}

static struct tarn_status *rewrite(struct compact *c, struct tarn_op *op,
                                   const struct tarn_merge_section *sections, size_t count)
{
    struct tarn_merge_roll *roll = new_roll(c, false);
    struct tarn_status *s = TARN_OK;

    for (size_t i = 0; i < count && s == TARN_OK; i++) {
        for (size_t r = 0; r < sections[i].run_count; r++) {
            for (size_t f = 0; f < sections[i].runs[r].file_count; f++)
                if (!is_chosen(c, sections[i].runs[r].files[f]))
                    note_input(c, sections[i].runs[r].files[f]);
        }
        s = rewrite_section(c, op, &sections[i], roll);
    }
    if (s == TARN_OK)
        s = tarn_merge__roll_cut(roll, op);
    tarn_merge__roll_free(roll);
    return s;
}

static struct tarn_merge_section *section_of(struct compact *c,
                                             const struct tarn_manifest_entry *file)
{
    struct tarn_merge_section *section = tarn_arena_calloc(c->arena, 1, sizeof *section);
    const struct tarn_manifest_entry **files = tarn_arena_calloc(c->arena, 1, sizeof *files);

    files[0] = file;
    section->runs = tarn_arena_calloc(c->arena, 1, sizeof *section->runs);
    section->runs[0] = (struct tarn_merge_run){.files = files, .file_count = 1};
    section->run_count = 1;
    return section;
}

/* A record that a reader takes from the lowest level alone must be the merge of all that there are above level 0. */
static bool must_merge(const struct compact *c, const struct tarn_manifest_entry *file)
{
    const struct tarn_options *options = c->layout.table->options;

    if (options->changelog_producer != TARN_CHANGELOG_LOOKUP || file->file.level != 0)
        return false;
    if (strcmp(tarn_options_file_format(options, 0),
               tarn_options_file_format(options, c->spec->output_level)) != 0)
        return true; /* as Paimon does, while it is at it */
    return c->spec->output_level != c->spec->top_level &&
           (options->merge_engine != TARN_MERGE_DEDUPLICATE || options->sequence_column_count > 0);
}

/* Same file, new level; or written anew where it may hold deletes that must go now. */
static struct tarn_status *upgrade(struct compact *c, struct tarn_op *op,
                                   const struct tarn_manifest_entry *file)
{
    const struct tarn_options *options = c->layout.table->options;
    bool last_level = c->spec->drop_delete || c->spec->output_level >= options->level_count - 1;

    struct tarn_merge_section *section = section_of(c, file);

    if ((last_level && file->file.delete_row_count != 0) || must_merge(c, file))
        return rewrite(c, op, section, 1);
    if (file->file.level == c->spec->output_level) /* it is where it should be */
        return file->file.vector.path.data == NULL ? TARN_OK : rewrite(c, op, section, 1);
    if (is_told(c, section))
        TARN_TRY(tell_section(c, op, section, NULL));
    add_entry(&c->deletes, file, TARN_ENTRY_DELETE);
    add_entry(&c->adds, file, TARN_ENTRY_ADD);
    c->adds.items[c->adds.count - 1].file.level = c->spec->output_level;
    c->result->upgraded_count++;
    return TARN_OK;
}

static struct tarn_status *flush_pending(struct compact *c, struct tarn_op *op)
{
    size_t count = c->pending_count;

    c->pending_count = 0;
    if (count == 0)
        return TARN_OK;
    if (count > 1 || c->pending[0].run_count > 1)
        return rewrite(c, op, c->pending, count);
    for (size_t f = 0; f < c->pending[0].runs[0].file_count; f++)
        TARN_TRY(upgrade(c, op, c->pending[0].runs[0].files[f]));
    return TARN_OK;
}

static struct tarn_status *compact_sections(struct compact *c, struct tarn_op *op,
                                            const struct tarn_merge_section *sections, size_t count)
{
    const struct tarn_options *options = c->layout.table->options;
    double small = (double)options->target_file_size * options->small_file_ratio;

    for (size_t i = 0; i < count; i++) {
        if (is_idle(c, &sections[i]))
            continue;
        if (sections[i].run_count > 1) {
            c->pending[c->pending_count++] = sections[i];
            continue;
        }
        /* A section of one run is one file: what touches nothing is a section of its own. */
        for (size_t f = 0; f < sections[i].runs[0].file_count; f++) {
            const struct tarn_manifest_entry *file = sections[i].runs[0].files[f];
            if ((double)file->file.size < small) {
                c->pending[c->pending_count++] = *section_of(c, file);
            } else {
                TARN_TRY(flush_pending(c, op));
                TARN_TRY(upgrade(c, op, file));
            }
        }
    }
    return flush_pending(c, op);
}

/* The files that are merged: those that were picked, and where a newer record needn't be the one that stays, upper files of which
 * some rows take part. */
static const struct tarn_manifest_entry *choose_files(struct compact *c, size_t *count)
{
    const struct tarn_merge_lookup *l = &c->lookup;
    size_t n = c->spec->file_count;
    *count = n;
    if (c->layout.table->options->sequence_column_count == 0)
        return c->spec->files;
    struct tarn_manifest_entry *all =
        tarn_arena_calloc(c->arena, n + l->upper_count + 1, sizeof *all);
    struct tarn_merge_choice *choices =
        tarn_arena_calloc(c->arena, l->upper_count + 1, sizeof *choices);
    memcpy(all, c->spec->files, n * sizeof *all);
    for (size_t i = 0; i < l->upper_count; i++) {
        if (l->found[i].count == 0)
            continue;
        choices[c->chosen_count++] =
            (struct tarn_merge_choice){l->upper[i].file.name, &l->found[i]};
        all[(*count)++] = l->upper[i];
    }
    c->chosen = all + n;
    c->layout.choices = choices;
    c->layout.choice_count = c->chosen_count;
    return all;
}

static struct tarn_status *compact_keyed(struct compact *c, struct tarn_op *op)
{
    const struct tarn_merge_layout *layout = &c->layout;
    int n = layout->column_count + 2;
    struct tarn_merge_section *sections;
    size_t count;

    tarn_merge__layout_keys(layout, NULL, c->arena, &c->key, &c->order);
    c->columns = tarn_arena_calloc(c->arena, (size_t)n, sizeof *c->columns);
    for (int i = 0; i < n; i++)
        c->columns[i] = i;
    c->tree = (struct tarn_merge_tree_spec){
        .key = &c->key,
        .order = &c->order,
        .sequence_column = layout->column_count,
        .kind_column = layout->column_count + 1,
        .ignore_delete = layout->table->options->ignore_delete,
        .drop_retract = c->spec->drop_delete,
        .keep_first = layout->table->options->merge_engine == TARN_MERGE_FIRST_ROW,
        .engine = tarn_merge__engine_spec(layout, c->columns, layout->column_count, c->arena),
        .columns = c->columns,
        .types = layout->types,
        .column_count = n};
    c->lookup.upper = c->spec->upper;
    c->lookup.upper_count = c->spec->upper_count;
    TARN_TRY(tarn_merge__look_up(op, &c->layout, c->spec->files, c->spec->file_count, c->arena,
                                 &c->lookup));
    size_t file_count;
    const struct tarn_manifest_entry *files = choose_files(c, &file_count);
    TARN_TRY(tarn_merge__sections(layout->key_types, layout->key_count, files, file_count, c->arena,
                                  &sections, &count));
    c->pending = tarn_arena_calloc(c->arena, file_count, sizeof *c->pending);
    TARN_TRY(compact_sections(c, op, sections, count));
    return c->log == NULL ? TARN_OK : tarn_merge__roll_cut(c->log, op);
}

/* --- append tables --- */

static int by_sequence(const void *a, const void *b)
{
    const struct tarn_data_file *x = &(*(const struct tarn_manifest_entry *const *)a)->file;
    const struct tarn_data_file *y = &(*(const struct tarn_manifest_entry *const *)b)->file;

    if (x->min_sequence != y->min_sequence)
        return x->min_sequence < y->min_sequence ? -1 : 1;
    return tarn_slice_compare(x->name, y->name);
}

/* Reads a file's rows and writes them anew, numbered from *sequence on. */
static struct tarn_status *rewrite_rows(struct compact *c, struct tarn_op *op,
                                        const struct tarn_manifest_entry *file, int64_t *sequence,
                                        struct tarn_merge_roll *roll)
{
    struct tarn_merge_run_spec spec = {.layout = &c->layout,
                                       .files = &file,
                                       .file_count = 1,
                                       .columns = c->columns,
                                       .column_count = (size_t)c->layout.column_count,
                                       .with_tracking = c->layout.table->options->row_tracking};
    struct tarn_merge_input *input = tarn_merge__run_new(&spec);
    struct tarn_status *s = TARN_OK;

    while (s == TARN_OK) {
        TARN_OWN(tarn_batch_drop) struct tarn_batch *batch = NULL;
        uint32_t place;

        s = input->next(input, op, &batch, &place);
        if (s != TARN_OK || batch == NULL)
            break;
        s = tarn_merge__roll_add(roll, op, batch, *sequence);
        *sequence += batch->row_count;
    }
    tarn_merge__input_drop(&input);
    return s;
}

/* Where rows have no order to keep, what is copied goes first, so that the rest is merged into common row groups. */
static struct tarn_status *append_files(struct compact *c, struct tarn_op *op,
                                        const struct tarn_manifest_entry **files, size_t count,
                                        bool ordered, struct tarn_merge_roll *roll)
{
    int64_t sequence = files[0]->file.min_sequence;
    size_t rest = 0;

    for (size_t i = 0; i < count; i++) {
        bool copied = false;
        TARN_TRY(copy_file(c, op, files[i], sequence, roll, &copied));
        if (!copied && !ordered) {
            files[rest++] = files[i];
            continue;
        }
        if (copied)
            sequence += files[i]->file.row_count;
        else
            TARN_TRY(rewrite_rows(c, op, files[i], &sequence, roll));
    }
    for (size_t i = 0; i < rest; i++)
        TARN_TRY(rewrite_rows(c, op, files[i], &sequence, roll));
    return tarn_merge__roll_cut(roll, op);
}

static struct tarn_status *compact_append(struct compact *c, struct tarn_op *op)
{
    size_t n = c->spec->file_count;
    const struct tarn_manifest_entry **files = tarn_arena_calloc(c->arena, n, sizeof *files);
    bool ordered = c->layout.table->options->bucket > 0;

    c->columns =
        tarn_arena_calloc(c->arena, (size_t)c->layout.column_count + 1, sizeof *c->columns);
    for (int i = 0; i < c->layout.column_count; i++)
        c->columns[i] = i;
    for (size_t i = 0; i < n; i++) {
        files[i] = &c->spec->files[i];
        note_input(c, files[i]);
    }
    if (ordered)
        qsort(files, n, sizeof *files, by_sequence);
    struct tarn_merge_roll *roll = new_roll(c, false);
    struct tarn_status *s = append_files(c, op, files, n, ordered, roll);
    tarn_merge__roll_free(roll);
    return s;
}

/* --- the whole --- */

static struct tarn_status *check_files(const struct compact *c)
{
    const struct tarn_manifest_entry *first = &c->spec->files[0];

    TARN_TRY(tarn_options_check_merge(c->layout.table->options));
    TARN_TRY(tarn_options_check_write(c->layout.table->options));
    for (size_t i = 1; i < c->spec->file_count; i++) {
        const struct tarn_manifest_entry *file = &c->spec->files[i];
        if (file->bucket != first->bucket || !tarn_slice_equal(file->partition, first->partition))
            return tarn_status_new(TARN_INVALID_ARGUMENT,
                                   "files of several buckets can't be compacted together");
    }
    return TARN_OK;
}

static void fill_result(struct compact *c)
{
    struct tarn_compact_result *result = c->result;
    size_t n = c->deletes.count + c->adds.count + c->written.count;
    struct tarn_manifest_entry *entries = tarn_arena_calloc(c->arena, n + 1, sizeof *entries);
    const struct tarn_merge_entries *lists[] = {&c->deletes, &c->adds, &c->written};

    result->entries = entries;
    for (size_t l = 0; l < TARN_COUNT_OF(lists); l++) {
        for (size_t i = 0; i < lists[l]->count; i++)
            entries[result->entry_count++] = lists[l]->items[i];
    }
    result->changelog = tarn_arena_calloc(c->arena, c->logged.count + 1, sizeof *result->changelog);
    for (size_t i = 0; i < c->logged.count; i++)
        result->changelog[result->changelog_count++] = c->logged.items[i];
    for (size_t i = 0; i < c->written.count; i++) {
        result->rows_out += c->written.items[i].file.row_count;
        result->bytes_out += c->written.items[i].file.size;
    }
}

/* What the lookup found, upon what was marked before. Borrows the lookup's memory. */
static struct tarn_vector_mark *marks_of(struct compact *c, size_t *count)
{
    const struct tarn_merge_lookup *l = &c->lookup;
    struct tarn_vector_mark *marks = tarn_arena_calloc(c->arena, l->upper_count + 1, sizeof *marks);
    *count = 0;
    for (size_t i = 0; i < l->upper_count && l->found != NULL; i++) {
        struct tarn_deletions *old = &l->old[i], *found = &l->found[i];
        if (found->count == 0)
            continue;
        for (int64_t row = 0;
             old->rows != NULL && (row = tarn_deletions_next(old, row)) < old->row_count; row++)
            tarn_deletions_add(found, row);
        marks[(*count)++] = (struct tarn_vector_mark){l->upper[i].file.name, *found};
    }
    return marks;
}

/* The vectors of files that were rewritten go with them. */
static struct tarn_status *settle_vectors(struct compact *c, struct tarn_op *op)
{
    const struct tarn_compact_spec *spec = c->spec;
    struct tarn_vector_changes changes = {.partition = spec->files[0].partition,
                                          .bucket = spec->files[0].bucket,
                                          .indexes = spec->indexes,
                                          .index_count = spec->index_count};
    struct tarn_slice *gone = tarn_arena_calloc(c->arena, c->deletes.count + 1, sizeof *gone);
    for (size_t i = 0; i < c->deletes.count; i++) {
        bool stays = false; /* it only changed its level */
        for (size_t k = 0; k < c->adds.count && !stays; k++)
            stays = tarn_slice_equal(c->adds.items[k].file.name, c->deletes.items[i].file.name);
        if (!stays)
            gone[changes.gone_count++] = c->deletes.items[i].file.name;
    }
    changes.gone = gone;
    changes.marks = marks_of(c, &changes.mark_count);
    return tarn_merge__vectors_rewrite(op, c->layout.table, &changes, c->arena, &c->result->indexes,
                                       &c->result->index_count);
}

struct tarn_status *tarn_compact_run(struct tarn_op *op, const struct tarn_merge_table *table,
                                     const struct tarn_compact_spec *spec, struct tarn_arena *arena,
                                     struct tarn_compact_result *out)
{
    struct tarn_compact_result result = {0};
    struct compact c = {.spec = spec, .arena = arena, .result = &result};
    struct tarn_status *s = tarn_merge__layout_make(table, arena, &c.layout);

    if (s == TARN_OK && spec->file_count > 0) {
        s = check_files(&c);
        if (s == TARN_OK)
            s = c.layout.keyed ? compact_keyed(&c, op) : compact_append(&c, op);
        if (s == TARN_OK && (spec->index_count > 0 || spec->upper_count > 0))
            s = settle_vectors(&c, op);
        tarn_merge__lookup_fini(&c.lookup);
    }
    if (s == TARN_OK) {
        fill_result(&c);
        *out = result;
    } else if (c.written.count + c.logged.count > 0) {
        struct tarn_op cleaning; /* this operation may be cancelled */
        tarn_op_init(&cleaning);
        tarn_merge_remove_files(&cleaning, table, c.written.items, c.written.count);
        tarn_merge_remove_files(&cleaning, table, c.logged.items, c.logged.count);
        tarn_op_fini(&cleaning);
    }
    tarn_merge__roll_free(c.log);
    free(c.deletes.items);
    free(c.adds.items);
    free(c.written.items);
    free(c.logged.items);
    return s;
}
