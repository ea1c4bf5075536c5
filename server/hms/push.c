#include "hms/internal.h"

/*
 * One database, one table: what is there, what should be, and the call that makes it so.
 *
 *   not there                      -> create
 *   there, without our mark        -> left alone, a problem of ours
 *   there, ours, of another uuid,
 *     or with other partition keys -> drop, create (no grants or partitions of the one before come with it)
 *   there, ours, otherwise         -> alter; where Hive doesn't let it (a column of another type): drop, create
 *   there, ours, gone here         -> drop
 */

static const char *full_name(struct tarn_hms__push *push, struct tarn_slice database,
                             struct tarn_slice name)
{
    return tarn_arena_printf(push->op->arena, "%.*s.%.*s", TARN_SLICE_ARG(database),
                             TARN_SLICE_ARG(name));
}

/* --- what is told of it --- */

static void forget_problem(struct tarn_hms__known *known)
{
    free(known->problem);
    known->problem = NULL;
}

struct tarn_status *tarn_hms__note_problem(struct tarn_hms__push *push, const char *name,
                                           struct tarn_hms__known *known,
                                           struct tarn_status *consumed)
{
    if (consumed == TARN_OK)
        return TARN_OK;
    enum tarn_reason reason = tarn_status_reason(consumed);
    if (reason == TARN_METASTORE_UNAVAILABLE || reason == TARN_CANCELLED ||
        reason == TARN_DEADLINE_EXCEEDED)
        return consumed;
    tarn_metric_add(TARN_M_HMS_FAILURES, "refused", 1);
    if (known->problem == NULL || strcmp(known->problem, tarn_status_message(consumed)) != 0)
        tarn_log(push->op, TARN_WARN, "hms.refused", "name=%s reason=%s error=%s",
                 tarn_log_quote(push->op, name), tarn_reason_name(reason),
                 tarn_log_quote(push->op, tarn_status_message(consumed)));
    forget_problem(known);
    known->problem = tarn_strdup(tarn_status_message(consumed));
    tarn_status_free(consumed);
    return TARN_OK;
}

/* was_right: it had been pushed so before, and somebody changed it since. */
static void tell(struct tarn_hms__push *push, const char *what, const char *name,
                 const char *differs, bool was_right)
{
    bool repair = push->check && was_right;
    tarn_metric_add(repair ? TARN_M_HMS_REPAIRS : TARN_M_HMS_CHANGES, what, 1);
    tarn_log(push->op, repair ? TARN_WARN : TARN_INFO, repair ? "hms.repaired" : "hms.pushed",
             "what=%s name=%s differs=%s", what, tarn_log_quote(push->op, name),
             tarn_log_quote(push->op, differs));
}

static struct tarn_status *not_ours(const char *what)
{
    return tarn_status_new(TARN_METASTORE_REFUSED,
                           "the metastore has a %s of that name that this warehouse didn't make: "
                           "rename one of them, or drop that one",
                           what);
}

/* --- tables --- */

static struct tarn_status *drop_and_create(struct tarn_hms__push *push,
                                           const struct tarn_hms__table *want)
{
    TARN_TRY(tarn_hms__drop_table(push->op, push->client, want->database, want->name));
    return tarn_hms__create_table(push->op, push->client, want);
}

static struct tarn_status *alter(struct tarn_hms__push *push, const struct tarn_hms__table *want,
                                 const struct tarn_hms__table *have)
{
    struct tarn_hms__table with = *want;
    tarn_hms__keep_parameters(push->op->arena, &with, have);
    return tarn_hms__alter_table(push->op, push->client, &with);
}

/* *fresh: it has no partitions. */
static struct tarn_status *make_equal(struct tarn_hms__push *push,
                                      const struct tarn_hms__table *want,
                                      const struct tarn_hms__table *have, bool was_right,
                                      bool *fresh)
{
    const char *name = full_name(push, want->database, want->name);
    *fresh = have == NULL;
    if (have == NULL) {
        TARN_TRY(tarn_hms__create_table(push->op, push->client, want));
        tell(push, "table_created", name, "missing", was_right);
        return TARN_OK;
    }
    if (!tarn_hms__is_ours(have->parameters, have->parameter_count, push->warehouse))
        return not_ours("table");
    if (tarn_hms__must_recreate(want, have)) {
        *fresh = true;
        TARN_TRY(drop_and_create(push, want));
        tell(push, "table_replaced", name, "another table", was_right);
        return TARN_OK;
    }
    const char *differs = tarn_hms__table_differs(push->op->arena, want, have);
    if (differs == NULL)
        return TARN_OK;
    struct tarn_status *s = alter(push, want, have);
    *fresh = tarn_status_reason(s) == TARN_METASTORE_REFUSED && strcmp(differs, "columns") == 0;
    if (*fresh) {
        tarn_status_free(s);
        s = drop_and_create(push, want);
    }
    if (s == TARN_OK)
        tell(push, *fresh ? "table_replaced" : "table_changed", name, differs, was_right);
    return s;
}

static void keep_fingerprint(struct tarn_hms__known *known, const struct tarn_pair *parameters,
                             size_t count)
{
    struct tarn_slice text = tarn_hms__parameter(parameters, count, HMS_MARK_FINGERPRINT);
    memcpy(known->fingerprint, text.data, TARN_MIN(text.size, sizeof known->fingerprint - 1));
}

static bool has_fingerprint(const struct tarn_hms__known *known, const struct tarn_pair *parameters,
                            size_t count)
{
    return known->pushed &&
           tarn_slice_is(tarn_hms__parameter(parameters, count, HMS_MARK_FINGERPRINT),
                         known->fingerprint);
}

