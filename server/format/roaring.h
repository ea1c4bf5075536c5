/*
 * roaring - 32-bit roaring bitmaps written in their portable form, each container in the form that Java's library chooses
 * once it has looked for runs (runOptimize).
 *
 * Source   https://github.com/RoaringBitmap/RoaringFormatSpec; org.apache.paimon.utils.RoaringBitmap32.serialize;
 *          bytes: test/golden/file_index/.
 */
#ifndef TARN_FORMAT_ROARING_H
#define TARN_FORMAT_ROARING_H

#include "base/base.h"

#define TARN_ROARING_CONTAINER 65536 /* values of one container */

struct tarn_roaring_head {
    uint16_t key;
    uint32_t count;
    bool as_runs;
    size_t size; /* serialized */
};
struct tarn_roaring { /* being written; zeroes: empty */
    struct tarn_roaring_head *heads;
    size_t count, capacity;
    bool any_runs;
    struct tarn_buf bodies;
};

/* A container behind those so far: low halves of its values, ascending, at least one. Keys ascend. */
void tarn_roaring_add(struct tarn_roaring *r, uint16_t key, const uint16_t *lows, size_t count);
/* Appends the bitmap; r is empty again. */
void tarn_roaring_take(struct tarn_roaring *r, struct tarn_buf *out);
void tarn_roaring_fini(struct tarn_roaring *r);

#endif
