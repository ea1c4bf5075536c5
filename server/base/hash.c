#include "base/digest.h"

#include <xxhash.h>

uint64_t tarn_xxh64(struct tarn_slice bytes, uint64_t seed)
{
    return XXH64(bytes.data, bytes.size, seed);
}
