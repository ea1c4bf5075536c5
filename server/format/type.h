/*
 * type - Paimon's data types.
 *
 * Shape    atomic types are text ("DECIMAL(12, 2) NOT NULL"), nested ones JSON objects. A type is a
 *          plain value in an arena.
 * Errors   SCHEMA_INVALID from text (users type it), SCHEMA_MALFORMED from JSON (files hold it).
 * Source   docs/format.md, "Types"; org.apache.paimon.types.
 */
#ifndef TARN_FORMAT_TYPE_H
#define TARN_FORMAT_TYPE_H

#include "base/base.h"

enum tarn_type_id {
    TARN_TYPE_CHAR,
    TARN_TYPE_VARCHAR,
    TARN_TYPE_BOOLEAN,
    TARN_TYPE_BINARY,
    TARN_TYPE_VARBINARY,
    TARN_TYPE_DECIMAL,
    TARN_TYPE_TINYINT,
    TARN_TYPE_SMALLINT,
    TARN_TYPE_INT,
    TARN_TYPE_BIGINT,
    TARN_TYPE_FLOAT,
    TARN_TYPE_DOUBLE,
    TARN_TYPE_DATE,
    TARN_TYPE_TIME,
    TARN_TYPE_TIMESTAMP,
    TARN_TYPE_TIMESTAMP_LTZ,
    TARN_TYPE_VARIANT,
    TARN_TYPE_BLOB,
    TARN_TYPE_GEOMETRY,
    TARN_TYPE_GEOGRAPHY,
    TARN_TYPE_ARRAY,
    TARN_TYPE_MULTISET,
    TARN_TYPE_MAP,
    TARN_TYPE_ROW,
    TARN_TYPE_VECTOR,
};

#define TARN_TYPE_LENGTH_MAX INT32_MAX /* VARCHAR of it is STRING, VARBINARY of it BYTES */
#define TARN_TYPE_DEPTH_MAX 32
#define TARN_COLUMNS_MAX 20000

struct tarn_field;
struct tarn_type {
    enum tarn_type_id id;
    bool nullable;
    int32_t length;                   /* CHAR, VARCHAR, BINARY, VARBINARY; VECTOR: its length */
    int32_t precision;                /* DECIMAL, TIME, TIMESTAMP(_LTZ) */
    int32_t scale;                    /* DECIMAL */
    struct tarn_slice crs, algorithm; /* GEOMETRY, GEOGRAPHY: as written; else absent */
    const struct tarn_type *key;      /* MAP */
    const struct tarn_type *element;  /* ARRAY, MULTISET, VECTOR; MAP: the value's type */
    const struct tarn_field *fields;  /* ROW */
    size_t field_count;
};

struct tarn_field {
    int32_t id;
    struct tarn_slice name;
    const struct tarn_type *type;
    struct tarn_slice description;   /* absent: none */
    struct tarn_slice default_value; /* absent: none */
    struct tarn_slice
        unknown_json; /* members this version doesn't know, as a JSON object; or absent */
};

/* Atomic types as text; nested: also the SQL forms ARRAY<T>, MAP<K, V>, MULTISET<T>,
 * ROW<name type, …> that `tarn table create` takes (field ids 0, assigned later). */
TARN_MUST struct tarn_status *tarn_type_parse(struct tarn_slice text, struct tarn_arena *arena,
                                              const struct tarn_type **out);
TARN_MUST struct tarn_status *tarn_type_from_json(const struct tarn_json *json,
                                                  struct tarn_arena *arena,
                                                  const struct tarn_type **out);
struct tarn_json *tarn_type_to_json(const struct tarn_type *type);
/* Fields as schema files list them: [{"id": 0, "name": "x", "type": "INT"}, ...]. depth: of what they are in; 0: columns. */
TARN_MUST struct tarn_status *tarn_fields_from_json(const struct tarn_json *array, int depth,
                                                    struct tarn_arena *arena,
                                                    const struct tarn_field **out, size_t *count);
struct tarn_json *tarn_fields_to_json(const struct tarn_field *fields, size_t count);
/* As SQL: DECIMAL(12, 2) NOT NULL, ARRAY<INT>, ROW<`x` INT>. Appends. */
void tarn_type_print(const struct tarn_type *type, struct tarn_buf *out);
bool tarn_type_equal(const struct tarn_type *a, const struct tarn_type *b, bool ignore_nullable);
static inline bool tarn_type_is_nested(const struct tarn_type *t)
{
    return t->id >= TARN_TYPE_ARRAY || t->id == TARN_TYPE_VARIANT;
}
/* May a column of this type be a key, partition or sequence column; has it statistics? */
bool tarn_type_is_ordered(const struct tarn_type *type);
/* A copy with other nullability, in `arena`. */
const struct tarn_type *tarn_type_with_nullable(const struct tarn_type *type, bool nullable,
                                                struct tarn_arena *arena);

#endif
