#include "catalog/internal.h"

/* Tables of other kinds, of which there is nothing but the entry; and moving entries, of whatever kind. */

static struct tarn_status *make_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_catalog_entry *entry)
{
    TARN_TRY(tarn_catalog__check_new(op, catalog, entry->database, entry->name));
    TARN_TRY(tarn_catalog__check_free(op, catalog, entry->database, entry->name));
    return tarn_catalog__put_entry(op, catalog, entry);
}

struct tarn_status *tarn_catalog_create_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_slice database, struct tarn_slice name,
                                              const struct tarn_schema *draft,
                                              struct tarn_slice location,
                                              struct tarn_catalog_entry *out)
{
    struct tarn_catalog__outside *outside;
    const char *clean;
    tarn_catalog__begin_entry(database, name, out);
    out->has_schema = true;
    TARN_TRY(tarn_schema_create(draft, out->created_ms, op->arena, &out->schema));
    if (location.size > 0) {
        TARN_TRY(tarn_catalog__check_location(op, catalog, location, &clean, &outside));
        out->location = tarn_slice_str(clean);
    } else {
        out->folder = tarn_slice_str(tarn_catalog__uuid_folder(op, out->uuid));
    }
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = make_entry(op, catalog, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *no_entry(struct tarn_op *op, struct tarn_slice database,
                                    struct tarn_slice name)
{
    return tarn_status_new(TARN_TABLE_NOT_FOUND, "there is no table %s",
                           tarn_catalog__full_name(op, database, name));
}

struct tarn_status *tarn_catalog_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_slice database, struct tarn_slice name,
                                       struct tarn_slice uuid, struct tarn_catalog_entry *out)
{
    bool found;
    TARN_TRY(tarn_catalog__check_name("database", database));
    TARN_TRY(tarn_catalog__check_name("table", name));
    TARN_TRY(tarn_catalog__live_entry(op, catalog, database, name, &found, out));
    if (!found || !out->has_schema)
        return no_entry(op, database, name);
    if (uuid.size > 0 && !tarn_slice_is(uuid, out->uuid))
        return tarn_status_new(TARN_TABLE_REPLACED, "table %s has uuid %s, not %.*s",
                               tarn_catalog__full_name(op, database, name), out->uuid,
                               TARN_SLICE_ARG(uuid));
    return TARN_OK;
}

static struct tarn_status *alter(struct tarn_op *op, struct tarn_catalog *catalog,
                                 struct tarn_slice database, struct tarn_slice name,
                                 const struct tarn_schema_change *changes, size_t count,
                                 struct tarn_catalog_entry *out)
{
    struct tarn_schema next;
    TARN_TRY(tarn_catalog_entry(op, catalog, database, name, tarn_slice_str(NULL), out));
    out->updated_ms = tarn_clock_wall_ms();
    TARN_TRY(tarn_status_wrap(
        tarn_schema_evolve(&out->schema, changes, count, false, out->updated_ms, op->arena, &next),
        "table %s", tarn_catalog__full_name(op, database, name)));
    out->schema = next;
    return tarn_catalog__replace_entry(op, catalog, out);
}

struct tarn_status *tarn_catalog_alter_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_slice database, struct tarn_slice name,
                                             const struct tarn_schema_change *changes, size_t count,
                                             struct tarn_catalog_entry *out)
{
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = alter(op, catalog, database, name, changes, count, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *rewrite_identity(struct tarn_op *op, struct tarn_catalog *catalog,
                                            const struct tarn_catalog_entry *entry)
{
    const char *path = tarn_arena_str(op->arena, entry->folder);
    struct tarn_identity_file identity;
    bool found;
    TARN_TRY(tarn_catalog__read_identity(op, catalog, path, &found, &identity));
    return tarn_catalog__put_identity(op, catalog, path, entry->uuid,
                                      tarn_catalog__full_name(op, entry->database, entry->name),
                                      !found || identity.is_compacted);
}

struct tarn_status *tarn_catalog__move_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_slice database, struct tarn_slice name,
                                             struct tarn_slice to_database,
                                             struct tarn_slice to_name,
                                             struct tarn_catalog_entry *out)
{
    struct tarn_catalog_entry there;
    bool found;
    TARN_TRY(tarn_catalog__read_entry(op, catalog, database, name, &found, out));
    if (!found)
        return no_entry(op, database, name);
    struct tarn_catalog_entry old = *out;
    old.to_database = to_database;
    old.to_name = to_name;
    out->database = to_database;
    out->name = to_name;
    out->to_database = out->to_name = tarn_slice_str(NULL);
    TARN_TRY(tarn_catalog__read_entry(op, catalog, to_database, to_name, &found, &there));
    bool same = tarn_slice_equal(database, to_database) && tarn_slice_equal(name, to_name);
    if (!found || same || strcmp(there.uuid, out->uuid) != 0) { /* else: this was cut off */
        TARN_TRY(tarn_catalog__check_free(op, catalog, to_database, to_name));
        if (old.has_schema)
            TARN_TRY(tarn_catalog__replace_entry(op, catalog, &old));
        TARN_TRY(tarn_catalog__put_entry(op, catalog, out));
    } else if (out->has_schema) {
        tarn_catalog__know_entry(catalog, out);
    }
    if (!out->has_schema && out->folder.data != NULL) /* from here on the new one counts */
        TARN_TRY(rewrite_identity(op, catalog, out));
    return tarn_catalog__remove_entry(op, catalog, database, name);
}

struct tarn_status *tarn_catalog_rename_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_slice database, struct tarn_slice name,
                                              struct tarn_slice to_database,
                                              struct tarn_slice to_name,
                                              struct tarn_catalog_entry *out)
{
    TARN_TRY(tarn_catalog_entry(op, catalog, database, name, tarn_slice_str(NULL), out));
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = tarn_catalog__check_new(op, catalog, to_database, to_name);
    if (s == TARN_OK)
        s = tarn_catalog__move_entry(op, catalog, database, name, to_database, to_name, out);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

/* The entry first: what a crash leaves then is a folder that nobody names. */
static struct tarn_status *drop(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_slice database, struct tarn_slice name)
{
    struct tarn_catalog_entry entry;
    struct tarn_status *s =
        tarn_catalog_entry(op, catalog, database, name, tarn_slice_str(NULL), &entry);
    if (tarn_status_reason(s) == TARN_OBJECT_DAMAGED) { /* its folder isn't known */
        tarn_status_free(s);
        return tarn_catalog__remove_entry(op, catalog, database, name);
    }
    TARN_TRY(s);
    TARN_TRY(tarn_catalog__remove_entry(op, catalog, database, name));
    if (entry.folder.data == NULL)
        return TARN_OK;
    return tarn_catalog__remove_below(op, catalog, tarn_arena_str(op->arena, entry.folder));
}

struct tarn_status *tarn_catalog_drop_entry(struct tarn_op *op, struct tarn_catalog *catalog,
                                            struct tarn_slice database, struct tarn_slice name)
{
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = drop(op, catalog, database, name);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

const char *tarn_catalog_entry_uri(struct tarn_op *op, const struct tarn_catalog *catalog,
                                   const struct tarn_catalog_entry *entry)
{
    return entry->folder.data == NULL
               ? tarn_arena_str(op->arena, entry->location)
               : tarn_arena_printf(op->arena, "%s/%.*s", tarn_store_uri(catalog->env->store),
                                   TARN_SLICE_ARG(entry->folder));
}
