/*
 * manifest_internal - what the files that read manifests share: records by the writer's schema.
 */
#ifndef TARN_FORMAT_MANIFEST_INTERNAL_H
#define TARN_FORMAT_MANIFEST_INTERNAL_H

#include "format/avro.h"
#include "format/manifest.h"

#define TARN_MANIFEST_ENTRIES_MAX (4 << 20)

/* A field of ours: its name in the file and whether a record is nothing without it. Which member of
 * the struct it fills is said by a switch, for the kinds are many and the code is short. */
struct tarn_manifest__slot {
    const char *name;
    bool required;
};

#define TARN_MANIFEST__SLOTS_MAX 24

struct tarn_manifest__plan { /* how the records of one type are read */
    const struct tarn_avro_node *record;
    const int16_t *to; /* writer's field -> slot, -1 for skip */
};

TARN_MUST struct tarn_status *tarn_manifest__plan(struct tarn_avro_reader *r,
                                                  const struct tarn_avro_node *record,
                                                  const struct tarn_manifest__slot *slots,
                                                  size_t count, struct tarn_manifest__plan *out);
TARN_MUST struct tarn_status *tarn_manifest__range_error(const struct tarn_avro_reader *r,
                                                         const char *field, int64_t value);
TARN_MUST struct tarn_status *tarn_manifest__read_name(struct tarn_avro_reader *r,
                                                       const struct tarn_avro_node *node,
                                                       const char *field, struct tarn_slice *out);
TARN_MUST struct tarn_status *tarn_manifest__read_count(struct tarn_avro_reader *r,
                                                        const struct tarn_avro_node *node,
                                                        const char *field, int64_t *out);
TARN_MUST struct tarn_status *tarn_manifest__read_version(struct tarn_avro_reader *r,
                                                          const struct tarn_avro_node *node,
                                                          int32_t wanted);
TARN_MUST struct tarn_status *tarn_manifest__read_kind(struct tarn_avro_reader *r,
                                                       const struct tarn_avro_node *node,
                                                       enum tarn_entry_kind *out);
/* Room for one more record of `size` bytes, or an error where a file holds more than any does. */
TARN_MUST struct tarn_status *tarn_manifest__grow(void **items, size_t count, size_t *capacity,
                                                  size_t size);
/* Copies an array into the arena. */
void *tarn_manifest__settle(struct tarn_arena *arena, const void *items, size_t count, size_t size);

#endif
