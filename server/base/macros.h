/*
 * macros - the few macros of the house: ownership, errors, assertions.
 *
 *   TARN_OWN(drop) type *p = ...;   runs drop(&p) at the end of the scope
 *   TARN_TRY(expr);                 returns a failed status upwards
 *   tarn_move(p)                    yields p and leaves NULL: how an owner gives away
 */
#ifndef TARN_BASE_MACROS_H
#define TARN_BASE_MACROS_H

#include <stdbool.h>
#include <stddef.h>

#define TARN_MUST __attribute__((warn_unused_result))
#define TARN_PRINTF(fmt_index, first) __attribute__((format(printf, fmt_index, first)))
#define TARN_UNUSED __attribute__((unused))
#define TARN_NONNULL __attribute__((returns_nonnull)) /* of a function: never NULL */

#define TARN_INLINE static inline __attribute__((always_inline)) /* where each call counts */

#define TARN_OWN(drop) __attribute__((cleanup(drop)))

#define TARN_TRY(expr)                                                                             \
    do {                                                                                           \
        struct tarn_status *tarn_try_status = (expr);                                              \
        if (tarn_try_status != NULL)                                                               \
            return tarn_try_status;                                                                \
    } while (0)

#define tarn_move(p)                                                                               \
    ({                                                                                             \
        __typeof__(p) tarn_moved = (p);                                                            \
        (p) = NULL;                                                                                \
        tarn_moved;                                                                                \
    })

/* For our own bugs only, never for bytes, requests or replies. Stays on in release builds. */
#define tarn_assert(cond)                                                                          \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0))                                                          \
            tarn_assert_failed(__FILE__, __LINE__, #cond);                                         \
    } while (0)

__attribute__((noreturn, cold)) void tarn_assert_failed(const char *file, int line,
                                                        const char *what);

#define TARN_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TARN_CONTAINER_OF(ptr, type, member)                                                       \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define TARN_MIN(a, b)                                                                             \
    ({                                                                                             \
        __typeof__(a) tarn_min_a = (a);                                                            \
        __typeof__(b) tarn_min_b = (b);                                                            \
        tarn_min_a < tarn_min_b ? tarn_min_a : tarn_min_b;                                         \
    })
#define TARN_MAX(a, b)                                                                             \
    ({                                                                                             \
        __typeof__(a) tarn_max_a = (a);                                                            \
        __typeof__(b) tarn_max_b = (b);                                                            \
        tarn_max_a > tarn_max_b ? tarn_max_a : tarn_max_b;                                         \
    })

#endif
