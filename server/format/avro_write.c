#include "format/avro.h"

/* Java's default distance between two marks, so that files look alike to those who split them. */
#define TARN_AVRO_BLOCK_SIZE 64000

static const struct codec {
    const char *word, *name;
    enum tarn_zip zip;
} codecs[] = {
    {"zstd", "zstandard", TARN_ZIP_ZSTD},     {"zstandard", "zstandard", TARN_ZIP_ZSTD},
    {"deflate", "deflate", TARN_ZIP_DEFLATE}, {"snappy", "snappy", TARN_ZIP_SNAPPY},
    {"none", "null", TARN_ZIP_NONE},          {"null", "null", TARN_ZIP_NONE},
};

void tarn_avro_add_long(struct tarn_buf *out, int64_t value)
{
    uint64_t n = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    while (n >= 0x80) {
        tarn_buf_add_byte(out, (uint8_t)(n | 0x80));
        n >>= 7;
    }
    tarn_buf_add_byte(out, (uint8_t)n);
}

void tarn_avro_add_bytes(struct tarn_buf *out, struct tarn_slice bytes)
{
    tarn_avro_add_long(out, (int64_t)bytes.size);
    tarn_buf_add_slice(out, bytes);
}

void tarn_avro_add_optional_long(struct tarn_buf *out, bool present, int64_t value)
{
    tarn_avro_add_long(out, present);
    if (present)
        tarn_avro_add_long(out, value);
}

void tarn_avro_add_optional_bytes(struct tarn_buf *out, struct tarn_slice bytes)
{
    tarn_avro_add_long(out, bytes.data != NULL);
    if (bytes.data != NULL)
        tarn_avro_add_bytes(out, bytes);
}

struct tarn_status *tarn_avro_begin(struct tarn_avro_writer *w, const char *schema,
                                    struct tarn_slice codec, int level,
                                    const uint8_t sync[TARN_AVRO_SYNC_SIZE], struct tarn_buf *out)
{
    size_t i = 0;
    while (i < TARN_COUNT_OF(codecs) && !tarn_slice_is(codec, codecs[i].word))
        i++;
    if (i == TARN_COUNT_OF(codecs))
        return tarn_status_new(TARN_INVALID_ARGUMENT,
                               "Avro files can't be compressed with \"%.*s\": expected zstd, "
                               "deflate, snappy or none",
                               TARN_SLICE_ARG(codec));
    *w = (struct tarn_avro_writer){.out = out, .codec = (int)i, .level = level};
    memcpy(w->sync, sync, sizeof w->sync);
    tarn_buf_add_str(out, "Obj\x01");
    tarn_avro_add_long(out, 2); /* entries of the metadata map */
    tarn_avro_add_bytes(out, tarn_slice_str("avro.schema"));
    tarn_avro_add_bytes(out, tarn_slice_str(schema));
    tarn_avro_add_bytes(out, tarn_slice_str("avro.codec"));
    tarn_avro_add_bytes(out, tarn_slice_str(codecs[i].name));
    tarn_avro_add_long(out, 0);
    tarn_buf_add(out, sync, TARN_AVRO_SYNC_SIZE);
    return TARN_OK;
}

static void add_checksum(struct tarn_slice plain, struct tarn_buf *out)
{
    uint32_t sum = tarn_crc32(plain);
    for (int shift = 24; shift >= 0; shift -= 8)
        tarn_buf_add_byte(out, (uint8_t)(sum >> shift));
}

static struct tarn_status *flush(struct tarn_avro_writer *w)
{
    if (w->record_count == 0)
        return TARN_OK;
    enum tarn_zip zip = codecs[w->codec].zip;
    tarn_buf_clear(&w->zipped);
    if (zip == TARN_ZIP_NONE) {
        tarn_buf_add_slice(&w->zipped, tarn_buf_slice(&w->block));
    } else {
        /* The level is zstd's; the others have scales of their own. */
        int level = zip == TARN_ZIP_ZSTD ? w->level : 0;
        TARN_TRY(tarn_zip_compress(zip, level, tarn_buf_slice(&w->block), &w->zipped));
    }
    if (zip == TARN_ZIP_SNAPPY)
        add_checksum(tarn_buf_slice(&w->block), &w->zipped);
    tarn_avro_add_long(w->out, w->record_count);
    tarn_avro_add_bytes(w->out, tarn_buf_slice(&w->zipped));
    tarn_buf_add(w->out, w->sync, sizeof w->sync);
    tarn_buf_clear(&w->block);
    w->record_count = 0;
    return TARN_OK;
}

struct tarn_status *tarn_avro_end_record(struct tarn_avro_writer *w)
{
    w->record_count++;
    return w->block.size >= TARN_AVRO_BLOCK_SIZE ? flush(w) : TARN_OK;
}

struct tarn_status *tarn_avro_end(struct tarn_avro_writer *w)
{
    return flush(w);
}

void tarn_avro_writer_drop(struct tarn_avro_writer *w)
{
    tarn_buf_drop(&w->block);
    tarn_buf_drop(&w->zipped);
}
