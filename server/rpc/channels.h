/*
 * channels - connections to workers, kept while streams use them and for the next ones.
 *
 * Shape    one channel an address, counted; at most TARN_RPC_CHANNELS_MAX idle ones are kept, the
 *          longest idle is closed. A worker that comes back on its address is reconnected by the
 *          library.
 * Threads  any.
 */
#ifndef TARN_RPC_CHANNELS_H
#define TARN_RPC_CHANNELS_H

#include <pthread.h>

#include "rpc/internal.h"

#define TARN_RPC_CHANNELS_MAX 64

struct tarn_rpc__channel {
    struct tarn_rpc__channel *next;
    char *address;
    struct tarn_channel *channel;
    int users;
    bool retired; /* closed when its last user goes */
};
struct tarn_rpc__channels {
    pthread_mutex_t lock;            /* guards all */
    struct tarn_rpc__channel *first; /* the latest used first */
};

struct tarn_rpc__bound {
    struct tarn_rpc *rpc;
    const struct tarn_rpc__method *method;
};
struct tarn_rpc {
    struct tarn_service *service;
    struct tarn_rpc__channels channels;
    struct tarn_rpc__bound *bound;
    struct tarn_wire_method *methods;
    size_t method_count;
    int call_max;
    atomic_int call_count, large_count;
};

void tarn_rpc__channels_init(struct tarn_rpc__channels *channels);
void tarn_rpc__channels_fini(struct tarn_rpc__channels *channels); /* nobody uses one any more */
TARN_MUST struct tarn_status *tarn_rpc__channel_take(struct tarn_rpc *rpc, const char *address,
                                                     struct tarn_rpc__channel **out);
/* broken: the next taker gets a new one. */
void tarn_rpc__channel_give(struct tarn_rpc *rpc, struct tarn_rpc__channel *channel, bool broken);

#endif
