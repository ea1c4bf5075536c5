/*
 * collect, merge_map, merge_map_with_keytime, nested_update, nested_partial_update: what an ARRAY or MAP holds is a list of
 * elements of the versions, which are only named; new ones are gathered when the batch is.
 *
 * Elements and keys are told apart by their bytes (value_add). Where Paimon's order is that of a hash table, ours is that of
 * the first time the element or key was met.
 */
#include "merge/engine.h"

/* --- equality: a value as bytes --- */

static void value_add(const struct tarn_type *type, const struct ArrowArray *array, int64_t row,
                      struct tarn_buf *out);

static void values_add(const struct tarn_type *type, const struct ArrowArray *array, int64_t begin,
                       int64_t end, struct tarn_buf *out)
{
    for (int64_t i = begin; i < end; i++)
        value_add(type, array, i, out);
}

static void list_add(const struct tarn_type *type, const struct ArrowArray *array, int64_t row,
                     struct tarn_buf *out)
{
    static const struct tarn_type count_type = {.id = TARN_TYPE_INT};
    const int32_t *offsets = (const int32_t *)array->buffers[1] + array->offset + row;
    const struct ArrowArray *child = array->children[0];
    int32_t count = offsets[1] - offsets[0];

    tarn_buf_add(out, &count, sizeof count);
    if (type->id == TARN_TYPE_ARRAY) {
        values_add(type->element, child, offsets[0], offsets[1], out);
        return;
    }
    bool map = type->id == TARN_TYPE_MAP;
    for (int64_t i = offsets[0] + child->offset; i < offsets[1] + child->offset; i++) {
        value_add(map ? type->key : type->element, child->children[0], i, out);
        value_add(map ? type->element : &count_type, child->children[1], i, out);
    }
}

static void text_add(const struct tarn_type *type, const struct ArrowArray *array, int64_t row,
                     struct tarn_buf *out)
{
    struct tarn_value v;
    tarn_column_value(array, type, row, &v);
    uint32_t size = (uint32_t)v.bytes.size;

    tarn_buf_add(out, &size, sizeof size);
    tarn_buf_add_slice(out, v.bytes);
}

/* Equal values, and only those, have equal bytes. */
static void value_add(const struct tarn_type *type, const struct ArrowArray *array, int64_t row,
                      struct tarn_buf *out)
{
    size_t width = (size_t)tarn_merge__type_width(type);
    bool null = tarn_column_is_null(array, row);

    tarn_buf_add_byte(out, !null);
    if (null)
        return;
    if (width > 0) {
        tarn_buf_add(
            out, (const uint8_t *)array->buffers[1] + (size_t)(array->offset + row) * width, width);
    } else if (type->id == TARN_TYPE_BOOLEAN) {
        int64_t at = array->offset + row;
        tarn_buf_add_byte(out, ((const uint8_t *)array->buffers[1])[at >> 3] >> (at & 7) & 1);
    } else if (type->id == TARN_TYPE_ROW) {
        for (size_t i = 0; i < type->field_count; i++)
            value_add(type->fields[i].type, array->children[i], row + array->offset, out);
    } else if (tarn_type_is_nested(type)) {
        list_add(type, array, row, out);
    } else {
        text_add(type, array, row, out);
    }
}

/* --- one step --- */

struct fold { /* two lists into one */
    struct tarn_merge_combiner *engine;
    struct tarn_merge_column *column;
    struct tarn_merge_refs *out; /* the column's spare list */
    struct tarn_map *places;     /* of keys or elements in it, counted from 1 */
    struct tarn_buf key;
};

static const struct ArrowArray *elements_of(const struct fold *f, struct tarn_merge_ref e)
{
    return tarn_merge__source(f->engine, f->column, e.source)->children[0];
}

/* Field `i` of an element that is a row, or 0 and 1 for key and value of an entry: a row of the child's array. */
static struct tarn_merge_ref field_of(const struct fold *f, struct tarn_merge_ref e, size_t i)
{
    if (e.source == TARN_MERGE_COMPOSED)
        return f->column->composed.items[e.row * f->column->type->element->field_count + i];
    return (struct tarn_merge_ref){e.source, e.row + (uint32_t)elements_of(f, e)->offset};
}

