/*
 * tree - many sorted runs into one: a loser tree over keys, one record a key.
 *
 *   inputs -> load: batch and its keys -> tree of losers -> winner -> pending -> picks -> gather -> batch
 *
 * The tree orders keys only. Which version of a key stays is decided as they come by, against the
 * pending one: sequence fields, then sequence number, then retract before add, then place. So runs
 * whose equal keys lie in any order merge the same. Picks name rows of chunks (batches with keys) that
 * the output still needs; a chunk lives until the picks that name it are gathered.
 *
 * A run that stays below all others is followed without asking the tree, so that merging a big
 * run with a small one costs little more than reading it; picks of neighbours become ranges, and a batch that is
 * one range is passed on without a copy.
 *
 * Where an engine computes rows (partial-update, aggregation; engine.h) all versions of a key are collected first, put in order,
 * and given to it.
 */
#include "merge/engine.h"

struct chunk {
    int ref_count;
    int32_t live; /* index among the tree's live chunks; -1: not there */
    uint32_t place, row_count;
    struct tarn_batch *batch;
    struct tarn_merge_keys keys, order;
    size_t group_count;
    struct tarn_merge_keys *groups; /* of an engine's sequence groups; NULL: it has none */
    const int64_t *sequence;
    const int8_t *kind;
};

struct cursor {
    struct tarn_merge_input *input; /* owned; NULL at the end */
    struct chunk *chunk;            /* a ref; NULL at the end */
    uint32_t row;
};

struct version {         /* of the key that is being collected */
    struct chunk *chunk; /* a ref */
    uint32_t row;
    size_t arrival;
};

/* What is there only where an engine computes rows. */
struct grouping {
    struct tarn_merge_combiner *engine;
    struct version *versions;
    size_t count, capacity;
    struct tarn_merge_version *sorted;
    size_t sorted_capacity;
    struct tarn_batch **batches;   /* of live chunks */
    struct tarn_merge_keys **keys; /* of their sequence groups */
    size_t source_capacity;
};

struct tree {
    struct tarn_source source; /* first */
    const struct tarn_merge_tree_spec *spec;
    struct cursor *cursors;
    uint64_t *heads; /* prefix of each cursor's row; UINT64_MAX at the end */
    uint32_t *nodes; /* losers; [0] the winner */
    uint32_t input_count;
    bool started;
    struct chunk **live; /* what picks name; refs */
    size_t live_count, live_capacity;
    struct tarn_merge_picks picks;
    struct chunk *pending; /* the last key's best record so far: among the live; NULL: none */
    uint32_t pending_row;
    int64_t batch_rows; /* of output; less where rows are wide */
    struct grouping *grouping;
};

/* --- chunks --- */

static void chunk_unref(struct chunk *chunk)
{
    if (chunk == NULL || --chunk->ref_count > 0)
        return;
    tarn_merge__keys_drop(&chunk->keys);
    tarn_merge__keys_drop(&chunk->order);
    for (size_t i = 0; i < chunk->group_count; i++)
        tarn_merge__keys_drop(&chunk->groups[i]);
    free(chunk->groups);
    tarn_batch_unref(chunk->batch);
    free(chunk);
}

static void chunk_drop(struct chunk **chunk)
{
    chunk_unref(*chunk);
    *chunk = NULL;
}

/* Sequence and kind as plain arrays, neither with nulls nor with other kinds. */
static struct tarn_status *read_system_columns(const struct tarn_merge_tree_spec *spec,
                                               struct chunk *chunk)
{
    const struct ArrowArray *sequence = tarn_batch_column(chunk->batch, spec->sequence_column);
    const struct ArrowArray *kind = tarn_batch_column(chunk->batch, spec->kind_column);
    uint8_t seen = 0;

