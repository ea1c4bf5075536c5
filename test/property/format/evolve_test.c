/*
 * Schema evolution, whatever is asked: a refusal leaves nothing, a schema that comes out is one that can be read again, no id stands for
 * two things or for what it did not stand for before, and changes that are fine one by one are fine at once, with the same outcome.
 */
#include "test.h"

#include "format/evolve.h"

#define S tarn_slice_str
#define CHANGES_MAX 6

static const char start[] =
    "{\"id\": 0, \"fields\": ["
    "{\"id\": 0, \"name\": \"k\", \"type\": \"INT NOT NULL\"}, {\"id\": 1, \"name\": \"p\", \"type\": \"STRING NOT NULL\"},"
    "{\"id\": 2, \"name\": \"v\", \"type\": \"INT\"}, {\"id\": 3, \"name\": \"r\", \"type\": {\"type\": \"ROW\", \"fields\": ["
    "{\"id\": 4, \"name\": \"x\", \"type\": \"INT\"}, {\"id\": 5, \"name\": \"y\", \"type\": {\"type\": \"ARRAY\", \"element\": "
    "{\"type\": \"ROW\", \"fields\": [{\"id\": 6, \"name\": \"x\", \"type\": \"STRING\"}]}}}]}},"
    "{\"id\": 7, \"name\": \"m\", \"type\": {\"type\": \"MAP\", \"key\": \"STRING\", \"value\": {\"type\": \"ARRAY\", \"element\": "
    "\"INT\"}}}], \"highestFieldId\": 7, \"partitionKeys\": [\"p\"], \"primaryKeys\": [\"p\", \"k\"], \"options\": {\"bucket\": "
    "\"1\", \"sequence.field\": \"v\", \"fields.v.stats-mode\": \"full\"}, \"timeMillis\": 0}";

static struct tarn_slice any_name(struct tarn_test *t)
{
    static const char *const names[] = {"k", "p", "v",       "r",     "m",   "x",
                                        "y", "n", "element", "value", "key", "_KEY_k"};
    return S(names[tarn_test_random_below(t, TARN_COUNT_OF(names))]);
}

/* Mostly the path of something that was there at first. */
static const struct tarn_slice *any_path(struct tarn_test *t, size_t *count)
{
    static const char *const paths[][5] = {{"v"},
                                           {"k"},
                                           {"r"},
                                           {"r", "x"},
                                           {"r", "y", "element"},
                                           {"r", "y", "element", "x"},
                                           {"m", "value", "element"}};
    struct tarn_slice *path = tarn_arena_calloc(t->arena, 8, sizeof *path);
    size_t n = 0;
    if (tarn_test_random_one_in(t, 2)) {
        const char *const *from = paths[tarn_test_random_below(t, TARN_COUNT_OF(paths))];
        for (; from[n] != NULL; n++)
            path[n] = S(from[n]);
        if (tarn_test_random_one_in(t, 3))
            path[n - 1] = any_name(t);
    } else {
        n = tarn_test_random_below(t, 4);
        for (size_t i = 0; i < n; i++)
            path[i] = any_name(t);
    }
    *count = n;
    return path;
}

static const struct tarn_type *any_type(struct tarn_test *t)
{
    static const char *const texts[] = {"INT",
                                        "BIGINT",
                                        "STRING",
                                        "STRING NOT NULL",
                                        "DATE",
                                        "BOOLEAN",
                                        "DECIMAL(10, 2)",
                                        "ARRAY<ROW<x INT, y ROW<x INT>>>",
                                        "TIMESTAMP(3)",
                                        "MAP<STRING, ROW<x INT>>",
                                        "ROW<x INT, x INT>"};
    const struct tarn_type *type;
    expect_ok(tarn_type_parse(S(texts[tarn_test_random_below(t, TARN_COUNT_OF(texts))]), t->arena,
                              &type));
    return type;
}

static struct tarn_slice any_value(struct tarn_test *t)
{
    static const char *const texts[] = {"1", "n", "x", "v", "true", "", "\xff"};
    if (tarn_test_random_one_in(t, 5))
        return (struct tarn_slice){0};
    return S(texts[tarn_test_random_below(t, TARN_COUNT_OF(texts))]);
}

