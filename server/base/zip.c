#include "base/zip.h"

#include <snappy-c.h>
#include <stdatomic.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/digest.h"

/* Output grows by at least this much; a small frame that claims a huge size allocates no more. */
#define STEP_SIZE_MIN ((size_t)16 << 10)
#define STEP_SIZE_MAX ((size_t)1 << 20)
/* zstd frames that want a larger window are refused: it is memory that the frame's header asks for. */
#define ZSTD_WINDOW_LOG_MAX 27

uint32_t tarn_crc32(struct tarn_slice bytes)
{
    return (uint32_t)crc32_z(0, bytes.data, bytes.size);
}

static struct tarn_status *malformed(const char *what, const char *detail)
{
    return tarn_status_new(TARN_COMPRESSED_MALFORMED, "%s: %s", what, detail);
}

static struct tarn_status *too_large(const char *what, size_t size_max)
{
    return tarn_status_new(TARN_TOO_LARGE, "%s: expands to more than %zu bytes", what, size_max);
}

/* Room for the next piece: as much as there is already, within the steps; never past size_max + 1,
 * one byte more than allowed so that "exactly the limit" and "beyond" can be told apart. */
static size_t reserve_step(struct tarn_buf *out, size_t begin, size_t size_max)
{
    size_t have = out->size - begin;
    size_t step = TARN_MIN(TARN_MAX(have, STEP_SIZE_MIN), STEP_SIZE_MAX);
    size_t left = size_max - have;
    if (left < step)
        step = left + 1;
    tarn_buf_reserve(out, step);
    return step;
}

/* --- zstd --- */

/* Contexts wait for their next use: to make one asks the processor what it can do, which a virtual machine traps (some 20 us
 * each, more than a small body takes). Those that have grown large are not kept. */
#define ZSTD_IDLE_COUNT 8
#define ZSTD_IDLE_SIZE_MAX ((size_t)4 << 20)

static _Atomic(void *) idle_writers[ZSTD_IDLE_COUNT];
static _Atomic(void *) idle_readers[ZSTD_IDLE_COUNT];

/* NULL: none is idle. */
static void *take_idle(_Atomic(void *) idle[ZSTD_IDLE_COUNT])
{
    void *context = NULL;
    for (size_t i = 0; i < ZSTD_IDLE_COUNT && context == NULL; i++)
        context = atomic_exchange(&idle[i], NULL);
    return context;
}

/* False: it is too large, or there are enough; the caller frees it. */
static bool keep_idle(_Atomic(void *) idle[ZSTD_IDLE_COUNT], void *context, size_t size)
{
    bool kept = false;
    for (size_t i = 0; i < ZSTD_IDLE_COUNT && size <= ZSTD_IDLE_SIZE_MAX && !kept; i++) {
        void *none = NULL;
        kept = atomic_compare_exchange_strong(&idle[i], &none, context);
    }
    return kept;
}

static void drop_writer(ZSTD_CCtx **writer)
{
    if (!keep_idle(idle_writers, *writer, ZSTD_sizeof_CCtx(*writer)))
        ZSTD_freeCCtx(*writer);
}

static void drop_reader(ZSTD_DCtx **reader)
{
    if (!keep_idle(idle_readers, *reader, ZSTD_sizeof_DCtx(*reader)))
        ZSTD_freeDCtx(*reader);
}

static struct tarn_status *no_context(void)
{
    return tarn_status_new(TARN_MEMORY_EXHAUSTED, "zstd: no memory for a context");
}

static struct tarn_status *zstd_compress(int level, struct tarn_slice in, struct tarn_buf *out)
{
    size_t bound = ZSTD_compressBound(in.size);
    if (ZSTD_isError(bound))
        return tarn_status_new(TARN_TOO_LARGE, "zstd: %zu bytes are too many", in.size);
    void *idle = take_idle(idle_writers);
    TARN_OWN(drop_writer) ZSTD_CCtx *context = idle != NULL ? idle : ZSTD_createCCtx();
    if (context == NULL)
        return no_context();
    tarn_buf_reserve(out, bound);
    size_t size = ZSTD_compressCCtx(context, out->data + out->size, bound, in.data, in.size,
                                    level == 0 ? ZSTD_CLEVEL_DEFAULT : level);
    if (ZSTD_isError(size))
        return tarn_status_new(TARN_INTERNAL, "zstd: %s", ZSTD_getErrorName(size));
    out->size += size;
    return TARN_OK;
}

