#include "format/evolve_internal.h"

#include "format/cast.h"
#include "format/ddl.h"
#include "format/options_judge.h"

/* ---- the draft */

static size_t room_for(size_t count)
{
    size_t room = 1;
    while (room < count)
        room *= 2;
    return room;
}

static struct tarn_type *thaw(const struct tarn_type *type, struct tarn_arena *arena);

static struct tarn_field *thaw_fields(const struct tarn_field *fields, size_t count,
                                      struct tarn_arena *arena)
{
    struct tarn_field *copy = tarn_arena_calloc(arena, room_for(count), sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        copy[i] = fields[i];
        copy[i].type = thaw(fields[i].type, arena);
    }
    return copy;
}

/* A copy that may be changed in place, all of it. */
static struct tarn_type *thaw(const struct tarn_type *type, struct tarn_arena *arena)
{
    struct tarn_type *copy = tarn_arena_alloc(arena, sizeof *copy);
    *copy = *type;
    if (type->key != NULL)
        copy->key = thaw(type->key, arena);
    if (type->element != NULL)
        copy->element = thaw(type->element, arena);
    if (type->id == TARN_TYPE_ROW)
        copy->fields = thaw_fields(type->fields, type->field_count, arena);
    return copy;
}

/* The fields of a thawed ROW. */
static struct tarn_field *fields_of(const struct tarn_type *row)
{
    return (struct tarn_field *)row->fields;
}

static size_t find_field(const struct tarn_type *row, struct tarn_slice name)
{
    size_t i = 0;
    while (i < row->field_count && !tarn_slice_equal(row->fields[i].name, name))
        i++;
    return i; /* field_count: not there */
}

static void insert_field(struct tarn_type *row, size_t at, struct tarn_field field,
                         struct tarn_arena *arena)
{
    size_t n = row->field_count;
    struct tarn_field *fields = fields_of(row);
    if (room_for(n) == n) {
        fields = tarn_arena_calloc(arena, n * 2, sizeof *fields);
        memcpy(fields, row->fields, n * sizeof *fields);
        row->fields = fields;
    }
    memmove(fields + at + 1, fields + at, (n - at) * sizeof *fields);
    fields[at] = field;
    row->field_count++;
}

static void remove_field(struct tarn_type *row, size_t at)
{
    struct tarn_field *fields = fields_of(row);
    memmove(fields + at, fields + at + 1, (row->field_count - at - 1) * sizeof *fields);
    row->field_count--;
}

/* ---- where a path leads */

/* The first `count` names of the path, joined by dots. */
static const char *joined(const struct tarn_format__draft *d, const struct tarn_schema_change *c,
                          size_t count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&text, "%s%.*s", i == 0 ? "" : ".", TARN_SLICE_ARG(c->path[i]));
    return tarn_arena_str(d->arena, tarn_buf_slice(&text));
}

static const char *full(const struct tarn_format__draft *d, const struct tarn_schema_change *c)
{
    return joined(d, c, c->path_count);
}

static struct tarn_status *about_column(enum tarn_reason reason, const char *column,
                                        const char *what)
{
    struct tarn_status *s = tarn_status_new(reason, "column %s %s", column, what);
    tarn_status_set(s, "column", column);
    return s;
}

static struct tarn_status *not_found(const char *column)
{
    return about_column(TARN_COLUMN_NOT_FOUND, column, "does not exist");
}

static struct tarn_status *refused(const char *column, const char *why)
{
    return about_column(TARN_SCHEMA_INVALID, column, why);
}

static const char *shown(const struct tarn_format__draft *d, const struct tarn_type *type)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_type_print(type, &text);
    return tarn_arena_str(d->arena, tarn_buf_slice(&text));
}

/* The place in a nested type that a name leads to, or NULL. */
static const struct tarn_type **slot_of(struct tarn_type *type, struct tarn_slice name)
{
    size_t i;
    switch (type->id) {
    case TARN_TYPE_ROW:
        i = find_field(type, name);
        return i < type->field_count ? &fields_of(type)[i].type : NULL;
    case TARN_TYPE_ARRAY:
        return tarn_slice_is(name, "element") ? &type->element : NULL;
    case TARN_TYPE_MAP:
        return tarn_slice_is(name, "value") ? &type->element : NULL;
    default:
        return NULL;
    }
}

