#include "catalog/internal.h"

#include <stdio.h>

/*
 * Databases: folders <name>.db. Options and comment lie in <name>.db/.tarn-database, which Paimon skips:
 * {"uuid": "…", "created": ms, "updated": ms, "options": {…}, "comment": "…"}. A folder that others made has none of it.
 */

static const char *file_key(struct tarn_op *op, struct tarn_slice name)
{
    return tarn_arena_printf(op->arena, "%.*s" TARN_DATABASE_SUFFIX "/" TARN_DATABASE_FILE,
                             TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_catalog__list_databases(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 const struct tarn_slice **out, size_t *count)
{
    struct tarn_object *objects;
    size_t object_count;
    TARN_TRY(tarn_store_list(catalog->env->store, op, "", false, &objects, &object_count));
    struct tarn_slice *list = tarn_arena_calloc(op->arena, object_count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; i < object_count; i++) {
        struct tarn_slice name = objects[i].key;
        if (!objects[i].is_folder || name.size <= 3 ||
            memcmp(name.data + name.size - 3, TARN_DATABASE_SUFFIX, 3) != 0)
            continue;
        name.size -= 3;
        struct tarn_status *s = tarn_catalog__check_name("database", name);
        if (s == TARN_OK)
            list[(*count)++] = name;
        tarn_status_free(s); /* a folder that can't be named here is not shown */
    }
    tarn_catalog__keep_databases(catalog, list, *count);
    *out = list;
    return TARN_OK;
}

/* A folder is no object that could be asked for: it shows in the list of the root, also while it is empty. */
struct tarn_status *tarn_catalog__database_exists(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_slice name, bool *found)
{
    const struct tarn_slice *names;
    size_t count;
    *found = false;
    TARN_TRY(tarn_catalog__list_databases(op, catalog, &names, &count));
    for (size_t i = 0; i < count && !*found; i++)
        *found = tarn_slice_equal(names[i], name);
    return TARN_OK;
}

struct tarn_status *tarn_catalog__no_database(struct tarn_slice name)
{
    return tarn_status_new(TARN_DATABASE_NOT_FOUND, "there is no database %.*s",
                           TARN_SLICE_ARG(name));
}

static struct tarn_json *to_json(const struct tarn_database_info *info)
{
    struct tarn_json *json = tarn_json_object();
    struct tarn_json *options = tarn_json_object();
    tarn_json_set_str(json, "uuid", info->uuid);
    tarn_json_set_int(json, "created", info->created_ms);
    tarn_json_set_int(json, "updated", info->updated_ms);
    for (size_t i = 0; i < info->option_count; i++)
        tarn_json_set_slice(options, info->options[i].key, info->options[i].value);
    tarn_json_set(json, "options", options);
    if (info->comment.data != NULL)
        tarn_json_set(json, "comment", tarn_json_string(info->comment));
    return json;
}

/* The same at each question, as nothing remembers it. */
static void uuid_of_name(struct tarn_slice name, char out[TARN_UUID_SIZE])
{
    uint64_t a = tarn_xxh64(name, 1), b = tarn_xxh64(name, 2);
    snprintf(out, TARN_UUID_SIZE, "%08x-%04x-8%03x-a%03x-%012" PRIx64, (unsigned)(a >> 32),
             (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff), (unsigned)(b >> 48 & 0xfff),
             b & UINT64_C(0xffffffffffff));
}

static void read_identity(const struct tarn_json *json, struct tarn_database_info *info)
{
    struct tarn_slice uuid = tarn_json_text(tarn_json_find(json, "uuid"));
    if (tarn_uuid_valid(uuid))
        snprintf(info->uuid, sizeof info->uuid, "%.*s", TARN_SLICE_ARG(uuid));
    info->created_ms = tarn_json_int(tarn_json_find(json, "created"));
    info->updated_ms = tarn_json_int(tarn_json_find(json, "updated"));
}

static struct tarn_status *read_file(struct tarn_op *op, struct tarn_catalog *catalog,
                                     struct tarn_database_info *info)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    bool found;
    uuid_of_name(info->name, info->uuid);
    info->uri = tarn_arena_printf(op->arena, "%s/%s", tarn_store_uri(catalog->env->store),
                                  tarn_catalog__database_key(op, info->name));
    TARN_TRY(tarn_store_find(catalog->env->store, op, file_key(op, info->name), &found, &text));
    if (!found)
        return TARN_OK;
    struct tarn_status *s = tarn_json_parse(tarn_buf_slice(&text), &json);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "database %.*s", TARN_SLICE_ARG(info->name));
    read_identity(json, info);
    const struct tarn_json *options = tarn_json_find(json, "options");
    struct tarn_pair *pairs =
        tarn_arena_calloc(op->arena, tarn_json_count(options) + 1, sizeof *pairs);
    void *cursor = NULL;
    struct tarn_slice key;
    const struct tarn_json *value;
    while (tarn_json_next(options, &cursor, &key, &value))
        pairs[info->option_count++] = (struct tarn_pair){
            tarn_arena_copy(op->arena, key), tarn_arena_copy(op->arena, tarn_json_text(value))};
    info->options = pairs;
    struct tarn_slice comment = tarn_json_text(tarn_json_find(json, "comment"));
    if (comment.data != NULL)
        info->comment = tarn_arena_copy(op->arena, comment);
    return TARN_OK;
}

