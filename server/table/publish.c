#include "table/commit_internal.h"

/*
 * After the put: step 7. The commit has happened; what fails here is caught up by the next look and never told as a
 * failed commit (I6).
 */

#define FORGET_PUBLISHES 256

static void fall_behind(struct tarn_op *op, struct tarn_table *table, struct tarn_status *consumed)
{
    tarn_log_status(op, TARN_ERROR, "commit.index_behind", consumed);
    tarn_head_free(table->head);
    table->head = NULL; /* the next use reads everything anew */
    tarn_table__look_again(table);
}

void tarn_table__advance(struct tarn_group *group)
{
    struct tarn_table *table = group->table;
    struct tarn_head *next = group->next;
    table->slot_filled = true;
    if (group->merge_used)
        tarn_table__merge_settle(&group->op, table, true);
    group->merge_used = false;
    if (table->head != NULL)
        tarn_table__note_sequences(table, next->json, group->delta.entries, group->delta.count);
    struct tarn_status *s =
        tarn_table__index_add(&group->op, table, &next->snapshot, next->json, &group->delta);
    if (s != TARN_OK) {
        fall_behind(&group->op, table, s);
        return;
    }
    tarn_head_free(table->head);
    table->head = next;
    group->next = NULL;
    /* Before anybody is told, also those who find themselves in it when the next group is checked. */
    s = tarn_table__publish_view(&group->op, table);
    if (s != TARN_OK)
        fall_behind(&group->op, table, s);
}

/* --- the hint --- */

static void put_hint(struct tarn_table *table, int64_t id)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, id);
    tarn_log_status(&op, TARN_WARN, "commit.hint_failed",
                    tarn_store_put_hint(table->env->store, &op,
                                        tarn_table__key(&op, table, "snapshot/LATEST"),
                                        tarn_slice_str(text)));
}

static void run_hint(void *arg)
{
    struct tarn_table *table = arg;
    pthread_mutex_lock(&table->lock);
    for (int64_t written = 0; table->hint_id != written;) {
        int64_t id = table->hint_id;
        pthread_mutex_unlock(&table->lock);
        put_hint(table, id);
        pthread_mutex_lock(&table->lock);
        written = id;
    }
    table->hint_runs = false;
    pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock); /* from here on the table may be gone */
}

/* A remote store takes a round trip for it: beside the answers, the newest one only, one after the other. */
static void hint(struct tarn_table *table, int64_t id)
{
    if (!tarn_store_is_remote(table->env->store)) {
        put_hint(table, id);
        return;
    }
    pthread_mutex_lock(&table->lock);
    bool runs = table->hint_runs;
    table->hint_id = id;
    table->hint_runs = true;
    pthread_mutex_unlock(&table->lock);
    if (!runs)
        tarn_exec_post(table->env->exec, run_hint, table);
}

void tarn_table__hint_wait(struct tarn_table *table)
{
    tarn_exec_wait_begin();
    pthread_mutex_lock(&table->lock);
    while (table->hint_runs)
        pthread_cond_wait(&table->news, &table->lock);
    pthread_mutex_unlock(&table->lock);
    tarn_exec_wait_end();
}

/* --- telling --- */

static const char *size_class(size_t count)
{
    static const char *const names[] = {"1", "2", "4", "8", "16", "32", "64", "128", "256"};
    size_t i = 0;
    while (i + 1 < TARN_COUNT_OF(names) && ((size_t)1 << i) < count)
        i++;
    return names[i];
}

static void tell(const struct tarn_group *group)
{
    const char *kind = tarn_commit_kind_name(group->kind);
    tarn_metric_add(TARN_M_COMMITS, kind, 1);
    tarn_metric_add(TARN_M_COMMIT_GROUPS, size_class(group->count), 1);
    tarn_log(&group->op, TARN_INFO, "table.commit",
             "table=%s snapshot=%" PRId64 " kind=%s user=%s identifier=%" PRId64
             " members=%zu entries=%zu records=%" PRId64,
             tarn_log_quote(&group->op, tarn_table_name(group->table)), group->put.id, kind,
             tarn_log_quote(&group->op, tarn_arena_str(group->op.arena, group->user)),
             group->identifier, group->count, group->delta.count, group->record_count);
}

/* Another writer may have made a schema: while commits flow, nobody else looks. */
static void look_for_schema(struct tarn_group *group)
{
    struct tarn_table *table = group->table;
    if (tarn_clock_mono_ms() - table->schema_looked_ms >= table->env->foreign_check_ms)
        tarn_log_status(&group->op, TARN_WARN, "commit.schema_unknown",
                        tarn_table__look_schema(&group->op, table));
}

/* Now and then: receipts whose time is over. */
static void forget(struct tarn_group *group)
{
    struct tarn_table *table = group->table;
    if (table->publish_count++ % FORGET_PUBLISHES == 0)
        tarn_log_status(&group->op, TARN_WARN, "commit.receipts_kept",
                        tarn_table__receipts_forget(table, table->view->view.earliest_id));
}

void tarn_table__announce(struct tarn_group *group)
{
    struct tarn_table *table = group->table;
    int64_t id = group->put.id;
    tell(group);
    if (group->is_finished)
        tarn_table__end_turn(table);
    hint(table, id);
    double seconds = (double)(tarn_clock_mono_ns() - group->begun_ns) / 1e9;
    for (size_t i = group->count; i > 0;
         i--) { /* backwards: compact parts go to the front of the queue */
        tarn_metric_observe(TARN_M_COMMIT_SECONDS, NULL, seconds);
        tarn_table__answer(table, group->members[i - 1], TARN_OK, id, false);
    }
    pthread_mutex_lock(&table->lock);
    table->answered_count = group->count;
    table->answered_ns = tarn_clock_mono_ns();
    pthread_mutex_unlock(&table->lock);
    if (table->head != NULL) {
        look_for_schema(group);
        forget(group);
        tarn_table__merge_consider(table);
    }
    if (table->env->committed != NULL)
        table->env->committed(table->env->committed_arg, table, id);
    tarn_table__group_free(group);
}
