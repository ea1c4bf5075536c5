/*
 * Promise: a subscriber is told of every snapshot in order, none left out, none twice, wherever it begins and whoever
 * commits; a token continues exactly behind its event; what can't be continued (expired, rolled back, another table)
 * ends with an error that names the earliest token; a reader that stands still is shed and holds nobody back; consumers
 * are Paimon's files.
 */
#include <pthread.h>
#include <unistd.h>

#include "fixture.h"
#include "service/subscribe_hub.h"
#include "table/expire.h"

#define TOLD_MAX 4000

struct told {
    int64_t id;
    struct tarn_buf token;
};
/* What a door is in these tests: a list of what was written. */
struct stream {
    pthread_mutex_t lock;
    struct told told[TOLD_MAX];
    int count;
    bool hold;    /* messages are not taken */
    bool pending; /* one was written, and not taken */
    struct tarn_subscriber *subscriber;
    struct tarn_status *end;
    bool ended, stuck, released;
};
struct encoded {
    int64_t id;
    struct tarn_buf token;
};

static struct tarn_status *encode(struct tarn_op *op TARN_UNUSED,
                                  const struct tarn_subscribe_event *event, void **out,
                                  size_t *size)
{
    struct encoded *e = tarn_calloc(1, sizeof *e);
    e->id = event->snapshot->id;
    tarn_buf_add_slice(&e->token, event->token);
    *out = e;
    *size = sizeof *e;
    return TARN_OK;
}

static void free_encoded(void *encoded)
{
    struct encoded *e = encoded;
    tarn_buf_drop(&e->token);
    free(e);
}

static void write_event(void *arg, const void *encoded)
{
    struct stream *s = arg;
    const struct encoded *e = encoded;
    pthread_mutex_lock(&s->lock);
    if (s->count < TOLD_MAX) {
        s->told[s->count].id = e->id;
        tarn_buf_add_slice(&s->told[s->count].token, tarn_buf_slice(&e->token));
        s->count++;
    }
    bool hold = s->hold;
    s->pending = hold;
    pthread_mutex_unlock(&s->lock);
    if (!hold)
        tarn_subscriber_written(s->subscriber);
}

static void end_stream(void *arg, struct tarn_status *consumed, bool stuck)
{
    struct stream *s = arg;
    pthread_mutex_lock(&s->lock);
    s->end = consumed;
    s->stuck = stuck;
    pthread_mutex_unlock(&s->lock);
}

static void release(void *arg)
{
    struct stream *s = arg;
    pthread_mutex_lock(&s->lock);
    s->released = true;
    pthread_mutex_unlock(&s->lock);
}

static const struct tarn_subscribe_door door = {encode, free_encoded, write_event, end_stream,
                                                release};

/* --- the surroundings --- */

struct subs {
    struct fixture f;
    struct tarn_table *table;
    pthread_mutex_t hook_lock;
    int64_t identifier;
};

/* Commits are answered before they are told of: the last may still be telling when a test ends. */
static void on_committed(void *arg, struct tarn_table *table, int64_t id TARN_UNUSED)
{
    struct subs *s = arg;
    pthread_mutex_lock(&s->hook_lock);
    if (s->f.service.subscriptions != NULL)
        tarn_subscriptions_notice(s->f.service.subscriptions, table);
    pthread_mutex_unlock(&s->hook_lock);
}

static void subs_init(struct subs *s, struct tarn_test *t, int64_t slow_after_ms)
{
    memset(s, 0, sizeof *s);
    tarn_log_set_level(TARN_ERROR);
    fixture_init(&s->f, t);
    fixture_table(&s->f, "k", "id BIGINT NOT NULL, v BIGINT", "id");
    struct tarn_subscriptions_options options = {
        .exec = s->f.exec,
        .catalog = s->f.service.catalog,
        .foreign_check_ms = 100,
        .slow_after_ms = slow_after_ms,
        .subscriber_max = 300,
    };
    s->f.service.subscriptions = tarn_subscriptions_new(&options);
    s->f.env.committed = on_committed;
    s->f.env.committed_arg = s;
    pthread_mutex_init(&s->hook_lock, NULL);
    s->f.env.foreign_check_ms = 50;
    expect_ok(tarn_catalog_table(t->op, s->f.service.catalog, S("db"), S("k"), S(""), &s->table));
}

static void subs_fini(struct subs *s)
{
    tarn_table_drop_ref(&s->table);
    pthread_mutex_lock(&s->hook_lock);
    struct tarn_subscriptions *subscriptions = tarn_move(s->f.service.subscriptions);
    pthread_mutex_unlock(&s->hook_lock);
    tarn_subscriptions_free(subscriptions);
    fixture_fini(&s->f);
}

static struct tarn_status *commit_empty(struct tarn_op *op, struct tarn_table *table,
                                        const char *user, int64_t identifier, int64_t *id)
{
    struct tarn_commit commit = {
        .user = S(user),
        .identifier = identifier,
        .watermark = TARN_SNAPSHOT_NONE,
        .base_snapshot_id = TARN_SNAPSHOT_NONE,
        .kind = TARN_COMMIT_APPEND,
        .force_empty = true,
    };
    struct tarn_commit_result result;
    TARN_TRY(tarn_table_commit(op, table, &commit, &result));
    *id = result.append_snapshot_id;
    return TARN_OK;
}

static int64_t commit_one(struct subs *s)
{
    int64_t id = 0;
    expect_ok(commit_empty(s->f.t->op, s->table, "u", ++s->identifier, &id));
    return id;
}

static struct stream *stream_new(void)
{
    struct stream *stream = tarn_calloc(1, sizeof *stream);
    pthread_mutex_init(&stream->lock, NULL);
    return stream;
}

static struct tarn_status *try_subscribe(struct subs *s, struct stream *stream,
                                         struct tarn_subscribe_request request)
{
    request.table = fixture_ref("k");
    if (request.how == 0)
        request.how = TARN_CHANGES_AUTO;
    TARN_TRY(tarn_service_subscribe(s->f.t->op, &s->f.service, &request, &door, stream,
                                    &stream->subscriber));
    tarn_subscriber_start(stream->subscriber);
    return TARN_OK;
}

static struct stream *subscribe(struct subs *s, struct tarn_subscribe_request request)
{
    struct stream *stream = stream_new();
    expect_ok(try_subscribe(s, stream, request));
    return stream;
}

