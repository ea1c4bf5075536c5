/*
 * fake_daemon - a worker's surroundings in one process: a store in memory with one table, room flight behind
 * a wire server, and a WorkerService that does as it is told and remembers what it heard.
 */
#ifndef TARN_TEST_LIB_FAKE_DAEMON_H
#define TARN_TEST_LIB_FAKE_DAEMON_H

#include <pthread.h>

#include "test.h"

#include "flight/flight.h"

#include "tarn/v1/worker.pb-c.h"

struct fake_daemon {
    struct tarn_exec *exec;
    struct tarn_store *store; /* "memory:", faulty around it */
    struct tarn_flight_tables *tables;
    struct tarn_flight *flight;
    struct tarn_wire_server *server; /* WorkerService and DataService */
    struct tarn_channel *channel;    /* to it */
    const char *scratch_dir;

    /* the table, as tasks describe it */
    Tarn__V1__TableDescription description;
    ProtobufCBinaryData schema_json;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int64_t next_sequence;
    enum tarn_reason sequence_reason; /* ReserveSequences fails with it */
    int64_t lease_ms;
    int register_count, poll_count, renew_count, report_count;
    bool forget_worker;             /* Poll answers WORKER_LOST once */
    bool lease_is_lost;             /* Renew says so */
    struct tarn_message *task;      /* the next Poll's answer */
    enum tarn_reason report_reason; /* Report fails with it */
    struct tarn_buf report;         /* the last one */
    char *failure_reason;           /* of it */
    size_t report_entry_count;
};

/* `columns` as SQL, keys and options as "k=v" lists ended by NULL. */
void fake_daemon_start(struct fake_daemon *daemon, struct tarn_test *t, const char *columns,
                       const char *primary_key, const char *const *options);
void fake_daemon_stop(struct fake_daemon *daemon);
/* Waits up to 10 s until the counter has come to at least `count`. */
bool fake_daemon_wait(struct fake_daemon *daemon, const int *counter, int count);
/* Keys of all objects under the table's folder; in t->arena. */
size_t fake_daemon_files(struct fake_daemon *daemon, struct tarn_test *t, const char ***out);
/* Is the scratch folder empty? */
bool fake_daemon_scratch_is_empty(struct fake_daemon *daemon);

/* --- a load, as the daemon sends it --- */
struct fake_load {
    const char *name; /* of the file */
    int format;       /* TARN__V1__DATA_FORMAT__… */
    struct tarn_slice bytes;
};
struct tarn_message *fake_message(const ProtobufCMessage *message);
struct tarn_message *fake_task(struct fake_daemon *daemon, const Tarn__V1__IngestStart *start);
struct tarn_message *fake_file(const char *name, int format);
struct tarn_message *fake_data(struct tarn_slice bytes);
/* Sends files (ended by a NULL name) in small messages and reads the answer. */
struct tarn_status *fake_ingest(struct fake_daemon *daemon, struct tarn_test *t,
                                const Tarn__V1__IngestStart *start, const struct fake_load *files,
                                const Tarn__V1__IngestResponse **out);
/* Scans `entries` (of the only bucket); the request's task is filled in here. */
struct tarn_status *fake_scan(struct fake_daemon *daemon, struct tarn_test *t,
                              Tarn__V1__ScanRequest *request, const ProtobufCBinaryData *entries,
                              size_t count, bool raw, struct tarn_buf *out,
                              const Tarn__V1__ScanSummary **summary);
/* The entries decoded, in t->arena. */
struct tarn_manifest_entry *fake_entries(struct tarn_test *t, const ProtobufCBinaryData *packed,
                                         size_t count);

#endif
