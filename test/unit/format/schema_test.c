/*
 * Schemas: files of Java and pypaimon are read in full, what we write they would have written, unknown
 * members survive, and what a user may not ask for is refused with the rule's name.
 */
#include "test.h"

#include "format/schema.h"

static struct tarn_schema decode(struct tarn_test *t, struct tarn_slice json)
{
    struct tarn_schema schema = {0};
    expect_ok(tarn_schema_decode(json, t->arena, &schema));
    return schema;
}

/* As one line with sorted nothing: the order is the file's. */
static const char *canonical(struct tarn_test *t, struct tarn_slice text)
{
    TARN_OWN(tarn_json_drop) struct tarn_json *json = NULL;
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    expect_ok(tarn_json_parse(text, &json));
    tarn_json_print(json, 0, &out);
    return tarn_arena_str(t->arena, tarn_buf_slice(&out));
}

TARN_TEST(schema, writes_what_java_writes)
{
    static const char *const names[] = {"schema/java-every-type.json",
                                        "schema/java-primary-key.json", "schema/java-evolved.json"};
    for (size_t i = 0; i < TARN_COUNT_OF(names); i++) {
        TARN_OWN(tarn_buf_drop) struct tarn_buf golden = {0};
        TARN_OWN(tarn_buf_drop) struct tarn_buf ours = {0};
        tarn_test_golden(names[i], &golden);
        struct tarn_schema schema = decode(t, tarn_buf_slice(&golden));
        tarn_schema_encode(&schema, &ours);
        expect_str(canonical(t, tarn_buf_slice(&ours)), canonical(t, tarn_buf_slice(&golden)));
    }
}

TARN_TEST(schema, reads_java)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf golden = {0};
    tarn_test_golden("schema/java-primary-key.json", &golden);
    struct tarn_schema s = decode(t, tarn_buf_slice(&golden));
    int *columns = NULL;
    expect_int(s.field_count, 5);
    expect_int(tarn_schema_find(&s, tarn_slice_str("name")), 4);
    expect_int(tarn_schema_find_id(&s, 3), 3);
    expect_int(tarn_schema_find(&s, tarn_slice_str("nobody")), -1);
    expect_false(s.fields[3].type->nullable);
    expect_slice(tarn_schema_option(&s, "bucket"), "2");
    expect_null(tarn_schema_option(&s, "nothing").data);
    expect_int(tarn_schema_partition_columns(&s, t->arena, &columns), 2);
    expect_int(columns[0], 2);
    expect_int(columns[1], 1);
    expect_int(tarn_schema_trimmed_key_columns(&s, t->arena, &columns), 2);
    expect_int(columns[0], 3); /* id, name: the order of the key, without dt and hour */
    expect_int(columns[1], 4);
    expect_false(tarn_schema_is_append(&s));
}

TARN_TEST(schema, reads_pypaimon)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf golden = {0};
    tarn_test_golden("schema/pypaimon.json", &golden);
    struct tarn_schema s = decode(t, tarn_buf_slice(&golden));
    expect_int(s.primary_key_count, 2);
    expect_null(s.comment.data);
    expect_true(s.time_ms > 0);
}

#define SCHEMA(version, options, more)                                                             \
    "{\"version\": " version ", \"id\": 4, \"fields\": [{\"id\": 0, \"name\": \"a\", \"type\": "   \
    "\"INT\", \"later\": [1]}], \"highestFieldId\": 7, \"partitionKeys\": [], \"primaryKeys\": "   \
    "[], \"options\": {" options "}" more "}"

TARN_TEST(schema, keeps_what_it_does_not_know)
{
    struct tarn_schema s =
        decode(t, tarn_slice_str(SCHEMA("3", "", ", \"future\": {\"x\": null}")));
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_schema_encode(&s, &out);
    expect_contains(tarn_buf_cstr(&out), "\"future\"");
    expect_contains(tarn_buf_cstr(&out), "\"later\"");
    struct tarn_schema again = decode(t, tarn_buf_slice(&out));
    expect_bytes(again.unknown_json, s.unknown_json);
    expect_int(again.highest_field_id, 7);
}

TARN_TEST(schema, old_versions_imply_options)
{
    struct tarn_schema v1 = decode(t, tarn_slice_str(SCHEMA("1", "", "")));
    expect_slice(tarn_schema_option(&v1, "bucket"), "1");
    expect_slice(tarn_schema_option(&v1, "file.format"), "orc");
    struct tarn_schema v2 = decode(t, tarn_slice_str(SCHEMA("2", "\"file.format\": \"avro\"", "")));
    expect_null(tarn_schema_option(&v2, "bucket").data);
    expect_slice(tarn_schema_option(&v2, "file.format"), "avro");
    TARN_OWN(tarn_buf_drop) struct tarn_buf out = {0};
    tarn_schema_encode(&v1, &out);
    struct tarn_schema again = decode(t, tarn_buf_slice(&out));
    expect_int(again.version, 3);
    expect_int(again.option_count, 2);
}

