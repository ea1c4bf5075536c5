#include "service/subscribe_hub.h"

/* A topic: the newest snapshots as entries, made once by its loader and given to all who wait for them. */

#define RING_SIZE_MAX (1 << 20)             /* bytes of a topic's entries */
#define RINGS_SIZE_MAX ((int64_t)128 << 20) /* of all topics; then each keeps one entry */

/* --- the ring --- */

struct tarn_entry *tarn_service__ring_find(const struct tarn_topic *topic,
                                           const struct tarn_position *last, uint64_t identity)
{
    int64_t first = topic->newest_id - (int64_t)topic->ring_count + 1, id = last->snapshot_id + 1;
    if (topic->ring_count == 0 || id < first || id > topic->newest_id)
        return NULL;
    struct tarn_entry *entry = topic->ring[id - first];
    /* It may stand on another one of that id: the ring is of before a roll-back, or what was told last is. */
    if (last->identity != 0 && entry->parent_identity != last->identity)
        return NULL;
    return identity == 0 || identity == entry->identity ? entry : NULL;
}

void tarn_service__ring_clear(struct tarn_topic *topic)
{
    for (size_t i = 0; i < topic->ring_count; i++)
        tarn_service__entry_unref(topic->ring[i]);
    atomic_fetch_sub(&topic->watched->hub->rings_size, (int64_t)topic->ring_size);
    topic->ring_count = topic->ring_size = 0;
}

static void ring_push(struct tarn_topic *topic, struct tarn_entry *consumed)
{
    _Atomic(int64_t) *total = &topic->watched->hub->rings_size;
    topic->ring_size += consumed->size_bytes;
    atomic_fetch_add(total, (int64_t)consumed->size_bytes);
    size_t drop = 0;
    while (drop < topic->ring_count &&
           (topic->ring_count - drop == TARN_SUBSCRIBE_RING_COUNT_MAX ||
            topic->ring_size > RING_SIZE_MAX || atomic_load(total) > RINGS_SIZE_MAX)) {
        struct tarn_entry *old = topic->ring[drop++];
        topic->ring_size -= old->size_bytes;
        atomic_fetch_sub(total, (int64_t)old->size_bytes);
        tarn_service__entry_unref(old);
    }
    memmove(topic->ring, topic->ring + drop, (topic->ring_count - drop) * sizeof *topic->ring);
    topic->ring_count -= drop;
    topic->ring[topic->ring_count++] = consumed;
    topic->newest_id = consumed->snapshot_id;
    topic->newest_identity = consumed->identity;
}

/* Gives the entry to all who wait for it. Consumes it. */
static void fan_out(struct tarn_topic *topic, struct tarn_entry *entry)
{
    struct tarn_watched *watched = topic->watched;
    struct tarn_subscriber **list = NULL;
    const void **events = NULL;
    size_t count = 0;

    pthread_mutex_lock(&watched->lock);
    ring_push(topic, entry);
    list = tarn_calloc((size_t)watched->subscriber_count + 1, sizeof *list);
    events = tarn_calloc((size_t)watched->subscriber_count + 1, sizeof *events);
    for (struct tarn_subscriber *sub = topic->subscribers; sub != NULL; sub = sub->next) {
        const void *event = tarn_service__subscriber_proceed(sub);
        if (event == NULL)
            continue;
        atomic_fetch_add(&sub->ref_count, 1);
        list[count] = sub;
        events[count++] = event;
    }
    pthread_mutex_unlock(&watched->lock);
    for (size_t i = 0; i < count; i++) {
        tarn_service__subscriber_write(list[i], events[i]);
        tarn_service__subscriber_unref(list[i]);
    }
    free(list);
    free(events);
}

/* History is not what the topic knew: everybody looks for himself whether he can go on. */
static void begin_anew(struct tarn_topic *topic, int64_t latest_id, uint64_t identity)
{
    pthread_mutex_lock(&topic->watched->lock);
    tarn_service__ring_clear(topic);
    topic->newest_id = latest_id;
    topic->newest_identity = identity;
    for (struct tarn_subscriber *sub = topic->subscribers; sub != NULL; sub = sub->next) {
        sub->verify++;
        /* One in the middle of an entry goes on with it; the others are put to work. */
        const void *event = tarn_service__subscriber_proceed(sub);
        tarn_assert(event == NULL);
    }
    pthread_mutex_unlock(&topic->watched->lock);
}

