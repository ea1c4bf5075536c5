#include "catalog/internal.h"

/* The warehouse's tables: finding, adopting, creating, moving and dropping them. */

#define TRASH ".tarn/dropped"

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

static const char *full_name(struct tarn_op *op, struct tarn_slice database, struct tarn_slice name)
{
    return tarn_arena_printf(op->arena, "%.*s.%.*s", TARN_SLICE_ARG(database),
                             TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_catalog__is_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                           const char *path, bool *out)
{
    struct tarn_object *objects;
    size_t count;
    const char *folder = tarn_arena_printf(op->arena, "%s/schema", path);
    TARN_TRY(tarn_store_list(catalog->env->store, op, folder, false, &objects, &count));
    *out = false;
    for (size_t i = 0; i < count; i++) {
        struct tarn_slice rest = tarn_slice_of(objects[i].key.data + strlen(folder),
                                               objects[i].key.size - strlen(folder));
        *out |= !objects[i].is_folder && tarn_slice_starts_with(rest, tarn_slice_str("/schema-"));
    }
    return TARN_OK;
}

struct tarn_status *tarn_catalog__adopt(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice database, struct tarn_slice name,
                                        struct tarn_table **out)
{
    *out = tarn_catalog__known(catalog, database, name);
    if (*out != NULL)
        return TARN_OK;
    const char *path = tarn_catalog__table_key(op, database, name);
    bool there;
    TARN_TRY(tarn_catalog__is_table(op, catalog, path, &there));
    if (!there)
        return TARN_OK;
    struct tarn_identity_file identity;
    const char *full = full_name(op, database, name);
    TARN_TRY(tarn_catalog__settle_identity(op, catalog, path, full, &identity));
    TARN_TRY(tarn_table_open(op, catalog->env, path, identity.uuid, full, out));
    tarn_table_set_compacted(*out, identity.is_compacted);
    tarn_catalog__remember(catalog, database, name, *out);
    return TARN_OK;
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

static struct tarn_status *remove_objects(struct tarn_op *op, struct tarn_catalog *catalog,
                                          const struct tarn_object *objects, size_t count)
{
    const char **keys = tarn_arena_alloc(op->arena, (count + 1) * sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = tarn_arena_str(op->arena, objects[i].key);
    return tarn_store_remove_many(catalog->env->store, op, keys, count);
}

struct tarn_status *tarn_catalog__remove_below(struct tarn_op *op, struct tarn_catalog *catalog,
                                               const char *folder)
{
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(tarn_store_list(catalog->env->store, op, folder, true, &objects, &count));
    TARN_TRY(remove_objects(op, catalog, objects, count));
    return tarn_store_prune(catalog->env->store, op, folder);
}

/*
 * On a flat store a table can't leave its place in one step, and copying it away only to remove it would cost as much
 * as the table is large. There a note, TRASH/<uuid> with the folder's path, is put first; then the schemas
 * go, with which it ceases to be a table for everybody, then all else, the identity last. A start finishes
 * what a note names, if the folder's identity is still that one's.
 */
static int drop_rank(const struct tarn_object *object, size_t path_size)
{
    struct tarn_slice rest =
        tarn_slice_of(object->key.data + path_size, object->key.size - path_size);
    if (tarn_slice_starts_with(rest, tarn_slice_str("/schema/")))
        return 0;
    return tarn_slice_is(rest, "/" TARN_TABLE_FILE) ? 2 : 1;
}

static struct tarn_status *remove_in_place(struct tarn_op *op, struct tarn_catalog *catalog,
                                           const char *path, const char *note)
{
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(tarn_store_list(catalog->env->store, op, path, true, &objects, &count));
    struct tarn_object *some = tarn_arena_alloc(op->arena, (count + 1) * sizeof *some);
    for (int rank = 0; rank <= 2; rank++) {
        size_t n = 0;
        for (size_t i = 0; i < count; i++)
            if (drop_rank(&objects[i], strlen(path)) == rank)
                some[n++] = objects[i];
        TARN_TRY(remove_objects(op, catalog, some, n));
    }
    return tarn_store_remove(catalog->env->store, op, note);
}

static struct tarn_status *finish_drop(struct tarn_op *op, struct tarn_catalog *catalog,
                                       const char *note)
{
    bool found, same;
    struct tarn_identity_file identity;
    TARN_OWN(tarn_buf_drop) struct tarn_buf path = {0};
    TARN_TRY(tarn_store_find(catalog->env->store, op, note, &found, &path));
    if (!found)
        return TARN_OK;
    const char *folder = tarn_arena_str(op->arena, tarn_buf_slice(&path));
    TARN_TRY(tarn_catalog__read_identity(op, catalog, folder, &found, &identity));
    same = found && strcmp(identity.uuid, note + strlen(TRASH "/")) == 0;
    return same ? remove_in_place(op, catalog, folder, note)
                : tarn_store_remove(catalog->env->store, op, note);
}

static struct tarn_status *finish_drops(struct tarn_op *op, struct tarn_catalog *catalog)
{
    struct tarn_object *objects;
    size_t count;
    if (!tarn_store_is_flat(catalog->env->store)) /* what had left its place */
        return tarn_catalog__remove_below(op, catalog, TRASH);
    TARN_TRY(tarn_store_list(catalog->env->store, op, TRASH, false, &objects, &count));
    for (size_t i = 0; i < count; i++)
        if (!objects[i].is_folder)
            TARN_TRY(finish_drop(op, catalog, tarn_arena_str(op->arena, objects[i].key)));
    return TARN_OK;
}

struct tarn_status *tarn_catalog_open(struct tarn_op *op, const struct tarn_table_env *env,
                                      const char *warehouse_name, const char *data_dir,
                                      struct tarn_catalog **out)
{
    struct tarn_catalog *catalog = tarn_calloc(1, sizeof *catalog);
    catalog->env = env;
    catalog->warehouse_name = tarn_strdup(warehouse_name);
    catalog->data_dir = tarn_strdup(data_dir);
    pthread_mutex_init(&catalog->change, NULL);
    pthread_mutex_init(&catalog->lock, NULL);
    catalog->by_name = tarn_map_new();
    catalog->by_uuid = tarn_map_new();
    struct tarn_status *s = tarn_catalog__take_warehouse(op, catalog);
    if (s == TARN_OK)
        s = tarn_store_finish_moves(env->store, op, false);
    if (s == TARN_OK)
        s = finish_drops(op, catalog);
    if (s == TARN_OK)
        s = adopt_all(op, catalog);
    if (s != TARN_OK) {
        tarn_catalog_close(catalog);
        return s;
    }
    *out = catalog;
    return TARN_OK;
}

void tarn_catalog_close(struct tarn_catalog *catalog)
{
    if (catalog == NULL)
        return;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    tarn_catalog__give_warehouse_back(&op, catalog);
    size_t cursor = 0;
    struct tarn_slice key;
    void *table;
    while (tarn_map_next(catalog->by_name, &cursor, &key, &table))
        tarn_table_unref(table);
    tarn_map_free(catalog->by_name);
    tarn_map_free(catalog->by_uuid);
    tarn_arena_free(catalog->database_arena);
    pthread_mutex_destroy(&catalog->change);
    pthread_mutex_destroy(&catalog->lock);
    free(catalog->warehouse_name);
    free(catalog->data_dir);
    free(catalog);
}

const struct tarn_table_env *tarn_catalog_env(const struct tarn_catalog *catalog)
{
    return catalog->env;
}

/* --- finding --- */

static struct tarn_status *table_not_found(struct tarn_slice database, struct tarn_slice name)
{
    return tarn_status_new(TARN_TABLE_NOT_FOUND, "there is no table %.*s.%.*s",
                           TARN_SLICE_ARG(database), TARN_SLICE_ARG(name));
}

/* Others may have removed or replaced a table that is known: its identity file tells. */
struct tarn_status *tarn_catalog__still_here(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_table *table, bool *out)
{
    struct tarn_identity_file identity;
    TARN_TRY(tarn_catalog__read_identity(op, catalog, tarn_table_path(table), out, &identity));
    *out = *out && strcmp(identity.uuid, tarn_table_main_uuid(table)) == 0;
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

struct tarn_status *tarn_catalog_table_by_uuid(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_slice uuid, struct tarn_table **out)
{
    pthread_mutex_lock(&catalog->lock);
    struct tarn_table *table = tarn_map_find(catalog->by_uuid, uuid);
    if (table != NULL)
        tarn_table_ref(table);
    pthread_mutex_unlock(&catalog->lock);
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

/* One folder of a database for the list; a table that can't be opened is listed without a uuid. */
static struct tarn_status *list_one(struct tarn_op *op, struct tarn_catalog *catalog,
                                    struct tarn_slice database, struct tarn_slice name,
                                    struct tarn_table_info *out, bool *is)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table =
        tarn_catalog__known(catalog, database, name);
    *is = true;
    *out = (struct tarn_table_info){.database = database, .name = name};
    if (table == NULL) {
        tarn_exec_lock(&catalog->change);
        struct tarn_status *s = tarn_catalog__adopt(op, catalog, database, name, &table);
        pthread_mutex_unlock(&catalog->change);
        if (s == TARN_OK && table == NULL)
            *is = false;
        if (s != TARN_OK)
            s = tarn_status_wrap(s, "table %s", full_name(op, database, name));
        tarn_log_status(op, TARN_WARN, "catalog.table_unreadable", s);
    }
    if (table != NULL)
        memcpy(out->uuid, tarn_table_uuid(table), TARN_UUID_SIZE);
    return TARN_OK;
}

struct tarn_status *tarn_catalog_tables(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice database, struct tarn_table_info **out,
                                        size_t *count)
{
    TARN_TRY(tarn_catalog__check_name("database", database));
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, database, &found));
    if (!found) {
        TARN_TRY(tarn_catalog__forget_vanished(op, catalog, database, NULL, 0));
        return tarn_catalog__no_database(database);
    }
    const char *folder = tarn_catalog__database_key(op, database);
    struct tarn_object *objects;
    size_t object_count;
    TARN_TRY(tarn_store_list(catalog->env->store, op, folder, false, &objects, &object_count));
    struct tarn_table_info *list = tarn_arena_calloc(op->arena, object_count + 1, sizeof *list);
    size_t prefix = strlen(folder) + 1;
    database = tarn_arena_copy(op->arena, database);
    *count = 0;
    for (size_t i = 0; i < object_count; i++) {
        if (!objects[i].is_folder)
            continue;
        struct tarn_slice name =
            tarn_slice_of(objects[i].key.data + prefix, objects[i].key.size - prefix);
        struct tarn_status *s = tarn_catalog__check_name("table", name);
        bool is = s == TARN_OK;
        tarn_status_free(s);
        if (is)
            TARN_TRY(list_one(op, catalog, database, name, &list[*count], &is));
        *count += is;
    }
    *out = list;
    return tarn_catalog__forget_vanished(op, catalog, database, list, *count);
}

/* --- creating, moving, dropping --- */

static struct tarn_status *make_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_slice database, struct tarn_slice name,
                                      const struct tarn_schema *schema, struct tarn_table **out)
{
    const char *path = tarn_catalog__table_key(op, database, name);
    bool there;
    TARN_TRY(tarn_catalog__is_table(op, catalog, path, &there));
    if (there)
        return tarn_status_new(TARN_TABLE_EXISTS, "table %s exists", full_name(op, database, name));
    TARN_TRY(tarn_catalog__check_no_view(op, catalog, database, name));
    if (tarn_store_is_flat(
            catalog->env->store)) /* what a failed drop left there isn't this table's */
        TARN_TRY(finish_drops(op, catalog));
    char uuid[TARN_UUID_SIZE];
    tarn_uuid_random(uuid);
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    tarn_schema_encode(schema, &json);
    /* The identity first: a table is there once it has a schema, and then it has its identity too. */
    TARN_TRY(
        tarn_catalog__put_identity(op, catalog, path, uuid, full_name(op, database, name), true));
    bool created;
    TARN_TRY(tarn_store_put_if_absent(catalog->env->store, op,
                                      tarn_arena_printf(op->arena, "%s/schema/schema-0", path),
                                      tarn_buf_slice(&json), &created));
    if (!created)
        return tarn_status_new(TARN_TABLE_EXISTS, "another writer made table %s first",
                               full_name(op, database, name));
    TARN_TRY(tarn_table_open(op, catalog->env, path, uuid, full_name(op, database, name), out));
    tarn_table_is_new(*out);
    tarn_catalog__remember(catalog, database, name, *out);
    return TARN_OK;
}

struct tarn_status *tarn_catalog_create_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_slice database, struct tarn_slice name,
                                              const struct tarn_schema *draft,
                                              struct tarn_table **out)
{
    TARN_TRY(tarn_catalog__check_name("database", database));
    TARN_TRY(tarn_catalog__check_name("table", name));
    struct tarn_schema schema;
    struct tarn_options options;
    TARN_TRY(tarn_schema_create(draft, tarn_clock_wall_ms(), op->arena, &schema));
    TARN_TRY(tarn_options_parse(&schema, op->arena, &options));
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, database, &found));
    if (!found)
        return tarn_catalog__no_database(database);
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = make_table(op, catalog, database, name, &schema, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *move_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_table *table, struct tarn_slice to_database,
                                      struct tarn_slice to_name)
{
    struct tarn_slice database, name;
    tarn_catalog_names_of(op, table, &database, &name);
    const char *to_path = tarn_catalog__table_key(op, to_database, to_name);
    bool flat = tarn_store_is_flat(catalog->env->store), there = false;
    if (flat)
        TARN_TRY(finish_drops(op, catalog));
    else /* there the store looks, and goes on with a move that was cut off */
        TARN_TRY(tarn_catalog__is_table(op, catalog, to_path, &there));
    if (there)
        return tarn_status_new(TARN_TABLE_EXISTS, "table %s exists",
                               full_name(op, to_database, to_name));
    TARN_TRY(tarn_catalog__check_no_view(op, catalog, to_database, to_name));
    TARN_TRY(tarn_catalog__close_branches(op, catalog, table, false));
    TARN_TRY(tarn_table_move(op, table, to_path, full_name(op, to_database, to_name)));
    tarn_catalog__remember(catalog, to_database, to_name, table);
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    name_key(database, name, &key);
    pthread_mutex_lock(&catalog->lock); /* the old name alone: the uuid stays known */
    tarn_table_unref(tarn_map_remove(catalog->by_name, tarn_buf_slice(&key)));
    pthread_mutex_unlock(&catalog->lock);
    return tarn_catalog__put_identity(op, catalog, to_path, tarn_table_uuid(table),
                                      full_name(op, to_database, to_name),
                                      tarn_table_is_compacted(table));
}

