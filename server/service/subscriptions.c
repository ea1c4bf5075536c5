#include "service/subscribe_hub.h"

/* The hub: tables that are watched, the threads for what waits, the tick, coming and going. */

#define RUNNERS_MAX 16
#define TICK_MIN_MS 20
#define TICK_MAX_MS 1000
#define WORK_TIMEOUT_MS 60000

/* --- work --- */

static struct tarn_subscribe_work *pop(struct tarn_subscribe_queue *queue)
{
    struct tarn_subscribe_work *work = queue->first;
    if (work == NULL)
        return NULL;
    queue->first = work->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    return work;
}

static void push(struct tarn_subscribe_queue *queue, struct tarn_subscribe_work *work)
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
        struct tarn_subscribe_work *work = pop(&hub->urgent);
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

void tarn_service__work_enqueue(struct tarn_watched *watched, struct tarn_subscribe_work *work,
                                bool urgent)
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

void tarn_service__work_op(struct tarn_op *op)
{
    tarn_op_init(op);
    op->deadline_mono_ms = tarn_clock_mono_ms() + WORK_TIMEOUT_MS;
}

bool tarn_service__work_passes(const struct tarn_status *s)
{
    enum tarn_code code = tarn_status_code(s);
    return code == TARN_CODE_UNAVAILABLE || code == TARN_CODE_DEADLINE_EXCEEDED;
}

