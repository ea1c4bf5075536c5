/*
 * history - one simulated run: what really happened to a table, what everybody was told, and whether both agree.
 *
 *      clients, readers, watchers --> room table (the life of the daemon) --> life store: latency, pauses, kills
 *      nemesis: kills, restarts, pauses, faults, lost and old state             |
 *      foreign: commits, roll-backs, expiry, fast-forward                     faulty (server/store/faulty.h)
 *                     |                                                         |
 *                     +-----------------------> truth: sees each snapshot come and go ---> memory
 *
 * Truth    (truth.c) every snapshot that ever lay in the folder is decoded with readers of its own and held
 *          against the one before: it stands on it, adds each file once, and so on.
 * Calls    (calls.c) each call of the table is recorded with its begin and its end, and its answer held against
 *          the truth between the two.
 * Seq      every such event has the next number; the simulator runs one thread at a time, so the order is total.
 */
#ifndef TARN_TEST_HISTORY_HISTORY_H
#define TARN_TEST_HISTORY_HISTORY_H

#include <limits.h>

#include "sim.h"
#include "service/subscribe.h"
#include "table/table.h"

#define HISTORY_TABLE "db.db/t"
#define HISTORY_UUID "11111111-2222-3333-4444-555555555555"
#define HISTORY_IDS_MAX 4096
#define HISTORY_NEVER INT_MAX
/* TARN_CLAIM_AGE_MAX_MS of server/table: a put that took longer proves nothing about the snapshot before it. */
#define HISTORY_CLAIM_AGE_MS 5000

struct request;

struct file { /* a data file; nobody reads what is in it */
    int number;
    char name[24];
    struct request *request; /* who adds it; NULL: a foreign one */
    int part;                /* of the request: 0 append, 1 compact */
    int partition, bucket, level;
    bool is_changelog;
    int64_t low, high, first_sequence;
};

#define HISTORY_PARTITIONS_MAX 3
#define HISTORY_BUCKETS 2
struct
    index_file { /* the one of its bucket: a new one replaces it, and must have been made from it */
    char name[24];
    struct request *request; /* who adds it; NULL: a foreign one */
    int part, partition, bucket;
    const struct index_file *made_from; /* NULL: from none */
    struct tarn_slice data_file;        /* with a deletion vector in it */
};
struct indexes {
    const struct index_file *of[HISTORY_PARTITIONS_MAX][HISTORY_BUCKETS];
};

struct files { /* in order of number */
    struct file **list;
    size_t count, capacity;
};
void files_add(struct files *files, struct file *file);
bool files_remove(struct files *files, const struct file *file);
bool files_have(const struct files *files, const struct file *file);
bool files_equal(const struct files *a, const struct files *b);
void files_copy(struct files *to, const struct files *from);

/* --- the truth --- */

enum removal { REMOVED_NOT, REMOVED_ROLL_BACK, REMOVED_EXPIRE, REMOVED_BY_US };

struct snap { /* one snapshot that was in the folder, from its creation to its removal */
    int64_t id;
    int number; /* in order of creation */
    int created_seq, removed_seq;
    int64_t created_ms, removed_ms;
    enum removal removal;
    bool foreign;
    bool
        floating; /* doesn't stand on the snapshot before it: only a put that took long may make one, and whoever
                      made it takes it back */
    struct tarn_slice json;
    struct tarn_snapshot s;
    struct snap *parent; /* NULL: the first */
    struct files added, removed, changes /* changelog */, live;
    struct indexes indexes; /* live */
    bool told;              /* somebody was told that it landed */
    bool
        seen; /* the daemon surely knows of it: it told of it, planned it or committed on it, or behind it */
};

/* --- requests and what was told --- */

#define LANDINGS_MAX 16
#define CALLS_MAX 32

enum told { TOLD_NOTHING, TOLD_LANDED, TOLD_REFUSED, TOLD_UNKNOWN };

struct call {
    int life;
    int begin, end; /* end HISTORY_NEVER: no answer, the process died */
    int64_t begin_ms, end_ms;
    enum told told;
    enum tarn_reason reason;
    int64_t ids[2];
};