/* One more entry, upon the newest. *anew: history isn't what the topic knew. *made false: nothing yet. */
static struct tarn_status *load_next(struct tarn_op *op, struct tarn_topic *topic, bool *made,
                                     bool *anew)
{
    struct tarn_entry *entry = NULL;
    /* Only this loader changes newest: it may be read without the lock. */
    const struct tarn_position last = {
        .snapshot_id = topic->newest_id, .identity = topic->newest_identity, .behind = true};
    struct tarn_status *s =
        tarn_service__entry_make(op, topic->watched->table, &topic->spec, &last, 0, false, &entry);
    enum tarn_reason reason = tarn_status_reason(s);
    *anew = reason == TARN_SNAPSHOT_ROLLED_BACK || reason == TARN_SNAPSHOT_EXPIRED;
    *made = entry != NULL;
    if (*made)
        fan_out(topic, entry);
    if (*anew)
        tarn_status_drop(&s);
    return s;
}

static struct tarn_status *load(struct tarn_op *op, struct tarn_topic *topic)
{
    struct tarn_watched *watched = topic->watched;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_snapshot snapshot;
    uint64_t identity = 0;
    bool found = false, made = true;

    pthread_mutex_lock(&watched->lock);
    uint64_t news = watched->news;
    pthread_mutex_unlock(&watched->lock);
    TARN_TRY(tarn_service__look(op, watched->table, &view));
    int64_t latest = view->has_snapshot ? view->snapshot.id : 0;
    if (latest == topic->newest_id && news == topic->seen_news)
        return TARN_OK;
    if (topic->newest_id > 0)
        TARN_TRY(tarn_table_find_snapshot(op, watched->table, topic->newest_id, &found, &snapshot,
                                          &identity));
    bool anew = topic->newest_id > latest || (found && identity != topic->newest_identity);
    while (!anew && made && topic->newest_id < latest)
        TARN_TRY(load_next(op, topic, &made, &anew));
    if (anew) {
        identity = 0;
        TARN_TRY(
            tarn_table_find_snapshot(op, watched->table, latest, &found, &snapshot, &identity));
        begin_anew(topic, latest, identity);
    }
    topic->seen_news = news;
    return TARN_OK;
}

void tarn_service__topic_end(struct tarn_topic *topic, struct tarn_status *consumed)
{
    struct tarn_watched *watched = topic->watched;
    struct tarn_subscriber **list = NULL;
    size_t count = 0, capacity = 0;
    pthread_mutex_lock(&watched->lock);
    for (struct tarn_subscriber *sub = topic->subscribers; sub != NULL; sub = sub->next) {
        TARN_GROW(list, count, capacity);
        atomic_fetch_add(&sub->ref_count, 1);
        list[count++] = sub;
    }
    pthread_mutex_unlock(&watched->lock);
    for (size_t i = 0; i < count; i++) {
        tarn_service__subscriber_end(list[i], tarn_status_copy(consumed), false);
        tarn_service__subscriber_unref(list[i]);
    }
    free(list);
    tarn_status_free(consumed);
}

void tarn_service__run_load(struct tarn_subscribe_work *work)
{
    struct tarn_topic *topic = TARN_CONTAINER_OF(work, struct tarn_topic, load);
    struct tarn_watched *watched = topic->watched;
    bool again;
    do {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_service__work_op(&op);
        pthread_mutex_lock(&watched->lock);
        topic->load_again = false;
        pthread_mutex_unlock(&watched->lock);
        struct tarn_status *s = load(&op, topic);
        bool failed = s != TARN_OK;
        if (failed && !tarn_service__work_passes(s))
            tarn_service__topic_end(topic, s);
        else if (failed && !topic->load_failed)
            tarn_log_status(&op, TARN_WARN, "subscribe.stalled", s);
        else
            tarn_status_free(s);
        topic->load_failed = failed;
        pthread_mutex_lock(&watched->lock);
        again = topic->load_again && !failed;
        if (!again) {
            work->queued = false;
            watched->work_count--; /* the last touch */
        }
        pthread_mutex_unlock(&watched->lock);
    } while (again);
}

void tarn_service__topics_load(struct tarn_watched *watched)
{
    for (struct tarn_topic *topic = watched->topics; topic != NULL; topic = topic->next) {
        topic->load_again = true;
        tarn_service__work_enqueue(watched, &topic->load, true);
    }
}
