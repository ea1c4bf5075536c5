/* The hash of a row and the bucket it falls into. */
#include "format/row.h"

#include <math.h>

#define HASH_SEED 42

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t mix(uint32_t h, uint32_t k)
{
    k *= 0xcc9e2d51u;
    k = rotate(k, 15);
    k *= 0x1b873593u;
    h ^= k;
    return rotate(h, 13) * 5 + 0xe6546b64u;
}

static int32_t finish(uint32_t h, size_t size)
{
    h ^= (uint32_t)size;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return (int32_t)h;
}

int32_t tarn_bytes_hash(struct tarn_slice bytes)
{
    uint32_t h = HASH_SEED;
    size_t i = 0;

    for (; i + 4 <= bytes.size; i += 4) {
        const uint8_t *p = bytes.data + i;
        h = mix(h,
                (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    }
    for (; i < bytes.size; i++) /* Java's bytes are signed */
        h = mix(h, (uint32_t)(int32_t)(int8_t)bytes.data[i]);
    return finish(h, bytes.size);
}

int32_t tarn_row_hash(struct tarn_slice row)
{
    return tarn_bytes_hash(row);
}

/* ---- Hive's hash, a 31 ary sum of what Java's hashCode gives */

static uint32_t hive_long(uint64_t v)
{
    return (uint32_t)(v ^ v >> 32);
}

static uint32_t hive_bytes(struct tarn_slice bytes)
{
    uint32_t h = 0;
    for (size_t i = 0; i < bytes.size; i++)
        h = 31 * h + (uint32_t)(int32_t)(int8_t)bytes.data[i];
    return h;
}

/* BigDecimal.hashCode of the value without trailing zeros, its scale not below 0. */
static uint32_t hive_decimal(__int128 unscaled, int32_t scale)
{
    while (scale > 0 && unscaled % 10 == 0) {
        unscaled /= 10;
        scale--;
    }
    unsigned __int128 rest =
        unscaled < 0 ? -(unsigned __int128)unscaled : (unsigned __int128)unscaled;
    uint32_t h = 0;
    for (int shift = 96; shift >= 0; shift -= 32)
        h = 31 * h + (uint32_t)(rest >> shift); /* leading zero words leave h at 0 */
    return 31 * (unscaled < 0 ? -h : h) + (uint32_t)scale;
}

static uint32_t hive_real(const struct tarn_type *type, double real)
{
    double wide = real == 0 ? 0.0 : isnan(real) ? NAN : real; /* one zero, one NaN, as Java */
    float narrow = (float)wide;
    uint64_t bits64;
    uint32_t bits32;

    memcpy(&bits64, &wide, sizeof bits64);
    memcpy(&bits32, &narrow, sizeof bits32);
    if (isnan(real)) {
        bits64 = UINT64_C(0x7ff8000000000000);
        bits32 = 0x7fc00000u;
    }
    return type->id == TARN_TYPE_FLOAT ? bits32 : hive_long(bits64);
}

static uint32_t hive_hash(const struct tarn_type *type, const struct tarn_value *value)
{
    if (value->is_null)
        return 0;
    switch (type->id) {
    case TARN_TYPE_BOOLEAN:
        return value->integer != 0;
    case TARN_TYPE_TINYINT:
    case TARN_TYPE_SMALLINT:
    case TARN_TYPE_INT:
    case TARN_TYPE_DATE:
    case TARN_TYPE_TIME:
        return (uint32_t)value->integer;
    case TARN_TYPE_BIGINT:
        return hive_long((uint64_t)value->integer);
    case TARN_TYPE_FLOAT:
    case TARN_TYPE_DOUBLE:
        return hive_real(type, value->real);
    case TARN_TYPE_DECIMAL:
        return hive_decimal(value->decimal, type->scale);
    case TARN_TYPE_CHAR:
    case TARN_TYPE_VARCHAR:
    case TARN_TYPE_BINARY:
    case TARN_TYPE_VARBINARY:
        return hive_bytes(value->bytes);
    default: /* tarn_bucket_takes refused it */
        return 0;
    }
}

bool tarn_bucket_takes(enum tarn_bucket_function function, const struct tarn_type *const *types,
                       size_t count)
{
    if (function == TARN_BUCKET_MOD)
        return count == 1 && (types[0]->id == TARN_TYPE_INT || types[0]->id == TARN_TYPE_BIGINT);
    for (size_t i = 0; i < count; i++) {
        enum tarn_type_id id = types[i]->id;
        if (tarn_type_is_nested(types[i]) ||
            (function == TARN_BUCKET_HIVE && id >= TARN_TYPE_TIMESTAMP))
            return false;
    }
    return true;
}

static int32_t default_bucket(const struct tarn_type *const *types, const struct tarn_value *values,
                              size_t count, int32_t bucket_count)
{
    TARN_OWN(tarn_buf_drop) struct tarn_buf row = {0};

    tarn_row_encode(types, values, count, &row);
    int32_t rest = tarn_row_hash(tarn_buf_slice(&row)) % bucket_count; /* not a floored modulus */
    return rest < 0 ? -rest : rest;
}

static int32_t mod_bucket(const struct tarn_value *value, int32_t bucket_count)
{
    int64_t rest = value->is_null ? 0 : value->integer % bucket_count;
    return (int32_t)(rest < 0 ? rest + bucket_count : rest);
}

int32_t tarn_bucket_of(enum tarn_bucket_function function, const struct tarn_type *const *types,
                       const struct tarn_value *values, size_t count, int32_t bucket_count)
{
    uint32_t h = 0;

    tarn_assert(bucket_count > 0);
    switch (function) {
    case TARN_BUCKET_MOD:
        return count == 0 ? 0 : mod_bucket(&values[0], bucket_count);
    case TARN_BUCKET_HIVE:
        for (size_t i = 0; i < count; i++)
            h = 31 * h + hive_hash(types[i], &values[i]);
        return (int32_t)(h & 0x7fffffffu) % bucket_count;
    default:
        return default_bucket(types, values, count, bucket_count);
    }
}
