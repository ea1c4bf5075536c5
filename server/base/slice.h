/*
 * slice - borrowed bytes: a pointer and a size. Never NUL terminated by promise, never owned.
 *
 * An empty slice is {NULL, 0} or {p, 0}; where "absent" and "empty" differ, absent is data == NULL
 * and the declaration says so.
 */
#ifndef TARN_BASE_SLICE_H
#define TARN_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tarn_slice {
    const uint8_t *data;
    size_t size;
};

#define TARN_SLICE_ARG(s) (int)(s).size, (const char *)(s).data /* for "%.*s" */

static inline struct tarn_slice tarn_slice_of(const void *data, size_t size)
{
    return (struct tarn_slice){(const uint8_t *)data, size};
}

/* The bytes of a C string without its NUL; NULL gives the absent slice. */
static inline struct tarn_slice tarn_slice_str(const char *text)
{
    return text == NULL ? (struct tarn_slice){NULL, 0} : tarn_slice_of(text, strlen(text));
}

static inline bool tarn_slice_equal(struct tarn_slice a, struct tarn_slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Two lists, one by one in order. */
static inline bool tarn_slices_equal(const struct tarn_slice *a, size_t a_count,
                                     const struct tarn_slice *b, size_t b_count)
{
    bool same = a_count == b_count;
    for (size_t i = 0; same && i < a_count; i++)
        same = tarn_slice_equal(a[i], b[i]);
    return same;
}

static inline bool tarn_slice_is(struct tarn_slice a, const char *text)
{
    return tarn_slice_equal(a, tarn_slice_str(text));
}

/* Unsigned bytewise, the shorter prefix first: also UTF-8 order. */
static inline int tarn_slice_compare(struct tarn_slice a, struct tarn_slice b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int c = n == 0 ? 0 : memcmp(a.data, b.data, n);
    return c != 0 ? c : (a.size > b.size) - (a.size < b.size);
}

static inline bool tarn_slice_starts_with(struct tarn_slice s, struct tarn_slice prefix)
{
    return s.size >= prefix.size &&
           (prefix.size == 0 || memcmp(s.data, prefix.data, prefix.size) == 0);
}

struct tarn_pair { /* of a list of options, properties, headers */
    struct tarn_slice key, value;
};

#endif
