/*
 * Snapshots: Java's and pypaimon's are read, what we write is what Java 2.0.0 would have written, and a
 * damaged one names its member.
 */
#include "test.h"

#include "format/snapshot.h"

static struct tarn_snapshot golden(struct tarn_test *t, const char *name)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0};
    struct tarn_snapshot s = {0};
    tarn_test_golden(name, &json);
    expect_ok(tarn_snapshot_decode(tarn_buf_slice(&json), t->arena, &s));
    return s;
}

TARN_TEST(snapshot, reads_java)
{
    struct tarn_snapshot s = golden(t, "snapshot/java-append.json");
    expect_int(s.version, 3);
    expect_int(s.id, 1);
    expect_int(s.schema_id, 0);
    expect_int(s.base_list_size, 1006);
    expect_int(s.commit_identifier, TARN_COMMIT_IDENTIFIER_BATCH);
    expect_int(s.kind, TARN_COMMIT_APPEND);
    expect_int(s.total_record_count, 5);
    expect_int(s.changelog_record_count, TARN_SNAPSHOT_NONE);
    expect_int(s.watermark, TARN_SNAPSHOT_NONE);
    expect_int(s.next_row_id, 0);
    expect_null(s.changelog_list.data);
    expect_null(s.index_manifest.data);
    expect_true(tarn_slice_starts_with(s.delta_list, tarn_slice_str("manifest-list-")));
    expect_int(golden(t, "snapshot/java-compact.json").kind, TARN_COMMIT_COMPACT);
    expect_not_null(golden(t, "snapshot/java-index.json").index_manifest.data);
}

TARN_TEST(snapshot, reads_pypaimon)
{
    struct tarn_snapshot s = golden(t, "snapshot/pypaimon.json");
    expect_int(s.delta_record_count, 5);
    expect_true(tarn_slice_starts_with(s.writer_version, tarn_slice_str("python-")));
    expect_int(s.next_row_id, TARN_SNAPSHOT_NONE);
}

TARN_TEST(snapshot, writes_what_java_writes)
{
    static const char *const names[] = {"snapshot/java-append.json", "snapshot/java-index.json",
                                        "snapshot/java-compact.json"};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf json = {0}, ours = {0}, a = {0}, b = {0};
        TARN_OWN(tarn_json_drop) struct tarn_json *want = NULL;
        TARN_OWN(tarn_json_drop) struct tarn_json *got = NULL;
        tarn_test_golden(names[i], &json);
        struct tarn_snapshot s = golden(t, names[i]);
        tarn_snapshot_encode(&s, &ours);
        expect_ok(tarn_json_parse(tarn_buf_slice(&json), &want));
        expect_ok(tarn_json_parse(tarn_buf_slice(&ours), &got));
        tarn_json_print(want, 0, &a);
        tarn_json_print(got, 0, &b);
        expect_bytes(tarn_buf_slice(&b), tarn_buf_slice(&a)); /* members in the same order, too */
    }
}

#define SNAPSHOT(more)                                                                             \
    "{\"version\": 3, \"id\": 7, \"schemaId\": 0, \"baseManifestList\": \"b\", "                   \
    "\"deltaManifestList\": \"d\", \"commitUser\": \"u\", \"commitIdentifier\": 1, "               \
    "\"commitKind\": \"APPEND\", \"timeMillis\": 5" more "}"

TARN_TEST(snapshot, reads_what_the_first_versions_wrote)
{
    struct tarn_snapshot s;
    expect_ok(tarn_snapshot_decode(
        tarn_slice_str(SNAPSHOT(", \"logOffsets\": {}, \"changelogManifestList\": null, "
                                "\"later\": [1], \"properties\": {\"k\": \"v\", \"n\": null}")),
        t->arena, &s));
    expect_int(s.total_record_count, TARN_SNAPSHOT_NONE);
    expect_int(s.property_count, 1);
    expect_slice(s.properties[0].value, "v");
}

TARN_TEST(snapshot, names_the_member_that_is_wrong)
{
    static const char *const bad[][2] = {
        {"{", "line"},
        {"[]", "object"},
        {"{}", "version"},
        {SNAPSHOT(", \"watermark\": 1.5"), "watermark"},
        {SNAPSHOT(", \"watermark\": \"1\""), "watermark"},
        {SNAPSHOT(", \"baseManifestListSize\": -1"), "baseManifestListSize"},
        {SNAPSHOT(", \"indexManifest\": \"../x\""), "indexManifest"},
        {SNAPSHOT(", \"statistics\": \"\""), "statistics"},
        {SNAPSHOT(", \"properties\": []"), "properties"},
        {SNAPSHOT(", \"properties\": {\"a\": 1}"), "properties"},
        {"{\"version\": 3, \"id\": \"x\"}", "id"},
        {"{\"version\": 3, \"id\": 0, \"schemaId\": 0, \"baseManifestList\": \"b\", "
         "\"deltaManifestList\": \"d\", \"commitUser\": \"u\", \"commitIdentifier\": 1, "
         "\"commitKind\": \"APPEND\", \"timeMillis\": 5}",
         "id"},
        {"{\"version\": 3, \"id\": 1, \"schemaId\": 0, \"baseManifestList\": \"b\", "
         "\"deltaManifestList\": \"d\", \"commitUser\": \"u\", \"commitIdentifier\": 1, "
         "\"commitKind\": \"MERGE\", \"timeMillis\": 5}",
         "commitKind"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_snapshot s;
        expect_status(tarn_snapshot_decode(tarn_slice_str(bad[i][0]), t->arena, &s),
                      TARN_SNAPSHOT_MALFORMED, bad[i][1]);
    }
}
