#include "catalog/internal.h"
#include "table/refs.h"

/* Branches of tables: open ones are known under "t$branch_x", beside the tables, and each is one to all who use it. */

#define MARK "$branch_"

void tarn_catalog_split_branch(struct tarn_slice object, struct tarn_slice *name,
                               struct tarn_slice *branch)
{
    struct tarn_slice whole = object;
    const uint8_t *mark =
        object.size == 0 ? NULL : memmem(object.data, object.size, MARK, strlen(MARK));
    *branch = tarn_slice_of("", 0);
    *name = whole;
    if (mark == NULL)
        return;
    *name = tarn_slice_of(whole.data, (size_t)(mark - whole.data));
    *branch = tarn_slice_of(mark + strlen(MARK), whole.size - name->size - strlen(MARK));
    if (branch->size == 4 && strncasecmp((const char *)branch->data, "main", 4) == 0)
        branch->size = 0;
    else if (branch->size == 0) /* "t$branch_": no name of anything */
        *name = whole;
}

static struct tarn_slice object_name(struct tarn_op *op, struct tarn_slice name,
                                     struct tarn_slice branch)
{
    return tarn_slice_str(tarn_arena_printf(op->arena, "%.*s" MARK "%.*s", TARN_SLICE_ARG(name),
                                            TARN_SLICE_ARG(branch)));
}

/* It was dropped, moved, or another table has its place. Holds `change`. */
static struct tarn_status *close_branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                        struct tarn_slice database, struct tarn_slice object,
                                        bool forget)
{
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *table = tarn_catalog__known(catalog, database, object);
    if (table == NULL)
        return TARN_OK;
    tarn_catalog__forget(catalog, database, object);
    return tarn_table_retire(op, table, forget);
}

static struct tarn_status *open_branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_table *main, struct tarn_slice database,
                                       struct tarn_slice object, struct tarn_slice branch,
                                       struct tarn_table **out)
{
    *out = tarn_catalog__known(catalog, database, object);
    if (*out != NULL)
        return TARN_OK;
    const char *name = tarn_arena_printf(op->arena, "%s" MARK "%.*s", tarn_table_name(main),
                                         TARN_SLICE_ARG(branch));
    TARN_TRY(tarn_table_open_branch(op, tarn_table_env(main), tarn_table_path(main),
                                    tarn_table_uuid(main), branch, name, out));
    tarn_table_set_names(*out, database, object);
    tarn_table_set_compacted(*out, tarn_table_is_compacted(main));
    tarn_catalog__remember(catalog, database, object, *out);
    return TARN_OK;
}

struct tarn_status *tarn_catalog__branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                         struct tarn_table *main, struct tarn_slice branch,
                                         struct tarn_table **out)
{
    struct tarn_slice database, name;
    bool has;
    tarn_table_names(op, main, &database, &name);
    struct tarn_slice object = object_name(op, name, branch);
    TARN_TRY(tarn_table_has_branch(op, main, branch, &has));
    TARN_OWN(tarn_table_drop_ref)
    struct tarn_table *known = has ? tarn_catalog__known(catalog, database, object) : NULL;
    if (known != NULL && strcmp(tarn_table_main_uuid(known), tarn_table_uuid(main)) == 0) {
        *out = tarn_move(known);
        return TARN_OK;
    }
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = TARN_OK;
    if (!has || known != NULL) /* others dropped it, or the table */
        s = close_branch(op, catalog, database, object, true);
    if (s == TARN_OK && has)
        s = open_branch(op, catalog, main, database, object, branch, out);
    pthread_mutex_unlock(&catalog->change);
    if (s != TARN_OK || has)
        return s;
    return tarn_status_new(TARN_BRANCH_NOT_FOUND, "table %s has no branch %.*s",
                           tarn_table_name(main), TARN_SLICE_ARG(branch));
}

struct tarn_status *tarn_catalog__close_branches(struct tarn_op *op, struct tarn_catalog *catalog,
                                                 struct tarn_table *table, bool forget)
{
    struct tarn_slice database, name, *branches, *open;
    size_t count, open_count;
    tarn_table_names(op, table, &database, &name);
    tarn_catalog__known_branches(op, catalog, database, name, &open, &open_count);
    for (size_t i = 0; i < open_count; i++)
        TARN_TRY(close_branch(op, catalog, database, open[i], forget));
    if (!forget)
        return TARN_OK;
    struct tarn_status *s = tarn_table_branches(op, table, &branches, &count);
    for (size_t i = 0; s == TARN_OK && i < count; i++)
        s = tarn_table_forget_branch(catalog->env, tarn_table_uuid(table), branches[i]);
    if (tarn_store_is_away(s)) /* what is left in the state is of an uuid that nobody has again */
        tarn_status_drop(&s);
    return s;
}

