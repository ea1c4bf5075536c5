#include "service/internal.h"

#include <pthread.h>

#include "service/intent.h"

/*
 * A commit to several tables: appends and upserts only, which hardly ever conflict.
 *
 *   checked by all -> intent put under .tarn/intents/ -> committed, one table after the other -> intent removed
 *
 * The check is that of a commit, without the put. What changes a table between the two can still have it refuse its part, when
 * the others have theirs: its files became live, a later identifier landed, the number of buckets changed, or it was dropped.
 * From the moment the intent is in the store the commit will happen: what a crash or an outage interrupts is
 * finished forward, by the identities of the parts, which land once each. Until then each part counts as open.
 */

#define INTENTS ".tarn/intents"
#define RETRY_MS 2000
#define PUT_TRIES 5

struct intent {
    struct intent *next;
    struct tarn_arena *arena;
    const char *key; /* in the store */
    struct tarn_slice bytes;
    struct tarn_intent_part *parts;
    struct tarn_commit_result *results;
    size_t count;
    bool durable; /* it is known to be in the store */
    bool running; /* by its request or by the retry */
};

struct tarn_intents {
    struct tarn_service *service;
    pthread_mutex_t lock; /* guards all below */
    struct intent *first;
    struct tarn_timer *retry;
};

/* --- the list --- */

static void intent_free(struct intent *intent)
{
    tarn_arena_free(intent->arena);
    free(intent);
}

static struct intent *intent_new(void)
{
    struct intent *intent = tarn_calloc(1, sizeof *intent);
    intent->arena = tarn_arena_new();
    return intent;
}

static void list_intent(struct tarn_intents *intents, struct intent *intent)
{
    pthread_mutex_lock(&intents->lock);
    intent->next = intents->first;
    intents->first = intent;
    pthread_mutex_unlock(&intents->lock);
}

static void unlist_intent(struct tarn_intents *intents, struct intent *consumed)
{
    pthread_mutex_lock(&intents->lock);
    struct intent **at = &intents->first;
    while (*at != consumed)
        at = &(*at)->next;
    *at = consumed->next;
    pthread_mutex_unlock(&intents->lock);
    intent_free(consumed);
}

static void let_go(struct tarn_intents *intents, struct intent *intent)
{
    pthread_mutex_lock(&intents->lock);
    intent->running = false;
    pthread_mutex_unlock(&intents->lock);
}

bool tarn_service__intent_open(struct tarn_service *service, const char *uuid,
                               struct tarn_slice user, int64_t identifier)
{
    struct tarn_intents *intents = service->intents;
    if (intents == NULL)
        return false;
    bool open = false;
    pthread_mutex_lock(&intents->lock);
    for (struct intent *n = intents->first; n != NULL && !open; n = n->next)
        for (size_t i = 0; i < n->count && !open; i++)
            open = tarn_slice_is(n->parts[i].uuid, uuid) &&
                   tarn_slice_equal(n->parts[i].commit.user, user) &&
                   n->parts[i].commit.identifier == identifier;
    pthread_mutex_unlock(&intents->lock);
    return open;
}

/* --- from intent to snapshots --- */

/* May the part still land when it is tried again? What the table itself said no to can't. */
static bool is_final(const struct tarn_status *s)
{
    switch (tarn_status_reason(s)) {
    case TARN_COMMIT_CONFLICT:
    case TARN_BUCKET_MISMATCH:
    case TARN_COMMIT_IDENTIFIER_STALE:
    case TARN_SEQUENCE_OVERLAP:
    case TARN_FILE_MISSING:
    case TARN_TABLE_NOT_FOUND:
    case TARN_TABLE_REPLACED:
    case TARN_INVALID_ARGUMENT:
    case TARN_UNSUPPORTED_FEATURE:
        return true;
    default:
        return false;
    }
}

static struct tarn_status *commit_part(struct tarn_op *op, struct tarn_service *service,
                                       const struct tarn_intent_part *part,
                                       struct tarn_commit_result *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_TRY(tarn_catalog_table_by_uuid(op, service->catalog, part->uuid, &table));
    return tarn_table_commit(op, table, &part->commit, out);
}

