#include "table/expire_internal.h"

/* What lies below the earliest snapshot: an expiry that was cut off left it, here or elsewhere; or it never was history, or is that of others. */

static struct tarn_status *read_parts(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                      bool *there, struct tarn_manifests *out)
{
    struct tarn_snapshot snapshot;
    struct tarn_slice json;
    TARN_TRY(tarn_table__read_snapshot(op, table, id, op->arena, there, &json, &snapshot));
    return *there ? tarn_table__read_manifests(op, table, &snapshot, out) : TARN_OK;
}

static struct tarn_status *stands(struct tarn_op *op, struct tarn_table *table, int64_t id,
                                  bool *out)
{
    TARN_OWN(tarn_table__manifests_fini) struct tarn_manifests below = {0};
    TARN_OWN(tarn_table__manifests_fini) struct tarn_manifests next = {0};
    bool there;
    TARN_TRY(read_parts(op, table, id, &there, &below));
    if (there)
        TARN_TRY(read_parts(op, table, id + 1, &there, &next));
    *out = true;
    return there ? tarn_table__stands_on(op, table, &below, &next, out) : TARN_OK;
}

/* A put that came late to a place that had expired lies there as well: what it brings may be committed yet. What isn't whole any more
 * was history. */
static struct tarn_status *was_history(struct tarn_op *parent, struct tarn_table *table, int64_t id,
                                       bool *out)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init_child(&op, parent);
    struct tarn_status *s = stands(&op, table, id, out);
    bool is_cut = tarn_status_reason(s) == TARN_OBJECT_NOT_FOUND;
    if (!is_cut && !tarn_leave__is_damaged(s))
        return s;
    *out = is_cut;
    tarn_status_free(s);
    return TARN_OK;
}

struct tarn_status *tarn_expire__find_leftover(struct tarn_op *op, struct tarn_table *table,
                                               int64_t earliest, bool any, int64_t *begin)
{
    int64_t hint = 0;
    *begin = earliest;
    if (table->expire_clean || earliest <= 1)
        return TARN_OK;
    if (!any)
        TARN_TRY(tarn_table__read_hint(op, table, "EARLIEST", &hint));
    for (bool there = true; there && *begin > 1; *begin -= there) {
        bool whole = true;
        TARN_TRY(tarn_op_check(op));
        TARN_TRY(tarn_store_stat(
            table->env->store, op,
            tarn_table__key(op, table, "snapshot/snapshot-%" PRId64, *begin - 1), &there, NULL));
        if (there && !any && hint < earliest)
            TARN_TRY(tarn_table__has_lists(op, table, *begin - 1, &whole));
        there = there && (any || hint >= earliest || !whole);
        if (there)
            TARN_TRY(was_history(op, table, *begin - 1, &there));
    }
    return TARN_OK;
}
