#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noreturn, cold)) static void die(const char *text)
{
    /* Not stdio: there may be no memory left for it. */
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        abort();
    abort();
}

void tarn_assert_failed(const char *file, int line, const char *what)
{
    char text[512];
    snprintf(text, sizeof text, "%s:%d: assertion failed: %s\n", file, line, what);
    die(text);
}

void *tarn_alloc(size_t size)
{
    void *memory = malloc(size == 0 ? 1 : size);
    if (memory == NULL)
        die("out of memory\n");
    return memory;
}

void *tarn_calloc(size_t count, size_t size)
{
    void *memory = count == 0 || size == 0 ? calloc(1, 1) : calloc(count, size);
    if (memory == NULL)
        die("out of memory\n");
    return memory;
}

void *tarn_realloc(void *memory, size_t size)
{
    memory = realloc(memory, size == 0 ? 1 : size);
    if (memory == NULL)
        die("out of memory\n");
    return memory;
}

char *tarn_strdup(const char *text)
{
    return text == NULL ? NULL : tarn_slice_dup(tarn_slice_str(text));
}

char *tarn_slice_dup(struct tarn_slice s)
{
    char *copy = tarn_alloc(s.size + 1);
    if (s.size != 0)
        memcpy(copy, s.data, s.size);
    copy[s.size] = 0;
    return copy;
}

char *tarn_format(const char *format, ...)
{
    struct tarn_buf buf = {0};
    va_list args;
    va_start(args, format);
    tarn_buf_vprintf(&buf, format, args);
    va_end(args);
    tarn_buf_add_byte(&buf, 0);
    return (char *)buf.data;
}

void tarn_free_drop(void *pointer_to_pointer)
{
    void **p = pointer_to_pointer;
    free(*p);
    *p = NULL;
}

/* --- buf --- */

void tarn_buf_drop(struct tarn_buf *buf)
{
    free(buf->data);
    *buf = (struct tarn_buf){0};
}

void tarn_buf_clear(struct tarn_buf *buf)
{
    buf->size = 0;
}

void tarn_buf_grow(struct tarn_buf *buf, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(buf->size, more, &need) || need > SIZE_MAX / 2)
        die("out of memory: a buffer's size overflows\n");
    size_t capacity = TARN_MAX(need, buf->capacity * 2);
    buf->capacity = TARN_MAX(capacity, (size_t)64);
    buf->data = tarn_realloc(buf->data, buf->capacity);
}

void tarn_buf_add_slice(struct tarn_buf *buf, struct tarn_slice s)
{
    tarn_buf_add(buf, s.data, s.size);
}

void tarn_buf_add_str(struct tarn_buf *buf, const char *text)
{
    tarn_buf_add(buf, text, strlen(text));
}

void tarn_buf_add_zeros(struct tarn_buf *buf, size_t count)
{
    if (count == 0)
        return;
    tarn_buf_reserve(buf, count);
    memset(buf->data + buf->size, 0, count);
    buf->size += count;
}

void tarn_buf_vprintf(struct tarn_buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    tarn_assert(size >= 0);
    tarn_buf_reserve(buf, (size_t)size + 1);
    vsnprintf((char *)buf->data + buf->size, (size_t)size + 1, format, again);
    va_end(again);
    buf->size += (size_t)size;
}

void tarn_buf_printf(struct tarn_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tarn_buf_vprintf(buf, format, args);
    va_end(args);
}

const char *tarn_buf_cstr(struct tarn_buf *buf)
{
    tarn_buf_reserve(buf, 1);
    buf->data[buf->size] = 0;
    return (const char *)buf->data;
}

/* --- arena: a chain of blocks; the newest is filled, each new one is larger up to a limit --- */

#define ARENA_ALIGN 16
#define ARENA_BLOCK_MIN ((size_t)4096)
#define ARENA_BLOCK_MAX ((size_t)1 << 20)

struct block {
    struct block *next;
    size_t size; /* with this header */
    uint8_t bytes[] __attribute__((aligned(ARENA_ALIGN)));
};

struct tarn_arena {
    struct block *blocks;
    uint8_t *free_begin; /* in the newest ordinary block */
    uint8_t *free_end;
    size_t block_size; /* of the next one */
    size_t total_size;
};

struct tarn_arena *tarn_arena_new(void)
{
    struct tarn_arena *arena = tarn_calloc(1, sizeof *arena);
    arena->block_size = ARENA_BLOCK_MIN;
    return arena;
}

void tarn_arena_free(struct tarn_arena *arena)
{
    if (arena == NULL)
        return;
    for (struct block *next, *b = arena->blocks; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    free(arena);
}

void tarn_arena_drop(struct tarn_arena **arena)
{
    tarn_arena_free(*arena);
    *arena = NULL;
}

static struct block *add_block(struct tarn_arena *arena, size_t size)
{
    struct block *b = tarn_alloc(size);
    b->size = size;
    b->next = arena->blocks;
    arena->blocks = b;
    arena->total_size += size;
    return b;
}

void *tarn_arena_alloc(struct tarn_arena *arena, size_t size)
{
    size_t need;
    if (__builtin_add_overflow(size, sizeof(struct block) + ARENA_ALIGN, &need))
        die("out of memory: an arena allocation overflows\n");
    size = size == 0 ? ARENA_ALIGN : (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);

    if (size > (size_t)(arena->free_end - arena->free_begin)) {
        /* A large one gets a block of its own, so that the rest of the present one isn't lost. */
        if (size > arena->block_size / 4)
            return add_block(arena, sizeof(struct block) + size)->bytes;
        struct block *b = add_block(arena, arena->block_size);
        arena->free_begin = b->bytes;
        arena->free_end = (uint8_t *)b + b->size;
        arena->block_size = TARN_MIN(arena->block_size * 2, ARENA_BLOCK_MAX);
    }
    void *memory = arena->free_begin;
    arena->free_begin += size;
    return memory;
}

void *tarn_arena_calloc(struct tarn_arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        die("out of memory: an arena allocation overflows\n");
    return memset(tarn_arena_alloc(arena, total), 0, total);
}

struct tarn_slice tarn_arena_copy(struct tarn_arena *arena, struct tarn_slice s)
{
    if (s.data == NULL) /* absent stays absent */
        return s;
    return tarn_slice_of(tarn_arena_str(arena, s), s.size);
}

char *tarn_arena_str(struct tarn_arena *arena, struct tarn_slice s)
{
    char *copy = tarn_arena_alloc(arena, s.size + 1);
    if (s.size != 0)
        memcpy(copy, s.data, s.size);
    copy[s.size] = 0;
    return copy;
}

char *tarn_arena_printf(struct tarn_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    tarn_assert(size >= 0);
    char *text = tarn_arena_alloc(arena, (size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

size_t tarn_arena_size(const struct tarn_arena *arena)
{
    return arena->total_size;
}
