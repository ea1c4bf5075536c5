/*
 * clock - wall and monotonic time, replaceable in tests.
 *
 * Units    *_ms: milliseconds; wall since 1970 UTC, mono since an arbitrary start. *_ns likewise.
 */
#ifndef TARN_BASE_CLOCK_H
#define TARN_BASE_CLOCK_H

#include <stdint.h>

int64_t tarn_clock_wall_ms(void);
int64_t tarn_clock_mono_ms(void);
int64_t tarn_clock_mono_ns(void);
/* What this process has used of the processor, all threads. */
int64_t tarn_clock_cpu_ns(void);
/* Tests: both clocks stand at wall_ms until moved; a negative value restores the real ones. */
void tarn_clock_fake(int64_t wall_ms);

#endif