/* The type that holds the path's last name. */
static struct tarn_status *find_parent(struct tarn_format__draft *d,
                                       const struct tarn_schema_change *c, struct tarn_type **out)
{
    struct tarn_type *type = &d->root;
    for (size_t i = 0; i < c->path_count; i++) {
        if (type->id == TARN_TYPE_MAP && tarn_slice_is(c->path[i], "key"))
            return refused(joined(d, c, i), "is a MAP, whose keys can't be changed");
        if (i + 1 == c->path_count)
            break;
        const struct tarn_type **slot = slot_of(type, c->path[i]);
        if (slot == NULL)
            return not_found(joined(d, c, i + 1));
        type = (struct tarn_type *)*slot;
    }
    *out = type;
    return TARN_OK;
}

/* The ROW that holds the field at the path's end, and its index in there. */
static struct tarn_status *find_in_row(struct tarn_format__draft *d,
                                       const struct tarn_schema_change *c, struct tarn_type **row,
                                       size_t *at)
{
    TARN_TRY(find_parent(d, c, row));
    struct tarn_slice last = c->path[c->path_count - 1];
    if (slot_of(*row, last) == NULL)
        return not_found(full(d, c));
    if ((*row)->id != TARN_TYPE_ROW)
        return refused(full(d, c),
                       "has a type only: no name, comment, default or place of its own");
    *at = find_field(*row, last);
    return TARN_OK;
}

/* ---- keys */

static bool in(const struct tarn_slice *list, size_t count, struct tarn_slice name)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(list[i], name))
            return true;
    return false;
}

static struct tarn_status *check_no_partition_key(const struct tarn_format__draft *d,
                                                  const struct tarn_schema_change *c)
{
    if (c->path_count == 1 && in(d->old->partition_keys, d->old->partition_key_count, c->path[0]))
        return refused(full(d, c), "is a partition key, which stays as it is");
    return TARN_OK;
}

static struct tarn_status *check_no_primary_key(const struct tarn_format__draft *d,
                                                const struct tarn_schema_change *c)
{
    if (c->path_count == 1 && in(d->primary_keys, d->primary_key_count, c->path[0]))
        return refused(full(d, c),
                       "is part of the primary key, which stays: make a new table with another");
    return TARN_OK;
}

static struct tarn_status *check_no_index(const struct tarn_format__draft *d,
                                          const struct tarn_schema_change *c)
{
    if (c->path_count == 1 && tarn_format__is_indexed(d, c->path[0]))
        return refused(full(d, c), "is kept in an index of the primary key: take it out of option "
                                   "pk-*.index.columns first");
    return TARN_OK;
}

/* ---- changes of columns */

static bool is_on(const struct tarn_format__draft *d, const char *option, bool fallback)
{
    struct tarn_slice value = tarn_schema_option(d->old, option);
    return value.data == NULL ? fallback : tarn_format__is_word(value, "true");
}

/* Ids that a type's fields need. */
static int64_t count_ids(const struct tarn_type *type)
{
    if (type == NULL)
        return 0;
    int64_t n = count_ids(type->key) + count_ids(type->element);
    for (size_t i = 0; i < type->field_count; i++)
        n += 1 + count_ids(type->fields[i].type);
    return n;
}

static struct tarn_status *take_ids(struct tarn_format__draft *d, const char *column,
                                    struct tarn_field *field)
{
    if (d->highest_id + 1 + count_ids(field->type) > INT32_MAX - 1)
        return refused(column, "gets no id: the table has used up all of them; make a new table");
    int32_t next = (int32_t)d->highest_id + 1;
    const struct tarn_field *copy = tarn_format__assign_ids(field, 1, &next, d->arena);
    d->highest_id = next - 1;
    field->id = copy->id;
    field->type = thaw(copy->type, d->arena);
    return TARN_OK;
}

/* Where a new column goes among those of the table or of a ROW. */
static struct tarn_status *place_of(const struct tarn_format__draft *d,
                                    const struct tarn_schema_change *c, const struct tarn_type *row,
                                    size_t *at)
{
    *at = row->field_count;
    if (c->move == TARN_MOVE_FIRST)
        *at = 0;
    if (c->move == TARN_MOVE_BEFORE || c->move == TARN_MOVE_AFTER) {
        *at = find_field(row, c->reference);
        if (*at == row->field_count)
            return not_found(tarn_arena_str(d->arena, c->reference));
        *at += c->move == TARN_MOVE_AFTER;
    }
    if (c->move == TARN_MOVE_NONE && c->path_count == 1 &&
        is_on(d, "add-column-before-partition", false))
        for (size_t i = row->field_count; i > 0; i--)
            if (in(d->old->partition_keys, d->old->partition_key_count, row->fields[i - 1].name))
                *at = i - 1;
    return TARN_OK;
}

