/* commits - many callers at once: they are queued in a known order before the table takes the first of them. */
#ifndef TARN_TEST_TABLE_COMMITS_H
#define TARN_TEST_TABLE_COMMITS_H

#include <pthread.h>

#include "fixture.h"

#define CROWD_MAX 320

struct call {
    struct fixture *f;
    struct tarn_op op;
    struct tarn_commit commit;
    struct tarn_commit_result result;
    enum tarn_reason reason; /* TARN_NO_REASON: it landed */
    char message[400];
    pthread_t thread;
    atomic_bool done;
};

struct crowd {
    struct fixture *f;
    struct call calls[CROWD_MAX];
    int count;
    int plug_count;
    bool no_plug;
};

void crowd_init(struct crowd *c, struct fixture *f);
void crowd_clear(struct crowd *c);
/* One more call: one file of two rows. What is returned may be changed before crowd_run. */
struct tarn_commit *crowd_append(struct crowd *c, const char *user, int64_t identifier,
                                 const char *file, int32_t bucket);
/* A batch that puts `add` into level 5, in the place of `gone` in level 0 (or NULL). */
struct tarn_commit *crowd_compact(struct crowd *c, const char *user, const char *gone,
                                  const char *add, int32_t bucket, int64_t low, int64_t high);
/* Commits file "plug1" (the next time "plug2", …) as a snapshot of its own unless no_plug, keeps the table's mailbox busy
 * until all calls are queued in order, and waits for all answers. */
void crowd_run(struct crowd *c);
/* The two halves: after start all are queued, and the mailbox is held up. */
void crowd_start(struct crowd *c);
void crowd_finish(struct crowd *c);
/* From start to stop time runs fast: whatever a call waits for, its time is soon over. */
struct hurry {
    pthread_t thread;
    atomic_bool stop;
};
void hurry_start(struct hurry *hurry);
void hurry_stop(struct hurry *hurry); /* and the clock is the real one again */
/* As crowd_run, in a hurry. */
void crowd_outlast(struct crowd *c);
/* All of them at once, in no order. */
void crowd_rush(struct crowd *c);

struct tarn_snapshot crowd_snapshot(struct crowd *c, int64_t id); /* as its file has it */
/* Names of a manifest's entries in their order, "a b c"; a DELETE with a minus. */
const char *crowd_manifest(struct crowd *c, struct tarn_slice name);
struct tarn_commit_fate crowd_fate(struct crowd *c, const char *user, int64_t identifier,
                                   uint64_t content);
/* tarn_table_find_commit on a thread of its own. */
struct asker {
    struct fixture *f;
    const char *user;
    int64_t identifier;
    struct tarn_commit_fate fate;
    enum tarn_reason reason;
    pthread_t thread;
};
void asker_start(struct asker *asker, struct fixture *f, const char *user, int64_t identifier);
struct tarn_commit_fate asker_finish(struct asker *asker);
size_t crowd_manifest_count(struct crowd *c); /* objects in manifest/ */

#endif