struct
    request { /* what a client asks to be committed, under one identity; sent once or again and again */
    int number;
    char user[24];
    bool streaming;
    int64_t identifier;
    uint64_t content;
    struct tarn_commit commit;
    struct files adds[2], removes[2], changes[2];
    struct index_file *index[2]; /* that a part brings; NULL: none */
    bool names_index[2]; /* the part deletes what it replaces by name; else its base says it */
    int partition;       /* that it overwrites, where it names one */
    bool has_part[2];
    struct snap *landings[2][LANDINGS_MAX];
    int landing_count[2];
    struct call calls[CALLS_MAX];
    int call_count;
    int running;     /* calls under way */
    int settled_seq; /* it was told "not committed" to a question that began then; -1 */
};

/* --- the daemon's lives --- */

struct life {
    int number;
    bool dead;
    int64_t paused_until_ms;
    int users; /* calls that are in its table */
    char folder[168];
    struct tarn_store *store;
    struct tarn_exec *exec;
    struct tarn_state *state;
    struct tarn_table_env env;
    struct tarn_table *table; /* NULL: not open yet */
    struct tarn_subscriptions *subscriptions;
    int calls_left;       /* of the store, until it is killed; 0: it isn't */
    int writing;          /* calls that change something, on their way to the store */
    int snapshot_puts;    /* under way, */
    int64_t put_begun_ms; /* since */
    int failures;         /* of opening, in calm */
};

enum mutation { /* rules of the store broken on purpose: the checker must notice */
                MUTATION_NONE,
                MUTATION_PUT_REPLACES, /* put_if_absent overwrites what is there */
                MUTATION_PUT_LOST, /* a snapshot's put is answered "created" and never happens */
                MUTATION_BOTH_CREATED, /* "created" is answered although another's was there */
                MUTATION_READ_OLD,     /* a read of a snapshot finds nothing although it is there */
                MUTATION_PUT_TWICE,    /* a snapshot that was removed comes back */
                MUTATION_LOSE_MANIFEST, /* an object of the manifest folder is gone after a while */
                MUTATION_COUNT
};
const char *mutation_name(enum mutation mutation);

struct plan { /* what a run is made of; drawn from the seed */
    uint64_t seed;
    int clients, users, operations, watchers;
    bool remote;
    bool faults, kills, foreign, rewrites /* roll-back, expiry */, pauses, lose_state, lies;
    bool overwrites;
    int64_t keep_last;      /* snapshots that an expiry of the daemon's leaves; 0: it makes none */
    int partitions;         /* 1: the table has none */
    bool changelog;         /* requests bring changelog files, too */
    const char *index_type; /* of index files that requests bring; NULL: none */
    int64_t foreign_check_ms;
    int latency_ms;
    const char *group_commit; /* the table's option */
    enum mutation mutation;
};

struct world {
    struct plan plan;
    struct tarn_op *op; /* its arena lives as long as the run */
    struct tarn_store *memory, *truth, *faulty;
    int seq;
    struct snap *at[HISTORY_IDS_MAX]; /* what lies at snapshot-N now */
    struct snap **snaps;
    size_t snap_count, snap_capacity;
    int64_t expired_to; /* ids up to this were used and expired */
    int64_t hinted;     /* the highest EARLIEST so far: what lies below is no history to anybody */
    int expiring;       /* expiries of the daemon's under way, of dead lives, too */
    int64_t expiries, files_removed; /* that ended well; of data and indexes, by all of them */
    int floating_count;              /* in the folder now */
    int64_t
        hold_until_ms; /* puts of snapshots don't arrive before: the past was rewritten a moment ago */
    int ghosts;        /* calls of dead lives that may still arrive */
    struct file **files;
    size_t file_count, file_capacity;
    struct tarn_map *file_by_name, *index_by_name, *manifests;
    int index_count;
    struct request **requests;
    size_t request_count, request_capacity;
    struct life *life; /* the present one; NULL: down */
    int life_count;
    char folder[128], left[160]; /* of all states; of the one that the last life left behind */
    bool receipts_may_be_lost;   /* the state was lost or came back old: "not known" may be told */
    bool history_has_gaps;       /* so it may where a snapshot was gone before the daemon saw it */
    bool was_rolled_back;
    int64_t last_rewrite_ms; /* -1: never */
    int clients_running, helpers_running;
    bool watchers_go_home;
    int64_t events_told; /* to watchers */
    bool calm;           /* no more faults: everything must succeed */
    struct tarn_buf trace;
    uint64_t *hash;               /* of the trace, at the end */
    int64_t answers[4], fates[6]; /* how often each was told */
};
extern struct world *world;