static struct tarn_status *add_column(struct tarn_format__draft *d,
                                      const struct tarn_schema_change *c)
{
    struct tarn_type *row;
    struct tarn_field field = {
        .name = c->path[c->path_count - 1], .type = c->type, .description = c->value};
    size_t at;
    if (!c->type->nullable)
        return refused(full(d, c),
                       "must be nullable: the rows that are there have no value for it");
    TARN_TRY(find_parent(d, c, &row));
    if (row->id != TARN_TYPE_ROW)
        return refused(
            joined(d, c, c->path_count - 1),
            tarn_arena_printf(d->arena, "is %s, no ROW that takes fields", shown(d, row)));
    if (find_field(row, field.name) < row->field_count)
        return about_column(TARN_COLUMN_EXISTS, full(d, c), "exists already");
    TARN_TRY(tarn_format__apply_directive(d, c->path_count == 1, &field));
    TARN_TRY(take_ids(d, full(d, c), &field));
    TARN_TRY(place_of(d, c, row, &at));
    insert_field(row, at, field, d->arena);
    return TARN_OK;
}

static struct tarn_status *drop_column(struct tarn_format__draft *d,
                                       const struct tarn_schema_change *c)
{
    struct tarn_type *row;
    size_t at;
    TARN_TRY(check_no_partition_key(d, c));
    TARN_TRY(check_no_primary_key(d, c));
    TARN_TRY(check_no_index(d, c));
    TARN_TRY(find_in_row(d, c, &row, &at));
    if (row->field_count == 1)
        return refused(full(d, c), "is the last one and can't be dropped");
    if (row == &d->root)
        tarn_format__drop_from_options(d, &row->fields[at]);
    remove_field(row, at);
    return TARN_OK;
}

static struct tarn_status *rename_column(struct tarn_format__draft *d,
                                         const struct tarn_schema_change *c)
{
    struct tarn_type *row;
    size_t at;
    TARN_TRY(check_no_partition_key(d, c));
    TARN_TRY(check_no_index(d, c));
    TARN_TRY(find_in_row(d, c, &row, &at));
    struct tarn_field *field = &fields_of(row)[at];
    if (row == &d->root && tarn_format__is_blob(field->type))
        return refused(full(d, c), "holds BLOBs and can't be renamed");
    if (find_field(row, c->value) < row->field_count) {
        const char *in_row = joined(d, c, c->path_count - 1);
        return about_column(TARN_COLUMN_EXISTS,
                            tarn_arena_printf(d->arena, "%s%s%.*s", in_row,
                                              in_row[0] == 0 ? "" : ".", TARN_SLICE_ARG(c->value)),
                            "exists already");
    }
    if (row == &d->root) {
        for (size_t i = 0; i < d->primary_key_count; i++)
            if (tarn_slice_equal(d->primary_keys[i], c->path[0]))
                d->primary_keys[i] = c->value;
        tarn_format__rename_in_options(d, c->path[0], c->value);
    }
    field->name = c->value;
    return TARN_OK;
}

/* The type at the end of the path: a field's, or that of an ARRAY's elements or a MAP's values. */
static struct tarn_status *find_type(struct tarn_format__draft *d,
                                     const struct tarn_schema_change *c,
                                     const struct tarn_type ***slot,
                                     const struct tarn_field **field)
{
    struct tarn_type *parent;
    TARN_TRY(find_parent(d, c, &parent));
    struct tarn_slice last = c->path[c->path_count - 1];
    *slot = slot_of(parent, last);
    if (*slot == NULL)
        return not_found(full(d, c));
    *field = parent->id == TARN_TYPE_ROW ? &parent->fields[find_field(parent, last)] : NULL;
    return TARN_OK;
}

static struct tarn_status *check_nullability(const struct tarn_format__draft *d,
                                             const struct tarn_schema_change *c, bool from, bool to)
{
    if (!from || to || !is_on(d, "alter-column-null-to-not-null.disabled", true))
        return TARN_OK;
    return refused(full(d, c),
                   "is nullable and may hold nulls: set option "
                   "alter-column-null-to-not-null.disabled = false first to make it NOT NULL");
}