static struct tarn_schema_change any_change(struct tarn_test *t)
{
    static const char *const keys[] = {"bucket", "sequence.field", "my.own", "fields.v.stats-mode",
                                       "merge-engine"};
    struct tarn_schema_change c = {
        .kind = (enum tarn_schema_change_kind)tarn_test_random_below(
            t, TARN_CHANGE_DROP_PRIMARY_KEY + 1),
        .key = S(keys[tarn_test_random_below(t, TARN_COUNT_OF(keys))]),
        .value = any_value(t),
        .type = any_type(t),
        .keep_nullable = tarn_test_random_one_in(t, 2),
        .nullable = tarn_test_random_one_in(t, 2),
        .move = (enum tarn_move)tarn_test_random_below(t, TARN_MOVE_AFTER + 1),
        .reference = any_name(t),
    };
    c.path = any_path(t, &c.path_count);
    return c;
}

static const char *text_of(struct tarn_test *t, struct tarn_schema schema)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf text = {0};
    schema.id = 0;
    tarn_schema_encode(&schema, &text);
    return tarn_arena_str(t->arena, tarn_buf_slice(&text));
}

/* Every id is within bounds and stands for one thing. */
static void check_ids(const struct tarn_type *type, const struct tarn_field *fields, size_t count,
                      int32_t highest, bool *seen)
{
    if (type != NULL && type->key != NULL)
        check_ids(type->key, type->key->fields, type->key->field_count, highest, seen);
    if (type != NULL && type->element != NULL)
        check_ids(type->element, type->element->fields, type->element->field_count, highest, seen);
    for (size_t i = 0; i < count; i++) {
        assert_in_range(fields[i].id, 0, highest);
        assert_false(seen[fields[i].id]);
        seen[fields[i].id] = true;
        check_ids(fields[i].type, fields[i].type->fields, fields[i].type->field_count, highest,
                  seen);
    }
}

static void check_outcome(struct tarn_test *t, const struct tarn_schema *before,
                          const struct tarn_schema *after)
{
    struct tarn_schema again;
    expect_int(after->id, before->id + 1);
    assert_true(after->highest_field_id >= before->highest_field_id);
    bool *now = tarn_arena_calloc(t->arena, (size_t)after->highest_field_id + 1, sizeof *now);
    bool *then = tarn_arena_calloc(t->arena, (size_t)after->highest_field_id + 1, sizeof *then);
    check_ids(NULL, after->fields, after->field_count, after->highest_field_id, now);
    check_ids(NULL, before->fields, before->field_count, before->highest_field_id, then);
    for (int32_t id = 0; id <= before->highest_field_id; id++)
        assert_true(!now[id] || then[id]); /* what was dropped never comes back */
    const char *text = text_of(t, *after);
    expect_ok(tarn_schema_decode(S(text), t->arena, &again));
    expect_str(text_of(t, again), text);
}

TARN_TEST(evolve, whatever_is_asked)
{
    struct tarn_schema first, one, all;
    size_t fine = 0, refused = 0;
    expect_ok(tarn_schema_decode(S(start), t->arena, &first));
    const char *untouched = text_of(t, first);
    for (int round = 0; round < 3000; round++) {
        struct tarn_schema_change changes[CHANGES_MAX];
        size_t count = 1 + tarn_test_random_below(t, CHANGES_MAX), done = 0;
        bool has_snapshot = tarn_test_random_one_in(t, 2);
        one = first;
        for (size_t i = 0; i < count; i++) {
            struct tarn_schema next = one;
            changes[done] = any_change(t);
            struct tarn_status *s =
                tarn_schema_evolve(&one, &changes[done], 1, has_snapshot, 0, t->arena, &next);
            if (s != NULL) {
                assert_true(tarn_status_message(s)[0] != 0);
                assert_memory_equal(&next, &one, sizeof next); /* *out is as it was */
                refused++;
            } else {
                check_outcome(t, &one, &next);
                fine++;
                done++;
                one = next;
            }
            tarn_status_free(s);
        }
        /* Options are judged by what they were before a request, so one that is set twice may be refused or pass at once only. */
        bool options = false;
        for (size_t i = 0; i < done; i++)
            options = options || changes[i].kind == TARN_CHANGE_SET_OPTION ||
                      changes[i].kind == TARN_CHANGE_REMOVE_OPTION;
        if (!options) {
            expect_ok(tarn_schema_evolve(&first, changes, done, has_snapshot, 0, t->arena, &all));
            expect_str(text_of(t, all), text_of(t, one));
        }
        expect_str(text_of(t, first), untouched);
    }
    assert_true(fine > 1000 && refused > 1000);
}
