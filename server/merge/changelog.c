/*
 * changelog - what a compaction changes in a section, told record by record (docs/format.md, "Changelogs of compactions").
 *
 *   full-compaction   what the last level had, beside what it has afterwards
 *   lookup            what levels above 0 have, beside that with level 0
 *
 * Streams of one record a key, each the merge of some files of the section:
 *
 *   fresh    of files that may bring something: level 0 (lookup), all but the last level (full-compaction). No other keys are told of
 *   before   of files that had it before; with lookup also those above the output level, which aren't picked
 *   after    of all of these
 *   picked   of the picked files, where others are read too: only their keys are written to the output
 *
 * They are followed side by side by key. Rows that are told, or written, are picked from the batches that they lie in, which are kept
 * until those are gathered.
 */
#include "merge/internal.h"

enum { FRESH, BEFORE, AFTER, PICKED, STREAM_COUNT };
enum { LOG, DATA, GATHER_COUNT };
#define NOWHERE UINT32_MAX

struct stream {
    const struct tarn_merge_tree_spec *tree;
    const int *columns; /* of the schema, that its files are read with */
    size_t column_count;
    const struct tarn_merge_key_spec *key; /* over its batches */
    struct tarn_merge_section *sections;
    size_t section_count, next_section;
    struct tarn_arena *arena; /* of the section that is open */
    struct tarn_source *source;
    struct tarn_batch *batch; /* NULL: at its end */
    struct tarn_merge_keys keys;
    uint32_t row;
    uint32_t sources[GATHER_COUNT]; /* the batch's number among what is gathered */
};

struct gather { /* rows of some batches on their way to a file */
    struct tarn_merge_roll *roll;
    struct tarn_batch **sources; /* refs */
    size_t source_count, source_capacity;
    struct tarn_merge_picks picks;
    int8_t *kinds; /* of the rows picked; of a log */
    size_t kind_count, kind_capacity;
};

struct changelog {
    const struct tarn_merge_log_spec *spec;
    const struct tarn_merge_layout *layout;
    struct tarn_arena *arena;
    struct stream streams[STREAM_COUNT];
    struct gather gathers[GATHER_COUNT];
    bool has_more; /* files are read that aren't picked: `picked` tells whose keys are written */
    struct tarn_merge_tree_spec of_before, of_keys;
    struct tarn_merge_key_spec key, no_order;
    int *key_columns;
};

/* --- streams --- */

static bool at_end(const struct stream *s)
{
    return s->batch == NULL;
}

static void forget_batch(struct stream *s)
{
    tarn_merge__keys_drop(&s->keys);
    s->keys = (struct tarn_merge_keys){0};
    tarn_batch_drop(&s->batch);
    s->row = 0;
    for (int i = 0; i < GATHER_COUNT; i++)
        s->sources[i] = NOWHERE;
}

static struct tarn_status *open_section(const struct changelog *c, struct tarn_op *op,
                                        struct stream *s)
{
    const struct tarn_merge_section *section = &s->sections[s->next_section++];
    struct tarn_merge_input **inputs;

    tarn_arena_drop(&s->arena);
    s->arena = tarn_arena_new();
    inputs = tarn_merge__section_inputs(c->layout, section, s->columns, s->column_count, s->arena);
    return tarn_merge__tree_open(op, s->tree, inputs, section->run_count, &s->source);
}

/* A row to look at, unless the stream is at its end. */
static struct tarn_status *fill(const struct changelog *c, struct tarn_op *op, struct stream *s)
{
    if (s->batch != NULL && s->row < s->batch->row_count)
        return TARN_OK;
    forget_batch(s);
    for (;;) {
        if (s->source == NULL) {
            if (s->next_section == s->section_count)
                return TARN_OK;
            TARN_TRY(open_section(c, op, s));
        }
        TARN_TRY(s->source->next(s->source, op, &s->batch));
        if (s->batch != NULL)
            return tarn_merge__keys_build(s->key, s->batch, &s->keys);
        tarn_source_drop(&s->source);
    }
}