static int count_of(struct stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    int count = stream->count;
    pthread_mutex_unlock(&stream->lock);
    return count;
}

static bool waits_for(struct stream *stream, int count)
{
    for (int i = 0; i < 5000 && count_of(stream) < count; i++)
        usleep(1000);
    return count_of(stream) >= count;
}

static struct tarn_status *end_of(struct stream *stream)
{
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&stream->lock);
        struct tarn_status *end = tarn_move(stream->end);
        pthread_mutex_unlock(&stream->lock);
        if (end != NULL)
            return end;
        usleep(1000);
    }
    return TARN_OK;
}

/* As the client goes away. */
static void leave(struct stream *stream)
{
    tarn_subscriber_ended(stream->subscriber);
    bool released = false;
    for (int i = 0; i < 5000 && !released; i++) {
        pthread_mutex_lock(&stream->lock);
        released = stream->released;
        pthread_mutex_unlock(&stream->lock);
        if (!released)
            usleep(1000);
    }
    expect_true(released);
    tarn_status_free(stream->end);
    for (int i = 0; i < stream->count; i++)
        tarn_buf_drop(&stream->told[i].token);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static void expect_ids(struct stream *stream, int64_t from, int64_t to)
{
    int count = (int)(to - from + 1);
    expect_true(waits_for(stream, count));
    usleep(20000); /* and nothing more comes */
    expect_int(count_of(stream), count);
    for (int i = 0; i < count; i++)
        expect_int(stream->told[i].id, from + i);
}

static struct tarn_slice token_of(struct tarn_test *t, struct stream *stream, int i)
{
    return tarn_arena_copy(t->arena, tarn_buf_slice(&stream->told[i].token));
}

static void remove_snapshot(struct subs *s, int64_t id)
{
    expect_ok(tarn_store_remove(
        s->f.inner, s->f.t->op,
        tarn_arena_printf(s->f.t->arena, "db.db/k/snapshot/snapshot-%" PRId64, id)));
}

/* Snapshot `id` anew, with other bytes: what a foreign writer puts after a roll-back. */
static void rewrite_snapshot(struct subs *s, int64_t id)
{
    struct tarn_test *t = s->f.t;
    struct tarn_buf json = {0};
    const char *key = tarn_arena_printf(t->arena, "db.db/k/snapshot/snapshot-%" PRId64, id);
    struct tarn_snapshot snapshot;
    expect_ok(tarn_store_get(s->f.inner, t->op, key, &json));
    expect_ok(tarn_snapshot_decode(tarn_buf_slice(&json), t->arena, &snapshot));
    snapshot.uuid = S("0f6eb877-32f9-4ec5-97a1-08f2e270c7c4");
    snapshot.commit_user = S("foreign");
    struct tarn_buf next = {0};
    tarn_snapshot_encode(&snapshot, &next);
    expect_ok(tarn_store_put(s->f.inner, t->op, key, tarn_buf_slice(&next)));
    tarn_buf_drop(&json);
    tarn_buf_drop(&next);
}

/* --- tests --- */

TARN_TEST(subscribe, tells_every_snapshot_in_order_from_anywhere)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    struct stream *first = subscribe(&s, (struct tarn_subscribe_request){0});
    for (int i = 0; i < 5; i++)
        commit_one(&s);
    expect_ids(first, 1, 5);
    struct stream *latest = subscribe(&s, (struct tarn_subscribe_request){0});
    struct stream *earliest =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    struct stream *third = subscribe(
        &s, (struct tarn_subscribe_request){.from = TARN_FROM_SNAPSHOT, .snapshot_id = 3});
    struct stream *next = subscribe(
        &s, (struct tarn_subscribe_request){.from = TARN_FROM_SNAPSHOT, .snapshot_id = 6});
    struct stream *changes =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST, .changes = true});
    struct stream *whole =
        subscribe(&s, (struct tarn_subscribe_request){.changes = true, .full_first = true});
    struct stream *differences =
        subscribe(&s, (struct tarn_subscribe_request){
                          .from = TARN_FROM_EARLIEST, .changes = true, .how = TARN_CHANGES_DIFF});
    struct tarn_subscribe_request far = {.from = TARN_FROM_SNAPSHOT, .snapshot_id = 8};
    struct stream *none = stream_new();
    expect_status(try_subscribe(&s, none, far), TARN_SNAPSHOT_NOT_FOUND, "the latest is 5");
    pthread_mutex_destroy(&none->lock);
    free(none);
    for (int i = 0; i < 3; i++)
        commit_one(&s);
    expect_ids(first, 1, 8);
    expect_ids(latest, 6, 8);
    expect_ids(earliest, 1, 8);
    expect_ids(third, 3, 8);
    expect_ids(next, 6, 8);
    expect_ids(changes, 1, 8);
    expect_ids(whole, 5, 8);
    expect_ids(differences, 1, 8);
    struct stream *all[] = {first, latest, earliest, third, next, changes, whole, differences};
    for (size_t i = 0; i < TARN_COUNT_OF(all); i++)
        leave(all[i]);
}

TARN_TEST(subscribe, a_token_continues_behind_its_event)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 6; i++)
        commit_one(&s);
    struct stream *all = subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    expect_ids(all, 1, 6);
    for (int i = 0; i < 6; i++) {
        struct stream *rest =
            subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_TOKEN,
                                                          .token = token_of(t, all, i)});
        if (i < 5)
            expect_ids(rest, i + 2, 6);
        int64_t id = i == 5 ? commit_one(&s) : 0;
        if (id != 0)
            expect_ids(rest, 7, 7);
        leave(rest);
    }
    leave(all);
}

