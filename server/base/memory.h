/*
 * memory - buffers that grow and arenas that are dropped whole.
 *
 * Small allocations abort when memory is gone. A size that came from outside is held against a
 * named limit by the caller before it is allocated.
 */
#ifndef TARN_BASE_MEMORY_H
#define TARN_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/slice.h"

TARN_NONNULL void *tarn_alloc(size_t size); /* aborts when out of memory; never NULL */
TARN_NONNULL void *tarn_calloc(size_t count, size_t size); /* zeroed; aborts on overflow too */
TARN_NONNULL void *tarn_realloc(void *memory, size_t size);
char *tarn_strdup(const char *text);                          /* NULL gives NULL */
char *tarn_slice_dup(struct tarn_slice s);                    /* NUL terminated copy, owned */
char *tarn_format(const char *format, ...) TARN_PRINTF(1, 2); /* owned */
void tarn_free_drop(void *pointer_to_pointer); /* for TARN_OWN on malloc'd pointers */

/* Makes room for one more element in a growing array of `pointer`; doubles. */
#define TARN_GROW(pointer, count, capacity)                                                        \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = (capacity) == 0 ? 8 : (capacity)*2;                                       \
            (pointer) = tarn_realloc((pointer), (capacity) * sizeof *(pointer));                   \
        }                                                                                          \
    } while (0)

/* --- buf: bytes that are owned and grow. {0} is an empty one. --- */
struct tarn_buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

void tarn_buf_drop(struct tarn_buf *buf);              /* frees; leaves an empty one */
void tarn_buf_clear(struct tarn_buf *buf);             /* size 0, keeps the memory */
void tarn_buf_grow(struct tarn_buf *buf, size_t more); /* as reserve, where there isn't room */
static inline void tarn_buf_reserve(struct tarn_buf *buf, size_t more)
{
    if (more > buf->capacity - buf->size)
        tarn_buf_grow(buf, more);
}
static inline void tarn_buf_add(struct tarn_buf *buf, const void *data, size_t size)
{
    if (size == 0)
        return;
    tarn_buf_reserve(buf, size);
    memcpy(buf->data + buf->size, data, size);
    buf->size += size;
}
void tarn_buf_add_slice(struct tarn_buf *buf, struct tarn_slice s);
void tarn_buf_add_str(struct tarn_buf *buf, const char *text);
static inline void tarn_buf_add_byte(struct tarn_buf *buf, uint8_t byte)
{
    tarn_buf_reserve(buf, 1);
    buf->data[buf->size++] = byte;
}
void tarn_buf_add_zeros(struct tarn_buf *buf, size_t count);
void tarn_buf_printf(struct tarn_buf *buf, const char *format, ...) TARN_PRINTF(2, 3);
void tarn_buf_vprintf(struct tarn_buf *buf, const char *format, va_list args) TARN_PRINTF(2, 0);
/* The text as a C string (a NUL is kept behind the end); borrowed. */
const char *tarn_buf_cstr(struct tarn_buf *buf);
static inline struct tarn_slice tarn_buf_slice(const struct tarn_buf *buf)
{
    return (struct tarn_slice){buf->data, buf->size};
}

/* --- arena: many small things with one lifetime. Not for use by two threads at once. --- */
struct tarn_arena;
TARN_NONNULL struct tarn_arena *tarn_arena_new(void);
void tarn_arena_free(struct tarn_arena *arena);
void tarn_arena_drop(struct tarn_arena **arena);
TARN_NONNULL void *tarn_arena_alloc(struct tarn_arena *arena,
                                    size_t size); /* aligned to 16, not zeroed */
TARN_NONNULL void *tarn_arena_calloc(struct tarn_arena *arena, size_t count, size_t size);
struct tarn_slice tarn_arena_copy(struct tarn_arena *arena, struct tarn_slice s); /* + a NUL */
char *tarn_arena_str(struct tarn_arena *arena, struct tarn_slice s);
TARN_NONNULL char *tarn_arena_printf(struct tarn_arena *arena, const char *format, ...)
    TARN_PRINTF(2, 3);
size_t tarn_arena_size(const struct tarn_arena *arena); /* bytes taken from the system */

#endif
