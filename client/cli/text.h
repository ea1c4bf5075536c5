/*
 * text - strings from a server made fit for a terminal: nothing in them can move the cursor, change
 * colours or turn the direction of writing.
 */
#ifndef TARN_CLI_TEXT_H
#define TARN_CLI_TEXT_H

#include "base/base.h"

/* Controls, bytes that are no UTF-8 and what turns the direction become \n \t \xNN \u{NNNN}. */
void tarn_cli_escape(struct tarn_slice text, struct tarn_buf *out);
/* Columns on a terminal of text that was escaped; wide (CJK) characters take two. */
size_t tarn_cli_width(struct tarn_slice escaped);
/* "2026-01-31T12:00:00.123+01:00" in the zone of this process. */
void tarn_cli_local_time(int64_t wall_ms, struct tarn_buf *out);
bool tarn_cli_is_number(struct tarn_slice text); /* as a cell that stands at the right */

#endif
