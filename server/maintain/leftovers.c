#include "maintain/internal.h"

/*
 * What a worker left behind: the files of a lease that ended and whose result was never committed. A lease has a UUID of its own, which is in the
 * names of its files; its token is used up, so none of them is ever committed. What is kept of it here is forgotten when the daemon ends; then
 * orphan removal takes the files. So it is where the store didn't say whether a result was committed: that isn't brought here.
 */

#define TARN_LEFT_MAX 1000 /* leases; of more, the files are left to orphan removal */

struct left {
    struct left *next;
    struct tarn_table *table; /* a ref */
    struct tarn_buf partition;
    int32_t bucket;
    char file_uuid[TARN_UUID_SIZE];
    int64_t id, at_ms; /* of the task; monotonic: not before */
};

static void left_free(struct left *left)
{
    tarn_table_unref(left->table);
    tarn_buf_drop(&left->partition);
    free(left);
}

void tarn_maintain__leave_behind(struct tarn_maintain *m, const struct task *t, int64_t delay_ms)
{
    struct left **end = &m->left;
    if (t->rescale || m->left_count >= TARN_LEFT_MAX || m->stopping)
        return; /* a rescale writes into buckets that aren't there yet, under names of its own */
    struct left *left = tarn_calloc(1, sizeof *left);
    left->table = tarn_table_ref(t->table);
    tarn_buf_add_slice(&left->partition, tarn_buf_slice(&t->partition));
    left->bucket = t->bucket;
    memcpy(left->file_uuid, t->file_uuid, sizeof left->file_uuid);
    left->id = t->id;
    left->at_ms = tarn_clock_mono_ms() + delay_ms;
    while (*end != NULL)
        end = &(*end)->next;
    *end = left;
    m->left_count++;
}

void tarn_maintain__clean_end(struct tarn_maintain *m)
{
    while (m->left != NULL) {
        struct left *left = m->left;
        m->left = left->next;
        left_free(left);
    }
}

/* NULL: none is due. */
static struct left *take_due(struct tarn_maintain *m, int64_t now_ms)
{
    struct left *found = NULL;
    pthread_mutex_lock(&m->lock);
    for (struct left **at = &m->left; *at != NULL && !m->stopping; at = &(*at)->next) {
        if ((*at)->at_ms > now_ms)
            continue;
        found = *at;
        *at = found->next;
        m->left_count--;
        break;
    }
    pthread_mutex_unlock(&m->lock);
    return found;
}

static struct tarn_status *clean(struct tarn_op *op, struct tarn_maintain *m,
                                 const struct left *left)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    char part[TARN_FILE_UUID_SHARED + 1] = "";
    size_t count;
    memcpy(part, left->file_uuid, TARN_FILE_UUID_SHARED);
    TARN_TRY(tarn_catalog_check_owner(op, m->options.catalog));
    TARN_TRY(tarn_table_look(op, left->table, &view));
    TARN_TRY(tarn_table_remove_unused(op, left->table, tarn_buf_slice(&left->partition),
                                      left->bucket, part, &count));
    if (count > 0)
        tarn_log(op, TARN_INFO, "task.leftovers_removed", "id=%" PRId64 " table=%s files=%zu",
                 left->id, tarn_log_quote(op, tarn_table_name(left->table)), count);
    return TARN_OK;
}

void tarn_maintain__clean_tick(void *arg)
{
    struct tarn_maintain *m = arg;
    struct left *left;
    while ((left = take_due(m, tarn_clock_mono_ms())) != NULL) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init(&op);
        tarn_exec_wait_begin(); /* calls don't queue up behind it */
        struct tarn_status *s = clean(&op, m, left);
        tarn_exec_wait_end();
        if (tarn_status_reason(s) == TARN_TABLE_NOT_FOUND) /* dropped, and its files with it */
            tarn_status_free(tarn_move(s));
        tarn_log_status(&op, TARN_WARN, "task.leftovers_remain",
                        s == TARN_OK ? s
                                     : tarn_status_wrap(s, "files of task %" PRId64 " in table %s",
                                                        left->id, tarn_table_name(left->table)));
        left_free(left);
    }
}
