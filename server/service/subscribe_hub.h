/*
 * subscribe_hub - subscribers, the topics they share, and the tables that are watched for them.
 *
 *   subscribers.c    one subscriber: what it is told next, and how one that is behind goes on
 *   topics.c         what is asked of a table: the ring of its newest entries, their loader, the fan-out
 *   subscriptions.c  the hub: which tables, who comes and goes, the tick, the threads for what waits
 *
 * Order of locks: hub->lock (which tables), watched->lock (all about one), hub->queue_lock. None is held while a door is
 * called or anything waits.
 *
 * What waits runs as `work` on a few threads of the pool (RUNNERS_MAX): a thousand subscribers that read history must
 * not take every thread from the commits that they wait for. Loaders go before subscribers that are behind.
 *
 * Who keeps what: a subscriber is counted (the door, its work, whoever writes to it). A topic and a table stay while
 * subscribers of theirs are there, also those that were unlinked and are still at work, or work is queued; the tick lets
 * go of them.
 */
#ifndef TARN_SERVICE_SUBSCRIBE_HUB_H
#define TARN_SERVICE_SUBSCRIBE_HUB_H

#include <pthread.h>

#include "service/subscribe_internal.h"

#define TARN_SUBSCRIBE_RING_COUNT_MAX 64 /* entries a topic keeps for those who are a little late */

struct tarn_subscribe_work {
    struct tarn_subscribe_work *next;
    void (*run)(struct tarn_subscribe_work *work);
    bool queued; /* guarded by the watched's lock */
};
struct tarn_subscribe_queue {
    struct tarn_subscribe_work *first, **last;
};

struct tarn_subscriptions {
    struct tarn_subscriptions_options options;
    struct tarn_timer *timer;
    atomic_bool ticking;
    atomic_int subscriber_count;
    _Atomic(int64_t) rings_size;

    pthread_mutex_t lock; /* guards `watched` */
    struct tarn_watched *watched;

    pthread_mutex_t queue_lock; /* guards all below */
    pthread_cond_t idle;
    struct tarn_subscribe_queue urgent, patient;
    int runner_count;
};

struct tarn_watched {
    struct tarn_watched *next;
    struct tarn_subscriptions *hub;
    struct tarn_table *table; /* shared */

    pthread_mutex_t lock; /* guards all below, and the topics and subscribers */
    struct tarn_topic *topics;
    int subscriber_count, work_count; /* what needs it */
    uint64_t news;                    /* commits and adoptions told */
    struct tarn_subscribe_work look;
    bool look_failed; /* was logged */
    int64_t look_at_ms;
};

struct tarn_topic {
    struct tarn_topic *next;
    struct tarn_watched *watched;
    struct tarn_topic_spec spec; /* where: owned */
    struct tarn_subscriber *subscribers;
    int subscriber_count; /* with those that were unlinked and are still at work */
    struct tarn_entry *ring[TARN_SUBSCRIBE_RING_COUNT_MAX]; /* consecutive ids, up to newest_id */
    size_t ring_count, ring_size;
    int64_t newest_id;        /* the last one given out, or where the topic began */
    uint64_t newest_identity; /* as a position's */
    uint64_t seen_news;
    struct tarn_subscribe_work load;
    bool load_again, load_failed;
};

struct tarn_subscriber {
    atomic_int ref_count; /* the door's, the work's, and those who write */
    struct tarn_topic *topic;
    struct tarn_subscriber *next, **link;
    void *stream;
    int64_t next_id;
    uint32_t next_part;
    bool whole;                /* the next entry is of the snapshot as a whole */
    struct tarn_position last; /* what was told to its end */
    uint64_t first_identity;   /* which one begins, where one was begun with; 0: any */
    struct tarn_entry *entry;  /* what is being told; NULL: none */
    bool started, writing, ending, stalled;
    uint64_t verify, verified; /* differ: history may have changed below it */
    int64_t writing_since_ms;
    struct tarn_subscribe_work catch_up;
};

/* --- subscriptions.c: work, and the op it is done under. `passes`: may the same succeed a little later? --- */
/* With the watched's lock held. */
void tarn_service__work_enqueue(struct tarn_watched *watched, struct tarn_subscribe_work *work,
                                bool urgent);
void tarn_service__work_op(struct tarn_op *op);
bool tarn_service__work_passes(const struct tarn_status *s);

/* --- subscribers.c --- */
void tarn_service__subscriber_unref(struct tarn_subscriber *sub);
void tarn_service__subscriber_end(struct tarn_subscriber *sub, struct tarn_status *consumed,
                                  bool stuck);
/* With the lock held: what to write now, if anything; else whoever makes it is put to work. What it returns is to be
 * written once the lock is given up, with a reference to the subscriber. */
const void *tarn_service__subscriber_proceed(struct tarn_subscriber *sub);
void tarn_service__subscriber_write(struct tarn_subscriber *sub, const void *event /* or NULL */);
void tarn_service__run_catch_up(struct tarn_subscribe_work *work);

/* --- topics.c --- */
/* What comes after `last` and stands on it; identity as in entry_make. Borrowed, or NULL. */
struct tarn_entry *tarn_service__ring_find(const struct tarn_topic *topic,
                                           const struct tarn_position *last, uint64_t identity);
void tarn_service__ring_clear(struct tarn_topic *topic);
void tarn_service__topics_load(struct tarn_watched *watched); /* with the lock held */
void tarn_service__topic_end(struct tarn_topic *topic, struct tarn_status *consumed);
void tarn_service__run_load(struct tarn_subscribe_work *work);

#endif
