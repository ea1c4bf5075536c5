/*
 * Shared between the files of faulty: what is to strike (faulty_plan.c), and what the store below is
 * told late or is said to have (faulty_late.c).
 */
#ifndef TARN_STORE_FAULTY_INTERNAL_H
#define TARN_STORE_FAULTY_INTERNAL_H

#include <pthread.h>

#include "store/internal.h"

#define TARN_STORE_PLAN_COUNTERS 4096 /* classes of calls beyond that share one: a power of 2 */
#define TARN_STORE_BIRTHS_MAX 4096    /* the last creations that a stale list may miss */

struct fault_rule {
    struct tarn_fault_rule is; /* its strings are owned */
    int64_t seen;
};

struct late_put {
    char *key;            /* owned */
    struct tarn_buf body; /* owned */
    int64_t due_call;     /* carried out before this call begins; INT64_MAX: none */
    int64_t due_mono_ms;  /* of the real clock; INT64_MAX: none */
};

struct birth {
    char *key; /* owned */
    int64_t call;
};

struct faulty {
    struct tarn_store_ops ops; /* this one's own, for `remote` */
    struct tarn_store *inner;  /* shared */
    atomic_int call_count;
    pthread_mutex_t mutex; /* guards all below */

    struct fault_rule *rules;
    size_t rule_count;
    size_t rule_capacity;
    struct tarn_fault_plan plan; /* key_part is owned */
    bool has_plan;
    uint32_t *counters; /* owned; calls seen by class, for the plan */
    int64_t throttled_until_ms;

    struct late_put *lates;
    size_t late_count;
    size_t late_capacity;
    pthread_t timekeeper; /* carries out what is due by time */
    pthread_cond_t changed;
    bool has_timekeeper;
    bool stop;

    struct birth births[TARN_STORE_BIRTHS_MAX]; /* a ring */
    size_t birth_count;
};

/* What one call is to suffer. */
struct strike {
    bool hit;
    enum tarn_fault fault;
    const char *call;
    const char *key;
    int64_t number;   /* of the call */
    int64_t delay_ms; /* as the fault reads it */
    int calls;
    uint64_t dice; /* for what the fault leaves open */
};

/* Counts the call and finds what happens to it. */
void tarn_store__faulty_draw(struct faulty *f, const char *call, const char *key,
                             struct strike *out, int64_t *delay_ms);
void tarn_store__faulty_forget_rules(struct faulty *f); /* under the mutex */
void tarn_store__faulty_forget_plan(struct faulty *f);  /* under the mutex */
/* Whether the word is one of a call, or of a group of calls. */
bool tarn_store__faulty_is_call(const char *word);
enum tarn_fault tarn_store__faulty_find(const char *word); /* TARN_FAULT_COUNT: none */

void tarn_store__faulty_put_late(struct faulty *f, const struct strike *strike, const char *key,
                                 struct tarn_slice body);
/* Carries out what is due before call `number`, or (INT64_MAX) everything. */
void tarn_store__faulty_land(struct faulty *f, int64_t number);
void tarn_store__faulty_born(struct faulty *f, int64_t number, const char *key);
/* Whether `key` was created in the last `calls` calls before `number`. */
bool tarn_store__faulty_is_young(struct faulty *f, const char *key, int64_t number, int calls);
void tarn_store__faulty_late_fini(struct faulty *f);

#endif
