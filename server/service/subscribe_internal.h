/*
 * subscribe_internal - positions and tokens (subscribe_token.c), subscribers and topics (subscribers.c), and how a
 * subscription begins (subscribe.c).
 */
#ifndef TARN_SERVICE_SUBSCRIBE_INTERNAL_H
#define TARN_SERVICE_SUBSCRIBE_INTERNAL_H

#include "service/internal.h"
#include "service/subscribe.h"

/* --- where a stream stands --- */
struct tarn_position {
    char uuid[TARN_UUID_SIZE]; /* of the table */
    char branch[64];           /* "": main */
    int64_t snapshot_id;       /* 0: before the first, of a table without one */
    uint64_t identity;         /* of that snapshot; 0: not known */
    bool behind;               /* it was told to its end: the next one follows */
    bool whole;                /* ... or will be: as a whole */
    uint32_t next_part;        /* not behind: the event that comes next */
    uint64_t filter;           /* what was asked, where next_part > 0: parts depend on it */
};
void tarn_service__token_encode(const struct tarn_position *position, struct tarn_buf *out);
/* INVALID_ARGUMENT for what is no token. */
TARN_MUST struct tarn_status *tarn_service__token_decode(struct tarn_slice token,
                                                         struct tarn_position *out);

/* A status of that reason with facts earliest_snapshot and earliest_token, for those that must begin anew. */
TARN_MUST struct tarn_status *tarn_service__reset(struct tarn_op *op, struct tarn_table *table,
                                                  enum tarn_reason reason, const char *format, ...)
    TARN_PRINTF(4, 5);

/* tarn_table_look. A history that others rewrite while it is read is no end of a stream: UNAVAILABLE, it passes. */
TARN_MUST struct tarn_status *tarn_service__looked(
    struct tarn_status *consumed); /* the same of a look that was made */
TARN_MUST struct tarn_status *tarn_service__look(struct tarn_op *op, struct tarn_table *table,
                                                 const struct tarn_table_view **out);

/* --- what is asked of a table --- */
struct tarn_topic_spec {
    bool changes;
    int how;
    const char *where;
    const struct tarn_subscribe_door *door;
};
/* The splits of a snapshot, or of what it changed, as streaming readers want them (docs/format.md, "Streaming"). */
TARN_MUST struct tarn_status *tarn_service__plan_event(struct tarn_op *op, struct tarn_table *table,
                                                       const struct tarn_topic_spec *spec,
                                                       int64_t snapshot_id, bool whole,
                                                       struct tarn_plan *out, const char ***paths,
                                                       bool *differs /* splits are differences */);
/* Whole buckets at both ends, wherever one file of them differs: what a key was may lie in a file that stayed. Without a
 * primary key only the files that one of the two has. */
TARN_MUST struct tarn_status *tarn_service__plan_difference(struct tarn_op *op,
                                                            struct tarn_table *table, int64_t from,
                                                            int64_t to, struct tarn_slice where,
                                                            struct tarn_plan *out);
uint64_t tarn_service__topic_filter(const struct tarn_topic_spec *spec);
/* SNAPSHOT_EXPIRED: `id` lies below what is said to be left, though it may be in the folder still: an expiry was cut off. */
TARN_MUST struct tarn_status *tarn_service__check_left(struct tarn_op *op, struct tarn_table *table,
                                                       int64_t id);
/* Does the stream go on at `position`? Why not, if not. As the folder is now. */
TARN_MUST struct tarn_status *tarn_service__check_position(struct tarn_op *op,
                                                           struct tarn_table *table,
                                                           const struct tarn_position *position);

/* --- one snapshot's events (subscribe_entry.c) --- */
struct tarn_entry {
    atomic_int ref_count;
    int64_t snapshot_id;
    uint64_t identity;
    uint64_t parent_identity; /* of the snapshot that it follows; 0: not known, it is gone */
    const struct tarn_subscribe_door *door;
    void **events; /* encoded */
    size_t count, size_bytes;
};
/* The snapshot that comes after `last`, which must still be what it was: who was told of it may be told of this one.
 * identity: which snapshot of that id, where one was begun with; 0: any. *out NULL: it isn't there (yet), or others
 * were at work in the folder while it was made; nothing is missing. */
TARN_MUST struct tarn_status *tarn_service__entry_make(struct tarn_op *op, struct tarn_table *table,
                                                       const struct tarn_topic_spec *spec,
                                                       const struct tarn_position *last,
                                                       uint64_t identity, bool whole,
                                                       struct tarn_entry **out);
struct tarn_entry *tarn_service__entry_ref(struct tarn_entry *entry);
void tarn_service__entry_unref(struct tarn_entry *entry);
void tarn_service__entry_drop(struct tarn_entry **entry);

/* --- subscribers.c --- */
TARN_MUST struct tarn_status *tarn_service__subscriber_add(
    struct tarn_op *op, struct tarn_subscriptions *subscriptions, struct tarn_table *table,
    const struct tarn_topic_spec *spec, const struct tarn_position *position, void *stream,
    struct tarn_subscriber **out);

#endif
