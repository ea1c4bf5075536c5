#include "catalog/internal.h"

/* Changing a schema: every change makes a new schema file with id + 1 (docs/format.md, "Schema evolution"). */

struct draft {
    struct tarn_op *op;
    struct tarn_table *table;
    const struct tarn_table_view *view;
    struct tarn_schema schema;
    struct tarn_field *fields; /* with room for more */
    struct tarn_pair *options;
};

static bool in(const struct tarn_slice *list, size_t count, struct tarn_slice name)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(list[i], name))
            return true;
    return false;
}

static struct tarn_status *refuse(const struct draft *d, const char *what, struct tarn_slice name,
                                  const char *why)
{
    return tarn_status_new(TARN_SCHEMA_INVALID, "table %s: %s %.*s %s", tarn_table_name(d->table),
                           what, TARN_SLICE_ARG(name), why);
}

static struct tarn_status *find_column(const struct draft *d, struct tarn_slice name, int *out)
{
    *out = tarn_schema_find(&d->schema, name);
    if (*out >= 0)
        return TARN_OK;
    return tarn_status_new(TARN_COLUMN_NOT_FOUND, "table %s has no column %.*s",
                           tarn_table_name(d->table), TARN_SLICE_ARG(name));
}

/* Options that decide what is in the files: frozen once there is a snapshot. */
static const char *const frozen_options[] = {
    "type",
    "bucket-key",
    "bucket-function.type",
    "data-file.path-directory",
    "merge-engine",
    "sequence.snapshot-ordering",
    "aggregation.remove-record-on-delete",
    "partial-update.remove-record-on-delete",
    "partial-update.remove-record-on-sequence-group",
    "rowkind.field",
    "primary-key",
    "primary-key.nullable",
    "partition",
    "dynamic-bucket.initial-buckets",
    "force-lookup",
    "row-tracking.enabled",
    "data-evolution.enabled",
    "index-file-in-data-file-dir",
    "blob-field",
    "blob-descriptor-field",
    "blob-view-field",
    "pk-clustering-override",
};

static struct tarn_status *check_option(const struct draft *d, struct tarn_slice key,
                                        struct tarn_slice value, bool removed)
{
    if (tarn_slice_is(key, "path"))
        return refuse(d, "option", key, "can't be changed");
    if (!d->view->has_snapshot)
        return TARN_OK;
    for (size_t i = 0; i < TARN_COUNT_OF(frozen_options); i++)
        if (tarn_slice_is(key, frozen_options[i]) &&
            (removed ||
             !tarn_slice_equal(tarn_schema_option(&d->schema, frozen_options[i]), value)))
            return refuse(d, "option", key, "can't be changed once the table has a snapshot");
    struct tarn_slice now = tarn_schema_option(&d->schema, "bucket");
    if (tarn_slice_is(key, "bucket")) {
        bool was_unaware = now.data == NULL || tarn_slice_is(now, "-1");
        if (removed)
            return refuse(d, "option", key, "can't be reset once the table has a snapshot");
        if (was_unaware != tarn_slice_is(value, "-1"))
            return refuse(d, "option", key,
                          "can't change from or to -1 once the table has a snapshot");
    }
    if (tarn_slice_is(key, "deletion-vectors.enabled") &&
        !tarn_slice_is(tarn_schema_option(&d->schema, "deletion-vectors.modifiable"), "true"))
        return refuse(d, "option", key,
                      "can only be changed with deletion-vectors.modifiable = true");
    if ((tarn_slice_is(key, "ignore-delete") || tarn_slice_is(key, "ignore-update-before")) &&
        tarn_slice_is(tarn_schema_option(&d->schema, tarn_arena_str(d->op->arena, key)), "true") &&
        (removed || !tarn_slice_is(value, "true")))
        return refuse(d, "option", key, "can't go from true to false");
    return TARN_OK;
}