/* --- create, drop, rename, fast-forward --- */

struct tarn_status *tarn_catalog_check_main(const struct tarn_table *table, const char *else_what)
{
    return tarn_table_branch(table)[0] == '\0'
               ? TARN_OK
               : tarn_status_new(TARN_INVALID_ARGUMENT, "%s is a branch: %s",
                                 tarn_table_name(table), else_what);
}

static struct tarn_status *check_main(const struct tarn_table *table)
{
    return tarn_catalog_check_main(table, "it has none of its own");
}

static struct tarn_status *create_branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                         struct tarn_table *table, struct tarn_slice branch,
                                         struct tarn_slice tag)
{
    bool has;
    TARN_TRY(tarn_table_has_branch(op, table, branch, &has));
    if (!has) /* what one of that name, dropped by others, left */
        TARN_TRY(tarn_catalog__forget_notes(op, catalog, table, branch));
    return tarn_table_create_branch(op, table, branch, tag);
}

struct tarn_status *tarn_catalog_create_branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_table *table, struct tarn_slice branch,
                                               struct tarn_slice tag)
{
    TARN_TRY(check_main(table));
    TARN_TRY(tarn_branch_check_name(branch));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = create_branch(op, catalog, table, branch, tag);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *drop_branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                       struct tarn_table *table, struct tarn_slice branch)
{
    struct tarn_slice database, name;
    tarn_table_names(op, table, &database, &name);
    TARN_TRY(close_branch(op, catalog, database, object_name(op, name, branch), true));
    TARN_TRY(tarn_table_remove_branch(op, table, branch));
    TARN_TRY(tarn_catalog__forget_notes(op, catalog, table, branch));
    return tarn_table_forget_branch(catalog->env, tarn_table_uuid(table), branch);
}

struct tarn_status *tarn_catalog_drop_branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                             struct tarn_table *table, struct tarn_slice branch)
{
    TARN_TRY(tarn_catalog_check_owner(op, catalog));
    TARN_TRY(check_main(table));
    TARN_TRY(tarn_branch_check_name(branch));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = drop_branch(op, catalog, table, branch);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

static struct tarn_status *rename_branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                         struct tarn_table *table, struct tarn_slice branch,
                                         struct tarn_slice to)
{
    struct tarn_slice database, name;
    bool has, taken;
    tarn_table_names(op, table, &database, &name);
    TARN_TRY(tarn_table_has_branch(op, table, branch, &has));
    TARN_TRY(tarn_table_has_branch(op, table, to, &taken));
    if (has && !taken) /* else it is refused, and nothing of it is to end */
        TARN_TRY(close_branch(op, catalog, database, object_name(op, name, branch), true));
    TARN_TRY(tarn_table_rename_branch(op, table, branch, to));
    return tarn_catalog__move_notes(op, catalog, table, branch, to);
}

struct tarn_status *tarn_catalog_rename_branch(struct tarn_op *op, struct tarn_catalog *catalog,
                                               struct tarn_table *table, struct tarn_slice branch,
                                               struct tarn_slice to)
{
    TARN_TRY(check_main(table));
    TARN_TRY(tarn_branch_check_name(branch));
    TARN_TRY(tarn_branch_check_name(to));
    tarn_exec_lock(&catalog->change);
    struct tarn_status *s = rename_branch(op, catalog, table, branch, to);
    pthread_mutex_unlock(&catalog->change);
    return s;
}

struct tarn_status *tarn_catalog_fast_forward(struct tarn_op *op, struct tarn_catalog *catalog,
                                              struct tarn_table *table, struct tarn_slice branch,
                                              struct tarn_undone *undone)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *from = NULL;
    TARN_TRY(check_main(table));
    TARN_TRY(tarn_branch_check_name(branch));
    TARN_TRY(tarn_catalog__branch(op, catalog, table, branch, &from));
    struct tarn_status *s = tarn_table_fast_forward(op, table, from, undone);
    tarn_catalog__changed(catalog); /* its schema may be the branch's */
    return s;
}