TARN_TEST(schema, names_the_member_that_is_wrong)
{
    static const char *const bad[][2] = {
        {"", "1"},
        {"[]", "object"},
        {"{}", "id"},
        {SCHEMA("3", "\"a\": {}", ""), "options"},
        {SCHEMA("-1", "", ""), "version"},
        {SCHEMA("3", "", ", \"comment\": 7"), "comment"},
        {SCHEMA("3", "", ", \"timeMillis\": \"x\""), "timeMillis"},
        {"{\"id\": 1, \"fields\": [{\"id\": 9, \"name\": \"a\", \"type\": \"INT\"}], "
         "\"highestFieldId\": 3, \"partitionKeys\": [], \"primaryKeys\": [], \"options\": {}}",
         "highestFieldId"},
        {"{\"id\": 1, \"fields\": [{\"id\": 1, \"name\": \"a\", \"type\": \"INT\"}, {\"id\": 1, "
         "\"name\": \"b\", \"type\": \"INT\"}], \"highestFieldId\": 3, \"partitionKeys\": [], "
         "\"primaryKeys\": [], \"options\": {}}",
         "twice"},
        {"{\"id\": 1, \"fields\": [{\"id\": 1, \"name\": \"a\", \"type\": \"INT\"}], "
         "\"highestFieldId\": 3, \"partitionKeys\": [\"b\"], \"primaryKeys\": [], \"options\": {}}",
         "\"b\""},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_schema schema;
        expect_status(tarn_schema_decode(tarn_slice_str(bad[i][0]), t->arena, &schema),
                      TARN_SCHEMA_MALFORMED, bad[i][1]);
    }
}

/* ---- creation */

static struct tarn_schema draft(struct tarn_test *t, const char *columns)
{
    struct tarn_schema s = {0};
    expect_ok(tarn_columns_parse(tarn_slice_str(columns), t->arena, &s.fields, &s.field_count));
    return s;
}

TARN_TEST(schema, columns_are_parsed)
{
    struct tarn_schema s =
        draft(t, "id BIGINT NOT NULL COMMENT 'it''s', `odd name` STRING DEFAULT 'x'"
                 ", n ROW<a INT>");
    expect_int(s.field_count, 3);
    expect_slice(s.fields[0].description, "it's");
    expect_slice(s.fields[1].name, "odd name");
    expect_slice(s.fields[1].default_value, "x");
    expect_status(
        tarn_columns_parse(tarn_slice_str("a INT b INT"), t->arena, &s.fields, &s.field_count),
        TARN_SCHEMA_INVALID, "position 7");
}

TARN_TEST(schema, ids_are_given_depth_first)
{
    /* the columns and ids of docs/format.md, "Schema files" */
    struct tarn_schema s = draft(t, "a INT, p INT, dt STRING, m MAP<STRING, INT>, "
                                    "l ARRAY<ROW<x INT, y INT>>, lz TIMESTAMP_LTZ(3)");
    struct tarn_schema made;
    expect_ok(tarn_schema_create(&s, 123, t->arena, &made));
    expect_int(made.fields[4].id, 4);
    expect_int(made.fields[4].type->element->fields[0].id, 5);
    expect_int(made.fields[4].type->element->fields[1].id, 6);
    expect_int(made.fields[5].id, 7);
    expect_int(made.highest_field_id, 7);
    expect_int(made.time_ms, 123);
    expect_int(made.version, 3);
}

TARN_TEST(schema, key_options_become_keys)
{
    static const struct tarn_pair options[] = {
        {{(const uint8_t *)"primary-key", 11}, {(const uint8_t *)"k, dt", 5}},
        {{(const uint8_t *)"partition", 9}, {(const uint8_t *)"dt", 2}},
        {{(const uint8_t *)"bucket", 6}, {(const uint8_t *)"1", 1}}};
    struct tarn_schema s = draft(t, "k INT, v INT, dt STRING"), made;
    s.options = options;
    s.option_count = 3;
    expect_ok(tarn_schema_create(&s, 0, t->arena, &made));
    expect_int(made.primary_key_count, 2);
    expect_slice(made.primary_keys[1], "dt");
    expect_int(made.partition_key_count, 1);
    expect_int(made.option_count, 1);
    expect_false(made.fields[0].type->nullable);
    expect_true(made.fields[1].type->nullable);
    expect_false(made.fields[2].type->nullable);
}

