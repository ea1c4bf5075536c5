/* Promise: any bytes are a commit message of any version, or refused; what is read is written to what reads
 * the same, and memory stays in proportion to the bytes. */
#include "format/commit_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_version(struct tarn_slice in, int32_t version)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    TARN_OWN(tarn_buf_drop) struct tarn_buf first = {0};
    TARN_OWN(tarn_buf_drop) struct tarn_buf second = {0};
    struct tarn_commit_message m;
    struct tarn_status *s = tarn_commit_message_decode(in, version, arena, &m);
    tarn_assert(tarn_arena_size(arena) < (1 << 20) + 64 * in.size);
    if (s == NULL) {
        s = tarn_commit_message_encode(&m, version, &first);
        tarn_assert(s == NULL);
        s = tarn_commit_message_decode(tarn_buf_slice(&first), version, arena, &m);
        tarn_assert(s == NULL);
        s = tarn_commit_message_encode(&m, version, &second);
        tarn_assert(s == NULL);
        tarn_assert(tarn_slice_equal(tarn_buf_slice(&first), tarn_buf_slice(&second)));
    }
    tarn_status_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int32_t version = 9; version <= 14; version++)
        fuzz_version(tarn_slice_of(data, size), version);
    return 0;
}