static void field_add(struct fold *f, struct tarn_merge_ref e, size_t i,
                      const struct tarn_type *type)
{
    struct tarn_merge_ref field = field_of(f, e, i);

    if (field.source == 0)
        tarn_buf_add_byte(&f->key, 0);
    else
        value_add(type, elements_of(f, field)->children[i], field.row, &f->key);
}

static bool element_is_null(const struct fold *f, struct tarn_merge_ref e)
{
    return e.source != TARN_MERGE_COMPOSED && tarn_column_is_null(elements_of(f, e), e.row);
}

/* What tells elements of the column apart, into f->key: all of it, an entry's key, or the nested key. */
static struct tarn_slice key_of(struct fold *f, struct tarn_merge_ref e)
{
    const struct tarn_type *type = f->column->type;
    const struct tarn_column_rule *rule = f->column->rule;

    tarn_buf_clear(&f->key);
    if (type->id == TARN_TYPE_MAP)
        field_add(f, e, 0, type->key);
    else if (rule->nested_key_count == 0)
        value_add(type->element, elements_of(f, e), e.row, &f->key);
    for (size_t i = 0; type->id == TARN_TYPE_ARRAY && i < rule->nested_key_count; i++)
        field_add(f, e, (size_t)rule->nested_keys[i],
                  type->element->fields[rule->nested_keys[i]].type);
    return tarn_buf_slice(&f->key);
}

static size_t place_of(const struct fold *f, struct tarn_slice key)
{
    return (size_t)(uintptr_t)tarn_map_find(f->places, key);
}

static void set_place(struct fold *f, struct tarn_slice key, size_t place)
{
    tarn_map_set(f->places, key, (void *)(uintptr_t)place);
}

/* The element of this key, which takes the place of the one before. */
static void put(struct fold *f, struct tarn_merge_ref e)
{
    struct tarn_slice key = key_of(f, e);
    size_t place = place_of(f, key);

    if (place != 0) {
        f->out->items[place - 1] = e;
        return;
    }
    tarn_merge__refs_add(f->out, e);
    set_place(f, key, f->out->count);
}

/* Unless there is one. */
static void put_new(struct fold *f, struct tarn_merge_ref e)
{
    struct tarn_slice key = key_of(f, e);

    if (place_of(f, key) != 0)
        return;
    tarn_merge__refs_add(f->out, e);
    set_place(f, key, f->out->count);
}

/* --- collect --- */

static void collect(struct fold *f, const struct tarn_merge_refs *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (f->column->rule->distinct)
            put_new(f, list->items[i]);
        else
            tarn_merge__refs_add(f->out, list->items[i]);
    }
}

/* One occurrence of each element of `gone` less. */
static void uncollect(struct fold *f, const struct tarn_merge_refs *list,
                      const struct tarn_merge_refs *gone)
{
    for (size_t i = 0; i < gone->count; i++) { /* how often each goes */
        struct tarn_slice key = key_of(f, gone->items[i]);
        set_place(f, key, place_of(f, key) + 1);
    }
    for (size_t i = 0; i < list->count; i++) {
        struct tarn_slice key = key_of(f, list->items[i]);
        size_t left = place_of(f, key);
        if (left == 0)
            tarn_merge__refs_add(f->out, list->items[i]);
        else if (left == 1)
            tarn_map_remove(f->places, key);
        else
            set_place(f, key, left - 1);
    }
}

/* --- maps --- */

static void merge_map(struct fold *f, const struct tarn_merge_refs *list,
                      const struct tarn_merge_refs *more)
{
    for (size_t i = 0; i < list->count; i++)
        put(f, list->items[i]);
    for (size_t i = 0; i < more->count; i++)
        put(f, more->items[i]);
}