/* Commits every part. Final refusals are told once all was tried; anything else leaves the intent for later. */
static struct tarn_status *carry_out(struct tarn_op *op, struct tarn_service *service,
                                     struct intent *intent, bool *finished)
{
    struct tarn_status *refusal = TARN_OK;
    *finished = false;
    for (size_t i = 0; i < intent->count; i++) {
        const struct tarn_intent_part *part = &intent->parts[i];
        struct tarn_status *s = commit_part(op, service, part, &intent->results[i]);
        if (s != TARN_OK && !is_final(s)) {
            tarn_status_free(refusal);
            return tarn_status_wrap(s, "table %.*s", TARN_SLICE_ARG(part->name));
        }
        if (s == TARN_OK)
            continue;
        tarn_log(op, TARN_ERROR, "commit.intent_refused", "intent=%s table=%s reason=%s",
                 intent->key, tarn_log_quote(op, tarn_arena_str(op->arena, part->name)),
                 tarn_reason_name(tarn_status_reason(s)));
        s = tarn_status_wrap(s, "%zu of %zu tables were committed; table %.*s refuses", i,
                             intent->count, TARN_SLICE_ARG(part->name));
        if (refusal == TARN_OK)
            refusal = s;
        else
            tarn_status_free(s);
    }
    *finished = true;
    return refusal;
}

/* Makes sure that the intent is in the store. OUTCOME_UNKNOWN while nobody can say. */
static struct tarn_status *put_intent(struct tarn_op *op, struct tarn_service *service,
                                      struct intent *intent)
{
    struct tarn_status *s = TARN_OK;
    for (int tries = 0; tries < PUT_TRIES; tries++) {
        tarn_status_free(s);
        bool created;
        s = tarn_store_put_if_absent(service->store, op, intent->key, intent->bytes, &created);
        if (s == TARN_OK) { /* or an earlier try of ours: nobody else has this name */
            intent->durable = true;
            return TARN_OK;
        }
        if (tries == 0 && tarn_status_reason(s) != TARN_OUTCOME_UNKNOWN)
            return s; /* nothing happened */
    }
    struct tarn_status *unknown = tarn_status_new(
        TARN_OUTCOME_UNKNOWN, "whether the commit to %zu tables will happen is not known: %s",
        intent->count, tarn_status_message(s));
    tarn_status_free(s);
    return unknown;
}

static struct tarn_status *remove_intent(struct tarn_op *op, struct tarn_service *service,
                                         struct intent *intent)
{
    return tarn_store_remove(service->store, op, intent->key);
}

/* --- finishing forward --- */

static void finish_intent(struct tarn_intents *intents, struct intent *intent)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    bool finished = false;
    struct tarn_status *s = intent->durable ? TARN_OK : put_intent(&op, intents->service, intent);
    if (s == TARN_OK)
        s = carry_out(&op, intents->service, intent, &finished);
    if (finished) {
        tarn_status_free(s); /* told in the log */
        s = remove_intent(&op, intents->service, intent);
    }
    if (s == TARN_OK) {
        tarn_log(&op, TARN_INFO, "commit.intent_finished", "intent=%s tables=%zu", intent->key,
                 intent->count);
        unlist_intent(intents, intent);
        return;
    }
    tarn_log_status(&op, TARN_WARN, "commit.intent_waits", s);
    let_go(intents, intent);
}

static struct intent *take_waiting(struct tarn_intents *intents)
{
    pthread_mutex_lock(&intents->lock);
    struct intent *n = intents->first;
    while (n != NULL && n->running)
        n = n->next;
    if (n != NULL)
        n->running = true;
    pthread_mutex_unlock(&intents->lock);
    return n;
}

static void run_retry(void *arg)
{
    struct tarn_intents *intents = arg;
    struct intent *n = take_waiting(intents);
    if (n != NULL) /* one a tick: the next tick takes the next */
        finish_intent(intents, n);
}

