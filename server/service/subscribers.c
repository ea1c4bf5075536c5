#include "service/subscribe_hub.h"

/* One subscriber: what it is told next, and how one that is behind makes its own entries. */

void tarn_service__subscriber_unref(struct tarn_subscriber *sub)
{
    if (atomic_fetch_sub(&sub->ref_count, 1) != 1)
        return;
    struct tarn_topic *topic = sub->topic;
    struct tarn_watched *watched = topic->watched;
    struct tarn_subscriptions *hub = watched->hub;
    const struct tarn_subscribe_door *door = topic->spec.door;
    void *stream = sub->stream;

    tarn_service__entry_unref(sub->entry);
    free(sub);
    pthread_mutex_lock(&watched->lock);
    topic->subscriber_count--;
    watched->subscriber_count--; /* the last touch: the table may be let go of now */
    pthread_mutex_unlock(&watched->lock);
    int left = atomic_fetch_sub(&hub->subscriber_count, 1) - 1;
    tarn_metric_set(TARN_M_SUBSCRIBERS, NULL, (double)left);
    door->release(stream); /* and now the door may close, and the hub go */
}

void tarn_service__subscriber_end(struct tarn_subscriber *sub, struct tarn_status *consumed,
                                  bool stuck)
{
    struct tarn_watched *watched = sub->topic->watched;
    pthread_mutex_lock(&watched->lock);
    bool first = !sub->ending;
    sub->ending = true;
    pthread_mutex_unlock(&watched->lock);
    if (first)
        sub->topic->spec.door->end(sub->stream, consumed, stuck);
    else
        tarn_status_free(consumed);
}

const void *tarn_service__subscriber_proceed(struct tarn_subscriber *sub)
{
    struct tarn_topic *topic = sub->topic;
    if (!sub->started || sub->writing || sub->ending || sub->catch_up.queued || sub->stalled)
        return NULL;
    bool suspect = sub->verify != sub->verified;
    if (sub->entry == NULL && !suspect && !sub->whole) {
        struct tarn_entry *entry = tarn_service__ring_find(topic, &sub->last, sub->first_identity);
        if (entry != NULL)
            sub->entry = tarn_service__entry_ref(entry);
    }
    if (sub->entry == NULL) {
        if (suspect || sub->whole || sub->next_id <= topic->newest_id) {
            atomic_fetch_add(&sub->ref_count, 1);
            tarn_service__work_enqueue(topic->watched, &sub->catch_up, false);
        }
        return NULL;
    }
    if (sub->next_part >= sub->entry->count) /* of a token that was made by hand */
        sub->next_part = (uint32_t)sub->entry->count - 1;
    sub->writing = true;
    sub->writing_since_ms = tarn_clock_mono_ms();
    return sub->entry->events[sub->next_part];
}

/* Nobody else writes to it meanwhile: `writing` is set. */
void tarn_service__subscriber_write(struct tarn_subscriber *sub, const void *event)
{
    if (event != NULL)
        sub->topic->spec.door->write(sub->stream, event);
}

static void go_on(struct tarn_subscriber *sub)
{
    struct tarn_watched *watched = sub->topic->watched;
    pthread_mutex_lock(&watched->lock);
    const void *event = tarn_service__subscriber_proceed(sub);
    pthread_mutex_unlock(&watched->lock);
    tarn_service__subscriber_write(sub, event);
}

void tarn_subscriber_start(struct tarn_subscriber *sub)
{
    struct tarn_topic *topic = sub->topic;
    pthread_mutex_lock(&topic->watched->lock);
    sub->started = true;
    tarn_service__work_enqueue(topic->watched, &topic->load,
                               true); /* a commit may have come while it was added */
    pthread_mutex_unlock(&topic->watched->lock);
    go_on(sub);
    tarn_service__subscriber_unref(sub);
}

void tarn_subscriber_written(struct tarn_subscriber *sub)
{
    struct tarn_watched *watched = sub->topic->watched;
    TARN_OWN(tarn_service__entry_drop) struct tarn_entry *done = NULL;
    pthread_mutex_lock(&watched->lock);
    tarn_assert(sub->writing && sub->entry != NULL);
    sub->writing = false;
    if (++sub->next_part == sub->entry->count) {
        done = tarn_move(sub->entry);
        sub->last.snapshot_id = done->snapshot_id;
        sub->last.identity = done->identity;
        sub->next_id = done->snapshot_id + 1;
        sub->next_part = 0;
        sub->first_identity = 0;
        sub->whole = false;
    }
    const void *event = tarn_service__subscriber_proceed(sub);
    pthread_mutex_unlock(&watched->lock);
    tarn_service__subscriber_write(sub, event);
}

void tarn_subscriber_ended(struct tarn_subscriber *consumed)
{
    struct tarn_watched *watched = consumed->topic->watched;
    pthread_mutex_lock(&watched->lock);
    consumed->ending = true;
    *consumed->link = consumed->next;
    if (consumed->next != NULL)
        consumed->next->link = consumed->link;
    pthread_mutex_unlock(&watched->lock);
    tarn_service__subscriber_unref(consumed);
}

/* --- a subscriber that is behind makes its own entry --- */

void tarn_service__run_catch_up(struct tarn_subscribe_work *work)
{
    struct tarn_subscriber *sub = TARN_CONTAINER_OF(work, struct tarn_subscriber, catch_up);
    struct tarn_watched *watched = sub->topic->watched;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_entry *entry = NULL;
    struct tarn_status *s = TARN_OK;
    tarn_service__work_op(&op);

    pthread_mutex_lock(&watched->lock);
    struct tarn_position last = sub->last;
    int64_t next_id = sub->next_id;
    uint64_t verify = sub->verify, identity = sub->first_identity;
    bool whole = sub->whole, ending = sub->ending;
    pthread_mutex_unlock(&watched->lock);
    if (!ending)
        s = tarn_service__entry_make(&op, watched->table, &sub->topic->spec, &last, identity, whole,
                                     &entry);

    pthread_mutex_lock(&watched->lock);
    work->queued = false;
    if (s == TARN_OK) {
        sub->verified = verify;
        sub->entry = entry;
    }
    /* What may pass is tried again in the next tick, as is a snapshot that a loader saw and nobody sees now, or that
     * no loader makes. */
    bool stalled = tarn_service__work_passes(s);
    sub->stalled = stalled || (s == TARN_OK && entry == NULL && !ending &&
                               (next_id <= sub->topic->newest_id || whole || identity != 0));
    const void *event = s == TARN_OK ? tarn_service__subscriber_proceed(sub) : NULL;
    pthread_mutex_unlock(&watched->lock);
    tarn_service__subscriber_write(sub, event);
    if (stalled)
        tarn_log_status(&op, TARN_WARN, "subscribe.stalled", s);
    else if (s != TARN_OK)
        tarn_service__subscriber_end(sub, s, false);
    tarn_service__subscriber_unref(sub);
    pthread_mutex_lock(&watched->lock);
    watched->work_count--; /* the last touch */
    pthread_mutex_unlock(&watched->lock);
}
