#include "hms/internal.h"

/*
 * One pass: all databases and their tables are pushed, and what is there and no more here goes. A small pass goes by what was pushed before
 * (`memory`) and by the catalog's memory, and asks the metastore only about what differs. A check asks the store which tables
 * there are, and the metastore about each of them.
 */

static struct tarn_hms__push push_with(struct tarn_hms__pass *p, struct tarn_op *op)
{
    return (struct tarn_hms__push){.op = op,
                                   .client = p->client,
                                   .warehouse = p->warehouse,
                                   .user = p->user,
                                   .check = p->check};
}

/* Is it a failure of the whole pass, which says nothing about the one table? */
static bool ends_pass(const struct tarn_status *s)
{
    enum tarn_reason reason = tarn_status_reason(s);
    return tarn_store_is_away(s) || reason == TARN_CANCELLED || reason == TARN_DEADLINE_EXCEEDED;
}

struct item { /* one table of ours */
    struct tarn_table_info info;
    struct tarn_table *table; /* owned */
    const struct tarn_table_view *view;
    struct tarn_hms__known *known;
};

static void drop_item(struct item *item)
{
    tarn_table_drop_ref(&item->table);
    tarn_table_view_drop(&item->view);
}

/* *there false: it is gone meanwhile, or can't be opened; both are looked at again. */
static struct tarn_status *open_item(struct tarn_hms__pass *p, struct tarn_hms__push *push,
                                     struct item *item, bool *there)
{
    struct tarn_op *op = push->op;
    op->stale_ms = p->check ? 0 : 1; /* a small pass goes by what is remembered */
    struct tarn_status *s =
        tarn_catalog_table_or_last(op, p->catalog, item->info.database, item->info.name,
                                   tarn_slice_str(item->info.uuid), &item->table);
    if (s == TARN_OK)
        s = p->check ? tarn_table_look(op, item->table, &item->view)
                     : tarn_table_look_or_last(op, item->table, &item->view);
    op->stale_ms = 0;
    *there = s == TARN_OK;
    if (s == TARN_OK || ends_pass(s))
        return s;
    if (tarn_status_reason(s) == TARN_TABLE_NOT_FOUND ||
        tarn_status_reason(s) == TARN_TABLE_REPLACED || !p->check) {
        tarn_status_free(s);
        return TARN_OK;
    }
    return tarn_hms__note_problem(push,
                                  tarn_arena_printf(op->arena, "%.*s.%.*s",
                                                    TARN_SLICE_ARG(item->info.database),
                                                    TARN_SLICE_ARG(item->info.name)),
                                  item->known, s);
}

static bool is_done(const struct item *item)
{
    const struct tarn_hms__known *known = item->known;
    bool same = known->schema_id == item->view->schema.id &&
                (!known->pushed || strcmp(known->uuid, item->info.uuid) == 0);
    if (known->problem != NULL)
        return same; /* refused: until it is another one, or the next check */
    int64_t snapshot_id = item->view->has_snapshot ? item->view->snapshot.id : 0;
    return known->pushed && same && (known->partitions == 0 || known->snapshot_id == snapshot_id);
}

/* What the metastore has under these names. */
static struct tarn_status *find_there(struct tarn_hms__push *push, struct tarn_slice database,
                                      const struct tarn_slice *names, size_t count,
                                      struct tarn_map **out)
{
    struct tarn_hms__table *tables;
    size_t found;
    TARN_TRY(
        tarn_hms__find_tables(push->op, push->client, database, names, count, &tables, &found));
    *out = tarn_map_new();
    for (size_t i = 0; i < found; i++)
        if (tables[i].name.data != NULL)
            tarn_map_set(*out, tables[i].name, &tables[i]);
    return TARN_OK;
}

static struct tarn_status *push_items(struct tarn_hms__pass *p, struct tarn_hms__push *push,
                                      struct tarn_slice database, struct item *items, size_t count)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *there = NULL;
    struct tarn_slice names[HMS_TABLES_AT_ONCE];
    size_t name_count = 0;
    for (size_t i = 0; i < count; i++)
        if (items[i].view != NULL && tarn_hms__name_fits(items[i].info.name))
            names[name_count++] = items[i].info.name;
    if (name_count > 0)
        TARN_TRY(find_there(push, database, names, name_count, &there));
    for (size_t i = 0; i < count; i++) {
        struct item *item = &items[i];
        if (item->view == NULL)
            continue;
        struct tarn_hms__source source = {
            .database = database,
            .name = item->info.name,
            .uuid = item->info.uuid,
            .user = push->user,
            .warehouse = p->warehouse,
            .path = tarn_table_path(item->table),
            .schema = &item->view->schema,
            .options = &item->view->options,
        };
        const struct tarn_hms__table *have =
            there == NULL ? NULL : tarn_map_find(there, item->info.name);
        TARN_TRY(tarn_hms__push_table(push, item->table, &source, have, item->known));
    }
    return TARN_OK;
}