static void remember(struct tarn_hms__known *known, const struct tarn_hms__source *source,
                     const struct tarn_hms__table *want, bool fresh)
{
    if (fresh)
        known->partitions = 0;
    memcpy(known->uuid, source->uuid, sizeof known->uuid);
    keep_fingerprint(known, want->parameters, want->parameter_count);
    known->schema_id = source->schema->id;
    known->pushed = true;
    forget_problem(known);
}

static struct tarn_status *push_it(struct tarn_hms__push *push, struct tarn_table *table,
                                   const struct tarn_hms__source *source,
                                   const struct tarn_hms__table *have,
                                   struct tarn_hms__known *known)
{
    struct tarn_hms__table want;
    bool fresh;
    TARN_TRY(tarn_hms__shape_table(push->op->arena, source, &want));
    bool was_right = has_fingerprint(known, want.parameters, want.parameter_count);
    known->pushed = false;
    TARN_TRY(make_equal(push, &want, have, was_right, &fresh));
    remember(known, source, &want, fresh);
    return want.key_count == 0 ? TARN_OK : tarn_hms__push_partitions(push, table, &want, known);
}

struct tarn_status *tarn_hms__push_table(struct tarn_hms__push *push, struct tarn_table *table,
                                         const struct tarn_hms__source *source,
                                         const struct tarn_hms__table *have,
                                         struct tarn_hms__known *known)
{
    struct tarn_status *s = push_it(push, table, source, have, known);
    known->schema_id = source->schema->id; /* also where it was refused: until it is another one */
    return tarn_hms__note_problem(push, full_name(push, source->database, source->name), known, s);
}

struct tarn_status *tarn_hms__remove_table(struct tarn_hms__push *push,
                                           const struct tarn_hms__table *have, const char *why)
{
    if (!tarn_hms__is_ours(have->parameters, have->parameter_count, push->warehouse))
        return TARN_OK;
    TARN_TRY(tarn_hms__drop_table(push->op, push->client, have->database, have->name));
    tell(push, "table_dropped", full_name(push, have->database, have->name), why, false);
    return TARN_OK;
}

/* --- databases --- */

static struct tarn_status *push_database(struct tarn_hms__push *push,
                                         const struct tarn_database_info *info,
                                         struct tarn_hms__known *known)
{
    struct tarn_hms__database want, have;
    const char *name = tarn_arena_str(push->op->arena, info->name);
    bool found;
    if (!tarn_hms__name_fits(info->name))
        return tarn_status_new(TARN_UNSUPPORTED_FEATURE,
                               "Hive's names have a-z, 0-9 and _ only, 128 of them at most");
    tarn_hms__shape_database(push->op->arena, info, push->warehouse, &want);
    bool was_right = has_fingerprint(known, want.parameters, want.parameter_count);
    if (was_right && !push->check)
        return TARN_OK;
    keep_fingerprint(known, want.parameters, want.parameter_count);
    TARN_TRY(tarn_hms__find_database(push->op, push->client, info->name, &found, &have));
    if (!found) {
        TARN_TRY(tarn_hms__create_database(push->op, push->client, &want));
        tell(push, "database_created", name, "missing", was_right);
        return TARN_OK;
    }
    /* One that was there is used as it is, and stays as it is. */
    if (!tarn_hms__is_ours(have.parameters, have.parameter_count, push->warehouse))
        return TARN_OK;
    const char *differs = tarn_hms__database_differs(push->op->arena, &want, &have);
    if (differs == NULL)
        return TARN_OK;
    TARN_TRY(tarn_hms__alter_database(push->op, push->client, &want));
    tell(push, "database_changed", name, differs, was_right);
    return TARN_OK;
}

struct tarn_status *tarn_hms__push_database(struct tarn_hms__push *push,
                                            const struct tarn_database_info *info,
                                            struct tarn_hms__known *known)
{
    struct tarn_status *s = push_database(push, info, known);
    known->pushed = s == TARN_OK;
    if (s == TARN_OK)
        forget_problem(known);
    return tarn_hms__note_problem(push, tarn_arena_str(push->op->arena, info->name), known, s);
}

/* *left: tables that stay. */
static struct tarn_status *remove_tables(struct tarn_hms__push *push, struct tarn_slice database,
                                         size_t *left)
{
    struct tarn_slice *names;
    size_t count;
    TARN_TRY(tarn_hms__list_tables(push->op, push->client, database, &names, &count));
    *left = 0;
    for (size_t i = 0; i < count; i += HMS_TABLES_AT_ONCE) {
        struct tarn_hms__table *tables;
        size_t found, some = TARN_MIN(count - i, (size_t)HMS_TABLES_AT_ONCE);
        TARN_TRY(tarn_hms__find_tables(push->op, push->client, database, names + i, some, &tables,
                                       &found));
        for (size_t t = 0; t < found; t++) {
            TARN_TRY(tarn_hms__remove_table(push, &tables[t], "its database is gone"));
            *left += !tarn_hms__is_ours(tables[t].parameters, tables[t].parameter_count,
                                        push->warehouse);
        }
    }
    return TARN_OK;
}

struct tarn_status *tarn_hms__remove_database(struct tarn_hms__push *push, struct tarn_slice name)
{
    struct tarn_hms__database have;
    bool found;
    size_t left;
    TARN_TRY(tarn_hms__find_database(push->op, push->client, name, &found, &have));
    if (!found)
        return TARN_OK;
    TARN_TRY(remove_tables(push, name, &left));
    if (left > 0 || !tarn_hms__is_ours(have.parameters, have.parameter_count, push->warehouse))
        return TARN_OK;
    TARN_TRY(tarn_hms__drop_database(push->op, push->client, name));
    tell(push, "database_dropped", tarn_arena_str(push->op->arena, name), "gone", false);
    return TARN_OK;
}
