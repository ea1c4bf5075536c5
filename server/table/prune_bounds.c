#include "table/plan.h"

#include <math.h>

/*
 * What bounds the rows of a file, or of all files of a page, by their smallest and largest values: a filter that no row within
 * can pass rules them out.
 */

/* --- bounds of one file --- */

struct tarn_status *tarn_plan__file_schema(struct tarn_planner *p, int64_t id,
                                           const struct tarn_schema **out)
{
    if (id == p->plan.schema->id) {
        *out = p->plan.schema;
        return TARN_OK;
    }
    if (id < 0 || id >= p->schema_capacity)
        return tarn_status_new(TARN_MANIFEST_MALFORMED, "table %s: a file names schema %" PRId64,
                               p->table->name, id);
    if (p->schemas[id] == NULL)
        TARN_TRY(tarn_table_schema(p->op, p->table, id, &p->schemas[id]));
    *out = p->schemas[id];
    return TARN_OK;
}

static void forget_bounds(struct tarn_planner *p, int64_t row_count)
{
    for (size_t i = 0; i < p->plan.schema->field_count; i++)
        p->bounds[i] =
            (struct tarn_bounds){.null_count = TARN_STATS_UNKNOWN, .row_count = row_count};
}

/* Sets bounds[target] from position `at` of stats decoded as min and max. */
static void set_bounds(struct tarn_bounds *bounds, int target, const struct tarn_stats *stats,
                       size_t at, const struct tarn_value *min, const struct tarn_value *max)
{
    struct tarn_bounds *b = &bounds[target];
    b->known = true;
    b->min = min[at];
    b->max = max[at];
    if (at < stats->count)
        b->null_count = stats->null_counts[at];
}

/* Two rows of bounds; false: they don't decode, and prove nothing. */
static bool decode_rows(struct tarn_slice min_row, struct tarn_slice max_row,
                        const struct tarn_type *const *types, size_t count, struct tarn_value *min,
                        struct tarn_value *max)
{
    struct tarn_status *s = tarn_row_deserialize(min_row, types, count, min);
    if (s == TARN_OK)
        s = tarn_row_deserialize(max_row, types, count, max);
    bool usable = s == TARN_OK;
    tarn_status_free(s);
    return usable;
}

/* The smallest and the largest key bound the first key column, and each further one as far as all before it
 * are the same in both. */
static bool key_range_bounds(struct tarn_planner *p, struct tarn_slice min_key,
                             struct tarn_slice max_key)
{
    struct tarn_value *min = p->key_values, *max = min + p->key_count;
    if (!decode_rows(min_key, max_key, p->key_types, p->key_count, min, max))
        return false;
    for (size_t i = 0; i < p->key_count; i++) {
        struct tarn_bounds *b = &p->bounds[p->key_columns[i]];
        b->known = true;
        b->min = min[i];
        b->max = max[i];
        if (tarn_value_compare(p->key_types[i], &min[i], &max[i]) != 0)
            break;
    }
    return true;
}

struct tarn_status *tarn_plan__key_passes(struct tarn_planner *p,
                                          const struct tarn_manifest_entry *entry, bool *out)
{
    *out = true;
    if (!p->has_key_where)
        return TARN_OK;
    forget_bounds(p, entry->file.row_count);
    if (key_range_bounds(p, entry->file.min_key, entry->file.max_key))
        *out = tarn_predicate_may_match(&p->key_where, p->plan.schema, p->bounds);
    return TARN_OK;
}

/* --- value statistics --- */

/* Which columns of the plan's schema the value statistics of a file bound. The next file mostly has the same. */
struct tarn_covering {
    struct tarn_arena *arena;
    const struct tarn_schema *then; /* the file's */
    bool has_columns, covers_all;
    const struct tarn_slice *columns;
    size_t column_count;
    size_t count; /* of statistics */
    const struct tarn_type **types;
    int *targets; /* columns of the plan's schema; -1: none, or of another type now */
    struct tarn_value *min, *max;
    const int *lacking; /* columns that the file's schema lacks: null in every row */
    size_t lacking_count;
    bool usable;
};

void tarn_plan__covering_free(struct tarn_covering *c)
{
    if (c == NULL)
        return;
    tarn_arena_free(c->arena);
    free(c);
}

static bool covers_all(const struct tarn_data_file *file)
{
    return !file->has_value_stats_columns && file->value_stats.count > 0;
}

static bool covers_same(const struct tarn_covering *c, const struct tarn_schema *then,
                        const struct tarn_data_file *file)
{
    if (c == NULL || c->then != then || c->has_columns != file->has_value_stats_columns ||
        c->covers_all != covers_all(file) || c->column_count != file->value_stats_column_count)
        return false;
    for (size_t i = 0; i < c->column_count; i++)
        if (!tarn_slice_equal(c->columns[i], file->value_stats_columns[i]))
            return false;
    return true;
}

