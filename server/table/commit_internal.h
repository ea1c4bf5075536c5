/*
 * commit_internal - what the files of the commit share: requests, their parts as members of a group, and the group
 * on its way to be a snapshot. README.md tells its life.
 */
#ifndef TARN_TABLE_COMMIT_INTERNAL_H
#define TARN_TABLE_COMMIT_INTERNAL_H

#include "table/internal.h"

#define TARN_GROUP_MEMBERS_MAX 256
/* A group takes no further member once it has so many entries: its members wait for all of them. */
#define TARN_GROUP_ENTRIES_MAX 50000

struct tarn_request;

/* A snapshot that its writer has finished. */
struct tarn_finished {
    struct tarn_slice json, base_uuid; /* absent: not said */
    struct tarn_snapshot snapshot;
    struct tarn_manifest_file *base, *delta;
    size_t base_count, delta_count;
};

/* One part of a request: what becomes, alone or with others, one snapshot. */
struct tarn_member {
    struct tarn_member *next; /* in the queue */
    struct tarn_request *request;
    enum tarn_commit_kind kind;
    const struct tarn_commit_part *part;
    int tries;  /* how often another writer came first */
    bool taken; /* it was in a group before: it is carried through */
    bool alone; /* a group with it failed for a reason that may be its own */
};

/* One commit of a caller; lies in its op's arena until `done` was told. */
struct tarn_request {
    struct tarn_op *op; /* asked whether the caller still wants it, as long as it is queued */
    const struct tarn_commit *commit;
    struct tarn_commit_result *result;
    uint64_t content;     /* of a batch; 0: streaming */
    bool nameless;        /* a batch that names no file: nothing tells it from the next one */
    bool has_append;      /* it has that part */
    bool has_compact;     /* and that one */
    bool append_repeated; /* it had landed before */
    struct tarn_status
        *missing; /* its files were looked at before it was queued; told unless it has landed */
    tarn_commit_done_fn done;
    void *done_arg;
    struct tarn_member append, compact;
};

enum tarn_claim {
    TARN_CLAIM_MADE,
    TARN_CLAIM_TAKEN,
    TARN_CLAIM_UNKNOWN,
    TARN_CLAIM_PAST /* its id was used and has expired, and nothing tells any more by whom */
};

/* A put of snapshot `id` on its way: all that the thread which does it needs. */
struct tarn_put {
    struct tarn_table *table;
    int64_t id;
    struct tarn_slice json;
    int64_t ground_id; /* what it stands on: N-1 and its bytes; 0: nothing */
    struct tarn_slice ground_json;
    struct tarn_slice
        base_of_next; /* a manifest of ours that a snapshot standing on this one must name; absent: none */
    int64_t time_ms;
    int64_t ground_seen_ms; /* when N-1 was last seen (I3); NEVER: not since the attempt began */
    int64_t begun_ms;       /* when the put that made it began */
    enum tarn_claim claim;
    bool expired;    /* it was made, used and has expired since, or another under its id */
    bool taken_back; /* it was there for a moment: what it names stays */
    bool unknown;    /* a put of it was answered so: it may still arrive */
    struct tarn_status *status; /* OK, or why nothing was put */
};
#define TARN_NEVER_MS (INT64_MIN / 2)

/* Some members on their way to be one snapshot. */
struct tarn_group {
    struct tarn_op op; /* its own: a caller that gives up must not tear a put in two */
    struct tarn_table *table;
    enum tarn_commit_kind kind;
    struct tarn_member *members[TARN_GROUP_MEMBERS_MAX];
    struct tarn_commit_part
        parts[TARN_GROUP_MEMBERS_MAX]; /* what is left of each by the last check */
    size_t count;
    struct tarn_map *highest; /* of check_sequences */

    /* --- an attempt (prepare.c) --- */
    struct tarn_head *next; /* the head that it makes; NULL: not prepared */
    struct tarn_delta delta;
    struct tarn_objects objects;
    uint64_t ground_hash; /* of the JSON that it stands on */
    bool merge_used;
    bool is_finished; /* by its writer, whose files it names */
    bool checked;     /* on the head it stands on; else it is a guess */
    bool write_done;  /* under the table's lock; news */
    struct tarn_status *write_status;
    int64_t ground_seen_ms; /* when N-1 was seen (I3) */
    struct tarn_slice user; /* the identity that the snapshot carries */
    int64_t identifier, record_count;

