/*
 * engine - what the versions of one key become where it isn't simply the last of them.
 *
 *   tree -> versions of a key, oldest first -> engine -> a row of cells -> picks of each column -> gather -> batch
 *
 * Cells    what a column of the key has become so far: null, the value of some version (which is only named), or one
 *          that was computed. Computed values of a batch lie in one more array behind source 0, whose row 0 is null.
 *          So rows that nobody computed cost no more than those of deduplicate, and a batch that has no others is gathered
 *          by the tree as always.
 * Sources  batches that picks and cells name, from 1 on; as long as the tree keeps them live.
 * One      A lone version is its own result, whatever its kind, as with Paimon (ReducerMergeFunctionWrapper).
 * Source   docs/format.md, "Partial update", "Aggregation".
 */
#ifndef TARN_MERGE_ENGINE_H
#define TARN_MERGE_ENGINE_H

#include "merge/internal.h"

struct tarn_merge_ref { /* a row of a source's column; of its elements, where these are meant */
    uint32_t source, row;
};
struct tarn_merge_refs {
    struct tarn_merge_ref *items;
    size_t count, capacity;
};
static inline void tarn_merge__refs_add(struct tarn_merge_refs *refs, struct tarn_merge_ref ref)
{
    TARN_GROW(refs->items, refs->count, refs->capacity);
    refs->items[refs->count++] = ref;
}
#define TARN_MERGE_COMPOSED                                                                        \
    UINT32_MAX /* source of an element that is put together of several rows' fields */

enum tarn_merge_cell { /* state of a column, and where its value is */
                       TARN_CELL_NULL,
                       TARN_CELL_ROW,      /* at */
                       TARN_CELL_NUMBER,   /* number: integers, decimals */
                       TARN_CELL_REAL,     /* real */
                       TARN_CELL_BYTES,    /* bytes */
                       TARN_CELL_ELEMENTS, /* elements: of an ARRAY, entries of a MAP */
};

struct tarn_merge_column {
    int place; /* among the batches' columns */
    const struct tarn_type *type;
    const struct tarn_column_rule *rule; /* NULL: _SEQUENCE_NUMBER, _VALUE_KIND */
    struct tarn_slice name;
    bool wanted; /* in the output */

    enum tarn_merge_cell cell;
    bool begun; /* first_value and its like have met theirs */
    struct tarn_merge_ref at;
    __int128 number;
    double real;
    struct tarn_buf bytes;
    struct tarn_merge_refs elements, spare;
    struct tarn_merge_refs
        composed; /* of elements: as many as the ROW has fields, one after the other */

    /* of the batch being made */
    struct tarn_merge_picks picks;
    struct tarn_buf made; /* numbers as they lie, or bytes */
    int32_t *made_ends;   /* of bytes and elements, behind each value */
    size_t made_count, made_capacity;
    struct tarn_merge_picks made_elements;
    struct tarn_merge_picks *made_fields; /* of composed elements; NULL: none */
};

struct tarn_merge_version {
    uint32_t source, row;
    int8_t kind;
};

struct tarn_merge_combiner {
    const struct tarn_merge_engine_spec *spec; /* borrowed */
    const struct tarn_options *options;
    struct tarn_merge_column *columns;   /* of the batches, then the two of the system */
    int column_count;                    /* without those two */
    struct tarn_batch *const *batches;   /* by source - 1; the tree's */
    struct tarn_merge_keys *const *keys; /* of each source's sequence groups */
    struct tarn_merge_ref *group_at;     /* what each group was last set by; source 0: nothing */
    int8_t *group_verdict;
    bool composing; /* picks are by column: a row of this batch was computed */
    int64_t made_bytes;
    struct tarn_merge_ref last; /* whose sequence number the result has */
    int8_t kind;                /* of the result */
};

static inline const struct ArrowArray *tarn_merge__source(const struct tarn_merge_combiner *engine,
                                                          const struct tarn_merge_column *column,
                                                          uint32_t source)
{
    return tarn_batch_column(engine->batches[source - 1], column->place);
}
static inline bool tarn_merge__ref_is_null(const struct tarn_merge_combiner *engine,
                                           const struct tarn_merge_column *column,
                                           struct tarn_merge_ref ref)
{
    return tarn_column_is_null(tarn_merge__source(engine, column, ref.source), ref.row);
}
/* The column becomes what the row has. */
static inline void tarn_merge__cell_set(const struct tarn_merge_combiner *engine,
                                        struct tarn_merge_column *column, struct tarn_merge_ref ref)
{
    column->cell = tarn_merge__ref_is_null(engine, column, ref) ? TARN_CELL_NULL : TARN_CELL_ROW;
    column->at = ref;
}

