/*
 * faulty - a store that wraps any other and disturbs its calls, as disks, networks and object stores
 * have been seen to. For tests; processes under test take it from TARN_STORE_FAULTS.
 *
 * Two ways, and both at once:
 *
 *   rules  strike chosen calls: the nth `put_if_absent` of a key with "snapshot/" in it, or all calls.
 *   plan   strikes at random, from a seed. Whether a call is struck depends on the seed, on the call,
 *          on its key less the uuids in it, and on how many such calls came before: not on what
 *          other threads do, nor on uuids. The same run with the same seed is disturbed alike.
 *
 *      struct tarn_fault_plan plan = {.seed = seed, .late_ms = 50, .late_calls = 20};
 *      plan.per_mille[TARN_FAULT_LATE] = 20;
 *      plan.per_mille[TARN_FAULT_FAIL_AFTER] = 20;
 *      plan.per_mille[TARN_FAULT_STALE_LIST] = 100;
 *      struct tarn_store *store = tarn_store_faulty_new(inner);
 *      tarn_store_faulty_plan(store, &plan);
 *      ... tarn_store_faulty_late_count(store), tarn_store_faulty_land(store) ...
 *
 * Rules are asked first, in the order of adding; the first that strikes ends the asking (DELAY
 * doesn't), and a rule counts only the calls that come to it. The names of calls: get stat put put_hint
 * put_many put_if_absent remove list move_folder prune open read_at create append finish; "puts" is
 * put, put_hint, put_many, put_if_absent, create, append and finish; "*" any. put_many is one call,
 * its key that of the first object. aborts and closes can't fail and are not counted. A call is
 * counted as it begins; one that comes in a THROTTLE is counted and struck by nothing else.
 *
 * In the environment, parts between semicolons:
 *
 *   TARN_STORE_FAULTS="call:key_part:skip:hits:fault[:delay_ms[:calls]];…"
 *       key_part without ':' and ';', empty for any; hits 0 for all; fault in lower case, "late"
 *   "plan:seed=7,key=snapshot/,late=20,fail_after=10,delay_ms=5,late_ms=50,late_calls=9,…"
 *       names of faults, per mille; and delay_ms, throttle_ms, late_ms, late_calls, stale_calls
 *   "remote"  tarn_store_is_remote says true
 *
 * "*::17:1:kill_after" ends the process after its 18th call of the store;
 * "put_if_absent:snapshot/:0:1:kill_before" before its first snapshot; "puts::0:0:delay:60" is a store
 * 60 ms away. A crash test counts the calls of an undisturbed run, then stops at each in turn.
 */
#ifndef TARN_STORE_FAULTY_H
#define TARN_STORE_FAULTY_H

#include "base/base.h"

struct tarn_store;

enum tarn_fault {
    TARN_FAULT_FAIL_BEFORE, /* an IO error, nothing happened */
    TARN_FAULT_FAIL_AFTER,  /* it happened, and the caller is told IO_ERROR (OUTCOME_UNKNOWN) */
    TARN_FAULT_UNKNOWN,     /* put_if_absent: OUTCOME_UNKNOWN, others STORE_UNAVAILABLE; nothing
                             * happened */
    TARN_FAULT_DELAY,       /* waits delay_ms, then goes through */
    TARN_FAULT_TEAR,        /* put, append: half of the bytes, then an error; never visible whole.
                             * put_many: some of the objects, then an error */
    TARN_FAULT_FULL,        /* DISK_FULL, nothing happened */
    TARN_FAULT_EMPTY_LIST,  /* list answers nothing, without an error */
    TARN_FAULT_KILL_BEFORE, /* _exit(137) before the call */
    TARN_FAULT_KILL_AFTER,  /* _exit(137) after it */
    TARN_FAULT_KILL_WITHIN, /* TEAR, then _exit(137) */
    TARN_FAULT_LATE, /* put_if_absent: OUTCOME_UNKNOWN now, and it is carried out after `calls`
                             * more calls or delay_ms, whichever comes first (neither: by
                             * tarn_store_faulty_land), also when the caller has long gone on. It
                             * stays conditional: nothing, if the key is there by then. Others: as
                             * UNKNOWN */
    TARN_FAULT_SHORT_LIST,  /* list loses its end, without an error */
    TARN_FAULT_STALE_LIST,  /* list misses keys created in the last `calls` calls */
    TARN_FAULT_DENIED,      /* STORE_DENIED, nothing happened (HTTP 403) */
    TARN_FAULT_NOT_FOUND,   /* get, open: OBJECT_NOT_FOUND; stat: not there (HTTP 404) */
    TARN_FAULT_UNAVAILABLE, /* STORE_UNAVAILABLE, nothing happened (HTTP 503) */
    TARN_FAULT_THROTTLE,    /* for delay_ms every call is UNAVAILABLE, this one first */
    TARN_FAULT_COUNT
};

struct tarn_fault_rule {
    const char *call;     /* "put_if_absent", "get", "append", "finish", … or "puts", "*" */
    const char *key_part; /* substring of the key; NULL: any */
    int skip_count;       /* lets so many matching calls through first */
    int hit_count;        /* then disturbs so many; 0: all */
    enum tarn_fault fault;
    int64_t delay_ms;
    int calls;
};

/* A fault strikes only calls that it means something for: LATE put_if_absent, the lists' list,
 * NOT_FOUND get, stat and open, FULL and TEAR what writes. The sum for a call is at most 1,000. */
struct tarn_fault_plan {
    uint64_t seed;
    const char *key_part; /* only calls with such keys; NULL: any */
    int per_mille[TARN_FAULT_COUNT];
    int64_t delay_ms;    /* DELAY: up to */
    int64_t throttle_ms; /* THROTTLE: up to */
    int64_t late_ms;     /* LATE: up to, 0: calls alone */
    int late_calls;      /* LATE: up to, 0: time alone */
    int stale_calls;     /* STALE_LIST: up to */
};

struct tarn_store *tarn_store_faulty_new(struct tarn_store *inner /* shared */);
void tarn_store_faulty_add(struct tarn_store *faulty, const struct tarn_fault_rule *rule);
/* Copied; NULL: none any more. Puts that are late already stay so. */
void tarn_store_faulty_plan(struct tarn_store *faulty, const struct tarn_fault_plan *plan);
/* No rules, no plan, no throttling. */
void tarn_store_faulty_clear(struct tarn_store *faulty);
int tarn_store_faulty_call_count(const struct tarn_store *faulty); /* calls seen: to iterate all */

/* Puts that are still under way, and carrying them all out now. Those left when the store closes never
 * happen: keep a reference to let one land after a "restart". */
size_t tarn_store_faulty_late_count(const struct tarn_store *faulty);
void tarn_store_faulty_land(struct tarn_store *faulty);
/* tarn_store_is_remote says so from here on; before, it says what the inner store says. Before use. */
void tarn_store_faulty_set_remote(struct tarn_store *faulty, bool remote);

#endif
