#include "rest/internal.h"

/* How far streaming readers are. */

static struct tarn_status *list_consumers(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_page page;
    struct tarn_consumer *list;
    size_t count, i = 0;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__page(call, NULL, NULL, &page));
    TARN_TRY(tarn_service_list_consumers(call->op, call->service, ref, &list, &count));
    while (i < count && page.token.size > 0 && tarn_slice_compare(list[i].id, page.token) <= 0)
        i++;
    size_t max =
        page.size <= 0 ? TARN_PAGE_SIZE : (size_t)TARN_MIN(page.size, (int64_t)TARN_PAGE_SIZE_MAX);
    size_t end = TARN_MIN(count, i + max);
    struct tarn_json *array = tarn_json_array();
    for (; i < end; i++) {
        struct tarn_json *one = tarn_json_object();
        tarn_json_set(one, "consumerId", tarn_json_string(list[i].id));
        tarn_json_set_int(one, "nextSnapshot", list[i].next_snapshot);
        tarn_json_add(array, one);
    }
    tarn_rest__answer_list(call, "consumers", array,
                           end < count ? tarn_arena_str(call->op->arena, list[end - 1].id) : "");
    return TARN_OK;
}

/* One that isn't there is what was asked for. */
static struct tarn_status *drop_consumer(struct tarn_rest__call *call, struct tarn_table_ref ref,
                                         struct tarn_slice id)
{
    struct tarn_status *s = tarn_service_drop_consumer(call->op, call->service, ref, id);
    if (tarn_status_reason(s) != TARN_CONSUMER_NOT_FOUND)
        return s;
    tarn_status_free(s);
    return TARN_OK;
}

static struct tarn_status *reset_consumer(struct tarn_rest__call *call)
{
    struct tarn_table_ref ref;
    struct tarn_slice id;
    int64_t next;
    struct tarn_consumer consumer;
    TARN_TRY(tarn_rest__ref(call, &ref));
    TARN_TRY(tarn_rest__need_text(call->body, "consumerId", &id));
    TARN_TRY(tarn_rest__integer(call->body, "nextSnapshotId", &next));
    if (next == TARN_SNAPSHOT_NONE)
        return drop_consumer(call, ref, id);
    if (next <= 0)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "nextSnapshotId %" PRId64 " is no snapshot",
                               next);
    return tarn_service_set_consumer(call->op, call->service, ref, id, next, &consumer);
}

#define TABLE "/databases/{database}/tables/{table}"
const struct tarn_rest__endpoint tarn_rest__consumer_endpoints[] = {
    {"GET", TABLE "/consumers", list_consumers},
    {"POST", TABLE "/consumers/reset", reset_consumer},
    TARN_REST_END,
};