    if (tarn_merge__has_nulls(sequence) || tarn_merge__has_nulls(kind))
        return tarn_status_new(TARN_DATA_FILE_MALFORMED,
                               "a null in _SEQUENCE_NUMBER or _VALUE_KIND");
    chunk->sequence = (const int64_t *)sequence->buffers[1] + sequence->offset;
    chunk->kind = (const int8_t *)kind->buffers[1] + kind->offset;
    for (uint32_t i = 0; i < chunk->row_count; i++)
        seen |= (uint8_t)chunk->kind[i];
    if (seen > 3)
        return tarn_status_new(TARN_DATA_FILE_MALFORMED, "a _VALUE_KIND that is not 0 to 3");
    if ((seen & 1) != 0 && spec->keep_first && !spec->ignore_delete)
        return tarn_status_new(TARN_VALUE_INVALID,
                               "a delete among the rows of a table with merge-engine = first-row, "
                               "which takes none; ignore-delete = true lets it ignore them");
    return TARN_OK;
}

/* Keys must not fall: a merge of unordered runs would answer with wrong rows. */
static struct tarn_status *check_order(const struct chunk *before, const struct chunk *chunk)
{
    const struct tarn_merge_keys *keys = &chunk->keys;
    bool ordered = before == NULL ||
                   tarn_merge__keys_compare(&before->keys, before->row_count - 1, keys, 0) <= 0;

    for (uint32_t i = 1; i < chunk->row_count && ordered; i++) {
        ordered = keys->prefix[i - 1] < keys->prefix[i] ||
                  (keys->prefix[i - 1] == keys->prefix[i] &&
                   tarn_merge__keys_compare_rest(keys, i - 1, keys, i) <= 0);
    }
    return ordered ? TARN_OK
                   : tarn_status_new(TARN_DATA_FILE_MALFORMED, "the rows are not in key order");
}

static struct tarn_status *build_groups(const struct tarn_merge_engine_spec *engine,
                                        struct chunk *chunk)
{
    size_t count = engine->layout->table->options->group_count;

    chunk->groups = tarn_calloc(count + 1, sizeof *chunk->groups);
    for (; chunk->group_count < count; chunk->group_count++)
        TARN_TRY(tarn_merge__keys_build(&engine->groups[chunk->group_count], chunk->batch,
                                        &chunk->groups[chunk->group_count]));
    return TARN_OK;
}

/* Makes a chunk of the batch, which it owns from here on. */
static struct tarn_status *chunk_new(const struct tarn_merge_tree_spec *spec,
                                     struct tarn_batch *batch, uint32_t place,
                                     const struct chunk *before, struct chunk **out)
{
    TARN_OWN(chunk_drop) struct chunk *chunk = tarn_calloc(1, sizeof *chunk);

    chunk->ref_count = 1;
    chunk->live = -1;
    chunk->batch = batch;
    chunk->place = place;
    chunk->row_count = (uint32_t)batch->row_count;
    TARN_TRY(read_system_columns(spec, chunk));
    TARN_TRY(tarn_merge__keys_build(spec->key, batch, &chunk->keys));
    if (spec->order->column_count > 0)
        TARN_TRY(tarn_merge__keys_build(spec->order, batch, &chunk->order));
    if (spec->engine != NULL)
        TARN_TRY(build_groups(spec->engine, chunk));
    TARN_TRY(check_order(before, chunk));
    *out = tarn_move(chunk);
    return TARN_OK;
}

/* --- cursors and the tree --- */

static struct tarn_status *load(struct tree *tree, struct tarn_op *op, uint32_t i)
{
    struct cursor *cursor = &tree->cursors[i];
    struct tarn_batch *batch = NULL;
    struct chunk *chunk = NULL;
    uint32_t place = 0;

    TARN_TRY(tarn_op_check(op));
    TARN_TRY(cursor->input->next(cursor->input, op, &batch, &place));
    if (batch == NULL) {
        tarn_merge__input_drop(&cursor->input);
        tree->heads[i] = UINT64_MAX;
    } else {
        tarn_assert(batch->row_count > 0 && batch->row_count <= INT32_MAX);
        TARN_TRY(chunk_new(tree->spec, batch, place, cursor->chunk, &chunk));
        tree->heads[i] = chunk->keys.prefix[0];
    }
    chunk_unref(cursor->chunk);
    cursor->chunk = chunk;
    cursor->row = 0;
    return TARN_OK;
}

static __attribute__((noinline)) bool before_slow(const struct tree *tree, uint32_t a, uint32_t b)
{
    const struct cursor *x = &tree->cursors[a], *y = &tree->cursors[b];

    if (x->chunk == NULL || y->chunk == NULL)
        return x->chunk != NULL;
    return tarn_merge__keys_compare_rest(&x->chunk->keys, x->row, &y->chunk->keys, y->row) < 0;
}

