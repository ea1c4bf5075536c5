#include "catalog/internal.h"

/* Which tables there are; and which databases and tables there were, as those are told who only look while the store is away, and what others
 * have taken away since. */

static int by_name(const void *a, const void *b)
{
    return tarn_slice_compare(((const struct tarn_table_info *)a)->name,
                              ((const struct tarn_table_info *)b)->name);
}

/* A list in the making. */
struct listing {
    struct tarn_op *op;
    struct tarn_catalog *catalog;
    struct tarn_slice database;
    struct tarn_table_info *list;
    size_t count;
};

static struct tarn_status *adopt_listed(struct listing *l, struct tarn_slice name, bool has_entry,
                                        struct tarn_table **out)
{
    tarn_exec_lock(&l->catalog->change);
    *out = tarn_catalog__known(l->catalog, l->database, name);
    struct tarn_status *s =
        *out != NULL ? TARN_OK
        : has_entry  ? tarn_catalog__adopt(l->op, l->catalog, l->database, name, out)
                     : tarn_catalog__adopt_folder(l->op, l->catalog, l->database, name, out);
    pthread_mutex_unlock(&l->catalog->change);
    return s;
}

/* Adds it if it is one; a table that can't be opened is listed without a uuid. */
static void list_one(struct listing *l, struct tarn_slice name, bool has_entry)
{
    struct tarn_table_info *out = &l->list[l->count];
    *out = (struct tarn_table_info){.database = l->database, .name = name};
    l->count++;
    if (has_entry && tarn_catalog__known_entry(l->catalog, l->database, name, out->uuid))
        return;
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *table = tarn_catalog__known(l->catalog, l->database, name);
    struct tarn_status *s = table != NULL ? TARN_OK : adopt_listed(l, name, has_entry, &table);
    if (table != NULL)
        memcpy(out->uuid, tarn_table_uuid(table), TARN_UUID_SIZE);
    else if (s == TARN_OK)
        l->count--;
    if (tarn_status_reason(s) == TARN_ENTRY_ONLY) {
        tarn_catalog__known_entry(l->catalog, l->database, name, out->uuid);
        tarn_status_drop(&s);
    }
    if (s != TARN_OK)
        s = tarn_status_wrap(s, "table %s", tarn_catalog__full_name(l->op, l->database, name));
    tarn_log_status(l->op, TARN_WARN, "catalog.table_unreadable", s);
}

/* Of a folder; one that can't be a table's name is none. */
static void list_folder(struct listing *l, struct tarn_slice name)
{
    struct tarn_status *s = tarn_catalog__check_name("table", name);
    if (s == TARN_OK)
        list_one(l, name, false);
    tarn_status_free(s);
}

static bool is_among(const struct tarn_slice *names, size_t count, struct tarn_slice name)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = tarn_slice_compare(names[middle], name);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* First those with an entry, which count before a folder of the same name. */
static struct tarn_status *list_all(struct listing *l)
{
    struct tarn_slice *names;
    struct tarn_object *objects;
    size_t name_count, object_count;
    const char *folder = tarn_catalog__database_key(l->op, l->database);
    TARN_TRY(tarn_catalog__entry_names(l->op, l->catalog, l->database, &names, &name_count));
    TARN_TRY(
        tarn_store_list(l->catalog->env->store, l->op, folder, false, &objects, &object_count));
    l->list = tarn_arena_calloc(l->op->arena, name_count + object_count + 1, sizeof *l->list);
    for (size_t i = 0; i < name_count; i++)
        list_one(l, names[i], true);
    size_t prefix = strlen(folder) + 1;
    for (size_t i = 0; i < object_count; i++) {
        struct tarn_slice name =
            tarn_slice_of(objects[i].key.data + prefix, objects[i].key.size - prefix);
        if (objects[i].is_folder && !is_among(names, name_count, name))
            list_folder(l, name);
    }
    qsort(l->list, l->count, sizeof *l->list, by_name);
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
    struct listing l = {
        .op = op, .catalog = catalog, .database = tarn_arena_copy(op->arena, database)};
    TARN_TRY(list_all(&l));
    *out = l.list;
    *count = l.count;
    return tarn_catalog__forget_vanished(op, catalog, database, l.list, l.count);
}

