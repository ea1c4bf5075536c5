#include "commits.h"

#include <unistd.h>

#include <stdio.h>
#include <time.h>

#include "table/internal.h"

void crowd_init(struct crowd *c, struct fixture *f)
{
    memset(c, 0, sizeof *c);
    c->f = f;
}

void crowd_clear(struct crowd *c)
{
    int plugs = c->plug_count;
    crowd_init(c, c->f);
    c->plug_count = plugs;
}

static struct call *add_call(struct crowd *c, const char *user, int64_t identifier)
{
    struct call *call = &c->calls[c->count++];
    expect_true(c->count <= CROWD_MAX);
    call->f = c->f;
    call->commit = (struct tarn_commit){.user = tarn_slice_str(user),
                                        .identifier = identifier,
                                        .watermark = TARN_SNAPSHOT_NONE,
                                        .base_snapshot_id = TARN_SNAPSHOT_NONE};
    return call;
}

static struct tarn_manifest_entry *keep_entry(struct crowd *c, struct tarn_manifest_entry e)
{
    struct tarn_manifest_entry *kept = tarn_arena_calloc(c->f->t->arena, 2, sizeof *kept);
    *kept = e;
    return kept;
}

struct tarn_commit *crowd_append(struct crowd *c, const char *user, int64_t identifier,
                                 const char *file, int32_t bucket)
{
    struct call *call = add_call(c, user, identifier);
    call->commit.append.entries =
        keep_entry(c, fixture_entry(c->f, TARN_ENTRY_ADD, file, bucket, 0, 1, 2, 0));
    call->commit.append.count = 1;
    return &call->commit;
}

struct tarn_commit *crowd_compact(struct crowd *c, const char *user, const char *gone,
                                  const char *add, int32_t bucket, int64_t low, int64_t high)
{
    struct call *call = add_call(c, user, TARN_COMMIT_IDENTIFIER_BATCH);
    struct tarn_manifest_entry *entries =
        keep_entry(c, fixture_entry(c->f, TARN_ENTRY_ADD, add, bucket, 5, low, high, 0));
    call->commit.compact = (struct tarn_commit_part){.entries = entries, .count = 1};
    if (gone != NULL) {
        entries[1] = fixture_entry(c->f, TARN_ENTRY_DELETE, gone, bucket, 0, 1, 2, 0);
        call->commit.compact.count = 2;
    }
    return &call->commit;
}

static void *run_call(void *arg)
{
    struct call *call = arg;
    tarn_op_init(&call->op);
    struct tarn_status *s =
        tarn_table_commit(&call->op, call->f->table, &call->commit, &call->result);
    call->reason = tarn_status_reason(s);
    snprintf(call->message, sizeof call->message, "%s", tarn_status_message(s));
    tarn_status_free(s);
    tarn_op_fini(&call->op);
    call->done = true;
    return NULL;
}

static void hold_up(void *arg)
{
    tarn_gate_wait(arg, NULL);
}

