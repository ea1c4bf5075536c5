#include "catalog/internal.h"

/* Creating, moving and dropping tables. */

#define TRASH ".tarn/dropped"

/* --- what a drop removes --- */

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

struct tarn_status *tarn_catalog__finish_drops(struct tarn_op *op, struct tarn_catalog *catalog)
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

/* --- creating --- */

struct tarn_status *tarn_catalog__check_new(struct tarn_op *op, struct tarn_catalog *catalog,
                                            struct tarn_slice database, struct tarn_slice name)
{
    TARN_TRY(tarn_catalog__check_name("database", database));
    TARN_TRY(tarn_catalog__check_name("table", name));
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, database, &found));
    return found ? TARN_OK : tarn_catalog__no_database(database);
}

struct tarn_status *tarn_catalog__check_free(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_slice database, struct tarn_slice name)
{
    bool there;
    TARN_TRY(tarn_catalog__is_table(op, catalog->env->store,
                                    tarn_catalog__table_key(op, database, name), &there));
    if (there)
        return tarn_status_new(TARN_TABLE_EXISTS, "table %s exists",
                               tarn_catalog__full_name(op, database, name));
    TARN_TRY(tarn_catalog__check_no_entry(op, catalog, database, name));
    return tarn_catalog__check_no_view(op, catalog, database, name);
}

static bool is_placed_by_name(struct tarn_op *op, const struct tarn_table *table)
{
    struct tarn_slice database, name;
    tarn_table_names(op, table, &database, &name);
    return strcmp(tarn_table_path(table), tarn_catalog__table_key(op, database, name)) == 0;
}

/* The identity first: a table is there once it has a schema, and then it has its identity too; or, in a folder by uuid, once it has
 * an entry. */
static struct tarn_status *make_files(struct tarn_op *op, struct tarn_catalog *catalog,
                                      const char *path, const struct tarn_schema *schema,
                                      const struct tarn_catalog_entry *entry)
{
    const char *full_name = tarn_catalog__full_name(op, entry->database, entry->name);
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    bool created;
    tarn_schema_encode(schema, &json);
    TARN_TRY(tarn_catalog__put_identity(op, catalog, path, entry->uuid, full_name, true));
    TARN_TRY(tarn_store_put_if_absent(catalog->env->store, op,
                                      tarn_arena_printf(op->arena, "%s/schema/schema-0", path),
                                      tarn_buf_slice(&json), &created));
    if (!created)
        return tarn_status_new(TARN_TABLE_EXISTS, "another writer made table %s first", full_name);
    return entry->folder.data == NULL ? TARN_OK : tarn_catalog__put_entry(op, catalog, entry);
}

static struct tarn_status *make_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_slice database, struct tarn_slice name,
                                      const struct tarn_schema *schema, struct tarn_table **out)
{
    struct tarn_catalog_entry entry;
    const char *path = tarn_catalog__table_key(op, database, name);
    TARN_TRY(tarn_catalog__check_new(op, catalog, database, name));
    TARN_TRY(tarn_catalog__check_free(op, catalog, database, name));
    if (tarn_store_is_flat(
            catalog->env->store)) /* what a failed drop left there isn't this table's */
        TARN_TRY(tarn_catalog__finish_drops(op, catalog));
    tarn_catalog__begin_entry(database, name, &entry);
    if (catalog->folders_by_uuid || !tarn_catalog__is_plain(database) ||
        !tarn_catalog__is_plain(name)) {
        path = tarn_catalog__uuid_folder(op, entry.uuid);
        entry.folder = tarn_slice_str(path);
    }
    TARN_TRY(make_files(op, catalog, path, schema, &entry));
    TARN_TRY(tarn_table_open(op, catalog->env, path, entry.uuid,
                             tarn_catalog__full_name(op, database, name), out));
    tarn_table_set_names(*out, database, name);
    tarn_table_is_new(*out);
    tarn_catalog__remember(catalog, database, name, *out);
    return TARN_OK;
}

