/*
 * zip - compression by name: the one door to zstd, zlib and snappy.
 *
 * Errors   COMPRESSED_MALFORMED for bytes that don't decode; TOO_LARGE where the result would
 *          exceed size_max (a bomb is stopped at that many bytes, not after).
 */
#ifndef TARN_BASE_ZIP_H
#define TARN_BASE_ZIP_H

#include "base/memory.h"
#include "base/slice.h"
#include "base/status.h"

enum tarn_zip {
    TARN_ZIP_NONE,
    TARN_ZIP_ZSTD,
    TARN_ZIP_DEFLATE, /* raw, without zlib's header: Avro's */
    TARN_ZIP_SNAPPY,  /* the raw block, without Avro's CRC */
    TARN_ZIP_GZIP,
};

/* Both append to `out`. level 0 is the library's default. */
TARN_MUST struct tarn_status *tarn_zip_compress(enum tarn_zip kind, int level, struct tarn_slice in,
                                                struct tarn_buf *out);
TARN_MUST struct tarn_status *tarn_zip_expand(enum tarn_zip kind, struct tarn_slice in,
                                              size_t size_max, struct tarn_buf *out);

#endif
