#include "catalog/internal.h"

/* The warehouse's tables: finding and adopting them. */

/* --- the tables known by now --- */

static void name_key(struct tarn_slice database, struct tarn_slice name, struct tarn_buf *key)
{
    tarn_buf_add_slice(key, database);
    tarn_buf_add_byte(key, 0); /* no name holds it */
    tarn_buf_add_slice(key, name);
}

void tarn_catalog__changed(struct tarn_catalog *catalog)
{
    if (catalog->env->catalog_changed != NULL)
        catalog->env->catalog_changed(catalog->env->catalog_changed_arg);
}

struct tarn_table *tarn_catalog__known(struct tarn_catalog *catalog, struct tarn_slice database,
                                       struct tarn_slice name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    name_key(database, name, &key);
    pthread_mutex_lock(&catalog->lock);
    struct tarn_table *table = tarn_map_find(catalog->by_name, tarn_buf_slice(&key));
    if (table != NULL)
        tarn_table_ref(table);
    pthread_mutex_unlock(&catalog->lock);
    return table;
}

void tarn_catalog__remember(struct tarn_catalog *catalog, struct tarn_slice database,
                            struct tarn_slice name, struct tarn_table *table)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    name_key(database, name, &key);
    pthread_mutex_lock(&catalog->lock);
    struct tarn_table *old =
        tarn_map_set(catalog->by_name, tarn_buf_slice(&key), tarn_table_ref(table));
    tarn_map_set(catalog->by_uuid, tarn_slice_str(tarn_table_uuid(table)), table);
    tarn_metric_set(TARN_M_TABLES, NULL, (double)tarn_map_count(catalog->by_name));
    pthread_mutex_unlock(&catalog->lock);
    tarn_table_unref(old);
    tarn_catalog__changed(catalog);
}

void tarn_catalog__forget(struct tarn_catalog *catalog, struct tarn_slice database,
                          struct tarn_slice name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    name_key(database, name, &key);
    pthread_mutex_lock(&catalog->lock);
    struct tarn_table *table = tarn_map_remove(catalog->by_name, tarn_buf_slice(&key));
    if (table != NULL &&
        tarn_map_find(catalog->by_uuid, tarn_slice_str(tarn_table_uuid(table))) == table)
        tarn_map_remove(catalog->by_uuid, tarn_slice_str(tarn_table_uuid(table)));
    tarn_metric_set(TARN_M_TABLES, NULL, (double)tarn_map_count(catalog->by_name));
    pthread_mutex_unlock(&catalog->lock);
    tarn_table_unref(table);
    tarn_catalog__changed(catalog);
}

void tarn_catalog__take_new_name(struct tarn_op *op, struct tarn_catalog *catalog,
                                 struct tarn_table *table, struct tarn_slice to_database,
                                 struct tarn_slice to_name)
{
    struct tarn_slice database, name;
    tarn_table_names(op, table, &database, &name);
    tarn_table_set_names(table, to_database, to_name);
    tarn_catalog__remember(catalog, to_database, to_name, table);
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    name_key(database, name, &key);
    pthread_mutex_lock(&catalog->lock); /* the old name alone: the uuid stays known */
    tarn_table_unref(tarn_map_remove(catalog->by_name, tarn_buf_slice(&key)));
    pthread_mutex_unlock(&catalog->lock);
}

void tarn_catalog__known_branches(struct tarn_op *op, struct tarn_catalog *catalog,
                                  struct tarn_slice database, struct tarn_slice name,
                                  struct tarn_slice **out, size_t *count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf prefix = {0};
    size_t cursor = 0;
    struct tarn_slice key;
    void *table;
    name_key(database, name, &prefix);
    tarn_buf_add_byte(&prefix, '$');
    pthread_mutex_lock(&catalog->lock);
    *out = tarn_arena_calloc(op->arena, tarn_map_count(catalog->by_name) + 1, sizeof **out);
    *count = 0;
    while (tarn_map_next(catalog->by_name, &cursor, &key, &table))
        if (tarn_slice_starts_with(key, tarn_buf_slice(&prefix)))
            (*out)[(*count)++] =
                tarn_arena_copy(op->arena, tarn_slice_of(key.data + database.size + 1,
                                                         key.size - database.size - 1));
    pthread_mutex_unlock(&catalog->lock);
}