/* The elements whose keys `gone` doesn't have. */
static void without(struct fold *f, const struct tarn_merge_refs *list,
                    const struct tarn_merge_refs *gone)
{
    for (size_t i = 0; i < gone->count; i++) {
        if (f->column->type->id == TARN_TYPE_MAP || !element_is_null(f, gone->items[i]))
            set_place(f, key_of(f, gone->items[i]), 1);
    }
    for (size_t i = 0; i < list->count; i++) {
        bool dropped = f->column->type->id != TARN_TYPE_MAP && element_is_null(f, list->items[i]);
        if (!dropped && place_of(f, key_of(f, list->items[i])) == 0)
            tarn_merge__refs_add(f->out, list->items[i]);
    }
}

/* The time of an entry's value; false: it has none. */
static bool time_of(const struct fold *f, struct tarn_merge_ref e, struct tarn_slice *out)
{
    int field = f->column->rule->time_field;
    const struct ArrowArray *values = elements_of(f, e)->children[1];
    struct tarn_merge_ref at = field_of(f, e, 1);
    struct tarn_value v;

    if (tarn_column_is_null(values, at.row))
        return false;
    tarn_column_value(values->children[field], f->column->type->element->fields[field].type,
                      at.row + values->offset, &v);
    *out = v.bytes;
    return !v.is_null;
}

static bool value_is_null(const struct fold *f, struct tarn_merge_ref e)
{
    return tarn_column_is_null(elements_of(f, e)->children[1], field_of(f, e, 1).row);
}

/* A null value takes the key away; one without a time says nothing; else the later one stays. */
static void merge_by_time(struct fold *f, struct tarn_merge_ref e)
{
    struct tarn_slice key = key_of(f, e), time, there;
    size_t place = place_of(f, key);

    if (value_is_null(f, e)) {
        if (place != 0)
            f->out->items[place - 1].source = 0; /* left out by drop_holes */
        return;
    }
    if (!time_of(f, e, &time))
        return;
    if (place == 0 || f->out->items[place - 1].source == 0 ||
        !time_of(f, f->out->items[place - 1], &there) || tarn_slice_compare(time, there) > 0)
        put(f, e);
}

static void drop_holes(struct tarn_merge_refs *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].source != 0)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

/* --- nested rows --- */

/* *usable: the row's key may be one. */
static struct tarn_status *check_key(const struct fold *f, struct tarn_merge_ref e, bool *usable)
{
    const struct tarn_column_rule *rule = f->column->rule;

    *usable = true;
    if (rule->nested_null == TARN_NESTED_NULL_MERGE)
        return TARN_OK;
    for (size_t i = 0; i < rule->nested_key_count && *usable; i++) {
        struct tarn_merge_ref field = field_of(f, e, (size_t)rule->nested_keys[i]);
        *usable =
            field.source != 0 &&
            !tarn_column_is_null(elements_of(f, field)->children[rule->nested_keys[i]], field.row);
    }
    if (*usable || rule->nested_null == TARN_NESTED_NULL_IGNORE)
        return TARN_OK;
    return tarn_status_new(TARN_VALUE_INVALID,
                           "column %.*s: a null in the nested key of a row; option "
                           "fields.%.*s.nested-key-null-strategy can be merge or ignore",
                           TARN_SLICE_ARG(f->column->name), TARN_SLICE_ARG(f->column->name));
}

static int compare_sequence(const struct fold *f, struct tarn_merge_ref a, struct tarn_merge_ref b)
{
    const struct tarn_column_rule *rule = f->column->rule;

    for (size_t i = 0; i < rule->nested_sequence_count; i++) {
        int field = rule->nested_sequence[i];
        const struct tarn_type *type = f->column->type->element->fields[field].type;
        struct tarn_merge_ref x = field_of(f, a, (size_t)field), y = field_of(f, b, (size_t)field);
        struct tarn_value v, w;
        tarn_column_value(elements_of(f, x)->children[field], type, x.row, &v);
        tarn_column_value(elements_of(f, y)->children[field], type, y.row, &w);
        int c = tarn_value_compare(type, &v, &w);
        if (c != 0)
            return c;
    }
    return 0;
}

