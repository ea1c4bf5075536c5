/* shape - the fixture's table in other shapes: partitions, buckets, options; and what goes into them. */
#ifndef TARN_TEST_TABLE_SHAPE_H
#define TARN_TEST_TABLE_SHAPE_H

#include "fixture.h"

#include "table/internal.h"

struct shape {           /* columns id BIGINT, v STRING, dt STRING, hr INT */
    bool primary_key;    /* id, and the partition columns */
    int partition_count; /* 0, 1: dt; 2: dt and hr */
    const char *options; /* as in JSON: "\"bucket\":\"2\"" */
};

void shape_init(struct fixture *f, struct tarn_test *t, const struct shape *shape);
/* A serialized partition row; dt NULL: null; hr < 0: null (looked at where there are two columns). */
struct tarn_slice shape_partition(struct fixture *f, const struct shape *shape, const char *dt,
                                  int hr);
/* As fixture_entry, in a partition; keys low..high. */
struct tarn_manifest_entry shape_entry(struct fixture *f, enum tarn_entry_kind kind,
                                       const char *name, struct tarn_slice partition,
                                       int32_t bucket, int32_t total_buckets, int level,
                                       int64_t low, int64_t high);
/* Commits without asking anybody: puts a snapshot with these entries and index files, and learns it. */
void shape_land(struct fixture *f, const char *user, enum tarn_commit_kind kind,
                const struct tarn_manifest_entry *entries, size_t count,
                const struct tarn_index_file *index, size_t index_count);
struct tarn_index_file shape_index(enum tarn_entry_kind kind, const char *type, const char *name,
                                   struct tarn_slice partition, int32_t bucket);
/* With deletion vectors for these data files, "a b c". */
struct tarn_index_file shape_vectors(struct fixture *f, enum tarn_entry_kind kind, const char *name,
                                     struct tarn_slice partition, int32_t bucket,
                                     const char *files);
/* Names of entries, "-a +b": what kind each is. */
const char *shape_names(struct fixture *f, const struct tarn_manifest_entry *entries, size_t count);
const char *shape_index_names(struct fixture *f, const struct tarn_index_file *changes,
                              size_t count);
struct tarn_status *shape_check(struct fixture *f, enum tarn_commit_kind kind,
                                struct tarn_manifest_entry *entries, size_t count,
                                const struct tarn_index_file *index, size_t index_count,
                                int64_t base);

#endif
