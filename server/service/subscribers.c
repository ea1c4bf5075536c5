#include "service/subscribe_internal.h"

#include <pthread.h>

/*
 * Subscribers, the topics they share, and the tables that are watched for them.
 *
 * Order of locks: hub->lock (which tables), watched->lock (all about one), hub->queue_lock. None is held while a door
 * is called or anything waits.
 *
 * What waits runs as `work` on a few threads of the pool (RUNNERS_MAX): a thousand subscribers that read history must
 * not take every thread from the commits that they wait for. Loaders go before subscribers that are behind.
 */

#define RUNNERS_MAX 16
#define RING_COUNT_MAX 64       /* entries a topic keeps for those who are a little late */
#define RING_SIZE_MAX (1 << 20) /* ... and their bytes */
#define RINGS_SIZE_MAX ((int64_t)128 << 20) /* of all topics; then each keeps one entry */
#define TICK_MIN_MS 20
#define TICK_MAX_MS 1000
#define WORK_TIMEOUT_MS 60000

struct work {
    struct work *next;
    void (*run)(struct work *work);
    bool queued; /* guarded by the watched's lock */
};
struct queue {
    struct work *first, **last;
};

struct tarn_subscriptions {
    struct tarn_subscriptions_options options;
    struct tarn_timer *timer;
    atomic_bool ticking;
    atomic_int subscriber_count;
    _Atomic(int64_t) rings_size;

    pthread_mutex_t lock; /* guards `watched` */
    struct watched *watched;

    pthread_mutex_t queue_lock; /* guards all below */
    pthread_cond_t idle;
    struct queue urgent, patient;
    int runner_count;
};

struct watched {
    struct watched *next;
    struct tarn_subscriptions *hub;
    struct tarn_table *table; /* shared */

    pthread_mutex_t lock; /* guards all below, and the topics and subscribers */
    struct topic *topics;
    int subscriber_count, work_count; /* what needs it */
    uint64_t news;                    /* commits and adoptions told */
    struct work look;
    bool look_failed; /* was logged */
    int64_t look_at_ms;
};

struct topic {
    struct topic *next;
    struct watched *watched;
    struct tarn_topic_spec spec; /* where: owned */
    struct tarn_subscriber *subscribers;
    int subscriber_count; /* with those that were unlinked and are still at work */
    struct tarn_entry *ring[RING_COUNT_MAX]; /* consecutive ids, up to newest_id */
    size_t ring_count, ring_size;
    int64_t newest_id; /* the last one given out, or where the topic began */
    uint64_t newest_identity;
    uint64_t seen_news;
    struct work load;
    bool load_again, load_failed;
};

struct tarn_subscriber {
    atomic_int ref_count; /* the door's, the work's, and those who write */
    struct topic *topic;
    struct tarn_subscriber *next, **link;
    void *stream;
    int64_t next_id;
    uint32_t next_part;
    bool whole;                /* the next entry is of the snapshot as a whole */
    struct tarn_position last; /* what was told to its end */
    struct tarn_entry *entry;  /* what is being told; NULL: none */
    bool started, writing, ending, stalled;
    uint64_t verify, verified; /* differ: history may have changed below it */
    int64_t writing_since_ms;
    struct work catch_up;
};

/* --- work --- */

static struct work *pop(struct queue *queue)
{
    struct work *work = queue->first;
    if (work == NULL)
        return NULL;
    queue->first = work->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return work;
}

static void push(struct queue *queue, struct work *work)
{
    work->next = NULL;
    *queue->last = work;
    queue->last = &work->next;
}

static void run_works(void *arg)
{
    struct tarn_subscriptions *hub = arg;
    for (;;) {
        pthread_mutex_lock(&hub->queue_lock);
        struct work *work = pop(&hub->urgent);
        if (work == NULL)
            work = pop(&hub->patient);
        if (work == NULL && --hub->runner_count == 0)
            pthread_cond_broadcast(&hub->idle); /* the hub may go with this */
        pthread_mutex_unlock(&hub->queue_lock);
        if (work == NULL)
            return;
        work->run(work);
    }
}