    /* --- its put (claim.c) --- */
    struct tarn_put put;
    bool put_done; /* under the table's lock; news */
    int64_t begun_ns;

    /* --- kept open: whose it was, and all the rest as it is --- */
    struct tarn_identity *open_identities;
    size_t open_count;
    uint64_t open_content; /* of the delta, whose names are the callers' and end with their calls */
};

/* --- commit.c --- */
/* The loop, in the table's mailbox: posted by who finds it not running (table->loop_runs). */
void tarn_table__run_commits(void *table);

/* --- group.c --- */
/* The next group from the queue, or NULL; answers members whose callers gave up. ahead: the group that flies, or NULL:
 * streaming users in it whose compact part is still to come are not overtaken by what they sent later. *left: requests that
 * stay in the queue. */
struct tarn_group *tarn_table__take_group(struct tarn_table *table, const struct tarn_group *ahead,
                                          size_t *left);
/* Without members: a snapshot of nothing. */
struct tarn_group *tarn_table__group_new(struct tarn_table *table, enum tarn_commit_kind kind);
void tarn_table__group_free(struct tarn_group *group);
/* Its members go back to the front of the queue, in their order. */
void tarn_table__requeue(struct tarn_group *group);
void tarn_table__queue_front(struct tarn_table *table, struct tarn_member *member);
/* The member is done with this status (consumed; OK: it landed in snapshot_id). */
void tarn_table__answer(struct tarn_table *table, struct tarn_member *member,
                        struct tarn_status *consumed, int64_t snapshot_id, bool repeated);
/* All members get copies. */
void tarn_table__answer_all(struct tarn_group *group, struct tarn_status *consumed);
/* Whose identity the snapshot carries, and its properties with the receipts of the others. */
void tarn_table__sign(struct tarn_group *group, struct tarn_snapshot *snapshot);

/* --- prepare.c --- */
/* Encodes the group's snapshot on top of `ground`; nothing is written. */
TARN_MUST struct tarn_status *tarn_table__prepare(struct tarn_group *group,
                                                  struct tarn_head *ground);
/* Writes its manifests: write_done, write_status. look: beside it, looks at N-1 (NULL: not). */
void tarn_table__write(struct tarn_group *group, const struct tarn_head *look);
/* The same on a thread of the pool. */
void tarn_table__start_write(struct tarn_group *group);
/* Waits until a flag under the table's lock is set. */
void tarn_table__wait(struct tarn_group *group, const bool *done);
/* Back to before prepare: removes what was written. */
void tarn_table__unprepare(struct tarn_group *group);
/* Against the index, which has the head's snapshot: members that have landed or can't land are answered and taken out.
 * *changed: the group isn't what it was. */
void tarn_table__check_group(struct tarn_group *group, bool *changed);
/* Why its only member couldn't land there; OK: it could, or has. Nobody is answered. */
TARN_MUST struct tarn_status *tarn_table__judge_one(struct tarn_group *group);

/* The head that the snapshot of this text will be, with its manifests: group->next. */
TARN_MUST struct tarn_status *tarn_table__make_head(
    struct tarn_group *group, struct tarn_slice json, const struct tarn_manifest_file *base,
    size_t base_count, const struct tarn_manifest_file *delta, size_t delta_count);

/* --- finished.c --- */
/* *snapshot_id 0: it hasn't landed, as far as is known. */
TARN_MUST struct tarn_status *tarn_table__finished_seen(struct tarn_table *table,
                                                        const struct tarn_member *member,
                                                        int64_t *snapshot_id);
/* SNAPSHOT_TAKEN: it doesn't stand on the head. */
TARN_MUST struct tarn_status *tarn_table__finished_stands(struct tarn_op *op,
                                                          struct tarn_table *table,
                                                          struct tarn_head *head,
                                                          const struct tarn_finished *finished);
