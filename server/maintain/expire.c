#include "maintain/internal.h"

/* Expiry of snapshots: when a table is looked at, and what running tasks hold. What goes, and how, is in table/expire.c. */

#define HELD_LOOK_MS                                                                               \
    60000 /* where a consumer, a pin or a task holds them: who can say when it lets go? */
#define FAILURE_PAUSE_MAX_MS INT64_C(3600000)

struct due {                  /* of maintain.lock */
    struct tarn_table *table; /* a ref */
    int64_t at_ms;            /* monotonic */
    int failures;             /* in a row */
};

static void due_free(struct due *due)
{
    tarn_table_unref(due->table);
    free(due);
}

void tarn_maintain__expire_notice(struct tarn_maintain *m, struct tarn_table *table)
{
    struct tarn_slice uuid = tarn_slice_str(tarn_table_uuid(table));
    struct due *due = tarn_map_find(m->due, uuid);
    int64_t at_ms = tarn_clock_mono_ms() + m->options.expire_interval_ms;
    if (due == NULL) {
        due = tarn_calloc(1, sizeof *due);
        due->table = tarn_table_ref(table);
        due->at_ms = at_ms;
        tarn_map_set(m->due, uuid, due);
    } else if (due->failures == 0) {
        due->at_ms = TARN_MIN(due->at_ms, at_ms);
    }
}

void tarn_maintain__expire_end(struct tarn_maintain *m)
{
    size_t cursor = 0;
    struct tarn_slice uuid;
    void *due;
    while (tarn_map_next(m->due, &cursor, &uuid, &due))
        due_free(due);
    tarn_map_free(m->due);
}

/* --- one table --- */

/* What is leased was pictured at some snapshot: its files stay as long as that does. Not pictured yet: all stay. */
static int64_t read_by_tasks(struct tarn_maintain *m, const struct tarn_table *table)
{
    int64_t from = INT64_MAX;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->open_count; i++)
        if (m->open[i]->state == TASK_LEASED && m->open[i]->table == table)
            from = TARN_MIN(from, m->open[i]->seen_id);
    pthread_mutex_unlock(&m->lock);
    return from;
}

struct tarn_status *tarn_maintain_expire(struct tarn_op *op, struct tarn_maintain *m,
                                         struct tarn_table *table, int64_t keep_last,
                                         int64_t older_than_ms, bool dry_run,
                                         struct tarn_expiry *out)
{
    struct tarn_expire_request request = {.keep_last = keep_last,
                                          .older_than_ms = older_than_ms,
                                          .keep_from = read_by_tasks(m, table),
                                          .dry_run = dry_run};
    TARN_TRY(tarn_catalog_check_owner(op, m->options.catalog));
    return tarn_table_expire(op, table, &request, out);
}

/* --- by itself --- */

/* Those whose snapshots nobody else expires, but those that the daemon can't. */
static bool is_ours(const struct tarn_table *table, const struct tarn_table_view *view)
{
    struct tarn_retention retention;
    struct tarn_status *s = tarn_retention_parse(&view->schema, &retention);
    bool can = s == TARN_OK && retention.longer_changelog == NULL;
    tarn_status_free(s);
    return can && tarn_table_is_compacted(table) &&
           tarn_maintain_expires(&view->schema, &view->options);
}

/* *next_ms: monotonic, when it is to be looked at again; INT64_MAX: once it has a new snapshot. */
static struct tarn_status *expire_one(struct tarn_op *op, struct tarn_maintain *m,
                                      struct tarn_table *table, int64_t *next_ms)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_expiry out;
    *next_ms = INT64_MAX;
    TARN_TRY(tarn_table_look(op, table, &view));
    if (!is_ours(table, view))
        return TARN_OK;
    TARN_TRY(
        tarn_maintain_expire(op, m, table, TARN_EXPIRE_OPTION, TARN_EXPIRE_OPTION, false, &out));
    int64_t now = tarn_clock_mono_ms();
    if (out.is_held)
        *next_ms = now + TARN_MAX(m->options.expire_interval_ms, (int64_t)HELD_LOOK_MS);
    else if (out.next_ms != INT64_MAX)
        *next_ms =
            now + TARN_MAX(out.next_ms - tarn_clock_wall_ms(), m->options.expire_interval_ms);
    return TARN_OK;
}

/* A reference; NULL: none is due. It is looked at again no sooner than after an interval, unless what follows says otherwise. */
static struct tarn_table *take_due(struct tarn_maintain *m, int64_t now_ms)
{
    struct tarn_table *table = NULL;
    size_t cursor = 0;
    struct tarn_slice uuid;
    void *value;
    pthread_mutex_lock(&m->lock);
    while (!m->stopping && table == NULL && tarn_map_next(m->due, &cursor, &uuid, &value)) {
        struct due *due = value;
        if (due->at_ms > now_ms)
            continue;
        table = tarn_table_ref(due->table);
        due->at_ms = INT64_MAX;
    }
    pthread_mutex_unlock(&m->lock);
    return table;
}

static void settle_due(struct tarn_maintain *m, struct tarn_table *table, enum tarn_reason reason,
                       int64_t next_ms)
{
    struct tarn_slice uuid = tarn_slice_str(tarn_table_uuid(table));
    pthread_mutex_lock(&m->lock);
    struct due *due = tarn_map_find(m->due, uuid);
    bool failed = reason != TARN_NO_REASON && reason != TARN_BUSY;
    due->failures = failed ? due->failures + 1 : 0;
    if (reason != TARN_NO_REASON) {
        int64_t pause = m->options.expire_interval_ms << TARN_MIN(due->failures, 20);
        next_ms = tarn_clock_mono_ms() + TARN_MIN(pause, FAILURE_PAUSE_MAX_MS);
    }
    due->at_ms = TARN_MIN(due->at_ms, next_ms); /* it may have been noticed meanwhile */
    if (due->at_ms == INT64_MAX || reason == TARN_TABLE_NOT_FOUND) {
        tarn_map_remove(m->due, uuid);
        due_free(due);
    }
    pthread_mutex_unlock(&m->lock);
}

void tarn_maintain__expire_tick(void *arg)
{
    struct tarn_maintain *m = arg;
    int64_t now_ms = tarn_clock_mono_ms();
    if (atomic_exchange(&m->expire_runs, true)) /* the last one takes longer */
        return;
    for (;;) {
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = take_due(m, now_ms);
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        int64_t next_ms = INT64_MAX;
        tarn_op_init(&op);
        if (table == NULL)
            break;
        tarn_exec_wait_begin(); /* calls don't queue up behind it */
        struct tarn_status *s = expire_one(&op, m, table, &next_ms);
        tarn_exec_wait_end();
        enum tarn_reason reason = s == TARN_OK ? TARN_NO_REASON : tarn_status_reason(s);
        settle_due(m, table, reason, next_ms);
        if (reason == TARN_BUSY || reason == TARN_TABLE_NOT_FOUND)
            tarn_status_free(tarn_move(s));
        tarn_log_status(&op, TARN_WARN, "maintain.expire_failed",
                        s == TARN_OK ? s : tarn_status_wrap(s, "table %s", tarn_table_name(table)));
    }
    atomic_store(&m->expire_runs, false);
}
