/*
 * Promise: adopting takes what others made and tells of each folder; what can't be taken hinders no other; only looking writes nothing; a table
 * that can't be compacted here stays its writers'.
 */
#include "fixture.h"

struct reports {
    struct fixture *f;
    const char *text; /* "db.t OUTCOME OWNER damages/limits", one a line */
    const char *notes;
};

static struct tarn_status *tell(void *arg, struct tarn_op *op TARN_UNUSED,
                                const struct tarn_adopt_report *r)
{
    static const char *const words[] = {"adopted", "known", "checked", "no_table", "failed"};
    struct reports *reports = arg;
    struct tarn_test *t = reports->f->t;
    reports->text = tarn_arena_printf(
        t->arena, "%s%.*s.%.*s %s %s %" PRId64 "/%" PRId64 "\n", reports->text,
        TARN_SLICE_ARG(r->database), TARN_SLICE_ARG(r->name), words[r->outcome],
        r->is_compacted ? "tarn" : "writers", r->found.damage_count, r->found.limit_count);
    for (size_t i = 0; i < r->found.finding_count; i++)
        reports->notes = tarn_arena_printf(t->arena, "%s%s: %s\n", reports->notes,
                                           r->found.findings[i].where, r->found.findings[i].what);
    if (r->failure != NULL)
        reports->notes =
            tarn_arena_printf(t->arena, "%s%s: %s\n", reports->notes, r->path, r->failure);
    return TARN_OK;
}

static struct tarn_status *adopt_with(struct fixture *f, struct tarn_adopt_request request,
                                      const char *target, struct reports *out)
{
    struct tarn_slice name = S(target);
    request.targets = &name;
    request.target_count = target == NULL ? 0 : 1;
    *out = (struct reports){.f = f, .text = "", .notes = ""};
    return tarn_service_adopt(f->t->op, &f->service, &request, tell, out);
}

static const char *adopt(struct fixture *f, struct tarn_adopt_request request, const char *target)
{
    struct reports reports;
    expect_ok(adopt_with(f, request, target, &reports));
    return reports.text;
}

static void put_schema(struct fixture *f, const char *folder, const char *more)
{
    const char *json = tarn_arena_printf(
        f->t->arena,
        "{\"version\":3,\"id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":\"BIGINT NOT NULL\"}],"
        "\"highestFieldId\":0,\"partitionKeys\":[],\"primaryKeys\":[\"id\"],"
        "\"options\":{\"bucket\":\"1\"%s},\"timeMillis\":1}",
        more);
    expect_ok(tarn_store_put(
        f->inner, f->t->op, tarn_arena_printf(f->t->arena, "%s/schema/schema-0", folder), S(json)));
}

static size_t object_count(struct fixture *f)
{
    struct tarn_object *objects;
    size_t count;
    expect_ok(tarn_store_list(f->inner, f->t->op, "", true, &objects, &count));
    return count;
}

#define CHECK ((struct tarn_adopt_request){.check_only = true})
#define TAKE ((struct tarn_adopt_request){.compaction = TARN_COMPACTION_TARN})
#define KEEP ((struct tarn_adopt_request){.check_only = false})

static void build(struct fixture *f, struct tarn_test *t)
{
    fixture_init(f, t);
    put_schema(f, "old.db/a", "");
    put_schema(f, "old.db/agg", ",\"record-level.expire-time\":\"1 d\"");
    put_schema(f, "old.db/bad", "");
    expect_ok(tarn_store_put(f->inner, t->op, "old.db/bad/schema/schema-1", S("{")));
    expect_ok(tarn_store_put(f->inner, t->op, "old.db/junk/file", S("x")));
    expect_ok(tarn_store_put(f->inner, t->op, "old.db/_tmp/file", S("x")));
    put_schema(f, "own.db/t", ",\"write-only\":\"false\"");
    put_schema(f, "old.db/w", ",\"write-only\":\"true\"");
}