static struct tarn_status *load_intent(struct tarn_op *op, struct tarn_service *service,
                                       const char *key)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    bool found;
    TARN_TRY(tarn_store_find(service->store, op, key, &found, &bytes));
    if (!found)
        return TARN_OK;
    struct intent *intent = intent_new();
    intent->key = tarn_arena_str(intent->arena, tarn_slice_str(key));
    intent->bytes = tarn_arena_copy(intent->arena, tarn_buf_slice(&bytes));
    intent->durable = true;
    struct tarn_status *s =
        tarn_intent_decode(intent->bytes, intent->arena, &intent->parts, &intent->count);
    if (s != TARN_OK) {
        intent_free(intent);
        return tarn_status_wrap(s, "%s", key);
    }
    intent->results = tarn_arena_calloc(intent->arena, intent->count + 1, sizeof *intent->results);
    list_intent(service->intents, intent);
    return TARN_OK;
}

struct tarn_status *tarn_service_recover(struct tarn_op *op, struct tarn_service *service)
{
    struct tarn_object *objects;
    size_t count;
    TARN_TRY(tarn_store_list(service->store, op, INTENTS, false, &objects, &count));
    for (size_t i = 0; i < count; i++)
        if (!objects[i].is_folder) {
            struct tarn_status *s =
                load_intent(op, service, tarn_arena_str(op->arena, objects[i].key));
            if (s != TARN_OK && tarn_status_reason(s) != TARN_STATE_DAMAGED)
                return s;
            /* One that can't be read stays where it is; the other tables are served. */
            tarn_log_status(op, TARN_ERROR, "commit.intent_damaged", s);
        }
    service->intents->retry =
        tarn_timer_new(service->exec, 0, RETRY_MS, run_retry, service->intents);
    return TARN_OK;
}

struct tarn_intents *tarn_intents_new(struct tarn_service *service)
{
    struct tarn_intents *intents = tarn_calloc(1, sizeof *intents);
    intents->service = service;
    pthread_mutex_init(&intents->lock, NULL);
    return intents;
}

void tarn_intents_free(struct tarn_intents *intents)
{
    if (intents == NULL)
        return;
    tarn_timer_cancel(intents->retry);
    while (intents->first != NULL) {
        struct intent *n = intents->first;
        intents->first = n->next;
        intent_free(n);
    }
    pthread_mutex_destroy(&intents->lock);
    free(intents);
}

/* --- the request --- */

static struct tarn_status *check_part(struct tarn_op *op, struct tarn_service *service,
                                      struct tarn_commit_request *request,
                                      struct tarn_intent_part *out)
{
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    TARN_TRY(tarn_service__table(op, service, request->ref, TARN_ACTION_WRITE, &table));
    if (tarn_table_branch(table)[0] !=
        '\0') /* a start that finishes it forward knows tables only */
        return tarn_status_new(TARN_UNIMPLEMENTED, "commits over several tables don't take %s yet",
                               tarn_table_name(table));
    TARN_TRY(tarn_table_look(op, table, &view));
    TARN_TRY(tarn_service__check_commit(op, table, view, request));
    const struct tarn_commit *c = &request->commit;
    bool plain = c->kind == TARN_COMMIT_APPEND && c->append.index_count == 0 &&
                 c->compact.count + c->compact.changelog_count + c->compact.index_count == 0;
    if (!plain)
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "table %s: a commit to several tables adds files, and does nothing "
                               "else",
                               tarn_table_name(table));
    out->uuid = tarn_arena_copy(op->arena, tarn_slice_str(tarn_table_uuid(table)));
    out->name = tarn_arena_copy(op->arena, tarn_slice_str(tarn_table_name(table)));
    out->commit = *c;
    return TARN_OK;
}

static struct tarn_status *check_distinct(const struct tarn_intent_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (tarn_slice_equal(parts[i].uuid, parts[k].uuid))
                return tarn_status_new(TARN_INVALID_ARGUMENT, "table %.*s is named twice",
                                       TARN_SLICE_ARG(parts[i].name));
    return TARN_OK;
}

/* Nothing lands where one table would refuse its part. */
static struct tarn_status *check_tables(struct tarn_op *op, struct tarn_service *service,
                                        const struct tarn_intent_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
        TARN_TRY(tarn_catalog_table_by_uuid(op, service->catalog, parts[i].uuid, &table));
        struct tarn_status *s = tarn_table_check_commit(op, table, &parts[i].commit);
        if (s != TARN_OK)
            return tarn_status_wrap(s, "table %.*s refuses its part of %zu",
                                    TARN_SLICE_ARG(parts[i].name), count);
    }
    return TARN_OK;
}