static int target_of(const struct tarn_schema *now, const struct tarn_field *field)
{
    int target = tarn_schema_find_id(now, field->id);
    return target >= 0 && tarn_type_equal(now->fields[target].type, field->type, true) ? target
                                                                                       : -1;
}

static void find_lacking(struct tarn_covering *c, const struct tarn_schema *now)
{
    int *lacking = tarn_arena_calloc(c->arena, now->field_count + 1, sizeof *lacking);
    for (size_t i = 0; c->then != now && i < now->field_count; i++)
        if (tarn_schema_find_id(c->then, now->fields[i].id) < 0)
            lacking[c->lacking_count++] = (int)i;
    c->lacking = lacking;
}

static struct tarn_covering *covering_new(const struct tarn_schema *now,
                                          const struct tarn_schema *then,
                                          const struct tarn_data_file *file)
{
    struct tarn_covering *c = tarn_calloc(1, sizeof *c);
    struct tarn_arena *arena = c->arena = tarn_arena_new();
    size_t names = c->column_count = file->value_stats_column_count;
    struct tarn_slice *columns = tarn_arena_calloc(arena, names + 1, sizeof *columns);
    c->then = then;
    c->has_columns = file->has_value_stats_columns;
    c->covers_all = covers_all(file);
    c->columns = columns;
    c->count = c->has_columns ? names : c->covers_all ? then->field_count : 0;
    c->types = tarn_arena_calloc(arena, c->count + 1, sizeof *c->types);
    c->targets = tarn_arena_calloc(arena, c->count + 1, sizeof *c->targets);
    c->min = tarn_arena_calloc(arena, c->count * 2 + 1, sizeof *c->min);
    c->max = c->min + c->count;
    c->usable = true;
    for (size_t i = 0; i < names; i++)
        columns[i] = tarn_arena_copy(arena, file->value_stats_columns[i]);
    for (size_t i = 0; i < c->count && c->usable; i++) {
        int column = c->has_columns ? tarn_schema_find(then, columns[i]) : (int)i;
        c->usable = column >= 0;
        if (!c->usable)
            break;
        c->types[i] = then->fields[column].type;
        c->targets[i] = target_of(now, &then->fields[column]);
    }
    find_lacking(c, now);
    return c;
}

/* Value statistics, mapped by field id to the columns of the plan's schema. A column that the file's schema lacks
 * is null in every row; a column whose type has changed since has no usable bounds. */
static struct tarn_status *value_bounds(struct tarn_planner *p, const struct tarn_data_file *file)
{
    const struct tarn_schema *then = NULL;
    TARN_TRY(tarn_plan__file_schema(p, file->schema_id, &then));
    if (!covers_same(p->covering, then, file)) {
        tarn_plan__covering_free(p->covering);
        p->covering = covering_new(p->plan.schema, then, file);
    }
    const struct tarn_covering *c = p->covering;
    if (c->usable && decode_rows(file->value_stats.min, file->value_stats.max, c->types, c->count,
                                 c->min, c->max))
        for (size_t i = 0; i < c->count; i++)
            if (c->targets[i] >= 0)
                set_bounds(p->bounds, c->targets[i], &file->value_stats, i, c->min, c->max);
    for (size_t i = 0; i < c->lacking_count; i++)
        p->bounds[c->lacking[i]].null_count = file->row_count;
    return TARN_OK;
}

bool tarn_plan__bounds_match(struct tarn_planner *p)
{
    return tarn_predicate_may_match(&p->plan.where, p->plan.schema, p->bounds);
}

struct tarn_status *tarn_plan__stats_verdict(struct tarn_planner *p,
                                             const struct tarn_data_file *file,
                                             enum tarn_verdict *out)
{
    *out = TARN_VERDICT_PASSES;
    if (!p->has_where)
        return TARN_OK;
    struct tarn_value *min = p->key_values, *max = min + p->key_count;
    if (p->has_key_where && decode_rows(file->key_stats.min, file->key_stats.max, p->key_types,
                                        p->key_count, min, max)) {
        forget_bounds(p, file->row_count);
        for (size_t i = 0; i < p->key_count; i++)
            set_bounds(p->bounds, p->key_columns[i], &file->key_stats, i, min, max);
        if (!tarn_predicate_may_match(&p->key_where, p->plan.schema, p->bounds)) {
            *out = TARN_VERDICT_KEY;
            return TARN_OK;
        }
    }
    if (!p->is_append && p->request.changes != TARN_CHANGES_NONE)
        return TARN_OK; /* rows replace others: only keys decide */
    forget_bounds(p, file->row_count);
    TARN_TRY(value_bounds(p, file));
    if (!tarn_plan__bounds_match(p))
        *out = TARN_VERDICT_STATS;
    return TARN_OK;
}

