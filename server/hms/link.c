#include "hms/internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A TCP connection whose every wait ends: at its deadline, or soon after the op was cancelled. */

#define SLICE_MS 100 /* between two looks at the op */
#define URI_ADDRESSES_MAX 16

struct tarn_hms__link {
    int fd;
};

/* --- addresses --- */

static bool parse_address(struct tarn_slice text, struct tarn_hms__address *out)
{
    static const char scheme[] = "thrift://";
    if (!tarn_slice_starts_with(text, tarn_slice_str(scheme)))
        return false;
    text = tarn_slice_of(text.data + strlen(scheme), text.size - strlen(scheme));
    const uint8_t *colon = memrchr(text.data, ':', text.size);
    int64_t port = 0;
    if (colon == NULL || colon == text.data || memchr(text.data, '/', text.size) != NULL)
        return false;
    struct tarn_slice host = tarn_slice_of(text.data, (size_t)(colon - text.data));
    struct tarn_slice number = tarn_slice_of(colon + 1, text.size - host.size - 1);
    tarn_status_free(tarn_parse_i64(number, &port));
    if (host.size > 2 && host.data[0] == '[' && host.data[host.size - 1] == ']')
        host = tarn_slice_of(host.data + 1, host.size - 2);
    if (port < 1 || port > 65535)
        return false;
    *out = (struct tarn_hms__address){tarn_slice_dup(host), tarn_slice_dup(number)};
    return true;
}

void tarn_hms__free_addresses(struct tarn_hms__address *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(addresses[i].host);
        free(addresses[i].port);
    }
    free(addresses);
}

struct tarn_status *tarn_hms__parse_uri(const char *uri, struct tarn_hms__address **out,
                                        size_t *count)
{
    struct tarn_hms__address *list = tarn_calloc(URI_ADDRESSES_MAX, sizeof *list);
    size_t n = 0;
    for (const char *at = uri; at != NULL && n < URI_ADDRESSES_MAX;) {
        const char *comma = strchr(at, ',');
        size_t size = comma == NULL ? strlen(at) : (size_t)(comma - at);
        if (!parse_address(tarn_trim(tarn_slice_of(at, size)), &list[n])) {
            tarn_hms__free_addresses(list, n);
            return tarn_status_new(
                TARN_CONFIG_INVALID,
                "hms.uri = %s; want thrift://HOST:PORT, several separated by commas", uri);
        }
        n++;
        at = comma == NULL ? NULL : comma + 1;
    }
    *out = list;
    *count = n;
    return TARN_OK;
}

struct tarn_status *tarn_hms_check_uri(const char *uri)
{
    struct tarn_hms__address *addresses;
    size_t count;
    TARN_TRY(tarn_hms__parse_uri(uri, &addresses, &count));
    tarn_hms__free_addresses(addresses, count);
    return TARN_OK;
}

/* --- waiting --- */

static struct tarn_status *wait_for(const struct tarn_op *op, int fd, short events,
                                    int64_t deadline_ms)
{
    struct pollfd wait = {.fd = fd, .events = events};
    for (;;) {
        TARN_TRY(tarn_op_check(op));
        int64_t left_ms = deadline_ms - tarn_clock_mono_ms();
        if (left_ms <= 0)
            return tarn_status_new(TARN_METASTORE_UNAVAILABLE, "it didn't answer in time");
        int ready = poll(&wait, 1, (int)TARN_MIN(left_ms, (int64_t)SLICE_MS));
        if (ready > 0)
            return TARN_OK; /* an error shows in the call that follows */
        if (ready < 0 && errno != EINTR)
            return tarn_status_new(TARN_METASTORE_UNAVAILABLE, "poll: %s", strerror(errno));
    }
}

static struct tarn_status *connect_to(const struct tarn_op *op, const struct addrinfo *to, int fd,
                                      int64_t deadline_ms)
{
    int error = 0, on = 1;
    socklen_t size = sizeof error;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
        return TARN_OK;
    if (errno == EINPROGRESS) {
        TARN_TRY(wait_for(op, fd, POLLOUT, deadline_ms));
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
    } else {
        error = errno;
    }
    return error == 0 ? TARN_OK
                      : tarn_status_new(TARN_METASTORE_UNAVAILABLE, "%s", strerror(error));
}

static struct tarn_status *try_one(const struct tarn_op *op, const struct addrinfo *to,
                                   int64_t timeout_ms, int *out)
{
    int fd = socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to->ai_protocol);
    if (fd < 0)
        return tarn_status_new(TARN_METASTORE_UNAVAILABLE, "socket: %s", strerror(errno));
    struct tarn_status *s = connect_to(op, to, fd, tarn_clock_mono_ms() + timeout_ms);
    if (s == TARN_OK)
        *out = fd;
    else
        close(fd);
    return s;
}

struct tarn_status *tarn_hms__connect(const struct tarn_op *op,
                                      const struct tarn_hms__address *address, int64_t timeout_ms,
                                      struct tarn_hms__link **out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int fd = -1, error = getaddrinfo(address->host, address->port, &hints, &list);
    if (error != 0)
        return tarn_status_new(TARN_METASTORE_UNAVAILABLE, "%s: %s", address->host,
                               gai_strerror(error));
    struct tarn_status *s = TARN_OK;
    for (const struct addrinfo *to = list; to != NULL && fd < 0; to = to->ai_next) {
        tarn_status_free(s);
        s = try_one(op, to, timeout_ms, &fd);
    }
    freeaddrinfo(list);
    if (s != TARN_OK)
        return tarn_status_wrap(s, "%s:%s", address->host, address->port);
    *out = tarn_calloc(1, sizeof **out);
    (*out)->fd = fd;
    return TARN_OK;
}

void tarn_hms__close(struct tarn_hms__link *link)
{
    if (link == NULL)
        return;
    close(link->fd);
    free(link);
}

struct tarn_status *tarn_hms__send(const struct tarn_op *op, struct tarn_hms__link *link,
                                   int64_t deadline_ms, struct tarn_slice bytes)
{
    while (bytes.size > 0) {
        ssize_t sent = send(link->fd, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (sent >= 0)
            bytes = tarn_slice_of(bytes.data + sent, bytes.size - (size_t)sent);
        else if (errno == EAGAIN)
            TARN_TRY(wait_for(op, link->fd, POLLOUT, deadline_ms));
        else if (errno != EINTR)
            return tarn_status_new(TARN_METASTORE_UNAVAILABLE, "send: %s", strerror(errno));
    }
    return TARN_OK;
}

struct tarn_status *tarn_hms__receive(const struct tarn_op *op, struct tarn_hms__link *link,
                                      int64_t deadline_ms, uint8_t *into, size_t room, size_t *got)
{
    for (;;) {
        TARN_TRY(wait_for(op, link->fd, POLLIN, deadline_ms));
        ssize_t some = recv(link->fd, into, room, 0);
        if (some >= 0) {
            *got = (size_t)some;
            return TARN_OK;
        }
        if (errno != EAGAIN && errno != EINTR)
            return tarn_status_new(TARN_METASTORE_UNAVAILABLE, "receive: %s", strerror(errno));
    }
}