/* Neither is at its end. */
static int compare(const struct stream *a, const struct stream *b)
{
    return tarn_merge__keys_compare(&a->keys, a->row, &b->keys, b->row);
}

/* Passes over what is before the key that `to` is at; *found: it has that key too. */
static struct tarn_status *advance(const struct changelog *c, struct tarn_op *op, struct stream *s,
                                   const struct stream *to, bool *found)
{
    *found = false;
    for (;;) {
        TARN_TRY(fill(c, op, s));
        if (at_end(s))
            return TARN_OK;
        int order = compare(s, to);
        *found = order == 0;
        if (order >= 0)
            return TARN_OK;
        s->row++;
    }
}

/* --- rows out --- */

static void drop_gathered(struct gather *g)
{
    for (size_t i = 0; i < g->source_count; i++)
        tarn_batch_unref(g->sources[i]);
    g->source_count = g->kind_count = 0;
    tarn_merge__picks_clear(&g->picks);
}

/* The batch with these kinds for its own. */
static struct tarn_batch *with_kinds(struct tarn_batch *batch, const int8_t *kinds)
{
    int n = batch->column_count;
    struct ArrowArray top;

    tarn_merge__array_init(&top, batch->row_count, 1, n);
    for (int i = 0; i < n - 1; i++)
        tarn_merge__array_share(tarn_batch_column(batch, i), batch, 0, batch->row_count,
                                top.children[i]);
    tarn_merge__array_init(top.children[n - 1], batch->row_count, 2, 0);
    memcpy(tarn_merge__array_buffer(top.children[n - 1], 1, (size_t)batch->row_count, false), kinds,
           (size_t)batch->row_count);
    return tarn_batch_take(&top);
}

static struct tarn_status *flush(struct changelog *c, struct tarn_op *op, int which)
{
    struct gather *g = &c->gathers[which];
    TARN_OWN(tarn_batch_drop) struct tarn_batch *rows = NULL;
    TARN_OWN(tarn_batch_drop) struct tarn_batch *told = NULL;

    if (g->picks.row_count == 0)
        return TARN_OK;
    TARN_TRY(tarn_merge__gather_batch(g->sources, g->source_count, NULL, c->layout->types,
                                      c->layout->column_count + 2, &g->picks, &rows));
    if (which == LOG)
        told = with_kinds(rows, g->kinds);
    TARN_TRY(tarn_merge__roll_add(g->roll, op, told != NULL ? told : rows, 0));
    drop_gathered(g);
    for (int i = 0; i < STREAM_COUNT; i++)
        c->streams[i].sources[which] = NOWHERE;
    return TARN_OK;
}

/* Batches are held until their rows are gathered, so not too many. */
#define SOURCES_MAX 16

static struct tarn_status *put(struct changelog *c, struct tarn_op *op, int which, struct stream *s,
                               int8_t kind)
{
    struct gather *g = &c->gathers[which];

    if (g->picks.row_count >= TARN_MERGE_BATCH_ROWS ||
        (s->sources[which] == NOWHERE && g->source_count >= SOURCES_MAX))
        TARN_TRY(flush(c, op, which));
    if (s->sources[which] == NOWHERE) {
        TARN_GROW(g->sources, g->source_count, g->source_capacity);
        s->sources[which] = (uint32_t)g->source_count;
        g->sources[g->source_count++] = tarn_batch_ref(s->batch);
    }
    tarn_merge__picks_add(&g->picks, s->sources[which], s->row, 1);
    if (which == LOG) {
        TARN_GROW(g->kinds, g->kind_count, g->kind_capacity);
        g->kinds[g->kind_count++] = kind;
    }
    return TARN_OK;
}

/* --- one key --- */

static bool is_add(const struct changelog *c, const struct stream *s)
{
    const struct ArrowArray *a = tarn_batch_column(s->batch, c->layout->column_count + 1);
    return !tarn_merge__is_retract(((const int8_t *)a->buffers[1])[a->offset + s->row]);
}