void tarn_subscriptions_notice(struct tarn_subscriptions *hub, struct tarn_table *table)
{
    pthread_mutex_lock(&hub->lock);
    for (struct tarn_watched *w = hub->watched; w != NULL; w = w->next) {
        if (strcmp(tarn_table_uuid(w->table), tarn_table_uuid(table)) != 0)
            continue;
        pthread_mutex_lock(&w->lock);
        w->news++;
        tarn_service__topics_load(w);
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_unlock(&hub->lock);
}

static int64_t slowest(const struct tarn_watched *watched)
{
    int64_t id = INT64_MAX;
    for (const struct tarn_topic *topic = watched->topics; topic != NULL; topic = topic->next)
        for (const struct tarn_subscriber *sub = topic->subscribers; sub != NULL; sub = sub->next)
            if (!sub->ending)
                id = TARN_MIN(id, sub->next_id);
    return id;
}

int64_t tarn_subscriptions_keep_from(struct tarn_subscriptions *hub, const struct tarn_table *table)
{
    int64_t id = INT64_MAX;
    pthread_mutex_lock(&hub->lock);
    for (struct tarn_watched *w = hub->watched; w != NULL; w = w->next) {
        if (strcmp(tarn_table_uuid(w->table), tarn_table_uuid(table)) != 0)
            continue;
        pthread_mutex_lock(&w->lock);
        id = TARN_MIN(id, slowest(w));
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_unlock(&hub->lock);
    return id;
}

/* --- what a tick does: looks for foreign commits, sheds who is stuck, forgets what nobody wants --- */

static void run_look(struct tarn_subscribe_work *work)
{
    struct tarn_watched *watched = TARN_CONTAINER_OF(work, struct tarn_watched, look);
    struct tarn_catalog *catalog = watched->hub->options.catalog;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    struct tarn_status *s = TARN_OK;
    tarn_service__work_op(&op);
    if (catalog != NULL)
        s = tarn_catalog_check_table(&op, catalog, watched->table);
    if (s == TARN_OK)
        s = tarn_service__look(&op, watched->table, &view);
    bool failed = s != TARN_OK;
    if (failed && !tarn_service__work_passes(s)) {
        pthread_mutex_lock(&watched->lock);
        struct tarn_topic *topic =
            watched->topics; /* topics go in the tick alone, when no work is left */
        pthread_mutex_unlock(&watched->lock);
        for (; topic != NULL; topic = topic->next)
            tarn_service__topic_end(topic, tarn_status_copy(s));
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
        tarn_service__topics_load(watched);
    watched->work_count--; /* the last touch */
    pthread_mutex_unlock(&watched->lock);
}

static void topic_free(struct tarn_topic *topic)
{
    tarn_service__ring_clear(topic);
    free((char *)(uintptr_t)topic->spec.where);
    free(topic);
}

/* With the lock held; subscribers in `list`, which grows, are to be shed. */
static void tick_topic(struct tarn_watched *watched, struct tarn_topic *topic, int64_t now_ms,
                       struct tarn_subscriber ***list, size_t *count, size_t *capacity)
{
    for (struct tarn_subscriber *sub = topic->subscribers; sub != NULL; sub = sub->next) {
        if (sub->stalled && !sub->catch_up.queued) {
            sub->stalled = false;
            atomic_fetch_add(&sub->ref_count, 1);
            tarn_service__work_enqueue(watched, &sub->catch_up, false);
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
        struct tarn_watched *watched = list[i]->topic->watched;
        tarn_metric_add(TARN_M_SUBSCRIBERS_SHED, NULL, 1);
        tarn_service__subscriber_end(
            list[i],
            tarn_status_new(TARN_SUBSCRIBER_SLOW,
                            "the subscriber of table %s has not taken its message for %" PRId64
                            " ms",
                            tarn_table_name(watched->table), watched->hub->options.slow_after_ms),
            true);
        tarn_service__subscriber_unref(list[i]);
    }
    free(list);
}

static void tick_watched(struct tarn_watched *watched, int64_t now_ms)
{
    struct tarn_subscriber **list = NULL;
    size_t count = 0, capacity = 0;
    pthread_mutex_lock(&watched->lock);
    for (struct tarn_topic **at = &watched->topics; *at != NULL;) {
        struct tarn_topic *topic = *at;
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
        tarn_service__work_enqueue(watched, &watched->look, true);
    }
    pthread_mutex_unlock(&watched->lock);
    shed(list, count);
}

static void watched_free(struct tarn_watched *watched)
{
    while (watched->topics != NULL) {
        struct tarn_topic *topic = watched->topics;
        watched->topics = topic->next;
        topic_free(topic);
    }
    tarn_table_unref(watched->table);
    pthread_mutex_destroy(&watched->lock);
    free(watched);
}

/* Takes those out of the list that nobody needs. */
static struct tarn_watched *take_unused(struct tarn_subscriptions *hub)
{
    struct tarn_watched *unused = NULL;
    pthread_mutex_lock(&hub->lock);
    for (struct tarn_watched **at = &hub->watched; *at != NULL;) {
        struct tarn_watched *watched = *at;
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
    for (struct tarn_watched *w = take_unused(hub), *next; w != NULL; w = next) {
        next = w->next;
        watched_free(w);
    }
    /* Only ticks take tables out of the list, and they don't overlap: it may be walked without the lock. */
    pthread_mutex_lock(&hub->lock);
    struct tarn_watched *first = hub->watched;
    pthread_mutex_unlock(&hub->lock);
    for (struct tarn_watched *w = first; w != NULL; w = w->next)
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
        struct tarn_watched *watched = hub->watched;
        hub->watched = watched->next;
        watched_free(watched);
    }
    pthread_cond_destroy(&hub->idle);
    pthread_mutex_destroy(&hub->queue_lock);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

/* The table's entry, with room for one subscriber taken. */
static struct tarn_watched *take_watched(struct tarn_subscriptions *hub, struct tarn_table *table)
{
    struct tarn_watched *watched;
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
static struct tarn_topic *take_topic(struct tarn_watched *watched,
                                     const struct tarn_topic_spec *spec,
                                     const struct tarn_position *latest)
{
    struct tarn_topic *topic;
    for (topic = watched->topics; topic != NULL; topic = topic->next)
        if (topic->spec.changes == spec->changes && topic->spec.how == spec->how &&
            topic->spec.door == spec->door && strcmp(topic->spec.where, spec->where) == 0)
            return topic;
    topic = tarn_calloc(1, sizeof *topic);
    topic->watched = watched;
    topic->spec = *spec;
    topic->spec.where = tarn_strdup(spec->where);
    topic->newest_id = latest->snapshot_id;
    topic->newest_identity = latest->identity;
    topic->load.run = tarn_service__run_load;
    topic->next = watched->topics;
    watched->topics = topic;
    return topic;
}

/* Does the topic's own care for what it gave out last hold for this one, too? Others may have rolled back since the position was held
 * against the folder, and the topic begun anew before anybody was there to be told. */
static bool is_on_topic(const struct tarn_topic *topic, const struct tarn_subscriber *sub)
{
    return sub->next_id <= topic->newest_id ||
           (sub->next_id == topic->newest_id + 1 && sub->first_identity == 0 &&
            sub->last.identity == topic->newest_identity);
}

struct tarn_status *tarn_service__subscriber_add(struct tarn_op *op, struct tarn_subscriptions *hub,
                                                 struct tarn_table *table,
                                                 const struct tarn_topic_spec *spec,
                                                 const struct tarn_position *position, void *stream,
                                                 struct tarn_subscriber **out)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_snapshot snapshot;
    struct tarn_position latest = {0};
    bool found;
    TARN_TRY(tarn_service__look(op, table, &view));
    latest.snapshot_id = view->has_snapshot ? view->snapshot.id : 0;
    TARN_TRY(tarn_table_find_snapshot(op, table, latest.snapshot_id, &found, &snapshot,
                                      &latest.identity));
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
        sub->first_identity = position->identity;
        sub->next_part = position->next_part;
        sub->whole = position->whole;
    }
    sub->catch_up.run = tarn_service__run_catch_up;
    struct tarn_watched *watched = take_watched(hub, table);
    pthread_mutex_lock(&watched->lock);
    struct tarn_topic *topic = take_topic(watched, spec, &latest);
    sub->topic = topic;
    sub->next = topic->subscribers;
    sub->link = &topic->subscribers;
    if (sub->next != NULL)
        sub->next->link = &sub->next;
    topic->subscribers = sub;
    topic->subscriber_count++;
    sub->verify = !is_on_topic(topic, sub);
    pthread_mutex_unlock(&watched->lock);
    *out = sub;
    return TARN_OK;
}