struct tarn_status *tarn_catalog_rename_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_table *table,
                                              struct tarn_slice to_database,
                                              struct tarn_slice to_name)
{
    TARN_TRY(tarn_catalog__check_name("database", to_database));
    TARN_TRY(tarn_catalog__check_name("table", to_name));
    TARN_TRY(tarn_catalog_check_main(table, "it is renamed as a branch of its table"));
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, to_database, &found));
    if (!found)
        return tarn_catalog__no_database(to_database);
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = move_table(op, catalog, table, to_database, to_name);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *drop(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_table *table)
{
    struct tarn_slice database, name;
    tarn_catalog_names_of(op, table, &database, &name);
    const char *path = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_path(table)));
    const char *away = tarn_arena_printf(op->arena, TRASH "/%s", tarn_table_uuid(table));
    TARN_TRY(tarn_catalog__close_branches(op, catalog, table, true));
    TARN_TRY(tarn_table_retire(op, table, true));
    tarn_catalog__forget(catalog, database, name);
    if (tarn_store_is_flat(catalog->env->store)) {
        TARN_TRY(tarn_store_put(catalog->env->store, op, away, tarn_slice_str(path)));
        return remove_in_place(op, catalog, path, away);
    }
    /* It leaves its place in one step, so that nobody meets half of it; what a crash leaves is removed at start. */
    TARN_TRY(tarn_store_move_folder(catalog->env->store, op, path, away));
    return tarn_catalog__remove_below(op, catalog, away);
}

struct tarn_status *tarn_catalog_drop_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                            struct tarn_table *table)
{
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    TARN_TRY(tarn_catalog_check_main(table, "it is dropped as a branch of its table"));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = drop(op, catalog, table);
    pthread_mutex_unlock(&catalog->change);
    return s;
}