TARN_TEST(subscribe, refuses_tokens_that_are_none_of_this_table)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    commit_one(&s);
    struct stream *all = subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    expect_ids(all, 1, 1);
    struct tarn_slice good = token_of(t, all, 0);
    uint8_t *bad = (uint8_t *)(uintptr_t)tarn_arena_copy(t->arena, good).data;
    struct stream *none = stream_new();
    for (size_t i = 0; i < good.size; i++) {
        bad[i] ^= 1;
        struct tarn_subscribe_request request = {.from = TARN_FROM_TOKEN,
                                                 .token = tarn_slice_of(bad, good.size)};
        expect_status(try_subscribe(&s, none, request), TARN_INVALID_ARGUMENT, "resume_token");
        bad[i] ^= 1;
        request.token = tarn_slice_of(good.data, i);
        expect_status(try_subscribe(&s, none, request), TARN_INVALID_ARGUMENT, "resume_token");
    }
    /* of another table, which is there; and of one that isn't any more */
    fixture_table(&s.f, "other", "id BIGINT NOT NULL", "id");
    struct tarn_table_facts other;
    expect_ok(tarn_service_get_table(t->op, &s.f.service, fixture_ref("other"), &other));
    struct tarn_position position = {.snapshot_id = 1, .behind = true};
    snprintf(position.uuid, sizeof position.uuid, "%s", other.uuid);
    struct tarn_buf token = {0};
    tarn_service__token_encode(&position, &token);
    struct tarn_subscribe_request foreign = {.from = TARN_FROM_TOKEN,
                                             .token = tarn_buf_slice(&token)};
    expect_status(try_subscribe(&s, none, foreign), TARN_INVALID_ARGUMENT, "another table");
    expect_ok(tarn_service_drop_table(t->op, &s.f.service, fixture_ref("other"), false));
    expect_status(try_subscribe(&s, none, foreign), TARN_TABLE_REPLACED, "is gone");
    tarn_buf_drop(&token);
    pthread_mutex_destroy(&none->lock);
    free(none);
    leave(all);
}

TARN_TEST(subscribe, sees_what_others_commit)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    commit_one(&s);
    struct stream *stream = subscribe(&s, (struct tarn_subscribe_request){0});
    struct tarn_buf json = {0};
    expect_ok(tarn_store_get(s.f.inner, t->op, "db.db/k/snapshot/snapshot-1", &json));
    struct tarn_snapshot snapshot;
    expect_ok(tarn_snapshot_decode(tarn_buf_slice(&json), t->arena, &snapshot));
    for (int64_t id = 2; id <= 4; id++) {
        struct tarn_buf next = {0};
        snapshot.id = id;
        tarn_snapshot_encode(&snapshot, &next);
        const char *key = tarn_arena_printf(t->arena, "db.db/k/snapshot/snapshot-%" PRId64, id);
        expect_ok(tarn_store_put(s.f.inner, t->op, key, tarn_buf_slice(&next)));
        tarn_buf_drop(&next);
    }
    tarn_buf_drop(&json);
    expect_ids(stream, 2, 4); /* nobody asked the table meanwhile */
    leave(stream);
}

TARN_TEST(subscribe, a_roll_back_is_an_explicit_end)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 4; i++)
        commit_one(&s);
    struct stream *live =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    expect_ids(live, 1, 4);
    struct stream *early =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    expect_ids(early, 1, 4);
    struct tarn_slice fourth = token_of(t, live, 3), second = token_of(t, live, 1);
    remove_snapshot(&s, 4);
    struct tarn_status *end = end_of(live);
    expect_str(tarn_status_get(end, "earliest_snapshot"), "1");
    struct tarn_buf token = {0};
    expect_ok(tarn_hex_decode(S(tarn_status_get(end, "earliest_token")), &token));
    expect_status(end, TARN_SNAPSHOT_ROLLED_BACK, "the earliest snapshot is 1");
    leave(live);
    leave(early);

    struct stream *none = stream_new();
    struct tarn_subscribe_request resume = {.from = TARN_FROM_TOKEN, .token = fourth};
    expect_status(try_subscribe(&s, none, resume), TARN_SNAPSHOT_ROLLED_BACK, "snapshot 4");
    /* the id is taken again: the bytes tell */
    remove_snapshot(&s, 3);
    usleep(100000);
    commit_one(&s);
    commit_one(&s);
    expect_status(try_subscribe(&s, none, resume), TARN_SNAPSHOT_ROLLED_BACK, "snapshot 4");
    pthread_mutex_destroy(&none->lock);
    free(none);
    struct stream *below =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_TOKEN, .token = second});
    expect_ids(below, 3, 4);
    leave(below);
    struct stream *anew =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_TOKEN,
                                                      .token = tarn_buf_slice(&token)});
    expect_ids(anew, 1, 4);
    leave(anew);
    tarn_buf_drop(&token);
}

/* From here on the table looks at its folder no more, until it is told to: what others do stays unseen. */
static void look_away(struct subs *s)
{
    TARN_OWN(tarn_table_view_drop) const struct tarn_table_view *view = NULL;
    expect_ok(tarn_table_look(s->f.t->op, s->table, &view));
    s->f.env.foreign_check_ms = 3600000;
}

static struct tarn_position position_of(struct subs *s, int64_t id, bool behind)
{
    struct tarn_position position = {.snapshot_id = id, .behind = behind};
    struct tarn_snapshot snapshot;
    bool found;
    expect_ok(
        tarn_table_find_snapshot(s->f.t->op, s->table, id, &found, &snapshot, &position.identity));
    expect_true(found);
    return position;
}

TARN_TEST(subscribe, a_position_is_judged_by_the_folder_as_it_is_now)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 8; i++)
        commit_one(&s);
    struct tarn_position second = position_of(&s, 2, true), third = position_of(&s, 3, true),
                         fifth = position_of(&s, 5, true), sixth = position_of(&s, 6, true),
                         at_second = position_of(&s, 2, false),
                         at_sixth = position_of(&s, 6, false), seventh = position_of(&s, 7, true),
                         none = {.behind = true};
    look_away(&s);
    expect_ok(tarn_service__check_position(t->op, s.table, &none));
    for (int64_t id = 1; id <= 3; id++)
        remove_snapshot(&s, id);
    for (int64_t id = 8; id >= 6; id--)
        remove_snapshot(&s, id);
    expect_status(tarn_service__check_position(t->op, s.table, &none), TARN_SNAPSHOT_EXPIRED,
                  "snapshot 1");
    struct tarn_status *end = tarn_service__check_position(t->op, s.table, &second);
    expect_str(tarn_status_get(end, "earliest_snapshot"), "4");
    expect_status(end, TARN_SNAPSHOT_EXPIRED, "snapshot 3 of table db.k has expired");
    expect_status(tarn_service__check_position(t->op, s.table, &at_second), TARN_SNAPSHOT_EXPIRED,
                  "snapshot 2");
    expect_ok(tarn_service__check_position(t->op, s.table, &third));
    expect_ok(tarn_service__check_position(t->op, s.table, &fifth));
    expect_status(tarn_service__check_position(t->op, s.table, &sixth), TARN_SNAPSHOT_ROLLED_BACK,
                  "snapshot 6 of table db.k was rolled back; the earliest snapshot is 4");
    expect_status(tarn_service__check_position(t->op, s.table, &at_sixth),
                  TARN_SNAPSHOT_ROLLED_BACK, "snapshot 6");
    expect_status(tarn_service__check_position(t->op, s.table, &seventh), TARN_SNAPSHOT_ROLLED_BACK,
                  "snapshot 7");
    rewrite_snapshot(&s, 5);
    expect_status(tarn_service__check_position(t->op, s.table, &fifth), TARN_SNAPSHOT_ROLLED_BACK,
                  "snapshot 5");
    remove_snapshot(&s, 5);
    remove_snapshot(&s, 4);
    expect_status(tarn_service__check_position(t->op, s.table, &third), TARN_SNAPSHOT_ROLLED_BACK,
                  "snapshot 3");
}

