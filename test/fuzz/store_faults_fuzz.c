/*
 * Any text as TARN_STORE_FAULTS, and the same text as a key: refused or taken, never worse.
 */
#include "store/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = tarn_slice_dup(tarn_slice_of(data, size));
    struct tarn_store *inner = tarn_store__memory_new();
    struct tarn_store *faulty = tarn_store_faulty_new(inner);
    tarn_status_free(tarn_store__faulty_parse(faulty, text));
    tarn_status_free(tarn_store__key_check(text, true));
    tarn_store_unref(faulty);
    tarn_store_unref(inner);
    free(text);
    return 0;
}