static inline bool before(const struct tree *tree, uint32_t a, uint32_t b)
{
    if (tree->heads[a] != tree->heads[b])
        return tree->heads[a] < tree->heads[b];
    return before_slow(tree, a, b);
}

/* Plays the winner's new row against the losers on its way up. */
static inline void replay(struct tree *tree, uint32_t winner)
{
    for (uint32_t node = (winner + tree->input_count) / 2; node > 0; node /= 2) {
        if (before(tree, tree->nodes[node], winner)) {
            uint32_t loser = winner;
            winner = tree->nodes[node];
            tree->nodes[node] = loser;
        }
    }
    tree->nodes[0] = winner;
}

/* The smallest prefix among the others: below it the winner needs no tree. */
static uint64_t runner_up(const struct tree *tree)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t node = (tree->nodes[0] + tree->input_count) / 2; node > 0; node /= 2) {
        uint64_t head = tree->heads[tree->nodes[node]];
        if (head < least)
            least = head;
    }
    return least;
}

static uint32_t play(struct tree *tree, uint32_t node)
{
    if (node >= tree->input_count)
        return node - tree->input_count;
    uint32_t left = play(tree, 2 * node), right = play(tree, 2 * node + 1);
    bool right_wins = before(tree, right, left);

    tree->nodes[node] = right_wins ? left : right;
    return right_wins ? right : left;
}

static struct tarn_status *start(struct tree *tree, struct tarn_op *op)
{
    int64_t row_size = 1;

    for (uint32_t i = 0; i < tree->input_count; i++) {
        TARN_TRY(load(tree, op, i));
        const struct chunk *chunk = tree->cursors[i].chunk;
        if (chunk != NULL)
            row_size = TARN_MAX(row_size, tarn_batch_size(chunk->batch) / chunk->row_count);
    }
    tree->batch_rows =
        TARN_MAX(1, TARN_MIN(TARN_MERGE_BATCH_ROWS, TARN_MERGE_BATCH_BYTES / row_size));
    if (tree->input_count == 1) { /* its rival is a cursor beyond the last, which is at its end */
        tree->nodes[0] = 0;
        tree->nodes[1] = 1;
        tree->heads[1] = UINT64_MAX;
    } else if (tree->input_count > 1) {
        tree->nodes[0] = play(tree, 1);
    }
    tree->started = true;
    return TARN_OK;
}

/* --- records --- */

static inline uint32_t make_live(struct tree *tree, struct chunk *chunk)
{
    if (chunk->live < 0) {
        TARN_GROW(tree->live, tree->live_count, tree->live_capacity);
        chunk->live = (int32_t)tree->live_count;
        tree->live[tree->live_count++] = chunk;
        chunk->ref_count++;
    }
    return (uint32_t)chunk->live;
}

/* Is (b, j) the version that stays when (a, i) came before? */
static bool supersedes(const struct tarn_merge_tree_spec *spec, const struct chunk *a, uint32_t i,
                       const struct chunk *b, uint32_t j)
{
    if (spec->order->column_count > 0) {
        int c = tarn_merge__keys_compare(&a->order, i, &b->order, j);
        if (c != 0)
            return c < 0;
    }
    if (a->sequence[i] != b->sequence[j])
        return a->sequence[i] < b->sequence[j];
    bool retract_a = tarn_merge__is_retract(a->kind[i]),
         retract_b = tarn_merge__is_retract(b->kind[j]);
    if (retract_a != retract_b)
        return retract_a;
    return a->place <= b->place;
}

static inline void emit_pending(struct tree *tree)
{
    struct chunk *chunk = tree->pending;

    if (chunk != NULL &&
        !(tree->spec->drop_retract && tarn_merge__is_retract(chunk->kind[tree->pending_row])))
        tarn_merge__picks_add(&tree->picks, (uint32_t)chunk->live, tree->pending_row, 1);
}

