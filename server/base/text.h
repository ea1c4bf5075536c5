/*
 * text - numbers, sizes, times and identifiers as people write them, and back.
 *
 * Parsers take the whole slice or fail with VALUE_INVALID naming what was expected.
 */
#ifndef TARN_BASE_TEXT_H
#define TARN_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/slice.h"
#include "base/status.h"

TARN_MUST struct tarn_status *tarn_parse_i64(struct tarn_slice text, int64_t *out);
TARN_MUST struct tarn_status *tarn_parse_bool(struct tarn_slice text, bool *out);
/* "<n> [unit]", powers of 1024: b k kb m mb g gb t tb, bytes, kibibytes …; no unit: bytes. */
TARN_MUST struct tarn_status *tarn_parse_size(struct tarn_slice text, int64_t *bytes);
/* "<n> [unit]": d h m/min s ms us ns and the long words; no unit: milliseconds. */
TARN_MUST struct tarn_status *tarn_parse_duration(struct tarn_slice text, int64_t *ms);
/* "2026-01-31[ T]12:00[:00[.123]][Z|+01:00]", a date alone, or epoch milliseconds; no zone: UTC. */
TARN_MUST struct tarn_status *tarn_parse_time(struct tarn_slice text, int64_t *wall_ms);
void tarn_format_time(int64_t wall_ms, struct tarn_buf *out); /* 2026-01-31T12:00:00.123Z */
void tarn_format_size(int64_t bytes, struct tarn_buf *out);   /* 1.5 MiB */
void tarn_hex_encode(struct tarn_slice bytes, struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_hex_decode(struct tarn_slice text, struct tarn_buf *out);
void tarn_base64_encode(struct tarn_slice bytes, struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_base64_decode(struct tarn_slice text, struct tarn_buf *out);
bool tarn_utf8_valid(struct tarn_slice text);
/* Without the blanks and tabs around it. */
struct tarn_slice tarn_trim(struct tarn_slice text);
/* Percent escapes, and '+' for a blank, as URLs and S3's lists have them; NUL-terminated. False: a '%' without two digits. */
bool tarn_url_decode(struct tarn_slice text, struct tarn_arena *arena, struct tarn_slice *out);

#define TARN_UUID_SIZE 37 /* 36 characters and the NUL */
void tarn_uuid_random(char out[TARN_UUID_SIZE]);
bool tarn_uuid_valid(struct tarn_slice text);

/* The nearest of `names` to `text` (edit distance at most 1/3 of it), or NULL. Borrowed. */
const char *tarn_nearest(const char *text, const char *const *names, size_t name_count);

#endif