/* The intent outlives the request, so it is made of its own bytes. */
static struct tarn_status *make_intent(const struct tarn_intent_part *parts, size_t count,
                                       struct intent **out)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    tarn_intent_encode(parts, count, &bytes);
    char uuid[TARN_UUID_SIZE];
    tarn_uuid_random(uuid);
    struct intent *intent = intent_new();
    intent->key = tarn_arena_printf(intent->arena, INTENTS "/%s", uuid);
    intent->bytes = tarn_arena_copy(intent->arena, tarn_buf_slice(&bytes));
    intent->running = true;
    struct tarn_status *s =
        tarn_intent_decode(intent->bytes, intent->arena, &intent->parts, &intent->count);
    if (s != TARN_OK) {
        intent_free(intent);
        return s;
    }
    intent->results = tarn_arena_calloc(intent->arena, intent->count + 1, sizeof *intent->results);
    *out = intent;
    return TARN_OK;
}

static struct tarn_status *unknown(struct tarn_status *consumed, const struct intent *intent)
{
    struct tarn_status *s = tarn_status_new(
        TARN_OUTCOME_UNKNOWN,
        "the commit to %zu tables is under way and will be finished; ask for each part by its "
        "commit user and identifier: %s",
        intent->count, tarn_status_message(consumed));
    tarn_status_free(consumed);
    return s;
}

static struct tarn_status *run_intent(struct tarn_op *op, struct tarn_service *service,
                                      struct intent *intent, struct tarn_commit_result *results)
{
    struct tarn_intents *intents = service->intents;
    list_intent(intents, intent);
    struct tarn_status *s = put_intent(op, service, intent);
    if (s != TARN_OK) {
        if (tarn_status_reason(s) == TARN_OUTCOME_UNKNOWN)
            let_go(intents, intent); /* the retry finds out */
        else
            unlist_intent(intents, intent);
        return s;
    }
    bool finished;
    s = carry_out(op, service, intent, &finished);
    if (!finished) {
        s = unknown(s, intent);
        let_go(intents, intent);
        return s;
    }
    memcpy(results, intent->results, intent->count * sizeof *results);
    struct tarn_status *left = remove_intent(op, service, intent);
    if (left == TARN_OK) {
        unlist_intent(intents, intent);
        return s;
    }
    tarn_log_status(op, TARN_WARN, "commit.intent_waits", left); /* it finds all parts landed */
    let_go(intents, intent);
    return s;
}

/* Is compaction behind where they landed? One of them may have been dropped since. */
static void fill_backlogs(struct tarn_op *op, struct tarn_service *service,
                          const struct tarn_intent_part *parts, size_t count,
                          struct tarn_backlog *out)
{
    for (size_t i = 0; i < count; i++) {
        TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
        struct tarn_status *s =
            tarn_catalog_table_by_uuid(op, service->catalog, parts[i].uuid, &table);
        out[i] = (struct tarn_backlog){0};
        if (s == TARN_OK)
            tarn_maintain_backlog(op, service->maintain, table, parts[i].commit.append.entries,
                                  parts[i].commit.append.count, &out[i]);
        tarn_status_free(s);
    }
}

struct tarn_status *tarn_service_commit_tables(struct tarn_op *op, struct tarn_service *service,
                                               struct tarn_commit_request *requests, size_t count,
                                               struct tarn_commit_result *results,
                                               struct tarn_backlog *backlogs)
{
    if (count == 0 || count > TARN_COMMIT_TABLES_MAX)
        return tarn_status_new(TARN_INVALID_ARGUMENT, "a commit to %zu tables; 1 to %d are fine",
                               count, TARN_COMMIT_TABLES_MAX);
    struct tarn_intent_part *parts = tarn_arena_calloc(op->arena, count, sizeof *parts);
    for (size_t i = 0; i < count; i++)
        TARN_TRY(check_part(op, service, &requests[i], &parts[i]));
    TARN_TRY(check_distinct(parts, count));
    TARN_TRY(check_tables(op, service, parts, count));
    struct intent *intent = NULL;
    TARN_TRY(make_intent(parts, count, &intent));
    TARN_TRY(run_intent(op, service, intent, results));
    if (backlogs != NULL)
        fill_backlogs(op, service, parts, count, backlogs);
    return TARN_OK;
}