/* As tarn_table__prepare, of a group of one. */
TARN_MUST struct tarn_status *tarn_table__finished_prepare(struct tarn_group *group);
/* In the mailbox: it came too late, and may do it again without being overtaken. */
void tarn_table__give_turn(struct tarn_table *table, const struct tarn_finished *finished);
/* Under the lock: how long nobody else is let in; 0: it is nobody's turn. */
int64_t tarn_table__turn_left_ms(const struct tarn_table *table);
/* One landed: others go on. */
void tarn_table__end_turn(struct tarn_table *table);

/* --- claim.c --- */
/* Puts the group's snapshot, on a thread of the pool, or (here) before it returns. */
void tarn_table__start_put(struct tarn_group *group, const struct tarn_head *ground, bool here);
/* *found: is there a snapshot of that id? *same: with these bytes? What lies there, whether or not it came late. */
TARN_MUST struct tarn_status *tarn_table__lies_there(struct tarn_op *op, struct tarn_table *table,
                                                     int64_t id, struct tarn_slice json,
                                                     bool *found, bool *same);
/* Looks at snapshot N-1: does it exist, and is it the one? ground_id 0: is there none at all? */
TARN_MUST struct tarn_status *tarn_table__check_ground(struct tarn_op *op, struct tarn_table *table,
                                                       int64_t ground_id,
                                                       struct tarn_slice ground_json, bool *stands);
/* Its outcome isn't known: the table keeps it until it is settled (I5). */
void tarn_table__keep_open(struct tarn_group *consumed);
/* Is the identity of the attempt that is kept open? content 0: of any. */
bool tarn_table__is_open(const struct tarn_table *table, const struct tarn_identity *who);

/* Is what it names still there? */
TARN_MUST struct tarn_status *tarn_table__has_manifests(struct tarn_op *op,
                                                        const struct tarn_put *put, bool *out);
/* Does snapshot `above`, where it is there, stand on this put's? */
TARN_MUST struct tarn_status *tarn_table__is_followed(struct tarn_op *op,
                                                      const struct tarn_put *put, int64_t above,
                                                      bool *out);
/* What lies at N, if it is this put's and nobody stands on it, is removed: taken_back. */
TARN_MUST struct tarn_status *tarn_table__take_back(struct tarn_op *op, struct tarn_put *put);

/* --- late.c --- */
#define TARN_LATE_KEPT_MS INT64_C(900000) /* no call of a store lasts longer */
/* A put of it may still be under way. Where it is found, it is no part of history: */
enum tarn_lateness {
    TARN_LATE_ALWAYS,
    TARN_LATE_IF_UNDONE, /* it landed: late, if it was rolled back since */
    TARN_LATE_OPEN       /* likewise, until it is settled */
};
void tarn_table__late_keep(struct tarn_table *table, const struct tarn_put *put,
                           enum tarn_lateness lateness);
/* The same of one that the state knows already. */
void tarn_table__late_remember(struct tarn_table *table, const struct tarn_put *put,
                               enum tarn_lateness lateness);
/* The open one isn't any more. */
void tarn_table__late_settle(struct tarn_table *table, bool landed);

/* --- late_notes.c: in the state, for the next life; in the mailbox --- */
/* Before a put starts; unknown: an answer to it was, so that the next one doesn't end it. What fails is logged. */
void tarn_table__late_note(struct tarn_table *table, const struct tarn_put *put, bool unknown);
void tarn_table__late_unnote(struct tarn_table *table, const struct tarn_put *put);

/* --- publish.c --- */
/* The snapshot was made: index, head and view follow. What fails here is caught up later, never told as a failed commit (I6). */
void tarn_table__advance(struct tarn_group *group);
/* Hint, answers, and what follows them. */
void tarn_table__announce(struct tarn_group *consumed);

/* --- fate.c --- */
/* Says the answer something about the request, and not about the store or the caller? */
bool tarn_table__is_refusal(const struct tarn_status *s);
/* Remembers why the request can't land, if it is a reason that asking later should find. */
void tarn_table__refused(const struct tarn_op *op, struct tarn_table *table,
                         const struct tarn_request *request, const struct tarn_status *why);

#endif
