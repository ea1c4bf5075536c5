/*
 * An expression from a request is read or refused with a reason, within its limits; what was read can
 * be judged on nulls, pruned without statistics, and restricted. What is known never decides more
 * than it may: nothing known about any column denies only what is never true.
 */
#include "format/predicate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COLUMN_COUNT = 10 };
#define TYPE(type_id, ...)                                                                         \
    {                                                                                              \
        .id = TARN_TYPE_##type_id, .nullable = true, ##__VA_ARGS__                                 \
    }
static const struct tarn_type types[COLUMN_COUNT] = {
    TYPE(INT),
    TYPE(VARCHAR, .length = TARN_TYPE_LENGTH_MAX),
    TYPE(DECIMAL, .precision = 5, .scale = 2),
    TYPE(DOUBLE),
    TYPE(FLOAT),
    TYPE(DATE),
    TYPE(TIMESTAMP, .precision = 3),
    TYPE(TIME, .precision = 3),
    TYPE(BOOLEAN),
    TYPE(VARBINARY, .length = TARN_TYPE_LENGTH_MAX)};
static const char *const names[COLUMN_COUNT] = {"i",  "s",  "f",  "d", "r",
                                                "dt", "ts", "tm", "b", "x"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_field fields[COLUMN_COUNT];
    struct tarn_schema schema = {.fields = fields, .field_count = COLUMN_COUNT};
    struct tarn_value row[COLUMN_COUNT];
    struct tarn_bounds bounds[COLUMN_COUNT];
    struct tarn_predicate p, some;
    const int columns[] = {0, 5};

    for (int i = 0; i < COLUMN_COUNT; i++) {
        fields[i] =
            (struct tarn_field){.id = i, .name = tarn_slice_str(names[i]), .type = &types[i]};
        row[i] = (struct tarn_value){.integer = i};
        if (i == 1 || i == 9)
            row[i] = (struct tarn_value){.bytes = tarn_slice_str("text")};
        if (size % 3 == 0)
            row[i] = (struct tarn_value){.is_null = true};
        bounds[i] = (struct tarn_bounds){.null_count = TARN_STATS_UNKNOWN, .row_count = 1};
    }
    TARN_OWN(tarn_status_drop) struct tarn_status *s =
        tarn_predicate_parse(tarn_slice_of(data, size), &schema, arena, &p);
    if (s != NULL) {
        tarn_assert(tarn_status_reason(s) == TARN_EXPRESSION_INVALID ||
                    tarn_status_reason(s) == TARN_COLUMN_NOT_FOUND);
        return 0;
    }
    bool passes = tarn_predicate_eval(&p, &schema, row) == TARN_TRUE;
    TARN_OWN(tarn_status_drop) struct tarn_status *s2 =
        tarn_predicate_restrict(&p, columns, TARN_COUNT_OF(columns), arena, &some);
    tarn_assert(s2 == NULL);
    tarn_assert(!passes || tarn_predicate_may_match(&p, &schema, bounds));
    tarn_assert(!passes || tarn_predicate_eval(&some, &schema, row) == TARN_TRUE);
    return 0;
}