static struct tarn_status *change_type(struct tarn_format__draft *d,
                                       const struct tarn_schema_change *c)
{
    const struct tarn_type **slot, *to = c->type;
    const struct tarn_field *field;
    TARN_TRY(check_no_partition_key(d, c));
    TARN_TRY(check_no_primary_key(d, c));
    TARN_TRY(check_no_index(d, c));
    TARN_TRY(find_type(d, c, &slot, &field));
    if (c->path_count == 1 && (tarn_format__is_blob(*slot) || tarn_format__is_blob(to)))
        return refused(full(d, c), "can't change its type from or to BLOB");
    if (c->keep_nullable)
        to = tarn_type_with_nullable(to, (*slot)->nullable, d->arena);
    else
        TARN_TRY(check_nullability(d, c, (*slot)->nullable, to->nullable));
    bool explicit_too = !is_on(d, "disable-explicit-type-casting", false);
    if (!tarn_cast_allowed(*slot, to, explicit_too)) {
        const char *advice = !explicit_too && tarn_cast_allowed(*slot, to, true)
                                 ? ": option disable-explicit-type-casting forbids it"
                                 : "";
        return refused(full(d, c), tarn_arena_printf(d->arena, "is %s and can't be cast to %s%s",
                                                     shown(d, *slot), shown(d, to), advice));
    }
    if (field != NULL && field->default_value.data != NULL)
        TARN_TRY(tarn_status_wrap(tarn_format__check_default(to, field->default_value, d->arena),
                                  "column %s keeps its default", full(d, c)));
    *slot = thaw(to, d->arena);
    return TARN_OK;
}

static struct tarn_status *change_nullability(struct tarn_format__draft *d,
                                              const struct tarn_schema_change *c)
{
    const struct tarn_type **slot;
    const struct tarn_field *field;
    if (c->nullable)
        TARN_TRY(check_no_primary_key(d, c));
    TARN_TRY(find_type(d, c, &slot, &field));
    TARN_TRY(check_nullability(d, c, (*slot)->nullable, c->nullable));
    ((struct tarn_type *)*slot)->nullable = c->nullable;
    return TARN_OK;
}

static struct tarn_status *change_default(struct tarn_format__draft *d,
                                          const struct tarn_schema_change *c)
{
    struct tarn_type *row;
    size_t at;
    TARN_TRY(find_in_row(d, c, &row, &at));
    if (c->value.data != NULL)
        TARN_TRY(
            tarn_status_wrap(tarn_format__check_default(row->fields[at].type, c->value, d->arena),
                             "default of column %s", full(d, c)));
    fields_of(row)[at].default_value = c->value;
    return TARN_OK;
}

static struct tarn_status *change_comment(struct tarn_format__draft *d,
                                          const struct tarn_schema_change *c)
{
    struct tarn_type *row;
    size_t at;
    TARN_TRY(find_in_row(d, c, &row, &at));
    if (tarn_format__is_directive(c->value))
        return refused(full(d, c), "is there already: its type isn't changed by its comment");
    fields_of(row)[at].description = c->value;
    return TARN_OK;
}

static struct tarn_status *change_position(struct tarn_format__draft *d,
                                           const struct tarn_schema_change *c)
{
    struct tarn_type *row;
    size_t from, to;
    TARN_TRY(find_in_row(d, c, &row, &from));
    if (c->move == TARN_MOVE_NONE)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "column %s is to be moved nowhere: say first, last, "
                               "before or after which column",
                               full(d, c));
    TARN_TRY(place_of(d, c, row, &to));
    bool relative = c->move == TARN_MOVE_BEFORE || c->move == TARN_MOVE_AFTER;
    bool itself = relative ? tarn_slice_equal(c->reference, c->path[c->path_count - 1])
                           : from == (c->move == TARN_MOVE_FIRST ? 0 : row->field_count - 1);
    if (itself)
        return refused(full(d, c), "is where it is to be moved to");
    struct tarn_field field = row->fields[from];
    remove_field(row, from);
    insert_field(row, to - (to > from), field, d->arena);
    return TARN_OK;
}

static struct tarn_status *drop_primary_key(struct tarn_format__draft *d)
{
    if (d->has_snapshot)
        return tarn_status_new(
            TARN_SCHEMA_INVALID,
            "the primary key of a table with snapshots can't be dropped: make a new table");
    d->primary_key_count = 0;
    return TARN_OK;
}

/* ---- all of them */

static struct tarn_status *check_text(const char *what, struct tarn_slice text)
{
    if (tarn_utf8_valid(text) && (text.size == 0 || memchr(text.data, 0, text.size) == NULL))
        return TARN_OK;
    return tarn_status_new(TARN_INVALID_ARGUMENT, "a change's %s is no UTF-8 text", what);
}

