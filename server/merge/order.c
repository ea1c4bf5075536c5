/*
 * order - do batches that come one after the other go up by key? Rows that do needn't be buffered.
 *
 * Strictly: a key that comes twice breaks the order, since one file holds a key once.
 */
#include "merge/internal.h"

static bool rises(const struct tarn_merge_keys *a, uint32_t i, const struct tarn_merge_keys *b,
                  uint32_t j)
{
    return a->prefix[i] < b->prefix[j] ||
           (a->prefix[i] == b->prefix[j] && tarn_merge__keys_compare_rest(a, i, b, j) < 0);
}

static bool all_rise(const struct tarn_merge_keys *keys, int64_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (!rises(keys, i - 1, keys, i))
            return false;
    }
    return true;
}

static void forget(struct tarn_merge_order *order)
{
    tarn_merge__keys_drop(&order->keys);
    tarn_batch_drop(&order->batch);
}

struct tarn_status *tarn_merge__order_follow(struct tarn_merge_order *order,
                                             const struct tarn_merge_key_spec *spec,
                                             struct tarn_batch *batch)
{
    struct tarn_merge_keys keys;

    if (order->broken || batch->row_count == 0)
        return TARN_OK;
    TARN_TRY(tarn_merge__keys_build(spec, batch, &keys));
    order->broken = !all_rise(&keys, batch->row_count) ||
                    (order->batch != NULL &&
                     !rises(&order->keys, (uint32_t)order->batch->row_count - 1, &keys, 0));
    forget(order);
    if (order->broken) {
        tarn_merge__keys_drop(&keys);
        return TARN_OK;
    }
    order->keys = keys;
    order->batch = tarn_batch_ref(batch); /* keys may lie in it */
    return TARN_OK;
}

void tarn_merge__order_drop(struct tarn_merge_order *order)
{
    forget(order);
}
