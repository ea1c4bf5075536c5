/* fixture - a table over a store of choice and a state in a temporary folder, for the tests of room `table`. */
#ifndef TARN_TEST_TABLE_FIXTURE_H
#define TARN_TEST_TABLE_FIXTURE_H

#include "table/table.h"
#include "test/lib/test.h"

struct fixture {
    struct tarn_test *t;
    struct tarn_exec *exec;
    struct tarn_store *inner, *store; /* store is `inner`, wrapped in faulty */
    struct tarn_state *state;
    const char *state_dir;
    struct tarn_table_env env;
    struct tarn_table *table;
    struct tarn_gate *gate; /* of commits.c */
};

/* A table "t" (id BIGINT primary key, v STRING; two buckets) in a memory store. */
void fixture_init(struct fixture *f, struct tarn_test *t);
/* The same with further options, as members of a JSON object: "\"a\":\"1\"". */
void fixture_init_options(struct fixture *f, struct tarn_test *t, const char *options);
/* The same with another first schema, as JSON. */
void fixture_init_schema(struct fixture *f, struct tarn_test *t, const char *schema);
/* How old a look for other writers may be, from now on; no_more: only a put meets them. */
void fixture_look_every(struct fixture *f, int64_t ms);
void fixture_look_no_more(struct fixture *f);
void fixture_fini(struct fixture *f);
/* Closes table and state and opens both again, as a restart does; drop_state: the state is lost in between. */
void fixture_restart(struct fixture *f, bool drop_state);

/* An entry with keys `low`..`high`, rows of them all; lies in the test's arena. */
struct tarn_manifest_entry fixture_entry(struct fixture *f, enum tarn_entry_kind kind,
                                         const char *name, int32_t bucket, int level, int64_t low,
                                         int64_t high, int64_t first_sequence);
struct tarn_status *fixture_append(struct fixture *f, const char *user, int64_t identifier,
                                   const struct tarn_manifest_entry *entries, size_t count,
                                   int64_t *snapshot_id);
/* One file of ten rows, key 1 to 10, level 0 of bucket 0; landed by user "u": its snapshot; what became of that commit. */
struct tarn_manifest_entry fixture_file(struct fixture *f, const char *name);
int64_t fixture_land(struct fixture *f, int64_t identifier, const char *name);
struct tarn_commit_fate fixture_fate(struct fixture *f, int64_t identifier);
struct tarn_status *fixture_compact(struct fixture *f, const struct tarn_manifest_entry *entries,
                                    size_t count, int64_t *snapshot_id);
/* Names of the files that a plan sees, sorted, "a b c". id: TARN_SNAPSHOT_NONE for the latest. */
const char *fixture_files(struct fixture *f, int64_t id, const char *where);
/* Puts a snapshot into the store as a foreign writer would: the entries on top of the latest one. */
int64_t fixture_foreign(struct fixture *f, const char *user,
                        const struct tarn_manifest_entry *entries, size_t count);
int64_t fixture_foreign_properties(struct fixture *f, const char *user,
                                   const struct tarn_manifest_entry *entries, size_t count,
                                   const struct tarn_pair *properties, size_t property_count);
/* What such a writer would put, and isn't put: its manifests are in the store, under names with `tag` in them. like: its user,
 * identifier, kind, uuid and properties; *id: its id, or NULL. In the test's arena. */
struct tarn_slice fixture_craft(struct fixture *f, const char *tag,
                                const struct tarn_snapshot *like,
                                const struct tarn_manifest_entry *entries, size_t count,
                                int64_t *id);

/* What /metrics says of a counter, `tarn_name{label="value"}`; 0 where it isn't there yet. */
int64_t fixture_metric(const char *name);

#endif