/* --- engine.c: what the tree calls --- */
struct tarn_merge_combiner *tarn_merge__engine_new(const struct tarn_merge_tree_spec *tree);
void tarn_merge__engine_free(struct tarn_merge_combiner *engine);
/* A key's versions, two or more, oldest first. *put: the result is a row of the batch, behind those of `so_far`, which counts only
 * until the engine composes. */
TARN_MUST struct tarn_status *tarn_merge__engine_merge(struct tarn_merge_combiner *engine,
                                                       const struct tarn_merge_version *versions,
                                                       size_t count, bool drop_retract,
                                                       const struct tarn_merge_picks *so_far,
                                                       bool *put);
/* While it composes: a row as it lies. */
void tarn_merge__engine_pass(struct tarn_merge_combiner *engine, uint32_t source, uint32_t row);
TARN_MUST struct tarn_status *tarn_merge__engine_gather(struct tarn_merge_combiner *engine,
                                                        const struct tarn_merge_tree_spec *tree,
                                                        size_t source_count, int64_t row_count,
                                                        struct tarn_batch **out);
void tarn_merge__engine_clear(struct tarn_merge_combiner *engine); /* of the batch */

/* --- engine_partial.c, engine_aggregate.c: all versions of a key, into cells, kind and last --- */
TARN_MUST struct tarn_status *tarn_merge__partial_update(struct tarn_merge_combiner *engine,
                                                         const struct tarn_merge_version *versions,
                                                         size_t count);
TARN_MUST struct tarn_status *tarn_merge__aggregation(struct tarn_merge_combiner *engine,
                                                      const struct tarn_merge_version *versions,
                                                      size_t count);

/* --- aggregate.c: one value more --- */
enum tarn_merge_step {
    TARN_STEP_ADD,
    TARN_STEP_ADD_OLDER, /* the value belongs before what the cell has */
    TARN_STEP_RETRACT
};
TARN_MUST struct tarn_status *tarn_merge__aggregate(struct tarn_merge_combiner *engine,
                                                    struct tarn_merge_column *column,
                                                    enum tarn_merge_step step,
                                                    struct tarn_merge_ref in);
/* Families of functions; of the value it is known that it isn't null, and of the cell too where that helps. */
TARN_MUST struct tarn_status *tarn_merge__aggregate_number(struct tarn_merge_combiner *engine,
                                                           struct tarn_merge_column *column,
                                                           enum tarn_merge_step step,
                                                           struct tarn_merge_ref in);
/* listagg; the value may be null. */
void tarn_merge__aggregate_text(struct tarn_merge_combiner *engine,
                                struct tarn_merge_column *column, enum tarn_merge_step step,
                                struct tarn_merge_ref in);
/* rbm32: the union of two serialised bitmaps. */
TARN_MUST struct tarn_status *tarn_merge__aggregate_bitmap(struct tarn_merge_combiner *engine,
                                                           struct tarn_merge_column *column,
                                                           struct tarn_merge_ref in);
/* ARRAY and MAP; the value may be null. */
TARN_MUST struct tarn_status *tarn_merge__aggregate_nested(struct tarn_merge_combiner *engine,
                                                           struct tarn_merge_column *column,
                                                           enum tarn_merge_step step,
                                                           struct tarn_merge_ref in);
/* The bytes of a text cell or row: borrowed. */
struct tarn_slice tarn_merge__text_of(const struct tarn_merge_combiner *engine,
                                      const struct tarn_merge_column *column,
                                      struct tarn_merge_ref ref);

/* --- made.c: computed values as an array --- */
/* The cell, which was computed, is taken among the column's made values: its row. */
TARN_MUST struct tarn_status *tarn_merge__made_add(struct tarn_merge_combiner *engine,
                                                   struct tarn_merge_column *column, uint32_t *row);
/* All of them behind a null; then there are none. */
TARN_MUST struct tarn_status *tarn_merge__made_take(struct tarn_merge_combiner *engine,
                                                    struct tarn_merge_column *column,
                                                    size_t source_count, struct ArrowArray *out);
void tarn_merge__made_clear(struct tarn_merge_column *column);

#endif
