/* The client's decoder of plans: it must read no byte beyond what it was given. */
#include "tarn/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TARN_OWN(tarn_arena_drop) struct tarn_arena *arena = tarn_arena_new();
    struct tarn_client_split *splits;
    struct tarn_slice summary;
    size_t count;
    tarn_status_free(
        tarn_client_plan_decode(tarn_slice_of(data, size), arena, &splits, &count, &summary));
    return 0;
}