/* --- what there was --- */

void tarn_catalog__keep_databases(struct tarn_catalog *catalog, const struct tarn_slice *names,
                                  size_t count)
{
    struct tarn_arena *arena = tarn_arena_new();
    struct tarn_slice *kept = tarn_arena_calloc(arena, count + 1, sizeof *kept);
    for (size_t i = 0; i < count; i++)
        kept[i] = tarn_arena_copy(arena, names[i]);
    pthread_mutex_lock(&catalog->lock);
    tarn_arena_free(catalog->database_arena);
    catalog->database_arena = arena;
    catalog->databases = kept;
    catalog->database_count = count;
    catalog->asked_ms = tarn_clock_mono_ms();
    pthread_mutex_unlock(&catalog->lock);
}

/* With the lock. */
static void say_age(struct tarn_op *op, const struct tarn_catalog *catalog)
{
    int64_t age_ms = TARN_MAX(tarn_clock_mono_ms() - catalog->asked_ms, (int64_t)1);
    op->stale_ms = TARN_MAX(op->stale_ms, age_ms);
}

static void last_databases(struct tarn_op *op, struct tarn_catalog *catalog,
                           struct tarn_database_info **out, size_t *count)
{
    pthread_mutex_lock(&catalog->lock);
    *count = catalog->database_count;
    *out = tarn_arena_calloc(op->arena, *count + 1, sizeof **out);
    for (size_t i = 0; i < *count; i++)
        (*out)[i].name = tarn_arena_copy(op->arena, catalog->databases[i]);
    say_age(op, catalog);
    pthread_mutex_unlock(&catalog->lock);
}

/* key: of the catalog's maps, "db\0table". */
static bool last_one(struct tarn_op *op, struct tarn_slice database, struct tarn_slice key,
                     const char *uuid, struct tarn_table_info *out)
{
    if (key.size <= database.size || key.data[database.size] != 0 ||
        !tarn_slice_starts_with(key, database))
        return false;
    *out = (struct tarn_table_info){
        .database = database,
        .name = tarn_arena_copy(
            op->arena, tarn_slice_of(key.data + database.size + 1, key.size - database.size - 1))};
    memcpy(out->uuid, uuid, TARN_UUID_SIZE);
    return true;
}

/* Branches are known beside the tables, and aren't listed. Tables of other kinds only where they are asked for. */
void tarn_catalog__known_tables(struct tarn_op *op, struct tarn_catalog *catalog,
                                struct tarn_slice database, bool of_all_kinds,
                                struct tarn_table_info **out, size_t *count)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    *count = 0;
    database = tarn_arena_copy(op->arena, database);
    pthread_mutex_lock(&catalog->lock);
    struct tarn_table_info *list = tarn_arena_calloc(
        op->arena, tarn_map_count(catalog->by_name) + tarn_map_count(catalog->entries) + 1,
        sizeof *list);
    while (tarn_map_next(catalog->by_name, &cursor, &key, &value))
        *count += tarn_table_branch(value)[0] == '\0' &&
                  last_one(op, database, key, tarn_table_uuid(value), &list[*count]);
    cursor = 0;
    while (of_all_kinds && tarn_map_next(catalog->entries, &cursor, &key, &value))
        *count += last_one(op, database, key, value, &list[*count]);
    pthread_mutex_unlock(&catalog->lock);
    qsort(list, *count, sizeof *list, by_name);
    *out = list;
}

/* Was the store found away, by `consumed` or before? */
static bool is_away(const struct tarn_op *op, struct tarn_status **consumed)
{
    bool away = op->stale_ms > 0 || tarn_store_is_away(*consumed);
    if (away)
        tarn_status_free(tarn_move(*consumed));
    return away;
}

struct tarn_status *tarn_database_list_or_last(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_database_info **out, size_t *count)
{
    struct tarn_status *s =
        op->stale_ms > 0 ? TARN_OK : tarn_database_list(op, catalog, out, count);
    if (!is_away(op, &s))
        return s;
    last_databases(op, catalog, out, count);
    return TARN_OK;
}

