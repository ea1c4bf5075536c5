/* Promise: any bytes are a file index, good or damaged: judging by it takes no more than its limits, reads
 * nothing beyond the bytes, and gives a verdict or an error. */
#include "format/file_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const predicates[] = {
    "c_int = 5",
    "c_bool AND c_int <> 5 AND c_string LIKE 'a%'",
    "c_string IN ('a', 'b', '') OR c_big NOT IN (1, 2)",
    "c_int IS NULL OR c_double > 1.5",
    "NOT (c_int < 7 AND c_string = 'a') AND c_ts = TIMESTAMP '2024-05-14 12:34:56.789'",
    "c_double IN (0, 1.5) AND c_int IN (1, 2, 3) AND c_big = 0",
};
static const char columns[] = "c_int INT, c_string STRING, c_big BIGINT, c_double DOUBLE, "
                              "c_bool BOOLEAN, c_ts TIMESTAMP(6)";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t row_counts[] = {40, 300, 70000, 2000000000};
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_schema draft = {0}, schema;
    struct tarn_predicate where;
    struct tarn_file_index_verdict verdict;
    struct tarn_status *s =
        tarn_columns_parse(tarn_slice_str(columns), arena, &draft.fields, &draft.field_count);
    tarn_assert(s == NULL);
    s = tarn_schema_create(&draft, 0, arena, &schema);
    tarn_assert(s == NULL);
    for (size_t i = 0; i < TARN_COUNT_OF(predicates); i++) {
        s = tarn_predicate_parse(tarn_slice_str(predicates[i]), &schema, arena, &where);
        tarn_assert(s == NULL);
        for (size_t k = 0; k < TARN_COUNT_OF(row_counts); k++) {
            s = tarn_file_index_may_match(tarn_slice_of(data, size), &where, &schema, &schema,
                                          row_counts[k], &verdict);
            tarn_assert(s == NULL || verdict.may_match);
            tarn_status_free(s);
        }
    }
    return 0;
}
