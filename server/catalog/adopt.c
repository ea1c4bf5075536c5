#include "catalog/internal.h"

/* Folders that others made: looking at them before they are adopted, and whose compaction is whose. */

/* --- compaction --- */

static void tell_branches(struct tarn_op *op, struct tarn_catalog *catalog,
                          struct tarn_table *table, bool is_compacted)
{
    struct tarn_slice database, name, *open;
    size_t count;
    tarn_table_names(op, table, &database, &name);
    tarn_catalog__known_branches(op, catalog, database, name, &open, &count);
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_table_drop_ref)
        struct tarn_table *branch = tarn_catalog__known(catalog, database, open[i]);
        if (branch != NULL)
            tarn_table_set_compacted(branch, is_compacted);
    }
}

static struct tarn_status *set_compaction(struct tarn_op *op, struct tarn_catalog *catalog,
                                          struct tarn_table *table, bool is_compacted)
{
    struct tarn_identity_file identity;
    bool found;
    const char *path = tarn_table_path(table);
    TARN_TRY(tarn_catalog__read_identity(op, catalog, path, &found, &identity));
    if (!found || strcmp(identity.uuid, tarn_table_uuid(table)) != 0)
        return tarn_status_new(TARN_TABLE_NOT_FOUND, "table %s (%s) is no longer there",
                               tarn_table_name(table), tarn_table_uuid(table));
    if (identity.is_compacted != is_compacted)
        TARN_TRY(tarn_catalog__put_identity(op, catalog, path, identity.uuid,
                                            tarn_table_name(table), is_compacted));
    tarn_table_set_compacted(table, is_compacted);
    tell_branches(op, catalog, table, is_compacted);
    return TARN_OK;
}

struct tarn_status *tarn_catalog_set_compaction(struct tarn_op *op, struct tarn_catalog *catalog,
                                                struct tarn_table *table, bool is_compacted)
{
    TARN_TRY(tarn_catalog_check_main(table, "its compaction is whose the table's is"));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = set_compaction(op, catalog, table, is_compacted);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

/* --- folders --- */

static struct tarn_status *look_at(struct tarn_op *op, struct tarn_catalog *catalog,
                                   struct tarn_folder *folder)
{
    struct tarn_identity_file identity = {.is_compacted = false};
    struct tarn_status *s = tarn_catalog__check_name("table", folder->name);
    if (s != TARN_OK) {
        folder->why_not = tarn_arena_str(op->arena, tarn_slice_str(tarn_status_message(s)));
        tarn_status_free(s);
        return TARN_OK;
    }
    TARN_TRY(tarn_catalog__is_table(op, catalog->env->store, folder->path, &folder->is_table));
    if (!folder->is_table) {
        folder->why_not = "it has no schema/schema-N";
        return TARN_OK;
    }
    s = tarn_catalog__read_identity(op, catalog, folder->path, &folder->has_identity, &identity);
    if (tarn_status_reason(s) == TARN_IDENTITY_DAMAGED) {
        folder->damaged = tarn_arena_str(op->arena, tarn_slice_str(tarn_status_message(s)));
        tarn_status_drop(&s);
    }
    folder->has_identity = folder->has_identity && folder->damaged == NULL;
    folder->is_compacted = folder->has_identity && identity.is_compacted;
    if (folder->has_identity)
        folder->uuid = tarn_arena_str(op->arena, tarn_slice_str(identity.uuid));
    return s;
}

static struct tarn_status *list_folders(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice database, struct tarn_folder **out,
                                        size_t *count)
{
    struct tarn_object *objects;
    size_t object_count;
    bool found;
    const char *key = tarn_catalog__database_key(op, database);
    size_t prefix = strlen(key) + 1;
    TARN_TRY(tarn_catalog__check_name("database", database));
    TARN_TRY(tarn_catalog__database_exists(op, catalog, database, &found));
    if (!found)
        return tarn_catalog__no_database(database);
    TARN_TRY(tarn_store_list(catalog->env->store, op, key, false, &objects, &object_count));
    *out = tarn_arena_calloc(op->arena, object_count + 1, sizeof **out);
    *count = 0;
    for (size_t i = 0; i < object_count; i++)
        if (objects[i].is_folder)
            (*out)[(*count)++] = (struct tarn_folder){
                .name = tarn_slice_of(objects[i].key.data + prefix, objects[i].key.size - prefix),
                .path = tarn_arena_str(op->arena, objects[i].key),
                .uuid = ""};
    return TARN_OK;
}

struct tarn_status *tarn_catalog_folders(struct tarn_op *op, struct tarn_catalog *catalog,
                                         struct tarn_slice database, struct tarn_folder **out,
                                         size_t *count)
{
    TARN_TRY(list_folders(op, catalog, database, out, count));
    for (size_t i = 0; i < *count; i++)
        TARN_TRY(look_at(op, catalog, &(*out)[i]));
    return TARN_OK;
}

struct tarn_status *tarn_catalog_folder(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice database, struct tarn_slice name,
                                        struct tarn_folder *out)
{
    struct tarn_folder *folders;
    size_t count;
    TARN_TRY(list_folders(op, catalog, database, &folders, &count));
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(folders[i].name, name)) {
            *out = folders[i];
            return look_at(op, catalog, out);
        }
    return tarn_status_new(TARN_TABLE_NOT_FOUND, "database %.*s has no folder %.*s",
                           TARN_SLICE_ARG(database), TARN_SLICE_ARG(name));
}

