/* Promise: no reflection request, and no descriptor set, brings the server down. */
#include "wire/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tarn_wire__reflection *own(void)
{
    static struct tarn_wire__reflection *r;
    if (r == NULL)
        tarn_status_free(tarn_wire__reflection_new((struct tarn_slice){NULL, 0}, &r));
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_slice bytes = tarn_slice_of(data, size);
    TARN_OWN(tarn_buf_drop) struct tarn_buf reply = {0};
    TARN_OWN(tarn_wire__reflection_drop) struct tarn_wire__reflection *r = NULL;
    const char *services[] = {"a.B"};

    tarn_status_free(tarn_wire__reflection_answer(own(), services, 1, bytes, &reply));
    tarn_buf_clear(&reply);
    struct tarn_status *status = tarn_wire__reflection_new(bytes, &r);
    if (status == NULL)
        tarn_status_free(tarn_wire__reflection_answer(r, services, 1, bytes, &reply));
    tarn_status_free(status);
    return 0;
}