/* Rows by their keys; new keys only up to the limit where it is asked for. */
static struct tarn_status *upsert(struct fold *f, const struct tarn_merge_refs *list, bool limited)
{
    const struct tarn_column_rule *rule = f->column->rule;

    for (size_t i = 0; i < list->count; i++) {
        struct tarn_merge_ref e = list->items[i];
        bool usable;

        if (element_is_null(f, e))
            continue;
        TARN_TRY(check_key(f, e, &usable));
        size_t place = usable ? place_of(f, key_of(f, e)) : 0;
        bool wins = place == 0 ? !limited || f->out->count < (size_t)rule->count_limit
                               : compare_sequence(f, e, f->out->items[place - 1]) >= 0;
        if (usable && wins)
            put(f, e);
    }
    return TARN_OK;
}

static void append_rows(struct fold *f, const struct tarn_merge_refs *list, size_t limit)
{
    for (size_t i = 0; i < list->count && f->out->count < limit; i++) {
        if (!element_is_null(f, list->items[i]))
            tarn_merge__refs_add(f->out, list->items[i]);
    }
}

static struct tarn_status *nested_update(struct fold *f, const struct tarn_merge_refs *list,
                                         const struct tarn_merge_refs *more)
{
    if (f->column->rule->nested_key_count == 0) {
        append_rows(f, list, SIZE_MAX);
        append_rows(f, more, (size_t)f->column->rule->count_limit);
        return TARN_OK;
    }
    TARN_TRY(upsert(f, list, false));
    return upsert(f, more, true);
}

/* Lays the fields of a row that aren't null over the composed one of its key. */
static void lay_over(struct fold *f, struct tarn_merge_ref e)
{
    size_t fields = f->column->type->element->field_count;
    struct tarn_slice key = key_of(f, e);
    size_t place = place_of(f, key);

    if (place == 0) {
        struct tarn_merge_ref made = {TARN_MERGE_COMPOSED,
                                      (uint32_t)(f->column->composed.count / fields)};
        for (size_t i = 0; i < fields; i++)
            tarn_merge__refs_add(&f->column->composed, (struct tarn_merge_ref){0});
        tarn_merge__refs_add(f->out, made);
        place = f->out->count;
        set_place(f, key, place);
    }
    size_t begin = f->out->items[place - 1].row * fields;
    for (size_t i = 0; i < fields; i++) {
        struct tarn_merge_ref field = field_of(f, e, i);
        if (field.source != 0 &&
            !tarn_column_is_null(elements_of(f, field)->children[i], field.row))
            f->column->composed.items[begin + i] = field;
    }
}

static struct tarn_status *lay_all(struct fold *f, const struct tarn_merge_refs *list)
{
    for (size_t i = 0; i < list->count; i++) {
        bool usable;

        if (element_is_null(f, list->items[i]))
            continue;
        TARN_TRY(check_key(f, list->items[i], &usable));
        if (usable)
            lay_over(f, list->items[i]);
    }
    return TARN_OK;
}

/* --- the step --- */

static void list_of(const struct tarn_merge_combiner *engine,
                    const struct tarn_merge_column *column, struct tarn_merge_ref at,
                    struct tarn_merge_refs *out)
{
    const struct ArrowArray *array = tarn_merge__source(engine, column, at.source);
    const int32_t *offsets = (const int32_t *)array->buffers[1] + array->offset + at.row;

    out->count = 0;
    for (int32_t i = offsets[0]; i < offsets[1]; i++)
        tarn_merge__refs_add(out, (struct tarn_merge_ref){at.source, (uint32_t)i});
}

