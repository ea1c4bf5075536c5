/*
 * json - JSON documents: parsed whole, built, printed. The one door to the JSON library.
 *
 * Shape    Object order is kept. Integers are 64 bit; duplicate keys, integers beyond 64 bit, NUL in
 *          strings and depth over TARN_JSON_DEPTH_MAX are errors (JSON_MALFORMED with line, column);
 *          text over TARN_JSON_SIZE_MAX is TOO_LARGE. Any value may stand at the top.
 * Memory   a document is one owned handle; find and at return borrowed handles into it.
 */
#ifndef TARN_BASE_JSON_H
#define TARN_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/slice.h"
#include "base/status.h"

#define TARN_JSON_DEPTH_MAX 64
#define TARN_JSON_SIZE_MAX (64u << 20)
#define TARN_JSON_VALUES_MAX (1 << 20) /* values in one document; more is JSON_MALFORMED */

struct tarn_json;

TARN_MUST struct tarn_status *tarn_json_parse(struct tarn_slice text, struct tarn_json **out);
void tarn_json_free(struct tarn_json *json);
void tarn_json_drop(struct tarn_json **json);
/* indent 0: one line; keys in insertion order. Appends. */
void tarn_json_print(const struct tarn_json *json, int indent, struct tarn_buf *out);

/* Building; add and set consume `value`. */
struct tarn_json *tarn_json_object(void);
struct tarn_json *tarn_json_array(void);
struct tarn_json *tarn_json_string(struct tarn_slice text); /* must be UTF-8, else U+FFFD is put */
struct tarn_json *tarn_json_integer(int64_t value);
struct tarn_json *tarn_json_real(double value);
struct tarn_json *tarn_json_bool(bool value);
struct tarn_json *tarn_json_null(void);
struct tarn_json *tarn_json_copy(const struct tarn_json *json); /* deep */
void tarn_json_set(struct tarn_json *object, const char *key, struct tarn_json *value);
void tarn_json_set_str(struct tarn_json *object, const char *key, const char *text);
void tarn_json_set_slice(struct tarn_json *object, struct tarn_slice key, struct tarn_slice text);
void tarn_json_set_int(struct tarn_json *object, const char *key, int64_t value);
void tarn_json_set_bool(struct tarn_json *object, const char *key, bool value);
void tarn_json_remove(struct tarn_json *object, const char *key);
void tarn_json_add(struct tarn_json *array, struct tarn_json *value);

/* Looking; a wrong kind answers false, NULL or 0. */
enum tarn_json_kind {
    TARN_JSON_NULL,
    TARN_JSON_BOOL,
    TARN_JSON_INTEGER,
    TARN_JSON_REAL,
    TARN_JSON_STRING,
    TARN_JSON_ARRAY,
    TARN_JSON_OBJECT
};
enum tarn_json_kind tarn_json_kind(const struct tarn_json *json);
const struct tarn_json *tarn_json_find(const struct tarn_json *object,
                                       const char *key); /* or NULL */
size_t tarn_json_count(const struct tarn_json *array_or_object);
const struct tarn_json *tarn_json_at(const struct tarn_json *array, size_t index);
struct tarn_slice tarn_json_text(const struct tarn_json *string); /* absent if no string */
int64_t tarn_json_int(const struct tarn_json *integer);
double tarn_json_number(const struct tarn_json *real_or_integer);
bool tarn_json_is_true(const struct tarn_json *json);
/* Walks an object: start with *cursor = NULL, false at the end. */
bool tarn_json_next(const struct tarn_json *object, void **cursor, struct tarn_slice *key,
                    const struct tarn_json **value);

#endif