/* The next record in key order. */
static inline void take(struct tree *tree, struct chunk *chunk, uint32_t row)
{
    struct chunk *last = tree->pending;

    if (tree->spec->ignore_delete && tarn_merge__is_retract(chunk->kind[row]))
        return;
    if (last != NULL && last->keys.prefix[tree->pending_row] == chunk->keys.prefix[row] &&
        tarn_merge__keys_compare_rest(&last->keys, tree->pending_row, &chunk->keys, row) == 0) {
        if (!supersedes(tree->spec, last, tree->pending_row, chunk, row) != tree->spec->keep_first)
            return;
    } else {
        emit_pending(tree);
    }
    make_live(tree, chunk);
    tree->pending = chunk;
    tree->pending_row = row;
}

/* Takes the winner's row, and those behind it that are surely below all other runs. */
static struct tarn_status *step(struct tree *tree, struct tarn_op *op)
{
    uint32_t winner = tree->nodes[0];
    struct cursor *cursor = &tree->cursors[winner];
    struct chunk *chunk = cursor->chunk;
    const uint64_t *prefix = chunk->keys.prefix;
    uint32_t row = cursor->row;

    take(tree, chunk, row++);
    if (row < chunk->row_count && prefix[row] < tree->heads[tree->nodes[1]]) {
        uint64_t limit = runner_up(tree);
        int64_t room = tree->batch_rows - tree->picks.row_count;
        for (; row < chunk->row_count && prefix[row] < limit && room > 0; row++, room--)
            take(tree, chunk, row);
    }
    cursor->row = row;
    if (row < chunk->row_count)
        tree->heads[winner] = prefix[row];
    else
        TARN_TRY(load(tree, op, winner));
    replay(tree, winner);
    return TARN_OK;
}

/* Forgets the chunks that only gathered picks named; the pending one stays. */
static void clear_picks(struct tree *tree)
{
    size_t kept = 0;

    for (size_t i = 0; i < tree->live_count; i++) {
        struct chunk *chunk = tree->live[i];
        chunk->live = -1;
        if (chunk == tree->pending) {
            chunk->live = 0;
            tree->live[kept++] = chunk;
        } else {
            chunk_unref(chunk);
        }
    }
    tree->live_count = kept;
    tarn_merge__picks_clear(&tree->picks);
}

static struct tarn_status *gather_picks(struct tree *tree, struct tarn_batch **out)
{
    const struct tarn_merge_tree_spec *spec = tree->spec;
    struct tarn_batch **batches = tarn_alloc((tree->live_count + 1) * sizeof(struct tarn_batch *));

    for (size_t i = 0; i < tree->live_count; i++)
        batches[i] = tree->live[i]->batch;
    struct tarn_status *s =
        tarn_merge__gather_batch(batches, tree->live_count, spec->columns, spec->types,
                                 spec->column_count, &tree->picks, out);
    free(batches);
    clear_picks(tree);
    return s;
}

static bool at_end(const struct tree *tree)
{
    return tree->input_count == 0 || tree->cursors[tree->nodes[0]].chunk == NULL;
}

/* A single run's batches are passed on as they came: the last record of one doesn't wait for the next
 * batch unless that begins with its key. */
static bool cut_after_batch(struct tree *tree)
{
    const struct cursor *cursor = &tree->cursors[0];
    struct chunk *last = tree->pending;

    if (tree->input_count != 1 || cursor->row != 0 || last == NULL || cursor->chunk == NULL)
        return false;
    if (tarn_merge__keys_compare(&last->keys, tree->pending_row, &cursor->chunk->keys, 0) == 0)
        return false;
    emit_pending(tree);
    tree->pending = NULL;
    return tree->picks.row_count > 0;
}

/* Live chunks without picks pile up where whole batches are deletes: let go of them too. */
#define LIVE_CHUNKS_MAX 64

static struct tarn_status *tree_next(struct tarn_source *self, struct tarn_op *op,
                                     struct tarn_batch **out)
{
    struct tree *tree = (struct tree *)self;

    *out = NULL;
    if (!tree->started)
        TARN_TRY(start(tree, op));
    while (tree->picks.row_count < tree->batch_rows && !at_end(tree)) {
        TARN_TRY(step(tree, op));
        if (cut_after_batch(tree))
            break;
        if (tree->live_count > LIVE_CHUNKS_MAX + 2 * (size_t)tree->input_count) {
            if (tree->picks.row_count > 0)
                break;
            clear_picks(tree);
        }
    }
    if (at_end(tree)) {
        emit_pending(tree);
        tree->pending = NULL;
    }
    if (tree->picks.row_count == 0)
        return TARN_OK;
    return gather_picks(tree, out);
}