/* At most HMS_TABLES_AT_ONCE, with memory of their own. */
static struct tarn_status *push_some(struct tarn_hms__pass *p, const struct tarn_table_info *infos,
                                     size_t count)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct item items[HMS_TABLES_AT_ONCE] = {0};
    struct tarn_status *s = TARN_OK;
    size_t n = 0;
    tarn_op_init_child(&op, p->op);
    struct tarn_hms__push push = push_with(p, &op);
    for (size_t i = 0; i < count && s == TARN_OK; i++) {
        struct item *item = &items[n];
        bool there;
        *item = (struct item){.info = infos[i]};
        item->known = tarn_hms__known_of(
            p->memory->tables, tarn_hms__table_key(op.arena, infos[i].database, infos[i].name));
        s = open_item(p, &push, item, &there);
        if (s == TARN_OK && there && (p->check || !is_done(item)))
            n++;
        else
            drop_item(item);
    }
    if (s == TARN_OK && n > 0)
        s = push_items(p, &push, infos[0].database, items, n);
    for (size_t i = 0; i < n; i++)
        drop_item(&items[i]);
    return s;
}

/* Tables there by these names, which ours don't have: those that are ours by their mark go. */
static struct tarn_status *remove_some(struct tarn_hms__pass *p, struct tarn_slice database,
                                       const struct tarn_slice *names, size_t count)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_hms__table *tables;
    size_t found;
    tarn_op_init_child(&op, p->op);
    struct tarn_hms__push push = push_with(p, &op);
    TARN_TRY(tarn_hms__find_tables(&op, push.client, database, names, count, &tables, &found));
    for (size_t i = 0; i < found; i++)
        TARN_TRY(tarn_hms__remove_table(&push, &tables[i], "gone"));
    return TARN_OK;
}

/* Names that aren't those of tables that are here: of the metastore at a check, else of what was pushed. */
static struct tarn_status *list_gone(struct tarn_hms__pass *p, struct tarn_slice database,
                                     const struct tarn_map *here, struct tarn_slice **out,
                                     size_t *count)
{
    struct tarn_slice *there = NULL, key, name;
    size_t there_count = 0, cursor = 0;
    void *known;
    if (p->check)
        TARN_TRY(tarn_hms__list_tables(p->op, p->client, database, &there, &there_count));
    struct tarn_slice *names = tarn_arena_calloc(
        p->op->arena, there_count + tarn_map_count(p->memory->tables) + 1, sizeof *names);
    *count = 0;
    for (size_t i = 0; i < there_count; i++)
        if (tarn_map_find(here, there[i]) == NULL)
            names[(*count)++] = there[i];
    while (tarn_map_next(p->memory->tables, &cursor, &key, &known)) {
        if (!tarn_hms__is_in_database(key, database, &name) || tarn_map_find(here, name) != NULL)
            continue;
        if (!p->check && ((struct tarn_hms__known *)known)->pushed)
            names[(*count)++] = tarn_arena_copy(p->op->arena, name);
        else
            tarn_hms__forget(p->memory->tables, tarn_arena_copy(p->op->arena, key));
    }
    *out = names;
    return TARN_OK;
}

static struct tarn_status *remove_gone(struct tarn_hms__pass *p, struct tarn_slice database,
                                       const struct tarn_map *here)
{
    struct tarn_slice *names;
    size_t count;
    TARN_TRY(list_gone(p, database, here, &names, &count));
    for (size_t i = 0; i < count; i += HMS_TABLES_AT_ONCE)
        TARN_TRY(
            remove_some(p, database, names + i, TARN_MIN(count - i, (size_t)HMS_TABLES_AT_ONCE)));
    for (size_t i = 0; i < count && !p->check; i++)
        tarn_hms__forget(p->memory->tables, tarn_hms__table_key(p->op->arena, database, names[i]));
    return TARN_OK;
}

static struct tarn_status *list_here(struct tarn_hms__pass *p, struct tarn_slice database,
                                     struct tarn_table_info **out, size_t *count)
{
    struct tarn_table_info *all;
    size_t all_count;
    p->op->stale_ms = p->check ? 0 : 1;
    struct tarn_status *s =
        p->check ? tarn_catalog_tables(p->op, p->catalog, database, &all, &all_count)
                 : tarn_catalog_tables_or_last(p->op, p->catalog, database, &all, &all_count);
    p->op->stale_ms = 0;
    TARN_TRY(s);
    *count = 0;
    for (size_t i = 0; i < all_count; i++)
        if (memchr(all[i].name.data, '$', all[i].name.size) == NULL) /* a branch */
            all[(*count)++] = all[i];
    *out = all;
    return TARN_OK;
}