static size_t queue_count(struct tarn_table *table)
{
    pthread_mutex_lock(&table->lock);
    size_t count = table->queue_count;
    pthread_mutex_unlock(&table->lock);
    return count;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

void crowd_start(struct crowd *c)
{
    struct tarn_table *table = c->f->table;
    if (!c->no_plug) {
        struct tarn_manifest_entry plug = fixture_entry(
            c->f, TARN_ENTRY_ADD, tarn_arena_printf(c->f->t->arena, "plug%d", ++c->plug_count), 0,
            0, 1, 2, 0);
        int64_t id;
        expect_ok(fixture_append(c->f, "plug", TARN_COMMIT_IDENTIFIER_BATCH, &plug, 1, &id));
    }
    c->f->gate = tarn_gate_new();
    tarn_mailbox_post(table->mailbox, hold_up, c->f->gate);
    for (int i = 0; i < c->count; i++) {
        size_t before = queue_count(table);
        pthread_create(&c->calls[i].thread, NULL, run_call, &c->calls[i]);
        while (queue_count(table) == before && !c->calls[i].done)
            nap();
    }
}

void crowd_finish(struct crowd *c)
{
    tarn_gate_open(c->f->gate);
    for (int i = 0; i < c->count; i++)
        pthread_join(c->calls[i].thread, NULL);
    tarn_mailbox_call(c->f->table->mailbox, (tarn_job_fn)nap, NULL); /* hold_up is over */
    tarn_gate_free(c->f->gate);
    c->f->gate = NULL;
}

static void *run_hurry(void *arg)
{
    struct hurry *hurry = arg;
    for (int64_t now_ms = tarn_clock_wall_ms(); !atomic_load(&hurry->stop); now_ms += 1000) {
        tarn_clock_fake(now_ms);
        usleep(2000);
    }
    return NULL;
}

void hurry_start(struct hurry *hurry)
{
    atomic_init(&hurry->stop, false);
    pthread_create(&hurry->thread, NULL, run_hurry, hurry);
}

void hurry_stop(struct hurry *hurry)
{
    atomic_store(&hurry->stop, true);
    pthread_join(hurry->thread, NULL);
    tarn_clock_fake(-1);
}

void crowd_outlast(struct crowd *c)
{
    struct hurry hurry;
    hurry_start(&hurry);
    crowd_start(c);
    crowd_finish(c);
    hurry_stop(&hurry);
}

void crowd_run(struct crowd *c)
{
    crowd_start(c);
    crowd_finish(c);
}

void crowd_rush(struct crowd *c)
{
    for (int i = 0; i < c->count; i++)
        pthread_create(&c->calls[i].thread, NULL, run_call, &c->calls[i]);
    for (int i = 0; i < c->count; i++)
        pthread_join(c->calls[i].thread, NULL);
}

struct tarn_snapshot crowd_snapshot(struct crowd *c, int64_t id)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_test *t = c->f->t;
    struct tarn_snapshot s;
    expect_ok(tarn_store_get(c->f->inner, t->op,
                             tarn_arena_printf(t->arena, "db.db/t/snapshot/snapshot-%" PRId64, id),
                             &json));
    expect_ok(tarn_snapshot_decode(tarn_arena_copy(t->arena, tarn_buf_slice(&json)), t->arena, &s));
    return s;
}

const char *crowd_manifest(struct crowd *c, struct tarn_slice name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf bytes = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    struct tarn_test *t = c->f->t;
    struct tarn_manifest_entry *entries;
    size_t count;
    expect_ok(tarn_store_get(
        c->f->inner, t->op,
        tarn_arena_printf(t->arena, "db.db/t/manifest/%.*s", TARN_SLICE_ARG(name)), &bytes));
    expect_ok(tarn_manifest_decode(tarn_arena_copy(t->arena, tarn_buf_slice(&bytes)), t->arena,
                                   &entries, &count));
    for (size_t i = 0; i < count; i++)
        tarn_buf_printf(&text, "%s%s%.*s", i == 0 ? "" : " ",
                        entries[i].kind == TARN_ENTRY_ADD ? "" : "-",
                        TARN_SLICE_ARG(entries[i].file.name));
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

struct tarn_commit_fate crowd_fate(struct crowd *c, const char *user, int64_t identifier,
                                   uint64_t content)
{
    struct tarn_commit_fate fate;
    expect_ok(tarn_table_find_commit(c->f->t->op, c->f->table, tarn_slice_str(user), identifier,
                                     content, TARN_SNAPSHOT_NONE, &fate));
    return fate;
}

static void *ask(void *arg)
{
    struct asker *asker = arg;
    struct tarn_op op;
    tarn_op_init(&op);
    struct tarn_status *s =
        tarn_table_find_commit(&op, asker->f->table, tarn_slice_str(asker->user), asker->identifier,
                               0, TARN_SNAPSHOT_NONE, &asker->fate);
    asker->reason = tarn_status_reason(s);
    tarn_status_free(s);
    tarn_op_fini(&op);
    return NULL;
}

void asker_start(struct asker *asker, struct fixture *f, const char *user, int64_t identifier)
{
    *asker = (struct asker){.f = f, .user = user, .identifier = identifier};
    pthread_create(&asker->thread, NULL, ask, asker);
}

struct tarn_commit_fate asker_finish(struct asker *asker)
{
    pthread_join(asker->thread, NULL);
    expect_int(asker->reason, TARN_NO_REASON);
    return asker->fate;
}

size_t crowd_manifest_count(struct crowd *c)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(
        tarn_store_list(c->f->inner, c->f->t->op, "db.db/t/manifest", true, &objects, &count));
    return count;
}
