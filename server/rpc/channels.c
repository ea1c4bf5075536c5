#include "rpc/channels.h"

void tarn_rpc__channels_init(struct tarn_rpc__channels *channels)
{
    pthread_mutex_init(&channels->lock, NULL);
    channels->first = NULL;
}

static void channel_free(struct tarn_rpc__channel *c)
{
    tarn_channel_close(c->channel);
    free(c->address);
    free(c);
}

void tarn_rpc__channels_fini(struct tarn_rpc__channels *channels)
{
    while (channels->first != NULL) {
        struct tarn_rpc__channel *c = channels->first;
        channels->first = c->next;
        channel_free(c);
    }
    pthread_mutex_destroy(&channels->lock);
}

/* The lock is held. */
static struct tarn_rpc__channel *unlink_channel(struct tarn_rpc__channels *channels,
                                                struct tarn_rpc__channel *wanted)
{
    struct tarn_rpc__channel **at = &channels->first;
    while (*at != wanted)
        at = &(*at)->next;
    *at = wanted->next;
    return wanted;
}

static struct tarn_rpc__channel *find(struct tarn_rpc__channels *channels, const char *address)
{
    for (struct tarn_rpc__channel *c = channels->first; c != NULL; c = c->next)
        if (!c->retired && strcmp(c->address, address) == 0)
            return c;
    return NULL;
}

/* The longest idle one beyond the limit, taken out; NULL: none. */
static struct tarn_rpc__channel *surplus(struct tarn_rpc__channels *channels)
{
    struct tarn_rpc__channel *last = NULL;
    int count = 0;
    for (struct tarn_rpc__channel *c = channels->first; c != NULL; c = c->next) {
        count++;
        if (c->users == 0)
            last = c;
    }
    return count > TARN_RPC_CHANNELS_MAX && last != NULL ? unlink_channel(channels, last) : NULL;
}

struct tarn_status *tarn_rpc__channel_take(struct tarn_rpc *rpc, const char *address,
                                           struct tarn_rpc__channel **out)
{
    struct tarn_rpc__channels *channels = &rpc->channels;
    struct tarn_status *s = TARN_OK;
    struct tarn_rpc__channel *old = NULL;
    pthread_mutex_lock(&channels->lock);
    struct tarn_rpc__channel *c = find(channels, address);
    if (c != NULL) {
        unlink_channel(channels, c);
    } else {
        struct tarn_channel_options options = {
            .address = address,
            .token = tarn_service_worker_secret(rpc->service),
            .message_max_bytes = TARN_RPC_WORKER_MESSAGE_MAX,
        };
        struct tarn_channel *channel;
        s = tarn_channel_open(&options, &channel); /* connects later: doesn't wait */
        if (s == TARN_OK) {
            c = tarn_calloc(1, sizeof *c);
            c->address = tarn_strdup(address);
            c->channel = channel;
        }
    }
    if (c != NULL) {
        c->users++;
        c->next = channels->first;
        channels->first = c;
        old = surplus(channels);
    }
    pthread_mutex_unlock(&channels->lock);
    if (old != NULL)
        channel_free(old);
    *out = c;
    return s;
}

void tarn_rpc__channel_give(struct tarn_rpc *rpc, struct tarn_rpc__channel *c, bool broken)
{
    struct tarn_rpc__channels *channels = &rpc->channels;
    pthread_mutex_lock(&channels->lock);
    c->users--;
    c->retired |= broken;
    bool last = c->retired && c->users == 0;
    if (last)
        unlink_channel(channels, c);
    pthread_mutex_unlock(&channels->lock);
    if (last)
        channel_free(c);
}
