#include "table/internal.h"

/* Packing the files of a plan into splits as Paimon packs them (docs/format.md, "Batch plan"). */

/* --- sections of a primary-key bucket --- */

struct ranged { /* a file with its keys decoded once */
    struct tarn_plan_file file;
    struct tarn_value *min, *max;
};

struct key_order {
    const struct tarn_type **types;
    size_t count;
};

static struct key_order key_order_of(struct tarn_op *op, const struct tarn_schema *schema)
{
    int *columns;
    struct key_order k = {.count = tarn_schema_trimmed_key_columns(schema, op->arena, &columns)};
    k.types = tarn_arena_calloc(op->arena, k.count + 1, sizeof *k.types);
    for (size_t i = 0; i < k.count; i++)
        k.types[i] = schema->fields[columns[i]].type;
    return k;
}

static int compare(const struct key_order *k, const struct tarn_value *a,
                   const struct tarn_value *b)
{
    for (size_t i = 0; i < k->count; i++) {
        int c = tarn_value_compare(k->types[i], &a[i], &b[i]);
        if (c != 0)
            return c;
    }
    return 0;
}

static int by_range(const void *a, const void *b, void *arg)
{
    const struct ranged *left = a, *right = b;
    int c = compare(arg, left->min, right->min);
    return c != 0 ? c : compare(arg, left->max, right->max);
}

static int by_arrival(const void *a, const void *b, void *arg)
{
    const struct tarn_plan_file *left = &((const struct ranged *)a)->file;
    const struct tarn_plan_file *right = &((const struct ranged *)b)->file;
    if (left->added_by != right->added_by)
        return left->added_by < right->added_by ? -1 : 1;
    return by_range(a, b, arg);
}

static struct tarn_status *decode_ranges(struct tarn_op *op, const struct key_order *k,
                                         const struct tarn_plan_file *files, size_t count,
                                         struct ranged **out)
{
    struct ranged *list = tarn_arena_calloc(op->arena, count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        list[i].file = files[i];
        list[i].min = tarn_arena_calloc(op->arena, k->count + 1, sizeof *list[i].min);
        list[i].max = tarn_arena_calloc(op->arena, k->count + 1, sizeof *list[i].max);
        TARN_TRY(
            tarn_row_deserialize(files[i].entry.file.min_key, k->types, k->count, list[i].min));
        TARN_TRY(
            tarn_row_deserialize(files[i].entry.file.max_key, k->types, k->count, list[i].max));
    }
    *out = list;
    return TARN_OK;
}

struct tarn_status *tarn_table__sections(struct tarn_op *op, const struct tarn_schema *schema,
                                         struct tarn_plan_file *files, size_t count,
                                         int *section_of, int *section_count)
{
    struct key_order k = key_order_of(op, schema);
    struct ranged *list;
    TARN_TRY(decode_ranges(op, &k, files, count, &list));
    qsort_r(list, count, sizeof *list, by_range, &k);
    *section_count = 0;
    const struct tarn_value *max = NULL;
    for (size_t i = 0; i < count; i++) {
        files[i] = list[i].file;
        if (max == NULL || compare(&k, list[i].min, max) > 0) {
            (*section_count)++;
            max = list[i].max;
        } else if (compare(&k, list[i].max, max) > 0) {
            max = list[i].max;
        }
        section_of[i] = *section_count - 1;
    }
    return TARN_OK;
}

/* In the order of Paimon's manifests: as they came, and what came at once by key, as a compaction writes it. */
static struct tarn_status *sort_by_arrival(struct tarn_op *op, const struct tarn_schema *schema,
                                           struct tarn_plan_file *files, size_t count)
{
    struct key_order k = key_order_of(op, schema);
    struct ranged *list;
    TARN_TRY(decode_ranges(op, &k, files, count, &list));
    qsort_r(list, count, sizeof *list, by_arrival, &k);
    for (size_t i = 0; i < count; i++)
        files[i] = list[i].file;
    return TARN_OK;
}

/* --- packing --- */

struct packer {
    struct tarn_op *op;
    struct tarn_plan *plan;
    size_t split_capacity;
    int64_t weight; /* of the split being filled; 0: it is empty */
};

