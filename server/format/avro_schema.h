/* avro_schema - the writer's schema of an Avro container as nodes; for avro.c. */
#ifndef TARN_FORMAT_AVRO_SCHEMA_H
#define TARN_FORMAT_AVRO_SCHEMA_H

#include "format/avro.h"

TARN_MUST struct tarn_status *tarn_avro__parse_schema(struct tarn_slice text,
                                                      struct tarn_arena *arena,
                                                      const struct tarn_avro_node **out);

#endif