/* History seed 402472: what was told last is rolled back when its token was judged, and before the stream is there to be told. */
TARN_TEST(subscribe, a_roll_back_before_the_stream_is_there_is_an_explicit_end)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 3; i++)
        commit_one(&s);
    const struct tarn_topic_spec spec = {.how = TARN_CHANGES_AUTO, .where = "", .door = &door};
    const struct tarn_position positions[] = {position_of(&s, 3, true), position_of(&s, 3, false)};
    remove_snapshot(&s, 3);
    for (int i = 0; i < 2; i++) {
        struct stream *stream = stream_new();
        expect_ok(tarn_service__subscriber_add(t->op, s.f.service.subscriptions, s.table, &spec,
                                               &positions[i], stream, &stream->subscriber));
        tarn_subscriber_start(stream->subscriber);
        expect_status(end_of(stream), TARN_SNAPSHOT_ROLLED_BACK, "snapshot 3");
        leave(stream);
    }
}

/* What comes next was rolled back, and the table hasn't looked since: nothing is missing, the next one is waited for. */
TARN_TEST(subscribe, goes_on_where_only_what_comes_next_was_rolled_back)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 6; i++)
        commit_one(&s);
    struct stream *all = subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    expect_ids(all, 1, 6);
    struct tarn_slice third = token_of(t, all, 2);
    leave(all);
    usleep(300000); /* its ring goes with it */
    look_away(&s);
    for (int64_t id = 6; id >= 4; id--)
        remove_snapshot(&s, id);
    struct tarn_subscribe_request resume = {.from = TARN_FROM_TOKEN, .token = third};
    struct stream *snapshots = subscribe(&s, resume);
    resume.changes = true;
    struct stream *changes = subscribe(&s, resume);
    usleep(300000);
    expect_int(count_of(snapshots), 0);
    expect_int(count_of(changes), 0);
    expect_null(snapshots->end);
    expect_null(changes->end);
    s.f.env.foreign_check_ms = 50;
    usleep(200000);
    commit_one(&s);
    commit_one(&s);
    expect_ids(snapshots, 4, 5);
    expect_ids(changes, 4, 5);
    leave(snapshots);
    leave(changes);
}

TARN_TEST(subscribe, each_entry_stands_on_the_one_that_was_told_before)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 6; i++)
        commit_one(&s);
    const struct tarn_topic_spec spec = {.how = TARN_CHANGES_AUTO, .where = "", .door = &door};
    struct tarn_position old = position_of(&s, 5, true),
                         unknown = {.snapshot_id = 5, .behind = true};
    uint64_t old_sixth = position_of(&s, 6, true).identity;
    look_away(&s);
    struct tarn_entry *entry;
    expect_ok(tarn_service__entry_make(t->op, s.table, &spec, &old, 0, false, &entry));
    expect_int(entry->snapshot_id, 6);
    expect_true(entry->identity == old_sixth && entry->parent_identity == old.identity);
    tarn_service__entry_drop(&entry);
    expect_ok(tarn_service__entry_make(t->op, s.table, &spec, &unknown, old_sixth, false, &entry));
    expect_true(entry->parent_identity == old.identity);
    tarn_service__entry_drop(&entry);

    rewrite_snapshot(&s, 6);
    rewrite_snapshot(&s, 5);
    expect_status(tarn_service__entry_make(t->op, s.table, &spec, &old, 0, false, &entry),
                  TARN_SNAPSHOT_ROLLED_BACK, "snapshot 5");
    expect_status(
        tarn_service__entry_make(t->op, s.table, &spec, &unknown, old_sixth, false, &entry),
        TARN_SNAPSHOT_ROLLED_BACK, "snapshot 6");
    struct tarn_position now = position_of(&s, 5, true);
    expect_ok(tarn_service__entry_make(t->op, s.table, &spec, &now, 0, false, &entry));
    expect_true(entry->identity != old_sixth && entry->parent_identity == now.identity);

    /* from the ring as well */
    struct tarn_topic topic = {.ring = {entry}, .ring_count = 1, .newest_id = 6};
    expect_true(tarn_service__ring_find(&topic, &now, 0) == entry);
    expect_true(tarn_service__ring_find(&topic, &unknown, entry->identity) == entry);
    expect_null(tarn_service__ring_find(&topic, &old, 0));
    expect_null(tarn_service__ring_find(&topic, &unknown, old_sixth));
    tarn_service__entry_drop(&entry);
}

/* The one that was told was undone, and what took its place has expired: the table knows upon which one the next was put. */
TARN_TEST(subscribe, what_follows_an_expired_snapshot_is_known_to_stand_on_it)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 4; i++)
        commit_one(&s);
    struct tarn_position third = position_of(&s, 3, true), other = third, any = third;
    other.identity++;
    any.identity = 0;
    for (int64_t id = 1; id <= 3; id++)
        remove_snapshot(&s, id);
    for (int looked = 0; looked < 2; looked++) {
        expect_ok(tarn_service__check_position(t->op, s.table, &third));
        expect_ok(tarn_service__check_position(t->op, s.table, &any));
        expect_status(tarn_service__check_position(t->op, s.table, &other), TARN_SNAPSHOT_EXPIRED,
                      "snapshot 3 of table db.k has expired; the earliest snapshot is 4");
        look_away(&s);
    }
    rewrite_snapshot(&s, 4); /* by others, upon who knows what */
    expect_status(tarn_service__check_position(t->op, s.table, &third), TARN_SNAPSHOT_EXPIRED,
                  "snapshot 3");
    struct tarn_buf token = {0};
    struct tarn_position read;
    tarn_service__token_encode(
        &(struct tarn_position){.uuid = "0f6eb877-32f9-4ec5-97a1-08f2e270c7c4",
                                .branch = "b",
                                .snapshot_id = 7,
                                .identity = 9,
                                .behind = true},
        &token);
    expect_ok(tarn_service__token_decode(tarn_buf_slice(&token), &read));
    expect_true(read.snapshot_id == 7 && read.identity == 9 && read.behind);
    expect_str(read.branch, "b");
    tarn_buf_drop(&token);
}