static struct tarn_status *change_option(struct draft *d, struct tarn_slice key,
                                         struct tarn_slice value, bool removed)
{
    TARN_TRY(check_option(d, key, value, removed));
    size_t kept = 0;
    for (size_t i = 0; i < d->schema.option_count; i++)
        if (!tarn_slice_equal(d->options[i].key, key))
            d->options[kept++] = d->options[i];
    if (!removed)
        d->options[kept++] = (struct tarn_pair){key, value};
    d->schema.option_count = kept;
    return TARN_OK;
}

/* The next free field ids, depth-first as at creation. */
static const struct tarn_type *assign_ids(struct draft *d, const struct tarn_type *type)
{
    struct tarn_type *copy = tarn_arena_alloc(d->op->arena, sizeof *copy);
    *copy = *type;
    if (type->key != NULL)
        copy->key = assign_ids(d, type->key);
    if (type->element != NULL)
        copy->element = assign_ids(d, type->element);
    if (type->field_count > 0) {
        struct tarn_field *fields =
            tarn_arena_calloc(d->op->arena, type->field_count, sizeof *fields);
        for (size_t i = 0; i < type->field_count; i++) {
            fields[i] = type->fields[i];
            fields[i].id = ++d->schema.highest_field_id;
            fields[i].type = assign_ids(d, type->fields[i].type);
        }
        copy->fields = fields;
    }
    return copy;
}

static struct tarn_status *add_column(struct draft *d, const struct tarn_schema_change *c)
{
    if (tarn_schema_find(&d->schema, c->field.name) >= 0)
        return refuse(d, "column", c->field.name, "exists");
    if (!c->field.type->nullable)
        return refuse(d, "column", c->field.name,
                      "must be nullable: the rows that are there have no value for it");
    size_t at = d->schema.field_count;
    if (c->first)
        at = 0;
    if (c->after.size > 0) {
        int after;
        TARN_TRY(find_column(d, c->after, &after));
        at = (size_t)after + 1;
    }
    struct tarn_field field = c->field;
    field.id = ++d->schema.highest_field_id;
    field.type = assign_ids(d, c->field.type);
    memmove(d->fields + at + 1, d->fields + at, (d->schema.field_count - at) * sizeof *d->fields);
    d->fields[at] = field;
    d->schema.field_count++;
    return TARN_OK;
}

static struct tarn_status *drop_column(struct draft *d, struct tarn_slice name)
{
    int at;
    TARN_TRY(find_column(d, name, &at));
    if (in(d->schema.partition_keys, d->schema.partition_key_count, name) ||
        in(d->schema.primary_keys, d->schema.primary_key_count, name))
        return refuse(d, "column", name, "is a key");
    if (d->schema.field_count == 1)
        return refuse(d, "column", name, "is the last one");
    memmove(d->fields + at, d->fields + at + 1,
            (d->schema.field_count - (size_t)at - 1) * sizeof *d->fields);
    d->schema.field_count--;
    return TARN_OK;
}

static struct tarn_status *rename_column(struct draft *d, struct tarn_slice from,
                                         struct tarn_slice to)
{
    int at;
    TARN_TRY(find_column(d, from, &at));
    if (tarn_schema_find(&d->schema, to) >= 0)
        return refuse(d, "column", to, "exists");
    if (in(d->schema.partition_keys, d->schema.partition_key_count, from))
        return refuse(d, "column", from, "is a partition key");
    d->fields[at].name = to;
    struct tarn_slice *keys =
        tarn_arena_calloc(d->op->arena, d->schema.primary_key_count + 1, sizeof *keys);
    for (size_t i = 0; i < d->schema.primary_key_count; i++)
        keys[i] =
            tarn_slice_equal(d->schema.primary_keys[i], from) ? to : d->schema.primary_keys[i];
    d->schema.primary_keys = keys;
    for (size_t i = 0; i < d->schema.option_count; i++) {
        struct tarn_slice key = d->options[i].key;
        bool names_columns = tarn_slice_is(key, "bucket-key") ||
                             tarn_slice_is(key, "sequence.field") ||
                             tarn_slice_is(key, "rowkind.field") ||
                             tarn_slice_starts_with(key, tarn_slice_str("fields."));
        if (names_columns) /* rewriting these is the work of the schema change that brings all of them */
            return tarn_status_new(TARN_UNIMPLEMENTED,
                                   "table %s: option %.*s names columns; renaming beside it",
                                   tarn_table_name(d->table), TARN_SLICE_ARG(key));
    }
    return TARN_OK;
}