/* Notes an event in the trace and returns its number. */
int note(const char *format, ...) TARN_PRINTF(1, 2);
/* Ends the process: what was found, and the trace, are printed. */
__attribute__((noreturn)) void broken(const char *format, ...) TARN_PRINTF(1, 2);
const char *reason_of(const struct tarn_status *s);

/* truth.c */
struct tarn_store *truth_store_new(struct tarn_store *memory);
struct snap *truth_latest(void); /* the newest that isn't floating; NULL: none */
int64_t truth_earliest_id(void); /* that is history to all; 0: none */
struct snap *truth_find(int64_t id,
                        struct tarn_slice delta_list); /* NULL: there never was such a one */
/* Was it the newest at some moment from `from_ms`, to event `seq`? snap NULL: no snapshot at all. */
bool truth_was_latest(const struct snap *snap, int64_t from_ms, int seq);
bool truth_survives(const struct snap *snap, int seq); /* not rolled back or taken back by then */
bool truth_expired(const struct snap *snap); /* it is gone, or lies below what is said to be left */
/* The daemon has shown that it knows the history up to this snapshot. */
void truth_seen(struct snap *snap);
/* What lies below a gap is no history to anybody, and after the end of who put it nobody knows it: it stays. */
void truth_leave_behind(void);
/* Reads every snapshot in the folder again, as a stranger would. */
void truth_check_folder(void);
struct file *file_new(struct request *request, int part, int partition, int bucket, int level);
struct file *changelog_file_new(struct request *request, int part, const struct file *of);
bool overwrites(const struct request *r, const struct file *file); /* would it take it away? */
struct file *file_find(struct tarn_slice name);
struct index_file *index_file_new(struct request *request, int part, const struct file *of,
                                  const struct snap *base);
struct tarn_index_file index_entry(const struct index_file *index, enum tarn_entry_kind kind);
/* Is its append part an OVERWRITE, to those who read streams? */
bool is_overwrite(const struct request *r);
struct tarn_manifest_entry file_entry(const struct file *file, enum tarn_entry_kind kind);
void read_delta(const struct tarn_snapshot *s, struct files *added, struct files *removed);
void read_live(const struct tarn_snapshot *s, bool with_delta, struct files *live);
enum removal *removal_by_me(void); /* what a removal by this thread means */
bool may_rewrite(
    void); /* no put is under way that nobody could take back any more, as a dead life's whose notes may be lost */

/* life.c */
struct tarn_store *life_store_new(struct life *life, struct tarn_store *below);
void life_start(const char *folder);
bool life_may_die(const struct life *life);
void life_kill(void);          /* at once; what it had under way may still arrive */
void life_shut_down(void);     /* in order */
struct life *life_enter(void); /* waits until one is open; NULL: the run is over */
struct life *life_enter_or_leave(const bool *leave);
void life_leave(struct life *life);

/* watch.c */
void watcher_main(int number);

/* calls.c */
void client_main(int number);
/* Expiries, by a thread of their own: clients wait for none. */
void expirer_main(void);
void settle_all(
    void); /* at the end, in calm: every request's fate is asked for and must be the truth */

/* foreign.c */
void foreign_commit(void);
void foreign_roll_back(void);
void foreign_expire(void);

/* leave.c */
/* The table as files below folder/h.db/tSEED, and in folder/tSEED a line a retained snapshot: its id, and the names of its
 * live files. After the run. */
void leave_table(const char *folder);

/* run.c */
void draw_faults(void); /* of the store, from now on */
/* Plays the seed; *hash is one of all that happened, also where something is broken. Once a process: it leaves everything behind.
 * scratch: an empty folder for states of RocksDB; NULL: they are simulated. */
void run_seed(uint64_t seed, enum mutation mutation, const char *scratch, uint64_t *hash);
#define HISTORY_BROKEN_EXIT 9

#endif