static void commit_file(struct subs *s, const char *name, int64_t id)
{
    struct tarn_manifest_entry entry;
    struct tarn_commit_result result;
    expect_ok(
        tarn_manifest_entry_unpack(fixture_file(&s->f, "k", name, 1, 10), s->f.t->arena, &entry));
    struct tarn_commit commit = {.user = S("u"),
                                 .identifier = ++s->identifier,
                                 .watermark = TARN_SNAPSHOT_NONE,
                                 .base_snapshot_id = TARN_SNAPSHOT_NONE,
                                 .kind = TARN_COMMIT_APPEND,
                                 .append = {.entries = &entry, .count = 1}};
    expect_ok(tarn_table_commit(s->f.t->op, s->table, &commit, &result));
    expect_int(result.append_snapshot_id, id);
}

/* Snapshot 3 becomes one that stands on 1, with what 2 brings: as a put that came late, upon a history that was rewritten. */
static void put_late(struct subs *s)
{
    struct tarn_test *t = s->f.t;
    struct tarn_buf json = {0}, next = {0};
    struct tarn_snapshot snapshot;
    expect_ok(tarn_store_get(s->f.inner, t->op, "db.db/k/snapshot/snapshot-2", &json));
    expect_ok(tarn_snapshot_decode(tarn_buf_slice(&json), t->arena, &snapshot));
    snapshot.id = 3;
    snapshot.uuid = S("0f6eb877-32f9-4ec5-97a1-08f2e270c7c4");
    tarn_snapshot_encode(&snapshot, &next);
    expect_ok(
        tarn_store_put(s->f.inner, t->op, "db.db/k/snapshot/snapshot-3", tarn_buf_slice(&next)));
    tarn_buf_drop(&json);
    tarn_buf_drop(&next);
}

TARN_TEST(subscribe, a_history_that_begins_anew_is_an_explicit_end)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    commit_file(&s, "a", 1);
    commit_file(&s, "b", 2);
    struct stream *streams[3];
    for (int i = 0; i < 3; i++) {
        streams[i] = subscribe(&s, (struct tarn_subscribe_request){
                                       .from = TARN_FROM_EARLIEST,
                                       .changes = i > 0,
                                       .how = i == 2 ? TARN_CHANGES_DIFF : TARN_CHANGES_AUTO});
        expect_ids(streams[i], 1, 2);
    }
    struct tarn_slice second = token_of(t, streams[0], 1);
    struct tarn_buf token = {0};
    put_late(&s);
    for (int i = 0; i < 3; i++) {
        struct tarn_status *end = end_of(streams[i]);
        expect_str(tarn_status_get(end, "earliest_snapshot"), "3");
        tarn_buf_clear(&token);
        expect_ok(tarn_hex_decode(S(tarn_status_get(end, "earliest_token")), &token));
        expect_status(end, TARN_SNAPSHOT_EXPIRED, "history begins with it");
        expect_int(count_of(streams[i]), 2);
        leave(streams[i]);
    }
    struct stream *resumed =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_TOKEN, .token = second});
    expect_status(end_of(resumed), TARN_SNAPSHOT_EXPIRED, "history begins with it");
    leave(resumed);
    for (int changes = 0; changes < 2; changes++) {
        struct stream *anew = subscribe(
            &s, (struct tarn_subscribe_request){
                    .from = TARN_FROM_TOKEN, .token = tarn_buf_slice(&token), .changes = changes});
        expect_ids(anew, 3, 3);
        leave(anew);
    }
    tarn_buf_drop(&token);
}

/* The table knows the old snapshot's changes, the folder has another one: it is told when the table has looked. */
TARN_TEST(subscribe, changes_are_of_the_snapshot_that_is_told)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 4; i++)
        commit_one(&s);
    static const int hows[] = {TARN_CHANGES_AUTO, TARN_CHANGES_DIFF};
    struct tarn_position third = position_of(&s, 3, true);
    struct tarn_entry *entry;
    look_away(&s);
    rewrite_snapshot(&s, 4);
    for (int after = 0; after < 2; after++) {
        for (size_t i = 0; i < TARN_COUNT_OF(hows); i++) {
            for (int whole = 0; whole < 2; whole++) {
                const struct tarn_topic_spec spec = {
                    .changes = true, .how = hows[i], .where = "", .door = &door};
                expect_ok(
                    tarn_service__entry_make(t->op, s.table, &spec, &third, 0, whole, &entry));
                expect_true((entry != NULL) == after);
                tarn_service__entry_drop(&entry);
            }
        }
        s.f.env.foreign_check_ms = 0;
    }
}

/* A difference needs the snapshot before; without it there is none to be waited for. */
TARN_TEST(subscribe, a_difference_ends_where_the_snapshot_before_has_expired)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 4; i++)
        commit_one(&s);
    struct tarn_position third = position_of(&s, 3, true);
    const struct tarn_topic_spec spec = {
        .changes = true, .how = TARN_CHANGES_DIFF, .where = "", .door = &door};
    struct tarn_entry *entry;
    for (int64_t id = 1; id <= 3; id++)
        remove_snapshot(&s, id);
    s.f.env.foreign_check_ms = 0;
    expect_status(tarn_service__entry_make(t->op, s.table, &spec, &third, 0, false, &entry),
                  TARN_SNAPSHOT_EXPIRED, "snapshot 3 of table db.k has expired");
}