static struct tarn_status *alter_column(struct draft *d, const struct tarn_schema_change *c)
{
    int at;
    TARN_TRY(find_column(d, c->key, &at));
    if (c->field.type != NULL && !tarn_type_equal(c->field.type, d->fields[at].type, false))
        return tarn_status_new(TARN_UNIMPLEMENTED, "table %s: changing the type of column %.*s",
                               tarn_table_name(d->table), TARN_SLICE_ARG(c->key));
    if (c->field.description.data != NULL)
        d->fields[at].description = c->field.description;
    return TARN_OK;
}

static struct tarn_status *apply(struct draft *d, const struct tarn_schema_change *c)
{
    switch (c->kind) {
    case TARN_CHANGE_SET_OPTION:
        return change_option(d, c->key, c->value, false);
    case TARN_CHANGE_REMOVE_OPTION:
        return change_option(d, c->key, c->value, true);
    case TARN_CHANGE_COMMENT:
        d->schema.comment = c->value;
        return TARN_OK;
    case TARN_CHANGE_ADD_COLUMN:
        return add_column(d, c);
    case TARN_CHANGE_DROP_COLUMN:
        return drop_column(d, c->key);
    case TARN_CHANGE_RENAME_COLUMN:
        return rename_column(d, c->key, c->value);
    case TARN_CHANGE_ALTER_COLUMN:
        return alter_column(d, c);
    }
    return tarn_status_new(TARN_INVALID_ARGUMENT, "a schema change of kind %d", (int)c->kind);
}

static struct tarn_status *try_alter(struct tarn_op *op, struct tarn_table *table,
                                     const struct tarn_schema_change *changes, size_t count)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    struct draft d = {.op = op, .table = table, .view = view, .schema = view->schema};
    d.fields = tarn_arena_calloc(op->arena, view->schema.field_count + count + 1, sizeof *d.fields);
    d.options =
        tarn_arena_calloc(op->arena, view->schema.option_count + count + 1, sizeof *d.options);
    memcpy(d.fields, view->schema.fields, view->schema.field_count * sizeof *d.fields);
    if (view->schema.option_count > 0)
        memcpy(d.options, view->schema.options, view->schema.option_count * sizeof *d.options);
    d.schema.fields = d.fields;
    d.schema.options = d.options;
    for (size_t i = 0; i < count; i++)
        TARN_TRY(apply(&d, &changes[i]));
    d.schema.version = 3;
    d.schema.id = view->schema.id + 1;
    d.schema.time_ms = tarn_clock_wall_ms();
    /* The rules of a schema hold for what it becomes: options are parsed, columns they name must be there. */
    struct tarn_options options;
    TARN_TRY(tarn_options_parse(&d.schema, op->arena, &options));
    return tarn_table_put_schema(op, table, &d.schema);
}

struct tarn_status *tarn_catalog_alter_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_table *table,
                                             const struct tarn_schema_change *changes, size_t count)
{
    struct tarn_status *s = TARN_OK;
    for (int tries = 0; tries < 10; tries++) {
        s = try_alter(op, table, changes, count);
        if (tarn_status_reason(s) != TARN_SCHEMA_CONFLICT)
            return s;
        if (tries < 9)
            tarn_status_free(s); /* another change came first: apply ours to what it made */
    }
    return s;
}