/* Two lists, none of them null where the function doesn't care for that. */
static struct tarn_status *add_lists(struct fold *f, const struct tarn_merge_refs *list,
                                     const struct tarn_merge_refs *more)
{
    switch (f->column->rule->aggregate) {
    case TARN_AGGREGATE_COLLECT:
        collect(f, list);
        collect(f, more);
        return TARN_OK;
    case TARN_AGGREGATE_MERGE_MAP:
        merge_map(f, list, more);
        return TARN_OK;
    case TARN_AGGREGATE_MERGE_MAP_BY_TIME:
        for (size_t i = 0; i < list->count; i++)
            put(f, list->items[i]);
        for (size_t i = 0; i < more->count; i++)
            merge_by_time(f, more->items[i]);
        drop_holes(f->out);
        return TARN_OK;
    case TARN_AGGREGATE_NESTED_UPDATE:
        return nested_update(f, list, more);
    default:
        TARN_TRY(lay_all(f, list));
        return lay_all(f, more);
    }
}

/* Does a value that meets a null column have to go through the function, rather than stay as it is? */
static bool shapes_first(const struct tarn_column_rule *rule)
{
    return rule->aggregate == TARN_AGGREGATE_NESTED_UPDATE ||
           rule->aggregate == TARN_AGGREGATE_NESTED_PARTIAL_UPDATE ||
           (rule->aggregate == TARN_AGGREGATE_COLLECT && rule->distinct);
}

static struct tarn_status *retract_lists(struct fold *f, const struct tarn_merge_refs *list,
                                         const struct tarn_merge_refs *gone)
{
    if (f->column->rule->aggregate == TARN_AGGREGATE_COLLECT) {
        uncollect(f, list, gone);
        return TARN_OK;
    }
    if (f->column->rule->nested_key_count >
        0) { /* keys that are none are refused or left out, on both sides */
        struct tarn_status *s = upsert(f, list, false);
        for (size_t i = 0; i < gone->count && s == TARN_OK; i++) {
            bool fine = !element_is_null(f, gone->items[i]);
            s = fine ? check_key(f, gone->items[i], &fine) : TARN_OK;
            size_t place = s == TARN_OK && fine ? place_of(f, key_of(f, gone->items[i])) : 0;
            if (place != 0)
                f->out->items[place - 1].source = 0;
        }
        drop_holes(f->out);
        return s;
    }
    without(f, list, gone);
    return TARN_OK;
}

static struct tarn_status *run(struct fold *f, enum tarn_merge_step step,
                               const struct tarn_merge_refs *in)
{
    const struct tarn_merge_refs none = {0};
    const struct tarn_merge_refs *acc =
        f->column->cell == TARN_CELL_NULL ? &none : &f->column->elements;

    if (step == TARN_STEP_RETRACT)
        return retract_lists(f, acc, in);
    bool swapped =
        step == TARN_STEP_ADD_OLDER && f->column->rule->aggregate != TARN_AGGREGATE_COLLECT;
    return swapped ? add_lists(f, in, acc) : add_lists(f, acc, in);
}

struct tarn_status *tarn_merge__aggregate_nested(struct tarn_merge_combiner *engine,
                                                 struct tarn_merge_column *column,
                                                 enum tarn_merge_step step,
                                                 struct tarn_merge_ref in)
{
    bool null = tarn_merge__ref_is_null(engine, column, in);
    struct tarn_merge_refs more = {0};

    if (null) /* nothing to add, nothing to take back */
        return TARN_OK;
    if (column->cell == TARN_CELL_NULL) {
        if (step == TARN_STEP_RETRACT)
            return TARN_OK;
        if (step == TARN_STEP_ADD_OLDER ? !column->rule->distinct : !shapes_first(column->rule)) {
            tarn_merge__cell_set(engine, column, in);
            return TARN_OK;
        }
    }
    struct fold f = {engine, column, &column->spare, tarn_map_new(), {0}};
    if (column->cell == TARN_CELL_ROW)
        list_of(engine, column, column->at, &column->elements);
    list_of(engine, column, in, &more);
    column->spare.count = 0;
    struct tarn_status *s = run(&f, step, &more);
    struct tarn_merge_refs made = column->spare;
    column->spare = column->elements;
    column->elements = made;
    column->cell = TARN_CELL_ELEMENTS;
    tarn_map_free(f.places);
    tarn_buf_drop(&f.key);
    free(more.items);
    return s;
}
