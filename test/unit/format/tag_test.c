/*
 * Tags: Java's are read, ours say what Java's say, and a damaged one names its member.
 */
#include "test.h"

#include "format/tag.h"

#include <stdlib.h>
#include <time.h>

#define NONE TARN_SNAPSHOT_NONE
#define S(text) tarn_slice_str(text)

/* A snapshot's JSON with more members behind. */
static struct tarn_slice with(struct tarn_test *t, const char *members)
{
    return S(tarn_arena_printf(
        t->arena,
        "{\"version\": 3, \"id\": 2, \"schemaId\": 0, \"baseManifestList\": \"b\", "
        "\"deltaManifestList\": \"d\", \"commitUser\": \"u\", \"commitIdentifier\": 2, "
        "\"commitKind\": \"APPEND\", \"timeMillis\": 1796026733183, \"future\": [1, {\"a\": "
        "null}]%s\n}\n",
        members));
}

static void use_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

TARN_TEST(tag, reads_java)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_tag tag = {0};
    tarn_test_golden("snapshot/java-tag-retained.json", &json);
    use_zone("UTC");
    expect_ok(tarn_tag_decode(tarn_buf_slice(&json), t->arena, &tag));
    expect_int(tag.snapshot.id, 2);
    expect_int(tag.retained_ms, 90000);
    expect_int(tag.create_time_ms, 1796026734021); /* [ 2026, 11, 30, 8, 18, 54, 21895010 ] */
    use_zone("<+02>-2");                           /* it is a local time */
    expect_ok(tarn_tag_decode(tarn_buf_slice(&json), t->arena, &tag));
    expect_int(tag.create_time_ms, 1796026734021 - 2 * 3600000);
    use_zone("UTC");
}

/* Java leaves out seconds and nanoseconds that are 0; a tag without an end has neither member. */
TARN_TEST(tag, reads_what_java_leaves_out)
{
    static const struct {
        const char *members;
        int64_t made_ms, kept_ms;
    } cases[] = {
        {"", NONE, NONE},
        {", \"tagCreateTime\": null, \"tagTimeRetained\": null", NONE, NONE},
        {", \"tagCreateTime\" : [ 2026, 11, 30, 8, 18 ]", 1796026680000, NONE},
        {", \"tagCreateTime\" : [ 2026, 11, 30, 8, 18, 1 ], \"tagTimeRetained\" : 0.25",
         1796026681000, 250},
        {", \"tagTimeRetained\" : 129600.000000000", NONE, 129600000},
        {", \"tagTimeRetained\" : 60", NONE, 60000},
    };
    use_zone("UTC");
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        struct tarn_tag tag = {0};
        expect_ok(tarn_tag_decode(with(t, cases[i].members), t->arena, &tag));
        expect_int(tag.create_time_ms, cases[i].made_ms);
        expect_int(tag.retained_ms, cases[i].kept_ms);
    }
}

TARN_TEST(tag, says_what_is_wrong)
{
    static const struct {
        const char *members, *says;
    } bad[] = {
        {", \"tagCreateTime\": 5", "tagCreateTime"},
        {", \"tagCreateTime\": [2026, 11, 30, 8]", "5 to 7 numbers"},
        {", \"tagCreateTime\": [2026, 13, 30, 8, 18]", "tagCreateTime"},
        {", \"tagCreateTime\": [2026, 11, 30, 8, 18, 1, 1000000000]", "tagCreateTime"},
        {", \"tagCreateTime\": [2026, 11, 30, 8, \"18\"]", "tagCreateTime"},
        {", \"tagCreateTime\": [2026, 11, 30, 8, 18, 1, 1, 1]", "5 to 7 numbers"},
        {", \"tagTimeRetained\": \"PT24H\"", "tagTimeRetained"},
        {", \"tagTimeRetained\": -1", "tagTimeRetained"},
        {", \"tagTimeRetained\": 1e300", "tagTimeRetained"},
        {", \"timeMillis\": \"x\"", "timeMillis"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_tag tag = {0};
        expect_status(tarn_tag_decode(with(t, bad[i].members), t->arena, &tag),
                      TARN_SNAPSHOT_MALFORMED, bad[i].says);
    }
}

/* What it was made of comes back, members that nobody here knows among it. */
TARN_TEST(tag, keeps_the_snapshot_as_it_is)
{
    static const struct {
        int64_t made_ms, kept_ms;
    } cases[] = {{NONE, NONE}, {1796026733183, 90001}, {1796026680000, 1}, {1796026681000, 60000}};
    struct tarn_slice snapshot = with(t, "");
    for (size_t i = 0; i < TARN_COUNT_OF(cases); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0}, again = {0}, want = {0};
        TARN_OWN(tarn_json_drop) struct tarn_json *root = NULL;
        struct tarn_tag tag = {0};
        tarn_tag_encode(snapshot, cases[i].made_ms, cases[i].kept_ms, &json);
        expect_ok(tarn_tag_decode(tarn_buf_slice(&json), t->arena, &tag));
        expect_int(tag.create_time_ms, cases[i].made_ms);
        expect_int(tag.retained_ms, cases[i].kept_ms);
        expect_ok(tarn_tag_encode_snapshot(tarn_buf_slice(&json), &again));
        expect_ok(tarn_json_parse(snapshot, &root));
        tarn_json_print(root, 2, &want);
        expect_bytes(tarn_buf_slice(&again), tarn_buf_slice(&want));
    }
}

TARN_TEST(tag, names_are_names_of_files)
{
    char longest[TARN_TAG_NAME_SIZE_MAX + 2];
    memset(longest, 'x', sizeof longest);
    expect_ok(tarn_tag_check_name(tarn_slice_of(longest, TARN_TAG_NAME_SIZE_MAX)));
    static const char *const good[] = {"a", "2026-01-31 12", "20260131", "..", "%2F", "$é", "-"};
    for (size_t i = 0; i < TARN_COUNT_OF(good); i++)
        expect_ok(tarn_tag_check_name(S(good[i])));
    static const struct {
        const char *name;
        size_t size;
    } bad[] = {{"", 0}, {" ", 1}, {"a/b", 3}, {"a\\b", 3}, {"a\0b", 3}, {"a\nb", 3}, {"\xff", 1}};
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++)
        expect_status(tarn_tag_check_name(tarn_slice_of(bad[i].name, bad[i].size)),
                      TARN_NAME_INVALID, "tag");
    expect_status(tarn_tag_check_name(tarn_slice_of(longest, TARN_TAG_NAME_SIZE_MAX + 1)),
                  TARN_NAME_INVALID, "201 bytes");
}
