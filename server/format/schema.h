/*
 * schema - one version of a table's columns, keys and options: the JSON object schema/schema-N.
 *
 * Shape    ids count from 0 without gaps; the current schema has the highest. Members this version
 *          does not know survive a decode and encode (unknown_json).
 * Memory   what a decoded schema points at lies in the arena given to decode.
 * Errors   SCHEMA_MALFORMED names the member; SCHEMA_INVALID names the rule a user broke.
 * Source   docs/format.md, "Schema files"; bytes: test/golden/schema/.
 */
#ifndef TARN_FORMAT_SCHEMA_H
#define TARN_FORMAT_SCHEMA_H

#include "format/type.h"

struct tarn_schema {
    int32_t version;
    int64_t id;
    const struct tarn_field *fields;
    size_t field_count;
    int32_t highest_field_id;
    const struct tarn_slice *partition_keys;
    size_t partition_key_count;
    const struct tarn_slice *primary_keys;
    size_t primary_key_count;
    const struct tarn_pair *options; /* in the order of the file */
    size_t option_count;
    struct tarn_slice comment; /* absent: none */
    int64_t time_ms;
    struct tarn_slice unknown_json; /* members not known here, as a JSON object; or absent */
};

TARN_MUST struct tarn_status *tarn_schema_decode(struct tarn_slice json, struct tarn_arena *arena,
                                                 struct tarn_schema *out);
void tarn_schema_encode(const struct tarn_schema *schema, struct tarn_buf *out); /* appends */

/* Index of the column, or -1. */
int tarn_schema_find(const struct tarn_schema *schema, struct tarn_slice name);
int tarn_schema_find_id(const struct tarn_schema *schema, int32_t field_id);
/* The option's value, or absent. */
struct tarn_slice tarn_schema_option(const struct tarn_schema *schema, const char *key);
bool tarn_schema_is_append(const struct tarn_schema *schema); /* no primary key */
/* Indices of columns, in key order, in the arena. trimmed: primary keys without partition keys. */
size_t tarn_schema_partition_columns(const struct tarn_schema *s, struct tarn_arena *a, int **out);
size_t tarn_schema_trimmed_key_columns(const struct tarn_schema *s, struct tarn_arena *a,
                                       int **out);

/* Makes a valid first schema of what a user gave: assigns field ids (where draft->highest_field_id is above 0, those
 * that the fields have are kept, if each occurs once), forces NOT NULL on
 * primary keys, moves options primary-key and partition into the arrays, checks every rule of
 * docs/format.md "Constraints". `draft` has names, types, keys, options, comment. */
TARN_MUST struct tarn_status *tarn_schema_create(const struct tarn_schema *draft, int64_t time_ms,
                                                 struct tarn_arena *arena, struct tarn_schema *out);
/* The schema that comes after `old` and has nothing of it but the table: its columns get ids that none had before, since what was written under
 * `old` is none of theirs. Partition columns stay, with their types: UNSUPPORTED_FEATURE. Else as tarn_schema_create. */
TARN_MUST struct tarn_status *tarn_schema_replace(const struct tarn_schema *old,
                                                  const struct tarn_schema *draft, int64_t time_ms,
                                                  struct tarn_arena *arena,
                                                  struct tarn_schema *out);
/* Parses "id BIGINT NOT NULL COMMENT 'x', name STRING" into draft fields; backquoted names too. */
TARN_MUST struct tarn_status *tarn_columns_parse(struct tarn_slice text, struct tarn_arena *arena,
                                                 const struct tarn_field **fields, size_t *count);

#endif