/* --- paths --- */

/* "s3a" and "s3n" are Hadoop's names for "s3". */
static struct tarn_slice scheme_of(struct tarn_slice uri)
{
    const uint8_t *colon = memchr(uri.data, ':', uri.size);
    size_t n = colon == NULL ? 0 : (size_t)(colon - uri.data);
    bool is = n > 0 && n + 1 < uri.size && colon[1] == '/';
    struct tarn_slice scheme = tarn_slice_of(uri.data, is ? n : 0);
    return tarn_slice_is(scheme, "s3a") || tarn_slice_is(scheme, "s3n") ? tarn_slice_str("s3")
                                                                        : scheme;
}

/* Behind the scheme: "/path" of file:/path and file:///path, "bucket/path" of s3://bucket/path. Without slashes at the end. */
static struct tarn_slice rest_of(struct tarn_slice uri)
{
    if (scheme_of(uri).size > 0) {
        size_t n = (size_t)((const uint8_t *)memchr(uri.data, ':', uri.size) - uri.data) + 1;
        n += n + 1 < uri.size && uri.data[n] == '/' && uri.data[n + 1] == '/' ? 2 : 0;
        uri = tarn_slice_of(uri.data + n, uri.size - n);
    }
    while (uri.size > 1 && uri.data[uri.size - 1] == '/')
        uri.size--;
    return uri;
}

static struct tarn_status *outside(struct tarn_catalog *catalog, struct tarn_slice path)
{
    return tarn_status_new(
        TARN_PATH_INVALID,
        "%.*s is outside the warehouse %s, where every table lies: move the table's folder to "
        "DATABASE.db/TABLE there, or start a daemon for the other warehouse",
        TARN_SLICE_ARG(path), tarn_store_uri(catalog->env->store));
}

/* What is behind the root; nothing, where it is the root. */
static struct tarn_status *below_root(struct tarn_catalog *catalog, struct tarn_slice path,
                                      struct tarn_slice *out)
{
    struct tarn_slice uri = tarn_slice_str(tarn_store_uri(catalog->env->store));
    struct tarn_slice scheme = scheme_of(path), root = rest_of(uri), rest = rest_of(path);
    bool is_absolute = scheme.size > 0 || rest.data[0] == '/';
    *out = rest;
    if (!is_absolute)
        return TARN_OK;
    /* A path without a scheme is one of the root's. */
    struct tarn_slice bare = root;
    if (scheme.size == 0 && bare.size > 0 && bare.data[0] != '/') {
        const uint8_t *slash = memchr(bare.data, '/', bare.size);
        bare = slash == NULL ? tarn_slice_str("")
                             : tarn_slice_of(slash, bare.size - (size_t)(slash - bare.data));
    }
    if ((scheme.size > 0 && !tarn_slice_equal(scheme, scheme_of(uri))) ||
        !tarn_slice_starts_with(rest, bare) ||
        (rest.size > bare.size && bare.size > 1 && rest.data[bare.size] != '/'))
        return outside(catalog, path);
    *out = tarn_slice_of(rest.data + bare.size, rest.size - bare.size);
    while (out->size > 0 && out->data[0] == '/')
        *out = tarn_slice_of(out->data + 1, out->size - 1);
    return TARN_OK;
}

static bool ends_with_suffix(struct tarn_slice name)
{
    size_t n = strlen(TARN_DATABASE_SUFFIX);
    return name.size > n && memcmp(name.data + name.size - n, TARN_DATABASE_SUFFIX, n) == 0;
}

struct tarn_status *tarn_catalog_locate(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice path, struct tarn_slice *database,
                                        struct tarn_slice *name)
{
    struct tarn_slice rest, none = tarn_slice_str("");
    if (path.size == 0)
        return tarn_status_new(TARN_PATH_INVALID, "the path is empty");
    TARN_TRY(below_root(catalog, tarn_arena_copy(op->arena, path), &rest));
    *database = *name = none;
    if (rest.size == 0 || tarn_slice_is(rest, "."))
        return TARN_OK;
    const uint8_t *slash = memchr(rest.data, '/', rest.size);
    *database = slash == NULL ? rest : tarn_slice_of(rest.data, (size_t)(slash - rest.data));
    if (slash != NULL)
        *name = tarn_slice_of(slash + 1, rest.size - database->size - 1);
    if (!ends_with_suffix(*database) || memchr(name->data, '/', name->size) != NULL)
        return tarn_status_new(TARN_PATH_INVALID,
                               "%.*s is no place of a database or table: those are DATABASE.db and "
                               "DATABASE.db/TABLE right below %s; move the folder there",
                               TARN_SLICE_ARG(path), tarn_store_uri(catalog->env->store));
    database->size -= strlen(TARN_DATABASE_SUFFIX);
    return TARN_OK;
}