static bool same_rows(const struct changelog *c)
{
    const struct stream *b = &c->streams[BEFORE], *a = &c->streams[AFTER];
    const bool *counts = c->layout->table->options->row_deduplicate_of;

    for (int i = 0; i < c->layout->column_count; i++)
        if (counts[i] &&
            !tarn_merge__same_value(tarn_batch_column(b->batch, i), b->row,
                                    tarn_batch_column(a->batch, i), a->row, c->layout->types[i]))
            return false;
    return true;
}

enum { PLUS_I, MINUS_U, PLUS_U, MINUS_D };

/* Streams `before` and `after` are at the key, where they have it. */
static struct tarn_status *tell(struct changelog *c, struct tarn_op *op, bool before, bool after)
{
    const struct tarn_options *options = c->layout->table->options;
    struct stream *b = &c->streams[BEFORE], *a = &c->streams[AFTER];

    after = after && is_add(c, a);
    if (!before)
        return after ? put(c, op, LOG, a, PLUS_I) : TARN_OK;
    if (!after)
        return put(c, op, LOG, b, MINUS_D);
    if (options->row_deduplicate && same_rows(c))
        return TARN_OK;
    TARN_TRY(put(c, op, LOG, b, MINUS_U));
    return put(c, op, LOG, a, PLUS_U);
}

/* The row that `after` is at goes to the output, unless only files that aren't picked have its key. */
static struct tarn_status *write_row(struct changelog *c, struct tarn_op *op)
{
    struct stream *a = &c->streams[AFTER];
    bool picked = true;

    if (c->gathers[DATA].roll == NULL)
        return TARN_OK;
    if (c->has_more)
        TARN_TRY(advance(c, op, &c->streams[PICKED], a, &picked));
    return picked ? put(c, op, DATA, a, 0) : TARN_OK;
}

/* The next key that either brings something or is written. */
static struct tarn_status *next_key(struct changelog *c, struct tarn_op *op, bool *ended)
{
    struct stream *f = &c->streams[FRESH], *a = &c->streams[AFTER];

    TARN_TRY(fill(c, op, f));
    TARN_TRY(fill(c, op, a));
    *ended = at_end(f) && at_end(a);
    if (*ended)
        return TARN_OK;
    int order = at_end(f) ? 1 : at_end(a) ? -1 : compare(f, a);
    bool before = false;
    if (order <= 0) {
        TARN_TRY(advance(c, op, &c->streams[BEFORE], f, &before));
        TARN_TRY(tell(c, op, before, order == 0));
    }
    if (order >= 0)
        TARN_TRY(write_row(c, op));
    f->row += order <= 0;
    a->row += order >= 0;
    return TARN_OK;
}

/* --- the whole --- */

static bool is_fresh(const struct changelog *c, const struct tarn_manifest_entry *file)
{
    return c->spec->producer == TARN_CHANGELOG_LOOKUP ? file->file.level == 0
                                                      : file->file.level != c->spec->top_level;
}

static bool belongs(const struct changelog *c, int stream, const struct tarn_manifest_entry *file,
                    bool picked)
{
    switch (stream) {
    case FRESH:
        return picked && is_fresh(c, file);
    case BEFORE:
        return !is_fresh(c, file);
    case PICKED:
        return picked && c->has_more;
    default:
        return true;
    }
}

static struct tarn_status *open_stream(struct changelog *c, int which,
                                       const struct tarn_manifest_entry *const *files,
                                       size_t picked_count, size_t count)
{
    struct stream *s = &c->streams[which];
    const struct tarn_merge_layout *layout = c->layout;
    bool of_keys = which == FRESH || which == PICKED;
    struct tarn_manifest_entry *list = tarn_arena_calloc(c->arena, count + 1, sizeof *list);
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (belongs(c, which, files[i], i < picked_count))
            list[n++] = *files[i];
    s->tree = of_keys ? &c->of_keys : which == BEFORE ? &c->of_before : c->spec->tree;
    s->columns = of_keys ? layout->key_columns : c->spec->tree->columns;
    s->column_count = of_keys ? layout->key_count : (size_t)layout->column_count;
    s->key = of_keys ? &c->key : c->spec->tree->key;
    forget_batch(s);
    return tarn_merge__sections(layout->key_types, layout->key_count, list, n, c->arena,
                                &s->sections, &s->section_count);
}