bool tarn_catalog__uuid_is_taken(struct tarn_catalog *catalog, const char *uuid)
{
    pthread_mutex_lock(&catalog->lock);
    bool taken = tarn_map_find(catalog->by_uuid, tarn_slice_str(uuid)) != NULL;
    pthread_mutex_unlock(&catalog->lock);
    return taken;
}

const char *tarn_catalog__full_name(struct tarn_op *op, struct tarn_slice database,
                                    struct tarn_slice name)
{
    return tarn_arena_printf(op->arena, "%.*s.%.*s", TARN_SLICE_ARG(database),
                             TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_catalog__is_table(struct tarn_op *op, struct tarn_store *store,
                                           const char *path, bool *out)
{
    struct tarn_object *objects;
    size_t count;
    const char *folder = tarn_arena_printf(op->arena, "%s/schema", path);
    TARN_TRY(tarn_store_list(store, op, folder, false, &objects, &count));
    *out = false;
    for (size_t i = 0; i < count; i++) {
        struct tarn_slice rest = tarn_slice_of(objects[i].key.data + strlen(folder),
                                               objects[i].key.size - strlen(folder));
        *out |= !objects[i].is_folder && tarn_slice_starts_with(rest, tarn_slice_str("/schema-"));
    }
    return TARN_OK;
}

struct tarn_status *tarn_catalog__adopt_folder(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_slice database, struct tarn_slice name,
                                               struct tarn_table **out)
{
    const char *path = tarn_catalog__table_key(op, database, name);
    const char *full_name = tarn_catalog__full_name(op, database, name);
    bool there;
    TARN_TRY(tarn_catalog__is_table(op, catalog->env->store, path, &there));
    if (!there)
        return TARN_OK;
    struct tarn_identity_file identity;
    TARN_TRY(tarn_catalog__settle_identity(op, catalog, path, full_name, &identity));
    TARN_TRY(tarn_table_open(op, catalog->env, path, identity.uuid, full_name, out));
    tarn_table_set_names(*out, database, name);
    tarn_table_set_compacted(*out, identity.is_compacted);
    tarn_catalog__remember(catalog, database, name, *out);
    return TARN_OK;
}

struct tarn_status *tarn_catalog__adopt(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice database, struct tarn_slice name,
                                        struct tarn_table **out)
{
    struct tarn_catalog_entry entry;
    bool found;
    *out = tarn_catalog__known(catalog, database, name);
    if (*out != NULL)
        return TARN_OK;
    TARN_TRY(tarn_catalog__live_entry(op, catalog, database, name, &found, &entry));
    return found ? tarn_catalog__open_entry(op, catalog, &entry, out)
                 : tarn_catalog__adopt_folder(op, catalog, database, name, out);
}

/* --- opening --- */

static struct tarn_status *adopt_all(struct tarn_op *op, struct tarn_catalog *catalog)
{
    struct tarn_database_info *databases;
    size_t database_count;
    TARN_TRY(tarn_database_list(op, catalog, &databases, &database_count));
    for (size_t d = 0; d < database_count; d++) {
        struct tarn_table_info *tables;
        size_t count;
        /* Adopts. A folder that can't be looked into costs its own tables, never the others. */
        struct tarn_status *s =
            tarn_catalog_tables(op, catalog, databases[d].name, &tables, &count);
        if (s != TARN_OK)
            s = tarn_status_wrap(s, "database %.*s", TARN_SLICE_ARG(databases[d].name));
        tarn_log_status(op, TARN_WARN, "catalog.database_unreadable", s);
    }
    return TARN_OK;
}

static struct tarn_status *open_warehouse(struct tarn_op *op, struct tarn_catalog *catalog)
{
    TARN_TRY(tarn_catalog__take_warehouse(op, catalog));
    TARN_TRY(tarn_store_finish_moves(catalog->env->store, op, false));
    TARN_TRY(tarn_catalog__finish_drops(op, catalog));
    return adopt_all(op, catalog);
}

struct tarn_status *tarn_catalog_open_with(struct tarn_op *op, const struct tarn_table_env *env,
                                           const char *warehouse_name, const char *data_dir,
                                           const struct tarn_catalog_options *options,
                                           struct tarn_catalog **out)
{
    struct tarn_catalog *catalog = tarn_calloc(1, sizeof *catalog);
    catalog->env = env;
    catalog->warehouse_name = tarn_strdup(warehouse_name);
    catalog->data_dir = tarn_strdup(data_dir);
    catalog->folders_by_uuid = options->folders_by_uuid;
    pthread_mutex_init(&catalog->change, NULL);
    pthread_mutex_init(&catalog->lock, NULL);
    catalog->by_name = tarn_map_new();
    catalog->by_uuid = tarn_map_new();
    catalog->entries = tarn_map_new();
    struct tarn_status *s = tarn_catalog__take_external_paths(op, catalog, options->external_paths);
    if (s == TARN_OK)
        s = open_warehouse(op, catalog);
    if (s != TARN_OK) {
        tarn_catalog_close(catalog);
        return s;
    }
    *out = catalog;
    return TARN_OK;
}

struct tarn_status *tarn_catalog_open(struct tarn_op *op, const struct tarn_table_env *env,
                                      const char *warehouse_name, const char *data_dir,
                                      struct tarn_catalog **out)
{
    struct tarn_catalog_options options = {0};
    return tarn_catalog_open_with(op, env, warehouse_name, data_dir, &options, out);
}

static void free_maps(struct tarn_catalog *catalog)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(catalog->by_name, &cursor, &key, &value))
        tarn_table_unref(value);
    cursor = 0;
    while (tarn_map_next(catalog->entries, &cursor, &key, &value))
        free(value);
    tarn_map_free(catalog->by_name);
    tarn_map_free(catalog->by_uuid);
    tarn_map_free(catalog->entries);
}