/* --- an engine's rows: all versions of a key, then what they become --- */

static int by_age(const void *a, const void *b, void *spec)
{
    const struct version *x = a, *y = b;
    bool x_first = supersedes(spec, x->chunk, x->row, y->chunk, y->row);
    bool y_first = supersedes(spec, y->chunk, y->row, x->chunk, x->row);

    if (x_first != y_first)
        return x_first ? -1 : 1;
    return (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

static void sort_versions(const struct tarn_merge_tree_spec *spec, struct grouping *g)
{
    for (size_t i = 1; i < g->count; i++) {
        if (by_age(&g->versions[i - 1], &g->versions[i], (void *)(uintptr_t)spec) > 0) {
            qsort_r(g->versions, g->count, sizeof *g->versions, by_age, (void *)(uintptr_t)spec);
            return;
        }
    }
}

static uint32_t make_source(struct tree *tree, struct chunk *chunk)
{
    struct grouping *g = tree->grouping;
    uint32_t live = make_live(tree, chunk);

    if (live >= g->source_capacity) {
        g->source_capacity = TARN_MAX((size_t)16, 2 * (size_t)live);
        g->batches = tarn_realloc(g->batches, g->source_capacity * sizeof *g->batches);
        g->keys = tarn_realloc(g->keys, g->source_capacity * sizeof *g->keys);
        g->engine->batches = g->batches;
        g->engine->keys = g->keys;
    }
    g->batches[live] = chunk->batch;
    g->keys[live] = chunk->groups;
    return live + 1;
}

/* A lone version is its own result. */
static void pass_version(struct tree *tree, const struct version *version)
{
    struct grouping *g = tree->grouping;

    if (tree->spec->drop_retract && tarn_merge__is_retract(version->chunk->kind[version->row]))
        return;
    uint32_t source = make_source(tree, version->chunk);
    if (g->engine->composing) {
        tarn_merge__engine_pass(g->engine, source, version->row);
        tree->picks.row_count++;
    } else {
        tarn_merge__picks_add(&tree->picks, source - 1, version->row, 1);
    }
}

static struct tarn_status *merge_versions(struct tree *tree)
{
    struct grouping *g = tree->grouping;
    bool put;

    sort_versions(tree->spec, g);
    if (g->count > g->sorted_capacity) {
        g->sorted_capacity = g->capacity;
        g->sorted = tarn_realloc(g->sorted, g->sorted_capacity * sizeof *g->sorted);
    }
    for (size_t i = 0; i < g->count; i++) {
        struct chunk *chunk = g->versions[i].chunk;
        g->sorted[i] = (struct tarn_merge_version){make_source(tree, chunk), g->versions[i].row,
                                                   chunk->kind[g->versions[i].row]};
    }
    TARN_TRY(tarn_merge__engine_merge(g->engine, g->sorted, g->count, tree->spec->drop_retract,
                                      &tree->picks, &put));
    tree->picks.row_count += put;
    return TARN_OK;
}

static void forget_versions(struct grouping *g)
{
    for (size_t i = 0; i < g->count; i++)
        chunk_unref(g->versions[i].chunk);
    g->count = 0;
}

static struct tarn_status *finish_key(struct tree *tree)
{
    struct grouping *g = tree->grouping;
    struct tarn_status *s = TARN_OK;

    if (g->count == 1)
        pass_version(tree, &g->versions[0]);
    else if (g->count > 1)
        s = merge_versions(tree);
    forget_versions(g);
    return s;
}

static bool continues_key(const struct grouping *g, const struct chunk *chunk, uint32_t row)
{
    const struct version *last = &g->versions[g->count - 1];

    return last->chunk->keys.prefix[last->row] == chunk->keys.prefix[row] &&
           tarn_merge__keys_compare_rest(&last->chunk->keys, last->row, &chunk->keys, row) == 0;
}

/* The winner's row. */
static struct tarn_status *step_grouped(struct tree *tree, struct tarn_op *op)
{
    struct grouping *g = tree->grouping;
    uint32_t winner = tree->nodes[0];
    struct cursor *cursor = &tree->cursors[winner];
    struct chunk *chunk = cursor->chunk;

    if (g->count > 0 && !continues_key(g, chunk, cursor->row))
        TARN_TRY(finish_key(tree));
    TARN_GROW(g->versions, g->count, g->capacity);
    g->versions[g->count] = (struct version){chunk, cursor->row, g->count};
    g->count++;
    chunk->ref_count++;
    if (++cursor->row < chunk->row_count)
        tree->heads[winner] = chunk->keys.prefix[cursor->row];
    else
        TARN_TRY(load(tree, op, winner));
    replay(tree, winner);
    return TARN_OK;
}

static struct tarn_status *gather_grouped(struct tree *tree, struct tarn_batch **out)
{
    struct tarn_merge_combiner *engine = tree->grouping->engine;

    if (!engine->composing)
        return gather_picks(tree, out);
    struct tarn_status *s =
        tarn_merge__engine_gather(engine, tree->spec, tree->live_count, tree->picks.row_count, out);
    tarn_merge__engine_clear(engine);
    clear_picks(tree);
    return s;
}

static bool is_full(const struct tree *tree)
{
    return tree->picks.row_count >= tree->batch_rows ||
           (tree->picks.row_count > 0 &&
            (tree->grouping->engine->made_bytes > TARN_MERGE_BATCH_BYTES ||
             tree->live_count > LIVE_CHUNKS_MAX + 2 * (size_t)tree->input_count));
}

static struct tarn_status *grouped_next(struct tarn_source *self, struct tarn_op *op,
                                        struct tarn_batch **out)
{
    struct tree *tree = (struct tree *)self;

    *out = NULL;
    if (!tree->started)
        TARN_TRY(start(tree, op));
    while (!is_full(tree) && !at_end(tree)) {
        TARN_TRY(step_grouped(tree, op));
        if (tree->picks.row_count == 0 && tree->live_count > LIVE_CHUNKS_MAX)
            clear_picks(tree); /* of results that are left out */
    }
    if (at_end(tree))
        TARN_TRY(finish_key(tree));
    return tree->picks.row_count == 0 ? TARN_OK : gather_grouped(tree, out);
}

static void grouping_free(struct grouping *g)
{
    if (g == NULL)
        return;
    forget_versions(g);
    tarn_merge__engine_free(g->engine);
    free(g->versions);
    free(g->sorted);
    free(g->batches);
    free(g->keys);
    free(g);
}

static void tree_close(struct tarn_source *self)
{
    struct tree *tree = (struct tree *)self;

    grouping_free(tree->grouping);

    tree->pending = NULL;
    clear_picks(tree);
    for (uint32_t i = 0; i < tree->input_count; i++) {
        tarn_merge__input_drop(&tree->cursors[i].input);
        chunk_unref(tree->cursors[i].chunk);
    }
    tarn_merge__picks_drop(&tree->picks);
    free(tree->live);
    free(tree->nodes);
    free(tree->heads);
    free(tree->cursors);
    free(tree);
}

struct tarn_status *tarn_merge__tree_open(struct tarn_op *op,
                                          const struct tarn_merge_tree_spec *spec,
                                          struct tarn_merge_input **inputs, size_t input_count,
                                          struct tarn_source **out)
{
    struct tree *tree = tarn_calloc(1, sizeof *tree);

    tarn_assert(input_count < UINT32_MAX / 2);
    tree->source =
        (struct tarn_source){spec->engine != NULL ? grouped_next : tree_next, tree_close};
    tree->spec = spec;
    if (spec->engine != NULL) {
        tree->grouping = tarn_calloc(1, sizeof *tree->grouping);
        tree->grouping->engine = tarn_merge__engine_new(spec);
    }
    tree->input_count = (uint32_t)input_count;
    tree->cursors = tarn_calloc(input_count + 1, sizeof *tree->cursors);
    tree->heads = tarn_calloc(input_count + 2, sizeof *tree->heads);
    tree->nodes = tarn_calloc(input_count + 2, sizeof *tree->nodes);
    for (size_t i = 0; i < input_count; i++)
        tree->cursors[i].input = tarn_move(inputs[i]);
    *out = &tree->source;
    return TARN_OK;
}
