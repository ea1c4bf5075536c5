/*
 * The mirror: what is in the catalog gets into the metastore and out of it again, what is changed there is repaired, what others
 * made there is let alone, and a metastore that behaves badly costs nothing but time.
 */
#include "fixture.h"

#include <unistd.h>

#define NEVER_MS ((int64_t)1 << 40)

static bool is_state(struct house *h, const char *state)
{
    return strcmp(info_of(h).state, state) == 0;
}

static struct tarn_hms__table *there(struct house *h, const char *name)
{
    return fake_table(&h->fake, h->t, name);
}

TARN_TEST(mirror, pushes_what_is_there_and_what_comes)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    make_table(&h, "db", "before", "id INT, v STRING COMMENT 'x'");
    start_mirror(&h, NEVER_MS, 30000);
    WAIT_UNTIL(there(&h, "db.before") != NULL);
    make_table(&h, "db", "later", "id INT");
    WAIT_UNTIL(there(&h, "db.later") != NULL);
    struct tarn_hms__table *table = there(&h, "db.before");
    expect_slice(table->kind, "EXTERNAL_TABLE");
    expect_slice(table->owner, "keeper");
    expect_int(table->column_count, 2);
    expect_slice(table->columns[1].comment, "x");
    drop_table(&h, "db", "before");
    WAIT_UNTIL(there(&h, "db.before") == NULL);
    int64_t dropped;
    expect_ok(tarn_database_drop(t->op, h.catalog, S("db"), true, &dropped));
    WAIT_UNTIL(!fake_has_database(&h.fake, "db"));
    expect_null(there(&h, "db.later"));
}

TARN_TEST(mirror, removes_what_was_dropped_while_it_was_away)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    make_table(&h, "db", "stays", "id INT");
    make_table(&h, "db", "goes", "id INT");
    start_mirror(&h, NEVER_MS, 30000);
    WAIT_UNTIL(there(&h, "db.goes") != NULL && there(&h, "db.stays") != NULL);
    stop_mirror(&h);
    drop_table(&h, "db", "goes");
    int64_t changes = fake_changes(&h.fake);
    start_mirror(&h, NEVER_MS, 30000);
    WAIT_UNTIL(is_state(&h, "in step"));
    expect_null(there(&h, "db.goes"));
    expect_not_null(there(&h, "db.stays"));
    expect_int(fake_changes(&h.fake), changes + 1); /* what was right is left alone */
}

TARN_TEST(mirror, repairs_what_somebody_changed)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "db");
    make_table(&h, "db", "a", "id INT");
    make_table(&h, "db", "b", "id INT");
    start_mirror(&h, 100, 30000);
    WAIT_UNTIL(there(&h, "db.a") != NULL && there(&h, "db.b") != NULL);
    struct tarn_slice place = there(&h, "db.a")->location;
    fake_set_location(&h.fake, "db.a", "file:/elsewhere");
    fake_drop(&h.fake, "db.b");
    WAIT_UNTIL(there(&h, "db.b") != NULL && tarn_slice_equal(there(&h, "db.a")->location, place));
}

TARN_TEST(mirror, leaves_alone_what_others_made)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    fake_add_table(&h.fake, "db", "taken");
    fake_add_table(&h.fake, "db", "other");
    fake_add_table(&h.fake, "theirs", "t");
    make_database(&h, "db");
    make_table(&h, "db", "taken", "id INT");
    make_table(&h, "db", "free", "id INT");
    start_mirror(&h, 100, 30000);
    WAIT_UNTIL(is_state(&h, "in step"));
    WAIT_UNTIL(info_of(&h).refused_count == 1);
    expect_str(info_of(&h).problems[0].table, "db.taken");
    expect_contains(info_of(&h).problems[0].problem, "didn't make");
    expect_not_null(there(&h, "db.free"));
    int64_t dropped;
    expect_ok(tarn_database_drop(t->op, h.catalog, S("db"), true, &dropped));
    WAIT_UNTIL(there(&h, "db.free") == NULL);
    expect_slice(there(&h, "db.taken")->kind, "x");
    expect_not_null(there(&h, "db.other"));
    expect_not_null(there(&h, "theirs.t"));
    expect_true(fake_has_database(&h.fake, "db"));
}