struct tarn_status *tarn_database_create(struct tarn_op *op, struct tarn_catalog *catalog,
                                         const struct tarn_database_info *info,
                                         bool ignore_if_exists)
{
    TARN_TRY(tarn_catalog__check_name("database", info->name));
    struct tarn_database_info made = *info;
    tarn_uuid_random(made.uuid);
    made.created_ms = made.updated_ms = tarn_clock_wall_ms();
    TARN_OWN(tarn_json_drop) struct tarn_json *json = to_json(&made);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_print(json, 2, &text);
    tarn_exec_lock(&catalog->change);
    bool found, created = false;
    struct tarn_status *s = tarn_catalog__database_exists(op, catalog, info->name, &found);
    if (s == TARN_OK && !found)
        s = tarn_catalog_check_owner(op, catalog);
    if (s == TARN_OK && !found) /* views of one that others dropped are not this one's */
        s = tarn_catalog__drop_objects(op, catalog, info->name);
    if (s == TARN_OK && !found)
        s = tarn_store_put_if_absent(catalog->env->store, op, file_key(op, info->name),
                                     tarn_buf_slice(&text), &created);
    if (s == TARN_OK && created) /* it is known from now on */
        s = tarn_catalog__database_exists(op, catalog, info->name, &found);
    pthread_mutex_unlock(&catalog->change);
    tarn_catalog__changed(catalog);
    if (s == TARN_OK && !created && !ignore_if_exists)
        s = tarn_status_new(TARN_DATABASE_EXISTS, "database %.*s exists",
                            TARN_SLICE_ARG(info->name));
    return s;
}

struct tarn_status *tarn_database_get(struct tarn_op *op, struct tarn_catalog *catalog,
                                      struct tarn_slice name, struct tarn_database_info *out)
{
    TARN_TRY(tarn_catalog__check_name("database", name));
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, name, &found));
    if (!found)
        return tarn_catalog__no_database(name);
    *out = (struct tarn_database_info){.name = tarn_arena_copy(op->arena, name)};
    TARN_TRY(read_file(op, catalog, out));
    struct tarn_table_info *tables;
    size_t count;
    TARN_TRY(tarn_catalog_tables(op, catalog, name, &tables, &count));
    out->table_count = (int64_t)count;
    return TARN_OK;
}

struct tarn_status *tarn_database_list(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_database_info **out, size_t *count)
{
    const struct tarn_slice *names;
    TARN_TRY(tarn_catalog__list_databases(op, catalog, &names, count));
    TARN_TRY(tarn_catalog__forget_databases(op, catalog, names, *count));
    *out = tarn_arena_calloc(op->arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++)
        (*out)[i].name = names[i];
    return TARN_OK;
}

static bool listed(const struct tarn_slice *list, size_t count, struct tarn_slice key)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(list[i], key))
            return true;
    return false;
}

static bool has_key(const struct tarn_pair *list, size_t count, struct tarn_slice key)
{
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_equal(list[i].key, key))
            return true;
    return false;
}

static struct tarn_status *alter(struct tarn_op *op, struct tarn_catalog *catalog,
                                 struct tarn_slice name, const struct tarn_pair *set,
                                 size_t set_count, const struct tarn_slice *remove,
                                 size_t remove_count)
{
    struct tarn_database_info info = {.name = name};
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, name, &found));
    if (!found)
        return tarn_catalog__no_database(name);
    TARN_TRY(read_file(op, catalog, &info));
    struct tarn_pair *options =
        tarn_arena_calloc(op->arena, info.option_count + set_count + 1, sizeof *options);
    size_t count = 0;
    for (size_t i = 0; i < info.option_count; i++)
        if (!listed(remove, remove_count, info.options[i].key) &&
            !has_key(set, set_count, info.options[i].key))
            options[count++] = info.options[i];
    for (size_t i = 0; i < set_count; i++)
        options[count++] = set[i];
    info.options = options;
    info.option_count = count;
    info.updated_ms = tarn_clock_wall_ms();
    TARN_OWN(tarn_json_drop) struct tarn_json *json = to_json(&info);
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    tarn_json_print(json, 2, &text);
    return tarn_store_put(catalog->env->store, op, file_key(op, name), tarn_buf_slice(&text));
}