void tarn_catalog_close(struct tarn_catalog *catalog)
{
    if (catalog == NULL)
        return;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    tarn_catalog__give_warehouse_back(&op, catalog);
    free_maps(catalog);
    for (size_t i = 0; i < catalog->outside_count; i++) {
        tarn_store_unref(catalog->outside[i].env.store);
        free(catalog->outside[i].uri);
    }
    free(catalog->outside);
    tarn_arena_free(catalog->database_arena);
    pthread_mutex_destroy(&catalog->change);
    pthread_mutex_destroy(&catalog->lock);
    free(catalog->warehouse_name);
    free(catalog->data_dir);
    free(catalog);
}

/* --- finding --- */

const struct tarn_table_env *tarn_catalog_env(const struct tarn_catalog *catalog)
{
    return catalog->env;
}

static struct tarn_status *table_not_found(struct tarn_slice database, struct tarn_slice name)
{
    return tarn_status_new(TARN_TABLE_NOT_FOUND, "there is no table %.*s.%.*s",
                           TARN_SLICE_ARG(database), TARN_SLICE_ARG(name));
}

/* Others may have removed or replaced a table that is known: its identity file tells; of an external one, where nothing of ours lies,
 * its entry. */
struct tarn_status *tarn_catalog__still_here(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_table *table, bool *out)
{
    struct tarn_slice database, name, branch;
    struct tarn_catalog_entry entry;
    struct tarn_identity_file identity;
    const char *uuid = identity.uuid;
    if (tarn_catalog_is_external(catalog, table)) {
        tarn_table_names(op, table, &database, &name);
        tarn_catalog_split_branch(name, &name, &branch);
        TARN_TRY(tarn_catalog__read_entry(op, catalog, database, name, out, &entry));
        uuid = entry.uuid;
    } else {
        TARN_TRY(tarn_catalog__read_identity(op, catalog, tarn_table_path(table), out, &identity));
    }
    *out = *out && strcmp(uuid, tarn_table_main_uuid(table)) == 0;
    return TARN_OK;
}

/* The known table of that name: in *out where it is still here, in *gone where it isn't; both NULL: none is known. */
static struct tarn_status *find_known(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_slice database, struct tarn_slice name,
                                      struct tarn_table **out, struct tarn_table **gone)
{
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *table = tarn_catalog__known(catalog, database, name);
    bool here = false;
    if (table != NULL)
        TARN_TRY(tarn_catalog__still_here(op, catalog, table, &here));
    *(here ? out : gone) = tarn_move(table);
    return TARN_OK;
}

