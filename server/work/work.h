/*
 * work - the worker's life: it registers with the daemon, asks for tasks, keeps their leases alive while
 * they run, and reports what came of them.
 *
 *   register -> poll -> (task) run, renewing the lease -> report -> poll ...
 *       ^         |
 *       +---------+ WORKER_LOST: the daemon doesn't know it any more
 *
 * W1  A task's run is cancelled when the daemon says that its lease is lost, or when the lease time has
 *     passed since it was last renewed: another worker may have it by then.
 * W2  Output files of a report that was refused are removed; those of a report whose outcome isn't known
 *     (no answer, OUTCOME_UNKNOWN) never are: they may be committed. What nobody committed is an orphan.
 * W3  Files that only moved to another level are inputs, and never removed.
 *
 * Threads  any. Tasks run on threads of exec.
 * Errors   none leave the room: they are logged, and reported to the daemon with their task.
 */
#ifndef TARN_WORK_H
#define TARN_WORK_H

#include "flight/flight.h"

struct tarn_work;
struct tarn_work_options { /* borrowed */
    struct tarn_exec *exec;
    struct tarn_channel *daemon;
    struct tarn_flight_tables *tables;
    const char *name;    /* host and pid */
    const char *address; /* where this worker serves DataService */
    const char *version;
    int slots; /* compactions at a time */
    int64_t memory_max_bytes;
    int64_t write_buffer_size; /* of a rescale; 0: 64 MiB */
    const char *scratch_dir;
    int64_t retry_ms;     /* first pause after a failed call, doubled up to 50 times that; 0: 200 */
    int64_t poll_wait_ms; /* 0: 20 s */
};
/* Goes on until stop, whatever happens to the daemon. */
struct tarn_work *tarn_work_start(const struct tarn_work_options *options);
/* No new tasks; waits up to grace_ms for those that run, then cancels them, and waits. */
void tarn_work_stop(struct tarn_work *work, int64_t grace_ms);
void tarn_work_free(struct tarn_work *work); /* stopped; NULL is fine */

#endif