/* Has the change what its kind needs? */
static struct tarn_status *check_change(const struct tarn_schema_change *c)
{
    bool typed = c->kind == TARN_CHANGE_ADD_COLUMN || c->kind == TARN_CHANGE_COLUMN_TYPE;
    bool of_column = c->kind >= TARN_CHANGE_ADD_COLUMN && c->kind <= TARN_CHANGE_COLUMN_POSITION;
    if (of_column && c->path_count == 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a change names no column");
    if (typed && c->type == NULL)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a change of a column's type has no type");
    for (size_t i = 0; of_column && i < c->path_count; i++)
        TARN_TRY(check_text("column", c->path[i]));
    TARN_TRY(check_text("option", c->key));
    TARN_TRY(check_text("value", c->value));
    return check_text("reference column", c->reference);
}

static struct tarn_status *apply(struct tarn_format__draft *d, const struct tarn_schema_change *c)
{
    TARN_TRY(check_change(c));
    switch (c->kind) {
    case TARN_CHANGE_SET_OPTION:
        return tarn_format__change_option(d, c->key,
                                          c->value.data == NULL ? tarn_slice_str("") : c->value);
    case TARN_CHANGE_REMOVE_OPTION:
        return tarn_format__change_option(d, c->key, (struct tarn_slice){0});
    case TARN_CHANGE_COMMENT:
        d->comment = c->value;
        return TARN_OK;
    case TARN_CHANGE_ADD_COLUMN:
        return add_column(d, c);
    case TARN_CHANGE_RENAME_COLUMN:
        return rename_column(d, c);
    case TARN_CHANGE_DROP_COLUMN:
        return drop_column(d, c);
    case TARN_CHANGE_COLUMN_TYPE:
        return change_type(d, c);
    case TARN_CHANGE_COLUMN_NULLABILITY:
        return change_nullability(d, c);
    case TARN_CHANGE_COLUMN_COMMENT:
        return change_comment(d, c);
    case TARN_CHANGE_COLUMN_DEFAULT:
        return change_default(d, c);
    case TARN_CHANGE_COLUMN_POSITION:
        return change_position(d, c);
    case TARN_CHANGE_DROP_PRIMARY_KEY:
        return drop_primary_key(d);
    case TARN_CHANGE_NONE:
        break;
    }
    return tarn_status_new(TARN_INVALID_ARGUMENT, "a schema change of kind %d", (int)c->kind);
}

static struct tarn_format__draft draft_of(const struct tarn_schema *s, size_t change_count,
                                          bool has_snapshot, struct tarn_arena *arena)
{
    struct tarn_format__draft d = {
        .old = s,
        .has_snapshot = has_snapshot,
        .arena = arena,
        .root = {.id = TARN_TYPE_ROW,
                 .fields = thaw_fields(s->fields, s->field_count, arena),
                 .field_count = s->field_count},
        .highest_id = s->highest_field_id,
        .comment = s->comment,
        .primary_keys = tarn_arena_calloc(arena, s->primary_key_count + 1, sizeof *d.primary_keys),
        .primary_key_count = s->primary_key_count,
        .options = tarn_arena_calloc(arena, s->option_count + change_count + 1, sizeof *d.options),
        .option_count = s->option_count,
    };
    for (size_t i = 0; i < s->primary_key_count; i++)
        d.primary_keys[i] = s->primary_keys[i];
    for (size_t i = 0; i < s->option_count; i++)
        d.options[i] = s->options[i];
    return d;
}

struct tarn_status *tarn_schema_evolve(const struct tarn_schema *schema,
                                       const struct tarn_schema_change *changes, size_t count,
                                       bool has_snapshot, int64_t time_ms, struct tarn_arena *arena,
                                       struct tarn_schema *out)
{
    struct tarn_format__draft d = draft_of(schema, count, has_snapshot, arena);
    for (size_t i = 0; i < count; i++)
        TARN_TRY(apply(&d, &changes[i]));
    struct tarn_schema next = *schema;
    next.id = schema->id + 1;
    next.time_ms = time_ms;
    next.fields = d.root.fields;
    next.field_count = d.root.field_count;
    next.highest_field_id = (int32_t)d.highest_id;
    next.primary_keys = d.primary_keys;
    next.primary_key_count = d.primary_key_count;
    next.options = d.options;
    next.option_count = d.option_count;
    next.comment = d.comment;
    TARN_TRY(tarn_format__settle_schema(&next, arena));
    *out = next;
    return TARN_OK;
}
