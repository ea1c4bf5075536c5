#include "hms/internal.h"

#include <pthread.h>
#include <pwd.h>
#include <unistd.h>

/*
 * Passes, one at a time.
 *
 *           +--- something changed, and it is time ---> small pass --+
 *   idle ---+--- start, check_ms over, was away ------> check -------+--> idle
 *                                                                    +--> (it failed) idle, back-off, then a check
 *
 * A small pass goes by what was pushed before (`known`) and by the catalog's memory, and asks the metastore only about what
 * differs. A check asks the store which tables there are, and the metastore about each of them.
 *
 * `tick` is a timer's job that mostly finds nothing to do. A pass runs in it; others that come meanwhile see `running`.
 * `known` and the client belong to the pass, everything else is under the lock.
 */

#define TICK_MS 250
#define BACK_OFF_MIN_MS 1000
#define BACK_OFF_MAX_MS 60000
#define REST_FACTOR                                                                                \
    10 /* commits alone bring a pass no sooner than so many times what the last one took, */
#define REST_MAX_MS 30000 /* but for this */
/* How soon commits are looked at where no table has partitions there: they could only bring another program's schema. */
#define COMMITS_IDLE_MS 10000

struct tarn_hms {
    struct tarn_hms_options options;
    char *uri, *user;
    struct tarn_hms__client client;
    struct tarn_map *tables, *databases; /* known: "db\0table", "db" -> struct tarn_hms__known */
    bool swept; /* a check of this process has looked at all databases there */

    pthread_mutex_t lock; /* guards what follows */
    struct tarn_timer *timer;
    struct tarn_op stop; /* cancelled when it ends */
    bool running, has_partitions, changed, committed, check_due;
    int64_t checked_ms, not_before_ms, back_off_ms, pass_ended_ms,
        rest_ms; /* monotonic; rest: a time */
    bool down;
    char *failure;
    int64_t in_step_ms, table_count, database_count, refused_count;
    struct tarn_hms_problem *problems; /* owned, with their strings */
    size_t problem_count;
};

/* --- what is known --- */

static struct tarn_hms__known *known_of(struct tarn_map *map, struct tarn_slice key)
{
    struct tarn_hms__known *known = tarn_map_find(map, key);
    if (known == NULL) {
        known = tarn_calloc(1, sizeof *known);
        tarn_map_set(map, key, known);
    }
    return known;
}

static void forget(struct tarn_map *map, struct tarn_slice key)
{
    struct tarn_hms__known *known = tarn_map_remove(map, key);
    if (known != NULL)
        free(known->problem);
    free(known);
}

static void free_known(struct tarn_map *map)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *known;
    while (tarn_map_next(map, &cursor, &key, &known)) {
        free(((struct tarn_hms__known *)known)->problem);
        free(known);
    }
    tarn_map_free(map);
}

static struct tarn_slice table_key(struct tarn_arena *arena, struct tarn_slice database,
                                   struct tarn_slice name)
{
    uint8_t *key = tarn_arena_alloc(arena, database.size + 1 + name.size);
    memcpy(key, database.data, database.size);
    key[database.size] = 0;
    memcpy(key + database.size + 1, name.data, name.size);
    return tarn_slice_of(key, database.size + 1 + name.size);
}

static bool is_in_database(struct tarn_slice key, struct tarn_slice database,
                           struct tarn_slice *name)
{
    if (key.size <= database.size || key.data[database.size] != 0 ||
        !tarn_slice_starts_with(key, database))
        return false;
    *name = tarn_slice_of(key.data + database.size + 1, key.size - database.size - 1);
    return true;
}

/* --- one pass --- */

struct pass {
    struct tarn_hms *hms;
    struct tarn_op *op;
    bool check, names_changed; /* since the last pass something else than commits came */
    struct tarn_slice warehouse;
};

