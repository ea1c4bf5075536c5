/*
 * subscribe - being told of a table's snapshots as they are committed, or of what each of them changed.
 *
 * Shape    A subscriber follows one table from a position on: snapshot after snapshot in order of id, none left out,
 *          none twice. Every event carries a token that says where it stands; a subscription that begins with it
 *          continues behind that event. What can't be continued ends with an error that says why, and never with a
 *          hole: SNAPSHOT_EXPIRED, SNAPSHOT_ROLLED_BACK, both with facts earliest_snapshot and earliest_token.
 *
 *            watched     a table with subscribers. Looked at for foreign commits once a foreign_check, however many
 *              topic     what is asked of it (what, where, how): events are encoded once for all its subscribers
 *                entry   one snapshot's events, encoded, counted; the newest are kept in a ring
 *                subscriber  a position, and at most one message under way
 *
 * Live     A commit wakes the topic's loader, which makes the entry and gives it to everybody who waits for it.
 * Behind   A subscriber whose next snapshot is not in the ring makes its entry itself, one at a time, beside the
 *          others. Nobody waits for anybody.
 * Slow     One that has not taken its message for `slow_after_ms` ends with SUBSCRIBER_SLOW; it has the token of the
 *          message before. Nothing is queued for it, so falling behind costs no memory and ends nothing by itself.
 * Limits   subscriber_max; more are BUSY. TARN_SUBSCRIBE_ENTRY_SIZE_MAX for the splits of one snapshot (TOO_LARGE).
 * Threads  notice, written, ended: any, they don't wait. The door's functions are called from any thread, for one
 *          subscriber one at a time, but `end`.
 */
#ifndef TARN_SERVICE_SUBSCRIBE_H
#define TARN_SERVICE_SUBSCRIBE_H

#include "service/service.h"
#include "table/watch.h"

#define TARN_SUBSCRIBE_ENTRY_SIZE_MAX (64 << 20)
#define TARN_SUBSCRIBE_TOKEN_SIZE_MAX 512
#define TARN_SUBSCRIBE_WHERE_SIZE_MAX (64 << 10)
#define TARN_SUBSCRIBE_SPLITS_PER_EVENT 100
#define TARN_SUBSCRIBE_FILES_PER_EVENT 1000

struct tarn_subscriptions;
struct tarn_subscriptions_options {
    struct tarn_exec *exec;
    struct tarn_catalog *catalog; /* to learn that a table was replaced; NULL: not looked */
    int64_t foreign_check_ms;
    int64_t slow_after_ms;
    int subscriber_max;
};
struct tarn_subscriptions *tarn_subscriptions_new(const struct tarn_subscriptions_options *options);
/* Subscribers are gone: the doors are closed. Before the catalog and the exec. NULL is fine. */
void tarn_subscriptions_free(struct tarn_subscriptions *subscriptions);
/* As tarn_table_env.committed; after each commit and adoption. */
void tarn_subscriptions_notice(struct tarn_subscriptions *subscriptions, struct tarn_table *table);
/* The earliest snapshot that a subscriber of the table has yet to be told: our expiry leaves it and all after it, for
 * as long as subscribers take their messages. INT64_MAX: none. */
int64_t tarn_subscriptions_keep_from(struct tarn_subscriptions *subscriptions,
                                     const struct tarn_table *table);

/* --- what is asked --- */
enum tarn_subscribe_from {
    TARN_FROM_LATEST, /* what comes from now on */
    TARN_FROM_EARLIEST,
    TARN_FROM_SNAPSHOT,
    TARN_FROM_TIME,
    TARN_FROM_TOKEN,
    TARN_FROM_CONSUMER
};
struct tarn_subscribe_request {
    struct tarn_table_ref table;
    bool changes; /* splits of what each snapshot changed */
    enum tarn_subscribe_from from;
    int64_t snapshot_id, time_ms;
    struct tarn_slice token, consumer;
    struct tarn_slice keep_consumer; /* not empty: is put where the stream begins */
    struct tarn_slice where;
    int how; /* enum tarn_changes_how */
    bool full_first;
};

/* --- what is told --- */
struct tarn_subscribe_event {
    const struct tarn_snapshot *snapshot;
    const struct tarn_split *splits;
    const char *const *paths; /* of the splits' folders */
    size_t split_count;
    bool differs; /* splits are two states each: before_files and files */
    bool last;    /* of this snapshot */
    bool whole;   /* splits are of the snapshot as a whole */
    struct tarn_slice token;
};
struct tarn_subscribe_door {
    /* Encodes for any number of streams; *size in bytes. */
    struct tarn_status *(*encode)(struct tarn_op *op, const struct tarn_subscribe_event *event,
                                  void **encoded, size_t *size);
    void (*free_encoded)(void *encoded);
    /* Begins to send; tarn_subscriber_written follows. Nothing does where the stream is over, but `ended`. */
    void (*write)(void *stream, const void *encoded);
    /* stuck: don't wait for what is under way. May come from several threads; the first counts. */
    void (*end)(void *stream, struct tarn_status *consumed, bool stuck);
    void (*release)(void *stream); /* once, the last */
};
struct tarn_subscriber;
/* `stream` is consumed by success alone. Nothing is written before tarn_subscriber_start, which must follow, also when
 * the stream has ended by then. */
TARN_MUST struct tarn_status *tarn_service_subscribe(struct tarn_op *op,
                                                     struct tarn_service *service,
                                                     const struct tarn_subscribe_request *request,
                                                     const struct tarn_subscribe_door *door,
                                                     void *stream, struct tarn_subscriber **out);
void tarn_subscriber_start(struct tarn_subscriber *subscriber);
void tarn_subscriber_written(struct tarn_subscriber *subscriber);
void tarn_subscriber_ended(struct tarn_subscriber *consumed); /* nothing may be told after it */

/* --- rows of changes: as tarn_service_scan_begin; how: enum tarn_changes, not NONE --- */
TARN_MUST struct tarn_status *tarn_service_changes_begin(
    struct tarn_op *op, struct tarn_service *service, struct tarn_table_ref ref,
    int64_t from /* snapshot, exclusive */, int how, struct tarn_version version,
    struct tarn_slice where, struct tarn_scan *out);

/* --- consumers --- */
TARN_MUST struct tarn_status *tarn_service_list_consumers(struct tarn_op *op,
                                                          struct tarn_service *service,
                                                          struct tarn_table_ref ref,
                                                          struct tarn_consumer **out,
                                                          size_t *count);
/* next_snapshot from the earliest retained to the latest + 1; 0: latest + 1. */
TARN_MUST struct tarn_status *tarn_service_set_consumer(struct tarn_op *op,
                                                        struct tarn_service *service,
                                                        struct tarn_table_ref ref,
                                                        struct tarn_slice id, int64_t next_snapshot,
                                                        struct tarn_consumer *out);
TARN_MUST struct tarn_status *tarn_service_drop_consumer(struct tarn_op *op,
                                                         struct tarn_service *service,
                                                         struct tarn_table_ref ref,
                                                         struct tarn_slice id);

#endif