/* Who is refused by what the table saw last is refused by what is there. */
/* It may be long until the next one: whoever stands in what it left would wait. */
TARN_TEST(subscribe, what_an_expiry_left_that_was_cut_off_is_an_explicit_end)
{
    for (int64_t removed = 0; removed <= 3; removed += 3) {
        TARN_OWN(subs_fini) struct subs s;
        subs_init(&s, t, 30000);
        for (int i = 0; i < 6; i++)
            commit_one(&s);
        struct tarn_position second = position_of(&s, 2, true);
        const struct tarn_expire_request last_2 = {
            .keep_last = 2, .older_than_ms = TARN_EXPIRE_OPTION, .keep_from = INT64_MAX};
        struct tarn_expiry out;
        tarn_store_faulty_add(s.f.store, &(struct tarn_fault_rule){
                                             .call = "remove", .fault = TARN_FAULT_FAIL_BEFORE});
        expect_status(tarn_table_expire(t->op, s.table, &last_2, &out), TARN_IO_ERROR, "remove");
        if (removed > 0)
            remove_snapshot(&s, removed);
        for (int changes = removed == 0; changes < 2; changes++) {
            const struct tarn_topic_spec spec = {
                .changes = changes, .how = TARN_CHANGES_AUTO, .where = "", .door = &door};
            struct tarn_entry *entry;
            expect_status(
                tarn_service__entry_make(t->op, s.table, &spec, &second, 0, false, &entry),
                TARN_SNAPSHOT_EXPIRED, "snapshot 3 of table db.k has expired");
        }
    }
}

TARN_TEST(subscribe, begins_with_what_is_there_now)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 6; i++)
        commit_one(&s);
    look_away(&s);
    remove_snapshot(&s, 1);
    remove_snapshot(&s, 6);
    remove_snapshot(&s, 5);
    struct stream *earliest =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    expect_ids(earliest, 2, 4);
    struct stream *latest = subscribe(&s, (struct tarn_subscribe_request){0});
    struct stream *none = stream_new();
    struct tarn_subscribe_request fifth = {.from = TARN_FROM_SNAPSHOT, .snapshot_id = 6};
    expect_status(try_subscribe(&s, none, fifth), TARN_SNAPSHOT_NOT_FOUND, "the latest is 4");
    pthread_mutex_destroy(&none->lock);
    free(none);
    s.f.env.foreign_check_ms = 0;
    commit_one(&s);
    expect_ids(latest, 5, 5);
    expect_ids(earliest, 2, 5);
    leave(earliest);
    leave(latest);
}

TARN_TEST(changes, are_of_the_history_that_is_there)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 6; i++)
        commit_one(&s);
    struct tarn_scan scan;
    look_away(&s);
    remove_snapshot(&s, 1);
    expect_status(tarn_service_changes_begin(t->op, &s.f.service, fixture_ref("k"), 0,
                                             TARN_CHANGES_AUTO, NOW, S(""), &scan),
                  TARN_SNAPSHOT_EXPIRED, "snapshot 1 of table db.k has expired");
    rewrite_snapshot(&s, 6);
    expect_status(tarn_service_changes_begin(t->op, &s.f.service, fixture_ref("k"), 5,
                                             TARN_CHANGES_AUTO, NOW, S(""), &scan),
                  TARN_NO_WORKER, ""); /* it has looked again: nothing else is missing */
}

/* The last snapshot is replaced between two looks: same id, other bytes. */
TARN_TEST(subscribe, a_rewritten_snapshot_is_an_explicit_end)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 3; i++)
        commit_one(&s);
    struct stream *live =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    expect_ids(live, 1, 3);
    rewrite_snapshot(&s, 3);
    expect_status(end_of(live), TARN_SNAPSHOT_ROLLED_BACK, "snapshot 3");
    leave(live);
}

TARN_TEST(subscribe, a_gap_is_an_explicit_end_with_the_earliest_token)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    for (int i = 0; i < 6; i++)
        commit_one(&s);
    struct stream *all = subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    expect_ids(all, 1, 6);
    struct tarn_slice second = token_of(t, all, 1), third = token_of(t, all, 2);
    struct stream *slow = stream_new(); /* stands at snapshot 1 while it expires */
    slow->hold = true;
    expect_ok(try_subscribe(&s, slow, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST}));
    expect_true(waits_for(slow, 1));
    for (int64_t id = 1; id <= 3; id++)
        remove_snapshot(&s, id);
    usleep(150000); /* foreign_check */
    struct stream *none = stream_new();
    struct tarn_subscribe_request resume = {.from = TARN_FROM_TOKEN, .token = second};
    struct tarn_status *end = try_subscribe(&s, none, resume);
    expect_int(tarn_status_code(end), TARN_CODE_OUT_OF_RANGE);
    expect_str(tarn_status_get(end, "earliest_snapshot"), "4");
    struct tarn_buf token = {0};
    expect_ok(tarn_hex_decode(S(tarn_status_get(end, "earliest_token")), &token));
    expect_status(end, TARN_SNAPSHOT_EXPIRED, "snapshot 3");
    struct tarn_subscribe_request old = {.from = TARN_FROM_SNAPSHOT, .snapshot_id = 2};
    expect_status(try_subscribe(&s, none, old), TARN_SNAPSHOT_EXPIRED,
                  "the earliest snapshot is 4");
    struct tarn_subscribe_request long_ago = {.from = TARN_FROM_TIME, .time_ms = 1000};
    expect_status(try_subscribe(&s, none, long_ago), TARN_SNAPSHOT_EXPIRED, "since that time");
    pthread_mutex_destroy(&none->lock);
    free(none);

    /* nothing is missing behind 3: the next is the earliest */
    struct stream *rest =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_TOKEN, .token = third});
    expect_ids(rest, 4, 6);
    leave(rest);
    struct stream *anew =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_TOKEN,
                                                      .token = tarn_buf_slice(&token)});
    expect_ids(anew, 4, 6);
    leave(anew);
    tarn_buf_drop(&token);
    /* The one that stood at 1 takes it now. 2 and 3 may still be in the ring: else it must be told. */
    pthread_mutex_lock(&slow->lock);
    slow->hold = false;
    pthread_mutex_unlock(&slow->lock);
    tarn_subscriber_written(slow->subscriber);
    struct tarn_status *slow_end = TARN_OK;
    for (int i = 0; i < 2000 && slow_end == TARN_OK && count_of(slow) < 6; i++) {
        pthread_mutex_lock(&slow->lock);
        slow_end = tarn_move(slow->end);
        pthread_mutex_unlock(&slow->lock);
        usleep(1000);
    }
    for (int i = 0; i < count_of(slow); i++)
        expect_int(slow->told[i].id, i + 1);
    if (slow_end != TARN_OK)
        expect_status(slow_end, TARN_SNAPSHOT_EXPIRED, "");
    else
        expect_int(count_of(slow), 6);
    leave(slow);
    leave(all);
}

