/*
 * Promise: who waits for a compaction is told the truth: where the table was dropped meanwhile, by us or by
 * others, nothing was compacted. A worker that polls speaks up at least twice a lease.
 */
#include "fixture.h"

static void load(struct fixture *f, const char *name, int64_t low)
{
    struct tarn_ingest ingest;
    int64_t snapshot;
    bool repeated;
    expect_ok(tarn_service_ingest_begin(f->t->op, &f->service, fixture_ref("k"), TARN_LOAD_AUTO,
                                        S(""), TARN_SNAPSHOT_NONE, &ingest));
    struct tarn_slice file = fixture_file(f, "k", name, low, low + 2);
    expect_ok(fixture_commit(f, &ingest, &file, 1, &snapshot, &repeated));
    tarn_service_ingest_end(&f->service, &ingest, false);
}

/* Table k of two files; the id of a worker. */
static const char *setup(struct fixture *f, struct tarn_test *t)
{
    fixture_init(f, t);
    fixture_table(f, "k", "id BIGINT NOT NULL, v BIGINT", "id");
    const char *worker = fixture_worker(f, "127.0.0.1:1");
    load(f, "data-a", 1);
    load(f, "data-b", 2);
    return worker;
}

struct meanwhile {
    struct fixture *f;
    const char *worker;
    void (*drop)(struct fixture *f);
};

static void drop_here(struct fixture *f)
{
    expect_ok(tarn_service_drop_table(f->t->op, &f->service, fixture_ref("k"), false));
}

static void drop_by_others(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->inner, f->t->op, "db.db/k", true, &objects, &count));
    for (size_t i = 0; i < count; i++)
        expect_ok(
            tarn_store_remove(f->inner, f->t->op, tarn_arena_str(f->t->arena, objects[i].key)));
}

/* Once the task is queued, the table goes and a worker asks for the task. */
static struct tarn_status *tell(void *arg, struct tarn_op *op,
                                const struct tarn_compact_progress *p)
{
    struct meanwhile *m = arg;
    if (p->picks == NULL)
        return TARN_OK;
    struct tarn_work *work;
    size_t count;
    expect_int(p->total, 1);
    m->drop(m->f);
    expect_ok(tarn_service_poll(op, &m->f->service, m->worker, 1, 0, &work, &count));
    expect_int(count, 0);
    return TARN_OK;
}

static void compact_while(struct tarn_test *t, void (*drop)(struct fixture *f))
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct meanwhile m = {&f, setup(&f, t), drop};
    struct tarn_compact_request request = {.table = fixture_ref("k"), .full = true, .wait = true};
    int64_t begun = tarn_clock_mono_ms();
    expect_status(tarn_service_compact(t->op, &f.service, &request, tell, &m), TARN_TABLE_NOT_FOUND,
                  "no longer there");
    expect_true(tarn_clock_mono_ms() - begun < 4000); /* not tried again and again */
}

TARN_TEST(compact, of_a_table_that_is_dropped_meanwhile_fails)
{
    compact_while(t, drop_here);
}

TARN_TEST(compact, of_a_table_that_others_remove_meanwhile_fails)
{
    compact_while(t, drop_by_others);
}

TARN_TEST(poll, is_answered_before_the_lease_is_over)
{
    TARN_OWN(fixture_fini) struct fixture f;
    const char *worker = setup(&f, t);
    struct tarn_work *work;
    size_t count;
    f.service.lease_ms = 1000;
    int64_t begun = tarn_clock_mono_ms();
    expect_ok(tarn_service_poll(t->op, &f.service, worker, 1, 20000, &work, &count));
    int64_t took = tarn_clock_mono_ms() - begun;
    expect_true(took >= 400 && took < 5000);
}