struct tarn_status *tarn_catalog_tables_or_last(struct tarn_op *op, struct tarn_catalog *catalog,
                                                struct tarn_slice database,
                                                struct tarn_table_info **out, size_t *count)
{
    struct tarn_status *s =
        op->stale_ms > 0 ? TARN_OK : tarn_catalog_tables(op, catalog, database, out, count);
    if (!is_away(op, &s))
        return s;
    tarn_catalog__known_tables(op, catalog, database, true, out, count);
    pthread_mutex_lock(&catalog->lock);
    say_age(op, catalog);
    pthread_mutex_unlock(&catalog->lock);
    return TARN_OK;
}

struct tarn_status *tarn_catalog_table_or_last(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_slice database, struct tarn_slice name,
                                               struct tarn_slice uuid, struct tarn_table **out)
{
    struct tarn_status *s =
        op->stale_ms > 0 ? TARN_OK : tarn_catalog_table(op, catalog, database, name, uuid, out);
    if (!is_away(op, &s))
        return s;
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *table = tarn_catalog__known(catalog, database, name);
    if (table == NULL || (uuid.size > 0 && !tarn_slice_is(uuid, tarn_table_uuid(table)) &&
                          !tarn_slice_is(uuid, tarn_table_main_uuid(table))))
        return tarn_status_new(TARN_STORE_UNAVAILABLE,
                               "table %.*s.%.*s isn't known, and the store is away",
                               TARN_SLICE_ARG(database), TARN_SLICE_ARG(name));
    op->stale_ms = TARN_MAX(op->stale_ms, tarn_table_age_ms(table));
    *out = tarn_move(table);
    return TARN_OK;
}

/* --- what others took away --- */

struct tarn_status *tarn_catalog__forget_vanished(struct tarn_op *op, struct tarn_catalog *catalog,
                                                  struct tarn_slice database,
                                                  const struct tarn_table_info *list, size_t count)
{
    struct tarn_table_info *known;
    size_t known_count, at = 0;
    tarn_catalog__known_tables(op, catalog, database, false, &known, &known_count);
    for (size_t i = 0; i < known_count; i++) { /* both are in order */
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
        while (at < count && tarn_slice_compare(list[at].name, known[i].name) < 0)
            at++;
        if (at < count && tarn_slice_equal(list[at].name, known[i].name))
            continue;
        /* A list may be short: the table's own object tells whether it is gone. */
        tarn_exec_lock(&catalog->change);
        struct tarn_status *s =
            tarn_catalog__find_again(op, catalog, database, known[i].name, &table);
        pthread_mutex_unlock(&catalog->change);
        TARN_TRY(s);
    }
    return TARN_OK;
}

/* Databases of tables that are known, each once, which aren't among the names. */
static size_t lost_databases(struct tarn_op *op, struct tarn_catalog *catalog,
                             const struct tarn_slice *names, size_t count, struct tarn_slice **out)
{
    size_t cursor = 0, lost_count = 0;
    struct tarn_slice key;
    void *table;
    TARN_OWN(tarn_map_drop) struct tarn_map *seen = tarn_map_new();
    for (size_t i = 0; i < count; i++)
        tarn_map_set(seen, names[i], seen);
    pthread_mutex_lock(&catalog->lock);
    struct tarn_slice *lost =
        tarn_arena_calloc(op->arena, tarn_map_count(catalog->by_name) + 1, sizeof *lost);
    while (tarn_map_next(catalog->by_name, &cursor, &key, &table)) {
        struct tarn_slice database =
            tarn_slice_of(key.data, strnlen((const char *)key.data, key.size));
        if (tarn_map_find(seen, database) != NULL)
            continue;
        tarn_map_set(seen, database, seen);
        lost[lost_count++] = tarn_arena_copy(op->arena, database);
    }
    pthread_mutex_unlock(&catalog->lock);
    *out = lost;
    return lost_count;
}

struct tarn_status *tarn_catalog__forget_databases(struct tarn_op *op, struct tarn_catalog *catalog,
                                                   const struct tarn_slice *names, size_t count)
{
    struct tarn_slice *lost;
    size_t lost_count = lost_databases(op, catalog, names, count, &lost);
    for (size_t i = 0; i < lost_count; i++)
        TARN_TRY(tarn_catalog__forget_vanished(op, catalog, lost[i], NULL, 0));
    return TARN_OK;
}
