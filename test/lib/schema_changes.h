/*
 * schema_changes - Paimon's SchemaChange objects as JSON ({"action":"addColumn","fieldNames":["v","x"],...}), read for tests.
 *
 * A list that is not one ends the program, with a word on stderr.
 */
#ifndef TARN_TEST_LIB_SCHEMA_CHANGES_H
#define TARN_TEST_LIB_SCHEMA_CHANGES_H

#include "format/evolve.h"

/* In the arena. */
void tarn_test_schema_changes(const struct tarn_json *list, struct tarn_arena *arena,
                              struct tarn_schema_change **out, size_t *count);

#endif
