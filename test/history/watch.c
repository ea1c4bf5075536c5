#include "history.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "service/subscribe_internal.h"

/*
 * A subscriber as the daemon's stock door would serve it: it remembers the token of what it dealt with last, goes away
 * and comes back, through every life of the daemon. What it is told must be the history: each snapshot after its
 * parent, none left out, none twice, each with the files that it brought; or an end that says why.
 */

struct told_event { /* one message */
    int64_t snapshot_id;
    struct tarn_slice delta_list;
    struct files files;
    bool last;
    struct tarn_buf token;
};

struct stream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const struct told_event *event; /* came, and is not dealt with yet */
    struct tarn_status *end;
    bool ended;
};

struct watcher {
    int number;
    bool changes;
    struct tarn_position at; /* of the last token */
    bool has_token;
    struct snap *last;   /* told to its end; NULL: nothing yet */
    struct files so_far; /* of the snapshot that is being told */
    int64_t since_ms;    /* when it began anew, or was told something */
    int told_count;
};

/* --- the door --- */

static struct tarn_status *encode(struct tarn_op *op, const struct tarn_subscribe_event *event,
                                  void **encoded, size_t *size)
{
    struct told_event *e = tarn_calloc(1, sizeof *e);
    e->snapshot_id = event->snapshot->id;
    e->delta_list = tarn_arena_copy(world->op->arena, event->snapshot->delta_list);
    e->last = event->last;
    tarn_buf_add_slice(&e->token, event->token);
    for (size_t s = 0; s < event->split_count; s++)
        for (size_t f = 0; f < event->splits[s].file_count; f++) {
            struct file *file = file_find(event->splits[s].files[f].entry.file.name);
            if (file == NULL || files_have(&e->files, file))
                broken("a stream tells of a file that nobody wrote, or of one twice");
            files_add(&e->files, file);
        }
    *encoded = e;
    *size = 100;
    return TARN_OK;
}

static void free_encoded(void *encoded)
{
    struct told_event *e = encoded;
    tarn_buf_drop(&e->token);
    free(e->files.list);
    free(e);
}