TARN_TEST(subscribe, who_stands_still_is_shed_and_holds_nobody_back)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 300);
    struct stream *slow = stream_new();
    slow->hold = true;
    expect_ok(try_subscribe(&s, slow, (struct tarn_subscribe_request){0}));
    struct stream *fast = subscribe(&s, (struct tarn_subscribe_request){0});
    for (int i = 0; i < 20; i++)
        commit_one(&s);
    expect_ids(fast, 1, 20);
    expect_int(count_of(slow), 1);
    expect_status(end_of(slow), TARN_SUBSCRIBER_SLOW, "db.k");
    expect_true(slow->stuck);
    struct stream *again =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_TOKEN,
                                                      .token = token_of(t, slow, 0)});
    expect_ids(again, 2, 20);
    leave(again);
    leave(slow);
    leave(fast);
}

TARN_TEST(subscribe, ends_when_the_table_is_dropped)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    commit_one(&s);
    struct stream *stream = subscribe(&s, (struct tarn_subscribe_request){0});
    expect_ok(tarn_service_drop_table(t->op, &s.f.service, fixture_ref("k"), false));
    expect_status(end_of(stream), TARN_TABLE_NOT_FOUND, "");
    leave(stream);
}

TARN_TEST(subscribe, no_more_than_the_limit)
{
    TARN_OWN(subs_fini) struct subs s;
    static struct stream *list[300];
    subs_init(&s, t, 30000);
    for (int i = 0; i < 300; i++)
        list[i] = subscribe(&s, (struct tarn_subscribe_request){0});
    struct stream *none = stream_new();
    expect_status(try_subscribe(&s, none, (struct tarn_subscribe_request){0}), TARN_BUSY, "300");
    pthread_mutex_destroy(&none->lock);
    free(none);
    commit_one(&s);
    for (int i = 0; i < 300; i++) {
        expect_true(waits_for(list[i], 1));
        leave(list[i]);
    }
}

struct committer {
    struct subs *s;
    const char *user;
    pthread_t thread;
    int64_t last;
};

static void *commit_many(void *arg)
{
    struct committer *c = arg;
    for (int i = 1; i <= 50; i++) {
        TARN_OWN(tarn_op_fini) struct tarn_op op;
        tarn_op_init(&op);
        op.principal = "tester";
        int64_t id = 0;
        struct tarn_status *status = commit_empty(&op, c->s->table, c->user, i, &id);
        if (status == TARN_OK)
            c->last = TARN_MAX(c->last, id);
        tarn_status_free(status);
    }
    return NULL;
}

/* Streams come, leave at any time, and go on with their last token: together they are told all, once. */
TARN_TEST(subscribe, complete_and_ordered_whatever_comes_and_goes)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    commit_one(&s);
    struct committer committers[3] = {{&s, "a", 0, 0}, {&s, "b", 0, 0}, {&s, "c", 0, 0}};
    struct stream *steady =
        subscribe(&s, (struct tarn_subscribe_request){.from = TARN_FROM_EARLIEST});
    for (int i = 0; i < 3; i++)
        pthread_create(&committers[i].thread, NULL, commit_many, &committers[i]);
    struct tarn_slice token = {0};
    int64_t next = 1;
    for (int round = 0; round < 40; round++) {
        struct tarn_subscribe_request request = {.from = TARN_FROM_EARLIEST,
                                                 .changes = tarn_test_random(t) % 2 == 0};
        if (token.size > 0) {
            request.from = TARN_FROM_TOKEN;
            request.token = token;
        }
        struct stream *stream = subscribe(&s, request);
        usleep((useconds_t)(tarn_test_random(t) % 20000));
        pthread_mutex_lock(&stream->lock);
        int count = stream->count;
        for (int i = 0; i < count; i++)
            expect_int(stream->told[i].id, next + i);
        pthread_mutex_unlock(&stream->lock);
        next += count;
        if (count > 0)
            token = token_of(t, stream, count - 1);
        leave(stream);
    }
    int64_t last = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(committers[i].thread, NULL);
        last = TARN_MAX(last, committers[i].last);
    }
    expect_ids(steady, 1, last);
    leave(steady);
}

/* What expiry asks: where the slowest one stands. */
TARN_TEST(subscribe, says_what_expiry_must_leave)
{
    TARN_OWN(subs_fini) struct subs s;
    struct tarn_subscriptions *hub;
    subs_init(&s, t, 30000);
    hub = s.f.service.subscriptions;
    for (int i = 0; i < 3; i++)
        commit_one(&s);
    expect_int(tarn_subscriptions_keep_from(hub, s.table), INT64_MAX);
    struct stream *fast = subscribe(&s, (struct tarn_subscribe_request){0});
    expect_int(tarn_subscriptions_keep_from(hub, s.table), 4);
    struct stream *slow = stream_new();
    slow->hold = true;
    expect_ok(try_subscribe(
        &s, slow, (struct tarn_subscribe_request){.from = TARN_FROM_SNAPSHOT, .snapshot_id = 2}));
    expect_true(waits_for(slow, 1));
    expect_int(tarn_subscriptions_keep_from(hub, s.table), 2);
    leave(slow);
    expect_int(tarn_subscriptions_keep_from(hub, s.table), 4);
    leave(fast);
}