struct tarn_status *tarn_catalog_create_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_slice database, struct tarn_slice name,
                                              const struct tarn_schema *draft,
                                              struct tarn_table **out)
{
    struct tarn_schema schema;
    struct tarn_options options;
    TARN_TRY(tarn_schema_create(draft, tarn_clock_wall_ms(), op->arena, &schema));
    TARN_TRY(tarn_options_parse(&schema, op->arena, &options));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = make_table(op, catalog, database, name, &schema, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

/* Others may have dropped or renamed it between the moment in which the caller found it and this one. */
static struct tarn_status *check_meant(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_table *table, struct tarn_slice database,
                                       struct tarn_slice name)
{
    struct tarn_slice branch;
    if (name.size == 0)
        tarn_table_names(op, table, &database, &name);
    tarn_catalog_split_branch(name, &name, &branch); /* "t$branch_main" */
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *now = tarn_catalog__known(catalog, database, name);
    return now == table ? TARN_OK
                        : tarn_status_new(TARN_TABLE_NOT_FOUND,
                                          "table %s (%s) was dropped or renamed by another call",
                                          tarn_catalog__full_name(op, database, name),
                                          tarn_table_uuid(table));
}

/* From <database>.db/<table>, to where its new name puts it. */
static struct tarn_status *move_folder(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_table *table, struct tarn_slice to_database,
                                       struct tarn_slice to_name)
{
    const char *to_path = tarn_catalog__table_key(op, to_database, to_name);
    const char *full_name = tarn_catalog__full_name(op, to_database, to_name);
    if (tarn_catalog__is_plain(to_database) && tarn_catalog__is_plain(to_name)) {
        TARN_TRY(tarn_table_move(op, table, to_path));
        tarn_catalog__take_new_name(op, catalog, table, to_database, to_name);
        return tarn_catalog__put_identity(op, catalog, to_path, tarn_table_uuid(table), full_name,
                                          tarn_table_is_compacted(table));
    }
    /* The entry is alive once the folder, with the new name in it, is where it says. */
    struct tarn_catalog_entry entry;
    tarn_catalog__begin_entry(to_database, to_name, &entry);
    memcpy(entry.uuid, tarn_table_uuid(table), sizeof entry.uuid);
    to_path = tarn_catalog__uuid_folder(op, entry.uuid);
    entry.folder = tarn_slice_str(to_path);
    TARN_TRY(tarn_catalog__put_entry(op, catalog, &entry));
    TARN_TRY(tarn_catalog__put_identity(op, catalog, tarn_table_path(table), entry.uuid, full_name,
                                        tarn_table_is_compacted(table)));
    TARN_TRY(tarn_table_move(op, table, to_path));
    tarn_catalog__take_new_name(op, catalog, table, to_database, to_name);
    return TARN_OK;
}

static struct tarn_status *move_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_table *table, struct tarn_slice to_database,
                                      struct tarn_slice to_name)
{
    struct tarn_slice database, name;
    struct tarn_catalog_entry entry;
    TARN_TRY(tarn_catalog__check_new(op, catalog, to_database, to_name));
    tarn_table_names(op, table, &database, &name);
    if (!is_placed_by_name(op, table)) {
        TARN_TRY(tarn_catalog__close_branches(op, catalog, table, false));
        TARN_TRY(
            tarn_catalog__move_entry(op, catalog, database, name, to_database, to_name, &entry));
        tarn_catalog__take_new_name(op, catalog, table, to_database, to_name);
        return TARN_OK;
    }
    if (tarn_store_is_flat(catalog->env->store)) {
        /* there the store looks whether a table is in the way, and goes on with a move that was cut off */
        TARN_TRY(tarn_catalog__finish_drops(op, catalog));
        TARN_TRY(tarn_catalog__check_no_entry(op, catalog, to_database, to_name));
        TARN_TRY(tarn_catalog__check_no_view(op, catalog, to_database, to_name));
    } else {
        TARN_TRY(tarn_catalog__check_free(op, catalog, to_database, to_name));
    }
    TARN_TRY(tarn_catalog__close_branches(op, catalog, table, false));
    return move_folder(op, catalog, table, to_database, to_name);
}

struct tarn_status *tarn_catalog_rename_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_table *table, struct tarn_slice database,
                                              struct tarn_slice name, struct tarn_slice to_database,
                                              struct tarn_slice to_name)
{
    TARN_TRY(tarn_catalog_check_main(table, "it is renamed as a branch of its table"));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = check_meant(op, catalog, table, database, name);
    if (s == TARN_OK)
        s = move_table(op, catalog, table, to_database, to_name);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *remove_files(struct tarn_op *op, struct tarn_catalog *catalog,
                                        const char *path, const char *uuid)
{
    const char *away = tarn_arena_printf(op->arena, TRASH "/%s", uuid);
    if (tarn_store_is_flat(catalog->env->store)) {
        TARN_TRY(tarn_store_put(catalog->env->store, op, away, tarn_slice_str(path)));
        return remove_in_place(op, catalog, path, away);
    }
    /* It leaves its place in one step, so that nobody meets half of it; what a crash leaves is removed at start. */
    TARN_TRY(tarn_store_move_folder(catalog->env->store, op, path, away));
    return tarn_catalog__remove_below(op, catalog, away);
}

static struct tarn_status *drop(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_table *table)
{
    struct tarn_slice database, name;
    tarn_table_names(op, table, &database, &name);
    const char *path = tarn_arena_str(op->arena, tarn_slice_str(tarn_table_path(table)));
    bool by_name = is_placed_by_name(op, table);
    TARN_TRY(tarn_catalog__close_branches(op, catalog, table, true));
    TARN_TRY(tarn_catalog__forget_notes(op, catalog, table, (struct tarn_slice){0}));
    TARN_TRY(tarn_table_retire(op, table, true));
    tarn_catalog__forget(catalog, database, name);
    if (!tarn_catalog_is_external(catalog, table))
        TARN_TRY(remove_files(op, catalog, path, tarn_table_uuid(table)));
    return by_name ? TARN_OK : tarn_catalog__remove_entry(op, catalog, database, name);
}

struct tarn_status *tarn_catalog_drop_table(struct tarn_op *op, struct tarn_catalog *catalog,
                                            struct tarn_table *table, struct tarn_slice database,
                                            struct tarn_slice name)
{
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    TARN_TRY(tarn_catalog_check_main(table, "it is dropped as a branch of its table"));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = check_meant(op, catalog, table, database, name);
    if (s == TARN_OK)
        s = drop(op, catalog, table);
    pthread_mutex_unlock(&catalog->change);
    return s;
}