/* Keys alone: of those streams nothing but whether a key is there. */
static void plan_keys(struct changelog *c)
{
    const struct tarn_merge_layout *layout = c->layout;
    int n = (int)layout->key_count;
    struct tarn_merge_key_column *key = tarn_arena_calloc(c->arena, (size_t)n, sizeof *key);

    c->key_columns = tarn_arena_calloc(c->arena, (size_t)n, sizeof *c->key_columns);
    for (int i = 0; i < n; i++) {
        c->key_columns[i] = i;
        key[i] = (struct tarn_merge_key_column){i, layout->key_types[i], false};
    }
    tarn_merge__key_spec_init(&c->key, key, (size_t)n);
    tarn_merge__key_spec_init(&c->no_order, NULL, 0);
    c->of_keys = (struct tarn_merge_tree_spec){.key = &c->key,
                                               .order = &c->no_order,
                                               .sequence_column = n,
                                               .kind_column = n + 1,
                                               .ignore_delete = c->spec->tree->ignore_delete,
                                               .columns = c->key_columns,
                                               .types = layout->key_types,
                                               .column_count = n};
    c->of_before = *c->spec->tree;
    c->of_before.drop_retract = true;
}

static struct tarn_status *open(struct changelog *c)
{
    const struct tarn_merge_section *section = c->spec->section;
    const struct tarn_manifest_entry **files, **more;
    size_t count = 0, n = 0, more_count;

    for (size_t r = 0; r < section->run_count; r++)
        count += section->runs[r].file_count;
    TARN_TRY(tarn_merge__overlapping(c->layout->key_types, c->layout->key_count, section,
                                     c->spec->above, c->spec->above_count, c->arena, &more,
                                     &more_count));
    files = tarn_arena_calloc(c->arena, count + more_count + 1, sizeof *files);
    for (size_t r = 0; r < section->run_count; r++)
        for (size_t f = 0; f < section->runs[r].file_count; f++)
            files[n++] = section->runs[r].files[f];
    for (size_t i = 0; i < more_count; i++)
        files[n++] = more[i];
    c->has_more = more_count > 0;
    plan_keys(c);
    for (int i = 0; i < STREAM_COUNT; i++)
        TARN_TRY(open_stream(c, i, files, count, n));
    return TARN_OK;
}

static void close_all(struct changelog *c)
{
    for (int i = 0; i < STREAM_COUNT; i++) {
        forget_batch(&c->streams[i]);
        tarn_source_drop(&c->streams[i].source);
        tarn_arena_drop(&c->streams[i].arena);
    }
    for (int i = 0; i < GATHER_COUNT; i++) {
        drop_gathered(&c->gathers[i]);
        tarn_merge__picks_drop(&c->gathers[i].picks);
        free(c->gathers[i].sources);
        free(c->gathers[i].kinds);
    }
    tarn_arena_drop(&c->arena);
}

struct tarn_status *tarn_merge__log_section(struct tarn_op *op,
                                            const struct tarn_merge_log_spec *spec)
{
    struct changelog c = {.spec = spec, .layout = spec->layout, .arena = tarn_arena_new()};
    bool ended = false;

    c.gathers[LOG].roll = spec->log;
    c.gathers[DATA].roll = spec->data;
    struct tarn_status *s = open(&c);
    while (s == TARN_OK && !ended)
        s = next_key(&c, op, &ended);
    for (int i = 0; i < GATHER_COUNT && s == TARN_OK; i++)
        s = flush(&c, op, i);
    close_all(&c);
    return s;
}
