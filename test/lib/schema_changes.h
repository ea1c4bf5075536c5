/*
 * schema_changes - Paimon's SchemaChange objects as JSON ({"action":"addColumn","fieldNames":["v","x"],...}), read for tests.
 */
#ifndef TARN_TEST_LIB_SCHEMA_CHANGES_H
#define TARN_TEST_LIB_SCHEMA_CHANGES_H

#include "format/evolve.h"

/* In the arena. Fails for an action or a type that isn't one; what else is wrong is left out. */
TARN_MUST struct tarn_status *tarn_test_schema_changes(const struct tarn_json *list,
                                                       struct tarn_arena *arena,
                                                       struct tarn_schema_change **out,
                                                       size_t *count);

#endif