/* A snapshot of many splits comes in several events: a token within it goes on with the next one. */
TARN_TEST(subscribe, a_token_within_a_snapshot_goes_on_there)
{
    enum { BUCKETS = 250 };
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    struct tarn_slice keys[] = {S("id")};
    struct tarn_pair options[] = {{S("bucket"), S("250")}};
    struct tarn_table_request wide = {
        .database = S("db"),
        .name = S("wide"),
        .columns_sql = S("id BIGINT NOT NULL"),
        .primary_keys = keys,
        .primary_key_count = 1,
        .options = options,
        .option_count = 1,
    };
    struct tarn_table_facts facts;
    expect_ok(tarn_service_create_table(t->op, &s.f.service, &wide, &facts));
    struct tarn_manifest_entry *entries = tarn_arena_calloc(t->arena, BUCKETS, sizeof *entries);
    for (int i = 0; i < BUCKETS; i++) {
        struct tarn_slice packed =
            fixture_file(&s.f, "wide", tarn_arena_printf(t->arena, "data-%d", i), i, i);
        expect_ok(tarn_manifest_entry_unpack(packed, t->arena, &entries[i]));
        entries[i].bucket = i;
        entries[i].total_buckets = BUCKETS;
    }
    struct tarn_commit commit = {
        .user = S("u"),
        .identifier = 1,
        .watermark = TARN_SNAPSHOT_NONE,
        .base_snapshot_id = TARN_SNAPSHOT_NONE,
        .kind = TARN_COMMIT_APPEND,
        .append.entries = entries,
        .append.count = BUCKETS,
    };
    struct tarn_commit_result result;
    TARN_OWN(tarn_table_drop_ref) struct tarn_table *table = NULL;
    expect_ok(tarn_catalog_table(t->op, s.f.service.catalog, S("db"), S("wide"), S(""), &table));
    expect_ok(tarn_table_commit(t->op, table, &commit, &result));
    for (int whole = 0; whole < 2; whole++) {
        struct tarn_subscribe_request request = {
            .table = fixture_ref("wide"), .changes = true, .how = TARN_CHANGES_AUTO};
        request.full_first = whole == 1;
        request.from = whole == 1 ? TARN_FROM_LATEST : TARN_FROM_EARLIEST;
        struct stream *all = stream_new();
        expect_ok(
            tarn_service_subscribe(t->op, &s.f.service, &request, &door, all, &all->subscriber));
        tarn_subscriber_start(all->subscriber);
        expect_true(waits_for(all, 3)); /* 100, 100 and 50 splits */
        usleep(20000);
        expect_int(count_of(all), 3);
        for (int i = 0; i < 3; i++) {
            struct stream *rest = stream_new();
            request.from = TARN_FROM_TOKEN;
            request.token = token_of(t, all, i);
            request.full_first = false;
            expect_ok(tarn_service_subscribe(t->op, &s.f.service, &request, &door, rest,
                                             &rest->subscriber));
            tarn_subscriber_start(rest->subscriber);
            if (i < 2)
                expect_true(waits_for(rest, 2 - i));
            usleep(20000);
            expect_int(count_of(rest), 2 - i);
            for (int n = 0; n < 2 - i; n++) /* the same tokens: the same places */
                expect_bytes(tarn_buf_slice(&rest->told[n].token), token_of(t, all, i + 1 + n));
            leave(rest);
        }
        /* asked otherwise, its places are others */
        request.token = token_of(t, all, 0);
        request.where = S("id > 3");
        struct stream *none = stream_new();
        expect_status(
            tarn_service_subscribe(t->op, &s.f.service, &request, &door, none, &none->subscriber),
            TARN_INVALID_ARGUMENT, "within a snapshot");
        pthread_mutex_destroy(&none->lock);
        free(none);
        leave(all);
    }
}

/* --- consumers --- */

static int64_t next_of(struct subs *s, const char *id)
{
    struct tarn_consumer *list;
    size_t count;
    expect_ok(
        tarn_service_list_consumers(s->f.t->op, &s->f.service, fixture_ref("k"), &list, &count));
    for (size_t i = 0; i < count; i++)
        if (tarn_slice_is(list[i].id, id))
            return list[i].next_snapshot;
    return 0;
}

TARN_TEST(consumers, are_paimons_files)
{
    TARN_OWN(subs_fini) struct subs s;
    subs_init(&s, t, 30000);
    struct tarn_op *op = t->op;
    struct tarn_consumer consumer;
    for (int i = 0; i < 5; i++)
        commit_one(&s);
    struct tarn_table_ref ref = fixture_ref("k");
    expect_ok(tarn_service_set_consumer(op, &s.f.service, ref, S("billing"), 3, &consumer));
    expect_int(consumer.next_snapshot, 3);
    struct tarn_buf text = {0};
    expect_ok(tarn_store_get(s.f.inner, op, "db.db/k/consumer/consumer-billing", &text));
    expect_slice(tarn_buf_slice(&text), "{\n  \"nextSnapshot\" : 3\n}"); /* as Jackson prints it */
    tarn_buf_drop(&text);
    expect_ok(tarn_store_put(s.f.inner, op, "db.db/k/consumer/consumer-flink",
                             S("{\"nextSnapshot\":2}")));
    expect_ok(tarn_store_put(s.f.inner, op, "db.db/k/consumer/consumer-broken", S("{")));
    expect_int(next_of(&s, "billing"), 3);
    expect_int(next_of(&s, "flink"), 2);
    expect_int(next_of(&s, "broken"), 0);
    struct stream *stream = subscribe(
        &s, (struct tarn_subscribe_request){.from = TARN_FROM_CONSUMER, .consumer = S("flink")});
    expect_ids(stream, 2, 5);
    expect_int(next_of(&s, "flink"), 2); /* read, not moved */
    leave(stream);
    /* a new one begins at the latest, and is kept from there on */
    stream =
        subscribe(&s, (struct tarn_subscribe_request){
                          .from = TARN_FROM_CONSUMER, .consumer = S("n"), .keep_consumer = S("n")});
    expect_int(next_of(&s, "n"), 6);
    commit_one(&s);
    expect_ids(stream, 6, 6);
    expect_int(next_of(&s, "n"), 6); /* what was sent is not yet dealt with */
    struct tarn_slice token = token_of(t, stream, 0);
    leave(stream);
    stream = subscribe(&s, (struct tarn_subscribe_request){
                               .from = TARN_FROM_TOKEN, .token = token, .keep_consumer = S("n")});
    expect_int(next_of(&s, "n"), 7);
    leave(stream);
    expect_status(tarn_service_set_consumer(op, &s.f.service, ref, S("a"), 8, &consumer),
                  TARN_INVALID_ARGUMENT, "goes up to 6");
    expect_status(tarn_service_set_consumer(op, &s.f.service, ref, S("a/b"), 3, &consumer),
                  TARN_INVALID_ARGUMENT, "slashes");
    expect_status(tarn_service_set_consumer(op, &s.f.service, ref, S(""), 3, &consumer),
                  TARN_INVALID_ARGUMENT, "no id");
    expect_ok(tarn_service_drop_consumer(op, &s.f.service, ref, S("flink")));
    expect_ok(tarn_service_drop_consumer(op, &s.f.service, ref, S("broken")));
    expect_status(tarn_service_drop_consumer(op, &s.f.service, ref, S("flink")),
                  TARN_CONSUMER_NOT_FOUND, "flink");
    expect_false(fixture_has(&s.f, "db.db/k/consumer/consumer-broken"));
}
