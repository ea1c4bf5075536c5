#include "service/internal.h"

#include <pthread.h>

/*
 * Requests that are sent again. Entries are in one list, the oldest first; those that still run hold
 * a gate that opens when they end.
 */

#define REQUEST_ID_SIZE_MAX 128

struct tarn_answer {
    struct tarn_answer *next, *previous;
    struct tarn_answers *owner;
    struct tarn_buf key;
    uint64_t request_hash;
    int64_t ended_ms; /* monotonic; 0: it still runs */
    struct tarn_buf answer;
    struct tarn_gate *gate; /* opened when it ends; freed by the last who looks at it */
    int watchers;
    bool listed; /* in the map and the list */
};

struct tarn_answers {
    pthread_mutex_t lock; /* guards all */
    struct tarn_map *by_key;
    struct tarn_answer *oldest, *newest; /* ended ones only */
    size_t ended_count, bytes;
};

struct tarn_answers *tarn_answers_new(void)
{
    struct tarn_answers *answers = tarn_calloc(1, sizeof *answers);
    pthread_mutex_init(&answers->lock, NULL);
    answers->by_key = tarn_map_new();
    return answers;
}

static void answer_free(struct tarn_answer *a)
{
    tarn_gate_free(a->gate);
    tarn_buf_drop(&a->key);
    tarn_buf_drop(&a->answer);
    free(a);
}

void tarn_answers_free(struct tarn_answers *answers)
{
    if (answers == NULL)
        return;
    size_t cursor = 0;
    struct tarn_slice key;
    void *value;
    while (tarn_map_next(answers->by_key, &cursor, &key, &value))
        answer_free(value);
    tarn_map_free(answers->by_key);
    pthread_mutex_destroy(&answers->lock);
    free(answers);
}

/* --- the lock is held in these --- */

static void release_if_unused(struct tarn_answer *a)
{
    if (!a->listed && a->watchers == 0)
        answer_free(a);
}

static void unlist_oldest(struct tarn_answers *answers)
{
    struct tarn_answer *a = answers->oldest;
    answers->oldest = a->next;
    *(a->next != NULL ? &a->next->previous : &answers->newest) = NULL;
    answers->ended_count--;
    answers->bytes -= a->answer.size;
    tarn_map_remove(answers->by_key, tarn_buf_slice(&a->key));
    a->listed = false;
    release_if_unused(a);
}

static void forget_old(struct tarn_answers *answers)
{
    int64_t limit = tarn_clock_mono_ms() - TARN_ANSWER_RETAIN_MS;
    while (answers->oldest != NULL &&
           (answers->ended_count > TARN_ANSWERS_MAX || answers->bytes > TARN_ANSWERS_BYTES_MAX ||
            answers->oldest->ended_ms < limit))
        unlist_oldest(answers);
}

/* --- */

static void make_key(const struct tarn_op *op, const char *method, struct tarn_slice request_id,
                     struct tarn_buf *out)
{
    tarn_buf_add(out, op->principal, strlen(op->principal) + 1);
    tarn_buf_add(out, method, strlen(method) + 1);
    tarn_buf_add_slice(out, request_id);
}

static struct tarn_answer *answer_new(struct tarn_answers *answers, struct tarn_slice key,
                                      uint64_t request_hash)
{
    struct tarn_answer *a = tarn_calloc(1, sizeof *a);
    a->owner = answers;
    tarn_buf_add_slice(&a->key, key);
    a->request_hash = request_hash;
    a->gate = tarn_gate_new();
    a->listed = true;
    tarn_map_set(answers->by_key, key, a);
    return a;
}

/* Waits for the one that runs; the lock is held before and after. False: the op ended first. */
static bool watch(struct tarn_op *op, struct tarn_answers *answers, struct tarn_answer *a)
{
    a->watchers++;
    pthread_mutex_unlock(&answers->lock);
    bool ended = tarn_gate_wait(a->gate, op);
    pthread_mutex_lock(&answers->lock);
    a->watchers--;
    release_if_unused(a);
    return ended;
}

struct tarn_status *tarn_answers_begin(struct tarn_op *op, struct tarn_answers *answers,
                                       const char *method, struct tarn_slice request_id,
                                       struct tarn_slice request, struct tarn_answer **ticket,
                                       struct tarn_slice *answer)
{
    if (request_id.size > REQUEST_ID_SIZE_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "request_id has more than %d bytes",
                               REQUEST_ID_SIZE_MAX);
    TARN_OWN(tarn_buf_drop) struct tarn_buf key = {0};
    make_key(op, method, request_id, &key);
    uint64_t hash = tarn_xxh64(request, 0);
    struct tarn_status *s = TARN_OK;
    *ticket = NULL;
    pthread_mutex_lock(&answers->lock);
    forget_old(answers);
    struct tarn_answer *a;
    while ((a = tarn_map_find(answers->by_key, tarn_buf_slice(&key))) != NULL) {
        if (a->request_hash != hash) {
            s = tarn_status_new(TARN_INVALID_ARGUMENT,
                                "request_id %.*s was used for another request before",
                                TARN_SLICE_ARG(request_id));
            break;
        }
        if (a->ended_ms != 0) {
            *answer = tarn_arena_copy(op->arena, tarn_buf_slice(&a->answer));
            break;
        }
        if (!watch(op, answers, a)) {
            s = tarn_op_check(op);
            break;
        }
    }
    if (a == NULL)
        *ticket = answer_new(answers, tarn_buf_slice(&key), hash);
    pthread_mutex_unlock(&answers->lock);
    return s;
}

void tarn_answers_keep(struct tarn_answer *a, struct tarn_slice answer)
{
    struct tarn_answers *answers = a->owner;
    pthread_mutex_lock(&answers->lock);
    tarn_buf_add_slice(&a->answer, answer);
    a->ended_ms = TARN_MAX(tarn_clock_mono_ms(), (int64_t)1);
    a->previous = answers->newest;
    *(a->previous != NULL ? &a->previous->next : &answers->oldest) = a;
    answers->newest = a;
    answers->ended_count++;
    answers->bytes += answer.size;
    tarn_gate_open(a->gate);
    forget_old(answers);
    pthread_mutex_unlock(&answers->lock);
}

void tarn_answers_forget(struct tarn_answer *a)
{
    if (a == NULL)
        return;
    struct tarn_answers *answers = a->owner;
    pthread_mutex_lock(&answers->lock);
    tarn_map_remove(answers->by_key, tarn_buf_slice(&a->key));
    a->listed = false;
    tarn_gate_open(a->gate);
    release_if_unused(a);
    pthread_mutex_unlock(&answers->lock);
}