/* With the watched's lock held. */
static void enqueue(struct watched *watched, struct work *work, bool urgent)
{
    struct tarn_subscriptions *hub = watched->hub;
    if (work->queued)
        return;
    work->queued = true;
    watched->work_count++;
    pthread_mutex_lock(&hub->queue_lock);
    push(urgent ? &hub->urgent : &hub->patient, work);
    bool post = hub->runner_count < RUNNERS_MAX;
    hub->runner_count += post;
    pthread_mutex_unlock(&hub->queue_lock);
    if (post)
        tarn_exec_post(hub->options.exec, run_works, hub);
}

static void work_op(struct tarn_op *op)
{
    tarn_op_init(op);
    op->deadline_mono_ms = tarn_clock_mono_ms() + WORK_TIMEOUT_MS;
}

/* May the same succeed a little later? */
static bool passes(const struct tarn_status *s)
{
    enum tarn_code code = tarn_status_code(s);
    return code == TARN_CODE_UNAVAILABLE || code == TARN_CODE_DEADLINE_EXCEEDED;
}

/* --- one subscriber --- */

static void subscriber_unref(struct tarn_subscriber *sub)
{
    if (atomic_fetch_sub(&sub->ref_count, 1) != 1)
        return;
    struct topic *topic = sub->topic;
    struct watched *watched = topic->watched;
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

static void end(struct tarn_subscriber *sub, struct tarn_status *consumed, bool stuck)
{
    struct watched *watched = sub->topic->watched;
    pthread_mutex_lock(&watched->lock);
    bool first = !sub->ending;
    sub->ending = true;
    pthread_mutex_unlock(&watched->lock);
    if (first)
        sub->topic->spec.door->end(sub->stream, consumed, stuck);
    else
        tarn_status_free(consumed);
}

static struct tarn_entry *ring_find(const struct topic *topic, int64_t id)
{
    int64_t first = topic->newest_id - (int64_t)topic->ring_count + 1;
    if (topic->ring_count == 0 || id < first || id > topic->newest_id)
        return NULL;
    return topic->ring[id - first];
}

/* With the lock held: what to write now, if anything; else whoever makes it is put to work. */
static const void *proceed(struct tarn_subscriber *sub)
{
    struct topic *topic = sub->topic;
    if (!sub->started || sub->writing || sub->ending || sub->catch_up.queued || sub->stalled)
        return NULL;
    bool suspect = sub->verify != sub->verified;
    if (sub->entry == NULL && !suspect && !sub->whole) {
        struct tarn_entry *entry = ring_find(topic, sub->next_id);
        if (entry != NULL)
            sub->entry = tarn_service__entry_ref(entry);
    }
    if (sub->entry == NULL) {
        if (suspect || sub->whole || sub->next_id <= topic->newest_id) {
            atomic_fetch_add(&sub->ref_count, 1);
            enqueue(topic->watched, &sub->catch_up, false);
        }
        return NULL;
    }
    if (sub->next_part >= sub->entry->count) /* of a token that was made by hand */
        sub->next_part = (uint32_t)sub->entry->count - 1;
    sub->writing = true;
    sub->writing_since_ms = tarn_clock_mono_ms();
    return sub->entry->events[sub->next_part];
}

/* Nobody else writes to it meanwhile: `writing` is set. The caller holds a reference. */
static void write_event(struct tarn_subscriber *sub, const void *event)
{
    if (event != NULL)
        sub->topic->spec.door->write(sub->stream, event);
}

static void go_on(struct tarn_subscriber *sub)
{
    struct watched *watched = sub->topic->watched;
    pthread_mutex_lock(&watched->lock);
    const void *event = proceed(sub);
    pthread_mutex_unlock(&watched->lock);
    write_event(sub, event);
}

void tarn_subscriber_start(struct tarn_subscriber *sub)
{
    struct topic *topic = sub->topic;
    pthread_mutex_lock(&topic->watched->lock);
    sub->started = true;
    enqueue(topic->watched, &topic->load, true); /* a commit may have come while it was added */
    pthread_mutex_unlock(&topic->watched->lock);
    go_on(sub);
    subscriber_unref(sub);
}

void tarn_subscriber_written(struct tarn_subscriber *sub)
{
    struct watched *watched = sub->topic->watched;
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
        sub->whole = false;
    }
    const void *event = proceed(sub);
    pthread_mutex_unlock(&watched->lock);
    write_event(sub, event);
}