/* One or more frames, to the last byte. */
static struct tarn_status *zstd_expand(struct tarn_slice in, size_t size_max, struct tarn_buf *out)
{
    void *idle = take_idle(idle_readers);
    TARN_OWN(drop_reader) ZSTD_DCtx *context = idle != NULL ? idle : ZSTD_createDCtx();
    if (context == NULL)
        return no_context();
    ZSTD_DCtx_reset(context, ZSTD_reset_session_only); /* what its last use left half read */
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);

    ZSTD_inBuffer source = {in.data, in.size, 0};
    size_t begin = out->size, hint = 1;
    for (;;) {
        size_t step = reserve_step(out, begin, size_max);
        ZSTD_outBuffer sink = {out->data + out->size, step, 0};
        size_t in_before = source.pos;
        hint = ZSTD_decompressStream(context, &sink, &source);
        if (ZSTD_isError(hint))
            return malformed("zstd", ZSTD_getErrorName(hint));
        out->size += sink.pos;
        if (out->size - begin > size_max)
            return too_large("zstd", size_max);
        if (source.pos == source.size && (hint == 0 || sink.pos < sink.size))
            break;
        if (sink.pos == 0 && source.pos == in_before)
            return malformed("zstd", "no progress");
    }
    return hint == 0 ? TARN_OK : malformed("zstd", "the data ends early");
}

/* --- zlib: raw deflate, gzip --- */

#define WINDOW_RAW (-15)
#define WINDOW_GZIP (15 + 16)

static void end_deflate(z_stream *z)
{
    deflateEnd(z);
}

static void end_inflate(z_stream *z)
{
    inflateEnd(z);
}

/* zlib counts in 32 bit: hands it the next piece of the input. */
static void feed(z_stream *z, struct tarn_slice *in)
{
    if (z->avail_in != 0)
        return;
    size_t n = TARN_MIN(in->size, (size_t)1 << 30);
    z->next_in = (Bytef *)in->data;
    z->avail_in = (uInt)n;
    in->data += n;
    in->size -= n;
}