TARN_TEST(adopt, looks_takes_and_takes_compaction)
{
    TARN_OWN(fixture_fini) struct fixture f;
    build(&f, t);
    size_t before = object_count(&f);
    expect_str(adopt(&f, CHECK, "old"), "old.a checked writers 0/0\n"
                                        "old.agg checked writers 0/1\n"
                                        "old.bad checked writers 1/0\n"
                                        "old.junk no_table writers 0/0\n"
                                        "old.w checked writers 0/0\n");
    expect_int(object_count(&f), before);
    expect_str(adopt(&f, KEEP, "old.a"), "old.a adopted writers 0/0\n");
    expect_int(object_count(&f), before + 1);
    expect_str(adopt(&f, TAKE, "old"), "old.a known tarn 0/0\n"
                                       "old.agg adopted writers 0/1\n"
                                       "old.bad failed writers 1/0\n"
                                       "old.junk no_table writers 0/0\n"
                                       "old.w adopted tarn 0/0\n");
    expect_true(fixture_has(&f, "old.db/w/.tarn-table"));
    expect_str(adopt(&f, KEEP, "old.db/a"), "old.a known tarn 0/0\n"); /* it stays so */
    struct tarn_adopt_request give = {.compaction = TARN_COMPACTION_WRITERS};
    expect_str(adopt(&f, give, "old.a"), "old.a known writers 0/0\n");
}

TARN_TEST(adopt, says_what_becomes_of_compaction)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct reports reports;
    build(&f, t);
    expect_ok(adopt_with(&f, KEEP, "old.w", &reports));
    expect_true(strstr(reports.notes, "write-only is set, so that its writers don't compact") !=
                NULL);
    expect_ok(adopt_with(&f, TAKE, "old.w", &reports));
    expect_str(reports.notes, "");
    expect_ok(adopt_with(&f, TAKE, "old.a", &reports));
    expect_true(strstr(reports.notes, "its writers compact, too") != NULL);
    expect_ok(adopt_with(&f, TAKE, "own.t", &reports));
    expect_true(strstr(reports.notes, "leaves it to its writers all the same") != NULL);
    expect_ok(adopt_with(&f, TAKE, "old.agg", &reports));
    expect_true(strstr(reports.notes, "its compaction stays its writers'") != NULL);
    expect_true(strstr(reports.notes, "record-level.expire-time = 1 d") != NULL);
}

TARN_TEST(adopt, all_is_every_database)
{
    TARN_OWN(fixture_fini) struct fixture f;
    build(&f, t);
    fixture_table(&f, "mine", "id BIGINT NOT NULL", "id");
    put_schema(&f, "x.y.db/dots", "");
    const char *all = adopt(&f, KEEP, NULL);
    expect_true(strstr(all, "db.mine known tarn 0/0\n") != NULL);
    expect_true(strstr(all, "old.a adopted writers 0/0\n") != NULL);
    expect_true(strstr(all, "x.y.dots adopted writers 0/0\n") != NULL);
    expect_str(adopt(&f, KEEP, "x.y"), "x.y.dots known writers 0/0\n");
}

TARN_TEST(adopt, a_wrong_target_is_told_before_anything_is_done)
{
    TARN_OWN(fixture_fini) struct fixture f;
    struct reports reports;
    build(&f, t);
    struct tarn_slice targets[] = {S("old"), S("")};
    const struct {
        const char *target;
        enum tarn_reason reason;
        const char *part;
    } wrong[] = {{"none", TARN_DATABASE_NOT_FOUND, "none"},
                 {"old.none", TARN_TABLE_NOT_FOUND, "no folder none"},
                 {"file:///elsewhere/old.db/a", TARN_PATH_INVALID, "outside the warehouse"},
                 {"old/a", TARN_PATH_INVALID, "no place"},
                 {"", TARN_INVALID_ARGUMENT, "empty"},
                 {"\xff", TARN_NAME_INVALID, "UTF-8"}};
    for (size_t i = 0; i < TARN_COUNT_OF(wrong); i++) {
        targets[1] = S(wrong[i].target);
        reports = (struct reports){.f = &f, .text = "", .notes = ""};
        struct tarn_adopt_request request = {.targets = targets, .target_count = 2};
        expect_status(tarn_service_adopt(t->op, &f.service, &request, tell, &reports),
                      wrong[i].reason, wrong[i].part);
        expect_str(reports.text, "");
    }
    expect_false(fixture_has(&f, "old.db/a/.tarn-table"));
}
