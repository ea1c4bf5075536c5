#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

static _Atomic int64_t fake_ms = -1;

static int64_t read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t tarn_clock_wall_ms(void)
{
    int64_t fake = atomic_load_explicit(&fake_ms, memory_order_relaxed);
    return fake >= 0 ? fake : read_ns(CLOCK_REALTIME) / 1000000;
}

int64_t tarn_clock_mono_ms(void)
{
    return tarn_clock_mono_ns() / 1000000;
}

int64_t tarn_clock_mono_ns(void)
{
    int64_t fake = atomic_load_explicit(&fake_ms, memory_order_relaxed);
    return fake >= 0 ? fake * 1000000 : read_ns(CLOCK_MONOTONIC);
}

int64_t tarn_clock_cpu_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void tarn_clock_fake(int64_t wall_ms)
{
    atomic_store_explicit(&fake_ms, wall_ms, memory_order_relaxed);
}