void tarn_subscriber_ended(struct tarn_subscriber *consumed)
{
    struct watched *watched = consumed->topic->watched;
    pthread_mutex_lock(&watched->lock);
    consumed->ending = true;
    *consumed->link = consumed->next;
    if (consumed->next != NULL)
        consumed->next->link = consumed->link;
    pthread_mutex_unlock(&watched->lock);
    subscriber_unref(consumed);
}

/* --- a subscriber that is behind makes its own entry --- */

static struct tarn_status *next_entry(struct tarn_op *op, struct tarn_subscriber *sub,
                                      struct tarn_position *last, int64_t next_id, bool whole,
                                      bool suspect, struct tarn_entry **out)
{
    struct topic *topic = sub->topic;
    struct tarn_table *table = topic->watched->table;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    if (suspect)
        TARN_TRY(tarn_service__check_position(op, table, last));
    TARN_TRY(tarn_service__entry_make(op, table, &topic->spec, next_id, whole, out));
    if (*out != NULL)
        return TARN_OK;
    TARN_TRY(tarn_table_look(op, table, &view));
    if (!view->has_snapshot || next_id > view->snapshot.id)
        return TARN_OK; /* it is still to come */
    return tarn_service__reset(op, table, TARN_SNAPSHOT_EXPIRED,
                               "snapshot %" PRId64 " of table %s has expired", next_id,
                               tarn_table_name(table));
}

static void run_catch_up(struct work *work)
{
    struct tarn_subscriber *sub = TARN_CONTAINER_OF(work, struct tarn_subscriber, catch_up);
    struct watched *watched = sub->topic->watched;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_entry *entry = NULL;
    struct tarn_status *s = TARN_OK;
    work_op(&op);

    pthread_mutex_lock(&watched->lock);
    struct tarn_position last = sub->last;
    int64_t next_id = sub->next_id;
    uint64_t verify = sub->verify;
    bool whole = sub->whole, suspect = sub->verified != verify, ending = sub->ending;
    pthread_mutex_unlock(&watched->lock);
    if (!ending)
        s = next_entry(&op, sub, &last, next_id, whole, suspect, &entry);

    pthread_mutex_lock(&watched->lock);
    work->queued = false;
    if (s == TARN_OK) {
        sub->verified = verify;
        sub->entry = entry;
    }
    /* What may pass is tried again in the next tick, as is a snapshot that a loader saw and nobody sees now. */
    bool stalled = passes(s);
    sub->stalled =
        stalled || (s == TARN_OK && entry == NULL && !ending && next_id <= sub->topic->newest_id);
    const void *event = s == TARN_OK ? proceed(sub) : NULL;
    pthread_mutex_unlock(&watched->lock);
    write_event(sub, event);
    if (stalled)
        tarn_log_status(&op, TARN_WARN, "subscribe.stalled", s);
    else if (s != TARN_OK)
        end(sub, s, false);
    subscriber_unref(sub);
    pthread_mutex_lock(&watched->lock);
    watched->work_count--; /* the last touch */
    pthread_mutex_unlock(&watched->lock);
}

/* --- the topic's loader --- */

static void ring_clear(struct topic *topic)
{
    for (size_t i = 0; i < topic->ring_count; i++)
        tarn_service__entry_unref(topic->ring[i]);
    atomic_fetch_sub(&topic->watched->hub->rings_size, (int64_t)topic->ring_size);
    topic->ring_count = topic->ring_size = 0;
}