static struct tarn_status *zlib_compress(const char *what, int window, int level,
                                         struct tarn_slice in, struct tarn_buf *out)
{
    TARN_OWN(end_deflate) z_stream z = {0};
    if (deflateInit2(&z, level == 0 ? Z_DEFAULT_COMPRESSION : level, Z_DEFLATED, window, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return tarn_status_new(TARN_INTERNAL, "%s: level %d is not one of 1 to 9", what, level);
    for (int result = Z_OK; result != Z_STREAM_END;) {
        feed(&z, &in);
        tarn_buf_reserve(out, STEP_SIZE_MIN);
        z.next_out = out->data + out->size;
        z.avail_out = (uInt)STEP_SIZE_MIN;
        result = deflate(&z, in.size == 0 ? Z_FINISH : Z_NO_FLUSH);
        tarn_assert(result == Z_OK || result == Z_STREAM_END);
        out->size += STEP_SIZE_MIN - z.avail_out;
    }
    return TARN_OK;
}

static struct tarn_status *zlib_expand(const char *what, int window, struct tarn_slice in,
                                       size_t size_max, struct tarn_buf *out)
{
    TARN_OWN(end_inflate) z_stream z = {0};
    if (inflateInit2(&z, window) != Z_OK)
        return tarn_status_new(TARN_MEMORY_EXHAUSTED, "%s: no memory for a context", what);
    size_t begin = out->size;
    int result;
    do {
        feed(&z, &in);
        size_t step = reserve_step(out, begin, size_max);
        z.next_out = out->data + out->size;
        z.avail_out = (uInt)step;
        result = inflate(&z, Z_NO_FLUSH);
        out->size += step - z.avail_out;
        if (out->size - begin > size_max)
            return too_large(what, size_max);
        if (result == Z_BUF_ERROR ||
            (result == Z_OK && z.avail_in == 0 && in.size == 0 && z.avail_out != 0))
            return malformed(what, "the data ends early");
        if (result == Z_MEM_ERROR)
            return tarn_status_new(TARN_MEMORY_EXHAUSTED, "%s: no memory", what);
        if (result != Z_OK && result != Z_STREAM_END)
            return malformed(what, z.msg != NULL ? z.msg : "the data is damaged");
    } while (result != Z_STREAM_END);
    if (z.avail_in != 0 || in.size != 0)
        return malformed(what, "bytes follow the end of the data");
    return TARN_OK;
}

/* --- snappy: the size stands in front, so it is checked before anything is allocated --- */

/* No element of snappy (at most 3 bytes for a copy of 64) expands more than this. */
#define SNAPPY_RATIO_MAX 32

static struct tarn_status *snappy_compress_to(struct tarn_slice in, struct tarn_buf *out)
{
    if (in.size > UINT32_MAX)
        return tarn_status_new(TARN_TOO_LARGE, "snappy: %zu bytes are too many", in.size);
    size_t size = snappy_max_compressed_length(in.size);
    tarn_buf_reserve(out, size);
    snappy_status result = snappy_compress(in.size == 0 ? "" : (const char *)in.data, in.size,
                                           (char *)out->data + out->size, &size);
    tarn_assert(result == SNAPPY_OK);
    out->size += size;
    return TARN_OK;
}

static struct tarn_status *snappy_expand(struct tarn_slice in, size_t size_max,
                                         struct tarn_buf *out)
{
    size_t size = 0;
    if (in.size == 0 ||
        snappy_uncompressed_length((const char *)in.data, in.size, &size) != SNAPPY_OK)
        return malformed("snappy", "the size in front is damaged");
    if (size > size_max)
        return too_large("snappy", size_max);
    if (size / SNAPPY_RATIO_MAX > in.size)
        return malformed("snappy", "the size in front is more than the data can hold");
    tarn_buf_reserve(out, size + 1);
    if (snappy_uncompress((const char *)in.data, in.size, (char *)out->data + out->size, &size) !=
        SNAPPY_OK)
        return malformed("snappy", "the data is damaged");
    out->size += size;
    return TARN_OK;
}

/* --- by name --- */

static struct tarn_status *expand(enum tarn_zip kind, struct tarn_slice in, size_t size_max,
                                  struct tarn_buf *out)
{
    switch (kind) {
    case TARN_ZIP_NONE:
        if (in.size > size_max)
            return too_large("uncompressed", size_max);
        tarn_buf_add_slice(out, in);
        return TARN_OK;
    case TARN_ZIP_ZSTD:
        return zstd_expand(in, size_max, out);
    case TARN_ZIP_DEFLATE:
        return zlib_expand("deflate", WINDOW_RAW, in, size_max, out);
    case TARN_ZIP_GZIP:
        return zlib_expand("gzip", WINDOW_GZIP, in, size_max, out);
    case TARN_ZIP_SNAPPY:
        return snappy_expand(in, size_max, out);
    }
    return tarn_status_new(TARN_INTERNAL, "no such compression: %d", (int)kind);
}

struct tarn_status *tarn_zip_expand(enum tarn_zip kind, struct tarn_slice in, size_t size_max,
                                    struct tarn_buf *out)
{
    size_t size_before = out->size;
    struct tarn_status *s = expand(kind, in, TARN_MIN(size_max, SIZE_MAX / 4), out);
    if (s != NULL)
        out->size = size_before;
    return s;
}

struct tarn_status *tarn_zip_compress(enum tarn_zip kind, int level, struct tarn_slice in,
                                      struct tarn_buf *out)
{
    switch (kind) {
    case TARN_ZIP_NONE:
        tarn_buf_add_slice(out, in);
        return TARN_OK;
    case TARN_ZIP_ZSTD:
        return zstd_compress(level, in, out);
    case TARN_ZIP_DEFLATE:
        return zlib_compress("deflate", WINDOW_RAW, level, in, out);
    case TARN_ZIP_GZIP:
        return zlib_compress("gzip", WINDOW_GZIP, level, in, out);
    case TARN_ZIP_SNAPPY:
        return snappy_compress_to(in, out);
    }
    return tarn_status_new(TARN_INTERNAL, "no such compression: %d", (int)kind);
}