/* Nobody creates, drops or moves meanwhile: `change` is held. */
struct tarn_status *tarn_catalog__find_again(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_slice database, struct tarn_slice name,
                                             struct tarn_table **out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *gone = NULL;
    TARN_TRY(find_known(op, catalog, database, name, out, &gone));
    if (gone != NULL) {
        tarn_log(op, TARN_WARN, "catalog.table_vanished", "table=%s uuid=%s",
                 tarn_log_quote(op, tarn_table_name(gone)), tarn_table_uuid(gone));
        TARN_TRY(tarn_catalog__close_branches(op, catalog, gone, true));
        tarn_catalog__forget(catalog, database, name);
        TARN_TRY(tarn_table_retire(op, gone, true));
    }
    return *out != NULL ? TARN_OK : tarn_catalog__adopt(op, catalog, database, name, out);
}

static struct tarn_status *find_or_adopt(struct tarn_op *op, struct tarn_catalog *catalog,
                                         struct tarn_slice database, struct tarn_slice name,
                                         struct tarn_table **out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *gone = NULL;
    *out = NULL;
    TARN_TRY(find_known(op, catalog, database, name, out, &gone));
    if (*out != NULL)
        return TARN_OK;
    /* Not known, or gone from its place: which of these is told where no rename is half done. */
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = tarn_catalog__find_again(op, catalog, database, name, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *find_main(struct tarn_op *op, struct tarn_catalog *catalog,
                                     struct tarn_slice database, struct tarn_slice name,
                                     struct tarn_table **out)
{
    TARN_TRY(tarn_catalog__check_name("database", database));
    TARN_TRY(tarn_catalog__check_name("table", name));
    TARN_TRY(find_or_adopt(op, catalog, database, name, out));
    if (*out != NULL)
        return TARN_OK;
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, database, &found));
    return found ? table_not_found(database, name) : tarn_catalog__no_database(database);
}

struct tarn_status *tarn_catalog_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_slice database, struct tarn_slice name,
                                       struct tarn_slice uuid, struct tarn_table **out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *main = NULL;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    struct tarn_slice branch;
    tarn_catalog_split_branch(name, &name, &branch);
    TARN_TRY(find_main(op, catalog, database, name, &main));
    if (branch.size > 0)
        TARN_TRY(tarn_catalog__branch(op, catalog, main, branch, &table));
    else
        table = tarn_move(main);
    if (uuid.size > 0 && !tarn_slice_is(uuid, tarn_table_uuid(table)) &&
        !tarn_slice_is(uuid, tarn_table_main_uuid(table)))
        return tarn_status_new(TARN_TABLE_REPLACED, "table %s has uuid %s, not %.*s",
                               tarn_table_name(table), tarn_table_uuid(table),
                               TARN_SLICE_ARG(uuid));
    *out = tarn_move(table);
    return TARN_OK;
}

bool tarn_catalog_has_table(struct tarn_catalog *catalog, struct tarn_slice uuid)
{
    pthread_mutex_lock(&catalog->lock);
    bool has = tarn_map_find(catalog->by_uuid, uuid) != NULL;
    pthread_mutex_unlock(&catalog->lock);
    return has;
}

struct tarn_status *tarn_catalog_table_by_uuid(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_slice uuid, struct tarn_table **out)
{
    pthread_mutex_lock(&catalog->lock);
    struct tarn_table *table = tarn_map_find(catalog->by_uuid, uuid);
    if (table != NULL)
        tarn_table_ref(table);
    pthread_mutex_unlock(&catalog->lock);
    struct tarn_slice database, name;
    if (table == NULL && tarn_catalog_find_entry_names(op, catalog, uuid, &database, &name))
        return tarn_status_new(TARN_ENTRY_ONLY, "table %.*s is no table of Paimon's",
                               TARN_SLICE_ARG(uuid));
    if (table == NULL)
        return tarn_status_new(TARN_TABLE_NOT_FOUND, "there is no table with uuid %.*s",
                               TARN_SLICE_ARG(uuid));
    *out = table;
    return TARN_OK;
}

struct tarn_status *tarn_catalog_check_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_table *table)
{
    bool here;
    TARN_TRY(tarn_catalog__still_here(op, catalog, table, &here));
    if (here)
        return TARN_OK;
    tarn_exec_lock(&catalog->change); /* a rename may have been half done */
    struct tarn_status *s = tarn_catalog__still_here(op, catalog, table, &here);
    pthread_mutex_unlock(&catalog->change);
    if (s != TARN_OK || here)
        return s;
    return tarn_status_new(TARN_TABLE_NOT_FOUND, "table %s (%s) is no longer there",
                           tarn_table_name(table), tarn_table_uuid(table));
}
