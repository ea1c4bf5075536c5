#include "catalog/internal.h"

/* Tables of Paimon's that have an entry: in folders by uuid, or outside of the warehouse. */

bool tarn_catalog_is_external(const struct tarn_catalog *catalog, const struct tarn_table *table)
{
    return tarn_table_store(table) != catalog->env->store;
}

static struct tarn_status *entry_only(struct tarn_op *op, const struct tarn_catalog_entry *entry)
{
    struct tarn_slice type = tarn_schema_option(&entry->schema, "type");
    return tarn_status_new(TARN_ENTRY_ONLY, "table %s is of type %.*s",
                           tarn_catalog__full_name(op, entry->database, entry->name),
                           TARN_SLICE_ARG(type));
}

/* Of a location that is allowed: the environment of its tables, and its key there. */
static struct tarn_status *find_outside(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice location,
                                        const struct tarn_table_env **env, const char **key,
                                        const char **clean)
{
    struct tarn_catalog__outside *outside;
    TARN_TRY(tarn_catalog__check_location(op, catalog, location, clean, &outside));
    TARN_TRY(tarn_catalog__open_outside(op, catalog, outside));
    *env = &outside->env;
    *key = *clean + strlen(outside->uri) + 1;
    return TARN_OK;
}

struct tarn_status *tarn_catalog__open_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                             const struct tarn_catalog_entry *entry,
                                             struct tarn_table **out)
{
    const struct tarn_table_env *env = catalog->env;
    const char *path, *clean, *name = tarn_catalog__full_name(op, entry->database, entry->name);
    if (entry->has_schema) {
        tarn_catalog__know_entry(catalog, entry);
        return entry_only(op, entry);
    }
    if (tarn_catalog__uuid_is_taken(catalog, entry->uuid)) /* a rename was cut off: one is enough */
        return TARN_OK;
    if (entry->folder.data != NULL)
        path = tarn_arena_str(op->arena, entry->folder);
    else
        TARN_TRY(find_outside(op, catalog, entry->location, &env, &path, &clean));
    TARN_TRY(tarn_table_open(op, env, path, entry->uuid, name, out));
    tarn_table_set_names(*out, entry->database, entry->name);
    tarn_table_set_compacted(*out, entry->is_compacted);
    tarn_catalog__remember(catalog, entry->database, entry->name, *out);
    return TARN_OK;
}

/* --- making external ones --- */

static bool same_columns(const struct tarn_schema *a, const struct tarn_schema *b)
{
    bool same = a->field_count == b->field_count;
    for (size_t i = 0; same && i < a->field_count; i++)
        same = tarn_slice_equal(a->fields[i].name, b->fields[i].name) &&
               tarn_type_equal(a->fields[i].type, b->fields[i].type, false);
    return same &&
           tarn_slices_equal(a->partition_keys, a->partition_key_count, b->partition_keys,
                             b->partition_key_count) &&
           tarn_slices_equal(a->primary_keys, a->primary_key_count, b->primary_keys,
                             b->primary_key_count);
}

/* The first schema of a table that isn't there yet; of one that is, its columns and keys are the ones that were asked for. */
static struct tarn_status *settle_schema(struct tarn_op *op, const struct tarn_table_env *env,
                                         const char *path, const struct tarn_schema *schema)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    bool there, created;
    TARN_TRY(tarn_catalog__is_table(op, env->store, path, &there));
    if (there)
        return TARN_OK;
    tarn_schema_encode(schema, &json);
    return tarn_store_put_if_absent(env->store, op,
                                    tarn_arena_printf(op->arena, "%s/schema/schema-0", path),
                                    tarn_buf_slice(&json), &created);
}

static struct tarn_status *check_columns(struct tarn_op *op, struct tarn_table *table,
                                         const struct tarn_schema *schema)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_table_look(op, table, &view));
    return same_columns(&view->schema, schema)
               ? TARN_OK
               : tarn_status_new(TARN_SCHEMA_INVALID,
                                 "at %s/%s is a table already, with other columns or keys",
                                 tarn_store_uri(tarn_table_store(table)), tarn_table_path(table));
}

static struct tarn_status *make_external(struct tarn_op *op, struct tarn_catalog *catalog,
                                         struct tarn_catalog_entry *entry,
                                         const struct tarn_schema *schema, struct tarn_table **out)
{
    const struct tarn_table_env *env;
    const char *path, *clean;
    TARN_TRY(tarn_catalog__check_new(op, catalog, entry->database, entry->name));
    TARN_TRY(tarn_catalog__check_free(op, catalog, entry->database, entry->name));
    TARN_TRY(find_outside(op, catalog, entry->location, &env, &path, &clean));
    entry->location = tarn_slice_str(clean);
    TARN_TRY(settle_schema(op, env, path, schema));
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_table_open(op, env, path, entry->uuid,
                             tarn_catalog__full_name(op, entry->database, entry->name), &table));
    tarn_table_set_names(table, entry->database, entry->name);
    struct tarn_status *s = check_columns(op, table, schema);
    if (s == TARN_OK)
        s = tarn_catalog__put_entry(op, catalog, entry);
    if (s != TARN_OK) { /* nothing is kept of it */
        tarn_log_status(op, TARN_WARN, "catalog.table_left", tarn_table_retire(op, table, true));
        return s;
    }
    tarn_catalog__remember(catalog, entry->database, entry->name, table);
    *out = tarn_move(table);
    return TARN_OK;
}

struct tarn_status *tarn_catalog_create_external(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_slice database, struct tarn_slice name,
                                                 const struct tarn_schema *draft,
                                                 struct tarn_slice location,
                                                 struct tarn_table **out)
{
    struct tarn_schema schema;
    struct tarn_options options;
    struct tarn_catalog_entry entry;
    TARN_TRY(tarn_schema_create(draft, tarn_clock_wall_ms(), op->arena, &schema));
    TARN_TRY(tarn_options_parse(&schema, op->arena, &options));
    tarn_catalog__begin_entry(database, name, &entry);
    entry.location = location;
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = make_external(op, catalog, &entry, &schema, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}
