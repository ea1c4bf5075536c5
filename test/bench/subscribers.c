/*
 * subscribers - how soon a commit reaches those who subscribe.
 *
 *   subscribers SERVER DB.TABLE STREAMS CHANNELS COMMITS PAUSE_MS [changes]
 *
 * Opens STREAMS subscriptions over CHANNELS connections, then commits COMMITS empty snapshots, one after the other with a
 * pause between, and waits for each at every stream. A few threads read the streams in turn, so a time is when the
 * message was taken, which is never before it came. Prints one line "RESULT subscribers key=value …": milliseconds from
 * the commit's call, and from its answer (0 where the message was there first).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tarn/client.h"
#include "tarn/v1/table.pb-c.h"

#define READERS 4
#define STREAMS_MAX 20000

struct bench {
    const char *server, *table;
    char database[256];
    int stream_count, channel_count, commit_count, pause_ms;
    bool changes;
    struct tarn_client **clients;
    struct tarn_client_stream **streams;
    struct tarn_op op;
    pthread_barrier_t begin, end;
    double *taken_ms; /* of this round, by stream */
    int64_t *last;    /* snapshot told, by stream */
};
struct reader {
    struct bench *bench;
    int number;
    pthread_t thread;
};

static void check(struct tarn_status *s, const char *what)
{
    if (s == TARN_OK)
        return;
    fprintf(stderr, "subscribers: %s: %s\n", what, tarn_status_message(s));
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static ProtobufCBinaryData data_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static void open_streams(struct bench *b)
{
    Tarn__V1__TableRef ref = TARN__V1__TABLE_REF__INIT;
    Tarn__V1__SubscribeRequest request = TARN__V1__SUBSCRIBE_REQUEST__INIT;
    ref.database = data_of(b->database);
    ref.table = data_of(b->table);
    request.table = &ref;
    request.what = b->changes ? TARN__V1__SUBSCRIBE_REQUEST__WHAT__CHANGES
                              : TARN__V1__SUBSCRIBE_REQUEST__WHAT__SNAPSHOTS;
    struct tarn_client_options options = {.server = b->server};
    for (int i = 0; i < b->channel_count; i++)
        check(tarn_client_open(&options, &b->clients[i]), "connect");
    for (int i = 0; i < b->stream_count; i++) {
        check(tarn_client_stream_open(b->clients[i % b->channel_count], &b->op,
                                      "TableService/Subscribe", &b->streams[i]),
              "subscribe");
        check(tarn_client_stream_send(b->streams[i], &request.base), "subscribe");
        check(tarn_client_stream_done(b->streams[i]), "subscribe");
    }
}

static int64_t take(struct bench *b, int stream)
{
    ProtobufCMessage *message = NULL;
    check(tarn_client_stream_receive(b->streams[stream], &tarn__v1__subscribe_response__descriptor,
                                     &message),
          "receive");
    if (message == NULL) {
        fprintf(stderr, "subscribers: a stream ended\n");
        exit(1);
    }
    int64_t id = ((Tarn__V1__SubscribeResponse *)message)->snapshot->id;
    protobuf_c_message_free_unpacked(message, NULL);
    return id;
}

static void *read_streams(void *arg)
{
    struct reader *r = arg;
    struct bench *b = r->bench;
    for (int round = 0; round < b->commit_count; round++) {
        pthread_barrier_wait(&b->begin);
        for (int i = r->number; i < b->stream_count; i += READERS) {
            int64_t id = take(b, i);
            b->taken_ms[i] = now_ms();
            if (b->last[i] != 0 && id != b->last[i] + 1) {
                fprintf(stderr, "subscribers: stream %d told of snapshot %lld after %lld\n", i,
                        (long long)id, (long long)b->last[i]);
                exit(1);
            }
            b->last[i] = id;
        }
        pthread_barrier_wait(&b->end);
    }
    return NULL;
}

static int64_t commit(struct bench *b, int number)
{
    static char user[64];
    Tarn__V1__TableRef ref = TARN__V1__TABLE_REF__INIT;
    Tarn__V1__CommitRequest request = TARN__V1__COMMIT_REQUEST__INIT;
    ProtobufCMessage *answer = NULL;
    if (user[0] == '\0')
        snprintf(user, sizeof user, "bench-%d-%ld", (int)getpid(), (long)time(NULL));
    ref.database = data_of(b->database);
    ref.table = data_of(b->table);
    request.table = &ref;
    request.commit_user = user;
    request.commit_identifier = number + 1;
    request.force_empty = true;
    check(tarn_client_call(b->clients[0], &b->op, "TableService/Commit", &request.base,
                           &tarn__v1__commit_response__descriptor, &answer),
          "commit");
    int64_t id = ((Tarn__V1__CommitResponse *)answer)->snapshot_id;
    protobuf_c_message_free_unpacked(answer, NULL);
    return id;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double part(double *sorted, size_t count, double share)
{
    size_t i = (size_t)((double)count * share);
    return sorted[i < count ? i : count - 1];
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct reader readers[READERS];
    if (argc < 7) {
        fprintf(stderr,
                "usage: subscribers SERVER DB.TABLE STREAMS CHANNELS COMMITS PAUSE_MS [changes]\n");
        return 2;
    }
    const char *dot = strchr(argv[2], '.');
    if (dot == NULL)
        return 2;
    b.server = argv[1];
    snprintf(b.database, sizeof b.database, "%.*s", (int)(dot - argv[2]), argv[2]);
    b.table = dot + 1;
    b.stream_count = atoi(argv[3]);
    b.channel_count = atoi(argv[4]);
    b.commit_count = atoi(argv[5]);
    b.pause_ms = atoi(argv[6]);
    b.changes = argc > 7;
    if (b.stream_count < 1 || b.stream_count > STREAMS_MAX || b.channel_count < 1)
        return 2;
    tarn_wire_init();
    tarn_op_init(&b.op);
    b.clients = calloc((size_t)b.channel_count, sizeof *b.clients);
    b.streams = calloc((size_t)b.stream_count, sizeof *b.streams);
    b.last = calloc((size_t)b.stream_count, sizeof *b.last);
    b.taken_ms = calloc((size_t)b.stream_count, sizeof *b.taken_ms);
    size_t total = (size_t)b.stream_count * (size_t)b.commit_count, n = 0;
    double *from_call = calloc(total, sizeof *from_call),
           *from_answer = calloc(total, sizeof *from_answer);
    pthread_barrier_init(&b.begin, NULL, READERS + 1);
    pthread_barrier_init(&b.end, NULL, READERS + 1);

    double opened_ms = now_ms();
    open_streams(&b);
    sleep(
        2); /* until all have been taken in: a stream from the latest has no first message to wait for */
    opened_ms = now_ms() - opened_ms;
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){&b, i, 0};
        pthread_create(&readers[i].thread, NULL, read_streams, &readers[i]);
    }
    for (int round = 0; round < b.commit_count; round++) {
        pthread_barrier_wait(&b.begin);
        double call_ms = now_ms();
        commit(&b, round);
        double answer_ms = now_ms();
        pthread_barrier_wait(&b.end);
        for (int i = 0; i < b.stream_count; i++, n++) {
            from_call[n] = b.taken_ms[i] - call_ms;
            from_answer[n] = b.taken_ms[i] < answer_ms ? 0 : b.taken_ms[i] - answer_ms;
        }
        usleep((useconds_t)b.pause_ms * 1000);
    }
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i].thread, NULL);
    qsort(from_call, n, sizeof *from_call, by_size);
    qsort(from_answer, n, sizeof *from_answer, by_size);
    printf("RESULT subscribers streams=%d channels=%d commits=%d opened_ms=%.0f "
           "call_p50_ms=%.1f call_p99_ms=%.1f call_max_ms=%.1f "
           "answer_p50_ms=%.1f answer_p99_ms=%.1f answer_max_ms=%.1f\n",
           b.stream_count, b.channel_count, b.commit_count, opened_ms, part(from_call, n, 0.5),
           part(from_call, n, 0.99), from_call[n - 1], part(from_answer, n, 0.5),
           part(from_answer, n, 0.99), from_answer[n - 1]);
    for (int i = 0; i < b.stream_count; i++)
        tarn_client_stream_free(b.streams[i]);
    for (int i = 0; i < b.channel_count; i++)
        tarn_client_close(b.clients[i]);
    return 0;
}