static void write_event(void *arg, const void *encoded)
{
    struct stream *stream = arg;
    pthread_mutex_lock(&stream->lock);
    tarn_assert(stream->event == NULL);
    stream->event = encoded;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static void end(void *arg, struct tarn_status *consumed, bool stuck)
{
    struct stream *stream = arg;
    pthread_mutex_lock(&stream->lock);
    if (stream->ended)
        tarn_status_free(consumed);
    else
        stream->end = consumed;
    stream->ended = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static void release(void *arg)
{
}

static const struct tarn_subscribe_door door = {.encode = encode,
                                                .free_encoded = free_encoded,
                                                .write = write_event,
                                                .end = end,
                                                .release = release};

/* --- is it so? --- */

static void check_files(const struct watcher *w, const struct snap *snap)
{
    static const struct files none;
    const struct files *want =
        world->plan.changelog ? (snap->s.kind == TARN_COMMIT_OVERWRITE ? &none : &snap->changes)
        : snap->s.kind == TARN_COMMIT_APPEND ? &snap->added
                                             : &none;
    if (w->changes && !files_equal(&w->so_far, want))
        broken("watcher %d is told %zu files of snapshot %" PRId64 ", which brought %zu", w->number,
               w->so_far.count, snap->id, want->count);
}

static void deal_with(struct watcher *w, const struct told_event *e)
{
    struct snap *snap = truth_find(e->snapshot_id, e->delta_list);
    if (snap == NULL)
        broken("watcher %d is told of a snapshot %" PRId64 " that never was", w->number,
               e->snapshot_id);
    note("watcher %d: snapshot %" PRId64 "%s", w->number, snap->id,
         e->last ? "" : " (more to come)");
    if (w->last != NULL && snap->id <= w->last->id)
        broken("watcher %d is told of snapshot %" PRId64 " after %" PRId64, w->number, snap->id,
               w->last->id);
    if (w->last != NULL && snap->parent != w->last)
        broken("watcher %d is told of snapshot %" PRId64 " after %" PRId64
               ", which isn't its parent",
               w->number, snap->id, w->last->id);
    for (size_t i = 0; i < e->files.count; i++)
        files_add(&w->so_far, e->files.list[i]);
    if (e->last) {
        check_files(w, snap);
        w->so_far.count = 0;
        w->last = snap;
        w->told_count++;
    }
    struct tarn_status *s = tarn_service__token_decode(tarn_buf_slice(&e->token), &w->at);
    if (s != TARN_OK)
        broken("watcher %d: its token is none: %s", w->number, tarn_status_message(s));
    w->has_token = true;
    w->since_ms = sim_now_ms();
}

/* Why a stream can't go on: it must be so. */
static void check_reset(const struct watcher *w, const struct tarn_status *s)
{
    enum tarn_reason reason = tarn_status_reason(s);
    if (reason == TARN_SNAPSHOT_ROLLED_BACK &&
        (w->last == NULL || truth_survives(w->last, world->seq)) &&
        !(w->last == NULL && world->was_rolled_back) && w->so_far.count == 0)
        broken("watcher %d is told that snapshot %" PRId64 " was rolled back: %s", w->number,
               w->last == NULL ? 0 : w->last->id, tarn_status_message(s));
    /* What it was told last has expired, too: then it must be known what the next one stands on. */
    bool may_not_know =
        world->receipts_may_be_lost || world->history_has_gaps || world->was_rolled_back;
    if (reason == TARN_SNAPSHOT_EXPIRED && w->last != NULL &&
        w->last->id + !may_not_know > TARN_MAX(world->expired_to, world->hinted - 1))
        broken("watcher %d is told that what comes after %" PRId64 " has expired: %s", w->number,
               w->last->id, tarn_status_message(s));
}

/* --- its life --- */

static void begin_anew(struct watcher *w)
{
    w->has_token = false;
    w->last = NULL;
    w->so_far.count = 0;
    w->since_ms = sim_now_ms();
}

/* The earliest snapshot, as TARN_FROM_EARLIEST finds it. */
static struct tarn_status *find_earliest(struct tarn_op *op, struct life *life,
                                         struct tarn_position *at)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    struct tarn_snapshot snapshot;
    bool found = true;
    memset(at, 0, sizeof *at);
    snprintf(at->uuid, sizeof at->uuid, "%s", HISTORY_UUID);
    TARN_TRY(tarn_table_look(op, life->table, &view));
    at->snapshot_id = view->has_snapshot ? view->earliest_id : 0;
    at->behind = !view->has_snapshot;
    if (view->has_snapshot)
        TARN_TRY(tarn_table_find_snapshot(op, life->table, at->snapshot_id, &found, &snapshot,
                                          &at->identity));
    return found ? TARN_OK : tarn_status_new(TARN_SNAPSHOT_EXPIRED, "it went away meanwhile");
}

static struct tarn_status *subscribe(struct watcher *w, struct life *life, struct stream *stream,
                                     struct tarn_subscriber **out)
{
    TARN_OWN(tarn_op_fini) struct tarn_op op;
    tarn_op_init(&op);
    const struct tarn_topic_spec spec = {
        .changes = w->changes, .how = TARN_CHANGES_AUTO, .where = "", .door = &door};
    struct tarn_position at = w->at;
    if (!w->has_token)
        TARN_TRY(find_earliest(&op, life, &at));
    TARN_TRY(tarn_service__check_position(&op, life->table, &at));
    return tarn_service__subscriber_add(&op, life->subscriptions, life->table, &spec, &at, stream,
                                        out);
}

/* Deals with what comes until the stream ends, the life does, or it has had enough. */
static void read_stream(struct watcher *w, struct life *life, struct stream *stream,
                        struct tarn_subscriber *sub)
{
    int64_t until_ms = !world->calm && sim_chance(SIM_WORK, 300)
                           ? sim_now_ms() + sim_between(SIM_WORK, 1, 20000)
                           : INT64_MAX;
    tarn_subscriber_start(sub);
    pthread_mutex_lock(&stream->lock);
    while (!stream->ended && world->life == life && sim_now_ms() < until_ms &&
           !world->watchers_go_home) {
        const struct told_event *event = stream->event;
        pthread_mutex_unlock(&stream->lock);
        if (event == NULL) {
            sim_sleep_ms(sim_between(SIM_WORK, 1, 50));
        } else {
            if (!world->calm && sim_chance(SIM_WORK, 20))
                sim_sleep_ms(sim_between(SIM_WORK, 100, 60000));
            if (!life->dead)
                deal_with(w, event);
            pthread_mutex_lock(&stream->lock);
            stream->event = NULL;
            pthread_mutex_unlock(&stream->lock);
            tarn_subscriber_written(sub);
        }
        pthread_mutex_lock(&stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    tarn_subscriber_ended(sub);
}

static void take_end(struct watcher *w, struct life *life, struct tarn_status *s)
{
    if (s == TARN_OK || life->dead) {
        tarn_status_free(s);
        return;
    }
    note("watcher %d: its stream ends: %s %s", w->number, reason_of(s), tarn_status_message(s));
    enum tarn_reason reason = tarn_status_reason(s);
    check_reset(w, s);
    if (reason == TARN_SNAPSHOT_ROLLED_BACK || reason == TARN_SNAPSHOT_EXPIRED)
        begin_anew(w);
    tarn_status_free(s);
}

static void watch_once(struct watcher *w, struct life *life)
{
    struct stream *stream = tarn_calloc(1, sizeof *stream);
    struct tarn_subscriber *sub = NULL;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    struct tarn_status *s = subscribe(w, life, stream, &sub);
    if (s == TARN_OK) {
        read_stream(w, life, stream, sub);
        pthread_mutex_lock(&stream->lock);
        s = tarn_move(stream->end);
        stream->ended = true;
        pthread_mutex_unlock(&stream->lock);
    }
    take_end(w, life, s);
}

/* At the end, in calm, a watcher must get to the newest snapshot. */
static void check_complete(const struct watcher *w)
{
    struct snap *latest = truth_latest();
    if (latest != NULL && w->last != latest)
        broken("watcher %d stands at %" PRId64 ", the newest snapshot is %" PRId64, w->number,
               w->last == NULL ? 0 : w->last->id, latest->id);
}

void watcher_main(int number)
{
    struct watcher *w = tarn_calloc(1, sizeof *w);
    w->number = number;
    w->changes = number % 2 == 1;
    while (!world->watchers_go_home) {
        struct life *life = life_enter_or_leave(&world->watchers_go_home);
        if (life == NULL)
            break;
        watch_once(w, life);
        life_leave(life);
        if (!world->watchers_go_home)
            sim_sleep_ms(sim_between(SIM_WORK, 10, 500));
    }
    check_complete(w);
    world->events_told += w->told_count;
}