static void ring_push(struct topic *topic, struct tarn_entry *consumed)
{
    _Atomic(int64_t) *total = &topic->watched->hub->rings_size;
    topic->ring_size += consumed->size_bytes;
    atomic_fetch_add(total, (int64_t)consumed->size_bytes);
    size_t drop = 0;
    while (drop < topic->ring_count &&
           (topic->ring_count - drop == RING_COUNT_MAX || topic->ring_size > RING_SIZE_MAX ||
            atomic_load(total) > RINGS_SIZE_MAX)) {
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
static void fan_out(struct topic *topic, struct tarn_entry *entry)
{
    struct watched *watched = topic->watched;
    struct tarn_subscriber **list = NULL;
    const void **events = NULL;
    size_t count = 0;

    pthread_mutex_lock(&watched->lock);
    ring_push(topic, entry);
    list = tarn_calloc((size_t)watched->subscriber_count + 1, sizeof *list);
    events = tarn_calloc((size_t)watched->subscriber_count + 1, sizeof *events);
    for (struct tarn_subscriber *sub = topic->subscribers; sub != NULL; sub = sub->next) {
        const void *event = proceed(sub);
        if (event == NULL)
            continue;
        atomic_fetch_add(&sub->ref_count, 1);
        list[count] = sub;
        events[count++] = event;
    }
    pthread_mutex_unlock(&watched->lock);
    for (size_t i = 0; i < count; i++) {
        write_event(list[i], events[i]);
        subscriber_unref(list[i]);
    }
    free(list);
    free(events);
}

/* History is not what the topic knew: everybody looks for himself whether he can go on. */
static void begin_anew(struct topic *topic, int64_t latest_id, uint64_t identity)
{
    pthread_mutex_lock(&topic->watched->lock);
    ring_clear(topic);
    topic->newest_id = latest_id;
    topic->newest_identity = identity;
    for (struct tarn_subscriber *sub = topic->subscribers; sub != NULL; sub = sub->next) {
        sub->verify++;
        /* One in the middle of an entry goes on with it; the others are put to work. */
        const void *event = proceed(sub);
        tarn_assert(event == NULL);
    }
    pthread_mutex_unlock(&topic->watched->lock);
}

static struct tarn_status *load(struct tarn_op *op, struct topic *topic)
{
    struct watched *watched = topic->watched;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_snapshot snapshot;
    uint64_t identity = 0;
    bool found = false;

    pthread_mutex_lock(&watched->lock);
    uint64_t news = watched->news;
    pthread_mutex_unlock(&watched->lock);
    TARN_TRY(tarn_table_look(op, watched->table, &view));
    int64_t latest = view->has_snapshot ? view->snapshot.id : 0;
    if (latest == topic->newest_id && news == topic->seen_news)
        return TARN_OK;
    /* Only this loader changes newest: it may be read without the lock. */
    if (topic->newest_id > 0)
        TARN_TRY(tarn_table_find_snapshot(op, watched->table, topic->newest_id, &found, &snapshot,
                                          &identity));
    bool anew = topic->newest_id > latest || (found && identity != topic->newest_identity);
    while (!anew && topic->newest_id < latest) {
        struct tarn_entry *entry;
        struct tarn_status *s = tarn_service__entry_make(op, watched->table, &topic->spec,
                                                         topic->newest_id + 1, false, &entry);
        anew = (s == TARN_OK && entry == NULL) ||
               tarn_status_reason(s) == TARN_SNAPSHOT_ROLLED_BACK ||
               tarn_status_reason(s) == TARN_SNAPSHOT_EXPIRED;
        if (anew)
            tarn_status_drop(&s);
        TARN_TRY(s);
        if (!anew)
            fan_out(topic, entry);
    }
    if (anew) {
        identity = 0;
        TARN_TRY(
            tarn_table_find_snapshot(op, watched->table, latest, &found, &snapshot, &identity));
        begin_anew(topic, latest, identity);
    }
    topic->seen_news = news;
    return TARN_OK;
}

/* The same status for all. */
static void end_all(struct topic *topic, struct tarn_status *consumed)
{
    struct watched *watched = topic->watched;
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
        end(list[i], tarn_status_copy(consumed), false);
        subscriber_unref(list[i]);
    }
    free(list);
    tarn_status_free(consumed);
}

static void run_load(struct work *work)
{
    struct topic *topic = TARN_CONTAINER_OF(work, struct topic, load);
    struct watched *watched = topic->watched;
    bool again;
    do {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        work_op(&op);
        pthread_mutex_lock(&watched->lock);
        topic->load_again = false;
        pthread_mutex_unlock(&watched->lock);
        struct tarn_status *s = load(&op, topic);
        bool failed = s != TARN_OK;
        if (failed && !passes(s))
            end_all(topic, s);
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

/* With the lock held. */
static void load_all(struct watched *watched)
{
    for (struct topic *topic = watched->topics; topic != NULL; topic = topic->next) {
        topic->load_again = true;
        enqueue(watched, &topic->load, true);
    }
}

void tarn_subscriptions_notice(struct tarn_subscriptions *hub, struct tarn_table *table)
{
    pthread_mutex_lock(&hub->lock);
    for (struct watched *w = hub->watched; w != NULL; w = w->next) {
        if (strcmp(tarn_table_uuid(w->table), tarn_table_uuid(table)) != 0)
            continue;
        pthread_mutex_lock(&w->lock);
        w->news++;
        load_all(w);
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_unlock(&hub->lock);
}

/* --- what a tick does: looks for foreign commits, sheds who is stuck, forgets what nobody wants --- */

static void run_look(struct work *work)
{
    struct watched *watched = TARN_CONTAINER_OF(work, struct watched, look);
    struct tarn_catalog *catalog = watched->hub->options.catalog;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_status *s = TARN_OK;
    work_op(&op);
    if (catalog != NULL)
        s = tarn_catalog_check_table(&op, catalog, watched->table);
    if (s == TARN_OK)
        s = tarn_table_look(&op, watched->table, &view);
    bool failed = s != TARN_OK;
    if (failed && !passes(s)) {
        pthread_mutex_lock(&watched->lock);
        struct topic *topic =
            watched->topics; /* topics go in the tick alone, when no work is left */
        pthread_mutex_unlock(&watched->lock);
        for (; topic != NULL; topic = topic->next)
            end_all(topic, tarn_status_copy(s));
        tarn_status_free(s);
    } else if (failed && !watched->look_failed) {
        tarn_log_status(&op, TARN_WARN, "subscribe.stalled", s);
    } else {
        tarn_status_free(s);
    }
    watched->look_failed = failed;
    pthread_mutex_lock(&watched->lock);
    work->queued = false;
    if (!failed)
        load_all(watched);
    watched->work_count--; /* the last touch */
    pthread_mutex_unlock(&watched->lock);
}

static void topic_free(struct topic *topic)
{
    ring_clear(topic);
    free((char *)(uintptr_t)topic->spec.where);
    free(topic);
}

/* With the lock held; subscribers in `list`, which grows, are to be shed. */
static void tick_topic(struct watched *watched, struct topic *topic, int64_t now_ms,
                       struct tarn_subscriber ***list, size_t *count, size_t *capacity)
{
    for (struct tarn_subscriber *sub = topic->subscribers; sub != NULL; sub = sub->next) {
        if (sub->stalled && !sub->catch_up.queued) {
            sub->stalled = false;
            atomic_fetch_add(&sub->ref_count, 1);
            enqueue(watched, &sub->catch_up, false);
        }
        if (!sub->writing || sub->ending ||
            now_ms - sub->writing_since_ms <= watched->hub->options.slow_after_ms)
            continue;
        TARN_GROW(*list, *count, *capacity);
        atomic_fetch_add(&sub->ref_count, 1);
        (*list)[(*count)++] = sub;
    }
}

static void shed(struct tarn_subscriber **list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct watched *watched = list[i]->topic->watched;
        tarn_metric_add(TARN_M_SUBSCRIBERS_SHED, NULL, 1);
        end(list[i],
            tarn_status_new(TARN_SUBSCRIBER_SLOW,
                            "the subscriber of table %s has not taken its message for %" PRId64
                            " ms",
                            tarn_table_name(watched->table), watched->hub->options.slow_after_ms),
            true);
        subscriber_unref(list[i]);
    }
    free(list);
}

static void tick_watched(struct watched *watched, int64_t now_ms)
{
    struct tarn_subscriber **list = NULL;
    size_t count = 0, capacity = 0;
    pthread_mutex_lock(&watched->lock);
    for (struct topic **at = &watched->topics; *at != NULL;) {
        struct topic *topic = *at;
        tick_topic(watched, topic, now_ms, &list, &count, &capacity);
        if (topic->subscriber_count != 0 || watched->work_count != 0) {
            at = &topic->next;
            continue;
        }
        *at = topic->next;
        topic_free(topic);
    }
    if (watched->subscriber_count > 0 && now_ms >= watched->look_at_ms) {
        watched->look_at_ms = now_ms + watched->hub->options.foreign_check_ms;
        enqueue(watched, &watched->look, true);
    }
    pthread_mutex_unlock(&watched->lock);
    shed(list, count);
}

static void watched_free(struct watched *watched)
{
    while (watched->topics != NULL) {
        struct topic *topic = watched->topics;
        watched->topics = topic->next;
        topic_free(topic);
    }
    tarn_table_unref(watched->table);
    pthread_mutex_destroy(&watched->lock);
    free(watched);
}

/* Takes those out of the list that nobody needs. */
static struct watched *take_unused(struct tarn_subscriptions *hub)
{
    struct watched *unused = NULL;
    pthread_mutex_lock(&hub->lock);
    for (struct watched **at = &hub->watched; *at != NULL;) {
        struct watched *watched = *at;
        pthread_mutex_lock(&watched->lock);
        bool used = watched->subscriber_count > 0 || watched->work_count > 0;
        pthread_mutex_unlock(&watched->lock);
        if (used) {
            at = &watched->next;
            continue;
        }
        *at = watched->next;
        watched->next = unused;
        unused = watched;
    }
    pthread_mutex_unlock(&hub->lock);
    return unused;
}

static void tick(void *arg)
{
    struct tarn_subscriptions *hub = arg;
    int64_t now_ms = tarn_clock_mono_ms();
    if (atomic_exchange(&hub->ticking, true))
        return; /* the last one isn't done */
    for (struct watched *w = take_unused(hub), *next; w != NULL; w = next) {
        next = w->next;
        watched_free(w);
    }
    /* Only ticks take tables out of the list, and they don't overlap: it may be walked without the lock. */
    pthread_mutex_lock(&hub->lock);
    struct watched *first = hub->watched;
    pthread_mutex_unlock(&hub->lock);
    for (struct watched *w = first; w != NULL; w = w->next)
        tick_watched(w, now_ms);
    atomic_store(&hub->ticking, false);
}

/* --- coming and going --- */

struct tarn_subscriptions *tarn_subscriptions_new(const struct tarn_subscriptions_options *options)
{
    struct tarn_subscriptions *hub = tarn_calloc(1, sizeof *hub);
    hub->options = *options;
    hub->urgent.last = &hub->urgent.first;
    hub->patient.last = &hub->patient.first;
    pthread_mutex_init(&hub->lock, NULL);
    pthread_mutex_init(&hub->queue_lock, NULL);
    pthread_cond_init(&hub->idle, NULL);
    int64_t every_ms = TARN_MIN(options->foreign_check_ms, options->slow_after_ms) / 4;
    every_ms = TARN_MIN(TARN_MAX(every_ms, (int64_t)TICK_MIN_MS), (int64_t)TICK_MAX_MS);
    hub->timer = tarn_timer_new(options->exec, every_ms, every_ms, tick, hub);
    return hub;
}

void tarn_subscriptions_free(struct tarn_subscriptions *hub)
{
    if (hub == NULL)
        return;
    tarn_timer_cancel(hub->timer);
    tarn_exec_wait_begin();
    pthread_mutex_lock(&hub->queue_lock);
    while (hub->runner_count > 0)
        pthread_cond_wait(&hub->idle, &hub->queue_lock);
    pthread_mutex_unlock(&hub->queue_lock);
    tarn_exec_wait_end();
    tarn_assert(atomic_load(&hub->subscriber_count) == 0);
    while (hub->watched != NULL) {
        struct watched *watched = hub->watched;
        hub->watched = watched->next;
        watched_free(watched);
    }
    pthread_cond_destroy(&hub->idle);
    pthread_mutex_destroy(&hub->queue_lock);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

/* The table's entry, with room for one subscriber taken. */
static struct watched *take_watched(struct tarn_subscriptions *hub, struct tarn_table *table)
{
    struct watched *watched;
    pthread_mutex_lock(&hub->lock);
    for (watched = hub->watched; watched != NULL; watched = watched->next)
        if (watched->table == table)
            break;
    if (watched == NULL) {
        watched = tarn_calloc(1, sizeof *watched);
        watched->hub = hub;
        watched->table = tarn_table_ref(table);
        watched->look.run = run_look;
        pthread_mutex_init(&watched->lock, NULL);
        watched->next = hub->watched;
        hub->watched = watched;
    }
    pthread_mutex_lock(&watched->lock);
    watched->subscriber_count++;
    pthread_mutex_unlock(&watched->lock);
    pthread_mutex_unlock(&hub->lock);
    return watched;
}

/* With the lock held. */
static struct topic *take_topic(struct watched *watched, const struct tarn_topic_spec *spec,
                                int64_t latest_id, uint64_t identity)
{
    struct topic *topic;
    for (topic = watched->topics; topic != NULL; topic = topic->next)
        if (topic->spec.changes == spec->changes && topic->spec.how == spec->how &&
            topic->spec.door == spec->door && strcmp(topic->spec.where, spec->where) == 0)
            return topic;
    topic = tarn_calloc(1, sizeof *topic);
    topic->watched = watched;
    topic->spec = *spec;
    topic->spec.where = tarn_strdup(spec->where);
    topic->newest_id = latest_id;
    topic->newest_identity = identity;
    topic->load.run = run_load;
    topic->next = watched->topics;
    watched->topics = topic;
    return topic;
}

struct tarn_status *tarn_service__subscriber_add(struct tarn_op *op, struct tarn_subscriptions *hub,
                                                 struct tarn_table *table,
                                                 const struct tarn_topic_spec *spec,
                                                 const struct tarn_position *position, void *stream,
                                                 struct tarn_subscriber **out)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_snapshot snapshot;
    uint64_t identity = 0;
    bool found;
    TARN_TRY(tarn_table_look(op, table, &view));
    int64_t latest = view->has_snapshot ? view->snapshot.id : 0;
    TARN_TRY(tarn_table_find_snapshot(op, table, latest, &found, &snapshot, &identity));
    int count = atomic_fetch_add(&hub->subscriber_count, 1) + 1;
    if (count > hub->options.subscriber_max) {
        atomic_fetch_sub(&hub->subscriber_count, 1);
        return tarn_status_new(TARN_BUSY, "there are %d subscribers", hub->options.subscriber_max);
    }
    tarn_metric_set(TARN_M_SUBSCRIBERS, NULL, (double)count);

    struct tarn_subscriber *sub = tarn_calloc(1, sizeof *sub);
    atomic_init(&sub->ref_count, 2); /* the door's, until it has ended; and whoever starts it */
    sub->stream = stream;
    sub->last = *position;
    sub->last.behind = true;
    sub->next_id = position->snapshot_id + position->behind;
    if (!position->behind) { /* nothing of it counts as told: what is before it does */
        sub->last.snapshot_id = position->snapshot_id - 1;
        sub->last.identity = 0;
        sub->next_part = position->next_part;
        sub->whole = position->whole;
    }
    sub->catch_up.run = run_catch_up;
    struct watched *watched = take_watched(hub, table);
    pthread_mutex_lock(&watched->lock);
    struct topic *topic = take_topic(watched, spec, latest, identity);
    sub->topic = topic;
    sub->next = topic->subscribers;
    sub->link = &topic->subscribers;
    if (sub->next != NULL)
        sub->next->link = &sub->next;
    topic->subscribers = sub;
    topic->subscriber_count++;
    pthread_mutex_unlock(&watched->lock);
    *out = sub;
    return TARN_OK;
}