/* --- bounds of pages --- */

static bool has_bytes(const struct tarn_type *type)
{
    return type->id <= TARN_TYPE_VARBINARY && type->id != TARN_TYPE_BOOLEAN;
}

struct tarn_page_bounds *tarn_plan__page_bounds_new(struct tarn_planner *p, bool has_values)
{
    const struct tarn_schema *schema = p->plan.schema;
    struct tarn_page_bounds *b = tarn_page_bounds_new();
    b->schema_stamp = tarn_plan__schema_stamp(schema);
    b->has_values = has_values;
    b->count = schema->field_count;
    b->bounds = tarn_arena_calloc(b->arena, b->count + 1, sizeof *b->bounds);
    b->of_bytes = tarn_arena_calloc(b->arena, b->count + 1, sizeof *b->of_bytes);
    for (size_t i = 0; i < b->count; i++)
        b->of_bytes[i] = has_bytes(schema->fields[i].type);
    return b;
}

static bool is_real(const struct tarn_type *type)
{
    return type->id == TARN_TYPE_FLOAT || type->id == TARN_TYPE_DOUBLE;
}

/* May these bounds be joined to others? Not where one end is open, or says nothing. */
static bool is_closed(const struct tarn_type *type, const struct tarn_bounds *b)
{
    return b->known && type->id <= TARN_TYPE_TIMESTAMP_LTZ && !b->min.is_null && !b->max.is_null &&
           !(is_real(type) && (isnan(b->min.real) || isnan(b->max.real))) &&
           tarn_value_compare(type, &b->min, &b->max) <= 0;
}

static struct tarn_value keep(struct tarn_page_bounds *page, const struct tarn_type *type,
                              const struct tarn_value *value)
{
    struct tarn_value kept = *value;
    if (has_bytes(type))
        kept.bytes = tarn_arena_copy(page->arena, value->bytes);
    return kept;
}

static void widen(struct tarn_page_bounds *page, const struct tarn_type *type,
                  struct tarn_bounds *all, const struct tarn_bounds *one, bool first)
{
    if (first) {
        *all = (struct tarn_bounds){.known = is_closed(type, one),
                                    .null_count = one->null_count,
                                    .row_count = one->row_count};
        if (all->known) {
            all->min = keep(page, type, &one->min);
            all->max = keep(page, type, &one->max);
        }
        return;
    }
    all->known = all->known && is_closed(type, one);
    if (all->known && tarn_value_compare(type, &one->min, &all->min) < 0)
        all->min = keep(page, type, &one->min);
    if (all->known && tarn_value_compare(type, &one->max, &all->max) > 0)
        all->max = keep(page, type, &one->max);
    bool counted = all->row_count > 0 && one->row_count > 0 &&
                   !__builtin_add_overflow(all->row_count, one->row_count, &all->row_count);
    if (!counted)
        all->row_count = 0; /* not known, from here on */
    if (all->null_count < 0 || one->null_count < 0 ||
        __builtin_add_overflow(all->null_count, one->null_count, &all->null_count))
        all->null_count = TARN_STATS_UNKNOWN;
}

struct tarn_status *tarn_plan__page_bounds_add(struct tarn_planner *p,
                                               struct tarn_page_bounds *page,
                                               const struct tarn_data_file *file, bool first)
{
    const struct tarn_schema *schema = p->plan.schema;
    forget_bounds(p, file->row_count);
    if (page->has_values)
        TARN_TRY(value_bounds(p, file));
    else
        key_range_bounds(p, file->min_key, file->max_key);
    for (size_t i = 0; i < schema->field_count; i++)
        widen(page, schema->fields[i].type, &page->bounds[i], &p->bounds[i], first);
    return TARN_OK;
}

bool tarn_plan__page_wanted(void *arg, const struct tarn_page_bounds *bounds)
{
    struct tarn_planner *p = arg;
    if (!p->has_where || bounds == NULL ||
        bounds->schema_stamp != tarn_plan__schema_stamp(p->plan.schema) ||
        bounds->count != p->plan.schema->field_count)
        return true;
    const struct tarn_predicate *where = bounds->has_values ? &p->plan.where : &p->key_where;
    if (bounds->has_values && !p->is_append)
        return true;
    return tarn_predicate_may_match(where, p->plan.schema, bounds->bounds);
}