static struct tarn_status *pass_tables(struct tarn_hms__pass *p, struct tarn_slice database)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *here = tarn_map_new();
    struct tarn_table_info *tables;
    size_t count;
    TARN_TRY(list_here(p, database, &tables, &count));
    for (size_t i = 0; i < count; i++)
        tarn_map_set(here, tables[i].name, &tables[i]);
    for (size_t i = 0; i < count; i += HMS_TABLES_AT_ONCE)
        TARN_TRY(push_some(p, tables + i, TARN_MIN(count - i, (size_t)HMS_TABLES_AT_ONCE)));
    return remove_gone(p, database, here);
}

/* What it is now, and so in the metastore. */
static struct tarn_status *push_database(struct tarn_hms__pass *p, struct tarn_hms__push *push,
                                         struct tarn_slice name, struct tarn_hms__known *known)
{
    struct tarn_database_info info;
    if (!p->check && !p->names_changed && known->pushed)
        return TARN_OK;
    TARN_TRY(tarn_database_get(p->op, p->catalog, name, &info));
    return tarn_hms__push_database(push, &info, known);
}

static struct tarn_status *pass_database(struct tarn_hms__pass *p, struct tarn_slice name)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, p->op);
    struct tarn_hms__pass mine = *p;
    mine.op = &op;
    struct tarn_hms__push push = push_with(&mine, &op);
    struct tarn_hms__known *known = tarn_hms__known_of(p->memory->databases, name);
    struct tarn_status *s = push_database(&mine, &push, name, known);
    if (s == TARN_OK && known->problem == NULL)
        s = pass_tables(&mine, name);
    if (tarn_status_reason(s) ==
        TARN_DATABASE_NOT_FOUND) { /* dropped just now: the next pass sees it */
        tarn_status_free(s);
        return TARN_OK;
    }
    return ends_pass(s) ? s
                        : tarn_hms__note_problem(&push, tarn_arena_str(op.arena, name), known, s);
}

/* --- databases that aren't here --- */

static void forget_database(struct tarn_hms__pass *p, struct tarn_slice database)
{
    size_t cursor = 0;
    struct tarn_slice key, name;
    void *known;
    while (tarn_map_next(p->memory->tables, &cursor, &key, &known))
        if (tarn_hms__is_in_database(key, database, &name))
            tarn_hms__forget(p->memory->tables, tarn_arena_copy(p->op->arena, key));
    tarn_hms__forget(p->memory->databases, database);
}

static struct tarn_status *remove_database(struct tarn_hms__pass *p, struct tarn_slice name,
                                           bool is_known)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_hms__database have;
    bool found;
    tarn_op_init_child(&op, p->op);
    struct tarn_hms__push push = push_with(p, &op);
    if (p->memory->swept && !is_known) { /* another's, unless it is marked */
        TARN_TRY(tarn_hms__find_database(&op, push.client, name, &found, &have));
        if (!found || !tarn_hms__is_ours(have.parameters, have.parameter_count, p->warehouse))
            return TARN_OK;
    }
    struct tarn_status *s = tarn_hms__remove_database(&push, name);
    if (tarn_status_reason(s) == TARN_METASTORE_REFUSED) {
        tarn_log_status(&op, TARN_WARN, "hms.not_dropped", s);
        return TARN_OK;
    }
    return s;
}

static struct tarn_status *remove_databases(struct tarn_hms__pass *p, const struct tarn_map *here)
{
    struct tarn_slice *there = NULL, name;
    size_t there_count = 0, cursor = 0;
    void *known;
    if (p->check)
        TARN_TRY(tarn_hms__list_databases(p->op, p->client, &there, &there_count));
    for (size_t i = 0; i < there_count; i++)
        if (tarn_map_find(here, there[i]) == NULL &&
            tarn_map_find(p->memory->databases, there[i]) == NULL)
            TARN_TRY(remove_database(p, there[i], false));
    while (tarn_map_next(p->memory->databases, &cursor, &name, &known)) {
        if (tarn_map_find(here, name) != NULL)
            continue;
        name = tarn_arena_copy(p->op->arena, name);
        if (tarn_hms__name_fits(name))
            TARN_TRY(remove_database(p, name, true));
        forget_database(p, name);
    }
    return TARN_OK;
}

struct tarn_status *tarn_hms__run_pass(struct tarn_hms__pass *p)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *here = tarn_map_new();
    struct tarn_database_info *databases;
    size_t count;
    TARN_TRY(tarn_hms__open(p->op, p->client));
    TARN_TRY(tarn_database_list(p->op, p->catalog, &databases, &count));
    for (size_t i = 0; i < count; i++) {
        tarn_map_set(here, databases[i].name, &databases[i]);
        TARN_TRY(pass_database(p, databases[i].name));
    }
    TARN_TRY(remove_databases(p, here));
    p->memory->swept = p->memory->swept || p->check;
    return TARN_OK;
}
