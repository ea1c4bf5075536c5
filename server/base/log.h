/*
 * log - one line per event on standard error: a named event with pairs.
 *
 *   tarn_log(op, TARN_INFO, "table.commit", "table=%s files=%zu", name, n);
 *   2026-11-29T19:07:35.123Z info table.commit req=6f1c... table=db.t files=3
 *
 * Values with blanks or quotes are quoted with tarn_log_quote. Event names stand in docs/operations.md.
 * Threads  any; a line is written with one write(2).
 */
#ifndef TARN_BASE_LOG_H
#define TARN_BASE_LOG_H

#include "base/macros.h"
#include "base/op.h"

enum tarn_log_level { TARN_DEBUG, TARN_INFO, TARN_WARN, TARN_ERROR };

/* op may be NULL: no request id. */
void tarn_log(const struct tarn_op *op, enum tarn_log_level level, const char *event,
              const char *format, ...) TARN_PRINTF(4, 5);
/* Logs `event` with reason="..." error="..." and frees the status. NULL does nothing. */
void tarn_log_status(const struct tarn_op *op, enum tarn_log_level level, const char *event,
                     struct tarn_status *consumed);
void tarn_log_set_level(enum tarn_log_level level);
TARN_MUST struct tarn_status *tarn_log_level_parse(const char *text, enum tarn_log_level *out);
void tarn_log_set_json(bool json); /* one JSON object a line instead */
/* Text as a quoted value, control characters escaped; lies in the op's arena (or a static ring
 * of 8 small thread-local buffers where op is NULL). */
const char *tarn_log_quote(const struct tarn_op *op, const char *text);

#endif