static struct tarn_hms__push push_with(struct pass *p, struct tarn_op *op)
{
    return (struct tarn_hms__push){.op = op,
                                   .client = &p->hms->client,
                                   .warehouse = p->warehouse,
                                   .user = p->hms->user,
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
static struct tarn_status *open_item(struct pass *p, struct tarn_hms__push *push, struct item *item,
                                     bool *there)
{
    struct tarn_op *op = push->op;
    op->stale_ms = p->check ? 0 : 1; /* a small pass goes by what is remembered */
    struct tarn_status *s =
        tarn_catalog_table_or_last(op, p->hms->options.catalog, item->info.database,
                                   item->info.name, tarn_slice_str(item->info.uuid), &item->table);
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

static struct tarn_status *push_items(struct pass *p, struct tarn_hms__push *push,
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
static struct tarn_status *push_some(struct pass *p, const struct tarn_table_info *infos,
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
        item->known =
            known_of(p->hms->tables, table_key(op.arena, infos[i].database, infos[i].name));
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
static struct tarn_status *remove_some(struct pass *p, struct tarn_slice database,
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
static struct tarn_status *list_gone(struct pass *p, struct tarn_slice database,
                                     const struct tarn_map *here, struct tarn_slice **out,
                                     size_t *count)
{
    struct tarn_slice *there = NULL, key, name;
    size_t there_count = 0, cursor = 0;
    void *known;
    if (p->check)
        TARN_TRY(tarn_hms__list_tables(p->op, &p->hms->client, database, &there, &there_count));
    struct tarn_slice *names = tarn_arena_calloc(
        p->op->arena, there_count + tarn_map_count(p->hms->tables) + 1, sizeof *names);
    *count = 0;
    for (size_t i = 0; i < there_count; i++)
        if (tarn_map_find(here, there[i]) == NULL)
            names[(*count)++] = there[i];
    while (tarn_map_next(p->hms->tables, &cursor, &key, &known)) {
        if (!is_in_database(key, database, &name) || tarn_map_find(here, name) != NULL)
            continue;
        if (!p->check && ((struct tarn_hms__known *)known)->pushed)
            names[(*count)++] = tarn_arena_copy(p->op->arena, name);
        else
            forget(p->hms->tables, tarn_arena_copy(p->op->arena, key));
    }
    *out = names;
    return TARN_OK;
}

static struct tarn_status *remove_gone(struct pass *p, struct tarn_slice database,
                                       const struct tarn_map *here)
{
    struct tarn_slice *names;
    size_t count;
    TARN_TRY(list_gone(p, database, here, &names, &count));
    for (size_t i = 0; i < count; i += HMS_TABLES_AT_ONCE)
        TARN_TRY(
            remove_some(p, database, names + i, TARN_MIN(count - i, (size_t)HMS_TABLES_AT_ONCE)));
    for (size_t i = 0; i < count && !p->check; i++)
        forget(p->hms->tables, table_key(p->op->arena, database, names[i]));
    return TARN_OK;
}

static struct tarn_status *list_here(struct pass *p, struct tarn_slice database,
                                     struct tarn_table_info **out, size_t *count)
{
    struct tarn_table_info *all;
    size_t all_count;
    p->op->stale_ms = p->check ? 0 : 1;
    struct tarn_status *s =
        p->check ? tarn_catalog_tables(p->op, p->hms->options.catalog, database, &all, &all_count)
                 : tarn_catalog_tables_or_last(p->op, p->hms->options.catalog, database, &all,
                                               &all_count);
    p->op->stale_ms = 0;
    TARN_TRY(s);
    *count = 0;
    for (size_t i = 0; i < all_count; i++)
        if (memchr(all[i].name.data, '$', all[i].name.size) == NULL) /* a branch */
            all[(*count)++] = all[i];
    *out = all;
    return TARN_OK;
}

static struct tarn_status *pass_tables(struct pass *p, struct tarn_slice database)
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
static struct tarn_status *push_database(struct pass *p, struct tarn_hms__push *push,
                                         struct tarn_slice name, struct tarn_hms__known *known)
{
    struct tarn_database_info info;
    if (!p->check && !p->names_changed && known->pushed)
        return TARN_OK;
    TARN_TRY(tarn_database_get(p->op, p->hms->options.catalog, name, &info));
    return tarn_hms__push_database(push, &info, known);
}

static struct tarn_status *pass_database(struct pass *p, struct tarn_slice name)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, p->op);
    struct pass mine = *p;
    mine.op = &op;
    struct tarn_hms__push push = push_with(&mine, &op);
    struct tarn_hms__known *known = known_of(p->hms->databases, name);
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

static void forget_database(struct pass *p, struct tarn_slice database)
{
    size_t cursor = 0;
    struct tarn_slice key, name;
    void *known;
    while (tarn_map_next(p->hms->tables, &cursor, &key, &known))
        if (is_in_database(key, database, &name))
            forget(p->hms->tables, tarn_arena_copy(p->op->arena, key));
    forget(p->hms->databases, database);
}

static struct tarn_status *remove_database(struct pass *p, struct tarn_slice name, bool is_known)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_hms__database have;
    bool found;
    tarn_op_init_child(&op, p->op);
    struct tarn_hms__push push = push_with(p, &op);
    if (p->hms->swept && !is_known) { /* another's, unless it is marked */
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

static struct tarn_status *remove_databases(struct pass *p, const struct tarn_map *here)
{
    struct tarn_slice *there = NULL, name;
    size_t there_count = 0, cursor = 0;
    void *known;
    if (p->check)
        TARN_TRY(tarn_hms__list_databases(p->op, &p->hms->client, &there, &there_count));
    for (size_t i = 0; i < there_count; i++)
        if (tarn_map_find(here, there[i]) == NULL &&
            tarn_map_find(p->hms->databases, there[i]) == NULL)
            TARN_TRY(remove_database(p, there[i], false));
    while (tarn_map_next(p->hms->databases, &cursor, &name, &known)) {
        if (tarn_map_find(here, name) != NULL)
            continue;
        name = tarn_arena_copy(p->op->arena, name);
        if (tarn_hms__name_fits(name))
            TARN_TRY(remove_database(p, name, true));
        forget_database(p, name);
    }
    return TARN_OK;
}

static struct tarn_status *run_pass(struct pass *p)
{
    TARN_OWN(tarn_map_drop) struct tarn_map *here = tarn_map_new();
    struct tarn_database_info *databases;
    size_t count;
    TARN_TRY(tarn_hms__open(p->op, &p->hms->client));
    TARN_TRY(tarn_database_list(p->op, p->hms->options.catalog, &databases, &count));
    for (size_t i = 0; i < count; i++) {
        tarn_map_set(here, databases[i].name, &databases[i]);
        TARN_TRY(pass_database(p, databases[i].name));
    }
    TARN_TRY(remove_databases(p, here));
    p->hms->swept = p->hms->swept || p->check;
    return TARN_OK;
}

/* --- what is told of a pass --- */

struct tally {
    int64_t databases, tables, refused;
    bool has_partitions;
    struct tarn_hms_problem *problems;
    size_t problem_count;
};

/* How many of them are there. */
static int64_t count_known(const struct tarn_map *map, struct tally *tally)
{
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    int64_t pushed = 0;
    while (tarn_map_next(map, &cursor, &key, &value)) {
        const struct tarn_hms__known *known = value;
        tally->has_partitions = tally->has_partitions || known->partitions != 0;
        pushed += known->pushed && known->problem == NULL;
        if (known->problem == NULL)
            continue;
        tally->refused++;
        if (tally->problem_count == TARN_HMS_PROBLEMS_MAX)
            continue;
        char *name = tarn_slice_dup(key); /* "db\0table" or "db" */
        for (size_t i = 0; i < key.size; i++)
            name[i] = name[i] == '\0' ? '.' : name[i];
        tally->problems[tally->problem_count++] =
            (struct tarn_hms_problem){name, tarn_strdup(known->problem)};
    }
    return pushed;
}

static void free_problems(struct tarn_hms_problem *problems, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)problems[i].table);
        free((char *)(uintptr_t)problems[i].problem);
    }
    free(problems);
}

static void make_tally(const struct tarn_hms *hms, struct tally *out)
{
    *out = (struct tally){.problems = tarn_calloc(TARN_HMS_PROBLEMS_MAX, sizeof *out->problems)};
    out->databases = count_known(hms->databases, out);
    out->tables = count_known(hms->tables, out);
}

/* With the lock. */
static void keep_tally(struct tarn_hms *hms, const struct tally *tally)
{
    hms->database_count = tally->databases;
    hms->table_count = tally->tables;
    hms->refused_count = tally->refused;
    hms->has_partitions = tally->has_partitions;
    free_problems(hms->problems, hms->problem_count);
    hms->problems = tally->problems;
    hms->problem_count = tally->problem_count;
    tarn_metric_set(TARN_M_HMS_TABLES, NULL, (double)hms->table_count);
    tarn_metric_set(TARN_M_HMS_REFUSED, NULL, (double)hms->refused_count);
}

/* With the lock. Consumes the status. */
static void pass_failed(struct tarn_hms *hms, struct tarn_status *s)
{
    if (tarn_op_is_cancelled(&hms->stop)) {
        tarn_status_free(s);
        return;
    }
    hms->back_off_ms = TARN_MIN(TARN_MAX(hms->back_off_ms * 2, (int64_t)BACK_OFF_MIN_MS),
                                (int64_t)BACK_OFF_MAX_MS);
    hms->not_before_ms = tarn_clock_mono_ms() + hms->back_off_ms;
    hms->check_due = true;
    if (!hms->down || strcmp(hms->failure, tarn_status_message(s)) != 0)
        tarn_log(NULL, TARN_WARN, "hms.down", "uri=%s reason=%s error=%s",
                 tarn_log_quote(NULL, hms->uri), tarn_reason_name(tarn_status_reason(s)),
                 tarn_log_quote(NULL, tarn_status_message(s)));
    free(hms->failure);
    hms->failure = tarn_strdup(tarn_status_message(s));
    hms->down = true;
    tarn_metric_add(TARN_M_HMS_FAILURES, "unavailable", 1);
    tarn_status_free(s);
}

/* With the lock. */
static void pass_went_well(struct tarn_hms *hms, bool check, int64_t took_ms)
{
    int64_t now_ms = tarn_clock_mono_ms();
    if (hms->down || hms->in_step_ms == 0)
        tarn_log(NULL, TARN_INFO, "hms.in_step",
                 "uri=%s databases=%" PRId64 " tables=%" PRId64 " refused=%" PRId64,
                 tarn_log_quote(NULL, hms->uri), hms->database_count, hms->table_count,
                 hms->refused_count);
    hms->down = false;
    hms->back_off_ms = 0;
    hms->not_before_ms = 0;
    hms->rest_ms = TARN_MIN(took_ms * REST_FACTOR, (int64_t)REST_MAX_MS);
    hms->in_step_ms = tarn_clock_wall_ms();
    if (check)
        hms->checked_ms = now_ms;
}

static void end_pass(struct tarn_hms *hms, bool check, int64_t began_ms, struct tarn_status *s)
{
    struct tally tally;
    make_tally(hms, &tally); /* committers take the lock: it is held for no walk */
    pthread_mutex_lock(&hms->lock);
    keep_tally(hms, &tally);
    hms->pass_ended_ms = tarn_clock_mono_ms();
    if (s != TARN_OK)
        pass_failed(hms, s);
    else
        pass_went_well(hms, check, hms->pass_ended_ms - began_ms);
    tarn_metric_set(TARN_M_HMS_UP, NULL, hms->down ? 0 : 1);
    hms->running = false;
    pthread_mutex_unlock(&hms->lock);
}

/* --- when --- */

/* With the lock: is a pass due? It has the marks then. */
static bool begin_pass(struct tarn_hms *hms, bool *check, bool *names_changed)
{
    int64_t now_ms = tarn_clock_mono_ms();
    int64_t rest_ms = TARN_MAX(hms->rest_ms, (int64_t)(hms->has_partitions ? 0 : COMMITS_IDLE_MS));
    bool commits = hms->committed && now_ms - hms->pass_ended_ms >= rest_ms;
    *check = hms->check_due || now_ms - hms->checked_ms >= hms->options.check_ms;
    if (hms->running || tarn_op_is_cancelled(&hms->stop) || now_ms < hms->not_before_ms ||
        !(*check || hms->changed || commits))
        return false;
    *names_changed = hms->changed;
    hms->running = true;
    hms->changed = hms->committed = hms->check_due = false;
    return true;
}

static void tick(void *arg)
{
    struct tarn_hms *hms = arg;
    bool check, names_changed;
    pthread_mutex_lock(&hms->lock);
    bool due = begin_pass(hms, &check, &names_changed);
    pthread_mutex_unlock(&hms->lock);
    if (!due)
        return;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, &hms->stop);
    struct pass pass = {hms, &op, check, names_changed,
                        tarn_slice_str(tarn_store_uri(hms->options.store))};
    int64_t began_ms = tarn_clock_mono_ms();
    tarn_exec_wait_begin(); /* most of it is */
    struct tarn_status *s = run_pass(&pass);
    tarn_exec_wait_end();
    end_pass(hms, check, began_ms, s);
}

void tarn_hms_notice(struct tarn_hms *hms, struct tarn_table *table TARN_UNUSED)
{
    pthread_mutex_lock(&hms->lock);
    hms->committed = true;
    pthread_mutex_unlock(&hms->lock);
}

void tarn_hms_catalog_changed(struct tarn_hms *hms)
{
    pthread_mutex_lock(&hms->lock);
    hms->changed = true;
    pthread_mutex_unlock(&hms->lock);
}

/* --- from beginning to end --- */

static char *account(void)
{
    struct passwd entry, *found = NULL;
    char buffer[4096];
    if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != NULL)
        return tarn_strdup(found->pw_name);
    return tarn_strdup("tarn");
}

struct tarn_hms *tarn_hms_new(const struct tarn_hms_options *options)
{
    struct tarn_hms *hms = tarn_calloc(1, sizeof *hms);
    hms->options = *options;
    hms->uri = tarn_strdup(options->uri);
    hms->user = options->user[0] == '\0' ? account() : tarn_strdup(options->user);
    hms->client = (struct tarn_hms__client){.user = hms->user,
                                            .connect_timeout_ms = options->connect_timeout_ms,
                                            .timeout_ms = options->timeout_ms};
    /* It was checked before; an empty list says at the first pass that nobody is there. */
    tarn_status_free(
        tarn_hms__parse_uri(hms->uri, &hms->client.addresses, &hms->client.address_count));
    hms->tables = tarn_map_new();
    hms->databases = tarn_map_new();
    hms->check_due = true;
    pthread_mutex_init(&hms->lock, NULL);
    tarn_op_init(&hms->stop);
    hms->timer = tarn_timer_new(options->exec, 1, TICK_MS, tick, hms);
    return hms;
}

void tarn_hms_free(struct tarn_hms *hms)
{
    if (hms == NULL)
        return;
    tarn_op_cancel(&hms->stop);
    tarn_timer_cancel(hms->timer);
    tarn_hms__client_fini(&hms->client);
    free_known(hms->tables);
    free_known(hms->databases);
    free_problems(hms->problems, hms->problem_count);
    tarn_op_fini(&hms->stop);
    pthread_mutex_destroy(&hms->lock);
    free(hms->failure);
    free(hms->user);
    free(hms->uri);
    free(hms);
}

static int by_table(const void *a, const void *b)
{
    return strcmp(((const struct tarn_hms_problem *)a)->table,
                  ((const struct tarn_hms_problem *)b)->table);
}

void tarn_hms_info(struct tarn_op *op, struct tarn_hms *hms, struct tarn_hms_info *out)
{
    pthread_mutex_lock(&hms->lock);
    bool behind = hms->running || hms->changed || hms->check_due;
    *out = (struct tarn_hms_info){
        .uri = tarn_arena_str(op->arena, tarn_slice_str(hms->uri)),
        .state = hms->down              ? "down"
                 : hms->in_step_ms == 0 ? "starting"
                 : behind               ? "pushing"
                                        : "in step",
        .failure = hms->down ? tarn_arena_str(op->arena, tarn_slice_str(hms->failure)) : "",
        .in_step_ms = hms->in_step_ms,
        .database_count = hms->database_count,
        .table_count = hms->table_count,
        .refused_count = hms->refused_count,
        .problems = tarn_arena_calloc(op->arena, hms->problem_count + 1, sizeof *out->problems),
        .problem_count = hms->problem_count,
    };
    for (size_t i = 0; i < hms->problem_count; i++)
        out->problems[i] = (struct tarn_hms_problem){
            tarn_arena_str(op->arena, tarn_slice_str(hms->problems[i].table)),
            tarn_arena_str(op->arena, tarn_slice_str(hms->problems[i].problem))};
    pthread_mutex_unlock(&hms->lock);
    qsort(out->problems, out->problem_count, sizeof *out->problems, by_table);
}