struct tarn_status *tarn_database_alter(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice name, const struct tarn_pair *set,
                                        size_t set_count, const struct tarn_slice *remove,
                                        size_t remove_count)
{
    TARN_TRY(tarn_catalog__check_name("database", name));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = alter(op, catalog, name, set, set_count, remove, remove_count);
    pthread_mutex_unlock(&catalog->change);
    tarn_catalog__changed(catalog);
    return s;
}

static struct tarn_status *drop_tables(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_slice name, const struct tarn_table_info *tables,
                                       size_t count, int64_t *dropped)
{
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
        struct tarn_status *s =
            tarn_catalog_table(op, catalog, name, tables[i].name, tarn_slice_str(NULL), &table);
        if (tarn_status_reason(s) == TARN_ENTRY_ONLY) {
            tarn_status_free(s);
            s = tarn_catalog_drop_entry(op, catalog, name, tables[i].name);
        } else if (s == TARN_OK) {
            s = tarn_catalog_drop_table(op, catalog, table, name, tables[i].name);
        }
        if (tarn_status_reason(s) == TARN_TABLE_NOT_FOUND) { /* another call was faster */
            tarn_status_free(s);
            continue;
        }
        TARN_TRY(s);
        (*dropped)++;
    }
    return TARN_OK;
}

/* Did other calls make tables in it since they were listed? */
static struct tarn_status *check_no_tables(struct tarn_op *op, struct tarn_catalog *catalog,
                                           struct tarn_slice name)
{
    struct tarn_table_info *tables;
    struct tarn_slice *entries;
    struct tarn_catalog_entry entry;
    size_t count, entry_count;
    tarn_catalog__known_tables(op, catalog, name, false, &tables, &count);
    TARN_TRY(tarn_catalog__entry_names(op, catalog, name, &entries, &entry_count));
    for (size_t i = 0; i < entry_count && count == 0; i++) {
        bool alive;
        TARN_TRY(tarn_catalog__live_entry(op, catalog, name, entries[i], &alive, &entry));
        count += alive;
    }
    return count == 0
               ? TARN_OK
               : tarn_status_new(TARN_DATABASE_NOT_EMPTY,
                                 "database %.*s got another table while it was to be dropped",
                                 TARN_SLICE_ARG(name));
}

/* Holds `change`. */
static struct tarn_status *drop(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_slice name, bool cascade)
{
    bool found;
    TARN_TRY(check_no_tables(op, catalog, name));
    TARN_TRY(cascade ? tarn_catalog__drop_objects(op, catalog, name)
                     : tarn_catalog__check_no_objects(op, catalog, name));
    TARN_TRY(tarn_store_remove(catalog->env->store, op, file_key(op, name)));
    TARN_TRY(tarn_store_prune(catalog->env->store, op, tarn_catalog__database_key(op, name)));
    TARN_TRY(tarn_catalog__database_exists(op, catalog, name, &found));
    return !found
               ? TARN_OK
               : tarn_status_new(TARN_DATABASE_NOT_EMPTY,
                                 "%.*s.db still holds files that are no table; they are left alone",
                                 TARN_SLICE_ARG(name));
}

struct tarn_status *tarn_database_drop(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_slice name, bool cascade,
                                       int64_t *tables_dropped)
{
    TARN_TRY(tarn_catalog__check_name("database", name));
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    bool found;
    TARN_TRY(tarn_catalog__database_exists(op, catalog, name, &found));
    if (!found)
        return tarn_catalog__no_database(name);
    struct tarn_table_info *tables;
    size_t count;
    *tables_dropped = 0;
    TARN_TRY(tarn_catalog_tables(op, catalog, name, &tables, &count));
    if (count > 0 && !cascade)
        return tarn_status_new(TARN_DATABASE_NOT_EMPTY, "database %.*s has %zu %s",
                               TARN_SLICE_ARG(name), count, count == 1 ? "table" : "tables");
    TARN_TRY(drop_tables(op, catalog, name, tables, count, tables_dropped));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = drop(op, catalog, name, cascade);
    pthread_mutex_unlock(&catalog->change);
    tarn_catalog__changed(catalog);
    return s;
}