TARN_TEST(mirror, tells_what_hive_cant_have)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    make_database(&h, "Big");
    make_table(&h, "Big", "t", "id INT");
    make_database(&h, "db");
    make_table(&h, "db", "twins", "a INT, A INT");
    start_mirror(&h, NEVER_MS, 30000);
    WAIT_UNTIL(info_of(&h).refused_count == 2 && is_state(&h, "in step"));
    expect_str(info_of(&h).problems[0].table, "Big");
    expect_str(info_of(&h).problems[1].table, "db.twins");
    expect_false(fake_has_database(&h.fake, "Big"));
    expect_null(there(&h, "db.twins"));
    expect_int(info_of(&h).table_count, 0);
}

TARN_TEST(mirror, gives_a_refused_table_again_at_the_next_check)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    atomic_store(&h.fake.manner, FAKE_REFUSES);
    make_database(&h, "db");
    start_mirror(&h, 100, 30000);
    WAIT_UNTIL(info_of(&h).refused_count == 1);
    expect_contains(info_of(&h).problems[0].problem, "not today");
    atomic_store(&h.fake.manner, FAKE_GOOD);
    make_table(&h, "db", "t", "id INT");
    WAIT_UNTIL(there(&h, "db.t") != NULL && info_of(&h).refused_count == 0);
}

/* With each way of behaving badly: it is told, nothing hangs, and once it behaves all is there. */
static void misbehave(struct tarn_test *t, enum fake_manner manner, const char *told)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    atomic_store(&h.fake.manner, manner);
    make_database(&h, "db");
    make_table(&h, "db", "t", "id INT");
    start_mirror(&h, NEVER_MS, manner == FAKE_SILENT ? 200 : 30000);
    WAIT_UNTIL(is_state(&h, "down"));
    expect_contains(info_of(&h).failure, told);
    expect_null(there(&h, "db.t"));
    make_table(&h, "db", "u", "id INT"); /* nobody waits for it */
    atomic_store(&h.fake.manner, FAKE_GOOD);
    WAIT_UNTIL(there(&h, "db.t") != NULL && there(&h, "db.u") != NULL);
    WAIT_UNTIL(is_state(&h, "in step"));
}

TARN_TEST(mirror, survives_silence)
{
    misbehave(t, FAKE_SILENT, "in time");
}

TARN_TEST(mirror, survives_hanging_up)
{
    misbehave(t, FAKE_CLOSES, "ends in the middle");
}

TARN_TEST(mirror, survives_garbage)
{
    misbehave(t, FAKE_GARBAGE, "48545450"); /* "HTTP" */
}

TARN_TEST(mirror, survives_half_answers)
{
    misbehave(t, FAKE_HALF, "ends in the middle");
}

TARN_TEST(mirror, survives_deep_answers)
{
    misbehave(t, FAKE_DEEP, "nested deeper");
}

TARN_TEST(mirror, ends_while_it_waits_for_an_answer)
{
    TARN_OWN(house_fini) struct house h;
    house_init(&h, t);
    atomic_store(&h.fake.manner, FAKE_SILENT);
    start_mirror(&h, NEVER_MS, NEVER_MS);
    WAIT_UNTIL(is_state(&h, "starting"));
    stop_mirror(&h); /* hangs where that doesn't end the wait */
}

TARN_TEST(mirror, checks_the_uri)
{
    static const char *const bad[] = {"",
                                      "localhost:9083",
                                      "thrift://",
                                      "thrift://host",
                                      "thrift://host:0",
                                      "thrift://:9083",
                                      "thrift://host:99999",
                                      "thrift://a:1,b:2",
                                      "thrift://a:1/x",
                                      "http://a:1"};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_status(tarn_hms_check_uri(bad[i]), TARN_CONFIG_INVALID, "thrift://HOST:PORT");
    expect_ok(tarn_hms_check_uri("thrift://a:1, thrift://[::1]:9083"));
}