TARN_TEST(schema, rules_of_creation)
{
    static const struct {
        const char *columns, *primary, *partition, *key, *value, *part;
    } bad[] = {
        {"_KEY_a INT", NULL, NULL, NULL, NULL, "_KEY_a"},
        {"rowkind STRING", NULL, NULL, NULL, NULL, "rowkind"},
        {"a INT, a INT", NULL, NULL, NULL, NULL, "twice"},
        {"a INT", "b", NULL, NULL, NULL, "\"b\""},
        {"a INT, b INT", "a", "a", NULL, NULL, "partition keys"},
        {"a ARRAY<INT>, b INT", "a", NULL, NULL, NULL, "can't be a key"},
        {"a INT, b INT", "a", "b", "bucket", "2", "every partition key"},
        {"a INT, b INT", NULL, NULL, "bucket", "2", "bucket-key"},
        {"a INT, b INT", "a", NULL, "bucket", "0", "bucket"},
        {"a INT, b INT", "a", NULL, "bucket", "x", "bucket"},
        {"a INT, b INT", "a", NULL, "bucket-key", "a", "bucket-key"},
        {"a INT, b INT", "a", NULL, "sequence.field", "c", "sequence.field"},
        {"a INT, b INT", "a", NULL, "rowkind.field", "b", "rowkind.field"},
        {"a INT, b INT", "a", NULL, "write-buffer-size", "many", "size"},
        {"a INT, ` ` INT", NULL, NULL, NULL, NULL, "column 2 has no name"},
        {"a INT, b ROW<x INT, x INT>", NULL, NULL, NULL, NULL, "two parts named \"x\""},
        {"a INT, b MAP<INT, ARRAY<ROW<x INT, x INT>>>", NULL, NULL, NULL, NULL, "\"b\""},
        {"a INT, b ROW<x INT, ` ` INT>", NULL, NULL, NULL, NULL, "part without name"},
    };
    for (size_t i = 0; i < TARN_COUNT_OF(bad); i++) {
        struct tarn_schema s = draft(t, bad[i].columns), made;
        struct tarn_slice primary = tarn_slice_str(bad[i].primary);
        struct tarn_slice partition = tarn_slice_str(bad[i].partition);
        struct tarn_pair option = {tarn_slice_str(bad[i].key), tarn_slice_str(bad[i].value)};
        s.primary_keys = &primary;
        s.primary_key_count = bad[i].primary != NULL;
        s.partition_keys = &partition;
        s.partition_key_count = bad[i].partition != NULL;
        s.options = &option;
        s.option_count = bad[i].key != NULL;
        expect_status(tarn_schema_create(&s, 0, t->arena, &made), TARN_SCHEMA_INVALID, bad[i].part);
    }
}

/* An empty value often comes without an address. It is a value all the same: taken for "not there" it would be
 * written, and the table could not be opened again. */
TARN_TEST(schema, an_empty_option_is_an_option)
{
    struct tarn_schema s = draft(t, "a INT, b INT"), made;
    struct tarn_pair option = {tarn_slice_str("bucket"), {NULL, 0}};
    s.options = &option;
    s.option_count = 1;
    expect_status(tarn_schema_create(&s, 0, t->arena, &made), TARN_SCHEMA_INVALID, "bucket");
    option.key = tarn_slice_str("somebody.elses");
    expect_ok(tarn_schema_create(&s, 0, t->arena, &made));
    expect_not_null(tarn_schema_option(&made, "somebody.elses").data);
}

/* As Java's catalog has it: the directive goes, the column becomes what it says, an option lists it. */
TARN_TEST(schema, comments_make_blobs_and_vectors)
{
    struct tarn_schema draft = {0}, made;
    struct tarn_pair options[] = {
        {tarn_slice_str("row-tracking.enabled"), tarn_slice_str("true")},
        {tarn_slice_str("data-evolution.enabled"), tarn_slice_str("true")},
        {tarn_slice_str("vector-field"), tarn_slice_str("w")},
    };
    draft.options = options;
    draft.option_count = TARN_COUNT_OF(options);
    expect_ok(tarn_columns_parse(
        tarn_slice_str("k INT COMMENT 'a key', b BYTES COMMENT '__BLOB_FIELD; a photo', v "
                       "ARRAY<FLOAT> COMMENT '__VECTOR_FIELD; 8', w VECTOR<FLOAT, 3>"),
        t->arena, &draft.fields, &draft.field_count));
    expect_ok(tarn_schema_create(&draft, 0, t->arena, &made));
    expect_slice(made.fields[0].description, "a key");
    expect_int(made.fields[1].type->id, TARN_TYPE_BLOB);
    expect_slice(made.fields[1].description, "a photo");
    expect_int(made.fields[2].type->id, TARN_TYPE_VECTOR);
    expect_int(made.fields[2].type->length, 8);
    expect_null(made.fields[2].description.data);
    expect_slice(tarn_schema_option(&made, "blob-field"), "b");
    expect_slice(tarn_schema_option(&made, "vector-field"), "w,v");
    draft.option_count = 0;
    expect_status(tarn_schema_create(&draft, 0, t->arena, &made), TARN_SCHEMA_INVALID,
                  "data-evolution.enabled");
}
