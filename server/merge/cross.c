/*
 * cross - where keys are, over all partitions: for tables whose primary key lacks a partition column, so that a row moves
 * when its partition column changes (docs/format.md, "Keys across partitions").
 *
 * Nothing of it is on disk: the keys that the table has are read when a writer opens. Of a key 128 bits of hash are kept,
 * some 40 bytes with what the table of them leaves free.
 */
#include "merge/internal.h"

#define KEYS_MAX ((size_t)50000000) /* 2 GB or so */

struct tarn_merge_cross {
    const struct tarn_merge_layout *layout;
    int *columns; /* the primary key's, in its order */
    const struct tarn_type **types;
    size_t column_count;
    struct tarn_value *values;
    struct tarn_buf row;
    struct tarn_merge_home *homes; /* open addressing; a power of two */
    size_t home_count, used;
};

struct tarn_merge_cross *tarn_merge__cross_new(const struct tarn_merge_layout *layout)
{
    const struct tarn_schema *schema = layout->table->schema;
    struct tarn_merge_cross *cross = tarn_calloc(1, sizeof *cross);

    cross->layout = layout;
    cross->column_count = schema->primary_key_count;
    cross->columns = tarn_calloc(cross->column_count + 1, sizeof *cross->columns);
    cross->types = tarn_calloc(cross->column_count + 1, sizeof(const struct tarn_type *));
    cross->values = tarn_calloc(cross->column_count + 1, sizeof *cross->values);
    for (size_t i = 0; i < cross->column_count; i++) {
        cross->columns[i] = tarn_schema_find(schema, schema->primary_keys[i]);
        cross->types[i] = schema->fields[cross->columns[i]].type;
    }
    cross->home_count = 1024;
    cross->homes = tarn_calloc(cross->home_count, sizeof *cross->homes);
    return cross;
}

void tarn_merge__cross_free(struct tarn_merge_cross *cross)
{
    if (cross == NULL)
        return;
    free(cross->columns);
    free(cross->types);
    free(cross->values);
    tarn_buf_drop(&cross->row);
    free(cross->homes);
    free(cross);
}

static struct tarn_merge_home *find_home(struct tarn_merge_home *homes, size_t count, uint64_t low,
                                         uint64_t high)
{
    size_t at = low & (count - 1);
    while (homes[at].partition != NULL && (homes[at].low != low || homes[at].high != high))
        at = (at + 1) & (count - 1);
    return &homes[at];
}

static void grow(struct tarn_merge_cross *cross)
{
    size_t count = cross->home_count * 2;
    struct tarn_merge_home *homes = tarn_calloc(count, sizeof *homes);

    for (size_t i = 0; i < cross->home_count; i++) {
        const struct tarn_merge_home *home = &cross->homes[i];
        if (home->partition != NULL)
            *find_home(homes, count, home->low, home->high) = *home;
    }
    free(cross->homes);
    cross->homes = homes;
    cross->home_count = count;
}

struct tarn_status *tarn_merge__cross_find(struct tarn_merge_cross *cross,
                                           const struct tarn_batch *batch, const int *columns,
                                           int64_t row, struct tarn_merge_home **out)
{
    columns = columns == NULL ? cross->columns : columns;
    for (size_t i = 0; i < cross->column_count; i++)
        tarn_column_value(tarn_batch_column(batch, columns[i]), cross->types[i], row,
                          &cross->values[i]);
    tarn_buf_clear(&cross->row);
    tarn_row_encode(cross->types, cross->values, cross->column_count, &cross->row);
    if (cross->used * 3 >= cross->home_count * 2)
        grow(cross);
    uint64_t low = tarn_xxh64(tarn_buf_slice(&cross->row), 0);
    uint64_t high = tarn_xxh64(tarn_buf_slice(&cross->row), low | 1);
    struct tarn_merge_home *home = find_home(cross->homes, cross->home_count, low, high);
    if (home->partition == NULL) {
        if (cross->used == KEYS_MAX)
            return tarn_status_new(TARN_TOO_LARGE,
                                   "more than %zu keys, and they may be in any partition: make the "
                                   "partition columns part of the primary key",
                                   KEYS_MAX);
        cross->used++;
        *home = (struct tarn_merge_home){.low = low, .high = high};
    }
    *out = home;
    return TARN_OK;
}

struct tarn_status *tarn_merge__cross_open_split(struct tarn_merge_cross *cross, struct tarn_op *op,
                                                 const struct tarn_merge_split *split,
                                                 const char *scratch_dir, struct tarn_source **out)
{
    struct tarn_scan_spec spec = {.columns = cross->columns,
                                  .column_count = cross->column_count,
                                  .limit = -1,
                                  .scratch_dir = scratch_dir};
    return tarn_scan_open(op, cross->layout->table, split, 1, &spec, out);
}

/* --- rows that leave a partition --- */

/* A column of rows that leave: as it was, or the value of the partition that each of them leaves. */
static struct tarn_status *leaving_column(const struct tarn_merge_layout *layout,
                                          const struct tarn_batch *batch, int column,
                                          const struct tarn_merge_leave *leaves, size_t count,
                                          struct tarn_value *values, struct ArrowArray *out)
{
    TARN_OWN(tarn_merge__picks_drop) struct tarn_merge_picks picks = {0};
    const struct tarn_type *type = layout->types[column];
    int place = layout->partition_place[column];
    const struct ArrowArray *source = tarn_batch_column(batch, column);

    if (place < 0) {
        for (size_t i = 0; i < count; i++)
            tarn_merge__picks_add(&picks, 0, leaves[i].row, 1);
        return tarn_merge__gather(type, &source, 1, &picks, out);
    }
    struct ArrowArray *ones = tarn_calloc(count + 1, sizeof *ones);
    const struct ArrowArray **sources = tarn_calloc(count + 1, sizeof(const struct ArrowArray *));
    struct tarn_status *s = TARN_OK;
    size_t made = 0;
    for (; made < count && s == TARN_OK; made++) {
        s = tarn_row_deserialize(leaves[made].partition, layout->partition_types,
                                 layout->partition_count, values);
        if (s != TARN_OK)
            break;
        tarn_merge__array_of_value(type, &values[place], &ones[made]);
        sources[made] = &ones[made];
        tarn_merge__picks_add(&picks, (uint32_t)made, 0, 1);
    }
    if (s == TARN_OK)
        s = tarn_merge__gather(type, sources, count, &picks, out);
    for (size_t i = 0; i < made; i++)
        tarn_merge__array_drop(&ones[i]);
    free(ones);
    free(sources);
    return s;
}

struct tarn_status *tarn_merge__cross_deletes(const struct tarn_merge_layout *layout,
                                              const struct tarn_batch *batch,
                                              const struct tarn_merge_leave *leaves, size_t count,
                                              struct tarn_batch **out)
{
    int n = layout->column_count;
    struct tarn_value *values = tarn_calloc(layout->partition_count + 1, sizeof *values);
    struct tarn_status *s = TARN_OK;
    struct ArrowArray top;

    tarn_merge__array_init(&top, (int64_t)count, 1, n + 1);
    for (int i = 0; i < n && s == TARN_OK; i++)
        s = leaving_column(layout, batch, i, leaves, count, values, top.children[i]);
    free(values);
    if (s != TARN_OK) {
        tarn_merge__array_drop(&top);
        return s;
    }
    tarn_merge__array_init(top.children[n], (int64_t)count, 2, 0);
    memset(tarn_merge__array_buffer(top.children[n], 1, count, false), TARN_MERGE_KIND_DELETE,
           count);
    *out = tarn_batch_take(&top);
    return TARN_OK;
}