static void start_split(struct packer *p, struct tarn_plan_file *first)
{
    struct tarn_plan *plan = p->plan;
    if (plan->split_count == p->split_capacity) {
        size_t capacity = p->split_capacity == 0 ? 16 : p->split_capacity * 2;
        struct tarn_split *splits = tarn_arena_calloc(p->op->arena, capacity, sizeof *splits);
        if (plan->split_count > 0)
            memcpy(splits, plan->splits, plan->split_count * sizeof *splits);
        plan->splits = splits;
        p->split_capacity = capacity;
    }
    plan->splits[plan->split_count++] = (struct tarn_split){
        .partition = first->entry.partition, .bucket = first->entry.bucket, .files = first};
    p->weight = 0;
}

/* An item is `count` neighbouring files that stay together. */
static void pack_item(struct packer *p, struct tarn_plan_file *files, size_t count, bool *open)
{
    int64_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += files[i].entry.file.size;
    int64_t weight = TARN_MAX(size, p->plan->options->split_open_cost);
    if (!*open || (p->weight > 0 && p->weight + weight > p->plan->options->split_target_size))
        start_split(p, files);
    *open = true;
    p->plan->splits[p->plan->split_count - 1].file_count += count;
    p->weight += weight;
}

static bool has_deletes(const struct tarn_plan_file *f)
{
    int64_t n = f->entry.file.delete_row_count;
    return n != TARN_FILE_NONE && n > 0;
}

static int by_sequence(const void *a, const void *b)
{
    const struct tarn_plan_file *left = a, *right = b;
    if (left->entry.file.min_sequence != right->entry.file.min_sequence)
        return left->entry.file.min_sequence < right->entry.file.min_sequence ? -1 : 1;
    if (left->added_by != right->added_by)
        return left->added_by < right->added_by ? -1 : 1;
    return tarn_slice_compare(left->entry.file.name, right->entry.file.name);
}

/* All of one level above 0 and nothing deleted: the files can't overlap and are read as they lie. */
static bool reads_raw(const struct tarn_plan_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (files[i].entry.file.level == 0 ||
            files[i].entry.file.level != files[0].entry.file.level || has_deletes(&files[i]))
            return false;
    return true;
}

static struct tarn_status *split_bucket(struct packer *p, struct tarn_plan_file *files,
                                        size_t count)
{
    bool open = false;
    size_t first_split = p->plan->split_count;
    const struct tarn_schema *schema = p->plan->schema;
    if (tarn_schema_is_append(schema) || reads_raw(files, count)) {
        if (tarn_schema_is_append(schema))
            qsort(files, count, sizeof *files, by_sequence);
        else
            TARN_TRY(sort_by_arrival(p->op, schema, files, count));
        for (size_t i = 0; i < count; i++)
            pack_item(p, &files[i], 1, &open);
        for (size_t s = first_split; s < p->plan->split_count; s++)
            p->plan->splits[s].raw = true;
        return TARN_OK;
    }
    int *section_of = tarn_arena_calloc(p->op->arena, count + 1, sizeof *section_of);
    int section_count;
    TARN_TRY(tarn_table__sections(p->op, schema, files, count, section_of, &section_count));
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && section_of[end] == section_of[begin];)
            end++;
        pack_item(p, files + begin, end - begin, &open);
    }
    for (size_t s = first_split; s < p->plan->split_count; s++) {
        struct tarn_split *split = &p->plan->splits[s];
        split->raw = split->file_count == 1 && !has_deletes(&split->files[0]);
    }
    return TARN_OK;
}

struct tarn_status *tarn_table__make_splits(struct tarn_op *op, const struct tarn_schema *schema,
                                            const struct tarn_options *options,
                                            struct tarn_plan *plan)
{
    struct packer p = {.op = op, .plan = plan};
    for (size_t begin = 0, end; begin < plan->file_count; begin = end) {
        const struct tarn_manifest_entry *first = &plan->files[begin].entry;
        for (end = begin + 1; end < plan->file_count; end++) {
            const struct tarn_manifest_entry *e = &plan->files[end].entry;
            if (e->bucket != first->bucket || !tarn_slice_equal(e->partition, first->partition))
                break;
        }
        TARN_TRY(split_bucket(&p, plan->files + begin, end - begin));
    }
    return TARN_OK;
}
